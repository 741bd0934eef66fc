//! Label-switched paths: where they lead, and the labels of their packets.

use std::collections::BTreeSet;

use perhop_core::Duration;
use perhop_core::control::{SampleInterval, WindowControl};
use perhop_core::table::bad_name;
use perhop_sim::{Network, NodeId, PathSpec};

use crate::error::{KeyPart, Problem, did_you_mean};
use crate::format::{Flow, LabelSwitchedPath, Link, Scenario, Transport};

/// Sampling windows more often would only cost time.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

impl Scenario {
    /// Every path leads over links, from a router to another, and passes none twice.
    pub(crate) fn check_paths(&self) -> Result<(), Problem> {
        for (name, path) in &self.paths {
            let under = |rest: &[KeyPart]| {
                [KeyPart::Key("paths".into()), KeyPart::Key(name.clone())].into_iter().chain(rest.to_vec())
            };
            if let Some(problem) = bad_name(name) {
                return Err(Problem::at(under(&[]), problem));
            }
            if let Some((key, text)) = path.control.as_ref().and_then(|control| self.bad_control(control)) {
                return Err(Problem::at(under(&["control", key].map(|key| KeyPart::Key(key.into()))), text));
            }
            for (key, routers) in [("via", Some(&path.via)), ("back", path.back.as_ref())] {
                let Some(routers) = routers else { continue };
                let key = KeyPart::Key(key.into());
                if routers.len() < 2 {
                    let text = "a path needs at least two routers, its ingress first";
                    return Err(Problem::at(under(&[key]), text));
                }
                for (index, router) in routers.iter().enumerate() {
                    self.check_hop(&routers[..index], router)
                        .map_err(|text| Problem::at(under(&[key.clone(), KeyPart::Index(index)]), text))?;
                }
            }
            if let Some(back) = &path.back
                && let (Some(first), Some(last)) = (back.first(), back.last())
                && (first.as_str(), last.as_str()) != (path.egress(), path.ingress())
            {
                let text = format!(
                    "the return path leads from `{}` to `{}`, not from `{first}` to `{last}`",
                    path.egress(),
                    path.ingress()
                );
                return Err(Problem::at(under(&[KeyPart::Key("back".into())]), text));
            }
        }
        Ok(())
    }

    /// The key of a control that cannot be, and why.
    fn bad_control(&self, control: &WindowControl) -> Option<(&'static str, String)> {
        let first = control.interval.first();
        if let SampleInterval::Fixed(interval) = control.interval {
            if interval < SHORTEST_INTERVAL {
                let text = "windows are sampled at intervals of at least 1ms; a round-trip time is usual";
                return Some(("interval", text.into()));
            }
            if control.round_trips.is_some() {
                let text =
                    "no effect with a fixed interval; leave this key out, or write interval = \"measured\"";
                return Some(("round-trips", text.into()));
            }
        }
        (first >= self.duration).then(|| {
            let text = format!(
                "the run ({}) ends before windows are first sampled ({first}); choose a shorter interval, such as a \
                 round-trip time",
                self.duration
            );
            ("interval", text)
        })
    }

    /// Why a path that has come past these routers cannot go on to the next, if it cannot.
    fn check_hop(&self, before: &[String], router: &str) -> Result<(), String> {
        self.check_node(router)?;
        let Some(last) = before.last() else { return Ok(()) };
        if before.iter().any(|passed| passed == router) {
            return Err(format!("the path passes `{router}` twice; name each router once"));
        }
        let beside = self.links.values().filter_map(|link| match (&link.from, &link.to) {
            (from, to) if from == last => Some(to.as_str()),
            (to, from) if from == last => Some(to.as_str()),
            _ => None,
        });
        let beside: BTreeSet<&str> = beside.collect();
        if beside.contains(router) {
            return Ok(());
        }
        let beside = beside.into_iter().collect::<Vec<_>>().join(", ");
        Err(format!("no link connects `{last}` and `{router}` (neighbors of `{last}`: {beside})"))
    }

    /// Why there is no such path, if there is none.
    pub(crate) fn check_path(&self, name: &str) -> Result<&LabelSwitchedPath, String> {
        self.paths.get(name).ok_or_else(|| {
            let hint = did_you_mean(name, self.paths.keys().map(String::as_str));
            let known = self.paths.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            if known.is_empty() {
                return format!("unknown path `{name}`; add a table such as [paths.{name}]");
            }
            format!("unknown path `{name}`{hint} (known paths: {known})")
        })
    }

    /// Why a queue on the link `name`, here from one router to another, receives no windows of a path, and the remedy;
    /// nothing if it receives some. `receives` tells whether its AQM gets those of a path. Of several reasons, that of the
    /// path for which the least is missing.
    pub(crate) fn missing_control(
        &self,
        (name, from, to): (&str, &str, &str),
        receives: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let passing = self.paths.iter().filter(|(_, route)| self.passes(route, (name, from, to)));
        let missing = passing.map(|(path, route)| {
            let tcp =
                |flow: &Flow| flow.path.as_ref() == Some(path) && matches!(flow.transport, Transport::Tcp(_));
            if !receives(path) {
                Some((1, format!("packets of the path `{path}` go to another queue; put the rule there")))
            } else if route.control.is_none() {
                let example = "{ interval = \"40ms\" }";
                Some((2, format!("the path `{path}` has no `control`; give it one, such as {example}")))
            } else if !self.flows.iter().any(tcp) {
                Some((3, format!("no TCP flow uses the path `{path}`; add one")))
            } else {
                None
            }
        });
        let nearest = missing.collect::<Option<Vec<_>>>()?.into_iter().max_by_key(|(stage, _)| *stage);
        let reason = nearest.map(|(_, reason)| reason);
        Some(reason.unwrap_or_else(|| {
            format!("no path uses this link from `{from}` to `{to}`; add one with a `control`")
        }))
    }

    /// Whether a path takes this link in this direction: of several that join two routers, the first by name.
    fn passes(&self, path: &LabelSwitchedPath, (name, from, to): (&str, &str, &str)) -> bool {
        let joins = |link: &Link| {
            [(&link.from, &link.to), (&link.to, &link.from)].contains(&(&from.into(), &to.into()))
        };
        path.via.windows(2).any(|hop| (hop[0].as_str(), hop[1].as_str()) == (from, to))
            && self.links.iter().find(|(_, link)| joins(link)).is_some_and(|(first, _)| first == name)
    }

    /// The paths as the simulator takes them; what is checked cannot fail here.
    pub(crate) fn routes(&self, network: &Network, node: impl Fn(&str) -> NodeId) -> Vec<PathSpec> {
        let route = |routers: &[String]| {
            let hops = routers.windows(2).map(|hop| network.link_between(node(&hop[0]), node(&hop[1])));
            hops.collect::<Option<Vec<_>>>().expect("checked: links join them")
        };
        let paths = self.paths.iter().map(|(name, path)| PathSpec {
            name: name.clone(),
            label: self.label(name),
            forward: route(&path.via),
            backward: route(&path.way_back()),
            control: path.control.clone(),
        });
        paths.collect()
    }

    /// The label of a path: from 1, in the order of the names.
    pub(crate) fn label(&self, path: &str) -> u32 {
        self.paths.keys().take_while(|name| name.as_str() <= path).count() as u32
    }
}

impl LabelSwitchedPath {
    /// The router where it begins.
    pub(crate) fn ingress(&self) -> &str {
        self.via.first().map_or("", String::as_str)
    }

    /// The router where it ends.
    pub(crate) fn egress(&self) -> &str {
        self.via.last().map_or("", String::as_str)
    }

    /// The routers that acknowledgements pass.
    fn way_back(&self) -> Vec<String> {
        self.back.clone().unwrap_or_else(|| self.via.iter().rev().cloned().collect())
    }
}
