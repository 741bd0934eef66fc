//! RIO with three drop precedences: Yeom & Reddy 1999, section 3.3.
//!
//! ## Deviations
//! The paper does not say on which average the two kinds of OUT packets are tested. Here, as in RIO, both are tested on
//! all packets waiting, each with its own count; `red_packets_alone_are_rios_out_packets` shows that without OUT-IN
//! packets this is RIO.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::{EarlyTest, IdleClock, RedKnobs, check_red};
use super::red::red_params;
use super::rio::{Averages, InOutAverages};
use super::{Aqm, Reason, Verdict};
use crate::units::UnitError;
use crate::{
    Block, Bytes, Color, Context, Depth, Environment, Header, Instant, Occupancy, Thresholds, Weight,
};

red_params! {
    /// Parameters of [`RioThree`].
    RioThreeParams {
        /// `min/max/max_p` for IN (green) packets, against the average of IN packets.
        r#in: Thresholds,
        /// `min/max/max_p` for OUT-IN (yellow) packets, against the average of all packets.
        out_in: Thresholds,
        /// `min/max/max_p` for OUT-OUT (red) packets, against the average of all packets.
        out_out: Thresholds,
        /// Which arrivals update which average.
        #[serde(default)] averages: Averages,
    }
}

/// RIO with two kinds of OUT packets.
#[derive(Clone, Debug)]
pub struct RioThree {
    limit: Depth,
    averages: InOutAverages,
    /// One test for each color.
    tests: [EarlyTest; 3],
}

impl Block for RioThree {
    type Params = RioThreeParams;
    const NAME: &'static str = "rio-three";
    const SUMMARY: &'static str = "RIO with three drop precedences: IN, OUT-IN and OUT-OUT";
    const SOURCE: &'static str = "Yeom & Reddy 1999, section 3.3";

    fn check(params: &RioThreeParams) -> Result<(), UnitError> {
        check_red(
            params.mean_packet,
            &[("in", params.r#in), ("out-in", params.out_in), ("out-out", params.out_out)],
        )
    }

    fn new(params: RioThreeParams, environment: Environment) -> Self {
        let idle = IdleClock::new(params.mean_packet, environment.rate);
        Self {
            limit: params.limit,
            averages: InOutAverages::coupled(params.averages, params.weight, params.r#in.unit(), idle),
            tests: [params.r#in, params.out_in, params.out_out]
                .map(|set| EarlyTest::new(set, params.knobs())),
        }
    }
}

impl Aqm for RioThree {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.averages.arrive(packet, queue, cx.now);
        let test = &mut self.tests[packet.color.index()];
        let verdict = if queue.is_full_for(packet, self.limit) {
            test.lost();
            Verdict::Drop(Reason::Overflow)
        } else {
            let in_queue = packet.color == Color::Green;
            let average = if in_queue { self.averages.r#in } else { self.averages.other };
            Verdict::of(test.judge(average.get(), packet, cx.rng))
        };
        self.averages.settle(verdict, packet, cx.now);
        verdict
    }

    fn on_idle(&mut self, since: Instant) {
        self.averages.begin_idle(since);
    }

    fn gauges(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [("average in", self.averages.r#in.get()), ("average total", self.averages.other.get())].into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::{Rio, RioParams};
    use crate::{Bitrate, FlowId, Rng};

    fn environment() -> Environment {
        Environment { rate: Bitrate::from_bps(8_000_000).unwrap() }
    }

    fn three() -> RioThree {
        let table = r#"{"in": "50/100/0.02", "out-in": "30/50/0.5", "out-out": "20/40/0.5", "limit": "200p",
                        "weight": 0.1}"#;
        RioThree::new(serde_json::from_str(table).unwrap(), environment())
    }

    #[test]
    fn red_packets_alone_are_rios_out_packets() {
        let table = r#"{"in": "50/100/0.02", "total": "20/40/0.5", "limit": "200p", "weight": 0.1}"#;
        let params: RioParams = serde_json::from_str(table).unwrap();
        let (mut rio, mut three) = (Rio::new(params, environment()), three());
        let (mut luck_rio, mut luck_three) = (Rng::stream(9, "aqm"), Rng::stream(9, "aqm"));
        let mut traffic = Rng::stream(1, "traffic");
        for step in 0..20_000 {
            let now = Instant::from_nanos(step * 700_000);
            let mut queue = Occupancy::EMPTY;
            (0..traffic.up_to(60)).for_each(|_| queue.add(Color::Red, 1000));
            let color = if traffic.chance(0.5) { Color::Green } else { Color::Red };
            let packet = Header { color, ..Header::new(FlowId(0), 1000) };
            assert_eq!(
                rio.on_arrival(&packet, &queue, &mut Context { now, rng: &mut luck_rio }),
                three.on_arrival(&packet, &queue, &mut Context { now, rng: &mut luck_three }),
            );
        }
        assert_eq!(luck_rio, luck_three);
    }

    #[test]
    fn out_out_goes_before_out_in_and_out_in_before_in() {
        let mut three = three();
        let mut rng = Rng::stream(1, "three");
        let mut queue = Occupancy::EMPTY;
        (0..45).for_each(|_| queue.add(Color::Red, 1000));
        let mut dropped = [0; 3];
        for n in 0..3000_usize {
            let color = Color::ALL[n % 3];
            let packet = Header { color, ..Header::new(FlowId(0), 1000) };
            let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
            dropped[color.index()] += usize::from(three.on_arrival(&packet, &queue, cx) != Verdict::Pass);
        }
        assert_eq!(dropped[0], 0, "no IN packet waits");
        assert!(dropped[1] > 200 && dropped[1] < 600, "45 lies between 30 and 50: {dropped:?}");
        assert!(dropped[2] > 950, "45 is above 40: {dropped:?}");
    }
}
