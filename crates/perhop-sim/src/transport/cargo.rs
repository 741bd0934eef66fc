//! What the packets of a flow carry besides their number: nothing, what datagrams do, or what selective acknowledgements do.

use perhop_core::Instant;

use super::datagram::Datagrams;
use super::tcp::Answers;
use super::transit::TransitMeter;

/// What the packets of one flow carry while they are on their way.
///
/// Nothing, for TCP without selective acknowledgements: it pays for a word and no more.
#[derive(Clone, Debug)]
pub struct Cargo(Option<Box<Kind>>);

#[derive(Clone, Debug)]
enum Kind {
    Datagrams(Datagrams),
    Answers(Answers),
}

impl Cargo {
    /// For packets that carry nothing besides their number.
    pub const NONE: Self = Self(None);

    /// For datagrams. Transit times are measured over the packets that arrive within `window`.
    pub fn datagrams(window: (Instant, Instant)) -> Self {
        Self(Some(Box::new(Kind::Datagrams(Datagrams::new(window)))))
    }

    /// For acknowledgements that tell what the receiver holds.
    pub fn answers() -> Self {
        Self(Some(Box::new(Kind::Answers(Answers::default()))))
    }

    pub(crate) fn of_datagrams(&mut self) -> &mut Datagrams {
        match self.0.as_deref_mut() {
            Some(Kind::Datagrams(datagrams)) => datagrams,
            _ => unreachable!("flows of datagrams have it"),
        }
    }

    pub(crate) fn of_answers(&mut self) -> &mut Answers {
        match self.0.as_deref_mut() {
            Some(Kind::Answers(answers)) => answers,
            _ => unreachable!("flows with selective acknowledgements have it"),
        }
    }

    /// The segment that an acknowledgement of this number, which is on its way, asks for next.
    pub(crate) fn expected(&self, number: u32) -> u32 {
        match self.0.as_deref() {
            Some(Kind::Answers(answers)) => answers.expected(number),
            Some(Kind::Datagrams(_)) | None => number,
        }
    }

    /// How long packets took, where that is measured.
    pub fn transit(&self) -> Option<&TransitMeter> {
        match self.0.as_deref() {
            Some(Kind::Datagrams(datagrams)) => Some(datagrams.transit()),
            Some(Kind::Answers(_)) | None => None,
        }
    }

    /// A packet was dropped on its way.
    pub fn lose(&mut self, number: u32, is_data: bool) {
        match self.0.as_deref_mut() {
            Some(Kind::Datagrams(datagrams)) => datagrams.lose(number, is_data),
            Some(Kind::Answers(answers)) if !is_data => answers.lose(number),
            Some(Kind::Answers(_)) | None => {}
        }
    }
}
