//! Registration: from one line for each block of a role, the enums over its blocks and their parameters.

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

            /// Parameters that have no effect where packets have sizes in this range, in bytes: each with its
            /// key and the reason.
            pub fn keys_without_effect(&self, sizes: &std::ops::RangeInclusive<u64>) -> $crate::KeysWithoutEffect {
                match self { $($(#[$when])? Self::$variant(params) => <$block as $crate::Block>::keys_without_effect(params, sizes),)+ }
            }

            /// Whether the simulator's batched engine may run the block:
            /// [`Block::BATCHED`](crate::Block::BATCHED).
            pub fn batched(&self) -> bool {
                match self { $($(#[$when])? Self::$variant(_) => <$block as $crate::Block>::BATCHED,)+ }
            }

            /// Whether the block requires the control messages of a label-switched path.
            pub fn follows_paths(&self) -> bool {
                match self { $($(#[$when])? Self::$variant(_) => <$block as $crate::Block>::FOLLOWS_PATHS,)+ }
            }

            /// Reads the parameters of the block `name` from its table (without the tag); `None` if no block
            /// has the name.
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

/// Generates the enum over a role's blocks, and the one over their parameters. It implements the role's trait
/// by a `match`, with no vtable in the packet's path: `ambassador` derives that from the trait's definition.
macro_rules! register {
    ($role:expr, $tag:literal, $trait:ident, $declared:ident, $any:ident, $params:ident, $($variant:ident($block:ty),)+) => {
        $crate::registration::register_params!($role, $tag, $params, $($variant($block),)+);

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
            /// The parameters are of another block, or the key that cannot change; the block then keeps its
            /// own.
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
