//! What is measured of a port. Both drivers measure alike, so that what they tell can be compared.

mod histogram;
mod outcome;
mod port;

pub use histogram::{DelayHistogram, FlowDelays};
pub use outcome::{ClassOutcome, DelayOutcome, LinkOutcome};
pub use port::{PortStatistics, PortView};
