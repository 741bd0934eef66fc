//! Asymmetric Best-Effort: two services at one price, green for low delay and blue for throughput (Hurley &
//! Le Boudec 1999; Hurley, Le Boudec, Thiran & Kara 2001).
//!
//! A service says what a packet would rather have, not how droppable it is: it is no [`Color`](crate::Color).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Dscp;

/// The Asymmetric Best-Effort service of a packet (Hurley & Le Boudec 1999, section 2).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Service {
    /// As much throughput as flat best effort would give, or more; the delay may be longer.
    #[default]
    Blue = 0,
    /// A short queueing delay, at the price of more losses.
    Green = 1,
}

impl Service {
    /// Both services, blue first.
    pub const ALL: [Self; 2] = [Self::Blue, Self::Green];
    /// A codepoint of the pool for local use (RFC 2474, section 6), as
    /// draft-hurley-alternative-best-effort-01, section 7, asks.
    const GREEN: Dscp = match Dscp::new(0b00_0011) {
        Some(dscp) => dscp,
        None => Dscp::DEFAULT,
    };

    /// 0 for blue, 1 for green.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The service's name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blue => "blue",
            Self::Green => "green",
        }
    }

    /// The codepoint that asks for the service: best effort's own for blue, so that packets of hosts that
    /// know nothing of it are blue.
    #[inline]
    pub const fn dscp(self) -> Dscp {
        match self {
            Self::Blue => Dscp::DEFAULT,
            Self::Green => Self::GREEN,
        }
    }

    /// The service that a codepoint asks for: every other than green's is blue.
    #[inline]
    pub const fn of(dscp: Dscp) -> Self {
        if dscp.get() == Self::GREEN.get() { Self::Green } else { Self::Blue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_local_use_codepoint_3_is_green() {
        assert_eq!(Service::ALL.map(|service| service.dscp().get()), [0, 3]);
        let green: Vec<u8> =
            (0..64).filter(|&value| Service::of(Dscp::new(value).unwrap()) == Service::Green).collect();
        assert_eq!(green, [3]);
        assert_eq!(Service::ALL.map(Service::index), [0, 1]);
        assert_eq!(Service::ALL.map(Service::name), ["blue", "green"]);
        assert_eq!(Service::default(), Service::Blue);
        assert_eq!(serde_json::to_string(&Service::ALL).unwrap(), r#"["blue","green"]"#);
    }
}
