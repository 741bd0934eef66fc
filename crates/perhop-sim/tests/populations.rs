//! Populations of finite flows that come and go.

use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bytes, Duration, Instant};
use perhop_sim::workload::{Arrivals, Listed, Sizes};
use perhop_sim::{
    Completion, Engine, Failure, FlowRecord, FlowSpec, Network, NodeId, OneThread, Outcome,
    PopulationOutcome, Simulation, TransportSpec, Watch, Workload,
};
use proptest::prelude::*;

use crate::common::{aqm, chain, duplex, flow, profile, rap, scheduler, tcp, tfrc, udp};
use crate::engine::{any_queue, assert_same};

const TCP_HEADERS: u16 = 40;
const UDP_HEADERS: u16 = 28;

/// Runs on both engines, which must agree.
fn run(network: &Network, seed: u64) -> Outcome {
    let [batched, reference] =
        Engine::ALL.map(|engine| Simulation::run(network, seed, Some(engine), &Watch::default()).unwrap());
    assert_same(&batched, &reference);
    batched
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

pub(crate) fn population(transport: TransportSpec, arrivals: Arrivals, sizes: Sizes) -> FlowSpec {
    let headers = if matches!(transport, TransportSpec::Udp(_)) { UDP_HEADERS } else { TCP_HEADERS };
    FlowSpec {
        access: None,
        egress: None,
        start: (Instant::ZERO, Instant::ZERO),
        population: Some(Box::new(Workload { arrivals, sizes, headers })),
        ..flow("web/0".into(), 0, 1, transport, None)
    }
}

/// Populations over a link of 8 Mbit/s, on which 1000 bytes take 1 ms, and 10 ms.
fn over_one_link(flows: Vec<FlowSpec>, seconds: u64) -> Network {
    let queue = aqm("drop-tail", r#"{"limit": "100p"}"#);
    let links = duplex("link", 0, 1, "8Mbps", "10ms", queue);
    Network { nodes: 2, links: links.into(), flows, ..Network::new(Duration::from_secs(seconds)) }
}

/// Flows by when they begin, in milliseconds, and bytes.
fn list(flows: &[(u64, u64)]) -> Arrivals {
    let listed = flows.iter().map(|&(millis, size)| Listed(Duration::from_millis(millis), Bytes::new(size)));
    Arrivals::List(listed.collect())
}

fn fast_udp() -> TransportSpec {
    udp(r#"{"udp": "cbr", "rate": "8Gbps", "packet": "1000B", "jitter": 0.0}"#)
}

fn only(outcome: &Outcome) -> &PopulationOutcome {
    let [population] = &outcome.populations[..] else { panic!("one population") };
    population
}

fn times(population: &PopulationOutcome) -> Vec<Option<Duration>> {
    population.flows.iter().map(FlowRecord::time).collect()
}

#[test]
fn datagrams_by_hand() {
    // 2500 bytes are packets of 1000, 1000 and 584 bytes with 28 of headers in each: 2.584 ms, and 10 ms of
    // propagation. Flow 1 begins when 1.584 ms of flow 0 are left; flow 2 fills a packet; flow 3 is one byte,
    // 29 with its headers; flow 4 is sent when the run ends.
    let flows = [(1, 2500), (2, 2500), (50, 972), (60, 1), (995, 1944)];
    let spec = population(fast_udp(), list(&flows), Sizes::default());
    let outcome = run(&over_one_link(vec![spec], 1), 1);
    let micros =
        [12_584, 12_584 + 1_584, 11_000, 10_029].map(|micros| Some(Duration::from_nanos(micros * 1000)));
    assert_eq!(times(only(&outcome)), [&micros[..], &[None]].concat());
    let idle: Vec<u64> = only(&outcome).flows.iter().map(|flow| flow.idle.as_nanos() / 1000).collect();
    assert_eq!(idle, [12_584, 12_584, 11_000, 10_029, 12_000]);
    // Packets that arrived: 3 + 3 + 1 + 1; the flow that represents them counts them together.
    let sum = &outcome.flows[0];
    assert_eq!((sum.delivered_packets, sum.delivered_bytes), (8, 2584 + 2584 + 1000 + 29));
    assert_eq!((sum.completion, sum.sender.sent), (Completion::Endless, 10));
    let open = (12.584 + 14.168 + 11.0 + 10.029 + 5.0) / 1000.0;
    assert!((only(&outcome).mean_open - open).abs() < 1e-9, "{} {open}", only(&outcome).mean_open);
}

#[test]
fn a_connection_by_hand() {
    // With an initial window of 10, 5 segments of 960 bytes leave at once: 5 ms and 10 ms; with a handshake,
    // one round trip earlier: a SYN of 40 bytes, 0.04 ms, and its answer on the same rate.
    let transport = |extra: &str| {
        tcp(&format!(r#"{{"tcp": "newreno", "initial-window": "10p", "packet": "1000B"{extra}}}"#))
    };
    let time = |transport| {
        let outcome =
            run(&over_one_link(vec![population(transport, list(&[(0, 4800)]), Sizes::default())], 1), 1);
        times(only(&outcome))[0].unwrap().as_nanos()
    };
    assert_eq!(time(transport("")), 15_000_000);
    assert_eq!(time(transport(r#", "handshake": true"#)), 15_000_000 + 20_080_000);
}

/// A population, and the same flows as flows of the network: one with a name, a start and a volume each.
fn both_ways(transport: &TransportSpec, flows: &[(u64, u64)], queue: (&str, &str)) -> [Network; 2] {
    let headers = if matches!(transport, TransportSpec::Udp(_)) { UDP_HEADERS } else { TCP_HEADERS };
    let payload = 1000 - u64::from(headers);
    // Simultaneous packets go in the order of their flows' numbers, which differ: starts, and jitter, see to
    // it that none are.
    let flows = || {
        flows
            .iter()
            .zip(1..)
            .map(|(&(millis, packets), n)| (Duration::from_nanos(millis * 1_000_000 + 137 * n), packets))
    };
    let listed = flows().map(|(start, packets)| Listed(start, Bytes::new(packets * payload)));
    let spec = population(transport.clone(), Arrivals::List(listed.collect()), Sizes::default());
    let single = flows().enumerate().map(|(number, (start, packets))| FlowSpec {
        name: format!("web/0#{number}"),
        start: (Instant::ZERO + start, Instant::ZERO + start),
        volume: Some(Bytes::new(1000 * packets)),
        population: None,
        ..spec.clone()
    });
    let network = |flows| Network {
        links: duplex("link", 0, 1, "8Mbps", "10ms", aqm(queue.0, queue.1)).into(),
        warmup: Duration::from_millis(500),
        ..over_one_link(flows, 4)
    };
    [network(vec![spec.clone()]), network(single.collect())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_population_is_the_sum_of_its_flows(
        transport in 0_usize..4,
        gaps in prop::collection::vec((1_u64..150, 1_u64..60), 1..60),
        queue in prop_oneof![
            Just(("drop-tail", r#"{"limit": "20p"}"#)),
            Just(("red", r#"{"thresholds": "5/15/0.1", "weight": 0.01, "limit": "30p"}"#)),
            Just(("codel", r#"{"limit": "50p"}"#)),
        ],
        seed in 1_u64..9,
    ) {
        let transport = [
            tcp(r#"{"tcp": "newreno", "packet": "1000B", "send-jitter": "1ms"}"#),
            tcp(r#"{"tcp": "newreno", "sack": true, "packet": "1000B", "send-jitter": "1ms", "delayed-ack": "39.700013ms"}"#),
            tcp(r#"{"tcp": "newreno", "congestion": "cubic", "packet": "1000B", "send-jitter": "1ms", "handshake": true}"#),
            udp(r#"{"udp": "cbr", "rate": "20Mbps", "packet": "1000B"}"#),
        ][transport].clone();
        let mut now = 0;
        let flows: Vec<(u64, u64)> = gaps.into_iter().map(|(gap, packets)| { now += gap; (now, packets) }).collect();
        let flows: Vec<(u64, u64)> = flows.into_iter().filter(|&(millis, _)| millis < 4000).collect();
        let [together, single] = both_ways(&transport, &flows, queue).map(|network| run(&network, seed));
        let population = only(&together);
        prop_assert_eq!(population.flows.len(), single.flows.len());
        for (record, flow) in population.flows.iter().zip(&single.flows) {
            match flow.completion {
                Completion::After { time, idle } => {
                    prop_assert_eq!(record.time(), Some(time));
                    prop_assert!(record.idle <= idle);
                }
                Completion::InWarmup => prop_assert!(record.started < at(500)),
                Completion::Unfinished => prop_assert_eq!(record.time(), None),
                Completion::Endless => unreachable!("each has a volume"),
            }
        }
        let sum = &together.flows[0];
        prop_assert_eq!(sum.delivered_packets, single.flows.iter().map(|flow| flow.delivered_packets).sum::<u64>());
        prop_assert_eq!(sum.sender.sent, single.flows.iter().map(|flow| flow.sender.sent).sum::<u64>());
        prop_assert_eq!(sum.dropped[1], single.flows.iter().map(|flow| flow.dropped[1]).sum::<u64>());
        prop_assert_eq!(&together.links[0].counters, &single.links[0].counters);
    }

    /// What the network does changes no flow's start and size.
    #[test]
    fn mechanisms_are_compared_on_the_same_flows(seed in 0_u64..100) {
        let sizes: Sizes = serde_json::from_str(r#"{"cdf": "web-search", "scale": 0.02}"#).unwrap();
        let spec = population(tcp(r#"{"tcp": "newreno"}"#), Arrivals::Poisson(20.0), sizes);
        let drawn = |queue: SchedulerParams| {
            let links = duplex("link", 0, 1, "8Mbps", "10ms", queue);
            let network = Network { links: links.into(), ..over_one_link(vec![spec.clone()], 5) };
            let outcome = run(&network, seed);
            only(&outcome).flows.iter().map(|flow| (flow.started, flow.size)).collect::<Vec<_>>()
        };
        let drop_tail = drawn(aqm("drop-tail", r#"{"limit": "20p"}"#).into());
        prop_assert_eq!(&drop_tail, &drawn(scheduler(r#"{"scheduler": "fq-codel"}"#)));
        prop_assert!(drop_tail.len() > 40);
    }
}

#[test]
fn littles_law_holds_for_what_is_open() {
    let sizes: Sizes = serde_json::from_str(r#"{"cdf": "web-search", "scale": 0.02}"#).unwrap();
    let spec = population(tcp(r#"{"tcp": "newreno"}"#), Arrivals::Poisson(15.0), sizes);
    let mut network = over_one_link(vec![spec], 60);
    network.warmup = Duration::from_secs(10);
    network.probe_interval = Some(Duration::from_secs(1));
    let outcome = run(&network, 3);
    let (begin, end) = (at(10_000), at(60_000));
    // The time that each flow was open after the warm-up.
    let open = only(&outcome).flows.iter().map(|flow| {
        let (from, to) = (flow.started.max(begin), flow.completed.min(end));
        if to > from { to.since(from).as_secs_f64() } else { 0.0 }
    });
    let mean = open.sum::<f64>() / 50.0;
    assert!((only(&outcome).mean_open - mean).abs() < 1e-6, "{} {mean}", only(&outcome).mean_open);
    assert!(mean > 1.0);
    // The probe sees all that arrives.
    let sampled: f64 = outcome.series.throughput_bps[10..].iter().sum();
    let delivered = outcome.flows[0].throughput_bps * 50.0;
    assert!((sampled - delivered).abs() < 0.01 * delivered, "{sampled} {delivered}");
}

#[test]
fn arrivals_end_with_the_stop_of_the_group() {
    let transport = || tcp(r#"{"tcp": "newreno"}"#);
    let every = Arrivals::Every(Duration::from_millis(100));
    let spec = population(transport(), every, Sizes::constant(Bytes::new(3000)));
    let spec = FlowSpec { start: (at(250), at(250)), stop: Some(at(600)), ..spec };
    let outcome = run(&over_one_link(vec![spec], 1), 1);
    let started: Vec<Instant> = only(&outcome).flows.iter().map(|flow| flow.started).collect();
    assert_eq!(started, [at(250), at(350), at(450), at(550)]);
    assert!(only(&outcome).flows.iter().all(|flow| flow.time().is_some()));
}

#[test]
fn populations_run_on_one_thread() {
    let spec = population(fast_udp(), list(&[(0, 1)]), Sizes::default());
    let network = over_one_link(vec![spec], 1);
    let threads = Simulation::division(&network, 2, &Watch::default()).unwrap();
    assert_eq!(threads, Err(OneThread::Population { flow: "web/0".into() }));
    assert_eq!(threads.unwrap_err().to_string(), "flows of `web` come and go");
    let divided = Simulation::run_divided(&network, 1, &[0, 1]);
    assert!(matches!(divided, Err(Failure::Undivided(OneThread::Population { .. }))));
    assert_eq!(network.flows[0].from, NodeId(0));
}

#[test]
fn what_is_drawn_is_known_before_the_run() {
    let sizes = Sizes::constant(Bytes::new(30_000));
    let of_web = FlowSpec {
        stop: Some(at(1500)),
        ..population(tcp(r#"{"tcp": "newreno"}"#), Arrivals::Poisson(20.0), sizes.clone())
    };
    let of_mail = FlowSpec {
        name: "mail/0".into(),
        ..population(fast_udp(), list(&[(100, 1), (100, 972), (1700, 5000)]), Sizes::default())
    };
    let endless = flow("bulk/0".into(), 0, 1, tcp(r#"{"tcp": "newreno"}"#), None);
    let network = over_one_link(vec![of_web, endless, of_mail], 2);
    for seed in 1..4 {
        let outcome = run(&network, seed);
        assert!(network.flows_of(&network.flows[1], seed).is_none(), "it represents no population");
        for (flow, population) in [0, 2].into_iter().zip(&outcome.populations) {
            let drawn: Vec<FlowRecord> = network.flows_of(&network.flows[flow], seed).unwrap().collect();
            let of_run = population.flows.iter();
            let unknown = of_run.map(|record| FlowRecord { completed: Instant::NEVER, ..*record });
            assert_eq!(drawn, unknown.collect::<Vec<_>>(), "seed {seed}, flow {flow}");
            assert!(drawn.len() >= 3);
        }
    }
}

/// Transports of any kind that the batched engine takes.
fn transports() -> Vec<TransportSpec> {
    vec![
        tcp(r#"{"tcp": "newreno"}"#),
        tcp(r#"{"tcp": "newreno", "initial-window": "10p", "packet": "1500B", "handshake": true}"#),
        tcp(r#"{"tcp": "newreno", "sack": true, "initial-window": "10p", "delayed-ack": "40ms"}"#),
        tcp(
            r#"{"tcp": "reno", "min-rto": "50ms", "initial-rto": "200ms", "tick": "1ms", "send-jitter": "1ms"}"#,
        ),
        tcp(r#"{"tcp": "linux"}"#),
        tcp(r#"{"tcp": "newreno", "sack": true, "congestion": "bbr"}"#),
        tcp(r#"{"tcp": "linux", "congestion": "bbr3"}"#),
        tcp(r#"{"tcp": "two-windows"}"#),
        udp(r#"{"udp": "cbr", "rate": "4Mbps", "packet": "500B"}"#),
        udp(r#"{"udp": "cbr", "rate": "8Gbps", "packet": "1000B", "jitter": 0.0}"#),
        rap(r#"{"rap": "aimd"}"#),
        tfrc(r#"{"tfrc": "rfc5348"}"#),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Populations of any transport, beside flows that stay, over any queue: both engines agree in every
    /// number.
    #[test]
    fn both_engines_agree_on_populations(
        seed: u64,
        queue in any_queue(),
        kinds in prop::collection::vec((0_usize..12, 0_usize..4, 1_u64..40_000, 0_u8..16), 1..5),
        stays in 0_usize..3,
        rate_kbps in 300_u64..9000,
        (back, hops) in (prop_oneof![Just(None), (50_u64..2000).prop_map(Some)], 1_u32..3),
        (delay, round) in (prop_oneof![Just("0ms"), Just("1ms"), Just("11ms")], any::<bool>()),
        (warmup, probe) in (0_u64..2, prop_oneof![Just(None), Just(Some(100)), Just(Some(170))]),
    ) {
        let transports = transports();
        let members = kinds.into_iter().enumerate().map(|(n, (kind, arrivals, size, traits))| {
            let arrivals = match arrivals {
                0 => Arrivals::Poisson(40.0),
                1 => Arrivals::Every(Duration::from_millis(if round { 20 } else { 31 })),
                2 => list(&[(0, 1), (0, size), (100, 2000), (100, 2000), (170, 1), (1000, size), (1000, 1), (2950, size)]),
                _ => Arrivals::Poisson(400.0),
            };
            let mut spec = population(transports[kind].clone(), arrivals, Sizes::constant(Bytes::new(size)));
            spec.name = format!("p{n}/0");
            spec.to = NodeId(hops);
            let plain = flow("plain".into(), 0, 1, transports[kind].clone(), Some(profile("0.4Mbps")));
            if traits & 1 > 0 {
                (spec.access, spec.egress) = (plain.access, plain.egress);
            }
            if traits & 2 > 0 {
                spec.marking = plain.marking;
            }
            if traits & 4 > 0 {
                (spec.from, spec.to) = (spec.to, spec.from);
            }
            if traits & 8 > 0 {
                spec.stop = Some(at(1700));
            }
            spec
        });
        let stay = (0..stays).map(|n| {
            let transport = transports[[0, 4, 8][n]].clone();
            flow(format!("stay{n}"), 0, hops, transport, (n == 1).then(|| profile("0.3Mbps")))
        });
        let rate = if round { "8Mbps".into() } else { format!("{rate_kbps}kbps") };
        let links = chain(hops, &rate, delay, &queue, back);
        let network = Network {
            nodes: hops + 1,
            links,
            flows: stay.chain(members).collect(),
            probe_interval: probe.map(Duration::from_millis),
            warmup: Duration::from_millis(warmup * 1000),
            ..Network::new(Duration::from_secs(3))
        };
        run(&network, seed);
    }
}
