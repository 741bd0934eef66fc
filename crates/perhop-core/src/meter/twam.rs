//! TWAM, the TCP window-aware marker: Bouras & Sevasti, section 3.
//!
//! At the ingress of a path, each interval: the windows `W_i` of all flows are known, and each flow's packets are marked IN
//! with a probability `p_i` until the next interval, so that the path's window is colored in proportion to the contracted
//! rates `r_i`, whatever windows the flows have reached. [`shares`] is that rule (equation 3); the meter of a flow only
//! draws. The driver samples the windows and sends `p_i` to the meters.
//!
//! ## Deviations
//! The denominator of equation 3 can be read as (sum of r) times `W_i`, or as the sum of r times W. Only the first colors
//! the window in proportion to r, as the text wants it; it is the default. `equation_3_both_ways` shows the two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Meter, MeterBlock, meter_params};
use crate::control::Message;
use crate::units::UnitError;
use crate::{Bitrate, Block, Color, Context, Environment, Header, Origin};

/// How the denominator of equation 3 is interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// The sum of all rates, times the flow's own window.
    #[default]
    OwnWindow,
    /// The sum over all flows of rate times window.
    AllWindows,
}

/// Equation 3: the probability with which each flow's packets are marked IN, from contracted rates and windows.
///
/// `p_i = min(1, r_i S / ((sum of r) W_i))`, with S the sum of the windows. A flow without a window has no part in the sums,
/// and 1.
///
/// # Panics
/// The two lists differ in length.
pub fn shares(rates: &[f64], windows: &[f64], reading: Reading) -> Vec<f64> {
    assert_eq!(rates.len(), windows.len(), "a window for each rate");
    let active = || rates.iter().zip(windows).filter(|(_, window)| **window > 0.0);
    let rate_sum: f64 = active().map(|(rate, _)| rate).sum();
    let window_sum: f64 = active().map(|(_, window)| window).sum();
    let product_sum: f64 = active().map(|(rate, window)| rate * window).sum();
    let share = |(rate, window): (&f64, &f64)| {
        if *window <= 0.0 {
            return 1.0;
        }
        let denominator = match reading {
            Reading::OwnWindow => rate_sum * window,
            Reading::AllWindows => product_sum,
        };
        (rate * window_sum / denominator).min(1.0)
    };
    rates.iter().zip(windows).map(share).collect()
}

meter_params! {
    /// Parameters of [`Twam`].
    TwamParams: Out {
        /// The contracted rate (`r_i`).
        rate: Bitrate,
    }
}

/// Marks a flow's packets IN with the probability in the last control message.
#[derive(Clone, Debug)]
pub struct Twam {
    /// Before the first interval every packet is IN.
    share: f64,
}

impl Block for Twam {
    type Params = TwamParams;
    const NAME: &'static str = "twam";
    const SUMMARY: &'static str =
        "marks IN with a probability that keeps a path's window in proportion to contracted rates";
    const ORIGIN: Origin = Origin::paper(2003, "Bouras & Sevasti, section 3, equation 3");
    const FOLLOWS_PATHS: bool = true;
    const BATCHED: bool = true;
}

impl MeterBlock for Twam {
    fn new(_: TwamParams, _: Environment) -> Self {
        Self { share: 1.0 }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.share = before.share;
        Ok(())
    }
}

impl Meter for Twam {
    #[inline]
    fn color(&mut self, _: &Header, cx: &mut Context<'_>) -> Color {
        if cx.rng.chance(self.share) { Color::Green } else { Color::Yellow }
    }

    fn on_message(&mut self, message: &Message) {
        if let Message::Share(share) = *message {
            self.share = share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowId, Instant, Rng};

    fn rounded(shares: &[f64]) -> Vec<f64> {
        shares.iter().map(|share| (share * 1000.0).round() / 1000.0).collect()
    }

    #[test]
    fn equation_3_both_ways() {
        let (rates, windows) = ([1.0, 3.0, 5.0], [5.0, 10.0, 20.0]);
        let own = shares(&rates, &windows, Reading::OwnWindow);
        assert_eq!(rounded(&own), [0.778, 1.0, 0.972]);
        assert_eq!(rounded(&shares(&rates, &windows, Reading::AllWindows)), [0.259, 0.778, 1.0]);
        // IN packets in a round trip are p_i W_i = r_i S / (sum of r), where no probability is cut at 1.
        assert!(
            (own[0] * 5.0 - 35.0 / 9.0).abs() < 1e-12 && (own[2] * 20.0 - 5.0 * 35.0 / 9.0).abs() < 1e-12
        );
        // Windows in proportion to the rates are all IN.
        assert_eq!(shares(&rates, &[2.0, 6.0, 10.0], Reading::OwnWindow), [1.0; 3]);
    }

    #[test]
    fn a_flow_without_a_window_has_no_part() {
        let with = shares(&[1.0, 3.0, 9.0], &[6.0, 6.0, 0.0], Reading::OwnWindow);
        assert_eq!(with, [0.5, 1.0, 1.0]);
        assert_eq!(with[..2], shares(&[1.0, 3.0], &[6.0, 6.0], Reading::OwnWindow));
        assert!(shares(&[], &[], Reading::OwnWindow).is_empty());
    }

    #[test]
    fn marks_with_the_share_that_it_was_told() {
        let mut twam = Twam { share: 1.0 };
        let mut rng = Rng::stream(1, "twam");
        let mut green = |twam: &mut Twam| {
            let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
            (0..10_000).filter(|_| twam.color(&Header::new(FlowId(0), 1000), cx) == Color::Green).count()
        };
        assert_eq!(green(&mut twam), 10_000, "before the first interval");
        twam.on_message(&Message::Share(0.3));
        twam.on_message(&Message::Windows { path: 1, number: 1, packets: 9.0 });
        assert!((2850..3150).contains(&green(&mut twam)));
    }
}
