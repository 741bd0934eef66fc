//! perhop's own TCP at a host: the connections whose sender or receiver is the simulator's.
//!
//! It does no I/O and reads no clock. A driver passes in packets, tasks that are due and the time:
//! [`tun`] on real packets, [`virtual_time`](crate::virtual_time) without the kernel.

mod tun;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use perhop_core::control::Message;
use perhop_core::meter::{Conditioner, MeterParams};
use perhop_core::{Color, Context, Duration, FlowId, Header, Instant, Rng};
use perhop_endpoint::{Connection, Ended, Segment, Setup, read_too_big};
use perhop_live::{Windows, wire};
use perhop_sim::transport::SenderStatistics;

use super::{Done, Shared, end_of};
use crate::setting::{FIRST_PORT, HostFlow, LISTENER, OwnTcp, PROTOCOL_UDP, Setting, Side};

pub(super) use tun::{open, run};

/// A task of a flow's end, by the number of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// Open the connection.
    Start(usize),
    /// Call the connection, which has something to do.
    Wake(usize),
    /// Send no more.
    Stop(usize),
}

/// What the ends of connections need of their driver.
pub(crate) trait Driver {
    /// Returns the time of the run.
    fn now(&self) -> Instant;
    /// Plans a task.
    fn at(&mut self, at: Instant, task: Task);
    /// Puts a packet on the wire. It may wait for others until [`flush`](Self::flush).
    fn send(&mut self, packet: &[u8]);
    /// Puts on the wire whatever waits.
    fn flush(&mut self) {}
    /// Learns how late a flow starts, which should have at `due`.
    fn note_lateness(&mut self, _number: usize, _due: Instant) {}
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

/// The ends of perhop's own TCP at a host.
pub(crate) struct Endpoints<'a> {
    side: Side,
    setting: &'a Setting,
    shared: &'a Shared,
    windows: Arc<Windows>,
    /// By the number of the flow.
    ends: Vec<Option<End<'a>>>,
    open: BTreeSet<usize>,
    completed: Vec<Option<Instant>>,
    last: Vec<Instant>,
    outbox: Box<[u8]>,
}

/// The results of a host's own TCP, by flow: of senders since the warm-up, and of receivers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    counts: Vec<Option<Counts>>,
    failed: Vec<String>,
    unconnected: Vec<String>,
    late: Option<(String, Duration)>,
    /// The 99th percentile of how late tasks were done and packets were read.
    lateness: Duration,
    completed: Vec<Option<Instant>>,
    last: Vec<Instant>,
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

    fn setup(&self, setting: &Setting, side: Side) -> Setup {
        let sends = side == self.flow.from;
        let (near, far) = if sends { (self.flow.port, LISTENER) } else { (LISTENER, self.flow.port) };
        Setup {
            local: end_of(setting, self.flow, side, near),
            remote: end_of(setting, self.flow, side.other(), far),
            params: self.own.params.clone(),
            ecn: self.own.ecn,
            volume: if sends { self.flow.volume } else { Some(0) },
            reserved: self.own.reserved,
            first_number: Rng::stream(setting.seed, &format!("{}/{near}/first number", self.flow.name))
                .next_u64() as u32,
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

impl<'a> Endpoints<'a> {
    /// Makes those of a host, without a connection.
    pub(crate) fn new(side: Side, setting: &'a Setting, shared: &'a Shared, windows: Arc<Windows>) -> Self {
        let flows = setting.flows.len();
        Self {
            side,
            setting,
            shared,
            windows,
            ends: setting.flows.iter().map(|flow| End::new(flow, side)).collect(),
            open: BTreeSet::new(),
            completed: vec![None; flows],
            last: vec![Instant::ZERO; flows],
            outbox: vec![0; usize::from(u16::MAX)].into_boxed_slice(),
        }
    }

    /// Plans when flows start and stop.
    pub(crate) fn begin(&self, driver: &mut impl Driver) {
        for (number, end) in self.ends.iter().enumerate() {
            let Some(End { flow, .. }) = end else { continue };
            if flow.from == self.side && flow.begins() {
                driver.at(flow.start, Task::Start(number));
                driver.at(flow.stop.unwrap_or(Instant::NEVER), Task::Stop(number));
            }
        }
    }

    /// Does a task that was due at a time.
    pub(crate) fn on_task(&mut self, driver: &mut impl Driver, task: Task, due: Instant) {
        match task {
            Task::Start(number) => self.start(driver, number, due),
            Task::Wake(number) => self.wake(driver, number, due),
            Task::Stop(number) => self.stop(driver, number),
        }
    }

    /// Publishes windows and round-trip times, and notes what the connections have counted.
    pub(crate) fn ask(&mut self, now: Instant) {
        for &number in &self.open {
            let Some(end) = &mut self.ends[number] else { continue };
            let Some(connection) = &end.connection else { continue };
            let rtt_us = connection.smoothed_rtt().unwrap_or(0.0) * 1e6;
            self.shared.flows[number].rtt_us.store(rtt_us as u32, Ordering::Relaxed);
            let window = (!connection.is_sent()).then(|| connection.window() as u32);
            end.latest.statistics = connection.statistics(now);
            end.latest.acked = connection.bytes().0;
            end.latest.receiver_window = connection.receiver_window();
            self.windows.set(number, window);
        }
    }

    /// Begins to count: the warm-up is over.
    pub(crate) fn warmed_up(&mut self) {
        for end in self.ends.iter_mut().flatten() {
            end.at_warmup = end.latest.clone();
        }
    }

    /// Returns the results; `late` is the flow that started latest, compared with when it should have.
    pub(crate) fn results(self, late: Option<(usize, Duration)>) -> Own {
        let mut own = Own { completed: self.completed, last: self.last, ..Own::default() };
        own.late = late.map(|(flow, late)| (format!("the start of {}", self.setting.flows[flow].name), late));
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

    fn start(&mut self, driver: &mut impl Driver, number: usize, due: Instant) {
        let Some(end) = &mut self.ends[number] else { return };
        let setup = end.setup(self.setting, self.side);
        let mut connection = Connection::open(setup, driver.now());
        if end.flow.volume.is_some() {
            connection.close(); // With its volume.
        }
        if end.flow.is_passing {
            driver.note_lateness(number, due);
        }
        end.connection = Some(connection);
        self.open.insert(number);
        self.transmit(driver, number, driver.now());
    }

    fn stop(&mut self, driver: &mut impl Driver, number: usize) {
        let Some(Some(connection)) = self.ends[number].as_mut().map(|end| &mut end.connection) else {
            return;
        };
        connection.stop();
        self.transmit(driver, number, driver.now());
    }

    /// Wakes a connection. It keeps its own time, so that a late wake-up does not make it slower.
    fn wake(&mut self, driver: &mut impl Driver, number: usize, due: Instant) {
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
        self.transmit(driver, number, due);
    }

    /// Takes a packet: a segment, a report of a marker, or one that a packet was too large.
    pub(crate) fn on_packet(&mut self, driver: &mut impl Driver, packet: &[u8]) {
        let now = driver.now();
        let Ok(segment) = Segment::parse(packet) else { return self.on_report(driver, packet, now) };
        let port = if segment.destination.port() == LISTENER {
            segment.source.port()
        } else {
            segment.destination.port()
        };
        let number = usize::from(port.wrapping_sub(FIRST_PORT));
        let Some(Some(end)) = self.ends.get_mut(number) else { return };
        let mut received = 0;
        if let Some(connection) = &mut end.connection {
            let before = connection.bytes().1;
            connection.on_segment(&segment, now, &mut |_| {});
            received = connection.bytes().1 - before;
            if connection.is_received() {
                connection.close();
            }
        } else {
            let setup = end.setup(self.setting, self.side);
            end.connection = Connection::accept(setup, &segment, now);
        }
        if received > 0 {
            self.count(number, received, now);
        }
        self.transmit(driver, number, now);
    }

    fn count(&mut self, number: usize, bytes: u64, now: Instant) {
        let Self { setting, shared, .. } = *self;
        self.last[number] = now;
        let received = shared.flows[number].received.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if setting.flows[number].volume.is_some_and(|volume| received >= volume) {
            self.completed[number].get_or_insert(now);
        }
    }

    fn on_report(&mut self, driver: &mut impl Driver, packet: &[u8], now: Instant) {
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
        self.transmit(driver, number, now);
    }

    /// Puts on the wire whatever a connection has for it.
    fn transmit(&mut self, driver: &mut impl Driver, number: usize, now: Instant) {
        let Self { ends, outbox, .. } = self;
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
            driver.send(bytes);
        }
        driver.flush();
        let at = connection.wake();
        if at < *scheduled {
            *scheduled = at;
            driver.at(at, Task::Wake(number));
        }
    }
}

impl Done {
    /// Adds the results of perhop's own TCP at this host.
    pub(crate) fn add(&mut self, setting: &Setting, side: Side, own: Own) {
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
        self.own_late = own.lateness;
        sent.failed.extend(own.failed);
        sent.unconnected.extend(own.unconnected);
        let latest = own.late.into_iter().chain(sent.late.take());
        sent.late = latest.max_by_key(|(_, late)| *late);
    }
}
