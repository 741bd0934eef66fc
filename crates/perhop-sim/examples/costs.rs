//! What a packet costs under each transport and each discipline: the Table 1 setting with one of them changed.
//!
//! `costs` prints the names of the rows. `costs ROW [SECONDS]` runs one, and prints how many packets came to the bottleneck and
//! the time that each took. The first 10 simulated seconds, in which connections open, are in neither. For instructions:
//! `valgrind --tool=callgrind --toggle-collect='*measured*' costs ROW 10`.

#![expect(clippy::disallowed_types, clippy::disallowed_macros, reason = "it times a run and says so")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant as Clock;

use common::{aqm, rap, scheduler, table1, tcp, tfrc, udp};
use perhop_core::{Duration, Instant};
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::{Network, Simulation, TransportSpec};

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
    ("dualpi2", r#"{"scheduler": "dualpi2", "target": "60ms", "limit": "868p"}"#),
];

/// The rule that the targets refer to.
fn red(ecn: bool) -> perhop_core::aqm::AqmParams {
    aqm("red", &format!(r#"{{"thresholds": "347/694/0.05", "limit": "868p", "ecn": {ecn}}}"#))
}

fn transport(table: &str) -> TransportSpec {
    match &table[..6] {
        r#"{"udp""# => udp(table),
        r#"{"rap""# => rap(table),
        r#"{"tfrc"# => tfrc(table),
        _ => tcp(table),
    }
}

fn network(row: &str) -> Option<Network> {
    let found = TRANSPORTS.iter().find(|(name, ..)| *name == row);
    let &(_, table, ecn) = found.unwrap_or(&TRANSPORTS[0]);
    let mut network = table1(red(!ecn.is_off()), 3600);
    for flow in &mut network.flows {
        flow.transport = transport(table);
        flow.tcp_ecn = ecn;
        flow.access.as_mut().expect("hosts have a link").rate = "100Mbps".parse().expect("a rate");
        flow.egress.clone_from(&flow.access);
    }
    if found.is_none() {
        let (_, table) = DISCIPLINES.iter().find(|(name, _)| *name == row)?;
        network.links[0].queue = Some(scheduler(table));
    }
    Some(network)
}

fn arrived(simulation: &Simulation) -> u64 {
    simulation.clone().finish().expect("conserved").links[0].counters.arrived.iter().sum()
}

/// What is measured, so that a profiler knows it by name.
#[inline(never)]
fn measured(simulation: &mut Simulation, until: Instant) {
    simulation.run_until(until);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(row) = arguments.next() else {
        let names = TRANSPORTS.iter().map(|row| row.0).chain(DISCIPLINES.iter().map(|row| row.0));
        return names.for_each(|name| println!("{name}"));
    };
    let seconds = arguments.next().map_or(100, |text| text.parse().expect("seconds"));
    let network = network(&row).expect("`costs` without arguments prints the rows");
    let mut simulation = Simulation::new(&network, 1).expect("routes");
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
