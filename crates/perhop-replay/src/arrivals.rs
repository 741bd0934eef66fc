//! The packets of a capture as arrivals: which ones, when, and what blocks see of them.

use std::io::Read;

use perhop_core::{Duration, Instant};
use perhop_live::Selector;
use perhop_live::wire::{self, Fields, Malformed};
use perhop_pcap::frame::{self, LINK_TYPES, NoPacket};
use perhop_pcap::read::{Capture, CaptureError, Record};
use serde::Serialize;

use crate::error::ReplayError;

/// Which packets of a capture arrive, and how fast.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Packets earlier than this after the first one are passed over. This is time zero.
    pub from: Duration,
    /// The replay ends here, at the same clock.
    pub to: Option<Duration>,
    /// The name of the interface whose packets take part; `None` for all.
    pub interface: Option<String>,
    /// Which packets take part.
    pub packets: Selector,
    /// How much faster than captured.
    pub speed: Speed,
    /// Whether the whole packets of a file that is cut off are replayed.
    pub cut: bool,
}

/// How much faster than captured packets arrive, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(u64);

impl Speed {
    /// Returns this factor, rounded to millionths; `None` unless it lies between a millionth and a million.
    pub fn new(factor: f64) -> Option<Self> {
        let millionths = (factor * 1e6).round();
        (1.0..=1e12).contains(&millionths).then_some(Self(millionths as u64))
    }

    fn of(self, nanos: u64) -> u64 {
        let scaled = u128::from(nanos) * 1_000_000 / u128::from(self.0);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

impl Default for Speed {
    fn default() -> Self {
        Self(1_000_000)
    }
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// The number of the packet in the file, from 1.
    pub number: u64,
    /// When the packet arrives, after the beginning of the replay.
    pub at: Instant,
    /// What the headers of the packet say.
    pub fields: Fields,
    /// All of its bytes; those that were not captured are 0.
    pub bytes: &'a [u8],
}

/// What was read of a file: its packets, by what became of them before they arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CaptureRow {
    /// `pcap` or `pcapng`.
    pub format: &'static str,
    /// Packets that were read.
    pub packets: u64,
    /// The time of the first one, in seconds since 1970.
    pub first_s: f64,
    /// The time from the first to the last one that was read, in seconds.
    pub span_s: f64,
    /// Frames without an IP packet.
    pub not_ip: u64,
    /// Packets whose headers were not captured, or are not whole.
    pub truncated: u64,
    /// Packets whose headers say that they are longer than their frame on the wire.
    pub short: u64,
    /// IPv4 packets whose header has a wrong checksum.
    pub checksum: u64,
    /// Packets of more than 65,535 bytes.
    pub oversized: u64,
    /// Packets without a time.
    pub untimed: u64,
    /// Packets outside the chosen time.
    pub outside: u64,
    /// Packets that were not chosen.
    pub unmatched: u64,
    /// What was left out that was not outside or not chosen: how many packets, and what they are.
    pub left_out: Vec<(u64, &'static str)>,
    /// Packets that took part of which only the first bytes were captured.
    pub shortened: u64,
    /// IPv4 packets that took part and were captured before the network card filled in the checksum of their
    /// header.
    pub no_checksum: u64,
    /// Packets that took part and were captured before the network card filled in their length: that of the
    /// frame counts.
    pub no_length: u64,
    /// Packets that took part and were longer than 1500 bytes.
    pub long: u64,
    /// The length of the longest packet that took part.
    pub longest: u16,
    /// The file ends within a packet.
    pub cut: bool,
}

/// The length of the longest IP packet in an ordinary Ethernet frame. Longer ones are of a network with jumbo
/// frames, or several segments that a network card or a kernel has yet to divide, or has joined.
pub const ETHERNET: u16 = 1500;

/// Reads the arrivals of a capture.
#[derive(Debug)]
pub struct Arrivals<R> {
    capture: Capture<R>,
    choice: Choice,
    clock: Clock,
    row: CaptureRow,
    /// The interface of the first packet that arrived.
    interface: Option<u32>,
    /// Packets of several interfaces have arrived.
    several: bool,
    /// A packet that was not captured as a whole, with zeros for the rest.
    whole: Box<[u8]>,
}

/// What the times of the packets so far say.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    first: Option<i128>,
    last: i128,
}

/// Where a packet's time lies.
enum Time {
    Before,
    Within(Instant),
    Behind,
}

impl Clock {
    fn time(&mut self, number: u64, time: i128, choice: &Choice) -> Result<Time, ReplayError> {
        let begun = self.first.is_some();
        let first = *self.first.get_or_insert(time);
        if begun && time < self.last {
            let text = format!(
                "packet {number} is {} earlier than packet {}; put packets in order: reordercap IN OUT",
                span(self.last - time),
                number - 1
            );
            return Err(ReplayError::capture(text));
        }
        self.last = time;
        let since = u64::try_from(time - first).unwrap_or(u64::MAX);
        let Some(since_start) = since.checked_sub(choice.from.as_nanos()) else { return Ok(Time::Before) };
        if choice.to.is_some_and(|to| since >= to.as_nanos()) {
            return Ok(Time::Behind);
        }
        let at = choice.speed.of(since_start);
        if at >= Duration::AGES.as_nanos() {
            let text = format!(
                "packet {number} comes {} after the first; a replay takes up to 36 years: choose its end by `to`",
                span(time - first)
            );
            return Err(ReplayError::capture(text));
        }
        Ok(Time::Within(Instant::from_nanos(at)))
    }
}

/// Returns a span of time in words.
fn span(nanos: i128) -> String {
    match u64::try_from(nanos) {
        Ok(nanos) => Duration::from_nanos(nanos).to_string(),
        Err(_) => format!("{}s", nanos / 1_000_000_000),
    }
}

impl<R: Read> Arrivals<R> {
    /// Reads the beginning of a capture.
    ///
    /// # Errors
    /// It is none.
    pub fn open(reader: R, choice: Choice) -> Result<Self, ReplayError> {
        Ok(Self {
            capture: Capture::open(reader)?,
            choice,
            clock: Clock::default(),
            row: CaptureRow::default(),
            interface: None,
            several: false,
            whole: vec![0; usize::from(u16::MAX)].into_boxed_slice(),
        })
    }

    /// Returns the names of the interfaces that the file describes.
    pub fn interface_names(&self) -> Vec<&str> {
        self.capture.interface_names()
    }

    /// Returns whether packets of several interfaces have arrived.
    pub fn has_several_interfaces(&self) -> bool {
        self.several
    }

    /// Returns what was read of the file so far.
    pub fn row(&self) -> CaptureRow {
        let Clock { first, last } = self.clock;
        let first = first.unwrap_or_default();
        let span = Duration::from_nanos(u64::try_from(last - first).unwrap_or(0));
        CaptureRow {
            format: self.capture.format(),
            first_s: first as f64 / 1e9,
            span_s: span.as_secs_f64(),
            left_out: self.row.left_out(),
            ..self.row.clone()
        }
    }

    /// Reads the next arrival; `None` behind the last one.
    ///
    /// # Errors
    /// The capture cannot be read any further, its times go back, or its link type is not known.
    pub fn read_next(&mut self) -> Result<Option<Arrival<'_>>, ReplayError> {
        let Self { capture, choice, clock, row, interface, several, whole } = self;
        loop {
            let record = match capture.read_next() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(None),
                Err(CaptureError::Cut(packets)) if choice.cut && packets > 0 => {
                    row.cut = true;
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            };
            row.packets += 1;
            let Some(time) = record.time else {
                row.untimed += 1;
                continue;
            };
            let at = match clock.time(record.number, time, choice)? {
                Time::Within(at) => at,
                Time::Before => {
                    row.outside += 1;
                    continue;
                }
                Time::Behind => {
                    row.outside += 1;
                    return Ok(None);
                }
            };
            match read(&record, whole) {
                Err(NoPacket::LinkType) => {
                    return Err(ReplayError::capture(format!(
                        "packet {} is of link type {}, which is not read; those that are: {LINK_TYPES}",
                        record.number, record.link_type
                    )));
                }
                Err(NoPacket::NotIp) | Ok(Err(Unread::Malformed(Malformed::NotIp))) => row.not_ip += 1,
                Err(NoPacket::Truncated) | Ok(Err(Unread::Malformed(Malformed::Truncated))) => {
                    row.truncated += 1;
                }
                Ok(Err(Unread::Short)) => row.short += 1,
                Ok(Err(Unread::Malformed(Malformed::Checksum))) => row.checksum += 1,
                Ok(Err(Unread::Oversized)) => row.oversized += 1,
                Ok(Ok((fields, filled))) => {
                    let wanted = choice.interface.as_deref();
                    let here = wanted.is_none_or(|wanted| record.interface_name == Some(wanted));
                    if !here || !choice.packets.selects(&fields) {
                        row.unmatched += 1;
                        continue;
                    }
                    row.take(fields.length, filled);
                    *several |= *interface.get_or_insert(record.interface) != record.interface;
                    let number = record.number;
                    let bytes = &whole[..usize::from(fields.length)];
                    return Ok(Some(Arrival { number, at, fields, bytes }));
                }
            }
        }
    }
}

impl CaptureRow {
    /// Counts a packet of this length that takes part.
    fn take(&mut self, length: u16, filled: Filled) {
        self.shortened += u64::from(filled.shortened);
        self.no_checksum += u64::from(filled.checksum);
        self.no_length += u64::from(filled.length);
        self.long += u64::from(length > ETHERNET);
        self.longest = self.longest.max(length);
    }

    /// Returns how many packets of each kind were left out, none of them by choice.
    fn left_out(&self) -> Vec<(u64, &'static str)> {
        let all = [
            (self.not_ip, "without IP"),
            (self.truncated, "without whole headers"),
            (self.short, "longer by their headers than on the wire"),
            (self.checksum, "with a wrong IPv4 checksum"),
            (self.oversized, "of more than 65,535 bytes"),
            (self.untimed, "without a time (simple packet blocks)"),
        ];
        all.into_iter().filter(|(packets, _)| *packets > 0).collect()
    }
}

/// What was filled in of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Filled {
    /// Zeros, for what was not captured.
    shortened: bool,
    length: bool,
    checksum: bool,
}

/// Why the IP packet of a frame is not replayed.
#[derive(Clone, Copy, Debug)]
enum Unread {
    Malformed(Malformed),
    /// The packet is longer by its header than on the wire.
    Short,
    Oversized,
}

type Parsed = Result<(Fields, Filled), Unread>;

/// Reads the IP packet of a frame into `whole`, with zeros for what was not captured of it.
fn read(record: &Record<'_>, whole: &mut [u8]) -> Result<Parsed, NoPacket> {
    let captured = frame::packet(record.link_type, record.bytes)?;
    let head = record.bytes.len() - captured.len();
    // An IPv6 header has 40 bytes, an IPv4 header as many as it says. Without them there is nothing to
    // replay.
    let header = match captured.first().ok_or(NoPacket::Truncated)? {
        first if first >> 4 == 4 => usize::from(first & 15) * 4,
        first if first >> 4 == 6 => IPV6_HEADER,
        _ => return Err(NoPacket::NotIp),
    };
    if captured.len() < header {
        return Err(NoPacket::Truncated);
    }
    let on_wire = record.length as usize - head;
    let room = on_wire.min(whole.len());
    let kept = captured.len().min(room);
    whole[..kept].copy_from_slice(&captured[..kept]);
    whole[kept..room].fill(0);
    let filled = match fill_in(whole, header, on_wire) {
        Ok(filled) => filled,
        Err(unread) => return Ok(Err(unread)),
    };
    Ok(wire::parse(&whole[..room])
        .map(|fields| (fields, Filled { shortened: usize::from(fields.length) > kept, ..filled }))
        .map_err(Unread::Malformed))
}

/// The length of an IPv6 header.
const IPV6_HEADER: usize = 40;
/// The most bytes that a frame without data has in place of an IP packet, so that it is as long as Ethernet
/// asks for.
const PADDED: usize = 46;
/// What follows an IPv6 header that says no length: TCP, UDP, or Hop-by-Hop options with that of a jumbogram
/// (RFC 2675).
const WITHOUT_LENGTH: [u8; 3] = [0, 6, 17];

/// Fills in what a network card does after a packet was captured at a host: the length of one that it is to
/// divide (segmentation offload), and the checksum of an IPv4 header. The header is there as a whole.
fn fill_in(packet: &mut [u8], header: usize, on_wire: usize) -> Result<Filled, Unread> {
    let mut filled = Filled::default();
    if packet[0] >> 4 == 4 && header >= 20 {
        let length = u16::from_be_bytes([packet[2], packet[3]]);
        let right = wire::checksum(&packet[..header]) == 0;
        let empty = packet[10..12] == [0, 0];
        filled.length = length == 0;
        filled.checksum = !right && empty;
        if filled.length {
            let length = u16::try_from(on_wire).map_err(|_| Unread::Oversized)?;
            packet[2..4].copy_from_slice(&length.to_be_bytes());
        } else if usize::from(length) > on_wire {
            return Err(Unread::Short);
        }
        if (right || empty) && (filled.length || filled.checksum) {
            packet[10..12].fill(0);
            let sum = wire::checksum(&packet[..header]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    } else if packet[0] >> 4 == 6 {
        let payload = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
        let length = match (payload, packet[6]) {
            (0, next) if WITHOUT_LENGTH.contains(&next) && on_wire > PADDED => {
                filled.length = true;
                on_wire
            }
            _ => IPV6_HEADER + payload,
        };
        if length > usize::from(u16::MAX) {
            return Err(Unread::Oversized);
        }
        if length > on_wire {
            return Err(Unread::Short);
        }
        packet[4..6].copy_from_slice(&((length - IPV6_HEADER) as u16).to_be_bytes());
    }
    Ok(filled)
}
