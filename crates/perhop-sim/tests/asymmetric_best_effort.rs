//! Asymmetric Best-Effort in whole runs: what must hold of every packet, whatever the traffic.

use crate::common::{aqm, duplex, flow, scheduler, tcp};
use perhop_core::abe::Service;
use perhop_core::measure::{ClassOutcome, LinkOutcome};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Color, Duration, Instant};
use perhop_sim::{FlowSpec, Network, Outcome, Simulation, TransportSpec};

/// The paper's router; 1000-byte packets on 5 Mbit/s take 1.6 ms.
const RED: &str = r#""thresholds": "0/40/0.2", "limit": "60p", "weight": 0.02, "wait": false"#;
const PACKET: Duration = Duration::from_nanos(1_600_000);

fn abe() -> SchedulerParams {
    abe_with("")
}

fn abe_with(extra: &str) -> SchedulerParams {
    let rule = format!(r#"{{"aqm": "abe", {RED}, "green-limit": "10p" {extra}}}"#);
    scheduler(&format!(r#"{{"scheduler": "edf", "blue": "100ms", "rule": {rule}}}"#))
}

fn flat() -> SchedulerParams {
    aqm("red", &format!("{{{RED}}}")).into()
}

fn reno(name: &str, service: Service) -> FlowSpec {
    let mut flow = flow(name.into(), 0, 1, tcp(r#"{"tcp": "reno"}"#), None);
    flow.dscp = service.dscp();
    flow
}

fn cbr(name: &str, service: Service, rate: &str) -> FlowSpec {
    let params = format!(r#"{{"udp": "cbr", "rate": "{rate}", "jitter": 0.3}}"#);
    let mut flow = reno(name, service);
    flow.access.as_mut().unwrap().rate = "100Mbps".parse().unwrap();
    flow.transport = TransportSpec::Udp(serde_json::from_str(&params).unwrap());
    flow
}

fn run(queue: SchedulerParams, flows: Vec<FlowSpec>) -> Outcome {
    let network = Network {
        nodes: 2,
        links: duplex("bottleneck", 0, 1, "5Mbps", "18ms", queue).into(),
        flows,
        probe_interval: Some(Duration::from_millis(500)),
        ..Network::new(Duration::from_secs(60))
    };
    let mut simulation = Simulation::new(&network, 5).unwrap();
    simulation.run_to_end();
    simulation.finish().unwrap()
}

fn class(link: &LinkOutcome, service: Service) -> &ClassOutcome {
    link.classes.iter().find(|class| class.name == service.name()).unwrap()
}

fn longest(class: &ClassOutcome) -> Duration {
    class.delays.largest.into_iter().max().unwrap()
}

#[test]
fn all_blue_is_flat_best_effort_packet_by_packet() {
    let flows = || (0..10).map(|n| reno(&format!("{n}"), Service::Blue)).collect::<Vec<_>>();
    let (ours, theirs) = (run(abe(), flows()), run(flat(), flows()));
    assert_eq!(ours.flows, theirs.flows);
    assert_eq!(ours.series.throughput_bps, theirs.series.throughput_bps);
    assert_eq!(ours.series.queues[0].packets, theirs.series.queues[0].packets);
    let (ours, theirs) = (&ours.links[0], &theirs.links[0]);
    assert_eq!((&ours.counters, ours.waiting), (&theirs.counters, theirs.waiting));
    assert_eq!((&ours.delays, ours.mean_queue_packets), (&theirs.delays, theirs.mean_queue_packets));
    assert!(ours.counters.dropped_of(Color::Yellow) > 100);
}

#[test]
fn green_never_waits_longer_than_its_limit_allows() {
    let mut flows: Vec<FlowSpec> = (0..5).map(|n| reno(&format!("blue {n}"), Service::Blue)).collect();
    flows.extend((0..5).map(|n| reno(&format!("green {n}"), Service::Green)));
    flows.extend((0..5).map(|n| cbr(&format!("cbr {n}"), Service::Green, "1Mbps")));
    // N_g queued before it, and one in transmission; blue waits longer.
    let bound = PACKET.saturating_mul(11);
    let link = &run(abe(), flows.clone()).links[0];
    let (green, blue) = (class(link, Service::Green), class(link, Service::Blue));
    assert!(longest(green) <= bound, "{:?}", longest(green));
    assert!(longest(green) > PACKET.saturating_mul(7), "the limit is at work: {:?}", longest(green));
    assert!(longest(blue) > bound);
    let sum = |counts: [u64; 3]| counts.iter().sum::<u64>();
    assert_eq!(sum(link.counters.arrived), sum(green.counters.arrived) + sum(blue.counters.arrived));
    // Duplicate scheduling keeps its bound exactly.
    let dsd =
        scheduler(r#"{"scheduler": "dsd", "bound": "10ms", "rule": {"aqm": "drop-tail", "limit": "60p"}}"#);
    let link = &run(dsd, flows).links[0];
    let green = longest(class(link, Service::Green));
    assert!(green <= Duration::from_millis(10) && green > Duration::from_millis(8), "{green:?}");
    assert!(longest(class(link, Service::Blue)) > Duration::from_millis(20));
}

#[test]
fn overload_in_one_service_starves_neither() {
    let share = |outcome: &Outcome, flow: usize| outcome.flows[flow].throughput_bps / 5e6;
    let flood =
        |green: &str, blue: &str| vec![cbr("green", Service::Green, green), cbr("blue", Service::Blue, blue)];
    let edf = || scheduler(r#"{"scheduler": "edf", "rule": {"aqm": "drop-tail", "limit": "60p"}}"#);
    for queue in [edf(), abe()] {
        // Green alone would fill the link three times over, and goes first; blue still gets through.
        let outcome = run(queue, flood("15Mbps", "2Mbps"));
        assert!(share(&outcome, 0) > 0.05 && share(&outcome, 1) > 0.05, "{:?}", outcome.flows);
        // A blue packet waits no longer than D and what was in the queue before it.
        let most = Duration::from_millis(100) + PACKET.saturating_mul(60);
        assert!(longest(class(&outcome.links[0], Service::Blue)) <= most);
    }
    // Blue alone would, too: green gets through, soon.
    let outcome = run(edf(), flood("2Mbps", "15Mbps"));
    assert!(share(&outcome, 0) > 0.05 && share(&outcome, 1) > 0.05, "{:?}", outcome.flows);
}

#[test]
fn much_blue_cuts_green_off_as_published_unless_its_losses_are_bounded() {
    let mut flows: Vec<FlowSpec> = (0..30).map(|n| reno(&format!("blue {n}"), Service::Blue)).collect();
    flows.push(cbr("green", Service::Green, "0.5Mbps"));
    let got = |queue| run(queue, flows.clone()).flows[30].throughput_bps / 0.5e6;
    let (published, bounded) = (got(abe()), got(abe_with(r#", "green-most": 0.5"#)));
    assert!(published < 0.1 && bounded > 0.4, "{published} {bounded}");
}

#[test]
fn the_books_of_the_classes_are_seen_over_time() {
    let flows = vec![reno("blue", Service::Blue), cbr("green", Service::Green, "1Mbps")];
    let series = &run(abe(), flows).series;
    let queue = &series.queues[0];
    assert_eq!(queue.classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(), ["blue", "green"]);
    for class in &queue.classes {
        assert_eq!(class.packets.len(), series.times.len());
        assert!(class.arrived.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(class.arrived.last() > Some(&100.0));
    }
    let gauges: Vec<&str> = queue.gauges.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(gauges, ["average total", "alpha", "alpha_m"]);
    assert_eq!(series.times[0], Instant::from_nanos(500_000_000));
}
