//! Points and spans of time, in whole nanoseconds since the start of the run.

use std::ops::{Add, AddAssign, Sub};

use super::text::{TIME, text_unit};

/// A point in time: nanoseconds since the driver's epoch (the start of a simulation, the start of a live
/// router).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);
    /// Later than every event: "never".
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch, rounded to the nearest double.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The instant `span` later, where the sum is known to come before the end of time, as it does from
    /// within a run for a few spans no longer than [`Duration::AGES`]. `+` makes sure.
    #[inline]
    #[must_use]
    pub const fn later(self, span: Duration) -> Self {
        debug_assert!(self.0.checked_add(span.0).is_some());
        Self(self.0.wrapping_add(span.0))
    }

    /// The next instant, a nanosecond later: an event before it is no later than this one.
    #[inline]
    #[must_use]
    pub const fn just_after(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The span from `earlier` to here, where `earlier` is known not to be later; [`since`](Self::since)
    /// makes sure.
    #[inline]
    #[must_use]
    pub const fn after(self, earlier: Self) -> Duration {
        debug_assert!(self.0 >= earlier.0);
        Duration(self.0.wrapping_sub(earlier.0))
    }

    /// The span from `earlier` to here, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than any run: 36 years, a sixteenth of all time, so that a packet may take that long several
    /// times.
    pub const AGES: Self = Self(1 << 60);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Length in seconds, rounded to the nearest double.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether the span is empty.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This span `factor` times, or the longest span there is.
    #[must_use]
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

text_unit!(
    Duration,
    "duration",
    format!("^{TIME}$"),
    "48ms",
    [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_are_whole_numbers() {
        assert!((0..100_000).all(|n| (Instant::ZERO + Duration::from_secs(n)).as_secs_f64() == n as f64));
        assert_eq!(Duration::from_millis(1).as_secs_f64(), 0.001);
    }
}
