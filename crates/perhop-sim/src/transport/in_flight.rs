//! Packet metadata in transit, by the number of its packet: a simulated packet carries nothing else of its own.

use std::collections::VecDeque;

/// Metadata in transit, by the number of its packet. The packets of a flow nearly always keep their order.
#[derive(Clone, Debug)]
pub(crate) struct InFlight<T>(VecDeque<(u32, T)>);

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> InFlight<T> {
    /// Sends `content` under the next number.
    pub(crate) fn put(&mut self, number: u32, content: T) {
        self.0.push_back((number, content));
    }

    /// The packet of this number arrives. Those before it may follow.
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        let place = self.place(number)?;
        self.0.remove(place).map(|(_, content)| content)
    }

    /// The packet of this number arrives. Those before it no longer count.
    pub(crate) fn take_newest(&mut self, number: u32) -> Option<T> {
        let place = self.place(number)?;
        self.0.drain(..place);
        self.0.pop_front().map(|(_, content)| content)
    }

    /// The packet of this number was dropped.
    pub(crate) fn lose(&mut self, number: u32) {
        if let Some(place) = self.place(number) {
            self.0.remove(place);
        }
    }

    /// What the packet of this number carries, while it is in transit.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.place(number).map(|place| &self.0[place].1)
    }

    fn place(&self, number: u32) -> Option<usize> {
        let first = self.0.front()?.0;
        if number == first {
            return Some(0); // nearly always
        }
        // Numbers start again at zero after the highest, so they are compared by their distance from the first.
        self.0.binary_search_by_key(&number.wrapping_sub(first), |(n, _)| n.wrapping_sub(first)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
