//! The key `congestion` of a TCP transport: a congestion control's name, or a table with its parameters, too.

use std::borrow::Cow;

use perhop_core::Block;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use serde_untagged::UntaggedEnumVisitor;

use super::{CongestionParams, Foreign, registered};

/// The advice in place of the name of the control that a class implements.
const NO_CLASS: &str =
    "`python` means a class; write which, such as \"my_congestion_control:MyCongestionControl\"";

/// A key of a transport that is a parameter of a congestion control by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerKey {
    /// The key.
    pub key: &'static str,
    /// The one value of the key that moved, which is the parameter `true` now; `None` if the whole key moved.
    pub value: Option<&'static str>,
    /// The parameter.
    pub parameter: &'static str,
}

impl FormerKey {
    /// Declares a key that moved as it is.
    pub const fn moved(key: &'static str) -> Self {
        Self::renamed(key, key)
    }

    /// Declares a key that moved and has another name now.
    pub const fn renamed(key: &'static str, parameter: &'static str) -> Self {
        Self { key, value: None, parameter }
    }

    /// Returns the subject of a message at this key: "`hystart` is " where one value moved, and none where
    /// the key did.
    pub fn subject(&self) -> String {
        self.value.map_or_else(String::new, |value| format!("`{value}` is "))
    }
}

/// The value of the key `congestion`. It is written as a name if all parameters have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Congestion(pub CongestionParams);

impl Serialize for Congestion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = self.0.name();
        if CongestionParams::named(name).as_ref() == Some(&self.0) {
            serializer.serialize_str(name)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Congestion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("string or map")
            .string(|name| {
                if name == Foreign::NAME {
                    return Err(de::Error::custom(NO_CLASS));
                }
                let read = CongestionParams::deserialize_named(name, serde_json::json!({}));
                read.ok_or_else(|| de::Error::unknown_variant(name, CongestionParams::NAMES))?
                    .map_err(de::Error::custom)
            })
            .map(|table| {
                CongestionParams::deserialize(table.deserialize::<Value>()?).map_err(de::Error::custom)
            })
            .deserialize(deserializer)
            .map(Self)
    }
}

impl JsonSchema for Congestion {
    fn schema_name() -> Cow<'static, str> {
        "Congestion".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut blocks = registered();
        blocks.retain(|block| CongestionParams::named(block.name).is_some());
        blocks.sort_by_key(|block| block.origin.era);
        let names = blocks.iter().map(|block| {
            let description = format!("{}. Source: {}.", block.summary, block.origin);
            serde_json::json!({ "type": "string", "const": block.name, "description": description })
        });
        let class = serde_json::json!({
            "type": "string", "pattern": "^[\\w.]+:\\w+$",
            "description": "A class in Python, as `module:Class`: a subclass of `perhop.CongestionControl`.",
        });
        let tables = CongestionParams::json_schema(generator).to_value();
        let tables = tables["oneOf"].as_array().cloned().unwrap_or_default();
        let choices: Vec<Value> = names.chain([class]).chain(tables).collect();
        let description = "Which rule moves the congestion window: its name, or a table with its name under `control` and its \
                           parameters, such as `{ control = \"dctcp\", estimation-gain = 0.1 }`.";
        json_schema!({ "oneOf": choices, "description": description })
    }
}
