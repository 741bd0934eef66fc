//! The round trips of all segments of data that are sent once, for reports (Karn & Partridge 1987: a segment that was sent again gives
//! none). The sender's own measurement, which its timer follows, is [another](super::timer).

use perhop_core::Instant;

use crate::transport::tcp::outstanding::Outstanding;

/// When each outstanding segment was sent; [`Instant::NEVER`] if it was sent again, or has arrived.
#[derive(Clone, Debug, Default)]
pub(in crate::transport::tcp) struct RoundTrips {
    sent: Outstanding<Instant>,
    /// The segments that have been acknowledged, and the exact sum of their round trips in nanoseconds.
    samples: (u64, u128),
}

impl RoundTrips {
    /// Nothing is outstanding; this segment comes first.
    pub(super) fn from_segment(first: u32) -> Self {
        Self { sent: Outstanding::from_segment(first), ..Self::default() }
    }

    /// The next segments of new data are sent.
    #[inline(always)]
    pub(super) fn on_sent(&mut self, segments: u32, now: Instant) {
        (0..segments).for_each(|_| self.sent.push(now));
    }

    /// A segment is sent again.
    #[inline]
    pub(super) fn on_resent(&mut self, sequence: u32) {
        if let Some(at) = self.sent.get_mut(sequence) {
            *at = Instant::NEVER;
        }
    }

    /// An ACK covers a segment, for the first time or again.
    #[inline]
    pub(super) fn on_arrived(&mut self, sequence: u32, now: Instant) {
        if let Some(at) = self.sent.get_mut(sequence) {
            let sent = std::mem::replace(at, Instant::NEVER);
            add(&mut self.samples, sent, now);
        }
    }

    /// An ACK covers all below `expected`.
    #[inline(always)]
    pub(super) fn pass(&mut self, expected: u32, now: Instant) {
        let samples = &mut self.samples;
        self.sent.take_below(expected, |sent| add(samples, sent, now));
    }

    pub(super) fn samples(&self) -> (u64, u128) {
        self.samples
    }
}

/// A segment that was sent at `sent`, if it has a round trip, is acknowledged.
#[inline(always)]
fn add(samples: &mut (u64, u128), sent: Instant, now: Instant) {
    if sent != Instant::NEVER {
        samples.0 += 1;
        samples.1 += u128::from(now.since(sent).as_nanos());
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
        // Segment 4 is reported first, 2 was sent again, and 1 and 3 arrive with it: 30 - 10, 40 - 0 and 40 - 10.
        trips.on_arrived(4, at(30));
        trips.on_resent(2);
        trips.on_arrived(4, at(35));
        trips.pass(5, at(40));
        trips.pass(5, at(50));
        assert_eq!(trips.samples(), (3, 90));
        trips.pass(9, at(60));
        assert_eq!(trips.samples(), (4, 140));
    }
}
