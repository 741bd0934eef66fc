//! Time sliding window three color marker: RFC 2859, sections 3 and 4.
//!
//! The RFC leaves open how the colors are drawn. One number of the meter's random stream decides: red below
//! P1, yellow below P1 + P2, else green.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tsw::{RateEstimator, not_empty};
use super::{Meter, MeterBlock, meter_params, not_below};
use crate::units::UnitError;
use crate::units::defaults::secs;
use crate::{Bitrate, Block, Color, Context, Duration, Environment, Header, Origin};

meter_params! {
    /// Parameters of [`TswTcm`].
    TswTcmParams: OutOfThree {
        /// The committed target rate (CTR), at which the rate estimator starts.
        rate: Bitrate,
        /// The peak target rate (PTR).
        peak_rate: Bitrate,
        /// The averaging window of the rate (`AVG_INTERVAL`).
        #[serde(default = "secs::<1>")]
        window: Duration,
    }
}

/// Green, yellow and red in the shares of the estimated rate that lie below the committed rate, between the
/// two rates, and above the peak rate.
#[derive(Clone, Debug)]
pub struct TswTcm {
    committed: f64,
    peak: f64,
    estimator: RateEstimator,
}

impl Block for TswTcm {
    type Params = TswTcmParams;
    const NAME: &'static str = "tswtcm";
    const SUMMARY: &'static str =
        "by the average rate: the share above the committed rate is yellow, that above the peak rate red";
    const ORIGIN: Origin = Origin::published(2000, "RFC 2859, sections 3 and 4");
    const BATCHED: bool = true;

    fn check(params: &TswTcmParams) -> Result<(), UnitError> {
        not_empty("window", params.window)?;
        not_below("peak-rate", params.peak_rate, params.rate)
    }
}

impl MeterBlock for TswTcm {
    const COLORS: &'static [Color] = &Color::ALL;

    fn new(params: TswTcmParams, _: Environment) -> Self {
        let committed = params.rate.as_bps() as f64;
        Self {
            committed,
            peak: params.peak_rate.as_bps() as f64,
            estimator: RateEstimator::new(params.window, committed),
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.estimator.take_over(&before.estimator);
        Ok(())
    }
}

impl TswTcm {
    /// The probabilities of yellow and red at an estimated rate.
    #[inline]
    fn probabilities(&self, rate: f64) -> (f64, f64) {
        let Self { committed, peak, .. } = *self;
        if rate <= committed {
            (0.0, 0.0)
        } else if rate <= peak {
            ((rate - committed) / rate, 0.0)
        } else {
            ((peak - committed) / rate, (rate - peak) / rate)
        }
    }
}

impl Meter for TswTcm {
    #[inline]
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        let rate = self.estimator.update(packet, cx.now);
        let (yellow, red) = self.probabilities(rate);
        let drawn = cx.rng.uniform();
        if drawn < red {
            Color::Red
        } else if drawn < red + yellow {
            Color::Yellow
        } else {
            Color::Green
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use crate::{FlowId, Instant, Rng};

    const TABLE: &str = r#"{"rate": "1Mbps", "peak-rate": "1.5Mbps", "window": "20ms"}"#;

    /// For each packet the rate in bytes a second and the probabilities of yellow and red, computed with
    /// exact fractions.
    #[expect(clippy::unreadable_literal, reason = "as they were computed")]
    const RATES: [(f64, f64, f64); 8] = [
        (145833.33333333334, 0.14285714285714285, 0.0),
        (163194.44444444444, 0.23404255319148937, 0.0),
        (177662.03703703705, 0.2964169381107492, 0.0),
        (189718.36419753087, 0.3294356888662939, 0.011692933401118455),
        (199765.3034979424, 0.31286714412167055, 0.061398567634988334),
        (208137.752914952, 0.3002819004466642, 0.09915429866000747),
        (215114.79409579333, 0.2905425461912581, 0.1283723614262258),
        (220928.99507982776, 0.2828963214059658, 0.1513110357821025),
    ];

    fn packets() -> impl Iterator<Item = (Header, Instant)> {
        (1..=8).map(|n| (Header::new(FlowId(0), 1000), Instant::from_nanos(n * 4_000_000)))
    }

    #[test]
    fn the_vector_of_rates_and_probabilities() {
        let mut meter = golden::meter::<TswTcm>(TABLE);
        for ((packet, now), (rate, yellow, red)) in packets().zip(RATES) {
            let found = meter.estimator.update(&packet, now);
            assert!((found / 8.0 / rate - 1.0).abs() < 1e-12, "{} instead of {rate}", found / 8.0);
            let (found_yellow, found_red) = meter.probabilities(found);
            assert!((found_yellow - yellow).abs() < 1e-12, "{found_yellow} instead of {yellow}");
            assert!((found_red - red).abs() < 1e-12, "{found_red} instead of {red}");
        }
    }

    #[test]
    fn one_number_of_the_stream_decides_between_the_colors() {
        let mut meter = golden::meter::<TswTcm>(TABLE);
        let (mut rng, mut same) = (Rng::stream(7, "tswtcm"), Rng::stream(7, "tswtcm"));
        for ((packet, now), (_, yellow, red)) in packets().zip(RATES) {
            let drawn = same.uniform();
            let expected = match drawn {
                _ if drawn < red => Color::Red,
                _ if drawn < red + yellow => Color::Yellow,
                _ => Color::Green,
            };
            assert_eq!(meter.color(&packet, &mut Context { now, rng: &mut rng }), expected, "{drawn}");
        }
        assert_eq!(rng.next_u64(), same.next_u64());
    }

    #[test]
    fn the_shares_of_colors_are_those_of_the_rates() {
        // 4 Mbit/s against 1 and 2: a quarter is green, a quarter yellow, half red.
        let mut meter = golden::meter::<TswTcm>(r#"{"rate": "1Mbps", "peak-rate": "2Mbps"}"#);
        let mut rng = Rng::stream(1, "tswtcm");
        let packet = Header::new(FlowId(0), 1000);
        let mut counts = [0.0_f64; 3];
        for n in 1..=60_000_u64 {
            let cx = &mut Context { now: Instant::from_nanos(n * 2_000_000), rng: &mut rng };
            let color = meter.color(&packet, cx);
            if n > 10_000 {
                counts[color.index()] += 1.0 / 50_000.0;
            }
        }
        for (found, expected) in counts.into_iter().zip([0.25, 0.25, 0.5]) {
            assert!((found - expected).abs() < 0.01, "{counts:?}");
        }
    }

    #[test]
    fn a_rate_at_a_target_is_not_above_it() {
        let meter = golden::meter::<TswTcm>(TABLE);
        assert_eq!(meter.probabilities(1e6), (0.0, 0.0));
        assert_eq!(meter.probabilities(1.5e6), (1.0 / 3.0, 0.0));
        assert_eq!(meter.probabilities(2e6), (0.25, 0.25));
    }

    #[test]
    fn an_empty_window_and_a_peak_below_the_committed_rate_are_refused() {
        let refused =
            |table: &str| TswTcm::check(&serde_json::from_str(table).unwrap()).unwrap_err().to_string();
        assert!(
            refused(r#"{"rate": "1Mbps", "peak-rate": "1Mbps", "window": "0s"}"#).contains("longer than 0s")
        );
        assert!(refused(r#"{"rate": "2Mbps", "peak-rate": "1Mbps"}"#).contains("must be at least `rate`"));
        golden::meter::<TswTcm>(r#"{"rate": "1Mbps", "peak-rate": "1Mbps"}"#);
    }
}
