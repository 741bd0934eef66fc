//! Objects of classes in a run: how they are made, called and copied, and what becomes of their errors.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use perhop_core::{Header, Instant};
use perhop_sim::Watch;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::MODULE;
use crate::Cancelled;

/// The first failure of a class in a run, which ends it.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    watch: Watch,
    failed: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl Fault {
    pub(super) fn of(watch: Watch) -> Arc<Self> {
        Arc::new(Self { watch, ..Self::default() })
    }

    fn set(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
        self.watch.stop_run();
    }

    /// Raises what a class has raised. Its copies in other simulations can go on; the one that failed must
    /// not.
    pub(crate) fn check(&self) -> PyResult<()> {
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.failed.store(false, Ordering::Relaxed);
        error.map_or(Ok(()), Err)
    }

    /// Takes the error that a run which has ended raises, if a class has failed. Ctrl-C in a class ends the
    /// run as elsewhere.
    pub(crate) fn take(&self, py: Python<'_>) -> Option<PyErr> {
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            Cancelled::new_err("cancelled")
        } else {
            error
        })
    }
}

/// Where an object of a class is, for messages, and what remembers that a class of its run has failed.
#[derive(Clone)]
pub(super) struct ClassPlace {
    pub(super) class: String,
    /// The place of the class, such as a link.
    pub(super) at: String,
    /// The names of flows by number; those of populations have none.
    pub(super) flows: Arc<[String]>,
    pub(super) fault: Arc<Fault>,
}

impl ClassPlace {
    /// Calls a class; `method`, `at` and `packet` are for the message if it fails. Returns nothing then, or
    /// if a class of this run has failed before: none is called any more.
    #[inline]
    pub(super) fn call<R>(
        &self,
        method: &str,
        at: Option<Instant>,
        packet: Option<&Header>,
        call: impl FnOnce(Python<'_>) -> PyResult<R>,
    ) -> Option<R> {
        if self.fault.failed.load(Ordering::Relaxed) {
            return None;
        }
        INSIDE.set(INSIDE.get() + 1);
        let returned = Python::attach(|py| {
            call(py).map_err(|error| self.fault.set(self.error(py, &error, method, at, packet))).ok()
        });
        INSIDE.set(INSIDE.get() - 1);
        if FORKED.load(Ordering::Relaxed) {
            returned_after_fork(&self.fault);
        }
        returned
    }

    /// Makes the error to raise for an error in a class: its name, the method, the time and the packet.
    fn error(
        &self,
        py: Python<'_>,
        cause: &PyErr,
        method: &str,
        at: Option<Instant>,
        packet: Option<&Header>,
    ) -> PyErr {
        let value = cause.value(py);
        let wrap = || {
            if let Some(traceback) = cause.traceback(py) {
                value.setattr("__traceback__", traceback)?;
            }
            let module = py.import(MODULE)?;
            if cause.is_instance_of::<PyKeyboardInterrupt>(py)
                && !module.getattr("raised_itself")?.call1((value,))?.is_truthy()?
            {
                return Ok(value.clone().into_any()); // Ctrl-C
            }
            let about = PyDict::new(py);
            about.set_item("class_", &self.class)?;
            about.set_item("method", method)?;
            about.set_item("place", &self.at)?;
            about.set_item("at_ns", at.map(Instant::as_nanos))?;
            about.set_item("packet", packet.map(|packet| self.packet(packet)))?;
            module.getattr("failed")?.call((value,), Some(&about))
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

/// A class has forked this process, or this is its child; `perhop.forks` knows more.
static FORKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How many calls of classes this thread is in.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

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

/// Ends a child that the class has forked. In the parent the class has failed, since its child would go on
/// with the simulation.
#[cold]
fn returned_after_fork(fault: &Fault) {
    Python::attach(|py| {
        let asked =
            py.import("perhop.processes.forks").and_then(|module| module.getattr("returned")?.call0());
        if let Err(error) = asked {
            fault.set(error);
        }
    });
}

/// What the calls of a role need of an object, looked up once: its methods, and what they are given.
pub(super) trait Methods: Sized {
    /// Looks them up in a copy of the object.
    fn of_copy(&self, copy: &Bound<'_, PyAny>) -> PyResult<Self>;
}

/// An object of a class in a run.
pub(super) struct Instance<M> {
    /// None where it could not be created or copied; the run ends with the error.
    object: Option<(Py<PyAny>, M)>,
    pub(super) place: ClassPlace,
}

impl<M> Instance<M> {
    /// Creates an object of a class with these parameters, in JSON, and what `placed` of its role takes.
    pub(super) fn create(
        place: ClassPlace,
        role: &str,
        parameters: &str,
        placed: impl for<'py> IntoPyObject<'py>,
        methods: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<M>,
    ) -> Self {
        let object = place.call("__init__", None, None, |py| {
            let create = py.import(MODULE)?.getattr("create")?;
            let object = create.call1((role, &place.class, parameters, placed))?;
            let methods = methods(&object)?;
            Ok((object.unbind(), methods))
        });
        Self { object, place }
    }

    /// The methods, unless the object could not be created.
    #[inline]
    pub(super) fn methods(&self) -> Option<&M> {
        self.object.as_ref().map(|(_, methods)| methods)
    }

    /// Calls the object as [`ClassPlace::call`] does.
    #[inline]
    pub(super) fn call<R>(
        &mut self,
        method: &str,
        at: Option<Instant>,
        packet: Option<&Header>,
        call: impl FnOnce(&Bound<'_, PyAny>, &mut M) -> PyResult<R>,
    ) -> Option<R> {
        let (object, methods) = self.object.as_mut()?;
        self.place.call(method, at, packet, |py| call(object.bind(py), methods))
    }

    /// Gives the object other parameters, in JSON, and what `placed` of its role takes; its state stays.
    pub(super) fn change(&mut self, parameters: &str, rate: u64, at: Option<Instant>) {
        self.call("set_parameters", at, None, |object, _| change_parameters(object, parameters, Some(rate)));
    }
}

/// See [`Instance::change`].
pub(super) fn change_parameters(
    object: &Bound<'_, PyAny>,
    parameters: &str,
    rate: Option<u64>,
) -> PyResult<()> {
    let module = object.py().import(MODULE)?;
    module.getattr("change_parameters")?.call1((object, parameters, rate)).map(drop)
}

impl<M: Methods> Clone for Instance<M> {
    fn clone(&self) -> Self {
        let object = self.object.as_ref().and_then(|(object, methods)| {
            self.place.call("__deepcopy__", None, None, |py| {
                let copy = py.import("copy")?.getattr("deepcopy")?.call1((object,))?;
                let methods = methods.of_copy(&copy)?;
                Ok((copy.unbind(), methods))
            })
        });
        Self { object, place: self.place.clone() }
    }
}

impl<M> fmt::Debug for Instance<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClassPlace { class, at, .. } = &self.place;
        f.debug_struct("Instance").field("class", class).field("at", at).finish_non_exhaustive()
    }
}
