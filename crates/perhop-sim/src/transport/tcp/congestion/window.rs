//! A window with a slow-start threshold (RFC 5681, section 3.1): what most congestion controls are made of.

#![expect(clippy::inline_always, reason = "it is a part of the sender's short way")]

use super::Setup;

/// The least slow-start threshold after a loss (RFC 5681, equation 4).
const LEAST_THRESHOLD: f64 = 2.0;

/// A window of whole segments counts the segments that were acknowledged since it grew (`snd_cwnd_cnt`) in
/// the rest of its number: in this part of a segment.
const COUNTS: u32 = 1 << 28;

/// A congestion window and its slow-start threshold, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The congestion window: cwnd.
    pub now: f64,
    /// The slow-start threshold: ssthresh.
    pub threshold: f64,
    most: u32,
    counts_acks: bool,
    ecn_backoff: bool,
    whole_segments: bool,
}

/// A window is among the fields of a sender that each ACK touches, so its size counts.
const _: () = assert!(size_of::<Window>() == 24);

impl Window {
    /// Returns the window of a new connection.
    pub fn new(setup: &Setup) -> Self {
        let &Setup { window, threshold, most, counts_acks, whole_segments, .. } = setup;
        Self { now: window, threshold, most, counts_acks, ecn_backoff: false, whole_segments }
    }

    /// Returns a window that grows by segments, whatever the connection says (RFC 3465, without its limit L).
    pub fn by_segments(setup: &Setup) -> Self {
        Self { counts_acks: false, ..Self::new(setup) }
    }

    /// Sets whether a mark leaves more of the window than a loss (RFC 8511).
    #[must_use]
    pub fn with_ecn_backoff(self, ecn_backoff: bool) -> Self {
        Self { ecn_backoff, ..self }
    }

    /// Grows by slow start for an ACK of `delivered` segments. Returns the rest for congestion avoidance:
    /// segments, or, where the window grows by ACKs, one or none.
    #[inline(always)]
    pub fn slow_start(&mut self, delivered: u32) -> f64 {
        if self.counts_acks {
            if self.now < self.threshold {
                self.now += 1.0;
                return 0.0;
            }
            return 1.0;
        }
        let delivered = f64::from(delivered);
        let slow = delivered.min((self.threshold - self.now).max(0.0));
        self.now += slow;
        delivered - slow
    }

    /// Grows as Reno does: slow start, then one segment in a round trip (RFC 5681, equation 3), up to the
    /// receiver's window.
    #[inline(always)]
    pub fn grow(&mut self, delivered: u32) {
        let left = self.slow_start(delivered);
        if left > 0.0 {
            self.avoid_congestion(left, self.now);
        }
        self.limit();
    }

    /// Grows by one segment for each `per_segment` of the acknowledged ones: congestion avoidance.
    #[inline(always)]
    pub fn avoid_congestion(&mut self, acked: f64, per_segment: f64) {
        if self.whole_segments {
            self.count(acked, per_segment);
        } else {
            self.now += acked / per_segment;
        }
    }

    /// Grows by whole segments after whole numbers of acknowledged ones, as Linux does (`tcp_cong_avoid_ai`).
    #[inline(never)]
    fn count(&mut self, acked: f64, per_segment: f64) {
        let per_segment = (per_segment as u32).clamp(1, COUNTS);
        let whole = f64::from(self.now as u32);
        let counted = ((self.now - whole) * f64::from(COUNTS)) as u32;
        // More than a segment needs by now makes one, and no more.
        let (more, counted) = if counted >= per_segment { (1, 0) } else { (0, counted) };
        let counted = counted.saturating_add(acked as u32);
        // Most ACKs complete no segment, and a division takes far longer than a comparison.
        let (segments, counted) =
            if counted < per_segment { (0, counted) } else { (counted / per_segment, counted % per_segment) };
        self.now = whole + f64::from(more + segments) + f64::from(counted) / f64::from(COUNTS);
    }

    /// Keeps to the receiver's window.
    #[inline(always)]
    pub fn limit(&mut self) {
        let most = f64::from(self.most);
        self.now = if self.now < most { self.now } else { most };
    }

    /// Returns the part of the window that a mark leaves: as much as a loss, or more in congestion avoidance
    /// with the backoff of RFC 8511, section 3.
    pub fn left_by_mark(&self, by_loss: f64, by_mark: f64) -> f64 {
        if self.ecn_backoff && self.now >= self.threshold { by_mark } else { by_loss }
    }

    /// Reduces the window to `left`, from which congestion avoidance goes on.
    pub fn reduce_to(&mut self, left: f64) {
        let left = if self.whole_segments { (left as u32).into() } else { left };
        self.threshold = left.max(LEAST_THRESHOLD);
        self.now = self.threshold;
    }
}

/// The methods of a congestion control whose window is its field `window`, a [`Window`].
macro_rules! acts_by_its_window {
    () => {
        #[inline]
        fn window(&self) -> f64 {
            self.window.now
        }
        fn set_window(&mut self, window: f64) {
            self.window.now = window;
        }
        fn slow_start_threshold(&self) -> f64 {
            self.window.threshold
        }
        fn leave_slow_start(&mut self) {
            self.window.threshold = self.window.now;
        }
    };
}
pub(super) use acts_by_its_window;

#[cfg(test)]
mod tests {
    use super::super::tests::setup;
    use super::*;
    use proptest::prelude::*;

    /// A window in congestion avoidance that grows by whole segments, or in fractions.
    fn counting(window: f64, whole_segments: bool) -> Window {
        Window::by_segments(&Setup { window, whole_segments, ..setup() })
    }

    #[test]
    fn as_many_segments_as_the_window_make_one_more_as_linux_counts() {
        // From 5 to 6 after 5 acknowledged segments, and to 7 after 6 more; fractions take 6 and 7.
        for (whole_segments, windows) in [(true, [4, 5, 5, 6]), (false, [4, 4, 5, 5])] {
            let mut window = counting(4.0, whole_segments);
            let after = [3, 1, 4, 1].map(|segments| {
                (0..segments).for_each(|_| window.grow(1));
                window.now as u32
            });
            assert_eq!(after, windows);
        }
    }

    #[test]
    fn what_is_left_of_an_ack_counts_for_the_next_segment() {
        // Of 13 segments 7 make one more, and 6 of the next 8 have come.
        let mut window = counting(7.0, true);
        let after = [13, 1, 1].map(|segments| {
            window.grow(segments);
            window.now as u32
        });
        assert_eq!((after, window.now), ([8, 8, 9], 9.0));
    }

    #[test]
    fn an_ack_that_slow_start_uses_up_does_not_count() {
        let mut window =
            Window::by_segments(&Setup { window: 4.0, threshold: 7.0, whole_segments: true, ..setup() });
        let after = [3, 6, 1].map(|segments| {
            window.grow(segments);
            window.now as u32
        });
        assert_eq!(after, [7, 7, 8]);
    }

    #[test]
    fn segments_that_were_counted_for_a_larger_number_make_one() {
        let mut window = counting(10.0, true);
        window.avoid_congestion(25.0, 1000.0);
        window.avoid_congestion(1.0, 8.0);
        assert_eq!(window.now as u32, 11);
        window.avoid_congestion(7.0, 8.0);
        assert_eq!(window.now, 12.0);
    }

    proptest! {
        #[test]
        fn all_segments_are_counted(
            acks in prop::collection::vec(1_u32..50, 1..50), window in 1_u32..1_000_000, per_segment in 1_u32..200_000_000,
        ) {
            let mut counting = counting(window.into(), true);
            for &acked in &acks {
                counting.avoid_congestion(acked.into(), per_segment.into());
            }
            let all: u32 = acks.iter().sum();
            prop_assert_eq!(counting.now as u32, window + all / per_segment);
            prop_assert_eq!((counting.now % 1.0 * f64::from(COUNTS)) as u32, all % per_segment);
        }
    }

    #[test]
    fn whole_segments_are_left_where_linux_leaves_them() {
        // Linux: Reno's `snd_cwnd >> 1` of 7, CUBIC's `snd_cwnd * 717 / 1024` of 7 and of 4, and two segments
        // at least.
        for (left, exact, whole) in [(3.5, 3.5, 3.0), (4.9, 4.9, 4.0), (2.8, 2.8, 2.0), (1.5, 2.0, 2.0)] {
            let reduced = [false, true].map(|whole_segments| {
                let mut window = Window::new(&Setup { whole_segments, ..setup() });
                window.reduce_to(left);
                (window.now, window.threshold)
            });
            assert_eq!(reduced, [(exact, exact), (whole, whole)]);
        }
    }
}
