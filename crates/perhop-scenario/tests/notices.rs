//! What can be run, but hardly as it was meant, is said with its place; what can have no effect is refused.

use perhop_scenario::{Driver, NoFiles, Scenario, notices_in};

const ASSURED: &str = r#"
duration = "10s"

[links.bottleneck]
from = "edge"
to = "core"
rate = "20Mbps"
delay = "10ms"

[links.bottleneck.queue]
scheduler = "drr"

[[links.bottleneck.queue.queues]]
name = "assured"
match = { dscp = ["AF11", "AF12", "AF13"] }
rule = { aqm = "rio", limit = "200p", in = "40/160/0.02", total = "20/80/0.1" }

[[links.bottleneck.queue.queues]]
name = "rest"
rule = { aqm = "drop-tail", limit = "100p" }

[[flows]]
name = "gold"
from = "edge"
to = "core"
transport = { tcp = "newreno", packet = "1000B" }
profile = { rate = "2Mbps", marker = "token-bucket", burst = "40kB" }

[[flows]]
name = "silver"
from = "edge"
to = "core"
transport = { udp = "cbr", rate = "1Mbps" }
profile = { rate = "1Mbps", marker = "tsw" }

[[flows]]
name = "best effort"
from = "edge"
to = "core"
transport = { tcp = "newreno" }
"#;

/// What is said of the example with this change.
fn said(from: &str, to: &str) -> Vec<String> {
    assert!(ASSURED.contains(from), "{from}");
    let text = ASSURED.replacen(from, to, 1);
    let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
    notices_in(Some(&text), "s.toml", scenario.notices()).iter().map(ToString::to_string).collect()
}

/// What is said of the threshold sets of the first queue's rule.
fn said_of_rule(rule: &str) -> Vec<String> {
    said("aqm = \"rio\", limit = \"200p\", in = \"40/160/0.02\", total = \"20/80/0.1\"", rule)
}

#[test]
fn nothing_is_said_of_a_scenario_in_which_everything_acts() {
    assert_eq!(said("duration", "duration"), [""; 0]);
    assert_eq!(said("[\"AF11\", \"AF12\", \"AF13\"]", "[10, 12, 14]"), [""; 0]);
    assert_eq!(
        said("[\"AF11\", \"AF12\", \"AF13\"]", "[\"AF11\", \"AF12\"]"),
        [""; 0],
        "no meter here gives red"
    );
    assert_eq!(said("[\"AF11\", \"AF12\", \"AF13\"]", "\"DF\""), [""; 0], "all of them go to the rest");
}

#[test]
fn a_stream_whose_packets_meet_two_queues_is_named() {
    assert_eq!(
        said("[\"AF11\", \"AF12\", \"AF13\"]", "\"AF11\""),
        [
            "s.toml:15: links.bottleneck.queue.queues[0].match: packets of `gold`, `silver` go to different queues: green ones \
          (AF11) `assured`, yellow ones (AF12) `rest`; they can overtake each other, which TCP takes for loss; to keep them \
          together, match all codepoints that the marker writes, dscp = [\"AF11\", \"AF12\"]"
        ]
    );
    let three = said("marker = \"tsw\" }", "marker = \"three-precedence\" }");
    assert_eq!(three, [""; 0]);
    let by_color = said("dscp = [\"AF11\", \"AF12\", \"AF13\"]", "color = \"green\"");
    assert!(by_color[0].contains("`gold`, `silver` go to different queues"), "{by_color:?}");
}

#[test]
fn packets_that_the_meter_drops_go_to_no_queue() {
    let text = ASSURED.replacen("[\"AF11\", \"AF12\", \"AF13\"]", "\"AF11\"", 1).replacen(
        "burst = \"40kB\"",
        "burst = \"40kB\", out = \"drop\"",
        1,
    );
    let said = Scenario::from_toml(&text, "s.toml").unwrap().notices();
    assert!(said[0].text.starts_with("packets of `silver` go to different queues"), "{said:?}");
}

#[test]
fn a_marker_of_another_class_writes_its_codepoints() {
    let second = said("burst = \"40kB\"", "burst = \"40kB\", af = 2");
    assert_eq!(second, [""; 0], "all packets of class 2 go to the rest, those of class 1 do not");
    let text = ASSURED
        .replacen("burst = \"40kB\"", "burst = \"40kB\", af = 2", 1)
        .replacen("\"AF13\"", "\"AF21\"", 1);
    let said = Scenario::from_toml(&text, "s.toml").unwrap().notices();
    assert!(
        said[0].text.contains(
            "`gold` go to different queues: green ones (AF21) `assured`, yellow ones (AF22) `rest`"
        )
    );
}

#[test]
fn a_shared_profile_divides_its_flows_likewise() {
    let text = ASSURED
        .replacen("[[flows]]", "[profiles.sold]\nrate = \"2Mbps\"\nmarker = \"tsw\"\n[[flows]]", 1)
        .replacen(
            "profile = { rate = \"2Mbps\", marker = \"token-bucket\", burst = \"40kB\" }",
            "profile = \"sold\"",
            1,
        )
        .replacen("[\"AF11\", \"AF12\", \"AF13\"]", "\"AF12\"", 1);
    let said = Scenario::from_toml(&text, "s.toml").unwrap().notices();
    assert!(said[0].text.contains("packets of `gold`, `silver`"), "{said:?}");
}

#[test]
fn a_color_aware_meter_to_which_no_green_packet_comes_is_named() {
    let gold = "marker = \"token-bucket\", burst = \"40kB\" }";
    let aware = "marker = \"srtcm\", burst = \"40kB\", excess-burst = \"9kB\", mode = \"color-aware\" }";
    assert_eq!(
        said(gold, aware),
        [
            "s.toml:27: flows[0].profile.mode: every packet comes to this meter yellow, so none of them can be green; give the \
             flows color = \"green\", or the meter mode = \"color-blind\""
        ]
    );
    assert_eq!(said(gold, &format!("{aware}\ncolor = \"green\"")), [""; 0]);
    assert_eq!(said(gold, &aware.replace("aware", "blind")), [""; 0]);
    let red = said(gold, &format!("{aware}\ncolor = \"red\""));
    assert!(red[0].contains("so all of them stay red"), "{red:?}");
    // Of flows that share a meter, one is enough.
    let shared = |color: &str| {
        let profile =
            format!("[profiles.sold]\nrate = \"2Mbps\"\n{}\n", aware.replace(", ", "\n").replace(" }", ""));
        let text = ASSURED
            .replace(
                "profile = { rate = \"2Mbps\", marker = \"token-bucket\", burst = \"40kB\" }",
                "profile = \"sold\"",
            )
            .replace(
                "profile = { rate = \"1Mbps\", marker = \"tsw\" }",
                &format!("profile = \"sold\"\ncolor = \"{color}\""),
            );
        let scenario = Scenario::from_toml(&(text + &profile), "s.toml").unwrap();
        scenario.notices().iter().map(|notice| notice.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(shared("green"), [""; 0]);
    assert!(shared("yellow")[0].contains("every packet comes to this meter yellow"));
}

#[test]
fn a_color_beside_a_meter_that_does_not_look_at_it_is_named() {
    let gold = "marker = \"token-bucket\", burst = \"40kB\" }";
    assert_eq!(
        said(gold, &format!("{gold}\ncolor = \"green\"")),
        [
            "s.toml:28: flows[0].color: `green`: no effect, since the meter `token-bucket` of the profile gives each packet its \
             color and does not look at this one; leave the key out, or choose a meter that has mode = \"color-aware\""
        ]
    );
    let blind = "marker = \"srtcm\", burst = \"40kB\", excess-burst = \"9kB\" }\ncolor = \"red\"";
    assert!(said(gold, blind)[0].contains("flows[0].color: `red`: no effect, since the meter `srtcm`"));
}

/// The example, whose link has these meters.
fn with_meters(meters: &str) -> Vec<String> {
    said("delay = \"10ms\"\n", &format!("delay = \"10ms\"\nmeters = [{meters}]\n"))
}

const AWARE: &str =
    "marker = \"srtcm\", mode = \"color-aware\", rate = \"3Mbps\", burst = \"40kB\", excess-burst = \"9kB\"";

#[test]
fn a_queue_is_matched_by_what_the_meters_of_its_link_write() {
    let assured =
        format!("{{ name = \"af\", match = {{ dscp = [\"AF11\", \"AF12\"] }}, profile = {{ {AWARE} }} }}");
    assert_eq!(with_meters(&assured), [""; 0]);
    // Class 3 goes to the rest, so that nothing is left for the first queue.
    let third = assured.replace("excess-burst", "af = 3, excess-burst");
    let said = with_meters(&third);
    assert!(
        said[0].contains("so the queue `assured` stays empty; packets here carry DF (yellow), AF31 (green)"),
        "{said:?}"
    );
    // A policer of yellow and red ones keeps them from both queues.
    let drop = assured.replace("excess-burst", "out = \"drop\", excess-burst");
    assert_eq!(with_meters(&drop), [""; 0]);
    let split = with_meters(
        "{ name = \"all\", match = { color = \"green\" }, profile = { marker = \"tsw\", rate = \"1Mbps\", af = 2 } }",
    );
    assert!(split[0].contains("green ones (AF21) `rest`"), "{split:?}");
}

#[test]
fn meters_of_a_link_to_which_nothing_comes_are_named() {
    let none =
        with_meters(&format!("{{ name = \"ef\", match = {{ dscp = \"EF\" }}, profile = {{ {AWARE} }} }}"));
    assert_eq!(
        none,
        [
            "s.toml:9: links.bottleneck.meters[0].match: no packet that comes to this link matches, or an earlier meter takes it; \
             packets here carry DF (yellow), AF11 (green), AF12 (yellow): match some of them, or leave the meter out"
        ]
    );
    let yellow = with_meters(&format!(
        "{{ name = \"rest\", match = {{ color = \"yellow\" }}, profile = {{ {AWARE} }} }}"
    ));
    assert!(
        yellow[0].contains("meters[0].profile.mode: every packet comes to this meter yellow"),
        "{yellow:?}"
    );
    let small = with_meters(
        "{ name = \"all\", profile = { marker = \"token-bucket\", rate = \"1Mbps\", burst = \"9B\" } }",
    );
    assert!(small[0].contains("meters[0].profile.burst: `9B`: the smallest packet has 40B"), "{small:?}");
}

#[test]
fn a_burst_without_room_for_a_packet_is_named() {
    let small = said("burst = \"40kB\"", "burst = \"999B\"");
    assert_eq!(
        small,
        [
            "s.toml:27: flows[0].profile.burst: `999B`: the smallest packet has 1000B, so none is green; raise it"
        ]
    );
    assert_eq!(said("burst = \"40kB\"", "burst = \"0B\""), [""; 0], "nothing is IN, and is meant so");
}

#[test]
fn thresholds_that_the_average_cannot_reach_are_named() {
    let key = "s.toml:16: links.bottleneck.queue.queues[0].rule";
    assert_eq!(
        said_of_rule("aqm = \"red\", limit = \"200p\", thresholds = \"300/900/0.1\""),
        [format!(
            "{key}.thresholds: `300/900/0.1`: the queue holds at most 200p, so its average never reaches min, and these \
             thresholds drop nothing; lower the thresholds, or raise `limit`"
        )]
    );
    let told = said_of_rule("aqm = \"rio\", limit = \"200p\", in = \"40/200/0.02\", total = \"20/201/0.1\"");
    assert_eq!(told.len(), 1, "max may be the limit itself: {told:?}");
    assert!(
        told[0].starts_with(&format!(
            "{key}.total: `20/201/0.1`: the queue holds at most 200p, so its average never reaches max"
        )),
        "{told:?}"
    );
}

#[test]
fn thresholds_in_the_other_unit_are_held_against_the_sizes_of_packets() {
    // 200 packets of at most 1000 bytes; the smallest packet is an acknowledgement of 40 bytes.
    let bytes = |set: &str| said_of_rule(&format!("aqm = \"red\", limit = \"200p\", thresholds = \"{set}\""));
    assert_eq!(bytes("100kB/200kB/0.1"), [""; 0]);
    assert!(
        bytes("100kB/201kB/0.1")[0]
            .contains("at most 200kB (200 packets of 1000B), so its average never reaches max")
    );
    assert!(bytes("200kB/300kB/0.1")[0].contains("never reaches min"));
    let packets =
        |set: &str| said_of_rule(&format!("aqm = \"red\", limit = \"40kB\", thresholds = \"{set}\""));
    assert_eq!(packets("900/1000/0.1"), [""; 0]);
    assert!(packets("900/1001/0.1")[0].contains("at most 1000p (40kB in packets of 40B)"));
}

#[test]
fn moving_thresholds_and_colors_without_any_are_not_judged() {
    assert_eq!(said_of_rule("aqm = \"wred\", limit = \"200p\", yellow = \"40/160/0.1\""), [""; 0]);
    let red =
        said_of_rule("aqm = \"wred\", limit = \"200p\", yellow = \"40/160/0.1\", red = \"400/500/0.1\"");
    assert!(red.len() == 1 && red[0].contains("rule.red: `400/500/0.1`"), "{red:?}");
}

/// What is said of the example with this as the whole queue, up to the remedy.
fn said_of_queue(queue: &str) -> Vec<String> {
    let (before, rest) = ASSURED.split_once("[links.bottleneck.queue]").unwrap();
    let (_, flows) = rest.split_once("[[flows]]").unwrap();
    let text = format!("{}\nqueue = {queue}\n[[flows]]{flows}", before.trim_end());
    let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
    notices_in(Some(&text), "s.toml", scenario.notices()).iter().map(ToString::to_string).collect()
}

#[test]
fn the_key_of_a_fifos_aqm_is_where_it_stands() {
    let rule = "aqm = \"red\", limit = \"200p\", thresholds = \"300/900/0.1\"";
    for (queue, key) in [
        (format!("{{ {rule} }}"), "queue.thresholds"),
        (format!("{{ scheduler = \"fifo\", rule = {{ {rule} }} }}"), "queue.rule.thresholds"),
    ] {
        let said = said_of_queue(&queue);
        assert!(said[0].starts_with(&format!("s.toml:9: links.bottleneck.{key}: `300/900/0.1`")), "{said:?}");
    }
    let named = said_of_queue(
        &format!("{{ scheduler = \"fifo\", rule = {{ {rule} }} }}").replace("300/900", "30/90"),
    );
    assert_eq!(named, [""; 0]);
}

/// Classes behind a priority queue send at the rate of the link, but are promised only what the priority queue leaves.
#[test]
fn ceilings_are_held_against_the_link_and_promises_against_what_priority_leaves() {
    let behind_priority = |all: &str, rate: u64| {
        let leaf = |name: &str, keys: &str| {
            format!(
                "{{ name = \"{name}\", rate = \"{rate}Mbps\", {keys} queue = {{ aqm = \"drop-tail\", limit = \"50p\" }} }}"
            )
        };
        let leaves = leaf("one", "match = { dscp = 10 },") + ", " + &leaf("rest", "ceil = \"20Mbps\",");
        let htb = format!(
            "{{ scheduler = \"htb\", classes = [{{ name = \"all\", {all}, classes = [{leaves}] }}] }}"
        );
        let first = "{ name = \"v\", match = { dscp = \"EF\" }, rate = \"8Mbps\", rule = { aqm = \"drop-tail\", limit = \"50p\" } }";
        let said = said_of_queue(&format!("{{ scheduler = \"llq\", priority = [{first}], queue = {htb} }}"));
        let of_rates = |text: &String| text.contains("above the link's") || text.contains("add up to");
        said.into_iter().filter(of_rates).collect::<Vec<_>>()
    };
    assert_eq!(behind_priority("rate = \"20Mbps\"", 6), [""; 0]);
    let all = "s.toml:9: links.bottleneck.queue.queue.classes[0]";
    let above = "above the link's 20Mbps, so it has no effect; write 20Mbps or less";
    assert_eq!(
        behind_priority("rate = \"30Mbps\", ceil = \"40Mbps\"", 6),
        [format!("{all}.ceil: `40Mbps`: {above}"), format!("{all}.rate: `30Mbps`: {above}")]
    );
    assert_eq!(
        behind_priority("rate = \"20Mbps\"", 7),
        [
            "s.toml:9: links.bottleneck.queue.queue.classes: the rates of the classes with a queue add up to 14Mbps, but the link has \
             12Mbps for them, so it cannot keep all of them at once; lower them"
        ]
    );
}

#[test]
fn a_queue_that_no_packet_joins_is_named() {
    let idle = said("[\"AF11\", \"AF12\", \"AF13\"]", "\"EF\"");
    assert_eq!(
        idle,
        [
            "s.toml:15: links.bottleneck.queue.queues[0].match: no packet that comes to this link matches, so the queue \
             `assured` stays empty; packets here carry DF (yellow), AF11 (green), AF12 (yellow): match some of them, or leave \
             the queue out"
        ]
    );
    let red = said("dscp = [\"AF11\", \"AF12\", \"AF13\"]", "color = \"red\"");
    assert!(red.len() == 1 && red[0].contains("stays empty"), "no meter here gives red: {red:?}");
    assert_eq!(said("dscp = [\"AF11\", \"AF12\", \"AF13\"]", "service = \"blue\""), [""; 0]);
}

/// What is said of the queue of the reverse direction, to which only acknowledgements come, on a path if one is named.
fn said_of_the_way_back(condition: &str, on: &str) -> Vec<String> {
    let queue = format!(
        "[links.bottleneck.reverse]\nqueue = {{ scheduler = \"drr\", queues = [{{ name = \"some\", match = {{ {condition} }}, \
         rule = {{ aqm = \"drop-tail\", limit = \"9p\" }} }}, {{ name = \"rest\", rule = {{ aqm = \"drop-tail\", limit = \
         \"9p\" }} }}] }}\n[paths.way]\nvia = [\"edge\", \"core\"]\n"
    );
    let text = ASSURED
        .replacen("[[flows]]", &format!("{queue}[[flows]]"), 1)
        .replace("name = \"best effort\"\n", &format!("name = \"best effort\"\n{on}"));
    Scenario::from_toml(&text, "s.toml").unwrap().notices().into_iter().map(|notice| notice.text).collect()
}

#[test]
fn acknowledgements_join_queues_too() {
    assert_eq!(said_of_the_way_back("dscp = \"DF\"", ""), [""; 0]);
    let empty = said_of_the_way_back("dscp = \"AF11\"", "");
    assert!(empty.len() == 1 && empty[0].contains("packets here carry DF (yellow): match"), "{empty:?}");
    let unused = said_of_the_way_back("path = \"way\"", "");
    assert!(unused.len() == 1 && unused[0].contains("the queue `some` stays empty"), "{unused:?}");
    assert_eq!(said_of_the_way_back("path = \"way\"", "path = \"way\"\n"), [""; 0]);
    let named = said_of_the_way_back("dscp = \"EF\"", "path = \"way\"\n");
    assert!(named[0].contains("carry DF (yellow), DF (yellow) on the path `way`"), "{named:?}");
}

#[test]
fn a_target_that_no_packet_can_wait_for_is_named() {
    // Ten packets of 1000 bytes and the one that is being sent take 4.4 ms at 20 Mbit/s.
    let codel = |keys: &str| said_of_queue(&format!("{{ aqm = \"codel\", limit = \"10p\", {keys} }}"));
    assert_eq!(codel("target = \"4.4ms\""), [""; 0]);
    assert_eq!(
        codel("target = \"4401us\""),
        [
            "s.toml:9: links.bottleneck.queue.target: `4.401ms`: the queue holds at most 10p, which leaves at 20Mbps within \
             4.4ms, so no packet waits for 4.401ms, and none is dropped that the queue has room for; lower `target`, or \
             raise `limit`"
        ]
    );
    let pie = |keys: &str| said_of_queue(&format!("{{ aqm = \"pie\", limit = \"10p\", {keys} }}"));
    assert!(
        pie("target = \"8.8ms\"")[0].contains("so the delay stays below it"),
        "above half of the target, but below it"
    );
    assert_eq!(pie("target = \"4.4ms\""), [""; 0]);
    assert!(pie("target = \"9ms\"")[0].contains("no packet waits for 4.5ms, and none"), "half of the target");
    assert!(
        pie("target = \"9ms\", beta = 100")[0].contains("so the delay stays below it"),
        "its drop probability may rise at shorter delays"
    );
    // DualPI2 has two: ten packets leave room for the controller's target, not for the step. (No flow here sends ECT(1).)
    let dualpi2 = |keys: &str| {
        let said = said_of_queue(&format!("{{ scheduler = \"dualpi2\", limit = \"10p\", {keys} }}"));
        said.into_iter().filter(|one| !one.contains("queue.scheduler")).collect::<Vec<_>>()
    };
    assert_eq!(dualpi2("target = \"4.4ms\", step = \"4.4ms\""), [""; 0]);
    let step = dualpi2("target = \"4.4ms\", step = \"5ms\"");
    let text = "queue.step: `5ms`: the queue holds at most 10p, which leaves at 20Mbps within 4.4ms";
    assert!(step.len() == 1 && step[0].contains(text), "{step:?}");
    assert_eq!(said_of_queue("{ aqm = \"codel\", limit = \"10kB\", target = \"4.4ms\" }"), [""; 0]);
    let bytes = said_of_queue("{ aqm = \"codel\", limit = \"10kB\", target = \"5ms\" }");
    assert!(bytes[0].contains("at most 10kB"), "{bytes:?}");
    // Beside another queue it has at least half of the link, where eleven packets take 8.8 ms.
    let shared =
        |target: &str| said_of_rule(&format!("aqm = \"codel\", limit = \"10p\", target = \"{target}\""));
    assert_eq!(shared("8.8ms"), [""; 0]);
    assert!(shared("8.9ms")[0].contains("at 10Mbps within 8.8ms, so no packet waits for 8.9ms"));
}

#[test]
fn a_limit_without_room_for_a_packet_is_named() {
    let limit = |limit: &str| {
        said_of_queue(&format!(
            "{{ aqm = \"codel\", limit = \"{limit}\", mtu = \"20B\", target = \"400us\" }}"
        ))
    };
    assert_eq!(
        limit("0p"),
        [
            "s.toml:9: links.bottleneck.queue.limit: `0p`: no packet fits into the queue, so all are dropped; raise it, such as \
             to 100p"
        ]
    );
    assert!(
        limit("39B")[0].contains("queue.limit: `39B`: no packet fits"),
        "an acknowledgement has 40 bytes"
    );
    assert_eq!(limit("1000B"), [""; 0]);
    assert_eq!(limit("1p"), [""; 0]);
}

#[test]
fn a_limit_in_bytes_without_room_for_data_is_named() {
    // The smallest packet of data has 1000 bytes, an acknowledgement 40.
    for (queue, key) in [
        ("{ aqm = \"drop-tail\", limit = \"999B\" }", "queue.limit"),
        ("{ scheduler = \"fifo\", rule = { aqm = \"drop-tail\", limit = \"999B\" } }", "queue.rule.limit"),
    ] {
        let said = said_of_queue(queue);
        let text = format!(
            "s.toml:9: links.bottleneck.{key}: `999B`: no packet of data fits into the queue, since the smallest that passes this \
             link has 1kB, so all are dropped; raise it, such as to 100p"
        );
        assert_eq!(said, [text], "{queue}");
        assert_eq!(said_of_queue(&queue.replace("999B", "1000B")), [""; 0], "{queue}");
    }
    let inner = said_of_rule("aqm = \"drop-tail\", limit = \"999B\"");
    assert!(
        inner.len() == 1 && inner[0].contains("queues[0].rule.limit: `999B`: no packet of data"),
        "{inner:?}"
    );
}

#[test]
fn targets_are_held_against_every_rate_that_a_link_has() {
    let with = |queue: &str, keys: &str| {
        let text = ASSURED.split_once("[links.bottleneck.queue]").unwrap();
        let flows = text.1.split_once("[[flows]]").unwrap().1;
        let text =
            format!("{}{keys}\nqueue = {{ {queue} }}\n[[flows]]{flows}", text.0.trim_end().to_owned() + "\n");
        let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
        scenario.notices().into_iter().map(|notice| notice.text).collect::<Vec<_>>()
    };
    // A packet of 1000 bytes takes 400 us at 20 Mbit/s, 16 ms at 500 kbit/s; ten and the one that is being sent 4.4 ms at 20 Mbit/s,
    // 880 us at 100 Mbit/s.
    let short = "aqm = \"codel\", limit = \"100p\", target = \"5ms\"";
    let few = "aqm = \"codel\", limit = \"10p\", target = \"4ms\"";
    for queue in [short, few] {
        assert_eq!(with(queue, ""), [""; 0], "{queue}");
    }
    let trace = r#"rate-trace = { name = "t", format = "csv", repeat = false, data = "time_s,rate_Mbps\n0,20\n2,0.5\n" }"#;
    for slower in ["changes = [{ at = \"2s\", rate = \"500kbps\" }]", trace] {
        let said = with(short, slower);
        assert!(
            said.len() == 1 && said[0].contains("a packet of 1kB takes 16ms to leave at 500kbps"),
            "{said:?}"
        );
        assert_eq!(
            with(few, slower).len(),
            1,
            "not for the limit, which holds packets for 4 ms at 20 Mbit/s"
        );
    }
    let faster = with(few, "changes = [{ at = \"2s\", rate = \"100Mbps\" }]");
    assert!(faster.len() == 1 && faster[0].contains("leaves at 100Mbps within 880us"), "{faster:?}");
    let late = with(short, &trace.replace("2,0.5", "10,0.5"));
    assert_eq!(late, [""; 0], "the run is over then");
    let replaced = with(&few.replace("10p", "5p"), "changes = [{ at = \"0s\", rate = \"10Mbps\" }]");
    assert_eq!(replaced, [""; 0], "six packets take 4.8 ms");
}

#[test]
fn a_ceiling_of_a_root_class_is_named() {
    let said = |keys: &str, inner: &str| {
        said_of_queue(&format!(
            "{{ scheduler = \"htb\", classes = [{{ name = \"root\", rate = \"5Mbps\", {keys} {inner} }}] }}"
        ))
    };
    let leaf = "queue = { aqm = \"drop-tail\", limit = \"99p\" }";
    let tree = "classes = [{ name = \"leaf\", rate = \"1Mbps\", ceil = \"5Mbps\", queue = { aqm = \"drop-tail\", limit = \"99p\" } }]";
    for inner in [leaf, tree] {
        assert_eq!(
            said("ceil = \"9Mbps\",", inner),
            [
                "s.toml:9: links.bottleneck.queue.classes[0].ceil: `9Mbps`: a root class borrows from none, so it sends no more than its \
                 `rate`, 5Mbps, as in Linux: write rate = \"9Mbps\", or put the class within one that lends"
            ]
        );
        assert_eq!(said("ceil = \"5Mbps\",", inner), [""; 0]);
        assert_eq!(
            said("ceil = \"9Mbps\", burst = \"20kB\",", inner),
            [""; 0],
            "a burst leaves at the ceiling"
        );
    }
}

#[test]
fn a_scheduler_with_limits_of_its_own_has_its_idle_keys_named() {
    let fq = |keys: &str| said_of_queue(&format!("{{ scheduler = \"fq-codel\", {keys} }}"));
    assert_eq!(fq("limit = \"100p\""), [""; 0], "ECN is on unless it is turned off");
    assert_eq!(
        fq("limit = \"0p\""),
        [
            "s.toml:9: links.bottleneck.queue.limit: `0p`: no packet fits into the queue, so all are dropped; raise it, such as \
             to 100p"
        ]
    );
    assert_eq!(
        fq("limit = \"1p\""),
        [
            "s.toml:9: links.bottleneck.queue.mtu: `1.5kB`: the queues hold at most 1kB, so never more than `mtu` stays behind a \
             packet, and none is dropped for its sojourn time; lower `mtu`, or raise `limit`",
            "s.toml:9: links.bottleneck.queue.target: `5ms`: the queue holds at most 1p, which leaves at 20Mbps within 800us, so \
             no packet waits for 5ms, and none is dropped that the queue has room for; lower `target`, or raise `limit`"
        ]
    );
    let dualpi2 = said_of_queue("{ scheduler = \"dualpi2\", shift = \"40ms\" }");
    assert_eq!(
        dualpi2,
        [
            "s.toml:9: links.bottleneck.queue.shift: it acts with `order = \"time-shifted-fifo\"` only; leave it out",
            "s.toml:9: links.bottleneck.queue.scheduler: no flow that passes this link sends ECT(1), so the L4S queue stays empty: \
             give TCP flows `congestion = \"prague\"`, or TCP or UDP flows `ecn = \"l4s\"`, or take a FIFO with another AQM",
        ]
    );
    let unmatched = said_of_queue("{ scheduler = \"dualpi2\", l4s-dscp = 45 }");
    let text =
        "queue.l4s-dscp: no packet that comes to this link has one of these codepoints; packets here carry";
    assert!(unmatched.len() == 1 && unmatched[0].contains(text), "{unmatched:?}");
    assert_eq!(said_of_queue("{ scheduler = \"dualpi2\", l4s-dscp = [0, 45] }"), [""; 0]);
    assert!(fq("memory-limit = \"39B\"")[0].contains("queue.memory-limit: `39B`: no packet fits"));
}

/// The message for the example with `ecn` and another change, where this driver runs it.
fn with_ecn(driver: Driver, from: &str, to: &str) -> Result<Scenario, String> {
    assert!(ASSURED.contains(from), "{from}");
    let text =
        ASSURED.replacen("total = \"20/80/0.1\"", "total = \"20/80/0.1\", ecn = true", 1).replace(from, to);
    Scenario::from_toml_for(&text, "s.toml", driver, &NoFiles).map_err(|error| error.to_string())
}

const TCP: &str = "transport = { tcp";

/// This transport in a flow that has `ecn`.
fn capable(ecn: &str, transport: &str) -> String {
    format!("ecn = \"{ecn}\"\n{transport}")
}

#[test]
fn ecn_is_refused_on_real_packets_where_nobody_is_capable() {
    let place = "s.toml:16: links.bottleneck.queue.queues[0].rule.ecn: ";
    let kernel = with_ecn(Driver::RealPackets, "duration", "duration").unwrap_err();
    assert!(
        kernel.starts_with(&format!("{place}the kernel's TCP does not ask for ECN by itself")),
        "{kernel}"
    );
    let granted = "live = { sysctl = { \"net.ipv4.tcp_ecn\" = 2 } }\nduration";
    assert!(with_ecn(Driver::RealPackets, "duration", granted).is_err(), "2 only grants what others ask for");
    let no_tcp =
        with_ecn(Driver::RealPackets, "tcp = \"newreno\"", "udp = \"cbr\", rate = \"1Mbps\"").unwrap_err();
    assert!(no_tcp.starts_with(&format!("{place}only TCP is ECN-capable")), "{no_tcp}");
    for on in ["1", "\"1\"", "3"] {
        let asked = format!("live = {{ sysctl = {{ \"net.ipv4.tcp_ecn\" = {on} }} }}\nduration");
        with_ecn(Driver::RealPackets, "duration", &asked).unwrap();
    }
    with_ecn(Driver::RealPackets, TCP, &capable("classic", TCP)).unwrap();
    let one = "transport = { tcp = \"newreno\" }";
    let l4s = with_ecn(Driver::RealPackets, TCP, &capable("l4s", "transport = { sack = true, tcp"));
    assert!(
        l4s.as_ref().is_err_and(|text| text.contains(".ecn: Linux sends ECT(1) only with TCP Prague")),
        "{l4s:?}"
    );
    let unlike = with_ecn(Driver::RealPackets, one, &capable("classic", one)).unwrap_err();
    assert!(unlike.contains("flows[2].ecn: the kernel uses ECN in one way for all"), "{unlike}");
    let without = ASSURED.replacen("total = \"20/80/0.1\"", "total = \"20/80/0.1\", ecn = false", 1);
    Scenario::from_toml_for(&without, "s.toml", Driver::Simulator, &NoFiles).unwrap();
}

#[test]
fn ecn_without_capable_flows_is_noticed() {
    let notices = |driver, from: &str, to: &str| {
        let notices = with_ecn(driver, from, to).unwrap().notices();
        notices_in(None, "s.toml", notices).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let idle = notices(Driver::Simulator, "duration", "duration");
    let [notice] = &idle[..] else { panic!("{idle:?}") };
    let expected =
        "s.toml: links.bottleneck.queue.queues[0].rule.ecn: no flow that passes this link is ECN-capable";
    assert!(notice.starts_with(expected), "{notice}");
    assert!(notices(Driver::Simulator, TCP, &capable("classic", TCP)).is_empty());
    let asked = "live = { sysctl = { \"net.ipv4.tcp_ecn\" = 1 } }\nduration";
    assert!(notices(Driver::RealPackets, "duration", asked).is_empty(), "the kernel is capable");
}

#[test]
fn ecn_is_refused_where_it_cannot_act() {
    let udp = "transport = { udp";
    for (from, to, message) in [
        (
            udp,
            capable("classic", udp),
            "flows[1].ecn: only TCP feeds marks back to its sender, and UDP may send `ecn = \"l4s\"`",
        ),
        (TCP, capable("accurate", TCP), "flows[0].ecn: counts of marks travel"),
        (
            "packet = \"1000B\"",
            "packet = \"1000B\", congestion = { control = \"reno\", ecn-backoff = true }".into(),
            "flows[0].transport.congestion: without `ecn` no packet",
        ),
        (
            "packet = \"1000B\"",
            "packet = \"1000B\", accecn = \"ace\"".into(),
            "flows[0].transport.accecn: the ACE field is part of Accurate ECN",
        ),
        (
            "packet = \"1000B\"",
            "packet = \"1000B\", congestion = \"dctcp\"".into(),
            "flows[0].ecn: `dctcp` reduces its window by the share of packets that are marked",
        ),
        (
            "packet = \"1000B\"",
            "packet = \"1000B\", congestion = \"prague\"".into(),
            "flows[0].ecn: `prague` requires exact counts of marks: give the flow `ecn = \"accurate\"`",
        ),
        (
            TCP,
            capable("classic", "transport = { congestion = \"prague\", tcp"),
            "flows[0].ecn: `prague` requires exact counts of marks",
        ),
        (
            TCP,
            capable("classic", "transport = { congestion = \"bbr\", tcp"),
            "flows[0].ecn: `bbr` does not react to marks",
        ),
    ] {
        let refused = with_ecn(Driver::Simulator, from, &to).unwrap_err();
        assert!(refused.contains(message), "{refused}");
    }
}

#[test]
fn json_has_keys_and_no_lines() {
    let text = ASSURED.replacen("total = \"20/80/0.1\"", "total = \"20/80/0.1\", ecn = true", 1);
    let json = serde_json::to_string(&Scenario::from_toml(&text, "s.toml").unwrap()).unwrap();
    let message =
        Scenario::from_json_for(&json, "scenario", Driver::RealPackets, &NoFiles).unwrap_err().to_string();
    assert!(
        message.starts_with("scenario: links.bottleneck.queue.queues[0].rule.ecn: the kernel's TCP"),
        "{message}"
    );
}

#[test]
fn a_bucket_smaller_than_packets_and_a_delay_below_the_least_are_noticed() {
    let of = |queue: &str| {
        let text = format!(
            r#"
duration = "10s"
links.l = {{ from = "a", to = "b", rate = "10Mbps", delay = "10ms", queue = {{ {queue} }} }}
[[flows]]
name = "f"
from = "a"
to = "b"
transport = {{ tcp = "newreno", packet = "1000B" }}
"#
        );
        let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
        notices_in(Some(&text), "s.toml", scenario.notices())
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let shaper = |sizes: &str| {
        let inner = r#"queue = { aqm = "drop-tail", limit = "99p" }"#;
        of(&format!(r#"scheduler = "shaper", rate = "5Mbps", {sizes}, {inner}"#))
    };
    let small = shaper(r#"burst = "999B", mtu = "500B""#);
    assert!(
        small.len() == 1
            && small[0].contains("links.l.queue.burst: `999B`: packets here have up to 1kB, more"),
        "{small:?}"
    );
    let small = shaper(r#"burst = "1kB", mtu = "999B""#);
    assert!(
        small.len() == 1
            && small[0].contains("links.l.queue.mtu: `999B`: packets here have up to 1kB, which"),
        "{small:?}"
    );
    assert_eq!(shaper(r#"burst = "1kB", mtu = "1kB""#), [""; 0]);
    // Ten packets of 1000 bytes take 8 ms at 10 Mbit/s.
    let red = |delay: &str| {
        of(&format!(
            r#"aqm = "red", limit = "99p", adaptive = true, gentle = true, mean-packet = "1000B", target-delay = "{delay}""#
        ))
    };
    let short = red("7999us");
    assert!(
        short.len() == 1 && short[0].contains("links.l.queue.target-delay: `7.999ms`: at 10Mbps,"),
        "{short:?}"
    );
    assert!(short[0].contains("5 and 15 packets") && short[0].contains("write 8ms or more"), "{short:?}");
    assert_eq!(red("8ms"), [""; 0]);
}

#[test]
fn a_codec_whose_packets_the_flows_do_not_send_is_noticed() {
    let of = |transport: &str| {
        let from = "transport = { udp = \"cbr\", rate = \"1Mbps\" }\nprofile = { rate = \"1Mbps\", marker = \"tsw\" }";
        said(from, &format!("codec = \"g711-plc\"\nplay-out = \"60ms\"\ntransport = {transport}"))
    };
    assert_eq!(of("{ udp = \"cbr\", rate = \"80kbps\", packet = \"200B\" }"), [""; 0]);
    let [said] = &of("{ udp = \"cbr\", rate = \"1Mbps\", packet = \"1kB\" }")[..] else {
        panic!("one notice")
    };
    let expected = "flows[1].codec: `g711-plc`: the E-model's parameters are for packets of 20ms, and these flows send one every 8ms";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_control_of_today_in_the_window_of_the_papers_is_noticed_where_the_window_decides() {
    let said = |transport: &str, rate: &str, count: u32| {
        let text = format!(
            r#"
duration = "10s"
links.wide = {{ from = "a", to = "b", rate = "{rate}", delay = "10ms" }}

[[flows]]
name = "f"
count = {count}
from = "a"
to = "b"
transport = {{ {transport} }}
"#
        );
        let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
        let notices = notices_in(Some(&text), "s.toml", scenario.notices());
        notices.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for control in ["cubic", "bbr", "bbr3", "ledbat"] {
        for variant in ["newreno", "reno"] {
            let transport = format!("tcp = \"{variant}\", congestion = \"{control}\"");
            let found = said(&transport, "1Gbps", 1);
            // 1000 packets of 1 kB in 20 ms.
            assert_eq!(found.len(), 1, "{transport}: {found:?}");
            for part in ["flows[0].transport.congestion", control, "1000p", "400.000 Mbit/s", "20ms", "wide"]
            {
                assert!(found[0].contains(part), "{part}: {found:?}");
            }
        }
        // Where it does not decide: a share or a link below what it allows, a window that is given, or sizes of today.
        for (transport, rate, count) in [
            (format!("tcp = \"newreno\", congestion = \"{control}\""), "1Gbps", 3),
            (format!("tcp = \"newreno\", congestion = \"{control}\""), "300Mbps", 1),
            (format!("tcp = \"newreno\", congestion = \"{control}\", window = \"2000p\""), "1Gbps", 1),
            (format!("tcp = \"linux\", congestion = \"{control}\""), "1Gbps", 1),
            (format!("tcp = \"quic\", congestion = \"{control}\""), "10Gbps", 1),
        ] {
            assert_eq!(said(&transport, rate, count), [""; 0], "{transport} {rate}");
        }
    }
    assert_eq!(said("tcp = \"newreno\"", "1Gbps", 1), [""; 0], "of the papers' time");
}

#[test]
fn a_target_below_the_time_of_a_packet_is_named() {
    // A packet of 1000 bytes takes .4 ms at 20 Mbit/s.
    let said = |queue: &str| {
        let said = said_of_queue(&format!("{{ {queue} }}"));
        said.into_iter().filter(|one| !one.contains("queue.scheduler")).collect::<Vec<_>>()
    };
    assert_eq!(
        said("aqm = \"codel\", target = \"399us\""),
        [
            "s.toml:9: links.bottleneck.queue.target: `399us`: a packet of 1kB takes 400us to leave at 20Mbps, so each that waits \
             behind one waits for longer than this; write 400us or more"
        ]
    );
    for (block, more) in [
        ("aqm = \"codel\"", ""),
        ("aqm = \"pie\"", ""),
        ("aqm = \"pi2\"", ", update = \"1ms\""),
        ("aqm = \"cobalt\"", ""),
        ("scheduler = \"fq-codel\"", ""),
        ("scheduler = \"dualpi2\"", ", interval = \"1ms\""),
    ] {
        assert_eq!(said(&format!("{block}, target = \"400us\"{more}")), [""; 0], "{block}");
        let low = said(&format!("{block}, target = \"399us\"{more}"));
        assert!(low.len() == 1 && low[0].contains("a packet of 1kB takes 400us"), "{block}: {low:?}");
    }
    // What spares short queues has no such target: the least length of DualPI2's step, the MTU of COBALT.
    assert_eq!(said("scheduler = \"dualpi2\", step = \"100us\""), [""; 0]);
    assert_eq!(said("scheduler = \"dualpi2\", step = \"100us\", step-length = 0").len(), 1);
    assert_eq!(said("aqm = \"cobalt\", target = \"100us\", mtu = \"1500B\""), [""; 0]);
}

#[test]
fn flows_that_begin_after_their_end_are_named() {
    let start = |keys: &str| {
        said(
            "profile = { rate = \"1Mbps\", marker = \"tsw\" }",
            &format!("profile = {{ rate = \"1Mbps\", marker = \"tsw\" }}\n{keys}"),
        )
    };
    for fine in ["start = \"0s..10s\"", "start = \"9.9s\"", "start = \"1s..2s\"\nstop = \"2s\""] {
        assert_eq!(start(fine), [""; 0], "{fine}");
    }
    let ends = |keys: &str| start(keys).concat();
    assert!(
        ends("start = \"10s\"")
            .contains("flows[1].start: the run ends at 10s, so flows from 10s on never begin")
    );
    assert!(
        ends("start = \"0s..40s\"")
            .contains("the run ends at 10s, so 75 % of the flows that begin within 0s..40s never begin")
    );
    assert!(
        ends("start = \"3s\"\nstop = \"2s\"")
            .contains("the flows stop at 2s, so flows from 3s on never begin")
    );
    assert!(ends("start = \"1s..3s\"\nstop = \"2s\"").contains("the flows stop at 2s, so 50 % of the flows"));
}

#[test]
fn the_color_of_a_flow_is_the_drop_precedence_of_its_codepoint() {
    let color = |keys: &str| {
        let text = ASSURED.replace("profile = { rate = \"1Mbps\", marker = \"tsw\" }", keys);
        let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
        let again = Scenario::from_json(&serde_json::to_string(&scenario).unwrap(), "s.json").unwrap();
        assert_eq!(again.network().flows[1].color, scenario.network().flows[1].color);
        scenario.network().flows[1].color.name()
    };
    for class in 1..=4 {
        for (precedence, name) in [(1, "green"), (2, "yellow"), (3, "red")] {
            assert_eq!(color(&format!("dscp = \"AF{class}{precedence}\"")), name);
            assert_eq!(color(&format!("dscp = {}", class * 8 + precedence * 2)), name);
            assert_eq!(
                color(&format!("dscp = \"AF{class}{precedence}\"\ncolor = \"red\"")),
                "red",
                "as it says"
            );
        }
    }
    for other in ["", "dscp = \"EF\"", "dscp = \"CS1\"", "dscp = 5", "dscp = 62"] {
        assert_eq!(color(other), "yellow", "{other}");
    }
}
