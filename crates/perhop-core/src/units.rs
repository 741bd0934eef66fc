//! Quantities as types, and the one place where their text is read.
//!
//! Text is parsed exactly, without floating point, in the form that users of the field write: `20Mbps`, `48ms`,
//! `868p`, `40kB` (k, M and G are powers of 1000), or `20 Mbps` with one space. Text that could mean two things (`20mbps`,
//! `40KB`) is refused. The patterns of the JSON Schema stand beside the parsers and accept the same forms.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::Duration;

/// Why a quantity's text was refused: what is wrong, then what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError(String);

impl UnitError {
    /// An error that says `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnitError {}

/// A data rate in bits per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bitrate(u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A number of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packets(u64);

/// A probability in [0, 1].
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Probability(f64);

/// The weight of the newest sample in a moving average, in (0, 1]; the papers' w_q.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Weight(f64);

/// A number of at least 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Positive(f64);

/// A number above 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct AboveZero(f64);

/// How a queue is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// By the number of packets waiting.
    Packets,
    /// By the bytes waiting.
    Bytes,
}

/// The room in a queue, in packets (`868p`) or in bytes (`500kB`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Depth {
    /// At most this many packets wait.
    Packets(u64),
    /// At most this many bytes wait.
    Bytes(u64),
}

/// One set of RED parameters, written `min/max/max_p`: `390/694/0.02` (packets) or `40kB/80kB/0.02` (bytes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    min: u64,
    max: u64,
    unit: Unit,
    max_p: Probability,
}

impl Bitrate {
    /// The highest rate there is: no limit.
    pub const MAX: Self = Self(u64::MAX);

    /// A rate of `bps` bits per second.
    ///
    /// # Errors
    /// A rate of zero is refused.
    pub fn from_bps(bps: u64) -> Result<Self, UnitError> {
        if bps == 0 { Err(UnitError("a rate must be above zero".into())) } else { Ok(Self(bps)) }
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// How long `size` takes at this rate, rounded down to the nanosecond.
    #[inline]
    pub fn time_of(self, size: Bytes) -> Duration {
        let nanos = u128::from(size.bits()) * 1_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// A size of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Packets {
    /// `count` packets.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number of packets.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Probability {
    /// A probability.
    ///
    /// # Errors
    /// A value outside [0, 1] is refused.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(UnitError(format!("a probability lies between 0 and 1, not {value}")))
        }
    }

    /// The value in [0, 1].
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Weight {
    /// A weight.
    ///
    /// # Errors
    /// A value outside (0, 1] is refused.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        if value > 0.0 && value <= 1.0 {
            Ok(Self(value))
        } else {
            Err(UnitError(format!("a weight lies above 0 and at most at 1, not {value}")))
        }
    }

    /// The value in (0, 1].
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Positive {
    /// A number of at least 1.
    ///
    /// # Errors
    /// A smaller number, or one that is not finite, is refused.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        if value.is_finite() && value >= 1.0 {
            Ok(Self(value))
        } else {
            Err(UnitError(format!("a number of at least 1, not {value}")))
        }
    }

    /// A number that stands in the code.
    pub(crate) const fn literal(value: f64) -> Self {
        assert!(value >= 1.0);
        Self(value)
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl AboveZero {
    /// A number above 0.
    ///
    /// # Errors
    /// Another number, or one that is not finite, is refused.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        if value.is_finite() && value > 0.0 {
            Ok(Self(value))
        } else {
            Err(UnitError(format!("a number above 0, not {value}")))
        }
    }

    /// A number that stands in the code.
    pub(crate) const fn literal(value: f64) -> Self {
        assert!(value > 0.0);
        Self(value)
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Thresholds {
    /// A threshold set over a queue measured in `unit`.
    ///
    /// # Errors
    /// `min` above `max` is refused.
    pub fn new(min: u64, max: u64, unit: Unit, max_p: Probability) -> Result<Self, UnitError> {
        if min > max {
            return Err(UnitError(format!(
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
            || UnitError(format!("`{text}`: write min/max/max_p, such as 30/90/0.05 or 40kB/80kB/0.05"));
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
                if part.ends_with('B') { UnitError(format!("`{text}`: {problem}")) } else { shape() }
            })
        };
        let (min, max, unit) = match (level(min)?, level(max)?) {
            (Depth::Packets(min), Depth::Packets(max)) => (min, max, Unit::Packets),
            (Depth::Bytes(min), Depth::Bytes(max)) => (min, max, Unit::Bytes),
            _ => {
                return Err(UnitError(format!(
                    "`{text}`: min and max must both be packets or both be bytes"
                )));
            }
        };
        let within = |problem: UnitError| UnitError(format!("`{text}`: {problem}"));
        let probability = Probability::new(max_p.parse().map_err(|_| shape())?).map_err(within)?;
        // Rust also reads `+0.1`.
        if max_p.starts_with(['+', '-']) {
            return Err(shape());
        }
        Self::new(min, max, unit, probability).map_err(within)
    }
}

/// The parts of a text such as `30/90/0.05`; spaces may stand beside the separator.
pub fn parts<'a>(text: &'a str, separator: &'static str) -> impl Iterator<Item = &'a str> {
    let last = text.split(separator).count() - 1;
    text.split(separator).enumerate().map(move |(n, part)| {
        let part = if n == 0 { part } else { part.trim_start_matches(' ') };
        if n == last { part } else { part.trim_end_matches(' ') }
    })
}

impl fmt::Display for Thresholds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::Packets => write!(f, "{}/{}/{}", self.min, self.max, self.max_p.get()),
            Unit::Bytes => write!(f, "{}/{}/{}", Bytes(self.min), Bytes(self.max), self.max_p.get()),
        }
    }
}

impl FromStr for Depth {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if let Ok(packets) = text.parse::<Packets>() {
            return Ok(Self::Packets(packets.get()));
        }
        text.parse::<Bytes>().map(|bytes| Self::Bytes(bytes.get())).map_err(|problem| {
            if text.ends_with('B') {
                return problem;
            }
            UnitError(format!(
                "`{text}` is not a queue size; write whole packets such as 868p or bytes such as 500kB"
            ))
        })
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => Packets(*packets).fmt(f),
            Self::Bytes(bytes) => Bytes(*bytes).fmt(f),
        }
    }
}

macro_rules! number_in_range {
    ($type:ident, $schema:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(f64::deserialize(deserializer)?).map_err(de::Error::custom)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

number_in_range!(AboveZero, json_schema!({ "type": "number", "exclusiveMinimum": 0 }));
number_in_range!(Positive, json_schema!({ "type": "number", "minimum": 1 }));
number_in_range!(Probability, json_schema!({ "type": "number", "minimum": 0, "maximum": 1 }));
number_in_range!(Weight, json_schema!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }));

/// Serde and JSON Schema for a type whose text form is its `Display` and `FromStr`.
macro_rules! text_serde {
    ($type:ident, $form:literal, $pattern:expr, $example:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::units::deserialize_text(deserializer, concat!($form, ", such as \"", $example, "\""))
            }
        }
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern, "examples": [$example] })
            }
        }
    };
}
pub(crate) use text_serde;

/// A newtype over whole base units whose text is a decimal number and one of the suffixes, largest first.
macro_rules! text_unit {
    ($type:ident, $what:literal, $pattern:expr, $example:literal, $suffixes:expr) => {
        impl std::str::FromStr for $type {
            type Err = $crate::units::UnitError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::units::parse_scaled(text, $what, $example, &$suffixes).map(Self)
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::units::format_scaled(f, self.0, &$suffixes)
            }
        }
        $crate::units::text_serde!($type, "text with its unit", $pattern, $example);
    };
}
pub(crate) use text_unit;

text_unit!(
    Bytes,
    "size",
    format!("^{SIZE}$"),
    "40kB",
    [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)]
);
text_unit!(Packets, "number of packets", format!("^{COUNT}$"), "868p", [("p", 1)]);
text_serde!(Depth, "text with its unit", format!("^({COUNT}|{SIZE})$"), "868p");
text_serde!(Thresholds, "text min/max/max_p", thresholds_pattern(), "30/90/0.05");
text_serde!(Bitrate, "text with its unit", r"^[0-9]+(\.[0-9]+)? ?(bps|kbps|Mbps|Gbps)$", "20Mbps");

/// The forms of a time, a size and a number of packets, as regular expressions.
pub const TIME: &str = r"[0-9]+(\.[0-9]+)? ?(ns|us|ms|s)";
const SIZE: &str = r"[0-9]+(\.[0-9]+)? ?(B|kB|MB|GB)";
const COUNT: &str = r"[0-9]+(\.0+)? ?p";

fn thresholds_pattern() -> String {
    let packets = format!("([0-9]+|{COUNT})");
    let number = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?";
    format!("^({packets} */ *{packets}|{SIZE} */ *{SIZE}) */ *{number}$")
}

const RATES: [(&str, u64); 4] = [("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)];

impl FromStr for Bitrate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bps = parse_scaled(text, "rate", "20Mbps", &RATES)?;
        Self::from_bps(bps).map_err(|problem| UnitError(format!("`{text}`: {problem}, such as 20Mbps")))
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format_scaled(f, self.0, &RATES)
    }
}

/// Reads a text; `expected` says what stands there otherwise.
pub(crate) fn deserialize_text<'de, D, T>(deserializer: D, expected: &'static str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = UnitError>,
{
    struct Text<T>(&'static str, std::marker::PhantomData<T>);

    impl<T: FromStr<Err = UnitError>> de::Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text(expected, std::marker::PhantomData))
}

/// Reads `<decimal><suffix>`, or the same with one space between them, into whole base units.
pub(crate) fn parse_scaled(
    text: &str,
    what: &str,
    example: &str,
    suffixes: &[(&str, u64)],
) -> Result<u64, UnitError> {
    let refuse = |why: String| Err(UnitError(format!("`{text}` {why}; write a {what} such as {example}")));
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, suffix) = (&text[..split], &text[split..]);
    let suffix = suffix.strip_prefix(' ').unwrap_or(suffix);
    if number.is_empty() {
        let negative = suffix.starts_with('-');
        return refuse(if negative { "is negative".into() } else { "has no number".into() });
    }
    let Some(&(_, scale)) = suffixes.iter().find(|(known, _)| *known == suffix) else {
        let known = suffixes.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
        if suffix.is_empty() {
            return refuse(format!("has no unit (one of {known})"));
        }
        let ambiguous = suffixes.iter().any(|(known, _)| known.eq_ignore_ascii_case(suffix));
        let why = if ambiguous { "is ambiguous" } else { "is not one" };
        return refuse(
            format!("has the unit `{suffix}`, which {why} of {known}")
                .replace("is ambiguous of", "is ambiguous beside"),
        );
    };
    match exact(number, scale) {
        Some(value) => Ok(value),
        None => refuse(format!("is not a whole number of {}, or too large", suffixes[suffixes.len() - 1].0)),
    }
}

/// `number` times `scale`, if that is a whole number that fits.
fn exact(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let mut value = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        let digit = u64::from(digit - b'0');
        if !place.is_multiple_of(10) && digit != 0 {
            return None;
        }
        place /= 10;
        value = value.checked_add(digit * place)?;
    }
    Some(value)
}

/// Writes base units in the largest suffix that is not above them, exactly.
pub(crate) fn format_scaled(f: &mut fmt::Formatter<'_>, value: u64, suffixes: &[(&str, u64)]) -> fmt::Result {
    if value == 0 {
        // `0s`, `0B`: the plain unit has the shortest name.
        let plain = suffixes.iter().map(|(suffix, _)| *suffix).min_by_key(|suffix| suffix.len());
        return write!(f, "0{}", plain.unwrap_or_default());
    }
    let smallest = suffixes[suffixes.len() - 1];
    let &(suffix, scale) = suffixes.iter().find(|(_, scale)| value >= *scale).unwrap_or(&smallest);
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{whole}{suffix}");
    }
    let digits = scale.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    write!(f, "{whole}.{}{suffix}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_users_of_the_field_write() {
        assert_eq!("20Mbps".parse::<Bitrate>().unwrap().as_bps(), 20_000_000);
        assert_eq!("0.5Mbps".parse::<Bitrate>().unwrap().as_bps(), 500_000);
        assert_eq!("48ms".parse::<Duration>().unwrap(), Duration::from_millis(48));
        assert_eq!("868p".parse::<Depth>().unwrap(), Depth::Packets(868));
        assert_eq!("40kB".parse::<Depth>().unwrap(), Depth::Bytes(40_000));
        let set = "390/694/0.02".parse::<Thresholds>().unwrap();
        assert_eq!((set.min(), set.max(), set.max_p(), set.unit()), (390.0, 694.0, 0.02, Unit::Packets));
        assert_eq!("40kB/80kB/0.1".parse::<Thresholds>().unwrap().unit(), Unit::Bytes);
    }

    #[test]
    fn refuses_with_the_reason_and_the_remedy() {
        let rate = |text: &str| text.parse::<Bitrate>().unwrap_err().to_string();
        assert!(rate("20mbps").contains("ambiguous") && rate("20mbps").contains("20Mbps"));
        assert!(rate("20").contains("no unit"));
        assert!(rate("-20Mbps").contains("negative"));
        assert!(rate("0Mbps").contains("above zero"));
        assert!(rate("1.5bps").contains("whole number"));
        assert!(rate("99999999999Gbps").contains("too large"));
        assert!(rate("Mbps").contains("no number"));
        assert!("1..5s".parse::<Duration>().is_err());
        assert!("1.s".parse::<Duration>().is_err());
        let set = |text: &str| text.parse::<Thresholds>().unwrap_err().to_string();
        assert!(set("60/30/0.1").contains("min 60 is above max 30"));
        assert!(set("30/60/1.5").contains("between 0 and 1"));
        assert!(set("30/60").contains("min/max/max_p"));
        assert!(set("30p/60kB/0.1").contains("both"));
    }

    proptest! {
        #[test]
        fn text_round_trips(value in prop_oneof![Just(1), 1..u64::MAX / 2]) {
            prop_assert_eq!(Bitrate(value).to_string().parse::<Bitrate>().unwrap(), Bitrate(value));
            prop_assert_eq!(Bytes(value).to_string().parse::<Bytes>().unwrap(), Bytes(value));
            let span = Duration::from_nanos(value);
            prop_assert_eq!(span.to_string().parse::<Duration>().unwrap(), span);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}") {
            let _ = text.parse::<Bitrate>();
            let _ = text.parse::<Thresholds>();
            let _ = text.parse::<Depth>();
        }
    }
}
