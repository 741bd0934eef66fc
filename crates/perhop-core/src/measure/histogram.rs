//! A histogram of delays with a bounded relative error. It grows with the largest delay, by octaves: a
//! network has many, and most need few. Counts of a color are together and short, so that those of the usual
//! delays are in few lines of the processor's cache. Which bin a delay falls into is not known before it
//! ends, so where there are many histograms the line of its count is rarely in the cache.
//! [There](DelayHistogram::note) the bins of some delays are noted in one line, and counted together, so that
//! the processor waits for their lines at the same time.

#![expect(clippy::inline_always, reason = "each packet that leaves a queue comes through here")]

use std::collections::BTreeMap;

use super::inverted_cdf;
use crate::{Color, Duration};

/// 32 bins to an octave: a bin is at most 1/32 of its value wide.
const BINS_PER_OCTAVE: u64 = 32;
/// Values are counted in units of 1024 ns; the first octave is linear.
const UNIT_SHIFT: u32 = 10;
const OCTAVES: usize = 27;
const BINS: usize = BINS_PER_OCTAVE as usize * OCTAVES;

/// Counts of delays by color, in bins that are at most 3.1 % (or 1.024 µs) wide. The largest of each bin is
/// kept exactly, so that a [quantile](inverted_cdf) is a delay that was seen.
#[derive(Clone, Debug, Default)]
pub struct DelayHistogram {
    colors: [OfColor; 3],
}

/// So many delays are noted before they are counted: then what is noted fills a line of the cache.
const NOTED: usize = 7;

/// The delays of one color.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
struct OfColor {
    /// How many of the delays that are `noted` are not in the bins yet.
    pending: u8,
    /// Delays are noted first.
    notes: bool,
    /// In nanoseconds. A delay that is too long for it is counted at once.
    noted: [u32; NOTED],
    largest: Duration,
    /// Up to the end of the octave of the largest delay that is counted; without [`carries`](Self::carries).
    bins: Box<[Bin]>,
    /// A bin for each time that its count began anew, after 2³² delays; `None` until one has.
    #[expect(
        clippy::box_collection,
        reason = "it is nearly always absent, and a pointer takes a third of the cache"
    )]
    carries: Option<Box<Vec<usize>>>,
}

const _: () = assert!(size_of::<OfColor>() == 64);

/// The delays of one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bin {
    count: u32,
    /// The last 32 bits of the largest in nanoseconds: those before them are the same in all of a bin, if it
    /// is not [wide](WIDE).
    largest: u32,
}

/// From this bin on, of delays above 275 s, bins are wider than 32 bits of nanoseconds.
const WIDE: usize = 24 * BINS_PER_OCTAVE as usize;

impl Bin {
    #[inline]
    fn raise(&mut self, delay: u32) {
        self.largest = self.largest.max(delay);
    }

    /// Returns the largest delay of the bin of this number, none of which exceeds `longest`; of a wide one,
    /// its end.
    fn longest(self, number: usize, longest: Duration) -> Duration {
        if number >= WIDE {
            return if number == BINS - 1 { longest } else { lower_edge(number + 1).min(longest) };
        }
        Duration::from_nanos(lower_edge(number).as_nanos() & !u64::from(u32::MAX) | u64::from(self.largest))
    }
}

impl DelayHistogram {
    /// Returns all delays of several histograms.
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

    /// Returns the largest delay of each color.
    pub fn largest(&self) -> [Duration; 3] {
        self.colors.each_ref().map(|of_color| of_color.largest)
    }

    /// Returns the largest delay of each of the [bins](Self::bins); zero of one that was not hit.
    pub fn longest(&self) -> Vec<Duration> {
        let of_colors = self.colors.each_ref().map(|of_color| (of_color.counted(), of_color.largest));
        let end = of_colors.iter().map(|(bins, _)| bins.len()).max().unwrap_or(0);
        let of = |number: usize| {
            let hit = of_colors.iter().filter_map(|(bins, largest)| {
                bins.get(number).filter(|(count, _)| *count > 0).map(|(_, bin)| bin.longest(number, *largest))
            });
            hit.max().unwrap_or_default()
        };
        (0..end).map(of).collect()
    }

    /// Returns the bins that were hit and those between them: their edges in seconds (one more than bins) and
    /// counts by color.
    pub fn bins(&self) -> (Vec<f64>, Vec<[u64; 3]>) {
        let of_colors = self.colors.each_ref().map(OfColor::counted);
        let end = of_colors.iter().map(Vec::len).max().unwrap_or(0);
        let edges = (0..=end).map(|bin| lower_edge(bin).as_secs_f64()).collect();
        let count =
            |bin: usize| of_colors.each_ref().map(|bins| bins.get(bin).map_or(0, |(count, _)| *count));
        (edges, (0..end).map(count).collect())
    }
}

impl OfColor {
    #[inline(always)]
    fn record(&mut self, delay: Duration) {
        self.largest = delay.max(self.largest);
        if self.notes {
            self.note(delay);
        } else {
            self.count(delay);
        }
    }

    #[inline(always)]
    fn note(&mut self, delay: Duration) {
        let Ok(nanos) = u32::try_from(delay.as_nanos()) else { return self.count(delay) };
        if usize::from(self.pending) >= NOTED {
            self.count_noted();
        }
        self.noted[usize::from(self.pending)] = nanos;
        self.pending += 1;
    }

    /// Counts the delays that are noted.
    #[inline(never)]
    fn count_noted(&mut self) {
        let noted = self.noted.map(|nanos| Duration::from_nanos(u64::from(nanos)));
        let pending = &noted[..usize::from(std::mem::take(&mut self.pending))];
        for &delay in pending {
            self.count(delay);
        }
    }

    #[inline(always)]
    fn count(&mut self, delay: Duration) {
        let bin = delay_bin(delay);
        if bin >= self.bins.len() {
            self.grow(bin);
        }
        self.add_to(bin, 1, delay.as_nanos() as u32);
    }

    /// Adds so many delays to a bin; the last 32 bits of the largest are `largest`.
    #[inline(always)]
    fn add_to(&mut self, bin: usize, delays: u32, largest: u32) {
        let (count, is_anew) = self.bins[bin].count.overflowing_add(delays);
        self.bins[bin].count = count;
        self.bins[bin].raise(largest);
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
        let mut grown = std::mem::take(&mut self.bins).into_vec();
        grown.reserve_exact(bins - grown.len());
        grown.resize(bins, Bin::default());
        self.bins = grown.into_boxed_slice();
    }

    #[cold]
    #[inline(never)]
    fn carry(&mut self, bin: usize) {
        self.carries.get_or_insert_default().push(bin);
    }

    fn carries(&self) -> impl Iterator<Item = usize> {
        self.carries.iter().flat_map(|carries| carries.iter().copied())
    }

    /// Returns the delays that are noted and not counted yet.
    fn pending(&self) -> impl Iterator<Item = Duration> {
        self.noted[..usize::from(self.pending)].iter().map(|&nanos| Duration::from_nanos(u64::from(nanos)))
    }

    fn add(&mut self, other: &Self) {
        if other.bins.len() > self.bins.len() {
            self.grow(other.bins.len() - 1);
        }
        for (number, bin) in other.bins.iter().enumerate() {
            self.add_to(number, bin.count, bin.largest);
        }
        other.pending().for_each(|delay| self.count(delay));
        other.carries().for_each(|bin| self.carry(bin));
        self.largest = self.largest.max(other.largest);
    }

    /// Returns the bins up to the last one that was hit, and their counts.
    fn counted(&self) -> Vec<(u64, Bin)> {
        let mut all = self.clone();
        all.count_noted();
        let mut bins: Vec<_> = all.bins.iter().map(|&bin| (u64::from(bin.count), bin)).collect();
        all.carries().for_each(|bin| bins[bin].0 += 1 << 32);
        bins.truncate(bins.iter().rposition(|(count, _)| *count > 0).map_or(0, |last| last + 1));
        bins
    }
}

/// Delays of one flow in the bins of [`DelayHistogram`]. Only the bins from the shortest to the longest delay
/// take memory, so that many flows can have one each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowDelays {
    first: usize,
    bins: Vec<Bin>,
    longest: Duration,
}

impl FlowDelays {
    /// Returns the longest delay, exactly.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Counts one delay.
    pub fn record(&mut self, delay: Duration) {
        let bin = delay_bin(delay);
        self.longest = self.longest.max(delay);
        // One before the first is far behind the last.
        let place = bin.wrapping_sub(self.first);
        if place >= self.bins.len() {
            self.extend_to(bin);
        }
        let bin = &mut self.bins[bin - self.first];
        bin.count = bin.count.saturating_add(1);
        bin.raise(delay.as_nanos() as u32);
    }

    /// Makes room for a bin that has no place yet.
    #[cold]
    fn extend_to(&mut self, bin: usize) {
        if self.bins.is_empty() {
            self.first = bin;
        }
        if bin < self.first {
            self.bins.splice(..0, std::iter::repeat_n(Bin::default(), self.first - bin));
            self.first = bin;
        }
        self.bins.resize(self.bins.len().max(bin - self.first + 1), Bin::default());
    }

    /// Counts the delays of another flow, too.
    pub fn add(&mut self, other: &Self) {
        self.longest = self.longest.max(other.longest);
        if let Some(last) = other.bins.len().checked_sub(1) {
            self.extend_to(other.first);
            self.extend_to(other.first + last);
        }
        for (number, bin) in (other.first..).zip(&other.bins) {
            let own = &mut self.bins[number - self.first];
            own.count = own.count.saturating_add(bin.count);
            own.raise(bin.largest);
        }
    }

    /// Returns all delays of several flows together.
    pub fn sum<'a>(several: impl IntoIterator<Item = &'a Self>) -> DelayBins {
        let mut bins = BTreeMap::<usize, (u64, Duration)>::new();
        for one in several {
            for (number, bin) in (one.first..).zip(&one.bins).filter(|(_, bin)| bin.count > 0) {
                let (count, longest) = bins.entry(number).or_default();
                *count += u64::from(bin.count);
                *longest = bin.longest(number, one.longest).max(*longest);
            }
        }
        let first = bins.keys().next().copied().unwrap_or(0);
        let end = bins.keys().next_back().map_or(first, |last| last + 1);
        let (counts, longest) =
            (first..end).map(|number| bins.get(&number).copied().unwrap_or_default()).unzip();
        DelayBins { edges: (first..=end).map(|bin| lower_edge(bin).as_secs_f64()).collect(), counts, longest }
    }

    /// Returns the [`q`-quantile](inverted_cdf) in seconds: the longest delay in its bin; `None` without a
    /// delay.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let bins = (self.first..).zip(&self.bins);
        let longest =
            |(number, bin): (usize, &Bin)| (u64::from(bin.count), bin.longest(number, self.longest));
        inverted_cdf(bins.map(longest), q).map(Duration::as_secs_f64)
    }
}

/// Delays of flows: the bins from the first to the last that was hit, those between them included.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayBins {
    /// The edges of the bins in seconds, one more than bins.
    pub edges: Vec<f64>,
    /// How many delays fall into each bin.
    pub counts: Vec<u64>,
    /// The longest delay in each bin; zero in a bin without delays.
    pub longest: Vec<Duration>,
}

/// Returns the number of the bin that holds a delay, below 1024.
#[inline(always)]
pub fn delay_bin(delay: Duration) -> usize {
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

/// Returns the shortest delay of the bin of this [number](delay_bin).
pub fn lower_edge(bin: usize) -> Duration {
    let (octave, within) = (bin as u64 / BINS_PER_OCTAVE, bin as u64 % BINS_PER_OCTAVE);
    let units = if octave == 0 { within } else { (BINS_PER_OCTAVE + within) << (octave - 1) };
    Duration::from_nanos(units << UNIT_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::super::{DelayOutcome, nearest_rank};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_a_flow_by_hand() {
        // 1 to 100 units of 1.024 µs, in an order that extends the bins on both sides: one in each of the
        // bins 1 to 63, two in each of the 18 after them: the 97th is the first of units 96 and 97.
        let mut delays = FlowDelays::default();
        assert_eq!(delays.quantile(0.5), None);
        for units in (50..=100).chain(1..50) {
            delays.record(Duration::from_nanos(units << UNIT_SHIFT));
        }
        let units = |units: u64| Duration::from_nanos(units << UNIT_SHIFT).as_secs_f64();
        assert_eq!((delays.first, delays.bins.len()), (1, 82));
        assert_eq!(delays.quantile(0.5), Some(units(50)));
        assert_eq!(delays.quantile(0.96), Some(units(97)));
        assert_eq!(delays.quantile(1.0), Some(units(100)));
        assert_eq!(delays.quantile(0.0), Some(units(1)));
    }

    #[test]
    fn delays_of_several_flows_by_hand() {
        // Bins of 1.024 µs up to the 64th; the second flow has its longest in the bin of the first's
        // shortest.
        let flow = |nanos: &[u64]| {
            let mut delays = FlowDelays::default();
            for &nanos in nanos {
                delays.record(Duration::from_nanos(nanos));
            }
            delays
        };
        let flows = [flow(&[5 << 10, 8 << 10, (8 << 10) + 9]), flow(&[3 << 10, (5 << 10) + 7]), flow(&[])];
        let sum = FlowDelays::sum(&flows);
        assert_eq!(sum.counts, [1, 0, 2, 0, 0, 2]);
        let longest = [3 << 10, 0, (5 << 10) + 7, 0, 0, (8 << 10) + 9].map(Duration::from_nanos);
        assert_eq!(sum.longest, longest);
        assert_eq!(sum.edges, [3, 4, 5, 6, 7, 8, 9].map(|bin| lower_edge(bin).as_secs_f64()));
        let mut added = FlowDelays::default();
        for flow in &flows {
            added.add(flow);
        }
        assert_eq!(FlowDelays::sum([&added]), sum);
        let none = FlowDelays::sum(&flows[2..]);
        assert_eq!((none.edges, none.counts, none.longest), (vec![0.0], vec![], vec![]));
    }

    #[test]
    fn counts_beyond_32_bits_are_kept() {
        let one = |count: u32| {
            let mut histogram = DelayHistogram::default();
            histogram.note();
            histogram.record(Color::Yellow, Duration::from_nanos(5 << UNIT_SHIFT));
            let of_color = &mut histogram.colors[Color::Yellow.index()];
            of_color.count_noted();
            of_color.bins[5].count = count;
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

    /// Draws delays of all octaves, some of them many times.
    fn delays() -> impl Strategy<Value = Vec<(usize, u64)>> {
        let delay = prop_oneof![0..3_000_u64, 0..3_000_000_u64, 0..3_000_000_000_000_u64, 0..=u64::MAX];
        let some =
            (0_usize..3, delay, 1_usize..30).prop_map(|(color, nanos, times)| vec![(color, nanos); times]);
        prop::collection::vec(some, 0..20).prop_map(|all| all.concat())
    }

    proptest! {
        /// Each quantile is a delay that was seen, in the bin of the one that the inverted CDF has, and not
        /// below it. A constant is itself.
        #[test]
        fn quantiles_beside_the_sorted_delays(delays in delays(), shares in prop::collection::vec(0.0..=1.0_f64, 1..9), notes: bool) {
            let (mut of_port, mut of_flow) = (DelayHistogram::default(), FlowDelays::default());
            if notes {
                of_port.note();
            }
            for &(color, nanos) in &delays {
                of_port.record(Color::ALL[color], Duration::from_nanos(nanos));
                of_flow.record(Duration::from_nanos(nanos));
            }
            let of_port = DelayOutcome::of(&of_port);
            let mut sorted: Vec<u64> = delays.iter().map(|&(_, nanos)| nanos).collect();
            sorted.sort_unstable();
            let mut before = 0.0;
            let mut shares = [&[0.0, 0.5, 0.99, 1.0], &shares[..]].concat();
            shares.sort_by(f64::total_cmp);
            for share in shares {
                let [Some(found), Some(found_of_flow)] = [of_port.quantile(share), of_flow.quantile(share)] else {
                    prop_assert!(delays.is_empty());
                    continue;
                };
                let exact = Duration::from_nanos(sorted[nearest_rank(share, sorted.len() as u64) as usize - 1]);
                let fellows = || sorted.iter().map(|&nanos| Duration::from_nanos(nanos)).filter(|&delay| delay_bin(delay) == delay_bin(exact));
                prop_assert!(exact.as_secs_f64() <= found && before <= found, "{share}: {exact:?} {found}");
                if delay_bin(exact) < WIDE {
                    prop_assert_eq!(found, found_of_flow);
                    prop_assert_eq!(Some(found), fellows().max().map(Duration::as_secs_f64));
                } else {
                    prop_assert!(found <= lower_edge(delay_bin(exact) + 1).as_secs_f64() || delay_bin(exact) == BINS - 1);
                }
                prop_assert!(found <= Duration::from_nanos(*sorted.last().unwrap()).as_secs_f64());
                before = found;
            }
        }

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
                by_hand[delay_bin(delay)][color.index()] += 1;
                all.record(color, delay);
                halves[usize::from(n >= split)].record(color, delay);
            }
            let end = by_hand.iter().rposition(|counts| *counts != [0; 3]).map_or(0, |last| last + 1);
            prop_assert_eq!(&all.bins().1, &by_hand[..end]);
            let sum = DelayHistogram::sum(&halves);
            prop_assert_eq!(sum.bins(), all.bins());
            prop_assert_eq!((sum.largest(), sum.longest()), (all.largest(), all.longest()));
        }

        #[test]
        fn a_delay_lies_in_its_bin_and_bins_are_narrow(nanos in 0_u64..4_000_000_000_000) {
            let delay = Duration::from_nanos(nanos);
            let bin = delay_bin(delay);
            prop_assert!(lower_edge(bin) <= delay);
            if bin < BINS - 1 {
                let width = lower_edge(bin + 1).as_nanos() - lower_edge(bin).as_nanos();
                prop_assert!(delay < lower_edge(bin + 1));
                prop_assert!(width <= (nanos / 32).max(1024), "{width} for {nanos}");
            }
        }
    }
}
