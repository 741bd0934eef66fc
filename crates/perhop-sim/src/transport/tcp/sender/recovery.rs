//! Recovery from losses: Reno's (RFC 5681, section 3.2) and `NewReno`'s (RFC 6582).

use perhop_core::Instant;

use super::{TcpSender, UNTIMED};
use crate::transport::tcp::congestion::{CongestionControl, CongestionEvent};
use crate::transport::tcp::{NewRenoTimer, PartialWindowDeflation};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Recovery {
    /// The window in force meanwhile, without its inflation.
    pub(super) window: f64,
    /// Segments known to have left the network since it began.
    pub(super) inflation: u32,
    /// A partial ACK came: an impatient sender restarts the timer no more (RFC 6582, section 4).
    pub(super) partial: bool,
}

impl TcpSender {
    /// Returns the recovery that is on.
    pub(super) fn recovery(&mut self) -> Option<&mut Recovery> {
        self.recovering.then_some(&mut self.cold.recovery)
    }

    /// Returns how many segments may be unacknowledged; none before the start.
    #[inline]
    pub(super) fn allowed_in_flight(&self) -> u32 {
        if !self.started {
            return 0;
        }
        let inflation = if self.recovering { self.cold.recovery.inflation } else { 0 };
        (self.window_in_force() as u32 + inflation).min(self.receiver_window)
    }

    /// Sends the next hole at once, and shrinks the window by what was acknowledged, or back to ssthresh (RFC
    /// 6582, section 3.2, step 3). The first of a recovery, or each, restarts the timer (section 4).
    #[inline(never)]
    pub(super) fn on_partial_ack(&mut self, expected: u32, now: Instant) {
        let acked = expected - self.acked;
        let deflation = self.cold.params.partial_window_deflation;
        let steady = self.cold.params.newreno_timer == NewRenoTimer::SlowButSteady;
        self.advance(expected, now);
        self.note_lost(self.acked, now);
        self.send_now = Some(self.acked);
        let recovery = &mut self.cold.recovery;
        recovery.deflate(acked, deflation);
        if !std::mem::replace(&mut recovery.partial, true) || steady {
            self.expiry = now + self.timeout;
        }
    }

    #[inline(never)]
    pub(super) fn on_duplicate_ack(&mut self, now: Instant) {
        if self.takes_for_opening() {
            return;
        }
        self.duplicates += 1;
        if let Some(recovery) = self.recovery() {
            recovery.inflation += 1;
        } else if self.duplicates == 3 {
            // A burst of duplicates after a timeout shows segments sent twice, not of a new loss.
            if self.acked > self.recover || self.recover == 0 {
                self.fast_retransmit(now);
            }
        } else if self.duplicates < 3
            && self.cold.params.limited_transmit
            && self.next < self.data_end
            && self.next - self.acked
                < self.allowed_in_flight().saturating_add(self.duplicates).min(self.receiver_window)
        {
            self.send_now = Some(self.next);
            self.next += 1;
        }
    }

    fn fast_retransmit(&mut self, now: Instant) {
        self.recover = self.sent_end;
        self.begin_recovery(3, now);
        self.note_lost(self.acked, now);
    }

    /// Begins a recovery from a loss: the window is lowered, and the first missing segment is sent again.
    pub(super) fn begin_recovery(&mut self, inflation: u32, now: Instant) {
        self.cold.statistics.fast_retransmits += 1;
        if self.cold.controls_recovery || !self.has_answered_marks() {
            let event = self.congestion_event(now);
            self.control_mut().on_loss(&event);
        }
        self.note_reduction();
        self.end_first_slow_start();
        let window = self.control.window();
        self.cold.recovery = Recovery { window, inflation, partial: false };
        self.recovering = true;
        self.rtt_segment = UNTIMED;
        self.expiry = now + self.timeout;
        self.send_now = Some(self.acked);
        self.cold.trips.fit();
        if let Some(delivery) = &mut self.cold.delivery {
            delivery.fit();
        }
    }

    /// Lowers the window for a loss that has been repaired before it was found (RFC 8985, section 7.4).
    pub(super) fn answer_repaired_loss(&mut self, now: Instant) {
        let event = self.congestion_event(now);
        self.control_mut().on_loss(&event);
        self.note_reduction();
        self.end_first_slow_start();
    }

    /// Returns what the congestion control is to know of a loss.
    pub(super) fn congestion_event(&self, now: Instant) -> CongestionEvent {
        CongestionEvent {
            now,
            window: self.congestion_window().min(f64::from(self.receiver_window)),
            smoothed_rtt: self.cold.rto.smoothed_of_data().unwrap_or(0.0),
            color: self.color_of(self.acked),
        }
    }
}

impl Recovery {
    /// Takes the segments of a partial ACK, or all inflation, out of the window.
    fn deflate(&mut self, acked: u32, deflation: PartialWindowDeflation) {
        match deflation {
            PartialWindowDeflation::ToSsthresh => self.inflation = 0,
            PartialWindowDeflation::ByAcknowledged if self.inflation > acked => self.inflation -= acked - 1,
            PartialWindowDeflation::ByAcknowledged => {
                self.window = (self.window - f64::from(acked - self.inflation)).max(1.0);
                self.inflation = 1;
            }
        }
    }
}
