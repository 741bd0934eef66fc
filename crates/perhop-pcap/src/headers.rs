//! Headers of IPv4 with TCP or UDP for the packets of a simulated run.
//!
//! Each point at which packets are captured has two networks of its own, 10.0.0.0/16 and 10.1.0.0/16 being
//! those of the first: so the same packet at another point belongs to another conversation, and is no
//! retransmission. In each, flow 0 is between the hosts 0.1, flow 1 between 0.2, and so on. Sequence and
//! acknowledgement numbers count the bytes of segments, from 1 on. Checksums are those of packets whose
//! payload is zero. The two directions of a user's connection are one of TCP, between the hosts of its
//! requests: their data carries ACKs of one another.
//!
//! ## Deviations
//! - A SYN and an ACK with ranges are as long as their options need, which may be more than the simulator
//!   counts. A shorter header is filled with no-operation options up to the size that the simulator counts.
//! - The simulator's third packet of a handshake is data. Under Accurate ECN its ACE field counts, as in
//!   later segments.

use std::net::Ipv4Addr;

use etherparse::checksum::Sum16BitWords;
use perhop_sim::observer::{Acknowledgement, Contents, Observed};
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::{FlowSpec, TransportSpec};

/// The longest headers: those of IPv4 without options and of TCP with all.
pub const LONGEST: usize = IP + TCP + OPTIONS;

const IP: usize = 20;
const TCP: usize = 20;
const UDP: usize = 8;
/// The room for options of TCP.
const OPTIONS: usize = 40;

/// Ports that no protocol has by default: that of receivers, and the first of senders.
const RECEIVER_PORT: u16 = 50_000;
const SENDER_PORT: u32 = 50_001;
/// Ports for senders.
const PORTS: u32 = 15_000;

/// Flags of TCP: the four bits after the header's length, and the next eight.
const SYN: u16 = 0x002;
const ACK: u16 = 0x010;
const ECE: u16 = 0x040;
const CWR: u16 = 0x080;
const AE: u16 = 0x100;
/// Where the three bits of the ACE field begin: they are AE, CWR and ECE (RFC 9768, section 3.2.1).
const ACE: u32 = 6;
/// The counter of marked packets begins there.
const ACE_START: u32 = 5;

const NOP: u8 = 1;

/// The shift of windows: 1 GB at most (RFC 7323, section 2.3).
const WINDOW_SCALE: u8 = 14;

/// What the headers of a flow depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp {
        /// Bytes of headers in a segment of data: those of an ACK, as sizes of finite flows count them.
        headers: usize,
        /// Payload of a segment in bytes.
        payload: u32,
        /// The receiver's window in bytes.
        window: u64,
        /// Segment 0 is a SYN.
        handshake: bool,
        /// Windows are scaled: the connection was opened, by this flow or by the other direction.
        scaled: bool,
        /// Receivers report ranges.
        sack: bool,
        /// How it uses ECN.
        ecn: TcpEcn,
    },
    /// UDP, below a constant rate, RAP or TFRC.
    Udp,
}

impl Protocol {
    /// Returns the protocol of a flow of responses, whose connection the flow of requests has opened.
    #[must_use]
    pub fn opened_by(self, requests: Self) -> Self {
        match (self, requests) {
            (Self::Tcp { headers, payload, window, handshake, sack, ecn, .. }, Self::Tcp { scaled, .. }) => {
                Self::Tcp { headers, payload, window, handshake, scaled, sack, ecn }
            }
            _ => self,
        }
    }

    /// Returns the protocol of a flow.
    pub fn of(flow: &FlowSpec) -> Self {
        let TransportSpec::Tcp(params) = &flow.transport else { return Self::Udp };
        let packet = params.packet.get() as usize;
        let headers = (params.ack.get() as usize).clamp(IP + TCP, LONGEST) / 4 * 4;
        let headers = if headers < packet { headers } else { IP + TCP };
        let payload = packet.saturating_sub(headers).max(1) as u32;
        Self::Tcp {
            headers,
            payload,
            window: u64::from(params.most_offered()) * u64::from(payload),
            handshake: params.handshake,
            scaled: params.handshake,
            sack: params.sack,
            ecn: flow.tcp_ecn,
        }
    }
}

/// The ends of a flow at a point where packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ends {
    /// The address of its sender.
    pub sender: Ipv4Addr,
    /// The address of its receiver.
    pub receiver: Ipv4Addr,
    /// The port of its sender.
    pub port: u16,
}

impl Ends {
    /// Returns the addresses of a flow at a point of this number.
    pub fn of(flow: u32, point: u32) -> Self {
        let host = flow.wrapping_add(1);
        let [more, _, high, low] = host.to_be_bytes();
        let more = u32::from(more) << 8 | host >> 16 & 0xff;
        let end = |side| Ipv4Addr::new(10, (point % 128 * 2) as u8 + side, high, low);
        // Beyond 65 535 flows or 128 points, ports tell them apart.
        let port = (SENDER_PORT + (more + 256 * (point / 128)) % PORTS) as u16;
        Self { sender: end(0), receiver: end(1), port }
    }
}

/// The other direction of a flow's connection, which is a user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// The number of the flow of requests, whose ends are those of the connection.
    pub request: u32,
    /// The other direction is that of requests.
    pub is_request: bool,
    /// The protocol of the other direction.
    pub protocol: Protocol,
    /// One past the last segment of the other direction that was seen at this point.
    pub next: u32,
}

/// Writes the headers of a packet at a point of this number, in place of what `out` holds. Returns the
/// packet's length in bytes.
pub fn write(
    observed: &Observed,
    protocol: Protocol,
    other: Option<Other>,
    point: u32,
    out: &mut Vec<u8>,
) -> u32 {
    let size = usize::from(observed.header.size);
    let ends = Ends::of(other.map_or(observed.flow.serial, |other| other.request), point);
    let back = is_feedback(observed) != other.is_some_and(|other| other.is_request);
    out.clear();
    out.resize(IP, 0);
    let length = match (observed.contents, protocol) {
        (Contents::Segment { number, reduced, acknowledged }, Protocol::Tcp { .. }) => {
            let acknowledged = acknowledged.zip(other).map(|(ack, other)| (ack, other.protocol));
            segment((number, reduced), acknowledged, size, protocol, out)
        }
        (Contents::Acknowledgement(ack), Protocol::Tcp { .. }) => {
            let sequence = other.map_or(1, |other| first_byte(other.next, other.protocol));
            acknowledgement(&ack, sequence, size, protocol, out)
        }
        _ => datagram(size, out),
    };
    ports(back, ends, out);
    ip(observed, protocol, back, ends, length, out);
    checksum(length, protocol, out);
    length.max(size) as u32
}

/// Returns whether the packet goes to the flow's sender.
fn is_feedback(observed: &Observed) -> bool {
    matches!(observed.contents, Contents::Acknowledgement(_) | Contents::Feedback(_))
}

/// Returns the first byte of the segment that an acknowledgement names.
fn edge(number: u32, ack: &Acknowledgement, protocol: Protocol) -> u32 {
    let (end, short) = ack.last;
    let short = if number == end { u32::from(short) } else { 0 };
    first_byte(number, protocol).wrapping_sub(short)
}

/// Returns the first byte of a segment.
fn first_byte(number: u32, protocol: Protocol) -> u32 {
    let Protocol::Tcp { payload, handshake, .. } = protocol else { return 0 };
    match (handshake, number) {
        (true, 0) => 0,
        (true, _) => (number - 1).wrapping_mul(payload).wrapping_add(1),
        (false, _) => number.wrapping_mul(payload).wrapping_add(1),
    }
}

fn segment(
    (number, reduced): (u32, bool),
    acknowledged: Option<(Acknowledgement, Protocol)>,
    size: usize,
    protocol: Protocol,
    out: &mut Vec<u8>,
) -> usize {
    let Protocol::Tcp { headers, payload, handshake, sack, ecn, .. } = protocol else { return out.len() };
    let sequence = first_byte(number, protocol);
    if handshake && number == 0 {
        let flags = match ecn {
            TcpEcn::Off => 0,
            TcpEcn::Classic => CWR | ECE,
            TcpEcn::Accurate | TcpEcn::L4s => AE | CWR | ECE,
        };
        tcp((sequence, 0), SYN | flags, protocol, out);
        return fill(opening(headers, payload, sack), size, out);
    }
    let (marked, echo) = acknowledged.map_or((0, false), |(ack, _)| (ack.marked, ack.echo));
    let flags = match (ecn.counts(), reduced) {
        (true, _) => ((ACE_START.wrapping_add(marked) & 7) << ACE) as u16,
        (false, true) => CWR,
        (false, false) => 0,
    };
    let flags = if echo && !ecn.counts() { flags | ECE } else { flags };
    let expected = acknowledged.map_or(1, |(ack, of_other)| edge(ack.expected, &ack, of_other));
    tcp((sequence, expected), ACK | flags, protocol, out);
    fill(Vec::new(), headers, out);
    // The last segment may be shorter than the others.
    size.clamp(headers + 1, headers + payload as usize)
}

fn acknowledgement(
    ack: &Acknowledgement,
    sequence: u32,
    size: usize,
    protocol: Protocol,
    out: &mut Vec<u8>,
) -> usize {
    let Protocol::Tcp { headers, payload, handshake, sack, ecn, .. } = protocol else { return out.len() };
    let expected = edge(ack.expected, ack, protocol);
    if handshake && ack.is_first {
        let flags = match ecn {
            TcpEcn::Off => 0,
            TcpEcn::Classic => ECE,
            TcpEcn::Accurate | TcpEcn::L4s => CWR, // the SYN was not capable
        };
        tcp((0, expected), SYN | ACK | flags, protocol, out);
        return fill(opening(headers, payload, sack), size, out);
    }
    let flags = match (ecn.counts(), ack.echo) {
        (true, _) => ((ACE_START.wrapping_add(ack.marked) & 7) << ACE) as u16,
        (false, true) => ECE,
        (false, false) => 0,
    };
    tcp((sequence, expected), ACK | flags, protocol, out);
    let duplicate = ack.duplicate.map(|number| (number, number + 1));
    let ranges = duplicate.into_iter().chain(ack.ranges).filter(|(begin, end)| begin < end);
    let edges: Vec<u8> = ranges
        .flat_map(|(begin, end)| [begin, end])
        .flat_map(|number| edge(number, ack, protocol).to_be_bytes())
        .collect();
    let mut options = Vec::new();
    if !edges.is_empty() {
        options.extend([NOP, NOP, 5, 2 + edges.len() as u8]);
        options.extend(edges);
    }
    fill(options, size, out)
}

/// Returns the options of a SYN: maximum segment size, window scale and, with SACK, that it is permitted.
/// Options that each segment has, such as timestamps, count as payload there (RFC 6691): 1460 of 1500 bytes.
fn opening(headers: usize, payload: u32, sack: bool) -> Vec<u8> {
    let options = headers.saturating_sub(IP + TCP) as u32;
    let most = u16::try_from(payload + options).unwrap_or(u16::MAX);
    let mut options = vec![2, 4];
    options.extend(most.to_be_bytes());
    options.extend([NOP, 3, 3, WINDOW_SCALE]);
    if sack {
        options.extend([NOP, NOP, 4, 2]);
    }
    options
}

/// Adds options to the header of a packet without data, and fills it up to the packet's size, as far as that
/// can be.
fn fill(mut options: Vec<u8>, size: usize, out: &mut Vec<u8>) -> usize {
    let room = size.saturating_sub(IP + TCP).min(OPTIONS) / 4 * 4;
    let length = options.len().max(room);
    options.resize(length, NOP);
    out.extend(options);
    out[IP + 12] = (((TCP + length) / 4) as u8) << 4 | out[IP + 12] & 15;
    out.len()
}

/// Adds a header of TCP without options.
fn tcp((sequence, acknowledged): (u32, u32), flags: u16, protocol: Protocol, out: &mut Vec<u8>) {
    out.extend([0; 4]); // ports
    out.extend(sequence.to_be_bytes());
    out.extend(acknowledged.to_be_bytes());
    out.extend(((TCP as u16 / 4) << 12 | flags).to_be_bytes());
    out.extend(window(flags, protocol).to_be_bytes());
    out.extend([0; 4]); // checksum and urgent pointer
}

/// Returns the field of the window: scaled once the connection is open, if it is opened.
fn window(flags: u16, protocol: Protocol) -> u16 {
    let Protocol::Tcp { window, scaled, .. } = protocol else { return 0 };
    let scale = if scaled && flags & SYN == 0 { u32::from(WINDOW_SCALE) } else { 0 };
    u16::try_from(window.div_ceil(1 << scale)).unwrap_or(u16::MAX)
}

fn datagram(size: usize, out: &mut Vec<u8>) -> usize {
    let length = size.max(IP + UDP);
    out.extend([0; 4]); // ports
    out.extend(((length - IP) as u16).to_be_bytes());
    out.extend([0; 2]); // checksum
    length
}

/// Fills in the ports.
fn ports(back: bool, ends: Ends, out: &mut [u8]) {
    let (from, to) = if back { (RECEIVER_PORT, ends.port) } else { (ends.port, RECEIVER_PORT) };
    out[IP..IP + 2].copy_from_slice(&from.to_be_bytes());
    out[IP + 2..IP + 4].copy_from_slice(&to.to_be_bytes());
}

/// Fills in the header of IPv4.
fn ip(observed: &Observed, protocol: Protocol, back: bool, ends: Ends, length: usize, out: &mut [u8]) {
    let header = &observed.header;
    let Ends { sender, receiver, .. } = ends;
    let (from, to) = if back { (receiver, sender) } else { (sender, receiver) };
    out[0] = 0x45;
    out[1] = header.dscp.get() << 2 | header.ecn as u8;
    out[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    out[6] = 0x40; // do not fragment, so that the identification means nothing (RFC 6864)
    out[8] = 64; // time to live
    out[9] = if protocol == Protocol::Udp { 17 } else { 6 };
    out[12..16].copy_from_slice(&from.octets());
    out[16..20].copy_from_slice(&to.octets());
    let sum = Sum16BitWords::new().add_slice(&out[..IP]).ones_complement();
    out[10..12].copy_from_slice(&sum.to_ne_bytes());
}

/// Fills in the checksum of TCP or UDP, over its pseudo-header and a payload of zeros.
fn checksum(length: usize, protocol: Protocol, out: &mut [u8]) {
    let is_udp = protocol == Protocol::Udp;
    let sum = Sum16BitWords::new()
        .add_slice(&out[12..20])
        .add_2bytes([0, if is_udp { 17 } else { 6 }])
        .add_2bytes(((length - IP) as u16).to_be_bytes())
        .add_slice(&out[IP..]);
    // Of UDP, 0 would say that there is none.
    let (sum, place) =
        if is_udp { (sum.to_ones_complement_with_no_zero(), 6) } else { (sum.ones_complement(), 16) };
    out[IP + place..IP + place + 2].copy_from_slice(&sum.to_ne_bytes());
}

#[cfg(test)]
mod tests;
