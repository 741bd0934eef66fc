//! RIO, RED with IN and OUT: Clark & Fang, "Explicit Allocation of Best-Effort Packet Delivery Service", 1998, section IV.
//!
//! ## Deviations
//! Clark & Fang update avg_in on IN arrivals only; Kim, Park & Bahk's figure 1 updates both averages on every arrival, and
//! ns-2's `rio.cc` updates neither on OUT arrivals. All three are here, as `averages`; the default is the figure's.
//! `averages_follow_their_rule` shows them.

#![expect(clippy::inline_always, reason = "a simulator's loop over packets is made of these calls")]

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::{EarlyTest, Ewma, IdleClock, RedKnobs, check_red, keep_unit};
use super::red::red_params;
use super::{Aqm, AqmBlock, Verdict};
use crate::units::UnitError;
use crate::{
    Bitrate, Block, Bytes, Color, Context, Depth, Environment, Header, Instant, Noted, Occupancy, Origin,
    PseudoCode, Reason, Thresholds, Unit, Weight,
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
    /// That of all packets, IN and OUT (RIO-C).
    #[default]
    Coupled,
    /// That of OUT packets only (RIO-D).
    Decoupled,
}

red_params! {
    /// Parameters of [`Rio`].
    RioParams {
        /// `min/max/max_p` for IN packets, against the average of IN packets.
        r#in: Thresholds,
        /// `min/max/max_p` for OUT packets, against the average of all packets (coupled) or of OUT packets (decoupled).
        total: Thresholds,
        /// Which average queue length the test of OUT packets uses.
        #[serde(default)] coupling: Coupling,
        /// Which arrivals update which average.
        #[serde(default)] averages: Averages,
    }
}

/// Two RED tests over one queue: IN packets against avg_in, OUT packets against avg_total.
#[derive(Clone, Debug)]
pub struct Rio {
    limit: Depth,
    averages: InOutAverages,
    in_test: EarlyTest,
    out_test: EarlyTest,
}

/// avg_in and avg_total (or avg_out), kept on one idle clock.
#[derive(Clone, Debug)]
pub(super) struct InOutAverages {
    weight: Weight,
    unit: Unit,
    coupling: Coupling,
    /// An IN packet updates `in`; whether an OUT packet does, and which of them update `other`.
    in_at_out: bool,
    other_at_in: bool,
    other_at_out: bool,
    idle: IdleClock,
    pub(super) r#in: Ewma,
    pub(super) other: Ewma,
}

impl InOutAverages {
    /// `coupling` says whether `other` is the average of the total or of the OUT queue.
    pub(super) fn new(
        rule: Averages,
        coupling: Coupling,
        weight: Weight,
        unit: Unit,
        idle: IdleClock,
    ) -> Self {
        Self {
            weight,
            unit,
            coupling,
            in_at_out: rule == Averages::EveryArrival,
            // Decoupled, an IN arrival says nothing of the OUT queue (unless every arrival counts).
            other_at_in: rule != Averages::OwnClass || coupling == Coupling::Coupled,
            other_at_out: rule != Averages::InArrivals,
            idle,
            r#in: Ewma::default(),
            other: Ewma::default(),
        }
    }

    /// Goes on with the averages of a running queue.
    ///
    /// # Errors
    /// They are in another unit, or of other packets.
    pub(super) fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        keep_unit("in", before.unit, self.unit)?;
        if self.coupling != before.coupling {
            let text = "one of its averages would be of other packets than before; start a run with it";
            return Err(UnitError::at("coupling", text));
        }
        (self.r#in, self.other) = (before.r#in, before.other);
        self.idle.take_over(&before.idle);
        Ok(())
    }

    /// With the average of the total beside that of IN packets.
    pub(super) fn coupled(rule: Averages, weight: Weight, unit: Unit, idle: IdleClock) -> Self {
        Self::new(rule, Coupling::Coupled, weight, unit, idle)
    }

    /// How many packets the link could have sent while it was idle up to now: averages fall as if so many had come.
    pub(super) fn missed(&self, now: Instant) -> u64 {
        self.idle.missed(now)
    }

    /// Updates what this arrival updates.
    #[inline(always)]
    pub(super) fn arrive(&mut self, packet: &Header, queue: &Occupancy, now: Instant) {
        // One clock for both, or avg_total - avg_in could go negative.
        let missed = self.idle.missed(now);
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

    #[inline]
    pub(super) fn settle(&mut self, verdict: Verdict, packet: &Header, now: Instant) {
        self.idle.settle(verdict.admits(packet), now);
    }

    /// As [`settle`](Self::settle), for a packet that is let in.
    #[inline]
    pub(super) fn end_idle(&mut self) {
        self.idle.end();
    }

    pub(super) fn begin_idle(&mut self, since: Instant) {
        self.idle.begin(since);
    }
}

impl RioParams {
    /// The threshold sets, each with its key.
    fn sets(&self) -> Vec<(&'static str, Thresholds)> {
        vec![("in", self.r#in), ("total", self.total)]
    }
}

pub(super) const RIO_CODE: PseudoCode = PseudoCode {
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

impl Block for Rio {
    type Params = RioParams;
    const NAME: &'static str = "rio";
    const SUMMARY: &'static str =
        "RED for IN packets on the IN queue, and for OUT packets on the whole queue";
    const ORIGIN: Origin = Origin::published(1998, "Clark & Fang 1998, section IV");
    const BATCHED: bool = true;

    fn check(params: &RioParams) -> Result<(), UnitError> {
        check_red(params.mean_packet, &params.sets())
    }

    fn keys_without_effect(params: &RioParams, sizes: &RangeInclusive<u64>) -> Vec<(&'static str, String)> {
        params.without_effect(&params.sets(), sizes)
    }

    fn pseudo_code(_: Reason, _: Noted<'_>) -> Option<PseudoCode> {
        Some(RIO_CODE)
    }
}

impl AqmBlock for Rio {
    fn limit(params: &RioParams, _: Bitrate) -> Option<Depth> {
        Some(params.limit)
    }

    fn new(params: RioParams, environment: Environment) -> Self {
        let idle = IdleClock::new(params.mean_packet, environment.rate);
        Self {
            limit: params.limit,
            averages: InOutAverages::new(
                params.averages,
                params.coupling,
                params.weight,
                params.r#in.unit(),
                idle,
            ),
            in_test: EarlyTest::new(params.r#in, params.knobs()),
            out_test: EarlyTest::new(params.total, params.knobs()),
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.averages.take_over(&before.averages)?;
        self.in_test.take_over(&before.in_test);
        self.out_test.take_over(&before.out_test);
        Ok(())
    }
}

impl Rio {
    /// The queue is full.
    #[cold]
    fn overflow(&mut self, packet: &Header, now: Instant) -> Verdict {
        let verdict = Verdict::Drop(Reason::Overflow);
        match packet.color {
            Color::Green => self.in_test.lost(),
            Color::Yellow | Color::Red => self.out_test.lost(),
        }
        self.averages.settle(verdict, packet, now);
        verdict
    }
}

impl Aqm for Rio {
    #[inline(always)]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.averages.arrive(packet, queue, cx.now);
        if queue.is_full_for(packet, self.limit) {
            return self.overflow(packet, cx.now);
        }
        let Self { averages, in_test, out_test, .. } = self;
        let found = match packet.color {
            Color::Green => in_test.judge(averages.r#in.get(), packet, cx.rng),
            Color::Yellow | Color::Red => out_test.judge(averages.other.get(), packet, cx.rng),
        };
        if found.is_none() {
            // Most packets pass: nothing of what follows needs to be asked of them.
            averages.end_idle();
            return Verdict::Pass;
        }
        let verdict = Verdict::of(found);
        averages.settle(verdict, packet, cx.now);
        verdict
    }

    fn on_idle(&mut self, since: Instant) {
        self.averages.begin_idle(since);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let other = match self.averages.coupling {
            Coupling::Coupled => "average total",
            Coupling::Decoupled => "average out",
        };
        vec![("average in", self.averages.r#in.get()), (other, self.averages.other.get())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, FlowId, Rng};

    fn rio(extra: &str) -> Rio {
        let text = format!(
            r#"{{"in": "40/70/0.02", "total": "10/30/0.5", "limit": "100p", "weight": 0.5 {extra}}}"#
        );
        let params: RioParams = serde_json::from_str(&text).unwrap();
        Rio::new(params, Environment { rate: Bitrate::from_bps(8_000_000).unwrap() })
    }

    fn averages_after(extra: &str, arrivals: &[Color]) -> (f64, f64) {
        let mut rio = rio(extra);
        let mut queue = Occupancy::EMPTY;
        (0..4).for_each(|_| queue.add(Color::Green, 1000));
        (0..4).for_each(|_| queue.add(Color::Yellow, 1000));
        let mut rng = Rng::stream(1, "rio");
        for &color in arrivals {
            let packet = Header { color, ..Header::new(FlowId(0), 1000) };
            rio.on_arrival(&packet, &queue, &mut Context { now: Instant::ZERO, rng: &mut rng });
        }
        (rio.averages.r#in.get(), rio.averages.other.get())
    }

    #[test]
    fn averages_follow_their_rule() {
        use Color::{Green, Yellow};
        // Four IN and four OUT packets wait; each update goes half of the way.
        assert_eq!(averages_after("", &[Yellow, Green]), (3.0, 6.0));
        assert_eq!(averages_after(r#","averages":"own-class""#, &[Yellow, Green]), (2.0, 6.0));
        assert_eq!(averages_after(r#","averages":"in-arrivals""#, &[Yellow, Green]), (2.0, 4.0));
        let decoupled = r#","averages":"own-class","coupling":"decoupled""#;
        assert_eq!(averages_after(decoupled, &[Yellow, Green]), (2.0, 2.0));
        // One of each hides which of the two it was.
        for (extra, at_out, at_in) in [
            ("", (2.0, 4.0), (2.0, 4.0)),
            (r#","averages":"own-class""#, (0.0, 4.0), (2.0, 4.0)),
            (r#","averages":"in-arrivals""#, (0.0, 0.0), (2.0, 4.0)),
            (decoupled, (0.0, 2.0), (2.0, 0.0)),
            (r#","coupling":"decoupled""#, (2.0, 2.0), (2.0, 2.0)),
        ] {
            assert_eq!(averages_after(extra, &[Yellow]), at_out, "{extra}");
            assert_eq!(averages_after(extra, &[Green]), at_in, "{extra}");
        }
    }

    #[test]
    fn out_packets_go_first() {
        let mut rio = rio("");
        let mut queue = Occupancy::EMPTY;
        (0..35).for_each(|_| queue.add(Color::Green, 1000));
        let mut rng = Rng::stream(1, "rio");
        let mut judge = |color| {
            let packet = Header { color, ..Header::new(FlowId(0), 1000) };
            rio.on_arrival(&packet, &queue, &mut Context { now: Instant::ZERO, rng: &mut rng })
        };
        for _ in 0..20 {
            judge(Color::Green);
        }
        assert_eq!(judge(Color::Green), Verdict::Pass, "35 IN packets are below min_in = 40");
        assert_eq!(judge(Color::Yellow), Verdict::Drop(Reason::Forced), "and above max_total = 30");
        assert_eq!(judge(Color::Red), Verdict::Drop(Reason::Forced), "red counts as OUT");
    }
}
