//! Distributions of times of which some had not ended when a run did.
//!
//! Times that ended alone are the short ones. Kaplan & Meier's product limit (1958, "Nonparametric estimation
//! from incomplete observations", J. Am. Stat. Assoc. 53, 457-481) uses both: each time that is open counts
//! among those that could have ended up to then, and its share goes on to all that are longer. That holds if
//! how long a time is has nothing to do with when it began, and as far as enough of them can be that long
//! before the run ends: the distribution is estimated as long as each time carries the weight of at most one
//! censored time beside its own. With arrivals at a constant rate, that is up to times of half the run.

use super::quantile_of_sorted;

/// The weight of a time, in times, must stay below this.
const MOST_PER_TIME: f64 = 2.0;

/// The share of times that are at most so long, by the product limit: it rises at each time that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ProductLimit {
    /// Times that ended, each once, ascending.
    pub times: Vec<f64>,
    /// The share of all that is at most as long as each; what lies beyond the last is not known.
    pub shares: Vec<f64>,
    /// The mean of all; where the longest is open, of each or the longest, whichever is less. `None` if none
    /// ended.
    pub mean: Option<f64>,
}

impl ProductLimit {
    /// Of times that ended, and of others so far.
    pub fn of(ended: &[f64], open: &[f64]) -> Self {
        let sorted = |times: &[f64]| {
            let mut times = times.to_vec();
            times.sort_by(f64::total_cmp);
            times
        };
        let (ended, open) = (sorted(ended), sorted(open));
        let (mut times, mut shares) = (Vec::new(), Vec::new());
        let (all, mut known) = ((ended.len() + open.len()) as f64, 0);
        // Since the last open one, this share was longer; it is of so many, of which `gone` have ended.
        let (mut longer, mut many, mut gone) = (1.0, ended.len() + open.len(), 0_usize);
        let mut passed = 0;
        for same in ended.chunk_by(|one, next| one == next) {
            let time = same[0];
            let left = open[passed..].iter().take_while(|&&one| one < time).count();
            if left > 0 {
                longer *= (many - gone) as f64 / many as f64;
                many -= gone + left;
                (gone, passed) = (0, passed + left);
            }
            gone += same.len();
            known += usize::from(all * longer <= MOST_PER_TIME * many as f64 * (1.0 + f64::EPSILON));
            times.push(time);
            shares.push(if gone == many {
                1.0
            } else {
                (1.0 - longer) + longer * (gone as f64 / many as f64)
            });
        }
        let last = |times: &[f64]| times.last().copied().unwrap_or(0.0);
        let mean = area_above(&times, &shares, last(&ended).max(last(&open)));
        times.truncate(known);
        shares.truncate(known);
        Self { times, shares, mean }
    }

    /// The least time that at least this share does not exceed; `None` where that is not known, and without
    /// times.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let place = self.shares.partition_point(|&share| share < q - f64::EPSILON);
        self.times.get(place).copied()
    }
}

/// The area above a distribution, up to the longest time.
fn area_above(times: &[f64], shares: &[f64], longest: f64) -> Option<f64> {
    let (mut area, mut before, mut longer) = (0.0, 0.0, 1.0);
    for (&time, &share) in times.iter().zip(shares) {
        area += longer * (time - before);
        (before, longer) = (time, 1.0 - share);
    }
    (!times.is_empty()).then_some(area + longer * (longest - before))
}

/// A quantile of times that ended and of others so far; `None` where it is not known.
pub fn quantile_with_open(ended: &[f64], open: &[f64], q: f64) -> Option<f64> {
    if !open.is_empty() {
        return ProductLimit::of(ended, open).quantile(q);
    }
    let mut sorted = ended.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // Of five times, one is open at 2: S is 4/5 after 1, and then of the three that are left 2/3 of that
        // is longer than 3.
        let found = ProductLimit::of(&[3.0, 1.0, 5.0, 7.0], &[2.0]);
        assert_eq!(found.times, [1.0, 3.0, 5.0, 7.0]);
        let expected = [0.2, 1.0 - 0.8 * 2.0 / 3.0, 1.0 - 0.8 / 3.0, 1.0];
        assert!(found.shares.iter().zip(expected).all(|(one, by_hand)| (one - by_hand).abs() < 1e-15));
        let levels = [0.0, 0.2, 0.4, 0.47, 0.9, 1.0].map(|q| found.quantile(q));
        assert_eq!(levels, [1.0, 1.0, 3.0, 5.0, 7.0, 7.0].map(Some));
        // The open one is 3, 5 or 7 with like chances, so as 5.
        assert!((found.mean.unwrap() - (1.0 + 3.0 + 5.0 + 5.0 + 7.0) / 5.0).abs() < 1e-14);
    }

    #[test]
    fn beyond_the_last_that_ended_nothing_is_known() {
        let found = ProductLimit::of(&[1.0, 2.0, 2.0], &[4.0, 2.0]);
        assert_eq!((&found.times[..], &found.shares[..]), (&[1.0, 2.0][..], &[0.2, 0.6][..]));
        assert_eq!([0.5, 0.6, 0.61, 1.0].map(|q| found.quantile(q)), [Some(2.0), Some(2.0), None, None]);
        // A lower bound: the two open ones are at least 4, as far as anything can be known.
        assert!((found.mean.unwrap() - (1.0 + 2.0 + 2.0 + 4.0 + 4.0) / 5.0).abs() < 1e-14);
        let none = ProductLimit::of(&[], &[1.0]);
        assert_eq!((none.quantile(0.0), none.mean, none.times.len()), (None, None, 0));
        assert_eq!(ProductLimit::of(&[], &[]).mean, None);
    }

    #[test]
    fn nothing_is_known_where_one_stands_for_more_than_two() {
        // Of eight times, four are censored at 1: each of the other four has the weight of two. Of seven,
        // five: each of two has 7/2.
        let two = ProductLimit::of(&[2.0, 3.0, 4.0, 5.0], &[1.0; 4]);
        assert_eq!(
            (&two.times[..], &two.shares[..]),
            (&[2.0, 3.0, 4.0, 5.0][..], &[0.25, 0.5, 0.75, 1.0][..])
        );
        let more = ProductLimit::of(&[0.5, 2.0, 3.0], &[1.0; 5]);
        assert_eq!((&more.times[..], &more.shares[..]), (&[0.5][..], &[0.125][..]));
    }

    proptest! {
        /// Without open times it is the distribution of the times, and its quantiles are those of the one
        /// definition.
        #[test]
        fn of_times_that_ended(times in prop::collection::vec(0_u32..50, 1..60), percent in 0_u64..=100) {
            let times: Vec<f64> = times.into_iter().map(f64::from).collect();
            let found = ProductLimit::of(&times, &[]);
            let q = percent as f64 / 100.0;
            prop_assert_eq!(found.quantile(q), quantile_with_open(&times, &[], q));
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            prop_assert!((found.mean.unwrap() - mean).abs() < 1e-9);
        }

        /// Open times make no share larger than if they had ended at once, and none smaller than if they
        /// never did.
        #[test]
        fn lies_between_the_extremes(
            ended in prop::collection::vec(0_u32..50, 1..30), open in prop::collection::vec(0_u32..50, 0..30)
        ) {
            let [ended, open] = [ended, open].map(|all| all.into_iter().map(f64::from).collect::<Vec<_>>());
            let found = ProductLimit::of(&ended, &open);
            let all = (ended.len() + open.len()) as f64;
            prop_assert!(found.shares.is_sorted());
            for (&time, &share) in found.times.iter().zip(&found.shares) {
                let up_to = |times: &[f64]| times.iter().filter(|&&one| one <= time).count() as f64;
                prop_assert!(share >= up_to(&ended) / all - 1e-12 && share <= (up_to(&ended) + up_to(&open)) / all + 1e-12);
            }
        }
    }
}
