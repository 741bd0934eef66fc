//! Bounds as a result: for links and their classes, and for flows.

use std::sync::Arc;

use perhop_core::Duration;
use perhop_core::scheduler::Step;
use serde::{Serialize, Serializer};

/// The bounds of a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bounds {
    /// One for each directed link, in their order.
    pub links: Vec<LinkBounds>,
    /// One for each flow, in their order.
    pub flows: Vec<FlowBounds>,
    /// What concerns the network as a whole.
    pub notes: Vec<String>,
}

/// The bounds of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkBounds {
    /// The name of the link.
    pub name: String,
    /// One for each class of its scheduler, in their order.
    pub classes: Vec<ClassBounds>,
    /// The longest wait of any packet.
    pub delay: Delay,
    /// The most that waits in all classes.
    pub backlog: Backlog,
    /// Whether its queues may drop a packet.
    pub loss: Loss,
}

/// The bounds of a class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassBounds {
    /// The name of the class.
    pub name: String,
    /// The longest wait, from the arrival of a packet to the beginning of its transmission.
    pub delay: Delay,
    /// The most that waits.
    pub backlog: Backlog,
    /// Whether a packet may be dropped.
    pub loss: Loss,
    /// How the bounds follow.
    #[serde(serialize_with = "steps")]
    pub steps: Vec<Step>,
}

/// The bounds of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowBounds {
    /// The name of the flow.
    pub name: String,
    /// The longest time from when its host sends a packet until this has arrived at the receiver.
    pub delay: Delay,
    /// Whether a packet may be lost on the way.
    pub loss: Loss,
    /// Which analysis gives the least bound.
    pub method: Option<&'static str>,
    /// What each analysis gives.
    #[serde(serialize_with = "by_method")]
    pub analyses: Vec<(&'static str, Duration)>,
    /// The names of the links on its route, which flows share.
    #[serde(serialize_with = "names")]
    pub route: Arc<[String]>,
    /// How the bounds follow.
    #[serde(serialize_with = "steps")]
    pub steps: Vec<Step>,
}

/// A bound on a delay, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay(pub Result<Duration, String>);

/// A bound on a backlog in bytes, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog(pub Result<u64, String>);

/// `None` if no packet can be lost, or why one may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss(pub Option<String>);

#[derive(Serialize)]
#[serde(untagged)]
enum Written<'a> {
    Delay { at_most_s: f64 },
    Backlog { at_most_bytes: u64 },
    Excluded { excluded: bool },
    Possible { excluded: bool, reason: &'a str },
    Without { reason: &'a str },
}

impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(most) => Written::Delay { at_most_s: seconds_up(*most) },
            Err(reason) => Written::Without { reason },
        }
        .serialize(serializer)
    }
}

impl Serialize for Backlog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(most) => Written::Backlog { at_most_bytes: *most },
            Err(reason) => Written::Without { reason },
        }
        .serialize(serializer)
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            None => Written::Excluded { excluded: true },
            Some(reason) => Written::Possible { excluded: false, reason },
        }
        .serialize(serializer)
    }
}

/// Returns a time in seconds, never below it.
fn seconds_up(time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds * 1e9 < time.as_nanos() as f64 { seconds.next_up() } else { seconds }
}

fn by_method<S: Serializer>(analyses: &[(&'static str, Duration)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(analyses.iter().map(|(method, most)| (method, seconds_up(*most))))
}

fn names<S: Serializer>(route: &Arc<[String]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(route.iter())
}

fn steps<S: Serializer>(steps: &[Step], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Written<'a> {
        text: &'a str,
        formula: &'a str,
        source: &'static str,
    }
    let steps = steps.iter().map(|Step { text, formula, source }| Written { text, formula, source });
    serializer.collect_seq(steps)
}
