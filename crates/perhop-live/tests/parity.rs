//! One script of packets through the simulator and through the data plane: every packet meets the same fate
//! at the same time.
//!
//! In the simulator each packet is a flow of its own, on both engines; in the data plane it is bytes,
//! distinguished by their ports, on a virtual clock. Everything that both measure is compared exactly, for
//! every registered block. `control.rs` does the same with TCP under window control. One long file, since the
//! script, its two drivers and what they are compared by belong together.

use std::sync::Arc;

use etherparse::{
    IpFragOffset, IpHeaders, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6Header, PacketBuilder,
};
use perhop_core::aqm::AqmParams;
use perhop_core::marker::AfClass;
use perhop_core::measure::{LinkOutcome, PortView};
use perhop_core::medium::{Change, Jitter, Medium, Opportunities, Outage, RateTrace, Rates};
use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{
    Bitrate, Bytes, Color, Dscp, Duration, Ecn, FlowId, Instant, Probability, Reason, Rng, Role,
    ServiceLevel, registry,
};
use perhop_live::{
    Coloring, Head, Hop, LinkSpec, Loss, Lost, MeterSpec, Plane, PlaneSpec, Remark, Selector, Sink,
    StreamSpec, wire,
};
use perhop_sim::transport::udp::UdpParams;
use perhop_sim::{
    Engine, FlowSpec, Marking, Network, NodeId, PathSpec, SharedMeter, Simulation, TransportSpec,
};
use proptest::prelude::*;

use crate::parameters::{AQMS, METERS, SCHEDULERS};
use crate::script;

const SEED: u64 = 7;
const DELAY: Duration = Duration::from_millis(3);
const PROBES: Duration = Duration::from_millis(7);

/// A packet of a script.
#[derive(Clone, Copy, Debug)]
struct Scripted {
    at: Instant,
    size: u16,
    color: Color,
    dscp: Dscp,
    ecn: Ecn,
    service: ServiceLevel,
    label: u32,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The packet reached the far end of the link.
    Delivered(Instant),
    /// The packet was dropped, having this color.
    Dropped(Color),
    /// The link lost the packet after it had sent it.
    Lost,
    /// The packet's meter dropped it, having given it this color.
    Policed(Color),
    /// The packet is under way.
    Inside,
}

/// Everything that both drivers tell.
#[derive(Clone, Debug, PartialEq)]
struct Story {
    fates: Vec<Fate>,
    /// Packets that a meter gave each color.
    marked: [u64; 3],
    link: LinkOutcome,
    /// At each look: packets that wait, and by class those that wait, came and were dropped; what the queue
    /// keeps track of.
    looks: Vec<Look>,
}

#[derive(Clone, Debug, PartialEq)]
struct Look {
    waiting: f64,
    classes: Vec<(String, [f64; 3])>,
    /// Without a value where it has none yet.
    gauges: Vec<(String, Option<f64>)>,
}

/// A link, with a meter before it if there is one.
#[derive(Clone, Debug)]
struct Setting {
    rate: Bitrate,
    queue: SchedulerParams,
    meter: Option<MeterParams>,
    /// Meters of the link.
    meters: Vec<AggregateMeter>,
    medium: Medium,
}

impl Setting {
    fn of(queue: SchedulerParams) -> Self {
        Self {
            rate: "8Mbps".parse().unwrap(),
            queue,
            meter: None,
            meters: Vec::new(),
            medium: Medium::default(),
        }
    }
}

/// The script's end: everything that may leave has left, or nearly.
fn end_of(script: &[Scripted]) -> Instant {
    script.last().map_or(Instant::ZERO, |packet| packet.at) + Duration::from_millis(40)
}

#[expect(clippy::too_many_lines, reason = "a network, written out, and what is read of its run")]
fn simulated(setting: &Setting, script: &[Scripted], engine: Engine) -> Story {
    let end = end_of(script);
    let link = |name: &str, (from, to), queue| perhop_sim::LinkSpec {
        name: name.into(),
        from: NodeId(from),
        to: NodeId(to),
        rate: setting.rate,
        delay: DELAY,
        meters: if name == "link" { setting.meters.clone() } else { Vec::new() },
        queue,
        medium: if name == "link" { setting.medium.clone() } else { Medium::default() },
    };
    let path = |label| PathSpec {
        name: format!("path {label}"),
        label,
        forward: vec![0],
        backward: vec![1],
        control: None,
    };
    let flow = |(number, packet): (usize, &Scripted)| {
        let params =
            format!(r#"{{"udp": "cbr", "rate": "1Mbps", "packet": "{}B", "jitter": 0.0}}"#, packet.size);
        FlowSpec {
            name: format!("packet {number}"),
            from: NodeId(0),
            to: NodeId(1),
            path: packet.label.checked_sub(1).map(|path| path as usize),
            access: None,
            egress: None,
            dispatch_jitter: None,
            transport: TransportSpec::Udp(serde_json::from_str::<UdpParams>(&params).unwrap()),
            marking: if setting.meter.is_some() { Marking::Edge(0) } else { Marking::None },
            color: packet.color,
            dscp: packet.dscp,
            ecn: packet.ecn,
            service: contracted(packet.service),
            reserved: None,
            tcp_ecn: perhop_sim::transport::tcp::TcpEcn::Off,
            play_out: None,
            out_feedback: None,
            start: (packet.at, packet.at),
            stop: None,
            volume: Some(Bytes::new(packet.size.into())),
            population: None,
        }
    };
    let network = Network {
        nodes: 2,
        links: vec![link("link", (0, 1), Some(setting.queue.clone())), link("back", (1, 0), None)],
        paths: vec![path(1), path(2)],
        shared_meters: setting
            .meter
            .iter()
            .map(|params| SharedMeter { name: "all".into(), params: params.clone() })
            .collect(),
        flows: script.iter().enumerate().map(flow).collect(),
        probe_interval: Some(PROBES),
        ..Network::new(end.since(Instant::ZERO))
    };
    let mut simulation = Simulation::on_engine(&network, SEED, engine).unwrap();
    simulation.run_to_end();
    let outcome = simulation.finish().unwrap();
    let fate = |(packet, flow): (&Scripted, &perhop_sim::FlowOutcome)| {
        let policed =
            Color::ALL.into_iter().find(|color| flow.policed.unwrap_or_default()[color.index()] > 0);
        let dropped = Color::ALL.into_iter().find(|color| flow.dropped[color.index()] > 0);
        if flow.lost == Some(1) {
            return Fate::Lost;
        }
        let transit = flow.mean_transit_s.map(|seconds| Duration::from_nanos((seconds * 1e9).round() as u64));
        match (dropped, policed, transit) {
            (Some(color), None, None) => Fate::Dropped(color),
            (None, Some(color), None) => Fate::Policed(color),
            (None, None, Some(transit)) => Fate::Delivered(packet.at + transit),
            (None, None, None) => Fate::Inside,
            _ => panic!("it had two fates"),
        }
    };
    let series = &outcome.series;
    let queue = &series.queues[0];
    let look = |row: usize| Look {
        waiting: queue.packets[row],
        classes: queue
            .classes
            .iter()
            .map(|class| (class.name.clone(), [class.packets[row], class.arrived[row], class.dropped[row]]))
            .collect(),
        gauges: queue.gauges.iter().map(|(name, values)| (name.clone(), known(values[row]))).collect(),
    };
    let mut marked = [0; 3];
    if setting.meter.is_some() {
        for flow in &outcome.flows {
            marked.iter_mut().zip(flow.marked).for_each(|(all, of_flow)| *all += of_flow);
        }
    }
    Story {
        fates: script.iter().zip(&outcome.flows).map(fate).collect(),
        marked,
        looks: (0..series.times.len()).map(look).collect(),
        link: outcome.links[0].clone(),
    }
}

/// The profile rate of a service level, if it has one.
fn contracted(service: ServiceLevel) -> Option<Bitrate> {
    Bitrate::from_bps(service.as_bps() as u64).ok()
}

/// What leaves the data plane, and what is lost in it.
struct Log<'a> {
    script: &'a [Scripted],
    fates: Vec<Fate>,
    left: Vec<Option<Vec<u8>>>,
    losses: Vec<(Loss, usize)>,
}

impl Sink for Log<'_> {
    fn deliver(&mut self, device: usize, _: &Head, packet: &[u8], due: Instant) {
        assert_eq!(device, 1);
        let number = number_of(packet);
        assert_eq!(self.fates[number], Fate::Inside, "it leaves once");
        self.fates[number] = Fate::Delivered(due);
        self.left[number] = Some(packet.to_vec());
    }

    fn lose(&mut self, lost: &Lost<'_>, _now: Instant) {
        let number = number_of(lost.packet);
        self.losses.push((lost.why, number));
        self.fates[number] = match lost.why {
            Loss::InTransit => Fate::Lost,
            _ => Fate::Dropped(self.script[number].color),
        };
    }
}

#[expect(clippy::too_many_lines, reason = "a data plane, written out, and what is read of its run")]
fn forwarded(setting: &Setting, script: &[Scripted]) -> Story {
    let end = end_of(script);
    let stream = |(number, packet): (usize, &Scripted)| {
        let port = number as u16;
        let meter = setting.meter.iter().map(|_| Hop::Meter(0));
        StreamSpec {
            name: format!("packet {number}"),
            flow: FlowId(number as u32).into(),
            device: 0,
            selector: Selector {
                protocol: Some(17),
                source_ports: Some(port..=port),
                destination_ports: Some(!port..=!port),
                ..Selector::default()
            },
            coloring: Coloring::Fixed(packet.color, packet.dscp),
            remark: Remark::default(),
            service: contracted(packet.service).map_or(ServiceLevel::NONE, ServiceLevel::of),
            label: packet.label,
            route: meter.chain([Hop::Link(0)]).collect(),
            leaves: 1,
        }
    };
    let spec = PlaneSpec {
        devices: 2,
        mtu: 1500,
        buffers: 4096,
        window: (Instant::ZERO, end),
        links: vec![LinkSpec {
            name: "link".into(),
            rate: setting.rate,
            delay: DELAY,
            queue: setting.queue.clone(),
            meters: setting.meters.clone(),
            medium: setting.medium.clone(),
        }],
        wires: vec![],
        meters: setting
            .meter
            .iter()
            .map(|params| MeterSpec {
                name: "profiles/all/marker".into(),
                params: params.clone(),
                rate: Bitrate::MAX,
            })
            .collect(),
        controls: vec![],
        streams: script.iter().enumerate().map(stream).collect(),
        reports: Vec::new(),
    };
    let mut plane = Plane::new(spec, SEED);
    let mut log = Log {
        script,
        fates: vec![Fate::Inside; script.len()],
        left: vec![None; script.len()],
        losses: Vec::new(),
    };
    let mut looks = Vec::new();
    let mut packets = script.iter().enumerate().peekable();
    let mut next_look = Instant::ZERO + PROBES;
    while next_look <= end {
        while let Some((number, packet)) = packets.next_if(|(_, packet)| packet.at <= next_look) {
            let bytes = bytes_of(number, packet, came_with(number), packet.ecn);
            script::offer(&mut plane, 0, &bytes, packet.at, &mut log);
        }
        plane.advance(next_look, &mut log);
        plane.balance().unwrap();
        looks.push(look_at(&plane));
        next_look += PROBES;
    }
    for (number, packet) in packets {
        let bytes = bytes_of(number, packet, came_with(number), packet.ecn);
        script::offer(&mut plane, 0, &bytes, packet.at, &mut log);
    }
    plane.advance(end, &mut log);
    plane.finish(end);
    plane.balance().unwrap();
    let newly_marked = check_what_left(&log, setting);
    let mut marked = [0; 3];
    for (number, (_, counts)) in plane.streams().enumerate() {
        let dropped = Color::ALL.into_iter().find(|color| counts.dropped[color.index()] > 0);
        // A meter has changed its color since it came.
        if let (Fate::Dropped(color), Some(counted)) = (&mut log.fates[number], dropped) {
            *color = counted;
        }
        if let Some(color) = Color::ALL.into_iter().find(|color| counts.policed[color.index()] > 0) {
            assert_eq!(counts.dropped, [0; 3], "no queue has seen it");
            log.fates[number] = Fate::Policed(color);
        }
        marked.iter_mut().zip(counts.marked).for_each(|(all, of_stream)| *all += of_stream);
    }
    let (_, _, port) = plane.ports().next().unwrap();
    check_losses(&log, &port);
    let notified: u64 = port.counters().notifications().flat_map(|(_, by_color)| by_color).sum();
    let already = script.iter().filter(|packet| packet.ecn == Ecn::Congested).count() as u64;
    let inside = log.fates.iter().filter(|fate| **fate == Fate::Inside).count() as u64;
    let late = port.counters().dropped(Reason::Late).into_iter().sum::<u64>();
    assert!(newly_marked <= notified, "{newly_marked} of {notified}");
    assert!(notified <= newly_marked + already + inside + late, "{newly_marked} of {notified}");
    Story { fates: log.fates, marked, link: plane.outcomes().next().unwrap(), looks }
}

fn look_at(plane: &Plane) -> Look {
    let (_, _, port) = plane.ports().next().unwrap();
    let dropped = |class: &perhop_core::ClassCounters| {
        Color::ALL.into_iter().map(|color| class.through.dropped_of(color)).sum::<u64>()
    };
    let several = port.classes.len() > 1;
    let classes = port.classes.iter().filter(|_| several).map(|(name, class)| {
        let arrived: u64 = class.through.arrived.iter().sum();
        let values = [class.occupancy.packets(), arrived, dropped(class)].map(|count| count as f64);
        ((*name).to_owned(), values)
    });
    Look {
        waiting: port.waiting().iter().sum::<u64>() as f64,
        classes: classes.collect(),
        gauges: port.gauges.into_iter().map(|(name, value)| (name, known(value))).collect(),
    }
}

/// A gauge's value, if it has one.
fn known(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

/// Packets that left carry the codepoint of their color, CE if a queue marked them, and the right checksum;
/// nothing else has changed. Returns how many were newly marked with CE.
fn check_what_left(log: &Log<'_>, setting: &Setting) -> u64 {
    let mut newly_marked = 0;
    for (number, left) in log.left.iter().enumerate() {
        let Some(left) = left else { continue };
        let packet = &log.script[number];
        let fields = wire::parse(left).unwrap();
        if !setting.meters.is_empty() {
            let class = |dscp| AfClass::of(dscp).map(|(class, _)| class);
            assert_eq!(class(fields.dscp), class(packet.dscp));
            // The color that a packet comes with is what counts, whatever its codepoint.
            let color = AfClass::of(fields.dscp).map(|(_, color)| color);
            assert!(fields.dscp == packet.dscp || color.is_some_and(|color| color >= packet.color));
        } else if let Some(meter) = &setting.meter {
            assert!(meter.colors_marked().any(|color| meter.af().codepoint(color) == fields.dscp));
        } else {
            assert_eq!(fields.dscp, packet.dscp);
        }
        assert!(fields.ecn == packet.ecn || packet.ecn.is_capable() && fields.ecn == Ecn::Congested);
        newly_marked += u64::from(fields.ecn == Ecn::Congested && packet.ecn != Ecn::Congested);
        assert_eq!(*left, bytes_of(number, packet, fields.dscp, fields.ecn), "packet {number}");
    }
    newly_marked
}

/// Each reported loss is counted by the queue.
fn check_losses(log: &Log<'_>, port: &PortView<'_>) {
    let mut policed = log.fates.iter().filter(|fate| matches!(fate, Fate::Policed(_))).count() as u64;
    for (reason, packets) in port.counters().drops() {
        let counted = packets.iter().sum::<u64>();
        if reason == Reason::Policed {
            policed += counted; // by a scheduler
            continue;
        }
        let reported = log.losses.iter().filter(|(why, _)| *why == Loss::Dropped(reason)).count();
        assert_eq!(counted, reported as u64, "{reason:?}");
    }
    let reported = log.losses.iter().filter(|(why, _)| *why == Loss::Dropped(Reason::Policed)).count();
    assert_eq!(policed, reported as u64);
    assert!(log.losses.iter().all(|(why, _)| matches!(why, Loss::Dropped(_) | Loss::InTransit)));
}

/// The codepoint that a packet comes with; the data plane gives it another.
fn came_with(number: usize) -> Dscp {
    Dscp::new((number * 7 % 64) as u8).unwrap()
}

/// A packet as bytes, the way somebody else's library writes them: every third of version 6, where it is long
/// enough.
fn bytes_of(number: usize, packet: &Scripted, dscp: Dscp, ecn: Ecn) -> Vec<u8> {
    let size = usize::from(packet.size);
    let (dscp, ecn) = (dscp.get(), ecn as u8);
    let (header, udp) = if number.is_multiple_of(3) && size >= 48 {
        let header = Ipv6Header {
            traffic_class: dscp << 2 | ecn,
            hop_limit: 61,
            source: [0xfd; 16],
            destination: [0xfe; 16],
            ..Ipv6Header::default()
        };
        (IpHeaders::Ipv6(header, Ipv6Extensions::default()), size - 48)
    } else {
        let header = Ipv4Header {
            dscp: dscp.try_into().unwrap(),
            ecn: ecn.try_into().unwrap(),
            identification: number as u16,
            fragment_offset: IpFragOffset::default(),
            time_to_live: 61,
            source: [10, 0, 0, 1],
            destination: [10, 0, 0, 2],
            ..Ipv4Header::default()
        };
        (IpHeaders::Ipv4(header, Ipv4Extensions::default()), size - 28)
    };
    let port = number as u16;
    let mut bytes = Vec::new();
    PacketBuilder::ip(header).udp(port, !port).write(&mut bytes, &vec![number as u8; udp]).unwrap();
    assert_eq!(bytes.len(), size);
    bytes
}

fn number_of(packet: &[u8]) -> usize {
    wire::parse(packet).unwrap().tuple.source_port.into()
}

/// Both ways of the simulator and the data plane tell the same story.
fn compare(name: &str, setting: &Setting, script: &[Scripted]) -> Story {
    let live = forwarded(setting, script);
    for engine in [Engine::Batched, Engine::Reference] {
        let simulated = simulated(setting, script, engine);
        for (number, (live, simulated)) in live.fates.iter().zip(&simulated.fates).enumerate() {
            assert_eq!(live, simulated, "{name}, {engine:?}: packet {number}, {:?}", script[number]);
        }
        for (live, simulated) in live.looks.iter().zip(&simulated.looks) {
            assert_eq!(live, simulated, "{name}, {engine:?}");
        }
        assert_eq!(live.link, simulated.link, "{name}, {engine:?}");
        assert!(live == simulated, "{name}, {engine:?}: looks or marks");
    }
    live
}

/// Every queue manager under a FIFO, and every scheduler.
fn disciplines() -> impl Iterator<Item = (String, SchedulerParams)> {
    let aqms = AQMS.iter().map(|&(name, table)| (format!("{name} {table}"), script::aqm((name, table))));
    let schedulers =
        SCHEDULERS.iter().map(|&(name, table)| (format!("{name} {table}"), script::scheduler((name, table))));
    aqms.chain(schedulers)
}

fn scripted() -> impl Strategy<Value = Scripted> {
    let size = prop_oneof![Just(40_u16), Just(1000), Just(1500), 40_u16..=1500];
    let color = prop_oneof![Just(Color::Green), Just(Color::Yellow), Just(Color::Red)];
    let dscp = prop_oneof![Just(0_u8), Just(3), 0_u8..64].prop_map(|value| Dscp::new(value).unwrap());
    let service = prop_oneof![Just(0_u16), 1_u16..1000].prop_map(ServiceLevel::new);
    // Together with the last one, at the very end of a transmission, within it, after a rest. Until the gaps
    // are added up, each is in place of the time.
    let gap = prop_oneof![
        4 => Just(0_u64),
        3 => (1_u64..3).prop_map(|packets| packets * 1_000_000),
        4 => 0_u64..1_500_000,
        1 => 0_u64..60_000_000,
    ];
    let ecn = [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::Congested];
    (gap, size, color, dscp, 0..4_usize, service, 0_u32..3).prop_map(
        move |(gap, size, color, dscp, place, service, label)| Scripted {
            at: Instant::from_nanos(gap),
            size,
            color,
            dscp,
            ecn: ecn[place],
            service,
            label,
        },
    )
}

fn scripts() -> impl Strategy<Value = Vec<Scripted>> {
    prop::collection::vec(scripted(), 1..120).prop_map(one_after_the_other)
}

/// Turns gaps into times.
fn one_after_the_other(mut script: Vec<Scripted>) -> Vec<Scripted> {
    let mut now = Instant::ZERO;
    for packet in &mut script {
        now += packet.at.since(Instant::ZERO);
        packet.at = now;
    }
    script
}

/// Bursts that overflow every queue, and rests in which it empties.
fn long_script() -> Vec<Scripted> {
    let mut rng = Rng::stream(SEED, "script");
    let mut script = Vec::new();
    let mut pick = |most: u64| rng.up_to(most) as usize;
    for number in 0..1500 {
        let in_burst = number / 40 % 2 == 0;
        let gap = match pick(9) {
            0..=3 if in_burst => 0,
            4..=7 => 250_000 * pick(8) as u64,
            8 => pick(3_000_000) as u64,
            _ => pick(900_000) as u64,
        };
        script.push(Scripted {
            at: Instant::from_nanos(if number % 160 == 159 { 50_000_000 } else { gap }),
            size: [40, 1000, 1000, 1500, 40 + pick(1460) as u16][pick(4)],
            color: Color::ALL[pick(2)],
            dscp: Dscp::new([0, 3, 3, 46, pick(63) as u8][pick(4)]).unwrap(),
            ecn: [Ecn::NotCapable, Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1][pick(3)],
            service: ServiceLevel::new([0, 50, 500][pick(2)]),
            label: pick(2) as u32,
        });
    }
    one_after_the_other(script)
}

#[test]
fn every_registered_block_has_a_script() {
    // The data plane has no Python: it refuses classes by name.
    for block in registry().filter(|block| block.name != "python") {
        let rows = match block.role {
            Role::Aqm => AQMS,
            Role::Scheduler => SCHEDULERS,
            Role::Meter => METERS,
            Role::Application | Role::CongestionControl => unreachable!("the core has none"),
        };
        assert!(rows.iter().any(|(name, _)| *name == block.name), "`{}` has no parameters", block.name);
    }
}

#[test]
fn a_long_script_ends_alike_under_every_discipline() {
    let script = long_script();
    for (name, queue) in disciplines() {
        let story = compare(&name, &Setting::of(queue), &script);
        let count = |fate: fn(&Fate) -> bool| story.fates.iter().filter(|f| fate(f)).count();
        assert!(count(|fate| matches!(fate, Fate::Dropped(_))) > 100, "{name} drops");
        assert!(story.looks.len() > 100, "{name} was looked at");
    }
}

#[test]
fn every_rule_that_can_notify_does_so_alike() {
    let script = long_script();
    let mut rules = 0;
    for &(name, table) in AQMS {
        let Some(rule) = notifying(name, table) else { continue };
        let fifo = compare(&format!("{name} {table}"), &Setting::of(rule.clone().into()), &script);
        let notified: u64 = fifo.link.counters.notifications().flat_map(|(_, by_color)| by_color).sum();
        rules += usize::from(notified > 0);
        // The same rule where others choose who goes next, and where it judges duplicates.
        let rule = serde_json::to_string(&rule).unwrap();
        for (scheduler, table) in [
            ("edf", format!(r#"{{"rule": {rule}}}"#)),
            ("dsd", format!(r#"{{"bound": "5ms", "refused-green": "admit", "rule": {rule}}}"#)),
            (
                "drr",
                format!(
                    r#"{{"queues": [{{"name": "red", "match": {{"color": "red"}}, "rule": {rule}}},
                                    {{"name": "rest", "rule": {rule}}}]}}"#
                ),
            ),
        ] {
            compare(&table, &Setting::of(script::scheduler((scheduler, &table))), &script);
        }
    }
    assert!(rules > 8, "{rules}");
}

/// The rule with `ecn`, if it has that parameter.
fn notifying(name: &str, table: &str) -> Option<AqmParams> {
    let mut table: serde_json::Value = serde_json::from_str(table).unwrap();
    table["ecn"] = true.into();
    let table = table.to_string();
    let read = AqmParams::deserialize_named(name, &mut serde_json::Deserializer::from_str(&table));
    read.expect("registered").ok()
}

#[test]
fn every_meter_marks_alike() {
    let script = long_script();
    let queue =
        script::aqm(("wred", r#"{"green": "4/7/0.02", "yellow": "1/5/0.1", "limit": "9p", "weight": 0.2}"#));
    for &(name, table) in METERS {
        let meter = script::meter((name, table));
        let drops = meter.actions().drop_any();
        let setting = Setting { meter: Some(meter), ..Setting::of(queue.clone()) };
        let story = compare(&format!("{name} {table}"), &setting, &script);
        assert_eq!(story.marked.iter().sum::<u64>(), script.len() as u64, "{name}");
        let policed = story.fates.iter().filter(|fate| matches!(fate, Fate::Policed(_))).count();
        // No control has this one mark OUT.
        assert_eq!(policed > 0, drops && name != "twam", "{name} {table}: {policed} policed");
    }
}

/// Packets of class 2, in the color of their codepoint, and others.
fn colored(script: &[Scripted]) -> Vec<Scripted> {
    let class = AfClass::new(2).unwrap();
    let of = |(number, packet): (usize, &Scripted)| {
        let color = Color::ALL[number % 3];
        let dscp = if number % 4 == 0 { packet.dscp } else { class.codepoint(color) };
        Scripted { color, dscp, ..*packet }
    };
    script.iter().enumerate().map(of).collect()
}

/// The meters of a link: this one for packets of class 2, another for the rest.
fn link_meters((name, table): (&str, &str)) -> Vec<AggregateMeter> {
    let mut table: serde_json::Value = serde_json::from_str(table).unwrap();
    table["marker"] = name.into();
    table.as_object_mut().unwrap().remove("af");
    let rest = r#"{"marker": "token-bucket", "rate": "200kbps", "burst": "2kB", "out": "drop"}"#;
    let meters = format!(
        r#"[{{"name": "class 2", "match": {{"dscp": ["AF21", "AF22", "AF23"]}}, "profile": {table}}},
            {{"name": "rest", "profile": {rest}}}]"#
    );
    serde_json::from_str(&meters).unwrap()
}

#[test]
fn every_meter_of_a_link_re_marks_alike() {
    let script = colored(&long_script());
    let queue =
        script::aqm(("wred", r#"{"green": "4/7/0.02", "yellow": "1/5/0.1", "limit": "9p", "weight": 0.2}"#));
    let drr = script::scheduler((
        "drr",
        r#"{"queues": [{"name": "af", "match": {"dscp": ["AF21", "AF22"]}, "rule": {"aqm": "drop-tail", "limit": "7p"}},
                       {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "7p"}}]}"#,
    ));
    for &row in METERS {
        for queue in [&queue, &drr] {
            let setting = Setting { meters: link_meters(row), ..Setting::of(queue.clone()) };
            let story = compare(&format!("{} {}", row.0, row.1), &setting, &script);
            let [class, rest] = &story.link.meters[..] else { panic!("two meters") };
            let count = |packets: [u64; 3]| packets.iter().sum::<u64>();
            assert_eq!(count(class.measured.arrived) + count(rest.measured.arrived), script.len() as u64);
            let policed = story.fates.iter().filter(|fate| matches!(fate, Fate::Policed(_))).count() as u64;
            assert_eq!(policed, count(class.measured.policed) + count(rest.measured.policed));
            assert!(count(rest.measured.policed) > 0 && count(class.measured.arrived) > 0, "{row:?}");
        }
    }
}

/// Every kind of medium, each alone, and all that go together.
fn media() -> Vec<(&'static str, Medium)> {
    let millis = Duration::from_millis;
    let none = Medium::default;
    let jitter = |text: &str| serde_json::from_str::<Jitter>(text).unwrap();
    let change = |at, rate: &str, delay: Option<u64>| Change {
        at: millis(at),
        rate: rate.parse().ok(),
        delay: delay.map(millis),
    };
    let changes = vec![
        change(20, "2Mbps", None),
        change(60, "8Mbps", Some(12)),
        // The next packets overtake those that are under way.
        change(90, "", Some(1)),
        change(400, "16Mbps", Some(4)),
    ];
    let outages =
        vec![Outage { from: millis(10), to: millis(31) }, Outage { from: millis(60), to: millis(90) }];
    let opportunities = Opportunities::new(vec![1, 1, 2, 5, 9], true).unwrap();
    let rates = vec![(Duration::ZERO, 8_000_000), (millis(30), 0), (millis(50), 3_141_592)];
    let rates = Rates::new(rates, true).unwrap();
    let uniform = jitter(r#"{"distribution": "uniform", "max": "5ms", "reorder": true}"#);
    let in_order = jitter(r#"{"distribution": "exponential", "mean": "2ms", "reorder": false}"#);
    let bursts = r#"{"good-to-bad": 0.02, "bad-to-good": 0.3, "loss-bad": 0.9}"#;
    let all = Medium {
        changes: changes.clone(),
        outages: outages.clone(),
        loss: Probability::new(0.05).ok(),
        burst_loss: serde_json::from_str(bursts).ok(),
        jitter: Some(uniform),
        ..none()
    };
    vec![
        (
            "opportunities",
            Medium { trace: Some(Arc::new(RateTrace::Opportunities(opportunities))), ..none() },
        ),
        (
            "rates",
            Medium { trace: Some(Arc::new(RateTrace::Rates(rates))), outages: outages.clone(), ..none() },
        ),
        ("changes", Medium { changes, ..none() }),
        ("outages", Medium { outages, ..none() }),
        ("loss", Medium { loss: Probability::new(0.05).ok(), ..none() }),
        ("burst-loss", Medium { burst_loss: serde_json::from_str(bursts).ok(), ..none() }),
        ("jitter, reordering", Medium { jitter: Some(uniform), ..none() }),
        ("jitter, in order", Medium { jitter: Some(in_order), ..none() }),
        ("all", all),
    ]
}

#[test]
fn every_medium_acts_alike() {
    let script = long_script();
    let codel = script::aqm(("codel", r#"{"limit": "30p"}"#));
    let drr = script::scheduler((
        "drr",
        r#"{"queues": [{"name": "red", "match": {"color": "red"}, "rule": {"aqm": "drop-tail", "limit": "7p"}},
                       {"name": "rest", "rule": {"aqm": "drop-tail", "limit": "20p"}}]}"#,
    ));
    let unlimited = perhop_sim::LinkSpec::unlimited();
    for (name, medium) in media() {
        for queue in [&codel, &drr, &unlimited] {
            let setting = Setting { medium: medium.clone(), ..Setting::of(queue.clone()) };
            let story = compare(name, &setting, &script);
            let lost = story.fates.iter().filter(|fate| **fate == Fate::Lost).count() as u64;
            assert_eq!(story.link.transit.lost, medium.is_lossy().then_some(lost), "{name}");
            assert_eq!(lost > 0, medium.is_lossy(), "{name}");
            assert_eq!(
                story.link.transit.reordered.is_some_and(|packets| packets > 0),
                medium.reorders(),
                "{name}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_script_meets_every_medium_alike(script in scripts()) {
        for (name, medium) in media() {
            for (discipline, queue) in disciplines().take(4) {
                let setting = Setting { medium: medium.clone(), ..Setting::of(queue) };
                compare(&format!("{name}, {discipline}"), &setting, &script);
            }
        }
    }

    #[test]
    fn any_script_ends_alike_under_every_discipline(script in scripts(), odd: bool) {
        // At 3 Mbit/s most packets take no whole number of nanoseconds.
        let rate: Bitrate = if odd { "3Mbps" } else { "8Mbps" }.parse().unwrap();
        for (name, queue) in disciplines() {
            compare(&name, &Setting { rate, ..Setting::of(queue) }, &script);
        }
    }

    #[test]
    fn any_script_is_marked_alike(script in scripts(), row in 0..METERS.len()) {
        let (name, table) = METERS[row];
        let meter = Some(script::meter((name, table)));
        let queue = script::aqm(("rio", r#"{"in": "4/7/0.02", "total": "1/3/0.5", "limit": "9p", "weight": 0.2}"#));
        compare(name, &Setting { meter, ..Setting::of(queue.clone()) }, &script);
        compare(name, &Setting { meters: link_meters((name, table)), ..Setting::of(queue) }, &colored(&script));
    }
}
