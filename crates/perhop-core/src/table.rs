//! Blocks as tables of a scenario: a key names the block, the other keys are its parameters.
//!
//! A block's parameters may hold further blocks, such as the AQM of a scheduler's queue. A problem inside one
//! keeps the path of its key: see [`UnitError`].

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

use crate::BlockInfo;
use crate::units::{UnitError, split_key};

/// The keys that name an AQM and a scheduler.
const RULE_TAG: &str = "aqm";
const SCHEDULER_TAG: &str = "scheduler";

/// The reason why a name is not valid in tables of results; `None` if it is.
pub fn bad_name(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        Some("a name must have at least one letter".into())
    } else if name.chars().any(char::is_control) {
        Some(format!("{name:?} contains a control character; write a name without one"))
    } else {
        None
    }
}

/// Reads an inner table with its own path tracking, and hands the inner path on in the error.
pub fn nested<T, E: de::Error>(
    table: Value,
    read: impl FnOnce(serde_path_to_error::Deserializer<'_, '_, Value>) -> Option<Result<T, serde_json::Error>>,
) -> Option<Result<T, E>> {
    let mut track = serde_path_to_error::Track::new();
    let result = read(serde_path_to_error::Deserializer::new(table, &mut track))?;
    Some(result.map_err(|error| {
        let path = track.path().to_string();
        let text = error.to_string();
        let (inner, message) = split_key(&text);
        let keys: Vec<&str> =
            [path.as_str(), inner].into_iter().filter(|key| !matches!(*key, "" | ".")).collect();
        E::custom(UnitError::at(keys.join("."), message))
    }))
}

/// Reads a table that names a block under `tag`; the block's registration reads the rest.
///
/// # Errors
/// The table names no block, or a parameter is wrong.
pub fn read_block<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    tag: &str,
    names: &[&str],
    read: impl FnOnce(
        &str,
        serde_path_to_error::Deserializer<'_, '_, Value>,
    ) -> Option<Result<T, serde_json::Error>>,
) -> Result<T, D::Error> {
    let mut table = Map::deserialize(deserializer)?;
    let list = || names.join(", ");
    let name = match table.remove(tag) {
        Some(Value::String(name)) => name,
        Some(other) => {
            let text = format!("`{tag}` is a name in quotes (one of {}), not {other}", list());
            return Err(de::Error::custom(UnitError::at(tag, text)));
        }
        None if tag == RULE_TAG && table.contains_key(SCHEDULER_TAG) => {
            let text = format!(
                "a scheduler cannot stand within another one, where a queue has an AQM: write `{tag}`, one of {}",
                list()
            );
            return Err(de::Error::custom(UnitError::at(SCHEDULER_TAG, text)));
        }
        None => return Err(de::Error::custom(format!("key `{tag}` is missing; it names one of {}", list()))),
    };
    nested(Value::Object(table), |table| read(&name, table)).unwrap_or_else(|| {
        let expected = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Err(de::Error::custom(UnitError::at(
            tag,
            format!("unknown {tag} `{name}`, expected one of {expected}"),
        )))
    })
}

/// A block that is implemented outside may be named by its class, `module:Class`, in place of the key
/// `class`.
fn name_class(schema: &mut Map<String, Value>, tag: &str, name: &str) {
    let class = serde_json::json!({
        "anyOf": [{ "const": name }, { "type": "string", "pattern": "^[\\w.]+:\\w+$" }],
        "description": "The class as `module:Class`; or `python`, and the class in the key `class`.",
    });
    let named = serde_json::json!({ "properties": { tag: { "const": name } } });
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert(tag.into(), class);
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|key| key != "class");
    }
    schema.insert("if".into(), named);
    schema.insert("then".into(), serde_json::json!({ "required": ["class"] }));
}

/// The schema of a table that names a block under `tag`: one alternative for each block, by age.
pub fn alternatives(generator: &mut SchemaGenerator, tag: &str, mut blocks: Vec<BlockInfo>) -> Schema {
    blocks.sort_by_key(|block| block.origin.era);
    let alternatives: Vec<Value> = blocks
        .into_iter()
        .map(|block| {
            let mut schema = (block.parameters)(generator).to_value();
            let object = schema.as_object_mut().expect("parameters are a table");
            object.insert("title".into(), block.name.into());
            object
                .insert("description".into(), format!("{}. Source: {}.", block.summary, block.origin).into());
            let properties = object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
            let named = serde_json::json!({ "const": block.name, "description": "The block's name." });
            if let Some(properties) = properties.as_object_mut() {
                properties.insert(tag.into(), named);
            }
            let required = object.entry("required").or_insert_with(|| Value::Array(Vec::new()));
            if let Some(required) = required.as_array_mut() {
                required.push(tag.into());
            }
            if block.is_outside {
                name_class(object, tag, block.name);
            }
            schema
        })
        .collect();
    json_schema!({ "oneOf": alternatives })
}
