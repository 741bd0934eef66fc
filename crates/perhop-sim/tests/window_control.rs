//! Window control of a path in whole runs: what markers and queues hear, and when.

use crate::common::{aqm, duplex, flow, meter, tcp};
use perhop_core::control::WindowControl;
use perhop_core::{Color, Duration, Instant};
use perhop_sim::{Engine, FlowSpec, Marking, Network, NodeId, Outcome, PathSpec, Simulation};

const DWRED: &str = r#"{"out": "40/160/0.1", "limit": "400p"}"#;

/// Three hops of 30 Mbit/s and 5 ms each, ten flows with contracts for 1, 3 or 5 Mbit/s, a round trip of 40
/// ms.
fn path(control: &str, marker: &str) -> Network {
    let rates = [1, 1, 1, 3, 3, 3, 3, 5, 5, 5];
    let flows = rates.iter().enumerate().map(|(n, rate)| {
        let mut flow: FlowSpec = flow(format!("{n}"), 0, 3, tcp(r#"{"tcp": "newreno"}"#), None);
        let access = flow.access.as_mut().unwrap();
        (access.rate, access.delay) = ("100Mbps".parse().unwrap(), "2.5ms".parse().unwrap());
        flow.egress.clone_from(&flow.access);
        flow.path = Some(0);
        flow.reserved = Some(format!("{rate}Mbps").parse().unwrap());
        flow.service = flow.reserved;
        flow.marking = Marking::Ingress(meter(marker, &format!(r#"{{"rate": "{rate}Mbps"}}"#)));
        flow
    });
    let hop = |n: u32| duplex(&format!("hop {n}"), n, n + 1, "30Mbps", "5ms", aqm("dwred", DWRED));
    Network {
        nodes: 4,
        links: (0..3).flat_map(hop).collect(),
        paths: vec![PathSpec {
            name: "lsp".into(),
            label: 1,
            forward: vec![0, 2, 4],
            backward: vec![5, 3, 1],
            control: Some(serde_json::from_str::<WindowControl>(control).unwrap()),
        }],
        flows: flows.collect(),
        probe_interval: Some(Duration::from_millis(40)),
        ..Network::new(Duration::from_secs(20))
    }
}

fn run(network: &Network, engine: Engine) -> Outcome {
    let mut simulation = Simulation::on_engine(network, 3, engine).unwrap();
    simulation.run_to_end();
    simulation.finish().unwrap()
}

/// The samples of `max_th` at a queue of the path.
fn max_th(outcome: &Outcome, queue: usize) -> &[f64] {
    &outcome.series.queues[queue].gauges.iter().find(|(name, _)| name == "max_th").unwrap().1
}

#[test]
fn ways_of_serving_and_slices_agree() {
    let measured = r#""measured", "round-trips": 2"#;
    for (interval, window) in
        [(r#""40ms""#, "sender"), (r#""40ms""#, "in-flight"), (r#""40ms""#, "passed"), (measured, "sender")]
    {
        let network =
            path(&format!(r#"{{"interval": {interval}, "window": "{window}", "loss": 0.1}}"#), "twam");
        let whole = run(&network, Engine::Batched);
        let reference = run(&network, Engine::Reference);
        assert_eq!((&whole.flows, &whole.links), (&reference.flows, &reference.links));
        assert_eq!(format!("{:?}", whole.series), format!("{:?}", reference.series));
        let mut sliced = Simulation::new(&network, 3).unwrap();
        (1..=200).for_each(|slice| sliced.run_until(Instant::from_nanos(slice * 100_000_000)));
        assert_eq!(format!("{whole:?}"), format!("{:?}", sliced.finish().unwrap()));
        assert!(whole.links[0].counters.dropped_of(Color::Yellow) > 0);
    }
}

#[test]
fn queues_hear_of_the_windows_after_their_distance_from_the_ingress() {
    // Looks at 40 ms, 80 ms …; the probe looks just after, before the second queue (5 ms away) has heard.
    let mut network = path(r#"{"interval": "40ms"}"#, "twam");
    network.probe_interval = Some(Duration::from_millis(40));
    let outcome = run(&network, Engine::Batched);
    let flows = network.flows.len();
    for look in 1..outcome.series.times.len() {
        let row = |look: usize| &outcome.series.seen_packets[look * flows..(look + 1) * flows];
        let sum = |look: usize| row(look).iter().sum::<f64>().max(1.0);
        assert_eq!(max_th(&outcome, 0)[look], sum(look), "the ingress hears at once");
        assert_eq!(max_th(&outcome, 1)[look], sum(look - 1), "the next router a link later");
        assert_eq!(max_th(&outcome, 2)[look], sum(look - 1));
    }
}

#[test]
fn looks_follow_the_measured_round_trip() {
    // One flow of one packet a round trip finds every queue empty. The segment of 1000 B passes three links
    // of 30 Mbit/s in 0.267 ms each and 5 ms each, the receiver's wire of 100 Mbit/s in 0.08 + 2.5 ms; the
    // acknowledgement of 40 B comes back to the ingress in 2.5 + 15 ms and 0.0032 + 3 x 0.0107 ms: 35.9152
    // ms, and each wire rounds up to whole ns.
    let mut network = path(r#"{"interval": "measured"}"#, "twam");
    network.flows.truncate(1);
    network.flows[0].transport = tcp(r#"{"tcp": "newreno", "window": "1p"}"#);
    network.probe_interval = None;
    let mut simulation = Simulation::new(&network, 3).unwrap();
    simulation.run_until(Instant::from_nanos(5_000_000_000));
    let trip = simulation.round_trips().next().unwrap().unwrap();
    assert!((35_915_200..35_915_208).contains(&trip.as_nanos()), "{trip}");
}

#[test]
fn a_queue_that_two_paths_share_hears_of_both() {
    // The other path comes from further away, so its words are always older than the near one's of the same
    // number.
    let mut network = path(r#"{"interval": "40ms"}"#, "twam");
    network.nodes = 5;
    network.links.extend(duplex("far", 4, 1, "30Mbps", "60ms", aqm("dwred", DWRED)));
    let near = network.paths[0].clone();
    network.paths.push(PathSpec {
        name: "far".into(),
        label: 2,
        forward: vec![6, 2, 4],
        backward: vec![5, 3, 7],
        ..near
    });
    for flow in &mut network.flows[5..] {
        (flow.path, flow.from) = (Some(1), NodeId(4));
    }
    let outcome = run(&network, Engine::Batched);
    let row = |look: usize| &outcome.series.seen_packets[look * 10..(look + 1) * 10];
    for look in 3..outcome.series.times.len() {
        // At 40 ms × look: the near path's last word is of the look before, the far one's of two before.
        let (near, far): (f64, f64) = (row(look - 1)[..5].iter().sum(), row(look - 2)[5..].iter().sum());
        assert_eq!(max_th(&outcome, 1)[look], (near + far).max(1.0));
    }
}

#[test]
fn what_is_lost_changes_nothing() {
    let outcome = run(&path(r#"{"interval": "40ms", "loss": 1}"#, "twam"), Engine::Batched);
    assert!((0..3).all(|queue| max_th(&outcome, queue).iter().all(|&packets| packets == 160.0)));
    let heard = run(&path(r#"{"interval": "40ms", "loss": 0.5}"#, "twam"), Engine::Batched);
    assert!((0..3).all(|queue| max_th(&heard, queue).iter().any(|&packets| packets != 160.0)));
}

#[test]
fn the_ingress_estimates_the_window_that_the_sender_has() {
    let error = |window: &str| {
        let control = format!(r#"{{"interval": "40ms", "window": "{window}"}}"#);
        let outcome = run(&path(&control, "twam"), Engine::Batched);
        let series = &outcome.series;
        let settled = series.times.iter().filter(|at| **at < Instant::from_nanos(5_000_000_000)).count() * 10;
        let pairs = series.seen_packets.iter().zip(&series.window_packets).skip(settled);
        let (mut sum, mut count) = (0.0, 0.0);
        pairs.for_each(|(seen, window)| {
            sum += (seen - window.floor()).abs() / window;
            count += 1.0;
        });
        sum / count
    };
    assert!(error("sender") < 0.05, "{}", error("sender"));
    assert!(error("in-flight") < 0.25, "{}", error("in-flight"));
}

#[test]
fn marks_follow_the_windows_in_proportion_to_what_was_sold() {
    let outcome = run(&path(r#"{"interval": "40ms"}"#, "twam"), Engine::Batched);
    let rates: Vec<f64> = outcome.flows.iter().map(|flow| flow.throughput_bps / 1e6).collect();
    let class = |range: std::ops::Range<usize>| {
        let count = range.len() as f64;
        rates[range].iter().sum::<f64>() / count
    };
    let (small, middle, large) = (class(0..3), class(3..7), class(7..10));
    assert!(small < middle && middle < large, "{small} {middle} {large}");
    let marked = |color: Color| outcome.flows.iter().map(|flow| flow.marked[color.index()]).sum::<u64>();
    assert!(marked(Color::Green) > marked(Color::Yellow) && marked(Color::Yellow) > 0);
}
