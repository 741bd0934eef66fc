//! The text of quantities: reading, writing, and what serde and the JSON Schema need.

use std::fmt;
use std::str::FromStr;

use serde::{Deserializer, de};

/// The reason why a quantity or a parameter is refused: what is wrong, then what would be right.
///
/// Its text form has the key in front, since serde passes errors on as text: [`split_key`] takes both apart
/// again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    key: String,
    text: String,
}

/// Separates the key from the message in the text form of an error.
const SEPARATOR: char = '\u{1f}';

impl UnitError {
    /// Creates an error that says `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self { key: String::new(), text: text.into() }
    }

    /// Creates an error about the parameter of this key, such as `rule.limit`.
    pub fn at(key: impl Into<String>, text: impl fmt::Display) -> Self {
        Self { key: key.into(), text: text.to_string() }
    }

    /// Returns the error for a table that has the refused one under `key`.
    #[must_use]
    pub fn below(self, key: &str) -> Self {
        let key = if self.key.is_empty() { key.to_owned() } else { format!("{key}.{}", self.key) };
        Self { key, text: self.text }
    }

    /// Returns the key of the refused parameter; empty if the error names none.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the message without the key.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Refuses the parameter of this key, unless a condition holds.
///
/// # Errors
/// The text, with the key.
pub fn require(holds: bool, key: impl Into<String>, text: impl fmt::Display) -> Result<(), UnitError> {
    if holds { Ok(()) } else { Err(UnitError::at(key, text)) }
}

/// Returns the error of a parameter that cannot change during a run.
pub(crate) fn fixed(key: &str) -> UnitError {
    UnitError::at(key, "it cannot change during a run; start a run with it")
}

/// Refuses a parameter that cannot change during a run, unless it `stays` as it is.
pub(crate) fn keeps(key: &str, stays: bool) -> Result<(), UnitError> {
    if stays { Ok(()) } else { Err(fixed(key)) }
}

/// Takes the text form of an error apart: the key of the refused parameter (empty if it names none), and the
/// message.
pub fn split_key(message: &str) -> (&str, &str) {
    message.strip_prefix(SEPARATOR).and_then(|rest| rest.split_once(SEPARATOR)).unwrap_or(("", message))
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, text } = self;
        if key.is_empty() { f.write_str(text) } else { write!(f, "{SEPARATOR}{key}{SEPARATOR}{text}") }
    }
}

impl std::error::Error for UnitError {}

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
                let remedy = concat!("a ", $what, " such as ", $example);
                $crate::units::parse_scaled(text, remedy, &$suffixes).map(Self)
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

/// The forms of a time, a size and a number of packets, as regular expressions.
pub const TIME: &str = r"([0-9]+(\.[0-9]+)?|\.[0-9]+) ?(ns|us|µs|μs|ms|s)";
pub(super) const SIZE: &str = r"([0-9]+(\.[0-9]+)?|\.[0-9]+) ?(B|bytes|kB|MB|GB)";
pub(super) const COUNT: &str = r"[0-9]+(\.0+)? ?p(ackets?)?";

/// Units as tables and figures print them, each with its name in a scenario's canonical form.
const PRINTED: [(&str, &str); 9] = [
    ("bit/s", "bps"),
    ("kbit/s", "kbps"),
    ("Mbit/s", "Mbps"),
    ("Gbit/s", "Gbps"),
    ("µs", "us"), // The micro sign, and below the Greek letter, which looks alike.
    ("μs", "us"),
    ("packets", "p"),
    ("packet", "p"),
    ("bytes", "B"),
];

/// The name of a unit in a scenario's canonical form.
fn canonical(unit: &str) -> &str {
    PRINTED.iter().find(|(printed, _)| *printed == unit).map_or(unit, |(_, name)| name)
}

/// The parts of a text such as `30/90/0.05`; spaces may be beside the separator.
pub fn parts<'a>(text: &'a str, separator: &'static str) -> impl Iterator<Item = &'a str> {
    let last = text.split(separator).count() - 1;
    text.split(separator).enumerate().map(move |(n, part)| {
        let part = if n == 0 { part } else { part.trim_start_matches(' ') };
        if n == last { part } else { part.trim_end_matches(' ') }
    })
}

/// Parses a value from text; `expected` describes the value in the error for any other type.
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

/// The number at the head of a text, with all that some write between its digits, and what follows it.
pub(super) fn split(text: &str) -> (&str, &str) {
    let separates = |c: char| matches!(c, ',' | '_' | '\'' | ' ');
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || separates(c))).unwrap_or(text.len());
    let number = text[..end].trim_end_matches(separates);
    (number, &text[number.len()..])
}

/// Reads `<decimal><suffix>`, or the same with one space between them, into whole base units; `remedy` says
/// what to write.
pub(crate) fn parse_scaled(text: &str, remedy: &str, suffixes: &[(&str, u64)]) -> Result<u64, UnitError> {
    let refuse = |why: String| Err(UnitError::new(format!("`{text}` {why}; write {remedy}")));
    let (number, suffix) = split(text);
    let suffix = suffix.strip_prefix(' ').unwrap_or(suffix);
    if number.is_empty() {
        let negative = suffix.starts_with('-');
        return refuse(if negative { "is negative".into() } else { "has no number".into() });
    }
    let Some(&(_, scale)) = suffixes.iter().find(|(known, _)| *known == canonical(suffix)) else {
        let known = suffixes.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
        if suffix.is_empty() {
            return refuse(format!("has no unit (one of {known})"));
        }
        let printed = PRINTED.iter().filter(|(_, name)| suffixes.iter().any(|(known, _)| known == name));
        let mut names = suffixes.iter().map(|(known, _)| *known).chain(printed.map(|(printed, _)| *printed));
        let ambiguous = names.any(|known| known.eq_ignore_ascii_case(suffix));
        let why = if ambiguous { "is ambiguous" } else { "is not one" };
        return refuse(
            format!("has the unit `{suffix}`, which {why} of {known}")
                .replace("is ambiguous of", "is ambiguous beside"),
        );
    };
    if !is_decimal(number) {
        return refuse(format!("has `{number}` where a number such as 1.5 or .5 must stand"));
    }
    match exact(number, scale) {
        Some(value) => Ok(value),
        None => refuse(format!("is not a whole number of {}, or too large", suffixes[suffixes.len() - 1].0)),
    }
}

/// Whether a text is a decimal: `1`, `1.5` or `.5`.
pub(super) fn is_decimal(number: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match number.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction) && !fraction.is_empty(),
        None => digits(number),
    }
}

/// The decimal `number` times `scale`, if that is a whole number that fits.
fn exact(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let mut value = whole.checked_mul(scale)?;
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
