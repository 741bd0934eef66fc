//! Links that flows share: a queue, and a wire behind it.
//!
//! A FIFO whose AQM decides on arrival needs no event per departure: when a packet is admitted, the start of its service and its
//! arrival at the far end are already known ([`Service::OnDemand`]). Any queue can be driven by events, as a router drives it
//! ([`Service::ByEvent`]); those that choose among packets, or whose AQM decides at departure, must be. Both give the same
//! result, event for event.

#![expect(clippy::inline_always, reason = "see the event loop, which these calls are a part of")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use perhop_core::aqm::{Aqm, AqmVisitor};
use perhop_core::control::Message;
use perhop_core::measure::{PortStatistics, PortView};
use perhop_core::scheduler::{Admitted, Departures, FifoParams, PrecomputedFifo, SchedulerParams};
use perhop_core::{Bitrate, Context, Duration, Environment, Instant, Offered, Port, Rng, Served, Streams};

use crate::packet::{Queued, SimPacket};
use crate::simulation::WATCHED_AFTER;
use crate::traffic::{Service, Traffic};
use crate::wire::Wire;

/// One direction of a link that flows share.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// What takes packets to the far end, if departures are computed on arrival.
    wire: Wire,
    delay: Duration,
    queue: Queue,
    /// Some packets pass a meter or a control on their way to its queue.
    metered: bool,
    /// Some packets come to another link, or must wait for their time, behind it; else all go to a host.
    leads_on: bool,
}

#[derive(Clone, Debug)]
enum Queue {
    /// Endless and unobserved: an uncongested reverse path.
    Endless,
    /// Departures are computed on arrival.
    Precomputed(Box<Precomputed>),
    /// Departures are events.
    ByEvent(Box<ByEvent>),
}

#[derive(Clone, Debug)]
struct Precomputed {
    fifo: PrecomputedFifo,
    statistics: PortStatistics,
}

#[derive(Clone, Debug)]
struct ByEvent {
    port: Port<Queued>,
    /// When it is to be served.
    serves: BinaryHeap<Reverse<Instant>>,
}

impl Link {
    /// A link without a limit to its queue.
    pub(crate) fn open(rate: Bitrate, delay: Duration) -> Self {
        let wire = Wire::new(rate, delay);
        Self { wire, delay, queue: Queue::Endless, metered: false, leads_on: false }
    }

    /// A link with a queue under an AQM, with these random streams; statistics cover the given window.
    pub(crate) fn with_queue(
        rate: Bitrate,
        delay: Duration,
        queue: SchedulerParams,
        streams: Streams<'_>,
        window: (Instant, Instant),
        service: Service,
    ) -> Self {
        let queue = match (service, queue) {
            (Service::OnDemand, SchedulerParams::Fifo(FifoParams { rule })) if rule.precomputable() => {
                let fifo = PrecomputedFifo::new(rule, Environment { rate }, streams.of("aqm"));
                Queue::Precomputed(Box::new(Precomputed { fifo, statistics: PortStatistics::new(window, 1) }))
            }
            (_, queue) => {
                let port = Port::new(queue, rate, streams, window);
                Queue::ByEvent(Box::new(ByEvent { port, serves: BinaryHeap::new() }))
            }
        };
        Self { queue, ..Self::open(rate, delay) }
    }

    /// When everything is sent that it has taken so far.
    pub(crate) fn busy_until(&self) -> Instant {
        match &self.queue {
            Queue::Endless | Queue::Precomputed(_) => self.wire.busy_until(),
            Queue::ByEvent(served) => served.port.busy_until(),
        }
    }

    /// When that has come to the far end.
    pub(crate) fn empty_from(&self) -> Instant {
        self.busy_until() + self.delay
    }

    /// Some packets pass a meter or a control on their way to the queue.
    pub(crate) fn set_metered(&mut self) {
        self.metered = true;
    }

    /// Some packets do not go straight to a host behind it.
    pub(crate) fn set_leads_on(&mut self) {
        self.leads_on = true;
    }

    /// It is not to be served before this.
    #[inline(always)]
    pub(crate) fn next_serve(&self) -> Instant {
        match &self.queue {
            Queue::ByEvent(served) => served.next_serve(),
            Queue::Endless | Queue::Precomputed(_) => Instant::NEVER,
        }
    }

    /// Handles what comes to it before `bound`, and serves it as often as that is due before. Returns how many times it
    /// had to do something, and how many packets came. If the run is to end, it returns in between.
    pub(crate) fn run(&mut self, inbox: usize, bound: Instant, traffic: &mut Traffic) -> (u64, u64) {
        let Self { wire, delay, queue, metered, leads_on } = self;
        if let Queue::ByEvent(served) = queue {
            return served.run(inbox, bound, *delay, traffic);
        }
        let (mut came, mut watch_at) = (0, WATCHED_AFTER);
        while let Some((mut packets, ready)) = traffic.inboxes[inbox].lend(bound) {
            let taken = ready.end;
            let ready = &mut packets[ready];
            came += ready.len() as u64;
            // In stages, each of which has the processor to itself.
            if *metered {
                for packet in ready.iter_mut() {
                    *packet = traffic.meter(*packet);
                }
            }
            match queue {
                Queue::Endless => {
                    for packet in ready.iter_mut() {
                        packet.put_off(wire.pass(packet.size(), packet.at()));
                    }
                }
                Queue::Precomputed(queue) => {
                    let Precomputed { fifo, statistics } = &mut **queue;
                    let (aqm, rng, departures) = fifo.parts();
                    aqm.accept(Admission { packets: ready, wire, departures, statistics, rng });
                }
                Queue::ByEvent(_) => unreachable!("it has its own loop"),
            }
            if *leads_on {
                traffic.carry_all(ready);
            } else {
                traffic.approach_all(ready);
            }
            traffic.inboxes[inbox].give_back(packets, taken);
            if came >= watch_at {
                if traffic.watch.is_stopped() {
                    break;
                }
                watch_at = came + WATCHED_AFTER;
            }
        }
        (came, came)
    }

    /// A control message for the AQM at which the packets of this path arrive.
    pub(crate) fn on_message(&mut self, label: u32, message: &Message) {
        match &mut self.queue {
            Queue::Endless => {}
            Queue::Precomputed(queue) => queue.fifo.on_message(message),
            Queue::ByEvent(served) => served.port.on_message(label, message),
        }
    }

    /// Brings the queue's counters up to `now`.
    pub(crate) fn settle(&mut self, now: Instant) {
        if let Queue::Precomputed(queue) = &mut self.queue {
            queue.fifo.settle(now);
        }
    }

    /// Ends the run: what still waits has waited until now.
    pub(crate) fn finish(&mut self, now: Instant) {
        self.settle(now);
        if let Queue::ByEvent(served) = &mut self.queue {
            served.port.finish(now);
        }
    }

    /// What waits and what went through, if the link has a queue under an AQM. Call [`settle`](Self::settle) first.
    pub(crate) fn port(&self) -> Option<PortView<'_>> {
        match &self.queue {
            Queue::Endless => None,
            Queue::Precomputed(queue) => Some(PortView {
                classes: vec![("all", queue.fifo.counters())],
                statistics: &queue.statistics,
                gauges: queue.fifo.gauges(),
            }),
            Queue::ByEvent(served) => Some(served.port.view()),
        }
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

impl ByEvent {
    fn next_serve(&self) -> Instant {
        self.serves.peek().map_or(Instant::NEVER, |&Reverse(at)| at)
    }

    /// See [`Link::run`].
    fn run(&mut self, inbox: usize, bound: Instant, delay: Duration, traffic: &mut Traffic) -> (u64, u64) {
        let (mut handled, mut came, mut watch_at) = (0, 0, WATCHED_AFTER);
        loop {
            if handled >= watch_at {
                if traffic.watch.is_stopped() {
                    return (handled, came);
                }
                watch_at = handled + WATCHED_AFTER;
            }
            let due = self.next_serve();
            if let Some(packet) = traffic.inboxes[inbox].pop(bound.min(due)) {
                came += 1;
                self.offer(traffic.meter(packet).onward(), delay, traffic);
            } else if due < bound {
                self.serves.pop();
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
                    self.serves.push(Reverse(free_at));
                    return traffic.carry(packet.into(), free_at + delay);
                }
                Served::Dropped(packet, _) => traffic.lose(packet.into()),
                Served::Later(at) => return self.serves.push(Reverse(at)),
                Served::Nothing => return,
            }
        }
    }
}
