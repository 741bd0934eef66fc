//! A class in Python as a meter.

use perhop_core::meter::{ForeignMeter, ForeignMeterParams, Meter};
use perhop_core::{Color, Context, Environment, FlowId, Header};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::instance::Methods;
use super::{ClassPlace, Instance, PacketView, RandomView, renew, shown};

/// The object of a class with these parameters.
pub(super) fn create(
    place: ClassPlace,
    parameters: &str,
    environment: Environment,
) -> Instance<MeterMethods> {
    Instance::create(place, "meter", parameters, environment.rate.as_bps(), MeterMethods::of)
}

/// The parameters that a class is created with, as JSON: its own and those of all meters.
pub(super) fn parameters(params: &ForeignMeterParams) -> String {
    let mut table = serde_json::to_value(params).expect("a table has a form in JSON");
    table.as_object_mut().expect("a table").remove("class");
    table.to_string()
}

pub(super) struct MeterMethods {
    on_packet: Py<PyAny>,
    packet: Py<PacketView>,
    random: Py<RandomView>,
}

impl MeterMethods {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        Ok(Self {
            on_packet: object.getattr("on_packet")?.unbind(),
            packet: Py::new(py, PacketView::of(&Header::new(FlowId(0), 0)))?,
            random: Py::new(py, RandomView::empty())?,
        })
    }

    fn color(&mut self, py: Python<'_>, packet: &Header, cx: &mut Context<'_>) -> PyResult<Color> {
        *self.packet.borrow_mut(py) = PacketView::of(packet);
        let returned = RandomView::lend(self.random.bind(py), cx.rng, |random| {
            self.on_packet.bind(py).call1((self.packet.bind(py), cx.now.as_nanos(), random))
        })?;
        renew(py, &mut self.packet)?;
        let name = returned.extract::<&str>().ok();
        Color::ALL.into_iter().find(|color| name == Some(color.name())).ok_or_else(|| {
            let shown = shown(&returned);
            PyTypeError::new_err(format!("it returned {shown}; return \"green\", \"yellow\" or \"red\""))
        })
    }
}

impl Methods for MeterMethods {
    fn of_copy(&self, copy: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(copy)
    }
}

impl Meter for Instance<MeterMethods> {
    fn color(&mut self, packet: &Header, cx: &mut Context<'_>) -> Color {
        let color = self.call("on_packet", Some(cx.now), Some(packet), |object, methods| {
            methods.color(object.py(), packet, cx)
        });
        color.unwrap_or(Color::Green)
    }
}

impl ForeignMeter for Instance<MeterMethods> {
    fn set_parameters(&mut self, params: &ForeignMeterParams, environment: Environment) {
        self.change(&parameters(params), environment.rate.as_bps(), None);
    }
}
