//! Numbers that lie in a range by construction.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_untagged::UntaggedEnumVisitor;

use super::UnitError;
use super::text::is_decimal;

/// Declares a number that lies in a range by construction, by the condition that it holds and the refusal of
/// another one.
macro_rules! bounded_number {
    ($(#[$meta:meta])* $type:ident($value:ident): $condition:expr, $refusal:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
        #[serde(transparent)]
        pub struct $type(f64);

        impl $type {
            const fn accepts($value: f64) -> bool {
                $condition
            }

            /// Checks a number.
            ///
            /// # Errors
            /// The number is outside the range of the type, or not finite.
            pub fn new($value: f64) -> Result<Self, UnitError> {
                if Self::accepts($value) { Ok(Self($value)) } else { Err(UnitError::new(format!($refusal))) }
            }

            /// Returns a constant of the source code.
            ///
            /// # Panics
            /// As [`new`](Self::new) refuses.
            pub const fn literal(value: f64) -> Self {
                assert!(Self::accepts(value));
                Self(value)
            }

            /// Returns the number.
            pub const fn get(self) -> f64 {
                self.0
            }
        }
    };
}

bounded_number! {
    /// A probability in [0, 1]; a scenario may write it as a percentage, too (`"1%"`).
    #[derive(Default)]
    Probability(value): value >= 0.0 && value <= 1.0, "a probability lies between 0 and 1, not {value}"
}
bounded_number! {
    /// The weight of the newest sample in a moving average, in (0, 1]; the papers' w_q.
    Weight(value): value > 0.0 && value <= 1.0, "a weight lies above 0 and at most at 1, not {value}"
}
bounded_number! {
    /// A number of at least 1.
    Positive(value): value.is_finite() && value >= 1.0, "a number of at least 1, not {value}"
}
bounded_number! {
    /// A number above 0.
    AboveZero(value): value.is_finite() && value > 0.0, "a number above 0, not {value}"
}
bounded_number! {
    /// A multiple of what there is, above 0, such as the load of a link; a scenario may write it as a
    /// percentage, too (`"60%"`).
    Load(value): value.is_finite() && value > 0.0, "a number above 0, not {value}"
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

/// The form of a percentage, as a regular expression.
const PERCENT: &str = r"^([0-9]+(\.[0-9]+)?|\.[0-9]+) ?%$";

/// A number that may also be written as a percentage: `0.01` or `"1%"`. `$range` says which percentages are
/// valid.
macro_rules! number_or_percentage {
    ($type:ident, $range:literal, $schema:expr) => {
        impl FromStr for $type {
            type Err = UnitError;
            /// Reads a percentage; the number is the nearest one to its hundredth.
            fn from_str(text: &str) -> Result<Self, UnitError> {
                let number = percentage(text)?;
                Self::new(number).map_err(|_| UnitError::new(format!(concat!("`{}`: ", $range), text)))
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                fraction(deserializer, Self::new)
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

/// The number of a percentage.
fn percentage(text: &str) -> Result<f64, UnitError> {
    let number = text.strip_suffix('%').map(|number| number.strip_suffix(' ').unwrap_or(number));
    let number = number.filter(|number| is_decimal(number));
    // The decimal point moves in the text: 0.7 / 100 is not the number nearest to 0.007.
    let hundredth = number.and_then(|number| format!("{number}e-2").parse::<f64>().ok());
    hundredth.ok_or_else(|| {
        UnitError::new(format!("`{text}` is no percentage; write a number such as 0.01, or \"1%\""))
    })
}

/// Reads a number, which `new` checks, or a percentage as text.
fn fraction<'de, T: FromStr<Err = UnitError>, D: Deserializer<'de>>(
    deserializer: D,
    new: impl Fn(f64) -> Result<T, UnitError>,
) -> Result<T, D::Error> {
    let read = |value: f64| {
        new(value).map_err(|problem| match value {
            // A percentage without its sign.
            1.0..=100.0 => de::Error::custom(format!("{problem}; {value} % is \"{value}%\"")),
            _ => de::Error::custom(problem),
        })
    };
    UntaggedEnumVisitor::new()
        .expecting("a number such as 0.01, or a percentage such as \"1%\"")
        .f64(read)
        .i128(|value| read(value as f64))
        .string(|text| text.parse().map_err(de::Error::custom))
        .deserialize(deserializer)
}

number_in_range!(AboveZero, json_schema!({ "type": "number", "exclusiveMinimum": 0 }));
number_in_range!(Positive, json_schema!({ "type": "number", "minimum": 1 }));
number_or_percentage!(
    Probability,
    "at most 100 % and at least 0 %",
    json_schema!({ "type": ["number", "string"], "minimum": 0, "maximum": 1, "pattern": PERCENT, "examples": ["1%"] })
);
number_or_percentage!(
    Load,
    "a percentage above 0 %",
    json_schema!({ "type": ["number", "string"], "exclusiveMinimum": 0, "pattern": PERCENT, "examples": ["60%"] })
);
number_in_range!(Weight, json_schema!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }));
