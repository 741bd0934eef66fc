//! Where threads of a run wait for one another.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// The number of times that a thread looks before it sleeps: some microseconds.
const SPINS: u32 = 2000;

/// A barrier for rounds of some microseconds: where each thread has a core, nobody sleeps.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
    /// Held while the round ends, and by those that fall asleep.
    door: Mutex<()>,
    opens: Condvar,
}

impl Barrier {
    pub(super) fn new(threads: usize) -> Self {
        Self { threads, ..Self::default() }
    }

    /// Waits until all threads are here, and see what each did before. Returns false if one never comes.
    pub(super) fn wait(&self) -> bool {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.open(|| self.round.store(round.wrapping_add(1), Ordering::Release));
            return !self.is_broken();
        }
        let waits = || self.round.load(Ordering::Acquire) == round && !self.is_broken();
        for _ in 0..SPINS {
            if !waits() {
                return !self.is_broken();
            }
            std::hint::spin_loop();
        }
        let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        while waits() {
            door = self.opens.wait(door).unwrap_or_else(PoisonError::into_inner);
        }
        !self.is_broken()
    }

    /// Makes a change for which threads wait, and wakes them.
    fn open(&self, change: impl FnOnce()) {
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        change();
        drop(door);
        self.opens.notify_all();
    }

    /// Ends all waiting, because a thread has panicked.
    pub(super) fn break_up(&self) {
        self.open(|| self.broken.store(true, Ordering::Release));
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn nobody_is_a_round_ahead() {
        let (threads, rounds) = (3, 200);
        let barrier = Barrier::new(threads);
        let counts: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for own in &counts {
                scope.spawn(|| {
                    for round in 1..=rounds {
                        own.store(round, Ordering::Relaxed);
                        assert!(barrier.wait());
                        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round));
                        assert!(barrier.wait());
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_one_that_never_comes() {
        let barrier = Barrier::new(2);
        let waited = std::thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait());
            barrier.break_up();
            waits.join()
        });
        assert!(!waited.unwrap());
    }
}
