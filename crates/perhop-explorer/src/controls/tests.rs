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
            let mut back = set(&table, &given, path, "").unwrap();
            // A congestion control that the text leaves out is named beside its parameter.
            if path.contains(".congestion.") {
                back = set(&before, &back, "flows.bulk.transport.congestion.control", "").unwrap();
            }
            assert_eq!(back, text, "{path}");
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

/// The text with another transport, and ECN.
fn with(transport: &str) -> String {
    TEXT.replace(r#"tcp = "linux""#, transport) + "ecn = \"classic\"\n"
}

/// A control of the flow's congestion control: whether it is set, its value, and its default.
fn of_congestion(text: &str, key: &str) -> (bool, Value, String) {
    let path = format!("flows.bulk.transport.congestion.{key}");
    let mut all = controls(&scenario(text), text).into_iter();
    let control = all.find(|control| control.path == path).unwrap_or_else(|| panic!("{path}: {text}"));
    (control.is_set, control.value, control.default)
}

fn set_congestion(text: &str, key: &str, value: &str) -> String {
    let path = format!("flows.bulk.transport.congestion.{key}");
    let text = set(&scenario(text), text, &path, value).unwrap();
    describe::read(&text).unwrap_or_else(|problem| panic!("{problem:?}\n{text}"));
    text
}

#[test]
fn a_congestion_control_has_its_parameters_at_their_defaults_too() {
    let table = |gain: &str| {
        with(&format!(r#"tcp = "linux", congestion = {{ control = "dctcp", estimation-gain = {gain} }}"#))
    };
    let text = set_congestion(&table("0.25"), "estimation-gain", "0.0625");
    assert_eq!(text, table("0.0625"));
    assert_eq!(of_congestion(&text, "estimation-gain"), (true, 0.0625.into(), "0.0625".into()));
    assert_eq!(of_congestion(&text, "control"), (true, "dctcp".into(), "cubic".into()));
    let text = with(r#"tcp = "newreno", congestion = { control = "cubic" }"#);
    assert_eq!(of_congestion(&text, "ecn-backoff"), (false, false.into(), "off".into()));
    assert_eq!(of_congestion(&text, "alpha"), (false, Value::Null, "automatic".into()));
    assert_eq!(of_congestion(&text, "hystart"), (false, false.into(), "off".into()));
    assert_eq!(of_congestion(&text, "control"), (true, "cubic".into(), "reno".into()));
    let linux = "true, unless its slow-start says how the first slow start ends";
    assert_eq!(of_congestion(TEXT, "hystart"), (false, true.into(), linux.into()));
}

#[test]
fn former_keys_are_set_where_they_are_now() {
    let former = with(r#"tcp = "linux", congestion = "dctcp", estimation-gain = 0.2"#);
    assert_eq!(of_congestion(&former, "estimation-gain"), (true, 0.2.into(), "0.0625".into()));
    for (key, value, transport) in [
        (
            "estimation-gain",
            "0.25",
            r#"tcp = "linux", congestion = { control = "dctcp", estimation-gain = 0.25 }"#,
        ),
        ("estimation-gain", "", r#"tcp = "linux", congestion = "dctcp""#),
        ("control", "\"cubic\"", r#"tcp = "linux", congestion = "cubic""#),
        ("control", "", r#"tcp = "linux""#),
    ] {
        assert_eq!(set_congestion(&former, key, value), with(transport), "{key} {value}");
    }
    let former = with(r#"tcp = "linux", slow-start = "hystart""#);
    let now = with(r#"tcp = "linux", congestion = { control = "cubic", hystart = false }"#);
    assert_eq!(set_congestion(&former, "hystart", "false"), now);
    let former = with(r#"tcp = "linux", congestion = { control = "dctcp" }, estimation-gain = 0.2"#);
    let now = with(r#"tcp = "linux", congestion = { control = "dctcp", estimation-gain = 0.25 }"#);
    assert_eq!(set_congestion(&former, "estimation-gain", "0.25"), now);
}

#[test]
fn parameters_of_a_control_that_is_named_or_left_out_can_be_set_and_taken_out_again() {
    for (transport, key, value, then) in [
        (
            r#"tcp = "linux", congestion = "dctcp""#,
            "estimation-gain",
            "0.25",
            r#"tcp = "linux", congestion = { control = "dctcp", estimation-gain = 0.25 }"#,
        ),
        (
            r#"tcp = "linux""#,
            "alpha",
            "\"raised\"",
            r#"tcp = "linux", congestion = { control = "cubic", alpha = "raised" }"#,
        ),
        (
            r#"tcp = "newreno""#,
            "ecn-backoff",
            "true",
            r#"tcp = "newreno", congestion = { control = "reno", ecn-backoff = true }"#,
        ),
        (r#"tcp = "quic""#, "control", "\"scalable\"", r#"tcp = "quic", congestion = "scalable""#),
    ] {
        let (text, then) = (with(transport), with(then));
        assert!(!of_congestion(&text, key).0, "{text}");
        assert_eq!(set_congestion(&text, key, value), then);
        assert!(of_congestion(&then, key).0, "{then}");
        let back = set_congestion(&then, key, "");
        if text.contains("congestion") {
            assert_eq!(back, text);
        } else {
            assert_eq!(set_congestion(&back, "control", ""), text);
        }
    }
    // A table of several lines stays one.
    let lines =
        "[flows.transport]\ntcp = \"linux\"\n[flows.transport.congestion]\ncontrol = \"dctcp\" # marks";
    let text = with("").replace("transport = {  }\n", "") + lines;
    let set = set_congestion(&text, "estimation-gain", "0.5");
    assert_eq!(set, format!("{text}\nestimation-gain = 0.5\n"));
    assert_eq!(set_congestion(&set, "estimation-gain", ""), format!("{text}\n"));
}
