//! BBR, version 3: draft-ietf-ccwg-bbr-06 of 6 July 2026. Names in capitals and dots are the draft's.

use perhop_core::{Bitrate, Duration, Instant, Origin, Rng};

use super::path_model::{Aggregation, FullPipe, Limited, Output, RecentMax, Rounds, floor, rate_of};
use super::{
    AckSample, Algorithm, CongestionControl, CongestionEvent, DeliverySample, LostSegment, Needs, Setup,
};

/// Section 2.8 and 5.6.1: gains of the pacing rate and the window by state.
const STARTUP_GAIN: f64 = 2.77;
const DRAIN_GAIN: f64 = 0.5;
const UP_GAIN: f64 = 1.25;
const DOWN_GAIN: f64 = 0.9;
const WINDOW_GAIN: f64 = 2.0;
const UP_WINDOW_GAIN: f64 = 2.25;
const PROBE_RTT_WINDOW_GAIN: f64 = 0.5;
/// `MinPipeCwnd`.
const MIN_WINDOW: f64 = 4.0;
/// `LossThresh`: more lost in a round trip is too much. `Beta`: what that leaves at least. `Headroom`: what is left to others.
const LOSS_THRESHOLD: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
/// Startup ends with this many losses apart in a round (`StartupFullLossCnt`); Drain after this many rounds.
const STARTUP_LOSSES: u32 = 6;
const DRAIN_ROUNDS: u64 = 3;
/// `MinRTTFilterLen`, `ProbeRTTInterval`, `ProbeRTTDuration`.
const MIN_RTT_LASTS: Duration = Duration::from_secs(10);
const PROBE_RTT_EACH: Duration = Duration::from_secs(5);
const PROBE_RTT_LASTS: Duration = Duration::from_millis(200);
/// `T_reno`: the most rounds between two probes of the bandwidth (section 5.3.3.8.2).
const MOST_ROUNDS: f64 = 63.0;
/// 1 - `PacingMarginPercent`.
const PACING: f64 = 0.99;

/// Sends at the rate that the path delivers, probes for more by turns, and backs off where more than 2 % are lost.
///
/// ## Deviations
/// - Segments leave one by one, so there is no allowance for offloads (section 5.5.8).
/// - After an idle time it goes on at the rate of its phase, not at the estimated one (section 5.4.1).
/// - Recoveries that proved unnecessary are not undone (section 5.5.11).
/// - The draft leaves the response to marks (ECN) open beyond "MUST treat any CE marks as congestion" (section 3.7): here they
///   count as losses above the threshold.
/// - What is in flight when a cautious probe ends (`IsTimeToGoDown`) is counted before the ACK at hand: after it, it is always
///   below the window.
/// - Losses apart are counted by ACKs that report some, as Linux does.
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
#[derive(Clone, Debug)]
pub struct Bbr3 {
    output: Output,
    /// `C.has_selective_acks`.
    selective: bool,
    state: State,
    rounds: Rounds,
    pipe: FullPipe,
    /// `full_bw_now`, `full_bw_reached`.
    is_full_now: bool,
    is_full: bool,
    /// `max_bw`, over two cycles.
    rate: RecentMax<2>,
    cycle: u64,
    aggregation: Aggregation,
    min_rtt: MinRtt,
    bounds: Bounds,
    latest: Latest,
    probe: Probe,
    /// The round in which Drain began.
    drain_began: u64,
    /// The window was used up in this round, and in the last one (`C.is_cwnd_limited`).
    uses_window: [bool; 2],
    recovering: bool,
    /// `BBR.idle_restart`.
    was_idle: bool,
    rng: Rng,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// What an ACK tells of the bandwidth probe (`ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feedback {
    None,
    Refilling,
    Starting,
    Comes,
    Stopping,
}

/// The least round trip, and when to look for it.
#[derive(Clone, Debug)]
struct MinRtt {
    seconds: f64,
    at: Instant,
    /// `probe_rtt_min_delay` and its stamp.
    probed: f64,
    probed_at: Instant,
    expired: bool,
    /// `probe_rtt_done_stamp`, `probe_rtt_round_done`.
    ends: Option<Instant>,
    passed_a_round: bool,
    limited: Limited,
}

/// What limits the model: `bw_shortterm`, `inflight_shortterm`, `inflight_longterm`.
#[derive(Clone, Debug)]
struct Bounds {
    rate: f64,
    inflight: f64,
    long_term: f64,
}

/// Delivery and loss in this round (`bw_latest`, `inflight_latest`, `is_loss_in_round` and `loss_round_delivered`).
#[derive(Clone, Debug, Default)]
struct Latest {
    rate: f64,
    inflight: f64,
    has_loss: bool,
    starts: bool,
    ends: u64,
    losses: u32,
    /// How many segments were in flight when the newest delivered one was sent.
    in_flight: f64,
}

/// The probe of the bandwidth.
#[derive(Clone, Debug)]
struct Probe {
    feedback: Feedback,
    /// `is_bw_probe_sample`: losses are of the probe, and none has been answered.
    is_sampled: bool,
    /// `prev_probe_too_high`, `prev_probe_precautionary`.
    was_too_high: bool,
    was_precautionary: bool,
    /// `bw_probe_up_rounds`, `bw_probe_up_acked`, `probe_up_acked_per_inc`.
    rounds: u32,
    acked: f64,
    step: f64,
    /// `rounds_since_probe_up`, `cycle_stamp`, `bw_probe_wait`.
    rounds_since: u64,
    began: Instant,
    wait: Duration,
}

impl Algorithm for Bbr3 {
    const NAME: &'static str = "bbr3";
    const SUMMARY: &'static str =
        "Version 3: paced at the rate that the path delivers, probes by turns, backs off above 2 % of loss";
    const ORIGIN: Origin = Origin::published(2023, "draft-ietf-ccwg-bbr-06");
    const SLOW_START: bool = false;
    const NEEDS: Needs = Needs { delivery: true, pacing: true, recovery: true, ..Needs::NOTHING };

    fn new(setup: &Setup) -> Self {
        let mut bbr = Self {
            output: Output::new(setup),
            selective: setup.selective_acks,
            state: State::Startup,
            rounds: Rounds::default(),
            pipe: FullPipe::default(),
            is_full_now: false,
            is_full: false,
            rate: RecentMax::default(),
            cycle: 0,
            aggregation: Aggregation::new(),
            min_rtt: MinRtt {
                seconds: f64::INFINITY,
                at: Instant::ZERO,
                probed: f64::INFINITY,
                probed_at: Instant::ZERO,
                expired: false,
                ends: None,
                passed_a_round: false,
                limited: Limited::none(),
            },
            bounds: Bounds { rate: f64::INFINITY, inflight: f64::INFINITY, long_term: f64::INFINITY },
            latest: Latest::default(),
            probe: Probe {
                feedback: Feedback::None,
                is_sampled: false,
                was_too_high: false,
                was_precautionary: false,
                rounds: 0,
                acked: 0.0,
                step: f64::INFINITY,
                rounds_since: 0,
                began: Instant::ZERO,
                wait: Duration::ZERO,
            },
            drain_began: 0,
            uses_window: [false; 2],
            recovering: false,
            was_idle: false,
            rng: Rng::stream(setup.seed, "bbr3"),
        };
        bbr.reset_short_term();
        bbr
    }
}

impl CongestionControl for Bbr3 {
    /// Section 5.2.3.
    fn on_ack(&mut self, ack: &AckSample) {
        if self.recovering && !ack.recovering {
            self.recovering = false;
            self.output.restore_window();
        }
        let Some(sample) = &ack.delivery else { return };
        let rate = rate_of(sample, self.min_rtt.seconds).unwrap_or(0.0);
        self.update_model(ack, sample, rate);
        self.update_state(ack, sample, rate);
        self.was_idle &= ack.delivered == 0;
        if self.latest.starts {
            (self.latest.rate, self.latest.inflight) = (rate, sample.delivered as f64);
        }
        self.set_pacing(ack);
        self.set_window_by_model(ack);
    }

    /// The first ACK after it does not begin `ProbeRTT` (section 5.3.4.3).
    fn on_idle(&mut self, _: Duration) {
        self.was_idle = true;
    }

    fn on_lost(&mut self, lost: &LostSegment) {
        self.note_loss();
        let (count, in_flight) = (f64::from(lost.lost), f64::from(lost.in_flight));
        if self.probe.is_sampled && self.is_too_high(count, in_flight) {
            self.back_off(inflight_at_loss(count, in_flight), lost.now);
        }
    }

    fn on_loss(&mut self, event: &CongestionEvent) {
        self.save_window(event.window);
        self.recovering = true;
    }

    fn on_congestion_experienced(&mut self, event: &CongestionEvent) {
        self.note_loss();
        if self.probe.is_sampled {
            self.back_off(self.latest.in_flight, event.now);
        }
    }

    /// Section 5.6.4.4: all segments are lost, so one is in flight next.
    fn on_timeout(&mut self, event: &CongestionEvent) {
        self.save_window(event.window);
        self.recovering = true;
        self.output.window = 1.0;
    }

    fn window(&self) -> f64 {
        self.output.window
    }

    fn set_window(&mut self, window: f64) {
        self.output.set_window(window);
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.output.pacing_rate()
    }
}

/// Section 5.5: the model of the path.
impl Bbr3 {
    fn update_model(&mut self, ack: &AckSample, sample: &DeliverySample, rate: f64) {
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
    fn adapt_short_term(&mut self) {
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

    fn reset_short_term(&mut self) {
        (self.bounds.rate, self.bounds.inflight) = (f64::INFINITY, f64::INFINITY);
    }

    fn note_loss(&mut self) {
        if !self.latest.has_loss {
            self.latest.ends = self.rounds.delivered;
        }
        self.latest.has_loss = true;
    }

    /// Section 5.5.10.2.
    fn is_too_high(&self, lost: f64, in_flight: f64) -> bool {
        lost > in_flight * LOSS_THRESHOLD || (lost > 0.0 && !self.selective)
    }

    fn back_off(&mut self, in_flight: f64, now: Instant) {
        self.probe.was_too_high = true;
        self.probe.is_sampled = false;
        self.bounds.long_term = in_flight.max(self.target_inflight() * BETA);
        if self.state == State::Up {
            self.start_down(now);
        }
    }

    fn reset_full_pipe(&mut self, rate: f64) {
        self.pipe = FullPipe { rate, stalled: 0 };
        self.is_full_now = false;
    }

    /// `BBR.bw`.
    fn bandwidth(&self) -> f64 {
        self.rate.get().min(self.bounds.rate)
    }

    fn bdp(&self, rate: f64) -> f64 {
        if self.min_rtt.seconds.is_finite() { rate * self.min_rtt.seconds } else { self.output.initial }
    }

    fn target_inflight(&self) -> f64 {
        self.bdp(self.bandwidth()).min(self.output.window)
    }

    /// `QuantizationBudget`.
    fn with_allowance(&self, inflight: f64) -> f64 {
        inflight.max(MIN_WINDOW) + if self.state == State::Up { 2.0 } else { 0.0 }
    }

    fn with_headroom(&self) -> f64 {
        let long_term = self.bounds.long_term;
        if long_term.is_finite() {
            (long_term - (HEADROOM * long_term).max(1.0)).max(MIN_WINDOW)
        } else {
            long_term
        }
    }
}

/// Section 5.3: the states.
impl Bbr3 {
    fn update_state(&mut self, ack: &AckSample, sample: &DeliverySample, rate: f64) {
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

    /// Section 5.3.3.9: what the probe's feedback says of the long-term bound. Says whether it has changed the state.
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

    fn raise_slope(&mut self) {
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

    fn start_down(&mut self, now: Instant) {
        self.latest.reset();
        self.probe.step = f64::INFINITY;
        self.probe.rounds_since = self.rng.up_to(1);
        self.probe.wait = Duration::from_nanos(2_000_000_000 + self.rng.up_to(1_000_000_000));
        self.probe.began = now;
        self.probe.feedback = Feedback::Stopping;
        self.rounds.restart();
        self.state = State::Down;
    }

    fn start_refill(&mut self) {
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

    /// Section 5.3.4.3.
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

/// Section 5.6: what the model means for the sender.
impl Bbr3 {
    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (STARTUP_GAIN, WINDOW_GAIN),
            State::Drain => (DRAIN_GAIN, WINDOW_GAIN),
            State::Down => (DOWN_GAIN, WINDOW_GAIN),
            State::Cruise | State::Refill => (1.0, WINDOW_GAIN),
            State::Up => (UP_GAIN, UP_WINDOW_GAIN),
            State::ProbeRtt => (1.0, PROBE_RTT_WINDOW_GAIN),
        }
    }

    fn set_pacing(&mut self, ack: &AckSample) {
        let rate = self.bandwidth() * self.gains().0 * PACING;
        let initial = self.output.initial;
        let first = || (ack.smoothed_rtt > 0.0).then(|| STARTUP_GAIN * initial / ack.smoothed_rtt);
        self.output.pace(rate, first, self.is_full);
    }

    fn set_window_by_model(&mut self, ack: &AckSample) {
        let acked = f64::from(ack.delivered);
        let most =
            self.with_allowance(self.gains().1 * self.bdp(self.bandwidth()) + self.aggregation.extra());
        if self.is_full {
            self.output.window = (self.output.window + acked).min(most);
        } else if self.output.window < most || (self.rounds.delivered as f64) < self.output.initial {
            self.output.window += acked;
        }
        self.output.window = self.output.window.max(MIN_WINDOW);
        if self.state == State::ProbeRtt {
            self.output.window = self.output.window.min(self.probe_rtt_window());
        }
        self.output.window = self.output.window.min(self.volume_cap());
        self.output.limit_window();
    }

    fn probe_rtt_window(&self) -> f64 {
        (PROBE_RTT_WINDOW_GAIN * self.bdp(self.bandwidth())).max(MIN_WINDOW)
    }

    /// `BoundCwndForModel`.
    fn volume_cap(&self) -> f64 {
        let long_term = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.bounds.long_term,
            State::Cruise | State::ProbeRtt => self.with_headroom(),
        };
        long_term.min(self.bounds.inflight).max(MIN_WINDOW)
    }

    fn save_window(&mut self, window: f64) {
        self.output.save_window(window, self.recovering || self.state == State::ProbeRtt);
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
    fn reset(&mut self) {
        (self.rate, self.inflight, self.has_loss) = (0.0, 0.0, false);
    }
}

/// How much was in flight when losses passed the threshold (section 5.5.10.2).
fn inflight_at_loss(lost: f64, in_flight: f64) -> f64 {
    let (before, lost_before) = (in_flight - 1.0, lost - 1.0);
    before + (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD)
}

#[cfg(test)]
mod tests;
