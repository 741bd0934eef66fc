//! What is measured of the users of a group: recorded numbers, and what becomes of them.

use perhop_core::measure::quantile_of_sorted;

use crate::measures::Unit;

/// What the users of a group have recorded, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Numbers one by one, such as the times of pages.
    pub samples: Vec<(&'static str, Vec<f64>)>,
    /// Sums, such as unfinished pages.
    pub sums: Vec<(&'static str, f64)>,
}

impl Recorded {
    /// Adds a number to those of this name.
    pub fn sample(&mut self, name: &'static str, value: f64) {
        match self.samples.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => self.samples.push((name, vec![value])),
        }
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
        for (name, values) in other.samples {
            match self.samples.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => all.extend(values),
                None => self.samples.push((name, values)),
            }
        }
        for (name, sum) in other.sums {
            self.add(name, sum);
        }
    }

    /// The numbers of this name, in the order in which they came.
    pub fn samples_of(&self, name: &str) -> &[f64] {
        self.samples.iter().find(|(known, _)| *known == name).map_or(&[], |(_, values)| values)
    }

    /// The sum of this name.
    pub fn sum_of(&self, name: &str) -> f64 {
        self.sums.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, sum)| *sum)
    }
}

/// One measure of the users of a group in one run.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name in dictionaries and data frames.
    pub name: &'static str,
    /// What tables call it, without its unit.
    pub label: &'static str,
    /// The greater, the longer a narrow terminal keeps the column.
    pub importance: u8,
    /// Its unit.
    pub unit: Unit,
    /// What it means, in a sentence.
    pub description: &'static str,
    /// How it comes from what the users recorded.
    pub estimate: Estimate,
}

/// How a measure comes from what the users of a group recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimate {
    /// The number of samples of this name.
    Count(&'static str),
    /// A sum.
    Sum(&'static str),
    /// The mean of samples.
    Mean(&'static str),
    /// A quantile of samples ([`quantile_of_sorted`]).
    Quantile(&'static str, f64),
    /// The share of samples above a bound.
    ShareAbove(&'static str, f64),
    /// One sum over another one, times a factor.
    Ratio(&'static str, &'static str, f64),
}

impl Measure {
    /// Its value; `None` where nothing was recorded that it could come from.
    pub fn of(&self, recorded: &Recorded) -> Option<f64> {
        let over = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        match self.estimate {
            Estimate::Count(name) => Some(recorded.samples_of(name).len() as f64),
            Estimate::Sum(name) => Some(recorded.sum_of(name)),
            Estimate::Mean(name) => {
                let samples = recorded.samples_of(name);
                over(samples.iter().sum(), samples.len() as f64)
            }
            Estimate::Quantile(name, share) => quantile(recorded.samples_of(name), share),
            Estimate::ShareAbove(name, bound) => {
                let samples = recorded.samples_of(name);
                over(samples.iter().filter(|&&value| value > bound).count() as f64, samples.len() as f64)
            }
            Estimate::Ratio(part, whole, factor) => {
                over(factor * recorded.sum_of(part), recorded.sum_of(whole))
            }
        }
    }
}

fn quantile(samples: &[f64], share: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, share)
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
        first.append(second);
        assert_eq!((first.samples_of("x"), first.samples_of("y")), (&[1.0, 3.0][..], &[4.0][..]));
        assert_eq!(first.sum_of("n"), 7.0);
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
        let value = |estimate| {
            Measure { name: "", label: "", importance: 0, unit: Unit::None, description: "", estimate }
                .of(&recorded)
        };
        assert_eq!(value(Estimate::Count("x")), Some(4.0));
        assert_eq!(value(Estimate::Mean("x")), Some(2.5));
        assert_eq!(value(Estimate::Quantile("x", 0.5)), Some(2.0));
        assert_eq!(value(Estimate::Quantile("x", 0.76)), Some(4.0));
        assert_eq!(value(Estimate::Quantile("x", 1.0)), Some(4.0));
        assert_eq!(value(Estimate::ShareAbove("x", 1.0)), Some(0.75));
        assert_eq!(value(Estimate::Ratio("part", "whole", 10.0)), Some(5.0));
        assert_eq!(value(Estimate::Sum("part")), Some(4.0));
        assert_eq!((value(Estimate::Count("y")), value(Estimate::Sum("y"))), (Some(0.0), Some(0.0)));
        assert_eq!((value(Estimate::Mean("y")), value(Estimate::Quantile("y", 0.5))), (None, None));
        assert_eq!(
            (value(Estimate::Ratio("part", "y", 1.0)), value(Estimate::ShareAbove("y", 0.0))),
            (None, None)
        );
    }
}
