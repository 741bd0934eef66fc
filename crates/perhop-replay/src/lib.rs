//! Captures replayed: the packets of a pcap or pcapng file, at their times, into a meter, a queue or a link
//! of a scenario.
//!
//! The replay is open loop: packets come when they came, whatever becomes of them. It keeps one packet of the
//! file at a time, and those that wait. [`By`] says what drives the blocks: virtual time as in the simulator,
//! or the data plane, which forwards the packets' bytes; both give each packet the same verdict
//! (`tests/parity.rs`).

mod arrivals;
mod captures;
mod driver;
mod error;
mod forwarded;
mod ledger;
mod report;
mod request;
mod run;
mod simulated;

pub use arrivals::{Arrival, Arrivals, CaptureRow, Choice, Speed};
pub use captures::{Captures, packets};
pub use error::ReplayError;
pub use ledger::{FORWARDED, NONE, Verdicts};
pub use report::{
    CodepointRow, DelayRow, FatesRow, FlowRow, LinkRow, MeterRow, OutcomeRow, QueueRow, Report,
};
pub use request::{Plan, Request, Target, TargetLink};
pub use run::{By, replay};
