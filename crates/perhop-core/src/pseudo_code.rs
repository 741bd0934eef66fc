//! Rules of blocks as pseudo-code, which explain a verdict to a user: each block
//! [declares](crate::Block::pseudo_code) its own.

use crate::Reason;

/// A rule as pseudo-code, and the lines that act for each reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PseudoCode {
    /// The lines, indented by their level.
    pub lines: &'static [&'static str],
    /// The lines that act for a reason, from 0.
    pub acts: &'static [(Reason, &'static [usize])],
}

/// Returns the value that a block noted under this name on its way to a verdict, if it noted one.
pub type Noted<'a> = &'a dyn Fn(&str) -> Option<f64>;

impl PseudoCode {
    /// Returns the lines that act for this reason, from 0.
    pub fn decisive(&self, reason: Reason) -> &'static [usize] {
        self.acts.iter().find(|(acts, _)| *acts == reason).map_or(&[], |(_, lines)| lines)
    }
}

#[cfg(test)]
mod tests {
    use crate::{BlockInfo, Reason, Role, registry};

    /// Checks of every registered block that lines which act exist, whatever was noted; returns its number of
    /// lines.
    fn lines(block: &BlockInfo) -> Option<usize> {
        let noted = [None, Some(0.0), Some(1.0)];
        let codes: Vec<_> = noted
            .into_iter()
            .flat_map(|value| Reason::ALL.map(|reason| (block.pseudo_code)(reason, &|_| value)))
            .collect();
        for code in codes.iter().flatten() {
            assert!(code.acts.iter().flat_map(|(_, lines)| *lines).all(|line| *line < code.lines.len()));
            for (reason, lines) in code.acts {
                assert!(!lines.is_empty() && code.decisive(*reason) == *lines, "{}: {reason:?}", block.name);
            }
        }
        codes[0].map(|code| code.lines.len())
    }

    #[test]
    fn every_aqm_has_its_rule_as_pseudo_code() {
        for block in registry() {
            let lines = lines(&block);
            assert!(
                block.role != Role::Aqm || lines.is_some_and(|lines| lines > 0),
                "{} has none",
                block.name
            );
        }
    }
}
