//! The threads of a run, one for each part, in rounds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use perhop_core::{Duration, Instant};

use super::barrier::Barrier;
use crate::engine::batched::{Batched, Crossing};
use crate::watch::{Progress, Watch};

/// What the threads share.
struct Shared {
    barrier: Barrier,
    /// Of each part: nothing happens there before this, in nanoseconds.
    next: Vec<AtomicU64>,
    /// Packets on their way to each part, by the part that they come from.
    mail: Vec<Vec<Mutex<Vec<Crossing>>>>,
    /// The watch stopped a part.
    stopped: AtomicBool,
}

/// Breaks the barrier if its thread panics, so that the others do not wait for it for ever.
struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_up();
        }
    }
}

/// Handles all events of all parts up to and including `until`, each part on a thread of its own, unless the watch stops the run.
/// A packet takes at least the look-ahead from one part to another.
pub(super) fn run(
    engines: Vec<&mut Batched>,
    lookahead: Duration,
    until: Instant,
    watch: &Watch,
    progress: &mut Progress,
) {
    let parts = engines.len();
    let boxes = || (0..parts).map(|_| Mutex::default()).collect();
    let shared = Shared {
        barrier: Barrier::new(parts),
        next: (0..parts).map(|_| AtomicU64::new(0)).collect(),
        mail: (0..parts).map(|_| boxes()).collect(),
        stopped: AtomicBool::new(false),
    };
    let mut engines = engines.into_iter().enumerate();
    let Some((own, first)) = engines.next() else { return };
    std::thread::scope(|scope| {
        for (part, engine) in engines {
            let (shared, watch) = (&shared, watch.unreported());
            scope.spawn(move || {
                work(part, engine, shared, (lookahead, until), &watch, &mut Progress::default());
            });
        }
        work(own, first, &shared, (lookahead, until), watch, progress);
    });
}

/// Runs a part to the end.
fn work(
    part: usize,
    engine: &mut Batched,
    shared: &Shared,
    (lookahead, until): (Duration, Instant),
    watch: &Watch,
    progress: &mut Progress,
) {
    let Shared { barrier, next, mail, stopped } = shared;
    let _guard = Guard(barrier);
    let beyond = until + Duration::from_nanos(1);
    let parts = next.len();
    loop {
        for from in (0..parts).filter(|&from| from != part) {
            let mut letters = mail[part][from].lock().unwrap_or_else(PoisonError::into_inner);
            letters.drain(..).for_each(|crossing| engine.enter(crossing));
        }
        next[part].store(engine.next().as_nanos(), Ordering::Relaxed);
        if !barrier.wait() {
            return;
        }
        let first = next.iter().map(|next| next.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX);
        let first = Instant::from_nanos(first);
        let bound = if first < beyond { (first + lookahead).min(beyond) } else { beyond };
        let last = Instant::from_nanos(bound.as_nanos() - 1);
        engine.run_until(last, watch, progress);
        if watch.is_stopped() {
            stopped.store(true, Ordering::Relaxed);
        }
        for to in (0..parts).filter(|&to| to != part) {
            let mut letters = mail[to][part].lock().unwrap_or_else(PoisonError::into_inner);
            let empty = std::mem::take(&mut *letters);
            *letters = engine.leaving(to, empty);
        }
        if !barrier.wait() || stopped.load(Ordering::Relaxed) {
            return;
        }
        if bound == beyond {
            return deliver_rest(part, engine, mail);
        }
    }
}

/// Packets on their way to a part when the run is interrupted, to be continued.
fn deliver_rest(part: usize, engine: &mut Batched, mail: &[Vec<Mutex<Vec<Crossing>>>]) {
    for letters in &mail[part] {
        let mut letters = letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.drain(..).for_each(|crossing| engine.enter(crossing));
    }
}
