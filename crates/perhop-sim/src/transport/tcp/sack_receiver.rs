//! The receiver with selective acknowledgements: RFC 2018, sections 3 and 4.

use perhop_core::{Ecn, Instant};

use super::acks::{AckRecord, Acks, Block, MOST_BLOCKS, MOST_EXPECTED};
use super::{Signals, TcpEcn, TcpParams, TcpReceiver};
use crate::packet::Content;
use crate::transport::metadata::Metadata;
use crate::transport::{Ack, DelayedAck, Received, RidingAck};

/// A receiver that reports which ranges beyond a gap it holds.
///
/// ## Deviations
/// - It reports a segment that came twice (RFC 2883) beside the three ranges, not in place of one.
#[derive(Clone, Debug)]
pub struct SackReceiver {
    tcp: TcpReceiver,
    /// What it holds beyond the first gap; what came last first, so that each is reported in several acknowledgements.
    held: Vec<Block>,
    /// Marked packets so far.
    marked: u32,
}

impl SackReceiver {
    /// A receiver of these parameters that has nothing.
    pub fn new(params: &TcpParams, ecn: TcpEcn) -> Self {
        Self { tcp: TcpReceiver::new(params, ecn), held: Vec::new(), marked: 0 }
    }

    /// The first segment that has not come.
    pub(in crate::transport) fn expected(&self) -> u32 {
        self.tcp.expected()
    }

    /// See [`TcpReceiver::is_in_order`].
    pub(in crate::transport) fn is_in_order(&self) -> bool {
        self.tcp.is_in_order()
    }

    /// See [`TcpReceiver::ride`].
    pub(in crate::transport) fn ride(&mut self) -> RidingAck {
        RidingAck { marked: self.counted(), ..self.tcp.ride() }
    }

    /// See [`TcpReceiver::is_on_fast_path`].
    pub(in crate::transport) fn is_on_fast_path(&self) -> bool {
        self.tcp.is_on_fast_path()
    }

    /// See [`TcpReceiver::receive_fast`]: the ACK reports nothing but which segment is expected, whose number it has.
    #[inline]
    pub(in crate::transport) fn receive_fast(&mut self, sequence: u32) -> Option<u32> {
        debug_assert!(self.is_on_fast_path() && self.held.is_empty());
        if sequence >= MOST_EXPECTED { None } else { self.tcp.receive_fast(sequence) }
    }

    /// See [`TcpReceiver::is_on_delayed_fast_path`].
    pub(in crate::transport) fn is_on_delayed_fast_path(&self) -> bool {
        self.tcp.is_on_delayed_fast_path()
    }

    /// See [`TcpReceiver::receive_delayed_fast`].
    #[inline(always)]
    pub(in crate::transport) fn receive_delayed_fast(
        &mut self,
        content: Content,
        now: Instant,
        metadata: &mut Metadata,
    ) -> Option<DelayedAck> {
        debug_assert!(self.is_on_delayed_fast_path() && self.held.is_empty());
        let sequence = content.sequence();
        if sequence >= MOST_EXPECTED {
            return None;
        }
        if !self.tcp.echo.counts() {
            return self.tcp.receive_delayed_fast(sequence, now);
        }
        if content.ecn() == Ecn::Congested {
            return None;
        }
        Some(match self.tcp.receive_delayed_fast(sequence, now)? {
            DelayedAck::Sent(number) => DelayedAck::Sent(metadata.of_acks().post_plain(number, self.marked)),
            waits => waits,
        })
    }

    /// The fast path of most segments beyond a gap: what [`on_data`](Self::on_data) does of the one behind the range that it reports
    /// first, or of one that begins another, if it holds some and nothing above. Returns the number of its ACK; `None`, having done
    /// nothing, for any other segment.
    #[inline(always)]
    pub(in crate::transport) fn receive_ahead(&mut self, sequence: u32, acks: &mut Acks) -> Option<u32> {
        let first = self.held.first_mut()?;
        let lengthens = first.1 == sequence;
        if !(lengthens || self.tcp.is_beyond(sequence)) || !self.tcp.receive_ahead(sequence) {
            return None;
        }
        if lengthens {
            first.1 = sequence + 1;
        } else {
            self.held.insert(0, (sequence, sequence + 1));
        }
        Some(acks.post_record(self.record(self.tcp.expected(), None)))
    }

    /// A segment came; returns the number under which its ACK is in transit.
    pub(in crate::transport) fn on_data(
        &mut self,
        sequence: u32,
        signals: Signals,
        now: Instant,
        acks: &mut Acks,
    ) -> Received {
        self.marked += u32::from(signals.marked);
        let is_in_order = sequence == self.tcp.expected() && self.held.is_empty();
        let Received { first, ack } = self.tcp.on_data(sequence, signals, now);
        if is_in_order {
            return Received { first, ack: ack.map(|ack| self.post_plain(ack, acks)) };
        }
        if first {
            self.hold(sequence);
        } else if let Some(place) =
            self.held.iter().position(|&(begin, end)| (begin..end).contains(&sequence))
        {
            self.held[..=place].rotate_right(1);
        }
        let duplicate = (!first).then_some(sequence);
        Received { first, ack: ack.map(|ack| self.post(ack, duplicate, acks)) }
    }

    /// Sends an ACK while nothing is held.
    #[inline]
    fn post_plain(&self, ack: Ack, acks: &mut Acks) -> Ack {
        Ack { number: acks.post_plain(ack.number, self.counted()), ..ack }
    }

    /// What ACKs say of marked packets.
    #[inline]
    fn counted(&self) -> u32 {
        if self.tcp.echo.counts() { self.marked } else { 0 }
    }

    pub(in crate::transport) fn on_wake(&mut self, now: Instant, acks: &mut Acks) -> Option<Ack> {
        self.tcp.on_wake(now).map(|ack| self.post(ack, None, acks))
    }

    /// Sends an ACK with what it reports besides its number.
    fn post(&self, ack: Ack, duplicate: Option<u32>, acks: &mut Acks) -> Ack {
        Ack { number: acks.post(self.record(ack.number, duplicate)), ..ack }
    }

    pub(in crate::transport) fn wake(&self) -> Instant {
        self.tcp.wake()
    }

    /// Notes a new segment, and forgets what is in order by now.
    fn hold(&mut self, sequence: u32) {
        let expected = self.tcp.expected();
        if sequence < expected {
            self.held.retain(|&(begin, _)| begin >= expected);
            return;
        }
        let before = self.held.iter().position(|&(_, end)| end == sequence);
        let after = self.held.iter().position(|&(begin, _)| begin == sequence + 1);
        match (before, after) {
            (None, None) => self.held.insert(0, (sequence, sequence + 1)),
            (Some(place), None) => {
                self.held[place].1 = sequence + 1;
                self.held[..=place].rotate_right(1);
            }
            (None, Some(place)) => {
                self.held[place].0 = sequence;
                self.held[..=place].rotate_right(1);
            }
            (Some(place), Some(behind)) => {
                self.held[place].1 = self.held[behind].1;
                self.held[..=place].rotate_right(1);
                // What was before it is one place further on.
                self.held.remove(if behind < place { behind + 1 } else { behind });
            }
        }
    }

    #[inline]
    fn record(&self, expected: u32, duplicate: Option<u32>) -> AckRecord {
        let mut blocks = [(0, 0); MOST_BLOCKS];
        for (place, block) in blocks.iter_mut().zip(&self.held) {
            *place = *block;
        }
        AckRecord { expected, blocks, marked: self.counted(), duplicate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Wire {
        receiver: SackReceiver,
        acks: Acks,
    }

    impl Wire {
        fn new(extra: &str) -> Self {
            let params = format!(r#"{{"tcp": "newreno", "window": "100p", "sack": true {extra}}}"#);
            let params = serde_json::from_str(&params).unwrap();
            Self { receiver: SackReceiver::new(&params, TcpEcn::Off), acks: Acks::default() }
        }

        /// The ACK of a segment, its empty blocks left out.
        fn data(&mut self, sequence: u32) -> Option<(u32, Vec<Block>)> {
            let signals = Signals::default();
            let Ack { number, .. } =
                self.receiver.on_data(sequence, signals, Instant::ZERO, &mut self.acks).ack?;
            let AckRecord { expected, blocks, .. } = self.acks.take(number, 0).unwrap();
            Some((expected, blocks.into_iter().filter(|(begin, end)| begin < end).collect()))
        }
    }

    #[test]
    fn accurate_feedback_counts_marked_packets_and_echoes_nothing() {
        let mut wire = Wire::new("");
        wire.receiver.tcp.echo = super::super::ecn::Echo::new(TcpEcn::Accurate, false);
        let counts = [false, true, true, false, true].into_iter().enumerate().map(|(sequence, marked)| {
            let signals = Signals { marked, reduced: false };
            let receiver = &mut wire.receiver;
            let ack = receiver.on_data(sequence as u32, signals, Instant::ZERO, &mut wire.acks).ack.unwrap();
            (ack.ece, wire.acks.take(ack.number, 0).unwrap().marked)
        });
        let expected = [0, 1, 2, 2, 3].map(|count| (false, count));
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn rfc_2018_section_5() {
        // Case 2 of its examples: the first of eight segments is dropped, and the other seven come.
        let mut wire = Wire::new("");
        for sequence in 1..8 {
            assert_eq!(wire.data(sequence), Some((0, vec![(1, sequence + 1)])));
        }
        // Case 3: the second, fourth, sixth and eighth are dropped; then the fourth comes, then the second.
        let mut wire = Wire::new("");
        assert_eq!(wire.data(0), Some((1, vec![])));
        assert_eq!(wire.data(2), Some((1, vec![(2, 3)])));
        assert_eq!(wire.data(4), Some((1, vec![(4, 5), (2, 3)])));
        assert_eq!(wire.data(6), Some((1, vec![(6, 7), (4, 5), (2, 3)])));
        assert_eq!(wire.data(3), Some((1, vec![(2, 5), (6, 7)])));
        assert_eq!(wire.data(1), Some((5, vec![(6, 7)])));
        assert_eq!(wire.data(5), Some((7, vec![])));
    }

    #[test]
    fn a_duplicate_is_reported_first_and_no_more_than_three_are() {
        let mut wire = Wire::new("");
        for sequence in [1, 3, 5, 7] {
            wire.data(sequence);
        }
        assert_eq!(wire.data(9), Some((0, vec![(9, 10), (7, 8), (5, 6)])));
        assert_eq!(wire.data(3), Some((0, vec![(3, 4), (9, 10), (7, 8)])));
    }

    #[test]
    fn what_came_before_is_reported_as_a_duplicate() {
        let mut wire = Wire::new("");
        let mut duplicates = |sequence| {
            let ack = wire.receiver.on_data(sequence, Signals::default(), Instant::ZERO, &mut wire.acks).ack;
            wire.acks.take(ack.unwrap().number, 0).unwrap().duplicate
        };
        assert_eq!([0, 2, 2, 1, 0, 3].map(&mut duplicates), [None, None, Some(2), None, Some(0), None]);
    }

    #[test]
    fn quick_acknowledgements_come_before_delayed_ones() {
        let mut wire = Wire::new(r#", "delayed-ack": "40ms", "quick-acks": "2p""#);
        let acks: Vec<bool> = (0..5).map(|sequence| wire.data(sequence).is_some()).collect();
        assert_eq!(acks, [true, true, false, true, false]);
        assert_eq!(wire.data(6), Some((5, vec![(6, 7)])), "at once: it is out of order");
        assert_eq!(wire.data(5), Some((7, vec![])), "at once: it fills the gap");
    }

    proptest! {
        #[test]
        fn tells_nothing_but_the_truth_and_the_newest_first(order in prop::collection::vec(0_u32..60, 1..200)) {
            let mut wire = Wire::new("");
            let mut seen = std::collections::BTreeSet::new();
            for sequence in order {
                seen.insert(sequence);
                let (expected, blocks) = wire.data(sequence).unwrap();
                prop_assert_eq!(Some(expected), (0..=60).find(|n| !seen.contains(n)));
                for &(begin, end) in &blocks {
                    prop_assert!(begin > expected && (begin..end).all(|n| seen.contains(&n)));
                    prop_assert!(!seen.contains(&(begin - 1)) && !seen.contains(&end), "blocks are whole");
                }
                if sequence > expected {
                    let (begin, end) = blocks[0];
                    prop_assert!((begin..end).contains(&sequence));
                }
                let beyond = (expected..60).filter(|n| seen.contains(n)).count();
                let reported: u32 = blocks.iter().map(|(begin, end)| end - begin).sum();
                prop_assert!(reported as usize == beyond || blocks.len() == MOST_BLOCKS);
            }
        }
    }
}
