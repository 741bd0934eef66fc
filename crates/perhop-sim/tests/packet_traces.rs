//! Flows that send the packets of a trace.

use perhop_core::{Color, Duration, Instant};
use perhop_sim::{Engine, Network};

use crate::common::{aqm, duplex, flow, meter, run, run_alike, scheduler, tcp, traced, udp};

/// One flow that sends these packets over 8 Mbit/s, where a byte takes a microsecond, from hosts at the
/// routers.
fn alone(packets: &[(u64, u16, Option<u8>)]) -> Network {
    let mut replayed = flow("replayed".into(), 0, 1, traced(packets.iter().copied()), None);
    (replayed.access, replayed.egress) = (None, None);
    replayed.start = (Instant::ZERO, Instant::ZERO);
    Network {
        nodes: 2,
        links: duplex("link", 0, 1, "8Mbps", "0ms", aqm("drop-tail", r#"{"limit": "3p"}"#)).into(),
        flows: vec![replayed],
        probe_interval: Some(Duration::from_millis(100)),
        ..Network::new(Duration::from_secs(1))
    }
}

#[test]
fn packets_come_as_they_came() {
    let outcome = run_alike(&alone(&[(0, 1000, None), (0, 500, None), (300, 40, None), (2000, 40, None)]));
    let replayed = &outcome.flows[0];
    assert_eq!((replayed.sender.sent, replayed.delivered_packets), (3, 3), "the last comes after the run");
    assert_eq!(replayed.delivered_bytes, 1540);
    // 1000 us, 1000 + 500 us, 40 us
    let mean = replayed.mean_transit_s.unwrap();
    assert!((mean - 2540e-6 / 3.0).abs() < 1e-12, "{mean}");
    let series = &outcome.series.throughput_bps;
    assert!((series[0] - 15_000.0 * 8.0).abs() < 1e-6, "1500 bytes in 100 ms: {series:?}");
    assert!((series[3] - 400.0 * 8.0).abs() < 1e-6, "40 bytes in the fourth 100 ms: {series:?}");
}

#[test]
fn a_queue_drops_them_and_nothing_answers() {
    // The first is sent while three wait.
    let outcome = run_alike(&alone(&[(0, 1500, None); 6]));
    let replayed = &outcome.flows[0];
    assert_eq!((replayed.sender.sent, replayed.delivered_packets), (6, 4));
    assert_eq!(replayed.dropped.iter().sum::<u64>(), 2);
}

#[test]
fn queues_see_the_codepoints_of_packets() {
    let drr = r#"{"scheduler": "drr", "queues": [
        {"name": "voice", "match": {"dscp": "EF"}, "rule": {"aqm": "drop-tail", "limit": "9p"}},
        {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "9p"}}]}"#;
    let mut network = alone(&[(0, 100, Some(46)), (10, 100, None), (20, 100, Some(46)), (30, 100, Some(0))]);
    network.links[0].queue = Some(scheduler(drr));
    let outcome = run_alike(&network);
    let sent: Vec<u64> =
        outcome.links[0].classes.iter().map(|class| class.measured.sent.iter().sum()).collect();
    assert_eq!(sent, [2, 2]);
}

#[test]
fn codepoints_of_assured_forwarding_are_colors() {
    // AF11, AF12, AF13, and the flow's own color.
    let mut network =
        alone(&[(0, 100, Some(10)), (9, 100, Some(12)), (18, 100, Some(14)), (27, 100, Some(46))]);
    network.flows[0].color = Color::Green;
    let outcome = run_alike(&network);
    assert_eq!(outcome.flows[0].marked, [2, 1, 1]);
    // A meter gives colors of its own.
    let profile = meter("token-bucket", r#"{"rate": "1Mbps", "burst": "40kB"}"#);
    network.flows[0].marking = perhop_sim::Marking::Host(profile);
    assert_eq!(run_alike(&network).flows[0].marked, [4, 0, 0]);
}

#[test]
fn a_trace_shares_a_link_with_tcp() {
    let burst = |second: u64| (0..200).map(move |n| (second * 1000 + n, 1500, None));
    let network = |replays: bool| {
        let mut flows = vec![flow("tcp".into(), 0, 1, tcp(r#"{"tcp": "newreno", "packet": "1500B"}"#), None)];
        if replays {
            flows.push(flow("replayed".into(), 0, 1, traced((0..10).flat_map(burst)), None));
        } else {
            flows.push(flow("slow".into(), 0, 1, udp(r#"{"udp": "cbr", "rate": "10kbps"}"#), None));
        }
        let queue = aqm("red", r#"{"thresholds": "10/30/0.1", "limit": "60p"}"#);
        Network {
            nodes: 2,
            links: duplex("link", 0, 1, "8Mbps", "10ms", queue).into(),
            flows,
            warmup: Duration::from_secs(2),
            ..Network::new(Duration::from_secs(10))
        }
    };
    let [with, without] = [true, false].map(|replays| run_alike(&network(replays)));
    // 2.4 Mbit/s on average, in bursts that the access link of 10 Mbit/s lets through at its rate.
    let [tcp, replayed] = [&with.flows[0], &with.flows[1]];
    assert!((1.9e6..2.5e6).contains(&replayed.throughput_bps), "{}", replayed.throughput_bps);
    assert!(tcp.throughput_bps < without.flows[0].throughput_bps - 1.5e6, "{}", tcp.throughput_bps);
    let reference = run(&network(true), Engine::Reference);
    assert_eq!(reference.flows[1].sender.sent, replayed.sender.sent);
}
