//! The short ways: what the sender does for nearly every ACK and timer, in a few steps.
//!
//! They are open while there are no losses to repair and all that is sent is new data in full segments. A
//! short way does and leaves what the general path does and leaves: property tests compare them.

use std::ops::Range;

use perhop_core::Instant;

use super::transmit::Release;
use super::{TcpSender, Timer, UNTIMED};
use crate::transport::Ack;
use crate::transport::metadata::Metadata;
use crate::transport::tcp::congestion::CongestionControl;

/// The short way that is open. It is found anew when the general path ends; a short way leaves it as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// An ACK of new data only moves the window, and segments leave at once.
    Plain,
    /// An ACK of new data also has to be noted: for ECN, pacing, delivery rates or selective
    /// acknowledgements.
    Noted,
    /// No short way is open.
    General,
}

impl TcpSender {
    /// Returns the short way that is open now.
    pub(super) fn find_mode(&self) -> Mode {
        let is_steady = self.expiry != Instant::NEVER
            && self.next == self.sent_end
            && self.duplicates == 0
            && !self.recovering
            && self.send_now.is_none()
            && self.last == self.packet
            && !self.is_opening();
        if !is_steady || self.shortest == Mode::General {
            return Mode::General;
        }
        match (&self.selective, self.release) {
            (None, Release::Always) => self.shortest,
            (Some(repair), Release::Always | Release::Paced) if repair.is_clean() => Mode::Noted,
            _ => Mode::General,
        }
    }

    /// Takes an ACK of new data in [`Mode::Plain`]. Returns the segments to put on the wire; `None`, having
    /// done nothing, for an ACK of nothing new or of all that is outstanding.
    #[inline(always)]
    pub(super) fn try_plain_ack(&mut self, expected: u32, now: Instant) -> Option<Range<u32>> {
        if expected <= self.acked || expected >= self.sent_end {
            return None;
        }
        let delivered = expected - self.acked;
        self.acked = expected;
        self.cold.trips.pass(expected, now);
        if self.rtt_segment < expected {
            self.sample(now);
        }
        self.expiry = now.later(self.timeout);
        let window = self.report_ack(delivered, now) as u32;
        let first = self.next;
        let end = u64::from(expected) + u64::from(window.min(self.receiver_window));
        let end = (end.min(u64::from(self.data_end)) as u32).max(first);
        (self.next, self.sent_end) = (end, end);
        self.cold.trips.on_sent(end - first, now);
        if self.rtt_segment == UNTIMED && end > first {
            (self.rtt_segment, self.rtt_sent_at) = (first, now);
        }
        self.note_limit(now);
        Some(first..end)
    }

    /// Takes an ACK of new data in [`Mode::Noted`], if it reports no mark and nothing beyond a gap. Returns
    /// the segments to put on the wire; `None`, having done nothing, for any other ACK, and for one of all
    /// that is outstanding.
    #[inline(never)] // It keeps the other one short.
    pub(super) fn try_noted_ack(
        &mut self,
        ack: Ack,
        metadata: &mut Metadata,
        now: Instant,
    ) -> Option<Range<u32>> {
        let (expected, marked) = match &self.selective {
            None => (ack.number, 0),
            Some(_) => metadata.of_acks().first_plain(ack.number)?,
        };
        let is_new = self.acked < expected && expected < self.sent_end;
        if !is_new || ack.ece || !self.cold.ecn.has_no_news(marked) {
            return None;
        }
        if let Some(repair) = &mut self.selective {
            metadata.of_acks().take_first_of(ack.number);
            repair.pass(expected, &self.cold.rto, now);
        }
        let delivered = expected - self.acked;
        self.cold.ecn.marks = 0;
        self.cold.gap = None;
        self.cold.left_network = 0;
        if let Some(delivery) = &mut self.cold.delivery {
            (self.acked..expected).for_each(|sequence| delivery.on_delivered(sequence, now));
        }
        if self.rtt_segment < expected {
            self.sample(now);
        }
        self.acked = expected;
        self.cold.trips.pass(expected, now);
        self.expiry = now.later(self.timeout);
        let window = self.report_ack(delivered, now) as u32;
        let segments = self.send_new(window, now);
        self.arm_probe(now);
        Some(segments)
    }

    /// Sends what may leave now that the pace allows it, in [`Mode::Noted`]. Returns these segments; `None`,
    /// having done nothing, if anything else is to be done.
    pub(super) fn try_release(&mut self, now: Instant) -> Option<Range<u32>> {
        let is_due = self.mode == Mode::Noted && self.next_send <= now;
        if !is_due || now >= self.expiry || self.cold.ecn.says_reduced {
            return None;
        }
        if self.selective.as_ref().is_some_and(|repair| repair.wake() <= now) {
            return None;
        }
        self.next_send = Instant::NEVER;
        let segments = self.send_new(self.control.window() as u32, now);
        if !segments.is_empty() {
            self.arm_probe(now);
        }
        Some(segments)
    }

    /// Restarts the timer of a loss probe, if there is one: new data was sent or acknowledged.
    #[inline]
    fn arm_probe(&mut self, now: Instant) {
        if let Some(repair) = &mut self.selective {
            let smoothed_rtt = self.cold.rto.smoothed_span();
            repair.arm_probe(Timer { smoothed_rtt, timeout: self.timeout, expiry: self.expiry }, now);
        }
    }

    /// Sends what a window of so many segments lets out, as the pace allows; returns these segments.
    #[inline(always)]
    fn send_new(&mut self, window: u32, now: Instant) -> Range<u32> {
        let first = self.next;
        let room = window.min(self.receiver_window).saturating_sub(first - self.acked);
        let end = first + room.min(self.data_end.saturating_sub(first));
        let is_paced = self.is_paced();
        while self.next < end && !(is_paced && self.waits_for_pace(now)) {
            let sequence = self.next;
            self.next += 1;
            if let Some(repair) = &mut self.selective {
                repair.on_sent(now);
            }
            if let Some(delivery) = &mut self.cold.delivery {
                delivery.on_sent(sequence, false, self.next - self.acked, now);
            }
            if is_paced {
                self.note_grant_used(now);
                if let Some(gap) = self.gap() {
                    self.cold.paced_until = self.cold.paced_until.max(now) + gap;
                }
            }
            self.sent_end = self.next;
            self.cold.trips.on_sent(1, now);
            if self.rtt_segment == UNTIMED {
                (self.rtt_segment, self.rtt_sent_at) = (sequence, now);
            }
        }
        if is_paced && self.next == end {
            self.hold();
        }
        self.note_limit(now);
        first..self.next
    }
}
