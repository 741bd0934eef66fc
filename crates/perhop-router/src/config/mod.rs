//! The configuration file: its keys, their defaults, and the checks of their values.

mod capture;
mod class;
mod interface;
mod link;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use perhop_scenario::{Problem, ScenarioError, read_toml, steps};
use serde::Deserialize;

pub use self::capture::CaptureFiles;
pub use self::class::{Class, Direction, UNMATCHED, Unmatched};
pub use self::interface::{Interface, Kind};
pub use self::link::Link;

/// The configuration of a router.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The interface on the customers' side.
    pub inside: Interface,
    /// The interface on the network's side.
    pub outside: Interface,
    /// The link from inside to outside. Default: packets pass without delay.
    pub upstream: Option<Link>,
    /// The link from outside to inside. Default: packets pass without delay.
    pub downstream: Option<Link>,
    /// Classes of packets. The first that matches a packet takes it.
    #[serde(default)]
    pub classes: Vec<Class>,
    /// The treatment of packets that match no class.
    #[serde(default)]
    pub unmatched: Unmatched,
    /// The address at which Prometheus reads the metrics. Default: none.
    pub metrics: Option<SocketAddr>,
    /// Whether other hosts may read them.
    #[serde(default)]
    pub metrics_public: bool,
    /// Host names, beside `localhost`, that requests for them may use.
    #[serde(default)]
    pub metrics_hosts: Vec<String>,
    /// Size, number and mode of capture files.
    #[serde(default)]
    pub capture: CaptureFiles,
    /// The user that it runs as once everything is open. Default: an unprivileged user if it is started as
    /// root.
    pub user: Option<String>,
    /// The real-time priority that it requests (`SCHED_FIFO`, 1 to 99). Default: none.
    pub realtime: Option<i32>,
    /// Whether its memory must not be swapped out.
    #[serde(default)]
    pub lock_memory: bool,
    /// How many packets it may hold.
    #[serde(default = "buffers")]
    pub buffers: u32,
    /// The seed of the random streams.
    #[serde(default = "seed")]
    pub seed: u64,
}

fn buffers() -> u32 {
    10_000
}

fn seed() -> u64 {
    1
}

type Checked = Result<(), Problem>;

/// Returns a problem with the value of a key.
fn refuse(key: &str, text: impl Into<String>) -> Checked {
    Err(Problem::at(steps(key), text))
}

impl Config {
    /// Reads and checks a configuration; `origin` names the file in messages.
    ///
    /// # Errors
    /// The first problem: its place, what is wrong, what to write instead.
    pub fn read(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        read_toml(text, origin, Self::check)
    }

    /// Reads and checks the next configuration of a router that runs with `self`. What cannot change while it
    /// runs must be the same.
    ///
    /// # Errors
    /// The first problem, as in [`read`](Self::read).
    pub fn read_successor(&self, text: &str, origin: &str) -> Result<Self, ScenarioError> {
        read_toml(text, origin, |successor: &Self| {
            successor.check()?;
            let key = self.first_fixed_difference(successor);
            key.map_or(Ok(()), |key| {
                let text = "this cannot change while the router runs; restart it, or change it back";
                Err(Problem::at(steps(key), text))
            })
        })
    }

    fn check(&self) -> Checked {
        self.check_interfaces()?;
        let links = [("upstream", &self.upstream), ("downstream", &self.downstream)];
        for (name, link) in links {
            link.as_ref().map_or(Ok(()), |link| link.check(name))?;
        }
        for number in 0..self.classes.len() {
            class::check(&self.classes, number, self.inside.kind)?;
        }
        self.check_metrics()?;
        self.capture.check()?;
        self.check_process()
    }

    fn check_interfaces(&self) -> Checked {
        let sides = [("inside", &self.inside), ("outside", &self.outside)];
        for (side, interface) in sides {
            interface.check(side)?;
        }
        if self.inside.device == self.outside.device {
            let text = format!("`{}` is already the inside device; name another", self.outside.device);
            return refuse("outside.device", text);
        }
        if self.inside.kind != self.outside.kind {
            let text = "both sides must be of the same kind: \"packet\", joined as a bridge, or \"tun\"";
            return refuse("outside.kind", text);
        }
        Ok(())
    }

    fn check_metrics(&self) -> Checked {
        let shared = |address: &SocketAddr| !address.ip().is_loopback() && !self.metrics_public;
        if let Some(address) = self.metrics.filter(shared) {
            let text = format!(
                "{address} is not on loopback, so others could read it; write 127.0.0.1:{}, or set metrics-public = true",
                address.port()
            );
            return refuse("metrics", text);
        }
        let bad = |name: &String| {
            name.is_empty() || name.contains(|c: char| c.is_whitespace() || "/:@[]".contains(c))
        };
        if let Some(number) = self.metrics_hosts.iter().position(bad) {
            let name = &self.metrics_hosts[number];
            let text =
                format!("{name:?} is not a host name; write it without a port, such as \"router.example\"");
            return refuse(&format!("metrics-hosts[{number}]"), text);
        }
        if self.metrics.is_none() && !self.metrics_hosts.is_empty() {
            return refuse("metrics-hosts", "no effect without `metrics`; give that an address");
        }
        Ok(())
    }

    fn check_process(&self) -> Checked {
        if self.user.as_deref() == Some("") {
            return refuse("user", "a user has a name, such as \"nobody\"");
        }
        if let Some(priority) = self.realtime.filter(|priority| !(1..=99).contains(priority)) {
            return refuse("realtime", format!("a real-time priority lies between 1 and 99, not {priority}"));
        }
        if !(64..=1_000_000).contains(&self.buffers) {
            return refuse("buffers", format!("a router holds 64 to 1000000 packets, not {}", self.buffers));
        }
        Ok(())
    }

    /// Keys without effect, and keys that act otherwise than they seem to, each with its place.
    pub fn notices(&self) -> Vec<Problem> {
        let of = |link: &Option<Link>, direction| {
            link::notices(link.as_ref(), direction, &self.classes, self.unmatched)
        };
        let (upstream, downstream) = (&self.upstream, &self.downstream);
        [of(upstream, Direction::Upstream), of(downstream, Direction::Downstream)].concat()
    }

    /// Returns the first key that differs in another configuration and cannot change while a router runs.
    fn first_fixed_difference(&self, other: &Self) -> Option<&'static str> {
        let parts = [
            ("inside", self.inside == other.inside),
            ("outside", self.outside == other.outside),
            ("metrics", self.metrics == other.metrics),
            ("metrics-hosts", self.metrics_hosts == other.metrics_hosts),
            ("capture", self.capture == other.capture),
            ("user", self.user == other.user),
            ("realtime", self.realtime == other.realtime),
            ("lock-memory", self.lock_memory == other.lock_memory),
            ("buffers", self.buffers == other.buffers),
            ("seed", self.seed == other.seed),
        ];
        parts.into_iter().find(|(_, same)| !same).map(|(key, _)| key)
    }
}
