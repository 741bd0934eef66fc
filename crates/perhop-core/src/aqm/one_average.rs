//! One average over all packets of a queue, under which packets have different tests.

use super::curve::CurveTest;
use super::early::{Ewma, IdleClock, keep_unit};
use super::{Reason, Verdict};
use crate::units::UnitError;
use crate::{Bytes, Context, Depth, Environment, Header, Instant, Occupancy, Rng, Unit, Weight};

/// The average over all packets, kept in one unit, and the queue's limit.
#[derive(Clone, Debug)]
pub(super) struct OneAverage {
    limit: Depth,
    weight: Weight,
    unit: Unit,
    average: Ewma,
    idle: IdleClock,
}

impl OneAverage {
    /// An average in this unit before the first packet, of a queue with this limit.
    pub(super) fn new(
        limit: Depth,
        weight: Weight,
        unit: Unit,
        mean_packet: Bytes,
        environment: Environment,
    ) -> Self {
        let idle = IdleClock::new(mean_packet, environment.rate);
        Self { limit, weight, unit, average: Ewma::default(), idle }
    }

    /// Goes on with the average of a running queue; refuses thresholds at `key` in another unit.
    pub(super) fn take_over(&mut self, key: &str, before: &Self) -> Result<(), UnitError> {
        keep_unit(key, before.unit, self.unit)?;
        self.average = before.average;
        self.idle.take_over(&before.idle);
        Ok(())
    }

    /// The average.
    pub(super) fn get(&self) -> f64 {
        self.average.get()
    }

    /// The queue has been idle since then.
    pub(super) fn begin_idle(&mut self, since: Instant) {
        self.idle.begin(since);
    }

    /// Whether the queue has no room for a packet; `limit` is one for packets like it.
    #[inline]
    fn is_full(&self, limit: Option<Depth>, packet: &Header, queue: &Occupancy) -> bool {
        queue.is_full_for(packet, self.limit) || limit.is_some_and(|limit| queue.is_full_for(packet, limit))
    }

    /// Updates the average, and asks the packet's test if it has one.
    #[inline]
    pub(super) fn judge(
        &mut self,
        test: Option<&mut CurveTest>,
        limit: Option<Depth>,
        packet: &Header,
        queue: &Occupancy,
        cx: &mut Context<'_>,
    ) -> Verdict {
        self.average.decay(self.weight, self.idle.missed(cx.now));
        self.average.update(self.weight, queue.total(self.unit));
        let full = self.is_full(limit, packet, queue);
        let verdict = match test {
            Some(test) if full => {
                test.lost();
                Verdict::Drop(Reason::Overflow)
            }
            None if full => Verdict::Drop(Reason::Overflow),
            Some(test) => Verdict::of(test.judge(self.average.get(), packet, cx.rng)),
            None => Verdict::Pass,
        };
        self.idle.settle(verdict.admits(packet), cx.now);
        verdict
    }

    /// Returns the verdict on arrival at a queue that asks tests at its head: only the limits act.
    pub(super) fn admit(
        &mut self,
        limit: Option<Depth>,
        packet: &Header,
        queue: &Occupancy,
        now: Instant,
    ) -> Verdict {
        self.average.decay(self.weight, self.idle.missed(now));
        let full = self.is_full(limit, packet, queue);
        self.idle.settle(!full, now);
        if full { Verdict::Drop(Reason::Overflow) } else { Verdict::Pass }
    }

    /// A packet at the head: updates the average by what waits behind it, and asks its test.
    pub(super) fn judge_head(
        &mut self,
        test: Option<&mut CurveTest>,
        packet: &Header,
        left: &Occupancy,
        rng: &mut Rng,
    ) -> Verdict {
        self.average.update(self.weight, left.total(self.unit));
        test.map_or(Verdict::Pass, |test| Verdict::of(test.judge(self.average.get(), packet, rng)))
    }
}
