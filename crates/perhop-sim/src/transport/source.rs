//! What hosts ask of any sender.

use std::ops::{Deref, DerefMut, Range};

use ambassador::{delegatable_trait, delegate_to_remote_methods};
use perhop_core::control::Message;
use perhop_core::{Color, Context, Dscp, Ecn, Instant};

use super::limits::LimitTimes;
use super::metadata::{Envelope, Metadata};
use super::{Ack, SenderStatistics, Transmit};

/// The calls to a sender. After each of them that changes it, its host [transmits](Self::transmit) until
/// there is nothing more to send.
///
/// A sender may have a short way to take an event: one that returns `None`, having done nothing, unless all
/// that follows are some full packets of new data. A host may try it first.
#[delegatable_trait]
pub trait Source {
    /// Begins to send.
    fn start(&mut self, now: Instant);
    /// Learns that the application has nothing more to send.
    fn stop(&mut self);
    /// Returns when the sender next has something to do by itself.
    fn wake(&self) -> Instant;
    /// Does what is due by now: the time of [`wake`](Self::wake) has come.
    fn on_wake(&mut self, now: Instant);
    /// Takes an acknowledgement.
    fn on_ack(&mut self, ack: Ack, metadata: &mut Metadata, now: Instant);
    /// Returns the next packet to put on the wire now, if there is one.
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit>;
    /// Returns what was counted.
    fn statistics(&self) -> SenderStatistics;

    /// Takes an acknowledgement by the short way; returns the packets to put on the wire.
    #[inline]
    fn try_ack(&mut self, _ack: Ack, _metadata: &mut Metadata, _now: Instant) -> Option<Range<u32>> {
        None
    }
    /// Does what is due by now by the short way; returns the packets to put on the wire.
    #[inline]
    fn try_wake(&mut self, _cx: &mut Context<'_>) -> Option<Range<u32>> {
        None
    }
    /// Returns the ECN field of the packets that a short way sends, if their flow gives them none.
    #[inline]
    fn short_ecn(&self) -> Ecn {
        Ecn::NotCapable
    }
    /// Returns what each packet carries that is sent now, besides its number.
    #[inline]
    fn envelope(&self, _now: Instant) -> Option<Envelope> {
        None
    }
    /// Returns the codepoint of the packet that was handed over last, if that is not its flow's.
    fn codepoint(&self) -> Option<Dscp> {
        None
    }
    /// Notes the color that the marker gave to a packet.
    fn on_marked(&mut self, _sequence: u32, _color: Color) {}
    /// Takes a control message; one that the sender has no use for changes nothing.
    fn on_message(&mut self, _message: &Message) {}

    /// Gives the last packet of the volume this size in place of a full one; RAP and TFRC keep full ones.
    fn set_last(&mut self, _size: u16) {}
    /// TCP: returns one past the last segment of the volume, and by how many bytes that is shorter than a
    /// full one.
    fn last(&self) -> (u32, u16) {
        (0, 0)
    }
    /// Has the sender begin with nothing to send but what its application [grants](Self::grant).
    fn await_grants(&mut self) {}
    /// UDP: takes a datagram of this size on the wire from the application, to be sent now.
    fn send_datagram(&mut self, _size: u16, _now: Instant) {}
    /// TCP: takes so many full packets more from the application.
    fn grant(&mut self, _packets: u32, _now: Instant) {}

    /// Returns when a source of datagrams sent the last packet that it has; `None` before, and for one
    /// without an end.
    fn finished(&self) -> Option<Instant> {
        None
    }
    /// Returns the congestion window in packets, if the sender has one.
    fn window(&self) -> Option<f64> {
        None
    }
    /// TCP: returns whether there is something to send, or to be acknowledged.
    fn is_sending(&self) -> bool {
        false
    }
    /// Returns the smoothed round-trip time in seconds, if the sender has one yet.
    fn smoothed_rtt(&self) -> Option<f64> {
        None
    }
    /// TCP: returns how many segments were acknowledged in order.
    fn acknowledged(&self) -> u64 {
        0
    }
    /// TCP: returns one past the highest segment ever sent.
    fn sent_end(&self) -> u32 {
        0
    }
    /// Returns the smallest packet of a trace, in bytes, if the source sends one.
    fn smallest(&self) -> Option<u16> {
        None
    }
    /// TCP: returns the sender's buffer in bytes, if it is limited.
    fn buffer(&self) -> Option<u64> {
        None
    }
    /// TCP: returns the receiver's window in bytes.
    fn receiver_window(&self) -> Option<u64> {
        None
    }
    /// TCP: returns how long what kept the sender from sending more, by now.
    fn limits(&self, _now: Instant) -> LimitTimes {
        LimitTimes::default()
    }
}

// A sender in a box acts as that sender.
#[delegate_to_remote_methods]
#[delegate(Source, target_ref = "deref", target_mut = "deref_mut")]
impl<S: Source> Box<S> {
    fn deref(&self) -> &S;
    fn deref_mut(&mut self) -> &mut S;
}
