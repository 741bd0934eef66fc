//! A priority queue over time: a binary heap.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use perhop_core::Instant;

use crate::events::{Event, Schedule};
use crate::timed::Timed;

/// Pending entries, in the order of (time, rank, addition).
#[derive(Clone, Debug)]
pub(crate) struct Pending<T> {
    heap: BinaryHeap<Entry<T>>,
    /// Entries added so far.
    added: u64,
}

/// An entry and its order of addition; the earliest is the greatest.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    content: T,
    added: u64,
}

impl<T: Timed> Pending<T> {
    /// Adds an entry.
    pub(crate) fn push(&mut self, content: T) {
        self.heap.push(Entry { content, added: self.added });
        self.added += 1;
    }

    /// The time of the next entry.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.content.at())
    }

    /// Takes the next entry if its time is `now` or earlier.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<T> {
        self.next().filter(|&next| next <= now)?;
        self.heap.pop().map(|entry| entry.content)
    }
}

impl Schedule for Pending<Event> {
    fn add(&mut self, event: Event) {
        self.push(event);
    }
}

impl<T: Timed> Default for Pending<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), added: 0 }
    }
}

impl<T: Timed> Entry<T> {
    fn key(&self) -> (Instant, u64, u64) {
        (self.content.at(), self.content.rank(), self.added)
    }
}

impl<T: Timed> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T: Timed> Eq for Entry<T> {}

impl<T: Timed> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Timed> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::SourceId;

    #[test]
    fn entries_come_in_the_order_of_time_then_rank_then_addition() {
        let event = |nanos, source| Event { at: Instant::from_nanos(nanos), source: SourceId(source) };
        let mut pending = Pending::default();
        for (nanos, source) in [(7, 0), (3, 2), (3, 1), (9, 0)] {
            pending.push(event(nanos, source));
        }
        assert_eq!(pending.next(), Some(Instant::from_nanos(3)));
        let due: Vec<Event> = std::iter::from_fn(|| pending.pop_due(Instant::from_nanos(7))).collect();
        assert_eq!(due, [event(3, 1), event(3, 2), event(7, 0)]);
        assert_eq!(pending.next(), Some(Instant::from_nanos(9)));
    }
}
