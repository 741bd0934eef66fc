//! The results of a port at the end of a run.

use super::{Counted, DelayHistogram, PortView, TransitCounts, Usage, inverted_cdf};
use crate::meter::MeterCounts;
use crate::{Bitrate, ClassCounters, Color, Counters, Duration, Instant};

/// What went through one link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOutcome {
    /// The link's name.
    pub name: String,
    /// The rate of the link, at the start of the run if that changes.
    pub rate: Bitrate,
    /// Packets by color and reason, over the whole run: with `waiting`, they are conserved.
    pub counters: Counters,
    /// Packets by color and reason, after the warm-up.
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
    /// Times from which it had a rate, in bit/s, zero in outages; empty for a link whose rate is always the
    /// same or follows a trace.
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
    /// The longest waiting time in each bin; zero in one without packets.
    pub longest: Vec<Duration>,
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
    /// Packets by color and reason, after the warm-up.
    pub measured: Counters,
    /// Packets waiting at the end, by color.
    pub waiting: [u64; 3],
    /// The waiting times of the packets of this class.
    pub delays: DelayOutcome,
}

impl LinkOutcome {
    /// Returns the counters and statistics of a link's port; nothing is counted before the warm-up ended, see
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
    /// Returns the delays of a histogram.
    pub fn of(histogram: &DelayHistogram) -> Self {
        let (edges, counts) = histogram.bins();
        Self { edges, counts, longest: histogram.longest(), largest: histogram.largest() }
    }

    /// Returns the [`q`-quantile](inverted_cdf) in seconds: the longest waiting time in its bin; `None`
    /// without a packet.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let packets = self.counts.iter().map(|by_color| by_color.iter().sum());
        inverted_cdf(packets.zip(&self.longest), q).map(|longest| longest.as_secs_f64())
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
            longest: [700, 0, 2500].map(Duration::from_millis).to_vec(),
            largest: [Duration::from_millis(2500); 3],
        };
        assert_eq!([0.0, 0.4, 0.41, 1.0].map(|q| delays.quantile(q)), [0.7, 0.7, 2.5, 2.5].map(Some));
        let none = DelayOutcome::of(&DelayHistogram::default());
        assert_eq!(none.quantile(0.5), None);
    }

    #[test]
    fn a_constant_wait_has_no_variation() {
        let mut histogram = DelayHistogram::default();
        let constant = Duration::from_nanos(804_800_000);
        histogram.record(Color::Green, Duration::ZERO);
        (0..1000).for_each(|_| histogram.record(Color::Yellow, constant));
        histogram.record(Color::Red, Duration::from_millis(900));
        let delays = DelayOutcome::of(&histogram);
        assert_eq!([0.01, 0.5, 0.99].map(|q| delays.quantile(q)), [Some(0.8048); 3]);
        assert_eq!((delays.quantile(0.0), delays.quantile(1.0)), (Some(0.0), Some(0.9)));
    }
}
