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
use crate::setting::Setting;
use crate::setting::Side;

/// Records probe samples, and the counters at the end of the warm-up and of the run.
pub(crate) struct Observer<'a> {
    shared: &'a Shared,
    windows: Arc<Windows>,
    warmup: Instant,
    end: Instant,
    interval: Option<Duration>,
    next: Instant,
    setting: &'a Setting,
    /// How many flows the network has.
    columns: usize,
    /// Bytes on the wire that the receiver of each flow of the network had by the last probe sample.
    before: Vec<u64>,
    pub(crate) samples: Samples,
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
}

/// The counters at some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    /// Bytes on the wire and packets that have arrived of each flow's data, and of a connection's requests.
    pub(crate) arrived: Vec<[(u64, u64); 2]>,
    /// The router's counters of each flow's data, and of what goes back.
    pub(crate) streams: Vec<[StreamCounts; 2]>,
    /// What each link has counted.
    pub(crate) links: Vec<Counted>,
}

impl<'a> Observer<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        windows: Arc<Windows>,
        setting: &'a Setting,
        (columns, interval): (usize, Option<Duration>),
        glimpses: Glimpses,
    ) -> Self {
        let (warmup, end) = (Instant::ZERO + setting.warmup, Instant::ZERO + setting.duration);
        let flows = setting.flows.len();
        let mut observer = Self {
            shared,
            windows,
            warmup,
            end,
            interval,
            next: Instant::ZERO,
            setting,
            columns,
            before: vec![0; columns],
            samples: Samples::default(),
            glimpses,
        };
        observer.samples.at_warmup = Totals {
            arrived: vec![<[(u64, u64); 2]>::default(); flows],
            streams: vec![<[StreamCounts; 2]>::default(); flows],
            links: Vec::new(),
        };
        observer.next = observer.after(Instant::ZERO);
        observer
    }

    /// Returns the first sampling time after `last`; none after the end.
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

    fn arrived(&self) -> impl Iterator<Item = [(u64, u64); 2]> {
        self.setting.flows.iter().zip(&self.shared.flows).map(|(flow, gauges)| gauges.arrived(flow))
    }

    fn totals(&self, plane: &Plane) -> Totals {
        let both = plane.streams().step_by(2).map(|(_, counts)| *counts);
        Totals {
            arrived: self.arrived().collect(),
            streams: both
                .zip(plane.streams().skip(1).step_by(2).map(|(_, counts)| *counts))
                .map(<[_; 2]>::from)
                .collect(),
            links: plane.ports().map(|(_, _, port)| port.counted()).collect(),
        }
    }

    fn links(&self, plane: &Plane) -> Vec<LinkOutcome> {
        let mut at_warmup = self.samples.at_warmup.links.iter().cloned();
        plane.outcomes().map(|link| link.after(&at_warmup.next().unwrap_or_default())).collect()
    }

    fn record(&mut self, plane: &Plane, at: Instant, interval: Duration) {
        let Self { shared, windows, samples, setting, columns, before, .. } = self;
        let series = &mut samples.series;
        series.times.push(at);
        let first = series.seen_packets.len();
        for column in [
            &mut series.seen_packets,
            &mut series.window_packets,
            &mut series.rtt_s,
            &mut series.throughput_bps,
        ] {
            column.resize(first + *columns, f64::NAN);
        }
        for (number, window) in plane.sampled_windows() {
            series.seen_packets[first + setting.flows[number].flow] = window;
        }
        let mut received = vec![0; *columns];
        for (flow, gauges) in setting.flows.iter().zip(&shared.flows) {
            let [data, requests] = gauges.arrived(flow);
            received[flow.flow] += data.0;
            if let Some(of) = flow.requests {
                received[of.flow] += requests.0;
            }
            // The flows of a population have no window and no round-trip time in common.
            if !flow.is_passing {
                let window = windows.get(flow.number).unwrap_or(f64::NAN);
                series.window_packets[first + flow.flow] = window;
                let rtt = gauges.rtt_us.load(Ordering::Relaxed);
                series.rtt_s[first + flow.flow] = if rtt == 0 { f64::NAN } else { f64::from(rtt) * 1e-6 };
            }
        }
        for (flow, received) in received.into_iter().enumerate() {
            let new = received - std::mem::replace(&mut before[flow], received);
            series.throughput_bps[first + flow] = new as f64 * 8.0 / interval.as_secs_f64();
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
        let mut received = vec![0.0; self.setting.groups];
        // For users: the data that they receive.
        let towards =
            self.setting.flows.iter().zip(self.arrived()).filter(|(flow, _)| flow.from == Side::Sending);
        for (flow, [data, _]) in towards {
            received[flow.group] += data.0 as f64;
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
