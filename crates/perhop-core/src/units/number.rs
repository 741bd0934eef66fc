//! Numbers that lie in a range by construction.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::UnitError;

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

impl Probability {
    /// A probability.
    ///
    /// # Errors
    /// A value outside [0, 1] is refused.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(UnitError::new(format!("a probability lies between 0 and 1, not {value}")))
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
            Err(UnitError::new(format!("a weight lies above 0 and at most at 1, not {value}")))
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
            Err(UnitError::new(format!("a number of at least 1, not {value}")))
        }
    }

    /// A constant in the source code.
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
            Err(UnitError::new(format!("a number above 0, not {value}")))
        }
    }

    /// A constant in the source code.
    pub(crate) const fn literal(value: f64) -> Self {
        assert!(value > 0.0);
        Self(value)
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
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
