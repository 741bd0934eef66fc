//! Random feed-forward networks of every scheduler and source that claims a bound, with bursts that meet.

use std::sync::Arc;

use perhop_core::medium::{Medium, Outage, RateTrace, Rates};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Color, Dscp, Duration, Ecn, Instant, Rng};
use perhop_sim::transport::packet_trace::{PacketTrace, TracedPacket};
use perhop_sim::transport::tcp::{TcpEcn, TcpParams};
use perhop_sim::transport::udp::UdpParams;
use perhop_sim::{AccessSpec, FlowSpec, LinkSpec, Marking, Network, NodeId, SharedMeter, TransportSpec};
use serde_json::{Value, json};

/// The codepoints of flows, by which queues tell them apart, one of which is that of green packets; the last
/// belongs to no queue of its own.
const CODEPOINTS: [u8; 4] = [46, 3, 18, 0];
const SIZES: [u16; 6] = [64, 200, 576, 1000, 1200, 1500];

/// The draws of a network.
pub struct Draw {
    pub rng: Rng,
}

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::stream(seed, "networks") }
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.rng.up_to(end - 1)
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn bps(rate: u64) -> Bitrate {
    Bitrate::from_bps(rate).unwrap()
}

fn micros(micros: u64) -> Duration {
    Duration::from_nanos(micros * 1000)
}

/// A rule of a queue: mostly one that drops only when it is full.
fn rule(draw: &mut Draw) -> Value {
    match draw.below(12) {
        10 => draw.of(&[r#"{"aqm": "pie"}"#, r#"{"aqm": "cobalt"}"#, r#"{"aqm": "pi2"}"#]).parse().unwrap(),
        11 => json!({ "aqm": "red", "target-delay": "20ms", "limit": "80p" }),
        0 => json!({ "aqm": "red", "thresholds": "10/40/0.1", "limit": "80p" }),
        1 => json!({ "aqm": "codel" }),
        2 => json!({ "aqm": "drop-tail", "limit": "9kB" }),
        3 => json!({ "aqm": "drop-tail", "limit": format!("{}p", 3 + draw.below(10)) }),
        _ => json!({ "aqm": "drop-tail", "limit": "1000p" }),
    }
}

fn queues(draw: &mut Draw, extra: impl Fn(&mut Draw, usize) -> Value) -> Value {
    let count = 2 + draw.below(3) as usize;
    let queue = |number: usize| {
        let mut queue = json!({ "name": format!("q{number}"), "rule": rule(draw) });
        let table = queue.as_object_mut().unwrap();
        if number + 1 < count {
            table.insert("match".into(), json!({ "dscp": CODEPOINTS[number] }));
        }
        table.extend(extra(draw, number).as_object().unwrap().clone());
        queue
    };
    (0..count).map(queue).collect()
}

pub const SCHEDULERS: [&str; 11] =
    ["fifo", "priority", "drr", "wfq", "shaper", "llq", "edf", "dsd", "htb", "fq-codel", "dualpi2"];

/// A scheduler of this name on a link of this rate.
pub fn scheduler(name: &str, rate: u64, draw: &mut Draw) -> Value {
    let weights = |draw: &mut Draw, _: usize| json!({ "weight": 1 + draw.below(8) });
    match name {
        "priority" => {
            let caps = draw.chance(30);
            let cap = |draw: &mut Draw, number: usize| {
                if caps && number == 0 {
                    json!({ "cap": format!("{}bps", rate / (2 + draw.below(3))) })
                } else {
                    json!({})
                }
            };
            json!({ "scheduler": "priority", "burst": "6kB", "queues": queues(draw, cap) })
        }
        "drr" => {
            let quantum = draw.of(&[300, 1500, 3000]);
            json!({ "scheduler": "drr", "quantum": format!("{quantum}B"), "queues": queues(draw, weights) })
        }
        "wfq" => json!({ "scheduler": "wfq", "queues": queues(draw, weights) }),
        "shaper" => {
            let inner = draw.of(&["fifo", "priority", "drr", "wfq", "llq"]);
            let shaped = rate * 3 / 4;
            json!({
                "scheduler": "shaper", "rate": format!("{shaped}bps"), "burst": format!("{}B", draw.of(&[1500, 4000, 15_000])),
                "queue": scheduler(inner, shaped, draw),
            })
        }
        "llq" => low_latency(rate, draw),
        "edf" => json!({
            "scheduler": "edf", "blue": format!("{}ms", draw.of(&[5, 20, 100])), "green": format!("{}ms", draw.of(&[0, 2])),
            "rule": rule(draw),
        }),
        "dsd" => {
            json!({ "scheduler": "dsd", "bound": format!("{}ms", draw.of(&[3, 10, 50])), "rule": rule(draw) })
        }
        "htb" => hierarchy(rate, draw),
        "fq-codel" => json!({ "scheduler": "fq-codel", "hash": draw.of(&["stochastic", "exact"]) }),
        "dualpi2" => json!({
            "scheduler": "dualpi2", "order": draw.of(&["weighted-round-robin", "time-shifted-fifo"]), "limit": "1000p",
            "l4s-dscp": 46,
        }),
        _ => rule(draw),
    }
}

/// Low-latency queueing in front of another scheduler, mostly policed.
fn low_latency(rate: u64, draw: &mut Draw) -> Value {
    let inner = draw.of(&["fifo", "drr", "wfq"]);
    let police = draw.of(&["in-congestion", "always"]);
    let own = draw.below(3);
    let left = rate * 2 / 3;
    let mut voice = json!({ "name": "voice", "match": { "dscp": CODEPOINTS[0] }, "rule": rule(draw) });
    if own > 0 {
        let table = voice.as_object_mut().unwrap();
        table.insert("rate".into(), json!(format!("{}bps", rate - left)));
        table.insert("burst".into(), json!(format!("{}B", draw.of(&[2000, 6000, 20_000]))));
        table.insert("police".into(), json!(police));
    }
    let mut inner = scheduler(inner, left, draw);
    // The priority queue takes what the first one would.
    if let Some(queues) = inner.get_mut("queues").and_then(Value::as_array_mut) {
        queues.remove(0);
        if queues.len() == 1 {
            inner = queues[0]["rule"].clone();
        }
    }
    json!({ "scheduler": "llq", "priority": [voice], "queue": inner })
}

/// Three classes of a hierarchy that share its rate.
fn hierarchy(rate: u64, draw: &mut Draw) -> Value {
    let count = 3;
    let share = rate / count;
    let class = |number: u64| {
        let mut class = json!({
            "name": format!("c{number}"), "rate": format!("{share}bps"), "ceil": format!("{rate}bps"),
            "burst": format!("{}B", draw.of(&[1600, 6000, 20_000])), "cburst": "20kB",
            "prio": draw.below(3), "queue": rule(draw),
        });
        if number + 1 < count {
            class
                .as_object_mut()
                .unwrap()
                .insert("match".into(), json!({ "dscp": CODEPOINTS[number as usize] }));
        }
        class
    };
    let classes: Vec<Value> = (0..count).map(class).collect();
    json!({ "scheduler": "htb", "classes": [{ "name": "root", "rate": format!("{rate}bps"), "classes": classes }] })
}

/// A queue as a scenario writes it: an AQM alone is a FIFO.
pub fn parsed(queue: Value) -> SchedulerParams {
    SchedulerParams::deserialize_queue(queue).unwrap().0
}

pub fn link(name: String, (from, to): (u32, u32), rate: u64, queue: SchedulerParams) -> LinkSpec {
    LinkSpec {
        name,
        from: NodeId(from),
        to: NodeId(to),
        rate: bps(rate),
        delay: Duration::ZERO,
        queue: Some(queue),
        meters: Vec::new(),
        medium: Medium::default(),
    }
}

/// A source that keeps to a token bucket and sends as soon as it can: its burst at once, and then its rate.
pub fn greedy(rate: u64, packets: u64, size: u16, until: Duration) -> TransportSpec {
    let gap = bps(rate).time_of(perhop_core::Bytes::new(size.into())).as_nanos() + 1;
    let burst = (0..packets).map(|_| 0);
    let rest = (1..until.as_nanos() / gap).map(|number| number * gap);
    let packet = |at| TracedPacket { at: Duration::from_nanos(at), size, dscp: None };
    TransportSpec::Udp(UdpParams::traced(&Arc::new(
        PacketTrace::new(burst.chain(rest).map(packet).collect()).unwrap(),
    )))
}

fn udp(table: &Value) -> TransportSpec {
    TransportSpec::Udp(serde_json::from_value(table.clone()).unwrap())
}

fn source(draw: &mut Draw, rate: u64, until: Duration) -> TransportSpec {
    let size = draw.of(&SIZES);
    match draw.below(6) {
        0 => udp(&json!({ "udp": "cbr", "rate": format!("{rate}bps"), "packet": format!("{size}B"), "jitter": draw.of(&[0.0, 0.01, 1.0]) })),
        1 => udp(&json!({
            "udp": "on-off", "rate": format!("{}bps", rate * 3), "packet": format!("{size}B"), "on": "20ms", "off": "40ms",
            "periods": draw.of(&["constant", "exponential"]), "jitter": 0.0,
        })),
        2 if draw.chance(50) => serde_json::from_value::<TcpParams>(json!({
                "tcp": "newreno", "window": format!("{}p", 2 + draw.below(6)), "packet": format!("{}B", size.max(200)),
                "min-rto": "2s", "initial-rto": "2s", "max-rto": "60s", "handshake": draw.chance(50),
        }))
        .unwrap()
        .into(),
        _ => greedy(rate, 1 + draw.below(12), size, until),
    }
}

pub fn flow(name: String, (from, to): (u32, u32), transport: TransportSpec, dscp: u8) -> FlowSpec {
    FlowSpec {
        name,
        from: NodeId(from),
        to: NodeId(to),
        path: None,
        access: None,
        egress: None,
        dispatch_jitter: None,
        transport,
        service: None,
        reserved: None,
        marking: Marking::None,
        color: Color::Green,
        dscp: Dscp::new(dscp).unwrap(),
        ecn: Ecn::NotCapable,
        tcp_ecn: TcpEcn::Off,
        play_out: None,
        out_feedback: None,
        start: (Instant::ZERO, Instant::ZERO),
        stop: None,
        volume: None,
        population: None,
    }
}

/// A link of this name with any scheduler.
fn any_link(name: String, ends: (u32, u32), rate: u64, draw: &mut Draw) -> LinkSpec {
    let scheduled = draw.of(&SCHEDULERS);
    let mut one = link(name, ends, rate, parsed(scheduler(scheduled, rate, draw)));
    one.delay = micros(draw.below(3000));
    if draw.chance(10) {
        let jitter = json!({ "distribution": "uniform", "max": "3ms", "reorder": draw.chance(50) });
        one.medium.jitter = Some(serde_json::from_value(jitter).unwrap());
    } else if draw.chance(8) {
        let rows = [(0, rate), (30, rate / 2), (50, rate)];
        let rows = rows.map(|(millis, rate)| (Duration::from_millis(millis), rate)).to_vec();
        one.medium.trace = Some(Arc::new(RateTrace::Rates(Rates::new(rows, true).unwrap())));
    } else if draw.chance(5) {
        let [from, to] = [40, 60].map(Duration::from_millis);
        one.medium.outages = vec![Outage { from, to }];
    }
    if draw.chance(15) {
        let profile = json!({
            "marker": "srtcm", "rate": format!("{}bps", rate / 4), "burst": "3kB", "excess-burst": "4kB",
            "out": draw.of(&["mark", "drop-red", "drop"]),
        });
        let meter = json!({ "name": "edge", "match": { "dscp": draw.of(&CODEPOINTS) }, "profile": profile });
        one.meters = vec![serde_json::from_value(meter).unwrap()];
    }
    one
}

/// Any flow between these routers, which sends about this rate.
fn any_flow(name: String, ends: (u32, u32), rate: u64, until: Duration, draw: &mut Draw) -> FlowSpec {
    let transport = source(draw, rate, until);
    let mut one = flow(name, ends, transport, draw.of(&CODEPOINTS));
    // A burst over several hops meets others at the last if these begin later.
    let offset = micros(draw.of(&[0, 0, 0, 500, 2000, 7000]));
    one.start = (Instant::ZERO + offset, Instant::ZERO + offset);
    if draw.chance(30) {
        let rate = bps(draw.of(&[2_000_000, 20_000_000]));
        one.access = Some(AccessSpec { rate, delay: micros(draw.below(1000)) });
    }
    if draw.chance(20) {
        one.egress = Some(AccessSpec { rate: bps(20_000_000), delay: Duration::ZERO });
    }
    if draw.chance(10) {
        one.dispatch_jitter = Some(micros(1 + draw.below(2000)));
    }
    if draw.chance(25) {
        let profile = json!({
            "marker": "token-bucket", "rate": format!("{}bps", rate / 2 + 1), "burst": format!("{}B", draw.of(&[1500, 4000])),
            "out": draw.of(&["drop", "mark"]), "af": 1 + draw.below(4),
        });
        let profile = serde_json::from_value(profile).unwrap();
        one.marking = match draw.below(3) {
            0 => Marking::Host(profile),
            1 => Marking::Ingress(profile),
            _ => Marking::Edge(0),
        };
    }
    one
}

/// A network of this number: a chain of up to four links, often with a branch that merges into it, and flows
/// over any part of it.
pub fn network(number: u64) -> Network {
    let draw = &mut Draw::new(number);
    let until = Duration::from_millis(400);
    let hops = 1 + draw.below(4) as u32;
    let mut links = Vec::new();
    let back = |name: &str, ends| LinkSpec {
        queue: None,
        ..link(name.into(), ends, 10_000_000, LinkSpec::unlimited())
    };
    for hop in 0..hops {
        let rate = draw.of(&[1_000_000, 2_000_000, 3_000_001, 10_000_000]);
        links.push(any_link(format!("l{hop}"), (hop, hop + 1), rate, draw));
        links.push(back(&format!("back{hop}"), (hop + 1, hop)));
    }
    let branch = draw.chance(40).then(|| draw.below(hops.into()) as u32);
    if let Some(into) = branch {
        let rate = draw.of(&[1_000_000, 5_000_000]);
        links.push(any_link("side".into(), (hops + 1, into), rate, draw));
        links.push(back("side back", (into, hops + 1)));
    }
    let least = links.iter().map(|link| link.rate.as_bps()).min().unwrap();
    let shared = json!({
        "marker": "token-bucket", "rate": format!("{}bps", least / 4), "burst": "4kB", "out": draw.of(&["drop", "mark"]), "af": 4,
    });
    let shared_meters =
        vec![SharedMeter { name: "shared".into(), params: serde_json::from_value(shared).unwrap() }];
    let count = 2 + draw.below(9);
    let load = draw.of(&[30, 60, 90]);
    let flows = (0..count).map(|number| {
        let mut from = draw.below(hops.into()) as u32;
        let to = from + 1 + draw.below((hops - from).into()) as u32;
        if branch.is_some_and(|into| into < to) && draw.chance(40) {
            from = hops + 1;
        }
        let rate = (least * load / 100 / count).max(8_000);
        any_flow(format!("f{number}"), (from, to), rate, until, draw)
    });
    // Some come as a group of flows that are alike.
    let drawn: Vec<FlowSpec> = flows.collect();
    let group = |flow: FlowSpec| {
        let count = draw.of(&[1, 1, 1, 3]);
        (0..count).map(move |copy| FlowSpec { name: format!("{}/{copy}", flow.name), ..flow.clone() })
    };
    let flows = drawn.into_iter().flat_map(group).collect();
    Network {
        nodes: hops + 2,
        links,
        flows,
        shared_meters,
        ..Network::new(until + Duration::from_millis(1200))
    }
}
