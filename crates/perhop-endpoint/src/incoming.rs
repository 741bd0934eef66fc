//! The receiving side of a connection: reassembles the data, and acknowledges them when the simulator's
//! receiver, which counts segments, says so.

use std::collections::BTreeMap;

use perhop_core::{Duration, Ecn, Instant};
use perhop_sim::transport::tcp::{Reply, Signals, WireReceiver};

use crate::segment::MOST_RANGES;

/// The receiving side of a connection. Offsets count bytes of data from the first one.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    receiver: WireReceiver,
    /// The receiver's number of the first segment of data.
    first: u32,
    /// Bytes of data in a full segment of the peer.
    segment: u64,
    /// Every byte below has been received.
    pub(crate) expected: u64,
    /// Out-of-order data: ranges that do not touch, by their offsets.
    early: BTreeMap<u64, Vec<u8>>,
    /// The offsets of these ranges, the most recent first (RFC 2018, section 4).
    recent: Vec<u64>,
    /// A range that was received twice, to be reported once, by D-SACK (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// Where the data end, once that is known.
    end: Option<u64>,
    /// The receive window: bytes beyond `expected` that there is room for.
    pub(crate) window: u64,
    /// How long the ACK of a part of a segment is delayed, and when a delayed one is due.
    delay: Duration,
    due: Instant,
    /// Packets that arrived with the mark CE.
    pub(crate) marked: u32,
    /// ECN-Echo of the next ACK, if a segment has decided it.
    ece: Option<bool>,
}

impl Incoming {
    pub(crate) fn new(receiver: WireReceiver, handshake: bool, delay: Duration, window: u64) -> Self {
        let mut incoming = Self {
            receiver,
            first: u32::from(handshake),
            segment: 1,
            expected: 0,
            early: BTreeMap::new(),
            recent: Vec::new(),
            duplicate: None,
            end: None,
            window,
            delay,
            due: Instant::NEVER,
            marked: 0,
            ece: None,
        };
        if handshake {
            incoming.receiver.on_data(0, Signals::default(), Instant::ZERO);
        }
        incoming
    }

    /// Sets how many bytes of data a full segment of the peer has.
    pub(crate) fn expect_segments_of(&mut self, segment: u64) {
        self.segment = segment.max(1);
    }

    /// Processes data from this offset on; passes data that is in order to `deliver`. Returns whether to send
    /// an ACK at once.
    pub(crate) fn on_data(
        &mut self,
        from: u64,
        data: &[u8],
        (ecn, reduced): (Ecn, bool),
        now: Instant,
        deliver: &mut dyn FnMut(&[u8]),
    ) -> bool {
        let end = from + data.len() as u64;
        let signals = Signals { marked: ecn == Ecn::Congested, reduced };
        self.marked += u32::from(signals.marked);
        let was_in_order = self.early.is_empty();
        let numbers = from / self.segment..=(end.max(from + 1) - 1) / self.segment;
        let missing: Vec<u64> = numbers.filter(|&number| !self.has_segment(number)).collect();
        let is_new = self.store(from, data, deliver);
        let mut acknowledges = false;
        let mut completes = false;
        for number in missing {
            if self.has_segment(number) {
                completes = true;
                let number = self.first.saturating_add(number as u32);
                let reply = self.receiver.on_data(number, signals, now);
                acknowledges |= self.take(reply);
            }
        }
        if completes {
            self.due = Instant::NEVER;
        } else if !(is_new && was_in_order && self.early.is_empty()) {
            acknowledges = true; // Out of order, or a duplicate (RFC 5681, section 4.2).
        } else if self.delay.is_zero() || self.due != Instant::NEVER {
            self.due = Instant::NEVER;
            acknowledges = true;
        } else {
            self.due = now + self.delay;
        }
        acknowledges
    }

    /// Sets the offset at which the data end. Returns whether all of them have been received.
    pub(crate) fn on_end(&mut self, offset: u64) -> bool {
        self.end = Some(offset);
        self.is_all()
    }

    /// Returns whether all data have been received.
    pub(crate) fn is_all(&self) -> bool {
        self.end == Some(self.expected)
    }

    /// Returns the offset at which the data end, if that is known.
    pub(crate) fn end(&self) -> Option<u64> {
        self.end
    }

    /// Returns when a delayed ACK is due.
    pub(crate) fn wake(&self) -> Instant {
        self.receiver.wake().min(self.due)
    }

    /// Returns whether an ACK is due by now.
    pub(crate) fn on_wake(&mut self, now: Instant) -> bool {
        let reply = self.receiver.on_wake(now);
        let is_due = now >= self.due;
        if is_due {
            self.due = Instant::NEVER;
        }
        self.take(reply) || is_due
    }

    /// Notes that an ACK of all data so far is sent: no delayed ACK is due any more. Returns whether the ACK
    /// has ECN-Echo.
    pub(crate) fn acknowledge(&mut self) -> bool {
        self.due = Instant::NEVER;
        let rides = self.receiver.ride();
        self.ece.take().unwrap_or(rides)
    }

    /// Returns the SACK blocks of the next ACK: a D-SACK block, if there is one to report, then out-of-order
    /// data, the most recent first.
    pub(crate) fn ranges(&mut self) -> Vec<(u64, u64)> {
        let mut ranges = Vec::new();
        ranges.extend(self.duplicate.take());
        let early = self.recent.iter().filter_map(|from| self.early.get_key_value(from));
        ranges.extend(
            early.map(|(&from, data)| (from, from + data.len() as u64)).take(MOST_RANGES - ranges.len()),
        );
        ranges
    }

    /// Returns how many bytes have been received, in order or out of order.
    pub(crate) fn arrived(&self) -> u64 {
        self.expected + self.early.values().map(|data| data.len() as u64).sum::<u64>()
    }

    fn take(&mut self, reply: Reply) -> bool {
        if reply.now {
            self.ece = Some(reply.ece);
        }
        reply.now
    }

    /// Returns whether all bytes of a segment have been received.
    fn has_segment(&self, number: u64) -> bool {
        let from = number * self.segment;
        let end = self.end.unwrap_or(u64::MAX).min(from + self.segment);
        let covers = |(&begin, data): (&u64, &Vec<u8>)| begin <= from && end <= begin + data.len() as u64;
        end <= self.expected || self.early.range(..=from).next_back().is_some_and(covers)
    }

    /// Stores data and delivers what is in order; returns whether any of it is new.
    fn store(&mut self, from: u64, data: &[u8], deliver: &mut dyn FnMut(&[u8])) -> bool {
        let end = from + data.len() as u64;
        let skip = self.expected.saturating_sub(from).min(data.len() as u64);
        if skip > 0 {
            self.duplicate = Some((from, from + skip));
        }
        let (from, data) = (from + skip, &data[skip as usize..]);
        if data.is_empty() {
            return false;
        }
        if from == self.expected && self.early.is_empty() {
            deliver(data);
            self.expected = end;
            return true;
        }
        let is_new = self.insert(from, data);
        while let Some(entry) = self.early.first_entry()
            && *entry.key() == self.expected
        {
            let (begin, bytes) = entry.remove_entry();
            self.recent.retain(|known| *known != begin);
            deliver(&bytes);
            self.expected += bytes.len() as u64;
        }
        is_new
    }

    /// Inserts out-of-order data, or data that fill a gap, and joins it with its neighbours; returns whether
    /// any of it is new.
    fn insert(&mut self, from: u64, data: &[u8]) -> bool {
        let end = from + data.len() as u64;
        let mut begin = from;
        let mut joined = data.to_vec();
        let before =
            self.early.range(..=from).next_back().map(|(&begin, data)| (begin, begin + data.len() as u64));
        if let Some((left, right)) = before
            && right >= from
        {
            if right >= end {
                self.duplicate = Some((from, end));
                return false;
            }
            if right > from {
                self.duplicate = Some((from, right));
            }
            let mut bytes = self.early.remove(&left).unwrap_or_default();
            self.recent.retain(|known| *known != left);
            bytes.extend_from_slice(&data[(right - from) as usize..]);
            (begin, joined) = (left, bytes);
        }
        let after: Vec<u64> = self.early.range(begin..=end).map(|(&next, _)| next).collect();
        for next in after {
            let bytes = self.early.remove(&next).unwrap_or_default();
            self.recent.retain(|known| *known != next);
            let reached = begin + joined.len() as u64;
            let known = (reached - next).min(bytes.len() as u64);
            joined.extend_from_slice(&bytes[known as usize..]);
        }
        self.early.insert(begin, joined);
        self.recent.insert(0, begin);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_sim::transport::tcp::{TcpEcn, TcpParams};
    use proptest::prelude::*;

    fn incoming(delay: &str, segment: u64) -> Incoming {
        let params =
            format!(r#"{{"tcp": "newreno", "sack": true, "window": "100p", "delayed-ack": "{delay}"}}"#);
        let params: TcpParams = serde_json::from_str(&params).unwrap();
        let receiver = WireReceiver::new(&params, TcpEcn::Off);
        let mut incoming = Incoming::new(receiver, false, params.delayed_ack, 1000);
        incoming.expect_segments_of(segment);
        incoming
    }

    fn take(incoming: &mut Incoming, from: u64, length: usize) -> bool {
        incoming.on_data(from, &vec![0; length], (Ecn::NotCapable, false), Instant::ZERO, &mut |_| {})
    }

    #[test]
    fn every_other_segment_is_acknowledged_and_one_out_of_order_at_once() {
        let mut incoming = incoming("100ms", 10);
        assert_eq!([0, 10, 20].map(|from| take(&mut incoming, from, 10)), [false, true, false]);
        assert!(take(&mut incoming, 40, 10), "beyond a gap");
        assert_eq!(incoming.ranges(), [(40, 50)]);
        assert!(take(&mut incoming, 30, 10), "the gap is filled");
        assert_eq!((incoming.expected, incoming.ranges()), (50, vec![]));
        assert!(take(&mut incoming, 20, 10), "once more");
        assert_eq!(incoming.ranges(), [(20, 30)], "D-SACK");
        assert_eq!(incoming.ranges(), []);
    }

    #[test]
    fn parts_of_a_segment_wait_no_longer_than_a_segment() {
        let mut incoming = incoming("100ms", 1000);
        assert!(!take(&mut incoming, 0, 10));
        assert_eq!(incoming.wake(), Instant::ZERO + Duration::from_millis(100));
        assert!(take(&mut incoming, 10, 10), "the second part");
        assert!(!take(&mut incoming, 20, 10));
        assert!(incoming.on_wake(Instant::ZERO + Duration::from_millis(100)));
        assert_eq!(incoming.wake(), Instant::NEVER);
    }

    #[test]
    fn the_last_range_comes_first() {
        let mut incoming = incoming("0s", 10);
        for from in [20, 60, 40] {
            take(&mut incoming, from, 10);
        }
        assert_eq!(incoming.ranges(), [(40, 50), (60, 70), (20, 30)]);
        take(&mut incoming, 30, 10);
        assert_eq!(incoming.ranges(), [(20, 50), (60, 70)]);
    }

    proptest! {
        #[test]
        fn bytes_come_in_order_once(parts in proptest::collection::vec((0_u64..200, 1_usize..50), 0..100), segment in 1_u64..40) {
            let content: Vec<u8> = (0..300).map(|n| n as u8).collect();
            let mut incoming = incoming("0s", segment);
            let mut delivered = Vec::new();
            let mut come = vec![false; 300];
            for (from, length) in parts {
                let data = &content[from as usize..from as usize + length];
                come[from as usize..from as usize + length].fill(true);
                incoming.on_data(from, data, (Ecn::NotCapable, false), Instant::ZERO, &mut |part| delivered.extend_from_slice(part));
                let expected = come.iter().position(|come| !come).unwrap_or(300);
                prop_assert_eq!(incoming.expected, expected as u64);
                prop_assert_eq!(&delivered[..], &content[..expected]);
                let arrived = come.iter().filter(|come| **come).count();
                prop_assert_eq!(incoming.arrived(), arrived as u64);
                for number in 0..300 / segment {
                    let bytes = number * segment..(number + 1) * segment;
                    let is_whole = bytes.into_iter().all(|byte| come[byte as usize]);
                    prop_assert_eq!(incoming.has_segment(number), is_whole, "{}", number);
                }
                for (from, end) in incoming.ranges().into_iter().filter(|(from, _)| *from >= expected as u64) {
                    prop_assert!((from..end).all(|byte| come[byte as usize]));
                }
            }
        }
    }
}
