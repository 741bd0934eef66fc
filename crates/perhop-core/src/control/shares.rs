//! The share of a flow's packets that are marked IN: Bouras & Sevasti, section 3, equation 3.
//!
//! ## Deviations
//! The denominator of equation 3 can be read as (sum of r) times `W_i`, or as the sum of r times W. Only the
//! first colors the window in proportion to r, as the text wants it; it is the default.
//! `equation_3_both_ways` shows the two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Equation 3: the probability with which each flow's packets are marked IN, from contracted rates and
/// windows.
///
/// `p_i = min(1, r_i S / ((sum of r) W_i))`, with S the sum of the windows. A flow without a window has no
/// part in the sums, and 1.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
