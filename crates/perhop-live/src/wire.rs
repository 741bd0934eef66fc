//! Bytes on the wire and what blocks see of them: parsing, classification by fields, rewriting of codepoint
//! and ECN field.
//!
//! IPv4 (RFC 791) and IPv6 (RFC 8200), with the DS field of RFC 2474 and the ECN field of RFC 3168. Every
//! function is total: whatever the bytes, it returns.

use std::fmt;
use std::net::IpAddr;

use etherparse::checksum::Sum16BitWords;
use etherparse::{TcpHeaderSlice, UdpHeaderSlice};
use perhop_core::{Dscp, Ecn};

use crate::encapsulation::Encapsulation;

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
    /// Which part of a datagram it is, unless it is a whole one.
    pub fragment: Option<Fragment>,
    /// The protocol is hidden behind more extension headers than are followed: `tuple.protocol` is the first
    /// of the others.
    pub hidden: bool,
    /// What precedes the packet in its frame, which its device reads and [`parse`] does not know.
    pub encapsulation: Encapsulation,
    /// What the packet's TCP header says, if it has one.
    pub tcp: Option<Tcp>,
}

/// Source, destination, protocol and ports (RFC 2475's multi-field classifier). Ports are 0 where there are
/// none. [`parse`] finds none in a fragment after the first; the data plane remembers those of the first.
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

/// A part of a datagram (RFC 791, section 2.3; RFC 8200, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The identification that all parts of the datagram share.
    pub identification: u32,
    /// What they share beside it and the addresses: the protocol of IPv4, none of IPv6.
    pub protocol: Option<u8>,
    /// Whether it is the first part, which has the ports.
    pub is_first: bool,
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
    let header = Header::read(packet)?;
    let upper = Upper::find(packet, &header).ok_or(Malformed::Truncated)?;
    let payload = &packet[upper.place..];
    let (ports, tcp) = match upper.fragment {
        None if upper.hidden => Default::default(),
        None => transport(upper.protocol, payload),
        // The header may continue in the next one (RFC 1858).
        Some(Fragment { is_first: true, .. }) => (first_ports(upper.protocol, payload), None),
        Some(_) => Default::default(),
    };
    let Header { source, destination, class, .. } = header;
    let protocol = upper.protocol;
    let tuple = FiveTuple { source, destination, protocol, source_port: ports.0, destination_port: ports.1 };
    let ecn = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][usize::from(class & 3)];
    let dscp = Dscp::new(class >> 2).unwrap_or_default();
    let Upper { fragment, hidden, .. } = upper;
    Ok(Fields { length, dscp, ecn, tuple, tcp, fragment, hidden, encapsulation: Encapsulation::default() })
}

/// The fixed header of a packet, and an IPv4 header's options.
struct Header {
    source: IpAddr,
    destination: IpAddr,
    class: u8,
    is_v6: bool,
    /// The protocol of what follows, and where that begins.
    next: u8,
    length: usize,
    /// IPv4: the part of a datagram that it says it is.
    fragment: Option<Fragment>,
}

impl Header {
    fn read(packet: &[u8]) -> Result<Self, Malformed> {
        let address = |from: usize| -> Option<[u8; 4]> { packet.get(from..from + 4)?.try_into().ok() };
        let long = |from: usize| -> Option<[u8; 16]> { packet.get(from..from + 16)?.try_into().ok() };
        let first = *packet.first().ok_or(Malformed::Truncated)?;
        if first >> 4 == 6 {
            let (source, destination) = long(8).zip(long(24)).ok_or(Malformed::Truncated)?;
            return Ok(Self {
                source: source.into(),
                destination: destination.into(),
                class: first << 4 | packet[1] >> 4,
                is_v6: true,
                next: packet[6],
                length: 40,
                fragment: None,
            });
        }
        let length = usize::from(first & 15) * 4;
        let header = packet.get(..length).filter(|header| header.len() >= 20).ok_or(Malformed::Truncated)?;
        if checksum(header) != 0 {
            return Err(Malformed::Checksum);
        }
        let (source, destination) = address(12).zip(address(16)).ok_or(Malformed::Truncated)?;
        // The flag "more fragments", and the fragment offset in units of 8 bytes.
        let (more, offset) = (header[6] & 0x20 != 0, [header[6] & 0x1f, header[7]]);
        let fragment = Fragment {
            identification: u16::from_be_bytes([header[4], header[5]]).into(),
            protocol: Some(header[9]),
            is_first: offset == [0; 2],
        };
        Ok(Self {
            source: source.into(),
            destination: destination.into(),
            class: header[1],
            is_v6: false,
            next: header[9],
            length,
            fragment: (more || !fragment.is_first).then_some(fragment),
        })
    }
}

/// Extension headers that are followed. A packet has each kind once, and destination options twice (RFC 8200,
/// section 4.1).
const MOST_EXTENSIONS: usize = 8;

/// Extension headers of one format (RFC 8200, section 4; RFC 6564): hop-by-hop options, routing, destination
/// options, mobility, HIP and Shim6.
const EXTENSIONS: [u8; 6] = [0, 43, 60, 135, 139, 140];
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The header above IP.
struct Upper {
    protocol: u8,
    place: usize,
    fragment: Option<Fragment>,
    hidden: bool,
}

impl Upper {
    /// Follows the extension headers of IPv6 and the authentication header of both versions (RFC 4302);
    /// `None` if one of them is cut off.
    fn find(packet: &[u8], header: &Header) -> Option<Self> {
        let Header { next: protocol, length: place, fragment, .. } = *header;
        let mut upper = Self { protocol, place, fragment, hidden: false };
        for followed in 0..=MOST_EXTENSIONS {
            if upper.fragment.is_some_and(|fragment| !fragment.is_first) {
                return Some(upper);
            }
            let is_extension = EXTENSIONS.contains(&upper.protocol) || upper.protocol == FRAGMENT;
            if upper.protocol != AUTHENTICATION && !(header.is_v6 && is_extension) {
                return Some(upper);
            }
            if followed == MOST_EXTENSIONS {
                break;
            }
            let &[next, count, ..] = packet.get(upper.place..)? else { return None };
            let length = match upper.protocol {
                FRAGMENT => 8,
                AUTHENTICATION => (usize::from(count) + 2) * 4,
                _ => (usize::from(count) + 1) * 8,
            };
            let extension = packet.get(upper.place..upper.place + length)?;
            if upper.protocol == FRAGMENT {
                upper.fragment = upper.fragment.or(fragment_of(extension));
            }
            (upper.protocol, upper.place) = (next, upper.place + length);
        }
        upper.hidden = true;
        Some(upper)
    }
}

/// Reads a fragment header (RFC 8200, section 4.5); `None` of one that holds a whole datagram (RFC 6946).
fn fragment_of(header: &[u8]) -> Option<Fragment> {
    let &[_, _, high, low, a, b, c, d] = header else { return None };
    let (more, is_first) = (low & 1 != 0, high == 0 && low >> 3 == 0);
    let identification = u32::from_be_bytes([a, b, c, d]);
    (more || !is_first).then_some(Fragment { identification, protocol: None, is_first })
}

/// Returns the ports of a packet, 0 where it has none, and what its TCP header says, if it has one.
fn transport(protocol: u8, payload: &[u8]) -> ((u16, u16), Option<Tcp>) {
    match protocol {
        TCP => TcpHeaderSlice::from_slice(payload).map_or_else(
            |_| Default::default(),
            |header| {
                let data = payload.len() - header.slice().len();
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
        UDP => {
            let header = UdpHeaderSlice::from_slice(payload);
            let ports = header.map(|header| (header.source_port(), header.destination_port()));
            (ports.unwrap_or_default(), None)
        }
        _ => Default::default(),
    }
}

/// Returns the ports in a first fragment, 0 where it has none.
fn first_ports(protocol: u8, payload: &[u8]) -> (u16, u16) {
    match payload {
        &[a, b, c, d, ..] if matches!(protocol, TCP | UDP) => {
            (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
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
