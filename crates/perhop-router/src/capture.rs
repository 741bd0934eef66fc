//! Packets into capture files, by a thread of its own: what the disk is too slow for, or has no room for, is counted and
//! missed.

#![expect(clippy::disallowed_types, reason = "packets of a capture carry the time of the wall")]

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant as WallInstant, SystemTime};

use perhop_core::Instant;
use perhop_live::{Clock, Loss};

use crate::config::CaptureFiles;
use crate::log::Log;
use crate::pcapng::{Blocks, Captured, Way};
use crate::ring::{self, Appended, Ring, Storage};

/// How many packets may wait for the file.
const WAITING: usize = 4096;

/// What has come is in the file after this time at the latest; so often it is tried again where it cannot be written.
const FLUSH: Duration = Duration::from_millis(500);

/// As many bytes are written at once, or little more.
const BATCH: usize = 64 << 10;

/// How long the end waits for the file.
const PATIENCE: Duration = Duration::from_secs(3);

/// A packet on its way into the file.
struct Record {
    interface: u32,
    time: u64,
    way: Way,
    packet: Vec<u8>,
    why: Option<Loss>,
    missed: u64,
}

/// The run loop's end of a capture.
pub struct Capture {
    drops_only: bool,
    /// The wall's time at the plane's zero, in nanoseconds since 1970.
    epoch: u64,
    records: SyncSender<Record>,
    /// Room for packets that the file has done with.
    spare: Receiver<Vec<u8>>,
    missed: [u64; 2],
    state: Arc<State>,
}

/// What is captured.
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

/// How a capture does, for whoever asks.
#[derive(Debug)]
struct State {
    counts: [Counts; 2],
    /// Times that the capture file could no longer be written.
    failures: AtomicU64,
    /// Whether it can be written.
    writable: AtomicBool,
    /// Files that were begun.
    files: AtomicU64,
}

/// Packets of one interface.
#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    missed: AtomicU64,
}

/// The same in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
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

/// The files' end.
pub struct Writing {
    ended: Receiver<io::Result<()>>,
    state: Arc<State>,
}

/// Opens the files of a capture, whose names begin with this one.
///
/// # Errors
/// A file and what is wrong with it.
pub fn open(path: &Path, files: &CaptureFiles) -> Result<Vec<File>, String> {
    let names = ring::names(path, usize::from(files.count));
    let open = |name: &PathBuf| {
        ring::open(name, files.mode.bits()).map_err(|error| format!("{}: {error}", name.display()))
    };
    names.iter().map(open).collect()
}

impl Capture {
    /// Begins a capture into files that are open.
    ///
    /// # Errors
    /// A file's.
    pub fn begin<S: Storage + Send + 'static>(
        files: Vec<S>,
        setup: &Setup<'_>,
        clock: Clock,
        log: Log,
    ) -> io::Result<(Self, Writing)> {
        let Setup { interfaces, limit, drops_only, longest } = *setup;
        let header = Blocks::header(interfaces, u32::from(longest));
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
        let ours = Self { drops_only, epoch, records, spare, missed: [0; 2], state: Arc::clone(&state) };
        Ok((ours, Writing { ended, state }))
    }

    /// A packet leaves.
    #[inline]
    pub fn sent(&mut self, device: usize, packet: &[u8], now: Instant) {
        if !self.drops_only {
            self.put(device, Way::Outbound, packet, None, now);
        }
    }

    /// A packet is lost.
    pub fn lost(&mut self, device: usize, packet: &[u8], why: Loss, now: Instant) {
        self.put(device, Way::Inbound, packet, Some(why), now);
    }

    /// Hands a packet on, or misses it: never waits, and takes no memory but what it took at the begin.
    fn put(&mut self, device: usize, way: Way, packet: &[u8], why: Option<Loss>, now: Instant) {
        let sent = match self.spare.try_recv() {
            Ok(mut room) => {
                room.clear();
                room.extend_from_slice(packet);
                let time = self.epoch + now.as_nanos();
                let missed = self.missed[device];
                let record = Record { interface: device as u32, time, way, packet: room, why, missed };
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

    /// How it does.
    pub fn told(&self) -> Told {
        self.state.told()
    }
}

impl Writing {
    /// Waits until everything is in the file, once the run loop's end is gone, but not for a disk that does not answer; tells
    /// how it did.
    ///
    /// # Errors
    /// The file's: its last packets are missing.
    pub fn finish(self) -> (Told, io::Result<()>) {
        let ended = self.ended.recv_timeout(PATIENCE);
        let lost = |error| match error {
            RecvTimeoutError::Timeout => "the disk does not respond; the last packets may be missing",
            RecvTimeoutError::Disconnected => "the thread that writes it has failed",
        };
        (self.state.told(), ended.unwrap_or_else(|error| Err(io::Error::other(lost(error)))))
    }
}

impl Default for State {
    fn default() -> Self {
        let (failures, files) = (AtomicU64::new(0), AtomicU64::new(1));
        Self { counts: Default::default(), failures, writable: AtomicBool::new(true), files }
    }
}

impl State {
    fn told(&self) -> Told {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let sum = |pick: fn(&Counts) -> &AtomicU64| self.counts.iter().map(|counts| read(pick(counts))).sum();
        Told {
            written: sum(|counts| &counts.written),
            missed: sum(|counts| &counts.missed),
            failures: read(&self.failures),
            writable: self.writable.load(Ordering::Relaxed),
            files: read(&self.files),
        }
    }
}

/// Gathers blocks and writes them.
struct Writer<S, N> {
    ring: Ring<S>,
    state: Arc<State>,
    log: Log,
    now: N,
    blocks: Blocks,
    waiting: Vec<Waiting>,
    ends: Vec<usize>,
    /// Packets of each interface that were missed, of which no block tells yet.
    untold: [u64; 2],
    /// Packets that were missed since the file cannot be written.
    since: Option<u64>,
}

/// A block that is not in the file yet.
struct Waiting {
    interface: usize,
    /// Packets that were missed before it.
    missed: u64,
}

impl<S: Storage, N: Fn() -> u64> Writer<S, N> {
    fn new(ring: Ring<S>, state: Arc<State>, log: Log, now: N) -> Self {
        let (waiting, ends) = (Vec::new(), Vec::new());
        Self { ring, state, log, now, blocks: Blocks::default(), waiting, ends, untold: [0; 2], since: None }
    }

    /// Writes packets as they come, until no more will come.
    fn write(&mut self, records: &Receiver<Record>, done: &SyncSender<Vec<u8>>) -> io::Result<()> {
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
            // A file that cannot be written is tried again at intervals, however much comes.
            if now >= flush || (self.is_batch() && self.since.is_none()) {
                flush = now + FLUSH;
                let _ = self.flush();
            }
        }
    }

    fn is_batch(&self) -> bool {
        self.blocks.bytes().len() >= BATCH
    }

    /// Adds a packet to those that are to be written, if there is room.
    fn add(&mut self, record: &Record) {
        let Record { interface, time, way, ref packet, why, missed } = *record;
        let number = interface as usize;
        if self.is_batch() || self.ring.is_full() {
            self.miss(number, missed);
            return;
        }
        let missed = missed + std::mem::take(&mut self.untold[number]);
        let comment = why.map(|why| format!("dropped: {}", why.name()));
        let comment = comment.as_deref();
        self.blocks.packet(&Captured { interface, time, way, packet, comment, missed });
        self.waiting.push(Waiting { interface: number, missed });
        self.ends.push(self.blocks.bytes().len());
    }

    /// A packet is not written; so many before it were missed, too.
    fn miss(&mut self, interface: usize, missed: u64) {
        self.untold[interface] += 1 + missed;
        self.state.counts[interface].missed.fetch_add(1, Ordering::Relaxed);
        if let Some(since) = &mut self.since {
            *since += 1;
        }
    }

    /// Writes what waits, or misses it.
    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return self.ring.mend();
        }
        let turned = if self.ring.exceeds(self.blocks.bytes().len()) { self.turn() } else { Ok(true) };
        let Appended { blocks, error } = match turned {
            Ok(true) => self.ring.append(self.blocks.bytes(), &self.ends),
            Ok(false) => Appended { blocks: 0, error: None },
            Err(error) => Appended { blocks: 0, error: Some(error) },
        };
        self.tell(error.as_ref());
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

    /// Goes on in the next file, or says that there is none.
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

    /// Says once that packets are missed, and once that they are not any more.
    fn tell(&mut self, error: Option<&io::Error>) {
        match (error, self.since) {
            (Some(error), None) => {
                self.since = Some(0);
                self.state.failures.fetch_add(1, Ordering::Relaxed);
                self.log.warn(format_args!(
                    "warning: capture: {error}; packets are not captured until it can be written again"
                ));
            }
            (None, Some(missed)) => {
                self.since = None;
                self.log.say(format_args!(
                    "capture: it can be written again; {missed} packets were not captured"
                ));
            }
            _ => {}
        }
        self.state.writable.store(self.since.is_none(), Ordering::Relaxed);
    }

    fn end(&mut self) -> io::Result<()> {
        let result = self.flush();
        let last = self.statistics();
        let appended = self.ring.append(last.bytes(), &[last.bytes().len()]);
        result?;
        appended.error.map_or(Ok(()), Err)
    }

    /// What a file ends with.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log;
    use crate::ring::tests::{Fate, Faulty, fates, packets};
    use pcap_file::pcapng::{Block, PcapNgReader};
    use perhop_core::Reason;
    use proptest::prelude::*;

    fn names() -> [String; 2] {
        ["in0".to_owned(), "out0".to_owned()]
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a capture is a file")]
    fn packets_reach_the_file_or_are_counted() {
        let path = std::env::temp_dir().join(format!("perhop-capture-{}.pcapng", std::process::id()));
        let file = ring::open(&path, 0o600).unwrap();
        let names = names();
        let setup = Setup { interfaces: &names, limit: 1 << 30, drops_only: true, longest: 1500 };
        let (mut capture, writing) =
            Capture::begin(vec![file], &setup, Clock::start(), Log::new().0).unwrap();
        let packet = [0x45; 700];
        capture.sent(0, &packet, Instant::ZERO);
        let many = 50_000;
        for _ in 0..many {
            capture.lost(1, &packet, Loss::Queue(Reason::Early), Instant::ZERO);
        }
        drop(capture);
        let (Told { written, missed, .. }, result) = writing.finish();
        result.unwrap();
        assert_eq!(written + missed, many, "only drops, and all of them");
        let file = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (in_file, told, statistics) = told_in(&file);
        assert_eq!((in_file, statistics), (written, vec![(0, 0), (many, missed)]));
        assert!(
            told[0] == 0 && told[1] <= missed,
            "what is missed behind the last packet has none to tell it"
        );
    }

    /// Packets in a file, how many of each interface they say were missed before them, and the sums at its end.
    fn told_in(file: &[u8]) -> (u64, [u64; 2], Vec<(u64, u64)>) {
        let mut reader = PcapNgReader::new(file).unwrap();
        let (mut packets, mut missed, mut statistics) = (0, [0; 2], Vec::new());
        let number = |text: &str, key: &str| {
            let (_, rest) = text.split_once(key)?;
            rest.split(')').next()?.parse::<u64>().ok()
        };
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::EnhancedPacket(packet) => {
                    let options = format!("{:?}", packet.options);
                    assert!(options.contains("dropped: early"), "{options}");
                    missed[packet.interface_id as usize] += number(&options, "DropCount(").unwrap_or(0);
                    packets += 1;
                }
                Block::InterfaceStatistics(found) => {
                    let options = format!("{:?}", found.options);
                    let of = |key| number(&options, key).unwrap();
                    statistics.push((of("IsbIfRecv("), of("IsbIfDrop(")));
                }
                _ => {}
            }
        }
        (packets, missed, statistics)
    }

    type Tested = Writer<Faulty, fn() -> u64>;

    fn writer(files: &[Faulty], limit: u64) -> (Tested, log::Backlog) {
        let header = Blocks::header(&names(), 1500);
        let ring = Ring::begin(files.to_vec(), header.bytes(), limit).unwrap();
        let (log, lines) = Log::new();
        (Writer::new(ring, Arc::default(), log, || 7), lines)
    }

    fn record(interface: u32, length: usize, missed: u64) -> Record {
        let why = Some(Loss::Queue(Reason::Early));
        Record { interface, time: 1, way: Way::Inbound, packet: vec![0x45; length], why, missed }
    }

    #[test]
    fn a_full_disk_is_told_once_and_the_capture_goes_on_when_there_is_room() {
        let file = Faulty::default();
        let (mut writer, lines) = writer(std::slice::from_ref(&file), 1 << 20);
        writer.add(&record(0, 100, 0));
        writer.flush().unwrap();
        // From the last to the first, each with a cut that goes well.
        let torn = [Fate::Well, Fate::Torn(50), Fate::Well, Fate::Fails];
        *file.fates.lock().unwrap() = torn.to_vec();
        for _ in 0..2 {
            (0..3).for_each(|_| writer.add(&record(1, 100, 0)));
            writer.flush().unwrap_err();
            assert_eq!(packets(&file.bytes.lock().unwrap()).len(), 1, "nothing torn is left");
        }
        assert!(!writer.state.told().writable);
        writer.add(&record(1, 100, 2));
        writer.flush().unwrap();
        writer.end().unwrap();
        let told = writer.state.told();
        assert_eq!(told, Told { written: 2, missed: 6, failures: 1, writable: true, files: 1 });
        assert_eq!(told_in(&file.bytes.lock().unwrap()), (2, [0, 8], vec![(1, 0), (7, 6)]));
        let [first, second] = <[_; 2]>::try_from(lines.lines()).unwrap();
        assert!(first.contains("packets are not captured until it can be written again"), "{first}");
        assert_eq!(second, "capture: it can be written again; 6 packets were not captured");
    }

    #[test]
    fn the_newest_packets_are_kept_in_files_of_limited_size() {
        let files = [Faulty::default(), Faulty::default()];
        let (mut writer, _) = writer(&files, 1000);
        for _ in 0..40 {
            writer.add(&record(0, 100, 0));
            writer.flush().unwrap();
        }
        writer.end().unwrap();
        let told = writer.state.told();
        assert!(told.written == 40 && told.missed == 0 && told.files > 6, "{told:?}");
        for file in files {
            let bytes = file.bytes.lock().unwrap();
            assert!(bytes.len() < 1200 && !packets(&bytes).is_empty(), "{}", bytes.len());
        }
    }

    #[test]
    fn a_single_file_keeps_the_first_packets_and_counts_the_others() {
        let file = Faulty::default();
        let (mut writer, lines) = writer(std::slice::from_ref(&file), 1000);
        for _ in 0..40 {
            writer.add(&record(1, 100, 0));
            writer.flush().unwrap();
        }
        writer.end().unwrap();
        let (in_file, _, statistics) = told_in(&file.bytes.lock().unwrap());
        let Told { written, missed, .. } = writer.state.told();
        assert!(written == in_file && written > 3 && written + missed == 40);
        assert_eq!(statistics.last(), Some(&(40, missed)));
        assert_eq!(
            lines.lines(),
            ["warning: capture: its only file is full; further packets are not captured"]
        );
    }

    proptest! {
        /// Whatever becomes of each write: the file is whole to its end, and each packet is in it, or counted as missed.
        #[test]
        fn no_packet_is_in_neither_the_file_nor_the_count(
            fates in fates(), batches in proptest::collection::vec(proptest::collection::vec(1_usize..200, 0..5), 1..30),
        ) {
            let file = Faulty::default();
            let (mut writer, _) = writer(std::slice::from_ref(&file), 1 << 20);
            *file.fates.lock().unwrap() = fates;
            let mut came = 0;
            for batch in batches {
                came += batch.len() as u64;
                for length in batch {
                    writer.add(&record(1, length, 0));
                }
                let _ = writer.flush();
            }
            file.fates.lock().unwrap().clear();
            writer.add(&record(1, 1, 0));
            writer.end().unwrap();
            let bytes = file.bytes.lock().unwrap();
            packets(&bytes);
            let Told { written, missed, .. } = writer.state.told();
            prop_assert_eq!(written + missed, came + 1);
            prop_assert_eq!(told_in(&bytes), (written, [0, missed], vec![(0, 0), (came + 1, missed)]));
        }
    }
}
