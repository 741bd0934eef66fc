//! The memory that a run takes, as far as its scenario determines it: flows, links, and probe samples.
//! Packets that collect behind links without a limit need more.

use std::fmt;

use perhop_core::Duration;

use crate::directions::Direction;
use crate::format::{Flow, Scenario, Transport};
use crate::populations::expected_flows;

/// Bytes that one flow takes while a run is on: its part of the network, its two hosts, its first packets.
/// Measured at a hundred thousand flows, and rounded up.
const TCP_FLOW: u64 = 3100;
const CARRYING_FLOW: u64 = 4200;
/// Bytes that a flow of a large network adds once it sends: its packets in transit and in queues, and the
/// waiting times of classes that grow with traffic. Measured with two to ten flows for each direction of a
/// link, and rounded up; a second thread adds a sixth.
const SENDING: u64 = 3200;
/// Bytes that one direction of a link takes, and each queue behind it: its tables as they are read, its part
/// of the network, its packets and counters. Measured at ten thousand links, and rounded up.
const LINK: u64 = 15_000;
const QUEUE: u64 = 5_000;
/// Bytes that histograms add to a direction of a link that is in results, and to each of its queues.
const MEASURED: u64 = 10_000;
/// Bytes of the results of a link with a queue, and as many for each class that it distinguishes.
const LINK_RESULT: u64 = 20_000;
/// Bytes of a flow's results.
const FLOW_RESULT: u64 = 225;
/// Bytes of the record of a flow of a population.
const RECORD: u64 = 40;
/// The memory of fewer directions of links is not worth a word, beside what a program takes.
const MANY_LINKS: u64 = 1000;
/// The values in a sample of each flow: throughput, window, round-trip time, the window that a control has
/// seen.
const FLOW_VALUES: u64 = 4;
/// What a rule keeps track of, at most.
const GAUGES: u64 = 6;
/// The values in a sample of each class of a queue's packets.
const CLASS_VALUES: u64 = 3;
/// Bytes of a value.
const VALUE: u64 = 8;

/// Bytes that a run takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// How many flows there are, and what they take during the run.
    pub flows: u64,
    /// See `flows`.
    pub flow_bytes: u64,
    /// How many directions of links there are, and what they take during the run.
    pub links: u64,
    /// See `links`.
    pub link_bytes: u64,
    /// Bytes of their results.
    pub link_result_bytes: u64,
    /// How many flows of populations are expected.
    pub records: u64,
    /// How many samples the probes take, and their bytes.
    pub samples: u64,
    /// See `samples`.
    pub sample_bytes: u64,
}

impl Memory {
    /// Returns the bytes that are taken while the run is on.
    pub fn run(&self) -> u64 {
        let network = self.flow_bytes.saturating_add(self.link_bytes);
        network.saturating_add(self.record_bytes()).saturating_add(self.sample_bytes)
    }

    /// Returns what stays of it: its results.
    pub fn kept(&self) -> u64 {
        let results = self.flows.saturating_mul(FLOW_RESULT).saturating_add(self.record_bytes());
        results.saturating_add(self.sample_bytes).saturating_add(self.link_result_bytes)
    }

    /// Returns the records of flows of populations.
    fn record_bytes(&self) -> u64 {
        self.records.saturating_mul(RECORD)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        let count =
            |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        write!(f, "a run takes {:.1} GB", gigabytes(self.run()))?;
        write!(f, ": {:.1} GB for {}", gigabytes(self.flow_bytes), count(self.flows, "flow"))?;
        if self.links > MANY_LINKS {
            let links = count(self.links, "direction");
            write!(f, ", {:.1} GB for {links} of links", gigabytes(self.link_bytes))?;
        }
        if self.records > 0 {
            let records = count(self.records, "flow");
            write!(
                f,
                ", {:.1} GB for the records of {records} that come and go",
                gigabytes(self.record_bytes())
            )?;
        }
        if self.samples > 0 {
            let sampled = count(self.samples, "sample");
            write!(f, " and {:.1} GB for {sampled} of them and of the queues", gigabytes(self.sample_bytes))?;
        }
        Ok(())
    }
}

impl Scenario {
    /// Returns how much memory a run takes; packets not counted, except in large networks.
    pub fn memory(&self) -> Memory {
        let flows: u64 = self.flows.iter().map(Flow::all_flows).sum();
        let mut flow_bytes = self.flows.iter().map(|flow| flow.all_flows() * bytes_of(flow)).sum();
        let records = expected_flows(self) as u64;
        let times = |interval: Duration| self.duration.as_nanos() / interval.as_nanos().max(1);
        let samples = self.probes.interval.map_or(0, times);
        let queues: u64 = self.directions().map(|direction| values_of(&direction)).sum();
        let links = 2 * self.links.len() as u64;
        let (mut link_bytes, mut link_result_bytes) = (0, 0);
        if links > MANY_LINKS {
            flow_bytes += flows * SENDING;
            link_bytes = links * LINK;
            for direction in self.directions() {
                let classes =
                    direction.queue().map_or(1, |queue| queue.scheduler.aqms(None).len().max(1) as u64);
                link_bytes += classes * QUEUE;
                if self.has_results(&direction.name()) {
                    link_bytes += MEASURED * (1 + classes);
                    link_result_bytes += LINK_RESULT * if classes > 1 { 1 + classes } else { 1 };
                }
            }
        }
        let values = 1 + FLOW_VALUES * flows + queues;
        Memory {
            flows,
            flow_bytes,
            links,
            link_bytes,
            link_result_bytes,
            records,
            samples,
            sample_bytes: samples.saturating_mul(values * VALUE),
        }
    }
}

fn bytes_of(flow: &Flow) -> u64 {
    match &flow.transport {
        Transport::Tcp(params) if !params.sack => TCP_FLOW,
        _ => CARRYING_FLOW,
    }
}

/// Returns how many values a sample of a direction of a link has.
fn values_of(direction: &Direction<'_>) -> u64 {
    // Each grows as samples come, by half of its room at a time. A scheduler without AQMs has one or two
    // classes.
    let classes = match direction.queue().map(|queue| queue.scheduler.aqms(None).len() as u64) {
        None => 1,
        Some(0) => 2,
        Some(aqms) => aqms,
    };
    2 * (1 + classes * (GAUGES + CLASS_VALUES))
}
