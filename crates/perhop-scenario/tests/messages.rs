//! Every kind of bad scenario gives one message: file and line, key, what is wrong, what would be right. The
//! file is long because its tables are: a row is a message.

use perhop_scenario::Scenario;

/// A valid scenario.
pub const GOOD: &str = r#"
title = "Assured Service sold at 76 %"
duration = "100s"

[links.bottleneck]
from = "edge"
to = "core"
rate = "20Mbps"
delay = "48ms"
queue = { aqm = "rio-plus-out", limit = "868p", in = "390/694/0.02", total = "347/694/0.05", out = "10/30/0.01" }

[[flows]]
name = "gold"
count = 4
from = "edge"
to = "core"
access = { rate = "10Mbps", delay = "1ms" }
transport = { tcp = "newreno", packet = "576B" }
profile = { rate = "2Mbps", marker = "token-bucket", burst = "40kB" }
"#;

/// The example's transport.
pub const TRANSPORT: &str = "tcp = \"newreno\", packet = \"576B\"";

/// The inside of its queue.
const QUEUE: &str = "aqm = \"rio-plus-out\", limit = \"868p\", in = \"390/694/0.02\", total = \"347/694/0.05\", \
                     out = \"10/30/0.01\"";

fn message(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    Scenario::from_toml(&GOOD.replacen(from, to, 1), "s.toml").expect_err(to).to_string()
}

#[test]
fn live_settings_are_those_of_a_network_namespace() {
    for (settings, message) in [
        ("ip = 5", "s.toml:21: live.ip: the versions are 4 and 6, not 5"),
        (
            "sysctl = { \"kernel.hostname\" = 0 }",
            "s.toml:21: live.sysctl.kernel.hostname: `kernel.hostname` is not a sysctl of a network namespace; write one such \
             as net.ipv4.tcp_sack",
        ),
        (
            "sysctl = { \"net.ipv4/../../kernel\" = 0 }",
            "s.toml:21: live.sysctl.net.ipv4/../../kernel: `net.ipv4/../../kernel` is not a sysctl of a network namespace; \
             write one such as net.ipv4.tcp_sack",
        ),
        (
            "sysctl = { \"net.ipv4.tcp_congestion_control\" = \"bbr\" }",
            "s.toml:21: live.sysctl.net.ipv4.tcp_congestion_control: has no effect, since each socket has its own congestion \
             control; name it in the flows' `live.congestion`",
        ),
    ] {
        let text = format!("{GOOD}[live]\n{settings}\n");
        assert_eq!(Scenario::from_toml(&text, "s.toml").unwrap_err().to_string(), message);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn each_problem_is_named_where_it_stands() {
    let cases = [
        (
            "delay = \"48ms\"",
            "dealy = \"48ms\"",
            "s.toml:9: links.bottleneck.dealy: unknown key `dealy`; did you mean `delay`?",
        ),
        (
            "limit = \"868p\", ",
            "limti = \"868p\", ",
            "s.toml:10: links.bottleneck.queue.limti: unknown key `limti`; did you mean `limit`?",
        ),
        ("limit = \"868p\", ", "", "s.toml:10: links.bottleneck.queue: key `limit` is missing"),
        ("rate = \"20Mbps\"\n", "", "s.toml:5: links.bottleneck: key `rate` is missing"),
        (
            "\"20Mbps\"",
            "\"20mbps\"",
            "s.toml:8: links.bottleneck.rate: `20mbps` has the unit `mbps`, which is ambiguous",
        ),
        (
            "\"20Mbps\"",
            "20",
            "s.toml:8: links.bottleneck.rate: expected text with its unit, such as \"20Mbps\", not 20",
        ),
        ("\"20Mbps\"", "\"0Mbps\"", "s.toml:8: links.bottleneck.rate: `0Mbps`: a rate must be above zero"),
        ("\"20Mbps\"", "\"-20Mbps\"", "s.toml:8: links.bottleneck.rate: `-20Mbps` is negative"),
        (
            "390/694/0.02",
            "694/390/0.02",
            "s.toml:10: links.bottleneck.queue.in: `694/390/0.02`: min 694 is above max 390",
        ),
        (
            "10/30/0.01",
            "10/30/1.01",
            "s.toml:10: links.bottleneck.queue.out: `10/30/1.01`: a probability lies between 0 and 1",
        ),
        (
            "10/30/0.01",
            "10kB/30kB/0.01",
            "s.toml:10: links.bottleneck.queue.out: not in the unit of `in`; write all threshold sets in packets, or",
        ),
        (
            QUEUE,
            "aqm = \"wred\", limit = \"868p\", yellow = \"10/30/0.1\", red = \"1kB/3kB/0.1\"",
            "s.toml:10: links.bottleneck.queue.red: not in the unit of `yellow`",
        ),
        (
            QUEUE,
            "aqm = \"wred\", limit = \"868p\"",
            "s.toml:10: links.bottleneck.queue: no color has thresholds, so packets would be dropped on overflow only; \
             give at least one color thresholds, such as yellow = \"40/160/0.1\", or write aqm = \"drop-tail\"",
        ),
        (
            QUEUE,
            "scheduler = \"priority\", queues = [{ name = \"all\", cap = \"21Mbps\", rule = { aqm = \"drop-tail\", \
             limit = \"9p\" } }]",
            "s.toml:10: links.bottleneck.queue.queues[0].cap: the link's rate is 20Mbps, so the cap has no effect",
        ),
        (
            "[[flows]]",
            "[profiles.sold]\nmarker = \"twam\"\nrate = \"1Mbps\"\n[[flows]]",
            "s.toml:13: profiles.sold.marker: flows cannot share a window-aware marker; write its table as",
        ),
        (
            QUEUE,
            "aqm = \"dwred\", limit = \"868p\", out = \"40/160/0.1\"",
            "s.toml:10: links.bottleneck.queue.aqm: `dwred` requires the window control of a label-switched path: no path \
             uses this link from `edge` to `core`; add one with a `control`",
        ),
        (
            "rio-plus-out",
            "rio-plus",
            "s.toml:10: links.bottleneck.queue.aqm: unknown aqm `rio-plus`; did you mean `rio-plus-out`?",
        ),
        (
            "aqm = \"rio-plus-out\", ",
            "",
            "s.toml:10: links.bottleneck.queue: key `aqm` is missing; it names one of",
        ),
        (
            "aqm = \"rio-plus-out\"",
            "aqm = 3",
            "s.toml:10: links.bottleneck.queue.aqm: `aqm` is a name in quotes",
        ),
        (
            "from = \"edge\"\nto = \"core\"\naccess",
            "from = \"egde\"\nto = \"core\"\naccess",
            "s.toml:15: flows[0].from: unknown node `egde`; did you mean `edge`?",
        ),
        (
            "[links.bottleneck]",
            "[links.other]\nfrom=\"a\"\nto=\"b\"\nrate=\"1Mbps\"\ndelay=\"1ms\"\n[links.bottleneck]",
            "",
        ),
        (
            "to = \"core\"\naccess",
            "to = \"edge\"\naccess",
            "s.toml:16: flows[0].to: the flow goes from `edge` to itself",
        ),
        (
            "newreno",
            "newrino",
            "s.toml:18: flows[0].transport.tcp: unknown value `newrino`; did you mean `newreno`?",
        ),
        (
            "packet = \"576B\"",
            "packet = \"0B\"",
            "s.toml:18: flows[0].transport.packet: a segment has 1B to 65535B",
        ),
        (
            "packet = \"576B\"",
            "packte = \"576B\"",
            "s.toml:18: flows[0].transport.packte: unknown key `packte`; did you mean `packet`?",
        ),
        ("tcp = \"newreno\", ", "", "s.toml:18: flows[0].transport: a transport names one protocol"),
        (
            "token-bucket",
            "tokenbucket",
            "s.toml:19: flows[0].profile.marker: unknown marker `tokenbucket`; did you mean `token-bucket`?",
        ),
        (
            "rate = \"2Mbps\"",
            "rate = \"2Mb\"",
            "s.toml:19: flows[0].profile.rate: `2Mb` has the unit `Mb`, which is not one of",
        ),
        ("count = 4", "count = 0", "s.toml:14: flows[0].count: a scenario has 1 to 1000000 flows"),
        (
            "count = 4",
            "count = -8",
            "s.toml:14: flows[0].count: a scenario has 1 to 1000000 flows, each group at least 1, not -8",
        ),
        ("count = 4", "count = 1.5", "s.toml:14: flows[0].count: expected a whole number, not 1.5"),
        (
            "count = 4",
            "count = 4\nstart = \"3s..1s\"",
            "s.toml:15: flows[0].start: `3s..1s`: the range ends before it begins",
        ),
        ("duration = \"100s\"", "duration = \"0s\"", "s.toml:3: duration: a run must be longer than 0s"),
        (
            "duration = \"100s\"",
            "duration = \"5000000000s\"",
            "s.toml:3: duration: a run must be shorter than 36 years, not 5000000000s",
        ),
        (
            "duration = \"100s\"",
            "duration = \"100s\"\nwarmup = \"100s\"",
            "s.toml:4: warmup: the warm-up (100s) must end before",
        ),
        ("duration = \"100s\"", "", "s.toml: key `duration` is missing"),
        (
            "duration = \"100s\"",
            "duration = \"100s\"\nduration = \"10s\"",
            "s.toml:4: duplicate key `duration`",
        ),
        ("[links.bottleneck]", "[links.bottleneck", "s.toml:5: "),
        ("count = 4", "count = inf", "s.toml:14: flows[0].count: `inf`: expected a finite number"),
        ("count = 4", "count = 1979-05-27", "s.toml:14: flows[0].count: `1979-05-27` is a date"),
        (
            "count = 4",
            "count = \"four\"",
            "s.toml:14: flows[0].count: expected a whole number, not the text \"four\"",
        ),
        (
            "limit = \"868p\"",
            "limit = \"868p\", mean-packet = \"0B\"",
            "s.toml:10: links.bottleneck.queue.mean-packet: a packet must be above 0B",
        ),
        (
            "packet = \"576B\"",
            "min-rto = \"0s\"",
            "s.toml:18: flows[0].transport.min-rto: a timeout is at least 1ms",
        ),
        (
            "packet = \"576B\"",
            "initial-ssthresh = \"0p\"",
            "s.toml:18: flows[0].transport.initial-ssthresh: the slow-start",
        ),
        (
            "packet = \"576B\"",
            "congestion = \"qubic\"",
            "s.toml:18: flows[0].transport.congestion: unknown value `qubic`; did you mean `cubic`?",
        ),
        (
            TRANSPORT,
            "tcp = \"linux\", sack = false",
            "s.toml:18: flows[0].transport.prr: it paces the recovery of `sack`; set that to true, or this to false",
        ),
        (
            TRANSPORT,
            "tcp = \"two-windows\", congestion = \"cubic\"",
            "s.toml:18: flows[0].transport.congestion: two-windows TCP has a rule of its own",
        ),
        (
            "tcp = \"newreno\", packet = \"576B\"",
            "udp = \"cbr\", rate = \"999999Gbps\", packet = \"40B\"",
            "s.toml:18: flows[0].transport.rate: ",
        ),
        (
            TRANSPORT,
            "udp = \"on-off\", rate = \"64kbps\", on = \"1s\"",
            "s.toml:18: flows[0].transport.off: an on-off source needs `on` and `off`",
        ),
        (
            TRANSPORT,
            "udp = \"on-off\", rate = \"64kbps\", packet = \"200B\", on = \"20ms\", off = \"1s\"",
            "s.toml:18: flows[0].transport.on: the source is on for at least a packet's time, 25ms",
        ),
        (
            TRANSPORT,
            "udp = \"cbr\", rate = \"64kbps\", off = \"1s\"",
            "s.toml:18: flows[0].transport.off: a source of udp = \"cbr\" is always on",
        ),
        (
            TRANSPORT,
            "udp = \"on-off\", rate = \"64kbps\", on = \"1s\", off = \"1s\", periods = \"constnat\"",
            "s.toml:18: flows[0].transport.periods: unknown value `constnat`; did you mean `constant`?",
        ),
        (
            TRANSPORT,
            "rap = \"amid\"",
            "s.toml:18: flows[0].transport.rap: unknown value `amid`; did you mean `aimd`?",
        ),
        (
            TRANSPORT,
            "rap = \"aimd\", initial-rtt = \"0s\"",
            "s.toml:18: flows[0].transport.initial-rtt: this time lies between 1ms and 64s",
        ),
        (
            TRANSPORT,
            "rap = \"aimd\", window = \"20p\"",
            "s.toml:18: flows[0].transport.window: unknown key `window`",
        ),
        (TRANSPORT, "tfrc = \"rfc3448\"", "s.toml:18: flows[0].transport.tfrc: unknown value `rfc3448`"),
        (
            TRANSPORT,
            "tfrc = \"rfc5348\", max-rate = \"999999Gbps\"",
            "s.toml:18: flows[0].transport.max-rate: ",
        ),
        (
            TRANSPORT,
            "tfrc = \"rfc5348\", rap = \"aimd\"",
            "s.toml:18: flows[0].transport: a transport names one protocol: tcp = \"newreno\" (or \"reno\", \
             \"two-windows\", \"linux\", \"quic\", \"ns-1998\"), udp = \"cbr\" (or \"on-off\"), rap = \"aimd\", or tfrc = \"rfc5348\" (or \"square-root\")",
        ),
        ("name = \"gold\"", "name = \" \"", "s.toml:13: flows[0].name: a name must have at least one letter"),
        (
            "name = \"gold\"",
            "name = \"go\\nld\"",
            "s.toml:13: flows[0].name: \"go\\nld\" contains a control character",
        ),
        (
            "[links.bottleneck]",
            "[links.\"x (reverse)\"]",
            "s.toml:5: links.x (reverse): names that end in ` (reverse)`",
        ),
        (
            "count = 4",
            "count = 4\nservice = \"green\"",
            "s.toml:15: flows[0].service: the profile's marker would overwrite",
        ),
        (
            "count = 4",
            "count = 4\nservice = \"gren\"",
            "s.toml:15: flows[0].service: unknown value `gren`; did you mean `green`?",
        ),
        (
            "duration = \"100s\"",
            "duration = \"100s\"\nprobes = { interval = \"1ns\" }",
            "s.toml:4: probes.interval: 100000000000 samples of 4 flows",
        ),
        (
            "transport = { tcp = \"newreno\", packet = \"576B\" }",
            "out-feedback = \"0s\"\ntransport = { udp = \"cbr\", rate = \"1Mbps\" }",
            "s.toml:18: flows[0].out-feedback: a UDP source has no window to reduce",
        ),
        (
            "transport = { tcp = \"newreno\", packet = \"576B\" }",
            "play-out = \"60ms\"\ntransport = { tcp = \"newreno\" }",
            "s.toml:18: flows[0].play-out: only datagrams are played as they come, and a one-way delay of TCP is not measured",
        ),
        (
            "transport = { tcp = \"newreno\", packet = \"576B\" }",
            "codec = \"g711\"\ntransport = { tcp = \"newreno\" }",
            "s.toml:18: flows[0].codec: only datagrams are played as they come",
        ),
        (
            "transport = { tcp = \"newreno\", packet = \"576B\" }",
            "play-out = \"0s\"\ntransport = { udp = \"cbr\", rate = \"80kbps\" }",
            "s.toml:18: flows[0].play-out: without a buffer every packet is late that takes longer than the first",
        ),
        (
            "transport = { tcp = \"newreno\", packet = \"576B\" }",
            "codec = \"opus\"\ntransport = { udp = \"cbr\", rate = \"80kbps\" }",
            "s.toml:18: flows[0].codec: ",
        ),
        (
            "burst = \"40kB\" }",
            "burst = \"40kB\", out = \"drop\" }\nout-feedback = \"0s\"",
            "s.toml:20: flows[0].out-feedback: the profile drops all packets out of profile, so no marker reports",
        ),
        (
            "marker = \"token-bucket\", burst = \"40kB\" }",
            "marker = \"three-precedence\", out = \"drop-red\" }\nout-feedback = \"0s\"",
            "",
        ),
    ];
    for (from, to, expected) in cases {
        if expected.is_empty() {
            Scenario::from_toml(&GOOD.replacen(from, to, 1), "s.toml").unwrap();
            continue;
        }
        let message = message(from, to);
        assert!(message.starts_with(expected), "expected {expected}\n     got {message}");
        assert!(!message.contains('\n') && !message.contains('\u{1f}'), "{message}");
    }
}

/// Who names what other systems have hears what comes nearest here.
#[test]
fn mechanisms_of_other_systems_have_a_hint() {
    for (queue, hint) in [
        ("aqm = \"fq-codel\"", "unknown aqm `fq-codel`; write scheduler = \"fq-codel\" (one of drop-tail,"),
        ("scheduler = \"fq_codel\"", "unknown scheduler `fq_codel`; did you mean `fq-codel`? (one of fifo,"),
        (
            "scheduler = \"cake\"",
            "unknown scheduler `cake`; it is not built yet; the nearest is scheduler = \"fq-codel\" (one of",
        ),
        ("aqm = \"DualPI2\"", "unknown aqm `DualPI2`; write scheduler = \"dualpi2\" (one of drop-tail,"),
        (
            "aqm = \"SFB\"",
            "unknown aqm `SFB`; it is not built yet; the nearest is aqm = \"pi2\" or aqm = \"pie\" (one of",
        ),
        ("aqm = \"ARED\"", "unknown aqm `ARED`; it is aqm = \"red\" with adaptive = true (one of"),
        (
            "aqm = \"docsis_pie\"",
            "unknown aqm `docsis_pie`; it is aqm = \"pie\" with law = \"docsis\" (one of",
        ),
        (
            "aqm = \"pfifo\"",
            "unknown aqm `pfifo`; a FIFO queue without other management is aqm = \"drop-tail\" (one of",
        ),
        ("aqm = \"drr\"", "unknown aqm `drr`; write scheduler = \"drr\" (one of drop-tail,"),
        ("scheduler = \"red\"", "unknown scheduler `red`; write aqm = \"red\" (one of fifo,"),
    ] {
        let found = message(QUEUE, queue);
        let key = queue.split(' ').next().unwrap();
        assert!(found.starts_with(&format!("s.toml:10: links.bottleneck.queue.{key}: {hint}")), "{found}");
    }
}

#[test]
fn the_aqm_of_a_fifo_with_a_name_has_its_key() {
    let dwred = "aqm = \"dwred\", limit = \"868p\", out = \"40/160/0.1\"";
    let plain = message(QUEUE, dwred);
    assert!(plain.starts_with("s.toml:10: links.bottleneck.queue.aqm: `dwred` requires"), "{plain}");
    let named = message(QUEUE, &format!("scheduler = \"fifo\", rule = {{ {dwred} }}"));
    assert!(named.starts_with("s.toml:10: links.bottleneck.queue.rule.aqm: `dwred` requires"), "{named}");
}

/// A word that is nearly right, or of another key, and a value of another kind: each message says what would
/// be right.
#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn messages_name_the_choices_and_the_nearest_one() {
    let cases = [
        (
            "aqm = \"rio-plus-out\"",
            "aqm = \"RIO-Plus-Out\"",
            "s.toml:10: links.bottleneck.queue.aqm: unknown aqm `RIO-Plus-Out`; did you mean `rio-plus-out`?",
        ),
        (
            QUEUE,
            "aqm = \"RIO\", limit = \"868p\", in = \"390/694/0.02\", total = \"347/694/0.05\"",
            "s.toml:10: links.bottleneck.queue.aqm: unknown aqm `RIO`; did you mean `rio`?",
        ),
        (
            "token-bucket",
            "Token_Bucket",
            "s.toml:19: flows[0].profile.marker: unknown marker `Token_Bucket`; did you mean `token-bucket`?",
        ),
        (
            "in = \"390/694/0.02\"",
            "in = [390, 694, 0.02]",
            "s.toml:10: links.bottleneck.queue.in: expected text min/max/max_p, such as \"30/90/0.05\", not a list",
        ),
        (
            "in = \"390/694/0.02\"",
            "in = 390",
            "s.toml:10: links.bottleneck.queue.in: expected text min/max/max_p, such as \"30/90/0.05\", not 390",
        ),
        (
            TRANSPORT,
            "tcp = \"cubic\"",
            "s.toml:18: flows[0].transport.tcp: unknown value `cubic`; `cubic` is a value of the key `congestion`: write tcp = \"linux\", \
             congestion = \"cubic\" (one of reno, newreno, two-windows, linux, quic, ns-1998)",
        ),
        (
            TRANSPORT,
            "tcp = \"sack\"",
            "s.toml:18: flows[0].transport.tcp: unknown value `sack`; `sack` is a key of its own, beside tcp = \"linux\" (one of",
        ),
        (
            TRANSPORT,
            "tcp = \"vegas\"",
            "s.toml:18: flows[0].transport.tcp: unknown value `vegas` (one of reno, newreno, two-windows, linux, quic, ns-1998)",
        ),
        (
            TRANSPORT,
            "tcp = 3",
            "s.toml:18: flows[0].transport.tcp: expected one of reno, newreno, two-windows, linux, quic, ns-1998, in quotes, not 3",
        ),
        (
            "count = 4",
            "count = 4\ncolor = true",
            "s.toml:15: flows[0].color: expected one of green, yellow, red, in quotes, not true",
        ),
        (
            QUEUE,
            "aqm = \"rio\", limit = \"8p\", in = \"1/2/0.1\", total = \"1/2/0.1\", coupling = [\"coupled\"]",
            "s.toml:10: links.bottleneck.queue.coupling: expected one of coupled, decoupled, in quotes, not a list",
        ),
        (
            "count = 4",
            "count = 4\ndscp = \"ef\"",
            "s.toml:15: flows[0].dscp: unknown codepoint `ef`; did you mean `EF`? (one of DF, CS0,",
        ),
        (
            "count = 4",
            "count = 4\ndscp = true",
            "s.toml:15: flows[0].dscp: expected a codepoint: a number from 0 to 63, or a name such as \"EF\"",
        ),
        (
            "burst = \"40kB\"",
            "burst = \"40kB\", af = 5",
            "s.toml:19: flows[0].profile.af: the classes of Assured Forwarding are 1 to 4, not 5",
        ),
        (
            "burst = \"40kB\"",
            "burst = \"40kB\", out = \"drop-red\"",
            "s.toml:19: flows[0].profile.out: unknown value `drop-red`; did you mean `drop`? (one of mark, drop)",
        ),
        (
            QUEUE,
            "scheduler = \"shaper\", rate = \"9Mbps\", burst = \"1kB\", queue = { aqm = \"drop-tail\", limit = \"9p\" }",
            "s.toml:10: links.bottleneck.queue.burst: must be at least `mtu`, which is 1.5kB, not 1kB",
        ),
        (
            QUEUE,
            "scheduler = \"shaper\", rate = \"20Mbps\", burst = \"9kB\", queue = { aqm = \"drop-tail\", limit = \"9p\" }",
            "s.toml:10: links.bottleneck.queue.rate: the link's rate is 20Mbps, so the shaper has no effect; lower it or leave",
        ),
        (
            QUEUE,
            "scheduler = \"shaper\", rate = \"9Mbps\", burst = \"9kB\", queue = { aqm = \"drop-tail\", limit = \"9x\" }",
            "s.toml:10: links.bottleneck.queue.queue.limit: `9x`",
        ),
        (
            QUEUE,
            "scheduler = \"drr\", queues = [{ name = \"all\", rule = { aqm = \"codle\" } }]",
            "s.toml:10: links.bottleneck.queue.queues[0].rule.aqm: unknown aqm `codle`; did you mean `codel`?",
        ),
        (
            QUEUE,
            "scheduler = \"drr\", queues = [{ name = \"all\", rule = { scheduler = \"fq-codel\" } }]",
            "s.toml:10: links.bottleneck.queue.queues[0].rule.scheduler: a scheduler cannot stand within another one, where a \
             queue has an AQM: write `aqm`, one of drop-tail, red,",
        ),
        (
            QUEUE,
            "aqm = 5",
            "s.toml:10: links.bottleneck.queue.aqm: `aqm` is a name in quotes (one of drop-tail,",
        ),
        (
            "marker = \"token-bucket\", burst = \"40kB\"",
            "marker = \"tswtcm\", peak-rate = \"3Mbps\", window = \"0s\"",
            "s.toml:19: flows[0].profile.window: a window must be longer than 0s, such as 1s",
        ),
        (
            QUEUE,
            "scheduler = \"drr\", queues = [{ name = \"a\", match = { dscp = 45 }, queue-protection = { buckets = 3 }, rule = { aqm = \
             \"drop-tail\", limit = \"9p\" } }, { name = \"b\", rule = { aqm = \"drop-tail\", limit = \"9p\" } }]",
            "s.toml:10: links.bottleneck.queue.queues[0].queue-protection.buckets: the number of buckets is a power of 2",
        ),
        (
            QUEUE,
            "scheduler = \"dualpi2\", queue-protection = { attempts = 0 }",
            "s.toml:10: links.bottleneck.queue.queue-protection.attempts: there are 1 to 4 attempts, such as 2",
        ),
        (
            QUEUE,
            "scheduler = \"shaper\", rate = \"9Mbps\", burst = \"9kB\", queue = { limit = \"9p\" }",
            "s.toml:10: links.bottleneck.queue.queue: key `aqm` is missing; it names one of drop-tail,",
        ),
        (
            "delay = \"48ms\"",
            "delay = \"48ms\"\nreverse.meters = [{ name = \"a\", profile = { marker = \"tsw\", rate = \"1Mbps\" } }]",
            "s.toml:10: links.bottleneck.reverse.meters: meters are in front of a queue, which this link does not have; give it \
             a `queue`",
        ),
        (
            "delay = \"48ms\"",
            "delay = \"48ms\"\nmeters = [{ name = \"a\", match = { path = \"nowhere\" }, profile = { marker = \"tsw\", rate = \"1Mbps\" } }]",
            "s.toml:10: links.bottleneck.meters[0].match.path: unknown path `nowhere`",
        ),
        (
            "delay = \"48ms\"",
            "delay = \"48ms\"\nmeters = [{ name = \"a\", profile = { marker = \"tsw\", rate = \"1Mbps\" } }, { name = \"b\", profile = { marker = \"tsw\", rate = \"1Mbps\" } }]",
            "s.toml:10: links.bottleneck.meters[1].match: the earlier meter `a` takes all of these packets; put this one before it",
        ),
        (
            "delay = \"48ms\"",
            "delay = \"48ms\"\nmeters = [{ name = \"a\", profile = { marker = \"tsw\", rate = \"1Mbs\" } }]",
            "s.toml:10: links.bottleneck.meters[0].profile.rate: `1Mbs`",
        ),
        (
            "marker = \"token-bucket\", burst = \"40kB\"",
            "marker = \"trtcm\", burst = \"40kB\", peak-rate = \"1Mbps\", peak-burst = \"40kB\"",
            "s.toml:19: flows[0].profile.peak-rate: must be at least `rate`, which is 2Mbps, not 1Mbps",
        ),
        (
            "marker = \"token-bucket\", burst = \"40kB\"",
            "marker = \"srtcm\", burst = \"0B\", excess-burst = \"0B\"",
            "s.toml:19: flows[0].profile.burst: this and `excess-burst` are both 0B, so every packet is red; give one of them",
        ),
        (
            "marker = \"token-bucket\", burst = \"40kB\"",
            "marker = \"rfc4115\", burst = \"9kB\", excess-burst = \"9kB\"",
            "s.toml:19: flows[0].profile: key `excess-rate` is missing",
        ),
        (
            "marker = \"token-bucket\", burst = \"40kB\"",
            "marker = \"srtcm\", burst = \"9kB\", excess-burst = \"9kB\", mode = \"colour-aware\"",
            "s.toml:19: flows[0].profile.mode: unknown value `colour-aware`; did you mean `color-aware`? (one of color-blind, color-aware)",
        ),
        (
            TRANSPORT,
            "tcp = \"newreno\", sack = 1",
            "s.toml:18: flows[0].transport.sack: expected true or false, not 1",
        ),
    ];
    for (from, to, expected) in cases {
        let message = message(from, to);
        assert!(message.starts_with(expected), "expected {expected}\n     got {message}");
        assert!(!message.contains('\n') && !message.contains('\u{1f}'), "{message}");
    }
    let text = format!("{GOOD}[live]\nsysctl = {{ \"net.ipv4.tcp_sack\" = true }}\n");
    let message = Scenario::from_toml(&text, "s.toml").unwrap_err().to_string();
    assert_eq!(message, "s.toml:21: live.sysctl.net.ipv4.tcp_sack: expected a number, or text in quotes");
}

#[test]
fn timers_that_no_connection_has_and_keys_without_effect_are_refused() {
    let cases = [
        (
            "tcp = \"newreno\", tick = \"1000000s\"",
            "tick: a clock that ticks each 1000000s measures no round trip",
        ),
        (
            "tcp = \"newreno\", initial-rto = \"61s\"",
            "initial-rto: 61s is above `max-rto`, which is 60s; lower this",
        ),
        ("tcp = \"newreno\", min-rto = \"61s\"", "min-rto: 61s is above `max-rto`, which is 60s; lower this"),
        ("tcp = \"newreno\", max-rto = \"1000000s\"", "max-rto: a timeout is at most 3600s"),
        (
            "tcp = \"ns-1998\", prr = true",
            "prr: it paces a recovery by SACK, and ns-1998 is a NewReno; leave this key out",
        ),
        (
            "tcp = \"reno\", newreno-timer = \"impatient\"",
            "newreno-timer: only a recovery by NewReno has partial",
        ),
        (
            "tcp = \"two-windows\", partial-window-deflation = \"by-acknowledged\"",
            "partial-window-deflation: only a recovery by NewReno has partial",
        ),
        (
            "tcp = \"linux\", newreno-timer = \"impatient\"",
            "newreno-timer: only a recovery by NewReno has partial",
        ),
    ];
    for (transport, expected) in cases {
        let message = message(TRANSPORT, transport);
        let expected = format!("s.toml:18: flows[0].transport.{expected}");
        assert!(message.starts_with(&expected), "expected {expected}\n     got {message}");
    }
    // What leaves these keys out, or has NewReno's recovery, reads, and its canonical form does, too.
    for transport in [
        "tcp = \"reno\"",
        "tcp = \"two-windows\"",
        "tcp = \"linux\"",
        "tcp = \"linux\", sack = false, prr = false, newreno-timer = \"impatient\"",
        "tcp = \"ns-1998\", newreno-timer = \"impatient\"",
    ] {
        let scenario = Scenario::from_toml(&GOOD.replacen(TRANSPORT, transport, 1), "s.toml").unwrap();
        let canonical = serde_json::to_string(&scenario).unwrap();
        assert_eq!(Scenario::from_json(&canonical, "json").unwrap(), scenario, "{canonical}");
    }
}

#[test]
fn an_unreachable_node_a_second_name_and_an_empty_file_are_refused() {
    let island = "[links.island]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbps\"\ndelay = \"1ms\"\n[[flows]]";
    let text =
        GOOD.replacen("[[flows]]", island, 1).replacen("to = \"core\"\naccess", "to = \"b\"\naccess", 1);
    let message = Scenario::from_toml(&text, "s.toml").unwrap_err().to_string();
    assert!(message.contains("flows[0].to: `b` cannot be reached from `edge`"), "{message}");
    let flow = &GOOD[GOOD.find("[[flows]]").unwrap()..];
    let message = Scenario::from_toml(&format!("{GOOD}{flow}"), "s.toml").unwrap_err().to_string();
    assert!(message.contains("flows[1].name: an earlier group has the name `gold`"), "{message}");
    assert_eq!(
        Scenario::from_toml("", "s.toml").unwrap_err().to_string(),
        "s.toml: key `duration` is missing"
    );
}
