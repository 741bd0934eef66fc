//! Captures and packets, byte by byte.
#![allow(dead_code, reason = "each user needs its part")]

use etherparse::{
    IpFragOffset, IpHeaders, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6Header, PacketBuilder,
};

/// The order of the bytes of numbers in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Big,
    Little,
}

impl Order {
    pub fn u16(self, number: u16) -> [u8; 2] {
        if self == Self::Big { number.to_be_bytes() } else { number.to_le_bytes() }
    }
    pub fn u32(self, number: u32) -> [u8; 4] {
        if self == Self::Big { number.to_be_bytes() } else { number.to_le_bytes() }
    }
    pub fn u64(self, number: u64) -> [u8; 8] {
        if self == Self::Big { number.to_be_bytes() } else { number.to_le_bytes() }
    }
}

/// A packet of a file: its time in units, its bytes as far as they were captured, and how many it had.
#[derive(Clone, Debug)]
pub struct Frame {
    pub time: u64,
    pub bytes: Vec<u8>,
    pub length: u32,
}

impl Frame {
    pub fn new(time: u64, bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u32;
        Self { time, bytes, length }
    }
}

/// A pcap file; times are in microseconds or, if said, in nanoseconds.
pub fn pcap(order: Order, nanos: bool, link_type: u16, frames: &[Frame]) -> Vec<u8> {
    let magic = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = Vec::new();
    file.extend(order.u32(magic));
    file.extend(order.u16(2));
    file.extend(order.u16(4));
    for word in [0, 0, 65_535, u32::from(link_type)] {
        file.extend(order.u32(word));
    }
    let second = if nanos { 1_000_000_000 } else { 1_000_000 };
    for Frame { time, bytes, length } in frames {
        for word in [(time / second) as u32, (time % second) as u32, bytes.len() as u32, *length] {
            file.extend(order.u32(word));
        }
        file.extend(bytes);
    }
    file
}

/// A block of a pcapng file.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = order.u32(12 + body.len().next_multiple_of(4) as u32);
    let mut block = [order.u32(kind), length].concat();
    block.extend(body);
    block.resize(block.len().next_multiple_of(4), 0);
    block.extend(length);
    block
}

/// The header of a section of unknown length.
pub fn section(order: Order) -> Vec<u8> {
    let body = [&order.u32(0x1a2b_3c4d)[..], &order.u16(1), &order.u16(0), &order.u64(u64::MAX)];
    block(order, 0x0a0d_0d0a, &body.concat())
}

/// The description of an interface, with options by their code.
pub fn interface(order: Order, link_type: u16, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = [&order.u16(link_type)[..], &[0, 0], &order.u32(0)].concat();
    for (code, value) in options {
        body.extend(order.u16(*code));
        body.extend(order.u16(value.len() as u16));
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    if !options.is_empty() {
        body.extend([0; 4]);
    }
    block(order, 1, &body)
}

/// An enhanced packet block.
pub fn packet(order: Order, interface: u32, frame: &Frame) -> Vec<u8> {
    let mut body = order.u32(interface).to_vec();
    for word in [(frame.time >> 32) as u32, frame.time as u32, frame.bytes.len() as u32, frame.length] {
        body.extend(order.u32(word));
    }
    body.extend(&frame.bytes);
    body.resize(body.len().next_multiple_of(4), 0);
    // A comment, which is passed over.
    body.extend(order.u16(1));
    body.extend(order.u16(2));
    body.extend(*b"hi\0\0");
    body.extend([0; 4]);
    block(order, 6, &body)
}

/// A pcapng file of raw IP packets with times in microseconds.
pub fn pcapng(order: Order, frames: &[Frame]) -> Vec<u8> {
    let mut file = [section(order), interface(order, 101, &[])].concat();
    for frame in frames {
        file.extend(packet(order, 0, frame));
    }
    file
}

/// A UDP packet of `size` bytes from this port to its complement, with this codepoint and ECN field.
pub fn udp(port: u16, size: usize, dscp: u8, ecn: u8) -> Vec<u8> {
    let header = Ipv4Header {
        dscp: dscp.try_into().unwrap(),
        ecn: ecn.try_into().unwrap(),
        fragment_offset: IpFragOffset::default(),
        time_to_live: 61,
        source: [10, 0, 0, 1],
        destination: [10, 0, 0, 2],
        ..Ipv4Header::default()
    };
    let header = IpHeaders::Ipv4(header, Ipv4Extensions::default());
    built(header, port, size - 28, size)
}

/// Makes a datagram over IPv6.
pub fn udp6(port: u16, size: usize, dscp: u8, ecn: u8) -> Vec<u8> {
    let header = Ipv6Header {
        traffic_class: dscp << 2 | ecn,
        hop_limit: 61,
        source: [0xfd; 16],
        destination: [0xfe; 16],
        ..Ipv6Header::default()
    };
    let header = IpHeaders::Ipv6(header, Ipv6Extensions::default());
    built(header, port, size - 48, size)
}

fn built(header: IpHeaders, port: u16, data: usize, size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ip(header).udp(port, !port).write(&mut bytes, &vec![7; data]).unwrap();
    assert_eq!(bytes.len(), size);
    bytes
}

/// An Ethernet frame around an IP packet, behind VLAN tags if there are some.
pub fn ethernet(tags: usize, packet: &[u8]) -> Vec<u8> {
    let kind = if packet[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    let mut frame = vec![2; 12];
    for _ in 0..tags {
        frame.extend([0x81, 0x00, 0, 5]);
    }
    frame.extend(kind);
    frame.extend(packet);
    frame
}
