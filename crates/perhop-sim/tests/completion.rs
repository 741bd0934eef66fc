//! Flow completion times and slowdowns, against values worked out by hand, in both engines.

use crate::common::{aqm, duplex, every_transport, flow, rap, tcp, tfrc, udp};
use perhop_core::{Bytes, Duration, Instant};
use perhop_sim::{AccessSpec, Completion, Engine, FlowSpec, Network, NodeId, Simulation, TransportSpec};
use proptest::prelude::*;

/// What became of each flow's volume; both engines say the same.
fn completions(network: &Network, seed: u64) -> Vec<Completion> {
    let [batched, reference] = [Engine::Batched, Engine::Reference].map(|engine| {
        let mut simulation = Simulation::on_engine(network, seed, engine).unwrap();
        simulation.run_to_end();
        simulation.finish().unwrap().flows
    });
    assert_eq!(batched, reference);
    batched.iter().map(|flow| flow.completion).collect()
}

fn micros(micros: u64) -> Duration {
    Duration::from_nanos(micros * 1000)
}

fn at(span: Duration) -> Instant {
    Instant::ZERO + span
}

/// A flow between hosts at their routers that begins half a second after the run.
fn sized(transport: TransportSpec, volume: u64) -> FlowSpec {
    let start = at(Duration::from_millis(500));
    FlowSpec {
        access: None,
        egress: None,
        start: (start, start),
        volume: Some(Bytes::new(volume)),
        ..flow("only".into(), 0, 1, transport, None)
    }
}

/// One flow over a link of 8 Mbit/s, on which 1000 bytes take 1 ms, and 10 ms.
fn alone(flow: FlowSpec, limit: &str) -> Network {
    let queue = aqm("drop-tail", &format!(r#"{{"limit": "{limit}"}}"#));
    Network {
        nodes: 2,
        links: duplex("link", 0, 1, "8Mbps", "10ms", queue).into(),
        flows: vec![flow],
        ..Network::new(Duration::from_secs(5))
    }
}

fn paced(rate: &str) -> TransportSpec {
    udp(&format!(r#"{{"udp": "cbr", "rate": "{rate}", "packet": "1000B", "jitter": 0.0}}"#))
}

#[test]
fn a_paced_flow_over_one_link_by_hand() {
    // 9001 bytes are ten packets, 2 ms apart. The last is sent after 18 ms, takes 1 ms and travels for 10. On
    // an idle path, ten packets take 10 ms and travel for 10.
    let network = alone(sized(paced("4Mbps"), 9001), "99p");
    let [completion] = completions(&network, 1)[..] else { panic!("one flow") };
    assert_eq!(completion, Completion::After { time: micros(29_000), idle: micros(20_000) });
    assert_eq!(completion.slowdown(), Some(1.45));
    assert_eq!(completion.is_unfinished(), Some(false));
}

#[test]
fn an_idle_path_counts_every_hop_and_the_slowest_for_each_packet() {
    // 1000 bytes take 0.8 ms on the access link, 1 ms on the shared one, 8 ms on the egress; propagation
    // takes 1, 10 and 2 ms. Two more packets take 16 ms on the slowest. A source that sends all at once needs
    // exactly that.
    let link =
        |rate: &str, millis| AccessSpec { rate: rate.parse().unwrap(), delay: Duration::from_millis(millis) };
    let access = (Some(link("10Mbps", 1)), Some(link("1Mbps", 2)));
    let flow = FlowSpec { access: access.0, egress: access.1, ..sized(paced("1Gbps"), 3000) };
    let network = alone(flow, "99p");
    let idle = micros(13_000 + 9_800 + 16_000);
    assert_eq!(network.idle_time(&network.flows[0], &[0]), Some(idle));
    assert_eq!(completions(&network, 1), [Completion::After { time: idle, idle }]);
    assert_eq!(network.idle_time(&FlowSpec { volume: None, ..network.flows[0].clone() }, &[0]), None);
}

#[test]
fn three_rounds_of_slow_start_by_hand() {
    // Windows of 1, 2 and 4 packets; an acknowledgement of 40 bytes takes 0.04 ms.
    // The first is back after 1 + 10 + 0.04 + 10 = 21.04 ms, those of the second round after 42.08 and
    // 43.08 ms. Each lets two packets out; the last of the four waits for three, is sent by 46.08 ms and
    // arrives 10 ms later.
    let by_hand = Completion::After { time: micros(56_080), idle: micros(17_000) };
    for more in ["", r#", "sack": true"#, r#", "sack": true, "prr": true, "send-jitter": "0s""#] {
        let transport =
            tcp(&format!(r#"{{"tcp": "newreno", "packet": "1000B", "initial-window": "1p" {more}}}"#));
        assert_eq!(completions(&alone(sized(transport, 7000), "99p"), 1), [by_hand], "{more}");
    }
    // A handshake takes a round trip of packets of 40 bytes before that, and carries no data, even if it is
    // as large as data.
    let opening = |packet: &str, volume| {
        let table = format!(
            r#"{{"tcp": "newreno", "packet": "{packet}", "ack": "40B", "initial-window": "1p", "handshake": true}}"#
        );
        completions(&alone(sized(tcp(&table), volume), "99p"), 1)[0]
    };
    assert_eq!(opening("1000B", 7000).time(), Some(micros(56_080 + 20_080)));
    assert_eq!(opening("40B", 40).time(), Some(micros(20_080 + 10_040)));
}

#[test]
fn a_lost_segment_is_waited_for_if_it_is_sent_again() {
    // Ten packets at once on a queue of three: the source of datagrams never completes, TCP does when the
    // last gap is filled.
    let datagrams = completions(&alone(sized(paced("1Gbps"), 10_000), "3p"), 1)[0];
    assert_eq!((datagrams, datagrams.time(), datagrams.slowdown()), (Completion::Unfinished, None, None));
    assert_eq!(datagrams.is_unfinished(), Some(true));
    let transport = tcp(r#"{"tcp": "newreno", "packet": "1000B", "initial-window": "10p"}"#);
    let completion = completions(&alone(sized(transport, 10_000), "3p"), 1)[0];
    assert!(completion.slowdown().unwrap() > 2.0, "{completion:?}");
}

#[test]
fn only_what_begins_after_the_warm_up_and_completes_by_the_end_has_a_time() {
    const DONE: u64 = 529_000_000;
    // The flow of the first test begins at 500 ms and completes at 529 ms. It counts by its beginning, as
    // flows of populations do.
    const BEGINS: u64 = 500_000_000;
    let completion = |warmup: u64, duration: u64, stop: Option<u64>| {
        let flow = FlowSpec { stop: stop.map(Instant::from_nanos), ..sized(paced("4Mbps"), 10_000) };
        let network = Network {
            warmup: Duration::from_nanos(warmup),
            duration: Duration::from_nanos(duration),
            ..alone(flow, "99p")
        };
        completions(&network, 1)[0]
    };
    let after = Completion::After { time: micros(29_000), idle: micros(20_000) };
    assert_eq!(completion(0, DONE, None), after);
    assert_eq!(completion(0, DONE - 1, None), Completion::Unfinished);
    assert_eq!(completion(BEGINS, 2 * DONE, None), after);
    assert_eq!(completion(BEGINS + 1, 2 * DONE, None), Completion::InWarmup);
    assert_eq!(
        completion(BEGINS + 1, DONE - 1, None),
        Completion::InWarmup,
        "it is not among the unfinished"
    );
    assert_eq!(Completion::InWarmup.is_unfinished(), None);
    // It sends its last packet at 518 ms, and is stopped before or after that.
    assert_eq!(completion(0, DONE, Some(517_000_000)), Completion::Unfinished);
    assert_eq!(completion(0, DONE, Some(519_000_000)), after);
    // It has not begun by the end.
    assert_eq!(completion(0, 400_000_000, None), Completion::Unfinished);
    assert_eq!(Completion::Endless.is_unfinished(), None);
}

#[test]
fn every_transport_completes_in_both_engines() {
    let mut network = every_transport(aqm("drop-tail", r#"{"limit": "200p"}"#), 40);
    let endless = completions(&network, 3);
    assert!(endless.iter().all(|&completion| completion == Completion::Endless));
    for flow in &mut network.flows {
        flow.volume = Some(Bytes::new(60_000));
        flow.start = (at(Duration::from_secs(11)), at(Duration::from_secs(20)));
    }
    network.links[1].rate = "8Mbps".parse().unwrap();
    let found = completions(&network, 3);
    for kind in 0..5 {
        let own: Vec<Completion> = found.iter().copied().skip(kind).step_by(5).collect();
        assert!(own.iter().any(|completion| completion.time().is_some()), "{kind}: {own:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Both engines agree, and nothing is faster than an idle path.
    #[test]
    fn no_flow_is_faster_than_an_idle_path(
        seed: u64,
        hops in 1_u32..4,
        count in 1_usize..8,
        kind in 0_usize..5,
        (rate_kbps, limit, volume) in (300_u64..9000, 2_u64..60, 1_u64..200_000),
        warmup in 0_u64..3,
    ) {
        let transports = [
            tcp(r#"{"tcp": "newreno", "handshake": true}"#),
            tcp(r#"{"tcp": "linux"}"#),
            paced("900kbps"),
            rap(r#"{"rap": "aimd"}"#),
            tfrc(r#"{"tfrc": "rfc5348"}"#),
        ];
        let queue = || aqm("drop-tail", &format!(r#"{{"limit": "{limit}p"}}"#));
        let links = (0..hops).flat_map(|n| duplex(&format!("l{n}"), n, n + 1, &format!("{rate_kbps}kbps"), "5ms", queue()));
        let flows = (0..count).map(|n| {
            let transport = transports[(kind + n) % transports.len()].clone();
            let mut flow = flow(format!("{n}"), n as u32 % hops, hops, transport, None);
            flow.volume = (n % 4 != 3).then(|| Bytes::new(volume * (n as u64 + 1)));
            flow.stop = (n % 3 == 2).then_some(Instant::from_nanos(2_000_000_000));
            flow
        });
        let network = Network {
            nodes: hops + 1,
            links: links.collect(),
            flows: flows.collect(),
            warmup: Duration::from_secs(warmup),
            probe_interval: Some(Duration::from_millis(300)),
            ..Network::new(Duration::from_secs(6))
        };
        for (spec, completion) in network.flows.iter().zip(completions(&network, seed)) {
            prop_assert_eq!(spec.volume.is_none(), completion == Completion::Endless);
            prop_assert!(completion.slowdown().is_none_or(|slowdown| slowdown >= 1.0), "{:?}", completion);
        }
    }
}

#[test]
fn a_flow_that_shares_no_link_completes() {
    let network = Network {
        nodes: 1,
        links: Vec::new(),
        ..alone(FlowSpec { to: NodeId(0), ..sized(paced("4Mbps"), 2000) }, "9p")
    };
    let [completion] = completions(&network, 1)[..] else { panic!("one flow") };
    // Nothing takes time but the source's own pace, so there is no time to compare it with.
    assert_eq!(completion, Completion::After { time: micros(2000), idle: Duration::ZERO });
    assert_eq!(completion.slowdown(), None);
}
