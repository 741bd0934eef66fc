//! Checks of the meters of links, each with its place in the scenario.

use perhop_core::meter::AggregateMeter;
use perhop_core::table::split_key;

use super::Checked;
use crate::error::{KeyPart, Problem, steps};
use crate::format::Scenario;
use crate::network::REVERSE;

/// The meters of one direction of a link, and where they stand in the scenario.
pub(crate) struct MetersPlace<'a> {
    link: &'a str,
    keys: &'static [&'static str],
    /// Whether the direction has a queue.
    has_queue: bool,
    pub(crate) meters: &'a [AggregateMeter],
}

impl MetersPlace<'_> {
    /// The name of their link in the network.
    pub(crate) fn name(&self) -> String {
        let reverse = if self.keys.len() > 1 { REVERSE } else { "" };
        format!("{}{reverse}", self.link)
    }

    /// A problem at this key, such as `[0].match`.
    pub(crate) fn at(&self, inner: &str, text: String) -> Problem {
        let under = ["links", self.link].into_iter().chain(self.keys.iter().copied());
        Problem::at(under.map(|key| KeyPart::Key(key.into())).chain(steps(inner)), text)
    }
}

impl Scenario {
    /// Checks that the meters of links can act, name existing paths, and are counted.
    pub(super) fn check_meters(&self) -> Checked {
        for place in self.meters() {
            if !place.has_queue {
                let text = "meters are in front of a queue, which this link does not have; give it a `queue`";
                return Err(place.at("", text.into()));
            }
            AggregateMeter::check(place.meters).map_err(|problem| {
                let text = problem.to_string();
                let (inner, message) = split_key(&text);
                place.at(inner, message.into())
            })?;
            for (number, mut meter) in place.meters.iter().cloned().enumerate() {
                if let Some(path) = meter.path() {
                    let at = |text| place.at(&format!("[{number}].match.path"), text);
                    self.check_path(path.name()).map_err(at)?;
                }
            }
        }
        Ok(())
    }

    /// The meters of both directions of all links that have some.
    pub(crate) fn meters(&self) -> impl Iterator<Item = MetersPlace<'_>> {
        self.links.iter().flat_map(|(link, spec)| {
            let place = |keys, meters, has_queue| MetersPlace { link, keys, has_queue, meters };
            let forward = place(&["meters"][..], &spec.meters[..], spec.queue.is_some());
            let backward = spec.reverse.as_ref();
            let backward = backward.map(|reverse| {
                place(&["reverse", "meters"][..], &reverse.meters[..], reverse.queue.is_some())
            });
            [Some(forward), backward].into_iter().flatten().filter(|place| !place.meters.is_empty())
        })
    }
}
