use etherparse::{IpSlice, PacketBuilder, TcpHeaderSlice, UdpHeaderSlice};
use proptest::prelude::*;

use super::header::{LENGTH, Merged, Offloads, fold, sum, word};
use super::merge::Merge;
use super::split::Split;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;

/// A packet as the kernel hands it over: many in one, its checksum that of the pseudo-header.
#[derive(Clone, Debug)]
struct Large {
    packet: Vec<u8>,
    offloads: Offloads,
}

/// A kind of packet: IPv6 or IPv4, UDP or TCP.
type Kind = (bool, bool);

fn large((six, udp): Kind, data: &[u8], size: u16, flags: u8) -> Large {
    let mut packet = Vec::new();
    let (transport, source) = if six { (40, 8) } else { (20, 12) };
    let ip = if six {
        PacketBuilder::ipv6([1; 16], [2; 16], 64)
    } else {
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
    };
    if udp {
        ip.udp(53, 54).write(&mut packet, data).unwrap();
    } else {
        // Options: a time stamp.
        let options = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let tcp = ip.tcp(1000, 2000, u32::MAX - 150, 500).ack(9).options_raw(&options).unwrap();
        tcp.write(&mut packet, data).unwrap();
        packet[transport + 13] = flags;
    }
    if !six {
        packet[4..6].copy_from_slice(&[0xff, 0xfe]);
        super::header::check_ipv4(&mut packet[..20]);
    }
    let (at, headers) = if udp { (6, 8) } else { (16, 32) };
    let upper = (packet.len() - transport) as u16;
    let pseudo = sum(&packet[source..transport]) + word(if udp { 17 } else { 6 }) + word(upper);
    packet[transport + at..transport + at + 2].copy_from_slice(&fold(pseudo).to_ne_bytes());
    let merged = match (six, udp) {
        (_, true) => Merged::Udp,
        (false, _) => Merged::Tcp4,
        (true, _) => Merged::Tcp6,
    };
    let checksum = Some((transport as u16, at as u16));
    let headers = (transport + headers) as u16;
    Large { packet, offloads: Offloads { checksum, is_valid: true, merged, size, headers } }
}

fn split(large: &Large) -> Vec<Vec<u8>> {
    let mut split = Split::begin(&large.packet, &large.offloads).expect("sound");
    let mut room = vec![0; 65_535];
    std::iter::from_fn(|| split.next(&large.packet, &mut room).map(|length| room[..length].to_vec()))
        .collect()
}

/// What an independent reader says of a packet: its data, after checking lengths and checksums.
fn data(packet: &[u8]) -> Vec<u8> {
    let ip = IpSlice::from_slice(packet).expect("lengths are right");
    let upper = ip.payload();
    match &ip {
        IpSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(usize::from(header.total_len), packet.len());
        }
        IpSlice::Ipv6(ip) => assert_eq!(usize::from(ip.header().payload_length()) + 40, packet.len()),
    }
    if upper.ip_number.0 == 17 {
        let slice = UdpHeaderSlice::from_slice(upper.payload).unwrap();
        assert_eq!(usize::from(slice.length()), upper.payload.len());
        let (header, data) = (slice.to_header(), &upper.payload[8..]);
        let sum = match &ip {
            IpSlice::Ipv4(ip) => header.calc_checksum_ipv4(&ip.header().to_header(), data),
            IpSlice::Ipv6(ip) => header.calc_checksum_ipv6(&ip.header().to_header(), data),
        };
        assert_eq!(header.checksum, sum.unwrap());
        return data.to_vec();
    }
    let slice = TcpHeaderSlice::from_slice(upper.payload).unwrap();
    let (header, data) = (slice.to_header(), &upper.payload[slice.slice().len()..]);
    let sum = match &ip {
        IpSlice::Ipv4(ip) => header.calc_checksum_ipv4(&ip.header().to_header(), data),
        IpSlice::Ipv6(ip) => header.calc_checksum_ipv6(&ip.header().to_header(), data),
    };
    assert_eq!(header.checksum, sum.unwrap());
    data.to_vec()
}

/// Gives packets to one that merges, all at once, and returns what it writes.
fn merge<'a>(packets: impl IntoIterator<Item = (&'a [u8], bool)>) -> Vec<(Large, u64)> {
    let mut written = Vec::new();
    let mut out = |header: &[u8; LENGTH], packet: &[u8], packets: u64| {
        written.push((Large { packet: packet.to_vec(), offloads: Offloads::read(header) }, packets));
    };
    let mut merge = Merge::new(true);
    packets.into_iter().for_each(|(packet, is_valid)| merge.take(packet, is_valid, &mut out));
    merge.finish(&mut out);
    written
}

fn valid(packets: &[Vec<u8>]) -> impl Iterator<Item = (&[u8], bool)> {
    packets.iter().map(|packet| (&packet[..], true))
}

fn counts(packets: &[Vec<u8>]) -> Vec<u64> {
    merge(valid(packets)).iter().map(|(_, packets)| *packets).collect()
}

#[test]
fn a_large_tcp_segment_becomes_those_on_the_wire() {
    let bytes: Vec<u8> = (0..250).collect();
    let packets = split(&large((false, false), &bytes, 100, CWR | ACK | PSH | FIN));
    let field = |at: usize| packets.iter().map(|packet| packet[at]).collect::<Vec<_>>();
    assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [152, 152, 102]);
    assert_eq!((field(4), field(5)), (vec![0xff, 0xff, 0], vec![0xfe, 0xff, 0]), "identification");
    let sequence = |packet: &Vec<u8>| u32::from_be_bytes(packet[24..28].try_into().unwrap());
    assert_eq!(packets.iter().map(sequence).collect::<Vec<_>>(), [u32::MAX - 150, u32::MAX - 50, 49]);
    assert_eq!(field(33), [CWR | ACK, ACK, ACK | PSH | FIN], "flags");
    assert!(packets.iter().all(|packet| packet[40..52] == [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]), "options");
    // By hand: the header's words without the checksum add up to 1d99f, which folds to d9a0.
    let ip = [0x45, 0, 0, 152, 0xff, 0xfe, 0x40, 0, 64, 6, 0x26, 0x5f, 10, 0, 0, 1, 10, 0, 0, 2];
    assert_eq!(packets[0][..20], ip);
    assert_eq!(packets.iter().flat_map(|packet| data(packet)).collect::<Vec<_>>(), bytes);
}

#[test]
fn a_checksum_that_is_left_to_the_hardware_is_completed() {
    for kind in [(false, false), (true, false), (false, true), (true, true)] {
        let one = large(kind, b"perhop", 0, ACK);
        let whole = Large { offloads: Offloads { merged: Merged::No, ..one.offloads }, ..one };
        let packets = split(&whole);
        assert_eq!((packets.len(), data(&packets[0])), (1, b"perhop".to_vec()));
    }
}

#[test]
fn a_datagram_whose_checksum_is_zero_says_so() {
    let mut one = large((false, true), &[0; 2], 0, 0);
    // Data that make the sum all ones, and its complement zero.
    let rest = !fold(sum(&one.packet[20..]));
    one.packet[28..30].copy_from_slice(&rest.to_ne_bytes());
    one.offloads.merged = Merged::No;
    assert_eq!(split(&one)[0][26..28], [0xff, 0xff]);
}

#[test]
fn what_cannot_be_split_is_refused() {
    let sound = large((false, false), &[7; 250], 100, ACK);
    let refused = |change: &dyn Fn(&mut Large)| {
        let mut changed = sound.clone();
        change(&mut changed);
        assert!(Split::begin(&changed.packet, &changed.offloads).is_none(), "{changed:?}");
    };
    assert!(Split::begin(&sound.packet, &sound.offloads).is_some());
    refused(&|large| large.offloads.merged = Merged::Other);
    refused(&|large| large.offloads.merged = Merged::Tcp6);
    refused(&|large| large.offloads.checksum = None);
    refused(&|large| large.offloads.checksum = Some((20, 18)));
    refused(&|large| large.offloads.checksum = Some((16, 16)));
    refused(&|large| large.offloads.size = 0);
    refused(&|large| large.packet.truncate(51));
    refused(&|large| large.packet[32] = 0x40);
    refused(&|large| large.packet[0] = 0x65);
    refused(&|large| large.packet.clear());
}

#[test]
fn packets_of_several_flows_are_put_together_by_flow_and_in_order() {
    let one = split(&large((false, false), &[1; 300], 100, ACK));
    let other = split(&large((true, false), &[2; 300], 100, ACK));
    let mixed: Vec<Vec<u8>> = one.iter().zip(&other).flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
    let written = merge(valid(&mixed));
    assert_eq!(written.iter().map(|(_, packets)| *packets).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(split(&written[0].0), one);
    assert_eq!(split(&written[1].0), other);
}

#[test]
fn what_is_not_one_run_of_segments_stays_apart() {
    let packets = split(&large((false, false), &[1; 300], 100, ACK));
    let changed = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut packets = packets.clone();
        change(&mut packets);
        counts(&packets)
    };
    assert_eq!(changed(&|_| ()), [3]);
    assert_eq!(changed(&|packets| packets.swap(1, 2)), [1, 1, 1], "out of order");
    assert_eq!(changed(&|packets| _ = packets.remove(1)), [1, 1], "a gap");
    assert_eq!(changed(&|packets| packets[1][1] = 3), [1, 1, 1], "ECN");
    assert_eq!(changed(&|packets| packets[2][8] = 63), [2, 1], "time to live");
    assert_eq!(changed(&|packets| packets[2][5] = 7), [2, 1], "identification");
    assert_eq!(changed(&|packets| packets[2][31] = 10), [2, 1], "acknowledgment");
    assert_eq!(changed(&|packets| packets[2][47] = 9), [2, 1], "time stamp");
    assert_eq!(changed(&|packets| packets[1][33] |= PSH), [2, 1], "nothing follows PSH");
    assert_eq!(changed(&|packets| packets[2][33] |= FIN), [2, 1], "FIN");
    assert_eq!(changed(&|packets| packets[1][33] |= CWR), [1, 1, 1], "CWR");
    assert_eq!(changed(&|packets| packets.push(vec![0x45; 3])), [3, 1], "no packet");
    let unknown = packets.iter().map(|packet| (&packet[..], false));
    let unknown = merge(unknown);
    assert_eq!(unknown.iter().map(|(_, packets)| *packets).collect::<Vec<_>>(), [1, 1, 1], "not verified");
    assert_eq!(unknown[1].0.packet, packets[1]);
    assert_eq!(unknown[1].0.offloads, Offloads::default());
}

prop_compose! {
    fn any_large()(
        six in any::<bool>(), udp in any::<bool>(), size in 1_u16..1461, packets in 1_usize..45, rest in 0_usize..1460,
        flags in any::<u8>(), byte in any::<u8>(),
    ) -> Large {
        let length = (usize::from(size) * packets + rest % usize::from(size)).min(65_000);
        let bytes: Vec<u8> = (0..length).map(|place| (place as u8).wrapping_mul(7) ^ byte).collect();
        large((six, udp), &bytes, size, flags | ACK)
    }
}

proptest! {
    #[test]
    fn segments_are_right_and_make_up_the_whole(one in any_large()) {
        let packets = split(&one);
        let headers = usize::from(one.offloads.headers);
        prop_assert!(packets.iter().all(|packet| packet.len() <= headers + usize::from(one.offloads.size)));
        let whole: Vec<u8> = packets.iter().flat_map(|packet| data(packet)).collect();
        prop_assert_eq!(whole, &one.packet[headers..]);
    }

    #[test]
    fn what_is_put_together_splits_into_the_same(one in any_large()) {
        let packets = split(&one);
        let written = merge(valid(&packets));
        let again: Vec<Vec<u8>> = written.iter().flat_map(|(large, _)| split(large)).collect();
        prop_assert_eq!(again, packets);
    }

    #[test]
    fn any_bytes_are_survived(
        one in any_large(), changes in prop::collection::vec((0_usize..64, any::<u8>()), 0..6), header in any::<[u8; LENGTH]>(),
        from in 0_u16..80, at in 0_u16..20, cut in 0_usize..2000, room in 0_usize..1500,
    ) {
        let mut one = one;
        for (place, byte) in changes {
            if let Some(place) = one.packet.get_mut(place) {
                *place = byte;
            }
        }
        one.packet.truncate(cut);
        let mut room = vec![0; room];
        for offloads in [one.offloads, Offloads { checksum: Some((from, at)), ..one.offloads }, Offloads::read(&header)] {
            let Some(mut split) = Split::begin(&one.packet, &offloads) else { continue };
            while let Some(length) = split.next(&one.packet, &mut room) {
                merge([(&room[..length], true), (&one.packet[..], true)]);
            }
        }
    }
}
