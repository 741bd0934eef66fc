//! What a link could have sent: the integral of its rate.

use crate::{Bitrate, Duration, Instant};

/// Bits are counted in units of this part of a bit, so that a rate times a time is a whole number.
const PARTS: u128 = 1_000_000_000;

/// The rates of a link over time. Its integral over a time is the capacity of the link in that time.
#[derive(Clone, Debug)]
pub struct RateHistory {
    /// Times from which the link has a rate in bit/s, in order; the first is zero. During an outage the rate is zero.
    rows: Vec<(Instant, u64)>,
    rate: u64,
    is_down: bool,
}

impl RateHistory {
    /// The same rate for ever.
    pub fn new(rate: Bitrate) -> Self {
        Self { rows: vec![(Instant::ZERO, rate.as_bps())], rate: rate.as_bps(), is_down: false }
    }

    /// The rate in bit/s; during an outage, the one after it.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// Times from which the link has a rate in bit/s, in order, from zero on; empty if it has always been the same.
    pub fn changes(&self) -> &[(Instant, u64)] {
        if self.rows.len() > 1 { &self.rows } else { &[] }
    }

    /// The link has this rate from now on; during an outage, from its end on.
    pub fn set_rate(&mut self, rate: Bitrate, now: Instant) {
        self.rate = rate.as_bps();
        self.note(now);
    }

    /// An outage begins or ends now.
    pub fn set_down(&mut self, is_down: bool, now: Instant) {
        self.is_down = is_down;
        self.note(now);
    }

    fn note(&mut self, now: Instant) {
        self.rows.push((now, if self.is_down { 0 } else { self.rate }));
    }

    /// The capacity between two times, in 10⁻⁹ bit.
    pub fn capacity(&self, from: Instant, to: Instant) -> u128 {
        self.spans(from, to)
            .map(|(rate, from, to)| u128::from(rate) * u128::from(to.since(from).as_nanos()))
            .sum()
    }

    /// The same of a link that sends by a trace in place of its own rate, whenever there is no outage: `of_trace` has the capacity of the trace.
    pub fn capacity_by(
        &self,
        from: Instant,
        to: Instant,
        of_trace: impl Fn(Instant, Instant) -> u128,
    ) -> u128 {
        self.spans(from, to).filter(|&(rate, ..)| rate > 0).map(|(_, from, to)| of_trace(from, to)).sum()
    }

    /// Each rate between two times, from when and until when.
    fn spans(&self, from: Instant, to: Instant) -> impl Iterator<Item = (u64, Instant, Instant)> {
        let ends = self.rows[1..].iter().map(|&(at, _)| at).chain([Instant::NEVER]);
        let spans =
            self.rows.iter().zip(ends).map(move |(&(at, rate), end)| (rate, at.max(from), end.min(to)));
        spans.filter(|(_, from, to)| from < to)
    }
}

/// What a link could send and did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// The mean of its rate over the measured time, in bit/s.
    pub mean_rate_bps: f64,
    /// Bits sent over the integral of the rate; zero for a link that could send nothing.
    pub utilization: f64,
}

impl Usage {
    /// Of a link of this capacity over a time that began to send so many bytes. `last` is the size of the last of these packets, and the
    /// capacity from its beginning on: what is beyond that was not sent.
    pub(super) fn of(over: Duration, capacity: u128, bytes: u64, last: (u16, u128)) -> Self {
        let (all, nanos) = (capacity, u128::from(over.as_nanos()));
        if all == 0 || nanos == 0 {
            return Self::default();
        }
        let work = |bytes: u64| u128::from(bytes) * 8 * PARTS;
        let beyond = work(u64::from(last.0)).saturating_sub(last.1);
        Self {
            // In two parts, so that the mean of a constant rate is that rate.
            mean_rate_bps: (all / nanos) as f64 + (all % nanos) as f64 / nanos as f64,
            utilization: work(bytes).saturating_sub(beyond) as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn kbps(rate: u64) -> Bitrate {
        Bitrate::from_bps(rate * 1000).unwrap()
    }

    #[test]
    fn integrals_by_hand() {
        let mut history = RateHistory::new(kbps(1000));
        history.set_rate(kbps(500), at(2000));
        history.set_down(true, at(3000));
        history.set_rate(kbps(2000), at(3500));
        history.set_down(false, at(4000));
        let bits = |from, to| history.capacity(at(from), at(to)) / PARTS;
        assert_eq!([bits(0, 2000), bits(0, 3000), bits(1500, 2500)], [2_000_000, 2_500_000, 750_000]);
        assert_eq!([bits(0, 4000), bits(0, 5000), bits(3000, 4000)], [2_500_000, 4_500_000, 0]);
        let ones = |from: Instant, to: Instant| u128::from(to.since(from).as_nanos());
        assert_eq!(history.capacity_by(at(2500), at(4500), ones), 1_000_000_000);
    }

    #[test]
    fn usage_by_hand() {
        // .4 Mbit/s over 1, then .5 Mbit/s, each for 10 s: 8 of 15 Mbit; then the last packet is half beyond the end.
        let mut history = RateHistory::new(kbps(1000));
        history.set_rate(kbps(500), at(10_000));
        let of = |last: Instant, size| {
            let all = history.capacity(at(0), at(20_000));
            Usage::of(Duration::from_secs(20), all, 1_000_000, (size, history.capacity(last, at(20_000))))
        };
        assert_eq!(of(at(19_000), 1000), Usage { mean_rate_bps: 750_000.0, utilization: 8.0 / 15.0 });
        assert_eq!(of(at(19_990), 1250).utilization, (8e6 - 5000.0) / 15e6);
        let constant = RateHistory::new(Bitrate::from_bps(3_141_592).unwrap());
        let (from, to) = (Instant::from_nanos(17), Instant::from_nanos(12_345_678_901));
        let usage = Usage::of(to.since(from), constant.capacity(from, to), 0, (0, 0));
        assert_eq!(usage, Usage { mean_rate_bps: 3_141_592.0, utilization: 0.0 });
    }
}
