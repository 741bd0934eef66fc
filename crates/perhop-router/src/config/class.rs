//! Classes of packets: which packets they match, and the color and codepoint that these get.

use perhop_core::marker::AfClass;
use perhop_core::meter::MeterParams;
use perhop_core::table::bad_name;
use perhop_core::{Color, Dscp};
use perhop_live::selection::Match;
use perhop_live::{Remark, color_of};
use perhop_scenario::{Problem, simulated_only, steps};
use serde::Deserialize;

use super::{Checked, Kind};

/// The name, among classes, of the packets that match no class.
pub const UNMATCHED: &str = "unmatched";

/// A class of packets, and how they are marked before they come to the queue.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Class {
    /// The name of the class in metrics and in the summary.
    pub name: String,
    /// Which packets the class takes, if no earlier class does. Default: all.
    #[serde(default)]
    pub r#match: Match,
    /// The direction of the packets that it takes.
    #[serde(default)]
    pub direction: Direction,
    /// The traffic profile: a meter that colors and marks its packets. Each direction has its own meter.
    pub profile: Option<MeterParams>,
    /// The color of all its packets.
    pub color: Option<Color>,
    /// The codepoint of all its packets.
    pub dscp: Option<Dscp>,
    /// Whether its packets keep their codepoint and have the corresponding color.
    #[serde(default)]
    pub trust: bool,
    /// The priority code point to write into the outermost VLAN tag of its packets.
    pub pcp: Option<u8>,
    /// The traffic class to write into the topmost MPLS label of its packets.
    pub mpls_tc: Option<u8>,
}

/// The direction of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From inside to outside.
    Upstream,
    /// From outside to inside.
    Downstream,
    /// Both directions.
    #[default]
    Both,
}

/// The treatment of packets that match no class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unmatched {
    /// Packets that match no class are best effort: OUT, with codepoint 0.
    #[default]
    BestEffort,
    /// Packets that match no class keep their codepoint and have the corresponding color.
    Trust,
    /// Packets that match no class are dropped.
    Drop,
}

/// Checks the class of this number, also against the classes before it, for interfaces of this kind.
pub(super) fn check(classes: &[Class], number: usize, kind: Kind) -> Checked {
    let class = &classes[number];
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
    let before = &classes[..number];
    if before.iter().any(|other| other.name == class.name) {
        return at("name", format!("an earlier class has the name `{}`; give each its own", class.name));
    }
    if let Some(first) = before.iter().find(|other| other.r#match.is_empty() && other.covers(class.direction))
    {
        let text = format!("the earlier class `{}` matches every packet; put this one before it", first.name);
        return at("", text);
    }
    if let Err((key, text)) = class.r#match.check() {
        return at(&format!("match.{key}"), text.into());
    }
    if let Some(key) = class.first_of_frames().filter(|_| kind == Kind::Tun) {
        let text =
            "packets of a TUN interface come without a frame; leave this key out, or use kind = \"packet\"";
        return at(&key, text.into());
    }
    for (key, value) in [("pcp", class.pcp), ("mpls-tc", class.mpls_tc)] {
        if let Some(value) = value.filter(|value| *value > 7) {
            return at(key, format!("it has three bits, so it lies between 0 and 7, not {value}"));
        }
    }
    let fixed = class.color.is_some() || class.dscp.is_some();
    let choices = [class.profile.is_some(), fixed, class.trust];
    if choices.iter().filter(|given| **given).count() != 1 {
        let text = "a class needs exactly one of `profile`, `color` with `dscp`, or trust = true";
        return at("", text.into());
    }
    if let Some(profile) = class.profile.as_ref().filter(|profile| profile.follows_paths()) {
        let text = format!(
            "`{}` requires the window control of label-switched paths, which a router does not have",
            profile.name()
        );
        return at(&format!("profile.{}", MeterParams::TAG), text);
    }
    if let Some(params) = class.profile.as_ref().and_then(MeterParams::foreign) {
        return at(&format!("profile.{}", MeterParams::TAG), simulated_only(&params.class));
    }
    Ok(())
}

impl Class {
    /// Returns the color and the codepoint of all its packets; `None` if it has a profile, or its packets
    /// keep their codepoint.
    pub fn coloring(&self) -> Option<(Color, Dscp)> {
        match (self.color, self.dscp) {
            (Some(color), Some(dscp)) => Some((color, dscp)),
            (Some(color), None) => Some((color, AfClass::ONE.codepoint(color))),
            (None, Some(dscp)) => Some((color_of(dscp), dscp)),
            (None, None) => None,
        }
    }

    /// Returns what is written into the headers before its packets.
    pub fn remark(&self) -> Remark {
        Remark { priority: self.pcp, traffic_class: self.mpls_tc }
    }

    /// Returns the first key about what precedes IP packets in their frames.
    fn first_of_frames(&self) -> Option<String> {
        let matched = self.r#match.first_of_frames().map(|key| format!("match.{key}"));
        let written = [("pcp", self.pcp), ("mpls-tc", self.mpls_tc)];
        let written = written.into_iter().find(|(_, value)| value.is_some()).map(|(key, _)| key.into());
        matched.or(written)
    }

    /// Returns whether it takes packets of all directions that another one takes.
    fn covers(&self, direction: Direction) -> bool {
        self.direction == Direction::Both || self.direction == direction
    }
}

impl Direction {
    /// The directions that a packet can have.
    pub const OF_PACKETS: [Self; 2] = [Self::Upstream, Self::Downstream];

    /// Returns the name of the direction in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Downstream => "downstream",
            Self::Both => "both",
        }
    }
}
