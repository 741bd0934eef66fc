//! What keeps TCP senders from sending more, and for how long, against times worked out by hand, in both
//! engines.

use crate::common::{aqm, duplex, flow, tcp};
use perhop_core::{Bytes, Duration, Instant, Probability};
use perhop_sim::transport::limits::{Limit, LimitTimes};
use perhop_sim::{Engine, FlowOutcome, FlowSpec, Network, Simulation};

/// What became of a flow over 8 Mbit/s, on which 1000 bytes take 1 ms, and 50 ms, in ten seconds.
fn run(transport: &str, volume: Option<u64>, limit: &str, warmup: Duration) -> FlowOutcome {
    run_with(transport, volume, limit, warmup, 0.0)
}

/// What became of a flow over 8 Mbit/s and 50 ms in ten seconds, on a link that loses this share of the
/// packets.
fn run_with(transport: &str, volume: Option<u64>, limit: &str, warmup: Duration, loss: f64) -> FlowOutcome {
    let only = FlowSpec {
        access: None,
        egress: None,
        start: (Instant::ZERO, Instant::ZERO),
        volume: volume.map(Bytes::new),
        ..flow("only".into(), 0, 1, tcp(transport), None)
    };
    let queue = aqm("drop-tail", &format!(r#"{{"limit": "{limit}"}}"#));
    let mut links = duplex("link", 0, 1, "8Mbps", "50ms", queue);
    links[0].medium.loss = (loss > 0.0).then(|| Probability::new(loss).unwrap());
    let network = Network {
        nodes: 2,
        links: links.into(),
        flows: vec![only],
        warmup,
        ..Network::new(Duration::from_secs(10))
    };
    let [batched, reference] = [Engine::Batched, Engine::Reference].map(|engine| {
        let mut simulation = Simulation::on_engine(&network, 1, engine).unwrap();
        simulation.run_to_end();
        simulation.finish().unwrap().flows.remove(0)
    });
    assert_eq!(batched, reference);
    batched
}

fn micros(times: &LimitTimes) -> [u64; 5] {
    assert_eq!(times.of(Limit::Buffer), Duration::ZERO);
    [Limit::Idle, Limit::Application, Limit::Receiver, Limit::Congestion, Limit::Recovery]
        .map(|limit| times.of(limit).as_nanos() / 1000)
}

const RENO: &str = r#""tcp": "newreno", "packet": "1000B", "ack": "40B", "window": "20p""#;

#[test]
fn a_window_of_twenty_packets_holds_a_flow_from_the_nineteenth_ack_on() {
    // A round trip takes 1 + 50 + 0.04 + 50 ms. Slow start has 20 segments outstanding with the 19th ACK, the
    // fourth of the sixth round: 5 x 101.04 + 3 ms.
    let outcome = run(&format!("{{{RENO}}}"), None, "99p", Duration::ZERO);
    assert_eq!(micros(&outcome.sender.limits), [0, 0, 9_491_800, 508_200, 0]);
    assert_eq!(outcome.receiver_window, Some(20_000));
    let later = run(&format!("{{{RENO}}}"), None, "99p", Duration::from_secs(5));
    assert_eq!(micros(&later.sender.limits), [0, 0, 5_000_000, 0, 0]);
}

#[test]
fn a_send_buffer_smaller_than_the_receivers_window_holds_a_flow_in_its_place() {
    // As above, with a window of 40 packets and room for 20.
    let transport = format!(r#"{{{RENO}, "send-buffer": "20p"}}"#).replace("20p\", \"send", "40p\", \"send");
    let outcome = run(&transport, None, "99p", Duration::ZERO);
    let times = outcome.sender.limits;
    assert_eq!(times.of(Limit::Buffer).as_nanos(), 9_491_800_000);
    assert_eq!(times.of(Limit::Congestion).as_nanos(), 508_200_000);
    assert_eq!((outcome.receiver_window, outcome.buffer), (Some(40_000), Some(20_000)));
}

#[test]
fn a_paced_sender_is_held_by_the_window_that_it_fills_in_each_round_trip() {
    // 101 packets fill the path.
    let paced = [
        r#""congestion": "reno", "pacing": "window""#,
        r#""congestion": "cubic", "pacing": "window", "delayed-ack": "40ms""#,
        r#""congestion": "bbr""#,
        r#""congestion": "bbr3""#,
    ];
    for control in paced {
        let share = |keys: &str, limit| {
            let transport = format!(r#"{{"tcp": "linux", "packet": "1000B", {control}, {keys}}}"#);
            run(&transport, None, "99p", Duration::from_secs(4)).sender.limits.share(limit).unwrap()
        };
        for most in ["20p", "60p", "69p", "98p"] {
            let window = share(&format!(r#""window": "{most}""#), Limit::Receiver);
            assert!(window > 0.75, "{control} {most}: {window}");
            let buffer = share(&format!(r#""send-buffer": "{most}""#), Limit::Buffer);
            assert!(buffer > 0.75, "{control} {most}: {buffer}");
        }
        let wide = share(r#""window": "400p""#, Limit::Receiver);
        assert!(wide < 0.01, "{control}: {wide}");
    }
}

#[test]
fn a_connection_that_is_being_opened_is_idle() {
    // A SYN of 40 bytes and its answer take 2 x 50.04 ms.
    for recovery in [r#""sack": false"#, r#""sack": true"#, r#""sack": true, "loss-detection": "rack""#] {
        let outcome =
            run(&format!(r#"{{{RENO}, "handshake": true, {recovery}}}"#), None, "99p", Duration::ZERO);
        assert_eq!(micros(&outcome.sender.limits), [100_080, 0, 9_391_720, 508_200, 0], "{recovery}");
        // The answer to the SYN does not wait for a second packet.
        let delayed = format!(r#"{{{RENO}, "handshake": true, {recovery}, "delayed-ack": "200ms"}}"#);
        let outcome = run(&delayed, None, "99p", Duration::ZERO);
        assert_eq!(micros(&outcome.sender.limits)[0], 100_080, "{recovery}");
    }
}

#[test]
fn a_flow_that_has_sent_all_waits_for_its_application_until_that_is_acknowledged() {
    // Ten packets leave at once; the last is acknowledged after 10 + 50 + 0.04 + 50 ms, and the flow is over.
    let transport = format!(r#"{{{RENO}, "initial-window": "10p"}}"#);
    let outcome = run(&transport, Some(10_000), "99p", Duration::ZERO);
    assert_eq!(micros(&outcome.sender.limits), [0, 110_040, 0, 0, 0]);
}

#[test]
fn a_timeout_is_followed_by_recovery() {
    // The third of three packets finds the queue full. A round trip of ten ticks gives a timeout of 10 + 4 x
    // 5 ticks, which begins again with the ACK of the second packet, at 102.04 ms. The retransmission takes a
    // round trip.
    let transport = format!(r#"{{{RENO}, "initial-window": "3p", "tick": "10ms"}}"#);
    let outcome = run(&transport, Some(3000), "1p", Duration::ZERO);
    assert_eq!(micros(&outcome.sender.limits), [0, 402_040, 0, 0, 101_040]);
    assert_eq!((outcome.sender.timeouts, outcome.sender.retransmitted), (1, 1));
}

#[test]
fn shares_sum_to_one_whatever_happens() {
    for control in ["reno", "cubic", "bbr", "bbr3", "ledbat"] {
        for limit in ["3p", "40p"] {
            let transport = format!(r#"{{"tcp": "linux", "congestion": "{control}", "packet": "1000B"}}"#);
            let outcome = run(&transport, None, limit, Duration::from_secs(1));
            let times = outcome.sender.limits;
            assert_eq!(times.active(), Duration::from_secs(9), "{control} {limit}");
            let shares: f64 = Limit::ALL.iter().filter_map(|limit| times.share(*limit)).sum();
            assert!(
                (shares - 1.0).abs() < 1e-12 && times.of(Limit::Congestion) > Duration::ZERO,
                "{control}"
            );
        }
    }
}

#[test]
fn a_full_window_or_buffer_holds_a_sender_that_repairs_losses_too() {
    // Holes keep cumulative acknowledgements a round trip behind, so that some packet is always under repair.
    let share = |keys: &str, limit| {
        let transport = format!(r#"{{"tcp": "linux", "packet": "1000B", "congestion": "bbr", {keys}}}"#);
        run_with(&transport, None, "999p", Duration::from_secs(3), 0.03).sender.limits.share(limit).unwrap()
    };
    let (window, buffer) = (r#""window": "40p""#, r#""send-buffer": "40p""#);
    assert!(share(window, Limit::Receiver) > 0.7, "{}", share(window, Limit::Receiver));
    assert!(share(buffer, Limit::Buffer) > 0.7, "{}", share(buffer, Limit::Buffer));
    let open = r#""window": "4000p", "send-buffer": "4000p""#;
    assert!(share(open, Limit::Recovery) > 0.7, "{}", share(open, Limit::Recovery));
}

#[test]
fn round_trips_do_not_contain_the_repair_of_losses() {
    // No queue builds up with a window of ten packets: 1 + 50 + 0.04 + 50 ms each, or a packet or two more
    // behind others.
    for (name, sack) in [("newreno", "false"), ("newreno", "true"), ("reno", "false")] {
        let transport = format!(r#"{{"tcp": "{name}", "packet": "1000B", "window": "10p", "sack": {sack}}}"#);
        let outcome = run_with(&transport, None, "99p", Duration::ZERO, 0.03);
        assert!(outcome.sender.retransmitted > 3, "{name}: {}", outcome.sender.retransmitted);
        let mean = outcome.mean_rtt().unwrap().as_secs_f64();
        assert!((0.101..0.106).contains(&mean), "{name}, SACK {sack}: {mean}");
    }
}
