//! Thresholds of RED.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

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
    /// Returns a threshold set over a queue measured in `unit`.
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

    /// Returns where early drops begin.
    pub fn min(&self) -> f64 {
        self.min as f64
    }

    /// Returns where every packet is dropped (or, when gentle, where the steeper slope begins).
    pub fn max(&self) -> f64 {
        self.max as f64
    }

    /// Returns the drop probability as the average reaches max.
    pub fn max_p(&self) -> f64 {
        self.max_p.get()
    }

    /// Returns what the thresholds count.
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
        let (min, max) = (level(text, min, &shape)?, level(text, max, &shape)?);
        let Some(unit) = unit_of([min, max]) else {
            return Err(UnitError::new(format!(
                "`{text}`: min and max must both be packets or both be bytes"
            )));
        };
        let max_p = probability(text, max_p, &shape)?;
        let set = Self::new(count(min), count(max), unit, max_p);
        set.map_err(|problem| UnitError::new(format!("`{text}`: {problem}")))
    }
}

/// A point of a drop curve, `fill/probability`.
pub(super) struct Point {
    pub(super) fill: Depth,
    pub(super) p: Probability,
}

impl Point {
    /// Reads a point, which is a part of `text`; `shape` says what would be right.
    pub(super) fn read(text: &str, point: &str, shape: &impl Fn() -> UnitError) -> Result<Self, UnitError> {
        let mut parts = parts(point, "/");
        let (Some(fill), Some(p), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(shape());
        };
        Ok(Self { fill: level(text, fill, shape)?, p: probability(text, p, shape)? })
    }

    /// Returns the queue length of the point as a number, in packets or bytes.
    pub(super) fn number(&self) -> u64 {
        count(self.fill)
    }
}

/// Returns a queue length: packets, with or without their `p`, or bytes.
fn level(text: &str, part: &str, shape: &impl Fn() -> UnitError) -> Result<Depth, UnitError> {
    if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
        let too_large = |_| UnitError::new(format!("`{text}`: `{part}` is too large"));
        return part.parse().map(Depth::Packets).map_err(too_large);
    }
    part.parse::<Depth>().map_err(|problem| {
        if part.ends_with('B') { UnitError::new(format!("`{text}`: {problem}")) } else { shape() }
    })
}

fn probability(text: &str, part: &str, shape: &impl Fn() -> UnitError) -> Result<Probability, UnitError> {
    let p =
        if part.ends_with('%') { part.parse() } else { Probability::new(part.parse().map_err(|_| shape())?) };
    let p = p.map_err(|problem| UnitError::new(format!("`{text}`: {problem}")))?;
    // Rust also reads `+0.1`.
    if part.starts_with(['+', '-']) { Err(shape()) } else { Ok(p) }
}

/// Returns the unit of all these fills; `None` if they differ.
pub(super) fn unit_of(fills: impl IntoIterator<Item = Depth>) -> Option<Unit> {
    let mut units = fills.into_iter().map(|fill| match fill {
        Depth::Packets(_) => Unit::Packets,
        Depth::Bytes(_) => Unit::Bytes,
    });
    let first = units.next()?;
    units.all(|unit| unit == first).then_some(first)
}

const fn count(fill: Depth) -> u64 {
    match fill {
        Depth::Packets(number) | Depth::Bytes(number) => number,
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

/// The forms of a fill and of a probability in a drop curve, and that of thresholds, as regular expressions.
pub(super) static PACKETS: LazyLock<String> = LazyLock::new(|| format!("([0-9]+|{COUNT})"));
pub(super) const SIZES: &str = SIZE;
pub(super) const NUMBER: &str =
    r"(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|([0-9]+(\.[0-9]+)?|\.[0-9]+) ?%)";
pub(super) static RAMP: LazyLock<String> = LazyLock::new(|| {
    let packets = &*PACKETS;
    format!("({packets} */ *{packets}|{SIZE} */ *{SIZE}) */ *{NUMBER}")
});

fn thresholds_pattern() -> String {
    format!("^{}$", *RAMP)
}
