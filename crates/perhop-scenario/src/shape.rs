//! What a network of routers is like: its size, its distances, and its links written out.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::check::Routers;
use crate::format::{Links, Scenario, Topology};

/// The most routers of a network whose distances are computed: the time grows with their number times that of
/// links.
const MOST_MEASURED: usize = 20_000;
/// The most of that product: some seconds.
const MOST_STEPS: usize = 2_000_000_000;

/// What a network of routers is like.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Shape {
    /// What it is made of, in a few words, if the scenario has a topology.
    pub words: Option<String>,
    /// The number of routers.
    pub routers: usize,
    /// The number of links, both directions together.
    pub links: usize,
    /// The tiers, from the highest to the lowest; all routers are one if there is no topology.
    pub tiers: Vec<Tier>,
    /// How many routers have each number of links.
    pub degrees: BTreeMap<u32, usize>,
    /// Parts that no link connects.
    pub parts: usize,
    /// The most hops between two routers that are connected. `None` beyond 20 000 routers, or 2·10⁹ routers
    /// times links.
    pub diameter: Option<u32>,
    /// The mean number of hops between two routers that are connected.
    pub mean_hops: Option<f64>,
}

/// The routers of a tier, and the links whose lower end they are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tier {
    /// The name of the tier.
    pub name: String,
    /// How many routers the tier has.
    pub routers: usize,
    /// How many links have their lower end at these routers.
    pub links: usize,
    /// The least and the most links of one of its routers.
    pub degrees: (u32, u32),
}

impl Scenario {
    /// Returns what its network is like.
    pub fn shape(&self) -> Shape {
        let routers = Routers::of(self);
        let known = self.tiers();
        let mut order: Vec<&'static str> = Vec::new();
        let planned = self.plan.iter().flat_map(|plan| &plan.routers);
        planned.map(|(_, tier)| *tier).chain(["router"]).for_each(|tier| {
            if !order.contains(&tier) {
                order.push(tier);
            }
        });
        let tier_of = |name: &str| known.get(name).copied().unwrap_or("router");
        let tiers = order.into_iter().map(|tier| {
            let mine = (0..routers.count()).filter(|&router| tier_of(routers.name(router)) == tier);
            let degrees: Vec<u32> = mine.map(|router| routers.degrees()[router as usize]).collect();
            let links = self.links.keys().filter(|name| self.links.tier(name).unwrap_or("router") == tier);
            Tier {
                name: tier.into(),
                routers: degrees.len(),
                links: links.count(),
                degrees: (
                    degrees.iter().min().copied().unwrap_or(0),
                    degrees.iter().max().copied().unwrap_or(0),
                ),
            }
        });
        let mut degrees = BTreeMap::new();
        routers.degrees().iter().for_each(|&degree| *degrees.entry(degree).or_default() += 1);
        let hops = self.hops(&routers);
        Shape {
            words: self.topology.as_ref().map(Topology::words),
            routers: routers.count() as usize,
            links: self.links.len(),
            tiers: tiers.filter(|tier| tier.routers > 0).collect(),
            degrees,
            parts: (0..routers.count()).filter(|&router| routers.leads(router)).count(),
            diameter: hops.map(|(most, _)| most),
            mean_hops: hops.map(|(_, mean)| mean),
        }
    }

    /// Returns the most hops from one router to another, and their mean.
    fn hops(&self, routers: &Routers<'_>) -> Option<(u32, f64)> {
        const UNSEEN: u32 = u32::MAX;
        let count = routers.count() as usize;
        if count > MOST_MEASURED || count * self.links.len() > MOST_STEPS {
            return None;
        }
        let mut beside: Vec<Vec<u32>> = vec![Vec::new(); count];
        for link in self.links.values() {
            let ends = routers.number(&link.from).zip(routers.number(&link.to));
            let (from, to) = ends.expect("a link's router is one");
            beside[from as usize].push(to);
            beside[to as usize].push(from);
        }
        let (mut most, mut sum, mut pairs) = (0, 0_u64, 0_u64);
        let mut away = vec![UNSEEN; count];
        let mut waiting = VecDeque::new();
        for start in 0..count as u32 {
            away.fill(UNSEEN);
            away[start as usize] = 0;
            waiting.push_back(start);
            while let Some(router) = waiting.pop_front() {
                let next = away[router as usize] + 1;
                for &other in &beside[router as usize] {
                    if away[other as usize] == UNSEEN {
                        away[other as usize] = next;
                        most = most.max(next);
                        sum += u64::from(next);
                        pairs += 1;
                        waiting.push_back(other);
                    }
                }
            }
        }
        Some((most, sum as f64 / pairs.max(1) as f64))
    }

    /// Returns the scenario with a table for each link in place of its topology.
    #[must_use]
    pub fn written_out(&self) -> Self {
        let names = |tier: &str| {
            let mut names: Vec<String> = Vec::new();
            names.extend(
                self.tiers().iter().filter(|(_, of)| **of == tier).map(|(name, _)| (*name).to_owned()),
            );
            names
        };
        let mut written = self.clone();
        for between in written.flows.iter_mut().filter_map(|group| group.between.as_mut()) {
            if between.demands.is_empty() && self.topology.is_some() {
                let tiers = match (&between.among[..], self.lowest_tier()) {
                    ([], Some(tier)) => vec![tier.to_owned()],
                    (among, _) => among.to_vec(),
                };
                let among = tiers.iter().map(|wanted| match names(wanted) {
                    routers if routers.is_empty() => vec![wanted.clone()],
                    routers => routers,
                });
                between.among = among.flatten().collect();
            }
        }
        written.links = Links::written_out(&self.links);
        (written.topology, written.plan) = (None, None);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(topology: &str) -> Scenario {
        let text = format!(
            "duration = \"1s\"\n[topology]\n{topology}\nlink = {{ rate = \"1Mbps\", delay = \"1ms\" }}\n[[flows]]\nname = \"f\"\n\
             count = 20\nbetween = {{}}\ntransport = {{ tcp = \"newreno\" }}\n"
        );
        Scenario::from_toml(&text, "s.toml").unwrap()
    }

    #[test]
    fn distances_by_hand() {
        // In a row of 4 there are 3, 2 and 1 pairs at 1, 2 and 3 hops; in a circle of 6, each router has 2, 2
        // and 1.
        for (topology, diameter, mean) in [
            ("chain = 4", 3, 10.0 / 6.0),
            ("ring = 6", 3, 9.0 / 5.0),
            ("star = 5", 2, 50.0 / 30.0),
            ("fat-tree = { k = 4, hosts = false }", 4, f64::NAN),
        ] {
            let shape = scenario(topology).shape();
            assert_eq!((shape.diameter, shape.parts), (Some(diameter), 1), "{topology}");
            assert!(mean.is_nan() || (shape.mean_hops.unwrap() - mean).abs() < 1e-12, "{shape:?}");
        }
        let shape = scenario("fat-tree = { k = 4 }").shape();
        let tiers: Vec<_> = shape
            .tiers
            .iter()
            .map(|tier| (tier.name.as_str(), tier.routers, tier.links, tier.degrees))
            .collect();
        assert_eq!(
            tiers,
            [
                ("core", 4, 0, (4, 4)),
                ("aggregation", 8, 16, (4, 4)),
                ("edge", 8, 16, (4, 4)),
                ("host", 16, 16, (1, 1))
            ]
        );
        assert_eq!((shape.diameter, shape.degrees), (Some(6), [(1, 16), (4, 20)].into()));
    }

    #[test]
    fn what_is_written_out_is_the_same_network() {
        for topology in ["isp = { core = 4, aggregation = 2, edge = 2 }", "fat-tree = { k = 4 }", "ring = 5"]
        {
            let short = scenario(topology);
            let long = Scenario::from_toml(&short.written_out().to_toml(), "long.toml").unwrap();
            let parts = |scenario: &Scenario| {
                let network = scenario.network();
                (format!("{:?}", network.links), format!("{:?}", network.flows))
            };
            assert_eq!(parts(&short), parts(&long), "{topology}");
        }
    }
}
