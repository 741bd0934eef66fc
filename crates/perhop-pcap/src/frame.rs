//! Link-layer headers of captures: where the IP packet begins.

use crate::numbers::RAW_IP;

/// Link types (draft-ietf-opsawg-pcaplinktype) whose frames are read.
const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const RAW_BSD: u16 = 12;
const RAW_OPENBSD: u16 = 14;
const LOOP: u16 = 108;
const LINUX_COOKED: u16 = 113;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const LINUX_COOKED_2: u16 = 276;

/// Ethernet types.
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_MPLS: u16 = 0x8847;
const TYPE_PPPOE: u16 = 0x8864;
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// A frame in which no IP packet was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPacket {
    /// The frame carries something else, such as ARP.
    NotIp,
    /// Too little of the frame was captured to find out.
    Truncated,
    /// Frames of this link type are not read.
    LinkType,
}

/// The list of link types in a refusal.
pub const LINK_TYPES: &str =
    "Ethernet (1), raw IP (12, 14, 101, 228, 229), Linux cooked (113, 276) and loopback (0, 108)";

/// Returns the IP packet in a frame of this link type, with all that follows it.
///
/// # Errors
/// There is none, or it cannot be found.
pub fn packet(link_type: u16, frame: &[u8]) -> Result<&[u8], NoPacket> {
    match link_type {
        RAW_IP | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => Ok(frame),
        // The family's number depends on the system, in its byte order or, for LOOP, in that of the network:
        // 2 is IPv4 everywhere, IPv6 is 10, 24, 28 or 30. The packet says the same itself.
        NULL | LOOP => frame.get(4..).ok_or(NoPacket::Truncated).and_then(by_version),
        ETHERNET => above(frame, 12),
        LINUX_COOKED => above(frame, 14),
        LINUX_COOKED_2 => {
            let kind = word(frame, 0)?;
            carried(kind, frame.get(20..).ok_or(NoPacket::Truncated)?)
        }
        _ => Err(NoPacket::LinkType),
    }
}

/// Returns the packet behind the Ethernet type at this place.
fn above(frame: &[u8], place: usize) -> Result<&[u8], NoPacket> {
    let kind = word(frame, place)?;
    carried(kind, &frame[place + 2..])
}

/// Returns the packet that an Ethernet type announces, behind tags, labels and PPP.
fn carried(mut kind: u16, mut rest: &[u8]) -> Result<&[u8], NoPacket> {
    while TAGS.contains(&kind) {
        kind = word(rest, 2)?;
        rest = &rest[4..];
    }
    match kind {
        TYPE_IPV4 | TYPE_IPV6 => Ok(rest),
        TYPE_MPLS => loop {
            let [_, _, last, _, behind @ ..] = rest else { return Err(NoPacket::Truncated) };
            rest = behind;
            if last & 1 == 1 {
                return by_version(rest);
            }
        },
        TYPE_PPPOE => match word(rest, 6)? {
            0x0021 | 0x0057 => Ok(&rest[8..]),
            _ => Err(NoPacket::NotIp),
        },
        _ => Err(NoPacket::NotIp),
    }
}

/// Returns a packet whose first bits alone say its version.
fn by_version(packet: &[u8]) -> Result<&[u8], NoPacket> {
    match packet.first().ok_or(NoPacket::Truncated)? >> 4 {
        4 | 6 => Ok(packet),
        _ => Err(NoPacket::NotIp),
    }
}

fn word(bytes: &[u8], place: usize) -> Result<u16, NoPacket> {
    match bytes.get(place..place + 2) {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(NoPacket::Truncated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IP: [u8; 3] = [0x45, 7, 8];

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        [parts.concat(), IP.to_vec()].concat()
    }

    #[test]
    fn the_packet_begins_behind_the_headers_of_each_link_type() {
        let mac = [0; 12];
        for (link_type, header) in [
            (ETHERNET, [&mac[..], &[0x08, 0x00]].concat()),
            (ETHERNET, [&mac[..], &[0x86, 0xdd]].concat()),
            (ETHERNET, [&mac[..], &[0x81, 0x00, 0, 5, 0x08, 0x00]].concat()),
            (ETHERNET, [&mac[..], &[0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 6, 0x86, 0xdd]].concat()),
            (ETHERNET, [&mac[..], &[0x88, 0x47, 0, 0, 0x10, 64, 0, 0, 0x21, 64]].concat()),
            (ETHERNET, [&mac[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 5, 0, 0x21]].concat()),
            (RAW_IP, Vec::new()),
            (RAW_BSD, Vec::new()),
            (RAW_OPENBSD, Vec::new()),
            (IPV4, Vec::new()),
            (IPV6, Vec::new()),
            (NULL, vec![2, 0, 0, 0]),
            (NULL, vec![0, 0, 0, 2]),
            (LOOP, vec![0, 0, 0, 24]),
            (LINUX_COOKED, [&[0; 14][..], &[0x08, 0x00]].concat()),
            (LINUX_COOKED_2, [&[0x08, 0x00][..], &[0; 18]].concat()),
        ] {
            assert_eq!(packet(link_type, &frame(&[&header])), Ok(&IP[..]), "{link_type} {header:?}");
            for cut in 0..header.len().min(14) {
                assert_eq!(packet(link_type, &header[..cut]), Err(NoPacket::Truncated), "{link_type} {cut}");
            }
        }
    }

    #[test]
    fn other_frames_are_told_apart() {
        let arp = frame(&[&[0; 12], &[0x08, 0x06]]);
        let discovery = frame(&[&[0; 12], &[0x88, 0x63]]);
        let lcp = frame(&[&[0; 12], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 5, 0xc0, 0x21]]);
        let pseudowire = [&[0; 12][..], &[0x88, 0x47, 0, 0, 1, 64, 0, 0]].concat();
        for other in [arp, discovery, lcp, pseudowire] {
            assert_eq!(packet(ETHERNET, &other), Err(NoPacket::NotIp), "{other:?}");
        }
        assert_eq!(packet(105, &frame(&[])), Err(NoPacket::LinkType));
    }

    proptest! {
        #[test]
        fn any_frame_is_read_or_refused(
            link_type in 0_u16..300,
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0x81), Just(0x88), Just(0)], 0..60),
        ) {
            if let Ok(rest) = packet(link_type, &bytes) {
                prop_assert!(bytes.ends_with(rest));
            }
        }
    }
}
