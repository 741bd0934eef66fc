//! Links that flows share: a port with its queue, and a wire behind it.
//!
//! A queue that decides at its tail needs no event per departure: when a packet is accepted, its service start and its
//! arrival at the far end are already known. Such a port keeps a ring of service starts and lets packets "leave" when
//! next looked at ([`Service::OnDemand`]). Any port can be driven call by call, as a live router drives it
//! ([`Service::ByEvent`]), and those that choose among packets must be; both give the same result, event for event.

#![expect(clippy::inline_always, reason = "see the event loop, which these calls are a part of")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use perhop_core::aqm::{Aqm, RuleVisitor};
use perhop_core::control::Message;
use perhop_core::measure::{PortStatistics, PortView};
use perhop_core::scheduler::{
    AnyScheduler, Dequeued, Discipline, FifoParams, ForeseenBooks, ForeseenFifo, SchedulerParams,
};
use perhop_core::{Bitrate, Context, Duration, Environment, Header, Instant, Packet, Rng};

use crate::packet::{Queued, SimPacket};
use crate::simulation::WATCHED_AFTER;
use crate::traffic::{Service, Traffic};
use crate::wire::Wire;

/// One direction of a link that flows share.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    wire: Wire,
    port: Port,
    /// Some packets pass a meter or a control on their way to its queue.
    metered: bool,
    /// Some packets come to another link, or must wait for their time, behind it; else all go to a host.
    leads_on: bool,
}

#[derive(Clone, Debug)]
enum Port {
    /// Endless and unobserved: an uncongested reverse path.
    Open,
    OnDemand(Box<OnDemandPort>),
    ByEvent(Box<ByEventPort>),
}

#[derive(Clone, Debug)]
struct OnDemandPort {
    queue: ForeseenFifo,
    statistics: PortStatistics,
    rng: Rng,
}

#[derive(Clone, Debug)]
struct ByEventPort {
    queue: AnyScheduler<Queued>,
    statistics: PortStatistics,
    /// Chance for each of the queue's rules, and for its scheduler.
    rule_rngs: Vec<Rng>,
    scheduler_rng: Rng,
    idle: bool,
    /// When it asked last to be served, having something that may not go before.
    waits_until: Instant,
    /// When it is to be served.
    serves: BinaryHeap<Reverse<Instant>>,
}

impl Link {
    /// A link without a limit to its queue.
    pub(crate) fn open(rate: Bitrate, delay: Duration) -> Self {
        Self { wire: Wire::new(rate, delay), port: Port::Open, metered: false, leads_on: false }
    }

    /// A link with a ruled queue, whose random streams lie under `path`; statistics cover the given window.
    pub(crate) fn with_queue(
        rate: Bitrate,
        delay: Duration,
        queue: SchedulerParams,
        (seed, path): (u64, &str),
        window: (Instant, Instant),
        service: Service,
    ) -> Self {
        let environment = Environment { rate };
        let aqm = || Rng::stream(seed, &format!("{path}/aqm"));
        let port = match (service, queue) {
            (Service::OnDemand, SchedulerParams::Fifo(FifoParams { rule })) => {
                let statistics = PortStatistics::new(window, 1);
                let queue = ForeseenFifo::new(rule, environment);
                Port::OnDemand(Box::new(OnDemandPort { queue, statistics, rng: aqm() }))
            }
            (_, queue) => {
                let queue = queue.build(environment);
                let statistics = PortStatistics::new(window, queue.ledgers().len());
                let rule_rngs = match queue.rules() {
                    1 => vec![aqm()],
                    rules => (0..rules)
                        .map(|rule| {
                            Rng::stream(seed, &format!("{path}/queues/{}/aqm", queue.class_name(rule)))
                        })
                        .collect(),
                };
                Port::ByEvent(Box::new(ByEventPort {
                    queue,
                    statistics,
                    rule_rngs,
                    scheduler_rng: Rng::stream(seed, &format!("{path}/scheduler")),
                    idle: true,
                    waits_until: Instant::ZERO,
                    serves: BinaryHeap::new(),
                }))
            }
        };
        Self { port, ..Self::open(rate, delay) }
    }

    /// When everything is sent that it has taken so far.
    pub(crate) fn busy_until(&self) -> Instant {
        self.wire.busy_until()
    }

    /// When that has come to the far end.
    pub(crate) fn empty_from(&self) -> Instant {
        self.wire.empty_from()
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
        match &self.port {
            Port::ByEvent(port) => port.next_serve(),
            Port::Open | Port::OnDemand(_) => Instant::NEVER,
        }
    }

    /// Handles what comes to it before `bound`, and serves it as often as that is due before. Returns how many times it
    /// had to do something, and how many packets came. If the run is to end, it returns in between.
    pub(crate) fn run(&mut self, inbox: usize, bound: Instant, traffic: &mut Traffic) -> (u64, u64) {
        let Self { wire, port, metered, leads_on } = self;
        if let Port::ByEvent(port) = port {
            return port.run(inbox, bound, wire, traffic);
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
            match port {
                Port::Open => {
                    for packet in ready.iter_mut() {
                        packet.put_off(wire.pass(packet.size(), packet.at()));
                    }
                }
                Port::OnDemand(port) => {
                    let OnDemandPort { queue, statistics, rng } = &mut **port;
                    let (rule, books) = queue.parts();
                    rule.accept(UnderRule { packets: ready, wire, books, statistics, rng });
                }
                Port::ByEvent(_) => unreachable!("it has its own way"),
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

    /// Another block tells something to the rule that the packets of this path meet here.
    pub(crate) fn on_message(&mut self, label: u32, message: &Message) {
        match &mut self.port {
            Port::Open => {}
            Port::OnDemand(port) => port.queue.on_message(message),
            Port::ByEvent(port) => port.queue.on_message(label, message),
        }
    }

    /// Brings the port's counts up to `now`.
    pub(crate) fn settle(&mut self, now: Instant) {
        if let Port::OnDemand(port) = &mut self.port {
            port.queue.settle(now);
        }
    }

    /// Ends the run: what still waits has waited until now.
    pub(crate) fn finish(&mut self, now: Instant) {
        self.settle(now);
        if let Port::ByEvent(port) = &mut self.port {
            let ByEventPort { queue, statistics, .. } = &mut **port;
            queue.inspect(&mut |held| statistics.wait(held.header().arrived, now));
        }
    }

    /// What waits and what went through, if the link has a ruled queue. Call [`settle`](Self::settle) first.
    pub(crate) fn port(&self) -> Option<PortView<'_>> {
        match &self.port {
            Port::Open => None,
            Port::OnDemand(port) => Some(PortView {
                classes: vec![("all", port.queue.ledger())],
                statistics: &port.statistics,
                gauges: port.queue.gauges(),
            }),
            Port::ByEvent(port) => {
                let ledgers = port.queue.ledgers().iter().enumerate();
                Some(PortView {
                    classes: ledgers.map(|(class, ledger)| (port.queue.class_name(class), ledger)).collect(),
                    statistics: &port.statistics,
                    gauges: port.queue.gauges(),
                })
            }
        }
    }
}

/// Packets that come to a queue whose departures are worked out on arrival. They leave it with the times of their arrival at
/// the far end, or lost.
struct UnderRule<'a> {
    packets: &'a mut [SimPacket],
    wire: &'a mut Wire,
    books: &'a mut ForeseenBooks,
    statistics: &'a mut PortStatistics,
    rng: &'a mut Rng,
}

impl RuleVisitor for UnderRule<'_> {
    type Output = ();

    fn visit<R: Aqm>(self, rule: &mut R) {
        let Self { packets, wire, books, statistics, rng } = self;
        for packet in packets {
            let now = packet.at();
            books.settle(now);
            let cx = &mut Context { now, rng };
            let mut header = packet.header();
            match books.admit(rule, &mut header, wire.busy_until(), cx, |_| *packet = packet.notified()) {
                Ok(service) => {
                    statistics.serve(0, now, service, header.size, header.color);
                    packet.put_off(wire.pass(header.size, now));
                }
                Err(_) => packet.lose(),
            }
        }
    }
}

impl ByEventPort {
    fn next_serve(&self) -> Instant {
        self.serves.peek().map_or(Instant::NEVER, |&Reverse(at)| at)
    }

    /// See [`Link::run`].
    fn run(&mut self, inbox: usize, bound: Instant, wire: &mut Wire, traffic: &mut Traffic) -> (u64, u64) {
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
                self.offer(traffic.meter(packet).onward(), wire, traffic);
            } else if due < bound {
                self.serves.pop();
                self.serve(due, wire, traffic);
            } else {
                return (handled, came);
            }
            handled += 1;
        }
    }

    /// A packet comes to the queue.
    fn offer(&mut self, packet: SimPacket, wire: &mut Wire, traffic: &mut Traffic) {
        let now = packet.at();
        let rng = match &mut self.rule_rngs[..] {
            [rng] => rng,
            rngs => &mut rngs[self.queue.class_of(&packet.header())],
        };
        match self.queue.enqueue(packet.into(), &mut Context { now, rng }) {
            Err((packet, _)) => traffic.lose(packet.into()),
            Ok(()) if self.idle => self.serve(now, wire, traffic),
            Ok(()) => {}
        }
    }

    /// Serves the queue at the end of a transmission, or when it asked for it, until it has sent something or has nothing
    /// to send.
    fn serve(&mut self, now: Instant, wire: &mut Wire, traffic: &mut Traffic) {
        if now < wire.busy_until() {
            return; // It waited, but a packet that came meanwhile could go.
        }
        loop {
            match self.queue.dequeue(&mut Context { now, rng: &mut self.scheduler_rng }) {
                Dequeued::Sent(packet) => {
                    self.idle = false;
                    let Header { arrived, size, color, .. } = *packet.header();
                    let class = self.queue.class_of(packet.header());
                    self.statistics.serve(class, arrived, now, size, color);
                    let arrival = wire.pass(size, now);
                    self.serves.push(Reverse(wire.busy_until()));
                    return traffic.carry(packet.into(), arrival);
                }
                Dequeued::Dropped(packet, _) => traffic.lose(packet.into()),
                Dequeued::Wait(until) => {
                    self.idle = true;
                    if let Some(until) = until.filter(|&until| until != self.waits_until) {
                        self.waits_until = until;
                        self.serves.push(Reverse(until));
                    }
                    return;
                }
            }
        }
    }
}
