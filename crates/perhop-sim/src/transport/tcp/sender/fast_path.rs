//! The fast path: what the sender does for nearly every ACK, in a few steps.
//!
//! It takes ACKs of new data while there are no losses to repair. It does and leaves what the general path does and leaves: a
//! property test compares them.

use std::ops::Range;

use perhop_core::Instant;

use super::transmit::Release;
use super::{TcpSender, UNTIMED};

impl TcpSender {
    /// Whether [`ack_fast`](Self::ack_fast) may be called: there are no losses to repair, all that the sender sends is new, its
    /// timer runs, and so does the measurement of a round trip.
    pub(crate) fn is_on_fast_path(&self) -> bool {
        self.fast_path
            && self.started
            && self.expiry != Instant::NEVER
            && self.next == self.highest
            && self.duplicates == 0
            && !self.recovering
            && self.urgent.is_none()
            && self.timed != UNTIMED
            && self.release == Release::Always
            && !(self.handshake && self.acked == 0)
    }

    /// What [`on_ack`](Self::on_ack) and [`transmit`](Self::transmit) do for an ACK of new data that covers neither all data nor
    /// the timed segment. Returns the segments to put on the wire; `None`, and does nothing, for any other ACK.
    #[inline(always)]
    pub(crate) fn ack_fast(&mut self, expected: u32, now: Instant) -> Option<Range<u32>> {
        debug_assert!(self.is_on_fast_path());
        // The timed segment was sent, so more was than up to there.
        if expected <= self.acked || expected > self.timed {
            return None;
        }
        let delivered = expected - self.acked;
        self.acked = expected;
        self.expiry = now.later(self.timeout);
        self.limit = self.tell_control(delivered, now) as u32;
        let first = self.next;
        let end = (u64::from(expected) + u64::from(self.limit)).min(u64::from(self.end)) as u32;
        let end = end.max(first);
        (self.next, self.highest) = (end, end);
        Some(first..end)
    }
}
