//! Propagation: packets on a line arrive after a delay, in order unless the medium of the link changes it.

use std::collections::VecDeque;

use perhop_core::medium::Dispatch;
use perhop_core::{Duration, Instant, Rng, Serializer};

use super::Frame;
use crate::spec::WireSpec;

/// Packets in transit, in the order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    delay: Duration,
    in_transit: VecDeque<(Instant, Frame)>,
}

impl Line {
    pub(super) fn new(delay: Duration) -> Self {
        Self { delay, in_transit: VecDeque::new() }
    }

    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    pub(super) fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// Puts a packet on the line that is sent at `sent`. Returns its arrival time if no packet is ahead of
    /// it. A delay that has become shorter lets no packet overtake another.
    #[inline]
    pub(super) fn push(&mut self, sent: Instant, frame: Frame) -> Option<Instant> {
        let last = self.in_transit.back().map_or(Instant::ZERO, |&(last, _)| last);
        let at = last.max(sent + self.delay);
        let is_first = self.in_transit.is_empty();
        self.in_transit.push_back((at, frame));
        is_first.then_some(at)
    }

    /// Puts a packet on the line that arrives at `at`, before every packet for which `is_later` holds.
    pub(super) fn insert(&mut self, at: Instant, frame: Frame, is_later: impl Fn(Instant, &Frame) -> bool) {
        let place = self.in_transit.partition_point(|(other, waiting)| !is_later(*other, waiting));
        self.in_transit.insert(place, (at, frame));
    }

    /// Takes the packet that arrives first.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Frame> {
        self.in_transit.pop_front().map(|(_, frame)| frame)
    }

    /// Returns the packet that arrives next, and when.
    #[inline]
    pub(super) fn first(&self) -> Option<(Instant, &Frame)> {
        self.in_transit.front().map(|(at, frame)| (*at, frame))
    }
}

/// A wire: serialization without a limit on what waits, then propagation.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    dispatch: Option<Dispatch>,
    serializer: Option<Serializer>,
    pub(super) line: Line,
}

impl Wire {
    pub(super) fn new(spec: WireSpec, seed: u64) -> Self {
        let dispatch = spec.dispatch.map(|spec| Dispatch::new(spec.most, Rng::stream(seed, &spec.name)));
        Self { dispatch, serializer: spec.rate.map(Serializer::new), line: Line::new(spec.delay) }
    }

    /// Returns when a packet is sent that comes at `now`.
    #[inline]
    pub(super) fn transmit(&mut self, size: u16, now: Instant) -> Instant {
        let begin = self.dispatch.as_mut().map_or(now, |dispatch| dispatch.hand_over(now));
        self.serializer.as_mut().map_or(begin, |serializer| serializer.transmit(size, begin))
    }
}

#[cfg(test)]
mod tests {
    use perhop_core::{FlowId, Header};

    use super::*;
    use crate::buffers::Buffers;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_delay_that_becomes_shorter_lets_no_packet_overtake_another() {
        let mut buffers = Buffers::new(3, 40);
        let mut frame = |flow| Frame {
            header: Header::new(FlowId(flow), 40),
            slot: buffers.take().unwrap(),
            stream: 0,
            step: 0,
            segment: None,
        };
        let mut line = Line::new(Duration::from_millis(10));
        assert_eq!(line.push(at(0), frame(0)), Some(at(10)));
        line.set_delay(Duration::from_millis(1));
        assert_eq!(line.push(at(2), frame(1)), None, "it is behind another packet");
        assert_eq!(line.push(at(20), frame(2)), None);
        let arrivals = std::iter::from_fn(|| {
            let next = line.first().map(|(at, frame)| (at, frame.header.flow.0));
            line.pop();
            next
        });
        assert_eq!(arrivals.collect::<Vec<_>>(), [(at(10), 0), (at(10), 1), (at(21), 2)]);
    }
}
