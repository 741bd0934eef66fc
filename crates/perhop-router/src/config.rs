//! The configuration: what a user writes, read and checked.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use perhop_core::aqm::AqmParams;
use perhop_core::meter::MeterParams;
use perhop_core::table::{bad_name, split_key};
use perhop_core::{Bitrate, Bytes, Color, Dscp, Duration};
use perhop_scenario::format::Queue;
use perhop_scenario::{Problem, ScenarioError, Step, division, divisions, idle_keys, read_toml, steps};
use serde::{Deserialize, Deserializer, de};

use crate::selector::Match;

/// What a router is to do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The interface towards those who are served.
    pub inside: Interface,
    /// The interface towards everybody else.
    pub outside: Interface,
    /// The link from inside to outside; packets pass at once unless given.
    #[serde(default)]
    pub upstream: Option<Link>,
    /// The link from outside to inside; packets pass at once unless given.
    #[serde(default)]
    pub downstream: Option<Link>,
    /// Classes of packets, in the order in which they are asked whether a packet is theirs.
    #[serde(default)]
    pub classes: Vec<Class>,
    /// What becomes of packets that no class takes.
    #[serde(default)]
    pub unmatched: Unmatched,
    /// Where Prometheus finds the metrics; nowhere unless given.
    #[serde(default)]
    pub metrics: Option<SocketAddr>,
    /// Whether others than this host may read them.
    #[serde(default)]
    pub metrics_public: bool,
    /// Names of this host, beside `localhost`, by which they may be asked for.
    #[serde(default)]
    pub metrics_hosts: Vec<String>,
    /// Files of a capture, if there is one.
    #[serde(default)]
    pub capture: CaptureFiles,
    /// Whom it runs as once everything is open; if it is started as root, an unprivileged user unless given.
    #[serde(default)]
    pub user: Option<String>,
    /// The real-time priority that it asks for (`SCHED_FIFO`, 1 to 99); none unless given.
    #[serde(default)]
    pub realtime: Option<i32>,
    /// Whether its memory must not be swapped out.
    #[serde(default)]
    pub lock_memory: bool,
    /// How many packets it may hold.
    #[serde(default = "buffers")]
    pub buffers: u32,
    /// Chance begins here.
    #[serde(default = "seed")]
    pub seed: u64,
}

/// Files of a capture: written in turn, each up to its limit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CaptureFiles {
    /// The most bytes of each.
    #[serde(default = "file_size")]
    pub size: Bytes,
    /// How many there are; with one, the capture ends when it is full.
    #[serde(default = "files", rename = "files")]
    pub count: u16,
    /// Who may read them.
    #[serde(default)]
    pub mode: Mode,
}

impl Default for CaptureFiles {
    fn default() -> Self {
        Self { size: file_size(), count: files(), mode: Mode::default() }
    }
}

/// Who may read a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Mode {
    /// Its owner.
    #[default]
    #[serde(rename = "0600")]
    Owner,
    /// And its group.
    #[serde(rename = "0640")]
    Group,
}

impl Mode {
    /// As the system wants to have it.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o640,
        }
    }
}

fn file_size() -> Bytes {
    Bytes::new(500_000_000)
}

fn files() -> u16 {
    2
}

/// The smallest limit of a capture file: many times what is written at once.
const SMALLEST_FILE: Bytes = Bytes::new(1_000_000);

/// The most files of a capture: each is held open.
const MOST_FILES: u16 = 100;

/// A side of the router.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Interface {
    /// The interface's name.
    pub device: String,
    /// What it is.
    pub kind: Kind,
    /// Of a TUN device, its IPv4 address and the length of its network's prefix.
    #[serde(default)]
    pub ipv4: Option<Address<Ipv4Addr>>,
    /// The same for IPv6.
    #[serde(default)]
    pub ipv6: Option<Address<Ipv6Addr>>,
    /// Of a TUN device, its longest packet; 1500 unless given.
    #[serde(default)]
    pub mtu: Option<u16>,
    /// Of a TUN device, how many packets of the kernel may wait; 1000 unless given.
    #[serde(default)]
    pub queue_length: Option<u32>,
}

/// What an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One that there is, such as Ethernet or veth; two of them are joined as a transparent bridge.
    Packet,
    /// One that the router makes, for packets that the kernel routes to it.
    Tun,
}

/// An address and the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<A>(pub A, pub u8);

/// A direction's link and queue.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Link {
    /// Its rate, IP headers included.
    pub rate: Bitrate,
    /// A propagation delay to add.
    #[serde(default)]
    pub delay: Duration,
    /// Its queue: an AQM or a scheduler, as in scenarios.
    pub queue: Queue,
}

/// A class of packets, and what is done to them before they come to the queue.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Class {
    /// Its name in metrics and in the summary.
    pub name: String,
    /// Which packets it takes, if no earlier class does; all unless given.
    #[serde(default)]
    pub r#match: Match,
    /// Packets of which direction it takes.
    #[serde(default)]
    pub direction: Direction,
    /// What was sold: a meter that colors and marks its packets. For both directions, each has a meter of its own.
    #[serde(default)]
    pub profile: Option<MeterParams>,
    /// The color of all its packets.
    #[serde(default)]
    pub color: Option<Color>,
    /// The codepoint of all its packets.
    #[serde(default)]
    pub dscp: Option<Dscp>,
    /// Its packets keep their codepoint and have the color that it stands for.
    #[serde(default)]
    pub trust: bool,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From inside to outside.
    Upstream,
    /// From outside to inside.
    Downstream,
    /// Both ways.
    #[default]
    Both,
}

/// What becomes of packets that no class takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unmatched {
    /// They are best effort: OUT, with codepoint 0.
    #[default]
    BestEffort,
    /// They keep their codepoint and have the color that it stands for.
    Trust,
    /// They are dropped.
    Drop,
}

/// How many packets it holds unless told otherwise.
fn buffers() -> u32 {
    10_000
}

fn seed() -> u64 {
    1
}

/// The name of what becomes of packets that no class takes, among classes.
pub const UNMATCHED: &str = "unmatched";

/// The sizes that IP packets have, in bytes.
const PACKETS: RangeInclusive<u64> = 20..=65_535;

/// The longest name of an interface in Linux.
const LONGEST_NAME: usize = 15;

type Checked = Result<(), Problem>;

impl Config {
    /// Reads and checks a configuration; `origin` names the file in messages.
    ///
    /// # Errors
    /// The first problem: where it stands, what is wrong, what would be right.
    pub fn read(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        read_toml(text, origin, Self::check)
    }

    /// The same for a router that runs by `self`: what it cannot change while it runs must be as it is.
    ///
    /// # Errors
    /// The first problem, likewise.
    pub fn read_successor(&self, text: &str, origin: &str) -> Result<Self, ScenarioError> {
        read_toml(text, origin, |successor: &Self| {
            successor.check()?;
            let key = self.differs_for_good(successor);
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
            self.check_class(number)?;
        }
        let at = |key: &str, text: String| Err(Problem::at(steps(key), text));
        if let Some(address) =
            self.metrics.filter(|address| !address.ip().is_loopback() && !self.metrics_public)
        {
            let text = format!(
                "{address} is not on loopback, so others could read it; write 127.0.0.1:{}, or set metrics-public = true",
                address.port()
            );
            return at("metrics", text);
        }
        let bad = |name: &String| {
            name.is_empty() || name.contains(|c: char| c.is_whitespace() || "/:@[]".contains(c))
        };
        if let Some(number) = self.metrics_hosts.iter().position(bad) {
            let name = &self.metrics_hosts[number];
            let text =
                format!("{name:?} is not a host name; write it without a port, such as \"router.example\"");
            return at(&format!("metrics-hosts[{number}]"), text);
        }
        if self.metrics.is_none() && !self.metrics_hosts.is_empty() {
            return at("metrics-hosts", "no effect without `metrics`; give that an address".into());
        }
        if self.capture.size < SMALLEST_FILE {
            let text = format!("a capture file holds at least 1MB, not {}", self.capture.size);
            return at("capture.size", text);
        }
        if !(1..=MOST_FILES).contains(&self.capture.count) {
            let text = format!("a capture has 1 to {MOST_FILES} files, not {}", self.capture.count);
            return at("capture.files", text);
        }
        if self.user.as_deref() == Some("") {
            return at("user", "a user has a name, such as \"nobody\"".into());
        }
        if let Some(priority) = self.realtime.filter(|priority| !(1..=99).contains(priority)) {
            return at("realtime", format!("a real-time priority lies between 1 and 99, not {priority}"));
        }
        if !(64..=1_000_000).contains(&self.buffers) {
            return at("buffers", format!("a router holds 64 to 1000000 packets, not {}", self.buffers));
        }
        Ok(())
    }

    fn check_interfaces(&self) -> Checked {
        let sides = [("inside", &self.inside), ("outside", &self.outside)];
        for (side, interface) in sides {
            interface.check(side)?;
        }
        let at = |key: &str, text: String| Err(Problem::at(steps(key), text));
        if self.inside.device == self.outside.device {
            let text = format!("`{}` is already the inside device; name another", self.outside.device);
            return at("outside.device", text);
        }
        if self.inside.kind != self.outside.kind {
            let text = "both sides must be of the same kind: \"packet\", joined as a bridge, or \"tun\"";
            return at("outside.kind", text.into());
        }
        Ok(())
    }

    fn check_class(&self, number: usize) -> Checked {
        let class = &self.classes[number];
        let at = |key: &str, text: String| {
            Err(Problem::at(steps(&format!("classes[{number}]")).chain(steps(key)), text))
        };
        if let Some(problem) = bad_name(&class.name) {
            return at("name", problem);
        }
        if class.name == UNMATCHED {
            return at(
                "name",
                format!("`{UNMATCHED}` is reserved for packets that match no class; choose another"),
            );
        }
        let before = &self.classes[..number];
        if before.iter().any(|other| other.name == class.name) {
            return at("name", format!("an earlier class has the name `{}`; give each its own", class.name));
        }
        if let Some(first) =
            before.iter().find(|other| other.r#match.is_empty() && other.covers(class.direction))
        {
            let text =
                format!("the earlier class `{}` matches every packet; put this one before it", first.name);
            return at("", text);
        }
        if let Err((key, text)) = class.r#match.check() {
            return at(&format!("match.{key}"), text.into());
        }
        let fixed = class.color.is_some() || class.dscp.is_some();
        let choices = [class.profile.is_some(), fixed, class.trust];
        if choices.iter().filter(|given| **given).count() != 1 {
            let text = "a class needs exactly one of `profile`, `color` with `dscp`, or trust = true";
            return at("", text.into());
        }
        if let Some(profile) = class.profile.as_ref().filter(|profile| follows_windows(profile)) {
            let text = format!(
                "`{}` requires the window control of label-switched paths, which a router does not have",
                profile.name()
            );
            return at(&format!("profile.{}", MeterParams::TAG), text);
        }
        Ok(())
    }

    /// What in it cannot act, or acts otherwise than it seems; each where it stands.
    pub fn notices(&self) -> Vec<Problem> {
        let links = [
            ("upstream", &self.upstream, Direction::Upstream),
            ("downstream", &self.downstream, Direction::Downstream),
        ];
        let mut notices = Vec::new();
        for (name, link, way) in links {
            let Some(Link { rate, queue: Queue(queue), .. }) = link else { continue };
            let classes =
                self.classes.iter().filter(|class| [way, Direction::Both].contains(&class.direction));
            let divided = divisions(classes.map(|class| {
                let profile = class.profile.as_ref();
                (class.name.as_str(), profile.and_then(|profile| division(queue, *rate, 0, profile)))
            }));
            let told = idle_keys(queue, &PACKETS).into_iter().chain(divided);
            notices.extend(
                told.map(|(key, text)| {
                    Problem::at(steps(name).chain(steps("queue")).chain(steps(&key)), text)
                }),
            );
        }
        notices
    }

    /// The key of the first part in which another configuration differs that a router cannot change while it runs.
    fn differs_for_good(&self, other: &Self) -> Option<&'static str> {
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

/// Whether a meter steers by what the control of a path tells it.
fn follows_windows(profile: &MeterParams) -> bool {
    profile.follows_paths() || matches!(profile, MeterParams::Twam(_))
}

impl Interface {
    fn check(&self, side: &str) -> Checked {
        let at =
            |key: &str, text: String| Err(Problem::at([side, key].map(|key| Step::Key(key.into())), text));
        let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '%');
        if self.device.is_empty() || self.device.len() > LONGEST_NAME || self.device.contains(bad) {
            let text = format!(
                "{:?} is not an interface name: 1 to {LONGEST_NAME} characters, such as eth0",
                self.device
            );
            return at("device", text);
        }
        if self.kind == Kind::Packet {
            let of_tun = [
                ("ipv4", self.ipv4.is_some()),
                ("ipv6", self.ipv6.is_some()),
                ("mtu", self.mtu.is_some()),
                ("queue-length", self.queue_length.is_some()),
            ];
            if let Some((key, _)) = of_tun.into_iter().find(|(_, given)| *given) {
                return at(
                    key,
                    "only kind = \"tun\" has this key; an interface of kind \"packet\" keeps its own settings".into(),
                );
            }
        }
        if let Some(mtu) = self.mtu.filter(|&mtu| mtu < 576) {
            return at("mtu", format!("an MTU must be at least 576 bytes (RFC 791), not {mtu}"));
        }
        if let Some(mtu) = self.mtu.filter(|&mtu| mtu < 1280 && self.ipv6.is_some()) {
            return at("mtu", format!("IPv6 needs at least 1280 bytes (RFC 8200), not {mtu}"));
        }
        Ok(())
    }
}

impl Link {
    fn check(&self, name: &str) -> Checked {
        let at = |inner: &str, text: String| {
            let under = [name, "queue"].map(|key| Step::Key(key.into()));
            Err(Problem::at(under.into_iter().chain(steps(inner)), text))
        };
        if let Err(problem) = self.queue.0.fits(self.rate) {
            let text = problem.to_string();
            let (inner, message) = split_key(&text);
            return at(inner, message.into());
        }
        if let Some((key, path)) = self.queue.0.clone().paths().first() {
            return at(
                key,
                format!(
                    "a router has no label-switched paths, such as `{}`; match by dscp or color",
                    path.name()
                ),
            );
        }
        let rules = self.queue.0.aqms(None);
        if let Some((key, rule)) = rules.iter().find(|(_, rule)| rule.follows_paths()) {
            let text = format!(
                "`{}` requires the window control of label-switched paths, which a router does not have; choose another rule",
                rule.name()
            );
            return at(&format!("{key}.{}", AqmParams::TAG), text);
        }
        Ok(())
    }
}

impl Class {
    /// Whether it takes packets of all directions that another one takes.
    fn covers(&self, direction: Direction) -> bool {
        self.direction == Direction::Both || self.direction == direction
    }
}

impl Direction {
    /// Upstream and downstream, with their names.
    pub const WAYS: [(Self, &str); 2] = [(Self::Upstream, "upstream"), (Self::Downstream, "downstream")];
}

impl<'de, A: FromStr> Deserialize<'de> for Address<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let most = size_of::<A>() * 8;
        let (address, bits) = text.split_once('/').unwrap_or((&text, ""));
        let read = address.parse().ok().zip(bits.parse().ok().filter(|&bits| usize::from(bits) <= most));
        read.map(|(address, bits)| Self(address, bits)).ok_or_else(|| {
            let example = if most == 32 { "10.9.0.1/24" } else { "fd00:9::1/64" };
            de::Error::custom(format!("`{text}` is not an address with a prefix length, such as {example}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;
    use perhop_live::Plane;
    use proptest::prelude::*;

    const GOOD: &str = r#"
unmatched = "best-effort"
metrics = "127.0.0.1:9477"
user = "nobody"

[inside]
device = "eth1"
kind = "packet"

[outside]
device = "eth0"
kind = "packet"

[upstream]
rate = "20Mbps"
delay = "1ms"
queue = { aqm = "rio", limit = "50p", in = "10/30/0.02", total = "5/15/0.1" }

[[classes]]
name = "gold"
match = { source = "10.0.0.0/24", protocol = "tcp", destination-ports = "5000..5009" }
profile = { marker = "token-bucket", rate = "4Mbps", burst = "40kB" }

[[classes]]
name = "calls"
direction = "upstream"
match = { dscp = 46 }
color = "green"
"#;

    fn message(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        Config::read(&GOOD.replacen(from, to, 1), "r.toml").expect_err(to).to_string()
    }

    #[test]
    fn a_good_one_is_read() {
        let config = Config::read(GOOD, "r.toml").unwrap();
        assert_eq!(
            (config.buffers, config.classes.len(), config.unmatched),
            (10_000, 2, Unmatched::BestEffort)
        );
        let tun = GOOD.replace("\"packet\"", "\"tun\"\nipv4 = \"10.9.0.1/24\"\nmtu = 1400");
        assert_eq!(
            Config::read(&tun, "r.toml").unwrap().inside.ipv4,
            Some(Address([10, 9, 0, 1].into(), 24))
        );
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn each_problem_is_named_where_it_stands() {
        let cases = [
            (
                "kind = \"packet\"",
                "kind = \"pakcet\"",
                "r.toml:8: inside.kind: unknown value `pakcet`; did you mean `packet`?",
            ),
            (
                "device = \"eth1\"",
                "devcie = \"eth1\"",
                "r.toml:7: inside.devcie: unknown key `devcie`; did you mean `device`?",
            ),
            ("device = \"eth1\"\n", "", "r.toml:6: inside: key `device` is missing"),
            ("\"eth1\"", "\"eth0\"", "r.toml:11: outside.device: `eth0` is already the inside device"),
            (
                "\"eth1\"",
                "\"a name that is too long\"",
                "r.toml:7: inside.device: \"a name that is too long\" is not an interface name",
            ),
            (
                "\"eth1\"\nkind = \"packet\"",
                "\"eth1\"\nkind = \"tun\"",
                "r.toml:12: outside.kind: both sides must be of the same kind",
            ),
            ("\"eth1\"", "\"eth1\"\nmtu = 1400", "r.toml:8: inside.mtu: only kind = \"tun\" has this key"),
            ("[outside]", "[outsdie]", "r.toml:10: outsdie: unknown key `outsdie`; did you mean `outside`?"),
            (
                "\"20Mbps\"",
                "\"20mbps\"",
                "r.toml:15: upstream.rate: `20mbps` has the unit `mbps`, which is ambiguous",
            ),
            ("limit = \"50p\", ", "", "r.toml:17: upstream.queue: key `limit` is missing"),
            (
                "aqm = \"rio\"",
                "aqm = \"rioo\"",
                "r.toml:17: upstream.queue: unknown aqm `rioo`; did you mean `rio`?",
            ),
            (
                "{ aqm = \"rio\", limit = \"50p\", in = \"10/30/0.02\", total = \"5/15/0.1\" }",
                "{ scheduler = \"drr\", queues = [{ name = \"a\", match = { path = \"p\" }, rule = { aqm = \"drop-tail\", limit = \"5p\" } }, { name = \"b\", rule = { aqm = \"drop-tail\", limit = \"5p\" } }] }",
                "r.toml:17: upstream.queue.queues[0].match.path: a router has no label-switched paths",
            ),
            (
                "10.0.0.0/24",
                "10.0.0.0/33",
                "r.toml:21: classes[0].match.source: `10.0.0.0/33` is neither an address nor a network",
            ),
            ("\"tcp\"", "\"tpc\"", "r.toml:21: classes[0].match.protocol: unknown protocol `tpc`"),
            (
                "\"tcp\"",
                "300",
                "r.toml:21: classes[0].match.protocol: a protocol's number lies between 0 and 255, not 300",
            ),
            (
                "\"tcp\"",
                "\"icmp\"",
                "r.toml:21: classes[0].match.destination-ports: only tcp and udp have ports",
            ),
            (
                "5000..5009",
                "5009..5000",
                "r.toml:21: classes[0].match.destination-ports: `5009..5000`: the range ends before it begins",
            ),
            (
                "\"5000..5009\"",
                "0",
                "r.toml:21: classes[0].match.destination-ports: a port lies between 1 and 65535",
            ),
            (
                "source = \"10.0.0.0/24\"",
                "source = \"10.0.0.0/24\", destination = \"fd00::/8\"",
                "r.toml:21: classes[0].match.destination: source and destination must both be IPv4 or both IPv6",
            ),
            (
                "match = { source = \"10.0.0.0/24\", protocol = \"tcp\", destination-ports = \"5000..5009\" }",
                "",
                "r.toml:24: classes[1]: the earlier class `gold` matches every packet",
            ),
            ("rate = \"4Mbps\", ", "", "r.toml:22: classes[0].profile: key `rate` is missing"),
            (
                "token-bucket\", rate = \"4Mbps\", burst = \"40kB\"",
                "twam\", rate = \"4Mbps\"",
                "r.toml:22: classes[0].profile",
            ),
            ("color = \"green\"", "", "r.toml:24: classes[1]: a class needs exactly one of `profile`"),
            (
                "color = \"green\"",
                "color = \"green\"\ntrust = true",
                "r.toml:24: classes[1]: a class needs exactly one of `profile`",
            ),
            ("color = \"green\"", "color = \"blue\"", "r.toml:28: classes[1].color: unknown value `blue`"),
            (
                "dscp = 46",
                "dscp = 64",
                "r.toml:27: classes[1].match.dscp: a codepoint lies between 0 and 63, not 64",
            ),
            (
                "dscp = 46",
                "dscp = [\"EF\", \"AF14\"]",
                "r.toml:27: classes[1].match.dscp[1]: unknown codepoint `AF14`; did you mean `AF11`?",
            ),
            (
                "name = \"calls\"",
                "name = \"gold\"",
                "r.toml:25: classes[1].name: an earlier class has the name `gold`",
            ),
            (
                "name = \"calls\"",
                "name = \"unmatched\"",
                "r.toml:25: classes[1].name: `unmatched` is reserved for packets that match no class",
            ),
            (
                "direction = \"upstream\"",
                "direction = \"up\"",
                "r.toml:26: classes[1].direction: unknown value `up`",
            ),
            (
                "\"best-effort\"",
                "\"dorp\"",
                "r.toml:2: unmatched: unknown value `dorp`; did you mean `drop`?",
            ),
            (
                "127.0.0.1:9477",
                "0.0.0.0:9477",
                "r.toml:3: metrics: 0.0.0.0:9477 is not on loopback, so others could read it; write 127.0.0.1:9477",
            ),
            ("127.0.0.1:9477", "localhost", "r.toml:3: metrics: "),
            (
                "user = \"nobody\"",
                "realtime = 100",
                "r.toml:4: realtime: a real-time priority lies between 1 and 99, not 100",
            ),
            (
                "user = \"nobody\"",
                "buffers = 1",
                "r.toml:4: buffers: a router holds 64 to 1000000 packets, not 1",
            ),
            ("user = \"nobody\"", "user = nobody", "r.toml:4: "),
            (
                "user = \"nobody\"",
                "metrics-hosts = [\"here\", \"here:9477\"]",
                "r.toml:4: metrics-hosts[1]: \"here:9477\" is not a host name; write it without a port",
            ),
            (
                "metrics = \"127.0.0.1:9477\"",
                "metrics-hosts = [\"here\"]",
                "r.toml:3: metrics-hosts: no effect without `metrics`",
            ),
            (
                "user = \"nobody\"",
                "capture = { size = \"10kB\" }",
                "r.toml:4: capture.size: a capture file holds at least 1MB, not 10kB",
            ),
            (
                "user = \"nobody\"",
                "capture = { files = 0 }",
                "r.toml:4: capture.files: a capture has 1 to 100 files, not 0",
            ),
            (
                "user = \"nobody\"",
                "capture = { mode = \"0644\" }",
                "r.toml:4: capture.mode: unknown value `0644`",
            ),
        ];
        for (from, to, expected) in cases {
            let message = message(from, to);
            assert!(message.starts_with(expected), "{to}:\n{message}\n{expected}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    #[test]
    fn what_cannot_act_and_what_a_queue_divides_are_told() {
        let told = |text: &str| {
            let config = Config::read(text, "r.toml").unwrap();
            let notices = perhop_scenario::notices_in(Some(text), "r.toml", config.notices());
            notices.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(told(GOOD), [""; 0]);
        let beyond = told(&GOOD.replacen("5/15/0.1", "50/60/0.1", 1));
        let start = "r.toml:17: upstream.queue.total: `50/60/0.1`: the queue holds at most 50p";
        assert!(beyond[0].starts_with(start), "{beyond:?}");
        let rule = "rule = { aqm = \"drop-tail\", limit = \"50p\" }";
        let queues = |codepoints: &str| {
            let queue = format!(
                "queue = {{ scheduler = \"drr\", queues = [{{ name = \"assured\", match = {{ dscp = {codepoints} }}, {rule} }}, \
                 {{ name = \"rest\", {rule} }}] }}"
            );
            let start = GOOD.find("queue = ").unwrap();
            let end = start + GOOD[start..].find('\n').unwrap();
            format!("{}{queue}{}", &GOOD[..start], &GOOD[end..])
        };
        let divided = told(&queues("\"AF11\""));
        assert!(
            divided[0].starts_with(
                "r.toml:17: upstream.queue.queues[0].match: packets of `gold` go to different queues"
            ),
            "{divided:?}"
        );
        assert_eq!(told(&queues("[\"AF11\", \"AF12\"]")), [""; 0]);
        let second = queues("\"AF11\"").replacen("burst = \"40kB\"", "burst = \"40kB\", af = 2", 1);
        assert_eq!(told(&second), [""; 0]);
    }

    #[test]
    fn what_cannot_change_while_the_router_runs_is_named() {
        let config = Config::read(GOOD, "r.toml").unwrap();
        let successor = |from: &str, to: &str| config.read_successor(&GOOD.replacen(from, to, 1), "r.toml");
        assert!(successor("20Mbps", "10Mbps").is_ok());
        for (from, to, expected) in [
            ("eth1", "eth2", "r.toml:6: inside: this cannot change while the router runs"),
            ("9477", "9478", "r.toml:3: metrics: this cannot change"),
            ("user = \"nobody\"", "", "r.toml: user: this cannot change"),
            (
                "user = \"nobody\"",
                "user = \"nobody\"\ncapture = { files = 3 }",
                "r.toml:5: capture: this cannot",
            ),
            (
                "user = \"nobody\"",
                "user = \"nobody\"\nmetrics-hosts = [\"a\"]",
                "r.toml:5: metrics-hosts: this cannot",
            ),
        ] {
            let message = successor(from, to).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }

    proptest! {
        /// Whatever a slip of the keyboard makes of it: it is refused in one line, or it can be forwarded by.
        #[test]
        fn any_text_is_read_or_refused(at in 0..GOOD.len(), length in 0_usize..20, with in "[ -~]{0,8}") {
            let end = (at + length).min(GOOD.len());
            let text = format!("{}{with}{}", &GOOD[..at], &GOOD[end..]);
            match Config::read(&text, "r.toml") {
                Ok(config) => drop(Plane::new(plan::plane(&Config { buffers: 64, ..config }, 1500), 1)),
                Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error),
            }
        }
    }

    #[test]
    fn the_examples_are_good_ones() {
        let example = include_str!("../../../contrib/perhop-router.toml");
        Config::read(example, "contrib/perhop-router.toml").unwrap();
        let readme = include_str!("../../../README.md");
        let snippet = readme.split("```toml\n").find(|part| part.starts_with("inside = ")).unwrap();
        Config::read(snippet.split("```").next().unwrap(), "README.md").unwrap();
    }
}
