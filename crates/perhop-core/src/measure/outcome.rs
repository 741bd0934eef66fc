//! The results of a port at the end of a run.

use super::{Counted, DelayHistogram, PortView, TransitCounts, Usage};
use crate::meter::MeterCounts;
use crate::{Bitrate, ClassCounters, Color, Counters, Duration, Instant};

/// What went through one link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOutcome {
    /// The link's name.
    pub name: String,
    /// Its rate, at the start of the run if that changes.
    pub rate: Bitrate,
    /// Packets by color and reason, over the whole run: with `waiting`, they are conserved.
    pub counters: Counters,
    /// The same, after the warm-up.
    pub measured: Counters,
    /// Packets waiting at the end, by color.
    pub waiting: [u64; 3],
    /// Waiting times of all packets.
    pub delays: DelayOutcome,
    /// For a queue that distinguishes classes of packets: each of them, in order. Otherwise empty.
    pub classes: Vec<ClassOutcome>,
    /// The meters before the queue, in order.
    pub meters: Vec<MeterOutcome>,
    /// The mean of its rate over the measured time, in bit/s: by its trace, if it has one; zero in outages.
    pub mean_rate_bps: f64,
    /// Times from which it had a rate, in bit/s, zero in outages; empty for a link whose rate is always the same or follows a trace.
    pub rates: Vec<(Instant, u64)>,
    /// Bits sent over the integral of its rate; zero for a link that could send nothing.
    pub utilization: f64,
    /// Mean number of packets waiting, over the measured time.
    pub mean_queue_packets: f64,
    /// What became of packets that were sent, after the warm-up.
    pub transit: TransitCounts,
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

/// What went through one meter of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterOutcome {
    /// The meter's name.
    pub name: String,
    /// Packets after the warm-up.
    pub measured: MeterCounts,
}

/// What went through one class of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassOutcome {
    /// The class's name.
    pub name: String,
    /// Packets by color and reason, over the whole run.
    pub counters: Counters,
    /// The same, after the warm-up.
    pub measured: Counters,
    /// Packets waiting at the end, by color.
    pub waiting: [u64; 3],
    /// Their waiting times.
    pub delays: DelayOutcome,
}

impl LinkOutcome {
    /// The counters and statistics of a link's port; nothing is counted before the warm-up ended, see
    /// [`after`](Self::after).
    pub fn of(name: &str, rate: Bitrate, port: &PortView<'_>) -> Self {
        let histograms = &port.statistics.delays;
        let several = port.classes.len() > 1;
        let classes = port.classes.iter().zip(histograms).filter(|_| several);
        let Usage { mean_rate_bps, utilization } = port.statistics.usage();
        Self {
            name: name.into(),
            rate,
            counters: port.counters(),
            measured: port.counters(),
            waiting: port.waiting(),
            mean_rate_bps,
            rates: port.statistics.rate_changes(),
            utilization,
            mean_queue_packets: port.statistics.mean_packets(),
            delays: DelayOutcome::of(&DelayHistogram::sum(histograms)),
            meters: port
                .meters
                .iter()
                .map(|&(name, counts)| MeterOutcome { name: name.into(), measured: counts.clone() })
                .collect(),
            classes: classes.map(|((name, class), delays)| ClassOutcome::of(name, class, delays)).collect(),
            transit: port.transit,
        }
    }

    /// Replaces the usage: that of a link that follows a trace refers to the trace.
    #[must_use]
    pub fn used(self, usage: Usage) -> Self {
        let Usage { mean_rate_bps, utilization } = usage;
        Self { mean_rate_bps, utilization, rates: Vec::new(), ..self }
    }

    /// Excludes the warm-up from what is measured.
    ///
    /// `at_warmup` is what was counted when it ended ([`PortView::counted`]); empty where there was none.
    #[must_use]
    pub fn after(mut self, at_warmup: &Counted) -> Self {
        for counters in &at_warmup.classes {
            self.measured = self.measured.since(counters);
        }
        for (class, counters) in self.classes.iter_mut().zip(&at_warmup.classes) {
            class.measured = class.measured.since(counters);
        }
        for (meter, counts) in self.meters.iter_mut().zip(&at_warmup.meters) {
            meter.measured = meter.measured.since(counts);
        }
        self.transit = self.transit.since(at_warmup.transit);
        self
    }
}

impl ClassOutcome {
    fn of(name: &str, class: &ClassCounters, delays: &DelayHistogram) -> Self {
        Self {
            name: name.into(),
            counters: class.through.clone(),
            measured: class.through.clone(),
            waiting: Color::ALL.map(|color| class.occupancy.packets_of(color)),
            delays: DelayOutcome::of(delays),
        }
    }
}

impl DelayOutcome {
    /// The delays of a histogram.
    pub fn of(histogram: &DelayHistogram) -> Self {
        let (edges, counts) = histogram.bins();
        Self { edges, counts, largest: histogram.largest() }
    }

    /// The `q`-quantile in seconds, linear within its bin, which ends at the longest; `None` without a packet.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let longest = self.largest.iter().max().map_or(0.0, |longest| longest.as_secs_f64());
        let packets = || self.counts.iter().map(|by_color| by_color.iter().sum::<u64>());
        let wanted = q * packets().sum::<u64>() as f64;
        let mut below = 0;
        for (edges, count) in self.edges.windows(2).zip(packets()).filter(|(_, count)| *count > 0) {
            if (below + count) as f64 >= wanted {
                let part = (wanted - below as f64) / count as f64;
                return Some(edges[0] + (edges[1].min(longest) - edges[0]) * part.min(1.0));
            }
            below += count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        // Four packets in the first second, none in the next, six in the one after that.
        let delays = DelayOutcome {
            edges: vec![0.0, 1.0, 2.0, 3.0],
            counts: vec![[1, 2, 1], [0; 3], [6, 0, 0]],
            largest: [Duration::from_millis(2500); 3],
        };
        assert_eq!(delays.quantile(0.2), Some(0.5));
        assert_eq!(delays.quantile(0.4), Some(1.0));
        // The last bin ends at the longest wait.
        assert_eq!(delays.quantile(0.7), Some(2.25));
        assert_eq!(delays.quantile(1.0), Some(2.5));
        let no_wait =
            DelayOutcome { edges: vec![0.0, 1.0], counts: vec![[5, 0, 0]], largest: [Duration::ZERO; 3] };
        assert_eq!(no_wait.quantile(0.5), Some(0.0));
        let none = DelayOutcome { edges: vec![0.0], counts: Vec::new(), largest: [Duration::ZERO; 3] };
        assert_eq!(none.quantile(0.5), None);
    }
}
