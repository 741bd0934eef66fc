//! Entries of a priority queue over time.

use perhop_core::Instant;

/// Something that happens at a time.
pub trait Timed: Copy {
    /// Returns when it happens.
    fn at(&self) -> Instant;

    /// Orders entries of the same time. Entries of the same rank keep the order in which they were added.
    fn rank(&self) -> u64;
}

/// Returns whether `one` happens strictly before `other`.
#[inline]
pub fn precedes<T: Timed>(one: &T, other: &T) -> bool {
    one.at() < other.at() || (one.at() == other.at() && one.rank() < other.rank())
}
