//! Bounds of text, in front of every reader: a text that nests too deep, or has a part with too many parts of
//! its own, is refused before anything is made of it. Parsers and what follows them then take time in
//! proportion to its size, and never run out of stack.

use std::fmt;

/// How deep tables, lists and elements may lie within each other.
pub const DEEPEST: usize = 80;
/// The most attributes of an element in XML: parsers compare each with all others.
const MOST_ATTRIBUTES: usize = 200;

/// The syntax of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// TOML 1.0.
    Toml,
    /// JSON (RFC 8259).
    Json,
    /// XML 1.0.
    Xml,
}

/// A bound that a text exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The number of the line, from 1.
    pub line: usize,
    /// Which bound the text exceeds, in words.
    pub text: String,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

impl Syntax {
    /// Returns the syntax of this name.
    pub fn of(name: &str) -> Option<Self> {
        [("toml", Self::Toml), ("json", Self::Json), ("xml", Self::Xml)]
            .into_iter()
            .find_map(|(known, syntax)| (known == name).then_some(syntax))
    }

    /// Looks at a text once, from its beginning to its end. Text that is not of this syntax may pass.
    ///
    /// # Errors
    /// It exceeds the bounds.
    pub fn check(self, text: &str) -> Result<(), Excess> {
        let place = match self {
            Self::Toml => toml(text.as_bytes()),
            Self::Json => json(text.as_bytes()),
            Self::Xml => xml(text.as_bytes()),
        };
        place.map_or(Ok(()), |(place, what)| {
            let before = String::from_utf8_lossy(&text.as_bytes()[..place]);
            Err(Excess { line: before.matches('\n').count() + 1, text: what })
        })
    }
}

/// Where a text exceeds its bounds, and what it does there.
type Found = Option<(usize, String)>;

fn too_deep(what: &str) -> String {
    format!("{what} lie more than {DEEPEST} deep within each other")
}

/// How deep a place in TOML lies: within the table of a header, brackets, and the parts of a key, each of
/// which is a table.
#[derive(Default)]
struct Nesting {
    /// How many levels each open bracket adds, with the parts of its key.
    open: Vec<usize>,
    /// All of these, and those of the header.
    depth: usize,
    /// Dots of the present key or value.
    dots: usize,
    /// Levels of the header's table.
    header: usize,
    /// The present line is a header.
    in_header: bool,
    /// Nothing of the present line came yet.
    at_start: bool,
}

impl Nesting {
    fn open(&mut self) {
        self.in_header |= self.open.is_empty() && self.at_start;
        if self.in_header {
            self.header = 0;
        }
        let levels = 1 + self.dots;
        self.dots = 0;
        self.open.push(levels);
        self.depth += levels;
    }

    fn close(&mut self) {
        self.depth -= self.open.pop().unwrap_or(0);
        if self.in_header && self.open.is_empty() {
            (self.header, self.dots) = (self.dots + 1, 0);
        }
    }

    fn end_line(&mut self) {
        if self.in_header {
            // What a header leaves open is no TOML.
            self.open.clear();
            self.depth = 0;
        }
        (self.dots, self.in_header, self.at_start) = (0, false, true);
    }

    fn is_too_deep(&self) -> bool {
        self.header + self.depth + self.dots > DEEPEST
    }
}

fn toml(text: &[u8]) -> Found {
    let mut nesting = Nesting { at_start: true, ..Nesting::default() };
    let mut place = 0;
    while let Some(&byte) = text.get(place) {
        let begun = place;
        place += 1;
        match byte {
            b'#' => place = behind(text, place, b"\n").saturating_sub(1).max(place),
            b'"' | b'\'' => place = behind_toml_string(text, begun),
            b'[' | b'{' => nesting.open(),
            b']' | b'}' => nesting.close(),
            b'.' => nesting.dots += 1,
            b',' => nesting.dots = 0,
            b'\n' => nesting.end_line(),
            _ => {}
        }
        if nesting.is_too_deep() {
            return Some((begun, too_deep("tables and lists")));
        }
        nesting.at_start &= matches!(byte, b'\n' | b'\r' | b' ' | b'\t');
    }
    None
}

/// Returns the place behind the string that begins here.
fn behind_toml_string(text: &[u8], begun: usize) -> usize {
    let quote = text[begun];
    let (mut place, long) = match text[begun..] {
        [_, second, third, ..] if second == quote && third == quote => (begun + 3, true),
        _ => (begun + 1, false),
    };
    while let Some(&byte) = text.get(place) {
        place += 1;
        match byte {
            b'\\' if quote == b'"' => place += 1,
            b'\n' if !long => return place - 1,
            _ if byte != quote => {}
            _ if !long => return place,
            _ if text[place..].starts_with(&[quote; 2]) => return place + 2,
            _ => {}
        }
    }
    text.len()
}

fn json(text: &[u8]) -> Found {
    let (mut depth, mut place) = (0_usize, 0);
    while let Some(&byte) = text.get(place) {
        place += 1;
        match byte {
            b'"' => place = behind_json_string(text, place),
            b'[' | b'{' => {
                depth += 1;
                if depth > DEEPEST {
                    return Some((place - 1, too_deep("objects and lists")));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

fn behind_json_string(text: &[u8], mut place: usize) -> usize {
    while let Some(&byte) = text.get(place) {
        place += 1;
        match byte {
            b'\\' => place += 1,
            b'"' => return place,
            _ => {}
        }
    }
    text.len()
}

fn xml(text: &[u8]) -> Found {
    const SKIPPED: [(&[u8], &[u8]); 3] = [(b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>")];
    let (mut depth, mut place) = (0_usize, 0);
    while place < text.len() {
        let rest = &text[place..];
        if let Some((begin, end)) = SKIPPED.into_iter().find(|(begin, _)| rest.starts_with(begin)) {
            place = behind(text, place + begin.len(), end);
        } else if rest.starts_with(b"</") {
            depth = depth.saturating_sub(1);
            place += 2;
        } else if rest[0] == b'<' {
            let (end, attributes, is_empty) = tag(text, place + 1);
            if attributes > MOST_ATTRIBUTES {
                return Some((place, format!("an element has more than {MOST_ATTRIBUTES} attributes")));
            }
            depth += usize::from(!is_empty);
            if depth > DEEPEST {
                return Some((place, too_deep("elements")));
            }
            place = end;
        } else {
            place += 1;
        }
    }
    None
}

/// Returns the place behind a tag, how many attributes it has, and whether its element is empty.
fn tag(text: &[u8], mut place: usize) -> (usize, usize, bool) {
    let mut attributes = 0;
    while let Some(&byte) = text.get(place) {
        place += 1;
        match byte {
            b'"' | b'\'' => {
                attributes += 1;
                place = behind(text, place, &[byte]);
            }
            b'>' => return (place, attributes, text[place - 2] == b'/'),
            b'<' => return (place - 1, attributes, false),
            _ => {}
        }
    }
    (place, attributes, false)
}

/// Returns the place behind the next occurrence of some bytes; the end, if there is none.
fn behind(text: &[u8], place: usize, wanted: &[u8]) -> usize {
    let rest = text.get(place..).unwrap_or_default();
    rest.windows(wanted.len())
        .position(|part| part == wanted)
        .map_or(text.len(), |found| place + found + wanted.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(syntax: Syntax, text: &str) -> Option<usize> {
        syntax.check(text).err().map(|excess| excess.line)
    }

    #[test]
    fn toml_is_as_deep_as_its_brackets_keys_and_headers_together() {
        let toml = |text: &str| line(Syntax::Toml, text);
        for (deep, refused) in [(80, None), (81, Some(2))] {
            let [open, close, key] = ["[", "]", "a."].map(|part| part.repeat(deep));
            let [tables, ends] = ["{ b = ", " }"].map(|part| part.repeat(deep));
            for text in [
                format!("x = 1\na = {open}{close}"),
                format!("x = 1\na = {tables}1{ends}"),
                format!("x = 1\n{key}a = 1"),
                format!("x = 1\n[{}a]", &key[2..]),
                format!("x = 1\na = {}{}a = 1{}", &tables[..6 * 40], "a.".repeat(deep - 40), &ends[..2 * 40]),
            ] {
                assert_eq!(toml(&text), refused, "{deep}: {text}");
            }
        }
        // A header's levels count for the keys below it, and end with the next header.
        let header = format!("[{}a]\n", "a.".repeat(49));
        let key = format!("{}a = 1\n", "b.".repeat(30));
        assert_eq!(toml(&format!("{header}{key}")), None);
        assert_eq!(toml(&format!("{header}b.{key}")), Some(2));
        assert_eq!(toml(&format!("{header}[c]\nb.{key}")), None);
    }

    #[test]
    fn what_stands_in_text_and_comments_is_not_deep() {
        let deep = "[".repeat(200);
        for text in [
            format!("a = \"{deep}\""),
            format!("a = \"\\\"{deep}\""),
            format!("a = '{deep}'"),
            format!("a = '''\n{deep}\n'''"),
            format!("a = \"\"\"\n\\\"\"\"{deep}\n\"\"\""),
            format!("a = 1 # {deep}"),
            format!("# \"{deep}\na = 1"),
        ] {
            assert_eq!(line(Syntax::Toml, &text), None, "{text}");
        }
        assert_eq!(line(Syntax::Toml, &format!("a = ''\nb = {deep}")), Some(2));
        assert_eq!(line(Syntax::Toml, &format!("# x\r\nb = {deep}")), Some(2));
        assert_eq!(line(Syntax::Json, &format!("[\"{deep}\", \"\\\"{deep}\"]")), None);
        assert_eq!(line(Syntax::Json, &format!("\n\n{deep}")), Some(3));
        assert_eq!(line(Syntax::Json, &"[],".repeat(200)), None);
        let deep = "<a>".repeat(200);
        for text in
            [format!("<!--{deep}-->"), format!("<a><![CDATA[{deep}]]></a>"), "<a b='<a>'/>".repeat(200)]
        {
            assert_eq!(line(Syntax::Xml, &text), None, "{text}");
        }
        assert_eq!(line(Syntax::Xml, &format!("<?xml?>\n{deep}")), Some(2));
        assert_eq!(line(Syntax::Xml, &"<a></a>".repeat(200)), None);
        let attributes = |count: usize| format!("<a{}/>", " b=\"1\"".repeat(count));
        assert_eq!([200, 201].map(|count| line(Syntax::Xml, &attributes(count))), [None, Some(1)]);
    }

    proptest! {
        #[test]
        fn any_text_passes_or_is_refused(text in r#"([\[\]{}<>/!?.,='"\\#a-]|\n|<!--|\[CDATA\[|'''|"""){0,200}"#) {
            for syntax in [Syntax::Toml, Syntax::Json, Syntax::Xml] {
                if let Err(excess) = syntax.check(&text) {
                    prop_assert!(excess.line <= text.matches('\n').count() + 1);
                }
            }
        }
    }
}
