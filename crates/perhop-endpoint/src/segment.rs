//! TCP segments as bytes (RFC 9293, section 3.1): parsing and writing.
//!
//! Parsing is total: whatever the bytes, it returns a segment or an error. A segment with a wrong checksum is
//! an error.

use std::net::{IpAddr, SocketAddr};
use std::ops::BitOr;

use etherparse::checksum::Sum16BitWords;
use etherparse::{IpNumber, IpSlice, TcpHeaderSlice};
use perhop_core::{Dscp, Ecn};

/// Control bits of a segment, in their places of the header's 13th and 14th byte. `AE` is the bit that RFC
/// 9768 uses, before it `NS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(1);
    /// The sequence number is the initial one of a connection.
    pub const SYN: Self = Self(1 << 1);
    /// Resets the connection.
    pub const RST: Self = Self(1 << 2);
    /// The data should reach the application at once.
    pub const PSH: Self = Self(1 << 3);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(1 << 4);
    /// ECN-Echo (RFC 3168).
    pub const ECE: Self = Self(1 << 6);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(1 << 7);
    /// Accurate ECN (RFC 9768).
    pub const AE: Self = Self(1 << 8);
    /// No bit.
    pub const NONE: Self = Self(0);

    /// Returns whether all bits of the other are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these bits if `so`, else none.
    #[must_use]
    pub const fn when(self, so: bool) -> Self {
        if so { self } else { Self::NONE }
    }

    /// Returns the ACE field (RFC 9768, section 3.2.2): AE, CWR and ECE, the highest bit first.
    pub const fn ace(self) -> u32 {
        (self.0 >> 6 & 7) as u32
    }

    /// Returns the bits of an ACE field of this value.
    pub const fn of_ace(field: u32) -> Self {
        Self(((field & 7) << 6) as u16)
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The most SACK blocks for which a segment has room (RFC 2018, section 3).
pub const MOST_RANGES: usize = 4;

/// Ranges of sequence numbers: the first, and one past the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    all: [(u32, u32); MOST_RANGES],
    count: usize,
}

impl Ranges {
    /// Appends a range, if there is room.
    pub fn push(&mut self, range: (u32, u32)) {
        if let Some(place) = self.all.get_mut(self.count) {
            *place = range;
            self.count += 1;
        }
    }

    /// Returns all of them in order.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.all[..self.count]
    }
}

/// The options that an endpoint knows. It ignores others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size (MSS) that the sender of this SYN can receive (RFC 9293, section 3.7.1).
    pub most: Option<u16>,
    /// Window scale: the shift count of the sender's windows (RFC 7323, section 2).
    pub scale: Option<u8>,
    /// Selective acknowledgements may be sent (RFC 2018, section 2).
    pub selective: bool,
    /// Timestamps: the sender's, and the one that it echoes (RFC 7323, section 3).
    pub times: Option<(u32, u32)>,
    /// SACK blocks (RFC 2018), the first of which may be a D-SACK block (RFC 2883).
    pub ranges: Ranges,
}

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// The codepoint of the packet.
    pub dscp: Dscp,
    /// The ECN field of the packet.
    pub ecn: Ecn,
    /// Sequence number of the first byte.
    pub sequence: u32,
    /// The acknowledgement number, valid with `ACK`.
    pub acknowledged: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window field of the header, before scaling.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// Data.
    pub data: &'a [u8],
}

/// Why a packet could not be parsed as a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSegment {
    /// No IP packet, or a part of one.
    #[error("no whole IP packet")]
    Packet,
    /// Another protocol than TCP.
    #[error("not TCP")]
    Protocol,
    /// Headers that contradict themselves.
    #[error("a header that its own lengths contradict")]
    Header,
    /// A checksum that is wrong.
    #[error("a wrong checksum")]
    Checksum,
}

const IPV4: usize = 20;
const IPV6: usize = 40;
const TCP: usize = 20;
const PROTOCOL: u8 = 6;

impl<'a> Segment<'a> {
    /// Parses an IP packet that carries a segment. Bytes beyond the packet's own length are ignored.
    ///
    /// # Errors
    /// Why the packet carries no valid segment.
    pub fn parse(packet: &'a [u8]) -> Result<Self, NoSegment> {
        let ip = IpSlice::from_slice(packet).map_err(|_| NoSegment::Packet)?;
        let class = match &ip {
            IpSlice::Ipv4(ip) => {
                if Sum16BitWords::new().add_slice(ip.header().slice()).ones_complement() != 0 {
                    return Err(NoSegment::Checksum);
                }
                ip.header().slice()[1]
            }
            IpSlice::Ipv6(ip) => ip.header().traffic_class(),
        };
        let upper = ip.payload();
        if upper.fragmented {
            return Err(NoSegment::Packet);
        }
        if upper.ip_number != IpNumber::TCP {
            return Err(NoSegment::Protocol);
        }
        let bytes = upper.payload;
        let header = TcpHeaderSlice::from_slice(bytes).map_err(|_| NoSegment::Header)?;
        let (source, destination) = (ip.source_addr(), ip.destination_addr());
        if checksum(source, destination, bytes) != 0 {
            return Err(NoSegment::Checksum);
        }
        let [_, _, _, _, _, _, _, _, _, _, _, _, high, low, ..] = *header.slice() else {
            return Err(NoSegment::Header);
        };
        Ok(Self {
            source: SocketAddr::new(source, header.source_port()),
            destination: SocketAddr::new(destination, header.destination_port()),
            dscp: Dscp::new(class >> 2).unwrap_or_default(),
            ecn: [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][usize::from(class & 3)],
            sequence: header.sequence_number(),
            acknowledged: header.acknowledgment_number(),
            flags: Flags(u16::from_be_bytes([high & 1, low])),
            window: header.window_size(),
            options: read_options(header.options()),
            data: &bytes[header.slice().len()..],
        })
    }

    /// Returns the bytes of the IP and TCP headers.
    pub fn headers(&self) -> usize {
        let ip = if self.source.is_ipv4() { IPV4 } else { IPV6 };
        ip + TCP + write_options(&self.options, self.flags).1
    }

    /// Writes the packet, with `length` bytes of data that `fill` writes instead of [`data`](Self::data). An
    /// IPv4 header has the identification `number` and forbids fragmentation. Returns the packet's length;
    /// `None` if `room` is too small, which is then unchanged.
    pub fn write(
        &self,
        number: u16,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
        room: &mut [u8],
    ) -> Option<usize> {
        let (options, options_length) = write_options(&self.options, self.flags);
        let header = TCP + options_length;
        let class = self.dscp.get() << 2 | self.ecn as u8;
        let ip = if self.source.is_ipv4() { IPV4 } else { IPV6 };
        let total = ip + header + length;
        if total > room.len() || total > usize::from(u16::MAX) {
            return None;
        }
        let (before, rest) = room[..total].split_at_mut(ip);
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                before[..2].copy_from_slice(&[0x45, class]);
                before[2..4].copy_from_slice(&(total as u16).to_be_bytes());
                before[4..6].copy_from_slice(&number.to_be_bytes());
                before[6..12].copy_from_slice(&[0x40, 0, 64, PROTOCOL, 0, 0]);
                before[12..16].copy_from_slice(&from.octets());
                before[16..20].copy_from_slice(&to.octets());
                let sum = Sum16BitWords::new().add_slice(before).ones_complement();
                before[10..12].copy_from_slice(&sum.to_ne_bytes());
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                before[..4].copy_from_slice(&[0x60 | class >> 4, class << 4, 0, 0]);
                before[4..6].copy_from_slice(&((header + length) as u16).to_be_bytes());
                before[6..8].copy_from_slice(&[PROTOCOL, 64]);
                before[8..24].copy_from_slice(&from.octets());
                before[24..40].copy_from_slice(&to.octets());
            }
            _ => return None,
        }
        rest[..2].copy_from_slice(&self.source.port().to_be_bytes());
        rest[2..4].copy_from_slice(&self.destination.port().to_be_bytes());
        rest[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        rest[8..12].copy_from_slice(&self.acknowledged.to_be_bytes());
        let bits = ((header as u16 / 4) << 12) | self.flags.0;
        rest[12..14].copy_from_slice(&bits.to_be_bytes());
        rest[14..16].copy_from_slice(&self.window.to_be_bytes());
        rest[16..20].fill(0);
        rest[TCP..header].copy_from_slice(&options[..options_length]);
        fill(&mut rest[header..]);
        let sum = checksum(self.source.ip(), self.destination.ip(), rest);
        rest[16..18].copy_from_slice(&sum.to_be_bytes());
        Some(total)
    }
}

/// Returns the checksum of a segment (RFC 9293, section 3.1): 0 over one that carries the right one.
fn checksum(source: IpAddr, destination: IpAddr, segment: &[u8]) -> u16 {
    let mut sum = match (source, destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            Sum16BitWords::new().add_4bytes(from.octets()).add_4bytes(to.octets())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            Sum16BitWords::new().add_16bytes(from.octets()).add_16bytes(to.octets())
        }
        _ => Sum16BitWords::new(),
    };
    let length = (segment.len() as u32).to_be_bytes();
    sum.add_4bytes(length).add_2bytes([0, PROTOCOL]).add_slice(segment).ones_complement().to_be()
}

/// Parses options up to the first with an invalid length; ignores unknown ones.
fn read_options(mut bytes: &[u8]) -> Options {
    let mut options = Options::default();
    loop {
        match *bytes {
            [] | [0, ..] => return options,
            [1, ..] => bytes = &bytes[1..],
            [kind, length, ..] if length >= 2 && usize::from(length) <= bytes.len() => {
                let (option, rest) = bytes.split_at(usize::from(length));
                read_option(kind, &option[2..], &mut options);
                bytes = rest;
            }
            _ => return options,
        }
    }
}

fn read_option(kind: u8, value: &[u8], options: &mut Options) {
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    match (kind, value.len()) {
        (2, 2) => options.most = Some(word(value) as u16),
        (3, 1) => options.scale = Some(value[0]),
        (4, 0) => options.selective = true,
        (5, 8 | 16 | 24 | 32) => {
            options.ranges = Ranges::default();
            for range in value.chunks_exact(8) {
                options.ranges.push((word(&range[..4]), word(&range[4..])));
            }
        }
        (8, 8) => options.times = Some((word(&value[..4]), word(&value[4..]))),
        _ => {}
    }
}

/// Room for all options of a segment (RFC 9293, section 3.1).
type OptionBytes = [u8; 40];

/// Returns the options as bytes, in the order of Linux, and their length, a multiple of four.
fn write_options(options: &Options, flags: Flags) -> (OptionBytes, usize) {
    let mut bytes = [1; 40]; // The option "no operation" is the padding.
    let mut length = 0;
    let mut put = |option: &[u8]| {
        let end = length + option.len();
        if end <= bytes.len() {
            bytes[length..end].copy_from_slice(option);
            length = end;
        }
    };
    if flags.has(Flags::SYN) {
        if let Some(most) = options.most {
            let [high, low] = most.to_be_bytes();
            put(&[2, 4, high, low]);
        }
        if options.selective {
            put(&[1, 1, 4, 2]);
        }
        if let Some(scale) = options.scale {
            put(&[1, 3, 3, scale]);
        }
    }
    if let Some((value, echo)) = options.times {
        let mut option = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        option[4..8].copy_from_slice(&value.to_be_bytes());
        option[8..].copy_from_slice(&echo.to_be_bytes());
        put(&option);
    }
    let ranges = options.ranges.as_slice();
    // Beside a timestamp there is room for three (RFC 2018, section 3).
    let ranges = &ranges[..ranges.len().min(if options.times.is_some() { 3 } else { MOST_RANGES })];
    if !ranges.is_empty() {
        put(&[1, 1, 5, 2 + 8 * ranges.len() as u8]);
        for (first, end) in ranges {
            put(&first.to_be_bytes());
            put(&end.to_be_bytes());
        }
    }
    (bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    fn segment(six: bool, data: &[u8]) -> Segment<'_> {
        let ends =
            if six { ["[fd55::3]:20000", "[fd55::2]:5001"] } else { ["10.55.0.3:20000", "10.55.0.2:5001"] };
        let [source, destination] = ends.map(|end| end.parse().unwrap());
        Segment {
            source,
            destination,
            dscp: Dscp::new(10).unwrap(),
            ecn: Ecn::Capable0,
            sequence: 0xffff_fff0,
            acknowledged: 7,
            flags: Flags::ACK | Flags::PSH | Flags::AE,
            window: 512,
            options: Options { times: Some((1, 2)), ..Options::default() },
            data,
        }
    }

    fn written(segment: &Segment<'_>) -> Vec<u8> {
        let mut room = vec![0; 2000];
        let fill = |into: &mut [u8]| into.copy_from_slice(segment.data);
        let length = segment.write(1, segment.data.len(), fill, &mut room).unwrap();
        room.truncate(length);
        room
    }

    #[test]
    fn another_writer_and_this_one_write_the_same_bytes() {
        for six in [false, true] {
            let ours = Segment {
                dscp: Dscp::DEFAULT,
                ecn: Ecn::NotCapable,
                flags: Flags::ACK | Flags::PSH,
                options: Options::default(),
                ..segment(six, &[1, 2, 3])
            };
            let builder = match (ours.source.ip(), ours.destination.ip()) {
                (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), 64),
                (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), 64),
                _ => unreachable!(),
            };
            let builder = builder.tcp(20_000, 5001, ours.sequence, ours.window).ack(7).psh();
            let mut theirs = Vec::new();
            builder.write(&mut theirs, &[1, 2, 3]).unwrap();
            let mut bytes = written(&ours);
            if !six {
                // The numbers of the packets, and so the headers' checksums, differ.
                bytes[4..6].copy_from_slice(&theirs[4..6]);
                bytes[10..12].copy_from_slice(&theirs[10..12]);
            }
            assert_eq!(bytes, theirs);
        }
    }

    #[test]
    fn the_options_of_a_syn_are_laid_out_as_those_of_linux() {
        let options = Options {
            most: Some(1460),
            scale: Some(7),
            selective: true,
            times: Some((0x0102_0304, 0)),
            ..Options::default()
        };
        let (bytes, length) = write_options(&options, Flags::SYN);
        let expected = [2, 4, 5, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7, 1, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0];
        assert_eq!(bytes[..length], expected);
        assert_eq!(write_options(&options, Flags::ACK).1, 12, "beyond the SYN only the times are left");
    }

    #[test]
    fn options_are_read_past_those_of_others_and_up_to_one_that_makes_no_sense() {
        // Those of Accurate ECN (kind 174) come before selective acknowledgements here.
        let bytes = [174, 5, 0, 0, 1, 1, 5, 10, 0, 0, 0, 9, 0, 0, 0, 12, 3, 3, 7, 8, 40, 0];
        let mut expected = Options { scale: Some(7), ..Options::default() };
        expected.ranges.push((9, 12));
        assert_eq!(read_options(&bytes), expected);
        assert_eq!(read_options(&[3, 3, 7, 2, 1, 9]).scale, Some(7), "a length of one");
        assert_eq!(read_options(&[0, 3, 3, 7]), Options::default(), "behind the end");
    }

    #[test]
    fn beside_a_timestamp_there_is_room_for_three_ranges() {
        let mut options = Options { times: Some((0, 0)), ..Options::default() };
        (0..5).for_each(|n| options.ranges.push((n, n + 1)));
        assert_eq!(write_options(&options, Flags::ACK).1, 12 + 4 + 3 * 8);
        options.times = None;
        assert_eq!(write_options(&options, Flags::ACK).1, 4 + 4 * 8);
    }

    #[test]
    fn what_is_damaged_is_refused_with_its_reason() {
        let whole = written(&segment(false, &[9; 10]));
        assert_eq!(Segment::parse(&whole[..30]), Err(NoSegment::Packet));
        assert_eq!(Segment::parse(&[]), Err(NoSegment::Packet));
        let with = |place: usize, value: u8| {
            let mut bytes = whole.clone();
            bytes[place] = value;
            Segment::parse(&bytes).unwrap_err()
        };
        assert_eq!(with(8, 1), NoSegment::Checksum, "of the IPv4 header");
        assert_eq!(with(61, 1), NoSegment::Checksum, "of the segment");
        assert_eq!(with(32, 0x10), NoSegment::Header, "four bytes of header");
        assert_eq!(Segment::parse(&whole).unwrap().flags.ace(), 4);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (six, syn, selective) in any::<(bool, bool, bool)>(),
            (sequence, acknowledged, window, flags) in any::<(u32, u32, u16, u16)>(),
            times in any::<Option<(u32, u32)>>(),
            ranges in proptest::collection::vec(any::<(u32, u32)>(), 0..4),
            data in proptest::collection::vec(any::<u8>(), 0..600),
        ) {
            let mut options = Options { times, ..Options::default() };
            if syn {
                options = Options { most: Some(window), scale: Some(9), selective, ..options };
            } else {
                for range in ranges {
                    options.ranges.push(range);
                }
            }
            let flags = Flags(flags & 0x1fd) | Flags::SYN.when(syn);
            let given = Segment { sequence, acknowledged, flags, window, options, ..segment(six, &data) };
            let bytes = written(&given);
            prop_assert_eq!(bytes.len(), given.headers() + data.len());
            prop_assert_eq!(Segment::parse(&bytes), Ok(given));
            let mut small = vec![0; bytes.len() - 1];
            prop_assert_eq!(given.write(1, data.len(), |_| {}, &mut small), None);
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), six in any::<bool>()) {
            let _ = Segment::parse(&bytes);
            // The same bytes behind valid headers.
            if let Some(first) = bytes.first_mut() {
                *first = if six { 0x60 } else { 0x45 };
            }
            let _ = Segment::parse(&bytes);
        }
    }
}
