//! Window control of a label-switched path, in the simulator and in the data plane: markers and queues
//! receive the same.
//!
//! Hosts send one segment after the other, each when the one before is acknowledged, so that a test can play
//! them: a segment that is lost is their last within the run.

use std::collections::VecDeque;

use etherparse::PacketBuilder;
use perhop_core::measure::LinkOutcome;
use perhop_core::medium::Medium;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Bytes, Color, Dscp, Duration, Ecn, FlowId, Instant, Serializer, ServiceLevel};
use perhop_live::{
    Coloring, ControlSpec, Head, Hop, LinkSpec, Member, MeterSpec, Plane, PlaneSpec, Remark, Selector, Sink,
    StreamSpec, wire,
};
use perhop_sim::transport::tcp::TcpParams;
use perhop_sim::{Engine, FlowSpec, Marking, Network, NodeId, PathSpec, Simulation};

use crate::parameters::AQMS;
use crate::script;

const SEED: u64 = 3;
const DELAY: Duration = Duration::from_millis(3);
const PROBES: Duration = Duration::from_millis(7);
const END: Instant = Instant::from_nanos(400_000_000);
const LABEL: u32 = 5;
/// Every second flow has a contracted rate, and is marked by a meter that hears of its share.
const FLOWS: usize = 24;
const SEGMENTS: u32 = 12;
const HEADERS: usize = 40;
const RATE: &str = "8Mbps";

fn starts(flow: usize) -> Instant {
    Instant::from_nanos(flow as u64 / 3 * 4_000_000)
}

fn size(flow: usize) -> u16 {
    [576, 1000, 1500][flow % 3]
}

fn contracted(flow: usize) -> Option<Bitrate> {
    flow.is_multiple_of(2).then(|| Bitrate::from_bps(200_000 + 10_000 * flow as u64).unwrap())
}

fn control(window: &str) -> perhop_core::control::WindowControl {
    let (interval, window) = window.split_once(", ").unwrap_or(("10ms", window));
    let text = format!(r#"{{"interval": "{interval}", "window": "{window}", "loss": 0.3}}"#);
    serde_json::from_str(&text).unwrap()
}

/// Everything that both drivers tell.
#[derive(Clone, Debug, PartialEq)]
struct Story {
    link: LinkOutcome,
    /// For each flow, packets delivered, and by color packets marked and dropped.
    flows: Vec<(u64, [u64; 3], [u64; 3])>,
    /// At each look, what the queue keeps track of, and the window of each flow as the control last saw it.
    looks: Vec<(Vec<f64>, Vec<f64>)>,
}

#[expect(clippy::too_many_lines, reason = "a network, written out")]
fn simulated(queue: &SchedulerParams, window: &str, engine: Engine) -> Story {
    let rate: Bitrate = RATE.parse().unwrap();
    let link = |name: &str, (from, to), queue| perhop_sim::LinkSpec {
        name: name.into(),
        from: NodeId(from),
        to: NodeId(to),
        rate,
        delay: DELAY,
        queue,
        meters: Vec::new(),
        medium: Medium::default(),
    };
    let flow = |number: usize| {
        let tcp = format!(
            r#"{{"tcp": "newreno", "packet": "{}B", "window": "1p", "initial-rto": "60s", "min-rto": "10s"}}"#,
            size(number)
        );
        let twam = |rate: Bitrate| script::meter(("twam", &format!(r#"{{"rate": "{rate}"}}"#)));
        FlowSpec {
            name: format!("flow {number}"),
            from: NodeId(0),
            to: NodeId(1),
            path: Some(0),
            access: None,
            egress: None,
            dispatch_jitter: None,
            transport: serde_json::from_str::<TcpParams>(&tcp).unwrap().into(),
            marking: contracted(number).map_or(Marking::None, |rate| Marking::Ingress(twam(rate))),
            color: Color::Yellow,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotCapable,
            service: contracted(number),
            reserved: contracted(number),
            tcp_ecn: perhop_sim::transport::tcp::TcpEcn::Off,
            play_out: None,
            out_feedback: None,
            start: (starts(number), starts(number)),
            stop: None,
            volume: Some(Bytes::new(u64::from(size(number)) * u64::from(SEGMENTS))),
            population: None,
        }
    };
    let network = Network {
        nodes: 2,
        links: vec![link("link", (0, 1), Some(queue.clone())), link("back", (1, 0), None)],
        paths: vec![PathSpec {
            name: "gold".into(),
            label: LABEL,
            forward: vec![0],
            backward: vec![1],
            control: Some(control(window)),
        }],
        flows: (0..FLOWS).map(flow).collect(),
        probe_interval: Some(PROBES),
        ..Network::new(END.since(Instant::ZERO))
    };
    let mut simulation = Simulation::on_engine(&network, SEED, engine).unwrap();
    simulation.run_to_end();
    let outcome = simulation.finish().unwrap();
    let series = &outcome.series;
    let look = |row: usize| {
        let gauges = series.queues[0].gauges.iter().map(|(_, values)| values[row]);
        (gauges.collect(), series.seen_packets[row * FLOWS..(row + 1) * FLOWS].to_vec())
    };
    let flow = |(number, flow): (usize, &perhop_sim::FlowOutcome)| {
        let marked = if contracted(number).is_some() { flow.marked } else { [0; 3] };
        (flow.delivered_packets, marked, flow.dropped)
    };
    Story {
        link: outcome.links[0].clone(),
        flows: outcome.flows.iter().enumerate().map(flow).collect(),
        looks: (0..series.times.len()).map(look).collect(),
    }
}

/// The hosts of all flows: what they have sent, and acknowledgements on their way to the ingress.
struct Hosts {
    sent: Vec<u32>,
    acknowledged: Vec<u32>,
    back: Serializer,
    acks: VecDeque<(Instant, usize)>,
}

impl Sink for Hosts {
    fn deliver(&mut self, device: usize, _: &Head, packet: &[u8], due: Instant) {
        if device == 1 {
            let flow = usize::from(wire::parse(packet).unwrap().tuple.source_port);
            self.acks.push_back((self.back.transmit(HEADERS as u16, due) + DELAY, flow));
        }
    }
}

impl Hosts {
    /// The next segment of a flow, if it has one.
    fn segment(&mut self, flow: usize) -> Option<Vec<u8>> {
        let number = self.sent[flow];
        let data = usize::from(size(flow)) - HEADERS;
        (number < SEGMENTS).then(|| {
            self.sent[flow] += 1;
            // The wire's numbers begin again on the way.
            let sequence = (u32::MAX - 3000).wrapping_add(number * data as u32);
            let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 61);
            let mut bytes = Vec::new();
            builder.tcp(flow as u16, 80, sequence, 1000).ack(1).write(&mut bytes, &vec![0; data]).unwrap();
            bytes
        })
    }

    fn acknowledgement(&mut self, flow: usize) -> Vec<u8> {
        self.acknowledged[flow] += 1;
        let data = u32::from(size(flow)) - HEADERS as u32;
        let expected = (u32::MAX - 3000).wrapping_add(self.acknowledged[flow] * data);
        let builder = PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 61);
        let mut bytes = Vec::new();
        builder.tcp(80, flow as u16, 1, 1000).ack(expected).write(&mut bytes, &[]).unwrap();
        bytes
    }
}

/// The data plane of the same link, path and flows.
fn plane_spec(queue: &SchedulerParams, window: &str) -> PlaneSpec {
    let rate: Bitrate = RATE.parse().unwrap();
    let metered: Vec<usize> = (0..FLOWS).filter(|&flow| contracted(flow).is_some()).collect();
    let meter_of = |flow: usize| metered.iter().position(|&number| number == flow);
    let stream = |name: String, flow: usize, device, selector, route| StreamSpec {
        name,
        flow: FlowId(flow as u32).into(),
        device,
        selector,
        coloring: Coloring::Fixed(Color::Yellow, Dscp::DEFAULT),
        remark: Remark::default(),
        service: contracted(flow).map_or(ServiceLevel::NONE, ServiceLevel::of),
        label: LABEL,
        route,
        leaves: 1 - device,
    };
    let port = |flow: usize| Some(flow as u16..=flow as u16);
    let data = |flow: usize| {
        let selector = Selector { source_ports: port(flow), ..Selector::default() };
        let route = [Hop::Data(0, flow)].into_iter().chain(meter_of(flow).map(Hop::Meter));
        stream(format!("flow {flow}"), flow, 0, selector, route.chain([Hop::Link(0)]).collect())
    };
    let acks = |flow: usize| {
        let selector = Selector { destination_ports: port(flow), ..Selector::default() };
        stream(format!("flow {flow} back"), flow, 1, selector, vec![Hop::Ack(0, flow)])
    };
    let (queue, meters, medium) = (queue.clone(), Vec::new(), Medium::default());
    let link = LinkSpec { name: "link".into(), rate, delay: DELAY, queue, meters, medium };
    PlaneSpec {
        reports: Vec::new(),
        devices: 2,
        mtu: 1500,
        buffers: 1024,
        window: (Instant::ZERO, END),
        links: vec![link],
        wires: vec![],
        meters: metered
            .iter()
            .map(|&flow| MeterSpec {
                name: format!("flows/flow {flow}/marker"),
                params: script::meter(("twam", &format!(r#"{{"rate": "{}"}}"#, contracted(flow).unwrap()))),
                rate: Bitrate::MAX,
            })
            .collect(),
        controls: vec![ControlSpec {
            name: "gold".into(),
            label: LABEL,
            control: control(window),
            members: (0..FLOWS)
                .map(|flow| Member {
                    flow: FlowId(flow as u32),
                    rate: contracted(flow),
                    meter: meter_of(flow),
                    segment: u32::from(size(flow)) - HEADERS as u32,
                })
                .collect(),
            links: vec![(0, Duration::ZERO)],
        }],
        streams: (0..FLOWS).map(data).chain((0..FLOWS).map(acks)).collect(),
    }
}

fn forwarded(queue: &SchedulerParams, window: &str) -> Story {
    let rate: Bitrate = RATE.parse().unwrap();
    let mut plane = Plane::new(plane_spec(queue, window), SEED);
    let windows = plane.windows();
    let mut hosts = Hosts {
        sent: vec![0; FLOWS],
        acknowledged: vec![0; FLOWS],
        back: Serializer::new(rate),
        acks: VecDeque::new(),
    };
    let mut begins: VecDeque<usize> = (0..FLOWS).collect();
    let mut looks = Vec::new();
    let mut next_look = Instant::ZERO + PROBES;
    loop {
        let ack = hosts.acks.front().map_or(Instant::NEVER, |&(at, _)| at);
        let begin = begins.front().map_or(Instant::NEVER, |&flow| starts(flow));
        // At one time: what comes to hosts, timers, what comes to links (which the plane does first), looks.
        let now = ack.min(begin).min(next_look);
        if plane.next() < now {
            plane.advance(plane.next(), &mut hosts);
        } else if now > END {
            break;
        } else if ack == now {
            let (_, flow) = hosts.acks.pop_front().unwrap();
            let bytes = hosts.acknowledgement(flow);
            script::offer(&mut plane, 1, &bytes, now, &mut hosts);
            match hosts.segment(flow) {
                Some(bytes) => script::offer(&mut plane, 0, &bytes, now, &mut hosts),
                None => windows.set(flow, None),
            }
        } else if begin == now {
            let flow = begins.pop_front().unwrap();
            windows.set(flow, Some(1));
            let bytes = hosts.segment(flow).unwrap();
            script::offer(&mut plane, 0, &bytes, now, &mut hosts);
        } else {
            plane.advance(now, &mut hosts);
            let (_, _, port) = plane.ports().next().unwrap();
            let gauges = port.gauges.iter().map(|&(_, value)| value).collect();
            looks.push((gauges, plane.sampled_windows().map(|(_, window)| window).collect()));
            next_look += PROBES;
        }
    }
    plane.advance(END, &mut hosts);
    plane.finish(END);
    plane.balance().unwrap();
    let flow = |(_, counts): (&str, &perhop_live::StreamCounts)| {
        (counts.delivered.packets, counts.marked, counts.dropped)
    };
    let flows = plane.streams().take(FLOWS).map(flow).collect();
    let (name, rate, port) = plane.ports().next().unwrap();
    Story { link: LinkOutcome::of(name, rate, &port), flows, looks }
}

#[test]
fn markers_and_queues_are_told_the_same() {
    let mut out = 0;
    for (name, table) in AQMS.iter().filter(|(name, _)| *name == "dwred") {
        let queue = script::aqm((name, table));
        for window in ["passed", "in-flight", "sender", "measured, in-flight"] {
            let live = forwarded(&queue, window);
            out += live.flows.iter().map(|(_, marked, _)| marked[Color::Yellow.index()]).sum::<u64>();
            assert!(live.looks.windows(2).any(|pair| pair[0].0[1] != pair[1].0[1]), "the queue hears");
            for engine in [Engine::Batched, Engine::Reference] {
                let simulated = simulated(&queue, window, engine);
                for (row, (live, simulated)) in live.looks.iter().zip(&simulated.looks).enumerate() {
                    assert_eq!(live, simulated, "{window}, {engine:?}: look {row}");
                }
                assert_eq!(live.flows, simulated.flows, "{window}, {engine:?}");
                assert!(live == simulated, "{window}, {engine:?}");
            }
        }
    }
    assert!(out > 3, "markers hear");
}
