//! The retransmission timer and the measurement of round trips (RFC 6298).

use perhop_core::Instant;

use super::transmit::Release;
use super::{Rare, TcpSender, UNTIMED};
use crate::transport::tcp::congestion::CongestionControl;

impl TcpSender {
    pub(in crate::transport) fn on_wake(&mut self, now: Instant) {
        if self.expires(now) {
            (self.acked..self.next).for_each(|sequence| self.note_lost(sequence, now));
            // Back to the first segment that is not acknowledged.
            self.urgent = Some(self.acked);
            self.next = self.acked + 1;
        }
        self.limit = self.allowed();
    }

    /// The time named by [`wake`](Self::wake) has come; says whether the retransmission timer expired.
    pub(in crate::transport::tcp) fn expires(&mut self, now: Instant) -> bool {
        if now >= self.next_send {
            self.next_send = Instant::NEVER;
            if self.release == Release::Waits {
                self.release = Release::Released;
            }
        }
        let expires = now >= self.expiry;
        if expires {
            self.on_timeout(now);
        }
        expires
    }

    /// RFC 6298, section 5. A SYN is sent again, and nothing else follows from it.
    fn on_timeout(&mut self, now: Instant) {
        self.rare.statistics.timeouts += 1;
        if !self.is_opening() {
            self.begin_again(now);
        }
        self.timed = UNTIMED;
        self.rare.rto.back_off();
        self.timeout = self.rare.rto.timeout();
        self.expiry = now + self.timeout;
    }

    /// RFC 5681, section 3.1: back to one segment.
    fn begin_again(&mut self, now: Instant) {
        // Segments that left the network during a recovery are no part of the window that is lowered.
        let event = self.congestion_event(now);
        self.control_mut().on_timeout(&event);
        self.note_reduction();
        self.end_first_slow_start();
        self.duplicates = 0;
        self.recovering = false;
        self.recover = self.highest;
    }

    /// The timed segment has arrived.
    #[inline(never)]
    pub(in crate::transport::tcp) fn sample(&mut self, now: Instant) {
        self.rare.rto.sample(self.timed_at, now);
        self.take_sample(now);
    }

    /// The SYN has arrived, which was sent once.
    pub(super) fn sample_opening(&mut self, now: Instant) {
        self.rare.rto.sample_opening(self.timed_at, now);
        self.take_sample(now);
    }

    fn take_sample(&mut self, now: Instant) {
        self.timed = UNTIMED;
        let Rare { rto, statistics, gap, tuning, .. } = &mut *self.rare;
        *gap = None;
        if let Some(tuner) = tuning {
            self.most = tuner.on_round_trip(self.acked);
        }
        self.timeout = rto.timeout();
        let (samples, sum) = &mut statistics.timed_rtt_samples;
        *samples += 1;
        *sum += u128::from(now.since(self.timed_at).as_nanos());
    }
}
