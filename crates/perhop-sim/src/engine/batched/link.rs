//! Links that flows share: a queue, and a wire behind it.
//!
//! A FIFO whose AQM decides on arrival needs no event per departure: when a packet is admitted, the start of its service and its
//! arrival at the far end are already known. Any other queue is a port that is served by events, in the order of time within the
//! link.

#![expect(clippy::inline_always, reason = "see the event loop, which these calls are a part of")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use perhop_core::aqm::{Aqm, AqmVisitor};
use perhop_core::control::Message;
use perhop_core::measure::{PortStatistics, PortView, TransitCounts};
use perhop_core::meter::AggregateMeters;
use perhop_core::scheduler::{Admitted, Departures, FifoParams, PrecomputedFifo, SchedulerParams};
use perhop_core::{Context, Duration, Environment, Instant, Offered, Port, Rng, Served, Streams};

use super::traffic::Traffic;
use crate::engine::WATCH_INTERVAL;
use crate::engine::setup::Step;
use crate::network::LinkSpec;
use crate::packet::{Queued, SimPacket};
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
}

#[derive(Clone, Debug)]
struct Precomputed {
    fifo: PrecomputedFifo,
    statistics: PortStatistics,
}

#[derive(Clone, Debug)]
struct ServedPort {
    port: Port<Queued>,
    /// When it is to be served.
    services: BinaryHeap<Reverse<Instant>>,
}

impl Link {
    /// An idle link; statistics cover the given window.
    pub(super) fn new(spec: &LinkSpec, seed: u64, window: (Instant, Instant)) -> Self {
        let path = format!("links/{}", spec.name);
        let streams = Streams { seed, path: &path };
        let queue = match spec.queue.clone() {
            None => Queue::Unlimited,
            Some(SchedulerParams::Fifo(FifoParams { rule })) if rule.precomputable() => {
                let fifo = PrecomputedFifo::new(rule, Environment { rate: spec.rate }, streams.of("aqm"));
                Queue::Precomputed(Box::new(Precomputed { fifo, statistics: PortStatistics::new(window, 1) }))
            }
            Some(queue) => {
                let port = Port::new(queue, spec.rate, streams, window);
                Queue::Served(Box::new(ServedPort { port, services: BinaryHeap::new() }))
            }
        };
        let wire = Wire::new(spec.rate, spec.delay);
        let meters = (!spec.meters.is_empty()).then(|| Box::new(AggregateMeters::new(&spec.meters, streams)));
        Self { wire, delay: spec.delay, meters, queue, metered: false, leads_on: false }
    }

    /// When everything is sent that it has taken so far.
    pub(super) fn busy_until(&self) -> Instant {
        match &self.queue {
            Queue::Unlimited | Queue::Precomputed(_) => self.wire.busy_until(),
            Queue::Served(served) => served.port.busy_until(),
        }
    }

    /// When that has come to the far end.
    pub(super) fn empty_from(&self) -> Instant {
        self.busy_until() + self.delay
    }

    /// It is not to be served before this.
    #[inline(always)]
    pub(super) fn next_service(&self) -> Instant {
        match &self.queue {
            Queue::Served(served) => served.next_service(),
            Queue::Unlimited | Queue::Precomputed(_) => Instant::NEVER,
        }
    }

    /// Handles what comes to it before `bound`, and serves it as often as that is due before. Returns how many times it
    /// had to do something, and how many packets came. If the run is to end, it returns in between.
    pub(super) fn run(&mut self, number: usize, bound: Instant, traffic: &mut Traffic) -> (u64, u64) {
        let Self { wire, delay, meters, queue, metered, leads_on } = self;
        if let Queue::Served(served) = queue {
            return served.run(number, bound, *delay, meters.as_deref_mut(), traffic);
        }
        let (mut came, mut watch_at) = (0, WATCH_INTERVAL);
        while let Some((mut packets, ready)) = traffic.links[number].lend(bound) {
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
                }
                Queue::Precomputed(queue) => {
                    let Precomputed { fifo, statistics } = &mut **queue;
                    let (aqm, rng, departures) = fifo.parts();
                    aqm.accept(Admission { packets: ready, wire, departures, statistics, rng });
                }
                Queue::Served(_) => unreachable!("it has its own loop"),
            }
            if *leads_on {
                traffic.forward_all(ready);
            } else {
                traffic.approach_all(ready);
            }
            traffic.links[number].give_back(packets, taken);
            if came >= watch_at {
                if traffic.watch.is_stopped() {
                    break;
                }
                watch_at = came + WATCH_INTERVAL;
            }
        }
        (came, came)
    }

    /// A control message for the AQM at which the packets of this path arrive.
    pub(super) fn on_message(&mut self, label: u32, message: &Message) {
        match &mut self.queue {
            Queue::Unlimited => {}
            Queue::Precomputed(queue) => queue.fifo.on_message(message),
            Queue::Served(served) => served.port.on_message(label, message),
        }
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

    /// What waits and what went through, if the link has a queue under an AQM. Call [`settle`](Self::settle) first.
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
    fn next_service(&self) -> Instant {
        self.services.peek().map_or(Instant::NEVER, |&Reverse(at)| at)
    }

    /// See [`Link::run`].
    fn run(
        &mut self,
        number: usize,
        bound: Instant,
        delay: Duration,
        mut meters: Option<&mut AggregateMeters>,
        traffic: &mut Traffic,
    ) -> (u64, u64) {
        let (mut handled, mut came, mut watch_at) = (0, 0, WATCH_INTERVAL);
        loop {
            if handled >= watch_at {
                if traffic.watch.is_stopped() {
                    return (handled, came);
                }
                watch_at = handled + WATCH_INTERVAL;
            }
            let due = self.next_service();
            if let Some(packet) = traffic.links[number].pop(bound.min(due)) {
                came += 1;
                let packet = traffic.pass_first_router(packet);
                let packet = match &mut meters {
                    Some(meters) => packet.and_then(|packet| traffic.pass(meters, packet)),
                    None => packet,
                };
                if let Some(packet) = packet {
                    self.offer(packet.onward(), delay, traffic);
                }
            } else if due < bound {
                self.services.pop();
                self.serve(due, delay, traffic);
            } else {
                return (handled, came);
            }
            handled += 1;
        }
    }

    /// A packet arrives at the queue.
    fn offer(&mut self, packet: SimPacket, delay: Duration, traffic: &mut Traffic) {
        let now = packet.at();
        let offered = self.port.offer(packet.into(), now);
        while let Some((packet, _)) = self.port.shed(now) {
            traffic.lose(packet.into());
        }
        match offered {
            Offered::Queued => {}
            Offered::Idle => self.serve(now, delay, traffic),
            Offered::Dropped(packet, _) => traffic.lose(packet.into()),
        }
    }

    /// Serves the port until it has sent something or has nothing to send.
    fn serve(&mut self, now: Instant, delay: Duration, traffic: &mut Traffic) {
        loop {
            match self.port.serve(now) {
                Served::Sent(packet, free_at) => {
                    self.services.push(Reverse(free_at));
                    return traffic.forward(packet.into(), free_at + delay);
                }
                Served::Dropped(packet, _) => traffic.lose(packet.into()),
                Served::Later(at) => return self.services.push(Reverse(at)),
                Served::Nothing => return,
            }
        }
    }
}
