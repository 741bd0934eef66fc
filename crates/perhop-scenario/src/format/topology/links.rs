//! The links of a scenario: those that are written, and those of its topology.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::format::Link;

/// Links by name. The text of a scenario has those that are written; the topology's follow from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    all: BTreeMap<String, Link>,
    /// The tier of each link of the topology.
    generated: BTreeMap<String, &'static str>,
}

impl Links {
    /// Adds a link of the topology.
    pub(crate) fn generate(&mut self, name: String, link: Link, tier: &'static str) {
        self.all.insert(name.clone(), link);
        self.generated.insert(name, tier);
    }

    /// Returns the tier of a link of the topology; `None` for one that is written.
    pub(crate) fn tier(&self, name: &str) -> Option<&'static str> {
        self.generated.get(name).copied()
    }

    /// Returns links as if all of them were written.
    pub(crate) fn written_out(links: &Self) -> Self {
        Self { all: links.all.clone(), generated: BTreeMap::new() }
    }

    /// Returns the links that are written.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&String, &Link)> {
        self.all.iter().filter(|(name, _)| !self.generated.contains_key(*name))
    }
}

impl Deref for Links {
    type Target = BTreeMap<String, Link>;
    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl DerefMut for Links {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.all
    }
}

impl Serialize for Links {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.written())
    }
}

impl<'de> Deserialize<'de> for Links {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { all: BTreeMap::deserialize(deserializer)?, generated: BTreeMap::new() })
    }
}

impl JsonSchema for Links {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Links".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, Link>::json_schema(generator)
    }
}
