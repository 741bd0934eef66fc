//! Guaranteed bounds beside simulated percentiles: what can never happen in a network while its sources keep
//! to what they declare, by network calculus ([`perhop_core::curves`]).
//!
//! 1. [`arrivals`]: a flow's arrival curve at its first router, from its source, its meter and its access
//!    link; flows that are alike are one [`Bundle`].
//! 2. [`port`]: the arrivals of the classes of a link's scheduler, what the scheduler guarantees to
//!    each, and from both the longest wait, the largest backlog, and whether a packet can be lost.
//! 3. [`analysis`]: from port to port in the order of the routes (total flow analysis); where routes form a
//!    cycle, a fixed point (Le Boudec & Thiran 2001, section 6.3.2).
//! 4. [`paths`]: the delay of a flow over its whole route, where its burst is paid once (separated flow
//!    analysis; pay multiplexing only once, Schmitt, Zdarsky & Fidler 2008).
//!
//! A bound holds for every run and seed, warm-up included. What has none says why.

mod analysis;
mod arrivals;
mod paths;
mod port;
mod report;

pub use analysis::{bounds, bounds_until};
pub use report::{Backlog, Bounds, ClassBounds, Delay, FlowBounds, LinkBounds, Loss};
