//! One run on several threads: conservative parallel simulation, without rollbacks.
//!
//! The routers are divided into parts ([`Partition`]). Each part is a run of the batched engine with its own
//! links, hosts and events ([`split`]); a flow whose packets pass several parts has a replica in each. A
//! packet that leaves a part needs at least the look-ahead of the border to reach another one. So in each
//! round all parts run for that long without one another ([`threads`]), and exchange their packets then.
//!
//! The order of simultaneous events depends on what happens and not on when it was added, and a part numbers
//! its flows and links in the order of the network. So the outcome is the same for every number of threads.

mod barrier;
mod partition;
mod split;
mod threads;
mod work;

use perhop_core::{Duration, Imbalance, Instant};

use super::batched::{Accepted, Finished};
use super::setup::Setup;
use crate::flow::{Ends, Flow};
use crate::network::Network;
use crate::outcome::Outcome;
use crate::probe::{QueueSeries, Series};
use crate::sampling::SampleTimes;
use crate::watch::{Progress, Stopped, Watch};
use crate::window_control::WindowControls;
pub use partition::Division;
pub(super) use partition::Partition;
use split::Part;
pub use threads::Schedule;
use threads::Sharing;

/// A run in progress.
#[derive(Clone, Debug)]
pub(super) struct Parallel {
    now: Instant,
    parts: Vec<Part>,
    /// A packet takes at least this long from a part to another.
    lookahead: Duration,
    sharing: Sharing,
    times: SampleTimes,
    controls: WindowControls,
}

impl Parallel {
    /// The network at time zero.
    ///
    /// # Errors
    /// The watch stopped the run.
    pub(super) fn new(
        network: &Network,
        seed: u64,
        setup: Setup,
        accepted: Accepted,
        partition: &Partition,
        watch: &Watch,
    ) -> Result<Self, Stopped> {
        let times = setup.recorder.times.clone();
        let controls = setup.controls.clone();
        let parts = split::split(network, seed, setup, accepted, partition, watch)?;
        let (lookahead, sharing) = (partition.lookahead, Sharing::Adaptive { alone: false });
        Ok(Self { now: Instant::ZERO, parts, lookahead, sharing, times, controls })
    }

    /// Alternates between a thread for each part and one for all of them, so that tests cover both.
    pub(super) fn alternating(mut self) -> Self {
        self.sharing = Sharing::Alternating;
        self
    }

    /// Runs all parts on one thread to the end, and returns what a thread for each would take.
    pub(super) fn count(mut self, until: Instant, watch: &Watch) -> Schedule {
        self.sharing = Sharing::Counted(Schedule::default());
        self.run_until(until, watch, &mut Progress::default());
        match self.sharing {
            Sharing::Counted(schedule) => schedule,
            _ => unreachable!("nothing else sets it"),
        }
    }

    /// Handles all events up to and including `until`, unless the watch stops the run.
    pub(super) fn run_until(&mut self, until: Instant, watch: &Watch, progress: &mut Progress) {
        let engines = self.parts.iter_mut().map(|part| &mut part.engine).collect();
        threads::run(engines, (self.lookahead, until), &mut self.sharing, watch, progress);
        self.now = until;
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Window controls: a network that has any is not divided.
    pub(super) fn controls(&self) -> &WindowControls {
        &self.controls
    }

    /// Ends the run: checks that every queue conserved its packets.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub(super) fn finish(self) -> Result<Outcome, Imbalance> {
        let Self { parts, times, .. } = self;
        let flows = times.flows;
        let mut whole: Vec<Option<Flow>> = std::iter::repeat_with(|| None).take(flows).collect();
        let mut links = Vec::new();
        let mut samples = Samples { series: Series::default(), flows, queues: Vec::new() };
        let (mut events, mut hops) = (0, 0);
        for Part { engine, flows, measured } in parts {
            let finished: Finished = engine.take_apart()?;
            events += finished.events;
            hops += finished.hops;
            links.extend(measured.iter().copied().zip(finished.links));
            samples.add(finished.series, &flows, &measured);
            for ((number, ends), flow) in flows.into_iter().zip(finished.flows) {
                match &mut whole[number as usize] {
                    Some(joined) => joined.join(flow, ends),
                    place => *place = Some(flow),
                }
            }
        }
        links.sort_by_key(|&(link, _)| link);
        Ok(Outcome {
            engine: None,
            events,
            hops,
            flows: whole.into_iter().flatten().map(|flow| flow.finish(&times, times.end)).collect(),
            populations: Vec::new(),
            links: links.into_iter().map(|(_, link)| link).collect(),
            applications: Vec::new(),
            series: samples.finish(),
        })
    }
}

/// The samples of all parts.
struct Samples {
    series: Series,
    flows: usize,
    queues: Vec<(usize, QueueSeries)>,
}

impl Samples {
    /// Adds the samples of one part: those of its queues, and of the hosts of flows that are there.
    fn add(&mut self, mut part: Series, flows: &[(u32, Ends)], measured: &[usize]) {
        let Self { series, flows: columns, queues } = self;
        let of_whole = part.times.len() * *columns;
        let tables = series.tables().into_iter().zip(part.tables());
        for (is_senders, (table, values)) in [false, true, true, true].into_iter().zip(tables) {
            table.resize(of_whole, f64::NAN);
            let rows = table.chunks_exact_mut((*columns).max(1)).zip(values.chunks_exact(flows.len().max(1)));
            for (row, values) in rows {
                for (&(number, ends), &value) in flows.iter().zip(values) {
                    if if is_senders { ends.sends } else { ends.receives } {
                        row[number as usize] = value;
                    }
                }
            }
        }
        series.times = part.times;
        queues.extend(measured.iter().copied().zip(part.queues));
    }

    fn finish(self) -> Series {
        let Self { mut series, mut queues, .. } = self;
        queues.sort_by_key(|&(link, _)| link);
        series.queues = queues.into_iter().map(|(_, queue)| queue).collect();
        series
    }
}
