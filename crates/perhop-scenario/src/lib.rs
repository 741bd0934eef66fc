//! The scenario format: what a user writes, checked and turned into a network.
//!
//! The types of [`format`](mod@format) are the one source of truth. The published JSON Schema ([`schema`]),
//! the typed Python builder and the documentation are generated from them, and so is the reading of TOML and
//! JSON.
//!
//! ```
//! use perhop_scenario::Scenario;
//! use perhop_sim::{Simulation, Watch};
//!
//! let text = r#"
//!     duration = "1s"
//!     links.line = { from = "a", to = "b", rate = "10Mbps", delay = "5ms" }
//!     flows = [{ name = "download", from = "a", to = "b", transport = { tcp = "linux" } }]
//! "#;
//! let scenario = Scenario::from_toml(text, "example").unwrap();
//! let outcome = Simulation::run(&scenario.network(), 1, None, &Watch::default()).unwrap();
//! assert_eq!(outcome.flows.len(), 1);
//!
//! let wrong = text.replace("10Mbps", "10");
//! let error = Scenario::from_toml(&wrong, "example").unwrap_err().to_string();
//! assert!(error.starts_with("example:3: links.line.rate: "), "{error}");
//! ```

mod bounds;
mod check;
mod csv;
mod directions;
mod error;
mod files;
pub mod format;
mod former;
mod hints;
mod limits;
mod matrix;
mod measured;
mod measures;
mod memory;
mod network;
mod notices;
mod one_flow_per_group;
mod plugins;
mod populations;
mod read;
mod shape;
mod text;
mod trace;

pub use bounds::{Excess, Syntax};
pub use check::Driver;
pub use error::{KeyPart, Notice, Problem, ScenarioError, did_you_mean, steps};
pub use files::{Files, Folder, LEFT_OUT, MOST_BYTES, NoFiles};
pub use format::Scenario;
pub use former::{FormerKeys, replace_former_keys};
pub use measures::measures;
pub use memory::Memory;
pub use network::Class;
pub use notices::{Division, Rates, division, divisions, keys_without_effect};
pub use one_flow_per_group::marked_by;
pub use plugins::{Plugins, simulated_only};
pub use read::{notices_in, read_json, read_toml};
pub use shape::{Shape, Tier};

use perhop_sim::transport::tcp::{congestion, presets};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Returns the JSON Schema (2020-12) of the scenario format.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Scenario>();
    schema.insert("title".into(), "perhop scenario".into());
    schema.to_value()
}

/// Returns every registered block and congestion control: name, role, summary, era, year, source, Linux's
/// version of it, and for each parameter its type, default and description.
pub fn blocks() -> Value {
    let applications = perhop_sim::application::registered();
    let blocks = perhop_core::registry().chain(applications).chain(congestion::registered());
    let listed = blocks.map(|block| {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let parameters = (block.parameters)(&mut generator).to_value();
        let definitions = Value::Object(generator.take_definitions(true));
        let parameters = describe(&parameters, &definitions);
        json!({
            "name": block.name,
            "role": block.role,
            "summary": block.summary,
            "era": block.origin.era,
            "year": block.origin.year,
            "source": block.origin.source,
            "linux": block.origin.linux,
            "parameters": parameters,
        })
    });
    listed.collect()
}

/// Returns every preset of TCP: its defaults, where each comes from, and since when that is so.
pub fn tcp_presets() -> Value {
    let presets = presets::PRESETS.iter().map(|preset| {
        let defaults = preset.defaults.iter().map(|default| {
            let (value, is_rule) = (default.value.text(), matches!(default.value, presets::Given::Rule(_)));
            json!({ "key": default.key, "value": value, "rule": is_rule, "source": default.source, "since": default.since })
        });
        json!({ "name": preset.name, "system": preset.system, "defaults": defaults.collect::<Value>() })
    });
    presets.collect()
}

fn describe(parameters: &Value, definitions: &Value) -> Value {
    let none = Map::new();
    let properties = parameters["properties"].as_object().unwrap_or(&none);
    let required = parameters["required"].as_array().map_or(&[][..], Vec::as_slice);
    let described = properties.iter().map(|(name, property)| {
        let described = json!({
            "type": type_name(property, definitions),
            "required": required.iter().any(|key| key == name),
            "default": property["default"],
            "description": property["description"],
        });
        (name.clone(), described)
    });
    Value::Object(described.collect())
}

/// Returns `number from 0 to 1`, as far as there are bounds.
fn number_range(definition: &Value) -> String {
    let bound = |word: &str, key: &str| definition[key].as_f64().map(|value| format!(" {word} {value}"));
    let bounds = [("above", "exclusiveMinimum"), ("from", "minimum"), ("to", "maximum")];
    let bounds = bounds.into_iter().filter_map(|(word, key)| bound(word, key));
    std::iter::once("number".to_owned()).chain(bounds).collect()
}

/// Returns `boolean`, a range of numbers, a quantity with an example (`Thresholds, such as 30/90/0.05`), the
/// words that may stand there, or, for a block inside this one, the key that names it; for a list, the name
/// of its tables in the scenario format.
fn type_name(property: &Value, definitions: &Value) -> String {
    // What may be left out is this or null.
    if let Some(either) = property["anyOf"].as_array() {
        return either
            .iter()
            .find(|one| one["type"] != "null")
            .map_or_else(String::new, |one| type_name(one, definitions));
    }
    if property["type"] == "array" {
        let items = type_name(&property["items"], definitions);
        return if items.contains(", such as ") {
            format!("list of {items}")
        } else {
            format!("list of {items} tables")
        };
    }
    let Some(name) = property["$ref"].as_str().and_then(|path| path.rsplit('/').next()) else {
        // What may be left out is of this type or null.
        let types =
            property["type"].as_array().map_or(std::slice::from_ref(&property["type"]), Vec::as_slice);
        return types.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("any").into();
    };
    let definition = &definitions[name];
    if definition["oneOf"][0]["properties"].is_object() {
        return format!("table of an {}", name.to_lowercase());
    }
    if let Some(words) = definition["oneOf"].as_array() {
        let words = words.iter().filter_map(|word| word["const"].as_str()).map(|word| format!("`{word}`"));
        return words.collect::<Vec<_>>().join(" or ");
    }
    if ["number", "integer"].map(Value::from).contains(&definition["type"]) {
        return number_range(definition);
    }
    if definition["properties"].is_object() {
        return format!("table with the keys of `{name}`");
    }
    if let Some(either) = definition["anyOf"].as_array()
        && either.first().is_some_and(|one| one["type"] == "boolean")
    {
        let names = either.iter().filter_map(|one| one["enum"].as_array()).flatten();
        let names = names.filter_map(Value::as_str).map(|name| format!("`{name}`"));
        return std::iter::once("boolean".into()).chain(names).collect::<Vec<_>>().join(" or ");
    }
    let example = definition["examples"][0].as_str();
    example.map_or_else(|| spaced(name), |example| format!("{}, such as `{example}`", spaced(name)))
}

/// Writes `DropCurve` as `drop curve`.
fn spaced(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
