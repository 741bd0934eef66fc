//! Queues between the router and its listeners, each with a thread of its own: a listener that does not read
//! delays neither the data plane nor the end.

#![expect(clippy::disallowed_types, reason = "a reader that does not listen is given up after a time")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

/// The speaking end of a queue.
#[derive(Debug)]
pub struct Outlet<T> {
    queue: SyncSender<Entry<T>>,
    dropped: Arc<AtomicU64>,
}

/// The other end, until its entries are delivered.
#[derive(Debug)]
pub struct Backlog<T> {
    queue: Receiver<Entry<T>>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Entry<T> {
    Item(T),
    /// Acknowledged once everything before it is delivered.
    Mark(SyncSender<()>),
}

impl<T> Clone for Outlet<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), dropped: Arc::clone(&self.dropped) }
    }
}

impl<T> Outlet<T> {
    /// Makes a queue for so many items.
    pub fn new(room: usize) -> (Self, Backlog<T>) {
        let (sender, receiver) = mpsc::sync_channel(room);
        let dropped = Arc::<AtomicU64>::default();
        (Self { queue: sender, dropped: Arc::clone(&dropped) }, Backlog { queue: receiver, dropped })
    }

    /// Puts an item into the queue, or drops and counts it where there is no room. Never waits.
    pub fn put(&self, item: T) {
        if self.queue.try_send(Entry::Item(item)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Items that found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything is delivered, at most so long; says whether it is.
    pub fn finish(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let left = || deadline.saturating_duration_since(Instant::now());
        let (acknowledge, done) = mpsc::sync_channel(1);
        let mut mark = Entry::Mark(acknowledge);
        while let Err(refused) = self.queue.try_send(mark) {
            match refused {
                TrySendError::Full(again) if !left().is_zero() => mark = again,
                _ => return false,
            }
            thread::park_timeout(Duration::from_millis(5));
        }
        done.recv_timeout(left()).is_ok()
    }
}

impl<T: Send + 'static> Backlog<T> {
    /// Delivers, by a new thread of this name, each item with the number of those that were dropped until
    /// then.
    pub fn start(self, name: &str, mut deliver: impl FnMut(T, u64) + Send + 'static) -> io::Result<()> {
        let thread = thread::Builder::new().name(name.into());
        let spawned = thread.spawn(move || {
            for entry in self.queue {
                match entry {
                    Entry::Item(item) => deliver(item, self.dropped.load(Ordering::Relaxed)),
                    Entry::Mark(acknowledge) => drop(acknowledge.try_send(())),
                }
            }
        });
        spawned.map(drop)
    }

    /// Returns what waits.
    #[cfg(test)]
    pub fn waiting(self) -> Vec<T> {
        let item = |entry| match entry {
            Entry::Item(item) => Some(item),
            Entry::Mark(_) => None,
        };
        self.queue.try_iter().filter_map(item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_does_not_listen_delays_nobody_and_what_is_dropped_is_counted() {
        let (outlet, backlog) = Outlet::new(3);
        (0..10).for_each(|number| outlet.put(number));
        assert_eq!(outlet.dropped(), 7);
        let began = Instant::now();
        assert!(!outlet.finish(Duration::from_millis(50)), "nobody delivers");
        assert!(began.elapsed() < Duration::from_secs(5));
        let (seen, heard) = mpsc::channel();
        backlog.start("outlet", move |number, dropped| seen.send((number, dropped)).unwrap()).unwrap();
        assert!(outlet.finish(Duration::from_secs(20)));
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [(0, 7), (1, 7), (2, 7)]);
    }
}
