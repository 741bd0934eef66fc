//! A class in Python as a congestion control.

use std::fmt;
use std::sync::Arc;

use perhop_core::{Bitrate, Color, Duration, Instant, Rng};
use perhop_sim::transport::tcp::congestion::{
    AckSample, CongestionControl, CongestionEvent, CongestionImplementation, ForeignCongestion, LostSegment,
    Need, Setup,
};
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use serde_json::{Map, Value};

use super::{ClassPlace, Fault, MODULE, RandomView, called, changed, renew, text_of};

/// Makes the objects of one flow, or of one population.
#[derive(Debug)]
pub(super) struct PythonControls {
    /// What the class is created with, as JSON.
    pub(super) parameters: String,
    pub(super) needs: Vec<Need>,
    pub(super) place: ClassPlace,
    pub(super) fault: Arc<Fault>,
}

impl CongestionImplementation for PythonControls {
    fn build(&self, setup: &Setup) -> Box<dyn ForeignCongestion> {
        let state = State { window: setup.window, threshold: setup.threshold, rate: None };
        called(|py| {
            let object = match self.created(py, setup) {
                Ok(object) => Some(object),
                Err(error) => {
                    self.fault.set(self.place.error(py, error, "__init__", None, None));
                    None
                }
            };
            let paces = self.needs.contains(&Need::Pacing);
            let (most, place, fault) = (f64::from(setup.most), self.place.clone(), self.fault.clone());
            Box::new(PythonControl { object, state, most, paces, place, fault }) as Box<dyn ForeignCongestion>
        })
        .settle(&self.fault)
    }
}

impl PythonControls {
    fn created(&self, py: Python<'_>, setup: &Setup) -> PyResult<Object> {
        let place = PyDict::new(py);
        place.set_item("window", setup.window)?;
        place.set_item("threshold", setup.threshold)?;
        place.set_item("most", setup.most)?;
        place.set_item("packet", setup.packet.get())?;
        place.set_item("counts_acks", setup.counts_acks)?;
        place.set_item("reserved", setup.reserved.map(Bitrate::as_bps))?;
        let create = py.import(MODULE)?.getattr("create")?;
        let object = create.call1(("congestion-control", &self.place.class, &self.parameters, place))?;
        let needs = |need| self.needs.contains(&need);
        let ack = AckView {
            sample: nothing(),
            marks: needs(Need::Marks),
            delivery: needs(Need::Delivery),
            recovery: needs(Need::Recovery),
            packet: setup.packet.bits() as f64,
        };
        let loss =
            LossView { window: 0.0, smoothed_rtt: 0.0, color: needs(Need::Colors).then_some(Color::Yellow) };
        Object::around(&object, ack, loss, Rng::stream(setup.seed, "python"))
    }
}

/// An ACK before there was one.
fn nothing() -> AckSample {
    AckSample {
        now: Instant::ZERO,
        delivered: 0,
        marked: 0,
        acked: 0,
        in_flight: 0,
        pipe: 0,
        lost: 0,
        recovering: false,
        smoothed_rtt: 0.0,
        delivery: None,
    }
}

/// What an ACK of new data says.
#[pyclass(module = "perhop._engine", name = "Ack")]
#[derive(Clone)]
pub(crate) struct AckView {
    sample: AckSample,
    marks: bool,
    delivery: bool,
    recovery: bool,
    /// The bits of a full segment.
    packet: f64,
}

impl AckView {
    fn needed(has: bool, what: &str, need: &str) -> PyResult<()> {
        if has {
            return Ok(());
        }
        let text = format!("`{what}` is not measured; write NEEDS = (\"{need}\",) in the class");
        Err(PyAttributeError::new_err(text))
    }

    fn delivered_since(
        &self,
        what: &str,
    ) -> PyResult<Option<perhop_sim::transport::tcp::congestion::DeliverySample>> {
        Self::needed(self.delivery, what, "delivery")?;
        Ok(self.sample.delivery)
    }
}

#[pymethods]
impl AckView {
    /// Segments newly acknowledged, in order or selectively.
    #[getter]
    fn delivered(&self) -> u32 {
        self.sample.delivered
    }

    /// How many of them were marked. Requires the need `marks`.
    #[getter]
    fn marked(&self) -> PyResult<u32> {
        Self::needed(self.marks, "ack.marked", "marks")?;
        Ok(self.sample.marked)
    }

    /// The number of the first segment that is not acknowledged: it grows by what is acknowledged in order.
    #[getter]
    fn acked(&self) -> u32 {
        self.sample.acked
    }

    /// Segments sent and not acknowledged.
    #[getter]
    fn in_flight(&self) -> u32 {
        self.sample.in_flight
    }

    /// The smoothed round-trip time in seconds; 0 before the first is known.
    #[getter]
    fn smoothed_rtt_s(&self) -> f64 {
        self.sample.smoothed_rtt
    }

    /// The round trip of the segment that the ACK acknowledges, in nanoseconds; None if it was sent more than
    /// once. Requires the need `delivery`.
    #[getter]
    fn rtt(&self) -> PyResult<Option<u64>> {
        let sample = self.delivered_since("ack.rtt")?;
        Ok(sample.and_then(|sample| sample.rtt).map(Duration::as_nanos))
    }

    /// How fast the network delivered while that segment was under way, in bit/s; None without a sample.
    /// Requires the need `delivery`.
    #[getter]
    fn delivery_rate(&self) -> PyResult<Option<f64>> {
        let sample = self.delivered_since("ack.delivery_rate")?.filter(|sample| !sample.interval.is_zero());
        Ok(sample.map(|sample| sample.delivered as f64 * self.packet / sample.interval.as_secs_f64()))
    }

    /// The number of the round trip, from 1 on; 0 without a sample. Requires the need `delivery`.
    #[getter]
    fn round(&self) -> PyResult<u64> {
        Ok(self.delivered_since("ack.round")?.map_or(0, |sample| sample.round))
    }

    /// The application had no more to send, so the delivery rate says little of the path. Requires the need
    /// `delivery`.
    #[getter]
    fn is_app_limited(&self) -> PyResult<bool> {
        Ok(self.delivered_since("ack.is_app_limited")?.is_some_and(|sample| sample.limited))
    }

    /// Segments thought to be in the network. Requires the need `recovery`.
    #[getter]
    fn pipe(&self) -> PyResult<u32> {
        Self::needed(self.recovery, "ack.pipe", "recovery")?;
        Ok(self.sample.pipe)
    }

    /// Segments found to be lost since the ACK before this. Requires the need `recovery`.
    #[getter]
    fn lost(&self) -> PyResult<u32> {
        Self::needed(self.recovery, "ack.lost", "recovery")?;
        Ok(self.sample.lost)
    }

    /// Losses are being repaired. Requires the need `recovery`.
    #[getter]
    fn recovering(&self) -> PyResult<bool> {
        Self::needed(self.recovery, "ack.recovering", "recovery")?;
        Ok(self.sample.recovering)
    }

    fn __repr__(&self) -> String {
        format!("<Ack of {} segments, {} in flight>", self.sample.delivered, self.sample.in_flight)
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }
}

/// What a sender knows when it learns of congestion.
#[pyclass(module = "perhop._engine", name = "Loss")]
#[derive(Clone)]
pub(crate) struct LossView {
    window: f64,
    smoothed_rtt: f64,
    color: Option<Color>,
}

#[pymethods]
impl LossView {
    /// The window in force in segments, at most the receiver's.
    #[getter]
    fn window(&self) -> f64 {
        self.window
    }

    /// The smoothed round-trip time in seconds; 0 before the first is known.
    #[getter]
    fn smoothed_rtt_s(&self) -> f64 {
        self.smoothed_rtt
    }

    /// The color of the first segment that is missing. Requires the need `colors`.
    #[getter]
    fn color(&self) -> PyResult<&'static str> {
        AckView::needed(self.color.is_some(), "loss.color", "colors")?;
        Ok(self.color.unwrap_or(Color::Yellow).name())
    }

    fn __repr__(&self) -> String {
        format!("<Loss at a window of {} segments>", self.window)
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }
}

/// An object of a class, with what it is given in each call: these are made once.
struct Object {
    control: Py<PyAny>,
    on_ack: Py<PyAny>,
    ack: Py<AckView>,
    loss: Py<LossView>,
    random: Py<RandomView>,
    rng: Rng,
}

impl Object {
    fn around(object: &Bound<'_, PyAny>, ack: AckView, loss: LossView, rng: Rng) -> PyResult<Self> {
        let py = object.py();
        Ok(Self {
            on_ack: object.getattr("on_ack")?.unbind(),
            control: object.clone().unbind(),
            ack: Py::new(py, ack)?,
            loss: Py::new(py, loss)?,
            random: Py::new(py, RandomView::empty())?,
            rng,
        })
    }

    fn copied(&self, py: Python<'_>) -> PyResult<Self> {
        let object = py.import("copy")?.getattr("deepcopy")?.call1((&self.control,))?;
        let (ack, loss) = (self.ack.borrow(py).clone(), self.loss.borrow(py).clone());
        Self::around(&object, ack, loss, self.rng.clone())
    }

    fn renewed(&mut self, py: Python<'_>) -> PyResult<()> {
        renew(py, &mut self.ack)?;
        renew(py, &mut self.loss)
    }

    /// The state that the class has set.
    #[inline]
    fn state(&self, py: Python<'_>, paces: bool) -> PyResult<State> {
        let object = self.control.bind(py);
        let window = number(&object.getattr(intern!(py, "window"))?, "window")?;
        if !(window.is_finite() && window >= 1.0) {
            let text = format!("`window` is {window}; it is a number of segments, at least 1");
            return Err(PyValueError::new_err(text));
        }
        let threshold = number(&object.getattr(intern!(py, "threshold"))?, "threshold")?;
        if threshold.is_nan() || threshold < 0.0 {
            let text = format!("`threshold` is {threshold}; it is a number of segments, at least 0");
            return Err(PyValueError::new_err(text));
        }
        let rate = if paces { self.rate(py)? } else { None };
        Ok(State { window, threshold, rate })
    }

    fn rate(&self, py: Python<'_>) -> PyResult<Option<Bitrate>> {
        let given = self.control.bind(py).getattr(intern!(py, "pacing_rate"))?;
        if given.is_none() {
            return Ok(None);
        }
        let rate = number(&given, "pacing_rate")?;
        let found = Some(rate).filter(|rate| (1.0..u64::MAX as f64).contains(rate));
        found.and_then(|rate| Bitrate::from_bps(rate as u64).ok()).map(Some).ok_or_else(|| {
            PyValueError::new_err(format!("`pacing_rate` is {rate}; it is in bit/s, at least 1, or None"))
        })
    }
}

fn number(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    value.extract().map_err(|_| {
        let shown = value.repr().map_or_else(|_| "something else".into(), |repr| repr.to_string());
        PyTypeError::new_err(format!("`{name}` is {shown}; it is a number"))
    })
}

/// What the sender asks for at any time.
#[derive(Clone, Copy)]
struct State {
    window: f64,
    threshold: f64,
    rate: Option<Bitrate>,
}

/// A congestion control of one connection.
struct PythonControl {
    /// None where it could not be created; the run ends with the error.
    object: Option<Object>,
    state: State,
    /// The receiver's window.
    most: f64,
    paces: bool,
    place: ClassPlace,
    fault: Arc<Fault>,
}

impl fmt::Debug for PythonControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonControl").field("place", &self.place).finish_non_exhaustive()
    }
}

impl PythonControl {
    /// Calls the class, and keeps the state that it leaves.
    #[inline]
    fn call(
        &mut self,
        name: &str,
        now: Option<Instant>,
        act: impl FnOnce(Python<'_>, &Object) -> PyResult<()>,
    ) {
        let Some(object) = self.object.as_mut().filter(|_| !self.fault.is_set()) else { return };
        let acted = called(|py| {
            object.random.borrow_mut(py).exchange(&mut object.rng);
            let acted = act(py, object);
            object.random.borrow_mut(py).exchange(&mut object.rng);
            let acted = acted.and_then(|()| object.renewed(py)).and_then(|()| object.state(py, self.paces));
            acted.map_err(|error| self.place.error(py, error, name, now, None))
        })
        .settle(&self.fault);
        match acted {
            Ok(state) => self.state = state,
            Err(error) => self.fault.set(error),
        }
    }

    fn call_with(&mut self, name: &'static str, event: &CongestionEvent) {
        self.call(name, Some(event.now), |py, object| {
            {
                let mut view = object.loss.borrow_mut(py);
                (view.window, view.smoothed_rtt) = (event.window, event.smoothed_rtt);
                view.color = view.color.map(|_| event.color);
            }
            let arguments = (object.loss.bind(py), event.now.as_nanos(), object.random.bind(py));
            object.control.bind(py).call_method1(name, arguments).map(drop)
        });
    }
}

impl CongestionControl for PythonControl {
    fn on_ack(&mut self, ack: &AckSample) {
        self.call("on_ack", Some(ack.now), |py, object| {
            object.ack.borrow_mut(py).sample = *ack;
            let arguments = (object.ack.bind(py), ack.now.as_nanos(), object.random.bind(py));
            object.on_ack.bind(py).call1(arguments).map(drop)
        });
    }

    fn on_lost(&mut self, lost: &LostSegment) {
        self.call("on_lost", Some(lost.now), |py, object| {
            let arguments = (lost.lost, lost.in_flight, lost.now.as_nanos(), object.random.bind(py));
            object.control.bind(py).call_method1(intern!(py, "on_lost"), arguments).map(drop)
        });
    }

    fn on_loss(&mut self, event: &CongestionEvent) {
        self.call_with("on_loss", event);
    }

    fn on_congestion_experienced(&mut self, event: &CongestionEvent) {
        self.call_with("on_ecn", event);
    }

    fn on_timeout(&mut self, event: &CongestionEvent) {
        self.call_with("on_timeout", event);
    }

    fn window(&self) -> f64 {
        self.state.window.min(self.most)
    }

    fn set_window(&mut self, window: f64) {
        self.call("set_window", None, |py, object| {
            object.control.bind(py).setattr(intern!(py, "window"), window)
        });
        self.state.window = window;
    }

    fn slow_start_threshold(&self) -> f64 {
        self.state.threshold
    }

    fn on_idle(&mut self, idle: Duration) {
        self.call("on_idle", None, |py, object| {
            object.control.bind(py).call_method1(intern!(py, "on_idle"), (idle.as_nanos(),)).map(drop)
        });
    }

    fn leave_slow_start(&mut self) {
        self.call("leave_slow_start", None, |py, object| {
            object.control.bind(py).call_method0(intern!(py, "leave_slow_start")).map(drop)
        });
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.state.rate
    }
}

impl ForeignCongestion for PythonControl {
    fn set_parameters(&mut self, parameters: &Map<String, Value>) {
        let text = text_of(parameters);
        self.call("set_parameters", None, |py, object| changed(py, (&object.control, text)));
    }

    fn boxed_clone(&self) -> Box<dyn ForeignCongestion> {
        let object = self.object.as_ref().and_then(|object| {
            called(|py| match object.copied(py) {
                Ok(object) => Some(object),
                Err(error) => {
                    self.fault.set(self.place.error(py, error, "__deepcopy__", None, None));
                    None
                }
            })
            .settle(&self.fault)
        });
        let Self { state, most, paces, place, fault, .. } = self;
        let (place, fault) = (place.clone(), fault.clone());
        Box::new(Self { object, state: *state, most: *most, paces: *paces, place, fault })
    }
}
