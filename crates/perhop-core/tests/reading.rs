//! Parameters of every registered block, read from text: valid ones round-trip, invalid ones are refused with
//! a reason.

use perhop_core::Role;
use perhop_core::aqm::AqmParams;
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::testing::environment;

use crate::blocks::{aqm, meter};
use crate::parameters::{AQMS, METERS, SCHEDULERS};

#[test]
fn parameters_round_trip() {
    for (name, table) in AQMS {
        let params = aqm(name, table);
        let mut written = serde_json::to_value(&params).unwrap();
        assert_eq!(written.as_object_mut().unwrap().remove("aqm").unwrap(), *name);
        assert_eq!(aqm(name, &written.to_string()), params);
    }
    for (name, table) in SCHEDULERS {
        let mut read = serde_json::Deserializer::from_str(table);
        let params = SchedulerParams::deserialize_named(name, &mut read).unwrap().unwrap();
        let written = serde_json::to_string(&params).unwrap();
        assert!(written.contains(&format!(r#""scheduler":"{name}""#)));
        assert_eq!(serde_json::from_str::<SchedulerParams>(&written).unwrap(), params);
    }
    for (name, table) in METERS {
        let params = meter(name, table);
        let mut written = serde_json::to_value(&params).unwrap();
        assert_eq!(written.as_object_mut().unwrap().remove("marker").unwrap(), *name);
        assert_eq!(meter(name, &written.to_string()), params);
    }
}

#[test]
fn unknown_names_and_keys_are_refused() {
    let refused = |name: &str, table: &str| {
        let mut table = serde_json::Deserializer::from_str(table);
        AqmParams::deserialize_named(name, &mut table).map(|read| read.unwrap_err().to_string())
    };
    assert_eq!(refused("codle", "{}"), None);
    assert!(refused("red", r#"{"limit": "9p"}"#).unwrap().contains("thresholds"));
    assert!(refused("drop-tail", r#"{"limit": "9p", "min": 3}"#).unwrap().contains("min"));
    let mixed = refused("rio", r#"{"in": "4kB/7kB/0.02", "total": "1/3/0.5", "limit": "9p"}"#).unwrap();
    assert!(mixed.contains("packets"), "{mixed}");
}

/// Why parameters are refused when they are read, by any role's reader.
fn refused(role: Role, name: &str, table: &str) -> String {
    let mut read = serde_json::Deserializer::from_str(table);
    let problem = match role {
        Role::Aqm => AqmParams::deserialize_named(name, &mut read).map(Result::err),
        Role::Meter => MeterParams::deserialize_named(name, &mut read).map(Result::err),
        Role::Scheduler => SchedulerParams::deserialize_named(name, &mut read).map(Result::err),
        Role::Application | Role::CongestionControl => unreachable!("the core has none"),
    };
    let problem = problem.expect("registered").unwrap_or_else(|| panic!("{name} {table} is accepted"));
    problem.to_string()
}

#[test]
fn parameters_of_aqms_that_do_not_fit_together_are_refused() {
    let rio = r#""in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p""#;
    let three = r#""in": "4/7/0.02", "out-in": "2/5/0.5", "limit": "9p""#;
    let red = r#""thresholds": "1/3/0.5", "limit": "9p""#;
    for (name, table, problem) in [
        ("red", format!(r#"{red}, "mean-packet": "0B""#), "above 0B"),
        ("red", format!(r#"{red}, "target-delay": "5ms""#), "leave one of the two out"),
        (
            "red",
            r#""target-delay": "5ms", "weight": 0.1, "limit": "9p""#.into(),
            "`target-delay` chooses the weight",
        ),
        ("red", format!(r#"{red}, "adapt-interval": "0s""#), "at least 1ms"),
        ("red", format!(r#"{red}, "adapt-factor": 0"#), "above 0, such as 0.9"),
        ("red", r#""thresholds": "1/3/0", "adaptive": true, "limit": "9p""#.into(), "max_p begins above 0"),
        ("red", format!(r#"{red}, "adapt-least": 0.3, "adapt-most": 0.2"#), "it is above `adapt-most`"),
        ("red", r#""target-delay": "0s", "limit": "9p""#.into(), "a delay is longer than 0s"),
        ("pie", r#""target": "0s""#.into(), "a target is longer than 0s"),
        ("pie", r#""alpha": 1e300"#.into(), "at most 1000000"),
        ("pi2", r#""target": "0s", "update": "9ms""#.into(), "a target is longer than 0s"),
        (
            "pi2",
            r#""alpha": 1e300"#.into(),
            "alpha\u{1f}a gain is at most 1000000, such as 0.15 or 3, not 1e300",
        ),
        ("pi2", r#""beta": 1000001"#.into(), "beta\u{1f}a gain is at most 1000000"),
        (
            "cobalt",
            r#""target": "6ms", "interval": "5ms""#.into(),
            "a target is at most `interval`, which is 5ms, not 6ms",
        ),
        ("pie", r#""update": "999us""#.into(), "at least 1ms"),
        ("pie", r#""law": "docsis", "mean-packet": "0B""#.into(), "above 0B"),
        ("codel", r#""interval": "0s""#.into(), "longer than 0s"),
        ("pi2", r#""rtt-max": "0s""#.into(), "longer than 0s"),
        ("pi2", r#""rtt-max": "2ms""#.into(), "at least 1ms"),
        ("cobalt", r#""interval": "0s""#.into(), "longer than 0s"),
        ("cobalt", r#""increment": 0"#.into(), "an increment is above 0"),
        ("blue", r#""increment": 0, "limit": "9p""#.into(), "an increment is above 0"),
        ("rio", format!(r#"{rio}, "mean-packet": "0B""#), "above 0B"),
        ("rio-plus-out", format!(r#"{rio}, "out": "1kB/2kB/0.1""#), "not in the unit of `in`"),
        ("rio-three", format!(r#"{three}, "out-out": "1kB/3kB/0.5""#), "not in the unit of `in`"),
        ("inverse-rate", format!(r#"{rio}, "mean-packet": "0B""#), "above 0B"),
        ("wred", r#""green": "1/3/0.5", "yellow": "1kB/3kB/0.5", "limit": "9p""#.into(), "not in the unit"),
        ("wred", r#""limit": "9p""#.into(), "no color has thresholds"),
        ("dwred", r#""out": "1kB/3kB/0.5", "limit": "9p""#.into(), "must be in packets"),
        ("dwred", r#""out": "1/3/0.5", "limit": "9p", "mean-packet": "0B""#.into(), "above 0B"),
        ("abe", format!(r#"{red}, "interval": "0s""#), "interval must be above 0s"),
        ("abe", format!(r#"{red}, "target": 200"#), "target must be at most `largest`, which is 100"),
        ("abe", format!(r#"{red}, "alpha": 101"#), "alpha must be at most `largest`, which is 100"),
        ("abe", format!(r#"{red}, "mean-packet": "0B""#), "above 0B"),
    ] {
        let found = refused(Role::Aqm, name, &format!("{{{table}}}"));
        assert!(found.contains(problem), "{name} {table}: {found}");
    }
    // What is at an edge fits.
    aqm("red", &format!(r#"{{{red}, "adapt-least": 0.3, "adapt-most": 0.3}}"#));
    aqm("cobalt", r#"{"target": "5ms", "interval": "5ms"}"#);
    aqm("pi2", r#"{"alpha": 1000000, "beta": 1000000}"#);
    aqm("abe", &format!(r#"{{{red}, "target": 100, "alpha": 100}}"#));
}

#[test]
fn parameters_of_schedulers_that_do_not_fit_together_are_refused() {
    let rule = r#""rule": {"aqm": "drop-tail", "limit": "9p"}"#;
    let queues = |first: &str| {
        format!(
            r#""queues": [{{"name": "a", "match": {{"dscp": 1}} {first}, {rule}}}, {{"name": "b", {rule}}}]"#
        )
    };
    let both = queues(r#", "rate": "1Mbps", "weight": 2"#);
    let alone = format!(r#""queues": [{{"name": "a", "match": {{"dscp": 1}}, {rule}}}]"#);
    let plain = queues("");
    for (name, table, problem) in [
        ("edf", format!(r#""green": "2ms", "blue": "1ms", {rule}"#), "must not be later than `blue`"),
        ("dsd", format!(r#""bound": "1ms", "control": "0s", {rule}"#), "control must be above 0s"),
        (
            "shaper",
            r#""rate": "1Mbps", "burst": "1kB", "queue": {"aqm": "drop-tail", "limit": "9p"}"#.into(),
            "at least `mtu`",
        ),
        ("priority", format!(r#"{plain}, "window": "0s""#), "longer than 0s"),
        ("priority", r#""queues": []"#.into(), "has no queues"),
        ("drr", format!(r#"{plain}, "quantum": "0B""#), "above 0B"),
        ("drr", both.clone(), "leave one out"),
        (
            "drr",
            queues(r#", "queue-protection": {"attempts": 5}"#),
            "queues[0].queue-protection.attempts\u{1f}there are 1 to 4 attempts",
        ),
        ("wfq", queues(r#", "queue-protection": {"buckets": 3}"#), "a power of 2"),
        (
            "wfq",
            format!(r#""queues": [{{"name": "a", "queue-protection": {{}}, {rule}}}]"#),
            "queues[0].queue-protection\u{1f}the last queue has no other one",
        ),
        ("drr", alone.clone(), "accept every packet that no other matches"),
        ("wfq", both, "leave one out"),
        ("wfq", alone, "accept every packet that no other matches"),
    ] {
        let found = refused(Role::Scheduler, name, &format!("{{{table}}}"));
        assert!(found.contains(problem), "{name} {table}: {found}");
    }
    // What is at an edge fits.
    crate::blocks::scheduler("edf", &format!(r#"{{"green": "1ms", "blue": "1ms", {rule}}}"#), 1);
}

#[test]
fn parameters_of_meters_that_do_not_fit_together_are_refused() {
    for (name, table, problem) in [
        ("tsw", r#""rate": "1Mbps", "window": "0s""#, "window\u{1f}a window must be longer than 0s"),
        (
            "three-precedence",
            r#""rate": "1Mbps", "long-window": "0s""#,
            "long-window\u{1f}a window must be longer than 0s",
        ),
        (
            "tswtcm",
            r#""rate": "1Mbps", "peak-rate": "2Mbps", "window": "0s""#,
            "window\u{1f}a window must be longer than 0s",
        ),
        ("tswtcm", r#""rate": "2Mbps", "peak-rate": "1Mbps""#, "at least `rate`"),
        (
            "trtcm",
            r#""rate": "2Mbps", "burst": "3kB", "peak-rate": "1Mbps", "peak-burst": "3kB""#,
            "at least `rate`",
        ),
        (
            "trtcm",
            r#""rate": "1Mbps", "burst": "0B", "peak-rate": "1Mbps", "peak-burst": "3kB""#,
            "must be above 0B",
        ),
        ("srtcm", r#""rate": "1Mbps", "burst": "0B", "excess-burst": "0B""#, "both 0B"),
        (
            "rfc4115",
            r#""rate": "1Mbps", "burst": "0B", "excess-rate": "1Mbps", "excess-burst": "0B""#,
            "both 0B",
        ),
    ] {
        let found = refused(Role::Meter, name, &format!("{{{table}}}"));
        assert!(found.contains(problem), "{name} {table}: {found}");
    }
}

#[test]
fn parameters_of_schedulers_without_rules_that_are_out_of_range_are_refused() {
    for (name, table, problem) in [
        ("fq-codel", r#"{"flows": 0}"#, "there are 1 to 65536 queues"),
        ("fq-codel", r#"{"flows": 65537}"#, "there are 1 to 65536 queues"),
        ("fq-codel", r#"{"flows": 12, "hash": "set-associative"}"#, "sets have 8 queues"),
        ("fq-codel", r#"{"quantum": "0B"}"#, "a quantum must be above 0B"),
        ("fq-codel", r#"{"quantum": "2GB"}"#, "a quantum is at most 1GB"),
        ("fq-codel", r#"{"batch": 0}"#, "at least 1 packet is dropped"),
        ("fq-codel", r#"{"interval": "0s"}"#, "an interval is longer than 0s"),
        ("dualpi2", r#"{"target": "0s", "interval": "9ms"}"#, "a target is longer than 0s"),
        ("dualpi2", r#"{"beta": 1e7}"#, "a gain is at most 1000000"),
        ("dualpi2", r#"{"queue-protection": {"attempts": 5}}"#, "there are 1 to 4 attempts"),
        ("dualpi2", r#"{"rtt-max": "2999us"}"#, "a round-trip time is at least 3ms"),
        ("dualpi2", r#"{"interval": "999us"}"#, "updated once in 1ms at most"),
        ("dualpi2", r#"{"target": "999us"}"#, "updated once in 1ms at most"),
        ("dualpi2", r#"{"classic-share": 0.0}"#, "neither queue may starve"),
        ("dualpi2", r#"{"classic-share": 1}"#, "neither queue may starve"),
        ("dualpi2", r#"{"k": 101}"#, "the coupling factor is at most 100"),
    ] {
        let found = refused(Role::Scheduler, name, table);
        assert!(found.contains(problem), "{name} {table}: {found}");
    }
}

#[test]
fn a_link_that_is_too_slow_for_its_queues_is_refused() {
    let rule = r#""rule": {"aqm": "drop-tail", "limit": "9p"}"#;
    for (name, key) in [("priority", "cap"), ("drr", "rate"), ("wfq", "rate")] {
        let fits = |rate: &str| {
            let table = format!(
                r#"{{"scheduler": "{name}", "queues": [{{"name": "a", "match": {{"dscp": 1}}, "{key}": "{rate}", {rule}}}, {{"name": "b", {rule}}}]}}"#
            );
            serde_json::from_str::<SchedulerParams>(&table).unwrap().fits(environment().rate)
        };
        // The harness's link has 8 Mbit/s.
        assert!(fits("7.9Mbps").is_ok(), "{name}");
        assert!(fits("8.1Mbps").is_err(), "{name}");
        assert_eq!(fits("8Mbps").is_ok(), name == "priority", "{name}: nothing is left for the other queue");
    }
}

#[test]
fn a_scheduler_tells_its_rules_and_its_paths() {
    for (name, table) in SCHEDULERS {
        let mut read = serde_json::Deserializer::from_str(table);
        let mut params = SchedulerParams::deserialize_named(name, &mut read).unwrap().unwrap();
        let mut table: serde_json::Value = serde_json::from_str(table).unwrap();
        let mut inside = "";
        if *name == "shaper" {
            (table, inside) = (table["queue"].clone(), "queue.");
        }
        let queues = table["queues"].as_array().cloned().unwrap_or_default();
        let expected: Vec<(String, String)> = match *name {
            "shaper" if !table["aqm"].is_null() => vec![("queue".into(), table["aqm"].to_string())],
            "shaper" if queues.is_empty() => vec![("queue.rule".into(), table["rule"]["aqm"].to_string())],
            "fifo" => vec![(String::new(), table["rule"]["aqm"].to_string())],
            "edf" | "dsd" => vec![("rule".into(), table["rule"]["aqm"].to_string())],
            "htb" | "llq" => {
                let mut found = Vec::new();
                walk(&table, "", &mut |key, table| {
                    found.extend(table.get("aqm").map(|aqm| (key.to_owned(), aqm.to_string())));
                });
                found
            }
            _ => (0..)
                .zip(&queues)
                .map(|(n, q): (usize, _)| (format!("{inside}queues[{n}].rule"), q["rule"]["aqm"].to_string()))
                .collect(),
        };
        let rules = params.aqms(None).into_iter().map(|(key, rule)| (key, format!("{:?}", rule.name())));
        assert_eq!(rules.collect::<Vec<_>>(), expected, "{name}");
        let named = |(n, queue): (usize, &serde_json::Value)| {
            let path = queue["match"]["path"].as_str()?;
            Some((format!("{inside}queues[{n}].match.path"), path.to_owned()))
        };
        let mut paths: Vec<_> = (0..).zip(&queues).filter_map(named).collect();
        if ["htb", "llq"].contains(name) {
            walk(&table, "", &mut |key, table| {
                let path = table.get("path").and_then(serde_json::Value::as_str);
                paths.extend(path.map(|path| (format!("{key}.path"), path.to_owned())));
            });
        }
        let found = params.paths().into_iter().map(|(key, path)| (key, path.name().to_owned()));
        assert_eq!(found.collect::<Vec<_>>(), paths, "{name}");
    }
}

/// Calls a function with each table within a value, and its key.
fn walk(value: &serde_json::Value, key: &str, show: &mut dyn FnMut(&str, &serde_json::Value)) {
    match value {
        serde_json::Value::Object(table) => {
            show(key, value);
            for (name, inner) in table {
                walk(inner, &if key.is_empty() { name.clone() } else { format!("{key}.{name}") }, show);
            }
        }
        serde_json::Value::Array(all) => {
            all.iter().enumerate().for_each(|(n, inner)| walk(inner, &format!("{key}[{n}]"), show));
        }
        _ => {}
    }
}
