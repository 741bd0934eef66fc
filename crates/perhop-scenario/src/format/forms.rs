//! The forms of the format's types in text, where these are not derived.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use perhop_core::Duration;
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::table::nested;
use perhop_core::units::{TIME, UnitError, parts};
use perhop_sim::transport::rap::RapParams;
use perhop_sim::transport::tcp::TcpParams;
use perhop_sim::transport::tfrc::TfrcParams;
use perhop_sim::transport::udp::UdpParams;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{
    FlowProfile, MeasuredArrivals, Profile, Queue, RateTrace, ReplayedPackets, Start, Transport, Warmup,
};

/// The warm-up that is to be found.
const AUTO: &str = "auto";

/// Returns whether a value is what a scenario that leaves it out has.
pub(in crate::format) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Start {
    /// Returns a range within the first second: synchronized starts cause phase effects.
    fn default() -> Self {
        Self { first: Duration::ZERO, last: Duration::from_secs(1) }
    }
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |part: &str| part.parse::<Duration>().map_err(|problem| problem.to_string());
        let mut times = parts(text, "..");
        let first = parse(times.next().unwrap_or(text))?;
        let last = times.next().map_or(Ok(first), parse)?;
        if times.next().is_some() {
            return Err(format!("`{text}`: a range has two ends, such as 0s..1s"));
        }
        if first > last {
            return Err(format!("`{text}`: the range ends before it begins; write the earlier time first"));
        }
        Ok(Self { first, last })
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}..{}", self.first, self.last) }
    }
}

impl Serialize for Start {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Start {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Start {
    fn schema_name() -> Cow<'static, str> {
        "Start".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": format!(r"^{TIME}( *\.\. *{TIME})?$"),
            "examples": ["0s..1s", "2s"],
        })
    }
}

impl fmt::Display for Warmup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str(AUTO),
            Self::Lasts(period) => period.fmt(f),
        }
    }
}

impl Serialize for Warmup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Warmup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) if text == AUTO => Ok(Self::Auto),
            other => Duration::deserialize(other)
                .map(Self::Lasts)
                .map_err(|error| de::Error::custom(format!("{error}, or {AUTO}"))),
        }
    }
}

impl JsonSchema for Warmup {
    fn schema_name() -> Cow<'static, str> {
        "Warmup".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": format!("^({AUTO}|{TIME})$"),
            "examples": [AUTO, "10s"],
        })
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (scheduler, scheduler_named) = SchedulerParams::deserialize_queue(deserializer)?;
        Ok(Self { scheduler, scheduler_named })
    }
}

/// Reads a name, such as that of a file, or a table.
fn name_or_table<'de, R, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
    name: fn(String) -> R,
    table: fn(T) -> R,
) -> Result<R, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(name(text)),
        value => nested(value, |value| Some(T::deserialize(value))).expect("always read").map(table),
    }
}

impl<'de> Deserialize<'de> for FlowProfile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        name_or_table(deserializer, Self::Shared, Self::Own)
    }
}

impl<'de> Deserialize<'de> for RateTrace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        name_or_table(deserializer, Self::File, Self::Table)
    }
}

impl<'de> Deserialize<'de> for MeasuredArrivals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        name_or_table(deserializer, Self::File, Self::Table)
    }
}

impl<'de> Deserialize<'de> for ReplayedPackets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        name_or_table(deserializer, Self::File, Self::Table)
    }
}

impl<'de> Deserialize<'de> for Transport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = Map::deserialize(deserializer)?;
        let kinds: Vec<&str> =
            ["tcp", "udp", "rap", "tfrc"].into_iter().filter(|kind| table.contains_key(*kind)).collect();
        let table = Value::Object(table);
        match kinds[..] {
            ["tcp"] => read_transport(table, TcpParams::check).map(Self::Tcp),
            ["udp"] => read_transport(table, UdpParams::check).map(Self::Udp),
            ["rap"] => read_transport(table, RapParams::check).map(Self::Rap),
            ["tfrc"] => read_transport(table, TfrcParams::check).map(Self::Tfrc),
            _ => Err(de::Error::custom(
                "a transport names one protocol: tcp = \"newreno\" (or \"reno\", \"two-windows\", \"linux\", \"quic\", \"ns-1998\"), udp = \
                 \"cbr\" (or \"on-off\"), rap = \"aimd\", or tfrc = \"rfc5348\" (or \"square-root\")",
            )),
        }
    }
}

/// Reads a transport's table, with the checks that no single key can make.
fn read_transport<T: DeserializeOwned, E: de::Error>(
    table: Value,
    check: impl FnOnce(&T) -> Result<(), UnitError>,
) -> Result<T, E> {
    let params = nested(table, |table| Some(T::deserialize(table))).expect("always read")?;
    check(&params).map_err(de::Error::custom)?;
    Ok(params)
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.scheduler.serialize_as_queue(serializer)
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SchedulerParams::queue_schema(generator)
    }
}

impl JsonSchema for Profile {
    fn schema_name() -> Cow<'static, str> {
        "Profile".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        MeterParams::json_schema(generator)
    }
}
