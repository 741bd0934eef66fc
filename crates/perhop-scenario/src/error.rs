//! Errors of a scenario, or of another file of tables: the place, what is wrong, and what would be right.

use std::fmt;

/// One clear message about one scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, or the name of another source.
    pub origin: String,
    /// The line in the file, from 1, if it is known.
    pub line: Option<usize>,
    /// The key's path, such as `links.bottleneck.queue.in`; empty for the whole scenario.
    pub key: String,
    /// One line: what is wrong, and what would be right.
    pub problem: String,
}

/// One line, whatever the file says: control characters of names and values are escaped.
impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", OneLine(&self.origin))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", OneLine(&self.key))?;
        }
        write!(f, ": {}", OneLine(&self.problem))
    }
}

/// Text with its control characters escaped, as in `\n`.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| {
            if character.is_control() {
                write!(f, "{}", character.escape_default())
            } else {
                write!(f, "{character}")
            }
        })
    }
}

impl std::error::Error for ScenarioError {}

/// What a user should know of a scenario, or of another file of tables, that can be used as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The file, or the name of another source.
    pub origin: String,
    /// The line in the file, from 1, if it is known.
    pub line: Option<usize>,
    /// The key's path.
    pub key: String,
    /// What does not act, or acts otherwise than it seems, and what to do.
    pub text: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, line, key, text } = self.clone();
        ScenarioError { origin, line, key, problem: text }.fmt(f)
    }
}

/// A problem at a key, before it is known in which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key's path.
    pub path: Vec<KeyPart>,
    /// One line: what is wrong, and what would be right.
    pub text: String,
}

/// One part of a key's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// A key of a table.
    Key(String),
    /// The place in a list, from 0.
    Index(usize),
}

/// Returns the parts of a path as blocks write it: `queues[1].match.path`.
pub fn steps(path: &str) -> impl Iterator<Item = KeyPart> {
    let parts = path.split(['.', '[']).filter(|part| !part.is_empty());
    parts.map(|part| match part.strip_suffix(']').and_then(|index| index.parse().ok()) {
        Some(index) => KeyPart::Index(index),
        None => KeyPart::Key(part.into()),
    })
}

/// Returns the path of a key of the group of flows of this number, such as `transport.packet`; of the group's
/// table if `key` is empty.
pub(crate) fn at_flow(number: usize, key: &str) -> impl Iterator<Item = KeyPart> {
    let group = [KeyPart::Key("flows".into()), KeyPart::Index(number)];
    group.into_iter().chain(steps(key))
}

/// Returns the path of a key, such as `reverse.loss`, of the table `[tables.NAME]`; of that table if `key` is
/// empty. A dot in the name begins no other part.
pub(crate) fn at_table(tables: &str, name: &str, key: &str) -> impl Iterator<Item = KeyPart> {
    [tables, name].map(|key| KeyPart::Key(key.into())).into_iter().chain(steps(key))
}

impl Problem {
    /// Makes a problem at the key of this path.
    pub fn at(path: impl IntoIterator<Item = KeyPart>, text: impl Into<String>) -> Self {
        Self { path: path.into_iter().collect(), text: text.into() }
    }

    pub(crate) fn key(&self) -> String {
        let mut key = String::new();
        for part in &self.path {
            match part {
                KeyPart::Key(name) if key.is_empty() => key.push_str(name),
                KeyPart::Key(name) => key.extend([".", name]),
                KeyPart::Index(index) => key.extend(["[", &index.to_string(), "]"]),
            }
        }
        key
    }
}

/// Returns `; did you mean `x`?` for the candidate nearest to `word`, or nothing if none is near. Case and
/// underscores are ignored: `RIO` and `token_bucket` are near.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&plain(word), &plain(candidate)), candidate))
        .min()
        .filter(|(distance, candidate)| 2 * distance <= candidate.chars().count().max(word.chars().count()))
        .map_or_else(String::new, |(_, candidate)| format!("; did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_the_file_says() {
        let error = ScenarioError {
            origin: "a\nb.toml".into(),
            line: Some(2),
            key: "links.x\r\n".into(),
            problem: "unknown value `\n` of é".into(),
        };
        assert_eq!(error.to_string(), r"a\nb.toml:2: links.x\r\n: unknown value `\n` of é");
    }
}
