//! The time to bound a large network: 5000 ports, 100 000 flows, each over five of them.

use perhop_bounds::bounds;
use perhop_core::medium::Medium;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Color, Dscp, Duration, Ecn, Instant};
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::transport::udp::UdpParams;
use perhop_sim::{FlowSpec, LinkSpec, Marking, Network, NodeId, TransportSpec};
use serde_json::json;

const CHAINS: u32 = 50;
const HOPS: u32 = 100;
const FLOWS: u32 = 100_000;

fn main() {
    divan::main();
}

/// Chains of ports with two classes; flows differ in their rates, so that none is like the one before it, or
/// not.
fn network(alike: bool) -> Network {
    let queue = json!({
        "scheduler": "priority",
        "queues": [
            { "name": "voice", "match": { "dscp": 46 }, "rule": { "aqm": "drop-tail", "limit": "1000p" } },
            { "name": "rest", "rule": { "aqm": "drop-tail", "limit": "1000p" } },
        ],
    });
    let queue: SchedulerParams = serde_json::from_value(queue).unwrap();
    let node = |chain: u32, hop: u32| NodeId(chain * (HOPS + 1) + hop);
    let links =
        (0..CHAINS).flat_map(|chain| (0..HOPS).map(move |hop| (chain, hop))).map(|(chain, hop)| LinkSpec {
            name: format!("{chain}-{hop}"),
            from: node(chain, hop),
            to: node(chain, hop + 1),
            rate: Bitrate::from_bps(1_000_000_000).unwrap(),
            delay: Duration::ZERO,
            queue: Some(queue.clone()),
            meters: Vec::new(),
            medium: Medium::default(),
        });
    let flows = (0..FLOWS).map(|number| {
        let group = number / 20;
        let (chain, hop) = (group % CHAINS, group / CHAINS % (HOPS - 5));
        let rate = if alike { 100_000 } else { 100_000 + number % 1000 };
        let source: UdpParams = serde_json::from_value(json!({
            "udp": "cbr", "rate": format!("{rate}bps"), "packet": "200B",
        }))
        .unwrap();
        FlowSpec {
            name: format!("f{number}"),
            from: node(chain, hop),
            to: node(chain, hop + 5),
            path: None,
            access: None,
            egress: None,
            dispatch_jitter: None,
            transport: TransportSpec::Udp(source),
            service: None,
            reserved: None,
            marking: Marking::None,
            color: Color::Green,
            dscp: Dscp::new(if number % 4 == 0 && !alike { 0 } else { 46 }).unwrap(),
            ecn: Ecn::NotCapable,
            tcp_ecn: TcpEcn::Off,
            play_out: None,
            out_feedback: None,
            start: (Instant::ZERO, Instant::ZERO),
            stop: None,
            volume: None,
            population: None,
        }
    });
    let (links, flows) = (links.collect(), flows.collect());
    Network { nodes: CHAINS * (HOPS + 1), links, flows, ..Network::new(Duration::from_secs(10)) }
}

#[divan::bench(args = [true, false], sample_count = 3, sample_size = 1)]
fn five_thousand_ports(bencher: divan::Bencher<'_, '_>, alike: bool) {
    let network = network(alike);
    bencher.bench(|| bounds(&network));
}
