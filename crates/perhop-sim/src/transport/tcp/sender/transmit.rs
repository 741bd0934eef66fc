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
    /// The next segment to put on the wire now, if there is one.
    #[inline(always)]
    pub(in crate::transport) fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        if let Some(sequence) = self.urgent.take() {
            return Some(self.send(sequence, cx.now));
        }
        if !self.may_send() || !self.may_send_yet(cx) {
            self.note_limit(cx.now);
            return None;
        }
        let sequence = self.next;
        self.next += 1;
        Some(self.send(sequence, cx.now))
    }

    #[inline(always)]
    fn may_send(&mut self) -> bool {
        let may = self.next - self.acked < self.limit && self.next < self.end;
        if !may {
            self.hold();
        }
        may
    }

    /// With a send jitter, new data waits for its random time; what the window then allows goes out together. A paced segment
    /// waits until the one before it has left at the pacing rate.
    #[inline(always)]
    pub(in crate::transport::tcp) fn may_send_yet(&mut self, cx: &mut Context<'_>) -> bool {
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
            let wait = cx.rng.up_to(self.rare.params.send_jitter.as_nanos());
            self.next_send = cx.now + Duration::from_nanos(wait);
        }
    }

    /// Whether a paced segment waits now until the one before it has left at the pacing rate.
    #[inline]
    pub(in crate::transport::tcp) fn waits_for_pace(&mut self, now: Instant) -> bool {
        let waits = now < self.rare.paced_until;
        self.next_send = if waits { self.rare.paced_until } else { Instant::NEVER };
        waits
    }

    /// It has new data that the receiver's window lets out.
    #[inline]
    pub(in crate::transport::tcp) fn has_new(&self) -> bool {
        self.next < self.end && self.next - self.acked < self.most
    }

    /// Segments are paced.
    pub(in crate::transport::tcp) fn is_paced(&self) -> bool {
        self.release == Release::Paced
    }

    /// The same as [`note_sent`](Self::note_sent), in a function of its own, which keeps others short.
    #[cold]
    fn note_sent_elsewhere(&mut self, sequence: u32, size: u16, now: Instant) {
        self.note_sent(sequence, size, now);
    }

    /// Notes a segment for pacing, and for what its congestion control needs.
    #[inline(always)]
    pub(super) fn note_sent(&mut self, sequence: u32, size: u16, now: Instant) {
        self.note_grant_used(now);
        if self.is_opening() {
            return;
        }
        if let Some(delivery) = &mut self.rare.delivery {
            let in_flight = (self.next - self.acked).saturating_sub(self.rare.absent);
            delivery.on_sent(sequence, self.highest == self.acked, in_flight, now);
        }
        if self.is_paced()
            && let Some(gap) = self.gap_after(size)
        {
            self.rare.paced_until = self.rare.paced_until.max(now) + gap;
        }
    }

    /// The window is shut, or there is nothing to send: what leaves next waits anew.
    #[inline(always)]
    pub(in crate::transport::tcp) fn hold(&mut self) {
        if self.release == Release::Released {
            self.release = Release::Waits;
        }
        if self.notes && self.rare.granted.is_some() {
            self.note_lack_of_data();
        }
    }

    #[inline(always)]
    pub(in crate::transport::tcp) fn send(&mut self, sequence: u32, now: Instant) -> Transmit {
        let size = if !self.is_data(sequence) {
            self.rare.params.ack.get() as u16
        } else if sequence + 1 == self.end {
            self.last
        } else {
            self.packet
        };
        if self.notes {
            self.note_sent_elsewhere(sequence, size, now);
        }
        let again = sequence < self.highest;
        if !again {
            debug_assert_eq!(sequence, self.highest);
            self.highest = sequence + 1;
            self.rare.trips.on_sent(u32::from(self.is_data(sequence)), now);
            if self.timed == UNTIMED {
                self.timed = sequence;
                self.timed_at = now;
            }
        }
        if self.expiry == Instant::NEVER {
            self.expiry = now + self.timeout;
        }
        if again {
            self.rare.statistics.retransmitted += 1;
            self.rare.trips.on_resent(sequence);
        }
        let mut transmit = Transmit::plain(sequence, size);
        // A SYN is not capable (RFC 3168, section 6.1.1).
        if self.notes && self.is_data(sequence) {
            if again {
                transmit.ecn = self.rare.ecn.codepoint_of_retransmissions();
            } else {
                transmit.ecn = self.rare.ecn.codepoint;
                transmit.reduced = self.rare.ecn.take_reduced();
            }
        }
        transmit
    }
}
