//! A run in virtual time: perhop's own TCP at both hosts and the data plane between them, without the kernel.
//!
//! Segments and data plane are those of a run on real packets, and nothing is late: no process waits for a
//! processor, no packet for a system call. So what differs from a simulation is due to the segments, and what
//! a run on real packets adds is due to the scheduling of processes and the kernel's IP.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use perhop_core::{Duration, Instant};
use perhop_live::{Head, Plane, Report, Sink, Watcher};
use perhop_scenario::Scenario;

use crate::error::LabError;
use crate::hosts::endpoints::{Driver, Endpoints, Task};
use crate::hosts::{Done, Shared};
use crate::observer::{Glimpses, Observer};
use crate::outcome::{Measured, Routed, Run};
use crate::run::asks;
use crate::setting::{Setting, Side};
use crate::topology;

/// Runs a scenario in virtual time; `stop` ends it early. It needs neither rights nor devices.
///
/// # Errors
/// What no kernel has; a flow that has not perhop's own TCP at both ends; it was stopped; a fault of the data
/// plane.
pub fn run_in_virtual_time(scenario: &Scenario, seed: u64, stop: &AtomicBool) -> Result<Run, LabError> {
    let network = scenario.network();
    let setting = Setting::new(scenario, &network, seed)?;
    let lacks = |side| setting.flows.iter().find(|flow| flow.own_at(side).is_none());
    if let Some(flow) = lacks(Side::Sending).or_else(|| lacks(Side::Receiving)) {
        return Err(LabError::Unfit(format!(
            "flows[{}]: virtual time needs perhop's own TCP at both ends of every flow",
            flow.group
        )));
    }
    let plane = Plane::new(topology::plane(&network, &setting), seed);
    let (shared, windows) = (Shared::new(setting.flows.len()), plane.windows());
    let (to, _) = sync_channel(0);
    let columns = (network.flows.len(), network.probe_interval);
    let unwatched = Glimpses { interval: None, to };
    let observer = Observer::new(&shared, Arc::clone(&windows), &setting, columns, unwatched);
    let host = |side| Host {
        endpoints: Endpoints::new(side, &setting, &shared, Arc::clone(&windows)),
        tasks: BinaryHeap::new(),
    };
    let hosts = [Side::Sending, Side::Receiving].map(host);
    let mut world = World { plane, hosts, observer, arrived: VecDeque::new(), sent: Vec::new() };
    world.run(&setting, asks(&network), stop)?;
    let World { plane, hosts: [sending, receiving], observer, .. } = world;
    plane.balance().map_err(LabError::Unbalanced)?;
    let done = |host: Host<'_>, side| {
        let mut done = Done::default();
        done.add(&setting, side, host.endpoints.results(None));
        done
    };
    let hosts = [done(sending, Side::Sending), done(receiving, Side::Receiving)];
    let samples = observer.samples;
    let routed = Routed {
        plane,
        report: Report::default(),
        devices: Vec::new(),
        real_time: false,
        cpu: Duration::ZERO,
        wall: Duration::ZERO,
    };
    let (network, setting, routed) = (&network, &setting, &routed);
    let measured = Measured { network, setting, scenario, samples, routed, hosts, applications: Vec::new() };
    Ok(measured.into_run())
}

/// All that takes part in a run.
struct World<'a> {
    plane: Plane,
    /// By side, as the devices of the plane.
    hosts: [Host<'a>; 2],
    observer: Observer<'a>,
    /// Packets that the plane has delivered now, each with the host that it has reached.
    arrived: VecDeque<(usize, Box<[u8]>)>,
    /// Packets that the host which acts has sent now.
    sent: Vec<Box<[u8]>>,
}

struct Host<'a> {
    endpoints: Endpoints<'a>,
    tasks: BinaryHeap<Reverse<(Instant, Task)>>,
}

/// A host while it acts, at one time.
struct Acting<'a> {
    now: Instant,
    tasks: &'a mut BinaryHeap<Reverse<(Instant, Task)>>,
    sent: &'a mut Vec<Box<[u8]>>,
}

impl Driver for Acting<'_> {
    fn now(&self) -> Instant {
        self.now
    }
    fn at(&mut self, at: Instant, task: Task) {
        if at != Instant::NEVER {
            self.tasks.push(Reverse((at, task)));
        }
    }
    fn send(&mut self, packet: &[u8]) {
        self.sent.push(packet.into());
    }
}

/// Collects the packets that leave the plane.
struct Arrivals<'a>(&'a mut VecDeque<(usize, Box<[u8]>)>);

impl Sink for Arrivals<'_> {
    fn deliver(&mut self, device: usize, _: &Head, packet: &[u8], _: Instant) {
        self.0.push_back((device, packet.into()));
    }
}

impl<'a> Host<'a> {
    fn next(&self) -> Instant {
        self.tasks.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at)
    }

    /// Has the endpoints act.
    fn act(
        &mut self,
        now: Instant,
        sent: &mut Vec<Box<[u8]>>,
        act: impl FnOnce(&mut Endpoints<'a>, &mut Acting<'_>),
    ) {
        act(&mut self.endpoints, &mut Acting { now, tasks: &mut self.tasks, sent });
    }
}

impl World<'_> {
    fn run(&mut self, setting: &Setting, asks: Duration, stop: &AtomicBool) -> Result<(), LabError> {
        let (mut warmup, end) = (Instant::ZERO + setting.warmup, Instant::ZERO + setting.duration);
        for host in &mut self.hosts {
            host.act(Instant::ZERO, &mut self.sent, |endpoints, acting| endpoints.begin(acting));
        }
        let mut ask = Instant::ZERO + asks;
        while !stop.load(Ordering::Relaxed) {
            let now = self.next().min(self.observer.next()).min(ask).min(warmup).min(end);
            self.happen(now);
            if now == ask || now == warmup || now == end {
                self.hosts.iter_mut().for_each(|host| host.endpoints.ask(now));
                ask = if now == ask { ask + asks } else { ask };
            }
            if now == warmup {
                self.hosts.iter_mut().for_each(|host| host.endpoints.warmed_up());
                warmup = Instant::NEVER;
            }
            if now == self.observer.next() {
                self.observer.watch(&mut self.plane, &mut Report::default(), now);
            }
            if now == end {
                return Ok(());
            }
        }
        Err(LabError::Interrupted)
    }

    /// Returns when a packet or a host has something to do.
    fn next(&self) -> Instant {
        self.hosts.iter().map(Host::next).fold(self.plane.next(), Instant::min)
    }

    /// Lets all happen that is due now: packets first, then tasks, until nothing is.
    fn happen(&mut self, now: Instant) {
        let Self { plane, hosts, arrived, sent, .. } = self;
        plane.advance(now, &mut Arrivals(arrived));
        loop {
            if let Some((side, packet)) = arrived.pop_front() {
                hosts[side].act(now, sent, |endpoints, acting| endpoints.on_packet(acting, &packet));
                enter(plane, side, sent, arrived, now);
            } else if let Some(side) = (0..2).find(|&side| hosts[side].next() <= now) {
                let Some(Reverse((due, task))) = hosts[side].tasks.pop() else { continue };
                hosts[side].act(now, sent, |endpoints, acting| endpoints.on_task(acting, task, due));
                enter(plane, side, sent, arrived, now);
            } else {
                return;
            }
        }
    }
}

/// Passes the packets that a host has sent to the plane.
fn enter(
    plane: &mut Plane,
    side: usize,
    sent: &mut Vec<Box<[u8]>>,
    arrived: &mut VecDeque<(usize, Box<[u8]>)>,
    now: Instant,
) {
    for packet in sent.drain(..) {
        let mut arrivals = Arrivals(arrived);
        match plane.room() {
            Some((slot, _, room)) => {
                room[..packet.len()].copy_from_slice(&packet);
                plane.arrive(side, slot, packet.len(), now, &mut arrivals);
            }
            None => plane.overrun(side, &packet, &mut arrivals),
        }
    }
}
