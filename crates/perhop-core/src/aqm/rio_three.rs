//! RIO with three drop precedences: Yeom & Reddy 1999, section 3.3.
//!
//! ## Deviations
//! The paper does not say on which average the two kinds of OUT packets are tested. By default both are
//! tested, as in RIO, on all packets waiting, each with its own count;
//! `red_packets_alone_are_rios_out_packets` shows that without OUT-IN packets this is RIO. With
//! `out-in-average = "in-and-out-in"` OUT-IN packets are tested on the packets of their own precedence and
//! the better one; `the_average_of_in_and_out_in_leaves_out_out_out` shows the difference.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Verdict;
use super::early::{EarlyTest, Ewma};
use super::in_out::{Averages, InOutAverages, InOutParams, InOutQueue, InOutRule};
use super::red::red_params;
use crate::units::UnitError;
use crate::{Bytes, Color, Depth, Header, Occupancy, Origin, Rng, Thresholds, Unit, Weight};

/// Which packets count in the average queue length that the test of OUT-IN packets uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutInAverage {
    /// All packets, as for OUT packets in RIO.
    #[default]
    All,
    /// IN and OUT-IN packets: those of the same or lower drop precedence, as RIO-C does for IN.
    InAndOutIn,
}

red_params! {
    /// Parameters of [`RioThree`].
    RioThreeParams {
        /// `min/max/max_p` for IN (green) packets, against the average of IN packets.
        r#in: Thresholds,
        /// `min/max/max_p` for OUT-IN (yellow) packets, against the average that `out-in-average` names.
        out_in: Thresholds,
        /// `min/max/max_p` for OUT-OUT (red) packets, against the average of all packets.
        out_out: Thresholds,
        /// Which arrivals update which average. For the average of IN and OUT-IN packets, OUT-IN arrivals are
        /// of its own class.
        #[serde(default)] averages: Averages,
        /// Which packets count in the average queue length that the test of OUT-IN packets uses.
        #[serde(default)] out_in_average: OutInAverage,
    }
}

/// RIO with two kinds of OUT packets.
pub type RioThree = InOutQueue<RioThreeRule, 3>;

/// The rule of [`RioThree`] for OUT packets: a test for each color.
#[derive(Clone, Debug)]
pub struct RioThreeRule {
    /// The average of IN and OUT-IN packets, where that is in use.
    better: Option<Better>,
}

/// The average of IN and OUT-IN packets.
#[derive(Clone, Debug)]
struct Better {
    weight: Weight,
    unit: Unit,
    rule: Averages,
    average: Ewma,
}

impl Better {
    /// Updates it on an arrival before which so many packets were `missed` while the link was idle.
    fn arrive(&mut self, color: Color, queue: &Occupancy, missed: u64) {
        self.average.decay(self.weight, missed);
        let updates = match self.rule {
            Averages::EveryArrival => true,
            Averages::OwnClass => color != Color::Red,
            Averages::InArrivals => color == Color::Green,
        };
        if updates {
            let waiting = queue.of(Color::Green, self.unit) + queue.of(Color::Yellow, self.unit);
            self.average.update(self.weight, waiting);
        }
    }
}

impl InOutParams<3> for RioThreeParams {
    fn sets(&self) -> [(&'static str, Thresholds); 3] {
        [("in", self.r#in), ("out-in", self.out_in), ("out-out", self.out_out)]
    }

    fn averages(&self) -> Averages {
        self.averages
    }
}

impl InOutRule<3> for RioThreeRule {
    type Params = RioThreeParams;
    const NAME: &'static str = "rio-three";
    const SUMMARY: &'static str = "RIO with three drop precedences: IN, OUT-IN and OUT-OUT";
    const ORIGIN: Origin = Origin::paper(1999, "Yeom & Reddy 1999, section 3.3");

    fn new(params: &RioThreeParams) -> Self {
        let better = Better {
            weight: params.weight,
            unit: params.r#in.unit(),
            rule: params.averages,
            average: Ewma::default(),
        };
        Self { better: (params.out_in_average == OutInAverage::InAndOutIn).then_some(better) }
    }

    #[inline]
    fn arrive(&mut self, packet: &Header, queue: &Occupancy, missed: u64) {
        if let Some(better) = &mut self.better {
            better.arrive(packet.color, queue, missed);
        }
    }

    #[inline]
    fn judge(
        &mut self,
        tests: &mut [EarlyTest; 3],
        averages: &InOutAverages,
        packet: &Header,
        rng: &mut Rng,
    ) -> Verdict {
        let better = self.better.as_ref().filter(|_| packet.color == Color::Yellow);
        let average = better.map_or(averages.other, |better| better.average);
        Verdict::of(tests[packet.color.index()].judge(average.get(), packet, rng))
    }

    fn tests_of(color: Color) -> Range<usize> {
        color.index()..color.index() + 1
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        if let Some(better) = &mut self.better {
            let text = "there is no average of these packets so far; start a run with it";
            let before = before.better.as_ref().ok_or_else(|| UnitError::at("out-in-average", text))?;
            better.average = before.average;
        }
        Ok(())
    }

    fn gauges(&self, _: &InOutAverages) -> Vec<(&'static str, f64)> {
        let better = self.better.as_ref();
        better.map(|better| ("average in and out-in", better.average.get())).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::{Aqm, AqmBlock, Rio, RioParams};
    use crate::{Bitrate, Context, Environment, FlowId, Instant, Reason};

    fn environment() -> Environment {
        Environment { rate: Bitrate::from_bps(8_000_000).unwrap() }
    }

    fn three() -> RioThree {
        three_with("0.1", "")
    }

    fn three_with(weight: &str, extra: &str) -> RioThree {
        let table = format!(
            r#"{{"in": "50/100/0.02", "out-in": "30/50/0.5", "out-out": "20/40/0.5", "limit": "200p",
                 "weight": {weight}{extra}}}"#
        );
        RioThree::new(serde_json::from_str(&table).unwrap(), environment())
    }

    /// Four IN, eight OUT-IN and sixteen OUT-OUT packets.
    fn waiting() -> Occupancy {
        let mut queue = Occupancy::EMPTY;
        for (color, count) in [(Color::Green, 4), (Color::Yellow, 8), (Color::Red, 16)] {
            (0..count).for_each(|_| queue.add(color, 1000));
        }
        queue
    }

    fn better_after(rule: &str, arrivals: &[Color]) -> f64 {
        let extra = format!(r#","out-in-average":"in-and-out-in","averages":"{rule}""#);
        let mut three = three_with("0.5", &extra);
        let mut rng = Rng::stream(1, "three");
        for &color in arrivals {
            let packet = Header { color, ..Header::new(FlowId(0), 1000) };
            three.on_arrival(&packet, &waiting(), &mut Context { now: Instant::ZERO, rng: &mut rng });
        }
        three.rule.better.unwrap().average.get()
    }

    #[test]
    fn the_average_of_in_and_out_in_is_updated_as_worked_out_by_hand() {
        use Color::{Green, Red, Yellow};
        // 4 + 8 = 12 packets of the two better precedences wait; each update goes half of the way: 6, 9,
        // 10.5.
        for (rule, one, two, three) in
            [("every-arrival", 6.0, 9.0, 10.5), ("own-class", 0.0, 6.0, 9.0), ("in-arrivals", 0.0, 0.0, 6.0)]
        {
            let found = [&[Red][..], &[Red, Yellow], &[Red, Yellow, Green]].map(|a| better_after(rule, a));
            assert_eq!(found, [one, two, three], "{rule}");
        }
    }

    #[test]
    fn the_average_of_in_and_out_in_falls_while_the_link_is_idle() {
        // At 8 Mbit/s a packet of 1000 bytes takes 1 ms: in 3 ms of idle time, three empty samples of weight
        // 1/2.
        let mut three = three_with("0.5", r#","out-in-average":"in-and-out-in","averages":"in-arrivals""#);
        let mut rng = Rng::stream(1, "three");
        let mut arrive = |color, now, three: &mut RioThree| {
            let packet = Header { color, ..Header::new(FlowId(0), 1000) };
            let now = Instant::from_nanos(now);
            three.on_arrival(&packet, &waiting(), &mut Context { now, rng: &mut rng })
        };
        arrive(Color::Green, 0, &mut three);
        three.on_idle(Instant::from_nanos(1_000_000));
        arrive(Color::Yellow, 4_000_000, &mut three);
        assert_eq!(three.rule.better.as_ref().unwrap().average.get(), 6.0 / 8.0);
        assert_eq!(three.gauges().last(), Some(&("average in and out-in", 0.75)));
    }

    #[test]
    fn the_average_of_in_and_out_in_leaves_out_out_out() {
        // 60 OUT-OUT packets wait, and nothing else: above OUT-IN's max of 50 by all packets, below its min
        // of 30 by its own.
        let dropped = |extra: &str| {
            let (mut three, mut rng) = (three_with("0.5", extra), Rng::stream(1, "three"));
            let mut queue = Occupancy::EMPTY;
            (0..60).for_each(|_| queue.add(Color::Red, 1000));
            let packet = |color| Header { color, ..Header::new(FlowId(0), 1000) };
            let mut judge = |color| {
                let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
                three.on_arrival(&packet(color), &queue, cx)
            };
            (0..9).for_each(|_| {
                judge(Color::Red);
            });
            [judge(Color::Yellow), judge(Color::Red), judge(Color::Green)]
        };
        let forced = Verdict::Drop(Reason::Forced);
        assert_eq!(dropped(""), [forced, forced, Verdict::Pass]);
        let better = r#","out-in-average":"in-and-out-in""#;
        assert_eq!(dropped(better), [Verdict::Pass, forced, Verdict::Pass]);
    }

    #[test]
    fn red_packets_alone_are_rios_out_packets() {
        let table = r#"{"in": "50/100/0.02", "total": "20/40/0.5", "limit": "200p", "weight": 0.1}"#;
        let params: RioParams = serde_json::from_str(table).unwrap();
        let (mut rio, mut three) = (Rio::new(params, environment()), three());
        let (mut random_rio, mut random_three) = (Rng::stream(9, "aqm"), Rng::stream(9, "aqm"));
        let mut traffic = Rng::stream(1, "traffic");
        for step in 0..20_000 {
            let now = Instant::from_nanos(step * 700_000);
            let mut queue = Occupancy::EMPTY;
            (0..traffic.up_to(60)).for_each(|_| queue.add(Color::Red, 1000));
            let color = if traffic.chance(0.5) { Color::Green } else { Color::Red };
            let packet = Header { color, ..Header::new(FlowId(0), 1000) };
            assert_eq!(
                rio.on_arrival(&packet, &queue, &mut Context { now, rng: &mut random_rio }),
                three.on_arrival(&packet, &queue, &mut Context { now, rng: &mut random_three }),
            );
        }
        assert_eq!(random_rio, random_three);
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
