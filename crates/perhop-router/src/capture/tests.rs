//! A capture under disks that fail, fill and recover.

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
        Capture::begin(vec![file], &setup, Clock::start(), Log::new(log::WAITING).0).unwrap();
    let packet = [0x45; 700];
    capture.sent(0, &packet, Instant::ZERO);
    let many = 50_000;
    for _ in 0..many {
        capture.lost(1, &packet, Loss::Dropped(Reason::Early), Instant::ZERO);
    }
    drop(capture);
    let (CaptureStatus { written, missed, .. }, result) = writing.finish();
    result.unwrap();
    assert_eq!(written + missed, many, "only drops, and all of them");
    let file = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (in_file, reported, statistics) = read_back(&file);
    assert_eq!((in_file, statistics), (written, vec![(0, 0), (many, missed)]));
    assert!(
        reported[0] == 0 && reported[1] <= missed,
        "no later packet reports those missed behind the last one"
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a capture is a file")]
fn times_never_go_back() {
    let path = std::env::temp_dir().join(format!("perhop-capture-{}-times.pcapng", std::process::id()));
    let file = ring::open(&path, 0o600).unwrap();
    let names = names();
    let setup = Setup { interfaces: &names, limit: 1 << 30, drops_only: false, longest: 1500 };
    let (mut capture, writing) =
        Capture::begin(vec![file], &setup, Clock::start(), Log::new(log::WAITING).0).unwrap();
    capture.sent(0, &[0x45; 40], Instant::from_nanos(9000));
    capture.lost(1, &[0x45; 40], Loss::Dropped(Reason::Early), Instant::from_nanos(8000));
    capture.sent(0, &[0x45; 40], Instant::from_nanos(9500));
    drop(capture);
    writing.finish().1.unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut reader = perhop_pcap::read::Capture::open(file).unwrap();
    let mut times = Vec::new();
    while let Some(record) = reader.read_next().unwrap() {
        times.push(record.time.unwrap());
    }
    assert_eq!(times.iter().map(|time| time - times[0]).collect::<Vec<_>>(), [0, 0, 500]);
}

/// Packets in a file, how many of each interface they say were missed before them, and the sums at its end.
fn read_back(file: &[u8]) -> (u64, [u64; 2], Vec<(u64, u64)>) {
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
    let header = Blocks::header("perhop-router", &names(), 1500);
    let ring = Ring::begin(files.to_vec(), header.bytes(), limit).unwrap();
    let (log, lines) = Log::new(log::WAITING);
    (Writer::new(ring, Arc::default(), log, || 7), lines)
}

fn record(interface: u32, length: usize, missed: u64) -> Record {
    let why = Some(Loss::Dropped(Reason::Early));
    Record {
        interface,
        time: 1,
        direction: PacketDirection::Inbound,
        packet: vec![0x45; length],
        why,
        missed,
    }
}

#[test]
fn a_full_disk_is_reported_once_and_the_capture_goes_on_when_there_is_room() {
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
    assert!(!writer.state.status().writable);
    writer.add(&record(1, 100, 2));
    writer.flush().unwrap();
    writer.end().unwrap();
    let status = writer.state.status();
    assert_eq!(status, CaptureStatus { written: 2, missed: 6, failures: 1, writable: true, files: 1 });
    assert_eq!(read_back(&file.bytes.lock().unwrap()), (2, [0, 8], vec![(1, 0), (7, 6)]));
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
    let status = writer.state.status();
    assert!(status.written == 40 && status.missed == 0 && status.files > 6, "{status:?}");
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
    let (in_file, _, statistics) = read_back(&file.bytes.lock().unwrap());
    let CaptureStatus { written, missed, .. } = writer.state.status();
    assert!(written == in_file && written > 3 && written + missed == 40);
    assert_eq!(statistics.last(), Some(&(40, missed)));
    assert_eq!(lines.lines(), ["warning: capture: its only file is full; further packets are not captured"]);
}

proptest! {
    /// Whatever becomes of each write: the file is whole to its end, and each packet is in it, or counted as
    /// missed.
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
        let CaptureStatus { written, missed, .. } = writer.state.status();
        prop_assert_eq!(written + missed, came + 1);
        prop_assert_eq!(read_back(&bytes), (written, [0, missed], vec![(0, 0), (came + 1, missed)]));
    }
}
