//! Where a mechanism comes from: what it follows, how old it is, and Linux's version of it.

use std::fmt;

use serde::{Serialize, Serializer};

/// Where a mechanism comes from. Made by [`paper`](Self::paper) or [`published`](Self::published).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The group of mechanisms of its age.
    pub era: Era,
    /// The year in which it was published first, as a paper, draft, standard or program.
    pub year: u16,
    /// What the implementation follows: the paper and figure, the RFC and section, the draft and its
    /// revision, or the program.
    pub source: &'static str,
    /// The implementation in Linux, if there is one.
    pub linux: Option<InLinux>,
}

/// A mechanism of Linux: a queueing discipline or a congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct InLinux {
    /// Linux's name for it.
    pub name: &'static str,
    /// The first version with it; `None` if it is in no released kernel, but in a patched one.
    pub since: Option<&'static str>,
}

/// The age of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// Proposed by the papers whose results perhop reproduces, or by their authors.
    Papers,
    /// Published before [`TODAY`], and not by these papers: what they build on and compare with.
    Classic,
    /// Published since [`TODAY`].
    Today,
}

/// The year from which on mechanisms are today's.
pub const TODAY: u16 = 2008;

impl Origin {
    /// Returns the origin of a mechanism that a reproduced paper or its authors propose.
    #[must_use]
    pub const fn paper(year: u16, source: &'static str) -> Self {
        Self { era: Era::Papers, year, source, linux: None }
    }

    /// Returns the origin of any other mechanism.
    #[must_use]
    pub const fn published(year: u16, source: &'static str) -> Self {
        let era = if year < TODAY { Era::Classic } else { Era::Today };
        Self { era, year, source, linux: None }
    }

    /// Adds the name under which Linux has the mechanism since this version.
    #[must_use]
    pub const fn in_linux(self, name: &'static str, since: &'static str) -> Self {
        Self { linux: Some(InLinux { name, since: Some(since) }), ..self }
    }

    /// Adds the name under which a patched Linux has the mechanism.
    #[must_use]
    pub const fn in_patched_linux(self, name: &'static str) -> Self {
        Self { linux: Some(InLinux { name, since: None }), ..self }
    }
}

impl Era {
    /// All eras, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Papers, Self::Classic, Self::Today];

    /// Returns the name of the era in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Papers => "papers",
            Self::Classic => "classic",
            Self::Today => "today",
        }
    }
}

impl Serialize for Era {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// As in descriptions: source, age and year, Linux.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = match self.era {
            Era::Papers => "a reproduced paper's",
            Era::Classic => "classic",
            Era::Today => "today's",
        };
        write!(f, "{} ({age}, {})", self.source, self.year)?;
        match self.linux {
            None => Ok(()),
            Some(InLinux { name, since: Some(since) }) => write!(f, "; `{name}` in Linux since {since}"),
            Some(InLinux { name, since: None }) => write!(f, "; `{name}` in a patched Linux"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_year_says_what_is_of_today_unless_a_reproduced_paper_proposes_it() {
        let eras = [
            Origin::published(TODAY - 1, "").era,
            Origin::published(TODAY, "").era,
            Origin::paper(TODAY, "").era,
        ];
        assert_eq!(eras, [Era::Classic, Era::Today, Era::Papers]);
        assert!(Era::ALL.is_sorted());
    }

    #[test]
    fn an_origin_in_words() {
        let plain = Origin::published(1995, "RFC 1");
        assert_eq!(plain.to_string(), "RFC 1 (classic, 1995)");
        assert_eq!(
            plain.in_linux("one", "2.2").to_string(),
            "RFC 1 (classic, 1995); `one` in Linux since 2.2"
        );
        let patched = Origin::paper(1999, "Table 1").in_patched_linux("two");
        assert_eq!(patched.to_string(), "Table 1 (a reproduced paper's, 1999); `two` in a patched Linux");
    }
}
