//! How long packets take, and how unevenly they come (RFC 3550, sections 6.4.1 and A.8).

use perhop_core::measure::FlowDelays;
use perhop_core::{Duration, Instant};

use super::play_out::PlayOut;
pub use super::play_out::Played;

/// Interarrival jitter and mean one-way transit time of one flow's packets.
#[derive(Clone, Debug)]
pub struct TransitMeter {
    window: (Instant, Instant),
    last: Option<Duration>,
    /// RFC 3550's J, in nanoseconds.
    jitter: f64,
    /// Sum of J after each packet, and the number of packets.
    jitters: (f64, u64),
    /// Exact sum of the transit times in nanoseconds, and the number of packets.
    transits: (u128, u64),
    delays: FlowDelays,
    play_out: PlayOut,
}

impl TransitMeter {
    /// Makes a meter of the packets that arrive after the first time and up to the second.
    pub fn new(window: (Instant, Instant)) -> Self {
        Self {
            window,
            last: None,
            jitter: 0.0,
            jitters: (0.0, 0),
            transits: (0, 0),
            delays: FlowDelays::default(),
            play_out: PlayOut::new(None),
        }
    }

    /// Adds a play-out buffer of this length; without one, it is as long as 99 % of the packets need.
    #[must_use]
    pub fn with_play_out(self, buffer: Option<Duration>) -> Self {
        Self { play_out: PlayOut::new(buffer), ..self }
    }

    /// Notes that the packet of this number, sent then, arrives. J follows every packet; what is reported,
    /// the ones within the window.
    pub fn record(&mut self, number: u32, sent: Instant, arrival: Instant) {
        let transit = arrival.since(sent);
        let before = self.last.replace(transit);
        let counts = arrival > self.window.0 && arrival <= self.window.1;
        if let Some(before) = before {
            let difference = transit.as_nanos().abs_diff(before.as_nanos()).cast_signed() as f64;
            self.jitter += (difference - self.jitter) / 16.0;
            if counts {
                self.jitters = (self.jitters.0 + self.jitter, self.jitters.1 + 1);
            }
        }
        if counts {
            self.transits.0 += u128::from(transit.as_nanos());
            self.transits.1 += 1;
            self.delays.record(transit);
        }
        self.play_out.record(number, transit, counts);
    }

    /// Returns the transit time of the last packet.
    pub(crate) fn last(&self) -> Option<Duration> {
        self.last
    }

    /// Returns the mean of J over the packets of the window that had one before them, in seconds; `None`
    /// without such a packet.
    pub fn jitter(&self) -> Option<f64> {
        let (sum, packets) = self.jitters;
        (packets > 0).then(|| sum / packets as f64 * 1e-9)
    }

    /// Returns the mean transit time over the packets of the window, in seconds; `None` without a packet.
    pub fn mean(&self) -> Option<f64> {
        let (sum, packets) = self.transits;
        (packets > 0).then(|| sum as f64 / packets as f64 * 1e-9)
    }

    /// Returns the 99th percentile of these transit times in seconds; `None` without a packet.
    pub fn p99(&self) -> Option<f64> {
        self.delays.quantile(0.99)
    }

    /// Adds the transit times of another flow's packets.
    pub fn add(&mut self, other: &Self) {
        self.transits.0 += other.transits.0;
        self.transits.1 += other.transits.1;
        self.delays.add(&other.delays);
    }

    /// Returns the transit times over the packets of the window.
    pub fn delays(&self) -> &FlowDelays {
        &self.delays
    }

    /// Returns what became of the packets of the window at the play-out buffer; `None` of one as long as they
    /// need if none came.
    pub fn played(&self) -> Option<Played> {
        self.play_out.played()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn meter(window: (u64, u64), packets: &[(u64, u64)]) -> TransitMeter {
        let at = |millis: u64| Instant::from_nanos(millis * MILLI);
        let mut meter = TransitMeter::new((at(window.0), at(window.1)));
        for (number, &(sent, transit)) in (0..).zip(packets) {
            meter.record(number, at(sent), at(sent + transit));
        }
        meter
    }

    #[test]
    fn rfc_3550_by_hand() {
        // Transits of 10, 26, 10 and 10 ms: J = 16/16 = 1, then 1 + (16 - 1)/16 = 1.9375, then 1.9375 -
        // 1.9375/16 = 1.816_406_25 ms. Their mean is 1.584_635_4 ms, that of the transits 14 ms.
        let meter = meter((0, 1000), &[(0, 10), (20, 26), (40, 10), (60, 10)]);
        assert!((meter.jitter().unwrap() - 1.584_635_416_7e-3).abs() < 1e-12, "{:?}", meter.jitter());
        assert!((meter.mean().unwrap() - 14e-3).abs() < 1e-15, "{:?}", meter.mean());
        // The longest of four, in a bin that is 3.1 % wide.
        assert!((25.2e-3..26.9e-3).contains(&meter.p99().unwrap()), "{:?}", meter.p99());
    }

    #[test]
    fn packets_late_for_the_play_out_buffer_by_hand() {
        // The first takes 20 ms and is held for 30 ms, so that all are played 50 ms after they were sent: 50
        // ms is in time, 51 ms and 90 ms are late, and so is the last, which arrives after the end and does
        // not count.
        let packets = [(0, 20), (20, 50), (40, 51), (60, 10), (80, 90), (950, 60)];
        let of = |window: (u64, u64), buffer| {
            let at = |millis: u64| Instant::from_nanos(millis * MILLI);
            let mut meter = TransitMeter::new((at(window.0), at(window.1))).with_play_out(buffer);
            for (number, (sent, transit)) in (0..).zip(packets) {
                meter.record(number, at(sent), at(sent + transit));
            }
            meter.played().map(|Played { late, delay_s, .. }| (late, delay_s))
        };
        let buffer = Some(Duration::from_millis(30));
        assert_eq!(of((0, 1000), buffer), Some((2, Some(0.05))));
        // The first packet sets the time of play-out even if it came during the warm-up; the third came at 91
        // ms.
        assert_eq!(of((91, 1000), buffer), Some((1, Some(0.05))));
        assert_eq!(of((0, 1000), None), Some((0, Some(0.09))), "as long as five packets need");
        let none = TransitMeter::new((Instant::ZERO, Instant::NEVER));
        let fixed =
            none.clone().with_play_out(buffer).played().map(|Played { late, delay_s, .. }| (late, delay_s));
        assert_eq!((none.played(), fixed), (None, Some((0, None))));
    }

    #[test]
    fn counts_what_arrives_within_the_window_and_nothing_where_nothing_came() {
        // As above; only the third packet, at 50 ms, is within: J = 1.9375 ms, transit 10 ms.
        let within = meter((46, 69), &[(0, 10), (20, 26), (40, 10), (60, 10)]);
        assert!((within.jitter().unwrap() - 1.9375e-3).abs() < 1e-15);
        assert!((within.mean().unwrap() - 10e-3).abs() < 1e-15);
        let one = meter((0, 69), &[(0, 10)]);
        assert_eq!(
            (one.jitter(), one.mean().is_some()),
            (None, true),
            "one packet has a transit but no jitter"
        );
        let none = meter((70, 90), &[(0, 10), (20, 26), (40, 10), (60, 10)]);
        assert_eq!((none.jitter(), none.mean(), none.p99()), (None, None, None));
    }
}
