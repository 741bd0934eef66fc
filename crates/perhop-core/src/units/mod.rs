//! Quantities as types, and the one place where their text is read.
//!
//! Text is parsed exactly, without floating point, in the form that users of the field write: `20Mbps`,
//! `48ms`, `868p`, `40kB` (k, M and G are powers of 1000), or `20 Mbps` with one space. Units that tables
//! print are read, too: `20 Mbit/s`, `50 µs`, `868 packets`. Text that could mean two things (`20mbps`,
//! `40KB`) is refused. The patterns of the JSON Schema are beside the parsers and accept the same forms.

mod curve;
pub mod defaults;
mod number;
#[cfg(test)]
mod tests;
mod text;
mod thresholds;
mod time;

use std::fmt;
use std::str::FromStr;

pub use self::curve::{DropCurve, Points};
pub use self::number::{AboveZero, Load, Positive, Probability, Weight};
use self::text::{COUNT, SIZE};
pub use self::text::{TIME, UnitError, parts, require, split_key};
pub(crate) use self::text::{
    deserialize_text, fixed, format_scaled, keeps, parse_scaled, text_serde, text_unit,
};
pub use self::thresholds::Thresholds;
pub use self::time::{Duration, Instant};

/// A data rate in bits per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bitrate(u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A number of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packets(u64);

/// How often something happens, such as `40/s`; in thousandths of an event in an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frequency(u64);

/// How a queue is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// By the number of packets waiting.
    Packets,
    /// By the bytes waiting.
    Bytes,
}

/// The room in a queue, in packets (`868p`) or in bytes (`500kB`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Depth {
    /// At most this many packets wait.
    Packets(u64),
    /// At most this many bytes wait.
    Bytes(u64),
}

/// A queue's limit as a scenario writes it: a [`Depth`], or a time (`50ms`), which means the bytes that the
/// link sends in that time at its `rate`. The scenario's reader converts times to bytes, so that blocks only
/// see a [`Depth`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// In packets or bytes.
    Depth(Depth),
    /// As a time.
    Time(Duration),
}

impl Bitrate {
    /// The highest rate there is: no limit.
    pub const MAX: Self = Self(u64::MAX);

    /// A rate of `bps` bits per second.
    ///
    /// # Errors
    /// A rate of zero is refused.
    pub fn from_bps(bps: u64) -> Result<Self, UnitError> {
        if bps == 0 { Err(UnitError::new("a rate must be above zero")) } else { Ok(Self(bps)) }
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The whole bytes that this rate sends in `time`.
    pub fn bytes_in(self, time: Duration) -> Bytes {
        const BITS_IN_A_BYTE: u128 = 8_000_000_000;
        let bytes = u128::from(self.0) * u128::from(time.as_nanos()) / BITS_IN_A_BYTE;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// How long `size` takes at this rate, rounded down to the nanosecond.
    #[inline]
    pub fn time_of(self, size: Bytes) -> Duration {
        const NANOS_BY_BYTE: u64 = 8_000_000_000;
        if let Some(nanos) = size.0.checked_mul(NANOS_BY_BYTE) {
            return Duration::from_nanos(nanos / self.0);
        }
        let nanos = u128::from(size.0) * u128::from(NANOS_BY_BYTE) / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// A size of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Packets {
    /// `count` packets.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number of packets.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Frequency {
    /// Events in a second.
    pub fn per_second(self) -> f64 {
        self.0 as f64 / 3_600_000.0
    }
}

impl FromStr for Depth {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if let Ok(packets) = text.parse::<Packets>() {
            return Ok(Self::Packets(packets.get()));
        }
        text.parse::<Bytes>().map(|bytes| Self::Bytes(bytes.get())).map_err(|problem| {
            if text.ends_with('B') {
                return problem;
            }
            UnitError::new(format!(
                "`{text}` is not a queue size; write whole packets such as 868p or bytes such as 500kB"
            ))
        })
    }
}

impl FromStr for Limit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        if let Ok(time) = text.parse() {
            return Ok(Self::Time(time));
        }
        if text.to_ascii_lowercase().ends_with("bdp") {
            return Err(UnitError::new(format!(
                "`{text}`: a bandwidth-delay product needs a round-trip time; write it as this time: 40ms is one for a round trip of 40 ms"
            )));
        }
        text.parse().map(Self::Depth).map_err(|problem: UnitError| {
            UnitError::new(format!("{problem}, or a time at the link's rate such as 50ms"))
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth(depth) => depth.fmt(f),
            Self::Time(time) => time.fmt(f),
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => Packets(*packets).fmt(f),
            Self::Bytes(bytes) => Bytes(*bytes).fmt(f),
        }
    }
}

text_unit!(
    Bytes,
    "size",
    format!("^{SIZE}$"),
    "40kB",
    [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)]
);
text_unit!(Packets, "number of packets", format!("^{COUNT}$"), "868p", [("p", 1)]);
text_serde!(Frequency, "text with its unit", r"^([0-9]+(\.[0-9]+)?|\.[0-9]+) ?(/s|/min|/h)$", "40/s");
text_serde!(Depth, "text with its unit", format!("^({COUNT}|{SIZE})$"), "868p");
text_serde!(Limit, "text with its unit", format!("^({COUNT}|{SIZE}|{TIME})$"), "868p");
text_serde!(
    Bitrate,
    "text with its unit",
    r"^([0-9]+(\.[0-9]+)?|\.[0-9]+) ?(bps|kbps|Mbps|Gbps|bit/s|kbit/s|Mbit/s|Gbit/s)$",
    "20Mbps"
);

const FREQUENCIES: [(&str, u64); 3] = [("/s", 3_600_000), ("/min", 60_000), ("/h", 1_000)];

impl FromStr for Frequency {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, "a frequency such as 40/s", &FREQUENCIES).map(Self)
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match FREQUENCIES.iter().find(|(_, scale)| self.0.is_multiple_of(*scale)) {
            Some((suffix, scale)) => write!(f, "{}{suffix}", self.0 / scale),
            None => write!(f, "{}.{:03}/h", self.0 / 1_000, self.0 % 1_000),
        }
    }
}

const RATES: [(&str, u64); 4] = [("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)];

impl FromStr for Bitrate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bps =
            parse_scaled(text, "a rate such as 20Mbps", &RATES).or_else(|problem| match meant(text) {
                Some(rate) => parse_scaled(text, &rate, &RATES),
                None => Err(problem),
            })?;
        Self::from_bps(bps).map_err(|problem| UnitError::new(format!("`{text}`: {problem}, such as 20Mbps")))
    }
}

/// What a rate means that is written as tc and routers have it (`10mbit`, `1G`), or with a decimal comma;
/// none where it could mean two things: `mbps` is megabytes to tc, `1,000` is one or a thousand.
fn meant(text: &str) -> Option<String> {
    let (number, unit) = text::split(text);
    let number = match number.split_once(',') {
        Some((_, fraction)) if fraction.len() == 3 || number.contains('.') => return None,
        Some((whole, fraction)) => format!("{whole}.{fraction}"),
        None => number.to_owned(),
    };
    let unit = unit.trim_start();
    let known = unit.strip_suffix("/s").unwrap_or(unit);
    let lower = known.to_ascii_lowercase();
    let prefix = ["bits", "bit"].iter().find_map(|bits| lower.strip_suffix(bits));
    let prefix =
        prefix.or_else(|| known.strip_suffix('b')).or_else(|| unit.strip_suffix("bps")).unwrap_or(known);
    let scale = match prefix {
        "" if !unit.is_empty() => "",
        "k" | "K" => "k",
        "m" | "M" if !unit.ends_with("bps") || prefix == "M" => "M",
        "g" | "G" => "G",
        _ => return None,
    };
    let rate = format!("{number}{scale}bps");
    parse_scaled(&rate, "", &RATES).is_ok().then_some(rate)
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format_scaled(f, self.0, &RATES)
    }
}
