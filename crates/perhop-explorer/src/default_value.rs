//! What acts where a scenario leaves a key out, from the JSON Schema: its `default`, or what its description
//! says after "Default:".

use serde_json::Value;

/// The default of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultValue {
    /// As it would be in the text, without quotes, or in words.
    pub value: String,
}

impl DefaultValue {
    /// Returns the default of a property with this law; `None` if the schema says none.
    pub fn of(property: &Value, law: &str) -> Option<Self> {
        Self::plain(&property["default"]).or_else(|| {
            if !property["default"].is_null() {
                return None;
            }
            said(property["description"].as_str()?, law).map(|value| Self { value })
        })
    }

    /// A plain value.
    pub fn plain(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self { value: text.clone() }),
            plain @ (Value::Bool(_) | Value::Number(_)) => Some(Self { value: plain.to_string() }),
            _ => None,
        }
    }

    /// Of a key whose default depends on others.
    pub fn automatic() -> Self {
        Self { value: "automatic".into() }
    }

    /// As a page shows it: `15 ms`.
    pub fn shown(&self) -> String {
        match quantity(&self.value) {
            None if self.value == "true" => "on".into(),
            None if self.value == "false" => "off".into(),
            Some((number, unit)) if !unit.is_empty() && unit != "p" => format!("{number} {unit}"),
            _ => self.value.replace('`', ""),
        }
    }
}

/// What a description says of the default, with this law: `15ms` of "Default: 10ms; with `docsis` 15ms."
fn said(description: &str, law: &str) -> Option<String> {
    let description = description.replace('\n', " ");
    let (_, said) = description.split_once("Default: ")?;
    let end = said.find(". ").unwrap_or(said.len());
    let said = said[..end].trim_end_matches('.');
    let clauses: Vec<(String, Option<String>)> = said.split("; ").flat_map(conditions).collect();
    let of_law = clauses.iter().find(|(_, condition)| condition.as_deref() == Some(law));
    let otherwise = || clauses.iter().find(|(_, condition)| condition.is_none());
    let (value, _) = of_law.or_else(otherwise)?;
    Some(value.clone())
}

/// The values of a clause, each with the law for which it is: "with `docsis` 1024B, with `linux` 1500B",
/// "`1ms` with `law = "linux"`".
fn conditions(clause: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let mut rest = clause;
    while let Some((before, after)) = rest.split_once("with `") {
        let Some((condition, after)) = after.split_once('`') else { break };
        let law = condition.rsplit(' ').next().unwrap_or_default().trim_matches('"').to_owned();
        let before = before.trim().trim_end_matches(',');
        let next = after.find(", with `").unwrap_or(after.len());
        let (value, left) = if before.is_empty() { after.split_at(next) } else { (before, "") };
        found.push((value.trim().trim_matches('`').to_owned(), Some(law)));
        rest = left;
    }
    if found.is_empty() {
        found.push((clause.trim().trim_matches('`').to_owned(), None));
    }
    found
}

/// `20Mbps` as 20 and `Mbps`.
pub fn quantity(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_says_the_default_of_each_law() {
        let packet = "Of this size. Default: 1000B; with\n`docsis` 1024B, with `linux` 1500B.";
        assert_eq!(
            ["enhanced", "docsis", "linux"].map(|law| said(packet, law).unwrap()),
            ["1000B", "1024B", "1500B"]
        );
        let step = "(minTh). Default: 800us; 1ms with `law = \"linux\"`.";
        assert_eq!(["rfc", "linux"].map(|law| said(step, law).unwrap()), ["800us", "1ms"]);
        let limit =
            "In packets. Default: what the link sends in 250 ms; `10000p` with `law = \"linux\"`. More.";
        assert_eq!(
            ["rfc", "linux"].map(|law| said(limit, law).unwrap()),
            ["what the link sends in 250 ms", "10000p"]
        );
        let length = "Default: 1; 0 with `law = \"linux\"` (`min_qlen_step`).";
        assert_eq!(["rfc", "linux"].map(|law| said(length, law).unwrap()), ["1", "0"]);
        let unless = "Default: false; with\n`tcp = \"linux\"` true, unless another. More.";
        assert_eq!(
            ["newreno", "linux"].map(|tcp| said(unless, tcp).unwrap()),
            ["false", "true, unless another"]
        );
        assert_eq!(said("Default: 0.125; with `docsis` 0.25.", "").unwrap(), "0.125");
        assert_eq!(said("Nothing said.", ""), None);
    }
}
