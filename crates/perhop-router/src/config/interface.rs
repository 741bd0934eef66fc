//! The interfaces that a router joins.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

use super::{Checked, refuse};

/// The longest name of an interface in Linux.
const LONGEST_NAME: usize = 15;

/// A side of the router.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Interface {
    /// The interface's name.
    pub device: String,
    /// The kind of the interface.
    pub kind: Kind,
    /// For a TUN device: its IPv4 address and the length of its network's prefix.
    pub ipv4: Option<Address<Ipv4Addr>>,
    /// For a TUN device: its IPv6 address and the length of its network's prefix.
    pub ipv6: Option<Address<Ipv6Addr>>,
    /// For a TUN device: its longest packet. Default: 1500.
    pub mtu: Option<u16>,
    /// For a TUN device: how many packets of the kernel may wait. Default: 1000.
    pub queue_length: Option<u32>,
}

/// The kind of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An existing interface, such as Ethernet or veth; two of them are joined as a transparent bridge.
    Packet,
    /// A TUN device that the router creates, for packets that the kernel routes to it.
    Tun,
}

/// An address and the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<A>(pub A, pub u8);

impl Interface {
    pub(super) fn check(&self, side: &str) -> Checked {
        let at = |key: &str, text: String| refuse(&format!("{side}.{key}"), text);
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
