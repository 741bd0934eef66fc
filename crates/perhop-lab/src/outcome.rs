//! The result of a run: an outcome as from a simulation, and a report on whether the machine could have
//! changed it.

use std::collections::BTreeSet;

use nix::sys::utsname::uname;
use perhop_core::{Duration, Instant};
use perhop_live::device::AnyDevice;
use perhop_live::{Loss, Plane, Report, StreamCounts};
use perhop_scenario::Scenario;
use perhop_sim::transport::Counted;
use perhop_sim::transport::transit::TransitMeter;
use perhop_sim::{
    ApplicationOutcome, Completion, FlowOutcome, FlowRecord, FlowSpec, Marking, Network, Outcome,
    PopulationOutcome, rate,
};

use crate::hosts::{Done, PATIENCE, Received};
use crate::observer::Samples;
use crate::report::{Drops, LabReport, Late};
use crate::setting::Side;
use crate::setting::{HostFlow, Kind, Population, Setting, on_wire};
use crate::system::counts_timeouts;
use crate::topology;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was measured, in the form of a simulation.
    pub outcome: Outcome,
    /// Whether the machine kept up.
    pub report: LabReport,
}

/// The 99th percentile of lateness and the longest pause may always be this long, however short round trips
/// are.
const LEAST_LATENESS: Duration = Duration::from_millis(1);
const LEAST_PAUSE: Duration = Duration::from_millis(10);

/// The state of the router at the end of a run.
pub(crate) struct Routed {
    pub(crate) plane: Plane,
    pub(crate) report: Report,
    /// The devices, which stay open until the hosts have ended: what these send at last is lost nowhere.
    #[expect(dead_code, reason = "it is kept, not used")]
    pub(crate) devices: Vec<AnyDevice>,
    pub(crate) real_time: bool,
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// What the threads of a run have measured.
pub(crate) struct Measured<'a> {
    pub(crate) network: &'a Network,
    pub(crate) setting: &'a Setting,
    pub(crate) scenario: &'a Scenario,
    pub(crate) samples: Samples,
    pub(crate) routed: &'a Routed,
    /// What the sending host did, and the receiving one.
    pub(crate) hosts: [Done; 2],
    pub(crate) applications: Vec<ApplicationOutcome>,
}

impl Measured<'_> {
    /// Returns the result of the run.
    pub(crate) fn into_run(self) -> Run {
        let report = self.report();
        let (flows, populations) = (self.flows(), self.populations());
        let (events, hops) = (self.routed.report.slept, self.routed.plane.counters().all_read());
        let applications = self.applications;
        let Samples { series, links, .. } = self.samples;
        Run {
            outcome: Outcome { engine: None, events, hops, flows, populations, links, applications, series },
            report,
        }
    }

    fn at(&self, side: Side) -> &Done {
        &self.hosts[side as usize]
    }

    /// Returns the result of each flow of the network; for the flow of a population, the sum over all flows
    /// of that population.
    fn flows(&self) -> Vec<FlowOutcome> {
        let Self { network, setting, .. } = self;
        let timeouts = counts_timeouts();
        let own: BTreeSet<usize> = setting
            .flows
            .iter()
            .filter(|flow| flow.own_at(flow.from).is_some())
            .map(|flow| flow.flow)
            .collect();
        let counted = |number, spec: &FlowSpec| match spec.transport.counted(spec.tcp_ecn) {
            Counted::Segments { .. } if !own.contains(&number) => Counted::Kernel { timeouts },
            counted => counted,
        };
        let records =
            |number| setting.populations.iter().find(|of| of.flow == number).map(|of| &of.records[..]);
        let first = |number| records(number)?.first().map(|first| first.started);
        let standing = |(number, spec): (usize, &FlowSpec)| FlowOutcome {
            started: first(number),
            policed: self.polices(spec).then_some([0; 3]),
            lost: self.loses(spec).then_some(0),
            ..FlowOutcome::default()
        };
        let mut outcomes: Vec<FlowOutcome> = network.flows.iter().enumerate().map(standing).collect();
        for flow in &setting.flows {
            let outcome = self.flow_outcome(&network.flows[flow.flow], flow);
            if flow.is_passing {
                outcomes[flow.flow].add(&outcome);
            } else {
                outcomes[flow.flow] = outcome;
            }
            if let Some(requests) = flow.requests {
                outcomes[requests.flow] = self.requests_outcome(&network.flows[requests.flow], flow);
            }
        }
        for population in &setting.populations {
            if let Some(transit) = self.transit_of(population) {
                let outcome = &mut outcomes[population.flow];
                outcome.transits = Some(transit.delays().clone());
                (outcome.mean_transit_s, outcome.p99_transit_s) = (transit.mean(), transit.p99());
            }
        }
        for (number, (outcome, spec)) in outcomes.iter_mut().zip(&network.flows).enumerate() {
            outcome.counted = counted(number, spec);
        }
        outcomes
    }

    /// Returns how long the packets of a population took; `None` without datagrams.
    fn transit_of(&self, population: &Population) -> Option<TransitMeter> {
        let all = self.at(Side::Receiving).received.transits.iter().skip(population.first);
        let mut known = all.take(population.records.len()).flatten().peekable();
        known.peek()?;
        let mut sum = TransitMeter::new(self.window());
        known.for_each(|transit| sum.add(transit));
        Some(sum)
    }

    /// Returns what became of the flows of each population.
    fn populations(&self) -> Vec<PopulationOutcome> {
        let received = &self.at(Side::Receiving).received;
        let window = self.window();
        let outcome = |population: &Population| {
            let completed = |member| {
                let at: Option<Instant> =
                    received.completed.get(population.first + member).copied().flatten();
                at.filter(|&at| at <= window.1).unwrap_or(Instant::NEVER)
            };
            let records = population.records.iter().enumerate();
            let flows: Vec<FlowRecord> = records
                .map(|(member, record)| FlowRecord { completed: completed(member), ..*record })
                .collect();
            let mean_open = mean_open(&flows, window);
            PopulationOutcome { flow: population.flow, flows, mean_open }
        };
        self.setting.populations.iter().map(outcome).collect()
    }

    /// Returns whether meters may drop packets of a flow.
    fn polices(&self, spec: &FlowSpec) -> bool {
        self.network.polices(spec, &self.network.route_of(spec, false).unwrap_or_default())
    }

    /// Returns whether links may lose packets of a flow after they have sent them.
    fn loses(&self, spec: &FlowSpec) -> bool {
        self.network.loses(&self.network.route_of(spec, false).unwrap_or_default())
    }

    fn flow_outcome(&self, spec: &FlowSpec, flow: &HostFlow) -> FlowOutcome {
        let number = flow.number;
        let (sent, received) = (&self.at(flow.from).sent, &self.at(flow.from.other()).received);
        // The kernel counts the end of a connection as a byte.
        let acked = sent.acked.get(number).copied().unwrap_or(0).min(flow.volume.unwrap_or(u64::MAX));
        let own = (sent.statistics.get(number).cloned().unwrap_or_default(), acked);
        let [servers, clients] = [Side::Sending, Side::Receiving].map(|side| &self.at(side).users);
        let attended = if flow.is_users { clients } else { servers };
        let (sender, acked) = attended.senders.get(&number).cloned().unwrap_or(own);
        let transit = received.transits.get(number).and_then(Option::as_ref);
        let transit = transit.or_else(|| clients.transits.get(&number));
        FlowOutcome {
            acked_bps: rate(flow.on_wire(acked).0, self.time(spec, flow)),
            mean_transit_s: transit.and_then(TransitMeter::mean),
            p99_transit_s: transit.and_then(TransitMeter::p99),
            transits: transit.map(TransitMeter::delays).cloned(),
            jitter_s: transit.and_then(TransitMeter::jitter),
            play_out: transit.and_then(TransitMeter::played),
            completion: self.completion(spec, flow, received),
            sender,
            receiver_window: sent
                .receiver_windows
                .get(number)
                .filter(|&&bytes| bytes > 0)
                .map(|&bytes| bytes.into()),
            ..self.counted(spec, flow, 0)
        }
    }

    /// Returns what became of the requests of a user's connection. The ACKs of responses are among the
    /// packets that were sent.
    fn requests_outcome(&self, spec: &FlowSpec, flow: &HostFlow) -> FlowOutcome {
        let (sender, acked) =
            self.at(Side::Receiving).users.senders.get(&flow.number).cloned().unwrap_or_default();
        let payload = flow.requests.map_or(flow.payload, |requests| requests.payload);
        let acked = on_wire(acked, payload, flow.headers()).0;
        FlowOutcome { acked_bps: rate(acked, self.time(spec, flow)), sender, ..self.counted(spec, flow, 1) }
    }

    /// Returns whether and when a flow completed its volume.
    fn completion(&self, spec: &FlowSpec, flow: &HostFlow, received: &Received) -> Completion {
        let route = self.network.route_of(spec, false).unwrap_or_default();
        let Some(idle) = self.network.idle_time(spec, &route) else { return Completion::Endless };
        let completed = received.completed.get(flow.number).copied().flatten();
        Completion::of(idle, Some(flow.start), completed, self.window())
    }

    /// Returns the times between which all measurements lie.
    fn window(&self) -> (Instant, Instant) {
        (Instant::ZERO + self.network.warmup, Instant::ZERO + self.network.duration)
    }

    /// Returns the time over which the rates of a flow are: that in which it was active; of one that comes
    /// and goes, the measured time, since the rates of all flows of its population are added.
    fn time(&self, spec: &FlowSpec, flow: &HostFlow) -> Duration {
        let (begin, end) = self.window();
        self.active(spec, flow).unwrap_or(end.since(begin))
    }

    /// Returns how long a flow was active in the measured time; `None` for one that comes and goes.
    fn active(&self, spec: &FlowSpec, flow: &HostFlow) -> Option<Duration> {
        if flow.is_passing {
            return None;
        }
        let ((begin, end), Received { completed, last, .. }) =
            (self.window(), &self.at(flow.from.other()).received);
        let completed = completed.get(flow.number).copied().flatten();
        let last = last.get(flow.number).copied().unwrap_or_default();
        let replayed = spec.transport.trace().map(|trace| flow.start + trace.duration());
        let sent = replayed.into_iter().chain(flow.stop).min().filter(|&at| at <= end);
        let until = completed.or(sent.map(|at| at.max(last))).unwrap_or(end);
        Some(until.min(end).since(flow.start.max(begin)))
    }

    /// Returns whether data of a flow can have arrived by the end, as far as its start and stop are
    /// concerned.
    fn can_deliver(&self, spec: &FlowSpec, flow: &HostFlow) -> bool {
        let links = |acknowledges| self.network.route_of(spec, acknowledges).unwrap_or_default();
        let first = self.network.first_data(spec, &links(false), &links(true));
        first.can_arrive(flow.start, flow.stop.unwrap_or(Instant::NEVER), self.window().1)
    }

    /// Returns what receiver and router counted of a flow: of its data, or of what goes back.
    fn counted(&self, spec: &FlowSpec, flow: &HostFlow, way: usize) -> FlowOutcome {
        let Samples { at_warmup, at_end, .. } = &self.samples;
        let number = flow.number;
        let (then, now) = (at_warmup.arrived[number][way], at_end.arrived[number][way]);
        let (delivered_bytes, delivered_packets) = (now.0 - then.0, now.1 - then.1);
        let (streams_then, streams_now) = (&at_warmup.streams[number][way], &at_end.streams[number][way]);
        let by_color = |of: fn(&StreamCounts) -> [u64; 3]| {
            let (now, then) = (of(streams_now), of(streams_then));
            std::array::from_fn(|color| now[color] - then[color])
        };
        let at_host = self.at(flow.from).sent.marked.get(number).copied().flatten();
        let (mut marked, at_host) = match at_host {
            Some((marked, policed)) => (marked, policed),
            None => (by_color(|counts| counts.marked), [0; 3]),
        };
        if spec.marking == Marking::None {
            marked[spec.color.index()] = streams_now.arrived.packets - streams_then.arrived.packets;
        }
        FlowOutcome {
            started: Some(flow.start).filter(|&at| at <= self.window().1),
            active: self.active(spec, flow),
            is_too_brief: delivered_packets == 0 && !self.can_deliver(spec, flow),
            delivered_packets,
            delivered_bytes,
            throughput_bps: rate(delivered_bytes, self.time(spec, flow)),
            marked,
            policed: self.polices(spec).then(|| {
                let by_router = by_color(|counts| counts.policed);
                std::array::from_fn(|color| by_router[color] + at_host[color])
            }),
            dropped: by_color(|counts| counts.dropped),
            lost: self.loses(spec).then(|| streams_now.lost - streams_then.lost),
            ..FlowOutcome::default()
        }
    }

    fn report(&self) -> LabReport {
        let Self { network, setting, scenario, routed, hosts, .. } = self;
        let shortest = topology::shortest_round_trip(network);
        let mut report = LabReport {
            invalid: Vec::new(),
            notes: setting.notes.iter().cloned().chain(self.notes()).collect(),
            late: self.late(shortest),
            real_time: routed.real_time,
            cpu: routed.cpu,
            wall: routed.wall,
            counters: routed.plane.counters().clone(),
            drops: self.drops(),
            kernel: uname()
                .map_or_else(|_| String::new(), |name| name.release().to_string_lossy().into_owned()),
            senders: senders(setting, scenario),
        };
        report.invalid = faults(&report, shortest, hosts);
        report
    }

    fn late(&self, shortest_round_trip: Duration) -> Late {
        let late = &self.routed.report.lateness;
        // The limit has a floor: a very short round-trip time does not make hosts more sensitive to lateness.
        let tenth = Duration::from_nanos(shortest_round_trip.as_nanos() / 10).max(LEAST_LATENESS);
        Late {
            p50: late.quantile(0.5),
            p90: late.quantile(0.9),
            p99: late.quantile(0.99),
            p999: late.quantile(0.999),
            largest: late.largest(),
            pause: late.longest_pause(),
            allowed: self.scenario.live.max_lateness.unwrap_or(tenth),
        }
    }

    fn drops(&self) -> Drops {
        let Self { routed: Routed { plane, report, .. }, hosts: [sent, received], .. } = self;
        let at_devices = report.aside.iter().map(|aside| aside.overrun + aside.merged + aside.too_long);
        Drops {
            to_router: sent.drops.to_router + received.drops.to_router + at_devices.sum::<u64>(),
            to_hosts: sent.drops.to_host + received.drops.to_host,
            no_buffer: plane.counters().lost(Loss::NoBuffer),
            unsent: report.unsent,
        }
    }

    /// Notes on flows that did not connect or start.
    fn notes(&self) -> Vec<String> {
        let sent = &self.at(Side::Sending).sent;
        let mut notes = Vec::new();
        if let [first, ..] = &sent.unconnected[..] {
            let (flows, which) =
                (sent.unconnected.len(), if sent.unconnected.len() > 1 { ", and others" } else { "" });
            notes.push(format!(
                "{flows} flow(s) had not connected by the end ({first}{which}): their SYNs were dropped or still in transit"
            ));
        }
        let (_, end) = self.window();
        if let Some(late) = self.network.flows.iter().find(|flow| flow.start.0 >= end) {
            notes.push(format!("{} starts after the end of the run", late.name));
        }
        notes
    }
}

/// Returns how many of these flows were open at once, on average over a time.
fn mean_open(flows: &[FlowRecord], (begin, end): (Instant, Instant)) -> f64 {
    let open = flows.iter().map(|flow| flow.completed.min(end).since(flow.started.max(begin)).as_nanos());
    open.map(u128::from).sum::<u128>() as f64 / end.since(begin).as_nanos() as f64
}

/// Returns the sender of each group.
fn senders(setting: &Setting, scenario: &Scenario) -> Vec<String> {
    let name = |group| {
        let flow = setting.flows.iter().find(|flow| flow.group == group)?;
        Some(match &flow.kind {
            Kind::Tcp { kernel, own } => {
                let sender = kernel.as_ref().map_or_else(
                    || "perhop's own TCP".into(),
                    |kernel| format!("Linux TCP, {}", kernel.congestion),
                );
                let is_received = own.as_ref().is_some_and(|own| own.receives);
                if is_received { format!("{sender}, to perhop's own") } else { sender }
            }
            Kind::Datagrams { .. } => "perhop's own, over UDP".into(),
        })
    };
    (0..scenario.flows.len()).map(|group| name(group).unwrap_or_default()).collect()
}

/// Faults of the machine that could have changed the result.
fn faults(report: &LabReport, shortest: Duration, hosts: &[Done; 2]) -> Vec<String> {
    let LabReport { late, drops, .. } = report;
    let mut faults = Vec::new();
    let millis = |span: Duration| format!("{:.3} ms", span.as_secs_f64() * 1e3);
    if late.p99 > late.allowed {
        let (p99, allowed) = (millis(late.p99), millis(late.allowed));
        faults.push(format!(
            "1 % of packets left the router at least {p99} late; at most {allowed} is allowed"
        ));
    }
    let own_late = hosts.iter().map(|host| host.own_late).max().unwrap_or_default();
    if own_late > late.allowed {
        let (p99, allowed) = (millis(own_late), millis(late.allowed));
        faults.push(format!(
            "perhop's own TCP was at least {p99} late with 1 % of its packets and timers; at most {allowed} is allowed"
        ));
    }
    let still = shortest.max(LEAST_PAUSE);
    if late.pause > still {
        let (pause, still) = (millis(late.pause), millis(still));
        faults.push(format!(
            "the router paused for {pause}; at most {still} is allowed, a round trip without queues"
        ));
    }
    let outside = [
        (drops.to_router, "in the kernel's queue to the router"),
        (drops.to_hosts, "in the kernel's queue to a host"),
        (drops.no_buffer, "because the router had no free buffer"),
        (drops.unsent, "at a device that accepted no packet"),
    ];
    for (packets, place) in outside.into_iter().filter(|(packets, _)| *packets > 0) {
        faults.push(format!("{packets} packets were lost {place}, where the scenario has no queue"));
    }
    let failed = hosts.iter().flat_map(|host| host.sent.failed.iter().chain(&host.users.failed));
    faults.extend(failed.map(|failed| format!("a flow failed: {failed}")));
    let late = hosts.iter().flat_map(|host| host.sent.late.iter().chain(&host.users.late));
    for (what, late) in late.filter(|(_, late)| *late > PATIENCE) {
        let (late, patience) = (millis(*late), millis(PATIENCE));
        faults.push(format!("a host was {late} late with {what}; at most {patience} is allowed"));
    }
    let behind = hosts.iter().flat_map(|host| &host.sent.behind);
    faults.extend(behind.map(|(flow, behind)| {
        format!("at the end a host was {} late with packets of {flow}", millis(*behind))
    }));
    faults
}

#[cfg(test)]
mod tests {
    use perhop_live::PlaneSpec;

    use super::*;

    fn faults_of(late: [Duration; 2]) -> Vec<String> {
        let allowed = Duration::from_millis(2);
        let report = LabReport {
            invalid: Vec::new(),
            notes: Vec::new(),
            late: Late { allowed, ..Late::default() },
            real_time: false,
            cpu: Duration::ZERO,
            wall: Duration::ZERO,
            counters: Plane::new(PlaneSpec::default(), 1).counters().clone(),
            drops: Drops::default(),
            kernel: String::new(),
            senders: Vec::new(),
        };
        let hosts = late.map(|own_late| Done { own_late, ..Done::default() });
        faults(&report, Duration::from_millis(20), &hosts)
    }

    #[test]
    fn a_run_whose_own_tcp_is_late_is_invalid() {
        let [soon, late] = [2, 3].map(Duration::from_millis);
        assert_eq!(faults_of([soon, soon]), [""; 0]);
        let said = "perhop's own TCP was at least 3.000 ms late with 1 % of its packets and timers; at most 2.000 ms is allowed";
        assert_eq!(faults_of([soon, late]), [said]);
        assert_eq!(faults_of([late, soon]), [said]);
    }
}
