//! Links: a port with its queue, a serializer and a delay line.
//!
//! A queue that decides at its tail needs no event per departure: when a packet is accepted, its service start and its
//! arrival at the far end are already known. Such a port keeps a ring of service starts and lets packets "leave" when
//! next looked at ([`Service::OnDemand`]). Any port can be driven call by call, as a live router drives it
//! ([`Service::ByEvent`]), and those that choose among packets must be; both give the same result, event for event.

#![expect(clippy::inline_always, reason = "see the event loop, which these calls are a part of")]

use std::collections::VecDeque;

use perhop_core::aqm::{AnyAqm, Aqm, AqmParams, Verdict};
use perhop_core::scheduler::{AnyScheduler, Dequeued, Discipline, FifoParams, SchedulerParams};
use perhop_core::{Bitrate, Color, Context, Counters, Duration, Environment, Header, Instant, Ledger, Rng};

use crate::histogram::DelayHistogram;
use crate::packet::SimPacket;

/// How ports are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// Departures are worked out on arrival, without events, where the queue decides at its tail: the fast path.
    #[default]
    OnDemand,
    /// One event at the end of each transmission asks the discipline for the next packet.
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
    Dropped(Header),
    /// Nothing to send before then, or before the next packet comes.
    Wait(Option<Instant>),
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Link {
    serializer: Serializer,
    delay: Duration,
    line: VecDeque<SimPacket>,
    port: Port,
}

#[derive(Clone, Debug)]
enum Port {
    /// Endless and unobserved: private access links and uncongested reverse paths.
    Open,
    OnDemand(Box<OnDemandPort>),
    ByEvent(Box<ByEventPort>),
}

/// Turns sizes into times; carries the rounding remainder, so that a busy link keeps its rate exactly.
#[derive(Clone, Debug)]
struct Serializer {
    rate: u64,
    busy_until: Instant,
    remainder: u64,
    /// The last size and its (nanoseconds, remainder): packets of one size follow each other.
    last: (u16, u64, u64),
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
    waiting: VecDeque<Waiting>,
    ledger: Ledger,
    statistics: PortStatistics,
    aqm: AnyAqm,
    rng: Rng,
    /// The AQM knows that the server is idle.
    idle: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    arrived: Instant,
    service: Instant,
    size: u16,
    color: Color,
}

#[derive(Clone, Debug)]
struct ByEventPort {
    queue: AnyScheduler<SimPacket>,
    statistics: PortStatistics,
    /// Chance for the queue's rule, and for its scheduler.
    rng: Rng,
    scheduler_rng: Rng,
    idle: bool,
}

impl Serializer {
    fn new(rate: Bitrate) -> Self {
        Self { rate: rate.as_bps(), busy_until: Instant::ZERO, remainder: 0, last: (0, 0, 0) }
    }

    /// Occupies the link with `size` bytes from `start`, and returns when it is free again.
    #[inline]
    fn transmit(&mut self, start: Instant, size: u16) -> Instant {
        if self.last.0 != size {
            let bits = u128::from(size) * 8_000_000_000;
            self.last = (size, (bits / u128::from(self.rate)) as u64, (bits % u128::from(self.rate)) as u64);
        }
        let (_, mut nanos, remainder) = self.last;
        if remainder != 0 {
            self.remainder += remainder;
            if self.remainder >= self.rate {
                self.remainder -= self.rate;
                nanos += 1;
            }
        }
        self.busy_until = start + Duration::from_nanos(nanos);
        self.busy_until
    }
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
        Self { serializer: Serializer::new(rate), delay, line: VecDeque::new(), port: Port::Open }
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
        let rng = Rng::stream(seed, &format!("{path}/aqm"));
        let port = match (service, queue) {
            (Service::OnDemand, SchedulerParams::Fifo(FifoParams { rule })) => {
                Port::OnDemand(Box::new(OnDemandPort::new(rule, environment, rng, window)))
            }
            (_, queue) => {
                let queue = queue.build(environment);
                let statistics = PortStatistics::new(window, queue.ledgers().len());
                let scheduler_rng = Rng::stream(seed, &format!("{path}/scheduler"));
                Port::ByEvent(Box::new(ByEventPort { queue, statistics, rng, scheduler_rng, idle: true }))
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
                let busy_until = self.serializer.busy_until;
                port.settle(now);
                if !port.idle && busy_until <= now {
                    port.aqm.on_idle(busy_until);
                    port.idle = true;
                }
                if !port.admit(&mut packet.header, busy_until.max(now), now) {
                    return Offer::Dropped;
                }
            }
            Port::ByEvent(port) => {
                return match port.queue.enqueue(*packet, &mut Context { now, rng: &mut port.rng }) {
                    Err(_) => Offer::Dropped,
                    Ok(()) if port.idle => Offer::Serve,
                    Ok(()) => Offer::Held,
                };
            }
        }
        Offer::Onward(self.pass(packet.header.size, now))
    }

    /// Puts `size` bytes on the link as soon as it is free, and says when they reach the far end.
    #[inline(always)]
    pub fn pass(&mut self, size: u16, now: Instant) -> Instant {
        let start = self.serializer.busy_until.max(now);
        self.serializer.transmit(start, size) + self.delay
    }

    /// Serves the port at the end of a transmission; only [`Service::ByEvent`] asks for it.
    pub fn serve(&mut self, now: Instant) -> Served {
        let Port::ByEvent(port) = &mut self.port else { return Served::Wait(None) };
        match port.queue.dequeue(&mut Context { now, rng: &mut port.scheduler_rng }) {
            Dequeued::Sent(packet) => {
                port.idle = false;
                let Header { arrived, size, color, .. } = packet.header;
                let class = port.queue.class_of(&packet.header);
                port.statistics.serve(class, arrived, now, size, color);
                let arrival = self.pass(size, now);
                Served::Onward { packet, arrival, free: self.serializer.busy_until }
            }
            Dequeued::Dropped(packet, _) => Served::Dropped(packet.header),
            Dequeued::Wait(until) => {
                port.idle = true;
                Served::Wait(until)
            }
        }
    }

    /// Takes a packet whose arrival at the far end is known.
    #[inline]
    pub fn carry(&mut self, packet: SimPacket) {
        self.line.push_back(packet);
    }

    /// Takes the packet that reaches the far end now: packets on a link keep their order.
    #[inline]
    pub fn deliver(&mut self) -> SimPacket {
        self.line.pop_front().expect("each arrival's event has its packet")
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
                port.waiting.iter().for_each(|held| port.statistics.wait(held.arrived, now));
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
                classes: vec![("all", &port.ledger)],
                statistics: &port.statistics,
                gauges: port.aqm.gauges().collect(),
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
    pub classes: Vec<(&'static str, &'a Ledger)>,
    /// Waiting times and bytes.
    pub statistics: &'a PortStatistics,
    /// What the queue and its rule keep track of.
    pub gauges: Vec<(&'static str, f64)>,
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
    fn new(rule: AqmParams, environment: Environment, rng: Rng, window: (Instant, Instant)) -> Self {
        Self {
            waiting: VecDeque::new(),
            ledger: Ledger::default(),
            statistics: PortStatistics::new(window, 1),
            aqm: rule.build(environment),
            rng,
            idle: true,
        }
    }

    /// Asks the AQM whether a packet may wait until `service`, and counts what it says.
    #[inline(always)]
    fn admit(&mut self, header: &mut Header, service: Instant, now: Instant) -> bool {
        header.arrived = now;
        let Header { size, color, .. } = *header;
        self.ledger.counters.arrive(color);
        let mut cx = Context { now, rng: &mut self.rng };
        if let Verdict::Drop(reason) = self.aqm.on_arrival(header, &self.ledger.occupancy, &mut cx) {
            self.ledger.counters.drop(color, reason);
            return false;
        }
        self.idle = false;
        if service > now {
            self.ledger.occupancy.add(color, size);
            self.waiting.push_back(Waiting { arrived: now, service, size, color });
        } else {
            self.ledger.counters.send(color);
            self.statistics.serve(0, now, now, size, color);
        }
        true
    }

    /// Lets go of every packet whose service began by now.
    #[inline(always)]
    fn settle(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front()
            && first.service <= now
        {
            let Waiting { arrived, service, size, color } = *first;
            self.statistics.serve(0, arrived, service, size, color);
            self.ledger.occupancy.remove(color, size);
            self.ledger.counters.send(color);
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_core::FlowId;

    #[test]
    fn a_busy_link_keeps_its_rate_exactly() {
        // 3 bit/s: one byte takes 2.666… s; three take 8 s to the nanosecond.
        let mut serializer = Serializer::new(Bitrate::from_bps(3).unwrap());
        let mut at = Instant::ZERO;
        for _ in 0..3 {
            at = serializer.transmit(at, 1);
        }
        assert_eq!(at, Instant::from_nanos(8_000_000_000));
    }

    #[test]
    fn packets_arrive_after_waiting_serialization_and_delay() {
        let mut link = Link::open(Bitrate::from_bps(8_000_000).unwrap(), Duration::from_millis(5));
        let mut packet = SimPacket { header: Header::new(FlowId(0), 1000), step: 0, sequence: 0 };
        let arrivals = [0, 1].map(|sequence| {
            packet.sequence = sequence;
            let offer = link.offer(&mut packet, Instant::ZERO);
            link.carry(packet);
            offer
        });
        assert_eq!(arrivals, [6_000_000, 7_000_000].map(|nanos| Offer::Onward(Instant::from_nanos(nanos))));
        assert_eq!([link.deliver().sequence, link.deliver().sequence], [0, 1]);
    }
}
