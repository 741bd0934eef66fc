//! Populations: finite flows that come and go.
//!
//! A population draws when its flows begin and how much they send. Both come from a random stream of its own,
//! `workload/<group>`, so that mechanisms are compared on the same flows: what the network does changes none
//! of them.

mod cdf;
mod sizes;

use std::sync::Arc;

use perhop_core::{Bytes, Duration, Frequency, Instant, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cdf::{Cdf, CdfFormat, CdfTable, NamedCdf, SizeCdf};
use sizes::Distribution;
pub use sizes::{LognormalSizes, ParetoSizes, Refused, Sizes};

/// The flows of a population.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// When they begin.
    pub arrivals: Arrivals,
    /// How much each sends; not used by a list or a trace that says so itself.
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
    /// As measured, from the start of the group on.
    Trace(Arc<ArrivalTrace>),
}

/// Measured arrivals, in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalTrace {
    /// When flows begin; what they send is drawn.
    Times(Vec<Duration>),
    /// When flows begin, and what each sends.
    Flows(Vec<Listed>),
}

impl ArrivalTrace {
    /// Returns how many flows begin.
    pub fn len(&self) -> usize {
        match self {
            Self::Times(times) => times.len(),
            Self::Flows(flows) => flows.len(),
        }
    }

    /// Returns whether no flow begins.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the trace says what each flow sends.
    pub fn has_sizes(&self) -> bool {
        matches!(self, Self::Flows(_))
    }

    /// Returns how many flows begin before a time.
    pub fn before(&self, time: Duration) -> usize {
        match self {
            Self::Times(times) => times.partition_point(|&at| at < time),
            Self::Flows(flows) => flows.partition_point(|&Listed(at, _)| at < time),
        }
    }

    /// Returns when the first flow begins.
    pub fn first(&self) -> Option<Duration> {
        match self {
            Self::Times(times) => times.first().copied(),
            Self::Flows(flows) => flows.first().map(|&Listed(at, _)| at),
        }
    }
}

/// A flow of a list: when it begins, from the start of the run, and its bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "a time and a size, such as [\"1.5s\", \"30kB\"]")]
pub struct Listed(pub Duration, pub Bytes);

impl Arrivals {
    /// Makes a Poisson process of this frequency.
    pub fn poisson(frequency: Frequency) -> Self {
        Self::Poisson(frequency.per_second())
    }
}

impl Workload {
    /// Returns how many flows are expected within a time.
    pub fn expected(&self, time: Duration) -> f64 {
        match &self.arrivals {
            Arrivals::Poisson(per_second) => per_second * time.as_secs_f64(),
            Arrivals::Every(interval) => 1.0 + time.as_secs_f64() / interval.as_secs_f64(),
            Arrivals::List(flows) => flows.len() as f64,
            Arrivals::Trace(trace) => trace.before(time) as f64,
        }
    }
}

/// A flow that begins: when, and its bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) size: Bytes,
}

/// The packets of a finite flow, in bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// All together.
    pub all: Bytes,
    /// The first one.
    pub first: Bytes,
    /// The last one.
    pub last: Bytes,
}

impl Packets {
    /// Divides so much payload into packets of at most `full` bytes, each with `headers`.
    pub fn of(size: Bytes, full: u16, headers: u16) -> Self {
        let (full, headers) = (u64::from(full), u64::from(headers));
        let packets = size.get().div_ceil(full - headers);
        let all = size.get() + packets * headers;
        let last = all - (packets - 1) * full;
        Self { all: Bytes::new(all), first: Bytes::new(full.min(all)), last: Bytes::new(last) }
    }
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
    /// The rest of the list, the next flow last.
    List(Vec<Listed>),
    /// The time zero of a trace, and how many of its flows have begun; without sizes of its own, with their
    /// distribution.
    Trace(Arc<ArrivalTrace>, Option<Distribution>, Instant, usize),
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
            Arrivals::Trace(trace) => {
                let sizes = (!trace.has_sizes()).then(sizes);
                Process::Trace(Arc::clone(trace), sizes, start, 0)
            }
        };
        Self { rng: Rng::stream(seed, &format!("workload/{group}")), process, until }
    }
}

impl Draws {
    /// Returns the next flow drawn anew, when it begins and what it sends, given that it has not begun by
    /// now; as it was if that is not by chance, or it begins now. A Poisson process has no memory.
    pub(crate) fn redraw(&mut self, next: Option<Arrival>, now: Instant) -> Option<Arrival> {
        match (&mut self.process, next) {
            (Process::Poisson(_, _, last), Some(arrival)) if arrival.at > now => {
                *last = now;
                self.next()
            }
            _ => next,
        }
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
            Process::Trace(trace, sizes, start, begun) => {
                let (at, size) = match (&**trace, sizes) {
                    (ArrivalTrace::Flows(flows), _) => {
                        flows.get(*begun).map(|&Listed(at, size)| (at, size))?
                    }
                    (ArrivalTrace::Times(times), Some(sizes)) => {
                        (*times.get(*begun)?, sizes.draw(rng.uniform()))
                    }
                    (ArrivalTrace::Times(_), None) => return None,
                };
                *begun += 1;
                Arrival { at: *start + at, size }
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
    fn traces_count_from_the_start_of_the_group() {
        let seconds = |at: u64| Duration::from_secs(at);
        let start = Instant::ZERO + seconds(90);
        let end = Instant::ZERO + seconds(100);
        let draws = |trace: ArrivalTrace| -> Vec<Arrival> {
            Draws::new(&workload(Arrivals::Trace(Arc::new(trace))), "web", 1, start, end).collect()
        };
        let at = |arrivals: &[Arrival]| -> Vec<f64> {
            arrivals.iter().map(|arrival| arrival.at.as_secs_f64()).collect()
        };
        let times = draws(ArrivalTrace::Times([0, 3, 3, 10].map(seconds).to_vec()));
        assert_eq!(at(&times), [90.0, 93.0, 93.0], "the last would begin at the end of the run");
        assert!(times.iter().all(|arrival| arrival.size == Bytes::new(1000)), "of the group's sizes");
        let listed = [(1, 10), (2, 20)].map(|(at, size)| Listed(seconds(at), Bytes::new(size)));
        let trace = ArrivalTrace::Flows(listed.to_vec());
        assert_eq!((trace.before(seconds(2)), trace.first(), trace.len()), (1, Some(seconds(1)), 2));
        let flows = draws(trace);
        assert_eq!(at(&flows), [91.0, 92.0]);
        assert_eq!(flows.iter().map(|arrival| arrival.size.get()).collect::<Vec<_>>(), [10, 20]);
    }

    #[test]
    fn the_stream_depends_on_seed_and_group() {
        let poisson = || Arrivals::Poisson(10.0);
        assert_eq!(draws(poisson(), "web", 1), draws(poisson(), "web", 1));
        assert_ne!(draws(poisson(), "web", 1), draws(poisson(), "web", 2));
        assert_ne!(draws(poisson(), "web", 1), draws(poisson(), "mail", 1));
    }

    #[test]
    fn packets_of_a_flow_by_hand() {
        let of = |size| {
            let Packets { all, first, last } = Packets::of(Bytes::new(size), 1500, 40);
            [all, first, last].map(Bytes::get)
        };
        assert_eq!(of(1), [41, 41, 41]);
        assert_eq!(of(1460), [1500, 1500, 1500]);
        assert_eq!(of(1461), [1541, 1500, 41]);
        assert_eq!(of(100_000), [102_760, 1500, 760]);
    }

    #[test]
    fn flows_a_second_at_a_load_of_a_gigabit() {
        // λ = 0.6 * 10^9 / (8 * mean)
        for (name, expected) in [
            (NamedCdf::WebSearch, 43.827_611_395_178_96),
            (NamedCdf::DataMining, 5.925_013_690_336_628),
            (NamedCdf::Hadoop, 622.816_250_521_608_3),
        ] {
            let sizes = Sizes { cdf: Some(SizeCdf::Published(name)), ..Sizes::default() };
            let rate = 0.6e9 / (8.0 * sizes.mean().unwrap());
            assert!((rate - expected).abs() < 1e-9 * expected, "{name:?}: {rate}");
        }
    }
}
