//! Writes captured packets into a ring of files.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant as WallInstant};

use perhop_pcap::write::{Blocks, Captured};

use super::Record;
use super::state::State;
use crate::log::Log;
use crate::ring::{Appended, Ring, Storage};

/// A packet is written after this time at the latest; after an error, the file is tried again at this
/// interval.
const FLUSH: Duration = Duration::from_millis(500);

/// A batch of this size, or little more, is written at once.
const BATCH: usize = 64 << 10;

/// Collects blocks and writes them in batches.
pub(super) struct Writer<S, N> {
    ring: Ring<S>,
    pub(super) state: Arc<State>,
    log: Log,
    now: N,
    blocks: Blocks,
    waiting: Vec<Waiting>,
    ends: Vec<usize>,
    /// Missed packets of each interface that no block reports yet.
    unreported: [u64; 2],
    /// While the file cannot be written: packets missed since then.
    outage: Option<u64>,
}

/// A block that is not in the file yet.
struct Waiting {
    interface: usize,
    /// Packets that were missed before it.
    missed: u64,
}

impl<S: Storage, N: Fn() -> u64> Writer<S, N> {
    pub(super) fn new(ring: Ring<S>, state: Arc<State>, log: Log, now: N) -> Self {
        let (waiting, ends) = (Vec::new(), Vec::new());
        Self {
            ring,
            state,
            log,
            now,
            blocks: Blocks::default(),
            waiting,
            ends,
            unreported: [0; 2],
            outage: None,
        }
    }

    /// Writes packets as they come, until the run loop drops its end.
    pub(super) fn write(&mut self, records: &Receiver<Record>, done: &SyncSender<Vec<u8>>) -> io::Result<()> {
        let mut flush = WallInstant::now() + FLUSH;
        loop {
            match records.recv_timeout(flush.saturating_duration_since(WallInstant::now())) {
                Ok(record) => {
                    self.add(&record);
                    let _ = done.try_send(record.packet);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            }
            let now = WallInstant::now();
            // A file that cannot be written is tried again at fixed intervals, whatever the load.
            if now >= flush || (self.is_batch() && self.outage.is_none()) {
                flush = now + FLUSH;
                let _ = self.flush();
            }
        }
    }

    fn is_batch(&self) -> bool {
        self.blocks.bytes().len() >= BATCH
    }

    /// Adds a packet to the batch, if there is room.
    pub(super) fn add(&mut self, record: &Record) {
        let Record { interface, time, direction, ref packet, why, missed } = *record;
        let number = interface as usize;
        if self.is_batch() || self.ring.is_full() {
            self.miss(number, missed);
            return;
        }
        let missed = missed + std::mem::take(&mut self.unreported[number]);
        let comment = why.map(|why| format!("dropped: {}", why.name()));
        let comment = comment.as_deref();
        let length = packet.len() as u32;
        self.blocks.packet(&Captured { interface, time, direction, packet, length, comment, missed });
        self.waiting.push(Waiting { interface: number, missed });
        self.ends.push(self.blocks.bytes().len());
    }

    /// Counts a packet that is not written; `missed` packets before it were missed, too.
    fn miss(&mut self, interface: usize, missed: u64) {
        self.unreported[interface] += 1 + missed;
        self.state.counts[interface].missed.fetch_add(1, Ordering::Relaxed);
        if let Some(missed) = &mut self.outage {
            *missed += 1;
        }
    }

    /// Writes the batch, or misses its packets.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return self.ring.repair();
        }
        let turned = if self.ring.exceeds(self.blocks.bytes().len()) { self.turn() } else { Ok(true) };
        let Appended { blocks, error } = match turned {
            Ok(true) => self.ring.append(self.blocks.bytes(), &self.ends),
            Ok(false) => Appended { blocks: 0, error: None },
            Err(error) => Appended { blocks: 0, error: Some(error) },
        };
        self.report(error.as_ref());
        for (number, Waiting { interface, missed }) in
            std::mem::take(&mut self.waiting).into_iter().enumerate()
        {
            if number < blocks {
                self.state.counts[interface].written.fetch_add(1, Ordering::Relaxed);
            } else {
                self.miss(interface, missed);
            }
        }
        self.blocks.clear();
        self.ends.clear();
        error.map_or(Ok(()), Err)
    }

    /// Changes to the next file. Returns false, with a warning, if there is none.
    fn turn(&mut self) -> io::Result<bool> {
        if self.ring.is_full() {
            return Ok(false);
        }
        let last = self.statistics();
        let turned = self.ring.turn(last.bytes())?;
        if turned {
            self.state.files.fetch_add(1, Ordering::Relaxed);
        } else {
            self.log.warn("warning: capture: its only file is full; further packets are not captured");
        }
        Ok(turned)
    }

    /// Reports once that packets are missed, and once that they are written again.
    fn report(&mut self, error: Option<&io::Error>) {
        match (error, self.outage) {
            (Some(error), None) => {
                self.outage = Some(0);
                self.state.failures.fetch_add(1, Ordering::Relaxed);
                self.log.warn(format_args!(
                    "warning: capture: {error}; packets are not captured until it can be written again"
                ));
            }
            (None, Some(missed)) => {
                self.outage = None;
                self.log.say(format_args!(
                    "capture: it can be written again; {missed} packets were not captured"
                ));
            }
            _ => {}
        }
        self.state.writable.store(self.outage.is_none(), Ordering::Relaxed);
    }

    pub(super) fn end(&mut self) -> io::Result<()> {
        let result = self.flush();
        let last = self.statistics();
        let appended = self.ring.append(last.bytes(), &[last.bytes().len()]);
        result?;
        appended.error.map_or(Ok(()), Err)
    }

    /// Returns the block of statistics at the end of a file.
    fn statistics(&self) -> Blocks {
        let mut blocks = Blocks::default();
        for (interface, counts) in self.state.counts.iter().enumerate() {
            let [written, missed] =
                [&counts.written, &counts.missed].map(|count| count.load(Ordering::Relaxed));
            blocks.statistics(interface as u32, (self.now)(), written + missed, missed);
        }
        blocks
    }
}
