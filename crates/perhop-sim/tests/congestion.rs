//! Congestion controls in whole runs: what each is known for.

use crate::common::{aqm, duplex, flow, tcp};
use perhop_core::{Duration, Instant};
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::{Engine, FlowOutcome, Network, Outcome, Simulation};

fn run_on(network: &Network, engine: Engine) -> Outcome {
    let mut simulation = Simulation::on_engine(network, 1, engine).unwrap();
    simulation.run_to_end();
    simulation.finish().unwrap()
}

/// The outcome, which both engines agree about.
fn run(network: &Network) -> Outcome {
    let (batched, reference) = (run_on(network, Engine::Batched), run_on(network, Engine::Reference));
    assert_eq!(batched.flows, reference.flows);
    assert_eq!(batched.links, reference.links);
    batched
}

/// Flows over 10 Mbit/s with a round trip of 40 ms, 50 packets of 1000 bytes, and this queue; a warm-up of a
/// third.
fn narrow(transports: &[(&str, TcpEcn)], queue: (&str, &str), seconds: u64) -> Network {
    let flows = transports.iter().enumerate().map(|(number, (transport, ecn))| {
        let mut flow = flow(format!("{number}"), 0, 1, tcp(transport), None);
        (flow.access, flow.egress) = (None, None);
        flow.tcp_ecn = *ecn;
        flow.start = (Instant::ZERO, Instant::from_nanos(100_000_000));
        flow
    });
    Network {
        nodes: 2,
        links: duplex("narrow", 0, 1, "10Mbps", "20ms", aqm(queue.0, queue.1)).into(),
        flows: flows.collect(),
        warmup: Duration::from_secs(seconds / 3),
        ..Network::new(Duration::from_secs(seconds))
    }
}

fn of(outcome: &Outcome, count: impl Fn(&FlowOutcome) -> u64) -> u64 {
    outcome.flows.iter().map(count).sum()
}

/// The share of the link that was in use.
fn utilization(outcome: &Outcome) -> f64 {
    outcome.flows.iter().map(|flow| flow.throughput_bps).sum::<f64>() / 10e6
}

/// Marks from 8 packets in the queue on, by its length now; all from 24 on.
const SHALLOW: (&str, &str) = (
    "red",
    r#"{"thresholds": "8/24/1", "limit": "200p", "weight": 1, "wait": false, "gentle": true, "ecn": true}"#,
);

#[test]
fn dctcp_keeps_the_link_busy_over_a_queue_that_half_windows_leave_empty() {
    for (extra, ecn) in [
        ("", TcpEcn::Classic),
        (r#", "delayed-ack": "40ms", "byte-counting": true"#, TcpEcn::Classic),
        (r#", "sack": true"#, TcpEcn::Accurate),
    ] {
        let of_control = |control: &str| {
            let transport = format!(r#"{{"tcp": "newreno", "congestion": "{control}" {extra}}}"#);
            run(&narrow(&[(transport.as_str(), ecn); 2], SHALLOW, 30))
        };
        let (dctcp, reno) = (of_control("dctcp"), of_control("reno"));
        let marked = |outcome: &Outcome| of(outcome, |flow| flow.congested.unwrap_or(0));
        assert!(utilization(&dctcp) > 0.99 && utilization(&reno) < 0.95, "{extra}");
        assert!(marked(&dctcp) > 3 * marked(&reno), "many small reductions in place of few large ones");
        assert_eq!(of(&dctcp, |flow| flow.sender.retransmitted), 0, "{extra}");
    }
}

const BBR: (&str, TcpEcn) = (r#"{"tcp": "newreno", "sack": true, "congestion": "bbr"}"#, TcpEcn::Off);
const BBR3: (&str, TcpEcn) = (r#"{"tcp": "newreno", "sack": true, "congestion": "bbr3"}"#, TcpEcn::Off);
const RENO: (&str, TcpEcn) = (r#"{"tcp": "newreno", "sack": true}"#, TcpEcn::Off);
/// Eight times the bandwidth-delay product, and a sixth.
const DEEP: (&str, &str) = ("drop-tail", r#"{"limit": "400p"}"#);
const FLAT: (&str, &str) = ("drop-tail", r#"{"limit": "8p"}"#);

/// Packets in the queue on average, where packets wait as long as they do.
fn waiting(outcome: &Outcome) -> f64 {
    outcome.links[0].mean_queue_packets
}

#[test]
fn one_bbr_flow_fills_the_link_and_leaves_the_queue_empty() {
    for control in [BBR, BBR3] {
        let outcome = run(&narrow(&[control], DEEP, 30));
        let reno = run(&narrow(&[RENO], DEEP, 30));
        assert!(utilization(&outcome) > 0.95);
        assert!(waiting(&outcome) < 25.0 && waiting(&reno) > 100.0);
        assert_eq!(of(&outcome, |flow| flow.sender.timeouts), 0);
    }
}

#[test]
fn several_bbr_flows_of_version_1_keep_more_than_one_and_a_half_bandwidth_delay_products() {
    let outcome = run(&narrow(&[BBR; 4], DEEP, 60));
    assert!(utilization(&outcome) > 0.98);
    assert!(waiting(&outcome) > 25.0, "beside the 50 packets on the path");
    let three = run(&narrow(&[BBR3; 4], DEEP, 60));
    assert!(waiting(&three) < waiting(&outcome));
}

#[test]
fn bbr_version_1_starves_reno_in_a_shallow_buffer() {
    let share = |control| {
        let outcome = run(&narrow(&[control, RENO], FLAT, 60));
        let [ours, reno] = [0, 1].map(|flow| outcome.flows[flow].throughput_bps);
        reno / (ours + reno)
    };
    let (beside_one, beside_three) = (share(BBR), share(BBR3));
    assert!(beside_one < 0.2 && beside_three > 0.3, "of a half: {beside_one} {beside_three}");
}

#[test]
fn pacing_sends_slow_start_through_a_queue_of_three_packets() {
    // Windows of 10 and 20 of the 50 packets that the path holds, at twice their rate: less than the link's.
    let first_loss = |extra: &str| {
        let transport = format!(
            r#"{{"tcp": "newreno", "sack": true, "handshake": true, "initial-window": "10p" {extra}}}"#
        );
        let mut network =
            narrow(&[(transport.as_str(), TcpEcn::Off)], ("drop-tail", r#"{"limit": "3p"}"#), 3);
        network.flows[0].volume = Some("30kB".parse().unwrap());
        network.warmup = Duration::ZERO;
        of(&run(&network), |flow| flow.sender.retransmitted)
    };
    assert!(first_loss("") > 0);
    assert_eq!(first_loss(r#", "pacing": "window""#), 0);
}

#[test]
fn a_paced_sender_of_each_kind_runs_alike_on_both_engines() {
    let transports = [
        r#"{"tcp": "reno", "pacing": "window"}"#,
        r#"{"tcp": "newreno", "pacing": "window", "delayed-ack": "40ms"}"#,
        r#"{"tcp": "two-windows", "pacing": "window", "handshake": true}"#,
        r#"{"tcp": "newreno", "sack": true, "prr": true, "pacing": "window", "slow-start": "hystart++"}"#,
        r#"{"tcp": "linux", "pacing": "window"}"#,
        r#"{"tcp": "newreno", "congestion": "ledbat", "pacing": "window"}"#,
        r#"{"tcp": "quic"}"#,
        r#"{"tcp": "newreno", "pacing": "none"}"#,
    ];
    let outcome = run(&narrow(&transports.map(|transport| (transport, TcpEcn::Off)), FLAT, 30));
    assert!(outcome.flows.iter().all(|flow| flow.delivered_packets > 100 && flow.sender.retransmitted > 0));
}

#[test]
fn prague_keeps_the_link_busy_over_a_queue_of_a_few_packets() {
    let transport = r#"{"tcp": "newreno", "sack": true, "congestion": "prague"}"#;
    let outcome = run(&narrow(&[(transport, TcpEcn::Accurate); 2], SHALLOW, 30));
    assert!(utilization(&outcome) > 0.98, "{}", utilization(&outcome));
    assert!(waiting(&outcome) < 20.0, "{}", waiting(&outcome));
    assert_eq!(of(&outcome, |flow| flow.sender.retransmitted), 0);
}

#[test]
fn a_target_round_trip_gives_short_ones_the_rate_of_longer_ones() {
    let rates = |target: &str| {
        let transport = format!(
            r#"{{"tcp": "newreno", "sack": true, "congestion": {{"control": "prague", "target-rtt": "{target}"}}}}"#
        );
        let mut network = narrow(&[(transport.as_str(), TcpEcn::Accurate); 2], SHALLOW, 60);
        for link in &mut network.links {
            link.delay = "1ms".parse().unwrap();
        }
        network.flows[1].access = Some(perhop_sim::AccessSpec {
            rate: "100Mbps".parse().unwrap(),
            delay: Duration::from_millis(15),
        });
        let outcome = run(&network);
        [0, 1].map(|flow| outcome.flows[flow].throughput_bps)
    };
    let [[near, far], [near_alike, far_alike]] = [rates("0s"), rates("100ms")];
    assert!(near / far > 1.3 * (near_alike / far_alike), "{near} {far} {near_alike} {far_alike}");
}

#[test]
fn hystart_ends_slow_start_before_a_buffer_overflows() {
    let first_losses = |slow_start: &str| {
        let transport = format!(
            r#"{{"tcp": "newreno", "sack": true, "byte-counting": true, "slow-start": "{slow_start}"}}"#
        );
        let mut network =
            narrow(&[(transport.as_str(), TcpEcn::Off)], ("drop-tail", r#"{"limit": "50p"}"#), 3);
        network.warmup = Duration::ZERO;
        let outcome = run(&network);
        (of(&outcome, |flow| flow.sender.retransmitted), utilization(&outcome))
    };
    let (standard, hystart) = (first_losses("standard"), first_losses("hystart++"));
    // RFC 9406, section 5, reports half as many bytes sent again over such a buffer.
    assert!(hystart.0 * 10 < standard.0 * 6, "{hystart:?} {standard:?}");
    assert!(hystart.1 > standard.1 - 0.05, "{hystart:?} {standard:?}");
}

#[test]
fn ledbat_keeps_a_queue_of_its_target_and_yields_to_reno() {
    let transport =
        r#"{"tcp": "newreno", "sack": true, "congestion": {"control": "ledbat", "target-delay": "50ms"}}"#;
    let ledbat = (transport, TcpEcn::Off);
    let alone = run(&narrow(&[ledbat], DEEP, 60));
    assert!(utilization(&alone) > 0.98, "{}", utilization(&alone));
    let packets = 0.05 * 10e6 / 8000.0;
    assert!((waiting(&alone) / packets - 1.0).abs() < 0.1, "{} of {packets}", waiting(&alone));
    let beside = run(&narrow(&[ledbat, RENO], DEEP, 60));
    let [ours, reno] = [0, 1].map(|flow| beside.flows[flow].throughput_bps);
    assert!(ours < 0.1 * reno, "{ours} {reno}");
}
