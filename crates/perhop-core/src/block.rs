//! What every block has in common, and how blocks are registered.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::units::UnitError;
use crate::{Bitrate, Color, Depth, Duration, Instant, Origin, Rng};

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

/// The declaration of a mechanism: its name in scenarios, its parameters, and its properties that do not depend on a run.
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
    /// For an AQM: it decides on arrival alone, from the header, the occupancy and its own state. The batched engine can then
    /// compute departures ahead of time. False for an AQM with [`on_departure`](crate::aqm::Aqm::on_departure).
    const PRECOMPUTABLE: bool = true;
    /// For an AQM that is not precomputable: it asks for the age of the packet at the head of the queue,
    /// [`Occupancy::head`](crate::Occupancy::head), which other AQMs do not get.
    const NEEDS_HEAD: bool = false;
    /// For an AQM: it asks how much is served before a packet that arrives, [`Occupancy::ahead`](crate::Occupancy::ahead), which a
    /// scheduler under which packets overtake others finds for it alone.
    const NEEDS_AHEAD: bool = false;
    /// The simulator's batched engine may run it: it learns of time only from its calls, and shares no state with other blocks,
    /// so that calls for one queue or flow may be ahead of those for others. A network with a block that does not declare this
    /// runs on the reference engine.
    const BATCHED: bool = false;
    /// For a meter: the colors that it gives.
    const COLORS: &'static [Color] = &[Color::Green, Color::Yellow];

    /// Checks combinations of fields; each field has checked its own value when it was parsed.
    ///
    /// # Errors
    /// Which fields contradict each other, and which values are valid.
    fn check(_params: &Self::Params) -> Result<(), UnitError> {
        Ok(())
    }

    /// For a meter: whether it looks at the colors that packets come with.
    fn reads_color(_params: &Self::Params) -> bool {
        false
    }

    /// For an AQM: whether it decides on arrival alone with these parameters; see [`PRECOMPUTABLE`](Self::PRECOMPUTABLE).
    fn precomputable(_params: &Self::Params) -> bool {
        Self::PRECOMPUTABLE
    }

    /// Parameters that have no effect where packets have sizes in this range: each with its key and the reason.
    fn idle_keys(_params: &Self::Params, _sizes: &RangeInclusive<u64>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The same for parameters that have no effect where the queue is served at this rate.
    fn idle_keys_at(_params: &Self::Params, _rate: Bitrate) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// For an AQM or a scheduler: the most that waits in its queue where it is served at this rate; `None` without a bound.
    fn limit(_params: &Self::Params, _rate: Bitrate) -> Option<Depth> {
        None
    }

    /// The queueing delays on which an AQM or a scheduler acts, each with the delay from which on it may act; none for
    /// other blocks.
    fn onsets(_params: &Self::Params) -> Vec<Onset> {
        Vec::new()
    }
}

/// The queueing delay at which an AQM aims, and that from which on it may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Onset {
    /// The parameter that sets the target.
    pub key: &'static str,
    /// The target.
    pub target: Duration,
    /// The least delay at which the AQM may act: below it, no packet is dropped or marked that the queue has room for.
    pub least: Duration,
    /// Whether another parameter spares short queues on a slow link, where a packet is on the wire for longer than the target.
    pub spares_short: bool,
}

/// A block that is created from its parameters and its place alone. A scheduler also gets random streams for its parts:
/// [`Scheduler::new`](crate::scheduler::Scheduler::new).
pub trait FromParams: Block {
    /// The block at the start of a run. `params` have passed [`check`](Block::check).
    fn new(params: Self::Params, environment: Environment) -> Self;

    /// Continues the work of `before`, which a driver replaces by this block because its parameters change during a run: takes over
    /// what that has measured and counted. Only this block's parameters act on later packets.
    ///
    /// # Errors
    /// The key whose change would leave that state without a meaning, or that the block cannot change during a run at all.
    fn take_over(&mut self, _before: &Self) -> Result<(), UnitError> {
        Err(UnitError::new(format!("the parameters of `{}` cannot change during a run", Self::NAME)))
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
    /// Its role.
    pub role: Role,
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// JSON Schema of its parameters.
    pub parameters: fn(&mut SchemaGenerator) -> Schema,
}

impl BlockInfo {
    /// Of a block of this role.
    pub const fn of<B: Block>(role: Role) -> Self {
        Self {
            role,
            name: B::NAME,
            summary: B::SUMMARY,
            origin: B::ORIGIN,
            parameters: <B::Params as JsonSchema>::json_schema,
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
            pub fn idle_keys(&self, sizes: &std::ops::RangeInclusive<u64>) -> Vec<(&'static str, String)> {
                match self { $($(#[$when])? Self::$variant(params) => <$block as $crate::Block>::idle_keys(params, sizes),)+ }
            }

            /// Parameters that have no effect where the queue is served at this rate: each with its key and the reason.
            pub fn idle_keys_at(&self, rate: $crate::Bitrate) -> Vec<(&'static str, String)> {
                match self { $($(#[$when])? Self::$variant(params) => <$block as $crate::Block>::idle_keys_at(params, rate),)+ }
            }

            /// The most that waits in its queue where it is served at this rate: [`Block::limit`](crate::Block::limit).
            pub fn limit(&self, rate: $crate::Bitrate) -> Option<$crate::Depth> {
                match self { $($(#[$when])? Self::$variant(params) => <$block as $crate::Block>::limit(params, rate),)+ }
            }

            /// The queueing delays at which it aims: [`Block::onsets`](crate::Block::onsets).
            pub fn onsets(&self) -> Vec<$crate::Onset> {
                match self { $($(#[$when])? Self::$variant(params) => <$block as $crate::Block>::onsets(params),)+ }
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
    ($role:expr, $tag:literal, $trait:ident, $any:ident, $params:ident, $($variant:ident($block:ty),)+) => {
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
                match self { $(Self::$variant(params) => $any::$variant(<$block as $crate::FromParams>::new(params, environment)),)+ }
            }
        }

        impl $any {
            /// Gives the block other parameters during a run: see [`FromParams::take_over`](crate::FromParams::take_over).
            ///
            /// # Errors
            /// The parameters are of another block, or the key that cannot change; the block then keeps its own.
            pub fn retune(&mut self, params: $params, environment: $crate::Environment) -> Result<(), $crate::units::UnitError> {
                let name = params.name();
                match (&mut *self, params.build(environment)) {
                    $((Self::$variant(before), Self::$variant(mut after)) => {
                        $crate::FromParams::take_over(&mut after, before)?;
                        *before = after;
                        Ok(())
                    })+
                    _ => Err($crate::units::UnitError::new($crate::table::at_key(
                        $tag,
                        format!("`{name}` cannot replace another block during a run; start a run with it"),
                    ))),
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
