//! Flows: a host that sends, a host that receives, and what is counted of them.
//!
//! Both engines drive flows through these methods. A flow takes packets, ACKs, timers and messages at the times at which they
//! happen, and returns what it sends; an engine decides in which order it calls the methods of different flows.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

mod contents;
mod counts;
mod marker;
mod member;
mod receiving;
mod replica;
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
use crate::outcome::{Completion, FlowOutcome, rate};
use crate::packet::{Content, SimPacket};
use crate::probe::Series;
use crate::sampling::SampleTimes;
use crate::transport::metadata::Metadata;
use crate::transport::transit::TransitMeter;
use crate::transport::{Ack, CarryingSender, Counted, DelayedAck, Received, Receiver, Sender};
use crate::wire::Wire;

pub(crate) use counts::Counts;
pub(crate) use marker::{Marker, MarkingPoint};
pub(crate) use receiving::ReceivingHost;
pub(crate) use replica::Ends;
use riding::Riding;
use sending::with_source;
pub(crate) use sending::{PacketSink, SendingHost, Turn};
pub use state::FlowState;

/// In place of a volume: more packets than any run delivers.
const UNLIMITED: u64 = QUIET - 1;
/// Added to the packets of a volume where it does not matter when each arrives: one comparison then sees the end of the volume, and
/// each arrival where it matters.
const QUIET: u64 = 1 << 63;

/// One flow.
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
    /// It stands for a population, and does nothing itself.
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
    /// When a packet last arrived for the first time, of those that the receiving host [notes](ReceivingHost).
    last_arrival: Instant,
    /// Data packets dropped, by color.
    dropped: [u64; 3],
    /// Data packets that the meters of links dropped, by color.
    policed_at_links: [u64; 3],
    /// Data packets that links lost after they had sent them; a link on the route loses packets.
    lost: u64,
    is_lossy: bool,
    at_warmup: Counts,
    /// Bytes delivered by the last sample.
    at_last_sample: u64,
    /// The control of its path, and its place there.
    control: Option<(usize, usize)>,
    /// Packets of its volume, [`UNLIMITED`] without one; [`QUIET`] is added as in what is missing of it.
    volume: u64,
    /// The time that its volume takes on an idle path, if it has a volume, and when all of it had arrived.
    idle_time: Option<Duration>,
    completed: Option<Instant>,
    /// When its first data can arrive.
    first_data: FirstData,
    /// Its profile, or a meter on its route, drops packets of some color.
    is_policed: bool,
    /// Its packets are capable of ECN, and those that came to the receiver marked (Congestion Experienced).
    is_capable: bool,
    /// Which of its statistics its sender counts.
    counted: Counted,
    congested: u64,
    /// Packets of data that reached the receiver again.
    repeated: u64,
    /// Bytes by which packets that arrived were shorter than the flow's full packets.
    short: u64,
    /// What its application has granted.
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
pub(crate) struct Place {
    /// Its number.
    pub(crate) number: usize,
    /// The label of its path, or 0.
    pub(crate) label: u32,
    /// The first steps of its data and of its ACKs.
    pub(crate) first_steps: (u32, u32),
    /// See [`Network::idle_time`](crate::Network::idle_time).
    pub(crate) idle_time: Option<Duration>,
    /// See [`Network::first_data`](crate::Network::first_data).
    pub(crate) first_data: FirstData,
    /// Its profile, or a meter on its route, drops packets of some color.
    pub(crate) is_policed: bool,
    /// A link on its route loses packets.
    pub(crate) is_lossy: bool,
}

impl Flow {
    /// The flow at time zero; its random streams derive from `seed`.
    pub(crate) fn new(spec: &FlowSpec, place: &Place, seed: u64, times: &SampleTimes) -> Self {
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
            receiving: ReceivingHost::new(spec, receiver, &ack, first_ack_step, of_acks, rare.volume),
            rare: Box::new(rare),
        }
    }

    /// A full packet of data, in bytes.
    #[inline(always)]
    pub(crate) fn data_size(&self) -> u16 {
        self.sending.template().size()
    }

    /// The smallest packet of the flow, in bytes.
    pub(crate) fn smallest_packet(&self) -> u16 {
        let data_size = self.sender.smallest().unwrap_or(self.data_size());
        match self.receiving.template().size() {
            0 => data_size,
            ack_size => data_size.min(ack_size),
        }
    }

    /// The control of its path, and its place there.
    pub(crate) fn control(&self) -> Option<(usize, usize)> {
        self.rare.control
    }

    /// Sets the control of its path, and its place there.
    pub(crate) fn set_control(&mut self, control: usize, member: usize) {
        self.rare.control = Some((control, member));
    }

    /// From the start on, it has only what its application grants; it begins with the first grant.
    pub(crate) fn await_grants(&mut self) {
        self.sender.await_grants();
        self.rare.start = Instant::NEVER;
        self.rare.grants.awaits_first = true;
    }

    /// The application has so many bytes more to send, in full packets. [`transmit`](Self::transmit) comes next.
    pub(crate) fn grant(&mut self, bytes: u64, now: Instant) {
        let payload = u64::from(self.data_size() - self.receiving.template().size());
        let packets = u32::try_from(bytes.div_ceil(payload)).unwrap_or(u32::MAX);
        self.rare.grants.packets = self.rare.grants.packets.saturating_add(packets);
        self.sender.grant(packets, now);
        self.begin(now);
    }

    /// The application hands over a datagram of this size on the wire. [`transmit`](Self::transmit) comes next.
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

    /// TCP: the packets of data that its application has granted so far, and those that have arrived in order.
    pub(crate) fn granted(&self) -> (u32, u32) {
        let opening = u32::from(self.rare.grants.opens);
        (self.rare.grants.packets, self.receiving.receiver.expected().saturating_sub(opening))
    }

    /// Its packets are datagrams.
    pub(crate) fn is_datagrams(&self) -> bool {
        self.rare.metadata.transit().is_some()
    }

    /// How long the last datagram took that arrived.
    pub(crate) fn last_transit(&self) -> Option<Duration> {
        self.transit().and_then(TransitMeter::last)
    }

    /// How long its packets took, where that is measured.
    pub(crate) fn transit(&self) -> Option<&TransitMeter> {
        self.rare.metadata.transit()
    }

    /// The next time at which something happens to the flow by itself.
    pub(crate) fn wake(&self) -> Instant {
        self.sender.wake().min(self.next_command()).min(self.receiving.receiver.wake())
    }

    /// When its application next starts or stops it.
    #[inline]
    pub(crate) fn next_command(&self) -> Instant {
        self.rare.start.min(self.rare.stop)
    }

    /// A time named by [`wake`](Self::wake) may have come for the sender or its application. [`transmit`](Self::transmit) comes next.
    pub(crate) fn wake_sender(&mut self, now: Instant) {
        if now >= self.rare.start {
            self.rare.started = Some(self.rare.start);
            self.rare.start = Instant::NEVER;
            self.sender.start(now);
        }
        if now >= self.rare.stop {
            self.rare.stop = Instant::NEVER;
            self.sender.stop();
        }
        self.sender.on_wake(now);
    }

    /// The same for the receiver. Returns the ACK that was due, if one was.
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
        with_source!(sender, rare.metadata, source => sending.send(source, now, &mut post, out));
    }

    /// The sender acts by itself: ACKs that have come to it, and its timers. `out` takes the packets. Returns how many timers expired.
    pub(crate) fn act<Q: Schedule>(
        &mut self,
        turn: Turn<'_>,
        mut post: Post<'_, Q>,
        out: &mut impl PacketSink,
    ) -> u64 {
        let Self { sender, sending, rare, .. } = self;
        with_source!(sender, rare.metadata, source => sending.act(source, turn, &mut post, out))
    }

    /// An ACK reaches the sender, which sends what it then may; `out` takes the packets. Returns when the sender next has
    /// something to do by itself.
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
            Sender::Tcp(tcp) if tcp.takes_notes() => {
                sending.take_ack_with_notes(tcp, ack, now, &mut post, out)
            }
            Sender::Tcp(tcp) => sending.take_ack(tcp, ack, now, &mut post, out),
            Sender::Carrying(sender) => {
                sending.take_ack_carrying(sender, &mut rare.metadata, ack, now, &mut post, out)
            }
        }
    }

    /// What [`acknowledge`](Self::acknowledge) does of most ACKs in recoveries by selective acknowledgements, to a sender that [is on
    /// the fast path](CarryingSender::has_recovery_fast_path). Returns when the sender next has something to do by itself, if that may be
    /// earlier than before; `None`, having done nothing, if it cannot take this ACK.
    #[inline(always)]
    pub(crate) fn acknowledge_shortly(
        &mut self,
        number: u32,
        now: Instant,
        out: &mut impl PacketSink,
    ) -> Option<Instant> {
        let Self { sender: Sender::Carrying(sender), sending, rare, .. } = self else { return None };
        let CarryingSender::Sack(sender) = &mut **sender else { return None };
        let room = sender.take_fast_in_recovery(number, rare.metadata.of_acks(), now)?;
        if room == 0 {
            return Some(Instant::NEVER);
        }
        while let Some(sequence) = sender.transmit_fast_in_recovery(now) {
            sending.send_all(sequence..sequence + 1, now, out);
        }
        Some(sender.wake())
    }

    /// A control message reaches the sender.
    pub(crate) fn on_message(&mut self, message: &Message) {
        self.sender.on_message(message);
    }

    /// A data packet reaches the receiver; returns its ACK.
    #[inline(always)]
    pub(crate) fn receive(&mut self, content: Content, now: Instant) -> Option<Ack> {
        let Received { first, ack } = self.receiving.receiver.on_data(content, now, &mut self.rare.metadata);
        if first && content.size() == self.data_size() && content.sequence() > 0 {
            self.deliver(now);
        } else if first && !(self.rare.grants.opens && content.sequence() == 0) {
            // A smaller packet of data, or the first; one that opens a connection carries none.
            self.rare.short += u64::from(self.data_size() - content.size());
            self.deliver(now);
        } else if !first {
            self.rare.repeated += 1;
        }
        if content.ecn() == Ecn::Congested {
            self.rare.congested += 1;
        }
        ack
    }

    /// The fast path to a receiver not all of whose packets are acknowledged at once: what [`receive`](Self::receive) does of most.
    /// `None`, having done nothing, if the receiver cannot take it so.
    #[inline(always)]
    pub(crate) fn receive_delayed_fast(&mut self, content: Content, now: Instant) -> Option<DelayedAck> {
        let size = self.data_size();
        let Self { receiving, rare, .. } = self;
        let ack = receiving.receiver.receive_delayed_fast(content, size, now, &mut rare.metadata)?;
        debug_assert_eq!(content.size(), size);
        self.deliver(now);
        Some(ack)
    }

    /// The same to one that acknowledges each packet at once, where ACKs carry more than their number. Returns that of the ACK.
    #[inline(always)]
    pub(crate) fn receive_carrying_fast(&mut self, content: Content, now: Instant) -> Option<u32> {
        let size = self.data_size();
        let Receiver::Carrying(receiver) = &mut self.receiving.receiver else { return None };
        let number = receiver.receive_fast(content, size, now, &mut self.rare.metadata)?;
        debug_assert_eq!(content.size(), size);
        self.deliver(now);
        Some(number)
    }

    /// The fast path of most packets beyond a gap to a receiver with selective acknowledgements, which answers them at once. Returns
    /// the number of the ACK; `None`, having done nothing, if the receiver cannot take it so.
    #[inline(always)]
    pub(crate) fn receive_ahead(&mut self, content: Content, now: Instant) -> Option<u32> {
        let is_plain = content.size() == self.data_size() && content.ecn() != Ecn::Congested;
        let Self { receiving, rare, .. } = self;
        let Receiver::Carrying(receiver) = &mut receiving.receiver else { return None };
        if !is_plain {
            return None;
        }
        let number = receiver.receive_ahead(content.sequence(), &mut rare.metadata)?;
        self.deliver(now);
        Some(number)
    }

    /// A packet of data reached the receiver for the first time.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, now: Instant) {
        self.receiving.missing -= 1;
        if self.receiving.missing <= QUIET {
            self.note_arrival(now);
        }
    }

    /// All of its volume has arrived, or a packet may turn out to be the last that arrives.
    #[cold]
    fn note_arrival(&mut self, now: Instant) {
        self.rare.last_arrival = now;
        if self.receiving.missing & !QUIET == 0 {
            self.rare.completed = Some(now);
        }
    }

    /// A packet passes the first router: a meter that flows share, or the flow's own if it is there, marks it. `None` if the
    /// meter drops it.
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
        with_source!(sender, rare.metadata, source => sending.mark(source, packet, verdict, now, &mut post))
    }

    /// The segment that an ACK of this number, which is in transit, asks for next.
    pub(crate) fn expected_by(&self, number: u32) -> u32 {
        self.rare.metadata.expected(number)
    }

    /// A data packet or an ACK was dropped.
    pub(crate) fn lose(&mut self, packet: SimPacket) {
        let is_data = !packet.is_ack();
        self.rare.dropped[packet.color().index()] += u64::from(is_data);
        self.rare.metadata.lose(packet.sequence(), is_data);
    }

    /// A meter of a link dropped a data packet or an ACK, to which it gave this color.
    pub(crate) fn police(&mut self, packet: SimPacket, color: Color) {
        let is_data = !packet.is_ack();
        self.rare.policed_at_links[color.index()] += u64::from(is_data);
        self.rare.metadata.lose(packet.sequence(), is_data);
    }

    /// A link lost a data packet or an ACK after it had sent it.
    pub(crate) fn lose_in_transit(&mut self, packet: SimPacket) {
        let is_data = !packet.is_ack();
        self.rare.lost += u64::from(is_data);
        self.rare.metadata.lose(packet.sequence(), is_data);
    }

    /// A data packet would reach the receiver after the end of the run: nothing happens, and its metadata is not needed.
    #[inline(never)]
    pub(crate) fn discard(&mut self, content: Content) {
        self.rare.metadata.lose(content.sequence(), true);
    }

    /// Samples the receiver at `sample`, before it takes any later packet.
    pub(crate) fn sample_receiver(&mut self, sample: Instant, times: &SampleTimes, series: &mut Series) {
        let delivered = self.delivered();
        if times.ends_warmup(sample) {
            self.rare.at_warmup.delivered = delivered;
            self.rare.at_warmup.short = self.rare.short;
            self.rare.at_warmup.repeated = self.rare.repeated;
            self.rare.at_warmup.congested = self.rare.congested;
        }
        let Some((row, interval)) = times.row(sample) else { return };
        if self.rare.is_population || self.rare.origin.member.is_some() {
            return self.sample_member(row, times, series);
        }
        let bps = self.newly_delivered() as f64 * 8.0 / interval.as_secs_f64();
        times.write(&mut series.throughput_bps, row, self.sending.number(), bps);
    }

    /// The bytes delivered since the last call.
    fn newly_delivered(&mut self) -> u64 {
        let bytes = self.delivered_bytes();
        bytes - std::mem::replace(&mut self.rare.at_last_sample, bytes)
    }

    /// Samples the sender at `sample`, before it takes any later ACK.
    pub(crate) fn sample_sender(&mut self, sample: Instant, times: &SampleTimes, series: &mut Series) {
        let (sender, number) = (&self.sender, self.sending.number());
        if times.ends_warmup(sample) {
            self.rare.at_warmup.acknowledged = sender.acknowledged();
            self.rare.at_warmup.sender = sender.statistics_at(sample);
            self.rare.at_warmup.marked = self.sending.marked();
            self.rare.at_warmup.policed = self.sending.policed();
        }
        if let Some((row, _)) = times.row(sample) {
            if self.rare.origin.member.is_some() {
                return;
            }
            let window = sender.window().filter(|_| !self.rare.is_population).unwrap_or(f64::NAN);
            times.write(&mut series.window_packets, row, number, window);
            let rtt = sender.smoothed_rtt().unwrap_or(f64::NAN);
            times.write(&mut series.rtt_s, row, number, rtt);
        }
    }

    /// The warm-up ends now: saves what routers counted of the flow.
    pub(crate) fn end_warmup_at_routers(&mut self) {
        self.rare.at_warmup.dropped = self.rare.dropped;
        self.rare.at_warmup.policed_at_links = self.rare.policed_at_links;
        self.rare.at_warmup.lost = self.rare.lost;
        if self.sending.is_marked_at_router() {
            self.rare.at_warmup.marked = self.sending.marked();
            self.rare.at_warmup.policed = self.sending.policed();
        }
    }

    /// When all of its volume had arrived, if that has happened.
    pub(crate) fn completed(&self) -> Option<Instant> {
        self.rare.completed
    }

    /// Its bytes that arrived for the first time since it began.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered() * u64::from(self.data_size()) - self.rare.short
    }

    /// What it is like now.
    pub(crate) fn state(&self, now: Instant) -> FlowState {
        let Counts { delivered, congested, marked, lost, dropped, sender, .. } = self.counts(now);
        FlowState {
            window: self.sender.window(),
            smoothed_rtt_s: self.sender.smoothed_rtt(),
            sent: sender.sent,
            retransmitted: self.rare.counted.repairs().then_some(sender.retransmitted),
            timeouts: self.rare.counted.timeouts().then_some(sender.timeouts),
            delivered_packets: delivered,
            delivered_bytes: self.delivered_bytes(),
            dropped,
            lost: self.rare.is_lossy.then_some(lost),
            marked,
            congested: self.rare.is_capable.then_some(congested),
            last_transit: self.last_transit(),
            limits: sender.limits,
        }
    }

    /// What became of the flow by now.
    pub(crate) fn finish(self, times: &SampleTimes, now: Instant) -> FlowOutcome {
        self.finish_with(times, &Counts::default(), now)
    }

    /// The same with what others have counted after the warm-up: the flows of the population for which it stands.
    pub(crate) fn finish_with(self, times: &SampleTimes, others: &Counts, now: Instant) -> FlowOutcome {
        let (begin, end) = times.measured();
        let mut new = self.counts_after_warmup(now.min(end));
        new.add(others);
        let bytes = |packets: u64| packets * u64::from(self.data_size());
        let delivered = bytes(new.delivered) - new.short;
        let active = (!self.rare.is_population).then(|| self.active((begin, now.min(end))));
        let over = active.unwrap_or(end.since(begin));
        let transit = self.transit();
        FlowOutcome {
            started: self.rare.started.filter(|&at| at <= end),
            active,
            is_too_brief: new.delivered == 0 && !self.can_deliver(now.min(end)),
            delivered_packets: new.delivered,
            delivered_bytes: delivered,
            throughput_bps: rate(delivered, over),
            acked_bps: rate(bytes(new.acknowledged), over),
            mean_transit_s: transit.and_then(TransitMeter::mean),
            p99_transit_s: transit.and_then(TransitMeter::p99),
            transits: transit.map(TransitMeter::delays).cloned(),
            jitter_s: transit.and_then(TransitMeter::jitter),
            play_out: transit.and_then(TransitMeter::played),
            marked: new.marked,
            policed: self.rare.is_policed.then_some(new.all_policed()),
            repeated_packets: new.repeated,
            congested: self.rare.is_capable.then_some(new.congested),
            dropped: new.dropped,
            lost: self.rare.is_lossy.then_some(new.lost),
            sender: new.sender,
            counted: self.rare.counted,
            receiver_window: self.sender.receiver_window(),
            buffer: self.sender.buffer(),
            completion: self.rare.idle_time.map_or(Completion::Endless, |idle| {
                Completion::of(idle, self.rare.started, self.rare.completed, times.measured())
            }),
        }
    }

    /// How long it was active between these times: from its start until all of its volume had arrived. A flow that is stopped, or whose
    /// source has sent its last packet and repeats none, is active until then, and until the last of its packets arrives.
    fn active(&self, (begin, end): (Instant, Instant)) -> Duration {
        let Rare { started, stops, last_arrival, completed, .. } = *self.rare;
        let Some(started) = started else { return Duration::ZERO };
        let sent = self.sender.finished().unwrap_or(Instant::NEVER).min(stops);
        let until = completed.unwrap_or(if sent <= end { sent.max(last_arrival) } else { end });
        until.min(end).since(started.max(begin))
    }

    /// Whether data can have arrived by then, as far as its start and stop are concerned.
    fn can_deliver(&self, by: Instant) -> bool {
        let Rare { started, stops, first_data, is_population, .. } = *self.rare;
        is_population || started.is_some_and(|started| first_data.can_arrive(started, stops, by))
    }

    /// Packets that arrived for the first time.
    fn delivered(&self) -> u64 {
        self.rare.volume - self.receiving.missing
    }

    fn counts(&self, now: Instant) -> Counts {
        Counts {
            delivered: self.delivered(),
            short: self.rare.short,
            repeated: self.rare.repeated,
            congested: self.rare.congested,
            acknowledged: self.sender.acknowledged(),
            marked: self.sending.marked(),
            policed: self.sending.policed(),
            policed_at_links: self.rare.policed_at_links,
            lost: self.rare.lost,
            dropped: self.rare.dropped,
            sender: self.sender.statistics_at(now),
        }
    }
}

impl Rare {
    fn new(spec: &FlowSpec, metadata: Metadata, rng: &mut Rng, place: &Place) -> Self {
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
            dropped: [0; 3],
            policed_at_links: [0; 3],
            lost: 0,
            is_lossy: place.is_lossy,
            at_warmup: Counts::default(),
            at_last_sample: 0,
            control: None,
            volume: if is_quiet { volume + QUIET } else { volume },
            idle_time: place.idle_time,
            completed: None,
            first_data: place.first_data,
            is_policed: place.is_policed,
            is_capable: spec.ecn.is_capable() || !spec.tcp_ecn.is_off(),
            counted: spec.transport.counted(spec.tcp_ecn),
            congested: 0,
            repeated: 0,
            short: 0,
            grants: Grants { opens: spec.transport.opens(), ..Grants::default() },
            riding: Riding::default(),
        }
    }
}
