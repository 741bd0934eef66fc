//! How late packets left.

use hdrhistogram::Histogram;
use perhop_core::Duration;

/// How late packets left: the time between when a packet was to leave and when it did, to three digits.
#[derive(Clone, Debug)]
pub struct Lateness {
    nanos: Histogram<u64>,
    /// The longest time between two reads of the devices while there was work.
    pause: Duration,
}

/// The longest lateness that is resolved; a packet that is later is useless anyway.
const LONGEST: u64 = 60_000_000_000;

impl Default for Lateness {
    fn default() -> Self {
        let nanos = Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds that make sense");
        Self { nanos, pause: Duration::ZERO }
    }
}

impl Lateness {
    /// A packet left so late.
    #[inline]
    pub fn record(&mut self, late: Duration) {
        self.nanos.saturating_record(late.as_nanos());
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

    /// The lateness that this share of packets does not exceed; zero if there were none.
    pub fn quantile(&self, share: f64) -> Duration {
        if self.nanos.is_empty() {
            Duration::ZERO
        } else {
            Duration::from_nanos(self.nanos.value_at_quantile(share))
        }
    }

    /// The latest.
    pub fn largest(&self) -> Duration {
        if self.nanos.is_empty() { Duration::ZERO } else { Duration::from_nanos(self.nanos.max()) }
    }

    /// The longest time between two reads of the devices.
    pub fn longest_pause(&self) -> Duration {
        self.pause
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.nanos.reset();
        self.pause = Duration::ZERO;
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
        assert!(lateness.largest().as_nanos().abs_diff(1_000_000) <= 1000);
    }
}
