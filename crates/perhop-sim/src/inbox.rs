//! What comes to a link, in order: a lane for what is added in order, and a calendar for the rest.
//!
//! Where delays are alike, packets come to a link nearly in the order in which they are put on their way: one that overtakes
//! only a few others is moved to its place in the lane, and nothing needs to be sorted. Where delays differ, that fails too
//! often, and the lane is shut for a while.

#![expect(clippy::inline_always, reason = "each packet comes through here twice")]

use std::collections::VecDeque;
use std::ops::Range;

use perhop_core::{Duration, Instant};

use crate::calendar::{Calendar, Timed, precedes};

/// Entries of a piece of the lane, which is lent as one: many, since work in stages is quicker on many, but few enough for the
/// processor's first cache.
const PIECE: usize = 256;
/// A lane of more than 4 MB would share the memory with a calendar of that size: it is shut for good.
const MOST_PIECES: usize = 512;
/// An entry that would overtake more than this many in the lane is left to the calendar.
const OVERTAKES: usize = 16;
/// Strays between two reviews of the lane, and how many entries should go into it meanwhile.
const STRAYS: u64 = 256;
const WORTH: u64 = 3 * STRAYS;
/// How often it is asked while the lane is shut and empty, before that is opened again: at first; twice as often each time.
const SHUT: u64 = 4096;

/// Pending entries, in the order of (time, rank, addition): see [`Calendar`].
#[derive(Clone, Debug)]
pub struct Inbox<T> {
    /// The lane, in order: what is being taken, of which those before `taken` are past; what follows; what is being added to.
    front: Vec<T>,
    taken: usize,
    middle: VecDeque<Vec<T>>,
    back: Vec<T>,
    /// Pieces to be used again.
    spare: Vec<Vec<T>>,
    /// When the last of the lane comes; [`Instant::NEVER`] while the lane is shut.
    newest: Instant,
    /// Those that came too late for the lane. On equal terms with one of the lane, they were added later: who once was too
    /// late at a time still is.
    strays: Calendar<T>,
    /// What is lent is of the lane.
    lent: bool,
    /// Since the last review: entries that went to the calendar, and pieces' worth of entries that went into the lane.
    strayed: u64,
    laned: u64,
    /// How often it is still asked before the lane is opened again, and how often it will have to be next time.
    shut_for: u64,
    next_shut: u64,
}

impl<T: Timed> Default for Inbox<T> {
    fn default() -> Self {
        Self::around(Calendar::default())
    }
}

impl<T: Timed> Inbox<T> {
    /// An empty one that expects two entries to be about so far apart.
    pub fn expecting(gap: Duration) -> Self {
        Self::around(Calendar::expecting(gap))
    }

    fn around(strays: Calendar<T>) -> Self {
        Self {
            front: Vec::new(),
            taken: 0,
            middle: VecDeque::new(),
            back: Vec::new(),
            spare: Vec::new(),
            newest: Instant::ZERO,
            strays,
            lent: false,
            strayed: 0,
            laned: 0,
            shut_for: 0,
            next_shut: SHUT,
        }
    }

    /// Adds an entry. It must not lie before the last one taken.
    #[inline(always)]
    pub fn push(&mut self, entry: T) {
        if entry.at() > self.newest && self.back.len() < self.back.capacity() {
            self.newest = entry.at();
            self.back.push(entry);
        } else if self.newest == Instant::NEVER {
            self.strays.push(entry);
        } else {
            self.push_otherwise(entry);
        }
    }

    /// Into a new piece of the lane, before others of the last piece, or into the calendar.
    #[inline(never)]
    fn push_otherwise(&mut self, entry: T) {
        if self.back.len() == self.back.capacity() {
            let piece = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(PIECE));
            let full = std::mem::replace(&mut self.back, piece);
            self.laned += full.len() as u64;
            if !full.is_empty() {
                self.middle.push_back(full);
            }
            if self.middle.len() > MOST_PIECES {
                self.shut(u64::MAX);
                return self.strays.push(entry);
            }
        }
        if entry.at() > self.newest {
            self.newest = entry.at();
            return self.back.push(entry);
        }
        let overtakes_piece = self.back.first().is_none_or(|first| precedes(&entry, first));
        let overtakes_many =
            self.back.iter().rev().nth(OVERTAKES).is_some_and(|other| precedes(&entry, other));
        if overtakes_piece || overtakes_many {
            self.strays.push(entry);
            self.strayed += 1;
            if self.strayed == STRAYS {
                self.review();
            }
            return;
        }
        let mut place = self.back.len();
        self.back.push(entry);
        while precedes(&entry, &self.back[place - 1]) {
            self.back[place] = self.back[place - 1];
            place -= 1;
        }
        self.back[place] = entry;
    }

    /// Shuts the lane if too little comes through it.
    #[cold]
    fn review(&mut self) {
        if self.laned < WORTH {
            self.shut(self.next_shut);
            self.next_shut *= 2;
        }
        (self.strayed, self.laned) = (0, 0);
    }

    #[cold]
    fn shut(&mut self, times: u64) {
        self.newest = Instant::NEVER;
        self.spare = Vec::new();
        self.shut_for = times;
    }

    /// No entry comes before this; [`Instant::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Instant {
        debug_assert!(!self.lent);
        let strays = self.strays.next();
        let piece = self.middle.front().unwrap_or(&self.back);
        let first = self.front.get(self.taken).or_else(|| piece.first());
        first.map_or(strays, |first| first.at().min(strays))
    }

    /// The first of the lane, if it holds any; then that stands in the piece at the front.
    #[inline]
    fn first(&mut self) -> Option<&T> {
        debug_assert!(!self.lent);
        if self.taken == self.front.len() {
            self.go_on();
        }
        self.front.get(self.taken)
    }

    /// Goes on to the next piece of the lane, if there is one.
    fn go_on(&mut self) {
        let next = match self.middle.pop_front() {
            Some(next) => next,
            None if self.back.is_empty() => return,
            None => {
                self.laned += self.back.len() as u64;
                std::mem::take(&mut self.back)
            }
        };
        let mut past = std::mem::replace(&mut self.front, next);
        self.taken = 0;
        past.clear();
        if (1..=2 * PIECE).contains(&past.capacity()) && self.newest != Instant::NEVER {
            self.spare.push(past);
        }
        if self.strays.next() == Instant::NEVER {
            self.strays.give_up_memory();
        }
    }

    /// Takes the next entry if it comes before `bound`.
    #[inline]
    pub fn pop(&mut self, bound: Instant) -> Option<T> {
        let Some(&first) = self.first() else {
            self.count_down();
            return self.strays.pop(bound);
        };
        match self.strays.peek(bound) {
            Some(stray) if precedes(stray, &first) => self.strays.pop(bound),
            _ if first.at() >= bound => None,
            _ => {
                self.taken += 1;
                Some(first)
            }
        }
    }

    /// The next entry if it comes before `bound`. What is added from here on should not come before `bound` either.
    #[inline]
    pub fn peek(&mut self, bound: Instant) -> Option<&T> {
        self.first();
        match (self.front.get(self.taken), self.strays.peek(bound)) {
            (Some(first), Some(stray)) if precedes(stray, first) => Some(stray),
            (Some(first), _) => (first.at() < bound).then_some(first),
            (None, stray) => stray,
        }
    }

    /// The lane is empty: it may be opened again.
    #[inline]
    fn count_down(&mut self) {
        if self.shut_for > 0 {
            self.shut_for -= 1;
            if self.shut_for == 0 {
                // It takes only what comes after all that is there already.
                self.newest = self.strays.latest();
            }
        }
    }

    /// Lends some entries that come next and before `bound`: how many are past, and how many are not to be taken beyond. Hand
    /// them back with [`give_back`](Self::give_back) before anything but [`push`](Self::push) is asked.
    #[inline]
    pub fn lend(&mut self, bound: Instant) -> Option<(Vec<T>, Range<usize>)> {
        if self.first().is_none() {
            self.count_down();
            return self.strays.lend(bound);
        }
        let bound = if self.strays.next() < bound { self.fetch(bound) } else { bound };
        let pending = &self.front[self.taken..];
        let ready = match pending.last() {
            Some(last) if last.at() < bound => pending.len(),
            _ => pending.partition_point(|entry| entry.at() < bound),
        };
        if ready == 0 {
            return None;
        }
        self.lent = true;
        Some((std::mem::take(&mut self.front), self.taken..self.taken + ready))
    }

    /// Puts the strays of one bucket that come before `bound`, and before the lane's second piece, in their places in the first;
    /// no others come before what it returns.
    #[inline(never)]
    fn fetch(&mut self, bound: Instant) -> Instant {
        let second = self.middle.front().unwrap_or(&self.back).first();
        let bound = second.map_or(bound, |second| second.at().min(bound));
        if let Some((strays, ready)) = self.strays.lend(bound) {
            let missing = ready.len().saturating_sub(self.taken);
            if missing > 0 {
                let any = self.front[self.taken];
                self.front.splice(0..0, std::iter::repeat_n(any, missing));
                self.taken += missing;
            }
            // Those of the lane that come before them move up.
            let (mut from, mut to) = (self.taken, self.taken - ready.len());
            self.taken = to;
            for stray in &strays[ready.clone()] {
                while from < self.front.len() && !precedes(stray, &self.front[from]) {
                    self.front[to] = self.front[from];
                    (from, to) = (from + 1, to + 1);
                }
                self.front[to] = *stray;
                to += 1;
            }
            self.strays.give_back(strays, ready.end);
        }
        self.strays.next().min(bound)
    }

    /// Takes back what was lent, of which the first `taken` are past.
    #[inline]
    pub fn give_back(&mut self, entries: Vec<T>, taken: usize) {
        if std::mem::take(&mut self.lent) {
            (self.front, self.taken) = (entries, taken);
        } else {
            self.strays.give_back(entries, taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::tests::Entry;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Adds `gaps` after whatever was taken last, over and over, and takes what comes, one by one or lent, some of it added
    /// while others are lent; compares with a sorted set.
    fn agrees_with_a_sorted_set(gaps: &[(u64, u32)], taking: &[u64]) {
        let (mut inbox, mut set) = (Inbox::expecting(Duration::from_nanos(1000)), BTreeSet::new());
        let mut gaps = gaps.iter().cycle();
        let mut added = 0;
        let mut add = |inbox: &mut Inbox<Entry>, set: &mut BTreeSet<Entry>, now: u64| {
            let &(gap, rank) = gaps.next().unwrap();
            let entry = Entry { at: Instant::from_nanos(now + gap), rank, added };
            added += 1;
            inbox.push(entry);
            set.insert(entry);
        };
        let mut now = 0;
        for &taken in taking.iter().cycle().take(3000) {
            (0..4).for_each(|_| add(&mut inbox, &mut set, now));
            let first = set.first().map_or(Instant::NEVER, |entry| entry.at);
            assert!(inbox.next() <= first);
            let bound = Instant::from_nanos(first.as_nanos() + taken);
            if taken % 2 == 0 {
                assert_eq!(inbox.peek(bound).copied(), set.first().copied().filter(|entry| entry.at < bound));
                if let Some(entry) = inbox.pop(bound) {
                    assert_eq!(Some(entry), set.pop_first());
                    now = entry.at.as_nanos();
                }
                continue;
            }
            while let Some((entries, ready)) = inbox.lend(bound) {
                for entry in &entries[ready.clone()] {
                    assert_eq!(Some(*entry), set.pop_first());
                    assert!(entry.at < bound);
                }
                now = bound.as_nanos();
                add(&mut inbox, &mut set, now);
                inbox.give_back(entries, ready.end);
            }
            assert!(set.first().is_none_or(|entry| entry.at >= bound));
        }
        assert!(std::iter::from_fn(|| inbox.pop(Instant::NEVER)).eq(set));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn in_order_or_nearly(
            gaps in prop::collection::vec((1_000_000_u64..1_000_400, 0_u32..4), 1..40),
            taking in prop::collection::vec(0_u64..4000, 1..20),
        ) {
            agrees_with_a_sorted_set(&gaps, &taking);
        }

        #[test]
        fn any_mix_of_near_and_far(
            gaps in prop::collection::vec((prop_oneof![0_u64..4, 0_u64..2000, 0_u64..900_000], 0_u32..4), 1..40),
            taking in prop::collection::vec(0_u64..4000, 1..20),
        ) {
            agrees_with_a_sorted_set(&gaps, &taking);
        }
    }

    #[test]
    fn the_lane_is_shut_where_order_is_rare_and_opened_again() {
        let mut inbox = Inbox::expecting(Duration::from_nanos(1000));
        let run = |inbox: &mut Inbox<Entry>, begin: u64, steps: u64, spread: u64| {
            for step in 0..steps {
                let at = Instant::from_nanos(begin + 1000 * step + step * 7919 % (spread + 1));
                inbox.push(Entry { at, rank: 0, added: 0 });
                inbox.pop(Instant::from_nanos(begin + 1000 * step));
            }
            let left = std::iter::from_fn(|| inbox.pop(Instant::NEVER)).collect::<Vec<_>>();
            assert!(left.is_sorted());
            begin + 1000 * steps + spread
        };
        let now = run(&mut inbox, 1, 10_000, 0);
        assert_eq!((inbox.newest != Instant::NEVER, inbox.strayed), (true, 0));
        let now = run(&mut inbox, now, 10_000, 100_000);
        assert_eq!(inbox.newest, Instant::NEVER);
        run(&mut inbox, now, 2 * SHUT, 0);
        assert!(inbox.newest != Instant::NEVER);
    }
}
