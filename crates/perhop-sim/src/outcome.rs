//! What a run gives.

use perhop_core::aqm::Reason;
use perhop_core::{Bitrate, Color, Counters, Duration, Instant};

use crate::link::PortView;
use crate::probe::Series;
use crate::transport::SenderStatistics;

/// Everything measured in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Events handled.
    pub events: u64,
    /// Packets offered to links, once for each link.
    pub hops: u64,
    /// For each flow, in order.
    pub flows: Vec<FlowOutcome>,
    /// For each link with a ruled queue, in order.
    pub links: Vec<LinkOutcome>,
    /// What the probes saw.
    pub series: Series,
}

/// What became of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowOutcome {
    /// When it began.
    pub started: Instant,
    /// Packets that reached the receiver for the first time, over the whole run.
    pub delivered_packets: u64,
    /// Their bytes on the wire, over the whole run.
    pub delivered_bytes: u64,
    /// First deliveries after the warm-up, in bit/s.
    pub throughput_bps: f64,
    /// Segments acknowledged in order after the warm-up, in bit/s on the wire (TCP; else 0).
    pub acked_bps: f64,
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
    /// Share of the measured time in which it transmitted.
    pub utilization: f64,
    /// Mean number of packets waiting, over the measured time.
    pub mean_queue_packets: f64,
    /// Edges of the delay bins in seconds.
    pub delay_edges: Vec<f64>,
    /// Packets in each bin of waiting time, by color.
    pub delay_counts: Vec<[u64; 3]>,
    /// The longest waiting time of each color.
    pub largest_delay: [Duration; 3],
}

impl LinkOutcome {
    pub(crate) fn of(name: &str, rate: Bitrate, port: PortView<'_>) -> Self {
        let (delay_edges, delay_counts) = port.statistics.delays.bins();
        Self {
            name: name.into(),
            rate,
            counters: port.counters.clone(),
            waiting: Color::ALL.map(|color| port.occupancy.packets_of(color)),
            utilization: port.statistics.utilization(rate),
            mean_queue_packets: port.statistics.mean_packets(),
            delay_edges,
            delay_counts,
            largest_delay: port.statistics.delays.largest(),
        }
    }

    /// Packets dropped for each reason that occurred, by color.
    pub fn drops(&self) -> impl Iterator<Item = (Reason, [u64; 3])> {
        Reason::ALL
            .into_iter()
            .map(|reason| (reason, self.counters.dropped(reason)))
            .filter(|(_, n)| *n != [0; 3])
    }
}
