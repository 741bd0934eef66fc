//! Reports that a packet was too large for a link of its path (RFC 792, RFC 1191; RFC 4443, section 3.2).

use std::net::{IpAddr, SocketAddr};

use etherparse::{IpNumber, IpSlice};

/// A report about a segment that was too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// The sender of the segment.
    pub source: SocketAddr,
    /// The receiver of the segment.
    pub destination: SocketAddr,
    /// The sequence number of the segment.
    pub sequence: u32,
    /// The largest packet that the link takes.
    pub mtu: u16,
}

/// Reads such a report; `None` if the packet is none.
pub fn read_too_big(packet: &[u8]) -> Option<TooBig> {
    let ip = IpSlice::from_slice(packet).ok()?;
    let upper = ip.payload();
    let (kind, is_four) = match upper.ip_number {
        IpNumber::ICMP => ([3, 4], true),
        IpNumber::IPV6_ICMP => ([2, 0], false),
        _ => return None,
    };
    let [first, code, _, _, _, _, high, low, quoted @ ..] = upper.payload else { return None };
    if [*first, *code] != kind || upper.fragmented {
        return None;
    }
    let mtu = u16::from_be_bytes([*high, *low]);
    let address = |bytes: &[u8]| -> Option<IpAddr> {
        if is_four {
            Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?))
        } else {
            Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?))
        }
    };
    // Of the quoted packet only the beginning is certain to be there, so that no reader of whole packets
    // takes it.
    let (source, destination, protocol, header) = if is_four {
        let header = usize::from(*quoted.first()? & 15) * 4;
        (quoted.get(12..16)?, quoted.get(16..20)?, quoted.get(9)?, header)
    } else {
        (quoted.get(8..24)?, quoted.get(24..40)?, quoted.get(6)?, 40)
    };
    let transport = quoted.get(header..header + 8)?;
    let port = |place: usize| u16::from_be_bytes([transport[place], transport[place + 1]]);
    (*protocol == IpNumber::TCP.0).then_some(TooBig {
        source: SocketAddr::new(address(source)?, port(0)),
        destination: SocketAddr::new(address(destination)?, port(2)),
        sequence: u32::from(port(4)) << 16 | u32::from(port(6)),
        mtu,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{Icmpv4Type, Icmpv6Type, PacketBuilder, icmpv4::DestUnreachableHeader};
    use proptest::prelude::*;

    #[test]
    fn reports_of_both_versions_are_read() {
        for six in [false, true] {
            let mut segment = Vec::new();
            let mut report = Vec::new();
            if six {
                PacketBuilder::ipv6([1; 16], [2; 16], 64)
                    .tcp(7, 8, 9, 10)
                    .write(&mut segment, &[0; 50])
                    .unwrap();
                let kind = Icmpv6Type::PacketTooBig { mtu: 1280 };
                PacketBuilder::ipv6([3; 16], [1; 16], 64).icmpv6(kind).write(&mut report, &segment).unwrap();
            } else {
                PacketBuilder::ipv4([1; 4], [2; 4], 64)
                    .tcp(7, 8, 9, 10)
                    .write(&mut segment, &[0; 50])
                    .unwrap();
                let kind = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1280 };
                let kind = Icmpv4Type::DestinationUnreachable(kind);
                let builder = PacketBuilder::ipv4([3; 4], [1; 4], 64).icmpv4(kind);
                builder.write(&mut report, &segment[..28]).unwrap();
            }
            let found = read_too_big(&report).unwrap();
            assert_eq!((found.source.port(), found.destination.port()), (7, 8));
            assert_eq!((found.sequence, found.mtu), (9, 1280));
            assert_eq!(found.source.is_ipv6(), six);
            assert_eq!(read_too_big(&segment), None);
            let least = if six { 48 + 40 + 8 } else { 28 + 20 + 8 };
            assert!((0..least).all(|length| read_too_big(&report[..length]).is_none()));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_passed_over(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let mut packet = Vec::new();
            let _ = PacketBuilder::ipv4([3; 4], [1; 4], 64).icmpv4_raw(3, 4, [0; 4]).write(&mut packet, &bytes);
            let _ = (read_too_big(&packet), read_too_big(&bytes));
        }
    }
}
