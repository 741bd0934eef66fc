//! Runs with splitting, for rare events: conversions of names, levels and counts.

#![expect(clippy::needless_pass_by_value, reason = "Python's tuples become values of their own")]

use perhop_core::{Duration, Unit};
use perhop_sim::splitting::{self, Event, Goal, Importance, Level, Plan, Unsplit};
use perhop_sim::{Engine, Network, Stepping, Watch};
use pyo3::prelude::*;

use crate::{Cancel, classes, fitting, in_json, invalid, raised, refused};

/// The backlog that says how near the event is: a link's name, the name of a class of its queue or None, and
/// `packets` or `bytes`.
type Backlog = (String, Option<String>, String);

/// The rare event: `loss`; `wait`, with the wait in nanoseconds; or, for a pilot, `share` and a probability.
type What = (String, f64);

/// Finds levels for the splitting of a scenario's runs: the levels, and why there are no more, as JSON.
#[pyfunction]
#[pyo3(signature = (scenario, seed, backlog, what, most_events, cancel = None))]
pub(crate) fn split_pilot(
    py: Python<'_>,
    scenario: &str,
    seed: u64,
    backlog: Backlog,
    what: What,
    most_events: u64,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let goal = match what.0.as_str() {
        "share" => Goal::Share(what.1),
        _ => Goal::Event(event(&what)?),
    };
    split(py, scenario, cancel, (&backlog, &what), |network, importance, watch| {
        splitting::pilot(network, seed, importance, goal, most_events, watch)
    })
}

/// Runs a scenario with splitting: what was counted, as JSON. Each level is its least backlog and the number
/// of trials.
#[pyfunction]
#[pyo3(signature = (scenario, seed, backlog, what, levels, most_events, cancel = None))]
#[expect(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
pub(crate) fn split_run(
    py: Python<'_>,
    scenario: &str,
    seed: u64,
    backlog: Backlog,
    what: What,
    levels: Vec<(u64, u32)>,
    most_events: u64,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let event = event(&what)?;
    let levels: Vec<Level> = levels.into_iter().map(|(from, trials)| Level { from, trials }).collect();
    split(py, scenario, cancel, (&backlog, &what), |network, importance, watch| {
        splitting::run(network, seed, &Plan { importance, levels, event, most_events }, watch)
    })
}

/// Does this work with a scenario's network, in which classes in Python can run.
fn split<T: serde::Serialize + Send>(
    py: Python<'_>,
    scenario: &str,
    cancel: Option<&Cancel>,
    (backlog, what): (&Backlog, &What),
    work: impl FnOnce(&Network, Importance, &Watch) -> Result<T, Unsplit> + Send,
) -> PyResult<String> {
    let (scenario, watch) = fitting(scenario, cancel)?;
    let (mut network, watch) = (py.detach(|| scenario.network()), watch.of_one_run());
    let fault = classes::implement(&mut network, &watch);
    let importance = importance(&network, backlog, what.0 != "loss")?;
    let done = match fault {
        None => py.detach(|| work(&network, importance, &watch)),
        Some(fault) => {
            let done = work(&network, importance, &watch); // this thread has the interpreter
            fault.take(py).map_or(Ok(done), Err)?
        }
    };
    in_json(&done.map_err(|error| match error {
        Unsplit::Failed(failure) => raised(failure),
        error => refused(error),
    })?)
}

fn event((name, value): &What) -> PyResult<Event> {
    match name.as_str() {
        "loss" => Ok(Event::Loss),
        "wait" => Ok(Event::Wait(Duration::from_nanos(*value as u64))),
        _ => Err(invalid(format!("`{name}` is no event: loss or wait"))),
    }
}

fn importance(network: &Network, (link, class, unit): &Backlog, lingers: bool) -> PyResult<Importance> {
    let has_queue = |number: &usize| network.links[*number].queue.is_some();
    let number = network.links.iter().position(|one| one.name == *link).filter(has_queue);
    let number = number.ok_or_else(|| refused(format!("link `{link}` has no queue")))?;
    let unit = match unit.as_str() {
        "packets" => Unit::Packets,
        "bytes" => Unit::Bytes,
        _ => return Err(invalid(format!("`{unit}` is no measure of a backlog: packets or bytes"))),
    };
    let mut run = Stepping::new(network, 0, Engine::Reference).map_err(raised)?;
    let names = run.link(number).into_iter().flat_map(|view| view.classes);
    let names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
    let class = class.as_ref().map(|class| {
        names.iter().position(|name| name == class).ok_or_else(|| {
            refused(format!(
                "the queue of link `{link}` has no class `{class}`; it has: {}",
                names.join(", ")
            ))
        })
    });
    Ok(Importance { link: number, class: class.transpose()?, unit, lingers })
}
