//! Reports of a marker: a datagram to the sender for each packet that it marks OUT.

use etherparse::PacketBuilder;
use perhop_core::{Bitrate, Color, Dscp, Duration, FlowId, Instant, ServiceLevel};
use perhop_live::{
    Coloring, Fixed, Head, Hop, MeterSpec, Plane, PlaneSpec, Remark, ReportSpec, Selector, Sink, StreamSpec,
    wire,
};

use crate::script;

/// What left: the device, the port that it is for, its data and the time.
#[derive(Default)]
struct Left(Vec<(usize, u16, Vec<u8>, Instant)>);

impl Sink for Left {
    fn deliver(&mut self, device: usize, _: &Head, packet: &[u8], due: Instant) {
        let tuple = wire::parse(packet).unwrap().tuple;
        self.0.push((device, tuple.destination_port, packet[28..].to_vec(), due));
    }
}

fn plane(delay: Duration, buffers: u32) -> PlaneSpec {
    // A bucket of 1000 bytes: of packets of 128 bytes at once, seven are IN.
    let params = script::meter(("token-bucket", r#"{"rate": "1kbps", "burst": "1000B"}"#));
    let meter = MeterSpec { name: "meter".into(), params, rate: Bitrate::MAX };
    let stream = StreamSpec {
        name: "gold".into(),
        flow: FlowId(0).into(),
        device: 0,
        selector: Selector::default(),
        coloring: Coloring::Fixed(Color::Yellow, Dscp::DEFAULT),
        remark: Remark::default(),
        service: ServiceLevel::NONE,
        label: 0,
        route: vec![Hop::Meter(0)],
        leaves: 1,
    };
    let [source, destination] = ["10.0.0.9:1", "10.0.0.1:7"].map(|end| end.parse().unwrap());
    let reports = vec![ReportSpec { stream: 0, device: 0, delay, source, destination }];
    let (streams, meters) = (vec![stream], vec![meter]);
    PlaneSpec { devices: 2, mtu: 1500, buffers, meters, streams, reports, ..PlaneSpec::default() }
}

fn send(plane: &mut Plane, left: &mut Left, packets: usize) {
    for _ in 0..packets {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(7, 8);
        builder.write(&mut packet, &[0; 100]).unwrap();
        let (slot, _, room) = plane.room().unwrap();
        room[..packet.len()].copy_from_slice(&packet);
        plane.arrive(0, slot, packet.len(), Instant::ZERO, left);
        plane.balance().unwrap();
    }
}

#[test]
fn each_packet_that_is_marked_out_is_reported_to_its_sender() {
    let delay = Duration::from_millis(3);
    let (mut plane, mut left) = (Plane::new(plane(delay, 16), 1), Left::default());
    send(&mut plane, &mut left, 10);
    assert!(left.0.iter().all(|(device, ..)| *device == 1), "reports take their time");
    plane.advance(Instant::ZERO + delay, &mut left);
    plane.balance().unwrap();
    let reports: Vec<_> = left.0.iter().filter(|(device, ..)| *device == 0).collect();
    let expected: Vec<_> =
        (1_u32..=3).map(|n| (0, 7, n.to_be_bytes().to_vec(), Instant::ZERO + delay)).collect();
    assert_eq!(reports, expected.iter().collect::<Vec<_>>());
    let counters = plane.counters();
    assert_eq!((counters.all_read(), counters.originated(), counters.all_known()), (10, 3, 13));
    let out = plane.streams().next().unwrap().1.marked[Color::Yellow.index()];
    assert_eq!(out, 3);
}

#[test]
fn without_a_buffer_there_is_no_report_and_nothing_is_lost() {
    let (mut plane, mut left) = (Plane::new(plane(Duration::ZERO, 1), 1), Left::default());
    send(&mut plane, &mut left, 10);
    assert_eq!((plane.counters().originated(), left.0.len()), (0, 10));
}

#[test]
fn reports_cannot_change_while_packets_are_on_their_way() {
    let mut running = Plane::new(PlaneSpec { reports: Vec::new(), ..plane(Duration::ZERO, 4) }, 1);
    assert_eq!(running.reload(plane(Duration::ZERO, 4), 1), Err(Fixed::Reports));
}
