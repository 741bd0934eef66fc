//! Version 3's model of the path (section 5.5 of the draft): bandwidth, round trip, what losses say of them.

use perhop_core::Instant;

use super::super::path_model::{FullPipe, floor};
use super::super::{AckSample, DeliverySample};
use super::{BETA, Bbr3, HEADROOM, LOSS_THRESHOLD, Latest, MIN_WINDOW, State};

impl Bbr3 {
    pub(super) fn update_model(&mut self, ack: &AckSample, sample: &DeliverySample, rate: f64) {
        self.rounds.take(Some(sample));
        self.probe.rounds_since += u64::from(self.rounds.starts);
        self.note_use(ack);
        self.latest.take(sample, rate, self.rounds.delivered);
        if rate > 0.0 && (rate >= self.rate.get() || !self.min_rtt.limited.contains(sample)) {
            self.rate.take(self.cycle, rate);
        }
        if self.latest.starts {
            self.adapt_short_term();
        }
        if self.rounds.starts && !self.is_full {
            self.aggregation.forget();
        }
        self.aggregation.take(ack, self.bandwidth(), self.output.window, self.rounds.count);
        if self.rounds.starts && !self.is_full_now && !self.min_rtt.limited.contains(sample) {
            self.is_full_now = self.pipe.is_full_at(rate);
            self.is_full |= self.is_full_now;
        }
    }

    fn note_use(&mut self, ack: &AckSample) {
        if self.rounds.starts {
            self.uses_window = [false, self.uses_window[0]];
        }
        self.uses_window[0] |= f64::from(ack.pipe + ack.delivered + ack.lost) >= floor(self.output.window);
    }

    /// Section 5.5.10.3: once a round with losses, unless the flow is probing.
    pub(super) fn adapt_short_term(&mut self) {
        let has_loss = std::mem::take(&mut self.latest.has_loss);
        if !has_loss || matches!(self.state, State::Startup | State::Refill | State::Up) {
            return;
        }
        let rate = if self.bounds.rate.is_finite() { self.bounds.rate } else { self.rate.get() };
        let inflight =
            if self.bounds.inflight.is_finite() { self.bounds.inflight } else { self.output.window };
        self.bounds.rate = self.latest.rate.max(BETA * rate);
        self.bounds.inflight = self.latest.inflight.max(BETA * inflight);
    }

    pub(super) fn reset_short_term(&mut self) {
        (self.bounds.rate, self.bounds.inflight) = (f64::INFINITY, f64::INFINITY);
    }

    pub(super) fn note_loss(&mut self) {
        if !self.latest.has_loss {
            self.latest.ends = self.rounds.delivered;
        }
        self.latest.has_loss = true;
    }

    /// Section 5.5.10.2.
    pub(super) fn is_too_high(&self, lost: f64, in_flight: f64) -> bool {
        lost > in_flight * LOSS_THRESHOLD || (lost > 0.0 && !self.selective)
    }

    pub(super) fn back_off(&mut self, in_flight: f64, now: Instant) {
        self.probe.was_too_high = true;
        self.probe.is_sampled = false;
        self.bounds.long_term = in_flight.max(self.target_inflight() * BETA);
        if self.state == State::Up {
            self.start_down(now);
        }
    }

    pub(super) fn reset_full_pipe(&mut self, rate: f64) {
        self.pipe = FullPipe { rate, stalled: 0 };
        self.is_full_now = false;
    }

    /// `BBR.bw`.
    pub(super) fn bandwidth(&self) -> f64 {
        self.rate.get().min(self.bounds.rate)
    }

    pub(super) fn bdp(&self, rate: f64) -> f64 {
        if self.min_rtt.seconds.is_finite() { rate * self.min_rtt.seconds } else { self.output.initial }
    }

    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp(self.bandwidth()).min(self.output.window)
    }

    /// `QuantizationBudget`.
    pub(super) fn with_allowance(&self, inflight: f64) -> f64 {
        inflight.max(MIN_WINDOW) + if self.state == State::Up { 2.0 } else { 0.0 }
    }

    pub(super) fn with_headroom(&self) -> f64 {
        let long_term = self.bounds.long_term;
        if long_term.is_finite() {
            (long_term - (HEADROOM * long_term).max(1.0)).max(MIN_WINDOW)
        } else {
            long_term
        }
    }
}

impl Latest {
    fn take(&mut self, sample: &DeliverySample, rate: f64, delivered: u64) {
        self.rate = self.rate.max(rate);
        self.inflight = self.inflight.max(sample.delivered as f64);
        self.in_flight = f64::from(sample.in_flight);
        self.starts = sample.prior >= self.ends;
        if self.starts {
            self.ends = delivered;
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        (self.rate, self.inflight, self.has_loss) = (0.0, 0.0, false);
    }
}

/// Returns how much was in flight when losses passed the threshold (section 5.5.10.2).
pub(super) fn inflight_at_loss(lost: f64, in_flight: f64) -> f64 {
    let (before, lost_before) = (in_flight - 1.0, lost - 1.0);
    before + (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD)
}
