//! A class in Python as a congestion control.

use perhop_core::{Bitrate, Color, Duration, Instant, Rng};
use perhop_sim::transport::tcp::congestion::{
    AckSample, CongestionControl, CongestionEvent, DeliverySample, ForeignCongestion, LostSegment, Need,
    Setup,
};
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use super::instance::{Methods, change_parameters};
use super::{ClassPlace, Instance, RandomView, renew, shown, text_of};

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

/// Returns a value that a sender measures only for classes with this need.
fn measured<T>(has: bool, what: &str, need: &str, value: T) -> PyResult<T> {
    if has {
        return Ok(value);
    }
    let text = format!("`{what}` is not measured; write NEEDS = (\"{need}\",) in the class");
    Err(PyAttributeError::new_err(text))
}

impl AckView {
    /// Before there was an ACK.
    fn of(needs: &[Need], packet: f64) -> Self {
        let has = |need| needs.contains(&need);
        let (marks, delivery, recovery) = (has(Need::Marks), has(Need::Delivery), has(Need::Recovery));
        Self { sample: AckSample::default(), marks, delivery, recovery, packet }
    }

    fn delivered_since(&self, what: &str) -> PyResult<Option<DeliverySample>> {
        measured(self.delivery, what, "delivery", self.sample.delivery)
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
        measured(self.marks, "ack.marked", "marks", self.sample.marked)
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
        measured(self.recovery, "ack.pipe", "recovery", self.sample.pipe)
    }

    /// Segments found to be lost since the ACK before this. Requires the need `recovery`.
    #[getter]
    fn lost(&self) -> PyResult<u32> {
        measured(self.recovery, "ack.lost", "recovery", self.sample.lost)
    }

    /// Losses are being repaired. Requires the need `recovery`.
    #[getter]
    fn recovering(&self) -> PyResult<bool> {
        measured(self.recovery, "ack.recovering", "recovery", self.sample.recovering)
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
    /// The window in force in segments, at most the receiver's.
    #[pyo3(get)]
    window: f64,
    /// The smoothed round-trip time in seconds; 0 before the first is known.
    #[pyo3(get)]
    smoothed_rtt_s: f64,
    color: Option<Color>,
}

#[pymethods]
impl LossView {
    /// The color of the first segment that is missing. Requires the need `colors`.
    #[getter]
    fn color(&self) -> PyResult<&'static str> {
        measured(self.color.is_some(), "loss.color", "colors", self.color.unwrap_or(Color::Yellow).name())
    }

    fn __repr__(&self) -> String {
        format!("<Loss at a window of {} segments>", self.window)
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }
}

/// What `placed` of the role takes.
#[derive(IntoPyObject)]
struct Placed {
    window: f64,
    threshold: f64,
    most: u32,
    packet: u64,
    counts_acks: bool,
    reserved: Option<u64>,
}

struct ControlMethods {
    on_ack: Py<PyAny>,
    ack: Py<AckView>,
    loss: Py<LossView>,
    random: Py<RandomView>,
}

impl ControlMethods {
    fn of(object: &Bound<'_, PyAny>, ack: AckView, loss: LossView) -> PyResult<Self> {
        let py = object.py();
        Ok(Self {
            on_ack: object.getattr("on_ack")?.unbind(),
            ack: Py::new(py, ack)?,
            loss: Py::new(py, loss)?,
            random: Py::new(py, RandomView::empty())?,
        })
    }
}

impl Methods for ControlMethods {
    fn of_copy(&self, copy: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = copy.py();
        Self::of(copy, self.ack.borrow(py).clone(), self.loss.borrow(py).clone())
    }
}

/// What the sender asks for at any time.
#[derive(Clone, Copy, Debug)]
struct State {
    window: f64,
    threshold: f64,
    rate: Option<Bitrate>,
}

impl State {
    /// The state that the class has set.
    #[inline]
    fn of(object: &Bound<'_, PyAny>, paces: bool) -> PyResult<Self> {
        let py = object.py();
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
        let rate = if paces { pacing_rate(object)? } else { None };
        Ok(Self { window, threshold, rate })
    }
}

fn pacing_rate(object: &Bound<'_, PyAny>) -> PyResult<Option<Bitrate>> {
    let given = object.getattr(intern!(object.py(), "pacing_rate"))?;
    if given.is_none() {
        return Ok(None);
    }
    let rate = number(&given, "pacing_rate")?;
    let found = Some(rate).filter(|rate| (1.0..u64::MAX as f64).contains(rate));
    found.and_then(|rate| Bitrate::from_bps(rate as u64).ok()).map(Some).ok_or_else(|| {
        PyValueError::new_err(format!("`pacing_rate` is {rate}; it is in bit/s, at least 1, or None"))
    })
}

fn number(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    value.extract().map_err(|_| PyTypeError::new_err(format!("`{name}` is {}; it is a number", shown(value))))
}

/// A congestion control of one connection.
#[derive(Clone, Debug)]
pub(super) struct PythonControl {
    instance: Instance<ControlMethods>,
    rng: Rng,
    state: State,
    /// The receiver's window.
    most: f64,
    paces: bool,
}

impl PythonControl {
    /// The object of a class with these parameters.
    pub(super) fn create(place: ClassPlace, parameters: &str, needs: &[Need], setup: &Setup) -> Self {
        let &Setup { window, threshold, most, counts_acks, .. } = setup;
        let (packet, reserved) = (setup.packet.get(), setup.reserved.map(Bitrate::as_bps));
        let placed = Placed { window, threshold, most, packet, counts_acks, reserved };
        let instance = Instance::create(place, "congestion-control", parameters, placed, |object| {
            let color = needs.contains(&Need::Colors).then_some(Color::Yellow);
            let loss = LossView { window: 0.0, smoothed_rtt_s: 0.0, color };
            ControlMethods::of(object, AckView::of(needs, setup.packet.bits() as f64), loss)
        });
        Self {
            instance,
            rng: Rng::stream(setup.seed, "python"),
            state: State { window, threshold, rate: None },
            most: most.into(),
            paces: needs.contains(&Need::Pacing),
        }
    }

    /// Calls the class, and keeps the state that it leaves.
    #[inline]
    fn call(
        &mut self,
        name: &str,
        now: Option<Instant>,
        act: impl FnOnce(&Bound<'_, PyAny>, &ControlMethods, &Bound<'_, RandomView>) -> PyResult<()>,
    ) {
        let state = self.instance.call(name, now, None, |object, methods| {
            let py = object.py();
            RandomView::lend(methods.random.bind(py), &mut self.rng, |random| act(object, methods, random))?;
            renew(py, &mut methods.ack)?;
            renew(py, &mut methods.loss)?;
            State::of(object, self.paces)
        });
        self.state = state.unwrap_or(self.state);
    }

    fn call_with(&mut self, name: &'static str, event: &CongestionEvent) {
        self.call(name, Some(event.now), |object, methods, random| {
            let loss = methods.loss.bind(object.py());
            {
                let mut view = loss.borrow_mut();
                (view.window, view.smoothed_rtt_s) = (event.window, event.smoothed_rtt);
                view.color = view.color.map(|_| event.color);
            }
            object.call_method1(name, (loss, event.now.as_nanos(), random)).map(drop)
        });
    }
}

impl CongestionControl for PythonControl {
    fn on_ack(&mut self, ack: &AckSample) {
        self.call("on_ack", Some(ack.now), |object, methods, random| {
            let view = methods.ack.bind(object.py());
            view.borrow_mut().sample = *ack;
            methods.on_ack.bind(object.py()).call1((view, ack.now.as_nanos(), random)).map(drop)
        });
    }

    fn on_lost(&mut self, lost: &LostSegment) {
        self.call("on_lost", Some(lost.now), |object, _, random| {
            let arguments = (lost.lost, lost.in_flight, lost.now.as_nanos(), random);
            object.call_method1(intern!(object.py(), "on_lost"), arguments).map(drop)
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
        self.call("set_window", None, |object, _, _| object.setattr(intern!(object.py(), "window"), window));
        self.state.window = window;
    }

    fn slow_start_threshold(&self) -> f64 {
        self.state.threshold
    }

    fn on_idle(&mut self, idle: Duration) {
        self.call("on_idle", None, |object, _, _| {
            object.call_method1(intern!(object.py(), "on_idle"), (idle.as_nanos(),)).map(drop)
        });
    }

    fn leave_slow_start(&mut self) {
        self.call("leave_slow_start", None, |object, _, _| {
            object.call_method0(intern!(object.py(), "leave_slow_start")).map(drop)
        });
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.state.rate
    }
}

impl ForeignCongestion for PythonControl {
    fn set_parameters(&mut self, parameters: &Map<String, Value>) {
        let text = text_of(parameters);
        self.call("set_parameters", None, |object, _, _| change_parameters(object, &text, None));
    }
}
