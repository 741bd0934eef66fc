//! Runs divided among threads: the same outcome, whatever the division.

use crate::common::{aqm, duplex, every_transport, flow, meter, profile, rap, scheduler, tcp, tfrc, udp};
use crate::engine::{any_queue, assert_same};
use crate::media::{set_medium, some_media};
use perhop_core::meter::AggregateMeter;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bytes, Duration, Instant};
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::{
    Engine, Failure, FlowSpec, LINKS_PER_THREAD, Marking, Network, NodeId, OneThread, Outcome, SharedMeter,
    Simulation, TransportSpec, Watch,
};
use proptest::prelude::*;

fn whole(network: &Network, seed: u64) -> Outcome {
    Simulation::run(network, seed, Some(Engine::Batched), &Watch::default()).unwrap()
}

fn on_threads(network: &Network, threads: usize) -> Outcome {
    Simulation::run_on_threads(network, 1, None, threads, &Watch::default()).unwrap()
}

pub(crate) fn transports() -> Vec<TransportSpec> {
    vec![
        tcp(r#"{"tcp": "newreno", "handshake": true}"#),
        tcp(r#"{"tcp": "newreno", "delayed-ack": "40ms"}"#),
        tcp(r#"{"tcp": "linux"}"#),
        tcp(r#"{"tcp": "linux", "congestion": "bbr"}"#),
        tcp(r#"{"tcp": "two-windows", "send-jitter": "2ms"}"#),
        udp(r#"{"udp": "cbr", "rate": "300kbps"}"#),
        udp(r#"{"udp": "on-off", "rate": "800kbps", "on": "300ms", "off": "500ms"}"#),
        rap(r#"{"rap": "aimd"}"#),
        tfrc(r#"{"tfrc": "rfc5348"}"#),
    ]
}

/// A ring of routers with this queue in both directions: routes in both directions share it, and cross it
/// partly.
fn ring(routers: u32, queue: &SchedulerParams, flows: Vec<FlowSpec>) -> Network {
    let delays = ["2ms", "5ms", "1ms", "3ms"];
    let links = (0..routers).flat_map(|n| {
        let delay = delays[n as usize % delays.len()];
        let mut links = duplex(&format!("l{n}"), n, (n + 1) % routers, "2Mbps", delay, queue.clone());
        links[1].queue = Some(queue.clone());
        links
    });
    Network {
        nodes: routers,
        links: links.collect(),
        flows,
        probe_interval: Some(Duration::from_millis(300)),
        warmup: Duration::from_millis(1100),
        ..Network::new(Duration::from_secs(3))
    }
}

/// So many links that their state is asked for ahead of their turn.
#[test]
fn a_network_of_many_links_runs_alike_on_both_engines_and_on_threads() {
    let queue = scheduler(
        r#"{"scheduler": "wfq", "queues": [
            {"name": "in", "match": {"color": "green"}, "rate": "1Mbps", "rule": {"aqm": "red", "thresholds": "5/15/0.1", "limit": "40p"}},
            {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "20p"}}]}"#,
    );
    let flows = transports().into_iter().cycle().take(420).enumerate().map(|(n, transport)| {
        let n = n as u32;
        let metered = n.is_multiple_of(3).then(|| profile("0.3Mbps"));
        flow(format!("{n}"), n % 140, (n + 1 + n / 50) % 140, transport, metered)
    });
    let network = Network { duration: Duration::from_millis(1500), ..ring(140, &queue, flows.collect()) };
    let batched = whole(&network, 1);
    let reference = Simulation::run(&network, 1, Some(Engine::Reference), &Watch::default()).unwrap();
    assert!(batched.hops > 50_000, "{}", batched.hops);
    assert_same(&batched, &reference);
    assert_same(&batched, &on_threads(&network, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// Any queue, any transports, any meters: each router on any of three threads.
    #[test]
    fn any_division_gives_the_same_outcome(
        seed: u64,
        routers in 3_u32..8,
        parts in prop::collection::vec(0_u32..3, 8),
        ends in prop::collection::vec((0_u32..8, 0_u32..8), 1..14),
        queue in any_queue(),
        media in some_media(16),
        kind: u8,
        (metered, feedback, shared, colored) in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        let transports = transports();
        let flows = ends.iter().enumerate().map(|(n, (from, to))| {
            let transport = transports[(n + usize::from(kind)) % transports.len()].clone();
            let metered = (metered && n % 3 == 0).then(|| profile("0.3Mbps"));
            let (from, to) = (from % routers, to % routers);
            // Between hosts of one router without links TCP would send for ever at one time.
            let to = if from == to { (from + 1) % routers } else { to };
            let mut flow = flow(format!("{n}"), from, to, transport, metered);
            flow.access = flow.access.filter(|_| n % 2 == 0);
            flow.egress = flow.egress.filter(|_| n % 3 == 0);
            flow.out_feedback = (feedback && n % 2 == 0).then_some(Duration::from_millis(3));
            if n % 3 == 1 && metered_at_router(&mut flow, shared) {
                flow.volume = Some(Bytes::new(200_000));
            }
            flow.stop = (n % 5 == 3).then_some(Instant::from_nanos(3_000_000_000));
            flow
        });
        let mut network = ring(routers, &queue, flows.collect());
        let params = profile("0.5Mbps");
        network.shared_meters = vec![SharedMeter { name: "shared".into(), params }];
        if colored {
            let profile = meter("trtcm", r#"{"rate": "0.3Mbps", "burst": "8kB", "peak-rate": "0.8Mbps", "peak-burst": "8kB"}"#);
            let r#match = perhop_core::scheduler::Match::default();
            network.links[0].meters = vec![AggregateMeter { name: "all".into(), r#match, profile, promote: false }];
        }
        for (link, medium) in network.links.iter_mut().zip(media) {
            set_medium(link, medium);
        }
        // The first routers of a shared meter's flows stay together.
        let of_node: Vec<u32> = parts[..routers as usize].to_vec();
        let division = Simulation::run_divided(&network, seed, &of_node);
        prop_assume!(!matches!(division, Err(Failure::Undivided(_))));
        assert_same(&division.unwrap(), &whole(&network, seed));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Where no receiver acts by itself, two groups of routers may take turns: a ring of an even number of
    /// routers has them whatever its delays, another if some of its links take long.
    #[test]
    fn groups_of_routers_that_take_turns_give_the_outcome_of_the_reference_engine(
        seed: u64,
        delays in prop::collection::vec(1_u32..4, 3..9),
        ends in prop::collection::vec((0_u32..8, 0_u32..8), 1..14),
        queue in any_queue(),
        kind: u8,
        steps in prop::collection::vec(1_u64..2000, 0..4),
    ) {
        let routers = delays.len() as u32;
        let at_once: Vec<_> = [0, 4, 5, 6, 7].map(|n| transports()[n].clone()).into();
        let flows = ends.iter().enumerate().map(|(n, (from, to))| {
            let transport = at_once[(n + usize::from(kind)) % at_once.len()].clone();
            let (from, to) = (from % routers, to % routers);
            let to = if from == to { (from + 1) % routers } else { to };
            let mut flow = flow(format!("{n}"), from, to, transport, (n % 3 == 0).then(|| profile("0.3Mbps")));
            flow.access = flow.access.filter(|_| n % 2 == 0);
            flow.egress = flow.egress.filter(|_| n % 3 == 0);
            flow
        });
        let mut network = ring(routers, &queue, flows.collect());
        for (n, link) in network.links.iter_mut().enumerate() {
            link.delay = Duration::from_millis(u64::from(delays[n / 2]));
        }
        let reference = Simulation::run(&network, seed, Some(Engine::Reference), &Watch::default()).unwrap();
        assert_same(&whole(&network, seed), &reference);
        let mut in_steps = Simulation::on_engine(&network, seed, Engine::Batched).unwrap();
        let mut steps = steps;
        steps.sort_unstable();
        for millis in steps {
            in_steps.run_until(Instant::from_nanos(millis * 1_000_000));
        }
        in_steps.run_until(Instant::ZERO + network.duration);
        assert_same(&in_steps.finish().unwrap(), &reference);
    }
}

/// A meter at the first router; whether it is the flow's own.
fn metered_at_router(flow: &mut FlowSpec, shared: bool) -> bool {
    flow.marking = if shared && flow.from == NodeId(0) {
        Marking::Edge(0)
    } else {
        Marking::Ingress(profile("0.2Mbps"))
    };
    !shared
}

#[test]
fn links_whose_results_nobody_asks_for_change_nothing_of_the_others() {
    let transports = transports().into_iter().zip(0..);
    let flows = transports.map(|(transport, n)| flow(n.to_string(), n % 4, (n + 2) % 4, transport, None));
    let all = ring(4, &aqm("red", r#"{"thresholds": "5/20/0.1", "limit": "40p"}"#).into(), flows.collect());
    let some = Network { unreported: vec![0, 3, 7], ..all.clone() };
    let mut expected = whole(&all, 1);
    for link in [7, 3, 0] {
        assert_ne!(expected.links.remove(link).measured.arrived, [0; 3]);
        expected.series.queues.remove(link);
    }
    assert_same(&whole(&some, 1), &expected);
    assert_same(&Simulation::run(&some, 1, Some(Engine::Reference), &Watch::default()).unwrap(), &expected);
    assert_same(&Simulation::run_divided(&some, 1, &[0, 1, 1, 0]).unwrap(), &expected);
}

#[test]
fn every_transport_crosses_a_border() {
    for queue in [aqm("drop-tail", r#"{"limit": "25p"}"#), aqm("codel", "{}")] {
        let network = every_transport(queue, 20);
        assert_same(&Simulation::run_divided(&network, 3, &[0, 1]).unwrap(), &whole(&network, 3));
    }
}

/// Sixteen by eight routers, with links of 1 to 3 ms between neighbours, and flows across it.
fn grid() -> Network {
    let (wide, high) = (16, 8);
    let queue: SchedulerParams = scheduler(
        r#"{"scheduler": "wfq", "queues": [
            {"name": "green", "match": {"color": "green"}, "rate": "1Mbps", "rule": {"aqm": "drop-tail", "limit": "60p"}},
            {"name": "rest", "rule": {"aqm": "red", "thresholds": "5/20/0.1", "limit": "60p", "weight": 0.02}}]}"#,
    );
    let mut links = Vec::new();
    let mut add = |from: u32, to: u32, delay: u32| {
        let mut both =
            duplex(&format!("{from}-{to}"), from, to, "4Mbps", &format!("{delay}ms"), queue.clone());
        both[1].queue = Some(queue.clone());
        links.extend(both);
    };
    for n in 0..wide * high {
        if n % wide + 1 < wide {
            add(n, n + 1, 1 + n % 3);
        }
        if n + wide < wide * high {
            add(n, n + wide, 1 + n % 2);
        }
    }
    let transports = transports();
    let flows = (0..200).map(|n| {
        let transport = transports[n as usize % transports.len()].clone();
        let profile = (n % 2 == 0).then(|| profile("0.2Mbps"));
        let mut flow =
            flow(format!("{n}"), n * 37 % (wide * high), n * 61 % (wide * high), transport, profile);
        flow.tcp_ecn = if n % 4 == 0 { TcpEcn::Classic } else { TcpEcn::Off };
        flow
    });
    Network {
        nodes: wide * high,
        links,
        flows: flows.collect(),
        warmup: Duration::from_secs(1),
        ..Network::new(Duration::from_secs(2))
    }
}

#[test]
fn a_grid_gives_the_same_outcome_on_every_number_of_threads() {
    let network = grid();
    let one = on_threads(&network, 1);
    let division = |most| Simulation::division(&network, most, &Watch::default()).unwrap().unwrap();
    assert_eq!(division(100).threads(), network.links.len() / LINKS_PER_THREAD);
    for most in [2, 3, 4] {
        assert_eq!(division(most).threads(), most);
        assert_same(&on_threads(&network, most), &one);
    }
    assert!(one.flows.iter().filter(|flow| flow.delivered_packets > 0).count() > 150);
}

#[test]
fn small_networks_and_those_that_cannot_be_divided_run_on_one_thread() {
    let threads = |network: &Network| Simulation::division(network, 4, &Watch::default()).unwrap();
    let network = ring(5, &aqm("drop-tail", r#"{"limit": "9p"}"#).into(), Vec::new());
    assert_eq!(threads(&network), Err(OneThread::Small { links: 10 }));
    let grid = grid();
    assert_eq!(Simulation::division(&grid, 1, &Watch::default()).unwrap(), Err(OneThread::Asked));
    let mut at_once = grid.clone();
    at_once.links.iter_mut().for_each(|link| {
        link.delay = Duration::ZERO;
        link.rate = "1000Gbps".parse().unwrap();
    });
    assert!(threads(&at_once).is_err());
    let mut brief = grid.clone();
    brief.links.iter_mut().for_each(|link| link.delay = Duration::from_nanos(1000));
    assert!(matches!(threads(&brief), Err(OneThread::Brief { .. })), "{:?}", threads(&brief));
    let mut one_meter = grid.clone();
    one_meter.shared_meters = vec![SharedMeter { name: "all".into(), params: profile("1Mbps") }];
    one_meter.flows.iter_mut().for_each(|flow| flow.marking = Marking::Edge(0));
    assert_eq!(threads(&one_meter), Err(OneThread::Undivided));
    let mut on_reference = grid;
    (on_reference.links[0].delay, on_reference.links[0].rate) = (Duration::ZERO, "9000Gbps".parse().unwrap());
    assert_eq!(threads(&on_reference), Err(OneThread::Reference));
}

#[test]
fn a_division_says_what_each_thread_has() {
    let network = grid();
    let division = Simulation::division(&network, 2, &Watch::default()).unwrap().unwrap();
    assert_eq!(division.routers.iter().sum::<usize>(), network.nodes as usize);
    assert!((division.work.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{division:?}");
    assert!(division.work.iter().all(|&share| (0.4..0.6).contains(&share)), "{division:?}");
    assert!(division.border > 0 && division.border < network.links.len() / 4, "{division:?}");
    assert!(division.lookahead >= Duration::from_millis(1), "{division:?}");
}

#[test]
fn parts_have_as_much_work_where_flows_differ() {
    // Flows from each router of a chain to the next one, with little to send in its first half.
    let cbr = |rate: &str| udp(&format!(r#"{{"udp": "cbr", "rate": "{rate}", "packet": "1000B"}}"#));
    let windows = |window| tcp(&format!(r#"{{"tcp": "newreno", "window": "{window}"}}"#));
    let spurts = r#"{"udp": "on-off", "rate": "1Mbps", "on": "1ms", "off": "99ms", "packet": "1000B"}"#;
    let network = |little: &TransportSpec, much: &TransportSpec, volume: Option<u64>| {
        let queue = aqm("drop-tail", r#"{"limit": "99p"}"#);
        let links = (0..79).flat_map(|n| duplex(&format!("{n}"), n, n + 1, "10Mbps", "2ms", queue.clone()));
        let flows = (0..79).map(|n| {
            let transport = if n < 40 { little } else { much };
            let mut flow = flow(format!("{n}"), n, n + 1, transport.clone(), None);
            flow.volume = volume.filter(|_| n < 40).map(Bytes::new);
            flow
        });
        Network {
            nodes: 80,
            links: links.collect(),
            flows: flows.collect(),
            ..Network::new(Duration::from_secs(9))
        }
    };
    for network in [
        network(&cbr("10kbps"), &cbr("1Mbps"), None),
        network(&udp(spurts), &cbr("1Mbps"), None),
        network(&windows("1p"), &windows("40p"), None),
        network(&cbr("1Mbps"), &cbr("1Mbps"), Some(10_000)),
    ] {
        let division = Simulation::division(&network, 2, &Watch::default()).unwrap().unwrap();
        assert!(
            division.routers[0].abs_diff(60) <= 3 || division.routers[1].abs_diff(60) <= 3,
            "{division:?}"
        );
        assert!(division.work.iter().all(|&share| (0.47..0.53).contains(&share)), "{division:?}");
        let schedule = Simulation::schedule(&network, 1, 2, &Watch::default()).unwrap();
        assert!(schedule.critical * 100 < schedule.events * 60, "{schedule:?}");
        assert_same(&on_threads(&network, 2), &on_threads(&network, 1));
    }
    // A slow link is shared by all that it carries, so many flows over it are as much work as one.
    let mut shared = network(&cbr("1Mbps"), &cbr("1Mbps"), None);
    let more = (0..20).map(|n| FlowSpec { name: format!("more {n}"), ..shared.flows[0].clone() });
    shared.flows = more.chain(shared.flows.iter().skip(1).cloned()).collect();
    shared.links[0].rate = "1Mbps".parse().unwrap();
    let division = Simulation::division(&shared, 2, &Watch::default()).unwrap().unwrap();
    assert!(division.routers.iter().all(|&routers| routers.abs_diff(40) <= 2), "{division:?}");
}

#[test]
fn a_schedule_counts_what_the_busiest_part_of_each_round_has() {
    let network = grid();
    let schedule = |parts| Simulation::schedule(&network, 1, parts, &Watch::default()).unwrap();
    let two = schedule(2);
    assert_eq!(two.events, on_threads(&network, 2).events);
    assert!(two.critical <= two.events && 2 * two.critical >= two.events, "{two:?}");
    let four = schedule(4);
    assert!(4 * four.critical >= four.events && four.critical < two.critical, "{four:?}, {two:?}");
    let lookahead = Simulation::division(&network, 2, &Watch::default()).unwrap().unwrap().lookahead;
    let most = network.duration.as_nanos() / lookahead.as_nanos() + 2;
    assert!(two.rounds <= most && two.rounds > most / 4, "{two:?}");
    assert_eq!(schedule(2), two);
}

#[test]
fn routers_that_share_a_meter_stay_in_one_part() {
    let mut network = ring(4, &aqm("drop-tail", r#"{"limit": "9p"}"#).into(), Vec::new());
    network.shared_meters = vec![SharedMeter { name: "all".into(), params: profile("1Mbps") }];
    network.flows = (0..2).map(|n| flow(format!("{n}"), n, 3, transports()[0].clone(), None)).collect();
    network.flows.iter_mut().for_each(|flow| flow.marking = Marking::Edge(0));
    assert_eq!(
        Simulation::run_divided(&network, 1, &[0, 1, 1, 1]),
        Err(Failure::Undivided(OneThread::Undivided))
    );
    assert_same(&Simulation::run_divided(&network, 1, &[0, 0, 1, 1]).unwrap(), &whole(&network, 1));
}

#[test]
fn a_divided_run_ends_as_soon_as_it_is_told_to() {
    let network = Network { duration: Duration::from_secs(1_000_000), ..grid() };
    let watch = Watch::default();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| Simulation::run_on_threads(&network, 1, None, 2, &watch).map(|_| ()));
        while watch.under_way() == 0.0 && !run.is_finished() {
            std::thread::yield_now();
        }
        assert!(watch.under_way() < 0.1, "it has hardly begun");
        watch.stop();
        assert_eq!(run.join().unwrap(), Err(Failure::Stopped));
    });
}
