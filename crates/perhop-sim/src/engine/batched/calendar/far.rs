//! Entries beyond the wheel of a calendar.

use perhop_core::Instant;

use crate::timed::Timed;

/// An entry beyond the wheel; the soonest is the greatest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Far<T> {
    pub(super) entry: T,
    /// The number in the order of addition, which decides between entries of one time.
    pub(super) number: u64,
}

impl<T: Timed> Far<T> {
    fn key(&self) -> (Instant, u64, u64) {
        (self.entry.at(), self.entry.rank(), self.number)
    }
}

impl<T: Timed> PartialEq for Far<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T: Timed> Eq for Far<T> {}

impl<T: Timed> PartialOrd for Far<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Timed> Ord for Far<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.key().cmp(&self.key())
    }
}
