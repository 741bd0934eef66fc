//! A run that Python steps through: conversions of times, states and refusals.

#![expect(
    clippy::disallowed_types,
    reason = "how often signals are checked follows the wall clock; results do not"
)]

use std::sync::Arc;
use std::time::Instant as WallClock;

use perhop_core::{ClassCounters, Duration, Instant, Reason};
use perhop_scenario::{Notice, Scenario, notices_in};
use perhop_sim::{Stepping, Watch};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::classes::{self, Fault};
use crate::{Cancel, driver, engine_of, files, fitting, in_json, outcome, raised, refused};

/// How long the engine runs between two looks at signals such as Ctrl-C, about.
const PIECE: std::time::Duration = std::time::Duration::from_millis(30);

/// A run in progress.
#[pyclass(module = "perhop._engine")]
#[derive(Clone)]
pub(crate) struct Stepper {
    /// As it was at the start.
    scenario: Scenario,
    stepping: Stepping,
    /// What classes in Python raise, where there are any.
    fault: Option<Arc<Fault>>,
    /// A class has failed: this run cannot go on.
    has_failed: bool,
    /// The notices about the scenario so far.
    noticed: Vec<String>,
}

#[pymethods]
impl Stepper {
    #[new]
    #[pyo3(signature = (scenario, seed, engine, cancel = None))]
    fn new(scenario: &str, seed: u64, engine: &str, cancel: Option<&Cancel>) -> PyResult<Self> {
        let (scenario, _) = fitting(scenario, cancel)?;
        let mut network = scenario.network();
        let fault = classes::implement(&mut network, &Watch::default());
        let stepping = Stepping::new(&network, seed, engine_of(engine)?).map_err(raised)?;
        let noticed = notices(&scenario);
        let mut stepper = Self { scenario, stepping, fault, has_failed: false, noticed };
        stepper.check()?;
        Ok(stepper)
    }

    /// Up to when everything has happened, in nanoseconds.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.stepping.now().as_nanos()
    }

    /// When the run ends, in nanoseconds.
    #[getter]
    fn end_ns(&self) -> u64 {
        self.stepping.end().as_nanos()
    }

    /// Runs up to and including this time. A signal such as Ctrl-C ends it before; the run can go on from
    /// there.
    fn run_until(&mut self, py: Python<'_>, ns: u64) -> PyResult<()> {
        self.check()?;
        let until = Instant::from_nanos(ns).min(self.stepping.end());
        let mut piece = Duration::from_millis(100);
        while self.stepping.now() < until {
            let (started, next) = (WallClock::now(), (self.stepping.now() + piece).min(until));
            if self.fault.is_some() {
                self.stepping.run_until(next);
                self.check()?;
            } else {
                py.detach(|| self.stepping.run_until(next));
            }
            py.check_signals()?;
            let half = Duration::from_nanos((piece.as_nanos() / 2).max(1));
            piece = if started.elapsed() > PIECE { half } else { piece.saturating_mul(2) };
        }
        Ok(())
    }

    /// The names of the links with a queue, which can be read.
    fn link_names(&self) -> Vec<String> {
        let links = self.stepping.network().links.iter();
        links.filter(|link| link.queue.is_some()).map(|link| link.name.clone()).collect()
    }

    /// The names of the flows.
    fn flow_names(&self) -> Vec<String> {
        self.stepping.network().flows.iter().map(|flow| flow.name.clone()).collect()
    }

    /// The link of this name as it is now; `None` if there is none with a queue.
    fn link<'py>(&mut self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let links = &self.stepping.network().links;
        let Some(number) = links.iter().position(|link| link.name == name) else { return Ok(None) };
        let delay = links[number].delay.as_secs_f64();
        let (capacity, now) = (self.stepping.capacity(number), self.stepping.now());
        let Some(view) = self.stepping.link(number) else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("rate_bps", view.statistics.rates.rate_at(now).as_bps() as f64)?;
        dict.set_item("capacity_bits", capacity)?;
        dict.set_item("delay_s", delay)?;
        dict.set_item("gauges", view.gauges.clone())?;
        let classes = view.classes.iter().map(|(name, counters)| class(py, name, counters));
        dict.set_item("classes", classes.collect::<PyResult<Vec<_>>>()?)?;
        self.check()?;
        Ok(Some(dict))
    }

    /// The flow of this number as it is now.
    fn flow<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyDict>> {
        let state = self.stepping.flow(number).map_err(refused)?;
        let dict = PyDict::new(py);
        dict.set_item("window", state.window)?;
        dict.set_item("smoothed_rtt_s", state.smoothed_rtt_s)?;
        dict.set_item("sent", state.sent)?;
        dict.set_item("retransmitted", state.retransmitted)?;
        dict.set_item("timeouts", state.timeouts)?;
        dict.set_item("delivered_packets", state.delivered_packets)?;
        dict.set_item("delivered_bytes", state.delivered_bytes)?;
        dict.set_item("dropped", state.dropped)?;
        dict.set_item("lost", state.lost)?;
        dict.set_item("marked", state.marked)?;
        dict.set_item("congested", state.congested)?;
        dict.set_item("last_transit_s", state.last_transit.map(Duration::as_secs_f64))?;
        Ok(dict)
    }

    /// The run goes on with this scenario, which is returned as canonical JSON.
    fn change(&mut self, scenario: &str) -> PyResult<(String, Vec<String>)> {
        let scenario =
            Scenario::from_json_for(scenario, "scenario", driver(false), &*files(None)).map_err(refused)?;
        self.stepping.become_network(&scenario.network()).map_err(refused)?;
        let mut found = notices(&scenario);
        found.retain(|notice| !self.noticed.contains(notice));
        self.noticed.extend_from_slice(&found);
        Ok((in_json(&scenario)?, found))
    }

    /// A copy that goes on by itself.
    fn copy(&self) -> PyResult<Self> {
        let mut copy = self.clone();
        copy.check()?;
        Ok(copy)
    }

    /// What was measured: the dictionary of `simulate`. The run must be at its end.
    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let finish = || self.stepping.clone().finish();
        let finished = if self.fault.is_some() { finish() } else { py.detach(finish) };
        let finished = finished
            .map_err(|imbalance| PyRuntimeError::new_err(format!("perhop is at fault: {imbalance}")))?;
        outcome::to_dict(py, &self.scenario, finished)
    }
}

/// The notices about a scenario.
fn notices(scenario: &Scenario) -> Vec<String> {
    notices_in(None, "scenario", scenario.notices()).iter().map(Notice::to_string).collect()
}

impl Stepper {
    /// Raises what a class has raised, and that the run has ended with it.
    fn check(&mut self) -> PyResult<()> {
        if let Some(fault) = &self.fault {
            fault.check().inspect_err(|_| self.has_failed = true)?;
        }
        if self.has_failed {
            let text = "a class has failed, so this simulation cannot go on; `restore` an earlier snapshot";
            return Err(refused(text));
        }
        Ok(())
    }
}

/// A duration as scenarios write it, such as `5s`, in nanoseconds.
#[pyfunction]
pub(crate) fn duration_ns(text: &str) -> PyResult<u64> {
    text.parse::<Duration>().map(Duration::as_nanos).map_err(refused)
}

/// A class of packets: its name and counters.
pub(crate) fn class<'py>(
    py: Python<'py>,
    name: &str,
    counters: &ClassCounters,
) -> PyResult<Bound<'py, PyDict>> {
    let ClassCounters { occupancy, through } = counters;
    let dict = PyDict::new(py);
    dict.set_item("name", name)?;
    dict.set_item("packets", occupancy.packets())?;
    dict.set_item("bytes", occupancy.bytes())?;
    dict.set_item("arrived", through.arrived)?;
    dict.set_item("sent", through.sent)?;
    let by_reason = |counts: Vec<(Reason, [u64; 3])>| {
        counts.into_iter().map(|(reason, packets)| (reason.name(), packets)).collect::<Vec<_>>()
    };
    dict.set_item("dropped", by_reason(through.drops().collect()))?;
    dict.set_item("notified", by_reason(through.notifications().collect()))?;
    Ok(dict)
}
