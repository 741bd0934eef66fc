//! Records of outstanding segments, by their numbers.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use std::fmt;

/// The first room for records.
const LEAST: usize = 8;

/// A record of each outstanding segment: a ring, in which a segment's place follows from its number, so that
/// segments leave it at once, however many they are.
#[derive(Clone, Default)]
pub(super) struct Outstanding<T> {
    /// None, or as many as a power of two: that of segment n at n modulo that.
    ring: Vec<T>,
    /// The first outstanding segment, and one past the last.
    first: u32,
    end: u32,
}

impl<T: Copy + Default> Outstanding<T> {
    /// Makes a store without records, to which this segment comes first.
    pub(super) const fn from_segment(first: u32) -> Self {
        Self { ring: Vec::new(), first, end: first }
    }

    #[inline]
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    #[inline]
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.end - self.first) as usize
    }

    #[inline]
    fn place(&self, sequence: u32) -> usize {
        sequence as usize & (self.ring.len() - 1)
    }

    #[inline]
    pub(super) fn get(&self, sequence: u32) -> Option<&T> {
        let is_outstanding = self.first <= sequence && sequence < self.end;
        is_outstanding.then(|| &self.ring[self.place(sequence)])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, sequence: u32) -> Option<&mut T> {
        if sequence < self.first || sequence >= self.end {
            return None;
        }
        let place = self.place(sequence);
        Some(&mut self.ring[place])
    }

    /// Returns the record of each of these segments that is outstanding, in order.
    pub(super) fn from(&self, sequence: u32) -> impl Iterator<Item = (u32, T)> {
        (sequence.max(self.first)..self.end).map(|sequence| (sequence, self.ring[self.place(sequence)]))
    }

    /// Adds the record of the next new segment.
    #[inline]
    pub(super) fn push(&mut self, record: T) {
        if self.len() == self.ring.len() {
            // Without the record, which is so written where it belongs, and not copied there in words.
            self.grow();
        }
        let end = self.end;
        let place = self.place(end);
        self.ring[place] = record;
        self.end = end + 1;
    }

    #[cold]
    fn grow(&mut self) {
        self.resize((2 * self.ring.len()).max(LEAST));
    }

    /// Gives up most of the room if far fewer records need it than once did: a slow start's, mostly. A ring
    /// is used from end to end, however few its records, and would take as much of the processor's caches.
    pub(super) fn fit(&mut self) {
        let room = (2 * self.len()).next_power_of_two().max(LEAST);
        if self.ring.len() > 2 * room {
            self.resize(room);
        }
    }

    #[cold]
    fn resize(&mut self, room: usize) {
        let mut ring = vec![T::default(); room];
        let places = room - 1;
        for (sequence, record) in self.from(self.first) {
            ring[sequence as usize & places] = record;
        }
        self.ring = ring;
    }

    /// Takes out the records of all segments below this, in order.
    #[inline(always)] // Most ACKs: not inlined it costs 3 % of their instructions.
    pub(super) fn take_below(&mut self, sequence: u32, mut each: impl FnMut(T)) {
        let end = sequence.min(self.end).max(self.first); // It checks nothing, unlike `clamp`.
        for sequence in self.first..end {
            each(self.ring[self.place(sequence)]);
        }
        self.first = end;
    }

    /// Segments below this are outstanding no more.
    #[inline]
    pub(super) fn pass(&mut self, sequence: u32) {
        self.first = sequence.clamp(self.first, self.end);
    }
}

/// Only of what is outstanding.
impl<T: Copy + Default + fmt::Debug> fmt::Debug for Outstanding<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.from(self.first)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_a_queue(steps in prop::collection::vec((0_u32..6, 0_u32..40), 1..200)) {
            let (mut ring, mut queue, mut first) = (Outstanding::from_segment(0), VecDeque::new(), 0);
            for (step, argument) in steps {
                match step {
                    5 => ring.fit(),
                    0..3 => {
                        ring.push(argument);
                        queue.push_back(argument);
                    }
                    3 => {
                        let passed = argument.min(queue.len() as u32);
                        let mut records = Vec::new();
                        if argument % 2 == 0 {
                            ring.pass(first + argument);
                        } else {
                            ring.take_below(first + argument, |record| records.push(record));
                        }
                        let same: Vec<_> = queue.drain(..passed as usize).collect();
                        prop_assert!(argument % 2 == 0 || records == same);
                        first += passed;
                    }
                    _ => {
                        let record = argument.checked_sub(4).and_then(|n| ring.get_mut(first + n));
                        let same = argument.checked_sub(4).and_then(|n| queue.get_mut(n as usize));
                        prop_assert_eq!(&record, &same);
                        if let (Some(record), Some(same)) = (record, same) {
                            (*record, *same) = (argument, argument);
                        }
                    }
                }
                prop_assert_eq!((ring.first(), ring.end(), ring.len()), (first, first + queue.len() as u32, queue.len()));
                let records: Vec<_> = ring.from(0).collect();
                let same: Vec<_> = (first..).zip(queue.iter().copied()).collect();
                prop_assert_eq!(records, same);
                prop_assert_eq!(ring.get(first), queue.front());
                prop_assert!(first == 0 || ring.get(first - 1).is_none());
            }
        }
    }
}
