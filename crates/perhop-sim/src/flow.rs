//! Flows: a host that sends, a host that receives, and what is counted of them.
//!
//! Both hosts may be ahead of the clock: a receiver has taken packets that arrive later, a sender acknowledgements. So each
//! host leaves what a look at it will see when it passes the time of that look.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use std::collections::VecDeque;
use std::ops::Range;

use perhop_core::control::Message;
use perhop_core::meter::{AnyMeter, Meter, MeterParams};
use perhop_core::{
    Bitrate, Color, Context, Duration, Ecn, Environment, FlowId, Header, Instant, Rng, ServiceLevel,
};

use crate::clear::ClearWay;
use crate::control::{Channels, Post};
use crate::events::{Event, EventQueue, SourceId};
use crate::inbox::Inbox;
use crate::network::{AccessSpec, FlowSpec, Marking, TransportSpec};
use crate::outcome::{Completion, FlowOutcome};
use crate::packet::{ANSWER, Content, Marks, SimPacket};
use crate::probe::{Looks, Series};
use crate::transport::cargo::Cargo;
use crate::transport::datagram::Carrying;
use crate::transport::tcp::Selective;
use crate::transport::transit::TransitMeter;
use crate::transport::{Ack, CarryingSender, Received, Receiver, Sender, SenderStatistics, Source, Transmit};
use crate::wire::Wire;

/// Calls whichever source a [`CarryingSender`] is, with what is on its way to it.
macro_rules! with_cargo {
    ($sender:expr, $cargo:expr, $source:ident => $call:expr) => {
        match $sender {
            CarryingSender::Sack(sender) => {
                let $source = &mut Selective { sender, answers: $cargo.of_answers() };
                $call
            }
            CarryingSender::Datagram(sender) => {
                let $source = &mut Carrying { sender, datagrams: $cargo.of_datagrams() };
                $call
            }
        }
    };
}

/// The next look at a receiver that has passed the run's end: any packet comes after it.
const PAST_THE_END: Instant = Instant::ZERO;

/// In place of a volume: more packets than any run delivers.
const ENDLESS: u64 = u64::MAX;

/// Room for so many answers that are held is kept.
const FEW: usize = 16;

/// In place of a link's number: the two hosts share none.
pub(crate) const NO_LINK: u32 = u32::MAX;

/// Where a route begins: the number of its first step, and the link that this leads to, or [`NO_LINK`]; and the number of
/// its last step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) first_step: u32,
    pub(crate) first_link: u32,
    pub(crate) last_step: u32,
}

/// One flow.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Flow {
    pub(crate) sender: Sender,
    pub(crate) sending: SendingHost,
    pub(crate) receiving: ReceivingHost,
    /// What packets carry besides their number.
    cargo: Cargo,
    /// What few packets touch stands elsewhere, so that thousands of flows stay in the cache.
    rare: Box<Rare>,
}

const _: () = assert!(size_of::<Flow>() == 512);

#[derive(Clone, Debug)]
struct Rare {
    /// Application events still to come: start, then stop.
    start: Instant,
    stop: Instant,
    started: Instant,
    /// Data packets dropped, by color.
    dropped: [u64; 3],
    at_warmup: Counted,
    /// Packets delivered by the last look.
    at_last_look: u64,
    /// The control of its path, and its place there.
    watched: Option<(usize, usize)>,
    /// The last steps of data and of answers.
    last_steps: (u32, u32),
    /// Packets of its volume; [`ENDLESS`] without one.
    volume: u64,
    /// The time that its volume takes on an idle path, if it has a volume, and when all of it had arrived.
    idle_time: Option<Duration>,
    completed: Option<Instant>,
    /// ACKs that the sender must not take ahead of time, each with its time, in order.
    held: VecDeque<(Instant, Ack)>,
    /// Its packets are capable of ECN, and those that came to the receiver marked (Congestion Experienced).
    is_capable: bool,
    congested: u64,
}

/// What a flow has counted since the run began.
#[derive(Clone, Debug, Default)]
struct Counted {
    delivered: u64,
    congested: u64,
    acknowledged: u64,
    marked: [u64; 3],
    dropped: [u64; 3],
    sender: SenderStatistics,
}

/// The host that sends.
#[derive(Clone, Debug)]
pub(crate) struct SendingHost {
    /// The wake-up that is in the event queue.
    pub(crate) scheduled: Instant,
    /// No later than the next thing that happens to this flow besides its sender's timers.
    due: Instant,
    /// The next time at which somebody looks at it.
    look: Instant,
    /// ACKs that come before this may take the [fast path](Flow::acknowledge_fast): nothing else happens to the host, and
    /// nobody samples it, as far as it knows. Never too late, but at times too early; zero if there is no fast path now.
    fast_until: Instant,
    /// It is not to act ahead of time: somebody else may reach it first.
    pub(crate) by_the_clock: bool,
    /// The first link of its data, or [`NO_LINK`].
    pub(crate) first_link: u32,
    /// What its packets are like.
    template: SimPacket,
    marked_at: Place,
    /// The wires from it and to it.
    outward: Wire,
    pub(crate) inward: Wire,
    marked: [u64; 3],
    /// The channel on which its marker tells it of OUT packets, if it does.
    pub(crate) news: Option<u32>,
    rng: Box<Rng>,
}

/// What a host sends by: where its packets go first, and the ways of its marker's news and of its wake-ups.
pub(crate) struct Way<'a> {
    pub(crate) first: &'a mut Inbox<SimPacket>,
    pub(crate) channels: &'a mut Channels,
    pub(crate) events: &'a mut EventQueue,
}

impl Way<'_> {
    fn post(&mut self) -> Post<'_> {
        Post { channels: self.channels, events: self.events }
    }
}

/// Where its packets are marked, and by what.
#[derive(Clone, Debug)]
enum Place {
    Nowhere,
    Host(Box<Marker>),
    FirstRouter(Box<Marker>),
    /// At the first router, by the meter of this number, which flows share.
    Edge(usize),
}

/// A meter, a flow's own or a shared one, with its random stream, and how it marks packets.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    meter: AnyMeter,
    rng: Rng,
    marks: &'static Marks,
}

/// The host that receives.
#[derive(Clone, Debug)]
pub(crate) struct ReceivingHost {
    receiver: Receiver,
    /// The next time at which somebody looks at it, or the end of the run.
    look: Instant,
    /// Packets that come before this may take the fast path: as [`SendingHost::fast_until`].
    fast_until: Instant,
    /// Packets of its volume that have not arrived. All but this of [`Rare::volume`] were delivered.
    missing: u64,
    /// The first link of its answers, or [`NO_LINK`].
    pub(crate) first_link: u32,
    /// What its answers are like.
    template: SimPacket,
    data_size: u16,
    /// The wires from it and to it.
    outward: Wire,
    pub(crate) inward: Wire,
    /// Its answers depend on this flow alone: it may take packets ahead of time.
    pub(crate) answers_ahead: bool,
    /// In place of the wires and of the link back, where no packet waits there.
    pub(crate) clear: Option<ClearWay>,
}

impl Flow {
    pub(crate) fn new(
        spec: &FlowSpec,
        number: usize,
        label: u32,
        seed: u64,
        (forward, backward): (Route, Route),
        idle_time: Option<Duration>,
        looks: &Looks,
    ) -> Self {
        let stream = |part| Rng::stream(seed, &format!("flows/{}/{part}", spec.name));
        let (first, last) = spec.start;
        let start = first + Duration::from_nanos(stream("start").up_to(last.since(first).as_nanos()));
        let (sender, receiver) = spec.transport.ends(spec.volume, spec.reserved, spec.tcp_ecn);
        let (data_size, ack_size) = spec.transport.packet_sizes();
        let volume = spec.volume.map_or(ENDLESS, |volume| {
            // An opening as large as a packet of data counts as one.
            let opening = spec.transport.opens() && data_size == ack_size;
            spec.transport.packets_of(volume) + u64::from(opening)
        });
        let host_rate = spec.access.as_ref().map_or(Bitrate::MAX, |access| access.rate);
        let marker = |params, rate| Box::new(Marker::new(params, rate, stream("marker")));
        let marked_at = match &spec.marking {
            Marking::None => Place::Nowhere,
            Marking::Host(params) => Place::Host(marker(params, host_rate)),
            Marking::Ingress(params) => Place::FirstRouter(marker(params, Bitrate::MAX)),
            Marking::Edge(number) => Place::Edge(*number),
        };
        let header = Header {
            color: spec.color,
            dscp: spec.dscp,
            ecn: spec.ecn,
            service: spec.service.map_or(ServiceLevel::NONE, ServiceLevel::of),
            label,
            ..Header::new(FlowId(number as u32), data_size)
        };
        let answer = Header { label, ..Header::new(FlowId(number as u32), ack_size) };
        let wire = |access: &Option<AccessSpec>| {
            access.as_ref().map_or_else(Wire::none, |access| Wire::new(access.rate, access.delay))
        };
        // News from a meter at the edge may reach the sender before an acknowledgement does.
        let hears_from_afar = spec.out_feedback.is_some() && marked_at.is_at_router();
        Self {
            sender,
            sending: SendingHost {
                scheduled: Instant::NEVER,
                due: Instant::ZERO,
                look: looks.first(),
                fast_until: Instant::ZERO,
                // Two hosts that share no link could act for ever without the clock's moving.
                by_the_clock: hears_from_afar || forward.first_link == NO_LINK,
                first_link: forward.first_link,
                template: SimPacket::new(&header, forward.first_step, 0),
                marked_at,
                outward: wire(&spec.access),
                inward: wire(&spec.access),
                marked: [0; 3],
                news: None,
                rng: Box::new(stream("transport")),
            },
            receiving: ReceivingHost {
                receiver,
                look: looks.first().min(looks.end()),
                fast_until: Instant::ZERO,
                missing: volume,
                first_link: backward.first_link,
                template: SimPacket::new(&answer, backward.first_step | ANSWER, 0),
                data_size,
                outward: wire(&spec.egress),
                inward: wire(&spec.egress),
                answers_ahead: spec.transport.answers_at_once(),
                clear: None,
            },
            cargo: match &spec.transport {
                TransportSpec::Tcp(params) if params.sack => Cargo::answers(),
                TransportSpec::Tcp(_) => Cargo::NONE,
                TransportSpec::Udp(_) | TransportSpec::Rap(_) | TransportSpec::Tfrc(_) => {
                    Cargo::datagrams(looks.measured())
                }
            },
            rare: Box::new(Rare {
                start,
                stop: spec.stop.unwrap_or(Instant::NEVER),
                started: Instant::ZERO,
                dropped: [0; 3],
                at_warmup: Counted::default(),
                at_last_look: 0,
                watched: None,
                last_steps: (forward.last_step, backward.last_step | ANSWER),
                volume,
                idle_time,
                completed: None,
                held: VecDeque::new(),
                is_capable: spec.ecn.is_capable() || !spec.tcp_ecn.is_off(),
                congested: 0,
            }),
        }
    }

    /// Its connection is open, and nothing that it was opened with is still on its way if links keep packets in order.
    pub(crate) fn is_open(&self) -> bool {
        self.sender.acknowledged() > 0
    }

    /// When the wires to the receiver, from it, and to the sender are free.
    pub(crate) fn wires_busy_until(&self) -> [Instant; 3] {
        let Self { sending, receiving, .. } = self;
        [&receiving.inward, &receiving.outward, &sending.inward].map(Wire::busy_until)
    }

    /// The control of its path, and its place there.
    pub(crate) fn watched(&self) -> Option<(usize, usize)> {
        self.rare.watched
    }

    /// The control of its path, with its place there, watches it. If that looks at the sender's window, it is to find it as
    /// it is then; and what it tells a meter at the host, packets are to meet that are sent after that.
    pub(crate) fn be_watched(&mut self, control: usize, member: usize, at_the_window: bool) {
        self.rare.watched = Some((control, member));
        self.sending.by_the_clock |= at_the_window || matches!(self.sending.marked_at, Place::Host(_));
    }

    /// Whether the sender may take an acknowledgement now, although it comes only at `arrival`: nothing else happens to the
    /// sender until then.
    #[inline(always)]
    pub(crate) fn may_act_ahead(&self, arrival: Instant, channels: &Channels) -> bool {
        !self.sending.by_the_clock
            && arrival < self.wake()
            && self.sending.news.is_none_or(|channel| arrival < channels.next(channel as usize))
    }

    /// When something next happens to it by itself.
    #[inline(always)]
    pub(crate) fn wake(&self) -> Instant {
        self.sender.wake().min(self.sending.due)
    }

    /// The fast path: the sender takes an ACK that reaches it at `at`, and sends what it then may: what
    /// [`acknowledge`](Self::acknowledge) does of nearly every one, in a few steps. Returns false, having done nothing, if it
    /// cannot.
    #[inline(always)]
    pub(crate) fn acknowledge_fast(
        &mut self,
        expected: u32,
        at: Instant,
        first: &mut Inbox<SimPacket>,
    ) -> bool {
        if at >= self.sending.fast_until {
            return false;
        }
        let Sender::Tcp(tcp) = &mut self.sender else { return false };
        let Some(segments) = tcp.ack_fast(expected, at) else { return false };
        self.sending.send_all(segments, at, first);
        true
    }

    /// An acknowledgement reaches the sender at `at`, now or later; it sends what it then may.
    #[inline(never)]
    pub(crate) fn acknowledge(
        &mut self,
        ack: Ack,
        at: Instant,
        way: Way<'_>,
        (looks, series): (&Looks, &mut Series),
    ) {
        if at > self.sending.look {
            self.pass_windows(Some(at), looks, series);
        }
        let Self { sender, sending, cargo, .. } = self;
        match sender {
            Sender::Tcp(tcp) => sending.act(tcp, ack, at, way),
            Sender::Carrying(sender) => sending.act_carrying(sender, cargo, ack, at, way),
        }
        self.find_fast_path(looks.end());
    }

    /// An ACK is held until it comes at `at`, or until it is certain what happens to the sender before.
    pub(crate) fn hold(&mut self, ack: Ack, at: Instant) {
        self.rare.held.push_back((at, ack));
        self.look_ahead();
    }

    /// The first of the ACKs that are held, if that has come by `now`, or may be taken ahead of time.
    pub(crate) fn take_held(&mut self, now: Instant, channels: &Channels) -> Option<(Instant, Ack)> {
        let Some((at, ack)) = self.rare.held.pop_front() else {
            self.rare.held.shrink_to(FEW); // A timeout that held many is rare, and most flows need no more memory for it.
            return None;
        };
        self.look_ahead();
        if at <= now || self.may_act_ahead(at, channels) {
            return Some((at, ack));
        }
        self.rare.held.push_front((at, ack));
        self.look_ahead();
        None
    }

    /// Finds out until when the sender's ACKs may take the fast path. Its deadlines only move away meanwhile.
    fn find_fast_path(&mut self, end: Instant) {
        let just_after = |at| at + Duration::from_nanos(1);
        let free = !self.sending.by_the_clock && self.sending.news.is_none();
        self.sending.fast_until = match &self.sender {
            Sender::Tcp(tcp) if free && tcp.is_on_fast_path() => {
                self.wake().min(just_after(self.sending.look)).min(just_after(end))
            }
            _ => Instant::ZERO,
        };
    }

    /// A control message reaches the sender.
    pub(crate) fn on_message(&mut self, message: &Message) {
        self.sender.on_message(message);
        self.sending.fast_until = Instant::ZERO;
    }

    /// Sends whatever the sender wants on the wire.
    pub(crate) fn transmit(&mut self, now: Instant, mut way: Way<'_>) {
        let Self { sender, sending, cargo, .. } = self;
        match sender {
            Sender::Tcp(tcp) => sending.send(tcp, now, &mut way),
            Sender::Carrying(sender) => {
                with_cargo!(&mut **sender, cargo, source => sending.send(source, now, &mut way));
            }
        }
    }

    /// Makes sure that the flow is woken in time.
    pub(crate) fn schedule(&mut self, events: &mut EventQueue) {
        self.sending.schedule(self.sender.wake(), events);
    }

    /// The receiving host takes a data packet that reaches it at `arrival`, now or later; returns its ACK.
    #[inline(always)]
    pub(crate) fn receive(
        &mut self,
        content: Content,
        arrival: Instant,
        (looks, series): (&Looks, &mut Series),
    ) -> Option<Ack> {
        if arrival < self.receiving.fast_until
            && let Receiver::Tcp(tcp) = &mut self.receiving.receiver
            && let Some(number) = tcp.receive_fast(content.sequence())
        {
            debug_assert_eq!(content.size(), self.receiving.data_size);
            self.deliver(arrival);
            return Some(Ack::plain(number));
        }
        self.receive_otherwise(content, arrival, (looks, series))
    }

    /// As [`receive`](Self::receive), for any packet.
    #[inline(never)]
    fn receive_otherwise(
        &mut self,
        content: Content,
        arrival: Instant,
        (looks, series): (&Looks, &mut Series),
    ) -> Option<Ack> {
        let Received { first, ack } = self.receiving.receiver.on_data(content, arrival, &mut self.cargo);
        let counts = first && content.size() == self.receiving.data_size;
        if arrival <= self.receiving.look || self.receive_beyond(arrival, looks, series) {
            if counts {
                self.deliver(arrival);
            }
            if content.ecn() == Ecn::Congested {
                self.rare.congested += 1;
            }
        }
        self.receiving.find_fast_path();
        ack
    }

    /// A packet of data reached the receiver for the first time, within the run.
    #[inline(always)]
    fn deliver(&mut self, arrival: Instant) {
        self.receiving.missing -= 1;
        if self.receiving.missing == 0 {
            self.complete(arrival);
        }
    }

    /// Packets that arrived for the first time.
    fn delivered(&self) -> u64 {
        self.rare.volume - self.receiving.missing
    }

    /// All of its volume has arrived.
    #[cold]
    fn complete(&mut self, at: Instant) {
        self.rare.completed = Some(at);
    }

    /// A packet of data, as it waits before the receiver.
    pub(crate) fn waiting_data(&self, content: Content) -> SimPacket {
        self.sending.template.carrying(content).before(self.rare.last_steps.0)
    }

    /// An answer, as it waits before the sender.
    pub(crate) fn waiting_answer(&self, content: Content) -> SimPacket {
        self.receiving.template.carrying(content).before(self.rare.last_steps.1)
    }

    /// The segment that an acknowledgement on its way to the sender asks for next.
    pub(crate) fn expected_by(&self, number: u32) -> u32 {
        self.cargo.expected(number)
    }

    /// A packet reaches the receiver after the next look; returns whether it does so within the run.
    #[cold]
    fn receive_beyond(&mut self, arrival: Instant, looks: &Looks, series: &mut Series) -> bool {
        self.pass_deliveries(Some(arrival), looks, series);
        arrival <= looks.end()
    }

    /// Leaves for the looks before `before` what they will see of the receiver; with `None`, for those up to the clock's.
    #[cold]
    fn pass_deliveries(&mut self, before: Option<Instant>, looks: &Looks, series: &mut Series) {
        while looks.is_passed(self.receiving.look, before) && self.receiving.look != PAST_THE_END {
            let look = self.receiving.look;
            let delivered = self.delivered();
            if looks.ends_warmup(look) {
                self.rare.at_warmup.delivered = delivered;
                self.rare.at_warmup.congested = self.rare.congested;
            }
            if let Some((row, interval)) = looks.row(look) {
                let new = (delivered - self.rare.at_last_look) * u64::from(self.receiving.data_size);
                self.rare.at_last_look = delivered;
                let bps = new as f64 * 8.0 / interval.as_secs_f64();
                looks.write(&mut series.throughput_bps, row, self.sending.number(), bps);
            }
            self.receiving.look =
                if look == looks.end() { PAST_THE_END } else { looks.after(look).min(looks.end()) };
        }
    }

    /// As [`pass_deliveries`](Self::pass_deliveries), for the sender.
    #[cold]
    fn pass_windows(&mut self, before: Option<Instant>, looks: &Looks, series: &mut Series) {
        let (sender, number) = (&self.sender, self.sending.number());
        let mut look = self.sending.look;
        while looks.is_passed(look, before) {
            if looks.ends_warmup(look) {
                self.rare.at_warmup.acknowledged = sender.acknowledged();
                self.rare.at_warmup.sender = sender.statistics();
                self.rare.at_warmup.marked = self.sending.marked;
            }
            if let Some((row, _)) = looks.row(look) {
                let window = sender.window().unwrap_or(f64::NAN);
                looks.write(&mut series.window_packets, row, number, window);
                let rtt = sender.smoothed_rtt().unwrap_or(f64::NAN);
                looks.write(&mut series.rtt_s, row, number, rtt);
            }
            look = looks.after(look);
        }
        self.sending.look = look;
    }

    /// Leaves what a look now sees, unless the hosts have passed it.
    pub(crate) fn be_looked_at(&mut self, looks: &Looks, series: &mut Series) {
        self.pass_deliveries(None, looks, series);
        self.pass_windows(None, looks, series);
        if looks.warmup_is_over() {
            // Routers keep to the clock.
            self.rare.at_warmup.dropped = self.rare.dropped;
            if self.sending.marked_at.is_at_router() {
                self.rare.at_warmup.marked = self.sending.marked;
            }
        }
    }

    /// Its timers went off. Returns the answer that was due, if one was.
    pub(crate) fn wake_up(&mut self, now: Instant) -> Option<SimPacket> {
        if now >= self.rare.start {
            self.rare.started = self.rare.start;
            self.rare.start = Instant::NEVER;
            self.sender.start(now);
        }
        if now >= self.rare.stop {
            self.rare.stop = Instant::NEVER;
            self.sender.stop();
        }
        self.sender.on_wake(now);
        self.sending.fast_until = Instant::ZERO;
        let late = self.receiving.receiver.on_wake(now, &mut self.cargo)?;
        Some(self.receiving.answer(late, now))
    }

    /// A packet passes the first router: a meter that flows share, or its own if that stands there, marks it.
    pub(crate) fn mark_at_router(
        &mut self,
        packet: SimPacket,
        shared: &mut [Marker],
        post: Post<'_>,
    ) -> SimPacket {
        let now = packet.at();
        let Self { sender, sending, cargo, .. } = self;
        let marker = match &mut sending.marked_at {
            Place::Edge(number) => &mut shared[*number],
            Place::FirstRouter(marker) => &mut **marker,
            Place::Nowhere | Place::Host(_) => return packet,
        };
        let verdict = (marker.color(packet.header(), now), marker.marks);
        match sender {
            Sender::Tcp(tcp) => sending.mark(tcp, packet, verdict, now, post),
            Sender::Carrying(sender) => {
                with_cargo!(&mut **sender, cargo, source => sending.mark(source, packet, verdict, now, post))
            }
        }
    }

    /// Looks up when the next thing happens besides the sender's timers. A time that has moved away since is found out
    /// when it comes.
    pub(crate) fn look_ahead(&mut self) {
        let Rare { start, stop, held, .. } = &*self.rare;
        let held = held.front().map_or(Instant::NEVER, |&(at, _)| at);
        self.sending.due = self.receiving.receiver.wake().min(*start).min(*stop).min(held);
        self.sending.fast_until = self.sending.fast_until.min(self.sending.due);
    }

    /// Answering a packet changes when the next answer is due.
    pub(crate) fn keeps_time(&self) -> bool {
        self.receiving.receiver.keeps_time()
    }

    /// A packet of data, or an answer, was dropped.
    pub(crate) fn lose(&mut self, packet: SimPacket) {
        let is_data = !packet.is_answer();
        self.rare.dropped[packet.color().index()] += u64::from(is_data);
        self.cargo.lose(packet.sequence(), is_data);
    }

    pub(crate) fn finish(self, looks: &Looks) -> FlowOutcome {
        let (begin, end) = looks.measured();
        let new = self.counted().since(&self.rare.at_warmup);
        let bytes = |packets: u64| packets * u64::from(self.receiving.data_size);
        let bps = |packets: u64| bytes(packets) as f64 * 8.0 / end.since(begin).as_secs_f64();
        let transit = self.cargo.transit();
        FlowOutcome {
            started: self.rare.started,
            delivered_packets: new.delivered,
            delivered_bytes: bytes(new.delivered),
            throughput_bps: bps(new.delivered),
            acked_bps: bps(new.acknowledged),
            mean_transit_s: transit.and_then(TransitMeter::mean),
            p99_transit_s: transit.and_then(TransitMeter::p99),
            jitter_s: transit.and_then(TransitMeter::jitter),
            marked: new.marked,
            congested: self.rare.is_capable.then_some(new.congested),
            dropped: new.dropped,
            sender: new.sender,
            completion: self.rare.idle_time.map_or(Completion::Endless, |idle| {
                Completion::of(idle, self.rare.started, self.rare.completed, looks.measured())
            }),
        }
    }

    fn counted(&self) -> Counted {
        Counted {
            delivered: self.delivered(),
            congested: self.rare.congested,
            acknowledged: self.sender.acknowledged(),
            marked: self.sending.marked,
            dropped: self.rare.dropped,
            sender: self.sender.statistics(),
        }
    }
}

impl Counted {
    /// What has come since an earlier count.
    fn since(&self, before: &Self) -> Self {
        let by_color = |now: [u64; 3], then: [u64; 3]| std::array::from_fn(|color| now[color] - then[color]);
        Self {
            delivered: self.delivered - before.delivered,
            congested: self.congested - before.congested,
            acknowledged: self.acknowledged - before.acknowledged,
            marked: by_color(self.marked, before.marked),
            dropped: by_color(self.dropped, before.dropped),
            sender: self.sender.since(&before.sender),
        }
    }
}

impl SendingHost {
    fn number(&self) -> u32 {
        self.template.flow() as u32
    }

    /// Sends full segments, marked, over the host's wire, for a sender to which it makes no difference how they are marked.
    #[inline(always)]
    fn send_all(&mut self, segments: Range<u32>, now: Instant, first: &mut Inbox<SimPacket>) {
        let size = self.template.size();
        for sequence in segments {
            let mut packet = self.template.numbered(sequence);
            if let Place::Host(marker) = &mut self.marked_at {
                let color = marker.color(packet.header(), now);
                self.marked[color.index()] += 1;
                packet = packet.marked(color, marker.marks);
            } else if let Place::Nowhere = &self.marked_at {
                self.marked[packet.color().index()] += 1;
            }
            first.push(packet.due(self.outward.pass(size, now)));
        }
    }

    /// Takes an acknowledgement that comes at `at`, sends what the sender then may, and sees to its being woken in time.
    #[inline(always)]
    fn act<S: Source>(&mut self, source: &mut S, ack: Ack, at: Instant, mut way: Way<'_>) {
        source.on_ack(ack, at);
        self.send(source, at, &mut way);
        self.schedule(source.wake(), way.events);
    }

    /// As [`act`](Self::act), for a sender whose packets carry more than their number, out of the way of the others.
    #[inline(never)]
    fn act_carrying(
        &mut self,
        sender: &mut CarryingSender,
        cargo: &mut Cargo,
        ack: Ack,
        at: Instant,
        way: Way<'_>,
    ) {
        with_cargo!(sender, cargo, source => self.act(source, ack, at, way));
    }

    /// Sends whatever the sender wants, marked, over the host's wire.
    #[inline(always)]
    fn send<S: Source>(&mut self, source: &mut S, now: Instant, way: &mut Way<'_>) {
        while let Some(Transmit { sequence, size, capable, reduced }) =
            source.transmit(&mut Context { now, rng: &mut self.rng })
        {
            let mut packet = self.template.numbered(sequence).sized(size);
            if capable {
                packet = packet.capable().flagged(reduced);
            }
            match &mut self.marked_at {
                Place::Nowhere => self.marked[packet.color().index()] += 1,
                Place::Host(marker) => {
                    let verdict = (marker.color(packet.header(), now), marker.marks);
                    packet = self.mark(source, packet, verdict, now, way.post());
                }
                Place::FirstRouter(_) | Place::Edge(_) => {}
            }
            way.first.push(packet.due(self.outward.pass(size, now)));
        }
    }

    /// Makes sure that the flow is woken in time. Deadlines mostly move away, so a wake-up that is too early is left to
    /// find out for itself.
    #[inline(always)]
    fn schedule(&mut self, senders: Instant, events: &mut EventQueue) {
        let at = senders.min(self.due);
        if at < self.scheduled {
            self.scheduled = at;
            events.push(Event { at, source: SourceId(self.number()) });
        }
    }

    /// Another block tells its own meter something.
    pub(crate) fn tell_meter(&mut self, message: &Message) {
        if let Place::Host(marker) | Place::FirstRouter(marker) = &mut self.marked_at {
            marker.meter.on_message(message);
        }
    }

    /// Writes a meter's verdict into a packet, and lets the sender know what it may know.
    #[inline(always)]
    fn mark<S: Source>(
        &mut self,
        source: &mut S,
        packet: SimPacket,
        (color, marks): (Color, &Marks),
        now: Instant,
        post: Post<'_>,
    ) -> SimPacket {
        self.marked[color.index()] += 1;
        source.on_marked(packet.sequence(), color);
        if let Some(channel) = self.news
            && color != Color::Green
            && let Some(message) = post.send(channel as usize, Message::MarkedOut, now)
        {
            source.on_message(&message);
        }
        packet.marked(color, marks)
    }
}

impl Place {
    fn is_at_router(&self) -> bool {
        matches!(self, Self::FirstRouter(_) | Self::Edge(_))
    }
}

impl Marker {
    /// The meter of a profile, to which packets can come at this rate.
    pub(crate) fn new(params: &MeterParams, rate: Bitrate, rng: Rng) -> Self {
        Self { meter: params.clone().build(Environment { rate }), rng, marks: Marks::of(params.af()) }
    }

    #[inline(always)]
    fn color(&mut self, header: Header, now: Instant) -> Color {
        self.meter.color(&header, &mut Context { now, rng: &mut self.rng })
    }
}

impl ReceivingHost {
    /// A full packet of data, in bytes.
    pub(crate) fn data_size(&self) -> u16 {
        self.data_size
    }

    /// The smallest packet of the flow, in bytes.
    pub(crate) fn smallest_packet(&self) -> u16 {
        match self.template.size() {
            0 => self.data_size,
            ack_size => self.data_size.min(ack_size),
        }
    }

    /// Finds out until when the receiver's segments may take the fast path.
    fn find_fast_path(&mut self) {
        self.fast_until = match &self.receiver {
            Receiver::Tcp(tcp) if self.answers_ahead && tcp.is_on_fast_path() => {
                self.look + Duration::from_nanos(1)
            }
            _ => Instant::ZERO,
        };
    }

    /// The ACK, put on the wire now.
    #[inline(always)]
    pub(crate) fn answer(&mut self, ack: Ack, now: Instant) -> SimPacket {
        let at = self.outward.pass(self.template.size(), now);
        self.template.numbered(ack.number).flagged(ack.ece).due(at)
    }
}
