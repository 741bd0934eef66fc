//! A change of one value in the text of a scenario, which keeps everything else as it is written, comments
//! included.

use perhop_scenario::{KeyPart, steps};
use toml_edit::{Decor, DocumentMut, Item, RawString, TableLike, Value};

use crate::problem::Problem;

/// The parts of a threshold set, which is one text: `30/90/0.05`.
const THRESHOLD_PARTS: [&str; 3] = ["min", "max", "max_p"];

/// The text with another value at a path as in sweeps, such as `links.uplink.queue.limit`, `flows.bulk.count`
/// or `links.uplink.queue.thresholds.max_p`. The value is in TOML; an empty one takes the key out.
pub fn edit(toml: &str, path: &str, value: &str) -> Result<String, Problem> {
    let no_toml = |error: toml_edit::TomlError| Problem::new(error.message().trim().to_owned());
    let mut document: DocumentMut = toml.parse().map_err(no_toml)?;
    let parts: Vec<KeyPart> = find_link(&document, path).unwrap_or_else(|| steps(path).collect());
    let Some((KeyPart::Key(last), parents)) = parts.split_last() else {
        return Err(Problem::at(path, "there is no such key"));
    };
    let missing = || Problem::at(path, "there is no table for this key");
    let parsed = if value.trim().is_empty() {
        None
    } else {
        let wrong = |_| Problem::at(path, format!("`{value}` is no value in TOML; write text in quotes"));
        Some(value.trim().parse::<Value>().map_err(wrong)?)
    };
    if THRESHOLD_PARTS.contains(&last.as_str())
        && let Some((KeyPart::Key(set), tables)) = parents.split_last()
        && let Some(table) = descend(document.as_table_mut(), tables)
        && let Some(item) = table.get_mut(set).filter(|item| item.is_str())
    {
        let part = THRESHOLD_PARTS.iter().position(|part| part == last).unwrap_or(0);
        return set_part(item, part, value).map(|()| document.to_string()).ok_or_else(missing);
    }
    let table = descend(document.as_table_mut(), parents).ok_or_else(missing)?;
    match parsed {
        None => with_its_end(table, |table| table.remove(last)),
        Some(value) => put(table, last, value),
    }
    Ok(document.to_string())
}

/// A link's name may have dots in it: the longest name that fits.
fn find_link(document: &DocumentMut, path: &str) -> Option<Vec<KeyPart>> {
    let rest = path.strip_prefix("links.")?;
    let links = document.get("links")?.as_table_like()?;
    let fits = |name: &str| rest.strip_prefix(name)?.strip_prefix('.').map(|inner| (name.to_owned(), inner));
    let (name, inner) = links.iter().filter_map(|(name, _)| fits(name)).max_by_key(|(name, _)| name.len())?;
    let start = [KeyPart::Key("links".into()), KeyPart::Key(name)];
    Some(start.into_iter().chain(steps(inner)).collect())
}

/// The table of this path. A list of tables is entered by number, or by the `name` of one.
fn descend<'a>(table: &'a mut dyn TableLike, path: &[KeyPart]) -> Option<&'a mut dyn TableLike> {
    let Some((part, rest)) = path.split_first() else { return Some(table) };
    let KeyPart::Key(key) = part else { return None };
    let item = table.get_mut(key)?;
    if !item.is_array() && !item.is_array_of_tables() {
        return descend(item.as_table_like_mut()?, rest);
    }
    let (which, rest) = rest.split_first()?;
    let entry = match item {
        Item::ArrayOfTables(tables) => {
            let place = tables.iter().position(|table| is_meant(table, which));
            tables.get_mut(place.or(index(which))?)? as &mut dyn TableLike
        }
        Item::Value(Value::Array(values)) => {
            let place = values
                .iter()
                .position(|value| value.as_inline_table().is_some_and(|table| is_meant(table, which)));
            values.get_mut(place.or(index(which))?)?.as_inline_table_mut()? as &mut dyn TableLike
        }
        _ => return None,
    };
    descend(entry, rest)
}

/// Whether a table has this name.
fn is_meant(table: &dyn TableLike, which: &KeyPart) -> bool {
    matches!(which, KeyPart::Key(name) if table.get("name").and_then(Item::as_str) == Some(name))
}

fn index(part: &KeyPart) -> Option<usize> {
    match part {
        KeyPart::Index(index) => Some(*index),
        KeyPart::Key(text) => text.parse().ok(),
    }
}

/// Replaces a value, and keeps the space and the comment around it.
fn put(table: &mut dyn TableLike, key: &str, mut value: Value) {
    if let Some(Item::Value(before)) = table.get_mut(key) {
        *value.decor_mut() = before.decor().clone();
        *before = value;
    } else {
        with_its_end(table, |table| table.insert(key, Item::Value(value)));
    }
}

/// Changes a table's keys, and keeps the space before its end where it is in one line: `{ limit = "60p" }`.
fn with_its_end(table: &mut dyn TableLike, change: impl FnOnce(&mut dyn TableLike) -> Option<Item>) {
    let space = end_of(table).and_then(|end| {
        let space = end.suffix().cloned();
        end.set_suffix("");
        space
    });
    change(table);
    if let (Some(end), Some(space)) = (end_of(table), space) {
        end.set_suffix(space);
    }
}

/// Returns the spaces around a table's last value, if no comment follows it.
fn end_of(table: &mut dyn TableLike) -> Option<&mut Decor> {
    let decor = table.iter_mut().last()?.1.as_value_mut()?.decor_mut();
    let after = decor.suffix().and_then(RawString::as_str).unwrap_or_default();
    after.trim().is_empty().then_some(decor)
}

/// Sets one part of a threshold set, such as the last of `30/90/0.05`.
fn set_part(item: &mut Item, part: usize, value: &str) -> Option<()> {
    let mut parts: Vec<String> = item.as_str()?.split('/').map(str::to_owned).collect();
    value.trim().trim_matches('"').clone_into(parts.get_mut(part)?);
    let value = item.as_value_mut()?;
    let decor = value.decor().clone();
    *value = parts.join("/").into();
    *value.decor_mut() = decor;
    Some(())
}

/// The text with another block in place of the one that `path` names, such as `links.uplink.queue.aqm`: its
/// table gets these keys.
pub fn replace(toml: &str, path: &str, keys: &[(String, String)], keep: &[&str]) -> Result<String, Problem> {
    let parents = path.rsplit_once('.').map_or("", |(parent, _)| parent);
    let mut text = toml.to_owned();
    let mut document: DocumentMut =
        toml.parse().map_err(|error: toml_edit::TomlError| Problem::new(error.to_string()))?;
    let table = table_of(&mut document, path)?;
    let there: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    for key in there.iter().filter(|key| !keep.contains(&key.as_str())) {
        if !keys.iter().any(|(new, _)| new == key) {
            text = edit(&text, &format!("{parents}.{key}"), "")?;
        }
    }
    for (key, value) in keys {
        text = edit(&text, &format!("{parents}.{key}"), value)?;
    }
    Ok(text)
}

/// The text with the name of a block in place of its table, if that is in one line and has no key but `tag`.
pub fn shorten(toml: &str, path: &str, tag: &str) -> Result<String, Problem> {
    let mut document: DocumentMut =
        toml.parse().map_err(|error: toml_edit::TomlError| Problem::new(error.to_string()))?;
    let key = path.rsplit('.').next().unwrap_or(path);
    let table = table_of(&mut document, path)?;
    let block = table.get(key).and_then(|block| block.as_inline_table().filter(|block| block.len() == 1));
    if let Some(name) = block.and_then(|block| block.get(tag)).cloned() {
        put(table, key, name);
    }
    Ok(document.to_string())
}

/// The table that a path's last key is in.
fn table_of<'a>(document: &'a mut DocumentMut, path: &str) -> Result<&'a mut dyn TableLike, Problem> {
    let parts: Vec<KeyPart> = find_link(document, path).unwrap_or_else(|| steps(path).collect());
    let table = parts.split_last().and_then(|(_, parents)| descend(document.as_table_mut(), parents));
    table.ok_or_else(|| Problem::at(path, "there is no table for this key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# A scenario.
duration = "5s" # long enough

[links.up]
from = "a"
queue = { aqm = "red", thresholds = "5/15/0.1", limit = "60p" } # RED

[links."a.b"]
rate = "1Mbps"

[[flows]]
name = "bulk" # downloads
count = 3
transport = { tcp = "linux" }
"#;

    fn changed(path: &str, value: &str, from: &str, to: &str) {
        assert_eq!(edit(TEXT, path, value).unwrap(), TEXT.replace(from, to), "{path}");
    }

    #[test]
    fn a_value_changes_and_nothing_else_does() {
        changed("duration", "\"9s\"", "\"5s\"", "\"9s\"");
        changed("links.up.queue.limit", "\"99p\"", "\"60p\"", "\"99p\"");
        changed("links.up.queue.thresholds.max_p", "0.02", "5/15/0.1", "5/15/0.02");
        changed("links.up.queue.thresholds", "\"1/2/1\"", "5/15/0.1", "1/2/1");
        changed("links.a.b.rate", "\"2Mbps\"", "1Mbps", "2Mbps");
        changed("flows.bulk.count", "4", "count = 3", "count = 4");
        changed("flows[0].transport.tcp", "\"newreno\"", "linux", "newreno");
    }

    #[test]
    fn a_key_goes_with_an_empty_value() {
        let text = edit(TEXT, "links.up.queue.limit", "").unwrap();
        assert!(
            text.contains("queue = { aqm = \"red\", thresholds = \"5/15/0.1\"") && !text.contains("60p"),
            "{text}"
        );
        assert!(text.ends_with(TEXT.split_once("# RED").unwrap().1));
    }

    #[test]
    fn a_new_key_is_added_to_its_table() {
        assert!(
            edit(TEXT, "links.a.b.delay", "\"2ms\"").unwrap().contains("rate = \"1Mbps\"\ndelay = \"2ms\"\n")
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (path, value) in [
            ("links.no.rate", "1"),
            ("", "1"),
            ("duration", "1 2"),
            ("flows.no.count", "1"),
            ("duration.x", "1"),
        ] {
            assert!(edit(TEXT, path, value).is_err(), "{path}");
        }
        assert!(edit("a = ", "a", "1").is_err());
    }

    #[test]
    fn another_block_takes_the_place() {
        let keys = [("aqm".to_owned(), "\"codel\"".to_owned())];
        let text = replace(TEXT, "links.up.queue.aqm", &keys, &["limit"]).unwrap();
        assert!(text.contains("queue = { aqm = \"codel\", limit = \"60p\" } # RED"), "{text}");
    }
}
