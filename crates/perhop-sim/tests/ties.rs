//! Users of applications in networks where data, ACKs, timers, changes of links and users' events meet at one
//! and the same nanosecond: all times are multiples of half a millisecond, so that the order of simultaneous
//! events decides.

use perhop_core::medium::{Change, Opportunities, Outage, RateTrace};
use perhop_core::meter::MeterParams;
use perhop_core::{Duration, Instant};
use perhop_sim::{
    AccessSpec, ApplicationSpec, Connection, Engine, FlowSpec, LinkSpec, Marking, Network, SharedMeter,
    Simulation,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::applications::application;
use crate::common::{aqm, duplex, flow, meter, run_alike, tcp, udp};
use crate::engine::assert_same;

/// A packet takes a millisecond at this rate, and its ACK half a millisecond; twice as long at the other.
const RATE: &str = "8Mbps";
const HALF: &str = "4Mbps";

/// Users without a random time: all that they do takes multiples of half a millisecond, or no time.
const MODELS: [(&str, &str); 9] = [
    ("request-response", r#"{"request": "500B", "response": "500B", "think": "0s", "times": "constant"}"#),
    ("request-response", r#"{"request": "500B", "response": "1500B", "think": "1ms", "times": "constant"}"#),
    (
        "request-response",
        r#"{"request": "1500B", "response": "5kB", "think": "2500us", "service": "2ms", "times": "constant"}"#,
    ),
    (
        "request-response",
        r#"{"request": "1kB", "response": "15kB", "think": "0s", "service": "5ms", "times": "constant"}"#,
    ),
    (
        "request-response",
        r#"{"request": "1kB", "response": "2500B", "think": "0s", "times": "constant", "sizes": "exponential"}"#,
    ),
    ("web", r#"{"request": "500B", "connections": 1, "scale": 0.3, "reading": "0s", "parsing": "0s"}"#),
    ("web", r#"{"request": "500B", "connections": 4, "scale": 0.3, "reading": "0s", "parsing": "0s"}"#),
    ("web", r#"{"request": "1kB", "connections": 2, "scale": 0.1, "reading": "0s", "parsing": "0s"}"#),
    (
        "video",
        r#"{"request": "500B", "rates": ["200kbps", "800kbps"], "chunk": "100ms", "buffer": "300ms", "reservoir": "100ms", "cushion": "100ms"}"#,
    ),
];

/// Clocks, timers and delayed ACKs are of whole milliseconds.
const CARRIERS: [&str; 9] = [
    r#""tcp": "newreno", "tick": "1ms""#,
    r#""tcp": "reno", "tick": "1ms", "min-rto": "5ms", "initial-rto": "20ms""#,
    r#""tcp": "newreno", "tick": "1ms", "min-rto": "10ms", "initial-rto": "8ms", "initial-window": "4p", "idle-restart": "none""#,
    r#""tcp": "newreno", "tick": "1ms", "min-rto": "10ms", "delayed-ack": "4ms", "initial-rto": "12ms", "initial-window": "2p""#,
    r#""tcp": "newreno", "tick": "1ms", "delayed-ack": "1ms", "handshake": true, "initial-rto": "30ms", "min-rto": "20ms""#,
    r#""tcp": "newreno", "tick": "1ms", "sack": true, "delayed-ack": "2ms", "initial-window": "10p", "initial-rto": "30ms", "min-rto": "20ms""#,
    r#""tcp": "linux", "tick": "1ms", "delayed-ack": "3ms", "initial-rto": "20ms", "min-rto": "10ms""#,
    r#""tcp": "newreno", "tick": "1ms", "window": "3p", "initial-window": "3p", "initial-rto": "9ms", "min-rto": "3ms""#,
    r#""tcp": "two-windows", "tick": "1ms", "initial-rto": "20ms", "min-rto": "10ms""#,
];

/// A packet carries 500 bytes behind its headers, which are as long as an ACK.
const SIZES: &str = r#""packet": "1000B", "ack": "500B""#;

/// A group of users, by the rows above.
#[derive(Clone, Debug)]
struct Row {
    model: usize,
    carrier: usize,
    users: usize,
    start: u64,
    traits: u8,
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (0..MODELS.len(), 0..CARRIERS.len(), 1_usize..4, 0_u64..4, any::<u8>());
    let row =
        row.prop_map(|(model, carrier, users, start, traits)| Row { model, carrier, users, start, traits });
    prop::collection::vec(row, 1..4)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Adds a group of users, which all begin at once, and its flows.
fn add_group(network: &mut Network, row: &Row, (from, to): (u32, u32)) {
    let is = |bit: u32| row.traits >> bit & 1 == 1;
    let (model, table) = MODELS[row.model];
    let params = application(model, table);
    let transport = tcp(&format!("{{{}, {SIZES}}}", CARRIERS[row.carrier]));
    let flows = &mut network.flows;
    let mut add = |connection: u32, from, to| {
        let name = format!("{}", flows.len());
        let mut flow = flow(name, from, to, transport.clone(), is(3).then(small_profile));
        let is_other = is(7) && connection % 2 == 1;
        at_routers(&mut flow, is(0) != is_other);
        if is(3) && is(4) {
            flow.marking = Marking::Edge(0);
        }
        flow.out_feedback = (is(3) && is(5)).then_some(millis(2));
        flows.push(flow);
        flows.len() - 1
    };
    // Among simultaneous packets, those of the flow with the lower number come first.
    let mut connection = |number| {
        // Some connections lead half the way.
        let (from, to) =
            if is(6) && number % 2 == 1 && from.max(to) == 2 { (from.min(1), to.min(1)) } else { (from, to) };
        if is(1) {
            Connection { request: add(number, to, from), response: add(number, from, to) }
        } else {
            Connection { response: add(number, from, to), request: add(number, to, from) }
        }
    };
    let users = (0..row.users).map(|_| (0..params.connections()).map(&mut connection).collect()).collect();
    let start = Instant::ZERO + millis(row.start);
    let name = format!("group {}", network.applications.len());
    network.applications.push(ApplicationSpec { name, params, start: (start, start), users });
}

/// A profile that most bursts are beyond.
fn small_profile() -> MeterParams {
    meter("token-bucket", r#"{"rate": "800kbps", "burst": "3kB"}"#)
}

/// Puts the hosts of the flow at the routers, or a millisecond of delay and one of serialization away from
/// them.
fn at_routers(flow: &mut FlowSpec, is: bool) {
    for access in [&mut flow.access, &mut flow.egress] {
        match access {
            Some(access) if !is => access.rate = RATE.parse().unwrap(),
            _ => *access = None,
        }
    }
}

/// Flows that no user has: a packet each second millisecond, and TCP.
fn others(count: usize, hops: u32) -> impl Iterator<Item = FlowSpec> {
    (0..count).map(move |n| {
        let transport = match n % 2 {
            0 => udp(r#"{"udp": "cbr", "rate": "4Mbps", "packet": "1000B", "jitter": 0.0}"#),
            _ => tcp(&format!("{{{}, {SIZES}}}", CARRIERS[2])),
        };
        let mut flow = flow(format!("other{n}"), 0, hops, transport, None);
        at_routers(&mut flow, n % 3 == 0);
        flow.start = (Instant::ZERO, Instant::ZERO);
        flow.stop = Some(Instant::ZERO + millis(100));
        flow
    })
}

/// A link that changes at whole milliseconds: its rate or its delay, by outages or by a trace of its rate;
/// most do not.
fn set_medium(link: &mut LinkSpec, kind: usize) {
    let change = |at: u64, rate: Option<&str>, delay: Option<u64>| Change {
        at: millis(at),
        rate: rate.map(|rate| rate.parse().unwrap()),
        delay: delay.map(millis),
    };
    let medium = &mut link.medium;
    match kind {
        0 => {
            medium.changes =
                (1..40).map(|n| change(7 * n, Some([RATE, HALF][n as usize % 2]), None)).collect();
        }
        1 => {
            medium.changes =
                (1..40).map(|n| change(6 * n, None, Some([3, 1, 5, 2][n as usize % 4]))).collect();
        }
        2 => {
            medium.outages =
                (1..30).map(|n| Outage { from: millis(10 * n), to: millis(10 * n + 3) }).collect();
        }
        3 => {
            let trace = Opportunities::new(vec![1, 2, 4, 5, 5], true).unwrap();
            medium.trace = Some(RateTrace::Opportunities(trace).into());
            link.delay = link.delay.max(millis(1));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Both engines agree in every number on such networks, also where the batched one stops on the way.
    #[test]
    fn both_engines_agree_where_all_happens_at_once(
        rows in rows(),
        (hops, delay, traits) in (1_u32..3, 0_u64..4, any::<u8>()),
        limit in prop::sample::select(vec!["2p", "5p", "100p"]),
        (count, first) in (0_usize..3, any::<bool>()),
        media in prop::collection::vec(0_usize..12, 4),
        (warmup, probe) in (0_u64..2, prop::sample::select(vec![None, Some(1), Some(5)])),
        slices in 1_u64..5,
    ) {
        let is = |bit: u32| traits >> bit & 1 == 1;
        let queue = aqm("drop-tail", &format!(r#"{{"limit": "{limit}"}}"#));
        let links = (0..hops).flat_map(|n| {
            let mut links = duplex(&format!("l{n}"), n, n + 1, RATE, &format!("{delay}ms"), queue.clone());
            if is(0) {
                links[1].queue = Some(queue.clone().into());
            }
            if is(1) {
                links[1].rate = HALF.parse().unwrap();
            }
            links
        });
        let mut links: Vec<LinkSpec> = links.collect();
        for (link, &kind) in links.iter_mut().zip(&media) {
            set_medium(link, kind);
        }
                let mut network = Network {
            nodes: hops + 1,
            links,
            shared_meters: vec![SharedMeter { name: "shared".into(), params: small_profile() }],
            probe_interval: probe.map(millis),
            warmup: millis(20 * warmup),
            ..Network::new(millis(300))
        };
        if first {
            network.flows.extend(others(count, hops));
        }
        for row in &rows {
            let ends = if row.traits >> 2 & 1 == 1 { (hops, 0) } else { (0, hops) };
            add_group(&mut network, row, ends);
        }
        if !first {
            network.flows.extend(others(count, hops));
        }
        let run = |engine| {
            let mut simulation = Simulation::on_engine(&network, 1, engine).unwrap();
            let slices = if engine == Engine::Batched { slices } else { 1 };
            (1..=slices).for_each(|n| simulation.run_until(Instant::ZERO + millis(n * 300 / slices)));
            simulation.finish().unwrap()
        };
        assert_same(&run(Engine::Batched), &run(Engine::Reference));
    }
}

/// Packets that pass the links between a client and a server, and exchanges that are complete. A packet takes
/// 2 ms to the other side, and the ACK of a request waits for 2 ms.
fn exchanges_with_service(service: &str) -> (u64, u64) {
    let table = format!(
        r#"{{"request": "500B", "response": "500B", "think": "0s", "service": "{service}", "times": "constant"}}"#
    );
    let transport =
        tcp(&format!(r#"{{"tcp": "newreno", "initial-window": "2p", "delayed-ack": "2ms", {SIZES}}}"#));
    let flows = [("response", 0, 1), ("request", 1, 0)].map(|(name, from, to)| {
        let mut flow = flow(name.into(), from, to, transport.clone(), None);
        at_routers(&mut flow, true);
        flow
    });
    let (params, start) = (application("request-response", &table), (Instant::ZERO, Instant::ZERO));
    let users = vec![vec![Connection { response: 0, request: 1 }]];
    let network = Network {
        nodes: 2,
        links: duplex("l", 0, 1, RATE, "1ms", aqm("drop-tail", r#"{"limit": "100p"}"#)).into(),
        flows: flows.into(),
        applications: vec![ApplicationSpec { name: "users".into(), params, start, users }],
        ..Network::new(millis(300))
    };
    let outcome = run_alike(&network);
    (outcome.hops, outcome.applications[0].recorded.samples_of("response_s").len() as u64)
}

#[test]
fn a_timer_that_expires_as_its_user_wakes_comes_first_by_hand() {
    // The server responds 1 ms after the request, and the response carries the ACK: two packets an exchange.
    // It responds after 2 ms, at which moment the ACK is due: the ACK goes first, and the response carries it
    // once more. After 3 ms it has gone before.
    for (service, packets) in [("1ms", 2), ("2ms", 3), ("3ms", 3)] {
        let (hops, exchanges) = exchanges_with_service(service);
        assert!(exchanges > 30 && hops.abs_diff(packets * exchanges) <= 3, "{service}: {hops} {exchanges}");
    }
}

/// Pages of three objects, each of which is one packet: the first, then two at once over a connection each.
const ONE_PACKET_EACH: &str = r#"{
    "request": "500B", "connections": 2, "parsing": "0s", "reading": "0s",
    "main": {"mu": 5.0, "sigma": 1.0, "least": "1B", "most": "500B"},
    "embedded": {"mu": 5.0, "sigma": 1.0, "least": "1B", "most": "500B"},
    "objects": {"alpha": 1.0, "least": 2.0, "most": 2.0, "less": 0.0}
}"#;

#[test]
fn what_users_record_at_once_is_in_the_order_of_flows_also_where_the_last_ones_act_first() {
    // Forty users with a link each, who complete their pages at the same times. The last ten get the second
    // object after the first, and so have turns before the others, who get both at once: they ask for the
    // second object first, and it takes two milliseconds more to the host.
    let mut network = Network { nodes: 80, ..Network::new(Duration::from_secs(2)) };
    let transport = tcp(&format!("{{{}, {SIZES}}}", CARRIERS[2]));
    let users = (0..40).map(|user| {
        let (from, to) = (2 * user, 2 * user + 1);
        let queue = aqm("drop-tail", r#"{"limit": "100p"}"#);
        let mut links = duplex(&format!("l{user}"), from, to, RATE, "3ms", queue);
        let is_last = user >= 30;
        if is_last {
            links[1].medium.outages = vec![Outage { from: Duration::ZERO, to: millis(1) }];
        }
        network.links.extend(links);
        let mut add = |from, to, is_far: bool| {
            let mut flow = flow(format!("{}", network.flows.len()), from, to, transport.clone(), None);
            at_routers(&mut flow, true);
            flow.egress = is_far.then(|| AccessSpec { rate: RATE.parse().unwrap(), delay: millis(1) });
            network.flows.push(flow);
            network.flows.len() - 1
        };
        let mut connection =
            |is_far| Connection { response: add(from, to, is_far), request: add(to, from, false) };
        let (one, other) = (connection(!is_last), connection(false));
        if is_last { vec![one, other] } else { vec![other, one] }
    });
    let (users, params) = (users.collect(), application("web", ONE_PACKET_EACH));
    let start = (Instant::ZERO, Instant::ZERO);
    network.applications = vec![ApplicationSpec { name: "users".into(), params, start, users }];
    let outcome = run_alike(&network);
    let times = outcome.applications[0].recorded.samples_of("page_s");
    // From the third page on, each takes 18 ms, and one of the last ten 17.5 ms.
    let of = |range: std::ops::Range<usize>, millis: f64| {
        times[range].iter().all(|time| (time - millis / 1e3).abs() < 1e-12)
    };
    assert!(
        of(0..30, 18.0) && of(30..40, 18.5),
        "the outage delays the first page of the last ten: {times:?}"
    );
    assert!(of(40..50, 17.5) && of(50..80, 19.0), "the last ten come first: {times:?}");
    let rest = &times[80..];
    let counts =
        [17.5, 18.0].map(|millis| rest.iter().filter(|time| (*time - millis / 1e3).abs() < 1e-12).count());
    assert!(rest.len() > 4000 && counts[0] > 1000 && counts[0] + counts[1] == rest.len(), "{counts:?}");
}
