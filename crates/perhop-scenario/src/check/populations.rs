//! Checks of populations.

use perhop_core::Duration;
use perhop_sim::workload::Listed;

use super::{Allowed, Checked};
use crate::error::{Problem, at_flow};
use crate::format::{Arrivals, Flow, MeasuredArrivals, Scenario, Start};
use crate::one_flow_per_group::OneFlowPerGroup;
use crate::populations::{end_of, headers, packet, workload};

/// The most flows of a population: their records alone take 3.2 GB.
const MOST_FLOWS: f64 = 1e8;

/// Checks the populations, and that other groups have none of their keys. All else has been checked.
pub(super) fn check_populations(scenario: &Scenario) -> Checked {
    let is_any = scenario.flows.iter().any(|group| group.arrivals.is_some());
    let network = is_any.then(|| OneFlowPerGroup::of(scenario).network);
    for (number, group) in scenario.flows.iter().enumerate() {
        let at = |(key, text): (&str, String)| Problem::at(at_flow(number, key), text);
        match (&group.arrivals, &network) {
            (Some(arrivals), Some(network)) => {
                check_group(group).map_err(at)?;
                check_headers(group).map_err(at)?;
                let workload = workload(group, arrivals, network, number).map_err(at)?;
                check_list(&arrivals.list, scenario.duration).map_err(at)?;
                check_trace(scenario, group, arrivals).map_err(at)?;
                let expected = workload.expected(scenario.duration);
                if expected > MOST_FLOWS {
                    let text = format!(
                        "{expected:.3e} flows would begin; a population has at most {MOST_FLOWS:.0e}"
                    );
                    return Err(at(("arrivals", text)));
                }
            }
            _ if group.sizes.is_some() => {
                let text = "only flows of a population have sizes that differ; add `arrivals`, or give all the same `volume`";
                return Err(at(("sizes", text.into())));
            }
            _ => {}
        }
        let controlled = group.path.as_ref().and_then(|path| scenario.paths.get(path)?.control.as_ref());
        if group.arrivals.is_some() && controlled.is_some() {
            let text = "the window control of this path knows its flows from the start; choose a path without `control`";
            return Err(at(("path", text.into())));
        }
    }
    Ok(())
}

/// Checks that a flow of measured arrivals begins within the run.
fn check_trace(scenario: &Scenario, group: &Flow, arrivals: &Arrivals) -> Allowed {
    let Some(trace) = arrivals.trace.as_ref().and_then(MeasuredArrivals::read) else { return Ok(()) };
    let start = group.start.first;
    let end = end_of(scenario, group);
    match trace.first() {
        Some(first) if start + first < end => Ok(()),
        first => {
            let first = first.map_or(start, |first| start + first);
            let text = format!(
                "its first flow would begin at {first}, but arrivals end at {end}; use an earlier `start`"
            );
            Err(("arrivals.trace", text))
        }
    }
}

/// Checks that a group has no key that does not go with a population.
fn check_group(group: &Flow) -> Allowed {
    if group.count != 1 {
        let text =
            "a population has as many flows as its `arrivals` say; leave this key out, or write more groups";
        return Err(("count", text.into()));
    }
    if group.application.is_some() {
        let text =
            "the users of an application decide themselves when they send; leave out this key or `arrivals`";
        return Err(("application", text.into()));
    }
    if group.volume.is_some() {
        let text = "flows of a population have `sizes`, such as { constant = \"30kB\" }; leave this key out";
        return Err(("volume", text.into()));
    }
    if group.start.first != group.start.last && group.start != Start::default() {
        let text =
            "the arrivals of a population begin at one time, such as \"2s\"; the flows then start at random";
        return Err(("start", text.into()));
    }
    if group.start != Start::default() && group.arrivals.as_ref().is_some_and(|these| !these.list.is_empty())
    {
        let text =
            "the times of the list are from the start of the run; leave this key out, and write them so";
        return Err(("start", text.into()));
    }
    if group.stop.is_some_and(|stop| stop <= group.start.first) {
        return Err(("stop", "no flow begins after `start` and before this time; choose a later one".into()));
    }
    if group.out_feedback.is_some() {
        let text = "feedback about OUT packets is for flows that stay; leave this key out";
        return Err(("out-feedback", text.into()));
    }
    Ok(())
}

/// Checks that packets have room for payload.
fn check_headers(group: &Flow) -> Allowed {
    let Some(packet) = packet(&group.transport) else {
        let text = "flows that come and go use TCP or UDP; RAP and TFRC are for streams without an end";
        return Err(("transport", text.into()));
    };
    let headers = headers(&group.transport);
    if packet <= headers {
        let text =
            format!("packets of {packet} bytes have no room for payload beside headers of {headers} bytes");
        return Err(("transport.packet", format!("{text}; choose larger ones")));
    }
    Ok(())
}

/// Checks that listed flows begin in the order of time and within the run.
fn check_list(list: &[Listed], duration: Duration) -> Allowed {
    let refuse = |text: String| Err(("arrivals.list", text));
    let mut before = Duration::ZERO;
    for (number, &Listed(at, size)) in list.iter().enumerate() {
        if at < before {
            return refuse(format!(
                "flow {number} begins at {at}, before the one ahead of it ({before}); sort the list"
            ));
        }
        if size.get() == 0 {
            return refuse(format!("flow {number} sends nothing; write a size such as 30kB"));
        }
        if at >= duration {
            return refuse(format!("flow {number} begins at {at}, and the run ends at {duration}"));
        }
        before = at;
    }
    Ok(())
}
