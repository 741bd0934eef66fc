//! Files of both formats, of either byte order, as bytes; and those that another program writes.

use std::borrow::Cow;
use std::time::Duration as Span;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, TsResolution};
use perhop_live::wire;
use perhop_pcap::read::Capture;
use perhop_replay::{Arrivals, CaptureRow, Choice};

use crate::files::{Frame, Order, block, ethernet, interface, packet, pcap, pcapng, section, udp, udp6};

/// The time, link type, first byte and lengths of a packet.
type Seen = (i128, u16, u8, usize, u32);

/// Each packet, and how the file ends.
fn read(file: &[u8]) -> (Vec<Seen>, Option<String>) {
    let mut packets = Vec::new();
    let mut capture = match Capture::open(file) {
        Ok(capture) => capture,
        Err(problem) => return (packets, Some(problem.to_string())),
    };
    loop {
        match capture.read_next() {
            Ok(Some(record)) => {
                let first = record.bytes.first().copied().unwrap_or_default();
                packets.push((
                    record.time.unwrap(),
                    record.link_type,
                    first,
                    record.bytes.len(),
                    record.length,
                ));
            }
            Ok(None) => return (packets, None),
            Err(problem) => return (packets, Some(problem.to_string())),
        }
    }
}

fn refusal(file: &[u8]) -> String {
    read(file).1.unwrap()
}

const ORDERS: [Order; 2] = [Order::Big, Order::Little];

#[test]
fn pcap_files_of_either_order_and_resolution_are_read() {
    for order in ORDERS {
        for (nanos, unit) in [(false, 1000), (true, 1)] {
            let frames = [
                Frame::new(1_700_000_000_000_007, vec![9; 5]),
                Frame { length: 1500, ..Frame::new(1_700_000_000_000_008, vec![8; 2]) },
            ];
            let times = frames.clone().map(|frame| i128::from(frame.time) * unit);
            let expected = vec![(times[0], 1, 9, 5, 5), (times[1], 1, 8, 2, 1500)];
            assert_eq!(read(&pcap(order, nanos, 1, &frames)), (expected, None), "{order:?} {nanos}");
        }
    }
}

#[test]
fn pcapng_files_of_either_order_are_read() {
    for order in ORDERS {
        let frames = [Frame::new(3, vec![9; 5]), Frame { length: 1500, ..Frame::new(1 << 40, vec![8; 2]) }];
        let expected = vec![(3000, 101, 9, 5, 5), ((1 << 40) * 1000, 101, 8, 2, 1500)];
        assert_eq!(read(&pcapng(order, &frames)), (expected, None), "{order:?}");
    }
}

#[test]
fn each_interface_has_its_resolution_and_link_type_and_each_section_its_own() {
    for order in ORDERS {
        let frame = Frame::new(2_500, vec![7; 3]);
        let name: (u16, &[u8]) = (2, b"eth0");
        let parts = [
            section(order),
            interface(order, 1, &[name, (9, &[9])]),
            packet(order, 0, &frame),
            // 2^-10 s, and an hour later.
            interface(order, 113, &[(9, &[0x8a]), name, (14, &order.u64(3600))]),
            packet(order, 1, &frame),
            packet(order, 0, &frame),
            // Names, then a section in the other order.
            block(order, 4, &[0; 8]),
            section(if order == Order::Big { Order::Little } else { Order::Big }),
        ];
        let other = if order == Order::Big { Order::Little } else { Order::Big };
        let before = 3600_u64.wrapping_neg();
        let more = [interface(other, 276, &[(14, &other.u64(before))]), packet(other, 0, &frame)];
        let hour = 3_600_000_000_000;
        let expected = vec![
            (2500, 1, 7, 3, 3),
            (2_441_406_250 + hour, 113, 7, 3, 3),
            (2500, 1, 7, 3, 3),
            (2_500_000 - hour, 276, 7, 3, 3),
        ];
        assert_eq!(read(&[parts.concat(), more.concat()].concat()), (expected, None));
    }
}

#[test]
fn obsolete_packet_blocks_are_read() {
    let order = Order::Little;
    let words = [0x0003_0000, 0, 5, 2, 60].map(|word| order.u32(word)); // 3 packets lost before it
    let body = [words.concat(), vec![6, 6, 0, 0]].concat();
    let file = [section(order), interface(order, 101, &[]), block(order, 2, &body)].concat();
    assert_eq!(read(&file), (vec![(5000, 101, 6, 2, 60)], None));
}

#[test]
fn what_another_program_writes_is_read() {
    let bytes = udp(5000, 100, 46, 0);
    let time = Span::new(1_600_000_000, 123_456_789);
    for endianness in [Endianness::Big, Endianness::Little] {
        let header = PcapHeader {
            endianness,
            ts_resolution: TsResolution::NanoSecond,
            datalink: DataLink::RAW,
            ..PcapHeader::default()
        };
        let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
        writer.write_packet(&PcapPacket::new(time, 100, &bytes)).unwrap();
        let expected = (vec![(1_600_000_000_123_456_789, 101, 0x45, 100, 100)], None);
        assert_eq!(read(&writer.into_writer()), expected);

        let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
        let options = vec![InterfaceDescriptionOption::IfTsResol(9)];
        let described = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
        writer.write_pcapng_block(described).unwrap();
        let data = Cow::Borrowed(&bytes[..]);
        let written = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: time,
            original_len: 100,
            data,
            options: vec![],
        };
        writer.write_pcapng_block(written).unwrap();
        assert_eq!(read(&writer.into_inner()), expected);
    }
}

#[test]
fn what_is_no_capture_is_named() {
    assert!(refusal(b"").starts_with("is empty"));
    for other in [&b"ab"[..], b"duration = \"5s\"\n", &[0; 100]] {
        assert!(refusal(other).starts_with("is no capture"), "{other:?}");
    }
    assert!(refusal(&[0x1f, 0x8b, 8, 8, 1, 2]).contains("gunzip"));
    assert!(refusal(&[0x28, 0xb5, 0x2f, 0xfd]).contains("unzstd"));
    assert!(refusal(&[0xfd, b'7', b'z', b'X', b'Z', 0]).contains("unxz"));
    assert!(refusal(&[0x34, 0xcd, 0xb2, 0xa1, 0, 0]).contains("editcap"));
    assert!(refusal(b"snoop\0\0\0").contains("snoop"));
}

#[test]
fn a_file_that_is_cut_off_tells_how_many_packets_are_whole() {
    let frames = [Frame::new(1, vec![1; 40]), Frame::new(2, vec![2; 40])];
    for file in [pcap(Order::Little, false, 101, &frames), pcapng(Order::Big, &frames)] {
        let whole = (1..=file.len()).map(|end| read(&file[..end])).collect::<Vec<_>>();
        let mut ends = [0; 3];
        for (packets, problem) in &whole {
            let text = ["its header, before any whole packet", "1 whole packet", "2 whole packets"];
            match problem {
                Some(problem) if packets.is_empty() && problem.starts_with("is no capture") => {}
                Some(problem) => assert_eq!(*problem, format!("is cut off after {}", text[packets.len()])),
                None => ends[packets.len()] += 1,
            }
        }
        // pcap has an end behind its header and each packet, pcapng behind the section and the interface,
        // too.
        assert!(ends[0] >= 1 && ends[1..] == [1, 1], "{ends:?}");
    }
}

#[test]
fn lengths_that_lie_are_refused_and_take_no_memory() {
    let order = Order::Little;
    let huge = Frame::new(1, vec![5; 8]);
    let mut file = pcap(order, false, 101, std::slice::from_ref(&huge));
    file[32..36].copy_from_slice(&order.u32(u32::MAX));
    assert!(refusal(&file).contains("4294967295 bytes"), "{}", refusal(&file));
    let mut file = pcap(order, false, 101, std::slice::from_ref(&huge));
    file[28..32].copy_from_slice(&order.u32(1_000_000));
    assert!(refusal(&file).contains("no fraction of a second"));

    let start = [section(order), interface(order, 101, &[])].concat();
    let with = |block: &[u8]| refusal(&[&start, block].concat());
    let good = packet(order, 0, &huge);
    let changed = |place: usize, word: u32| {
        let mut block = good.clone();
        block[place..place + 4].copy_from_slice(&order.u32(word));
        block
    };
    assert!(with(&changed(4, 13)).contains("would have 13 bytes"));
    assert!(with(&changed(4, 8)).contains("would have 8 bytes"));
    assert!(with(&changed(4, 28)).contains("has 16 bytes instead of 20"));
    assert_eq!(with(&changed(4, u32::MAX - 3)), "is cut off after its header, before any whole packet");
    assert!(with(&changed(8, 1)).contains("interface 1, and the section describes 1"));
    assert!(with(&changed(20, 1000)).contains("would have 1000 bytes in a block with room for"));
    assert!(with(&changed(good.len() - 4, 40)).contains("behind it"));
    assert!(with(&block(order, 3, &[])).contains("has 0 bytes instead of 4 or more"));
    assert!(
        refusal(&[section(order), block(order, 3, &[0; 8])].concat()).contains("the section describes none")
    );
    assert!(with(&block(order, 1, &[0; 4])).contains("4 bytes instead of 8"));
    assert!(with(&interface(order, 1, &[(9, &[20])])).contains("0x14"));
    assert!(with(&interface(order, 1, &[(14, &[20])])).contains("wrong length"));
    let mut long = interface(order, 1, &[(7, b"abcd")]);
    long[18..20].copy_from_slice(&order.u16(60_000));
    assert!(with(&long).contains("longer than its block"));
    let short = block(order, 0x0a0d_0d0a, &[]);
    assert!(refusal(&short).contains("byte order") || refusal(&short).starts_with("is cut off"));
}

/// What arrives: number, time in nanoseconds, size, codepoint, source port.
fn arrivals(file: &[u8]) -> Vec<(u64, u64, u16, u8, u16)> {
    let mut arrivals = Arrivals::open(file, Choice::default()).unwrap();
    let mut found = Vec::new();
    while let Some(arrival) = arrivals.read_next().unwrap() {
        let fields = arrival.fields;
        let port = fields.tuple.source_port;
        found.push((arrival.number, arrival.at.as_nanos(), fields.length, fields.dscp.get(), port));
    }
    found
}

#[test]
fn packets_are_found_behind_any_link_layer_header() {
    let (four, six) = (udp(5000, 100, 46, 0), udp6(6000, 200, 10, 1));
    let expected = [(1, 0, 100, 46, 5000), (2, 1000, 200, 10, 6000)];
    let cooked = |kind: [u8; 2], packet: &[u8]| [&[0; 14][..], &kind, packet].concat();
    let files: [(u16, [Vec<u8>; 2]); 5] = [
        (1, [ethernet(0, &four), ethernet(2, &six)]),
        (101, [four.clone(), six.clone()]),
        (113, [cooked([0x08, 0x00], &four), cooked([0x86, 0xdd], &six)]),
        (276, [[&[0x08, 0x00], &[0; 18][..], &four].concat(), [&[0x86, 0xdd], &[0; 18][..], &six].concat()]),
        (0, [[&[2, 0, 0, 0], &four[..]].concat(), [&[30, 0, 0, 0], &six[..]].concat()]),
    ];
    for (link_type, [first, second]) in files {
        let frames = [Frame::new(1_000_000, first), Frame::new(1_000_001, second)];
        assert_eq!(arrivals(&pcap(Order::Little, false, link_type, &frames)), expected, "{link_type}");
    }
}

#[test]
fn a_packet_of_which_headers_alone_were_captured_has_its_size_on_the_wire() {
    let whole = ethernet(0, &udp(5000, 1400, 46, 0));
    let frame = Frame { length: whole.len() as u32, ..Frame::new(0, whole[..42].to_vec()) };
    let padded = Frame::new(0, [ethernet(0, &udp(5001, 40, 0, 0)), vec![0; 6]].concat());
    let file = pcap(Order::Big, true, 1, &[frame, padded]);
    assert_eq!(arrivals(&file), [(1, 0, 1400, 46, 5000), (2, 0, 40, 0, 5001)]);
}

#[test]
fn frames_without_a_whole_header_are_counted_and_do_not_arrive() {
    let packet = udp(5000, 100, 0, 0);
    let mut checksum = packet.clone();
    checksum[10] ^= 1;
    let arp = [vec![2; 12], vec![0x08, 0x06], vec![0; 28]].concat();
    let cut = Frame { length: 114, ..Frame::new(0, ethernet(0, &packet)[..30].to_vec()) };
    let frames = [
        Frame::new(0, arp),
        cut,
        Frame::new(0, vec![2; 13]),
        Frame::new(0, ethernet(0, &packet[..99])),
        Frame::new(0, ethernet(0, &checksum)),
        Frame::new(0, ethernet(0, &packet)),
    ];
    let file = pcap(Order::Big, true, 1, &frames);
    let mut arrivals = Arrivals::open(&file[..], Choice::default()).unwrap();
    assert_eq!(arrivals.read_next().unwrap().unwrap().number, 6);
    assert_eq!(arrivals.read_next().unwrap(), None);
    let passed = arrivals.row();
    assert_eq!(
        (passed.packets, passed.not_ip, passed.truncated, passed.short, passed.checksum),
        (6, 1, 2, 1, 1)
    );
    let left_out = [
        (1, "without IP"),
        (2, "without whole headers"),
        (1, "longer by their headers than on the wire"),
        (1, "with a wrong IPv4 checksum"),
    ];
    assert_eq!(passed.left_out, left_out);
}

/// The sizes of the packets that arrive, as the data plane reads them again, and what became of the others.
fn sizes(file: &[u8]) -> (Vec<u16>, CaptureRow) {
    let mut arrivals = Arrivals::open(file, Choice::default()).unwrap();
    let mut sizes = Vec::new();
    while let Some(arrival) = arrivals.read_next().unwrap() {
        assert_eq!(wire::parse(arrival.bytes), Ok(arrival.fields));
        sizes.push(arrival.fields.length);
    }
    (sizes, arrivals.row())
}

fn with(mut packet: Vec<u8>, place: usize, bytes: &[u8]) -> Vec<u8> {
    packet[place..place + bytes.len()].copy_from_slice(bytes);
    packet
}

// Places in an IPv4 header, and that of the length in an IPv6 header.
const LENGTH: usize = 2;
const CHECKSUM: usize = 10;
const LENGTH_6: usize = 4;

#[test]
fn what_a_network_card_fills_in_is_taken_from_the_frame() {
    let four = |size| udp(5000, size, 46, 1);
    let (no_checksum, no_length) = (with(four(900), CHECKSUM, &[0; 2]), with(four(9000), LENGTH, &[0; 2]));
    let neither = with(no_length.clone(), CHECKSUM, &[0; 2]);
    // The checksum of the header as it was captured, with a length of 0.
    let sum = wire::checksum(&neither[..20]).to_be_bytes();
    let summed = with(neither.clone(), CHECKSUM, &sum);
    let six = with(udp6(6000, 7000, 10, 0), LENGTH_6, &[0; 2]);
    let packets = [four(100), no_checksum, neither, summed, six];
    let frames = packets.iter().enumerate().map(|(at, packet)| Frame::new(at as u64, ethernet(0, packet)));
    let (sizes, passed) = sizes(&pcap(Order::Little, false, 1, &frames.collect::<Vec<_>>()));
    assert_eq!(sizes, [100, 900, 9000, 9000, 7000]);
    assert_eq!((passed.no_checksum, passed.no_length, passed.long, passed.longest), (2, 3, 3, 9000));
    assert_eq!(passed.left_out, []);
}

#[test]
fn headers_alone_of_what_a_network_card_divides_have_the_length_of_the_frame() {
    let neither = with(with(udp(5000, 9000, 46, 1), LENGTH, &[0; 2]), CHECKSUM, &[0; 2]);
    let frame = Frame { length: 9014, ..Frame::new(0, ethernet(0, &neither[..60])) };
    let (sizes, passed) = sizes(&pcap(Order::Little, false, 1, &[frame]));
    assert_eq!((sizes, passed.shortened, passed.no_length), (vec![9000], 1, 1));
}

#[test]
fn a_wrong_checksum_is_left_out_and_one_of_the_transport_does_not_matter() {
    let packet = udp(5000, 900, 46, 1);
    let wrong = with(packet.clone(), CHECKSUM, &[packet[10] ^ 1, packet[11]]);
    let wrong_without_length = with(wrong.clone(), LENGTH, &[0; 2]);
    // The checksum of the length that the card fills in.
    let right_without_length = with(packet.clone(), LENGTH, &[0; 2]);
    // A partial checksum, that of the pseudo-header, which the card completes.
    let partial = with(packet, 26, &[0x12, 0x34]);
    let frames = [wrong, wrong_without_length, right_without_length, partial]
        .map(|packet| Frame::new(0, ethernet(0, &packet)));
    let (sizes, passed) = sizes(&pcap(Order::Big, false, 1, &frames));
    assert_eq!((sizes, passed.checksum, passed.no_checksum), (vec![900, 900], 2, 0));
}

#[test]
fn packets_of_more_than_65535_bytes_are_counted_and_an_empty_ipv6_packet_is_none() {
    let four = with(with(udp(5000, 100, 0, 0), LENGTH, &[0; 2]), CHECKSUM, &[0; 2]);
    let mut jumbogram = with(udp6(6000, 100, 0, 0), LENGTH_6, &[0; 2]);
    jumbogram[6] = 0; // Hop-by-Hop options
    let mut nothing = with(udp6(6000, 48, 0, 0), LENGTH_6, &[0; 2]);
    nothing[6] = 59; // No Next Header
    let frame = |packet: &[u8], length| Frame { length, ..Frame::new(0, ethernet(0, packet)) };
    let frames = [
        frame(&four, 14 + 65_536),
        frame(&four, 14 + 65_535),
        frame(&jumbogram, 14 + 180_000),
        frame(&nothing[..46], 60),
    ];
    let (sizes, passed) = sizes(&pcap(Order::Big, false, 1, &frames));
    assert_eq!((sizes, passed.oversized), (vec![65_535, 40], 2));
    assert_eq!(passed.left_out, [(2, "of more than 65,535 bytes")]);
}

#[test]
fn packets_without_a_time_are_counted_and_the_others_arrive() {
    for order in ORDERS {
        let simple = |length: usize, captured: usize| {
            block(order, 3, &[&order.u32(length as u32)[..], &udp(5000, length, 0, 0)[..captured]].concat())
        };
        let frame = |time| packet(order, 0, &Frame::new(time, udp(5000, 200, 0, 0)));
        let first = [section(order), interface(order, 101, &[])].concat();
        let file = [&first[..], &simple(100, 100), &frame(5), &simple(300, 60), &frame(7)].concat();
        let (sizes, passed) = sizes(&file);
        assert_eq!((sizes, passed.packets, passed.untimed), (vec![200, 200], 4, 2), "{order:?}");
        assert_eq!(passed.left_out, [(2, "without a time (simple packet blocks)")]);
    }
}
