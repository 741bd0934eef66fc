//! A histogram of delays with a bounded relative error. It grows with the largest delay, by octaves: a network has many, and most
//! need few. Counts of a color stand together and are short, so that those of the usual delays are in few lines of the processor's cache.
//! Which bin a delay falls into is not known before it ends, so where there are many histograms the line of its count is rarely in the
//! cache. [There](DelayHistogram::note) the bins of some delays are noted in one line, and counted together, so that the processor waits for
//! their lines at the same time.

#![expect(clippy::inline_always, reason = "each packet that leaves a queue comes through here")]

use crate::{Color, Duration};

/// 32 bins to an octave: a bin is at most 1/32 of its value wide.
const BINS_PER_OCTAVE: u64 = 32;
/// Values are counted in units of 1024 ns; the first octave is linear.
const UNIT_SHIFT: u32 = 10;
const OCTAVES: usize = 27;
const BINS: usize = BINS_PER_OCTAVE as usize * OCTAVES;

/// Counts of delays by color, in bins that are at most 3.1 % (or 1.024 µs) wide. The largest is kept exactly.
#[derive(Clone, Debug, Default)]
pub struct DelayHistogram {
    colors: [OfColor; 3],
}

/// So many delays are noted before they are counted: then what is noted fills a line of the cache.
const NOTED: usize = 10;

/// The delays of one color.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
struct OfColor {
    /// How many of the bins that are `noted` are not in the counts yet.
    pending: u8,
    /// Delays are noted first.
    notes: bool,
    noted: [u16; NOTED],
    largest: Duration,
    /// Up to the end of the octave of the largest delay that is counted; without [`carries`](Self::carries).
    counts: Vec<u32>,
    /// A bin for each time that its count began anew, after 2³² delays; `None` until one has.
    #[expect(
        clippy::box_collection,
        reason = "it is nearly always absent, and a pointer takes a third of the cache"
    )]
    carries: Option<Box<Vec<usize>>>,
}

const _: () = assert!(size_of::<OfColor>() == 64);

impl DelayHistogram {
    /// All delays of several histograms.
    pub fn sum<'a>(several: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for one in several {
            all.colors.iter_mut().zip(&one.colors).for_each(|(ours, theirs)| ours.add(theirs));
        }
        all
    }

    /// Delays are noted first from now on, because the state of many ports is not in the processor's cache.
    pub fn note(&mut self) {
        self.colors.iter_mut().for_each(|of_color| of_color.notes = true);
    }

    /// Counts one delay.
    #[inline(always)]
    pub fn record(&mut self, color: Color, delay: Duration) {
        self.colors[color.index()].record(delay);
    }

    /// The largest delay of each color.
    pub fn largest(&self) -> [Duration; 3] {
        self.colors.each_ref().map(|of_color| of_color.largest)
    }

    /// The bins that were hit and those between them: their edges in seconds (one more than bins) and counts by color.
    pub fn bins(&self) -> (Vec<f64>, Vec<[u64; 3]>) {
        let of_colors = self.colors.each_ref().map(OfColor::counts);
        let end = of_colors.iter().map(Vec::len).max().unwrap_or(0);
        let edges = (0..=end).map(|bin| lower_edge(bin).as_secs_f64()).collect();
        let count = |bin: usize| of_colors.each_ref().map(|counts| counts.get(bin).copied().unwrap_or(0));
        (edges, (0..end).map(count).collect())
    }
}

impl OfColor {
    #[inline(always)]
    fn record(&mut self, delay: Duration) {
        let bin = bin(delay);
        self.largest = delay.max(self.largest);
        if self.notes {
            self.note(bin);
        } else {
            if bin >= self.counts.len() {
                self.grow(bin);
            }
            self.count(bin, 1);
        }
    }

    #[inline(always)]
    fn note(&mut self, bin: usize) {
        if usize::from(self.pending) >= NOTED {
            self.count_noted();
        }
        self.noted[usize::from(self.pending)] = bin as u16;
        self.pending += 1;
    }

    /// Counts the delays whose bins are noted.
    #[inline(never)]
    fn count_noted(&mut self) {
        let noted = self.noted;
        let pending = &noted[..usize::from(std::mem::take(&mut self.pending))];
        let last = usize::from(pending.iter().copied().max().unwrap_or(0));
        if last >= self.counts.len() {
            self.grow(last);
        }
        for &bin in pending {
            self.count(usize::from(bin), 1);
        }
    }

    #[inline]
    fn count(&mut self, bin: usize, delays: u32) {
        let (count, is_anew) = self.counts[bin].overflowing_add(delays);
        self.counts[bin] = count;
        if is_anew {
            self.carry(bin);
        }
    }

    /// Makes room up to the end of the octave of a bin.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, bin: usize) {
        let octave = BINS_PER_OCTAVE as usize;
        let bins = (bin / octave + 1) * octave;
        self.counts.reserve_exact(bins - self.counts.len());
        self.counts.resize(bins, 0);
    }

    #[cold]
    #[inline(never)]
    fn carry(&mut self, bin: usize) {
        self.carries.get_or_insert_default().push(bin);
    }

    fn carries(&self) -> impl Iterator<Item = usize> {
        self.carries.iter().flat_map(|carries| carries.iter().copied())
    }

    /// The bins that are noted and not counted yet.
    fn pending(&self) -> impl Iterator<Item = usize> {
        self.noted[..usize::from(self.pending)].iter().map(|&bin| usize::from(bin))
    }

    fn add(&mut self, other: &Self) {
        let counted = other.counts.len().max(other.pending().max().map_or(0, |bin| bin + 1));
        if counted > self.counts.len() {
            self.counts.resize(counted, 0);
        }
        for (bin, &theirs) in other.counts.iter().enumerate() {
            self.count(bin, theirs);
        }
        other.pending().for_each(|bin| self.count(bin, 1));
        other.carries().for_each(|bin| self.carry(bin));
        self.largest = self.largest.max(other.largest);
    }

    /// The counts up to the last bin that was hit.
    fn counts(&self) -> Vec<u64> {
        let mut counts: Vec<u64> = self.counts.iter().copied().map(u64::from).collect();
        self.carries().for_each(|bin| counts[bin] += 1 << 32);
        for bin in self.pending() {
            if bin >= counts.len() {
                counts.resize(bin + 1, 0);
            }
            counts[bin] += 1;
        }
        let end = counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        counts.truncate(end);
        counts
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
        // One before the first is far behind the last.
        let place = bin.wrapping_sub(self.first);
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(1);
        } else {
            self.count_beyond(bin);
        }
    }

    /// Counts one in a bin that has no place yet.
    #[cold]
    fn count_beyond(&mut self, bin: usize) {
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
        self.counts[place] = 1;
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

/// The number of the bin that holds a delay, below 1024.
#[inline]
pub fn delay_bin(delay: Duration) -> usize {
    bin(delay)
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
    let bin = ((units.cast_signed() as f64).to_bits() >> (within - octaves)) - first;
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

    #[test]
    fn counts_beyond_32_bits_are_kept() {
        let one = |count: u32| {
            let mut histogram = DelayHistogram::default();
            histogram.note();
            histogram.record(Color::Yellow, Duration::from_nanos(5 << UNIT_SHIFT));
            let of_color = &mut histogram.colors[Color::Yellow.index()];
            of_color.count_noted();
            of_color.counts[5] = count;
            histogram
        };
        let mut histogram = one(u32::MAX);
        histogram.record(Color::Yellow, Duration::from_nanos(5 << UNIT_SHIFT));
        histogram.record(Color::Green, Duration::from_nanos(2 << UNIT_SHIFT));
        let (edges, counts) = histogram.bins();
        assert_eq!((edges.len(), counts.len(), counts[2], counts[5]), (7, 6, [1, 0, 0], [0, 1 << 32, 0]));
        let sum = DelayHistogram::sum([&histogram, &one(3), &one(u32::MAX), &one(u32::MAX - 1)]);
        assert_eq!(sum.bins().1[5], [0, 3 << 32, 0]);
        assert_eq!(sum.largest(), [2_u64, 5, 0].map(|units| Duration::from_nanos(units << UNIT_SHIFT)));
    }

    proptest! {
        /// Delays are counted whether they are noted or in the counts already, and so are those of a sum.
        #[test]
        fn every_delay_is_counted_once(
            delays in prop::collection::vec((0_usize..3, 0_u64..3_000_000), 0..60),
            split in 0_usize..60,
            are_noted in prop::array::uniform3(any::<bool>()),
        ) {
            let mut by_hand = vec![[0_u64; 3]; BINS];
            let [mut all, mut first, mut second] = [(); 3].map(|()| DelayHistogram::default());
            for (histogram, is_noted) in [&mut all, &mut first, &mut second].into_iter().zip(are_noted) {
                if is_noted {
                    histogram.note();
                }
            }
            let mut halves = [first, second];
            for (n, &(color, nanos)) in delays.iter().enumerate() {
                let (color, delay) = (Color::ALL[color], Duration::from_nanos(nanos));
                by_hand[bin(delay)][color.index()] += 1;
                all.record(color, delay);
                halves[usize::from(n >= split)].record(color, delay);
            }
            let end = by_hand.iter().rposition(|counts| *counts != [0; 3]).map_or(0, |last| last + 1);
            prop_assert_eq!(&all.bins().1, &by_hand[..end]);
            let sum = DelayHistogram::sum(&halves);
            prop_assert_eq!(sum.bins(), all.bins());
            prop_assert_eq!(sum.largest(), all.largest());
        }

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
