//! Verdicts and delays by hand.

use perhop_core::{Reason, Rng};
use perhop_replay::{By, FORWARDED, ReplayError, Report, Request, Verdicts, replay};
use perhop_sim::Watch;

use crate::files::{Frame, Order, interface, packet, pcap, pcapng, section, udp};

fn run(file: &[u8], options: &str) -> Result<(Report, Verdicts), ReplayError> {
    let plan = Request::plan(options, None)?;
    let (report, verdicts) = replay(file, &plan, By::Simulator, true, &Watch::default())?;
    Ok((report, verdicts.unwrap()))
}

fn refusal(file: &[u8], options: &str) -> String {
    run(file, options).unwrap_err().to_string()
}

const BUCKET: &str = r#"{"meter": {"marker": "token-bucket", "rate": "8Mbps", "burst": "2000B"}}"#;

/// A file of packets of 1000 bytes at these microseconds, each with its codepoint.
fn packets(times: &[(u64, u8)]) -> Vec<u8> {
    let frames = times.iter().map(|&(time, dscp)| Frame::new(7_000_000 + time, udp(5000, 1000, dscp, 0)));
    pcap(Order::Little, false, 101, &frames.collect::<Vec<_>>())
}

#[test]
fn a_token_bucket_by_hand() {
    // 8 Mbit/s is 1 byte a microsecond. The bucket of 2000 bytes is full at first: two packets at once are in
    // profile, a third is not. After 999 µs it holds 999 bytes, after one more 1000; then it is empty again,
    // and full after a rest of 2 ms.
    let times = [(0, 0), (0, 46), (0, 0), (999, 0), (1000, 0), (1001, 0), (4000, 0), (4000, 0), (4000, 10)];
    let (report, verdicts) = run(&packets(&times), BUCKET).unwrap();
    let [green, yellow] = [10, 12];
    let expected = [green, green, yellow, yellow, green, yellow, green, green, yellow];
    assert_eq!(verdicts.dscp_out, expected);
    assert_eq!(verdicts.color, expected.map(|dscp| (dscp - 10) / 2));
    assert_eq!(verdicts.verdict, [FORWARDED; 9]);
    assert_eq!(verdicts.arrived_ns, times.map(|(time, _)| time * 1000));
    assert_eq!(verdicts.left_ns, verdicts.arrived_ns);
    let rows = |report: &Report| {
        let rows = report.outcomes.iter();
        rows.map(|row| (row.codepoint.clone(), row.color, row.left.clone(), row.packets, row.bytes))
            .collect::<Vec<_>>()
    };
    let row = |came: &str, color, left: &str, packets: u64| {
        (came.to_owned(), Some(color), Some(left.to_owned()), packets, packets * 1000)
    };
    let expected = [
        row("DF", "green", "AF11", 4),
        row("DF", "yellow", "AF12", 3),
        row("AF11", "yellow", "AF12", 1),
        row("EF", "green", "AF11", 1),
    ];
    assert_eq!(rows(&report), expected);
    assert_eq!((report.all.colors, report.arrivals_s, report.duration_s), (Some([5, 4, 0]), 0.004, 0.004));
    let codepoints: Vec<_> =
        report.codepoints.iter().map(|row| (row.codepoint.as_str(), row.fates.arrived_packets)).collect();
    assert_eq!(codepoints, [("DF", 7), ("AF11", 1), ("EF", 1)]);
    assert_eq!((report.link, report.flow_count, report.flows.len()), (None, 1, 1));
    assert_eq!(report.flows[0].flow, "10.0.0.1:5000 > 10.0.0.2:60535 udp");
}

#[test]
fn a_policer_by_hand_and_at_half_the_speed() {
    let options = BUCKET.replace(r#""burst""#, r#""out": "drop", "burst""#);
    let times = [(0, 0), (0, 0), (0, 0), (999, 0), (1000, 0)];
    let (report, verdicts) = run(&packets(&times), &options).unwrap();
    let policed = Reason::Policed as u8;
    assert_eq!(verdicts.verdict, [FORWARDED, FORWARDED, policed, policed, FORWARDED]);
    assert_eq!((report.all.policed_packets, report.all.forwarded_packets), (Some(2), 3));
    assert_eq!(
        report.outcomes.last().map(|row| (row.color, row.reason, row.packets)),
        Some((Some("yellow"), Some("policed"), 2))
    );
    // The packet of 999 µs now comes at 1998 µs, when the bucket holds 1998 bytes; the last one finds 998 +
    // 2.
    let slow = options.replacen('{', r#"{"speed": 0.5, "#, 1);
    let (report, verdicts) = run(&packets(&times), &slow).unwrap();
    assert_eq!(verdicts.verdict, [FORWARDED, FORWARDED, policed, FORWARDED, FORWARDED]);
    assert_eq!(report.arrivals_s, 0.002);
}

#[test]
fn a_queue_by_hand() {
    // 1000 bytes take 1 ms. Two packets may wait beside the one that is being sent: the fourth of four at
    // once is dropped. The one at 1.5 ms finds one waiting, and waits until 3 ms.
    let options = r#"{"queue": {"aqm": "drop-tail", "limit": "2p"}, "rate": "8Mbps"}"#;
    let times = [(0, 0), (0, 0), (0, 0), (0, 0), (1500, 0), (10_000, 46)];
    let (report, verdicts) = run(&packets(&times), options).unwrap();
    assert_eq!(
        verdicts.verdict,
        [FORWARDED, FORWARDED, FORWARDED, Reason::Overflow as u8, FORWARDED, FORWARDED]
    );
    assert_eq!(verdicts.left_ns, [1, 2, 3, 0, 4, 11].map(|millis| millis * 1_000_000));
    let link = report.link.unwrap();
    // Five packets of 1 ms in 11 ms; they waited 0, 1, 2, 1.5 and 0 ms.
    let (used, queue) = (link.utilization.unwrap(), link.mean_queue_packets.unwrap());
    assert!((used - 5.0 / 11.0).abs() < 1e-12, "{used}");
    assert!((queue - 4.5 / 11.0).abs() < 1e-12, "{queue}");
    assert_eq!((report.arrivals_s, report.duration_s, report.all.delay_mean_s), (0.01, 0.011, Some(0.0009)));
    let queue = &report.classes[0];
    assert_eq!((queue.name.as_str(), queue.arrived_packets, queue.sent_packets), ("all", 6, 5));
    assert_eq!((queue.dropped.clone(), queue.marked.clone()), (vec![("overflow", 1)], vec![]));
    assert_eq!(queue.delay.delay_max_s, Some(0.002));
    let ef = &report.codepoints[1];
    assert_eq!(
        (ef.codepoint.as_str(), ef.fates.delay_mean_s, ef.delay.delay_max_s),
        ("EF", Some(0.0), Some(0.0))
    );
}

#[test]
fn marks_are_counted_where_the_queue_set_them() {
    // CoDel with a target of zero: the first packet does not wait, the second one begins the interval, and
    // from the third on each is notified: marked, or dropped if it is not ECN-capable.
    let options = r#"{"queue": {"aqm": "codel", "target": "0s", "interval": "1ns", "mtu": "0B", "limit": "9p", "ecn": true},
        "rate": "8Mbps"}"#;
    let frame = |ecn| Frame::new(0, udp(5000, 1000, 0, ecn));
    let file = pcapng(Order::Big, &[frame(2), frame(2), frame(1), frame(0), frame(3)]);
    let (report, verdicts) = run(&file, options).unwrap();
    let left: Vec<_> =
        verdicts.ecn_in.iter().zip(&verdicts.ecn_out).map(|(came, left)| (*came, *left)).collect();
    assert_eq!(left, [(2, 2), (2, 2), (1, 3), (0, u8::MAX), (3, 3)]);
    assert_eq!((report.all.marked_packets, report.all.dropped_packets), (Some(1), Some(1)));
    // The next time is a nanosecond after the drop: the last packet is not notified.
    assert_eq!(report.classes[0].marked, [("target", 1)]);
    assert_eq!(report.classes[0].dropped, [("target", 1)]);
}

#[test]
fn waiting_times_are_those_of_lindleys_recursion() {
    // Sizes and gaps by chance, at a load of about 0.8: what a packet waits is what the one before waited and
    // took, less the gap between them.
    let mut rng = Rng::stream(1, "arrivals");
    let (mut frames, mut at) = (Vec::new(), 0_u64);
    for _ in 0..5000 {
        at += rng.up_to(1_250_000);
        frames.push(Frame::new(at, udp(5000, 28 + rng.up_to(972) as usize, 0, 0)));
    }
    let file = pcap(Order::Big, true, 101, &frames);
    let options = r#"{"queue": {"aqm": "drop-tail", "limit": "100000p"}, "rate": "8Mbps"}"#;
    let (report, verdicts) = run(&file, options).unwrap();
    let (mut wait, mut last, mut total) = (0_u64, None::<(u64, u64)>, 0);
    let mut left = Vec::new();
    for frame in &frames {
        let (now, service) = (frame.time - frames[0].time, frame.bytes.len() as u64 * 1000);
        wait = last.map_or(0, |(then, took)| (wait + took).saturating_sub(now - then));
        left.push(now + wait + service);
        total += wait;
        last = Some((now, service));
    }
    assert_eq!(verdicts.left_ns, left);
    assert!(total > 0);
    assert_eq!(report.all.delay_mean_s, Some(total as f64 / 5000.0 / 1e9));
}

#[test]
fn a_part_of_the_time_and_of_the_packets_is_replayed() {
    let times = [(0, 0), (1000, 46), (2000, 0), (3000, 46), (4000, 0)];
    let with = |more: &str| run(&packets(&times), &BUCKET.replacen('{', &format!("{{{more}, "), 1)).unwrap();
    let (report, verdicts) = with(r#""from": "1ms", "to": "4ms""#);
    assert_eq!(
        (&verdicts.number[..], &verdicts.arrived_ns[..]),
        (&[2, 3, 4][..], &[0, 1_000_000, 2_000_000][..])
    );
    assert_eq!((report.capture.packets, report.capture.outside), (5, 2));
    let (report, verdicts) = with(r#""match": {"dscp": "EF"}"#);
    assert_eq!((&verdicts.number[..], report.capture.unmatched), (&[2, 4][..], 3));
}

#[test]
fn an_interface_is_chosen_by_its_name() {
    let order = Order::Little;
    let frame = |time, port| Frame::new(time, udp(port, 1000, 0, 0));
    let file = [
        section(order),
        interface(order, 101, &[(2, b"in")]),
        interface(order, 101, &[(2, b"out"), (9, &[6])]),
        packet(order, 0, &frame(0, 1)),
        packet(order, 1, &frame(5, 2)),
        packet(order, 0, &frame(7, 3)),
    ]
    .concat();
    let with = |name: &str| run(&file, &BUCKET.replacen('{', &format!(r#"{{"interface": "{name}", "#), 1));
    let (report, verdicts) = with("in").unwrap();
    assert_eq!((verdicts.number, report.capture.unmatched, report.notices.len()), (vec![1, 3], 1, 0));
    assert_eq!(with("out").unwrap().1.arrived_ns, [5000]);
    let problem = with("inn").unwrap_err().to_string();
    assert_eq!(problem, "has no interface `inn`; did you mean `in`? (interfaces: `in`, `out`)");
    let (report, verdicts) = run(&file, BUCKET).unwrap();
    assert_eq!(verdicts.number, [1, 2, 3]);
    assert!(report.notices[0].contains("several interfaces (`in`, `out`)"), "{:?}", report.notices);
    let named = BUCKET.replacen('{', r#"{"interface": "in", "#, 1);
    assert_eq!(refusal(&packets(&[(0, 0)]), &named), "has no interface `in` (interfaces: none has a name)");
}

#[test]
fn a_capture_with_nothing_to_replay_says_why() {
    assert_eq!(refusal(&packets(&[]), BUCKET), "has no packets");
    let options = BUCKET.replacen('{', r#"{"match": {"source": "10.9.0.0/16"}, "from": "1us", "#, 1);
    let text = refusal(&packets(&[(0, 0), (1, 0)]), &options);
    assert_eq!(text, "has no packet to replay; of those read: 1 outside the chosen time, 1 not chosen");
}

#[test]
fn times_that_go_back_are_named_by_their_packet() {
    let text = refusal(&packets(&[(5, 0), (5, 0), (2, 0)]), BUCKET);
    assert_eq!(text, "packet 3 is 3us earlier than packet 2; put packets in order: reordercap IN OUT");
}

#[test]
fn a_link_type_that_is_not_read_is_named() {
    let file = pcap(Order::Big, false, 127, &[Frame::new(0, vec![0; 40])]);
    let text = refusal(&file, BUCKET);
    assert!(
        text.starts_with("packet 1 is of link type 127, which is not read; those that are: Ethernet"),
        "{text}"
    );
}

#[test]
fn a_file_that_is_cut_off_is_replayed_only_if_that_is_wanted() {
    let file = packets(&[(0, 0), (1, 0), (2, 0)]);
    let cut = &file[..file.len() - 1];
    assert_eq!(refusal(cut, BUCKET), "is cut off after 2 whole packets; `allow-cut` replays what is whole");
    let options = BUCKET.replacen('{', r#"{"allow-cut": true, "#, 1);
    let (report, verdicts) = run(cut, &options).unwrap();
    assert!(report.capture.cut && verdicts.number == [1, 2]);
    assert_eq!(refusal(&file[..30], &options), "is cut off after its header, before any whole packet");
}

#[test]
fn a_stopped_replay_ends() {
    let watch = Watch::default();
    watch.stop();
    let plan = Request::plan(BUCKET, None).unwrap();
    let file = packets(&[(0, 0)]);
    assert_eq!(replay(&file[..], &plan, By::Simulator, false, &watch).unwrap_err(), ReplayError::Stopped);
}
