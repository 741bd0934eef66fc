//! Queues in which IN and OUT packets have averages of their own, under tests that differ: what RIO and its
//! relatives share.

#![expect(clippy::inline_always, reason = "a simulator's loop over packets is made of these calls")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::{Ewma, IdleClock, keep_unit};
use super::{Aqm, Verdict};
use crate::units::UnitError;
use crate::{
    Bytes, Color, Context, Depth, Environment, Header, Instant, Occupancy, Reason, Rng, Unit, Weight,
};

/// Which arrivals update which average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Averages {
    /// Every arrival updates both (Kim, Park & Bahk, figure 1).
    #[default]
    EveryArrival,
    /// IN arrivals update both, OUT arrivals the OUT average only (Clark & Fang; ns-2's DiffServ module).
    OwnClass,
    /// Only IN arrivals update (ns-2's `rio.cc`, a known defect).
    InArrivals,
}

/// Which average queue length the test of OUT packets uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// The average of all packets, IN and OUT (RIO-C).
    #[default]
    Coupled,
    /// The average of OUT packets only (RIO-D).
    Decoupled,
}

/// The averages avg_in and avg_total (or avg_out).
#[derive(Clone, Debug)]
pub struct InOutAverages {
    weight: Weight,
    unit: Unit,
    coupling: Coupling,
    /// An IN packet updates `in`; whether an OUT packet does, and which of them update `other`.
    in_at_out: bool,
    other_at_in: bool,
    other_at_out: bool,
    pub(super) r#in: Ewma,
    pub(super) other: Ewma,
}

impl InOutAverages {
    /// Returns the averages before the first packet; `coupling` says whether `other` is the average of the
    /// total or of the OUT queue.
    fn new(rule: Averages, coupling: Coupling, weight: Weight, unit: Unit) -> Self {
        Self {
            weight,
            unit,
            coupling,
            in_at_out: rule == Averages::EveryArrival,
            // Decoupled, an IN arrival says nothing of the OUT queue (unless every arrival counts).
            other_at_in: rule != Averages::OwnClass || coupling == Coupling::Coupled,
            other_at_out: rule != Averages::InArrivals,
            r#in: Ewma::default(),
            other: Ewma::default(),
        }
    }

    /// Goes on with the averages of a running queue.
    ///
    /// # Errors
    /// They are in another unit, or of other packets.
    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        keep_unit("in", before.unit, self.unit)?;
        if self.coupling != before.coupling {
            let text = "one of its averages would be of other packets than before; start a run with it";
            return Err(UnitError::at("coupling", text));
        }
        (self.r#in, self.other) = (before.r#in, before.other);
        Ok(())
    }

    /// Updates the averages that count this arrival, before which the link could have sent so many packets
    /// while it was idle.
    #[inline(always)]
    fn arrive(&mut self, packet: &Header, queue: &Occupancy, missed: u64) {
        // One number for both, or avg_total - avg_in could go negative.
        if missed > 0 {
            self.r#in.decay(self.weight, missed);
            self.other.decay(self.weight, missed);
        }
        let is_in = packet.color == Color::Green;
        if is_in || self.in_at_out {
            self.r#in.update(self.weight, queue.of(Color::Green, self.unit));
        }
        let updates_other = if is_in { self.other_at_in } else { self.other_at_out };
        if updates_other {
            let total = queue.total(self.unit);
            let other = match self.coupling {
                Coupling::Coupled => total,
                Coupling::Decoupled => total - queue.of(Color::Green, self.unit),
            };
            self.other.update(self.weight, other);
        }
    }
}

/// The tests of packets against the averages.
pub trait InOutTests: Sized {
    /// Updates averages of the tests' own on an arrival, before which the link could have sent `missed`
    /// packets while it was idle.
    #[inline]
    fn arrive(&mut self, _packet: &Header, _queue: &Occupancy, _missed: u64) {}

    /// Returns the verdict on a packet for which there is room.
    fn judge(&mut self, averages: &InOutAverages, packet: &Header, rng: &mut Rng) -> Verdict;

    /// Records that a packet was lost before it was tested.
    fn lost(&mut self, packet: &Header);

    /// Goes on with the counts of the tests of a running queue.
    ///
    /// # Errors
    /// The key whose change would leave an average without a meaning.
    fn take_over(&mut self, before: &Self) -> Result<(), UnitError>;

    /// Returns averages besides the two that all such queues have, by name.
    fn gauges(&self, _averages: &InOutAverages) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// A queue with an average of IN packets and one of all or of OUT packets, under these tests.
#[derive(Clone, Debug)]
pub struct InOutQueue<T> {
    limit: Depth,
    idle: IdleClock,
    pub(super) averages: InOutAverages,
    pub(super) tests: T,
}

/// The parameters of the averages of an [`InOutQueue`].
pub(super) struct InOutParams {
    pub(super) limit: Depth,
    pub(super) averages: Averages,
    pub(super) coupling: Coupling,
    pub(super) weight: Weight,
    pub(super) unit: Unit,
    pub(super) mean_packet: Bytes,
}

impl<T: InOutTests> InOutQueue<T> {
    /// Returns the queue before its first packet.
    pub(super) fn at_start(params: &InOutParams, tests: T, environment: Environment) -> Self {
        let InOutParams { limit, averages, coupling, weight, unit, mean_packet } = *params;
        Self {
            limit,
            idle: IdleClock::new(mean_packet, environment.rate),
            averages: InOutAverages::new(averages, coupling, weight, unit),
            tests,
        }
    }

    /// Goes on with the averages and the counts of a running queue.
    ///
    /// # Errors
    /// The key whose change would leave these without a meaning.
    pub(super) fn continue_from(&mut self, before: &Self) -> Result<(), UnitError> {
        self.averages.take_over(&before.averages)?;
        self.tests.take_over(&before.tests)?;
        self.idle.take_over(&before.idle);
        Ok(())
    }

    /// Drops a packet for which there is no room.
    #[cold]
    fn overflow(&mut self, packet: &Header, now: Instant) -> Verdict {
        self.tests.lost(packet);
        self.idle.settle(false, now);
        Verdict::Drop(Reason::Overflow)
    }
}

impl<T: InOutTests> Aqm for InOutQueue<T> {
    #[inline(always)]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        let missed = self.idle.missed(cx.now);
        self.tests.arrive(packet, queue, missed);
        self.averages.arrive(packet, queue, missed);
        if queue.is_full_for(packet, self.limit) {
            return self.overflow(packet, cx.now);
        }
        let verdict = self.tests.judge(&self.averages, packet, cx.rng);
        if verdict == Verdict::Pass {
            // Most packets pass: nothing of what follows needs to be asked of them.
            self.idle.end();
            return verdict;
        }
        self.idle.settle(verdict.admits(packet), cx.now);
        verdict
    }

    fn on_idle(&mut self, since: Instant) {
        self.idle.begin(since);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let other = match self.averages.coupling {
            Coupling::Coupled => "average total",
            Coupling::Decoupled => "average out",
        };
        let mut gauges = vec![("average in", self.averages.r#in.get()), (other, self.averages.other.get())];
        gauges.extend(self.tests.gauges(&self.averages));
        gauges
    }
}
