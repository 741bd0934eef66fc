//! The token bucket of `sch_htb`, which counts its tokens in time.

use crate::{Bitrate, Bytes, Duration, Header, Instant};

/// A bucket's debt is less than what arrives in this time (`mbuffer` in Linux).
const LONGEST_DEBT: i64 = Duration::from_secs(60).as_nanos().cast_signed();

/// Tokens in nanoseconds: how long the rate takes to send what they allow. They are below zero after a packet
/// that is larger than this.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    pace: Pace,
    depth: i64,
    tokens: i64,
    filled: Instant,
}

impl Bucket {
    /// A full bucket of this depth.
    pub(super) fn new(rate: Bitrate, burst: Bytes) -> Self {
        let depth = u128::from(burst.get()) * 8 * u128::from(SECOND) / u128::from(rate.as_bps());
        let depth = i64::try_from(depth).unwrap_or(i64::MAX);
        Self { pace: Pace::new(rate), depth, tokens: depth, filled: Instant::ZERO }
    }

    /// Packets are charged at this rate from now on, and the bucket has this depth. The time that its tokens
    /// are worth stays if there is room.
    pub(super) fn retune(&mut self, rate: Bitrate, burst: Bytes, now: Instant) {
        let Self { pace, depth, .. } = Self::new(rate, burst);
        if depth != self.depth {
            self.fill(now);
            (self.depth, self.tokens) = (depth, self.tokens.min(depth));
        }
        self.pace = pace;
    }

    /// Adds the tokens that have arrived, up to the depth.
    #[inline]
    pub(super) fn fill(&mut self, now: Instant) {
        let elapsed = i64::try_from(now.since(self.filled).as_nanos()).unwrap_or(i64::MAX);
        self.filled = now;
        self.tokens = self.tokens.saturating_add(elapsed).min(self.depth);
    }

    #[inline]
    pub(super) fn charge(&mut self, packet: &Header) {
        self.tokens = (self.tokens - self.pace.time_of(packet)).max(1 - LONGEST_DEBT);
    }

    /// Whether it has no debt.
    pub(super) fn is_solvent(&self) -> bool {
        self.tokens >= 0
    }

    /// When it has no debt, or when it last was [filled](Self::fill) if it has none.
    pub(super) fn solvent_at(&self) -> Instant {
        self.filled + Duration::from_nanos(self.tokens.min(0).unsigned_abs())
    }
}

const SECOND: u64 = Duration::from_secs(1).as_nanos();

/// The time that a rate takes for a byte, as Linux has it (`psched_ratecfg`): `factor` / 2^`shift`
/// nanoseconds, rounded down to 32 significant bits.
#[derive(Clone, Copy, Debug)]
struct Pace {
    factor: u64,
    shift: u32,
}

impl Pace {
    fn new(rate: Bitrate) -> Self {
        // A second in 2^shift parts of a nanosecond must fit into 64 bits.
        let most = SECOND.leading_zeros();
        let factor = |shift: u32| u128::from(SECOND << shift) * 8 / u128::from(rate.as_bps());
        let shift = (0..most).find(|&shift| factor(shift) >= 1 << 31).unwrap_or(most);
        Self { factor: u64::try_from(factor(shift)).unwrap_or(u64::MAX), shift }
    }

    /// The time of a packet in whole nanoseconds, rounded down.
    #[inline]
    fn time_of(self, packet: &Header) -> i64 {
        ((u64::from(packet.size) * self.factor) >> self.shift).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowId;

    fn time_of(rate: &str, size: u16) -> i64 {
        Pace::new(rate.parse().unwrap()).time_of(&Header::new(FlowId(0), size))
    }

    #[test]
    fn the_time_of_a_packet_is_that_of_linux() {
        // 8000 ns a byte, which 32 bits hold exactly.
        assert_eq!(time_of("1Mbps", 1500), 12_000_000);
        // 200 bytes at 6 Mbit/s take 266 666 2/3 ns.
        assert_eq!(time_of("6Mbps", 200), 266_666);
        // 1333 1/3 ns a byte are 2 796 202 666 2/3 / 2^21, rounded down: 1500 bytes take less than 2 ms.
        assert_eq!(time_of("6Mbps", 1500), 1_999_999);
        // 64 bytes at 100 Gbit/s take 5.12 ns.
        assert_eq!(time_of("100Gbps", 64), 5);
        assert_eq!(time_of("1bps", u16::MAX), 65_535 * 8 * 1_000_000_000);
    }

    #[test]
    fn the_debt_is_less_than_a_minute() {
        let mut bucket = Bucket::new("1kbps".parse().unwrap(), Bytes::new(0));
        (0..10).for_each(|_| bucket.charge(&Header::new(FlowId(0), 1000)));
        assert_eq!(bucket.solvent_at(), Instant::from_nanos(59_999_999_999));
    }

    #[test]
    fn tokens_keep_their_time_at_another_rate() {
        // 1000 bytes of debt at 1 Mbit/s are 8 ms, of which 2 have gone by.
        let mut bucket = Bucket::new("1Mbps".parse().unwrap(), Bytes::new(0));
        bucket.charge(&Header::new(FlowId(0), 1000));
        bucket.retune("2Mbps".parse().unwrap(), Bytes::new(500), Instant::from_nanos(2_000_000));
        assert_eq!(bucket.solvent_at(), Instant::from_nanos(8_000_000));
        bucket.fill(Instant::from_nanos(99_000_000));
        assert_eq!(bucket.tokens, 2_000_000);
    }
}
