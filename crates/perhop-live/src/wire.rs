//! Bytes on the wire and what blocks see of them: parsing, classification by fields, rewriting of codepoint
//! and ECN field.
//!
//! IPv4 (RFC 791) and IPv6 (RFC 8200), with the DS field of RFC 2474 and the ECN field of RFC 3168. Every
//! function is total: whatever the bytes, it returns.

use std::fmt;
use std::net::IpAddr;

use etherparse::checksum::Sum16BitWords;
use etherparse::{IpNumber, IpPayloadSlice, IpSlice, TcpHeaderSlice, UdpHeaderSlice};
use perhop_core::{Dscp, Ecn};

/// What a data plane reads of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Length of the packet by its own header, which may be shorter than what was read.
    pub length: u16,
    /// The codepoint of the packet.
    pub dscp: Dscp,
    /// The ECN field of the packet.
    pub ecn: Ecn,
    /// The addresses, ports and protocol.
    pub tuple: FiveTuple,
    /// What the packet's TCP header says, if it has one.
    pub tcp: Option<Tcp>,
}

/// Source, destination, protocol and ports (RFC 2475's multi-field classifier). Ports are 0 where there are
/// none, or where only the first fragment has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FiveTuple {
    /// Who sent it.
    pub source: IpAddr,
    /// The address that it is for.
    pub destination: IpAddr,
    /// The protocol above IP.
    pub protocol: u8,
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
}

/// What window control reads of a TCP header (RFC 9293).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number of the first byte.
    pub sequence: u32,
    /// The byte that the other side expects next.
    pub acknowledged: u32,
    /// Bytes of data, one more for a SYN and for a FIN.
    pub occupies: u32,
    /// Whether the packet begins a connection.
    pub syn: bool,
    /// Whether `acknowledged` means something.
    pub ack: bool,
}

/// Why bytes are no packet that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Malformed {
    /// Neither IPv4 nor IPv6.
    NotIp = 0,
    /// Shorter than its headers say, or headers that contradict themselves.
    Truncated = 1,
    /// An IPv4 header whose checksum is wrong (RFC 1812, section 5.2.2).
    Checksum = 2,
}

impl Malformed {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::NotIp, Self::Truncated, Self::Checksum];

    /// Returns the reason's name in tables, metrics and captures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not-ip",
            Self::Truncated => "truncated",
            Self::Checksum => "checksum",
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads a packet.
///
/// # Errors
/// Why it is no valid IP packet. What its transport header says is of no concern to a router: where that
/// makes no sense, the packet has no ports.
pub fn parse(packet: &[u8]) -> Result<Fields, Malformed> {
    // What lies beyond its own length is not the packet's: padding, or the rest of what says that it has no
    // length, as a jumbogram does (RFC 2675). No queue here takes one.
    let length = match packet {
        [] => return Err(Malformed::Truncated),
        [first, _, high, low, ..] if first >> 4 == 4 => u16::from_be_bytes([*high, *low]),
        [first, _, _, _, high, low, ..] if first >> 4 == 6 => {
            u16::from_be_bytes([*high, *low]).checked_add(40).ok_or(Malformed::Truncated)?
        }
        [first, ..] if matches!(first >> 4, 4 | 6) => return Err(Malformed::Truncated),
        _ => return Err(Malformed::NotIp),
    };
    let packet = packet.get(..usize::from(length)).ok_or(Malformed::Truncated)?;
    let ip = IpSlice::from_slice(packet).map_err(|_| Malformed::Truncated)?;
    let class = match &ip {
        IpSlice::Ipv4(ip) => {
            let header = ip.header();
            if checksum(header.slice()) != 0 {
                return Err(Malformed::Checksum);
            }
            header.slice()[1]
        }
        IpSlice::Ipv6(ip) => ip.header().traffic_class(),
    };
    let upper = ip.payload();
    let (ports, tcp) = if upper.fragmented { Default::default() } else { transport(upper) };
    let tuple = FiveTuple {
        source: ip.source_addr(),
        destination: ip.destination_addr(),
        protocol: upper.ip_number.0,
        source_port: ports.0,
        destination_port: ports.1,
    };
    let ecn = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][usize::from(class & 3)];
    Ok(Fields { length, dscp: Dscp::new(class >> 2).unwrap_or_default(), ecn, tuple, tcp })
}

/// Returns the ports of a packet, 0 where it has none, and what its TCP header says, if it has one.
fn transport(upper: &IpPayloadSlice<'_>) -> ((u16, u16), Option<Tcp>) {
    match upper.ip_number {
        IpNumber::TCP => TcpHeaderSlice::from_slice(upper.payload).map_or_else(
            |_| Default::default(),
            |header| {
                let data = upper.payload.len() - header.slice().len();
                let tcp = Tcp {
                    sequence: header.sequence_number(),
                    acknowledged: header.acknowledgment_number(),
                    occupies: data as u32 + u32::from(header.syn()) + u32::from(header.fin()),
                    syn: header.syn(),
                    ack: header.ack(),
                };
                ((header.source_port(), header.destination_port()), Some(tcp))
            },
        ),
        IpNumber::UDP => {
            let header = UdpHeaderSlice::from_slice(upper.payload);
            let ports = header.map(|header| (header.source_port(), header.destination_port()));
            (ports.unwrap_or_default(), None)
        }
        _ => Default::default(),
    }
}

/// Writes codepoint and ECN field into a packet that [`parse`] has read, and corrects the checksum of an IPv4
/// header (RFC 1624, equation 3). Does nothing to bytes that are no IP header.
pub fn mark(packet: &mut [u8], dscp: Dscp, ecn: Ecn) {
    let class = dscp.get() << 2 | ecn as u8;
    match packet {
        [version, old, _, _, _, _, _, _, _, _, high, low, ..] if *version >> 4 == 4 => {
            if *old == class {
                return;
            }
            // HC' = ~(~HC + ~m + m'), where m is the header's first word.
            let parts = [[!*high, !*low], [!*version, !*old], [*version, class]];
            let sum = parts.into_iter().fold(Sum16BitWords::new(), Sum16BitWords::add_2bytes);
            [*high, *low] = sum.ones_complement().to_ne_bytes();
            *old = class;
        }
        [first, second, ..] if *first >> 4 == 6 => {
            *first = *first & 0xf0 | class >> 4;
            *second = *second & 0x0f | class << 4;
        }
        _ => {}
    }
}

/// Returns the Internet checksum (RFC 1071): 0 over a header that carries the right one.
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum16BitWords::new().add_slice(bytes).ones_complement().to_be()
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    fn tcp4() -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1000, 2000, 7, 500).ack(9);
        builder.write(&mut packet, &[0; 100]).unwrap();
        packet
    }

    fn udp6() -> Vec<u8> {
        let mut packet = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(53, 54).write(&mut packet, &[0; 10]).unwrap();
        packet
    }

    #[test]
    fn the_checksum_of_rfc_1071_section_3() {
        assert_eq!(!checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn a_tcp_segment_and_a_datagram_are_read() {
        let fields = parse(&tcp4()).unwrap();
        assert_eq!((fields.length, fields.dscp, fields.ecn), (140, Dscp::DEFAULT, Ecn::NotCapable));
        assert_eq!(
            (fields.tuple.protocol, fields.tuple.source_port, fields.tuple.destination_port),
            (6, 1000, 2000)
        );
        assert_eq!(fields.tuple.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(
            fields.tcp,
            Some(Tcp { sequence: 7, acknowledged: 9, occupies: 100, syn: false, ack: true })
        );
        let fields = parse(&udp6()).unwrap();
        assert_eq!((fields.length, fields.tuple.protocol), (58, 17));
        assert_eq!((fields.tuple.source_port, fields.tuple.destination_port, fields.tcp), (53, 54, None));
    }

    #[test]
    fn what_is_no_packet_is_refused_with_its_reason() {
        let whole = tcp4();
        assert_eq!(parse(&[]), Err(Malformed::Truncated));
        assert_eq!(parse(&[0x50; 40]), Err(Malformed::NotIp));
        assert_eq!(parse(&whole[..19]), Err(Malformed::Truncated));
        assert_eq!(parse(&whole[..139]), Err(Malformed::Truncated));
        assert_eq!(parse(&[&whole[..], &[0; 6]].concat()).map(|fields| fields.length), Ok(140), "padded");
        let mut endless = udp6();
        endless[4..6].fill(0);
        let fields = parse(&endless).unwrap();
        assert_eq!(
            (fields.length, fields.tuple.source_port),
            (40, 0),
            "what lies beyond its length is not its own"
        );
        endless[6] = 0; // an extension header that lies there
        assert_eq!(parse(&endless), Err(Malformed::Truncated));
        let mut wrong = whole.clone();
        wrong[8] ^= 1;
        assert_eq!(parse(&wrong), Err(Malformed::Checksum));
        let mut headless = whole;
        headless[32] = 0x10; // a TCP header of 4 bytes
        let fields = parse(&headless).unwrap();
        assert_eq!((fields.tuple.source_port, fields.tcp), (0, None));
    }

    proptest! {
        #[test]
        fn a_mark_changes_codepoint_and_ecn_alone(dscp in 0_u8..64, ecn in 0_usize..4, six in any::<bool>()) {
            let mut packet = if six { udp6() } else { tcp4() };
            let before = parse(&packet).unwrap();
            let dscp = Dscp::new(dscp).unwrap();
            let ecn = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][ecn];
            mark(&mut packet, dscp, ecn);
            prop_assert_eq!(parse(&packet), Ok(Fields { dscp, ecn, ..before }));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), version in 0_u8..16) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = version << 4 | *first & 15;
            }
            if let Ok(fields) = parse(&bytes) {
                prop_assert_eq!(parse(&bytes[..usize::from(fields.length)]), Ok(fields));
                mark(&mut bytes, fields.dscp, fields.ecn);
                prop_assert_eq!(parse(&bytes), Ok(fields));
            }
        }
    }
}
