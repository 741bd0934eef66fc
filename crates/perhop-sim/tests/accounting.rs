//! Measures of a run, and properties on which the batched engine relies.

use crate::common::{aqm, duplex, flow, run_alike, tcp};
use perhop_core::{Duration, Instant};
use perhop_sim::{Engine, FlowOutcome, Network, Simulation};

#[test]
fn a_mean_round_trip_needs_a_sample() {
    let mut flow = FlowOutcome::default();
    assert_eq!(flow.mean_rtt(), None);
    flow.sender.rtt_samples = (4, 1_000);
    assert_eq!((flow.mean_rtt(), flow.mean_timed_rtt()), (Some(Duration::from_nanos(250)), None));
}

#[test]
fn the_round_trip_of_any_sender_is_that_of_all_its_packets() {
    // Limited by the window of 60 packets of 8 ms each on the link, after slow start: a path of 40 ms and a
    // standing queue. All senders send the same packets at the same times, so the measure is the same, though
    // some time one segment a round trip and some use SACK.
    let of = |sender: &str| {
        let transport = tcp(&format!(
            r#"{{"window": "60p", "packet": "1kB", "ack": "40B", "handshake": true, {sender}}}"#
        ));
        let network = Network {
            nodes: 2,
            links: duplex("bottleneck", 0, 1, "1Mbps", "20ms", aqm("drop-tail", r#"{"limit": "200p"}"#))
                .into(),
            flows: vec![flow("only".into(), 0, 1, transport, None)],
            ..Network::new(Duration::from_secs(30))
        };
        let outcome = run_alike(&network);
        let sender = outcome.flows[0].sender.clone();
        assert_eq!(sender.retransmitted, 0);
        (sender.sent, sender.rtt_samples, sender.timed_rtt_samples.0)
    };
    let all = [
        r#""tcp": "newreno""#,
        r#""tcp": "reno""#,
        r#""tcp": "newreno", "sack": true"#,
        r#""tcp": "newreno", "sack": true, "loss-detection": "rack""#,
        r#""tcp": "newreno", "congestion": "cubic""#,
    ]
    .map(of);
    let (sent, (samples, sum), timed) = all[0];
    assert!(samples > 3_600 && sent - samples <= 61 && timed < samples / 40, "{all:?}");
    assert!((440..485).contains(&(sum / u128::from(samples) / 1_000_000)), "{sum} / {samples}");
    assert!(all.iter().all(|&(_, one, _)| one == (samples, sum)), "{all:?}");
}

#[test]
fn a_way_is_not_clear_while_answers_wait_for_the_link_back() {
    // Six hundred openings leave the bottleneck 64 us apart. Each ACK takes 1.6 ms on the way back, as long
    // as a data packet on the way there, so the queue that they make is still there when all connections are
    // open.
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
