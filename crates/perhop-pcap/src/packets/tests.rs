//! Capture files as another reader sees them.

use super::*;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use perhop_core::medium::Medium;
use perhop_core::{Color, Duration, Ecn, FlowId, Header, Instant};
use perhop_sim::observer::Origin;
use perhop_sim::{LinkSpec, NodeId};

fn network() -> Network {
    let link = LinkSpec {
        name: "core".into(),
        from: NodeId(0),
        to: NodeId(1),
        rate: "1Mbps".parse().unwrap(),
        delay: Duration::ZERO,
        queue: None,
        meters: Vec::new(),
        medium: Medium::default(),
    };
    let other = LinkSpec { name: "other".into(), ..link.clone() };
    let back = LinkSpec { name: "core (reverse)".into(), ..link.clone() };
    Network { nodes: 2, links: vec![other, link, back], ..Network::new(Duration::from_secs(1)) }
}

fn observed(nanos: u64, number: u32, event: PacketEvent) -> Observed {
    let header = Header { ecn: Ecn::Capable0, color: Color::Green, ..Header::new(FlowId(0), 500) };
    let flow = Origin { spec: 0, member: None, serial: 0 };
    Observed {
        at: Instant::from_nanos(nanos),
        link: 1,
        event,
        flow,
        header,
        contents: Contents::Datagram(number),
    }
}

/// Interface, time, comment and length of a packet.
type Packet = (u32, u64, String, u32);

/// Returns the names of interfaces, and the packets.
fn read(file: &[u8]) -> (Vec<String>, Vec<Packet>) {
    let mut reader = PcapNgReader::new(file).unwrap();
    let (mut interfaces, mut packets) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => interfaces.push(format!("{:?}", interface.options[0])),
            Block::EnhancedPacket(packet) => {
                let comment = packet.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Comment(text) => Some(text.to_string()),
                    _ => None,
                });
                let time = packet.timestamp.as_nanos() as u64;
                packets.push((packet.interface_id, time, comment.unwrap_or_default(), packet.original_len));
            }
            Block::NameResolution(_) => {}
            other => panic!("{other:?}"),
        }
    }
    (interfaces, packets)
}

fn captured() -> (Vec<String>, Vec<Packet>) {
    let network = network();
    let setup = Setup { network: &network, links: &[[1, 2]], comment: "seed 1" };
    let mut capture = PacketCapture::begin(&setup, Vec::new(), Watch::default());
    let departure = |notified, is_lost| PacketEvent::Departure { notified, is_lost };
    let events = [
        (1, 0, PacketEvent::Arrival(Decision::Admitted)),
        (2, 0, departure(None, false)),
        (3, 1, PacketEvent::Arrival(Decision::Notified(Reason::Early))),
        (4, 2, PacketEvent::Arrival(Decision::Dropped(Reason::Overflow))),
        (5, 3, PacketEvent::Policed),
        (6, 1, departure(None, true)),
        (7, 4, PacketEvent::Arrival(Decision::Admitted)),
        (8, 4, departure(Some(Reason::Target), false)),
        (9, 5, PacketEvent::Arrival(Decision::Admitted)),
        (10, 5, PacketEvent::Dropped(Reason::Target)),
    ];
    for (nanos, number, event) in events {
        capture.observe(&observed(nanos, number, event));
    }
    capture.observe(&Observed { link: 0, ..observed(11, 6, departure(None, false)) });
    capture.observe(&Observed { link: 2, ..observed(12, 6, departure(None, false)) });
    read(&capture.finish().unwrap())
}

fn expected(packets: &[(u32, u64, &str)]) -> Vec<Packet> {
    packets.iter().map(|&(interface, time, comment)| (interface, time, comment.to_owned(), 500)).collect()
}

#[test]
fn each_point_is_an_interface_and_each_drop_and_mark_has_one_comment() {
    let (interfaces, packets) = captured();
    let names = ["core", "core (reverse)"]
        .map(|link| ["in", "out", "dropped"].map(|point| format!("{link} {point}")));
    let names = names.as_flattened().iter().map(|name| format!("IfName({name:?})"));
    assert_eq!(interfaces, names.collect::<Vec<_>>());
    let all = expected(&[
        (0, 1, ""),
        (1, 2, ""),
        (0, 3, ""),
        (0, 4, "dropped: overflow"),
        (0, 5, "dropped: policed"),
        (1, 6, "marked: early; lost by the link"),
        (0, 7, ""),
        (1, 8, "marked: target"),
        (0, 9, ""),
        (2, 10, "dropped: target"),
        (4, 12, ""),
    ]);
    assert_eq!(packets, all);
}

#[test]
fn a_file_that_cannot_be_written_ends_the_run() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (network, watch) = (network(), Watch::default());
    let setup = Setup { network: &network, links: &[[1, 2]], comment: "" };
    let mut capture = PacketCapture::begin(&setup, Full, watch.clone());
    for number in 0..2 * BATCH as u32 / 100 {
        capture.observe(&observed(number.into(), number, PacketEvent::Arrival(Decision::Admitted)));
    }
    assert!(watch.is_stopped());
    assert_eq!(capture.finish().err().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
}
