//! What a plane makes of packets whose ports or class stand elsewhere: in another fragment, in front of the
//! packet.

use perhop_core::{Color, Dscp, Instant, ServiceLevel};
use perhop_live::encapsulation::{Enclosure, TAG};
use perhop_live::{
    Coloring, Head, Plane, PlaneSpec, Portless, Remark, Selector, Sink, StreamFlow, StreamSpec, wire,
};

/// Codepoint and tag of what left.
#[derive(Default)]
struct Left(Vec<(u8, [u8; 4])>);

impl Sink for Left {
    fn deliver(&mut self, _: usize, head: &Head, packet: &[u8], _: Instant) {
        let tag = head[TAG].try_into().unwrap();
        self.0.push((wire::parse(packet).unwrap().dscp.get(), tag));
    }
}

fn plane(selectors: Vec<(Selector, u8)>) -> Plane {
    let stream = |(number, (selector, codepoint)): (usize, (Selector, u8))| StreamSpec {
        name: format!("class {number}"),
        flow: StreamFlow::FiveTuples,
        device: 0,
        selector,
        coloring: Coloring::Fixed(Color::Green, Dscp::new(codepoint).unwrap()),
        remark: Remark { priority: Some(5), traffic_class: None },
        service: ServiceLevel::NONE,
        label: 0,
        route: Vec::new(),
        leaves: 1,
    };
    let streams = selectors.into_iter().enumerate().map(stream).collect();
    Plane::new(PlaneSpec { devices: 2, mtu: 1500, buffers: 8, streams, ..PlaneSpec::default() }, 1)
}

fn offer(plane: &mut Plane, tag: [u8; 4], packet: &[u8], left: &mut Left) {
    let (slot, head, room) = plane.room().unwrap();
    head[TAG].copy_from_slice(&tag);
    room[..packet.len()].copy_from_slice(packet);
    plane.arrive(0, slot, packet.len(), Instant::ZERO, left);
}

/// A part of a UDP datagram to port 77: identification, offset in eights of bytes. More parts follow.
fn part(identification: u8, offset: u8) -> Vec<u8> {
    let mut packet =
        vec![0x45, 0, 0, 36, 0, identification, 0x20, offset, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend(if offset == 0 { [0, 7, 0, 77, 0, 40, 0, 0] } else { [0xff; 8] });
    packet.extend([0; 8]);
    let sum = wire::checksum(&packet[..20]).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet
}

#[test]
fn fragments_follow_the_first_into_its_class() {
    let to_port = Selector { destination_ports: Some(77..=77), ..Selector::default() };
    let (mut plane, mut left) = (plane(vec![(to_port, 46), (Selector::default(), 0)]), Left::default());
    for (identification, offset) in [(1, 2), (2, 0), (2, 2), (1, 4), (2, 4)] {
        offer(&mut plane, [0; 4], &part(identification, offset), &mut left);
    }
    assert_eq!(left.0.iter().map(|(codepoint, _)| *codepoint).collect::<Vec<_>>(), [0, 46, 46, 0, 46]);
    assert_eq!(Portless::ALL.map(|why| plane.counters().without_ports(why)), [2, 0]);
    plane.balance().unwrap();
}

#[test]
fn the_tag_decides_and_is_rewritten_whatever_packet_came_from_the_sender_before() {
    let tagged = Selector {
        enclosure: Enclosure { vlan: Some(7..=7), priority: Some(1..=1), ..Enclosure::default() },
        ..Selector::default()
    };
    let (mut plane, mut left) = (plane(vec![(tagged, 46), (Selector::default(), 0)]), Left::default());
    for tag in [[0; 4], [0x81, 0, 0x20, 7], [0x81, 0, 0x20, 8], [0x81, 0, 0x40, 7], [0x81, 0, 0x20, 7]] {
        offer(&mut plane, tag, &part(9, 0), &mut left);
    }
    let priority_5 = |vlan| [0x81, 0, 0xa0, vlan];
    let expected =
        [(0, [0; 4]), (46, priority_5(7)), (0, priority_5(8)), (0, priority_5(7)), (46, priority_5(7))];
    assert_eq!(left.0, expected);
}

#[test]
fn more_extension_headers_than_are_followed_hide_the_protocol_and_are_counted() {
    let udp = Selector { protocol: Some(17), ..Selector::default() };
    let (mut plane, mut left) = (plane(vec![(udp, 46), (Selector::default(), 0)]), Left::default());
    for options in [8, 9] {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8 * (options + 1), 60, 64];
        packet.extend([0xfd; 32]);
        for number in 1..=options {
            packet.extend([if number == options { 17 } else { 60 }, 0, 1, 4, 0, 0, 0, 0]);
        }
        packet.extend([0, 7, 0, 77, 0, 8, 0, 0]);
        offer(&mut plane, [0; 4], &packet, &mut left);
    }
    assert_eq!(left.0.iter().map(|(codepoint, _)| *codepoint).collect::<Vec<_>>(), [46, 0]);
    assert_eq!(plane.counters().without_ports(Portless::Hidden), 1);
}
