//! A class in Python as the users of an application.

use perhop_core::{Duration, Instant, Rng};
use perhop_sim::application::{Action, Direction, ForeignUser, UserEvent};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::instance::Methods;
use super::{ClassPlace, Instance, RandomView, shown};

/// More bytes at once are a slip of the keyboard.
const MOST_BYTES: u64 = 1_000_000_000_000;

/// What a user does next: `Action.request(…)`, `Action.respond(…)` or `Action.wait(…)`.
#[pyclass(frozen, eq, hash, module = "perhop._engine", name = "Action")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ActionView(Chosen);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Chosen {
    Grant { connection: u32, direction: Direction, bytes: u64 },
    Wait { ns: u64 },
}

/// A whole number in this range.
fn whole(value: &Bound<'_, PyAny>, what: &str, most: u64, least: u64) -> PyResult<u64> {
    let number = value
        .extract::<i128>()
        .map_err(|_| PyTypeError::new_err(format!("{what} is {}; it is a whole number", shown(value))))?;
    u64::try_from(number).ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        PyValueError::new_err(format!("{what} is {number}; it is a whole number from {least} to {most}"))
    })
}

#[pymethods]
impl ActionView {
    /// The client asks for something in so many bytes, without headers.
    #[staticmethod]
    #[pyo3(signature = (size, connection = 0))]
    fn request(size: &Bound<'_, PyAny>, connection: u32) -> PyResult<Self> {
        grant(connection, Direction::Request, size)
    }

    /// The server answers with so many bytes, without headers.
    #[staticmethod]
    #[pyo3(signature = (size, connection = 0))]
    fn respond(size: &Bound<'_, PyAny>, connection: u32) -> PyResult<Self> {
        grant(connection, Direction::Response, size)
    }

    /// `on_timer` is to be called after so many nanoseconds, in place of an earlier wish.
    #[staticmethod]
    fn wait(span: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(Chosen::Wait { ns: whole(span, "time in ns", u64::MAX / 4, 0)? }))
    }

    fn __repr__(&self) -> String {
        match self.0 {
            Chosen::Grant { connection, direction, bytes } => {
                let name = if direction == Direction::Request { "request" } else { "respond" };
                format!("Action.{name}({bytes}, connection={connection})")
            }
            Chosen::Wait { ns } => format!("Action.wait({ns})"),
        }
    }
}

fn grant(connection: u32, direction: Direction, size: &Bound<'_, PyAny>) -> PyResult<ActionView> {
    let bytes = whole(size, "size in bytes", MOST_BYTES, 1)?;
    Ok(ActionView(Chosen::Grant { connection, direction, bytes }))
}

struct UserMethods {
    random: Py<RandomView>,
}

impl Methods for UserMethods {
    fn of_copy(&self, copy: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { random: Py::new(copy.py(), RandomView::empty())? })
    }
}

/// One user.
#[derive(Clone, Debug)]
pub(super) struct PythonUser {
    instance: Instance<UserMethods>,
    rng: Rng,
    connections: u32,
    /// When its timer expired last, and how often one after the other.
    woken: (Instant, u32),
}

/// So often a timer may expire at one time, without anything in between that takes time.
const MOST_WAKES: u32 = 100_000;

/// The method for an event, and the connection that it is about.
fn method_for(event: UserEvent) -> Option<(&'static str, Option<u32>)> {
    match event {
        UserEvent::Begins => Some(("on_start", None)),
        UserEvent::Wakes => Some(("on_timer", None)),
        UserEvent::Arrived { connection, direction: Direction::Request } => {
            Some(("on_request", Some(connection)))
        }
        UserEvent::Arrived { connection, direction: Direction::Response } => {
            Some(("on_response", Some(connection)))
        }
        UserEvent::Datagram { .. } => None,
    }
}

impl PythonUser {
    /// The object of a class with these parameters.
    pub(super) fn create(place: ClassPlace, parameters: &str, connections: u32, rng: &Rng) -> Self {
        let instance = Instance::create(place, "application", parameters, None::<u64>, |object| {
            Ok(UserMethods { random: Py::new(object.py(), RandomView::empty())? })
        });
        Self { instance, rng: rng.clone(), connections, woken: (Instant::ZERO, 0) }
    }
}

/// Adds what a method returned to `actions`.
fn add_all(
    returned: &Bound<'_, PyAny>,
    connections: u32,
    now: Instant,
    actions: &mut Vec<Action>,
) -> PyResult<()> {
    if returned.is_none() {
        return Ok(());
    }
    if let Ok(action) = returned.cast::<ActionView>() {
        actions.push(action.get().0.action(connections, now)?);
        return Ok(());
    }
    if !returned.is_instance_of::<PyList>() && !returned.is_instance_of::<PyTuple>() {
        return Err(nonsense(returned));
    }
    for one in returned.try_iter()? {
        let one = one?;
        let action = one.cast::<ActionView>().map_err(|_| nonsense(&one))?;
        actions.push(action.get().0.action(connections, now)?);
    }
    Ok(())
}

impl Chosen {
    fn action(self, connections: u32, now: Instant) -> PyResult<Action> {
        match self {
            Self::Grant { connection, direction, bytes } if connection < connections => {
                Ok(Action::Grant { connection, direction, bytes })
            }
            Self::Grant { connection, .. } => Err(PyValueError::new_err(format!(
                "it used connection {connection}; a user has {connections}, numbered from 0: write CONNECTIONS = {} in the class",
                connection.saturating_add(1),
            ))),
            Self::Wait { ns } => Ok(Action::WakeAt(now.later(Duration::from_nanos(ns)))),
        }
    }
}

fn nonsense(returned: &Bound<'_, PyAny>) -> PyErr {
    let shown = shown(returned);
    PyTypeError::new_err(format!(
        "it returned {shown}; return Action.request(…), Action.respond(…), Action.wait(…), a list of these, or None"
    ))
}

impl ForeignUser for PythonUser {
    fn on_event(&mut self, event: UserEvent, now: Instant, actions: &mut Vec<Action>) {
        let Some((name, connection)) = method_for(event) else { return };
        let before = actions.len();
        self.woken = match event {
            UserEvent::Wakes if self.woken.0 == now => (now, self.woken.1 + 1),
            _ => (now, 0),
        };
        let chosen = self.instance.call(name, Some(now), None, |object, UserMethods { random }| {
            let ns = now.as_nanos();
            let returned =
                RandomView::lend(random.bind(object.py()), &mut self.rng, |random| match connection {
                    None => object.call_method1(name, (ns, random)),
                    Some(connection) => object.call_method1(name, (connection, ns, random)),
                });
            add_all(&returned?, self.connections, now, actions)?;
            if self.woken.1 < MOST_WAKES {
                return Ok(());
            }
            Err(PyValueError::new_err(format!(
                "it has waited 0 ns {MOST_WAKES} times in a row, so time never goes on; wait longer"
            )))
        });
        if chosen.is_none() {
            actions.truncate(before);
        }
    }
}
