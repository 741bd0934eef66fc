//! A priority queue over time: a sorted map.

use std::collections::BTreeMap;

use perhop_core::Instant;

use crate::events::{Event, Schedule};
use crate::timed::Timed;

/// Pending entries, in the order of (time, rank, addition).
#[derive(Clone, Debug)]
pub(crate) struct Pending<T> {
    entries: BTreeMap<(Instant, u64, u64), T>,
    /// Entries added so far.
    added: u64,
}

impl<T: Timed> Pending<T> {
    /// Adds an entry.
    pub(crate) fn push(&mut self, content: T) {
        self.entries.insert((content.at(), content.rank(), self.added), content);
        self.added += 1;
    }

    /// Returns the time of the next entry.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|(&(at, ..), _)| at)
    }

    /// Takes the next entry if its time is `now` or earlier.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<T> {
        let next = self.entries.first_entry().filter(|next| next.key().0 <= now)?;
        Some(next.remove())
    }
}

impl Schedule for Pending<Event> {
    fn add(&mut self, event: Event) {
        self.push(event);
    }
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), added: 0 }
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
