//! The two engines, and the choice between them.
//!
//! The [reference engine](mod@reference) is the one to read first. The [batched engine](batched) gives the
//! same results faster, for networks that it accepts. Both share hosts, wires, channels and measurements.
//! Transports offer short cuts for what most packets need; the batched engine uses them.

pub(crate) mod batched;
mod failure;
mod parallel;
mod populations;
pub(crate) mod reference;
mod retuning;
pub(crate) mod setup;
mod simulation;
mod stepping;
mod users;

pub use failure::{Failure, LINKS_PER_THREAD, OneThread};
pub use parallel::{Division, Schedule};
pub use simulation::Simulation;
pub use stepping::{Refused, Stepping, Unseen};

#[cfg(test)]
mod tests;
