//! Keys of a TCP transport that have become parameters of congestion controls. They are still read.
//!
//! Until perhop 0.2 the parameters of congestion controls were keys of the transport, each refused beside all
//! controls but one or two: `congestion = "dctcp", estimation-gain = 0.1`, which is
//! `congestion = { control = "dctcp", estimation-gain = 0.1 }` now.

use schemars::Schema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::checks::TWO_WINDOWS_RULE;
use super::{TcpParams, Variant};
use crate::transport::tcp::congestion::{Congestion, CongestionParams, FormerKey};

/// A former key of a transport that has been replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedKey {
    /// The key.
    pub key: String,
    /// The parameter of the congestion control that it has become; `None` if it had no effect.
    pub parameter: Option<&'static str>,
    /// What to write in its place.
    pub notice: String,
}

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

/// Moves a transport's former keys into its `congestion`, and returns them. Leaves them out where the
/// transport has no control that can be read: that is then the problem.
///
/// # Errors
/// A key that its congestion control does not have, or that is given in both places, and what is right.
pub fn move_former_keys(transport: &mut Map<String, Value>) -> Result<Vec<ReplacedKey>, (String, String)> {
    let found = transport.iter().filter(|(key, value)| !owners(key, value).is_empty());
    let found: Vec<(String, Value)> = found.map(|(key, value)| (key.clone(), value.clone())).collect();
    if found.is_empty() {
        return Ok(Vec::new());
    }
    for (key, _) in &found {
        transport.shift_remove(key);
    }
    let Some((tcp, mut control)) = control_of(transport) else { return Ok(Vec::new()) };
    let name = control[CongestionParams::TAG].as_str().unwrap_or_default().to_owned();
    let mut moved = Vec::new();
    for (key, value) in found {
        let owners = owners(&key, &value);
        let former = owners.iter().find(|(owner, _)| *owner == name).map(|(_, former)| *former);
        match former {
            Some(former) if control.contains_key(former.parameter) => {
                let text = format!("`congestion` has `{}` already; leave this key out", former.parameter);
                return Err((key, text));
            }
            Some(former) => {
                let value = if former.value.is_some() { Value::Bool(true) } else { value };
                control.insert(former.parameter.into(), value);
            }
            // What was off has no effect anywhere.
            None if value == false => {}
            None => return Err((key, refusal(tcp, &owners))),
        }
        moved.push((key, former));
    }
    let whole = inline(&control);
    if moved.iter().any(|(_, former)| former.is_some()) {
        transport.insert("congestion".into(), control.into());
    }
    let replaced = moved.into_iter().map(|(key, former)| {
        let notice = match former {
            Some(former) => {
                format!("{}a parameter of `{name}` by now: write congestion = {whole}", former.subject())
            }
            None => format!("no key of a transport any more; leave `{key} = false` out"),
        };
        ReplacedKey { key, parameter: former.map(|former| former.parameter), notice }
    });
    Ok(replaced.collect())
}

/// Returns why a former key of other controls is refused beside this variant.
fn refusal(tcp: Variant, owners: &[(&str, FormerKey)]) -> String {
    if tcp == Variant::TwoWindows {
        return TWO_WINDOWS_RULE.into();
    }
    let names: Vec<_> = owners.iter().map(|(owner, _)| format!("`{owner}`")).collect();
    let (names, former) = (names.join(" or "), owners[0].1);
    let what = match former.value {
        Some(_) => format!("{}a parameter of {names} by now", former.subject()),
        None => format!("only {names} has it, as its parameter `{}`", former.parameter),
    };
    format!("{what}; leave this key out, or take that control")
}

/// Returns the variant of a transport, and its congestion control as a table; `None` if they cannot be read.
fn control_of(transport: &Map<String, Value>) -> Option<(Variant, Map<String, Value>)> {
    let tcp = Variant::deserialize(transport.get("tcp")?).ok()?;
    let name = match transport.get("congestion") {
        Some(given) if tcp != Variant::TwoWindows => {
            let Congestion(control) = Congestion::deserialize(given).ok()?;
            if let Value::Object(table) = given {
                return Some((tcp, table.clone()));
            }
            control.name()
        }
        _ => TcpParams::new(tcp).control().name(),
    };
    Some((tcp, Map::from_iter([(CongestionParams::TAG.to_owned(), name.into())])))
}

/// Writes a table of plain values in one line of TOML.
fn inline(table: &Map<String, Value>) -> String {
    let values: Vec<_> = table.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", values.join(", "))
}

/// Adds the former keys to the schema of a transport, as deprecated ones.
pub(super) fn describe_former_keys(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (_, former) in former_keys() {
        let description =
            format!("Deprecated: the parameter `{}` in the table `congestion`.", former.parameter);
        let mut former_key = json!({ "deprecated": true, "description": description });
        if let Some(value) = former.value {
            former_key["type"] = "string".into();
            former_key["const"] = value.into();
            let choices = properties.get_mut(former.key).and_then(|key| key["anyOf"].as_array_mut());
            choices.expect("the key has other values").insert(1, former_key);
        } else {
            former_key["type"] = json!(["boolean", "number", "string"]);
            properties.insert(former.key.into(), former_key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the transport with its former keys moved, and these.
    fn moved(transport: &str) -> Result<(Value, Vec<ReplacedKey>), (String, String)> {
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
                r#"`hystart` is a parameter of `cubic` by now: write congestion = { control = "cubic", hystart = true }"#,
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
            let [replaced] = &notices[..] else { panic!("{former}: {notices:?}") };
            let now: Value = serde_json::from_str(now).unwrap();
            assert_eq!((table, replaced.key.as_str()), (now, key), "{former}");
            assert!(replaced.notice.contains(text), "{replaced:?}");
        }
        let now =
            r#"{"tcp":"linux","slow-start":"hystart++","congestion":{"control":"cubic","hystart":false}}"#;
        let unchanged = serde_json::from_str(now).unwrap();
        assert_eq!(moved(now).unwrap(), (unchanged, Vec::new()), "nothing is former");
    }

    #[test]
    fn each_of_several_notices_has_the_whole_table() {
        let (_, notices) =
            moved(r#"{"tcp":"linux","ecn-backoff":true,"slow-start":"hystart","cubic-alpha":"raised"}"#)
                .unwrap();
        let whole =
            r#"congestion = { control = "cubic", ecn-backoff = true, hystart = true, alpha = "raised" }"#;
        assert_eq!(notices.len(), 3);
        assert!(notices.iter().all(|replaced| replaced.notice.ends_with(whole)), "{notices:?}");
    }

    #[test]
    fn a_control_or_a_variant_that_cannot_be_read_is_left_to_who_reads_it() {
        for rest in [
            r#""tcp":"newreno","congestion":5"#,
            r#""tcp":"newreno","congestion":{}"#,
            r#""tcp":"newreno","congestion":{"control":5}"#,
            r#""tcp":"newreno","congestion":"qubic""#,
            r#""tcp":"bogus""#,
        ] {
            let (table, notices) = moved(&format!(r#"{{{rest},"estimation-gain":0.1}}"#)).unwrap();
            let rest: Value = serde_json::from_str(&format!("{{{rest}}}")).unwrap();
            assert_eq!((table, notices), (rest, Vec::new()));
        }
    }

    #[test]
    fn a_value_that_has_moved_is_deprecated_in_the_schema() {
        let schema = schemars::schema_for!(super::super::TcpParams).to_value();
        let choices = schema["properties"]["slow-start"]["anyOf"].as_array().unwrap();
        let former = choices.iter().find(|choice| choice["const"] == "hystart").unwrap();
        assert_eq!(former["deprecated"], true);
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
                r#"{"tcp":"newreno","congestion":{"control":"python","class":"my:Own"},"ecn-backoff":true}"#,
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
            (
                r#"{"tcp":"newreno","slow-start":"hystart"}"#,
                "slow-start",
                "`hystart` is a parameter of `cubic` by now",
            ),
            (r#"{"tcp":"two-windows","ecn-backoff":true}"#, "ecn-backoff", TWO_WINDOWS_RULE),
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
