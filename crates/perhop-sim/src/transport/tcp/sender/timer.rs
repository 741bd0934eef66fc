//! The retransmission timer and the measurement of round trips (RFC 6298).

use perhop_core::Instant;

use super::transmit::Release;
use super::{Cold, TcpSender, UNTIMED};
use crate::transport::tcp::congestion::CongestionControl;

impl TcpSender {
    /// Does what is due: after a timeout the sender goes back to the first segment that is not acknowledged.
    pub(super) fn on_timers(&mut self, now: Instant) {
        if self.on_rto_if_due(now) {
            (self.acked..self.next).for_each(|sequence| self.note_lost(sequence, now));
            self.send_now = Some(self.acked);
            self.next = self.acked + 1;
        }
    }

    /// Does what is due by the sender's own timers; returns whether the retransmission timer expired.
    pub(super) fn on_rto_if_due(&mut self, now: Instant) -> bool {
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
        self.cold.statistics.timeouts += 1;
        if !self.is_opening() {
            self.begin_again(now);
        }
        self.rtt_segment = UNTIMED;
        self.cold.rto.back_off();
        self.timeout = self.cold.rto.timeout();
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
        self.recover = self.sent_end;
    }

    /// Takes the round trip of the timed segment, which has arrived.
    #[inline(never)]
    pub(super) fn sample(&mut self, now: Instant) {
        self.cold.rto.sample(self.rtt_sent_at, now);
        self.take_sample(now);
    }

    /// Takes the round trip of the SYN, which was sent once.
    pub(super) fn sample_opening(&mut self, now: Instant) {
        self.cold.rto.sample_opening(self.rtt_sent_at, now);
        self.take_sample(now);
    }

    fn take_sample(&mut self, now: Instant) {
        self.rtt_segment = UNTIMED;
        let Cold { rto, statistics, gap, tuning, room, .. } = &mut *self.cold;
        *gap = None;
        if let Some(tuner) = tuning {
            self.receiver_window = tuner.on_round_trip(self.acked).min(*room);
        }
        self.timeout = rto.timeout();
        let (samples, sum) = &mut statistics.timed_rtt_samples;
        *samples += 1;
        *sum += u128::from(now.since(self.rtt_sent_at).as_nanos());
    }
}
