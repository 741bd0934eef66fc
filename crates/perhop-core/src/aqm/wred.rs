//! WRED: one average over all packets, a threshold set for each color (Cisco IOS; Makkar et al. 2000).
//!
//! Dynamic WRED (Bouras & Sevasti, section 4) moves the set of out-of-profile packets with the sum of the windows of the
//! path that the queue serves: `max_th` is the sum, `min_th` 0.15 of it.
//! Where several paths share the queue, it is the sum of what each last said (`paths_in_one_queue_are_added`).
//!
//! ## Deviations
//! The paper gives one set and does not say for which color; with one for both, marking would mean nothing. Here it is that
//! of yellow and red packets, and green ones are dropped on overflow only, by a set above it (`green = "above"`), or by the
//! same thresholds with a lower `max_p` (`green = "same-thresholds"`). `in_profile_packets_are_spared` shows all three.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::early::{EarlyTest, Ewma, IdleClock, RedKnobs, check_red, out_of_reach};
use super::red::red_params;
use super::{Aqm, Reason, Verdict};
use crate::control::Message;
use crate::table::at_key;
use crate::units::{Positive, UnitError};
use crate::{
    Block, Bytes, Color, Context, Depth, Environment, FromParams, Header, Instant, Occupancy, Origin,
    Probability, Thresholds, Unit, Weight,
};

red_params! {
    /// Parameters of [`Wred`].
    WredParams {
        /// `min/max/max_p` for green packets. Default: they are dropped on overflow only.
        #[serde(default, skip_serializing_if = "Option::is_none")] green: Option<Thresholds>,
        /// `min/max/max_p` for yellow packets. Default: they are dropped on overflow only.
        #[serde(default, skip_serializing_if = "Option::is_none")] yellow: Option<Thresholds>,
        /// `min/max/max_p` for red packets. Default: those of yellow packets.
        #[serde(default, skip_serializing_if = "Option::is_none")] red: Option<Thresholds>,
    }
}

/// RED with one average and a threshold set for each color.
#[derive(Clone, Debug)]
pub struct Wred {
    queue: OneAverage,
    /// By color.
    tests: [Option<EarlyTest>; 3],
}

/// The average over all packets, kept in one unit.
#[derive(Clone, Debug)]
struct OneAverage {
    limit: Depth,
    weight: Weight,
    unit: Unit,
    average: Ewma,
    idle: IdleClock,
}

impl OneAverage {
    fn new(limit: Depth, weight: Weight, unit: Unit, idle: IdleClock) -> Self {
        Self { limit, weight, unit, average: Ewma::default(), idle }
    }

    /// Updates the average, and asks the packet's test if it has one.
    #[inline]
    fn judge(
        &mut self,
        test: Option<&mut EarlyTest>,
        packet: &Header,
        queue: &Occupancy,
        cx: &mut Context<'_>,
    ) -> Verdict {
        self.average.decay(self.weight, self.idle.missed(cx.now));
        self.average.update(self.weight, queue.total(self.unit));
        let full = queue.is_full_for(packet, self.limit);
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
}

impl WredParams {
    /// The threshold sets that are given, each with its key.
    fn sets(&self) -> Vec<(&'static str, Thresholds)> {
        let sets = [("green", self.green), ("yellow", self.yellow), ("red", self.red)];
        sets.into_iter().filter_map(|(key, set)| Some((key, set?))).collect()
    }
}

impl Block for Wred {
    type Params = WredParams;
    const NAME: &'static str = "wred";
    const SUMMARY: &'static str = "RED with one average over all packets and a threshold set for each color";
    const ORIGIN: Origin =
        Origin::published(1998, "Cisco IOS, Weighted Random Early Detection; Bouras & Sevasti, section 5");
    const BATCHED: bool = true;

    fn check(params: &WredParams) -> Result<(), UnitError> {
        if params.sets().is_empty() {
            return Err(UnitError::new(
                "no color has thresholds, so packets would be dropped on overflow only; give at least one color thresholds, such as \
                 yellow = \"40/160/0.1\", or write aqm = \"drop-tail\"",
            ));
        }
        check_red(params.mean_packet, &params.sets())
    }

    fn idle_keys(params: &WredParams, sizes: &RangeInclusive<u64>) -> Vec<(&'static str, String)> {
        out_of_reach(params.limit, &params.sets(), sizes)
    }
}

impl FromParams for Wred {
    fn new(params: WredParams, environment: Environment) -> Self {
        let sets = [params.green, params.yellow, params.red.or(params.yellow)];
        let unit = sets.iter().flatten().next().map_or(Unit::Packets, Thresholds::unit);
        let idle = IdleClock::new(params.mean_packet, environment.rate);
        Self {
            queue: OneAverage::new(params.limit, params.weight, unit, idle),
            tests: sets.map(|set| set.map(|set| EarlyTest::new(set, params.knobs()))),
        }
    }
}

impl Aqm for Wred {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        self.queue.judge(self.tests[packet.color.index()].as_mut(), packet, queue, cx)
    }

    fn on_idle(&mut self, since: Instant) {
        self.queue.idle.begin(since);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("average total", self.queue.average.get())]
    }
}

/// What happens to in-profile packets under dynamic WRED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GreenRule {
    /// They are dropped on overflow only.
    #[default]
    Overflow,
    /// They have thresholds above those of the others: from `max_th` to twice `max_th`, with a `max_p` of 0.02.
    Above,
    /// They have the thresholds of the others, with a `max_p` of 0.02, as in the examples of ns-2's DiffServ module.
    SameThresholds,
}

red_params! {
    /// Parameters of [`Dwred`].
    DwredParams {
        /// `min/max/max_p` for yellow and red packets before the first message; `max_p` throughout. The queue must lie
        /// on a path that has a `control` and TCP flows; otherwise it would get no message.
        out: Thresholds,
        /// `min_th` as a share of `max_th`, which is the sum of the windows.
        #[serde(default = "share")] share: Probability,
        /// `max_th` is at least this many packets, however small the windows.
        #[serde(default = "least")] least: Positive,
        /// What happens to green packets.
        #[serde(default)] green: GreenRule,
    }
}

fn share() -> Probability {
    Probability::new(0.15).expect("a probability")
}

const fn least() -> Positive {
    Positive::literal(1.0)
}

/// WRED whose thresholds follow the sum of the windows of the flows that it serves.
#[derive(Clone, Debug)]
pub struct Dwred {
    queue: OneAverage,
    out: EarlyTest,
    green: Option<EarlyTest>,
    rule: GreenRule,
    share: f64,
    least: f64,
    /// `min_th` and `max_th`.
    min: f64,
    max: f64,
    /// The newest message of each path, in the order in which they were first heard of.
    heard: Vec<Heard>,
}

/// What a path last said of its windows.
#[derive(Clone, Copy, Debug)]
struct Heard {
    path: u32,
    number: u64,
    packets: f64,
}

impl Block for Dwred {
    type Params = DwredParams;
    const NAME: &'static str = "dwred";
    const SUMMARY: &'static str = "WRED whose thresholds follow the sum of the windows of its path's flows";
    const ORIGIN: Origin = Origin::paper(2003, "Bouras & Sevasti, section 4");
    const BATCHED: bool = true;
    const FOLLOWS_PATHS: bool = true;

    fn check(params: &DwredParams) -> Result<(), UnitError> {
        if params.out.unit() == Unit::Bytes {
            let text = "thresholds that follow windows must be in packets, such as 40/160/0.1";
            return Err(UnitError::new(at_key("out", text)));
        }
        check_red(params.mean_packet, &[("out", params.out)])
    }
}

impl FromParams for Dwred {
    fn new(params: DwredParams, environment: Environment) -> Self {
        let idle = IdleClock::new(params.mean_packet, environment.rate);
        let seldom = Thresholds::new(0, 0, Unit::Packets, Probability::new(0.02).expect("a probability"));
        let mut dwred = Self {
            queue: OneAverage::new(params.limit, params.weight, Unit::Packets, idle),
            out: EarlyTest::new(params.out, params.knobs()),
            green: match params.green {
                GreenRule::Overflow => None,
                GreenRule::Above | GreenRule::SameThresholds => {
                    Some(EarlyTest::new(seldom.expect("min is not above max"), params.knobs()))
                }
            },
            rule: params.green,
            share: params.share.get(),
            least: params.least.get(),
            min: params.out.min(),
            max: params.out.max(),
            heard: Vec::new(),
        };
        dwred.retune_green();
        dwred
    }
}

impl Dwred {
    /// Green's set follows the other one.
    fn retune_green(&mut self) {
        let Some(green) = &mut self.green else { return };
        match self.rule {
            GreenRule::Overflow => {}
            GreenRule::Above => green.retune(self.max, 2.0 * self.max),
            GreenRule::SameThresholds => green.retune(self.min, self.max),
        }
    }
}

impl Aqm for Dwred {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        let test = if packet.color == Color::Green { self.green.as_mut() } else { Some(&mut self.out) };
        self.queue.judge(test, packet, queue, cx)
    }

    fn on_idle(&mut self, since: Instant) {
        self.queue.idle.begin(since);
    }

    fn on_message(&mut self, message: &Message) {
        let Message::Windows { path, number, packets } = *message else { return };
        match self.heard.iter_mut().find(|heard| heard.path == path) {
            Some(heard) if heard.number >= number => return,
            Some(heard) => *heard = Heard { path, number, packets },
            None => self.heard.push(Heard { path, number, packets }),
        }
        self.max = self.heard.iter().map(|heard| heard.packets).sum::<f64>().max(self.least);
        self.min = self.share * self.max;
        self.out.retune(self.min, self.max);
        self.retune_green();
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("average total", self.queue.average.get()), ("max_th", self.max)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, FlowId, Rng};

    fn environment() -> Environment {
        Environment { rate: Bitrate::from_bps(8_000_000).unwrap() }
    }

    fn wred(table: &str) -> Wred {
        let params: WredParams = serde_json::from_str(table).unwrap();
        Wred::check(&params).unwrap();
        Wred::new(params, environment())
    }

    fn dwred(extra: &str) -> Dwred {
        let table =
            format!(r#"{{"out": "40/160/0.1", "limit": "400p", "weight": 1, "wait": false {extra}}}"#);
        let params: DwredParams = serde_json::from_str(&table).unwrap();
        Dwred::check(&params).unwrap();
        Dwred::new(params, environment())
    }

    /// The share of 20 000 packets of this color that is dropped at a queue of this length.
    fn share(aqm: &mut impl Aqm, color: Color, waiting: u32) -> f64 {
        let mut queue = Occupancy::EMPTY;
        (0..waiting).for_each(|_| queue.add(Color::Yellow, 1000));
        let mut rng = Rng::stream(3, "wred");
        let packet = Header { color, ..Header::new(FlowId(0), 1000) };
        let mut dropped = 0;
        for _ in 0..20_000 {
            let cx = &mut Context { now: Instant::from_nanos(1), rng: &mut rng };
            dropped += u32::from(aqm.on_arrival(&packet, &queue, cx) != Verdict::Pass);
        }
        f64::from(dropped) / 20_000.0
    }

    /// Spread evenly without wait, the gaps between drops are uniform on 1..1/p: their mean is half of 1/p.
    fn of(p: f64) -> f64 {
        2.0 * p
    }

    #[test]
    fn one_average_and_a_set_for_each_color() {
        let table = r#"{"green": "120/160/0.1", "yellow": "40/160/0.1", "limit": "400p", "weight": 1, "wait": false}"#;
        let mut aqm = wred(table);
        assert_eq!(share(&mut aqm, Color::Green, 100), 0.0);
        assert!((share(&mut aqm, Color::Yellow, 100) - of(0.05)).abs() < 0.003);
        assert!((share(&mut aqm, Color::Red, 100) - of(0.05)).abs() < 0.003, "yellow's set");
        assert!((share(&mut aqm, Color::Green, 140) - of(0.05)).abs() < 0.003);
        assert_eq!(share(&mut aqm, Color::Yellow, 160), 1.0);
        let mut spared = wred(r#"{"yellow": "40/160/0.1", "limit": "400p", "weight": 1}"#);
        assert_eq!(share(&mut spared, Color::Green, 399), 0.0);
        assert_eq!(share(&mut spared, Color::Green, 400), 1.0);
    }

    #[test]
    fn a_full_queue_overflows_whatever_the_average() {
        let mut aqm = wred(r#"{"yellow": "40/160/0.1", "limit": "100p", "weight": 0.002}"#);
        let mut rng = Rng::stream(3, "wred");
        for (waiting, verdict) in [(99, Verdict::Pass), (100, Verdict::Drop(Reason::Overflow))] {
            let mut queue = Occupancy::EMPTY;
            (0..waiting).for_each(|_| queue.add(Color::Yellow, 1000));
            for color in Color::ALL {
                let packet = Header { color, ..Header::new(FlowId(0), 1000) };
                let cx = &mut Context { now: Instant::ZERO, rng: &mut rng };
                assert_eq!(aqm.on_arrival(&packet, &queue, cx), verdict, "{waiting} {color:?}");
            }
        }
    }

    #[test]
    fn thresholds_follow_the_windows() {
        let mut aqm = dwred("");
        assert!((share(&mut aqm, Color::Yellow, 100) - of(0.05)).abs() < 0.003, "before the first message");
        // S = 200: from 30 to 200, p = 0.1 * 70 / 170 at 100.
        aqm.on_message(&Message::Windows { path: 1, number: 5, packets: 200.0 });
        assert!((share(&mut aqm, Color::Yellow, 100) - of(0.1 * 70.0 / 170.0)).abs() < 0.003);
        assert_eq!(share(&mut aqm, Color::Yellow, 29), 0.0);
        assert_eq!(share(&mut aqm, Color::Yellow, 200), 1.0);
        // A message that is late, or that is not for the queue, changes nothing.
        aqm.on_message(&Message::Windows { path: 1, number: 4, packets: 20.0 });
        aqm.on_message(&Message::Share(0.5));
        assert_eq!(aqm.max, 200.0);
        aqm.on_message(&Message::Windows { path: 1, number: 6, packets: 0.0 });
        assert_eq!(aqm.max, 1.0);
    }

    #[test]
    fn paths_in_one_queue_are_added() {
        let mut aqm = dwred("");
        aqm.on_message(&Message::Windows { path: 1, number: 5, packets: 200.0 });
        // Each path numbers its own messages: this one is no older than the first.
        aqm.on_message(&Message::Windows { path: 2, number: 4, packets: 30.0 });
        assert_eq!(aqm.max, 230.0);
        aqm.on_message(&Message::Windows { path: 1, number: 6, packets: 100.0 });
        assert_eq!(aqm.max, 130.0);
        aqm.on_message(&Message::Windows { path: 2, number: 3, packets: 90.0 });
        assert_eq!(aqm.max, 130.0, "what is late changes nothing");
    }

    #[test]
    fn in_profile_packets_are_spared() {
        let windows = Message::Windows { path: 1, number: 1, packets: 100.0 };
        let mut spared = dwred("");
        spared.on_message(&windows);
        assert_eq!(share(&mut spared, Color::Green, 399), 0.0);
        let mut above = dwred(r#", "green": "above""#);
        above.on_message(&windows);
        assert_eq!(share(&mut above, Color::Green, 100), 0.0);
        assert!((share(&mut above, Color::Green, 150) - of(0.01)).abs() < 0.002);
        assert_eq!(share(&mut above, Color::Green, 200), 1.0);
        // Before the first message from 40 to 160, then from 15 to 100: 0.02 * 35 / 85 at 50.
        let mut same = dwred(r#", "green": "same-thresholds""#);
        assert!((share(&mut same, Color::Green, 100) - of(0.01)).abs() < 0.002);
        same.on_message(&windows);
        assert_eq!(share(&mut same, Color::Green, 14), 0.0);
        assert!((share(&mut same, Color::Green, 50) - of(0.02 * 35.0 / 85.0)).abs() < 0.002);
        assert_eq!(share(&mut same, Color::Green, 100), 1.0);
    }
}
