//! How long a link needs for a packet.

use crate::{Bitrate, Duration, Instant};

/// Turns sizes into times; carries the rounding remainder, so that a busy link keeps its rate exactly.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: u64,
    busy_until: Instant,
    remainder: u64,
    /// The last size and its (nanoseconds, remainder): packets of one size follow each other.
    last: (u16, u64, u64),
}

impl Serializer {
    /// An idle link of this rate.
    pub fn new(rate: Bitrate) -> Self {
        Self { rate: rate.as_bps(), busy_until: Instant::ZERO, remainder: 0, last: (0, 0, 0) }
    }

    /// When everything is sent that was given to it.
    pub fn busy_until(&self) -> Instant {
        self.busy_until
    }

    /// Sends `size` bytes as soon as the link is free, from `now` on, and returns when it is free again.
    #[inline]
    pub fn transmit(&mut self, size: u16, now: Instant) -> Instant {
        if self.last.0 != size {
            self.resize(size);
        }
        let (_, mut nanos, remainder) = self.last;
        if remainder != 0 {
            self.remainder += remainder;
            if self.remainder >= self.rate {
                self.remainder -= self.rate;
                nanos += 1;
            }
        }
        self.busy_until = self.busy_until.max(now) + Duration::from_nanos(nanos);
        self.busy_until
    }

    /// The nanoseconds that a packet of the last one's size takes, if that is a whole number.
    pub fn exactly(&self) -> Option<u64> {
        let (_, nanos, remainder) = self.last;
        (remainder == 0).then_some(nanos)
    }

    #[cold]
    fn resize(&mut self, size: u16) {
        let bits = u128::from(size) * 8_000_000_000;
        self.last = (size, (bits / u128::from(self.rate)) as u64, (bits % u128::from(self.rate)) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_link_keeps_its_rate_exactly() {
        // 3 bit/s: one byte takes 2.666… s; three take 8 s to the nanosecond.
        let mut serializer = Serializer::new(Bitrate::from_bps(3).unwrap());
        let mut at = Instant::ZERO;
        for _ in 0..3 {
            at = serializer.transmit(1, at);
        }
        assert_eq!(at, Instant::from_nanos(8_000_000_000));
    }
    #[test]
    fn a_size_that_takes_whole_nanoseconds_takes_the_same_each_time() {
        for (rate, size, nanos) in
            [(8_000_000, 1000, Some(1_000_000)), (8_000_000, 2, Some(2000)), (3, 1, None)]
        {
            let mut serializer = Serializer::new(Bitrate::from_bps(rate).unwrap());
            let end = serializer.transmit(size, Instant::ZERO);
            assert_eq!(serializer.exactly(), nanos);
            assert!(nanos.is_none_or(|nanos| end == Instant::from_nanos(nanos)));
        }
    }
}
