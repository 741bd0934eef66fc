//! The sender's scoreboard: RFC 6675, section 4, in whole segments.

use crate::transport::metadata::{AckRecord, Block, MOST_BLOCKS};

/// `DupThresh`: a segment is lost when this many beyond it have arrived.
pub(super) const DUP_THRESH: u32 = 3;

/// What the receiver holds of the outstanding segments, which are lost, and which were sent again.
///
/// Segments are judged and sent again in order, so two bounds say which each is; the counts make the pipe.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    /// Bit `n mod length` for each segment n that is outstanding and was selectively acknowledged.
    held: Vec<u64>,
    /// The first outstanding segment (`HighACK` + 1), and one past the last (`HighData` + 1).
    acked: u32,
    sent: u32,
    /// One past the highest that is held.
    top: u32,
    /// Below, what is not held is lost (`IsLost`).
    judged: u32,
    /// Below, what is not held was sent again (`HighRxt` + 1).
    resent: u32,
    counts: Counts,
    /// The ranges that were reported last: most of them are reported again.
    reported: [Block; MOST_BLOCKS],
}

/// How many outstanding segments there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    held: u32,
    /// Held, at or above `judged`.
    above: u32,
    /// Not held, below `judged`.
    lost: u32,
    /// Not held, below `resent`.
    resent: u32,
}

/// How many segments an acknowledgement says for the first time to have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    /// Now acknowledged in order.
    pub(super) in_order: u32,
    /// Selectively acknowledged.
    pub(super) held: u32,
}

impl Arrived {
    /// Returns how many segments arrived in all.
    pub(super) fn all(self) -> u32 {
        self.in_order + self.held
    }
}

impl Scoreboard {
    /// Makes a board with nothing outstanding, of a window of so many segments at most.
    pub(super) fn new(window: u32) -> Self {
        let words = (window as usize + 2).div_ceil(64).next_power_of_two();
        Self { held: vec![0; words], ..Self::default() }
    }

    /// Returns the pipe: how many segments are thought to be in the network (`SetPipe`).
    pub(super) fn pipe(&self) -> u32 {
        self.sent - self.acked - self.counts.held - self.counts.lost + self.counts.resent
    }

    /// Returns how many segments were sent and not acknowledged in order.
    pub(super) fn outstanding(&self) -> u32 {
        self.sent - self.acked
    }

    /// Returns how many outstanding segments the receiver holds.
    pub(super) fn held(&self) -> u32 {
        self.counts.held
    }

    /// Returns how many outstanding segments are lost.
    pub(super) fn lost(&self) -> u32 {
        self.counts.lost
    }

    /// Returns whether the receiver is known to have this segment.
    pub(super) fn has(&self, sequence: u32) -> bool {
        sequence < self.acked || self.holds(sequence)
    }

    fn holds(&self, sequence: u32) -> bool {
        let (word, bit) = self.place(sequence);
        self.held[word] & bit != 0
    }

    fn place(&self, sequence: u32) -> (usize, u64) {
        let bit = sequence as usize % (self.held.len() * 64);
        (bit / 64, 1 << (bit % 64))
    }

    /// Returns whether no outstanding segment is held or lost, and none was sent again.
    #[inline]
    pub(super) fn is_clean(&self) -> bool {
        self.counts == Counts::default()
    }

    /// Takes an ACK of everything below `expected`, which is not all, while the board [is
    /// clean](Self::is_clean).
    #[inline]
    pub(super) fn pass(&mut self, expected: u32) {
        debug_assert!(self.is_clean() && self.acked <= expected && expected < self.sent);
        self.acked = expected;
        self.judged = self.judged.max(expected);
        self.resent = self.resent.max(expected);
        self.top = self.top.max(expected);
    }

    /// Takes an acknowledgement (`Update`), and names the segments that it is the first to report.
    pub(super) fn take(&mut self, ack: &AckRecord, mut name: impl FnMut(u32)) -> Arrived {
        let in_order = self.advance(ack.expected.min(self.sent), &mut name);
        let mut held = 0;
        for (begin, end) in ack.blocks {
            if begin == end {
                break; // The others are none, too.
            }
            if self.reported.contains(&(begin, end)) {
                continue; // All of it is held, or acknowledged in order since.
            }
            let end = end.min(self.sent);
            let mut sequence = begin.max(self.acked);
            while sequence < end {
                sequence = self.hold_word(sequence, end, &mut held, &mut name);
            }
        }
        if !ack.is_plain() {
            self.reported = ack.blocks;
        }
        Arrived { in_order, held }
    }

    /// Acknowledges everything below `expected` in order; returns how many of these segments are new.
    fn advance(&mut self, expected: u32, name: &mut impl FnMut(u32)) -> u32 {
        let mut fresh = 0;
        while self.acked < expected {
            let (word, bit) = self.place(self.acked);
            if self.held[word] & bit != 0 {
                self.held[word] &= !bit;
                self.counts.held -= 1;
                self.counts.above -= u32::from(self.acked >= self.judged);
            } else {
                fresh += 1;
                name(self.acked);
                self.counts.lost -= u32::from(self.acked < self.judged);
                self.counts.resent -= u32::from(self.acked < self.resent);
            }
            self.acked += 1;
        }
        self.judged = self.judged.max(self.acked);
        self.resent = self.resent.max(self.acked);
        self.top = self.top.max(self.acked);
        fresh
    }

    /// Notes that those of `begin..end` are held that share a word with `begin`: most blocks repeat what is
    /// known. Returns where the next word begins.
    fn hold_word(&mut self, begin: u32, end: u32, fresh: &mut u32, name: &mut impl FnMut(u32)) -> u32 {
        let next = end.min((begin | 63) + 1);
        let (word, first) = self.place(begin);
        let mask = (u64::MAX >> (64 - (next - begin))) << first.trailing_zeros();
        let mut new = mask & !self.held[word];
        self.held[word] |= new;
        *fresh += new.count_ones();
        while new != 0 {
            let sequence = begin + new.trailing_zeros() - first.trailing_zeros();
            new &= new - 1;
            name(sequence);
            let is_judged = sequence < self.judged;
            self.counts.held += 1;
            self.counts.lost -= u32::from(is_judged);
            self.counts.above += u32::from(!is_judged);
            self.counts.resent -= u32::from(sequence < self.resent);
        }
        self.top = self.top.max(next);
        next
    }

    /// Finds what is lost by now: what has at least [`DUP_THRESH`] held segments above it (`IsLost`). Returns
    /// how much more that is than before, and names them.
    pub(super) fn judge(&mut self, mut name: impl FnMut(u32)) -> u32 {
        let before = self.counts.lost;
        while self.counts.above >= DUP_THRESH {
            if !self.holds(self.judged) {
                self.counts.lost += 1;
                name(self.judged);
            } else if self.counts.above == DUP_THRESH {
                // It may be the third of those above what comes before it, but nothing behind it has three.
                break;
            } else {
                self.counts.above -= 1;
            }
            self.judged += 1;
        }
        self.counts.lost - before
    }

    /// Gives up, to be sent again, all that is not held after a timeout; names what was not known to be lost.
    pub(super) fn lose_all(&mut self, name: impl FnMut(u32)) {
        (self.judged..self.sent).filter(|&sequence| !self.holds(sequence)).for_each(name);
        self.counts.lost = self.sent - self.acked - self.counts.held;
        self.counts.above = 0;
        self.judged = self.sent;
        self.begin_again();
    }

    /// Begins a recovery: nothing has been sent again in it (`HighRxt` = `HighACK`).
    pub(super) fn begin_again(&mut self) {
        self.resent = self.acked;
        self.counts.resent = 0;
    }

    /// Returns the first segment that is lost and was not sent again (`NextSeg`, rule 1).
    pub(super) fn next_lost(&mut self) -> Option<u32> {
        self.next_hole(self.judged)
    }

    /// Returns the first segment below the highest held one that has not arrived and was not sent again
    /// (`NextSeg`, rule 3).
    pub(super) fn next_missing(&mut self) -> Option<u32> {
        self.next_hole(self.top)
    }

    fn next_hole(&mut self, bound: u32) -> Option<u32> {
        while self.resent < bound && self.holds(self.resent) {
            self.resent += 1;
        }
        (self.resent < bound).then_some(self.resent)
    }

    /// Returns the highest outstanding segment that is not held (`NextSeg`, rule 4).
    pub(super) fn last_missing(&self) -> Option<u32> {
        (self.acked..self.sent).rev().find(|&sequence| !self.holds(sequence))
    }

    /// Notes that the segment of [`next_lost`](Self::next_lost) or [`next_missing`](Self::next_missing), or
    /// the first one, is sent again.
    pub(super) fn on_resent(&mut self, sequence: u32) {
        debug_assert!(sequence == self.resent && !self.holds(sequence));
        self.resent = sequence + 1;
        self.counts.resent += 1;
    }

    /// Notes that the next new segment is sent.
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn board(sent: u32) -> Scoreboard {
        let mut board = Scoreboard::new(sent);
        (0..sent).for_each(|_| board.on_sent());
        board
    }

    fn ack(expected: u32, blocks: &[(u32, u32)]) -> AckRecord {
        let mut ack = AckRecord { expected, blocks: [(0, 0); 3], marked: 0, duplicate: None };
        ack.blocks[..blocks.len()].copy_from_slice(blocks);
        ack
    }

    #[test]
    fn a_segment_is_lost_when_three_beyond_it_have_come() {
        let mut board = board(10);
        assert_eq!(
            (board.take(&ack(0, &[(1, 3)]), |_| ()).all(), board.judge(|_| ()), board.pipe()),
            (2, 0, 8)
        );
        // 0 is lost, 3 is not: only 4 is beyond it.
        assert_eq!(
            (board.take(&ack(0, &[(4, 5), (1, 3)]), |_| ()).all(), board.judge(|_| ()), board.pipe()),
            (1, 1, 6)
        );
        assert_eq!((board.next_lost(), board.next_missing()), (Some(0), Some(0)));
        board.on_resent(0);
        assert_eq!((board.pipe(), board.next_lost(), board.next_missing()), (7, None, Some(3)));
        // With 6 and 7, 3 is lost; 5 is not, 8 and 9 are above all that came.
        assert_eq!(
            (board.take(&ack(0, &[(6, 8), (4, 5), (1, 3)]), |_| ()).all(), board.judge(|_| ()), board.pipe()),
            (2, 1, 4)
        );
        assert_eq!((board.next_lost(), board.last_missing()), (Some(3), Some(9)));
        // The first one, sent again, arrives: 3 is the first that is missing.
        assert_eq!(
            (
                board.take(&ack(3, &[(6, 8), (4, 5)]), |_| ()).all(),
                board.judge(|_| ()),
                board.lost(),
                board.pipe()
            ),
            (1, 0, 1, 3)
        );
    }

    #[test]
    fn after_a_timeout_all_that_is_not_held_is_sent_again_in_order() {
        let mut board = board(6);
        board.take(&ack(1, &[(3, 4)]), |_| ());
        board.lose_all(|_| ());
        assert_eq!((board.pipe(), board.lost()), (0, 4));
        let again: Vec<u32> = std::iter::from_fn(|| {
            let next = board.next_lost()?;
            board.on_resent(next);
            Some(next)
        })
        .collect();
        assert_eq!((again, board.pipe()), (vec![1, 2, 4, 5], 4));
    }

    /// `SetPipe` and `IsLost` as RFC 6675 writes them, over sets.
    fn pipe_by_the_book(acked: u32, sent: u32, held: &BTreeSet<u32>, resent: u32) -> (u32, BTreeSet<u32>) {
        let missing: Vec<u32> = (acked..sent).filter(|n| !held.contains(n)).collect();
        let lost: BTreeSet<u32> =
            missing.iter().copied().filter(|&n| held.range(n..).count() >= DUP_THRESH as usize).collect();
        let pipe = missing.iter().map(|n| u32::from(!lost.contains(n)) + u32::from(*n < resent)).sum();
        (pipe, lost)
    }

    proptest! {
        #[test]
        fn agrees_with_the_rfc_over_sets(steps in prop::collection::vec((0_u8..4, 0_u32..40, 1_u32..9), 1..120)) {
            let mut board = board(20);
            let (mut acked, mut sent, mut resent) = (0, 20, 0);
            let mut held = BTreeSet::new();
            let mut all_lost_below = 0;
            for (what, at, length) in steps {
                match what {
                    0 if sent - acked < 20 => {
                        board.on_sent();
                        sent += 1;
                    }
                    1 if acked < sent => {
                        acked += at % (sent - acked + 1);
                        board.take(&ack(acked, &[]), |_| ());
                        while held.remove(&acked) {
                            acked += 1; // The receiver would have said so.
                        }
                        board.take(&ack(acked, &[]), |_| ());
                        held = held.split_off(&acked);
                        resent = resent.max(acked);
                    }
                    2 if acked + 1 < sent => {
                        let begin = acked + 1 + at % (sent - acked - 1);
                        let end = (begin + length).min(sent);
                        let new = (begin..end).filter(|n| held.insert(*n)).count();
                        prop_assert_eq!(board.take(&ack(acked, &[(begin, end)]), |_| ()).held as usize, new);
                    }
                    3 if at == 0 => {
                        board.lose_all(|_| ());
                        (all_lost_below, resent) = (sent, acked);
                    }
                    3 if at < 3 => {
                        board.begin_again();
                        resent = acked;
                    }
                    3 => {
                        board.judge(|_| ());
                        if let Some(next) = board.next_lost() {
                            prop_assert!(!held.contains(&next) && next >= resent);
                            board.on_resent(next);
                            resent = next + 1;
                        }
                    }
                    _ => {}
                }
                board.judge(|_| ());
                let (mut pipe, mut lost) = pipe_by_the_book(acked, sent, &held, resent);
                for n in acked..all_lost_below.max(acked) {
                    if !held.contains(&n) && lost.insert(n) {
                        pipe -= 1;
                    }
                }
                prop_assert_eq!((board.pipe(), board.lost() as usize), (pipe, lost.len()));
                let all_held = board.held();
                prop_assert_eq!(all_held as usize, held.len());
            }
        }
    }
}
