//! CUBIC in whole segments and integers: Linux's `bictcp_update` (`tcp_cubic.c`, 6.18).
//!
//! It finds after how many acknowledged segments the window grows by one, from a target and a Reno-friendly
//! window that are whole numbers of segments. Windows of a few segments grow faster by it than by RFC 9438.
//!
//! ## Deviations from Linux
//! - The least round trip is the least of the smoothed ones, not of all.
//! - Times are exact, not in ticks of the kernel's clock. K is the integer part of the cube root; Linux's is
//!   up to 0.2 % off.
//! - `alpha = "raised"`, which Linux does not have, raises the Reno-friendly window by a segment for each
//!   window that is acknowledged once it has reached the window before the last reduction.

use perhop_core::{Duration, Instant};

/// C in segments per cubic second and 1024 (`bic_scale * 10`): 0.4004.
const STEEPNESS: u64 = 410;
/// `beta`: the part of the window that a loss leaves, in units of 1/[`SCALE`]: 0.7002.
const BETA: u64 = 717;
/// The whole of what a loss leaves (`BICTCP_BETA_SCALE`).
const SCALE: u64 = 1024;
/// The Reno-friendly window grows by a segment for so many eighths of a window that are acknowledged
/// (`beta_scale`): 8 (1 + 0.7) / 3 (1 - 0.7), rounded down.
const EIGHTHS: u64 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// With `alpha = "raised"` the Reno-friendly window grows, as Reno does, by a segment for a whole window.
const EIGHTHS_RAISED: u64 = 8;
/// The most acknowledged segments for each segment of growth before the first loss and after a timeout: 5 %
/// in a round trip.
const MOST_UNKNOWN: u64 = 20;
/// The window grows by a segment for so many at most: by half in a round trip.
const LEAST: u64 = 2;
/// Above the target: by a segment in so many round trips.
const ROUNDS_ABOVE: u64 = 100;
/// While the window stays the same, the number of segments is found anew after this time (`HZ / 32`).
const AGAIN: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// The time after the beginning of congestion avoidance in which no round trip counts: the queue of before
/// the loss is in it.
const SETTLED: Duration = Duration::from_secs(1);

/// The state (`struct bictcp`). Windows in segments, times in 1/1024 s unless they have a type.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    /// The window before the last loss, or less by fast convergence (`last_max_cwnd`). Zero before the first,
    /// and after a timeout.
    plateau: u64,
    /// The time when this congestion avoidance began (`epoch_start`).
    pub(super) epoch: Option<Instant>,
    /// The window around which the function is symmetric (`bic_origin_point`), and K, when it gets there
    /// (`bic_K`).
    origin: u64,
    reach: u64,
    /// The window that Reno would have (`tcp_cwnd`), and segments acknowledged since it grew (`ack_cnt`).
    reno: u64,
    acked: u64,
    /// The window before the last reduction, from which on the Reno-friendly window may grow faster.
    prior: Option<u64>,
    raises_alpha: bool,
    /// The least round trip (`delay_min`).
    least_rtt: Option<Duration>,
    /// The window grows by one for so many acknowledged segments (`cnt`). Found with this window, at this
    /// time (`last_cwnd`, `last_time`).
    per_segment: u64,
    found: Option<(u64, Instant)>,
}

impl Segments {
    pub(super) fn new(raises_alpha: bool) -> Self {
        Self { raises_alpha, ..Self::default() }
    }

    /// The smoothed round trip is so many seconds; 0 before the first is known.
    pub(super) fn note_round_trip(&mut self, rtt: f64, now: Instant) {
        let span = Duration::from_nanos((rtt * 1e9) as u64);
        // In this order, since a smaller one is rare: a branch that the processor foresees.
        let is_settled = || self.epoch.is_none_or(|epoch| now.since(epoch) >= SETTLED);
        if rtt > 0.0 && self.least_rtt.is_none_or(|least| span < least) && is_settled() {
            self.least_rtt = Some(span);
        }
    }

    /// For how many acknowledged segments this window grows by one, now that `acked` more were acknowledged
    /// in congestion avoidance (`bictcp_update`).
    pub(super) fn per_segment(&mut self, window: u64, acked: u64, now: Instant) -> u64 {
        self.acked += acked;
        let is_known = self.found.is_some_and(|(with, at)| with == window && now.since(at) <= AGAIN);
        if !is_known {
            self.found = Some((window, now));
            let epoch = self.epoch.unwrap_or_else(|| self.begin(window, acked, now));
            let target = self.at(units(now.since(epoch) + self.least_rtt.unwrap_or(Duration::ZERO)));
            let by_curve = if target > window { window / (target - window) } else { ROUNDS_ABOVE * window };
            let most = if self.plateau == 0 { MOST_UNKNOWN } else { u64::MAX };
            self.per_segment = by_curve.min(most).min(self.by_reno(window)).max(LEAST);
        }
        self.per_segment
    }

    /// The threshold after a loss or a mark with this window, of which so much is left.
    pub(super) fn decrease(&mut self, window: u64, left: f64) -> u64 {
        self.epoch = None;
        self.prior = Some(window);
        self.plateau = if window < self.plateau { window * (SCALE + BETA) / (2 * SCALE) } else { window };
        window * (left * SCALE as f64).ceil() as u64 / SCALE
    }

    /// A timeout leaves nothing of what was known.
    pub(super) fn on_timeout(&mut self) {
        *self = Self { prior: self.prior, ..Self::new(self.raises_alpha) };
    }

    fn begin(&mut self, window: u64, acked: u64, now: Instant) -> Instant {
        self.epoch = Some(now);
        self.acked = acked;
        self.reno = window;
        self.origin = self.plateau.max(window);
        self.reach = cube_root((1 << 40) / STEEPNESS * (self.origin - window));
        now
    }

    /// The function; 0 where it would be less.
    fn at(&self, time: u64) -> u64 {
        let away = u128::from(time.abs_diff(self.reach));
        let beyond = (u128::from(STEEPNESS) * away * away * away) >> 40;
        let beyond = u64::try_from(beyond).unwrap_or(u64::MAX);
        if time < self.reach {
            self.origin.saturating_sub(beyond)
        } else {
            self.origin.saturating_add(beyond)
        }
    }

    /// For how many acknowledged segments it grows by one if the Reno-friendly window is larger: in a round
    /// trip it is as large.
    fn by_reno(&mut self, window: u64) -> u64 {
        loop {
            let is_raised = self.raises_alpha && self.prior.is_some_and(|prior| self.reno >= prior);
            let each = window * if is_raised { EIGHTHS_RAISED } else { EIGHTHS } / 8;
            if self.acked <= each {
                break;
            }
            self.acked -= each;
            self.reno += 1;
        }
        if self.reno > window { window / (self.reno - window) } else { u64::MAX }
    }
}

/// The time in 1/1024 s, rounded down: 1024 / 10⁹ is 2 / 1,953,125.
fn units(time: Duration) -> u64 {
    time.as_nanos().saturating_mul(2) / 1_953_125
}

/// The integer part of the cube root.
fn cube_root(x: u64) -> u64 {
    // One bit after the other, from the highest that a root can have.
    (0..22).rev().fold(0_u64, |root, bit| {
        let larger = root | 1 << bit;
        if u128::from(larger).pow(3) <= x.into() { larger } else { root }
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{ack, begin, loss, setup};
    use super::super::Cubic;
    use super::super::tests::with_alpha;
    use super::*;
    use crate::transport::tcp::congestion::{AckSample, Algorithm, CongestionControl, Setup};
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// A control in congestion avoidance which counts whole segments.
    fn cubic(window: f64) -> Cubic {
        Cubic::new(&Setup { window, whole_segments: true, ..setup() }, &with_alpha(false))
    }

    /// The window after an ACK of so many segments at this time, in milliseconds.
    fn acknowledged(cubic: &mut Cubic, delivered: u32, millis: u64) -> u32 {
        cubic.on_ack(&AckSample { now: at(millis), smoothed_rtt: 0.0, ..ack(delivered) });
        cubic.window() as u32
    }

    #[test]
    fn k_and_the_number_of_segments_by_hand() {
        let mut segments = Segments::new(false);
        // 1000 * 717 / 1024 = 700.2; 2^40 / 410 = 2681735677 for a segment, and the cube root of 300 times as
        // much 9300.8, in seconds 9.08. The curve there is 410 * 9300^3 / 2^40 = 299.9 below its plateau.
        assert_eq!(segments.decrease(1000, 0.7), 700);
        // The target is one segment more than the window: one for 700.
        assert_eq!(segments.per_segment(700, 1, at(5000)), 700);
        assert_eq!((segments.origin, segments.reach, segments.at(0)), (1000, 9300, 701));
        // 2 s later: 2048 of 9300, which leaves 410 * 7252^3 / 2^40 = 142.2: 858, of 158 more than the window
        // one for 4.
        assert_eq!((segments.per_segment(700, 3, at(7000)), segments.at(2048)), (4, 858));
        // Beyond the plateau, after 25 s, 25600: 410 * 16300^3 / 2^40 = 1614.9. It grows by a segment for two
        // at most.
        assert_eq!((segments.per_segment(1000, 1, at(30_000)), segments.at(25_600)), (2, 2614));
    }

    #[test]
    fn a_window_of_a_few_segments_grows_as_linux_counts() {
        // A loss with 10 segments leaves 7, and K is the cube root of 3 * 2681735677, 2003 (1.96 s). The
        // curve begins 410 * 2003^3 / 2^40 = 2.997 below 10, of which two whole segments count: the target is
        // 8, and the number 7 / (8 - 7). An ACK each 14 ms.
        let mut cubic = cubic(10.0);
        cubic.on_loss(&loss(10.0));
        let windows = std::array::from_fn::<_, 20, _>(|n| acknowledged(&mut cubic, 1, 14 * n as u64));
        // The seventh ACK makes it 8, which is the target: one for 800. That is found anew each 1/32 s, and
        // not before: at 98, 140, 182, 224 and 266 ms, when it is 272 of 2003 and the curve 1.93 below 10.
        // The number is 8 / (9 - 8), and twelve have been counted: a segment at once, and none is left of the
        // twelve.
        assert_eq!((windows[0], windows[5], windows[6], windows[18], windows[19]), (7, 7, 8, 8, 9));
        assert_eq!(acknowledged(&mut cubic, 7, 267), 9);
    }

    #[test]
    fn without_a_plateau_it_grows_by_a_twentieth_of_what_is_acknowledged() {
        let mut cubic = cubic(100.0);
        let grown = [101, 102, 103, 104, 105].map(|millis| acknowledged(&mut cubic, 20, millis));
        assert_eq!(grown, [101, 102, 103, 104, 105]);
        // A timeout forgets the plateau, and the least round trip.
        let mut segments = Segments::new(false);
        segments.note_round_trip(0.1, at(5000));
        segments.decrease(105, 0.7);
        segments.on_timeout();
        assert_eq!((segments.plateau, segments.least_rtt), (0, None));
        assert_eq!(segments.per_segment(100, 1, at(6000)), 20);
    }

    #[test]
    fn an_ack_that_slow_start_uses_up_begins_no_congestion_avoidance() {
        let mut cubic =
            begin::<Cubic>(&Setup { window: 4.0, threshold: 100.0, whole_segments: true, ..setup() });
        assert_eq!(acknowledged(&mut cubic, 96, 10), 100);
        assert_eq!(*cubic.growth.epoch_mut(), None);
        assert_eq!(acknowledged(&mut cubic, 20, 20), 101);
        assert_eq!(*cubic.growth.epoch_mut(), Some(at(20)));
        cubic.on_idle(Duration::from_millis(5));
        assert_eq!(*cubic.growth.epoch_mut(), Some(at(25)));
    }

    #[test]
    fn fast_convergence_and_marks_in_whole_segments() {
        let mut segments = Segments::new(false);
        segments.decrease(1000, 0.7);
        // 800 * 1741 / 2048 = 680.08; 0.85 with RFC 8511.
        assert_eq!((segments.decrease(800, 0.85), segments.plateau), (680, 680));
        assert_eq!((segments.decrease(5, 0.7), segments.plateau), (3, 4));
        assert_eq!((segments.decrease(40, 0.85), segments.plateau), (34, 40));
    }

    #[test]
    fn the_least_round_trip_leads_the_curve_and_is_taken_a_second_after_the_loss() {
        let mut segments = Segments::new(false);
        segments.note_round_trip(0.2, at(0));
        segments.decrease(1000, 0.7);
        // 0.2 s are 204: 410 * (9300 - 204)^3 / 2^40 = 280.6.
        assert_eq!(segments.per_segment(700, 1, at(1000)), 700 / (720 - 700));
        segments.note_round_trip(0.1, at(1999));
        assert_eq!(segments.least_rtt, Some(Duration::from_millis(200)));
        segments.note_round_trip(0.1, at(2000));
        assert_eq!(segments.least_rtt, Some(Duration::from_millis(100)));
    }

    #[test]
    fn a_raised_alpha_is_renos_from_the_window_before_the_loss_on() {
        let numbers = [false, true].map(|raises_alpha| {
            let mut segments = Segments::new(raises_alpha);
            segments.decrease(8, 0.7);
            segments.per_segment(8, 1, at(0));
            segments.acked = 9;
            segments.by_reno(8)
        });
        // The Reno-friendly window grows for 8 * 15 / 8 = 15 acknowledged segments, or for 8.
        assert_eq!(numbers, [u64::MAX, 8]);
    }

    #[test]
    fn the_control_has_whole_windows() {
        let mut cubic =
            begin::<Cubic>(&Setup { window: 98.0, threshold: 100.0, whole_segments: true, ..setup() });
        cubic.on_ack(&ack(3));
        assert_eq!(cubic.window() as u32, 100);
        cubic.on_loss(&loss(100.0));
        assert_eq!((cubic.window(), cubic.slow_start_threshold()), (70.0, 70.0));
        cubic.on_timeout(&loss(70.0));
        assert_eq!((cubic.window(), cubic.slow_start_threshold()), (1.0, 49.0));
    }

    proptest! {
        #[test]
        fn a_cube_root_is_the_largest_whose_cube_is_no_more(x in any::<u64>()) {
            let root = u128::from(cube_root(x));
            prop_assert!(root.pow(3) <= x.into() && (root + 1).pow(3) > x.into());
        }

        #[test]
        fn the_window_never_falls_and_grows_by_half_at_most(
            steps in prop::collection::vec((0_u64..400, 1_u32..20, any::<bool>()), 1..60),
            raises_alpha in any::<bool>(),
        ) {
            let mut cubic = Cubic::new(&Setup { window: 20.0, whole_segments: true, ..setup() }, &with_alpha(raises_alpha));
            let (mut window, mut now) = (20, 0);
            for (millis, acked, loses) in steps {
                now += millis;
                if loses {
                    cubic.on_loss(&loss(window.into()));
                    window = cubic.window() as u32;
                } else {
                    let grown = acknowledged(&mut cubic, acked, now);
                    // What was counted before the number fell is one segment, whatever it is.
                    prop_assert!(grown >= window && grown <= window + 1 + acked.div_ceil(2), "{window} {grown}");
                    window = grown;
                }
            }
        }
    }
}
