//! A run monitored from other threads: its progress, and an early end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use perhop_core::Instant;

/// Follows runs, and ends them before their time. It never changes what a run computes: one that is stopped
/// gives no outcome.
///
/// Clones share what they follow.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    /// Ends one run only.
    stop_one: Arc<AtomicBool>,
    under_way: Arc<AtomicU64>,
}

/// A whole run, in the parts that are counted.
const WHOLE: u64 = 1 << 32;

impl Watch {
    /// Ends all runs that this watch follows, within some ten thousand packets.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the watch of a thread of a run whose progress another thread reports.
    pub(crate) fn unreported(&self) -> Self {
        Self { under_way: Arc::default(), ..self.clone() }
    }

    /// Returns the watch of one run, which can be ended alone.
    #[must_use]
    pub fn of_one_run(&self) -> Self {
        Self { stop_one: Arc::default(), ..self.clone() }
    }

    /// Ends the run that this watch is [of](Self::of_one_run).
    pub fn stop_run(&self) {
        self.stop_one.store(true, Ordering::Relaxed);
    }

    /// Returns whether the runs are to end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.stop_one.load(Ordering::Relaxed)
    }

    /// Returns how many runs are on, each by its simulated part: 0.7 for one at a quarter and one at 45 %.
    pub fn under_way(&self) -> f64 {
        self.under_way.load(Ordering::Relaxed) as f64 / WHOLE as f64
    }
}

/// The watch has stopped a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

/// Handled events between two checks of a watch: much less than a tenth of a second of work.
pub(crate) const WATCH_INTERVAL: u64 = 4096;

/// The progress that a run has reported to its watch, in parts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress(u64);

impl Progress {
    /// Reports that the run has come to `now`.
    pub(crate) fn report(&mut self, watch: &Watch, now: Instant, end: Instant) {
        let whole = u128::from(WHOLE);
        let parts = (u128::from(now.as_nanos()) * whole).checked_div(u128::from(end.as_nanos()));
        let new = parts.unwrap_or(whole).min(whole) as u64;
        if new > self.0 {
            watch.under_way.fetch_add(new - self.0, Ordering::Relaxed);
            self.0 = new;
        }
    }

    /// Reports that the run is over.
    pub(crate) fn end(&mut self, watch: &Watch) {
        watch.under_way.fetch_sub(std::mem::take(&mut self.0), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_can_be_ended_alone() {
        let all = Watch::default();
        let (one, other) = (all.of_one_run(), all.of_one_run());
        one.stop_run();
        assert_eq!([&all, &one, &other].map(Watch::is_stopped), [false, true, false]);
        all.stop();
        assert!(other.is_stopped());
    }

    #[test]
    fn runs_that_are_on_add_up() {
        let (watch, end) = (Watch::default(), Instant::from_nanos(u64::MAX / 2));
        let (mut first, mut second) = (Progress::default(), Progress::default());
        first.report(&watch, Instant::from_nanos(u64::MAX / 4), end);
        assert!((watch.under_way() - 0.5).abs() < 1e-6);
        first.report(&watch, Instant::ZERO, end);
        first.report(&watch, Instant::NEVER, end);
        second.report(&watch.clone(), end, end);
        assert_eq!(watch.under_way(), 2.0);
        second.end(&watch);
        assert_eq!(watch.under_way(), 1.0);
    }
}
