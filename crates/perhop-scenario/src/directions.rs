//! The directions of links, each with the keys that lead to it in the scenario.

use perhop_core::Bitrate;
use perhop_core::medium::Medium;
use perhop_core::meter::AggregateMeter;
use perhop_core::scheduler::SchedulerParams;

use crate::error::{Problem, at_table, steps};
use crate::format::{Link, Queue, REVERSE, RateTrace, Reverse, Scenario};

/// One direction of a link: the forward one, or the reverse one of a link that has settings for it.
#[derive(Clone, Copy)]
pub(crate) struct Direction<'a> {
    scenario: &'a Scenario,
    /// The name of the link.
    pub(crate) link_name: &'a str,
    link: &'a Link,
    /// The settings of the reverse direction; `None` for the forward one.
    reverse: Option<&'a Reverse>,
}

impl<'a> Direction<'a> {
    /// Returns its name in the network.
    pub(crate) fn name(&self) -> String {
        let suffix = if self.reverse.is_some() { REVERSE } else { "" };
        format!("{}{suffix}", self.link_name)
    }

    /// Returns the router where it begins, and that where it ends.
    pub(crate) fn ends(&self) -> (&'a str, &'a str) {
        let Link { from, to, .. } = self.link;
        if self.reverse.is_some() { (to, from) } else { (from, to) }
    }

    /// Returns its rate, as the scenario names it.
    pub(crate) fn rate(&self) -> Bitrate {
        self.reverse.and_then(|reverse| reverse.rate).unwrap_or(self.link.rate)
    }

    /// Returns its queue, if it has a limit.
    pub(crate) fn queue(&self) -> Option<&'a Queue> {
        self.reverse.map_or(&self.link.queue, |reverse| &reverse.queue).as_ref()
    }

    /// Returns the meters before its queue.
    pub(crate) fn meters(&self) -> &'a [AggregateMeter] {
        self.reverse.map_or(&self.link.meters, |reverse| &reverse.meters)
    }

    /// Returns the trace of its rate.
    pub(crate) fn rate_trace(&self) -> Option<&'a RateTrace> {
        self.reverse.map_or(&self.link.rate_trace, |reverse| &reverse.rate_trace).as_ref()
    }

    /// Returns how it changes, and what it loses.
    pub(crate) fn medium(&self) -> Medium {
        self.reverse.map_or_else(|| self.link.medium(), Reverse::medium)
    }

    /// Returns the tier of its link, if the topology made it.
    pub(crate) fn tier(&self) -> Option<&'static str> {
        self.scenario.links.tier(self.link_name)
    }

    /// Returns a problem at one of its keys, such as `changes[1].at`.
    pub(crate) fn at(&self, key: &str, text: impl Into<String>) -> Problem {
        let under = if self.reverse.is_some() { "reverse." } else { "" };
        Problem::at(at_table("links", self.link_name, &format!("{under}{key}")), text)
    }
}

/// The queue of one direction of a link.
pub(crate) struct QueuePlace<'a> {
    /// The direction.
    pub(crate) direction: Direction<'a>,
    queue: &'a Queue,
}

impl<'a> std::ops::Deref for QueuePlace<'a> {
    type Target = Direction<'a>;

    fn deref(&self) -> &Direction<'a> {
        &self.direction
    }
}

impl<'a> QueuePlace<'a> {
    /// Returns the parameters of its scheduler and of the AQMs within.
    pub(crate) fn scheduler(&self) -> &'a SchedulerParams {
        &self.queue.scheduler
    }

    /// Returns a problem at a key of the queue; queues of a topology's links are in `[topology]`.
    pub(crate) fn at(&self, inner: &str, text: String) -> Problem {
        let inner = self.queue.key(inner);
        match (&self.direction.scenario.topology, self.direction.tier()) {
            (Some(topology), Some(tier)) => {
                Problem::at(topology.queue_place(tier).into_iter().chain(steps(&inner)), text)
            }
            _ => self.direction.at(&format!("queue.{inner}"), text),
        }
    }
}

impl Scenario {
    /// Returns the directions of all links that can differ from an endless constant link: a reverse one only
    /// where the link has settings for it.
    pub(crate) fn directions(&self) -> impl Iterator<Item = Direction<'_>> {
        self.links.iter().flat_map(|(name, link)| {
            let direction = |reverse| Direction { scenario: self, link_name: name, link, reverse };
            let backward = link.reverse.as_ref().map(|reverse| direction(Some(reverse)));
            std::iter::once(direction(None)).chain(backward)
        })
    }

    /// Returns the queues of both directions of all links.
    pub(crate) fn queues(&self) -> impl Iterator<Item = QueuePlace<'_>> {
        self.directions().filter_map(|direction| Some(QueuePlace { direction, queue: direction.queue()? }))
    }

    /// Returns the directions of all links that have meters.
    pub(crate) fn metered(&self) -> impl Iterator<Item = Direction<'_>> {
        self.directions().filter(|direction| !direction.meters().is_empty())
    }
}
