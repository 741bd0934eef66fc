//! The JSON Schema of scenarios, as a page reads it.

use std::sync::OnceLock;

use serde_json::Value;

/// Returns the schema.
pub(super) fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(perhop_scenario::schema)
}

/// Returns the definition of this name.
pub(super) fn definition_of(name: &str) -> &'static Value {
    &schema()["$defs"][name]
}

/// Returns the schema that a reference is to, and its name.
pub(super) fn resolve(mut node: &'static Value) -> (&'static Value, Option<&'static str>) {
    let mut name = None;
    while let Some(reference) = node["$ref"].as_str() {
        name = reference.rsplit('/').next();
        node = definition_of(name.unwrap_or_default());
    }
    (node, name)
}

/// Returns the alternatives of a schema, if it has some.
pub(super) fn alternatives(node: &'static Value) -> Option<&'static Vec<Value>> {
    node["oneOf"].as_array().or_else(|| node["anyOf"].as_array())
}

/// Returns the alternative of a schema that a value is of, with those beside it.
pub(super) fn fitting(node: &'static Value, value: &Value) -> Option<(&'static Value, &'static [Value])> {
    let (resolved, _) = resolve(node);
    if let Some(all) = alternatives(resolved) {
        return all.iter().find_map(|one| {
            let (found, beside) = fitting(one, value)?;
            Some((found, if beside.is_empty() { all.as_slice() } else { beside }))
        });
    }
    does_fit(resolved, value).then_some((node, &[][..]))
}

fn does_fit(node: &'static Value, value: &Value) -> bool {
    if let Some(only) = node.get("const") {
        return only == value;
    }
    let is_of = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        _ => value.is_null(),
    };
    let kinds = node["type"].as_array().map_or(std::slice::from_ref(&node["type"]), Vec::as_slice);
    if !kinds.iter().filter_map(Value::as_str).any(is_of) {
        return false;
    }
    let (Some(properties), Some(table)) = (node["properties"].as_object(), value.as_object()) else {
        return true;
    };
    let required = node["required"].as_array().map_or(&[][..], Vec::as_slice);
    required.iter().filter_map(Value::as_str).all(|key| table.contains_key(key))
        && table.keys().all(|key| properties.contains_key(key))
        && properties
            .iter()
            .all(|(key, one)| one.get("const").is_none_or(|only| table.get(key) == Some(only)))
}

/// Returns the tag and the table, with its defaults, of a block that is given by its name, where the schema
/// takes both.
pub(super) fn table_of_name(node: &'static Value, name: &Value) -> Option<(&'static str, Value)> {
    let tables = alternatives(resolve(node).0)?.iter();
    tables.filter_map(|one| resolve(one).0["properties"].as_object()).find_map(|properties| {
        let (tag, _) = properties.iter().find(|(_, property)| property.get("const") == Some(name))?;
        let value = |property: &'static Value| property.get("const").or_else(|| property.get("default"));
        let values = properties.iter().filter_map(|(key, one)| Some((key.clone(), value(one)?.clone())));
        Some((tag.as_str(), values.collect()))
    })
}

/// Returns what a property is that may also be null.
pub(super) fn nullable(node: &'static Value) -> Option<&'static Value> {
    let either = node["anyOf"].as_array()?;
    let is_null = |one: &&Value| one["type"] == "null";
    either.iter().any(|one| is_null(&one)).then(|| either.iter().find(|one| !is_null(one)))?
}

/// Returns the allowed words, if a value is one of a list.
pub(super) fn choices_of(node: &'static Value) -> Vec<String> {
    let words = |all: &'static Vec<Value>| all.iter().filter_map(|one| one["const"].as_str());
    alternatives(resolve(node).0).into_iter().flat_map(words).map(str::to_owned).collect()
}
