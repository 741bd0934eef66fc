//! BBR, version 3: draft-ietf-ccwg-bbr-06 of 6 July 2026. Names in capitals and dots are the draft's.

mod model;
mod states;

use perhop_core::{Bitrate, Block, Duration, Instant, Origin, Rng};

use super::path_model::{Aggregation, FullPipe, Limited, Output, RecentMax, Rounds, rate_of};
use super::{AckSample, Algorithm, CongestionControl, CongestionEvent, LostSegment, Needs, NoParams, Setup};
use model::inflight_at_loss;

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
/// `LossThresh`: more lost in a round trip is too much. `Beta`: what that leaves at least. `Headroom`: what
/// is left to others.
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

/// Sends at the rate that the path delivers, probes for more by turns, and backs off where more than 2 % are
/// lost.
///
/// ## Deviations
/// - Segments leave one by one, so there is no allowance for offloads (section 5.5.8).
/// - After an idle time it goes on at the rate of its phase, not at the estimated one (section 5.4.1).
/// - Recoveries that proved unnecessary are not undone (section 5.5.11).
/// - The draft leaves the response to marks (ECN) open beyond "MUST treat any CE marks as congestion"
///   (section 3.7): here they count as losses above the threshold.
/// - What is in flight when a cautious probe ends (`IsTimeToGoDown`) is counted before the ACK at hand: after
///   it, it is always below the window.
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

/// The meaning of an ACK for the bandwidth probe (`ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Feedback {
    #[default]
    None,
    Refilling,
    Starting,
    Comes,
    Stopping,
}

/// The least round trip, and the times of its probes.
#[derive(Clone, Debug, Default)]
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

/// The limits of the model: `bw_shortterm`, `inflight_shortterm`, `inflight_longterm`.
#[derive(Clone, Debug)]
struct Bounds {
    rate: f64,
    inflight: f64,
    long_term: f64,
}

/// Delivery and loss in this round (`bw_latest`, `inflight_latest`, `is_loss_in_round` and
/// `loss_round_delivered`).
#[derive(Clone, Debug, Default)]
struct Latest {
    rate: f64,
    inflight: f64,
    has_loss: bool,
    starts: bool,
    ends: u64,
    losses: u32,
    /// The number of segments that were in flight when the newest delivered one was sent.
    in_flight: f64,
}

/// The probe of the bandwidth.
#[derive(Clone, Debug, Default)]
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

impl Block for Bbr3 {
    type Params = NoParams;
    const NAME: &'static str = "bbr3";
    const SUMMARY: &'static str =
        "Version 3: paced at the rate that the path delivers, probes by turns, backs off above 2 % of loss";
    const ORIGIN: Origin = Origin::published(2023, "draft-ietf-ccwg-bbr-06");
}

impl Algorithm for Bbr3 {
    const SLOW_START: bool = false;
    const NEEDS: Needs = Needs { delivery: true, pacing: true, recovery: true, ..Needs::NOTHING };

    fn new(setup: &Setup, _: &NoParams) -> Self {
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
            aggregation: Aggregation::default(),
            min_rtt: MinRtt { seconds: f64::INFINITY, probed: f64::INFINITY, ..MinRtt::default() },
            bounds: Bounds { rate: f64::INFINITY, inflight: f64::INFINITY, long_term: f64::INFINITY },
            latest: Latest::default(),
            probe: Probe { step: f64::INFINITY, ..Probe::default() },
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

#[cfg(test)]
mod tests;
