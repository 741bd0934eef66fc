//! Probes: what is looked at in regular intervals. They read and never change.

use perhop_core::{Color, Instant, Ledger};

use crate::link::PortView;

/// Samples of every flow and every ruled queue. Row k of a flow table is the state at `times[k]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// When the probes looked.
    pub times: Vec<Instant>,
    /// First deliveries since the last look, in bit/s; one row a look, one column a flow.
    pub throughput_bps: Vec<f64>,
    /// Congestion windows in packets; NaN for a flow that has none.
    pub window_packets: Vec<f64>,
    /// Smoothed round-trip times in seconds; NaN before the first.
    pub rtt_s: Vec<f64>,
    /// Windows in packets as the control of the flow's path last saw them; NaN for a flow without one.
    pub seen_packets: Vec<f64>,
    /// One for each link with a ruled queue, in order.
    pub queues: Vec<QueueSeries>,
}

/// Samples of one queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSeries {
    /// The link's name.
    pub link: String,
    /// Packets waiting.
    pub packets: Vec<f64>,
    /// What the queue and its rules keep track of, by name: averages, and whatever they steer by. With several queues, a
    /// queue's name stands before.
    pub gauges: Vec<(String, Vec<f64>)>,
    /// For a queue that tells classes of packets apart, one for each, in order; else empty.
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

impl QueueSeries {
    pub(crate) fn of(link: &str) -> Self {
        Self { link: link.into(), ..Self::default() }
    }

    pub(crate) fn record(&mut self, port: &PortView<'_>) {
        self.packets.push(port.waiting().iter().sum::<u64>() as f64);
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
            self.classes
                .iter_mut()
                .zip(&port.classes)
                .for_each(|(series, (_, ledger))| series.record(ledger));
        }
    }
}

impl ClassSeries {
    fn record(&mut self, ledger: &Ledger) {
        let dropped: u64 = Color::ALL.into_iter().map(|color| ledger.counters.dropped_of(color)).sum();
        self.packets.push(ledger.occupancy.packets() as f64);
        self.arrived.push(ledger.counters.arrived.iter().sum::<u64>() as f64);
        self.dropped.push(dropped as f64);
    }
}
