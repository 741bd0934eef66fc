//! The parts of which the RED family is made: the average, its idle clock, and the count-spread test.
//!
//! Floyd & Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993, figure 2.
//!
//! ## Deviations
//! In figure 2 an arrival that is dropped at an empty queue leaves `q_time`, the start of the idle period, as
//! it was, so that the next arrival applies the same decay once more (so does ns-2's DiffServ module). Here
//! the idle period starts anew with the dropped arrival, and each stretch of idle time counts once
//! (`idle_time_decays_the_average_once`).

#![expect(clippy::inline_always, reason = "a simulator's loop over packets is made of these calls")]

use std::ops::RangeInclusive;

use super::{EcnMode, Severity};
use crate::units::{UnitError, require};
use crate::{
    Bitrate, Bytes, Depth, DropCurve, Duration, Header, Instant, KeysWithoutEffect, Rng, Thresholds, Unit,
    Weight,
};

/// An exponentially weighted moving average of a queue's length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ewma(f64);

impl Ewma {
    /// The average as it is now.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// avg <- (1 - w) avg + w q
    #[inline]
    pub fn update(&mut self, weight: Weight, queue: f64) {
        self.0 += weight.get() * (queue - self.0);
    }

    /// As if `packets` small packets had come to an empty queue: avg <- (1 - w)^m avg.
    #[cold]
    pub fn decay(&mut self, weight: Weight, packets: u64) {
        if packets > 0 && self.0 > 0.0 {
            self.0 *= power(1.0 - weight.get(), packets);
        }
    }
}

/// base^exponent by squaring: the same bits on every platform, unlike libm's pow.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// Counts the packets that could have been sent while the server was idle.
#[derive(Clone, Debug)]
pub struct IdleClock {
    since: Option<Instant>,
    packet_time: Duration,
}

impl IdleClock {
    /// A clock that counts packets of `mean_packet` at `rate`, idle from the start of the run.
    pub fn new(mean_packet: Bytes, rate: Bitrate) -> Self {
        let packet_time = rate.time_of(mean_packet).max(Duration::from_nanos(1));
        Self { since: Some(Instant::ZERO), packet_time }
    }

    /// The server has been idle since `since`.
    #[inline]
    pub fn begin(&mut self, since: Instant) {
        self.since.get_or_insert(since);
    }

    /// Goes on with the idle period of another clock.
    pub(super) fn take_over(&mut self, before: &Self) {
        self.since = before.since;
    }

    /// How many packets could have been sent since the server fell idle; 0 if it is busy.
    #[inline]
    pub fn missed(&self, now: Instant) -> u64 {
        self.since.map_or(0, |since| self.fit_into(now.since(since)))
    }

    #[cold]
    fn fit_into(&self, idle: Duration) -> u64 {
        idle.as_nanos() / self.packet_time.as_nanos()
    }

    /// A packet was accepted: the server is busy.
    pub fn end(&mut self) {
        self.since = None;
    }

    /// Records the verdict on an arrival: an accepted packet ends the idle period, a dropped one restarts it.
    #[inline]
    pub fn settle(&mut self, accepted: bool, now: Instant) {
        if accepted {
            self.end();
        } else if self.since.is_some() {
            self.since = Some(now);
        }
    }
}

/// Refuses a mean packet of no size.
pub(super) fn check_mean_packet(mean_packet: Bytes) -> Result<(), UnitError> {
    require(mean_packet.get() > 0, "mean-packet", "a packet must be above 0B, such as 1000B")
}

/// Refuses threshold sets that measure the queue in different units, and a mean packet of no size.
pub(super) fn check_red(mean_packet: Bytes, sets: &[(&str, Thresholds)]) -> Result<(), UnitError> {
    check_mean_packet(mean_packet)?;
    let Some(((first, set), others)) = sets.split_first() else { return Ok(()) };
    others.iter().try_for_each(|(key, other)| check_unit(key, other.unit(), first, set.unit()))
}

/// Refuses thresholds in another unit than the first ones.
pub(super) fn check_unit(key: &str, unit: Unit, first: &str, of_first: Unit) -> Result<(), UnitError> {
    let text = format!("not in the unit of `{first}`; write all threshold sets in packets, or all in bytes");
    require(unit == of_first, key, text)
}

/// Refuses thresholds at `key` in another unit than that in which a running queue has kept its average.
pub(super) fn keep_unit(key: &str, before: Unit, after: Unit) -> Result<(), UnitError> {
    let unit = if before == Unit::Packets { "packets" } else { "bytes" };
    let text = format!("the average is in {unit} since the run began; write thresholds in {unit}");
    require(before == after, key, text)
}

/// The sets, each with its key, that have a threshold which no average of this queue can reach, and why.
pub(super) fn out_of_reach(
    limit: Depth,
    sets: &[(&'static str, Thresholds)],
    sizes: &RangeInclusive<u64>,
) -> KeysWithoutEffect {
    sets.iter().filter_map(|&(key, set)| beyond(limit, key, &set.into(), sizes)).collect()
}

/// A curve with a part that no average of this queue can reach, with its key, and why.
///
/// An average of queue lengths is not above the longest of them: `limit`, which in the other unit is so many
/// times the size of a packet.
pub(super) fn beyond(
    limit: Depth,
    key: &'static str,
    curve: &DropCurve,
    sizes: &RangeInclusive<u64>,
) -> Option<(&'static str, String)> {
    let (most, holds) = longest(limit, curve.unit(), sizes);
    let most = most as f64;
    let ramp = matches!(curve, DropCurve::Ramp(_));
    let (name, means) = if curve.start()? >= most {
        (if ramp { "min" } else { "its first point" }, "these thresholds drop nothing")
    } else if curve.end() > most && ramp {
        ("max", "the drop probability never rises to that at max")
    } else if curve.end() > most {
        ("its last point", "the curve ends before that")
    } else {
        return None;
    };
    let remedy = "lower the thresholds, or raise `limit`";
    let text = format!(
        "`{curve}`: the queue holds at most {holds}, so its average never reaches {name}, and {means}; {remedy}"
    );
    Some((key, text))
}

/// The key without effect where averages are in this unit, and why.
pub(super) fn without_effect(knobs: &RedKnobs, unit: Unit) -> Option<(&'static str, String)> {
    (!knobs.scale_by_size && unit == Unit::Packets).then(|| {
        let text = "thresholds in packets are the same for packets of all sizes; leave this key out";
        ("scale-by-size", text.into())
    })
}

/// The longest queue that `limit` allows, in `unit`, and how it is written.
pub(super) fn longest(limit: Depth, unit: Unit, sizes: &RangeInclusive<u64>) -> (u64, String) {
    match (limit, unit) {
        (Depth::Packets(packets), Unit::Packets) => (packets, limit.to_string()),
        (Depth::Bytes(bytes), Unit::Bytes) => (bytes, limit.to_string()),
        (Depth::Packets(packets), Unit::Bytes) => {
            let (largest, most) = (sizes.end(), packets.saturating_mul(*sizes.end()));
            (most, format!("{} ({packets} packets of {largest}B)", Bytes::new(most)))
        }
        (Depth::Bytes(bytes), Unit::Packets) => {
            let (smallest, most) = (sizes.start(), bytes / sizes.start().max(&1));
            (most, format!("{most}p ({limit} in packets of {smallest}B)"))
        }
    }
}

/// Where an average lies on a drop curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Region {
    /// Below min.
    Below,
    /// Between min and max, with this initial probability (`p_b`).
    Between(f64),
    /// At or above max.
    Above,
}

/// What all tests of one queue share.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub struct RedKnobs {
    /// Spread drops evenly (method 2 of Floyd & Jacobson's section 7, uniform gaps between drops); otherwise
    /// each packet is dropped with `p_b`, whatever became of those before it (method 1, geometric gaps).
    pub spread: bool,
    /// Let at least `1/p_b` packets pass between two drops (ns-2's `wait_`).
    pub wait: bool,
    /// Between max and twice max, go on from max_p to 1 instead of dropping all.
    pub gentle: bool,
    /// Which packets are marked in place of being dropped.
    pub ecn: EcnMode,
    /// The packet size to which byte-mode probabilities and idle times are scaled.
    pub mean_packet: Bytes,
    /// In byte mode, drop a packet with a probability in proportion to its size.
    pub scale_by_size: bool,
}

/// The chance of one packet between min and max, where it differs from that of its test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    /// The probability at max, which may be above 1.
    pub max_p: f64,
    /// A factor of the final probability (`p_a`).
    pub times: f64,
    /// A bound of the final probability.
    pub most: f64,
}

impl Chance {
    /// Returns the chance with this probability at max, and otherwise the test's own.
    pub const fn with_max_p(max_p: f64) -> Self {
        Self { max_p, times: 1.0, most: 1.0 }
    }
}

/// One threshold set with its own count of packets since the last drop.
#[derive(Clone, Debug)]
pub struct EarlyTest {
    min: f64,
    max: f64,
    max_p: f64,
    /// A packet's size scales its probability.
    scales: bool,
    knobs: RedKnobs,
    /// Packets since the last drop, or -1 below min.
    count: i64,
}

impl EarlyTest {
    /// The test before its first packet.
    pub fn new(set: Thresholds, knobs: RedKnobs) -> Self {
        let ramp = Self::bare(set.unit(), knobs);
        Self { min: set.min(), max: set.max(), max_p: set.max_p(), ..ramp }
    }

    /// A test of averages in `unit` that knows no thresholds, for [`judge_in`](Self::judge_in).
    pub(super) fn bare(unit: Unit, knobs: RedKnobs) -> Self {
        let scales = unit == Unit::Bytes && knobs.scale_by_size;
        Self { min: f64::INFINITY, max: f64::INFINITY, max_p: 0.0, scales, knobs, count: -1 }
    }

    /// Goes on with the count of another test.
    pub(super) fn take_over(&mut self, before: &Self) {
        self.count = before.count;
    }

    /// Returns the threshold set's max_p.
    pub fn max_p(&self) -> f64 {
        self.max_p
    }

    /// Moves the thresholds, in the set's own unit; the count goes on.
    pub fn retune(&mut self, min: f64, max: f64) {
        (self.min, self.max) = (min, max);
    }

    /// Judges one packet against the `average`; `None` lets it pass.
    #[inline]
    pub fn judge(&mut self, average: f64, packet: &Header, rng: &mut Rng) -> Option<Severity> {
        self.judge_by(&Chance::with_max_p(self.max_p), average, packet, rng)
    }

    /// Judges one packet against the `average` by a chance of its own; `None` lets it pass.
    #[inline(always)]
    pub fn judge_by(
        &mut self,
        chance: &Chance,
        average: f64,
        packet: &Header,
        rng: &mut Rng,
    ) -> Option<Severity> {
        let Self { min, max, .. } = *self;
        let Chance { max_p, times, most } = *chance;
        let region = if average < min {
            Region::Below
        } else if average < max {
            Region::Between(max_p * (average - min) / (max - min))
        } else if self.knobs.gentle && average < 2.0 * max {
            Region::Between(max_p + (1.0 - max_p) * (average - max) / max)
        } else {
            Region::Above
        };
        self.judge_in(region, times, most, packet, rng)
    }

    /// Judges one packet whose average lies there on a curve, with `times` the final probability (`p_a`), but
    /// at most `most`.
    #[inline(always)]
    pub(super) fn judge_in(
        &mut self,
        region: Region,
        times: f64,
        most: f64,
        packet: &Header,
        rng: &mut Rng,
    ) -> Option<Severity> {
        let p_b = match region {
            Region::Below => {
                self.rest();
                return None;
            }
            Region::Between(p_b) => p_b,
            Region::Above => return self.force(packet),
        };
        self.count += 1;
        let mut p_a = if self.knobs.spread { spread(p_b, self.count as f64, self.knobs.wait) } else { p_b };
        if self.scales && p_a < 1.0 {
            p_a = (p_a * f64::from(packet.size) / self.knobs.mean_packet.get() as f64).min(1.0);
        }
        if rng.chance((times * p_a).min(most)) {
            self.count = 0;
            return self.by_chance(packet);
        }
        None
    }

    /// What becomes of a packet that chance has chosen.
    #[inline]
    pub fn by_chance(&self, packet: &Header) -> Option<Severity> {
        self.knobs.ecn.by_chance(packet)
    }

    /// What becomes of a packet at or above max.
    #[inline]
    pub fn force(&mut self, packet: &Header) -> Option<Severity> {
        self.count = 0;
        self.knobs.ecn.forced(packet)
    }

    /// A packet passes untested, as below min: the spacing starts anew with the next test.
    pub fn rest(&mut self) {
        self.count = -1;
    }

    /// Records that the packet was lost before this test: the spacing starts again.
    pub fn lost(&mut self) {
        self.count = 0;
    }
}

/// Spreads drops evenly: the gap between two is uniform on `1..1/p_b`, or with `wait` on `1/p_b..2/p_b`.
///
/// The paper's text says up to and including `1/p_b`; its figure 2 counts the packet before the test,
/// which ends one sooner.
#[inline]
fn spread(p_b: f64, count: f64, wait: bool) -> f64 {
    let x = count * p_b;
    if wait {
        if x < 1.0 {
            0.0
        } else if x < 2.0 {
            p_b / (2.0 - x)
        } else {
            1.0
        }
    } else if x < 1.0 {
        p_b / (1.0 - x)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowId;

    fn knobs(wait: bool, gentle: bool) -> RedKnobs {
        let (ecn, mean_packet) = (EcnMode::Off, Bytes::new(1000));
        RedKnobs { spread: true, wait, gentle, ecn, mean_packet, scale_by_size: true }
    }

    fn gaps(wait: bool, size: u16, set: &str) -> Vec<u32> {
        let mut test = EarlyTest::new(set.parse().unwrap(), knobs(wait, false));
        let mut rng = Rng::stream(11, "gaps");
        let packet = Header::new(FlowId(0), size);
        let mut gaps = Vec::new();
        let mut gap = 0;
        while gaps.len() < 20_000 {
            gap += 1;
            if test.judge(60.0, &packet, &mut rng).is_some() {
                gaps.push(gap);
                gap = 0;
            }
        }
        gaps
    }

    #[test]
    fn spread_by_hand() {
        // p_b = 0.1. Without wait: 0.1/(1 - 0.5) after five; with wait: nothing before ten, then 0.1/(2 -
        // 1.5).
        assert!((spread(0.1, 5.0, false) - 0.2).abs() < 1e-12);
        assert_eq!(spread(0.1, 10.0, false), 1.0);
        assert_eq!(spread(0.1, 9.0, true), 0.0);
        assert_eq!(spread(0.1, 10.0, true), 0.1);
        assert!((spread(0.1, 15.0, true) - 0.2).abs() < 1e-12);
        assert_eq!(spread(0.1, 20.0, true), 1.0);
    }

    #[test]
    fn gaps_are_uniform_as_floyd_and_jacobson_intend() {
        // max_p 0.1 over 30..90 at an average of 60: p_b = 0.05, 1/p_b = 20.
        let plain = gaps(false, 1000, "30/90/0.1");
        assert_eq!((*plain.iter().min().unwrap(), *plain.iter().max().unwrap()), (1, 19));
        let mean = |gaps: &[u32]| f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!((mean(&plain) - 10.0).abs() < 0.15, "{}", mean(&plain));
        let waiting = gaps(true, 1000, "30/90/0.1");
        assert_eq!((*waiting.iter().min().unwrap(), *waiting.iter().max().unwrap()), (20, 39));
        assert!((mean(&waiting) - 29.5).abs() < 0.3, "{}", mean(&waiting));
    }

    #[test]
    fn without_spreading_each_packet_is_dropped_with_the_initial_probability() {
        // As above, p_b = 0.05: gaps are geometric, of mean 20 and variance (1 - p_b) / p_b^2 = 380, and know
        // no longest.
        let mut test =
            EarlyTest::new("30/90/0.1".parse().unwrap(), RedKnobs { spread: false, ..knobs(false, false) });
        let (packet, mut rng) = (Header::new(FlowId(0), 1000), Rng::stream(11, "geometric"));
        let dropped: Vec<u32> =
            (0..400_000).filter(|_| test.judge(60.0, &packet, &mut rng).is_some()).collect();
        let gaps: Vec<f64> = dropped.windows(2).map(|pair| f64::from(pair[1] - pair[0])).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 20.0).abs() < 0.5 && (variance - 380.0).abs() < 25.0, "{mean} {variance}");
        assert!(gaps.iter().any(|gap| *gap > 60.0));
    }

    #[test]
    fn times_multiplies_the_final_probability() {
        // The share of first packets after a drop that are dropped. p_b = 0.05 and count 1: p_a = 0.05/0.95 =
        // 0.0526; nine times that is 0.474. Nine times p_b before it is spread is 0.45, and 0.45/0.55 = 0.818
        // after.
        let share = |times: f64, max_p: f64, most: f64| {
            let mut rng = Rng::stream(11, "times");
            let dropped = (0..40_000).filter(|_| {
                let mut test = EarlyTest::new("30/90/0.1".parse().unwrap(), knobs(false, false));
                test.lost();
                let packet = Header::new(FlowId(0), 1000);
                test.judge_by(&Chance { max_p, times, most }, 60.0, &packet, &mut rng).is_some()
            });
            dropped.count() as f64 / 40_000.0
        };
        for (times, max_p, most, by_hand) in
            [(9.0, 0.1, 1.0, 0.474), (1.0, 0.9, 1.0, 0.818), (9.0, 0.1, 0.3, 0.3), (100.0, 0.1, 1.0, 1.0)]
        {
            let found = share(times, max_p, most);
            assert!((found - by_hand).abs() < 0.01, "{times} {max_p} {most}: {found}, by hand {by_hand}");
        }
    }

    #[test]
    fn byte_mode_drops_small_packets_less() {
        let mean = |gaps: &[u32]| f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        let full = mean(&gaps(false, 1000, "30B/90B/0.1"));
        let small = mean(&gaps(false, 100, "30B/90B/0.1"));
        assert!(small > 1.5 * full, "{small} against {full}");
    }

    /// The share of packets of this size that a test drops by chance; each is the first above min after one
    /// below.
    fn first(set: &str, gentle: bool, average: f64, size: u16) -> f64 {
        let mut rng = Rng::stream(7, "first");
        let dropped = (0..20_000).filter(|_| {
            let mut test = EarlyTest::new(set.parse().unwrap(), knobs(false, gentle));
            let packet = Header::new(FlowId(0), size);
            assert_eq!(test.judge(29.9, &packet, &mut rng), None);
            test.judge(average, &packet, &mut rng) == Some(Severity::Early)
        });
        dropped.count() as f64 / 20_000.0
    }

    #[test]
    fn probabilities_by_hand() {
        // A mean packet has 1000 bytes. Half-way from 30 to 90, and a fifth, with max_p 1.
        for (set, average, size, by_hand) in [
            ("30/90/1", 60.0, 1000, 0.5),
            ("30/90/1", 42.0, 1000, 0.2),
            ("30/90/1", 60.0, 100, 0.5),
            ("30B/90B/1", 60.0, 100, 0.05),
            ("30B/90B/1", 60.0, 1500, 0.75),
            ("30B/90B/1", 60.0, 2000, 1.0),
            ("30B/90B/1", 60.0, 9000, 1.0),
        ] {
            let found = first(set, false, average, size);
            assert!((found - by_hand).abs() < 0.01, "{set} {average} {size}: {found}, by hand {by_hand}");
        }
        // Gentle: from max_p 0.1 at 90 to 1 at 180.
        for (average, by_hand) in [(90.0, 0.1), (99.0, 0.19), (135.0, 0.55), (171.0, 0.91), (180.0, 0.0)] {
            let found = first("30/90/0.1", true, average, 1000);
            assert!((found - by_hand).abs() < 0.01, "{average}: {found}, by hand {by_hand}");
        }
    }

    #[test]
    fn at_max_a_drop_is_forced_and_at_min_the_count_goes_on() {
        let packet = Header::new(FlowId(0), 1000);
        let mut rng = Rng::stream(7, "edges");
        let mut test = EarlyTest::new("30/90/0.1".parse().unwrap(), knobs(false, false));
        assert_eq!(test.judge(90.0, &packet, &mut rng), Some(Severity::Forced));
        let mut gentle = EarlyTest::new("30/90/0.1".parse().unwrap(), knobs(false, true));
        assert_eq!(gentle.judge(180.0, &packet, &mut rng), Some(Severity::Forced));
        // p_b = 0 at min, but these 19 packets are counted since the forced drop: p_b 0.05 then makes 20 0.05
        // = 1.
        for _ in 0..50 {
            assert_eq!(test.judge(90.0, &packet, &mut rng), Some(Severity::Forced));
            (0..19).for_each(|_| assert_eq!(test.judge(30.0, &packet, &mut rng), None));
            assert_eq!(test.judge(60.0, &packet, &mut rng), Some(Severity::Early));
        }
    }

    #[test]
    fn a_small_packet_that_is_due_to_be_dropped_is_dropped() {
        // One packet after a drop p_b = 0.5 is spread to 0.5/0.5 = 1, which is not scaled by a packet's size.
        let mut rng = Rng::stream(7, "due");
        for _ in 0..200 {
            let mut test = EarlyTest::new("30B/90B/1".parse().unwrap(), knobs(false, false));
            test.lost();
            let small = Header::new(FlowId(0), 10);
            assert_eq!(test.judge(60.0, &small, &mut rng), Some(Severity::Early));
        }
    }

    #[test]
    fn gentle_goes_on_above_max() {
        let packet = Header::new(FlowId(0), 1000);
        let mut rng = Rng::stream(3, "gentle");
        let mut share = |gentle: bool, average: f64| {
            let mut test = EarlyTest::new("30/90/0.1".parse().unwrap(), knobs(false, gentle));
            (0..1000).filter(|_| test.judge(average, &packet, &mut rng).is_some()).count()
        };
        assert_eq!(share(false, 90.0), 1000);
        let between = share(true, 91.0);
        assert!((150..400).contains(&between), "{between}");
        assert_eq!(share(true, 180.0), 1000);
    }

    #[test]
    fn idle_time_decays_the_average_once() {
        let weight = Weight::new(0.5).unwrap();
        let mut clock = IdleClock::new(Bytes::new(1000), Bitrate::from_bps(8_000_000).unwrap());
        clock.settle(true, Instant::ZERO);
        assert_eq!(clock.missed(Instant::from_nanos(5_000_000)), 0, "a busy server misses nothing");
        clock.begin(Instant::from_nanos(5_000_000));
        assert_eq!(clock.missed(Instant::from_nanos(8_500_000)), 3);
        clock.settle(false, Instant::from_nanos(8_500_000));
        clock.begin(Instant::from_nanos(5_000_000));
        assert_eq!(
            clock.missed(Instant::from_nanos(9_500_000)),
            1,
            "a dropped arrival starts the count anew"
        );
        let mut average = Ewma::default();
        average.update(weight, 16.0);
        assert_eq!(average.get(), 8.0);
        average.decay(weight, 3);
        assert_eq!(average.get(), 1.0);
    }
}
