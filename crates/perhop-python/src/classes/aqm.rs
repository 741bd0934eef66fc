//! A class in Python as an AQM.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use perhop_core::aqm::{self, Aqm, ForeignAqm};
use perhop_core::{Context, Environment, FlowId, Header, Instant, Occupancy};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};

use super::instance::Methods;
use super::{
    ClassPlace, Instance, MODULE, PacketView, QueueView, RandomView, Verdict, renew, shown, text_of,
};

/// The object of a class with these parameters.
pub(super) fn create(place: ClassPlace, parameters: &str, environment: Environment) -> Instance<AqmMethods> {
    Instance::create(place, "aqm", parameters, environment.rate.as_bps(), AqmMethods::of)
}

pub(super) struct AqmMethods {
    on_arrival: Py<PyAny>,
    /// None where the class does not have the method.
    on_departure: Option<Py<PyAny>>,
    on_idle: Option<Py<PyAny>>,
    gauges: Option<Py<PyAny>>,
    packet: Py<PacketView>,
    queue: Py<QueueView>,
    random: Py<RandomView>,
    /// When a verdict was asked for last: gauges do not get the time.
    called: Option<Instant>,
}

impl AqmMethods {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let packet = Header::new(FlowId(0), 0);
        let queue = QueueView { occupancy: Occupancy::EMPTY, packet };
        Ok(Self {
            on_arrival: object.getattr("on_arrival")?.unbind(),
            on_departure: own_method(object, "on_departure")?,
            on_idle: own_method(object, "on_idle")?,
            gauges: own_method(object, "gauges")?,
            packet: Py::new(py, PacketView::of(&packet))?,
            queue: Py::new(py, queue)?,
            random: Py::new(py, RandomView::empty())?,
            called: None,
        })
    }

    /// The verdict that a method returns; to pass where the class does not have it.
    #[inline]
    fn judge(
        &mut self,
        py: Python<'_>,
        method: fn(&Self) -> Option<&Py<PyAny>>,
        (packet, queue): (&Header, &Occupancy),
        cx: &mut Context<'_>,
    ) -> PyResult<aqm::Verdict> {
        let Some(method) = method(self) else { return Ok(aqm::Verdict::Pass) };
        *self.packet.borrow_mut(py) = PacketView::of(packet);
        {
            let mut view = self.queue.borrow_mut(py);
            view.occupancy.clone_from(queue);
            view.packet = *packet;
        }
        let returned = RandomView::lend(self.random.bind(py), cx.rng, |random| {
            method.bind(py).call1((self.packet.bind(py), self.queue.bind(py), cx.now.as_nanos(), random))
        });
        self.called = Some(cx.now);
        let returned = returned?;
        let verdict = returned.cast::<Verdict>().map_err(|_| {
            let shown = shown(&returned);
            PyTypeError::new_err(format!(
                "it returned {shown}; return Verdict.PASS, Verdict.DROP, Verdict.NOTIFY or Verdict.OVERFLOW"
            ))
        })?;
        renew(py, &mut self.packet)?;
        renew(py, &mut self.queue)?;
        Ok(verdict.get().0)
    }
}

fn gauges(method: &Bound<'_, PyAny>) -> PyResult<Vec<(&'static str, f64)>> {
    let returned = method.call0()?;
    let Ok(table) = returned.cast::<PyDict>() else {
        let text = format!("it returned {returned}; return a dict of names and numbers");
        return Err(PyTypeError::new_err(text));
    };
    let mut gauges = Vec::with_capacity(table.len());
    for (name, value) in table.iter() {
        let number: f64 = value
            .extract()
            .map_err(|_| PyTypeError::new_err(format!("gauge `{name}` is {value}; give a number")))?;
        if number.is_nan() {
            return Err(PyValueError::new_err(format!("gauge `{name}` is NaN; give a number, or inf")));
        }
        gauges.push((static_name(&name.extract::<String>()?)?, number));
    }
    Ok(gauges)
}

/// The name of a gauge for the whole life of the process: names are few, and each is kept once.
fn static_name(name: &str) -> PyResult<&'static str> {
    static NAMES: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = names.get(name) {
        return Ok(kept);
    }
    if names.len() >= MOST_GAUGES {
        return Err(PyValueError::new_err(format!(
            "gauges have more than {MOST_GAUGES} names; give each quantity one name"
        )));
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    Ok(kept)
}

/// A run keeps a series for each.
const MOST_GAUGES: usize = 1000;

/// A method that a class has of its own.
fn own_method(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Py<PyAny>>> {
    let block = object.py().import(MODULE)?.getattr("Block")?;
    let is_inherited = block.call_method1("inherits", (object, name))?.is_truthy()?;
    if is_inherited { Ok(None) } else { object.getattr(name).map(|method| Some(method.unbind())) }
}

impl Methods for AqmMethods {
    fn of_copy(&self, copy: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(copy)
    }
}

impl Instance<AqmMethods> {
    fn judge(
        &mut self,
        name: &str,
        method: fn(&AqmMethods) -> Option<&Py<PyAny>>,
        seen: (&Header, &Occupancy),
        cx: &mut Context<'_>,
    ) -> aqm::Verdict {
        let verdict = self.call(name, Some(cx.now), Some(seen.0), |object, methods| {
            methods.judge(object.py(), method, seen, cx)
        });
        verdict.unwrap_or(aqm::Verdict::Pass)
    }
}

impl Aqm for Instance<AqmMethods> {
    fn on_arrival(&mut self, packet: &Header, queue: &Occupancy, cx: &mut Context<'_>) -> aqm::Verdict {
        self.judge("on_arrival", |methods| Some(&methods.on_arrival), (packet, queue), cx)
    }

    fn on_departure(&mut self, packet: &Header, left: &Occupancy, cx: &mut Context<'_>) -> aqm::Verdict {
        self.judge("on_departure", |methods| methods.on_departure.as_ref(), (packet, left), cx)
    }

    fn on_idle(&mut self, since: Instant) {
        self.call("on_idle", Some(since), None, |object, methods| match &methods.on_idle {
            Some(method) => method.call1(object.py(), (since.as_nanos(),)).map(drop),
            None => Ok(()),
        });
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let Some(AqmMethods { gauges: Some(method), called, .. }) = self.methods() else { return Vec::new() };
        let called = called
            .map_or_else(String::new, |called| format!(", last called at {:.9} s", called.as_secs_f64()));
        let place = ClassPlace { at: format!("{}{called}", self.place.at), ..self.place.clone() };
        place.call("gauges", None, None, |py| gauges(method.bind(py))).unwrap_or_default()
    }
}

impl ForeignAqm for Instance<AqmMethods> {
    fn set_parameters(&mut self, parameters: &Map<String, Value>, environment: Environment) {
        let called = self.methods().and_then(|methods| methods.called);
        self.change(&text_of(parameters), environment.rate.as_bps(), called);
    }
}
