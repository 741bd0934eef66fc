//! From a checked scenario to the network that the simulator runs.

use std::collections::BTreeMap;

use perhop_core::marker::AfClass;
use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Bytes, Color, Depth, Ecn, Instant};
use perhop_sim::application::{ApplicationParams, Carrier};
use perhop_sim::transport::tcp::{TcpEcn, TcpParams};
use perhop_sim::transport::udp::UdpParams;
use perhop_sim::{
    AccessSpec, ApplicationSpec, Connection, FlowSpec, LinkSpec, Marking, Network, NodeId, PathSpec,
    SharedMeter, TransportSpec,
};

use crate::format::{
    Access, Codec, Flow, FlowProfile, LabelSwitchedPath, Link, Queue, REVERSE, ReplayedPackets, Reverse,
    Scenario, Transport,
};
use crate::populations::workload;

impl Scenario {
    /// Returns the [network](Self::network), of which the links without [results](Self::has_results) report
    /// none, which takes time and memory.
    pub fn network_of_results(&self) -> Network {
        let network = self.network();
        let links = network.links.iter().enumerate();
        let unreported = links.filter(|(_, link)| !self.has_results(&link.name)).map(|(number, _)| number);
        Network { unreported: unreported.collect(), ..network }
    }

    /// Returns the network to simulate. Flows are numbered group by group.
    pub fn network(&self) -> Network {
        let nodes = self.nodes();
        let node = |name: &str| NodeId(nodes.binary_search(&name).expect("checked") as u32);
        let shared_meters = self.profiles.iter();
        let shared_meters = shared_meters
            .map(|(name, profile)| SharedMeter { name: name.clone(), params: profile.0.clone() });
        let sharing = self.flows_of_profiles();
        let mut flows = Vec::with_capacity(self.flows.iter().map(Flow::all_flows).sum::<u64>() as usize);
        for group in &self.flows {
            flows.extend(self.flow_specs(group, self.reserved_among(group, &sharing), node));
        }
        let network = Network {
            duration: self.duration,
            warmup: self.warmup.or_none(),
            probe_interval: self.probes.interval,
            nodes: nodes.len() as u32,
            links: self.links.iter().flat_map(|(name, link)| self.link_specs(name, link, node)).collect(),
            paths: Vec::new(),
            shared_meters: shared_meters.collect(),
            flows,
            unreported: Vec::new(),
            applications: self.applications(),
        };
        let paths = self.routes(&network, node);
        let mut network = Network { paths, ..network };
        self.populate(&mut network);
        network
    }

    /// Gives the flows that stand for populations what these draw.
    fn populate(&self, network: &mut Network) {
        let mut number = 0;
        for group in &self.flows {
            if let Some(arrivals) = &group.arrivals {
                network.flows[number].population =
                    workload(group, arrivals, network, number).ok().map(Box::new);
            }
            number += group.all_flows() as usize;
        }
    }

    /// Returns both directions of a link. They are measured, with a `queue` or without; a reverse direction
    /// without a table `reverse` is not.
    fn link_specs(&self, name: &str, link: &Link, node: impl Fn(&str) -> NodeId) -> [LinkSpec; 2] {
        let reverse = link.reverse.as_ref();
        let forward = LinkSpec {
            name: name.into(),
            from: node(&link.from),
            to: node(&link.to),
            rate: link.rate,
            delay: link.delay,
            queue: Some(self.labelled(link.queue.as_ref()).unwrap_or_else(LinkSpec::unlimited)),
            meters: self.labelled_meters(&link.meters),
            medium: link.medium(),
        };
        let backward = LinkSpec {
            name: format!("{name}{REVERSE}"),
            from: node(&link.to),
            to: node(&link.from),
            rate: reverse.and_then(|reverse| reverse.rate).unwrap_or(link.rate),
            delay: reverse.and_then(|reverse| reverse.delay).unwrap_or(link.delay),
            queue: reverse
                .map(|reverse| self.labelled(reverse.queue.as_ref()).unwrap_or_else(LinkSpec::unlimited)),
            meters: self.labelled_meters(reverse.map_or(&[], |reverse| &reverse.meters)),
            medium: reverse.map(Reverse::medium).unwrap_or_default(),
        };
        [forward, backward]
    }

    /// Returns a queue with labels in place of the names of paths.
    fn labelled(&self, queue: Option<&Queue>) -> Option<SchedulerParams> {
        let mut queue = queue?.scheduler.clone();
        for (_, path) in queue.paths() {
            path.set_label(self.label(path.name()));
        }
        Some(queue)
    }

    /// Returns the meters of a link with labels in place of the names of paths.
    fn labelled_meters(&self, meters: &[AggregateMeter]) -> Vec<AggregateMeter> {
        let mut meters = meters.to_vec();
        for path in meters.iter_mut().filter_map(AggregateMeter::path) {
            path.set_label(self.label(path.name()));
        }
        meters
    }

    /// Returns the flows of a group: those of its users' responses, then those of their requests.
    fn flow_specs(
        &self,
        group: &Flow,
        reserved: Option<Bitrate>,
        node: impl Fn(&str) -> NodeId + Copy,
    ) -> impl Iterator<Item = FlowSpec> {
        let (connections, flows) = (group.connections(), group.flows());
        let (transport, of_requests) = (group.transport_spec(), group.request_spec());
        let of_responses = transport.clone();
        let data = (0..flows).map(move |member| self.flow_spec(group, member, &transport, reserved, node));
        let requests = (0..if connections == 0 { 0 } else { flows }).map(move |member| {
            let response = self.flow_spec(group, member, &of_responses, reserved, node);
            FlowSpec {
                name: format!("{}{REVERSE}/{member}", group.name),
                from: response.to,
                to: response.from,
                access: response.egress,
                egress: response.access,
                transport: of_requests.clone(),
                marking: Marking::None,
                service: None,
                reserved: None,
                out_feedback: None,
                ..response
            }
        });
        data.chain(requests)
    }

    /// Returns the groups of users, and the numbers of their flows.
    fn applications(&self) -> Vec<ApplicationSpec> {
        let mut first = 0;
        let mut specs = Vec::new();
        for group in &self.flows {
            let flows = group.flows() as usize;
            if let Some(params) = &group.application {
                let connections = group.connections() as usize;
                let connection =
                    |number| Connection { response: first + number, request: first + flows + number };
                let users = (0..group.count as usize)
                    .map(|user| (user * connections..(user + 1) * connections).map(connection).collect());
                specs.push(ApplicationSpec {
                    name: group.name.clone(),
                    params: params.clone(),
                    start: (Instant::ZERO + group.start.first, Instant::ZERO + group.start.last),
                    users: users.collect(),
                });
                first += flows;
            }
            first += flows;
        }
        specs
    }

    /// Returns the classes of flows in results, in the order of the flows.
    pub fn classes(&self) -> Vec<Class> {
        let sharing = self.flows_of_profiles();
        let classes = self.flows.iter().flat_map(|group| {
            let flows = group.flows();
            let data = Class {
                name: group.name.clone(),
                flows,
                reserved: self.reserved_among(group, &sharing),
                is_population: group.arrivals.is_some(),
                codec: group.codec,
            };
            let reverse = Class {
                name: format!("{}{REVERSE}", group.name),
                flows,
                reserved: None,
                is_population: false,
                codec: None,
            };
            [Some(data), group.application.as_ref().map(|_| reverse)].into_iter().flatten()
        });
        classes.collect()
    }

    fn flow_spec(
        &self,
        group: &Flow,
        member: u32,
        transport: &TransportSpec,
        reserved: Option<Bitrate>,
        node: impl Fn(&str) -> NodeId,
    ) -> FlowSpec {
        let access = |access: &Access| AccessSpec { rate: access.rate, delay: access.delay };
        let is_tcp = matches!(group.transport, Transport::Tcp(_));
        let (from, to) = match &group.between {
            Some(between) => {
                // With an application, several flows belong to one user.
                let (from, to) = between.pairs[(member / group.connections().max(1)) as usize];
                (NodeId(from), NodeId(to))
            }
            None => (node(self.ends(group).0), node(self.ends(group).1)),
        };
        FlowSpec {
            name: format!("{}/{member}", group.name),
            from,
            to,
            path: group.path.as_ref().and_then(|name| self.paths.keys().position(|known| known == name)),
            access: group.access.as_ref().map(access),
            egress: group.egress.as_ref().or(group.access.as_ref()).map(access),
            transport: transport.clone(),
            play_out: group.play_out,
            dispatch_jitter: group.dispatch_jitter,
            marking: self.marking(group),
            color: group.color(),
            dscp: group.dscp.unwrap_or(group.service.dscp()),
            ecn: if is_tcp { Ecn::NotCapable } else { group.ecn.codepoint() },
            tcp_ecn: if is_tcp { group.ecn } else { TcpEcn::Off },
            service: self.profile_of(group).map(MeterParams::rate),
            reserved,
            out_feedback: group.out_feedback,
            start: (Instant::ZERO + group.start.first, Instant::ZERO + group.start.last),
            stop: group.stop.map(|stop| Instant::ZERO + stop),
            volume: group.volume.and_then(|payload| transport.on_wire(payload)),
            population: None,
        }
    }

    /// Returns the paths as the simulator takes them; what is checked cannot fail here.
    fn routes(&self, network: &Network, node: impl Fn(&str) -> NodeId) -> Vec<PathSpec> {
        let route = |routers: &[String]| {
            let hops = routers.windows(2).map(|hop| network.link_between(node(&hop[0]), node(&hop[1])));
            hops.collect::<Option<Vec<_>>>().expect("checked: links join them")
        };
        let paths = self.paths.iter().map(|(name, path)| PathSpec {
            name: name.clone(),
            label: self.label(name),
            forward: route(&path.via),
            backward: route(&path.way_back()),
            control: path.control.clone(),
        });
        paths.collect()
    }

    /// Returns the label of a path: from 1, in the order of the names.
    fn label(&self, path: &str) -> u32 {
        self.paths.keys().take_while(|name| name.as_str() <= path).count() as u32
    }

    fn marking(&self, group: &Flow) -> Marking {
        match &group.profile {
            None => Marking::None,
            Some(FlowProfile::Own(profile)) if group.path.is_some() => Marking::Ingress(profile.0.clone()),
            Some(FlowProfile::Own(profile)) => Marking::Host(profile.0.clone()),
            Some(FlowProfile::Shared(name)) => {
                Marking::Edge(self.profiles.keys().position(|known| known == name).expect("checked"))
            }
        }
    }

    /// Returns the first and the last router of a group's flows.
    pub(crate) fn ends<'a>(&'a self, flow: &'a Flow) -> (&'a str, &'a str) {
        let path = flow.path.as_ref().and_then(|name| self.paths.get(name));
        let end = |given: &'a Option<String>, of_path: fn(&LabelSwitchedPath) -> &str| {
            given.as_deref().or_else(|| path.map(of_path)).expect("checked: there is a path or the key")
        };
        (end(&flow.from, LabelSwitchedPath::ingress), end(&flow.to, LabelSwitchedPath::egress))
    }

    /// Returns a group's profile, its own or shared.
    pub(crate) fn profile_of<'a>(&'a self, group: &'a Flow) -> Option<&'a MeterParams> {
        match group.profile.as_ref()? {
            FlowProfile::Own(profile) => Some(&profile.0),
            FlowProfile::Shared(name) => Some(&self.profiles.get(name)?.0),
        }
    }

    /// Returns the contracted rate of each flow of a group; with a shared profile, an equal part of its rate.
    pub fn reserved(&self, group: &Flow) -> Option<Bitrate> {
        self.reserved_among(group, &self.flows_of_profiles())
    }

    fn reserved_among(&self, group: &Flow, sharing: &BTreeMap<&str, u64>) -> Option<Bitrate> {
        let rate = self.profile_of(group)?.rate();
        let FlowProfile::Shared(name) = group.profile.as_ref()? else { return Some(rate) };
        let flows = sharing.get(name.as_str()).copied().unwrap_or_default();
        Bitrate::from_bps(rate.as_bps() / flows.max(1)).ok()
    }

    /// Returns how many flows each shared profile has.
    fn flows_of_profiles(&self) -> BTreeMap<&str, u64> {
        let mut sharing = BTreeMap::new();
        for group in &self.flows {
            if let Some(FlowProfile::Shared(name)) = &group.profile {
                *sharing.entry(name.as_str()).or_default() += u64::from(group.flows());
            }
        }
        sharing
    }

    /// Returns the routers, in the order of their names.
    pub(crate) fn nodes(&self) -> Vec<&str> {
        let ends = self.links.values().flat_map(|link| [link.from.as_str(), link.to.as_str()]);
        let mut nodes: Vec<&str> = ends.collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

/// A class of flows in results: those of a group, or of its users' requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The name of the class.
    pub name: String,
    /// How many flows the class has.
    pub flows: u32,
    /// The contracted rate of each flow.
    pub reserved: Option<Bitrate>,
    /// Whether the flows come and go, and count as one.
    pub is_population: bool,
    /// The codec of calls.
    pub codec: Option<Codec>,
}

impl LabelSwitchedPath {
    /// Returns the router where it begins.
    pub(crate) fn ingress(&self) -> &str {
        self.via.first().map_or("", String::as_str)
    }

    /// Returns the router where it ends.
    pub(crate) fn egress(&self) -> &str {
        self.via.last().map_or("", String::as_str)
    }

    /// Returns the routers that acknowledgements pass.
    fn way_back(&self) -> Vec<String> {
        self.back.clone().unwrap_or_else(|| self.via.iter().rev().cloned().collect())
    }
}

impl Flow {
    /// Returns the color of its packets: the given one, else the drop precedence of a codepoint of Assured
    /// Forwarding (RFC 2597).
    pub fn color(&self) -> Color {
        let of_codepoint = || AfClass::of(self.dscp?).map(|(_, color)| color);
        self.color.or_else(of_codepoint).unwrap_or_default()
    }

    /// Returns the connections of each of its users; none without an application.
    pub(crate) fn connections(&self) -> u32 {
        self.application.as_ref().map_or(0, ApplicationParams::connections)
    }

    /// Returns how many flows it has, those of requests not counted.
    pub fn flows(&self) -> u32 {
        self.count.saturating_mul(self.connections().max(1))
    }

    /// Returns how many flows it has, those of requests counted.
    pub(crate) fn all_flows(&self) -> u64 {
        u64::from(self.flows()) * if self.application.is_some() { 2 } else { 1 }
    }

    /// Returns how its flows send. A connection of an application opens in the direction of its requests.
    pub(crate) fn transport_spec(&self) -> TransportSpec {
        if let Some(trace) = self.replay.as_ref().and_then(ReplayedPackets::read) {
            return TransportSpec::Udp(UdpParams::traced(trace));
        }
        let of_application = self.application.as_ref().and_then(datagrams);
        match (of_application, transport(&self.transport)) {
            (Some(own), _) => own,
            (None, TransportSpec::Tcp(params)) if self.application.is_some() => {
                TcpParams { handshake: false, ..(*params).clone() }.into()
            }
            (None, given) => given,
        }
    }

    /// Returns how requests are sent: one that fits into a packet is one packet, no larger than it.
    fn request_spec(&self) -> TransportSpec {
        let carrier = self.application.as_ref().map(ApplicationParams::carrier);
        match (carrier, transport(&self.transport)) {
            (Some(Carrier::Tcp { request }), TransportSpec::Tcp(params)) => {
                let size = Bytes::new(request.get() + params.ack.get());
                let packet = size.min(params.packet);
                // Both hold as many segments as those of responses.
                let window = Depth::Packets(params.most_offered().into());
                let send_buffer = params.most_buffered().map(|segments| Depth::Packets(segments.into()));
                TcpParams { packet, window, send_buffer, ..(*params).clone() }.into()
            }
            _ => self.transport_spec(),
        }
    }
}

/// Returns how an application sends that has datagrams of its own.
fn datagrams(application: &ApplicationParams) -> Option<TransportSpec> {
    match application.carrier() {
        Carrier::Tcp { .. } => None,
        Carrier::Sources(params) => Some(TransportSpec::Udp(params)),
        Carrier::Datagrams { largest } => Some(TransportSpec::Udp(UdpParams::datagrams(largest))),
    }
}

/// Returns how a flow sends; nothing of its own is checked to come from an application.
fn transport(transport: &Transport) -> TransportSpec {
    match transport {
        Transport::Own => TransportSpec::Udp(UdpParams::datagrams(Bytes::new(1500))),
        Transport::Tcp(params) => params.clone().into(),
        Transport::Udp(params) => TransportSpec::Udp(params.clone()),
        Transport::Rap(params) => TransportSpec::Rap(params.clone()),
        Transport::Tfrc(params) => TransportSpec::Tfrc(params.clone()),
    }
}
