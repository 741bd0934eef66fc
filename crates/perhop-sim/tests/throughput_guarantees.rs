//! Yeom and Reddy's schemes in whole runs: where they must coincide, and how they are driven.

use crate::common::{aqm, meter, tcp, yeom};
use perhop_core::{Color, Duration};
use perhop_sim::{Engine, Marking, Network, Outcome, SharedMeter, Simulation};

const RIO: &str = r#"{"in": "50/100/0.02", "total": "20/40/0.5", "limit": "200p"}"#;
const THREE: &str =
    r#"{"in": "50/100/0.02", "out-in": "30/50/0.5", "out-out": "20/40/0.5", "limit": "200p"}"#;

fn run(network: &Network, engine: Engine) -> Outcome {
    let mut simulation = Simulation::on_engine(network, 1, engine).unwrap();
    simulation.run_to_end();
    simulation.finish().unwrap()
}

/// Runs it both ways of serving ports, which must agree.
fn outcome(network: &Network) -> Outcome {
    let (batched, reference) = (run(network, Engine::Batched), run(network, Engine::Reference));
    assert_eq!(batched.flows, reference.flows);
    assert_eq!(batched.links, reference.links);
    batched
}

fn delivered(outcome: &Outcome) -> Vec<u64> {
    outcome.flows.iter().map(|flow| flow.delivered_packets).collect()
}

fn tsw(rate: &str) -> perhop_core::meter::MeterParams {
    meter("tsw", &format!(r#"{{"rate": "{rate}"}}"#))
}

#[test]
fn three_precedences_with_both_windows_alike_are_rio_to_the_bit() {
    let ten = |rate: &str| meter("tsw", &format!(r#"{{"rate": "{rate}", "window": "10s"}}"#));
    let both = |rate: &str| meter("three-precedence", &format!(r#"{{"rate": "{rate}", "window": "10s"}}"#));
    let rio = outcome(&yeom("12Mbps", aqm("rio", RIO), "reno", ten));
    let mut network = yeom("12Mbps", aqm("rio-three", THREE), "reno", both);
    // What is best effort is OUT-OUT.
    network.flows.iter_mut().for_each(|flow| flow.color = Color::Red);
    let three = outcome(&network);
    assert_eq!(delivered(&rio), delivered(&three));
    assert!(three.flows.iter().all(|flow| flow.marked[1] == 0), "no packet is OUT-IN");
}

#[test]
fn three_precedences_with_a_short_window_are_not_rio() {
    let three = |rate: &str| meter("three-precedence", &format!(r#"{{"rate": "{rate}"}}"#));
    let mut network = yeom("8Mbps", aqm("rio-three", THREE), "reno", three);
    network.flows.iter_mut().for_each(|flow| flow.color = Color::Red);
    let found = outcome(&network);
    assert_ne!(delivered(&found), delivered(&outcome(&yeom("8Mbps", aqm("rio", RIO), "reno", tsw))));
    assert!(found.flows[9].marked.iter().all(|&packets| packets > 0), "{:?}", found.flows[9].marked);
}

#[test]
fn two_windows_without_a_reservation_are_reno_packet_by_packet() {
    let none = |network: &mut Network| {
        network.flows.iter_mut().for_each(|flow| {
            (flow.marking, flow.service, flow.reserved) = (Marking::None, None, None);
        });
    };
    let mut reno = yeom("12Mbps", aqm("rio", RIO), "reno", tsw);
    let mut two = yeom("12Mbps", aqm("rio", RIO), "two-windows", tsw);
    assert_ne!(outcome(&reno).flows, outcome(&two).flows, "with reservations they differ");
    none(&mut reno);
    none(&mut two);
    assert_eq!(outcome(&reno).flows, outcome(&two).flows);
}

#[test]
fn inverse_rate_without_reservations_is_rio() {
    let run_with = |name| {
        let mut network = yeom("12Mbps", aqm(name, RIO), "reno", tsw);
        network.flows.iter_mut().for_each(|flow| flow.service = None);
        outcome(&network)
    };
    assert_eq!(run_with("rio").flows, run_with("inverse-rate").flows);
    assert_ne!(
        outcome(&yeom("12Mbps", aqm("rio", RIO), "reno", tsw)).flows,
        outcome(&yeom("12Mbps", aqm("inverse-rate", RIO), "reno", tsw)).flows,
    );
}

#[test]
fn feedback_keeps_senders_from_sending_out_packets() {
    let share_out = |delay: Option<Duration>| {
        let mut network = yeom("12Mbps", aqm("rio", RIO), "reno", tsw);
        for flow in network.flows.iter_mut().filter(|flow| flow.service.is_some()) {
            flow.out_feedback = delay;
        }
        let flow = outcome(&network).flows[8].marked;
        flow[1] as f64 / (flow[0] + flow[1]) as f64
    };
    let (none, at_once, late) =
        (share_out(None), share_out(Some(Duration::ZERO)), share_out(Some(Duration::from_millis(40))));
    assert!(at_once < 0.8 * none, "{at_once} of {none}");
    assert!(late < none && late != at_once, "{late} of {none}");
}

#[test]
fn feedback_in_integers() {
    // A snapshot: news of OUT packets reach each sender at its time, from its own meter and from one at the
    // edge.
    let mut network = yeom("12Mbps", aqm("rio", RIO), "reno", tsw);
    for (number, flow) in network.flows.iter_mut().enumerate().filter(|(_, flow)| flow.service.is_some()) {
        flow.out_feedback = Some(Duration::from_millis(7 * number as u64));
    }
    let host = delivered(&outcome(&network));
    network.shared_meters = vec![SharedMeter { name: "house".into(), params: tsw("3Mbps") }];
    network.flows.iter_mut().step_by(3).for_each(|flow| flow.marking = Marking::Edge(0));
    let edge = delivered(&outcome(&network));
    assert_eq!(host, [5485, 5880, 1297, 1238, 2395, 2496, 4210, 4208, 7863, 7894]);
    assert_eq!(edge, [9271, 7060, 1224, 2528, 2714, 3091, 2217, 4208, 7931, 2314]);
}

#[test]
fn flows_that_share_a_profile_share_its_rate() {
    // Three greedy flows and one profile of 3 Mbit/s on an idle 12 Mbit/s link: together they send 3 Mbit/s
    // IN.
    let mut network = yeom("12Mbps", aqm("rio", RIO), "reno", tsw);
    network.flows.truncate(3);
    network.shared_meters = vec![SharedMeter { name: "house".into(), params: tsw("3Mbps") }];
    for (number, flow) in network.flows.iter_mut().enumerate() {
        flow.marking = Marking::Edge(0);
        flow.service = Some("3Mbps".parse().unwrap());
        flow.reserved = Some("1Mbps".parse().unwrap());
        flow.transport = tcp(r#"{"tcp": "two-windows"}"#);
        flow.out_feedback = (number == 2).then_some(Duration::ZERO);
    }
    let found = outcome(&network);
    let packets_in: u64 = found.flows.iter().map(|flow| flow.marked[0]).sum();
    let rate = packets_in as f64 * 8000.0 / 29.5;
    assert!((rate / 3e6 - 1.0).abs() < 0.12, "{rate}");
    let offered: u64 = found.flows.iter().flat_map(|flow| flow.marked).sum();
    let sent: u64 = found.flows.iter().map(|flow| flow.sender.sent).sum();
    assert!(sent - offered < 300, "each packet that passed the edge was metered: {offered} of {sent}");
    // The feedback of an edge meter reaches its flow alone.
    assert!(found.flows[2].throughput_bps < 0.9 * found.flows[0].throughput_bps);
}
