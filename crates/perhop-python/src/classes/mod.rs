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
mod instance;
mod meter;
mod views;

use std::sync::Arc;

use perhop_core::aqm::ForeignParams;
use perhop_core::meter::{ForeignMeterParams, MeterParams};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Implementation, Role};
use perhop_scenario::{Files, Plugins};
use perhop_sim::application::ForeignApplicationParams;
use perhop_sim::transport::tcp::congestion::ForeignCongestionParams;
use perhop_sim::{Network, Watch};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

pub(crate) use application::ActionView;
use application::PythonUser;
pub(crate) use check::{check_aqm, check_meter};
pub(crate) use check_ends::{check_application, check_congestion_control};
use congestion::PythonControl;
pub(crate) use congestion::{AckView, LossView};
use instance::{ClassPlace, Instance};
pub(crate) use instance::{Fault, inside_class, set_forked};
use views::renew;
pub(crate) use views::{Depth, PacketView, QueueView, RandomView, Verdict, color_of, quantity};

/// The module that knows the classes.
const MODULE: &str = "perhop.blocks.plugins";

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

/// Gives the classes of a network their implementation. `None` if there are none; else what remembers that
/// one has failed.
pub(crate) fn implement(network: &mut Network, watch: &Watch) -> Option<Arc<Fault>> {
    network.classes().next()?;
    let fault = Fault::of(watch.clone());
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
    for (group, params) in network.foreign_users() {
        implement_users(params, group, &fault);
    }
    Some(fault)
}

/// Implements the classes of one queue, which nothing but its caller drives.
pub(crate) fn implement_by_hand(queue: &SchedulerParams) -> Arc<Fault> {
    let fault = Fault::of(Watch::default());
    implement_queue(queue, BY_HAND, &Arc::default(), &fault);
    fault
}

/// Implements one meter, if it is a class.
pub(crate) fn implement_meter_by_hand(meter: &MeterParams) -> Arc<Fault> {
    let fault = Fault::of(Watch::default());
    if let Some(params) = meter.foreign() {
        implement_meter(params, BY_HAND.into(), &Arc::default(), &fault);
    }
    fault
}

/// Where a block is that nothing but its caller drives.
const BY_HAND: &str = "link `by hand`";

fn implement_queue(queue: &SchedulerParams, at: &str, flows: &Arc<[String]>, fault: &Arc<Fault>) {
    for (_, ForeignParams { class, parameters, implementation }) in queue.foreign() {
        let (class, flows, fault) = (class.clone(), flows.clone(), fault.clone());
        let (place, parameters) = (ClassPlace { class, at: at.into(), flows, fault }, text_of(parameters));
        implementation.set(move |&at| Box::new(aqm::create(place.clone(), &parameters, at)));
    }
}

fn implement_meter(params: &ForeignMeterParams, at: String, flows: &Arc<[String]>, fault: &Arc<Fault>) {
    let (class, flows, fault) = (params.class.clone(), flows.clone(), fault.clone());
    let (place, parameters) = (ClassPlace { class, at, flows, fault }, meter::parameters(params));
    params.implementation.set(move |&at| Box::new(meter::create(place.clone(), &parameters, at)));
}

/// Gives the control of one flow an implementation of its own, although tables of a group share theirs:
/// messages name the flow.
fn implement_control(params: &mut ForeignCongestionParams, at: String, fault: &Arc<Fault>) {
    let (class, fault) = (params.class.clone(), fault.clone());
    let place = ClassPlace { class, at, flows: Arc::default(), fault };
    let (parameters, needs) = (text_of(&params.parameters), params.needs.clone());
    params.implementation = Implementation::default();
    params
        .implementation
        .set(move |setup| Box::new(PythonControl::create(place.clone(), &parameters, &needs, setup)));
}

fn implement_users(params: &ForeignApplicationParams, group: &str, fault: &Arc<Fault>) {
    let (class, group, fault) = (params.class.clone(), group.to_owned(), fault.clone());
    let mut table = params.parameters.clone();
    table.insert("request".into(), json!(params.request));
    let (parameters, connections) = (text_of(&table), params.connections);
    params.implementation.set(move |(member, rng)| {
        let (class, at, fault) = (class.clone(), format!("user {member} of `{group}`"), fault.clone());
        let place = ClassPlace { class, at, flows: Arc::default(), fault };
        Box::new(PythonUser::create(place, &parameters, connections, rng))
    });
}

fn text_of(table: &Map<String, Value>) -> String {
    serde_json::to_string(table).expect("a table has a form in JSON")
}

/// An object as messages show it.
fn shown(object: &Bound<'_, PyAny>) -> String {
    object.repr().map_or_else(|_| "something else".into(), |repr| repr.to_string())
}
