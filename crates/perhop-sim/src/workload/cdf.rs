//! Empirical distributions of sizes: a piecewise linear function through measured points.

use std::sync::Arc;

use perhop_core::table::nested;
use schemars::JsonSchema;
use serde::de::{Deserializer, IntoDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An empirical distribution: a published one by name, or a measured one from a file. A name with a dot is
/// that of a file.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SizeCdf {
    /// A published one by its name.
    Published(NamedCdf),
    /// A measured one, with its format, or as text.
    Table(CdfTable),
    /// A measured one: the name of a file, such as `measured.csv`, relative to the scenario's folder.
    File(String),
}

/// A measured distribution of sizes. Results keep its text, so a stored scenario needs no file.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CdfTable {
    /// The file's name, relative to the scenario's folder.
    pub file: Option<String>,
    /// What a distribution that is given as `data` is called: that of the file it is from.
    pub name: Option<String>,
    /// The format of the file or text. Default: `csv` for a file whose name ends so, else `columns`.
    pub format: Option<CdfFormat>,
    /// The text of the distribution, in place of a file.
    pub data: Option<String>,
    /// What has been read.
    #[serde(skip)]
    pub read: Option<Arc<Cdf>>,
}

/// A format of distributions. Each line has a size and the probability of flows that are no larger; neither
/// falls from line to line. The first probability is 0, the last is 1, or 100 where they are in percent.
/// Lines that begin with `#` are comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CdfFormat {
    /// A header such as `size_B,probability` (or `size_kB`, `size_MB`; `percent`), then the values between
    /// commas.
    Csv,
    /// Two columns, bytes and probability, between spaces: the files `WebSearch_distribution.txt` or
    /// `DCTCP_CDF.txt` of simulators and traffic generators of data centres.
    Columns,
}

impl<'de> Deserialize<'de> for SizeCdf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(file) if file.contains('.') => Ok(Self::File(file)),
            Value::String(name) => NamedCdf::deserialize(name.into_deserializer()).map(Self::Published),
            table => nested(table, |table| Some(CdfTable::deserialize(table)))
                .expect("always read")
                .map(Self::Table),
        }
    }
}

/// Published distributions of the sizes of flows in data centres, in bytes of payload.
///
/// Access networks carry others: scale them, or give your own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedCdf {
    /// A web search cluster (Alizadeh and others, DCTCP, 2010): mean 1.71 MB.
    WebSearch,
    /// A data mining cluster (Greenberg and others, VL2, 2009): mean 12.7 MB, which depends on the largest
    /// 2 % of the flows.
    DataMining,
    /// A Hadoop cluster (Roy and others, Facebook, 2015): mean 120 kB, median 700 B.
    Hadoop,
}

impl NamedCdf {
    /// Returns the points of the distribution: bytes, and the share of flows that are no larger.
    const fn points(self) -> &'static [(f64, f64)] {
        match self {
            Self::WebSearch => &[
                (0.0, 0.0),
                (10e3, 0.15),
                (20e3, 0.2),
                (30e3, 0.3),
                (50e3, 0.4),
                (80e3, 0.53),
                (200e3, 0.6),
                (1e6, 0.7),
                (2e6, 0.8),
                (5e6, 0.9),
                (10e6, 0.97),
                (30e6, 1.0),
            ],
            Self::DataMining => &[
                (0.0, 0.0),
                (180.0, 0.1),
                (216.0, 0.2),
                (560.0, 0.3),
                (900.0, 0.4),
                (1100.0, 0.5),
                (1870.0, 0.6),
                (3160.0, 0.7),
                (10e3, 0.8),
                (400e3, 0.9),
                (3.16e6, 0.95),
                (100e6, 0.98),
                (1e9, 1.0),
            ],
            Self::Hadoop => &[
                (0.0, 0.0),
                (100.0, 0.01),
                (200.0, 0.02),
                (300.0, 0.05),
                (350.0, 0.15),
                (400.0, 0.2),
                (500.0, 0.3),
                (600.0, 0.4),
                (700.0, 0.5),
                (1000.0, 0.6),
                (2000.0, 0.67),
                (7000.0, 0.7),
                (30e3, 0.72),
                (50e3, 0.82),
                (80e3, 0.87),
                (120e3, 0.9),
                (300e3, 0.95),
                (1e6, 0.975),
                (2e6, 0.99),
                (10e6, 1.0),
            ],
        }
    }
}

/// A distribution function through points, linear between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Cdf(Vec<(f64, f64)>);

impl Cdf {
    /// Returns a published distribution.
    pub(super) fn named(name: NamedCdf) -> Self {
        Self(name.points().to_vec())
    }

    /// Returns a distribution through these points: bytes, and the share of flows that are no larger.
    ///
    /// # Errors
    /// There are fewer than two points, one is lower than the one before, or they do not lead from
    /// probability 0 to 1.
    pub fn through(points: &[[f64; 2]]) -> Result<Self, String> {
        let [[_, first], .., [_, last]] = points else {
            return Err("a distribution has at least two points, such as [[0, 0], [100e3, 1]]".into());
        };
        if let Some([bytes, p]) =
            points.iter().find(|[bytes, p]| !bytes.is_finite() || *bytes < 0.0 || !(0.0..=1.0).contains(p))
        {
            return Err(format!("[{bytes}, {p}] is no point: write bytes, and a probability of 0 to 1"));
        }
        if *first != 0.0 || *last != 1.0 {
            return Err(format!("the first probability is 0 and the last is 1, not {first} and {last}"));
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[1][0] < pair[0][0] || pair[1][1] < pair[0][1])
        {
            let ([b0, p0], [b1, p1]) = (pair[0], pair[1]);
            return Err(format!(
                "[{b1}, {p1}] follows [{b0}, {p0}]: neither bytes nor probabilities may fall"
            ));
        }
        Ok(Self(points.iter().map(|&[bytes, p]| (bytes, p)).collect()))
    }

    /// Returns the size that a share `p` of the flows does not exceed.
    pub(super) fn inverse(&self, p: f64) -> f64 {
        let Self(points) = self;
        let above = points.partition_point(|&(_, q)| q < p).clamp(1, points.len() - 1);
        let ((b0, p0), (b1, p1)) = (points[above - 1], points[above]);
        if p1 == p0 { b1 } else { b0 + (b1 - b0) * ((p - p0) / (p1 - p0)) }
    }

    /// Returns the mean of the sizes, each cut to `most`.
    pub(super) fn mean_of_least(&self, most: f64) -> f64 {
        let pieces = self.0.windows(2).map(|pair| {
            let ((b0, p0), (b1, p1)) = (pair[0], pair[1]);
            let share = p1 - p0;
            if most >= b1 {
                share * (b0 + b1) / 2.0
            } else if most <= b0 {
                share * most
            } else {
                let below = (most - b0) / (b1 - b0);
                share * (below * (b0 + most) / 2.0 + (1.0 - below) * most)
            }
        });
        pieces.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_of_the_published_distributions() {
        let mean = |name| Cdf::named(name).mean_of_least(f64::INFINITY);
        assert!((mean(NamedCdf::WebSearch) - 1_711_250.0).abs() < 1e-6);
        assert!((mean(NamedCdf::DataMining) - 12_658_198.6).abs() < 1e-6);
        assert!((mean(NamedCdf::Hadoop) - 120_420.75).abs() < 1e-6);
    }

    #[test]
    fn quantiles_of_the_published_distributions() {
        let shares = [0.05, 0.25, 0.5, 0.75, 0.95, 0.99];
        let expected = [
            (NamedCdf::WebSearch, [10e3 / 3.0, 25e3, 950e3 / 13.0, 1.5e6, 60e6 / 7.0, 70e6 / 3.0]),
            (NamedCdf::DataMining, [90.0, 388.0, 1100.0, 6580.0, 3.16e6, 550e6]),
            (NamedCdf::Hadoop, [300.0, 450.0, 700.0, 36e3, 300e3, 2e6]),
        ];
        for (name, sizes) in expected {
            let cdf = Cdf::named(name);
            for (p, size) in shares.into_iter().zip(sizes) {
                assert!((cdf.inverse(p) - size).abs() < size * 1e-12, "{name:?} {p}: {}", cdf.inverse(p));
            }
        }
    }

    #[test]
    fn a_cut_lowers_the_mean_to_what_is_drawn() {
        let cdf = Cdf::through(&[[0.0, 0.0], [100.0, 1.0]]).unwrap();
        assert_eq!(cdf.mean_of_least(f64::INFINITY), 50.0);
        assert_eq!(cdf.mean_of_least(50.0), 37.5);
        assert_eq!(cdf.mean_of_least(0.0), 0.0);
    }

    #[test]
    fn steps_and_ends() {
        let cdf = Cdf::through(&[[10.0, 0.0], [10.0, 0.5], [30.0, 0.5], [40.0, 1.0]]).unwrap();
        assert_eq!([0.0, 0.3, 0.5, 0.75, 1.0].map(|p| cdf.inverse(p)), [10.0, 10.0, 10.0, 35.0, 40.0]);
        assert_eq!(cdf.mean_of_least(f64::INFINITY), 22.5);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        for (points, why) in [
            (vec![], "at least two points"),
            (vec![[0.0, 0.0]], "at least two points"),
            (vec![[0.0, 0.1], [9.0, 1.0]], "not 0.1 and 1"),
            (vec![[0.0, 0.0], [9.0, 0.9]], "not 0 and 0.9"),
            (vec![[0.0, 0.0], [9.0, 0.5], [8.0, 1.0]], "[8, 1] follows [9, 0.5]"),
            (vec![[0.0, 0.0], [1.0, 0.6], [2.0, 0.5], [8.0, 1.0]], "[2, 0.5] follows [1, 0.6]"),
            (vec![[-1.0, 0.0], [9.0, 1.0]], "[-1, 0] is no point"),
            (vec![[f64::NAN, 0.0], [9.0, 1.0]], "[NaN, 0] is no point"),
        ] {
            let refused = Cdf::through(&points).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
