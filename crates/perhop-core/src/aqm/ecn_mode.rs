//! What the RED family does with ECN-capable packets, and with others, where it would drop (RFC 3168; Linux
//! `sch_red.c`).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_untagged::UntaggedEnumVisitor;

use crate::Header;

/// What a RED test does to a packet that does not pass, and how it came to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Drops it by chance, between min and max.
    Early,
    /// Notifies its ends of congestion, with the same probability.
    Notify,
    /// Drops it, at or above max.
    Forced,
    /// Notifies its ends of congestion, at or above max.
    NotifyForced,
}

/// Which packets an AQM of the RED family marks in place of dropping them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnMode {
    /// None.
    #[default]
    Off,
    /// ECN-capable ones that it would drop by chance; above max it drops all (RFC 3168, section 7; Linux `ecn
    /// harddrop`).
    BelowMax,
    /// Every ECN-capable one, above max, too (Linux `ecn`).
    AboveMax,
    /// Every ECN-capable one; it drops none, others only where there is no room (Linux `ecn nodrop`;
    /// `OpenConfig` `drop: false`).
    Only,
    /// As `Only` below max, where it drops none; above max it drops all (Linux `ecn nodrop harddrop`).
    OnlyBelowMax,
}

/// The modes with a name, which is the value of `ecn`.
const NAMED: [(&str, EcnMode); 3] = [
    ("mark-above-max", EcnMode::AboveMax),
    ("mark-only", EcnMode::Only),
    ("mark-only-below-max", EcnMode::OnlyBelowMax),
];

impl EcnMode {
    /// What becomes of a packet that chance has chosen; `None` lets it pass.
    #[inline]
    pub(super) fn by_chance(self, packet: &Header) -> Option<Severity> {
        match self {
            Self::Off => Some(Severity::Early),
            Self::BelowMax | Self::AboveMax => Some(Severity::Notify),
            Self::Only | Self::OnlyBelowMax => packet.ecn.is_capable().then_some(Severity::Notify),
        }
    }

    /// What becomes of a packet above max; `None` lets it pass.
    #[inline]
    pub(super) fn forced(self, packet: &Header) -> Option<Severity> {
        match self {
            Self::Off | Self::BelowMax | Self::OnlyBelowMax => Some(Severity::Forced),
            Self::AboveMax => Some(Severity::NotifyForced),
            Self::Only => packet.ecn.is_capable().then_some(Severity::NotifyForced),
        }
    }
}

impl Serialize for EcnMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match NAMED.iter().find(|(_, mode)| mode == self) {
            Some((name, _)) => serializer.serialize_str(name),
            None => serializer.serialize_bool(*self == Self::BelowMax),
        }
    }
}

impl<'de> Deserialize<'de> for EcnMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = NAMED.map(|(name, _)| format!("\"{name}\"")).join(", ");
        let expected = format!("true, false, or one of {names}");
        UntaggedEnumVisitor::new()
            .expecting(&expected)
            .bool(|on| Ok(if on { Self::BelowMax } else { Self::Off }))
            .string(|name| {
                let found = NAMED.iter().find(|(known, _)| *known == name);
                let unknown = || de::Error::invalid_value(Unexpected::Str(name), &expected.as_str());
                found.map(|&(_, mode)| mode).ok_or_else(unknown)
            })
            .deserialize(deserializer)
    }
}

impl JsonSchema for EcnMode {
    fn schema_name() -> Cow<'static, str> {
        "EcnMode".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Which packets are marked in place of being dropped.",
            "anyOf": [
                { "type": "boolean", "description": "Whether ECN-capable packets are marked below max." },
                {
                    "type": "string",
                    "enum": NAMED.map(|(name, _)| name),
                    "description": "Also above max; or marked only, and others never dropped early.",
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, FlowId};

    #[test]
    fn each_mode_by_hand() {
        use Severity::{Early, Forced, Notify, NotifyForced};
        // (by chance, above max) of a packet that is not capable, then of one that is.
        for (text, others, capable) in [
            ("false", (Some(Early), Some(Forced)), (Some(Early), Some(Forced))),
            ("true", (Some(Notify), Some(Forced)), (Some(Notify), Some(Forced))),
            (r#""mark-above-max""#, (Some(Notify), Some(NotifyForced)), (Some(Notify), Some(NotifyForced))),
            (r#""mark-only""#, (None, None), (Some(Notify), Some(NotifyForced))),
            (r#""mark-only-below-max""#, (None, Some(Forced)), (Some(Notify), Some(Forced))),
        ] {
            let mode: EcnMode = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&mode).unwrap(), text);
            for (ecn, expected) in
                [(Ecn::NotCapable, others), (Ecn::Capable0, capable), (Ecn::Congested, capable)]
            {
                let packet = Header { ecn, ..Header::new(FlowId(0), 1000) };
                assert_eq!((mode.by_chance(&packet), mode.forced(&packet)), expected, "{text} {ecn:?}");
            }
        }
        let why = serde_json::from_str::<EcnMode>(r#""always""#).unwrap_err().to_string();
        assert!(why.contains("true, false, or one of \"mark-above-max\""), "{why}");
    }
}
