//! Statistics of a port, the same in both drivers, so that their results can be compared.

mod capacity;
mod histogram;
mod outcome;
mod port;
mod product_limit;
mod quantile;

pub use capacity::{RateChange, RateHistory, Usage};
pub use histogram::{DelayBins, DelayHistogram, FlowDelays, delay_bin, lower_edge};
pub use outcome::{ClassOutcome, DelayOutcome, LinkOutcome, MeterOutcome};
pub use port::{Counted, PortStatistics, PortView, TransitCounts};
pub use product_limit::{ProductLimit, quantile_with_open};
pub use quantile::{inverted_cdf, nearest_rank, quantile_of_sorted};
