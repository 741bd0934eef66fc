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

use perhop_core::control::Message;
use perhop_core::scheduler::{AnyScheduler, Dequeued, Discipline, FifoParams, ForeseenFifo, SchedulerParams};
use perhop_core::{
    Bitrate, Color, Context, Counters, Duration, Environment, Header, Instant, Ledger, Rng, Serializer,
};

use crate::calendar::Calendar;
use crate::histogram::DelayHistogram;
use crate::packet::SimPacket;

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

/// What became of a packet offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It goes straight on, and reaches the far end then.
    Onward(Instant),
    /// The discipline holds it; the transmission now under way ends with a call to [`Link::serve`].
    Held,
    /// The discipline holds it, and the link is free: call [`Link::serve`] now.
    Serve,
    /// It was dropped.
    Dropped,
}

/// What a link did when served.
#[derive(Clone, Copy, Debug)]
pub enum Served {
    /// This packet goes on and reaches the far end at `arrival`; the link is free again at `free`.
    Onward {
        /// The packet.
        packet: SimPacket,
        /// When it reaches the far end.
        arrival: Instant,
        /// When to serve the link again.
        free: Instant,
    },
    /// This packet was dropped from the queue; serve again.
    Dropped(SimPacket),
    /// Nothing to send before then, or before the next packet comes.
    Wait(Option<Instant>),
}

/// One direction of a link that flows share.
#[derive(Clone, Debug)]
pub struct Link {
    /// Packets on their way to its queue.
    pub inbox: Calendar<SimPacket>,
    /// When it is to be served.
    serves: BinaryHeap<Reverse<Instant>>,
    wire: Wire,
    port: Port,
}

/// One direction of a link between a host and its router: endless and unobserved.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Wire {
    serializer: Serializer,
    delay: Duration,
}

impl Wire {
    /// An idle one.
    pub fn new(rate: Bitrate, delay: Duration) -> Self {
        Self { serializer: Serializer::new(rate), delay }
    }

    /// Puts `size` bytes on the wire as soon as it is free, and says when they reach the far end.
    #[inline(always)]
    pub fn pass(&mut self, size: u16, now: Instant) -> Instant {
        self.serializer.transmit(size, now) + self.delay
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
    queue: AnyScheduler<SimPacket>,
    statistics: PortStatistics,
    /// Chance for each of the queue's rules, and for its scheduler.
    rule_rngs: Vec<Rng>,
    scheduler_rng: Rng,
    idle: bool,
    /// When it asked last to be served, having something that may not go before.
    waits_until: Instant,
}

impl PortStatistics {
    fn new(window: (Instant, Instant), classes: usize) -> Self {
        let delays = vec![DelayHistogram::default(); classes];
        Self { window, waited: 0, bytes: 0, last: (window.0, 0), delays }
    }

    /// A packet that came at `arrived` begins its transmission.
    #[inline]
    fn serve(&mut self, class: usize, arrived: Instant, service: Instant, size: u16, color: Color) {
        let (begin, end) = self.window;
        self.wait(arrived, service);
        if service >= begin && service < end {
            self.bytes += u64::from(size);
            self.last = (service, size);
        }
        if arrived >= begin {
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
    pub fn open(rate: Bitrate, delay: Duration) -> Self {
        Self {
            inbox: Calendar::default(),
            serves: BinaryHeap::new(),
            wire: Wire::new(rate, delay),
            port: Port::Open,
        }
    }

    /// A link with a ruled queue, whose random streams lie under `path`; statistics cover the given window.
    pub fn with_queue(
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
                }))
            }
        };
        Self { port, ..Self::open(rate, delay) }
    }

    /// Offers a packet to the link's queue.
    #[inline(always)]
    pub fn offer(&mut self, packet: &mut SimPacket, now: Instant) -> Offer {
        match &mut self.port {
            Port::Open => {}
            Port::OnDemand(port) => {
                if !port.admit(&mut packet.header, self.wire.serializer.busy_until(), now) {
                    return Offer::Dropped;
                }
            }
            Port::ByEvent(port) => {
                let rng = match &mut port.rule_rngs[..] {
                    [rng] => rng,
                    rngs => &mut rngs[port.queue.class_of(&packet.header)],
                };
                return match port.queue.enqueue(*packet, &mut Context { now, rng }) {
                    Err(_) => Offer::Dropped,
                    Ok(()) if port.idle => Offer::Serve,
                    Ok(()) => Offer::Held,
                };
            }
        }
        Offer::Onward(self.wire.pass(packet.header.size, now))
    }

    /// No packet comes, and nothing is to be served, before this.
    #[inline]
    pub fn next(&self) -> Instant {
        self.inbox.next().min(self.next_serve())
    }

    /// Whether packets go on as soon as they are let in: nothing has to be served.
    #[inline]
    pub fn goes_straight_on(&self) -> bool {
        !matches!(self.port, Port::ByEvent(_))
    }

    /// When it is next to be served.
    pub fn next_serve(&self) -> Instant {
        self.serves.peek().map_or(Instant::NEVER, |&Reverse(at)| at)
    }

    /// Serving it is due.
    pub fn take_serve(&mut self) {
        self.serves.pop();
    }

    /// Asks to be served then.
    pub fn serve_at(&mut self, at: Instant) {
        self.serves.push(Reverse(at));
    }

    /// Serves the port at the end of a transmission, or when it asked for it; only [`Service::ByEvent`] does.
    pub fn serve(&mut self, now: Instant) -> Served {
        let Port::ByEvent(port) = &mut self.port else { return Served::Wait(None) };
        if now < self.wire.serializer.busy_until() {
            return Served::Wait(None); // It waited, but a packet that came meanwhile could go.
        }
        match port.queue.dequeue(&mut Context { now, rng: &mut port.scheduler_rng }) {
            Dequeued::Sent(packet) => {
                port.idle = false;
                let Header { arrived, size, color, .. } = packet.header;
                let class = port.queue.class_of(&packet.header);
                port.statistics.serve(class, arrived, now, size, color);
                let arrival = self.wire.pass(size, now);
                Served::Onward { packet, arrival, free: self.wire.serializer.busy_until() }
            }
            Dequeued::Dropped(packet, _) => Served::Dropped(packet),
            Dequeued::Wait(until) => {
                port.idle = true;
                let until = until.filter(|&until| until != port.waits_until);
                port.waits_until = until.unwrap_or(port.waits_until);
                Served::Wait(until)
            }
        }
    }

    /// Another block tells something to the rule that the packets of this path meet here.
    pub fn on_message(&mut self, label: u32, message: &Message) {
        match &mut self.port {
            Port::Open => {}
            Port::OnDemand(port) => port.queue.on_message(message),
            Port::ByEvent(port) => port.queue.on_message(label, message),
        }
    }

    /// Brings the port's counts up to `now`.
    pub fn settle(&mut self, now: Instant) {
        if let Port::OnDemand(port) = &mut self.port {
            port.settle(now);
        }
    }

    /// Ends the run: what still waits has waited until now.
    pub fn finish(&mut self, now: Instant) {
        self.settle(now);
        match &mut self.port {
            Port::Open => {}
            Port::OnDemand(port) => {
                port.queue.iter().for_each(|held| port.statistics.wait(held.arrived, now));
            }
            Port::ByEvent(port) => {
                let ByEventPort { queue, statistics, .. } = &mut **port;
                queue.inspect(&mut |held| statistics.wait(held.header.arrived, now));
            }
        }
    }

    /// What waits and what went through, if the link has a ruled queue. Call [`settle`](Self::settle) first.
    pub fn port(&self) -> Option<PortView<'_>> {
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

impl OnDemandPort {
    /// Lets go of every packet whose service began by now.
    #[inline(always)]
    fn settle(&mut self, now: Instant) {
        let Self { queue, statistics, .. } = self;
        queue.settle(now, |held| statistics.serve(0, held.arrived, held.service, held.size, held.color));
    }

    /// Takes a packet if the rule lets it in; `busy_until` is when the link has sent what it holds.
    #[inline(always)]
    fn admit(&mut self, header: &mut Header, busy_until: Instant, now: Instant) -> bool {
        self.settle(now);
        match self.queue.admit(header, busy_until, &mut Context { now, rng: &mut self.rng }) {
            Err(_) => return false,
            Ok(service) if service == now => self.statistics.serve(0, now, now, header.size, header.color),
            Ok(_) => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_core::FlowId;

    #[test]
    fn packets_arrive_after_waiting_serialization_and_delay() {
        let mut link = Link::open(Bitrate::from_bps(8_000_000).unwrap(), Duration::from_millis(5));
        let mut packet = SimPacket { header: Header::new(FlowId(0), 1000), step: 0, sequence: 0 };
        let arrivals = [0, 1].map(|_| link.offer(&mut packet, Instant::ZERO));
        assert_eq!(arrivals, [6_000_000, 7_000_000].map(|nanos| Offer::Onward(Instant::from_nanos(nanos))));
    }
}
