//! Requests: which are read, and which are refused with their key.

use perhop_replay::Request;

const SCENARIO: &str = r#"
duration = "5s"
[links.access]
from = "a"
to = "b"
rate = "10Mbps"
delay = "1ms"
queue = { aqm = "codel" }
meters = [{ name = "all", profile = { marker = "token-bucket", rate = "1Mbps", burst = "10kB" } }]
[links.core]
from = "b"
to = "c"
rate = "20Mbps"
delay = "1ms"
[[flows]]
name = "f"
from = "a"
to = "b"
transport = { tcp = "newreno" }
"#;

fn refused(options: &str, scenario: Option<&str>) -> String {
    Request::plan(options, scenario.map(|text| (text, "a.toml"))).unwrap_err().to_string()
}

#[test]
fn a_link_of_a_scenario_is_taken_by_its_name_or_as_the_only_one_with_a_queue() {
    for options in ["{}", r#"{"link": "access"}"#] {
        let plan = Request::plan(options, Some((SCENARIO, "a.toml"))).unwrap();
        let link = plan.target.link.unwrap();
        assert_eq!(
            (link.name.as_str(), link.rate.to_string(), link.meters.len()),
            ("access", "10Mbps".into(), 1)
        );
    }
}

#[test]
fn what_cannot_be_replayed_is_refused_with_its_place() {
    let meter = r#""meter": {"marker": "token-bucket", "rate": "1Mbps", "burst": "10kB"}"#;
    let queue = r#""queue": {"aqm": "codel"}"#;
    for (options, expected) in [
        (
            "{}".into(),
            "replay: says nothing to replay into: give a meter, a queue with its rate, or a scenario",
        ),
        (
            format!("{{{queue}}}"),
            "replay: rate: is missing: the rate at which the queue is served, such as \"10Mbps\"",
        ),
        (
            format!("{{{meter}, \"rate\": \"1Mbps\"}}"),
            "replay: rate: has no effect without a queue; leave it out, or give a queue",
        ),
        (
            format!("{{{meter}, \"link\": \"a\"}}"),
            "replay: link: names a link of a scenario, and there is none: give its file, or leave this out",
        ),
        (
            format!("{{{meter}, \"from\": \"2s\", \"to\": \"2s\"}}"),
            "replay: to: the replay ends before it begins; choose a later time, after the first packet",
        ),
        (
            format!("{{{meter}, \"speed\": 0}}"),
            "replay: speed: a speed lies between 0.000001 and 1000000; 2 is twice as fast as captured",
        ),
        (
            format!("{{{meter}, \"match\": {{\"protocol\": \"icmp\", \"source-ports\": 5}}}}"),
            "replay: match.source-ports: only tcp and udp have ports; leave this key out, or change `protocol`",
        ),
        (
            format!("{{{meter}, \"match\": {{\"vlan\": 5}}}}"),
            "replay: match.vlan: a replay reads the IP packets of a capture, not their frames; leave this key out",
        ),
        (
            r#"{"meter": {"marker": "twam", "rate": "1Mbps"}}"#.into(),
            "replay: meter.marker: `twam` follows the windows of TCP senders, which a capture does not have",
        ),
        (r#"{"meter": {"marker": "srtcm", "rate": "1mbps"}}"#.into(), "replay: meter.rate: "),
        (
            r#"{"queue": {"aqm": "dwred", "out": "1/5/0.1", "limit": "9p"}, "rate": "1Mbps"}"#.into(),
            "replay: queue.",
        ),
        (r#"{"queue": {"aqm": "cod"}, "rate": "1Mbps"}"#.into(), "replay: queue"),
    ] {
        let text = refused(&options, None);
        assert!(text.starts_with(expected), "{options}: {text}");
        assert!(!text.contains('\n'));
    }
}

#[test]
fn a_scenario_without_such_a_link_is_refused_with_those_there_are() {
    let of = |options: &str, text: &str| refused(options, Some(text));
    assert_eq!(
        of(r#"{"link": "acess"}"#, SCENARIO),
        "a.toml: unknown link `acess`; did you mean `access`? (links with queues: `access`)"
    );
    assert_eq!(
        of(r#"{"link": "core"}"#, SCENARIO),
        "a.toml: links.core: has no queue to replay into; links with queues: `access`"
    );
    assert!(
        of(r#"{"rate": "1Mbps"}"#, SCENARIO).starts_with("replay: rate: the scenario's link has its own")
    );
    let lossy = SCENARIO.replace("queue = { aqm", "loss = 0.1\nqueue = { aqm");
    assert!(
        of("{}", &lossy).starts_with("a.toml: links.access: changes or loses packets"),
        "{}",
        of("{}", &lossy)
    );
    let two = SCENARIO.replace("rate = \"20Mbps\"", "rate = \"20Mbps\"\nqueue = { aqm = \"pie\" }");
    assert!(of("{}", &two).ends_with("choose one by `link`: `access`, `core`"), "{}", of("{}", &two));
    let none = SCENARIO.lines().filter(|line| !line.starts_with("queue") && !line.starts_with("meters"));
    let none = none.collect::<Vec<_>>().join("\n");
    assert!(of("{}", &none).starts_with("a.toml: no link has a queue"));
    assert!(of("{}", "duration = 5").starts_with("a.toml:1: duration"));
}

#[test]
fn what_has_no_effect_is_said() {
    let options = r#"{"queue": {"aqm": "inverse-rate", "in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p"}, "rate": "1Mbps"}"#;
    let plan = Request::plan(options, None).unwrap();
    assert!(
        plan.notices.iter().any(|notice| notice.contains("carry no contracted rate")),
        "{:?}",
        plan.notices
    );
    assert!(
        plan.notices.iter().all(|notice| notice.starts_with("replay: queue.aqm: ")),
        "{:?}",
        plan.notices
    );
    let options = r#"{"queue": {"scheduler": "fifo", "rule": {"aqm": "inverse-rate", "in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p"}}, "rate": "1Mbps"}"#;
    let plan = Request::plan(options, None).unwrap();
    assert!(plan.notices[0].starts_with("replay: queue.rule.aqm: "), "{:?}", plan.notices);
    let scenario = SCENARIO.replace(
        r#"queue = { aqm = "codel" }"#,
        r#"queue = { aqm = "inverse-rate", in = "4/7/0.02", total = "1/3/0.5", limit = "9p" }"#,
    );
    let plan = Request::plan("{}", Some((&scenario, "a.toml"))).unwrap();
    assert!(plan.notices[0].starts_with("a.toml: links.access.queue.aqm: "), "{:?}", plan.notices);
}
