//! The event queue: a wheel of buckets, each sorted when its time comes.
//!
//! A hop takes at least the link's delay, so nearly every event belongs to a later bucket than the one being handled:
//! putting it there is one append, and a bucket is sorted once, when it is short. Buckets are made narrower or wider as
//! events come thicker or thinner. Events beyond the wheel wait in a heap.
//!
//! Events at the same time happen in the order of their sources' numbers. That is part of the simulator's contract: the
//! order of events does not depend on how the queue is built, nor on its buckets' width.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use perhop_core::Instant;

/// A source of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceId(pub u32);

/// (nanoseconds since the bucket began) << 32 | source: one word that orders a bucket's events and breaks its ties.
type Key = u64;

const BUCKETS: usize = 256;
/// Narrowest and widest bucket, as powers of two of a nanosecond: 1 µs and 1 ms.
const SHIFTS: std::ops::RangeInclusive<u32> = 10..=20;
/// Events a bucket should hold: outside of this, the width is changed.
const FILL: std::ops::RangeInclusive<u64> = 4..=24;
/// Buckets opened between two looks at the fill.
const REVIEW: u64 = 256;

/// Pending events, ordered by (time, source).
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Events of the bucket being handled, in order; those before `taken` are past.
    current: Vec<Key>,
    taken: usize,
    /// When that bucket began.
    began: u64,
    /// Its absolute number: `began >> shift`.
    number: u64,
    shift: u32,
    /// Bucket b of the wheel holds events of the one among the absolute buckets number..number + BUCKETS that is b
    /// modulo BUCKETS.
    wheel: Vec<Vec<Key>>,
    /// One bit a bucket: it holds something.
    filled: [u64; BUCKETS / 64],
    far: BinaryHeap<Reverse<(u64, u32)>>,
    /// Buckets opened and events found in them since the last review.
    opened: u64,
    found: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            current: Vec::new(),
            taken: 0,
            began: 0,
            number: 0,
            shift: *SHIFTS.end(),
            wheel: vec![Vec::new(); BUCKETS],
            filled: [0; BUCKETS / 64],
            far: BinaryHeap::new(),
            opened: 0,
            found: 0,
        }
    }
}

impl EventQueue {
    /// Adds an event. It must not lie before the last one taken.
    #[inline]
    pub fn push(&mut self, at: Instant, source: SourceId) {
        let at = at.as_nanos();
        let number = at >> self.shift;
        let ahead = number.wrapping_sub(self.number);
        if ahead.wrapping_sub(1) < BUCKETS as u64 - 1 {
            let bucket = number as usize % BUCKETS;
            let offset = at & ((1 << self.shift) - 1);
            self.wheel[bucket].push(offset << 32 | u64::from(source.0));
            self.filled[bucket / 64] |= 1 << (bucket % 64);
        } else {
            self.push_elsewhere(at, source);
        }
    }

    /// Into the current bucket, or beyond the wheel.
    #[cold]
    fn push_elsewhere(&mut self, at: u64, source: SourceId) {
        if at >> self.shift > self.number {
            self.far.push(Reverse((at, source.0)));
            return;
        }
        let key = (at - self.began) << 32 | u64::from(source.0);
        let place = self.taken + self.current[self.taken..].partition_point(|&other| other < key);
        self.current.insert(place, key);
    }

    /// Takes the next event if it comes no later than `until`.
    #[inline]
    pub fn pop(&mut self, until: Instant) -> Option<(Instant, SourceId)> {
        if self.taken == self.current.len() && !self.open_next(until) {
            return None;
        }
        let key = self.current[self.taken];
        let at = self.began + (key >> 32);
        if at > until.as_nanos() {
            return None;
        }
        self.taken += 1;
        Some((Instant::from_nanos(at), SourceId(key as u32)))
    }

    /// Makes the next bucket that holds something the current one; false if none does, or it begins after `until`.
    ///
    /// A bucket is never opened ahead of the caller's clock, so whatever the caller still adds fits in behind it.
    fn open_next(&mut self, until: Instant) -> bool {
        self.found += self.current.len() as u64;
        self.current.clear();
        self.taken = 0;
        if self.opened >= REVIEW {
            self.review();
        }
        let near = self.next_filled();
        let far = self.far.peek().map(|Reverse((at, _))| at >> self.shift);
        let Some(number) = near.into_iter().chain(far).min() else { return false };
        if number << self.shift > until.as_nanos() {
            return false;
        }
        self.number = number;
        self.began = number << self.shift;
        let bucket = number as usize % BUCKETS;
        std::mem::swap(&mut self.current, &mut self.wheel[bucket]);
        self.filled[bucket / 64] &= !(1 << (bucket % 64));
        while let Some(&Reverse((at, source))) = self.far.peek()
            && at >> self.shift < number + BUCKETS as u64
        {
            self.far.pop();
            if at >> self.shift == number {
                self.current.push((at - self.began) << 32 | u64::from(source));
            } else {
                self.push(Instant::from_nanos(at), SourceId(source));
            }
        }
        self.current.sort_unstable();
        self.opened += 1;
        true
    }

    /// The absolute number of the first bucket after the current one that holds something.
    fn next_filled(&self) -> Option<u64> {
        let begin = (self.number as usize + 1) % BUCKETS;
        let (first_word, bit) = (begin / 64, begin % 64);
        let words = self.filled.len();
        for step in 0..=words {
            let word = (first_word + step) % words;
            let mut bits = self.filled[word];
            if step == 0 {
                bits &= u64::MAX << bit;
            } else if step == words {
                bits &= !(u64::MAX << bit);
            }
            if bits != 0 {
                let bucket = word * 64 + bits.trailing_zeros() as usize;
                let ahead = (bucket + BUCKETS - begin) % BUCKETS;
                return Some(self.number + 1 + ahead as u64);
            }
        }
        None
    }

    /// Fits the buckets' width to how thick events come. Only between two buckets.
    fn review(&mut self) {
        let fill = self.found / self.opened;
        (self.opened, self.found) = (0, 0);
        let wanted = match fill {
            fill if fill > *FILL.end() => self.shift - 1,
            fill if fill < *FILL.start() => self.shift + 1,
            _ => return,
        };
        if !SHIFTS.contains(&wanted) {
            return;
        }
        // All that is pending comes after the bucket that has just ended, and waits beyond the wheel for the next one.
        for ahead in 1..BUCKETS as u64 {
            let number = self.number + ahead;
            let events = &mut self.wheel[number as usize % BUCKETS];
            self.far.extend(
                events.drain(..).map(|key| Reverse(((number << self.shift) + (key >> 32), key as u32))),
            );
        }
        self.filled = [0; BUCKETS / 64];
        self.number = self.number << self.shift >> wanted;
        self.shift = wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Takes events one by one, adding up to two new ones after each, and compares with a sorted set.
    fn agrees_with_a_sorted_set(gaps: &[(u64, u32)], scale: u32) {
        let mut queue = EventQueue::default();
        let mut set = BTreeSet::new();
        let mut gaps = gaps.iter().cycle();
        let mut now = Instant::ZERO;
        for step in 0..20_000_u32 {
            for _ in 0..(step % 3).min(2) {
                let (gap, source) = gaps.next().unwrap();
                let at = Instant::from_nanos(now.as_nanos() + (gap << scale));
                if set.insert((at, SourceId(source + step % 7))) {
                    queue.push(at, SourceId(source + step % 7));
                }
            }
            let next = queue.pop(Instant::NEVER);
            assert_eq!(next, set.pop_first());
            if let Some((at, _)) = next {
                assert!(at >= now);
                now = at;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn any_mix_of_near_and_far(
            gaps in prop::collection::vec((prop_oneof![0_u64..4, 0_u64..2000, 0_u64..3_000_000], 0_u32..5), 1..40),
            scale in 0_u32..14,
        ) {
            agrees_with_a_sorted_set(&gaps, scale);
        }
    }

    #[test]
    fn buckets_follow_the_density_of_events() {
        let mut queue = EventQueue::default();
        let run = |queue: &mut EventQueue, from: u64, gap: u64| {
            let start = Instant::from_nanos(from);
            queue.push(start, SourceId(0));
            let mut now = start;
            for _ in 0..200_000 {
                now = queue.pop(Instant::NEVER).unwrap().0;
                queue.push(Instant::from_nanos(now.as_nanos() + gap), SourceId(0));
            }
            queue.pop(Instant::NEVER);
            now.as_nanos()
        };
        let end = run(&mut queue, 0, 5_000);
        assert!(queue.shift < 20, "{}", queue.shift);
        run(&mut queue, end, 5_000_000);
        assert_eq!(queue.shift, 20);
    }

    #[test]
    fn nothing_is_taken_beyond_the_bound() {
        let mut queue = EventQueue::default();
        queue.push(Instant::from_nanos(5_000_000_000), SourceId(1));
        assert_eq!(queue.pop(Instant::from_nanos(4_999_999_999)), None);
        queue.push(Instant::from_nanos(4_999_999_999), SourceId(2));
        assert_eq!(
            queue.pop(Instant::from_nanos(4_999_999_999)).map(|(_, source)| source),
            Some(SourceId(2))
        );
        assert_eq!(queue.pop(Instant::NEVER).map(|(_, source)| source), Some(SourceId(1)));
        assert_eq!(queue.pop(Instant::NEVER), None);
    }
}
