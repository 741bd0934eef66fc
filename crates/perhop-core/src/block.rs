//! What every block has in common, and how blocks are registered.

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

/// The declaration of a mechanism: its name in scenarios, its parameters, and its properties that do not depend on a run. Each role
/// has declarations of its own besides: [`AqmBlock`](crate::aqm::AqmBlock), [`MeterBlock`](crate::meter::MeterBlock) and
/// [`Scheduler`](crate::scheduler::Scheduler).
pub trait Block: Sized {
    /// The parameters that a user can set. Field docs become the documentation; `Default`s live in the serde attributes.
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
    /// The simulator's batched engine may run it: it learns of time only from its calls, and shares no state with other blocks,
    /// so that calls for one queue or flow may be ahead of those for others. A network with a block that does not declare this
    /// runs on the reference engine.
    const BATCHED: bool = false;

    /// Checks combinations of fields; each field has checked its own value when it was parsed.
    ///
    /// # Errors
    /// Which fields contradict each other, and which values are valid.
    fn check(_params: &Self::Params) -> Result<(), UnitError> {
        Ok(())
    }

    /// Parameters that have no effect where packets have sizes in this range, in bytes: each with its key and the reason.
    fn keys_without_effect(
        _params: &Self::Params,
        _sizes: &RangeInclusive<u64>,
    ) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the rule as pseudo-code, to explain a verdict for this reason: of several branches the one that acted, by what was
    /// noted on the way. Every AQM has one, and so has a scheduler that drops or marks packets itself.
    fn pseudo_code(_reason: Reason, _noted: Noted<'_>) -> Option<PseudoCode> {
        None
    }
}

/// The queueing delay at which an AQM or a scheduler aims, and the delay from which on it may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayTarget {
    /// The parameter that sets the target.
    pub key: &'static str,
    /// The target.
    pub target: Duration,
    /// The least delay at which the block may act: below it, no packet is dropped or marked that the queue has room for.
    pub least_acting_delay: Duration,
    /// Whether another parameter spares short queues on a slow link, where a packet is on the wire for longer than the target.
    pub spares_short: bool,
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
    /// Its role.
    pub role: Role,
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// It is implemented outside these crates: [`Block::IS_OUTSIDE`].
    pub is_outside: bool,
    /// Its limit counts packets: [`Block::LIMIT_COUNTS_PACKETS`].
    pub limit_counts_packets: bool,
    /// JSON Schema of its parameters.
    pub parameters: fn(&mut SchemaGenerator) -> Schema,
    /// Its rule: [`Block::pseudo_code`].
    pub pseudo_code: fn(Reason, Noted<'_>) -> Option<PseudoCode>,
}

impl BlockInfo {
    /// Of a block of this role.
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

/// Generates the enum over the parameters of a role's blocks, from one line for each block.
///
/// Their form in a scenario is one table with the block's name under `$tag`.
#[doc(hidden)]
#[macro_export]
macro_rules! register_params {
    ($role:expr, $tag:literal, $params:ident, $($(#[$when:meta])? $variant:ident($block:ty),)+) => {
        /// The parameters of any registered block of this role.
        #[derive(Clone, Debug, PartialEq)]
        pub enum $params {
            $($(#[$when])? #[doc = concat!("See [`", stringify!($variant), "`].")] $variant(<$block as $crate::Block>::Params),)+
        }

        impl serde::Serialize for $params {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(serde::Serialize)]
                struct Table<'a, P> {
                    #[serde(rename = $tag)]
                    name: &'static str,
                    #[serde(flatten)]
                    params: &'a P,
                }
                match self {
                    $($(#[$when])? Self::$variant(params) => Table { name: self.name(), params }.serialize(serializer),)+
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $params {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::table::read_block(deserializer, Self::TAG, Self::NAMES, |name, table| {
                    Self::deserialize_named(name, table)
                })
            }
        }

        impl schemars::JsonSchema for $params {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($params).trim_end_matches("Params").into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::table::alternatives(generator, Self::TAG, registered())
            }
        }

        /// The blocks of this role.
        pub fn registered() -> Vec<$crate::BlockInfo> {
            Vec::from([$($(#[$when])? $crate::BlockInfo::of::<$block>($role)),+])
        }

        impl $params {
            /// The key that names the block in a scenario's table.
            pub const TAG: &'static str = $tag;
            /// The names of the blocks of this role.
            pub const NAMES: &'static [&'static str] = &[$($(#[$when])? <$block as $crate::Block>::NAME),+];

            /// The block's name.
            pub fn name(&self) -> &'static str {
                match self { $($(#[$when])? Self::$variant(_) => <$block as $crate::Block>::NAME,)+ }
            }

            /// Parameters that have no effect where packets have sizes in this range, in bytes: each with its key and the reason.
            pub fn keys_without_effect(&self, sizes: &std::ops::RangeInclusive<u64>) -> Vec<(&'static str, String)> {
                match self { $($(#[$when])? Self::$variant(params) => <$block as $crate::Block>::keys_without_effect(params, sizes),)+ }
            }

            /// Whether the simulator's batched engine may run the block: [`Block::BATCHED`](crate::Block::BATCHED).
            pub fn batched(&self) -> bool {
                match self { $($(#[$when])? Self::$variant(_) => <$block as $crate::Block>::BATCHED,)+ }
            }

            /// Whether the block requires the control messages of a label-switched path.
            pub fn follows_paths(&self) -> bool {
                match self { $($(#[$when])? Self::$variant(_) => <$block as $crate::Block>::FOLLOWS_PATHS,)+ }
            }

            /// Reads the parameters of the block `name` from its table (without the tag); `None` if no block has the name.
            pub fn deserialize_named<'de, D: serde::Deserializer<'de>>(
                name: &str,
                table: D,
            ) -> Option<Result<Self, D::Error>> {
                $($(#[$when])? if name == <$block as $crate::Block>::NAME {
                    return Some(<<$block as $crate::Block>::Params as serde::Deserialize>::deserialize(table).and_then(|params| {
                        <$block as $crate::Block>::check(&params).map_err(serde::de::Error::custom)?;
                        Ok(Self::$variant(params))
                    }));
                })+
                None
            }
        }
    };
}
pub(crate) use register_params;

/// Generates the enum over a role's blocks, and the one over their parameters. It implements the role's trait by a `match`, with no
/// vtable in the packet's path: `ambassador` derives that from the trait's definition.
macro_rules! register {
    ($role:expr, $tag:literal, $trait:ident, $declared:ident, $any:ident, $params:ident, $($variant:ident($block:ty),)+) => {
        $crate::block::register_params!($role, $tag, $params, $($variant($block),)+);

        /// Any registered block of this role.
        #[derive(Clone, Debug, ambassador::Delegate)]
        #[delegate($trait)]
        #[allow(clippy::large_enum_variant)]
        #[repr(u8)] // A number of its own says which it is: it need not be worked out.
        pub enum $any {
            $(#[doc = concat!("See [`", stringify!($block), "`].")] $variant($block),)+
        }

        impl $params {
            /// The block at the start of a run.
            pub fn build(self, environment: $crate::Environment) -> $any {
                match self { $(Self::$variant(params) => $any::$variant(<$block as $declared>::new(params, environment)),)+ }
            }
        }

        impl $any {
            /// Returns the block's name.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$block as $crate::Block>::NAME,)+ }
            }

            /// Gives the block other parameters during a run: see `take_over` of its declaration.
            ///
            /// # Errors
            /// The parameters are of another block, or the key that cannot change; the block then keeps its own.
            pub fn retune(&mut self, params: $params, environment: $crate::Environment) -> Result<(), $crate::units::UnitError> {
                let name = params.name();
                match (&mut *self, params.build(environment)) {
                    $((Self::$variant(before), Self::$variant(mut after)) => {
                        $declared::take_over(&mut after, before)?;
                        *before = after;
                        Ok(())
                    })+
                    _ => Err($crate::units::UnitError::at(
                        $tag,
                        format!("`{name}` cannot replace another block during a run; start a run with it"),
                    )),
                }
            }
        }
    };
}
pub(crate) use register;

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
