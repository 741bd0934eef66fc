//! The one definition of a quantile: the inverse of the cumulative distribution function (type 1 of Hyndman &
//! Fan 1996, "nearest rank", numpy's `inverted_cdf`). The `q`-quantile is the least value that at least the
//! share `q` of all values does not exceed, so it is one of them, a constant is its own quantile, and no
//! quantile lies outside of the least and the largest value.

/// The place, counted from 1, of the `q`-quantile among so many sorted values; 0 if there are none.
///
/// A product that exceeds a whole number by a rounding error counts as that number: .56 of 25 values is 14 of
/// them, though .56 × 25 is 14.000000000000002 in floating point.
pub fn nearest_rank(q: f64, values: u64) -> u64 {
    let place = q * values as f64;
    ((place - place * f64::EPSILON).ceil() as u64).max(1).min(values)
}

/// The `q`-quantile of sorted values; `None` without any.
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    sorted.get((nearest_rank(q, sorted.len() as u64) as usize).checked_sub(1)?).copied()
}

/// The `q`-quantile of values that come with their numbers in ascending order; `None` without any.
pub fn inverted_cdf<T>(values: impl Iterator<Item = (u64, T)> + Clone, q: f64) -> Option<T> {
    let mut left = nearest_rank(q, values.clone().map(|(number, _)| number).sum());
    for (number, value) in values.filter(|(number, _)| *number > 0) {
        if number >= left {
            return Some(value);
        }
        left -= number;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // Ranks of 10 values: ceil(10 q), at least 1.
        let ranks = [0.0, 0.05, 0.1, 0.11, 0.5, 0.51, 0.99, 1.0].map(|q| nearest_rank(q, 10));
        assert_eq!(ranks, [1, 1, 1, 2, 5, 6, 10, 10]);
        assert_eq!((nearest_rank(0.5, 0), nearest_rank(0.99, 100), nearest_rank(0.99, 101)), (0, 99, 100));
        assert_eq!((nearest_rank(0.56, 25), nearest_rank(0.07, 100), nearest_rank(0.57, 100)), (14, 7, 57));
        assert_eq!(quantile_of_sorted(&[1.0, 2.0, 3.0, 4.0], 0.5), Some(2.0));
        assert_eq!(quantile_of_sorted(&[], 0.5), None);
        let values = [(0, 'a'), (3, 'b'), (0, 'c'), (1, 'd')];
        assert_eq!(
            [0.0, 0.75, 0.76, 1.0].map(|q| inverted_cdf(values.into_iter(), q)),
            [Some('b'), Some('b'), Some('d'), Some('d')]
        );
        assert_eq!(inverted_cdf([(0, 'a')].into_iter(), 0.5), None);
    }

    proptest! {
        /// The definition: at least the share `q` does not exceed the quantile, and less than it is below.
        #[test]
        fn is_the_least_value_with_the_share(numbers in prop::collection::vec(1_u64..50, 1..20), percent in 0_u64..=100) {
            let total: u64 = numbers.iter().sum();
            let found = inverted_cdf(numbers.iter().copied().zip(0_usize..), percent as f64 / 100.0).unwrap();
            let up_to: u64 = numbers[..=found].iter().sum();
            prop_assert!(up_to * 100 >= percent * total);
            prop_assert!(found == 0 || (up_to - numbers[found]) * 100 < percent * total);
            let sorted: Vec<f64> = numbers.iter().enumerate().flat_map(|(value, &number)| vec![value as f64; number as usize]).collect();
            prop_assert_eq!(quantile_of_sorted(&sorted, percent as f64 / 100.0), Some(found as f64));
        }
    }
}
