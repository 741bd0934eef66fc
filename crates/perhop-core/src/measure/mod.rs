//! Statistics of a port, the same in both drivers, so that their results can be compared.

mod capacity;
mod histogram;
mod outcome;
mod port;

pub use capacity::{RateChange, RateHistory, Usage};
pub use histogram::{DelayHistogram, FlowDelays, delay_bin};
pub use outcome::{ClassOutcome, DelayOutcome, LinkOutcome, MeterOutcome};
pub use port::{Counted, PortStatistics, PortView, TransitCounts};
