//! The result of a replay: rows of tables.

use std::io::Read;

use perhop_core::measure::{ClassOutcome, DelayOutcome, LinkOutcome, PortView};
use perhop_core::{Color, Counters, Dscp, Reason};
use perhop_live::wire::FiveTuple;
use serde::Serialize;

use crate::arrivals::{Arrivals, CaptureRow};
use crate::ledger::{Amount, Fates, Ledger, Outcome};
use crate::request::{Plan, Target};

/// What became of the packets of a capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What was read of the file.
    pub capture: CaptureRow,
    /// From time zero to the last arrival, in seconds.
    pub arrivals_s: f64,
    /// From time zero until the last packet had left, in seconds.
    pub duration_s: f64,
    /// All packets.
    pub all: FatesRow,
    /// The link, if there is one.
    pub link: Option<LinkRow>,
    /// The classes of the link's queue, if it distinguishes some; else the queue as a whole.
    pub classes: Vec<QueueRow>,
    /// The meters of the link.
    pub meters: Vec<MeterRow>,
    /// By the codepoint with which packets came.
    pub codepoints: Vec<CodepointRow>,
    /// By codepoint, color and what became of them.
    pub outcomes: Vec<OutcomeRow>,
    /// The flows with the most bytes.
    pub flows: Vec<FlowRow>,
    /// How many flows there were; at least, where some were forgotten.
    pub flow_count: u64,
    /// Small flows that were forgotten, since there were too many.
    pub flows_forgotten: u64,
    /// What a user should know of it.
    pub notices: Vec<String>,
}

/// What became of some packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FatesRow {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// The bytes of the packets that arrived.
    pub arrived_bytes: u64,
    /// Packets that left.
    pub forwarded_packets: u64,
    /// The bytes of the packets that left.
    pub forwarded_bytes: u64,
    /// Packets that meters dropped; none without a meter.
    pub policed_packets: Option<u64>,
    /// Packets that the queue dropped; none without a link.
    pub dropped_packets: Option<u64>,
    /// Packets that left with a congestion mark that they did not come with; none without a link.
    pub marked_packets: Option<u64>,
    /// Packets by the color that the meter at the edge gave them: green, yellow, red; none without that
    /// meter.
    pub colors: Option<[u64; 3]>,
    /// Mean waiting time of the packets that left, in seconds.
    pub delay_mean_s: Option<f64>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkRow {
    /// The name of the link.
    pub name: String,
    /// The rate of the link in bit/s.
    pub rate_bps: u64,
    /// Share of the duration in which it transmitted; none of no time.
    pub utilization: Option<f64>,
    /// Mean number of packets that waited; none of no time.
    pub mean_queue_packets: Option<f64>,
}

/// A queue or one of its classes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRow {
    /// The name of the queue or class.
    pub name: String,
    /// Packets that came to the queue or class.
    pub arrived_packets: u64,
    /// Packets that the queue or class sent.
    pub sent_packets: u64,
    /// Packets that the queue or class dropped, by reason.
    pub dropped: Vec<(&'static str, u64)>,
    /// Packets that it marked, by reason.
    pub marked: Vec<(&'static str, u64)>,
    /// Waiting times of the packets that it sent.
    #[serde(flatten)]
    pub delay: DelayRow,
}

/// Waiting times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelayRow {
    /// Median in seconds, at most 3.1 % or 1 µs above it.
    pub delay_p50_s: Option<f64>,
    /// 99th percentile.
    pub delay_p99_s: Option<f64>,
    /// The longest, exactly.
    pub delay_max_s: Option<f64>,
}

/// A meter of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeterRow {
    /// The name of the meter.
    pub name: String,
    /// Packets by the color with which they came.
    pub arrived: [u64; 3],
    /// Packets by the color with which they went on.
    pub passed: [u64; 3],
    /// Packets that it dropped, by the color that it gave them.
    pub policed: [u64; 3],
}

/// Packets that came with a codepoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CodepointRow {
    /// The codepoint's name, or its number.
    pub codepoint: String,
    /// What became of them.
    #[serde(flatten)]
    pub fates: FatesRow,
    /// Waiting times; none without a link.
    #[serde(flatten)]
    pub delay: DelayRow,
}

/// Packets that came with a codepoint and met one fate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutcomeRow {
    /// The codepoint with which they came.
    pub codepoint: String,
    /// The color that the meter at the edge gave them.
    pub color: Option<&'static str>,
    /// The codepoint with which they left; `None` if they were dropped.
    pub left: Option<String>,
    /// Why they were dropped.
    pub reason: Option<&'static str>,
    /// How many packets these are.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowRow {
    /// `10.0.0.1:5000 > 10.0.0.2:80 tcp`.
    pub flow: String,
    /// What became of its packets.
    #[serde(flatten)]
    pub fates: FatesRow,
}

impl Report {
    pub(crate) fn new<R: Read>(
        arrivals: &Arrivals<R>,
        plan: &Plan,
        ledger: &Ledger,
        view: Option<&PortView<'_>>,
    ) -> Self {
        let duration_s = ledger.end.as_secs_f64();
        let link = plan.target.link.as_ref();
        let outcome = link.zip(view).map(|(link, view)| LinkOutcome::of(&link.name, link.rate, view));
        let (flow_count, flows_forgotten) = ledger.flows.count();
        let row = outcome.as_ref().map(|outcome| LinkRow {
            name: outcome.name.clone(),
            rate_bps: outcome.rate.as_bps(),
            utilization: share(
                ledger.all.forwarded.bytes as f64 * 8.0 / outcome.rate.as_bps() as f64,
                duration_s,
            ),
            mean_queue_packets: share(ledger.all.waited_ns as f64 / 1e9, duration_s),
        });
        Self {
            capture: arrivals.row(),
            arrivals_s: ledger.last_arrival.as_secs_f64(),
            duration_s,
            all: FatesRow::new(&ledger.all, &plan.target),
            link: row,
            classes: outcome.as_ref().map(classes).unwrap_or_default(),
            meters: outcome.map(|outcome| meters(&outcome)).unwrap_or_default(),
            codepoints: codepoints(ledger, &plan.target),
            outcomes: ledger
                .outcomes
                .iter()
                .map(|(outcome, amount)| OutcomeRow::new(*outcome, *amount))
                .collect(),
            flows: ledger
                .flows
                .largest(plan.top)
                .into_iter()
                .map(|flow| FlowRow::new(flow, &plan.target))
                .collect(),
            flow_count: flow_count + flows_forgotten,
            flows_forgotten,
            notices: plan.notices.iter().cloned().chain(several(arrivals)).collect(),
        }
    }
}

/// Returns the notice of packets from several interfaces, which may be the same packets twice.
fn several<R: Read>(arrivals: &Arrivals<R>) -> Option<String> {
    let names: Vec<String> = arrivals.interface_names().iter().map(|name| format!("`{name}`")).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    arrivals.has_several_interfaces().then(|| {
        format!("the capture has packets of several interfaces{names}, and all are replayed; choose one by `interface`")
    })
}

/// Returns a part of a time; none of no time.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Returns the rows of a queue's classes.
fn classes(outcome: &LinkOutcome) -> Vec<QueueRow> {
    if outcome.classes.is_empty() {
        return vec![QueueRow::new("all", &outcome.counters, &outcome.delays)];
    }
    let row = |class: &ClassOutcome| QueueRow::new(&class.name, &class.counters, &class.delays);
    outcome.classes.iter().map(row).collect()
}

fn meters(outcome: &LinkOutcome) -> Vec<MeterRow> {
    let row = |meter: &perhop_core::measure::MeterOutcome| MeterRow {
        name: meter.name.clone(),
        arrived: meter.measured.arrived,
        passed: meter.measured.passed,
        policed: meter.measured.policed,
    };
    outcome.meters.iter().map(row).collect()
}

fn codepoints(ledger: &Ledger, target: &Target) -> Vec<CodepointRow> {
    let row = |(codepoint, (fates, delays)): (&u8, &(Fates, _))| {
        let delays = target.link.is_some().then(|| DelayOutcome::of(delays));
        CodepointRow {
            codepoint: name_of(*codepoint),
            fates: FatesRow::new(fates, target),
            delay: DelayRow::new(delays.as_ref()),
        }
    };
    ledger.by_codepoint.iter().map(row).collect()
}

fn name_of(codepoint: u8) -> String {
    Dscp::new(codepoint).unwrap_or_default().to_string()
}

impl FatesRow {
    fn new(fates: &Fates, target: &Target) -> Self {
        let Fates { arrived, forwarded, policed, dropped, marked, colors, .. } = *fates;
        let waits = target.link.is_some();
        let is_metered =
            target.meter.is_some() || target.link.as_ref().is_some_and(|link| !link.meters.is_empty());
        Self {
            arrived_packets: arrived.packets,
            arrived_bytes: arrived.bytes,
            forwarded_packets: forwarded.packets,
            forwarded_bytes: forwarded.bytes,
            policed_packets: is_metered.then_some(policed),
            dropped_packets: waits.then_some(dropped),
            marked_packets: waits.then_some(marked),
            colors: target.meter.as_ref().map(|_| colors),
            delay_mean_s: fates.mean_wait_s().filter(|_| waits),
        }
    }
}

impl QueueRow {
    fn new(name: &str, counters: &Counters, delays: &DelayOutcome) -> Self {
        let sum = |(reason, packets): (Reason, [u64; 3])| (reason.name(), packets.iter().sum());
        Self {
            name: name.into(),
            arrived_packets: counters.arrived.iter().sum(),
            sent_packets: counters.sent.iter().sum(),
            dropped: counters.drops().map(sum).collect(),
            marked: counters.notifications().map(sum).collect(),
            delay: DelayRow::new(Some(delays)),
        }
    }
}

impl DelayRow {
    fn new(delays: Option<&DelayOutcome>) -> Self {
        let delays = delays.filter(|delays| !delays.counts.is_empty());
        Self {
            delay_p50_s: delays.and_then(|delays| delays.quantile(0.5)),
            delay_p99_s: delays.and_then(|delays| delays.quantile(0.99)),
            delay_max_s: delays
                .and_then(|delays| delays.largest.iter().max())
                .map(|longest| longest.as_secs_f64()),
        }
    }
}

impl OutcomeRow {
    fn new(outcome: Outcome, amount: Amount) -> Self {
        Self {
            codepoint: name_of(outcome.came),
            color: outcome.color.map(Color::name),
            left: outcome.left.map(name_of),
            reason: outcome.lost.map(Reason::name),
            packets: amount.packets,
            bytes: amount.bytes,
        }
    }
}

impl FlowRow {
    fn new((tuple, fates): &(FiveTuple, Fates), target: &Target) -> Self {
        Self { flow: text_of(tuple), fates: FatesRow::new(fates, target) }
    }
}

/// Returns a five-tuple as `tcpdump` writes it.
fn text_of(tuple: &FiveTuple) -> String {
    let FiveTuple { source, destination, protocol, source_port, destination_port } = *tuple;
    let protocol = match protocol {
        1 => "icmp".into(),
        6 => "tcp".into(),
        17 => "udp".into(),
        58 => "icmpv6".into(),
        other => format!("protocol {other}"),
    };
    if (source_port, destination_port) == (0, 0) {
        return format!("{source} > {destination} {protocol}");
    }
    let from = std::net::SocketAddr::new(source, source_port);
    let to = std::net::SocketAddr::new(destination, destination_port);
    format!("{from} > {to} {protocol}")
}
