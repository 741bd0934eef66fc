//! The round trips of all segments of data that are sent once, for reports (Karn & Partridge 1987: a segment
//! that was sent again gives none). An ACK that also covers a segment that was sent again waited for it, so
//! what it covers gives none either, as in Linux's `tcp_clean_rtx_queue`. The sender's own measurement, which
//! its timer follows, is [another](super::timer).

use perhop_core::Instant;

use crate::transport::tcp::outstanding::Outstanding;

/// In place of the time when a segment was sent: it was sent again.
const AGAIN: Instant = Instant::from_nanos(Instant::NEVER.as_nanos() - 1);

/// When each outstanding segment was sent, [`AGAIN`], or [`Instant::NEVER`] if it has arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTrips {
    sent: Outstanding<Instant>,
    /// The segments that have been acknowledged, and the exact sum of their round trips in nanoseconds.
    samples: (u64, u128),
}

impl RoundTrips {
    /// Makes an account with nothing outstanding; this segment comes first.
    pub(super) fn from_segment(first: u32) -> Self {
        Self { sent: Outstanding::from_segment(first), ..Self::default() }
    }

    /// Notes that the next segments of new data are sent.
    #[inline(always)]
    pub(super) fn on_sent(&mut self, segments: u32, now: Instant) {
        (0..segments).for_each(|_| self.sent.push(now));
    }

    /// Notes that a segment is sent again.
    #[inline]
    pub(super) fn on_resent(&mut self, sequence: u32) {
        if let Some(at) = self.sent.get_mut(sequence) {
            *at = AGAIN;
        }
    }

    /// Notes that an ACK covers a segment, for the first time or again.
    #[inline]
    pub(super) fn on_arrived(&mut self, sequence: u32, now: Instant) {
        if let Some(at) = self.sent.get_mut(sequence) {
            let sent = std::mem::replace(at, Instant::NEVER);
            if sent < AGAIN {
                self.samples.0 += 1;
                self.samples.1 += u128::from(now.since(sent).as_nanos());
            }
        }
    }

    /// Notes that an ACK covers all below `expected`.
    #[inline(always)]
    pub(super) fn pass(&mut self, expected: u32, now: Instant) {
        let (mut segments, mut times, mut repaired) = (0, 0, false);
        self.sent.take_below(expected, |sent| {
            if sent < AGAIN {
                segments += 1;
                times += u128::from(now.since(sent).as_nanos());
            } else if sent == AGAIN {
                repaired = true;
            }
        });
        if !repaired {
            self.samples.0 += segments;
            self.samples.1 += times;
        }
    }

    /// Gives up [room](Outstanding::fit) for records.
    pub(super) fn fit(&mut self) {
        self.sent.fit();
    }

    pub(super) fn samples(&self) -> (u64, u128) {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_segments_that_were_sent_once() {
        let at = Instant::from_nanos;
        let mut trips = RoundTrips::from_segment(1);
        trips.on_sent(2, at(0));
        trips.on_sent(3, at(10));
        // Segment 4 is reported first, then 1 is covered: 30 - 10 and 40 - 0.
        trips.on_arrived(4, at(30));
        trips.on_arrived(4, at(35));
        trips.pass(2, at(40));
        trips.pass(2, at(50));
        assert_eq!(trips.samples(), (2, 60));
        // Segment 2 was sent again, and 3 waited for it. The last, 5, arrives alone: 90 - 10.
        trips.on_resent(2);
        trips.pass(5, at(80));
        assert_eq!(trips.samples(), (2, 60));
        trips.pass(9, at(90));
        assert_eq!(trips.samples(), (3, 140));
    }
}
