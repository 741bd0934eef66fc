//! How the entries of a bucket are sorted.

use super::{Calendar, SHIFTS, SHORT};
use crate::timed::{Timed, precedes};

/// One in so many buckets sorted by ranks is asked how many of its entries came late.
const LATE_BY_SAMPLE: u64 = 8;
/// A place in a short bucket and a rough time within the bucket fit into 16 bits together, of which
/// processors compare many at once.
const PLACE_BITS: u32 = 6;
const TIME_BITS: u32 = 10;
const _: () = assert!(PLACE_BITS + TIME_BITS == 16 && TIME_BITS <= *SHIFTS.start());
const _: () = assert!(SHORT == 1 << PLACE_BITS && SHORT.is_multiple_of(LANES));
/// Comparisons that processors make at once.
const LANES: usize = 32;

impl<T: Timed> Calendar<T> {
    /// Makes the few entries of a bucket that are in disorder the current ones, in order.
    ///
    /// An entry's place is the number of those that come before it. To count them takes more comparisons than
    /// to insert one after the other, but not one branch that depends on the outcome, which random order
    /// would make costly.
    #[inline(never)]
    pub(super) fn fill_by_ranks(&mut self, entries: Vec<T>) {
        // Rough time within the bucket, and place so far: no two are alike.
        let mut keys = [i16::MAX; SHORT];
        let rough = self.shift - TIME_BITS;
        for (place, (key, entry)) in keys.iter_mut().zip(&entries).enumerate() {
            let time = (entry.at().as_nanos() >> rough) as u16;
            *key = (time << PLACE_BITS | place as u16).cast_signed() ^ i16::MIN;
        }
        let mut order = [0_u8; SHORT + 1];
        for (block, &some) in
            keys.as_chunks::<LANES>().0.iter().take(entries.len().div_ceil(LANES)).enumerate()
        {
            let mut before = [0_u16; LANES];
            for &other in keys.iter().take(entries.len()) {
                before.iter_mut().zip(some).for_each(|(count, key)| *count += u16::from(other < key));
            }
            // What fills up the last block comes last.
            for (lane, rank) in before.into_iter().enumerate() {
                order[rank as usize] = (block * LANES + lane) as u8;
            }
        }
        let order = &order[..entries.len()];
        self.current.extend(order.iter().map(|&place| entries[usize::from(place)]));
        // Entries that are close to each other may not be in order yet.
        if self.current.windows(2).any(|pair| pair[0].at() >= pair[1].at()) {
            sort(&mut self.current);
        }
        if self.opened.is_multiple_of(LATE_BY_SAMPLE) {
            self.late +=
                LATE_BY_SAMPLE * order.windows(2).map(|pair| u64::from(pair[1] < pair[0])).sum::<u64>();
        }
        self.keep(entries);
    }
}

/// Sorts a bucket, keeping the order of equals, and returns how many entries it put before others. Most
/// buckets are short, and nearly in order.
#[inline]
pub(super) fn sort<T: Timed>(entries: &mut [T]) -> u64 {
    if entries.len() > SHORT {
        return sort_long(entries);
    }
    let mut late = 0;
    for place in 1..entries.len() {
        let entry = entries[place];
        if !precedes(&entry, &entries[place - 1]) {
            continue;
        }
        let mut hole = place;
        while hole > 0 && precedes(&entry, &entries[hole - 1]) {
            entries[hole] = entries[hole - 1];
            hole -= 1;
        }
        entries[hole] = entry;
        late += 1;
    }
    late
}

#[cold]
fn sort_long<T: Timed>(entries: &mut [T]) -> u64 {
    let late = entries.windows(2).filter(|pair| precedes(&pair[1], &pair[0])).count() as u64;
    if late > 0 {
        entries.sort_by_key(|entry| (entry.at(), entry.rank()));
    }
    2 * late
}
