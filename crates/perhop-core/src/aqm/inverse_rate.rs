//! Inverse-rate drop: Yeom & Reddy 1999, section 3.2, equation 9.
//!
//! RIO in which an OUT packet's drop probability falls with the service level that the packet carries:
//! p = k / (m k + r / `r_min`). The router keeps no state for flows.
//!
//! ## Deviations
//! The paper does not say how p meets RED. The three readings are `reading`; the default makes p the max_p of
//! the OUT test, which at r = 0 is 1/m, the paper's baseline. One count spreads the drops of all levels, with
//! p varying from packet to packet. `best_effort_alone_is_rio_to_the_bit` and `readings_by_hand` show them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::{Chance, EarlyTest};
use super::in_out::{Averages, InOutAverages, InOutParams, InOutQueue, InOutRule};
use super::red::red_params;
use super::{Severity, Verdict};
use crate::units::defaults::{above_zero, at_least_one, bps};
use crate::units::{AboveZero, Positive};
use crate::{Bitrate, Bytes, Depth, Header, Origin, Rng, ServiceLevel, Thresholds, Weight};

/// How RED uses the probability p of equation 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// p is the max_p of the OUT test.
    #[default]
    MaxP,
    /// The OUT test's probability is multiplied by p m.
    Scale,
    /// Every OUT packet is dropped with probability p from min on, and always from max on; `wait` and
    /// `gentle` have no effect.
    Flat,
}

red_params! {
    /// Parameters of [`InverseRate`].
    InverseRateParams {
        /// `min/max/max_p` for IN packets, against the average of IN packets.
        r#in: Thresholds,
        /// `min/max/max_p` for OUT packets, against the average of all packets; max_p is used by the reading
        /// `scale` only.
        total: Thresholds,
        /// The k of equation 9: the smaller it is, the closer p is to being inversely proportional to the
        /// rate.
        #[serde(default = "above_zero::<4>")] k: AboveZero,
        /// The m of equation 9: a flow without a profile has p = 1/m.
        #[serde(default = "at_least_one::<2>")] m: Positive,
        /// The `r_min` of equation 9.
        #[serde(default = "bps::<100_000>")] r_min: Bitrate,
        /// How RED uses the probability of equation 9.
        #[serde(default)] reading: Reading,
        /// Which arrivals update which average.
        #[serde(default)] averages: Averages,
    }
}

/// RIO whose OUT packets are dropped the less, the higher the service level they carry.
pub type InverseRate = InOutQueue<InverseRateRule, 2>;

/// The rule of [`InverseRate`] for OUT packets: a test by the packet's own probability.
#[derive(Clone, Debug)]
pub struct InverseRateRule {
    law: Law,
    reading: Reading,
    min: f64,
    max: f64,
}

/// Equation 9.
#[derive(Clone, Copy, Debug)]
struct Law {
    k: f64,
    m: f64,
    r_min: f64,
}

impl Law {
    #[inline]
    fn probability(self, level: ServiceLevel) -> f64 {
        self.k / (self.m * self.k + level.as_bps() / self.r_min)
    }
}

impl InOutParams<2> for InverseRateParams {
    fn sets(&self) -> [(&'static str, Thresholds); 2] {
        [("in", self.r#in), ("total", self.total)]
    }

    fn averages(&self) -> Averages {
        self.averages
    }
}

impl InverseRateRule {
    #[inline]
    fn test(&self, test: &mut EarlyTest, average: f64, packet: &Header, rng: &mut Rng) -> Option<Severity> {
        let p = self.law.probability(packet.service);
        let max_p = match self.reading {
            Reading::MaxP => p,
            Reading::Scale => test.max_p() * p * self.law.m,
            Reading::Flat if average >= self.max => return test.force(packet),
            Reading::Flat if average >= self.min && rng.chance(p) => return test.by_chance(packet),
            Reading::Flat => return None,
        };
        test.judge_by(&Chance::with_max_p(max_p), average, packet, rng)
    }
}

impl InOutRule<2> for InverseRateRule {
    type Params = InverseRateParams;
    const NAME: &'static str = "inverse-rate";
    const SUMMARY: &'static str = "RIO that drops OUT packets less often the higher their service level";
    const ORIGIN: Origin = Origin::paper(1999, "Yeom & Reddy 1999, section 3.2, equation 9");
    const READS_SERVICE_LEVEL: bool = true;

    fn new(params: &InverseRateParams) -> Self {
        Self {
            law: Law { k: params.k.get(), m: params.m.get(), r_min: params.r_min.as_bps() as f64 },
            reading: params.reading,
            min: params.total.min(),
            max: params.total.max(),
        }
    }

    #[inline]
    fn judge(
        &mut self,
        tests: &mut [EarlyTest; 2],
        averages: &InOutAverages,
        packet: &Header,
        rng: &mut Rng,
    ) -> Verdict {
        Verdict::of(self.test(&mut tests[1], averages.other.get(), packet, rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::{Aqm, AqmBlock, Rio, RioParams};
    use crate::{Color, Context, Environment, FlowId, Instant, Occupancy};

    fn environment() -> Environment {
        Environment { rate: Bitrate::from_bps(8_000_000).unwrap() }
    }

    fn level(rate: &str) -> ServiceLevel {
        ServiceLevel::of(rate.parse().unwrap())
    }

    #[test]
    fn equation_9_by_hand() {
        let law = Law { k: 4.0, m: 2.0, r_min: 1e5 };
        let levels = [ServiceLevel::NONE, level("0.1Mbps"), level("0.5Mbps"), level("1Mbps"), level("2Mbps")];
        let found = levels.map(|level| (law.probability(level) * 1e4).round() / 1e4);
        assert_eq!(found, [0.5, 0.4444, 0.3077, 0.2222, 0.1429]);
    }

    #[test]
    fn a_small_k_makes_p_inversely_proportional_to_the_rate() {
        // 0.5 / (2 * 0.5 + 1) at r_min; at k = 0.001, p(1 Mbit/s) / p(2 Mbit/s) is nearly 2.
        let law = |k: f64| {
            let table =
                format!(r#"{{"in": "50/100/0.02", "total": "20/40/0.5", "limit": "200p", "k": {k}}}"#);
            InverseRate::new(serde_json::from_str(&table).unwrap(), environment()).rule.law
        };
        assert!((law(0.5).probability(level("0.1Mbps")) - 0.25).abs() < 1e-12);
        let small = law(0.001);
        let ratio = small.probability(level("1Mbps")) / small.probability(level("2Mbps"));
        assert!((ratio - 2.0).abs() < 1e-3, "{ratio}");
        let zero = r#"{"in": "50/100/0.02", "total": "20/40/0.5", "limit": "200p", "k": 0}"#;
        let refused = serde_json::from_str::<InverseRateParams>(zero).unwrap_err().to_string();
        assert!(refused.contains("a number above 0, not 0"), "{refused}");
    }

    fn drops(reading: &str, service: ServiceLevel, average: u32) -> f64 {
        let table = format!(
            r#"{{"in": "50/100/0.02", "total": "20/40/0.5", "limit": "200p", "weight": 1, "wait": false,
                 "reading": "{reading}"}}"#
        );
        let params: InverseRateParams = serde_json::from_str(&table).unwrap();
        let fresh = InverseRate::new(params, environment());
        let mut queue = Occupancy::EMPTY;
        (0..average).for_each(|_| queue.add(Color::Yellow, 1000));
        let mut rng = Rng::stream(1, "inverse");
        let packet = Header { service, ..Header::new(FlowId(0), 1000) };
        let trials = 50_000;
        let dropped = (0..trials)
            .filter(|_| {
                let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
                fresh.clone().on_arrival(&packet, &queue, cx) != Verdict::Pass
            })
            .count();
        dropped as f64 / f64::from(trials)
    }

    #[test]
    fn readings_by_hand() {
        // At an average of 30, half-way between 20 and 40, on the first packet above min (count 0).
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 0.01, "{found} for {wanted}");
        near(drops("max-p", ServiceLevel::NONE, 30), 0.25);
        near(drops("max-p", level("2Mbps"), 30), 0.1429 / 2.0);
        near(drops("scale", ServiceLevel::NONE, 30), 0.25);
        near(drops("scale", level("2Mbps"), 30), 0.25 * 0.1429 * 2.0);
        near(drops("flat", ServiceLevel::NONE, 30), 0.5);
        near(drops("flat", level("2Mbps"), 30), 0.1429);
        for reading in ["max-p", "scale", "flat"] {
            near(drops(reading, level("2Mbps"), 45), 1.0);
            near(drops(reading, level("2Mbps"), 10), 0.0);
        }
    }

    #[test]
    fn best_effort_alone_is_rio_to_the_bit() {
        let common = r#""in": "4/7/0.2", "total": "1/9/0.5", "limit": "20p", "weight": 0.1"#;
        let rio: RioParams = serde_json::from_str(&format!("{{{common}}}")).unwrap();
        let inverse: InverseRateParams = serde_json::from_str(&format!("{{{common}}}")).unwrap();
        let (mut rio, mut inverse) = (Rio::new(rio, environment()), InverseRate::new(inverse, environment()));
        let (mut random_rio, mut random_inverse) = (Rng::stream(9, "aqm"), Rng::stream(9, "aqm"));
        let mut traffic = Rng::stream(1, "traffic");
        for step in 0..20_000 {
            let now = Instant::from_nanos(step * 700_000);
            let mut queue = Occupancy::EMPTY;
            (0..traffic.up_to(10)).for_each(|_| queue.add(Color::Green, 1000));
            (0..traffic.up_to(10)).for_each(|_| queue.add(Color::Yellow, 1000));
            let color = if traffic.chance(0.5) { Color::Green } else { Color::Yellow };
            let packet = Header { color, ..Header::new(FlowId(0), 1000) };
            assert_eq!(
                rio.on_arrival(&packet, &queue, &mut Context { now, rng: &mut random_rio }),
                inverse.on_arrival(&packet, &queue, &mut Context { now, rng: &mut random_inverse }),
            );
        }
        assert_eq!(random_rio, random_inverse);
    }
}
