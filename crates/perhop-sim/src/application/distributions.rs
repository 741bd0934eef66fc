//! Distributions of sizes and numbers, in portable arithmetic.

use perhop_core::portable::{exp, ln};
use perhop_core::units::{UnitError, require};
use perhop_core::{Bytes, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sizes: lognormal between two bounds. A size beyond them is drawn again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lognormal {
    /// The mean of the logarithm of the size in bytes.
    pub mu: f64,
    /// The standard deviation of this logarithm.
    pub sigma: f64,
    /// The smallest size.
    pub least: Bytes,
    /// The largest size.
    pub most: Bytes,
}

impl Lognormal {
    /// A size in bytes, not rounded.
    pub fn draw(&self, rng: &mut Rng) -> f64 {
        let (least, most) = (self.least.get() as f64, self.most.get() as f64);
        let mut size = least;
        for _ in 0..MOST_DRAWS {
            // Beyond e^700 it is out of bounds in any case.
            size = exp((self.mu + self.sigma * rng.normal()).clamp(-700.0, 700.0));
            if size >= least && size <= most {
                return size;
            }
        }
        size.clamp(least, most)
    }

    /// Checks that sizes within the bounds are found soon.
    pub(super) fn check(&self, key: &str) -> Result<(), UnitError> {
        let ascends = self.least.get() > 0 && self.least < self.most;
        require(ascends, key, "the sizes are at least 1B, and `least` is below `most`")?;
        let is_usual = (0.0..=10.0).contains(&self.sigma);
        require(is_usual, key, "`sigma`, of the logarithm of bytes, is from 0 to 10")?;
        let (least, most) = (ln(self.least.get() as f64), ln(self.most.get() as f64));
        let why = format!(
            "`mu`, of the logarithm of bytes, lies between those of `least` and `most`, {least:.2} and {most:.2}, not at {}",
            self.mu
        );
        require((least..=most).contains(&self.mu), key, why)
    }
}

/// A number: Pareto-distributed from `least` on, at most `most`, less an offset, and rounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pareto {
    /// The shape.
    pub alpha: f64,
    /// The scale k, the least value.
    pub least: f64,
    /// The greatest value m, that of all greater ones.
    pub most: f64,
    /// The amount that is taken off.
    pub less: f64,
}

impl Pareto {
    /// A number, not rounded.
    pub fn draw(&self, rng: &mut Rng) -> f64 {
        // The inverse of the distribution function, k / u^(1/alpha), where u is above zero.
        let uniform = 1.0 - rng.uniform();
        let value = self.least * exp((-ln(uniform) / self.alpha).min(700.0));
        value.min(self.most) - self.less
    }

    /// Draws a value, to the nearest whole number.
    pub fn draw_whole(&self, rng: &mut Rng) -> usize {
        (self.draw(rng).max(0.0) + 0.5) as usize
    }

    pub(super) fn check(&self, key: &str) -> Result<(), UnitError> {
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        let are_positive = is_positive(self.alpha) && is_positive(self.least);
        require(are_positive, key, "`alpha` and `least` are above 0")?;
        let is_usual = (self.least..=MOST_OBJECTS).contains(&self.most);
        require(is_usual, key, "`most` is at least `least`, and at most 10000")?;
        require((0.0..=self.least).contains(&self.less), key, "`less` is from 0 to `least`")
    }
}

/// After so many sizes out of bounds, which are close to each other then, the bound counts.
const MOST_DRAWS: u32 = 10_000;
/// More objects than any page has.
const MOST_OBJECTS: f64 = 10_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(draws: usize, mut draw: impl FnMut() -> f64) -> f64 {
        (0..draws).map(|_| draw()).sum::<f64>() / draws as f64
    }

    #[test]
    fn the_mean_of_a_narrow_lognormal_by_hand() {
        // exp(mu + sigma^2 / 2) = e^8.02 = 3041.2, and the bounds take nothing off.
        let sizes = Lognormal { mu: 8.0, sigma: 0.2, least: Bytes::new(1), most: Bytes::new(1_000_000) };
        let mut rng = Rng::stream(1, "test");
        let found = mean(100_000, || sizes.draw(&mut rng));
        assert!((found / 3041.18 - 1.0).abs() < 0.003, "{found}");
    }

    #[test]
    fn a_size_that_is_always_out_of_bounds_ends_at_the_bound() {
        let sizes = Lognormal { mu: 9.0, sigma: 0.0, least: Bytes::new(1), most: Bytes::new(100) };
        assert_eq!(sizes.draw(&mut Rng::stream(1, "test")), 100.0);
        let fixed = Lognormal { mu: ln(100.0), ..sizes };
        assert!((fixed.draw(&mut Rng::stream(1, "test")) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_pareto_number_with_a_bound_by_hand() {
        // alpha k / (alpha - 1) (1 - (k/m)^(alpha - 1)) + m (k/m)^alpha - less; with alpha 2, k 1, m 10: 2 x
        // 0.9 + 10/100 - 1.
        let numbers = Pareto { alpha: 2.0, least: 1.0, most: 10.0, less: 1.0 };
        let mut rng = Rng::stream(1, "test");
        let found = mean(200_000, || numbers.draw(&mut rng));
        assert!((found - 0.9).abs() < 0.01, "{found}");
        assert!((0..1000).all(|_| numbers.draw_whole(&mut rng) <= 9));
    }

    #[test]
    fn bounds_that_would_never_be_met_are_refused() {
        let sizes = Lognormal { mu: 8.0, sigma: 1.0, least: Bytes::new(100), most: Bytes::new(1000) };
        assert!(sizes.check("main").unwrap_err().to_string().contains("4.61 and 6.91, not at 8"));
        assert!(Lognormal { mu: 6.0, ..sizes }.check("main").is_ok());
        assert!(Lognormal { mu: f64::NAN, ..sizes }.check("main").is_err());
        assert!(Lognormal { sigma: f64::NAN, ..sizes }.check("main").is_err());
        let numbers = Pareto { alpha: 1.1, least: 2.0, most: 55.0, less: 2.0 };
        assert!(numbers.check("objects").is_ok());
        assert!(Pareto { alpha: 0.0, ..numbers }.check("objects").is_err());
        assert!(Pareto { most: 1.0, ..numbers }.check("objects").is_err());
        assert!(Pareto { less: 3.0, ..numbers }.check("objects").is_err());
    }
}
