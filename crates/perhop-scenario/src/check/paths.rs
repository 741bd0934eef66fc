//! Checks of label-switched paths.

use std::collections::BTreeSet;

use perhop_core::Duration;
use perhop_core::control::{SampleInterval, WindowControl};
use perhop_core::table::bad_name;

use super::{Checked, Routers};
use crate::directions::Direction;
use crate::error::{Problem, at_table, did_you_mean};
use crate::format::{Flow, LabelSwitchedPath, Link, Scenario, Transport};

/// The shortest interval at which windows are sampled: more often would only cost time.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// Checks that every path leads over links, from a router to another, and passes none twice.
pub(super) fn check_paths(scenario: &Scenario) -> Checked {
    for (name, path) in &scenario.paths {
        let refuse = |key: &str, text: String| Problem::at(at_table("paths", name, key), text);
        if let Some(problem) = bad_name(name) {
            return Err(refuse("", problem));
        }
        if let Some((key, text)) = path.control.as_ref().and_then(|control| bad_control(scenario, control)) {
            return Err(refuse(key, text));
        }
        for (key, routers) in [("via", Some(&path.via)), ("back", path.back.as_ref())] {
            let Some(routers) = routers else { continue };
            if routers.len() < 2 {
                return Err(refuse(key, "a path needs at least two routers, its ingress first".into()));
            }
            for (index, router) in routers.iter().enumerate() {
                check_hop(scenario, &routers[..index], router)
                    .map_err(|text| refuse(&format!("{key}[{index}]"), text))?;
            }
        }
        if let Some(back) = &path.back
            && let (Some(first), Some(last)) = (back.first(), back.last())
            && (first.as_str(), last.as_str()) != (path.egress(), path.ingress())
        {
            let text = format!(
                "the return path leads from `{}` to `{}`, not from `{first}` to `{last}`",
                path.egress(),
                path.ingress()
            );
            return Err(refuse("back", text));
        }
    }
    Ok(())
}

/// Returns the key of a control that cannot be, and why.
fn bad_control(scenario: &Scenario, control: &WindowControl) -> Option<(&'static str, String)> {
    let first = control.interval.first();
    if let SampleInterval::Fixed(interval) = control.interval {
        if interval < SHORTEST_INTERVAL {
            let text = "windows are sampled at intervals of at least 1ms; a round-trip time is usual";
            return Some(("control.interval", text.into()));
        }
        if control.round_trips.is_some() {
            let text =
                "no effect with a fixed interval; leave this key out, or write interval = \"measured\"";
            return Some(("control.round-trips", text.into()));
        }
    }
    (first >= scenario.duration).then(|| {
        let text = format!(
            "the run ({}) ends before windows are first sampled ({first}); choose a shorter interval, such as a \
             round-trip time",
            scenario.duration
        );
        ("control.interval", text)
    })
}

/// Checks that a path that has come past the routers `before` can go on to the next; otherwise says why not.
fn check_hop(scenario: &Scenario, before: &[String], router: &str) -> Result<(), String> {
    Routers::of(scenario).find(router)?;
    let Some(last) = before.last() else { return Ok(()) };
    if before.iter().any(|passed| passed == router) {
        return Err(format!("the path passes `{router}` twice; name each router once"));
    }
    let beside = scenario.links.values().filter_map(|link| match (&link.from, &link.to) {
        (from, to) if from == last => Some(to.as_str()),
        (to, from) if from == last => Some(to.as_str()),
        _ => None,
    });
    let beside: BTreeSet<&str> = beside.collect();
    if beside.contains(router) {
        return Ok(());
    }
    let beside = beside.into_iter().collect::<Vec<_>>().join(", ");
    Err(format!("no link connects `{last}` and `{router}` (neighbors of `{last}`: {beside})"))
}

/// Returns the path of this name; if there is none, what is wrong, and which there are.
pub(super) fn find_path<'a>(scenario: &'a Scenario, name: &str) -> Result<&'a LabelSwitchedPath, String> {
    scenario.paths.get(name).ok_or_else(|| {
        let hint = did_you_mean(name, scenario.paths.keys().map(String::as_str));
        let known = scenario.paths.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        if known.is_empty() {
            return format!("unknown path `{name}`; add a table such as [paths.{name}]");
        }
        format!("unknown path `{name}`{hint} (known paths: {known})")
    })
}

/// Returns why a queue on this direction of a link receives no windows of a path, and the remedy; nothing if
/// it receives some. `receives` says whether its AQM gets those of a path. Of several reasons, it returns
/// that of the path for which the least is missing.
pub(super) fn missing_control(
    scenario: &Scenario,
    direction: &Direction<'_>,
    receives: impl Fn(&str) -> bool,
) -> Option<String> {
    let passing = scenario.paths.iter().filter(|(_, route)| passes(scenario, route, direction));
    let missing = passing.map(|(path, route)| {
        let tcp =
            |flow: &Flow| flow.path.as_ref() == Some(path) && matches!(flow.transport, Transport::Tcp(_));
        if !receives(path) {
            Some((1, format!("packets of the path `{path}` go to another queue; put the rule there")))
        } else if route.control.is_none() {
            let example = "{ interval = \"40ms\" }";
            Some((2, format!("the path `{path}` has no `control`; give it one, such as {example}")))
        } else if !scenario.flows.iter().any(tcp) {
            Some((3, format!("no TCP flow uses the path `{path}`; add one")))
        } else {
            None
        }
    });
    let (from, to) = direction.ends();
    let nearest = missing.collect::<Option<Vec<_>>>()?.into_iter().max_by_key(|(stage, _)| *stage);
    let reason = nearest.map(|(_, reason)| reason);
    Some(reason.unwrap_or_else(|| {
        format!("no path uses this link from `{from}` to `{to}`; add one with a `control`")
    }))
}

/// Returns whether a path takes this direction of a link: of several that join two routers, the first by
/// name.
fn passes(scenario: &Scenario, path: &LabelSwitchedPath, direction: &Direction<'_>) -> bool {
    let (from, to) = direction.ends();
    let joins =
        |link: &Link| [(&link.from, &link.to), (&link.to, &link.from)].contains(&(&from.into(), &to.into()));
    path.via.windows(2).any(|hop| (hop[0].as_str(), hop[1].as_str()) == (from, to))
        && scenario
            .links
            .iter()
            .find(|(_, link)| joins(link))
            .is_some_and(|(first, _)| first == direction.link_name)
}
