//! Texts that a table of a scenario names by file, or holds itself.

/// A problem of a text: its line, and what is wrong and what would be right.
pub(crate) type Refusal = (usize, String);

/// A problem, and its key.
pub(crate) type AtKey = (String, String);

/// What a table says of where its text is.
pub(crate) struct Source<'a> {
    /// The table's key.
    pub(crate) key: &'a str,
    /// A name for what is read, such as `a trace`.
    pub(crate) what: &'a str,
    /// The name of a file, as an example.
    pub(crate) example: &'a str,
    /// The keys of the table; a file in place of the table is its `file`.
    pub(crate) file: Option<String>,
    pub(crate) is_table: bool,
    pub(crate) name: Option<String>,
    pub(crate) data: Option<String>,
}

/// A text, and where it is from.
pub(crate) struct Text {
    pub(crate) data: String,
    /// The file's name.
    pub(crate) name: Option<String>,
    /// The key at which its problems stand, and what comes before the number of a line.
    key: String,
    before_line: String,
}

impl Source<'_> {
    /// Reads the text, unless the keys contradict each other.
    pub(crate) fn read(self, fetch: impl FnOnce(&str) -> Result<String, String>) -> Result<Text, AtKey> {
        let Self { key, what, example, file, is_table, name, data } = self;
        let at = |inner: &str| format!("{key}.{inner}");
        match (file, data) {
            (Some(file), None) => {
                if name.is_some() {
                    let text = format!("{what} from a file has the file's name: leave this key out");
                    return Err((at("name"), text));
                }
                let key = if is_table { at("file") } else { key.into() };
                let data = fetch(&file).map_err(|text| (key.clone(), text))?;
                let before_line = format!("{file}:");
                Ok(Text { data, name: Some(file), key, before_line })
            }
            (None, Some(data)) => {
                let before_line = name.as_ref().map_or("line ".into(), |name| format!("{name}:"));
                Ok(Text { data, name, key: at("data"), before_line })
            }
            (Some(_), Some(_)) => {
                Err((at("file"), format!("{what} has a `file` or `data`: leave one of them out")))
            }
            (None, None) => {
                let text =
                    format!("needs the `file` of {what}, such as \"{example}\", or its text as `data`");
                Err((key.into(), text))
            }
        }
    }
}

impl Text {
    /// Returns whether the file's name says that it is CSV.
    pub(crate) fn is_csv(&self) -> bool {
        self.name.as_deref().is_some_and(is_csv)
    }

    /// Returns a problem of the text, at its key.
    pub(crate) fn refusal(&self, (line, text): Refusal) -> AtKey {
        (self.key.clone(), format!("{}{line}: {text}", self.before_line))
    }
}

/// Returns whether the name of a file says that it is CSV.
pub(crate) fn is_csv(name: &str) -> bool {
    name.to_lowercase().ends_with(".csv")
}

/// Returns at most so much of a line that a message stays readable.
pub(crate) fn shortened(line: &str) -> String {
    const MOST: usize = 40;
    let line = line.trim_end();
    if line.chars().count() <= MOST {
        line.into()
    } else {
        line.chars().take(MOST - 1).chain(['…']).collect()
    }
}

/// Returns the text without the byte order mark with which spreadsheets begin a file.
pub(crate) fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
