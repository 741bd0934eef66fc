//! How far bounds are above what can happen: the ratio to the longest wait among adversarial phases.

use std::fmt::Write;

use perhop_bounds::bounds;
use perhop_core::{Duration, Instant};
use perhop_sim::{LinkSpec, Network};
use serde_json::{Value, json};

use crate::networks::{Draw, flow, greedy, link, parsed};
use crate::soundness::{longest_waits, simulate};

const RATE: u64 = 10_000_000;
/// A flow of each of these codepoints, one for each class.
const CODEPOINTS: [u8; 4] = [46, 34, 18, 0];
/// The phases in which each network is simulated.
const PHASES: u64 = 12;

/// Queues of one port, each of which takes one codepoint.
fn queues(count: usize, extra: &mut dyn FnMut(usize) -> Value) -> Value {
    let queue = |number: usize| {
        let mut queue =
            json!({ "name": format!("q{number}"), "rule": { "aqm": "drop-tail", "limit": "100000p" } });
        let table = queue.as_object_mut().unwrap();
        if number + 1 < count {
            table.insert("match".into(), json!({ "dscp": CODEPOINTS[number] }));
        }
        table.extend(extra(number).as_object().unwrap().clone());
        queue
    };
    (0..count).map(queue).collect()
}

/// A scheduler with so many classes.
fn scheduler(name: &str, count: usize, draw: &mut Draw) -> Value {
    let none = &mut |_: usize| json!({});
    match name {
        "priority" => json!({ "scheduler": "priority", "queues": queues(count, none) }),
        "wfq" | "drr" => {
            let weights = &mut |_: usize| json!({ "weight": 1 + draw.below(6) });
            json!({ "scheduler": name, "queues": queues(count, weights) })
        }
        "shaper" | "priority in a shaper" => {
            let queue = if name == "shaper" { "fifo" } else { "priority" };
            let burst = format!("{}B", draw.of(&[1500, 6000]));
            json!({ "scheduler": "shaper", "rate": "8Mbps", "burst": burst, "queue": scheduler(queue, count, draw) })
        }
        _ => json!({ "aqm": "drop-tail", "limit": "100000p" }),
    }
}

/// A port with a greedy source in each class, and the phase of this number.
fn port(name: &str, number: u64, phase: u64) -> Network {
    let draw = &mut Draw::new(number);
    let count = 2 + draw.below(3) as usize;
    let queue = parsed(scheduler(name, count, draw));
    let until = Duration::from_millis(300);
    let load = draw.of(&[50, 70, 90]);
    let flows = (0..count).map(|class| {
        let size = draw.of(&[200, 500, 1000, 1500]);
        let rate = RATE * 8 / 10 * load / 100 / count as u64;
        // A later class has a burst, too: it has been sending when the others begin.
        let transport = greedy(rate, 2 + draw.below(20), size, until);
        flow(format!("f{class}"), (0, 1), transport, CODEPOINTS[class])
    });
    let mut flows: Vec<_> = flows.collect();
    let shifts = &mut Draw::new(number * 1000 + phase);
    for (class, one) in flows.iter_mut().enumerate() {
        // All at once, one of them a moment before the others, or anyhow.
        let micros = match phase {
            0 => 0,
            1..=4 => u64::from(class as u64 + 1 != phase),
            _ => shifts.below(3000),
        };
        one.start = (Instant::from_nanos(micros * 1000), Instant::from_nanos(micros * 1000));
    }
    let links: Vec<LinkSpec> = vec![link("port".into(), (0, 1), RATE, queue)];
    Network { nodes: 2, links, flows, ..Network::new(until + Duration::from_millis(500)) }
}

/// Returns the ratios of bound and longest wait of all classes of ports with this scheduler, in order.
fn ratios(name: &str, ports: u64) -> Vec<f64> {
    let mut ratios = Vec::new();
    for number in 0..ports {
        let bounds = bounds(&port(name, number, 0));
        let mut longest = vec![Duration::ZERO; bounds.links[0].classes.len()];
        for phase in 0..PHASES {
            let simulated = simulate(&port(name, number, phase), number);
            let waits = longest_waits(&simulated.outcome)[0].1.clone();
            longest.iter_mut().zip(waits).for_each(|(most, wait)| *most = wait.max(*most));
        }
        for (class, wait) in bounds.links[0].classes.iter().zip(longest).filter(|(_, wait)| !wait.is_zero()) {
            let most = class.delay.0.as_ref().unwrap_or_else(|why| panic!("{name} {number}: {why}"));
            ratios.push(most.as_nanos() as f64 / wait.as_nanos() as f64);
        }
    }
    ratios.sort_by(f64::total_cmp);
    ratios
}

const ONE_HOP: [&str; 6] = ["fifo", "priority", "shaper", "wfq", "drr", "priority in a shaper"];

#[test]
fn bounds_of_one_hop_are_tight() {
    for name in ONE_HOP {
        let most = if ["fifo", "priority", "shaper"].contains(&name) { 1.2 } else { 1.5 };
        let ratios = ratios(name, 40);
        let median = ratios[ratios.len() / 2];
        assert!(ratios[0] >= 1.0, "{name}: {}", ratios[0]);
        assert!(median < most, "{name}: {median}");
    }
}

/// A chain of so many hops: one flow over all of it, and at each hop two that join it for one or two hops.
fn chain(hops: u32, number: u64, phase: u64) -> Network {
    let draw = &mut Draw::new(7_000_000 + number);
    let until = Duration::from_millis(300);
    let queue = || parsed(json!({ "aqm": "drop-tail", "limit": "100000p" }));
    let links = (0..hops).map(|hop| link(format!("l{hop}"), (hop, hop + 1), RATE, queue()));
    let mut flows =
        vec![flow("through".into(), (0, hops), greedy(RATE / 10, 1 + draw.below(12), 1000, until), 0)];
    for hop in 0..hops {
        for cross in 0..2 {
            let to = (hop + 1 + draw.below(2) as u32).min(hops);
            let transport = greedy(RATE / 10, 1 + draw.below(12), 1000, until);
            flows.push(flow(format!("c{hop}-{cross}"), (hop, to), transport, 0));
        }
    }
    let shifts = &mut Draw::new(number * 1000 + phase);
    for (place, one) in flows.iter_mut().enumerate().skip(1) {
        // A cross flow begins as the burst of the first reaches it, or about then.
        let hop = (place as u64 - 1) / 2;
        let micros = hop * 800 + if phase == 0 { 0 } else { shifts.below(6000) };
        one.start = (Instant::from_nanos(micros * 1000), Instant::from_nanos(micros * 1000));
    }
    Network {
        nodes: hops + 1,
        links: links.collect(),
        flows,
        ..Network::new(until + Duration::from_millis(500))
    }
}

/// Returns the ratios of bound and longest time on chains of so many hops, by analysis.
fn by_analysis(hops: u32, chains: u64) -> Vec<(&'static str, Vec<f64>)> {
    let mut found: Vec<(&str, Vec<f64>)> = Vec::new();
    for number in 0..chains {
        let bounds = bounds(&chain(hops, number, 0));
        let longest = (0..PHASES).map(|phase| {
            let simulated = simulate(&chain(hops, number, phase), number);
            simulated.outcome.flows[0].transits.as_ref().unwrap().longest()
        });
        let longest = longest.max().unwrap();
        let flow = &bounds.flows[0];
        let least = flow.analyses.iter().map(|(_, most)| *most).min().unwrap();
        assert_eq!(flow.delay.0, Ok(least));
        for (method, most) in &flow.analyses {
            let ratio = most.as_nanos() as f64 / longest.as_nanos() as f64;
            match found.iter_mut().find(|(known, _)| known == method) {
                Some((_, ratios)) => ratios.push(ratio),
                None => found.push((method, vec![ratio])),
            }
        }
    }
    found
}

#[test]
fn the_least_of_the_analyses_counts() {
    for hops in [3, 10] {
        let found = by_analysis(hops, 10);
        assert_eq!(found.len(), 3);
        for (method, ratios) in found {
            assert!(ratios.iter().all(|ratio| *ratio >= 1.0), "{hops} hops: {method}");
        }
    }
}

#[test]
#[ignore = "writes the ratios of docs/guarantees.md: python -m tools.tightness"]
#[expect(clippy::disallowed_methods, reason = "a table for a figure that a tool draws")]
fn ratios_as_a_table() {
    let mut table = String::new();
    let mut write = |name: &str, ratios: Vec<f64>| {
        for ratio in ratios {
            writeln!(table, "{name},{ratio:.4}").unwrap();
        }
    };
    for name in ONE_HOP {
        write(name, ratios(name, 200));
    }
    for hops in [3, 10] {
        for (method, ratios) in by_analysis(hops, 100) {
            write(&format!("{hops} hops: {method}"), ratios);
        }
    }
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/tightness.csv"), table).unwrap();
}
