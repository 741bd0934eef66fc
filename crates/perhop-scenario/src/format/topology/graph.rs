//! Graphs as topologies: a list of links, or a file in GraphML.

mod graphml;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use perhop_core::table::bad_name;
use perhop_core::{Bitrate, Duration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_untagged::UntaggedEnumVisitor;

use super::{MOST_LINKS, Plan, PlannedLink, refused};
use crate::error::Problem;
use crate::files::Files;
use crate::format::forms::is_default;

/// The tier of every router and link of a graph, which are all alike.
const ROUTER: &str = "router";

/// A graph of routers: a file in GraphML, as the Internet Topology Zoo has them, or a list of links.
///
/// Of a file it takes the `label` of each node (its `id`, if it has none; several nodes of one label become
/// `LABEL (ID)`) and, of each edge, `LinkSpeedRaw` as the rate in bit/s. Edges that join a node to itself,
/// and nodes without edges, are left out; a directed edge is the other direction of one between the same two
/// nodes, if there is one. A notice counts all of them. Links between the same two routers are `A--B`,
/// `A--B 2` and so on.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Graph {
    /// A file in GraphML. Its name is relative to the scenario's folder.
    pub file: Option<String>,
    /// Takes the delay of each link of the file from the distance of its nodes (`Longitude`, `Latitude`), at
    /// two thirds of the speed of light. A link whose nodes have no position keeps that of `link`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub distances: bool,
    /// Gives each link of the file the rate of `link`, whatever the file says.
    #[serde(default, skip_serializing_if = "is_default")]
    pub same_rates: bool,
    /// What a graph that is given as `links` is called: the file it is from.
    pub name: Option<String>,
    /// The links, in place of a file: each is a list of two routers and, if they differ from `link`, its rate
    /// and delay, such as `["Vienna", "Graz", "10Gbps", "1ms"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<GraphLink>,
    /// What of the file is no link or router of its own, where it was just read.
    #[serde(skip)]
    pub(crate) merged: Option<String>,
}

/// A link of a graph: two routers, and its rate and delay if they differ from those of other links.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphLink {
    /// The router where the link begins.
    pub from: String,
    /// The router where the link ends.
    pub to: String,
    /// The rate of the link, if it has its own.
    pub rate: Option<Bitrate>,
    /// The propagation delay of the link, if it has its own.
    pub delay: Option<Duration>,
}

impl Graph {
    /// Reads the file, and takes its links into the graph.
    pub(super) fn read(&mut self, files: &dyn Files) -> Result<(), Problem> {
        let Self { file, distances, same_rates, name, links, merged } = self;
        let Some(file_name) = file.take() else {
            if let Some((key, _)) =
                [("distances", *distances), ("same-rates", *same_rates)].into_iter().find(|(_, given)| *given)
            {
                let text = "says what to take from a file, and there is none; leave this key out";
                return Err(refused(&format!("graph.{key}"), text));
            }
            return if links.is_empty() {
                Err(refused(
                    "graph",
                    "needs a `file` in GraphML, or `links`, such as [[\"a\", \"b\"], [\"b\", \"c\"]]",
                ))
            } else {
                Ok(())
            };
        };
        if !links.is_empty() {
            return Err(refused("graph.links", "the links are those of `file`: leave one of the two out"));
        }
        if name.is_some() {
            return Err(refused("graph.name", "a graph from a file has the file's name: leave this key out"));
        }
        let at = |text: String| refused("graph.file", text);
        let text = files.read(&file_name).map_err(at)?;
        let take = graphml::Take { distances: *distances, rates: !*same_rates };
        let (found, left) = graphml::read(&text, take).map_err(|(line, text)| {
            at(line
                .map_or_else(|| format!("{file_name}: {text}"), |line| format!("{file_name}:{line}: {text}")))
        })?;
        (*links, *merged) = (found, left.described());
        (*name, *distances, *same_rates) = (Some(file_name), false, false);
        Ok(())
    }

    /// Returns the routers of the graph, in the order of their names, and its links.
    pub(super) fn plan(&self) -> Result<Plan, Problem> {
        if self.links.len() as u64 > MOST_LINKS {
            let text = format!("{} links; a topology has at most {MOST_LINKS}", self.links.len());
            return Err(refused("graph", text));
        }
        let mut plan = Plan::default();
        let mut names: BTreeSet<&str> = BTreeSet::new();
        let mut parallel: BTreeMap<String, u32> = BTreeMap::new();
        for (number, GraphLink { from, to, rate, delay }) in self.links.iter().enumerate() {
            let at = |text: String| refused(&format!("graph.links[{number}]"), text);
            if let Some(problem) = [from, to].into_iter().find_map(|name| bad_name(name)) {
                return Err(at(problem));
            }
            if from == to {
                return Err(at(format!("the link connects `{to}` to itself; name two routers")));
            }
            names.extend([from.as_str(), to.as_str()]);
            let name = format!("{from}--{to}");
            let same = parallel.entry(name.clone()).or_insert(0);
            *same += 1;
            let name = if *same > 1 { format!("{name} {same}") } else { name };
            plan.links.push(PlannedLink {
                name,
                from: from.clone(),
                to: to.clone(),
                tier: ROUTER,
                rate: *rate,
                delay: *delay,
            });
        }
        let once: BTreeSet<&str> = plan.links.iter().map(|link| link.name.as_str()).collect();
        if once.len() < plan.links.len() {
            return Err(refused(
                "graph",
                "two links have one name: rename routers whose names end in a number",
            ));
        }
        for name in names {
            plan.router(name, ROUTER);
        }
        Ok(plan)
    }
}

impl Serialize for GraphLink {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { from, to, rate, delay } = self;
        let rate = rate.as_ref().map(ToString::to_string);
        let delay = delay.as_ref().map(ToString::to_string);
        serializer.collect_seq([Some(from.clone()), Some(to.clone()), rate, delay].into_iter().flatten())
    }
}

impl<'de> Deserialize<'de> for GraphLink {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("a list of two routers, and a rate and a delay if they are its own")
            .seq(|list| {
                let mut parts = list.deserialize::<Vec<String>>()?.into_iter();
                let (Some(from), Some(to)) = (parts.next(), parts.next()) else {
                    return Err(de::Error::custom("a link has two routers, such as [\"a\", \"b\"]"));
                };
                let mut link = Self { from, to, rate: None, delay: None };
                for part in parts {
                    match (part.parse(), part.parse()) {
                        (Ok(given), _) if link.rate.is_none() => link.rate = Some(given),
                        (_, Ok(given)) if link.delay.is_none() => link.delay = Some(given),
                        _ => {
                            return Err(de::Error::custom(format!(
                                "`{part}` is neither the rate nor the delay of the link: after two routers write one of each, such as \"10Gbps\" and \"3ms\""
                            )));
                        }
                    }
                }
                Ok(link)
            })
            .deserialize(deserializer)
    }
}

impl JsonSchema for GraphLink {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "GraphLink".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 4 })
    }
}
