//! The RI+O paper's Table 1 setting, and others built from it.
#![allow(dead_code, reason = "each file uses its part")]

use std::sync::Arc;

use perhop_core::aqm::AqmParams;
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Color, Counters, Dscp, Duration, Ecn, Instant};
use perhop_sim::measures::{FLOW, LINK, Measure, Queue, QueueMeasures, Unit, Value};
use perhop_sim::transport::packet_trace::{PacketTrace, TracedPacket};
use perhop_sim::transport::rap::RapParams;
use perhop_sim::transport::tcp::TcpParams;
use perhop_sim::transport::tfrc::TfrcParams;
use perhop_sim::transport::udp::UdpParams;
use perhop_sim::{
    AccessSpec, Engine, FlowSpec, LinkSpec, Marking, Network, NodeId, Outcome, Simulation, TransportSpec,
};

pub const RIO: &str = r#"{"in": "390/694/0.02", "total": "347/694/0.05", "limit": "868p"}"#;

pub fn aqm(name: &str, table: &str) -> AqmParams {
    AqmParams::deserialize_named(name, &mut serde_json::Deserializer::from_str(table)).unwrap().unwrap()
}

pub fn scheduler(table: &str) -> SchedulerParams {
    serde_json::from_str(table).unwrap()
}

pub fn tcp(table: &str) -> TransportSpec {
    serde_json::from_str::<TcpParams>(table).unwrap().into()
}

pub fn udp(table: &str) -> TransportSpec {
    TransportSpec::Udp(serde_json::from_str::<UdpParams>(table).unwrap())
}

/// The packets of a trace: milliseconds, bytes and codepoint of each.
pub fn traced(packets: impl IntoIterator<Item = (u64, u16, Option<u8>)>) -> TransportSpec {
    let packets = packets.into_iter().map(|(millis, size, dscp)| TracedPacket {
        at: Duration::from_millis(millis),
        size,
        dscp: dscp.map(|dscp| Dscp::new(dscp).unwrap()),
    });
    TransportSpec::Udp(UdpParams::traced(&Arc::new(PacketTrace::new(packets.collect()).unwrap())))
}

pub fn rap(table: &str) -> TransportSpec {
    TransportSpec::Rap(serde_json::from_str::<RapParams>(table).unwrap())
}

pub fn tfrc(table: &str) -> TransportSpec {
    TransportSpec::Tfrc(serde_json::from_str::<TfrcParams>(table).unwrap())
}

pub fn meter(name: &str, table: &str) -> MeterParams {
    MeterParams::deserialize_named(name, &mut serde_json::Deserializer::from_str(table)).unwrap().unwrap()
}

pub fn profile(rate: &str) -> MeterParams {
    meter("token-bucket", &format!(r#"{{"rate": "{rate}", "burst": "40kB"}}"#))
}

/// Both directions of a link; only the forward one has a queue rule.
pub fn duplex(
    name: &str,
    from: u32,
    to: u32,
    rate: &str,
    delay: &str,
    queue: impl Into<SchedulerParams>,
) -> [LinkSpec; 2] {
    let link = |name: String, from, to, queue| LinkSpec {
        name,
        from: NodeId(from),
        to: NodeId(to),
        rate: rate.parse().unwrap(),
        delay: delay.parse().unwrap(),
        queue,
        meters: Vec::new(),
        medium: perhop_core::medium::Medium::default(),
    };
    [link(name.into(), from, to, Some(queue.into())), link(format!("{name} (reverse)"), to, from, None)]
}

/// A chain of such links over so many hops; with `back`, the reverse direction is that many kbit/s wide and
/// drops from its tail.
pub fn chain(
    hops: u32,
    rate: &str,
    delay: &str,
    queue: &SchedulerParams,
    back: Option<u64>,
) -> Vec<LinkSpec> {
    let link = |n: u32| {
        let mut links = duplex(&format!("l{n}"), n, n + 1, rate, delay, queue.clone());
        if let Some(back) = back {
            links[1].rate = format!("{back}kbps").parse().unwrap();
            links[1].queue = Some(aqm("drop-tail", r#"{"limit": "7p"}"#).into());
        }
        links
    };
    (0..hops).flat_map(link).collect()
}

pub fn flow(
    name: String,
    from: u32,
    to: u32,
    transport: TransportSpec,
    profile: Option<MeterParams>,
) -> FlowSpec {
    let access = Some(AccessSpec { rate: "10Mbps".parse().unwrap(), delay: Duration::from_millis(1) });
    FlowSpec {
        name,
        from: NodeId(from),
        to: NodeId(to),
        path: None,
        access: access.clone(),
        egress: access,
        dispatch_jitter: None,
        transport,
        service: profile.as_ref().map(MeterParams::rate),
        reserved: profile.as_ref().map(MeterParams::rate),
        marking: profile.map_or(Marking::None, Marking::Host),
        color: Color::Yellow,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotCapable,
        tcp_ecn: perhop_sim::transport::tcp::TcpEcn::Off,
        play_out: None,
        out_feedback: None,
        start: (Instant::ZERO, Instant::from_nanos(1_000_000_000)),
        stop: None,
        volume: None,
        population: None,
    }
}

/// Every transport over a link and back over a narrow one, each with and without a private link at either
/// end, in profile and out: data, acknowledgements and reports are dropped.
pub fn every_transport(queue: AqmParams, seconds: u64) -> Network {
    let transports = [
        tcp(r#"{"tcp": "newreno"}"#),
        udp(r#"{"udp": "cbr", "rate": "300kbps"}"#),
        udp(r#"{"udp": "on-off", "rate": "600kbps", "packet": "200B", "on": "1.004s", "off": "1.587s"}"#),
        rap(r#"{"rap": "aimd"}"#),
        tfrc(r#"{"tfrc": "rfc5348"}"#),
    ];
    let flows = (0..20).map(|n| {
        let (transport, access, egress) = (n % 5, n / 5 % 2 == 0, n / 10 == 0);
        let metered = (n % 4 == 0).then(|| profile("0.2Mbps"));
        let mut flow = flow(format!("{n}"), 0, 1, transports[transport].clone(), metered);
        flow.access = flow.access.filter(|_| access);
        flow.egress = flow.egress.filter(|_| egress);
        flow
    });
    let mut links = duplex("there", 0, 1, "4Mbps", "18ms", queue);
    links[1].rate = "70kbps".parse().unwrap();
    links[1].queue = Some(aqm("drop-tail", r#"{"limit": "12p"}"#).into());
    Network {
        nodes: 2,
        links: links.into(),
        flows: flows.collect(),
        probe_interval: Some(Duration::from_millis(130)),
        warmup: Duration::from_secs(seconds / 4),
        ..Network::new(Duration::from_secs(seconds))
    }
}

/// Forty `NewReno` flows over 20 Mbit/s: four each at 2, 1, 0.5, 0.2 and 0.1 Mbit/s, and twenty best effort.
pub fn table1(queue: AqmParams, seconds: u64) -> Network {
    let rates = ["2Mbps", "1Mbps", "0.5Mbps", "0.2Mbps", "0.1Mbps"];
    let transport = tcp(r#"{"tcp": "newreno", "packet": "576B"}"#);
    let flows = (0..40)
        .map(|n| flow(format!("{n}"), 0, 1, transport.clone(), rates.get(n / 4).map(|rate| profile(rate))))
        .collect();
    Network {
        nodes: 2,
        links: duplex("bottleneck", 0, 1, "20Mbps", "48ms", queue).into(),
        flows,
        probe_interval: Some(Duration::from_secs(1)),
        ..Network::new(Duration::from_secs(seconds))
    }
}

/// Ten Reno flows over `rate`, two each at 0, 0.1, 0.5, 1 and 2 Mbit/s: Yeom and Reddy's Table 1. `meter`
/// makes a flow's meter from its rate.
pub fn yeom(rate: &str, queue: AqmParams, variant: &str, meter: impl Fn(&str) -> MeterParams) -> Network {
    let rates = [None, Some("0.1Mbps"), Some("0.5Mbps"), Some("1Mbps"), Some("2Mbps")];
    let transport = tcp(&format!(r#"{{"tcp": "{variant}", "packet": "1000B"}}"#));
    let flows = (0..10)
        .map(|n| {
            let mut flow = flow(format!("{n}"), 0, 1, transport.clone(), rates[n / 2].map(&meter));
            flow.access =
                Some(AccessSpec { rate: "100Mbps".parse().unwrap(), delay: Duration::from_millis(1) });
            flow.egress.clone_from(&flow.access);
            flow
        })
        .collect();
    Network {
        nodes: 2,
        links: duplex("bottleneck", 0, 1, rate, "18ms", queue).into(),
        flows,
        ..Network::new(Duration::from_secs(30))
    }
}

/// Runs a network on this engine, with the seed 1.
pub fn run(network: &Network, engine: Engine) -> Outcome {
    let mut simulation = Simulation::on_engine(network, 1, engine).unwrap();
    simulation.run_to_end();
    simulation.finish().unwrap()
}

/// Runs on both engines, which must agree.
pub fn run_alike(network: &Network) -> Outcome {
    let [batched, reference] = [Engine::Batched, Engine::Reference].map(|engine| run(network, engine));
    check_measures(&batched);
    assert_eq!(batched.flows, reference.flows);
    assert_eq!(batched.applications, reference.applications);
    assert_eq!((&batched.links, batched.hops), (&reference.links, reference.hops));
    batched
}

/// What holds of the measures of any run: parts of a whole lie between 0 and 1, and quantiles in their order
/// up to the largest.
pub fn check_measures(outcome: &Outcome) {
    outcome.flows.iter().for_each(|flow| check_fractions(FLOW, flow));
    for link in &outcome.links {
        check_fractions(LINK, link);
        check_queue(link);
        link.classes.iter().for_each(check_queue);
    }
}

fn check_queue<O: Queue>(queue: &O) {
    // A packet that waited when the warm-up ended may be dropped after it: the loss of a queue is over what
    // arrived since.
    let is_loss = |measure: &&Measure<O>| measure.name.starts_with("loss");
    check_fractions(QueueMeasures::<O>::ALL.iter().filter(|measure| !is_loss(measure)), queue);
    let (all, measured) = (queue.counters(), queue.measured());
    for color in Color::ALL {
        let of = color.index();
        let gone = |counters: &Counters| counters.sent[of] + counters.dropped_of(color);
        let waited = (all.arrived[of] - measured.arrived[of]) - (gone(all) - gone(measured));
        assert!(
            measured.dropped_of(color) <= measured.arrived[of] + waited,
            "{color:?}: {measured:?}, {waited} waited"
        );
    }
    let waits = ["delay_p50_s", "delay_p95_s", "delay_p99_s", "delay_max_s"];
    let waits = waits.map(|name| {
        value(QueueMeasures::<O>::ALL.iter().find(|measure| measure.name == name).unwrap(), queue)
    });
    assert!(waits.is_sorted(), "{waits:?}");
}

fn check_fractions<'a, O: 'a>(measures: impl IntoIterator<Item = &'a Measure<O>>, outcome: &O) {
    // A packet goes on at the rate at which it began, so a full link whose rate falls sends a little more
    // than its capacity: `active_time.rs` computes `utilization` anew.
    let fractions = measures.into_iter().filter(|measure| measure.unit == Unit::Fraction);
    for measure in fractions.filter(|measure| measure.name != "utilization") {
        let share = value(measure, outcome);
        assert!(share.is_none_or(|share| (0.0..=1.0 + 1e-9).contains(&share)), "{}: {share:?}", measure.name);
    }
}

fn value<O>(measure: &Measure<O>, outcome: &O) -> Option<f64> {
    match measure.value {
        Value::Count(of) => Some(of(outcome) as f64),
        Value::Number(of) => Some(of(outcome)),
        Value::Optional(of) => of(outcome),
        Value::OptionalCount(of) => of(outcome).map(|count| count as f64),
        Value::ByColor(_) | Value::OptionalByColor(_) => None,
    }
}
