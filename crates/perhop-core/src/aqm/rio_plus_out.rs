//! RI+O: Kim, Park & Bahk, "A modified RIO queue management scheme", figure 1.
//!
//! RIO with a third threshold set, which OUT packets meet after the second: it tests avg_out = avg_total -
//! avg_in, so that OUT packets are also judged by the number of OUT packets alone.
//!
//! ## Deviations
//! The figure's inequalities are strict on both sides; an average equal to a threshold is undefined there.
//! Here, as in RED, min itself still passes and max itself drops.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::EarlyTest;
use super::in_out::{Averages, InOutAverages, InOutParams, InOutQueue, InOutRule};
use super::red::red_params;
use super::{Severity, Verdict};
use crate::{Bytes, Depth, Header, Origin, Reason, Rng, Thresholds, Weight};

red_params! {
    /// Parameters of [`RioPlusOut`].
    RioPlusOutParams {
        /// `min/max/max_p` for IN packets, against the average of IN packets.
        r#in: Thresholds,
        /// `min/max/max_p` for OUT packets, against the average of all packets.
        total: Thresholds,
        /// `min/max/max_p` for OUT packets that passed `total`, against the average of OUT packets.
        out: Thresholds,
        /// Which arrivals update which average.
        #[serde(default)] averages: Averages,
    }
}

/// RED tests of IN packets against avg_in, and of OUT packets against avg_total and then against avg_out.
pub type RioPlusOut = InOutQueue<RioPlusOutRule, 3>;

/// The rule of [`RioPlusOut`] for OUT packets: two tests.
#[derive(Clone, Debug)]
pub struct RioPlusOutRule;

impl InOutParams<3> for RioPlusOutParams {
    fn sets(&self) -> [(&'static str, Thresholds); 3] {
        [("in", self.r#in), ("total", self.total), ("out", self.out)]
    }

    fn averages(&self) -> Averages {
        self.averages
    }
}

/// Returns avg_total - avg_in, which with separate update rules can dip below zero.
fn average_out(averages: &InOutAverages) -> f64 {
    (averages.other.get() - averages.r#in.get()).max(0.0)
}

impl InOutRule<3> for RioPlusOutRule {
    type Params = RioPlusOutParams;
    const NAME: &'static str = "rio-plus-out";
    const SUMMARY: &'static str = "RIO with a third threshold set, on the average number of OUT packets";
    const ORIGIN: Origin = Origin::paper(2000, "Kim, Park & Bahk, figure 1");

    fn new(_: &RioPlusOutParams) -> Self {
        Self
    }

    #[inline]
    fn judge(
        &mut self,
        [_, all, out]: &mut [EarlyTest; 3],
        averages: &InOutAverages,
        packet: &Header,
        rng: &mut Rng,
    ) -> Verdict {
        let first = Verdict::of(all.judge(averages.other.get(), packet, rng));
        if !first.admits(packet) {
            return first;
        }
        match (out.judge(average_out(averages), packet, rng), first) {
            (None, _) | (Some(Severity::Notify | Severity::NotifyForced), Verdict::Notify(_)) => first,
            (Some(Severity::Early), _) => Verdict::Drop(Reason::EarlyOut),
            (Some(Severity::Notify), _) => Verdict::Notify(Reason::EarlyOut),
            (Some(Severity::Forced), _) => Verdict::Drop(Reason::ForcedOut),
            (Some(Severity::NotifyForced), _) => Verdict::Notify(Reason::ForcedOut),
        }
    }

    fn gauges(&self, averages: &InOutAverages) -> Vec<(&'static str, f64)> {
        vec![("average out", average_out(averages))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::{Aqm, AqmBlock, Rio, RioParams};
    use crate::{Bitrate, Color, Context, Ecn, Environment, FlowId, Instant, Occupancy};

    const ENVIRONMENT: fn() -> Environment = || Environment { rate: Bitrate::from_bps(8_000_000).unwrap() };

    fn queue(green: u32, yellow: u32) -> Occupancy {
        let mut queue = Occupancy::EMPTY;
        (0..green).for_each(|_| queue.add(Color::Green, 1000));
        (0..yellow).for_each(|_| queue.add(Color::Yellow, 1000));
        queue
    }

    #[test]
    fn both_tests_take_their_share_of_out_packets() {
        // avg_total 60, avg_in 45; sets 30/90/.05 and 10/30/.1: P_total = P_out = .025, together .049375.
        // With spreading the first packet's p_a is p_b / (1 - p_b) in each test.
        let text = r#"{"in": "400/700/0.02", "total": "30/90/0.05", "out": "10/30/0.1",
                       "limit": "1000p", "weight": 1.0, "wait": false}"#;
        let params: RioPlusOutParams = serde_json::from_str(text).unwrap();
        let fresh = RioPlusOut::new(params, ENVIRONMENT());
        let mut rng = Rng::stream(5, "vector");
        let mut by_reason = [0_u32; 5];
        let trials = 200_000;
        for _ in 0..trials {
            let mut aqm = fresh.clone();
            // The first arrival only sets the averages and is IN: the tests of OUT packets are untouched.
            let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
            let packet = Header { color: Color::Green, ..Header::new(FlowId(0), 1000) };
            aqm.on_arrival(&packet, &queue(45, 15), cx);
            assert_eq!(aqm.gauges().into_iter().map(|(_, v)| v).collect::<Vec<_>>(), [45.0, 60.0, 15.0]);
            // Count -1 becomes 0 on the first packet tested: p_a = p_b exactly.
            if let Verdict::Drop(reason) =
                aqm.on_arrival(&Header { color: Color::Yellow, ..packet }, &queue(45, 15), cx)
            {
                by_reason[reason as usize] += 1;
            }
        }
        let share = |reason: Reason| f64::from(by_reason[reason as usize]) / f64::from(trials);
        assert!((share(Reason::Early) - 0.025).abs() < 0.0015, "{}", share(Reason::Early));
        assert!((share(Reason::EarlyOut) - 0.975 * 0.025).abs() < 0.0015, "{}", share(Reason::EarlyOut));
        let both = share(Reason::Early) + share(Reason::EarlyOut);
        assert!((both - 0.049_375).abs() < 0.002, "{both}");
    }

    #[test]
    fn a_packet_is_notified_once_and_dropped_if_a_test_drops_by_force() {
        let judge = |total: &str, out: &str, ecn: Ecn| {
            let text = format!(
                r#"{{"in": "400/700/0.02", "total": "{total}", "out": "{out}", "limit": "1000p", "weight": 1.0,
                     "wait": false, "ecn": true}}"#
            );
            let mut aqm = RioPlusOut::new(serde_json::from_str(&text).unwrap(), ENVIRONMENT());
            let packet = Header { color: Color::Yellow, ecn, ..Header::new(FlowId(0), 1000) };
            let mut rng = Rng::stream(5, "vector");
            let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
            aqm.on_arrival(&packet, &queue(0, 50), cx)
        };
        // With gentle off and max_p = 1, an average just below max is as good as certain.
        let (certain, never, force) = ("0/51/1", "60/70/1", "10/20/1");
        let (chance, capable) = (Verdict::Notify(Reason::Early), Ecn::Capable0);
        assert_eq!(judge(certain, certain, capable), chance, "once");
        assert_eq!(judge(certain, never, capable), chance);
        assert_eq!(judge(never, certain, capable), Verdict::Notify(Reason::EarlyOut));
        assert_eq!(judge(certain, force, capable), Verdict::Drop(Reason::ForcedOut));
        assert_eq!(judge(force, certain, capable), Verdict::Drop(Reason::Forced));
        assert_eq!(judge(certain, force, Ecn::NotCapable), chance, "which drops it: it is asked no more");
    }

    #[test]
    fn without_its_third_set_it_is_rio_to_the_bit() {
        let common = r#""in": "4/7/0.2", "total": "1/9/0.5", "limit": "20p", "weight": 0.1"#;
        let rio: RioParams = serde_json::from_str(&format!("{{{common}}}")).unwrap();
        let plus: RioPlusOutParams =
            serde_json::from_str(&format!(r#"{{{common}, "out": "1000000/1000000/0"}}"#)).unwrap();
        let (mut rio, mut plus) = (Rio::new(rio, ENVIRONMENT()), RioPlusOut::new(plus, ENVIRONMENT()));
        let (mut random_rio, mut random_plus) = (Rng::stream(9, "aqm"), Rng::stream(9, "aqm"));
        let mut traffic = Rng::stream(1, "traffic");
        for step in 0..20_000 {
            let now = Instant::from_nanos(step * 700_000);
            let waiting = queue(traffic.up_to(10) as u32, traffic.up_to(10) as u32);
            let color = if traffic.chance(0.5) { Color::Green } else { Color::Yellow };
            let packet = Header { color, ..Header::new(FlowId(0), 1000) };
            assert_eq!(
                rio.on_arrival(&packet, &waiting, &mut Context { now, rng: &mut random_rio }),
                plus.on_arrival(&packet, &waiting, &mut Context { now, rng: &mut random_plus }),
            );
        }
        assert_eq!(random_rio, random_plus);
    }
}
