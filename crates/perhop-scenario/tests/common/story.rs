//! What fuzzers and tests do with a scenario: they read any text as one, and draw networks that both engines
//! must agree on.
#![allow(dead_code, reason = "each user needs its part")]

use perhop_core::control::SampleInterval;
use perhop_core::{Bitrate, Duration, Instant};
use perhop_scenario::Scenario;
use perhop_sim::transport::tcp::CongestionParams;
use perhop_sim::{Engine, Network, Outcome, Simulation, TransportSpec};
use serde_json::{Value, json};

use super::choices::Choices;
use super::ordinary;
use super::parameters::{AQMS, SCHEDULERS};

/// Any text, TOML or JSON: it is refused with a message that names its place, or it is a scenario whose
/// canonical forms read back as the same one, and which runs.
pub fn read(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let is_json = text.trim_start().starts_with('{');
    let reader = if is_json { Scenario::from_json } else { Scenario::from_toml };
    let scenario = match reader(text, "input") {
        Ok(scenario) => scenario,
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("input:") && !error.problem.is_empty(), "{message}");
            return;
        }
    };
    let toml = scenario.to_toml();
    assert_eq!(Scenario::from_toml(&toml, "canonical").as_ref(), Ok(&scenario), "{toml}");
    let json = serde_json::to_string(&scenario).expect("a scenario has a form in JSON");
    assert_eq!(Scenario::from_json(&json, "canonical").as_ref(), Ok(&scenario), "{json}");
    if let Some(network) = excerpt(scenario.network()) {
        run(&network, 1, None, &[]);
    }
}

/// Packets that an excerpt's wires can carry, roughly.
const PACKETS: u64 = 20_000;

/// The beginning of a network's run, so short that it takes some milliseconds; `None` if that is no run worth
/// the name.
fn excerpt(mut network: Network) -> Option<Network> {
    let hosts = network.flows.iter().flat_map(|flow| [&flow.access, &flow.egress]).flatten();
    let sources = network.flows.iter().filter_map(|flow| match &flow.transport {
        TransportSpec::Udp(params) => Some(params.rate),
        _ => None,
    });
    let rates = network.links.iter().map(|link| link.rate).chain(hosts.map(|host| host.rate)).chain(sources);
    let bps: u64 = rates.map(Bitrate::as_bps).fold(0, u64::saturating_add);
    let nanos = u128::from(PACKETS) * 40 * 8 * 1_000_000_000 / u128::from(bps.max(1));
    network.duration = network.duration.min(Duration::from_nanos(nanos.min(1 << 40) as u64));
    let part = |parts: u64| Duration::from_nanos(network.duration.as_nanos() / parts);
    network.warmup = network.warmup.min(part(2));
    network.probe_interval = network.probe_interval.map(|interval| interval.max(part(100)));
    let latest = Instant::ZERO + part(2);
    for flow in &mut network.flows {
        flow.start = (flow.start.0.min(latest), flow.start.1.min(latest));
    }
    // Timers that go off without a packet: those of controls, and those that rate-based senders set to a
    // round trip.
    let busy_control = network.paths.iter().filter_map(|path| path.control.as_ref()).any(
        |control| matches!(control.interval, SampleInterval::Fixed(interval) if interval < part(10_000)),
    );
    let busy_sender = network.flows.iter().any(|flow| {
        let far = flow.access.as_ref().is_some_and(|host| host.delay >= Duration::from_millis(1));
        matches!(flow.transport, TransportSpec::Rap(_) | TransportSpec::Tfrc(_)) && !far
    });
    let busy = busy_control || busy_sender;
    (network.flows.len() <= 32 && !busy && network.duration > Duration::from_nanos(1000)).then_some(network)
}

/// Runs to the end, with stops at these times, and checks that every queue conserved its packets.
fn run(network: &Network, seed: u64, engine: Option<Engine>, stops: &[u64]) -> Outcome {
    let mut simulation = match engine {
        Some(engine) => {
            Simulation::on_engine(network, seed, engine).expect("the reference engine takes any network")
        }
        None => Simulation::new(network, seed).expect("every flow has a route"),
    };
    for &stop in stops {
        simulation.run_until(Instant::from_nanos(stop));
    }
    simulation.run_to_end();
    simulation.finish().expect("packets are conserved")
}

/// What both engines have run.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// How many packets came to links.
    pub hops: u64,
    /// One of the engines was the batched one.
    pub is_batched: bool,
    /// Some flows belong to users of applications.
    pub has_users: bool,
    /// Some links change, lose, delay or reorder packets.
    pub has_media: bool,
}

/// Some scenario: both engines give the same numbers, the batched one also where it stops on the way.
///
/// Returns what was run, or `None` if the scenario was refused.
pub fn both_engines(bytes: &[u8]) -> Option<Ran> {
    let mut choices = Choices::new(bytes);
    let stops: Vec<u64> = (0..choices.below(3)).map(|_| u64::from(choices.word()) << 14).collect();
    let scenario = scenario(&mut choices);
    // What fits together only by chance is left to the reader to refuse.
    let network = Scenario::from_json(&scenario.to_string(), "drawn").ok()?.network();
    let batched = run(&network, 1, None, &stops);
    let reference = run(&network, 1, Some(Engine::Reference), &[]);
    assert_eq!(batched.flows, reference.flows, "{scenario}");
    assert_eq!(batched.applications, reference.applications, "{scenario}");
    assert_eq!((&batched.links, batched.hops), (&reference.links, reference.hops), "{scenario}");
    // A mean of nothing is NaN, which is not equal to itself.
    assert_eq!(format!("{:?}", batched.series), format!("{:?}", reference.series), "{scenario}");
    let choice = Simulation::new(&network, 1).expect("it has just run");
    Some(Ran {
        hops: batched.hops,
        is_batched: choice.engine().engine() == Engine::Batched,
        has_users: !network.applications.is_empty(),
        has_media: network.links.iter().any(|link| !link.medium.is_constant()),
    })
}

const DELAYS: &[&str] = &["0s", "0s", "1ns", "137us", "1ms", "5ms", "999999ns"];
const LIMITS: &[&str] = &["1p", "3p", "10p", "20kB", "200p"];

/// Users who are so fast that much happens in a second; some of them do all at whole milliseconds.
const APPLICATIONS: &[(&str, &str)] = &[
    ("web", r#"{ "reading": "50ms", "parsing": "5ms", "scale": 2.0 }"#),
    ("web", r#"{ "reading": "20ms", "parsing": "0s", "connections": 1 }"#),
    ("web", r#"{ "reading": "1ms", "parsing": "0.1ms", "connections": 2, "scale": 0.1 }"#),
    ("video", r#"{ "chunk": "100ms", "buffer": "1s", "reservoir": "200ms", "cushion": "300ms" }"#),
    ("request-response", r#"{ "think": "10ms", "response": "20kB", "sizes": "exponential" }"#),
    ("request-response", r#"{ "think": "1ms", "service": "1ms", "response": "1B", "times": "constant" }"#),
    ("request-response", r#"{ "think": "5ms", "response": "2kB", "times": "constant" }"#),
    ("game", r#"{ "late": "20ms" }"#),
    ("call", r#"{ "on": "100ms", "off": "100ms" }"#),
];

/// A scenario on a chain of routers with a shortcut, in JSON.
fn scenario(choices: &mut Choices<'_>) -> Value {
    // Acknowledgements pass the last two in less than the clock's nanosecond.
    let mut rates = vec!["8Mbps", "2Mbps", "1.7Mbps", "333kbps", "1Gbps"];
    if choices.one_in(3) {
        rates.extend(["400Gbps", "8000Gbps"]);
    }
    let routers: Vec<String> = (0..2 + choices.below(3)).map(|number| format!("R{number}")).collect();
    let mut drawn = Drawn { choices, rates, routers };
    let mut links: Vec<(usize, usize)> = (1..drawn.routers.len()).map(|end| (end - 1, end)).collect();
    links.push(drawn.two_routers());
    let links: Vec<Value> = links.into_iter().map(|ends| drawn.link(ends)).collect();
    let links: serde_json::Map<_, _> =
        links.into_iter().enumerate().map(|(number, link)| (format!("l{number}"), link)).collect();
    let mut via = drawn.routers.clone();
    if drawn.choices.one_in(2) {
        via.reverse();
    }
    let mut control = json!({ "interval": drawn.of(&["1ms", "40ms", "33.3ms"]) });
    control["window"] = drawn.of(&["sender", "in-flight", "passed"]);
    drawn.some(&mut control, &[("loss", &[json!(0.5)])]);
    let flows: Vec<Value> = (0..=drawn.choices.below(5)).map(|number| drawn.flow(number, &via)).collect();
    let out = drawn.of(&["mark", "mark", "drop"]);
    let shared =
        |name: &String| (format!("of {name}"), json!({ "marker": "tsw", "rate": "500kbps", "out": out }));
    let profiles: serde_json::Map<_, _> = drawn.routers.iter().map(shared).collect();
    let mut probes = json!({});
    drawn.some(&mut probes, &[("interval", &["1ms", "70ms", "100ms", "333.333ms", "5s"].map(Value::from))]);
    let mut scenario = json!({
        "duration": "1s", "links": links, "paths": { "pinned": { "via": via, "control": control } },
        "profiles": profiles, "flows": flows, "probes": probes,
    });
    drawn.some(&mut scenario, &[("warmup", &["100ms", "70ms", "333.333ms", "999999999ns"].map(Value::from))]);
    scenario
}

/// Choices among the parts of a scenario.
struct Drawn<'a, 'b> {
    choices: &'a mut Choices<'b>,
    rates: Vec<&'static str>,
    routers: Vec<String>,
}

impl Drawn<'_, '_> {
    fn of(&mut self, texts: &[&str]) -> Value {
        self.choices.of(texts).into()
    }

    fn rate(&mut self, more: &[&'static str]) -> Value {
        self.choices.of(&[&self.rates[..], more].concat()).into()
    }

    /// Adds some of these keys to a table, each with one of its values.
    fn some(&mut self, table: &mut Value, keys: &[(&str, &[Value])]) {
        for (key, values) in keys {
            if self.choices.one_in(3) {
                table[*key] = self.choices.of(values);
            }
        }
    }

    fn two_routers(&mut self) -> (usize, usize) {
        let count = self.routers.len();
        let one = self.choices.below(count);
        (one, (one + 1 + self.choices.below(count - 1)) % count)
    }

    fn link(&mut self, (from, to): (usize, usize)) -> Value {
        let mut link = json!({ "from": self.routers[from], "to": self.routers[to] });
        link["rate"] = self.rate(&[]);
        link["delay"] = self.of(DELAYS);
        if !self.choices.one_in(3) {
            link["queue"] = self.queue();
            link["meters"] = self.meters();
        }
        self.medium(&mut link);
        if self.choices.one_in(3) {
            link["reverse"] = json!({ "queue": self.queue(), "meters": self.meters() });
            self.medium(&mut link["reverse"]);
        }
        link
    }

    /// How a direction of a link changes, and what it loses and delays: mostly not, and nothing.
    fn medium(&mut self, link: &mut Value) {
        if !self.choices.one_in(4) {
            return;
        }
        let traces = [
            json!({ "format": "mahimahi", "data": "4\n5\n20\n" }),
            json!({ "format": "csv", "data": "time_ms,rate_Mbps\n0,3\n300,0\n337.5,1\n", "repeat": true }),
        ];
        let bursts = [
            json!({ "good-to-bad": 0.02, "bad-to-good": 0.3 }),
            json!({ "good-to-bad": 0.1, "bad-to-good": 0.1, "loss-good": 0.01, "loss-bad": 0.5 }),
        ];
        let reorder = self.choices.one_in(2);
        let jitters = [
            json!({ "distribution": "uniform", "max": "1ms", "reorder": reorder }),
            json!({ "distribution": "uniform", "max": "30ms", "reorder": reorder }),
            json!({ "distribution": "exponential", "mean": "2ms", "reorder": reorder }),
            json!({ "distribution": "normal", "mean": "5ms", "sd": "3ms", "max": "9ms", "reorder": reorder }),
        ];
        let keys: [(&str, &[Value]); 4] = [
            ("rate-trace", &traces),
            ("loss", &[0.02, 0.3].map(Value::from)),
            ("burst-loss", &bursts),
            ("jitter", &jitters),
        ];
        self.some(link, &keys);
        let is_traced = !link["rate-trace"].is_null();
        let mut at = 0;
        link["changes"] = (0..self.choices.below(4)).map(|_| self.change(&mut at, is_traced)).collect();
        let mut at = 0;
        link["outages"] = (0..self.choices.below(3))
            .map(|_| json!({ "from": self.later(&mut at), "to": self.later(&mut at) }))
            .collect();
    }

    /// A change of a link after `at`. The rate of a trace does not change.
    fn change(&mut self, at: &mut u64, is_traced: bool) -> Value {
        let mut change = json!({ "at": self.later(at) });
        if is_traced || self.choices.one_in(2) {
            change["delay"] = self.of(DELAYS);
        }
        if !is_traced && (change["delay"].is_null() || self.choices.one_in(2)) {
            change["rate"] = self.rate(&[]);
        }
        change
    }

    /// A time after this one: whole milliseconds, or any.
    fn later(&mut self, at: &mut u64) -> Value {
        let (more, unit) =
            (1 + u64::from(self.choices.byte()), self.choices.of(&[1_000_000, 1_000_000, 333_331]));
        *at += more * unit;
        format!("{at}ns").into()
    }

    /// The meters of a link: mostly none.
    fn meters(&mut self) -> Value {
        let count = self.choices.of(&[0, 0, 0, 1, 2]);
        let meter = |number| {
            let profile = self.three_colors(&"300kbps".into());
            let mut meter = json!({ "name": format!("m{number}"), "profile": profile });
            let first =
                [json!({ "dscp": "AF11" }), json!({ "color": "yellow" }), json!({ "path": "pinned" })];
            if number + 1 < count {
                meter["match"] = self.choices.of(&first);
            }
            if meter["profile"]["mode"].is_null() {
                self.some(&mut meter, &[("promote", &[json!(true)])]);
            }
            meter
        };
        (0..count).map(meter).collect()
    }

    fn queue(&mut self) -> Value {
        let queue = self.unshaped();
        if !self.choices.one_in(6) {
            return queue;
        }
        let rate = self.of(&["300kbps", "1.3Mbps"]);
        json!({ "scheduler": "shaper", "rate": rate, "burst": self.of(&["1500B", "9kB"]), "queue": queue })
    }

    fn unshaped(&mut self) -> Value {
        match self.choices.below(8) {
            3 => json!({ "scheduler": "edf", "blue": self.of(&["1ms", "50ms"]), "rule": self.rule() }),
            4 => {
                let bound = self.of(&["1ms", "20ms"]);
                let mut queue = json!({ "scheduler": "dsd", "bound": bound, "rule": self.rule() });
                let keys: [(&str, &[Value]); 3] = [
                    ("bias", &[json!(0.5)]),
                    ("green-drop", &[json!("late")]),
                    ("control", &[json!("50ms")]),
                ];
                self.some(&mut queue, &keys);
                queue
            }
            2 => self.scheduler_without_rules(),
            number @ 5..=7 => self.several_queues(["priority", "drr", "wfq"][number - 5]),
            _ => self.rule(),
        }
    }

    /// A scheduler with an AQM of its own: it has its rows among the test parameters.
    fn scheduler_without_rules(&mut self) -> Value {
        let rows = SCHEDULERS.iter().filter(|(_, table)| !table.contains("rule")).collect::<Vec<_>>();
        let (name, table) = self.choices.of(&rows);
        let mut queue: Value = serde_json::from_str(table).expect("a table");
        queue["scheduler"] = (*name).into();
        queue
    }

    fn several_queues(&mut self, scheduler: &str) -> Value {
        let kinds = [
            json!({ "dscp": 46 }),
            json!({ "color": "green" }),
            json!({ "path": "pinned" }),
            json!({ "service": "green" }),
        ];
        let mut first = json!({ "name": "first", "match": self.choices.of(&kinds), "rule": self.rule() });
        let share: (&str, &[Value]) = match scheduler {
            "priority" => ("cap", &[json!("100kbps")]),
            _ => ("rate", &[json!("50kbps")]),
        };
        self.some(&mut first, &[share]);
        let rest = json!({ "name": "rest", "rule": self.rule() });
        let mut queue = json!({ "scheduler": scheduler, "queues": [first, rest] });
        if scheduler == "priority" {
            self.some(&mut queue, &[("excess", &[json!("idle")]), ("meter", &[json!("tsw")])]);
        }
        queue
    }

    /// Any AQM: each has its rows among the test parameters, by ordinary values and by ones at the edges.
    fn rule(&mut self) -> Value {
        let number = self.choices.below(AQMS.len() + ordinary::AQMS.len());
        let (name, table) = AQMS.iter().chain(ordinary::AQMS).nth(number).expect("that many rows");
        let mut rule: Value = serde_json::from_str(table).expect("a table");
        rule["aqm"] = ordinary::block(name).into();
        if self.choices.one_in(2) {
            rule["limit"] = self.of(LIMITS);
        }
        rule
    }

    fn flow(&mut self, number: usize, via: &[String]) -> Value {
        let has_users = self.choices.one_in(4);
        let (kind, mut flow) = if has_users { self.users() } else { self.sender() };
        flow["name"] = format!("f{number}").into();
        let control = flow["transport"]["congestion"].as_str().unwrap_or_default().to_owned();
        if CongestionParams::named(&control).is_some_and(|control| control.needs().marks) {
            let is_selective = transport_is_selective(&flow["transport"]);
            flow["ecn"] = if is_selective { "accurate" } else { "classic" }.into();
        }
        let pinned = !has_users && self.choices.one_in(2); // Users take the shortest route.
        let begin = if pinned {
            flow["path"] = "pinned".into();
            via[0].clone()
        } else {
            let (from, to) = self.two_routers();
            flow["from"] = self.routers[from].as_str().into();
            flow["to"] = self.routers[to].as_str().into();
            self.routers[from].clone()
        };
        if self.choices.one_in(2) {
            flow["profile"] = self.profile(&format!("of {begin}"), pinned && kind == "tcp");
            self.some(&mut flow, &[("color", &["green", "red"].map(Value::from))]);
            if kind != "udp" {
                self.some(&mut flow, &[("out-feedback", &["0s", "1ns", "1ms"].map(Value::from))]);
            }
        } else {
            let looks =
                [json!({}), json!({ "service": "green" }), json!({ "color": "red" }), json!({ "dscp": 46 })];
            let looks = self.choices.of(&looks);
            looks.as_object().into_iter().flatten().for_each(|(key, value)| flow[key] = value.clone());
        }
        for key in ["access", "egress"] {
            if self.choices.one_in(3) {
                flow[key] = json!({ "rate": self.rate(&["10Mbps"]), "delay": self.of(DELAYS) });
            }
        }
        // The timers of these go off each round trip, however short.
        if ["rap", "tfrc"].contains(&kind) {
            flow["access"] = json!({ "rate": "10Mbps", "delay": self.of(&["1ms", "20ms"]) });
        }
        self.some(&mut flow, &[("start", &["0s", "0s..100ms"].map(Value::from))]);
        if has_users {
            return flow; // They go on until the run ends, and decide how much is sent.
        }
        self.some(&mut flow, &[("stop", &[json!("300ms")])]);
        if kind == "udp" {
            self.some(&mut flow, &[("volume", &["1kB", "30kB"].map(Value::from))]);
        } else {
            // Without an end to them, windows would turn over a network without delays for ever.
            flow["volume"] = "30kB".into();
        }
        flow
    }

    /// What a flow sends by: its transport, and of what kind it is.
    fn sender(&mut self) -> (&'static str, Value) {
        let (kind, transport) = self.transport();
        (kind, json!({ "transport": transport }))
    }

    /// Users of an application, over TCP or by its own datagrams.
    fn users(&mut self) -> (&'static str, Value) {
        let (model, table) = self.choices.of(APPLICATIONS);
        let mut application: Value = serde_json::from_str(table).expect("a table");
        application["model"] = model.into();
        let mut users = json!({ "application": application, "count": 1 + self.choices.below(3) });
        if ["game", "call"].contains(&model) {
            return (model, users);
        }
        let mut transport = self.tcp();
        transport["packet"] = self.of(&["1500B", "1000B", "576B"]);
        if transport["ack"] == "1500B" {
            transport["ack"] = "500B".into(); // It is as long as the headers of data.
        }
        let keys: [(&str, &[Value]); 2] =
            [("idle-restart", &[json!("none")]), ("cwnd-validation", &[json!("none")])];
        self.some(&mut transport, &keys);
        users["transport"] = transport;
        ("tcp", users)
    }

    fn profile(&mut self, shared: &str, controlled: bool) -> Value {
        let rate = self.of(&["100kbps", "1Mbps"]);
        let mut profile = match self.choices.below(9) {
            0 => json!({ "marker": "token-bucket", "burst": "5kB", "rate": rate }),
            1 => json!({ "marker": "tsw", "window": "100ms", "rate": rate }),
            2 => {
                let mut profile = json!({ "marker": "three-precedence", "rate": rate });
                self.some(&mut profile, &[("out", &[json!("drop-red")])]);
                profile
            }
            3 if controlled => json!({ "marker": "twam", "rate": rate }),
            4..7 => self.three_colors(&rate),
            _ => return shared.into(),
        };
        self.some(&mut profile, &[("out", &[json!("drop")])]);
        profile
    }

    /// A meter of the RFCs; its other rate is at least `rate`.
    fn three_colors(&mut self, rate: &Value) -> Value {
        let bursts = |key: &str| json!({ "rate": rate, "burst": "5kB", key: "4kB" });
        let (mut profile, more) = match self.choices.below(4) {
            0 => (bursts("excess-burst"), json!({ "marker": "srtcm" })),
            1 => (bursts("peak-burst"), json!({ "marker": "trtcm", "peak-rate": "1.2Mbps" })),
            2 => (bursts("excess-burst"), json!({ "marker": "rfc4115", "excess-rate": "200kbps" })),
            _ => return json!({ "marker": "tswtcm", "rate": rate, "peak-rate": "1.2Mbps", "window": "50ms" }),
        };
        more.as_object().into_iter().flatten().for_each(|(key, value)| profile[key] = value.clone());
        self.some(&mut profile, &[("mode", &[json!("color-aware")]), ("out", &[json!("drop-red")])]);
        profile
    }

    fn transport(&mut self) -> (&'static str, Value) {
        let kind = self.choices.of(&["tcp", "tcp", "tcp", "udp", "rap", "tfrc"]);
        let mut transport = match kind {
            "udp" if self.choices.one_in(2) => {
                json!({ "udp": "on-off", "on": "100ms", "off": "70ms", "rate": self.of(&["100kbps", "1Mbps"]) })
            }
            "udp" => json!({ "udp": "cbr", "rate": self.of(&["100kbps", "1Mbps"]) }),
            "rap" => json!({ "rap": "aimd", "initial-rtt": "50ms", "max-rate": "4Mbps" }),
            "tfrc" => json!({ "tfrc": "rfc5348", "max-rate": "4Mbps" }),
            _ => self.tcp(),
        };
        self.some(&mut transport, &[("packet", &["1500B", "576B", "100B"].map(Value::from))]);
        if kind != "tcp" {
            self.some(&mut transport, &[("jitter", &[json!(0), json!(0.5)])]);
        }
        (kind, transport)
    }

    fn tcp(&mut self) -> Value {
        let variant = self.choices.of(&["reno", "newreno", "two-windows", "linux", "quic", "ns-1998"]);
        let mut transport = json!({ "tcp": variant });
        let keys: [(&str, &[Value]); 11] = [
            ("ack", &[json!("1B"), json!("500B")]),
            ("window", &[json!("5p"), json!("20p")]),
            ("delayed-ack", &[json!("1ms"), json!("100ms")]),
            ("handshake", &[json!(true)]),
            ("limited-transmit", &[json!(true)]),
            ("send-jitter", &[json!("1us"), json!("10ms")]),
            ("min-rto", &[json!("10ms")]),
            ("initial-rto", &[json!("500ms")]),
            ("quick-acks", &[json!("3p")]),
            ("rtt-arithmetic", &[json!("fixed-point")]),
            ("pacing", &[json!("window"), json!("none")]),
        ];
        self.some(&mut transport, &keys);
        if variant != "two-windows" {
            let controls: Vec<Value> = CongestionParams::all().map(|control| json!(control.name())).collect();
            let keys: [(&str, &[Value]); 3] = [
                ("congestion", &controls),
                ("byte-counting", &[json!(true)]),
                ("initial-window", &[json!("4p")]),
            ];
            self.some(&mut transport, &keys);
        }
        leave_out_what_pacing_excludes(&mut transport);
        leave_out_what_cannot_act(&mut transport);
        if variant == "newreno" && self.choices.one_in(2) {
            transport["sack"] = true.into();
            let keys: [(&str, &[Value]); 2] =
                [("prr", &[json!(true)]), ("loss-detection", &[json!("rack"), json!("duplicate-acks")])];
            self.some(&mut transport, &keys);
            leave_out_what_cannot_act(&mut transport);
        } else if ["newreno", "ns-1998"].contains(&variant) {
            let keys: [(&str, &[Value]); 2] = [
                ("newreno-timer", &[json!("slow-but-steady")]),
                ("partial-window-deflation", &[json!("to-ssthresh")]),
            ];
            self.some(&mut transport, &keys);
        }
        transport
    }
}

fn leave_out_what_pacing_excludes(transport: &mut Value) {
    let control = transport["congestion"].as_str().unwrap_or_default();
    let has_rate = CongestionParams::named(control).is_some_and(|control| control.needs().pacing);
    let is_paced = has_rate
        || transport["pacing"] == "window"
        || (transport["tcp"] == "quic" && transport["pacing"] != "none");
    let Some(table) = transport.as_object_mut() else { return };
    if has_rate {
        table.remove("pacing");
    }
    if is_paced {
        table.remove("send-jitter");
    }
}

fn leave_out_what_cannot_act(transport: &mut Value) {
    if ["linux", "quic"].contains(&transport["tcp"].as_str().unwrap_or_default()) {
        return;
    }
    let control = transport["congestion"].as_str().unwrap_or("reno");
    let control = CongestionParams::named(control).expect("known");
    let delays = !transport["delayed-ack"].is_null();
    let Some(table) = transport.as_object_mut() else { return };
    if !control.info().byte_counting {
        table.remove("byte-counting");
    }
    if control.needs().recovery {
        table.remove("prr");
    }
    if !delays {
        table.remove("quick-acks");
    }
}

fn transport_is_selective(transport: &Value) -> bool {
    ["linux", "quic"].contains(&transport["tcp"].as_str().unwrap_or_default()) || transport["sack"] == true
}
