//! Users of applications, on both engines.

use perhop_core::{Duration, Instant};
use perhop_sim::application::{ApplicationParams, Carrier};
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::transport::udp::UdpParams;
use perhop_sim::{
    ApplicationSpec, Connection, Engine, Failure, FlowSpec, Marking, Network, OneThread, Outcome,
    SharedMeter, Simulation, TransportSpec, Watch,
};
use proptest::prelude::*;

use crate::common::{aqm, chain, duplex, flow, profile, run_alike, tcp, udp};
use crate::engine::{any_queue, assert_same};

pub fn application(model: &str, table: &str) -> ApplicationParams {
    let mut read = serde_json::Deserializer::from_str(table);
    ApplicationParams::deserialize_named(model, &mut read).unwrap().unwrap()
}

/// Users with connections over a link of this rate and a delay of 20 ms, behind a queue of 100 packets; their
/// hosts are at the routers. Packets are of 1040 bytes, 40 of which are headers, and requests of 140.
fn network(params: ApplicationParams, users: usize, rate: &str, transport: &str, seconds: u64) -> Network {
    let requests = tcp(&format!(r#"{{{transport}, "packet": "140B"}}"#));
    let responses = tcp(&format!(r#"{{{transport}, "packet": "1040B"}}"#));
    let mut flows = Vec::new();
    let mut add = |name: String, from, to, transport: &TransportSpec| {
        let mut flow = flow(name, from, to, transport.clone(), None);
        (flow.access, flow.egress) = (None, None);
        flows.push(flow);
        flows.len() - 1
    };
    let connections = params.connections();
    let users = (0..users)
        .map(|user| {
            let connection = |number| Connection {
                response: add(format!("users/{user}/{number}"), 0, 1, &responses),
                request: add(format!("users (reverse)/{user}/{number}"), 1, 0, &requests),
            };
            (0..connections).map(connection).collect()
        })
        .collect();
    let start = (Instant::ZERO, Instant::ZERO);
    Network {
        nodes: 2,
        links: duplex("bottleneck", 0, 1, rate, "20ms", aqm("drop-tail", r#"{"limit": "100p"}"#)).into(),
        flows,
        applications: vec![ApplicationSpec { name: "users".into(), params, start, users }],
        ..Network::new(Duration::from_secs(seconds))
    }
}

fn samples<'a>(outcome: &'a Outcome, name: &str) -> &'a [f64] {
    outcome.applications[0].recorded.samples_of(name)
}

fn measure(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.applications[0].measures.iter().find(|(known, _)| *known == name);
    found.and_then(|(_, value)| *value).unwrap()
}

/// A page of one object of 3000 bytes.
const ONE_OBJECT: &str = r#"{"request": "100B", "main": {"mu": 8.006367567650246, "sigma": 0.0, "least": "2999B", "most": "3001B"},
    "objects": {"alpha": 1.0, "least": 1.0, "most": 1.0, "less": 1.0}, "reading": "1s"}"#;

#[test]
fn the_time_of_a_page_of_one_object_over_an_idle_path_by_hand() {
    // At 8 Mbit/s a byte takes 1 us. The request: 140 us and 20 ms. The response is three packets of 1040 us
    // each, all within the initial window, and 20 ms: 43.26 ms.
    let params = application("web", ONE_OBJECT);
    let outcome =
        run_alike(&network(params.clone(), 1, "8Mbps", r#""tcp": "newreno", "initial-window": "4p""#, 30));
    let pages = samples(&outcome, "page_s");
    assert!(pages.len() > 5 && pages.iter().all(|time| (time - 0.043_26).abs() < 1e-9), "{pages:?}");
    assert_eq!(samples(&outcome, "page_bytes")[0], 3000.0);
    // With a window of one segment each further packet waits for an ACK: two round trips of 20 ms + 40 us +
    // 20 ms + 1.04 ms more at first, in place of 2.08 ms; slow start gives two segments in the second round
    // trip.
    let slow = network(params, 1, "8Mbps", r#""tcp": "newreno", "initial-window": "1p""#, 30);
    let outcome = run_alike(&slow);
    let first = samples(&outcome, "page_s")[0];
    assert!((first - (0.020_14 + 0.021_04 + 0.020_04 + 0.020 + 2.0 * 0.001_04)).abs() < 1e-9, "{first}");
}

#[test]
fn a_handshake_adds_a_round_trip_to_the_first_page_alone() {
    let transport = r#""tcp": "newreno", "initial-window": "4p""#;
    let mut opening = network(application("web", ONE_OBJECT), 1, "8Mbps", transport, 30);
    let request = opening.applications[0].users[0][0].request;
    opening.flows[request].transport =
        tcp(&format!(r#"{{{transport}, "packet": "140B", "handshake": true}}"#));
    let outcome = run_alike(&opening);
    let pages = samples(&outcome, "page_s");
    // The SYN and its ACK have 40 bytes each.
    assert!((pages[0] - (0.043_26 + 0.040_08)).abs() < 1e-9, "{}", pages[0]);
    assert!((pages[1] - 0.043_26).abs() < 1e-9, "{}", pages[1]);
}

const TRANSPORTS: [&str; 5] = [
    r#""tcp": "newreno", "initial-window": "10p""#,
    r#""tcp": "linux""#,
    r#""tcp": "linux", "congestion": "bbr""#,
    r#""tcp": "linux", "congestion": "bbr3""#,
    r#""tcp": "quic""#,
];

#[test]
fn all_that_is_granted_arrives_in_spite_of_losses() {
    for transport in TRANSPORTS {
        // Eight users ask for more than the link has: queues overflow, and pages still complete.
        let params = application("web", r#"{"scale": 10.0, "reading": "1s"}"#);
        let mut crowded = network(params, 8, "4Mbps", transport, 60);
        crowded.links[0].queue = Some(aqm("drop-tail", r#"{"limit": "15p"}"#).into());
        let outcome = run_alike(&crowded);
        let dropped: u64 = outcome.flows.iter().flat_map(|flow| flow.dropped).sum();
        assert!(dropped > 100, "{transport}: {dropped}");
        let pages = samples(&outcome, "page_bytes");
        let unfinished = measure(&outcome, "unfinished_pages");
        assert!(pages.len() > 20 && unfinished <= 8.0, "{transport}: {}", pages.len());
        // What has arrived is at least what complete pages are made of.
        let delivered: u64 = outcome.flows.iter().map(|flow| flow.delivered_bytes).sum();
        assert!(delivered as f64 > pages.iter().sum::<f64>());
    }
}

#[test]
fn users_draw_the_same_whatever_the_mechanism() {
    let queues = [
        aqm("drop-tail", r#"{"limit": "6p"}"#),
        aqm("drop-tail", r#"{"limit": "500p"}"#),
        aqm("codel", r#"{"limit": "500p"}"#),
        aqm("red", r#"{"limit": "100p", "thresholds": "5/20/0.2", "weight": 0.02}"#),
    ];
    let runs: Vec<Outcome> = queues
        .into_iter()
        .map(|queue| {
            let params = application("web", r#"{"reading": "1s", "scale": 3.0}"#);
            let mut network = network(params, 1, "1Mbps", TRANSPORTS[0], 200);
            network.links[0].queue = Some(queue.into());
            run_alike(&network)
        })
        .collect();
    let pages: Vec<&[f64]> = runs.iter().map(|outcome| samples(outcome, "page_bytes")).collect();
    let common = pages.iter().map(|pages| pages.len()).min().unwrap();
    assert!(common > 20, "{common}");
    assert!(pages.windows(2).all(|pair| pair[0][..common] == pair[1][..common]), "the same pages");
    let times: Vec<f64> = runs.iter().map(|outcome| measure(outcome, "page_mean_s")).collect();
    assert!(times.windows(2).all(|pair| pair[0] != pair[1]), "in other times: {times:?}");
}

#[test]
fn a_closed_loop_keeps_to_littles_law() {
    // N users, each of which thinks for Z and waits for R: N = X (R + Z), with X responses a second.
    let table = r#"{"think": "500ms", "response": "20kB", "times": "exponential"}"#;
    let users = 20;
    let params = application("request-response", table);
    let outcome =
        run_alike(&network(params, users, "4Mbps", r#""tcp": "newreno", "initial-window": "10p""#, 400));
    let (count, response) = (measure(&outcome, "responses"), measure(&outcome, "response_mean_s"));
    let found = count / 400.0 * (response + 0.5);
    // Some 9000 exponential times of thinking: their mean is within 2 % (two standard errors).
    assert!((found / users as f64 - 1.0).abs() < 0.02, "{found} users");
}

#[test]
fn datagrams_of_a_game_take_what_the_path_takes() {
    // At 8 Mbit/s a byte takes 1 us; 20 ms of propagation.
    let mut game = network(application("game", "{}"), 1, "8Mbps", r#""tcp": "newreno""#, 60);
    for flow in &mut game.flows {
        flow.transport = TransportSpec::Udp(UdpParams::datagrams("1500B".parse().unwrap()));
    }
    let outcome = run_alike(&game);
    let up = samples(&outcome, "up_s");
    assert!((1495..=1500).contains(&up.len()), "{}", up.len());
    assert!(up.iter().chain(samples(&outcome, "down_s")).all(|delay| (0.020_029..0.021_5).contains(delay)));
    assert_eq!((measure(&outcome, "up_late"), measure(&outcome, "down_late")), (0.0, 0.0));
    // What arrived is counted by its bytes: 48.29 and 28 on average.
    let sent = &outcome.flows[game.applications[0].users[0][0].request];
    let mean = sent.delivered_bytes as f64 / sent.delivered_packets as f64;
    assert!((mean - 76.29).abs() < 0.7, "{mean}");
}

#[test]
fn the_first_chunk_of_a_video_by_hand() {
    // The request: 140 us and 20 ms. 150 kB are 150 packets of 1040 us, all of which the first window lets
    // out; then 20 ms.
    let transport = r#""tcp": "newreno", "initial-window": "200p""#;
    let params = application("video", r#"{"request": "100B"}"#);
    let mut video = network(params, 1, "8Mbps", transport, 60);
    video.links[0].queue = Some(aqm("drop-tail", r#"{"limit": "500p"}"#).into());
    let outcome = run_alike(&video);
    let startup = samples(&outcome, "startup_s")[0];
    assert!((startup - (0.020_14 + 0.156 + 0.020)).abs() < 1e-9, "{startup}");
    assert_eq!(measure(&outcome, "stalls"), 0.0);
    // Chunks at the highest rate are of 2.15 MB, which take 2.24 s with headers: 26 in the time, besides the
    // first ones.
    let chunks = measure(&outcome, "chunks");
    assert!((24.0..=30.0).contains(&chunks), "{chunks}");
    assert_eq!(samples(&outcome, "quality_bps").last(), Some(&4_300_000.0));
}

/// One exchange each second, or one after the other, whose responses have one packet.
fn exchanges(think: &str, extra: &str, seconds: u64) -> Outcome {
    let table = format!(
        r#"{{"request": "100B", "response": "500B", "think": "{think}", "times": "constant", "service": "0s"}}"#
    );
    let transport = format!(r#""tcp": "newreno", "initial-window": "4p"{extra}"#);
    run_alike(&network(application("request-response", &table), 1, "8Mbps", &transport, seconds))
}

#[test]
fn responses_and_requests_carry_acks_of_one_another() {
    for extra in ["", r#", "delayed-ack": "100ms""#] {
        // Request, response, and a second later no data that could carry the ACK of the response: three
        // packets pass a link.
        let outcome = exchanges("1s", extra, 20);
        let [response, request] = [0, 1].map(|flow| outcome.flows[flow].sender.sent);
        assert!(response > 15 && request - response <= 1, "{response} {request}");
        assert_eq!(outcome.hops, request + 2 * response, "{extra}");
        // The next request carries it: two pass.
        let outcome = exchanges("0s", extra, 20);
        let [response, request] = [0, 1].map(|flow| outcome.flows[flow].sender.sent);
        assert!(response > 400 && request - response <= 1, "{response} {request}");
        assert_eq!(outcome.hops, request + response, "{extra}");
        assert!(outcome.flows.iter().all(|flow| flow.sender.retransmitted == 0 && flow.sender.timeouts == 0));
        // Each round trip is a request's and its response's: 41 ms and 0.14 + 0.04 * 14 + 0.04 ms, or less.
        let (samples, sum) = outcome.flows[1].sender.rtt_samples;
        assert!(samples > 400 && sum / u128::from(samples) < 42_000_000, "{samples} {sum}");
    }
}

#[test]
fn the_warm_up_is_excluded() {
    let transport = r#""tcp": "newreno", "initial-window": "4p""#;
    let all = network(application("web", ONE_OBJECT), 3, "8Mbps", transport, 40);
    let rest = Network { warmup: Duration::from_secs(10), ..all.clone() };
    let counts = [&all, &rest].map(|network| measure(&run_alike(network), "pages"));
    assert!(counts[1] > 10.0 && counts[1] < counts[0], "{counts:?}");
}

#[test]
fn what_the_batched_engine_refuses() {
    let refused = |network: &Network| match Simulation::on_engine(network, 1, Engine::Batched) {
        Err(Failure::Refused(refusal)) => refusal.to_string(),
        other => panic!("{:?}", other.map(|_| ())),
    };
    let mut network = network(application("web", ONE_OBJECT), 1, "8Mbps", TRANSPORTS[0], 4);
    let python = r#"{"class": "mine:Users"}"#;
    network.applications[0].params = application("python", python);
    let setup = Simulation::on_engine(&network, 1, Engine::Batched);
    assert!(matches!(setup, Err(Failure::NotImplemented { .. })), "it comes first");
    network.applications[0].params = application("web", ONE_OBJECT);
    network.flows.iter_mut().for_each(|flow| flow.to = flow.from);
    assert_eq!(refused(&network), "no link lies between the hosts of the users of `users`");
    assert_eq!(Simulation::new(&network, 1).unwrap().engine().engine(), Engine::Reference);
}

#[test]
fn users_run_on_one_thread() {
    let network = network(application("web", "{}"), 1, "8Mbps", TRANSPORTS[0], 4);
    let threads = Simulation::division(&network, 2, &Watch::default()).unwrap();
    assert_eq!(threads, Err(OneThread::Application { group: "users".into() }));
    assert_eq!(threads.unwrap_err().to_string(), "the flows of the users of `users` depend on one another");
    assert!(matches!(Simulation::run_divided(&network, 1, &[0, 1]), Err(Failure::Undivided(_))));
}

#[test]
fn a_run_is_the_same_each_time_and_another_seed_gives_another() {
    let network = network(application("web", "{}"), 5, "2Mbps", TRANSPORTS[1], 60);
    let again = |seed| {
        let mut simulation = Simulation::new(&network, seed).unwrap();
        simulation.run_to_end();
        simulation.finish().unwrap()
    };
    assert_eq!(again(1), again(1));
    assert_ne!(again(1).applications, again(2).applications);
}

/// A group of users, by the rows below.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    model: usize,
    transport: usize,
    users: usize,
    traits: u8,
}

pub(crate) fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (0_usize..8, 0_usize..10, 1_usize..4, any::<u8>());
    let row = row.prop_map(|(model, transport, users, traits)| Row { model, transport, users, traits });
    prop::collection::vec(row, 1..4)
}

/// Users who are so fast that much happens in a few seconds.
const MODELS: [(&str, &str); 8] = [
    ("web", r#"{"reading": "50ms", "parsing": "5ms", "scale": 2.0}"#),
    ("web", r#"{"reading": "20ms", "parsing": "1ms", "connections": 1}"#),
    ("web", r#"{"reading": "0.1ms", "parsing": "0.1ms", "connections": 2, "scale": 0.1}"#),
    ("video", r#"{"chunk": "200ms", "buffer": "2s", "reservoir": "300ms", "cushion": "1s"}"#),
    ("request-response", r#"{"think": "10ms", "response": "20kB", "times": "exponential"}"#),
    ("request-response", r#"{"think": "0s", "service": "1ms", "response": "1B"}"#),
    ("game", r#"{"late": "20ms"}"#),
    ("call", r#"{"on": "100ms", "off": "100ms"}"#),
];

const CARRIERS: [&str; 10] = [
    r#""tcp": "newreno""#,
    r#""tcp": "newreno", "initial-window": "10p", "handshake": true"#,
    r#""tcp": "reno", "min-rto": "50ms", "initial-rto": "200ms", "tick": "1ms", "send-jitter": "1ms""#,
    r#""tcp": "newreno", "sack": true, "delayed-ack": "40ms", "idle-restart": "none""#,
    r#""tcp": "newreno", "pacing": "window""#,
    r#""tcp": "linux""#,
    r#""tcp": "linux", "congestion": "prague""#,
    r#""tcp": "linux", "congestion": "bbr""#,
    r#""tcp": "linux", "congestion": "bbr3", "pacing": "window""#,
    r#""tcp": "two-windows""#,
];

/// Adds a group of users between these routers, and its flows.
pub(crate) fn add_group(network: &mut Network, row: &Row, name: &str, (from, to): (u32, u32)) {
    let (model, table) = MODELS[row.model];
    let params = application(model, table);
    let transport = |packet: &str| tcp(&format!(r#"{{{}, "packet": "{packet}"}}"#, CARRIERS[row.transport]));
    let [requests, responses] = match params.carrier() {
        Carrier::Tcp { .. } => [transport("140B"), transport("1040B")],
        Carrier::Datagrams { largest } => {
            [(), ()].map(|()| TransportSpec::Udp(UdpParams::datagrams(largest)))
        }
        Carrier::Sources(source) => [(), ()].map(|()| TransportSpec::Udp(source.clone())),
    };
    let is = |bit: u32| row.traits >> bit & 1 == 1;
    let is_tcp = matches!(requests, TransportSpec::Tcp(_));
    let users = (0..row.users).map(|user| {
        let connections = (0..params.connections()).map(|number| {
            let mut add = |name: String, from, to, transport: &TransportSpec| {
                let mut flow = flow(name, from, to, transport.clone(), is(0).then(|| profile("0.4Mbps")));
                if is(1) {
                    (flow.access, flow.egress) = (None, None);
                }
                if is(2) && flow.service.is_some() {
                    flow.marking = Marking::Edge(0);
                }
                flow.out_feedback = (is(3) && flow.service.is_some()).then_some(Duration::from_millis(3));
                flow.dispatch_jitter = is(4).then_some(Duration::from_nanos(100_000));
                flow.stop = (is(5) && user == 1).then_some(Instant::from_nanos(1_700_000_000));
                if is(6) && is_tcp {
                    flow.tcp_ecn = TcpEcn::Accurate;
                }
                network.flows.push(flow);
                network.flows.len() - 1
            };
            Connection {
                response: add(format!("{name}/{user}/{number}"), from, to, &responses),
                request: add(format!("{name} (reverse)/{user}/{number}"), to, from, &requests),
            }
        });
        connections.collect()
    });
    let users = users.collect();
    // All at once, or one after another.
    let last = if is(7) { Instant::ZERO } else { Instant::from_nanos(300_000_000) };
    network.applications.push(ApplicationSpec {
        name: name.into(),
        params,
        start: (Instant::ZERO, last),
        users,
    });
}

/// Flows that no user has: they fill the link.
fn others(count: usize, hops: u32) -> impl Iterator<Item = FlowSpec> {
    (0..count).map(move |n| {
        let transport =
            [tcp(r#"{"tcp": "newreno"}"#), udp(r#"{"udp": "cbr", "rate": "300kbps"}"#)][n % 2].clone();
        flow(format!("other{n}"), 0, hops, transport, (n == 1).then(|| profile("0.3Mbps")))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// On a line that nobody else uses and whose queue drops nothing, no user sends anything twice. A browser
    /// asks for several objects at once, so it has a line that is fast enough for all of them: on a slow one,
    /// ACKs of requests wait behind the responses, so that a probe or a timer may send a request again, as in
    /// a real network.
    #[test]
    fn an_empty_line_has_no_retransmissions(
        seed: u64,
        (model, table) in prop_oneof![
            Just(("web", "{}")),
            Just(("web", r#"{"connections": 1, "reading": "1s"}"#)),
            Just(("video", "{}")),
            Just(("request-response", "{}")),
            Just(("request-response", r#"{"response": "300kB", "think": "0s"}"#)),
            Just(("request-response", r#"{"response": "30kB", "service": "40ms", "times": "constant"}"#)),
            Just(("request-response", r#"{"request": "50kB", "response": "2kB", "service": "300ms"}"#)),
        ],
        transport in prop::sample::select(&TRANSPORTS[..]),
        rate in prop::sample::select(&["2Mbps", "10Mbps", "100Mbps", "1Gbps"][..]),
    ) {
        let rate = if model == "web" { "1Gbps" } else { rate };
        let mut network = network(application(model, table), 1, rate, transport, 20);
        network.links[0].queue = Some(aqm("drop-tail", r#"{"limit": "100000p"}"#).into());
        let mut simulation = Simulation::new(&network, seed).unwrap();
        simulation.run_to_end();
        let outcome = simulation.finish().unwrap();
        for &Connection { request, response } in &network.applications[0].users[0] {
            let [request, response] = [request, response].map(|flow| &outcome.flows[flow].sender);
            prop_assert_eq!((request.retransmitted, response.retransmitted), (0, 0));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Users of any application over any transport and any queue, beside other flows: both engines agree in
    /// every number.
    #[test]
    fn both_engines_agree_on_users(
        seed: u64,
        queue in any_queue(),
        rows in rows(),
        count in 0_usize..3,
        rate_kbps in 500_u64..20_000,
        (back, hops) in (prop_oneof![Just(None), (100_u64..2000).prop_map(Some)], 1_u32..3),
        (delay, round) in (prop_oneof![Just("0ms"), Just("1ms"), Just("11ms")], any::<bool>()),
        (warmup, probe) in (0_u64..2, prop_oneof![Just(None), Just(Some(100)), Just(Some(170))]),
        slices in prop_oneof![Just(None), (1_u64..40).prop_map(Some)],
    ) {
        let rate = if round { "8Mbps".into() } else { format!("{rate_kbps}kbps") };
        let links = chain(hops, &rate, delay, &queue, back);
        let mut network = Network {
            nodes: hops + 1,
            links,
            flows: others(count, hops).collect(),
            shared_meters: vec![SharedMeter { name: "shared".into(), params: profile("0.5Mbps") }],
            probe_interval: probe.map(Duration::from_millis),
            warmup: Duration::from_secs(warmup),
            ..Network::new(Duration::from_secs(3))
        };
        for (number, row) in rows.iter().enumerate() {
            let ends = if row.traits % 3 == 0 { (hops, 0) } else { (0, hops) };
            add_group(&mut network, row, &format!("g{number}"), ends);
        }
        let run = |engine| {
            let mut simulation = Simulation::on_engine(&network, seed, engine).unwrap();
            let slices = slices.filter(|_| engine == Engine::Batched).unwrap_or(1);
            (1..=slices).for_each(|n| simulation.run_until(Instant::from_nanos(n * 3_000_000_000 / slices)));
            simulation.finish().unwrap()
        };
        assert_same(&run(Engine::Batched), &run(Engine::Reference));
    }
}
