//! A receiver of any transport.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::{Ecn, Instant};

use super::metadata::{Envelope, Feedback, Metadata};
use super::tcp::{Signals, TcpReceiver};
use super::tfrc::TfrcReceiver;
use super::{Ack, Received, RidingAck};
use crate::packet::Content;

/// A receiver of any transport.
#[derive(Clone, Debug)]
pub enum Receiver {
    /// TCP's.
    Tcp(TcpReceiver),
    /// UDP's, which sends nothing.
    Sink,
    /// RAP's, which acknowledges each packet with its own number.
    Echo,
    /// TFRC's, which reports what it received and lost.
    Tfrc(Box<TfrcReceiver>),
}

impl Receiver {
    /// Takes a data packet.
    #[inline]
    pub fn on_data(&mut self, content: Content, now: Instant, metadata: &mut Metadata) -> Received {
        match self {
            Self::Tcp(tcp) => {
                let signals = Signals { marked: content.ecn() == Ecn::Congested, reduced: content.flag() };
                tcp.on_data(content.sequence(), signals, now, metadata)
            }
            _ => self.receive_datagram(content, now, metadata),
        }
    }

    /// Takes a full data packet without a mark by the short way. Returns its ACK, to be sent at once, or none
    /// if one waits or the receiver sends none; `None`, having done nothing, if the way is not open.
    #[inline(always)]
    pub(crate) fn try_data(
        &mut self,
        content: Content,
        now: Instant,
        metadata: &mut Metadata,
    ) -> Option<Received> {
        match self {
            Self::Tcp(tcp) => tcp.try_data(content.sequence(), now, metadata),
            _ => self.try_datagram(content, now, metadata),
        }
    }

    #[inline(never)] // It keeps TCP's short.
    fn try_datagram(&mut self, content: Content, now: Instant, metadata: &mut Metadata) -> Option<Received> {
        let is_open = now < self.wake(); // Else a report comes first.
        is_open.then(|| self.receive_datagram(content, now, metadata))
    }

    #[inline(never)]
    fn receive_datagram(&mut self, content: Content, now: Instant, metadata: &mut Metadata) -> Received {
        let (datagrams, number) = (metadata.of_datagrams(), content.sequence());
        let envelope = datagrams.take(number, now);
        let feedback = envelope.and_then(|envelope| self.on_datagram(number, envelope, now));
        Received { first: true, ack: feedback.map(|feedback| Ack::plain(datagrams.post(feedback))) }
    }

    /// Takes a data packet with what it carries, unless it is TCP; returns the feedback to send now.
    pub fn on_datagram(&mut self, sequence: u32, envelope: Envelope, arrival: Instant) -> Option<Feedback> {
        match self {
            Self::Tcp(_) | Self::Sink => None,
            Self::Echo => Some(Feedback::Echo(sequence)),
            Self::Tfrc(tfrc) => tfrc.on_data(sequence, envelope, arrival).map(Feedback::Report),
        }
    }

    /// Returns the acknowledgement that is due by `now`, if one is.
    pub fn on_wake(&mut self, now: Instant, metadata: &mut Metadata) -> Option<Ack> {
        if let Self::Tcp(tcp) = self {
            return tcp.on_wake(now, metadata);
        }
        let feedback = self.late_feedback(now)?;
        Some(Ack::plain(metadata.of_datagrams().post(feedback)))
    }

    /// Returns the feedback that is due by now without a packet having come, unless it is TCP.
    pub fn late_feedback(&mut self, now: Instant) -> Option<Feedback> {
        match self {
            Self::Tcp(_) | Self::Sink | Self::Echo => None,
            Self::Tfrc(tfrc) => tfrc.on_wake(now).map(Feedback::Report),
        }
    }

    /// Returns when an acknowledgement is due that did not follow a packet at once.
    #[inline(always)]
    pub fn wake(&self) -> Instant {
        match self {
            Self::Tcp(tcp) => tcp.wake(),
            Self::Sink | Self::Echo => Instant::NEVER,
            Self::Tfrc(tfrc) => tfrc.wake(),
        }
    }

    /// TCP: returns the ACK that data of the other direction carries; one that waits waits no more.
    pub(crate) fn ride(&mut self) -> Option<RidingAck> {
        if let Self::Tcp(tcp) = self { Some(tcp.ride()) } else { None }
    }

    /// TCP: returns whether nothing has come beyond a gap.
    pub(crate) fn is_in_order(&self) -> bool {
        if let Self::Tcp(tcp) = self { tcp.is_in_order() } else { true }
    }

    /// TCP: returns the first segment that has not arrived.
    pub(crate) fn expected(&self) -> u32 {
        if let Self::Tcp(tcp) = self { tcp.expected() } else { 0 }
    }
}
