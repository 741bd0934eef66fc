//! perhop's own TCP on a real wire: the simulator's sender and receiver behind real segments.
//!
//! A [`Connection`] is a state machine without I/O and without a clock: it takes [segments](Segment) and
//! times, and writes packets. The state machines of the simulator ([`perhop_sim::transport::tcp`]) decide
//! without a change when it sends and acknowledges. This crate adds what a wire needs: the handshake with its
//! options, bytes and checksums, windows, the closing of a connection, and protection against forged segments
//! (RFC 9293, 7323, 2018, 2883, 3168, 5961, 9768).

mod connection;
mod content;
mod icmp;
mod incoming;
mod outgoing;
mod segment;

pub use connection::{Connection, Ended, Packet, Setup};
pub use content::pattern;
pub use icmp::{TooBig, read_too_big};
pub use segment::{Flags, MOST_RANGES, NoSegment, Options, Ranges, Segment};
