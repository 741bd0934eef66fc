//! Packets into a capture file, by a thread of its own: what the file is too slow for is counted and missed.

#![expect(clippy::disallowed_types, reason = "packets of a capture carry the time of the wall")]

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use perhop_core::Instant;
use perhop_live::{Clock, Loss};

use crate::pcapng::{Captured, Way, Writer};

/// How many packets may wait for the file.
const WAITING: usize = 4096;

/// What has come is in the file after this time at the latest.
const FLUSH: Duration = Duration::from_millis(500);

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
    counts: Arc<[Counts; 2]>,
}

/// Packets of one interface.
#[derive(Default)]
struct Counts {
    written: AtomicU64,
    missed: AtomicU64,
}

/// The file's end.
pub struct Writing(JoinHandle<io::Result<()>>, Arc<[Counts; 2]>);

impl Capture {
    /// Begins a capture into a file, as the kernel or the user has opened it.
    ///
    /// # Errors
    /// The file's.
    pub fn begin(
        file: File,
        interfaces: &[String; 2],
        drops_only: bool,
        longest: u16,
        clock: Clock,
    ) -> io::Result<(Self, Writing)> {
        let writer = Writer::new(BufWriter::new(file), interfaces, u32::from(longest))?;
        let (records, to_write) = mpsc::sync_channel(WAITING);
        let (done, spare) = mpsc::sync_channel(WAITING + 1);
        (0..WAITING).for_each(|_| drop(done.try_send(Vec::with_capacity(usize::from(longest)))));
        let counts: Arc<[Counts; 2]> = Arc::default();
        let of_writer = Arc::clone(&counts);
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let epoch = u64::try_from(since_1970.as_nanos()).unwrap_or(0).saturating_sub(clock.now().as_nanos());
        let thread = thread::Builder::new().name("capture".into());
        let end = move || Instant::from_nanos(epoch + clock.now().as_nanos()).as_nanos();
        let thread = thread.spawn(move || write(writer, &to_write, &done, &of_writer, end))?;
        let ours = Self { drops_only, epoch, records, spare, missed: [0; 2], counts: Arc::clone(&counts) };
        Ok((ours, Writing(thread, counts)))
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
            self.counts[device].missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Packets written, and those missed.
    pub fn counts(&self) -> (u64, u64) {
        sum(&self.counts)
    }
}

impl Writing {
    /// Waits until everything is in the file, once the run loop's end is gone; tells packets written, and those missed.
    ///
    /// # Errors
    /// The file's.
    pub fn finish(self) -> io::Result<(u64, u64)> {
        self.0.join().map_err(|_| io::Error::other("the thread that writes it has failed"))??;
        Ok(sum(&self.1))
    }
}

fn sum(counts: &[Counts; 2]) -> (u64, u64) {
    let all = |pick: fn(&Counts) -> &AtomicU64| counts.iter().map(|c| pick(c).load(Ordering::Relaxed)).sum();
    (all(|counts| &counts.written), all(|counts| &counts.missed))
}

fn write(
    mut writer: Writer<BufWriter<File>>,
    records: &Receiver<Record>,
    done: &SyncSender<Vec<u8>>,
    counts: &[Counts; 2],
    end: impl Fn() -> u64,
) -> io::Result<()> {
    loop {
        match records.recv_timeout(FLUSH) {
            Ok(Record { interface, time, way, packet, why, missed }) => {
                let comment = why.map(|why| format!("dropped: {}", why.name()));
                let comment = comment.as_deref();
                writer.packet(&Captured { interface, time, way, packet: &packet, comment, missed })?;
                counts[interface as usize].written.fetch_add(1, Ordering::Relaxed);
                let _ = done.try_send(packet);
            }
            Err(RecvTimeoutError::Timeout) => writer.flush()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    for (interface, counts) in counts.iter().enumerate() {
        let [written, missed] = [&counts.written, &counts.missed].map(|count| count.load(Ordering::Relaxed));
        writer.statistics(interface as u32, end(), written + missed, missed)?;
    }
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcapng::{Block, PcapNgReader};
    use perhop_core::aqm::Reason;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a capture is a file")]
    fn packets_reach_the_file_or_are_counted() {
        let path = std::env::temp_dir().join(format!("perhop-capture-{}.pcapng", std::process::id()));
        let names = ["in0".to_owned(), "out0".to_owned()];
        let file = File::create(&path).unwrap();
        let (mut capture, writing) = Capture::begin(file, &names, true, 1500, Clock::start()).unwrap();
        let packet = [0x45; 700];
        capture.sent(0, &packet, Instant::ZERO);
        let many = 50_000;
        for _ in 0..many {
            capture.lost(1, &packet, Loss::Queue(Reason::Early), Instant::ZERO);
        }
        drop(capture);
        let (written, missed) = writing.finish().unwrap();
        assert_eq!(written + missed, many, "only drops, and all of them");
        let file = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let (mut packets, mut statistics) = (0, Vec::new());
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::EnhancedPacket(packet) => {
                    assert_eq!((packet.interface_id, packet.data.len()), (1, 700));
                    assert!(format!("{:?}", packet.options).contains("dropped: early"));
                    packets += 1;
                }
                Block::InterfaceStatistics(found) => statistics.push(format!("{:?}", found.options)),
                _ => {}
            }
        }
        assert_eq!(packets, written);
        assert_eq!(statistics[1], format!("[IsbIfRecv({many}), IsbIfDrop({missed})]"));
    }
}
