//! From a scenario to the network that the simulator runs, with the checks that no single key can make.

use std::collections::BTreeSet;

use perhop_core::abe::Service;
use perhop_core::aqm::AqmParams;
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::table::{bad_name, split_key};
use perhop_core::{Bitrate, Color, Ecn, Instant};
use perhop_sim::transport::tcp::TcpEcn;
use perhop_sim::{AccessSpec, FlowSpec, LinkSpec, Marking, Network, NodeId, SharedMeter, TransportSpec};

use crate::error::{Problem, Step, did_you_mean, steps};
use crate::format::{
    Access, Flow, FlowProfile, LabelSwitchedPath, Link, Profile, Queue, Scenario, Transport,
};
use crate::memory::Memory;

/// More flows than this are refused: a slip of the keyboard, or a machine out of memory.
pub(crate) const MOST_FLOWS: u64 = 1_000_000;

/// Bytes that the samples of a run may take.
const MOST_SAMPLES: u64 = 1_600_000_000;

/// What a link's reverse direction is called.
const REVERSE: &str = " (reverse)";

/// The queue of one direction of a link, and where it stands in the scenario.
pub(crate) struct Port<'a> {
    link: &'a str,
    keys: &'static [&'static str],
    from: &'a str,
    to: &'a str,
    pub(crate) rate: Bitrate,
    queue: &'a Queue,
}

impl Port<'_> {
    /// The name of its link in the network.
    pub(crate) fn name(&self) -> String {
        let reverse = if self.keys.len() > 1 { REVERSE } else { "" };
        format!("{}{reverse}", self.link)
    }

    /// What its queue is made of.
    pub(crate) fn scheduler(&self) -> &SchedulerParams {
        &self.queue.scheduler
    }

    /// A problem at this key of the queue.
    pub(crate) fn at(&self, inner: &str, text: String) -> Problem {
        let under = ["links", self.link].into_iter().chain(self.keys.iter().copied());
        Problem::at(under.map(|key| Step::Key(key.into())).chain(steps(&self.queue.key(inner))), text)
    }
}

impl Scenario {
    /// Checks how the parts fit together.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let key = |key: &str| Step::Key(key.into());
        let at = |path: Vec<Step>, text: String| Err(Problem::at(path, text));
        if self.duration.is_zero() {
            return at(vec![key("duration")], "a run must be longer than 0s, such as 100s".into());
        }
        if self.duration >= perhop_core::Duration::AGES {
            let text = format!("a run must be shorter than 36 years, not {}", self.duration);
            return at(vec![key("duration")], text);
        }
        if self.warmup >= self.duration {
            let text =
                format!("the warm-up ({}) must end before the run does ({})", self.warmup, self.duration);
            return at(vec![key("warmup")], format!("{text}; make it shorter"));
        }
        if self.probes.interval.is_some_and(perhop_core::Duration::is_zero) {
            return at(
                vec![key("probes"), key("interval")],
                "an interval must be longer than 0s, such as 1s".into(),
            );
        }
        if self.links.is_empty() {
            return at(vec![key("links")], "the scenario has no links; add a [links.NAME] table".into());
        }
        for (name, link) in &self.links {
            let under = vec![key("links"), key(name)];
            if let Some(problem) = bad_name(name) {
                return at(under, problem);
            }
            if name.ends_with(REVERSE) {
                return at(
                    under,
                    format!(
                        "names that end in `{REVERSE}` are reserved for reverse directions; choose another"
                    ),
                );
            }
            if link.from == link.to {
                let text = format!("the link connects `{}` to itself; name two routers", link.to);
                return at(vec![key("links"), key(name), key("to")], text);
            }
        }
        self.check_paths()?;
        self.check_queues()?;
        self.check_profiles()?;
        if self.flows.is_empty() {
            return at(vec![key("flows")], "the scenario has no flows; add a [[flows]] table".into());
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
                    format!("an earlier group has the name `{}`; give each its own", flow.name),
                );
            }
            total += u64::from(flow.count);
            if flow.count == 0 || total > MOST_FLOWS {
                let found = if flow.count == 0 { 0 } else { total };
                return at(
                    under("count"),
                    format!("a scenario has 1 to {MOST_FLOWS} flows, each group at least 1, not {found}"),
                );
            }
            self.check_route(flow, under)?;
            self.check_marking(flow, under)?;
            check_ecn(flow, under)?;
            if flow.volume.is_some_and(|volume| volume.get() == 0) {
                return at(
                    under("volume"),
                    "a volume of 0 sends nothing; leave the key out for an endless flow".into(),
                );
            }
        }
        self.check_followers()?;
        self.check_live()?;
        self.check_probes()
    }

    /// Settings of the kernel are those of a network namespace, and say something.
    fn check_live(&self) -> Result<(), Problem> {
        for name in self.live.sysctl.keys() {
            let words = name.split('.').collect::<Vec<_>>();
            let plain = |word: &&str| {
                !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
            };
            if words.len() < 3 || words[0] != "net" || !words.iter().all(plain) {
                let text = format!(
                    "`{name}` is not a sysctl of a network namespace; write one such as net.ipv4.tcp_sack"
                );
                return Err(Problem::at(["live", "sysctl", name].map(|key| Step::Key(key.into())), text));
            }
        }
        Ok(())
    }

    /// What flows may share.
    fn check_profiles(&self) -> Result<(), Problem> {
        let twam = self.profiles.iter().find(|(_, profile)| matches!(profile.0, MeterParams::Twam(_)));
        twam.map_or(Ok(()), |(name, _)| {
            let text =
                "flows cannot share a window-aware marker; write its table as the `profile` of the flows";
            Err(Problem::at(
                ["profiles", name.as_str(), MeterParams::TAG].map(|key| Step::Key(key.into())),
                text,
            ))
        })
    }

    /// The samples of a run fit into memory, with room for others.
    fn check_probes(&self) -> Result<(), Problem> {
        let Memory { flows, samples, sample_bytes, .. } = self.memory();
        if sample_bytes <= MOST_SAMPLES {
            return Ok(());
        }
        let plural = if flows == 1 { "" } else { "s" };
        let text = format!(
            "{samples} samples of {flows} flow{plural} and the queues take {:.1} GB; a run may take {:.1} GB for them: \
             choose an interval {} times as long",
            sample_bytes as f64 / 1e9,
            MOST_SAMPLES as f64 / 1e9,
            sample_bytes.div_ceil(MOST_SAMPLES)
        );
        Err(Problem::at([Step::Key("probes".into()), Step::Key("interval".into())], text))
    }

    /// Queues name paths that there are, and promise no more than their links can keep.
    fn check_queues(&self) -> Result<(), Problem> {
        for port in self.ports() {
            port.scheduler().fits(port.rate).map_err(|problem| {
                let text = problem.to_string();
                let (inner, message) = split_key(&text);
                port.at(inner, message.into())
            })?;
            for (key, path) in port.scheduler().clone().paths() {
                self.check_path(path.name()).map_err(|text| port.at(&key, text))?;
            }
        }
        Ok(())
    }

    /// Every rule that follows the windows of paths hears of some.
    fn check_followers(&self) -> Result<(), Problem> {
        for port in self.ports() {
            for (key, rule) in
                port.scheduler().aqms(None).into_iter().filter(|(_, rule)| rule.follows_paths())
            {
                let hears =
                    |path: &str| port.scheduler().aqms(Some(path)).iter().any(|(heard, _)| *heard == key);
                if let Some(reason) = self.deafness((port.link, port.from, port.to), hears) {
                    let text = format!(
                        "`{}` requires the window control of a label-switched path: {reason}",
                        rule.name()
                    );
                    return Err(port.at(&format!("{key}.{}", AqmParams::TAG), text));
                }
            }
        }
        Ok(())
    }

    /// The queues of both directions of all links, those that there are.
    pub(crate) fn ports(&self) -> impl Iterator<Item = Port<'_>> {
        self.links.iter().flat_map(|(name, link)| {
            let Link { from, to, rate, queue, reverse, .. } = link;
            let forward = queue.as_ref().map(|queue| Port {
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
                Some(Port { link: name, keys: &["reverse", "queue"], from: to, to: from, rate, queue })
            });
            [forward, backward].into_iter().flatten()
        })
    }

    /// Why there is no such router, if there is none.
    pub(crate) fn check_node(&self, node: &str) -> Result<(), String> {
        let nodes = self.nodes();
        if nodes.contains(node) {
            return Ok(());
        }
        let hint = did_you_mean(node, nodes.iter().copied());
        let known = nodes.into_iter().collect::<Vec<_>>().join(", ");
        Err(format!("unknown node `{node}`{hint} (known nodes: {known})"))
    }

    fn check_route(&self, flow: &Flow, under: impl Fn(&str) -> Vec<Step>) -> Result<(), Problem> {
        let at = |key: &str, text: String| Err(Problem::at(under(key), text));
        if let Some(name) = &flow.path {
            let path = self.check_path(name).map_err(|text| Problem::at(under("path"), text))?;
            for (key, node, end) in [("from", &flow.from, path.ingress()), ("to", &flow.to, path.egress())] {
                if let Some(node) = node.as_deref().filter(|node| *node != end) {
                    let which = if key == "from" { "begins" } else { "ends" };
                    return at(
                        key,
                        format!("the path `{name}` {which} at `{end}`, not at `{node}`; leave this key out"),
                    );
                }
            }
            return Ok(());
        }
        for (key, node) in [("from", &flow.from), ("to", &flow.to)] {
            let Some(node) = node else {
                let mut place = under(key);
                place.pop();
                return Err(Problem::at(place, format!("key `{key}` is missing; or name a `path`")));
            };
            self.check_node(node).map_err(|text| Problem::at(under(key), text))?;
        }
        let (from, to) = self.ends(flow);
        if from == to {
            return at("to", format!("the flow goes from `{to}` to itself; name two nodes"));
        }
        if !self.reachable(from).contains(to) {
            return at("to", format!("`{to}` cannot be reached from `{from}`; add a link between them"));
        }
        Ok(())
    }

    /// Where a group's flows begin and where they end.
    fn ends<'a>(&'a self, flow: &'a Flow) -> (&'a str, &'a str) {
        let path = flow.path.as_ref().and_then(|name| self.paths.get(name));
        let end = |given: &'a Option<String>, of_path: fn(&LabelSwitchedPath) -> &str| {
            given.as_deref().or_else(|| path.map(of_path)).expect("checked: there is a path or the key")
        };
        (end(&flow.from, LabelSwitchedPath::ingress), end(&flow.to, LabelSwitchedPath::egress))
    }

    fn check_marking(&self, flow: &Flow, under: impl Fn(&str) -> Vec<Step>) -> Result<(), Problem> {
        if flow.out_feedback.is_some() && flow.profile.is_none() {
            let text =
                "without a profile no marker reports OUT packets; add a `profile` or leave this key out";
            return Err(Problem::at(under("out-feedback"), text));
        }
        if flow.out_feedback.is_some() && matches!(flow.transport, Transport::Udp(_)) {
            let text = "a UDP source has no window to reduce when packets are OUT; leave this key out";
            return Err(Problem::at(under("out-feedback"), text));
        }
        let marks_out = |profile: &MeterParams| profile.colors_marked().any(|color| color != Color::Green);
        if flow.out_feedback.is_some() && self.profile_of(flow).is_some_and(|profile| !marks_out(profile)) {
            let text = "the profile drops all packets out of profile, so no marker reports OUT packets; leave this key out, or \
                        the profile's `out`";
            return Err(Problem::at(under("out-feedback"), text));
        }
        if let Some(FlowProfile::Own(Profile(MeterParams::Twam(_)))) = &flow.profile {
            let controlled = flow.path.as_ref().and_then(|name| self.paths.get(name)?.control.as_ref());
            if controlled.is_none() {
                let text = "a window-aware marker requires the control of a label-switched path; name a `path` that has \
                            a `control`";
                return Err(Problem::at(under("profile"), text));
            }
            if !matches!(flow.transport, Transport::Tcp(_)) {
                let text = "this marker requires the window of TCP; choose another marker";
                return Err(Problem::at(under("profile"), text));
            }
        }
        if flow.service == Service::Green && flow.profile.is_some() {
            let text = "the profile's marker would overwrite the codepoint of green packets; leave out this key or `profile`";
            return Err(Problem::at(under("service"), text));
        }
        if flow.dscp.is_some() && flow.profile.is_some() {
            let text = "the profile's marker would overwrite this codepoint with one of Assured Forwarding; leave out this key or `profile`";
            return Err(Problem::at(under("dscp"), text));
        }
        if flow.dscp.is_some_and(|dscp| dscp != flow.service.dscp()) && flow.service == Service::Green {
            let text = "green packets have a codepoint of their own; leave out this key or `service`";
            return Err(Problem::at(under("dscp"), text));
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
        let (theirs, ours) = (self.ends(first).0, self.ends(flow).0);
        if theirs != ours {
            let text =
                format!("flows that share `{name}` must start at the same router: `{theirs}`, not `{ours}`");
            return Err(Problem::at(under(if flow.from.is_some() { "from" } else { "path" }), text));
        }
        Ok(())
    }

    /// A group's profile, its own or shared.
    fn profile_of<'a>(&'a self, group: &'a Flow) -> Option<&'a MeterParams> {
        match group.profile.as_ref()? {
            FlowProfile::Own(profile) => Some(&profile.0),
            FlowProfile::Shared(name) => Some(&self.profiles.get(name)?.0),
        }
    }

    /// The rate of a group's profile.
    fn sold(&self, group: &Flow) -> Option<Bitrate> {
        self.profile_of(group).map(MeterParams::rate)
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
        let queue = |queue: Option<&Queue>| {
            let mut queue = queue?.scheduler.clone();
            for (_, path) in queue.paths() {
                path.set_label(self.label(path.name()));
            }
            Some(queue)
        };
        let mut links = Vec::new();
        for (name, link) in &self.links {
            let reverse = link.reverse.as_ref();
            links.push(LinkSpec {
                name: name.clone(),
                from: node(&link.from),
                to: node(&link.to),
                rate: link.rate,
                delay: link.delay,
                queue: queue(link.queue.as_ref()),
            });
            links.push(LinkSpec {
                name: format!("{name}{REVERSE}"),
                from: node(&link.to),
                to: node(&link.from),
                rate: reverse.and_then(|reverse| reverse.rate).unwrap_or(link.rate),
                delay: reverse.and_then(|reverse| reverse.delay).unwrap_or(link.delay),
                queue: queue(reverse.and_then(|reverse| reverse.queue.as_ref())),
            });
        }
        let access = |access: &Access| AccessSpec { rate: access.rate, delay: access.delay };
        let flows = self.flows.iter().flat_map(|group| {
            (0..group.count).map(move |member| FlowSpec {
                name: format!("{}/{member}", group.name),
                from: node(self.ends(group).0),
                to: node(self.ends(group).1),
                path: group.path.as_ref().and_then(|name| self.paths.keys().position(|known| known == name)),
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
                    Some(FlowProfile::Own(profile)) if group.path.is_some() => {
                        Marking::Ingress(profile.0.clone())
                    }
                    Some(FlowProfile::Own(profile)) => Marking::Host(profile.0.clone()),
                    Some(FlowProfile::Shared(name)) => {
                        Marking::Edge(self.profiles.keys().position(|known| known == name).expect("checked"))
                    }
                },
                color: group.color,
                dscp: group.dscp.unwrap_or(group.service.dscp()),
                ecn: Ecn::NotCapable,
                tcp_ecn: group.ecn,
                service: self.sold(group),
                reserved: self.reserved(group),
                out_feedback: group.out_feedback,
                start: (Instant::ZERO + group.start.first, Instant::ZERO + group.start.last),
                stop: group.stop.map(|stop| Instant::ZERO + stop),
                volume: group.volume,
            })
        });
        let flows = flows.collect();
        let network = Network {
            duration: self.duration,
            warmup: self.warmup,
            probe_interval: self.probes.interval,
            nodes: nodes.len() as u32,
            links,
            paths: Vec::new(),
            shared_meters: self
                .profiles
                .iter()
                .map(|(name, profile)| SharedMeter { name: name.clone(), params: profile.0.clone() })
                .collect(),
            flows,
        };
        let paths = self.routes(&network, node);
        Network { paths, ..network }
    }
}

/// ECN is TCP's, and what goes with it acts.
fn check_ecn(flow: &Flow, under: impl Fn(&str) -> Vec<Step>) -> Result<(), Problem> {
    let Transport::Tcp(params) = &flow.transport else {
        let text = "only TCP feeds marks back to its sender; leave this key out";
        return if flow.ecn.is_off() { Ok(()) } else { Err(Problem::at(under("ecn"), text)) };
    };
    if flow.ecn == TcpEcn::Accurate && !params.sack {
        let text = "counts of marks travel in selective acknowledgements; give the transport `sack = true`, or take \
                    `ecn = \"classic\"`";
        return Err(Problem::at(under("ecn"), text));
    }
    if params.ecn_backoff && flow.ecn.is_off() {
        let path = under("transport").into_iter().chain([Step::Key("ecn-backoff".into())]);
        let text = "without `ecn` no packet of the flow is marked; leave this key out, or give the flow `ecn = \"classic\"`";
        return Err(Problem::at(path, text));
    }
    Ok(())
}
