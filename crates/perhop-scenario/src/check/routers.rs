//! The routers of a scenario by number, and which of them are connected.

use crate::error::did_you_mean;
use crate::format::Scenario;

/// Routers, in the order of their names: so they are numbered in the network.
pub(crate) struct Routers<'a> {
    names: Vec<&'a str>,
    /// The first router, by number, of those to which each is connected.
    component: Vec<u32>,
    degrees: Vec<u32>,
}

impl<'a> Routers<'a> {
    /// Returns the routers of a scenario.
    pub(crate) fn of(scenario: &'a Scenario) -> Self {
        let names = scenario.nodes();
        let mut component: Vec<u32> = (0..names.len() as u32).collect();
        let mut degrees = vec![0; names.len()];
        for link in scenario.links.values() {
            let [from, to] = [&link.from, &link.to]
                .map(|name| names.binary_search(&name.as_str()).expect("a link's router is one"));
            degrees[from] += 1;
            degrees[to] += 1;
            let [one, other] = [from, to].map(|router| root(&mut component, router as u32));
            component[one.max(other) as usize] = one.min(other);
        }
        for router in 0..component.len() {
            component[router] = root(&mut component, router as u32);
        }
        Self { names, component, degrees }
    }

    pub(crate) fn count(&self) -> u32 {
        self.names.len() as u32
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.names.iter().copied()
    }

    pub(crate) fn name(&self, router: u32) -> &'a str {
        self.names[router as usize]
    }

    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.names.binary_search(&name).ok().map(|number| number as u32)
    }

    /// Returns how many links each has.
    pub(crate) fn degrees(&self) -> &[u32] {
        &self.degrees
    }

    /// Returns whether it is the first of those to which it is connected.
    pub(crate) fn leads(&self, router: u32) -> bool {
        self.component[router as usize] == router
    }

    pub(crate) fn are_connected(&self, one: u32, other: u32) -> bool {
        self.component[one as usize] == self.component[other as usize]
    }

    /// Returns the number of the router of this name; if there is none, what is wrong, and which there are.
    pub(crate) fn find(&self, name: &str) -> Result<u32, String> {
        self.number(name).ok_or_else(|| {
            let hint = did_you_mean(name, self.names());
            format!("unknown node `{name}`{hint} (known nodes: {})", shown(self.names()))
        })
    }
}

/// Returns the first router to which this one is known to be connected.
fn root(component: &mut [u32], mut router: u32) -> u32 {
    while component[router as usize] != router {
        let above = component[component[router as usize] as usize];
        component[router as usize] = above;
        router = above;
    }
    router
}

/// Names in a message, as far as it stays readable.
pub(crate) fn shown<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 12;
    let names: Vec<&str> = names.collect();
    let rest = names.len().saturating_sub(MOST);
    let listed = names[..names.len() - rest].join(", ");
    if rest == 0 { listed } else { format!("{listed} and {rest} more") }
}
