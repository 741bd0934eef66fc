//! Which packets are meant, in the form of a configuration: the router's classes, the packets of a capture
//! that are replayed.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use perhop_core::{Codepoints, Dscp, Precedences};
use serde::{Deserialize, Deserializer, de};
use serde_untagged::UntaggedEnumVisitor;

use crate::classifier::{Prefix, Selector};
use crate::encapsulation::Enclosure;

/// Packets that agree with every key given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Match {
    /// The network that they come from.
    pub source: Option<Network>,
    /// The network that they go to.
    pub destination: Option<Network>,
    /// The protocol above IP.
    pub protocol: Option<Protocol>,
    /// The ports that they come from.
    pub source_ports: Option<PortRange>,
    /// The ports that they go to.
    pub destination_ports: Option<PortRange>,
    /// The codepoint of the packets when they come, or a list of codepoints.
    pub dscp: Option<Codepoints>,
    /// The IP precedence of the packets when they come, the three highest bits of the codepoint, or a list of
    /// precedences.
    pub precedence: Option<Precedences>,
    /// The identifier of their VLAN tag, the innermost where there are several.
    pub vlan: Option<Numbers<4094>>,
    /// The priority code point of this tag.
    pub pcp: Option<Numbers<7>>,
    /// The identifier of their outermost VLAN tag, where there are several (QinQ).
    pub outer_vlan: Option<Numbers<4094>>,
    /// The priority code point of the outermost tag.
    pub outer_pcp: Option<Numbers<7>>,
    /// The topmost MPLS label.
    pub mpls_label: Option<Numbers<0xf_ffff>>,
    /// The traffic class of this label.
    pub mpls_tc: Option<Numbers<7>>,
    /// The PPPoE session.
    pub pppoe_session: Option<Numbers<0xffff>>,
    /// Leaves out the packets that agree with every key of this table.
    pub not: Option<Except>,
}

/// Packets that are left out, by their codepoint or precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Except {
    /// The codepoint of the packets, or a list of codepoints.
    pub dscp: Option<Codepoints>,
    /// The IP precedence of the packets, or a list of precedences.
    pub precedence: Option<Precedences>,
}

/// A network, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: Prefix,
}

/// A protocol above IP, by name or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(u8);

/// A port, or a range of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(RangeInclusive<u16>);

/// A number of at most `MOST`, or a range of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers<const MOST: u32>(RangeInclusive<u32>);

impl<const MOST: u32> Numbers<MOST> {
    /// Returns the range in a type that holds `MOST`.
    fn range<T: TryFrom<u32>>(&self) -> Option<RangeInclusive<T>> {
        let number = |number: &u32| T::try_from(*number).ok();
        number(self.0.start()).zip(number(self.0.end())).map(|(first, last)| first..=last)
    }
}

/// Protocols that have names here.
const PROTOCOLS: [(&str, u8); 8] = [
    ("icmp", 1),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("icmpv6", 58),
    ("ospf", 89),
    ("sctp", 132),
];

impl Match {
    /// Returns whether it takes everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that there can be such packets; otherwise returns the key at fault.
    ///
    /// # Errors
    /// The key and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if let (Some(source), Some(destination)) = (&self.source, &self.destination)
            && source.address.is_ipv4() != destination.address.is_ipv4()
        {
            return Err(("destination", "source and destination must both be IPv4 or both IPv6"));
        }
        if self.not.is_some_and(|not| not == Except::default()) {
            return Err(("not", "it has no condition, so no packet would match; write { dscp = 46 }"));
        }
        let by_codepoint = self.precedence.is_some() || self.not.is_some();
        if by_codepoint && self.codepoints().next().is_none() {
            let key = if self.not.is_some() { "not" } else { "precedence" };
            return Err((
                key,
                "with the other keys it leaves no packet; write keys that some packet matches",
            ));
        }
        let without_ports = self.protocol.is_some_and(|protocol| !matches!(protocol.0, 6 | 17));
        if self.mpls_label.is_some() && self.pppoe_session.is_some() {
            return Err((
                "pppoe-session",
                "a frame has MPLS labels or a PPPoE session, never both; leave one out",
            ));
        }
        for (key, ports) in
            [("source-ports", &self.source_ports), ("destination-ports", &self.destination_ports)]
        {
            if ports.is_some() && without_ports {
                return Err((key, "only tcp and udp have ports; leave this key out, or change `protocol`"));
            }
        }
        Ok(())
    }

    /// Returns the first key about what precedes IP packets in their frames.
    pub fn first_of_frames(&self) -> Option<&'static str> {
        let keys = [
            ("vlan", self.vlan.is_some()),
            ("pcp", self.pcp.is_some()),
            ("outer-vlan", self.outer_vlan.is_some()),
            ("outer-pcp", self.outer_pcp.is_some()),
            ("mpls-label", self.mpls_label.is_some()),
            ("mpls-tc", self.mpls_tc.is_some()),
            ("pppoe-session", self.pppoe_session.is_some()),
        ];
        keys.into_iter().find(|(_, given)| *given).map(|(key, _)| key)
    }

    fn enclosure(&self) -> Enclosure {
        Enclosure {
            vlan: self.vlan.as_ref().and_then(Numbers::range),
            priority: self.pcp.as_ref().and_then(Numbers::range),
            outer_vlan: self.outer_vlan.as_ref().and_then(Numbers::range),
            outer_priority: self.outer_pcp.as_ref().and_then(Numbers::range),
            label: self.mpls_label.as_ref().and_then(Numbers::range),
            traffic_class: self.mpls_tc.as_ref().and_then(Numbers::range),
            session: self.pppoe_session.as_ref().and_then(Numbers::range),
        }
    }

    /// Returns the selection as the data plane asks it.
    pub fn selector(&self) -> Selector {
        let ports = |ports: &Option<PortRange>| ports.as_ref().map(|ports| ports.0.clone());
        Selector {
            source: self.source.map(|network| network.prefix),
            destination: self.destination.map(|network| network.prefix),
            protocol: self.protocol.map(|protocol| protocol.0),
            source_ports: ports(&self.source_ports),
            destination_ports: ports(&self.destination_ports),
            dscp: if self.precedence.is_none() && self.not.is_none() {
                self.dscp
            } else {
                Some(self.codepoints().collect())
            },
            enclosure: self.enclosure(),
        }
    }

    /// Returns the codepoints that it takes.
    fn codepoints(&self) -> impl Iterator<Item = Dscp> {
        let agree = |dscp, codepoints: Option<Codepoints>, precedence: Option<Precedences>| {
            codepoints.is_none_or(|codepoints| codepoints.contains(dscp))
                && precedence.is_none_or(|precedences| precedences.contains(dscp))
        };
        (0..64).filter_map(Dscp::new).filter(move |&dscp| {
            let left_out = self.not.is_some_and(|not| agree(dscp, not.dscp, not.precedence));
            agree(dscp, self.dscp, self.precedence) && !left_out
        })
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let read = || {
            let (address, bits) = text.split_once('/').map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
            let address: IpAddr = address.parse().ok()?;
            let all = if address.is_ipv4() { 32 } else { 128 };
            let prefix = Prefix::new(address, bits.map_or(Some(all), |bits| bits.parse().ok())?)?;
            Some(Self { address, prefix })
        };
        read().ok_or_else(|| {
            de::Error::custom(format!(
                "`{text}` is neither an address nor a network, such as 10.0.0.0/8 or fd00::/8"
            ))
        })
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("a protocol such as \"tcp\" or \"udp\", or its number")
            .string(|text| {
                let known = PROTOCOLS.iter().find(|(name, _)| *name == text);
                known.map(|&(_, number)| Self(number)).ok_or_else(|| {
                    let names = PROTOCOLS.map(|(name, _)| name).join(", ");
                    de::Error::custom(format!(
                        "unknown protocol `{text}`; write its number, or one of {names}"
                    ))
                })
            })
            .i128(|number| {
                let range = || format!("a protocol's number lies between 0 and 255, not {number}");
                u8::try_from(number).map(Self).map_err(|_| de::Error::custom(range()))
            })
            .deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const RANGE: &str = "a port lies between 1 and 65535";
        let not_zero = |port: &u16| *port > 0;
        UntaggedEnumVisitor::new()
            .expecting("a port such as 80, or a range such as \"5000..5009\"")
            .i128(|port| {
                let port = u16::try_from(port).ok().filter(not_zero);
                port.map(|port| Self(port..=port)).ok_or_else(|| de::Error::custom(RANGE))
            })
            .string(|text| {
                let (first, last) = text.split_once("..").unwrap_or((text, text));
                let read = |part: &str| part.trim().parse::<u16>().ok().filter(not_zero);
                match (read(first), read(last)) {
                    (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
                    (Some(_), Some(_)) => {
                        Err(de::Error::custom(format!("`{text}`: the range ends before it begins")))
                    }
                    _ => Err(de::Error::custom(format!(
                        "`{text}`: {RANGE}, a range is such as \"5000..5009\""
                    ))),
                }
            })
            .deserialize(deserializer)
    }
}

impl<'de, const MOST: u32> Deserialize<'de> for Numbers<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |found: &dyn Display| {
            de::Error::custom(format!(
                "`{found}`: expected a number from 0 to {MOST}, or a range such as \"1..3\""
            ))
        };
        UntaggedEnumVisitor::new()
            .expecting("a number such as 3, or a range such as \"1..3\"")
            .i128(|number| {
                let found = u32::try_from(number).ok().filter(|number| *number <= MOST);
                found.map(|number| Self(number..=number)).ok_or_else(|| wrong(&number))
            })
            .string(|text| {
                let (first, last) = text.split_once("..").unwrap_or((text, text));
                let read = |part: &str| part.trim().parse().ok().filter(|number| *number <= MOST);
                let range = read(first).zip(read(last)).filter(|(first, last)| first <= last);
                range.map(|(first, last)| Self(first..=last)).ok_or_else(|| wrong(&text))
            })
            .deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_of_frames_are_read() {
        let read = |text: &str| serde_json::from_str::<Match>(text);
        let found = read(r#"{"vlan": 5, "pcp": "6..7", "mpls-label": "16..1048575"}"#).unwrap();
        let enclosure = found.selector().enclosure;
        assert_eq!((enclosure.vlan, enclosure.priority), (Some(5..=5), Some(6..=7)));
        assert_eq!((enclosure.label, found.first_of_frames()), (Some(16..=0xf_ffff), Some("vlan")));
        for (text, problem) in [
            (r#"{"vlan": 4095}"#, "`4095`: expected a number from 0 to 4094, or a range such as \"1..3\""),
            (r#"{"pcp": -1}"#, "`-1`: expected a number from 0 to 7"),
            (r#"{"mpls-tc": "3..1"}"#, "`3..1`: expected a number from 0 to 7"),
            (r#"{"outer-vlan": "a"}"#, "`a`: expected a number from 0 to 4094"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
        let both = read(r#"{"mpls-label": 3, "pppoe-session": 3}"#).unwrap();
        assert_eq!(both.check().unwrap_err().0, "pppoe-session");
    }

    #[test]
    fn precedence_and_not_become_codepoints() {
        let read = |dscp: &str, precedence: &str, not: Option<(&str, &str)>| {
            let of = |text: &str| -> Option<Vec<u8>> {
                (!text.is_empty()).then(|| text.split(' ').map(|n| n.parse().unwrap()).collect())
            };
            let codepoints =
                |text| of(text).map(|all| all.into_iter().filter_map(Dscp::new).collect::<Codepoints>());
            let precedences = |text| of(text).map(Precedences::of);
            Match {
                dscp: codepoints(dscp),
                precedence: precedences(precedence),
                not: not.map(|(d, p)| Except { dscp: codepoints(d), precedence: precedences(p) }),
                ..Match::default()
            }
        };
        let taken =
            |found: &Match| found.selector().dscp.map(|all| all.iter().map(Dscp::get).collect::<Vec<_>>());
        assert_eq!(taken(&Match::default()), None);
        assert_eq!(taken(&read("46 10", "5", None)), Some(vec![46]));
        assert_eq!(taken(&read("", "1", Some(("8 10 12 14 15", "")))), Some(vec![9, 11, 13]));
        assert_eq!(taken(&read("", "", Some(("", "0 2 3 4 5 6 7")))), Some((8..16).collect()));
        assert_eq!(read("46", "4", None).check().unwrap_err().0, "precedence");
        assert_eq!(read("46", "", Some(("46", ""))).check().unwrap_err().0, "not");
        assert_eq!(read("", "", Some(("", ""))).check().unwrap_err().0, "not");
        assert_eq!(read("46", "5", Some(("44", ""))).check(), Ok(()));
    }
}
