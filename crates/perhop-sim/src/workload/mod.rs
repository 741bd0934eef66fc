//! Populations: finite flows that come and go.
//!
//! A population draws when its flows begin and how much they send. Both come from a random stream of its own,
//! `workload/<group>`, so that mechanisms are compared on the same flows: what the network does changes none of them.

mod cdf;
mod sizes;

use perhop_core::{Bytes, Duration, Frequency, Instant, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cdf::NamedCdf;
use sizes::Distribution;
pub use sizes::{LognormalSizes, ParetoSizes, Refused, Sizes};

/// The flows of a population.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// When they begin.
    pub arrivals: Arrivals,
    /// How much each sends; not used by a list, which says so itself.
    pub sizes: Sizes,
    /// What each packet carries besides payload, in bytes.
    pub headers: u16,
}

/// When the flows of a population begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// As a Poisson process with so many flows a second on average.
    Poisson(f64),
    /// At regular intervals, the first at once.
    Every(Duration),
    /// As listed, in the order of time.
    List(Vec<Listed>),
}

/// A flow of a list: when it begins, from the start of the run, and its bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listed(pub Duration, pub Bytes);

impl Arrivals {
    /// A Poisson process of this frequency.
    pub fn poisson(frequency: Frequency) -> Self {
        Self::Poisson(frequency.per_second())
    }
}

impl Workload {
    /// How many flows are expected within a time.
    pub fn expected(&self, time: Duration) -> f64 {
        match &self.arrivals {
            Arrivals::Poisson(per_second) => per_second * time.as_secs_f64(),
            Arrivals::Every(interval) => 1.0 + time.as_secs_f64() / interval.as_secs_f64(),
            Arrivals::List(flows) => flows.len() as f64,
        }
    }
}

/// A flow that begins: when, and its bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) size: Bytes,
}

/// The flows of a population, one after the other. Each is drawn when the one before begins.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    rng: Rng,
    process: Process,
    until: Instant,
}

#[derive(Clone, Debug)]
enum Process {
    /// The mean gap in nanoseconds, and the last arrival.
    Poisson(f64, Distribution, Instant),
    /// The gap, and the next arrival.
    Every(Duration, Distribution, Instant),
    /// What is left of the list, the next flow last.
    List(Vec<Listed>),
}

impl Draws {
    /// The flows of the group of this name that begin from `start` on and before `until`.
    ///
    /// # Panics
    /// The workload was not [checked](Sizes::check).
    pub(crate) fn new(workload: &Workload, group: &str, seed: u64, start: Instant, until: Instant) -> Self {
        let sizes = || workload.sizes.distribution().expect("checked");
        let process = match &workload.arrivals {
            Arrivals::Poisson(per_second) => Process::Poisson(1e9 / per_second, sizes(), start),
            Arrivals::Every(interval) => Process::Every(*interval, sizes(), start),
            Arrivals::List(flows) => Process::List(flows.iter().rev().copied().collect()),
        };
        Self { rng: Rng::stream(seed, &format!("workload/{group}")), process, until }
    }
}

impl Iterator for Draws {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let Self { rng, process, until } = self;
        let arrival = match process {
            Process::Poisson(gap, sizes, last) => {
                let at = *last + Duration::from_nanos((*gap * rng.exponential()) as u64);
                *last = at;
                Arrival { at, size: sizes.draw(rng.uniform()) }
            }
            Process::Every(gap, sizes, next) => {
                let at = *next;
                *next = at + *gap;
                Arrival { at, size: sizes.draw(rng.uniform()) }
            }
            Process::List(flows) => {
                let Listed(at, size) = flows.pop()?;
                Arrival { at: Instant::ZERO + at, size }
            }
        };
        (arrival.at < *until).then_some(arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(arrivals: Arrivals) -> Workload {
        Workload { arrivals, sizes: Sizes::constant(Bytes::new(1000)), headers: 40 }
    }

    fn draws(arrivals: Arrivals, group: &str, seed: u64) -> Vec<Arrival> {
        let end = Instant::ZERO + Duration::from_secs(100);
        Draws::new(&workload(arrivals), group, seed, Instant::ZERO, end).collect()
    }

    #[test]
    fn a_poisson_process_has_its_rate_and_its_variance() {
        let arrivals = draws(Arrivals::Poisson(400.0), "web", 1);
        // 40 000 expected, with a standard deviation of 200.
        assert!((39_400..40_600).contains(&arrivals.len()), "{}", arrivals.len());
        let mut seconds = vec![0.0; 100];
        for arrival in &arrivals {
            seconds[arrival.at.as_secs_f64() as usize] += 1.0;
        }
        let variance: f64 = seconds.iter().map(|n| (n - 400.0) * (n - 400.0) / 100.0).sum();
        assert!((240.0..600.0).contains(&variance), "{variance}");
    }

    #[test]
    fn intervals_and_lists_are_exact() {
        let every = draws(Arrivals::Every("30s".parse().unwrap()), "web", 1);
        let seconds: Vec<f64> = every.iter().map(|arrival| arrival.at.as_secs_f64()).collect();
        assert_eq!(seconds, [0.0, 30.0, 60.0, 90.0]);
        let flows = [("1s", 10), ("1s", 20), ("100s", 30)];
        let list = flows.map(|(at, size)| Listed(at.parse().unwrap(), Bytes::new(size)));
        let found = draws(Arrivals::List(list.to_vec()), "web", 1);
        let sizes: Vec<u64> = found.iter().map(|arrival| arrival.size.get()).collect();
        assert_eq!(sizes, [10, 20], "the last would begin at the end of the run");
    }

    #[test]
    fn the_stream_depends_on_seed_and_group() {
        let poisson = || Arrivals::Poisson(10.0);
        assert_eq!(draws(poisson(), "web", 1), draws(poisson(), "web", 1));
        assert_ne!(draws(poisson(), "web", 1), draws(poisson(), "web", 2));
        assert_ne!(draws(poisson(), "web", 1), draws(poisson(), "mail", 1));
    }

    #[test]
    fn flows_a_second_at_a_load_of_a_gigabit() {
        // λ = 0.6 * 10^9 / (8 * mean)
        for (name, expected) in [
            (NamedCdf::WebSearch, 43.827_611_395_178_96),
            (NamedCdf::DataMining, 5.925_013_690_336_628),
            (NamedCdf::Hadoop, 622.816_250_521_608_3),
        ] {
            let sizes = Sizes { cdf: Some(name), ..Sizes::default() };
            let rate = 0.6e9 / (8.0 * sizes.mean().unwrap());
            assert!((rate - expected).abs() < 1e-9 * expected, "{name:?}: {rate}");
        }
    }
}
