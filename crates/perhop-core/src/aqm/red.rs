//! RED: Floyd & Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993, figure 2.
//!
//! ## Deviations
//! ns-2's `Queue/RED` drops by the average only where more than one packet waits (`qlen > 1` in its
//! `red.cc`). The paper's algorithm has no such rule, and the default has none; `spare-short-queue` adds it
//! (`a_short_queue_is_spared_by_hand`). ns-2 also skips the test for the first packet above min. That is not
//! in the paper's algorithm and not here; `first_packet_above_min_may_drop` shows it.
//!
//! Adaptive RED: Floyd, Gummadi & Shenker, "Adaptive RED: An Algorithm for Increasing the Robustness of RED's
//! Active Queue Management", 2001. Every interval, max_p rises a little if the average is above the middle
//! fifth of the thresholds' range, and falls if it is below. There is no timer: each arrival first makes up
//! for the intervals since the last one. In these the average changes only by idle time, as an arrival would
//! find it. So adaptations come each interval whether packets arrive or not, as in the paper; ns-2 and ns-3
//! make one at the first arrival after an interval (`an_interval_without_arrivals_is_made_up_for`).

#![expect(clippy::inline_always, reason = "a simulator's loop over packets is made of these calls")]

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::{
    Chance, EarlyTest, Ewma, IdleClock, RedKnobs, check_red, keep_unit, out_of_reach, without_effect,
};
use super::{Aqm, AqmBlock, Verdict};
use crate::units::defaults::{millis, probability};
use crate::units::{UnitError, require};
use crate::{
    Bitrate, Block, Bytes, Context, DelayTarget, Depth, Duration, Environment, Header, Instant,
    KeysWithoutEffect, Occupancy, Origin, Probability, PseudoCode, Reason, Thresholds, Unit, Weight,
    idle_keys,
};

/// The parameters that all blocks of the RED family have.
pub trait RedFamily {
    /// Returns the limit of the queue.
    fn limit(&self) -> Depth;

    /// Returns the weight of the newest sample in an average.
    fn weight(&self) -> Weight;

    /// Returns the parameters of the tests.
    fn knobs(&self) -> RedKnobs;

    /// Returns the keys without effect, where there are these threshold sets, each with its key, and packets
    /// have sizes in this range.
    fn without_effect(
        &self,
        sets: &[(&'static str, Thresholds)],
        sizes: &RangeInclusive<u64>,
    ) -> KeysWithoutEffect {
        let mut idle = out_of_reach(self.limit(), sets, sizes);
        let unit = sets.first().map(|(_, set)| set.unit());
        idle.extend(unit.and_then(|unit| without_effect(&self.knobs(), unit)));
        idle
    }
}

/// Returns what may wait without a drop: no average exceeds the longest queue, so none reaches a threshold
/// before it does. `None` where the limit counts something else than the thresholds.
pub(super) fn below_thresholds(limit: Depth, sets: &[Thresholds]) -> Option<Depth> {
    let least = sets.iter().map(|set| set.min() as u64).min()?;
    match (limit, sets.first()?.unit()) {
        (Depth::Packets(limit), Unit::Packets) => Some(Depth::Packets(limit.min(least))),
        (Depth::Bytes(limit), Unit::Bytes) => Some(Depth::Bytes(limit.min(least))),
        _ => None,
    }
}

/// Adds to a block of the RED family the parameters that all of them have.
macro_rules! red_params {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[serde_with::skip_serializing_none]
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
            /// Queue limit, in packets (`868p`), in bytes (`500kB`), or as a time (`50ms`) at the rate of the
            /// link.
            #[schemars(with = "crate::units::Limit")]
            pub limit: Depth,
            /// The newest sample's weight in the average queue length (w_q).
            #[serde(default = "crate::units::defaults::weight::<2, 1000>")]
            pub weight: Weight,
            /// Let at least 1/p packets pass between two drops, as ns-2's RED does by default.
            #[serde(default = "crate::units::defaults::on")]
            pub wait: bool,
            /// Above max, let the drop probability rise to 1 at twice max instead of dropping all (Floyd
            /// 2000).
            #[serde(default)]
            pub gentle: bool,
            /// Mark ECN-capable packets that it would drop by chance, and let them in (RFC 3168, section 5).
            /// Above max, and where there is no room, it drops them all the same (section 7); with
            /// `"mark-above-max"` it marks them there, too, as Linux does without `harddrop`. `"mark-only"`
            /// marks in both places and drops no other packet early (Linux `nodrop`); `"mark-only-below-max"`
            /// drops all above max. TCP flows are capable with the key `ecn`, on real packets also with
            /// `[live] sysctl = { "net.ipv4.tcp_ecn" = 1 }`.
            #[serde(default)]
            pub ecn: crate::aqm::EcnMode,
            /// The mean packet size, for idle time and byte-mode probabilities.
            #[serde(default = "crate::units::defaults::bytes::<1000>")]
            pub mean_packet: Bytes,
            /// With thresholds in bytes: drop a packet with a probability in proportion to its size (Floyd &
            /// Jacobson 1993, section 7). With `false` the probability is the same for all packets, as on
            /// Linux and most routers.
            #[serde(default = "crate::units::defaults::on")]
            pub scale_by_size: bool,
        }

        impl crate::aqm::red::RedFamily for $name {
            fn limit(&self) -> Depth {
                self.limit
            }

            fn weight(&self) -> Weight {
                self.weight
            }

            fn knobs(&self) -> crate::aqm::RedKnobs {
                crate::aqm::RedKnobs {
                    spread: true,
                    wait: self.wait,
                    gentle: self.gentle,
                    ecn: self.ecn,
                    mean_packet: self.mean_packet,
                    scale_by_size: self.scale_by_size,
                }
            }
        }
    };
}
pub(crate) use red_params;

/// The default weight of an average.
pub(super) const WEIGHT: Weight = Weight::literal(0.002);

red_params! {
    /// Parameters of [`Red`].
    RedParams {
        /// `min/max/max_p`, in packets (`30/90/0.05`) or bytes (`30kB/90kB/0.05`). Required, unless
        /// `target-delay` is given.
        thresholds: Option<Thresholds>,
        /// Drop early only if more than one packet waits, whatever the average, as ns-2's `Queue/RED` does
        /// (`qlen > 1`). With a shorter queue the spacing of drops is reset, as below min. A full queue still
        /// drops. `false` is the algorithm of Floyd & Jacobson.
        #[serde(default)] spare_short_queue: bool,
        /// Adaptive RED (Floyd, Gummadi & Shenker 2001): move max_p so that the average stays in the middle
        /// of the thresholds' range, from 40 % to 60 % of it. The paper also sets `gentle`.
        #[serde(default)] adaptive: bool,
        /// With `adaptive`: how often max_p is adapted (interval).
        #[serde(default = "millis::<500>")] adapt_interval: Duration,
        /// With `adaptive`: by how much max_p rises, or by a quarter of it, if that is less (alpha).
        #[serde(default = "probability::<1, 100>")] adapt_increment: Probability,
        /// With `adaptive`: max_p falls to this share of it (beta).
        #[serde(default = "probability::<9, 10>")] adapt_factor: Probability,
        /// With `adaptive`: max_p does not fall further once it is below this.
        #[serde(default = "probability::<1, 100>")] adapt_least: Probability,
        /// With `adaptive`: max_p does not rise further once it is above this.
        #[serde(default = "probability::<1, 2>")] adapt_most: Probability,
        /// In place of `thresholds` and `weight`: choose them for this queueing delay, as the paper does by
        /// default with 5ms. min is half of the delay in mean packets at the link's rate, and at least 5; max
        /// is 3 min, and `max_p` begins at 0.1; the weight is 1 - exp(-1/C), with C mean packets a second.
        target_delay: Option<Duration>,
    }
}

/// The longest queue that `spare-short-queue` spares, in packets (ns-2's `red.cc`: `qlen > 1`).
const SHORT: u64 = 1;

/// The least min that the paper chooses for a target delay, in packets; max is three times min.
const LEAST_MIN: u64 = 5;

/// The first max_p for a target delay.
const FIRST_MAX_P: f64 = 0.1;

/// The part of the thresholds' range, from min, in which Adaptive RED keeps the average.
const MIDDLE: (f64, f64) = (0.4, 0.6);

/// At most so many adaptations are made up for at once. No more than 50 lie between any two values of max_p,
/// with the paper's parameters.
const MOST_ADAPTATIONS: u64 = 1024;

/// The shortest interval between adaptations: they are made up for one by one.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// Random Early Detection over the whole queue, blind to color.
#[derive(Clone, Debug)]
pub struct Red {
    params: RedParams,
    unit: Unit,
    average: Ewma,
    idle: IdleClock,
    test: EarlyTest,
    max_p: f64,
    /// The range in which Adaptive RED keeps the average.
    middle: (f64, f64),
    /// When max_p is adapted next: never, unless it is adaptive.
    next_adaptation: Instant,
}

impl RedParams {
    /// The threshold sets, each with its key. With a target delay, the smallest that it can give.
    fn sets(&self) -> Vec<(&'static str, Thresholds)> {
        let given = self.thresholds.map(|set| ("thresholds", set));
        let chosen = self.target_delay.map(|_| ("target-delay", least_thresholds()));
        given.or(chosen).into_iter().collect()
    }

    /// Checks that either thresholds are given, or the delay that they are chosen for.
    fn check_thresholds(&self) -> Result<(), UnitError> {
        let Some(delay) = self.target_delay else {
            let text = "missing; write min/max/max_p, such as 30/90/0.05, or a `target-delay`";
            return require(self.thresholds.is_some(), "thresholds", text);
        };
        let text = "it chooses the thresholds; leave one of the two out";
        require(self.thresholds.is_none(), "target-delay", text)?;
        require(!delay.is_zero(), "target-delay", "a delay is longer than 0s, such as 5ms")?;
        let text = "`target-delay` chooses the weight; leave one of the two out";
        require(self.weight == WEIGHT, "weight", text)
    }

    /// Checks that max_p is adapted one step at a time, and can rise.
    fn check_adaptation(&self) -> Result<(), UnitError> {
        let text = "it is above `adapt-most`; max_p lies between the two, such as 0.01 and 0.5";
        require(self.adapt_least <= self.adapt_most, "adapt-least", text)?;
        let text = "an interval is at least 1ms, such as 500ms";
        require(self.adapt_interval >= SHORTEST_INTERVAL, "adapt-interval", text)?;
        let text = "a factor is above 0, such as 0.9: from 0, max_p would never rise";
        require(self.adapt_factor.get() > 0.0, "adapt-factor", text)?;
        let text = "with `adaptive`, max_p begins above 0: from 0, it would never rise";
        let can_rise = !self.adaptive || self.thresholds.is_none_or(|set| set.max_p() > 0.0);
        require(can_rise, "thresholds", text)
    }

    fn without_adaptive(&self) -> KeysWithoutEffect {
        let text = "max_p changes only with `adaptive = true`; without it this has no effect";
        let key = |key, is_set| (is_set && !self.adaptive, key, text);
        idle_keys([
            key("adapt-interval", self.adapt_interval != millis::<500>()),
            key("adapt-increment", self.adapt_increment != probability::<1, 100>()),
            key("adapt-factor", self.adapt_factor != probability::<9, 10>()),
            key("adapt-least", self.adapt_least != probability::<1, 100>()),
            key("adapt-most", self.adapt_most != probability::<1, 2>()),
        ])
    }
}

fn least_thresholds() -> Thresholds {
    Thresholds::new(LEAST_MIN, 3 * LEAST_MIN, Unit::Packets, Probability::literal(FIRST_MAX_P))
        .expect("in order")
}

/// The delay for which min is the least.
fn least_delay(mean_packet: Bytes, rate: Bitrate) -> Duration {
    rate.time_of(mean_packet).saturating_mul(2 * LEAST_MIN)
}

/// min, max and w_q for a queueing delay (Floyd, Gummadi & Shenker 2001, section 4).
fn chosen_for(delay: Duration, mean_packet: Bytes, rate: Bitrate) -> (f64, f64, Weight) {
    let packets_a_second = rate.as_bps() as f64 / 8.0 / mean_packet.get() as f64;
    let min = (delay.as_secs_f64() * packets_a_second / 2.0).max(LEAST_MIN as f64);
    let weight = one_minus_exp_of_minus((1.0 / packets_a_second).min(1.0));
    (min, 3.0 * min, Weight::new(weight).expect("above 0 and below 1"))
}

/// 1 - exp(-x) for x up to 1, by its series: the same bits on every platform.
fn one_minus_exp_of_minus(x: f64) -> f64 {
    (2..=20).rev().fold(1.0, |rest, n| 1.0 - x / f64::from(n) * rest) * x
}

pub(super) const RED_CODE: PseudoCode = PseudoCode {
    lines: &[
        "for each packet that arrives:",
        "    average ← (1 − weight) · average + weight · queue",
        "    if the queue has no room: drop (overflow)",
        "    if average < min: pass",
        "    if average ≥ max: drop (forced)",
        "    p_b ← max_p · (average − min) / (max − min)",
        "    p_a ← p_b / (1 − count · p_b), spread over the packets since the last drop",
        "    if random number < p_a: drop, or mark with ECN (early)",
        "    else: pass",
    ],
    acts: &[(Reason::Overflow, &[2]), (Reason::Forced, &[1, 4]), (Reason::Early, &[1, 5, 6, 7])],
};

impl Block for Red {
    type Params = RedParams;
    const NAME: &'static str = "red";
    const SUMMARY: &'static str = "drops at random as the average queue grows, regardless of color";
    const ORIGIN: Origin =
        Origin::published(1993, "Floyd & Jacobson 1993, figure 2; Floyd, Gummadi & Shenker 2001")
            .in_linux("red", "2.2");
    const BATCHED: bool = true;
    const PSEUDO_CODE: Option<PseudoCode> = Some(RED_CODE);

    fn check(params: &RedParams) -> Result<(), UnitError> {
        params.check_thresholds()?;
        params.check_adaptation()?;
        check_red(params.mean_packet, &params.sets())
    }

    fn keys_without_effect(params: &RedParams, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        let mut idle = params.without_effect(&params.sets(), sizes);
        idle.extend(params.without_adaptive());
        idle
    }
}

impl AqmBlock for Red {
    fn keys_without_effect_at(params: &RedParams, rate: Bitrate) -> KeysWithoutEffect {
        let least = least_delay(params.mean_packet, rate);
        let short = params.target_delay.filter(|delay| *delay < least);
        let notice = short.map(|delay| {
            let text = format!(
                "`{delay}`: at {rate}, thresholds for it would be below the least ones, {LEAST_MIN} and {} packets of `mean-packet`, \
                 which are for {least} and act here; write {least} or more, or `thresholds`",
                3 * LEAST_MIN
            );
            ("target-delay", text)
        });
        notice.into_iter().collect()
    }

    fn delay_targets(params: &RedParams) -> Vec<DelayTarget> {
        let of = |target: Duration| {
            let half = Duration::from_nanos(target.as_nanos() / 2);
            DelayTarget { spares_short: true, ..DelayTarget::at("target-delay", target, half) }
        };
        params.target_delay.map(of).into_iter().collect()
    }

    fn limit(params: &RedParams, _: Bitrate) -> Option<Depth> {
        Some(params.limit)
    }

    fn spared(params: &RedParams, rate: Bitrate) -> Option<Depth> {
        match (params.thresholds, params.target_delay) {
            (None, Some(delay)) => {
                // The thresholds count packets, however small these are.
                let least = chosen_for(delay, params.mean_packet, rate).0 as u64;
                Some(match params.limit {
                    Depth::Packets(limit) => Depth::Packets(limit.min(least)),
                    Depth::Bytes(limit) => Depth::Bytes(limit.min(least)),
                })
            }
            (thresholds, _) => below_thresholds(params.limit, &[thresholds?]),
        }
    }

    fn new(mut params: RedParams, environment: Environment) -> Self {
        let set = params.thresholds.unwrap_or_else(least_thresholds);
        let mut test = EarlyTest::new(set, params.knobs());
        let (mut min, mut max) = (set.min(), set.max());
        if let Some(delay) = params.target_delay {
            (min, max, params.weight) = chosen_for(delay, params.mean_packet, environment.rate);
            test.retune(min, max);
        }
        let middle = |part| min + part * (max - min);
        Self {
            unit: set.unit(),
            average: Ewma::default(),
            idle: IdleClock::new(params.mean_packet, environment.rate),
            max_p: test.max_p(),
            test,
            middle: (middle(MIDDLE.0), middle(MIDDLE.1)),
            next_adaptation: if params.adaptive {
                Instant::ZERO + params.adapt_interval
            } else {
                Instant::NEVER
            },
            params,
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        keep_unit("thresholds", before.unit, self.unit)?;
        let begins = self.params.adaptive && !before.params.adaptive;
        require(!begins, "adaptive", "it cannot begin during a run; start a run with it")?;
        self.average = before.average;
        self.idle.take_over(&before.idle);
        let set_max_p = self.test.max_p() != before.test.max_p();
        self.test.take_over(&before.test);
        if self.params.adaptive {
            self.next_adaptation = before.next_adaptation;
            if !set_max_p {
                self.max_p = before.max_p;
            }
        }
        Ok(())
    }
}

impl Red {
    /// Makes up for the adaptations that were due by `now`.
    #[cold]
    fn make_up(&mut self, now: Instant) {
        if !self.params.adaptive {
            return; // It is the end of time.
        }
        let interval = self.params.adapt_interval;
        for _ in 0..MOST_ADAPTATIONS {
            if self.next_adaptation > now {
                return;
            }
            let mut average = self.average;
            average.decay(self.params.weight, self.idle.missed(self.next_adaptation));
            self.adapt(average.get());
            self.next_adaptation += interval;
        }
        let due = now.as_nanos() / interval.as_nanos();
        self.next_adaptation = Instant::ZERO + interval.saturating_mul(due.saturating_add(1));
    }

    /// One adaptation of max_p, at this average (Floyd, Gummadi & Shenker 2001, figure 1).
    fn adapt(&mut self, average: f64) {
        let RedParams { adapt_increment, adapt_factor, adapt_least, adapt_most, .. } = &self.params;
        if average > self.middle.1 && self.max_p <= adapt_most.get() {
            self.max_p += adapt_increment.get().min(self.max_p / 4.0);
        } else if average < self.middle.0 && self.max_p >= adapt_least.get() {
            self.max_p *= adapt_factor.get();
        }
    }
}

impl Aqm for Red {
    #[inline(always)]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        if self.next_adaptation <= cx.now {
            self.make_up(cx.now);
        }
        let weight = self.params.weight;
        self.average.decay(weight, self.idle.missed(cx.now));
        self.average.update(weight, queue.total(self.unit));
        let verdict = if queue.is_full_for(packet, self.params.limit) {
            self.test.lost();
            Verdict::Drop(Reason::Overflow)
        } else if self.params.spare_short_queue && queue.packets() <= SHORT {
            self.test.rest();
            Verdict::Pass
        } else {
            let chance = Chance::with_max_p(self.max_p);
            Verdict::of(self.test.judge_by(&chance, self.average.get(), packet, cx.rng))
        };
        self.idle.settle(verdict.admits(packet), cx.now);
        verdict
    }

    fn on_idle(&mut self, since: Instant) {
        self.idle.begin(since);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let average = ("average total", self.average.get());
        if self.params.adaptive { vec![average, ("max_p", self.max_p)] } else { vec![average] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::EcnMode;
    use crate::{Bitrate, Color, Ecn, FlowId, Rng};

    fn red(thresholds: &str, weight: f64, wait: bool) -> Red {
        let params = RedParams {
            thresholds: Some(thresholds.parse().unwrap()),
            spare_short_queue: false,
            adaptive: false,
            adapt_interval: millis::<500>(),
            adapt_increment: probability::<1, 100>(),
            adapt_factor: probability::<9, 10>(),
            adapt_least: probability::<1, 100>(),
            adapt_most: probability::<1, 2>(),
            target_delay: None,
            limit: Depth::Packets(100),
            weight: Weight::new(weight).unwrap(),
            wait,
            gentle: false,
            ecn: EcnMode::Off,
            mean_packet: Bytes::new(1000),
            scale_by_size: true,
        };
        Red::new(params, Environment { rate: Bitrate::from_bps(8_000_000).unwrap() })
    }

    fn queue(packets: u32) -> Occupancy {
        let mut queue = Occupancy::EMPTY;
        (0..packets).for_each(|_| queue.add(Color::Yellow, 1000));
        queue
    }

    #[test]
    fn average_by_hand() {
        let mut red = red("50/90/0.1", 0.25, false);
        let mut rng = Rng::stream(1, "red");
        let packet = Header::new(FlowId(0), 1000);
        for (waiting, average) in [(8, 2.0), (8, 3.5), (0, 2.625)] {
            let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
            assert_eq!(red.on_arrival(&packet, &queue(waiting), cx), Verdict::Pass);
            assert_eq!(red.average.get(), average);
        }
        // Idle for 2.5 packet times of 1 ms: two missed packets, then the update with q = 0.
        red.on_idle(Instant::from_nanos(1_000_000));
        let cx = &mut Context { now: Instant::from_nanos(3_500_000), rng: &mut rng };
        red.on_arrival(&packet, &queue(0), cx);
        assert_eq!(red.average.get(), 2.625 * 0.75 * 0.75 * 0.75);
    }

    #[test]
    fn capable_packets_are_told_below_max_and_dropped_above() {
        let verdicts = |waiting: u32, ecn: Ecn| {
            let mut red = red("1/3/1", 1.0, false);
            red.test = EarlyTest::new(
                red.params.thresholds.unwrap(),
                RedKnobs { ecn: EcnMode::BelowMax, ..red.params.knobs() },
            );
            let mut rng = Rng::stream(1, "red");
            let mut seen = [0; 3];
            for _ in 0..300 {
                let mut packet = Header { ecn, ..Header::new(FlowId(0), 1000) };
                let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
                let verdict = red.clone().on_arrival(&packet, &queue(waiting), cx);
                let applied = verdict.apply(&mut packet);
                assert_eq!(applied.is_ok(), verdict.admits(&packet));
                match (applied, packet.ecn) {
                    (Ok(None), same) if same == ecn => seen[0] += 1,
                    (Ok(Some(Reason::Early)), Ecn::Congested) => seen[1] += 1,
                    (Err(Reason::Early | Reason::Forced | Reason::Overflow), same) if same == ecn => {
                        seen[2] += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            seen
        };
        // Half-way between 1 and 3 with max_p 1, a first packet meets p = 0.5.
        let [passed, marked, dropped] = verdicts(2, Ecn::Capable0);
        assert!(passed > 100 && marked > 100 && dropped == 0, "{passed} {marked}");
        assert_eq!(
            verdicts(2, Ecn::NotCapable),
            [passed, 0, marked],
            "the same random decisions, but dropped"
        );
        assert_eq!(verdicts(3, Ecn::Capable1), [0, 0, 300], "above max");
        assert_eq!(verdicts(100, Ecn::Capable1), [0, 0, 300], "no room");
        assert_eq!(verdicts(0, Ecn::Capable1), [300, 0, 0]);
    }

    #[test]
    fn full_queue_overflows_whatever_the_average() {
        let mut red = red("50/90/0.1", 0.002, true);
        let mut rng = Rng::stream(1, "red");
        let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
        let verdict = red.on_arrival(&Header::new(FlowId(0), 1000), &queue(100), cx);
        assert_eq!(verdict, Verdict::Drop(Reason::Overflow));
    }

    #[test]
    fn a_short_queue_is_spared_by_hand() {
        // Weight 1/4 and 40, 1, 0, 2, 1 packets waiting: averages 10, 7.75, 5.8125, 4.859375, 3.89453125, of
        // which the first two are above max 6. With min 0 and max_p 1, p_b is a sixth of the average: .969,
        // .810, .649 for the others. One packet after a drop p_b / (1 - p_b) is above 1: each is dropped.
        let early = Verdict::Drop(Reason::Early);
        let forced = Verdict::Drop(Reason::Forced);
        let verdicts = |spare: bool, seed: u64| {
            let mut red = red("0/6/1", 0.25, false);
            red.params.spare_short_queue = spare;
            let mut rng = Rng::stream(seed, "red");
            let packet = Header::new(FlowId(0), 1000);
            let seen = [40, 1, 0, 2, 1].map(|waiting| {
                let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
                red.on_arrival(&packet, &queue(waiting), cx)
            });
            assert_eq!(red.average.get(), 3.894_531_25, "the average is the same for both");
            seen
        };
        assert_eq!(verdicts(false, 1), [forced, forced, early, early, early]);
        // Spared where 1, 0 and 1 wait. The spacing then starts anew: 2 waiting packets meet p_b itself.
        let mut dropped = 0;
        for seed in 0..1000 {
            let [first, one, none, two, last] = verdicts(true, seed);
            assert_eq!([first, one, none, last], [forced, Verdict::Pass, Verdict::Pass, Verdict::Pass]);
            dropped += u32::from(two == early);
        }
        assert!((770..850).contains(&dropped), "{dropped} of 1000 at p = .81");
    }

    #[test]
    fn a_full_short_queue_drops() {
        let mut red = red("0/6/1", 0.25, false);
        (red.params.spare_short_queue, red.params.limit) = (true, Depth::Packets(1));
        let mut rng = Rng::stream(1, "red");
        let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
        let verdict = red.on_arrival(&Header::new(FlowId(0), 1000), &queue(1), cx);
        assert_eq!(verdict, Verdict::Drop(Reason::Overflow));
    }

    #[test]
    fn first_packet_above_min_may_drop() {
        // p_b = 1 at an average just below max: the first packet above min is lost at once.
        let mut red = red("1/3/1", 1.0, false);
        let mut rng = Rng::stream(1, "red");
        let drops = (0..200).filter(|_| {
            let mut fresh = red.clone();
            let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
            fresh.on_arrival(&Header::new(FlowId(0), 1000), &queue(2), cx) != Verdict::Pass
        });
        let drops = drops.count();
        assert!((70..130).contains(&drops), "p_a = 0.5 on the first packet: {drops} of 200");
        red.on_idle(Instant::ZERO);
    }

    fn parsed(table: &str) -> RedParams {
        serde_json::from_str(table).unwrap()
    }

    fn adaptive(keys: &str) -> Red {
        let table = format!(r#"{{"thresholds": "20/80/0.1", "limit": "200p", "adaptive": true {keys}}}"#);
        Red::new(parsed(&table), Environment { rate: Bitrate::from_bps(8_000_000).unwrap() })
    }

    #[track_caller]
    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-12 * expected, "{found} {expected}");
    }

    #[test]
    fn max_p_follows_the_average() {
        // 55 lies in the middle, from 44 to 56.
        let mut red = adaptive("");
        for (average, max_p) in [
            (20.0, 0.09),
            (20.0, 0.081),
            (55.0, 0.081),
            (65.0, 0.091),
            (65.0, 0.101),
            (65.0, 0.111),
            (40.0, 0.0999),
            (30.0, 0.089_91),
        ] {
            red.adapt(average);
            assert_close(red.max_p, max_p);
        }
        // A quarter of a small max_p; none above 0.5 or below 0.01.
        for (from, average, to) in [
            (0.02, 65.0, 0.025),
            (0.5, 65.0, 0.51),
            (0.51, 65.0, 0.51),
            (0.01, 20.0, 0.009),
            (0.009, 20.0, 0.009),
        ] {
            red.max_p = from;
            red.adapt(average);
            assert_close(red.max_p, to);
        }
    }

    fn arrive(red: &mut Red, millis: u64, waiting: u32, rng: &mut Rng) -> Verdict {
        let cx = &mut Context { now: Instant::ZERO + Duration::from_millis(millis), rng };
        red.on_arrival(&Header::new(FlowId(0), 1000), &queue(waiting), cx)
    }

    #[test]
    fn an_interval_without_arrivals_is_made_up_for() {
        let mut rng = Rng::stream(1, "red");
        let mut red = adaptive(r#", "weight": 1"#);
        arrive(&mut red, 499, 70, &mut rng);
        assert_eq!(red.max_p, 0.1);
        // The server is busy: at 0.5, 1 and 1.5 s the average is still 70.
        arrive(&mut red, 1500, 50, &mut rng);
        assert_close(red.max_p, 0.13);
        arrive(&mut red, 1999, 50, &mut rng);
        assert_close(red.max_p, 0.13);
        // It is idle from 2.1 s on, so that the average is 50 at 2 s, and 0 at 2.5, 3 and 3.5 s.
        red.on_idle(Instant::ZERO + Duration::from_millis(2100));
        arrive(&mut red, 3700, 0, &mut rng);
        assert_close(red.max_p, 0.13 * 0.9 * 0.9 * 0.9);
        assert_eq!(red.gauges()[1], ("max_p", red.max_p));
        // An idle year ends at once, below 0.01.
        red.on_idle(Instant::ZERO + Duration::from_millis(3800));
        arrive(&mut red, 365 * 86_400_000, 0, &mut rng);
        assert!((0.009..0.01).contains(&red.max_p), "{}", red.max_p);
        assert_eq!(red.next_adaptation, Instant::ZERO + Duration::from_millis(365 * 86_400_000 + 500));
    }

    #[test]
    fn a_packet_meets_the_adapted_max_p() {
        let dropped = |max_p| {
            let mut rng = Rng::stream(1, "red");
            let mut red = adaptive(r#", "weight": 1, "wait": false"#);
            red.max_p = max_p;
            let hits = (0..2000).filter(|_| {
                let mut fresh = red.clone();
                arrive(&mut fresh, 1, 50, &mut rng) != Verdict::Pass
            });
            hits.count()
        };
        let (few, many) = (dropped(0.1), dropped(0.5));
        assert!((60..140).contains(&few) && (420..580).contains(&many), "p = 0.05 and 0.25: {few} {many}");
    }

    #[test]
    fn thresholds_and_weight_follow_from_a_target_delay() {
        for (rate, mean_packet, min, weight) in [
            (10_000_000, 500, 6.25, 3.999_200_106_656e-4),
            (100_000_000, 1000, 31.25, 7.999_680_008_533_163e-5),
            (1_000_000, 1000, 5.0, 7.968_085_162_939_37e-3),
        ] {
            let table =
                format!(r#"{{"target-delay": "5ms", "mean-packet": "{mean_packet}B", "limit": "200p"}}"#);
            let red = Red::new(parsed(&table), Environment { rate: Bitrate::from_bps(rate).unwrap() });
            let (found_min, found_max, found) = chosen_for(
                Duration::from_millis(5),
                Bytes::new(mean_packet),
                Bitrate::from_bps(rate).unwrap(),
            );
            assert_eq!((found_min, found_max, red.max_p), (min, 3.0 * min, 0.1));
            assert_eq!(red.params.weight, found);
            assert_close(found.get(), weight);
        }
        assert_close(one_minus_exp_of_minus(1.0), 0.632_120_558_828_557_7);
        // The test has these thresholds: an average of 18.75 packets is at max.
        let table = r#"{"target-delay": "5ms", "mean-packet": "500B", "limit": "200p"}"#;
        let rate = Environment { rate: Bitrate::from_bps(10_000_000).unwrap() };
        let packet = Header::new(FlowId(0), 500);
        let judge =
            |average| Red::new(parsed(table), rate).test.judge(average, &packet, &mut Rng::stream(1, "red"));
        assert_eq!(judge(18.75), Some(super::super::Severity::Forced));
        assert_eq!((judge(6.2), judge(18.7)), (None, None), "waits for 1/p packets");
    }

    #[test]
    fn max_p_stays_as_it_is_unless_adaptive() {
        let mut rng = Rng::stream(1, "red");
        let mut plain = red("20/80/0.1", 1.0, true);
        arrive(&mut plain, 499, 70, &mut rng);
        arrive(&mut plain, 100_000, 70, &mut rng);
        assert_eq!((plain.max_p, plain.gauges().len()), (0.1, 1));
    }

    #[test]
    fn keys_without_adaptation_and_thresholds_out_of_reach_are_noticed() {
        let idle = |keys: &str| {
            let params = parsed(&format!(r#"{{"limit": "15p", {keys}}}"#));
            Red::keys_without_effect(&params, &(40..=1000))
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
        };
        assert_eq!(idle(r#""thresholds": "5/15/0.1""#), [""; 0]);
        assert_eq!(idle(r#""thresholds": "5/15/0.1", "adapt-most": 0.4"#), ["adapt-most"]);
        assert_eq!(idle(r#""thresholds": "5/15/0.1", "adapt-most": 0.4, "adaptive": true"#), [""; 0]);
        assert_eq!(idle(r#""target-delay": "5ms""#), [""; 0]);
        let short = parsed(r#"{"limit": "5p", "target-delay": "5ms"}"#);
        assert_eq!(Red::keys_without_effect(&short, &(40..=1000))[0].0, "target-delay");
    }
}
