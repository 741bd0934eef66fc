//! The routes of all flows of a network at once: one search for each router at which some begin.

use std::collections::{BTreeMap, VecDeque};

use crate::network::{Network, NodeId};

/// No link leads to a router.
const NONE: u32 = u32::MAX;

/// The routes of a network's flows: those of [`Network::route_of`], each pair of routers and each path once.
#[derive(Clone, Debug)]
pub struct Routes {
    /// The numbers of links, all routes end to end.
    links: Vec<u32>,
    /// Where each route begins and ends there; `None` if there is none.
    spans: Vec<Option<(u32, u32)>>,
    /// The numbers of the routes of each flow's data and of its acknowledgements.
    flows: Vec<[u32; 2]>,
}

impl Routes {
    /// Returns the route of a flow's data, or of its acknowledgements.
    pub fn of(&self, flow: usize, acknowledges: bool) -> Option<Vec<usize>> {
        let (begin, end) = self.spans[self.number(flow, acknowledges)]?;
        Some(self.links[begin as usize..end as usize].iter().map(|&link| link as usize).collect())
    }

    /// Returns the number of a route: flows with the same number have the same one.
    pub(crate) fn number(&self, flow: usize, acknowledges: bool) -> usize {
        self.flows[flow][usize::from(acknowledges)] as usize
    }

    /// Returns the links of the route of a flow's data or acknowledgements; none if there is no route.
    pub(crate) fn links(&self, flow: usize, acknowledges: bool) -> &[u32] {
        let (begin, end) = self.spans[self.number(flow, acknowledges)].unwrap_or_default();
        &self.links[begin as usize..end as usize]
    }
}

impl Network {
    /// Returns the links of a path with the fewest hops; `None` if there is none. Among equals, the links
    /// named first win.
    pub fn route(&self, from: NodeId, to: NodeId) -> Option<Vec<usize>> {
        let (mut search, mut links) = (Search::new(self.nodes), Vec::new());
        search.from(self, &Outgoing::of(self), from);
        search.add_route(self, to, &mut links)?;
        Some(links.into_iter().map(|link| link as usize).collect())
    }

    /// Returns the routes of all flows. Time grows with the routers at which routes begin times the links,
    /// and with the lengths of routes; memory with the lengths of routes alone.
    pub fn routes(&self) -> Routes {
        let mut numbers: BTreeMap<(NodeId, NodeId), u32> = BTreeMap::new();
        let mut own: BTreeMap<(usize, bool), u32> = BTreeMap::new();
        let mut spans = Vec::new();
        let mut links = Vec::new();
        let mut flows = Vec::with_capacity(self.flows.len());
        for flow in &self.flows {
            flows.push([false, true].map(|acknowledges| {
                let next = spans.len() as u32;
                let ends = if acknowledges { (flow.to, flow.from) } else { (flow.from, flow.to) };
                let number = match flow.path {
                    None => *numbers.entry(ends).or_insert(next),
                    // A path may not lead where the flow goes, which is the flow's own matter.
                    Some(path) => {
                        let begin = links.len() as u32;
                        let found = self.route_of(flow, acknowledges);
                        let number = match found {
                            Some(_) => *own.entry((path, acknowledges)).or_insert(next),
                            None => next,
                        };
                        if number == next {
                            spans.push(found.map(|found| {
                                links.extend(found.iter().map(|&link| link as u32));
                                (begin, links.len() as u32)
                            }));
                        }
                        return number;
                    }
                };
                if number == next {
                    spans.push(None);
                }
                number
            }));
        }
        let outgoing = Outgoing::of(self);
        let mut search = Search::new(self.nodes);
        let mut source = None;
        // In the order of sources.
        for (&(from, to), &number) in &numbers {
            if source != Some(from) {
                search.from(self, &outgoing, from);
                source = Some(from);
            }
            spans[number as usize] = search.add_route(self, to, &mut links);
        }
        Routes { links, spans, flows }
    }
}

/// The links that leave each router, in the order of their numbers.
struct Outgoing {
    links: Vec<u32>,
    /// Where those of each router begin, and behind the last where they end.
    first: Vec<u32>,
}

impl Outgoing {
    fn of(network: &Network) -> Self {
        let mut first = vec![0; network.nodes as usize + 1];
        network.links.iter().for_each(|link| first[link.from.0 as usize + 1] += 1);
        (1..first.len()).for_each(|node| first[node] += first[node - 1]);
        let mut next = first.clone();
        let mut links = vec![0; network.links.len()];
        for (number, link) in network.links.iter().enumerate() {
            let place = &mut next[link.from.0 as usize];
            links[*place as usize] = number as u32;
            *place += 1;
        }
        Self { links, first }
    }

    fn leaving(&self, node: NodeId) -> &[u32] {
        let node = node.0 as usize;
        &self.links[self.first[node] as usize..self.first[node + 1] as usize]
    }
}

/// A search in the order of hops from one router: the link by which each other one is reached first.
struct Search {
    source: NodeId,
    reached_by: Vec<u32>,
    waiting: VecDeque<NodeId>,
}

impl Search {
    fn new(nodes: u32) -> Self {
        Self { source: NodeId(0), reached_by: vec![NONE; nodes as usize], waiting: VecDeque::new() }
    }

    fn from(&mut self, network: &Network, outgoing: &Outgoing, source: NodeId) {
        self.source = source;
        self.reached_by.fill(NONE);
        self.waiting.push_back(source);
        while let Some(node) = self.waiting.pop_front() {
            for &link in outgoing.leaving(node) {
                let to = network.links[link as usize].to;
                let seen = &mut self.reached_by[to.0 as usize];
                if *seen == NONE && to != source {
                    *seen = link;
                    self.waiting.push_back(to);
                }
            }
        }
    }

    /// Adds the links to a router. Returns their place, or `None` if it is not reached.
    fn add_route(&self, network: &Network, to: NodeId, links: &mut Vec<u32>) -> Option<(u32, u32)> {
        let begin = links.len();
        let mut node = to;
        while node != self.source {
            let link = self.reached_by[node.0 as usize];
            if link == NONE {
                return None;
            }
            links.push(link);
            node = network.links[link as usize].from;
        }
        links[begin..].reverse();
        Some((begin as u32, links.len() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{FlowSpec, LinkSpec, Marking, PathSpec};
    use crate::transport::tcp::{TcpEcn, TcpParams};
    use perhop_core::medium::Medium;
    use perhop_core::{Color, Dscp, Duration, Ecn, Instant};
    use proptest::prelude::*;

    fn flow(from: u32, to: u32, path: Option<usize>) -> FlowSpec {
        FlowSpec {
            name: "flow".into(),
            from: NodeId(from),
            to: NodeId(to),
            path,
            access: None,
            egress: None,
            dispatch_jitter: None,
            transport: serde_json::from_str::<TcpParams>(r#"{"tcp": "reno"}"#).unwrap().into(),
            marking: Marking::None,
            color: Color::Yellow,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotCapable,
            service: None,
            reserved: None,
            tcp_ecn: TcpEcn::Off,
            play_out: None,
            out_feedback: None,
            start: (Instant::ZERO, Instant::ZERO),
            stop: None,
            volume: None,
            population: None,
        }
    }

    fn network(nodes: u32, links: &[(u32, u32)], flows: Vec<FlowSpec>) -> Network {
        let link = |&(from, to): &(u32, u32)| LinkSpec {
            name: format!("{from}-{to}"),
            from: NodeId(from),
            to: NodeId(to),
            rate: "1Mbps".parse().unwrap(),
            delay: Duration::ZERO,
            queue: None,
            meters: Vec::new(),
            medium: Medium::default(),
        };
        let links = links.iter().map(link).collect();
        Network { nodes, links, flows, ..Network::new(Duration::from_secs(1)) }
    }

    /// The route of a flow's data, or of its acknowledgements, by a search of its own.
    fn searched(network: &Network, flow: &FlowSpec, acknowledges: bool) -> Option<Vec<usize>> {
        if flow.path.is_some() {
            return network.route_of(flow, acknowledges);
        }
        let (from, to) = if acknowledges { (flow.to, flow.from) } else { (flow.from, flow.to) };
        let mut reached = vec![(from, Vec::new())];
        let mut next = 0;
        while let Some((node, path)) = reached.get(next).cloned() {
            if node == to {
                return Some(path);
            }
            for (number, link) in network.links.iter().enumerate().filter(|(_, link)| link.from == node) {
                if reached.iter().all(|&(known, _)| known != link.to) {
                    reached.push((link.to, [&path[..], &[number]].concat()));
                }
            }
            next += 1;
        }
        None
    }

    proptest! {
        #[test]
        fn routes_are_those_of_a_search_for_each_flow(
            nodes in 2_u32..12,
            links in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..40),
            ends in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()), 1..30),
        ) {
            let node = |index: prop::sample::Index| index.index(nodes as usize) as u32;
            let links: Vec<_> = links.into_iter().map(|(from, to)| (node(from), node(to))).filter(|(from, to)| from != to).collect();
            // Path 0 has the first link; it leads where few flows go.
            let flows = ends.into_iter().map(|(from, to, on_path)| {
                let path = (on_path && !links.is_empty()).then_some(0);
                match path.map(|_| links[0]) {
                    Some((first, last)) if from.index(2) == 0 => flow(first, last, path),
                    _ => flow(node(from), node(to), path),
                }
            });
            let mut network = network(nodes, &links, flows.collect());
            network.paths.push(PathSpec { name: "p".into(), label: 1, forward: vec![0], backward: vec![0], control: None });
            let routes = network.routes();
            for (number, spec) in network.flows.iter().enumerate() {
                for acknowledges in [false, true] {
                    let found = routes.of(number, acknowledges);
                    prop_assert_eq!(&found, &network.route_of(spec, acknowledges));
                    prop_assert_eq!(&found, &searched(&network, spec, acknowledges));
                    let links: Vec<usize> = routes.links(number, acknowledges).iter().map(|&link| link as usize).collect();
                    prop_assert_eq!(links, found.unwrap_or_default());
                }
            }
        }
    }

    #[test]
    fn a_route_is_stored_once() {
        let flows = vec![flow(0, 2, None), flow(0, 2, None), flow(2, 0, None)];
        let routes = network(3, &[(0, 1), (1, 2), (2, 1), (1, 0)], flows).routes();
        assert_eq!(routes.flows, [[0, 1], [0, 1], [1, 0]]);
        assert_eq!((routes.links.len(), routes.spans.len()), (4, 2));
    }
}
