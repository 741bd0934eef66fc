//! Time sliding window: Clark & Fang 1998, section IV; two colors as in ns-2's TSW2CM and RFC 2859.
//!
//! Yeom & Reddy's "sliding window leaky bucket" is cited to Clark & Fang's preprint and is read as this
//! estimator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Meter, MeterBlock, Out, meter_params};
use crate::units::defaults::secs;
use crate::units::{UnitError, require};
use crate::{Bitrate, Block, Color, Context, Duration, Environment, Header, Instant, Origin};

/// A flow's rate, smoothed over a window: R <- (R W + bits) / (gap + W) on each packet.
#[derive(Clone, Debug)]
pub struct RateEstimator {
    window: f64,
    rate: f64,
    last: Instant,
}

impl RateEstimator {
    /// Returns an estimator that believes in `initial` bit/s at time zero.
    pub fn new(window: Duration, initial: f64) -> Self {
        Self { window: window.as_secs_f64(), rate: initial, last: Instant::ZERO }
    }

    /// Smooths over this window from now on, and over the time since the last packet, too; the rate stays.
    pub fn set_window(&mut self, window: Duration) {
        self.window = window.as_secs_f64();
    }

    /// Goes on with the rate of another one.
    pub(super) fn take_over(&mut self, before: &Self) {
        *self = Self { window: self.window, ..before.clone() };
    }

    /// Counts a packet and returns the rate in bit/s, this packet included.
    #[inline]
    pub fn update(&mut self, packet: &Header, now: Instant) -> f64 {
        let gap = now.since(self.last).as_secs_f64();
        self.last = now;
        self.rate = (self.rate * self.window + packet.size().bits() as f64) / (gap + self.window);
        self.rate
    }

    /// Returns the rate in bit/s if nothing more comes until then.
    #[inline]
    pub fn at(&self, now: Instant) -> f64 {
        self.rate * self.window / (now.since(self.last).as_secs_f64() + self.window)
    }

    /// Returns when the rate falls to `rate` bit/s if nothing more comes; not before the last packet.
    pub fn falls_to(&self, rate: f64) -> Instant {
        let gap = self.window * (self.rate / rate - 1.0).max(0.0);
        self.last + Duration::from_nanos((gap * 1e9).ceil() as u64)
    }
}

/// When a flow above its profile rate r sends OUT packets; R is the estimated rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutRule {
    /// With probability (R - r) / R, so that the IN packets add up to r (RFC 2859; ns-2's TSW2CM).
    #[default]
    Probabilistic,
    /// Always while R is above r.
    Deterministic,
    /// Always while R is above 4/3 r, the peak of a sawtooth that averages r; for windows of about a round
    /// trip.
    FourThirds,
}

impl OutRule {
    #[inline]
    fn is_out(self, rate: f64, profile: f64, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Probabilistic => cx.rng.chance((rate - profile) / rate),
            Self::Deterministic => rate > profile,
            Self::FourThirds => rate * 3.0 > profile * 4.0,
        }
    }
}

/// The initial rate of an estimator, before the first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InitialRate {
    /// The profile rate (Clark & Fang; ns-2's DiffServ module).
    #[default]
    Profile,
    /// Zero (ns-2's `flowmon`).
    Zero,
}

impl InitialRate {
    fn of(self, profile: Bitrate) -> f64 {
        match self {
            Self::Profile => profile.as_bps() as f64,
            Self::Zero => 0.0,
        }
    }
}

meter_params! {
    /// Parameters of [`Tsw`].
    TswParams: Out {
        /// The profile rate r.
        rate: Bitrate,
        /// The averaging window of the rate.
        #[serde(default = "secs::<1>")]
        window: Duration,
        /// When a flow above its profile sends OUT packets.
        #[serde(default)]
        rule: OutRule,
        /// The initial rate of the estimator, before the first packet.
        #[serde(default)]
        initial: InitialRate,
    }
}

pub(super) fn not_empty(key: &str, window: Duration) -> Result<(), UnitError> {
    require(!window.is_zero(), key, "a window must be longer than 0s, such as 1s")
}

/// IN (green) up to the profile rate as a time sliding window sees it, else OUT (yellow).
#[derive(Clone, Debug)]
pub struct Tsw {
    profile: f64,
    rule: OutRule,
    initial: InitialRate,
    estimator: RateEstimator,
}

impl Block for Tsw {
    type Params = TswParams;
    const NAME: &'static str = "tsw";
    const SUMMARY: &'static str = "IN up to the profile rate, measured over a time sliding window, else OUT";
    const ORIGIN: Origin = Origin::published(1998, "Clark & Fang 1998, section IV; RFC 2859 with two colors");
    const BATCHED: bool = true;

    fn check(params: &TswParams) -> Result<(), UnitError> {
        not_empty("window", params.window)
    }
}

impl MeterBlock for Tsw {
    fn new(params: TswParams, _: Environment) -> Self {
        Self {
            profile: params.rate.as_bps() as f64,
            rule: params.rule,
            initial: params.initial,
            estimator: RateEstimator::new(params.window, params.initial.of(params.rate)),
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        let text = "the run has begun, so it has no effect any more; start a run with it";
        require(self.initial == before.initial, "initial", text)?;
        self.estimator.take_over(&before.estimator);
        Ok(())
    }
}

impl Meter for Tsw {
    #[inline]
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        let rate = self.estimator.update(packet, cx.now);
        if self.rule.is_out(rate, self.profile, cx) { Color::Yellow } else { Color::Green }
    }
}

/// How OUT packets are split by the long-term rate `R_L` of a flow with profile rate r. Yeom & Reddy 1999,
/// section 3.3: "more number of packets are marked OUT-OUT" above the profile rate, without a formula.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// OUT-OUT while `R_L` is above r, else OUT-IN.
    #[default]
    Threshold,
    /// OUT-OUT with probability `(R_L - r) / r`.
    Proportional,
    /// OUT-OUT with probability `(R_L - r) / R_L`, the share of the packets sent that are beyond the profile.
    Probabilistic,
    /// OUT-OUT while `R_L` is above 4/3 r, else OUT-IN.
    FourThirds,
    /// By the marker's own `rule`, applied to `R_L` ("calculated by the same scheme", section 3.3).
    SameRule,
}

impl Split {
    /// Returns the rule that the split is, beside a short-term `rule`; `None` for the one split that is no
    /// rule of a marker.
    const fn rule(self, rule: OutRule) -> Option<OutRule> {
        match self {
            Self::Threshold => Some(OutRule::Deterministic),
            Self::Proportional => None,
            Self::Probabilistic => Some(OutRule::Probabilistic),
            Self::FourThirds => Some(OutRule::FourThirds),
            Self::SameRule => Some(rule),
        }
    }
}

meter_params! {
    /// Parameters of [`ThreePrecedence`].
    ThreePrecedenceParams: OutOfThree {
        /// The profile rate r.
        rate: Bitrate,
        /// The averaging window of the rate that decides between IN and OUT.
        #[serde(default = "secs::<1>")]
        window: Duration,
        /// When a flow above its profile sends OUT packets.
        #[serde(default)]
        rule: OutRule,
        /// The initial rate of the estimators, before the first packet.
        #[serde(default)]
        initial: InitialRate,
        /// The averaging window of the rate that decides between OUT-IN and OUT-OUT.
        #[serde(default = "secs::<10>")]
        long_window: Duration,
        /// How OUT packets are split by the long-term rate.
        #[serde(default)]
        split: Split,
    }
}

/// As [`Tsw`], and OUT packets are OUT-OUT (red) if the flow's long-term sending rate is above its profile,
/// else OUT-IN (yellow). All packets sent count, not those acknowledged.
#[derive(Clone, Debug)]
pub struct ThreePrecedence {
    short: Tsw,
    long: RateEstimator,
    split: Split,
}

impl Block for ThreePrecedence {
    type Params = ThreePrecedenceParams;
    const NAME: &'static str = "three-precedence";
    const SUMMARY: &'static str = "as tsw, with OUT packets split by the flow's long-term sending rate";
    const ORIGIN: Origin = Origin::paper(1999, "Yeom & Reddy 1999, section 3.3");
    const BATCHED: bool = true;

    fn check(params: &ThreePrecedenceParams) -> Result<(), UnitError> {
        not_empty("window", params.window)?;
        not_empty("long-window", params.long_window)
    }
}

impl MeterBlock for ThreePrecedence {
    const COLORS: &'static [Color] = &Color::ALL;

    fn new(params: ThreePrecedenceParams, environment: Environment) -> Self {
        let ThreePrecedenceParams { rate, window, rule, initial, long_window, split, af, out: _ } = params;
        Self {
            short: Tsw::new(TswParams { rate, window, rule, initial, af, out: Out::default() }, environment),
            long: RateEstimator::new(long_window, initial.of(rate)),
            split,
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.short.take_over(&before.short)?;
        self.long.take_over(&before.long);
        Ok(())
    }
}

impl Meter for ThreePrecedence {
    #[inline]
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        let long_term = self.long.update(packet, cx.now);
        if self.short.color(packet, cx) == Color::Green {
            return Color::Green;
        }
        let Tsw { profile, rule, .. } = self.short;
        let out_out = match self.split.rule(rule) {
            Some(rule) => rule.is_out(long_term, profile, cx),
            None => cx.rng.chance((long_term - profile) / profile),
        };
        if out_out { Color::Red } else { Color::Yellow }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowId, Rng};

    fn environment() -> Environment {
        Environment { rate: Bitrate::from_bps(1).unwrap() }
    }

    #[test]
    fn the_estimate_approaches_twice_the_profile_as_worked_out_by_hand() {
        // r = 1 Mbit/s, W = 1 s, 1000-byte packets each 4 ms (2 Mbit/s): R after n packets = 2 - (1/1.004)^n
        // Mbit/s.
        let mut estimator = RateEstimator::new(Duration::from_secs(1), 1e6);
        let packet = Header::new(FlowId(0), 1000);
        let (mut rate, mut left) = (0.0, 1.0);
        for n in 1..=250_u32 {
            rate = estimator.update(&packet, Instant::from_nanos(u64::from(n) * 4_000_000));
            left /= 1.004;
            let expected = (2.0 - left) * 1e6;
            assert!((rate - expected).abs() < 1.0, "{n}: {rate} instead of {expected}");
        }
        assert!((rate / 1e6 - 1.631).abs() < 5e-4, "{rate}");
        assert!(((rate - 1e6) / rate - 0.387).abs() < 5e-4);
    }

    #[test]
    fn an_estimate_falls_while_nothing_comes_as_worked_out_by_hand() {
        // W = 2 s: R(t) = 3 W / (t + W) Mbit/s is 1 Mbit/s after 4 s, and 1.5 after 2.
        let estimator = RateEstimator::new(Duration::from_secs(2), 3e6);
        assert_eq!(estimator.falls_to(1e6), Instant::from_nanos(4_000_000_000));
        assert_eq!(estimator.falls_to(1.5e6), Instant::from_nanos(2_000_000_000));
        assert_eq!(estimator.falls_to(3.5e6), Instant::ZERO, "it is below that already");
        assert_eq!(estimator.at(Instant::from_nanos(4_000_000_000)), 1e6);
    }

    #[test]
    fn a_rate_at_a_threshold_is_not_above_it() {
        // W = 1 s and 8000 bits: at once R = 8000 bit/s, and a second later (8000 + 8000) / 2.
        for (rule, profile) in [("deterministic", 8000), ("four-thirds", 6000)] {
            let table = format!(r#"{{"rate": "{profile}bps", "rule": "{rule}", "initial": "zero"}}"#);
            let mut meter = Tsw::new(serde_json::from_str(&table).unwrap(), environment());
            let mut rng = Rng::stream(1, "tsw");
            let mut at = |nanos, size| {
                let cx = &mut Context { now: Instant::from_nanos(nanos), rng: &mut rng };
                meter.color(&Header::new(FlowId(0), size), cx)
            };
            assert_eq!([at(0, 1000), at(1_000_000_000, 1000)], [Color::Green; 2], "{rule}");
            assert_eq!(at(2_000_000_000, 1001), Color::Yellow, "{rule}");
        }
    }

    #[test]
    fn a_window_is_not_empty() {
        let text = |key| UnitError::at(key, "a window must be longer than 0s, such as 1s");
        let tsw = serde_json::from_str(r#"{"rate": "1Mbps", "window": "0s"}"#).unwrap();
        assert_eq!(Tsw::check(&tsw).unwrap_err(), text("window"));
        for key in ["window", "long-window"] {
            let three = serde_json::from_str(&format!(r#"{{"rate": "1Mbps", "{key}": "0s"}}"#)).unwrap();
            assert_eq!(ThreePrecedence::check(&three).unwrap_err(), text(key), "{key}");
        }
    }

    fn share_out(table: &str, gap_ns: u64) -> f64 {
        let params: TswParams = serde_json::from_str(table).unwrap();
        let mut meter = Tsw::new(params, environment());
        let mut rng = Rng::stream(1, "tsw");
        let packet = Header::new(FlowId(0), 1000);
        let packets = 50_000;
        let out = (1..=packets)
            .filter(|n| {
                let cx = &mut Context { now: Instant::from_nanos(n * gap_ns), rng: &mut rng };
                meter.color(&packet, cx) != Color::Green
            })
            .count();
        out as f64 / packets as f64
    }

    #[test]
    fn rules_differ_as_they_should() {
        // 2 Mbit/s against a profile of 1: half is OUT by chance, all by the thresholds.
        assert!((share_out(r#"{"rate": "1Mbps"}"#, 4_000_000) - 0.5).abs() < 0.02);
        assert!(share_out(r#"{"rate": "1Mbps", "rule": "deterministic"}"#, 4_000_000) > 0.99);
        assert!(share_out(r#"{"rate": "1Mbps", "rule": "four-thirds"}"#, 4_000_000) > 0.98);
        // 1.25 Mbit/s: above the profile, below 4/3 of it.
        assert!(share_out(r#"{"rate": "1Mbps", "rule": "deterministic"}"#, 6_400_000) > 0.98);
        assert!(share_out(r#"{"rate": "1Mbps", "rule": "four-thirds"}"#, 6_400_000) < 0.01);
        // Below the profile nothing is OUT.
        assert!(share_out(r#"{"rate": "1Mbps"}"#, 9_000_000) < 0.001);
    }

    #[test]
    fn the_four_thirds_rule_marks_from_the_packet_worked_out_by_hand() {
        // r = 1 Mbit/s, W = 0.5 s, 1000-byte packets each 4 ms (2 Mbit/s): R after n packets = 2 -
        // (1/1.008)^n Mbit/s, and above 4/3 from n > ln 1.5 / ln 1.008 = 50.9 on.
        let table = r#"{"rate": "1Mbps", "window": "500ms", "rule": "four-thirds"}"#;
        let mut meter = Tsw::new(serde_json::from_str(table).unwrap(), environment());
        let mut rng = Rng::stream(1, "tsw");
        let packet = Header::new(FlowId(0), 1000);
        for n in 1..=200_u64 {
            let cx = &mut Context { now: Instant::from_nanos(n * 4_000_000), rng: &mut rng };
            let expected = if n < 51 { Color::Green } else { Color::Yellow };
            assert_eq!(meter.color(&packet, cx), expected, "{n}");
        }
    }

    /// Where the first OUT-OUT packet comes, and the share of OUT-OUT among the packets 10 001 to 60 000, at
    /// 1.5 times the profile: r = 1 Mbit/s, 1000-byte packets each 16/3 ms. The short-term rule marks all of
    /// these OUT.
    fn split(rule: &str, split: &str) -> (usize, f64) {
        let table = format!(r#"{{"rate": "1Mbps", "window": "1ms", "rule": "{rule}", "split": "{split}"}}"#);
        let mut meter = ThreePrecedence::new(serde_json::from_str(&table).unwrap(), environment());
        let mut rng = Rng::stream(1, "three");
        let packet = Header::new(FlowId(0), 1000);
        let colors: Vec<Color> = (1..=60_000_u64)
            .map(|n| {
                let now = Instant::from_nanos(n * 16_000_000 / 3);
                meter.color(&packet, &mut Context { now, rng: &mut rng })
            })
            .collect();
        let out = colors[10_000..].iter().filter(|&&color| color != Color::Green).count();
        let red = colors[10_000..].iter().filter(|&&color| color == Color::Red).count();
        let first = colors.iter().position(|&color| color == Color::Red).unwrap_or(usize::MAX);
        (first + usize::from(first < usize::MAX), red as f64 / out as f64)
    }

    #[test]
    fn splits_mark_from_the_packet_and_in_the_share_worked_out_by_hand() {
        // R_L after n packets = 1.5 - 0.5 q^n Mbit/s with q = 10 / (10 + 16/3000): above 1 at once; above 4/3
        // from n > ln 3 / ln(1/q) = 2060.5 on. In the end it is 1.5: (R_L - r) / r = 1/2 and (R_L - r) / R_L
        // = 1/3.
        assert_eq!(split("deterministic", "threshold"), (1, 1.0));
        assert_eq!(split("deterministic", "four-thirds"), (2061, 1.0));
        assert!((split("deterministic", "proportional").1 - 1.0 / 2.0).abs() < 0.01);
        assert!((split("deterministic", "probabilistic").1 - 1.0 / 3.0).abs() < 0.01);
    }

    #[test]
    fn the_same_rule_is_the_split_that_is_named_like_the_rule() {
        for (rule, named) in [
            ("probabilistic", "probabilistic"),
            ("deterministic", "threshold"),
            ("four-thirds", "four-thirds"),
        ] {
            assert_eq!(split(rule, "same-rule"), split(rule, named), "{rule}");
        }
    }

    #[test]
    fn out_packets_are_split_by_the_long_term_rate() {
        // Idle for long, then a burst at four times the profile: OUT at once by the short window, OUT-IN
        // while the long one still remembers the silence, OUT-OUT in the end.
        let params: ThreePrecedenceParams =
            serde_json::from_str(r#"{"rate": "1Mbps", "rule": "deterministic", "initial": "zero"}"#).unwrap();
        let mut meter = ThreePrecedence::new(params, environment());
        let mut rng = Rng::stream(1, "three");
        let packet = Header::new(FlowId(0), 1000);
        let colors: Vec<Color> = (1..=5000_u64)
            .map(|n| {
                meter.color(&packet, &mut Context { now: Instant::from_nanos(n * 2_000_000), rng: &mut rng })
            })
            .collect();
        let first = |wanted| colors.iter().position(|&color| color == wanted).unwrap();
        assert_eq!(colors[0], Color::Green);
        assert!(first(Color::Yellow) < first(Color::Red));
        assert!(colors[first(Color::Red)..].iter().all(|&color| color == Color::Red));
        // 4 (1 - exp(-t/W)) = 1 at t = 0.288 W: after 0.29 s and 2.9 s.
        assert!((130..160).contains(&first(Color::Yellow)), "{}", first(Color::Yellow));
        assert!((1400..1480).contains(&first(Color::Red)), "{}", first(Color::Red));
    }
}
