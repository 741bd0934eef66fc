//! Queues in which IN and OUT packets have averages of their own: all of RIO and its relatives but their rule
//! for OUT packets.

#![expect(clippy::inline_always, reason = "a simulator's loop over packets is made of these calls")]

use std::fmt::Debug;
use std::ops::{Range, RangeInclusive};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::early::{EarlyTest, Ewma, IdleClock, check_red, keep_unit};
use super::red::{RedFamily, below_thresholds};
use super::{Aqm, AqmBlock, Verdict};
use crate::units::{UnitError, require};
use crate::{
    Bitrate, Block, Color, Context, Depth, Environment, Header, Instant, KeysWithoutEffect, Occupancy,
    Origin, PseudoCode, Reason, Rng, Thresholds, Unit, Weight,
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

    /// Goes on with the averages of a running queue, unless they are in another unit or of other packets.
    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        keep_unit("in", before.unit, self.unit)?;
        let text = "one of its averages would be of other packets than before; start a run with it";
        require(self.coupling == before.coupling, "coupling", text)?;
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

/// The parameters of a relative of RIO that has so many threshold sets.
pub trait InOutParams<const SETS: usize>:
    RedFamily + Clone + Debug + PartialEq + Serialize + DeserializeOwned + JsonSchema
{
    /// Returns the threshold sets, each with its key: that of IN packets, then those of OUT packets.
    fn sets(&self) -> [(&'static str, Thresholds); SETS];

    /// Returns which arrivals update which average.
    fn averages(&self) -> Averages;

    /// Returns which average queue length the test of OUT packets uses.
    fn coupling(&self) -> Coupling {
        Coupling::Coupled
    }
}

/// The declarations of a relative of RIO that has so many threshold sets, and its rule for OUT packets.
pub trait InOutRule<const SETS: usize>: Sized {
    /// The parameters of the block.
    type Params: InOutParams<SETS>;
    /// See [`Block::NAME`].
    const NAME: &'static str;
    /// See [`Block::SUMMARY`].
    const SUMMARY: &'static str;
    /// See [`Block::ORIGIN`].
    const ORIGIN: Origin;
    /// See [`AqmBlock::READS_SERVICE_LEVEL`].
    const READS_SERVICE_LEVEL: bool = false;

    /// Returns the rule before the first packet.
    fn new(params: &Self::Params) -> Self;

    /// Updates averages of the rule's own on an arrival, before which the link could have sent `missed`
    /// packets while it was idle.
    #[inline]
    fn arrive(&mut self, _packet: &Header, _queue: &Occupancy, _missed: u64) {}

    /// Returns the verdict on an OUT packet for which there is room; there is a test for each of the
    /// [sets](InOutParams::sets).
    fn judge(
        &mut self,
        tests: &mut [EarlyTest; SETS],
        averages: &InOutAverages,
        packet: &Header,
        rng: &mut Rng,
    ) -> Verdict;

    /// Returns the numbers of the tests that packets of a color pass.
    fn tests_of(color: Color) -> Range<usize> {
        if color == Color::Green { 0..1 } else { 1..SETS }
    }

    /// Goes on with the averages of a running rule; refuses a key whose change would leave one without a
    /// meaning.
    fn take_over(&mut self, _before: &Self) -> Result<(), UnitError> {
        Ok(())
    }

    /// Returns averages besides the two that all such queues have, by name.
    fn gauges(&self, _averages: &InOutAverages) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// A queue with an average of IN packets and one of all or of OUT packets, whose IN packets have a RED test
/// against the first, and whose OUT packets have the rule `T`.
#[derive(Clone, Debug)]
pub struct InOutQueue<T, const SETS: usize> {
    limit: Depth,
    idle: IdleClock,
    pub(super) averages: InOutAverages,
    /// A test for each threshold set.
    tests: [EarlyTest; SETS],
    pub(super) rule: T,
}

const CODE: PseudoCode = PseudoCode {
    lines: &[
        "for each packet that arrives:",
        "    update the averages that count it",
        "    if the queue has no room: drop (overflow)",
        "    choose thresholds and average by the packet's color:",
        "        IN (green): the average of IN packets; OUT: that of all packets, or of OUT packets",
        "    if average < min: pass this test",
        "    if average ≥ max: drop (forced)",
        "    p_b ← max_p · (average − min) / (max − min), spread to p_a",
        "    if random number < p_a: drop (early)",
        "    RI+O: an OUT packet that passed is tested again, against the average of OUT packets:",
        "        if average out ≥ max: drop (forced-out)",
        "        if random number < p_a: drop (early-out)",
    ],
    acts: &[
        (Reason::Overflow, &[2]),
        (Reason::Forced, &[4, 6]),
        (Reason::Early, &[4, 7, 8]),
        (Reason::ForcedOut, &[9, 10]),
        (Reason::EarlyOut, &[9, 11]),
    ],
};

impl<T: InOutRule<SETS>, const SETS: usize> Block for InOutQueue<T, SETS> {
    type Params = T::Params;
    const NAME: &'static str = T::NAME;
    const SUMMARY: &'static str = T::SUMMARY;
    const ORIGIN: Origin = T::ORIGIN;
    const BATCHED: bool = true;
    const PSEUDO_CODE: Option<PseudoCode> = Some(CODE);

    fn check(params: &T::Params) -> Result<(), UnitError> {
        check_red(params.knobs().mean_packet, &params.sets())
    }

    fn keys_without_effect(params: &T::Params, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        params.without_effect(&params.sets(), sizes)
    }
}

impl<T: InOutRule<SETS>, const SETS: usize> AqmBlock for InOutQueue<T, SETS> {
    const READS_SERVICE_LEVEL: bool = T::READS_SERVICE_LEVEL;

    fn limit(params: &T::Params, _: Bitrate) -> Option<Depth> {
        Some(params.limit())
    }

    fn spared(params: &T::Params, _: Bitrate) -> Option<Depth> {
        below_thresholds(params.limit(), &params.sets().map(|(_, set)| set))
    }

    fn new(params: T::Params, environment: Environment) -> Self {
        let (sets, knobs) = (params.sets(), params.knobs());
        let unit = sets[0].1.unit();
        Self {
            limit: params.limit(),
            idle: IdleClock::new(knobs.mean_packet, environment.rate),
            averages: InOutAverages::new(params.averages(), params.coupling(), params.weight(), unit),
            tests: sets.map(|(_, set)| EarlyTest::new(set, knobs)),
            rule: T::new(&params),
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.averages.take_over(&before.averages)?;
        self.rule.take_over(&before.rule)?;
        self.tests.iter_mut().zip(&before.tests).for_each(|(test, before)| test.take_over(before));
        self.idle.take_over(&before.idle);
        Ok(())
    }
}

impl<T: InOutRule<SETS>, const SETS: usize> InOutQueue<T, SETS> {
    /// Drops a packet of this color, for which there is no room. With its header in place of the color, each
    /// packet's would be put in memory: 4 % of the instructions of a run with RIO.
    #[cold]
    fn overflow(&mut self, color: Color, now: Instant) -> Verdict {
        self.tests[T::tests_of(color)].iter_mut().for_each(EarlyTest::lost);
        self.idle.settle(false, now);
        Verdict::Drop(Reason::Overflow)
    }
}

impl<T: InOutRule<SETS>, const SETS: usize> Aqm for InOutQueue<T, SETS> {
    #[inline(always)]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        let missed = self.idle.missed(cx.now);
        self.rule.arrive(packet, queue, missed);
        self.averages.arrive(packet, queue, missed);
        if queue.is_full_for(packet, self.limit) {
            return self.overflow(packet.color, cx.now);
        }
        let Self { averages, tests, rule, .. } = self;
        let verdict = if packet.color == Color::Green {
            Verdict::of(tests[0].judge(averages.r#in.get(), packet, cx.rng))
        } else {
            rule.judge(tests, averages, packet, cx.rng)
        };
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
        gauges.extend(self.rule.gauges(&self.averages));
        gauges
    }
}
