//! Traffic matrices: between which routers the flows of a group go.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use perhop_core::Bitrate;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_untagged::UntaggedEnumVisitor;

use super::forms::is_default;

/// A traffic matrix: between which routers the flows of a group go, each between its own hosts.
///
/// Gravity (the default): each flow draws the router of its sender and another for its receiver, both with
/// probabilities in proportion to `weights`. Measured: the flows are divided among pairs of routers in
/// proportion to given rates.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Between {
    /// The routers from which gravity draws: tiers of the topology or routers by name. Default: the lowest
    /// tier, such as `edge`; without a topology all routers.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub among: Vec<String>,
    /// How gravity weighs a router.
    #[serde(default, skip_serializing_if = "is_default")]
    pub weights: Weights,
    /// The weights of single routers by name, in place of that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weight: BTreeMap<String, f64>,
    /// The seed of the draws: they are part of the network, the same in all runs. Groups of other names draw
    /// independently.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u32,
    /// A measured matrix as CSV, `from,to,rate_Mbps` (or `rate_bps`, `rate_kbps`), one pair of routers in
    /// each line.
    pub file: Option<String>,
    /// What a matrix that is given as `demands` is called: the file it is from.
    pub name: Option<String>,
    /// A measured matrix, in place of a file: lists of two routers and a rate, such as
    /// `["Vienna", "Graz", "300Mbps"]`.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<Demand>,
    /// Where the demands stand in the file, until their routers are checked.
    #[serde(skip)]
    pub(crate) lines: Lines,
    /// The routers of each flow's hosts, by number.
    #[serde(skip)]
    pub(crate) pairs: Arc<Vec<(u32, u32)>>,
}

/// The lines of a matrix, for messages about its routers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lines {
    /// The line of each demand.
    pub(crate) of_demands: Vec<usize>,
    /// The lines whose rate is 0, which make no demand: their numbers and routers.
    pub(crate) idle: Vec<(usize, [String; 2])>,
}

/// Reads a list that holds something: an empty one would be as none.
fn filled<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(deserializer)?;
    if list.is_empty() {
        return Err(de::Error::custom("the list is empty; fill it, or leave this key out"));
    }
    Ok(list)
}

/// How gravity weighs a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All the same: every pair of routers is as likely as another.
    #[default]
    Equal,
    /// By the number of its links.
    Degree,
}

/// The rate from one router to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Where the traffic enters the network.
    pub from: String,
    /// Where it leaves it.
    pub to: String,
    /// The rate of the traffic.
    pub rate: Bitrate,
}

impl Serialize for Demand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq([&self.from, &self.to, &self.rate.to_string()])
    }
}

impl<'de> Deserialize<'de> for Demand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("a list of two routers and a rate")
            .seq(|list| {
                let Ok([from, to, rate]) = <[String; 3]>::try_from(list.deserialize::<Vec<String>>()?) else {
                    let text = "a demand is two routers and a rate, such as [\"a\", \"b\", \"3Mbps\"]";
                    return Err(de::Error::custom(text));
                };
                Ok(Self { from, to, rate: rate.parse().map_err(de::Error::custom)? })
            })
            .deserialize(deserializer)
    }
}

impl JsonSchema for Demand {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Demand".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "string" }, "minItems": 3, "maxItems": 3 })
    }
}
