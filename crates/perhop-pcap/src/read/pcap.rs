//! pcap: a header, then packets, each with its time and its lengths (draft-ietf-opsawg-pcap).

use std::io::Read;

use super::source::{Order, Source};
use super::{Found, LONGEST, Problem, damaged, keep};

/// What a pcap file says of all of its packets.
#[derive(Debug)]
pub(super) struct Pcap {
    order: Order,
    /// Nanoseconds in the unit of fractions of a second.
    unit: u32,
    link_type: u16,
}

impl Pcap {
    /// Reads the file's header, if it begins with a magic number of pcap.
    pub(super) fn begin<R: Read>(magic: [u8; 4], source: &mut Source<R>) -> Option<Result<Self, Problem>> {
        let (order, unit) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1),
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1),
            _ => return None,
        };
        // Version, two unused words, the snapshot length, and the link type below the length of a frame's
        // checksum.
        let header = source.array::<20>();
        Some(header.map_err(Problem::from).map(|header| {
            let [_, _, _, _, network] = order.words(&header);
            Self { order, unit, link_type: network as u16 }
        }))
    }

    /// Reads the next packet.
    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
        kept: &mut [u8],
    ) -> Result<Option<Found>, Problem> {
        if source.is_over()? {
            return Ok(None);
        }
        let [seconds, fraction, captured, length] = self.order.words(&source.array::<16>()?);
        if captured > LONGEST {
            return damaged(format!(
                "the next packet would have {captured} bytes, and no packet has more than {LONGEST}"
            ));
        }
        let nanos = u64::from(fraction) * u64::from(self.unit);
        if nanos >= 1_000_000_000 {
            return damaged(format!(
                "the time of the next packet has a fraction of {nanos} ns, which is no fraction of a second"
            ));
        }
        keep(source, kept, captured)?;
        let time = Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanos));
        Ok(Some(Found {
            time,
            interface: 0,
            link_type: self.link_type,
            captured,
            length: length.max(captured),
        }))
    }
}
