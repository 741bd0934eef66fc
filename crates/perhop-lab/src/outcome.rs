//! The result of a run: an outcome as from a simulation, and a report on whether the machine could have changed it.

use nix::sys::utsname::uname;
use perhop_core::{Duration, Instant};
use perhop_live::{Loss, Plane, Report, StreamCounts};
use perhop_scenario::Scenario;
use perhop_sim::transport::transit::TransitMeter;
use perhop_sim::{Completion, FlowOutcome, FlowSpec, Marking, Network, Outcome};

use crate::hosts::{Received, Sent};
use crate::observer::{Samples, Totals};
use crate::report::{Drops, LabReport, Late};
use crate::run::Run;
use crate::setting::{HostFlow, Kind, Setting};
use crate::topology;

/// The 99th percentile of lateness and the longest pause may always be this long, however short round trips are.
const LEAST_LATENESS: Duration = Duration::from_millis(1);
const LEAST_PAUSE: Duration = Duration::from_millis(10);

/// The state of the router at the end of a run.
pub(crate) struct Routed {
    pub(crate) plane: Plane,
    pub(crate) report: Report,
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
    pub(crate) sent: &'a Sent,
    pub(crate) received: &'a Received,
}

impl Measured<'_> {
    /// The result of the run.
    pub(crate) fn into_run(self) -> Run {
        let report = self.report();
        let flows = self.network.flows.iter().zip(&self.setting.flows);
        let flows = flows.map(|(spec, flow)| self.flow_outcome(spec, flow)).collect();
        let (events, hops) = (self.routed.report.slept, self.routed.plane.counters().all_read());
        let Samples { series, links, .. } = self.samples;
        Run {
            outcome: Outcome {
                engine: None,
                events,
                hops,
                flows,
                populations: Vec::new(),
                links,
                applications: Vec::new(),
                series,
            },
            report,
        }
    }

    fn flow_outcome(&self, spec: &FlowSpec, flow: &HostFlow) -> FlowOutcome {
        let Self { network, samples: Samples { at_warmup, at_end, .. }, sent, received, .. } = self;
        let measured = network.duration - network.warmup;
        let number = flow.number;
        let new = |count: fn(&Totals, usize) -> u64| count(at_end, number) - count(at_warmup, number);
        let on_wire = |data: u64| data as f64 * f64::from(flow.packet) / f64::from(flow.payload);
        let bps = |data: u64| on_wire(data) * 8.0 / measured.as_secs_f64();
        let data = new(|totals, number| totals.received[number]);
        let by_color = |of: fn(&StreamCounts) -> [u64; 3]| {
            let (now, then) = (of(&at_end.data[number]), of(&at_warmup.data[number]));
            std::array::from_fn(|color| now[color] - then[color])
        };
        let mut marked = by_color(|counts| counts.marked);
        if spec.marking == Marking::None {
            marked[spec.color.index()] = new(|totals, number| totals.data[number].arrived.packets);
        }
        let transit = received.transits.get(number).and_then(Option::as_ref);
        FlowOutcome {
            started: flow.start,
            delivered_packets: data / u64::from(flow.payload),
            delivered_bytes: on_wire(data) as u64,
            throughput_bps: bps(data),
            acked_bps: bps(sent.acked.get(number).copied().unwrap_or(0)),
            mean_transit_s: transit.and_then(TransitMeter::mean),
            p99_transit_s: transit.and_then(TransitMeter::p99),
            jitter_s: transit.and_then(TransitMeter::jitter),
            late: transit.and_then(TransitMeter::late),
            play_out_s: transit.and_then(TransitMeter::play_out),
            marked,
            policed: network
                .polices(spec, &network.route_of(spec, false).unwrap_or_default())
                .then(|| by_color(|counts| counts.policed)),
            congested: None,
            lost: None,
            dropped: by_color(|counts| counts.dropped),
            completion: completion(network, spec, flow, received),
            sender: sent.statistics.get(number).cloned().unwrap_or_default(),
        }
    }

    fn report(&self) -> LabReport {
        let Self { network, setting, scenario, routed, sent, .. } = self;
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
        report.invalid = faults(&report, shortest, sent);
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
        let Self { routed: Routed { plane, report, .. }, sent, received, .. } = self;
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
        let Self { network, sent, .. } = self;
        let mut notes = Vec::new();
        if let [first, ..] = &sent.unconnected[..] {
            let (flows, which) =
                (sent.unconnected.len(), if sent.unconnected.len() > 1 { ", and others" } else { "" });
            notes.push(format!(
                "{flows} flow(s) had not connected by the end ({first}{which}): their SYNs were dropped or still in transit"
            ));
        }
        let end = Instant::ZERO + network.duration;
        if let Some(late) = network.flows.iter().find(|flow| flow.start.0 >= end) {
            notes.push(format!("{} starts after the end of the run", late.name));
        }
        notes
    }
}

/// Whether and when a flow completed its volume.
fn completion(network: &Network, spec: &FlowSpec, flow: &HostFlow, received: &Received) -> Completion {
    let route = network.route_of(spec, false).unwrap_or_default();
    let Some(idle) = network.idle_time(spec, &route) else { return Completion::Endless };
    let completed = received.completed.get(flow.number).copied().flatten();
    let window = (Instant::ZERO + network.warmup, Instant::ZERO + network.duration);
    Completion::of(idle, flow.start, completed, window)
}

/// The sender of each group.
fn senders(setting: &Setting, scenario: &Scenario) -> Vec<String> {
    let name = |group| {
        let flow = setting.flows.iter().find(|flow| flow.group == group)?;
        Some(match &flow.kind {
            Kind::Tcp { congestion, .. } => format!("Linux TCP, {congestion}"),
            Kind::Datagrams { .. } => "perhop's own, over UDP".into(),
        })
    };
    (0..scenario.flows.len()).map(|group| name(group).unwrap_or_default()).collect()
}

/// Faults of the machine that could have changed the result.
fn faults(report: &LabReport, shortest: Duration, sent: &Sent) -> Vec<String> {
    let LabReport { late, drops, .. } = report;
    let mut faults = Vec::new();
    let millis = |span: Duration| format!("{:.3} ms", span.as_secs_f64() * 1e3);
    if late.p99 > late.allowed {
        let (p99, allowed) = (millis(late.p99), millis(late.allowed));
        faults.push(format!(
            "1 % of packets left the router at least {p99} late; at most {allowed} is allowed"
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
    faults.extend(sent.failed.iter().map(|failed| format!("a flow failed: {failed}")));
    faults.extend(sent.behind.iter().map(|(flow, behind)| {
        format!("at the end the sending host was {} late with packets of {flow}", millis(*behind))
    }));
    faults
}
