//! A window with a slow-start threshold (RFC 5681, section 3.1): what most congestion controls are made of.

#![expect(clippy::inline_always, reason = "it is a part of the sender's fast path")]

use super::Setup;

/// After a loss the slow-start threshold is no lower than this (RFC 5681, equation 4).
const LEAST_THRESHOLD: f64 = 2.0;

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

/// Every sender has one among the fields that each ACK touches.
const _: () = assert!(size_of::<Window>() == 24);

impl Window {
    /// The window of a new connection.
    pub fn new(setup: &Setup) -> Self {
        let &Setup { window, threshold, most, counts_acks, ecn_backoff, whole_segments, .. } = setup;
        Self { now: window, threshold, most, counts_acks, ecn_backoff, whole_segments }
    }

    /// One that grows by segments, whatever the connection says (RFC 3465, without its limit L).
    pub fn by_segments(setup: &Setup) -> Self {
        Self { counts_acks: false, ..Self::new(setup) }
    }

    /// Grows by slow start for an ACK of so many segments. Returns what is left of it for congestion avoidance: segments, or,
    /// where the window grows by ACKs, one or none.
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

    /// Grows as Reno does: slow start, then one segment in a round trip (RFC 5681, equation 3), up to the receiver's window.
    #[inline(always)]
    pub fn grow(&mut self, delivered: u32) {
        let left = self.slow_start(delivered);
        if self.whole_segments {
            self.count(left);
        } else if left > 0.0 {
            self.now += left / self.now;
        }
        self.limit();
    }

    /// Counts so many segments, as many as the window's whole ones of which make one more, as Linux does (`tcp_cong_avoid_ai`). The
    /// window's fraction is what has been counted.
    #[inline(never)]
    fn count(&mut self, segments: f64) {
        let whole = f64::from(self.now as u32).max(1.0);
        let counted = ((self.now - whole) * whole).max(0.0).round() + segments;
        let larger = whole + f64::from((counted / whole) as u32);
        self.now = larger + counted % whole / larger;
    }

    /// Keeps to the receiver's window.
    #[inline(always)]
    pub fn limit(&mut self) {
        let most = f64::from(self.most);
        self.now = if self.now < most { self.now } else { most };
    }

    /// What a mark leaves of the window: as much as a loss, or more in congestion avoidance with the backoff of RFC 8511,
    /// section 3.
    pub fn left_by_mark(&self, by_loss: f64, by_mark: f64) -> f64 {
        if self.ecn_backoff && self.now >= self.threshold { by_mark } else { by_loss }
    }

    /// Congestion avoidance goes on from here.
    pub fn leave_slow_start(&mut self) {
        self.threshold = self.now;
    }

    /// A loss leaves this window, from which congestion avoidance goes on.
    pub fn reduce_to(&mut self, left: f64) {
        let left = if self.whole_segments { (left as u32).into() } else { left };
        self.threshold = left.max(LEAST_THRESHOLD);
        self.now = self.threshold;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::setup;
    use super::*;

    #[test]
    fn as_many_segments_as_the_whole_window_make_one_more_as_linux_counts() {
        // From 5: after 5 segments 6, after 6 more 7; in fractions after 6 and 7. Of 13 at once 7 make one more, and 6 of 8 are counted.
        let (mut whole, mut exact) = [true, false]
            .map(|whole_segments| {
                Window::by_segments(&Setup { window: 5.0, whole_segments, counts_acks: false, ..setup() })
            })
            .into();
        let windows = [5, 6].map(|segments| {
            (0..segments)
                .for_each(|_| [&mut whole, &mut exact].map(|window| window.grow(1)).into_iter().collect());
            (whole.now, exact.now as u32)
        });
        assert_eq!(windows, [(6.0, 5), (7.0, 6)]);
        whole.grow(13);
        assert_eq!(whole.now, 8.0 + 6.0 / 8.0);
        (0..2).for_each(|_| whole.grow(1));
        assert_eq!(whole.now, 9.0);
    }

    #[test]
    fn whole_segments_are_left_where_linux_leaves_them() {
        // Linux: Reno's `snd_cwnd >> 1` of 7, CUBIC's `snd_cwnd * 717 / 1024` of 7 and of 4, and two segments at least.
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
