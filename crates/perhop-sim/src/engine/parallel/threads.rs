//! The threads of a run, one for each part, in rounds.
//!
//! A round has two barriers. Where few events happen in a round, because the look-ahead of the border is
//! short, the barriers take longer than the events: the first thread then runs all parts, until rounds have
//! more events again. The outcome is the same.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use perhop_core::{Duration, Instant};

use super::barrier::Barrier;
use crate::engine::batched::{Batched, BorderPacket};
use crate::watch::{Progress, Watch};

/// Rounds between two decisions on whether all threads run: while all run, and while the first runs alone.
const ROUNDS: u64 = 64;
const ROUNDS_ALONE: u64 = 1024;
/// With fewer events in a round, of all parts, the first thread runs alone: two barriers take as long as some
/// tens of events where each thread has a core, and longer where it waits for one.
const LEAST_EVENTS: u64 = 200;

/// What a run would take with a thread for each part, counted while the first thread runs all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Events of all parts.
    pub events: u64,
    /// Of each round the events of the part that has the most, for which the others wait; in all.
    pub critical: u64,
    /// Rounds. Each has two barriers.
    pub rounds: u64,
}

/// When the first thread runs all parts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sharing {
    /// While rounds have few events.
    Adaptive {
        /// Rounds have few events, by the last decision.
        alone: bool,
    },
    /// In every other few rounds, so that tests cover both.
    Alternating,
    /// In all rounds, which are counted.
    Counted(Schedule),
}

/// The state that the threads share.
struct Shared<'a> {
    barrier: Barrier,
    engines: Vec<Mutex<&'a mut Batched>>,
    /// Of each part: no event comes before this, in nanoseconds; and how many events it has handled.
    next: Vec<AtomicU64>,
    handled: Vec<AtomicU64>,
    /// Packets on their way to each part, by the part that they come from.
    mail: Vec<Vec<Mutex<Vec<BorderPacket>>>>,
    /// The first thread runs all parts for a while, the others wait.
    alone: AtomicBool,
    /// The first thread came to the end.
    over: AtomicBool,
    /// The watch stopped a part.
    stopped: AtomicBool,
    lookahead: Duration,
    /// The end, just after all that is to be handled.
    beyond: Instant,
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

/// Handles all events of all parts up to and including `until`, each part on a thread of its own, unless the
/// watch stops the run. A packet takes at least the look-ahead from one part to another.
pub(super) fn run(
    engines: Vec<&mut Batched>,
    (lookahead, until): (Duration, Instant),
    sharing: &mut Sharing,
    watch: &Watch,
    progress: &mut Progress,
) {
    let parts = engines.len();
    let handled = engines.iter().map(|engine| engine.handled()).sum();
    if parts == 0 {
        return;
    }
    let boxes = || (0..parts).map(|_| Mutex::default()).collect();
    let zeros = || (0..parts).map(|_| AtomicU64::new(0)).collect();
    let shared = Shared {
        barrier: Barrier::new(parts),
        engines: engines.into_iter().map(Mutex::new).collect(),
        next: zeros(),
        handled: zeros(),
        mail: (0..parts).map(|_| boxes()).collect(),
        alone: AtomicBool::new(false),
        over: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        lookahead,
        beyond: until.just_after(),
    };
    std::thread::scope(|scope| {
        for part in 1..parts {
            let (shared, watch) = (&shared, watch.unreported());
            scope.spawn(move || shared.follow(part, &watch));
        }
        shared.lead(Pace { sharing, rounds: 0, handled }, watch, progress);
    });
}

/// The number of events in rounds, by which the first thread decides.
struct Pace<'a> {
    sharing: &'a mut Sharing,
    /// Rounds since the last decision, and how many events had been handled before them.
    rounds: u64,
    handled: u64,
}

impl Pace<'_> {
    /// Decides, after so many rounds, whether the first thread runs all parts from here on.
    fn decide(&mut self, shared: &Shared<'_>, rounds: u64, was_alone: bool) -> bool {
        self.rounds += rounds;
        if self.rounds < self.sharing.rounds().0 {
            return was_alone;
        }
        let handled: u64 = shared.handled.iter().map(|handled| handled.load(Ordering::Relaxed)).sum();
        let alone = match self.sharing {
            Sharing::Alternating => !was_alone,
            Sharing::Counted(_) => true,
            Sharing::Adaptive { alone } => {
                *alone = handled - self.handled < LEAST_EVENTS * self.rounds;
                *alone
            }
        };
        (self.rounds, self.handled) = (0, handled);
        alone
    }
}

impl Schedule {
    /// Adds a round with so many events of each part.
    fn add(&mut self, events: impl Iterator<Item = u64> + Clone) {
        self.events += events.clone().sum::<u64>();
        self.critical += events.max().unwrap_or(0);
        self.rounds += 1;
    }
}

impl Sharing {
    /// Returns the number of rounds between two decisions: while all threads run, and while one runs alone.
    fn rounds(self) -> (u64, u64) {
        match self {
            Self::Adaptive { .. } | Self::Counted(_) => (ROUNDS, ROUNDS_ALONE),
            Self::Alternating => (3, 3),
        }
    }
}

impl<'a> Shared<'a> {
    /// Runs, on the first thread, its part to the end, and all others while that is quicker.
    fn lead(&self, mut pace: Pace<'_>, watch: &Watch, progress: &mut Progress) {
        let _guard = Guard(&self.barrier);
        let (_, rounds_alone) = pace.sharing.rounds();
        let mut alone = matches!(pace.sharing, Sharing::Adaptive { alone: true } | Sharing::Counted(_));
        let mut rounds = 0;
        loop {
            alone = pace.decide(self, rounds, alone);
            self.alone.store(alone, Ordering::Relaxed);
            rounds = if alone { rounds_alone } else { 1 };
            self.begin_round(0);
            if !self.barrier.wait() {
                return;
            }
            let goes_on = if alone {
                self.run_alone(rounds, pace.sharing, watch, progress);
                self.barrier.wait() && !self.is_over()
            } else {
                self.run_round(0, watch, progress)
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Runs, on another thread, its part to the end, or waits while the first one does.
    fn follow(&self, part: usize, watch: &Watch) {
        let _guard = Guard(&self.barrier);
        let mut progress = Progress::default();
        loop {
            self.begin_round(part);
            if !self.barrier.wait() {
                return;
            }
            let goes_on = if self.alone.load(Ordering::Relaxed) {
                self.barrier.wait() && !self.is_over()
            } else {
                self.run_round(part, watch, &mut progress)
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Returns whether all has been handled, or the watch stopped the run.
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.stopped.load(Ordering::Relaxed)
    }

    /// Returns the engine of a part. Nobody else has it while all threads keep to their rounds.
    fn engine(&self, part: usize) -> MutexGuard<'_, &'a mut Batched> {
        self.engines[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the packets that come to a part, and publishes the time of its next event.
    fn begin_round(&self, part: usize) {
        let mut engine = self.engine(part);
        self.take_in(part, &mut engine);
        self.next[part].store(engine.next().as_nanos(), Ordering::Relaxed);
        self.handled[part].store(engine.handled(), Ordering::Relaxed);
    }

    /// Returns the end of the round, by the times at which parts have something to do.
    fn bound(&self) -> Instant {
        let first = self.next.iter().map(|next| next.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX);
        let first = Instant::from_nanos(first);
        if first < self.beyond { (first + self.lookahead).min(self.beyond) } else { self.beyond }
    }

    /// Runs a round of a part, with all other threads. Returns whether there is another one.
    fn run_round(&self, part: usize, watch: &Watch, progress: &mut Progress) -> bool {
        let bound = self.bound();
        self.run_part(part, bound, watch, progress);
        if !self.barrier.wait() || self.stopped.load(Ordering::Relaxed) {
            return false;
        }
        if bound == self.beyond {
            // Packets on their way to a part when the run is interrupted, to be continued.
            self.take_in(part, &mut self.engine(part));
            return false;
        }
        true
    }

    /// Runs so many rounds of all parts, while the other threads wait.
    fn run_alone(&self, rounds: u64, sharing: &mut Sharing, watch: &Watch, progress: &mut Progress) {
        let parts = self.engines.len();
        let handled = |part: usize| self.handled[part].load(Ordering::Relaxed);
        for _ in 0..rounds {
            let bound = self.bound();
            let before: Vec<u64> = match sharing {
                Sharing::Counted(_) => (0..parts).map(handled).collect(),
                _ => Vec::new(),
            };
            for part in 0..parts {
                if self.next[part].load(Ordering::Relaxed) < bound.as_nanos() || bound == self.beyond {
                    self.run_part(part, bound, watch, progress);
                }
            }
            (0..parts).for_each(|part| self.begin_round(part));
            if let Sharing::Counted(schedule) = sharing {
                schedule.add(before.iter().enumerate().map(|(part, before)| handled(part) - before));
            }
            if bound == self.beyond {
                self.over.store(true, Ordering::Relaxed);
            }
            if self.is_over() {
                return;
            }
        }
    }

    /// Handles what happens in a part before `bound`, and sends what leaves it.
    fn run_part(&self, part: usize, bound: Instant, watch: &Watch, progress: &mut Progress) {
        let mut engine = self.engine(part);
        engine.run_until(Instant::from_nanos(bound.as_nanos() - 1), watch, progress);
        if watch.is_stopped() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        for to in (0..self.engines.len()).filter(|&to| to != part) {
            let mut letters = self.letters(part, to);
            let empty = std::mem::take(&mut *letters);
            *letters = engine.leaving(to, empty);
        }
    }

    /// Takes in what other parts have sent to a part.
    fn take_in(&self, part: usize, engine: &mut Batched) {
        for from in (0..self.engines.len()).filter(|&from| from != part) {
            self.letters(from, part).drain(..).for_each(|packet| engine.enter(packet));
        }
    }

    fn letters(&self, from: usize, to: usize) -> MutexGuard<'_, Vec<BorderPacket>> {
        self.mail[to][from].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
