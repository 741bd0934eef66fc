//! PI2: De Schepper, Bondarenko, Tsang & Briscoe, "PI2: A Linearized AQM for both Classic and Scalable TCP",
//! 2016, for one queue; the base AQM of RFC 9332, appendix A, with its constants.
//!
//! Every update interval, a controller moves a probability p' by how far the queueing delay is from the
//! target and by how much it has changed. Packets are dropped, or marked, at the head of the queue with its
//! square. So p' is in proportion to the rate of signals that flows control, and needs no scaling tables as
//! in PIE.
//!
//! The controller is [`PiController`], which `DualPI2` uses, too. The queueing delay is the age of the packet
//! at the head. There is no timer: each call first makes up for the updates that were due, between which the
//! head has aged.
//!
//! ## Deviations
//! - RFC 9332 leaves the time of the first update open: here updates come at the multiples of `update` from
//!   the start of the run (`updates_see_the_age_of_the_head`).
//! - If no packet arrives or departs for more than 100 000 updates (25 minutes by default), the updates
//!   beyond are left out, but for the last (`a_year_is_made_up_for_at_once`).
//! - The paper decides by chance, RFC 9332 by counting up (`spread`); the RFC is the default.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aqm, AqmBlock, PiController, PiLaw, Verdict, check_gains, check_target, room};
use crate::units::defaults::{millis, on, probability};
use crate::units::{AboveZero, UnitError, require};
use crate::{
    Bitrate, Block, Context, DelayTarget, Depth, Duration, Environment, Header, KeysWithoutEffect, Occupancy,
    Origin, Probability, PseudoCode, Reason, Rng, idle_keys,
};

/// Parameters of [`Pi2`].
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pi2Params {
    /// The queueing delay that the controller aims at.
    #[serde(default = "millis::<15>")]
    pub target: Duration,
    /// The largest usual round-trip time (`RTT_max`): the defaults of `update`, `alpha` and `beta` follow
    /// from it.
    #[serde(default = "millis::<100>")]
    pub rtt_max: Duration,
    /// The time between two updates, at least 1ms (`Tupdate`). Default: the target, or a third of `rtt-max`,
    /// if that is less.
    pub update: Option<Duration>,
    /// How much p' changes in each update for each second by which the delay is above the target (alpha).
    /// Default: 0.1 `update` over the square of `rtt-max`, which is 0.15.
    pub alpha: Option<AboveZero>,
    /// How much p' changes for each second by which the delay has grown since the last update (beta).
    /// Default: 0.3 over `rtt-max`, which is 3.
    pub beta: Option<AboveZero>,
    /// Drop or mark a packet each time the probabilities of the packets since the last have added up to more
    /// than 1, as in RFC 9332; otherwise each by chance, as in the paper.
    #[serde(default = "on")]
    pub spread: bool,
    /// Mark ECN-capable packets instead of dropping them while the probability is below `mark-below`. Where
    /// there is no room, they are dropped all the same. TCP flows are capable with the key `ecn`, on real
    /// packets also with `[live] sysctl = { "net.ipv4.tcp_ecn" = 1 }`.
    #[serde(default)]
    pub ecn: bool,
    /// With `ecn`: from this probability on, ECN-capable packets are dropped, too (`p_Cmax`).
    #[serde(default = "probability::<1, 4>")]
    pub mark_below: Probability,
    /// Queue limit, in packets (`200p`), in bytes (`300kB`), or as a time (`50ms`) at the rate of the link.
    /// Default: what the link sends in 250 ms, in packets of 1500 bytes, and at least `1000p`.
    #[schemars(with = "Option<crate::units::Limit>")]
    pub limit: Option<Depth>,
}

/// The shortest `update`: updates are made up for one by one.
const SHORTEST_UPDATE: Duration = Duration::from_millis(1);

impl Pi2Params {
    /// The update interval, alpha and beta (RFC 9332, appendix A.1, figure 2).
    fn gains(&self) -> (Duration, f64, f64) {
        let third = Duration::from_nanos(self.rtt_max.as_nanos() / 3);
        let update = self.update.unwrap_or_else(|| self.target.min(third));
        let rtt = self.rtt_max.as_secs_f64();
        let alpha = self.alpha.map_or_else(|| 0.1 * update.as_secs_f64() / (rtt * rtt), AboveZero::get);
        (update, alpha, self.beta.map_or_else(|| 0.3 / rtt, AboveZero::get))
    }
}

/// Controls the queueing delay by drops at the head, with a squared probability.
#[derive(Clone, Debug)]
pub struct Pi2 {
    params: Pi2Params,
    limit: Depth,
    controller: PiController,
    /// The probabilities of the packets since the last hit, added up.
    count: f64,
}

const CODE: PseudoCode = PseudoCode {
    lines: &[
        "at each update:",
        "    p' ← p' + alpha · (delay − target) + beta · (delay − delay at the last update)",
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "for each packet at the head:",
        "    with `spread`: count ← count + p'²; hit if count > 1, and count ← count − 1",
        "    otherwise: hit if two random numbers are both < p'",
        "    if hit: drop, or mark if p'² < `mark-below` and the packet is capable (controller)",
    ],
    acts: &[(Reason::Controller, &[1, 5, 6, 7]), (Reason::Overflow, &[3])],
};

impl Block for Pi2 {
    type Params = Pi2Params;
    const NAME: &'static str = "pi2";
    const SUMMARY: &'static str =
        "drops at the head, with the square of a probability that keeps the queueing delay at a target";
    const ORIGIN: Origin =
        Origin::published(2016, "De Schepper et al. 2016, section 4; RFC 9332, appendix A");
    const BATCHED: bool = true;
    const PSEUDO_CODE: Option<PseudoCode> = Some(CODE);

    fn check(params: &Pi2Params) -> Result<(), UnitError> {
        require(!params.rtt_max.is_zero(), "rtt-max", "a round-trip time is longer than 0s, such as 100ms")?;
        let text = "the time between two updates is at least 1ms, such as 15ms; its default is at most the target and \
                    a third of `rtt-max`";
        require(params.gains().0 >= SHORTEST_UPDATE, "update", text)?;
        check_target(params.target, "15ms")?;
        check_gains(params.alpha, params.beta)
    }

    fn keys_without_effect(params: &Pi2Params, _sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        let no_marks = "packets are marked only with `ecn = true`; without it this has no effect";
        let given = params.update.is_some() && params.alpha.is_some() && params.beta.is_some();
        let no_defaults = "only defaults follow from it, and `update`, `alpha` and `beta` are all given";
        idle_keys([
            (!params.ecn && params.mark_below != probability::<1, 4>(), "mark-below", no_marks),
            (given && params.rtt_max != millis::<100>(), "rtt-max", no_defaults),
        ])
    }
}

impl AqmBlock for Pi2 {
    const PRECOMPUTABLE: bool = false;
    const NEEDS_HEAD: bool = true;

    fn limit(params: &Pi2Params, rate: Bitrate) -> Option<Depth> {
        Some(room::limit(params.limit, rate))
    }

    fn delay_targets(params: &Pi2Params) -> Vec<DelayTarget> {
        vec![DelayTarget::at("target", params.target, Duration::ZERO)]
    }

    fn new(params: Pi2Params, environment: Environment) -> Self {
        let (update, alpha, beta) = params.gains();
        let controller = PiController::new(PiLaw::exact(alpha, beta, 1.0), params.target, update);
        Self { limit: room::limit(params.limit, environment.rate), params, controller, count: 0.0 }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.controller.take_over(&before.controller);
        self.count = before.count;
        Ok(())
    }
}

impl Pi2 {
    fn probability(&self) -> f64 {
        self.controller.p() * self.controller.p()
    }

    /// Whether this packet is to be dropped or marked.
    fn is_due(&mut self, rng: &mut Rng) -> bool {
        if self.params.spread {
            return self.recur(self.probability());
        }
        let linear = self.controller.p();
        rng.chance(linear) && rng.chance(linear)
    }

    /// RFC 9332, appendix A.1, figure 5.
    fn recur(&mut self, probability: f64) -> bool {
        self.count += probability;
        let due = self.count > 1.0;
        if due {
            self.count -= 1.0;
        }
        due
    }
}

impl Aqm for Pi2 {
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.controller.settle(|| queue.head(), cx.now);
        Verdict::by_limit(packet, queue, self.limit)
    }

    fn on_departure(&mut self, packet: &Header, left: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        let head = left.head().map_or(packet.arrived, |left| left.min(packet.arrived));
        self.controller.settle(|| Some(head), cx.now);
        let Pi2Params { ecn, mark_below, .. } = self.params;
        if !self.is_due(cx.rng) {
            Verdict::Pass
        } else if ecn && self.probability() < mark_below.get() {
            Verdict::Notify(Reason::Controller)
        } else {
            Verdict::Drop(Reason::Controller)
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("probability", self.probability()), ("delay_s", self.controller.delay().as_secs_f64())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::environment;
    use crate::{Color, Ecn, FlowId, Instant};

    fn pi2(table: &str) -> Pi2 {
        Pi2::new(serde_json::from_str(table).unwrap(), environment())
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(now: u64) -> Instant {
        Instant::ZERO + millis(now)
    }

    #[track_caller]
    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-12 * expected, "{found} {expected}");
    }

    #[test]
    fn the_constants_follow_from_the_target_and_the_round_trip_time() {
        for (table, update, alpha, beta) in [
            ("{}", 15, 0.15, 3.0),
            (r#"{"target": "20ms", "rtt-max": "200ms"}"#, 20, 0.05, 1.5),
            (r#"{"rtt-max": "30ms"}"#, 10, 0.001 / 0.0009, 10.0),
            (r#"{"update": "30ms", "beta": 7}"#, 30, 0.3, 7.0),
        ] {
            let params: Pi2Params = serde_json::from_str(table).unwrap();
            let gains = params.gains();
            assert_eq!(gains.0, millis(update));
            assert_close(gains.1, alpha);
            assert_close(gains.2, beta);
        }
    }

    /// With this base probability, which does not move.
    fn held_at(table: &str, p: f64) -> Pi2 {
        let mut pi2 = pi2(table);
        let law = PiLaw::Exact { alpha: 0.0, beta: 0.0, p, most: 1.0 };
        pi2.controller = PiController::new(law, millis(15), millis(15));
        pi2
    }

    #[test]
    fn the_probability_is_the_square_of_what_the_controller_moves() {
        // At 15, 30 and 45 ms the head is 10, 20 and 30 ms old.
        let mut pi2 = pi2("{}");
        for (now, head, linear) in [(15, 5, 0.02925), (30, 10, 0.06), (45, 15, 0.09225)] {
            arrive(&mut pi2, now, &[head]);
            assert_close(pi2.controller.p(), linear);
            assert_close(pi2.probability(), linear * linear);
        }
    }

    #[test]
    fn hits_are_spread_out() {
        let hits = |probability, packets| {
            let mut pi2 = pi2("{}");
            let hits: Vec<u32> = (1..=packets).filter(|_| pi2.recur(probability)).collect();
            (hits, pi2.count)
        };
        assert_eq!(hits(0.375, 16), (vec![3, 6, 9, 11, 14], 1.0));
        assert_eq!(hits(0.5, 8).0, [3, 5, 7]);
        assert_eq!(hits(1.0, 5).0, [2, 3, 4, 5]);
    }

    #[test]
    fn by_chance_packets_are_hit_with_the_square() {
        let mut pi2 = held_at(r#"{"spread": false}"#, 0.5);
        let mut rng = Rng::stream(1, "aqm");
        let hits = (0..4000).filter(|_| pi2.is_due(&mut rng)).count();
        assert!((900..1100).contains(&hits), "{hits} of 4000 at 0.25");
    }

    /// Packets that came at these times wait.
    fn waiting(heads: &[u64]) -> Occupancy {
        let mut queue = Occupancy::EMPTY;
        (0..heads.len()).for_each(|_| queue.add(Color::Yellow, 1000));
        queue.set_head(heads.first().map(|&head| at(head)));
        queue
    }

    fn arrive(pi2: &mut Pi2, now: u64, heads: &[u64]) -> Verdict {
        let cx = &mut Context { now: at(now), rng: &mut Rng::stream(1, "aqm") };
        pi2.on_arrival(&Header::new(FlowId(0), 1000), &waiting(heads), cx)
    }

    fn depart(pi2: &mut Pi2, now: u64, arrived: u64, left: &[u64], ecn: Ecn) -> Verdict {
        let packet = Header { arrived: at(arrived), ecn, ..Header::new(FlowId(0), 1000) };
        let cx = &mut Context { now: at(now), rng: &mut Rng::stream(1, "aqm") };
        pi2.on_departure(&packet, &waiting(left), cx)
    }

    #[test]
    fn updates_see_the_age_of_the_head() {
        // Delays that the updates find, in milliseconds; p' by hand: 0.15 times what each has above 15 ms,
        // and 3 times the last.
        let expected = |delays: &[i32]| {
            let excess: i32 = delays.iter().map(|delay| delay - 15).sum();
            let last = delays.last().copied().unwrap_or(0);
            (f64::from(excess) * 0.000_15 + f64::from(last) * 0.003, millis(last.unsigned_abs().into()))
        };
        let assert_found = |pi2: &Pi2, delays: &[i32]| {
            let (p, delay) = expected(delays);
            assert!((pi2.controller.p() - p).abs() < 1e-12, "{} {p}", pi2.controller.p());
            assert_eq!(pi2.controller.delay(), delay);
        };
        let mut late = pi2("{}");
        // The head came at 4 ms: at 15 and 30 ms it is 11 and 26 ms old.
        arrive(&mut late, 14, &[4]);
        assert_eq!(late.controller.p(), 0.0);
        arrive(&mut late, 30, &[4]);
        assert_found(&late, &[11, 26]);
        // It leaves at 50 ms, and one that came at 40 ms is next: at 60 ms that is 20 ms old.
        depart(&mut late, 50, 4, &[40], Ecn::NotCapable);
        arrive(&mut late, 60, &[40]);
        assert_found(&late, &[11, 26, 41, 20]);
        // An older one of another class than that which leaves.
        let mut classes = pi2("{}");
        depart(&mut classes, 15, 9, &[4], Ecn::NotCapable);
        assert_eq!(classes.controller.delay(), millis(11));
        // Nothing waits.
        depart(&mut late, 70, 40, &[], Ecn::NotCapable);
        arrive(&mut late, 90, &[]);
        assert_found(&late, &[11, 26, 41, 20, 0, 0]);
    }

    #[test]
    fn a_year_is_made_up_for_at_once() {
        let year = 365 * 86_400_000;
        let mut idle = pi2(r#"{"update": "1ms"}"#);
        arrive(&mut idle, 10_000, &[0]);
        assert_eq!(idle.controller.p(), 1.0);
        arrive(&mut idle, year, &[]);
        assert_eq!((idle.controller.p(), idle.controller.delay()), (0.0, Duration::ZERO));
        let mut stuck = pi2("{}");
        arrive(&mut stuck, year + 1, &[0]);
        assert_eq!((stuck.controller.p(), stuck.controller.delay()), (1.0, millis(year)));
        arrive(&mut stuck, year + 14, &[0]);
        assert_eq!(stuck.controller.delay(), millis(year));
        arrive(&mut stuck, year + 15, &[0]);
        assert_eq!(stuck.controller.delay(), millis(year + 15));
    }

    #[test]
    fn marks_replace_drops_below_a_threshold() {
        let judge = |table, linear, ecn| {
            let mut pi2 = held_at(table, linear);
            pi2.count = 1.0;
            depart(&mut pi2, 1, 0, &[], ecn)
        };
        let (drop, mark) = (Verdict::Drop(Reason::Controller), Verdict::Notify(Reason::Controller));
        assert_eq!(judge("{}", 0.0, Ecn::Capable0), Verdict::Pass);
        assert_eq!(judge("{}", 0.4, Ecn::Capable0), drop);
        assert_eq!(judge(r#"{"ecn": true}"#, 0.4, Ecn::Capable0), mark);
        assert_eq!(judge(r#"{"ecn": true}"#, 0.5, Ecn::Capable0), drop, "0.5 x 0.5 is the threshold");
        assert_eq!(judge(r#"{"ecn": true, "mark-below": 0.3}"#, 0.5, Ecn::Capable0), mark);
        assert_eq!(arrive(&mut pi2(r#"{"limit": "2p"}"#), 1, &[0, 0]), Verdict::Drop(Reason::Overflow));
    }

    #[test]
    fn parameters_without_effect_are_noticed() {
        let idle = |table: &str| {
            let params = serde_json::from_str(table).unwrap();
            Pi2::keys_without_effect(&params, &(40..=1000))
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
        };
        assert_eq!(idle(r#"{"rtt-max": "50ms"}"#), [""; 0]);
        assert_eq!(idle(r#"{"mark-below": 0.2}"#), ["mark-below"]);
        assert_eq!(idle(r#"{"mark-below": 0.2, "ecn": true}"#), [""; 0]);
        assert_eq!(idle(r#"{"rtt-max": "50ms", "update": "9ms", "alpha": 1, "beta": 1}"#), ["rtt-max"]);
    }
}
