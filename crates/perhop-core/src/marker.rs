//! Markers: a color written into the packet as a codepoint (RFC 2475, section 2.3.3.2).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::units::UnitError;
use crate::{Color, Dscp, Header};

/// One of the four Assured Forwarding classes (RFC 2597, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u8")]
pub struct AfClass(u8);

impl AfClass {
    /// Class AF1x, the default.
    pub const ONE: Self = Self(1);

    /// The class AFnx, for n in 1..=4.
    pub const fn new(class: u8) -> Option<Self> {
        if class >= 1 && class <= 4 { Some(Self(class)) } else { None }
    }

    /// Which of the classes it is, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize - 1
    }

    /// The class of a codepoint and its drop precedence: AFn1 is green, AFn2 yellow, AFn3 red.
    pub const fn of(dscp: Dscp) -> Option<(Self, Color)> {
        let color = match dscp.get() & 7 {
            2 => Color::Green,
            4 => Color::Yellow,
            6 => Color::Red,
            _ => return None,
        };
        match Self::new(dscp.get() >> 3) {
            Some(class) => Some((class, color)),
            None => None,
        }
    }

    /// The codepoint of this class with the drop precedence of `color`: AFn1 green, AFn2 yellow, AFn3 red.
    #[inline]
    pub const fn codepoint(self, color: Color) -> Dscp {
        let precedence = color.index() as u8 + 1;
        match Dscp::new(self.0 * 8 + precedence * 2) {
            Some(dscp) => dscp,
            None => Dscp::DEFAULT,
        }
    }

    /// Writes a meter's verdict into a packet.
    #[inline]
    pub fn mark(self, packet: &mut Header, color: Color) {
        packet.color = color;
        packet.dscp = self.codepoint(color);
    }
}

/// A marker of packets that came with a color and a codepoint.
#[derive(Clone, Copy, Debug)]
pub struct Remarker {
    /// The class of the codepoints that it writes; `None` for that of each packet's own codepoint, if it has
    /// one.
    pub class: Option<AfClass>,
    /// A packet may get a lower drop precedence than it came with.
    pub promote: bool,
}

impl Remarker {
    /// Writes a meter's verdict into a packet.
    pub fn mark(self, packet: &mut Header, color: Color) {
        let color = if self.promote { color } else { color.max(packet.color) };
        packet.color = color;
        let own = || AfClass::of(packet.dscp).map(|(class, _)| class);
        if let Some(class) = self.class.or_else(own) {
            packet.dscp = class.codepoint(color);
        }
    }
}

impl Default for AfClass {
    fn default() -> Self {
        Self::ONE
    }
}

impl TryFrom<i64> for AfClass {
    type Error = UnitError;
    fn try_from(class: i64) -> Result<Self, UnitError> {
        let found = u8::try_from(class).ok().and_then(Self::new);
        found.ok_or_else(|| {
            UnitError::new(format!("the classes of Assured Forwarding are 1 to 4, not {class}"))
        })
    }
}

impl From<AfClass> for u8 {
    fn from(class: AfClass) -> Self {
        class.0
    }
}

impl JsonSchema for AfClass {
    fn schema_name() -> Cow<'static, str> {
        "AfClass".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": 4 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_of_rfc_2597_section_6() {
        let table: Vec<[u8; 3]> = (1..=4)
            .map(|n| Color::ALL.map(|color| AfClass::new(n).unwrap().codepoint(color).get()))
            .collect();
        assert_eq!(table, [[10, 12, 14], [18, 20, 22], [26, 28, 30], [34, 36, 38]]);
        assert_eq!((AfClass::new(0), AfClass::new(5)), (None, None));
        for (class, row) in (1..).zip(table) {
            for (color, codepoint) in Color::ALL.into_iter().zip(row) {
                let read = AfClass::of(Dscp::new(codepoint).unwrap());
                assert_eq!(read, Some((AfClass::new(class).unwrap(), color)));
            }
        }
        for other in [0, 2, 6, 8, 11, 42, 46, 63] {
            assert_eq!(AfClass::of(Dscp::new(other).unwrap()), None, "{other}");
        }
    }
}
