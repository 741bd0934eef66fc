//! Delivery-rate samples and rounds, for congestion controls that
//! [need](super::super::congestion::Needs::delivery) them (draft-cheng-iccrg-delivery-rate-estimation-02,
//! section 3).
//!
//! ## Deviations
//! - Only the samples of a flow whose application hands its data over in steps can be limited by the
//!   application.

use perhop_core::Instant;

use crate::transport::tcp::congestion::{DeliverySample, LostSegment};
use crate::transport::tcp::outstanding::Outstanding;

/// What was known when each outstanding segment was sent, and how much has been delivered since.
#[derive(Clone, Debug, Default)]
pub(in crate::transport::tcp) struct DeliveryRate {
    sendings: Outstanding<Sending>,
    /// Segments delivered so far (`C.delivered`), and when the last of them was (`C.delivered_time`).
    delivered: u64,
    delivered_at: Instant,
    /// Segments found to be lost so far (`C.lost`).
    lost: u64,
    /// When the segment was sent that ends the interval of the last sample (`C.first_sent_time`).
    first_sent: Instant,
    /// The segment sent last of the ones that the present ACK delivers.
    newest: Option<Sending>,
    /// The rounds so far, and how much has been delivered when this one ends.
    round: u64,
    round_ends: u64,
    /// The application limits segments sent until so many are delivered (`C.app_limited`); 0 if none.
    limited: u64,
}

/// A segment that was sent: when, and what had been delivered by then.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    /// Segments in the network, itself included.
    in_flight: u32,
    /// The segment was sent again.
    again: bool,
    /// The application limited what was sent.
    limited: bool,
}

impl DeliveryRate {
    /// Makes an account with nothing outstanding; this segment comes first.
    pub(super) fn from_segment(first: u32) -> Self {
        Self { sendings: Outstanding::from_segment(first), ..Self::default() }
    }

    /// Notes a segment that is sent, for the first time or again, with which so many are in the network;
    /// `is_idle` if none was outstanding.
    pub(in crate::transport::tcp) fn on_sent(
        &mut self,
        sequence: u32,
        is_idle: bool,
        in_flight: u32,
        now: Instant,
    ) {
        if is_idle {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let sending = Sending {
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight,
            again: false,
            limited: self.limited > 0,
        };
        match self.sendings.get_mut(sequence) {
            Some(earlier) => *earlier = Sending { again: true, ..sending },
            None => self.sendings.push(sending),
        }
    }

    /// Notes that an ACK reports this segment for the first time.
    pub(in crate::transport::tcp) fn on_delivered(&mut self, sequence: u32, now: Instant) {
        let Some(&sending) = self.sendings.get(sequence) else { return };
        self.delivered += 1;
        self.delivered_at = now;
        if self.delivered > self.limited {
            self.limited = 0;
        }
        if self.newest.is_none_or(|newest| sending.at >= newest.at) {
            self.newest = Some(sending);
            self.first_sent = sending.at;
        }
    }

    /// Gives up [room](Outstanding::fit) for records.
    pub(super) fn fit(&mut self) {
        self.sendings.fit();
    }

    /// Notes that the application has nothing more to send, while so many segments are in the network and the
    /// window would let out more (section 3.4).
    pub(super) fn limit_by_application(&mut self, pipe: u32) {
        self.limited = (self.delivered + u64::from(pipe)).max(1);
    }

    /// Notes that a segment is lost.
    pub(in crate::transport::tcp) fn on_lost(&mut self, sequence: u32, now: Instant) -> Option<LostSegment> {
        self.lost += 1;
        let sending = self.sendings.get(sequence)?;
        Some(LostSegment { now, lost: (self.lost - sending.lost) as u32, in_flight: sending.in_flight })
    }

    /// Returns the sample of an ACK that asks for segment `acked`; none if it delivered nothing.
    #[inline(never)] // It would else be in the code of each congestion control.
    pub(in crate::transport::tcp) fn sample(&mut self, acked: u32, now: Instant) -> Option<DeliverySample> {
        self.sendings.pass(acked);
        let newest = self.newest.take()?;
        if newest.delivered >= self.round_ends {
            self.round += 1;
            self.round_ends = self.delivered;
        }
        let (acking, sending) = (now.since(newest.delivered_at), newest.at.since(newest.first_sent));
        Some(DeliverySample {
            delivered: self.delivered - newest.delivered,
            interval: acking.max(sending),
            prior: newest.delivered,
            rtt: (!newest.again).then(|| now.since(newest.at)),
            round: self.round,
            lost: self.lost - newest.lost,
            in_flight: newest.in_flight,
            limited: newest.limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_core::Duration;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_sample_takes_the_longer_of_both_intervals() {
        // 20 segments of 1500 bytes delivered when segment P is sent, at 100 ms; P is the last of those sent
        // in 28 ms. When P arrives, 30 ms after the 20th, 35 are delivered: 15 in 30 ms, 6 Mbit/s.
        let mut rate = DeliveryRate {
            delivered: 20,
            delivered_at: at(98),
            first_sent: at(72),
            ..DeliveryRate::default()
        };
        (0..15).for_each(|sequence| rate.on_sent(sequence, false, 1, at(86 + u64::from(sequence))));
        (0..15).for_each(|sequence| rate.on_delivered(sequence, at(128)));
        let sample = rate.sample(15, at(128)).unwrap();
        assert_eq!(
            (sample.delivered, sample.interval, sample.rtt),
            (15, Duration::from_millis(30), Some(Duration::from_millis(28)))
        );
        assert_eq!(sample.delivered as f64 * 12_000.0 / sample.interval.as_secs_f64(), 6e6);
    }

    #[test]
    fn rounds_end_with_the_ack_of_a_segment_sent_after_the_last_end() {
        let mut rate = DeliveryRate::default();
        let mut rounds = Vec::new();
        (0..2).for_each(|sequence| rate.on_sent(sequence, sequence == 0, 1, at(0)));
        // Each ACK lets two out: slow start. Windows of 2, 4 and 8 are a round each.
        for sequence in 0..14 {
            let now = at(40 + u64::from(sequence));
            rate.on_delivered(sequence, now);
            rounds.push(rate.sample(sequence + 1, now).unwrap().round);
            (0..2).for_each(|more| rate.on_sent(2 * sequence + 2 + more, false, 1, now));
        }
        assert_eq!(rounds, [1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3]);
        assert_eq!(rate.sample(14, at(99)), None, "nothing more was delivered");
    }

    #[test]
    fn a_segment_sent_again_counts_from_then() {
        let mut rate = DeliveryRate::default();
        (0..3).for_each(|sequence| rate.on_sent(sequence, sequence == 0, 1, at(0)));
        rate.on_delivered(1, at(40));
        assert_eq!(rate.sample(0, at(40)).unwrap().rtt, Some(Duration::from_millis(40)));
        let lost = rate.on_lost(0, at(50));
        assert_eq!(lost, Some(LostSegment { now: at(50), lost: 1, in_flight: 1 }));
        rate.on_sent(0, false, 3, at(50));
        rate.on_delivered(0, at(80));
        let sample = rate.sample(2, at(80)).unwrap();
        assert_eq!((sample.delivered, sample.rtt), (1, None), "it may be the first one that arrived");
        assert_eq!((sample.lost, sample.in_flight, sample.prior), (0, 3, 1));
        // Sent at 50 ms, after one was delivered at 40 ms: one in 40 ms, no more than the path gave.
        assert_eq!(sample.interval, Duration::from_millis(50));
    }
}
