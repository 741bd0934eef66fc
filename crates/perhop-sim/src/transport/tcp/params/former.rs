//! Keys of a TCP transport that have become parameters of congestion controls. They are still read.
//!
//! Until perhop 0.2 the parameters of congestion controls were keys of the transport, each refused beside all
//! controls but one or two: `congestion = "dctcp", estimation-gain = 0.1`, which is
//! `congestion = { control = "dctcp", estimation-gain = 0.1 }` now.

use schemars::Schema;
use serde_json::{Map, Value, json};

use super::presets;
use crate::transport::tcp::congestion::{Congestion, CongestionParams, FormerKey};

/// Returns all former keys, each with the control that has it now.
fn former_keys() -> impl Iterator<Item = (&'static str, FormerKey)> {
    CongestionParams::all().flat_map(|control| {
        let info = control.info();
        info.former_keys.iter().map(move |former| (info.name, *former))
    })
}

/// Returns the controls that have this former key of a transport now; none if the key is no former one.
fn owners(key: &str, value: &Value) -> Vec<(&'static str, FormerKey)> {
    let is_it = |former: &FormerKey| former.key == key && former.value.is_none_or(|moved| value == moved);
    former_keys().filter(|(_, former)| is_it(former)).collect()
}

/// Moves a transport's former keys into its `congestion`; returns each with what to write in its place.
///
/// # Errors
/// A key that its congestion control does not have, or that is given in both places, and what is right.
pub fn move_former_keys(
    transport: &mut Map<String, Value>,
) -> Result<Vec<(String, String)>, (String, String)> {
    let mut moved = Vec::new();
    let found = transport.iter().filter(|(key, value)| !owners(key, value).is_empty());
    let found: Vec<(String, Value)> = found.map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, value) in found {
        let owners = owners(&key, &value);
        let mut control = control_of(transport);
        let name = control.get(CongestionParams::TAG).and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some((_, former)) = owners.iter().find(|(owner, _)| *owner == name) else {
            if value == false {
                // What was off has no effect anywhere.
                transport.shift_remove(&key);
                moved.push((
                    key.clone(),
                    format!("no key of a transport any more; leave `{key} = false` out"),
                ));
                continue;
            }
            let names: Vec<_> = owners.iter().map(|(owner, _)| format!("`{owner}`")).collect();
            let text = format!(
                "only {} has it, as its parameter `{}`; leave this key out, or take that control",
                names.join(" or "),
                owners[0].1.parameter
            );
            return Err((key, text));
        };
        if control.contains_key(former.parameter) {
            let text = format!("`congestion` has `{}` already; leave this key out", former.parameter);
            return Err((key, text));
        }
        transport.shift_remove(&key);
        let value = if former.value.is_some() { Value::Bool(true) } else { value };
        control.insert(former.parameter.into(), value);
        moved.push((key, format!("a parameter of `{name}` by now: write congestion = {}", inline(&control))));
        transport.insert("congestion".into(), control.into());
    }
    Ok(moved)
}

/// Returns the congestion control of a transport as a table.
fn control_of(transport: &Map<String, Value>) -> Map<String, Value> {
    let name = match transport.get("congestion") {
        Some(Value::Object(table)) => return table.clone(),
        Some(name) => name.clone(),
        None => {
            let preset = transport.get("tcp").and_then(Value::as_str).and_then(presets::congestion_of);
            preset.unwrap_or(Congestion::default().0.name()).into()
        }
    };
    Map::from_iter([(CongestionParams::TAG.to_owned(), name)])
}

/// Writes a table of plain values in one line of TOML.
fn inline(table: &Map<String, Value>) -> String {
    let values: Vec<_> = table.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", values.join(", "))
}

/// Adds the former keys to the schema of a transport, as deprecated ones.
pub(super) fn describe_former_keys(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (_, former) in former_keys().filter(|(_, former)| former.value.is_none()) {
        let description =
            format!("Deprecated: the parameter `{}` in the table `congestion`.", former.parameter);
        let types = ["boolean", "number", "string"];
        let property = json!({ "deprecated": true, "type": types, "description": description });
        properties.insert(former.key.into(), property);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The transport with its former keys moved, and the notices.
    type Moved = (Value, Vec<(String, String)>);

    fn moved(transport: &str) -> Result<Moved, (String, String)> {
        let mut table = serde_json::from_str(transport).unwrap();
        let moved = move_former_keys(&mut table)?;
        Ok((table.into(), moved))
    }

    #[test]
    fn former_keys_become_parameters_and_say_what_to_write() {
        for (former, now, key, text) in [
            (
                r#"{"tcp":"newreno","congestion":"dctcp","estimation-gain":0.1}"#,
                r#"{"tcp":"newreno","congestion":{"control":"dctcp","estimation-gain":0.1}}"#,
                "estimation-gain",
                r#"a parameter of `dctcp` by now: write congestion = { control = "dctcp", estimation-gain = 0.1 }"#,
            ),
            (
                r#"{"tcp":"linux","cubic-alpha":"raised"}"#,
                r#"{"tcp":"linux","congestion":{"control":"cubic","alpha":"raised"}}"#,
                "cubic-alpha",
                r#"congestion = { control = "cubic", alpha = "raised" }"#,
            ),
            (
                r#"{"tcp":"newreno","ecn-backoff":true}"#,
                r#"{"tcp":"newreno","congestion":{"control":"reno","ecn-backoff":true}}"#,
                "ecn-backoff",
                r#"congestion = { control = "reno", ecn-backoff = true }"#,
            ),
            (
                r#"{"tcp":"newreno","slow-start":"hystart","congestion":"cubic"}"#,
                r#"{"tcp":"newreno","congestion":{"control":"cubic","hystart":true}}"#,
                "slow-start",
                r#"congestion = { control = "cubic", hystart = true }"#,
            ),
            (
                r#"{"congestion":{"control":"prague"},"tcp":"newreno","target-rtt":"0s"}"#,
                r#"{"congestion":{"control":"prague","target-rtt":"0s"},"tcp":"newreno"}"#,
                "target-rtt",
                r#"congestion = { control = "prague", target-rtt = "0s" }"#,
            ),
            (
                r#"{"tcp":"newreno","congestion":"ledbat","target-delay":"25ms"}"#,
                r#"{"tcp":"newreno","congestion":{"control":"ledbat","target-delay":"25ms"}}"#,
                "target-delay",
                r#"congestion = { control = "ledbat", target-delay = "25ms" }"#,
            ),
            (
                r#"{"tcp":"newreno","congestion":"bbr","ecn-backoff":false}"#,
                r#"{"tcp":"newreno","congestion":"bbr"}"#,
                "ecn-backoff",
                "leave `ecn-backoff = false` out",
            ),
        ] {
            let (table, notices) = moved(former).unwrap();
            let [(of, said)] = &notices[..] else { panic!("{former}: {notices:?}") };
            let now: Value = serde_json::from_str(now).unwrap();
            assert_eq!((table, of.as_str()), (now, key), "{former}");
            assert!(said.contains(text), "{said}");
        }
        let now =
            r#"{"tcp":"linux","slow-start":"hystart++","congestion":{"control":"cubic","hystart":false}}"#;
        let unchanged = serde_json::from_str(now).unwrap();
        assert_eq!(moved(now).unwrap(), (unchanged, Vec::new()), "nothing is former");
    }

    #[test]
    fn a_key_of_another_control_and_one_that_is_given_twice_are_refused() {
        for (transport, key, text) in [
            (
                r#"{"tcp":"newreno","congestion":"scalable","ecn-backoff":true}"#,
                "ecn-backoff",
                "only `reno` or `cubic` has it",
            ),
            (
                r#"{"tcp":"newreno","congestion":"my:Own","ecn-backoff":true}"#,
                "ecn-backoff",
                "only `reno` or",
            ),
            (
                r#"{"tcp":"newreno","congestion":"dctcp","target-rtt":"25ms"}"#,
                "target-rtt",
                "only `prague` has",
            ),
            (
                r#"{"tcp":"linux","congestion":"reno","cubic-alpha":"constant"}"#,
                "cubic-alpha",
                "its parameter `alpha`",
            ),
            (r#"{"tcp":"newreno","slow-start":"hystart"}"#, "slow-start", "its parameter `hystart`"),
            (
                r#"{"tcp":"newreno","congestion":"prague","estimation-gain":0.1}"#,
                "estimation-gain",
                "`dctcp`",
            ),
            (r#"{"tcp":"newreno","target-delay":"25ms"}"#, "target-delay", "only `ledbat` has it"),
            (
                r#"{"tcp":"newreno","congestion":{"control":"dctcp","estimation-gain":0.1},"estimation-gain":0.2}"#,
                "estimation-gain",
                "`congestion` has `estimation-gain` already",
            ),
        ] {
            let (of, said) = moved(transport).unwrap_err();
            assert!(of == key && said.contains(text), "{transport}: {of}: {said}");
        }
    }
}
