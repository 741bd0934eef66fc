//! Calendar queue (Brown 1988): a priority queue of timed entries in buckets, sorted when their time comes.
//!
//! A hop takes at least the link's delay, so nearly every entry belongs to a later bucket than the one being
//! handled: putting it there is one append, and a bucket is sorted once, when it is short, and often in order
//! already. Buckets are made narrower or wider as entries come thicker or thinner. Entries beyond the wheel
//! wait in a heap.

#![expect(clippy::inline_always, reason = "each packet comes through here twice")]

mod bit_set;
mod far;
mod review;
mod sort;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BinaryHeap;

use perhop_core::{Duration, Instant, prefetch};

use self::bit_set::BitSet;
use self::far::Far;
use self::review::FILL_IN_ORDER;
use self::sort::sort;
use crate::events::{Event, Schedule};
use crate::timed::{Timed, precedes};

/// Fewest and most buckets of a wheel, as powers of two.
const SIZES: std::ops::RangeInclusive<u32> = 8..=16;
/// Narrowest and widest bucket, as powers of two of a nanosecond: 1 µs and 17 ms.
const SHIFTS: std::ops::RangeInclusive<u32> = 10..=24;
/// Buckets opened between two reviews, unless they hold far too much: at first, and at most. Each change
/// doubles it, so that changes cost little.
const REVIEWS: std::ops::RangeInclusive<u64> = 256..=16_384;
/// Memory with room for more entries than this is not kept for other buckets: they would not fill it.
const ROOMY: usize = 128;
/// Up to this many entries are sorted by insertion, or by their ranks.
const SHORT: usize = 64;
/// The usual distance between two entries, and how far ahead of the clock they lie, for all that is known.
pub(super) const USUAL_GAP: Duration = Duration::from_nanos(65_536);
pub(super) const USUAL_REACH: Duration = Duration::from_nanos(1 << 28);

/// Pending entries, in the order of (time, rank, addition). That order is part of the simulator's contract:
/// it does not depend on the calendar's build, nor on its buckets' width.
#[derive(Clone, Debug)]
pub struct Calendar<T> {
    /// Entries of the bucket being handled, in order; those before `taken` are past.
    current: Vec<T>,
    taken: usize,
    /// The absolute number of that bucket: the time of its beginning >> shift.
    number: u64,
    shift: u32,
    /// The widest bucket: entries that come sooner than it is wide would fall into the one being handled.
    widest: u32,
    /// Of n buckets, a power of two, bucket b holds entries of the one among the absolute buckets number + 1
    /// to number + n - 1 that is b modulo n.
    wheel: Vec<Vec<T>>,
    /// Memory for buckets. A bucket has some only while it holds something, and takes what was in use last:
    /// so the wheel needs no more than what is pending, and finds it in the cache.
    spare: Vec<Vec<T>>,
    /// The buckets that hold something.
    filled: BitSet,
    far: BinaryHeap<Far<T>>,
    /// Entries that went to the heap so far: the order of addition there.
    sent_far: u64,
    /// Entries that had gone to the heap by the last review.
    sent_far_before: u64,
    /// The greatest distance ahead of the clock of an entry since the last review, in nanoseconds.
    furthest: u64,
    /// Buckets to be opened before the next review.
    review_after: u64,
    /// Entries come in disorder.
    disorder: bool,
    /// Counts since the last review: buckets opened, entries found in them, and about how many of them came
    /// after some that were added later.
    opened: u64,
    found: u64,
    late: u64,
}

impl<T: Timed> Default for Calendar<T> {
    fn default() -> Self {
        Self::expecting(USUAL_GAP, USUAL_REACH)
    }
}

/// Pending events besides the arrival of packets.
pub(super) type EventQueue = Calendar<Event>;

impl Schedule for EventQueue {
    fn add(&mut self, event: Event) {
        self.push(event);
    }
}

impl<T: Timed> Calendar<T> {
    /// An empty calendar that expects two entries to be at least about so far apart, and up to so far ahead
    /// of the clock. It finds out for itself, but a good guess spares it doing so.
    ///
    /// Its wheel is as small as it can be: entries that come as thick as they may come widen it, while all
    /// other calendars of a large network keep one that fits the cache.
    pub fn expecting(gap: Duration, reach: Duration) -> Self {
        let span = reach.as_nanos().clamp(1, 1 << 60).next_power_of_two().ilog2();
        let full = gap.saturating_mul(*FILL_IN_ORDER.start()).as_nanos().max(1).ilog2();
        let widest = span.saturating_sub(3).clamp(*SHIFTS.start(), *SHIFTS.end());
        let shift = full.max(span.saturating_sub(*SIZES.start())).clamp(*SHIFTS.start(), widest);
        let size = span.saturating_sub(shift).clamp(*SIZES.start(), *SIZES.end());
        Self {
            current: Vec::new(),
            taken: 0,
            number: 0,
            shift,
            widest,
            wheel: (0..1 << size).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            filled: BitSet::below(1 << size),
            far: BinaryHeap::new(),
            sent_far: 0,
            sent_far_before: 0,
            furthest: 0,
            review_after: *REVIEWS.start(),
            disorder: false,
            opened: 0,
            found: 0,
            late: 0,
        }
    }

    /// Adds an entry. It must not lie before the last one taken.
    #[inline(always)]
    pub fn push(&mut self, entry: T) {
        let number = entry.at().as_nanos() >> self.shift;
        let ahead = number.wrapping_sub(self.number);
        if ahead.wrapping_sub(1) < self.wheel.len() as u64 - 1 {
            let bucket = self.bucket(number);
            let entries = &mut self.wheel[bucket];
            if entries.len() < entries.capacity() {
                entries.push(entry); // It has memory, so it is known to hold something.
            } else {
                self.push_to_full(bucket, entry);
            }
        } else {
            self.push_elsewhere(entry);
        }
    }

    /// Keeps a bucket's memory, empty, for others.
    fn keep(&mut self, mut spare: Vec<T>) {
        spare.clear();
        if (1..=ROOMY).contains(&spare.capacity()) {
            self.spare.push(spare);
        }
    }

    /// Gives up the memory that waits for entries.
    pub fn give_up_memory(&mut self) {
        self.spare = Vec::new();
    }

    /// Adds an entry to a bucket that has no room left, or no memory yet.
    #[inline(never)]
    fn push_to_full(&mut self, bucket: usize, entry: T) {
        if self.wheel[bucket].capacity() == 0 {
            self.filled.insert(bucket);
            if let Some(spare) = self.spare.pop() {
                self.wheel[bucket] = spare;
            }
        }
        self.wheel[bucket].push(entry);
    }

    /// Returns the place in the wheel of an absolute bucket.
    #[inline(always)]
    fn bucket(&self, number: u64) -> usize {
        number as usize & (self.wheel.len() - 1)
    }

    /// Adds an entry to the current bucket, or beyond the wheel.
    #[cold]
    fn push_elsewhere(&mut self, entry: T) {
        if entry.at().as_nanos() >> self.shift > self.number {
            self.far.push(Far { entry, number: self.sent_far });
            self.sent_far += 1;
            self.furthest = self.furthest.max(entry.at().as_nanos() - (self.number << self.shift));
            return;
        }
        let pending = self.current.get(self.taken..).unwrap_or_default(); // They may be lent.
        let behind = pending.iter().rev().take_while(|other| precedes(&entry, other)).count();
        self.current.insert(self.current.len() - behind, entry);
    }

    /// Returns the time before which no entry comes, exact while a bucket is open; `NEVER` if there is none.
    #[inline]
    pub fn next(&self) -> Instant {
        match self.current.get(self.taken) {
            Some(entry) => entry.at(),
            None => {
                self.next_bucket().map_or(Instant::NEVER, |number| Instant::from_nanos(number << self.shift))
            }
        }
    }

    /// Returns when the last entry comes, in time that grows with their number; `ZERO` if there is none.
    pub fn latest(&self) -> Instant {
        self.iter().map(T::at).max().unwrap_or(Instant::ZERO)
    }

    /// Returns all entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let current = self.current.get(self.taken..).unwrap_or_default();
        self.wheel.iter().flatten().chain(current).chain(self.far.iter().map(|far| &far.entry))
    }

    /// Takes the next entry if it comes before `bound`.
    #[inline]
    pub fn pop(&mut self, bound: Instant) -> Option<T> {
        let entry = *self.peek(bound)?;
        self.taken += 1;
        Some(entry)
    }

    /// Returns the next entry if it comes before `bound`; nothing is to be added before `bound` from here on.
    #[inline]
    pub fn peek(&mut self, bound: Instant) -> Option<&T> {
        if self.taken == self.current.len() && !self.open_next(bound) {
            return None;
        }
        self.current.get(self.taken).filter(|entry| entry.at() < bound)
    }

    /// Lends the entries of one bucket, with the range of those that come next and before `bound`. Hand them
    /// back with [`give_back`](Self::give_back) before any call but [`push`](Self::push).
    #[inline]
    pub fn lend(&mut self, bound: Instant) -> Option<(Vec<T>, std::ops::Range<usize>)> {
        if self.taken == self.current.len() && !self.open_next(bound) {
            return None;
        }
        let begin = self.taken;
        let pending = &self.current[begin..];
        let ready = match pending.last() {
            Some(last) if last.at() < bound => pending.len(),
            _ => pending.iter().take_while(|entry| entry.at() < bound).count(),
        };
        (ready > 0).then(|| (std::mem::take(&mut self.current), begin..begin + ready))
    }

    /// Takes back a lent bucket, of which the first `taken` entries are consumed. Returns the number consumed
    /// since [`lend`](Self::lend).
    #[inline]
    pub fn give_back(&mut self, entries: Vec<T>, taken: usize) -> usize {
        let added = std::mem::replace(&mut self.current, entries);
        let past = taken - self.taken;
        self.taken = taken;
        if !added.is_empty() {
            self.current.extend(added);
            sort(&mut self.current[taken..]);
        }
        past
    }

    /// Returns the absolute number of the first bucket after the current one that holds something.
    fn next_bucket(&self) -> Option<u64> {
        let far = self.far.peek().map(|far| far.entry.at().as_nanos() >> self.shift);
        self.next_filled().into_iter().chain(far).min()
    }

    /// Makes the next bucket that holds something the current one; false if none does, or it begins at
    /// `bound` or later.
    ///
    /// A bucket is never opened ahead of the caller's clock, so whatever is added later fits in behind it.
    fn open_next(&mut self, bound: Instant) -> bool {
        let Some(mut number) = self.next_bucket() else { return false };
        if number << self.shift >= bound.as_nanos() {
            return false;
        }
        self.found += self.current.len() as u64;
        self.current.clear();
        self.taken = 0;
        if self.opened >= self.review_after || self.found >= self.review_after * FILL_IN_ORDER.end() {
            self.review();
            if !self.current.is_empty() {
                return true; // Buckets are wider now, and the last one goes on.
            }
            number = self.next_bucket().expect("a review loses nothing");
        }
        self.number = number;
        if !self.far.is_empty() {
            self.fetch();
        }
        let bucket = self.bucket(number);
        self.filled.remove(bucket);
        let entries = std::mem::take(&mut self.wheel[bucket]);
        if self.disorder && entries.len() <= SHORT {
            self.fill_by_ranks(entries);
        } else {
            let spare = std::mem::replace(&mut self.current, entries);
            self.keep(spare);
            self.late += sort(&mut self.current);
        }
        // The processor goes on by itself.
        let next = &self.wheel[self.bucket(number + 1)];
        prefetch(&next[..next.len().min(4)]);
        self.opened += 1;
        true
    }

    /// Takes from the heap what now lies within the wheel; added before what is there, it goes first.
    #[cold]
    fn fetch(&mut self) {
        let (mut filling, mut fetched) = (self.number, 0);
        while let Some(far) = self.far.peek() {
            let entry = far.entry;
            let number = entry.at().as_nanos() >> self.shift;
            if number >= self.number + self.wheel.len() as u64 {
                return;
            }
            self.far.pop();
            if number != filling {
                (filling, fetched) = (number, 0);
            }
            let bucket = self.bucket(number);
            self.wheel[bucket].insert(fetched, entry);
            self.filled.insert(bucket);
            fetched += 1;
        }
    }

    /// Returns the absolute number of the first bucket after the current one that holds something.
    #[inline]
    fn next_filled(&self) -> Option<u64> {
        let begin = self.bucket(self.number + 1);
        let bucket = self.filled.first_from(begin).or_else(|| self.filled.first_from(0))?;
        let ahead = self.bucket((bucket + self.wheel.len() - begin) as u64);
        Some(self.number + 1 + ahead as u64)
    }
}
