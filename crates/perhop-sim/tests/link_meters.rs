//! Meters of links: routers that meter what hosts and other routers have colored.

use perhop_core::meter::{AggregateMeter, MeterCounts, MeterParams};
use perhop_core::{Color, Duration, Instant};
use perhop_sim::{Engine, FlowSpec, LinkSpec, Marking, Network, TransportSpec};

use crate::common::{aqm, duplex, flow, meter, rap, run, run_alike, scheduler, tcp, tfrc, udp};
use crate::parameters::METERS;

fn meters(text: &str) -> Vec<AggregateMeter> {
    let meters: Vec<AggregateMeter> = serde_json::from_str(text).unwrap();
    AggregateMeter::check(&meters).unwrap();
    meters
}

/// Flows of these transports over two links in a row, and back. Of the links, 0 and 2 lead there, 1 and 3
/// back.
fn two_links(transports: &[TransportSpec], rate: &str, limit: &str) -> Network {
    let queue = || aqm("drop-tail", &format!(r#"{{"limit": "{limit}"}}"#));
    let flows = transports.iter().enumerate().map(|(number, transport)| FlowSpec {
        start: (Instant::ZERO, Instant::ZERO),
        stop: Some(Instant::ZERO + Duration::from_secs(8)),
        access: None,
        egress: None,
        ..flow(format!("{number}"), 0, 2, transport.clone(), None)
    });
    let link = |name, from, to, delay| {
        let [there, back] = duplex(name, from, to, rate, delay, queue());
        [there, LinkSpec { queue: Some(queue().into()), ..back }]
    };
    let (first, second) = (link("first", 0, 1, "3ms"), link("second", 1, 2, "5ms"));
    Network {
        nodes: 3,
        links: first.into_iter().chain(second).collect(),
        flows: flows.collect(),
        ..Network::new(Duration::from_secs(10))
    }
}

/// Gives a flow this profile at its host.
fn profiled(flow: &mut FlowSpec, profile: MeterParams) {
    flow.marking = Marking::Host(profile);
}

/// A host that sends 1001 green packets and 2999 yellow ones: a packet of 1000 bytes each 2 ms for 8 s
/// against a bucket of 2000 bytes and 1 Mbit/s, which suffices for packets 0, 1, 4, 8, ..., 3996.
fn colored_by_its_host() -> Network {
    let cbr = udp(r#"{"udp": "cbr", "rate": "4Mbps", "packet": "1000B", "jitter": 0.0}"#);
    let mut network = two_links(&[cbr], "10Mbps", "9p");
    profiled(&mut network.flows[0], meter("token-bucket", r#"{"rate": "1Mbps", "burst": "2kB"}"#));
    network
}

/// All green packets stay so; of the others 100 are yellow, the rest red.
const HUNDRED: &str = r#"[{"name": "edge", "match": {"dscp": ["AF11", "AF12", "AF13"]}, "profile": {"marker": "srtcm",
    "mode": "color-aware", "rate": "1bps", "burst": "9GB", "excess-burst": "100kB", "out": "OUT"}}]"#;

#[test]
fn a_router_meters_what_the_host_has_colored() {
    let drr = r#"{"scheduler": "drr", "queues": [{"name": "green", "match": {"dscp": "AF11"}, "rule": {"aqm": "drop-tail", "limit": "9p"}},
                             {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "9p"}}]}"#;
    for several_queues in [false, true] {
        for (out, red) in [("mark", 2899), ("drop-red", 0)] {
            let mut network = colored_by_its_host();
            network.links[2].meters = meters(&HUNDRED.replace("OUT", out));
            if several_queues {
                network.links[2].queue = Some(scheduler(drr));
            }
            let outcome = run_alike(&network);
            let (flow, first, second) = (&outcome.flows[0], &outcome.links[0], &outcome.links[2]);
            assert_eq!(flow.marked, [1001, 2999, 0], "the host's own colors");
            assert_eq!(first.counters.arrived, [1001, 2999, 0]);
            assert_eq!(second.counters.arrived, [1001, 100, red]);
            let policed = 2899 - red;
            let counts =
                MeterCounts { arrived: [1001, 2999, 0], passed: [1001, 100, red], policed: [0, 0, policed] };
            assert_eq!((&*second.meters[0].name, &second.meters[0].measured), ("edge", &counts));
            assert_eq!(flow.policed, (out == "drop-red").then_some([0, 0, policed]));
            assert_eq!((flow.dropped, flow.delivered_packets), ([0; 3], 4000 - policed));
            if several_queues {
                assert_eq!(second.classes[0].counters.arrived, [1001, 0, 0]);
            }
        }
    }
}

#[test]
fn a_color_blind_meter_raises_the_precedence_unless_it_may_promote() {
    let blind = |promote| {
        let mut network = colored_by_its_host();
        let profile = r#"{"marker": "srtcm", "rate": "1bps", "burst": "1MB", "excess-burst": "1MB"}"#;
        let text = format!(r#"[{{"name": "all", "promote": {promote}, "profile": {profile}}}]"#);
        network.links[0].meters = meters(&text);
        run_alike(&network).links[0].meters[0].measured.passed
    };
    // The first 1000 packets are green for it, the next 1000 yellow, all others red: of 0 to 999 the host
    // made 251 green, of 1000 to 1999 another 250, and 500 of the rest.
    assert_eq!(blind(false), [251, 749 + 1000, 2000]);
    assert_eq!(blind(true), [1000, 1000, 2000]);
}

#[test]
fn every_meter_of_a_link_conserves_packets_of_both_directions() {
    let transports = [
        udp(r#"{"udp": "cbr", "rate": "900kbps", "packet": "500B", "jitter": 0.3}"#),
        tcp(r#"{"tcp": "newreno"}"#),
        tcp(r#"{"tcp": "newreno", "sack": true}"#),
        rap(r#"{"rap": "aimd"}"#),
        tfrc(r#"{"tfrc": "rfc5348"}"#),
    ];
    let mut policed_by_color = [0; 3];
    for &(name, table) in METERS.iter().filter(|(name, _)| *name != "twam") {
        let mut network = two_links(&transports, "1Mbps", "6p");
        profiled(&mut network.flows[0], meter("tsw", r#"{"rate": "300kbps", "out": "drop"}"#));
        // Data on the second link, ACKs on the way back over the first.
        let profile = meter(name, table);
        let all = AggregateMeter {
            name: "all".into(),
            r#match: perhop_core::scheduler::Match::default(),
            profile,
            promote: false,
        };
        network.links[2].meters = vec![all.clone()];
        network.links[1].meters = vec![all];
        let outcome = run_alike(&network);
        for (transport, flow) in transports.iter().zip(&outcome.flows) {
            assert_eq!(flow.sender.sent, flow.marked.iter().sum::<u64>());
            if matches!(transport, TransportSpec::Tcp(_)) {
                continue; // A segment may arrive twice.
            }
            let gone = [flow.dropped, flow.policed.unwrap_or_default()].concat().iter().sum::<u64>();
            assert_eq!(flow.sender.sent, flow.delivered_packets + gone, "{name} {table}");
        }
        for link in [&outcome.links[1], &outcome.links[2]] {
            let MeterCounts { arrived, passed, policed } = &link.meters[0].measured;
            let sum = |packets: &[u64; 3]| packets.iter().sum::<u64>();
            assert_eq!(sum(arrived), sum(passed) + sum(policed));
            assert_eq!(link.counters.arrived, *passed, "no packet reaches the queue past the meter");
            policed_by_color.iter_mut().zip(policed).for_each(|(all, of_link)| *all += of_link);
        }
    }
    assert!(policed_by_color[1] > 500 && policed_by_color[2] > 500, "{policed_by_color:?}");
}

#[test]
fn a_meter_of_a_link_is_counted_after_the_warm_up() {
    for engine in [Engine::Batched, Engine::Reference] {
        let mut network = colored_by_its_host();
        network.links[2].meters = meters(&HUNDRED.replace("OUT", "drop-red"));
        network.warmup = Duration::from_millis(4001);
        let outcome = run(&network, engine);
        let measured = &outcome.links[2].meters[0].measured;
        // A packet comes there 3.8 ms after it was sent: 0 to 1998 by then. Of 1999 to 3999 each fourth is
        // green, from 2000 on.
        assert_eq!(measured.arrived, [500, 1501, 0]);
        assert_eq!((measured.passed, measured.policed), ([500, 0, 0], [0, 0, 1501]));
        assert_eq!(outcome.flows[0].policed, Some([0, 0, 1501]));
    }
}

#[test]
fn meters_of_two_links_are_passed_one_after_the_other() {
    let bucket = |name: &str, rate: &str| {
        meters(&format!(
            r#"[{{"name": "{name}", "profile": {{"marker": "token-bucket", "rate": "{rate}", "burst": "2kB", "out": "drop"}}}}]"#
        ))
    };
    let mut network = two_links(
        &[udp(r#"{"udp": "cbr", "rate": "4Mbps", "packet": "1000B", "jitter": 0.0}"#)],
        "10Mbps",
        "9p",
    );
    network.flows[0].color = Color::Green;
    (network.links[0].meters, network.links[2].meters) = (bucket("one", "2Mbps"), bucket("two", "1Mbps"));
    let outcome = run_alike(&network);
    let counts = |link: usize| outcome.links[link].meters[0].measured.clone();
    // 2 Mbit/s let these pass: 0, 1, 2, 4, 6, ..., 3998. Of them 1 Mbit/s let these pass: 0, 1, 4, 8,
    // ..., 3996.
    assert_eq!((counts(0).passed, counts(0).policed), ([2001, 0, 0], [0, 1999, 0]));
    let second = MeterCounts { arrived: [2001, 0, 0], passed: [1001, 0, 0], policed: [0, 1000, 0] };
    assert_eq!(counts(2), second);
    assert_eq!((outcome.flows[0].policed, outcome.flows[0].delivered_packets), (Some([0, 2999, 0]), 1001));
}
