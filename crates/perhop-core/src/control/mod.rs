//! Control messages between blocks on different nodes.
//!
//! A driver carries them: the simulator after a delay, such as that of propagation between the two nodes, a
//! router in a packet. A message that is lost or late changes nothing: its receiver goes on with what it
//! heard last.

mod shares;
mod windows;

pub use shares::{Reading, shares};
pub use windows::{Decision, SampleInterval, Steering, WindowControl, WindowSource};

/// A message to a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message {
    /// To a marker: mark packets IN with this probability (Bouras & Sevasti, equation 3).
    Share(f64),
    /// To a sender: the marker has marked one of its packets OUT (Yeom & Reddy 1999, section 3.1).
    MarkedOut,
    /// To the queues of a path: the sum of its flows' windows, in packets (Bouras & Sevasti, section 4). Of
    /// two messages of a path the one with the higher number is the newer.
    Windows {
        /// Label of the path.
        path: u32,
        /// Number of the message on its path.
        number: u64,
        /// Sum of the windows, in packets.
        packets: f64,
    },
}
