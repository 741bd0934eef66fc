//! Users of applications over the reference engine.

use perhop_core::{Duration, Instant};
use perhop_sim::application::ApplicationParams;
use perhop_sim::transport::udp::UdpParams;
use perhop_sim::{
    ApplicationSpec, Connection, Engine, Failure, Network, Outcome, Refusal, Simulation, TransportSpec,
};

use crate::common::{aqm, duplex, flow, run, tcp};

pub fn application(model: &str, table: &str) -> ApplicationParams {
    let mut read = serde_json::Deserializer::from_str(table);
    ApplicationParams::deserialize_named(model, &mut read).unwrap().unwrap()
}

/// Users with connections over a link of this rate and a delay of 20 ms, behind a queue of 100 packets; their hosts are at the
/// routers. Packets are of 1040 bytes, 40 of which are headers, and requests of 140.
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
    // At 8 Mbit/s a byte takes 1 us. The request: 140 us and 20 ms. The response is three packets of 1040 us each, all within
    // the initial window, and 20 ms: 43.26 ms.
    let params = application("web", ONE_OBJECT);
    let outcome = run(
        &network(params.clone(), 1, "8Mbps", r#""tcp": "newreno", "initial-window": "4p""#, 30),
        Engine::Reference,
    );
    let pages = samples(&outcome, "page_s");
    assert!(pages.len() > 5 && pages.iter().all(|time| (time - 0.043_26).abs() < 1e-9), "{pages:?}");
    assert_eq!(samples(&outcome, "page_bytes")[0], 3000.0);
    // With a window of one segment each further packet waits for an ACK: two round trips of 20 ms + 40 us + 20 ms + 1.04 ms
    // more at first, in place of 2.08 ms; slow start gives two segments in the second round trip.
    let slow = network(params, 1, "8Mbps", r#""tcp": "newreno", "initial-window": "1p""#, 30);
    let outcome = run(&slow, Engine::Reference);
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
    let outcome = run(&opening, Engine::Reference);
    let pages = samples(&outcome, "page_s");
    // The SYN and its ACK have 40 bytes each.
    assert!((pages[0] - (0.043_26 + 0.040_08)).abs() < 1e-9, "{}", pages[0]);
    assert!((pages[1] - 0.043_26).abs() < 1e-9, "{}", pages[1]);
}

const TRANSPORTS: [&str; 4] = [
    r#""tcp": "newreno", "initial-window": "10p""#,
    r#""tcp": "linux""#,
    r#""tcp": "linux", "congestion": "bbr""#,
    r#""tcp": "linux", "congestion": "bbr3""#,
];

#[test]
fn all_that_is_granted_arrives_in_spite_of_losses() {
    for transport in TRANSPORTS {
        // Eight users ask for more than the link has: queues overflow, and pages still complete.
        let params = application("web", r#"{"scale": 10.0, "reading": "1s"}"#);
        let mut crowded = network(params, 8, "4Mbps", transport, 60);
        crowded.links[0].queue = Some(aqm("drop-tail", r#"{"limit": "15p"}"#).into());
        let outcome = run(&crowded, Engine::Reference);
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
            run(&network, Engine::Reference)
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
    // N users, of whom each thinks for Z and waits for R: N = X (R + Z), with X responses a second.
    let table = r#"{"think": "500ms", "response": "20kB", "times": "exponential"}"#;
    let users = 20;
    let params = application("request-response", table);
    let outcome = run(
        &network(params, users, "4Mbps", r#""tcp": "newreno", "initial-window": "10p""#, 400),
        Engine::Reference,
    );
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
    let outcome = run(&game, Engine::Reference);
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
    // The request: 140 us and 20 ms. 150 kB are 150 packets of 1040 us, all of which the first window lets out; then 20 ms.
    let transport = r#""tcp": "newreno", "initial-window": "200p""#;
    let params = application("video", r#"{"request": "100B"}"#);
    let mut video = network(params, 1, "8Mbps", transport, 60);
    video.links[0].queue = Some(aqm("drop-tail", r#"{"limit": "500p"}"#).into());
    let outcome = run(&video, Engine::Reference);
    let startup = samples(&outcome, "startup_s")[0];
    assert!((startup - (0.020_14 + 0.156 + 0.020)).abs() < 1e-9, "{startup}");
    assert_eq!(measure(&outcome, "stalls"), 0.0);
    // Chunks at the highest rate are of 2.15 MB, which take 2.24 s with headers: 26 in the time, besides the first ones.
    let chunks = measure(&outcome, "chunks");
    assert!((24.0..=30.0).contains(&chunks), "{chunks}");
    assert_eq!(samples(&outcome, "quality_bps").last(), Some(&4_300_000.0));
}

#[test]
fn the_warm_up_is_excluded_and_the_batched_engine_refuses() {
    let transport = r#""tcp": "newreno", "initial-window": "4p""#;
    let all = network(application("web", ONE_OBJECT), 3, "8Mbps", transport, 40);
    let rest = Network { warmup: Duration::from_secs(10), ..all.clone() };
    let counts = [&all, &rest].map(|network| measure(&run(network, Engine::Reference), "pages"));
    assert!(counts[1] > 10.0 && counts[1] < counts[0], "{counts:?}");
    let refused = Simulation::on_engine(&all, 1, Engine::Batched).map(|_| ());
    assert_eq!(refused, Err(Failure::Refused(Refusal::Application { group: "users".into() })));
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
