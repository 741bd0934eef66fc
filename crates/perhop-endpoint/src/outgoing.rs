//! The sending side of a connection: the simulator's sender counts segments, the wire counts bytes.
//!
//! Segment n of the sender is always the same range of bytes. If a packet has room for less, because of the
//! peer's MSS or the path MTU, a segment is sent in several packets, and is acknowledged when all of its
//! bytes are.

use std::collections::VecDeque;

use perhop_core::{Bytes, Context, Duration, Ecn, Instant};
use perhop_sim::transport::tcp::{WireAck, WireSender};

use crate::Setup;
use crate::segment::Segment;

/// Data of one packet, to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: u64,
    pub(crate) end: u64,
    pub(crate) ecn: Ecn,
    /// The packet reports that the congestion window was reduced (CWR).
    pub(crate) reduced: bool,
    /// The sender's number of the segment.
    pub(crate) segment: u32,
}

/// The next thing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The SYN.
    Syn,
    /// Data.
    Data(Piece),
}

/// The shortest and the longest time between probes of a zero window (RFC 9293, section 3.8.6.1).
const PROBES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));

/// The sending side of a connection. Offsets count bytes of data from the first one.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) sender: WireSender,
    /// The sender's number of the first segment of data: 1 if the sender sends the SYN, too.
    first: u32,
    /// Bytes of data in a segment of the sender.
    segment: u64,
    /// The most bytes of data in a packet.
    pub(crate) most: u64,
    /// Bytes to send; `None` for no end.
    pub(crate) volume: Option<u64>,
    /// Every byte below is acknowledged.
    pub(crate) acked: u64,
    /// One past the highest byte ever sent.
    pub(crate) sent: u64,
    /// The receiver's window in bytes from `acked` on.
    pub(crate) window: u64,
    /// The largest window so far.
    pub(crate) largest_window: u64,
    /// Sequence and acknowledgement number of the segment that set the window: SND.WL1 and SND.WL2.
    window_by: Option<(u32, u32)>,
    /// Data of packets that are to be sent first.
    pieces: VecDeque<Piece>,
    /// When the zero window is probed next, and how long after the last probe.
    pub(crate) probe_at: Instant,
    probe_span: Duration,
}

impl Outgoing {
    pub(crate) fn new(setup: &Setup, segment: u16, handshake: bool) -> Self {
        let mut params = setup.params.clone();
        params.handshake = handshake;
        let segment = u64::from(segment.max(1));
        let on_wire = |bytes: u64| Bytes::new(bytes.div_ceil(segment) * params.packet.get());
        let volume = setup.volume.map(on_wire);
        Self {
            sender: WireSender::new(&params, volume, setup.reserved, setup.ecn, setup.seed),
            first: u32::from(handshake),
            segment,
            most: segment,
            volume: setup.volume,
            acked: 0,
            sent: 0,
            window: 0,
            largest_window: 0,
            window_by: None,
            pieces: VecDeque::new(),
            probe_at: Instant::NEVER,
            probe_span: PROBES.0,
        }
    }

    /// Ends the data with those that were sent.
    pub(crate) fn stop(&mut self) {
        self.sender.stop();
        let sent = u64::from(self.sender.sent_end().saturating_sub(self.first)) * self.segment;
        self.volume = Some(self.volume.map_or(sent, |volume| volume.min(sent)));
    }

    /// Returns whether all data was sent, and whether it was acknowledged.
    pub(crate) fn is_all(&self) -> (bool, bool) {
        (self.volume == Some(self.sent) && self.pieces.is_empty(), self.volume == Some(self.acked))
    }

    /// Returns the offsets at which a segment begins and ends.
    fn end_of(&self, number: u32) -> (u64, u64) {
        let from = u64::from(number.saturating_sub(self.first)) * self.segment;
        let end = from + self.segment;
        (from, self.volume.map_or(end, |volume| end.min(volume)))
    }

    /// Returns the number of the first segment that is not complete if all bytes below this offset have been
    /// received.
    fn number_at(&self, offset: u64) -> u32 {
        let whole =
            if self.volume == Some(offset) { offset.div_ceil(self.segment) } else { offset / self.segment };
        self.first.saturating_add(u32::try_from(whole).unwrap_or(u32::MAX))
    }

    /// Returns the data to send next, or the SYN; `None` if nothing may be sent now.
    pub(crate) fn next(&mut self, cx: &mut Context<'_>) -> Option<Next> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                self.sent = self.sent.max(piece.end);
                return Some(Next::Data(piece));
            }
            let transmit = self.sender.transmit(cx)?;
            if transmit.sequence < self.first {
                return Some(Next::Syn);
            }
            let (from, end) = self.end_of(transmit.sequence);
            // If the segment was sent in several packets, its beginning may be acknowledged.
            let from = from.max(self.acked.min(end));
            self.cut(Piece {
                from,
                end,
                ecn: transmit.ecn,
                reduced: transmit.reduced,
                segment: transmit.sequence,
            });
        }
    }

    /// Divides a piece among packets.
    fn cut(&mut self, piece: Piece) {
        let mut from = piece.from;
        while from < piece.end {
            let end = piece.end.min(from + self.most.max(1));
            let reduced = piece.reduced && from == piece.from;
            self.pieces.push_back(Piece { from, end, reduced, ..piece });
            from = end;
        }
    }

    /// Retransmits the segment with this byte in packets of at most `most` bytes of data, and limits later
    /// packets to this size: the path MTU is smaller than was known.
    pub(crate) fn shrink(&mut self, most: u64, offset: u64) {
        self.most = most.max(1);
        let pieces = std::mem::take(&mut self.pieces);
        let number = self.number_at(offset);
        let (from, end) = self.end_of(number);
        let end = end.min(self.sent);
        self.cut(Piece {
            from: from.max(self.acked),
            end,
            ecn: Ecn::NotCapable,
            reduced: false,
            segment: number,
        });
        for piece in pieces {
            self.cut(piece);
        }
    }

    /// Sets the receiver's window, unless a newer segment has set it (RFC 9293, section 3.10.7.4). Returns
    /// whether it changed.
    pub(crate) fn set_window(&mut self, segment: &Segment<'_>, window: u64) -> bool {
        let at_least = |ours: u32, theirs: u32| ours.wrapping_sub(theirs).cast_signed() >= 0;
        let is_newer = self.window_by.is_none_or(|(sequence, acknowledged)| {
            at_least(segment.sequence, sequence.wrapping_add(1))
                || segment.sequence == sequence && at_least(segment.acknowledged, acknowledged)
        });
        if !is_newer {
            return false;
        }
        self.window_by = Some((segment.sequence, segment.acknowledged));
        self.largest_window = self.largest_window.max(window);
        std::mem::replace(&mut self.window, window) != window
    }

    /// Processes an acknowledgement of all bytes below `offset`, with SACK blocks beyond it, the offset of a
    /// D-SACK block, and ECN feedback. `is_duplicate`: it is a duplicate ACK (RFC 5681, section 2).
    pub(crate) fn on_ack(
        &mut self,
        offset: u64,
        ranges: &[(u64, u64)],
        duplicate: Option<u64>,
        (ece, ace): (bool, Option<u32>),
        is_duplicate: bool,
        now: Instant,
    ) {
        let before = self.number_at(self.acked);
        self.acked = self.acked.max(offset);
        let expected = self.number_at(self.acked);
        if expected > before || is_duplicate || !ranges.is_empty() || duplicate.is_some() {
            let whole: Vec<(u32, u32)> = ranges
                .iter()
                .map(|&(from, end)| {
                    (self.number_at(from.next_multiple_of(self.segment)), self.number_at(end))
                })
                .filter(|(first, end)| first < end)
                .collect();
            let duplicate = duplicate.map(|offset| self.first + (offset / self.segment) as u32);
            self.sender.on_ack(&WireAck { expected, ranges: &whole, duplicate, ece, ace }, now);
        }
        self.sender.offer(self.room());
        self.plan_probe(now);
    }

    /// Opens the connection on the ACK of its SYN. A sender that simulates the handshake gets this ACK, too.
    pub(crate) fn open(&mut self, window: u64, now: Instant) {
        (self.window, self.largest_window) = (window, window);
        self.sender.offer(self.room());
        if self.first == 0 {
            self.sender.start(now);
        } else {
            self.sender.on_ack(&WireAck { expected: self.first, ..WireAck::default() }, now);
        }
    }

    /// Returns how many segments fit into the receiver's window, from the first that is not acknowledged.
    fn room(&self) -> u32 {
        let end = self.acked + self.window;
        let end = self.volume.map_or(end, |volume| end.min(volume));
        self.number_at(end) - self.number_at(self.acked)
    }

    /// Plans a probe if the window has no room for the next segment, and no data are outstanding whose ACK
    /// could open it.
    pub(crate) fn plan_probe(&mut self, now: Instant) {
        let is_closed = self.acked == self.sent && self.volume != Some(self.sent) && self.room() == 0;
        if !is_closed {
            (self.probe_at, self.probe_span) = (Instant::NEVER, PROBES.0);
        } else if self.probe_at == Instant::NEVER {
            let trips = self.sender.smoothed_rtt().map_or(0.0, |rtt| 2e9 * rtt);
            self.probe_span = Duration::from_nanos(trips as u64).max(self.probe_span).min(PROBES.1);
            self.probe_at = now + self.probe_span;
        }
    }

    /// Probes the window, and returns whether with an empty segment. If the window has room for a part of a
    /// segment, this part is sent (RFC 9293, section 3.8.6.2.1).
    pub(crate) fn probe(&mut self, now: Instant) -> bool {
        self.probe_span = self.probe_span.saturating_mul(2).min(PROBES.1);
        self.probe_at = now + self.probe_span;
        if self.window == 0 {
            return true;
        }
        let segment = self.number_at(self.sent);
        let (from, end) =
            (self.sent, self.volume.map_or(u64::MAX, |volume| volume).min(self.acked + self.window));
        self.cut(Piece { from, end, ecn: Ecn::NotCapable, reduced: false, segment });
        false
    }
}
