//! What a page can set of a scenario: a control for each value, with its unit, range and description from the
//! JSON Schema.

mod congestion;
mod schema;
#[cfg(test)]
mod tests;

use perhop_scenario::replace_former_keys;
use serde::Serialize;
use serde_json::{Value, json};

use self::schema::{
    alternatives, choices_of, definition_of, fitting, nullable, resolve, schema, table_of_name,
};
use crate::default_value::{DefaultValue, quantity};
use crate::edit;
use crate::problem::Problem;

/// More are not shown.
const MOST_CONTROLS: usize = 400;
/// Keys that name things, for which there is no control.
const NAMES: [&str; 7] = ["name", "from", "to", "path", "title", "via", "back"];

/// A parameter that one can set.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "they are the fields of a message, and none is a mode")]
pub struct Control {
    /// As in sweeps: `links.uplink.queue.thresholds.max_p`.
    pub path: String,
    /// The path within its group.
    pub label: String,
    /// The schema's description.
    pub doc: String,
    /// `links.uplink`, `flows.bulk`, `run`.
    pub group: String,
    /// `number`, `choice`, `switch` or `text`.
    pub kind: &'static str,
    /// As it is now; null where the text leaves the key out and its default is no plain value.
    pub value: Value,
    /// The value in TOML.
    pub text: String,
    /// The text has this key; otherwise the value is the default.
    pub is_set: bool,
    /// What acts where the text leaves the key out, in words: `15 ms`, `the target`. Empty if it cannot be
    /// left out.
    pub default: String,
    /// A number is written as text with this unit, in quotes; without quotes if that is empty.
    pub unit: String,
    /// The slider's range.
    pub min: f64,
    /// See `min`.
    pub max: f64,
    /// The least change.
    pub step: f64,
    /// The slider moves by factors.
    pub log: bool,
    /// Whole numbers only.
    pub integer: bool,
    /// For a choice.
    pub choices: Vec<String>,
    /// Whether the parameter can change during a run.
    pub live: bool,
}

/// The controls of a scenario, given as JSON with its defaults, and as the text that it was read from.
pub fn controls(scenario: &Value, toml: &str) -> Vec<Control> {
    let mut text = tables(toml);
    let _ = replace_former_keys(&mut text); // The scenario has been read, so that all have a place.
    let mut walk = Walk { controls: Vec::new() };
    let place = |path: &str, group: &str| ControlPath {
        path: path.into(),
        group: group.into(),
        ..ControlPath::default()
    };
    let properties = &schema()["properties"];
    for key in ["duration", "warmup"] {
        let default = DefaultValue::of(&properties[key], "");
        // The explorer counts from the beginning as long as nobody sets a warm-up.
        let beginning = Value::from("0s");
        let value = if scenario[key] == "auto" { &beginning } else { &scenario[key] };
        walk.property(
            &properties[key],
            value,
            Some(&text[key]),
            &ControlPath { default, ..place(key, "run") },
        );
    }
    for (key, definition) in [("links", "Link"), ("profiles", "Meter")] {
        for (name, value) in scenario[key].as_object().into_iter().flatten() {
            let path = format!("{key}.{name}");
            walk.any(definition_of(definition), value, Some(&text[key][name]), &place(&path, &path));
        }
    }
    for (number, flow) in scenario["flows"].as_array().into_iter().flatten().enumerate() {
        let name = flow["name"].as_str().unwrap_or_default();
        let is_plain = !name.is_empty() && !name.contains(['.', '[', ']']);
        let path = if is_plain { format!("flows.{name}") } else { format!("flows[{number}]") };
        walk.any(
            definition_of("Flow"),
            flow,
            Some(&text["flows"][number]),
            &place(&path, &format!("flows.{name}")),
        );
    }
    walk.controls.truncate(MOST_CONTROLS);
    walk.controls
}

/// The tables of a text as JSON.
fn tables(toml: &str) -> Value {
    let text: toml::Table = toml.parse().unwrap_or_default();
    serde_json::to_value(text).unwrap_or(Value::Null)
}

/// Where a walk is.
#[derive(Clone, Debug, Default)]
struct ControlPath {
    path: String,
    group: String,
    /// Within an AQM, whose parameters can change during a run.
    in_aqm: bool,
    is_udp: bool,
    /// The `law` of a block, or the `tcp` of a transport: defaults of its table and those within depend on
    /// it.
    law: String,
    /// Of the key, if it can be left out.
    default: Option<DefaultValue>,
}

impl ControlPath {
    fn key(&self, key: &str) -> Self {
        Self { path: format!("{}.{key}", self.path), ..self.clone() }
    }
}

struct Walk {
    controls: Vec<Control>,
}

impl Walk {
    /// A value of any schema. `text` is the value that the text of the scenario has.
    fn any(&mut self, node: &'static Value, value: &Value, text: Option<&Value>, place: &ControlPath) {
        let Some((found, beside)) = fitting(node, value) else { return };
        let (found, _) = resolve(found);
        let Some(properties) = found["properties"].as_object() else { return };
        let in_aqm = place.in_aqm || properties.get("aqm").is_some_and(|tag| tag.get("const").is_some());
        let law = value["law"].as_str().or_else(|| value["tcp"].as_str()).unwrap_or(&place.law).to_owned();
        let place = ControlPath { in_aqm, is_udp: value.get("udp").is_some(), law, ..place.clone() };
        let required = found["required"].as_array().map_or(&[][..], Vec::as_slice);
        let preset = congestion::preset(value);
        for (key, property) in properties {
            let is_optional = !required.iter().any(|one| one == key);
            // A choice that may be left out without a word on its default: others decide it.
            let automatic = || nullable(property).filter(|one| !choices_of(one).is_empty());
            let of_preset = preset.as_ref().and_then(|preset| DefaultValue::plain(&preset[key]));
            let default = of_preset.or_else(|| DefaultValue::of(property, &place.law));
            let default = default.or_else(|| automatic().map(|_| DefaultValue::automatic()));
            let default = default.filter(|_| is_optional);
            let inner = ControlPath { default, ..place.key(key) };
            if let Some(name) = property["const"].as_str() {
                let inner = ControlPath { default: place.default.clone(), ..inner };
                self.tag(key, name, beside, text, &inner);
            } else if let Some(value) = value.get(key).filter(|value| !value.is_null()) {
                self.property(property, value, text.and_then(|text| text.get(key)), &inner);
            } else if text.is_some_and(Value::is_object) {
                self.absent(property, &inner);
            }
        }
    }

    fn property(&mut self, node: &'static Value, value: &Value, text: Option<&Value>, place: &ControlPath) {
        let last = place.path.rsplit('.').next().unwrap_or_default();
        if NAMES.contains(&last) || value.is_null() {
            return;
        }
        if let Some((tag, table)) = table_of_name(node, value) {
            let text = match text {
                Some(text @ Value::Object(_)) => text.clone(),
                Some(name @ Value::String(_)) => json!({ tag: name }),
                _ => json!({}),
            };
            return self.any(node, &table, Some(&text), place);
        }
        match value {
            // A table that the text leaves out has no place for its keys.
            Value::Object(_) if text.is_none_or(Value::is_null) => {}
            Value::Object(_) => self.any(node, value, text, place),
            Value::Array(values) => {
                let Some((found, _)) = fitting(node, value) else { return };
                let items = &resolve(found).0["items"];
                for (number, value) in values.iter().enumerate().filter(|(_, value)| value.is_object()) {
                    let inner = ControlPath { path: format!("{}[{number}]", place.path), ..place.clone() };
                    self.any(items, value, text.and_then(|text| text.get(number)), &inner);
                }
            }
            _ => self.leaf(node, value, text, place),
        }
    }

    /// A key that neither the text nor a plain default gives a value.
    fn absent(&mut self, node: &'static Value, place: &ControlPath) {
        let last = place.path.rsplit('.').next().unwrap_or_default();
        let Some(default) = place.default.as_ref().filter(|_| !NAMES.contains(&last)) else { return };
        let (resolved, name) = resolve(nullable(node).unwrap_or(node));
        let is = |kind: &str| resolved["type"] == kind || resolved["type"][0] == kind;
        if is_ramp(name) {
            return;
        }
        // The value that the default would be in the text, if it is a plain one.
        let plain = if is("integer") || is("number") {
            default.value.parse::<f64>().ok().map(|_| default.value.parse().unwrap_or(Value::Null))
        } else if is("boolean") {
            // Words may say when it is otherwise: `true, unless …`.
            default.value.split(',').next().and_then(|value| value.parse::<bool>().ok()).map(Value::from)
        } else {
            quantity(&default.value)
                .filter(|(_, unit)| !unit.is_empty() && !unit.contains(' '))
                .map(|(number, unit)| format!("{number}{unit}").into())
        };
        match plain {
            Some(plain) => self.leaf(node, &plain, None, place),
            None if is("integer") || is("number") || is("string") && resolved.get("pattern").is_some() => {
                let kind = if is("string") { "text" } else { "number" };
                let doc = node["description"].as_str().unwrap_or_default();
                let example = resolved["examples"][0].as_str().unwrap_or_default();
                let control = Self::control(doc, &Value::Null, false, place);
                self.controls.push(Control { kind, integer: is("integer"), text: example.into(), ..control });
            }
            None => {
                let choices = choices_of(resolved);
                if !choices.is_empty() {
                    let doc = node["description"].as_str().unwrap_or_default();
                    let control = Self::control(doc, &Value::Null, false, place);
                    self.controls.push(Control { kind: "choice", choices, ..control });
                }
            }
        }
    }

    /// The key that names a block.
    fn tag(
        &mut self,
        key: &str,
        name: &str,
        beside: &'static [Value],
        text: Option<&Value>,
        place: &ControlPath,
    ) {
        let choices = beside.iter().filter_map(|one| resolve(one).0["properties"][key]["const"].as_str());
        // What Python implements can run only where Python does.
        let choices: Vec<String> = choices.filter(|&name| name != "python").map(str::to_owned).collect();
        if choices.len() < 2 {
            return;
        }
        let chosen = beside.iter().find(|one| resolve(one).0["properties"][key]["const"] == name);
        let doc = chosen.and_then(|one| resolve(one).0["description"].as_str()).unwrap_or_default();
        let is_set = text.is_some_and(|text| text.get(key).is_some());
        // Where a block's name alone is enough, the default of its key is a name, and so that of its tag.
        let is_enough = beside.iter().any(|one| one["const"] == name);
        let default = place.default.clone().filter(|_| is_enough);
        let place = &ControlPath { default, ..place.clone() };
        let control = Control { kind: "choice", choices, ..Self::control(doc, &name.into(), is_set, place) };
        self.controls.push(Control { live: false, ..control });
    }

    fn leaf(&mut self, node: &'static Value, value: &Value, text: Option<&Value>, place: &ControlPath) {
        let Some((found, beside)) = fitting(node, value) else { return };
        let (resolved, name) = resolve(found);
        let name = name.or_else(|| resolve(node).1);
        let doc =
            node["description"].as_str().or_else(|| resolved["description"].as_str()).unwrap_or_default();
        let is_set = text.is_some_and(|text| !text.is_null());
        let control = Self::control(doc, value, is_set, place);
        if is_ramp(name) && value.as_str().is_some_and(|text| text.split('/').count() == 3) {
            return self.thresholds(value, &control);
        }
        let control = match value {
            Value::Bool(_) => Control { kind: "switch", ..control },
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or_default();
                ranged(number, resolved, place, control)
            }
            Value::String(_) if beside.iter().any(|one| one.get("const").is_some()) => {
                let choices = beside.iter().filter_map(|one| one["const"].as_str());
                Control { kind: "choice", choices: choices.map(str::to_owned).collect(), ..control }
            }
            Value::String(text) => match quantity(text).filter(|_| resolved.get("pattern").is_some()) {
                Some((number, unit)) => {
                    let control = Control { unit: unit.into(), value: number.into(), ..control };
                    ranged(number, resolved, place, control)
                }
                None => control,
            },
            _ => return,
        };
        self.controls.push(control);
    }

    /// Three sliders for `30/90/0.05`.
    fn thresholds(&mut self, value: &Value, control: &Control) {
        let text = value.as_str().unwrap_or_default();
        let parts: Vec<(f64, &str)> = text.split('/').filter_map(quantity).collect();
        let &[(min, unit), (max, _), (max_p, _)] = parts.as_slice() else { return };
        let most = nice((2.0 * max).max(4.0 * min));
        for (name, number, most, log) in
            [("min", min, most, false), ("max", max, most, false), ("max_p", max_p, 1.0, true)]
        {
            let unit = if name == "max_p" { "" } else { unit };
            self.controls.push(Control {
                path: format!("{}.{name}", control.path),
                label: format!("{} {name}", control.label),
                kind: "number",
                value: number.into(),
                text: format!("{number}{unit}"),
                unit: unit.into(),
                min: if log { 0.001_f64.min(number) } else { 0.0 },
                max: most,
                default: String::new(),
                step: if log { 0.001 } else { 1.0 },
                log,
                integer: !log && unit != "kB" && unit != "MB",
                ..control.clone()
            });
        }
    }

    fn control(doc: &str, value: &Value, is_set: bool, place: &ControlPath) -> Control {
        let ControlPath { path, group, in_aqm, is_udp, default, .. } = place;
        let label = path.strip_prefix(group.as_str()).unwrap_or(path).trim_start_matches('.');
        let last = path.rsplit('.').next().unwrap_or_default();
        let is_of_link = group.starts_with("links.") && (label == "rate" || label == "delay");
        Control {
            path: path.clone(),
            label: label.replace('.', " "),
            doc: doc.replace('\n', " "),
            group: group.clone(),
            kind: "text",
            value: value.clone(),
            text: value.to_string(),
            is_set,
            default: match (default, value.as_str()) {
                (Some(default), Some(acting)) if !is_set && *default == DefaultValue::automatic() => {
                    acting.into()
                }
                (Some(default), _) => default.shown(),
                (None, _) => String::new(),
            },
            live: *in_aqm || is_of_link || (*is_udp && last == "rate"),
            ..Control::default()
        }
    }
}

/// A number with the range of its slider: a factor around what it is, within the bounds of the schema.
fn ranged(number: f64, schema: &Value, place: &ControlPath, control: Control) -> Control {
    let bound = |key: &str| schema[key].as_f64();
    let last = place.path.rsplit('.').next().unwrap_or_default();
    let integer = schema["type"] == "integer" || control.unit == "p";
    let is_part = bound("maximum") == Some(1.0);
    let log = !is_part && number > 0.0 && last != "count" || bound("exclusiveMinimum") == Some(0.0);
    let (mut min, mut max) = match (number, log) {
        (_, true) if is_part => (0.0001_f64.min(number), 1.0),
        (number, true) => (number / 20.0, nice(number * 20.0)),
        (_, false) if is_part => (0.0, 1.0),
        (0.0, false) => (0.0, 100.0),
        (number, false) => (0.0, nice(number * 4.0)),
    };
    min = bound("minimum").map_or(min, |bound| bound.max(min));
    max = bound("maximum").map_or(max, |bound| bound.min(max));
    if integer {
        (min, max) =
            (min.ceil().max(if log { 1.0 } else { min }), max.ceil().max(10.0_f64.min(max.ceil() + 10.0)));
    }
    let step = if integer { 1.0 } else { nice((max - min) / 1000.0) };
    Control { kind: "number", min, max, step, log, integer, ..control }
}

/// The next 1, 2 or 5 times a power of ten.
fn nice(number: f64) -> f64 {
    let mut decade = 1e-9;
    while decade < 1e15 {
        for factor in [1.0, 2.0, 5.0] {
            if decade * factor >= number * (1.0 - 1e-9) {
                return decade * factor;
            }
        }
        decade *= 10.0;
    }
    number
}

/// The text with another value at a path. Where the path names a block (`links.uplink.queue.aqm`), the keys
/// of its table that the new block has, too, stay as they are, the others go, and those that it requires get
/// ordinary values.
pub fn set(scenario: &Value, toml: &str, path: &str, value: &str) -> Result<String, Problem> {
    match congestion::split(scenario, path) {
        Some((transport, key)) => congestion::set(scenario, toml, transport, key, value),
        None => set_in_table(scenario, toml, path, value),
    }
}

/// Sets a value as [`set`] does, in a table of the text.
fn set_in_table(scenario: &Value, toml: &str, path: &str, value: &str) -> Result<String, Problem> {
    let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
    let name = value.trim().trim_matches('"');
    let before = controls(scenario, toml).into_iter().find(|control| control.path == path);
    let blocks = match key {
        "aqm" => alternatives(definition_of("Aqm")),
        "scheduler" => alternatives(definition_of("Scheduler")),
        "marker" => alternatives(definition_of("Meter")),
        "control" => alternatives(definition_of("Congestion")),
        _ => None,
    };
    let find = |name: &str| blocks?.iter().find(|one| one["properties"][key]["const"] == name);
    let (Some(before), Some(new)) = (before, find(name)) else { return edit::edit(toml, path, value) };
    let Some(old) = find(before.value.as_str().unwrap_or_default()) else {
        return edit::edit(toml, path, value);
    };
    let same =
        |key: &&String| kind(&old["properties"][key.as_str()]) == kind(&new["properties"][key.as_str()]);
    let keep = new["properties"].as_object().into_iter().flatten().map(|(key, _)| key).filter(same);
    let mut keep: Vec<&str> = keep.map(String::as_str).collect();
    keep.retain(|&kept| kept != key);
    let there = |wanted: &str| {
        at(scenario, parent).and_then(|table| table.get(wanted)).is_some_and(|value| !value.is_null())
    };
    let mut keys = vec![(key.to_owned(), format!("\"{name}\""))];
    let required = new["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for wanted in required.filter(|&wanted| wanted != key && !(keep.contains(&wanted) && there(wanted))) {
        let property = resolve(&new["properties"][wanted]);
        keys.push((wanted.to_owned(), ordinary(property, at(scenario, parent))));
    }
    let sets = new["properties"].as_object().into_iter().flatten();
    let sets: Vec<&String> = sets.filter(|(_, one)| is_ramp(named(one))).map(|(key, _)| key).collect();
    let is_given = |set: &&&String| {
        keys.iter().any(|(key, _)| key == **set) || keep.contains(&set.as_str()) && there(set)
    };
    // None is required where one of several will do: that of OUT packets.
    if let (None, Some(set)) = (sets.iter().find(is_given), sets.iter().rfind(|set| *set != &"red")) {
        let property = (&new["properties"][set.as_str()], Some("Thresholds"));
        keys.push(((*set).clone(), ordinary(property, at(scenario, parent))));
    }
    edit::replace(toml, path, &keys, &keep)
}

/// The name of a property's quantity, also where it may be left out.
fn named(property: &'static Value) -> Option<&'static str> {
    let one = property["anyOf"].as_array().and_then(|either| either.first()).unwrap_or(property);
    resolve(one).1
}

/// What makes two properties the same kind of thing.
fn kind(property: &Value) -> (&Value, &Value) {
    (&property["$ref"], &property["type"])
}

/// The value at a path of a scenario in JSON.
fn at<'a>(scenario: &'a Value, path: &str) -> Option<&'a Value> {
    if let Some(rest) = path.strip_prefix("links.") {
        let links = scenario["links"].as_object()?;
        let (name, link) = links
            .iter()
            .filter(|(name, _)| rest.starts_with(name.as_str()))
            .max_by_key(|(name, _)| name.len())?;
        return within(link, rest[name.len()..].trim_start_matches('.'));
    }
    if let Some(rest) = path.strip_prefix("flows.") {
        let (name, inner) = rest.split_once('.').unwrap_or((rest, ""));
        let flow = scenario["flows"].as_array()?.iter().find(|flow| flow["name"] == name)?;
        return within(flow, inner);
    }
    within(scenario, path)
}

fn within<'a>(mut value: &'a Value, path: &str) -> Option<&'a Value> {
    for step in perhop_scenario::steps(path) {
        value = match step {
            perhop_scenario::KeyPart::Key(key) => value.get(key)?,
            perhop_scenario::KeyPart::Index(index) => value.get(index)?,
        };
    }
    Some(value)
}

/// Whether a type takes `30/90/0.05`: three thresholds, or a curve that may be one ramp.
fn is_ramp(name: Option<&str>) -> bool {
    matches!(name, Some("Thresholds" | "DropCurve"))
}

/// An ordinary value in TOML for a key that a block requires, beside the keys of its table.
fn ordinary((schema, name): (&'static Value, Option<&'static str>), table: Option<&Value>) -> String {
    let texts =
        || table.and_then(Value::as_object).into_iter().flatten().filter_map(|(_, value)| value.as_str());
    let limit = texts().find_map(|text| text.strip_suffix('p')?.parse::<f64>().ok());
    match name {
        name if is_ramp(name) => {
            let present = texts().find(|text| text.split('/').count() == 3);
            let from_limit = || {
                let limit = limit.unwrap_or(100.0);
                format!("{}/{}/0.1", (limit / 6.0).ceil(), (limit / 2.0).ceil())
            };
            format!("\"{}\"", present.map_or_else(from_limit, str::to_owned))
        }
        Some("Depth" | "Limit") => "\"100p\"".into(),
        Some("Bytes") => "\"1500B\"".into(),
        Some("Aqm") => {
            let limit = limit.unwrap_or(100.0);
            format!("{{ aqm = \"drop-tail\", limit = \"{limit}p\" }}")
        }
        _ => match (schema["minimum"].as_f64(), &schema["examples"][0]) {
            (Some(minimum), _) => minimum.to_string(),
            (_, Value::String(example)) => format!("\"{example}\""),
            _ => "1".into(),
        },
    }
}
