//! What an ACK does to the sender.

use perhop_core::Instant;

use super::TcpSender;
use crate::transport::Ack;
use crate::transport::tcp::congestion::{AckSample, CongestionControl};

impl TcpSender {
    /// Takes an ACK that acknowledges every segment below its number, and nothing else.
    #[inline]
    pub(super) fn on_cumulative_ack(&mut self, ack: Ack, now: Instant) {
        let expected = ack.number;
        let before = self.acked;
        if self.is_opening() {
            self.open(now);
            return;
        }
        if self.notes {
            self.note_ack(ack, now);
        }
        if expected > self.acked {
            if self.recovering && expected < self.recover && self.cold.params.has_partial_acks() {
                self.on_partial_ack(expected, now);
            } else {
                self.recovering = false;
                self.take_new_ack(expected, expected - self.acked, now);
            }
        } else if expected == self.acked && self.sent_end > self.acked {
            self.on_duplicate_ack(now);
        }
        if self.notes && expected >= self.acked {
            self.answer_marks(expected, now);
            self.report_cumulative_ack(before, now);
        }
    }

    /// Notes what an ACK reports of marks and of segments that have arrived.
    #[cold]
    fn note_ack(&mut self, Ack { number: expected, ece }: Ack, now: Instant) {
        self.cold.ecn.learn(ece, 0, expected.saturating_sub(self.acked));
        (self.acked..expected).for_each(|sequence| self.note_covered(sequence, now));
    }

    /// Moves on to `expected`, and lets the window grow by an ACK or by the `delivered` segments.
    #[inline]
    pub(super) fn take_new_ack(&mut self, expected: u32, delivered: u32, now: Instant) {
        let before = self.acked;
        self.duplicates = 0;
        self.advance(expected, now);
        self.expiry = if self.acked == self.sent_end { Instant::NEVER } else { now + self.timeout };
        if !self.notes {
            self.report_ack(delivered, now);
        } else if self.validate(before, now) && self.may_grow() {
            self.report_ack_with_notes(delivered, now);
        }
    }

    /// Reports an ACK of new data to the congestion control; returns the window.
    #[inline(always)]
    pub(super) fn report_ack(&mut self, delivered: u32, now: Instant) -> f64 {
        if self.control.is_default() {
            self.report_ack_to_any(delivered, now)
        } else {
            self.report_ack_to_boxed(delivered, now)
        }
    }

    /// Reports an ACK to a congestion control that is not the default one, in a call, which spares the
    /// default one the dispatch.
    #[inline(never)]
    fn report_ack_to_boxed(&mut self, delivered: u32, now: Instant) -> f64 {
        self.report_ack_to_any(delivered, now)
    }

    /// Reports an ACK to the congestion control, whichever it is.
    #[inline(always)]
    fn report_ack_to_any(&mut self, delivered: u32, now: Instant) -> f64 {
        let Self { control, cold, next, acked, recover, .. } = self;
        control.take(|needs| AckSample {
            now,
            delivered,
            marked: if needs.marks { cold.ecn.marks } else { 0 },
            acked: *acked,
            in_flight: *next - *acked,
            pipe: if needs.recovery { (*next - *acked).saturating_sub(cold.left_network) } else { 0 },
            lost: if needs.recovery { std::mem::take(&mut cold.lost) } else { 0 },
            recovering: needs.recovery && *acked < *recover,
            smoothed_rtt: cold.rto.smoothed_of_data().unwrap_or(0.0),
            delivery: match &mut cold.delivery {
                Some(delivery) if needs.delivery => delivery.sample(*acked, now),
                _ => None,
            },
        })
    }

    /// Reports an ACK, which moved the left edge from `before` or is a duplicate, to a congestion control
    /// that controls recoveries.
    #[cold]
    fn report_cumulative_ack(&mut self, before: u32, now: Instant) {
        let gone = if self.recovering { self.cold.recovery.inflation } else { self.duplicates };
        self.set_pipe((self.next - self.acked).saturating_sub(gone));
        self.report_every_ack(self.acked - before, now);
    }

    /// Reports an ACK of so many segments to a congestion control that controls recoveries, in one or not.
    #[cold]
    pub(super) fn report_every_ack(&mut self, delivered: u32, now: Instant) {
        if self.cold.controls_recovery && (self.cold.lost > 0 || delivered > 0) {
            self.cold.gap = None;
            self.report_ack(delivered, now);
        }
    }

    /// Notes how many segments are in the network.
    pub(super) fn set_pipe(&mut self, pipe: u32) {
        self.cold.left_network = (self.next - self.acked).saturating_sub(pipe);
    }

    /// Notes a segment that is lost, for a congestion control that controls recoveries.
    #[cold]
    pub(super) fn note_lost(&mut self, sequence: u32, now: Instant) {
        if !self.cold.controls_recovery || self.is_opening() {
            return;
        }
        self.cold.lost += 1;
        if let Some(lost) = self.cold.delivery.as_mut().and_then(|delivery| delivery.on_lost(sequence, now)) {
            self.control_mut().on_lost(&lost);
        }
    }

    /// Notes a segment reported above the left edge, for reports and the congestion control's needs.
    #[cold]
    pub(super) fn note_delivered(&mut self, sequence: u32, now: Instant) {
        self.cold.trips.on_arrived(sequence, now);
        self.note_covered(sequence, now);
    }

    /// Notes a segment below the left edge to which the ACK [advances](Self::advance), for what the
    /// congestion control needs.
    #[cold]
    pub(super) fn note_covered(&mut self, sequence: u32, now: Instant) {
        if let Some(delivery) = &mut self.cold.delivery {
            delivery.on_delivered(sequence, now);
        }
    }

    /// Moves the left edge; takes a round-trip sample if the timed segment is covered (Karn: one sent once).
    pub(super) fn advance(&mut self, expected: u32, now: Instant) {
        self.acked = expected;
        self.next = self.next.max(expected);
        self.cold.trips.pass(expected, now);
        if expected > self.rtt_segment {
            self.sample(now);
        }
    }
}
