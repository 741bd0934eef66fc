//! Errors of a replay, each in one line.

use std::fmt;

use perhop_pcap::read::CaptureError;
use perhop_scenario::ScenarioError;

/// Why a replay cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The capture is at fault: what is wrong, for a place behind the file's name.
    Capture(String),
    /// A table, a scenario or an option is at fault: the whole message.
    Target(String),
    /// The caller stopped it.
    Stopped,
}

impl ReplayError {
    pub(crate) fn capture(text: impl Into<String>) -> Self {
        Self::Capture(text.into())
    }
}

impl From<CaptureError> for ReplayError {
    fn from(error: CaptureError) -> Self {
        let text = error.to_string();
        Self::Capture(match error {
            CaptureError::Cut(1..) => format!("{text}; `allow-cut` replays what is whole"),
            _ => text,
        })
    }
}

impl From<ScenarioError> for ReplayError {
    fn from(error: ScenarioError) -> Self {
        Self::Target(error.to_string())
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(text) | Self::Target(text) => f.write_str(text),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for ReplayError {}
