//! Errors of a replay, each in one line.

use perhop_pcap::read::CaptureError;
use perhop_scenario::ScenarioError;

/// Why a replay cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The capture is at fault: what is wrong, for a place behind the file's name.
    #[error("{0}")]
    Capture(String),
    /// A table, a scenario or an option is at fault: the whole message.
    #[error("{0}")]
    Target(String),
    /// The caller stopped it.
    #[error("stopped")]
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
