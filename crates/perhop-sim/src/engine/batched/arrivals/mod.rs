//! The arrival queue of a link: a priority queue of packets on their way to it, which keeps arrivals that are
//! added nearly in order in a sorted run, and all others in a calendar queue.
//!
//! Where delays are equal, packets come to a link nearly in the order in which they are sent: one that
//! overtakes only a few others is inserted at its place in the sorted run, and nothing needs to be sorted.
//! Where delays differ, that fails too often, and the run is closed for a while.

#![expect(clippy::inline_always, reason = "each packet comes through here twice")]

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use perhop_core::{Duration, Instant, prefetch};

use super::calendar::{Calendar, USUAL_GAP, USUAL_REACH};
use crate::timed::{Timed, precedes};

/// Entries of a piece of the sorted run, which is lent as one: many, since work in stages is quicker on many,
/// but few enough for the processor's first cache.
const PIECE: usize = 256;
/// Entries of the first piece; each that fills before it is taken is followed by one twice as long.
const FIRST_PIECE: usize = 8;
/// A sorted run of more than 4 MB would compete for the cache with a calendar of that size: it is closed for
/// good.
const MOST_PIECES: usize = 512;
/// An entry that would overtake more than this many in the run goes into the calendar.
const OVERTAKES: usize = 16;
/// Out-of-order entries between two reviews of the run, and the entries that it should get meanwhile.
const REVIEW_AFTER: u64 = 256;
const WORTH: u64 = 3 * REVIEW_AFTER;
/// Queries while the run is closed and empty, before it is opened again: at first; twice as many each time.
const CLOSED: u64 = 4096;

/// Pending entries, in the order of (time, rank, addition): see [`Calendar`].
#[derive(Clone, Debug)]
pub struct ArrivalQueue<T> {
    /// The sorted run, in pieces: the one being taken, of which the entries before `taken` are past; those
    /// that follow; the one being added to.
    front: Vec<T>,
    taken: usize,
    middle: VecDeque<Vec<T>>,
    back: Vec<T>,
    /// Pieces to be used again.
    spare: Vec<Vec<T>>,
    /// The time of the run's last entry; [`Instant::NEVER`] while the run is closed.
    newest: Instant,
    /// Entries that came too late for the run. An entry that is equal to one of the run in time and rank was
    /// added later than that: once entries of a time are too late, all later ones of that time are.
    ///
    /// Made when it is first needed: most links of a large network need none, and it takes more memory than
    /// all the rest.
    out_of_order: Option<Box<Calendar<T>>>,
    /// The expected distance between two entries, and how far ahead of the clock they are expected.
    gap: Duration,
    reach: Duration,
    /// The number of entries in the calendar, unless lent; none that it ever held comes after `latest_late`.
    late: usize,
    latest_late: Instant,
    /// The lent entries are the run's.
    lent: bool,
    /// Counts since the last review: entries that went into the calendar, and entries of whole pieces that
    /// went into the run.
    missed: u64,
    sorted: u64,
    /// Queries that are left before the run is opened again, and their number next time.
    closed_for: u64,
    next_closed: u64,
}

impl<T: Timed> Default for ArrivalQueue<T> {
    fn default() -> Self {
        Self::expecting(USUAL_GAP, USUAL_REACH)
    }
}

impl<T: Timed> ArrivalQueue<T> {
    /// Makes an empty queue that expects entries about so far apart, and up to so far ahead of the clock.
    pub fn expecting(gap: Duration, reach: Duration) -> Self {
        Self {
            front: Vec::new(),
            taken: 0,
            middle: VecDeque::new(),
            back: Vec::new(),
            spare: Vec::new(),
            newest: Instant::ZERO,
            out_of_order: None,
            gap,
            reach,
            late: 0,
            latest_late: Instant::ZERO,
            lent: false,
            missed: 0,
            sorted: 0,
            closed_for: 0,
            next_closed: CLOSED,
        }
    }

    /// Adds an entry. It must not lie before the last one taken.
    #[inline(always)]
    pub fn push(&mut self, entry: T) {
        if entry.at() > self.newest && self.back.len() < self.back.capacity() {
            self.newest = entry.at();
            self.back.push(entry);
        } else if self.newest == Instant::NEVER {
            self.push_out_of_order(entry);
        } else {
            self.push_otherwise(entry);
        }
    }

    #[inline(always)]
    fn push_out_of_order(&mut self, entry: T) {
        self.late += 1;
        self.latest_late = self.latest_late.max(entry.at());
        match &mut self.out_of_order {
            Some(calendar) => calendar.push(entry),
            None => self.make_calendar(entry),
        }
    }

    #[cold]
    fn make_calendar(&mut self, entry: T) {
        self.out_of_order.insert(Box::new(Calendar::expecting(self.gap, self.reach))).push(entry);
    }

    /// Adds an entry to a new piece of the run, before others of the last piece, or to the calendar.
    #[inline(never)]
    fn push_otherwise(&mut self, entry: T) {
        if self.back.is_empty() && self.middle.is_empty() && self.push_to_front(entry) {
            return;
        }
        if self.back.len() == self.back.capacity() {
            let piece = self.new_piece();
            let full = std::mem::replace(&mut self.back, piece);
            self.sorted += full.len() as u64;
            if !full.is_empty() {
                self.middle.push_back(full);
            }
            if self.middle.len() > MOST_PIECES {
                self.close(u64::MAX);
                return self.push_out_of_order(entry);
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
            self.push_out_of_order(entry);
            self.missed += 1;
            if self.missed == REVIEW_AFTER {
                self.review();
            }
            return;
        }
        insert(&mut self.back, 0, entry);
    }

    /// Adds an entry to the piece being taken, if it is the only one and has few entries left; returns
    /// whether it did. So a link to which few packets come at a time uses little memory, and always the same.
    fn push_to_front(&mut self, entry: T) -> bool {
        if self.lent || self.front.len() - self.taken >= FIRST_PIECE {
            return false;
        }
        let is_last = entry.at() > self.newest;
        if !is_last && entry.at() <= self.latest_late {
            return false; // One like it may have been too late.
        }
        if self.front.capacity() == 0 {
            self.front = self.new_piece();
        } else if self.taken == self.front.len() || self.front.len() == self.front.capacity() {
            self.front.drain(..self.taken);
            self.taken = 0;
        }
        self.sorted += 1;
        if is_last {
            self.newest = entry.at();
            self.front.push(entry);
        } else {
            insert(&mut self.front, self.taken, entry);
        }
        true
    }

    /// Returns an empty piece to be added to: one that was used before, unless it is no longer than the one
    /// that has just filled.
    fn new_piece(&mut self) -> Vec<T> {
        let room = (2 * self.back.len()).clamp(FIRST_PIECE, PIECE);
        while let Some(spare) = self.spare.pop() {
            if spare.capacity() >= room {
                return spare;
            }
        }
        Vec::with_capacity(room)
    }

    /// Closes the run if too few entries go into it.
    #[cold]
    fn review(&mut self) {
        if self.sorted < WORTH {
            self.close(self.next_closed);
            self.next_closed *= 2;
        }
        (self.missed, self.sorted) = (0, 0);
    }

    #[cold]
    fn close(&mut self, times: u64) {
        self.newest = Instant::NEVER;
        self.spare = Vec::new();
        self.closed_for = times;
    }

    /// Returns the time before which no entry comes; [`Instant::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Instant {
        debug_assert!(!self.lent);
        let out_of_order = self.next_out_of_order();
        let piece = self.middle.front().unwrap_or(&self.back);
        let first = self.front.get(self.taken).or_else(|| piece.first());
        first.map_or(out_of_order, |first| first.at().min(out_of_order))
    }

    /// Returns all entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        debug_assert!(!self.lent);
        let run = self.front[self.taken..].iter().chain(self.middle.iter().flatten()).chain(&self.back);
        run.chain(self.out_of_order.iter().flat_map(|calendar| calendar.iter()))
    }

    /// Asks the processor for the entries that come next.
    pub fn prefetch_first(&self) {
        let piece = if self.taken < self.front.len() { &self.front[self.taken..] } else { &self.back };
        prefetch(&piece[..piece.len().min(2)]);
    }

    /// Asks the processor for the place of the next entry that is added.
    pub fn prefetch_last(&self) {
        prefetch(&self.back[self.back.len().saturating_sub(1)..]);
    }

    /// Returns the next time of the entries that came too late for the run.
    #[inline]
    fn next_out_of_order(&self) -> Instant {
        match &self.out_of_order {
            Some(calendar) if self.late > 0 => calendar.next(),
            _ => Instant::NEVER,
        }
    }

    /// Takes the next of the entries that came too late for the run, if it comes before `bound`.
    #[inline]
    fn pop_out_of_order(&mut self, bound: Instant) -> Option<T> {
        let entry = self.out_of_order.as_mut()?.pop(bound)?;
        self.late -= 1;
        Some(entry)
    }

    /// Returns the first entry of the run, if it has any; it is then in the piece at the front.
    #[inline]
    fn first(&mut self) -> Option<&T> {
        debug_assert!(!self.lent);
        if self.taken == self.front.len() {
            self.go_on();
        }
        self.front.get(self.taken)
    }

    /// Goes on to the next piece of the run, if there is one.
    fn go_on(&mut self) {
        let next = match self.middle.pop_front() {
            Some(next) => next,
            None if self.back.is_empty() => return,
            None => {
                self.sorted += self.back.len() as u64;
                std::mem::take(&mut self.back)
            }
        };
        let mut past = std::mem::replace(&mut self.front, next);
        self.taken = 0;
        past.clear();
        if (1..=2 * PIECE).contains(&past.capacity()) && self.newest != Instant::NEVER {
            self.spare.push(past);
        }
        if self.late == 0
            && let Some(calendar) = &mut self.out_of_order
        {
            calendar.give_up_memory();
        }
    }

    /// Takes the next entry if it comes before `bound`.
    #[inline]
    pub fn pop(&mut self, bound: Instant) -> Option<T> {
        let Some(&first) = self.first() else {
            self.count_down();
            return self.pop_out_of_order(bound);
        };
        let out_of_order = self.out_of_order.as_mut().filter(|_| self.late > 0);
        match out_of_order.and_then(|calendar| calendar.peek(bound)) {
            Some(other) if precedes(other, &first) => self.pop_out_of_order(bound),
            _ if first.at() >= bound => None,
            _ => {
                self.taken += 1;
                Some(first)
            }
        }
    }

    /// Returns the next entry if it comes before `bound`; nothing is to be added before `bound` from here on.
    #[inline]
    pub fn peek(&mut self, bound: Instant) -> Option<&T> {
        self.first();
        let out_of_order = self.out_of_order.as_mut();
        match (self.front.get(self.taken), out_of_order.and_then(|calendar| calendar.peek(bound))) {
            (Some(first), Some(other)) if precedes(other, first) => Some(other),
            (Some(first), _) => (first.at() < bound).then_some(first),
            (None, other) => other,
        }
    }

    /// Counts a query while the run is empty: the run may be opened again.
    #[inline]
    fn count_down(&mut self) {
        if self.closed_for > 0 {
            self.closed_for -= 1;
            if self.closed_for == 0 {
                // It takes only entries that come after all pending ones.
                self.newest = self.out_of_order.as_ref().map_or(Instant::ZERO, |calendar| calendar.latest());
            }
        }
    }

    /// Lends some entries that come next and before `bound`: how many are past, and how many are not to be
    /// taken beyond. Hand them back with [`give_back`](Self::give_back) before anything but
    /// [`push`](Self::push) is asked.
    #[inline]
    pub fn lend(&mut self, bound: Instant) -> Option<(Vec<T>, Range<usize>)> {
        if self.first().is_none() {
            self.count_down();
            return self.out_of_order.as_mut()?.lend(bound);
        }
        let bound = if self.next_out_of_order() < bound { self.fetch(bound) } else { bound };
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

    /// Puts the out-of-order entries of one bucket that come before `bound`, and before the run's second
    /// piece, at their places in the first piece; no others come before the returned time.
    #[inline(never)]
    fn fetch(&mut self, bound: Instant) -> Instant {
        let second = self.middle.front().unwrap_or(&self.back).first();
        let bound = second.map_or(bound, |second| second.at().min(bound));
        let Some(calendar) = &mut self.out_of_order else { return bound };
        if let Some((entries, ready)) = calendar.lend(bound) {
            let missing = ready.len().saturating_sub(self.taken);
            if missing > 0 {
                let any = self.front[self.taken];
                self.front.splice(0..0, std::iter::repeat_n(any, missing));
                self.taken += missing;
            }
            // Entries of the run that come before them move up.
            let (mut from, mut to) = (self.taken, self.taken - ready.len());
            self.taken = to;
            for entry in &entries[ready.clone()] {
                while from < self.front.len() && !precedes(entry, &self.front[from]) {
                    self.front[to] = self.front[from];
                    (from, to) = (from + 1, to + 1);
                }
                self.front[to] = *entry;
                to += 1;
            }
            self.late -= ready.len();
            calendar.give_back(entries, ready.end);
        }
        self.next_out_of_order().min(bound)
    }

    /// Takes back what was lent, of which the first `taken` are past.
    #[inline]
    pub fn give_back(&mut self, entries: Vec<T>, taken: usize) {
        if std::mem::take(&mut self.lent) {
            (self.front, self.taken) = (entries, taken);
        } else if let Some(calendar) = &mut self.out_of_order {
            self.late -= calendar.give_back(entries, taken);
        }
    }
}

/// Puts an entry at its place among those from `begin` on, which are in order.
fn insert<T: Timed>(entries: &mut Vec<T>, begin: usize, entry: T) {
    entries.push(entry);
    let mut piece = &mut entries[begin..];
    while let [before @ .., place] = piece {
        match before.last() {
            Some(last) if precedes(&entry, last) => *place = *last,
            _ => {
                *place = entry;
                break;
            }
        }
        piece = before;
    }
}
