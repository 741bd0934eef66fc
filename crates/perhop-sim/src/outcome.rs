//! What a run gives.

use perhop_core::measure::LinkOutcome;
use perhop_core::{Duration, Instant};

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

/// What became of one flow. All counts are of what happened after the warm-up.
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
    /// Their 99th percentile, at most 3.1 % or 1 µs off; `None` likewise.
    pub p99_transit_s: Option<f64>,
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
