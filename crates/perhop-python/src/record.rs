//! A run whose packets are recorded: bytes of a capture file and of a table of events go to Python, which
//! writes them.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use perhop_core::Reason;
use perhop_pcap::{EventLog, PacketCapture, Setup, events};
use perhop_sim::observer::{Observation, Observed, Observer};
use perhop_sim::{Failure, Simulation};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::{Cancel, classes, fitting, outcome, raised};

/// A Python function that takes bytes.
struct Taker(Py<PyAny>);

impl Write for Taker {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Python::attach(|py| self.0.call1(py, (PyBytes::new(py, bytes),)))?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What records a run.
struct Recorder {
    capture: Option<PacketCapture<Taker>>,
    events: Option<EventLog<Taker>>,
}

impl Observer for Recorder {
    fn observe(&mut self, observed: &Observed) {
        if let Some(capture) = &mut self.capture {
            capture.observe(observed);
        }
        if let Some(events) = &mut self.events {
            events.observe(observed);
        }
    }
}

/// Runs a scenario once on the reference engine, and records its packets at links: the names of both
/// directions of each.
#[pyfunction]
#[pyo3(signature = (scenario, seed, cancel = None, *, links, comment, capture = None, events = None))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn record<'py>(
    py: Python<'py>,
    scenario: &str,
    seed: u64,
    cancel: Option<&Cancel>,
    links: Vec<(String, String)>,
    comment: &str,
    capture: Option<Py<PyAny>>,
    events: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (scenario, watch) = fitting(scenario, cancel)?;
    let (mut network, watch) = (scenario.network(), watch.of_one_run());
    let fault = classes::implement(&mut network, &watch);
    let number = |name: String| {
        let found = network.links.iter().position(|link| link.name == name);
        found.ok_or_else(|| PyValueError::new_err(format!("there is no link `{name}`")))
    };
    let both = |(forward, backward)| PyResult::Ok([number(forward)?, number(backward)?]);
    let links = links.into_iter().map(both).collect::<PyResult<Vec<_>>>()?;
    let setup = Setup { network: &network, links: &links, comment };
    let recorder = Arc::new(Mutex::new(Recorder {
        capture: capture.map(|taker| PacketCapture::begin(&setup, Taker(taker), watch.clone())),
        events: events.map(|taker| EventLog::begin(Taker(taker), watch.clone())),
    }));
    let observation = Observation::new(recorder.clone(), links.as_flattened().to_vec());
    let run = || {
        let outcome = Simulation::run_observed(&network, seed, &watch, observation);
        let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
        // A run that failed or was stopped leaves what it has not handed on.
        (outcome, recorder.finish())
    };
    let (outcome, written) = if fault.is_some() { run() } else { py.detach(run) };
    if let Some(error) = fault.and_then(|fault| fault.take(py)) {
        return Err(error);
    }
    match (outcome, written) {
        (Ok(outcome), Ok(())) => outcome::to_dict(py, &scenario, outcome),
        (Ok(_) | Err(Failure::Stopped), Err(error)) => Err(error.into()),
        (Err(failure), _) => Err(raised(failure)),
    }
}

impl Recorder {
    /// Hands on what remains.
    fn finish(&mut self) -> io::Result<()> {
        self.capture.take().map(PacketCapture::finish).transpose()?;
        self.events.take().map(EventLog::finish).transpose().map(drop)
    }
}

/// How events are recorded: the fields of a record with their types, and the names of events and of reasons
/// by number.
#[pyfunction]
pub(crate) fn record_format() -> (Vec<(&'static str, &'static str)>, Vec<&'static str>, Vec<&'static str>) {
    (events::FIELDS.to_vec(), events::EVENTS.to_vec(), Reason::ALL.map(Reason::name).to_vec())
}
