//! Which segment leaves, and when.

use perhop_core::{Context, Duration, Instant};

use super::{TcpSender, UNTIMED};
use crate::transport::Transmit;

/// What new data waits for besides the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// Nothing.
    Always,
    /// A random time that is over: it is sent while the window is open.
    Released,
    /// A random time.
    Waits,
    /// The rate of the congestion control, or of the window.
    Paced,
}

impl Release {
    pub(super) fn new(jitter: Duration, pacing: bool) -> Self {
        match (pacing, jitter.is_zero()) {
            (true, _) => Self::Paced,
            (false, true) => Self::Always,
            (false, false) => Self::Waits,
        }
    }
}

impl TcpSender {
    /// Returns the next segment that the window lets out now, if there is one.
    #[inline]
    pub(super) fn transmit_next(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        if let Some(sequence) = self.send_now.take() {
            return Some(self.send(sequence, cx.now));
        }
        if !self.may_send() || !self.may_send_yet(cx) {
            return None;
        }
        let sequence = self.next;
        self.next += 1;
        Some(self.send(sequence, cx.now))
    }

    #[inline]
    fn may_send(&mut self) -> bool {
        let may = self.next - self.acked < self.allowed_in_flight() && self.next < self.data_end;
        if !may {
            self.hold();
        }
        may
    }

    /// Returns whether new data need not wait. With a send jitter, it waits for its random time; what the
    /// window then allows goes out together. A paced segment waits until the one before it has left at the
    /// pacing rate.
    #[inline]
    pub(super) fn may_send_yet(&mut self, cx: &mut Context<'_>) -> bool {
        match self.release {
            Release::Always | Release::Released => true,
            Release::Paced => !self.waits_for_pace(cx.now),
            Release::Waits => {
                self.draw_wait(cx);
                false
            }
        }
    }

    #[cold]
    fn draw_wait(&mut self, cx: &mut Context<'_>) {
        if self.next_send == Instant::NEVER {
            let wait = cx.rng.up_to(self.cold.params.send_jitter.as_nanos());
            self.next_send = cx.now + Duration::from_nanos(wait);
        }
    }

    /// Returns whether a paced segment waits now until the one before it has left at the pacing rate.
    #[inline]
    pub(super) fn waits_for_pace(&mut self, now: Instant) -> bool {
        let waits = now < self.cold.paced_until;
        self.next_send = if waits { self.cold.paced_until } else { Instant::NEVER };
        waits
    }

    /// Returns whether there is new data that the receiver's window lets out.
    #[inline]
    pub(super) fn has_new(&self) -> bool {
        self.next < self.data_end && self.next - self.acked < self.receiver_window
    }

    pub(super) fn is_paced(&self) -> bool {
        self.release == Release::Paced
    }

    /// Notes a segment in a function of its own, which keeps others short.
    #[cold]
    fn note_sent_elsewhere(&mut self, sequence: u32, size: u16, now: Instant) {
        self.note_sent(sequence, size, now);
    }

    /// Notes a segment for pacing, and for what its congestion control needs.
    #[inline]
    pub(super) fn note_sent(&mut self, sequence: u32, size: u16, now: Instant) {
        self.note_grant_used(now);
        if self.is_opening() {
            return;
        }
        if let Some(delivery) = &mut self.cold.delivery {
            let in_flight = (self.next - self.acked).saturating_sub(self.cold.left_network);
            delivery.on_sent(sequence, self.sent_end == self.acked, in_flight, now);
        }
        if self.is_paced()
            && let Some(gap) = self.gap_after(size)
        {
            self.cold.paced_until = self.cold.paced_until.max(now) + gap;
        }
    }

    /// Notes that the window is shut, or that there is nothing to send: what leaves next waits anew.
    #[inline]
    pub(super) fn hold(&mut self) {
        if self.release == Release::Released {
            self.release = Release::Waits;
        }
        if self.notes && self.cold.granted.is_some() {
            self.note_lack_of_data();
        }
    }

    #[inline]
    pub(super) fn send(&mut self, sequence: u32, now: Instant) -> Transmit {
        let size = if !self.is_data(sequence) {
            self.cold.params.ack.get() as u16
        } else if sequence + 1 == self.data_end {
            self.last
        } else {
            self.packet
        };
        if self.notes {
            self.note_sent_elsewhere(sequence, size, now);
        }
        let again = sequence < self.sent_end;
        if !again {
            debug_assert_eq!(sequence, self.sent_end);
            self.sent_end = sequence + 1;
            self.cold.trips.on_sent(u32::from(self.is_data(sequence)), now);
            if self.rtt_segment == UNTIMED {
                self.rtt_segment = sequence;
                self.rtt_sent_at = now;
            }
        }
        if self.expiry == Instant::NEVER {
            self.expiry = now + self.timeout;
        }
        if again {
            self.cold.statistics.retransmitted += 1;
            self.cold.trips.on_resent(sequence);
        }
        let mut transmit = Transmit::plain(sequence, size);
        // A SYN is not capable (RFC 3168, section 6.1.1).
        if self.notes && self.is_data(sequence) {
            if again {
                transmit.ecn = self.cold.ecn.codepoint_of_retransmissions();
            } else {
                transmit.ecn = self.cold.ecn.codepoint;
                transmit.reduced = std::mem::take(&mut self.cold.ecn.says_reduced);
            }
        }
        transmit
    }
}
