//! Observed runs: what an observer sees is what the run counts, and observing changes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Color, Counters, Duration, Ecn, Instant, Reason};
use perhop_sim::observer::{
    Acknowledgement, Contents, Decision, Observation, Observed, Observer, PacketEvent,
};
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::{Engine, EngineUsed, Marking, Network, Outcome, Simulation, Watch};
use proptest::prelude::*;

use crate::common::{aqm, duplex, every_transport, flow, meter, profile, tcp, udp};
use crate::{ordinary, parameters};

/// Everything that an observer sees.
#[derive(Default)]
struct Seen(Vec<Observed>);

impl Observer for Seen {
    fn observe(&mut self, observed: &Observed) {
        self.0.push(*observed);
    }
}

fn observed(network: &Network, links: &[usize]) -> (Outcome, Vec<Observed>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let observation = Observation::new(seen.clone(), links.to_vec());
    let outcome = Simulation::run_observed(network, 3, &Watch::default(), observation).unwrap();
    let seen = std::mem::take(&mut seen.lock().unwrap().0);
    (outcome, seen)
}

fn unobserved(network: &Network) -> Outcome {
    Simulation::run(network, 3, Some(Engine::Reference), &Watch::default()).unwrap()
}

/// Everything but the engine's reason; NaN equals NaN.
fn text(outcome: &Outcome) -> String {
    format!("{:?}", Outcome { engine: None, ..outcome.clone() })
}

/// What the events at a link add up to.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    arrived: [u64; 3],
    sent: [u64; 3],
    dropped: BTreeMap<Reason, [u64; 3]>,
    notified: BTreeMap<Reason, [u64; 3]>,
}

impl Sums {
    fn of(seen: &[Observed], link: usize) -> Self {
        let mut sums = Self::default();
        for observed in seen.iter().filter(|observed| observed.link == link) {
            let color = observed.header.color.index();
            let (dropped, notified) = match observed.event {
                PacketEvent::Arrival(decision) => {
                    sums.arrived[color] += 1;
                    match decision {
                        Decision::Admitted => (None, None),
                        Decision::Notified(reason) => (None, Some(reason)),
                        Decision::Dropped(reason) => (Some(reason), None),
                    }
                }
                PacketEvent::Departure { notified, .. } => {
                    sums.sent[color] += 1;
                    (None, notified)
                }
                PacketEvent::Dropped(reason) => (Some(reason), None),
                PacketEvent::Policed => (None, None),
            };
            for (counts, reason) in [(&mut sums.dropped, dropped), (&mut sums.notified, notified)] {
                if let Some(reason) = reason {
                    counts.entry(reason).or_default()[color] += 1;
                }
            }
        }
        sums
    }

    fn counted(counters: &Counters) -> Self {
        Self {
            arrived: counters.arrived,
            sent: counters.sent,
            dropped: counters.drops().collect(),
            notified: counters.notifications().collect(),
        }
    }
}

/// The events in a queue add up to its counters, a flow's drops to the flow's, and the run is the same
/// unobserved.
fn assert_counted(network: &Network, name: &str) -> Vec<Observed> {
    let all: Vec<usize> = (0..network.links.len()).collect();
    let (outcome, seen) = observed(network, &all);
    assert_eq!(outcome.engine, Some(EngineUsed::Observed));
    assert_eq!(text(&outcome), text(&unobserved(network)), "{name}");
    assert!(seen.is_sorted_by_key(|observed| observed.at), "{name}");
    let managed = network.links.iter().enumerate().filter(|(_, link)| link.queue.is_some());
    for ((number, _), link) in managed.zip(&outcome.links) {
        assert_eq!(Sums::of(&seen, number), Sums::counted(&link.counters), "{name}");
    }
    let after = Instant::ZERO + network.warmup;
    for (number, flow) in outcome.flows.iter().enumerate() {
        let of_flow = |observed: &&Observed| {
            observed.header.flow.0 as usize == number
                && observed.at > after
                && matches!(observed.contents, Contents::Segment { .. } | Contents::Datagram(_))
        };
        let mut dropped = [0; 3];
        let mut lost = 0;
        for observed in seen.iter().filter(of_flow) {
            match observed.event {
                PacketEvent::Arrival(Decision::Dropped(_)) | PacketEvent::Dropped(_) => {
                    dropped[observed.header.color.index()] += 1;
                }
                PacketEvent::Departure { is_lost: true, .. } => lost += 1,
                _ => {}
            }
        }
        assert_eq!((dropped, lost), (flow.dropped, flow.lost.unwrap_or(0)), "{name}: flow {number}");
    }
    seen
}

/// Every transport, some flows with ECN, under this queue in both directions.
fn network(queue: &SchedulerParams) -> Network {
    let mut network = every_transport(aqm("drop-tail", r#"{"limit": "9p"}"#), 6);
    network.links[0].queue = Some(queue.clone());
    let kinds = [
        (r#"{"tcp": "newreno"}"#, TcpEcn::Classic),
        (r#"{"tcp": "newreno", "sack": true, "handshake": true}"#, TcpEcn::Off),
        (r#"{"tcp": "linux"}"#, TcpEcn::Accurate),
        (r#"{"tcp": "linux", "congestion": "dctcp"}"#, TcpEcn::L4s),
    ];
    for (flow, (transport, ecn)) in network.flows.iter_mut().step_by(5).zip(kinds) {
        flow.transport = tcp(transport);
        flow.tcp_ecn = ecn;
    }
    network
}

fn all_queues() -> Vec<(String, SchedulerParams)> {
    let table = |tag: &str, (name, table): (&str, &str)| {
        let mut table: serde_json::Value = serde_json::from_str(table).unwrap();
        table[tag] = ordinary::block(name).into();
        table
    };
    let aqms = parameters::AQMS.iter().chain(ordinary::AQMS);
    let aqms = aqms.map(|&row| (row.0.to_owned(), serde_json::from_value(table("aqm", row)).unwrap()));
    let schedulers = parameters::SCHEDULERS.iter().chain(ordinary::SCHEDULERS);
    let schedulers =
        schedulers.map(|&row| (row.0.to_owned(), serde_json::from_value(table("scheduler", row)).unwrap()));
    aqms.map(|(name, aqm): (String, perhop_core::aqm::AqmParams)| (name, aqm.into()))
        .chain(schedulers)
        .collect()
}

#[test]
fn events_add_up_to_the_counters_of_every_queue_and_change_nothing() {
    let mut reasons = BTreeMap::<Reason, u64>::new();
    for (name, queue) in all_queues() {
        for observed in assert_counted(&network(&queue), &name) {
            match observed.event {
                PacketEvent::Arrival(Decision::Dropped(reason) | Decision::Notified(reason))
                | PacketEvent::Dropped(reason)
                | PacketEvent::Departure { notified: Some(reason), .. } => {
                    *reasons.entry(reason).or_default() += 1;
                }
                _ => {}
            }
        }
    }
    assert!(reasons.len() >= 9, "{reasons:?}");
}

#[test]
fn a_datagram_each_millisecond_by_hand() {
    // 125 bytes each 1 ms over 500 kbit/s, 2 ms each: one waits where the limit is one, and every second
    // packet is dropped.
    let cbr = udp(r#"{"udp": "cbr", "rate": "1Mbps", "packet": "125B", "jitter": 0.0}"#);
    let mut cbr = flow("cbr".into(), 0, 1, cbr, None);
    (cbr.access, cbr.egress) = (None, None);
    (cbr.start, cbr.stop) = ((Instant::ZERO, Instant::ZERO), Some(Instant::from_nanos(5_500_000)));
    let network = Network {
        nodes: 2,
        links: duplex("link", 0, 1, "500kbps", "3ms", aqm("drop-tail", r#"{"limit": "1p"}"#)).into(),
        flows: vec![cbr],
        ..Network::new(Duration::from_millis(20))
    };
    let (_, seen) = observed(&network, &[0]);
    let seen: Vec<(u64, u32, &str)> = seen
        .iter()
        .map(|observed| {
            let Contents::Datagram(number) = observed.contents else { panic!("{observed:?}") };
            assert_eq!((observed.link, observed.header.size, observed.header.ecn), (0, 125, Ecn::NotCapable));
            let event = match observed.event {
                PacketEvent::Arrival(Decision::Admitted) => "in",
                PacketEvent::Arrival(Decision::Dropped(Reason::Overflow)) => "drop",
                PacketEvent::Departure { notified: None, is_lost: false } => "out",
                other => panic!("{other:?}"),
            };
            (observed.at.as_nanos() / 1_000_000, number, event)
        })
        .collect();
    // Packet 0 goes at once; 1 waits until 2 ms; 2 comes then, after the port was served, and waits until 4
    // ms; 3 is dropped.
    let expected = [
        (0, 0, "in"),
        (0, 0, "out"),
        (1, 1, "in"),
        (2, 1, "out"),
        (2, 2, "in"),
        (3, 3, "drop"),
        (4, 2, "out"),
        (4, 4, "in"),
        (5, 5, "drop"),
        (6, 4, "out"),
    ];
    assert_eq!(seen, expected);
    assert_eq!(observed(&network, &[1]).1, [], "nothing goes back");
}

#[test]
fn wires_are_observed_in_the_order_of_time() {
    // ACKs of 40 bytes over a wire of 100 kbit/s: 3.2 ms each.
    let mut sender = flow("tcp".into(), 0, 1, tcp(r#"{"tcp": "newreno", "handshake": true}"#), None);
    (sender.access, sender.egress) = (None, None);
    sender.volume = Some("30kB".parse().unwrap());
    let mut links = duplex("link", 0, 1, "10Mbps", "3ms", aqm("drop-tail", r#"{"limit": "99p"}"#));
    links[1].rate = "100kbps".parse().unwrap();
    let network = Network {
        nodes: 2,
        links: links.into(),
        flows: vec![sender],
        ..Network::new(Duration::from_secs(5))
    };
    let seen = assert_counted(&network, "wire");
    let back = |kind: fn(&PacketEvent) -> bool| -> Vec<(Instant, Acknowledgement)> {
        let there = seen.iter().filter(|observed| observed.link == 1 && kind(&observed.event));
        there
            .map(|observed| match observed.contents {
                Contents::Acknowledgement(ack) => (observed.at, ack),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let arrived = back(|event| matches!(event, PacketEvent::Arrival(_)));
    let left = back(|event| matches!(event, PacketEvent::Departure { .. }));
    assert!(arrived.len() > 20, "{}", arrived.len());
    assert_eq!(arrived.len(), left.len());
    let transmission = Duration::from_nanos(3_200_000);
    let mut free_at = Instant::ZERO;
    for ((came, ack), (went, same)) in arrived.iter().zip(&left) {
        assert_eq!((ack, *went), (same, free_at.max(*came)));
        free_at = *went + transmission;
    }
    assert!(arrived.iter().zip(&left).any(|(came, went)| came.0 < went.0), "some waited");
    assert!(arrived[0].1.is_first && !arrived[1].1.is_first);
}

#[test]
fn acknowledgements_show_what_they_carry() {
    let red = r#"{"thresholds": "5/25/0.1", "limit": "60p", "weight": 0.02, "ecn": true}"#;
    let with = |transport: &str, ecn| {
        let flows = (0..8).map(|n| {
            let mut flow = flow(format!("{n}"), 0, 1, tcp(transport), None);
            flow.tcp_ecn = if n == 0 { ecn } else { TcpEcn::Off };
            flow
        });
        let links = duplex("bottleneck", 0, 1, "10Mbps", "18ms", aqm("red", red));
        let network = Network {
            nodes: 2,
            links: links.into(),
            flows: flows.collect(),
            ..Network::new(Duration::from_secs(9))
        };
        let seen = assert_counted(&network, transport);
        let acks = seen.into_iter().filter(|observed| observed.link == 1 && is_arrival(observed));
        acks.filter_map(|observed| match observed.contents {
            Contents::Acknowledgement(ack) => Some((observed.header.flow.0, ack)),
            _ => None,
        })
        .collect::<Vec<_>>()
    };
    let acks = with(r#"{"tcp": "newreno", "sack": true}"#, TcpEcn::Accurate);
    assert!(acks.iter().any(|(flow, ack)| *flow > 0 && ack.ranges[0].0 > ack.expected));
    assert!(acks.iter().all(|(flow, ack)| *flow == 0 || ack.marked == 0));
    let counts: Vec<u32> = acks.iter().filter(|(flow, _)| *flow == 0).map(|(_, ack)| ack.marked).collect();
    assert!(counts.is_sorted() && counts.last() > Some(&0));
    let acks = with(r#"{"tcp": "newreno"}"#, TcpEcn::Classic);
    assert!(acks.iter().any(|(flow, ack)| *flow == 0 && ack.echo));
    assert!(acks.iter().all(|(flow, ack)| *flow == 0 || !ack.echo));
}

fn is_arrival(observed: &Observed) -> bool {
    matches!(observed.event, PacketEvent::Arrival(_))
}

#[test]
fn policed_packets_are_seen_at_the_link_whose_meter_drops_them() {
    let dropping = r#"{"rate": "300kbps", "burst": "4kB", "out": "drop"}"#;
    let meters = format!(
        r#"[{{"name": "edge", "profile": {{"marker": "token-bucket", {}}}]"#,
        dropping.trim_start_matches('{')
    );
    let mut network = every_transport(aqm("drop-tail", r#"{"limit": "9p"}"#), 6);
    network.warmup = Duration::ZERO;
    let seen = assert_counted(&network, "none");
    assert!(seen.iter().all(|observed| observed.event != PacketEvent::Policed));
    network.links[0].meters = serde_json::from_str(&meters).unwrap();
    for flow in network.flows.iter_mut().step_by(3) {
        flow.marking = Marking::Ingress(meter("token-bucket", dropping));
    }
    let seen = assert_counted(&network, "policed");
    let (outcome, _) = observed(&network, &[]);
    let policed = |number: usize| {
        let mut counts = [0; 3];
        let of_flow = |observed: &&Observed| observed.header.flow.0 as usize == number;
        for observed in seen.iter().filter(of_flow).filter(|observed| observed.event == PacketEvent::Policed)
        {
            assert_eq!(observed.link, 0);
            counts[observed.header.color.index()] += 1;
        }
        counts
    };
    let counted = outcome.flows.iter().map(|flow| flow.policed.unwrap_or_default());
    let counted: Vec<[u64; 3]> = counted.collect();
    assert_eq!(counted, (0..counted.len()).map(policed).collect::<Vec<_>>());
    let of = |step: usize| -> u64 { counted.iter().step_by(step).flatten().sum() };
    assert!(of(3) > 0 && of(1) > of(3), "{counted:?}");
}

#[test]
fn packets_that_a_link_loses_are_sent_first() {
    let mut network = every_transport(aqm("drop-tail", r#"{"limit": "9p"}"#), 6);
    network.links[0].medium.loss = Some(perhop_core::Probability::new(0.02).unwrap());
    let seen = assert_counted(&network, "lossy");
    assert!(seen.iter().any(|o| matches!(o.event, PacketEvent::Departure { is_lost: true, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn each_packet_arrives_before_it_leaves_or_is_dropped(
        (_, queue) in prop::sample::select(all_queues()), marked in any::<bool>()
    ) {
        let mut network = network(&queue);
        if marked {
            network.flows[0].marking = Marking::Host(profile("0.2Mbps"));
        }
        let (_, seen) = observed(&network, &[0]);
        let mut waiting: BTreeMap<(u32, bool, Color, u32), i64> = BTreeMap::new();
        for Observed { header, contents, event, .. } in seen {
            let number = match contents {
                Contents::Segment { number, .. } | Contents::Datagram(number) | Contents::Feedback(number) => number,
                Contents::Acknowledgement(_) => continue,
            };
            let key = (header.flow.0, matches!(contents, Contents::Feedback(_)), header.color, number);
            let waiting = waiting.entry(key).or_default();
            *waiting += match event {
                PacketEvent::Arrival(Decision::Dropped(_)) | PacketEvent::Policed => 0,
                PacketEvent::Arrival(_) => 1,
                PacketEvent::Departure { .. } | PacketEvent::Dropped(_) => -1,
            };
            prop_assert!(*waiting >= 0, "{key:?}");
        }
    }
}
