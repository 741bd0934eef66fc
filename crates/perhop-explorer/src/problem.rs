//! Problems of a scenario, in the program's own words, and where it is in the text.

use serde::Serialize;

/// The name of the text in messages.
pub const ORIGIN: &str = "scenario";

/// A message about a text, as the page shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The problem, and what would be right.
    pub text: String,
    /// The key that the problem is about; empty if it has none.
    pub key: String,
    /// The line of the text, from 1.
    pub line: Option<usize>,
    /// The column in UTF-16 units, from 1, and how many to underline.
    pub column: Option<usize>,
    /// See `column`.
    pub length: Option<usize>,
}

impl Problem {
    /// Creates a problem of no place in the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates a problem at a key, wherever that is.
    pub fn at(key: impl Into<String>, text: impl Into<String>) -> Self {
        Self { text: text.into(), key: key.into(), ..Self::default() }
    }

    /// Creates a problem that the reader of scenarios has found in a text.
    pub(crate) fn in_text(toml: &str, line: Option<usize>, key: String, text: String) -> Self {
        let (column, length) = place(toml, line, &key).unzip();
        Self { text, key, line, column, length }
    }
}

/// Returns where to underline in a line: its last key that the path names, else its content; for text that is
/// no TOML, where reading it ended.
fn place(toml: &str, line: Option<usize>, key: &str) -> Option<(usize, usize)> {
    let text = toml.lines().nth(line?.checked_sub(1)?)?;
    let units = |text: &str| text.encode_utf16().count();
    if key.is_empty()
        && let Err(error) = toml.parse::<toml::Table>()
        && let Some(span) = error.span()
    {
        let start = toml.get(..span.start)?.rfind('\n').map_or(0, |end| end + 1);
        let end = toml[span.start..].find('\n').map_or(toml.len(), |length| span.start + length);
        let marked = toml.get(span.start..span.end.clamp(span.start, end)).unwrap_or("");
        return Some((units(toml.get(start..span.start)?) + 1, units(marked).max(1)));
    }
    let names = key.split(['.', '[', ']']).filter(|part| !part.is_empty());
    let found = names.rev().find_map(|name| Some((text.find(name)?, name)));
    let trimmed = text.trim();
    let (at, marked) = found.unwrap_or_else(|| (text.find(trimmed).unwrap_or(0), trimmed));
    Some((units(&text[..at]) + 1, units(marked).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_scenario::Scenario;

    fn problem(toml: &str) -> Problem {
        let error = Scenario::from_toml(toml, ORIGIN).unwrap_err();
        Problem::in_text(toml, error.line, error.key, error.problem)
    }

    #[test]
    fn a_wrong_value_is_underlined_at_its_key() {
        let wrong =
            problem("duration = \"5s\"\nflows = []\n[links.\"é\"]\nfrom = \"a\"\nto = \"b\"\nrate = \"5\"\n");
        assert_eq!((wrong.line, wrong.column, wrong.length), (Some(6), Some(1), Some(4)));
        assert_eq!(wrong.key, "links.é.rate");
        assert!(wrong.text.contains("Mbps"), "{}", wrong.text);
    }

    #[test]
    fn text_that_is_no_toml_is_underlined_where_reading_ended() {
        let wrong = problem("duration = \"5s\"\nflows = = 3\n");
        assert_eq!((wrong.line, wrong.column), (Some(2), Some(9)));
    }
}
