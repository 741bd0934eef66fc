//! Links that flows share: a queue, and the medium behind it.
//!
//! A FIFO whose AQM decides on arrival needs no event per departure: when a packet is admitted, the start of
//! its service and its arrival at the far end are already known. Any other queue is a port that is served by
//! events, in the order of time within the link; so is a queue whose link changes, loses packets or delays
//! them at random. What a medium draws depends on the order in which the link sends its packets, and on
//! nothing that happens elsewhere.

#![expect(clippy::inline_always, reason = "see the event loop, which these calls are a part of")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::slice;

use perhop_core::aqm::{Aqm, AqmVisitor};
use perhop_core::control::Message;
use perhop_core::measure::{PortStatistics, PortView, TransitCounts};
use perhop_core::meter::AggregateMeters;
use perhop_core::scheduler::{Admitted, Departures, Discipline, PrecomputedFifo, SchedulerParams};
use perhop_core::units::UnitError;
use perhop_core::{
    Bitrate, Context, Duration, Environment, Instant, Offered, Packet, Port, PortVisitor, PrefetchStage, Rng,
    Served, Streams, TypedPort, prefetch, prefetch_start,
};

use super::traffic::{MANY, Traffic, keep};
use crate::engine::retuning::retuning;
use crate::engine::setup::Step;
use crate::network::LinkSpec;
use crate::packet::SimPacket;
use crate::watch::WATCH_INTERVAL;
use crate::wire::Wire;
use perhop_core::medium::MediumState;

/// One direction of a link that flows share.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// The wire to the far end, of a link whose departures are computed on arrival.
    wire: Wire,
    pub(super) delay: Duration,
    /// The meters of the link, if it has any.
    meters: Option<Box<AggregateMeters>>,
    queue: Queue,
    /// How the link changes, and which packets it loses and delays; `None` if it does none of these.
    medium: Option<Box<MediumState>>,
    /// The rate that its scheduler shares among its queues.
    shared: Bitrate,
    /// Some packets pass the meter of their flow or a control on their way to its queue.
    metered: bool,
    /// Some packets come to another link, or must wait for their time, behind it; else all go to a host.
    leads_on: bool,
}

#[derive(Clone, Debug)]
enum Queue {
    /// A queue without a limit that is not measured; the link never changes.
    Unlimited,
    /// A queue whose departures are computed on arrival; the link has a steady medium.
    Precomputed(Box<Precomputed>),
    /// A queue whose departures are events.
    Served(Box<ServedPort>),
}

#[derive(Clone, Debug)]
struct Precomputed {
    fifo: PrecomputedFifo,
    statistics: PortStatistics,
}

#[derive(Clone, Debug)]
struct ServedPort {
    port: Port<SimPacket>,
    services: Services,
}

impl Link {
    /// An idle link; statistics cover the given window.
    pub(super) fn new(spec: &LinkSpec, seed: u64, window: (Instant, Instant)) -> Self {
        let path = format!("links/{}", spec.name);
        let streams = Streams { seed, path: &path };
        let medium = MediumState::new(&spec.medium, streams);
        let only_aqm = spec.queue.as_ref().and_then(SchedulerParams::only_aqm);
        let queue = match (&spec.queue, only_aqm) {
            (None, _) if spec.medium.is_steady() => Queue::Unlimited,
            (_, Some(aqm)) if medium.is_none() && aqm.precomputable() => {
                let environment = Environment { rate: spec.rate };
                let fifo = PrecomputedFifo::new(aqm.clone(), environment, streams.of("aqm"));
                let statistics = PortStatistics::new(spec.rate, window, 1);
                Queue::Precomputed(Box::new(Precomputed { fifo, statistics }))
            }
            (queue, _) => {
                let queue = queue.clone().unwrap_or_else(LinkSpec::unlimited);
                let mut port = Port::new(queue, spec.rate, streams, window);
                spec.medium.note_rates(port.rates());
                Queue::Served(Box::new(ServedPort { port, services: Services::new() }))
            }
        };
        let wire = Wire::new(spec.rate, spec.delay);
        let meters = (!spec.meters.is_empty()).then(|| Box::new(AggregateMeters::new(&spec.meters, streams)));
        let (delay, shared) = (spec.delay, spec.rate);
        Self { wire, delay, meters, queue, medium, shared, metered: false, leads_on: false }
    }

    /// Defers the statistics of waiting times, for one of many links: see [`PortStatistics::note_delays`].
    pub(super) fn note_delays(&mut self) {
        match &mut self.queue {
            Queue::Unlimited => {}
            Queue::Precomputed(queue) => queue.statistics.note_delays(),
            Queue::Served(served) => served.port.note_delays(),
        }
    }

    /// Returns when the link has sent everything that it has taken so far.
    pub(super) fn busy_until(&self) -> Instant {
        match &self.queue {
            Queue::Unlimited | Queue::Precomputed(_) => self.wire.busy_until(),
            Queue::Served(served) => served.port.busy_until(),
        }
    }

    /// Shows every packet that waits in its port; those of other links are already on their way.
    pub(super) fn inspect(&self, show: &mut dyn FnMut(&SimPacket)) {
        match &self.queue {
            Queue::Unlimited | Queue::Precomputed(_) => {}
            Queue::Served(served) => served.port.inspect(show),
        }
    }

    /// Asks the processor for the link's queue, to which packets come soon.
    pub(super) fn prefetch(&self) {
        match &self.queue {
            Queue::Unlimited => {}
            Queue::Precomputed(queue) => prefetch_start(&**queue),
            Queue::Served(served) => {
                served.port.prefetch();
                prefetch(slice::from_ref(&served.services));
            }
        }
    }

    /// Asks the processor for the queues of the port, some time after [`prefetch`](Self::prefetch).
    #[inline]
    pub(super) fn prefetch_stage(&self, stage: PrefetchStage) {
        if let Queue::Served(served) = &self.queue {
            served.port.prefetch_stage(stage);
        }
    }

    /// Returns the next time at which the link is to be served, or changes.
    #[inline(always)]
    pub(super) fn next_service(&self) -> Instant {
        match (&self.queue, &self.medium) {
            (Queue::Served(served), None) => served.services.next(),
            (Queue::Served(served), Some(medium)) => served.services.next().min(medium.next_change()),
            (Queue::Unlimited | Queue::Precomputed(_), _) => Instant::NEVER,
        }
    }

    /// Handles the packets that arrive at the link before `bound`, and serves it as often as that is due
    /// before. Returns how many times it had to do something, and how many packets came. If the run is to
    /// end, it returns in between. Packets that leave it are among the [departures](Traffic::departures).
    pub(super) fn run(&mut self, number: usize, bound: Instant, traffic: &mut Traffic) -> (u64, u64) {
        let Self { wire, delay, meters, queue, medium, metered, leads_on, .. } = self;
        let mut gone = std::mem::take(&mut traffic.departures[usize::from(*leads_on)]);
        let (mut came, mut services, mut watch_at) = (0, 0, WATCH_INTERVAL);
        while let Some((mut packets, ready)) = traffic.hosts.inputs.queues[number].lend(bound) {
            let taken = ready.end;
            let mut ready = &mut packets[ready];
            came += ready.len() as u64;
            // In stages, each of which has the processor to itself.
            if *metered {
                ready = traffic.pass_first_routers(ready);
            }
            if let Some(meters) = meters {
                ready = keep(ready, |packet| traffic.hosts.pass_meters(meters, packet));
            }
            match queue {
                Queue::Unlimited => {
                    for packet in ready.iter_mut() {
                        let now = packet.at();
                        let at = wire.pass(packet.size(), now);
                        match medium {
                            None => packet.put_off(at),
                            Some(medium) => medium.carry(packet, now, at),
                        }
                    }
                    traffic.leave_link(ready, *leads_on, &mut gone);
                }
                Queue::Precomputed(queue) => {
                    let Precomputed { fifo, statistics } = &mut **queue;
                    let (aqm, rng, departures) = fifo.parts();
                    traffic.show(ready);
                    aqm.accept(Admission { packets: ready, wire, departures, statistics, rng });
                    traffic.take_back(ready);
                    traffic.leave_link(ready, *leads_on, &mut gone);
                }
                Queue::Served(served) => {
                    traffic.show(ready);
                    services += served.run(ready, Instant::ZERO, (delay, medium), &mut gone, traffic);
                }
            }
            traffic.hosts.inputs.queues[number].give_back(packets, taken);
            if gone.len() >= MANY {
                traffic.pass_on(&gone, *leads_on);
                gone.clear();
            }
            if came >= watch_at {
                if traffic.watch.is_stopped() {
                    break;
                }
                watch_at = came + WATCH_INTERVAL;
            }
        }
        if let Queue::Served(served) = queue {
            services += served.run(&[], bound, (delay, medium), &mut gone, traffic);
        }
        traffic.departures[usize::from(*leads_on)] = gone;
        traffic.hosts.inputs.settle(number, self.next_service());
        (came + services, came)
    }

    /// Hands a control message to the AQM at which the packets of this path arrive.
    pub(super) fn on_message(&mut self, label: u32, message: &Message) {
        match &mut self.queue {
            Queue::Unlimited => {}
            Queue::Precomputed(queue) => queue.fifo.on_message(message),
            Queue::Served(served) => served.port.on_message(label, message),
        }
    }

    /// Gives the queue and the meters the parameters of `after`, in place of those of `before`.
    ///
    /// # Errors
    /// The key that cannot change; the link must not be used any more then.
    pub(super) fn retune(
        &mut self,
        before: &LinkSpec,
        after: &LinkSpec,
        now: Instant,
    ) -> Result<(), UnitError> {
        let in_queue = |problem: UnitError| problem.below("queue");
        if let Some(to) = retuning(before, after, &mut self.shared, now) {
            match (&mut self.queue, to.after.only_aqm()) {
                (Queue::Precomputed(queue), Some(aqm)) => {
                    let environment = Environment { rate: to.rate };
                    queue.fifo.retune(aqm.clone(), environment).map_err(in_queue)?;
                }
                (Queue::Served(served), _) => {
                    served.port.retune(&to).map_err(in_queue)?;
                    if served.port.is_held() {
                        served.services.push(now);
                    }
                }
                _ => {}
            }
        }
        let Some(meters) = &mut self.meters else { return Ok(()) };
        let retuned = meters.retune((&before.meters, &after.meters), now);
        retuned.map_err(|problem| problem.below("meters"))
    }

    /// Brings the queue's counters up to `now`.
    pub(super) fn settle(&mut self, now: Instant) {
        if let Queue::Precomputed(queue) = &mut self.queue {
            queue.fifo.settle(now);
        }
    }

    /// Ends the run: what still waits has waited until now.
    pub(super) fn finish(&mut self, now: Instant) {
        self.settle(now);
        if let Queue::Served(served) = &mut self.queue {
            served.port.finish(now);
        }
    }

    /// Returns what waits and what went through, if the link has a queue under an AQM. Call
    /// [`settle`](Self::settle) first.
    pub(super) fn port(&self) -> Option<PortView<'_>> {
        let meters = self.meters.as_ref().map_or_else(Vec::new, |meters| meters.counts());
        match &self.queue {
            Queue::Unlimited => None,
            Queue::Precomputed(queue) => Some(PortView {
                classes: vec![("all", queue.fifo.counters())],
                meters,
                statistics: &queue.statistics,
                gauges: queue.fifo.gauges(),
                transit: TransitCounts::default(),
            }),
            Queue::Served(served) => {
                let transit = self.medium.as_ref().map(|medium| medium.counts()).unwrap_or_default();
                Some(PortView { meters, transit, ..served.port.view() })
            }
        }
    }
}

/// Notes at each link what its packets pass before and behind it.
pub(super) fn set_routes(links: &mut [Link], steps: &[Step]) {
    for pair in steps.windows(2) {
        let (Step::Link(link) | Step::Metered(link)) = pair[0] else { continue };
        let link = &mut links[link as usize];
        link.metered |= matches!(pair[0], Step::Metered(_));
        link.leads_on |= !matches!(pair[1], Step::ReceiverWire | Step::SenderWire);
    }
}

/// Packets that arrive at a queue whose departures are computed on arrival. They leave it with the times of
/// their arrival at the far end, or marked as lost.
struct Admission<'a> {
    packets: &'a mut [SimPacket],
    wire: &'a mut Wire,
    departures: &'a mut Departures,
    statistics: &'a mut PortStatistics,
    rng: &'a mut Rng,
}

impl AqmVisitor for Admission<'_> {
    type Output = ();

    fn visit<A: Aqm>(self, aqm: &mut A) {
        let Self { packets, wire, departures, statistics, rng } = self;
        for packet in packets {
            let now = packet.at();
            departures.settle(now);
            let mut header = packet.header();
            match departures.admit(aqm, &mut header, wire.busy_until(), &mut Context { now, rng }) {
                Ok(Admitted { service, notified }) => {
                    if notified.is_some() {
                        *packet = packet.notified();
                    }
                    statistics.serve(0, now, service, header.size, header.color);
                    packet.put_off(wire.pass(header.size, now));
                }
                Err(_) => packet.lose(),
            }
        }
    }
}

impl ServedPort {
    /// Takes packets that arrive at the queue, serves the port whenever that is due meanwhile, and then as
    /// often as it is due before `bound`. Packets that leave go to `gone`, with the times of their arrival at
    /// the far end, or marked as lost. Returns how often the port was served, or the link changed.
    fn run(
        &mut self,
        packets: &[SimPacket],
        bound: Instant,
        (delay, medium): (&mut Duration, &mut Option<Box<MediumState>>),
        gone: &mut Vec<SimPacket>,
        traffic: &Traffic,
    ) -> u64 {
        let Self { port, services } = self;
        let before = gone.len();
        let happened = match medium {
            None if packets.is_empty() && services.next() >= bound => return 0,
            None => {
                let service = Service { services, medium: &mut Steady, delay, gone, happened: 0 };
                port.accept(Batch { packets, bound, service })
            }
            Some(medium) => {
                let service = Service { services, medium: &mut **medium, delay, gone, happened: 0 };
                Batch { packets, bound, service }.visit(port.typed())
            }
        };
        traffic.take_back(&mut gone[before..]);
        happened
    }
}

/// Packets arrive at a port, which is served until `bound`.
struct Batch<'a, M> {
    packets: &'a [SimPacket],
    bound: Instant,
    service: Service<'a, M>,
}

impl<M: Medium> PortVisitor<SimPacket> for Batch<'_, M> {
    type Output = u64;

    fn visit<D: Discipline<SimPacket>>(self, mut port: TypedPort<'_, D>) -> u64 {
        let Self { packets, bound, mut service } = self;
        for packet in packets {
            let now = packet.at();
            service.act_before(&mut port, now.just_after()); // The port was there first.
            let offered = port.offer(*packet, now);
            while let Some((packet, _)) = port.shed(now) {
                service.lose(packet);
            }
            match offered {
                Offered::Queued => {}
                Offered::Idle => service.begin(now),
                Offered::Dropped(packet, _) => service.lose(packet),
            }
        }
        let begun = packets.last().map_or(Instant::ZERO, |last| last.at().just_after());
        service.act_before(&mut port, bound.max(begun));
        service.happened
    }
}

/// What lies between a port and the far end of its link.
trait Medium {
    /// Returns the time of the link's next change; [`Instant::NEVER`] if there is none.
    fn next_change(&self) -> Instant;

    /// Makes the next change, if it comes by `now`. Returns whether the port must be served for it, and
    /// `None` without a change.
    fn change<D>(&mut self, port: &mut TypedPort<'_, D>, delay: &mut Duration, now: Instant) -> Option<bool>;

    /// Notes that the queue was empty up to `now`.
    fn idle(&mut self, now: Instant);

    /// Serves the port, if the link may send now.
    fn serve<P: Packet, D: Discipline<P>>(&mut self, port: &mut TypedPort<'_, D>, now: Instant) -> Served<P>;

    /// Takes a packet, sent from `now` on, to the far end, at `at` if it is neither lost nor delayed.
    fn carry(&mut self, packet: &mut SimPacket, now: Instant, at: Instant);
}

/// A medium that never changes, loses nothing and delays all packets alike.
struct Steady;

impl Medium for Steady {
    #[inline(always)]
    fn next_change(&self) -> Instant {
        Instant::NEVER
    }

    #[inline(always)]
    fn change<D>(&mut self, _: &mut TypedPort<'_, D>, _: &mut Duration, _: Instant) -> Option<bool> {
        None
    }

    #[inline(always)]
    fn idle(&mut self, _: Instant) {}

    #[inline(always)]
    fn serve<P: Packet, D: Discipline<P>>(&mut self, port: &mut TypedPort<'_, D>, now: Instant) -> Served<P> {
        port.serve(now)
    }

    #[inline(always)]
    fn carry(&mut self, packet: &mut SimPacket, _: Instant, at: Instant) {
        packet.put_off(at);
    }
}

impl Medium for MediumState {
    fn next_change(&self) -> Instant {
        self.next().unwrap_or(Instant::NEVER)
    }

    fn change<D>(&mut self, port: &mut TypedPort<'_, D>, delay: &mut Duration, now: Instant) -> Option<bool> {
        self.pop_due(now).map(|event| self.apply(event, port, delay))
    }

    fn idle(&mut self, now: Instant) {
        self.idle(now);
    }

    fn serve<P: Packet, D: Discipline<P>>(&mut self, port: &mut TypedPort<'_, D>, now: Instant) -> Served<P> {
        self.serve(port, now)
    }

    fn carry(&mut self, packet: &mut SimPacket, now: Instant, at: Instant) {
        match self.pass(now, at) {
            Some(at) => packet.put_off(at),
            None => packet.lose_in_transit(),
        }
    }
}

/// The service of a port: when it is due, the medium, and the packets that leave.
struct Service<'a, M> {
    services: &'a mut Services,
    medium: &'a mut M,
    delay: &'a mut Duration,
    gone: &'a mut Vec<SimPacket>,
    /// How often the port was served, or the link changed.
    happened: u64,
}

impl<M: Medium> Service<'_, M> {
    /// The link is free and a packet waits: the port is to be served at once, which is no event of its own.
    #[inline(always)]
    fn begin(&mut self, now: Instant) {
        self.medium.idle(now);
        self.services.push(now);
        self.happened = self.happened.wrapping_sub(1);
    }

    /// Changes the link and serves the port as often as is due before `bound`; at one time, changes go first.
    #[inline(always)]
    fn act_before<D: Discipline<SimPacket>>(&mut self, port: &mut TypedPort<'_, D>, bound: Instant) {
        loop {
            let now = self.services.next().min(self.medium.next_change());
            if now >= bound {
                return;
            }
            self.happened = self.happened.wrapping_add(1);
            match self.medium.change(port, self.delay, now) {
                Some(false) => {}
                Some(true) => self.serve(port, now),
                None => {
                    self.services.pop();
                    self.serve(port, now);
                }
            }
        }
    }

    /// Serves the port until it has sent something or has nothing to send.
    #[inline(always)]
    fn serve<D: Discipline<SimPacket>>(&mut self, port: &mut TypedPort<'_, D>, now: Instant) {
        loop {
            match self.medium.serve(port, now) {
                Served::Sent(mut packet, free_at) => {
                    self.services.push(free_at);
                    self.medium.carry(&mut packet, now, free_at + *self.delay);
                    return self.gone.push(packet);
                }
                Served::Dropped(packet, _) => self.lose(packet),
                Served::Later(at) => return self.services.push(at),
                Served::Nothing => return,
            }
        }
    }

    #[cold]
    fn lose(&mut self, packet: SimPacket) {
        self.gone.push(packet.due(Instant::NEVER));
    }
}

/// When a port is to be served: mostly once, when its link is free.
#[derive(Clone, Debug)]
pub(super) struct Services {
    /// [`Instant::NEVER`] if none is due.
    next: Instant,
    others: BinaryHeap<Reverse<Instant>>,
}

impl Services {
    pub(super) fn new() -> Self {
        Self { next: Instant::NEVER, others: BinaryHeap::new() }
    }

    #[inline(always)]
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    #[inline(always)]
    pub(super) fn push(&mut self, at: Instant) {
        if self.next == Instant::NEVER {
            self.next = at;
        } else {
            self.others.push(Reverse(self.next.max(at)));
            self.next = self.next.min(at);
        }
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.next = self.others.pop().map_or(Instant::NEVER, |Reverse(at)| at);
    }
}
