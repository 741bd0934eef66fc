//! Why a run could not be.

use std::io;

use perhop_live::Unbalanced;

/// Why a scenario could not run on real packets.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario asks for what no kernel has; the key, and what would do.
    #[error("{0}")]
    Unfit(String),
    /// This system lacks something, or does not allow it.
    #[error("{0}")]
    Missing(Missing),
    /// Something went wrong: what was being done, and what the system said.
    #[error("{0}: {1}")]
    System(String, io::Error),
    /// The data plane lost or invented packets.
    #[error("perhop is at fault: {0}")]
    Unbalanced(Unbalanced),
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// What this system lacks for running scenarios on real packets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct Missing {
    /// The thing that is missing.
    pub what: String,
    /// What would help.
    pub remedy: String,
}

impl LabError {
    /// Returns a function for `map_err` that says what was being done.
    pub(crate) fn doing<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |error| Self::System(what.into(), error.into())
    }
}
