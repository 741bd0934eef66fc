//! perhop's own TCP at a host: the connections whose sender or receiver is the simulator's.
//!
//! They have an address of their own behind a second interface of the host, whose kernel forwards their
//! packets as it would those of another machine. So the packets pass the kernel's IP, and no TCP of it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::sys::epoll::EpollFlags;
use perhop_core::control::Message;
use perhop_core::meter::{Conditioner, MeterParams};
use perhop_core::{Color, Context, Duration, FlowId, Header, Instant, Rng};
use perhop_endpoint::{Connection, Ended, Segment, Setup, read_too_big};
use perhop_live::device::{Device, Tun, TunSpec};
use perhop_live::{HEAD, Windows, wire};
use perhop_scenario::format::IpVersion;
use perhop_sim::transport::SenderStatistics;

use super::role::{self, Common, Host, Role};
use super::{Done, KERNEL_QUEUE, OWN_INTERFACE, OWN_IPV4, OWN_IPV6, end_of};
use crate::error::LabError;
use crate::sandbox;
use crate::setting::{FIRST_PORT, HostFlow, LISTENER, OwnTcp, PROTOCOL_UDP, Setting, Side};

/// The key of the device.
const DEVICE: u64 = u64::MAX - 2;
/// How many packets are read before the timers have their turn.
const BURST: usize = 64;

/// A task of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    Start(usize),
    Wake(usize),
    Stop(usize),
}

/// What this host counted of one flow.
#[derive(Clone, Debug, Default)]
struct Counts {
    statistics: SenderStatistics,
    acked: u64,
    receiver_window: u64,
    /// Packets by the color that the host's meter gave them, and those that it dropped.
    marked: [u64; 3],
    policed: [u64; 3],
}

/// One end of a flow.
struct End<'a> {
    flow: &'a HostFlow,
    own: &'a OwnTcp,
    connection: Option<Connection>,
    marker: Option<Marker>,
    rng: Rng,
    /// The wake-up that is among the tasks.
    scheduled: Instant,
    latest: Counts,
    at_warmup: Counts,
}

/// The meter of a sender, and the color of its packets.
struct Marker {
    conditioner: Conditioner,
    params: MeterParams,
}

/// The role of a host for its ends of perhop's own TCP.
struct Endpoints<'a> {
    side: Side,
    device: Tun,
    windows: Arc<Windows>,
    /// By the number of the flow.
    ends: Vec<Option<End<'a>>>,
    open: BTreeSet<usize>,
    completed: Vec<Option<Instant>>,
    last: Vec<Instant>,
    inbox: Box<[u8]>,
    outbox: Box<[u8]>,
    seed: u64,
}

/// The results of a host's own TCP, by flow: of senders since the warm-up, and of receivers.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    counts: Vec<Option<Counts>>,
    failed: Vec<String>,
    unconnected: Vec<String>,
    late: Option<(String, Duration)>,
    completed: Vec<Option<Instant>>,
    last: Vec<Instant>,
}

/// Makes the interface of perhop's own TCP in the calling thread's namespace, and lets its kernel forward.
pub(super) fn open(setting: &Setting, side: Side) -> Result<Tun, LabError> {
    let six = setting.ip == IpVersion::V6;
    sandbox::set(if six { "net.ipv6.conf.all.forwarding" } else { "net.ipv4.ip_forward" }, "1")?;
    let side = side as usize;
    let spec = TunSpec {
        name: OWN_INTERFACE.into(),
        mtu: setting.mtu,
        ipv4: (!six).then_some((OWN_IPV4[side][0], 24)),
        ipv6: six.then_some((OWN_IPV6[side][0], 64)),
        queue: KERNEL_QUEUE,
    };
    Tun::open(&spec).map_err(LabError::doing("making the interface of perhop's own TCP"))
}

/// Runs a host's own TCP until the end of the run; the calling thread is in the host's namespace.
pub(super) fn run(common: Common<'_>, device: Tun, windows: Arc<Windows>) -> io::Result<Own> {
    let Common { side, setting, .. } = common;
    let end = |flow| End::new(flow, side);
    let flows = setting.flows.len();
    let room = vec![0; usize::from(u16::MAX)].into_boxed_slice();
    let endpoints = Endpoints {
        side,
        device,
        windows,
        ends: setting.flows.iter().map(end).collect(),
        open: BTreeSet::new(),
        completed: vec![None; flows],
        last: vec![Instant::ZERO; flows],
        inbox: room.clone(),
        outbox: room,
        seed: setting.seed,
    };
    role::run(endpoints, common, None)
}

impl<'a> End<'a> {
    fn new(flow: &'a HostFlow, side: Side) -> Option<Self> {
        let own = flow.own_at(side)?;
        let marker = own.marker.as_ref().filter(|_| side == flow.from).map(|meter| Marker {
            conditioner: Conditioner::new(&meter.params, meter.rate, own.rngs.1.clone()),
            params: meter.params.clone(),
        });
        Some(Self {
            flow,
            own,
            connection: None,
            marker,
            rng: own.rngs.0.clone(),
            scheduled: Instant::NEVER,
            latest: Counts::default(),
            at_warmup: Counts::default(),
        })
    }

    fn setup(&self, setting: &Setting, side: Side, seed: u64) -> Setup {
        let sends = side == self.flow.from;
        let (near, far) = if sends { (self.flow.port, LISTENER) } else { (LISTENER, self.flow.port) };
        Setup {
            local: end_of(setting, self.flow, side, near),
            remote: end_of(setting, self.flow, side.other(), far),
            params: self.own.params.clone(),
            ecn: self.own.ecn,
            volume: if sends { self.flow.volume } else { Some(0) },
            reserved: self.own.reserved,
            first_number: Rng::stream(seed, &format!("{}/{near}/first number", self.flow.name)).next_u64()
                as u32,
            seed: self.own.seed,
        }
    }
}

impl Marker {
    /// Marks a packet; returns its color, and whether it goes on.
    fn mark(&mut self, flow: usize, packet: &mut [u8], now: Instant) -> (Color, bool) {
        let mut header = Header::new(FlowId(flow as u32), packet.len() as u16);
        header.arrived = now;
        let verdict = self.conditioner.judge(&header, now);
        self.params.af().mark(&mut header, verdict.color);
        if let Ok(fields) = wire::parse(packet) {
            wire::mark(packet, header.dscp, fields.ecn);
        }
        (verdict.color, verdict.dropped.is_none())
    }
}

impl Role for Endpoints<'_> {
    type Task = Task;
    type Results = Own;

    fn begin(&mut self, host: &mut Host<'_, Task>) -> io::Result<()> {
        host.waiter.add(&self.device, EpollFlags::EPOLLIN, DEVICE)?;
        for (number, end) in self.ends.iter().enumerate() {
            let Some(End { flow, .. }) = end else { continue };
            if flow.from == self.side {
                host.at(flow.start, Task::Start(number));
                host.at(flow.stop.unwrap_or(Instant::NEVER), Task::Stop(number));
            }
        }
        Ok(())
    }

    fn on_task(&mut self, host: &mut Host<'_, Task>, task: Task, due: Instant) -> io::Result<()> {
        match task {
            Task::Start(number) => self.start(host, number, due),
            Task::Wake(number) => self.wake(host, number, due),
            Task::Stop(number) => self.stop(host, number),
        }
        Ok(())
    }

    fn on_socket(&mut self, host: &mut Host<'_, Task>, _: usize, _: EpollFlags) -> io::Result<()> {
        let mut room = std::mem::take(&mut self.inbox);
        for _ in 0..BURST {
            match self.device.receive(&mut [0; HEAD], &mut room)? {
                Some(length) => self.on_packet(host, &room[..length]),
                None => break,
            }
        }
        self.inbox = room;
        Ok(())
    }

    fn ask(&mut self, host: &Host<'_, Task>) {
        let now = host.now();
        for number in self.open.clone() {
            let Some(end) = &mut self.ends[number] else { continue };
            let Some(connection) = &end.connection else { continue };
            let rtt_us = connection.smoothed_rtt().unwrap_or(0.0) * 1e6;
            host.common.shared.flows[number].rtt_us.store(rtt_us as u32, Ordering::Relaxed);
            let window = (!connection.is_sent()).then(|| connection.window() as u32);
            end.latest.statistics = connection.statistics(now);
            end.latest.acked = connection.bytes().0;
            end.latest.receiver_window = connection.receiver_window();
            self.windows.set(number, window);
        }
    }

    fn warmed_up(&mut self) {
        for end in self.ends.iter_mut().flatten() {
            end.at_warmup = end.latest.clone();
        }
    }

    fn results(self, host: &Host<'_, Task>) -> Own {
        let mut own = Own { completed: self.completed, last: self.last, ..Own::default() };
        own.late = host.late.map(|(flow, late)| {
            let flow = &host.common.setting.flows[flow];
            (format!("the start of {}", flow.name), late)
        });
        for end in &self.ends {
            let sends = end.as_ref().filter(|end| end.flow.from == self.side);
            own.counts.push(sends.map(|end| end.latest.since(&end.at_warmup)));
            let Some((end, connection)) = sends.and_then(|end| Some((end, end.connection.as_ref()?))) else {
                continue;
            };
            if let Some(fault) = connection.ended().and_then(Ended::fault) {
                own.failed.push(format!("{}: {fault}", end.flow.name));
            } else if !connection.is_open() {
                own.unconnected.push(end.flow.name.clone());
            }
        }
        own
    }
}

impl Counts {
    fn since(&self, before: &Self) -> Self {
        let new = |now: [u64; 3], then: [u64; 3]| std::array::from_fn(|color| now[color] - then[color]);
        Self {
            statistics: self.statistics.since(&before.statistics),
            acked: self.acked - before.acked,
            receiver_window: self.receiver_window,
            marked: new(self.marked, before.marked),
            policed: new(self.policed, before.policed),
        }
    }
}

impl Endpoints<'_> {
    fn start(&mut self, host: &mut Host<'_, Task>, number: usize, due: Instant) {
        let Some(end) = &mut self.ends[number] else { return };
        let setup = end.setup(host.common.setting, self.side, self.seed);
        let mut connection = Connection::open(setup, host.now());
        if end.flow.volume.is_some() {
            connection.close(); // With its volume.
        }
        if end.flow.is_passing {
            host.note_lateness(number, due);
        }
        end.connection = Some(connection);
        self.open.insert(number);
        self.transmit(host, number, host.now());
    }

    fn stop(&mut self, host: &mut Host<'_, Task>, number: usize) {
        let Some(Some(connection)) = self.ends[number].as_mut().map(|end| &mut end.connection) else {
            return;
        };
        connection.stop();
        self.transmit(host, number, host.now());
    }

    /// Wakes a connection. It keeps its own time, so that a late wake-up does not make it slower.
    fn wake(&mut self, host: &mut Host<'_, Task>, number: usize, due: Instant) {
        let Some(end) = &mut self.ends[number] else { return };
        if end.scheduled != due {
            return; // An earlier wake-up took its place.
        }
        end.scheduled = Instant::NEVER;
        if let Some(connection) = &mut end.connection
            && connection.wake() <= due
        {
            connection.on_wake(due);
        }
        self.transmit(host, number, due);
    }

    /// Takes a packet: a segment, a report of a marker, or one that a packet was too large.
    fn on_packet(&mut self, host: &mut Host<'_, Task>, packet: &[u8]) {
        let now = host.now();
        let Ok(segment) = Segment::parse(packet) else { return self.on_report(host, packet, now) };
        let port = if segment.destination.port() == LISTENER {
            segment.source.port()
        } else {
            segment.destination.port()
        };
        let number = usize::from(port.wrapping_sub(FIRST_PORT));
        let Some(Some(end)) = self.ends.get_mut(number) else { return };
        let mut received = 0;
        if let Some(connection) = &mut end.connection {
            connection.on_segment(&segment, now, &mut |data| received += data.len() as u64);
            if connection.is_received() {
                connection.close();
            }
        } else {
            let setup = end.setup(host.common.setting, self.side, self.seed);
            end.connection = Connection::accept(setup, &segment, now);
        }
        if received > 0 {
            self.count(host, number, received, now);
        }
        self.transmit(host, number, now);
    }

    fn count(&mut self, host: &Host<'_, Task>, number: usize, bytes: u64, now: Instant) {
        let Common { setting, shared, .. } = host.common;
        self.last[number] = now;
        let received = shared.flows[number].received.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if setting.flows[number].volume.is_some_and(|volume| received >= volume) {
            self.completed[number].get_or_insert(now);
        }
    }

    fn on_report(&mut self, host: &mut Host<'_, Task>, packet: &[u8], now: Instant) {
        let of_path = read_too_big(packet);
        let Some(port) = of_path.map(|report| report.source.port()).or_else(|| {
            let tuple = wire::parse(packet).ok()?.tuple;
            (tuple.protocol == PROTOCOL_UDP).then_some(tuple.destination_port)
        }) else {
            return;
        };
        let number = usize::from(port.wrapping_sub(FIRST_PORT));
        let Some(Some(connection)) =
            self.ends.get_mut(number).map(|end| end.as_mut().and_then(|end| end.connection.as_mut()))
        else {
            return;
        };
        match of_path {
            Some(report) => connection.on_too_big(&report),
            None => connection.on_message(&Message::MarkedOut),
        }
        self.transmit(host, number, now);
    }

    /// Puts on the wire whatever a connection has for it.
    fn transmit(&mut self, host: &mut Host<'_, Task>, number: usize, now: Instant) {
        let Self { ends, device, outbox, .. } = self;
        let Some(End { connection: Some(connection), marker, rng, latest, scheduled, .. }) =
            &mut ends[number]
        else {
            return;
        };
        while let Some(packet) = connection.transmit(&mut Context { now, rng }, outbox) {
            let bytes = &mut outbox[..packet.length];
            if let (Some(marker), Some(segment)) = (marker.as_mut(), packet.segment) {
                let (color, goes_on) = marker.mark(number, bytes, now);
                connection.on_marked(segment, color);
                latest.marked[color.index()] += 1;
                if !goes_on {
                    latest.policed[color.index()] += 1;
                    continue;
                }
            }
            device.send(&[0; HEAD], bytes);
        }
        // What the kernel does not take is lost, as a packet on the wire may be.
        device.flush();
        let at = connection.wake();
        if at < *scheduled {
            *scheduled = at;
            host.at(at, Task::Wake(number));
        }
    }
}

impl Done {
    /// Adds the results of perhop's own TCP at this host.
    pub(super) fn add(&mut self, setting: &Setting, side: Side, own: Own) {
        let flows = setting.flows.len();
        let Self { sent, received, .. } = self;
        sent.statistics.resize_with(flows, SenderStatistics::default);
        sent.receiver_windows.resize(flows, 0);
        sent.acked.resize(flows, 0);
        sent.marked.resize(flows, None);
        received.completed.resize(flows, None);
        received.last.resize(flows, Instant::ZERO);
        received.transits.resize_with(flows, || None);
        for (number, flow) in setting.flows.iter().enumerate() {
            if let Some(counts) = &own.counts[number] {
                sent.statistics[number] = counts.statistics.clone();
                sent.acked[number] = counts.acked;
                sent.receiver_windows[number] = u32::try_from(counts.receiver_window).unwrap_or(u32::MAX);
                let has_marker = flow.own_at(side).is_some_and(|own| own.marker.is_some());
                sent.marked[number] = has_marker.then_some((counts.marked, counts.policed));
            }
            if flow.own_at(side).is_some() && flow.from != side {
                received.completed[number] = own.completed[number];
                received.last[number] = own.last[number];
            }
        }
        sent.failed.extend(own.failed);
        sent.unconnected.extend(own.unconnected);
        let latest = own.late.into_iter().chain(sent.late.take());
        sent.late = latest.max_by_key(|(_, late)| *late);
    }
}
