//! Thresholds of RED.

use std::fmt;
use std::str::FromStr;

use super::text::{COUNT, SIZE, parts, text_serde};
use super::{Bytes, Depth, Probability, Unit, UnitError};

/// One set of RED parameters, written `min/max/max_p`: `390/694/0.02` (packets) or `40kB/80kB/0.02` (bytes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    min: u64,
    max: u64,
    unit: Unit,
    max_p: Probability,
}

impl Thresholds {
    /// A threshold set over a queue measured in `unit`.
    ///
    /// # Errors
    /// `min` above `max` is refused.
    pub fn new(min: u64, max: u64, unit: Unit, max_p: Probability) -> Result<Self, UnitError> {
        if min > max {
            return Err(UnitError::new(format!(
                "min {min} is above max {max}; write min/max/max_p with min <= max"
            )));
        }
        Ok(Self { min, max, unit, max_p })
    }

    /// Where early drops begin.
    pub fn min(&self) -> f64 {
        self.min as f64
    }

    /// Where every packet is dropped (or, when gentle, where the steeper slope begins).
    pub fn max(&self) -> f64 {
        self.max as f64
    }

    /// The drop probability as the average reaches max.
    pub fn max_p(&self) -> f64 {
        self.max_p.get()
    }

    /// What the thresholds count.
    pub fn unit(&self) -> Unit {
        self.unit
    }
}

impl FromStr for Thresholds {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let shape =
            || UnitError::new(format!("`{text}`: write min/max/max_p, such as 30/90/0.05 or 40kB/80kB/0.05"));
        let mut parts = parts(text, "/");
        let (Some(min), Some(max), Some(max_p), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(shape());
        };
        let level = |part: &str| {
            if part.bytes().all(|byte| byte.is_ascii_digit()) {
                return part.parse().map(Depth::Packets).map_err(|_| shape());
            }
            part.parse::<Depth>().map_err(|problem| {
                if part.ends_with('B') { UnitError::new(format!("`{text}`: {problem}")) } else { shape() }
            })
        };
        let (min, max, unit) = match (level(min)?, level(max)?) {
            (Depth::Packets(min), Depth::Packets(max)) => (min, max, Unit::Packets),
            (Depth::Bytes(min), Depth::Bytes(max)) => (min, max, Unit::Bytes),
            _ => {
                return Err(UnitError::new(format!(
                    "`{text}`: min and max must both be packets or both be bytes"
                )));
            }
        };
        let within = |problem: UnitError| UnitError::new(format!("`{text}`: {problem}"));
        let probability = Probability::new(max_p.parse().map_err(|_| shape())?).map_err(within)?;
        // Rust also reads `+0.1`.
        if max_p.starts_with(['+', '-']) {
            return Err(shape());
        }
        Self::new(min, max, unit, probability).map_err(within)
    }
}

impl fmt::Display for Thresholds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::Packets => write!(f, "{}/{}/{}", self.min, self.max, self.max_p.get()),
            Unit::Bytes => write!(f, "{}/{}/{}", Bytes(self.min), Bytes(self.max), self.max_p.get()),
        }
    }
}

text_serde!(Thresholds, "text min/max/max_p", thresholds_pattern(), "30/90/0.05");

fn thresholds_pattern() -> String {
    let packets = format!("([0-9]+|{COUNT})");
    let number = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?";
    format!("^({packets} */ *{packets}|{SIZE} */ *{SIZE}) */ *{number}$")
}
