//! Traffic matrices: between which routers the flows of a group go.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use perhop_core::{Bitrate, Rng};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::check::{MOST_FLOWS, Routers, shown};
use crate::error::{Problem, did_you_mean, steps};
use crate::files::Files;
use crate::format::{Flow, FlowProfile, Scenario};
use crate::matrix::{self, Lines};

/// A traffic matrix: between which routers the flows of a group go, each between its own hosts.
///
/// Gravity (the default): each flow draws the router of its sender and another for its receiver, both with probabilities in proportion to
/// `weights`. Measured: the flows are divided among pairs of routers in proportion to given rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Between {
    /// The routers from which gravity draws: tiers of the topology or routers by name. Default: the lowest tier, such as `edge`; without
    /// a topology all routers.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub among: Vec<String>,
    /// How gravity weighs a router.
    #[serde(default, skip_serializing_if = "Weights::is_default")]
    pub weights: Weights,
    /// The weights of single routers by name, in place of that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weight: BTreeMap<String, f64>,
    /// The seed of the draws: they are part of the network, the same in all runs. Groups of other names draw independently.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seed: u32,
    /// A measured matrix as CSV, `from,to,rate_Mbps` (or `rate_bps`, `rate_kbps`), one pair of routers in each line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What a matrix that is given as `demands` is called: the file it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A measured matrix, in place of a file: lists of two routers and a rate, such as `["Vienna", "Graz", "300Mbps"]`.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<Demand>,
    /// Where the demands stand in the file, until their routers are checked.
    #[serde(skip)]
    pub(crate) lines: Lines,
    /// The routers of each flow's hosts, by number.
    #[serde(skip)]
    pub(crate) pairs: Arc<Vec<(u32, u32)>>,
}

/// Reads a list that holds something: an empty one would be as none.
fn filled<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(deserializer)?;
    if list.is_empty() {
        return Err(de::Error::custom("the list is empty; fill it, or leave this key out"));
    }
    Ok(list)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(seed: &u32) -> bool {
    *seed == 0
}

/// How gravity weighs a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All the same: every pair of routers is as likely as another.
    #[default]
    Equal,
    /// By the number of its links.
    Degree,
}

impl Weights {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The rate from one router to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Where the traffic enters the network.
    pub from: String,
    /// Where it leaves it.
    pub to: String,
    /// Its rate.
    pub rate: Bitrate,
}

impl Scenario {
    /// Reads the matrices that the scenario names.
    ///
    /// # Errors
    /// A file that cannot be read, or is no matrix.
    pub(crate) fn read_matrices(&mut self, files: &dyn Files) -> Result<(), Problem> {
        for (number, group) in self.flows.iter_mut().enumerate() {
            let Some(between) = &mut group.between else { continue };
            let Some(file) = between.file.take() else { continue };
            let at =
                |key: &str, text: String| Problem::at(steps(&format!("flows[{number}].between.{key}")), text);
            if !between.demands.is_empty() {
                return Err(at(
                    "demands",
                    "the demands are those of `file`: leave one of the two out".into(),
                ));
            }
            if between.name.is_some() {
                return Err(at(
                    "name",
                    "a matrix from a file has the file's name: leave this key out".into(),
                ));
            }
            let text = files.read(&file).map_err(|text| at("file", text))?;
            let matrix =
                matrix::read(&text).map_err(|(line, text)| at("file", format!("{file}:{line}: {text}")))?;
            (between.demands, between.lines) = (matrix.demands, matrix.lines);
            between.name = Some(file);
        }
        Ok(())
    }

    /// Draws the pairs of routers of all groups with a matrix.
    ///
    /// # Errors
    /// A matrix that names no such routers, or none that are connected.
    pub(crate) fn draw_pairs(&mut self) -> Result<(), Problem> {
        if self.flows.iter().all(|group| group.between.is_none()) {
            return Ok(());
        }
        let mut drawn = Vec::new();
        let routers = Routers::of(self);
        for (number, group) in self.flows.iter().enumerate() {
            let Some(between) = &group.between else { continue };
            let at = |key: &str| steps(&format!("flows[{number}].{key}")).collect::<Vec<_>>();
            check_group(group).map_err(|(key, text)| Problem::at(at(key), text))?;
            if u64::from(group.count) > MOST_FLOWS {
                continue; // That check comes later.
            }
            let pairs = if between.demands.is_empty() {
                self.gravity(between, group, &routers)
            } else {
                measured(between, group, &routers)
            };
            let pairs = pairs.map_err(|(key, text)| Problem::at(at(&key), text))?;
            drawn.push((number, Arc::new(pairs)));
        }
        for (number, pairs) in drawn {
            let between = self.flows[number].between.as_mut().expect("it has one");
            (between.pairs, between.lines) = (pairs, Lines::default());
        }
        Ok(())
    }

    /// Groups with so few flows that pairs of their measured matrix have none.
    pub(crate) fn idle_demands(&self) -> impl Iterator<Item = Problem> {
        self.flows.iter().enumerate().filter_map(|(number, group)| {
            let between = group.between.as_ref().filter(|between| !between.demands.is_empty())?;
            let shares = shares(&between.demands, group.count);
            let mut idle = between.demands.iter().zip(&shares).filter(|(_, flows)| **flows == 0);
            let (Demand { from, to, .. }, _) = idle.next()?;
            let (without, all) = (1 + idle.count(), shares.len());
            let text = format!(
                "{without} of {all} pairs get no flow, such as `{from}` to `{to}`: the group has {}, in proportion to the rates; \
                 raise `count`, or leave these pairs out",
                if group.count == 1 { "1 flow".into() } else { format!("{} flows", group.count) }
            );
            Some(Problem::at(steps(&format!("flows[{number}].between")), text))
        })
    }

    /// Pairs by the gravity model (Zhang et al., SIGMETRICS 2003): the traffic between two routers is proportional to the product of their
    /// weights.
    fn gravity(
        &self,
        between: &Between,
        group: &Flow,
        routers: &Routers<'_>,
    ) -> Result<Vec<(u32, u32)>, (String, String)> {
        let candidates = self.candidates(between, routers)?;
        if candidates.len() < 2 {
            let text = "at least two routers: a flow goes from one to another";
            return Err(("between.among".into(), text.into()));
        }
        if let Some(apart) = candidates.iter().find(|&&router| !routers.are_connected(candidates[0], router))
        {
            let [one, other] = [candidates[0], *apart].map(|router| routers.name(router));
            return Err((
                "between".into(),
                format!("`{other}` cannot be reached from `{one}`; add a link between them"),
            ));
        }
        let degrees = routers.degrees();
        let mut total = 0.0;
        let mut sums = Vec::with_capacity(candidates.len());
        for &router in &candidates {
            let own = between.weight.get(routers.name(router)).copied();
            total += own.unwrap_or_else(|| match between.weights {
                Weights::Equal => 1.0,
                Weights::Degree => f64::from(degrees[router as usize]),
            });
            sums.push(total);
        }
        let positive = sums.iter().scan(0.0, |before, &sum| Some(sum > std::mem::replace(before, sum)));
        if positive.filter(|&positive| positive).count() < 2 {
            return Err(("between.weight".into(), "at least two routers need a weight above 0".into()));
        }
        let mut rng = Rng::stream(between.seed.into(), &format!("between/{}", group.name));
        let mut draw = || {
            let at = rng.uniform() * total;
            candidates[sums.partition_point(|&sum| sum <= at).min(candidates.len() - 1)]
        };
        let pairs = (0..group.count).map(|_| {
            loop {
                let (from, to) = (draw(), draw());
                if from != to {
                    return (from, to);
                }
            }
        });
        Ok(pairs.collect())
    }

    /// The routers from which gravity draws, each once, by number.
    fn candidates(&self, between: &Between, routers: &Routers<'_>) -> Result<Vec<u32>, (String, String)> {
        let tiers = self.tiers();
        let known: BTreeSet<&str> = tiers.values().copied().collect();
        let of_tier = |wanted: &str| {
            let those = tiers.iter().filter(move |&(_, tier)| *tier == wanted);
            those.filter_map(|(name, _)| routers.number(name)).collect::<Vec<_>>()
        };
        let mut chosen = BTreeSet::new();
        for (index, wanted) in between.among.iter().enumerate() {
            if known.contains(wanted.as_str()) {
                chosen.extend(of_tier(wanted));
            } else if let Some(router) = routers.number(wanted) {
                chosen.insert(router);
            } else {
                let hint = did_you_mean(wanted, known.iter().copied().chain(routers.names()));
                let tiers = if known.is_empty() {
                    String::new()
                } else {
                    format!("; tiers: {}", shown(known.iter().copied()))
                };
                let text = format!(
                    "no tier or router `{wanted}`{hint} (routers: {}{tiers})",
                    shown(routers.names())
                );
                return Err((format!("between.among[{index}]"), text));
            }
        }
        if between.among.is_empty() {
            match self.lowest_tier() {
                Some(tier) => chosen.extend(of_tier(tier)),
                None => chosen.extend(0..routers.count()),
            }
        }
        for (name, weight) in &between.weight {
            let key = "between.weight".to_owned();
            let Some(router) = routers.number(name) else {
                let hint = did_you_mean(name, routers.names());
                return Err((key, format!("unknown router `{name}`{hint}")));
            };
            if !chosen.contains(&router) {
                return Err((
                    key,
                    format!(
                        "no flow goes from or to `{name}`, which is not among the routers drawn; leave its weight out"
                    ),
                ));
            }
            if !(0.0..=1e12).contains(weight) {
                return Err((
                    key,
                    format!("the weight of `{name}` is a number from 0 to 1e12, not {weight}"),
                ));
            }
        }
        Ok(chosen.into_iter().collect())
    }
}

/// Pairs in proportion to rates.
fn measured(
    between: &Between,
    group: &Flow,
    routers: &Routers<'_>,
) -> Result<Vec<(u32, u32)>, (String, String)> {
    let Between { among, weights, weight, seed, demands, lines, name, .. } = between;
    let given = [
        ("among", !among.is_empty()),
        ("weights", !weights.is_default()),
        ("weight", !weight.is_empty()),
        ("seed", *seed != 0),
    ];
    if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err((
            format!("between.{key}"),
            "is of gravity, and the matrix is measured; leave this key out".into(),
        ));
    }
    let in_line = |line: usize, text: String| {
        ("between.file".to_owned(), format!("{}:{line}: {text}", name.as_deref().unwrap_or_default()))
    };
    let number = |name: &str| {
        routers.number(name).ok_or_else(|| {
            let hint = did_you_mean(name, routers.names());
            format!("unknown router `{name}`{hint} (routers: {})", shown(routers.names()))
        })
    };
    let pair = |demand: &Demand| {
        let (from, to) = (number(&demand.from)?, number(&demand.to)?);
        if from == to {
            return Err(format!("goes from `{}` to itself; leave it out", demand.to));
        }
        if !routers.are_connected(from, to) {
            return Err(format!(
                "`{}` cannot be reached from `{}`; add a link between them",
                demand.to, demand.from
            ));
        }
        Ok((from, to))
    };
    let mut pairs = Vec::with_capacity(demands.len());
    for (row, demand) in demands.iter().enumerate() {
        pairs.push(pair(demand).map_err(|text| match lines.of_demands.get(row) {
            Some(&line) => in_line(line, text),
            None => (format!("between.demands[{row}]"), text),
        })?);
    }
    for (line, names) in &lines.idle {
        names.iter().try_for_each(|name| number(name).map(|_| ())).map_err(|text| in_line(*line, text))?;
    }
    let rows = pairs.into_iter().zip(shares(demands, group.count));
    Ok(rows.flat_map(|(pair, flows)| std::iter::repeat_n(pair, flows)).collect())
}

/// So many flows in proportion to rates, by largest remainders; of equal ones the first wins.
fn shares(demands: &[Demand], count: u32) -> Vec<usize> {
    let total: u128 = demands.iter().map(|demand| u128::from(demand.rate.as_bps())).sum();
    let count = u128::from(count);
    let exact = demands.iter().map(|demand| count * u128::from(demand.rate.as_bps()));
    let mut shares: Vec<(u128, u128)> = exact.map(|exact| (exact / total, exact % total)).collect();
    let whole: u128 = shares.iter().map(|(whole, _)| whole).sum();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|&row| (std::cmp::Reverse(shares[row].1), row));
    order.iter().take((count - whole) as usize).for_each(|&row| shares[row].0 += 1);
    shares.into_iter().map(|(flows, _)| flows as usize).collect()
}

/// Keys that do not go with a matrix.
fn check_group(group: &Flow) -> Result<(), (&'static str, String)> {
    let given = [
        ("from", group.from.is_some(), "the matrix says where flows begin"),
        ("to", group.to.is_some(), "the matrix says where flows end"),
        ("path", group.path.is_some(), "a path joins two routers, and the matrix says which"),
        (
            "arrivals",
            group.arrivals.is_some(),
            "a population is between two routers; write a group for each pair",
        ),
    ];
    if let Some((key, _, why)) = given.into_iter().find(|(_, given, _)| *given) {
        return Err((key, format!("{why}: leave out this key or `between`")));
    }
    if let Some(FlowProfile::Shared(_)) = &group.profile {
        let text = "a shared profile is at one router, and the flows begin at several; write its table here, for each flow";
        return Err(("profile", text.into()));
    }
    Ok(())
}

impl Serialize for Demand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq([&self.from, &self.to, &self.rate.to_string()])
    }
}

impl<'de> Deserialize<'de> for Demand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> de::Visitor<'de> for Parts {
            type Value = Demand;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of two routers and a rate")
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut parts: A) -> Result<Demand, A::Error> {
                let form = || {
                    de::Error::custom("a demand is two routers and a rate, such as [\"a\", \"b\", \"3Mbps\"]")
                };
                let mut part = || parts.next_element::<String>()?.ok_or_else(form);
                let (from, to, rate) = (part()?, part()?, part()?);
                if parts.next_element::<String>()?.is_some() {
                    return Err(form());
                }
                Ok(Demand { from, to, rate: rate.parse().map_err(de::Error::custom)? })
            }
        }
        deserializer.deserialize_seq(Parts)
    }
}

impl JsonSchema for Demand {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Demand".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "string" }, "minItems": 3, "maxItems": 3 })
    }
}
