//! One run of the Table 1 setting, for a profiler: `profile FLOWS SECONDS [spread]`.
//!
//! Flows beyond 40 share a link that is as much faster; with `spread`, each flow has a delay of its own.
//! Prints how many packets the bottleneck saw, and the user time that each took.

#![expect(clippy::disallowed_types, clippy::disallowed_macros, reason = "it times a run and says so")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::{aqm, table1, tcp};
use perhop_core::{Bitrate, Duration};
use perhop_sim::{Network, Simulation};

fn network(flows: u64, seconds: u64, spread: bool) -> Network {
    let times = flows / 40;
    let set = |min: u64, max: u64, p: f64| format!("{}/{}/{p}", min * times, max * times);
    let rio = format!(
        r#"{{"in": "{}", "total": "{}", "limit": "{}p", "averages": "own-class"}}"#,
        set(390, 694, 0.02),
        set(347, 694, 0.05),
        868 * times
    );
    let mut network = table1(aqm("rio", &rio), seconds);
    let base = network.flows.clone();
    network.flows = (0..flows)
        .map(|n| {
            let mut flow = base[n as usize % 40].clone();
            flow.name = n.to_string();
            flow.transport = tcp(r#"{"tcp": "newreno", "packet": "576B", "handshake": true}"#);
            let access = flow.access.as_mut().expect("hosts have a link");
            access.rate = Bitrate::from_bps(100_000_000).expect("above zero");
            if spread {
                // Round trips from 60 to 140 ms; neighbours in number are far apart.
                access.delay = Duration::from_nanos(5_000_000 + 20_000_000 * (n * 7 % flows) / flows);
            }
            flow.egress.clone_from(&flow.access);
            flow
        })
        .collect();
    for link in &mut network.links {
        if spread {
            link.delay = Duration::from_millis(20);
        }
        link.rate = Bitrate::from_bps(link.rate.as_bps() * times).expect("above zero");
    }
    network
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (flows, seconds) = (number(40), number(100));
    let network = network(flows, seconds, arguments.next().is_some());
    let mut simulation = Simulation::new(&network, 1).expect("routes");
    let began = Instant::now();
    simulation.run_to_end();
    let took = began.elapsed();
    let outcome = simulation.finish().expect("conserved");
    let packets: u64 = outcome.links[0].counters.arrived.iter().sum();
    println!("{packets} packets, {:.1} ns each, {took:?}", took.as_nanos() as f64 / packets as f64);
}
