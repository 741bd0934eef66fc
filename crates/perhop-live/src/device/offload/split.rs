//! Segmentation: splits a large packet of the kernel into packets as they are on the wire.

use super::header::{Merged, Offloads, check_ipv4, fold, sum, word};

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Bytes of an IPv6 header, which its length does not count.
const IPV6: usize = 40;

/// Splits a large packet into TCP segments or UDP datagrams, in order.
///
/// Each packet has the headers of the large one, with its own lengths and checksums and, over IPv4, the next
/// identification. A TCP segment has the sequence number of its data. Only the last segment has FIN and PSH,
/// only the first one CWR (RFC 3168, section 6.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::device) struct Split {
    merged: Merged,
    /// Where the checksum's bytes begin, and where it is.
    checksum: Option<(usize, usize)>,
    /// The sum of the pseudo-header without the length.
    pseudo: u64,
    /// The offset of the data; 0 if the packet is not split.
    data: usize,
    size: usize,
    length: usize,
    /// Where the data of the next packet begin.
    next: Option<usize>,
    number: u16,
}

impl Split {
    /// Begins with a packet; `None` if it cannot be split.
    pub(in crate::device) fn begin(packet: &[u8], offloads: &Offloads) -> Option<Self> {
        let checksum = match offloads.checksum {
            None => None,
            Some((from, at)) => {
                let (from, at) = (usize::from(from), usize::from(from) + usize::from(at));
                (at + 2 <= packet.len()).then_some(Some((from, at)))?
            }
        };
        let whole =
            Self { checksum, size: packet.len(), length: packet.len(), next: Some(0), ..Self::default() };
        let (version, least) = match offloads.merged {
            Merged::No => return Some(whole),
            Merged::Tcp4 => (4, 20),
            Merged::Tcp6 => (6, 20),
            Merged::Udp => (packet.first()? >> 4, 8),
            Merged::Other => return None,
        };
        let (transport, at) = checksum?;
        let header = packet.get(transport..transport + least)?;
        let (length, place) = if least == 8 { (8, 6) } else { (usize::from(header[12] >> 4) * 4, 16) };
        let (data, size) = (transport + length, usize::from(offloads.size));
        let is_sound = packet[0] >> 4 == version
            && transport >= if version == 4 { usize::from(packet[0] & 15).max(5) * 4 } else { IPV6 }
            && (version == 4 || version == 6)
            && at == transport + place
            && length >= least
            && data <= packet.len()
            && size > 0;
        let field = u64::from(u16::from_ne_bytes([packet[at], packet[at + 1]]));
        let pseudo = field + u64::from(!(word((packet.len() - transport) as u16) as u16));
        is_sound.then_some(Self { merged: offloads.merged, pseudo, data, size, next: Some(data), ..whole })
    }

    /// Writes the next packet into the room and returns its length. One that is longer than the room is cut.
    #[inline]
    pub(in crate::device) fn next(&mut self, packet: &[u8], room: &mut [u8]) -> Option<usize> {
        let begin = self.next?;
        let end = self.length.min(begin + self.size);
        self.next = (end < self.length).then_some(end);
        let length = self.data + (end - begin);
        let Some(room) = room.get_mut(..length) else {
            let (headers, data) = room.split_at_mut(self.data.min(room.len()));
            headers.copy_from_slice(&packet[..headers.len()]);
            data.copy_from_slice(&packet[begin..begin + data.len()]);
            return Some(room.len());
        };
        room[..self.data].copy_from_slice(&packet[..self.data]);
        room[self.data..].copy_from_slice(&packet[begin..end]);
        if self.data > 0 {
            self.complete(room, begin);
            self.number = self.number.wrapping_add(1);
        }
        if let Some((from, at)) = self.checksum {
            let checksum = match !fold(sum(&room[from..])) {
                // For UDP, 0 says that there is none (RFC 768).
                0 if at == from + 6 => u16::MAX,
                sum => sum,
            };
            room[at..at + 2].copy_from_slice(&checksum.to_ne_bytes());
        }
        Some(length)
    }

    /// Writes what distinguishes a packet from the others; its checksum is then still to be completed.
    #[inline]
    fn complete(&self, packet: &mut [u8], begin: usize) {
        let Some((transport, at)) = self.checksum else { return };
        let length = packet.len() as u16;
        if packet[0] >> 4 == 4 {
            let number = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(self.number);
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            packet[4..6].copy_from_slice(&number.to_be_bytes());
            let header = usize::from(packet[0] & 15) * 4;
            check_ipv4(&mut packet[..header]);
        } else {
            packet[4..6].copy_from_slice(&(length - IPV6 as u16).to_be_bytes());
        }
        let upper = length - transport as u16;
        packet[at..at + 2].copy_from_slice(&fold(self.pseudo + word(upper)).to_ne_bytes());
        let header = &mut packet[transport..self.data];
        if self.merged == Merged::Udp {
            header[4..6].copy_from_slice(&upper.to_be_bytes());
            return;
        }
        let first = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let sequence = first.wrapping_add((begin - self.data) as u32);
        header[4..8].copy_from_slice(&sequence.to_be_bytes());
        if begin > self.data {
            header[13] &= !CWR;
        }
        if self.next.is_some() {
            header[13] &= !(FIN | PSH);
        }
    }
}
