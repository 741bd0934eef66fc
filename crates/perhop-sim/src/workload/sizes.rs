//! How much flows send: distributions of sizes, drawn by inverse transform, one uniform number a size.

use std::sync::Arc;

use perhop_core::units::AboveZero;
use perhop_core::{Bytes, portable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cdf::{Cdf, CdfTable, SizeCdf};

/// How much each flow of a population sends: bytes of payload, without headers.
///
/// One of `constant`, `cdf`, `points`, `lognormal` and `pareto` names the distribution.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sizes {
    /// All flows have this size.
    pub constant: Option<Bytes>,
    /// An empirical distribution: a published one by name, such as `web-search`, or one from a file, such as
    /// `measured.csv`.
    pub cdf: Option<SizeCdf>,
    /// A distribution function through points, linear between them: bytes, and the share of flows that are no
    /// larger, from 0 to 1.
    pub points: Option<Vec<[f64; 2]>>,
    /// Sizes whose logarithm is normally distributed.
    pub lognormal: Option<LognormalSizes>,
    /// Sizes with a heavy tail.
    pub pareto: Option<ParetoSizes>,
    /// Each drawn size is multiplied by this. Default: 1.
    pub scale: Option<AboveZero>,
    /// No flow is larger: a size that is drawn larger, after `scale`, becomes this. Default: no limit.
    pub at_most: Option<Bytes>,
}

/// A lognormal distribution, by the mean and the standard deviation of the sizes themselves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LognormalSizes {
    /// The mean size.
    pub mean: Bytes,
    /// The standard deviation of the sizes.
    pub deviation: Bytes,
}

/// A Pareto distribution: a share `(least / x)^shape` of the flows is larger than `x`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ParetoSizes {
    /// The exponent of the tail. With 1 or less the mean is infinite, and `at-most` is required.
    pub shape: AboveZero,
    /// The smallest size.
    pub least: Bytes,
}

/// A distribution that is ready to draw from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Distribution {
    shape: Shape,
    scale: f64,
    most: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Constant(f64),
    Empirical(Arc<Cdf>),
    /// Mean and standard deviation of the logarithm.
    Lognormal(f64, f64),
    Pareto(ParetoSizes),
}

/// Returns the exponential; what is beyond e^700 and e^-700 becomes that.
fn exp(x: f64) -> f64 {
    portable::exp(x.clamp(-700.0, 700.0))
}

/// The key that is wrong, and why.
pub type Refused = (&'static str, String);

impl Sizes {
    /// Gives all flows this size.
    pub fn constant(size: Bytes) -> Self {
        Self { constant: Some(size), ..Self::default() }
    }

    /// Checks that there is one distribution, with a mean above zero.
    ///
    /// # Errors
    /// The key that is wrong, and what would be right.
    pub fn check(&self) -> Result<(), Refused> {
        self.distribution().map(|_| ())
    }

    /// The mean of the sizes that are drawn, in bytes, before they are rounded to whole ones.
    ///
    /// # Errors
    /// The key that is wrong, and what would be right.
    pub fn mean(&self) -> Result<f64, Refused> {
        self.distribution().map(|distribution| distribution.mean())
    }

    pub(super) fn distribution(&self) -> Result<Distribution, Refused> {
        let Self { constant, cdf, points, lognormal, pareto, scale, at_most } = self;
        let points = points.as_deref().map(|points| Cdf::through(points).map_err(|why| ("points", why)));
        let shapes = [
            constant.map(|size| Ok(("constant", Shape::Constant(size.get() as f64)))),
            cdf.as_ref().map(|cdf| cdf.shape().map(|shape| ("cdf", shape))),
            points.map(|cdf| cdf.map(|cdf| ("points", Shape::Empirical(Arc::new(cdf))))),
            lognormal.map(|lognormal| lognormal.shape().map(|shape| ("lognormal", shape))),
            pareto.map(|pareto| Ok(("pareto", Shape::Pareto(pareto)))),
        ];
        let mut given = shapes.into_iter().flatten();
        let all = "constant, cdf, points, lognormal and pareto";
        let (key, shape) =
            given.next().ok_or_else(|| ("", format!("name a distribution: one of {all}")))??;
        if let Some(other) = given.next() {
            return Err((other?.0, format!("`{key}` is given, too; choose one of {all}")));
        }
        if at_most.is_none()
            && matches!(shape, Shape::Pareto(ParetoSizes { shape, .. }) if shape.get() <= 1.0)
        {
            let text = "with a shape of 1 or less the mean is infinite; take a larger one, or set `at-most`";
            return Err(("pareto.shape", text.into()));
        }
        let scale = scale.map_or(1.0, AboveZero::get);
        let most = at_most.map_or(f64::INFINITY, |most| most.get() as f64);
        let distribution = Distribution { shape, scale, most };
        if distribution.mean() <= 0.0 {
            let key = if most == 0.0 { "at-most" } else { key };
            return Err((key, "flows of this distribution send nothing; choose sizes above 0B".into()));
        }
        Ok(distribution)
    }
}

impl SizeCdf {
    fn shape(&self) -> Result<Shape, Refused> {
        let cdf = match self {
            Self::Published(name) => Arc::new(Cdf::named(*name)),
            Self::Table(CdfTable { read: Some(cdf), .. }) => Arc::clone(cdf),
            Self::Table(_) | Self::File(_) => {
                return Err(("cdf", "only a scenario is read with its files; write `points`".into()));
            }
        };
        Ok(Shape::Empirical(cdf))
    }
}

impl LognormalSizes {
    fn shape(&self) -> Result<Shape, Refused> {
        let (mean, deviation) = (self.mean.get() as f64, self.deviation.get() as f64);
        if mean == 0.0 {
            return Err(("lognormal.mean", "a mean of 0 sends nothing; write a size such as 30kB".into()));
        }
        let ratio = deviation / mean;
        let variance = portable::ln(1.0 + ratio * ratio);
        Ok(Shape::Lognormal(portable::ln(mean) - variance / 2.0, variance.sqrt()))
    }
}

impl Distribution {
    /// Returns the size that a share `p`, at least 0 and below 1, of the flows does not exceed.
    fn quantile(&self, p: f64) -> f64 {
        let size = match &self.shape {
            Shape::Constant(size) => *size,
            Shape::Empirical(cdf) => cdf.inverse(p),
            &Shape::Lognormal(mean, deviation) => {
                // 0 is drawn once in 2^53 times.
                exp(mean + deviation * portable::normal_quantile(p.max(1e-16)))
            }
            Shape::Pareto(ParetoSizes { shape, least }) => {
                least.get() as f64 * exp(-portable::ln(1.0 - p) / shape.get())
            }
        };
        (size * self.scale).min(self.most)
    }

    /// Returns the size of whole bytes, at least one, at that share.
    pub(super) fn draw(&self, p: f64) -> Bytes {
        Bytes::new((self.quantile(p) + 0.5).max(1.0) as u64)
    }

    pub(super) fn mean(&self) -> f64 {
        let most = self.most / self.scale;
        let mean = match &self.shape {
            Shape::Constant(size) => size.min(most),
            Shape::Empirical(cdf) => cdf.mean_of_least(most),
            &Shape::Lognormal(mean, deviation) if most == f64::INFINITY => {
                exp(mean + deviation * deviation / 2.0)
            }
            // The mean of the quantiles in the middle of so many equal shares.
            Shape::Lognormal(..) => {
                let shares = 65_536;
                let sum: f64 =
                    (0..shares).map(|n| self.quantile((f64::from(n) + 0.5) / f64::from(shares))).sum();
                return sum / f64::from(shares);
            }
            Shape::Pareto(pareto) => pareto.mean_of_least(most),
        };
        mean * self.scale
    }
}

impl ParetoSizes {
    /// Returns the mean of the sizes, each cut to `most`: the least plus the tail's integral up to the cut.
    fn mean_of_least(self, most: f64) -> f64 {
        let (least, shape) = (self.least.get() as f64, self.shape.get());
        if most <= least {
            return most;
        }
        let log_ratio = if most == f64::INFINITY { f64::NEG_INFINITY } else { portable::ln(least / most) };
        if shape == 1.0 {
            return least - least * log_ratio;
        }
        least + least / (shape - 1.0) * (1.0 - exp((shape - 1.0) * log_ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Sizes {
        serde_json::from_str(text).unwrap()
    }

    /// The mean as it is computed, and that of the quantiles in the middle of a million equal shares.
    fn means(text: &str) -> (f64, f64) {
        let distribution = sizes(text).distribution().unwrap();
        let shares = 1_000_000;
        let quantiles = (0..shares).map(|n| distribution.quantile((f64::from(n) + 0.5) / f64::from(shares)));
        (distribution.mean(), quantiles.sum::<f64>() / f64::from(shares))
    }

    #[test]
    fn means_by_hand() {
        assert_eq!(sizes(r#"{"constant": "30kB"}"#).mean(), Ok(30e3));
        assert_eq!(sizes(r#"{"constant": "30kB", "scale": 2, "at-most": "50kB"}"#).mean(), Ok(50e3));
        assert!((sizes(r#"{"cdf": "web-search", "scale": 0.1}"#).mean().unwrap() - 171_125.0).abs() < 1e-6);
        // shape / (shape - 1) * least = 2 * 10 kB
        let pareto = sizes(r#"{"pareto": {"shape": 2, "least": "10kB"}}"#).mean().unwrap();
        assert!((pareto - 20e3).abs() < 1e-9, "{pareto}");
        // 10 kB * (1 + ln 10)
        let cut = sizes(r#"{"pareto": {"shape": 1, "least": "10kB"}, "at-most": "100kB"}"#).mean().unwrap();
        assert!((cut - 33_025.850_929_940_46).abs() < 1e-8, "{cut}");
    }

    #[test]
    fn draws_have_the_mean_that_loads_are_computed_from() {
        for text in [
            r#"{"cdf": "web-search", "at-most": "3MB"}"#,
            r#"{"cdf": "hadoop", "scale": 3, "at-most": "1MB"}"#,
            r#"{"points": [[0, 0], [10, 0.5], [1000, 1]]}"#,
            r#"{"lognormal": {"mean": "10710B", "deviation": "25032B"}, "at-most": "2MB"}"#,
            r#"{"lognormal": {"mean": "10kB", "deviation": "5kB"}, "scale": 2}"#,
            r#"{"pareto": {"shape": 1.2, "least": "1kB"}, "at-most": "1MB"}"#,
            r#"{"pareto": {"shape": 3, "least": "1kB"}, "scale": 0.5}"#,
        ] {
            let (computed, drawn) = means(text);
            assert!((computed - drawn).abs() < 2e-4 * drawn, "{text}: {computed}, {drawn}");
        }
    }

    #[test]
    fn the_median_of_a_lognormal_distribution() {
        // The page model of 3GPP2: mean 10710 B and deviation 25032 B are mu 8.35 and sigma 1.37.
        let distribution =
            sizes(r#"{"lognormal": {"mean": "10710B", "deviation": "25032B"}}"#).distribution().unwrap();
        let Shape::Lognormal(mean, deviation) = distribution.shape else { panic!("{distribution:?}") };
        assert!((mean - 8.345).abs() < 0.01 && (deviation - 1.366).abs() < 0.01, "{mean} {deviation}");
        assert!((distribution.quantile(0.5) - exp(mean)).abs() < 1e-9);
    }

    #[test]
    fn each_wrong_key_is_named() {
        for (text, key, why) in [
            ("{}", "", "one of constant, cdf"),
            (r#"{"cdf": "measured.csv"}"#, "cdf", "read with its files"),
            (r#"{"constant": "1kB", "cdf": "hadoop"}"#, "cdf", "`constant` is given, too"),
            (r#"{"points": []}"#, "points", "at least two points"),
            (r#"{"constant": "0B"}"#, "constant", "above 0B"),
            (r#"{"cdf": "hadoop", "at-most": "0B"}"#, "at-most", "above 0B"),
            (r#"{"lognormal": {"mean": "0B", "deviation": "1B"}}"#, "lognormal.mean", "30kB"),
            (r#"{"pareto": {"shape": 1, "least": "1kB"}}"#, "pareto.shape", "`at-most`"),
        ] {
            let (found, text) = sizes(text).check().unwrap_err();
            assert_eq!(found, key);
            assert!(text.contains(why), "{text}");
        }
    }
}
