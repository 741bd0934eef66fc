//! Links that change, lose and reorder packets.

use std::sync::Arc;

use perhop_core::medium::{Change, Jitter, Medium, Opportunities, Outage, RateTrace, Rates};
use perhop_core::{Bytes, Duration, Instant, Probability};
use perhop_sim::workload::{Arrivals, Sizes};
use perhop_sim::{
    Completion, Engine, FlowOutcome, FlowSpec, LinkSpec, Network, Outcome, SharedMeter, Simulation,
    TransportSpec, Watch,
};
use proptest::prelude::*;

use crate::common::{aqm, duplex, flow, rap, tcp, tfrc, udp};
use crate::engine::{any_queue, assert_same};

fn millis(millis: f64) -> Duration {
    Duration::from_nanos((millis * 1e6) as u64)
}

/// On both engines, which agree.
fn run(network: &Network) -> Outcome {
    let [batched, reference] = [Engine::Batched, Engine::Reference]
        .map(|engine| Simulation::run(network, 1, Some(engine), &Watch::default()).unwrap());
    assert_same(&batched, &reference);
    batched
}

/// Ten packets, one each millisecond, over a link of 10 ms on which each takes 1 ms.
fn ten_packets(medium: Medium) -> Network {
    let cbr = udp(r#"{"udp": "cbr", "rate": "8Mbps", "packet": "1000B", "jitter": 0.0}"#);
    let mut links = duplex("there", 0, 1, "8Mbps", "10ms", aqm("drop-tail", r#"{"limit": "20p"}"#));
    links[0].medium = medium;
    let flow = FlowSpec {
        access: None,
        egress: None,
        start: (Instant::ZERO, Instant::ZERO),
        volume: Some(Bytes::new(10_000)),
        ..flow("packets".into(), 0, 1, cbr, None)
    };
    Network { nodes: 2, links: links.into(), flows: vec![flow], ..Network::new(Duration::from_secs(1)) }
}

/// When the last of the ten packets arrives.
fn last_arrival(medium: Medium) -> Duration {
    let Completion::After { time, .. } = run(&ten_packets(medium)).flows[0].completion else {
        panic!("all packets arrive")
    };
    time
}

fn change(at: f64, rate: Option<&str>, delay: Option<f64>) -> Medium {
    let change =
        Change { at: millis(at), rate: rate.map(|rate| rate.parse().unwrap()), delay: delay.map(millis) };
    Medium { changes: vec![change], ..Medium::default() }
}

#[test]
fn changes_by_hand() {
    assert_eq!(last_arrival(Medium::default()), millis(20.0));
    // Packet 5 is on the link from 5 to 6 ms; packets 6 to 9 take 2 ms each, until 14 ms.
    assert_eq!(last_arrival(change(5.5, Some("4Mbps"), None)), millis(24.0));
    // Packet 9 is sent from 9 to 10 ms.
    assert_eq!(last_arrival(change(5.5, None, Some(30.0))), millis(40.0));
    // Packet 8 is on the link from 8 to 9 ms and arrives at 19 ms; packet 9, at 12 ms, overtakes it.
    assert_eq!(last_arrival(change(8.5, None, Some(2.0))), millis(19.0));
    // Both: packets 6 to 9 leave at 8 to 14 ms and take 5 ms more.
    assert_eq!(last_arrival(change(5.5, Some("4Mbps"), Some(5.0))), millis(19.0));
}

#[test]
fn outages_by_hand() {
    // Packet 3 is on the link until 4 ms; packets 4 to 9 leave from 7 ms on, until 13 ms.
    let outage = |from, to| Outage { from: millis(from), to: millis(to) };
    let outages = |outages: &[Outage]| Medium { outages: outages.to_vec(), ..Medium::default() };
    assert_eq!(last_arrival(outages(&[outage(3.5, 7.0)])), millis(23.0));
    // An outage between two packets of an idle link, and one that ends before the packet on the link is
    // finished.
    let slow = |medium: Medium| {
        let mut network = ten_packets(medium);
        network.flows[0].transport =
            udp(r#"{"udp": "cbr", "rate": "4Mbps", "packet": "1000B", "jitter": 0.0}"#);
        run(&network).flows[0].completion.time().unwrap()
    };
    // Packets each 2 ms, the last at 18 ms; it waits until 18.7 ms.
    assert_eq!(slow(Medium::default()), millis(29.0));
    assert_eq!(slow(outages(&[outage(0.2, 0.5), outage(17.5, 18.7)])), millis(29.7));
    assert_eq!(slow(outages(&[outage(17.2, 17.8)])), millis(29.0));
    // It never ends: packets 0 to 3 arrive.
    let outcome = run(&ten_packets(outages(&[outage(3.5, 2000.0)])));
    assert_eq!(outcome.flows[0].delivered_packets, 4);
    assert_eq!(outcome.flows[0].completion, Completion::Unfinished);
}

fn traced(trace: RateTrace) -> Medium {
    Medium { trace: Some(Arc::new(trace)), ..Medium::default() }
}

fn opportunities(millis: impl IntoIterator<Item = u32>) -> Medium {
    traced(RateTrace::Opportunities(Opportunities::new(millis.into_iter().collect(), true).unwrap()))
}

fn rates(rows: &[(f64, u64)]) -> Medium {
    let rows = rows.iter().map(|&(at, rate)| (millis(at), rate)).collect();
    traced(RateTrace::Rates(Rates::new(rows, false).unwrap()))
}

#[test]
fn traces_by_hand() {
    // Ten packets of 1000 bytes, one each millisecond from 0 ms on; opportunities at 4, 5, 20, 24, 25, 40, …
    // ms. At 4 ms the packets of 0 to 3 ms wait, and 1500 bytes go: packet 0 and half of 1. At 5 ms those of
    // 4 ms, too: packets 1 and 2. At 20, 24 and 25 ms three packets each two opportunities: 3 and half of 4,
    // 4 and 5, 6 and half of 7; at 40 ms 7 and 8, at 44 ms 9. Propagation takes 10 ms.
    let outcome = run(&ten_packets(opportunities([4, 5, 20])));
    assert_eq!(outcome.flows[0].completion.time(), Some(millis(54.0)));
    // 4 | 5, 5 | 20, 24, 24 | 25, 40, 40 | 44 ms, of packets sent at 0, 1, … 9 ms, and 10 ms of propagation
    // each.
    let sum: f64 = [4, 5, 5, 20, 24, 24, 25, 40, 40, 44]
        .into_iter()
        .zip(0..)
        .map(|(sent, at)| f64::from(sent - at))
        .sum();
    assert!((outcome.flows[0].mean_transit_s.unwrap() - (sum / 10.0 + 10.0) / 1e3).abs() < 1e-9);
    // Three opportunities each 20 ms: 50 times 3 × 12 kbit within the second.
    assert_eq!(outcome.links[0].mean_rate_bps, 1.8e6);
    assert!((outcome.links[0].utilization - 10_000.0 * 8.0 / 1.8e6).abs() < 1e-9);
    // The same at 8 Mbit/s until 2.5 ms, nothing until 6 ms, then 4 Mbit/s: packets leave at 1, 2, 7.0 (half
    // of it was sent), then each 2 ms until 21 ms.
    let outcome = run(&ten_packets(rates(&[(0.0, 8_000_000), (2.5, 0), (6.0, 4_000_000)])));
    assert_eq!(outcome.flows[0].completion.time(), Some(millis(31.0)));
    // An outage keeps packets from beginning, and opportunities pass: packet 0 at 4 ms, and half of packet 1
    // on the link until 20 ms, which takes 500 bytes of that opportunity; packet 2 the rest of it.
    let outage = Outage { from: millis(4.5), to: millis(20.0) };
    let outcome = run(&ten_packets(Medium { outages: vec![outage], ..opportunities([4, 20]) }));
    // At 24 ms packet 3 and half of 4, at 40 ms 4 and 5, at 44 ms 6 and half of 7, at 60 ms 7 and 8, at 64
    // ms 9.
    assert_eq!(outcome.flows[0].completion.time(), Some(millis(74.0)));
}

#[test]
fn a_trace_of_a_constant_rate_is_a_link_of_that_rate() {
    let greedy = |medium: Medium| {
        let mut links = duplex("there", 0, 1, "12Mbps", "10ms", aqm("codel", r#"{"limit": "100p"}"#));
        links[0].medium = medium;
        let transports = [
            tcp(r#"{"tcp": "linux", "packet": "1500B"}"#),
            tcp(r#"{"tcp": "newreno", "packet": "1500B"}"#),
            udp(r#"{"udp": "cbr", "rate": "1Mbps", "packet": "1500B"}"#),
        ];
        let flows = transports.into_iter().enumerate();
        let flows =
            flows.map(|(number, transport)| flow(format!("{number}"), 0, 1, transport, None)).collect();
        let network =
            Network { nodes: 2, links: links.into(), flows, ..Network::new(Duration::from_secs(20)) };
        Simulation::run(&network, 1, Some(Engine::Reference), &Watch::default()).unwrap()
    };
    let constant = greedy(Medium::default());
    // Whatever the steps of the trace: to the nanosecond.
    let same = greedy(rates(&[(0.0, 12_000_000), (123.456, 12_000_000), (7777.7, 12_000_000)]));
    assert_eq!((&same.flows, &same.links), (&constant.flows, &constant.links));
    // An opportunity each millisecond: each packet waits for up to a packet's time more before it is sent, so
    // runs differ, but the link sends as much.
    let each = greedy(opportunities([1]));
    let sent = |outcome: &Outcome| sum(outcome.links[0].counters.sent);
    assert!(sent(&constant) > 19_000, "{}", sent(&constant));
    let part = sent(&each) as f64 / sent(&constant) as f64;
    assert!((part - 1.0).abs() < 0.01, "{part}");
    // Without feedback: every packet within a packet's time.
    let packets = |medium| {
        let mut network = ten_packets(medium);
        let cbr = r#"{"udp": "cbr", "rate": "11Mbps", "packet": "1500B", "jitter": 0.5}"#;
        (network.flows[0].transport, network.flows[0].volume) = (udp(cbr), Some(Bytes::new(900_000)));
        network.links[0].rate = "12Mbps".parse().unwrap();
        run(&network).flows.remove(0)
    };
    let (constant, each) = (packets(Medium::default()), packets(opportunities([1])));
    let mean = |flow: &FlowOutcome| flow.mean_transit_s.unwrap();
    let later = mean(&each) - mean(&constant);
    assert!((-0.001..0.001).contains(&later), "{later}");
    assert_eq!((each.delivered_packets, constant.delivered_packets), (600, 600));
    let last = |flow: &FlowOutcome| flow.completion.time().unwrap().as_nanos();
    assert!(last(&each).abs_diff(last(&constant)) <= 1_000_000);
}

/// Flows of these transports that stop before the end, over a link that loses data and ACKs.
fn lossy(loss: f64, bursts: &str) -> Network {
    let mut links = duplex("there", 0, 1, "2Mbps", "10ms", aqm("drop-tail", r#"{"limit": "9p"}"#));
    for link in &mut links {
        link.medium.loss = Some(Probability::new(loss).unwrap());
        link.medium.burst_loss = serde_json::from_str(bursts).unwrap();
    }
    links[0].medium.outages = vec![Outage { from: millis(3000.0), to: millis(3400.0) }];
    links[0].medium.changes = change(5000.0, Some("1Mbps"), Some(30.0)).changes;
    let transports = [
        udp(r#"{"udp": "cbr", "rate": "300kbps"}"#),
        rap(r#"{"rap": "aimd"}"#),
        tfrc(r#"{"tfrc": "rfc5348"}"#),
        tcp(r#"{"tcp": "newreno"}"#),
        tcp(r#"{"tcp": "linux"}"#),
    ];
    let flows = transports.into_iter().enumerate().map(|(number, transport)| FlowSpec {
        stop: Some(Instant::ZERO + Duration::from_secs(15)),
        ..flow(format!("{number}"), 0, 1, transport, None)
    });
    let flows = flows.collect();
    Network { nodes: 2, links: links.into(), flows, ..Network::new(Duration::from_secs(20)) }
}

#[test]
fn every_packet_sent_is_delivered_dropped_or_lost() {
    for (loss, bursts) in [(0.05, "null"), (0.0, r#"{"good-to-bad": 0.02, "bad-to-good": 0.3}"#)] {
        let outcome = run(&lossy(loss, bursts));
        for flow in &outcome.flows[..3] {
            let lost = flow.lost.unwrap();
            let dropped: u64 = flow.dropped.iter().sum();
            assert!(lost > 0, "{flow:?}");
            assert_eq!(flow.sender.sent, flow.delivered_packets + dropped + lost, "{flow:?}");
        }
        for flow in &outcome.flows[3..] {
            assert!(flow.lost.unwrap() > 0 && flow.delivered_packets > 100, "{flow:?}");
            assert!(flow.sender.retransmitted > 0);
        }
        let (link, sent) = (&outcome.links[0], sum(outcome.links[0].counters.sent));
        let received: u64 = outcome.flows.iter().map(|flow| flow.delivered_packets).sum();
        assert!(sent > received, "losses come after the queue");
        // This direction carries data only.
        let lost: u64 = outcome.flows.iter().filter_map(|flow| flow.lost).sum();
        assert_eq!(link.transit.lost, Some(lost));
    }
}

#[test]
fn the_jitter_of_hosts_is_the_same_in_both_engines_and_delays_packets() {
    let network = |jitter| {
        let links = duplex(
            "there",
            0,
            1,
            "20Mbps",
            "10ms",
            aqm("red", r#"{"thresholds": "10/40/0.1", "limit": "60p"}"#),
        );
        let transports = [
            udp(r#"{"udp": "cbr", "rate": "300kbps"}"#),
            rap(r#"{"rap": "aimd"}"#),
            tfrc(r#"{"tfrc": "rfc5348"}"#),
            tcp(r#"{"tcp": "newreno"}"#),
            tcp(r#"{"tcp": "linux"}"#),
        ];
        let flows = transports.into_iter().enumerate().flat_map(|(number, transport)| {
            let with_access = flow(format!("{number}"), 0, 1, transport, None);
            let without = FlowSpec {
                name: format!("{number} at its router"),
                access: None,
                egress: None,
                ..with_access.clone()
            };
            [with_access, without].map(|flow| FlowSpec { dispatch_jitter: jitter, ..flow })
        });
        let flows = flows.collect();
        Network { nodes: 2, links: links.into(), flows, ..Network::new(Duration::from_secs(10)) }
    };
    let outcome =
        |jitter, engine| Simulation::run(&network(jitter), 1, Some(engine), &Watch::default()).unwrap();
    let [batched, reference] =
        [Engine::Batched, Engine::Reference].map(|engine| outcome(Some(millis(4.0)), engine));
    assert_eq!((&batched.flows, &batched.links), (&reference.flows, &reference.links));
    let none = outcome(None, Engine::Batched);
    // On a link that is hardly used, packets take 2 ms more, and ACKs, too.
    let calm = |jitter| {
        let mut network = network(jitter);
        network.flows.truncate(2);
        run(&network).flows
    };
    for (late, plain) in calm(Some(millis(4.0))).iter().zip(calm(None)) {
        let more = late.mean_transit_s.unwrap() - plain.mean_transit_s.unwrap();
        assert!((more - 0.002).abs() < 0.000_2, "{more}");
        assert_eq!(late.sender.sent, plain.sender.sent, "the source itself has its own times");
    }
    assert_ne!(none.flows[6], batched.flows[6]);
}

fn sum(by_color: [u64; 3]) -> u64 {
    by_color.into_iter().sum()
}

#[test]
fn losses_of_links_conserve_packets_of_datagrams() {
    let mut network = lossy(0.05, "null");
    network.flows.truncate(1);
    network.warmup = Duration::from_secs(2);
    let outcome = run(&network);
    let ([link], [flow]) = (&outcome.links[..], &outcome.flows[..]) else { panic!("one of each") };
    // The link is never busy for long: what it sent after the warm-up was lost, or arrived after the warm-up.
    let lost = link.transit.lost.unwrap();
    assert!(lost > 10 && lost.abs_diff(flow.lost.unwrap()) <= 1, "{lost} {flow:?}");
    assert!(sum(link.measured.sent).abs_diff(flow.delivered_packets + lost) <= 2);
    assert_eq!(link.transit.reordered, Some(0), "its delay changes once, to a longer one");
}

#[test]
fn a_link_without_a_queue_changes_as_one_with_an_endless_queue() {
    for medium in [
        change(5.5, Some("4Mbps"), Some(5.0)),
        Medium { outages: vec![Outage { from: millis(3.5), to: millis(7.0) }], ..Medium::default() },
        Medium { loss: Some(Probability::new(0.3).unwrap()), ..change(5.5, Some("1Mbps"), None) },
        Medium { jitter: Some(jitter("9ms", true)), ..Medium::default() },
        opportunities([4, 5, 20]),
    ] {
        let with_queue = ten_packets(medium);
        let mut without = with_queue.clone();
        without.links[0].queue = None;
        let (with_queue, without) = (run(&with_queue), run(&without));
        assert_eq!(with_queue.flows, without.flows);
        assert_eq!((with_queue.links.len(), without.links.len()), (1, 0), "only queues are measured");
    }
}

fn jitter(max: &str, reorder: bool) -> Jitter {
    let table = format!(r#"{{"distribution": "uniform", "max": "{max}", "reorder": {reorder}}}"#);
    serde_json::from_str(&table).unwrap()
}

#[test]
fn jitter_delays_packets_and_reorders_them_if_it_may() {
    let outcome = |reorder| {
        let mut network = ten_packets(Medium { jitter: Some(jitter("10ms", reorder)), ..Medium::default() });
        network.flows[0].volume = Some(Bytes::new(900_000));
        run(&network)
    };
    let (ordered, reordered) = (outcome(false), outcome(true));
    assert_eq!(ordered.links[0].transit.reordered, None);
    let late = reordered.links[0].transit.reordered.unwrap();
    // Each packet is overtaken by one of the next nine unless it is early: most are.
    assert!((500..900).contains(&late), "{late}");
    for outcome in [&ordered, &reordered] {
        assert_eq!(outcome.flows[0].delivered_packets, 900);
        assert_eq!(outcome.links[0].transit.lost, None);
    }
    // Serialization and propagation take 11 ms, jitter 5 ms on average, and 10 ms at most.
    let [mean, longer] = [&reordered, &ordered].map(|outcome| outcome.flows[0].mean_transit_s.unwrap());
    assert!((mean - 0.016).abs() < 0.000_3, "{mean}");
    assert!(longer > mean + 0.001 && longer < 0.021, "{longer}");
}

#[test]
fn a_change_to_what_the_link_is_anyway_changes_nothing() {
    let mut network = lossy(0.0, "null");
    for link in &mut network.links {
        link.medium = Medium::default();
    }
    let constant = Simulation::run(&network, 1, Some(Engine::Reference), &Watch::default()).unwrap();
    network.links[0].medium = change(4000.0, Some("2Mbps"), Some(10.0));
    let mut changed = run(&network);
    assert_eq!(std::mem::take(&mut changed.links[0].transit.reordered), Some(0));
    assert_eq!((&changed.flows, &changed.links), (&constant.flows, &constant.links));
    assert_eq!(constant.flows[0].lost, None, "no link loses packets");
}

/// Any way to change, lose, delay and reorder packets.
pub(crate) fn any_medium() -> impl Strategy<Value = Medium> {
    let loss = prop_oneof![Just(None), Just(Some(0.02)), Just(Some(0.3))];
    let bursts = prop_oneof![
        Just("null"),
        Just(r#"{"good-to-bad": 0.02, "bad-to-good": 0.3}"#),
        Just(r#"{"good-to-bad": 0.1, "bad-to-good": 0.1, "loss-good": 0.01, "loss-bad": 0.5}"#),
    ];
    let jitter = prop_oneof![
        3 => Just(None),
        1 => Just(Some(jitter("3ms", false))),
        1 => Just(Some(jitter("3ms", true))),
        1 => Just(Some(jitter("30ms", true))),
    ];
    let row = (0_u64..3000, 0_usize..5, 0_usize..4).prop_map(|(at, rate, delay)| Change {
        at: Duration::from_millis(at),
        rate: [None, Some("1Mbps"), Some("300kbps"), Some("4Mbps"), Some("4Mbps")][rate]
            .map(|rate| rate.parse().unwrap()),
        delay: [None, None, Some(2.0), Some(11.0)][delay].map(millis),
    });
    let changes = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(row, 1..5)];
    let outages = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(1_u64..600, 2..6)];
    let trace = prop_oneof![
        3 => Just(None),
        1 => Just(opportunities([4, 5, 20]).trace),
        1 => Just(rates(&[(0.0, 3_000_000), (700.0, 0), (900.0, 1_000_000)]).trace),
    ];
    (loss, bursts, jitter, changes, outages, trace).prop_map(
        |(loss, bursts, jitter, mut changes, outages, trace)| {
            changes.sort_by_key(|change| change.at);
            if trace.is_some() {
                for change in &mut changes {
                    change.rate = None;
                }
            }
            let mut at = 0;
            let mut next = |step: &u64| {
                at += step;
                Duration::from_millis(at)
            };
            let times: Vec<Duration> = outages.iter().map(&mut next).collect();
            Medium {
                trace,
                changes,
                outages: times.chunks_exact(2).map(|pair| Outage { from: pair[0], to: pair[1] }).collect(),
                loss: loss.map(|loss| Probability::new(loss).unwrap()),
                burst_loss: serde_json::from_str(bursts).unwrap(),
                jitter,
            }
        },
    )
}

/// Gives a link a medium. By a trace, packets may take no time but the delay: without one there is no
/// look-ahead.
pub(crate) fn set_medium(link: &mut LinkSpec, medium: Medium) {
    if medium.trace.is_some() {
        link.delay = link.delay.max(Duration::from_millis(1));
    }
    link.medium = medium;
}

/// Media of links, half of which are steady.
pub(crate) fn some_media(links: usize) -> impl Strategy<Value = Vec<Medium>> {
    prop::collection::vec(prop_oneof![1 => Just(Medium::default()), 1 => any_medium()], links)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any links that change, with any queue or none, over which any transports run, flows come and go, and
    /// users ask for answers.
    #[test]
    fn both_engines_agree_on_links_that_change(
        seed: u64,
        queue in any_queue(),
        media in some_media(6),
        (hops, kind, count) in (1_u32..4, 0_usize..9, 1_usize..8),
        (traits, rows) in (any::<u8>(), crate::applications::rows()),
        (warmup, probe) in (0_u64..2, prop_oneof![Just(None), Just(Some(100)), Just(Some(170))]),
    ) {
        let is = |bit: u32| traits >> bit & 1 == 1;
        let links = (0..hops).flat_map(|n| {
            let mut links = duplex(&format!("l{n}"), n, n + 1, "2Mbps", ["5ms", "0ms"][usize::from(is(0))], queue.clone());
            if is(1) {
                links[1].queue = Some(aqm("drop-tail", r#"{"limit": "7p"}"#).into());
            }
            if is(2) {
                links[0].queue = None;
            }
            links
        });
        let mut links: Vec<_> = links.collect();
        for (link, medium) in links.iter_mut().zip(&media) {
            set_medium(link, medium.clone());
        }
        let transports = crate::threads::transports();
        let flows = (0..count).map(|n| {
            let transport = transports[(kind + n) % transports.len()].clone();
            let metered = (is(3) && n % 3 == 0).then(|| crate::common::profile("0.3Mbps"));
            let mut flow = flow(format!("{n}"), 0, hops, transport, metered);
            flow.access = flow.access.filter(|_| is(4));
            flow.egress = flow.egress.filter(|_| is(5) || n % 2 == 0);
            flow.out_feedback = (is(6) && n % 2 == 0).then_some(Duration::from_millis(3));
            if n % 3 == 2 && matches!(flow.transport, TransportSpec::Tcp(_) | TransportSpec::Udp(_)) {
                flow.population = crate::populations::population(
                    flow.transport.clone(),
                    Arrivals::Poisson(40.0),
                    Sizes::constant(Bytes::new(4000)),
                )
                .population;
            }
            flow
        });
        let mut network = Network {
            nodes: hops + 1,
            links,
            flows: flows.collect(),
            probe_interval: probe.map(Duration::from_millis),
            warmup: Duration::from_secs(warmup),
            ..Network::new(Duration::from_secs(3))
        };
        if is(7) {
            for (number, row) in rows.iter().enumerate() {
                crate::applications::add_group(&mut network, row, &format!("g{number}"), (0, hops));
            }
            network.shared_meters = vec![SharedMeter { name: "shared".into(), params: crate::common::profile("0.5Mbps") }];
        }
        let run = |engine| Simulation::run(&network, seed, Some(engine), &Watch::default()).unwrap();
        assert_same(&run(Engine::Batched), &run(Engine::Reference));
    }
}
