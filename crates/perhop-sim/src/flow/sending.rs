//! The host that sends.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use std::collections::VecDeque;
use std::ops::Range;

use perhop_core::control::Message;
use perhop_core::meter::Verdict;
use perhop_core::units::UnitError;
use perhop_core::{Color, Context, Ecn, Header, Instant, Rng, ServiceLevel};

use super::marker::{Marker, MarkingPoint};
use crate::control::Post;
use crate::events::Schedule;
use crate::network::FlowSpec;
use crate::packet::{Marks, SimPacket};
use crate::transport::metadata::Metadata;
use crate::transport::{Ack, Sender, Source, Transmit};
use crate::wire::Wire;

/// Takes the packets that a host sends.
pub(crate) trait PacketSink {
    /// Takes a packet, at the time when it leaves the wire of its host.
    fn put(&mut self, packet: SimPacket);
}

/// A part of the time in which a sender acts without its driver's events.
pub(crate) struct ActingSpan<'a> {
    /// ACKs that have come to the host, each with its time, in order. No other comes before `limit`, nor
    /// before any of these.
    pub(crate) held: &'a mut VecDeque<(Instant, Ack)>,
    /// The sender's timers expire before this time.
    pub(crate) limit: Instant,
    /// Something else may happen to the sender from this time on.
    pub(crate) until: Instant,
}

/// The host that sends.
#[derive(Clone, Debug)]
pub(crate) struct SendingHost {
    /// What its packets have in common.
    pub(crate) template: SimPacket,
    marked_at: MarkingPoint,
    /// The wires from it and to it.
    outward: Wire,
    pub(crate) inward: Wire,
    /// Packets marked so far, by color.
    pub(super) marked: [u64; 3],
    /// The channel of its marker's feedback about OUT packets, if it has one.
    pub(crate) feedback: Option<u32>,
    rare: Box<Rare>,
}

/// State that few packets use.
#[derive(Clone, Debug)]
struct Rare {
    rng: Rng,
    /// Packets that the meter dropped, by color; they count as [marked](SendingHost::marked), too.
    policed: [u64; 3],
}

impl SendingHost {
    pub(super) fn new(
        spec: &FlowSpec,
        data: &Header,
        first_step: u32,
        marked_at: MarkingPoint,
        outward: Wire,
        rng: Rng,
    ) -> Self {
        Self {
            template: SimPacket::new(data, first_step, 0),
            marked_at,
            outward,
            inward: Wire::of_access(spec.access.as_ref()),
            marked: [0; 3],
            feedback: None,
            rare: Box::new(Rare { rng, policed: [0; 3] }),
        }
    }

    /// Returns the flow's number.
    pub(crate) fn number(&self) -> u32 {
        self.template.flow() as u32
    }

    /// Returns how many packets the meter dropped so far, by color.
    pub(crate) fn policed(&self) -> [u64; 3] {
        self.rare.policed
    }

    /// Returns whether packets are marked at the first router.
    pub(crate) fn is_marked_at_router(&self) -> bool {
        matches!(self.marked_at, MarkingPoint::FirstRouter(_) | MarkingPoint::Edge(_))
    }

    /// Returns whether packets are marked by a meter at the host.
    pub(crate) fn is_marked_at_host(&self) -> bool {
        matches!(self.marked_at, MarkingPoint::Host(_))
    }

    /// Gives a control message to the flow's own meter.
    pub(crate) fn on_meter_message(&mut self, message: &Message) {
        if let MarkingPoint::Host(marker) | MarkingPoint::FirstRouter(marker) = &mut self.marked_at {
            marker.on_message(message);
        }
    }

    /// Gives the flow this specification's profile: its own meter, and the contracted rate of its packets.
    ///
    /// # Errors
    /// The key that cannot change; nothing has changed then.
    pub(crate) fn retune(&mut self, spec: &FlowSpec, now: Instant) -> Result<(), UnitError> {
        self.marked_at.retune(spec, now)?;
        self.template = self.template.contracted(spec.service.map_or(ServiceLevel::NONE, ServiceLevel::of));
        Ok(())
    }

    /// Draws the time of the sender's next packet anew, where that is by chance.
    pub(super) fn redraw(&mut self, sender: &mut Sender, now: Instant) {
        sender.redraw(&mut Context { now, rng: &mut self.rare.rng });
    }

    /// Sends the full packets of a source's short way, marked, over the host's wire.
    #[inline(always)]
    fn send_full(
        &mut self,
        source: &impl Source,
        metadata: &mut Metadata,
        packets: Range<u32>,
        now: Instant,
        out: &mut impl PacketSink,
    ) {
        let ecn = source.short_ecn();
        for sequence in packets {
            if let Some(envelope) = source.envelope(now) {
                metadata.of_datagrams().send(sequence, envelope);
            }
            let mut packet = self.template.numbered(sequence).with_ecn(ecn);
            let size = packet.size();
            if let MarkingPoint::Host(marker) = &mut self.marked_at {
                let (verdict, marks) = marker.judge(packet.header(), now);
                self.marked[verdict.color.index()] += 1;
                if verdict.dropped.is_some() {
                    self.rare.policed[verdict.color.index()] += 1;
                    metadata.lose(sequence, true);
                    continue;
                }
                packet = packet.marked(verdict.color, marks);
            } else if let MarkingPoint::Nowhere = &self.marked_at {
                self.marked[packet.color().index()] += 1;
            }
            out.put(packet.due(self.outward.pass(size, now)));
        }
    }

    /// Gives an ACK to the source by its short way, and sends what that lets out. Returns when the source
    /// next has something to do by itself; `None`, having done nothing, if the short way is not open, or the
    /// marker's feedback may follow.
    #[inline(always)]
    pub(super) fn try_ack<S: Source>(
        &mut self,
        source: &mut S,
        metadata: &mut Metadata,
        ack: Ack,
        now: Instant,
        out: &mut impl PacketSink,
    ) -> Option<Instant> {
        debug_assert!(self.feedback.is_none());
        let packets = source.try_ack(ack, metadata, now)?;
        self.send_full(source, metadata, packets, now, out);
        Some(source.wake())
    }

    /// Gives an ACK to the source, and sends what it then may. Returns when the source next has something to
    /// do by itself.
    #[inline(always)]
    pub(super) fn take_ack<S: Source, Q: Schedule>(
        &mut self,
        source: &mut S,
        metadata: &mut Metadata,
        ack: Ack,
        now: Instant,
        post: &mut Post<'_, Q>,
        out: &mut impl PacketSink,
    ) -> Instant {
        if self.feedback.is_none()
            && let Some(wake) = self.try_ack(source, metadata, ack, now, out)
        {
            return wake;
        }
        source.on_ack(ack, metadata, now);
        self.send(source, metadata, now, post, out);
        source.wake()
    }

    /// Gives ACKs and timers to the source in order, and sends what it then may. Returns how many timers.
    #[inline(always)]
    pub(super) fn act<S: Source, Q: Schedule>(
        &mut self,
        source: &mut S,
        metadata: &mut Metadata,
        ActingSpan { held, limit, until }: ActingSpan<'_>,
        post: &mut Post<'_, Q>,
        out: &mut impl PacketSink,
    ) -> u64 {
        let (mut wake, mut timers) = (source.wake(), 0);
        loop {
            if let Some(&(at, ack)) = held.front()
                && at <= wake
                && at < until
                && (at < limit || at < wake)
            {
                held.pop_front();
                wake = self.take_ack(source, metadata, ack, at, post, out);
            } else if wake < limit && wake < until {
                let now = wake;
                if let Some(packets) = source.try_wake(&mut Context { now, rng: &mut self.rare.rng }) {
                    self.send_full(source, metadata, packets, now, out);
                } else {
                    source.on_wake(now);
                    self.send(source, metadata, now, post, out);
                }
                wake = source.wake();
                timers += 1;
            } else {
                return timers;
            }
        }
    }

    /// Sends whatever the source wants, marked, over the host's wire.
    #[inline(always)]
    pub(super) fn send<S: Source, Q: Schedule>(
        &mut self,
        source: &mut S,
        metadata: &mut Metadata,
        now: Instant,
        post: &mut Post<'_, Q>,
        out: &mut impl PacketSink,
    ) {
        while let Some(Transmit { sequence, size, ecn, reduced }) =
            source.transmit(&mut Context { now, rng: &mut self.rare.rng })
        {
            if let Some(envelope) = source.envelope(now) {
                metadata.of_datagrams().send(sequence, envelope);
            }
            let mut packet = self.template.numbered(sequence).sized(size);
            if ecn != Ecn::NotCapable {
                packet = packet.with_ecn(ecn).flagged(reduced);
            }
            if let Some(dscp) = source.codepoint() {
                packet = packet.with_codepoint(dscp);
            }
            match &mut self.marked_at {
                MarkingPoint::Nowhere => self.marked[packet.color().index()] += 1,
                MarkingPoint::Host(marker) => {
                    let verdict = marker.judge(packet.header(), now);
                    let Some(passed) = self.mark(source, metadata, packet, verdict, now, post) else {
                        continue;
                    };
                    packet = passed;
                }
                MarkingPoint::FirstRouter(_) | MarkingPoint::Edge(_) => {}
            }
            out.put(packet.due(self.outward.pass(size, now)));
        }
    }

    /// Returns the verdict on a packet at the first router, if a meter is there.
    #[inline]
    pub(super) fn judge_at_router(
        &mut self,
        header: Header,
        shared: &mut [Marker],
        now: Instant,
    ) -> Option<(Verdict, &'static Marks)> {
        match &mut self.marked_at {
            MarkingPoint::Edge(number) => Some(shared[*number].judge(header, now)),
            MarkingPoint::FirstRouter(marker) => Some(marker.judge(header, now)),
            MarkingPoint::Nowhere | MarkingPoint::Host(_) => None,
        }
    }

    /// Writes a meter's verdict into a packet, and gives the source feedback about it: the color, but not
    /// that the packet was dropped. `None` if it was.
    #[inline(always)]
    pub(super) fn mark<S: Source, Q: Schedule>(
        &mut self,
        source: &mut S,
        metadata: &mut Metadata,
        packet: SimPacket,
        (verdict, marks): (Verdict, &Marks),
        now: Instant,
        post: &mut Post<'_, Q>,
    ) -> Option<SimPacket> {
        let color = verdict.color;
        self.marked[color.index()] += 1;
        source.on_marked(packet.sequence(), color);
        if verdict.dropped.is_some() {
            self.rare.policed[color.index()] += 1;
            metadata.lose(packet.sequence(), true);
            return None;
        }
        if let Some(channel) = self.feedback
            && color != Color::Green
            && let Some(message) = post.send(channel as usize, Message::MarkedOut, now)
        {
            source.on_message(&message);
        }
        Some(packet.marked(color, marks))
    }
}
