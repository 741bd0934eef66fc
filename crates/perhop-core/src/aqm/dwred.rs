//! Dynamic WRED: one average over all packets, and thresholds that follow the windows of the path (Bouras &
//! Sevasti, section 4).
//!
//! It moves the set of out-of-profile packets with the sum of the windows of the path that the queue serves:
//! `max_th` is the sum, `min_th` 0.15 of it. Where several paths share the queue, it is the sum of what each
//! last said (`paths_in_one_queue_are_added`).
//!
//! ## Deviations
//! The paper gives one set and does not say for which color; with one for both, marking would mean nothing.
//! Here it is that of yellow and red packets, and green ones are dropped on overflow only, by a set above it
//! (`green = "above"`), or by the same thresholds with a lower `max_p` (`green = "same-thresholds"`).
//! `in_profile_packets_are_spared` shows all three.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curve::CurveTest;
use super::early::{check_red, without_effect};
use super::one_average::OneAverage;
use super::red::{RedFamily, red_params};
use super::{Aqm, AqmBlock, Verdict};
use crate::control::Message;
use crate::units::defaults::{at_least_one, probability};
use crate::units::{Positive, UnitError, require};
use crate::{
    Bitrate, Block, Bytes, Color, Context, Depth, Environment, Header, Instant, KeysWithoutEffect, Occupancy,
    Origin, Probability, PseudoCode, Thresholds, Unit, Weight,
};

/// What happens to in-profile packets under dynamic WRED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GreenRule {
    /// In-profile packets are dropped on overflow only.
    #[default]
    Overflow,
    /// In-profile packets have thresholds above those of the others: from `max_th` to twice `max_th`, with a
    /// `max_p` of 0.02.
    Above,
    /// In-profile packets have the thresholds of the others, with a `max_p` of 0.02, as in the examples of
    /// ns-2's DiffServ module.
    SameThresholds,
}

red_params! {
    /// Parameters of [`Dwred`].
    DwredParams {
        /// `min/max/max_p` for yellow and red packets before the first message; `max_p` throughout. The queue
        /// must lie on a path that has a `control` and TCP flows; otherwise it would get no message.
        out: Thresholds,
        /// `min_th` as a share of `max_th`, which is the sum of the windows.
        #[serde(default = "probability::<15, 100>")] share: Probability,
        /// `max_th` is at least this many packets, however small the windows.
        #[serde(default = "at_least_one::<1>")] least: Positive,
        /// What happens to green packets.
        #[serde(default)] green: GreenRule,
    }
}

/// WRED whose thresholds follow the sum of the windows of the flows that it serves.
#[derive(Clone, Debug)]
pub struct Dwred {
    queue: OneAverage,
    out: CurveTest,
    green: Option<CurveTest>,
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
    const PSEUDO_CODE: Option<PseudoCode> = Some(super::red::RED_CODE);
    const FOLLOWS_PATHS: bool = true;

    fn check(params: &DwredParams) -> Result<(), UnitError> {
        let text = "thresholds that follow windows must be in packets, such as 40/160/0.1";
        require(params.out.unit() == Unit::Packets, "out", text)?;
        check_red(params.mean_packet, &[("out", params.out)])
    }

    fn keys_without_effect(params: &DwredParams, _sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        without_effect(&params.knobs(), Unit::Packets).into_iter().collect()
    }
}

impl AqmBlock for Dwred {
    fn limit(params: &DwredParams, _: Bitrate) -> Option<Depth> {
        Some(params.limit)
    }

    fn new(params: DwredParams, environment: Environment) -> Self {
        let seldom = Thresholds::new(0, 0, Unit::Packets, Probability::new(0.02).expect("a probability"));
        let DwredParams { limit, weight, mean_packet, .. } = params;
        let mut dwred = Self {
            queue: OneAverage::new(limit, weight, Unit::Packets, mean_packet, environment),
            out: CurveTest::new(&params.out.into(), params.knobs()),
            green: match params.green {
                GreenRule::Overflow => None,
                GreenRule::Above | GreenRule::SameThresholds => {
                    Some(CurveTest::new(&seldom.expect("min is not above max").into(), params.knobs()))
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

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        self.queue.take_over("out", &before.queue)?;
        self.out.take_over(&before.out);
        if let (Some(test), Some(before)) = (&mut self.green, &before.green) {
            test.take_over(before);
        }
        self.heard.clone_from(&before.heard);
        self.retune_green();
        Ok(())
    }
}

impl Dwred {
    /// Lets green's set follow the other one.
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
        self.queue.judge(test, None, packet, queue, cx)
    }

    fn on_idle(&mut self, since: Instant) {
        self.queue.begin_idle(since);
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
        vec![("average total", self.queue.get()), ("max_th", self.max)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::wred::tests::{environment, of, share};

    fn dwred(extra: &str) -> Dwred {
        let table =
            format!(r#"{{"out": "40/160/0.1", "limit": "400p", "weight": 1, "wait": false {extra}}}"#);
        let params: DwredParams = serde_json::from_str(&table).unwrap();
        Dwred::check(&params).unwrap();
        Dwred::new(params, environment())
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
