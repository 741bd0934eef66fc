//! Prints the fingerprint of a run with the seed that it is given. Built for `wasm32-unknown-unknown`, it is
//! a module of perhop's core and simulator that exports the same function: `tools/wasm.sh` checks that it
//! imports nothing, and returns what the native program prints.

use perhop_core::aqm::{AqmParams, EcnMode, RioPlusOutParams};
use perhop_core::meter::{MeterParams, Out, TokenBucketParams};
use perhop_core::units::Packets;
use perhop_core::{Bytes, Color, Depth, Dscp, Duration, Ecn, Instant, Thresholds, Weight};
use perhop_sim::transport::tcp::{TcpParams, Variant};
use perhop_sim::{
    AccessSpec, FlowSpec, LinkSpec, Marking, Network, NodeId, Outcome, Simulation, TransportSpec,
};

/// Runs ten seconds of the RI+O paper's Table 1 setting and folds its counters into one number.
#[allow(unsafe_code)]
// SAFETY: no other symbol of this name is linked; the function takes and returns plain integers.
#[unsafe(no_mangle)]
pub extern "C" fn table1_fingerprint(seed: u64) -> u64 {
    let mut simulation = Simulation::new(&table1(), seed).expect("the two routers are linked");
    simulation.run_to_end();
    fold(&simulation.finish().expect("packets are conserved"))
}

/// Returns FNV-1a over the counters that every packet changed.
fn fold(outcome: &Outcome) -> u64 {
    let link = &outcome.links[0];
    let flows =
        outcome.flows.iter().flat_map(|flow| [flow.delivered_bytes, flow.sender.sent, flow.sender.timeouts]);
    let counters = link.counters.arrived.into_iter().chain(link.counters.sent).chain(link.waiting);
    let numbers = flows.chain(counters).chain([outcome.events, link.mean_queue_packets.to_bits()]);
    numbers.fold(0xcbf2_9ce4_8422_2325, |hash, number| (hash ^ number).wrapping_mul(0x0000_0100_0000_01b3))
}

fn table1() -> Network {
    let parse = |text: &str| text.parse::<Thresholds>().expect("a threshold set");
    let queue = AqmParams::RioPlusOut(RioPlusOutParams {
        r#in: parse("390/694/0.02"),
        total: parse("347/694/0.05"),
        out: parse("10/30/0.01"),
        averages: perhop_core::aqm::Averages::EveryArrival,
        limit: Depth::Packets(868),
        weight: Weight::new(0.002).expect("a weight"),
        wait: true,
        gentle: false,
        ecn: EcnMode::Off,
        mean_packet: Bytes::new(576),
        scale_by_size: true,
    });
    let link = |name: &str, from, to, queue| LinkSpec {
        name: name.into(),
        from: NodeId(from),
        to: NodeId(to),
        rate: "20Mbps".parse().expect("a rate"),
        delay: Duration::from_millis(48),
        queue,
        meters: Vec::new(),
        medium: perhop_core::medium::Medium::default(),
    };
    Network {
        nodes: 2,
        links: vec![link("bottleneck", 0, 1, Some(queue.into())), link("reverse", 1, 0, None)],
        flows: (0..40).map(flow).collect(),
        ..Network::new(Duration::from_secs(10))
    }
}

#[expect(clippy::disallowed_macros, reason = "a program for the shell")]
fn main() {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).expect("usage: fingerprint SEED");
    println!("{}", table1_fingerprint(seed));
}

fn flow(number: usize) -> FlowSpec {
    let rates = ["2Mbps", "1Mbps", "0.5Mbps", "0.2Mbps", "0.1Mbps"];
    let access =
        Some(AccessSpec { rate: "10Mbps".parse().expect("a rate"), delay: Duration::from_millis(1) });
    let rate = rates.get(number / 4).map(|rate| rate.parse().expect("a rate"));
    FlowSpec {
        name: number.to_string(),
        from: NodeId(0),
        to: NodeId(1),
        path: None,
        access: access.clone(),
        egress: access,
        dispatch_jitter: None,
        transport: TransportSpec::from(TcpParams {
            packet: Bytes::new(576),
            initial_window: Packets::new(1),
            ..TcpParams::new(Variant::NewReno)
        }),
        marking: rate.map_or(Marking::None, |rate| {
            Marking::Host(MeterParams::TokenBucket(TokenBucketParams {
                rate,
                burst: Bytes::new(40_000),
                af: None,
                out: Out::Mark,
            }))
        }),
        color: Color::Yellow,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotCapable,
        service: rate,
        reserved: rate,
        tcp_ecn: perhop_sim::transport::tcp::TcpEcn::Off,
        play_out: None,
        out_feedback: None,
        start: (Instant::ZERO, Instant::from_nanos(1_000_000_000)),
        stop: None,
        volume: None,
        population: None,
    }
}
