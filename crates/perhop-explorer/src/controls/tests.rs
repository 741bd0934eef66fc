use super::*;
use crate::describe;

const TEXT: &str = r#"
duration = "5s"
[links.up]
from = "a"
to = "b"
rate = "10Mbps"
delay = "10ms"
queue = { aqm = "red", thresholds = "5/15/0.1", limit = "60p" }
[[flows]]
name = "bulk"
count = 3
from = "a"
to = "b"
transport = { tcp = "linux" }
"#;

fn scenario(text: &str) -> Value {
    serde_json::to_value(describe::read(text).unwrap()).unwrap()
}

fn control(path: &str) -> Control {
    let all = controls(&scenario(TEXT), TEXT);
    let paths: Vec<_> = all.iter().map(|control| control.path.clone()).collect();
    all.into_iter().find(|control| control.path == path).unwrap_or_else(|| panic!("{paths:?}"))
}

#[test]
fn values_have_units_ranges_and_descriptions() {
    let rate = control("links.up.rate");
    assert_eq!((rate.unit.as_str(), &rate.value, rate.live, rate.is_set), ("Mbps", &10.0.into(), true, true));
    assert_eq!((rate.min, rate.max, rate.log), (0.5, 200.0, true));
    assert_eq!(rate.doc, "Rate of each direction.");
    let max_p = control("links.up.queue.thresholds.max_p");
    assert_eq!((max_p.unit.as_str(), &max_p.value, max_p.max, max_p.live), ("", &0.1.into(), 1.0, true));
    let weight = control("links.up.queue.weight");
    assert_eq!((weight.is_set, weight.log, weight.max), (false, true, 1.0));
    let count = control("flows.bulk.count");
    assert_eq!((count.integer, count.min, count.max, count.live), (true, 0.0, 20.0, false));
    assert_eq!(control("links.up.queue.gentle").kind, "switch");
    assert!(control("links.up.queue.thresholds.min").integer);
}

#[test]
fn keys_that_are_left_out_have_their_defaults() {
    let text = TEXT.replace(r#"aqm = "red", thresholds = "5/15/0.1""#, r#"aqm = "pie""#);
    let find = |text: &str, path: &str| {
        let all = controls(&scenario(text), text);
        all.into_iter().find(|control| control.path == format!("links.up.queue.{path}")).unwrap()
    };
    let target = find(&text, "target");
    assert_eq!((target.is_set, target.live, target.default.as_str()), (false, true, "15 ms"));
    assert_eq!((target.kind, &target.value, target.unit.as_str()), ("number", &15.0.into(), "ms"));
    assert!(target.min > 0.0 && target.max == 500.0, "{target:?}");
    assert_eq!(find(&text, "alpha").default, "0.125");
    let docsis = text.replace(r#"aqm = "pie""#, r#"aqm = "pie", law = "docsis""#);
    assert_eq!(find(&docsis, "target").default, "10 ms");
    // Where it is given, it can be taken out again.
    let given = text.replace(r#"aqm = "pie""#, r#"aqm = "pie", target = "5ms""#);
    let target = find(&given, "target");
    assert_eq!((target.is_set, &target.value, target.default.as_str()), (true, &5.0.into(), "15 ms"));
    assert_eq!(find(TEXT, "weight").default, "0.002");
    // A default in words: no slider, and an example of what one may write.
    let pi2 = find(&text.replace("\"pie\"", "\"pi2\""), "update");
    assert_eq!((pi2.kind, &pi2.value), ("text", &Value::Null));
    assert_eq!(pi2.default, "the target, or a third of rtt-max, if that is less");
    // A key that the text must have has none.
    assert_eq!(control("links.up.rate").default, "");
}

#[test]
fn keys_of_a_preset_have_its_defaults() {
    let default = |text: &str, key: &str| {
        let path = format!("flows.bulk.transport.{key}");
        controls(&scenario(text), text).into_iter().find(|control| control.path == path).unwrap().default
    };
    let given = TEXT.replace(r#"tcp = "linux""#, r#"tcp = "linux", window = "64kB", packet = "1kB""#);
    for text in [TEXT, &given] {
        let defaults = ["window", "send-buffer", "packet", "initial-window"].map(|key| default(text, key));
        assert_eq!(defaults, ["16.777216 MB", "4.194304 MB", "1.5 kB", "10p"]);
    }
    let paper = TEXT.replace("linux", "newreno");
    let defaults = ["window", "send-buffer", "packet", "initial-window"].map(|key| default(&paper, key));
    assert_eq!(defaults, ["1000p", "unlimited", "1 kB", "1p"]);
}

#[test]
fn what_is_left_out_can_be_set_and_taken_out_again() {
    let pie = TEXT.replace(r#"aqm = "red", thresholds = "5/15/0.1""#, r#"aqm = "pie""#);
    let dual =
        TEXT.replace(r#"aqm = "red", thresholds = "5/15/0.1", limit = "60p""#, r#"scheduler = "dualpi2""#);
    let fq = dual.replace("dualpi2", "fq-codel");
    for text in [TEXT, &pie, &dual, &fq] {
        let before = scenario(text);
        let mut seen = 0;
        for control in controls(&before, text).iter().filter(|control| !control.is_set) {
            let path = control.path.as_str();
            assert!(!control.default.is_empty(), "{path}");
            if control.value.is_null() {
                continue;
            }
            let value = match &control.value {
                Value::Number(number) if control.unit.is_empty() => number.to_string(),
                Value::Bool(on) => on.to_string(),
                Value::String(text) => format!("\"{text}\""),
                number => format!("\"{number}{}\"", control.unit),
            };
            let given = set(&before, text, path, &value).unwrap();
            let after = describe::read(&given).unwrap_or_else(|problem| panic!("{path}: {problem:?}"));
            let table = serde_json::to_value(after).unwrap();
            assert!(controls(&table, &given).iter().any(|one| one.path == path && one.is_set), "{given}");
            assert_eq!(set(&table, &given, path, "").unwrap(), text, "{path}");
            seen += 1;
        }
        assert!(seen > 5, "{seen}");
    }
}

#[test]
fn blocks_are_a_choice() {
    let aqm = control("links.up.queue.aqm");
    assert!(aqm.choices.contains(&"codel".to_owned()) && aqm.choices.contains(&"pie".to_owned()));
    assert_eq!((aqm.kind, aqm.live), ("choice", false));
    assert!(control("flows.bulk.transport.tcp").choices.contains(&"newreno".to_owned()));
}

#[test]
fn every_aqm_can_take_the_place_of_red() {
    let aqm = control("links.up.queue.aqm");
    for name in aqm.choices.iter().filter(|name| *name != "dwred") {
        let text = set(&scenario(TEXT), TEXT, "links.up.queue.aqm", &format!("\"{name}\"")).unwrap();
        if let Err(problem) = describe::read(&text) {
            panic!("{name}: {problem:?}\n{text}");
        }
    }
}
