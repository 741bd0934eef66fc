//! All integration tests in one program: each program of its own would compile and link the blocks once more.

#![expect(clippy::disallowed_macros, reason = "each test counts the allocations of its own thread")]

#[path = "common/allocations.rs"]
mod allocations;
#[path = "common/blocks.rs"]
mod blocks;
#[path = "common/ordinary.rs"]
mod ordinary;
#[path = "common/parameters.rs"]
mod parameters;

mod conformance;
mod declarations;
mod hierarchy;
mod ns3_cases;
mod probes;
mod reading;
mod retuning;
mod shares;
