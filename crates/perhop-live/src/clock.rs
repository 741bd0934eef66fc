//! The time of a live data plane: nanoseconds of the system's monotonic clock since the start.

#![expect(clippy::disallowed_types, reason = "the live data plane's clock is the wall's")]

use perhop_core::Instant;

/// A clock that started at zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// Starts it.
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns the time since it was started.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
