//! Which packets a queue, a meter or a drop profile is for: a classifier of behaviour aggregates (RFC 2475,
//! section 2.3.1).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_untagged::UntaggedEnumVisitor;

use crate::abe::Service;
use crate::units::{UnitError, require};
use crate::{Codepoints, Color, Dscp, FlowId, Header};

/// Which packets are meant: those that match every given key.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Match {
    /// The label-switched path of the packets, by name. Acknowledgements on the path match, too.
    #[schemars(with = "Option<String>")]
    pub path: Option<PathName>,
    /// The codepoint of the packets, or a list of codepoints of which they carry one. A marker writes a
    /// different codepoint for each color, so a queue for marked flows lists all of them: `["AF11", "AF12",
    /// "AF13"]`.
    pub dscp: Option<Codepoints>,
    /// The IP precedence of the packets, the three highest bits of the codepoint, or a list of precedences
    /// (RFC 791; RFC 2474, section 4.2.2).
    pub precedence: Option<Precedences>,
    /// The MPLS traffic class of the packets (RFC 5462, the former EXP bits), or a list of them. Only packets
    /// on a label-switched path have one: as routers write it by default, the precedence of the packet.
    pub traffic_class: Option<Precedences>,
    /// The Asymmetric Best-Effort service of the packets.
    pub service: Option<Service>,
    /// The color of the packets.
    pub color: Option<Color>,
    /// Leaves out the packets that match every key of this table.
    pub not: Option<Unmatched>,
}

/// Packets that a match leaves out: those that match every given key.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Unmatched {
    /// The codepoint of these packets, or a list of codepoints.
    pub dscp: Option<Codepoints>,
    /// The IP precedence of these packets, or a list of precedences.
    pub precedence: Option<Precedences>,
    /// The color of these packets.
    pub color: Option<Color>,
}

/// A label-switched path as a user names it. Packets carry its label, which the driver fills in; until then
/// no packet follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct PathName {
    name: String,
    label: Option<u32>,
}

/// Several IP precedences or MPLS traffic classes: numbers of three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Precedences(u8);

impl PathName {
    /// Returns the name of the path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lets the packets of the path carry this label.
    pub fn set_label(&mut self, label: u32) {
        self.label = Some(label);
    }
}

impl From<String> for PathName {
    fn from(name: String) -> Self {
        Self { name, label: None }
    }
}

impl From<PathName> for String {
    fn from(path: PathName) -> Self {
        path.name
    }
}

impl Match {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses a key that leaves no packet.
    pub(crate) fn check(&self) -> Result<(), UnitError> {
        let text = "it has no condition, so no packet would match; write { dscp = 46 }";
        require(self.not != Some(Unmatched::default()), "not", text)?;
        let key = match self {
            Self { not: Some(_), .. } => "not",
            Self { precedence: Some(_), .. } => "precedence",
            Self { traffic_class: Some(_), .. } => "traffic-class",
            _ => return Ok(()),
        };
        let text = "with the other keys it leaves no packet; write keys that some packet matches";
        require(headers().any(|packet| self.takes_unlabelled(&packet)), key, text)
    }

    /// Returns whether this match takes everything that the other one takes.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let path = self.path.as_ref();
        path.is_none_or(|path| other.path.as_ref().is_some_and(|named| named.name == path.name))
            && self.dscp.is_none_or(|dscps| other.dscp.is_some_and(|others| dscps.contain_all(others)))
            && self.precedence.is_none_or(|all| other.precedence.is_some_and(|some| all.contain_all(some)))
            && self
                .traffic_class
                .is_none_or(|all| other.traffic_class.is_some_and(|some| all.contain_all(some)))
            && (self.service.is_none() || self.service == other.service)
            && (self.color.is_none() || self.color == other.color)
            && (self.not.is_none() || self.not == other.not)
    }

    /// Returns whether packets of the path with this label may match.
    fn may_follow(&self, label: u32) -> bool {
        self.path.as_ref().is_none_or(|path| path.label == Some(label))
    }

    /// Returns whether it may take packets of the path of this name.
    pub(crate) fn may_be_on(&self, path: &str) -> bool {
        self.path.as_ref().is_none_or(|named| named.name == path)
    }

    /// Returns whether the match takes all packets of its path, or of every path.
    pub(crate) fn by_path_alone(&self) -> bool {
        *self == Self { path: self.path.clone(), ..Self::default() }
    }

    /// Returns whether the match takes this packet.
    pub(crate) fn takes(&self, packet: &Header) -> bool {
        let labelled = self.traffic_class.is_none() || packet.label != 0;
        self.may_follow(packet.label) && labelled && self.takes_unlabelled(packet)
    }

    /// Returns whether all keys but the label take the packet.
    fn takes_unlabelled(&self, packet: &Header) -> bool {
        let Header { dscp, color, .. } = *packet;
        self.dscp.is_none_or(|dscps| dscps.contains(dscp))
            && self.precedence.is_none_or(|precedences| precedences.contains(dscp))
            && self.traffic_class.is_none_or(|classes| classes.contains(dscp))
            && self.service.is_none_or(|service| service == Service::of(dscp))
            && self.color.is_none_or(|one| one == color)
            && !self.not.is_some_and(|not| not.takes(packet))
    }
}

impl Unmatched {
    fn takes(&self, packet: &Header) -> bool {
        self.dscp.is_none_or(|dscps| dscps.contains(packet.dscp))
            && self.precedence.is_none_or(|precedences| precedences.contains(packet.dscp))
            && self.color.is_none_or(|one| one == packet.color)
    }
}

/// Returns a header for each codepoint and color.
fn headers() -> impl Iterator<Item = Header> {
    Color::ALL.into_iter().flat_map(|color| {
        let of = move |dscp| Header { dscp, color, ..Header::new(FlowId(0), 0) };
        (0..64).filter_map(Dscp::new).map(of)
    })
}

/// A [`Match`] as a data plane asks it: a bit for each codepoint, by color.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    path: Labels,
    codepoints: [u64; 3],
    by_path_alone: bool,
}

/// Which labels packets carry.
#[derive(Clone, Copy, Debug)]
enum Labels {
    /// Any, or none.
    All,
    /// Any.
    Some,
    /// This one; none while it is not known.
    One(Option<u32>),
}

impl Matcher {
    /// Returns a selector of the packets of a match, or of every packet if there is no match.
    pub(crate) fn new(selector: Option<&Match>) -> Self {
        let everything = Match::default();
        let selector = selector.unwrap_or(&everything);
        let mut codepoints = [0; 3];
        for packet in headers().filter(|packet| selector.takes_unlabelled(packet)) {
            codepoints[packet.color.index()] |= 1_u64 << packet.dscp.get();
        }
        let path = match &selector.path {
            Some(path) => Labels::One(path.label),
            None if selector.traffic_class.is_some() => Labels::Some,
            None => Labels::All,
        };
        Self { path, codepoints, by_path_alone: selector.by_path_alone() }
    }

    #[inline]
    pub(crate) fn takes(&self, packet: &Header) -> bool {
        (self.codepoints[packet.color.index()] >> packet.dscp.get() & 1 == 1) & self.may_follow(packet.label)
    }

    /// Returns whether packets of the path with this label may be selected.
    #[inline]
    pub(crate) fn may_follow(&self, label: u32) -> bool {
        match self.path {
            Labels::All => true,
            Labels::Some => label != 0,
            Labels::One(one) => one == Some(label),
        }
    }

    /// Returns whether the selector takes all packets of its path, or of every path.
    pub(crate) fn by_path_alone(&self) -> bool {
        self.by_path_alone
    }
}

impl Precedences {
    /// Returns whether the set has the precedence of this codepoint.
    pub const fn contains(self, dscp: Dscp) -> bool {
        self.0 >> (dscp.get() >> 3) & 1 == 1
    }

    /// Returns whether the set has all of `others`.
    pub const fn contain_all(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// Returns the set of these precedences; numbers above 7 are left out.
    pub fn of(numbers: impl IntoIterator<Item = u8>) -> Self {
        Self(numbers.into_iter().filter(|number| *number < 8).fold(0, |bits, number| bits | 1 << number))
    }

    /// Returns each precedence, from the lowest.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..8).filter(move |number| self.0 >> number & 1 == 1)
    }

    /// Returns this one; refuses one that does not have three bits.
    fn one<E: de::Error>(number: i128) -> Result<Self, E> {
        if (0..8).contains(&number) {
            return Ok(Self(1 << number));
        }
        Err(E::custom(format!("a precedence lies between 0 and 7, not {number}")))
    }
}

impl Serialize for Precedences {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut numbers = self.iter();
        match (numbers.next(), numbers.next()) {
            (Some(only), None) => serializer.serialize_u8(only),
            _ => serializer.collect_seq(self.iter()),
        }
    }
}

impl<'de> Deserialize<'de> for Precedences {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("a precedence, a number from 0 to 7, or a list of precedences")
            .i128(Self::one)
            .seq(|list| match list.deserialize::<Vec<i64>>()? {
                none if none.is_empty() => {
                    Err(de::Error::custom("the list has no precedence; leave the key out, or write some"))
                }
                some => some.into_iter().try_fold(Self(0), |all, number| {
                    Self::one(number.into()).map(|Self(bit)| Self(all.0 | bit))
                }),
            })
            .deserialize(deserializer)
    }
}

impl JsonSchema for Precedences {
    fn schema_name() -> Cow<'static, str> {
        "Precedences".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = json_schema!({ "type": "integer", "minimum": 0, "maximum": 7, "description": "The number of the precedence or traffic class." });
        json_schema!({
            "description": "One precedence or traffic class, or a list of them, such as [3, 4].",
            "anyOf": [one, { "type": "array", "items": one, "minItems": 1, "description": "Each of these." }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(table: &str) -> Match {
        let read: Match = serde_json::from_str(table).unwrap();
        assert_eq!(serde_json::from_str::<Match>(&serde_json::to_string(&read).unwrap()).unwrap(), read);
        read
    }

    fn packet(dscp: u8, label: u32, color: Color) -> Header {
        Header { dscp: Dscp::new(dscp).unwrap(), label, color, ..Header::new(FlowId(0), 40) }
    }

    /// The yellow codepoints of packets without and with a label.
    fn taken(table: &str) -> [Vec<u8>; 2] {
        let selector = read(table);
        let matcher = Matcher::new(Some(&selector));
        [0, 7].map(|label| {
            let taken = (0..64).filter(|&dscp| {
                let packet = packet(dscp, label, Color::Yellow);
                assert_eq!(selector.takes(&packet), matcher.takes(&packet), "{table} {dscp}");
                selector.takes(&packet)
            });
            taken.collect()
        })
    }

    #[test]
    fn precedence_and_traffic_class_are_the_highest_bits() {
        let fourth: Vec<u8> = (32..40).collect();
        assert_eq!(taken(r#"{"precedence": 4}"#), [fourth.clone(), fourth.clone()]);
        assert_eq!(taken(r#"{"traffic-class": [4]}"#), [vec![], fourth], "packets without a label have none");
        assert_eq!(taken(r#"{"precedence": [4, 5], "dscp": ["AF41", "EF", "AF31"]}"#)[0], [34, 46]);
        for (table, problem) in [
            ("8", "between 0 and 7, not 8"),
            ("-1", "between 0 and 7"),
            ("[]", "has no precedence"),
            ("[1, 9]", "not 9"),
            ("0.5", "a number from 0 to 7, or a list"),
        ] {
            let why = serde_json::from_str::<Precedences>(table).unwrap_err().to_string();
            assert!(why.contains(problem), "{table}: {why}");
        }
    }

    #[test]
    fn what_is_negated_is_left_out() {
        let all = taken(r#"{"not": {"dscp": "EF"}}"#)[0].clone();
        assert_eq!((all.len(), all.contains(&46)), (63, false));
        let some = read(r#"{"precedence": 1, "not": {"dscp": ["AF12", "AF13"], "color": "red"}}"#);
        let matcher = Matcher::new(Some(&some));
        for (dscp, color, is_taken) in [
            (10, Color::Red, true),
            (12, Color::Red, false),
            (12, Color::Green, true),
            (18, Color::Green, false),
        ] {
            assert_eq!(matcher.takes(&packet(dscp, 0, color)), is_taken, "{dscp} {color:?}");
            assert_eq!(some.takes(&packet(dscp, 0, color)), is_taken, "{dscp} {color:?}");
        }
    }

    #[test]
    fn a_path_and_its_label() {
        let mut path = read(r#"{"path": "gold", "dscp": 46}"#);
        assert!(!Matcher::new(Some(&path)).takes(&packet(46, 7, Color::Red)), "its label is not known yet");
        path.path.as_mut().unwrap().set_label(7);
        let matcher = Matcher::new(Some(&path));
        let takes = |dscp, label| matcher.takes(&packet(dscp, label, Color::Red));
        assert_eq!([takes(46, 7), takes(46, 8), takes(0, 7)], [true, false, false]);
        assert!(!matcher.by_path_alone() && Matcher::new(None).by_path_alone());
        assert!(Matcher::new(None).takes(&packet(0, 0, Color::Green)));
    }

    #[test]
    fn what_no_packet_matches_is_refused() {
        let why = |table: &str| read(table).check().map_err(|problem| problem.to_string());
        assert!(why(r#"{"not": {}}"#).unwrap_err().contains("no condition"));
        assert!(why(r#"{"dscp": "EF", "precedence": 4}"#).unwrap_err().contains("leaves no packet"));
        assert!(why(r#"{"dscp": "EF", "not": {"precedence": 5}}"#).unwrap_err().contains("not"));
        assert!(why(r#"{"precedence": 4, "traffic-class": 5}"#).is_err());
        assert_eq!(why(r#"{"dscp": "EF", "precedence": 5, "not": {"color": "red"}}"#), Ok(()));
    }

    #[test]
    fn a_wider_match_covers_a_narrower_one() {
        let covers = |one: &str, other: &str| read(one).covers(&read(other));
        assert!(covers(r#"{"precedence": [1, 2]}"#, r#"{"precedence": 2}"#));
        assert!(!covers(r#"{"precedence": 2}"#, r#"{"precedence": [1, 2]}"#));
        assert!(!covers(r#"{"traffic-class": 2}"#, r#"{"precedence": 2}"#));
        assert!(covers(r#"{"precedence": 2}"#, r#"{"precedence": 2, "not": {"dscp": 18}}"#));
        assert!(!covers(r#"{"precedence": 2, "not": {"dscp": 18}}"#, r#"{"precedence": 2}"#));
    }
}
