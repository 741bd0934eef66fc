//! Data planes and what happens to them, read from bytes: any bytes make a valid plane and a script for it,
//! so that tests and fuzzers tell the same stories.
#![allow(dead_code, reason = "each user needs its part")]

use std::sync::Arc;

use perhop_core::medium::{Change, Distribution, Jitter, Medium, Opportunities, Outage, RateTrace, Rates};
use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::scheduler::{Match, SchedulerParams};
use perhop_core::{Bitrate, Color, Dscp, Duration, Ecn, FlowId, Instant, Probability, ServiceLevel};
use perhop_live::encapsulation::{self, Encapsulation, Enclosure, LabelEntry};
use perhop_live::wire::Fields;
use perhop_live::{
    Coloring, ControlSpec, DispatchSpec, HEAD, Head, Hop, LinkSpec, Lost, Member, MeterSpec, Plane,
    PlaneSpec, Prefix, Remark, Selector, Sink, StreamSpec, WireSpec, wire,
};

use super::parameters::{AQMS, METERS, SCHEDULERS};

#[path = "../../../perhop-core/tests/common/choices.rs"]
mod choices;
pub use choices::Choices;

/// Every plane has as many.
pub const DEVICES: usize = 2;

fn dscp(choices: &mut Choices<'_>) -> Dscp {
    Dscp::new(choices.byte() % 64).expect("six bits")
}

/// The meters of a link: none, or one.
fn link_meters(choices: &mut Choices<'_>) -> Vec<AggregateMeter> {
    if !choices.one_in(3) {
        return Vec::new();
    }
    let profile = meter(choices.of(METERS));
    let (r#match, promote) = (Match::default(), choices.one_in(2));
    vec![AggregateMeter { name: "all".into(), r#match, profile, promote }]
}

/// Nothing, or all that a medium can do, at times that the script may reach. Traces repeat, so that
/// everything leaves in the end.
fn medium(choices: &mut Choices<'_>) -> Medium {
    if !choices.one_in(3) {
        return Medium::default();
    }
    let millis = Duration::from_millis;
    let change = |at, rate: &str, delay| Change { at: millis(at), rate: rate.parse().ok(), delay };
    let rates = vec![(Duration::ZERO, 1_000_000), (millis(3), 0), (millis(5), 64_000)];
    let trace = match choices.below(3) {
        0 => None,
        1 => Opportunities::new(vec![0, 1, 1, 4], true).map(RateTrace::Opportunities),
        _ => Rates::new(rates, true).map(RateTrace::Rates),
    };
    Medium {
        trace: trace.map(Arc::new),
        changes: vec![change(2, "100kbps", None), change(4, "1Gbps", Some(Duration::ZERO))],
        outages: vec![Outage { from: millis(3), to: millis(6) }],
        loss: Probability::new(0.1).ok(),
        burst_loss: None,
        jitter: Some(Jitter {
            distribution: Distribution::Uniform,
            max: Some(millis(2)),
            mean: None,
            sd: None,
            reorder: choices.one_in(2),
        }),
    }
}

/// A valid plane.
#[expect(clippy::too_many_lines, reason = "one field of the plane after the other")]
pub fn spec(choices: &mut Choices<'_>) -> PlaneSpec {
    let controlled = choices.one_in(4);
    let rate = |text: &str| text.parse::<Bitrate>().expect("a rate");
    let delays = [Duration::ZERO, Duration::from_millis(1), Duration::from_secs(1)];
    let links: Vec<LinkSpec> = (0..=choices.below(3))
        .map(|number| LinkSpec {
            name: format!("link {number}"),
            rate: rate(choices.of(&["8Mbps", "64kbps", "1Gbps", "999kbps"])),
            delay: choices.of(&delays),
            queue: queue(choices, controlled),
            meters: link_meters(choices),
            medium: medium(choices),
        })
        .collect();
    let wires: Vec<WireSpec> = (0..choices.below(3))
        .map(|number| WireSpec {
            rate: choices.of(&[Some("10Mbps"), Some("1Gbps"), None]).map(rate),
            delay: choices.of(&delays),
            dispatch: choices
                .one_in(3)
                .then(|| DispatchSpec { name: format!("host {number}"), most: Duration::from_millis(1) }),
        })
        .collect();
    let meters: Vec<MeterSpec> = (0..choices.below(3))
        .map(|number| MeterSpec {
            name: format!("meter {number}"),
            params: meter(choices.of(METERS)),
            rate: rate("10Mbps"),
        })
        .collect();
    let controls: Vec<ControlSpec> = (0..usize::from(controlled))
        .map(|_| {
            let window = choices.of(&["sender", "in-flight", "passed"]);
            let interval = choices.of(&["1s", "100ms"]);
            let control = format!(r#"{{"interval": "{interval}", "window": "{window}", "loss": 0.25}}"#);
            ControlSpec {
                name: "path".into(),
                label: 1,
                control: serde_json::from_str(&control).expect("a control"),
                members: [Some("1Mbps"), None]
                    .into_iter()
                    .enumerate()
                    .map(|(flow, contracted)| Member {
                        flow: FlowId(flow as u32),
                        rate: contracted.map(rate),
                        meter: (flow < meters.len()).then_some(flow),
                        segment: u32::from(choices.of(&[1460_u16, 0, 1, u16::MAX])),
                    })
                    .collect(),
                links: (0..links.len()).map(|link| (link, choices.of(&delays))).collect(),
            }
        })
        .collect();
    let hop = |choices: &mut Choices<'_>| match choices.below(8) {
        4 if !wires.is_empty() => Hop::Wire(choices.below(wires.len())),
        5 if !meters.is_empty() => Hop::Meter(choices.below(meters.len())),
        6 if controlled => Hop::Data(0, choices.below(2)),
        7 if controlled => Hop::Ack(0, choices.below(2)),
        _ => Hop::Link(choices.below(links.len())),
    };
    let streams = (0..=choices.below(6))
        .map(|number| StreamSpec {
            name: format!("stream {number}"),
            flow: FlowId(number as u32).into(),
            device: choices.below(DEVICES),
            selector: selector(choices),
            coloring: match choices.below(4) {
                0 => Coloring::Trust,
                _ => Coloring::Fixed(choices.of(&Color::ALL), dscp(choices)),
            },
            remark: Remark::default(),
            service: ServiceLevel::new(choices.word()),
            label: choices.below(3) as u32,
            route: (0..choices.below(5)).map(|_| hop(choices)).collect(),
            leaves: choices.below(DEVICES),
        })
        .collect();
    PlaneSpec {
        reports: Vec::new(),
        devices: DEVICES,
        mtu: choices.of(&[1500, 40, 576, 9000]),
        buffers: choices.of(&[64, 1, 3, 16]),
        window: (Instant::ZERO, Instant::from_nanos(1_000_000_000)),
        links,
        wires,
        meters,
        controls,
        streams,
    }
}

/// A queue. Under a control, one whose packets all leave before it has looked a million times.
fn queue(choices: &mut Choices<'_>, controlled: bool) -> SchedulerParams {
    let quick = |rows: &[(&'static str, &'static str)]| -> Vec<(&'static str, &'static str)> {
        rows.iter().copied().filter(|(_, table)| !(controlled && table.contains("1bps"))).collect()
    };
    if choices.one_in(2) {
        scheduler(choices.of(&quick(SCHEDULERS)))
    } else {
        let (name, table) = choices.of(&quick(AQMS));
        aqm((name, table))
    }
}

/// The queue manager of a row, under a FIFO.
pub fn aqm((name, table): (&str, &str)) -> SchedulerParams {
    use perhop_core::aqm::AqmParams;
    let read = AqmParams::deserialize_named(name, &mut serde_json::Deserializer::from_str(table));
    read.expect("registered").expect("valid parameters").into()
}

/// The scheduler of a row; the paths that it names have the labels 1, 2, ….
pub fn scheduler((name, table): (&str, &str)) -> SchedulerParams {
    let read = SchedulerParams::deserialize_named(name, &mut serde_json::Deserializer::from_str(table));
    let mut params = read.expect("registered").expect("valid parameters");
    (1..).zip(params.paths()).for_each(|(label, (_, path))| path.set_label(label));
    params
}

/// The meter of a row.
pub fn meter((name, table): (&str, &str)) -> MeterParams {
    let read = MeterParams::deserialize_named(name, &mut serde_json::Deserializer::from_str(table));
    read.expect("registered").expect("valid parameters")
}

/// A link without meters, whose medium never changes.
pub fn link(name: &str, rate: &str, delay: Duration, queue: SchedulerParams) -> LinkSpec {
    let rate = rate.parse().expect("a rate");
    LinkSpec { name: name.into(), rate, delay, queue, meters: Vec::new(), medium: Medium::default() }
}

/// All packets from one of two devices, as best effort by this route to the other.
pub fn across(device: usize, route: Vec<Hop>) -> StreamSpec {
    StreamSpec {
        name: format!("from {device}"),
        flow: FlowId(device as u32).into(),
        device,
        selector: Selector::default(),
        coloring: Coloring::Fixed(Color::Yellow, Dscp::DEFAULT),
        remark: Remark::default(),
        service: ServiceLevel::NONE,
        label: 0,
        route,
        leaves: 1 - device,
    }
}

fn selector(choices: &mut Choices<'_>) -> Selector {
    let ports = |choices: &mut Choices<'_>| {
        let first = choices.word() % 8;
        Some(first..=first + choices.word() % 4)
    };
    match choices.below(8) {
        0 => Selector { source_ports: ports(choices), ..Selector::default() },
        1 => Selector { destination_ports: ports(choices), ..Selector::default() },
        2 => Selector { protocol: Some(choices.of(&[6, 17, 1, 0])), ..Selector::default() },
        3 => Selector { dscp: Some(dscp(choices).into()), ..Selector::default() },
        4 => {
            let source = Prefix::new([10, 0, 0, 0].into(), choices.of(&[8, 31, 32, 0]));
            Selector { source, ..Selector::default() }
        }
        5 => {
            let destination = Prefix::new([0xfd; 16].into(), choices.of(&[8, 127, 128, 0]));
            Selector { destination, ..Selector::default() }
        }
        6 => {
            let enclosure = Enclosure { vlan: Some(0..=choices.word() % 4096), ..Enclosure::default() };
            Selector { enclosure, ..Selector::default() }
        }
        _ => Selector::default(),
    }
}

/// What comes from a network: mostly valid packets, and whatever somebody may have made of one.
pub fn packet(choices: &mut Choices<'_>, packet: &mut Vec<u8>) {
    packet.clear();
    match choices.below(20) {
        0..=7 => ip(choices, packet),
        8 => {
            ip(choices, packet);
            packet.truncate(usize::from(choices.word()) % (packet.len() + 1));
        }
        9 => {
            ip(choices, packet);
            for _ in 0..=choices.below(4) {
                let place = usize::from(choices.word()) % packet.len();
                packet[place] ^= choices.byte();
            }
        }
        // It claims to be longer or shorter than it is.
        10 | 11 => {
            ip(choices, packet);
            let claim = choices.word().to_be_bytes();
            let place = if is_v6(packet) { 4 } else { 2 };
            packet[place..place + 2].copy_from_slice(&claim);
            write_checksum(packet);
        }
        // A fragment.
        12 => {
            ipv4(choices, packet);
            let [high, low] = choices.word().to_be_bytes();
            packet[6..8].copy_from_slice(&[high & 0x3f, low]);
            write_checksum(packet);
        }
        // A header of some other length.
        13 => {
            ipv4(choices, packet);
            packet[0] = 0x40 | choices.byte() & 15;
            write_checksum(packet);
        }
        14..=16 => ipv6_extended(choices, packet),
        17 => jumbogram(choices, packet),
        18 => {
            packet.push(choices.byte());
            packet.extend(choices.bytes(64));
        }
        _ => packet.extend(choices.bytes(usize::from(packet.is_empty()) * 3)),
    }
}

fn is_v6(packet: &[u8]) -> bool {
    packet[0] >> 4 == 6
}

fn ip(choices: &mut Choices<'_>, packet: &mut Vec<u8>) {
    if choices.one_in(3) { ipv6(choices, packet) } else { ipv4(choices, packet) }
}

fn ipv4(choices: &mut Choices<'_>, packet: &mut Vec<u8>) {
    let protocol = choices.of(&[17, 6, 1]);
    packet.extend([0x45, choices.byte(), 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend([10, 0, 0, choices.byte() % 4, 10, 1, 0, 1]);
    transport(choices, protocol, packet);
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    write_checksum(packet);
}

fn ipv6(choices: &mut Choices<'_>, packet: &mut Vec<u8>) {
    let protocol = choices.of(&[17, 6, 58]);
    ipv6_header(choices, protocol, packet);
    transport(choices, protocol, packet);
    claim_all(packet);
}

fn ipv6_header(choices: &mut Choices<'_>, next: u8, packet: &mut Vec<u8>) {
    let class = choices.byte();
    packet.extend([0x60 | class >> 4, class << 4, 0, 0, 0, 0, next, 64]);
    packet.extend([0xfd; 15]);
    packet.push(choices.byte() % 4);
    packet.extend([0xfd; 16]);
}

/// Extension headers (RFC 8200, section 4), true or not.
fn ipv6_extended(choices: &mut Choices<'_>, packet: &mut Vec<u8>) {
    let kinds = [0_u8, 43, 44, 51, 60, 135, 139, 140, 59, 50];
    let mut next = choices.of(&kinds);
    ipv6_header(choices, next, packet);
    for _ in 0..choices.below(6) {
        let following = choices.of(&[17, 6, 0, 43, 44, 60, 51, next]);
        let words = if choices.one_in(4) { choices.byte() } else { 0 };
        packet.extend([following, words]);
        packet.extend([choices.byte(), choices.byte(), 0, 0, 0, 0]);
        let most = if next == 44 { 0 } else { usize::from(words.min(4)) * 8 };
        packet.extend(choices.bytes(most));
        next = following;
    }
    transport(choices, next, packet);
    claim_all(packet);
}

/// A length of zero, and a hop-by-hop option that says the true one (RFC 2675).
fn jumbogram(choices: &mut Choices<'_>, packet: &mut Vec<u8>) {
    ipv6_header(choices, 0, packet);
    packet.extend([17, 0, 0xc2, 4]);
    let claim = if choices.one_in(2) { 70_000_u32 } else { u32::from(choices.word()) };
    packet.extend(claim.to_be_bytes());
    transport(choices, 17, packet);
}

fn claim_all(packet: &mut [u8]) {
    let payload = (packet.len() - 40) as u16;
    packet[4..6].copy_from_slice(&payload.to_be_bytes());
}

fn transport(choices: &mut Choices<'_>, protocol: u8, packet: &mut Vec<u8>) {
    let ports = [0, choices.byte() % 8, 0, choices.byte() % 8];
    let data = choices.of(&[0_u16, 12, 500, 1452, u16::MAX]);
    let data = if data == u16::MAX { choices.word() % 9000 } else { data };
    match protocol {
        6 => {
            packet.extend(ports);
            packet
                .extend(u32::from(choices.word()).wrapping_mul(choices.of(&[1, 1460, 65537])).to_be_bytes());
            packet
                .extend(u32::from(choices.word()).wrapping_mul(choices.of(&[1, 1460, 65537])).to_be_bytes());
            let offset = if choices.one_in(8) { choices.byte() } else { 0x50 };
            packet.extend([offset, choices.byte(), 0xff, 0xff, 0, 0, 0, 0]);
        }
        17 => {
            packet.extend(ports);
            packet.extend((8 + data).to_be_bytes());
            packet.extend([0, 0]);
        }
        _ => packet.extend([8, 0, 0, 0, 0, 1, 0, 1]),
    }
    packet.resize(packet.len() + usize::from(data), 0x5a);
}

/// Writes the checksum of an IPv4 header (RFC 1071) of the length that it declares.
fn write_checksum(packet: &mut [u8]) {
    if is_v6(packet) || packet.len() < 20 {
        return;
    }
    let header = (usize::from(packet[0] & 15) * 4).clamp(20, packet.len());
    packet[10..12].fill(0);
    let words = packet[..header]
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// Sees to it that what leaves is a packet as long as it says, and that nothing leaves before what left
/// earlier.
#[derive(Default)]
pub struct Checked {
    pub delivered: u64,
    pub lost: u64,
    pub last: Instant,
}

impl Sink for Checked {
    fn deliver(&mut self, device: usize, _: &Head, packet: &[u8], due: Instant) {
        assert!(device < DEVICES && due >= self.last);
        self.last = due;
        let fields = wire::parse(packet).expect("what leaves is a packet");
        assert_eq!(usize::from(fields.length), packet.len());
        self.delivered += 1;
    }

    fn lose(&mut self, _: &Lost<'_>, now: Instant) {
        assert!(now >= self.last);
        self.lost += 1;
    }
}

/// Offers a packet as a driver does: reads it into the plane's room, or loses it if there is none.
pub fn offer(plane: &mut Plane, device: usize, packet: &[u8], now: Instant, sink: &mut impl Sink) {
    if let Some((slot, _, room)) = plane.room() {
        let length = packet.len().min(room.len());
        room[..length].copy_from_slice(&packet[..length]);
        plane.arrive(device, slot, length, now, sink);
    } else {
        plane.overrun(device, &packet[..packet.len().min(plane.mtu())], sink);
    }
}

/// Bytes as a frame: Ethernet type, tag of the kernel, and what follows. Headers before its packet come off
/// and go back on; what cannot be read stays as it was.
pub fn take_apart(input: &[u8]) {
    let Some((before, payload)) = input.split_at_checked(6) else { return };
    let mut head = [0; HEAD];
    head[encapsulation::TYPE].copy_from_slice(&before[..2]);
    head[encapsulation::TAG].copy_from_slice(&before[2..]);
    let mut left = payload.to_vec();
    let length = encapsulation::detach(&mut head, &mut left).unwrap_or(0);
    let whole = [encapsulation::attached(&head), &left[..payload.len() - length]].concat();
    assert_eq!(whole, [&before[..2], payload].concat());
    let found = Encapsulation::of(&head);
    let remark = Remark { priority: Some(5), traffic_class: Some(3) };
    encapsulation::remark(&mut head, remark);
    let after = Encapsulation::of(&head);
    assert!(after.outer_tag.or(after.tag).is_none_or(|tag| tag.priority() == 5));
    assert!(after.label.is_none_or(|entry| entry.traffic_class() == 3));
    assert_eq!(after.label.map(LabelEntry::label), found.label.map(LabelEntry::label));
    assert_eq!((after.session, encapsulation::attached(&head).len()), (found.session, 2 + length));
}

/// Bytes as a packet: they are read or refused, and a mark changes nothing but codepoint and ECN field.
pub fn read_and_mark(input: &[u8]) {
    let Some((&class, bytes)) = input.split_first() else { return };
    let dscp = Dscp::new(class >> 2).expect("six bits");
    let ecn = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][usize::from(class & 3)];
    let mut packet = bytes.to_vec();
    wire::mark(&mut packet, dscp, ecn);
    let Ok(before) = wire::parse(bytes) else { return };
    assert_eq!(wire::parse(&bytes[..usize::from(before.length)]), Ok(before), "what lies beyond it counts");
    assert_eq!(wire::parse(&packet), Ok(Fields { dscp, ecn, ..before }));
    wire::mark(&mut packet, before.dscp, before.ecn);
    assert_eq!(wire::parse(&packet), Ok(before));
    // A checksum of zero has two forms (RFC 1624, section 3); everything else is as it was.
    if bytes[0] >> 4 == 4 {
        packet[10..12].copy_from_slice(&bytes[10..12]);
    }
    assert_eq!(packet, bytes);
}

/// Runs the script that these bytes encode and checks conservation after each step, until everything has
/// left.
pub fn live_through(bytes: &[u8]) -> Checked {
    let mut choices = Choices::new(bytes);
    let mut plane = Plane::new(spec(&mut choices), 1);
    let windows = plane.windows();
    let (mut sink, mut now, mut bytes) = (Checked::default(), Instant::ZERO, Vec::new());
    while !choices.is_over() {
        match choices.below(16) {
            0..=9 => {
                packet(&mut choices, &mut bytes);
                offer(&mut plane, choices.below(DEVICES), &bytes, now, &mut sink);
            }
            10 | 11 => now += Duration::from_nanos(u64::from(choices.word()) << (choices.byte() % 16)),
            12 => {
                now += Duration::from_nanos(u64::from(choices.word()));
                plane.advance(now, &mut sink);
            }
            13 if plane.next() != Instant::NEVER => {
                now = now.max(plane.next());
                plane.advance(now, &mut sink);
            }
            14 => windows.set(choices.below(4), choices.one_in(2).then(|| u32::from(choices.word()))),
            _ => {
                if let Some((slot, ..)) = plane.room() {
                    plane.release(slot);
                }
            }
        }
        plane.balance().expect("balanced");
    }
    drain(&mut plane, now, &mut sink);
    sink
}

/// A plane under traffic whose configuration changes again and again: what cannot change is refused and
/// changes nothing, no packet is lost on the way from one to the next, and everything leaves in the end.
pub fn reload_through(bytes: &[u8]) -> Reloads {
    let mut choices = Choices::new(bytes);
    let first = changeable(&mut choices);
    let mtu = first.mtu;
    let mut plane = Plane::new(first, 1);
    let (mut sink, mut now, mut bytes) = (Checked::default(), Instant::ZERO, Vec::new());
    let mut reloads = Reloads::default();
    while !choices.is_over() {
        match choices.below(16) {
            0..=11 => {
                packet(&mut choices, &mut bytes);
                offer(&mut plane, choices.below(DEVICES), &bytes, now, &mut sink);
            }
            12 | 13 => {
                now += Duration::from_nanos(u64::from(choices.word()) << (choices.byte() % 16));
                plane.advance(now, &mut sink);
            }
            _ => {
                let other = if choices.one_in(8) { spec(&mut choices) } else { changeable(&mut choices) };
                let other = PlaneSpec { mtu: if choices.one_in(8) { other.mtu } else { mtu }, ..other };
                plane.advance(now, &mut sink);
                reload(&mut plane, other, &mut reloads);
            }
        }
        plane.balance().expect("balanced");
    }
    drain(&mut plane, now, &mut sink);
    assert!(plane.link_totals().all(|link| link.left_over == 0));
    reloads
}

/// How many configurations came into force, and how many were refused.
#[derive(Default)]
pub struct Reloads {
    pub done: u64,
    pub refused: u64,
}

/// A plane whose configuration may change: without wires, window controls, and links that change.
fn changeable(choices: &mut Choices<'_>) -> PlaneSpec {
    let mut spec = spec(choices);
    spec.wires.clear();
    spec.controls.clear();
    spec.links.iter_mut().for_each(|link| link.medium = Medium::default());
    for stream in &mut spec.streams {
        stream.route.retain(|hop| matches!(hop, Hop::Link(_) | Hop::Meter(_)));
    }
    spec
}

fn reload(plane: &mut Plane, other: PlaneSpec, reloads: &mut Reloads) {
    let rates = |plane: &Plane| -> Vec<(String, Bitrate)> {
        plane.link_totals().map(|link| (link.name.to_owned(), link.rate)).collect()
    };
    let before = (rates(plane), plane.inside());
    let possible = usize::from(other.mtu) == plane.mtu()
        && other.wires.is_empty()
        && other.controls.is_empty()
        && other.links.iter().all(|link| link.medium.is_constant());
    let wanted: Vec<_> = other.links.iter().map(|link| (link.name.clone(), link.rate)).collect();
    let done = plane.reload(other, 1);
    assert_eq!(done.is_ok(), possible, "{done:?}");
    assert_eq!(plane.inside(), before.1, "to reload neither loses nor sends a packet");
    if possible {
        let now = rates(plane);
        assert!(wanted.iter().all(|link| now.contains(link)), "{wanted:?} {now:?}");
        reloads.done += 1;
    } else {
        assert_eq!(rates(plane), before.0);
        reloads.refused += 1;
    }
}

/// Lets everything leave, and checks that it has.
pub fn drain(plane: &mut Plane, now: Instant, sink: &mut Checked) {
    let mut now = now;
    while plane.inside() > 0 {
        assert_ne!(plane.next(), Instant::NEVER, "{} packets are never sent", plane.inside());
        now = now.max(plane.next());
        plane.advance(now, sink);
        plane.balance().expect("balanced");
    }
    plane.finish(now);
    assert_eq!(plane.counters().all_read(), sink.delivered + sink.lost);
    assert_eq!(plane.counters().all_known(), sink.delivered + sink.lost);
    for (_, _, port) in plane.ports() {
        assert_eq!(port.waiting(), [0; 3]);
    }
}
