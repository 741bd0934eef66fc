//! Links that flows share: a queue, and a wire behind it.
//!
//! A FIFO whose AQM decides on arrival needs no event per departure: when a packet is admitted, the start of its service and its
//! arrival at the far end are already known. Any other queue is a port that is served by events, in the order of time within the
//! link. Links that change, lose packets or delay them at random are [apart](super::changing).

#![expect(clippy::inline_always, reason = "see the event loop, which these calls are a part of")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::slice;

use perhop_core::aqm::{Aqm, AqmVisitor};
use perhop_core::control::Message;
use perhop_core::measure::{PortStatistics, PortView, TransitCounts};
use perhop_core::meter::AggregateMeters;
use perhop_core::scheduler::{
    Admitted, Departures, Discipline, FifoParams, Part, PrecomputedFifo, SchedulerParams,
};
use perhop_core::table::at_inner_key;
use perhop_core::units::UnitError;
use perhop_core::{
    Bitrate, Context, Duration, Environment, Instant, Offered, Port, PortVisitor, Rng, Served, Streams,
    TypedPort, prefetch, prefetch_start,
};

use super::JUST_AFTER;
use super::changing::{ChangingPort, UnevenWire};
use super::departures::MANY;
use super::traffic::Traffic;
use crate::engine::WATCH_INTERVAL;
use crate::engine::setup::Step;
use crate::engine::stepping::retuning;
use crate::network::LinkSpec;
use crate::packet::SimPacket;
use crate::wire::Wire;

/// One direction of a link that flows share.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// What takes packets to the far end, if departures are computed on arrival.
    wire: Wire,
    delay: Duration,
    /// The meters of the link, if it has any.
    meters: Option<Box<AggregateMeters>>,
    queue: Queue,
    /// The rate that its scheduler shares among its queues.
    shared: Bitrate,
    /// Some packets pass the meter of their flow or a control on their way to its queue.
    metered: bool,
    /// Some packets come to another link, or must wait for their time, behind it; else all go to a host.
    leads_on: bool,
}

#[derive(Clone, Debug)]
enum Queue {
    /// Without a limit, and not measured.
    Unlimited,
    /// Departures are computed on arrival.
    Precomputed(Box<Precomputed>),
    /// Departures are events.
    Served(Box<ServedPort>),
    /// Without a limit, and not measured; it loses or delays packets at random.
    Uneven(Box<UnevenWire>),
    /// The link changes, or loses or delays packets at random.
    Changing(Box<ChangingPort>),
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
        let changing = || ChangingPort::of(spec, streams, window).map(Queue::Changing);
        let special = UnevenWire::of(spec, streams).map(Queue::Uneven).or_else(changing);
        let ordinary = || match spec.queue.clone() {
            None => Queue::Unlimited,
            Some(SchedulerParams::Fifo(FifoParams { rule })) if rule.precomputable() => {
                let fifo = PrecomputedFifo::new(rule, Environment { rate: spec.rate }, streams.of("aqm"));
                Queue::Precomputed(Box::new(Precomputed {
                    fifo,
                    statistics: PortStatistics::new(spec.rate, window, 1),
                }))
            }
            Some(queue) => {
                let port = Port::new(queue, spec.rate, streams, window);
                Queue::Served(Box::new(ServedPort { port, services: Services::new() }))
            }
        };
        let queue = special.unwrap_or_else(ordinary);
        let wire = Wire::new(spec.rate, spec.delay);
        let meters = (!spec.meters.is_empty()).then(|| Box::new(AggregateMeters::new(&spec.meters, streams)));
        Self { wire, delay: spec.delay, meters, queue, shared: spec.rate, metered: false, leads_on: false }
    }

    /// It is one of many: see [`PortStatistics::note_delays`].
    pub(super) fn note_delays(&mut self) {
        match &mut self.queue {
            Queue::Unlimited | Queue::Uneven(_) => {}
            Queue::Precomputed(queue) => queue.statistics.note_delays(),
            Queue::Changing(changing) => changing.port.note_delays(),
            Queue::Served(served) => served.port.note_delays(),
        }
    }

    /// When everything is sent that it has taken so far.
    pub(super) fn busy_until(&self) -> Instant {
        match &self.queue {
            Queue::Unlimited | Queue::Uneven(_) | Queue::Precomputed(_) => self.wire.busy_until(),
            Queue::Changing(changing) => changing.port.busy_until(),
            Queue::Served(served) => served.port.busy_until(),
        }
    }

    /// When that has come to the far end.
    pub(super) fn empty_from(&self) -> Instant {
        self.busy_until() + self.delay
    }

    /// Shows every packet that waits in its port; other links know when their packets leave, which then are on their way.
    pub(super) fn inspect(&self, show: &mut dyn FnMut(&SimPacket)) {
        match &self.queue {
            Queue::Unlimited | Queue::Uneven(_) | Queue::Precomputed(_) => {}
            Queue::Changing(changing) => changing.port.inspect(show),
            Queue::Served(served) => served.port.inspect(show),
        }
    }

    /// Packets come soon: asks the processor for the link's queue.
    pub(super) fn prefetch(&self) {
        match &self.queue {
            Queue::Unlimited | Queue::Uneven(_) | Queue::Changing(_) => {}
            Queue::Precomputed(queue) => prefetch_start(&**queue),
            Queue::Served(served) => {
                served.port.prefetch();
                prefetch(slice::from_ref(&served.services));
            }
        }
    }

    /// The same for a part of the queue, some time later.
    #[inline]
    pub(super) fn prefetch_part(&self, part: Part) {
        if let Queue::Served(served) = &self.queue {
            served.port.prefetch_part(part);
        }
    }

    /// It is not to be served before this.
    #[inline(always)]
    pub(super) fn next_service(&self) -> Instant {
        match &self.queue {
            Queue::Served(served) => served.services.next(),
            Queue::Changing(changing) => changing.next(),
            Queue::Unlimited | Queue::Uneven(_) | Queue::Precomputed(_) => Instant::NEVER,
        }
    }

    /// Handles what comes to it before `bound`, and serves it as often as that is due before. Returns how many times it
    /// had to do something, and how many packets came. If the run is to end, it returns in between. Packets that leave it are among
    /// the [departures](super::departures).
    pub(super) fn run(&mut self, number: usize, bound: Instant, traffic: &mut Traffic) -> (u64, u64) {
        let Self { wire, delay, meters, queue, metered, leads_on, .. } = self;
        let mut gone = traffic.departures.lend(*leads_on);
        let (mut came, mut services, mut watch_at) = (0, 0, WATCH_INTERVAL);
        while let Some((mut packets, ready)) = traffic.links.queue(number).lend(bound) {
            let taken = ready.end;
            let mut ready = &mut packets[ready];
            came += ready.len() as u64;
            // In stages, each of which has the processor to itself.
            if *metered {
                ready = traffic.pass_first_routers(ready);
            }
            if let Some(meters) = meters {
                ready = traffic.pass_all(meters, ready);
            }
            match queue {
                Queue::Unlimited => {
                    for packet in ready.iter_mut() {
                        packet.put_off(wire.pass(packet.size(), packet.at()));
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
                    services += served.run(ready, Instant::ZERO, *delay, &mut gone, traffic);
                }
                Queue::Uneven(uneven) => {
                    uneven.pass(ready, wire);
                    traffic.leave_link(ready, *leads_on, &mut gone);
                }
                Queue::Changing(changing) => {
                    traffic.show(ready);
                    services += changing.run(ready, Instant::ZERO, &mut gone, traffic);
                }
            }
            traffic.links.queue(number).give_back(packets, taken);
            if gone.len() >= MANY {
                traffic.pass_on(&mut gone, *leads_on);
            }
            if came >= watch_at {
                if traffic.watch.is_stopped() {
                    break;
                }
                watch_at = came + WATCH_INTERVAL;
            }
        }
        match queue {
            Queue::Served(served) => services += served.run(&[], bound, *delay, &mut gone, traffic),
            Queue::Changing(changing) => services += changing.run(&[], bound, &mut gone, traffic),
            Queue::Unlimited | Queue::Uneven(_) | Queue::Precomputed(_) => {}
        }
        traffic.departures.give_back(gone, *leads_on);
        (came + services, came)
    }

    /// A control message for the AQM at which the packets of this path arrive.
    pub(super) fn on_message(&mut self, label: u32, message: &Message) {
        match &mut self.queue {
            Queue::Unlimited | Queue::Uneven(_) => {}
            Queue::Changing(changing) => changing.port.on_message(label, message),
            Queue::Precomputed(queue) => queue.fifo.on_message(message),
            Queue::Served(served) => served.port.on_message(label, message),
        }
    }

    /// See the reference engine's.
    ///
    /// # Errors
    /// The key that cannot change; the link must not be used any more then.
    pub(super) fn retune(
        &mut self,
        before: &LinkSpec,
        after: &LinkSpec,
        now: Instant,
    ) -> Result<(), UnitError> {
        let in_queue = |problem: UnitError| at_inner_key("queue", &problem);
        if let Some(to) = retuning(before, after, &mut self.shared, now) {
            match (&mut self.queue, to.after) {
                (Queue::Precomputed(queue), SchedulerParams::Fifo(FifoParams { rule })) => {
                    let environment = Environment { rate: to.rate };
                    queue.fifo.retune(rule.clone(), environment).map_err(in_queue)?;
                }
                (Queue::Served(served), _) => {
                    served.port.retune(&to).map_err(in_queue)?;
                    if served.port.is_held() {
                        served.services.push(now);
                    }
                }
                (Queue::Changing(changing), _) => changing.retune(&to, now).map_err(in_queue)?,
                _ => {}
            }
        }
        let Some(meters) = &mut self.meters else { return Ok(()) };
        let retuned = meters.retune((&before.meters, &after.meters), now);
        retuned.map_err(|problem| at_inner_key("meters", &problem))
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
        match &mut self.queue {
            Queue::Served(served) => served.port.finish(now),
            Queue::Changing(changing) => changing.port.finish(now),
            Queue::Unlimited | Queue::Uneven(_) | Queue::Precomputed(_) => {}
        }
    }

    /// What waits and what went through, if the link has a queue under an AQM. Call [`settle`](Self::settle) first.
    pub(super) fn port(&self) -> Option<PortView<'_>> {
        let meters = self.meters.as_ref().map_or_else(Vec::new, |meters| meters.counts());
        match &self.queue {
            Queue::Unlimited | Queue::Uneven(_) => None,
            Queue::Changing(changing) => Some(PortView { meters, ..changing.view() }),
            Queue::Precomputed(queue) => Some(PortView {
                classes: vec![("all", queue.fifo.counters())],
                meters,
                statistics: &queue.statistics,
                gauges: queue.fifo.gauges(),
                transit: TransitCounts::default(),
            }),
            Queue::Served(served) => Some(PortView { meters, ..served.port.view() }),
        }
    }
}

/// Sets, for each link, what its packets pass before and behind it.
pub(super) fn set_routes(links: &mut [Link], steps: &[Step]) {
    for pair in steps.windows(2) {
        let (Step::Link(link) | Step::Metered(link)) = pair[0] else { continue };
        let link = &mut links[link as usize];
        link.metered |= matches!(pair[0], Step::Metered(_));
        link.leads_on |= !matches!(pair[1], Step::ReceiverWire | Step::SenderWire);
    }
}

/// Packets that arrive at a queue whose departures are computed on arrival. They leave it with the times of their arrival at
/// the far end, or marked as lost.
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
    /// Takes packets that arrive at the queue, serves the port whenever that is due meanwhile, and then as often as it is due before
    /// `bound`. What leaves goes to `gone`, with the times of its arrival at the far end, or marked as lost. Returns how often the port
    /// was served.
    fn run(
        &mut self,
        packets: &[SimPacket],
        bound: Instant,
        delay: Duration,
        gone: &mut Vec<SimPacket>,
        traffic: &Traffic,
    ) -> u64 {
        let Self { port, services } = self;
        if packets.is_empty() && services.next() >= bound {
            return 0;
        }
        let before = gone.len();
        let services = Serving { services, gone, delay, served: 0 };
        let served = port.accept(Batch { packets, bound, services });
        traffic.take_back(&mut gone[before..]);
        served
    }
}

/// Packets arrive at a port, which is served until `bound`.
struct Batch<'a> {
    packets: &'a [SimPacket],
    bound: Instant,
    services: Serving<'a>,
}

impl PortVisitor<SimPacket> for Batch<'_> {
    type Output = u64;

    fn visit<D: Discipline<SimPacket>>(self, mut port: TypedPort<'_, D>) -> u64 {
        let Self { packets, bound, mut services } = self;
        for packet in packets {
            let now = packet.at();
            services.serve_before(&mut port, now.later(JUST_AFTER)); // The port was there first.
            let offered = port.offer(*packet, now);
            while let Some((packet, _)) = port.shed(now) {
                services.lose(packet);
            }
            match offered {
                Offered::Queued => {}
                Offered::Idle => services.begin(now),
                Offered::Dropped(packet, _) => services.lose(packet),
            }
        }
        let begun = packets.last().map_or(Instant::ZERO, |last| last.at() + JUST_AFTER);
        services.serve_before(&mut port, bound.max(begun));
        services.served
    }
}

/// What the service of a port needs and leaves.
struct Serving<'a> {
    services: &'a mut Services,
    gone: &'a mut Vec<SimPacket>,
    delay: Duration,
    served: u64,
}

impl Serving<'_> {
    /// The link is free and a packet waits: the port is to be served at once, which is no event of its own.
    #[inline(always)]
    fn begin(&mut self, now: Instant) {
        self.services.push(now);
        self.served = self.served.wrapping_sub(1);
    }

    /// Serves the port as often as that is due before `bound`.
    #[inline(always)]
    fn serve_before<D: Discipline<SimPacket>>(&mut self, port: &mut TypedPort<'_, D>, bound: Instant) {
        while self.services.next() < bound {
            let now = self.services.next();
            self.services.pop();
            self.served = self.served.wrapping_add(1);
            self.serve(port, now);
        }
    }

    /// Serves the port until it has sent something or has nothing to send.
    #[inline(always)]
    fn serve<D: Discipline<SimPacket>>(&mut self, port: &mut TypedPort<'_, D>, now: Instant) {
        loop {
            match port.serve(now) {
                Served::Sent(packet, free_at) => {
                    self.services.push(free_at);
                    return self.gone.push(packet.due(free_at + self.delay));
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
