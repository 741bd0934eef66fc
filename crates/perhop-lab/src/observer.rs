//! Looks at a run while it is on, as the simulator's probes do.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use perhop_core::measure::LinkOutcome;
use perhop_core::{Counters, Duration, Instant};
use perhop_live::{Plane, Report, StreamCounts, Watcher, Windows};
use perhop_sim::{QueueSeries, Series};

use crate::hosts::Shared;
use crate::report::{Glimpse, GlimpseOfLink};

/// Sees what probes see, when probes look; and takes stock at the end of the warm-up and at the end.
pub(crate) struct Observer<'a> {
    shared: &'a Shared,
    windows: Arc<Windows>,
    warmup: Instant,
    end: Instant,
    interval: Option<Duration>,
    next: Instant,
    /// Bytes of data in a packet and the packet's size on the wire, for each flow.
    sizes: Vec<(u16, u16)>,
    /// Bytes of data received by the last look of the probes.
    before: Vec<u64>,
    seen: Observed,
    glimpses: Glimpses,
}

/// What was seen of a run.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) series: Series,
    pub(crate) at_warmup: Stock,
    pub(crate) at_end: Stock,
    pub(crate) links: Vec<LinkOutcome>,
}

/// What those are told who watch the run.
#[derive(Debug)]
pub(crate) struct Glimpses {
    /// How often; never if nobody watches.
    pub(crate) interval: Option<Duration>,
    pub(crate) to: SyncSender<Glimpse>,
    /// The group of each flow.
    pub(crate) groups: Vec<usize>,
}

/// What was counted by some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stock {
    /// Bytes of data that each flow's receiver has.
    pub(crate) received: Vec<u64>,
    /// What the router counted of each flow's data.
    pub(crate) data: Vec<StreamCounts>,
    /// For each link, the counters of its classes.
    pub(crate) links: Vec<Vec<Counters>>,
}

impl<'a> Observer<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        windows: Arc<Windows>,
        (warmup, duration, interval): (Duration, Duration, Option<Duration>),
        sizes: Vec<(u16, u16)>,
        glimpses: Glimpses,
    ) -> Self {
        let (warmup, end) = (Instant::ZERO + warmup, Instant::ZERO + duration);
        let flows = sizes.len();
        let mut observer = Self {
            shared,
            windows,
            warmup,
            end,
            interval,
            next: Instant::ZERO,
            sizes,
            before: vec![0; flows],
            seen: Observed::default(),
            glimpses,
        };
        observer.seen.at_warmup =
            Stock { received: vec![0; flows], data: vec![StreamCounts::default(); flows], links: Vec::new() };
        observer.next = observer.after(Instant::ZERO);
        observer
    }

    /// The run is over.
    pub(crate) fn ended(self) -> Observed {
        self.seen
    }

    /// The first look after that time; none after the end.
    fn after(&self, last: Instant) -> Instant {
        if last >= self.end {
            return Instant::NEVER;
        }
        let regular = |interval: Option<Duration>| {
            interval.map_or(Instant::NEVER, |interval| {
                Instant::ZERO + interval.saturating_mul(last.as_nanos() / interval.as_nanos() + 1)
            })
        };
        let warmup = if self.warmup > last { self.warmup } else { Instant::NEVER };
        regular(self.interval).min(regular(self.glimpses.interval)).min(warmup).min(self.end)
    }

    fn stock(&self, plane: &Plane) -> Stock {
        Stock {
            received: self.shared.flows.iter().map(|flow| flow.received.load(Ordering::Relaxed)).collect(),
            data: plane.streams().step_by(2).map(|(_, counts)| *counts).collect(),
            links: plane.ports().map(|(_, _, port)| port.counters_by_class()).collect(),
        }
    }

    fn links(&self, plane: &Plane) -> Vec<LinkOutcome> {
        let mut at_warmup = self.seen.at_warmup.links.iter();
        plane
            .ports()
            .map(|(name, rate, port)| {
                LinkOutcome::of(name, rate, &port).after(at_warmup.next().map_or(&[], Vec::as_slice))
            })
            .collect()
    }

    fn record(&mut self, plane: &Plane, look: Instant, interval: Duration) {
        let Self { shared, windows, seen, sizes, before, .. } = self;
        let series = &mut seen.series;
        series.times.push(look);
        let first = series.seen_packets.len();
        series.seen_packets.resize(first + sizes.len(), f64::NAN);
        for (flow, window) in plane.sampled_windows() {
            series.seen_packets[first + flow] = window;
        }
        for (number, (payload, packet)) in sizes.iter().enumerate() {
            let flow = &shared.flows[number];
            let received = flow.received.load(Ordering::Relaxed);
            let new = received - std::mem::replace(&mut before[number], received);
            let bits = new as f64 * 8.0 * f64::from(*packet) / f64::from(*payload);
            series.throughput_bps.push(bits / interval.as_secs_f64());
            series.window_packets.push(windows.get(number).unwrap_or(f64::NAN));
            let rtt = flow.rtt_us.load(Ordering::Relaxed);
            series.rtt_s.push(if rtt == 0 { f64::NAN } else { f64::from(rtt) * 1e-6 });
        }
        if series.queues.is_empty() {
            series.queues = plane.ports().map(|(name, ..)| QueueSeries::of(name)).collect();
        }
        for ((_, _, port), queue) in plane.ports().zip(&mut series.queues) {
            queue.record(&port);
        }
    }
}

impl Observer<'_> {
    fn glimpse(&self, plane: &Plane, report: &Report, look: Instant) -> Glimpse {
        let groups = self.glimpses.groups.iter().max().map_or(0, |last| last + 1);
        let mut received = vec![0.0; groups];
        for ((flow, (payload, packet)), group) in
            self.shared.flows.iter().zip(&self.sizes).zip(&self.glimpses.groups)
        {
            let data = flow.received.load(Ordering::Relaxed) as f64;
            received[*group] += data * f64::from(*packet) / f64::from(*payload);
        }
        let links = plane.ports().map(|(name, _, port)| {
            let counters = port.counters();
            GlimpseOfLink {
                name: name.into(),
                waiting: port.waiting().iter().sum(),
                sent: counters.sent.iter().sum(),
                dropped: counters
                    .drops()
                    .map(|(reason, packets)| (reason.name(), packets.iter().sum()))
                    .collect(),
            }
        });
        Glimpse {
            at: look,
            received,
            links: links.collect(),
            late: (report.lateness.quantile(0.5), report.lateness.quantile(0.99), report.lateness.largest()),
            inside: plane.inside(),
        }
    }
}

impl Watcher for Observer<'_> {
    fn next(&self) -> Instant {
        self.next
    }

    fn look(&mut self, plane: &mut Plane, report: &mut Report, now: Instant) {
        // Looks that were missed are taken now: what they saw is what there is to see.
        while self.next <= now {
            let look = self.next;
            if look == self.warmup {
                self.seen.at_warmup = self.stock(plane);
                // Connections begin with a burst of work that is no part of what is measured.
                report.lateness.reset();
            }
            let falls_on = |interval: &Duration| look.as_nanos().is_multiple_of(interval.as_nanos());
            if let Some(interval) = self.interval.filter(falls_on) {
                self.record(plane, look, interval);
            }
            if self.glimpses.interval.is_some_and(|interval| falls_on(&interval)) {
                // Who is too slow to watch misses some.
                let _ = self.glimpses.to.try_send(self.glimpse(plane, report, look));
            }
            if look == self.end {
                self.seen.at_end = self.stock(plane);
                plane.finish(self.end);
                self.seen.links = self.links(plane);
            }
            self.next = self.after(look);
        }
    }
}
