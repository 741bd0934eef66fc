//! How a calendar adapts the width and the number of its buckets.

use super::bit_set::BitSet;
use super::{Calendar, REVIEWS, SHIFTS, SIZES};
use crate::timed::Timed;

/// Entries that a bucket should hold, fewer where it must be sorted; outside of this, the width is changed.
pub(super) const FILL_IN_ORDER: std::ops::RangeInclusive<u64> = 16..=64;
const FILL_IN_DISORDER: std::ops::RangeInclusive<u64> = 16..=36;
impl<T: Timed> Calendar<T> {
    /// Fits the buckets' width to how thick entries come, and their number to how far ahead. Only between two
    /// buckets.
    #[cold]
    pub(super) fn review(&mut self) {
        // With ranks, not all that are late are seen.
        self.disorder = if self.disorder { 5 } else { 2 } * self.late > self.found;
        let wanted = if self.disorder { FILL_IN_DISORDER } else { FILL_IN_ORDER };
        // A bucket may fill without being opened: the first one, and one that went on after the last review.
        let fill = (self.found / self.opened.max(1)).max(1);
        let shift = if fill > *wanted.end() {
            self.shift.saturating_sub((fill / *wanted.start()).ilog2().max(1))
        } else if fill < *wanted.start() {
            self.shift + (*wanted.end() / fill).ilog2().saturating_sub(1).max(1)
        } else {
            self.shift
        };
        let shift = shift.clamp(*SHIFTS.start(), self.widest);
        // The wheel spans as long a time as before, and more if much went beyond it.
        let far = self.sent_far - self.sent_far_before;
        let span = (self.wheel.len() as u64) << self.shift;
        let span = if far * 8 > self.found { span.max(self.furthest.saturating_mul(2)) } else { span };
        let span = span.max(1).ilog2();
        // Wide buckets are better than many beyond the wheel.
        let shift = shift.max(span.saturating_sub(*SIZES.end()));
        let size = span.saturating_sub(shift).clamp(*SIZES.start(), *SIZES.end());
        if shift != self.shift || 1 << size != self.wheel.len() {
            self.rebuild(shift, size);
            self.review_after = (self.review_after * 2).min(*REVIEWS.end());
        }
        (self.opened, self.found, self.late, self.furthest) = (0, 0, 0, 0);
        self.sent_far_before = self.sent_far;
    }

    /// Puts all that is pending, which comes after the bucket that has just ended, into the wheel anew: first
    /// what was beyond it, as if it had come into its bucket before.
    fn rebuild(&mut self, shift: u32, size: u32) {
        let far = std::mem::take(&mut self.far).into_sorted_vec();
        let far = far.into_iter().rev().map(|far| far.entry);
        let pending: Vec<T> = far.chain(self.wheel.iter_mut().flat_map(std::mem::take)).collect();
        self.number = self.number << self.shift >> shift;
        self.shift = shift;
        self.wheel.resize_with(1 << size, Vec::new);
        self.filled = BitSet::below(self.wheel.len());
        for entry in pending {
            self.push(entry);
        }
    }
}
