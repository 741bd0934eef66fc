//! Calendar queue (Brown 1988): a priority queue of timed entries in buckets, each sorted when its time comes.
//!
//! A hop takes at least the link's delay, so nearly every entry belongs to a later bucket than the one being handled:
//! putting it there is one append, and a bucket is sorted once, when it is short, and often in order already. Buckets are
//! made narrower or wider as entries come thicker or thinner. Entries beyond the wheel wait in a heap.

#![expect(clippy::inline_always, reason = "each packet comes through here twice")]

use std::collections::BinaryHeap;

use perhop_core::{Duration, Instant};

use super::prefetch::prefetch;
use crate::events::{Event, Schedule};
use crate::timed::{Timed, precedes};

/// Fewest and most buckets of a wheel, as powers of two.
const SIZES: std::ops::RangeInclusive<u32> = 8..=16;
/// How far a wheel reaches at first, as a power of two of a nanosecond: 268 ms.
const SPAN: u32 = 28;
/// Narrowest and widest bucket, as powers of two of a nanosecond: 1 µs and 17 ms.
const SHIFTS: std::ops::RangeInclusive<u32> = 10..=24;
/// Entries a bucket should hold: outside of this, the width is changed. Buckets that must be sorted should be shorter.
const FILL_IN_ORDER: std::ops::RangeInclusive<u64> = 16..=64;
const FILL_IN_DISORDER: std::ops::RangeInclusive<u64> = 16..=36;
/// Buckets opened between two reviews, unless they hold far too much: at first, and at most. Each change doubles it, so
/// that changes cost little.
const REVIEWS: std::ops::RangeInclusive<u64> = 256..=16_384;
/// Of buckets sorted by ranks, one in so many is asked how many of its entries came late.
const LATE_BY_SAMPLE: u64 = 8;
/// What has room for more entries than this is not kept for other buckets: they would not fill it.
const ROOMY: usize = 128;
/// Up to this many entries are sorted by insertion, or by their ranks.
const SHORT: usize = 64;
/// A place in a short bucket and a rough time within the bucket fit into 16 bits together, of which processors compare many
/// at once.
const PLACE_BITS: u32 = 6;
const TIME_BITS: u32 = 10;
const _: () = assert!(PLACE_BITS + TIME_BITS == 16 && TIME_BITS <= *SHIFTS.start());
const _: () = assert!(SHORT == 1 << PLACE_BITS && SHORT.is_multiple_of(LANES));
/// Comparisons that processors make at once.
const LANES: usize = 32;

/// Pending entries, in the order of (time, rank, addition). That order is part of the simulator's contract: it does not
/// depend on the calendar's build, nor on its buckets' width.
#[derive(Clone, Debug)]
pub struct Calendar<T> {
    /// Entries of the bucket being handled, in order; those before `taken` are past.
    current: Vec<T>,
    taken: usize,
    /// The absolute number of that bucket: the time of its beginning >> shift.
    number: u64,
    shift: u32,
    /// Of n buckets, a power of two, bucket b holds entries of the one among the absolute buckets number + 1 to number +
    /// n - 1 that is b modulo n.
    wheel: Vec<Vec<T>>,
    /// Memory for buckets. A bucket has some only while it holds something, and takes what was in use last: so the wheel
    /// needs no more than what is pending, and finds it in the cache.
    spare: Vec<Vec<T>>,
    /// The buckets that hold something.
    filled: BitSet,
    far: BinaryHeap<Far<T>>,
    /// Entries that went to the heap so far: the order of addition there.
    sent_far: u64,
    /// By the last review.
    sent_far_before: u64,
    /// How far ahead any of them lay since then, in nanoseconds.
    furthest: u64,
    /// Buckets to be opened before the next review.
    review_after: u64,
    /// Entries come in disorder.
    disorder: bool,
    /// Since the last review: buckets opened, entries found in them, and about how many of them came after some that were
    /// added later.
    opened: u64,
    found: u64,
    late: u64,
}

/// An entry beyond the wheel; the soonest is the greatest.
#[derive(Clone, Copy, Debug)]
struct Far<T> {
    entry: T,
    number: u64,
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

impl<T: Timed> Default for Calendar<T> {
    fn default() -> Self {
        Self::expecting(Duration::from_nanos(65_536))
    }
}

/// Pending events besides the arrival of packets.
pub(super) type EventQueue = Calendar<Event>;

impl Schedule for EventQueue {
    fn add(&mut self, event: Event) {
        self.push(event);
    }
}

/// A set of numbers below 2¹⁶.
#[derive(Clone, Debug)]
struct BitSet {
    words: Vec<u64>,
    /// One bit for each word that is not zero, and one for each of these words.
    summary: [u64; 16],
    top: u64,
}

const _: () = assert!(1 << *SIZES.end() <= 64 * 64 * 16);

impl BitSet {
    /// An empty set for numbers below `end`.
    fn below(end: usize) -> Self {
        Self { words: vec![0; end.div_ceil(64)], summary: [0; 16], top: 0 }
    }

    fn insert(&mut self, number: usize) {
        let word = number / 64;
        self.words[word] |= 1 << (number % 64);
        self.summary[word / 64] |= 1 << (word % 64);
        self.top |= 1 << (word / 64);
    }

    fn remove(&mut self, number: usize) {
        let word = number / 64;
        self.words[word] &= !(1 << (number % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
            if self.summary[word / 64] == 0 {
                self.top &= !(1 << (word / 64));
            }
        }
    }

    /// The first of its numbers from `begin` on, up to the last that there may be.
    #[inline]
    fn first_from(&self, begin: usize) -> Option<usize> {
        let first = |bits: u64| (bits != 0).then(|| bits.trailing_zeros() as usize);
        let beyond = |place: usize| u64::MAX.checked_shl(place as u32 + 1).unwrap_or(0);
        let (word, place) = (begin / 64, begin / 64 / 64);
        if let Some(bit) = first(self.words[word] & u64::MAX << (begin % 64)) {
            return Some(word * 64 + bit);
        }
        let word = if let Some(bit) = first(self.summary[place] & beyond(word % 64)) {
            place * 64 + bit
        } else {
            let place = first(self.top & beyond(place))?;
            place * 64 + first(self.summary[place])?
        };
        Some(word * 64 + first(self.words[word])?)
    }
}

impl<T: Timed> Calendar<T> {
    /// An empty calendar that expects two entries to be about so far apart. It finds out for itself, but a good guess spares
    /// it doing so.
    pub fn expecting(gap: Duration) -> Self {
        let bucket = gap.saturating_mul(*FILL_IN_ORDER.start()).as_nanos().max(1);
        let shift = bucket.ilog2().clamp(*SHIFTS.start(), *SHIFTS.end());
        let size = SPAN.saturating_sub(shift).clamp(*SIZES.start(), *SIZES.end());
        Self {
            current: Vec::new(),
            taken: 0,
            number: 0,
            shift,
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

    /// Into a bucket that has no room left, or no memory yet.
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

    /// The place in the wheel of an absolute bucket.
    #[inline(always)]
    fn bucket(&self, number: u64) -> usize {
        number as usize & (self.wheel.len() - 1)
    }

    /// Into the current bucket, or beyond the wheel.
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

    /// No entry comes before this; exact while a bucket is open. [`Instant::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Instant {
        match self.current.get(self.taken) {
            Some(entry) => entry.at(),
            None => {
                self.next_bucket().map_or(Instant::NEVER, |number| Instant::from_nanos(number << self.shift))
            }
        }
    }

    /// When the last of all entries comes, in time that grows with their number; [`Instant::ZERO`] if there is none.
    pub fn latest(&self) -> Instant {
        let current = self.current.get(self.taken..).unwrap_or_default();
        let near = self.wheel.iter().flatten().chain(current).map(T::at);
        near.chain(self.far.iter().map(|far| far.entry.at())).max().unwrap_or(Instant::ZERO)
    }

    /// Takes the next entry if it comes before `bound`.
    #[inline]
    pub fn pop(&mut self, bound: Instant) -> Option<T> {
        let entry = *self.peek(bound)?;
        self.taken += 1;
        Some(entry)
    }

    /// The next entry if it comes before `bound`. What is added from here on should not come before `bound` either.
    #[inline]
    pub fn peek(&mut self, bound: Instant) -> Option<&T> {
        if self.taken == self.current.len() && !self.open_next(bound) {
            return None;
        }
        self.current.get(self.taken).filter(|entry| entry.at() < bound)
    }

    /// Lends the entries of one bucket, some of which come next and before `bound`: how many are past, and how many are not
    /// to be taken beyond. Hand them back with [`give_back`](Self::give_back) before anything but
    /// [`push`](Self::push) is asked of the calendar.
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

    /// Takes back what was lent, of which the first `taken` are past.
    #[inline]
    pub fn give_back(&mut self, entries: Vec<T>, taken: usize) {
        let added = std::mem::replace(&mut self.current, entries);
        self.taken = taken;
        if !added.is_empty() {
            self.current.extend(added);
            sort(&mut self.current[taken..]);
        }
    }

    /// The absolute number of the first bucket after the current one that holds something.
    fn next_bucket(&self) -> Option<u64> {
        let far = self.far.peek().map(|far| far.entry.at().as_nanos() >> self.shift);
        self.next_filled().into_iter().chain(far).min()
    }

    /// Makes the next bucket that holds something the current one; false if none does, or it begins at `bound` or later.
    ///
    /// A bucket is never opened ahead of the caller's clock, so whatever the caller still adds fits in behind it.
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

    /// Makes the few entries of a bucket that are in disorder the current ones, in order.
    ///
    /// An entry's place is the number of those that come before it. To count them takes more comparisons than to insert one
    /// after the other, but not one branch that depends on the outcome, which random order would make costly.
    #[inline(never)]
    fn fill_by_ranks(&mut self, entries: Vec<T>) {
        // Rough time within the bucket, and place so far: no two are alike.
        let mut keys = [i16::MAX; SHORT];
        let rough = self.shift - TIME_BITS;
        for (place, (key, entry)) in keys.iter_mut().zip(&entries).enumerate() {
            let time = (entry.at().as_nanos() >> rough) as u16;
            *key = (time << PLACE_BITS | place as u16).cast_signed() ^ i16::MIN;
        }
        let mut order = [0_u8; SHORT + 1];
        for (block, &some) in
            keys.as_chunks::<LANES>().0.iter().take(entries.len().div_ceil(LANES)).enumerate()
        {
            let mut before = [0_u16; LANES];
            for &other in keys.iter().take(entries.len()) {
                before.iter_mut().zip(some).for_each(|(count, key)| *count += u16::from(other < key));
            }
            // What fills up the last block comes last.
            for (lane, rank) in before.into_iter().enumerate() {
                order[rank as usize] = (block * LANES + lane) as u8;
            }
        }
        let order = &order[..entries.len()];
        self.current.extend(order.iter().map(|&place| entries[usize::from(place)]));
        // Entries that are close to each other may not be in order yet.
        if self.current.windows(2).any(|pair| pair[0].at() >= pair[1].at()) {
            sort(&mut self.current);
        }
        if self.opened.is_multiple_of(LATE_BY_SAMPLE) {
            self.late +=
                LATE_BY_SAMPLE * order.windows(2).map(|pair| u64::from(pair[1] < pair[0])).sum::<u64>();
        }
        self.keep(entries);
    }

    /// Takes from the heap what now lies within the wheel. It was added before whatever is there, so it goes first.
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

    /// The absolute number of the first bucket after the current one that holds something.
    #[inline]
    fn next_filled(&self) -> Option<u64> {
        let begin = self.bucket(self.number + 1);
        let bucket = self.filled.first_from(begin).or_else(|| self.filled.first_from(0))?;
        let ahead = self.bucket((bucket + self.wheel.len() - begin) as u64);
        Some(self.number + 1 + ahead as u64)
    }

    /// Fits the buckets' width to how thick entries come, and their number to how far ahead. Only between two buckets.
    #[cold]
    fn review(&mut self) {
        // With ranks, not all that are late are seen.
        self.disorder = if self.disorder { 5 } else { 2 } * self.late > self.found;
        let wanted = if self.disorder { FILL_IN_DISORDER } else { FILL_IN_ORDER };
        // A bucket may fill without having been opened: the first one, and one that went on after the last review.
        let fill = (self.found / self.opened.max(1)).max(1);
        let shift = if fill > *wanted.end() {
            self.shift.saturating_sub((fill / *wanted.start()).ilog2().max(1))
        } else if fill < *wanted.start() {
            self.shift + (*wanted.end() / fill).ilog2().saturating_sub(1).max(1)
        } else {
            self.shift
        };
        let shift = shift.clamp(*SHIFTS.start(), *SHIFTS.end());
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

    /// All that is pending comes after the bucket that has just ended, and goes into the wheel anew: first what was beyond it, as
    /// if that had come into its bucket before.
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

/// Sorts a bucket, keeping the order of equals, and tells how many entries it put before others. Most buckets are short, and
/// nearly in order.
#[inline]
fn sort<T: Timed>(entries: &mut [T]) -> u64 {
    if entries.len() > SHORT {
        return sort_long(entries);
    }
    let mut late = 0;
    for place in 1..entries.len() {
        let entry = entries[place];
        if !precedes(&entry, &entries[place - 1]) {
            continue;
        }
        let mut hole = place;
        while hole > 0 && precedes(&entry, &entries[hole - 1]) {
            entries[hole] = entries[hole - 1];
            hole -= 1;
        }
        entries[hole] = entry;
        late += 1;
    }
    late
}

#[cold]
fn sort_long<T: Timed>(entries: &mut [T]) -> u64 {
    let late = entries.windows(2).filter(|pair| precedes(&pair[1], &pair[0])).count() as u64;
    if late > 0 {
        entries.sort_by_key(|entry| (entry.at(), entry.rank()));
    }
    2 * late
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Ordered as a calendar orders entries: by time, then rank, then addition.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) struct Entry {
        pub(crate) at: Instant,
        pub(crate) rank: u32,
        pub(crate) added: u32,
    }

    impl Timed for Entry {
        fn at(&self) -> Instant {
            self.at
        }
        fn rank(&self) -> u64 {
            self.rank.into()
        }
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// Takes entries one by one, adding up to two new ones after each, and compares with a sorted set.
    fn agrees_with_a_sorted_set(gaps: &[(u64, u32)], scale: u32) {
        let mut calendar = Calendar::default();
        let mut set = BTreeSet::new();
        let mut gaps = gaps.iter().cycle();
        let mut now = Instant::ZERO;
        for step in 0..20_000_u32 {
            for _ in 0..(step % 3).min(2) {
                let (gap, rank) = gaps.next().unwrap();
                let added = 2 * step + set.len() as u32 % 2;
                let entry = Entry { at: at(now.as_nanos() + (gap << scale)), rank: *rank, added };
                set.insert(entry);
                calendar.push(entry);
            }
            assert!(calendar.next() <= set.first().map_or(Instant::NEVER, |entry| entry.at));
            let next = calendar.pop(Instant::NEVER);
            assert_eq!(next, set.pop_first());
            if let Some(entry) = next {
                assert!(entry.at >= now);
                now = entry.at;
            }
        }
    }

    #[test]
    fn what_is_far_is_not_forgotten_when_buckets_widen() {
        // Many that come in years, some that come soon, beyond the wheel; and a timer that is set again and again, 1 ms ahead.
        let mut calendar = Calendar::expecting(Duration::from_nanos(1000));
        let mut added = 0;
        let mut push = |calendar: &mut Calendar<Entry>, nanos: u64| {
            calendar.push(Entry { at: Instant::from_nanos(nanos), rank: 0, added });
            added += 1;
        };
        (0..400).for_each(|n| push(&mut calendar, 3_000_000_000_000_000_000 + n));
        (0..10).for_each(|n| push(&mut calendar, 3_000_000_000 + 500_000_000 * n));
        push(&mut calendar, 0);
        let (mut before, mut soon) = (Instant::ZERO, 0);
        while before < Instant::from_nanos(10_000_000_000) {
            let entry = calendar.pop(Instant::NEVER).unwrap();
            assert!(entry.at >= before);
            before = entry.at;
            if (400..410).contains(&entry.added) {
                soon += 1;
            } else {
                push(&mut calendar, entry.at.as_nanos() + 1_000_000);
            }
        }
        assert_eq!(soon, 10);
    }

    proptest! {
        #[test]
        fn a_bit_set_finds_what_a_sorted_set_does(
            numbers in prop::collection::vec((0_usize..1 << 16, any::<bool>()), 1..60),
            near in 0_usize..1 << 16,
        ) {
            let (mut bits, mut set) = (BitSet::below(1 << 16), BTreeSet::new());
            for (number, stays) in numbers {
                bits.insert(number);
                set.insert(number);
                if !stays {
                    bits.remove(number);
                    set.remove(&number);
                }
                for begin in [0, near, number, (number + 1) % (1 << 16), number / 64 * 64, (1 << 16) - 1] {
                    prop_assert_eq!(bits.first_from(begin), set.range(begin..).next().copied());
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_mix_of_near_and_far(
            gaps in prop::collection::vec((prop_oneof![0_u64..4, 0_u64..2000, 0_u64..3_000_000], 0_u32..5), 1..40),
            scale in 0_u32..14,
        ) {
            agrees_with_a_sorted_set(&gaps, scale);
        }
    }

    #[test]
    fn a_crowd_at_one_time_keeps_its_order() {
        let mut calendar = Calendar::default();
        for (added, rank) in (0..500_u32).map(|n| (n, n * 7 % 10)) {
            calendar.push(Entry { at: at(1_000_000_000), rank, added });
        }
        calendar.push(Entry { at: at(5), rank: 0, added: 0 });
        assert_eq!(calendar.pop(Instant::NEVER).unwrap().at, at(5));
        let taken: Vec<_> = std::iter::from_fn(|| calendar.pop(Instant::NEVER)).collect();
        assert_eq!(taken.len(), 500);
        assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn buckets_follow_the_density_of_entries() {
        let mut calendar = Calendar::default();
        let run = |calendar: &mut Calendar<Entry>, from: u64, gap: u64| {
            let entry = |nanos| Entry { at: at(nanos), rank: 0, added: 0 };
            calendar.push(entry(from));
            let mut now = from;
            for _ in 0..200_000 {
                now = calendar.pop(Instant::NEVER).unwrap().at.as_nanos();
                calendar.push(entry(now + gap));
            }
            calendar.pop(Instant::NEVER);
            now
        };
        let end = run(&mut calendar, 0, 5_000);
        assert!(calendar.shift < 18, "{}", calendar.shift);
        run(&mut calendar, end, 50_000_000);
        assert!(calendar.shift > 22, "{}", calendar.shift);
    }

    #[test]
    fn a_crowd_in_a_bucket_that_was_never_opened() {
        let mut calendar = Calendar::default();
        for added in (0..40_000).rev() {
            calendar.push(Entry { at: Instant::ZERO, rank: 0, added });
        }
        calendar.push(Entry { at: at(1_000_000), rank: 0, added: 0 });
        let taken: Vec<_> = std::iter::from_fn(|| calendar.pop(Instant::NEVER)).collect();
        assert_eq!((taken.len(), taken.last().unwrap().at), (40_001, at(1_000_000)));
    }

    #[test]
    fn what_is_added_to_a_bucket_that_is_lent_finds_its_place() {
        let mut calendar = Calendar::default();
        let entry = |nanos, added| Entry { at: at(nanos), rank: 0, added };
        for nanos in [7, 9, 3] {
            calendar.push(entry(nanos, 0));
        }
        let (lent, ready) = calendar.lend(at(9)).unwrap();
        assert_eq!(lent[ready.clone()], [entry(3, 0), entry(7, 0)]);
        for nanos in [10, 9, 12] {
            calendar.push(entry(nanos, 1));
        }
        calendar.give_back(lent, ready.end);
        assert_eq!(calendar.lend(at(9)), None);
        let rest: Vec<_> = std::iter::from_fn(|| calendar.pop(Instant::NEVER)).collect();
        assert_eq!(rest, [entry(9, 0), entry(9, 1), entry(10, 1), entry(12, 1)]);
    }

    #[test]
    fn nothing_is_taken_at_the_bound_or_beyond() {
        let mut calendar = Calendar::default();
        let entry = |nanos| Entry { at: at(nanos), rank: 0, added: 0 };
        calendar.push(entry(5_000_000_000));
        assert_eq!(calendar.pop(at(5_000_000_000)), None);
        calendar.push(entry(4_999_999_999));
        assert_eq!(calendar.pop(at(5_000_000_000)), Some(entry(4_999_999_999)));
        assert_eq!(calendar.pop(Instant::NEVER), Some(entry(5_000_000_000)));
        assert_eq!((calendar.pop(Instant::NEVER), calendar.next()), (None, Instant::NEVER));
    }
}
