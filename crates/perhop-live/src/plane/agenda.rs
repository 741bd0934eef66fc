//! The pending events of a data plane, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use perhop_core::{Duration, Instant};

/// A pending event. Simultaneous events have the simulator's order: packets leave, links change, ports are
/// served, packets reach links, control messages arrive, window controls sample; among packets, those of the
/// flow with the lower number come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) at: Instant,
    pub(super) kind: Kind,
    /// For packets the flow and the step, otherwise zero.
    pub(super) rank: u64,
    /// The number of the port, line, channel or control.
    pub(super) source: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Leave,
    Change,
    Serve,
    Reach,
    Message,
    Sample,
}

impl Event {
    /// Returns an event of no packet.
    pub(super) fn of(kind: Kind, at: Instant, source: usize) -> Self {
        Self { at, kind, rank: 0, source: source as u32 }
    }
}

/// All pending events, in two parts. External events (a packet leaves, a control reads the senders' windows)
/// must happen at their time. Internal events need not: nothing outside depends on when the driver lets them
/// happen, as long as that is before the first packet that leaves because of them.
#[derive(Debug)]
pub(super) struct Agenda {
    external: BinaryHeap<Reverse<Event>>,
    internal: BinaryHeap<Reverse<Event>>,
    /// No packet leaves because of an internal event before this time has passed.
    grace: Duration,
}

impl Agenda {
    pub(super) fn new(grace: Duration) -> Self {
        Self { external: BinaryHeap::new(), internal: BinaryHeap::new(), grace }
    }

    pub(super) fn set_grace(&mut self, grace: Duration) {
        self.grace = grace;
    }

    #[inline]
    pub(super) fn push(&mut self, event: Event) {
        match event.kind {
            Kind::Leave | Kind::Sample => self.external.push(Reverse(event)),
            Kind::Change | Kind::Serve | Kind::Reach | Kind::Message => self.internal.push(Reverse(event)),
        }
    }

    /// Takes the next event, if it comes no later than events of this kind at this time.
    #[inline]
    pub(super) fn pop(&mut self, limit: (Instant, Kind)) -> Option<Event> {
        let first = |heap: &BinaryHeap<Reverse<Event>>| heap.peek().map(|&Reverse(event)| event);
        let heap = match (first(&self.external), first(&self.internal)) {
            (Some(external), Some(internal)) if internal < external => &mut self.internal,
            (Some(_), _) => &mut self.external,
            (None, _) => &mut self.internal,
        };
        let event = heap.peek().filter(|Reverse(event)| (event.at, event.kind) <= limit)?.0;
        heap.pop();
        Some(event)
    }

    /// Returns the time by which the driver must let events happen; [`Instant::NEVER`] if none is pending.
    pub(super) fn next(&self) -> Instant {
        let at =
            |heap: &BinaryHeap<Reverse<Event>>| heap.peek().map_or(Instant::NEVER, |Reverse(event)| event.at);
        at(&self.external).min(at(&self.internal) + self.grace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_millis(3);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn packet(millis: u64, kind: Kind, flow: u64) -> Event {
        Event { at: at(millis), kind, rank: flow << 32, source: 0 }
    }

    #[test]
    fn simultaneous_events_come_by_kind_and_packets_by_flow() {
        let in_order = [
            packet(5, Kind::Leave, 1),
            packet(5, Kind::Leave, 2),
            Event::of(Kind::Change, at(5), 1),
            Event::of(Kind::Serve, at(5), 0),
            packet(5, Kind::Reach, 1),
            Event::of(Kind::Message, at(5), 0),
            Event::of(Kind::Sample, at(5), 0),
            packet(6, Kind::Leave, 0),
        ];
        let mut agenda = Agenda::new(GRACE);
        in_order.iter().rev().for_each(|&event| agenda.push(event));
        let popped: Vec<Event> = std::iter::from_fn(|| agenda.pop((Instant::NEVER, Kind::Sample))).collect();
        assert_eq!(popped, in_order);
    }

    #[test]
    fn an_event_beyond_the_limit_stays() {
        let mut agenda = Agenda::new(GRACE);
        agenda.push(Event::of(Kind::Message, at(5), 0));
        assert_eq!(agenda.pop((at(4), Kind::Sample)), None);
        assert_eq!(agenda.pop((at(5), Kind::Reach)), None, "messages come after arrivals");
        assert_eq!(agenda.pop((at(5), Kind::Message)), Some(Event::of(Kind::Message, at(5), 0)));
        assert_eq!(agenda.pop((Instant::NEVER, Kind::Sample)), None);
    }

    #[test]
    fn an_internal_event_may_wait_for_the_grace_and_an_external_one_may_not() {
        let mut agenda = Agenda::new(GRACE);
        assert_eq!(agenda.next(), Instant::NEVER);
        agenda.push(Event::of(Kind::Serve, at(5), 0));
        assert_eq!(agenda.next(), at(8));
        agenda.push(packet(7, Kind::Leave, 0));
        assert_eq!(agenda.next(), at(7));
        agenda.set_grace(Duration::from_millis(1));
        assert_eq!(agenda.next(), at(6));
    }
}
