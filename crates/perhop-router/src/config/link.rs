//! The link and the queue of a direction.

use std::ops::RangeInclusive;

use perhop_core::aqm::AqmParams;
use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::{Bitrate, Color, Dscp, Duration, FlowId, Header};
use perhop_scenario::format::Queue;
use perhop_scenario::simulated_only;
use perhop_scenario::{Problem, Rates, division, divisions, keys_without_effect, marked_by, steps};
use serde::Deserialize;

use super::{Checked, Class, Direction, Unmatched};

/// The sizes that IP packets have, in bytes.
const PACKETS: RangeInclusive<u64> = 20..=65_535;

/// The link and the queue of a direction.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Link {
    /// The rate of the link, IP headers included.
    pub rate: Bitrate,
    /// A propagation delay to add.
    #[serde(default)]
    pub delay: Duration,
    /// The queue of the link: an AQM or a scheduler, as in scenarios.
    pub queue: Queue,
    /// Meters of behavior aggregates before the queue, as in scenarios: a packet passes the first that
    /// matches it.
    #[serde(default)]
    pub meters: Vec<AggregateMeter>,
}

impl Link {
    pub(super) fn check(&self, name: &str) -> Checked {
        self.check_meters(name)?;
        let at = |inner: &str, text: String| {
            let inner = self.queue.key(inner);
            let key = steps(name).chain(steps("queue")).chain(steps(&inner));
            Err(Problem::at(key, text))
        };
        if let Err(problem) = self.queue.scheduler.fits(self.rate) {
            return at(problem.key(), problem.text().into());
        }
        if let Some((key, path)) = self.queue.scheduler.clone().paths().first() {
            return at(key, no_path(path.name()));
        }
        let aqms = self.queue.scheduler.aqms(None);
        if let Some((key, aqm)) = aqms.iter().find(|(_, aqm)| aqm.follows_paths()) {
            let text = format!(
                "`{}` requires the window control of label-switched paths, which a router does not have; choose another rule",
                aqm.name()
            );
            return at(&format!("{key}.{}", AqmParams::TAG), text);
        }
        if let Some((key, params)) = self.queue.scheduler.foreign().first() {
            return at(&format!("{key}.{}", AqmParams::TAG), simulated_only(&params.class));
        }
        Ok(())
    }

    fn check_meters(&self, name: &str) -> Checked {
        let at = |inner: &str, text: String| {
            Err(Problem::at(steps(name).chain(steps("meters")).chain(steps(inner)), text))
        };
        if let Err(problem) = AggregateMeter::check(&self.meters) {
            return at(problem.key(), problem.text().into());
        }
        for (number, mut meter) in self.meters.iter().cloned().enumerate() {
            if let Some(path) = meter.path() {
                return at(&format!("[{number}].match.path"), no_path(path.name()));
            }
            if let Some(params) = meter.profile.foreign() {
                let key = format!("[{number}].profile.{}", MeterParams::TAG);
                return at(&key, simulated_only(&params.class));
            }
        }
        Ok(())
    }

    /// Returns what can become of a packet at its meters.
    fn behind_meters(&self, packets: Vec<Header>) -> Vec<Header> {
        packets.into_iter().flat_map(|packet| AggregateMeter::possible(&self.meters, packet)).collect()
    }
}

fn no_path(name: &str) -> String {
    format!("a router has no label-switched paths, such as `{name}`; match by dscp or color")
}

/// Keys of a link's queue and meters that have no effect, and profiles whose packets the queue divides, each
/// with its place.
pub(super) fn notices(
    link: Option<&Link>,
    direction: Direction,
    classes: &[Class],
    rest: Unmatched,
) -> Vec<Problem> {
    let Some(link) = link else { return Vec::new() };
    let Link { rate, queue, .. } = link;
    let classes = || classes.iter().filter(|class| [direction, Direction::Both].contains(&class.direction));
    let divided = divisions(classes().map(|class| {
        let packets = class.profile.as_ref().map(|_| headers(class).unwrap_or_default());
        let behind = packets.map(|packets| link.behind_meters(packets));
        (class.name.as_str(), behind.and_then(|behind| division(&queue.scheduler, *rate, behind)))
    }));
    let found =
        keys_without_effect(&queue.scheduler, Rates::constant(*rate), &PACKETS).into_iter().chain(divided);
    let at = |part: &str, key: &str, text: String| {
        Problem::at(steps(direction.name()).chain(steps(part)).chain(steps(key)), text)
    };
    let come: Option<Vec<Vec<Header>>> = classes().map(headers).chain([headers_of_the_rest(rest)]).collect();
    let idle = idle_meters(&link.meters, come.map(|come| come.concat()).as_deref());
    let in_queue = found.map(|(key, text)| at("queue", &queue.key(&key), text));
    in_queue.chain(idle.into_iter().map(|(key, text)| at("meters", &key, text))).collect()
}

/// Keys of meters of a link that cannot act: their key and the reason. `come` are the headers of packets that
/// come to the link; `None` if they may have any.
fn idle_meters(meters: &[AggregateMeter], come: Option<&[Header]>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (number, meter) in meters.iter().enumerate() {
        if let Some(come) = come {
            let mut taken =
                come.iter().filter(|packet| AggregateMeter::taken_by(meters, packet) == Some(number));
            let Some(first) = taken.next() else {
                let text = "no packet of the classes matches, or an earlier meter takes it: match some of them, \
                            or leave the meter out";
                found.push((format!("[{number}].match"), text.into()));
                continue;
            };
            let best = taken.fold(first.color, |best, packet| best.min(packet.color));
            if meter.profile.reads_color() && best != Color::Green {
                let text = format!(
                    "the best color with which packets come to this meter is {}, and it gives none a better one; color \
                     some green, or write mode = \"color-blind\"",
                    best.name()
                );
                found.push((format!("[{number}].profile.mode"), text));
            }
        }
        let idle = meter.profile.keys_without_effect(&PACKETS).into_iter();
        found.extend(idle.map(|(key, text)| (format!("[{number}].profile.{key}"), text)));
    }
    found
}

/// Returns the headers with which packets of a class come to the link, as far as meters and queues look at
/// them; `None` if they may have any.
fn headers(class: &Class) -> Option<Vec<Header>> {
    let plain = Header::new(FlowId(0), 0);
    match (&class.profile, class.coloring()) {
        (Some(profile), _) => Some(marked_by(profile, Header { color: Color::Green, ..plain })),
        (None, Some((color, dscp))) => Some(vec![Header { color, dscp, ..plain }]),
        (None, None) => None,
    }
}

/// Returns the headers of packets that match no class.
fn headers_of_the_rest(rest: Unmatched) -> Option<Vec<Header>> {
    match rest {
        Unmatched::BestEffort => {
            Some(vec![Header { color: Color::default(), dscp: Dscp::DEFAULT, ..Header::new(FlowId(0), 0) }])
        }
        Unmatched::Drop => Some(Vec::new()),
        Unmatched::Trust => None,
    }
}
