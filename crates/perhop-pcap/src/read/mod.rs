//! Reads capture files as a stream: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), of
//! either byte order.
//!
//! `pcap-file`, which the tests use, ignores the resolution of pcapng's times and refuses packets that are
//! longer than the snapshot length: those of nearly every capture of headers. This reader takes both, and
//! keeps one packet at a time, whatever lengths a file claims.

mod pcap;
mod pcapng;
mod source;

use std::fmt;
use std::io::{self, Read};

use self::pcap::Pcap;
use self::pcapng::PcapNg;
use self::source::{Short, Source};
use crate::numbers::SECTION;

/// The most bytes that are kept of a packet, however much was captured: the longest IP packet and its
/// link-layer headers.
const KEPT: usize = 65_535 + 128;

/// The most bytes that a packet of a pcap file may have, as in libpcap: its lengths are not checked in any
/// other way.
const LONGEST: u32 = 262_144;

/// A capture file.
#[derive(Debug)]
pub struct Capture<R> {
    source: Source<R>,
    format: Format,
    packets: u64,
    kept: Box<[u8]>,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The number of the packet in the file, from 1.
    pub number: u64,
    /// Nanoseconds since 1970; `None` in a simple packet block of pcapng, which has no time.
    pub time: Option<i128>,
    /// The number of the interface at which the packet was captured, within its section; 0 in pcap.
    pub interface: u32,
    /// The name of that interface, if the file has one.
    pub interface_name: Option<&'a str>,
    /// The type of the link-layer header of the packet.
    pub link_type: u16,
    /// The bytes of the packet, as far as they were captured, from the link-layer header on.
    pub bytes: &'a [u8],
    /// How many bytes the packet had on the wire.
    pub length: u32,
}

/// A packet whose first bytes lie in the buffer.
struct Found {
    time: Option<i128>,
    interface: u32,
    link_type: u16,
    captured: u32,
    length: u32,
}

/// Why a file cannot be read, or not any further.
#[derive(Debug)]
pub enum CaptureError {
    /// The system cannot read the file.
    Io(io::Error),
    /// The file is no capture; the text says what it is, or what it is not.
    NoCapture(String),
    /// The file ends within a packet or a block, after this many whole packets.
    Cut(u64),
    /// The file contradicts itself after this many whole packets; the text says how.
    Damaged(u64, String),
}

/// A file contradicts itself, or ends too early.
enum Problem {
    Short(Short),
    Damaged(String),
}

impl From<Short> for Problem {
    fn from(short: Short) -> Self {
        Self::Short(short)
    }
}

fn damaged<T>(what: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Damaged(what.into()))
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::NoCapture(what) => f.write_str(what),
            Self::Cut(packets) => write!(f, "is cut off after {}", whole(*packets)),
            Self::Damaged(packets, what) => write!(f, "is damaged after {}: {what}", whole(*packets)),
        }
    }
}

impl std::error::Error for CaptureError {}

fn whole(packets: u64) -> String {
    match packets {
        0 => "its header, before any whole packet".into(),
        1 => "1 whole packet".into(),
        more => format!("{more} whole packets"),
    }
}

/// The first bytes of files that are taken for captures.
const OTHERS: [([u8; 4], &str); 6] = [
    ([0x1f, 0x8b, 0x08, 0x00], "is compressed by gzip; unpack it by gunzip"),
    ([0x28, 0xb5, 0x2f, 0xfd], "is compressed by zstd; unpack it by unzstd"),
    ([0xfd, b'7', b'z', b'X'], "is compressed by xz; unpack it by unxz"),
    ([0xa1, 0xb2, 0xcd, 0x34], KUZNETZOV),
    ([0x34, 0xcd, 0xb2, 0xa1], KUZNETZOV),
    (*b"snoo", "is a capture of snoop; write it as pcapng: editcap -F pcapng IN OUT"),
];
const KUZNETZOV: &str = "is a pcap of a variant from Linux 2.2; write it as pcapng: editcap -F pcapng IN OUT";
const NEITHER: &str = "is no capture: it begins neither as pcap nor as pcapng; `tcpdump -w FILE` writes one";

impl<R: Read> Capture<R> {
    /// Reads what a file begins with.
    ///
    /// # Errors
    /// It is no capture, or ends at once.
    pub fn open(reader: R) -> Result<Self, CaptureError> {
        let mut source = Source::new(reader);
        let no_capture = |what: &str| Err(CaptureError::NoCapture(what.into()));
        if source.is_over().map_err(|short| error_of(short.into(), 0))? {
            return no_capture("is empty; `tcpdump -w FILE` writes a capture");
        }
        let magic = match source.array() {
            Ok(magic) => magic,
            Err(Short::Cut) => return no_capture(NEITHER),
            Err(Short::Io(error)) => return Err(CaptureError::Io(error)),
        };
        let format = if let Some(pcap) = Pcap::begin(magic, &mut source) {
            pcap.map(Format::Pcap)
        } else if magic == SECTION.to_be_bytes() {
            PcapNg::begin(&mut source).map(Format::PcapNg)
        } else {
            let gzip = |other: &[u8; 4]| other[..2] == [0x1f, 0x8b] && other[..2] == magic[..2];
            let other = OTHERS.iter().find(|(other, _)| *other == magic || gzip(other));
            return no_capture(other.map_or(NEITHER, |(_, what)| what));
        };
        let format = format.map_err(|problem| error_of(problem, 0))?;
        Ok(Self { source, format, packets: 0, kept: vec![0; KEPT].into_boxed_slice() })
    }

    /// Returns the format's name.
    pub fn format(&self) -> &'static str {
        match self.format {
            Format::Pcap(_) => "pcap",
            Format::PcapNg(_) => "pcapng",
        }
    }

    /// Reads the next packet; `None` at the end of the file.
    ///
    /// # Errors
    /// The file is cut off or damaged here, or cannot be read any further.
    pub fn read_next(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.source, &mut self.kept),
            Format::PcapNg(pcapng) => pcapng.next(&mut self.source, &mut self.kept),
        };
        let Some(found) = found.map_err(|problem| error_of(problem, self.packets))? else { return Ok(None) };
        self.packets += 1;
        let Found { time, interface, link_type, captured, length } = found;
        let bytes = &self.kept[..(captured as usize).min(KEPT)];
        let interface_name = match &self.format {
            Format::Pcap(_) => None,
            Format::PcapNg(pcapng) => pcapng.name(interface),
        };
        Ok(Some(Record { number: self.packets, time, interface, interface_name, link_type, bytes, length }))
    }

    /// Returns the names of the interfaces that the present section describes.
    pub fn interface_names(&self) -> Vec<&str> {
        match &self.format {
            Format::Pcap(_) => Vec::new(),
            Format::PcapNg(pcapng) => pcapng.names().flatten().collect(),
        }
    }
}

/// Keeps the first bytes of a packet and passes over the others.
fn keep<R: Read>(source: &mut Source<R>, kept: &mut [u8], captured: u32) -> Result<(), Short> {
    let here = (captured as usize).min(kept.len());
    source.fill(&mut kept[..here])?;
    source.skip(u64::from(captured) - here as u64)
}

fn error_of(problem: Problem, packets: u64) -> CaptureError {
    match problem {
        Problem::Short(Short::Cut) => CaptureError::Cut(packets),
        Problem::Short(Short::Io(error)) => CaptureError::Io(error),
        Problem::Damaged(what) => CaptureError::Damaged(packets, what),
    }
}
