//! Captures packets into files. A thread of its own writes them ([`writer`]); packets for which the disk is
//! too slow or too full are missed and counted.

#![expect(clippy::disallowed_types, reason = "captured packets carry the wall-clock time")]

mod state;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::thread;
use std::time::{Duration, SystemTime};

use perhop_core::Instant;
use perhop_live::{Clock, Loss};
use perhop_pcap::write::{Blocks, PacketDirection};

use self::state::State;
use self::writer::Writer;
use crate::config::CaptureFiles;
use crate::log::Log;
use crate::ring::{self, Ring, Storage};

pub use self::state::CaptureStatus;

/// What capture files say wrote them.
const APPLICATION: &str = concat!("perhop-router ", env!("CARGO_PKG_VERSION"));

/// How many packets may wait for the file.
const WAITING: usize = 4096;

/// How long the end waits for the file.
const PATIENCE: Duration = Duration::from_secs(3);

/// A packet to be written, with its metadata.
struct Record {
    interface: u32,
    time: u64,
    direction: PacketDirection,
    packet: Vec<u8>,
    why: Option<Loss>,
    missed: u64,
}

/// The run loop's end of a capture.
pub struct Capture {
    drops_only: bool,
    /// The wall-clock time at the plane's time zero, in nanoseconds since 1970.
    epoch: u64,
    /// The time of the last packet. A packet that is lost on arrival may come after others that were sent
    /// since: it has their time, because readers want times in order.
    latest: u64,
    records: SyncSender<Record>,
    /// Buffers of packets that have been written.
    spare: Receiver<Vec<u8>>,
    missed: [u64; 2],
    state: Arc<State>,
}

/// The interfaces and the packets that are captured.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The names of both interfaces.
    pub interfaces: &'a [String; 2],
    /// The most bytes of a file.
    pub limit: u64,
    /// Only packets that are dropped.
    pub drops_only: bool,
    /// The longest packet.
    pub longest: u16,
}

/// The writer's end of a capture.
pub struct Writing {
    ended: Receiver<io::Result<()>>,
    state: Arc<State>,
}

/// Opens the files of a capture, whose names begin with this one. An error names the file.
pub fn open(path: &Path, files: &CaptureFiles) -> Result<Vec<File>, String> {
    let names = ring::names(path, usize::from(files.count));
    let open = |name: &PathBuf| {
        ring::open(name, files.mode.bits()).map_err(|error| format!("{}: {error}", name.display()))
    };
    names.iter().map(open).collect()
}

impl Capture {
    /// Begins a capture into files that are open.
    pub fn begin<S: Storage + Send + 'static>(
        files: Vec<S>,
        setup: &Setup<'_>,
        clock: Clock,
        log: Log,
    ) -> io::Result<(Self, Writing)> {
        let Setup { interfaces, limit, drops_only, longest } = *setup;
        let header = Blocks::header(APPLICATION, interfaces, u32::from(longest));
        let ring = Ring::begin(files, header.bytes(), limit)?;
        let (records, to_write) = mpsc::sync_channel(WAITING);
        let (done, spare) = mpsc::sync_channel(WAITING + 1);
        (0..WAITING).for_each(|_| drop(done.try_send(Vec::with_capacity(usize::from(longest)))));
        let state = Arc::new(State::default());
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let epoch = u64::try_from(since_1970.as_nanos()).unwrap_or(0).saturating_sub(clock.now().as_nanos());
        let now = move || Instant::from_nanos(epoch + clock.now().as_nanos()).as_nanos();
        let mut writer = Writer::new(ring, Arc::clone(&state), log, now);
        let (end, ended) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("capture".into());
        thread.spawn(move || drop(end.send(writer.write(&to_write, &done))))?;
        let ours =
            Self { drops_only, epoch, latest: 0, records, spare, missed: [0; 2], state: Arc::clone(&state) };
        Ok((ours, Writing { ended, state }))
    }

    /// Captures a packet that leaves.
    #[inline]
    pub fn sent(&mut self, device: usize, packet: &[u8], now: Instant) {
        if !self.drops_only {
            self.put(device, PacketDirection::Outbound, packet, None, now);
        }
    }

    /// Captures a packet that is lost.
    pub fn lost(&mut self, device: usize, packet: &[u8], why: Loss, now: Instant) {
        self.put(device, PacketDirection::Inbound, packet, Some(why), now);
    }

    /// Passes a packet to the writer, or misses it. Never waits and allocates no memory.
    fn put(
        &mut self,
        device: usize,
        direction: PacketDirection,
        packet: &[u8],
        why: Option<Loss>,
        now: Instant,
    ) {
        let sent = match self.spare.try_recv() {
            Ok(mut room) => {
                room.clear();
                room.extend_from_slice(packet);
                let time = self.latest.max(self.epoch + now.as_nanos());
                self.latest = time;
                let missed = self.missed[device];
                let record = Record { interface: device as u32, time, direction, packet: room, why, missed };
                self.records.try_send(record).is_ok()
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => false,
        };
        if sent {
            self.missed[device] = 0;
        } else {
            self.missed[device] += 1;
            self.state.counts[device].missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the counters of the capture at present.
    pub fn status(&self) -> CaptureStatus {
        self.state.status()
    }
}

impl Writing {
    /// Waits until everything is in the file, once the run loop's end is dropped, but not for a disk that
    /// does not respond. Returns the final counters; with an error, the last packets are missing in the file.
    pub fn finish(self) -> (CaptureStatus, io::Result<()>) {
        let ended = self.ended.recv_timeout(PATIENCE);
        let lost = |error| match error {
            RecvTimeoutError::Timeout => "the disk does not respond; the last packets may be missing",
            RecvTimeoutError::Disconnected => "the thread that writes it has failed",
        };
        (self.state.status(), ended.unwrap_or_else(|error| Err(io::Error::other(lost(error)))))
    }
}
