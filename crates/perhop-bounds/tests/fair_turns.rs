//! Single flows under FQ-CoDel, whatever others send.

use perhop_bounds::bounds;
use perhop_core::Duration;
use perhop_sim::transport::tcp::TcpParams;
use perhop_sim::{Network, TransportSpec};
use serde_json::{Value, json};

use crate::networks::{Draw, flow, greedy, link, parsed};
use crate::soundness::{exceeded, simulate};

fn cbr(rate: &str, packet: &str) -> TransportSpec {
    TransportSpec::Udp(
        serde_json::from_value(json!({ "udp": "cbr", "rate": rate, "packet": packet, "jitter": 0.0 }))
            .unwrap(),
    )
}

fn tcp(table: Value) -> TransportSpec {
    serde_json::from_value::<TcpParams>(table).unwrap().into()
}

fn endless() -> TransportSpec {
    tcp(json!({ "tcp": "newreno", "packet": "1500B" }))
}

/// A link of 10 Mbit/s whose queue this is, for these flows, and a link back.
fn shared(queue: Value, sources: Vec<TransportSpec>) -> Network {
    let links = vec![
        link("there".into(), (0, 1), 10_000_000, parsed(queue.clone())),
        link("back".into(), (1, 0), 10_000_000, parsed(queue)),
    ];
    let flows =
        sources.into_iter().enumerate().map(|(number, source)| flow(format!("f{number}"), (0, 1), source, 0));
    Network { nodes: 2, flows: flows.collect(), links, ..Network::new(Duration::from_secs(1)) }
}

fn exact() -> Value {
    json!({ "scheduler": "fq-codel", "hash": "exact" })
}

#[test]
fn a_sparse_flow_waits_for_a_turn_of_each_other_one() {
    let network = shared(exact(), vec![cbr("16kbps", "200B"), endless(), endless()]);
    let found = &bounds(&network).flows[0];
    // Two turns of 1514 B and 1500 B, and a packet of 1500 B that is on the wire: 7528 B take 6022.4 µs; its
    // own transmission takes 160 µs; each of both counts two nanoseconds of rounding.
    assert_eq!(found.delay.0, Ok(Duration::from_nanos(6_022_400 + 160_000 + 4)));
    // It waits longer than the target of CoDel.
    assert!(found.loss.0.as_ref().is_some_and(|why| why.contains("dropped for waiting")), "{:?}", found.loss);
    let patient = json!({ "scheduler": "fq-codel", "hash": "exact", "target": "7ms" });
    let network = shared(patient, vec![cbr("16kbps", "200B"), endless(), endless()]);
    assert_eq!(bounds(&network).flows[0].loss.0, None);
}

#[test]
fn several_packets_of_a_sparse_flow_wait_for_two_turns() {
    // Five packets may come while the queue is active, together less than a quantum.
    let network = shared(exact(), vec![cbr("480kbps", "200B"), endless(), endless()]);
    let most = bounds(&network).flows[0].delay.0.clone().unwrap();
    let (turns, under_way) = (2 * 2 * (1514 + 1500), 1500);
    let least = Duration::from_nanos((turns + under_way + 200) * 800);
    assert!(most >= least && most < least + Duration::from_millis(1), "{most}");
}

#[test]
fn a_flow_that_is_not_sparse_has_no_bound_without_a_window() {
    let network = shared(exact(), vec![cbr("5Mbps", "1000B"), endless(), endless()]);
    assert!(bounds(&network).flows.iter().all(|flow| flow.delay.0.is_err()));
    let window =
        json!({ "tcp": "newreno", "packet": "1000B", "window": "4p", "min-rto": "2s", "initial-rto": "2s" });
    let network = shared(exact(), vec![tcp(window), endless(), endless()]);
    let found = bounds(&network);
    assert!(found.flows[0].delay.0.is_ok(), "{:?}", found.flows[0].delay);
    assert!(found.flows[1].delay.0.is_err());
}

#[test]
fn flows_that_may_share_a_queue_have_no_bound_of_their_own() {
    let sources = |others: usize| {
        let mut sources = vec![cbr("16kbps", "200B")];
        sources.extend((0..others).map(|_| endless()));
        sources
    };
    let with = |hash: &str, others: usize| {
        let queue = json!({ "scheduler": "fq-codel", "hash": hash });
        bounds(&shared(queue, sources(others))).flows[0].delay.0.clone()
    };
    assert!(with("stochastic", 2).unwrap_err().contains("hash"));
    // Eight flows never share a queue of a set of eight.
    assert_eq!(with("set-associative", 7), with("exact", 7));
    assert!(with("set-associative", 8).unwrap_err().contains("hash"));
}

#[test]
fn a_packet_that_a_shaper_holds_takes_of_the_memory() {
    let inner = json!({ "scheduler": "fq-codel", "hash": "exact", "memory-limit": "2850B", "target": "1s" });
    let queue = json!({ "scheduler": "shaper", "rate": "1Mbps", "burst": "1500B", "queue": inner });
    let until = Duration::from_millis(400);
    let sources = vec![greedy(8_000, 7, 200, Duration::from_millis(1)), greedy(900_000, 2, 1500, until)];
    let network = shared(queue, sources);
    assert_eq!(exceeded(&bounds(&network), &simulate(&network, 1), &network), Vec::<String>::new());
    // Half of the memory is 1424 bytes, so seven packets of 200 bytes would be spared without it.
    assert!(bounds(&network).flows[0].loss.0.is_some());
}

#[test]
fn windows_leave_room_in_a_memory_that_no_limit_fills() {
    let window =
        json!({ "tcp": "newreno", "packet": "1000B", "window": "4p", "min-rto": "2s", "initial-rto": "2s" });
    let queue = json!({ "scheduler": "fq-codel", "hash": "exact", "target": "1s" });
    let found = bounds(&shared(queue, vec![tcp(window.clone()), tcp(window)]));
    assert_eq!(found.links[0].loss.0, None, "{:?}", found.links[0]);
}

/// A chain of one or two links with FQ-CoDel, whose others send without a bound, more than the links serve.
fn network(number: u64) -> Network {
    let draw = &mut Draw::new(number);
    let until = Duration::from_millis(400);
    let hops = 1 + draw.below(2) as u32;
    let mut links = Vec::new();
    for hop in 0..hops {
        let rate = draw.of(&[1_000_000, 2_000_000, 10_000_000]);
        let mut queue = json!({
            "scheduler": "fq-codel", "hash": "exact", "law": draw.of(&["rfc", "linux"]),
            "quantum": format!("{}B", draw.of(&[300, 1514, 1514, 3000])), "target": draw.of(&["5ms", "200ms", "2s"]),
            "limit": draw.of(&["10240p", "10240p", "40p"]), "memory-limit": draw.of(&["32MB", "32MB", "2850B", "9kB"]),
        });
        if draw.chance(20) {
            let shaped = rate * 3 / 4;
            queue = json!({ "scheduler": "shaper", "rate": format!("{shaped}bps"), "burst": draw.of(&["1600B", "9kB"]), "queue": queue });
        }
        links.push(link(format!("l{hop}"), (hop, hop + 1), rate, parsed(queue)));
        links.push(link(format!("back{hop}"), (hop + 1, hop), 10_000_000, parsed(exact())));
    }
    let source = |number: u64, draw: &mut Draw| match draw.below(5) {
        _ if number == 0 => {
            greedy(draw.of(&[8_000, 30_000, 100_000]), 1 + draw.below(3), draw.of(&[64, 200, 500]), until)
        }
        0 => endless(),
        1 => tcp(json!({
            "tcp": "newreno", "window": format!("{}p", 1 + draw.below(5)), "packet": "600B", "min-rto": "3s", "initial-rto": "3s",
            "max-rto": "60s",
        })),
        // Just below a quantum now and then: a queue that is new again and again.
        2 => greedy(draw.of(&[200_000, 900_000]), 1 + draw.below(4), draw.of(&[300, 750, 1500]), until),
        3 => greedy(20_000_000, 20, draw.of(&[200, 1500]), until),
        _ => greedy(draw.of(&[20_000, 60_000]), 1 + draw.below(2), draw.of(&[64, 1000]), until),
    };
    let count = 2 + draw.below(5);
    let flows = (0..count).map(|number| {
        let transport = source(number, draw);
        let mut one = flow(format!("f{number}"), (0, hops), transport, 0);
        let offset = Duration::from_nanos(draw.below(20_000) * 1000);
        one.start = (perhop_core::Instant::ZERO + offset, perhop_core::Instant::ZERO + offset);
        one
    });
    let flows = flows.collect();
    Network { nodes: hops + 1, links, flows, ..Network::new(until + Duration::from_secs(1)) }
}

fn hold(numbers: std::ops::Range<u64>) {
    let (mut bounded, count) = (0, numbers.end - numbers.start);
    for number in numbers {
        let network = network(number);
        let bounds = bounds(&network);
        bounded += u64::from(bounds.flows[0].delay.0.is_ok());
        let found = exceeded(&bounds, &simulate(&network, number), &network);
        assert!(found.is_empty(), "network {number}: {found:#?} {:#?}", bounds.flows);
    }
    assert!(bounded * 2 > count, "{bounded} of {count} first flows have a bound");
}

#[test]
fn no_simulation_exceeds_the_bound_of_a_flow_beside_others_without_one() {
    hold(0..300);
}

#[test]
#[ignore = "ten thousand networks take a minute: make soundness"]
fn no_simulation_of_ten_thousand_exceeds_the_bound_of_a_flow_beside_others_without_one() {
    hold(0..10_000);
}

#[test]
fn a_turn_that_is_not_counted_is_found() {
    let is_found = |number: u64| {
        let right = network(number);
        let mut wrong = right.clone();
        wrong.flows.pop();
        wrong.flows.pop();
        wrong.flows.len() > 1 && !exceeded(&bounds(&wrong), &simulate(&right, number), &right).is_empty()
    };
    assert!((0..2000).any(is_found));
}
