//! LEDBAT, Low Extra Delay Background Transport: RFC 6817, section 2.

use perhop_core::units::{UnitError, require};
use perhop_core::{Block, Duration, Instant, Origin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AckSample, Algorithm, CongestionControl, CongestionEvent, FormerKey, Needs, Setup};

/// GAIN, `ALLOWED_INCREASE` and `MIN_CWND` (section 2.5).
const GAIN: f64 = 1.0;
const ALLOWED_INCREASE: f64 = 1.0;
const MIN_WINDOW: f64 = 2.0;
/// The part of the window that a loss leaves.
const BY_LOSS: f64 = 0.5;
/// `BASE_HISTORY` and `CURRENT_FILTER`.
const MINUTES: usize = 10;
const SAMPLES: usize = 4;

/// The least target that can be measured, and the most that RFC 6817 allows.
const LEAST_TARGET: Duration = Duration::from_millis(1);
const MOST_TARGET: Duration = Duration::from_millis(100);

/// Parameters of LEDBAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LedbatParams {
    /// The queueing delay at which the control aims (TARGET), from 1ms to 100ms (RFC 6817, section 2.5).
    pub target_delay: Duration,
}

impl Default for LedbatParams {
    fn default() -> Self {
        Self { target_delay: MOST_TARGET }
    }
}

/// Yields to other flows as soon as they make the queue longer than a target.
///
/// ## Deviations
/// - Delays are those of round trips, as in LEDBAT++, not of one way: TCP's ACKs carry no times here. A queue
///   of ACKs counts as well; without one there is no difference.
/// - A loss is answered once in a recovery, not once in a round trip.
#[derive(Clone, Debug)]
pub struct Ledbat {
    window: f64,
    most: f64,
    /// TARGET, in seconds.
    target: f64,
    /// The least delay of each of the last minutes, at its number mod [`MINUTES`].
    base: [f64; MINUTES],
    minute: u64,
    /// The last delays, and the place of the next.
    recent: [f64; SAMPLES],
    next: usize,
}

impl Block for Ledbat {
    type Params = LedbatParams;
    const NAME: &'static str = "ledbat";
    const SUMMARY: &'static str =
        "The window follows the queueing delay towards a target, as background traffic that yields";
    const ORIGIN: Origin = Origin::published(2009, "RFC 6817");

    fn check(params: &LedbatParams) -> Result<(), UnitError> {
        let is_allowed = (LEAST_TARGET..=MOST_TARGET).contains(&params.target_delay);
        require(is_allowed, "target-delay", "a target is 1ms to 100ms (RFC 6817, section 2.5)")
    }
}

impl Algorithm for Ledbat {
    const SLOW_START: bool = false;
    const NEEDS: Needs = Needs { delivery: true, ..Needs::NOTHING };
    const FORMER_KEYS: &'static [FormerKey] = &[FormerKey::moved("target-delay")];

    fn new(setup: &Setup, params: &LedbatParams) -> Self {
        Self {
            window: setup.window,
            most: f64::from(setup.most),
            target: params.target_delay.as_secs_f64(),
            base: [f64::INFINITY; MINUTES],
            minute: 0,
            recent: [f64::INFINITY; SAMPLES],
            next: 0,
        }
    }
}

impl CongestionControl for Ledbat {
    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.delivery.and_then(|sample| sample.rtt) {
            self.note_delay(rtt.as_secs_f64(), ack.now);
        }
        let (delay, base) = (least(&self.recent), least(&self.base));
        if base.is_finite() {
            self.follow(delay - base, f64::from(ack.delivered), f64::from(ack.in_flight + ack.delivered));
        }
    }

    fn on_loss(&mut self, event: &CongestionEvent) {
        self.window = (event.window * BY_LOSS).max(MIN_WINDOW);
    }

    fn on_timeout(&mut self, _: &CongestionEvent) {
        self.window = 1.0;
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn set_window(&mut self, window: f64) {
        self.window = window;
    }
}

impl Ledbat {
    /// Section 2.4.2, where `flight` segments were outstanding before the ACK.
    fn follow(&mut self, queueing: f64, acked: f64, flight: f64) {
        let off_target = (self.target - queueing) / self.target;
        let window = self.window + GAIN * off_target * acked / self.window;
        self.window = window.min(flight + ALLOWED_INCREASE).max(MIN_WINDOW).min(self.most);
    }

    fn note_delay(&mut self, delay: f64, now: Instant) {
        self.recent[self.next] = delay;
        self.next = (self.next + 1) % SAMPLES;
        let minute = now.as_nanos() / Duration::from_secs(60).as_nanos();
        let first = (self.minute + 1).max((minute + 1).saturating_sub(MINUTES as u64));
        for passed in first..=minute {
            self.base[passed as usize % MINUTES] = f64::INFINITY;
        }
        self.minute = minute;
        let base = &mut self.base[minute as usize % MINUTES];
        *base = base.min(delay);
    }
}

fn least(delays: &[f64]) -> f64 {
    delays.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{begin, loss, setup};
    use super::*;

    fn ledbat(window: f64) -> Ledbat {
        begin(&Setup { window, ..setup() })
    }

    #[test]
    fn the_window_follows_the_queueing_delay() {
        for (window, delay, base, flight, left) in [
            (20.0, 30.0, 20.0, 20.0, 20.09),
            (20.0, 120.0, 20.0, 20.0, 20.0),
            (20.0, 170.0, 20.0, 20.0, 19.95),
            (20.0, 20.0, 20.0, 15.0, 16.0),
            (2.0, 400.0, 20.0, 2.0, 2.0),
        ] {
            let mut ledbat = ledbat(window);
            ledbat.follow((delay - base) / 1000.0, 2.0, flight);
            assert!((ledbat.window() - left).abs() < 1e-12 * left, "{} {left}", ledbat.window());
        }
    }

    #[test]
    fn the_base_is_the_least_of_ten_minutes_and_the_delay_the_least_of_four_samples() {
        let mut ledbat = ledbat(20.0);
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        ledbat.note_delay(0.02, at(1));
        for delay in [0.05, 0.06, 0.07, 0.08] {
            ledbat.note_delay(delay, at(61));
        }
        assert_eq!((least(&ledbat.base), least(&ledbat.recent)), (0.02, 0.05));
        ledbat.note_delay(0.09, at(599));
        assert_eq!((least(&ledbat.base), least(&ledbat.recent)), (0.02, 0.06));
        ledbat.note_delay(0.09, at(600));
        assert_eq!(least(&ledbat.base), 0.05, "the first minute is forgotten");
        ledbat.note_delay(0.09, at(6000));
        assert_eq!(least(&ledbat.base), 0.09);
    }

    #[test]
    fn a_loss_leaves_half_and_a_timeout_one_segment() {
        let mut ledbat = ledbat(20.0);
        ledbat.on_loss(&loss(20.0));
        assert_eq!(ledbat.window(), 10.0);
        ledbat.on_loss(&loss(3.0));
        assert_eq!(ledbat.window(), 2.0);
        ledbat.on_timeout(&loss(20.0));
        assert_eq!(ledbat.window(), 1.0);
    }
}
