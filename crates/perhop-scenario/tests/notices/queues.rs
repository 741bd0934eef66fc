//! Notices of queues: limits, targets, thresholds, classes that no packet joins.

use super::*;

/// Returns the notices of the example with this as the whole queue, up to the remedy.
pub(super) fn said_of_queue(queue: &str) -> Vec<String> {
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

/// Classes behind a priority queue send at the rate of the link, but are promised only what the priority
/// queue leaves.
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

/// Returns the notices of the queue of the reverse direction, to which only acknowledgements come, on a path
/// if one is named.
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
    // DualPI2 has two: ten packets leave room for the controller's target, not for the step. (No flow here
    // sends ECT(1).)
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
    // A packet of 1000 bytes takes 400 us at 20 Mbit/s, 16 ms at 500 kbit/s; ten and the one that is being
    // sent 4.4 ms at 20 Mbit/s, 880 us at 100 Mbit/s.
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
