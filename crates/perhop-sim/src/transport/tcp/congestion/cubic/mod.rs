//! CUBIC: RFC 9438, with C = 0.4 and beta = 0.7.
//!
//! Results must be the same on every machine, so there is no libm here: K is a cube root by Newton's method
//! in IEEE arithmetic (Linux has one in integers), in a fixed number of steps. With `reduction = "linux"` it
//! counts in whole [segments], as Linux does.
//!
//! ## Deviations
//! - The window at a loss is cwnd, not the flight size (section 4.6).
//! - An ACK of several segments follows the target as if they had been acknowledged one by one (Linux); by
//!   section 4.4, which knows no delayed ACKs, it would follow it once.
//! - Times without data (section 5.8) count as any others.
//! - Reductions that proved unnecessary are not undone (section 4.9).

mod segments;

use perhop_core::{Block, Duration, Instant, Origin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::segments::Segments;
use super::window::acts_by_its_window;
use super::{AckSample, Algorithm, CongestionControl, CongestionEvent, FormerKey, Setup, Window};
use crate::transport::tcp::variant::Variant;

/// The constant C: how steep the function is, in segments per cubic second.
const C: f64 = 0.4;
/// beta: the part of the window that a loss leaves.
const BETA: f64 = 0.7;
/// The part of the window that a mark leaves with `ecn-backoff`.
const BY_MARK: f64 = 0.85;
/// alpha: additive increase that gets as much as Reno with that decrease (section 4.3, figure 4).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// How CUBIC grows in its Reno-friendly region once it has the window that it had before the last reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CubicAlpha {
    /// As Reno, by one segment a round trip (RFC 9438, section 4.3).
    Raised,
    /// As before, by 9/17 of a segment a round trip (RFC 8312, section 4.2, and Linux).
    Constant,
}

/// Parameters of CUBIC. Beside `tcp = "linux"` they have the defaults of Linux.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CubicParams {
    /// How the window grows in the Reno-friendly region beyond the window before the last reduction:
    /// `raised`, the default, or `constant`, the default of `tcp = "linux"`.
    pub alpha: Option<CubicAlpha>,
    /// The first slow start ends as Linux's CUBIC ends it, when the round trip has grown by an eighth, or
    /// when ACKs have come in a row for half of it (`HyStart`, Ha & Rhee 2011). Default: false; with
    /// `tcp = "linux"` true, unless its `slow-start` says how the first slow start ends. Refused beside that
    /// key.
    pub hystart: Option<bool>,
    /// Where ECN is in use (the flow's key `ecn`): a marked packet leaves 85 % of the window, more than a
    /// lost one (RFC 8511, Alternative Backoff with ECN).
    #[serde(default)]
    pub ecn_backoff: bool,
}

/// The window is a cubic function of the time since the last loss. Windows in segments, times in seconds.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: Window,
    growth: Growth,
}

/// How the window grows in congestion avoidance.
#[derive(Clone, Debug)]
enum Growth {
    /// The growth of RFC 9438, in fractions of segments.
    Exact(Curve),
    /// The growth of Linux, in whole segments.
    Whole(Segments),
}

impl Growth {
    /// Returns the threshold after a loss or a mark with this window, of which the part `left` remains.
    fn decrease(&mut self, window: f64, left: f64) -> f64 {
        match self {
            Self::Exact(curve) => curve.decrease(window, left),
            Self::Whole(segments) => segments.decrease(window as u64, left) as f64,
        }
    }

    fn on_timeout(&mut self) {
        match self {
            Self::Exact(curve) => curve.on_timeout(),
            Self::Whole(segments) => segments.on_timeout(),
        }
    }

    fn epoch_mut(&mut self) -> &mut Option<Instant> {
        match self {
            Self::Exact(curve) => &mut curve.epoch,
            Self::Whole(segments) => &mut segments.epoch,
        }
    }
}

impl Block for Cubic {
    type Params = CubicParams;
    const NAME: &'static str = "cubic";
    const SUMMARY: &'static str =
        "A cubic function of the time since the last loss, which leaves 70 % of the window";
    const ORIGIN: Origin = Origin::published(2005, "RFC 9438").in_linux("cubic", "2.6.16");
}

impl Algorithm for Cubic {
    const FORMER_KEYS: &'static [FormerKey] = &[
        FormerKey::renamed("cubic-alpha", "alpha"),
        FormerKey::moved("ecn-backoff"),
        FormerKey { key: "slow-start", value: Some("hystart"), parameter: "hystart" },
    ];

    fn new(setup: &Setup, params: &CubicParams) -> Self {
        let default = if setup.tcp == Variant::Linux { CubicAlpha::Constant } else { CubicAlpha::Raised };
        let raises_alpha = params.alpha.unwrap_or(default) == CubicAlpha::Raised;
        let growth = if setup.whole_segments {
            Growth::Whole(Segments::new(raises_alpha))
        } else {
            Growth::Exact(Curve::new(if raises_alpha { 1.0 } else { ALPHA }))
        };
        Self { window: Window::by_segments(setup).with_ecn_backoff(params.ecn_backoff), growth }
    }

    fn has_hystart(params: &CubicParams, tcp: Variant) -> bool {
        params.hystart.unwrap_or(tcp == Variant::Linux)
    }

    fn key_of_marks(params: &CubicParams) -> Option<&'static str> {
        params.ecn_backoff.then_some("ecn-backoff")
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, ack: &AckSample) {
        let left = self.window.slow_start(ack.delivered);
        let window = self.window.now;
        match &mut self.growth {
            Growth::Exact(curve) if left > 0.0 => {
                self.window.now = curve.increase(window, left, ack.now, ack.smoothed_rtt);
            }
            Growth::Exact(_) => {}
            Growth::Whole(segments) => {
                segments.note_round_trip(ack.smoothed_rtt, ack.now);
                if left > 0.0 {
                    let per_segment = segments.per_segment(window as u64, left as u64, ack.now);
                    self.window.avoid_congestion(left, per_segment as f64);
                }
            }
        }
        self.window.limit();
    }

    fn on_loss(&mut self, event: &CongestionEvent) {
        self.window.reduce_to(self.growth.decrease(event.window, BETA));
    }

    fn on_congestion_experienced(&mut self, event: &CongestionEvent) {
        let left = self.window.left_by_mark(BETA, BY_MARK);
        self.window.reduce_to(self.growth.decrease(event.window, left));
    }

    fn on_timeout(&mut self, event: &CongestionEvent) {
        self.on_loss(event);
        self.growth.on_timeout();
        self.window.now = 1.0;
    }

    acts_by_its_window!();

    /// Leaves the idle time out of the epoch (RFC 9438, section 5.8, and Linux).
    fn on_idle(&mut self, idle: Duration) {
        let epoch = self.growth.epoch_mut();
        *epoch = epoch.map(|epoch| epoch + idle);
    }
}

/// The cubic function and its state.
#[derive(Clone, Debug, Default)]
struct Curve {
    /// `W_max`: the plateau. Zero before the first loss, and after a timeout.
    plateau: f64,
    /// K: when the function reaches it.
    reach: f64,
    /// The time when this congestion avoidance began.
    epoch: Option<Instant>,
    /// `W_est`: the window that Reno would have.
    reno: f64,
    /// `cwnd_prior`: the window before the last reduction.
    prior: f64,
    /// Additive increase from that window on: 1 (section 4.3), or alpha (RFC 8312, Linux).
    raised: f64,
}

impl Curve {
    fn new(raised: f64) -> Self {
        Self { raised, ..Self::default() }
    }

    /// Returns the window after `acked` segments were acknowledged at `now`, in congestion avoidance
    /// (sections 4.2 to 4.5).
    fn increase(&mut self, window: f64, acked: f64, now: Instant, rtt: f64) -> f64 {
        let epoch = self.epoch.unwrap_or_else(|| self.begin(window, now));
        let time = now.since(epoch).as_secs_f64();
        let alpha = if self.reno < self.prior { ALPHA } else { self.raised };
        self.reno += alpha * acked / window;
        if self.at(time) < self.reno {
            return self.reno.max(window);
        }
        let target = self.at(time + rtt).clamp(window, 1.5 * window);
        window + (target - window) * (acked / window).min(1.0)
    }

    /// Returns the threshold after a loss or a mark with this window, of which the part `left` remains
    /// (sections 4.6 and 4.7, fast convergence).
    fn decrease(&mut self, window: f64, left: f64) -> f64 {
        self.plateau = if window < self.plateau { window * (1.0 + BETA) / 2.0 } else { window };
        self.prior = window;
        self.epoch = None;
        window * left
    }

    /// Prepares for congestion avoidance after a timeout: the next congestion avoidance starts from its own
    /// window (section 4.8).
    fn on_timeout(&mut self) {
        self.plateau = 0.0;
    }

    fn begin(&mut self, window: f64, now: Instant) -> Instant {
        self.plateau = self.plateau.max(window);
        self.reach = cube_root((self.plateau - window) / C);
        self.reno = window;
        self.epoch = Some(now);
        now
    }

    /// `W_cubic` (figure 1).
    fn at(&self, time: f64) -> f64 {
        let away = time - self.reach;
        C * away * away * away + self.plateau
    }
}

/// The cube root of a number that is zero or far from the limits of the format, to the last digit or two.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // A third of the exponent is within 6 % of the root; each step squares the error.
    let mut root = f64::from_bits(x.to_bits() / 3 + (0x2a9f_7893 << 32));
    for _ in 0..5 {
        root -= (root - x / (root * root)) / 3.0;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, begin, loss, setup};
    use super::*;
    use proptest::prelude::*;

    /// Parameters with this increase beyond the window before the last reduction.
    pub(super) fn with_alpha(raised: bool) -> CubicParams {
        let alpha = if raised { CubicAlpha::Raised } else { CubicAlpha::Constant };
        CubicParams { alpha: Some(alpha), ..CubicParams::default() }
    }

    #[test]
    fn beside_linux_the_parameters_have_the_defaults_of_linux() {
        let alpha = |tcp, params: CubicParams| {
            let cubic = Cubic::new(&Setup { tcp, ..setup() }, &params);
            if let Growth::Exact(curve) = cubic.growth { curve.raised } else { unreachable!() }
        };
        let (default, raised) = (CubicParams::default(), with_alpha(true));
        assert_eq!((alpha(Variant::NewReno, default), alpha(Variant::Linux, default)), (1.0, ALPHA));
        assert_eq!((alpha(Variant::Linux, raised), alpha(Variant::NewReno, with_alpha(false))), (1.0, ALPHA));
        let hystart = |hystart, tcp| Cubic::has_hystart(&CubicParams { hystart, ..default }, tcp);
        assert!(!hystart(None, Variant::NewReno) && hystart(None, Variant::Linux));
        assert!(!hystart(Some(false), Variant::Linux) && hystart(Some(true), Variant::Quic));
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn curve(cubic: &mut Cubic) -> &mut Curve {
        match &mut cubic.growth {
            Growth::Exact(curve) => curve,
            Growth::Whole(_) => panic!("it counts in whole segments"),
        }
    }

    #[track_caller]
    fn assert_close(ours: f64, by_hand: f64) {
        assert!((ours - by_hand).abs() < 1e-9 * by_hand.abs().max(1.0), "{ours} is not {by_hand}");
    }

    #[test]
    fn k_and_the_window_by_hand() {
        let mut cubic = Curve::new(1.0);
        // A loss at 1000 segments leaves 700, and K = cbrt(300 / 0.4) = cbrt(750) s.
        assert_close(cubic.decrease(1000.0, BETA), 700.0);
        // At first Reno's estimate is ahead, by 9/17 of a segment a window.
        let first = 700.0 + 9.0 / 17.0 / 700.0;
        assert_close(cubic.increase(700.0, 1.0, at(5000), 0.1), first);
        let k = 9.085_602_964_160_698;
        assert_close(cubic.reach, k);
        // After 0.1 s the target is W(0.2 s) = 0.4 (0.2 - K)^3 + 1000 = 719.4, of which one acknowledgement
        // gives 1/700.
        let target = 0.4 * (0.2 - k) * (0.2 - k) * (0.2 - k) + 1000.0;
        assert!((target - 719.4).abs() < 0.1);
        assert_close(cubic.increase(first, 1.0, at(5100), 0.1), first + (target - first) / first);
        // Back at the plateau after K, and convex beyond: 0.4 x 1 s^3 more.
        assert_close(cubic.at(k), 1000.0);
        assert_close(cubic.at(k + 1.0), 1000.4);
        assert_close(cubic.at(k - 2.0), 1000.0 - 3.2);
    }

    #[test]
    fn it_grows_by_segments_and_a_loss_leaves_70_percent() {
        let mut cubic = begin::<Cubic>(&Setup { window: 98.0, threshold: 100.0, ..setup() });
        // Two of three segments take slow start to its threshold; the third adds what Reno's estimate does at
        // first.
        cubic.on_ack(&ack(3));
        assert_close(cubic.window(), 100.0 + 1.0 / 100.0);
        cubic.on_loss(&loss(100.0));
        assert_eq!((cubic.window(), cubic.window.threshold), (70.0, 70.0));
        cubic.on_timeout(&loss(70.0));
        assert_eq!((cubic.window(), cubic.window.threshold), (1.0, 49.0));
        assert_eq!(curve(&mut cubic).plateau, 0.0);
    }

    #[test]
    fn a_mark_leaves_85_percent_with_rfc_8511() {
        for (ecn_backoff, left) in [(false, 28.0), (true, 34.0)] {
            let mut cubic = Cubic::new(
                &Setup { window: 40.0, ..setup() },
                &CubicParams { ecn_backoff, ..CubicParams::default() },
            );
            cubic.on_congestion_experienced(&loss(40.0));
            assert_close(cubic.window(), left);
        }
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut cubic = begin::<Cubic>(&Setup { window: 10.0, threshold: 10.0, ..setup() });
        cubic.on_idle(Duration::from_secs(5));
        assert_eq!(curve(&mut cubic).epoch, None, "congestion avoidance has not begun");
        curve(&mut cubic).begin(10.0, at(1000));
        cubic.on_idle(Duration::from_secs(5));
        assert_eq!(curve(&mut cubic).epoch, Some(at(6000)));
    }

    #[test]
    fn fast_convergence_and_the_limit_of_growth() {
        let mut cubic = Curve::new(1.0);
        cubic.decrease(1000.0, BETA);
        // A second loss below the plateau: W_max = 800 x 1.7 / 2 = 680.
        assert_close(cubic.decrease(800.0, BETA), 560.0);
        assert_close(cubic.plateau, 680.0);
        // A loss above it: W_max is the window.
        cubic.decrease(900.0, BETA);
        assert_close(cubic.plateau, 900.0);
        // Long after, the target is 1.5 windows: of 100 segments acknowledged in a window of 900, 450/9 more.
        cubic.increase(630.0, 1.0, at(0), 0.1);
        assert_close(cubic.increase(900.0, 100.0, at(100_000), 0.1), 950.0);
    }

    #[test]
    fn small_windows_grow_like_renos() {
        // 10 segments, 7 after the loss: K = cbrt(3/0.4) = 1.957 s. Reno's estimate gains 9/17 a window, and
        // a whole segment once it is at 10.
        let mut cubic = Curve::new(1.0);
        assert_close(cubic.decrease(10.0, BETA), 7.0);
        assert_close(cubic.increase(7.0, 7.0, at(0), 0.01), 7.0 + 9.0 / 17.0);
        assert_close(cubic.increase(7.0 + 9.0 / 17.0, 0.0, at(10), 0.01), 7.0 + 9.0 / 17.0);
        cubic.reno = 10.0;
        assert_close(cubic.increase(10.0, 5.0, at(20), 0.01), 10.5);
    }

    #[test]
    fn with_a_constant_alpha_they_go_on_as_before() {
        let grown = [true, false].map(|raises_alpha| {
            let mut cubic =
                Cubic::new(&Setup { window: 10.0, threshold: 10.0, ..setup() }, &with_alpha(raises_alpha));
            cubic.on_loss(&loss(10.0));
            curve(&mut cubic).begin(7.0, Instant::ZERO);
            (cubic.window.now, curve(&mut cubic).reno) = (10.0, 10.0);
            cubic.on_ack(&ack(5));
            cubic.window()
        });
        assert_close(grown[0], 10.5);
        assert_close(grown[1], 10.0 + 9.0 / 34.0);
    }

    #[test]
    fn after_a_timeout_the_plateau_is_where_congestion_avoidance_begins() {
        let mut cubic = Curve::new(1.0);
        let threshold = cubic.decrease(100.0, BETA);
        cubic.on_timeout();
        cubic.increase(threshold, 1.0, at(0), 0.1);
        assert_eq!((cubic.plateau, cubic.reach), (threshold, 0.0));
        assert_close(cubic.at(1.0), threshold + 0.4);
    }

    #[test]
    fn cube_roots_of_cubes() {
        assert_eq!(cube_root(0.0), 0.0);
        assert_eq!([1.0, 8.0, 27.0, 1e6].map(cube_root), [1.0, 2.0, 3.0, 100.0]);
    }

    proptest! {
        #[test]
        fn a_cube_root_cubed_is_the_number(x in 1e-9_f64..1e9) {
            let root = cube_root(x);
            prop_assert!((root * root * root / x - 1.0).abs() < 1e-14);
        }

        #[test]
        fn the_window_never_falls_and_grows_by_half_at_most(
            steps in prop::collection::vec((0_u64..400, 1_u32..20, any::<bool>()), 1..60),
        ) {
            let (mut cubic, mut window, mut now) = (Curve::new(1.0), 20.0, 0);
            for (millis, acked, loses) in steps {
                now += millis;
                if loses {
                    window = cubic.decrease(window, BETA).max(2.0);
                } else {
                    let grown = cubic.increase(window, f64::from(acked), at(now), 0.1);
                    let most = window * 1.5 + f64::from(acked) / window;
                    prop_assert!(grown >= window && grown <= most.max(cubic.reno), "{window} {grown}");
                    window = grown;
                }
            }
        }
    }
}
