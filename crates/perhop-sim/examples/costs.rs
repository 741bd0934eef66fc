//! What a packet costs under each transport and each discipline: the Table 1 setting with one of them
//! changed.
//!
//! `costs` prints the names of the rows. `costs ROW [SECONDS [FLOWS]] [bare] [reference]` runs one, and
//! prints how many packets came to the bottleneck and the time that each took. More flows than 40 share a
//! link under RED that is as much faster; `bare` puts the hosts at the routers; `reference` names the engine.
//! The first 10 simulated seconds, in which connections open, are in neither figure. For instructions:
//! `valgrind --tool=callgrind --toggle-collect='*measured*' costs ROW 10`.

#![expect(clippy::disallowed_types, clippy::disallowed_macros, reason = "it times a run and says so")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant as Clock;

use common::{aqm, flow, rap, scheduler, table1, tcp, tfrc, udp};
use perhop_core::abe::Service;
use perhop_core::{Bitrate, Duration, Instant};
use perhop_sim::application::ApplicationParams;
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::{ApplicationSpec, Connection, Engine, Network, Simulation, TransportSpec};

/// The transports, under RED: a name, the kind, its table, ECN.
const TRANSPORTS: &[(&str, &str, TcpEcn)] = &[
    ("newreno", r#"{"tcp": "newreno", "packet": "576B", "handshake": true}"#, TcpEcn::Off),
    ("ecn", r#"{"tcp": "newreno", "packet": "576B", "handshake": true}"#, TcpEcn::Classic),
    (
        "delayed",
        r#"{"tcp": "newreno", "packet": "576B", "handshake": true, "delayed-ack": "40ms"}"#,
        TcpEcn::Off,
    ),
    (
        "cubic",
        r#"{"tcp": "newreno", "congestion": "cubic", "packet": "576B", "handshake": true}"#,
        TcpEcn::Off,
    ),
    ("sack", r#"{"tcp": "newreno", "sack": true, "packet": "576B", "handshake": true}"#, TcpEcn::Off),
    (
        "sack-delayed",
        r#"{"tcp": "newreno", "sack": true, "packet": "576B", "handshake": true, "delayed-ack": "40ms"}"#,
        TcpEcn::Off,
    ),
    (
        "rack",
        r#"{"tcp": "newreno", "sack": true, "loss-detection": "rack", "packet": "576B", "handshake": true}"#,
        TcpEcn::Off,
    ),
    ("linux", r#"{"tcp": "linux", "packet": "576B"}"#, TcpEcn::Off),
    ("linux-ecn", r#"{"tcp": "linux", "packet": "576B"}"#, TcpEcn::Classic),
    ("linux-paced", r#"{"tcp": "linux", "packet": "576B", "pacing": "window"}"#, TcpEcn::Off),
    ("dctcp", r#"{"tcp": "linux", "congestion": "dctcp", "packet": "576B"}"#, TcpEcn::Classic),
    ("prague", r#"{"tcp": "linux", "congestion": "prague", "packet": "576B"}"#, TcpEcn::Accurate),
    ("bbr", r#"{"tcp": "linux", "congestion": "bbr", "packet": "576B"}"#, TcpEcn::Off),
    ("rap", r#"{"rap": "aimd", "packet": "576B"}"#, TcpEcn::Off),
    ("tfrc", r#"{"tfrc": "rfc5348", "packet": "576B"}"#, TcpEcn::Off),
    ("udp", r#"{"udp": "cbr", "rate": "510kbps", "packet": "576B"}"#, TcpEcn::Off),
];

/// The disciplines, under the first of the transports.
const DISCIPLINES: &[(&str, &str)] = &[
    (
        "rio",
        r#"{"scheduler": "fifo", "rule": {"aqm": "rio", "in": "390/694/0.02", "total": "347/694/0.05", "limit": "868p", "averages": "own-class"}}"#,
    ),
    ("edf", r#"{"scheduler": "edf", "rule": {"aqm": "red", "thresholds": "347/694/0.05", "limit": "868p"}}"#),
    (
        "edf-green",
        r#"{"scheduler": "edf", "rule": {"aqm": "red", "thresholds": "347/694/0.05", "limit": "868p"}}"#,
    ),
    (
        "dsd",
        r#"{"scheduler": "dsd", "bound": "30ms", "rule": {"aqm": "red", "thresholds": "347/694/0.05", "limit": "868p"}}"#,
    ),
    (
        "priority",
        r#"{"scheduler": "priority", "queues": [{"name": "in", "match": {"dscp": "AF11"}, "cap": "15Mbps", "rule": {"aqm": "red", "thresholds": "347/694/0.05", "limit": "868p"}}, {"name": "rest", "rule": {"aqm": "red", "thresholds": "347/694/0.05", "limit": "868p"}}]}"#,
    ),
    (
        "drr",
        r#"{"scheduler": "drr", "queues": [{"name": "in", "match": {"dscp": "AF11"}, "weight": 2, "rule": {"aqm": "red", "thresholds": "347/694/0.05", "limit": "868p"}}, {"name": "rest", "rule": {"aqm": "red", "thresholds": "347/694/0.05", "limit": "868p"}}]}"#,
    ),
    (
        "wfq",
        r#"{"scheduler": "wfq", "queues": [{"name": "in", "match": {"dscp": "AF11"}, "rate": "12Mbps", "rule": {"aqm": "red", "thresholds": "347/694/0.05", "limit": "868p"}}, {"name": "rest", "rule": {"aqm": "red", "thresholds": "347/694/0.05", "limit": "868p"}}]}"#,
    ),
    ("codel", r#"{"scheduler": "fifo", "rule": {"aqm": "codel", "target": "60ms", "limit": "868p"}}"#),
    ("pie", r#"{"scheduler": "fifo", "rule": {"aqm": "pie", "target": "50ms", "limit": "868p"}}"#),
    ("cobalt", r#"{"scheduler": "fifo", "rule": {"aqm": "cobalt", "target": "60ms", "limit": "868p"}}"#),
    ("pi2", r#"{"scheduler": "fifo", "rule": {"aqm": "pi2", "target": "50ms", "limit": "868p"}}"#),
    ("fq-codel", r#"{"scheduler": "fq-codel", "limit": "868p", "target": "60ms"}"#),
    ("fq-codel-5ms", r#"{"scheduler": "fq-codel", "limit": "868p"}"#),
    ("dualpi2", r#"{"scheduler": "dualpi2", "target": "60ms", "limit": "868p"}"#),
];

/// Users over the same link under RED, in place of the forty flows: a name, how many, and their application.
const USERS: &[(&str, usize, &str, &str)] =
    &[("web-users", 400, "web", r#"{"scale": 10.0, "connections": 6}"#), ("video-users", 20, "video", "{}")];

/// The rule that the targets refer to, for so many times 40 flows.
fn red(ecn: bool, times: u64) -> perhop_core::aqm::AqmParams {
    let [low, high, limit] = [347, 694, 868].map(|packets| packets * times);
    aqm("red", &format!(r#"{{"thresholds": "{low}/{high}/0.05", "limit": "{limit}p", "ecn": {ecn}}}"#))
}

fn transport(table: &str) -> TransportSpec {
    match &table[..6] {
        r#"{"udp""# => udp(table),
        r#"{"rap""# => rap(table),
        r#"{"tfrc"# => tfrc(table),
        _ => tcp(table),
    }
}

/// Users with connections of `tcp = "linux"`.
fn users(users: usize, model: &str, table: &str) -> Network {
    let mut read = serde_json::Deserializer::from_str(table);
    let params = ApplicationParams::deserialize_named(model, &mut read).expect("a table").expect("a model");
    let mut network = Network { flows: Vec::new(), probe_interval: None, ..table1(red(false, 1), 3600) };
    let [requests, responses] =
        ["390B", "1500B"].map(|packet| tcp(&format!(r#"{{"tcp": "linux", "packet": "{packet}"}}"#)));
    let mut add = |name: String, from, to, transport: &TransportSpec| {
        network.flows.push(flow(name, from, to, transport.clone(), None));
        network.flows.len() - 1
    };
    let mut connection = |user: usize, number: u32| Connection {
        response: add(format!("users/{user}/{number}"), 0, 1, &responses),
        request: add(format!("users (reverse)/{user}/{number}"), 1, 0, &requests),
    };
    let of_user = |user| (0..params.connections()).map(|number| connection(user, number)).collect();
    let users = (0..users).map(of_user).collect();
    let start = (Instant::ZERO, Instant::ZERO + Duration::from_secs(10));
    network.applications = vec![ApplicationSpec { name: "users".into(), params, start, users }];
    network
}

fn network(row: &str, times: u64, bare: bool) -> Option<Network> {
    if let Some(&(_, count, model, table)) = USERS.iter().find(|(name, ..)| *name == row) {
        return Some(users(count, model, table));
    }
    let found = TRANSPORTS.iter().find(|(name, ..)| *name == row);
    let &(_, table, ecn) = found.unwrap_or(&TRANSPORTS[0]);
    let mut network = table1(red(!ecn.is_off(), times), 3600);
    let flows = std::mem::take(&mut network.flows);
    network.flows = flows.iter().cycle().take(40 * times as usize).cloned().collect();
    if times > 1 {
        network.probe_interval = None; // Series of many flows would take most of the memory.
    }
    for link in &mut network.links {
        link.rate = Bitrate::from_bps(link.rate.as_bps() * times).expect("above zero");
        link.delay = link.delay + Duration::from_millis(if bare { 2 } else { 0 });
    }
    for flow in &mut network.flows {
        flow.transport = transport(table);
        flow.tcp_ecn = ecn;
        flow.access.as_mut().expect("hosts have a link").rate = "100Mbps".parse().expect("a rate");
        flow.access = flow.access.take().filter(|_| !bare);
        flow.egress.clone_from(&flow.access);
    }
    if found.is_none() {
        assert_eq!(times, 1, "a discipline has 40 flows");
        let (_, table) = DISCIPLINES.iter().find(|(name, _)| *name == row)?;
        network.links[0].queue = Some(scheduler(table));
        if row == "edf-green" {
            network.flows[20..30].iter_mut().for_each(|flow| flow.dscp = Service::Green.dscp());
        }
    }
    Some(network)
}

fn arrived(simulation: &Simulation) -> u64 {
    simulation.clone().finish().expect("conserved").links[0].counters.arrived.iter().sum()
}

/// The measured part of a run, so that a profiler knows it by name.
#[inline(never)]
fn measured(simulation: &mut Simulation, until: Instant) {
    simulation.run_until(until);
}

fn main() {
    let (words, numbers): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.parse::<u64>().is_err());
    let number =
        |place: usize, default: u64| numbers.get(place).map_or(default, |text| text.parse().expect("seen"));
    let (seconds, flows) = (number(0, 100), number(1, 40));
    let has = |name: &str| words.iter().skip(1).any(|word| word == name);
    let are_known = words.iter().skip(1).all(|word| ["bare", "reference"].contains(&word.as_str()));
    assert!(
        are_known && flows > 0 && flows.is_multiple_of(40),
        "`bare`, `reference`, and a multiple of 40 flows"
    );
    let Some(row) = words.first() else {
        let names = TRANSPORTS.iter().map(|row| row.0).chain(DISCIPLINES.iter().map(|row| row.0));
        return names.chain(USERS.iter().map(|row| row.0)).for_each(|name| println!("{name}"));
    };
    let network = network(row, flows / 40, has("bare")).expect("`costs` without arguments prints the rows");
    let engine = if has("reference") { Engine::Reference } else { Engine::Batched };
    let mut simulation = Simulation::on_engine(&network, 1, engine).expect("routes");
    let begin = Instant::ZERO + Duration::from_secs(10);
    simulation.run_until(begin);
    let before = arrived(&simulation);
    let clock = Clock::now();
    measured(&mut simulation, begin + Duration::from_secs(seconds));
    let took = clock.elapsed();
    let packets = arrived(&simulation) - before;
    println!(
        "{row}: {packets} packets, {:.1} ns each; {}",
        took.as_nanos() as f64 / packets as f64,
        simulation.engine().engine().name()
    );
}
