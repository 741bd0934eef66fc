//! Which routers go to which thread, and which networks stay on one.
//!
//! Routers that may affect one another at once stay together: those that a link without look-ahead joins, and
//! the first routers of flows that share a meter. Beyond that the border should cross slow links, since each
//! round lasts as long as the fastest of them takes, and the parts should have equal work: so routers that
//! are close to one another are put together, as close as equal work allows. Parts are then cut from the
//! order in which a breadth-first search from one end of the network finds the groups.

use std::collections::VecDeque;

use perhop_core::{Bytes, Duration};

use crate::engine::failure::{LINKS_PER_THREAD, OneThread};
use crate::engine::setup::Setup;
use crate::flow::Flow;
use crate::network::{Marking, Network, NodeId};

use super::work::work;

/// All links together can send so many packets at least while one crosses the border: with fewer, barriers
/// take longer than the events between them.
const PACKETS_PER_ROUND: f64 = 100.0;

/// A part may have so much more work than its share, in percent.
const SLACK: u64 = 10;
/// Look-aheads of the border that are tried, from the longest on.
const TRIES: usize = 64;

/// How a network is divided among threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The number of routers of each part; one for each thread.
    pub routers: Vec<usize>,
    /// The share of each part in all work, by estimate: the packets that come to its links and hosts.
    pub work: Vec<f64>,
    /// Links from one part to another.
    pub border: usize,
    /// A packet takes at least this long from a part to another: so long the parts run without one another.
    pub lookahead: Duration,
}

impl Division {
    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.routers.len()
    }
}

/// The parts of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Partition {
    /// The part of each router.
    pub(super) of_node: Vec<u32>,
    pub(in crate::engine) parts: usize,
    /// A packet takes at least this long from a part to another.
    pub(super) lookahead: Duration,
}

impl Partition {
    /// Divides a network into at most so many parts.
    ///
    /// # Errors
    /// Why it stays whole.
    pub(in crate::engine) fn of(network: &Network, setup: &Setup, threads: usize) -> Result<Self, OneThread> {
        if threads <= 1 {
            return Err(OneThread::Asked);
        }
        check(network)?;
        let links = network.links.len();
        let most = (links / LINKS_PER_THREAD).min(threads);
        if most <= 1 {
            return Err(OneThread::Small { links });
        }
        let sizes = Sizes::of(network, setup);
        let partition = sizes.divide(most).ok_or(OneThread::Undivided)?;
        let lookahead = partition.lookahead;
        if sizes.most_within(lookahead) < PACKETS_PER_ROUND {
            return Err(OneThread::Brief { lookahead });
        }
        Ok(partition)
    }

    /// Returns what the parts have.
    pub(in crate::engine) fn division(&self, network: &Network, setup: &Setup) -> Division {
        let mut routers = vec![0; self.parts];
        let mut work = vec![0; self.parts];
        for (&part, own) in self.of_node.iter().zip(Sizes::of(network, setup).work) {
            routers[part as usize] += 1;
            work[part as usize] += own;
        }
        let total = work.iter().sum::<u64>() as f64;
        let part = |node: NodeId| self.of_node[node.0 as usize];
        let border = network.links.iter().filter(|link| part(link.from) != part(link.to)).count();
        let work = work.into_iter().map(|own| own as f64 / total).collect();
        Division { routers, work, border, lookahead: self.lookahead }
    }

    /// The division in which each router is in the part of this number.
    ///
    /// # Errors
    /// Routers of different parts may affect one another at once.
    pub(in crate::engine) fn by(
        network: &Network,
        setup: &Setup,
        of_node: &[u32],
    ) -> Result<Self, OneThread> {
        check(network)?;
        let sizes = Sizes::of(network, setup);
        let mut joined = sizes.joined.clone();
        let parts = of_node.iter().max().map_or(1, |&last| last as usize + 1);
        let together =
            (0..network.nodes).all(|node| of_node[node as usize] == of_node[joined.of(node) as usize]);
        let partition = sizes.with(of_node.to_vec(), parts);
        if together && !partition.lookahead.is_zero() { Ok(partition) } else { Err(OneThread::Undivided) }
    }
}

/// Finds what keeps a network on one thread: window controls, users, and flows of populations, whose numbers
/// depend on which others are over.
fn check(network: &Network) -> Result<(), OneThread> {
    if let Some(path) = network.paths.iter().find(|path| path.control.is_some()) {
        return Err(OneThread::Control { path: path.name.clone() });
    }
    if let Some(flow) = network.flows.iter().find(|flow| flow.population.is_some()) {
        return Err(OneThread::Population { flow: flow.name.clone() });
    }
    match network.applications.first() {
        None => Ok(()),
        Some(spec) => Err(OneThread::Application { group: spec.name.clone() }),
    }
}

/// The properties of a network on which its division depends.
struct Sizes<'a> {
    network: &'a Network,
    /// The least time in which a packet passes each link.
    passes: Vec<Duration>,
    /// The size of the largest packet.
    largest: Bytes,
    /// The work at each router.
    work: Vec<u64>,
    /// Routers that must stay together.
    joined: Groups,
}

impl<'a> Sizes<'a> {
    fn of(network: &'a Network, setup: &Setup) -> Self {
        let smallest = setup.flows.iter().map(Flow::smallest_packet).min().unwrap_or(0);
        let smallest = Bytes::new(u64::from(smallest));
        let passes = network
            .links
            .iter()
            .map(|link| link.medium.least_passage((link.rate, link.delay), smallest))
            .collect();
        let mut joined = Groups::new(network.nodes);
        let mut first_routers = vec![None; network.shared_meters.len()];
        for flow in &network.flows {
            if let Marking::Edge(meter) = flow.marking {
                let first = *first_routers[meter].get_or_insert(flow.from.0);
                joined.join(first, flow.from.0);
            }
        }
        Self { network, passes, largest: setup.largest_packet(), work: work(network, setup), joined }
    }

    /// Returns how many of the largest packets all links together can send in this time.
    fn most_within(&self, time: Duration) -> f64 {
        let links = self.network.links.iter();
        links.map(|link| time.as_secs_f64() / link.rate.time_of(self.largest).as_secs_f64()).sum()
    }

    /// The division with the longest look-ahead that is balanced.
    fn divide(&self, parts: usize) -> Option<Partition> {
        let mut lookaheads: Vec<Duration> =
            self.passes.iter().copied().filter(|pass| !pass.is_zero()).collect();
        lookaheads.sort_unstable_by(|a, b| b.cmp(a));
        lookaheads.dedup();
        let step = lookaheads.len().div_ceil(TRIES).max(1);
        let last = lookaheads.last().copied();
        let tried = lookaheads.iter().copied().step_by(step).chain(last);
        tried.into_iter().find_map(|lookahead| self.divide_beyond(lookahead, parts))
    }

    /// The division whose border crosses only links that take at least so long, if it is balanced.
    fn divide_beyond(&self, lookahead: Duration, parts: usize) -> Option<Partition> {
        let mut groups = self.joined.clone();
        for (link, &pass) in self.network.links.iter().zip(&self.passes) {
            if pass < lookahead {
                groups.join(link.from.0, link.to.0);
            }
        }
        let of_node: Vec<u32> = (0..self.network.nodes).map(|node| groups.of(node)).collect();
        let mut work = vec![0; of_node.len()];
        for (&group, own) in of_node.iter().zip(&self.work) {
            work[group as usize] += own;
        }
        let total: u64 = work.iter().sum();
        let share = total.div_ceil(parts as u64);
        let most = share + share * SLACK / 100;
        if work.iter().any(|&work| work > most) {
            return None;
        }
        let mut part_of = vec![0; of_node.len()];
        let mut done = 0;
        let mut loads = vec![0; parts];
        for group in self.in_order(&of_node) {
            // A group goes where its middle lies.
            let middle = done + work[group as usize] / 2;
            let part = (u128::from(middle) * parts as u128 / u128::from(total)) as usize;
            part_of[group as usize] = part as u32;
            loads[part] += work[group as usize];
            done += work[group as usize];
        }
        let balanced = loads.iter().all(|&load| load > 0 && load <= most + share * SLACK / 100);
        let of_node = of_node.iter().map(|&group| part_of[group as usize]).collect();
        balanced.then(|| self.with(of_node, parts))
    }

    /// The division in which each router is in the part of this number.
    fn with(&self, of_node: Vec<u32>, parts: usize) -> Partition {
        let part = |node: NodeId| of_node[node.0 as usize];
        let border =
            self.network.links.iter().zip(&self.passes).filter(|(link, _)| part(link.from) != part(link.to));
        let lookahead = border.map(|(_, &pass)| pass).min().unwrap_or(Duration::AGES);
        Partition { of_node, parts, lookahead }
    }

    /// The groups of routers in the order of a breadth-first search that begins at one end of the network.
    fn in_order(&self, of_node: &[u32]) -> Vec<u32> {
        let mut neighbours = vec![Vec::new(); of_node.len()];
        for link in &self.network.links {
            let (from, to) = (of_node[link.from.0 as usize], of_node[link.to.0 as usize]);
            if from != to {
                neighbours[from as usize].push(to);
                neighbours[to as usize].push(from);
            }
        }
        let is_group = |node: u32| of_node[node as usize] == node;
        let mut order: Vec<u32> = Vec::new();
        let mut found = vec![false; of_node.len()];
        for start in (0..of_node.len() as u32).filter(|&node| is_group(node)) {
            if found[start as usize] {
                continue;
            }
            let far = *search(start, &neighbours, &mut vec![false; of_node.len()]).last().unwrap_or(&start);
            order.extend(search(far, &neighbours, &mut found));
        }
        order
    }
}

/// Returns everything that can be reached, nearest first.
fn search(start: u32, neighbours: &[Vec<u32>], found: &mut [bool]) -> Vec<u32> {
    let mut order = Vec::new();
    let mut queue = VecDeque::from([start]);
    found[start as usize] = true;
    while let Some(group) = queue.pop_front() {
        order.push(group);
        for &next in &neighbours[group as usize] {
            if !std::mem::replace(&mut found[next as usize], true) {
                queue.push_back(next);
            }
        }
    }
    order
}

/// Disjoint groups of routers; each is known by one of them.
#[derive(Clone, Debug)]
struct Groups(Vec<u32>);

impl Groups {
    fn new(nodes: u32) -> Self {
        Self((0..nodes).collect())
    }

    fn of(&mut self, node: u32) -> u32 {
        let Self(parents) = self;
        let mut node = node;
        while parents[node as usize] != node {
            parents[node as usize] = parents[parents[node as usize] as usize];
            node = parents[node as usize];
        }
        node
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.of(one), self.of(other));
        let (low, high) = (one.min(other), one.max(other));
        self.0[high as usize] = low;
    }
}
