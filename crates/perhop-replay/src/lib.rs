//! Captures replayed: the packets of a pcap or pcapng file, at their times, into a meter, a queue or a link
//! of a scenario.
//!
//! The replay is open loop: packets come when they came, whatever becomes of them. It keeps one packet of the
//! file at a time, and those that wait. [`By`] says what drives the blocks: virtual time as in the simulator,
//! or the data plane, which forwards the packets' bytes; both give each packet the same verdict
//! (`tests/parity.rs`).
//!
//! ```
//! use perhop_pcap::write::{Blocks, Captured, PacketDirection};
//! use perhop_replay::{By, Request, replay};
//! use perhop_sim::Watch;
//!
//! let mut blocks = Blocks::header("example", &["eth0".to_owned()], 1500);
//! let packet = &[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0x66, 0xd7, 10, 0, 0, 1, 10, 0, 0, 2];
//! let direction = PacketDirection::Inbound;
//! let (interface, time, length, comment, missed) = (0, 5, 20, None, 0);
//! blocks.packet(&Captured { interface, time, direction, packet, length, comment, missed });
//!
//! let options = r#"{ "queue": { "aqm": "drop-tail", "limit": "100p" }, "rate": "1Mbps" }"#;
//! let plan = Request::plan(options, None).unwrap();
//! let (report, _) = replay(blocks.bytes(), &plan, By::Simulator, false, &Watch::default()).unwrap();
//! assert_eq!((report.capture.packets, report.all.forwarded_packets), (1, 1));
//! ```

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
