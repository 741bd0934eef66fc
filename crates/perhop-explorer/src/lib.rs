//! The engine of the explorer (`explorer/`): a scenario as a running simulation, and what a page shows of it.
//!
//! A [`Session`] is what a worker of the page holds: a run, or two on the same seed, that go on as far as
//! asked, change, start again, and say why a packet was dropped. [`answer()`] takes requests as JSON, which
//! `explorer/src/protocol.ts` describes, and [`wasm`] exports it. The same code runs natively, so that tests
//! can hold the two against each other ([`fingerprint`]).
//!
//! ```
//! use perhop_core::{Duration, Instant};
//! use perhop_explorer::Session;
//!
//! let text = r#"
//!     duration = "1s"
//!     links.line = { from = "a", to = "b", rate = "10Mbps", delay = "5ms" }
//!     flows = [{ name = "download", from = "a", to = "b", transport = { tcp = "linux" } }]
//! "#;
//! let mut session = Session::open(text, 1).unwrap();
//! session.advance(Instant::ZERO + Duration::from_millis(500));
//! assert!(!session.is_done());
//! ```

#![expect(
    clippy::disallowed_macros,
    reason = "wasm.rs: a module belongs to one worker, and its exports have no other place for their state"
)]

mod answer;
mod bounds;
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
