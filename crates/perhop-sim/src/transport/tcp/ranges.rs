//! What the receiver reports by selective acknowledgements: RFC 2018, sections 3 and 4.

use crate::transport::metadata::{AckRecord, Block, MOST_BLOCKS};

/// The ranges beyond a gap that a receiver holds, and the marked packets that it counts.
///
/// ## Deviations
/// - A segment that came twice (RFC 2883) is reported beside the three ranges, not in place of one.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldRanges {
    /// The ranges beyond the first gap; what came last first, so that each is reported in several
    /// acknowledgements.
    ranges: Vec<Block>,
    /// Marked packets so far.
    pub(super) marked: u32,
}

impl HeldRanges {
    /// Notes a segment that came for the `first` time or again; everything below `expected` has come then.
    pub(super) fn note(&mut self, sequence: u32, first: bool, expected: u32) {
        if first {
            self.hold(sequence, expected);
        } else if let Some(place) =
            self.ranges.iter().position(|&(begin, end)| (begin..end).contains(&sequence))
        {
            self.ranges[..=place].rotate_right(1);
        }
    }

    /// Notes a new segment, and forgets what is in order by now.
    fn hold(&mut self, sequence: u32, expected: u32) {
        if sequence < expected {
            self.ranges.retain(|&(begin, _)| begin >= expected);
            return;
        }
        let before = self.ranges.iter().position(|&(_, end)| end == sequence);
        let after = self.ranges.iter().position(|&(begin, _)| begin == sequence + 1);
        match (before, after) {
            (None, None) => self.ranges.insert(0, (sequence, sequence + 1)),
            (Some(place), None) => {
                self.ranges[place].1 = sequence + 1;
                self.ranges[..=place].rotate_right(1);
            }
            (None, Some(place)) => {
                self.ranges[place].0 = sequence;
                self.ranges[..=place].rotate_right(1);
            }
            (Some(place), Some(behind)) => {
                self.ranges[place].1 = self.ranges[behind].1;
                self.ranges[..=place].rotate_right(1);
                // What was before it is one place further on.
                self.ranges.remove(if behind < place { behind + 1 } else { behind });
            }
        }
    }

    /// Returns what an ACK carries that asks for segment `expected`.
    #[inline]
    pub(super) fn record(&self, expected: u32, marked: u32, duplicate: Option<u32>) -> AckRecord {
        let mut blocks = [(0, 0); MOST_BLOCKS];
        for (place, block) in blocks.iter_mut().zip(&self.ranges) {
            *place = *block;
        }
        AckRecord { expected, blocks, marked, duplicate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Ack;
    use crate::transport::metadata::Metadata;
    use crate::transport::tcp::{Signals, TcpEcn, TcpReceiver};
    use perhop_core::Instant;
    use proptest::prelude::*;

    struct Wire {
        receiver: TcpReceiver,
        metadata: Metadata,
    }

    impl Wire {
        fn new(extra: &str) -> Self {
            let params = format!(r#"{{"tcp": "newreno", "window": "100p", "sack": true {extra}}}"#);
            let params = serde_json::from_str(&params).unwrap();
            Self::of(&params, TcpEcn::Off)
        }

        fn of(params: &super::super::TcpParams, ecn: TcpEcn) -> Self {
            Self { receiver: TcpReceiver::new(params, ecn), metadata: Metadata::acks() }
        }

        /// The ACK of a segment, its empty blocks left out.
        fn data(&mut self, sequence: u32) -> Option<(u32, Vec<Block>)> {
            let signals = Signals::default();
            let Ack { number, .. } =
                self.receiver.on_data(sequence, signals, Instant::ZERO, &mut self.metadata).ack?;
            let AckRecord { expected, blocks, .. } = self.metadata.of_acks().take(number, 0).unwrap();
            Some((expected, blocks.into_iter().filter(|(begin, end)| begin < end).collect()))
        }
    }

    #[test]
    fn accurate_feedback_counts_marked_packets_and_echoes_nothing() {
        let params = serde_json::from_str(r#"{"tcp": "newreno", "sack": true}"#).unwrap();
        let mut wire = Wire::of(&params, TcpEcn::Accurate);
        let counts = [false, true, true, false, true].into_iter().enumerate().map(|(sequence, marked)| {
            let signals = Signals { marked, reduced: false };
            let receiver = &mut wire.receiver;
            let ack =
                receiver.on_data(sequence as u32, signals, Instant::ZERO, &mut wire.metadata).ack.unwrap();
            (ack.ece, wire.metadata.of_acks().take(ack.number, 0).unwrap().marked)
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
            let ack =
                wire.receiver.on_data(sequence, Signals::default(), Instant::ZERO, &mut wire.metadata).ack;
            wire.metadata.of_acks().take(ack.unwrap().number, 0).unwrap().duplicate
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
