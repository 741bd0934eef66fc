//! The fast path: what the sender does for nearly every ACK, in a few steps.
//!
//! It takes ACKs of new data while there are no losses to repair. It does and leaves what the general path does and leaves: a
//! property test compares them.

use std::ops::Range;

use perhop_core::{Ecn, Instant};

use super::transmit::Release;
use super::{TcpSender, UNTIMED};

impl TcpSender {
    /// Whether [`ack_fast`](Self::ack_fast) may be called: there are no losses to repair, all that the sender sends is new and in full
    /// segments, its timer runs, and so does the measurement of a round trip.
    pub(crate) fn is_on_fast_path(&self) -> bool {
        let is_plain = self.fast_path && self.sends_at_once() && self.sends_full_segments();
        is_plain && self.is_steady() && self.timed != UNTIMED
    }

    /// All that it sends once its connection is open are full segments, at once, whatever happens; and of an ACK nobody wants to know
    /// more than it must itself.
    pub(in crate::transport::tcp) fn is_simple(&self) -> bool {
        let is_open = self.started && self.acked > 0;
        is_open && self.fast_path && !self.notes && self.sends_at_once() && self.sends_full_segments()
    }

    #[inline(always)]
    fn is_steady(&self) -> bool {
        self.started
            && self.expiry != Instant::NEVER
            && self.next == self.highest
            && self.duplicates == 0
            && !self.recovering
            && self.urgent.is_none()
            && !(self.handshake && self.acked == 0)
    }

    /// The last segment, too, is a full one.
    #[inline(always)]
    pub(in crate::transport::tcp) fn sends_full_segments(&self) -> bool {
        self.last == self.packet
    }

    /// A segment leaves as soon as the window lets it out.
    #[inline(always)]
    pub(in crate::transport::tcp) fn sends_at_once(&self) -> bool {
        self.release == Release::Always
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
        self.limit = self.take_some(expected, now);
        let segments = self.send_some(now);
        self.note_limit(now);
        Some(segments)
    }

    /// The same for a sender that may use ECN, whatever its state and the ACK, which says that so many marked packets had come; the
    /// ACK may cover the timed segment.
    #[inline(always)]
    pub(in crate::transport) fn ack_fast_of(
        &mut self,
        expected: u32,
        marked: u32,
        ece: bool,
        now: Instant,
    ) -> Option<Range<u32>> {
        let may_send = self.sends_at_once() && self.sends_full_segments();
        if !may_send || !self.takes(expected, marked, ece) {
            return None;
        }
        self.limit = self.take_timed(expected, now);
        let segments = self.send_some(now);
        if self.timed == UNTIMED && !segments.is_empty() {
            (self.timed, self.timed_at) = (segments.start, now);
        }
        self.note_limit(now);
        Some(segments)
    }

    /// More than [`ack_fast`](Self::ack_fast) does is to be done of some ACKs.
    #[inline(always)]
    pub(crate) fn takes_notes(&self) -> bool {
        self.notes
    }

    /// Takes such an ACK, and sends nothing; or returns false, having done nothing.
    #[inline(always)]
    pub(in crate::transport::tcp) fn take_fast(
        &mut self,
        expected: u32,
        marked: u32,
        ece: bool,
        now: Instant,
    ) -> bool {
        let takes = self.takes(expected, marked, ece);
        if takes {
            self.take_timed(expected, now);
        }
        takes
    }

    /// A paced segment may leave now, if the window lets it out; nothing else is to be done, and it says nothing.
    #[inline(always)]
    pub(in crate::transport::tcp) fn may_release(&self, now: Instant) -> bool {
        self.takes_plain
            && self.is_paced()
            && self.sends_full_segments()
            && self.is_steady()
            && self.next_send <= now
            && now < self.expiry
            && !self.rare.ecn.has_to_say_reduced()
    }

    /// A paced segment may leave now in a recovery that the congestion control owns, and then none before some time has passed; nothing
    /// else is to be done.
    #[inline(always)]
    pub(in crate::transport::tcp) fn may_release_in_recovery(&mut self, now: Instant) -> bool {
        let is_plain =
            self.takes_plain && self.rare.ecn.is_off() && self.sends_full_segments() && self.acked > 0;
        let has_pace = self.is_paced() && self.rare.owns_recovery && self.rare.has_own_pace;
        let is_due = self.next_send <= now && self.rare.paced_until <= now && now < self.expiry;
        is_plain
            && has_pace
            && is_due
            && self.urgent.is_none()
            && self.gap().is_some_and(|gap| !gap.is_zero())
    }

    /// No segment may leave now, since that before it did shortly ago.
    #[inline(always)]
    pub(in crate::transport::tcp) fn waits_in_recovery(&self, now: Instant) -> bool {
        self.is_paced() && now < self.rare.paced_until && self.urgent.is_none()
    }

    /// What [`send`](Self::send) does of a full segment of new data of a paced sender, on the fast path: no more is outstanding than
    /// the window.
    #[inline(always)]
    pub(in crate::transport::tcp) fn send_paced(&mut self, now: Instant) {
        let sequence = self.next;
        self.next += 1;
        self.note_grant_used(now);
        if let Some(delivery) = &mut self.rare.delivery {
            delivery.on_sent(sequence, self.highest == self.acked, self.next - self.acked, now);
        }
        if let Some(gap) = self.gap() {
            self.rare.paced_until = self.rare.paced_until.max(now) + gap;
        }
        self.highest = self.next;
        self.rare.trips.on_sent(1, now);
        if self.timed == UNTIMED {
            (self.timed, self.timed_at) = (sequence, now);
        }
    }

    /// The ECN field of new data.
    #[inline(always)]
    pub(in crate::transport) fn ecn_of_data(&self) -> Ecn {
        self.rare.ecn.codepoint
    }

    #[inline(always)]
    fn takes(&self, expected: u32, marked: u32, ece: bool) -> bool {
        let is_plain = self.takes_plain && !ece && self.rare.ecn.has_no_news(marked);
        is_plain && self.is_steady() && expected > self.acked && expected < self.highest
    }

    /// Everything below `expected` has arrived, perhaps with the timed segment. Returns how many segments may then be outstanding.
    #[inline(always)]
    fn take_timed(&mut self, expected: u32, now: Instant) -> u32 {
        self.rare.ecn.marks = 0;
        self.rare.gap = None;
        self.rare.absent = 0;
        if let Some(delivery) = &mut self.rare.delivery {
            (self.acked..expected).for_each(|sequence| delivery.on_delivered(sequence, now));
        }
        if self.timed < expected {
            self.sample(now);
        }
        self.take_some(expected, now)
    }

    /// Everything below `expected` has arrived. Returns how many segments may then be outstanding.
    #[inline(always)]
    fn take_some(&mut self, expected: u32, now: Instant) -> u32 {
        let delivered = expected - self.acked;
        self.acked = expected;
        self.rare.trips.pass(expected, now);
        self.expiry = now.later(self.timeout);
        (self.tell_control(delivered, now) as u32).min(self.most)
    }

    #[inline(always)]
    fn send_some(&mut self, now: Instant) -> Range<u32> {
        let first = self.next;
        let end = (u64::from(self.acked) + u64::from(self.limit)).min(u64::from(self.end)) as u32;
        let end = end.max(first);
        (self.next, self.highest) = (end, end);
        self.rare.trips.on_sent(end - first, now);
        first..end
    }
}
