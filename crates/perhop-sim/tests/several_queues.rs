//! Label-switched paths, and ports with several queues: who gets what in whole runs.

use crate::common::{RIO, aqm, duplex, every_transport, flow, scheduler, tcp, udp};
use perhop_core::measure::LinkOutcome;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Counters, Dscp, Duration, Ecn, Instant, Reason};
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::{Engine, FlowSpec, Network, NodeId, Outcome, PathSpec, Simulation};

const RULE: &str = r#"{"aqm": "drop-tail", "limit": "60p"}"#;

fn run(network: &Network, engine: Engine) -> Outcome {
    let mut simulation = Simulation::on_engine(network, 3, engine).unwrap();
    simulation.run_to_end();
    simulation.finish().unwrap()
}

/// A scheduler whose paths `a` and `b` have the labels 1 and 2.
fn labelled(table: &str) -> SchedulerParams {
    let mut params = scheduler(table);
    for (_, path) in params.paths() {
        let label = if path.name() == "a" { 1 } else { 2 };
        path.set_label(label);
    }
    params
}

fn on_path(name: &str, path: usize, table: &str) -> FlowSpec {
    let mut flow = flow(name.into(), 0, 3, tcp(table), None);
    flow.path = Some(path);
    flow
}

fn ef(rate: &str) -> FlowSpec {
    let mut flow = flow("ef".into(), 0, 1, udp(&format!(r#"{{"udp": "cbr", "rate": "{rate}"}}"#)), None);
    flow.access.as_mut().unwrap().rate = "100Mbps".parse().unwrap();
    flow.start = (Instant::ZERO, Instant::ZERO);
    flow.dscp = Dscp::new(46).unwrap();
    flow
}

fn arrived(link: &LinkOutcome) -> u64 {
    link.counters.arrived.iter().sum()
}

/// Two ways from 0 to 3: over 1 and over 2. Every direction has a queue.
fn diamond() -> Network {
    let hops = [(0, 1), (1, 3), (0, 2), (2, 3)];
    let links = hops.into_iter().flat_map(|(from, to)| {
        let mut links = duplex(&format!("{from}-{to}"), from, to, "10Mbps", "5ms", aqm("rio", RIO));
        links[1].queue = Some(aqm("rio", RIO).into());
        links
    });
    let path = |name: &str, label, forward, backward| PathSpec {
        name: name.into(),
        label,
        forward,
        backward,
        control: None,
    };
    Network {
        nodes: 4,
        links: links.collect(),
        paths: vec![
            path("a", 1, vec![0, 2], vec![3, 1]),
            path("b", 2, vec![4, 6], vec![7, 5]),
            path("there over 1, back over 2", 3, vec![0, 2], vec![7, 5]),
        ],
        ..Network::new(Duration::from_secs(5))
    }
}

#[test]
fn a_path_pins_data_and_acknowledgements_to_its_links() {
    let used = |path| {
        let flows = vec![on_path("only", path, r#"{"tcp": "newreno", "window": "10p"}"#)];
        let outcome = run(&Network { flows, ..diamond() }, Engine::Batched);
        assert!(outcome.flows[0].throughput_bps > 1e6);
        let links = outcome.links.iter().enumerate().filter(|(_, link)| arrived(link) > 0);
        links.map(|(number, _)| number).collect::<Vec<_>>()
    };
    // A link's two directions have neighbouring numbers.
    assert_eq!(used(0), [0, 1, 2, 3]);
    assert_eq!(used(1), [4, 5, 6, 7]);
    assert_eq!(used(2), [0, 2, 5, 7]);
}

#[test]
fn a_path_that_does_not_lead_from_the_flows_one_end_to_the_other_is_refused() {
    for broken in [vec![0], vec![2, 0], vec![0, 6], vec![0, 99], vec![]] {
        let mut network = diamond();
        network.flows = vec![on_path("only", 0, r#"{"tcp": "reno"}"#)];
        network.paths[0].forward = broken;
        let refused = Simulation::new(&network, 1).unwrap_err();
        assert_eq!((refused.flow, refused.from, refused.to), (0, NodeId(0), NodeId(3)));
    }
}

#[test]
fn queues_know_the_packets_of_a_path_in_both_directions() {
    let mut network = diamond();
    network.flows = vec![
        on_path("a", 0, r#"{"tcp": "newreno"}"#),
        on_path("back over 2", 2, r#"{"tcp": "newreno"}"#),
        flow("no path".into(), 0, 3, tcp(r#"{"tcp": "newreno"}"#), None),
    ];
    // All that was sent arrives before the run ends.
    network.flows.iter_mut().for_each(|flow| flow.stop = Some(Instant::from_nanos(3_000_000_000)));
    let queue = format!(
        r#"{{"scheduler": "drr", "queues": [{{"name": "a", "match": {{"path": "a"}}, "rule": {RULE}}}, {{"name": "rest", "rule": {RULE}}}]}}"#
    );
    network.links[0].queue = Some(labelled(&queue));
    network.links[1].queue = Some(labelled(&queue));
    let outcome = run(&network, Engine::Batched);
    let classes = |link: usize| {
        let classes = &outcome.links[link].classes;
        classes.iter().map(|class| class.counters.arrived.iter().sum()).collect::<Vec<u64>>()
    };
    let sent = |flow: usize| outcome.flows[flow].sender.sent;
    assert_eq!(classes(0), [sent(0), sent(1) + sent(2)]);
    // Acknowledgements: as many as data packets that came; those of the second flow go elsewhere.
    let delivered = |flow: usize| outcome.flows[flow].delivered_packets;
    let [of_path, rest] = classes(1)[..] else { panic!("two classes") };
    assert!(of_path >= delivered(0) && of_path <= sent(0), "{of_path}");
    assert!(rest >= delivered(2) && rest <= sent(2), "{rest}");
}

#[test]
fn what_each_queue_measures_begins_after_the_warm_up() {
    let queue = format!(
        r#"{{"scheduler": "drr", "queues": [{{"name": "a", "match": {{"path": "a"}}, "rule": {RULE}}}, {{"name": "rest", "rule": {RULE}}}]}}"#
    );
    let classes = |warmup, duration| {
        let mut network = diamond();
        network.flows = vec![
            on_path("a", 0, r#"{"tcp": "newreno"}"#),
            flow("no path".into(), 0, 3, tcp(r#"{"tcp": "newreno"}"#), None),
        ];
        network.links[0].queue = Some(labelled(&queue));
        (network.warmup, network.duration) = (Duration::from_secs(warmup), Duration::from_secs(duration));
        run(&network, Engine::Batched).links[0].classes.clone()
    };
    let (before, after, whole) = (classes(0, 2), classes(2, 5), classes(0, 5));
    for class in 0..2 {
        assert_eq!(after[class].measured, whole[class].counters.since(&before[class].counters));
        assert_eq!(after[class].counters, whole[class].counters);
        let sent = |counters: &Counters| counters.sent.iter().sum::<u64>();
        assert!(sent(&before[class].counters) > 0 && sent(&after[class].measured) > 0);
    }
}

/// Two paths share a link of 10 Mbit/s; the second's round trip is four times the first's.
fn unequal(queue: SchedulerParams) -> [f64; 2] {
    let mut links: Vec<_> = duplex("shared", 0, 1, "10Mbps", "5ms", queue).into();
    links.extend(duplex("near", 1, 3, "100Mbps", "5ms", aqm("drop-tail", r#"{"limit": "999p"}"#)));
    links.extend(duplex("far", 1, 2, "100Mbps", "30ms", aqm("drop-tail", r#"{"limit": "999p"}"#)));
    links.extend(duplex("farther", 2, 3, "100Mbps", "10ms", aqm("drop-tail", r#"{"limit": "999p"}"#)));
    let path = |name: &str, label, forward, backward| PathSpec {
        name: name.into(),
        label,
        forward,
        backward,
        control: None,
    };
    let flows = (0..2)
        .flat_map(|path| (0..5).map(move |n| on_path(&format!("{path} {n}"), path, r#"{"tcp": "newreno"}"#)));
    let network = Network {
        nodes: 4,
        links,
        paths: vec![path("a", 1, vec![0, 2], vec![3, 1]), path("b", 2, vec![0, 4, 6], vec![7, 5, 1])],
        flows: flows.collect(),
        warmup: Duration::from_secs(20),
        ..Network::new(Duration::from_secs(120))
    };
    let outcome = run(&network, Engine::Batched);
    let sum = |flows: &[perhop_sim::FlowOutcome]| flows.iter().map(|flow| flow.throughput_bps).sum::<f64>();
    [sum(&outcome.flows[..5]), sum(&outcome.flows[5..])]
}

#[test]
fn unequal_round_trips_share_one_queue_badly_and_two_as_guaranteed() {
    let [near, far] = unequal(aqm("drop-tail", r#"{"limit": "60p"}"#).into());
    assert!(near > 2.0 * far, "{near} {far}");
    for scheduler in ["wfq", "drr"] {
        for (rate, share) in [("5Mbps", 5e6), ("3Mbps", 3e6)] {
            let [near, far] = unequal(labelled(&format!(
                r#"{{"scheduler": "{scheduler}", "queues": [
                    {{"name": "near", "match": {{"path": "a"}}, "rate": "{rate}", "rule": {RULE}}},
                    {{"name": "rest", "rule": {RULE}}}]}}"#
            )));
            assert!((near / share - 1.0).abs() < 0.06, "{scheduler}: {near} of {share}");
            assert!((far / (10e6 - share) - 1.0).abs() < 0.06, "{scheduler}: {far}");
        }
    }
}

/// Expedited forwarding at this rate over 5 Mbit/s, with and without five TCP flows beside it.
fn expedited(rate: &str, beside: u32, extra: &str) -> Outcome {
    let queue = format!(
        r#"{{"scheduler": "priority" {extra}, "queues": [
            {{"name": "ef", "match": {{"dscp": 46}}, "cap": "1Mbps", "rule": {{"aqm": "drop-tail", "limit": "50p"}}}},
            {{"name": "af", "rule": {RULE}}}]}}"#
    );
    let mut flows = vec![ef(rate)];
    flows.extend((0..beside).map(|n| flow(format!("{n}"), 0, 1, tcp(r#"{"tcp": "newreno"}"#), None)));
    let network = Network {
        nodes: 2,
        links: duplex("bottleneck", 0, 1, "5Mbps", "18ms", scheduler(&queue)).into(),
        flows,
        warmup: Duration::from_secs(5),
        ..Network::new(Duration::from_secs(40))
    };
    run(&network, Engine::Batched)
}

#[test]
fn a_priority_queue_goes_first_up_to_its_cap() {
    let got = |outcome: &Outcome| outcome.flows[0].throughput_bps;
    // Below its cap nothing is lost, and a packet waits for one in transmission at most.
    let calm = expedited("0.9Mbps", 5, "");
    let class = &calm.links[0].classes[0];
    assert_eq!((class.name.as_str(), class.counters.drops().count()), ("ef", 0));
    assert!(class.delays.largest.iter().all(|&longest| longest <= Duration::from_nanos(1_600_000)));
    assert!((got(&calm) / 0.9e6 - 1.0).abs() < 0.01);
    for meter in ["", r#", "meter": "tsw""#] {
        // Above it, it has its cap while others have packets, and the link while they have none.
        let busy = expedited("3Mbps", 5, meter);
        assert!((got(&busy) / 1e6 - 1.0).abs() < 0.03, "{}", got(&busy));
        assert!(busy.links[0].utilization > 0.98);
        let alone = expedited("3Mbps", 0, meter);
        assert!((got(&alone) / 3e6 - 1.0).abs() < 0.01, "{}", got(&alone));
        // Unless its cap holds then, too: the link idles.
        let held = expedited("3Mbps", 0, &format!(r#"{meter}, "excess": "idle""#));
        assert!((got(&held) / 1e6 - 1.0).abs() < 0.03, "{}", got(&held));
        assert!((held.links[0].utilization - 0.2).abs() < 0.01);
    }
}

const SEVERAL: [&str; 4] = [
    r#""scheduler": "priority", "excess": "idle", "queues": [{"name": "green", "match": {"color": "green"}, "cap": "1Mbps", RULE}, {"name": "rest", "cap": "3.5Mbps", RULE}]"#,
    r#""scheduler": "priority", "meter": "tsw", "excess": "idle", "queues": [{"name": "green", "match": {"color": "green"}, "cap": "1Mbps", RULE}, {"name": "rest", "cap": "3.5Mbps", RULE}]"#,
    r#""scheduler": "drr", "quantum": "300B", "queues": [{"name": "green", "match": {"color": "green"}, "weight": 2, RULE}, {"name": "rest", RULE}]"#,
    r#""scheduler": "wfq", "queues": [{"name": "green", "match": {"color": "green"}, "rate": "1Mbps", RULE}, {"name": "rest", RULE}]"#,
];

#[test]
fn ports_with_several_queues_run_alike_in_slices_and_whether_looked_at_or_not() {
    for table in SEVERAL {
        let rule = r#""rule": {"aqm": "red", "thresholds": "5/20/0.1", "limit": "40p", "weight": 0.02}"#;
        let mut network = every_transport(aqm("drop-tail", r#"{"limit": "25p"}"#), 30);
        network.links[0].queue = Some(scheduler(&format!("{{{}}}", table.replace("RULE", rule))));
        let whole = run(&network, Engine::Batched);
        assert_eq!(whole.flows, run(&network, Engine::Reference).flows);
        let mut sliced = Simulation::new(&network, 3).unwrap();
        for slice in 1..=1000 {
            sliced.run_until(Instant::from_nanos(slice * 30_000_000));
        }
        let sliced = sliced.finish().unwrap();
        assert_eq!((&whole.flows, &whole.links), (&sliced.flows, &sliced.links));
        assert_eq!(format!("{:?}", whole.series), format!("{:?}", sliced.series));
        let queue = &whole.series.queues[0];
        assert_eq!(
            queue.gauges.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["green average total", "rest average total"]
        );
        assert_eq!(
            queue.classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(),
            ["green", "rest"]
        );
        network.probe_interval = None;
        assert_eq!(whole.flows, run(&network, Engine::Batched).flows);
    }
}

#[test]
fn a_single_queue_is_a_fifo_packet_by_packet() {
    let rule = r#"{"aqm": "red", "thresholds": "5/20/0.1", "limit": "40p", "weight": 0.02}"#;
    let mut network = every_transport(aqm("drop-tail", r#"{"limit": "25p"}"#), 30);
    let mut under = |queue: &str| {
        network.links[0].queue = Some(scheduler(queue));
        run(&network, Engine::Reference)
    };
    let fifo = under(&format!(r#"{{"scheduler": "fifo", "rule": {rule}}}"#));
    for name in ["priority", "drr", "wfq"] {
        let one =
            under(&format!(r#"{{"scheduler": "{name}", "queues": [{{"name": "all", "rule": {rule}}}]}}"#));
        assert_eq!((&one.flows, &one.links), (&fifo.flows, &fifo.links), "{name}");
    }
}

#[test]
fn a_queue_more_changes_no_other_queues_luck() {
    // The third queue takes nothing that comes; both others draw as before.
    let rule = r#""rule": {"aqm": "red", "thresholds": "5/20/0.1", "limit": "40p", "weight": 0.02}"#;
    let run_with = |more: &str| {
        let mut network = every_transport(aqm("drop-tail", r#"{"limit": "25p"}"#), 20);
        network.links[0].queue = Some(scheduler(&format!(
            r#"{{"scheduler": "priority", "queues": [{{"name": "green", "match": {{"color": "green"}}, {rule}}} {more}, {{"name": "rest", {rule}}}]}}"#
        )));
        run(&network, Engine::Batched).flows
    };
    let more = format!(r#", {{"name": "none", "match": {{"dscp": 63}}, {rule}}}"#);
    assert_eq!(run_with(""), run_with(&more));
}

/// Three TCP flows, a flow of small packets and one that floods the link, over 10 Mbit/s with this queue.
fn beside_a_flood(queue: &str) -> Network {
    let from = |name: &str, transport| {
        let mut flow = flow(name.into(), 0, 1, transport, None);
        flow.access.as_mut().unwrap().rate = "100Mbps".parse().unwrap();
        flow.tcp_ecn = TcpEcn::Classic;
        flow
    };
    Network {
        nodes: 2,
        links: duplex("there", 0, 1, "10Mbps", "10ms", scheduler(queue)).into(),
        flows: vec![
            from("one", tcp(r#"{"tcp": "newreno"}"#)),
            from("two", tcp(r#"{"tcp": "newreno"}"#)),
            from("three", tcp(r#"{"tcp": "newreno"}"#)),
            from("calls", udp(r#"{"udp": "cbr", "rate": "64kbps", "packet": "160B"}"#)),
            from("flood", udp(r#"{"udp": "cbr", "rate": "20Mbps"}"#)),
        ],
        warmup: Duration::from_secs(5),
        ..Network::new(Duration::from_secs(30))
    }
}

#[test]
fn fair_queueing_shields_flows_from_a_flood() {
    for keys in ["", r#", "law": "linux""#, r#", "hash": "set-associative", "backlog": "queue""#] {
        let network = beside_a_flood(&format!(r#"{{"scheduler": "fq-codel"{keys}}}"#));
        let outcome = run(&network, Engine::Batched);
        let rates: Vec<f64> = outcome.flows.iter().map(|flow| flow.throughput_bps / 1e6).collect();
        // Each of the four others gets a quarter of what the calls leave; TCP loses some to its cuts at
        // marks.
        assert!(rates[..3].iter().all(|rate| (2.2..2.6).contains(rate)), "{keys}: {rates:?}");
        assert!((2.4..2.9).contains(&rates[4]), "{keys}: {rates:?}");
        // The calls wait for four packets at most: those of a turn each.
        let calls = &outcome.flows[3];
        assert!(
            calls.sender.sent.abs_diff(calls.delivered_packets) <= 1,
            "{keys}: one is under way at the end"
        );
        let marked = &outcome.links[0].counters;
        let of = |counts: [u64; 3]| counts.iter().sum::<u64>();
        assert!(of(marked.notified(Reason::Target)) > 100, "{keys}: TCP is marked");
        assert!(of(marked.dropped(Reason::Target)) > 100, "{keys}: the flood is dropped");
    }
}

#[test]
fn a_shaper_sends_its_burst_and_then_its_rate_whatever_is_within() {
    // A packet of 1000 bytes each 2 ms, against 3000 bytes and 125 in a millisecond: 0, 1 and 2 leave at
    // once, and from then on the k-th of those that the queue admits leaves at 8 (k - 2) ms. At 4 s packet
    // 502 does; 9 wait behind it. If the source stops before, 502 have left, and of the 9 that wait one waits
    // for its tokens.
    let packets = udp(r#"{"udp": "cbr", "rate": "4Mbps", "packet": "1000B", "jitter": 0.0}"#);
    let tail = r#"{"aqm": "drop-tail", "limit": "9p"}"#;
    let drr = format!(r#"{{"scheduler": "drr", "queues": [{{"name": "all", "rule": {tail}}}]}}"#);
    for queue in [tail, &drr] {
        let shaper =
            format!(r#"{{"scheduler": "shaper", "rate": "1Mbps", "burst": "3kB", "queue": {queue}}}"#);
        let mut sender = flow("cbr".into(), 0, 1, packets.clone(), None);
        (sender.access, sender.start) = (None, (Instant::ZERO, Instant::ZERO));
        let mut network = Network {
            nodes: 2,
            links: duplex("there", 0, 1, "10Mbps", "1ms", scheduler(&shaper)).into(),
            flows: vec![sender],
            ..Network::new(Duration::from_secs(4))
        };
        let [batched, reference] = [Engine::Batched, Engine::Reference].map(|engine| run(&network, engine));
        assert_eq!((&batched.links, &batched.flows), (&reference.links, &reference.flows));
        let link = &batched.links[0];
        assert_eq!((arrived(link), link.counters.sent, link.waiting), (2001, [0, 503, 0], [0, 9, 0]));
        network.duration = Duration::from_secs(9);
        network.flows[0].stop = Some(Instant::from_nanos(3_999_000_000));
        assert_eq!(run(&network, Engine::Batched).flows[0].delivered_packets, 511);
    }
}

#[test]
fn an_l4s_flow_waits_for_a_packet_or_two_beside_a_classic_queue_at_its_target() {
    for keys in ["", r#", "law": "linux""#, r#", "order": "time-shifted-fifo""#] {
        let mut network = beside_a_flood(&format!(r#"{{"scheduler": "dualpi2"{keys}}}"#));
        network.flows.pop();
        network.flows[3].ecn = Ecn::Capable1;
        for engine in [Engine::Reference, Engine::Batched] {
            let link = &run(&network, engine).links[0];
            let [l4s, classic] = &link.classes[..] else { panic!("two classes") };
            assert_eq!((l4s.name.as_str(), classic.name.as_str()), ("l4s", "classic"));
            // The packet in transmission takes 0.8 ms, and one more may go before.
            assert!(l4s.delays.largest[1] < Duration::from_millis(2), "{keys}: {:?}", l4s.delays.largest);
            // In 15 ms the link sends some 19 packets.
            assert!((9.0..28.0).contains(&link.mean_queue_packets), "{keys}: {}", link.mean_queue_packets);
            assert!(link.utilization > 0.95, "{keys}: {}", link.utilization);
        }
    }
}
