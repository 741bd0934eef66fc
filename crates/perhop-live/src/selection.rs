//! Which packets are meant, in the form of a configuration: the router's classes, the packets of a capture
//! that are replayed.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use perhop_core::{Codepoints, Dscp, Precedences};
use serde::{Deserialize, Deserializer, de};
use serde_untagged::UntaggedEnumVisitor;

use crate::classifier::{Prefix, Selector};

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
        for (key, ports) in
            [("source-ports", &self.source_ports), ("destination-ports", &self.destination_ports)]
        {
            if ports.is_some() && without_ports {
                return Err((key, "only tcp and udp have ports; leave this key out, or change `protocol`"));
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

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
