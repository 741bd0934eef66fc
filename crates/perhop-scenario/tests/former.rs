//! Keys that a scenario may still have, and that are others by now.

use perhop_scenario::{Scenario, notices_in};

/// A scenario with one flow of this transport.
fn text(transport: &str) -> String {
    format!(
        r#"duration = "1s"
links.l = {{ from = "a", to = "b", rate = "1Mbps", delay = "1ms" }}
[[flows]]
name = "f"
from = "a"
to = "b"
transport = {{ {transport} }}
"#
    )
}

fn read(transport: &str) -> Result<(Scenario, Vec<String>), String> {
    let text = text(transport);
    let scenario = Scenario::from_toml(&text, "s.toml").map_err(|error| error.to_string())?;
    let notices =
        notices_in(Some(&text), "s.toml", scenario.notices()).iter().map(ToString::to_string).collect();
    Ok((scenario, notices))
}

#[test]
fn former_keys_of_a_transport_are_read_as_parameters_of_its_congestion_control() {
    for (former, now, key) in [
        (
            r#"tcp = "linux", congestion = "cubic", cubic-alpha = "raised""#,
            r#"tcp = "linux", congestion = { control = "cubic", alpha = "raised" }"#,
            "cubic-alpha",
        ),
        (
            r#"tcp = "linux", congestion = "ledbat", target-delay = "25ms""#,
            r#"tcp = "linux", congestion = { control = "ledbat", target-delay = "25ms" }"#,
            "target-delay",
        ),
        (
            r#"tcp = "linux", slow-start = "hystart""#,
            r#"tcp = "linux", congestion = { control = "cubic", hystart = true }"#,
            "slow-start",
        ),
    ] {
        let (read_former, notices) = read(former).unwrap();
        let (read_now, none) = read(now).unwrap();
        let (former_json, now_json) =
            (serde_json::to_string(&read_former).unwrap(), serde_json::to_string(&read_now).unwrap());
        assert_eq!(former_json, now_json);
        assert_eq!(format!("{:?}", read_former.network()), format!("{:?}", read_now.network()));
        let place = format!("s.toml:7: flows[0].transport.{key}: ");
        let text = "a parameter of `";
        assert!(none.is_empty() && notices.len() == 1, "{former}: {none:?} {notices:?}");
        assert!(notices[0].starts_with(&place) && notices[0].contains(text), "{notices:?}");
        assert!(notices[0].contains("by now: write congestion = {"), "{notices:?}");
        // What is canonical has no former key, and so no notice.
        assert!(Scenario::from_json(&former_json, "canonical").unwrap().notices().is_empty());
    }
}

#[test]
fn a_key_that_a_control_does_not_have_is_refused_with_what_is_right() {
    for (transport, problem) in [
        (
            r#"tcp = "newreno", congestion = "reno", target-rtt = "25ms""#,
            "s.toml:7: flows[0].transport.target-rtt: only `prague` has it, as its parameter `target-rtt`",
        ),
        (
            r#"tcp = "newreno", congestion = { control = "cubic", target-rtt = "25ms" }"#,
            "s.toml:7: flows[0].transport.congestion.target-rtt: unknown key `target-rtt` (valid keys: alpha, hystart, ecn-backoff)",
        ),
        (
            r#"tcp = "newreno", congestion = { control = "bbr", gain = 1 }"#,
            "s.toml:7: flows[0].transport.congestion.gain: unknown key `gain` (valid keys: none)",
        ),
        (
            r#"tcp = "newreno", congestion = { control = "cubic", alhpa = "raised" }"#,
            "unknown key `alhpa`; did you mean `alpha`?",
        ),
        (
            r#"tcp = "newreno", congestion = { control = "qubic" }"#,
            "s.toml:7: flows[0].transport.congestion.control: unknown control `qubic`; did you mean `cubic`?",
        ),
        (
            r#"tcp = "newreno", congestion = { control = "ledbat", target-delay = "1s" }"#,
            "s.toml:7: flows[0].transport.congestion.target-delay: a target is 1ms to 100ms",
        ),
        (r#"tcp = "newreno", congestion = 7"#, "flows[0].transport.congestion: expected one of reno, cubic"),
        (
            r#"tcp = "newreno", congestion = true"#,
            "flows[0].transport.congestion: expected one of reno, cubic",
        ),
    ] {
        let refused = read(transport).unwrap_err();
        assert!(refused.contains(problem), "{transport}: {refused}");
    }
}

#[test]
fn a_problem_is_at_the_key_that_the_file_has() {
    for (transport, problem) in [
        (r#"tcp = "linux", cubic-alpha = 5"#, "cubic-alpha: expected one of raised, constant"),
        (r#"tcp = "linux", cubic-alpha = { a = 5 }"#, "cubic-alpha"),
        (
            r#"tcp = "newreno", congestion = "dctcp", estimation-gain = 0"#,
            "estimation-gain: the gain is above 0",
        ),
        (
            r#"tcp = "newreno", ecn-backoff = true"#,
            "ecn-backoff: without `ecn` no packet of the flow is marked",
        ),
        (
            r#"tcp = "two-windows", ecn-backoff = true"#,
            "ecn-backoff: two-windows TCP has a rule of its own for losses; leave this key out",
        ),
        (
            r#"tcp = "newreno", congestion = { control = "reno", ecn-backoff = true }"#,
            "congestion.ecn-backoff: without `ecn` no packet of the flow is marked",
        ),
        // What cannot be read at all comes first.
        (r#"tcp = "newreno", congestion = 5, ecn-backoff = true"#, "congestion: expected one of reno, cubic"),
        (r#"tcp = "newreno", congestion = {}, ecn-backoff = true"#, "congestion: key `control` is missing"),
        (r#"tcp = "bogus", ecn-backoff = true"#, "tcp: unknown value `bogus`"),
        (r#"tcp = "newreno", congestion = "python""#, "congestion: `python` means a class; write which"),
    ] {
        let refused = read(transport).unwrap_err();
        let place = format!("s.toml:7: flows[0].transport.{problem}");
        assert!(refused.starts_with(&place), "{transport}: {refused}");
    }
}

#[test]
fn an_unknown_key_that_is_a_parameter_of_a_control_says_so() {
    for (key, text) in [
        ("alpha", r#"write congestion = { control = "cubic", alpha = … } (valid keys: "#),
        ("hystart", "unknown key `hystart`; it is a parameter of `cubic`: write congestion ="),
    ] {
        let refused = read(&format!(r#"tcp = "linux", {key} = true"#)).unwrap_err();
        assert!(refused.contains(text), "{refused}");
    }
}
