//! The link and the queue of a direction.

use std::ops::RangeInclusive;

use perhop_core::aqm::AqmParams;
use perhop_core::table::split_key;
use perhop_core::{Bitrate, Color, Duration, FlowId, Header};
use perhop_scenario::format::Queue;
use perhop_scenario::{Problem, division, divisions, idle_keys, marked_by, steps};
use serde::Deserialize;

use super::{Checked, Class, Direction};

/// The sizes that IP packets have, in bytes.
const PACKETS: RangeInclusive<u64> = 20..=65_535;

/// The link and the queue of a direction.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Link {
    /// Its rate, IP headers included.
    pub rate: Bitrate,
    /// A propagation delay to add.
    #[serde(default)]
    pub delay: Duration,
    /// Its queue: an AQM or a scheduler, as in scenarios.
    pub queue: Queue,
}

impl Link {
    pub(super) fn check(&self, name: &str) -> Checked {
        let at = |inner: &str, text: String| {
            let inner = self.queue.key(inner);
            let key = steps(name).chain(steps("queue")).chain(steps(&inner));
            Err(Problem::at(key, text))
        };
        if let Err(problem) = self.queue.scheduler.fits(self.rate) {
            let text = problem.to_string();
            let (inner, message) = split_key(&text);
            return at(inner, message.into());
        }
        if let Some((key, path)) = self.queue.scheduler.clone().paths().first() {
            return at(
                key,
                format!(
                    "a router has no label-switched paths, such as `{}`; match by dscp or color",
                    path.name()
                ),
            );
        }
        let aqms = self.queue.scheduler.aqms(None);
        if let Some((key, aqm)) = aqms.iter().find(|(_, aqm)| aqm.follows_paths()) {
            let text = format!(
                "`{}` requires the window control of label-switched paths, which a router does not have; choose another rule",
                aqm.name()
            );
            return at(&format!("{key}.{}", AqmParams::TAG), text);
        }
        Ok(())
    }
}

/// Keys of a link's queue that have no effect, and profiles whose packets the queue divides, each with its place.
pub(super) fn notices(link: Option<&Link>, direction: Direction, classes: &[Class]) -> Vec<Problem> {
    let Some(Link { rate, queue, .. }) = link else { return Vec::new() };
    let classes = classes.iter().filter(|class| [direction, Direction::Both].contains(&class.direction));
    let divided = divisions(classes.map(|class| {
        let profile = class.profile.as_ref();
        let marked =
            |profile| marked_by(profile, Header { color: Color::Green, ..Header::new(FlowId(0), 0) });
        (class.name.as_str(), profile.and_then(|profile| division(&queue.scheduler, *rate, marked(profile))))
    }));
    let found = idle_keys(&queue.scheduler, *rate, &PACKETS).into_iter().chain(divided);
    let place = |key: &str| {
        steps(direction.name()).chain(steps("queue")).chain(steps(&queue.key(key))).collect::<Vec<_>>()
    };
    found.map(|(key, text)| Problem::at(place(&key), text)).collect()
}
