//! What a block may know of a packet.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::units::UnitError;
use crate::{Bitrate, Bytes, Instant};

/// A flow's number within its scenario or router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

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

    /// 0 for green, 1 for yellow, 2 for red.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The color's name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
        }
    }
}

/// A Differentiated Services codepoint (RFC 2474): six bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u8")]
pub struct Dscp(u8);

impl Dscp {
    /// Best effort: the default PHB.
    pub const DEFAULT: Self = Self(0);

    /// The codepoint with this value, if it has six bits.
    #[inline]
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 { Some(Self(value)) } else { None }
    }

    /// The six-bit value.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<i64> for Dscp {
    type Error = UnitError;
    fn try_from(value: i64) -> Result<Self, UnitError> {
        let six_bits = u8::try_from(value).ok().and_then(Self::new);
        six_bits.ok_or_else(|| UnitError::new(format!("a codepoint lies between 0 and 63, not {value}")))
    }
}

impl From<Dscp> for u8 {
    fn from(dscp: Dscp) -> Self {
        dscp.0
    }
}

impl JsonSchema for Dscp {
    fn schema_name() -> Cow<'static, str> {
        "Dscp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": 63 })
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
    /// Whether the packet's ends can be told of congestion by a mark in it (RFC 3168, section 5).
    #[inline]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotCapable)
    }
}

/// The service that a packet's flow was sold, as the packet itself carries it: its profile rate in steps of 10 kbit/s, so
/// that a router can favour it without state for flows (Yeom & Reddy 1999, section 3.2). Rates above 655.35 Mbit/s share
/// the highest level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceLevel(u16);

impl ServiceLevel {
    /// No profile: best effort.
    pub const NONE: Self = Self(0);
    const STEP_BPS: u64 = 10_000;

    /// The level nearest to a profile rate, never zero.
    pub fn of(rate: Bitrate) -> Self {
        let steps = (rate.as_bps() + Self::STEP_BPS / 2) / Self::STEP_BPS;
        Self(u16::try_from(steps).unwrap_or(u16::MAX).max(1))
    }

    /// The level of this number of steps.
    pub const fn new(steps: u16) -> Self {
        Self(steps)
    }

    /// The number of its steps, by which it travels.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The rate that the level stands for, in bit/s.
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
    /// Size on the wire, IP header included.
    pub size: u16,
    /// The service its flow was sold.
    pub service: ServiceLevel,
    /// The label-switched path it follows.
    pub label: u32,
    /// Its codepoint.
    pub dscp: Dscp,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its drop precedence.
    pub color: Color,
}

impl Header {
    /// A best-effort packet of `size` of the flow `flow`.
    pub const fn new(flow: FlowId, size: u16) -> Self {
        Self {
            arrived: Instant::ZERO,
            flow,
            size,
            service: ServiceLevel::NONE,
            label: 0,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotCapable,
            color: Color::Yellow,
        }
    }

    /// Size on the wire.
    pub const fn size(&self) -> Bytes {
        Bytes::new(self.size as u64)
    }
}

/// Anything that carries a [`Header`]: a simulated packet, or a real one in its buffer.
pub trait Packet {
    /// The header, for reading.
    fn header(&self) -> &Header;
    /// The header, for marking.
    fn header_mut(&mut self) -> &mut Header;
}

impl Packet for Header {
    fn header(&self) -> &Header {
        self
    }
    fn header_mut(&mut self) -> &mut Header {
        self
    }
}

const _: () = assert!(size_of::<Header>() == 24);
