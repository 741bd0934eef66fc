//! RIO, RED with IN and OUT: Clark & Fang, "Explicit Allocation of Best-Effort Packet Delivery Service",
//! 1998, section IV.
//!
//! ## Deviations
//! Clark & Fang update avg_in on IN arrivals only; Kim, Park & Bahk's figure 1 updates both averages on every
//! arrival, and ns-2's `rio.cc` updates neither on OUT arrivals. All three are here, as `averages`; the
//! default is the figure's. `averages_follow_their_rule` shows them.

#![expect(clippy::inline_always, reason = "a simulator's loop over packets is made of these calls")]

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::{EarlyTest, RedKnobs, check_red};
use super::in_out::{Averages, Coupling, InOutAverages, InOutParams, InOutQueue, InOutTests};
use super::red::red_params;
use super::{AqmBlock, Verdict};
use crate::units::UnitError;
use crate::{
    Bitrate, Block, Bytes, Color, Depth, Environment, Header, Noted, Origin, PseudoCode, Reason, Rng,
    Thresholds, Weight,
};

red_params! {
    /// Parameters of [`Rio`].
    RioParams {
        /// `min/max/max_p` for IN packets, against the average of IN packets.
        r#in: Thresholds,
        /// `min/max/max_p` for OUT packets, against the average of all packets (coupled) or of OUT packets
        /// (decoupled).
        total: Thresholds,
        /// Which average queue length the test of OUT packets uses.
        #[serde(default)] coupling: Coupling,
        /// Which arrivals update which average.
        #[serde(default)] averages: Averages,
    }
}

/// RED tests of two kinds of packets: IN packets against avg_in, OUT packets against avg_total.
pub type Rio = InOutQueue<RioTests>;

/// The tests of [`Rio`].
#[derive(Clone, Debug)]
pub struct RioTests {
    in_test: EarlyTest,
    out_test: EarlyTest,
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
        let RioParams { limit, averages, coupling, weight, mean_packet, .. } = params;
        let unit = params.r#in.unit();
        let tests = RioTests {
            in_test: EarlyTest::new(params.r#in, params.knobs()),
            out_test: EarlyTest::new(params.total, params.knobs()),
        };
        Self::at_start(
            &InOutParams { limit, averages, coupling, weight, unit, mean_packet },
            tests,
            environment,
        )
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.continue_from(before)
    }
}

impl InOutTests for RioTests {
    #[inline(always)]
    fn judge(&mut self, averages: &InOutAverages, packet: &Header, rng: &mut Rng) -> Verdict {
        Verdict::of(match packet.color {
            Color::Green => self.in_test.judge(averages.r#in.get(), packet, rng),
            Color::Yellow | Color::Red => self.out_test.judge(averages.other.get(), packet, rng),
        })
    }

    fn lost(&mut self, packet: &Header) {
        let test = if packet.color == Color::Green { &mut self.in_test } else { &mut self.out_test };
        test.lost();
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.in_test.take_over(&before.in_test);
        self.out_test.take_over(&before.out_test);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::Aqm;
    use crate::{Context, FlowId, Instant, Occupancy};

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
