//! What blocks declare of themselves to those who check or describe a scenario: limits, delay targets, their
//! rules, parameters without effect.

use perhop_core::aqm::{Aqm, AqmParams, DropTailParams};
use perhop_core::marker::AfClass;
use perhop_core::scheduler::{Incoming, SchedulerParams};
use perhop_core::testing::environment;
use perhop_core::{Bitrate, Bytes, Codepoints, Color, Depth, Dscp, Duration, FlowId, Header, Precedences};

use crate::blocks::{aqm, meter};
use crate::parameters::{AQMS, METERS, SCHEDULERS};

fn scheduler(name: &str, table: &str) -> SchedulerParams {
    let mut table = serde_json::Deserializer::from_str(table);
    SchedulerParams::deserialize_named(name, &mut table).expect("registered").expect("valid parameters")
}

fn rate(text: &str) -> Bitrate {
    text.parse().unwrap()
}

#[test]
fn every_aqm_declares_its_limit() {
    for (name, table) in AQMS {
        let (params, table) = (aqm(name, table), serde_json::from_str::<serde_json::Value>(table).unwrap());
        let limit = params.limit(environment().rate).map(|limit| limit.to_string());
        assert_eq!(limit.as_deref(), table["limit"].as_str(), "{name}");
        assert_eq!(params.with_limit(environment().rate), params, "{name}");
    }
    // By default, 250 ms of the link in packets of 1500 bytes.
    for name in ["codel", "cobalt", "pie", "pi2"] {
        let params = aqm(name, "{}");
        assert_eq!(params.limit(rate("96Mbps")), Some(Depth::Packets(2000)), "{name}");
        let written = params.with_limit(rate("96Mbps"));
        assert_eq!(written.limit(rate("1Mbps")), Some(Depth::Packets(2000)), "{name}");
    }
    // It is written for the rate at which a queue is served.
    let mut shaped = scheduler("shaper", r#"{"rate": "96Mbps", "burst": "3kB", "queue": {"aqm": "codel"}}"#);
    shaped.write_limits(rate("1Gbps"));
    assert_eq!(shaped.aqms(None)[0].1.limit(rate("1Mbps")), Some(Depth::Packets(2000)));
}

#[test]
fn a_scheduler_with_queues_of_its_own_declares_their_limit() {
    for (name, table, limit) in [
        ("fq-codel", r#"{"limit": "77p"}"#, Some(Depth::Packets(77))),
        ("dualpi2", r#"{"limit": "77kB"}"#, Some(Depth::Bytes(77_000))),
        ("dualpi2", r#"{"law": "linux"}"#, Some(Depth::Packets(10_000))),
        // 250 ms of the link.
        ("dualpi2", "{}", Some(Depth::Bytes(25_000_000))),
        ("fifo", r#"{"rule": {"aqm": "drop-tail", "limit": "7p"}}"#, None),
    ] {
        assert_eq!(scheduler(name, table).limit(rate("800Mbps")), limit, "{name} {table}");
    }
}

#[test]
fn blocks_declare_the_delays_that_they_aim_at() {
    // The target, the least delay at which the block acts in microseconds, and whether a parameter spares
    // short queues.
    for (name, table, targets) in [
        ("drop-tail", r#"{"limit": "7p"}"#, vec![]),
        ("red", r#"{"thresholds": "2/6/0.1", "limit": "9p"}"#, vec![]),
        ("red", r#"{"target-delay": "9ms", "limit": "99p"}"#, vec![("target-delay", 9000, 4500, true)]),
        ("codel", r#"{"target": "6ms"}"#, vec![("target", 6000, 6000, false)]),
        ("cobalt", r#"{"target": "6ms"}"#, vec![("target", 6000, 0, false)]),
        ("cobalt", r#"{"target": "6ms", "mtu": "1500B"}"#, vec![("target", 6000, 0, true)]),
        ("pi2", r#"{"target": "6ms", "rtt-max": "99ms"}"#, vec![("target", 6000, 0, false)]),
        // Half of the target raises the probability by beta times 3 ms: by 0.15, and by 0.24.
        ("pie", r#"{"target": "6ms", "beta": 50}"#, vec![("target", 6000, 3000, false)]),
        ("pie", r#"{"target": "6ms", "beta": 80}"#, vec![("target", 6000, 0, false)]),
    ] {
        let found = aqm(name, table).delay_targets();
        let micros = |delay: Duration| delay.as_nanos() / 1000;
        let found: Vec<_> = found
            .iter()
            .map(|found| {
                (found.key, micros(found.target), micros(found.least_acting_delay), found.spares_short)
            })
            .collect();
        assert_eq!(found, targets, "{name} {table}");
    }
    let micros = |name: &str, table: &str| {
        let targets = scheduler(name, table).delay_targets().into_iter();
        targets.map(|t| (t.key, t.target.as_nanos() / 1000, t.spares_short)).collect::<Vec<_>>()
    };
    assert_eq!(micros("fq-codel", r#"{"target": "6ms"}"#), [("target", 6000, false)]);
    let step = |spares| [("target", 6000, false), ("step", 2000, spares)];
    let table = |keys: &str| format!(r#"{{"target": "6ms", "rtt-max": "99ms", "step": "2ms"{keys}}}"#);
    assert_eq!(micros("dualpi2", &table("")), step(true));
    assert_eq!(micros("dualpi2", &table(r#", "step-length": 0"#)), step(false));
    assert_eq!(micros("fifo", r#"{"rule": {"aqm": "codel", "target": "6ms"}}"#), []);
}

#[test]
fn the_rules_that_can_be_changed_are_those_that_are_shown() {
    let other = AqmParams::DropTail(DropTailParams { limit: Depth::Packets(12_345) });
    for (name, table) in SCHEDULERS {
        let (params, mut changed) = (scheduler(name, table), scheduler(name, table));
        let mut shown = params.clone();
        let shown: Vec<AqmParams> = shown.aqms_mut().into_iter().map(|aqm| aqm.clone()).collect();
        assert!(shown.iter().eq(params.aqms(None).into_iter().map(|(_, aqm)| aqm)), "{name} {table}");
        assert!(params.differs_only_in_aqms(&params), "{name}");
        assert!(params.foreign().is_empty());
        for aqm in changed.aqms_mut() {
            aqm.clone_from(&other);
        }
        assert_eq!(changed == params, shown.is_empty(), "{name}");
        assert!(changed.aqms(None).into_iter().all(|(_, aqm)| *aqm == other), "{name}");
        assert!(params.differs_only_in_aqms(&changed), "{name}");
        for (another, table) in SCHEDULERS {
            let another_params = scheduler(another, table);
            assert!(another == name || !params.differs_only_in_aqms(&another_params), "{name} {another}");
        }
    }
    let fifo = |aqm: &str| format!(r#""name": "a", "rule": {{"aqm": {aqm}, "limit": "7p"}}"#);
    let drr = |quantum, aqm: &str| {
        scheduler("drr", &format!(r#"{{"quantum": "{quantum}B", "queues": [{{{}}}]}}"#, fifo(aqm)))
    };
    assert!(drr(300, r#""drop-tail""#).differs_only_in_aqms(&drr(300, r#""codel""#)));
    assert!(!drr(300, r#""drop-tail""#).differs_only_in_aqms(&drr(301, r#""drop-tail""#)));
}

/// The keys of parameters that have no effect, where packets have 100 to 1000 bytes.
fn keys_without_effect(name: &str, table: &str) -> Vec<&'static str> {
    aqm(name, table).keys_without_effect(&(100..=1000)).into_iter().map(|(key, _)| key).collect()
}

#[test]
fn parameters_without_effect_are_declared() {
    let sets = r#""in": "4/7/0.02", "total": "1/3/0.5""#;
    for (name, table) in [
        ("red", r#""thresholds": "2/6/0.1""#),
        ("rio", sets),
        ("abe", r#""thresholds": "2/6/0.1""#),
        ("dwred", r#""out": "2/6/0.1""#),
    ] {
        let with = |more: &str| keys_without_effect(name, &format!(r#"{{{table}, "limit": "9p"{more}}}"#));
        assert_eq!(with(""), [""; 0], "{name}");
        // Thresholds in packets count packets of any size.
        assert_eq!(with(r#", "scale-by-size": false"#), ["scale-by-size"], "{name}");
    }
    // The longest queue: 9 packets of 1000 bytes, and 900 bytes in packets of 100.
    let red = |thresholds: &str, limit: &str| {
        keys_without_effect("red", &format!(r#"{{"thresholds": "{thresholds}", "limit": "{limit}"}}"#))
    };
    assert_eq!(red("1kB/8999B/0.1", "9p"), [""; 0]);
    assert_eq!(red("9001B/9002B/0.1", "9p"), ["thresholds"]);
    assert_eq!(red("1/8/0.1", "900B"), [""; 0]);
    assert_eq!(red("10/11/0.1", "900B"), ["thresholds"]);
    // CoDel: what the queue holds is no more than `mtu`.
    let codel =
        |limit: &str| keys_without_effect("codel", &format!(r#"{{"mtu": "2000B", "limit": "{limit}"}}"#));
    assert_eq!([codel("2p"), codel("2kB")], [["mtu"], ["mtu"]]);
    assert_eq!([codel("3p"), codel("2001B")], [const { &[""; 0] }; 2]);
    // PIE: an arriving packet finds two mean packets at most; in Linux, less than two.
    let pie = |limit: &str, more: &str| {
        keys_without_effect("pie", &format!(r#"{{"mean-packet": "500B", "limit": "{limit}"{more}}}"#))
    };
    assert_eq!([pie("2p", ""), pie("1100B", "")], [["mean-packet"], ["mean-packet"]]);
    assert_eq!([pie("3p", ""), pie("1101B", "")], [const { &[""; 0] }; 2]);
    assert_eq!(pie("1100B", r#", "law": "linux""#), [""; 0]);
    assert_eq!(pie("1099B", r#", "law": "linux""#), ["mean-packet"]);
    assert_eq!(pie("9p", r#", "mark-below": 0.2"#), ["mark-below"]);
    assert_eq!(pie("9p", r#", "mark-below": 0.1"#), [""; 0]);
    assert_eq!(pie("9p", r#", "mark-below": 0.2, "ecn": true"#), [""; 0]);
}

#[test]
fn a_target_delay_below_the_least_thresholds_is_declared() {
    // At 8 Mbit/s, five packets of 1000 bytes are sent in 5 ms, which is half of the least delay.
    let at = |delay: &str| {
        let table = format!(r#"{{"target-delay": "{delay}", "mean-packet": "1000B", "limit": "99p"}}"#);
        aqm("red", &table).keys_without_effect_at(environment().rate).len()
    };
    assert_eq!((at("9999us"), at("10ms")), (1, 0));
    assert_eq!(aqm("codel", "{}").keys_without_effect_at(environment().rate).len(), 0);
}

#[test]
fn a_bucket_that_is_smaller_than_a_packet_is_noticed() {
    let keys = |burst: &str, mtu: &str| {
        let queue = r#"{"aqm": "drop-tail", "limit": "9p"}"#;
        let table = format!(r#"{{"rate": "1Mbps", "burst": "{burst}", "mtu": "{mtu}", "queue": {queue}}}"#);
        let notices = scheduler("shaper", &table).notices((rate("1Mbps"), rate("1Mbps")), Bytes::new(1500));
        notices.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(keys("1499B", "1000B"), ["burst"]);
    assert_eq!(keys("1500B", "1499B"), ["mtu"]);
    assert_eq!(keys("1500B", "1500B"), [""; 0]);
}

#[test]
fn a_class_whose_quantum_is_below_a_packet_is_noticed() {
    // A class of 1 Mbit/s has a quantum of 12500 bytes, one of 100 kbit/s of 1250.
    let keys = |a: &str, b: &str| {
        let class = |name: &str, selector: &str, keys: &str| {
            format!(
                r#"{{"name": "{name}", {selector} {keys}, "queue": {{"aqm": "drop-tail", "limit": "9p"}}}}"#
            )
        };
        let (a, b) = (class("a", r#""match": {"dscp": 1},"#, a), class("b", "", b));
        let table = format!(r#"{{"classes": [{{"name": "all", "rate": "8Mbps", "classes": [{a}, {b}]}}]}}"#);
        let params = scheduler("htb", &table);
        let found = params.notices((rate("8Mbps"), rate("8Mbps")), Bytes::new(1500)).into_iter();
        found.map(|(key, text)| (key, text.contains("r2q"))).collect::<Vec<_>>()
    };
    let small = r#""rate": "100kbps", "ceil": "8Mbps""#;
    let large = r#""rate": "1Mbps", "ceil": "8Mbps""#;
    let here = |n: usize, by_rate: bool| vec![(format!("classes[0].classes[{n}].quantum"), by_rate)];
    assert_eq!(keys(small, large), here(0, true));
    assert_eq!(keys(large, small), here(1, true));
    assert_eq!(keys(large, &format!(r#"{large}, "quantum": "1499B""#)), here(1, false));
    // The largest packet fits.
    assert_eq!(keys(large, &format!(r#"{large}, "quantum": "1500B""#)), []);
    // They share in equal parts.
    assert_eq!(keys(small, small), []);
    // One of them does not borrow, or at another priority.
    assert_eq!(keys(r#""rate": "100kbps""#, large), []);
    assert_eq!(keys(small, r#""rate": "1Mbps""#), []);
    assert_eq!(keys(small, &format!(r#"{large}, "prio": 1"#)), []);
    assert_eq!(keys(small, &format!(r#"{large}, "prio": 0"#)), here(0, true));
}

#[test]
fn an_l4s_queue_that_no_packet_joins_is_declared() {
    let (low, none) = (Dscp::new(3).unwrap(), Dscp::DEFAULT);
    let header = |dscp| Header { dscp, ..Header::new(FlowId(0), 100) };
    let unused = |table: &str, headers: &[Header], has_ect_1| {
        let incoming = Incoming { headers, described: "", has_ect_1 };
        scheduler("dualpi2", table).unused_queue(&incoming).map(|(key, _)| key)
    };
    assert_eq!(unused("{}", &[header(none)], false), Some("scheduler"));
    assert_eq!(unused("{}", &[header(none)], true), None);
    let by_codepoint = r#"{"l4s-dscp": 3}"#;
    assert_eq!(unused(by_codepoint, &[header(none)], false), Some("l4s-dscp"));
    assert_eq!(unused(by_codepoint, &[header(none), header(low)], false), None);
    assert_eq!(unused(by_codepoint, &[], false), None);
    let incoming = Incoming { headers: &[header(none)], described: "", has_ect_1: false };
    let fifo = scheduler("fifo", r#"{"rule": {"aqm": "drop-tail", "limit": "7p"}}"#);
    assert_eq!(fifo.unused_queue(&incoming), None);
}

#[test]
fn the_least_rates_of_queues_by_hand() {
    let rule = r#""rule": {"aqm": "drop-tail", "limit": "9p"}"#;
    let queues = |key: &str| {
        format!(
            r#""queues": [{{"name": "a", "match": {{"dscp": 1}} {key}, {rule}}}, {{"name": "b", {rule}}}]"#
        )
    };
    let llq = |limit: &str| {
        format!(
            r#"{{"priority": [{{"name": "a", "match": {{"dscp": 1}} {limit}, {rule}}}, {{"name": "b", "match": {{"dscp": 2}}, {rule}}}],
                "queue": {{"aqm": "drop-tail", "limit": "9p"}}}}"#
        )
    };
    let shaper = r#"{"rate": "3Mbps", "burst": "3kB", "queue": {"aqm": "drop-tail", "limit": "9p"}}"#;
    for (name, table, least) in [
        ("fifo", format!("{{{rule}}}"), vec![Some(8)]),
        ("edf", format!("{{{rule}}}"), vec![None]),
        ("priority", format!("{{{}}}", queues("")), vec![Some(8), None]),
        ("priority", format!("{{{}}}", queues(r#", "cap": "2Mbps""#)), vec![None, None]),
        ("drr", format!("{{{}}}", queues(r#", "rate": "2Mbps""#)), vec![Some(2), Some(6)]),
        ("wfq", format!("{{{}}}", queues(r#", "weight": 3"#)), vec![Some(6), Some(2)]),
        ("shaper", shaper.into(), vec![Some(3)]),
        // Packets in priority queues can keep the rest waiting.
        ("llq", llq(""), vec![Some(8), None, None]),
    ] {
        let found = scheduler(name, &table).least_rates(rate("8Mbps"));
        let expected: Vec<_> =
            least.into_iter().map(|mbps| mbps.map(|mbps| rate(&format!("{mbps}Mbps")))).collect();
        assert_eq!(found, expected, "{name} {table}");
    }
    for (name, table) in SCHEDULERS {
        let params = scheduler(name, table);
        assert_eq!(params.least_rates(rate("8Mbps")).len(), params.aqms(None).len(), "{name}");
        let all = params.all_within(rate("8Mbps"));
        assert_eq!((all[0].key.as_str(), all[0].scheduler), ("", &params));
        assert_eq!((all[0].rate, all[0].cap), (Some(rate("8Mbps")), None));
    }
    let params = scheduler("shaper", shaper);
    let all = params.all_within(rate("8Mbps"));
    let found: Vec<_> = all.iter().map(|w| (w.key.as_str(), w.rate, w.cap)).collect();
    let (whole, limited) = (Some(rate("8Mbps")), Some(rate("3Mbps")));
    assert_eq!(found, [("", whole, None), ("queue", limited, limited)]);
}

#[test]
fn rates_of_classes_that_contradict_each_other_are_noticed() {
    let queue = r#""queue": {"aqm": "drop-tail", "limit": "9p"}"#;
    let keys = |classes: &str| {
        let notices = scheduler("htb", &format!(r#"{{"classes": [{classes}]}}"#))
            .notices((rate("6Mbps"), rate("8Mbps")), Bytes::new(1500))
            .into_iter();
        notices.map(|(key, _)| key).collect::<Vec<_>>()
    };
    let root = |more: &str| keys(&format!(r#"{{"name": "a", {more}, {queue}}}"#));
    // 6 Mbit/s are always left.
    assert_eq!(root(r#""rate": "6Mbps""#), [""; 0]);
    assert_eq!(root(r#""rate": "7Mbps""#), ["classes"]);
    // A root class cannot borrow; with more room at its rate than at its ceiling, a burst leaves at that.
    assert_eq!(root(r#""rate": "6Mbps", "ceil": "7Mbps""#), ["classes[0].ceil"]);
    assert_eq!(root(r#""rate": "6Mbps", "ceil": "6Mbps""#), [""; 0]);
    assert_eq!(root(r#""rate": "6Mbps", "ceil": "7Mbps", "burst": "4kB", "cburst": "2kB""#), [""; 0]);
    assert_eq!(
        root(r#""rate": "6Mbps", "ceil": "7Mbps", "burst": "4kB", "cburst": "4kB""#),
        ["classes[0].ceil"]
    );
    // At the rate of the link itself, nothing is lost by it; above, the key has no effect.
    assert_eq!(root(r#""rate": "8Mbps", "ceil": "9Mbps""#), ["classes", "classes[0].ceil"]);
    let text = |rate_of_class: &str| {
        let class = format!(r#"{{"name": "a", "rate": "{rate_of_class}", "ceil": "9Mbps", {queue}}}"#);
        let params = scheduler("htb", &format!(r#"{{"classes": [{class}]}}"#));
        params.notices((rate("8Mbps"), rate("8Mbps")), Bytes::new(1500)).remove(0).1
    };
    assert!(text("7999kbps").contains("a root class borrows from none"));
    assert!(text("8Mbps").contains("above the link's 8Mbps"));
    let leaf = |rate: &str, ceil: &str| {
        format!(
            r#"{{"name": "in", "rate": "5Mbps", "classes": [{{"name": "a", "rate": "{rate}", "ceil": "{ceil}", {queue}}}]}}"#
        )
    };
    assert_eq!(keys(&leaf("5Mbps", "8Mbps")), [""; 0]);
    assert_eq!(keys(&leaf("6Mbps", "8Mbps")), ["classes[0].classes"]);
    assert_eq!(keys(&leaf("5Mbps", "9Mbps")), ["classes[0].classes[0].ceil"]);
    let around = |rate: &str| {
        keys(&format!(
            r#"{{"name": "in", "rate": "{rate}", "classes": [{{"name": "a", "rate": "5Mbps", {queue}}}]}}"#
        ))
    };
    assert_eq!(around("8Mbps"), [""; 0]);
    assert_eq!(around("9Mbps"), ["classes[0].ceil", "classes[0].rate"][1..]);
}

#[test]
fn a_meter_reads_the_color_where_it_is_aware_of_it() {
    for (name, table) in METERS {
        let aware = table.contains("color-aware");
        assert_eq!(meter(name, table).reads_color(), aware, "{name} {table}");
    }
}

#[test]
fn codepoints_of_assured_forwarding_by_hand() {
    // RFC 2597, section 6.
    for (n, [green, yellow, red]) in
        [[10, 12, 14], [18, 20, 22], [26, 28, 30], [34, 36, 38]].into_iter().enumerate()
    {
        let class = AfClass::new(n as u8 + 1).unwrap();
        assert_eq!(class.index(), n);
        for (color, dscp) in Color::ALL.into_iter().zip([green, yellow, red]) {
            let mut packet = Header::new(FlowId(0), 100);
            class.mark(&mut packet, color);
            assert_eq!((packet.color, packet.dscp), (color, Dscp::new(dscp).unwrap()));
            assert_eq!(AfClass::of(packet.dscp), Some((class, color)));
        }
    }
    assert_eq!([0, 5].map(AfClass::new), [None; 2]);
}

#[test]
fn a_controller_shows_its_probability_and_the_delay() {
    for name in ["pi2", "pie"] {
        let gauges = aqm(name, "{}").build(environment()).gauges();
        assert!(gauges.contains(&("probability", 0.0)) && gauges.contains(&("delay_s", 0.0)), "{gauges:?}");
    }
}

#[test]
fn sets_of_precedences_and_codepoints_hold_what_they_are_made_of() {
    for numbers in [vec![], vec![0], vec![7], vec![2, 5, 2], vec![7, 8, 9]] {
        let (precedences, all) = (Precedences::of(numbers.clone()), 0..8);
        let held: Vec<u8> = all.filter(|n| precedences.contains(Dscp::new(n * 8).unwrap())).collect();
        let mut expected: Vec<u8> = numbers.into_iter().filter(|n| *n < 8).collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!((held, precedences.iter().collect::<Vec<_>>()), (expected.clone(), expected.clone()));
        let codepoints: Codepoints =
            expected.iter().chain(&expected).map(|n| Dscp::new(*n).unwrap()).collect();
        assert_eq!(codepoints.iter().map(Dscp::get).collect::<Vec<_>>(), expected);
    }
}
