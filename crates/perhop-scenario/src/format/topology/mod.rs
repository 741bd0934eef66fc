//! Topologies: from a rule, or from a graph, to routers and links by name.

mod distance;
mod generators;
mod graph;
mod links;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use perhop_core::{Bitrate, Duration};
use schemars::JsonSchema;
use serde::de::{self, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_untagged::UntaggedEnumVisitor;

use crate::error::{KeyPart, Problem, did_you_mean, steps};
use crate::files::Files;
use crate::format::{Link, Queue, REVERSE, Reverse, Scenario};

pub use self::graph::{Graph, GraphLink};
pub use self::links::Links;

/// The most routers and links of a topology: more exceed the memory of a machine.
const MOST_ROUTERS: u64 = 100_000;
const MOST_LINKS: u64 = 1_000_000;
/// The most routers around another.
const MOST_LEAVES: u64 = MOST_ROUTERS - 1;

/// Routers and links by a rule, in place of a table for each link. One of `chain`, `ring`, `star`,
/// `fat-tree`, `isp` and `graph`.
///
/// A link has the name `A--B` of its routers. A table `[links."A--B"]` replaces it; other tables add links.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Topology {
    /// So many routers in a row, `r1`, `r2` and so on.
    #[serde(default, deserialize_with = "size::<2, MOST_ROUTERS, _>")]
    pub chain: Option<u32>,
    /// So many routers in a circle, `r1`, `r2` and so on.
    #[serde(default, deserialize_with = "size::<3, MOST_ROUTERS, _>")]
    pub ring: Option<u32>,
    /// A router `hub` with so many others around it, `leaf1`, `leaf2` and so on.
    #[serde(default, deserialize_with = "size::<2, MOST_LEAVES, _>")]
    pub star: Option<u32>,
    /// A fat tree, the network of a data center.
    pub fat_tree: Option<FatTree>,
    /// A network like that of an Internet service provider: a core, aggregation, edge.
    pub isp: Option<Isp>,
    /// A graph, as a file or a list of links.
    pub graph: Option<Graph>,
    /// What all links are like, in both directions.
    pub link: TopologyLink,
    /// What the links of a tier have in place of that. A link belongs to the tier of its lower end: those
    /// from `edge` to `aggregation` are of the tier `edge`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, TierLink>,
    /// The tiers whose links are in results. In a large network the results of all take more memory than the
    /// run. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<String>,
}

/// What the links of a topology are like, in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TopologyLink {
    /// Rate of each direction.
    pub rate: Bitrate,
    /// Propagation delay of each direction.
    pub delay: Duration,
    /// The queue of each direction. Default: a queue without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

impl Default for TopologyLink {
    /// Returns the links that `perhop topology` shows without a scenario.
    fn default() -> Self {
        Self {
            rate: Bitrate::from_bps(1_000_000_000).expect("above zero"),
            delay: Duration::from_millis(1),
            queue: None,
        }
    }
}

/// What the links of a tier have in place of what all links have.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TierLink {
    /// Rate of each direction. Default: that of `link`.
    pub rate: Option<Bitrate>,
    /// Propagation delay of each direction. Default: that of `link`.
    pub delay: Option<Duration>,
    /// The queue of each direction. Default: that of `link`.
    pub queue: Option<Queue>,
}

/// A fat tree of switches with k ports (Al-Fares and others, 2008): 5k²/4 switches, k³/4 hosts.
///
/// Each of k pods has k/2 switches `podP-edgeE`, each joined to k/2 hosts `podP-edgeE-hostH` and to all k/2
/// switches `podP-aggA`; the k²/4 switches `coreC` join the pods. The tiers are `aggregation`, `edge` and
/// `host`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FatTree {
    /// The ports of a switch: an even number.
    pub k: u32,
    /// Whether the hosts are nodes of the network, each with one link. Without them flows begin at the
    /// switches `podP-edgeE`.
    #[serde(default = "yes")]
    pub hosts: bool,
}

/// A network like a provider's: `core` · (1 + `aggregation` · (1 + `edge`)) routers.
///
/// The routers `coreC` form a ring with chords at random. Each has `aggregation` routers `coreC-aggA`, which
/// are also joined to the next router of the ring, and each of these `edge` routers `coreC-aggA-edgeE`. The
/// tiers are `core`, `aggregation` and `edge`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Isp {
    /// Routers of the core: at least 3.
    pub core: u32,
    /// Aggregation routers of each core router.
    pub aggregation: u32,
    /// Edge routers of each aggregation router.
    pub edge: u32,
    /// Links between routers of the core that are not neighbors, drawn at random. Default: half as many as
    /// these routers, as far as there are pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chords: Option<u32>,
    /// The seed of that draw: it is part of the network, the same in all runs.
    #[serde(default)]
    pub seed: u32,
}

/// Reads a number of routers. What is none is refused with the range; [`Topology::plan`] refuses what is out
/// of it.
fn size<'de, const LEAST: u64, const MOST: u64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    let expected = format!("a whole number from {LEAST} to {MOST}");
    let refused = |size| de::Error::invalid_value(size, &expected.as_str());
    UntaggedEnumVisitor::new()
        .expecting(&expected)
        .unit(|| Ok(None))
        .u64(|size| u32::try_from(size).map(Some).map_err(|_| refused(Unexpected::Unsigned(size))))
        .i64(|size| u32::try_from(size).map(Some).map_err(|_| refused(Unexpected::Signed(size))))
        .deserialize(deserializer)
}

const fn yes() -> bool {
    true
}

/// Routers and links by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// The routers, each with its tier, the lowest tier last.
    pub(crate) routers: Vec<(String, &'static str)>,
    /// The links, each from the lower tier to the higher one.
    pub(crate) links: Vec<PlannedLink>,
}

/// A link of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlannedLink {
    pub(crate) name: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) tier: &'static str,
    /// The rate in the graph, if it has one.
    pub(crate) rate: Option<Bitrate>,
    pub(crate) delay: Option<Duration>,
}

impl Plan {
    fn router(&mut self, name: impl Into<String>, tier: &'static str) {
        self.routers.push((name.into(), tier));
    }

    fn link(&mut self, from: impl Into<String>, to: impl Into<String>, tier: &'static str) {
        let (from, to) = (from.into(), to.into());
        let name = format!("{from}--{to}");
        self.links.push(PlannedLink { name, from, to, tier, rate: None, delay: None });
    }

    /// Returns the tiers of its links, in order.
    fn tiers(&self) -> BTreeSet<&'static str> {
        self.links.iter().map(|link| link.tier).collect()
    }
}

/// Returns a problem at a key of the topology.
fn refused(key: &str, text: impl Into<String>) -> Problem {
    let place = steps("topology").chain(steps(key).filter(|_| !key.is_empty()));
    Problem::at(place, text)
}

impl Topology {
    /// Returns the routers and links of the topology.
    fn plan(&self) -> Result<Plan, Problem> {
        let Self { chain, ring, star, fat_tree, isp, graph, .. } = self;
        let given = [
            ("chain", chain.is_some()),
            ("ring", ring.is_some()),
            ("star", star.is_some()),
            ("fat-tree", fat_tree.is_some()),
            ("isp", isp.is_some()),
            ("graph", graph.is_some()),
        ];
        let mut given = given.into_iter().filter_map(|(key, is_given)| is_given.then_some(key));
        let kinds = "one of `chain`, `ring`, `star`, `fat-tree`, `isp` and `graph`";
        let Some(first) = given.next() else {
            return Err(refused("", format!("say which topology: {kinds}")));
        };
        if let Some(second) = given.next() {
            return Err(refused(second, format!("there is `{first}` already; a topology is {kinds}")));
        }
        if let Some(graph) = graph {
            return graph.plan();
        }
        let fits = |routers: u64, links: u64| {
            let most = format!("at most {MOST_ROUTERS} routers and {MOST_LINKS} links");
            if routers <= MOST_ROUTERS && links <= MOST_LINKS {
                Ok(())
            } else {
                Err(refused(first, format!("{routers} routers and {links} links; a topology has {most}")))
            }
        };
        if let Some(routers) = *chain {
            generators::check_size("chain", routers, 2)?;
            fits(routers.into(), u64::from(routers) - 1)?;
            return Ok(generators::chain(routers));
        }
        if let Some(routers) = *ring {
            generators::check_size("ring", routers, 3)?;
            fits(routers.into(), routers.into())?;
            return Ok(generators::ring(routers));
        }
        if let Some(leaves) = *star {
            generators::check_size("star", leaves, 2)?;
            fits(u64::from(leaves) + 1, leaves.into())?;
            return Ok(generators::star(leaves));
        }
        if let Some(tree) = fat_tree {
            tree.check()?;
            let (routers, links) = tree.size();
            fits(routers, links)?;
            return Ok(generators::fat_tree(tree));
        }
        let isp = isp.as_ref().expect("one is given");
        isp.check()?;
        let (routers, links) = isp.size();
        fits(routers, links)?;
        Ok(generators::isp(isp))
    }

    /// Returns a link of its plan, as if a table had described it.
    fn link(&self, planned: &PlannedLink) -> Link {
        let tier = self.tiers.get(planned.tier);
        let queue = self.queue(tier);
        let reverse = queue.cloned().map(|queue| Reverse { queue: Some(queue), ..Reverse::default() });
        Link {
            from: planned.from.clone(),
            to: planned.to.clone(),
            rate: planned.rate.or(tier.and_then(|tier| tier.rate)).unwrap_or(self.link.rate),
            delay: planned.delay.or(tier.and_then(|tier| tier.delay)).unwrap_or(self.link.delay),
            queue: queue.cloned(),
            meters: Vec::new(),
            rate_trace: None,
            changes: Vec::new(),
            outages: Vec::new(),
            loss: None,
            burst_loss: None,
            jitter: None,
            reverse,
        }
    }

    fn queue<'a>(&'a self, tier: Option<&'a TierLink>) -> Option<&'a Queue> {
        tier.and_then(|tier| tier.queue.as_ref()).or(self.link.queue.as_ref())
    }

    /// Returns the key of the queue of the links of a tier in the scenario.
    pub(crate) fn queue_place(&self, tier: &str) -> Vec<KeyPart> {
        let key = |key: &str| KeyPart::Key(key.into());
        let own = self.tiers.get(tier).is_some_and(|tier| tier.queue.is_some());
        if own {
            vec![key("topology"), key("tiers"), key(tier), key("queue")]
        } else {
            vec![key("topology"), key("link"), key("queue")]
        }
    }

    /// Describes it in a few words.
    pub(crate) fn words(&self) -> String {
        let Self { chain, ring, star, fat_tree, isp, graph, .. } = self;
        if let Some(FatTree { k, .. }) = fat_tree {
            return format!("fat tree of switches with {k} ports");
        }
        if let Some(graph) = graph {
            return graph.name.as_ref().map_or_else(|| "graph".into(), |name| format!("graph {name}"));
        }
        match (chain, ring, star, isp) {
            (Some(routers), ..) => format!("chain of {routers} routers"),
            (_, Some(routers), ..) => format!("ring of {routers} routers"),
            (_, _, Some(leaves), _) => format!("star of {leaves} leaves"),
            _ => "network of an Internet service provider".into(),
        }
    }
}

impl Scenario {
    /// Reads the graph that the topology names, and adds its links.
    pub(crate) fn expand(&mut self, files: &dyn Files) -> Result<(), Problem> {
        let Some(topology) = &mut self.topology else { return Ok(()) };
        if let Some(graph) = &mut topology.graph {
            graph.read(files)?;
        }
        let plan = topology.plan()?;
        let tiers = plan.tiers();
        let named = topology.tiers.keys().map(|tier| ("tiers", tier));
        let mut named = named.chain(topology.results.iter().map(|tier| ("results", tier)));
        if let Some((key, unknown)) = named.find(|(_, tier)| !tiers.contains(tier.as_str())) {
            let hint = did_you_mean(unknown, tiers.iter().copied());
            let known = tiers.into_iter().collect::<Vec<_>>().join(", ");
            let text = format!("no links belong to a tier `{unknown}`{hint} (tiers of links here: {known})");
            return Err(refused(key, text));
        }
        for planned in &plan.links {
            if let Some(written) = self.links.get(&planned.name) {
                if (&written.from, &written.to) != (&planned.from, &planned.to) {
                    let text = format!(
                        "replaces the link of this name of the topology, which leads from `{}` to `{}`, not from `{}` to \
                         `{}`; choose another name, or the same routers",
                        planned.from, planned.to, written.from, written.to
                    );
                    let place = ["links", &planned.name, "from"];
                    return Err(Problem::at(place.map(|key| KeyPart::Key(key.into())), text));
                }
                continue;
            }
            self.links.generate(planned.name.clone(), topology.link(planned), planned.tier);
        }
        self.plan = Some(Arc::new(plan));
        Ok(())
    }

    /// Returns whether the link of this name, with a queue, is in results.
    pub fn has_results(&self, link: &str) -> bool {
        let tier = self.links.tier(link.strip_suffix(REVERSE).unwrap_or(link));
        let chosen = self.topology.as_ref().map_or(&[][..], |topology| &topology.results);
        tier.is_none_or(|tier| chosen.is_empty() || chosen.iter().any(|one| one == tier))
    }

    /// Returns the tier of each router of the topology, by name.
    pub(crate) fn tiers(&self) -> BTreeMap<&str, &'static str> {
        let routers = self.plan.iter().flat_map(|plan| &plan.routers);
        routers.map(|(name, tier)| (name.as_str(), *tier)).collect()
    }

    /// Returns the lowest tier of the topology's routers.
    pub(crate) fn lowest_tier(&self) -> Option<&'static str> {
        self.plan.as_ref()?.routers.last().map(|(_, tier)| *tier)
    }
}
