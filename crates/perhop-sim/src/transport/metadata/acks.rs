//! What acknowledgements with selective acknowledgement carry (RFC 2018).

use super::in_flight::InFlight;
use crate::observer::Acknowledgement;

/// How many ranges an acknowledgement has room for beside a timestamp (RFC 2018, section 3).
pub(in crate::transport) const MOST_BLOCKS: usize = 3;

/// A range of segments: the first, and one past the last.
pub(in crate::transport) type Block = (u32, u32);

/// What one acknowledgement carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckRecord {
    /// Every segment below has arrived.
    pub(in crate::transport) expected: u32,
    /// Ranges that arrived beyond it, what came last first. One that ends where it begins is none.
    pub(in crate::transport) blocks: [Block; MOST_BLOCKS],
    /// Marked packets that had come by then, if the receiver counts them.
    pub(in crate::transport) marked: u32,
    /// The segment that had this ACK sent, if it had arrived before (D-SACK, RFC 2883).
    pub(in crate::transport) duplicate: Option<u32>,
}

impl AckRecord {
    /// Makes an acknowledgement that reports nothing but which segment is expected.
    #[inline]
    fn plain(expected: u32) -> Self {
        Self { expected, blocks: [(0, 0); MOST_BLOCKS], marked: 0, duplicate: None }
    }

    /// Returns whether it reports nothing but which segment is expected, and marks.
    #[inline]
    pub(in crate::transport) fn is_plain(&self) -> bool {
        let [(begin, end), ..] = self.blocks; // The others are none if the first is.
        begin == end && self.duplicate.is_none()
    }
}

/// The acknowledgements of one flow that are in transit. Most report nothing but which segment is expected,
/// and have its number; each of the others has a number of its own, above `RECORDED`, under which the rest
/// is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acks {
    pub(super) in_transit: InFlight<AckRecord>,
    next: u32,
}

/// Numbers of acknowledgements from here on are their own, and not of the segments that they ask for.
const RECORDED: u32 = 1 << 31;

/// An acknowledgement that asks for a segment below this needs no record for that.
pub(in crate::transport) const MOST_EXPECTED: u32 = RECORDED - 1;

impl Acks {
    /// Sends an acknowledgement; returns its number.
    pub(in crate::transport) fn post(&mut self, record: AckRecord) -> u32 {
        if record.is_plain() && record.marked == 0 && record.expected < RECORDED {
            return record.expected;
        }
        self.post_record(record)
    }

    /// Sends an acknowledgement that reports more than which segment is expected; returns its number.
    #[inline]
    pub(in crate::transport) fn post_record(&mut self, record: AckRecord) -> u32 {
        let number = self.next | RECORDED;
        self.next = number.wrapping_add(1);
        self.in_transit.put(number, record);
        number
    }

    /// Sends an acknowledgement that reports nothing but which segment is expected, and so many marked
    /// packets; returns its number.
    #[inline]
    pub(in crate::transport) fn post_plain(&mut self, expected: u32, marked: u32) -> u32 {
        if marked == 0 && expected < RECORDED {
            return expected;
        }
        self.post(AckRecord { marked, ..AckRecord::plain(expected) })
    }

    /// Takes out what an acknowledgement carries that arrives at a sender which knows of everything below
    /// `acked`; `None`, if a later one has overtaken it.
    pub(in crate::transport) fn take(&mut self, number: u32, acked: u32) -> Option<AckRecord> {
        if number < RECORDED {
            // One without a record asks for more than all before it.
            return (number > acked).then(|| AckRecord::plain(number));
        }
        self.in_transit.take_newest(number)
    }

    /// Returns the segment that the acknowledgement of this number asks for, and the marked packets that it
    /// counts, if it reports nothing else, and none before it is in transit that reports more.
    #[inline]
    pub(in crate::transport) fn first_plain(&self, number: u32) -> Option<(u32, u32)> {
        if number < RECORDED {
            return Some((number, 0));
        }
        let record = self.in_transit.first(number)?;
        record.is_plain().then_some((record.expected, record.marked))
    }

    /// Takes out the record, if any, of this number, which is the [first in transit](Self::first_plain).
    #[inline]
    pub(in crate::transport) fn take_first_of(&mut self, number: u32) {
        if number >= RECORDED {
            self.in_transit.take_first();
        }
    }

    pub(super) fn expected(&self, number: u32) -> u32 {
        if number < RECORDED {
            return number;
        }
        self.in_transit.get(number).map_or(0, |record| record.expected)
    }

    /// Returns what the acknowledgement of this number carries, for an observer.
    pub(super) fn get(&self, number: u32) -> Option<Acknowledgement> {
        if number < RECORDED {
            return Some(Acknowledgement::of(number));
        }
        let &AckRecord { expected, blocks, marked, duplicate } = self.in_transit.get(number)?;
        Some(Acknowledgement { marked, duplicate, ranges: blocks, ..Acknowledgement::of(expected) })
    }

    pub(super) fn lose(&mut self, number: u32) {
        if number >= RECORDED {
            self.in_transit.lose(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_that_reports_nothing_has_the_number_of_its_segment_and_any_other_one_of_its_own() {
        let mut acks = Acks::default();
        let with_block = AckRecord { blocks: [(9, 10), (0, 0), (0, 0)], ..AckRecord::plain(7) };
        let twice = AckRecord { duplicate: Some(3), ..AckRecord::plain(7) };
        let far = AckRecord::plain(RECORDED + 1);
        assert_eq!((acks.post(AckRecord::plain(7)), acks.post_plain(8, 0)), (7, 8));
        let records = [with_block, twice, AckRecord { marked: 1, ..AckRecord::plain(8) }, far];
        let numbers = records.map(|record| acks.post(record));
        assert_eq!(numbers, [0, 1, 2, 3].map(|n| RECORDED + n));
        assert_eq!((acks.expected(7), acks.expected(numbers[0]), acks.first_plain(8)), (7, 7, Some((8, 0))));
        assert_eq!((acks.first_plain(numbers[0]), acks.first_plain(numbers[2])), (None, None));
        assert_eq!((acks.take(numbers[0], 7), acks.take(numbers[0], 7)), (Some(with_block), None));
        acks.lose(numbers[1]);
        acks.lose(8);
        assert_eq!(acks.first_plain(numbers[2]), Some((8, 1)));
        acks.take_first_of(numbers[2]);
        assert_eq!(acks.take(numbers[3], 7), Some(far));
        assert_eq!((acks.take(8, 7), acks.take(7, 7)), (Some(AckRecord::plain(8)), None), "overtaken");
    }

    #[test]
    fn numbers_begin_again_at_the_first_of_their_own() {
        let mut acks = Acks { next: u32::MAX, ..Acks::default() };
        let records = [5, 6].map(|n| AckRecord { marked: n, ..AckRecord::plain(n) });
        let numbers = records.map(|record| acks.post(record));
        assert_eq!(numbers, [u32::MAX, RECORDED]);
        assert_eq!(numbers.map(|number| acks.take(number, 0)), records.map(Some));
    }
}
