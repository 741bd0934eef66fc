//! The declarations that every block has: `registration.rs` registers blocks.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::units::UnitError;
use crate::{Bitrate, Duration, Instant, Noted, Origin, PseudoCode, Reason, Rng};

/// The time and the random numbers that a block may use.
#[derive(Debug)]
pub struct Context<'a> {
    /// The current time of the driver.
    pub now: Instant,
    /// The block's own random stream.
    pub rng: &'a mut Rng,
}

/// The place of a block: a link, or for a meter the host or router in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The rate at which its queue is served, or, for a meter, at which packets can come.
    pub rate: Bitrate,
}

/// The declaration of a mechanism: its name in scenarios, its parameters, and its properties that do not
/// depend on a run. Each role has declarations of its own besides: [`AqmBlock`](crate::aqm::AqmBlock),
/// [`MeterBlock`](crate::meter::MeterBlock) and [`Scheduler`](crate::scheduler::Scheduler).
pub trait Block: Sized {
    /// The parameters that a user can set. Field docs become the documentation; `Default`s live in the serde
    /// attributes.
    type Params: Clone + Debug + PartialEq + Serialize + DeserializeOwned + JsonSchema;
    /// The name in scenarios.
    const NAME: &'static str;
    /// One line for the tables of blocks.
    const SUMMARY: &'static str;
    /// Where it comes from: what it follows, how old it is, and Linux's version of it.
    const ORIGIN: Origin;
    /// Requires the control messages of a label-switched path; refused on a link without such a path.
    const FOLLOWS_PATHS: bool = false;
    /// The block is implemented outside these crates, by the class that its table names.
    const IS_OUTSIDE: bool = false;
    /// The key `limit` counts packets, so that a time or a size has no meaning there.
    const LIMIT_COUNTS_PACKETS: bool = false;
    /// The simulator's batched engine may run it: it learns of time only from its calls, and shares no state
    /// with other blocks, so that calls for one queue or flow may be ahead of those for others. A network
    /// with a block that does not declare this runs on the reference engine.
    const BATCHED: bool = false;

    /// The rule as pseudo-code, where it has no branches. Every AQM has one, and so has a scheduler that
    /// drops or marks packets itself.
    const PSEUDO_CODE: Option<PseudoCode> = None;

    /// Checks combinations of fields; each field has checked its own value when it was parsed.
    ///
    /// # Errors
    /// Which fields contradict each other, and which values are valid.
    fn check(_params: &Self::Params) -> Result<(), UnitError> {
        Ok(())
    }

    /// Parameters that have no effect where packets have sizes in this range, in bytes: each with its key and
    /// the reason.
    fn keys_without_effect(_params: &Self::Params, _sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        Vec::new()
    }

    /// Returns the rule as pseudo-code, to explain a verdict for this reason: of several branches the one
    /// that acted, by what was noted on the way.
    fn pseudo_code(_reason: Reason, _noted: Noted<'_>) -> Option<PseudoCode> {
        Self::PSEUDO_CODE
    }
}

/// Parameters that have no effect: each with its key and the reason.
pub type KeysWithoutEffect = Vec<(&'static str, String)>;

/// Returns those of these keys that have no effect, each with the reason.
pub(crate) fn idle_keys<const N: usize>(keys: [(bool, &'static str, &str); N]) -> KeysWithoutEffect {
    let idle = keys.into_iter().filter(|(is_idle, ..)| *is_idle);
    idle.map(|(_, key, reason)| (key, reason.to_owned())).collect()
}

/// The queueing delay at which an AQM or a scheduler aims, and the delay from which on it may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayTarget {
    /// The parameter that sets the target.
    pub key: &'static str,
    /// The target.
    pub target: Duration,
    /// The least delay at which the block may act: below it, no packet is dropped or marked that the queue
    /// has room for.
    pub least_acting_delay: Duration,
    /// Whether another parameter spares short queues on a slow link, where a packet is on the wire for longer
    /// than the target.
    pub spares_short: bool,
}

impl DelayTarget {
    /// Returns the target of this key, without a parameter that spares short queues.
    pub const fn at(key: &'static str, target: Duration, least_acting_delay: Duration) -> Self {
        Self { key, target, least_acting_delay, spares_short: false }
    }
}

/// The role of a block in the packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Decides which packets are dropped.
    Aqm,
    /// Measures a flow against its profile and gives each packet a color.
    Meter,
    /// Owns the packets and decides which one is sent next.
    Scheduler,
    /// Has data to send over transports, and waits for answers.
    Application,
    /// Decides how the window of TCP grows and shrinks.
    CongestionControl,
}

/// A registered block, as tables, documentation and the scenario format see it.
#[derive(Debug)]
pub struct BlockInfo {
    /// The role of the block.
    pub role: Role,
    /// The name of the block in scenarios.
    pub name: &'static str,
    /// What the block does, in one line.
    pub summary: &'static str,
    /// Where the block comes from.
    pub origin: Origin,
    /// Whether the block is implemented outside these crates: [`Block::IS_OUTSIDE`].
    pub is_outside: bool,
    /// Whether the block's limit counts packets: [`Block::LIMIT_COUNTS_PACKETS`].
    pub limit_counts_packets: bool,
    /// JSON Schema of the block's parameters.
    pub parameters: fn(&mut SchemaGenerator) -> Schema,
    /// The rule of the block: [`Block::pseudo_code`].
    pub pseudo_code: fn(Reason, Noted<'_>) -> Option<PseudoCode>,
}

impl BlockInfo {
    /// Returns the description of a block of this role.
    pub const fn of<B: Block>(role: Role) -> Self {
        Self {
            role,
            name: B::NAME,
            summary: B::SUMMARY,
            origin: B::ORIGIN,
            is_outside: B::IS_OUTSIDE,
            limit_counts_packets: B::LIMIT_COUNTS_PACKETS,
            parameters: <B::Params as JsonSchema>::json_schema,
            pseudo_code: B::pseudo_code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block with only the required declarations.
    struct Plain;

    impl Block for Plain {
        type Params = ();
        const NAME: &'static str = "plain";
        const SUMMARY: &'static str = "";
        const ORIGIN: Origin = Origin::published(2000, "");
    }

    fn batched<B: Block>() -> bool {
        B::BATCHED
    }

    #[test]
    fn a_block_that_does_not_declare_that_it_can_be_batched_is_not() {
        assert!(!batched::<Plain>());
        assert!(batched::<crate::aqm::Red>());
    }
}
