//! A set of small numbers that finds the next one in a few steps.

use super::SIZES;

/// A set of numbers below 2¹⁶.
#[derive(Clone, Debug)]
pub(super) struct BitSet {
    words: Vec<u64>,
    /// One bit for each word that is not zero, and one for each of these words.
    summary: [u64; 16],
    top: u64,
}

const _: () = assert!(1 << *SIZES.end() <= 64 * 64 * 16);

impl BitSet {
    /// An empty set for numbers below `end`.
    pub(super) fn below(end: usize) -> Self {
        Self { words: vec![0; end.div_ceil(64)], summary: [0; 16], top: 0 }
    }

    pub(super) fn insert(&mut self, number: usize) {
        let word = number / 64;
        self.words[word] |= 1 << (number % 64);
        self.summary[word / 64] |= 1 << (word % 64);
        self.top |= 1 << (word / 64);
    }

    pub(super) fn remove(&mut self, number: usize) {
        let word = number / 64;
        self.words[word] &= !(1 << (number % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
            if self.summary[word / 64] == 0 {
                self.top &= !(1 << (word / 64));
            }
        }
    }

    /// Returns the first of its numbers from `begin` on, up to the last that there may be.
    #[inline]
    pub(super) fn first_from(&self, begin: usize) -> Option<usize> {
        let first = |bits: u64| (bits != 0).then(|| bits.trailing_zeros() as usize);
        let beyond = |place: usize| u64::MAX.checked_shl(place as u32 + 1).unwrap_or(0);
        let (word, place) = (begin / 64, begin / 64 / 64);
        if let Some(bit) = first(self.words[word] & u64::MAX << (begin % 64)) {
            return Some(word * 64 + bit);
        }
        let word = if let Some(bit) = first(self.summary[place] & beyond(word % 64)) {
            place * 64 + bit
        } else {
            let place = first(self.top & beyond(place))?;
            place * 64 + first(self.summary[place])?
        };
        Some(word * 64 + first(self.words[word])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_bit_set_finds_what_a_sorted_set_does(
            numbers in prop::collection::vec((0_usize..1 << 16, any::<bool>()), 1..60),
            near in 0_usize..1 << 16,
        ) {
            let (mut bits, mut set) = (BitSet::below(1 << 16), BTreeSet::new());
            for (number, stays) in numbers {
                bits.insert(number);
                set.insert(number);
                if !stays {
                    bits.remove(number);
                    set.remove(&number);
                }
                for begin in [0, near, number, (number + 1) % (1 << 16), number / 64 * 64, (1 << 16) - 1] {
                    prop_assert_eq!(bits.first_from(begin), set.range(begin..).next().copied());
                }
            }
        }
    }
}
