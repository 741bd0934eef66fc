//! Checks that involve more than one key of a scenario.

mod flows;
mod links;
mod pairs;
mod paths;
mod populations;
mod real_packets;
mod routers;

use perhop_core::Duration;
use perhop_core::meter::MeterParams;

use crate::error::{KeyPart, Problem};
use crate::format::Scenario;
use crate::memory::Memory;

pub(crate) use self::pairs::shares;
pub(crate) use self::real_packets::{kernel_asks_for_ecn, marking_rules};
pub(crate) use self::routers::{Routers, shown};

/// The most bytes that the samples of a run may take.
const MOST_SAMPLES: u64 = 1_600_000_000;

/// The result of a check.
type Checked = Result<(), Problem>;

/// The result of a check of one group of flows: a refusal is at a key of the group, or, if that is empty, at
/// the group itself.
type Allowed = Result<(), (&'static str, String)>;

/// What runs a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The simulator.
    Simulator,
    /// The data plane, with the kernel's TCP at both ends.
    RealPackets,
}

/// Refuses the value of a key.
fn refuse(keys: &[&str], text: impl Into<String>) -> Checked {
    Err(Problem::at(keys.iter().map(|key| KeyPart::Key((*key).into())), text))
}

impl Scenario {
    /// Checks how the parts fit together and whether this driver can run them, and draws between which
    /// routers flows go.
    pub(crate) fn check(&mut self, driver: Driver) -> Checked {
        check_times(self)?;
        links::check_links(self)?;
        pairs::draw_pairs(self)?;
        links::check_media(self)?;
        paths::check_paths(self)?;
        links::check_queues(self)?;
        check_profiles(self)?;
        links::check_meters(self)?;
        flows::check_flows(self)?;
        links::check_window_control(self)?;
        check_sysctls(self)?;
        populations::check_populations(self)?;
        check_probes(self)?;
        match driver {
            Driver::Simulator => Ok(()),
            Driver::RealPackets => real_packets::check_real_packets(self),
        }
    }
}

/// Checks the duration of a run, its warm-up and the interval of samples.
fn check_times(scenario: &Scenario) -> Checked {
    if scenario.duration.is_zero() {
        return refuse(&["duration"], "a run must be longer than 0s, such as 100s");
    }
    if scenario.duration >= Duration::AGES {
        let text = format!("a run must be shorter than 36 years, not {}", scenario.duration);
        return refuse(&["duration"], text);
    }
    if scenario.warmup.or_none() >= scenario.duration {
        let text =
            format!("the warm-up ({}) must end before the run does ({})", scenario.warmup, scenario.duration);
        return refuse(&["warmup"], format!("{text}; make it shorter"));
    }
    if scenario.probes.interval.is_some_and(Duration::is_zero) {
        return refuse(&["probes", "interval"], "an interval must be longer than 0s, such as 1s");
    }
    Ok(())
}

/// Checks the profiles that flows share.
fn check_profiles(scenario: &Scenario) -> Checked {
    let follower = scenario.profiles.iter().find(|(_, profile)| profile.0.follows_paths());
    follower.map_or(Ok(()), |(name, _)| {
        let text = "flows cannot share a window-aware marker; write its table as the `profile` of the flows";
        refuse(&["profiles", name, MeterParams::TAG], text)
    })
}

/// Checks that settings of the kernel are names of a network namespace's sysctls, and have an effect.
fn check_sysctls(scenario: &Scenario) -> Checked {
    for name in scenario.live.sysctl.keys() {
        let words = name.split('.').collect::<Vec<_>>();
        let plain = |word: &&str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        };
        if words.len() < 3 || words[0] != "net" || !words.iter().all(plain) {
            let text = format!(
                "`{name}` is not a sysctl of a network namespace; write one such as net.ipv4.tcp_sack"
            );
            return refuse(&["live", "sysctl", name], text);
        }
        if words.last() == Some(&"tcp_congestion_control") {
            let text = "has no effect, since each socket has its own congestion control; name it in the flows' \
                        `live.congestion`";
            return refuse(&["live", "sysctl", name], text);
        }
    }
    Ok(())
}

/// Checks that the samples of a run fit into memory, with room for others.
fn check_probes(scenario: &Scenario) -> Checked {
    let Memory { flows, samples, sample_bytes, .. } = scenario.memory();
    if sample_bytes <= MOST_SAMPLES {
        return Ok(());
    }
    let plural = if flows == 1 { "" } else { "s" };
    let text = format!(
        "{samples} samples of {flows} flow{plural} and the queues take {:.1} GB; a run may take {:.1} GB for them: \
         choose an interval {} times as long",
        sample_bytes as f64 / 1e9,
        MOST_SAMPLES as f64 / 1e9,
        sample_bytes.div_ceil(MOST_SAMPLES)
    );
    refuse(&["probes", "interval"], text)
}
