//! What a user should know of a scenario that can be run: thresholds that cannot act, marks that no flow is capable of, streams
//! that a queue divides.

use std::ops::RangeInclusive;

use perhop_core::meter::MeterParams;
use perhop_core::scheduler::{Discipline, SchedulerParams};
use perhop_core::{Bitrate, Color, Environment, FlowId, Header, Streams};
use perhop_sim::{FlowSpec, Marking, Network};

use crate::error::Problem;
use crate::format::{Flow, Scenario};

impl Scenario {
    /// What in it cannot act, or acts otherwise than it seems; each where it stands.
    pub fn notices(&self) -> Vec<Problem> {
        let outline = self.outline();
        let sizes = sizes(&outline.network);
        let mut notices = Vec::new();
        for port in self.ports() {
            let idle = idle_keys(port.queue, &sizes);
            let marks = self.idle_marks(&port, &outline);
            notices.extend(idle.into_iter().chain(marks).map(|(key, text)| port.at(&key, text)));
            let link = port.name();
            let divided =
                divisions(outline.passing(&link).map(|(group, flow)| (group, outline.division(flow, &link))));
            notices.extend(divided.into_iter().map(|(key, text)| port.at(&key, text)));
        }
        notices
    }

    /// Its network with one flow of each group.
    pub(crate) fn outline(&self) -> Outline {
        let flows = self.flows.iter().map(|group| Flow { count: 1, ..group.clone() });
        let network = Self { flows: flows.collect(), ..self.clone() }.network();
        let route = |flow| network.route_of(flow, false).unwrap_or_default();
        Outline {
            groups: self.flows.iter().map(|group| group.name.clone()).collect(),
            routes: network.flows.iter().map(route).collect(),
            network,
        }
    }
}

/// A network with one flow for each group.
pub(crate) struct Outline {
    groups: Vec<String>,
    /// The links that the data of each pass.
    routes: Vec<Vec<usize>>,
    network: Network,
}

impl Outline {
    /// The groups whose data pass the link of this name, each with its flow.
    pub(crate) fn passing(&self, link: &str) -> impl Iterator<Item = (&str, &FlowSpec)> {
        let flows = self.groups.iter().map(String::as_str).zip(&self.network.flows);
        let passes =
            move |route: &[usize]| route.iter().any(|&number| self.network.links[number].name == link);
        flows.zip(&self.routes).filter(move |(_, route)| passes(route)).map(|(flow, _)| flow)
    }

    /// How the queue of the link of this name divides the packets of a flow, if it does.
    fn division(&self, flow: &FlowSpec, link: &str) -> Option<Division> {
        let meter = match &flow.marking {
            Marking::None => return None,
            Marking::Host(meter) | Marking::Ingress(meter) => meter,
            Marking::Edge(number) => &self.network.shared_meters[*number].params,
        };
        let link = self.network.links.iter().find(|one| one.name == link)?;
        let label = flow.path.map_or(0, |path| self.network.paths[path].label);
        division(link.queue.as_ref()?, link.rate, label, meter)
    }
}

/// The sizes of packets on the wire, in bytes.
fn sizes(network: &Network) -> RangeInclusive<u64> {
    let sizes = network.flows.iter().flat_map(|flow| {
        let (data, answer) = flow.transport.packet_sizes();
        [data, answer].into_iter().filter(|size| *size > 0).map(u64::from)
    });
    let (smallest, largest) = sizes.fold((u64::MAX, 1), |(min, max), size| (size.min(min), size.max(max)));
    smallest.min(largest)..=largest
}

/// The keys of a queue's rules that cannot act where packets have sizes in this range, and why.
pub fn idle_keys(queue: &SchedulerParams, sizes: &RangeInclusive<u64>) -> Vec<(String, String)> {
    let rules = queue.aqms(None).into_iter();
    let idle = rules.flat_map(|(place, rule)| {
        let idle = rule.idle_keys(sizes).into_iter();
        idle.map(move |(key, text)| (format!("{place}.{key}"), text)).collect::<Vec<_>>()
    });
    idle.collect()
}

/// How a queue divides the packets of one stream: those of each color that its meter gives, and the class that they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    key: String,
    /// What each color's packets meet.
    meets: String,
    /// What would keep them together.
    remedy: String,
}

/// How a queue on a link of this rate divides the packets of one stream with this label behind its meter, if it does.
pub fn division(queue: &SchedulerParams, rate: Bitrate, label: u32, meter: &MeterParams) -> Option<Division> {
    let discipline = queue.clone().build::<Header>(Environment { rate }, Streams { seed: 0, path: "" });
    let class = |&color: &Color| {
        let dscp = meter.af().codepoint(color);
        let class = discipline.class_of(&Header { color, dscp, label, ..Header::new(FlowId(0), 0) });
        (color, dscp, class)
    };
    let classes: Vec<_> = meter.colors().iter().map(class).collect();
    let first = classes.iter().map(|&(_, _, class)| class).min()?;
    if classes.iter().all(|&(_, _, class)| class == first) {
        return None;
    }
    let meets = classes.iter().map(|&(color, dscp, class)| {
        format!("{} ones ({dscp}) `{}`", color.name(), discipline.class_name(class))
    });
    let codepoints = classes.iter().map(|(_, dscp, _)| format!("\"{dscp}\""));
    Some(Division {
        key: format!("queues[{first}].match"),
        meets: meets.collect::<Vec<_>>().join(", "),
        remedy: format!("dscp = [{}]", codepoints.collect::<Vec<_>>().join(", ")),
    })
}

/// What to tell of streams, by name, whose packets a queue divides: where, and in words.
pub fn divisions<'a>(
    streams: impl IntoIterator<Item = (&'a str, Option<Division>)>,
) -> Vec<(String, String)> {
    let mut alike: Vec<(Division, Vec<String>)> = Vec::new();
    for (name, division) in streams {
        let Some(division) = division else { continue };
        let name = format!("`{name}`");
        match alike.iter_mut().find(|(known, _)| *known == division) {
            Some((_, names)) => names.push(name),
            None => alike.push((division, vec![name])),
        }
    }
    let told = alike.into_iter().map(|(Division { key, meets, remedy }, names)| {
        let text = format!(
            "packets of {} go to different queues: {meets}; they can overtake each other, which TCP takes for loss; to \
             keep them together, match all codepoints that the marker writes, {remedy}",
            names.join(", ")
        );
        (key, text)
    });
    told.collect()
}
