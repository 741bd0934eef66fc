//! Probes: what is looked at in regular intervals. They read and never change.

use perhop_core::Instant;
use perhop_core::aqm::{AnyAqm, Aqm};

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
    /// The averages that its AQM keeps, by name.
    pub averages: Vec<(&'static str, Vec<f64>)>,
}

impl QueueSeries {
    pub(crate) fn of(link: &str) -> Self {
        Self { link: link.into(), ..Self::default() }
    }

    pub(crate) fn record_averages(&mut self, aqm: &AnyAqm) {
        for (name, value) in aqm.averages() {
            match self.averages.iter_mut().find(|(known, _)| *known == name) {
                Some((_, samples)) => samples.push(value),
                None => self.averages.push((name, vec![value])),
            }
        }
    }
}
