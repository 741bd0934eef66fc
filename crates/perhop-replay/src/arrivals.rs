//! The packets of a capture as arrivals: which ones, when, and what blocks see of them.

use std::io::Read;

use perhop_core::{Duration, Instant};
use perhop_live::Selector;
use perhop_live::wire::{self, Fields, Malformed};

use crate::capture::{Capture, CaptureError, Record};
use crate::error::ReplayError;
use crate::frame::{self, LINK_TYPES, NoPacket};

/// Which packets of a capture arrive, and how fast.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Packets earlier than this after the first one are passed over. This is time zero.
    pub from: Duration,
    /// The replay ends here, at the same clock.
    pub to: Option<Duration>,
    /// Which packets take part.
    pub packets: Selector,
    /// How much faster than captured.
    pub speed: Speed,
    /// What is whole of a file that is cut off is replayed.
    pub cut: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            from: Duration::ZERO,
            to: None,
            packets: Selector::default(),
            speed: Speed::default(),
            cut: false,
        }
    }
}

/// How much faster than captured packets arrive, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(u64);

impl Speed {
    /// This factor, rounded to millionths; `None` unless it lies between a millionth and a million.
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
    /// Its number in the file, from 1.
    pub number: u64,
    /// When, after the beginning of the replay.
    pub at: Instant,
    /// What its headers say.
    pub fields: Fields,
    /// All of its bytes; those that were not captured are 0.
    pub bytes: &'a [u8],
}

/// Packets of a capture by what became of them before they arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Packets of the file that were read.
    pub read: u64,
    /// Frames without an IP packet.
    pub not_ip: u64,
    /// Packets whose headers were not captured, or are not whole.
    pub truncated: u64,
    /// IPv4 packets whose header has a wrong checksum.
    pub checksum: u64,
    /// Packets outside the chosen time.
    pub outside: u64,
    /// Packets that were not chosen.
    pub unmatched: u64,
    /// Packets of which only the first bytes were captured, and which take part.
    pub shortened: u64,
    /// The file ends within a packet.
    pub cut: bool,
}

/// Reads the arrivals of a capture.
#[derive(Debug)]
pub struct Arrivals<R> {
    capture: Capture<R>,
    choice: Choice,
    clock: Clock,
    passed: Passed,
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
    fn time(&mut self, record: &Record<'_>, choice: &Choice) -> Result<Time, ReplayError> {
        let first = *self.first.get_or_insert(record.time);
        if record.time < self.last && record.number > 1 {
            let text = format!(
                "packet {} is {} earlier than packet {}; put packets in order: reordercap IN OUT",
                record.number,
                span(self.last - record.time),
                record.number - 1
            );
            return Err(ReplayError::capture(text));
        }
        self.last = record.time;
        let since = u64::try_from(record.time - first).unwrap_or(u64::MAX);
        let Some(since_start) = since.checked_sub(choice.from.as_nanos()) else { return Ok(Time::Before) };
        if choice.to.is_some_and(|to| since >= to.as_nanos()) {
            return Ok(Time::Behind);
        }
        let at = choice.speed.of(since_start);
        if at >= Duration::AGES.as_nanos() {
            let text = format!(
                "packet {} comes {} after the first; a replay takes up to 36 years: choose its end by `to`",
                record.number,
                span(record.time - first)
            );
            return Err(ReplayError::capture(text));
        }
        Ok(Time::Within(Instant::from_nanos(at)))
    }
}

/// A span of time in words.
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
            passed: Passed::default(),
            whole: vec![0; usize::from(u16::MAX)].into_boxed_slice(),
        })
    }

    /// The name of the file's format.
    pub fn format(&self) -> &'static str {
        self.capture.format()
    }

    /// What became of the packets that did not arrive.
    pub fn passed(&self) -> Passed {
        self.passed
    }

    /// The time of the first packet of the file, in nanoseconds since 1970, and the time that has passed since then.
    pub fn times(&self) -> (i128, Duration) {
        let first = self.clock.first.unwrap_or_default();
        (first, Duration::from_nanos(u64::try_from(self.clock.last - first).unwrap_or(0)))
    }

    /// The next arrival; `None` behind the last one.
    ///
    /// # Errors
    /// The capture cannot be read any further, its times go back, or its link type is not known.
    pub fn read_next(&mut self) -> Result<Option<Arrival<'_>>, ReplayError> {
        let Self { capture, choice, clock, passed, whole } = self;
        loop {
            let record = match capture.read_next() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(None),
                Err(CaptureError::Cut(packets)) if choice.cut && packets > 0 => {
                    passed.cut = true;
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            };
            passed.read += 1;
            let at = match clock.time(&record, choice)? {
                Time::Within(at) => at,
                Time::Before => {
                    passed.outside += 1;
                    continue;
                }
                Time::Behind => {
                    passed.outside += 1;
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
                Err(NoPacket::NotIp) | Ok(Err(Malformed::NotIp)) => passed.not_ip += 1,
                Err(NoPacket::Truncated) | Ok(Err(Malformed::Truncated)) => passed.truncated += 1,
                Ok(Err(Malformed::Checksum)) => passed.checksum += 1,
                Ok(Ok((fields, shortened))) => {
                    if !choice.packets.selects(&fields.tuple, fields.dscp) {
                        passed.unmatched += 1;
                        continue;
                    }
                    passed.shortened += u64::from(shortened);
                    let number = record.number;
                    let bytes = &whole[..usize::from(fields.length)];
                    return Ok(Some(Arrival { number, at, fields, bytes }));
                }
            }
        }
    }
}

type Parsed = Result<(Fields, bool), Malformed>;

/// Reads the IP packet of a frame into `whole`, with zeros for what was not captured of it.
fn read(record: &Record<'_>, whole: &mut [u8]) -> Result<Parsed, NoPacket> {
    let captured = frame::packet(record.link_type, record.bytes)?;
    let head = record.bytes.len() - captured.len();
    // An IPv6 header has 40 bytes, an IPv4 header as many as it says. Without them there is nothing to replay.
    let least = match captured.first().ok_or(NoPacket::Truncated)? {
        first if first >> 4 == 4 => usize::from(first & 15) * 4,
        first if first >> 4 == 6 => 40,
        _ => return Err(NoPacket::NotIp),
    };
    if captured.len() < least {
        return Err(NoPacket::Truncated);
    }
    let on_wire = (record.length as usize - head).min(whole.len());
    let kept = captured.len().min(on_wire);
    whole[..kept].copy_from_slice(&captured[..kept]);
    whole[kept..on_wire].fill(0);
    Ok(wire::parse(&whole[..on_wire]).map(|fields| (fields, usize::from(fields.length) > kept)))
}
