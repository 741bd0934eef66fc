//! Links: a port with its queue, a serializer and a delay line.
//!
//! A queue that decides at its tail needs no event per departure: when a packet is accepted, its service start and its
//! arrival at the far end are already known. Such a port keeps a ring of service starts and lets packets "leave" when
//! next looked at ([`Service::OnDemand`]). A port may also be driven call by call, as a live router drives it
//! ([`Service::ByEvent`]); both give the same result, event for event.

use std::collections::VecDeque;

use perhop_core::aqm::{AnyAqm, Aqm, AqmParams, Verdict};
use perhop_core::scheduler::{Dequeued, Discipline, Fifo};
use perhop_core::{
    Bitrate, Color, Context, Counters, Duration, Environment, Header, Instant, Occupancy, Rng,
};

use crate::histogram::DelayHistogram;
use crate::packet::SimPacket;

/// How ports are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// Departures are worked out on arrival, without events: the fast path, for queues that decide at the tail.
    #[default]
    OnDemand,
    /// One event at the end of each transmission asks the discipline for the next packet.
    ByEvent,
}

/// What the engine has to do after offering a packet to a link, or serving it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Update {
    /// The delay line was empty: its head now arrives then.
    pub head: Option<Instant>,
    /// The port is to be served then.
    pub service: Option<Instant>,
    /// A packet was dropped.
    pub dropped: Option<Header>,
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
    last: (u32, u64, u64),
}

/// What is counted at a port besides packets.
#[derive(Clone, Debug)]
pub struct PortStatistics {
    window: (Instant, Instant),
    /// The integral of the number waiting over the window, in packet-nanoseconds, up to `held_until`.
    held: u128,
    held_until: Instant,
    /// Bytes whose transmission began within the window.
    bytes: u64,
    /// Waiting times of packets that arrived after the warm-up.
    pub delays: DelayHistogram,
}

#[derive(Clone, Debug)]
struct OnDemandPort {
    waiting: VecDeque<Waiting>,
    occupancy: Occupancy,
    counters: Counters,
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
    size: u32,
    color: Color,
}

#[derive(Clone, Debug)]
struct ByEventPort {
    fifo: Fifo<SimPacket>,
    statistics: PortStatistics,
    rng: Rng,
    idle: bool,
}

impl Serializer {
    fn new(rate: Bitrate) -> Self {
        Self { rate: rate.as_bps(), busy_until: Instant::ZERO, remainder: 0, last: (0, 0, 0) }
    }

    /// Occupies the link with `size` bytes from `start`, and returns when it is free again.
    #[inline]
    fn transmit(&mut self, start: Instant, size: u32) -> Instant {
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
    fn new(window: (Instant, Instant)) -> Self {
        Self { window, held: 0, held_until: window.0, bytes: 0, delays: DelayHistogram::default() }
    }

    /// `queue` waited until now, when it changes.
    #[inline]
    fn hold(&mut self, queue: &Occupancy, now: Instant) {
        if now > self.held_until {
            self.held += u128::from(queue.packets()) * u128::from(now.since(self.held_until).as_nanos());
            self.held_until = now;
        }
    }

    /// A packet that came at `arrived` begins its transmission.
    #[inline]
    fn serve(&mut self, arrived: Instant, service: Instant, size: u32, color: Color) {
        let (begin, end) = self.window;
        if service >= begin && service < end {
            self.bytes += u64::from(size);
        }
        if arrived >= begin {
            self.delays.record(color, service.since(arrived));
        }
    }

    /// Mean number of packets waiting, over the measured time.
    pub fn mean_packets(&self) -> f64 {
        self.held as f64 / self.window.1.since(self.window.0).as_nanos() as f64
    }

    /// Bytes sent over the measured time.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Link {
    /// A link without a limit to its queue.
    pub fn open(rate: Bitrate, delay: Duration) -> Self {
        Self { serializer: Serializer::new(rate), delay, line: VecDeque::new(), port: Port::Open }
    }

    /// A link whose queue is ruled by an AQM; statistics cover the given window.
    pub fn with_queue(
        rate: Bitrate,
        delay: Duration,
        aqm: AqmParams,
        rng: Rng,
        window: (Instant, Instant),
        service: Service,
    ) -> Self {
        let environment = Environment { rate };
        let statistics = PortStatistics::new(window);
        let port = match service {
            Service::OnDemand => Port::OnDemand(Box::new(OnDemandPort {
                waiting: VecDeque::new(),
                occupancy: Occupancy::EMPTY,
                counters: Counters::default(),
                statistics,
                aqm: aqm.build(environment),
                rng,
                idle: true,
            })),
            Service::ByEvent => {
                let fifo = Fifo::with_aqm(aqm, environment);
                Port::ByEvent(Box::new(ByEventPort { fifo, statistics, rng, idle: true }))
            }
        };
        Self { port, ..Self::open(rate, delay) }
    }

    /// Offers a packet to the link's queue.
    #[inline]
    pub fn offer(&mut self, mut packet: SimPacket, now: Instant) -> Update {
        match &mut self.port {
            Port::Open => {}
            Port::OnDemand(port) => {
                port.settle(now);
                let busy_until = self.serializer.busy_until;
                if !port.idle && busy_until <= now {
                    port.aqm.on_idle(busy_until);
                    port.idle = true;
                }
                let header = &mut packet.header;
                port.counters.arrive(header.color);
                header.arrived = now;
                let mut cx = Context { now, rng: &mut port.rng };
                if let Verdict::Drop(reason) = port.aqm.on_arrival(header, &port.occupancy, &mut cx) {
                    port.counters.drop(header.color, reason);
                    return Update { dropped: Some(*header), ..Update::default() };
                }
                port.idle = false;
                let service = busy_until.max(now);
                let (size, color) = (header.size, header.color);
                if service > now {
                    port.statistics.hold(&port.occupancy, now);
                    port.occupancy.add(color, size);
                    port.waiting.push_back(Waiting { arrived: now, service, size, color });
                } else {
                    port.counters.send(color);
                    port.statistics.serve(now, now, size, color);
                }
            }
            Port::ByEvent(port) => {
                port.statistics.hold(port.fifo.occupancy(), now);
                let mut cx = Context { now, rng: &mut port.rng };
                return match port.fifo.enqueue(packet, &mut cx) {
                    Err((packet, _)) => Update { dropped: Some(packet.header), ..Update::default() },
                    Ok(()) if port.idle => self.serve(now),
                    Ok(()) => Update::default(),
                };
            }
        }
        let start = self.serializer.busy_until.max(now);
        Update { head: self.transmit(packet, start), ..Update::default() }
    }

    /// Serves the port at the end of a transmission (only [`Service::ByEvent`] asks for it).
    pub fn serve(&mut self, now: Instant) -> Update {
        let Port::ByEvent(port) = &mut self.port else { return Update::default() };
        port.statistics.hold(port.fifo.occupancy(), now);
        match port.fifo.dequeue(&mut Context { now, rng: &mut port.rng }) {
            Dequeued::Sent(packet) => {
                port.idle = false;
                let Header { arrived, size, color, .. } = packet.header;
                port.statistics.serve(arrived, now, size, color);
                let head = self.transmit(packet, now);
                Update { head, service: Some(self.serializer.busy_until), ..Update::default() }
            }
            Dequeued::Dropped(packet, _) => {
                Update { dropped: Some(packet.header), service: Some(now), ..Update::default() }
            }
            Dequeued::Wait(until) => {
                port.idle = true;
                Update { service: until, ..Update::default() }
            }
        }
    }

    #[inline]
    fn transmit(&mut self, mut packet: SimPacket, start: Instant) -> Option<Instant> {
        let arrival = self.serializer.transmit(start, packet.header.size) + self.delay;
        packet.header.arrived = arrival;
        let was_empty = self.line.is_empty();
        self.line.push_back(packet);
        was_empty.then_some(arrival)
    }

    /// Takes the packet that reaches the far end first, and says when the next one does.
    #[inline]
    pub fn deliver(&mut self) -> (SimPacket, Instant) {
        let packet = self.line.pop_front().expect("a link's event has a packet");
        let next = self.line.front().map_or(Instant::NEVER, |head| head.header.arrived);
        (packet, next)
    }

    /// Brings the port's counts up to `now`.
    pub fn settle(&mut self, now: Instant) {
        match &mut self.port {
            Port::Open => {}
            Port::OnDemand(port) => {
                port.settle(now);
                port.statistics.hold(&port.occupancy, now);
            }
            Port::ByEvent(port) => port.statistics.hold(port.fifo.occupancy(), now),
        }
    }

    /// What waits and what went through, if the link has a ruled queue. Call [`settle`](Self::settle) first.
    pub fn port(&self) -> Option<PortView<'_>> {
        match &self.port {
            Port::Open => None,
            Port::OnDemand(port) => Some(PortView {
                occupancy: &port.occupancy,
                counters: &port.counters,
                statistics: &port.statistics,
                aqm: &port.aqm,
            }),
            Port::ByEvent(port) => Some(PortView {
                occupancy: port.fifo.occupancy(),
                counters: port.fifo.counters(),
                statistics: &port.statistics,
                aqm: port.fifo.aqm().expect("made with an AQM"),
            }),
        }
    }
}

/// A look at a port.
#[derive(Clone, Copy, Debug)]
pub struct PortView<'a> {
    /// What waits.
    pub occupancy: &'a Occupancy,
    /// What went through.
    pub counters: &'a Counters,
    /// Waiting times and bytes.
    pub statistics: &'a PortStatistics,
    /// The rule, for its averages.
    pub aqm: &'a AnyAqm,
}

impl OnDemandPort {
    /// Lets go of every packet whose service began by now.
    #[inline]
    fn settle(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front()
            && first.service <= now
        {
            let Waiting { arrived, service, size, color } = *first;
            self.statistics.hold(&self.occupancy, service);
            self.statistics.serve(arrived, service, size, color);
            self.occupancy.remove(color, size);
            self.counters.send(color);
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
        let packet = SimPacket { header: Header::new(FlowId(0), 1000), step: 0, sequence: 0 };
        assert_eq!(link.offer(packet, Instant::ZERO).head, Some(Instant::from_nanos(6_000_000)));
        assert_eq!(link.offer(packet, Instant::ZERO).head, None, "the head is known already");
        let (first, next) = link.deliver();
        assert_eq!(first.header.arrived, Instant::from_nanos(6_000_000));
        assert_eq!(next, Instant::from_nanos(7_000_000));
    }
}
