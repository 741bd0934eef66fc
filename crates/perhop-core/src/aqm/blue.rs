//! BLUE: Feng, Shin, Kandlur & Saha, "The BLUE Active Queue Management Algorithms", 2002, figure 2.
//!
//! One drop probability for all packets. It rises when a packet is lost for want of room, and falls when the
//! link falls idle: each at most once in a freeze time. Queue lengths and averages play no part.
//!
//! ## Deviations
//! - The link falls idle once for each idle period, however long that is, so the probability falls at most
//!   once in it (`an_idle_period_lowers_the_probability_once`). The paper does not say whether it falls on
//!   during a long one.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aqm, AqmBlock, Verdict};
use crate::units::defaults::{millis, probability};
use crate::units::{UnitError, require};
use crate::{
    Bitrate, Block, Context, Depth, Duration, Environment, Header, Instant, KeysWithoutEffect, Occupancy,
    Origin, Probability, PseudoCode, Reason,
};

/// Parameters of [`Blue`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BlueParams {
    /// By how much the drop probability rises (d1).
    #[serde(default = "probability::<2, 100>")]
    pub increment: Probability,
    /// By how much the drop probability falls (d2).
    #[serde(default = "probability::<2, 1000>")]
    pub decrement: Probability,
    /// The drop probability rises or falls only if its last change is longer ago than this (`freeze_time`).
    #[serde(default = "millis::<100>")]
    pub freeze: Duration,
    /// A packet that finds this much waiting raises the drop probability, too, although there is room for it
    /// (L). Default: only one for which there is no room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Depth>,
    /// Mark ECN-capable packets instead of dropping them. Where there is no room, they are dropped all the
    /// same. TCP flows are capable with the key `ecn`, on real packets also with
    /// `[live] sysctl = { "net.ipv4.tcp_ecn" = 1 }`.
    #[serde(default)]
    pub ecn: bool,
    /// Queue limit, in packets (`200p`), in bytes (`300kB`), or as a time (`50ms`) at the rate of the link.
    #[schemars(with = "crate::units::Limit")]
    pub limit: Depth,
}

/// A probability that moves by steps, at most once in a freeze time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stepped {
    probability: f64,
    moved: Instant,
}

impl Stepped {
    /// Zero at the start of a run.
    pub(super) const ZERO: Self = Self { probability: 0.0, moved: Instant::ZERO };

    /// Returns zero, with a freeze time that begins now.
    #[cfg(test)]
    pub(super) const fn since(moved: Instant) -> Self {
        Self { probability: 0.0, moved }
    }

    pub(super) const fn get(self) -> f64 {
        self.probability
    }

    /// Raises it, to at most 1.
    pub(super) fn raise(&mut self, step: Probability, freeze: Duration, now: Instant) {
        if now.since(self.moved) > freeze {
            (self.probability, self.moved) = ((self.probability + step.get()).min(1.0), now);
        }
    }

    /// Lowers it, if it is above 0.
    pub(super) fn lower(&mut self, step: Probability, freeze: Duration, now: Instant) {
        if self.probability > 0.0 && now.since(self.moved) > freeze {
            (self.probability, self.moved) = ((self.probability - step.get()).max(0.0), now);
        }
    }
}

/// Drops by chance, as often as overflows and idle times demand.
#[derive(Clone, Debug)]
pub struct Blue {
    params: BlueParams,
    probability: Stepped,
    /// When the link fell idle, if no packet has come since. Some drivers say so only as a packet comes, so
    /// it counts no earlier.
    idle_since: Option<Instant>,
}

const CODE: PseudoCode = PseudoCode {
    lines: &[
        "when the queue overflows, or is longer than its threshold, and freeze-time has passed: p ← p + increment",
        "when the link is idle, and freeze-time has passed: p ← p − decrement",
        "for each packet that arrives:",
        "    if the queue has no room: drop (overflow)",
        "    if random number < p: drop or mark (controller)",
    ],
    acts: &[(Reason::Controller, &[4]), (Reason::Overflow, &[3])],
};

impl Block for Blue {
    type Params = BlueParams;
    const NAME: &'static str = "blue";
    const SUMMARY: &'static str =
        "drops at random, with a probability that overflows raise and idle times lower";
    const ORIGIN: Origin = Origin::published(2002, "Feng, Shin, Kandlur & Saha 2002, figure 2");
    const BATCHED: bool = true;
    const PSEUDO_CODE: Option<PseudoCode> = Some(CODE);

    fn check(params: &BlueParams) -> Result<(), UnitError> {
        check_increment(params.increment)
    }

    fn keys_without_effect(params: &BlueParams, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        let Some(threshold) = params.threshold else { return Vec::new() };
        let holds = match (threshold, params.limit) {
            (Depth::Packets(_), Depth::Packets(most)) | (Depth::Bytes(_), Depth::Bytes(most)) => most,
            (Depth::Packets(_), Depth::Bytes(most)) => most / sizes.start().max(&1),
            (Depth::Bytes(_), Depth::Packets(most)) => most.saturating_mul(*sizes.end()),
        };
        let (needs, holds) = match threshold {
            Depth::Packets(packets) => (packets, Depth::Packets(holds)),
            Depth::Bytes(bytes) => (bytes, Depth::Bytes(holds)),
        };
        let (Depth::Packets(most) | Depth::Bytes(most)) = holds;
        if needs < most {
            return Vec::new();
        }
        let text = format!(
            "`{threshold}`: a queue of {holds} is full, which raises the drop probability anyway; lower `threshold`, or raise \
             `limit`"
        );
        vec![("threshold", text)]
    }
}

/// Refuses a probability that could never rise.
pub(super) fn check_increment(increment: Probability) -> Result<(), UnitError> {
    require(increment.get() > 0.0, "increment", "an increment is above 0, such as 0.02")
}

impl AqmBlock for Blue {
    fn limit(params: &BlueParams, _: Bitrate) -> Option<Depth> {
        Some(params.limit)
    }

    fn new(params: BlueParams, _: Environment) -> Self {
        Self { params, probability: Stepped::ZERO, idle_since: None }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.probability = before.probability;
        self.idle_since = before.idle_since;
        Ok(())
    }
}

impl Blue {
    fn is_above_threshold(&self, queue: &Occupancy) -> bool {
        match self.params.threshold {
            None => false,
            Some(Depth::Packets(packets)) => queue.packets() > packets,
            Some(Depth::Bytes(bytes)) => queue.bytes() > bytes,
        }
    }
}

impl Aqm for Blue {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        let BlueParams { increment, decrement, freeze, ecn, limit, .. } = self.params;
        if let Some(since) = self.idle_since.take() {
            self.probability.lower(decrement, freeze, since);
        }
        let full = queue.is_full_for(packet, limit);
        if full || self.is_above_threshold(queue) {
            self.probability.raise(increment, freeze, cx.now);
        }
        if full {
            Verdict::Drop(Reason::Overflow)
        } else if !cx.rng.chance(self.probability.get()) {
            Verdict::Pass
        } else if ecn {
            Verdict::Notify(Reason::Controller)
        } else {
            Verdict::Drop(Reason::Controller)
        }
    }

    fn on_idle(&mut self, since: Instant) {
        self.idle_since = Some(since);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("probability", self.probability.get())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::environment;
    use crate::{Color, Ecn, FlowId, Rng};

    fn blue(keys: &str) -> Blue {
        Blue::new(serde_json::from_str(&format!(r#"{{"limit": "10p" {keys}}}"#)).unwrap(), environment())
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn arrive(blue: &mut Blue, millis: u64, waiting: u32, ecn: Ecn, rng: &mut Rng) -> Verdict {
        let mut queue = Occupancy::EMPTY;
        (0..waiting).for_each(|_| queue.add(Color::Yellow, 1000));
        blue.on_arrival(
            &Header { ecn, ..Header::new(FlowId(0), 1000) },
            &queue,
            &mut Context { now: at(millis), rng },
        )
    }

    /// The probability after each event, in units of 1/4096.
    fn hear(blue: &mut Blue, events: &[(u64, &str)]) -> Vec<u32> {
        let step = |&(millis, event): &(u64, &str)| {
            let rng = &mut Rng::stream(1, "aqm");
            if event == "full" {
                let verdict = arrive(blue, millis, 10, Ecn::NotCapable, rng);
                assert_eq!(verdict, Verdict::Drop(Reason::Overflow));
            } else {
                blue.on_idle(at(millis));
                arrive(blue, millis, 0, Ecn::NotCapable, rng);
            }
            (blue.probability.get() * 4096.0) as u32
        };
        events.iter().map(step).collect()
    }

    #[test]
    fn overflows_raise_the_probability_and_idle_times_lower_it_once_in_a_freeze_time() {
        let mut blue = blue(r#", "increment": 0.00390625, "decrement": 0.000244140625, "freeze": "5ms""#);
        let events = [(6, "full"), (8, "full"), (12, "full"), (20, "idle"), (24, "idle"), (30, "idle")];
        assert_eq!(hear(&mut blue, &events), [16, 16, 32, 31, 31, 30]);
    }

    #[test]
    fn the_probability_stays_between_0_and_1() {
        let mut blue = blue(r#", "increment": 0.75, "decrement": 1, "freeze": "0s""#);
        let events = [(1, "idle"), (2, "full"), (3, "full"), (4, "full"), (5, "idle"), (6, "idle")];
        assert_eq!(hear(&mut blue, &events), [0, 3072, 4096, 4096, 0, 0]);
        assert_eq!(blue.gauges(), [("probability", 0.0)]);
    }

    #[test]
    fn an_idle_period_lowers_the_probability_once() {
        let mut blue = blue("");
        hear(&mut blue, &[(101, "full")]);
        blue.on_idle(at(202));
        arrive(&mut blue, 100_000, 0, Ecn::NotCapable, &mut Rng::stream(1, "aqm"));
        assert!((blue.probability.get() - 0.018).abs() < 1e-12);
    }

    #[test]
    fn a_threshold_raises_the_probability_before_the_queue_is_full() {
        for (threshold, waiting, rises) in
            [("4p", 4, false), ("4p", 5, true), ("4kB", 4, false), ("4kB", 5, true)]
        {
            let mut blue = blue(&format!(r#", "threshold": "{threshold}""#));
            arrive(&mut blue, 101, waiting, Ecn::NotCapable, &mut Rng::stream(1, "aqm"));
            assert_eq!(blue.probability.get() > 0.0, rises, "{threshold} {waiting}");
        }
    }

    #[test]
    fn packets_are_dropped_or_marked_with_the_probability() {
        let fates = |keys: &str, ecn: Ecn| {
            let mut blue = blue(keys);
            blue.probability.probability = 0.25;
            let mut rng = Rng::stream(1, "aqm");
            let mut counts = [0; 3];
            for _ in 0..4000 {
                let verdict = arrive(&mut blue, 1, 5, ecn, &mut rng);
                let index =
                    [Verdict::Pass, Verdict::Notify(Reason::Controller), Verdict::Drop(Reason::Controller)]
                        .iter()
                        .position(|known| *known == verdict);
                counts[index.expect("one of these")] += 1;
            }
            counts
        };
        let [passed, marked, dropped] = fates("", Ecn::Capable0);
        assert!((900..1100).contains(&dropped) && marked == 0, "{passed} {dropped}");
        assert_eq!(fates(r#", "ecn": true"#, Ecn::Capable0), [passed, dropped, 0]);
    }

    #[test]
    fn a_threshold_that_only_a_full_queue_reaches_is_noticed() {
        let idle = |keys: &str| {
            let params = serde_json::from_str(&format!("{{{keys}}}")).unwrap();
            Blue::keys_without_effect(&params, &(100..=1000))
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
        };
        assert_eq!(idle(r#""limit": "10p""#), [""; 0]);
        for (limit, reached, not) in
            [("10p", "9p", "10p"), ("9kB", "8999B", "9kB"), ("10p", "9999B", "10kB"), ("1kB", "9p", "10p")]
        {
            assert_eq!(idle(&format!(r#""limit": "{limit}", "threshold": "{reached}""#)), [""; 0]);
            assert_eq!(idle(&format!(r#""limit": "{limit}", "threshold": "{not}""#)), ["threshold"]);
        }
    }
}
