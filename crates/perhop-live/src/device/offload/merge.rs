//! Coalescing: joins consecutive packets of a flow into large ones for the kernel, as its own GRO does.

use super::header::{LENGTH, Merged, Offloads, check_ipv4, fold, sum, word};

const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;

/// More fragments, or an offset (RFC 791).
const FRAGMENT: u16 = 0x3fff;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Flows of which packets are collected at a time.
const FLOWS: usize = 8;
/// The longest packet of all.
const LONGEST: usize = u16::MAX as usize;
/// Datagrams that the kernel takes in one packet (`UDP_MAX_SEGMENTS` before Linux 6.9).
const DATAGRAMS: u64 = 64;

/// Writes a packet with its `virtio_net_hdr`; the number says how many packets on the wire it was made of.
pub(super) trait Write: FnMut(&[u8; LENGTH], &[u8], u64) {}

impl<F: FnMut(&[u8; LENGTH], &[u8], u64)> Write for F {}

/// Coalesces consecutive packets of a flow. Packets of one flow keep their order. Large packets of different
/// flows are written in the order of their first packets.
#[derive(Debug, Default)]
pub(super) struct Merge {
    open: Vec<Open>,
    /// Buffers that are free for other packets.
    spare: Vec<Vec<u8>>,
    /// Whether the kernel accepts large packets of UDP, too.
    datagrams: bool,
}

/// A large packet to which more of its flow may be appended.
#[derive(Debug)]
struct Open {
    packet: Vec<u8>,
    shape: Shape,
    /// Bytes of data in each packet.
    size: usize,
    packets: u64,
    /// Whether no other may follow: the last one was shorter, or had PSH.
    is_ended: bool,
}

/// Where things are in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    protocol: u8,
    transport: usize,
    data: usize,
}

impl Shape {
    /// Returns that of a whole TCP segment or UDP datagram without IP options or extension headers.
    fn of(packet: &[u8]) -> Option<Self> {
        let (protocol, transport, length) = match *packet.first()? {
            0x45 if packet.len() >= 20 && u16::from_be_bytes([packet[6], packet[7]]) & FRAGMENT == 0 => {
                (packet[9], 20, usize::from(u16::from_be_bytes([packet[2], packet[3]])))
            }
            first if first >> 4 == 6 && packet.len() >= 40 => {
                (packet[6], 40, 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]])))
            }
            _ => return None,
        };
        let header = match protocol {
            TCP => usize::from(packet.get(transport + 12)? >> 4).max(5) * 4,
            UDP => 8,
            _ => return None,
        };
        let data = transport + header;
        (length == packet.len() && data <= length).then_some(Self { protocol, transport, data })
    }

    /// Whether others with the same headers may join the packet, which has this shape.
    fn may_be_joined(self, packet: &[u8]) -> bool {
        let header = &packet[self.transport..self.data];
        let is_plain = match self.protocol {
            TCP => header[13] & !(PSH | ECE) == ACK,
            // Without a checksum it stays without one.
            _ => header[6..8] != [0; 2],
        };
        is_plain && self.data < packet.len()
    }

    /// Whether both packets, which have this shape, are of one flow.
    fn is_one_flow(self, a: &[u8], b: &[u8]) -> bool {
        let addresses = if self.transport == 20 { 12 } else { 8 }..self.transport + 4;
        a[0] >> 4 == b[0] >> 4 && a[addresses.clone()] == b[addresses]
    }

    /// Whether the headers of both packets differ at most in what segmentation makes anew.
    fn has_same_headers(self, a: &[u8], b: &[u8]) -> bool {
        let ip: [_; 2] = if self.transport == 20 { [0..2, 6..10] } else { [0..4, 6..8] };
        let from = |at: usize| self.transport + at;
        let is_same = ip.into_iter().all(|part| a[part.clone()] == b[part]);
        is_same
            && (self.protocol == UDP
                || a[from(8)..from(13)] == b[from(8)..from(13)]
                    && (a[from(13)] ^ b[from(13)]) & !PSH == 0
                    && a[from(14)..from(16)] == b[from(14)..from(16)]
                    && a[from(18)..self.data] == b[from(18)..self.data])
    }
}

impl Open {
    /// Whether the packet, of the same shape and flow, goes on where these end.
    fn continues(&self, packet: &[u8]) -> bool {
        let Shape { protocol, transport, data } = self.shape;
        let first = &self.packet;
        let size = packet.len() - data;
        let follows = if protocol == TCP {
            let sequence = |packet: &[u8]| {
                u32::from_be_bytes(std::array::from_fn(|place| packet[transport + 4 + place]))
            };
            sequence(packet) == sequence(first).wrapping_add((first.len() - data) as u32)
        } else {
            self.packets < DATAGRAMS
        };
        let number = |packet: &[u8]| u16::from_be_bytes([packet[4], packet[5]]);
        !self.is_ended
            && size <= self.size
            && first.len() + size <= LONGEST
            && follows
            && (transport != 20 || number(packet) == number(first).wrapping_add(self.packets as u16))
            && self.shape.has_same_headers(first, packet)
    }

    /// Appends a packet's data.
    fn append(&mut self, packet: &[u8]) {
        let Shape { protocol, transport, data } = self.shape;
        self.packet.extend_from_slice(&packet[data..]);
        self.packets += 1;
        self.is_ended = packet.len() - data < self.size;
        if protocol == TCP && packet[transport + 13] & PSH != 0 {
            self.packet[transport + 13] |= PSH;
            self.is_ended = true;
        }
    }

    /// Writes the lengths and the checksum of the IPv4 header, and returns what the kernel is to do.
    fn complete(&mut self) -> Offloads {
        let Shape { protocol, transport, data } = self.shape;
        let packet = &mut self.packet[..];
        let length = packet.len() as u16;
        let upper = length - transport as u16;
        let addresses = if transport == 20 {
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            check_ipv4(&mut packet[..20]);
            &packet[12..20]
        } else {
            packet[4..6].copy_from_slice(&upper.to_be_bytes());
            &packet[8..40]
        };
        let pseudo = fold(sum(addresses) + word(u16::from(protocol)) + word(upper));
        let (at, merged) = match (protocol, transport) {
            (UDP, _) => (6, Merged::Udp),
            (_, 20) => (16, Merged::Tcp4),
            _ => (16, Merged::Tcp6),
        };
        if protocol == UDP {
            packet[transport + 4..transport + 6].copy_from_slice(&upper.to_be_bytes());
        }
        packet[transport + at..transport + at + 2].copy_from_slice(&pseudo.to_ne_bytes());
        let (merged, size) = if self.packets > 1 { (merged, self.size as u16) } else { (Merged::No, 0) };
        let checksum = Some((transport as u16, at as u16));
        Offloads { checksum, is_valid: true, merged, size, headers: data as u16 }
    }
}

impl Merge {
    /// Collects nothing yet; `datagrams` says whether the kernel takes those of UDP.
    pub(super) fn new(datagrams: bool) -> Self {
        Self { datagrams, ..Self::default() }
    }

    /// Takes a packet; `is_valid` says whether its transport checksum is known to be right. It waits until
    /// [`finish`](Self::finish), or is written.
    pub(super) fn take(&mut self, packet: &[u8], is_valid: bool, out: &mut impl Write) {
        let Some(shape) = Shape::of(packet).filter(|shape| self.datagrams || shape.protocol == TCP) else {
            self.finish(out);
            return out(&[0; LENGTH], packet, 1);
        };
        let is_flow = |open: &Open| {
            (open.shape.protocol, open.shape.transport) == (shape.protocol, shape.transport)
                && shape.is_one_flow(&open.packet, packet)
        };
        let may_be_joined = is_valid && shape.may_be_joined(packet);
        if let Some(place) = self.open.iter().position(is_flow) {
            let open = &mut self.open[place];
            if may_be_joined && open.shape == shape && open.continues(packet) {
                return open.append(packet);
            }
            self.write(place, out);
        }
        if !may_be_joined {
            return out(&[0; LENGTH], packet, 1);
        }
        if self.open.len() == FLOWS {
            self.write(0, out);
        }
        let mut first = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(LONGEST));
        first.clear();
        first.extend_from_slice(packet);
        let size = packet.len() - shape.data;
        let is_ended = shape.protocol == TCP && packet[shape.transport + 13] & PSH != 0;
        self.open.push(Open { packet: first, shape, size, packets: 1, is_ended });
    }

    /// Writes all that waits.
    pub(super) fn finish(&mut self, out: &mut impl Write) {
        while !self.open.is_empty() {
            self.write(0, out);
        }
    }

    fn write(&mut self, place: usize, out: &mut impl Write) {
        let mut open = self.open.remove(place);
        let offloads = open.complete();
        out(&offloads.bytes(), &open.packet, open.packets);
        self.spare.push(open.packet);
    }
}
