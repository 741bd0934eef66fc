//! What an ACK does to the sender.

use perhop_core::Instant;

use super::TcpSender;
use crate::transport::Ack;
use crate::transport::tcp::congestion::{AckSample, CongestionControl};

impl TcpSender {
    /// An ACK came: every segment below its number has arrived.
    #[inline(always)]
    pub(in crate::transport) fn on_ack(&mut self, ack: Ack, now: Instant) {
        let expected = ack.number;
        let before = self.acked;
        if self.is_opening() {
            self.open(now);
            self.limit = self.allowed();
            return;
        }
        if self.notes {
            self.note_ack(ack, now);
        }
        if expected > self.acked {
            if self.recovering && expected < self.recover && self.rare.params.has_partial_acks() {
                self.on_partial_ack(expected, now);
            } else {
                self.on_new_ack(expected, now);
            }
        } else if expected == self.acked && self.highest > self.acked {
            self.on_duplicate_ack(now);
        }
        if self.notes && expected >= self.acked {
            self.answer_marks(expected, now);
            self.tell_owner_of_cumulative_ack(before, now);
        }
        self.limit = self.allowed();
    }

    /// Notes what an ACK tells of marks and of segments that have arrived.
    #[cold]
    fn note_ack(&mut self, Ack { number: expected, ece }: Ack, now: Instant) {
        self.rare.ecn.learn(ece, 0, expected.saturating_sub(self.acked));
        (self.acked..expected).for_each(|sequence| self.note_covered(sequence, now));
    }

    #[inline(always)]
    fn on_new_ack(&mut self, expected: u32, now: Instant) {
        self.recovering = false;
        let delivered = expected - self.acked;
        self.take_new_ack(expected, delivered, now);
    }

    /// Moves on to `expected`, and lets the window grow by an ACK, or by the `delivered` segments that it reports.
    #[inline(always)]
    pub(in crate::transport::tcp) fn take_new_ack(&mut self, expected: u32, delivered: u32, now: Instant) {
        let before = self.acked;
        self.duplicates = 0;
        self.advance(expected, now);
        self.expiry = if self.acked == self.highest { Instant::NEVER } else { now + self.timeout };
        if !self.notes {
            self.tell_control(delivered, now);
        } else if self.validate(before, now) && self.may_grow() {
            self.tell_control_in_notes(delivered, now);
        }
    }

    /// Passes an ACK of new data to the congestion control; returns the window.
    #[inline(always)]
    pub(super) fn tell_control(&mut self, delivered: u32, now: Instant) -> f64 {
        if self.control.is_default() {
            self.tell_any_control(delivered, now)
        } else {
            self.tell_other_control(delivered, now)
        }
    }

    /// The same where it is not the default one: a call, which spares the default one the dispatch.
    #[inline(never)]
    fn tell_other_control(&mut self, delivered: u32, now: Instant) -> f64 {
        self.tell_any_control(delivered, now)
    }

    /// The same, whichever control it is.
    #[inline(always)]
    fn tell_any_control(&mut self, delivered: u32, now: Instant) -> f64 {
        let Self { control, rare, next, acked, recover, .. } = self;
        control.take(|needs| AckSample {
            now,
            delivered,
            marked: if needs.marks { rare.ecn.marks } else { 0 },
            acked: *acked,
            in_flight: *next - *acked,
            pipe: if needs.recovery { (*next - *acked).saturating_sub(rare.absent) } else { 0 },
            lost: if needs.recovery { std::mem::take(&mut rare.lost) } else { 0 },
            recovering: needs.recovery && *acked < *recover,
            smoothed_rtt: rare.rto.smoothed_of_data().unwrap_or(0.0),
            delivery: match &mut rare.delivery {
                Some(delivery) if needs.delivery => delivery.sample(*acked, now),
                _ => None,
            },
        })
    }

    /// Passes an ACK to a congestion control that owns its recoveries: it moved the left edge from `before`, or is a duplicate.
    #[cold]
    fn tell_owner_of_cumulative_ack(&mut self, before: u32, now: Instant) {
        let gone = if self.recovering { self.rare.recovery.inflation } else { self.duplicates };
        self.note_pipe((self.next - self.acked).saturating_sub(gone));
        self.tell_owner(self.acked - before, now);
    }

    /// Passes an ACK of so many segments to a congestion control that owns its recoveries.
    #[cold]
    pub(in crate::transport::tcp) fn tell_owner(&mut self, delivered: u32, now: Instant) {
        if self.rare.owns_recovery && (self.rare.lost > 0 || delivered > 0) {
            self.rare.gap = None;
            self.tell_control(delivered, now);
        }
    }

    /// Whether an ACK in a recovery, by which so many marked packets had come, says nothing of marks.
    #[inline]
    pub(in crate::transport::tcp) fn takes_in_recovery(&self, marked: u32) -> bool {
        self.rare.ecn.has_no_news(marked)
    }

    /// By [such an ACK](Self::takes_in_recovery) one segment has arrived, and so many are in the network: a congestion control that
    /// owns its recoveries hears of it. Returns the window.
    #[inline]
    pub(in crate::transport::tcp) fn take_one_in_recovery(&mut self, pipe: u32, now: Instant) -> f64 {
        self.rare.ecn.marks = 0;
        if !self.rare.owns_recovery {
            return self.window_in_force();
        }
        self.rare.gap = None;
        self.note_pipe(pipe);
        self.tell_control(1, now)
    }

    /// So many segments are in the network.
    pub(in crate::transport::tcp) fn note_pipe(&mut self, pipe: u32) {
        self.rare.absent = (self.next - self.acked).saturating_sub(pipe);
    }

    /// The congestion control owns its recoveries.
    pub(in crate::transport::tcp) fn owns_recovery(&self) -> bool {
        self.rare.owns_recovery
    }

    /// Notes a segment that is lost, for a congestion control that owns its recoveries.
    #[cold]
    pub(in crate::transport::tcp) fn note_lost(&mut self, sequence: u32, now: Instant) {
        if !self.rare.owns_recovery || self.is_opening() {
            return;
        }
        self.rare.lost += 1;
        if let Some(lost) = self.rare.delivery.as_mut().and_then(|delivery| delivery.on_lost(sequence, now)) {
            self.control_mut().on_lost(&lost);
        }
    }

    /// Notes a segment that is reported above the left edge, for reports and for what the congestion control needs.
    #[cold]
    pub(in crate::transport::tcp) fn note_delivered(&mut self, sequence: u32, now: Instant) {
        self.note_arrived(sequence, now);
        self.note_covered(sequence, now);
    }

    /// Notes a segment below the left edge to which the ACK [advances](Self::advance), for what the congestion control needs.
    #[cold]
    pub(in crate::transport::tcp) fn note_covered(&mut self, sequence: u32, now: Instant) {
        if let Some(delivery) = &mut self.rare.delivery {
            delivery.on_delivered(sequence, now);
        }
    }

    /// Notes a segment that is reported above the left edge, for reports alone.
    #[inline(always)]
    pub(in crate::transport::tcp) fn note_arrived(&mut self, sequence: u32, now: Instant) {
        self.rare.trips.on_arrived(sequence, now);
    }

    /// Moves the left edge and takes a round-trip sample if the timed segment is covered (Karn: one sent once).
    pub(in crate::transport::tcp) fn advance(&mut self, expected: u32, now: Instant) {
        self.acked = expected;
        self.next = self.next.max(expected);
        self.rare.trips.pass(expected, now);
        if expected > self.timed {
            self.sample(now);
        }
    }
}
