//! Notices of links: their names, their traces and their losses.

use crate::error::Problem;
use crate::error::{at_table, steps};
use crate::format::{Link, RateTrace, Scenario};

/// Returns a notice for each link that loses every packet: who means one percent may have written 1.
pub(super) fn total_losses(scenario: &Scenario) -> impl Iterator<Item = Problem> {
    scenario.links.written().flat_map(|(name, link)| {
        let back = link.reverse.as_ref().and_then(|reverse| reverse.loss);
        let lost = [("loss", link.loss), ("reverse.loss", back)].into_iter();
        let lost = lost.filter(|(_, loss)| loss.is_some_and(|loss| loss.get() >= 1.0));
        lost.map(move |(key, _)| {
            let text = "`1`: the link loses every packet; one percent is \"1%\" or 0.01";
            Problem::at(at_table("links", name, key), text)
        })
    })
}

/// Returns a notice for each trace after which a link sends nothing.
pub(super) fn ended_traces(scenario: &Scenario) -> impl Iterator<Item = Problem> {
    scenario.directions().filter_map(|direction| {
        let RateTrace::Table(table) = direction.rate_trace()? else { return None };
        let end = table.read.as_ref()?.end().filter(|&end| end < scenario.duration)?;
        let text = format!(
            "the trace ends at {end}, and the link sends nothing afterwards; leave `repeat` out, or end the run by then"
        );
        Some(direction.at("rate-trace.repeat", text))
    })
}

/// Returns a notice for each written link whose name is that of a link of the topology, read backwards:
/// probably meant to replace it.
pub(super) fn named_backwards(scenario: &Scenario) -> impl Iterator<Item = Problem> {
    scenario.links.written().filter_map(|(name, Link { from, to, .. })| {
        let [there, back] = [format!("{from}--{to}"), format!("{to}--{from}")];
        let other = match name {
            name if *name == there => back,
            name if *name == back => there,
            _ => return None,
        };
        scenario.links.tier(&other)?;
        let text = format!(
            "adds a link beside `{other}` of the topology; to replace that one, call this `{other}`, in the same direction; for a \
             second one, choose another name"
        );
        Some(Problem::at(at_table("links", name, ""), text))
    })
}

/// Returns a notice of the edges and nodes of a graph that are no links and routers of their own.
pub(super) fn merged_edges(scenario: &Scenario) -> Option<Problem> {
    let graph = scenario.topology.as_ref()?.graph.as_ref()?;
    let (name, merged) = (graph.name.as_deref().unwrap_or_default(), graph.merged.as_ref()?);
    Some(Problem::at(steps("topology.graph.file"), format!("{name}: {merged}")))
}
