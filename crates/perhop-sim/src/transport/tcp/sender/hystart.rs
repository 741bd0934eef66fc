//! `HyStart` of Linux's CUBIC (`hystart_update` in `tcp_cubic.c`), after Ha & Rhee, Taming the elephants: new
//! TCP slow start, 2011.
//!
//! ## Deviations
//! - It acts in the first slow start; Linux's also in one after a timeout.
//! - The allowance for bunches of segments is 1 ms; Linux's is less where the pacing rate is above 2.1
//!   Gbit/s.

use perhop_core::{Duration, Instant};

/// Below this window it does nothing (`hystart_low_window`).
const LOW_WINDOW: f64 = 16.0;
/// ACKs that come no further apart are a train (`hystart_ack_delta_us`).
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// What a train may take beyond the least round trip (`hystart_ack_delay`).
const ALLOWANCE: Duration = Duration::from_millis(1);
/// So many samples of a round come before its least round trip is judged (`HYSTART_MIN_SAMPLES`).
const SAMPLES: u32 = 8;

/// `MIN_RTT_THRESH`, `MAX_RTT_THRESH`, `MIN_RTT_DIVISOR` (RFC 9406, section 4.3).
const LEAST_GROWTH: Duration = Duration::from_millis(4);
const MOST_GROWTH: Duration = Duration::from_millis(16);
const GROWTH_DIVISOR: u64 = 8;

/// The state of the first slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct LinuxHyStart {
    is_paced: bool,
    /// `delay_min`: the least round trip of the connection.
    least: Option<Duration>,
    /// `end_seq`: a round ends when more than this is acknowledged; `round_start`, `last_ack`.
    ends: u32,
    began: Instant,
    last_ack: Instant,
    /// `curr_rtt`, `sample_cnt`: the least round trip of this round, and its samples up to [`SAMPLES`].
    current: Option<Duration>,
    samples: u32,
}

/// Returns how much a round trip may grow before slow start ends (`RttThresh`, also of `HyStart`++): an
/// eighth, but no less and no more than the bounds.
pub(super) fn growth_allowed(last: Duration) -> Duration {
    Duration::from_nanos(last.as_nanos() / GROWTH_DIVISOR).clamp(LEAST_GROWTH, MOST_GROWTH)
}

impl LinuxHyStart {
    pub(super) fn new(is_paced: bool) -> Self {
        Self { is_paced, ..Self::default() }
    }

    /// Takes an ACK with this round trip while this window was in force; `acked` is the first segment that is
    /// missing, `sent` the first not sent. Returns whether slow start is over.
    pub(super) fn is_over(
        &mut self,
        rtt: Duration,
        window: f64,
        (acked, sent): (u32, u32),
        now: Instant,
    ) -> bool {
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if acked > self.ends {
            (self.ends, self.began, self.last_ack) = (sent, now, now);
            (self.current, self.samples) = (None, 0);
        }
        if window < LOW_WINDOW {
            return false;
        }
        let is_long = self.is_long_train(least, now);
        self.has_grown(rtt, least) || is_long
    }

    /// Returns whether ACKs in a row have come for half of the least round trip; for all of it if segments
    /// are paced, which spreads them by half.
    fn is_long_train(&mut self, least: Duration, now: Instant) -> bool {
        if now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = now;
        let most = (least + ALLOWANCE).as_nanos() >> u32::from(!self.is_paced);
        now.since(self.began).as_nanos() > most
    }

    /// Returns whether the least round trip of this round is above the least of the connection.
    fn has_grown(&mut self, rtt: Duration, least: Duration) -> bool {
        let current = self.current.map_or(rtt, |current| current.min(rtt));
        self.current = Some(current);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        current > least + growth_allowed(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// A connection whose first ten segments were acknowledged at 200 ms, so that 20 more are sent.
    fn begun() -> LinuxHyStart {
        let mut hystart = LinuxHyStart::new(false);
        for pair in 1..=5 {
            let (acked, window) = (2 * pair, f64::from(10 + 2 * (pair - 1)));
            assert!(!hystart.is_over(Duration::from_millis(200), window, (acked, 6 + 2 * acked), at(200)));
        }
        hystart
    }

    #[test]
    fn the_ninth_of_the_longer_round_trips_ends_slow_start() {
        // Linux's packetdrill test: a window of 20, ACKs of 2 segments a millisecond from 240 ms after that
        // on. At the ninth, when the window is 36, 240 > 200 + 16.
        let mut hystart = begun();
        let mut ended = Vec::new();
        for number in 0..12_u32 {
            let acked = 12 + 2 * number;
            let (window, now) = (f64::from(20 + 2 * number), at(440 + u64::from(number)));
            if hystart.is_over(Duration::from_millis(240), window, (acked, acked + 18 + 2 * number), now) {
                ended.push(window);
            }
        }
        assert_eq!(ended[0], 36.0);
    }

    #[test]
    fn a_least_round_trip_that_comes_late_in_the_round_does_not_end_it() {
        let mut hystart = begun();
        for number in 0..19_u32 {
            let rtt = Duration::from_millis(u64::from(200 - 9 * number));
            // 3 ms apart: no train.
            let now = at(400 + 3 * u64::from(number));
            assert!(!hystart.is_over(rtt, f64::from(20 + number), (12 + number, 60), now));
        }
    }

    #[test]
    fn acks_in_a_row_for_half_of_the_round_trip_end_slow_start() {
        for (is_paced, gap, end) in [(false, 2, Some(102)), (true, 2, Some(202)), (false, 3, None)] {
            let mut hystart = LinuxHyStart { is_paced, ..begun() };
            hystart.is_over(Duration::from_millis(200), 20.0, (31, 80), at(400));
            let ended = (1..120)
                .map(|number| number * gap)
                .find(|&after| hystart.is_over(Duration::from_millis(200), 30.0, (40, 80), at(400 + after)));
            assert_eq!(ended, end, "half of 201 ms, or all of it");
        }
    }

    #[test]
    fn nothing_ends_below_a_window_of_16() {
        let mut hystart = begun();
        let mut over = |window| {
            (0..20)
                .map(|number| hystart.is_over(Duration::from_millis(300), window, (12, 60), at(500 + number)))
                .last()
        };
        assert_eq!((over(15.9), over(16.0)), (Some(false), Some(true)));
    }
}
