//! Congestion avoidance: how the window grows beyond the slow-start threshold, and how far a loss lowers it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cubic::Cubic;

/// Which rule moves the congestion window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// One segment more each round trip, half the window after a loss (RFC 5681, section 3.1).
    #[default]
    Reno,
    /// A cubic function of the time since the last loss, which leaves 70 % of the window (RFC 9438).
    Cubic,
}

/// The rule, with what it remembers.
#[derive(Clone, Debug)]
pub(super) enum CongestionAvoidance {
    Reno,
    Cubic(Cubic),
}

impl From<Congestion> for CongestionAvoidance {
    fn from(congestion: Congestion) -> Self {
        match congestion {
            Congestion::Reno => Self::Reno,
            Congestion::Cubic => Self::Cubic(Cubic::default()),
        }
    }
}
