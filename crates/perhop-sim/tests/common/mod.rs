//! The RI+O paper's Table 1 setting, and others built from it.
#![allow(dead_code, reason = "each file uses its part")]

use perhop_core::aqm::AqmParams;
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Color, Dscp, Duration, Instant};
use perhop_sim::transport::tcp::TcpParams;
use perhop_sim::{AccessSpec, FlowSpec, LinkSpec, Marking, Network, NodeId, TransportSpec};

pub const RIO: &str = r#"{"in": "390/694/0.02", "total": "347/694/0.05", "limit": "868p"}"#;

pub fn aqm(name: &str, table: &str) -> AqmParams {
    AqmParams::deserialize_named(name, &mut serde_json::Deserializer::from_str(table)).unwrap().unwrap()
}

pub fn scheduler(table: &str) -> SchedulerParams {
    serde_json::from_str(table).unwrap()
}

pub fn tcp(table: &str) -> TransportSpec {
    TransportSpec::Tcp(serde_json::from_str::<TcpParams>(table).unwrap())
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
    };
    [link(name.into(), from, to, Some(queue.into())), link(format!("{name} (reverse)"), to, from, None)]
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
        access: access.clone(),
        egress: access,
        transport,
        service: profile.as_ref().map(MeterParams::rate),
        reserved: profile.as_ref().map(MeterParams::rate),
        marking: profile.map_or(Marking::None, Marking::Host),
        color: Color::Yellow,
        dscp: Dscp::DEFAULT,
        out_feedback: None,
        start: (Instant::ZERO, Instant::from_nanos(1_000_000_000)),
        stop: None,
        volume: None,
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

/// Ten Reno flows over `rate`, two each at 0, 0.1, 0.5, 1 and 2 Mbit/s: Yeom and Reddy's Table 1. `meter` makes a flow's
/// meter from its rate.
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
