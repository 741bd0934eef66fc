//! `perhop._engine`: conversions between Python and the engine, nothing else. It is a module of Python, which
//! no Rust program calls; its example is `perhop.run`:
//!
//! ```python
//! import perhop
//!
//! outcome = perhop.run("examples/asymmetric.toml", seed=1)
//! ```

#![expect(
    clippy::disallowed_macros,
    reason = "a thread that forks is asked whether it is in a class (`classes::instance`), and Clippy takes no narrower exception of `thread_local!`"
)]

mod arrays;
mod by_hand;
mod classes;
mod distributions;
mod live;
mod outcome;
mod record;
mod replay;
mod splitting;
mod stepping;
mod watchdog;

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use classes::{Classes, ScenarioFiles};
use perhop_replay::Captures;
use perhop_scenario::format::{TcpEnd, Warmup};
use perhop_scenario::{Driver, Files, Folder, NoFiles, Notice, Scenario, Syntax, notices_in};
use perhop_sim::{Engine, Failure, Network, Simulation, Watch};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

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
create_exception!(
    perhop._engine,
    CaptureError,
    PyValueError,
    "A capture that cannot be replayed: what is wrong with the file."
);
create_exception!(perhop._engine, Cancelled, PyException, "The run was cancelled before its end.");

/// A way to end runs early, and to see how far they are, from any thread.
#[pyclass(frozen, module = "perhop._engine")]
#[derive(Default)]
struct Cancel {
    watch: Watch,
    /// Runs that take more are refused.
    most_bytes: Option<u64>,
}

#[pymethods]
impl Cancel {
    #[new]
    #[pyo3(signature = (most_bytes = None))]
    fn new(most_bytes: Option<u64>) -> Self {
        Self { most_bytes, ..Self::default() }
    }

    /// Ends every run that was given this object; they raise `Cancelled`.
    fn cancel(&self) {
        self.watch.stop();
    }

    /// Whether `cancel` was called.
    fn is_cancelled(&self) -> bool {
        self.watch.is_stopped()
    }

    /// The runs with this object that are on, each by the part of it that has been simulated.
    fn under_way(&self) -> f64 {
        self.watch.under_way()
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

/// The guaranteed bounds of a scenario's links, classes and flows as JSON. The scenario is canonical JSON.
#[pyfunction]
#[pyo3(signature = (text, cancel = None))]
fn bounds(py: Python<'_>, text: &str, cancel: Option<&Cancel>) -> PyResult<String> {
    let scenario = scenario(text)?;
    let (network, watch) = (scenario.network(), watch_of(cancel));
    // A fault here must end neither a run, beside whose results bounds stand, nor Python.
    let found =
        py.detach(|| catch_unwind(AssertUnwindSafe(|| perhop_bounds::bounds_until(&network, &watch))));
    let found = found.map_err(|_| PyRuntimeError::new_err("a fault of perhop: no bounds can be derived"))?;
    let mut bounds = found.ok_or_else(|| Cancelled::new_err("cancelled"))?;
    // As in outcomes, links are those with a queue.
    let mut links = network.links.iter();
    let mut has_results =
        || links.next().is_some_and(|link| link.queue.is_some() && scenario.has_results(&link.name));
    bounds.links.retain(|_| has_results());
    in_json(&bounds)
}

/// The sender and the receiver of each group's TCP on real packets, `kernel` or `perhop`; `None` for other
/// transports and for users. The scenario is canonical JSON.
#[pyfunction]
fn tcp_ends(text: &str) -> PyResult<Vec<Option<(&'static str, &'static str)>>> {
    let scenario = scenario(text)?;
    let name = |end| match end {
        TcpEnd::Kernel => "kernel",
        TcpEnd::Perhop => "perhop",
    };
    let ends = scenario.flows.iter().map(|flow| scenario.tcp_ends(flow));
    Ok(ends.map(|ends| ends.map(|(sender, receiver)| (name(sender), name(receiver)))).collect())
}

/// What of a text in this syntax, `toml`, `json` or `xml`, no reader takes: its line, and what it is; `None`
/// if there is nothing.
#[pyfunction]
fn excess(text: &str, syntax: &str) -> PyResult<Option<(usize, String)>> {
    let known = Syntax::of(syntax);
    let syntax = known.ok_or_else(|| PyValueError::new_err(format!("`{syntax}` is no syntax")))?;
    Ok(syntax.check(text).err().map(|excess| (excess.line, excess.text)))
}

/// A scenario in JSON as TOML, defaults filled in.
#[pyfunction]
fn scenario_to_toml(text: &str, origin: &str) -> PyResult<String> {
    Ok(Scenario::from_json(text, origin).map_err(refused)?.to_toml())
}

/// A scenario in canonical JSON.
fn scenario(text: &str) -> PyResult<Scenario> {
    Scenario::from_json(text, "scenario").map_err(refused)
}

/// The error to raise for an argument that is wrong.
fn invalid(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The error to raise for a scenario that cannot be run.
fn refused(error: impl Display) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

fn canonical(read: Result<Scenario, perhop_scenario::ScenarioError>) -> PyResult<String> {
    in_json(&read.map_err(refused)?)
}

fn in_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Reads a scenario in TOML that is to be simulated or, if said, run on real packets: canonical JSON, and
/// notices. It may name files in `folder`, if that is given.
#[pyfunction]
#[pyo3(signature = (text, origin, *, real_packets = false, folder = None))]
fn read_toml(
    text: &str,
    origin: &str,
    real_packets: bool,
    folder: Option<PathBuf>,
) -> PyResult<(String, Vec<String>)> {
    let scenario = Scenario::from_toml_for(text, origin, driver(real_packets), &*files(folder));
    with_notices(scenario, Some(text), origin)
}

/// Reads and checks a scenario in JSON.
#[pyfunction]
#[pyo3(signature = (text, origin, *, real_packets = false, folder = None))]
fn read_json(
    text: &str,
    origin: &str,
    real_packets: bool,
    folder: Option<PathBuf>,
) -> PyResult<(String, Vec<String>)> {
    let scenario = Scenario::from_json_for(text, origin, driver(real_packets), &*files(folder));
    with_notices(scenario, None, origin)
}

fn files(folder: Option<PathBuf>) -> Box<dyn Files> {
    let files: Box<dyn Files> = match folder.clone() {
        Some(folder) => Box::new(Captures(Folder::new(folder))),
        None => Box::new(NoFiles),
    };
    Box::new(ScenarioFiles { files, classes: Classes { folder } })
}

fn driver(real_packets: bool) -> Driver {
    if real_packets { Driver::RealPackets } else { Driver::Simulator }
}

fn with_notices(
    read: Result<Scenario, perhop_scenario::ScenarioError>,
    toml: Option<&str>,
    origin: &str,
) -> PyResult<(String, Vec<String>)> {
    let found = read.as_ref().map_or_else(|_| Vec::new(), Scenario::notices);
    let notices = notices_in(toml, origin, found).iter().map(Notice::to_string).collect();
    canonical(read).map(|text| (text, notices))
}

/// What the network of a scenario is like, as JSON.
#[pyfunction]
fn shape(py: Python<'_>, scenario: &str) -> PyResult<String> {
    let scenario = self::scenario(scenario)?;
    in_json(&py.detach(|| scenario.shape()))
}

/// A scenario with a table for each link in place of its topology, as canonical JSON.
#[pyfunction]
fn written_out(scenario: &str) -> PyResult<String> {
    canonical(Scenario::from_json(scenario, "scenario").map(|scenario| scenario.written_out()))
}

/// A scenario with the default limits of its queues written out, as canonical JSON.
#[pyfunction]
fn with_limits(scenario: &str) -> PyResult<String> {
    canonical(Scenario::from_json(scenario, "scenario").map(Scenario::with_limits))
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

/// The presets of TCP with the source of each default, as JSON.
#[pyfunction]
fn tcp_presets() -> String {
    perhop_scenario::tcp_presets().to_string()
}

/// The catalogue of measures, as JSON.
#[pyfunction]
fn measures() -> String {
    perhop_scenario::measures().to_string()
}

/// Runs a scenario once, on the engine of this name; without one, on the batched engine if that accepts the
/// network, else on the reference engine. The batched engine divides a large network among at most so many
/// threads. Other Python threads go on meanwhile. A warm-up that has to be found is refused.
#[pyfunction]
#[pyo3(signature = (scenario, seed, cancel = None, *, engine = None, threads = 1))]
fn simulate<'py>(
    py: Python<'py>,
    scenario: &str,
    seed: u64,
    cancel: Option<&Cancel>,
    engine: Option<&str>,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (scenario, watch) = fitting(scenario, cancel)?;
    if scenario.warmup == Warmup::Auto {
        return Err(ScenarioError::new_err(
            "scenario: warmup: `auto` has not been found; write a duration, 0s for none",
        ));
    }
    let engine = engine.map(engine_of).transpose()?;
    let (mut network, watch) = (py.detach(|| scenario.network_of_results()), watch.of_one_run());
    let fault = classes::implement(&mut network, &watch);
    let run = |network: Network, threads| {
        let simulation = Simulation::start(&network, seed, engine, threads, watch.clone())?;
        drop(network); // a large one takes as much as a tenth of its run
        simulation.complete()
    };
    let outcome = match fault {
        None => py.detach(|| run(network, threads)),
        Some(fault) => {
            let outcome = run(network, 1); // this thread has the interpreter
            fault.take(py).map_or(Ok(outcome), Err)?
        }
    };
    outcome::to_dict(py, &scenario, outcome.map_err(raised)?)
}

fn watch_of(cancel: Option<&Cancel>) -> Watch {
    cancel.map(|cancel| cancel.watch.clone()).unwrap_or_default()
}

/// A scenario that is to be simulated, and what watches its run.
fn fitting(scenario: &str, cancel: Option<&Cancel>) -> PyResult<(Scenario, Watch)> {
    let scenario = self::scenario(scenario)?;
    let memory = scenario.memory();
    if let Some(most) = cancel.and_then(|cancel| cancel.most_bytes).filter(|&most| memory.run() > most) {
        return Err(PyMemoryError::new_err(format!(
            "{memory}, and {:.1} GB are there for it",
            most as f64 / 1e9
        )));
    }
    Ok((scenario, watch_of(cancel)))
}

/// The engine that runs a scenario if none is requested: its name, and why it is the reference engine.
#[pyfunction]
#[pyo3(signature = (scenario, cancel = None))]
fn engine_for(
    py: Python<'_>,
    scenario: &str,
    cancel: Option<&Cancel>,
) -> PyResult<(&'static str, Option<String>)> {
    let scenario = self::scenario(scenario)?;
    let watch = watch_of(cancel);
    let used = py.detach(|| Simulation::engine_for(&scenario.network(), &watch));
    let used = used.map_err(raised)?;
    Ok((used.engine().name(), used.reason()))
}

/// How a scenario is divided among at most so many threads if no engine is requested, or why it is not.
#[pyfunction]
#[pyo3(signature = (scenario, threads, cancel = None))]
fn division<'py>(
    py: Python<'py>,
    scenario: &str,
    threads: usize,
    cancel: Option<&Cancel>,
) -> PyResult<(Option<Bound<'py, PyDict>>, Option<String>)> {
    let scenario = self::scenario(scenario)?;
    let watch = watch_of(cancel);
    let network = scenario.network();
    if network.classes().next().is_some() {
        return Ok((None, Some("classes in Python run on one thread".into())));
    }
    let divided = py.detach(|| Simulation::division(&network, threads, &watch));
    let found = match divided.map_err(raised)? {
        Ok(found) => found,
        Err(reason) => return Ok((None, Some(reason.to_string()))),
    };
    let dict = PyDict::new(py);
    dict.set_item("routers", found.routers)?;
    dict.set_item("work", found.work)?;
    dict.set_item("border", found.border)?;
    dict.set_item("lookahead_s", found.lookahead.as_secs_f64())?;
    Ok((Some(dict), None))
}

fn engine_of(name: &str) -> PyResult<Engine> {
    let found = Engine::ALL.into_iter().find(|engine| engine.name() == name);
    found.ok_or_else(|| {
        let names = Engine::ALL.map(|engine| format!("`{}`", engine.name())).join(" or ");
        PyValueError::new_err(format!("engine must be {names}, not `{name}`"))
    })
}

fn raised(failure: Failure) -> PyErr {
    match failure {
        Failure::NoRoute(_)
        | Failure::Refused(_)
        | Failure::Undivided(_)
        | Failure::NotImplemented { .. } => ScenarioError::new_err(failure.to_string()),
        Failure::Imbalance(imbalance) => PyRuntimeError::new_err(format!("perhop is at fault: {imbalance}")),
        Failure::Stopped => Cancelled::new_err("cancelled"),
    }
}

/// How much memory a run takes; packets not counted, except in large networks.
#[pyfunction]
fn memory<'py>(py: Python<'py>, scenario: &str) -> PyResult<Bound<'py, PyDict>> {
    let scenario = self::scenario(scenario)?;
    let memory = scenario.memory();
    let dict = PyDict::new(py);
    dict.set_item("flows", memory.flows)?;
    dict.set_item("flow_bytes", memory.flow_bytes)?;
    dict.set_item("links", memory.links)?;
    dict.set_item("link_bytes", memory.link_bytes)?;
    dict.set_item("samples", memory.samples)?;
    dict.set_item("sample_bytes", memory.sample_bytes)?;
    dict.set_item("run_bytes", memory.run())?;
    dict.set_item("kept_bytes", memory.kept())?;
    dict.set_item("text", memory.to_string())?;
    Ok(dict)
}

/// perhop's engine.
#[pymodule]
mod _engine {
    #[pymodule_export]
    use super::{
        Cancel, Cancelled, CaptureError, LiveUnavailable, ScenarioError, blocks, bounds, division,
        engine_for, excess, measures, memory, read_json, read_toml, scenario_from_json, scenario_from_toml,
        scenario_schema, scenario_to_toml, shape, simulate, tcp_ends, tcp_presets, with_limits, written_out,
    };
    #[pymodule_export]
    use crate::by_hand::{MeterByHand, QueueByHand};
    #[pymodule_export]
    use crate::classes::{
        AckView, ActionView, Depth, LossView, PacketView, QueueView, RandomView, Verdict, check_application,
        check_aqm, check_congestion_control, check_meter, inside_class, quantity, set_forked,
    };
    #[pymodule_export]
    use crate::distributions::{beta_quantile, product_limit, student_t_cdf, student_t_quantile};
    #[pymodule_export]
    use crate::live::{kernel_queue, live, live_check, live_in_virtual_time, live_probe};
    #[pymodule_export]
    use crate::record::{record, record_format};
    #[pymodule_export]
    use crate::replay::replay;
    #[pymodule_export]
    use crate::splitting::{split_pilot, split_run};
    #[pymodule_export]
    use crate::stepping::{Stepper, duration_ns};
    #[pymodule_export]
    use crate::watchdog::{end_with_parent, interrupt_handled, watch_interrupts};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const version: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const optimized: bool = !matches!(env!("PERHOP_OPT_LEVEL").as_bytes(), b"0");
}
