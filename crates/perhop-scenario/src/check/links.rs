//! Checks of links: their names and ends, their queues, their meters and how they change.

use perhop_core::Duration;
use perhop_core::aqm::AqmParams;
use perhop_core::medium::{Medium, Outage};
use perhop_core::meter::AggregateMeter;
use perhop_core::table::bad_name;

use super::paths::{find_path, missing_control};
use super::{Checked, refuse};
use crate::format::{REVERSE, Scenario};

/// A refusal at a key of a direction, such as `changes[1].at`.
type Refused = (String, String);

/// Checks the names and the ends of links.
pub(super) fn check_links(scenario: &Scenario) -> Checked {
    if scenario.links.is_empty() {
        return refuse(&["links"], "the scenario has no links; add a [links.NAME] table, or a [topology]");
    }
    for (name, link) in scenario.links.iter() {
        if let Some(problem) = bad_name(name) {
            return refuse(&["links", name], problem);
        }
        if name.ends_with(REVERSE) {
            let text =
                format!("names that end in `{REVERSE}` are reserved for reverse directions; choose another");
            return refuse(&["links", name], text);
        }
        if link.from == link.to {
            let text = format!("the link connects `{}` to itself; name two routers", link.to);
            return refuse(&["links", name, "to"], text);
        }
    }
    Ok(())
}

/// Checks that changes and outages of links come in the order of time and within the run, and that other keys
/// fit together.
pub(super) fn check_media(scenario: &Scenario) -> Checked {
    scenario.directions().try_for_each(|direction| {
        let medium = direction.medium();
        let checked = check_changes(&medium, scenario.duration)
            .and_then(|()| check_outages(&medium, scenario.duration))
            .and_then(|()| check_loss(&medium))
            .and_then(|()| check_jitter(&medium));
        checked.map_err(|(key, text)| direction.at(&key, text))
    })
}

/// Checks that queues name existing paths, and guarantee no more than the rates of their links.
pub(super) fn check_queues(scenario: &Scenario) -> Checked {
    for place in scenario.queues() {
        place
            .scheduler()
            .fits(place.rate())
            .map_err(|problem| place.at(problem.key(), problem.text().into()))?;
        for (key, path) in place.scheduler().clone().paths() {
            find_path(scenario, path.name()).map_err(|text| place.at(&key, text))?;
        }
    }
    Ok(())
}

/// Checks that every AQM that uses window control receives its messages.
pub(super) fn check_window_control(scenario: &Scenario) -> Checked {
    for place in scenario.queues() {
        for (key, aqm) in place.scheduler().aqms(None).into_iter().filter(|(_, aqm)| aqm.follows_paths()) {
            let receives =
                |path: &str| place.scheduler().aqms(Some(path)).iter().any(|(receiver, _)| *receiver == key);
            if let Some(reason) = missing_control(scenario, &place.direction, receives) {
                let text = format!(
                    "`{}` requires the window control of a label-switched path: {reason}",
                    aqm.name()
                );
                return Err(place.at(&format!("{key}.{}", AqmParams::TAG), text));
            }
        }
    }
    Ok(())
}

/// Checks that the meters of links can act, name existing paths, and are counted.
pub(super) fn check_meters(scenario: &Scenario) -> Checked {
    for direction in scenario.metered() {
        let at = |inner: &str, text: String| direction.at(&format!("meters{inner}"), text);
        if direction.queue().is_none() {
            let text = "meters are in front of a queue, which this link does not have; give it a `queue`";
            return Err(at("", text.into()));
        }
        AggregateMeter::check(direction.meters())
            .map_err(|problem| at(problem.key(), problem.text().into()))?;
        for (number, mut meter) in direction.meters().iter().cloned().enumerate() {
            if let Some(path) = meter.path() {
                let at = |text| at(&format!("[{number}].match.path"), text);
                find_path(scenario, path.name()).map_err(at)?;
            }
        }
    }
    Ok(())
}

/// Checks that changes have an effect, and come in the order of time and within the run.
fn check_changes(medium: &Medium, duration: Duration) -> Result<(), Refused> {
    let mut before = None;
    for (number, change) in medium.changes.iter().enumerate() {
        let refuse = |key: &str, text: String| Err((format!("changes[{number}]{key}"), text));
        if change.rate.is_none() && change.delay.is_none() {
            return refuse("", "a change has a `rate`, a `delay` or both".into());
        }
        if change.rate.is_some() && medium.trace.is_some() {
            return refuse(".rate", "`rate-trace` says what the rate is: leave one of the two out".into());
        }
        if let Some(before) = before.filter(|&before| before >= change.at) {
            let text = format!("changes come in the order of time, and the one before is at {before}");
            return refuse(".at", text);
        }
        if change.at >= duration {
            return refuse(".at", after_the_end(duration));
        }
        before = Some(change.at);
    }
    Ok(())
}

/// Checks that outages come in the order of time and within the run.
fn check_outages(medium: &Medium, duration: Duration) -> Result<(), Refused> {
    let mut before = None;
    for (number, &Outage { from, to }) in medium.outages.iter().enumerate() {
        let refuse = |key: &str, text: String| Err((format!("outages[{number}].{key}"), text));
        if to <= from {
            return refuse("to", format!("an outage ends after it begins ({from})"));
        }
        if let Some(before) = before.filter(|&before| before > from) {
            let text = format!("outages come in the order of time, and the one before ends at {before}");
            return refuse("from", text);
        }
        if from >= duration {
            return refuse("from", after_the_end(duration));
        }
        before = Some(to);
    }
    Ok(())
}

fn after_the_end(duration: Duration) -> String {
    format!("the run ends at {duration}: choose an earlier time, or a longer run")
}

/// Checks that a burst of losses ends.
fn check_loss(medium: &Medium) -> Result<(), Refused> {
    if medium.burst_loss.is_some_and(|bursts| bursts.bad_to_good.get() == 0.0) {
        let text = "the bad state must end: write a probability above 0";
        return Err(("burst-loss.bad-to-good".into(), text.into()));
    }
    Ok(())
}

fn check_jitter(medium: &Medium) -> Result<(), Refused> {
    let Some(jitter) = &medium.jitter else { return Ok(()) };
    jitter.check().map_err(|problem| (format!("jitter.{}", problem.key()), problem.text().to_owned()))
}
