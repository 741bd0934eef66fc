use super::interface::Address;
use super::*;
use crate::plan;
use perhop_core::Color;
use perhop_live::{Coloring, Plane};
use proptest::prelude::*;

const GOOD: &str = r#"
unmatched = "best-effort"
metrics = "127.0.0.1:9477"
user = "nobody"

[inside]
device = "eth1"
kind = "packet"

[outside]
device = "eth0"
kind = "packet"

[upstream]
rate = "20Mbps"
delay = "1ms"
queue = { aqm = "rio", limit = "50p", in = "10/30/0.02", total = "5/15/0.1" }

[[classes]]
name = "gold"
match = { source = "10.0.0.0/24", protocol = "tcp", destination-ports = "5000..5009" }
profile = { marker = "token-bucket", rate = "4Mbps", burst = "40kB" }

[[classes]]
name = "calls"
direction = "upstream"
match = { dscp = 46 }
color = "green"
"#;

fn message(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    Config::read(&GOOD.replacen(from, to, 1), "r.toml").expect_err(to).to_string()
}

#[test]
fn a_good_one_is_read() {
    let config = Config::read(GOOD, "r.toml").unwrap();
    assert_eq!((config.buffers, config.classes.len(), config.unmatched), (10_000, 2, Unmatched::BestEffort));
    let tun = GOOD.replace("\"packet\"", "\"tun\"\nipv4 = \"10.9.0.1/24\"\nmtu = 1400");
    assert_eq!(Config::read(&tun, "r.toml").unwrap().inside.ipv4, Some(Address([10, 9, 0, 1].into(), 24)));
}

#[test]
fn packets_of_tun_interfaces_have_no_frame() {
    let tun = GOOD.replace("\"packet\"", "\"tun\"");
    for (from, to, problem) in [
        ("protocol = \"tcp\"", "outer-vlan = 5", "classes[0].match.outer-vlan: packets of a TUN interface"),
        (
            "color = \"green\"",
            "color = \"green\"\nmpls-tc = 5",
            "classes[1].mpls-tc: packets of a TUN interface",
        ),
    ] {
        let text = tun.replace(from, to).replace(", destination-ports = \"5000..5009\"", "");
        let error = Config::read(&text, "r.toml").unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn each_problem_is_named_where_it_stands() {
    let cases = [
        (
            "kind = \"packet\"",
            "kind = \"pakcet\"",
            "r.toml:8: inside.kind: unknown value `pakcet`; did you mean `packet`?",
        ),
        (
            "device = \"eth1\"",
            "devcie = \"eth1\"",
            "r.toml:7: inside.devcie: unknown key `devcie`; did you mean `device`?",
        ),
        ("device = \"eth1\"\n", "", "r.toml:6: inside: key `device` is missing"),
        ("\"eth1\"", "\"eth0\"", "r.toml:11: outside.device: `eth0` is already the inside device"),
        (
            "\"eth1\"",
            "\"a name that is too long\"",
            "r.toml:7: inside.device: \"a name that is too long\" is not an interface name",
        ),
        (
            "\"eth1\"\nkind = \"packet\"",
            "\"eth1\"\nkind = \"tun\"",
            "r.toml:12: outside.kind: both sides must be of the same kind",
        ),
        ("\"eth1\"", "\"eth1\"\nmtu = 1400", "r.toml:8: inside.mtu: only kind = \"tun\" has this key"),
        ("[outside]", "[outsdie]", "r.toml:10: outsdie: unknown key `outsdie`; did you mean `outside`?"),
        (
            "\"20Mbps\"",
            "\"20mbps\"",
            "r.toml:15: upstream.rate: `20mbps` has the unit `mbps`, which is ambiguous",
        ),
        ("limit = \"50p\", ", "", "r.toml:17: upstream.queue: key `limit` is missing"),
        (
            "aqm = \"rio\"",
            "aqm = \"rioo\"",
            "r.toml:17: upstream.queue.aqm: unknown aqm `rioo`; did you mean `rio`?",
        ),
        (
            "{ aqm = \"rio\", limit = \"50p\", in = \"10/30/0.02\", total = \"5/15/0.1\" }",
            "{ scheduler = \"drr\", queues = [{ name = \"a\", match = { path = \"p\" }, rule = { aqm = \"drop-tail\", limit = \"5p\" } }, { name = \"b\", rule = { aqm = \"drop-tail\", limit = \"5p\" } }] }",
            "r.toml:17: upstream.queue.queues[0].match.path: a router has no label-switched paths",
        ),
        (
            "10.0.0.0/24",
            "10.0.0.0/33",
            "r.toml:21: classes[0].match.source: `10.0.0.0/33` is neither an address nor a network",
        ),
        (
            "delay = \"1ms\"",
            "meters = [{ name = \"a\", profile = { marker = \"twam\", rate = \"1Mbps\" } }]",
            "r.toml:16: upstream.meters[0].profile.marker: a window-aware marker measures one flow",
        ),
        (
            "delay = \"1ms\"",
            "meters = [{ name = \"a\", match = { path = \"p\" }, profile = { marker = \"tsw\", rate = \"1Mbps\" } }]",
            "r.toml:16: upstream.meters[0].match.path: a router has no label-switched paths, such as `p`",
        ),
        (
            "delay = \"1ms\"",
            "meters = [{ name = \"a\", profile = { marker = \"tsw\", rat = \"1Mbps\" } }]",
            "r.toml:16: upstream.meters[0].profile.rat: unknown key `rat`; did you mean `rate`?",
        ),
        (
            "delay = \"1ms\"",
            "meters = [{ name = \"a\", profile = { marker = \"tsw\", rate = \"1Mbps\" } }, { name = \"b\", profile = { marker = \"tsw\", rate = \"1Mbps\" } }]",
            "r.toml:16: upstream.meters[1].match: the earlier meter `a` takes all of these packets",
        ),
        (
            "source = ",
            "host = ",
            "r.toml:21: classes[0].match.host: unknown key `host`; write `source` or `destination`, such as",
        ),
        (
            "destination-ports = ",
            "port = ",
            "r.toml:21: classes[0].match.port: unknown key `port`; write `source-ports` or `destination-ports`",
        ),
        (
            "\"tcp\"",
            "\"tcp\", vlan = 4095",
            "r.toml:21: classes[0].match.vlan: `4095`: expected a number from 0 to 4094",
        ),
        (
            "\"tcp\"",
            "\"tcp\", vlam = 5",
            "r.toml:21: classes[0].match.vlam: unknown key `vlam`; did you mean `vlan`?",
        ),
        ("color = \"green\"", "color = \"green\"\npcp = 8", "r.toml:29: classes[1].pcp: it has three bits"),
        ("\"tcp\"", "\"tpc\"", "r.toml:21: classes[0].match.protocol: unknown protocol `tpc`"),
        (
            "\"tcp\"",
            "300",
            "r.toml:21: classes[0].match.protocol: a protocol's number lies between 0 and 255, not 300",
        ),
        ("\"tcp\"", "\"icmp\"", "r.toml:21: classes[0].match.destination-ports: only tcp and udp have ports"),
        (
            "5000..5009",
            "5009..5000",
            "r.toml:21: classes[0].match.destination-ports: `5009..5000`: the range ends before it begins",
        ),
        (
            "\"5000..5009\"",
            "0",
            "r.toml:21: classes[0].match.destination-ports: a port lies between 1 and 65535",
        ),
        (
            "source = \"10.0.0.0/24\"",
            "source = \"10.0.0.0/24\", destination = \"fd00::/8\"",
            "r.toml:21: classes[0].match.destination: source and destination must both be IPv4 or both IPv6",
        ),
        (
            "match = { source = \"10.0.0.0/24\", protocol = \"tcp\", destination-ports = \"5000..5009\" }",
            "",
            "r.toml:24: classes[1]: the earlier class `gold` matches every packet",
        ),
        ("rate = \"4Mbps\", ", "", "r.toml:22: classes[0].profile: key `rate` is missing"),
        (
            "token-bucket\", rate = \"4Mbps\", burst = \"40kB\"",
            "twam\", rate = \"4Mbps\"",
            "r.toml:22: classes[0].profile",
        ),
        ("color = \"green\"", "", "r.toml:24: classes[1]: a class needs exactly one of `profile`"),
        (
            "color = \"green\"",
            "color = \"green\"\ntrust = true",
            "r.toml:24: classes[1]: a class needs exactly one of `profile`",
        ),
        ("color = \"green\"", "color = \"blue\"", "r.toml:28: classes[1].color: unknown value `blue`"),
        (
            "dscp = 46",
            "dscp = 64",
            "r.toml:27: classes[1].match.dscp: a codepoint lies between 0 and 63, not 64",
        ),
        (
            "dscp = 46",
            "dscp = [\"EF\", \"AF14\"]",
            "r.toml:27: classes[1].match.dscp[1]: unknown codepoint `AF14`; did you mean `AF11`?",
        ),
        (
            "name = \"calls\"",
            "name = \"gold\"",
            "r.toml:25: classes[1].name: an earlier class has the name `gold`",
        ),
        (
            "name = \"calls\"",
            "name = \"unmatched\"",
            "r.toml:25: classes[1].name: `unmatched` is reserved for packets that match no class",
        ),
        (
            "direction = \"upstream\"",
            "direction = \"up\"",
            "r.toml:26: classes[1].direction: unknown value `up`",
        ),
        ("\"best-effort\"", "\"dorp\"", "r.toml:2: unmatched: unknown value `dorp`; did you mean `drop`?"),
        (
            "127.0.0.1:9477",
            "0.0.0.0:9477",
            "r.toml:3: metrics: 0.0.0.0:9477 is not on loopback, so others could read it; write 127.0.0.1:9477",
        ),
        ("127.0.0.1:9477", "localhost", "r.toml:3: metrics: "),
        (
            "user = \"nobody\"",
            "realtime = 100",
            "r.toml:4: realtime: a real-time priority lies between 1 and 99, not 100",
        ),
        (
            "user = \"nobody\"",
            "buffers = 1",
            "r.toml:4: buffers: a router holds 64 to 1000000 packets, not 1",
        ),
        ("user = \"nobody\"", "user = nobody", "r.toml:4: "),
        (
            "user = \"nobody\"",
            "metrics-hosts = [\"here\", \"here:9477\"]",
            "r.toml:4: metrics-hosts[1]: \"here:9477\" is not a host name; write it without a port",
        ),
        (
            "metrics = \"127.0.0.1:9477\"",
            "metrics-hosts = [\"here\"]",
            "r.toml:3: metrics-hosts: no effect without `metrics`",
        ),
        (
            "user = \"nobody\"",
            "capture = { size = \"10kB\" }",
            "r.toml:4: capture.size: a capture file holds at least 1MB, not 10kB",
        ),
        (
            "user = \"nobody\"",
            "capture = { files = 0 }",
            "r.toml:4: capture.files: a capture has 1 to 100 files, not 0",
        ),
        (
            "user = \"nobody\"",
            "capture = { mode = \"0644\" }",
            "r.toml:4: capture.mode: unknown value `0644`",
        ),
    ];
    for (from, to, expected) in cases {
        let message = message(from, to);
        assert!(message.starts_with(expected), "{to}:\n{message}\n{expected}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn what_cannot_act_and_what_a_queue_divides_are_told() {
    let notices = |text: &str| {
        let config = Config::read(text, "r.toml").unwrap();
        let found = perhop_scenario::notices_in(Some(text), "r.toml", config.notices());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(notices(GOOD), [""; 0]);
    let beyond = notices(&GOOD.replacen("5/15/0.1", "50/60/0.1", 1));
    let start = "r.toml:17: upstream.queue.total: `50/60/0.1`: the queue holds at most 50p";
    assert!(beyond[0].starts_with(start), "{beyond:?}");
    let fifo = |rule: &str| {
        let start = GOOD.find("queue = ").unwrap();
        let end = start + GOOD[start..].find('\n').unwrap();
        notices(&format!(
            "{}queue = {{ scheduler = \"fifo\", rule = {{ {rule} }} }}{}",
            &GOOD[..start],
            &GOOD[end..]
        ))
    };
    let within = fifo("aqm = \"red\", limit = \"50p\", thresholds = \"50/60/0.1\"");
    assert!(within[0].starts_with("r.toml:17: upstream.queue.rule.thresholds: "), "{within:?}");
    assert!(fifo("aqm = \"codel\", limit = \"5p\", target = \"1s\"")[0].contains("rule.target: `1s`"));
    let rule = "rule = { aqm = \"drop-tail\", limit = \"50p\" }";
    let queues = |codepoints: &str| {
        let queue = format!(
            "queue = {{ scheduler = \"drr\", queues = [{{ name = \"assured\", match = {{ dscp = {codepoints} }}, {rule} }}, \
             {{ name = \"rest\", {rule} }}] }}"
        );
        let start = GOOD.find("queue = ").unwrap();
        let end = start + GOOD[start..].find('\n').unwrap();
        format!("{}{queue}{}", &GOOD[..start], &GOOD[end..])
    };
    let divided = notices(&queues("\"AF11\""));
    assert!(
        divided[0].starts_with(
            "r.toml:17: upstream.queue.queues[0].match: packets of `gold` go to different queues"
        ),
        "{divided:?}"
    );
    assert_eq!(notices(&queues("[\"AF11\", \"AF12\"]")), [""; 0]);
    let second = queues("\"AF11\"").replacen("burst = \"40kB\"", "burst = \"40kB\", af = 2", 1);
    assert_eq!(notices(&second), [""; 0]);
}

#[test]
fn meters_of_a_link_that_cannot_act_are_told() {
    let said = |meter: &str, edit: fn(String) -> String| {
        let text =
            edit(GOOD.replacen("delay = \"1ms\"", &format!("meters = [{{ name = \"a\", {meter} }}]"), 1));
        let config = Config::read(&text, "r.toml").unwrap();
        let found = perhop_scenario::notices_in(Some(&text), "r.toml", config.notices());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let plain = |text: String| text;
    let bucket = |burst: &str| {
        format!("profile = {{ marker = \"token-bucket\", rate = \"9Mbps\", burst = \"{burst}\" }}")
    };
    assert_eq!(said(&bucket("40kB"), plain), [""; 0]);
    let small = said(&bucket("10B"), plain);
    assert!(small[0].starts_with("r.toml:16: upstream.meters[0].profile.burst: `10B`"), "{small:?}");
    let silver = format!("match = {{ dscp = [\"AF21\", \"AF22\"] }}, {}", bucket("40kB"));
    let unmatched = said(&silver, plain);
    assert!(
        unmatched[0].starts_with("r.toml:16: upstream.meters[0].match: no packet of the classes"),
        "{unmatched:?}"
    );
    // A class that keeps codepoints may have any.
    assert_eq!(
        said(&silver, |text| text.replace("unmatched = \"best-effort\"", "unmatched = \"trust\"")),
        [""; 0]
    );
    // Without the classes only best effort comes, which is yellow.
    let aware = "profile = { marker = \"srtcm\", rate = \"9Mbps\", burst = \"40kB\", excess-burst = \"40kB\", mode = \"color-aware\" }";
    assert_eq!(said(aware, plain), [""; 0]);
    let yellow = said(aware, |text| text[..text.find("[[classes]]").unwrap()].into());
    assert!(
        yellow[0].starts_with("r.toml:16: upstream.meters[0].profile.mode: the best color"),
        "{yellow:?}"
    );
}

#[test]
fn a_queue_that_divides_what_a_meter_of_the_link_re_marks_is_told() {
    let rule = "rule = { aqm = \"drop-tail\", limit = \"50p\" }";
    let said = |meter: &str| {
        let queue = format!(
            "queue = {{ scheduler = \"drr\", queues = [{{ name = \"assured\", match = {{ dscp = [\"AF11\", \"AF12\"] }}, {rule} }}, \
             {{ name = \"rest\", {rule} }}] }}"
        );
        let start = GOOD.find("queue = ").unwrap();
        let end = start + GOOD[start..].find('\n').unwrap();
        let text = format!("{}{queue}\n{meter}{}", &GOOD[..start], &GOOD[end..]);
        Config::read(&text, "r.toml").unwrap().notices().len()
    };
    assert_eq!(said(""), 0);
    let meter = "meters = [{ name = \"a\", profile = { marker = \"srtcm\", rate = \"9Mbps\", burst = \"4kB\", excess-burst = \"4kB\" } }]";
    assert_eq!(said(meter), 1, "it makes AF13 of some packets of the class `gold`");
}

#[test]
fn a_color_aware_meter_sees_the_color_of_the_codepoint() {
    let colorings = |mode: &str| {
        let meter =
            format!("marker = \"srtcm\", rate = \"4Mbps\", excess-burst = \"40kB\", mode = \"{mode}\"");
        let text = GOOD.replace("marker = \"token-bucket\", rate = \"4Mbps\"", &meter);
        let streams = plan::plane(&Config::read(&text, "r.toml").unwrap(), 1500).streams.into_iter();
        streams
            .filter(|stream| stream.name.starts_with("gold"))
            .map(|stream| stream.coloring)
            .collect::<Vec<_>>()
    };
    assert_eq!(colorings("color-aware"), [Coloring::Trust; 2]);
    let green = Coloring::Fixed(Color::Green, "AF11".parse().unwrap());
    assert_eq!(colorings("color-blind"), [green; 2]);
}

#[test]
fn what_cannot_change_while_the_router_runs_is_named() {
    let config = Config::read(GOOD, "r.toml").unwrap();
    let successor = |from: &str, to: &str| config.read_successor(&GOOD.replacen(from, to, 1), "r.toml");
    assert!(successor("20Mbps", "10Mbps").is_ok());
    for (from, to, expected) in [
        ("eth1", "eth2", "r.toml:6: inside: this cannot change while the router runs"),
        ("9477", "9478", "r.toml:3: metrics: this cannot change"),
        ("user = \"nobody\"", "", "r.toml: user: this cannot change"),
        ("user = \"nobody\"", "user = \"nobody\"\ncapture = { files = 3 }", "r.toml:5: capture: this cannot"),
        (
            "user = \"nobody\"",
            "user = \"nobody\"\nmetrics-hosts = [\"a\"]",
            "r.toml:5: metrics-hosts: this cannot",
        ),
    ] {
        let message = successor(from, to).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

proptest! {
    /// Whatever a slip of the keyboard makes of it: it is refused in one line, or it can be forwarded by.
    #[test]
    fn any_text_is_read_or_refused(at in 0..GOOD.len(), length in 0_usize..20, with in "[ -~]{0,8}") {
        let end = (at + length).min(GOOD.len());
        let text = format!("{}{with}{}", &GOOD[..at], &GOOD[end..]);
        match Config::read(&text, "r.toml") {
            Ok(config) => drop(Plane::new(plan::plane(&Config { buffers: 64, ..config }, 1500), 1)),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error),
        }
    }
}

#[test]
fn the_examples_are_good_ones() {
    for example in [
        include_str!("../../../../contrib/perhop-router.toml"),
        include_str!("../../../../contrib/perhop-router-policer.toml"),
    ] {
        assert_eq!(Config::read(example, "example").unwrap().notices(), []);
    }
    let guide = include_str!("../../../../docs/perhop-router.md");
    let link = guide.split("```toml\n").find(|part| part.starts_with("[upstream]")).unwrap();
    let link = link.split("```").next().unwrap();
    let interfaces = &GOOD[GOOD.find("[inside]").unwrap()..GOOD.find("[upstream]").unwrap()];
    Config::read(&format!("{interfaces}{link}"), "docs/perhop-router.md").unwrap();
    let whole = guide.split("```toml\n").find(|part| part.starts_with("inside = ")).unwrap();
    Config::read(whole.split("```").next().unwrap(), "docs/perhop-router.md").unwrap();
}
