//! A run of a large network, for a profiler and for measurements of threads:
//! `grid ROUTERS FLOWS SECONDS THREADS`.
//!
//! Routers are on a grid twice as wide as high, with links of 10 Mbit/s and 2 to 4 ms between neighbours;
//! each port has WFQ over two queues with WRED. Flows of TCP and UDP go to routers up to ten hops away.
//! Prints packet-hops, and how many there were in a second of real time. With a fifth argument, a number of
//! parts, the run is on one thread and counts what a thread for each part would take.

#![expect(clippy::disallowed_types, clippy::disallowed_macros, reason = "it times a run and says so")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::{duplex, flow, profile, scheduler, tcp, udp};
use perhop_core::Duration;
use perhop_sim::{Network, Simulation, Watch};

fn network(routers: u32, flows: u32, seconds: u64) -> Network {
    let wide = (f64::from(routers) * 2.0).sqrt().ceil() as u32;
    let queue = scheduler(
        r#"{"scheduler": "wfq", "queues": [
            {"name": "assured", "match": {"color": "green"}, "rate": "7Mbps",
             "rule": {"aqm": "wred", "green": "40/80/0.02", "yellow": "20/40/0.1", "limit": "100p"}},
            {"name": "rest", "rule": {"aqm": "wred", "yellow": "10/40/0.1", "limit": "100p"}}]}"#,
    );
    let mut links = Vec::new();
    let mut add = |from: u32, to: u32, n: u32| {
        let delay = format!("{}ms", 2 + n % 3);
        let mut both = duplex(&format!("{from}-{to}"), from, to, "10Mbps", &delay, queue.clone());
        both[1].queue = Some(queue.clone());
        links.extend(both);
    };
    for n in 0..routers {
        if n % wide + 1 < wide && n + 1 < routers {
            add(n, n + 1, n);
        }
        if n + wide < routers {
            add(n, n + wide, n / 3);
        }
    }
    let rows = routers / wide;
    let flows = (0..flows).map(|n| {
        let from = (u64::from(n) * 2_654_435_761 % u64::from(wide * rows)) as u32;
        let (column, row) = (from % wide, from / wide);
        let to = (row + n % 5).min(rows - 1) * wide + (column + n / 5 % 6).min(wide - 1);
        let transport = match n % 4 {
            0 => udp(
                r#"{"udp": "on-off", "rate": "400kbps", "on": "500ms", "off": "500ms", "packet": "500B"}"#,
            ),
            _ => tcp(r#"{"tcp": "newreno", "packet": "1000B", "window": "12p"}"#),
        };
        flow(format!("{n}"), from, to, transport, (n % 2 == 0).then(|| profile("200kbps")))
    });
    Network { nodes: routers, flows: flows.collect(), links, ..Network::new(Duration::from_secs(seconds)) }
}

/// Prints the limit of a schedule: all events over those for which the others wait.
fn show_schedule(network: &Network, parts: usize) {
    let found = Simulation::schedule(network, 1, parts, &Watch::default()).expect("it is divided");
    println!(
        "{parts} parts: {} events, {} of them one after the other, {} rounds of {} events; at most {:.2} times as fast",
        found.events,
        found.critical,
        found.rounds,
        found.events / found.rounds,
        found.events as f64 / found.critical as f64
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (routers, flows, seconds, threads) = (number(1000), number(4000), number(10), number(2));
    let network = network(routers, flows, u64::from(seconds));
    let divided = Simulation::division(&network, threads as usize, &Watch::default()).expect("routes");
    if let Some(parts) = std::env::args().nth(5) {
        let parts = parts.parse().expect("a number");
        return show_schedule(&network, parts);
    }
    let began = Instant::now();
    let outcome = Simulation::run_on_threads(&network, 1, None, threads as usize, &Watch::default())
        .expect("conserved");
    let took = began.elapsed().as_secs_f64();
    println!(
        "{divided:?}: {} packet-hops, {took:.2} s, {:.2} million a second",
        outcome.hops,
        outcome.hops as f64 / took / 1e6
    );
}
