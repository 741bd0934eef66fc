//! What keeps the sender from sending more ([`Limit`]).

use perhop_core::{Duration, Instant};

use super::TcpSender;
use crate::transport::limits::Limit;

/// How much of a full window, less a segment, a round trip paces at least that counts as all of it: BBR paces
/// 1 % below the rate that it has measured, which is a window in a round trip where the window holds it, and
/// measures this rate to a segment.
const PACED_PART: f64 = 0.98;

impl TcpSender {
    /// Notes what the sender waits for, once it has sent what it may.
    #[inline(always)]
    pub(super) fn note_limit(&mut self, now: Instant) {
        let limit = self.limit_now();
        if limit != self.limited_by {
            self.cold.limits.turn(self.limited_by, now);
            self.limited_by = limit;
        }
    }

    #[inline(always)]
    fn limit_now(&self) -> Option<Limit> {
        if self.acked < self.recover {
            // As in `tcp_write_xmit`: what is full holds the sender while losses are repaired, too.
            Some(if self.is_full() { self.limit_at_most() } else { Limit::Recovery })
        } else if self.next >= self.data_end || self.acked == 0 {
            self.limit_without_data()
        } else {
            Some(self.limit_by_windows())
        }
    }

    #[inline(always)]
    fn limit_by_windows(&self) -> Limit {
        if self.is_full() || self.is_paced() && self.paces_a_full_window() {
            self.limit_at_most()
        } else {
            Limit::Congestion
        }
    }

    /// Returns whether as much is unacknowledged as may be.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.next - self.acked >= self.receiver_window
    }

    /// Returns whether the congestion control lets out as much in a round trip as may be unacknowledged at
    /// all: a segment that waits for its pace is only spread over the round trip in which the receiver's
    /// window, or the sender's buffer, is used up.
    ///
    /// Linux counts the wait for the pace as neither (`tcp_write_xmit`), so that its `tcpi_rwnd_limited` of a
    /// paced sender is smaller.
    #[inline(never)]
    fn paces_a_full_window(&self) -> bool {
        let most = f64::from(self.receiver_window);
        if self.congestion_window() < most {
            return false; // Nearly always, and the gap takes divisions.
        }
        let gap = self.cold.gap.or_else(|| self.find_gap()).map(Duration::as_secs_f64);
        let Some((gap, round_trip)) = gap.zip(self.cold.rto.smoothed()) else { return false };
        round_trip >= PACED_PART * (most - 1.0) * gap
    }

    /// Returns which is full: the receiver's window, or the sender's buffer, which is smaller.
    #[inline(never)]
    fn limit_at_most(&self) -> Limit {
        let buffered = self.cold.params.most_buffered();
        if buffered.is_some_and(|most| most < self.offered()) { Limit::Buffer } else { Limit::Receiver }
    }

    /// Returns the receiver's window, in segments.
    pub(super) fn offered(&self) -> u32 {
        let tuned = self.cold.tuning.as_ref().map(|tuner| tuner.offered());
        tuned.unwrap_or(self.cold.params.most_offered())
    }

    /// Returns what the sender waits for when no data waits to be sent, or none has been acknowledged yet.
    #[inline(never)]
    fn limit_without_data(&self) -> Option<Limit> {
        if !self.started {
            None
        } else if self.is_opening() {
            Some(Limit::Idle)
        } else if self.next < self.data_end {
            Some(self.limit_by_windows())
        } else if self.acked < self.next {
            Some(Limit::Application)
        } else {
            self.cold.granted.as_ref().is_some_and(|granted| !granted.is_over()).then_some(Limit::Idle)
        }
    }
}
