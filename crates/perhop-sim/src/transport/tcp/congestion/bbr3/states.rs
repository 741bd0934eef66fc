//! Version 3's states (section 5.3 of the draft): startup, the cycle of bandwidth probes, round-trip probes.

use perhop_core::{Duration, Instant};

use super::super::{AckSample, DeliverySample};
use super::{
    Bbr3, DRAIN_ROUNDS, Feedback, MIN_RTT_LASTS, MOST_ROUNDS, PROBE_RTT_EACH, PROBE_RTT_LASTS,
    STARTUP_LOSSES, State,
};

impl Bbr3 {
    pub(super) fn update_state(&mut self, ack: &AckSample, sample: &DeliverySample, rate: f64) {
        self.check_startup(ack, sample);
        let is_drained = f64::from(ack.pipe) <= self.with_allowance(self.bdp(self.bandwidth()));
        if self.state == State::Drain && (is_drained || self.rounds.count > self.drain_began + DRAIN_ROUNDS) {
            self.start_down(ack.now);
        }
        if self.is_full && !self.adapt_long_term(ack, sample) {
            self.advance_cycle(ack, rate);
        }
        self.update_min_rtt(ack, sample);
        self.check_probe_rtt(ack);
    }

    /// Sections 5.3.1.1 and 5.3.1.3.
    fn check_startup(&mut self, ack: &AckSample, sample: &DeliverySample) {
        self.latest.losses += u32::from(ack.lost > 0);
        let is_lossy = if self.selective {
            self.latest.starts
                && self.latest.losses >= STARTUP_LOSSES
                && self.is_too_high(sample.lost as f64, f64::from(sample.in_flight))
        } else {
            ack.lost > 0
        };
        if self.latest.starts {
            self.latest.losses = 0;
        }
        if self.state == State::Startup && !self.is_full && ack.recovering && is_lossy {
            self.is_full = true;
            self.bounds.long_term = self.bdp(self.bandwidth()).max(self.latest.inflight);
        }
        if self.state == State::Startup && self.is_full {
            self.state = State::Drain;
            self.drain_began = self.rounds.count;
        }
    }

    /// Adapts the long-term bound by the probe's feedback (section 5.3.3.9). Returns whether the state has
    /// changed.
    fn adapt_long_term(&mut self, ack: &AckSample, sample: &DeliverySample) -> bool {
        let starts = self.rounds.starts;
        if self.probe.feedback == Feedback::Starting && starts {
            self.probe.feedback = Feedback::Comes;
        }
        if self.probe.feedback == Feedback::Stopping && starts {
            self.probe.is_sampled = false;
            self.probe.feedback = Feedback::None;
            if self.is_probing_bandwidth() {
                if !self.min_rtt.limited.contains(sample) {
                    self.cycle += 1;
                    self.rate.advance(self.cycle);
                }
                if self.probe.was_precautionary && !self.probe.was_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        let in_flight = f64::from(sample.in_flight);
        if !self.is_too_high(sample.lost as f64, in_flight) && self.bounds.long_term.is_finite() {
            self.bounds.long_term = self.bounds.long_term.max(in_flight);
            if self.state == State::Up {
                self.raise_long_term(ack);
            }
        }
        false
    }

    /// `IsInAProbeBWState`.
    fn is_probing_bandwidth(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    fn fills_long_term(&self) -> bool {
        self.uses_window.contains(&true) && self.output.window >= self.bounds.long_term
    }

    fn raise_long_term(&mut self, ack: &AckSample) {
        if !self.fills_long_term() {
            return;
        }
        self.probe.acked += f64::from(ack.delivered);
        if self.probe.acked >= self.probe.step {
            let steps = (self.probe.acked / self.probe.step).floor();
            self.probe.acked -= steps * self.probe.step;
            self.bounds.long_term += steps;
        }
        if self.rounds.starts {
            self.raise_slope();
        }
    }

    pub(super) fn raise_slope(&mut self) {
        self.probe.step = (self.output.window / (1_u64 << self.probe.rounds) as f64).max(1.0);
        self.probe.rounds = (self.probe.rounds + 1).min(30);
    }

    fn advance_cycle(&mut self, ack: &AckSample, rate: f64) {
        if self.state == State::Up && self.is_time_to_go_down(ack, rate) {
            self.probe.was_too_high = false;
            self.start_down(ack.now);
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now) => self.start_refill(),
            State::Down => {
                let pipe = f64::from(ack.pipe);
                if pipe <= self.with_headroom() && pipe <= self.with_allowance(self.bdp(self.rate.get())) {
                    self.state = State::Cruise;
                }
            }
            State::Refill if self.rounds.starts => {
                self.probe.is_sampled = true;
                self.start_up(rate);
            }
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        now > self.probe.began + self.probe.wait
            || self.probe.rounds_since as f64 >= self.target_inflight().min(MOST_ROUNDS)
    }

    fn is_time_to_go_down(&mut self, ack: &AckSample, rate: f64) -> bool {
        let before = f64::from(ack.pipe + ack.delivered + ack.lost);
        if self.probe.was_too_high && before >= self.bounds.long_term.floor() {
            self.probe.was_precautionary = true;
            return true;
        }
        if self.fills_long_term() {
            self.reset_full_pipe(rate);
            return false;
        }
        self.is_full_now
    }

    pub(super) fn start_down(&mut self, now: Instant) {
        self.latest.reset();
        self.probe.step = f64::INFINITY;
        self.probe.rounds_since = self.rng.up_to(1);
        self.probe.wait = Duration::from_nanos(2_000_000_000 + self.rng.up_to(1_000_000_000));
        self.probe.began = now;
        self.probe.feedback = Feedback::Stopping;
        self.rounds.restart();
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.reset_short_term();
        (self.probe.rounds, self.probe.acked) = (0, 0.0);
        self.probe.was_precautionary = false;
        self.probe.feedback = Feedback::Refilling;
        self.rounds.restart();
        self.state = State::Refill;
    }

    fn start_up(&mut self, rate: f64) {
        self.probe.feedback = Feedback::Starting;
        self.rounds.restart();
        self.reset_full_pipe(rate);
        self.state = State::Up;
        self.raise_slope();
    }

    /// Updates the least round trip (section 5.3.4.3).
    fn update_min_rtt(&mut self, ack: &AckSample, sample: &DeliverySample) {
        let least = &mut self.min_rtt;
        least.expired = ack.now > least.probed_at + PROBE_RTT_EACH;
        if let Some(rtt) = sample.rtt
            && (rtt.as_secs_f64() < least.probed || least.expired)
        {
            (least.probed, least.probed_at) = (rtt.as_secs_f64(), ack.now);
        }
        if least.probed < least.seconds || ack.now > least.at + MIN_RTT_LASTS {
            (least.seconds, least.at) = (least.probed, least.probed_at);
        }
    }

    fn check_probe_rtt(&mut self, ack: &AckSample) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.was_idle {
            self.save_window(self.output.window);
            self.state = State::ProbeRtt;
            self.min_rtt.ends = None;
            self.min_rtt.limited.begin(self.rounds.delivered);
            self.probe.feedback = Feedback::Stopping;
            self.rounds.restart();
        }
        if self.state == State::ProbeRtt {
            self.probe_rtt(ack);
        }
    }

    fn probe_rtt(&mut self, ack: &AckSample) {
        self.min_rtt.limited.extend(self.rounds.delivered, ack.pipe);
        let Some(ends) = self.min_rtt.ends else {
            if f64::from(ack.pipe) <= self.probe_rtt_window() {
                self.min_rtt.ends = Some(ack.now + PROBE_RTT_LASTS);
                self.min_rtt.passed_a_round = false;
                self.rounds.restart();
            }
            return;
        };
        self.min_rtt.passed_a_round |= self.rounds.starts;
        if self.min_rtt.passed_a_round && ack.now > ends {
            self.min_rtt.probed_at = ack.now;
            self.output.restore_window();
            self.leave_probe_rtt(ack.now);
        }
    }

    fn leave_probe_rtt(&mut self, now: Instant) {
        self.reset_short_term();
        if self.is_full {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
