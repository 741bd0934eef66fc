//! Samples of flows and queues for the probe, and at the end of the warm-up, which statistics exclude.

use std::sync::Arc;

use perhop_core::measure::{Counted, LinkOutcome, PortView};
use perhop_core::medium::RateTrace;
use perhop_core::{Bitrate, Duration, Imbalance, Instant};

use crate::network::{LinkSpec, Network};
use crate::probe::{QueueSeries, Series};

/// The times at which flows are sampled: those of the probe, at intervals, and the end of the warm-up.
#[derive(Clone, Debug)]
pub(crate) struct SampleTimes {
    interval: Option<Duration>,
    warmup: Instant,
    /// The end of the run.
    pub(crate) end: Instant,
    /// The number of flows, each with a column in tables of samples.
    pub(crate) flows: usize,
    /// The number of the probe's samples within the run.
    rows: usize,
}

impl SampleTimes {
    pub(crate) fn new(network: &Network) -> Self {
        Self {
            interval: network.probe_interval,
            warmup: Instant::ZERO + network.warmup,
            end: Instant::ZERO + network.duration,
            flows: network.flows.len(),
            rows: network
                .probe_interval
                .map_or(0, |interval| (network.duration.as_nanos() / interval.as_nanos()) as usize),
        }
    }

    /// Returns the times between which all measurements lie.
    pub(crate) fn measured(&self) -> (Instant, Instant) {
        (self.warmup, self.end)
    }

    /// Returns the time of the first sample. Nothing has happened by time zero, so there is none.
    pub(crate) fn first(&self) -> Instant {
        self.after(Instant::ZERO)
    }

    /// Returns the time of the first sample after `last`.
    pub(crate) fn after(&self, last: Instant) -> Instant {
        let probe = self.interval.map_or(Instant::NEVER, |interval| {
            let samples = last.as_nanos() / interval.as_nanos();
            Instant::ZERO + interval.saturating_mul(samples + 1)
        });
        if self.warmup > last { probe.min(self.warmup) } else { probe }
    }

    /// Returns whether this sample ends the warm-up.
    pub(crate) fn ends_warmup(&self, sample: Instant) -> bool {
        sample == self.warmup
    }

    /// Returns the sample's row in the series, if it is the probe's, and the probe's interval.
    pub(crate) fn row(&self, sample: Instant) -> Option<(usize, Duration)> {
        let interval = self.interval?;
        let (number, rest) =
            (sample.as_nanos() / interval.as_nanos(), sample.as_nanos() % interval.as_nanos());
        (rest == 0).then(|| (number as usize - 1, interval))
    }

    /// Returns the time of the first sample at `at` or after it.
    pub(crate) fn from(&self, at: Instant) -> Instant {
        let before = at.as_nanos().saturating_sub(1);
        self.after(Instant::from_nanos(before))
    }

    /// Returns the row of the probe's first sample at `at` or after it.
    pub(crate) fn row_from(&self, at: Instant) -> Option<usize> {
        let interval = self.interval?.as_nanos();
        Some(at.as_nanos().div_ceil(interval).max(1) as usize - 1)
    }

    /// Writes a flow's value of a row. Rows beyond the end of the run are ignored.
    pub(crate) fn write(&self, table: &mut Vec<f64>, row: usize, flow: u32, value: f64) {
        if let Some(place) = self.place(table, row, flow) {
            *place = value;
        }
    }

    /// Adds to a flow's value of a row, which is zero at first.
    pub(crate) fn add(&self, table: &mut Vec<f64>, row: usize, flow: u32, value: f64) {
        if let Some(sum) = self.place(table, row, flow) {
            *sum = if sum.is_nan() { value } else { *sum + value };
        }
    }

    /// Makes rates in bit/s of the bytes that have been [added](Self::add) for a flow in each row.
    pub(crate) fn bytes_to_rates(&self, table: &mut [f64], flow: usize) {
        let Some(interval) = self.interval else { return };
        for bytes in table.iter_mut().skip(flow).step_by(self.flows) {
            *bytes = *bytes * 8.0 / interval.as_secs_f64();
        }
    }

    fn place<'a>(&self, table: &'a mut Vec<f64>, row: usize, flow: u32) -> Option<&'a mut f64> {
        if row >= self.rows {
            return None;
        }
        let rows = (row + 1) * self.flows;
        if table.len() < rows {
            table.resize(rows, f64::NAN);
        }
        table.get_mut(row * self.flows + flow as usize)
    }
}

/// The links of an engine, as measurements see them.
pub(crate) trait Ports {
    /// Returns a sample of a link with a queue under an AQM. Its counters are those of `now`.
    fn view(&mut self, link: usize, now: Instant) -> PortView<'_>;

    /// Returns the view at the end of the run: packets that still wait have waited until `now`.
    fn final_view(&mut self, link: usize, now: Instant) -> PortView<'_>;
}

/// A link whose results are asked for: its number, name, rate and the trace in place of that, and what it had
/// counted at the end of the warm-up.
#[derive(Clone, Debug)]
struct MeasuredLink {
    link: usize,
    name: String,
    rate: Bitrate,
    trace: Option<Arc<RateTrace>>,
    at_warmup: Counted,
}

/// The samples of a run, and its measured links.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub(crate) times: SampleTimes,
    pub(crate) series: Series,
    links: Vec<MeasuredLink>,
    /// The other links with a queue under an AQM.
    unreported: Vec<usize>,
}

impl Recorder {
    pub(crate) fn new(network: &Network) -> Self {
        let times = SampleTimes::new(network);
        let has_queue = |&(_, spec): &(usize, &LinkSpec)| spec.queue.is_some();
        let (measured, others): (Vec<_>, Vec<_>) =
            network.links.iter().enumerate().filter(has_queue).partition(|&(link, _)| network.reports(link));
        let links: Vec<MeasuredLink> = measured
            .into_iter()
            .map(|(link, spec)| MeasuredLink {
                link,
                name: spec.name.clone(),
                rate: spec.rate,
                trace: spec.medium.trace.clone(),
                at_warmup: Counted::default(),
            })
            .collect();
        let queues = match network.probe_interval {
            None => Vec::new(),
            Some(_) => links.iter().map(|link| QueueSeries::of(&link.name)).collect(),
        };
        let mut series = Series { queues, ..Series::default() };
        // No table is ever copied to make room for more.
        series.tables().into_iter().for_each(|table| table.reserve_exact(times.rows * times.flows));
        Self { times, series, links, unreported: others.into_iter().map(|(link, _)| link).collect() }
    }

    /// Returns the times between which the packets of a link are measured: none where nobody asks.
    pub(crate) fn window(&self, link: usize) -> (Instant, Instant) {
        match self.unreported.binary_search(&link) {
            Ok(_) => (Instant::NEVER, Instant::NEVER),
            Err(_) => self.times.measured(),
        }
    }

    /// Samples queues at `now`; `seen` has each flow's window as the control of its path last sampled it.
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        seen: impl Iterator<Item = Option<f64>>,
        ports: &mut impl Ports,
    ) {
        let Self { times, series, links, .. } = self;
        if let Some((row, _)) = times.row(now) {
            series.times.push(now);
            for (number, seen) in seen.enumerate() {
                times.write(&mut series.seen_packets, row, number as u32, seen.unwrap_or(f64::NAN));
            }
            for (measured, samples) in links.iter().zip(&mut series.queues) {
                samples.record(&ports.view(measured.link, now));
            }
        }
        if times.ends_warmup(now) {
            for measured in links {
                measured.at_warmup = ports.view(measured.link, now).counted();
            }
        }
    }

    /// Ends the run at `now`: checks that every queue conserved its packets. Returns the outcome of each link
    /// whose results are asked for, and the samples.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub(crate) fn finish(
        mut self,
        now: Instant,
        ports: &mut impl Ports,
    ) -> Result<(Vec<LinkOutcome>, Series), Imbalance> {
        let mut outcomes = Vec::new();
        for MeasuredLink { link, name, rate, trace, at_warmup } in &self.links {
            let port = ports.final_view(*link, now);
            port.balance()?;
            let mut outcome = LinkOutcome::of(name, *rate, &port);
            if let Some(trace) = trace {
                outcome = outcome.used(trace.usage(port.statistics));
            }
            outcomes.push(outcome.after(at_warmup));
        }
        for &link in &self.unreported {
            ports.final_view(link, now).balance()?;
        }
        let taken = self.series.times.len() * self.times.flows;
        self.series.tables().into_iter().for_each(|table| table.truncate(taken));
        Ok((outcomes, self.series))
    }
}
