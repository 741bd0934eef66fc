//! UDP at a constant bit rate.

use perhop_core::units::UnitError;
use perhop_core::{Bitrate, Bytes, Context, Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SenderStatistics, Transmit};

/// How a UDP source paces itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// One packet each packet time, at a constant bit rate.
    Cbr,
}

/// A source over UDP that does not react to losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UdpParams {
    /// How the source paces itself.
    pub udp: Pattern,
    /// Sending rate, IP headers included.
    pub rate: Bitrate,
    /// Packet size on the wire.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
    /// Each gap is drawn uniformly from within this fraction of the nominal gap, against phase effects.
    #[serde(default = "default_jitter")]
    pub jitter: Fraction,
}

/// A fraction in [0, 1].
pub type Fraction = perhop_core::Probability;

const fn default_packet() -> Bytes {
    Bytes::new(1000)
}

fn default_jitter() -> Fraction {
    Fraction::new(0.01).expect("a fraction")
}

const MOST_PACKETS_PER_SECOND: u64 = 100_000_000;

impl UdpParams {
    /// Checks how the parameters fit together.
    ///
    /// # Errors
    /// The key that does not fit, and what would.
    pub fn check(&self) -> Result<(), (&'static str, UnitError)> {
        if self.packet.get() == 0 || self.packet.get() > 65_535 {
            return Err(("packet", UnitError::new("a packet has 1B to 65535B")));
        }
        let packets_per_second = self.rate.as_bps() / self.packet.bits();
        if packets_per_second > MOST_PACKETS_PER_SECOND {
            let text = format!("{packets_per_second} packets a second are beyond any source; lower the rate");
            return Err(("rate", UnitError::new(text)));
        }
        Ok(())
    }
}

/// Sends one packet each `packet * 8 / rate` seconds, whatever happens to them.
#[derive(Clone, Debug)]
pub struct CbrSender {
    size: u16,
    gap: Duration,
    spread: u64,
    next: Instant,
    left: Option<u64>,
    sequence: u32,
    statistics: SenderStatistics,
}

impl CbrSender {
    /// A source of these parameters, which ends after `volume` bytes if one is given.
    pub fn new(params: &UdpParams, volume: Option<Bytes>) -> Self {
        let nanos = u128::from(params.packet.bits()) * 1_000_000_000 / u128::from(params.rate.as_bps());
        let gap = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1));
        Self {
            size: params.packet.get() as u16,
            gap,
            spread: (gap.as_nanos() as f64 * params.jitter.get()) as u64,
            next: Instant::NEVER,
            left: volume.map(|volume| volume.get().div_ceil(params.packet.get())),
            sequence: 0,
            statistics: SenderStatistics::default(),
        }
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.next = now;
    }

    pub(super) fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        if cx.now < self.next {
            return None;
        }
        if self.left == Some(0) {
            self.stop();
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        self.statistics.sent += 1;
        let gap = if self.spread == 0 {
            self.gap
        } else {
            let drawn = cx.rng.up_to(2 * self.spread);
            Duration::from_nanos(self.gap.as_nanos() + drawn - self.spread)
        };
        self.next = cx.now + gap;
        Some(Transmit { sequence, size: self.size })
    }

    pub(super) fn wake(&self) -> Instant {
        self.next
    }

    pub(super) fn stop(&mut self) {
        self.next = Instant::NEVER;
    }

    pub(super) fn statistics(&self) -> &SenderStatistics {
        &self.statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_core::Rng;

    #[test]
    fn keeps_its_rate_and_ends_after_its_volume() {
        let params: UdpParams =
            serde_json::from_str(r#"{"udp": "cbr", "rate": "8Mbps", "packet": "1000B", "jitter": 0.1}"#)
                .unwrap();
        let mut sender = CbrSender::new(&params, Some(Bytes::new(1_000_000)));
        let mut rng = Rng::stream(1, "cbr");
        sender.start(Instant::ZERO);
        let (mut last, mut sent) = (Instant::ZERO, 0);
        while sender.wake() != Instant::NEVER {
            let now = sender.wake();
            let gap = now.since(last).as_nanos();
            assert!(sent == 0 || (900_000..=1_100_000).contains(&gap), "{gap}");
            last = now;
            sent += usize::from(sender.transmit(&mut Context { now, rng: &mut rng }).is_some());
        }
        assert_eq!(sent, 1000);
        assert!((last.as_secs_f64() - 1.0).abs() < 0.01, "{last:?}");
    }
}
