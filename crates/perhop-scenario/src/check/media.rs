//! Checks of links that change, lose and reorder packets, each with its place in the scenario.

use perhop_core::Duration;
use perhop_sim::Medium;
use perhop_sim::medium::{Change, Outage};

use super::Checked;
use crate::error::{KeyPart, Problem, steps};
use crate::format::Scenario;

/// The medium of one direction of a link, and where it stands.
struct Place<'a> {
    link: &'a str,
    is_reverse: bool,
    medium: Medium,
}

impl Place<'_> {
    /// A problem with a key of this direction, such as `changes[1].at`.
    fn refuse(&self, key: &str, text: impl Into<String>) -> Checked {
        let direction = if self.is_reverse { Some("reverse") } else { None };
        let keys = ["links", self.link].into_iter().chain(direction);
        let mut problem = Problem::at(keys.map(|key| KeyPart::Key(key.into())), text);
        problem.path.extend(steps(key));
        Err(problem)
    }

    /// The first of the keys that are given; `None` for a constant medium.
    fn key(&self) -> Option<&'static str> {
        let Medium { trace, changes, outages, loss, burst_loss, jitter } = &self.medium;
        let given = [
            ("rate-trace", trace.is_some()),
            ("changes", !changes.is_empty()),
            ("outages", !outages.is_empty()),
            ("loss", loss.is_some()),
            ("burst-loss", burst_loss.is_some()),
            ("jitter", jitter.is_some()),
        ];
        given.into_iter().find_map(|(key, is_given)| is_given.then_some(key))
    }
}

impl Scenario {
    /// Checks that changes and outages of links come in the order of time and within the run, and that other keys fit together.
    pub(super) fn check_media(&self) -> Checked {
        self.media().try_for_each(|place| {
            check_changes(&place, self.duration)?;
            check_outages(&place, self.duration)?;
            check_loss(&place)?;
            check_jitter(&place)
        })
    }

    /// The keys of a link that change it, or lose or delay packets, which act in the simulator only.
    pub(crate) fn check_constant_media(&self) -> Result<(), Problem> {
        self.media().try_for_each(|place| match place.key() {
            None => Ok(()),
            Some(key) => {
                place.refuse(key, "on real packets links are constant, and lose and reorder nothing: leave this key out, or simulate the scenario")
            }
        })
    }

    fn media(&self) -> impl Iterator<Item = Place<'_>> {
        self.links.iter().flat_map(|(link, spec)| {
            let forward = Place { link, is_reverse: false, medium: spec.medium() };
            let reverse = spec.reverse.as_ref();
            let reverse = reverse.map(|reverse| Place { link, is_reverse: true, medium: reverse.medium() });
            [Some(forward), reverse].into_iter().flatten()
        })
    }
}

fn check_changes(place: &Place<'_>, duration: Duration) -> Checked {
    let mut before = None;
    for (number, change) in place.medium.changes.iter().enumerate() {
        let &Change { at, rate, delay } = change;
        let key = format!("changes[{number}].at");
        if rate.is_none() && delay.is_none() {
            return place.refuse(&format!("changes[{number}]"), "a change has a `rate`, a `delay` or both");
        }
        if rate.is_some() && place.medium.trace.is_some() {
            let text = "`rate-trace` says what the rate is: leave one of the two out";
            return place.refuse(&format!("changes[{number}].rate"), text);
        }
        if let Some(before) = before.filter(|&before| before >= at) {
            return place.refuse(
                &key,
                format!("changes come in the order of time, and the one before is at {before}"),
            );
        }
        if at >= duration {
            return place.refuse(
                &key,
                format!("the run ends at {duration}: choose an earlier time, or a longer run"),
            );
        }
        before = Some(at);
    }
    Ok(())
}

fn check_outages(place: &Place<'_>, duration: Duration) -> Checked {
    let mut before = None;
    for (number, &Outage { from, to }) in place.medium.outages.iter().enumerate() {
        let key = |key| format!("outages[{number}].{key}");
        if to <= from {
            return place.refuse(&key("to"), format!("an outage ends after it begins ({from})"));
        }
        if let Some(before) = before.filter(|&before| before > from) {
            let text = format!("outages come in the order of time, and the one before ends at {before}");
            return place.refuse(&key("from"), text);
        }
        if from >= duration {
            return place.refuse(
                &key("from"),
                format!("the run ends at {duration}: choose an earlier time, or a longer run"),
            );
        }
        before = Some(to);
    }
    Ok(())
}

fn check_loss(place: &Place<'_>) -> Checked {
    if place.medium.burst_loss.is_some_and(|bursts| bursts.bad_to_good.get() == 0.0) {
        return place.refuse("burst-loss.bad-to-good", "the bad state must end: write a probability above 0");
    }
    Ok(())
}

fn check_jitter(place: &Place<'_>) -> Checked {
    let Some(jitter) = &place.medium.jitter else { return Ok(()) };
    jitter.check().or_else(|(key, problem)| place.refuse(&format!("jitter.{key}"), problem.to_string()))
}
