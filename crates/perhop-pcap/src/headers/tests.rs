//! Headers by hand, and as another reader sees them.

use super::*;
use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TransportSlice};
use perhop_core::{Dscp, Ecn, FlowId, Header, Instant};
use perhop_sim::observer::{Decision, Origin, PacketEvent};
use proptest::prelude::*;

const SACK: Protocol = Protocol::Tcp {
    headers: 40,
    payload: 1460,
    window: 1 << 20,
    handshake: true,
    scaled: true,
    sack: true,
    ecn: TcpEcn::Off,
};
const PLAIN: Protocol = Protocol::Tcp {
    headers: 40,
    payload: 536,
    window: 20_000,
    handshake: false,
    scaled: false,
    sack: false,
    ecn: TcpEcn::Classic,
};

fn with_ecn(ecn: TcpEcn) -> Protocol {
    Protocol::Tcp {
        headers: 40,
        payload: 1460,
        window: 1 << 20,
        handshake: true,
        scaled: true,
        sack: true,
        ecn,
    }
}

fn observed(size: u16, contents: Contents) -> Observed {
    let header = Header { dscp: Dscp::new(10).unwrap(), ecn: Ecn::Capable0, ..Header::new(FlowId(3), size) };
    let event = PacketEvent::Arrival(Decision::Admitted);
    let flow = Origin { spec: 3, member: None, serial: 3 };
    Observed { at: Instant::ZERO, link: 0, event, flow, header, contents }
}

/// Returns the headers, and the packet's length.
fn written(size: u16, contents: Contents, protocol: Protocol) -> (Vec<u8>, u32) {
    let mut out = vec![9; 3];
    let length = write(&observed(size, contents), protocol, None, 1, &mut out);
    (out, length)
}

/// Returns the packet with its payload of zeros.
fn whole(size: u16, contents: Contents, protocol: Protocol) -> Vec<u8> {
    let (mut packet, _) = written(size, contents, protocol);
    let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    assert!(packet.len() <= length && packet.len() <= LONGEST);
    packet.resize(length, 0);
    packet
}

fn ack(expected: u32) -> Acknowledgement {
    Acknowledgement {
        expected,
        echo: false,
        marked: 0,
        is_first: false,
        duplicate: None,
        last: (0, 0),
        ranges: [(0, 0); 3],
    }
}

/// Returns the sequence number, acknowledgement number, flags, window and options.
fn of_tcp(contents: Contents, protocol: Protocol) -> (u32, u32, String, u16, Vec<TcpOptionElement>) {
    let packet = whole(40, contents, protocol);
    let sliced = SlicedPacket::from_ip(&packet).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("{sliced:?}") };
    let flags = [
        (tcp.syn(), "S"),
        (tcp.ack(), "A"),
        (tcp.ns(), "N"),
        (tcp.cwr(), "C"),
        (tcp.ece(), "E"),
        (tcp.fin() || tcp.rst() || tcp.psh() || tcp.urg(), "!"),
    ];
    let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, name)| name).collect();
    let options =
        tcp.options_iterator().map(Result::unwrap).filter(|option| *option != TcpOptionElement::Noop);
    (tcp.sequence_number(), tcp.acknowledgment_number(), flags, tcp.window_size(), options.collect())
}

#[test]
fn a_segment_by_hand() {
    let (bytes, length) =
        written(576, Contents::Segment { number: 2, reduced: true, acknowledged: None }, PLAIN);
    // From 10.2.0.4:50001 to 10.3.0.4:50000, AF11 and ECT(0); byte 1 + 2 * 536 = 1073; ACK and CWR; a window
    // of 20 000.
    let expected = [
        0x45, 0x2a, 0x02, 0x40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 2, 0, 4, 10, 3, 0, 4, //
        0xc3, 0x51, 0xc3, 0x50, 0, 0, 0x04, 0x31, 0, 0, 0, 1, 0x50, 0x90, 0x4e, 0x20, 0, 0, 0, 0,
    ];
    let mut unsummed = bytes.clone();
    unsummed[10..12].fill(0);
    unsummed[36..38].fill(0);
    assert_eq!((&unsummed[..], length), (&expected[..], 576));
    // The sum of the words of the header, by hand: 452a + 0240 + 4000 + 4006 + 0a02 + 0004 + 0a03 + 0004 =
    // db7d.
    assert_eq!(bytes[10..12], [0x24, 0x82]);
}

#[test]
fn numbers_count_bytes_and_a_handshake_takes_one() {
    let segment =
        |number, protocol| of_tcp(Contents::Segment { number, reduced: false, acknowledged: None }, protocol);
    let answer = |expected, protocol| of_tcp(Contents::Acknowledgement(ack(expected)), protocol);
    let numbers = |(sequence, acknowledged, ..): (u32, u32, String, u16, Vec<TcpOptionElement>)| {
        (sequence, acknowledged)
    };
    assert_eq!([0, 1, 2].map(|n| numbers(segment(n, PLAIN))), [(1, 1), (537, 1), (1073, 1)]);
    assert_eq!([0, 1, 2].map(|n| numbers(segment(n, SACK))), [(0, 0), (1, 1), (1461, 1)]);
    assert_eq!([1, 2].map(|n| numbers(answer(n, PLAIN))), [(1, 537), (1, 1073)]);
    assert_eq!([1, 2].map(|n| numbers(answer(n, SACK))), [(1, 1), (1, 1461)]);
    // 2^32 / 1460 = 2941758.4: the numbers begin again.
    assert_eq!(numbers(segment(2_941_760, SACK)), ((2_941_759_u64 * 1460 + 1 - (1 << 32)) as u32, 1));
}

#[test]
fn a_connection_opens_with_its_options() {
    use TcpOptionElement::{MaximumSegmentSize, SelectiveAcknowledgementPermitted, WindowScale};
    let options = vec![MaximumSegmentSize(1460), WindowScale(14), SelectiveAcknowledgementPermitted];
    let syn = of_tcp(Contents::Segment { number: 0, reduced: false, acknowledged: None }, SACK);
    assert_eq!(syn, (0, 0, "S".into(), u16::MAX, options.clone()));
    let first = Acknowledgement { is_first: true, ..ack(1) };
    assert_eq!(of_tcp(Contents::Acknowledgement(first), SACK), (0, 1, "SA".into(), u16::MAX, options));
    // Timestamps in each segment leave it 1448 bytes, but not its maximum segment size (RFC 6691).
    let with_timestamps = match SACK {
        Protocol::Tcp { window, handshake, scaled, sack, ecn, .. } => {
            Protocol::Tcp { headers: 52, payload: 1448, window, handshake, scaled, sack, ecn }
        }
        Protocol::Udp => SACK,
    };
    let syn = of_tcp(Contents::Segment { number: 0, reduced: false, acknowledged: None }, with_timestamps);
    assert_eq!(syn.4[0], MaximumSegmentSize(1460));
    // 1 MiB in units of 16 KiB; without a handshake there is no scale.
    assert_eq!(of_tcp(Contents::Acknowledgement(ack(1)), SACK), (1, 1, "A".into(), 64, vec![]));
    assert_eq!(of_tcp(Contents::Acknowledgement(first), PLAIN), (1, 537, "A".into(), 20_000, vec![]));
}

#[test]
fn the_flags_of_ecn() {
    let flags = |contents, protocol| of_tcp(contents, protocol).2;
    let segment = |number, reduced| Contents::Segment { number, reduced, acknowledged: None };
    let answer = |echo, marked, is_first| {
        Contents::Acknowledgement(Acknowledgement { echo, marked, is_first, ..ack(1) })
    };
    let all = |ecn| {
        let protocol = with_ecn(ecn);
        [
            segment(0, false),
            segment(1, false),
            segment(1, true),
            answer(false, 0, true),
            answer(false, 0, false),
            answer(true, 0, false),
            answer(false, 3, false),
        ]
        .map(|contents| flags(contents, protocol))
    };
    assert_eq!(all(TcpEcn::Off)[..2], ["S", "A"]);
    assert_eq!(all(TcpEcn::Classic), ["SCE", "A", "AC", "SAE", "A", "AE", "A"]);
    // ACE counts from 5 (101): three marks make it 0 modulo 8.
    assert_eq!(all(TcpEcn::Accurate), ["SNCE", "ANE", "ANE", "SAC", "ANE", "ANE", "A"]);
    assert_eq!(all(TcpEcn::L4s), all(TcpEcn::Accurate));
}

#[test]
fn ranges_are_bytes_and_a_duplicate_is_the_first() {
    let sent = Acknowledgement { duplicate: Some(1), ranges: [(5, 7), (3, 4), (0, 0)], ..ack(2) };
    let byte = |segment: u32| (segment - 1) * 1460 + 1;
    let range = |begin, end| (byte(begin), byte(end));
    let option =
        TcpOptionElement::SelectiveAcknowledgement(range(1, 2), [Some(range(5, 7)), Some(range(3, 4)), None]);
    assert_eq!(of_tcp(Contents::Acknowledgement(sent), SACK).4, [option]);
    let (bytes, length) = written(40, Contents::Acknowledgement(sent), SACK);
    assert_eq!((bytes.len(), length), (68, 68), "as long as it has to be");
    let (bytes, length) = written(66, Contents::Acknowledgement(ack(2)), SACK);
    assert_eq!((bytes.len(), length), (64, 66), "filled up by words");
    let (bytes, length) = written(1000, Contents::Acknowledgement(ack(2)), SACK);
    assert_eq!((bytes.len(), length), (80, 1000));
}

#[test]
fn the_last_segment_may_be_shorter_than_the_others() {
    let (bytes, length) =
        written(140, Contents::Segment { number: 3, reduced: false, acknowledged: None }, PLAIN);
    assert_eq!((u16::from_be_bytes([bytes[2], bytes[3]]), length), (140, 140));
    // Segment 3 has 100 bytes of 536: it ends 436 bytes before a full one would.
    let after = |expected| {
        let ack = Acknowledgement { last: (4, 436), ..ack(expected) };
        of_tcp(Contents::Acknowledgement(ack), PLAIN).1
    };
    assert_eq!([3, 4].map(after), [1 + 3 * 536, 1 + 3 * 536 + 100]);
}

#[test]
fn headers_of_data_are_as_long_as_those_of_acknowledgements() {
    // Of 1500 bytes 52 are headers, as with timestamps: segments begin 1448 bytes apart.
    let long = Protocol::Tcp {
        headers: 52,
        payload: 1448,
        window: 1 << 20,
        handshake: false,
        scaled: false,
        sack: false,
        ecn: TcpEcn::Off,
    };
    let segment = Contents::Segment { number: 1, reduced: false, acknowledged: None };
    let packet = whole(1500, segment, long);
    let sliced = SlicedPacket::from_ip(&packet).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("{sliced:?}") };
    assert_eq!((tcp.sequence_number(), tcp.payload().len(), packet.len()), (1449, 1448, 1500));
}

#[test]
fn each_flow_has_ends_of_its_own_at_each_point() {
    let mut seen = std::collections::BTreeSet::new();
    for flow in (0..300).chain([65_534, 65_535, 65_536, 999_999]) {
        for point in [0, 1, 2, 127, 128, 129, 300] {
            let ends = Ends::of(flow, point);
            assert_eq!((ends.sender.octets()[0], ends.receiver.octets()[0]), (10, 10));
            assert!(ends.sender != ends.receiver && ends.port > RECEIVER_PORT);
            assert!(seen.insert(ends), "{flow} {point}: {ends:?}");
        }
    }
    let text = |flow, point| {
        let Ends { sender, receiver, port } = Ends::of(flow, point);
        format!("{sender} {receiver} {port}")
    };
    assert_eq!(text(255, 2), "10.4.1.0 10.5.1.0 50001");
    assert_eq!(text(65_535, 129), "10.2.0.0 10.3.0.0 50258");
}

proptest! {
    #[test]
    fn another_reader_finds_every_packet_sound(
        size in 1_u16..2000, number in any::<u32>(), kind in 0..4, sack in 0..3_u32,
        (handshake, is_first, echo, again) in any::<(bool, bool, bool, bool)>(), marked in any::<u32>(), ecn in 0..4_usize,
    ) {
        let ecn = [TcpEcn::Off, TcpEcn::Classic, TcpEcn::Accurate, TcpEcn::L4s][ecn];
        let tcp = Protocol::Tcp { headers: 40, payload: u32::from(size).saturating_sub(40).max(1), window: 9_999_999, handshake, scaled: handshake, sack: sack > 0, ecn };
        let number = number.min(u32::MAX - 9);
        let mut ranges = [(0, 0); 3];
        for (place, range) in (0..sack).zip(&mut ranges) {
            *range = (number + 2 * place + 1, number + 2 * place + 2);
        }
        let duplicate = again.then_some(number);
        let (contents, protocol) = match kind {
            0 => (Contents::Segment { number, reduced: echo, acknowledged: None }, tcp),
            1 => (Contents::Acknowledgement(Acknowledgement { expected: number, echo, marked, is_first, duplicate, last: (0, 0), ranges }), tcp),
            2 => (Contents::Datagram(number), Protocol::Udp),
            _ => (Contents::Feedback(number), Protocol::Udp),
        };
        let packet = whole(size, contents, protocol);
        let (_, length) = written(size, contents, protocol);
        prop_assert!(length >= u32::from(size) && length as usize >= packet.len());
        let sliced = SlicedPacket::from_ip(&packet).unwrap();
        let Some(NetSlice::Ipv4(ip)) = sliced.net else { panic!("{sliced:?}") };
        let header = ip.header();
        prop_assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
        prop_assert_eq!((header.dcp().value(), header.ecn().value()), (10, 2));
        match sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                let sum = tcp.calc_checksum_ipv4(header.source(), header.destination()).unwrap();
                prop_assert_eq!(tcp.checksum(), sum);
                let data = matches!(contents, Contents::Segment { .. }) && !tcp.syn();
                prop_assert_eq!(tcp.payload().len(), if data { usize::from(size).saturating_sub(40).max(1) } else { 0 });
                prop_assert!(tcp.options_iterator().all(|option| option.is_ok()));
            }
            Some(TransportSlice::Udp(udp)) => {
                let sum = udp.to_header().calc_checksum_ipv4_raw(header.source(), header.destination(), udp.payload());
                prop_assert_eq!(udp.checksum(), sum.unwrap());
                prop_assert_eq!(usize::from(udp.length()), packet.len() - 20);
            }
            other => panic!("{other:?}"),
        }
    }
}
