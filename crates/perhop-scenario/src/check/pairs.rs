//! Draws between which routers the flows of a group with a matrix go, and checks that the matrix allows it.

use std::collections::BTreeSet;
use std::sync::Arc;

use perhop_core::Rng;

use super::{Allowed, Checked, Routers, shown};
use crate::error::{Problem, at_flow, did_you_mean};
use crate::format::{Between, Demand, Flow, FlowProfile, Lines, MOST_FLOWS, Scenario, Weights};

/// Draws the pairs of routers of all groups with a matrix, which must name known and connected routers.
pub(super) fn draw_pairs(scenario: &mut Scenario) -> Checked {
    if scenario.flows.iter().all(|group| group.between.is_none()) {
        return Ok(());
    }
    let mut drawn = Vec::new();
    let routers = Routers::of(scenario);
    for (number, group) in scenario.flows.iter().enumerate() {
        let Some(between) = &group.between else { continue };
        check_group(group).map_err(|(key, text)| Problem::at(at_flow(number, key), text))?;
        if u64::from(group.count) > MOST_FLOWS {
            continue; // The check of the count comes later.
        }
        let pairs = if between.demands.is_empty() {
            gravity(scenario, between, group, &routers)
        } else {
            measured(between, group, &routers)
        };
        let pairs = pairs.map_err(|(key, text)| Problem::at(at_flow(number, &key), text))?;
        drawn.push((number, Arc::new(pairs)));
    }
    for (number, pairs) in drawn {
        let between = scenario.flows[number].between.as_mut().expect("it has one");
        (between.pairs, between.lines) = (pairs, Lines::default());
    }
    Ok(())
}

/// Draws pairs by the gravity model (Zhang et al., SIGMETRICS 2003): the traffic between two routers is
/// proportional to the product of their weights.
fn gravity(
    scenario: &Scenario,
    between: &Between,
    group: &Flow,
    routers: &Routers<'_>,
) -> Result<Vec<(u32, u32)>, (String, String)> {
    let candidates = candidates(scenario, between, routers)?;
    if candidates.len() < 2 {
        let text = "at least two routers: a flow goes from one to another";
        return Err(("between.among".into(), text.into()));
    }
    if let Some(apart) = candidates.iter().find(|&&router| !routers.are_connected(candidates[0], router)) {
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

/// Returns the routers from which gravity draws, each once, by number.
fn candidates(
    scenario: &Scenario,
    between: &Between,
    routers: &Routers<'_>,
) -> Result<Vec<u32>, (String, String)> {
    let tiers = scenario.tiers();
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
            let text =
                format!("no tier or router `{wanted}`{hint} (routers: {}{tiers})", shown(routers.names()));
            return Err((format!("between.among[{index}]"), text));
        }
    }
    if between.among.is_empty() {
        match scenario.lowest_tier() {
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
            return Err((key, format!("the weight of `{name}` is a number from 0 to 1e12, not {weight}")));
        }
    }
    Ok(chosen.into_iter().collect())
}

/// Returns pairs in proportion to rates.
fn measured(
    between: &Between,
    group: &Flow,
    routers: &Routers<'_>,
) -> Result<Vec<(u32, u32)>, (String, String)> {
    let Between { among, weights, weight, seed, demands, lines, name, .. } = between;
    let given = [
        ("among", !among.is_empty()),
        ("weights", *weights != Weights::default()),
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

/// Returns how many flows each demand gets: in proportion to rates, by largest remainders; of equal ones the
/// first wins.
pub(crate) fn shares(demands: &[Demand], count: u32) -> Vec<usize> {
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

/// Checks that a group has no key that does not go with a matrix.
fn check_group(group: &Flow) -> Allowed {
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
