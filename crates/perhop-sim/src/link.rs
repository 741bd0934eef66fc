//! Links: those that flows share, each with what comes to it, a port with its queue, a serializer and a delay; and wires,
//! the private links between a host and its router.
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
use perhop_core::scheduler::{
    AnyScheduler, Dequeued, Discipline, FifoParams, ForeseenBooks, ForeseenFifo, SchedulerParams,
};
use perhop_core::{
    Bitrate, Color, Context, Counters, Duration, Environment, Header, Instant, Ledger, Packet, Rng,
    Serializer,
};

use crate::histogram::DelayHistogram;
use crate::packet::{Queued, SimPacket};
use crate::traffic::Traffic;

/// How a run is driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// Departures are worked out on arrival, without events, where the queue decides at its tail; what nobody else can
    /// change is done at once; links run ahead of one another as far as they may: the fast path.
    #[default]
    OnDemand,
    /// One event at the end of each transmission asks the discipline for the next packet, each hop is an event, and all
    /// happen in the order of time: the plain way, against which the other is tested.
    ByEvent,
}

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

/// Sends packets one after the other, and takes them to the far end. A link between a host and its router is no more than
/// that: endless and unobserved.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    busy_until: Instant,
    delay: Duration,
    /// Packets of this size take this many nanoseconds, exactly. Most packets on a wire are of one size.
    size: u16,
    nanos: u32,
    /// For those that do not; `None` in place of a wire, where a host sits at its router.
    serializer: Option<Box<Serializer>>,
}

const _: () = assert!(size_of::<Wire>() == 32);

impl Wire {
    /// An idle one.
    pub(crate) fn new(rate: Bitrate, delay: Duration) -> Self {
        Self { delay, serializer: Some(Box::new(Serializer::new(rate))), ..Self::none() }
    }

    /// In place of a wire: the host sits at its router.
    pub(crate) fn none() -> Self {
        Self { busy_until: Instant::ZERO, delay: Duration::ZERO, size: 0, nanos: 0, serializer: None }
    }

    /// When everything is sent that was put on it.
    #[inline(always)]
    pub(crate) fn busy_until(&self) -> Instant {
        self.busy_until
    }

    /// Puts `size` bytes on the wire as soon as it is free, and says when they reach the far end.
    #[inline(always)]
    pub(crate) fn pass(&mut self, size: u16, now: Instant) -> Instant {
        if size != self.size {
            return self.pass_other(size, now);
        }
        self.busy_until = self.busy_until.max(now) + Duration::from_nanos(u64::from(self.nanos));
        self.busy_until + self.delay
    }

    #[cold]
    fn pass_other(&mut self, size: u16, now: Instant) -> Instant {
        let Some(serializer) = &mut self.serializer else { return now };
        self.busy_until = serializer.transmit(size, self.busy_until.max(now));
        if let Some(nanos) = serializer.exactly(size).and_then(|nanos| u32::try_from(nanos).ok()) {
            (self.size, self.nanos) = (size, nanos);
        }
        self.busy_until + self.delay
    }
}

#[derive(Clone, Debug)]
enum Port {
    /// Endless and unobserved: an uncongested reverse path.
    Open,
    OnDemand(Box<OnDemandPort>),
    ByEvent(Box<ByEventPort>),
}

/// What is counted at a port besides packets.
#[derive(Clone, Debug)]
pub struct PortStatistics {
    window: (Instant, Instant),
    /// Sum of the times that packets waited within the window, in nanoseconds.
    waited: u64,
    /// Bytes whose transmission began within the window, and the last of these transmissions: its start and size.
    bytes: u64,
    last: (Instant, u16),
    /// Waiting times of packets that arrived after the warm-up, by class.
    pub delays: Vec<DelayHistogram>,
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

impl PortStatistics {
    fn new(window: (Instant, Instant), classes: usize) -> Self {
        let delays = vec![DelayHistogram::default(); classes];
        Self { window, waited: 0, bytes: 0, last: (window.0, 0), delays }
    }

    /// A packet that came at `arrived` begins its transmission, now or later.
    #[inline(always)]
    fn serve(&mut self, class: usize, arrived: Instant, service: Instant, size: u16, color: Color) {
        let (begin, end) = self.window;
        if arrived < begin || service >= end {
            return self.serve_outside(class, arrived, service, size, color);
        }
        let waited = service.since(arrived);
        self.waited += waited.as_nanos();
        self.bytes += u64::from(size);
        self.last = (service, size);
        self.delays[class].record(color, waited);
    }

    /// As [`serve`](Self::serve), not quite within the window.
    #[cold]
    fn serve_outside(&mut self, class: usize, arrived: Instant, service: Instant, size: u16, color: Color) {
        let (begin, end) = self.window;
        self.wait(arrived, service);
        if service >= begin && service < end {
            self.bytes += u64::from(size);
            self.last = (service, size);
        }
        if arrived >= begin && service <= end {
            self.delays[class].record(color, service.since(arrived));
        }
    }

    /// A packet waited from `arrived` until then.
    #[inline]
    fn wait(&mut self, arrived: Instant, until: Instant) {
        let (begin, end) = self.window;
        self.waited += until.min(end).since(arrived.max(begin)).as_nanos();
    }

    /// Mean number of packets waiting over the measured time, by Little's law: the sum of their waits over the time.
    pub fn mean_packets(&self) -> f64 {
        self.waited as f64 / self.window.1.since(self.window.0).as_nanos() as f64
    }

    /// Share of the measured time in which a link of this rate transmitted, the packet at its end counted as far as it
    /// got.
    pub fn utilization(&self, rate: Bitrate) -> f64 {
        let (begin, end) = self.window;
        let seconds = |bytes: u64| bytes as f64 * 8.0 / rate.as_bps() as f64;
        let (service, size) = self.last;
        let beyond = (seconds(u64::from(size)) - end.since(service).as_secs_f64()).max(0.0);
        (seconds(self.bytes) - beyond) / end.since(begin).as_secs_f64()
    }
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
    /// had to do something, and how many packets came.
    pub(crate) fn run(&mut self, inbox: usize, bound: Instant, traffic: &mut Traffic) -> (u64, u64) {
        let Self { wire, port, metered, leads_on } = self;
        if let Port::ByEvent(port) = port {
            return port.run(inbox, bound, wire, traffic);
        }
        let mut came = 0;
        while let Some((mut packets, ready)) = traffic.inboxes[inbox].lend(bound) {
            let taken = ready.end;
            came += ready.len() as u64;
            if *metered {
                packets[ready.clone()].iter_mut().for_each(|packet| *packet = traffic.meter(*packet));
            }
            let pass = Pass { packets: &packets[ready], wire, leads_on: *leads_on, traffic };
            match port {
                Port::Open => pass.through(|_, _| true),
                Port::OnDemand(port) => {
                    let OnDemandPort { queue, statistics, rng } = &mut **port;
                    let (rule, books) = queue.parts();
                    rule.accept(UnderRule { pass, books, statistics, rng });
                }
                Port::ByEvent(_) => unreachable!("it has its own way"),
            }
            traffic.inboxes[inbox].give_back(packets, taken);
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

/// A look at a port.
#[derive(Clone, Debug)]
pub struct PortView<'a> {
    /// The name and the books of each class of packets that the queue tells apart; at least one.
    pub classes: Vec<(&'a str, &'a Ledger)>,
    /// Waiting times and bytes.
    pub statistics: &'a PortStatistics,
    /// What the queue and its rules keep track of.
    pub gauges: Vec<(String, f64)>,
}

impl PortView<'_> {
    /// Packets of each color that wait.
    pub fn waiting(&self) -> [u64; 3] {
        Color::ALL
            .map(|color| self.classes.iter().map(|(_, ledger)| ledger.occupancy.packets_of(color)).sum())
    }

    /// Everything that went through.
    pub fn counters(&self) -> Counters {
        let mut all = Counters::default();
        self.classes.iter().for_each(|(_, ledger)| all.add(&ledger.counters));
        all
    }
}

/// Packets that come to a link, one after the other.
struct Pass<'a> {
    packets: &'a [SimPacket],
    wire: &'a mut Wire,
    leads_on: bool,
    traffic: &'a mut Traffic,
}

impl Pass<'_> {
    /// Asks for each packet, and the time until which the link is busy, whether it is let in; if so, sends it.
    #[inline(always)]
    fn through(self, mut admit: impl FnMut(SimPacket, Instant) -> bool) {
        let Self { packets, wire, leads_on, traffic } = self;
        for packet in packets {
            let packet = packet.onward();
            if admit(packet, wire.busy_until()) {
                let arrival = wire.pass(packet.size(), packet.at());
                if leads_on {
                    traffic.carry(packet, arrival);
                } else {
                    traffic.approach(packet, arrival);
                }
            } else {
                traffic.lose(packet);
            }
        }
    }
}

/// Packets that come to a queue whose departures are worked out on arrival.
struct UnderRule<'a> {
    pass: Pass<'a>,
    books: &'a mut ForeseenBooks,
    statistics: &'a mut PortStatistics,
    rng: &'a mut Rng,
}

impl RuleVisitor for UnderRule<'_> {
    type Output = ();

    fn visit<R: Aqm>(self, rule: &mut R) {
        let Self { pass, books, statistics, rng } = self;
        pass.through(|packet, busy_until| {
            let now = packet.at();
            books.settle(now);
            let admitted = books.admit(rule, &mut packet.header(), busy_until, &mut Context { now, rng });
            if let Ok(service) = admitted {
                statistics.serve(0, now, service, packet.size(), packet.color());
            }
            admitted.is_ok()
        });
    }
}

impl ByEventPort {
    fn next_serve(&self) -> Instant {
        self.serves.peek().map_or(Instant::NEVER, |&Reverse(at)| at)
    }

    /// See [`Link::run`].
    fn run(&mut self, inbox: usize, bound: Instant, wire: &mut Wire, traffic: &mut Traffic) -> (u64, u64) {
        let (mut handled, mut came) = (0, 0);
        loop {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arrive_after_waiting_serialization_and_delay() {
        let mut wire = Wire::new(Bitrate::from_bps(8_000_000).unwrap(), Duration::from_millis(5));
        let arrivals = [0, 1].map(|_| wire.pass(1000, Instant::ZERO));
        assert_eq!(arrivals, [6_000_000, 7_000_000].map(Instant::from_nanos));
        assert_eq!(Wire::none().pass(1000, Instant::from_nanos(7)), Instant::from_nanos(7));
    }
}
