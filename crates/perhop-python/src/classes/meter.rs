//! A class in Python as a meter.

use std::fmt;
use std::sync::Arc;

use perhop_core::meter::{ForeignMeter, ForeignMeterParams, MeterImplementation};
use perhop_core::{Color, Context, Environment, FlowId, Header};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::{ClassPlace, Fault, MODULE, PacketView, RandomView, called, changed, renew};

/// Makes the objects of one table.
#[derive(Debug)]
pub(super) struct PythonMeters {
    /// What the class is created with, as JSON.
    parameters: String,
    place: ClassPlace,
    fault: Arc<Fault>,
}

impl PythonMeters {
    pub(super) fn new(params: &ForeignMeterParams, place: ClassPlace, fault: Arc<Fault>) -> Self {
        Self { parameters: parameters(params), place, fault }
    }

    fn created(&self, py: Python<'_>, environment: Environment) -> PyResult<PythonMeter> {
        let create = py.import(MODULE)?.getattr("create")?;
        let arguments = ("meter", &self.place.class, &self.parameters, environment.rate.as_bps());
        PythonMeter::around(&create.call1(arguments)?, self.place.clone(), self.fault.clone())
    }
}

impl MeterImplementation for PythonMeters {
    fn build(&self, environment: Environment) -> Box<dyn ForeignMeter> {
        called(|py| match self.created(py, environment) {
            Ok(meter) => Box::new(meter) as Box<dyn ForeignMeter>,
            Err(error) => {
                self.fault.set(self.place.error(py, error, "__init__", None, None));
                Box::new(Broken)
            }
        })
        .settle(&self.fault)
    }
}

/// What a class is created with, as JSON: its own parameters and those of all meters.
fn parameters(params: &ForeignMeterParams) -> String {
    let mut table = serde_json::to_value(params).expect("a table has a form in JSON");
    table.as_object_mut().expect("a table").remove("class");
    table.to_string()
}

/// Placeholder for an object that could not be created; the run ends with the error.
#[derive(Clone, Debug)]
struct Broken;

impl ForeignMeter for Broken {
    fn color(&mut self, _: &Header, _: &mut Context<'_>) -> Color {
        Color::Green
    }
    fn set_parameters(&mut self, _: &ForeignMeterParams, _: Environment) {}
    fn boxed_clone(&self) -> Box<dyn ForeignMeter> {
        Box::new(self.clone())
    }
}

/// An object of a class, with what it is given in each call: these are made once.
struct PythonMeter {
    object: Py<PyAny>,
    on_packet: Py<PyAny>,
    packet: Py<PacketView>,
    random: Py<RandomView>,
    place: ClassPlace,
    fault: Arc<Fault>,
}

impl fmt::Debug for PythonMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonMeter").field("place", &self.place).finish_non_exhaustive()
    }
}

impl PythonMeter {
    fn around(object: &Bound<'_, PyAny>, place: ClassPlace, fault: Arc<Fault>) -> PyResult<Self> {
        let py = object.py();
        Ok(Self {
            on_packet: object.getattr("on_packet")?.unbind(),
            object: object.clone().unbind(),
            packet: Py::new(py, PacketView(Header::new(FlowId(0), 0)))?,
            random: Py::new(py, RandomView::empty())?,
            place,
            fault,
        })
    }

    /// The color that the class gives. The stream is lent to the object for the call.
    fn colored(&mut self, py: Python<'_>, packet: &Header, cx: &mut Context<'_>) -> PyResult<Color> {
        self.packet.borrow_mut(py).0 = *packet;
        self.random.borrow_mut(py).exchange(cx.rng);
        let arguments = (self.packet.bind(py), cx.now.as_nanos(), self.random.bind(py));
        let returned = self.on_packet.bind(py).call1(arguments);
        self.random.borrow_mut(py).exchange(cx.rng);
        let returned = returned?;
        renew(py, &mut self.packet)?;
        let name = returned.extract::<&str>().ok();
        Color::ALL.into_iter().find(|color| name == Some(color.name())).ok_or_else(|| {
            let shown = returned.repr().map_or_else(|_| "something else".into(), |repr| repr.to_string());
            PyTypeError::new_err(format!("it returned {shown}; return \"green\", \"yellow\" or \"red\""))
        })
    }
}

impl ForeignMeter for PythonMeter {
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        if self.fault.is_set() {
            return Color::Green;
        }
        called(|py| {
            self.colored(py, packet, cx).unwrap_or_else(|error| {
                self.fault.set(self.place.error(py, error, "on_packet", Some(cx.now), Some(packet)));
                Color::Green
            })
        })
        .settle(&self.fault)
    }

    fn set_parameters(&mut self, params: &ForeignMeterParams, environment: Environment) {
        let text = parameters(params);
        called(|py| {
            if let Err(error) = changed(py, (&self.object, text, environment.rate.as_bps())) {
                self.fault.set(self.place.error(py, error, "set_parameters", None, None));
            }
        })
        .settle(&self.fault);
    }

    fn boxed_clone(&self) -> Box<dyn ForeignMeter> {
        let copied = |py: Python<'_>| {
            let object = py.import("copy")?.getattr("deepcopy")?.call1((&self.object,))?;
            Self::around(&object, self.place.clone(), self.fault.clone())
        };
        called(|py| match copied(py) {
            Ok(meter) => Box::new(meter) as Box<dyn ForeignMeter>,
            Err(error) => {
                self.fault.set(self.place.error(py, error, "__deepcopy__", None, None));
                Box::new(Broken)
            }
        })
        .settle(&self.fault)
    }
}
