//! Markers: a color written into the packet as a codepoint (RFC 2475, section 2.3.3.2).

use crate::{Color, Dscp, Header};

/// One of the four Assured Forwarding classes (RFC 2597, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AfClass(u8);

impl AfClass {
    /// Class AF1x: what perhop writes unless told otherwise.
    pub const ONE: Self = Self(1);

    /// The class AFnx, for n in 1..=4.
    pub const fn new(class: u8) -> Option<Self> {
        if class >= 1 && class <= 4 { Some(Self(class)) } else { None }
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
    }
}
