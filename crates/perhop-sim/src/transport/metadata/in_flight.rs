//! Packet metadata in transit, by its packet's number: a simulated packet carries nothing else of its own.

use std::collections::VecDeque;

/// Metadata in transit, by the number of its packet. The packets of a flow nearly always keep their order.
#[derive(Clone, Debug)]
pub(crate) struct InFlight<T> {
    pending: VecDeque<(u32, T)>,
    /// The last number that [`take_newest`](Self::take_newest) took: those before it no longer count.
    newest: Option<u32>,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self { pending: VecDeque::new(), newest: None }
    }
}

impl<T> InFlight<T> {
    /// Sends `content` under the next number.
    #[inline]
    pub(crate) fn put(&mut self, number: u32, content: T) {
        self.pending.push_back((number, content));
    }

    /// Takes in a packet that another part of the network has [taken](Self::take) out of its own store.
    pub(crate) fn insert(&mut self, number: u32, content: T) {
        // Numbers start again at zero after the highest: less than half of them are in transit.
        let precedes = |a: u32, b: u32| a.wrapping_sub(b) > u32::MAX / 2;
        if self.newest.is_some_and(|newest| precedes(number, newest)) {
            return; // A later one has overtaken it.
        }
        let later = self.pending.iter().rev().take_while(|&&(other, _)| precedes(number, other)).count();
        self.pending.insert(self.pending.len() - later, (number, content));
    }

    /// Takes out a packet that arrives. Packets before it may follow.
    #[inline]
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        let first = self.pending.front()?.0;
        if number != first {
            return self.take_behind(first, number);
        }
        self.pending.pop_front().map(|(_, content)| content)
    }

    #[cold]
    fn take_behind(&mut self, first: u32, number: u32) -> Option<T> {
        let place = self.place_behind(first, number)?;
        self.pending.remove(place).map(|(_, content)| content)
    }

    /// Returns what the packet of this number carries, if it is the first of those in transit.
    #[inline]
    pub(crate) fn first(&self, number: u32) -> Option<&T> {
        self.pending.front().filter(|(first, _)| *first == number).map(|(_, content)| content)
    }

    /// Takes out the first packet in transit. Packets before it no longer count.
    #[inline]
    pub(crate) fn take_first(&mut self) {
        self.newest = self.pending.pop_front().map(|(number, _)| number);
    }

    /// Takes out a packet that arrives. Packets before it no longer count.
    #[inline]
    pub(crate) fn take_newest(&mut self, number: u32) -> Option<T> {
        let place = self.place(number)?;
        if place > 0 {
            self.pending.drain(..place);
        }
        self.newest = Some(number);
        self.pending.pop_front().map(|(_, content)| content)
    }

    /// Forgets a packet that was dropped.
    pub(crate) fn lose(&mut self, number: u32) {
        if let Some(place) = self.place(number) {
            self.pending.remove(place);
        }
    }

    /// Returns what the packet of this number carries, while it is in transit.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.place(number).map(|place| &self.pending[place].1)
    }

    #[inline]
    fn place(&self, number: u32) -> Option<usize> {
        let first = self.pending.front()?.0;
        if number == first { Some(0) } else { self.place_behind(first, number) } // nearly always the first
    }

    #[cold]
    fn place_behind(&self, first: u32, number: u32) -> Option<usize> {
        // Numbers start again at zero after the highest, so their distances from the first are compared.
        self.pending.binary_search_by_key(&number.wrapping_sub(first), |(n, _)| n.wrapping_sub(first)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_elsewhere_is_put_in_order_unless_it_was_overtaken() {
        let mut flight = InFlight::default();
        for number in [u32::MAX, 1, 0, 3, 2] {
            flight.insert(number, number);
        }
        assert_eq!(flight.take_newest(0), Some(0));
        flight.insert(u32::MAX - 1, 7);
        assert_eq!((flight.take(u32::MAX - 1), flight.take(u32::MAX)), (None, None), "0 has overtaken them");
        assert_eq!([1, 2, 3].map(|number| flight.take(number)), [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn what_is_in_flight_is_found_by_number_and_forgotten_when_lost() {
        let mut flight = InFlight::default();
        let numbers = [u32::MAX - 1, u32::MAX, 0, 1, 2];
        for number in numbers {
            flight.put(number, number);
        }
        flight.lose(0);
        flight.lose(7);
        let mut newest = flight.clone();
        assert_eq!(newest.take_newest(u32::MAX - 1), Some(u32::MAX - 1));
        assert_eq!(newest.take_newest(0), None, "it was dropped");
        assert_eq!(newest.take_newest(1), Some(1));
        assert_eq!(newest.take_newest(u32::MAX), None, "a later one has overtaken it");
        assert_eq!((newest.take_newest(2), newest.take_newest(2)), (Some(2), None));
        assert_eq!(flight.take(1), Some(1));
        assert_eq!((flight.take(u32::MAX), flight.take(u32::MAX)), (Some(u32::MAX), None));
        assert_eq!(
            (flight.take(2), flight.take(0), flight.take(u32::MAX - 1)),
            (Some(2), None, Some(u32::MAX - 1))
        );
    }
}
