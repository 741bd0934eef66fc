//! Which segment leaves, and when.

use perhop_core::{Context, Duration, Instant};

use super::{TcpSender, UNTIMED};
use crate::transport::Transmit;

/// Whether new data waits for a random time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// Never.
    Always,
    Waits,
    /// It is over: send while the window is open.
    Released,
}

impl TcpSender {
    /// The next segment to put on the wire now, if there is one.
    #[inline(always)]
    pub(in crate::transport) fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        if let Some(sequence) = self.urgent.take() {
            return Some(self.send(sequence, cx.now));
        }
        if !self.may_send() || !self.may_send_yet(cx) {
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

    /// With a send jitter, new data waits for its random time; what the window then allows goes out together.
    #[inline(always)]
    pub(in crate::transport::tcp) fn may_send_yet(&mut self, cx: &mut Context<'_>) -> bool {
        let may = self.release != Release::Waits;
        if !may {
            self.draw_jitter(cx);
        }
        may
    }

    #[cold]
    fn draw_jitter(&mut self, cx: &mut Context<'_>) {
        if self.next_send == Instant::NEVER {
            let wait = cx.rng.up_to(self.rare.params.send_jitter.as_nanos());
            self.next_send = cx.now + Duration::from_nanos(wait);
        }
    }

    /// The window is shut: what it lets out next waits anew.
    #[inline(always)]
    pub(in crate::transport::tcp) fn hold(&mut self) {
        if self.release == Release::Released {
            self.release = Release::Waits;
        }
    }

    #[inline(always)]
    pub(in crate::transport::tcp) fn send(&mut self, sequence: u32, now: Instant) -> Transmit {
        let again = sequence < self.highest;
        if !again {
            debug_assert_eq!(sequence, self.highest);
            self.highest = sequence + 1;
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
        }
        let size =
            if self.handshake && sequence == 0 { self.rare.params.ack.get() as u16 } else { self.packet };
        Transmit { sequence, size }
    }
}
