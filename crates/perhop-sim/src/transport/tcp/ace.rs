//! ACE of Accurate ECN: a count of marked packets in three bits of each ACK (RFC 9768, section 3.2.2).
//!
//! A sender reads it as section 3.2.2.5 demands where ACKs were lost: the greatest number of new marks that
//! fits the field and the packets that the ACK acknowledges (appendix A.2.1). As in Linux, the field is taken
//! as it is where that would be unlikely: the ACK is of seven packets at most, or ACKs usually are of many.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How ACKs carry the number of marked packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccEcn {
    /// The number itself, as if the field never wrapped: lost ACKs lose no marks.
    #[default]
    Exact,
    /// The number modulo 8 in the ACE field (RFC 9768, section 3.2.2), without the option of byte counts.
    /// Where ACKs of more than seven packets come, such as after lost ACKs, the sender assumes as many marks
    /// as fit, unless an ACK is of more than four packets on average (as Linux does). Where ACKs are usually
    /// of that many, marks are lost, and a flow gets more than its share.
    Ace,
}

impl AccEcn {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    pub(super) fn is_exact(&self) -> bool {
        *self == Self::Exact
    }
}

/// The field counts modulo this.
const MODULUS: u32 = 8;
/// The counter at the start (RFC 9768, section 3.2.1).
const INITIAL: u32 = 5;
/// ACKs of more packets than this are usual for the path, so they come together by thinning of ACKs (Linux's
/// `ACK_COMP_THRESH`).
const USUALLY_MANY: u32 = 4;
/// The average is kept in 1/64 of a packet, and a new ACK has the weight 1/64.
const AVERAGE_SHIFT: u32 = 6;

/// Returns what the ACE field says after so many marks.
pub(super) const fn field(marks: u32) -> u32 {
    INITIAL.wrapping_add(marks) % MODULUS
}

/// What a sender remembers to read the field.
#[derive(Clone, Copy, Debug)]
pub(super) struct AceReader {
    field: u32,
    /// Packets that an ACK acknowledges, on average, in 1/64; 0 before the first one.
    acknowledged: u32,
}

impl Default for AceReader {
    fn default() -> Self {
        Self { field: INITIAL, acknowledged: 0 }
    }
}

impl AceReader {
    /// Returns the new marks that an ACK of so many packets reports.
    pub(super) fn read(&mut self, field: u32, packets: u32) -> u32 {
        let advance = field.wrapping_sub(self.field) % MODULUS;
        self.field = field;
        if packets > 0 {
            let (new, old) = (packets << AVERAGE_SHIFT, self.acknowledged);
            self.acknowledged =
                if old == 0 { new } else { ((old << AVERAGE_SHIFT) - old + new) >> AVERAGE_SHIFT };
        }
        if packets < MODULUS || self.acknowledged > USUALLY_MANY << AVERAGE_SHIFT {
            return advance;
        }
        most(packets, advance)
    }
}

/// Returns the most marks among so many packets that advance the field so far (RFC 9768, appendix A.2.1).
const fn most(packets: u32, advance: u32) -> u32 {
    packets - (packets - advance) % MODULUS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// New marks by ACK, each a field and the number of packets that it acknowledges.
    fn read<const N: usize>(acks: [(u32, u32); N]) -> [u32; N] {
        let mut reader = AceReader::default();
        acks.map(|(field, packets)| reader.read(field, packets))
    }

    #[test]
    fn the_field_wraps() {
        assert_eq!([0, 1, 2, 3, 8].map(field), [5, 6, 7, 0, 5]);
        assert_eq!(read([(5, 2), (6, 2), (1, 5), (6, 7), (5, 7)]), [0, 1, 3, 5, 7]);
        assert_eq!(read([(6, 1), (6, 1), (7, 1), (7, 1), (0, 1)]), [1, 0, 1, 0, 1]);
    }

    #[test]
    fn the_safe_reading_takes_the_most_marks_that_fit() {
        assert_eq!(
            [(20, 3), (8, 0), (3, 3), (8, 7)].map(|(packets, advance)| most(packets, advance)),
            [19, 8, 3, 7]
        );
    }

    #[test]
    fn acks_of_many_packets_are_read_as_linux_reads_them() {
        // Linux's packetdrill tests: ten segments in one ACK, with ACE 4, 6 and 5; in two of 1 and 9.
        assert_eq!((read([(4, 10)]), read([(6, 10)]), read([(5, 10)])), ([7], [1], [0]));
        let mut reader = AceReader::default();
        assert_eq!([1, 9].map(|packets| reader.read(5, packets)), [0, 8]);
        assert_eq!(reader.acknowledged, 72, "1.125 packets");
    }
}
