//! The network of a scenario with one flow of each group, from which checks and notices learn which packets
//! come to a link.

use std::collections::BTreeMap;

use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::{Color, Duration, FlowId, Header};
use perhop_sim::{FlowSpec, LinkSpec, Network};

use crate::format::{Flow, Scenario};

/// Selects the packets to look at: those of one link, or of the whole network in place of all links of a
/// tier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSelection<'a> {
    /// The name of the link, or of one link of the tier.
    name: &'a str,
    /// Whether a packet anywhere in the network counts.
    anywhere: bool,
}

impl<'a> LinkSelection<'a> {
    /// Selects one link.
    pub(crate) const fn link(name: &'a str) -> Self {
        Self { name, anywhere: false }
    }

    /// Selects all links of the tier to which the link of this name belongs.
    pub(crate) const fn tier_of(name: &'a str) -> Self {
        Self { name, anywhere: true }
    }

    /// Returns the name of the link, or of one link of the tier.
    pub(crate) const fn name(&self) -> &'a str {
        self.name
    }
}

/// A network with one flow of each group; with all flows of a group that a matrix spreads, where single links
/// are looked at.
pub(crate) struct OneFlowPerGroup {
    /// The network.
    pub(crate) network: Network,
    /// The group of each flow.
    groups: Vec<String>,
    /// The links that the data of each flow pass.
    routes: Vec<Vec<usize>>,
    /// The links that the acknowledgements of each flow pass.
    returns: Vec<Vec<usize>>,
    /// The flows whose data or acknowledgements pass each link, in order.
    users: Vec<Vec<usize>>,
    /// The flows whose data pass each link, in order.
    senders: Vec<Vec<usize>>,
    /// Whether a link has meters.
    is_metered: bool,
    /// The number of each link, by name.
    numbers: BTreeMap<String, usize>,
    /// The names of the network's paths.
    paths: Vec<String>,
}

/// The headers with which the packets of a flow come to a link.
pub(crate) struct HeadersAtLink {
    /// The headers before the link's meters.
    pub(crate) before: Vec<Header>,
    /// The headers behind the link's meters, with which packets come to the queue.
    pub(crate) behind: Vec<Header>,
}

impl OneFlowPerGroup {
    /// Builds the network of a scenario.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let looks_at_links =
            scenario.links.written().any(|(_, link)| link.queue.is_some() || link.reverse.is_some());
        let count = |group: &Flow| if looks_at_links && group.between.is_some() { group.count } else { 1 };
        let flows = scenario.flows.iter().map(|group| Flow { count: count(group), ..group.clone() });
        let reduced = Scenario { flows: flows.collect(), ..scenario.clone() };
        let network = reduced.network();
        let found = network.routes();
        let routes = |acknowledges| {
            let route = |flow| found.of(flow, acknowledges).unwrap_or_default();
            (0..network.flows.len()).map(route).collect()
        };
        let [routes, returns]: [Vec<Vec<usize>>; 2] = [routes(false), routes(true)];
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); network.links.len()];
        let mut senders = users.clone();
        for (flow, (route, back)) in routes.iter().zip(&returns).enumerate() {
            for &link in route {
                if senders[link].last() != Some(&flow) {
                    senders[link].push(flow);
                }
            }
            for &link in route.iter().chain(back) {
                if users[link].last() != Some(&flow) {
                    users[link].push(flow);
                }
            }
        }
        let classes = reduced.classes().into_iter();
        Self {
            numbers: (0..).zip(&network.links).map(|(number, link)| (link.name.clone(), number)).collect(),
            users,
            senders,
            is_metered: network.links.iter().any(|link| !link.meters.is_empty()),
            groups: classes.flat_map(|class| vec![class.name; class.flows as usize]).collect(),
            routes,
            returns,
            paths: scenario.paths.keys().cloned().collect(),
            network,
        }
    }

    /// Returns the slowest link that a flow's data pass, and the flow's round trip without queues.
    pub(crate) fn narrowest(&self, flow: usize) -> Option<(&LinkSpec, Duration)> {
        let links = |route: &[usize]| route.iter().map(|&link| &self.network.links[link]).collect::<Vec<_>>();
        let (there, back) = (links(&self.routes[flow]), links(&self.returns[flow]));
        let spec = &self.network.flows[flow];
        let hosts = spec.access.iter().chain(&spec.egress).map(|access| access.delay.as_nanos() * 2);
        let round_trip =
            there.iter().chain(&back).map(|link| link.delay.as_nanos()).chain(hosts).sum::<u64>();
        let link = there.into_iter().min_by_key(|link| link.rate)?;
        (round_trip > 0).then_some((link, Duration::from_nanos(round_trip)))
    }

    /// Returns the name of a flow's group.
    pub(crate) fn group(&self, flow: usize) -> &str {
        &self.groups[flow]
    }

    /// Returns the groups whose data pass these links, each with its flow.
    pub(crate) fn passing<'a>(
        &'a self,
        links: LinkSelection<'a>,
    ) -> impl Iterator<Item = (&'a str, &'a FlowSpec)> {
        self.passing_numbers(links).map(|flow| (self.groups[flow].as_str(), &self.network.flows[flow]))
    }

    /// Returns the numbers of the flows whose data pass these links, in order.
    pub(crate) fn passing_numbers(&self, links: LinkSelection<'_>) -> impl Iterator<Item = usize> {
        self.flows_of(links, &self.senders)
    }

    /// Returns the flows that `lists` has for a link; all flows for a tier.
    fn flows_of<'a>(
        &'a self,
        links: LinkSelection<'_>,
        lists: &'a [Vec<usize>],
    ) -> impl Iterator<Item = usize> + use<'a> {
        let number = self.numbers.get(links.name).filter(|_| !links.anywhere);
        let these = number.map_or(&[][..], |&number| &lists[number]);
        let all = if links.anywhere { self.network.flows.len() } else { 0 };
        these.iter().copied().chain(0..all)
    }

    /// Returns the link of this name.
    pub(crate) fn link(&self, name: &str) -> Option<&LinkSpec> {
        self.numbers.get(name).map(|&number| &self.network.links[number])
    }

    /// Returns the label of a flow's packets.
    fn label(&self, flow: &FlowSpec) -> u32 {
        flow.path.map_or(0, |path| self.network.paths[path].label)
    }

    /// Describes packets by what a `match` can look at: codepoint, color and path.
    pub(crate) fn described(&self, packets: &[Header]) -> String {
        let described = packets.iter().map(|packet| {
            let mut paths = self.paths.iter().zip(&self.network.paths);
            let path = paths.find(|(_, path)| path.label == packet.label);
            let path = path.map_or_else(String::new, |(name, _)| format!(" on the path `{name}`"));
            format!("{} ({}){path}", packet.dscp, packet.color.name())
        });
        described.collect::<Vec<_>>().join(", ")
    }

    /// Returns the headers of packets that come to the queues of these links, as far as a `match` looks at
    /// them, each once.
    pub(crate) fn packets(&self, links: LinkSelection<'_>) -> Vec<Header> {
        self.all_headers(links, |headers| headers.behind)
    }

    /// Returns the headers of packets that come to the meters of these links, each once.
    pub(crate) fn packets_before(&self, links: LinkSelection<'_>) -> Vec<Header> {
        self.all_headers(links, |headers| headers.before)
    }

    fn all_headers(&self, links: LinkSelection<'_>, side: fn(HeadersAtLink) -> Vec<Header>) -> Vec<Header> {
        let mut found: Vec<Header> = Vec::new();
        for number in self.flows_of(links, &self.users) {
            let flow = &self.network.flows[number];
            found.extend(self.data_headers(number, links).map(side).unwrap_or_default());
            if flow.transport.packet_sizes().1 > 0 {
                let ack = Header { label: self.label(flow), ..Header::new(FlowId(0), 0) };
                let headers = self.headers(vec![ack], &self.returns[number], links);
                found.extend(headers.map(side).unwrap_or_default());
            }
        }
        each_once(found)
    }

    /// Returns the headers of a flow's data at these links; `None` if the data do not pass them.
    pub(crate) fn data_headers(&self, flow: usize, links: LinkSelection<'_>) -> Option<HeadersAtLink> {
        self.headers(self.sent(&self.network.flows[flow]), &self.routes[flow], links)
    }

    /// Returns the headers with which the packets of a flow are sent, or leave the first router if they are
    /// metered there.
    fn sent(&self, flow: &FlowSpec) -> Vec<Header> {
        let packet = Header { color: flow.color, label: self.label(flow), ..Header::new(FlowId(0), 0) };
        let plain = Header { dscp: flow.dscp, ..packet };
        let own = flow.transport.trace().into_iter().flat_map(|trace| trace.codepoints(flow.color));
        let mut sent: Vec<Header> = own.map(|(dscp, color)| Header { dscp, color, ..packet }).collect();
        if sent.is_empty() {
            sent.push(plain);
        }
        match self.network.meter_of(flow) {
            None => sent,
            Some(meter) => sent.into_iter().flat_map(|packet| marked_by(meter, packet)).collect(),
        }
    }

    /// Returns the headers at these links of packets that are sent with the headers `sent` on a route; `None`
    /// if it does not include the links.
    fn headers(&self, sent: Vec<Header>, route: &[usize], links: LinkSelection<'_>) -> Option<HeadersAtLink> {
        if links.anywhere {
            // Marks of other links on the way are not followed.
            return (!self.is_metered).then(|| HeadersAtLink { before: sent.clone(), behind: sent });
        }
        let &number = self.numbers.get(links.name)?;
        let place = route.iter().position(|&passed| passed == number)?;
        let changed = |number: usize, packets: &[Header]| {
            let meters = &self.network.links[number].meters;
            let behind = packets.iter().flat_map(|packet| AggregateMeter::possible(meters, *packet));
            each_once(behind.collect())
        };
        let mut before = sent;
        if self.is_metered {
            for &passed in &route[..place] {
                before = changed(passed, &before);
            }
        }
        let behind = changed(number, &before);
        Some(HeadersAtLink { before, behind })
    }
}

/// Removes packets that a `match` cannot tell apart.
fn each_once(mut packets: Vec<Header>) -> Vec<Header> {
    packets.sort_by_key(|packet| (packet.label, packet.dscp.get(), packet.color));
    packets.dedup_by_key(|packet| (packet.label, packet.dscp, packet.color));
    packets
}

/// Returns a packet, with the color with which it comes, in each color that a meter may give it.
pub fn marked_by(meter: &MeterParams, packet: Header) -> Vec<Header> {
    let best = if meter.reads_color() { packet.color } else { Color::Green };
    let marked = meter.colors_marked().filter(|color| *color >= best).map(|color| {
        let mut packet = packet;
        meter.af().mark(&mut packet, color);
        packet
    });
    marked.collect()
}
