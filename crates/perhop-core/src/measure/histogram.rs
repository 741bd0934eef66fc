//! A histogram of delays with a bounded relative error and no allocation per sample.

#![expect(clippy::inline_always, reason = "each packet that leaves a queue comes through here")]

use crate::{Color, Duration};

/// 32 bins to an octave: a bin is at most 1/32 of its value wide.
const BINS_PER_OCTAVE: u64 = 32;
/// Values are counted in units of 1024 ns; the first octave is linear.
const UNIT_SHIFT: u32 = 10;
const OCTAVES: usize = 27;
const BINS: usize = BINS_PER_OCTAVE as usize * OCTAVES;

/// Counts of delays by color, in bins that are at most 3.1 % (or 1.024 µs) wide. The largest is kept exactly.
#[derive(Clone, Debug)]
pub struct DelayHistogram {
    counts: Box<[[u64; 3]; BINS]>,
    largest: [Duration; 3],
}

impl Default for DelayHistogram {
    fn default() -> Self {
        let counts = vec![[0; 3]; BINS].into_boxed_slice();
        Self { counts: counts.try_into().expect("as many bins"), largest: [Duration::ZERO; 3] }
    }
}

impl DelayHistogram {
    /// All delays of several histograms.
    pub fn sum<'a>(several: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for one in several {
            for (ours, theirs) in all.counts.iter_mut().zip(one.counts.iter()) {
                ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
            }
            for (ours, theirs) in all.largest.iter_mut().zip(one.largest) {
                *ours = theirs.max(*ours);
            }
        }
        all
    }

    /// Counts one delay.
    #[inline(always)]
    pub fn record(&mut self, color: Color, delay: Duration) {
        self.counts[bin(delay)][color.index()] += 1;
        if delay > self.largest[color.index()] {
            self.largest[color.index()] = delay;
        }
    }

    /// The largest delay of each color.
    pub fn largest(&self) -> [Duration; 3] {
        self.largest
    }

    /// The bins that were hit and those between them: their edges in seconds (one more than bins) and counts by color.
    pub fn bins(&self) -> (Vec<f64>, Vec<[u64; 3]>) {
        let end = self.counts.iter().rposition(|counts| *counts != [0; 3]).map_or(0, |last| last + 1);
        let edges = (0..=end).map(|bin| lower_edge(bin).as_secs_f64()).collect();
        (edges, self.counts[..end].to_vec())
    }
}

/// Delays of one flow in the bins of [`DelayHistogram`]. Only the bins from the shortest to the longest delay take memory, so
/// that many flows can have one each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowDelays {
    first: usize,
    counts: Vec<u32>,
    longest: Duration,
}

impl FlowDelays {
    /// Counts one delay.
    pub fn record(&mut self, delay: Duration) {
        let bin = bin(delay);
        self.longest = self.longest.max(delay);
        if self.counts.is_empty() {
            self.first = bin;
        }
        if bin < self.first {
            self.counts.splice(..0, std::iter::repeat_n(0, self.first - bin));
            self.first = bin;
        }
        let place = bin - self.first;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] = self.counts[place].saturating_add(1);
    }

    /// The `q`-quantile in seconds, linear within its bin, which ends at the longest; `None` without a delay.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total: u64 = self.counts.iter().copied().map(u64::from).sum();
        let wanted = q * total as f64;
        let mut below = 0.0;
        for (bin, &count) in (self.first..).zip(&self.counts) {
            let count = f64::from(count);
            if count > 0.0 && below + count >= wanted {
                let [low, high] = [bin, bin + 1].map(|bin| lower_edge(bin).min(self.longest).as_secs_f64());
                return Some(low + (high - low) * (wanted - below) / count);
            }
            below += count;
        }
        None
    }
}

#[inline(always)]
fn bin(delay: Duration) -> usize {
    let units = delay.as_nanos() >> UNIT_SHIFT;
    if units < BINS_PER_OCTAVE {
        return units as usize;
    }
    // A double's exponent counts octaves, and the first five bits behind it are the place within one.
    let [octaves, within] = [BINS_PER_OCTAVE.ilog2(), f64::MANTISSA_DIGITS - 1];
    let first = (f64::from(1 << octaves).to_bits() >> (within - octaves)) - BINS_PER_OCTAVE;
    let bin = ((units as f64).to_bits() >> (within - octaves)) - first;
    (bin as usize).min(BINS - 1)
}

fn lower_edge(bin: usize) -> Duration {
    let (octave, within) = (bin as u64 / BINS_PER_OCTAVE, bin as u64 % BINS_PER_OCTAVE);
    let units = if octave == 0 { within } else { (BINS_PER_OCTAVE + within) << (octave - 1) };
    Duration::from_nanos(units << UNIT_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_a_flow_by_hand() {
        // 1 to 100 units of 1.024 µs, in an order that extends the bins on both sides: one in each of the bins 1 to 63, two in
        // each of the 18 after them. 50 lie up to the upper edge of bin 50, and 99 up to that of units 98 and 99.
        let mut delays = FlowDelays::default();
        assert_eq!(delays.quantile(0.5), None);
        for units in (50..=100).chain(1..50) {
            delays.record(Duration::from_nanos(units << UNIT_SHIFT));
        }
        let units = |units: u64| Duration::from_nanos(units << UNIT_SHIFT).as_secs_f64();
        assert_eq!((delays.first, delays.counts.len()), (1, 82));
        assert_eq!(delays.quantile(0.5), Some(units(51)));
        assert_eq!(delays.quantile(0.99), Some(units(100)));
        assert_eq!(delays.quantile(1.0), Some(units(100)));
        assert_eq!(delays.quantile(0.0), Some(units(1)));
    }

    proptest! {
        #[test]
        fn a_delay_lies_in_its_bin_and_bins_are_narrow(nanos in 0_u64..4_000_000_000_000) {
            let delay = Duration::from_nanos(nanos);
            let bin = bin(delay);
            prop_assert!(lower_edge(bin) <= delay);
            if bin < BINS - 1 {
                let width = lower_edge(bin + 1).as_nanos() - lower_edge(bin).as_nanos();
                prop_assert!(delay < lower_edge(bin + 1));
                prop_assert!(width <= (nanos / 32).max(1024), "{width} for {nanos}");
            }
        }
    }
}
