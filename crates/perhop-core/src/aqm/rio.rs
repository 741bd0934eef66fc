//! RIO, RED with IN and OUT: Clark & Fang, "Explicit Allocation of Best-Effort Packet Delivery Service",
//! 1998, section IV.
//!
//! ## Deviations
//! Clark & Fang update avg_in on IN arrivals only; Kim, Park & Bahk's figure 1 updates both averages on every
//! arrival, and ns-2's `rio.cc` updates neither on OUT arrivals. All three are here, as `averages`; the
//! default is the figure's. `averages_follow_their_rule` shows them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Verdict;
use super::early::EarlyTest;
use super::in_out::{Averages, Coupling, InOutAverages, InOutParams, InOutQueue, InOutRule};
use super::red::red_params;
use crate::{Bytes, Depth, Header, Origin, Rng, Thresholds, Weight};

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
pub type Rio = InOutQueue<RioRule, 2>;

/// The rule of [`Rio`] for OUT packets: one test.
#[derive(Clone, Debug)]
pub struct RioRule;

impl InOutParams<2> for RioParams {
    fn sets(&self) -> [(&'static str, Thresholds); 2] {
        [("in", self.r#in), ("total", self.total)]
    }

    fn averages(&self) -> Averages {
        self.averages
    }

    fn coupling(&self) -> Coupling {
        self.coupling
    }
}

impl InOutRule<2> for RioRule {
    type Params = RioParams;
    const NAME: &'static str = "rio";
    const SUMMARY: &'static str =
        "RED for IN packets on the IN queue, and for OUT packets on the whole queue";
    const ORIGIN: Origin = Origin::published(1998, "Clark & Fang 1998, section IV");

    fn new(_: &RioParams) -> Self {
        Self
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call with the header costs 400 flows 4 %")]
    fn judge(
        &mut self,
        tests: &mut [EarlyTest; 2],
        averages: &InOutAverages,
        packet: &Header,
        rng: &mut Rng,
    ) -> Verdict {
        Verdict::of(tests[1].judge(averages.other.get(), packet, rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::{Aqm, AqmBlock};
    use crate::{Bitrate, Color, Context, Environment, FlowId, Instant, Occupancy, Reason};

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
