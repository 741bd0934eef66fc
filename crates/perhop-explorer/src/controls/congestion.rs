//! The congestion control of a TCP transport. A text may only name it, or leave it out, or have former keys
//! of the transport in place of its parameters; a page shows its table in every case.

use perhop_scenario::replace_former_keys;
use perhop_sim::transport::tcp::{CongestionParams, TcpParams};
use serde_json::{Value, json};

use super::{at, set_in_table, tables};
use crate::edit::{self, edit};
use crate::problem::Problem;

/// Returns what a TCP transport has where its keys are left out: its preset may have other defaults than the
/// schema, and some depend on the congestion control.
pub fn preset(table: &Value) -> Option<Value> {
    let tcp = table.get("tcp")?;
    let read = |table: Value| serde_json::to_value(serde_json::from_value::<TcpParams>(table).ok()?).ok();
    let alone = read(json!({ "tcp": tcp }))?;
    let given = table.get("congestion").and_then(|given| read(json!({ "tcp": tcp, "congestion": given })));
    let mut preset = given.unwrap_or_else(|| alone.clone());
    preset["congestion"] = alone["congestion"].clone();
    Some(preset)
}

/// Splits a path into the table of a congestion control: the path of the transport, and the key in the table.
pub fn split<'a>(scenario: &Value, path: &'a str) -> Option<(&'a str, &'a str)> {
    let (transport, key) = path.rsplit_once(".congestion.")?;
    at(scenario, transport)?.get("tcp")?;
    Some((transport, key))
}

/// Sets a key in the table of a transport's congestion control, which the text need not have. A table without
/// parameters is written as the control's name.
pub fn set(scenario: &Value, toml: &str, transport: &str, key: &str, value: &str) -> Result<String, Problem> {
    let (tag, block) = (CongestionParams::TAG, format!("{transport}.congestion"));
    let text = written_out(scenario, toml, transport)?;
    if key == tag && value.trim().is_empty() {
        return edit(&text, &block, "");
    }
    let text = set_in_table(scenario, &text, &format!("{block}.{key}"), value)?;
    edit::shorten(&text, &block, tag)
}

/// Returns the text with the table of a transport's congestion control, and without former keys beside it.
fn written_out(scenario: &Value, toml: &str, transport: &str) -> Result<String, Problem> {
    let block = format!("{transport}.congestion");
    let given = tables(toml);
    let mut replaced = given.clone();
    let _ = replace_former_keys(&mut replaced); // The scenario has been read, so that all have a place.
    let nothing = Value::Null;
    let [given, replaced] = [&given, &replaced].map(|text| at(text, transport).unwrap_or(&nothing));
    let mut text = toml.to_owned();
    for (key, _) in given.as_object().into_iter().flatten().filter(|(key, _)| replaced.get(key).is_none()) {
        text = edit(&text, &format!("{transport}.{key}"), "")?;
    }
    if !given["congestion"].is_object() {
        text = edit(&text, &block, "{}")?;
    }
    let named = json!({ CongestionParams::TAG: at(scenario, &block) });
    let table = Some(&replaced["congestion"]).filter(|table| table.is_object()).unwrap_or(&named);
    for (key, value) in table.as_object().into_iter().flatten() {
        if given["congestion"].get(key) != Some(value) {
            text = edit(&text, &format!("{block}.{key}"), &value.to_string())?;
        }
    }
    Ok(text)
}
