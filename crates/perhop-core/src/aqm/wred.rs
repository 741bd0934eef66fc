//! WRED: one average over all packets, a drop curve for each color or codepoint (Cisco IOS; Makkar et al.
//! 2000).
//!
//! Drop profiles choose a packet's curve, limit and ECN mode by codepoint, precedence or color, as Cisco's
//! `random-detect dscp`, Linux's `gred` with equal priorities and Junos's drop profiles do. A table by
//! codepoint and color finds a packet's profile, so their number costs no time.
//!
//! ## Deviations
//! Routers that drop at the head (Junos) do not document from which packet on their average counts; here it
//! is what waits behind the packet at the head (`at_the_head_the_packets_behind_count`).

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curve::CurveTest;
use super::early::{RedKnobs, check_mean_packet, check_unit, longest, without_effect};
use super::one_average::OneAverage;
use super::red::{RedFamily, WEIGHT, red_params};
use super::{Aqm, AqmBlock, EcnMode, Verdict};
use crate::matching::{Match, Matcher};
use crate::units::{UnitError, keeps, require};
use crate::{
    Bitrate, Block, Bytes, Color, Context, Depth, DropCurve, Dscp, Environment, FlowId, Header, Instant,
    KeysWithoutEffect, Occupancy, Origin, PseudoCode, Unit, Weight, idle_keys,
};

red_params! {
    /// Parameters of [`Wred`].
    WredParams {
        /// The drop curve of green packets: `min/max/max_p`, or points such as
        /// `interpolate 30/0, 60/0.1, 90/0.5`. Default: they are dropped on overflow only.
        green: Option<DropCurve>,
        /// The drop curve of yellow packets. Default: they are dropped on overflow only.
        yellow: Option<DropCurve>,
        /// The drop curve of red packets. Default: that of yellow packets.
        red: Option<DropCurve>,
        /// Curves, limits and ECN modes by codepoint, precedence or color. The first profile that matches a
        /// packet acts; packets that none matches have the curve of their color.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] profiles: Vec<DropProfile>,
        /// Which packet is judged: the one that arrives, or the one at the head of the queue, as it is taken
        /// for transmission (Junos). A full queue drops the packet that arrives in both.
        #[serde(default)] drop_at: DropAt,
    }
}

/// Which packet a queue judges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DropAt {
    /// The packet that arrives.
    #[default]
    Tail,
    /// The packet at the head.
    Head,
}

/// How the packets of a queue that match are dropped.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DropProfile {
    /// Which packets it is for, if no earlier profile is. Default: all others; only the last one may be for
    /// them.
    pub r#match: Option<Match>,
    /// The drop curve of these packets. Default: they are dropped on overflow only.
    pub curve: Option<DropCurve>,
    /// These packets are dropped when the whole queue holds this much, as `limit` of the queue. Default: the
    /// queue's limit.
    #[schemars(with = "Option<crate::units::Limit>")]
    pub limit: Option<Depth>,
    /// Which of these packets are marked in place of being dropped. Default: as the queue's `ecn` says.
    pub ecn: Option<EcnMode>,
}

impl DropProfile {
    /// Checks the profile behind those `before` it.
    fn check(&self, before: &[Self], is_last: bool) -> Result<(), UnitError> {
        let has_curve = self.curve.is_some();
        let text = "it acts where a curve drops; give the profile a `curve`";
        require(has_curve || self.ecn.is_none(), "ecn", text)?;
        let Some(selector) = &self.r#match else {
            require(is_last, "match", "only the last profile may be for all other packets")?;
            let text = "it says nothing; give it a `curve` or a `limit`";
            return require(has_curve || self.limit.is_some(), "", text);
        };
        let text = "it has no condition; leave it out, or write { dscp = 46 }";
        require(!selector.is_empty(), "match", text)?;
        let text = "profiles do not know paths; give the path a queue of its own, or match a `traffic-class`";
        require(selector.path.is_none(), "match.path", text)?;
        selector.check().map_err(|problem| problem.below("match"))?;
        let covers = |other: &Self| other.r#match.as_ref().is_some_and(|other| other.covers(selector));
        let text = "an earlier profile matches all these packets; put this one before it";
        require(!before.iter().any(covers), "match", text)
    }
}

/// RED with one average and a drop curve for each color or profile.
#[derive(Clone, Debug)]
pub struct Wred {
    queue: OneAverage,
    /// By color.
    tests: [Option<CurveTest>; 3],
    profiles: Option<Box<Profiles>>,
    drop_at: DropAt,
}

/// Labels and colors by which a packet's profile differs, each with 64 codepoints.
const KINDS: usize = 2 * Color::ALL.len();

/// No profile.
const NONE: u8 = u8::MAX;

/// The most profiles: one for each codepoint and color.
const MOST_PROFILES: usize = 64 * Color::ALL.len();

#[derive(Clone, Debug)]
struct Profiles {
    all: Vec<Profile>,
    /// The profile of each codepoint, by label and color.
    of: [[u8; 64]; KINDS],
}

#[derive(Clone, Debug)]
struct Profile {
    test: Option<CurveTest>,
    limit: Option<Depth>,
}

impl Profiles {
    fn new(params: &WredParams) -> Option<Box<Self>> {
        let knobs = params.knobs();
        let profile = |profile: &DropProfile| {
            let knobs = RedKnobs { ecn: profile.ecn.unwrap_or(knobs.ecn), ..knobs };
            let test = profile.curve.as_ref().map(|curve| CurveTest::new(curve, knobs));
            Profile { test, limit: profile.limit }
        };
        let all: Vec<Profile> = params.profiles.iter().map(profile).collect();
        let matchers: Vec<Matcher> =
            params.profiles.iter().map(|profile| Matcher::new(profile.r#match.as_ref())).collect();
        let mut of = [[NONE; 64]; KINDS];
        for color in Color::ALL {
            for label in [0, 1] {
                for dscp in (0..64).filter_map(Dscp::new) {
                    let packet = Header { label, dscp, color, ..Header::new(FlowId(0), 0) };
                    let number = matchers.iter().position(|matcher| matcher.takes(&packet));
                    of[kind(&packet)][usize::from(dscp.get())] =
                        number.and_then(|number| u8::try_from(number).ok()).unwrap_or(NONE);
                }
            }
        }
        (!all.is_empty()).then(|| Box::new(Self { all, of }))
    }

    #[inline]
    fn of(&mut self, packet: &Header) -> Option<&mut Profile> {
        let number = self.of[kind(packet)][usize::from(packet.dscp.get() & 63)];
        self.all.get_mut(usize::from(number))
    }
}

#[inline]
const fn kind(packet: &Header) -> usize {
    packet.color.index() + if packet.label == 0 { 0 } else { Color::ALL.len() }
}

impl WredParams {
    /// Returns the curves that are given, each with its key, and how it is named in a notice.
    fn curves(&self) -> Vec<(&'static str, String, &DropCurve)> {
        let colors = [("green", &self.green), ("yellow", &self.yellow), ("red", &self.red)];
        let colors =
            colors.into_iter().filter_map(|(key, curve)| Some((key, key.to_owned(), curve.as_ref()?)));
        let profiles = self.profiles.iter().enumerate();
        let profiles = profiles.filter_map(|(n, profile)| {
            Some(("profiles", format!("profiles[{n}].curve"), profile.curve.as_ref()?))
        });
        colors.chain(profiles).collect()
    }

    /// Returns the unit of the average.
    fn unit(&self) -> Unit {
        let limit = match self.limit {
            Depth::Packets(_) => Unit::Packets,
            Depth::Bytes(_) => Unit::Bytes,
        };
        self.curves().first().map_or(limit, |(.., curve)| curve.unit())
    }

    fn check_profiles(&self) -> Result<(), UnitError> {
        let all = &self.profiles;
        let text = format!("there are {} profiles; write at most {MOST_PROFILES}", all.len());
        require(all.len() <= MOST_PROFILES, "profiles", text)?;
        for (n, profile) in all.iter().enumerate() {
            profile
                .check(&all[..n], n + 1 == all.len())
                .map_err(|problem| problem.below(&format!("profiles[{n}]")))?;
        }
        let takes_all = all.last().is_some_and(|profile| profile.r#match.is_none());
        let of_color = self.curves().first().map(|(key, ..)| *key).filter(|key| *key != "profiles");
        let text = "the last profile is for all packets; leave one of the two out";
        require(!takes_all || of_color.is_none(), of_color.unwrap_or_default(), text)
    }

    /// Checks that all curves count in one unit, and only ramps are gentle.
    fn check_curves(&self) -> Result<(), UnitError> {
        let curves = self.curves();
        let Some((_, first, one)) = curves.first() else { return Ok(()) };
        for (_, key, curve) in &curves {
            check_unit(key, curve.unit(), first, one.unit())?;
            let text =
                "`gentle` is for min/max/max_p; write the points above max, too, and leave `gentle` out";
            require(!self.gentle || matches!(curve, DropCurve::Ramp(_)), key, text)?;
        }
        Ok(())
    }

    /// Keys that act on curves only, where there is none.
    fn idle_without_curves(&self) -> KeysWithoutEffect {
        let none = self.curves().is_empty();
        let text = "it acts on curves, and no packet has one; leave it out, or add a `curve`";
        idle_keys([
            (none && self.weight != WEIGHT, "weight", text),
            (none && self.gentle, "gentle", text),
            (none && self.ecn != EcnMode::Off, "ecn", text),
            (none && self.drop_at != DropAt::Tail, "drop-at", text),
        ])
    }

    /// Profiles of which a part has no effect.
    fn idle_profiles(&self, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        let unit = |limit| if matches!(limit, Depth::Packets(_)) { Unit::Packets } else { Unit::Bytes };
        let notice = |(n, profile): (usize, &DropProfile)| {
            let limit = profile.limit?;
            let (most, holds) = longest(self.limit, unit(limit), sizes);
            let (Depth::Packets(number) | Depth::Bytes(number)) = limit;
            (number >= most).then(|| {
                let text = format!(
                    "profiles[{n}].limit `{limit}`: the queue holds at most {holds}, so it has no effect; lower it, or raise `limit`"
                );
                ("profiles", text)
            })
        };
        self.profiles.iter().enumerate().filter_map(notice).collect()
    }
}

impl Block for Wred {
    type Params = WredParams;
    const NAME: &'static str = "wred";
    const SUMMARY: &'static str =
        "RED with one average over all packets and a drop curve for each color or codepoint";
    const ORIGIN: Origin =
        Origin::published(1998, "Cisco IOS, Weighted Random Early Detection; Bouras & Sevasti, section 5");
    const BATCHED: bool = true;
    const PSEUDO_CODE: Option<PseudoCode> = Some(super::red::RED_CODE);

    fn check(params: &WredParams) -> Result<(), UnitError> {
        let text = "no color has thresholds, so packets would be dropped on overflow only; give at least one color thresholds, such as \
                    yellow = \"40/160/0.1\", or write aqm = \"drop-tail\"";
        require(!params.curves().is_empty() || !params.profiles.is_empty(), "", text)?;
        check_mean_packet(params.mean_packet)?;
        params.check_profiles()?;
        params.check_curves()
    }

    fn keys_without_effect(params: &WredParams, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        let curves = params.curves();
        let reach = |(key, name, curve): (&'static str, String, &DropCurve)| {
            let (key, text) = super::early::beyond(params.limit, key, curve, sizes)?;
            Some((key, if key == "profiles" { format!("{name} {text}") } else { text }))
        };
        let mut idle: Vec<_> = curves.into_iter().filter_map(reach).collect();
        idle.extend(without_effect(&params.knobs(), params.unit()));
        idle.extend(params.idle_profiles(sizes));
        idle.extend(params.idle_without_curves());
        idle
    }
}

impl AqmBlock for Wred {
    fn precomputable(params: &WredParams) -> bool {
        params.drop_at == DropAt::Tail
    }

    fn limit(params: &WredParams, _: Bitrate) -> Option<Depth> {
        Some(params.limit)
    }

    /// No curve rises from zero before the average exceeds its start, and no average exceeds the queue.
    fn spared(params: &WredParams, _: Bitrate) -> Option<Depth> {
        let limits = params.profiles.iter().filter_map(|profile| profile.limit).chain([params.limit]);
        let starts = params.curves().into_iter().filter_map(|(.., curve)| {
            let start = curve.start()? as u64;
            Some(match curve.unit() {
                Unit::Packets => Depth::Packets(start),
                Unit::Bytes => Depth::Bytes(start),
            })
        });
        let all: Vec<Depth> = limits.chain(starts).collect();
        let packets = all.iter().map(|depth| if let Depth::Packets(n) = depth { Some(*n) } else { None });
        let bytes = all.iter().map(|depth| if let Depth::Bytes(n) = depth { Some(*n) } else { None });
        let least = |depths: Option<Vec<u64>>| depths?.into_iter().min();
        least(packets.collect()).map(Depth::Packets).or_else(|| least(bytes.collect()).map(Depth::Bytes))
    }

    fn new(params: WredParams, environment: Environment) -> Self {
        let profiles = Profiles::new(&params);
        let (knobs, unit) = (params.knobs(), params.unit());
        let red = params.red.or_else(|| params.yellow.clone());
        let test = |curve: DropCurve| CurveTest::new(&curve, knobs);
        Self {
            queue: OneAverage::new(params.limit, params.weight, unit, params.mean_packet, environment),
            tests: [params.green, params.yellow, red].map(|curve| curve.map(test)),
            profiles,
            drop_at: params.drop_at,
        }
    }

    fn take_over(&mut self, before: &Self) -> Result<(), UnitError> {
        keeps("drop-at", self.drop_at == before.drop_at)?;
        let key = if self.tests.iter().any(Option::is_some) { "green" } else { "profiles" };
        self.queue.take_over(key, &before.queue)?;
        for (test, before) in self.tests.iter_mut().zip(&before.tests) {
            if let (Some(test), Some(before)) = (test, before) {
                test.take_over(before);
            }
        }
        if let (Some(profiles), Some(before)) = (&mut self.profiles, &before.profiles)
            && profiles.of == before.of
        {
            for (profile, before) in profiles.all.iter_mut().zip(&before.all) {
                if let (Some(test), Some(before)) = (&mut profile.test, &before.test) {
                    test.take_over(before);
                }
            }
        }
        Ok(())
    }
}

impl Wred {
    /// Returns the average, and a packet's test and limit.
    #[inline]
    fn of(&mut self, packet: &Header) -> (&mut OneAverage, Option<&mut CurveTest>, Option<Depth>) {
        let Self { queue, tests, profiles, .. } = self;
        match profiles.as_mut().and_then(|profiles| profiles.of(packet)) {
            None => (queue, tests[packet.color.index()].as_mut(), None),
            Some(profile) => (queue, profile.test.as_mut(), profile.limit),
        }
    }
}

impl Aqm for Wred {
    #[inline]
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        let at_head = self.drop_at == DropAt::Head;
        let (average, test, limit) = self.of(packet);
        if at_head {
            return average.admit(limit, packet, queue, cx.now);
        }
        average.judge(test, limit, packet, queue, cx)
    }

    fn on_departure(&mut self, packet: &Header, left: &Occupancy, cx: &mut Context<'_>) -> Verdict {
        if self.drop_at == DropAt::Tail {
            return Verdict::Pass;
        }
        let (average, test, _) = self.of(packet);
        average.judge_head(test, packet, left, cx.rng)
    }

    fn on_idle(&mut self, since: Instant) {
        self.queue.begin_idle(since);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("average total", self.queue.get())]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{Bitrate, FlowId, Reason, Rng};

    pub(in crate::aqm) fn environment() -> Environment {
        Environment { rate: Bitrate::from_bps(8_000_000).unwrap() }
    }

    fn wred(table: &str) -> Wred {
        let params: WredParams = serde_json::from_str(table).unwrap();
        Wred::check(&params).unwrap();
        Wred::new(params, environment())
    }

    /// The share of 20 000 packets of this color that is dropped at a queue of this length.
    pub(in crate::aqm) fn share(aqm: &mut impl Aqm, color: Color, waiting: u32) -> f64 {
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
    pub(in crate::aqm) fn of(p: f64) -> f64 {
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

    /// Returns the share of packets like this one that is dropped or marked at a queue of this length.
    fn share_of(aqm: &mut Wred, packet: &Header, waiting: u32) -> f64 {
        let mut queue = Occupancy::EMPTY;
        (0..waiting).for_each(|_| queue.add(Color::Yellow, 1000));
        let mut rng = Rng::stream(3, "wred");
        let hit = (0..20_000).filter(|_| {
            let cx = &mut Context { now: Instant::from_nanos(1), rng: &mut rng };
            aqm.on_arrival(packet, &queue, cx) != Verdict::Pass
        });
        hit.count() as f64 / 20_000.0
    }

    fn at(dscp: u8, color: Color) -> Header {
        Header { dscp: Dscp::new(dscp).unwrap(), color, ..Header::new(FlowId(0), 1000) }
    }

    #[test]
    fn eight_curves_by_precedence_and_what_no_profile_matches() {
        let profile =
            |p: u32| format!(r#"{{"match": {{"precedence": {p}}}, "curve": "{}/160/0.1"}}"#, 10 * p);
        let listed: Vec<String> = (1..8).map(profile).collect();
        let table = format!(
            r#"{{"green": "120/160/0.1", "profiles": [{}], "limit": "400p", "weight": 1, "wait": false}}"#,
            listed.join(",")
        );
        let mut aqm = wred(&table);
        for p in 1..8_u8 {
            // p_b = 0.1 (100 - 10 p) / (160 - 10 p), whatever the color.
            let by_hand = 0.1 * f64::from(100 - 10 * u32::from(p)) / f64::from(160 - 10 * u32::from(p));
            for (low_bits, color) in [(0, Color::Red), (7, Color::Green)] {
                let found = share_of(&mut aqm, &at(8 * p + low_bits, color), 100);
                assert!((found - of(by_hand)).abs() < 0.004, "{p}: {found}, by hand {}", of(by_hand));
            }
        }
        assert!((share_of(&mut aqm, &at(0, Color::Green), 140) - of(0.05)).abs() < 0.003);
        assert_eq!(share_of(&mut aqm, &at(0, Color::Yellow), 399), 0.0);
    }

    #[test]
    fn profiles_have_limits_of_the_whole_queue() {
        let table = r#"{"limit": "100p", "profiles": [
            {"match": {"dscp": "AF13"}, "limit": "40p"}, {"match": {"dscp": "AF12"}, "limit": "60kB"},
            {"match": {"color": "red", "not": {"dscp": "EF"}}, "limit": "20p"}]}"#;
        let mut aqm = wred(table);
        let mut longest = |dscp, color| {
            (0..200).find(|&waiting| share_of(&mut aqm, &at(dscp, color), waiting) > 0.0).unwrap()
        };
        assert_eq!(longest(14, Color::Green), 40);
        assert_eq!(longest(12, Color::Green), 60);
        assert_eq!(longest(10, Color::Green), 100);
        assert_eq!(longest(10, Color::Red), 20);
        assert_eq!(longest(46, Color::Red), 100, "it is excepted");
        assert_eq!(longest(14, Color::Red), 40, "the first profile acts");
    }

    #[test]
    fn a_profile_has_an_ecn_mode_of_its_own() {
        let table = r#"{"limit": "100p", "weight": 1, "ecn": true, "profiles": [
            {"match": {"color": "green"}, "curve": "0/20/1", "ecn": "mark-only"}, {"curve": "0/20/1"}]}"#;
        let verdict = |color, ecn| {
            let mut queue = Occupancy::EMPTY;
            (0..50).for_each(|_| queue.add(Color::Yellow, 1000));
            let mut rng = Rng::stream(3, "wred");
            let cx = &mut Context { now: Instant::from_nanos(1), rng: &mut rng };
            wred(table).on_arrival(&Header { ecn, ..at(0, color) }, &queue, cx)
        };
        assert_eq!(verdict(Color::Green, crate::Ecn::Capable0), Verdict::Notify(Reason::Forced));
        assert_eq!(verdict(Color::Green, crate::Ecn::NotCapable), Verdict::Pass);
        assert_eq!(verdict(Color::Yellow, crate::Ecn::Capable0), Verdict::Drop(Reason::Forced));
    }

    #[test]
    fn points_are_judged_as_thresholds_are() {
        // Junos: steps of 10 and 40 % at 50 and 80; at 60 packets one in ten, spread: gaps from 1 to 9.
        let mut aqm =
            wred(r#"{"yellow": "segmented 50/0.1, 80/0.4", "limit": "100p", "weight": 1, "wait": false}"#);
        assert_eq!(share(&mut aqm, Color::Yellow, 49), 0.0);
        assert!((share(&mut aqm, Color::Yellow, 60) - of(0.1)).abs() < 0.005);
        assert!((share(&mut aqm, Color::Red, 79) - of(0.1)).abs() < 0.005);
        // After a drop 0.4 spreads to 0.4 / 0.6, then to 1: the mean gap is 2 / 3 + 2 / 3.
        assert!((share(&mut aqm, Color::Yellow, 99) - 0.75).abs() < 0.01);
        assert_eq!(share(&mut aqm, Color::Yellow, 100), 1.0);
    }

    #[test]
    fn without_scaling_packets_of_all_sizes_are_dropped_alike() {
        let share = |scaled: bool, size: u16| {
            let table = format!(
                r#"{{"yellow": "0B/100kB/0.5", "limit": "400kB", "weight": 1, "wait": false, "scale-by-size": {scaled}}}"#
            );
            let packet = Header { size, ..at(0, Color::Yellow) };
            share_of(&mut wred(&table), &packet, 50)
        };
        // p_b = 0.25: gaps of 1 to 3 with equal chance. Of a tenth of the mean size: 1/30, then 1/20, then 1.
        assert!((share(false, 100) - 0.5).abs() < 0.01 && (share(false, 1000) - 0.5).abs() < 0.01);
        assert!((share(true, 1000) - 0.5).abs() < 0.01 && (share(true, 100) - 0.347).abs() < 0.01);
    }

    #[test]
    fn at_the_head_the_packets_behind_count() {
        let table =
            r#"{"yellow": "10/20/1", "limit": "30p", "weight": 0.5, "wait": false, "drop-at": "head"}"#;
        let mut aqm = wred(table);
        let params: WredParams = serde_json::from_str(table).unwrap();
        assert!(!Wred::precomputable(&params));
        let mut rng = Rng::stream(3, "head");
        let queue = |packets: u32| {
            let mut queue = Occupancy::EMPTY;
            (0..packets).for_each(|_| queue.add(Color::Yellow, 1000));
            queue
        };
        let packet = at(0, Color::Yellow);
        let cx = &mut Context { now: Instant::from_nanos(1), rng: &mut rng };
        // On arrival only a full queue drops.
        assert_eq!(aqm.on_arrival(&packet, &queue(29), cx), Verdict::Pass);
        assert_eq!(aqm.on_arrival(&packet, &queue(30), cx), Verdict::Drop(Reason::Overflow));
        assert_eq!(aqm.queue.get(), 0.0);
        // At the head: 16, then 0.5 16 + 0.5 28 = 22, above max.
        assert_eq!((aqm.on_departure(&packet, &queue(16), cx), aqm.queue.get()), (Verdict::Pass, 8.0));
        assert_eq!(aqm.on_departure(&packet, &queue(36), cx), Verdict::Drop(Reason::Forced));
        assert_eq!(aqm.queue.get(), 22.0);
    }

    #[test]
    fn what_profiles_cannot_be() {
        let why = |profiles: &str, more: &str| {
            let table = format!(r#"{{"limit": "100p", "profiles": {profiles} {more}}}"#);
            let params: WredParams = serde_json::from_str(&table).unwrap();
            Wred::check(&params).unwrap_err().to_string()
        };
        let curve = r#""curve": "1/2/0.1""#;
        assert!(why(&format!("[{{{curve}}}, {{{curve}}}]"), "").contains("only the last profile"));
        assert!(why("[{}]", "").contains("it says nothing"));
        assert!(why(&format!(r#"[{{"match": {{}}, {curve}}}]"#), "").contains("no condition"));
        assert!(
            why(&format!(r#"[{{"match": {{"path": "gold"}}, {curve}}}]"#), "").contains("do not know paths")
        );
        assert!(why(r#"[{"match": {"dscp": 1}, "ecn": true}]"#, "").contains("give the profile a `curve`"));
        let twice =
            format!(r#"[{{"match": {{"precedence": 1}}, {curve}}}, {{"match": {{"precedence": 1}}}}]"#);
        assert!(why(&twice, "").contains("an earlier profile"));
        assert!(
            why(&format!("[{{{curve}}}]"), r#", "green": "1/2/0.1""#).contains("leave one of the two out")
        );
        let bytes = r#"[{"match": {"dscp": 1}, "curve": "1B/2B/0.1"}, {"curve": "1/2/0.1"}]"#;
        assert!(why(bytes, "").contains("not in the unit of `profiles[0].curve`"));
        assert!(why(r#"[{"curve": "segmented 1/0.1"}]"#, r#", "gentle": true"#).contains("`gentle` is for"));
        let idle = |table: &str| {
            let params: WredParams = serde_json::from_str(table).unwrap();
            let found = Wred::keys_without_effect(&params, &(40..=1500));
            found.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        let limits = r#"{"limit": "100p", "profiles": [{"limit": "100p"}], "ecn": true, "drop-at": "head"}"#;
        assert_eq!(idle(limits), ["profiles", "ecn", "drop-at"]);
        assert_eq!(
            idle(r#"{"limit": "100p", "yellow": "interpolate 10/0, 200/1", "scale-by-size": false}"#),
            ["yellow", "scale-by-size"]
        );
        assert!(idle(r#"{"limit": "100p", "profiles": [{"limit": "99p"}]}"#).is_empty());
    }
}
