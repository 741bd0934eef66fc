//! Packet admission control of Asymmetric Best-Effort: Hurley & Le Boudec 1999, section 2.
//!
//! One RED average over all packets gives a drop probability p. A blue packet is dropped with p, a green one
//! with alpha p, and a green packet that would find more than `N_g` others before it is dropped, too. Every
//! interval alpha is moved so that the measured ratio of green to blue losses, `alpha_m`, meets its target,
//! `alpha_t`. The order of service is the scheduler's ([`Edf`](crate::scheduler::Edf) in the paper).
//!
//! "The usual RED dropping probability p" is read as RED's final one, after drops are spread evenly (`p_a` of
//! Floyd & Jacobson), with one count of packets since the last drop for both services: then green's losses
//! are alpha times blue's, whatever p is, until alpha p reaches 1. `alpha-on = "initial"` multiplies `p_b`
//! instead, with a count for each service, and `spread = false` drops each packet with `p_b` itself
//! (`the_ratio_of_losses_by_hand`).
//!
//! While p is above 1/alpha no green packet gets in, as the paper's algorithm has it (of the initial
//! probability: above half of that): many blue sources, or some that do not yield to losses, can cut green
//! off. `green-most` bounds it.
//!
//! ## Deviations
//! - The paper counts N, the packets with a deadline before now; here those with a deadline at this very
//!   instant count, too: they go first, and a burst at one instant would otherwise pass the limit.
//!   `a_burst_at_one_instant_is_limited` shows it.
//! - The paper does not say how the two loss ratios are measured: here over each interval, smoothed, over all
//!   causes. All of it can be set. A ratio without packets, or one service without losses so far, leaves
//!   alpha as it is.
//! - The paper's law, alpha = `alpha_t`^2 / `alpha_m`, does not lead to `alpha_t`
//!   (`the_published_law_by_hand`); with the law `integral` alpha is multiplied by a root of `alpha_t` /
//!   `alpha_m` instead, which does.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::{Chance, EarlyTest, Ewma, IdleClock, RedKnobs, check_red, keep_unit};
use super::red::{RedFamily, red_params};
use super::{Aqm, AqmBlock, Verdict};
use crate::abe::Service;
use crate::units::defaults::{at_least_one, on, probability, secs, weight};
use crate::units::{Packets, Positive, UnitError, require};
use crate::{
    Bitrate, Block, Bytes, Context, Depth, Duration, Environment, Header, Instant, KeysWithoutEffect,
    Occupancy, Origin, Probability, PseudoCode, Reason, Thresholds, Weight,
};

/// How alpha is adapted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// alpha = `alpha_t`^2 / `alpha_m` (Hurley & Le Boudec 1999, section 2).
    #[default]
    Published,
    /// alpha is multiplied by the `root`-th root of `alpha_t` / `alpha_m`.
    Integral,
    /// alpha stays `alpha`.
    Fixed,
}

/// Which of RED's two probabilities alpha multiplies; without spreading the two are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlphaOn {
    /// The final one, `p_a`, with one count of packets since the last drop: "for Green packets it is alpha p"
    /// (section 2).
    #[default]
    Final,
    /// The initial one, `p_b`, before drops are spread, with a count of packets since the last drop for each
    /// service.
    Initial,
}

/// Which losses make up a loss ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Losses {
    /// All: early and forced drops, delay control, overflow.
    #[default]
    All,
    /// The early and forced drops of RED.
    Red,
}

red_params! {
    /// Parameters of [`Abe`].
    AbeParams {
        /// `min/max/max_p` of the RED test that gives p, against the average of all packets.
        thresholds: Thresholds,
        /// A green packet is dropped if more packets than this would be ahead of it (`N_g`). Default: no such
        /// limit.
        green_limit: Option<Packets>,
        /// The target ratio of green to blue losses (`alpha_t`, of the order of the square of the throughput
        /// ratio beta).
        #[serde(default = "at_least_one::<9>")] target: Positive,
        /// The initial alpha. Default: `target`.
        alpha: Option<Positive>,
        /// Which of RED's two probabilities alpha multiplies: the final one, after drops are spread evenly,
        /// or the initial one, before.
        #[serde(default)] alpha_on: AlphaOn,
        /// Spread drops evenly, as RED does; otherwise each packet is dropped with the initial probability,
        /// independently of the others (requires `wait = false`).
        #[serde(default = "on")] spread: bool,
        /// How alpha is adapted.
        #[serde(default)] law: Law,
        /// How often alpha is adapted.
        #[serde(default = "secs::<1>")] interval: Duration,
        /// Weight of the newest interval in the moving averages of the two loss ratios; with 1 each interval
        /// counts by itself.
        #[serde(default = "weight::<1, 10>")] gain: Weight,
        /// The highest probability with which RED drops a green packet below max. As published it is 1, and
        /// green is cut off while alpha p is near 1.
        #[serde(default = "probability::<1, 1>")] green_most: Probability,
        /// Which losses are measured.
        #[serde(default)] losses: Losses,
        /// For the law `integral`: the higher the root, the slower alpha changes.
        #[serde(default = "ten")] root: Root,
        /// The maximum of alpha; its minimum is 1.
        #[serde(default = "at_least_one::<100>")] largest: Positive,
    }
}

/// Which root to take: a whole number of at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Root(u32);

impl<'de> Deserialize<'de> for Root {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            root @ 1..=1000 => Ok(Self(root)),
            other => Err(serde::de::Error::custom(format!("a whole number from 1 to 1000, not {other}"))),
        }
    }
}

impl JsonSchema for Root {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Root".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "minimum": 1, "maximum": 1000 })
    }
}

const fn ten() -> Root {
    Root(10)
}

/// RED that drops green packets alpha times as often as blue ones, and keeps few packets before a green one.
#[derive(Clone, Debug)]
pub struct Abe {
    limit: Depth,
    weight: Weight,
    thresholds: Thresholds,
    green_limit: u64,
    green_most: f64,
    average: Ewma,
    idle: IdleClock,
    alpha_on: AlphaOn,
    /// By service, where each has a count of packets since the last drop; where they share one it is the
    /// first.
    tests: [EarlyTest; 2],
    control: Control,
}

impl AbeParams {
    /// The threshold sets, each with its key.
    fn sets(&self) -> Vec<(&'static str, Thresholds)> {
        vec![("thresholds", self.thresholds)]
    }
}

const CODE: PseudoCode = PseudoCode {
    lines: &[
        "for each packet that arrives:",
        "    RED with the average of the whole queue: drop by chance (early) or for certain (forced)",
        "    alpha > 1: a green packet is dropped alpha times as often as a blue one",
        "    if a green packet would wait longer than green's bound: drop (delay-control)",
        "    if the queue has no room: drop (overflow)",
        "a packet that can no longer be sent by its deadline: drop (late)",
    ],
    acts: &[
        (Reason::Early, &[1, 2]),
        (Reason::Forced, &[1]),
        (Reason::DelayControl, &[3]),
        (Reason::Overflow, &[4]),
        (Reason::Late, &[5]),
    ],
};

impl Block for Abe {
    type Params = AbeParams;
    const NAME: &'static str = "abe";
    const SUMMARY: &'static str =
        "RED that drops green packets more often than blue ones, and keeps their queueing delay short";
    const ORIGIN: Origin = Origin::paper(1999, "Hurley & Le Boudec 1999, section 2");
    const BATCHED: bool = true;
    const PSEUDO_CODE: Option<PseudoCode> = Some(CODE);

    fn check(params: &AbeParams) -> Result<(), UnitError> {
        require(!params.interval.is_zero(), "", "interval must be above 0s, such as 1s")?;
        let text = "`wait` requires `spread = true`; with `spread = false` write `wait = false`";
        require(params.spread || !params.wait, "wait", text)?;
        let text = "with `spread = false` RED has one probability; leave `alpha-on` out";
        require(params.spread || params.alpha_on == AlphaOn::Final, "alpha-on", text)?;
        let largest = params.largest.get();
        for (key, value) in [("target", Some(params.target)), ("alpha", params.alpha)] {
            let text = format!("{key} must be at most `largest`, which is {largest}");
            require(value.is_none_or(|value| value.get() <= largest), "", text)?;
        }
        check_red(params.mean_packet, &params.sets())
    }

    fn keys_without_effect(params: &AbeParams, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        params.without_effect(&params.sets(), sizes)
    }
}

impl AqmBlock for Abe {
    const NEEDS_AHEAD: bool = true;

    fn limit(params: &AbeParams, _: Bitrate) -> Option<Depth> {
        Some(params.limit)
    }

    fn new(params: AbeParams, environment: Environment) -> Self {
        let test = EarlyTest::new(params.thresholds, RedKnobs { spread: params.spread, ..params.knobs() });
        Self {
            limit: params.limit,
            weight: params.weight,
            thresholds: params.thresholds,
            green_limit: params.green_limit.map_or(u64::MAX, Packets::get),
            green_most: params.green_most.get(),
            alpha_on: params.alpha_on,
            average: Ewma::default(),
            idle: IdleClock::new(params.mean_packet, environment.rate),
            tests: [test.clone(), test],
            control: Control::new(&params),
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        keep_unit("thresholds", before.thresholds.unit(), self.thresholds.unit())?;
        self.average = before.average;
        self.idle.take_over(&before.idle);
        self.tests.iter_mut().zip(&before.tests).for_each(|(test, before)| test.take_over(before));
        self.control.take_over(&before.control);
        Ok(())
    }
}

impl Abe {
    fn judge(
        &mut self,
        service: Service,
        packet: &Header,
        queue: &Occupancy,
        cx: &mut Context<'_>,
    ) -> Verdict {
        let counted = match self.alpha_on {
            AlphaOn::Final => Service::Blue,
            AlphaOn::Initial => service,
        };
        let test = &mut self.tests[counted.index()];
        if queue.is_full_for(packet, self.limit) {
            test.lost();
            return Verdict::Drop(Reason::Overflow);
        }
        let average = self.average.get();
        let verdict = Verdict::of(match service {
            Service::Blue => test.judge(average, packet, cx.rng),
            Service::Green => {
                let (alpha, most) = (self.control.alpha, self.green_most);
                let chance = match self.alpha_on {
                    AlphaOn::Final => Chance { max_p: test.max_p(), times: alpha, most },
                    AlphaOn::Initial => Chance { max_p: alpha * test.max_p(), times: 1.0, most },
                };
                test.judge_by(&chance, average, packet, cx.rng)
            }
        });
        if verdict.admits(packet) && service == Service::Green && queue.ahead() > self.green_limit {
            return Verdict::Drop(Reason::DelayControl);
        }
        verdict
    }
}

impl Aqm for Abe {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.control.settle(cx.now);
        self.average.decay(self.weight, self.idle.missed(cx.now));
        self.average.update(self.weight, queue.total(self.thresholds.unit()));
        let service = Service::of(packet.dscp);
        let verdict = self.judge(service, packet, queue, cx);
        self.control.count(service, verdict, packet);
        self.idle.settle(verdict.admits(packet), cx.now);
        verdict
    }

    fn on_idle(&mut self, since: Instant) {
        self.idle.begin(since);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let ratio = self.control.measured_ratio().unwrap_or(f64::NAN);
        vec![("average total", self.average.get()), ("alpha", self.control.alpha), ("alpha_m", ratio)]
    }
}

/// Moves alpha towards where green's loss ratio is the target times blue's.
#[derive(Clone, Debug)]
struct Control {
    law: Law,
    target: f64,
    root: u32,
    largest: f64,
    gain: f64,
    losses: Losses,
    interval: Duration,
    /// When the present interval ends.
    ends: Instant,
    alpha: f64,
    /// Arrivals and losses in the present interval, by service.
    arrived: [u64; 2],
    lost: [u64; 2],
    /// The smoothed loss ratio of each service that has had packets.
    ratios: [Option<f64>; 2],
}

impl Control {
    /// Goes on with the factor of a running control, and with what it has counted in this interval.
    fn take_over(&mut self, before: &Self) {
        let Self { ends, alpha, arrived, lost, ratios, .. } = before;
        (self.ends, self.alpha) = (*ends, *alpha);
        (self.arrived, self.lost, self.ratios) = (*arrived, *lost, *ratios);
    }

    fn new(params: &AbeParams) -> Self {
        Self {
            law: params.law,
            target: params.target.get(),
            root: params.root.0,
            largest: params.largest.get(),
            gain: params.gain.get(),
            losses: params.losses,
            interval: params.interval,
            ends: Instant::ZERO + params.interval,
            alpha: params.alpha.unwrap_or(params.target).get(),
            arrived: [0; 2],
            lost: [0; 2],
            ratios: [None; 2],
        }
    }

    #[inline]
    fn count(&mut self, service: Service, verdict: Verdict, packet: &Header) {
        self.arrived[service.index()] += 1;
        let mut packet = *packet;
        if let Err(reason) = verdict.apply(&mut packet) {
            let counts = match self.losses {
                Losses::All => true,
                Losses::Red => matches!(reason, Reason::Early | Reason::Forced),
            };
            self.lost[service.index()] += u64::from(counts);
        }
    }

    /// Ends the interval if its time has passed. Intervals in which nothing came are one with the last.
    #[inline]
    fn settle(&mut self, now: Instant) {
        if now >= self.ends {
            self.end_interval();
            let missed = now.since(self.ends).as_nanos() / self.interval.as_nanos();
            let until = u128::from(self.interval.as_nanos()) * (u128::from(missed) + 1);
            self.ends += Duration::from_nanos(u64::try_from(until).unwrap_or(u64::MAX));
        }
    }

    fn end_interval(&mut self) {
        for service in Service::ALL.map(Service::index) {
            let (arrived, lost) =
                (std::mem::take(&mut self.arrived[service]), std::mem::take(&mut self.lost[service]));
            if arrived > 0 {
                let ratio = lost as f64 / arrived as f64;
                let before = self.ratios[service].unwrap_or(ratio);
                self.ratios[service] = Some(before + self.gain * (ratio - before));
            }
        }
        if let Some(measured) = self.measured_ratio().filter(|measured| *measured > 0.0) {
            let wanted = match self.law {
                Law::Published => self.target * self.target / measured,
                Law::Integral => self.alpha * nth_root(self.target / measured, self.root),
                Law::Fixed => self.alpha,
            };
            self.alpha = wanted.clamp(1.0, self.largest);
        }
    }

    /// `alpha_m`: green's loss ratio over blue's, if blue has one.
    fn measured_ratio(&self) -> Option<f64> {
        let [blue, green] = self.ratios;
        let (blue, green) = (blue?, green?);
        (blue > 0.0).then(|| green / blue)
    }
}

/// The n-th root of a positive number by Newton's method: the same bits on every machine.
fn nth_root(x: f64, n: u32) -> f64 {
    if x > 1.0 {
        // From 1 down to a root between 0 and 1 it is not far, whatever n is.
        return 1.0 / nth_root(1.0 / x, n);
    }
    if x == 0.0 {
        return 0.0;
    }
    let power = |base: f64| (1..n).fold(1.0, |product, _| product * base);
    let mut root = 1.0;
    for _ in 0..2000 {
        let next = root - (root - x / power(root)) / f64::from(n);
        if next >= root {
            break; // From above, Newton's method falls until it is there.
        }
        root = next;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, FlowId, Rng};

    fn abe(table: &str) -> Abe {
        let table = format!(r#"{{"thresholds": "0/40/0.2", "limit": "60p" {table}}}"#);
        let params: AbeParams = serde_json::from_str(&table).unwrap();
        Abe::check(&params).unwrap();
        Abe::new(params, Environment { rate: Bitrate::from_bps(8_000_000).unwrap() })
    }

    fn packet(service: Service) -> Header {
        Header { dscp: service.dscp(), ..Header::new(FlowId(0), 1000) }
    }

    /// Ends an interval in which each service had 1000 packets and lost this many.
    fn interval(control: &mut Control, blue: u64, green: u64) -> f64 {
        (control.arrived, control.lost) = ([1000, 1000], [blue, green]);
        control.end_interval();
        control.alpha
    }

    #[test]
    fn roots_by_hand() {
        for (x, n, root) in
            [(1024.0, 10, 2.0), (1.0 / 1024.0, 10, 0.5), (9.0, 2, 3.0), (7.0, 1, 7.0), (1.0, 10, 1.0)]
        {
            assert!((nth_root(x, n) - root).abs() < 1e-12, "{x} {n}: {}", nth_root(x, n));
        }
        for x in [100.0, 1e10, 1e300, 0.01, 1e-10, 1e-300] {
            let root = nth_root(x, 1000);
            let power: f64 = (0..1000).map(|_| root).product();
            assert!((power / x - 1.0).abs() < 1e-9, "{x}: {root}");
        }
        assert_eq!([1, 2, 10, 1000].map(|n| nth_root(f64::INFINITY, n)), [f64::INFINITY; 4]);
    }

    #[test]
    fn alpha_is_a_number_however_long_green_loses_nothing() {
        // Halved each time, green's ratio comes so near to zero that alpha_t / alpha_m is infinite.
        let mut control = abe(r#", "law": "integral", "gain": 0.5"#).control;
        interval(&mut control, 20, 100);
        for _ in 0..1100 {
            interval(&mut control, 20, 0);
        }
        assert_eq!(control.alpha, 100.0);
        assert!(interval(&mut control, 20, 1000) < 100.0);
    }

    #[test]
    fn the_published_law_by_hand() {
        // The plant responds to alpha with alpha_m = c alpha. Interval by interval, alpha_m is 9 c, then 9,
        // and so on for ever.
        let c = 0.5;
        let plant = |alpha: f64| (20.0 * c * alpha) as u64;
        let mut control = abe(r#", "gain": 1"#).control;
        let mut alphas = vec![control.alpha];
        for _ in 0..4 {
            let losses = plant(*alphas.last().unwrap());
            alphas.push(interval(&mut control, 20, losses));
        }
        let expected = [9.0, 18.0, 9.0, 18.0, 9.0];
        assert!(
            alphas.iter().zip(expected).all(|(alpha, by_hand)| (alpha - by_hand).abs() < 1e-9),
            "{alphas:?}"
        );
        // Smoothed it comes to rest where alpha = 81 / (c alpha): alpha = 9 / sqrt(c), alpha_m = 9 sqrt(c).
        let mut control = abe(r#", "gain": 0.1"#).control;
        let mut alpha = control.alpha;
        for _ in 0..400 {
            alpha = interval(&mut control, 20, plant(alpha));
        }
        assert!((alpha - 9.0 / c.sqrt()).abs() < 0.2, "{alpha}");
        // The integral law comes to rest where alpha_m = 9: alpha = 9 / c.
        let mut control = abe(r#", "law": "integral""#).control;
        let mut alpha = control.alpha;
        for _ in 0..400 {
            alpha = interval(&mut control, 20, plant(alpha));
        }
        assert!((alpha - 9.0 / c).abs() < 0.5, "{alpha}");
    }

    #[test]
    fn alpha_stays_where_nothing_can_be_measured_and_within_its_bounds() {
        let mut control = abe(r#", "gain": 1"#).control;
        assert_eq!(interval(&mut control, 0, 5), 9.0, "blue lost nothing");
        assert_eq!(interval(&mut control, 5, 0), 9.0, "green lost nothing");
        (control.arrived, control.lost) = ([1000, 0], [5, 0]);
        control.end_interval();
        assert_eq!(control.alpha, 9.0, "green had no packets, and none lost before");
        assert_eq!(interval(&mut control, 900, 1), 100.0);
        assert_eq!(interval(&mut control, 1, 900), 1.0);
        let mut fixed = abe(r#", "law": "fixed", "alpha": 4"#).control;
        assert_eq!(interval(&mut fixed, 100, 900), 4.0);
    }

    #[test]
    fn loss_ratios_are_smoothed_as_worked_out_by_hand() {
        // With a gain of 1/4, blue loses .02 and then .06: .03. Green loses .2 and then .4: .25. alpha = 81
        // .03/.25.
        let mut control = abe(r#", "gain": 0.25"#).control;
        interval(&mut control, 20, 200);
        assert!((control.alpha - 8.1).abs() < 1e-9, "{}", control.alpha);
        let alpha = interval(&mut control, 60, 400);
        assert!((control.ratios[0].unwrap() - 0.03).abs() < 1e-12);
        assert!((control.ratios[1].unwrap() - 0.25).abs() < 1e-12);
        assert!((alpha - 9.72).abs() < 1e-9, "{alpha}");
        assert!((control.measured_ratio().unwrap() - 25.0 / 3.0).abs() < 1e-9);
        // An interval without packets of a service leaves its ratio.
        (control.arrived, control.lost) = ([0, 1000], [0, 250]);
        control.end_interval();
        assert!((control.ratios[0].unwrap() - 0.03).abs() < 1e-12);
    }

    #[test]
    fn only_the_losses_that_are_asked_for_are_counted() {
        let verdicts = [
            Verdict::Pass,
            Verdict::Notify(Reason::Early),
            Verdict::Drop(Reason::Early),
            Verdict::Drop(Reason::Forced),
            Verdict::Drop(Reason::DelayControl),
            Verdict::Drop(Reason::Overflow),
        ];
        for (losses, lost) in [("all", 5), ("red", 3)] {
            let mut control = abe(&format!(r#", "losses": "{losses}""#)).control;
            for verdict in verdicts {
                control.count(Service::Green, verdict, &packet(Service::Green));
            }
            control.count(Service::Blue, Verdict::Pass, &packet(Service::Blue));
            assert_eq!((control.arrived, control.lost), ([1, 6], [0, lost]), "{losses}");
        }
    }

    #[test]
    fn alpha_and_its_measure_are_shown() {
        let mut abe = abe(r#", "alpha": 4"#);
        let gauges = |abe: &Abe| abe.gauges().split_off(1);
        assert!(matches!(gauges(&abe)[..], [("alpha", 4.0), ("alpha_m", nothing)] if nothing.is_nan()));
        interval(&mut abe.control, 100, 500);
        let shown = gauges(&abe);
        assert_eq!(shown, [("alpha", 16.2), ("alpha_m", 5.0)]);
    }

    #[test]
    fn a_root_is_a_whole_number_from_1_to_1000() {
        let read = |root: u32| serde_json::from_str::<Root>(&root.to_string());
        assert_eq!((read(1).unwrap(), read(1000).unwrap()), (Root(1), Root(1000)));
        for root in [0, 1001] {
            let problem = read(root).unwrap_err().to_string();
            assert_eq!(problem, format!("a whole number from 1 to 1000, not {root}"));
        }
    }

    #[test]
    fn intervals_end_on_their_grid() {
        let mut control = abe("").control;
        let second = |n: u64| Instant::from_nanos(n * 1_000_000_000);
        control.settle(second(1));
        assert_eq!(control.ends, second(2));
        control.settle(Instant::from_nanos(5_500_000_000));
        assert_eq!(control.ends, second(6));
        control.settle(Instant::from_nanos(u64::MAX));
    }

    /// Loss ratios of blue and of green, which take turns, at an average of 2 of 40 packets: `p_b` is 0.01
    /// for blue.
    fn losses(extra: &str) -> [f64; 2] {
        let extra = format!(r#", "weight": 1, "wait": false, "law": "fixed" {extra}"#);
        let mut abe = abe(&extra);
        let mut queue = Occupancy::EMPTY;
        (0..2).for_each(|_| queue.add(crate::Color::Yellow, 1000));
        let mut rng = Rng::stream(5, "abe");
        let mut lost = [0_u32; 2];
        for _ in 0..400_000 {
            for service in Service::ALL {
                let cx = &mut Context { now: Instant::from_nanos(1), rng: &mut rng };
                let verdict = abe.on_arrival(&packet(service), &queue, cx);
                lost[service.index()] += u32::from(verdict != Verdict::Pass);
            }
        }
        lost.map(|lost| f64::from(lost) / 400_000.0)
    }

    #[test]
    fn the_ratio_of_losses_by_hand() {
        let near = |found: f64, by_hand: f64| (found / by_hand - 1.0).abs() < 0.05;
        // Bernoulli drops: 0.01 and 9 times that.
        let [blue, green] = losses(r#", "spread": false"#);
        assert!(near(blue, 0.01) && near(green, 0.09), "{blue} {green}");
        // One count k for both: p_a(k) = 1/(100 - k) for blue, nine times that for green, so the ratio is 9
        // but for the rare counts above 91. As they take turns, the chance of a drop at k is 5/(100 - k) on
        // average: after k packets without one it is about ((100 - k)/100)^5, gaps have a mean of 100/6, and
        // a tenth of the drops is blue's, of half of the packets.
        let [blue, green] = losses("");
        assert!((green / blue / 9.0 - 1.0).abs() < 0.05, "{blue} {green}");
        assert!(near(blue, 2.0 * 0.1 * 6.0 / 100.0), "{blue}");
        // alpha on p_b, with counts of their own. Blue's gaps are uniform on 1 to 99, of mean 50. For green,
        // p_b 0.09, no drop in k packets has the chance (1 - 0.09 (k + 1)) / 0.91 up to k = 10: the mean is
        // 1 + (10 - 0.09 65) / 0.91 = 5.56.
        let [blue, green] = losses(r#", "alpha-on": "initial""#);
        assert!(near(blue, 1.0 / 50.0) && near(green, 1.0 / 5.56), "{blue} {green}");
    }

    #[test]
    fn a_key_without_effect_is_refused() {
        let refused = |extra: &str| {
            let table = format!(r#"{{"thresholds": "0/40/0.2", "limit": "60p", "spread": false {extra}}}"#);
            Abe::check(&serde_json::from_str(&table).unwrap()).unwrap_err().to_string()
        };
        assert!(refused("").contains("wait = false"));
        assert!(refused(r#", "wait": false, "alpha-on": "initial""#).contains("one probability"));
    }

    #[test]
    fn green_alone_is_dropped_as_often_as_alpha_times_the_initial_probability_gives() {
        // An average of 1 of 40 gives p = 0.005 for blue and 9 * 0.005 for green. Without wait the gaps
        // between two drops are uniform on 1..1/p: a share of 2/(1/p + 1).
        let mut abe = abe(r#", "weight": 1, "wait": false, "law": "fixed", "alpha-on": "initial""#);
        let mut queue = Occupancy::EMPTY;
        (0..1).for_each(|_| queue.add(crate::Color::Yellow, 1000));
        let mut rng = Rng::stream(5, "abe");
        let mut share = |service: Service| {
            let dropped = (0..200_000).filter(|_| {
                let cx = &mut Context { now: Instant::from_nanos(1), rng: &mut rng };
                abe.on_arrival(&packet(service), &queue, cx) != Verdict::Pass
            });
            dropped.count() as f64 / 200_000.0
        };
        let (blue, green) = (share(Service::Blue), share(Service::Green));
        assert!((blue / (2.0 / 201.0) - 1.0).abs() < 0.05, "{blue}");
        assert!((green / (2.0 / (1.0 / 0.045 + 1.0)) - 1.0).abs() < 0.05, "{green}");
    }

    #[test]
    fn a_green_packet_that_would_wait_too_long_is_dropped() {
        let mut abe = abe(r#", "green-limit": "3p", "weight": 0.000001"#);
        let mut rng = Rng::stream(5, "abe");
        let mut judge = |service, waiting: u32, overtaken: u32| {
            let mut queue = Occupancy::EMPTY;
            (0..waiting).for_each(|_| queue.add(crate::Color::Yellow, 1000));
            queue.set_overtaken(overtaken);
            abe.on_arrival(
                &packet(service),
                &queue,
                &mut Context { now: Instant::from_nanos(1), rng: &mut rng },
            )
        };
        assert_eq!(judge(Service::Green, 3, 0), Verdict::Pass);
        assert_eq!(judge(Service::Green, 4, 0), Verdict::Drop(Reason::DelayControl));
        assert_eq!(judge(Service::Green, 40, 37), Verdict::Pass);
        assert_eq!(judge(Service::Blue, 40, 0), Verdict::Pass);
        assert_eq!(judge(Service::Blue, 60, 0), Verdict::Drop(Reason::Overflow));
        assert_eq!(judge(Service::Green, 60, 60), Verdict::Drop(Reason::Overflow));
    }
}
