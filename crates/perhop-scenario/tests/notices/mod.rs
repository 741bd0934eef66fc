//! What can be run, but hardly as it was meant, is said with its place; what can have no effect is refused.

mod ecn;
mod queues;

use perhop_scenario::{Driver, NoFiles, Scenario, notices_in};

use self::queues::said_of_queue;

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

/// Returns the notices of the example with this change.
fn said(from: &str, to: &str) -> Vec<String> {
    assert!(ASSURED.contains(from), "{from}");
    let text = ASSURED.replacen(from, to, 1);
    let scenario = Scenario::from_toml(&text, "s.toml").unwrap();
    notices_in(Some(&text), "s.toml", scenario.notices()).iter().map(ToString::to_string).collect()
}

/// Returns the notices of the threshold sets of the first queue's rule.
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
    let said = said_of_rule("aqm = \"rio\", limit = \"200p\", in = \"40/200/0.02\", total = \"20/201/0.1\"");
    assert_eq!(said.len(), 1, "max may be the limit itself: {said:?}");
    assert!(
        said[0].starts_with(&format!(
            "{key}.total: `20/201/0.1`: the queue holds at most 200p, so its average never reaches max"
        )),
        "{said:?}"
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
        // Where it does not decide: a share or a link below what it allows, a window that is given, or sizes
        // of today.
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
