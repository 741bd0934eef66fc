//! A class in Python as an AQM.

use std::fmt;
use std::sync::Arc;

use perhop_core::aqm::{self, ForeignAqm, Implementation};
use perhop_core::{Context, Environment, FlowId, Header, Instant, Occupancy};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};

use super::{
    ClassPlace, Fault, MODULE, PacketView, QueueView, RandomView, Verdict, called, changed, own_method,
    renew, text_of,
};

/// Makes the objects of one table.
#[derive(Debug)]
pub(super) struct PythonAqms {
    /// What the class is created with, as JSON.
    parameters: String,
    place: ClassPlace,
    fault: Arc<Fault>,
}

impl PythonAqms {
    pub(super) fn new(parameters: String, place: ClassPlace, fault: Arc<Fault>) -> Self {
        Self { parameters, place, fault }
    }

    fn created(&self, py: Python<'_>, environment: Environment) -> PyResult<PythonAqm> {
        let create = py.import(MODULE)?.getattr("create")?;
        let object = create.call1(("aqm", &self.place.class, &self.parameters, environment.rate.as_bps()))?;
        PythonAqm::around(&object, self.place.clone(), self.fault.clone())
    }
}

impl Implementation for PythonAqms {
    fn build(&self, environment: Environment) -> Box<dyn ForeignAqm> {
        called(|py| match self.created(py, environment) {
            Ok(aqm) => Box::new(aqm) as Box<dyn ForeignAqm>,
            Err(error) => {
                self.fault.set(self.place.error(py, error, "__init__", None, None));
                Box::new(Broken)
            }
        })
        .settle(&self.fault)
    }
}

/// Placeholder for an object that could not be created; the run ends with the error.
#[derive(Clone, Debug)]
struct Broken;

impl ForeignAqm for Broken {
    fn on_arrival(&mut self, _: &Header, _: &Occupancy, _: &mut Context<'_>) -> aqm::Verdict {
        aqm::Verdict::Pass
    }
    fn on_departure(&mut self, _: &Header, _: &Occupancy, _: &mut Context<'_>) -> aqm::Verdict {
        aqm::Verdict::Pass
    }
    fn on_idle(&mut self, _: Instant) {}
    fn gauges(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
    fn set_parameters(&mut self, _: &Map<String, Value>, _: Environment) {}
    fn boxed_clone(&self) -> Box<dyn ForeignAqm> {
        Box::new(self.clone())
    }
}

/// An object of a class, with what it is given in each call: these are made once.
struct PythonAqm {
    object: Py<PyAny>,
    on_arrival: Py<PyAny>,
    /// None where the class does not have the method.
    on_departure: Option<Py<PyAny>>,
    on_idle: Option<Py<PyAny>>,
    gauges: Option<Py<PyAny>>,
    packet: Py<PacketView>,
    queue: Py<QueueView>,
    random: Py<RandomView>,
    place: ClassPlace,
    fault: Arc<Fault>,
    /// When a method was called last: gauges do not get the time.
    called: Option<Instant>,
}

impl fmt::Debug for PythonAqm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonAqm").field("place", &self.place).finish_non_exhaustive()
    }
}

impl PythonAqm {
    fn around(object: &Bound<'_, PyAny>, place: ClassPlace, fault: Arc<Fault>) -> PyResult<Self> {
        let py = object.py();
        let packet = Header::new(FlowId(0), 0);
        let queue = QueueView { occupancy: Occupancy::EMPTY, packet };
        Ok(Self {
            on_arrival: object.getattr("on_arrival")?.unbind(),
            on_departure: own_method(object, "on_departure")?.map(Bound::unbind),
            on_idle: own_method(object, "on_idle")?.map(Bound::unbind),
            gauges: own_method(object, "gauges")?.map(Bound::unbind),
            object: object.clone().unbind(),
            packet: Py::new(py, PacketView(packet))?,
            queue: Py::new(py, queue)?,
            random: Py::new(py, RandomView::empty())?,
            place,
            fault,
            called: None,
        })
    }

    /// The verdict that a method returns. The stream is lent to the object for the call.
    #[inline]
    fn judge(
        &self,
        py: Python<'_>,
        method: &Py<PyAny>,
        (packet, queue): (&Header, &Occupancy),
        cx: &mut Context<'_>,
    ) -> PyResult<aqm::Verdict> {
        self.packet.borrow_mut(py).0 = *packet;
        {
            let mut view = self.queue.borrow_mut(py);
            view.occupancy.clone_from(queue);
            view.packet = *packet;
        }
        self.random.borrow_mut(py).exchange(cx.rng);
        let arguments = (self.packet.bind(py), self.queue.bind(py), cx.now.as_nanos(), self.random.bind(py));
        let returned = method.bind(py).call1(arguments);
        self.random.borrow_mut(py).exchange(cx.rng);
        let returned = returned?;
        match returned.cast::<Verdict>() {
            Ok(verdict) => Ok(verdict.get().0),
            Err(_) => Err(PyTypeError::new_err(format!(
                "it returned {}; return Verdict.PASS, Verdict.DROP, Verdict.NOTIFY or Verdict.OVERFLOW",
                returned.repr().map_or_else(|_| "something else".into(), |repr| repr.to_string())
            ))),
        }
    }

    fn judged(
        &mut self,
        (name, method): (&'static str, impl Fn(&Self) -> Option<&Py<PyAny>>),
        seen: (&Header, &Occupancy),
        cx: &mut Context<'_>,
    ) -> aqm::Verdict {
        self.called = Some(cx.now);
        if self.fault.is_set() {
            return aqm::Verdict::Pass;
        }
        called(|py| {
            let Some(method) = method(self) else { return aqm::Verdict::Pass };
            let judged = self.judge(py, method, seen, cx).and_then(|verdict| {
                renew(py, &mut self.packet)?;
                renew(py, &mut self.queue)?;
                Ok(verdict)
            });
            judged.unwrap_or_else(|error| {
                self.fault.set(self.place.error(py, error, name, Some(cx.now), Some(seen.0)));
                aqm::Verdict::Pass
            })
        })
        .settle(&self.fault)
    }

    fn gauges_of(py: Python<'_>, method: &Py<PyAny>) -> PyResult<Vec<(&'static str, f64)>> {
        let returned = method.bind(py).call0()?;
        let Ok(table) = returned.cast::<PyDict>() else {
            let text = format!("it returned {returned}; return a dict of names and numbers");
            return Err(PyTypeError::new_err(text));
        };
        let intern = py.import(MODULE)?.getattr("GAUGES")?;
        let mut gauges = Vec::with_capacity(table.len());
        for (name, value) in table.iter() {
            let number: f64 = value
                .extract()
                .map_err(|_| PyTypeError::new_err(format!("gauge `{name}` is {value}; give a number")))?;
            if number.is_nan() {
                return Err(PyValueError::new_err(format!("gauge `{name}` is NaN; give a number, or inf")));
            }
            gauges.push((static_name(&intern, &name.extract::<String>()?)?, number));
        }
        Ok(gauges)
    }
}

/// The name of a gauge for the whole life of the process: names are few, and each is kept once, in a dict of
/// Python.
fn static_name(known: &Bound<'_, PyAny>, name: &str) -> PyResult<&'static str> {
    let known = known.cast::<PyDict>()?;
    if let Some(place) = known.get_item(name)? {
        return Ok(place.cast::<Name>()?.get().0);
    }
    if known.len() >= MOST_GAUGES {
        return Err(PyValueError::new_err(format!(
            "gauges have more than {MOST_GAUGES} names; give each quantity one name"
        )));
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    known.set_item(name, Py::new(known.py(), Name(kept))?)?;
    Ok(kept)
}

/// A run keeps a series for each.
const MOST_GAUGES: usize = 1000;

#[pyclass(frozen)]
struct Name(&'static str);

impl ForeignAqm for PythonAqm {
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> aqm::Verdict {
        self.judged(("on_arrival", |aqm| Some(&aqm.on_arrival)), (packet, queue), cx)
    }

    fn on_departure(&mut self, packet: &Header, left: &Occupancy, cx: &mut Context<'_>) -> aqm::Verdict {
        if self.on_departure.is_none() {
            return aqm::Verdict::Pass;
        }
        self.judged(("on_departure", |aqm| aqm.on_departure.as_ref()), (packet, left), cx)
    }

    fn on_idle(&mut self, since: Instant) {
        let Some(method) = &self.on_idle else { return };
        if self.fault.is_set() {
            return;
        }
        called(|py| {
            if let Err(error) = method.call1(py, (since.as_nanos(),)) {
                self.fault.set(self.place.error(py, error, "on_idle", Some(since), None));
            }
        })
        .settle(&self.fault);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let Some(method) = &self.gauges else { return Vec::new() };
        if self.fault.is_set() {
            return Vec::new();
        }
        called(|py| {
            Self::gauges_of(py, method).unwrap_or_else(|error| {
                let called = self.called.map_or_else(String::new, |called| {
                    format!(", last called at {:.9} s", called.as_secs_f64())
                });
                let place = ClassPlace { at: format!("{}{called}", self.place.at), ..self.place.clone() };
                self.fault.set(place.error(py, error, "gauges", None, None));
                Vec::new()
            })
        })
        .settle(&self.fault)
    }

    fn set_parameters(&mut self, parameters: &Map<String, Value>, environment: Environment) {
        let text = text_of(parameters);
        called(|py| {
            let arguments = (&self.object, text, environment.rate.as_bps());
            if let Err(error) = changed(py, arguments) {
                self.fault.set(self.place.error(py, error, "set_parameters", self.called, None));
            }
        })
        .settle(&self.fault);
    }

    fn boxed_clone(&self) -> Box<dyn ForeignAqm> {
        let copied = |py: Python<'_>| {
            let object = py.import("copy")?.getattr("deepcopy")?.call1((&self.object,))?;
            Self::around(&object, self.place.clone(), self.fault.clone())
        };
        called(|py| match copied(py) {
            Ok(aqm) => Box::new(aqm) as Box<dyn ForeignAqm>,
            Err(error) => {
                self.fault.set(self.place.error(py, error, "__deepcopy__", None, None));
                Box::new(Broken)
            }
        })
        .settle(&self.fault)
    }
}
