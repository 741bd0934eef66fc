//! Captures that scenarios name, as the text that these keep.

use perhop_core::Duration;
use perhop_replay::packets;

use crate::files::{Frame, Order, pcap, udp};

/// A file of packets at these nanoseconds, with their sizes and codepoints.
fn capture(all: &[(u64, usize, u8)]) -> Vec<u8> {
    let frames =
        all.iter().map(|&(time, size, dscp)| Frame::new(5_000_000_000 + time, udp(5000, size, dscp, 0)));
    pcap(Order::Little, true, 101, &frames.collect::<Vec<_>>())
}

fn text(file: &[u8], from: u64, to: Option<u64>) -> Result<String, String> {
    let read = packets(file, Duration::from_millis(from), to.map(Duration::from_millis), 16_000_000);
    read.map_err(|error| error.to_string())
}

#[test]
fn times_count_from_the_first_packet_that_is_chosen() {
    let file = capture(&[(0, 1500, 46), (1, 40, 0), (2_500_000, 60, 10), (10_000_000_000, 80, 0)]);
    assert_eq!(
        text(&file, 0, None).unwrap(),
        "time_s,size_B,dscp\n0,1500,46\n0.000000001,40,0\n0.0025,60,10\n10,80,0\n"
    );
    assert_eq!(text(&file, 2, Some(5000)).unwrap(), "time_s,size_B,dscp\n0.0005,60,10\n");
}

#[test]
fn what_is_left_out_stands_before_the_packets() {
    let mut file = capture(&[(0, 1500, 46), (1, 40, 0)]);
    file[24 + 16 + 10] ^= 1; // the checksum of the first packet
    let expected =
        "# left out: 1 with a wrong IPv4 checksum, of 2 packets\ntime_s,size_B,dscp\n0.000000001,40,0\n";
    assert_eq!(text(&file, 0, None).unwrap(), expected);
}

#[test]
fn what_a_scenario_cannot_replay_is_refused() {
    let file = capture(&[(0, 1500, 46), (1000, 40, 0)]);
    assert!(text(b"", 0, None).unwrap_err().contains("is empty"));
    let cut = text(&file[..file.len() - 3], 0, None).unwrap_err();
    assert_eq!(cut, "is cut off after 1 whole packets; take an undamaged copy, or a part by `to`");
    let none = text(&file, 5, None).unwrap_err();
    assert!(
        none.starts_with("has no packet of IP to replay; of 2 read: 2 outside `from` and `to`"),
        "{none}"
    );
    let back = text(&capture(&[(1000, 40, 0), (0, 40, 0)]), 0, None).unwrap_err();
    assert!(back.contains("packet 2 is 1us earlier than packet 1"), "{back}");
    // The second line would end behind 30 bytes.
    let large = packets(&file[..], Duration::ZERO, None, 30).unwrap_err().to_string();
    assert_eq!(
        large,
        "has 2 packets and more, whose text is larger than 0 MB; choose a part by `from` and `to`"
    );
}
