//! The token bucket of schedulers: it may fall below zero, and says when it has recovered.

use crate::{Bitrate, Bytes, Duration, Header, Instant};

const SCALE: i128 = 1_000_000_000;

/// Tokens in bits × 10⁹, so that no rounding accumulates; below zero after a packet larger than these.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    rate: i128,
    depth: i128,
    tokens: i128,
    filled: Instant,
}

fn price(packet: &Header) -> i128 {
    i128::from(packet.size) * 8 * SCALE
}

impl Bucket {
    /// A full bucket of this depth.
    pub(super) fn new(rate: Bitrate, burst: Bytes) -> Self {
        let depth = i128::from(burst.get()) * 8 * SCALE;
        Self { rate: i128::from(rate.as_bps()), depth, tokens: depth, filled: Instant::ZERO }
    }

    /// Tokens arrive at this rate from now on, up to this depth; those that are there stay if there is room.
    pub(super) fn retune(&mut self, rate: Bitrate, burst: Bytes, now: Instant) {
        let Self { rate, depth, .. } = Self::new(rate, burst);
        if (rate, depth) != (self.rate, self.depth) {
            self.fill(now);
            (self.rate, self.depth) = (rate, depth);
            self.tokens = self.tokens.min(depth);
        }
    }

    #[inline]
    pub(super) fn charge(&mut self, packet: &Header) {
        self.tokens -= price(packet);
    }

    /// Adds the tokens that have arrived, up to the depth.
    #[inline]
    pub(super) fn fill(&mut self, now: Instant) {
        let elapsed = i128::from(now.since(self.filled).as_nanos());
        self.filled = now;
        self.tokens = (self.tokens + elapsed * self.rate).min(self.depth);
    }

    /// Whether a packet's tokens are there now.
    #[inline]
    pub(super) fn holds(&mut self, packet: &Header, now: Instant) -> bool {
        self.fill(now);
        price(packet) <= self.tokens
    }

    /// Whether a packet's tokens are there, or, for a packet larger than the bucket, whether it is full.
    #[inline]
    pub(super) fn check(&mut self, packet: &Header, now: Instant) -> Result<(), Instant> {
        self.fill(now);
        let needed = price(packet).min(self.depth);
        if needed <= self.tokens { Ok(()) } else { Err(self.reaches(needed)) }
    }

    /// When it holds so many tokens.
    fn reaches(&self, tokens: i128) -> Instant {
        let missing = (tokens - self.tokens).max(0);
        let wait = (missing + self.rate - 1) / self.rate;
        self.filled + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }
}
