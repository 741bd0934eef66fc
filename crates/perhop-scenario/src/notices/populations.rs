//! Notices of populations, and of flows that begin too late or too early.

use perhop_sim::workload::Arrivals as Process;
use perhop_sim::{Network, Workload};

use crate::error::{Problem, at_flow};
use crate::format::{Flow, Scenario};
use crate::populations::{end_of, headers, packet, span, workload};

/// Returns what to know of flows whose start time, or part of its range, is after their end.
fn late_starts(scenario: &Scenario, group: &Flow) -> Option<String> {
    let (first, last) = (group.start.first, group.start.last);
    let end = end_of(scenario, group);
    let ends = if end < scenario.duration { "the flows stop" } else { "the run ends" };
    if first >= end {
        return Some(format!(
            "{ends} at {end}, so flows from {first} on never begin; choose an earlier time, or a later end"
        ));
    }
    (last > end && group.arrivals.is_none()).then(|| {
        let never = (last - end).as_secs_f64() / (last - first).as_secs_f64();
        format!(
            "{ends} at {end}, so {:.0} % of the flows that begin within {first}..{last} never begin; choose an earlier time, or a \
             later end",
            never * 100.0
        )
    })
}

/// Returns notices of flows that never begin, flows with a volume that begin too early to count, and
/// populations that bring more than their links carry.
pub(super) fn of_populations(scenario: &Scenario, network: &Network) -> Vec<Problem> {
    let mut notices = Vec::new();
    for (number, group) in scenario.flows.iter().enumerate() {
        let mut say = |key: &str, text: String| {
            notices.push(Problem::at(at_flow(number, key), text));
        };
        if let Some(text) = late_starts(scenario, group) {
            say("start", text);
        }
        let (first, end) = (group.start.first, end_of(scenario, group));
        if first >= end {
            continue;
        }
        if group.volume.is_some() && group.start.last < scenario.warmup.or_none() {
            let text = format!(
                "flows that begin during the warm-up, until {}, have no completion time; begin later, or choose a shorter `warmup`",
                scenario.warmup
            );
            say("start", text);
        }
        let Some(arrivals) = group.arrivals.as_ref().filter(|these| these.list.is_empty()) else {
            continue;
        };
        let Ok(workload) = workload(group, arrivals, network, number) else { continue };
        let expected = workload.expected(end - first);
        if expected < 1.0 {
            let text = format!(
                "{expected:.1e} flows begin in a run on average; choose more of them, smaller ones or a longer run"
            );
            say("arrivals", text);
        }
        if let Some((link, times)) = overload(group, &workload, network, number) {
            let text = format!(
                "with headers, the flows bring {times:.2} times what link `{link}` carries, so more and more of them \
                 are open at once; choose fewer, or read the results as those of an overload"
            );
            say("arrivals", text);
        }
    }
    notices
}

/// Returns the slowest link of a population's route and how many times its rate the flows bring at least, if
/// that is more than it carries.
fn overload<'a>(
    group: &Flow,
    workload: &Workload,
    network: &'a Network,
    number: usize,
) -> Option<(&'a str, f64)> {
    let per_second = match &workload.arrivals {
        Process::Poisson(per_second) => *per_second,
        Process::Every(interval) => 1.0 / interval.as_secs_f64(),
        Process::List(_) | Process::Trace(_) => return None,
    };
    let payload = packet(&group.transport)?.checked_sub(headers(&group.transport))?;
    let mean = workload.sizes.mean().ok()?;
    let packets = (mean / payload as f64).max(1.0);
    let bits = 8.0 * (mean + packets * f64::from(workload.headers));
    let route = network.route_of(&network.flows[number], false)?;
    let (from, to) = span(group, network);
    let rates = route.iter().map(|&link| (&network.links[link], network.links[link].mean_rate(from, to)));
    let (link, rate) = rates.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let times = per_second * bits / rate;
    (times > 1.0).then_some((link.name.as_str(), times))
}
