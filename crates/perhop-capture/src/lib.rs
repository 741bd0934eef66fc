//! Capture files: what a router writes of real packets, and what an observer writes of those of a simulated run.
//!
//! Nothing here opens a file: bytes go to any [`std::io::Write`].

pub mod events;
pub mod headers;
pub mod packets;
pub mod pcapng;

pub use events::EventLog;
pub use packets::{PacketCapture, Setup};
