//! Parameters of `FQ-CoDel`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table::FlowHash;
use crate::units::Packets as Count;
use crate::units::defaults::{bytes, millis, number, on, packets};
use crate::{Bytes, Duration};

/// Whose details FQ-CoDel follows where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FqLaw {
    /// RFC 8290: a queue sends while its credit is at least 0; a full port drops half of the packets of the
    /// longest queue.
    #[default]
    Rfc,
    /// Linux: a queue sends while its credit is above 0; a full port drops half of the bytes of the longest
    /// queue, and the drops raise the rate of `CoDel`'s; `CoDel` is that of Linux, too.
    Linux,
}

/// What must stay behind a packet that `CoDel` drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backlog {
    /// More than `mtu` in all queues together (RFC 8289, section 4.4; Linux).
    #[default]
    Port,
    /// More than `mtu` in the flow's queue (ns-3).
    Queue,
}

/// Parameters of [`FqCodel`](super::FqCodel).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FqCodelParams {
    /// Queues to which flows are assigned, from 1 to 65536. With `hash = "exact"`: when there are more flows,
    /// `CoDel`'s state of one that has no packets is forgotten.
    #[serde(default = "number::<1024>")]
    pub flows: u32,
    /// How flows are assigned to queues.
    #[serde(default)]
    pub hash: FlowHash,
    /// Bytes that a queue may send in a turn.
    #[serde(default = "bytes::<1514>")]
    pub quantum: Bytes,
    /// The most packets that wait in all queues.
    #[serde(default = "packets::<10_240>")]
    pub limit: Count,
    /// The most bytes that wait in all queues.
    #[serde(default = "bytes::<{ 32 << 20 }>")]
    pub memory_limit: Bytes,
    /// The most packets that are dropped at once when a limit is exceeded.
    #[serde(default = "number::<64>")]
    pub batch: u32,
    /// The sojourn time that a standing queue may have (TARGET).
    #[serde(default = "millis::<5>")]
    pub target: Duration,
    /// How long the sojourn time must be above the target before a packet is dropped: about the largest usual
    /// round-trip time (INTERVAL).
    #[serde(default = "millis::<100>")]
    pub interval: Duration,
    /// The largest packet: no packet is dropped for its sojourn time while no more than this stays behind
    /// (MTU).
    #[serde(default = "bytes::<1500>")]
    pub mtu: Bytes,
    /// Where more than `mtu` must stay behind.
    #[serde(default)]
    pub backlog: Backlog,
    /// Mark ECN-capable packets instead of dropping them for their sojourn time. TCP flows are capable with
    /// the key `ecn`.
    #[serde(default = "on")]
    pub ecn: bool,
    /// Whose details to follow where RFC 8290 and Linux differ.
    #[serde(default)]
    pub law: FqLaw,
}
