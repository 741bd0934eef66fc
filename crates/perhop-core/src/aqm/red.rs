//! RED: Floyd & Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993, figure 2.
//!
//! ## Deviations
//! ns-2's `Queue/RED` drops by the average only where more than one packet waits (`qlen > 1` in its `red.cc`). The paper's
//! algorithm has no such rule, and the default has none; `spare-short-queue` adds it (`a_short_queue_is_spared_by_hand`).
//! ns-2 also skips the test for the first packet above min. That is not in the paper's algorithm and not here;
//! `first_packet_above_min_may_drop` shows it.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::{EarlyTest, Ewma, IdleClock, RedKnobs, check_red, out_of_reach};
use super::{Aqm, Reason, Verdict};
use crate::units::UnitError;
use crate::{
    Block, Bytes, Context, Depth, Environment, FromParams, Header, Instant, Occupancy, Thresholds, Weight,
};

/// Adds to a block of the RED family the parameters that all of them have.
macro_rules! red_params {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
            /// Queue limit, in packets (`868p`) or bytes (`500kB`).
            pub limit: Depth,
            /// The newest sample's weight in the average queue length (w_q).
            #[serde(default = "crate::aqm::red::default_weight")]
            pub weight: Weight,
            /// Let at least 1/p packets pass between two drops, as ns-2's RED does by default.
            #[serde(default = "crate::aqm::red::default_wait")]
            pub wait: bool,
            /// Above max, let the drop probability rise to 1 at twice max instead of dropping all (Floyd 2000).
            #[serde(default)]
            pub gentle: bool,
            /// Mark ECN-capable packets that it would drop by chance, and let them in (RFC 3168, section 5). Above max, and where
            /// there is no room, it drops them all the same (section 7). TCP flows are capable with the key `ecn`, on real packets
            /// also with `[live] sysctl = { "net.ipv4.tcp_ecn" = 1 }`.
            #[serde(default)]
            pub ecn: bool,
            /// The mean packet size, for idle time and byte-mode probabilities.
            #[serde(default = "crate::aqm::red::default_mean_packet")]
            pub mean_packet: Bytes,
        }

        impl $name {
            pub(crate) fn knobs(&self) -> RedKnobs {
                RedKnobs {
                    spread: true,
                    wait: self.wait,
                    gentle: self.gentle,
                    ecn: self.ecn,
                    mean_packet: self.mean_packet,
                }
            }
        }
    };
}
pub(crate) use red_params;

pub(crate) fn default_weight() -> Weight {
    Weight::new(0.002).expect("0.002 is a weight")
}

pub(crate) const fn default_wait() -> bool {
    true
}

pub(crate) const fn default_mean_packet() -> Bytes {
    Bytes::new(1000)
}

red_params! {
    /// Parameters of [`Red`].
    RedParams {
        /// `min/max/max_p`, in packets (`30/90/0.05`) or bytes (`30kB/90kB/0.05`).
        thresholds: Thresholds,
        /// Drop early only if more than one packet waits, whatever the average, as ns-2's `Queue/RED` does
        /// (`qlen > 1`). With a shorter queue the spacing of drops is reset, as below min. A full queue still drops.
        /// `false` is the algorithm of Floyd & Jacobson.
        #[serde(default)] spare_short_queue: bool,
    }
}

/// The longest queue that `spare-short-queue` spares, in packets (ns-2's `red.cc`: `qlen > 1`).
const SHORT: u64 = 1;

/// Random Early Detection over the whole queue, blind to color.
#[derive(Clone, Debug)]
pub struct Red {
    params: RedParams,
    average: Ewma,
    idle: IdleClock,
    test: EarlyTest,
}

impl RedParams {
    /// The threshold sets, each with its key.
    fn sets(&self) -> Vec<(&'static str, Thresholds)> {
        vec![("thresholds", self.thresholds)]
    }
}

impl Block for Red {
    type Params = RedParams;
    const NAME: &'static str = "red";
    const SUMMARY: &'static str = "drops at random as the average queue grows, regardless of color";
    const SOURCE: &'static str = "Floyd & Jacobson 1993, figure 2";
    const BATCHED: bool = true;

    fn check(params: &RedParams) -> Result<(), UnitError> {
        check_red(params.mean_packet, &params.sets())
    }

    fn idle_keys(params: &RedParams, sizes: &RangeInclusive<u64>) -> Vec<(&'static str, String)> {
        out_of_reach(params.limit, &params.sets(), sizes)
    }
}

impl FromParams for Red {
    fn new(params: RedParams, environment: Environment) -> Self {
        Self {
            average: Ewma::default(),
            idle: IdleClock::new(params.mean_packet, environment.rate),
            test: EarlyTest::new(params.thresholds, params.knobs()),
            params,
        }
    }
}

impl Aqm for Red {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        let weight = self.params.weight;
        self.average.decay(weight, self.idle.missed(cx.now));
        self.average.update(weight, queue.total(self.params.thresholds.unit()));
        let verdict = if queue.is_full_for(packet, self.params.limit) {
            self.test.lost();
            Verdict::Drop(Reason::Overflow)
        } else if self.params.spare_short_queue && queue.packets() <= SHORT {
            self.test.rest();
            Verdict::Pass
        } else {
            Verdict::of(self.test.judge(self.average.get(), packet, cx.rng))
        };
        self.idle.settle(verdict.admits(packet), cx.now);
        verdict
    }

    fn on_idle(&mut self, since: Instant) {
        self.idle.begin(since);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("average total", self.average.get())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, Color, Ecn, FlowId, Rng};

    fn red(thresholds: &str, weight: f64, wait: bool) -> Red {
        let params = RedParams {
            thresholds: thresholds.parse().unwrap(),
            spare_short_queue: false,
            limit: Depth::Packets(100),
            weight: Weight::new(weight).unwrap(),
            wait,
            gentle: false,
            ecn: false,
            mean_packet: Bytes::new(1000),
        };
        Red::new(params, Environment { rate: Bitrate::from_bps(8_000_000).unwrap() })
    }

    fn queue(packets: u32) -> Occupancy {
        let mut queue = Occupancy::EMPTY;
        (0..packets).for_each(|_| queue.add(Color::Yellow, 1000));
        queue
    }

    #[test]
    fn average_by_hand() {
        let mut red = red("50/90/0.1", 0.25, false);
        let mut rng = Rng::stream(1, "red");
        let packet = Header::new(FlowId(0), 1000);
        for (waiting, average) in [(8, 2.0), (8, 3.5), (0, 2.625)] {
            let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
            assert_eq!(red.on_arrival(&packet, &queue(waiting), cx), Verdict::Pass);
            assert_eq!(red.average.get(), average);
        }
        // Idle for 2.5 packet times of 1 ms: two missed packets, then the update with q = 0.
        red.on_idle(Instant::from_nanos(1_000_000));
        let cx = &mut Context { now: Instant::from_nanos(3_500_000), rng: &mut rng };
        red.on_arrival(&packet, &queue(0), cx);
        assert_eq!(red.average.get(), 2.625 * 0.75 * 0.75 * 0.75);
    }

    #[test]
    fn capable_packets_are_told_below_max_and_dropped_above() {
        let verdicts = |waiting: u32, ecn: Ecn| {
            let mut red = red("1/3/1", 1.0, false);
            red.test = EarlyTest::new(red.params.thresholds, RedKnobs { ecn: true, ..red.params.knobs() });
            let mut rng = Rng::stream(1, "red");
            let mut seen = [0; 3];
            for _ in 0..300 {
                let mut packet = Header { ecn, ..Header::new(FlowId(0), 1000) };
                let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
                let verdict = red.clone().on_arrival(&packet, &queue(waiting), cx);
                let applied = verdict.apply(&mut packet);
                assert_eq!(applied.is_ok(), verdict.admits(&packet));
                match (applied, packet.ecn) {
                    (Ok(None), same) if same == ecn => seen[0] += 1,
                    (Ok(Some(Reason::Early)), Ecn::Congested) => seen[1] += 1,
                    (Err(Reason::Early | Reason::Forced | Reason::Overflow), same) if same == ecn => {
                        seen[2] += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            seen
        };
        // Half-way between 1 and 3 with max_p 1, a first packet meets p = 0.5.
        let [passed, marked, dropped] = verdicts(2, Ecn::Capable0);
        assert!(passed > 100 && marked > 100 && dropped == 0, "{passed} {marked}");
        assert_eq!(
            verdicts(2, Ecn::NotCapable),
            [passed, 0, marked],
            "the same random decisions, but dropped"
        );
        assert_eq!(verdicts(3, Ecn::Capable1), [0, 0, 300], "above max");
        assert_eq!(verdicts(100, Ecn::Capable1), [0, 0, 300], "no room");
        assert_eq!(verdicts(0, Ecn::Capable1), [300, 0, 0]);
    }

    #[test]
    fn full_queue_overflows_whatever_the_average() {
        let mut red = red("50/90/0.1", 0.002, true);
        let mut rng = Rng::stream(1, "red");
        let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
        let verdict = red.on_arrival(&Header::new(FlowId(0), 1000), &queue(100), cx);
        assert_eq!(verdict, Verdict::Drop(Reason::Overflow));
    }

    #[test]
    fn a_short_queue_is_spared_by_hand() {
        // Weight 1/4 and 40, 1, 0, 2, 1 packets waiting: averages 10, 7.75, 5.8125, 4.859375, 3.89453125, of which the first
        // two are above max 6. With min 0 and max_p 1, p_b is a sixth of the average: .969, .810, .649 for the others. One
        // packet after a drop p_b / (1 - p_b) is above 1: each is dropped.
        let early = Verdict::Drop(Reason::Early);
        let forced = Verdict::Drop(Reason::Forced);
        let verdicts = |spare: bool, seed: u64| {
            let mut red = red("0/6/1", 0.25, false);
            red.params.spare_short_queue = spare;
            let mut rng = Rng::stream(seed, "red");
            let packet = Header::new(FlowId(0), 1000);
            let seen = [40, 1, 0, 2, 1].map(|waiting| {
                let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
                red.on_arrival(&packet, &queue(waiting), cx)
            });
            assert_eq!(red.average.get(), 3.894_531_25, "the average is the same for both");
            seen
        };
        assert_eq!(verdicts(false, 1), [forced, forced, early, early, early]);
        // Spared where 1, 0 and 1 wait. The spacing then starts anew: 2 waiting packets meet p_b itself.
        let mut dropped = 0;
        for seed in 0..1000 {
            let [first, one, none, two, last] = verdicts(true, seed);
            assert_eq!([first, one, none, last], [forced, Verdict::Pass, Verdict::Pass, Verdict::Pass]);
            dropped += u32::from(two == early);
        }
        assert!((770..850).contains(&dropped), "{dropped} of 1000 at p = .81");
    }

    #[test]
    fn a_full_short_queue_drops() {
        let mut red = red("0/6/1", 0.25, false);
        (red.params.spare_short_queue, red.params.limit) = (true, Depth::Packets(1));
        let mut rng = Rng::stream(1, "red");
        let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
        let verdict = red.on_arrival(&Header::new(FlowId(0), 1000), &queue(1), cx);
        assert_eq!(verdict, Verdict::Drop(Reason::Overflow));
    }

    #[test]
    fn first_packet_above_min_may_drop() {
        // p_b = 1 at an average just below max: the first packet above min is lost at once.
        let mut red = red("1/3/1", 1.0, false);
        let mut rng = Rng::stream(1, "red");
        let drops = (0..200).filter(|_| {
            let mut fresh = red.clone();
            let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
            fresh.on_arrival(&Header::new(FlowId(0), 1000), &queue(2), cx) != Verdict::Pass
        });
        let drops = drops.count();
        assert!((70..130).contains(&drops), "p_a = 0.5 on the first packet: {drops} of 200");
        red.on_idle(Instant::ZERO);
    }
}
