//! Meters at a link, each of a behavior aggregate: the traffic conditioning of a router that packets reach
//! with the colors that others gave them (RFC 2475, section 2.3; RFC 3290, section 8, the traffic
//! conditioning block).
//!
//! A packet passes the first meter that matches it. The marker behind the meter keeps the class of Assured
//! Forwarding with which the packet comes, and only raises its drop precedence (RFC 2597, section 3), unless
//! the parameters say otherwise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Conditioner, MeterParams, Verdict, is_default};
use crate::marker::Remarker;
use crate::matching::Matcher;
use crate::matching::{Match, PathName};
use crate::table::bad_name;
use crate::units::{UnitError, fixed, require};
use crate::{Bitrate, Color, Header, Instant, Reason, Streams};

/// A meter at a link, for all packets on their way to the link's queue that match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AggregateMeter {
    /// The name of the meter, in files and in the name of its random stream.
    pub name: String,
    /// Which packets the meter takes, if no earlier meter of the link takes them. Default: all packets,
    /// acknowledgements included.
    #[serde(default, skip_serializing_if = "is_default")]
    pub r#match: Match,
    /// The traffic profile of all these packets together.
    pub profile: MeterParams,
    /// Whether a packet may leave with a lower drop precedence than it came with. A color-aware meter never
    /// gives one. Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub promote: bool,
}

impl AggregateMeter {
    /// Checks the meters of one link.
    ///
    /// # Errors
    /// What is wrong, with its key, such as `[1].match`.
    pub fn check(meters: &[Self]) -> Result<(), UnitError> {
        for (number, meter) in meters.iter().enumerate() {
            meter.check_behind(&meters[..number]).map_err(|problem| problem.below(&format!("[{number}]")))?;
        }
        Ok(())
    }

    /// Checks the meter behind those `before` it.
    fn check_behind(&self, before: &[Self]) -> Result<(), UnitError> {
        let Self { name, r#match, profile, promote } = self;
        bad_name(name).map_or(Ok(()), |problem| require(false, "name", problem))?;
        let text = format!("an earlier meter of the link has the name `{name}`; give each its own");
        require(before.iter().all(|other| other.name != *name), "name", text)?;
        let first = before.iter().find(|other| other.r#match.covers(r#match)).map(|other| &*other.name);
        let name = first.unwrap_or_default();
        let text = format!("the earlier meter `{name}` takes all of these packets; put this one before it");
        require(first.is_none(), "match", text)?;
        r#match.check().map_err(|problem| problem.below("match"))?;
        let text = "a window-aware marker measures one flow; write it as the `profile` of the flows";
        require(!profile.follows_paths(), format!("profile.{}", MeterParams::TAG), text)?;
        let text = "a color-aware meter gives no packet a better color than it came with; leave this key out";
        require(!promote || !profile.reads_color(), "promote", text)
    }

    /// Returns the label-switched path that the meter names, for the driver to fill in its label.
    pub fn path(&mut self) -> Option<&mut PathName> {
        self.r#match.path.as_mut()
    }

    /// Returns the number of the meter that takes this packet, if one does.
    pub fn taken_by(meters: &[Self], packet: &Header) -> Option<usize> {
        meters.iter().position(|meter| meter.r#match.takes(packet))
    }

    /// Returns what may become of a packet behind these meters: each way in which one of them may mark it.
    pub fn possible(meters: &[Self], packet: Header) -> Vec<Header> {
        let Some(number) = Self::taken_by(meters, &packet) else { return vec![packet] };
        let meter = &meters[number];
        let remarker = meter.remarker();
        let worst = if meter.profile.reads_color() { packet.color } else { Color::Green };
        let mut possible: Vec<Header> = Vec::new();
        for color in meter.profile.colors_marked().filter(|color| *color >= worst) {
            let mut marked = packet;
            remarker.mark(&mut marked, color);
            if !possible.contains(&marked) {
                possible.push(marked);
            }
        }
        possible
    }

    fn remarker(&self) -> Remarker {
        Remarker { class: self.profile.af_given(), promote: self.promote }
    }
}

/// Packets at a meter of a link, by color.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterCounts {
    /// Packets that came, by the color that they came with.
    pub arrived: [u64; 3],
    /// Packets that went on, by the color that they left with.
    pub passed: [u64; 3],
    /// Packets that it dropped, by the color that it gave them.
    pub policed: [u64; 3],
}

impl MeterCounts {
    /// Returns whether every packet that came went on or was dropped.
    pub fn is_balanced(&self) -> bool {
        let sum = |counts: &[u64; 3]| counts.iter().sum::<u64>();
        sum(&self.arrived) == sum(&self.passed) + sum(&self.policed)
    }

    /// Returns these counts and those of another meter together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.with(other, |one, two| one + two)
    }

    /// Returns the counts since an earlier one of the same meter.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, |now, then| now - then)
    }

    /// Returns the counts that a function makes of each of these and the same one of others.
    fn with(&self, other: &Self, make: fn(u64, u64) -> u64) -> Self {
        let all = |ours: [u64; 3], theirs: [u64; 3]| std::array::from_fn(|n| make(ours[n], theirs[n]));
        Self {
            arrived: all(self.arrived, other.arrived),
            passed: all(self.passed, other.passed),
            policed: all(self.policed, other.policed),
        }
    }
}

/// The meters of one link, at work.
#[derive(Clone, Debug)]
pub struct AggregateMeters(Vec<Aggregate>);

#[derive(Clone, Debug)]
struct Aggregate {
    name: String,
    selector: Matcher,
    conditioner: Conditioner,
    remarker: Remarker,
    counts: MeterCounts,
}

impl AggregateMeters {
    /// Returns the meters at the start of a run; each draws from the stream `meters/NAME`.
    pub fn new(meters: &[AggregateMeter], streams: Streams<'_>) -> Self {
        let aggregate = |meter: &AggregateMeter| {
            let rng = streams.of(&format!("meters/{}", meter.name));
            Aggregate {
                name: meter.name.clone(),
                selector: Matcher::new(Some(&meter.r#match)),
                conditioner: Conditioner::new(&meter.profile, Bitrate::MAX, rng),
                remarker: meter.remarker(),
                counts: MeterCounts::default(),
            }
        };
        Self(meters.iter().map(aggregate).collect())
    }

    /// Gives the meters, of the same names and for the same packets, other parameters from now on.
    ///
    /// # Errors
    /// The key that cannot change, below `meters`; meters before that one have changed then.
    pub fn retune(
        &mut self,
        (before, after): (&[AggregateMeter], &[AggregateMeter]),
        now: Instant,
    ) -> Result<(), UnitError> {
        if before.len() != after.len() {
            return Err(fixed(""));
        }
        for (n, (meter, (was, is))) in self.0.iter_mut().zip(before.iter().zip(after)).enumerate() {
            if was == is {
                continue;
            }
            let same = AggregateMeter { profile: was.profile.clone(), ..is.clone() };
            if same != *was {
                return Err(fixed(&format!("[{n}]")));
            }
            let retuned = meter.conditioner.retune(&is.profile, Bitrate::MAX, now);
            retuned.map_err(|problem| problem.below(&format!("[{n}].profile")))?;
            meter.remarker = is.remarker();
        }
        Ok(())
    }

    /// Marks a packet by the meter that matches it.
    ///
    /// # Errors
    /// The packet is dropped: the color that the meter gave it, and the reason.
    pub fn judge(&mut self, packet: &mut Header, now: Instant) -> Result<(), (Color, Reason)> {
        let Some(meter) = self.0.iter_mut().find(|meter| meter.selector.takes(packet)) else { return Ok(()) };
        let Aggregate { conditioner, remarker, counts, .. } = meter;
        counts.arrived[packet.color.index()] += 1;
        let Verdict { color, dropped } = conditioner.judge(packet, now);
        if let Some(reason) = dropped {
            counts.policed[color.index()] += 1;
            return Err((color, reason));
        }
        remarker.mark(packet, color);
        counts.passed[packet.color.index()] += 1;
        Ok(())
    }

    /// Returns the name and the counts of each meter.
    pub fn counts(&self) -> Vec<(&str, &MeterCounts)> {
        self.0.iter().map(|meter| (meter.name.as_str(), &meter.counts)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dscp, FlowId};

    fn read(text: &str) -> Vec<AggregateMeter> {
        serde_json::from_str(text).unwrap()
    }

    fn packet(color: Color, dscp: &str) -> Header {
        Header { color, dscp: dscp.parse().unwrap(), ..Header::new(FlowId(0), 1000) }
    }

    const AWARE: &str = r#"{"name": "gold", "match": {"dscp": ["AF21", "AF22", "AF23"]},
        "profile": {"marker": "srtcm", "rate": "8kbps", "burst": "1kB", "excess-burst": "1kB", "mode": "color-aware"}}"#;
    const BLIND: &str =
        r#"{"name": "rest", "profile": {"marker": "token-bucket", "rate": "8kbps", "burst": "1kB"}}"#;

    /// What becomes of these packets at time zero: color and codepoint.
    fn judged(meters: &str, packets: &[(Color, &str)]) -> Vec<(Color, String)> {
        let streams = Streams { seed: 1, path: "link" };
        let mut meters = AggregateMeters::new(&read(&format!("[{meters}]")), streams);
        let judge = |&(color, dscp): &(Color, &str)| {
            let mut packet = packet(color, dscp);
            meters.judge(&mut packet, Instant::ZERO).unwrap();
            (packet.color, packet.dscp.to_string())
        };
        packets.iter().map(judge).collect()
    }

    fn goes_on(color: Color, dscp: &str) -> (Color, String) {
        (color, dscp.into())
    }

    use Color::{Green, Red, Yellow};

    #[test]
    fn a_color_aware_meter_re_marks_within_the_class() {
        // Room for one green packet and one yellow one; the packet of another class passes unmetered.
        let packets = [(Red, "AF23"), (Yellow, "AF12"), (Green, "AF21"), (Green, "AF21"), (Yellow, "AF22")];
        let expected = [(Red, "AF23"), (Yellow, "AF12"), (Green, "AF21"), (Yellow, "AF22"), (Red, "AF23")];
        assert_eq!(judged(AWARE, &packets), expected.map(|(color, dscp)| goes_on(color, dscp)));
    }

    #[test]
    fn the_first_meter_that_matches_takes_the_packet() {
        let both = format!("{AWARE}, {BLIND}");
        let packets = [(Green, "AF21"), (Green, "AF31"), (Green, "AF31"), (Yellow, "DF")];
        // Packets without a class keep their codepoint.
        let expected = [(Green, "AF21"), (Green, "AF31"), (Yellow, "AF32"), (Yellow, "DF")];
        assert_eq!(judged(&both, &packets), expected.map(|(color, dscp)| goes_on(color, dscp)));
    }

    #[test]
    fn a_color_blind_meter_raises_the_precedence_and_lowers_it_only_if_told() {
        let packets = [(Red, "AF13"), (Green, "AF11")];
        assert_eq!(judged(BLIND, &packets), [goes_on(Red, "AF13"), goes_on(Yellow, "AF12")]);
        let promote = BLIND.replace(r#""rest","#, r#""rest", "promote": true,"#);
        assert_eq!(judged(&promote, &packets), [goes_on(Green, "AF11"), goes_on(Yellow, "AF12")]);
    }

    #[test]
    fn a_class_that_is_given_is_written_into_every_packet() {
        let four = BLIND.replace(r#""burst": "1kB""#, r#""burst": "1kB", "af": 4"#);
        let packets = [(Green, "AF11"), (Yellow, "DF")];
        assert_eq!(judged(&four, &packets), [goes_on(Green, "AF41"), goes_on(Yellow, "AF42")]);
        let one = BLIND.replace(r#""burst": "1kB""#, r#""burst": "1kB", "af": 1"#);
        assert_eq!(judged(&one, &[(Green, "AF21")]), [goes_on(Green, "AF11")]);
    }

    #[test]
    fn a_policer_drops_by_the_color_of_the_meter_and_every_packet_is_counted() {
        let drop = BLIND.replace(r#""burst": "1kB""#, r#""burst": "1kB", "out": "drop""#);
        let streams = Streams { seed: 1, path: "link" };
        let mut meters = AggregateMeters::new(&read(&format!("[{drop}]")), streams);
        for (color, expected) in
            [(Red, Ok(())), (Green, Err((Yellow, Reason::Policed))), (Red, Err((Yellow, Reason::Policed)))]
        {
            assert_eq!(meters.judge(&mut packet(color, "AF11"), Instant::ZERO), expected);
        }
        let expected = MeterCounts { arrived: [1, 0, 2], passed: [0, 0, 1], policed: [0, 2, 0] };
        assert_eq!(meters.counts(), [("rest", &expected)]);
        let early = MeterCounts { arrived: [0, 0, 1], passed: [0, 0, 1], policed: [0; 3] };
        let later = MeterCounts { arrived: [1, 0, 1], passed: [0; 3], policed: [0, 2, 0] };
        assert_eq!(expected.since(&early), later);
        assert_eq!(early.and(&later), expected);
        assert!(expected.is_balanced());
        assert!(!MeterCounts { passed: [0, 0, 2], ..expected }.is_balanced());
    }

    #[test]
    fn what_may_come_out_is_what_comes_out() {
        let possible = |meters: &str, color, dscp| {
            let of = AggregateMeter::possible(&read(&format!("[{meters}]")), packet(color, dscp));
            of.iter().map(|packet| (packet.color, packet.dscp.to_string())).collect::<Vec<_>>()
        };
        let listed = |list: &[(Color, &str)]| {
            list.iter().map(|&(color, dscp)| (color, dscp.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(possible(AWARE, Yellow, "AF22"), listed(&[(Yellow, "AF22"), (Red, "AF23")]));
        assert_eq!(possible(AWARE, Yellow, "AF12"), listed(&[(Yellow, "AF12")]));
        assert_eq!(possible(BLIND, Red, "AF13"), listed(&[(Red, "AF13")]));
        assert_eq!(possible(BLIND, Green, "AF11"), listed(&[(Green, "AF11"), (Yellow, "AF12")]));
        let drop = AWARE.replace(r#""mode""#, r#""out": "drop-red", "mode""#);
        assert_eq!(possible(&drop, Green, "AF21"), listed(&[(Green, "AF21"), (Yellow, "AF22")]));
        assert_eq!(possible(&drop, Red, "AF23"), []);
        assert_eq!(packet(Green, "AF21").dscp, Dscp::new(18).unwrap());
    }

    #[test]
    fn meters_that_cannot_act_are_refused() {
        let refused =
            |text: &str| AggregateMeter::check(&read(&format!("[{text}]"))).unwrap_err().to_string();
        assert!(refused(&format!("{BLIND}, {AWARE}")).contains("`rest` takes all of these packets"));
        assert!(refused(&format!("{AWARE}, {AWARE}")).contains("has the name `gold`"));
        assert!(refused(&AWARE.replace(r#""gold""#, r#""""#)).contains("a name must have"));
        assert!(
            refused(&AWARE.replace(r#""gold","#, r#""gold", "promote": true,"#))
                .contains("leave this key out")
        );
        let twam = r#"{"name": "a", "profile": {"marker": "twam", "rate": "1Mbps"}}"#;
        assert!(refused(twam).contains("profile.marker"));
        AggregateMeter::check(&read(&format!("[{AWARE}, {BLIND}]"))).unwrap();
    }
}
