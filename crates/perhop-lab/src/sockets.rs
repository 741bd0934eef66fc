//! How many sockets a run may open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::LabError;
use crate::setting::Setting;

/// Files of a run besides the sockets of its flows: devices, listeners, timers, and what its process began
/// with.
const OTHER_FILES: u64 = 256;

/// Raises this process's limit of open files so that all flows can be open at once, if the system allows it.
pub(crate) fn allow(setting: &Setting) -> Result<(), LabError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(LabError::doing("asking how many files this process may open"))?;
    let needed = needed(setting.flows.len());
    if needed > hard {
        return Err(too_many(setting, hard));
    }
    if needed > soft {
        setrlimit(Resource::RLIMIT_NOFILE, needed, hard)
            .map_err(LabError::doing("raising the limit of open files"))?;
    }
    Ok(())
}

/// Returns how many files flows need: each has a socket at both hosts.
fn needed(flows: usize) -> u64 {
    2 * flows as u64 + OTHER_FILES
}

fn too_many(setting: &Setting, hard: u64) -> LabError {
    let most = hard.saturating_sub(OTHER_FILES) / 2;
    let begun = setting.populations.iter().filter(|population| !population.records.is_empty());
    let largest = begun.max_by_key(|population| population.records.len());
    let at = largest.map_or_else(
        || "flows".into(),
        |population| format!("flows[{}].arrivals", setting.flows[population.first].group),
    );
    LabError::Unfit(format!(
        "{at}: {} flows have {} sockets if all are open at once, and this process may open {hard} files, so {most} flows may \
         begin: lower the arrivals, shorten the run, or raise the limit (ulimit -Hn)",
        setting.flows.len(),
        2 * setting.flows.len(),
    ))
}

#[cfg(test)]
mod tests {
    use perhop_scenario::Scenario;

    use super::*;

    const TEXT: &str = r#"
duration = "4s"
links.only = { from = "a", to = "b", rate = "4Mbps", delay = "3ms" }
flows = [
  { name = "first", from = "a", to = "b", transport = { tcp = "linux" }, arrivals = { every = "1s" }, sizes = { constant = "1kB" } },
  { name = "second", from = "a", to = "b", transport = { tcp = "linux" }, arrivals = { every = "1ms" }, sizes = { constant = "1kB" } },
]
"#;

    #[test]
    fn the_bound_is_named_at_the_largest_population() {
        let scenario = Scenario::from_toml(TEXT, "test").unwrap();
        let setting = Setting::new(&scenario, &scenario.network(), 1).unwrap();
        assert_eq!(setting.flows.len(), 4004);
        assert_eq!(needed(setting.flows.len()), 8264);
        assert_eq!(
            too_many(&setting, 4096).to_string(),
            "flows[1].arrivals: 4004 flows have 8008 sockets if all are open at once, and this process may open 4096 files, so \
             1920 flows may begin: lower the arrivals, shorten the run, or raise the limit (ulimit -Hn)"
        );
    }
}
