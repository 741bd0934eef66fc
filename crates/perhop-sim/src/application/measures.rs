//! Measures of the users of a group: recorded numbers, and what becomes of them.

use perhop_core::measure::{ProductLimit, quantile_with_open};

use crate::measure::{Measure, Summary};

/// What the users of a group have recorded, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Numbers one by one, such as the times of pages.
    pub samples: Vec<(&'static str, Vec<f64>)>,
    /// What would be among the samples of this name if it had ended before the run did: the times so far.
    pub open: Vec<(&'static str, Vec<f64>)>,
    /// Sums, such as unfinished pages.
    pub sums: Vec<(&'static str, f64)>,
}

impl Recorded {
    /// Adds a number to those of this name.
    pub fn sample(&mut self, name: &'static str, value: f64) {
        extend(&mut self.samples, name, [value]);
    }

    /// Adds the time so far of what would be a sample of this name if it had ended before the run did.
    pub fn leave_open(&mut self, name: &'static str, value: f64) {
        extend(&mut self.open, name, [value]);
    }

    /// Adds to the sum of this name.
    pub fn add(&mut self, name: &'static str, value: f64) {
        match self.sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += value,
            None => self.sums.push((name, value)),
        }
    }

    /// Adds all that another one has, behind what is there.
    pub fn append(&mut self, other: Self) {
        other.samples.into_iter().for_each(|(name, values)| extend(&mut self.samples, name, values));
        other.open.into_iter().for_each(|(name, values)| extend(&mut self.open, name, values));
        for (name, sum) in other.sums {
            self.add(name, sum);
        }
    }

    /// Returns the numbers of this name, in the order in which they came.
    pub fn samples_of(&self, name: &str) -> &[f64] {
        of_name(&self.samples, name)
    }

    /// Returns the times of this name that are open at the end of the run.
    pub fn open_of(&self, name: &str) -> &[f64] {
        of_name(&self.open, name)
    }

    /// Returns the sum of this name.
    pub fn sum_of(&self, name: &str) -> f64 {
        self.sums.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, sum)| *sum)
    }

    /// Returns the number of samples of this name.
    pub fn count(&self, name: &str) -> f64 {
        self.samples_of(name).len() as f64
    }

    /// Returns the mean of samples; with those that are open, by the [product limit](ProductLimit).
    pub fn mean(&self, name: &str) -> Option<f64> {
        let (samples, open) = (self.samples_of(name), self.open_of(name));
        if !open.is_empty() {
            return ProductLimit::of(samples, open).mean;
        }
        over(samples.iter().sum(), self.count(name))
    }

    /// Returns a quantile of samples, with those that are open ([`quantile_with_open`]).
    pub fn quantile(&self, name: &str, share: f64) -> Option<f64> {
        quantile_with_open(self.samples_of(name), self.open_of(name), share)
    }

    /// Returns one sum over another one, times a factor.
    pub fn ratio(&self, part: &str, whole: &str, factor: f64) -> Option<f64> {
        over(factor * self.sum_of(part), self.sum_of(whole))
    }
}

fn over(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

type Named = (&'static str, Vec<f64>);

fn extend(all: &mut Vec<Named>, name: &'static str, values: impl IntoIterator<Item = f64>) {
    match all.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => known.extend(values),
        None => all.push((name, values.into_iter().collect())),
    }
}

fn of_name<'a>(all: &'a [Named], name: &str) -> &'a [f64] {
    all.iter().find(|(known, _)| *known == name).map_or(&[], |(_, values)| values)
}

/// One measure of the users of a group in one run.
pub type UserMeasure = Measure<Recorded>;

impl UserMeasure {
    /// Sets what tables call the measure, without its unit; the greater the importance, the longer a narrow
    /// terminal keeps the column.
    #[must_use]
    pub const fn column(self, label: &'static str, importance: u8) -> Self {
        self.shown(Summary { importance, ..Summary::of(label) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_recorded_is_joined() {
        let [mut first, mut second] = [Recorded::default(), Recorded::default()];
        first.sample("x", 1.0);
        first.add("n", 2.0);
        second.sample("x", 3.0);
        second.sample("y", 4.0);
        second.add("n", 5.0);
        second.leave_open("x", 6.0);
        first.append(second);
        assert_eq!((first.samples_of("x"), first.samples_of("y")), (&[1.0, 3.0][..], &[4.0][..]));
        assert_eq!((first.sum_of("n"), first.open_of("x"), first.open_of("y")), (7.0, &[6.0][..], &[][..]));
    }

    #[test]
    fn estimates_by_hand() {
        let mut recorded = Recorded::default();
        for value in [4.0, 1.0, 3.0, 2.0] {
            recorded.sample("x", value);
        }
        recorded.add("part", 3.0);
        recorded.add("part", 1.0);
        recorded.add("whole", 8.0);
        assert_eq!((recorded.count("x"), recorded.mean("x")), (4.0, Some(2.5)));
        assert_eq!([0.5, 0.76, 1.0].map(|q| recorded.quantile("x", q)), [2.0, 4.0, 4.0].map(Some));
        assert_eq!((recorded.ratio("part", "whole", 10.0), recorded.sum_of("part")), (Some(5.0), 4.0));
        recorded.leave_open("x", 2.5);
        // The open one is 3 or 4.
        assert_eq!(recorded.mean("x"), Some((1.0 + 2.0 + 3.0 + 4.0 + 3.5) / 5.0));
        assert_eq!([0.4, 0.5, 0.7, 0.71].map(|q| recorded.quantile("x", q)), [2.0, 3.0, 3.0, 4.0].map(Some));
        recorded.leave_open("x", 5.0);
        assert_eq!(recorded.quantile("x", 0.99), None, "the longest is open");
        assert_eq!((recorded.count("y"), recorded.sum_of("y")), (0.0, 0.0));
        assert_eq!((recorded.mean("y"), recorded.quantile("y", 0.5)), (None, None));
        assert_eq!(recorded.ratio("part", "y", 1.0), None);
    }
}
