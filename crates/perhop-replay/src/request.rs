//! What a capture is replayed into, as a user says it, checked.

use std::ops::RangeInclusive;

use perhop_core::aqm::AqmParams;
use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Duration};
use perhop_live::selection::Match;
use perhop_scenario::format::{Profile, Queue};
use perhop_scenario::{
    Problem, Rates, Scenario, did_you_mean, keys_without_effect, read_json, simulated_only, steps,
};
use serde::Deserialize;

use crate::arrivals::{Choice, Speed};
use crate::error::ReplayError;

/// What a message names as the place of an option.
const ORIGIN: &str = "replay";

/// The name of a queue that is given without a scenario, which is part of the names of its random streams.
const LINK: &str = "replay";

/// IP packets have sizes in this range.
const PACKETS: RangeInclusive<u64> = 20..=65_535;

/// A replay, as tables and options.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Request {
    /// The meter that all packets pass, as the `profile` of a scenario.
    pub meter: Option<Profile>,
    /// The queue that they come to behind it, as the `queue` of a link.
    pub queue: Option<Queue>,
    /// The rate of the queue's link.
    pub rate: Option<Bitrate>,
    /// The link of the scenario, if there is one.
    pub link: Option<String>,
    /// The name of the interface whose packets take part. Default: all.
    pub interface: Option<String>,
    /// Which packets take part.
    #[serde(default)]
    pub r#match: Match,
    /// Time zero, after the first packet of the capture.
    #[serde(default)]
    pub from: Duration,
    /// The end, at the same clock. Default: that of the capture.
    pub to: Option<Duration>,
    /// How much faster than captured.
    #[serde(default = "one")]
    pub speed: f64,
    /// Whether the whole packets of a file that is cut off are replayed.
    #[serde(default)]
    pub allow_cut: bool,
    /// Draws what blocks decide by chance.
    #[serde(default = "first")]
    pub seed: u64,
    /// How many flows the report names.
    #[serde(default = "ten")]
    pub top: usize,
}

const fn one() -> f64 {
    1.0
}

const fn first() -> u64 {
    1
}

const fn ten() -> usize {
    10
}

/// A checked replay.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which packets arrive, and when.
    pub choice: Choice,
    /// What they arrive at.
    pub target: Target,
    /// The seed of random streams.
    pub seed: u64,
    /// How many flows the report names.
    pub top: usize,
    /// What a user should know of it, a line each.
    pub notices: Vec<String>,
}

/// What packets arrive at: a meter, a link, or a meter before a link.
#[derive(Clone, Debug)]
pub struct Target {
    /// The meter at the edge, whose marker writes a codepoint into each packet.
    pub meter: Option<MeterParams>,
    /// The link, with its queue and the meters before that.
    pub link: Option<TargetLink>,
}

/// A link with a queue.
#[derive(Clone, Debug)]
pub struct TargetLink {
    /// The name of the link, which also names its random streams.
    pub name: String,
    /// The rate of the link.
    pub rate: Bitrate,
    /// The queue of the link.
    pub queue: SchedulerParams,
    /// The meters of the link.
    pub meters: Vec<AggregateMeter>,
}

impl Request {
    /// Reads a replay in JSON, and with it the scenario whose link is replayed, if that is asked for: its
    /// text, TOML, and the name of its file.
    ///
    /// # Errors
    /// What is wrong, with its key.
    pub fn plan(text: &str, scenario: Option<(&str, &str)>) -> Result<Plan, ReplayError> {
        let request: Self = read_json(text, ORIGIN, |request: &Self| request.check(scenario.is_some()))?;
        let scenario = scenario.map(|(text, origin)| {
            let is_json = text.trim_start().starts_with('{');
            let read = if is_json { Scenario::from_json } else { Scenario::from_toml };
            read(text, origin).map(|scenario| (scenario, origin))
        });
        let scenario = scenario.transpose()?;
        let choice = request.choice();
        let Self { meter, queue, rate, link, seed, top, .. } = request;
        let (link, at) = match (&scenario, &queue) {
            (Some((scenario, origin)), _) => {
                let found = link_of(scenario, link.as_deref());
                let found = found.map_err(|text| ReplayError::Target(format!("{origin}: {text}")))?;
                let at = format!("{origin}: links.{}.", found.name);
                (Some(found), at)
            }
            (None, Some(queue)) => {
                let rate = rate.expect("checked");
                let queue = queue.scheduler.clone();
                let link = TargetLink { name: LINK.into(), rate, queue, meters: Vec::new() };
                (Some(link), format!("{ORIGIN}: "))
            }
            (None, None) => (None, format!("{ORIGIN}: ")),
        };
        let target = Target { meter: meter.map(|profile| profile.0), link };
        let notices = target.notices(|inner| {
            let inner = inner.trim_start_matches('.');
            queue.as_ref().map_or_else(|| inner.into(), |queue| queue.key(inner))
        });
        let notices = notices.into_iter().map(|(key, text)| format!("{at}{key}: {text}"));
        Ok(Plan { choice, notices: notices.collect(), target, seed, top })
    }

    fn choice(&self) -> Choice {
        Choice {
            from: self.from,
            to: self.to,
            interface: self.interface.clone(),
            packets: self.r#match.selector(),
            speed: Speed::new(self.speed).expect("checked"),
            cut: self.allow_cut,
        }
    }

    fn check(&self, with_scenario: bool) -> Result<(), Problem> {
        let at = |key: &str, text: &str| Err(Problem::at(steps(key), text));
        if Speed::new(self.speed).is_none() {
            return at("speed", "a speed lies between 0.000001 and 1000000; 2 is twice as fast as captured");
        }
        if self.to.is_some_and(|to| to <= self.from) {
            return at("to", "the replay ends before it begins; choose a later time, after the first packet");
        }
        if let Err((key, text)) = self.r#match.check() {
            return at(&format!("match.{key}"), text);
        }
        if let Some(key) = self.r#match.first_of_frames() {
            let text = "a replay reads the IP packets of a capture, not their frames; leave this key out";
            return at(&format!("match.{key}"), text);
        }
        if with_scenario {
            let others = [
                ("meter", self.meter.is_some()),
                ("queue", self.queue.is_some()),
                ("rate", self.rate.is_some()),
            ];
            return match others.iter().find(|(_, given)| *given) {
                Some((key, _)) => at(key, "the scenario's link has its own; leave out this or the scenario"),
                None => Ok(()),
            };
        }
        if self.link.is_some() {
            return at(
                "link",
                "names a link of a scenario, and there is none: give its file, or leave this out",
            );
        }
        match (&self.meter, &self.queue, self.rate) {
            (None, None, _) => {
                at("", "says nothing to replay into: give a meter, a queue with its rate, or a scenario")
            }
            (_, Some(_), None) => {
                at("rate", "is missing: the rate at which the queue is served, such as \"10Mbps\"")
            }
            (_, None, Some(_)) => at("rate", "has no effect without a queue; leave it out, or give a queue"),
            (Some(meter), None, None) => check_meter(&meter.0),
            (meter, Some(queue), Some(rate)) => {
                meter.as_ref().map_or(Ok(()), |meter| check_meter(&meter.0))?;
                check_queue(queue, rate)
            }
        }
    }
}

fn check_meter(meter: &MeterParams) -> Result<(), Problem> {
    let follows =
        || format!("`{}` follows the windows of TCP senders, which a capture does not have", meter.name());
    let foreign = meter.foreign().map(|params| simulated_only(&params.class));
    let key = format!("meter.{}", MeterParams::TAG);
    let refused = meter.follows_paths().then(follows).or(foreign);
    refused.map_or(Ok(()), |text| Err(Problem::at(steps(&key), text)))
}

fn check_queue(queue: &Queue, rate: Bitrate) -> Result<(), Problem> {
    let at =
        |inner: &str, text: String| Err(Problem::at(steps("queue").chain(steps(&queue.key(inner))), text));
    if let Err(problem) = queue.scheduler.fits(rate) {
        return at(problem.key(), problem.text().into());
    }
    match unusable(&queue.scheduler) {
        Some((key, text)) => at(&key, text),
        None => Ok(()),
    }
}

/// Returns what of a queue needs label-switched paths or an interpreter: its key, and why it cannot act.
fn unusable(queue: &SchedulerParams) -> Option<(String, String)> {
    if let Some((key, path)) = queue.clone().paths().first() {
        return Some((key.clone(), no_path(path.name())));
    }
    if let Some((key, params)) = queue.foreign().first() {
        return Some((format!("{key}.{}", AqmParams::TAG), simulated_only(&params.class)));
    }
    let aqms = queue.aqms(None).into_iter();
    aqms.filter(|(_, aqm)| aqm.follows_paths())
        .map(|(key, aqm)| {
            let text = format!(
                "`{}` follows the windows of a label-switched path, which a capture does not have",
                aqm.name()
            );
            (format!("{key}.{}", AqmParams::TAG), text)
        })
        .next()
}

fn no_path(name: &str) -> String {
    format!("packets of a capture follow no label-switched path, such as `{name}`; match by dscp or color")
}

/// Returns the link of a scenario that packets are replayed into.
fn link_of(scenario: &Scenario, wanted: Option<&str>) -> Result<TargetLink, String> {
    let network = scenario.network();
    let queued: Vec<&str> =
        network.links.iter().filter(|link| link.limited().is_some()).map(|link| link.name.as_str()).collect();
    let list = || queued.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let name = match (wanted, &queued[..]) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, []) => {
            return Err("no link has a queue, so there is nothing to replay into; give one a `queue`".into());
        }
        (None, _) => return Err(format!("several links have queues; choose one by `link`: {}", list())),
    };
    let Some(link) = network.links.iter().find(|link| link.name == name) else {
        let hint = did_you_mean(name, queued.iter().copied());
        return Err(format!("unknown link `{name}`{hint} (links with queues: {})", list()));
    };
    let Some(queue) = link.limited().cloned() else {
        return Err(format!("links.{name}: has no queue to replay into; links with queues: {}", list()));
    };
    if !link.medium.is_constant() {
        return Err(format!(
            "links.{name}: changes or loses packets during a run, and a replay keeps its link as it is: leave out \
             `changes`, `outages`, `loss`, `burst-loss`, `jitter` and `rate-trace`"
        ));
    }
    if let Some((key, text)) = unusable(&queue) {
        return Err(format!("links.{name}.queue.{key}: {text}"));
    }
    let mut meters = link.meters.clone();
    if let Some((number, path)) =
        meters.iter_mut().enumerate().find_map(|(number, meter)| Some((number, meter.path()?)))
    {
        return Err(format!("links.{name}.meters[{number}].match.path: {}", no_path(path.name())));
    }
    for (number, meter) in link.meters.iter().enumerate() {
        if let Some(params) = meter.profile.foreign() {
            let key = format!("links.{name}.meters[{number}].profile.{}", MeterParams::TAG);
            return Err(format!("{key}: {}", simulated_only(&params.class)));
        }
    }
    Ok(TargetLink { name: name.into(), rate: link.rate, queue, meters: link.meters.clone() })
}

impl Target {
    /// Returns what of it has no effect on packets of a capture: key and reason. `key` is the place of a key
    /// of the queue in it.
    fn notices(&self, key: impl Fn(&str) -> String) -> Vec<(String, String)> {
        let of_meter = self.meter.iter().flat_map(|meter| meter.keys_without_effect(&PACKETS));
        let mut notices: Vec<_> = of_meter.map(|(key, text)| (format!("meter.{key}"), text)).collect();
        if let Some(TargetLink { rate, queue, .. }) = &self.link {
            let idle = keys_without_effect(queue, Rates::constant(*rate), &PACKETS).into_iter();
            notices.extend(idle.map(|(inner, text)| (format!("queue.{}", key(&inner)), text)));
            let by_service = queue.aqms(None).into_iter();
            let by_service = by_service.filter(|(_, aqm)| aqm.reads_service_level());
            notices.extend(by_service.map(|(rule, aqm)| {
                let text = "packets of a capture carry no contracted rate, so each counts as best effort";
                let place = key(&format!("{rule}.{}", AqmParams::TAG));
                (format!("queue.{place}"), format!("`{}`: {text}", aqm.name()))
            }));
        }
        notices
    }
}
