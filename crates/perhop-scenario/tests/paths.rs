//! Label-switched paths: what they become in a network, and which messages bad ones give.

use perhop_scenario::Scenario;

/// Two paths over three routers, one of them with a queue of its own, beside expedited forwarding.
const PATHS: &str = r#"
duration = "10s"

[paths.gold]
via = ["R1", "R2", "R3"]
back = ["R3", "R2", "R1"]

[paths.silver]
via = ["R4", "R2", "R3"]

[links]
R1-R2 = { from = "R1", to = "R2", rate = "50Mbps", delay = "5ms" }
R4-R2 = { from = "R4", to = "R2", rate = "50Mbps", delay = "20ms" }

[links.R2-R3]
from = "R2"
to = "R3"
rate = "50Mbps"
delay = "5ms"

[links.R2-R3.queue]
scheduler = "wfq"

[[links.R2-R3.queue.queues]]
name = "ef"
match = { dscp = 46 }
rate = "10Mbps"
rule = { aqm = "drop-tail", limit = "50p" }

[[links.R2-R3.queue.queues]]
name = "gold"
match = { path = "gold" }
rate = "30Mbps"
rule = { aqm = "rio", limit = "400p", in = "160/320/0.02", total = "40/160/0.1" }

[[links.R2-R3.queue.queues]]
name = "rest"
weight = 2
rule = { aqm = "drop-tail", limit = "100p" }

[[flows]]
name = "gold"
path = "gold"
transport = { tcp = "newreno" }

[[flows]]
name = "silver"
from = "R4"
path = "silver"
transport = { tcp = "newreno" }

[[flows]]
name = "voice"
from = "R2"
to = "R3"
dscp = 46
transport = { udp = "on-off", rate = "11Mbps", on = "1s", off = "1s", periods = "constant" }
"#;

#[test]
fn paths_become_routes_and_labels() {
    let scenario = Scenario::from_toml(PATHS, "s.toml").unwrap();
    let canonical = serde_json::to_string(&scenario).unwrap();
    assert_eq!(Scenario::from_json(&canonical, "json").unwrap(), scenario);
    assert!(canonical.contains(r#""match":{"path":"gold"}"#), "{canonical}");
    let network = scenario.network();
    let names = |links: &[usize]| links.iter().map(|&n| network.links[n].name.as_str()).collect::<Vec<_>>();
    let paths: Vec<_> =
        network.paths.iter().map(|path| (path.label, names(&path.forward), names(&path.backward))).collect();
    let back = "R2-R3 (reverse)";
    assert_eq!(paths[0], (1, vec!["R1-R2", "R2-R3"], vec![back, "R1-R2 (reverse)"]));
    assert_eq!(paths[1], (2, vec!["R4-R2", "R2-R3"], vec![back, "R4-R2 (reverse)"]));
    let flows: Vec<_> = network.flows.iter().map(|flow| (flow.path, flow.dscp.get())).collect();
    assert_eq!(flows, [(Some(0), 0), (Some(1), 0), (None, 46)]);
    assert_eq!(network.flows[0].from, network.links[network.paths[0].forward[0]].from);
}

#[test]
fn of_parallel_links_a_path_takes_the_first_by_name() {
    let twin = "R2-R1 = { from = \"R2\", to = \"R1\", rate = \"1Mbps\", delay = \"1ms\" }\n[links.R2-R3]";
    let network = Scenario::from_toml(&PATHS.replacen("[links.R2-R3]", twin, 1), "s.toml").unwrap().network();
    let first = |links: &[usize]| network.links[links[0]].name.clone();
    assert_eq!(first(&network.paths[0].forward), "R1-R2");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn problems_of_paths_and_queues_are_named_where_they_stand() {
    let cases = [
        (
            "via = [\"R1\", \"R2\", \"R3\"]",
            "via = [\"R1\", \"R3\", \"R2\"]",
            "s.toml:5: paths.gold.via[1]: no link connects `R1` and `R3` (neighbors of `R1`: R2)",
        ),
        (
            "via = [\"R1\", \"R2\", \"R3\"]",
            "via = [\"R1\", \"R2\", \"R33\"]",
            "s.toml:5: paths.gold.via[2]: unknown node `R33`; did you mean `R3`?",
        ),
        (
            "via = [\"R1\", \"R2\", \"R3\"]",
            "via = [\"R1\", \"R2\", \"R1\"]",
            "s.toml:5: paths.gold.via[2]: the path passes `R1` twice",
        ),
        (
            "via = [\"R1\", \"R2\", \"R3\"]",
            "via = [\"R1\"]",
            "s.toml:5: paths.gold.via: a path needs at least two routers",
        ),
        (
            "back = [\"R3\", \"R2\", \"R1\"]",
            "back = [\"R3\", \"R2\", \"R4\"]",
            "s.toml:6: paths.gold.back: the return path leads from `R3` to `R1`, not from `R3` to `R4`",
        ),
        (
            "back = [\"R3\", \"R2\", \"R1\"]",
            "back = [\"R3\", \"R1\"]",
            "s.toml:6: paths.gold.back[1]: no link connects `R3` and `R1`",
        ),
        (
            "via = [\"R4\"",
            "vai = [\"R4\"",
            "s.toml:9: paths.silver.vai: unknown key `vai`; did you mean `via`?",
        ),
        (
            "path = \"gold\"\n",
            "path = \"glod\"\n",
            "s.toml:43: flows[0].path: unknown path `glod`; did you mean `gold`?",
        ),
        ("path = \"gold\"\n", "", "s.toml:41: flows[0]: key `from` is missing; or name a `path`"),
        (
            "from = \"R4\"\npath",
            "from = \"R1\"\npath",
            "s.toml:48: flows[1].from: the path `silver` begins at `R4`, not at `R1`",
        ),
        (
            "match = { path = \"gold\" }",
            "match = { path = \"gould\" }",
            "s.toml:32: links.R2-R3.queue.queues[1].match.path: unknown path `gould`; did you mean `gold`?",
        ),
        (
            "match = { path = \"gold\" }",
            "match = { pth = \"gold\" }",
            "s.toml:32: links.R2-R3.queue.queues[1].match.pth: unknown key `pth`; did you mean `path`?",
        ),
        (
            "match = { path = \"gold\" }",
            "match = {}",
            "s.toml:32: links.R2-R3.queue.queues[1].match: it has no condition",
        ),
        (
            "match = { path = \"gold\" }",
            "",
            "s.toml:30: links.R2-R3.queue.queues[1].match: only the last queue may accept every packet",
        ),
        (
            "weight = 2",
            "match = { color = \"red\" }",
            "s.toml:38: links.R2-R3.queue.queues[2].match: the last queue must accept every packet that no other matches",
        ),
        (
            "weight = 2",
            "weight = 0",
            "s.toml:38: links.R2-R3.queue.queues[2].weight: expected a whole number from 1 to 4294967295, not 0",
        ),
        (
            "weight = 2",
            "weight = 2\nrate = \"1Mbps\"",
            "s.toml:38: links.R2-R3.queue.queues[2].weight: a queue has either a guaranteed `rate` or a `weight`",
        ),
        (
            "rate = \"30Mbps\"",
            "rate = \"41Mbps\"",
            "s.toml:24: links.R2-R3.queue.queues: the rates add up to 51Mbps, but the link has 50Mbps; lower them",
        ),
        (
            "rate = \"30Mbps\"",
            "rate = \"40Mbps\"",
            "s.toml:24: links.R2-R3.queue.queues: the rates add up to the link's 50Mbps, so nothing is left",
        ),
        (
            "match = { path = \"gold\" }",
            "match = { dscp = 46, path = \"gold\" }",
            "s.toml:32: links.R2-R3.queue.queues[1].match: the earlier queue `ef` matches all these packets",
        ),
        (
            "limit = \"400p\"",
            "limti = \"400p\"",
            "s.toml:34: links.R2-R3.queue.queues[1].rule.limti: unknown key `limti`; did you mean `limit`?",
        ),
        (
            "name = \"rest\"",
            "name = \"ef\"",
            "s.toml:37: links.R2-R3.queue.queues[2].name: an earlier queue has the name `ef`",
        ),
        (
            "scheduler = \"wfq\"",
            "scheduler = \"wqf\"",
            "s.toml:22: links.R2-R3.queue.scheduler: unknown scheduler `wqf`; did you mean",
        ),
        (
            "scheduler = \"wfq\"",
            "scheduler = \"priority\"",
            "s.toml:27: links.R2-R3.queue.queues[0].rate: unknown key `rate`",
        ),
        (
            "dscp = 46 }",
            "dscp = 64 }",
            "s.toml:26: links.R2-R3.queue.queues[0].match.dscp: a codepoint lies between 0 and 63",
        ),
        ("dscp = 46\n", "dscp = 64\n", "s.toml:56: flows[2].dscp: a codepoint lies between 0 and 63, not 64"),
        (
            "dscp = 46\n",
            "dscp = 46\nservice = \"green\"\n",
            "s.toml:56: flows[2].dscp: green packets have a codepoint of their own",
        ),
        (
            "back = [\"R3\", \"R2\", \"R1\"]\n",
            "control = { interval = \"0s\" }\n",
            "s.toml:6: paths.gold.control.interval: windows are sampled at intervals of at least 1ms",
        ),
        (
            "back = [\"R3\", \"R2\", \"R1\"]\n",
            "control = { interval = \"10s\" }\n",
            "s.toml:6: paths.gold.control.interval: the run (10s) ends before windows are first sampled (10s); choose a",
        ),
        (
            "back = [\"R3\", \"R2\", \"R1\"]\n",
            "control = { interval = \"mesured\" }\n",
            "s.toml:6: paths.gold.control.interval: unknown interval `mesured`; did you mean `measured`?",
        ),
        (
            "back = [\"R3\", \"R2\", \"R1\"]\n",
            "control = { interval = \"measure\" }\n",
            "s.toml:6: paths.gold.control.interval: unknown interval `measure`; did you mean `measured`? (one of measured or a \
             time such as 40ms)",
        ),
        (
            "back = [\"R3\", \"R2\", \"R1\"]\n",
            "control = { interval = \"40ms\", round-trips = 2 }\n",
            "s.toml:6: paths.gold.control.round-trips: no effect with a fixed interval; leave this key out, or",
        ),
        (
            "back = [\"R3\", \"R2\", \"R1\"]\n",
            "control = { interval = \"40ms\", windows = \"sender\" }\n",
            "s.toml:6: paths.gold.control.windows: unknown key `windows`; did you mean `window`?",
        ),
        (
            "path = \"gold\"\ntransport",
            "path = \"gold\"\nprofile = { marker = \"twam\", rate = \"1Mbps\" }\ntransport",
            "s.toml:44: flows[0].profile: a window-aware marker requires the control of a label-switched path",
        ),
        (
            "dscp = 46\n",
            "dscp = 46\nprofile = { marker = \"tsw\", rate = \"1Mbps\" }\n",
            "s.toml:56: flows[2].dscp: the profile's marker would overwrite this codepoint",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(PATHS.contains(from), "{from}");
        let message =
            Scenario::from_toml(&PATHS.replacen(from, to, 1), "s.toml").expect_err(expected).to_string();
        assert!(message.starts_with(expected), "expected {expected}\n     got {message}");
        assert!(!message.contains('\n') && !message.contains('\u{1f}'), "{message}");
    }
}

#[test]
fn a_path_with_control_marks_at_its_ingress() {
    let control =
        "control = { interval = \"40ms\", window = \"in-flight\", reading = \"all-windows\", loss = 0.1 }\n";
    let marked = "path = \"gold\"\nprofile = { marker = \"twam\", rate = \"1Mbps\" }\ntransport";
    let text = PATHS.replacen("back = [\"R3\", \"R2\", \"R1\"]\n", control, 1).replacen(
        "path = \"gold\"\ntransport",
        marked,
        1,
    );
    let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
    let network = scenario.network();
    assert!(network.paths[0].control.is_some() && network.paths[1].control.is_none());
    assert!(matches!(network.flows[0].marking, perhop_sim::Marking::Ingress(_)));
    let again = Scenario::from_json(&serde_json::to_string(&scenario).unwrap(), "s.json").unwrap();
    assert_eq!(again, scenario);
    let measured = text.replacen("interval = \"40ms\"", "interval = \"measured\", round-trips = 2", 1);
    let scenario = Scenario::from_toml(&measured, "s.toml").unwrap();
    let written = serde_json::to_string(&scenario).unwrap();
    assert!(written.contains(r#""interval":"measured","round-trips":2"#), "{written}");
    assert_eq!(Scenario::from_json(&written, "s.json").unwrap(), scenario);
    let udp = text.replacen(
        "transport = { tcp = \"newreno\" }",
        "transport = { udp = \"cbr\", rate = \"1Mbps\" }",
        1,
    );
    let message = Scenario::from_toml(&udp, "s.toml").unwrap_err().to_string();
    assert!(message.contains("flows[0].profile: this marker requires the window of TCP"), "{message}");
}

/// [`PATHS`] with control of the golden path, and dynamic WRED for its packets at R2.
fn followed() -> String {
    let rule = "{ aqm = \"rio\", limit = \"400p\", in = \"160/320/0.02\", total = \"40/160/0.1\" }";
    assert!(PATHS.contains(rule));
    PATHS.replacen("back = [\"R3\", \"R2\", \"R1\"]\n", "control = { interval = \"40ms\" }\n", 1).replacen(
        rule,
        "{ aqm = \"dwred\", limit = \"400p\", out = \"40/160/0.1\" }",
        1,
    )
}

#[test]
fn dynamic_wred_that_no_windows_reach_is_refused() {
    let good = followed();
    Scenario::from_toml(&good, "s.toml").unwrap();
    let tcp = "transport = { tcp = \"newreno\" }";
    let udp = "transport = { udp = \"cbr\", rate = \"1Mbps\" }";
    let dwred = "queue = { aqm = \"dwred\", limit = \"400p\", out = \"40/160/0.1\" }";
    let queue = "links.R2-R3.queue.queues[1].rule.aqm: `dwred` requires the window control of a label-switched path: ";
    let cases = [
        (
            "control = { interval = \"40ms\" }\n",
            String::new(),
            format!("s.toml:33: {queue}the path `gold` has no `control`; give it one, such as {{ interval = \"40ms\" }}"),
        ),
        (
            "via = [\"R1\", \"R2\", \"R3\"]",
            "via = [\"R1\", \"R2\"]".into(),
            format!("s.toml:34: {queue}packets of the path `silver` go to another queue; put the rule there"),
        ),
        (tcp, udp.into(), format!("s.toml:34: {queue}no TCP flow uses the path `gold`; add one")),
        (
            "match = { path = \"gold\" }",
            "match = { path = \"silver\" }".into(),
            format!("s.toml:34: {queue}the path `silver` has no `control`"),
        ),
        (
            "delay = \"20ms\" }",
            format!("delay = \"20ms\", {dwred} }}"),
            "s.toml:13: links.R4-R2.queue.aqm: `dwred` requires the window control of a label-switched path: the path `silver` has \
             no `control`"
                .into(),
        ),
        (
            "rate = \"50Mbps\", delay = \"5ms\" }",
            format!("rate = \"50Mbps\", delay = \"5ms\", reverse = {{ {dwred} }} }}"),
            "s.toml:12: links.R1-R2.reverse.queue.aqm: `dwred` requires the window control of a label-switched path: no path uses \
             this link from `R2` to `R1`; add one with a `control`"
                .into(),
        ),
        (
            "[links.R2-R3]\n",
            format!(
                "R2-R3b = {{ from = \"R2\", to = \"R3\", rate = \"1Mbps\", delay = \"1ms\", {dwred} }}\n[links.R2-R3]\n"
            ),
            "s.toml:15: links.R2-R3b.queue.aqm: `dwred` requires the window control of a label-switched path: no path uses \
             this link from `R2` to `R3`"
                .into(),
        ),
    ];
    for (from, to, expected) in cases {
        assert!(good.contains(from), "{from}");
        let message =
            Scenario::from_toml(&good.replacen(from, &to, 1), "s.toml").expect_err(&expected).to_string();
        assert!(message.starts_with(&expected), "expected {expected}\n     got {message}");
    }
    // The same on a link of the path, under any scheduler.
    let forward = "rate = \"50Mbps\", delay = \"5ms\"";
    for rule in [
        dwred,
        "queue = { scheduler = \"edf\", rule = { aqm = \"dwred\", limit = \"9p\", out = \"1/2/0.1\" } }",
    ] {
        Scenario::from_toml(&good.replacen(forward, &format!("{forward}, {rule}"), 1), "s.toml").unwrap();
    }
}

#[test]
fn flows_on_paths_share_a_profile_at_their_ingress() {
    let shared = "[profiles.sold]\nmarker = \"tsw\"\nrate = \"1Mbps\"\n[links]";
    let text = PATHS.replacen("[links]", shared, 1).replace("path = \"", "profile = \"sold\"\npath = \"");
    let text = text.replace("match = { profile = \"sold\"\npath", "match = { path");
    let message = Scenario::from_toml(&text, "s.toml").unwrap_err().to_string();
    assert!(
        message
            .contains("flows[1].from: flows that share `sold` must start at the same router: `R1`, not `R4`"),
        "{message}"
    );
}
