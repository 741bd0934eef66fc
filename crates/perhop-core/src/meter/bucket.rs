//! Token buckets: the part that the meters of the RFCs are composed of.

use crate::{Bitrate, Bytes, Instant};

const SCALE: u64 = 1_000_000_000;

/// A token bucket that starts full. Tokens are in bit-nanoseconds per second (bits × 10⁹), so that no
/// rounding accumulates.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    depth: u64,
    tokens: u64,
}

/// The rate at which tokens arrive, in real time: all that is due arrives before a packet is measured.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    rate: u64,
    drawn: Instant,
}

impl Source {
    /// Tokens arrive at this rate from time zero on.
    pub(crate) fn new(rate: Bitrate) -> Self {
        Self { rate: rate.as_bps(), drawn: Instant::ZERO }
    }

    /// Goes on from where one of another rate was [drawn](Self::draw) last.
    pub(crate) fn take_over(&mut self, before: &Self) {
        self.drawn = before.drawn;
    }

    /// Returns the tokens that have arrived since the last call.
    #[inline]
    pub(crate) fn draw(&mut self, now: Instant) -> u64 {
        let elapsed = now.since(self.drawn).as_nanos();
        self.drawn = now;
        elapsed.saturating_mul(self.rate)
    }
}

impl Bucket {
    /// Returns a full bucket of this depth.
    pub(crate) fn new(depth: Bytes) -> Self {
        let depth = depth.get().saturating_mul(8 * SCALE);
        Self { depth, tokens: depth }
    }

    /// Takes over the tokens of `before`, up to this depth.
    pub(crate) fn take_over(&mut self, before: &Self) {
        self.tokens = before.tokens.min(self.depth);
    }

    /// Adds tokens and returns those that overflow it.
    #[inline]
    pub(crate) fn add(&mut self, tokens: u64) -> u64 {
        let room = self.depth - self.tokens;
        let added = tokens.min(room);
        self.tokens += added;
        tokens - added
    }

    /// Takes the tokens of a packet of `size` bytes if they are there, and returns whether they were; an
    /// exact fit is enough.
    #[inline]
    pub(crate) fn take_if_held(&mut self, size: u16) -> bool {
        let price = u64::from(size) * 8 * SCALE;
        let is_held = self.tokens >= price;
        if is_held {
            self.tokens -= price;
        }
        is_held
    }
}

#[cfg(test)]
impl Bucket {
    /// Returns the tokens in the bucket, in bytes.
    pub(crate) fn bytes(&self) -> f64 {
        self.tokens as f64 / (8 * SCALE) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_arrive_in_real_time_and_overflow_a_full_bucket() {
        // 8 Mbit/s are a byte each microsecond.
        let mut source = Source::new("8Mbps".parse().unwrap());
        let mut bucket = Bucket::new(Bytes::new(3000));
        assert!(bucket.take_if_held(3000));
        assert!(!bucket.take_if_held(1) && bucket.take_if_held(0));
        let mut add =
            |micros: u64, bucket: &mut Bucket| bucket.add(source.draw(Instant::from_nanos(micros * 1000)));
        assert_eq!((add(1000, &mut bucket), bucket.bytes()), (0, 1000.0));
        assert_eq!((add(3500, &mut bucket), bucket.bytes()), (500 * 8 * SCALE, 3000.0));
        assert!(!bucket.take_if_held(3001) && bucket.take_if_held(3000));
    }
}
