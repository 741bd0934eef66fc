//! The time that a host takes to hand a packet to its link.

use crate::{Duration, Instant, Rng};

/// The jitter of a sending host: each packet goes to the wire after a random time, uniform from 0 to a
/// maximum, but not before the last one.
#[derive(Clone, Debug)]
pub struct Dispatch {
    most: Duration,
    rng: Rng,
    last: Instant,
}

impl Dispatch {
    /// Returns a host that takes at most this long.
    pub fn new(most: Duration, rng: Rng) -> Self {
        Self { most: most.min(Duration::AGES), rng, last: Instant::ZERO }
    }

    /// Returns when the host hands over a packet that it has at `now`.
    pub fn hand_over(&mut self, now: Instant) -> Instant {
        self.last = (now + Duration::from_nanos(self.rng.up_to(self.most.as_nanos()))).max(self.last);
        self.last
    }
}
