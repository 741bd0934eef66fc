//! Transports: senders and receivers as pure state machines. They take events and return what to transmit;
//! the engine owns time, packets and routes.

pub mod limits;
pub mod metadata;
mod pacing;
pub mod packet_trace;
mod play_out;
pub mod rap;
mod receiver;
mod sender;
mod source;
mod statistics;
pub mod tcp;
#[cfg(test)]
mod tests;
pub mod tfrc;
pub mod transit;
pub mod udp;

use perhop_core::Ecn;

use crate::packet::Content;

pub use receiver::Receiver;
pub use sender::Sender;
pub use source::Source;
pub use statistics::{Counted, SenderStatistics};

/// What a sender wants on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The segment's number.
    pub sequence: u32,
    /// Size on the wire in bytes.
    pub size: u16,
    /// The ECN field of the packet: whether queues may mark it in place of dropping it.
    pub ecn: Ecn,
    /// The packet reports that the window was reduced (CWR).
    pub reduced: bool,
}

impl Transmit {
    /// Makes a packet that says nothing of congestion.
    pub const fn plain(sequence: u32, size: u16) -> Self {
        Self { sequence, size, ecn: Ecn::NotCapable, reduced: false }
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// TCP without selective acknowledgements: the segment expected next; else the number of its content.
    pub number: u32,
    /// ECN-Echo: a marked packet has come (RFC 3168, section 6.1.3).
    pub ece: bool,
}

impl Ack {
    /// Makes an acknowledgement that says nothing of congestion.
    pub const fn plain(number: u32) -> Self {
        Self { number, ece: false }
    }

    /// Returns the acknowledgement that a packet carries.
    pub(crate) fn of(content: Content) -> Self {
        Self { number: content.sequence(), ece: content.flag() }
    }
}

/// What a receiver makes of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Whether the packet arrives for the first time.
    pub first: bool,
    /// The acknowledgement to send now.
    pub ack: Option<Ack>,
}

/// The ACK that a segment carries of the data of its connection's other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RidingAck {
    /// Every segment below has arrived.
    pub(crate) expected: u32,
    /// ECN-Echo.
    pub(crate) ece: bool,
    /// Marked packets that had come by then, if the receiver counts them.
    pub(crate) marked: u32,
}
