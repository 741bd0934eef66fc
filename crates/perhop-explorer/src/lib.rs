//! The engine of the explorer (`explorer/`): a scenario as a running simulation, and what a page shows of it.
//!
//! A [`Session`] is what a worker of the page holds: a run, or two on the same seed, that go on as far as
//! asked, change, start again, and say why a packet was dropped. [`answer`] takes requests as JSON, which
//! `explorer/src/protocol.ts` describes, and [`wasm`] exports it. The same code runs natively, so that tests
//! can hold the two against each other ([`fingerprint`]).

#![expect(
    clippy::disallowed_macros,
    reason = "wasm.rs: a module belongs to one worker, and its exports have no other place for their state"
)]

mod answer;
mod controls;
mod default_value;
mod describe;
mod edit;
mod explain;
mod frame;
mod measure;
mod problem;
mod run;
mod session;
pub mod wasm;
mod witness;

pub use answer::{Answer, answer};
pub use measure::{fingerprint, fingerprint_of};
pub use problem::Problem;
pub use session::Session;
