//! Both engines on small networks, with access to their packets in transit.

use std::sync::Arc;

use super::simulation::Run;
use super::*;
use crate::choice::{Engine, EngineUsed, Refusal};
use crate::network::{AccessSpec, FlowSpec, LinkSpec, Marking, Network, NodeId, TransportSpec};
use crate::packet::SimPacket;
use crate::transport::packet_trace::{PacketTrace, TracedPacket};
use crate::transport::tcp::TcpParams;
use crate::transport::udp::UdpParams;
use crate::watch::{WATCH_INTERVAL, Watch};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Color, Dscp, Duration, Ecn, FlowId, Header, Instant};

/// A flow of 9 Mbit/s that comes to two links of 8 Mbit/s.
fn two_links(ecn: Ecn, engine: Engine) -> Simulation {
    let udp = r#"{"udp": "cbr", "rate": "9Mbps", "packet": "1000B", "jitter": 0.0}"#;
    let network = two_links_for(TransportSpec::Udp(serde_json::from_str(udp).unwrap()), ecn);
    Simulation::on_engine(&network, 1, engine).unwrap()
}

fn two_links_for(transport: TransportSpec, ecn: Ecn) -> Network {
    let red = r#"{"scheduler": "fifo", "rule": {"aqm": "red", "thresholds": "1/30/0.5", "limit": "99p", "weight": 1, "ecn": true}}"#;
    let red: SchedulerParams = serde_json::from_str(red).unwrap();
    let link = |from: u32| LinkSpec {
        name: format!("link {from}"),
        from: NodeId(from),
        to: NodeId(from + 1),
        rate: "8Mbps".parse().unwrap(),
        delay: Duration::from_secs(1),
        queue: Some(red.clone()),
        meters: Vec::new(),
        medium: perhop_core::medium::Medium::default(),
    };
    let flow = FlowSpec {
        name: "flow".into(),
        from: NodeId(0),
        to: NodeId(2),
        path: None,
        access: None,
        egress: None,
        dispatch_jitter: None,
        transport,
        marking: Marking::None,
        color: Color::Yellow,
        dscp: Dscp::DEFAULT,
        ecn,
        service: None,
        reserved: None,
        tcp_ecn: crate::transport::tcp::TcpEcn::Off,
        play_out: None,
        out_feedback: None,
        start: (Instant::ZERO, Instant::ZERO),
        stop: None,
        volume: None,
        population: None,
    };
    Network {
        nodes: 3,
        links: vec![link(0), link(1)],
        flows: vec![flow],
        ..Network::new(Duration::from_secs(9))
    }
}

impl Simulation {
    /// Takes the packets on their way to a link that come before `bound`.
    fn take_arrivals(&mut self, link: usize, bound: Instant) -> Vec<SimPacket> {
        match &mut self.run {
            Run::Batched(engine) => engine.take_arrivals(link, bound),
            Run::Reference(engine) => engine.take_arrivals(link, bound),
            Run::Parallel(_) => unreachable!("it was not asked for"),
        }
    }
}

/// The packets that come to the second of two links, after the first has notified every packet that it would
/// have dropped.
fn come_to_the_second_link(ecn: Ecn, engine: Engine) -> (Vec<SimPacket>, u64) {
    let mut simulation = two_links(ecn, engine);
    simulation.run_until(Instant::ZERO + Duration::from_millis(900));
    let packets = simulation.take_arrivals(1, Instant::from_nanos(1_850_000_000));
    let counters = simulation.finish().unwrap().links[0].counters.clone();
    (packets, counters.notifications().flat_map(|(_, by_color)| by_color).sum())
}

#[test]
fn packets_carry_congestion_marks_to_the_next_link() {
    let (packets, notified) = come_to_the_second_link(Ecn::Capable0, Engine::Batched);
    let marked = packets.iter().filter(|packet| packet.header().ecn == Ecn::Congested).count() as u64;
    assert!(marked > 20 && marked < packets.len() as u64 && marked <= notified, "{marked} of {notified}");
    assert!(packets.iter().all(|packet| packet.header().ecn.is_capable()));
    assert_eq!(come_to_the_second_link(Ecn::Capable0, Engine::Reference).0, packets);
    let (packets, notified) = come_to_the_second_link(Ecn::NotCapable, Engine::Batched);
    assert!(notified == 0 && packets.iter().all(|packet| packet.header().ecn == Ecn::NotCapable));
}

#[test]
fn a_run_with_much_to_do_ends_soon_after_its_watch_stops_it() {
    for engine in Engine::ALL {
        let mut simulation = two_links(Ecn::NotCapable, engine);
        for number in 0..50_000 {
            let header = Header::new(FlowId(0), 1000);
            let at = Instant::from_nanos(u64::from(number) * 2_000_000);
            let packet = SimPacket::new(&header, 0, number).due(at);
            match &mut simulation.run {
                Run::Batched(engine) => engine.add_arrival(0, packet),
                Run::Reference(engine) => engine.add_arrival(0, packet),
                Run::Parallel(_) => unreachable!("it was not asked for"),
            }
        }
        simulation.watch.stop();
        simulation.run_to_end();
        let events = simulation.finish().unwrap().events;
        assert!(events < 2 * WATCH_INTERVAL, "{events}");
    }
}

#[test]
fn paced_flows_run_alike_on_both_engines() {
    let outcome = |transport: &str, engine| {
        let transport = serde_json::from_str::<TcpParams>(transport).unwrap().into();
        let mut network = two_links_for(transport, Ecn::NotCapable);
        let back = [(2, 1), (1, 0)].map(|(from, to)| {
            let name = format!("back from {from}");
            LinkSpec { name, from: NodeId(from), to: NodeId(to), queue: None, ..network.links[0].clone() }
        });
        network.links.extend(back);
        network.links.iter_mut().for_each(|link| link.delay = Duration::from_millis(5));
        Simulation::run(&network, 1, Some(engine), &Watch::default()).unwrap()
    };
    for recovery in ["false", "true"] {
        let paced = format!(r#"{{"tcp": "newreno", "congestion": "paced", "sack": {recovery}}}"#);
        let (batched, reference) = (outcome(&paced, Engine::Batched), outcome(&paced, Engine::Reference));
        assert_eq!(batched.flows, reference.flows);
        assert!(batched.flows[0].delivered_packets > 500 && batched.flows[0].sender.fast_retransmits > 0);
    }
}

/// Five flows whose data is out of profile and goes first, while what opens a connection is small enough to
/// be in profile. Datagrams fill the link, so it waits and is sent again and again. They pause after 1.2 s,
/// so that the first of each flow gets through, and stop after 10 s.
fn opened_again() -> Network {
    let opens = r#"{"tcp": "reno", "packet": "1000B", "ack": "400B", "window": "1p", "handshake": true, "initial-rto": "100ms"}"#;
    let mut network =
        two_links_for(serde_json::from_str::<TcpParams>(opens).unwrap().into(), Ecn::NotCapable);
    let rule = r#"{"aqm": "drop-tail", "limit": "999p"}"#;
    let queue = format!(
        r#"{{"scheduler": "priority", "queues": [{{"name": "out", "match": {{"dscp": "AF12"}}, "rule": {rule}}}, {{"name": "rest", "rule": {rule}}}]}}"#
    );
    (network.nodes, network.duration) = (2, Duration::from_secs(20));
    for (number, link) in network.links.iter_mut().enumerate() {
        (link.from, link.to) = (NodeId(number as u32), NodeId(1 - number as u32));
        link.delay = Duration::from_millis(1);
        link.queue = (number == 0).then(|| serde_json::from_str(&queue).unwrap());
    }
    let access = AccessSpec { rate: "10Mbps".parse().unwrap(), delay: Duration::from_millis(1) };
    let profile = r#"{"marker": "token-bucket", "rate": "64kbps", "burst": "500B"}"#;
    network.flows[0].to = NodeId(1);
    let start = Instant::ZERO + Duration::from_millis(5);
    network.flows[0].start = (start, start);
    network.flows[0].egress = Some(access.clone());
    network.flows[0].access = Some(access);
    let mut flows = vec![network.flows[0].clone(); 6];
    for flow in &mut flows {
        flow.marking = Marking::Host(serde_json::from_str(profile).unwrap());
    }
    let packets = (0_u64..10_000).filter(|&ms| ms / 6 != 200).map(|ms| TracedPacket {
        at: Duration::from_millis(ms.saturating_sub(1)),
        size: 1000,
        dscp: None,
    });
    let trace = PacketTrace::new(packets.collect()).unwrap();
    flows[5].transport = TransportSpec::Udp(UdpParams::traced(&Arc::new(trace)));
    (flows[5].marking, flows[5].dscp, flows[5].access) = (Marking::None, Dscp::new(12).unwrap(), None);
    flows[5].start = (Instant::ZERO, Instant::ZERO);
    Network { flows, ..network }
}

#[test]
fn a_return_path_has_no_fixed_delay_while_what_opened_a_connection_twice_is_in_transit() {
    let network = opened_again();
    let [mut batched, mut reference] =
        Engine::ALL.map(|engine| Simulation::on_engine(&network, 1, engine).unwrap());
    let is_fixed = |simulation: &Simulation| match &simulation.run {
        Run::Batched(engine) => Some(engine.has_fixed_delays()),
        Run::Reference(_) | Run::Parallel(_) => None,
    };
    for (seconds, fixed) in [(9, false), (20, true)] {
        for simulation in [&mut batched, &mut reference] {
            simulation.run_until(Instant::ZERO + Duration::from_secs(seconds));
            assert!(is_fixed(simulation).is_none_or(|is_fixed| is_fixed == fixed), "{seconds} s");
        }
    }
    let [batched, reference] = [batched, reference].map(|simulation| simulation.finish().unwrap());
    assert_eq!(batched.flows, reference.flows);
    assert_eq!((&batched.links, batched.hops), (&reference.links, reference.hops));
    assert!(
        batched.flows[..5].iter().all(|flow| flow.sender.retransmitted >= 2 && flow.throughput_bps > 1e5)
    );
}

#[test]
fn a_network_without_look_ahead_runs_on_the_reference_engine() {
    let udp = r#"{"udp": "cbr", "rate": "9Mbps", "packet": "1000B", "jitter": 0.0}"#;
    let mut network = two_links_for(TransportSpec::Udp(serde_json::from_str(udp).unwrap()), Ecn::NotCapable);
    network.duration = Duration::from_millis(100);
    let run = |network: &Network, requested| Simulation::run(network, 1, requested, &Watch::default());
    assert_eq!(run(&network, None).unwrap().engine, Some(EngineUsed::Batched));
    assert_eq!(run(&network, Some(Engine::Reference)).unwrap().engine, Some(EngineUsed::Requested));
    network.links[1].delay = Duration::ZERO;
    network.links[1].rate = "9000Gbps".parse().unwrap();
    let refusal = Refusal::NoLookahead { link: "link 1".into() };
    assert_eq!(run(&network, Some(Engine::Batched)), Err(Failure::Refused(refusal.clone())));
    assert_eq!(run(&network, None).unwrap().engine, Some(EngineUsed::Refused(refusal.clone())));
    assert_eq!(
        refusal.to_string(),
        "link `link 1` leaves no look-ahead: a packet passes it in less than 1 ns"
    );
}

#[test]
fn a_class_without_an_implementation_is_refused_by_name() {
    let udp = r#"{"udp": "cbr", "rate": "9Mbps", "packet": "1000B", "jitter": 0.0}"#;
    let mut network = two_links_for(TransportSpec::Udp(serde_json::from_str(udp).unwrap()), Ecn::NotCapable);
    let class = r#"{"scheduler": "fifo", "rule": {"aqm": "python", "class": "my:Aqm", "limit": "9p"}}"#;
    network.links[1].queue = Some(serde_json::from_str(class).unwrap());
    let failure = Simulation::run(&network, 1, None, &Watch::default()).unwrap_err();
    assert_eq!(failure, Failure::NotImplemented { class: "my:Aqm".into(), place: "link `link 1`".into() });
    assert!(failure.to_string().starts_with("link `link 1`: `my:Aqm` is a class in Python"));
    network.links[1].queue = None;
    let meter = r#"{"marker": "python", "class": "my:Meter", "rate": "1Mbps"}"#;
    network.flows[0].marking = Marking::Ingress(serde_json::from_str(meter).unwrap());
    let failure = Simulation::run(&network, 1, None, &Watch::default()).unwrap_err();
    assert!(failure.to_string().starts_with("its first router: `my:Meter` is a class in Python"));
}
