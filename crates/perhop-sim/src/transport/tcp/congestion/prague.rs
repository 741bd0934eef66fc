//! TCP Prague: the L4S team's `tcp_prague.c`, version 0.6, for the requirements of RFC 9331, section 4. With
//! `target-rtt = "0s"` it is version 0.5 of August 2020, too, which does not equalize round-trip times unless
//! asked to (`RTT_CONTROL_NONE`).

use perhop_core::units::{UnitError, require};
use perhop_core::{Bitrate, Block, Bytes, Duration, Instant, Origin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AckSample, Algorithm, CongestionControl, CongestionEvent, FormerKey, Needs, Setup, path_model};

/// The unit of windows and shares: 2^-20 segments, and 2^-20 of all packets.
const BITS: u32 = 20;
const ONE: u64 = 1 << BITS;
/// g = 2^-4: the weight of the last round in the estimate.
const GAIN_SHIFT: u32 = 4;
/// Reductions leave no less.
const MIN_WINDOW: u64 = 2 << BITS;
/// Rounds after slow start before round-trip times matter no more, and the longest that is scaled.
const TRANSITION: u32 = 500;
const MOST_SCALED: u64 = 100_000 >> RTT_SHIFT;
/// Round trips are counted in 2^7 µs.
const RTT_SHIFT: u32 = 7;

/// The longest target: Linux scales no longer round trips.
const LONGEST_TARGET: Duration = Duration::from_millis(100);

/// Parameters of TCP Prague.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PragueParams {
    /// After 500 round trips, flows with a shorter round trip than this grow as one that has it, so that they
    /// get the same rate (Linux's `prague_rtt_target`); at most 100ms, and `0s` leaves out this independence.
    pub target_rtt: Duration,
}

impl Default for PragueParams {
    fn default() -> Self {
        Self { target_rtt: Duration::from_millis(25) }
    }
}

/// TCP Prague: as DCTCP, with a window in fractions that grows by each segment that was not marked, paced,
/// and with ECT(1).
///
/// ## Deviations
/// - Segments leave one by one; Linux sends bursts of up to 2^-12 s.
/// - The window follows its fraction at once; Linux steps by one segment an ACK.
/// - Slow start raises the fraction, too.
/// - There is no fallback where the bottleneck marks as RFC 3168 has it; Linux has one that is off by
///   default.
/// - What arrives during a recovery from losses does not count in the estimate.
#[derive(Clone, Debug, Default)]
pub struct Prague {
    packet: Bytes,
    most: u64,
    /// The window in 2^-20 segments, and the slow-start threshold.
    window: u64,
    threshold: u64,
    smoothed_rtt: f64,
    /// alpha, upscaled by 1/g so that no remainder is lost. Before the first mark it stays as it is.
    upscaled: u64,
    /// alpha before the ACK at hand: Linux reduces the window (`prague_enter_cwr`) before it updates alpha.
    upscaled_before: u64,
    saw_mark: bool,
    /// Segments of this round: acknowledged, and of them marked; and where it ends.
    acked: u64,
    marked: u64,
    ends: u32,
    round_began: Instant,
    /// Rounds since slow start.
    rounds: u32,
    /// The growth for a window's worth of segments without a mark.
    increase: u64,
    reduced: Option<Instant>,
    target: Duration,
}

impl Block for Prague {
    type Params = PragueParams;
    const NAME: &'static str = "prague";
    const SUMMARY: &'static str =
        "L4S: marks reduce the window by half the share of packets that are marked; paced, ECT(1)";
    const ORIGIN: Origin =
        Origin::published(2019, "RFC 9331, section 4, and L4S Linux").in_patched_linux("prague");

    fn check(params: &PragueParams) -> Result<(), UnitError> {
        let why = "at most 100ms, such as 25ms; 0s turns it off";
        require(params.target_rtt <= LONGEST_TARGET, "target-rtt", why)
    }
}

impl Algorithm for Prague {
    const NEEDS: Needs = Needs { marks: true, pacing: true, l4s: true, ..Needs::NOTHING };
    const FORMER_KEYS: &'static [FormerKey] = &[FormerKey::moved("target-rtt")];

    fn new(setup: &Setup, params: &PragueParams) -> Self {
        Self {
            packet: setup.packet,
            most: u64::from(setup.most) << BITS,
            window: fraction(setup.window),
            threshold: fraction(setup.threshold),
            upscaled: ONE << GAIN_SHIFT,
            upscaled_before: ONE << GAIN_SHIFT,
            increase: ONE,
            target: params.target_rtt,
            ..Self::default()
        }
    }
}

impl CongestionControl for Prague {
    fn on_ack(&mut self, ack: &AckSample) {
        self.smoothed_rtt = ack.smoothed_rtt;
        self.upscaled_before = self.upscaled;
        let marked = u64::from(ack.marked.min(ack.delivered));
        self.saw_mark |= marked > 0;
        self.acked += u64::from(ack.delivered);
        self.marked += marked;
        self.grow(u64::from(ack.delivered) - marked);
        let is_due = !self.is_independent() || ack.now >= self.round_began + self.target;
        if ack.acked >= self.ends && is_due {
            self.begin_round(ack);
        }
    }

    fn on_loss(&mut self, _: &CongestionEvent) {
        self.reduce_to(self.window - (self.window >> 1));
    }

    /// Once in a round trip, or, independent of it, in the target.
    fn on_congestion_experienced(&mut self, event: &CongestionEvent) {
        let is_early = self.reduced.is_some_and(|at| event.now < at + self.target);
        if !(is_early && self.is_independent()) {
            self.reduced = Some(event.now);
            self.reduce_to(after_mark(self.window, self.upscaled_before >> GAIN_SHIFT));
        }
    }

    fn window(&self) -> f64 {
        self.window.div_ceil(ONE).max(1) as f64
    }

    fn set_window(&mut self, window: f64) {
        self.window = fraction(window);
    }

    fn is_in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn leave_slow_start(&mut self) {
        self.threshold = self.window;
    }

    /// Returns the rate of a window in each round trip, and of twice that far below the threshold.
    fn pacing_rate(&self) -> Option<Bitrate> {
        let gain = if self.window < self.threshold / 2 { 2.0 } else { 1.0 };
        let segments = self.window as f64 / ONE as f64;
        if self.smoothed_rtt > 0.0 {
            path_model::bitrate(gain * segments / self.smoothed_rtt, self.packet)
        } else {
            None
        }
    }
}

impl Prague {
    /// Grows by this number of segments, which came without a mark.
    fn grow(&mut self, segments: u64) {
        let slow = (segments << BITS).min(self.threshold.saturating_sub(self.window));
        self.window += slow;
        let left = segments - slow.div_ceil(ONE);
        if left > 0 {
            let window = self.window.div_ceil(ONE).max(1);
            self.window += ((left * self.increase + window / 2) / window).max(left);
        }
        self.window = self.window.min(self.most);
    }

    fn reduce_to(&mut self, window: u64) {
        self.window = window.max(MIN_WINDOW.min(self.window));
        self.threshold = self.window;
    }

    fn is_independent(&self) -> bool {
        !self.target.is_zero() && self.window >= self.threshold && self.rounds >= TRANSITION
    }

    fn begin_round(&mut self, ack: &AckSample) {
        if self.saw_mark {
            self.upscaled = averaged(self.upscaled, self.acked, self.marked);
            self.round_began = ack.now;
        }
        (self.acked, self.marked) = (0, 0);
        self.ends = ack.acked + ack.in_flight;
        self.rounds += u32::from(self.window >= self.threshold);
        let scales = self.rounds >= TRANSITION && !self.target.is_zero();
        self.increase = if scales {
            increase((ack.smoothed_rtt * 1e6) as u64, self.target.as_nanos() / 1000)
        } else {
            ONE
        };
    }
}

fn fraction(segments: f64) -> u64 {
    (segments * ONE as f64) as u64
}

/// Returns the growth with which a round trip, in µs, gets the rate of the target: its square.
fn increase(rtt: u64, target: u64) -> u64 {
    let (rtt, target) = (rtt >> RTT_SHIFT, (target >> RTT_SHIFT).max(1));
    if rtt == 0 || rtt >= target || rtt > MOST_SCALED {
        return ONE;
    }
    let square = target * target;
    ((rtt << BITS) * rtt + square / 2) / square
}

/// Returns alpha, upscaled, after a round of `acked` segments of which `marked` were marked.
fn averaged(upscaled: u64, acked: u64, marked: u64) -> u64 {
    let share = (marked << BITS) / acked.max(1);
    (upscaled - (upscaled >> GAIN_SHIFT) + share).min(ONE << GAIN_SHIFT)
}

/// Returns the window without half of its share alpha, rounded to the nearest.
fn after_mark(window: u64, alpha: u64) -> u64 {
    window - ((alpha * window + ONE) >> (BITS + 1))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack, loss, setup};
    use super::*;

    fn prague() -> Prague {
        with_target(0, &setup())
    }

    fn with_target(millis: u64, setup: &Setup) -> Prague {
        Prague::new(setup, &PragueParams { target_rtt: Duration::from_millis(millis) })
    }

    #[test]
    fn the_increase_is_the_square_of_the_round_trip_in_the_target() {
        let increases = [500, 5_000, 10_000, 25_000, 40_000].map(|rtt| increase(rtt, 25_000));
        assert_eq!(increases, [248, 41_943, 167_772, ONE, ONE]);
    }

    #[test]
    fn alpha_keeps_its_remainder() {
        let mut upscaled = ONE << GAIN_SHIFT;
        let alphas = [(10, 1), (10, 0), (20, 2), (20, 20)].map(|(acked, marked)| {
            upscaled = averaged(upscaled, acked, marked);
            upscaled >> GAIN_SHIFT
        });
        assert_eq!(alphas, [989_593, 927_744, 876_313, 887_080]);
    }

    #[test]
    fn a_mark_takes_half_of_alpha() {
        let left = [ONE, ONE / 2, 104_858].map(|alpha| after_mark(40 << BITS, alpha) as f64 / ONE as f64);
        assert_eq!(left, [20.0, 30.0, 37.999_992_370_605_47]);
    }

    #[test]
    fn alpha_stays_at_one_until_the_first_mark() {
        let mut prague = prague();
        for acked in 1..200 {
            prague.on_ack(&AckSample { acked, in_flight: 10, ..ack(1) });
        }
        assert_eq!(prague.upscaled, ONE << GAIN_SHIFT);
        prague.on_ack(&AckSample { acked: 220, in_flight: 10, marked: 1, ..ack(1) });
        assert!(prague.upscaled < ONE << GAIN_SHIFT);
    }

    #[test]
    fn a_mark_reduces_by_the_alpha_of_before_its_ack() {
        // Linux: tcp_ack() enters CWR, and with it prague_enter_cwr(), before prague_cong_control() updates
        // alpha. The first mark, on the ACK that ends a round, halves the window (alpha 1) though alpha is
        // 15/16 + 1/16 x 1/10 after it.
        let mut prague = Prague { window: 40 << BITS, threshold: 40 << BITS, ..prague() };
        prague.on_ack(&AckSample { acked: 10, marked: 10, ..ack(10) });
        prague.window = 40 << BITS;
        (prague.acked, prague.marked, prague.ends) = (9, 0, 20);
        prague.on_ack(&AckSample { acked: 20, marked: 1, ..ack(1) });
        assert_eq!(prague.upscaled >> GAIN_SHIFT, (15 * ONE + ONE / 10) / 16);
        prague.on_congestion_experienced(&loss(40.0));
        assert_eq!(prague.window, 20 << BITS);
    }

    #[test]
    fn each_segment_without_a_mark_adds_its_part_and_losses_halve() {
        let mut prague = prague();
        prague.on_ack(&AckSample { marked: 2, ..ack(2) });
        assert_eq!(prague.window, 10 << BITS);
        prague.on_ack(&AckSample { marked: 1, ..ack(2) });
        assert_eq!(prague.window, (10 << BITS) + (ONE + 5) / 10);
        assert_eq!(prague.window(), 11.0, "rounded up");
        prague.set_window(40.0);
        prague.on_loss(&loss(40.0));
        assert_eq!((prague.window(), prague.threshold), (20.0, 20 << BITS));
        prague.set_window(2.0);
        prague.on_loss(&loss(2.0));
        assert_eq!(prague.window(), 2.0, "two segments at least");
    }

    #[test]
    fn slow_start_takes_the_window_to_the_threshold() {
        let mut prague = with_target(0, &Setup { threshold: 12.0, ..setup() });
        prague.on_ack(&ack(3));
        assert_eq!(prague.window, (12 << BITS) + (ONE + 6) / 12, "two of three segments");
    }

    #[test]
    fn after_500_rounds_round_trips_below_the_target_grow_by_it_and_cut_once_in_it() {
        let mut prague = with_target(25, &setup());
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let round = |prague: &mut Prague, millis: u64, acked: u32| {
            prague.on_ack(&AckSample {
                now: at(millis),
                acked,
                in_flight: 0,
                marked: 1,
                smoothed_rtt: 0.005,
                ..ack(2)
            });
        };
        (1..500).for_each(|n| round(&mut prague, u64::from(n) * 5, n));
        assert_eq!((prague.rounds, prague.increase), (499, ONE));
        round(&mut prague, 2500, 500);
        assert_eq!(prague.increase, 41_943);
        let window = prague.window;
        let cuts = [3000, 3005, 3024, 3025].map(|millis| {
            let before = prague.window;
            prague.on_congestion_experienced(&CongestionEvent { now: at(millis), ..loss(10.0) });
            prague.window < before
        });
        assert_eq!((cuts, prague.window < window), ([true, false, false, true], true));
    }

    #[test]
    fn it_is_paced_at_a_window_in_a_round_trip_and_twice_that_far_below_the_threshold() {
        let mut prague = prague();
        assert_eq!(prague.pacing_rate(), None);
        (prague.smoothed_rtt, prague.threshold) = (0.1, 20 << BITS);
        assert_eq!(prague.pacing_rate().unwrap().as_bps(), 800_000);
        prague.threshold = 21 << BITS;
        assert_eq!(prague.pacing_rate().unwrap().as_bps(), 1_600_000);
    }
}
