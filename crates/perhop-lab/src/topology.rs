//! A scenario's network as the data plane between the two hosts.

use perhop_core::meter::MeterParams;
use perhop_core::{Bitrate, Color, Direction, Dscp, Duration, FlowId, Instant, ServiceLevel};
use perhop_live::{
    Coloring, ControlSpec, DispatchSpec, Hop, LinkSpec, Member, MeterSpec, PlaneSpec, Remark, ReportSpec,
    Selector, StreamFlow, StreamSpec, WireSpec,
};
use perhop_sim::{AccessSpec, FlowSpec, Marking, Network, TransportSpec};

use crate::hosts;
use crate::setting::{HostFlow, PROTOCOL_TCP, PROTOCOL_UDP, Setting, Side};

/// The device of the host that sends data, and that of the host that receives it.
pub(crate) const SENDERS: usize = 0;
pub(crate) const RECEIVERS: usize = 1;

/// Packets that the data plane may hold. Memory is used only as packets need it.
const BUFFERS: u32 = 1 << 17;

/// Collects the parts of a data plane.
struct Builder<'a> {
    network: &'a Network,
    setting: &'a Setting,
    plane: PlaneSpec,
    /// For each link of the network, its place in the data plane.
    links: Vec<Hop>,
    /// For each path with a control, the control's number.
    controls: Vec<Option<usize>>,
}

/// Returns the data plane of a network. It has two streams for each flow: data, then ACKs or feedback.
pub(crate) fn plane(network: &Network, setting: &Setting) -> PlaneSpec {
    let (flows, mtu) = (&setting.flows, setting.mtu);
    let window = (Instant::ZERO + network.warmup, Instant::ZERO + network.duration);
    let mut builder = Builder {
        network,
        setting,
        plane: PlaneSpec { devices: 2, mtu, buffers: BUFFERS, window, ..PlaneSpec::default() },
        links: Vec::new(),
        controls: Vec::new(),
    };
    builder.add_links();
    builder.add_shared_meters();
    builder.add_controls();
    for flow in flows {
        builder.add_flow(&network.flows[flow.flow], flow);
    }
    builder.plane
}

impl Builder<'_> {
    fn add_links(&mut self) {
        for link in &self.network.links {
            let hop = match link.limited() {
                None if link.medium.is_constant() => {
                    self.wire(WireSpec { rate: Some(link.rate), delay: link.delay, dispatch: None })
                }
                queue => {
                    let queue = queue.cloned().unwrap_or_else(perhop_sim::LinkSpec::unlimited);
                    let perhop_sim::LinkSpec { name, rate, delay, meters, medium, .. } = link.clone();
                    self.plane.links.push(LinkSpec { name, rate, delay, queue, meters, medium });
                    Hop::Link(self.plane.links.len() - 1)
                }
            };
            self.links.push(hop);
        }
    }

    fn wire(&mut self, spec: WireSpec) -> Hop {
        self.plane.wires.push(spec);
        Hop::Wire(self.plane.wires.len() - 1)
    }

    /// Returns the private link of a host in one direction, if it has one, behind the jitter of the host that
    /// sends.
    fn access(&mut self, access: Option<&AccessSpec>, dispatch: Option<DispatchSpec>) -> Option<Hop> {
        let (rate, delay) = (access.map(|access| access.rate), access.map(|access| access.delay));
        let spec = WireSpec { rate, delay: delay.unwrap_or_default(), dispatch };
        (access.is_some() || spec.dispatch.is_some()).then(|| self.wire(spec))
    }

    fn meter(&mut self, spec: MeterSpec) -> usize {
        self.plane.meters.push(spec);
        self.plane.meters.len() - 1
    }

    /// Meters that flows share come first, in their order.
    fn add_shared_meters(&mut self) {
        for shared in &self.network.shared_meters {
            let name = format!("profiles/{}/marker", shared.name);
            self.meter(MeterSpec { name, params: shared.params.clone(), rate: Bitrate::MAX });
        }
    }

    fn add_controls(&mut self) {
        for path in &self.network.paths {
            let control = path.control.as_ref().map(|control| {
                // A message reaches a queue after the propagation delay from the ingress.
                let mut away = Duration::ZERO;
                let mut links = Vec::new();
                for &link in &path.forward {
                    if let Hop::Link(number) = self.links[link] {
                        links.push((number, away));
                    }
                    away = away + self.network.links[link].delay;
                }
                let (name, label, control) = (path.name.clone(), path.label, control.clone());
                self.plane.controls.push(ControlSpec { name, label, control, members: Vec::new(), links });
                self.plane.controls.len() - 1
            });
            self.controls.push(control);
        }
    }

    /// Adds the two streams of a flow: data, and ACKs or feedback.
    fn add_flow(&mut self, spec: &FlowSpec, flow: &HostFlow) {
        let is_marked = flow.own_at(flow.from).is_some_and(|own| own.marker.is_some());
        let (at_host, at_router) = if is_marked { (None, None) } else { self.meters_of(spec, &flow.name) };
        let control = self.control_of(spec, flow, at_host.or(at_router));
        // Numbers of wires follow from this order.
        let dispatch = |part| {
            let name = format!("flows/{}/{part}", flow.name);
            spec.dispatch_jitter.map(|most| DispatchSpec { name, most })
        };
        let from_sender = self.access(spec.access.as_ref(), dispatch("dispatch"));
        let to_receiver = self.access(spec.egress.as_ref(), None);
        let from_receiver = self.access(spec.egress.as_ref(), dispatch("dispatch of acknowledgements"));
        let to_sender = self.access(spec.access.as_ref(), None);
        let sampled = control.map(|(control, member)| Hop::Data(control, member));
        let before = [at_host.map(Hop::Meter), from_sender, sampled, at_router.map(Hop::Meter)];
        let forward = before.into_iter().flatten().chain(self.links_of(spec, false)).chain(to_receiver);
        let acks = control.map(|(control, member)| Hop::Ack(control, member));
        let after = [acks, to_sender];
        let backward =
            from_receiver.into_iter().chain(self.links_of(spec, true)).chain(after.into_iter().flatten());
        let (forward, backward) = (forward.collect(), backward.collect());

        let (sender, receiver) = match flow.from {
            Side::Sending => (SENDERS, RECEIVERS),
            Side::Receiving => (RECEIVERS, SENDERS),
        };
        let (data, back) = selectors(flow);
        let back_coloring = match flow.requests {
            None => Coloring::Fixed(Color::default(), Dscp::DEFAULT),
            Some(requests) => {
                let spec = &self.network.flows[requests.flow];
                Coloring::Fixed(spec.color, spec.dscp)
            }
        };
        let id = FlowId(flow.number as u32);
        let label = spec.path.map_or(0, |path| self.network.paths[path].label);
        if let (Some(delay), Some(_)) = (spec.out_feedback, flow.own_at(flow.from)) {
            let (source, destination) =
                (hosts::router(self.setting.ip), hosts::end_of(self.setting, flow, flow.from, flow.port));
            let stream = self.plane.streams.len();
            self.plane.reports.push(ReportSpec { stream, device: sender, delay, source, destination });
        }
        self.plane.streams.push(StreamSpec {
            name: flow.name.clone(),
            flow: StreamFlow::One(id, Direction::Forward),
            device: sender,
            selector: data,
            coloring: match spec.transport.trace() {
                _ if is_marked => Coloring::Trust,
                Some(trace) if trace.has_codepoints() => Coloring::TrustOr(spec.color),
                _ => Coloring::Fixed(spec.color, spec.dscp),
            },
            remark: Remark::default(),
            service: spec.service.map_or(ServiceLevel::NONE, ServiceLevel::of),
            label,
            route: forward,
            leaves: receiver,
        });
        self.plane.streams.push(StreamSpec {
            name: format!("{} (back)", flow.name),
            flow: StreamFlow::One(id, Direction::Backward),
            device: receiver,
            selector: back,
            coloring: back_coloring,
            remark: Remark::default(),
            service: ServiceLevel::NONE,
            label,
            route: backward,
            leaves: sender,
        });
    }

    /// Returns the meters of a flow: at its host, and at its first router.
    fn meters_of(&mut self, spec: &FlowSpec, name: &str) -> (Option<usize>, Option<usize>) {
        let own = |params: &MeterParams, rate| MeterSpec {
            name: format!("flows/{name}/marker"),
            params: params.clone(),
            rate,
        };
        match &spec.marking {
            Marking::None => (None, None),
            Marking::Host(params) => {
                let rate = spec.access.as_ref().map_or(Bitrate::MAX, |access| access.rate);
                (Some(self.meter(own(params, rate))), None)
            }
            Marking::Ingress(params) => (None, Some(self.meter(own(params, Bitrate::MAX)))),
            Marking::Edge(number) => (None, Some(*number)),
        }
    }

    /// Returns the window control of a TCP flow's path, and the flow's number there. A meter of its own
    /// receives messages.
    fn control_of(
        &mut self,
        spec: &FlowSpec,
        flow: &HostFlow,
        meter: Option<usize>,
    ) -> Option<(usize, usize)> {
        let control = spec.path.and_then(|path| self.controls[path])?;
        let TransportSpec::Tcp(_) = spec.transport else { return None };
        let meter = meter.filter(|_| !matches!(spec.marking, Marking::Edge(_)));
        let members = &mut self.plane.controls[control].members;
        let (id, segment) = (FlowId(flow.number as u32), flow.payload.into());
        members.push(Member { flow: id, rate: spec.reserved, meter, segment });
        Some((control, members.len() - 1))
    }

    /// Returns the links that a flow's data, or its ACKs or feedback, pass.
    fn links_of(&self, spec: &FlowSpec, backward: bool) -> Vec<Hop> {
        let route = self.network.route_of(spec, backward).expect("the scenario was checked");
        route.into_iter().map(|link| self.links[link]).collect()
    }
}

/// Returns the shortest round-trip time of any flow without queues, transmission times left out.
pub(crate) fn shortest_round_trip(network: &Network) -> Duration {
    let both_ways = |access: &Option<AccessSpec>| {
        access.as_ref().map_or(Duration::ZERO, |access| access.delay + access.delay)
    };
    let trips = network.flows.iter().map(|flow| {
        let links = |acknowledges| network.route_of(flow, acknowledges).unwrap_or_default();
        let hops = [links(false), links(true)].concat();
        let delay = |link: usize| {
            let link = &network.links[link];
            link.medium.least_delay(link.delay)
        };
        let between = hops.iter().fold(Duration::ZERO, |sum, &link| sum + delay(link));
        between + both_ways(&flow.access) + both_ways(&flow.egress)
    });
    trips.min().unwrap_or(Duration::ZERO)
}

/// Returns the selectors of a flow: of its data, and of ACKs and feedback.
fn selectors(flow: &HostFlow) -> (Selector, Selector) {
    let protocol = if flow.is_tcp() { PROTOCOL_TCP } else { PROTOCOL_UDP };
    let any = Selector { protocol: Some(protocol), ..Selector::default() };
    let ports = Some(flow.port..=flow.port);
    let from = Selector { source_ports: ports.clone(), ..any.clone() };
    let to = Selector { destination_ports: ports, ..any };
    // The port is that of the host that opens the connection.
    if flow.requests.is_none() { (from, to) } else { (to, from) }
}
