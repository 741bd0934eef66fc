//! The event queue: a winner tree over sources of events, each with at most one event pending.
//!
//! Packets on a link arrive in the order in which they were sent, so only the head of each link's delay line is here, and
//! the queue's size follows the number of links and flows, not of packets. Events at the same time happen in the order of
//! their sources' numbers, which is part of the simulator's contract: it does not depend on how the queue is built.

use perhop_core::Instant;

/// A source of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceId(pub u32);

/// Time and source of the next event of each source, ordered by (time, source).
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// A complete binary tree of keys; each inner node is the smaller of its children.
    keys: Vec<Key>,
    leaves: usize,
}

/// Time in the high half, source in the low: comparing keys breaks ties by itself.
type Key = u128;

const fn key(at: Instant, source: u32) -> Key {
    (at.as_nanos() as u128) << 32 | source as u128
}

impl EventQueue {
    /// A queue of `sources` sources with nothing pending.
    pub fn new(sources: usize) -> Self {
        let leaves = sources.next_power_of_two().max(2);
        let mut keys = vec![key(Instant::NEVER, u32::MAX); 2 * leaves];
        for (source, leaf) in keys[leaves..].iter_mut().enumerate() {
            *leaf = key(Instant::NEVER, source as u32);
        }
        let mut queue = Self { keys, leaves };
        for node in (1..leaves).rev() {
            queue.keys[node] = queue.keys[2 * node].min(queue.keys[2 * node + 1]);
        }
        queue
    }

    /// The next event: its time ([`Instant::NEVER`] if nothing is pending) and its source.
    #[inline]
    pub fn next(&self) -> (Instant, SourceId) {
        let first = self.keys[1];
        (Instant::from_nanos((first >> 32) as u64), SourceId(first as u32))
    }

    /// The time of this source's pending event.
    #[inline]
    pub fn pending(&self, source: SourceId) -> Instant {
        Instant::from_nanos((self.keys[self.leaves + source.0 as usize] >> 32) as u64)
    }

    /// Sets the source's one pending event; [`Instant::NEVER`] clears it.
    #[inline]
    pub fn set(&mut self, source: SourceId, at: Instant) {
        let mut node = self.leaves + source.0 as usize;
        self.keys[node] = key(at, source.0);
        while node > 1 {
            let winner = self.keys[node].min(self.keys[node ^ 1]);
            node >>= 1;
            if self.keys[node] == winner {
                return;
            }
            self.keys[node] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(sources in 1_usize..40, steps in prop::collection::vec((0_u32..40, 0_u64..50), 0..200)) {
            let mut queue = EventQueue::new(sources);
            let mut list = vec![u64::MAX; sources];
            for (source, at) in steps {
                let source = source % sources as u32;
                let at = if at == 49 { u64::MAX } else { at };
                queue.set(SourceId(source), Instant::from_nanos(at));
                list[source as usize] = at;
                let (first, &time) = list.iter().enumerate().min_by_key(|&(n, &t)| (t, n)).unwrap();
                prop_assert_eq!(queue.next(), (Instant::from_nanos(time), SourceId(first as u32)));
                prop_assert_eq!(queue.pending(SourceId(source)), Instant::from_nanos(at));
            }
        }
    }
}
