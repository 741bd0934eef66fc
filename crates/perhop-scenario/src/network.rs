//! From a scenario to the network that the simulator runs, with the checks that no single key can make.

use std::collections::BTreeSet;

use perhop_core::abe::Service;
use perhop_core::{Bitrate, Instant};
use perhop_sim::{AccessSpec, FlowSpec, LinkSpec, Marking, Network, NodeId, SharedMeter, TransportSpec};

use crate::error::{Problem, Step, did_you_mean};
use crate::format::{Access, Flow, FlowProfile, Scenario, Transport};

/// More flows than this are refused: a slip of the keyboard, or a machine out of memory.
const MOST_FLOWS: u64 = 1_000_000;

/// Samples of flows over a run; more would not fit into memory.
const MOST_SAMPLES: u64 = 50_000_000;

/// What a link's reverse direction is called.
const REVERSE: &str = " (reverse)";

/// Why a name cannot stand in a table, if it cannot.
fn bad_name(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        Some("a name has at least one letter".into())
    } else if name.chars().any(char::is_control) {
        Some(format!("{name:?} has a control character; write a name that fits into a line"))
    } else {
        None
    }
}

impl Scenario {
    /// Checks how the parts fit together.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let key = |key: &str| Step::Key(key.into());
        let at = |path: Vec<Step>, text: String| Err(Problem::at(path, text));
        if self.duration.is_zero() {
            return at(vec![key("duration")], "a run lasts longer than 0s, such as 100s".into());
        }
        if self.warmup >= self.duration {
            let text = format!("the warm-up ({}) ends before the run does ({})", self.warmup, self.duration);
            return at(vec![key("warmup")], format!("{text}; make it shorter"));
        }
        if self.probes.interval.is_some_and(perhop_core::Duration::is_zero) {
            return at(
                vec![key("probes"), key("interval")],
                "an interval is longer than 0s, such as 1s".into(),
            );
        }
        if self.links.is_empty() {
            return at(vec![key("links")], "there are none; add a [links.NAME] table".into());
        }
        for (name, link) in &self.links {
            let under = vec![key("links"), key(name)];
            if let Some(problem) = bad_name(name) {
                return at(under, problem);
            }
            if name.ends_with(REVERSE) {
                return at(
                    under,
                    format!("names that end in `{REVERSE}` stand for reverse directions; take another"),
                );
            }
            if link.from == link.to {
                let text = format!("the link begins and ends at `{}`; name two routers", link.to);
                return at(vec![key("links"), key(name), key("to")], text);
            }
        }
        if self.flows.is_empty() {
            return at(vec![key("flows")], "there are none; add a [[flows]] table".into());
        }
        let mut names = BTreeSet::new();
        let mut total = 0;
        for (index, flow) in self.flows.iter().enumerate() {
            let under = |name: &str| vec![key("flows"), Step::Index(index), key(name)];
            if let Some(problem) = bad_name(&flow.name) {
                return at(under("name"), problem);
            }
            if !names.insert(flow.name.as_str()) {
                return at(
                    under("name"),
                    format!("`{}` names an earlier group; give each its own name", flow.name),
                );
            }
            total += u64::from(flow.count);
            if flow.count == 0 || total > MOST_FLOWS {
                return at(
                    under("count"),
                    format!("a scenario has 1 to {MOST_FLOWS} flows, each group at least 1"),
                );
            }
            self.check_route(flow, under)?;
            self.check_profile(flow, under)?;
            if flow.volume.is_some_and(|volume| volume.get() == 0) {
                return at(
                    under("volume"),
                    "there is nothing to send; leave the key out for an endless flow".into(),
                );
            }
        }
        self.check_probes(total)
    }

    fn check_probes(&self, flows: u64) -> Result<(), Problem> {
        let Some(interval) = self.probes.interval else { return Ok(()) };
        let samples = self.duration.as_nanos() / interval.as_nanos().max(1);
        if samples.saturating_mul(flows) > MOST_SAMPLES {
            let text = format!("{samples} samples of {flows} flows are too many; take a longer interval");
            return Err(Problem::at([Step::Key("probes".into()), Step::Key("interval".into())], text));
        }
        Ok(())
    }

    fn check_route(&self, flow: &Flow, under: impl Fn(&str) -> Vec<Step>) -> Result<(), Problem> {
        let nodes = self.nodes();
        for (key, node) in [("from", &flow.from), ("to", &flow.to)] {
            if !nodes.contains(node.as_str()) {
                let hint = did_you_mean(node, nodes.iter().copied());
                let known = nodes.iter().copied().collect::<Vec<_>>().join(", ");
                return Err(Problem::at(
                    under(key),
                    format!("unknown node `{node}`{hint} (the links name: {known})"),
                ));
            }
        }
        if flow.from == flow.to {
            let text = format!("the flow begins and ends at `{}`; it needs a link to cross", flow.to);
            return Err(Problem::at(under("to"), text));
        }
        if !self.reachable(&flow.from).contains(flow.to.as_str()) {
            let text =
                format!("`{}` cannot be reached from `{}`; add a link between them", flow.to, flow.from);
            return Err(Problem::at(under("to"), text));
        }
        Ok(())
    }

    fn check_profile(&self, flow: &Flow, under: impl Fn(&str) -> Vec<Step>) -> Result<(), Problem> {
        if flow.out_feedback.is_some() && flow.profile.is_none() {
            let text =
                "there is no profile, so no marker to tell of OUT packets; add one or leave the key out";
            return Err(Problem::at(under("out-feedback"), text));
        }
        if flow.out_feedback.is_some() && matches!(flow.transport, Transport::Udp(_)) {
            let text =
                "a UDP source has no window to lower when it is told of OUT packets; leave the key out";
            return Err(Problem::at(under("out-feedback"), text));
        }
        if flow.service == Service::Green && flow.profile.is_some() {
            let text = "the profile's marker would overwrite the codepoint of green packets; leave out this key or `profile`";
            return Err(Problem::at(under("service"), text));
        }
        let Some(FlowProfile::Shared(name)) = &flow.profile else { return Ok(()) };
        if !self.profiles.contains_key(name) {
            let hint = did_you_mean(name, self.profiles.keys().map(String::as_str));
            let text =
                format!("unknown profile `{name}`{hint}; shared ones are tables such as [profiles.{name}]");
            return Err(Problem::at(under("profile"), text));
        }
        // One meter stands at one router.
        let first = self.flows.iter().find(|other| other.profile == flow.profile).unwrap_or(flow);
        if first.from != flow.from {
            let text = format!("flows that share `{name}` begin at `{}`, not at `{}`", first.from, flow.from);
            return Err(Problem::at(under("from"), text));
        }
        Ok(())
    }

    /// The rate of a group's profile, its own or shared.
    fn sold(&self, group: &Flow) -> Option<Bitrate> {
        match group.profile.as_ref()? {
            FlowProfile::Own(profile) => Some(profile.0.rate()),
            FlowProfile::Shared(name) => Some(self.profiles.get(name)?.0.rate()),
        }
    }

    /// What each flow of a group was sold: its part, where flows share a profile.
    pub fn reserved(&self, group: &Flow) -> Option<Bitrate> {
        let sold = self.sold(group)?;
        let FlowProfile::Shared(_) = group.profile.as_ref()? else { return Some(sold) };
        let sharing = self.flows.iter().filter(|other| other.profile == group.profile);
        let flows: u64 = sharing.map(|other| u64::from(other.count)).sum();
        Bitrate::from_bps(sold.as_bps() / flows.max(1)).ok()
    }

    /// Routers, in the order of their names.
    fn nodes(&self) -> BTreeSet<&str> {
        self.links.values().flat_map(|link| [link.from.as_str(), link.to.as_str()]).collect()
    }

    fn reachable<'a>(&'a self, from: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::from([from]);
        loop {
            let before = found.len();
            for link in self.links.values() {
                if found.contains(link.from.as_str()) || found.contains(link.to.as_str()) {
                    found.extend([link.from.as_str(), link.to.as_str()]);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// The network to simulate. Flows are numbered group by group.
    pub fn network(&self) -> Network {
        let nodes: Vec<&str> = self.nodes().into_iter().collect();
        let node = |name: &str| NodeId(nodes.binary_search(&name).expect("checked") as u32);
        let mut links = Vec::new();
        for (name, link) in &self.links {
            let reverse = link.reverse.as_ref();
            links.push(LinkSpec {
                name: name.clone(),
                from: node(&link.from),
                to: node(&link.to),
                rate: link.rate,
                delay: link.delay,
                queue: link.queue.as_ref().map(|queue| queue.0.clone()),
            });
            links.push(LinkSpec {
                name: format!("{name}{REVERSE}"),
                from: node(&link.to),
                to: node(&link.from),
                rate: reverse.and_then(|reverse| reverse.rate).unwrap_or(link.rate),
                delay: reverse.and_then(|reverse| reverse.delay).unwrap_or(link.delay),
                queue: reverse.and_then(|reverse| reverse.queue.as_ref()).map(|queue| queue.0.clone()),
            });
        }
        let access = |access: &Access| AccessSpec { rate: access.rate, delay: access.delay };
        let flows = self.flows.iter().flat_map(|group| {
            (0..group.count).map(move |member| FlowSpec {
                name: format!("{}/{member}", group.name),
                from: node(&group.from),
                to: node(&group.to),
                access: group.access.as_ref().map(access),
                egress: group.egress.as_ref().or(group.access.as_ref()).map(access),
                transport: match &group.transport {
                    Transport::Tcp(params) => TransportSpec::Tcp(params.clone()),
                    Transport::Udp(params) => TransportSpec::Udp(params.clone()),
                    Transport::Rap(params) => TransportSpec::Rap(params.clone()),
                    Transport::Tfrc(params) => TransportSpec::Tfrc(params.clone()),
                },
                marking: match &group.profile {
                    None => Marking::None,
                    Some(FlowProfile::Own(profile)) => Marking::Host(profile.0.clone()),
                    Some(FlowProfile::Shared(name)) => {
                        Marking::Edge(self.profiles.keys().position(|known| known == name).expect("checked"))
                    }
                },
                color: group.color,
                dscp: group.service.dscp(),
                service: self.sold(group),
                reserved: self.reserved(group),
                out_feedback: group.out_feedback,
                start: (Instant::ZERO + group.start.first, Instant::ZERO + group.start.last),
                stop: group.stop.map(|stop| Instant::ZERO + stop),
                volume: group.volume,
            })
        });
        let flows = flows.collect();
        Network {
            duration: self.duration,
            warmup: self.warmup,
            probe_interval: self.probes.interval,
            nodes: nodes.len() as u32,
            links,
            shared_meters: self
                .profiles
                .iter()
                .map(|(name, profile)| SharedMeter { name: name.clone(), params: profile.0.clone() })
                .collect(),
            flows,
        }
    }
}
