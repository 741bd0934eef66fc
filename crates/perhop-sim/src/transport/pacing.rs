//! What sources that set their own pace have in common: gaps, volumes, and what their parameters may be.

use perhop_core::units::{UnitError, require};
use perhop_core::{Bitrate, Bytes, Duration, Rng};

/// A fraction in [0, 1].
pub type Fraction = perhop_core::Probability;

/// Gaps between packets, drawn uniformly from within a fraction of a nominal one.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    jitter: Fraction,
    nominal: Duration,
    /// The fraction of the nominal gap, in nanoseconds.
    spread: u64,
}

impl Gaps {
    pub(super) fn new(nominal: Duration, jitter: Fraction) -> Self {
        let spread = (nominal.as_nanos() as f64 * jitter.get()) as u64;
        Self { jitter, nominal, spread }
    }

    pub(super) fn nominal(&self) -> Duration {
        self.nominal
    }

    /// Returns the shortest gap, a nanosecond at least.
    pub(super) fn least(&self) -> Duration {
        (self.nominal - Duration::from_nanos(self.spread)).max(Duration::from_nanos(1))
    }

    pub(super) fn set(&mut self, nominal: Duration) {
        *self = Self::new(nominal, self.jitter);
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> Duration {
        if self.spread == 0 {
            return self.nominal;
        }
        let drawn = rng.up_to(2 * self.spread);
        Duration::from_nanos(self.nominal.as_nanos() + drawn - self.spread)
    }
}

/// Returns how many packets of this size a volume takes.
pub(super) fn packets(volume: Option<Bytes>, packet: Bytes) -> Option<u64> {
    volume.map(|volume| volume.get().div_ceil(packet.get()))
}

/// More packets a second are beyond any source.
pub(super) const MOST_PACKETS_PER_SECOND: u64 = 100_000_000;

/// Refuses a size that no packet can have.
pub(super) fn check_size(key: &str, size: Bytes) -> Result<(), UnitError> {
    require((1..=65_535).contains(&size.get()), key, "a packet has 1B to 65535B")
}

/// Refuses a rate at which no source can send packets of this size.
pub(super) fn check_rate(key: &str, rate: Bitrate, packet: Bytes) -> Result<(), UnitError> {
    let each_second = rate.as_bps() / packet.bits();
    let why = format!("{each_second} packets a second are beyond any source; lower the rate");
    require(each_second <= MOST_PACKETS_PER_SECOND, key, why)
}
