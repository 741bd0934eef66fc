//! The RI+O paper's Table 1 setting, and others built from it.

use perhop_core::aqm::AqmParams;
use perhop_core::meter::MeterParams;
use perhop_core::{Duration, Instant};
use perhop_sim::transport::tcp::TcpParams;
use perhop_sim::{AccessSpec, FlowSpec, LinkSpec, Network, NodeId, TransportSpec};

pub const RIO: &str = r#"{"in": "390/694/0.02", "total": "347/694/0.05", "limit": "868p"}"#;

pub fn aqm(name: &str, table: &str) -> AqmParams {
    AqmParams::deserialize_named(name, &mut serde_json::Deserializer::from_str(table)).unwrap().unwrap()
}

pub fn tcp(table: &str) -> TransportSpec {
    TransportSpec::Tcp(serde_json::from_str::<TcpParams>(table).unwrap())
}

pub fn profile(rate: &str) -> MeterParams {
    let table = format!(r#"{{"rate": "{rate}", "burst": "40kB"}}"#);
    MeterParams::deserialize_named("token-bucket", &mut serde_json::Deserializer::from_str(&table))
        .unwrap()
        .unwrap()
}

/// Both directions of a link; only the forward one has a queue rule.
pub fn duplex(name: &str, from: u32, to: u32, rate: &str, delay: &str, queue: AqmParams) -> [LinkSpec; 2] {
    let link = |name: String, from, to, queue| LinkSpec {
        name,
        from: NodeId(from),
        to: NodeId(to),
        rate: rate.parse().unwrap(),
        delay: delay.parse().unwrap(),
        queue,
    };
    [link(name.into(), from, to, Some(queue)), link(format!("{name} (reverse)"), to, from, None)]
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
        profile,
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
