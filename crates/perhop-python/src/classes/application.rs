//! A class in Python as the users of an application.

use std::fmt;
use std::sync::Arc;

use perhop_core::{Duration, Instant, Rng};
use perhop_sim::application::{Action, Direction, Event, ForeignUser, UserImplementation};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{ClassPlace, Fault, MODULE, RandomView, called};

/// More bytes at once are a slip of the keyboard.
const MOST_BYTES: u64 = 1_000_000_000_000;

/// What a user does next: `Action.request(…)`, `Action.respond(…)` or `Action.wait(…)`.
#[pyclass(frozen, eq, hash, module = "perhop._engine", name = "Action")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ActionView(Chosen);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Chosen {
    Request { connection: u32, bytes: u64 },
    Respond { connection: u32, bytes: u64 },
    Wait { ns: u64 },
}

/// A whole number in this range.
fn whole(value: &Bound<'_, PyAny>, what: &str, most: u64, least: u64) -> PyResult<u64> {
    let number = value.extract::<i128>().map_err(|_| {
        let shown = value.repr().map_or_else(|_| "something else".into(), |repr| repr.to_string());
        PyTypeError::new_err(format!("{what} is {shown}; it is a whole number"))
    })?;
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
        Ok(Self(Chosen::Request { connection, bytes: whole(size, "size in bytes", MOST_BYTES, 1)? }))
    }

    /// The server answers with so many bytes, without headers.
    #[staticmethod]
    #[pyo3(signature = (size, connection = 0))]
    fn respond(size: &Bound<'_, PyAny>, connection: u32) -> PyResult<Self> {
        Ok(Self(Chosen::Respond { connection, bytes: whole(size, "size in bytes", MOST_BYTES, 1)? }))
    }

    /// `on_timer` is to be called after so many nanoseconds, in place of an earlier wish.
    #[staticmethod]
    fn wait(span: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(Chosen::Wait { ns: whole(span, "time in ns", u64::MAX / 4, 0)? }))
    }

    fn __repr__(&self) -> String {
        match self.0 {
            Chosen::Request { connection, bytes } => {
                format!("Action.request({bytes}, connection={connection})")
            }
            Chosen::Respond { connection, bytes } => {
                format!("Action.respond({bytes}, connection={connection})")
            }
            Chosen::Wait { ns } => format!("Action.wait({ns})"),
        }
    }
}

/// Makes the objects of one group.
#[derive(Debug)]
pub(super) struct PythonUsers {
    /// What the class is created with, as JSON.
    pub(super) parameters: String,
    pub(super) connections: u32,
    pub(super) place: ClassPlace,
    pub(super) fault: Arc<Fault>,
}

impl UserImplementation for PythonUsers {
    fn build(&self, member: usize, rng: Rng) -> Box<dyn ForeignUser> {
        let at = format!("user {member} of `{}`", self.place.at);
        let place = ClassPlace { at, ..self.place.clone() };
        called(|py| {
            let created = || {
                let create = py.import(MODULE)?.getattr("create")?;
                let object = create.call1(("application", &place.class, &self.parameters, py.None()))?;
                Object::around(&object)
            };
            let object = match created() {
                Ok(object) => Some(object),
                Err(error) => {
                    self.fault.set(place.error(py, error, "__init__", None, None));
                    None
                }
            };
            let (connections, fault) = (self.connections, self.fault.clone());
            let woken = (Instant::ZERO, 0);
            Box::new(PythonUser { object, rng, connections, woken, place, fault }) as Box<dyn ForeignUser>
        })
        .settle(&self.fault)
    }
}

struct Object {
    user: Py<PyAny>,
    random: Py<RandomView>,
}

impl Object {
    fn around(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let random = Py::new(object.py(), RandomView::empty())?;
        Ok(Self { user: object.clone().unbind(), random })
    }
}

/// One user.
struct PythonUser {
    /// None where it could not be created; the run ends with the error.
    object: Option<Object>,
    rng: Rng,
    connections: u32,
    /// When its timer expired last, and how often one after the other.
    woken: (Instant, u32),
    place: ClassPlace,
    fault: Arc<Fault>,
}

/// So often a timer may expire at one time, without anything in between that takes time.
const MOST_WAKES: u32 = 100_000;

impl fmt::Debug for PythonUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonUser").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The method for an event, and the connection that it is about.
fn method_for(event: Event) -> Option<(&'static str, Option<u32>)> {
    match event {
        Event::Begins => Some(("on_start", None)),
        Event::Wakes => Some(("on_timer", None)),
        Event::Arrived { connection, direction: Direction::Request } => {
            Some(("on_request", Some(connection)))
        }
        Event::Arrived { connection, direction: Direction::Response } => {
            Some(("on_response", Some(connection)))
        }
        Event::Datagram { .. } => None,
    }
}

impl PythonUser {
    fn chosen(
        &mut self,
        py: Python<'_>,
        (name, connection): (&str, Option<u32>),
        now: Instant,
        actions: &mut Vec<Action>,
    ) -> PyResult<()> {
        let Some(Object { user: object, random }) = &self.object else { return Ok(()) };
        random.borrow_mut(py).exchange(&mut self.rng);
        let returned = match connection {
            None => object.bind(py).call_method1(name, (now.as_nanos(), random.bind(py))),
            Some(connection) => {
                object.bind(py).call_method1(name, (connection, now.as_nanos(), random.bind(py)))
            }
        };
        random.borrow_mut(py).exchange(&mut self.rng);
        let returned = returned?;
        if returned.is_none() {
            return Ok(());
        }
        if let Ok(action) = returned.cast::<ActionView>() {
            return self.add(action.get().0, now, actions);
        }
        let several = returned.cast::<pyo3::types::PyList>().map(|list| list.iter().collect::<Vec<_>>());
        let several = several.or_else(|_| {
            returned.cast::<pyo3::types::PyTuple>().map(|tuple| tuple.iter().collect::<Vec<_>>())
        });
        let Ok(several) = several else { return Err(nonsense(&returned)) };
        for one in several {
            let action = one.cast::<ActionView>().map_err(|_| nonsense(&one))?;
            self.add(action.get().0, now, actions)?;
        }
        Ok(())
    }

    /// Time goes on while it waits.
    fn goes_on(&self) -> PyResult<()> {
        if self.woken.1 < MOST_WAKES {
            return Ok(());
        }
        let text =
            format!("it has waited 0 ns {MOST_WAKES} times in a row, so time never goes on; wait longer");
        Err(PyValueError::new_err(text))
    }

    fn add(&self, chosen: Chosen, now: Instant, actions: &mut Vec<Action>) -> PyResult<()> {
        let grant = |connection: u32, direction, bytes| {
            if connection < self.connections {
                return Ok(Action::Grant { connection, direction, bytes });
            }
            Err(PyValueError::new_err(format!(
                "it used connection {connection}; a user has {}, numbered from 0: write CONNECTIONS = {} in the class",
                self.connections,
                connection.saturating_add(1),
            )))
        };
        actions.push(match chosen {
            Chosen::Request { connection, bytes } => grant(connection, Direction::Request, bytes)?,
            Chosen::Respond { connection, bytes } => grant(connection, Direction::Response, bytes)?,
            Chosen::Wait { ns } => Action::WakeAt(now.later(Duration::from_nanos(ns))),
        });
        Ok(())
    }
}

fn nonsense(returned: &Bound<'_, PyAny>) -> PyErr {
    let shown = returned.repr().map_or_else(|_| "something else".into(), |repr| repr.to_string());
    PyTypeError::new_err(format!(
        "it returned {shown}; return Action.request(…), Action.respond(…), Action.wait(…), a list of these, or None"
    ))
}

impl ForeignUser for PythonUser {
    fn on_event(&mut self, event: Event, now: Instant, actions: &mut Vec<Action>) {
        let Some(method) = method_for(event).filter(|_| !self.fault.is_set()) else { return };
        let before = actions.len();
        self.woken = match event {
            Event::Wakes if self.woken.0 == now => (now, self.woken.1 + 1),
            _ => (now, 0),
        };
        called(|py| {
            let chosen = self.chosen(py, method, now, actions).and_then(|()| self.goes_on());
            if let Err(error) = chosen {
                actions.truncate(before);
                self.fault.set(self.place.error(py, error, method.0, Some(now), None));
            }
        })
        .settle(&self.fault);
    }

    fn boxed_clone(&self) -> Box<dyn ForeignUser> {
        let copied = |py: Python<'_>, object: &Object| {
            Object::around(&py.import("copy")?.getattr("deepcopy")?.call1((&object.user,))?)
        };
        let object = self.object.as_ref().and_then(|object| {
            called(|py| match copied(py, object) {
                Ok(object) => Some(object),
                Err(error) => {
                    self.fault.set(self.place.error(py, error, "__deepcopy__", None, None));
                    None
                }
            })
            .settle(&self.fault)
        });
        let Self { rng, connections, woken, place, fault, .. } = self;
        let (place, fault) = (place.clone(), fault.clone());
        let (rng, connections, woken) = (rng.clone(), *connections, *woken);
        Box::new(Self { object, rng, connections, woken, place, fault })
    }
}
