//! What acknowledgements with selective acknowledgement carry (RFC 2018).

use crate::observer::Acknowledgement;
use crate::transport::in_flight::InFlight;

/// How many ranges an acknowledgement has room for beside a timestamp (RFC 2018, section 3).
pub(super) const MOST_BLOCKS: usize = 3;

/// A range of segments: the first, and one past the last.
pub(super) type Block = (u32, u32);

/// What one acknowledgement carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckRecord {
    /// Every segment below has arrived.
    pub(super) expected: u32,
    /// Ranges that arrived beyond it, what came last first. One that ends where it begins is none.
    pub(super) blocks: [Block; MOST_BLOCKS],
    /// Marked packets that had come by then, if the receiver counts them.
    pub(super) marked: u32,
    /// The segment that had this ACK sent, if it had arrived before (D-SACK, RFC 2883).
    pub(super) duplicate: Option<u32>,
}

/// The acknowledgements of one flow that are in transit, each under a number of its own: several may ask for the same
/// segment.
#[derive(Clone, Debug, Default)]
pub struct Acks {
    in_transit: InFlight<AckRecord>,
    next: u32,
}

impl Acks {
    /// Sends an acknowledgement; returns its number.
    pub(super) fn post(&mut self, record: AckRecord) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.in_transit.put(number, record);
        number
    }

    /// The acknowledgement of this number arrives; none, if a later one has overtaken it.
    pub(super) fn take(&mut self, number: u32) -> Option<AckRecord> {
        self.in_transit.take_newest(number)
    }

    pub(in crate::transport) fn expected(&self, number: u32) -> u32 {
        self.in_transit.get(number).map_or(0, |record| record.expected)
    }

    /// What the acknowledgement of this number carries, for an observer.
    pub(in crate::transport) fn get(&self, number: u32) -> Option<Acknowledgement> {
        let &AckRecord { expected, blocks, marked, duplicate } = self.in_transit.get(number)?;
        Some(Acknowledgement { marked, duplicate, ranges: blocks, ..Acknowledgement::of(expected) })
    }

    pub(in crate::transport) fn lose(&mut self, number: u32) {
        self.in_transit.lose(number);
    }
}
