//! No bound whose assumption a scenario breaks: each assumption holds in one network and is turned off in
//! another, which then has a reason in place of the bound.

use perhop_bounds::{Bounds, bounds};
use perhop_core::Duration;
use perhop_core::medium::{Medium, Outage};
use perhop_sim::transport::tcp::TcpParams;
use perhop_sim::{Marking, Network, TransportSpec};
use serde_json::{Value, json};

use crate::networks::{flow, link, parsed};

/// A link of 10 Mbit/s with this queue, and two flows: `first` of codepoint 46, `second` of codepoint 0.
fn two(queue: Value, first: Value, second: Value) -> Network {
    let source = |table: Value| match table.get("udp") {
        Some(_) => TransportSpec::Udp(serde_json::from_value(table).unwrap()),
        None if table.get("tfrc").is_some() => {
            TransportSpec::Tfrc(serde_json::from_value(json!({ "tfrc": "rfc5348" })).unwrap())
        }
        None => serde_json::from_value::<TcpParams>(table).unwrap().into(),
    };
    let links = vec![
        link("there".into(), (0, 1), 10_000_000, parsed(queue)),
        link("back".into(), (1, 0), 10_000_000, perhop_sim::LinkSpec::unlimited()),
    ];
    let flows = vec![
        flow("first".into(), (0, 1), source(first), 46),
        flow("second".into(), (0, 1), source(second), 0),
    ];
    Network { nodes: 2, links, flows, ..Network::new(Duration::from_secs(1)) }
}

fn cbr(rate: &str) -> Value {
    json!({ "udp": "cbr", "rate": rate, "packet": "1000B" })
}

/// TCP whose window is a bound as long as a round trip is shorter than this timeout.
fn tcp(min_rto: &str) -> Value {
    json!({ "tcp": "newreno", "window": "20p", "packet": "1000B", "min-rto": min_rto, "initial-rto": "1s" })
}

fn fifo() -> Value {
    json!({ "aqm": "drop-tail", "limit": "100p" })
}

fn queues(scheduler: Value) -> Value {
    let mut table = scheduler;
    table["queues"] = json!([
        { "name": "one", "match": { "dscp": 46 }, "rule": { "aqm": "drop-tail", "limit": "100p" } },
        { "name": "two", "rule": { "aqm": "drop-tail", "limit": "100p" } },
    ]);
    table
}

fn priority() -> Value {
    queues(json!({ "scheduler": "priority" }))
}

fn hierarchy(rate: &str) -> Value {
    let class = |name: &str, rate: &str, burst: &str| json!({ "name": name, "rate": rate, "ceil": "10Mbps", "burst": burst, "cburst": "50kB", "queue": fifo() });
    let mut first = class("first", rate, "5kB");
    first["match"] = json!({ "dscp": 46 });
    json!({ "scheduler": "htb", "classes": [
        { "name": "root", "rate": "10Mbps", "classes": [first, class("second", "4Mbps", "5kB")] },
    ] })
}

fn out_of_profile(network: &mut Network, out: &str) {
    let profile = json!({ "marker": "token-bucket", "rate": "3Mbps", "burst": "3kB", "out": out });
    network.flows[0].marking = Marking::Ingress(serde_json::from_value(profile).unwrap());
}

type Has = fn(&Bounds) -> bool;

const FIRST: Has = |bounds| bounds.links[0].classes[0].delay.0.is_ok();
const LAST: Has = |bounds| bounds.links[0].classes.last().unwrap().delay.0.is_ok();
const BEHIND: Has = |bounds| bounds.links[2].classes[0].delay.0.is_ok();
const FLOW: Has = |bounds| bounds.flows[0].delay.0.is_ok();
const NO_LOSS: Has = |bounds| bounds.links[0].classes[0].loss.0.is_none();
const FLOW_NOT_LOST: Has = |bounds| bounds.flows[0].loss.0.is_none();

/// A flow of TCP with two colors through a queue that has one place for both, or two, and then through a
/// FIFO.
fn divided(by_color: bool) -> Network {
    let mut table = priority();
    if by_color {
        table["queues"][0]["match"] = json!({ "color": "green" });
    }
    let mut network = two(table, tcp("1s"), cbr("1Mbps"));
    out_of_profile(&mut network, "mark");
    let unlimited = parsed(json!({ "aqm": "drop-tail", "limit": "18446744073709551615p" }));
    network.links.push(link("behind".into(), (1, 2), 5_000_000, unlimited));
    network.links.push(link("back behind".into(), (2, 1), 10_000_000, perhop_sim::LinkSpec::unlimited()));
    network.nodes = 3;
    network.flows[0].to = perhop_sim::NodeId(2);
    network
}

/// Returns each assumption with what it bounds, and a network in which it holds and one in which it does not.
#[expect(clippy::too_many_lines, reason = "a table, a row for each assumption")]
fn assumptions() -> Vec<(&'static str, Has, Network, Network)> {
    let plain = || two(fifo(), cbr("3Mbps"), cbr("3Mbps"));
    let endless = || json!({ "aqm": "drop-tail", "limit": "18446744073709551615p" });
    let with = |change: fn(&mut Network)| {
        let mut network = plain();
        change(&mut network);
        network
    };
    let tfrc = || json!({ "tfrc": true });
    let small = json!({ "aqm": "drop-tail", "limit": "1p" });
    let red = |min: u32| json!({ "aqm": "red", "thresholds": format!("{min}/200/0.1"), "limit": "400p" });
    let dsd = |refused: &str| json!({ "scheduler": "dsd", "bound": "5ms", "refused-green": refused, "rule": fifo() });
    let edf = || json!({ "scheduler": "edf", "blue": "20ms", "rule": endless() });
    let shaped =
        |rate: &str| json!({ "scheduler": "shaper", "rate": rate, "burst": "3kB", "queue": endless() });
    let capped = |cap: &str| {
        let mut table = priority();
        table["queues"][0]["cap"] = json!(cap);
        table
    };
    let llq = |policed: bool| {
        let mut voice = json!({ "name": "one", "match": { "dscp": 46 }, "rule": fifo() });
        if policed {
            voice["rate"] = json!("3Mbps");
            voice["police"] = json!("always");
        }
        json!({ "scheduler": "llq", "priority": [voice], "queue": fifo() })
    };
    vec![
        (
            "less comes than is served",
            FIRST,
            plain_with(endless()),
            two(endless(), cbr("6Mbps"), cbr("6Mbps")),
        ),
        ("what comes has a bound", FIRST, plain_with(endless()), two(endless(), tfrc(), cbr("1Mbps"))),
        (
            "the limit bounds what is let in",
            FIRST,
            two(fifo(), tfrc(), tfrc()),
            two(endless(), tfrc(), tfrc()),
        ),
        (
            "a window and no early timeout",
            FIRST,
            two(endless(), tcp("1s"), cbr("1Mbps")),
            two(endless(), tcp("20ms"), cbr("1Mbps")),
        ),
        (
            "what goes first has a bound",
            LAST,
            two(priority(), cbr("3Mbps"), cbr("3Mbps")),
            two(priority(), tfrc(), cbr("3Mbps")),
        ),
        (
            "a priority queue is policed",
            LAST,
            two(llq(true), tfrc(), cbr("3Mbps")),
            two(llq(false), tfrc(), cbr("3Mbps")),
        ),
        (
            "a queue keeps to its cap",
            FIRST,
            two(capped("6Mbps"), cbr("3Mbps"), cbr("3Mbps")),
            two(capped("2Mbps"), cbr("3Mbps"), cbr("3Mbps")),
        ),
        (
            "a class keeps to its rate",
            FIRST,
            two(hierarchy("4Mbps"), cbr("3Mbps"), cbr("3Mbps")),
            two(hierarchy("2Mbps"), cbr("3Mbps"), cbr("3Mbps")),
        ),
        (
            "deadlines can be kept",
            FIRST,
            two(edf(), cbr("3Mbps"), cbr("3Mbps")),
            two(edf(), cbr("6Mbps"), cbr("6Mbps")),
        ),
        (
            "green packets have duplicates",
            FIRST,
            two(dsd("drop"), cbr("3Mbps"), cbr("3Mbps")),
            two(dsd("admit"), cbr("3Mbps"), cbr("3Mbps")),
        ),
        (
            "a shaper is fast enough",
            FIRST,
            two(shaped("8Mbps"), cbr("3Mbps"), cbr("3Mbps")),
            two(shaped("5Mbps"), cbr("3Mbps"), cbr("3Mbps")),
        ),
        (
            "jitter has an end",
            FLOW,
            plain(),
            with(|network| {
                let jitter = json!({ "distribution": "exponential", "mean": "1ms", "reorder": false });
                network.links[0].medium.jitter = Some(serde_json::from_value(jitter).unwrap());
            }),
        ),
        (
            "outages end",
            FIRST,
            with(|network| {
                let [from, to] = [100, 200].map(Duration::from_millis);
                network.links[0].medium = Medium { outages: vec![Outage { from, to }], ..Medium::default() };
            }),
            two(endless(), tfrc(), tfrc()),
        ),
        ("the queue has room", NO_LOSS, plain(), two(small, cbr("3Mbps"), cbr("3Mbps"))),
        (
            "thresholds are not reached",
            NO_LOSS,
            two(red(100), cbr("3Mbps"), cbr("3Mbps")),
            two(red(1), cbr("3Mbps"), cbr("3Mbps")),
        ),
        (
            "the memory has room",
            NO_LOSS,
            two(json!({ "scheduler": "fq-codel", "memory-limit": "8kB" }), cbr("3Mbps"), cbr("3Mbps")),
            two(json!({ "scheduler": "fq-codel", "memory-limit": "1kB" }), cbr("3Mbps"), cbr("3Mbps")),
        ),
        ("no queue divides a flow with a window", BEHIND, divided(false), divided(true)),
        (
            "the link loses nothing",
            FLOW_NOT_LOST,
            plain(),
            with(|network| {
                network.links[0].medium.loss = Some(perhop_core::Probability::new(0.01).unwrap());
            }),
        ),
        (
            "out of profile is marked",
            FLOW_NOT_LOST,
            with(|network| out_of_profile(network, "mark")),
            with(|network| out_of_profile(network, "drop")),
        ),
    ]
}

fn plain_with(queue: Value) -> Network {
    two(queue, cbr("3Mbps"), cbr("3Mbps"))
}

#[test]
fn a_broken_assumption_leaves_a_reason_and_no_bound() {
    for (name, has, holds, broken) in assumptions() {
        assert!(has(&bounds(&holds)), "{name}: no bound although it holds: {:?}", bounds(&holds).links[0]);
        assert!(
            !has(&bounds(&broken)),
            "{name}: a bound although it is broken: {:?}",
            bounds(&broken).links[0]
        );
    }
}

#[test]
fn each_reason_is_one_line() {
    for (.., broken) in assumptions() {
        let found = bounds(&broken);
        let classes = found.links.iter().flat_map(|link| &link.classes);
        let reasons = classes.flat_map(|class| [class.delay.0.clone().err(), class.loss.0.clone()]);
        let of_flows = found.flows.iter().flat_map(|flow| [flow.delay.0.clone().err(), flow.loss.0.clone()]);
        for reason in reasons.chain(of_flows).flatten() {
            assert!(!reason.is_empty() && !reason.contains('\n') && reason.len() < 250, "{reason:?}");
        }
    }
}
