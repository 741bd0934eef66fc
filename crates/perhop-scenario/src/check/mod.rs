//! Checks that involve more than one key of a scenario.

mod flows;
mod media;
mod meters;
mod queues;
mod routers;

use perhop_core::Duration;
use perhop_core::meter::MeterParams;
use perhop_core::table::bad_name;

use crate::error::{KeyPart, Problem};
use crate::format::Scenario;
use crate::memory::Memory;
use crate::network::REVERSE;

pub(crate) use self::flows::MOST_FLOWS;
pub(crate) use self::queues::QueuePlace;
pub(crate) use self::routers::{Routers, shown};

/// The most bytes that the samples of a run may take.
const MOST_SAMPLES: u64 = 1_600_000_000;

type Checked = Result<(), Problem>;

/// A problem with the value of a key.
fn refuse(keys: &[&str], text: impl Into<String>) -> Checked {
    Err(Problem::at(keys.iter().map(|key| KeyPart::Key((*key).into())), text))
}

impl Scenario {
    /// Checks how the parts fit together, and draws between which routers flows go.
    pub(crate) fn check(&mut self) -> Checked {
        self.check_times()?;
        self.check_links()?;
        self.draw_pairs()?;
        self.check_media()?;
        self.check_paths()?;
        self.check_queues()?;
        self.check_profiles()?;
        self.check_meters()?;
        self.check_flows()?;
        self.check_window_control()?;
        self.check_live()?;
        self.check_populations()?;
        self.check_probes()
    }

    fn check_times(&self) -> Checked {
        if self.duration.is_zero() {
            return refuse(&["duration"], "a run must be longer than 0s, such as 100s");
        }
        if self.duration >= Duration::AGES {
            let text = format!("a run must be shorter than 36 years, not {}", self.duration);
            return refuse(&["duration"], text);
        }
        if self.warmup >= self.duration {
            let text =
                format!("the warm-up ({}) must end before the run does ({})", self.warmup, self.duration);
            return refuse(&["warmup"], format!("{text}; make it shorter"));
        }
        if self.probes.interval.is_some_and(Duration::is_zero) {
            return refuse(&["probes", "interval"], "an interval must be longer than 0s, such as 1s");
        }
        Ok(())
    }

    fn check_links(&self) -> Checked {
        if self.links.is_empty() {
            return refuse(
                &["links"],
                "the scenario has no links; add a [links.NAME] table, or a [topology]",
            );
        }
        for (name, link) in self.links.iter() {
            if let Some(problem) = bad_name(name) {
                return refuse(&["links", name], problem);
            }
            if name.ends_with(REVERSE) {
                let text = format!(
                    "names that end in `{REVERSE}` are reserved for reverse directions; choose another"
                );
                return refuse(&["links", name], text);
            }
            if link.from == link.to {
                let text = format!("the link connects `{}` to itself; name two routers", link.to);
                return refuse(&["links", name, "to"], text);
            }
        }
        Ok(())
    }

    /// Checks the profiles that flows share.
    fn check_profiles(&self) -> Checked {
        let twam = self.profiles.iter().find(|(_, profile)| matches!(profile.0, MeterParams::Twam(_)));
        twam.map_or(Ok(()), |(name, _)| {
            let text =
                "flows cannot share a window-aware marker; write its table as the `profile` of the flows";
            refuse(&["profiles", name, MeterParams::TAG], text)
        })
    }

    /// Checks that settings of the kernel are names of a network namespace's sysctls.
    fn check_live(&self) -> Checked {
        for name in self.live.sysctl.keys() {
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
        }
        Ok(())
    }

    /// Checks that the samples of a run fit into memory, with room for others.
    fn check_probes(&self) -> Checked {
        let Memory { flows, samples, sample_bytes, .. } = self.memory();
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

    /// Checks that a router of this name exists; otherwise says what is wrong.
    pub(crate) fn check_node(&self, node: &str) -> Result<(), String> {
        Routers::of(self).find(node).map(|_| ())
    }
}
