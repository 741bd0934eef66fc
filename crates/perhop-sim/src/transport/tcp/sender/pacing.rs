//! Pacing by the window, for congestion controls without a rate of their own.
//!
//! The rate and its two ratios are those of Linux (`tcp_update_pacing_rate`; `tcp_pacing_ss_ratio` and
//! `tcp_pacing_ca_ratio` in its `ip-sysctl.rst`).
//!
//! ## Deviations
//! - A segment that leaves late, because nothing was to be sent before, does not shorten the next interval.
//!   Linux takes up to half of that interval off.
//! - Segments leave one by one, also at high rates; Linux paces bunches of them (TSO).
//! - Before the first loss the slow-start threshold is `initial-ssthresh`, or the receiver's window; Linux
//!   has none then, and the ratio stays 2.

use perhop_core::{Bitrate, Bytes, Duration};

use super::TcpSender;
use crate::transport::tcp::congestion::{CongestionControl, bitrate};

/// The rate of segments by that of the window: below half of the slow-start threshold, and above.
const SLOW_START_RATIO: f64 = 2.0;
const AVOIDANCE_RATIO: f64 = 1.2;

impl TcpSender {
    /// Returns the time that a full segment takes at the pacing rate, while no more is outstanding than the
    /// window. It is kept until something happens besides transmissions, as the rate is the same until then.
    #[inline(always)]
    pub(super) fn gap(&mut self) -> Option<Duration> {
        debug_assert!(self.cold.gap.is_none() || self.cold.gap == self.find_gap());
        if self.cold.gap.is_none() {
            self.cold.gap = self.find_gap();
        }
        self.cold.gap
    }

    /// Returns the time that a segment of this size takes at the pacing rate.
    #[inline]
    pub(super) fn gap_after(&mut self, size: u16) -> Option<Duration> {
        // A control's own rate does not depend on what is outstanding.
        if self.cold.has_own_pace && size == self.packet {
            return self.gap();
        }
        self.pacing_rate().map(|rate| rate.time_of(Bytes::new(u64::from(size))))
    }

    /// Finds it anew when it is asked for.
    #[cfg(test)]
    pub(super) fn forget_gap(&mut self) {
        self.cold.gap = None;
    }

    #[inline(never)]
    pub(super) fn find_gap(&self) -> Option<Duration> {
        self.pacing_rate().map(|rate| rate.time_of(Bytes::new(u64::from(self.packet))))
    }

    /// Returns the rate at which segments of a paced sender may leave; unlimited before it is known.
    pub(super) fn pacing_rate(&self) -> Option<Bitrate> {
        if self.cold.has_own_pace { self.control.pacing_rate() } else { self.window_rate() }
    }

    /// Returns the rate of the window: unlimited before the first round trip is known. What is outstanding
    /// may be more than the window, when a loss has just lowered it.
    fn window_rate(&self) -> Option<Bitrate> {
        let window = self.congestion_window();
        let is_slow = window < self.control.slow_start_threshold() / 2.0;
        let ratio = if is_slow { SLOW_START_RATIO } else { AVOIDANCE_RATIO };
        let segments = window.max(f64::from(self.next - self.acked));
        bitrate(ratio * segments / self.cold.rto.smoothed()?, self.cold.params.packet)
    }
}
