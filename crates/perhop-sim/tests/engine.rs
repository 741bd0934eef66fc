//! Whole runs: both engines, determinism, conservation, and integers that must not change unnoticed.

use crate::common::{
    RIO, aqm, check_measures, duplex, every_transport, flow, profile, rap, table1, tcp, tfrc, traced, udp,
};
use crate::media::{set_medium, some_media};
use crate::{ordinary, parameters};
use perhop_core::aqm::AqmParams;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bytes, Counters, Duration, Instant};
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::{AccessSpec, Engine, FlowOutcome, Network, NodeId, Outcome, Simulation, TransportSpec};
use proptest::prelude::*;

fn run(network: &Network, seed: u64, engine: Engine) -> Outcome {
    let mut simulation = Simulation::on_engine(network, seed, engine).unwrap();
    simulation.run_to_end();
    simulation.finish().unwrap()
}

/// Compares what both engines must agree on: everything but what it cost (and NaN with NaN).
pub(crate) fn assert_same(one: &Outcome, other: &Outcome) {
    check_measures(one);
    assert_eq!(one.flows, other.flows);
    assert_eq!(one.populations, other.populations);
    assert_eq!(one.applications, other.applications);
    assert_eq!((&one.links, one.hops), (&other.links, other.hops));
    assert_eq!(format!("{:?}", one.series), format!("{:?}", other.series));
}

const QUEUES: &[(&str, &str)] = &[
    ("drop-tail", r#"{"limit": "300p"}"#),
    ("drop-tail", r#"{"limit": "100kB"}"#),
    ("red", r#"{"thresholds": "100/300/0.05", "limit": "868p", "gentle": true}"#),
    ("red", r#"{"thresholds": "1/3/0.1", "limit": "868p", "weight": 0.05, "spare-short-queue": true}"#),
    ("red", r#"{"thresholds": "60kB/180kB/0.05", "limit": "500kB", "wait": false, "mean-packet": "576B"}"#),
    ("rio", RIO),
    (
        "rio",
        r#"{"in": "390/694/0.02", "total": "10/30/0.05", "limit": "868p", "coupling": "decoupled", "averages": "own-class"}"#,
    ),
    (
        "rio-plus-out",
        r#"{"in": "390/694/0.02", "total": "347/694/0.05", "out": "10/30/0.01", "limit": "868p"}"#,
    ),
];

/// Any registered AQM or scheduler that can be batched, by the rows of test parameters.
pub(crate) fn any_queue() -> impl Strategy<Value = SchedulerParams> {
    let read = |tag: &str, (name, table): (&str, &str)| {
        let mut table: serde_json::Value = serde_json::from_str(table).unwrap();
        table[tag] = ordinary::block(name).into();
        table
    };
    let aqms = parameters::AQMS.iter().chain(ordinary::AQMS);
    let aqms = aqms.map(move |&row| serde_json::from_value::<AqmParams>(read("aqm", row)).unwrap().into());
    let schedulers = parameters::SCHEDULERS.iter();
    let schedulers = schedulers.map(move |&row| serde_json::from_value(read("scheduler", row)).unwrap());
    let can_be_batched = |queue: &SchedulerParams| {
        queue.batched() && queue.aqms(None).into_iter().all(|(_, aqm)| aqm.batched())
    };
    prop::sample::select(aqms.chain(schedulers).filter(can_be_batched).collect::<Vec<SchedulerParams>>())
}

#[test]
fn both_engines_agree_on_every_aqm() {
    for (name, table) in QUEUES {
        let network = table1(aqm(name, table), 20);
        assert_same(&run(&network, 3, Engine::Batched), &run(&network, 3, Engine::Reference));
    }
}

#[test]
fn every_transport_runs_alike_on_both_engines_and_in_slices() {
    let narrow = [
        ("drop-tail", r#"{"limit": "25p"}"#),
        ("red", r#"{"thresholds": "5/20/0.1", "limit": "40p", "weight": 0.02}"#),
    ];
    for (name, table) in narrow {
        let network = every_transport(aqm(name, table), 40);
        let whole = run(&network, 3, Engine::Batched);
        assert_same(&whole, &run(&network, 3, Engine::Reference));
        let mut sliced = Simulation::new(&network, 3).unwrap();
        for slice in 1..=1000 {
            sliced.run_until(Instant::from_nanos(slice * 40_000_000));
        }
        assert_same(&whole, &sliced.finish().unwrap());
        let mut unseen = network.clone();
        unseen.probe_interval = None;
        assert_eq!(whole.flows, run(&unseen, 3, Engine::Batched).flows);
        // Nothing was idle: data and answers were dropped, and every source got through and measured.
        assert!(whole.links.iter().all(|link| link.counters.drops().count() > 0));
        assert!(whole.flows.iter().all(|flow| flow.throughput_bps > 0.0));
        for flow in whole.flows.iter().skip(3).step_by(5).chain(whole.flows.iter().skip(4).step_by(5)) {
            assert!(flow.sender.loss_events > 0 && flow.sender.rtt_samples.0 > 0, "{:?}", flow.sender);
        }
    }
}

#[test]
fn flows_take_turns_in_a_window_as_event_by_event() {
    // The look-ahead is 48 ms, so each paced flow sends several packets in a window, and is sampled, stopped
    // and informed of OUT packets within it.
    let transports = [
        tcp(r#"{"tcp": "newreno", "packet": "576B", "pacing": "window"}"#),
        tcp(r#"{"tcp": "linux", "packet": "576B", "pacing": "window"}"#),
        tcp(r#"{"tcp": "linux", "congestion": "prague", "packet": "576B"}"#),
        tcp(r#"{"tcp": "linux", "congestion": "bbr", "packet": "576B"}"#),
        tcp(r#"{"tcp": "quic", "packet": "576B"}"#),
        tcp(r#"{"tcp": "newreno", "packet": "576B", "send-jitter": "5ms"}"#),
        rap(r#"{"rap": "aimd", "packet": "576B"}"#),
        tfrc(r#"{"tfrc": "rfc5348", "packet": "576B"}"#),
        udp(r#"{"udp": "on-off", "rate": "2Mbps", "packet": "576B", "on": "30ms", "off": "70ms"}"#),
    ];
    let rule = r#"{"thresholds": "50/200/0.05", "limit": "868p", "ecn": true}"#;
    let mut network = table1(aqm("red", rule), 12);
    network.warmup = Duration::from_millis(3_013);
    network.probe_interval = Some(Duration::from_millis(17));
    for (number, flow) in network.flows.iter_mut().enumerate() {
        flow.transport = transports[number % transports.len()].clone();
        flow.tcp_ecn = if number % transports.len() == 2 { TcpEcn::Accurate } else { TcpEcn::Off };
        flow.stop = (number % 3 == 0).then(|| Instant::from_nanos(6_000_000_000 + number as u64 * 7_654_321));
        flow.out_feedback =
            (number < 20 && number % 4 == 1).then(|| Duration::from_millis(number as u64 % 3 * 11));
    }
    assert_same(&run(&network, 5, Engine::Batched), &run(&network, 5, Engine::Reference));
}

#[test]
fn table1_in_integers() {
    // A snapshot: the same on every machine. A change here is a change of behaviour and needs its reason in
    // the commit.
    let outcome = run(&table1(aqm("rio", RIO), 20), 1, Engine::Batched);
    let link = &outcome.links[0];
    let delivered: u64 = outcome.flows.iter().map(|flow| flow.delivered_packets).sum();
    let retransmitted: u64 = outcome.flows.iter().map(|flow| flow.sender.retransmitted).sum();
    let timeouts: u64 = outcome.flows.iter().map(|flow| flow.sender.timeouts).sum();
    assert_eq!(
        (link.counters.arrived, link.counters.sent, link.waiting, delivered, retransmitted, timeouts),
        SNAPSHOT
    );
}

type Snapshot = ([u64; 3], [u64; 3], [u64; 3], u64, u64, u64);
const SNAPSHOT: Snapshot = ([49645, 37421, 0], [49308, 35303, 0], [337, 170, 0], 83262, 3075, 64);

#[test]
fn what_flows_and_links_measure_begins_after_the_warm_up() {
    let network = |warmup, seconds| Network {
        warmup: Duration::from_secs(warmup),
        duration: Duration::from_secs(seconds),
        ..every_transport(aqm("drop-tail", r#"{"limit": "25p"}"#), 40)
    };
    for engine in [Engine::Batched, Engine::Reference] {
        let [before, after, whole] =
            [(0, 10), (10, 40), (0, 40)].map(|(warmup, seconds)| run(&network(warmup, seconds), 3, engine));
        let counts = |flow: &FlowOutcome| {
            let sender = &flow.sender;
            let (samples, sum) = sender.rtt_samples;
            let of_sender = [
                sender.sent,
                sender.retransmitted,
                sender.timeouts,
                sender.fast_retransmits,
                sender.loss_events,
            ];
            let of_packets = [flow.delivered_packets, flow.delivered_bytes, samples, sum as u64];
            [&of_sender[..], &of_packets, &flow.marked, &flow.dropped].concat()
        };
        let mut seen = vec![0; counts(&whole.flows[0]).len()];
        for (number, flow) in whole.flows.iter().enumerate() {
            let (before, after) = (counts(&before.flows[number]), counts(&after.flows[number]));
            let both: Vec<u64> = before.iter().zip(&after).map(|(before, after)| before + after).collect();
            assert_eq!(both, counts(flow), "flow {number}");
            seen.iter_mut().zip(before).for_each(|(seen, before)| *seen += before);
        }
        // Each kind of count left something out; red is what no meter here marks.
        let idle: Vec<usize> = (0..seen.len()).filter(|&kind| seen[kind] == 0).collect();
        assert_eq!(idle, [11, 14]);
        let [before, after, whole] = [before, after, whole].map(|outcome| outcome.links[0].clone());
        assert_eq!(after.counters, whole.counters, "the whole run, for conservation");
        assert_eq!(after.measured, whole.counters.since(&before.counters));
        assert_eq!(whole.measured, whole.counters);
        let drops = |counters: &Counters| counters.drops().count();
        assert!(drops(&before.counters) > 0 && drops(&after.measured) > 0);
    }
}

#[test]
fn another_seed_is_another_run_and_the_same_seed_the_same() {
    let network = table1(aqm("rio", RIO), 5);
    let one = run(&network, 1, Engine::Batched);
    assert_same(&one, &run(&network, 1, Engine::Batched));
    assert_ne!(one.flows, run(&network, 2, Engine::Batched).flows);
}

#[test]
fn a_run_in_slices_is_the_same_run() {
    let network = table1(aqm("rio", RIO), 5);
    let whole = run(&network, 1, Engine::Batched);
    let mut sliced = Simulation::new(&network, 1).unwrap();
    for slice in 1..=50 {
        sliced.run_until(Instant::from_nanos(slice * 100_000_000));
    }
    assert_same(&whole, &sliced.finish().unwrap());
}

#[test]
fn a_flow_more_changes_no_other_flows_luck() {
    // Far below the link's rate nothing meets anything: each flow's start and packets are its own.
    let cbr = TransportSpec::Udp(serde_json::from_str(r#"{"udp": "cbr", "rate": "1Mbps"}"#).unwrap());
    let mut network = table1(aqm("drop-tail", r#"{"limit": "100p"}"#), 5);
    network.flows = vec![flow("a".into(), 0, 1, cbr.clone(), None)];
    let alone = run(&network, 1, Engine::Batched);
    network.flows.insert(0, flow("b".into(), 0, 1, cbr, None));
    let together = run(&network, 1, Engine::Batched);
    assert_eq!(alone.flows[0].started, together.flows[1].started);
    assert_eq!(alone.flows[0].sender.sent, together.flows[1].sender.sent);
}

#[test]
fn one_window_limited_flow_by_hand() {
    // 10 packets of 1000 bytes a round trip of 100 ms plus serialization: 2 x 0.8 ms access, 0.4 ms
    // bottleneck, and 40-byte ACKs 2 x 0.032 + 0.016 ms. Throughput = 10 x 8000 bit / 102.08 ms = 783.7
    // kbit/s.
    let transport = tcp(r#"{"tcp": "reno", "window": "10p", "initial-window": "10p"}"#);
    let mut flow = flow("only".into(), 0, 1, transport, None);
    flow.start = (Instant::ZERO, Instant::ZERO);
    let network = Network {
        nodes: 2,
        links: duplex("bottleneck", 0, 1, "20Mbps", "48ms", aqm("drop-tail", r#"{"limit": "100p"}"#)).into(),
        flows: vec![flow],
        ..Network::new(Duration::from_secs(1000))
    };
    let outcome = run(&network, 1, Engine::Batched);
    let flow = &outcome.flows[0];
    assert_eq!((flow.sender.retransmitted, flow.dropped), (0, [0; 3]));
    assert!((flow.throughput_bps / 783_700.0 - 1.0).abs() < 1e-3, "{}", flow.throughput_bps);
    // The ten come back to back: the last waits behind nine at the access link, once.
    assert_eq!(flow.mean_timed_rtt(), Some(Duration::from_nanos(102_080_000)));
    // Of the first ten the nth waits n x 0.8 ms there, and no other packet of some 97 950: 36 ms in all, 367
    // ns each.
    let mean = flow.mean_rtt().unwrap().as_nanos();
    assert!(mean.abs_diff(102_080_367) < 10, "{mean}");
}

#[test]
fn a_volume_is_delivered_whole_and_a_stop_is_kept() {
    let transport = tcp(r#"{"tcp": "newreno"}"#);
    let mut finite = flow("finite".into(), 0, 1, transport.clone(), None);
    finite.volume = Some("1MB".parse().unwrap());
    let mut timed = flow("timed".into(), 0, 1, transport, None);
    timed.stop = Some(Instant::from_nanos(5_000_000_000));
    let mut network = table1(aqm("drop-tail", r#"{"limit": "20p"}"#), 60);
    network.flows = vec![finite, timed];
    let outcome = run(&network, 1, Engine::Batched);
    assert_eq!(outcome.flows[0].delivered_bytes, 1_000_000);
    let rows = outcome.series.times.len();
    let timed: Vec<f64> = (0..rows).map(|row| outcome.series.throughput_bps[row * 2 + 1]).collect();
    assert!(timed[3] > 0.0 && timed[10..].iter().all(|&bps| bps == 0.0));
}

#[test]
fn a_transmission_cut_off_by_the_end_counts_as_far_as_it_got() {
    // 1000 bytes at 1 kbit/s take 8 s; the run ends 1 s after the first packet's start.
    let cbr = TransportSpec::Udp(serde_json::from_str(r#"{"udp": "cbr", "rate": "1Mbps"}"#).unwrap());
    let mut flow = flow("only".into(), 0, 1, cbr, None);
    (flow.access, flow.egress, flow.start) = (None, None, (Instant::ZERO, Instant::ZERO));
    let network = Network {
        nodes: 2,
        links: duplex("bottleneck", 0, 1, "1kbps", "1ms", aqm("drop-tail", r#"{"limit": "9p"}"#)).into(),
        flows: vec![flow],
        ..Network::new(Duration::from_secs(1))
    };
    let outcome = run(&network, 1, Engine::Batched);
    assert!((outcome.links[0].utilization - 1.0).abs() < 1e-9);
    // Without a warm-up, what is sent at time zero counts.
    assert_eq!(outcome.flows[0].sender.sent, outcome.links[0].counters.arrived.iter().sum::<u64>());
}

#[test]
fn a_flows_drops_are_of_its_data_alone() {
    let mut network = table1(aqm("rio", RIO), 20);
    network.links[1].rate = "200kbps".parse().unwrap();
    network.links[1].queue = Some(aqm("drop-tail", r#"{"limit": "3p"}"#).into());
    let outcome = run(&network, 1, Engine::Batched);
    let dropped = |link: usize| {
        outcome.links[link].counters.drops().map(|(_, packets)| packets.iter().sum::<u64>()).sum::<u64>()
    };
    assert!(dropped(1) > 1000, "acknowledgements are dropped, too");
    let of_flows: u64 = outcome.flows.iter().flat_map(|flow| flow.dropped).sum();
    assert_eq!(of_flows, dropped(0));
}

#[test]
fn an_unreachable_receiver_is_refused() {
    let mut network = table1(aqm("rio", RIO), 1);
    network.nodes = 3;
    network.flows[7].to = NodeId(2);
    let refused = Simulation::new(&network, 1).unwrap_err();
    assert_eq!((refused.flow, refused.to), (7, NodeId(2)));
}

#[test]
fn every_period_dependent_choice_changes_the_run() {
    let common = r#""tcp": "newreno", "packet": "576B""#;
    let run_with = |extra: &str| {
        let mut network = table1(aqm("rio", RIO), 30);
        network.flows.iter_mut().for_each(|flow| flow.transport = tcp(&format!("{{{common}{extra}}}")));
        run(&network, 1, Engine::Batched)
    };
    let base = run_with("");
    for extra in [
        r#","packet":"1000B""#.replace("packet", "ack").as_str(),
        r#","window":"20p""#,
        r#","initial-window":"4p""#,
        r#","initial-ssthresh":"8p""#,
        r#","tick":"100ms""#,
        r#","min-rto":"1s""#,
        r#","delayed-ack":"100ms""#,
        r#","handshake":true"#,
        r#","limited-transmit":true"#,
        r#","send-jitter":"1ms""#,
    ] {
        assert_ne!(run_with(extra).flows, base.flows, "{extra}");
    }
    // These two show only where the first round trip is slow or losses persist.
    let mut network = table1(aqm("drop-tail", r#"{"limit": "2p"}"#), 60);
    let run_slow = |network: &mut Network, extra: &str| {
        network.flows.iter_mut().for_each(|flow| flow.transport = tcp(&format!("{{{common}{extra}}}")));
        run(network, 1, Engine::Batched).flows
    };
    let base = run_slow(&mut network, "");
    assert_ne!(run_slow(&mut network, r#","initial-rto":"250ms""#), base);
    assert_ne!(run_slow(&mut network, r#","max-rto":"500ms""#), base);
}

#[test]
fn a_return_path_has_no_fixed_delay_while_connections_still_open() {
    // An acknowledgement takes as long on the way back as a packet on the way there, and twelve openings come
    // all at once.
    let transport = tcp(r#"{"tcp": "reno", "packet": "1000B", "ack": "40B", "handshake": true}"#);
    let flows = (0..12).map(|n| {
        let mut flow = flow(format!("{n}"), 0, 1, transport.clone(), None);
        flow.start = (Instant::ZERO, Instant::ZERO);
        flow
    });
    let mut links = duplex("bottleneck", 0, 1, "500kbps", "1ms", aqm("drop-tail", r#"{"limit": "50p"}"#));
    links[1].rate = "20kbps".parse().unwrap();
    let network = Network {
        nodes: 2,
        links: links.into(),
        flows: flows.collect(),
        probe_interval: Some(Duration::from_millis(50)),
        ..Network::new(Duration::from_secs(60))
    };
    assert_same(&run(&network, 1, Engine::Batched), &run(&network, 1, Engine::Reference));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any flows over one bottleneck and back: the batched engine does nearly all of it in one go, if hosts
    /// are alike and their links fast, and packets come to links nearly in order.
    #[test]
    fn bottlenecks_agree(
        seed: u64,
        count in 1_usize..12,
        queue in any_queue(),
        (kind, other) in (0_usize..9, 0_usize..9),
        egress in prop_oneof![Just(None), Just(Some("8Mbps")), Just(Some("100Mbps"))],
        (odd_delay, news, marked, at_once) in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        (rate_kbps, back_kbps) in (500_u64..9000, prop_oneof![Just(None), (50_u64..2000).prop_map(Some)]),
        (delay, media) in (prop_oneof![Just("0ms"), Just("1ms"), Just("11ms")], prop_oneof![2 => Just(None), 1 => some_media(2).prop_map(Some)]),
    ) {
        let transports = [
            tcp(r#"{"tcp": "newreno"}"#),
            tcp(r#"{"tcp": "reno", "handshake": true, "initial-rto": "200ms", "min-rto": "50ms", "tick": "1ms"}"#),
            tcp(r#"{"tcp": "newreno", "limited-transmit": true, "min-rto": "60ms", "tick": "1ms"}"#),
            tcp(r#"{"tcp": "newreno", "sack": true, "congestion": "cubic"}"#),
            tcp(r#"{"tcp": "linux"}"#),
            tcp(r#"{"tcp": "quic"}"#),
            tcp(r#"{"tcp": "two-windows", "send-jitter": "2ms"}"#),
            rap(r#"{"rap": "aimd"}"#),
            udp(r#"{"udp": "on-off", "rate": "800kbps", "on": "300ms", "off": "500ms"}"#),
        ];
        let flows = (0..count).map(|n| {
            let transport = transports[if n % 3 == 2 { other } else { kind }].clone();
            let mut flow = flow(format!("{n}"), 0, 1, transport, (marked && n % 2 == 0).then(|| profile("0.3Mbps")));
            flow.egress = egress.map(|rate| AccessSpec { rate: rate.parse().unwrap(), ..flow.egress.unwrap() });
            if odd_delay && n % 4 == 3 {
                flow.egress.iter_mut().for_each(|access| access.delay = Duration::from_millis(9));
            }
            if at_once {
                flow.start = (Instant::ZERO, Instant::ZERO);
            }
            flow.out_feedback = (news && n % 2 == 0).then_some(Duration::from_millis(3));
            flow.volume = (n % 5 == 1).then_some(Bytes::new(300_000));
            flow.stop = (n % 5 == 3).then_some(Instant::from_nanos(3_000_000_000));
            flow
        });
        let mut links = duplex("bottleneck", 0, 1, &format!("{rate_kbps}kbps"), delay, queue);
        if let Some(rate) = back_kbps {
            links[1].rate = format!("{rate}kbps").parse().unwrap();
        }
        for (link, medium) in links.iter_mut().zip(media.into_iter().flatten()) {
            set_medium(link, medium);
        }
        let network = Network {
            nodes: 2,
            links: links.into(),
            flows: flows.collect(),
            probe_interval: Some(Duration::from_millis(170)),
            warmup: Duration::from_secs(1),
            ..Network::new(Duration::from_secs(7))
        };
        assert_same(&run(&network, seed, Engine::Batched), &run(&network, seed, Engine::Reference));
    }

    /// Any chain of links with any queues: packets conserved at each, both engines alike, no flow above its
    /// path.
    #[test]
    fn chains_conserve_and_agree(
        seed: u64,
        hops in 1_u32..4,
        flows in 1_u32..6,
        queue in any_queue(),
        rate_kbps in 100_u64..5000,
        kind in 0_usize..6,
    ) {
        let rate = format!("{rate_kbps}kbps");
        let links = (0..hops)
            .flat_map(|n| duplex(&format!("l{n}"), n, n + 1, &rate, "5ms", queue.clone()))
            .collect();
        let transports = [
            tcp(r#"{"tcp": "newreno", "window": "50p"}"#),
            udp(r#"{"udp": "cbr", "rate": "200kbps"}"#),
            udp(r#"{"udp": "on-off", "rate": "800kbps", "on": "300ms", "off": "500ms"}"#),
            rap(r#"{"rap": "aimd"}"#),
            tfrc(r#"{"tfrc": "rfc5348"}"#),
            // Bursts of three, of any size and codepoint, in and out of Assured Forwarding.
            traced((0..2400).map(|n: u64| (n / 3 * 11, (n * 97 % 1461 + 40) as u16, Some((n % 64) as u8)))),
        ];
        let transport = |n: u32| transports[(kind + n as usize) % transports.len()].clone();
        let flows = (0..flows).map(|n| flow(format!("{n}"), n % hops, hops, transport(n), None)).collect();
        let network = Network {
            nodes: hops + 1,
            links,
            flows,
            probe_interval: Some(Duration::from_millis(700)),
            warmup: Duration::from_secs(2),
            ..Network::new(Duration::from_secs(8))
        };
        let outcome = run(&network, seed, Engine::Batched);
        assert_same(&outcome, &run(&network, seed, Engine::Reference));
        for flow in &outcome.flows {
            prop_assert!(flow.throughput_bps <= rate_kbps as f64 * 1e3 * 1.02 + 8000.0);
        }
        let whole = run(&Network { warmup: Duration::ZERO, ..network }, seed, Engine::Batched);
        for (flow, measured) in whole.flows.iter().zip(&outcome.flows) {
            prop_assert!(flow.delivered_packets <= flow.sender.sent);
            prop_assert!(measured.sender.sent <= flow.sender.sent, "the warm-up is left out");
        }
        for link in &outcome.links {
            prop_assert!(link.utilization <= 1.0 + 1e-9, "{}", link.utilization);
        }
    }
}
