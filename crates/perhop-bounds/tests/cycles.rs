//! Routes that form a cycle: a fixed point at a low load, and no bound, with the cycle named, at a high one.

use perhop_bounds::{bounds, bounds_until};
use perhop_core::Duration;
use perhop_sim::{Network, Watch};

use crate::networks::{flow, greedy, link, parsed};
use crate::soundness::{exceeded, simulate};

const NODES: u32 = 5;

/// A ring in one direction, on which each flow passes all links but one.
fn ring(load: u64, burst: u64) -> Network {
    let until = Duration::from_millis(300);
    let queue = || parsed(serde_json::json!({ "aqm": "drop-tail", "limit": "18446744073709551615p" }));
    let links =
        (0..NODES).map(|node| link(format!("l{node}"), (node, (node + 1) % NODES), 10_000_000, queue()));
    let rate = 10_000_000 * load / 100 / u64::from(NODES - 1);
    let flows = (0..NODES).map(|node| {
        flow(format!("f{node}"), (node, (node + NODES - 1) % NODES), greedy(rate, burst, 1000, until), 0)
    });
    let (links, flows) = (links.collect(), flows.collect());
    Network { nodes: NODES, links, flows, ..Network::new(until + Duration::from_millis(700)) }
}

#[test]
fn a_ring_at_a_low_load_has_a_bound() {
    for load in [10, 20, 30] {
        for burst in [1, 4, 10] {
            let ring = ring(load, burst);
            let bounds = bounds(&ring);
            assert!(bounds.flows.iter().all(|flow| flow.delay.0.is_ok()), "{load} %: {:?}", bounds.notes);
            let found = exceeded(&bounds, &simulate(&ring, 1), &ring);
            assert!(found.is_empty(), "{load} %, {burst} packets: {found:?}");
        }
    }
}

#[test]
fn a_ring_at_a_high_load_has_none_and_is_named() {
    // A volume ends every burst: sources without an end are what circulates.
    let mut ring = ring(90, 10);
    for flow in &mut ring.flows {
        let source =
            serde_json::json!({ "udp": "cbr", "rate": "2250000bps", "packet": "1000B", "jitter": 0.0 });
        flow.transport = perhop_sim::TransportSpec::Udp(serde_json::from_value(source).unwrap());
        flow.dispatch_jitter = Some(Duration::from_millis(5));
    }
    let bounds = bounds(&ring);
    let reason = bounds.links[0].delay.0.clone().unwrap_err();
    assert!(reason.contains("the cycle of the links `l0`, `l1`, `l2`, `l3`, `l4`"), "{reason}");
    assert!(reason.contains("not below 33 %, up to which flows of 4 hops have one"), "{reason}");
    assert_eq!(bounds.notes, [reason]);
}

#[test]
fn a_stopped_watch_leaves_no_bounds() {
    let watch = Watch::default();
    assert!(bounds_until(&ring(10, 1), &watch).is_some());
    watch.stop();
    assert_eq!(bounds_until(&ring(10, 1), &watch), None);
}
