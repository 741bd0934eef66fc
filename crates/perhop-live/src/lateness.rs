//! How late packets left.

use hdrhistogram::Histogram;
use perhop_core::Duration;

/// How late packets left: the time between when a packet was to leave and when it did, to three digits.
#[derive(Clone, Debug)]
pub struct Lateness {
    nanos: Histogram<u64>,
    least: Duration,
    largest: Duration,
    /// The longest time between two reads of the devices while there was work.
    pause: Duration,
}

/// The longest lateness that is resolved; a packet that is later is useless anyway.
const LONGEST: u64 = 60_000_000_000;

impl Default for Lateness {
    fn default() -> Self {
        let nanos = Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds that make sense");
        Self { nanos, least: Duration::AGES, largest: Duration::ZERO, pause: Duration::ZERO }
    }
}

impl Lateness {
    /// Records how late a packet left.
    #[inline]
    pub fn record(&mut self, late: Duration) {
        self.nanos.saturating_record(late.as_nanos());
        self.least = self.least.min(late);
        self.largest = self.largest.max(late);
    }

    /// Records the time between two reads of the devices.
    #[inline]
    pub fn pause(&mut self, pause: Duration) {
        self.pause = self.pause.max(pause);
    }

    /// Packets counted.
    pub fn packets(&self) -> u64 {
        self.nanos.len()
    }

    /// Returns the least lateness that at least this share of packets does not exceed, to three digits and
    /// between the least and the largest; zero if there were none.
    pub fn quantile(&self, share: f64) -> Duration {
        if self.nanos.is_empty() {
            Duration::ZERO
        } else {
            Duration::from_nanos(self.nanos.value_at_quantile(share)).clamp(self.least, self.largest)
        }
    }

    /// Returns the greatest lateness.
    pub fn largest(&self) -> Duration {
        self.largest
    }

    /// Returns the longest time between two reads of the devices.
    pub fn longest_pause(&self) -> Duration {
        self.pause
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.nanos.reset();
        (self.least, self.largest, self.pause) = (Duration::AGES, Duration::ZERO, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_counted() {
        let mut lateness = Lateness::default();
        assert_eq!((lateness.quantile(0.5), lateness.largest()), (Duration::ZERO, Duration::ZERO));
        (1..=1000).for_each(|micros| lateness.record(Duration::from_nanos(micros * 1000)));
        let within = |share, micros: u64| {
            let nanos = lateness.quantile(share).as_nanos();
            assert!(nanos.abs_diff(micros * 1000) <= micros, "{share}: {nanos}");
        };
        within(0.5, 500);
        within(0.99, 990);
        assert_eq!(lateness.largest(), Duration::from_millis(1));
    }

    #[test]
    fn a_constant_lateness_is_its_own_quantile() {
        let mut lateness = Lateness::default();
        let constant = Duration::from_nanos(5_000_501);
        (0..100).for_each(|_| lateness.record(constant));
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| lateness.quantile(share)), [constant; 4]);
    }
}
