//! What sources that set their own pace have in common: gaps, volumes, and what their parameters may be.

use perhop_core::units::UnitError;
use perhop_core::{Bitrate, Bytes, Duration, Rng};

/// A fraction in [0, 1].
pub type Fraction = perhop_core::Probability;

pub(super) const fn default_packet() -> Bytes {
    Bytes::new(1000)
}

pub(super) const fn default_ack() -> Bytes {
    Bytes::new(40)
}

pub(super) fn default_jitter() -> Fraction {
    Fraction::new(0.01).expect("a fraction")
}

/// A gap drawn uniformly from within this fraction of the nominal one.
pub(super) fn jittered(gap: Duration, jitter: Fraction, rng: &mut Rng) -> Duration {
    let spread = (gap.as_nanos() as f64 * jitter.get()) as u64;
    if spread == 0 {
        return gap;
    }
    let drawn = rng.up_to(2 * spread);
    Duration::from_nanos(gap.as_nanos() + drawn - spread)
}

/// How many packets of this size a volume takes.
pub(super) fn packets(volume: Option<Bytes>, packet: Bytes) -> Option<u64> {
    volume.map(|volume| volume.get().div_ceil(packet.get()))
}

/// More packets a second are beyond any source.
pub(super) const MOST_PACKETS_PER_SECOND: u64 = 100_000_000;

/// A key and what is wrong there.
pub(super) type Refusal = (&'static str, UnitError);

/// Refuses a size that no packet can have.
pub(super) fn check_size(key: &'static str, size: Bytes) -> Result<(), Refusal> {
    if size.get() == 0 || size.get() > 65_535 {
        return Err((key, UnitError::new("a packet has 1B to 65535B")));
    }
    Ok(())
}

/// Refuses a rate at which no source can send packets of this size.
pub(super) fn check_rate(key: &'static str, rate: Bitrate, packet: Bytes) -> Result<(), Refusal> {
    let packets_per_second = rate.as_bps() / packet.bits();
    if packets_per_second > MOST_PACKETS_PER_SECOND {
        let text = format!("{packets_per_second} packets a second are beyond any source; lower the rate");
        return Err((key, UnitError::new(text)));
    }
    Ok(())
}
