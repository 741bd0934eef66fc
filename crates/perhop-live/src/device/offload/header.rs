//! The header that says which checksum and which segmentation of a packet remain to be done
//! (`virtio_net_hdr`: VIRTIO 1.2, section 5.1.6; the kernel's `linux/virtio_net.h`), and the checksum itself.

/// Bytes of the header before each packet.
pub(in crate::device) const LENGTH: usize = 10;

/// The transport checksum holds the sum of the pseudo-header only (`VIRTIO_NET_HDR_F_NEEDS_CSUM`).
const NEEDS_CHECKSUM: u8 = 1;
/// A receiver need not verify the transport checksum (`VIRTIO_NET_HDR_F_DATA_VALID`).
const DATA_VALID: u8 = 2;
/// The packet has ECN's CWR flag (`VIRTIO_NET_HDR_GSO_ECN`), which is in its TCP header, too.
const ECN: u8 = 0x80;

/// What a large packet of the kernel is to be split into (`VIRTIO_NET_HDR_GSO_…`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::device) enum Merged {
    /// Nothing: it is a packet as on the wire.
    #[default]
    No,
    /// TCP segments over IPv4.
    Tcp4,
    /// TCP segments over IPv6.
    Tcp6,
    /// UDP datagrams.
    Udp,
    /// Something else, such as fragments of one datagram.
    Other,
}

/// The header before a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::device) struct Offloads {
    /// Where the transport header begins and where in it the checksum is, if it is left to be completed.
    pub(in crate::device) checksum: Option<(u16, u16)>,
    /// Whether a receiver need not verify the transport checksum.
    pub(in crate::device) is_valid: bool,
    /// What the packet is to be split into.
    pub(in crate::device) merged: Merged,
    /// Bytes of data in each packet on the wire but the last, which may be shorter.
    pub(in crate::device) size: u16,
    /// Bytes of headers.
    pub(in crate::device) headers: u16,
}

impl Offloads {
    pub(in crate::device) fn read(bytes: &[u8; LENGTH]) -> Self {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let merged = match bytes[1] & !ECN {
            0 => Merged::No,
            1 => Merged::Tcp4,
            4 => Merged::Tcp6,
            5 => Merged::Udp,
            _ => Merged::Other,
        };
        Self {
            checksum: (bytes[0] & NEEDS_CHECKSUM != 0).then(|| (number(6), number(8))),
            is_valid: bytes[0] & (NEEDS_CHECKSUM | DATA_VALID) != 0,
            merged,
            size: number(4),
            headers: number(2),
        }
    }

    /// Returns the header that asks the kernel for the same.
    pub(in crate::device) fn bytes(&self) -> [u8; LENGTH] {
        let (from, at) = self.checksum.unwrap_or_default();
        let merged = match self.merged {
            Merged::No => 0,
            Merged::Tcp4 => 1,
            Merged::Tcp6 => 4,
            Merged::Udp => 5,
            Merged::Other => 3,
        };
        let mut bytes = [0; LENGTH];
        bytes[0] = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        bytes[1] = merged;
        for (place, number) in [(2, self.headers), (4, self.size), (6, from), (8, at)] {
            bytes[place..place + 2].copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }
}

/// Returns the sum of the 16-bit words of these bytes, not yet folded. Words are in the machine's byte order,
/// which the folded sum keeps (RFC 1071, section 2 B).
#[inline]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let whole: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    whole + u64::from(u32::from_ne_bytes(last))
}

/// Returns the sum of 16 bits.
#[inline]
pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns a number as a word of a sum.
#[inline]
pub(super) fn word(number: u16) -> u64 {
    u64::from(u16::from_ne_bytes(number.to_be_bytes()))
}

/// Writes the checksum of an IPv4 header.
#[inline]
pub(super) fn check_ipv4(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = !fold(sum(header));
    header[10..12].copy_from_slice(&sum.to_ne_bytes());
}
