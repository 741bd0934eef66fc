//! The reference engine: discrete-event simulation in the order of time. Read this first.
//!
//! Every hop of a packet is an event, and every event happens at its own time: no host or link acts ahead of
//! the clock. Any block and any transport works here. The [batched engine](super::batched) is faster and
//! gives the same results; tests compare the two.
//!
//! Simultaneous events happen in this order, to which both engines keep: packets reach hosts (and the wires
//! to them), timers of flows expire, flows of populations begin, users of applications wake, links are served
//! and then take packets, control messages arrive, window controls sample, the probe samples. Flows, links
//! and controls follow the order of their numbers; packets that of their flows, then of the steps of their
//! routes.

mod applications;
mod changes;
mod engine;
mod hosts;
mod link;
mod link_events;
mod members;
mod pending;
mod tally;
mod tap;
mod timers;

pub(super) use engine::Reference;
#[cfg(test)]
pub(crate) use pending::Pending;
pub(crate) use tally::{Fate, Passed};
