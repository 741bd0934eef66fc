//! Whole runs of the sources that adapt a rate: what they get beside TCP, and measures worked out by hand.

use crate::common::{aqm, duplex, flow, rap, tcp, tfrc, udp};
use perhop_core::aqm::AqmParams;
use perhop_core::{Duration, Instant};
use perhop_sim::{AccessSpec, Network, Outcome, Simulation, TransportSpec};

fn run(network: &Network, seed: u64) -> Outcome {
    let mut simulation = Simulation::new(network, seed).unwrap();
    simulation.run_to_end();
    simulation.finish().unwrap()
}

/// The setting of Hurley & Le Boudec's experiments, all packets alike: so many flows of each transport on 5
/// Mbit/s.
fn share(queue: AqmParams, transports: &[(u32, TransportSpec)], seconds: u64) -> Network {
    let access = AccessSpec { rate: "100Mbps".parse().unwrap(), delay: Duration::from_millis(1) };
    let flows = transports.iter().enumerate().flat_map(|(group, (count, transport))| {
        let access = &access;
        (0..*count).map(move |member| {
            let mut flow = flow(format!("{group}/{member}"), 0, 1, transport.clone(), None);
            flow.access = Some(access.clone());
            flow.egress = Some(access.clone());
            flow
        })
    });
    Network {
        nodes: 2,
        links: duplex("bottleneck", 0, 1, "5Mbps", "20ms", queue).into(),
        flows: flows.collect(),
        warmup: Duration::from_secs(seconds / 5),
        ..Network::new(Duration::from_secs(seconds))
    }
}

fn red() -> AqmParams {
    aqm("red", r#"{"thresholds": "0/40/0.2", "limit": "60p", "weight": 0.02}"#)
}

/// Mean throughput in bit/s of one flow of each group over four seeds.
fn means(network: &Network, groups: &[usize]) -> Vec<f64> {
    let runs: Vec<Outcome> = (1..=4).map(|seed| run(network, seed)).collect();
    let mut first = 0;
    let mean = |&count: &usize| {
        let members = first..first + count;
        first += count;
        let sum: f64 =
            runs.iter().flat_map(|run| &run.flows[members.clone()]).map(|f| f.throughput_bps).sum();
        sum / (runs.len() * count) as f64
    };
    groups.iter().map(mean).collect()
}

#[test]
fn one_rap_and_one_tcp_share_a_red_link_within_a_quarter() {
    let network = share(red(), &[(1, tcp(r#"{"tcp": "reno"}"#)), (1, rap(r#"{"rap": "aimd"}"#))], 200);
    let got = means(&network, &[1, 1]);
    let ratio = got[1] / got[0];
    assert!(ratio > 0.8 && ratio < 1.25, "{got:?}");
    assert!(got[0] + got[1] > 0.9 * 5e6, "{got:?}");
}

#[test]
fn where_tcp_lives_by_timeouts_rap_takes_two_to_three_times_as_much() {
    let network = share(red(), &[(10, tcp(r#"{"tcp": "reno"}"#)), (10, rap(r#"{"rap": "aimd"}"#))], 200);
    let got = means(&network, &[10, 10]);
    let ratio = got[1] / got[0];
    assert!(ratio > 2.0 && ratio < 3.0, "{got:?}");
}

#[test]
fn tfrc_and_tcp_share_a_red_link_within_a_quarter_few_or_many() {
    for flows in [1, 5, 10] {
        let transports = [(flows, tcp(r#"{"tcp": "reno"}"#)), (flows, tfrc(r#"{"tfrc": "rfc5348"}"#))];
        let got = means(&share(red(), &transports, 200), &[flows as usize, flows as usize]);
        let ratio = got[1] / got[0];
        assert!(ratio > 0.8 && ratio < 1.25, "{flows}: {got:?}");
    }
}

#[test]
fn alone_both_fill_a_drop_tail_link() {
    let tail = || aqm("drop-tail", r#"{"limit": "60p"}"#);
    for (transport, least) in [(rap(r#"{"rap": "aimd"}"#), 0.9), (tfrc(r#"{"tfrc": "rfc5348"}"#), 0.99)] {
        let outcome = run(&share(tail(), &[(1, transport)], 100), 1);
        assert!(outcome.links[0].utilization > least, "{}", outcome.links[0].utilization);
        let flow = &outcome.flows[0];
        // 22 ms each way, and up to 60 packets of 1.6 ms.
        let rtt = flow.mean_rtt().unwrap().as_secs_f64();
        assert!(rtt > 0.045 && rtt < 0.145, "{rtt}");
        // What neither came nor was dropped is in transit, at the end or when the warm-up ends: in the queue
        // or on the path.
        let on_its_way = flow.sender.sent.abs_diff(flow.delivered_packets + flow.dropped[1]);
        assert!(on_its_way <= 60 + 40, "{on_its_way}");
    }
}

#[test]
fn a_volume_is_sent_once_and_a_stop_is_kept() {
    for transport in [rap(r#"{"rap": "aimd"}"#), tfrc(r#"{"tfrc": "rfc5348"}"#)] {
        let mut network = share(red(), &[(2, transport)], 30);
        network.flows[0].volume = Some("100kB".parse().unwrap());
        network.flows[1].stop = Some(Instant::from_nanos(6_000_000_000));
        network.warmup = Duration::ZERO;
        let flows = run(&network, 1).flows;
        assert_eq!((flows[0].sender.sent, flows[0].sender.retransmitted), (100, 0));
        assert_eq!(flows[0].delivered_packets + flows[0].dropped[1], 100);
        assert!(flows[1].sender.sent > 0);
        network.warmup = Duration::from_secs(8);
        let flows = run(&network, 1).flows;
        assert_eq!((flows[0].sender.sent, flows[1].sender.sent), (0, 0));
        assert_eq!((flows[1].throughput_bps, flows[1].jitter_s, flows[1].mean_transit_s), (0.0, None, None));
    }
}

#[test]
fn transit_and_jitter_of_a_slow_source_among_bursts_by_hand() {
    // A packet each 100 ms: 8 ms at 1 Mbit/s and 10 ms of propagation. Hosts sit at the routers.
    let cbr = |rate: &str, packet: &str| {
        udp(&format!(r#"{{"udp": "cbr", "rate": "{rate}", "packet": "{packet}", "jitter": 0.0}}"#))
    };
    let at = |millis: u64| (Instant::from_nanos(millis * 1_000_000), Instant::from_nanos(millis * 1_000_000));
    let mut slow = flow("slow".into(), 0, 1, cbr("80kbps", "1000B"), None);
    (slow.access, slow.egress, slow.start) = (None, None, at(0));
    let mut network = Network {
        nodes: 2,
        links: duplex("link", 0, 1, "1Mbps", "10ms", aqm("drop-tail", r#"{"limit": "9p"}"#)).into(),
        flows: vec![slow.clone()],
        ..Network::new(Duration::from_secs(1))
    };
    let alone = &run(&network, 1).flows[0];
    assert_eq!(alone.jitter_s, Some(0.0));
    assert!((alone.mean_transit_s.unwrap() - 0.018).abs() < 1e-12);
    // A burst of one packet, 6 ms before each second packet, takes 16 ms: it waits 10 ms.
    let mut burst = flow("burst".into(), 0, 1, cbr("80kbps", "2000B"), None);
    (burst.access, burst.egress, burst.start) = (None, None, at(94));
    network.flows.push(burst);
    let among = &run(&network, 1).flows[0];
    // Ten transits, 18 and 28 ms in turn: every |D| is 10 ms, and J = 10 (1 - (15/16)^n) after the n-th. The
    // mean over n of 1 to 9 is 10 (1 - 15 (1 - (15/16)^9) / 9) = 2.657_075 ms.
    let mean_j =
        (1..=9).map(|n| 10e-3 * (1.0 - (0..n).map(|_| 15.0 / 16.0).product::<f64>())).sum::<f64>() / 9.0;
    assert!((mean_j - 2.657_075e-3).abs() < 1e-9, "{mean_j}");
    assert!((among.jitter_s.unwrap() - mean_j).abs() < 1e-12, "{:?}", among.jitter_s);
    assert!((among.mean_transit_s.unwrap() - 0.023).abs() < 1e-12, "{:?}", among.mean_transit_s);
    let tcp_flow = &run(&share(red(), &[(1, tcp(r#"{"tcp": "reno"}"#))], 5), 1).flows[0];
    assert_eq!((tcp_flow.jitter_s, tcp_flow.mean_transit_s), (None, None));
}
