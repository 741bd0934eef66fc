//! Two groups of routers whose clocks take turns, so that each link has more to do at a time.
//!
//! If all links advance together, each may advance by the look-ahead `L`, the least time in which a packet passes a link. A network
//! whose routers are on a grid or a tree allows twice that: its routers have two colors so that every link leads from one color to the
//! other. A packet that arrives at a link of one color has left a link of the other, so one color may always advance to `L` beyond the clock of
//! the other, which is `2 L` beyond its own. A link that takes at least `2 L` may also join routers of one color. The hosts at a router
//! advance with its links.
//!
//! A visit to a link in a large network costs mostly the wait for its state, and brings it twice the packets.

use std::collections::VecDeque;

use perhop_core::{Duration, Instant};

use super::acceptance::{Accepted, passes};
use super::traffic::Traffic;
use crate::network::{FlowSpec, Network};

/// Turns that are tried, from the longest on.
const TRIES: usize = 16;

/// The groups of a network, and how far each has come.
#[derive(Clone, Debug)]
pub(super) struct Phases {
    /// For each link, the group of the router that it leaves.
    pub(super) of_links: Vec<u8>,
    /// A group may advance so far beyond the clock of the other.
    lead: Duration,
    /// Everything before these times has been handled, by group.
    clocks: [Instant; 2],
    /// The next sample of the probe, which concerns both groups.
    pub(super) sample_at: Instant,
}

/// The groups of the two hosts of a flow: of the one that sends data, and of the one that receives it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Groups {
    pub(super) sender: u8,
    pub(super) receiver: u8,
}

impl Phases {
    /// The groups of a network, unless it has none that advance further than all of it together. Tells its flows their groups.
    pub(super) fn of(network: &Network, accepted: Accepted, traffic: &mut Traffic) -> Option<Self> {
        let joins_more = traffic.channels.len() > 0 || traffic.controls.len() > 0;
        if joins_more || traffic.are_mixed || !network.shared_meters.is_empty() {
            return None;
        }
        let passes = passes(network, accepted.smallest);
        let mut turns = passes.clone();
        let longest = accepted.lookahead + accepted.lookahead;
        turns.retain(|&turn| turn > accepted.lookahead && turn < longest);
        turns.push(longest);
        turns.sort_unstable_by(|a, b| b.cmp(a));
        turns.dedup();
        let found =
            turns.into_iter().take(TRIES).find_map(|turn| Some((turn, color(network, &passes, turn)?)));
        let (turn, colors) = found?;
        let of = |node: crate::network::NodeId| colors[node.0 as usize];
        let groups = |spec: &FlowSpec| Groups { sender: of(spec.from), receiver: of(spec.to) };
        let are_apart =
            |spec: &FlowSpec| of(spec.from) != of(spec.to) && !spec.transport.acknowledges_at_once();
        if network.flows.iter().any(are_apart) {
            return None; // An event of such a flow may concern either of its hosts.
        }
        for (flow, spec) in traffic.flows.iter_mut().zip(&network.flows) {
            flow.groups = groups(spec);
        }
        Some(Self {
            of_links: network.links.iter().map(|link| of(link.from)).collect(),
            lead: Duration::from_nanos(turn.as_nanos() / 2),
            clocks: [Instant::ZERO; 2],
            sample_at: Instant::NEVER,
        })
    }

    /// The group whose turn it is, and up to when; nothing happens anywhere before `first`. `None` if both have come to `bound`.
    pub(super) fn turn(&mut self, first: Instant, bound: Instant) -> Option<(u8, Instant)> {
        self.clocks = self.clocks.map(|clock| clock.max(first.min(bound)));
        let [one, other] = self.clocks;
        if one.min(other) >= bound {
            return None;
        }
        let group = u8::from(other < one);
        Some((group, (one.max(other) + self.lead).min(bound)))
    }

    /// A group has come to this time.
    pub(super) fn advance(&mut self, group: u8, to: Instant) {
        self.clocks[usize::from(group)] = to;
    }
}

/// The color of each router, so that links that take less than a `turn` lead from one color to the other.
fn color(network: &Network, passes: &[Duration], turn: Duration) -> Option<Vec<u8>> {
    let nodes = network.nodes as usize;
    let mut neighbours = vec![Vec::new(); nodes];
    for (link, &pass) in network.links.iter().zip(passes) {
        if pass < turn {
            neighbours[link.from.0 as usize].push(link.to.0);
            neighbours[link.to.0 as usize].push(link.from.0);
        }
    }
    let mut colors = vec![u8::MAX; nodes];
    let mut pending = VecDeque::new();
    for root in 0..nodes {
        if colors[root] != u8::MAX {
            continue;
        }
        colors[root] = 0;
        pending.push_back(root);
        while let Some(node) = pending.pop_front() {
            for &next in &neighbours[node] {
                let next = next as usize;
                if colors[next] == u8::MAX {
                    colors[next] = 1 - colors[node];
                    pending.push_back(next);
                } else if colors[next] == colors[node] {
                    return None;
                }
            }
        }
    }
    Some(colors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{LinkSpec, NodeId};
    use perhop_core::Bytes;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn each_group_advances_to_the_lead_beyond_the_other() {
        let mut phases = Phases {
            of_links: Vec::new(),
            lead: Duration::from_nanos(10),
            clocks: [Instant::ZERO; 2],
            sample_at: Instant::NEVER,
        };
        let mut turns = Vec::new();
        while let Some((group, to)) = phases.turn(at(5), at(50)) {
            turns.push((group, to.as_nanos()));
            phases.advance(group, to);
        }
        assert_eq!(turns, [(0, 15), (1, 25), (0, 35), (1, 45), (0, 50), (1, 50)]);
        // Nothing happens before 80: both are there.
        assert_eq!(phases.turn(at(80), at(100)), Some((0, at(90))));
    }

    /// Routers joined by links in both directions, of these delays in milliseconds.
    fn network(routers: u32, links: &[(u32, u32, u64)]) -> (Network, Vec<Duration>) {
        let both = links.iter().flat_map(|&(from, to, delay)| [(from, to, delay), (to, from, delay)]);
        let link = |(from, to, millis): (u32, u32, u64)| LinkSpec {
            name: format!("{from}-{to}"),
            from: NodeId(from),
            to: NodeId(to),
            rate: "8Mbps".parse().unwrap(),
            delay: Duration::from_millis(millis),
            queue: None,
            meters: Vec::new(),
            medium: crate::medium::Medium::default(),
        };
        let links = both.map(link).collect();
        let network = Network { nodes: routers, links, ..Network::new(Duration::from_secs(1)) };
        let passes = passes(&network, Bytes::new(0));
        (network, passes)
    }

    #[test]
    fn short_links_lead_from_one_color_to_the_other() {
        let turn = Duration::from_millis(2);
        let color = |(network, passes): (Network, Vec<Duration>)| color(&network, &passes, turn);
        let square = [(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)];
        assert_eq!(color(network(4, &square)), Some(vec![0, 1, 0, 1]));
        // A triangle has no such colors, unless one of its links takes a whole turn.
        assert_eq!(color(network(3, &[(0, 1, 1), (1, 2, 1), (2, 0, 1)])), None);
        assert_eq!(color(network(3, &[(0, 1, 1), (1, 2, 1), (2, 0, 2)])), Some(vec![0, 1, 0]));
    }
}
