//! Policers: meters that drop packets out of profile, at the host, at the first router, and at one that flows
//! share.

use perhop_core::meter::MeterParams;
use perhop_core::{Color, Duration, Instant};
use perhop_sim::{FlowSpec, Marking, Network, SharedMeter, TransportSpec};

use crate::common::{aqm, duplex, flow, meter, rap, run_alike, tcp, tfrc, udp};
use crate::parameters::METERS;

/// Where a meter may be.
const PLACES: [fn(MeterParams) -> Marking; 3] = [Marking::Host, Marking::Ingress, |_| Marking::Edge(0)];

/// Flows of these transports over one link, all metered by this profile at this place.
fn metered(
    transports: &[TransportSpec],
    profile: &MeterParams,
    place: fn(MeterParams) -> Marking,
    (rate, limit): (&str, &str),
) -> Network {
    let flows = transports.iter().enumerate().map(|(number, transport)| FlowSpec {
        marking: place(profile.clone()),
        start: (Instant::ZERO, Instant::ZERO),
        stop: Some(Instant::ZERO + Duration::from_secs(8)),
        ..flow(format!("{number}"), 0, 1, transport.clone(), Some(profile.clone()))
    });
    let queue = aqm("drop-tail", &format!(r#"{{"limit": "{limit}"}}"#));
    Network {
        nodes: 2,
        links: duplex("there", 0, 1, rate, "10ms", queue).into(),
        flows: flows.collect(),
        shared_meters: vec![SharedMeter { name: "shared".into(), params: profile.clone() }],
        ..Network::new(Duration::from_secs(10))
    }
}

#[test]
fn a_token_bucket_drops_every_second_packet_of_twice_its_rate() {
    // A packet of 1000 bytes each 4 ms for 8 s against 1 Mbit/s and 2000 bytes: the bucket, full at first, is
    // empty with the third packet, and then holds enough for every second one. Of packets 0 to 1999 these
    // pass: 0, 1, 2, 4, 6, ..., 1998.
    let cbr = udp(r#"{"udp": "cbr", "rate": "2Mbps", "packet": "1000B", "jitter": 0.0}"#);
    let bucket =
        |out| meter("token-bucket", &format!(r#"{{"rate": "1Mbps", "burst": "2kB", "out": "{out}"}}"#));
    for place in PLACES {
        let outcome =
            run_alike(&metered(std::slice::from_ref(&cbr), &bucket("drop"), place, ("10Mbps", "9p")));
        let (flow, link) = (&outcome.flows[0], &outcome.links[0]);
        assert_eq!((flow.sender.sent, flow.marked), (2000, [1001, 999, 0]));
        assert_eq!((flow.policed, flow.dropped), (Some([0, 999, 0]), [0; 3]));
        assert_eq!((flow.delivered_packets, link.counters.arrived), (1001, [1001, 0, 0]));
        assert_eq!(link.counters.drops().count(), 0, "no queue dropped them");

        let marking =
            run_alike(&metered(std::slice::from_ref(&cbr), &bucket("mark"), place, ("10Mbps", "9p")));
        let (flow, link) = (&marking.flows[0], &marking.links[0]);
        assert_eq!((flow.marked, flow.policed, flow.delivered_packets), ([1001, 999, 0], None, 2000));
        assert_eq!(link.counters.arrived, [1001, 999, 0]);
    }
}

/// Meters of the RFCs: committed rate 1 Mbit/s, peak rate 2 Mbit/s, bursts of two packets.
const THREE_COLORS: [(&str, &str); 3] = [
    ("srtcm", r#""burst": "2kB", "excess-burst": "2kB""#),
    ("trtcm", r#""burst": "2kB", "peak-rate": "2Mbps", "peak-burst": "2kB""#),
    ("rfc4115", r#""burst": "2kB", "excess-rate": "1Mbps", "excess-burst": "2kB""#),
];

fn three_colors((name, keys): (&str, &str), mode: &str, out: &str) -> MeterParams {
    meter(name, &format!(r#"{{"rate": "1Mbps", {keys}, "mode": "{mode}", "out": "{out}"}}"#))
}

#[test]
fn meters_of_three_colors_see_the_flows_color_at_every_place() {
    // A packet of 1000 bytes each 2 ms for 8 s, packets 0 to 3999; 1 Mbit/s are 250 bytes in that time. A
    // bucket of 1 Mbit/s suffices for 0, 1, 4, 8, ..., 3996. Of the others, srtcm's second bucket takes 2 and
    // 3, since the first never overflows again; trtcm's peak rate takes 2, 6, ..., 3998; rfc4115's second
    // bucket 2, 3, 6, 10, ..., 3998. If all come yellow, srtcm's first bucket stays full, so that all tokens
    // go to the second.
    let cbr = udp(r#"{"udp": "cbr", "rate": "4Mbps", "packet": "1000B", "jitter": 0.0}"#);
    let green = [[1001, 2, 2997], [1001, 1000, 1999], [1001, 1001, 1998]];
    let yellow = [[0, 1001, 2999], [0, 2001, 1999], [0, 1001, 2999]];
    for (number, row) in THREE_COLORS.into_iter().enumerate() {
        for place in PLACES {
            for (mode, color, expected) in [
                ("color-blind", Color::Red, green[number]),
                ("color-aware", Color::Green, green[number]),
                ("color-aware", Color::Yellow, yellow[number]),
                ("color-aware", Color::Red, [0, 0, 4000]),
            ] {
                for out in ["mark", "drop-red"] {
                    let profile = three_colors(row, mode, out);
                    let mut network = metered(std::slice::from_ref(&cbr), &profile, place, ("10Mbps", "9p"));
                    network.flows[0].color = color;
                    let outcome = run_alike(&network);
                    let (flow, [green, yellow, red]) = (&outcome.flows[0], expected);
                    assert_eq!(flow.marked, expected, "{} {mode} {color:?}", row.0);
                    let goes_on = if out == "mark" { red } else { 0 };
                    assert_eq!(outcome.links[0].counters.arrived, [green, yellow, goes_on]);
                    assert_eq!(flow.policed, (out == "drop-red").then_some([0, 0, red]));
                }
            }
        }
    }
}

#[test]
fn queues_of_three_colors_drop_by_the_colors_of_the_rfcs() {
    // Together 4 Mbit/s over a link of 1.6: each color has more than it alone could send.
    let rules = [
        (
            "rio-three",
            r#"{"in": "40/60/0.02", "out-in": "20/30/0.05", "out-out": "5/10/0.2", "limit": "80p"}"#,
        ),
        ("wred", r#"{"green": "40/60/0.02", "yellow": "20/30/0.05", "red": "5/10/0.2", "limit": "80p"}"#),
    ];
    let cbr = udp(r#"{"udp": "cbr", "rate": "2Mbps", "packet": "1000B", "jitter": 0.1}"#);
    let window = ("tswtcm", r#"{"rate": "500kbps", "peak-rate": "1Mbps"}"#);
    let bursts = r#""burst": "5kB", "peak-rate": "1Mbps", "peak-burst": "5kB"}"#;
    let buckets = ("trtcm", format!(r#"{{"rate": "500kbps", {bursts}"#));
    for (rule, table) in rules {
        for (name, keys) in [window, (buckets.0, &buckets.1)] {
            let flows = [cbr.clone(), cbr.clone()];
            let mut network = metered(&flows, &meter(name, keys), Marking::Host, ("1.6Mbps", "9p"));
            network.links[0].queue = Some(aqm(rule, table).into());
            let counters = &run_alike(&network).links[0].counters;
            let shares = Color::ALL
                .map(|color| counters.dropped_of(color) as f64 / counters.arrived[color.index()] as f64);
            assert!(
                shares[0] < 0.05 && shares[0] < shares[1] && shares[1] < shares[2],
                "{rule} {name}: {shares:?}"
            );
            assert!(shares[2] > 0.9, "{rule} {name}: {shares:?}");
        }
    }
}

#[test]
fn every_meter_conserves_packets_at_every_place() {
    let transports = [
        udp(r#"{"udp": "cbr", "rate": "900kbps", "packet": "500B", "jitter": 0.3}"#),
        udp(r#"{"udp": "on-off", "rate": "600kbps", "packet": "200B", "on": "1.004s", "off": "487ms"}"#),
        tcp(r#"{"tcp": "newreno"}"#),
        tcp(r#"{"tcp": "two-windows", "sack": true}"#),
        rap(r#"{"rap": "aimd"}"#),
        tfrc(r#"{"tfrc": "rfc5348"}"#),
    ];
    let mut policed_by_three_colors = [0; 3];
    for &(name, table) in METERS {
        let profile = meter(name, table);
        for place in PLACES {
            // A link so narrow that its queue drops packets, too.
            let outcome = run_alike(&metered(&transports, &profile, place, ("1Mbps", "6p")));
            let link = &outcome.links[0];
            for (transport, flow) in transports.iter().zip(&outcome.flows) {
                let policed = flow.policed.unwrap_or_default();
                assert_eq!(flow.sender.sent, flow.marked.iter().sum::<u64>(), "the meter sees every packet");
                assert_eq!(flow.policed.is_some(), profile.actions().drop_any());
                assert_eq!(policed[Color::Green.index()], 0);
                if matches!(transport, TransportSpec::Tcp(_)) {
                    continue; // A segment may arrive twice.
                }
                // All have stopped, and nothing is in transit: sent = delivered + dropped at queues +
                // policed.
                let gone = [flow.dropped, policed].concat().iter().sum::<u64>();
                assert_eq!(flow.sender.sent, flow.delivered_packets + gone, "{name} {table}");
            }
            for color in Color::ALL.map(Color::index) {
                let of_flows = |count: fn(&perhop_sim::FlowOutcome) -> [u64; 3]| {
                    outcome.flows.iter().map(|flow| count(flow)[color]).sum::<u64>()
                };
                let policed = of_flows(|flow| flow.policed.unwrap_or_default());
                assert_eq!(link.counters.arrived[color], of_flows(|flow| flow.marked) - policed);
                policed_by_three_colors[color] += policed;
            }
        }
    }
    assert!(
        policed_by_three_colors[1] > 1000 && policed_by_three_colors[2] > 1000,
        "{policed_by_three_colors:?}"
    );
}

#[test]
fn a_sender_learns_of_a_policed_packet_by_its_loss_alone() {
    let bucket = meter("token-bucket", r#"{"rate": "1Mbps", "burst": "10kB", "out": "drop"}"#);
    for transport in [r#"{"tcp": "newreno"}"#, r#"{"tcp": "newreno", "sack": true}"#] {
        for place in PLACES {
            let outcome = run_alike(&metered(&[tcp(transport)], &bucket, place, ("10Mbps", "99p")));
            let flow = &outcome.flows[0];
            assert_eq!(flow.dropped, [0; 3], "the link has room");
            assert!(flow.sender.fast_retransmits > 3, "{:?}", flow.sender);
            assert!(flow.sender.retransmitted >= flow.policed.unwrap()[1], "each loss is repaired");
            // What passed is at most the profile: 8 s of 1 Mbit/s and one bucket.
            let bytes = flow.marked[0] * 1000;
            assert!((500_000..=1_010_000).contains(&bytes), "{bytes}");
        }
    }
}

#[test]
fn feedback_reports_packets_that_were_marked_out_and_none_that_was_dropped() {
    // The window of a sender that hears of an OUT packet shrinks by one (No-OUT); so does none here.
    let window = |out: &str| {
        let bucket = meter("token-bucket", &format!(r#"{{"rate": "8bps", "burst": "0B", "out": "{out}"}}"#));
        let once = tcp(r#"{"tcp": "newreno", "initial-window": "4p", "initial-rto": "60s"}"#);
        let mut network = metered(&[once], &bucket, Marking::Host, ("10Mbps", "99p"));
        network.flows[0].out_feedback = Some(Duration::ZERO);
        network.probe_interval = Some(Duration::from_secs(1));
        run_alike(&network).series.window_packets[0]
    };
    assert_eq!(window("drop"), 4.0);
    assert!(window("mark") < 4.0);
}

#[test]
fn policed_packets_are_counted_after_the_warm_up() {
    let cbr = udp(r#"{"udp": "cbr", "rate": "2Mbps", "packet": "1000B", "jitter": 0.0}"#);
    let bucket = meter("token-bucket", r#"{"rate": "1Mbps", "burst": "2kB", "out": "drop"}"#);
    for place in PLACES {
        let mut network = metered(std::slice::from_ref(&cbr), &bucket, place, ("10Mbps", "9p"));
        network.warmup = Duration::from_millis(4001);
        // Odd packets from 3 on are dropped, the last before the end of the warm-up 3996 ms after the start,
        // at the router 1.8 ms later.
        let policed = run_alike(&network).flows[0].policed.unwrap()[1];
        assert_eq!(policed, 999 - 499, "packets 3, 5, ..., 999 came before");
    }
}
