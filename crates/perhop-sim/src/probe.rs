//! Probes: samples at regular intervals. They change nothing.

use perhop_core::measure::PortView;
use perhop_core::{ClassCounters, Color, Counters, Instant};

/// Samples of every flow and of every queue with an AQM. Row k of a flow table is the state at `times[k]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The times of the samples.
    pub times: Vec<Instant>,
    /// First deliveries since the last sample, in bit/s; one row a sample, one column a flow.
    pub throughput_bps: Vec<f64>,
    /// Congestion windows in packets; NaN for a flow that has none.
    pub window_packets: Vec<f64>,
    /// Smoothed round-trip times in seconds; NaN before the first.
    pub rtt_s: Vec<f64>,
    /// Windows in packets as the control of the flow's path last sampled them; NaN for a flow without one.
    pub seen_packets: Vec<f64>,
    /// One for each link with a queue under an AQM, in order.
    pub queues: Vec<QueueSeries>,
}

/// Samples of one queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSeries {
    /// The link's name.
    pub link: String,
    /// Packets waiting.
    pub packets: Vec<f64>,
    /// Packets that came since the run began.
    pub arrived: Vec<f64>,
    /// Packets that were dropped since the run began.
    pub dropped: Vec<f64>,
    /// Internal state of the scheduler and its AQMs, by name: averages and control variables. With several
    /// queues, the queue's name is a prefix.
    pub gauges: Vec<(String, Vec<f64>)>,
    /// For a queue that distinguishes classes of packets, one for each, in order; else empty.
    pub classes: Vec<ClassSeries>,
}

/// Samples of one class of packets in a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassSeries {
    /// The class's name.
    pub name: String,
    /// Packets waiting.
    pub packets: Vec<f64>,
    /// Packets that came since the run began.
    pub arrived: Vec<f64>,
    /// Packets that were dropped since the run began.
    pub dropped: Vec<f64>,
}

impl Series {
    /// Returns the tables of samples of flows, the one that receivers fill first.
    pub(crate) fn tables(&mut self) -> [&mut Vec<f64>; 4] {
        [&mut self.throughput_bps, &mut self.window_packets, &mut self.rtt_s, &mut self.seen_packets]
    }
}

impl QueueSeries {
    /// No samples yet of this link's queue.
    pub fn of(link: &str) -> Self {
        Self { link: link.into(), ..Self::default() }
    }

    /// Adds a sample of its port.
    pub fn record(&mut self, port: &PortView<'_>) {
        let through = port.counters();
        self.packets.push(port.waiting().iter().sum::<u64>() as f64);
        self.arrived.push(through.arrived.iter().sum::<u64>() as f64);
        self.dropped.push(dropped(&through));
        for (name, value) in &port.gauges {
            match self.gauges.iter_mut().find(|(known, _)| known == name) {
                Some((_, samples)) => samples.push(*value),
                None => self.gauges.push((name.clone(), vec![*value])),
            }
        }
        if port.classes.len() > 1 {
            let empty =
                |(name, _): &(&str, _)| ClassSeries { name: (*name).into(), ..ClassSeries::default() };
            if self.classes.is_empty() {
                self.classes = port.classes.iter().map(empty).collect();
            }
            for (series, (_, ClassCounters { through, occupancy, .. })) in
                self.classes.iter_mut().zip(&port.classes)
            {
                series.packets.push(occupancy.packets() as f64);
                series.arrived.push(through.arrived.iter().sum::<u64>() as f64);
                series.dropped.push(dropped(through));
            }
        }
    }
}

fn dropped(through: &Counters) -> f64 {
    Color::ALL.into_iter().map(|color| through.dropped_of(color)).sum::<u64>() as f64
}
