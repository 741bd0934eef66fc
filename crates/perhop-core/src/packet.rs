//! What a block may know of a packet.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_untagged::UntaggedEnumVisitor;

use crate::units::UnitError;
use crate::{Bitrate, Bytes, Instant};

/// A flow's number within its scenario or router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// Which way a packet of a flow goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// From the sender to the receiver: data.
    #[default]
    Forward = 0,
    /// From the receiver to the sender: ACKs and reports.
    Backward = 1,
}

/// Drop precedence (RFC 2597, RFC 2697): green is IN, yellow is OUT, red is OUT-OUT where there are three.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Color {
    /// In profile.
    Green = 0,
    /// Out of profile.
    #[default]
    Yellow = 1,
    /// Furthest out of profile.
    Red = 2,
}

impl Color {
    /// Every color, least droppable first.
    pub const ALL: [Self; 3] = [Self::Green, Self::Yellow, Self::Red];

    /// Returns 0 for green, 1 for yellow, 2 for red.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the color's name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
        }
    }
}

/// A Differentiated Services codepoint (RFC 2474): six bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "u8")]
pub struct Dscp(u8);

/// Several codepoints: those of a behaviour aggregate (RFC 2475, section 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Codepoints(u64);

/// The codepoints that have names (IANA's registry of Differentiated Services Field Codepoints).
const NAMED: [(&str, u8); 25] = [
    ("DF", 0),
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("LE", 1),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("EF", 46),
    ("VOICE-ADMIT", 44),
    ("NQB", 45),
];

/// What a codepoint is in a scenario.
const CODEPOINT: &str =
    "a codepoint: a number from 0 to 63, or a name such as \"EF\", \"AF11\", \"NQB\" or \"DF\"";

impl Dscp {
    /// Best effort: the default PHB.
    pub const DEFAULT: Self = Self(0);

    /// Returns the codepoint with this value, if it has six bits.
    #[inline]
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 { Some(Self(value)) } else { None }
    }

    /// Returns the six-bit value of the codepoint.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the codepoint with this value; refuses one that does not have six bits.
    fn of(value: i128) -> Result<Self, UnitError> {
        let six_bits = u8::try_from(value).ok().and_then(Self::new);
        six_bits.ok_or_else(|| UnitError::new(format!("a codepoint lies between 0 and 63, not {value}")))
    }
}

impl fmt::Display for Dscp {
    /// Writes the name of the codepoint, or its number where it has none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMED.iter().find(|(_, value)| *value == self.0) {
            Some((name, _)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

impl FromStr for Dscp {
    type Err = UnitError;

    fn from_str(name: &str) -> Result<Self, UnitError> {
        let known = NAMED.iter().find(|(known, _)| *known == name);
        known.map(|&(_, value)| Self(value)).ok_or_else(|| {
            let names = NAMED.map(|(name, _)| format!("`{name}`")).join(", ");
            UnitError::new(format!(
                "unknown codepoint `{name}`, expected one of {names}, or a number from 0 to 63"
            ))
        })
    }
}

impl From<Dscp> for u8 {
    fn from(dscp: Dscp) -> Self {
        dscp.0
    }
}

impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(CODEPOINT)
            .i128(|value| Self::of(value).map_err(de::Error::custom))
            .string(|name| name.parse().map_err(de::Error::custom))
            .deserialize(deserializer)
    }
}

impl JsonSchema for Dscp {
    fn schema_name() -> Cow<'static, str> {
        "Dscp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A codepoint: its six-bit number, or its name in IANA's registry.",
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": 63, "description": "The number of the codepoint." },
                { "type": "string", "enum": NAMED.map(|(name, _)| name), "description": "The name of the codepoint." },
            ],
        })
    }
}

impl Codepoints {
    /// Returns whether the set has this codepoint.
    pub const fn contains(self, dscp: Dscp) -> bool {
        self.0 >> dscp.0 & 1 == 1
    }

    /// Returns whether the set has all of `others`.
    pub const fn contain_all(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// Returns each codepoint, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Dscp> {
        (0..64).map(Dscp).filter(move |dscp| self.contains(*dscp))
    }
}

impl From<Dscp> for Codepoints {
    fn from(dscp: Dscp) -> Self {
        Self(1 << dscp.0)
    }
}

impl FromIterator<Dscp> for Codepoints {
    fn from_iter<I: IntoIterator<Item = Dscp>>(codepoints: I) -> Self {
        Self(codepoints.into_iter().fold(0, |bits, dscp| bits | 1 << dscp.0))
    }
}

impl Serialize for Codepoints {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut codepoints = self.iter();
        match (codepoints.next(), codepoints.next()) {
            (Some(only), None) => only.serialize(serializer),
            _ => serializer.collect_seq(self.iter()),
        }
    }
}

impl<'de> Deserialize<'de> for Codepoints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(format_args!("{CODEPOINT}; or a list of codepoints"))
            .i128(|value| Dscp::of(value).map(Self::from).map_err(de::Error::custom))
            .string(|name| name.parse().map(Dscp::into).map_err(de::Error::custom))
            .seq(|list| match list.deserialize::<Vec<Dscp>>()? {
                none if none.is_empty() => {
                    Err(de::Error::custom("the list names no codepoint; leave the key out, or name some"))
                }
                some => Ok(some.into_iter().collect()),
            })
            .deserialize(deserializer)
    }
}

impl JsonSchema for Codepoints {
    fn schema_name() -> Cow<'static, str> {
        "Codepoints".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<Dscp>();
        json_schema!({
            "description": "One codepoint, or a list of them, such as [\"AF11\", \"AF12\", \"AF13\"].",
            "anyOf": [one, { "type": "array", "items": one, "minItems": 1, "description": "Each of these." }],
        })
    }
}

/// The ECN field (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable = 0,
    /// ECT(1).
    Capable1 = 1,
    /// ECT(0).
    Capable0 = 2,
    /// Congestion experienced.
    Congested = 3,
}

impl Ecn {
    /// Returns whether the packet is ECN-capable: a mark in it notifies its ends of congestion (RFC 3168,
    /// section 5).
    #[inline]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotCapable)
    }
}

/// The contracted rate of a packet's flow, as the packet itself carries it: its profile rate in steps of 10
/// kbit/s, so that a router can favour it without state for flows (Yeom & Reddy 1999, section 3.2). Rates
/// above 655.35 Mbit/s share the highest level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceLevel(u16);

impl ServiceLevel {
    /// No profile: best effort.
    pub const NONE: Self = Self(0);
    const STEP_BPS: u64 = 10_000;

    /// Returns the level nearest to a profile rate, never zero.
    pub fn of(rate: Bitrate) -> Self {
        let steps = (rate.as_bps() + Self::STEP_BPS / 2) / Self::STEP_BPS;
        Self(u16::try_from(steps).unwrap_or(u16::MAX).max(1))
    }

    /// Returns the level of this number of steps.
    pub const fn new(steps: u16) -> Self {
        Self(steps)
    }

    /// Returns the number of the level's steps, by which it travels.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the rate that the level means, in bit/s.
    #[inline]
    pub fn as_bps(self) -> f64 {
        f64::from(self.0) * Self::STEP_BPS as f64
    }
}

/// The part of a packet that blocks read; small and `Copy`, so that it travels by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// When the packet came to the queue that last held it.
    pub arrived: Instant,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// Which way of the flow it goes.
    pub direction: Direction,
    /// Size on the wire, IP header included.
    pub size: u16,
    /// The contracted rate of its flow.
    pub service: ServiceLevel,
    /// The label-switched path that the packet follows.
    pub label: u32,
    /// The codepoint of the packet.
    pub dscp: Dscp,
    /// The ECN field of the packet.
    pub ecn: Ecn,
    /// The drop precedence of the packet.
    pub color: Color,
}

impl Header {
    /// Returns a best-effort packet of `size` of the flow `flow`.
    pub const fn new(flow: FlowId, size: u16) -> Self {
        Self {
            arrived: Instant::ZERO,
            flow,
            direction: Direction::Forward,
            size,
            service: ServiceLevel::NONE,
            label: 0,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotCapable,
            color: Color::Yellow,
        }
    }

    /// Returns the size of the packet on the wire.
    pub const fn size(&self) -> Bytes {
        Bytes::new(self.size as u64)
    }
}

/// Anything that carries a [`Header`]: a simulated packet, or a real one in its buffer.
pub trait Packet {
    /// Returns the header. Read single fields of the result: the compiler then decodes only those.
    fn header(&self) -> Header;
    /// Notes that it comes to a queue now.
    fn arrive(&mut self, now: Instant);
    /// Marks it as having met congestion (CE).
    fn notify(&mut self);
}

impl Packet for Header {
    fn header(&self) -> Header {
        *self
    }
    fn arrive(&mut self, now: Instant) {
        self.arrived = now;
    }
    fn notify(&mut self) {
        self.ecn = Ecn::Congested;
    }
}

const _: () = assert!(size_of::<Header>() == 24);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Codepoints, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn codepoints_have_the_names_of_their_registry() {
        let named = |name: &str| name.parse::<Dscp>().unwrap().get();
        assert_eq!(["DF", "LE", "CS1", "AF11", "AF43", "EF", "CS7"].map(named), [0, 1, 8, 10, 38, 46, 56]);
        let shown = |value| Dscp::new(value).unwrap().to_string();
        assert_eq!([0, 8, 12, 46, 3].map(shown), ["DF", "CS1", "AF12", "EF", "3"]);
        for (name, value) in NAMED {
            assert_eq!(named(name), value);
        }
    }

    #[test]
    fn a_match_takes_one_codepoint_or_a_list_by_number_or_name() {
        let numbers = |text: &str| read(text).unwrap().iter().map(Dscp::get).collect::<Vec<_>>();
        assert_eq!(numbers("46"), [46]);
        assert_eq!(numbers(r#""EF""#), [46]);
        assert_eq!(numbers(r#"["AF13", "AF11", 12]"#), [10, 12, 14]);
        assert_eq!(serde_json::to_string(&read(r#"["EF"]"#).unwrap()).unwrap(), "46");
        assert_eq!(serde_json::to_string(&read(r#"["AF12", "AF11"]"#).unwrap()).unwrap(), "[10,12]");
        let assured = read("[10, 12, 14]").unwrap();
        assert!(
            assured.contain_all(read("[10, 14]").unwrap()) && !assured.contain_all(read("[10, 46]").unwrap())
        );
        assert!(read("[]").unwrap_err().contains("names no codepoint"));
        assert!(read("64").unwrap_err().contains("between 0 and 63, not 64"));
        assert!(read("-1").unwrap_err().contains("between 0 and 63"));
        assert!(read(r#"["EF", "AF14"]"#).unwrap_err().contains("unknown codepoint `AF14`"));
        assert!(read("1.5").unwrap_err().contains("a number from 0 to 63, or a name"));
    }
}
