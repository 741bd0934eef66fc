//! Flows: a host that sends, a host that receives, and what is counted of them.
//!
//! Both engines drive flows through these methods. A flow takes packets, ACKs, timers and messages at the
//! times at which they happen, and returns what it sends; an engine decides in which order it calls the
//! methods of different flows.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

mod contents;
mod counts;
mod marker;
mod member;
mod receiving;
mod replica;
mod results;
mod riding;
mod sending;
mod state;
#[cfg(test)]
mod tests;

use perhop_core::control::Message;
use perhop_core::{Color, Duration, Ecn, FlowId, Header, Instant, Rng, ServiceLevel};

use crate::control::Post;
use crate::events::Schedule;
use crate::network::{AccessSpec, FirstData, FlowSpec};
use crate::observer::Origin;
use crate::packet::{ACK, Content, SimPacket};
use crate::sampling::SampleTimes;
use crate::transport::metadata::Metadata;
use crate::transport::transit::TransitMeter;
use crate::transport::{Ack, Counted, Received, Sender, Source};
use crate::wire::Wire;

pub(crate) use counts::Counts;
use counts::PathCounts;
pub(crate) use marker::{Marker, MarkingPoint};
pub(crate) use receiving::ReceivingHost;
pub(crate) use replica::Ends;
use riding::Riding;
pub(crate) use sending::{ActingSpan, PacketSink, SendingHost};
pub use state::FlowState;

/// In place of a volume: more packets than any run delivers.
const UNLIMITED: u64 = QUIET - 1;
/// Added to the packets of a volume where it does not matter when each arrives: one comparison then sees the
/// end of the volume, and each arrival where it matters.
const QUIET: u64 = (1 << 63) - 1;

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) sender: Sender,
    pub(crate) sending: SendingHost,
    pub(crate) receiving: ReceivingHost,
    /// State that few packets use, stored elsewhere so that thousands of flows stay in the processor's cache.
    rare: Box<Rare>,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
struct Rare {
    /// Which flow it is, for an observer of the run.
    origin: Origin,
    /// The flow represents a population, and does nothing itself.
    is_population: bool,
    /// What packets carry besides their number.
    metadata: Metadata,
    /// Application events still to come: start, then stop.
    start: Instant,
    stop: Instant,
    /// When it began; `None` until then.
    started: Option<Instant>,
    /// When it stops or was stopped, if ever.
    stops: Instant,
    /// When a packet last arrived for the first time, of those that the receiving host
    /// [notes](ReceivingHost).
    last_arrival: Instant,
    /// What routers and the receiver count.
    path: PathCounts,
    /// A link on the route loses packets.
    is_lossy: bool,
    /// What it had counted when the warm-up ended; `None` until then.
    at_warmup: Option<Box<Counts>>,
    /// Bytes delivered by the last sample.
    at_last_sample: u64,
    /// The control of its path, and its place there.
    control: Option<(usize, usize)>,
    /// Packets of its volume, [`UNLIMITED`] without one; [`QUIET`] is added as in what is missing of it.
    volume: u64,
    /// The time that its volume takes on an idle path, if it has a volume, and when all of it had arrived.
    idle_time: Option<Duration>,
    completed: Option<Instant>,
    /// When the first data of the flow can arrive.
    first_data: FirstData,
    /// Whether the flow's profile, or a meter on its route, drops packets of some color.
    is_policed: bool,
    /// Whether the flow's packets are capable of ECN.
    is_capable: bool,
    /// Which of the flow's statistics its sender counts.
    counted: Counted,
    grants: Grants,
    /// The ACKs that ride on its data, if it is a direction of a connection.
    riding: Riding,
}

/// What the application of a flow has granted.
#[derive(Clone, Copy, Debug, Default)]
struct Grants {
    packets: u32,
    /// Nothing has been granted yet.
    awaits_first: bool,
    /// A packet without data comes first.
    opens: bool,
}

/// What a flow is made from, besides its specification.
#[derive(Clone, Debug)]
pub(crate) struct FlowPlace {
    /// The number of the flow.
    pub(crate) number: usize,
    /// The label of the flow's path, or 0.
    pub(crate) label: u32,
    /// The first steps of the flow's data and of its ACKs.
    pub(crate) first_steps: (u32, u32),
    /// The [idle time](crate::Network::idle_time) of its path.
    pub(crate) idle_time: Option<Duration>,
    /// When the flow's [first data](crate::Network::first_data) can arrive.
    pub(crate) first_data: FirstData,
    /// Whether the flow's profile, or a meter on its route, drops packets of some color.
    pub(crate) is_policed: bool,
    /// Whether a link on the flow's route loses packets.
    pub(crate) is_lossy: bool,
}

impl Flow {
    /// Makes the flow at time zero; its random streams derive from `seed`.
    pub(crate) fn new(spec: &FlowSpec, place: &FlowPlace, seed: u64, times: &SampleTimes) -> Self {
        let stream = |part| Rng::stream(seed, &format!("flows/{}/{part}", spec.name));
        let seed = stream("congestion").next_u64();
        let (sender, receiver) = spec.transport.ends(spec.volume, spec.reserved, spec.tcp_ecn, seed);
        let (data_size, ack_size) = spec.transport.packet_sizes();
        let id = FlowId(place.number as u32);
        let data = Header {
            color: spec.color,
            dscp: spec.dscp,
            ecn: spec.ecn,
            service: spec.service.map_or(ServiceLevel::NONE, ServiceLevel::of),
            label: place.label,
            ..Header::new(id, data_size)
        };
        let ack = Header { label: place.label, ..Header::new(id, ack_size) };
        let (first_data_step, first_ack_step) = place.first_steps;
        let marked_at = MarkingPoint::new(spec, || stream("marker"));
        let metadata =
            spec.transport.metadata(TransitMeter::new(times.measured()).with_play_out(spec.play_out));
        let rare = Rare::new(spec, metadata, &mut stream("start"), place);
        let outward = |access: Option<&AccessSpec>, part| match spec.dispatch_jitter {
            None => Wire::of_access(access),
            Some(most) => Wire::of_access(access).after(most, stream(part)),
        };
        let of_data = outward(spec.access.as_ref(), "dispatch");
        let of_acks = outward(spec.egress.as_ref(), "dispatch of acknowledgements");
        Self {
            sender,
            sending: SendingHost::new(spec, &data, first_data_step, marked_at, of_data, stream("transport")),
            receiving: ReceivingHost {
                receiver,
                missing: rare.volume,
                template: SimPacket::new(&ack, first_ack_step | ACK, 0),
                outward: of_acks,
                inward: Wire::of_access(spec.egress.as_ref()),
            },
            rare: Box::new(rare),
        }
    }

    /// Returns the size of a full packet of data, in bytes.
    #[inline]
    pub(crate) fn data_size(&self) -> u16 {
        self.sending.template.size()
    }

    /// Returns the smallest packet of the flow, in bytes.
    pub(crate) fn smallest_packet(&self) -> u16 {
        let data_size = self.sender.smallest().unwrap_or(self.data_size());
        match self.receiving.template.size() {
            0 => data_size,
            ack_size => data_size.min(ack_size),
        }
    }

    /// Returns the control of its path, and its place there.
    pub(crate) fn control(&self) -> Option<(usize, usize)> {
        self.rare.control
    }

    /// Sets the control of its path, and its place there.
    pub(crate) fn set_control(&mut self, control: usize, member: usize) {
        self.rare.control = Some((control, member));
    }

    /// Has the flow begin with the first grant of its application, and with nothing else to send.
    pub(crate) fn await_grants(&mut self) {
        self.sender.await_grants();
        self.rare.start = Instant::NEVER;
        self.rare.grants.awaits_first = true;
    }

    /// Takes so many bytes more from the application, in full packets. [`transmit`](Self::transmit) comes
    /// next.
    pub(crate) fn grant(&mut self, bytes: u64, now: Instant) {
        let payload = u64::from(self.data_size() - self.receiving.template.size());
        let packets = u32::try_from(bytes.div_ceil(payload)).unwrap_or(u32::MAX);
        self.rare.grants.packets = self.rare.grants.packets.saturating_add(packets);
        self.sender.grant(packets, now);
        self.begin(now);
    }

    /// Takes a datagram of this size on the wire from the application; [`transmit`](Self::transmit) follows.
    pub(crate) fn send_datagram(&mut self, size: u16, now: Instant) {
        self.begin(now);
        self.sender.send_datagram(size, now);
    }

    fn begin(&mut self, now: Instant) {
        if std::mem::take(&mut self.rare.grants.awaits_first) {
            self.rare.started = Some(now);
            self.sender.start(now);
        }
    }

    /// TCP: the packets of data that its application has granted, and those that have arrived in order.
    pub(crate) fn granted(&self) -> (u32, u32) {
        let opening = u32::from(self.rare.grants.opens);
        (self.rare.grants.packets, self.receiving.receiver.expected().saturating_sub(opening))
    }

    pub(crate) fn is_datagrams(&self) -> bool {
        self.rare.metadata.transit().is_some()
    }

    /// Returns how long the last datagram took that arrived.
    pub(crate) fn last_transit(&self) -> Option<Duration> {
        self.transit().and_then(TransitMeter::last)
    }

    /// Returns how long its packets took, where that is measured.
    pub(crate) fn transit(&self) -> Option<&TransitMeter> {
        self.rare.metadata.transit()
    }

    /// Returns the next time at which something happens to the flow by itself.
    pub(crate) fn wake(&self) -> Instant {
        self.sender.wake().min(self.next_command()).min(self.receiving.receiver.wake())
    }

    /// Returns when its application next starts or stops it.
    #[inline]
    pub(crate) fn next_command(&self) -> Instant {
        self.rare.start.min(self.rare.stop)
    }

    /// Draws the time of the sender's next packet anew, given that it has not come by now.
    pub(crate) fn redraw(&mut self, now: Instant) {
        self.sending.redraw(&mut self.sender, now);
    }

    /// Does what is due at the sender, or by its application. [`transmit`](Self::transmit) comes next.
    pub(crate) fn wake_sender(&mut self, now: Instant) {
        if now >= self.rare.start {
            let start = std::mem::replace(&mut self.rare.start, Instant::NEVER);
            if start < self.rare.stops {
                self.rare.started = Some(start);
                self.sender.start(now);
            }
        }
        if now >= self.rare.stop {
            self.rare.stop = Instant::NEVER;
            self.sender.stop();
        }
        self.sender.on_wake(now);
    }

    /// Returns the ACK that is due at the receiver, if one is.
    pub(crate) fn wake_receiver(&mut self, now: Instant) -> Option<SimPacket> {
        let late = self.receiving.receiver.on_wake(now, &mut self.rare.metadata)?;
        Some(self.receiving.acknowledge(late, now))
    }

    /// Sends whatever the sender may send now; `out` takes the packets.
    pub(crate) fn transmit<Q: Schedule>(
        &mut self,
        now: Instant,
        mut post: Post<'_, Q>,
        out: &mut impl PacketSink,
    ) {
        let Self { sender, sending, rare, .. } = self;
        match sender {
            Sender::Tcp(tcp) => sending.send(tcp, &mut rare.metadata, now, &mut post, out),
            other => sending.send(other, &mut rare.metadata, now, &mut post, out),
        }
    }

    /// Lets the sender act by itself: it takes ACKs that have come to it, and its timers. `out` takes the
    /// packets. Returns how many timers expired.
    pub(crate) fn act<Q: Schedule>(
        &mut self,
        turn: ActingSpan<'_>,
        mut post: Post<'_, Q>,
        out: &mut impl PacketSink,
    ) -> u64 {
        let Self { sender, sending, rare, .. } = self;
        match sender {
            Sender::Tcp(tcp) => sending.act(tcp, &mut rare.metadata, turn, &mut post, out),
            Sender::Udp(udp) => sending.act(udp, &mut rare.metadata, turn, &mut post, out),
            Sender::Rap(rap) => sending.act(rap, &mut rare.metadata, turn, &mut post, out),
            Sender::Tfrc(tfrc) => sending.act(tfrc, &mut rare.metadata, turn, &mut post, out),
        }
    }

    /// Gives an ACK to the sender, which sends what it then may; `out` takes the packets. Returns when the
    /// sender next has something to do by itself.
    #[inline(always)]
    pub(crate) fn acknowledge<Q: Schedule>(
        &mut self,
        ack: Ack,
        now: Instant,
        mut post: Post<'_, Q>,
        out: &mut impl PacketSink,
    ) -> Instant {
        let Self { sender, sending, rare, .. } = self;
        match sender {
            Sender::Tcp(tcp) => sending.take_ack(tcp, &mut rare.metadata, ack, now, &mut post, out),
            other => sending.take_ack(other, &mut rare.metadata, ack, now, &mut post, out),
        }
    }

    /// Gives an ACK to the sender by its short way. Returns when the sender next has something to do by
    /// itself; `None`, having done nothing, if the short way is not open.
    #[inline(always)]
    pub(crate) fn try_ack(&mut self, ack: Ack, now: Instant, out: &mut impl PacketSink) -> Option<Instant> {
        let Self { sender, sending, rare, .. } = self;
        match sender {
            Sender::Tcp(tcp) => sending.try_ack(tcp, &mut rare.metadata, ack, now, out),
            other => sending.try_ack(other, &mut rare.metadata, ack, now, out),
        }
    }

    /// Gives a control message to the sender.
    pub(crate) fn on_message(&mut self, message: &Message) {
        self.sender.on_message(message);
    }

    /// Gives a data packet to the receiver; returns its ACK.
    #[inline]
    pub(crate) fn receive(&mut self, content: Content, now: Instant) -> Option<Ack> {
        let Received { first, ack } = self.receiving.receiver.on_data(content, now, &mut self.rare.metadata);
        if first && content.size() == self.data_size() && content.sequence() > 0 {
            self.deliver(now);
        } else if first && !(self.rare.grants.opens && content.sequence() == 0) {
            // A smaller packet of data, or the first; one that opens a connection carries none.
            self.rare.path.short += u64::from(self.data_size() - content.size());
            self.deliver(now);
        } else if !first {
            self.rare.path.repeated += 1;
        }
        if content.ecn() == Ecn::Congested {
            self.rare.path.congested += 1;
        }
        ack
    }

    /// Gives a data packet to the receiver by its short way; returns what it makes of it. `None`, having done
    /// nothing, if the short way is not open, or the packet is not a full one without a mark.
    #[inline(always)]
    pub(crate) fn try_data(&mut self, content: Content, now: Instant) -> Option<Received> {
        if content.size() != self.data_size() || content.ecn() == Ecn::Congested {
            return None;
        }
        let received = self.receiving.receiver.try_data(content, now, &mut self.rare.metadata)?;
        self.deliver(now);
        Some(received)
    }

    /// Counts a packet of data that reached the receiver for the first time.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, now: Instant) {
        self.receiving.missing -= 1;
        if self.receiving.missing <= QUIET {
            self.note_arrival(now);
        }
    }

    /// Notes when all of the volume has arrived, or a packet that may turn out to be the last.
    #[cold]
    fn note_arrival(&mut self, now: Instant) {
        self.rare.last_arrival = now;
        if self.receiving.missing.is_multiple_of(QUIET) {
            self.rare.completed = Some(now);
        }
    }

    /// Marks a packet at the first router, by a shared meter or the flow's own; `None` if the meter drops it.
    pub(crate) fn mark_at_router<Q: Schedule>(
        &mut self,
        packet: SimPacket,
        shared: &mut [Marker],
        mut post: Post<'_, Q>,
    ) -> Option<SimPacket> {
        let now = packet.at();
        let Self { sender, sending, rare, .. } = self;
        let Some(verdict) = sending.judge_at_router(packet.header(), shared, now) else {
            return Some(packet);
        };
        sending.mark(sender, &mut rare.metadata, packet, verdict, now, &mut post)
    }

    /// Returns the segment that an ACK of this number, which is in transit, asks for next.
    pub(crate) fn expected_by(&self, number: u32) -> u32 {
        self.rare.metadata.expected(number)
    }

    /// Counts a data packet or an ACK that was dropped.
    pub(crate) fn lose(&mut self, packet: SimPacket) {
        let is_data = !packet.is_ack();
        self.rare.path.dropped[packet.color().index()] += u64::from(is_data);
        self.rare.metadata.lose(packet.sequence(), is_data);
    }

    /// Counts a data packet or an ACK that a meter of a link dropped, to which it gave this color.
    pub(crate) fn police(&mut self, packet: SimPacket, color: Color) {
        let is_data = !packet.is_ack();
        self.rare.path.policed_at_links[color.index()] += u64::from(is_data);
        self.rare.metadata.lose(packet.sequence(), is_data);
    }

    /// Counts a data packet or an ACK that a link lost after it had sent it.
    pub(crate) fn lose_in_transit(&mut self, packet: SimPacket) {
        let is_data = !packet.is_ack();
        self.rare.path.lost += u64::from(is_data);
        self.rare.metadata.lose(packet.sequence(), is_data);
    }

    /// Forgets what a data packet carries that would reach the receiver after the end of the run.
    #[inline(never)]
    pub(crate) fn discard(&mut self, content: Content) {
        self.rare.metadata.lose(content.sequence(), true);
    }
}

impl Rare {
    fn new(spec: &FlowSpec, metadata: Metadata, rng: &mut Rng, place: &FlowPlace) -> Self {
        let (first, last) = spec.start;
        let volume = spec.volume.map_or(UNLIMITED, |volume| spec.transport.packets_of(volume));
        let is_quiet = spec.stop.is_none() && !spec.transport.is_finite(spec.volume);
        let number = place.number as u32;
        Self {
            origin: Origin { spec: number, member: None, serial: number },
            is_population: spec.population.is_some(),
            metadata,
            start: match spec.population {
                Some(_) => Instant::NEVER,
                None => first + Duration::from_nanos(rng.up_to(last.since(first).as_nanos())),
            },
            stop: spec.stop.unwrap_or(Instant::NEVER),
            started: None,
            stops: spec.stop.unwrap_or(Instant::NEVER),
            last_arrival: Instant::ZERO,
            path: PathCounts::default(),
            is_lossy: place.is_lossy,
            at_warmup: None,
            at_last_sample: 0,
            control: None,
            volume: if is_quiet { volume + QUIET } else { volume },
            idle_time: place.idle_time,
            completed: None,
            first_data: place.first_data,
            is_policed: place.is_policed,
            is_capable: spec.ecn.is_capable() || !spec.tcp_ecn.is_off(),
            counted: spec.transport.counted(spec.tcp_ecn),
            grants: Grants { opens: spec.transport.opens(), ..Grants::default() },
            riding: Riding::default(),
        }
    }
}
