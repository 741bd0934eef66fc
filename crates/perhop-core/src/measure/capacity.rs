//! What a link could have sent: the integral of its rate.

use crate::{Bitrate, Duration, Instant};

/// Bits are counted in units of this part of a bit, so that a rate times a time is a whole number.
const PARTS: u128 = 1_000_000_000;

/// A change of what a link can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateChange {
    /// The link has this rate from then on; if it is down, from the end of the outage on.
    Rate(Bitrate),
    /// An outage begins.
    Down,
    /// The outage ends.
    Up,
}

/// The rates of a link over time, also those that are known beforehand. Its integral over a time is the
/// capacity of the link in that time.
#[derive(Clone, Debug)]
pub struct RateHistory {
    first: Bitrate,
    /// In the order of time.
    changes: Vec<(Instant, RateChange)>,
}

impl RateHistory {
    /// A history of one rate, to which changes can be [added](Self::add).
    pub fn new(rate: Bitrate) -> Self {
        Self { first: rate, changes: Vec::new() }
    }

    /// Adds a change, after others of its time.
    pub fn add(&mut self, at: Instant, change: RateChange) {
        let place = self.changes.partition_point(|&(time, _)| time <= at);
        self.changes.insert(place, (at, change));
    }

    /// The rate at a time, whether or not there is an outage.
    pub fn rate_at(&self, now: Instant) -> Bitrate {
        let by_now = self.changes.iter().take_while(|&&(at, _)| at <= now);
        let rates = by_now.filter_map(|&(_, change)| match change {
            RateChange::Rate(rate) => Some(rate),
            RateChange::Down | RateChange::Up => None,
        });
        rates.last().unwrap_or(self.first)
    }

    /// Times from which the link has a rate in bit/s, in order, from zero on; during an outage it is zero.
    fn rows(&self) -> Vec<(Instant, u64)> {
        let (mut rate, mut is_down) = (self.first.as_bps(), false);
        let mut rows = vec![(Instant::ZERO, rate)];
        for &(at, change) in &self.changes {
            match change {
                RateChange::Rate(new) => rate = new.as_bps(),
                RateChange::Down => is_down = true,
                RateChange::Up => is_down = false,
            }
            let now = if is_down { 0 } else { rate };
            if rows.last().is_some_and(|&(last, _)| last == at) {
                rows.pop();
            }
            if rows.last().is_none_or(|&(_, last)| last != now) {
                rows.push((at, now));
            }
        }
        rows
    }

    /// The rates that begin before a time; empty if it is always the same.
    pub fn changes_before(&self, end: Instant) -> Vec<(Instant, u64)> {
        let mut rows = self.rows();
        rows.retain(|&(at, _)| at < end);
        if rows.len() > 1 { rows } else { Vec::new() }
    }

    /// The capacity between two times, in 10⁻⁹ bit.
    pub fn capacity(&self, from: Instant, to: Instant) -> u128 {
        let spans = self.spans(from, to).into_iter();
        spans.map(|(rate, from, to)| u128::from(rate) * u128::from(to.since(from).as_nanos())).sum()
    }

    /// The capacity between two times of a link that follows a trace, in 10⁻⁹ bit: that of the trace,
    /// `of_trace`, wherever there is no outage.
    pub fn capacity_by(
        &self,
        from: Instant,
        to: Instant,
        of_trace: impl Fn(Instant, Instant) -> u128,
    ) -> u128 {
        let spans = self.spans(from, to).into_iter().filter(|&(rate, ..)| rate > 0);
        spans.map(|(_, from, to)| of_trace(from, to)).sum()
    }

    /// Each rate between two times, from when and until when.
    fn spans(&self, from: Instant, to: Instant) -> Vec<(u64, Instant, Instant)> {
        if self.changes.is_empty() {
            return vec![(self.first.as_bps(), from, to.max(from))];
        }
        let rows = self.rows();
        let ends = rows[1..].iter().map(|&(at, _)| at).chain([Instant::NEVER]);
        let spans = rows.iter().zip(ends).map(|(&(at, rate), end)| (rate, at.max(from), end.min(to)));
        spans.filter(|(_, from, to)| from < to).collect()
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
    /// The usage of a link of this capacity, in 10⁻⁹ bit, that began to send so many bytes over a time.
    /// `last` is the size of the last packet, and the capacity since its transmission began: bits beyond that
    /// were not sent.
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
        history.add(at(3000), RateChange::Down);
        history.add(at(4000), RateChange::Up);
        history.add(at(2000), RateChange::Rate(kbps(500)));
        history.add(at(3500), RateChange::Rate(kbps(2000)));
        let bits = |from, to| history.capacity(at(from), at(to)) / PARTS;
        assert_eq!([bits(0, 2000), bits(0, 3000), bits(1500, 2500)], [2_000_000, 2_500_000, 750_000]);
        assert_eq!([bits(0, 4000), bits(0, 5000), bits(3000, 4000)], [2_500_000, 4_500_000, 0]);
        let ones = |from: Instant, to: Instant| u128::from(to.since(from).as_nanos());
        assert_eq!(history.capacity_by(at(2500), at(4500), ones), 1_000_000_000);
        let rows = [(0, 1_000_000), (2000, 500_000), (3000, 0), (4000, 2_000_000)];
        assert_eq!(history.changes_before(at(5000)), rows.map(|(millis, rate)| (at(millis), rate)));
        assert_eq!([3499, 3500].map(|millis| history.rate_at(at(millis))), [kbps(500), kbps(2000)]);
        history.add(at(6000), RateChange::Rate(kbps(2000)));
        assert_eq!(history.changes_before(at(9000)).len(), 4, "a change to what it is anyway is none");
    }

    #[test]
    fn usage_by_hand() {
        // .4 Mbit/s over 1, then .5 Mbit/s, each for 10 s: 8 of 15 Mbit; then the last packet is half beyond
        // the end.
        let mut history = RateHistory::new(kbps(1000));
        history.add(at(10_000), RateChange::Rate(kbps(500)));
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
