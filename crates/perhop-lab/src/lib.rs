//! The laboratory: a scenario on real packets.
//!
//! Two hosts, each in a network namespace of its own, talk to each other through a data plane
//! ([`perhop_live`]) that is everything between them: access links, meters, queues, propagation delays. TCP
//! is the kernel's; UDP, RAP and TFRC are the simulator's senders over real datagrams. What is measured comes
//! as the simulator's [`Outcome`], so that whatever reads one reads the other. Where all flows are perhop's
//! own TCP, [`run_in_virtual_time`] has the same segments and the same data plane without the kernel.
//!
//! Nothing has a name outside: namespaces and devices belong to this process alone, and the kernel removes
//! them with it, however it ends.
//!
//! ```no_run
//! use perhop_lab::{Options, run};
//! use perhop_scenario::{Driver, NoFiles, Scenario};
//! use std::sync::atomic::AtomicBool;
//!
//! let text = r#"
//!     duration = "10s"
//!     links.line = { from = "a", to = "b", rate = "10Mbps", delay = "5ms" }
//!     flows = [{ name = "download", from = "a", to = "b", transport = { tcp = "linux" } }]
//! "#;
//! let scenario = Scenario::from_toml_for(text, "example", Driver::RealPackets, &NoFiles).unwrap();
//! let options = Options { seed: 1, real_time: false, watch: None, die_with_parent: false, joint: None };
//! let run = run(&scenario, options, &AtomicBool::new(false), &mut |_| {}).unwrap();
//! assert!(run.report.is_valid() && run.outcome.flows[0].throughput_bps < 10e6);
//! ```
#![cfg(target_os = "linux")]

mod error;
mod hosts;
mod joint;
mod kernel_queue;
mod letter;
mod observer;
mod outcome;
mod report;
mod run;
mod sandbox;
mod setting;
mod sockets;
mod system;
#[cfg(test)]
mod tests;
mod topology;
mod virtual_time;

pub use error::{LabError, Missing};
pub use hosts::Joint;
pub use kernel_queue::{Departure, LEAST_SIZE, Offered, Passage, Passed, pass};
pub use outcome::Run;
pub use report::{Drops, Glimpse, GlimpseOfLink, LabReport, Late};
pub use run::{Options, check, run};
pub use sandbox::probe;
pub use virtual_time::run_in_virtual_time;

#[doc(no_inline)]
pub use perhop_sim::Outcome;
