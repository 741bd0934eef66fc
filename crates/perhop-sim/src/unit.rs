//! The units of measures.

/// A measure's unit in dictionaries and data frames. Tables show Mbit/s, ms and %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits a second.
    BitsPerSecond,
    /// Seconds.
    Seconds,
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// A part of a whole, from 0 to 1.
    Fraction,
    /// Seconds in an hour.
    SecondsPerHour,
    /// None: ratios and counts of events.
    None,
}

impl Unit {
    /// The unit's symbol.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::BitsPerSecond => "bit/s",
            Self::Seconds => "s",
            Self::Packets => "packets",
            Self::Bytes => "B",
            Self::Fraction => "fraction",
            Self::SecondsPerHour => "s/h",
            Self::None => "",
        }
    }
}
