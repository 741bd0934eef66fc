//! The counters of a capture, which its writer updates and the run loop reads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The counters of [`CaptureStatus`], which two threads share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) counts: [Counts; 2],
    pub(super) failures: AtomicU64,
    pub(super) writable: AtomicBool,
    pub(super) files: AtomicU64,
}

/// Packets of one interface, by what became of them.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) written: AtomicU64,
    pub(super) missed: AtomicU64,
}

/// The counters of a capture at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureStatus {
    /// Packets written.
    pub written: u64,
    /// Packets missed.
    pub missed: u64,
    /// Times that the capture file could no longer be written.
    pub failures: u64,
    /// Whether it can be written.
    pub writable: bool,
    /// Files that were begun.
    pub files: u64,
}

impl Default for State {
    fn default() -> Self {
        let (failures, files) = (AtomicU64::new(0), AtomicU64::new(1));
        Self { counts: Default::default(), failures, writable: AtomicBool::new(true), files }
    }
}

impl State {
    pub(super) fn status(&self) -> CaptureStatus {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let sum = |pick: fn(&Counts) -> &AtomicU64| self.counts.iter().map(|counts| read(pick(counts))).sum();
        CaptureStatus {
            written: sum(|counts| &counts.written),
            missed: sum(|counts| &counts.missed),
            failures: read(&self.failures),
            writable: self.writable.load(Ordering::Relaxed),
            files: read(&self.files),
        }
    }
}
