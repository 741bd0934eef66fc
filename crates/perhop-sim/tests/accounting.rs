//! What is measured of a run, and what the batched engine relies on.

use crate::common::{aqm, duplex, flow, tcp};
use perhop_core::{Duration, Instant};
use perhop_sim::{Engine, FlowOutcome, Network, Simulation};

#[test]
fn a_mean_round_trip_needs_a_sample() {
    let mut flow = FlowOutcome::default();
    assert_eq!(flow.mean_rtt(), None);
    flow.sender.rtt_samples = (4, 1_000);
    assert_eq!(flow.mean_rtt(), Some(Duration::from_nanos(250)));
}

#[test]
fn a_way_is_not_clear_while_answers_wait_for_the_link_back() {
    // Six hundred openings leave the bottleneck 64 us apart. Each ACK takes 1.6 ms on the way back, as long as a data
    // packet on the way there, so the queue that they make is still there when all connections are open.
    let transport = tcp(r#"{"tcp": "reno", "packet": "1000B", "ack": "40B", "handshake": true}"#);
    let flows = (0..600).map(|n| {
        let mut flow = flow(format!("{n}"), 0, 1, transport.clone(), None);
        (flow.access, flow.start) = (None, (Instant::ZERO, Instant::ZERO));
        flow
    });
    let mut links = duplex("bottleneck", 0, 1, "5Mbps", "1ms", aqm("drop-tail", r#"{"limit": "900p"}"#));
    links[1].rate = "200kbps".parse().unwrap();
    let network = Network {
        nodes: 2,
        links: links.into(),
        flows: flows.collect(),
        ..Network::new(Duration::from_secs(6))
    };
    let [one, other] = [Engine::Batched, Engine::Reference].map(|engine| {
        let mut simulation = Simulation::on_engine(&network, 1, engine).unwrap();
        simulation.run_to_end();
        simulation.finish().unwrap()
    });
    assert_eq!((one.flows, one.links), (other.flows, other.links));
}
