//! What the kernel counts of a TCP connection, taken whenever it is asked.

use perhop_core::Instant;
use perhop_sim::transport::SenderStatistics;

use super::limits::LimitMeter;
use crate::system::TcpInfo;

/// The counts of a connection so far, and those at the end of the warm-up.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionCounts {
    pub(super) latest: SenderStatistics,
    acked: u64,
    /// The receiver's window in bytes; 0 where the kernel does not say it.
    pub(super) receiver_window: u32,
    limits: LimitMeter,
    at_warmup: (SenderStatistics, u64),
}

impl ConnectionCounts {
    /// Begins to count what keeps the connection from sending; `ends` as for [`LimitMeter::begin`].
    pub(super) fn begin(&mut self, now: Instant, ends: bool) {
        self.limits = LimitMeter::begin(now, ends);
    }

    /// Takes what the kernel says now; `is_all`: the application has handed over all. The round-trip time is
    /// a sample if `measures` says so.
    pub(super) fn take(&mut self, info: &TcpInfo, is_all: bool, now: Instant, measures: bool) {
        let TcpInfo { rtt_us, sent, retransmitted, timeouts, acked, receiver_window, .. } = *info;
        let (samples, sum) = self.latest.rtt_samples;
        let is_sample = measures && rtt_us > 0;
        self.latest = SenderStatistics {
            sent,
            retransmitted,
            timeouts,
            rtt_samples: if is_sample {
                (samples + 1, sum + u128::from(rtt_us) * 1000)
            } else {
                (samples, sum)
            },
            limits: self.limits.take(info, is_all, now),
            ..SenderStatistics::default()
        };
        (self.acked, self.receiver_window) = (acked, receiver_window);
    }

    /// Counts from here on; round trips are sampled anew.
    pub(super) fn warmed_up(&mut self) {
        self.latest.rtt_samples = (0, 0);
        self.at_warmup = (self.latest.clone(), self.acked);
    }

    /// Returns the counts since the warm-up, and the bytes that were acknowledged.
    pub(super) fn since_warmup(&self) -> (SenderStatistics, u64) {
        let (before, acked) = &self.at_warmup;
        (self.latest.since(before), self.acked - acked)
    }
}
