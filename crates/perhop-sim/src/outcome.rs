//! What a run gives.

use perhop_core::{Bitrate, Color, Counters, Duration, Instant, Ledger};

use crate::histogram::DelayHistogram;
use crate::port::PortView;
use crate::probe::Series;
use crate::transport::SenderStatistics;

/// Everything measured in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Events handled.
    pub events: u64,
    /// Packets that came to links between routers, once for each link.
    pub hops: u64,
    /// For each flow, in order.
    pub flows: Vec<FlowOutcome>,
    /// For each link with a ruled queue, in order.
    pub links: Vec<LinkOutcome>,
    /// What the probes saw.
    pub series: Series,
}

/// What became of one flow. All counts are of what happened after the warm-up; those of links are of the whole run, so that
/// they can be balanced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowOutcome {
    /// When it began.
    pub started: Instant,
    /// Packets that reached the receiver for the first time.
    pub delivered_packets: u64,
    /// Their bytes on the wire.
    pub delivered_bytes: u64,
    /// First deliveries, in bit/s.
    pub throughput_bps: f64,
    /// Segments acknowledged in order, in bit/s on the wire (TCP; else 0).
    pub acked_bps: f64,
    /// The mean one-way transit time in seconds, from the sending host to the receiving one, of the packets that arrived
    /// after the warm-up; `None` for TCP and where none did.
    pub mean_transit_s: Option<f64>,
    /// The mean of RFC 3550's interarrival jitter J in seconds over these packets; `None` for TCP and where fewer than two
    /// came.
    pub jitter_s: Option<f64>,
    /// Packets marked with each color.
    pub marked: [u64; 3],
    /// Data packets dropped in the network, by color.
    pub dropped: [u64; 3],
    /// What the sender counted.
    pub sender: SenderStatistics,
}

impl FlowOutcome {
    /// The mean of the round trips measured, if any was.
    pub fn mean_rtt(&self) -> Option<Duration> {
        let (samples, sum) = self.sender.rtt_samples;
        (samples > 0).then(|| Duration::from_nanos((sum / u128::from(samples)) as u64))
    }
}

/// What went through one link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOutcome {
    /// The link's name.
    pub name: String,
    /// Its rate.
    pub rate: Bitrate,
    /// Packets by color and reason, over the whole run.
    pub counters: Counters,
    /// Packets waiting at the end, by color.
    pub waiting: [u64; 3],
    /// Waiting times of all packets.
    pub delays: DelayOutcome,
    /// For a queue that tells classes of packets apart, each of them, in order; else empty.
    pub classes: Vec<ClassOutcome>,
    /// Share of the measured time in which it transmitted.
    pub utilization: f64,
    /// Mean number of packets waiting, over the measured time.
    pub mean_queue_packets: f64,
}

/// Waiting times at a queue, of packets that came after the warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayOutcome {
    /// Edges of the bins in seconds.
    pub edges: Vec<f64>,
    /// Packets in each bin, by color.
    pub counts: Vec<[u64; 3]>,
    /// The longest waiting time of each color.
    pub largest: [Duration; 3],
}

/// What went through one class of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassOutcome {
    /// The class's name.
    pub name: String,
    /// Packets by color and reason, over the whole run.
    pub counters: Counters,
    /// Packets waiting at the end, by color.
    pub waiting: [u64; 3],
    /// Their waiting times.
    pub delays: DelayOutcome,
}

impl LinkOutcome {
    pub(crate) fn of(name: &str, rate: Bitrate, port: &PortView<'_>) -> Self {
        let histograms = &port.statistics.delays;
        let several = port.classes.len() > 1;
        let classes = port.classes.iter().zip(histograms).filter(|_| several);
        Self {
            name: name.into(),
            rate,
            counters: port.counters(),
            waiting: port.waiting(),
            utilization: port.statistics.utilization(rate),
            mean_queue_packets: port.statistics.mean_packets(),
            delays: DelayOutcome::of(&DelayHistogram::sum(histograms)),
            classes: classes.map(|((name, ledger), delays)| ClassOutcome::of(name, ledger, delays)).collect(),
        }
    }
}

impl ClassOutcome {
    fn of(name: &str, ledger: &Ledger, delays: &DelayHistogram) -> Self {
        Self {
            name: name.into(),
            counters: ledger.counters.clone(),
            waiting: Color::ALL.map(|color| ledger.occupancy.packets_of(color)),
            delays: DelayOutcome::of(delays),
        }
    }
}

impl DelayOutcome {
    fn of(histogram: &DelayHistogram) -> Self {
        let (edges, counts) = histogram.bins();
        Self { edges, counts, largest: histogram.largest() }
    }
}
