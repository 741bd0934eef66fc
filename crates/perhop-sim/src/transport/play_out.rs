//! The play-out buffer of a receiver of datagrams, and how many packets in a row it does not play.
//!
//! A buffer of a fixed length holds the first packet that arrives for this time, and plays every other as
//! long after it was sent. Without one, the buffer is as long as 99 % of the packets need, which is known at
//! the end: packets are played as long after they were sent as the longest took in the bin of delays (3.1 %
//! wide) in which the 99th percentile lies, the least delay that at least 99 % do not exceed. So a constant
//! delay loses nothing, nor do fewer than 100 packets.
//!
//! Packets that are lost or late in a row are a burst, in the order in which they were sent. Which packets
//! are late depends on the buffer; so bursts are counted for each buffer that it may become. Between a packet
//! and the next one, a burst begins in each buffer that is long enough for the first and too short for the
//! second: two additions to a table of differences.

use perhop_core::Duration;
use perhop_core::measure::delay_bin;

/// How many packets may change their order: one overtaken by more stays lost in the count of bursts.
const WINDOW: u32 = 64;

/// A packet's place: the number of its bin and 1. Nothing came before [`START`]; [`LOST`] is later than all.
type Level = u16;
const START: Level = 0;
const LOST: Level = Level::MAX;
/// The level of the packets that a fixed buffer plays.
const IN_TIME: Level = 1;

/// Returns what became of the packets; `None` for a buffer as long as they need if none came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Played {
    /// The buffer has the length that its flow asks for.
    pub is_fixed: bool,
    /// From the sending of a packet to its play-out in seconds; `None` before the first packet.
    pub delay_s: Option<f64>,
    /// Packets that came too late.
    pub late: u64,
    /// Packets that had not come when one behind them had.
    pub lost: u64,
    /// How often packets in a row were lost or late, up to the last that came.
    pub bursts: u64,
    /// The last packet that came was late.
    pub ends_late: bool,
}

impl Played {
    /// Returns the mean number of packets in a row that were lost or late, if so many were lost in all: those
    /// that no packet followed are a burst, too. `None` if none was.
    pub fn mean_burst(&self, lost: u64) -> Option<f64> {
        let bursts = self.bursts + u64::from(lost > self.lost && !self.ends_late);
        (bursts > 0).then(|| (lost.max(self.lost) + self.late) as f64 / bursts as f64)
    }
}

/// A play-out buffer.
#[derive(Clone, Debug)]
pub(super) struct PlayOut {
    /// The length of a fixed buffer and, from the first packet on, the time from sending to play-out.
    fixed: Option<(Duration, Option<Duration>)>,
    levels: Levels,
    /// The number behind the last packet in the order of sending, and the first that counts.
    next: u32,
    first: Option<u32>,
    recent: [Level; WINDOW as usize],
    lost: u64,
}

/// Packets by level, without those that are lost.
#[derive(Clone, Debug, Default)]
struct Levels {
    /// Bursts that begin at [`START`].
    starts: i64,
    /// The level of the first.
    lowest: Level,
    all: Vec<OfLevel>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfLevel {
    packets: u32,
    /// Buffers from this level on have so many more bursts than those below.
    bursts: i32,
    longest: Duration,
}

impl PlayOut {
    /// Makes a buffer of this length, or one as long as 99 % of the packets need.
    pub(super) fn new(fixed: Option<Duration>) -> Self {
        Self {
            fixed: fixed.map(|buffer| (buffer, None)),
            levels: Levels::default(),
            next: 0,
            first: None,
            recent: [LOST; WINDOW as usize],
            lost: 0,
        }
    }

    /// Notes a packet of this number that comes after so long; it `counts` within the measured time.
    pub(super) fn record(&mut self, number: u32, transit: Duration, counts: bool) {
        let level = match &mut self.fixed {
            None => delay_bin(transit) as Level + 1,
            Some((buffer, deadline)) => {
                IN_TIME + Level::from(transit > *deadline.get_or_insert(transit + *buffer))
            }
        };
        if !counts {
            self.next = self.next.max(number.saturating_add(1));
            return;
        }
        self.levels.count(level, transit);
        let first = *self.first.get_or_insert(self.next);
        if number >= self.next {
            self.follow(number, level, first);
        } else if number >= first && self.next - number < WINDOW {
            self.fill(number, level, first);
        }
    }

    /// Notes a packet behind all others: the ones between are lost, as far as is known.
    fn follow(&mut self, number: u32, level: Level, first: u32) {
        let mut before = if self.next > first { self.recent[slot(self.next - 1)] } else { START };
        if number > self.next {
            self.levels.follow(before, LOST, 1);
            before = LOST;
            self.lost += u64::from(number - self.next);
            (self.next.max(number.saturating_sub(WINDOW))..number)
                .for_each(|number| self.recent[slot(number)] = LOST);
        }
        self.levels.follow(before, level, 1);
        self.recent[slot(number)] = level;
        self.next = number.saturating_add(1);
    }

    /// Notes a packet that has been overtaken: it is not lost.
    fn fill(&mut self, number: u32, level: Level, first: u32) {
        if self.recent[slot(number)] != LOST {
            return;
        }
        let before = if number > first { self.recent[slot(number - 1)] } else { START };
        self.levels.follow(before, LOST, -1);
        self.levels.follow(before, level, 1);
        self.levels.follow(level, self.recent[slot(number + 1)], 1);
        self.recent[slot(number)] = level;
        self.lost -= 1;
    }

    /// Returns what became of the packets; `None` of a buffer as long as they need if none came.
    pub(super) fn played(&self) -> Option<Played> {
        let all: u64 = self.levels.all.iter().map(|level| u64::from(level.packets)).sum();
        let (highest, delay) = if let Some((_, deadline)) = self.fixed {
            (IN_TIME, deadline)
        } else {
            let (level, longest) = self.levels.reach((99 * all).div_ceil(100))?;
            (level, Some(longest))
        };
        let (mut played, mut bursts) = (0, self.levels.starts);
        for (_, level) in (self.levels.lowest..=highest).zip(&self.levels.all) {
            played += u64::from(level.packets);
            bursts += i64::from(level.bursts);
        }
        Some(Played {
            is_fixed: self.fixed.is_some(),
            delay_s: delay.map(Duration::as_secs_f64),
            late: all - played,
            lost: self.lost,
            bursts: bursts.cast_unsigned(),
            ends_late: self.first.is_some() && self.recent[slot(self.next - 1)] > highest,
        })
    }
}

fn slot(number: u32) -> usize {
    (number % WINDOW) as usize
}

impl Levels {
    fn count(&mut self, level: Level, transit: Duration) {
        let of = self.at(level);
        of.packets = of.packets.saturating_add(1);
        of.longest = of.longest.max(transit);
    }

    /// Counts how often a packet of one level comes behind one of another: so many times more than before.
    fn follow(&mut self, before: Level, level: Level, times: i32) {
        if before >= level {
            return;
        }
        if before == START {
            self.starts += i64::from(times);
        } else {
            self.at(before).bursts += times;
        }
        if level != LOST {
            self.at(level).bursts -= times;
        }
    }

    #[inline]
    fn at(&mut self, level: Level) -> &mut OfLevel {
        // One before the lowest is far behind the last.
        let place = usize::from(level.wrapping_sub(self.lowest));
        if place < self.all.len() { &mut self.all[place] } else { self.extended(level) }
    }

    /// Returns the counts of a level that has no place yet.
    #[cold]
    fn extended(&mut self, level: Level) -> &mut OfLevel {
        if self.all.is_empty() {
            self.lowest = level;
        }
        if level < self.lowest {
            let missing = usize::from(self.lowest - level);
            self.all.splice(..0, std::iter::repeat_n(OfLevel::default(), missing));
            self.lowest = level;
        }
        let place = usize::from(level - self.lowest);
        if place >= self.all.len() {
            // A network has many flows: none takes much more than it needs.
            self.all.reserve_exact((place + 1 - self.all.len()).next_multiple_of(8));
            self.all.resize(place + 1, OfLevel::default());
        }
        &mut self.all[place]
    }

    /// Returns the level by which so many packets have come, and the longest delay in it; `None` without any.
    fn reach(&self, packets: u64) -> Option<(Level, Duration)> {
        let mut below = 0;
        (self.lowest..).zip(&self.all).find_map(|(number, level)| {
            below += u64::from(level.packets);
            (level.packets > 0 && below >= packets).then_some((number, level.longest))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of_micros(micros: u64) -> Duration {
        Duration::from_nanos(1000 * micros)
    }

    fn played(fixed: Option<u64>, packets: &[(u32, u64)]) -> Played {
        let mut buffer = PlayOut::new(fixed.map(Duration::from_millis));
        for &(number, micros) in packets {
            buffer.record(number, of_micros(micros), true);
        }
        buffer.played().unwrap()
    }

    #[test]
    fn a_constant_delay_loses_nothing() {
        for packets in [1, 50, 99, 100, 5000] {
            let packets: Vec<_> = (0..packets).map(|number| (number, 20_030)).collect();
            let perfect = Played {
                is_fixed: false,
                delay_s: Some(0.020_03),
                late: 0,
                lost: 0,
                bursts: 0,
                ends_late: false,
            };
            assert_eq!(played(None, &packets), perfect);
            let fixed = Played { is_fixed: true, delay_s: Some(0.080_03), ..perfect };
            assert_eq!(played(Some(60), &packets), fixed);
        }
    }

    #[test]
    fn the_buffer_is_as_long_as_99_percent_need() {
        // 99 of 100 is the rank of the 99th percentile: the one beyond is late. Of 99 packets, all are
        // played.
        let of = |all: u32| {
            let delay = |number| if number == 7 { 80_000 } else { 20_000 };
            let found = played(None, &(0..all).map(|number| (number, delay(number))).collect::<Vec<_>>());
            (found.delay_s, found.late, found.mean_burst(0))
        };
        assert_eq!(of(99), (Some(0.08), 0, None));
        assert_eq!(of(100), (Some(0.02), 1, Some(1.0)));
    }

    #[test]
    fn late_packets_count_in_the_order_in_which_they_were_sent() {
        // 1 and 2 are lost, 3 is late: a burst of three. 5 is late and 6 lost, 8 lost: bursts of two and one.
        let packets = [(0, 20_000), (3, 90_000), (4, 20_000), (5, 60_000), (7, 20_000), (9, 20_000)];
        let found = played(Some(30), &packets);
        assert_eq!((found.late, found.delay_s, found.mean_burst(4)), (2, Some(0.05), Some(2.0)));
        assert_eq!(found.mean_burst(8), Some(2.5), "four more are lost behind the last that came");
        // 2 is overtaken by 3 and comes in time: bursts of one, one, two and one.
        let packets =
            [(0, 20_000), (3, 90_000), (2, 40_000), (4, 20_000), (5, 60_000), (7, 20_000), (9, 20_000)];
        assert_eq!(played(Some(30), &packets).mean_burst(3), Some(1.25));
        let found = played(Some(30), &[(0, 20_000), (1, 90_000)]);
        assert_eq!((found.mean_burst(0), found.mean_burst(3)), (Some(1.0), Some(4.0)), "the burst goes on");
    }

    #[test]
    fn only_what_comes_within_the_time_measured_counts() {
        let mut buffer = PlayOut::new(None);
        assert_eq!(buffer.played(), None);
        buffer.record(0, Duration::from_millis(500), false);
        buffer.record(5, Duration::from_millis(20), false);
        for number in [6, 8, 9] {
            buffer.record(number, Duration::from_millis(20), true);
        }
        buffer.record(20, Duration::from_millis(20), false);
        let found = buffer.played().unwrap();
        assert_eq!((found.late, found.mean_burst(1)), (0, Some(1.0)), "7 is lost");
    }

    proptest! {
        /// Late packets and bursts are the same as by a list of all packets, for any buffer and in any order
        /// of arrival.
        #[test]
        fn bursts_are_those_of_the_list(
            sent in prop::collection::vec((any::<prop::sample::Index>(), prop::option::weighted(0.8, 10_000_u64..100_000)), 1..300),
            fixed in prop::option::of(1_u64..60),
        ) {
            let list: Vec<Option<u64>> = sent.iter().map(|&(_, delay)| delay).collect();
            // Neighbours change places now and then.
            let mut order: Vec<usize> = (0..list.len()).collect();
            for (place, (index, _)) in sent.iter().enumerate() {
                if index.index(4) == 0 && place + 3 < order.len() {
                    order.swap(place, place + 3);
                }
            }
            let packets: Vec<(u32, u64)> =
                order.iter().filter_map(|&number| Some((number as u32, list[number]?))).collect();
            prop_assume!(!packets.is_empty());
            let found = played(fixed, &packets);
            let bins: Vec<usize> = packets.iter().map(|&(_, micros)| delay_bin(of_micros(micros))).collect();
            let deadline = fixed.map(|buffer| packets[0].1 + buffer * 1000);
            let mut sorted = bins.clone();
            sorted.sort_unstable();
            let rank = sorted[(99 * sorted.len()).div_ceil(100) - 1];
            let is_late = |micros: u64| {
                deadline.map_or_else(|| delay_bin(of_micros(micros)) > rank, |deadline| micros > deadline)
            };
            // Packets behind the last that came are not known to be lost.
            let last = packets.iter().map(|&(number, _)| number as usize).max().unwrap_or(0);
            let gone: Vec<bool> = list[..=last].iter().map(|delay| delay.is_none_or(is_late)).collect();
            let bursts = (0..gone.len()).filter(|&n| gone[n] && (n == 0 || !gone[n - 1])).count();
            let all = gone.iter().filter(|&&gone| gone).count();
            prop_assert_eq!(found.late as usize, packets.iter().filter(|&&(_, micros)| is_late(micros)).count());
            prop_assert_eq!(found.mean_burst(found.lost), (bursts > 0).then(|| all as f64 / bursts as f64));
        }
    }
}
