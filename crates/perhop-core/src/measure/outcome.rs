//! What is told of a port at the end of a run.

use super::{DelayHistogram, PortView};
use crate::{Bitrate, Color, Counters, Duration, Ledger};

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
    /// What a look at the port of this link shows.
    pub fn of(name: &str, rate: Bitrate, port: &PortView<'_>) -> Self {
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
