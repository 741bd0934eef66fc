//! Default values of parameters, for serde: `#[serde(default = "millis::<5>")]` is 5 ms.

use super::{AboveZero, Bitrate, Bytes, Duration, Packets, Positive, Probability, Weight};

/// Turns a switch on.
pub const fn on() -> bool {
    true
}

/// Returns N.
pub const fn number<const N: u32>() -> u32 {
    N
}

/// Returns N seconds.
pub const fn secs<const N: u64>() -> Duration {
    Duration::from_secs(N)
}

/// Returns N milliseconds.
pub const fn millis<const N: u64>() -> Duration {
    Duration::from_millis(N)
}

/// Returns N microseconds.
pub const fn micros<const N: u64>() -> Duration {
    Duration::from_nanos(1000 * N)
}

/// Returns N bytes.
pub const fn bytes<const N: u64>() -> Bytes {
    Bytes::new(N)
}

/// Returns N packets.
pub const fn packets<const N: u64>() -> Packets {
    Packets::new(N)
}

/// Returns N bits per second.
pub fn bps<const N: u64>() -> Bitrate {
    Bitrate::from_bps(N).expect("a rate above zero")
}

/// Returns the number of at least 1 that is N.
pub const fn at_least_one<const N: u32>() -> Positive {
    Positive::literal(N as f64)
}

/// Returns the number above 0 that is N.
pub const fn above_zero<const N: u32>() -> AboveZero {
    AboveZero::literal(N as f64)
}

/// Returns the probability N / OF.
pub const fn probability<const N: u32, const OF: u32>() -> Probability {
    Probability::literal(N as f64 / OF as f64)
}

/// Returns the weight N / OF.
pub const fn weight<const N: u32, const OF: u32>() -> Weight {
    Weight::literal(N as f64 / OF as f64)
}
