//! The engine of a run: the choice between the two, and the run from its start to its outcome.

use perhop_core::{Duration, Imbalance, Instant};

use super::batched::{Accepted, Batched};
use super::failure::{Failure, OneThread};
use super::parallel::{Division, Parallel, Partition, Schedule};
use super::reference::Reference;
use super::setup::Setup;
use crate::choice::{Engine, EngineUsed};
use crate::network::{Network, NoRoute};
use crate::observer::Observation;
use crate::outcome::Outcome;
use crate::watch::{Progress, Watch};

/// A run in progress.
#[derive(Clone, Debug)]
pub struct Simulation {
    pub(super) run: Run,
    used: EngineUsed,
    pub(super) watch: Watch,
    progress: Progress,
    end: Instant,
}

/// The engine of a run, at the time that the run has come to.
#[derive(Clone, Debug)]
pub(super) enum Run {
    Batched(Box<Batched>),
    Parallel(Box<Parallel>),
    Reference(Box<Reference>),
}

/// Calls the engine that runs.
macro_rules! engine {
    ($run:expr, $engine:ident => $call:expr) => {
        match $run {
            Run::Batched($engine) => $call,
            Run::Parallel($engine) => $call,
            Run::Reference($engine) => $call,
        }
    };
}

impl Simulation {
    /// The network at time zero, on the batched engine if that accepts it, else on the reference engine.
    ///
    /// # Errors
    /// A flow's endpoints are not connected, or not by its path.
    ///
    /// # Panics
    /// A block is implemented outside, and has no implementation: [`Failure::NotImplemented`].
    pub fn new(network: &Network, seed: u64) -> Result<Self, NoRoute> {
        match Self::start(network, seed, None, 1, Watch::default()) {
            Ok(simulation) => Ok(simulation),
            Err(Failure::NoRoute(refused)) => Err(refused),
            Err(failure @ Failure::NotImplemented { .. }) => panic!("{failure}"),
            Err(failure) => unreachable!("no engine was requested, nothing ran or was stopped: {failure}"),
        }
    }

    /// The network at time zero, on the engine that is requested.
    ///
    /// # Errors
    /// A flow's endpoints are not connected, or not by its path; the batched engine refuses the network.
    pub fn on_engine(network: &Network, seed: u64, engine: Engine) -> Result<Self, Failure> {
        Self::start(network, seed, Some(engine), 1, Watch::default())
    }

    /// Runs a network from its beginning to its end, or until the watch stops it: on the requested engine;
    /// without a request, on the batched engine if that accepts the network, else on the reference engine.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(
        network: &Network,
        seed: u64,
        requested: Option<Engine>,
        watch: &Watch,
    ) -> Result<Outcome, Failure> {
        Self::run_on_threads(network, seed, requested, 1, watch)
    }

    /// Runs a network as [`run`](Self::run) does, on at most so many threads, if the batched engine runs the
    /// network and it can be divided among them. The outcome does not depend on the number of threads.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run_on_threads(
        network: &Network,
        seed: u64,
        requested: Option<Engine>,
        threads: usize,
        watch: &Watch,
    ) -> Result<Outcome, Failure> {
        Self::start(network, seed, requested, threads, watch.clone())?.complete()
    }

    /// Runs a network on the reference engine, while an observer sees what becomes of packets at links. The
    /// outcome is that of any other run.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run_observed(
        network: &Network,
        seed: u64,
        watch: &Watch,
        observation: Observation,
    ) -> Result<Outcome, Failure> {
        let mut simulation = Self::start(network, seed, Some(Engine::Reference), 1, watch.clone())?;
        simulation.used = EngineUsed::Observed;
        if let Run::Reference(engine) = &mut simulation.run {
            engine.observe(observation);
        }
        simulation.complete()
    }

    /// Runs a network in parts, where each router is in the part of this number; alternates between a thread
    /// for each part and one for all.
    ///
    /// # Errors
    /// See [`Failure`]; also, the routers cannot be divided so.
    pub fn run_divided(network: &Network, seed: u64, of_node: &[u32]) -> Result<Outcome, Failure> {
        let watch = Watch::default();
        let setup = Setup::new(network, seed, &watch)?;
        let accepted = Accepted::of(network, &setup).map_err(Failure::Refused)?;
        let partition = Partition::by(network, &setup, of_node).map_err(Failure::Undivided)?;
        let engine = Parallel::new(network, seed, setup, accepted, &partition, &watch)?.alternating();
        let run = Run::Parallel(Box::new(engine));
        let end = Instant::ZERO + network.duration;
        Self { run, used: EngineUsed::Batched, watch, progress: Progress::default(), end }.complete()
    }

    /// Runs to the end, or until the watch stops it.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn complete(mut self) -> Result<Outcome, Failure> {
        self.run_to_end();
        self.progress.end(&self.watch);
        if self.watch.is_stopped() {
            return Err(Failure::Stopped);
        }
        self.finish().map_err(Failure::Imbalance)
    }

    /// The network at time zero, as [`run_on_threads`](Self::run_on_threads) would run it. The run needs the
    /// network no more: who drops it before [`complete`](Self::complete) saves its memory.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn start(
        network: &Network,
        seed: u64,
        requested: Option<Engine>,
        threads: usize,
        watch: Watch,
    ) -> Result<Self, Failure> {
        debug_assert!(network.duration < Duration::AGES);
        if let Some((place, class, _)) = network.classes().find(|(_, _, is_implemented)| !is_implemented) {
            return Err(Failure::NotImplemented { class: class.into(), place });
        }
        let setup = Setup::new(network, seed, &watch)?;
        let accepted = match requested {
            Some(Engine::Reference) => Err(EngineUsed::Requested),
            Some(Engine::Batched) => Ok(Accepted::of(network, &setup).map_err(Failure::Refused)?),
            None => Accepted::of(network, &setup).map_err(EngineUsed::Refused),
        };
        let (run, used) = match accepted {
            Ok(accepted) => {
                let run = if let Ok(partition) = Partition::of(network, &setup, threads) {
                    let engine = Parallel::new(network, seed, setup, accepted, &partition, &watch)?;
                    Run::Parallel(Box::new(engine))
                } else {
                    let engine = Batched::new(network, seed, setup, accepted, watch.clone(), None)?;
                    Run::Batched(Box::new(engine))
                };
                (run, EngineUsed::Batched)
            }
            Err(used) => (Run::Reference(Box::new(Reference::new(network, seed, setup))), used),
        };
        let end = Instant::ZERO + network.duration;
        Ok(Self { run, used, watch, progress: Progress::default(), end })
    }

    /// The engine that runs a network if none is requested, and why. It does not depend on the seed.
    ///
    /// # Errors
    /// A flow's endpoints are not connected, or not by its path; the watch stopped the setup of the flows.
    pub fn engine_for(network: &Network, watch: &Watch) -> Result<EngineUsed, Failure> {
        let setup = Setup::new(network, 0, watch)?;
        Ok(match Accepted::of(network, &setup) {
            Ok(_) => EngineUsed::Batched,
            Err(refusal) => EngineUsed::Refused(refusal),
        })
    }

    /// Returns how a network is divided among at most so many threads, if no engine is requested.
    ///
    /// # Errors
    /// A flow's endpoints are not connected, or not by its path; the watch stopped the setup of the flows.
    pub fn division(
        network: &Network,
        threads: usize,
        watch: &Watch,
    ) -> Result<Result<Division, OneThread>, Failure> {
        let setup = Setup::new(network, 0, watch)?;
        Ok(match Accepted::of(network, &setup) {
            Ok(_) => Partition::of(network, &setup, threads).map(|found| found.division(network, &setup)),
            Err(_) => Err(OneThread::Reference),
        })
    }

    /// Runs a network in at most so many parts on one thread, and returns what a thread for each would take.
    ///
    /// # Errors
    /// See [`Failure`]; also, the network cannot be divided.
    pub fn schedule(
        network: &Network,
        seed: u64,
        threads: usize,
        watch: &Watch,
    ) -> Result<Schedule, Failure> {
        let setup = Setup::new(network, seed, watch)?;
        let accepted = Accepted::of(network, &setup).map_err(Failure::Refused)?;
        let partition = Partition::of(network, &setup, threads).map_err(Failure::Undivided)?;
        let engine = Parallel::new(network, seed, setup, accepted, &partition, watch)?;
        let schedule = engine.count(Instant::ZERO + network.duration, watch);
        if watch.is_stopped() { Err(Failure::Stopped) } else { Ok(schedule) }
    }

    /// The engine that runs, and why.
    pub fn engine(&self) -> &EngineUsed {
        &self.used
    }

    /// Handles all events up to and including `until`, and never beyond the end of the run. If its watch
    /// stops it, it stays incomplete: no later call continues it.
    pub fn run_until(&mut self, until: Instant) {
        let until = until.min(self.end());
        let Self { run, watch, progress, .. } = self;
        engine!(run, engine => engine.run_until(until, watch, progress));
    }

    /// Handles all events of the run.
    pub fn run_to_end(&mut self) {
        self.run_until(self.end());
    }

    /// The time up to which all events have been handled.
    pub fn now(&self) -> Instant {
        engine!(&self.run, engine => engine.now())
    }

    /// When the run ends.
    pub fn end(&self) -> Instant {
        self.end
    }

    /// Returns for each window control the round trip of its path as last measured; `None` where the interval
    /// is fixed.
    pub fn round_trips(&self) -> impl Iterator<Item = Option<Duration>> {
        engine!(&self.run, engine => engine.controls()).round_trips()
    }

    /// Ends the run: checks that every queue conserved its packets, and returns what was measured. Before the
    /// end of the run, the batched engine has counted packets, events and hops of flows ahead of the clock.
    ///
    /// # Errors
    /// A queue lost or invented packets.
    pub fn finish(self) -> Result<Outcome, Imbalance> {
        let outcome = engine!(self.run, engine => engine.finish())?;
        Ok(Outcome { engine: Some(self.used), ..outcome })
    }
}
