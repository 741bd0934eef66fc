//! Routers and links by rule.

use std::collections::BTreeSet;

use perhop_core::Rng;

use super::{FatTree, Isp, Plan, refused};
use crate::error::Problem;

/// Of routers that are all alike.
const ROUTER: &str = "router";

/// Checks that a topology has at least so many routers.
pub(super) fn check_size(key: &str, routers: u32, least: u32) -> Result<(), Problem> {
    let what = if key == "star" { "leaves" } else { "routers" };
    if routers >= least {
        Ok(())
    } else {
        Err(refused(key, format!("at least {least} {what}, not {routers}")))
    }
}

/// Routers in a row.
pub(super) fn chain(routers: u32) -> Plan {
    let mut plan = Plan::default();
    (1..=routers).for_each(|number| plan.router(format!("r{number}"), ROUTER));
    (1..routers).for_each(|number| plan.link(format!("r{number}"), format!("r{}", number + 1), ROUTER));
    plan
}

/// Routers in a circle.
pub(super) fn ring(routers: u32) -> Plan {
    let mut plan = chain(routers);
    plan.link(format!("r{routers}"), "r1", ROUTER);
    plan
}

/// Routers around one.
pub(super) fn star(leaves: u32) -> Plan {
    let mut plan = Plan::default();
    plan.router("hub", "hub");
    for number in 1..=leaves {
        plan.router(format!("leaf{number}"), "leaf");
        plan.link(format!("leaf{number}"), "hub", "leaf");
    }
    plan
}

impl FatTree {
    /// Checks that the number of ports is even.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.k >= 2 && self.k.is_multiple_of(2) {
            return Ok(());
        }
        Err(refused(
            "fat-tree.k",
            format!("a switch has an even number of ports, at least 2, not {}", self.k),
        ))
    }

    /// Returns how many nodes and links it has.
    pub(super) fn size(&self) -> (u64, u64) {
        let k = u64::from(self.k);
        let tier = k.saturating_mul(k).saturating_mul(k) / 4;
        let hosts = if self.hosts { tier } else { 0 };
        ((5 * k).saturating_mul(k) / 4 + hosts, tier.saturating_mul(2).saturating_add(hosts))
    }
}

/// Returns a fat tree of switches with k ports.
pub(super) fn fat_tree(tree: &FatTree) -> Plan {
    let half = tree.k / 2;
    let mut plan = Plan::default();
    (1..=half * half).for_each(|core| plan.router(format!("core{core}"), "core"));
    let pods = || 1..=tree.k;
    for pod in pods() {
        for number in 1..=half {
            let aggregation = format!("pod{pod}-agg{number}");
            // The aggregation switch of this number in each pod is joined to the same core switches.
            for port in 1..=half {
                let core = (number - 1) * half + port;
                plan.link(&*aggregation, format!("core{core}"), "aggregation");
            }
            plan.router(aggregation, "aggregation");
        }
    }
    for (pod, number) in pods().flat_map(|pod| (1..=half).map(move |number| (pod, number))) {
        let edge = format!("pod{pod}-edge{number}");
        (1..=half).for_each(|upper| plan.link(&*edge, format!("pod{pod}-agg{upper}"), "edge"));
        plan.router(edge, "edge");
    }
    if tree.hosts {
        for (pod, number) in pods().flat_map(|pod| (1..=half).map(move |number| (pod, number))) {
            let edge = format!("pod{pod}-edge{number}");
            for host in 1..=half {
                let host = format!("{edge}-host{host}");
                plan.link(&*host, &*edge, "host");
                plan.router(host, "host");
            }
        }
    }
    plan
}

impl Isp {
    /// Checks the ring of the core: it needs three routers, and has only so many chords.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.core < 3 {
            return Err(refused("isp.core", format!("a ring has at least 3 routers, not {}", self.core)));
        }
        if self.aggregation == 0 && self.edge > 0 {
            let text = "without aggregation routers there is nothing to join edge routers to; write 0, or raise `aggregation`";
            return Err(refused("isp.edge", text));
        }
        match self.chords {
            Some(chords) if u64::from(chords) > self.most_chords() => {
                let most = self.most_chords();
                let text = format!("a ring of {} routers has at most {most} chords, not {chords}", self.core);
                Err(refused("isp.chords", text))
            }
            _ => Ok(()),
        }
    }

    fn most_chords(&self) -> u64 {
        let core = u64::from(self.core);
        core * (core - 3) / 2
    }

    fn chords(&self) -> u64 {
        self.chords.map_or_else(|| u64::from(self.core / 2).min(self.most_chords()), u64::from)
    }

    /// Returns how many routers and links it has.
    pub(super) fn size(&self) -> (u64, u64) {
        let core = u64::from(self.core);
        let aggregation = core.saturating_mul(self.aggregation.into());
        let edge = aggregation.saturating_mul(self.edge.into());
        let links = [self.chords(), 2_u64.saturating_mul(aggregation), edge];
        (
            core.saturating_add(aggregation).saturating_add(edge),
            links.into_iter().fold(core, u64::saturating_add),
        )
    }
}

/// Returns a ring with chords, routers that are joined to two of it, and routers that are joined to one of
/// these.
pub(super) fn isp(isp: &Isp) -> Plan {
    let mut plan = Plan::default();
    let core = |number: u32| format!("core{}", number % isp.core + 1);
    for number in 0..isp.core {
        plan.router(core(number), "core");
        plan.link(core(number), core(number + 1), "core");
    }
    let mut rng = Rng::stream(isp.seed.into(), "topology/chords");
    let mut chords = BTreeSet::new();
    while (chords.len() as u64) < isp.chords() {
        let [one, other] = [(); 2].map(|()| rng.up_to(u64::from(isp.core) - 1) as u32);
        let (low, high) = (one.min(other), one.max(other));
        let apart = high - low;
        if apart >= 2 && apart <= isp.core - 2 && chords.insert((low, high)) {
            plan.link(core(low), core(high), "core");
        }
    }
    let aggregation = || (0..isp.core).flat_map(|above| (1..=isp.aggregation).map(move |own| (above, own)));
    for (above, number) in aggregation() {
        let router = format!("{}-agg{number}", core(above));
        plan.link(&*router, core(above), "aggregation");
        plan.link(&*router, core(above + 1), "aggregation");
        plan.router(router, "aggregation");
    }
    for (above, number) in aggregation() {
        let upper = format!("{}-agg{number}", core(above));
        for edge in 1..=isp.edge {
            let router = format!("{upper}-edge{edge}");
            plan.link(&*router, &*upper, "edge");
            plan.router(router, "edge");
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Returns how many routers have each number of links.
    fn degrees(plan: &Plan) -> BTreeMap<usize, usize> {
        let mut links: BTreeMap<&str, usize> = BTreeMap::new();
        for link in &plan.links {
            *links.entry(&link.from).or_default() += 1;
            *links.entry(&link.to).or_default() += 1;
        }
        let known: BTreeSet<&str> = plan.routers.iter().map(|(name, _)| name.as_str()).collect();
        assert!(known.len() == plan.routers.len() && links.keys().all(|name| known.contains(name)));
        let names: BTreeSet<&str> = plan.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names.len(), plan.links.len());
        links.values().fold(BTreeMap::new(), |mut counts, &degree| {
            *counts.entry(degree).or_default() += 1;
            counts
        })
    }

    #[test]
    fn rows_circles_and_stars() {
        assert_eq!(degrees(&chain(7)), [(1, 2), (2, 5)].into());
        assert_eq!(degrees(&ring(7)), [(2, 7)].into());
        assert_eq!(degrees(&star(7)), [(1, 7), (7, 1)].into());
    }

    #[test]
    fn fat_trees_have_the_sizes_of_the_paper() {
        for k in [2, 4, 6, 8, 14] {
            let n = k as usize;
            let with = FatTree { k, hosts: true };
            let plan = fat_tree(&with);
            let (switches, hosts) = (5 * n * n / 4, n * n * n / 4);
            assert_eq!((plan.routers.len(), plan.links.len()), (switches + hosts, 3 * hosts), "k = {k}");
            assert_eq!(with.size(), ((switches + hosts) as u64, 3 * hosts as u64));
            // All ports of all switches are used.
            assert_eq!(degrees(&plan), [(1, hosts), (n, switches)].into());
            let without = FatTree { k, hosts: false };
            let plan = fat_tree(&without);
            assert_eq!((plan.routers.len() as u64, plan.links.len() as u64), without.size());
            assert_eq!(plan.routers.len(), switches);
        }
    }

    #[test]
    fn networks_of_providers_by_formula_and_seed() {
        let params = Isp { core: 10, aggregation: 3, edge: 4, chords: None, seed: 1 };
        let plan = isp(&params);
        assert_eq!(plan.routers.len(), 10 * (1 + 3 * (1 + 4)));
        assert_eq!(plan.links.len(), 10 + 5 + 2 * 30 + 120);
        assert_eq!((plan.routers.len() as u64, plan.links.len() as u64), params.size());
        let counts = degrees(&plan);
        assert_eq!(
            (counts[&1], counts[&6]),
            (120, 30),
            "an edge router has 1 link, an aggregation router 2 + 4"
        );
        assert_eq!(plan, isp(&params));
        assert_ne!(plan.links, isp(&Isp { seed: 2, ..params.clone() }).links);
        let all = Isp { chords: Some(35), ..params };
        assert_eq!(isp(&all).links.iter().filter(|link| link.tier == "core").count(), 45, "a full mesh");
    }
}
