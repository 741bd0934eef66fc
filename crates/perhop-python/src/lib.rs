//! `perhop._engine`: conversions between Python and the engine, nothing else.

mod live;
mod outcome;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use perhop_core::{Duration, Instant};
use perhop_scenario::Scenario;
use perhop_sim::{Service, Simulation};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

create_exception!(
    perhop._engine,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run, with the place and the remedy."
);
create_exception!(
    perhop._engine,
    LiveUnavailable,
    PyException,
    "This system cannot run scenarios on real packets: what is missing, and what would help."
);
create_exception!(perhop._engine, Cancelled, PyException, "The run was cancelled before its end.");

/// Runs look at their cancellation this often in simulated time, but no more than [`SLICES`] times.
const SLICE: Duration = Duration::from_millis(100);
const SLICES: u64 = 1000;

/// A way to end runs early, from any thread.
#[pyclass(frozen, module = "perhop._engine")]
#[derive(Default)]
struct Cancel(Arc<AtomicBool>);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends every run that was given this object; they raise `Cancelled`.
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads a scenario in TOML and returns it as canonical JSON, defaults filled in.
#[pyfunction]
fn scenario_from_toml(text: &str, origin: &str) -> PyResult<String> {
    canonical(Scenario::from_toml(text, origin))
}

/// Reads a scenario in JSON and returns it as canonical JSON, defaults filled in.
#[pyfunction]
fn scenario_from_json(text: &str, origin: &str) -> PyResult<String> {
    canonical(Scenario::from_json(text, origin))
}

/// A scenario in JSON as TOML, defaults filled in.
#[pyfunction]
fn scenario_to_toml(text: &str, origin: &str) -> PyResult<String> {
    let scenario =
        Scenario::from_json(text, origin).map_err(|error| ScenarioError::new_err(error.to_string()))?;
    Ok(scenario.to_toml())
}

fn canonical(read: Result<Scenario, perhop_scenario::ScenarioError>) -> PyResult<String> {
    let scenario = read.map_err(|error| ScenarioError::new_err(error.to_string()))?;
    serde_json::to_string(&scenario).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// The JSON Schema of the scenario format.
#[pyfunction]
fn scenario_schema() -> String {
    perhop_scenario::schema().to_string()
}

/// Every registered block, as JSON.
#[pyfunction]
fn blocks() -> String {
    perhop_scenario::blocks().to_string()
}

/// Runs a scenario once. Other Python threads go on meanwhile. With `plainly`, hop by hop in the order of time: the result is
/// the same.
#[pyfunction]
#[pyo3(signature = (scenario, seed, cancel = None, *, plainly = false))]
fn simulate<'py>(
    py: Python<'py>,
    scenario: &str,
    seed: u64,
    cancel: Option<&Cancel>,
    plainly: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario =
        Scenario::from_json(scenario, "scenario").map_err(|e| ScenarioError::new_err(e.to_string()))?;
    let cancelled = cancel.map(|cancel| Arc::clone(&cancel.0)).unwrap_or_default();
    let outcome = py.detach(|| {
        let service = if plainly { Service::ByEvent } else { Service::OnDemand };
        let mut simulation = Simulation::with_service(&scenario.network(), seed, service)
            .map_err(|e| ScenarioError::new_err(e.to_string()))?;
        let end = simulation.end().as_nanos();
        let slices = (end / SLICE.as_nanos()).clamp(1, SLICES);
        for slice in 1..=slices {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Cancelled::new_err("cancelled"));
            }
            let until = u128::from(end) * u128::from(slice) / u128::from(slices);
            simulation.run_until(Instant::from_nanos(until as u64));
        }
        simulation
            .finish()
            .map_err(|imbalance| PyRuntimeError::new_err(format!("perhop is at fault: {imbalance}")))
    })?;
    outcome::to_dict(py, &scenario, &outcome)
}

/// perhop's engine.
#[pymodule]
mod _engine {
    #[pymodule_export]
    use super::{
        Cancel, Cancelled, LiveUnavailable, ScenarioError, blocks, scenario_from_json, scenario_from_toml,
        scenario_schema, scenario_to_toml, simulate,
    };
    #[pymodule_export]
    use crate::live::{live, live_probe};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const version: &str = env!("CARGO_PKG_VERSION");
}
