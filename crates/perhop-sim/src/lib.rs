//! The packet-level simulator of perhop.
//!
//! It drives the blocks of `perhop-core` in virtual time: hosts with transports, links with queues, any
//! topology with static shortest-path routes. A run is a pure function of its [`Network`] and seed: no clock,
//! no global state, no I/O. Developers begin with `how_a_packet_travels` (`make book`), then read the
//! reference engine.
//!
//! ```
//! use perhop_sim::{Network, Simulation};
//! # fn network() -> Network { Network::new(perhop_core::Duration::from_secs(1)) }
//! let mut simulation = Simulation::new(&network(), 1).expect("every flow has a route");
//! simulation.run_to_end();
//! let outcome = simulation.finish().expect("packets are conserved");
//! assert_eq!(outcome.flows.len(), 0);
//! ```

pub mod application;
mod choice;
mod control;
mod engine;
mod events;
mod flow;
mod how_a_packet_travels;
mod measure;
pub mod measures;
mod network;
pub mod observer;
mod outcome;
mod packet;
mod probe;
mod routing;
mod sampling;
pub mod splitting;
mod timed;
pub mod transport;
mod watch;
mod window_control;
mod wire;
pub mod workload;

pub use choice::{Engine, EngineUsed, Refusal};
pub use engine::{
    Division, Failure, LINKS_PER_THREAD, OneThread, Refused, Schedule, Simulation, Stepping, Unseen,
};
pub use flow::FlowState;
pub use network::{
    AccessSpec, ApplicationSpec, Connection, FlowSpec, InFlight, LinkSpec, Marking, Network, NoRoute, NodeId,
    PathSpec, SharedMeter, TransportSpec,
};
pub use outcome::{
    ApplicationOutcome, Completion, FlowOutcome, FlowRecord, Outcome, PopulationOutcome, rate,
};
pub use probe::{ClassSeries, QueueSeries, Series};
pub use routing::Routes;
pub use watch::Watch;
pub use workload::Workload;
