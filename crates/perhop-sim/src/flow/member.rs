//! A flow of a population.

use perhop_core::Instant;

use super::{Counts, Flow};
use crate::observer::Origin;
use crate::probe::Series;
use crate::sampling::SampleTimes;
use crate::transport::Source;

impl Flow {
    /// Makes it a flow of a population, whose last packet has this size.
    pub(crate) fn join_population(&mut self, origin: Origin, last: u16) {
        self.rare.origin = origin;
        self.sender.set_last(last);
    }

    /// Returns how many packets of the flow have left the sending host so far, past the meter that may be
    /// there.
    pub(crate) fn put_on_wire(&self) -> u64 {
        let sent = self.sender.statistics().sent;
        if !self.sending.is_marked_at_host() {
            return sent;
        }
        sent - self.sending.policed().iter().sum::<u64>()
    }

    /// Returns what it has counted after the warm-up by now.
    pub(crate) fn counts_after_warmup(&self, now: Instant) -> Counts {
        let all = self.counts(now);
        match &self.rare.at_warmup {
            Some(before) => all.since(before),
            None => all,
        }
    }

    /// Adds what has newly been delivered to the sample of its population in this row: in bytes, whose sum
    /// does not depend on the order of flows.
    pub(super) fn sample_member(&mut self, row: usize, times: &SampleTimes, series: &mut Series) {
        let new = self.newly_delivered();
        times.add(&mut series.throughput_bps, row, self.rare.origin.spec, new as f64);
    }

    /// Adds what a flow that is over has delivered since the last sample to the next sample from `now` on.
    pub(crate) fn sample_last(&mut self, now: Instant, times: &SampleTimes, series: &mut Series) {
        if let Some(row) = times.row_from(now) {
            self.sample_member(row, times, series);
        }
    }
}
