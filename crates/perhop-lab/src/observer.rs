//! Samples a run, as the simulator's probes do.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use perhop_core::measure::{Counted, LinkOutcome};
use perhop_core::{Duration, Instant};
use perhop_live::{Plane, Report, StreamCounts, Watcher, Windows};
use perhop_sim::{QueueSeries, Series};

use crate::hosts::Shared;
use crate::report::{Glimpse, GlimpseOfLink};

/// Records probe samples, and the counters at the end of the warm-up and of the run.
pub(crate) struct Observer<'a> {
    shared: &'a Shared,
    windows: Arc<Windows>,
    warmup: Instant,
    end: Instant,
    interval: Option<Duration>,
    next: Instant,
    /// Bytes of data in a packet and the packet's size on the wire, for each flow.
    sizes: Vec<(u16, u16)>,
    /// Bytes of data received by the last probe sample.
    before: Vec<u64>,
    samples: Samples,
    glimpses: Glimpses,
}

/// The samples and counters of a run.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) series: Series,
    pub(crate) at_warmup: Totals,
    pub(crate) at_end: Totals,
    pub(crate) links: Vec<LinkOutcome>,
}

/// Reports to a user who watches the run.
#[derive(Debug)]
pub(crate) struct Glimpses {
    /// How often; `None` if nobody watches.
    pub(crate) interval: Option<Duration>,
    pub(crate) to: SyncSender<Glimpse>,
    /// The group of each flow.
    pub(crate) groups: Vec<usize>,
}

/// The counters at some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    /// Bytes of data that the receiver of each flow has received.
    pub(crate) received: Vec<u64>,
    /// The router's counters of each flow's data.
    pub(crate) data: Vec<StreamCounts>,
    /// What each link has counted.
    pub(crate) links: Vec<Counted>,
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
            samples: Samples::default(),
            glimpses,
        };
        observer.samples.at_warmup = Totals {
            received: vec![0; flows],
            data: vec![StreamCounts::default(); flows],
            links: Vec::new(),
        };
        observer.next = observer.after(Instant::ZERO);
        observer
    }

    /// The samples, at the end of the run.
    pub(crate) fn into_samples(self) -> Samples {
        self.samples
    }

    /// The first sampling time after `last`; none after the end.
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

    fn totals(&self, plane: &Plane) -> Totals {
        Totals {
            received: self.shared.flows.iter().map(|flow| flow.received.load(Ordering::Relaxed)).collect(),
            data: plane.streams().step_by(2).map(|(_, counts)| *counts).collect(),
            links: plane.ports().map(|(_, _, port)| port.counted()).collect(),
        }
    }

    fn links(&self, plane: &Plane) -> Vec<LinkOutcome> {
        let mut at_warmup = self.samples.at_warmup.links.iter().cloned();
        plane
            .ports()
            .map(|(name, rate, port)| {
                LinkOutcome::of(name, rate, &port).after(&at_warmup.next().unwrap_or_default())
            })
            .collect()
    }

    fn record(&mut self, plane: &Plane, at: Instant, interval: Duration) {
        let Self { shared, windows, samples, sizes, before, .. } = self;
        let series = &mut samples.series;
        series.times.push(at);
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
    fn glimpse(&self, plane: &Plane, report: &Report, at: Instant) -> Glimpse {
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
            at,
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

    fn watch(&mut self, plane: &mut Plane, report: &mut Report, now: Instant) {
        // Samples that are overdue are taken now, from the present state.
        while self.next <= now {
            let at = self.next;
            if at == self.warmup {
                self.samples.at_warmup = self.totals(plane);
                // Opening connections is a burst of work that is not part of the measurement.
                report.lateness.reset();
            }
            let falls_on = |interval: &Duration| at.as_nanos().is_multiple_of(interval.as_nanos());
            if let Some(interval) = self.interval.filter(falls_on) {
                self.record(plane, at, interval);
            }
            if self.glimpses.interval.is_some_and(|interval| falls_on(&interval)) {
                // A watcher that is too slow misses some.
                let _ = self.glimpses.to.try_send(self.glimpse(plane, report, at));
            }
            if at == self.end {
                self.samples.at_end = self.totals(plane);
                plane.finish(self.end);
                self.samples.links = self.links(plane);
            }
            self.next = self.after(at);
        }
    }
}
