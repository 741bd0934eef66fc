//! Checks of queues, each with its place in the scenario.

use perhop_core::Bitrate;
use perhop_core::aqm::AqmParams;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::table::split_key;

use super::Checked;
use crate::error::{KeyPart, Problem, steps};
use crate::format::{Link, Queue, Reverse, Scenario};
use crate::network::REVERSE;

/// The queue of one direction of a link, and the keys that lead to it in the scenario.
pub(crate) struct QueuePlace<'a> {
    scenario: &'a Scenario,
    link: &'a str,
    keys: &'static [&'static str],
    from: &'a str,
    to: &'a str,
    pub(crate) rate: Bitrate,
    queue: &'a Queue,
}

impl QueuePlace<'_> {
    /// The name of its link in the network.
    pub(crate) fn name(&self) -> String {
        let reverse = if self.keys.len() > 1 { REVERSE } else { "" };
        format!("{}{reverse}", self.link)
    }

    /// The parameters of its scheduler and of the AQMs within.
    pub(crate) fn scheduler(&self) -> &SchedulerParams {
        &self.queue.scheduler
    }

    /// A problem at this key of the queue.
    pub(crate) fn at(&self, inner: &str, text: String) -> Problem {
        Problem::at(self.place().into_iter().chain(steps(&self.queue.key(inner))), text)
    }

    /// The place of the queue's table, for messages; queues of a topology's links are in `[topology]`.
    fn place(&self) -> Vec<KeyPart> {
        if let (Some(topology), Some(tier)) = (&self.scenario.topology, self.tier()) {
            return topology.queue_place(tier);
        }
        let under = ["links", self.link].into_iter().chain(self.keys.iter().copied());
        under.map(|key| KeyPart::Key(key.into())).collect()
    }

    /// The tier of its link, if the topology made it.
    pub(crate) fn tier(&self) -> Option<&'static str> {
        self.scenario.links.tier(self.link)
    }
}

impl Scenario {
    /// Checks that queues name existing paths, and guarantee no more than the rates of their links.
    pub(super) fn check_queues(&self) -> Checked {
        for place in self.queues() {
            place.scheduler().fits(place.rate).map_err(|problem| {
                let text = problem.to_string();
                let (inner, message) = split_key(&text);
                place.at(inner, message.into())
            })?;
            for (key, path) in place.scheduler().clone().paths() {
                self.check_path(path.name()).map_err(|text| place.at(&key, text))?;
            }
        }
        Ok(())
    }

    /// Checks that every AQM that uses window control receives its messages.
    pub(super) fn check_window_control(&self) -> Checked {
        for place in self.queues() {
            for (key, aqm) in place.scheduler().aqms(None).into_iter().filter(|(_, aqm)| aqm.follows_paths())
            {
                let receives = |path: &str| {
                    place.scheduler().aqms(Some(path)).iter().any(|(receiver, _)| *receiver == key)
                };
                if let Some(reason) = self.missing_control((place.link, place.from, place.to), receives) {
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

    /// The scenario with the `limit` of each AQM written that has one by default, for a program whose defaults are others.
    #[must_use]
    pub fn with_limits(mut self) -> Self {
        for link in self.links.values_mut() {
            let rate = link.rate;
            if let Some(queue) = &mut link.queue {
                queue.scheduler.write_limits(rate);
            }
            if let Some(Reverse { rate: own, queue: Some(queue), .. }) = &mut link.reverse {
                queue.scheduler.write_limits(own.unwrap_or(rate));
            }
        }
        self
    }

    /// The queues of both directions of all links.
    pub(crate) fn queues(&self) -> impl Iterator<Item = QueuePlace<'_>> {
        self.links.iter().flat_map(|(name, link)| {
            let Link { from, to, rate, queue, reverse, .. } = link;
            let forward = queue.as_ref().map(|queue| QueuePlace {
                scenario: self,
                link: name,
                keys: &["queue"],
                from,
                to,
                rate: *rate,
                queue,
            });
            let backward = reverse.as_ref().and_then(|reverse| {
                let queue = reverse.queue.as_ref()?;
                let rate = reverse.rate.unwrap_or(*rate);
                let keys = &["reverse", "queue"][..];
                Some(QueuePlace { scenario: self, link: name, keys, from: to, to: from, rate, queue })
            });
            [forward, backward].into_iter().flatten()
        })
    }
}
