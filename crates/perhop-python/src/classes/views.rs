//! What a class is given: a packet, its queue, random numbers. They can be read, and not changed.

use perhop_core::aqm;
use perhop_core::{Bitrate, Bytes, Color, Direction, Duration, Header, Occupancy, Probability, Reason, Rng};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::invalid;

/// A decision about a packet: `Verdict.PASS`, `.DROP`, `.NOTIFY`, `.OVERFLOW`, or with another reason
/// `Verdict.drop(…)`, `.notify(…)`.
#[pyclass(frozen, eq, hash, module = "perhop._engine")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Verdict(pub(super) aqm::Verdict);

impl Verdict {
    fn parts(self) -> (&'static str, Option<Reason>) {
        match self.0 {
            aqm::Verdict::Pass => ("pass", None),
            aqm::Verdict::Notify(reason) => ("notify", Some(reason)),
            aqm::Verdict::Drop(reason) => ("drop", Some(reason)),
        }
    }
}

/// What makes an object again: a function, and what it is called with.
type Reduced<'py, A> = (Bound<'py, PyAny>, A);

#[pymethods]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "methods in Python are called on an object")]
impl Verdict {
    /// Admit the packet.
    #[classattr]
    const PASS: Self = Self(aqm::Verdict::Pass);

    /// Drop the packet, for the reason `controller`.
    #[classattr]
    const DROP: Self = Self(aqm::Verdict::Drop(Reason::Controller));

    /// Mark the packet and admit it if it is ECN-capable, otherwise drop it; for the reason `controller`.
    #[classattr]
    const NOTIFY: Self = Self(aqm::Verdict::Notify(Reason::Controller));

    /// Drop the packet because the queue has no room.
    #[classattr]
    const OVERFLOW: Self = Self(aqm::Verdict::Drop(Reason::Overflow));

    /// Drop the packet for a reason, such as `early`.
    #[staticmethod]
    fn drop(reason: &str) -> PyResult<Self> {
        Ok(Self(aqm::Verdict::Drop(reason_of(reason)?)))
    }

    /// Mark the packet and admit it if it is ECN-capable, otherwise drop it; for a reason, such as `early`.
    #[staticmethod]
    fn notify(reason: &str) -> PyResult<Self> {
        Ok(Self(aqm::Verdict::Notify(reason_of(reason)?)))
    }

    fn __repr__(&self) -> String {
        match self.parts() {
            (kind, Some(reason)) => format!("Verdict.{kind}({:?})", reason.name()),
            (_, None) => "Verdict.PASS".into(),
        }
    }

    /// For pickles.
    #[staticmethod]
    #[pyo3(name = "_of")]
    fn of(kind: &str, reason: Option<&str>) -> PyResult<Self> {
        match (kind, reason) {
            ("drop", Some(reason)) => Self::drop(reason),
            ("notify", Some(reason)) => Self::notify(reason),
            _ => Ok(Self::PASS),
        }
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Reduced<'py, (&'static str, Option<&'static str>)>> {
        let (kind, reason) = self.parts();
        Ok((py.get_type::<Self>().getattr("_of")?, (kind, reason.map(Reason::name))))
    }
}

fn reason_of(name: &str) -> PyResult<Reason> {
    Reason::ALL.into_iter().find(|reason| reason.name() == name).ok_or_else(|| {
        let names = Reason::ALL.map(Reason::name).join(", ");
        PyValueError::new_err(format!("`{name}` is no reason; take one of {names}"))
    })
}

pub(crate) fn color_of(name: &str) -> PyResult<Color> {
    Color::ALL
        .into_iter()
        .find(|color| color.name() == name)
        .ok_or_else(|| PyValueError::new_err(format!("`{name}` is no color; take green, yellow or red")))
}

/// Gives the next call an object of its own, where the class has kept the one of the last call: what is kept
/// never changes.
#[expect(deprecated, reason = "what replaces it is unsafe")]
pub(super) fn renew<T: pyo3::PyClass + Clone + Into<pyo3::PyClassInitializer<T>>>(
    py: Python<'_>,
    lent: &mut Py<T>,
) -> PyResult<()> {
    if lent.get_refcnt(py) > 1 {
        let fresh = lent.borrow(py).clone();
        *lent = Py::new(py, fresh)?;
    }
    Ok(())
}

/// A packet, as it was at the call that got it.
#[pyclass(module = "perhop._engine", name = "Packet", get_all)]
#[derive(Clone)]
pub(crate) struct PacketView {
    /// Size on the wire in bytes, IP header included.
    size: u16,
    /// Drop precedence: `green` (in profile), `yellow` or `red`.
    color: &'static str,
    /// The number of its flow in the run, from 0.
    flow: u32,
    /// Whether it goes from receiver to sender, as ACKs do.
    is_backward: bool,
    /// Whether it is ECN-capable: a mark in it notifies its ends of congestion (RFC 3168).
    ecn_capable: bool,
    /// The codepoint of the packet (RFC 2474): 0 to 63.
    dscp: u8,
    /// When it came to this queue, in nanoseconds: at departure `now - packet.arrived` is its sojourn time.
    arrived: u64,
    /// The contracted rate of its flow, in bit/s; 0 without one.
    service_rate: f64,
}

impl PacketView {
    pub(super) fn of(packet: &Header) -> Self {
        Self {
            size: packet.size,
            color: packet.color.name(),
            flow: packet.flow.0,
            is_backward: packet.direction == Direction::Backward,
            ecn_capable: packet.ecn.is_capable(),
            dscp: packet.dscp.get(),
            arrived: packet.arrived.as_nanos(),
            service_rate: packet.service.as_bps(),
        }
    }
}

#[pymethods]
impl PacketView {
    fn __repr__(&self) -> String {
        let Self { flow, size, color, arrived, .. } = self;
        format!("<Packet of flow {flow}: {size} bytes, {color}, arrived {arrived} ns>")
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }
}

/// What waits in a queue, as it was at the call that got it; the packet in transmission is not counted.
#[pyclass(module = "perhop._engine", name = "Queue")]
#[derive(Clone)]
pub(crate) struct QueueView {
    pub(super) occupancy: Occupancy,
    pub(super) packet: Header,
}

#[pymethods]
impl QueueView {
    /// Packets waiting.
    #[getter]
    fn packets(&self) -> u64 {
        self.occupancy.packets()
    }

    /// Bytes waiting.
    #[getter]
    fn bytes(&self) -> u64 {
        self.occupancy.bytes()
    }

    /// Packets waiting that are served before one that arrives now.
    #[getter]
    fn ahead(&self) -> u64 {
        self.occupancy.ahead()
    }

    /// Packets of a color waiting.
    fn packets_of(&self, color: &str) -> PyResult<u64> {
        Ok(self.occupancy.packets_of(color_of(color)?))
    }

    /// Whether the packet of this call would exceed a limit.
    fn is_full(&self, limit: &Depth) -> bool {
        self.occupancy.is_full_for(&self.packet, limit.0)
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.occupancy.packets()).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        format!("<Queue of {} packets, {} bytes>", self.occupancy.packets(), self.occupancy.bytes())
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }
}

/// The random stream of a block, the same for the same seed; for the time of one call.
#[pyclass(module = "perhop._engine", name = "Random")]
pub(crate) struct RandomView {
    rng: Rng,
    lent: bool,
}

impl RandomView {
    /// Nothing can be drawn but while a stream is lent.
    pub(super) fn empty() -> Self {
        Self { rng: Rng::stream(0, ""), lent: false }
    }

    /// Lends a block's stream to a class for a call.
    #[inline]
    pub(super) fn lend<'py, R>(
        view: &Bound<'py, Self>,
        rng: &mut Rng,
        call: impl FnOnce(&Bound<'py, Self>) -> R,
    ) -> R {
        view.borrow_mut().exchange(rng);
        let returned = call(view);
        view.borrow_mut().exchange(rng);
        returned
    }

    fn exchange(&mut self, rng: &mut Rng) {
        std::mem::swap(&mut self.rng, rng);
        self.lent = !self.lent;
    }

    fn stream(&mut self) -> PyResult<&mut Rng> {
        if self.lent { Ok(&mut self.rng) } else { Err(PyRuntimeError::new_err(OUTSIDE_A_CALL)) }
    }
}

const OUTSIDE_A_CALL: &str =
    "`random` draws during the call that it is given to only; draw there, and keep the number";

#[pymethods]
impl RandomView {
    /// Uniform on [0, 1).
    fn uniform(&mut self) -> PyResult<f64> {
        Ok(self.stream()?.uniform())
    }

    /// True with probability `p`, from 0 to 1; for 0 and 1 nothing is drawn.
    fn chance(&mut self, p: f64) -> PyResult<bool> {
        if (0.0..=1.0).contains(&p) {
            return Ok(self.stream()?.chance(p));
        }
        Err(PyValueError::new_err(format!("chance: {p} is no probability; it is from 0 to 1")))
    }

    /// Uniform on the whole numbers 0 to `most`.
    fn up_to(&mut self, most: u64) -> PyResult<u64> {
        Ok(self.stream()?.up_to(most))
    }

    /// Exponential with mean 1.
    fn exponential(&mut self) -> PyResult<f64> {
        Ok(self.stream()?.exponential())
    }

    /// Normal with mean 0 and standard deviation 1.
    fn normal(&mut self) -> PyResult<f64> {
        Ok(self.stream()?.normal())
    }

    /// A copy draws no numbers, as a stream belongs to one block.
    #[expect(clippy::unused_self, reason = "Python calls it on an object")]
    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        Self::empty()
    }
}

/// The room in a queue, in packets (`100p`) or bytes (`40kB`).
#[pyclass(frozen, eq, hash, module = "perhop._engine")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Depth(perhop_core::Depth);

#[pymethods]
impl Depth {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        parsed(text).map(Self)
    }

    /// Packets; None if it is in bytes.
    #[getter]
    fn packets(&self) -> Option<u64> {
        if let perhop_core::Depth::Packets(packets) = self.0 { Some(packets) } else { None }
    }

    /// Bytes; None if it is in packets.
    #[getter]
    fn bytes(&self) -> Option<u64> {
        if let perhop_core::Depth::Bytes(bytes) = self.0 { Some(bytes) } else { None }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Depth(\"{}\")", self.0)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Reduced<'py, (String,)> {
        (py.get_type::<Self>().into_any(), (self.0.to_string(),))
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> PyResult<T> {
    text.parse().map_err(invalid)
}

/// A quantity's text as a number, in ns, bit/s or bytes, or as a depth; and the text in canonical form.
#[pyfunction]
pub(crate) fn quantity<'py>(
    py: Python<'py>,
    kind: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let whole = |number: u64, text: String| {
        Ok((PyInt::new(py, number).into_any(), text.into_pyobject(py)?.into_any()))
    };
    if kind == "probability" {
        let number: f64 = value
            .extract()
            .map_err(|_| PyTypeError::new_err(format!("expected a number from 0 to 1, not {value}")))?;
        let number = Probability::new(number).map_err(invalid)?.get().into_pyobject(py)?.into_any();
        return Ok((number.clone(), number));
    }
    let text: String = value.extract().map_err(|_| {
        PyTypeError::new_err(format!("expected text in quotes: a {kind} with its unit, not {value}"))
    })?;
    match kind {
        "duration" => parsed(&text).and_then(|span: Duration| whole(span.as_nanos(), span.to_string())),
        "rate" => parsed(&text).and_then(|rate: Bitrate| whole(rate.as_bps(), rate.to_string())),
        "size" => parsed(&text).and_then(|size: Bytes| whole(size.get(), size.to_string())),
        "depth" => {
            let depth = Depth::new(&text)?;
            let text = depth.0.to_string().into_pyobject(py)?.into_any();
            Ok((Bound::new(py, depth)?.into_any(), text))
        }
        _ => Err(PyValueError::new_err(format!("`{kind}` is no kind of quantity"))),
    }
}
