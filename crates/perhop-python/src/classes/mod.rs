//! Classes in Python as blocks of a simulation: what they are given, and what becomes of what they return.
//!
//! While such a run goes on, it holds the interpreter: to give it up and take it back for each packet would
//! cost more than most rules. Python lets other threads in between two instructions of the class, so Ctrl-C
//! and progress get through.

mod application;
mod aqm;
mod check;
mod check_ends;
mod congestion;
mod inside;
mod meter;
mod views;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use perhop_core::aqm::ForeignParams;
use perhop_core::meter::{ForeignMeterParams, MeterParams};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Header, Instant, Role};
use perhop_scenario::{Files, Plugins};
use perhop_sim::application::ForeignApplicationParams;
use perhop_sim::transport::tcp::congestion::ForeignCongestionParams;
use perhop_sim::{Network, Watch};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Map, Value, json};

pub(crate) use application::ActionView;
use application::PythonUsers;
use aqm::PythonAqms;
pub(crate) use check::{check_aqm, check_meter};
pub(crate) use check_ends::{check_application, check_congestion_control};
use congestion::PythonControls;
pub(crate) use congestion::{AckView, LossView};
use inside::INSIDE;
use meter::PythonMeters;
use views::renew;
pub(crate) use views::{Depth, PacketView, QueueView, RandomView, Verdict, quantity};

use crate::Cancelled;

/// The module that knows the classes.
const MODULE: &str = "perhop.plugins";

/// The files that a scenario names, and the classes of Python.
pub(crate) struct ScenarioFiles {
    pub(crate) files: Box<dyn Files>,
    pub(crate) classes: Classes,
}

impl Files for ScenarioFiles {
    fn plugins(&self) -> Option<&dyn Plugins> {
        Some(&self.classes)
    }
    fn read(&self, name: &str) -> Result<String, String> {
        self.files.read(name)
    }
    fn read_capture(
        &self,
        name: &str,
        from: perhop_core::Duration,
        to: Option<perhop_core::Duration>,
    ) -> Result<String, String> {
        self.files.read_capture(name, from, to)
    }
}

/// The classes that Python knows; modules are also looked for in the scenario's folder.
pub(crate) struct Classes {
    pub(crate) folder: Option<std::path::PathBuf>,
}

impl Plugins for Classes {
    fn complete(
        &self,
        role: Role,
        name: &str,
        table: &mut Map<String, Value>,
    ) -> Result<bool, (String, String)> {
        let refused = |py: Python<'_>, error: PyErr| {
            let value = error.value(py);
            let text = |name| value.getattr(name).and_then(|text| text.extract::<String>());
            match (text("key"), text("text")) {
                (Ok(key), Ok(text)) => (key, text),
                _ => (String::new(), error.to_string()),
            }
        };
        let text = Value::Object(table.clone()).to_string();
        let role = json!(role);
        let role = role.as_str();
        let completed: Option<String> = Python::attach(|py| {
            let complete = py.import(MODULE).and_then(|module| module.getattr("complete"));
            let completed =
                complete.and_then(|function| function.call1((role, name, text, self.folder.as_ref())));
            completed.and_then(|text| text.extract()).map_err(|error| refused(py, error))
        })?;
        let Some(text) = completed else { return Ok(false) };
        *table = serde_json::from_str(&text).map_err(|error| (String::new(), error.to_string()))?;
        Ok(true)
    }
}

/// Whether a network has classes.
pub(crate) fn has_any(network: &Network) -> bool {
    let mut queues = network.links.iter().filter_map(|link| link.queue.as_ref());
    queues.any(|queue| !queue.foreign().is_empty())
        || !network.foreign_meters().is_empty()
        || network.foreign_controls().next().is_some()
        || network.foreign_users().next().is_some()
}

/// Gives the classes of a network their implementation. `None` if there are none; else what remembers that
/// one has failed.
pub(crate) fn implement(network: &mut Network, watch: &Watch) -> Option<Arc<Fault>> {
    if !has_any(network) {
        return None;
    }
    let fault = Arc::new(Fault::of(watch.clone()));
    let flows: Arc<[String]> = network.flows.iter().map(|flow| flow.name.clone()).collect();
    for link in &network.links {
        if let Some(queue) = &link.queue {
            implement_queue(queue, &format!("link `{}`", link.name), &flows, &fault);
        }
    }
    for (place, params) in network.foreign_meters() {
        implement_meter(params, place, &flows, &fault);
    }
    for (flow, params) in network.foreign_controls_mut() {
        implement_control(params, format!("flow `{flow}`"), &fault);
    }
    for (group, params) in network.foreign_users_mut() {
        implement_users(params, group.into(), &fault);
    }
    Some(fault)
}

/// Implements the classes of one queue, which nothing but its caller drives.
pub(crate) fn implement_by_hand(queue: &SchedulerParams) -> Option<Arc<Fault>> {
    if queue.foreign().is_empty() {
        return None;
    }
    let fault = Arc::new(Fault::of(Watch::default()));
    implement_queue(queue, BY_HAND, &Arc::default(), &fault);
    Some(fault)
}

/// Implements the class of one meter.
pub(crate) fn implement_meter_by_hand(meter: &MeterParams) -> Option<Arc<Fault>> {
    let params = meter.foreign()?;
    let fault = Arc::new(Fault::of(Watch::default()));
    implement_meter(params, BY_HAND.into(), &Arc::default(), &fault);
    Some(fault)
}

/// Where a block is that nothing but its caller drives.
const BY_HAND: &str = "link `by hand`";

fn implement_queue(queue: &SchedulerParams, at: &str, flows: &Arc<[String]>, fault: &Arc<Fault>) {
    for (_, params) in queue.foreign() {
        let place = ClassPlace { class: params.class.clone(), at: at.into(), flows: flows.clone() };
        params.implement(Arc::new(PythonAqms::new(parameters(params), place, fault.clone())));
    }
}

fn implement_meter(params: &ForeignMeterParams, at: String, flows: &Arc<[String]>, fault: &Arc<Fault>) {
    let place = ClassPlace { class: params.class.clone(), at, flows: flows.clone() };
    params.implement(Arc::new(PythonMeters::new(params, place, fault.clone())));
}

fn implement_control(params: &mut ForeignCongestionParams, at: String, fault: &Arc<Fault>) {
    let place = ClassPlace { class: params.class.clone(), at, flows: Arc::default() };
    let (parameters, needs) = (text_of(&params.parameters), params.needs.clone());
    params.implement(Arc::new(PythonControls { parameters, needs, place, fault: fault.clone() }));
}

fn implement_users(params: &mut ForeignApplicationParams, group: String, fault: &Arc<Fault>) {
    let place = ClassPlace { class: params.class.clone(), at: group, flows: Arc::default() };
    let mut table = params.parameters.clone();
    table.insert("request".into(), json!(params.request));
    let (parameters, connections) = (text_of(&table), params.connections);
    params.implement(Arc::new(PythonUsers { parameters, connections, place, fault: fault.clone() }));
}

fn text_of(table: &Map<String, Value>) -> String {
    serde_json::to_string(table).expect("a table has a form in JSON")
}

/// What a class is created with, as JSON.
fn parameters(params: &ForeignParams) -> String {
    text_of(&params.parameters)
}

/// Where an object of a class is, for messages.
#[derive(Clone, Debug)]
struct ClassPlace {
    class: String,
    /// The place of the class, such as a link.
    at: String,
    /// The names of flows by number; those of populations have none.
    flows: Arc<[String]>,
}

/// The first failure of a class in a run, which ends it.
#[derive(Debug)]
pub(crate) struct Fault {
    watch: Watch,
    failed: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl Fault {
    fn of(watch: Watch) -> Self {
        Self { watch, failed: AtomicBool::new(false), error: Mutex::new(None) }
    }

    /// A class of this run has failed: none is called any more.
    #[inline]
    fn is_set(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn set(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
        self.watch.stop_run();
    }

    /// Takes the error to raise where a class has failed and its copies in other simulations can go on; the
    /// one that failed must not.
    pub(crate) fn take_and_clear(&self) -> Option<PyErr> {
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.failed.store(false, Ordering::Relaxed);
        error
    }

    /// What a run that has ended raises, if a class has failed. Ctrl-C in a class ends the run as elsewhere.
    pub(crate) fn take(&self, py: Python<'_>) -> Option<PyErr> {
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            Cancelled::new_err("cancelled")
        } else {
            error
        })
    }
}

/// Calls a class.
#[inline]
fn called<R>(call: impl FnOnce(Python<'_>) -> R) -> Returned<R> {
    INSIDE.set(INSIDE.get() + 1);
    let returned = Python::attach(call);
    INSIDE.set(INSIDE.get() - 1);
    Returned(returned)
}

/// What a call of a class returned, before forks are looked for.
#[must_use = "a child that the class has forked must end"]
struct Returned<R>(R);

impl<R> Returned<R> {
    /// A child that the class has forked ends here. In the parent the class has failed, since its child would
    /// go on with the simulation.
    #[inline]
    fn settle(self, fault: &Fault) -> R {
        if FORKED.load(Ordering::Relaxed) {
            returned_after_fork(fault);
        }
        self.0
    }
}

/// A class has forked this process, or this is its child; `perhop.forks` knows more.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this thread is in a call of a class.
#[pyfunction]
pub(crate) fn inside_class() -> bool {
    INSIDE.get() > 0
}

/// Sets whether `perhop.forks` is to be asked when a class returns.
#[pyfunction]
pub(crate) fn set_forked(forked: bool) {
    FORKED.store(forked, Ordering::Relaxed);
}

#[cold]
fn returned_after_fork(fault: &Fault) {
    Python::attach(|py| {
        let asked = py.import("perhop.forks").and_then(|module| module.getattr("returned")?.call0());
        if let Err(error) = asked {
            fault.set(error);
        }
    });
}

impl ClassPlace {
    /// Makes the error to raise for an error in a class: its name, the method, the time and the packet.
    fn error(
        &self,
        py: Python<'_>,
        cause: PyErr,
        method: &str,
        at: Option<Instant>,
        packet: Option<&Header>,
    ) -> PyErr {
        if cause.is_instance_of::<PyKeyboardInterrupt>(py) && !raised_itself(py, &cause) {
            return cause;
        }
        let wrap = || {
            let about = PyDict::new(py);
            about.set_item("class_", &self.class)?;
            about.set_item("method", method)?;
            about.set_item("place", &self.at)?;
            about.set_item("at_ns", at.map(Instant::as_nanos))?;
            about.set_item("packet", packet.map(|packet| self.packet(packet)))?;
            let value = cause.value(py);
            if let Some(traceback) = cause.traceback(py) {
                value.setattr("__traceback__", traceback)?;
            }
            py.import(MODULE)?.getattr("failed")?.call((value,), Some(&about))
        };
        match wrap() {
            Ok(error) => PyErr::from_value(error),
            Err(other) => other,
        }
    }

    fn packet(&self, packet: &Header) -> String {
        let flow = usize::try_from(packet.flow.0).ok().and_then(|number| self.flows.get(number));
        let flow = flow.map_or_else(|| format!("number {}", packet.flow.0), |name| format!("`{name}`"));
        format!("a packet of flow {flow} ({} bytes, {})", packet.size, packet.color.name())
    }
}

/// Whether a class has raised a `KeyboardInterrupt` by a statement of its own; else it is Ctrl-C's.
fn raised_itself(py: Python<'_>, cause: &PyErr) -> bool {
    let asked = || {
        let value = cause.value(py);
        if let Some(traceback) = cause.traceback(py) {
            value.setattr("__traceback__", traceback)?;
        }
        py.import(MODULE)?.getattr("raised_itself")?.call1((value,))?.is_truthy()
    };
    asked().unwrap_or(false)
}

/// Gives an object other parameters, as JSON, and what `placed` of its role takes; its state stays.
fn changed<'py>(py: Python<'py>, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyResult<()> {
    py.import(MODULE)?.getattr("change_parameters")?.call1(arguments).map(drop)
}

/// The name of a method that a class has of its own, as an object that can be called.
fn own_method<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let name = PyString::new(object.py(), name);
    let inherited =
        object.py().import(MODULE)?.getattr("Block")?.call_method1("inherits", (object, &name))?;
    Ok(if inherited.is_truthy()? { None } else { Some(object.getattr(name)?) })
}
