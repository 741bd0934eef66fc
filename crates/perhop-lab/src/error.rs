//! Why a run could not be.

use std::fmt;
use std::io;

use perhop_live::Unbalanced;

/// Why a scenario could not run on real packets.
#[derive(Debug)]
pub enum LabError {
    /// The scenario asks for what no kernel has; the key, and what would do.
    Unfit(String),
    /// This system lacks something, or does not allow it.
    Missing(Missing),
    /// Something went wrong: what was being done, and what the system said.
    System(String, io::Error),
    /// The data plane lost or invented packets.
    Unbalanced(Unbalanced),
    /// The run was interrupted.
    Interrupted,
}

/// What this system lacks for running scenarios on real packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The thing that is missing.
    pub what: String,
    /// What would help.
    pub remedy: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl LabError {
    /// Returns a function for `map_err` that says what was being done.
    pub(crate) fn doing<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |error| Self::System(what.into(), error.into())
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(text) => f.write_str(text),
            Self::Missing(missing) => missing.fmt(f),
            Self::System(what, error) => write!(f, "{what}: {error}"),
            Self::Unbalanced(unbalanced) => write!(f, "perhop is at fault: {unbalanced}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for LabError {}
