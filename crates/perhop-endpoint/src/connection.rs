//! A connection: which segments are acceptable, what they acknowledge, and its closing (RFC 9293, section
//! 3.10). [`handshake`] opens it.

mod handshake;

use std::net::SocketAddr;

use perhop_core::control::Message;
use perhop_core::{Bitrate, Color, Context, Dscp, Duration, Ecn, Instant};
use perhop_sim::transport::SenderStatistics;
use perhop_sim::transport::tcp::{TcpEcn, TcpParams, WireReceiver};

use crate::content::pattern;
use crate::icmp::TooBig;
use crate::incoming::Incoming;
use crate::outgoing::{Next, Outgoing, Piece};
use crate::segment::{Flags, Options, Segment};
use handshake::{Agreed, Signalling, handshake_ace};

/// The settings of a connection.
#[derive(Clone, Debug)]
pub struct Setup {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The simulated connection whose sender and receiver these are. Its `packet` is the size of a full
    /// packet; ACKs of 52 bytes and more have timestamps; `sack` and `ecn` are offered if it has them, and
    /// its `window` is the receiver's buffer.
    pub params: TcpParams,
    /// How congestion is signalled.
    pub ecn: TcpEcn,
    /// Bytes of data to send; `None` for no end.
    pub volume: Option<u64>,
    /// The contracted rate.
    pub reserved: Option<Bitrate>,
    /// The first sequence number, which others should not be able to guess (RFC 9293, section 3.4.1).
    pub first_number: u32,
    /// The seed of the congestion control's random decisions.
    pub seed: u64,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Both sides have closed it.
    Closed,
    /// The other end refused it.
    Refused,
    /// The other end reset it.
    Reset,
    /// The other end does not answer any more.
    TimedOut,
}

impl Ended {
    /// Returns what happened, in words; `None` if it was closed as it should be.
    pub const fn fault(self) -> Option<&'static str> {
        match self {
            Self::Closed => None,
            Self::Refused => Some("Connection refused"),
            Self::Reset => Some("Connection reset by peer"),
            Self::TimedOut => Some("Connection timed out"),
        }
    }
}

/// A packet that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The length of the packet in bytes.
    pub length: usize,
    /// The sender's number of the segment, if the packet has data.
    pub segment: Option<u32>,
}

/// The state of a connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    SynSent,
    SynReceived,
    /// ESTABLISHED, or closing: [`Fin`] and the end of the incoming data say how far.
    Established,
    Over(Ended),
}

/// The end of the data that this side sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    /// More data may follow.
    None,
    /// The end is to be sent once all data have been.
    Wanted,
    Sent,
    Acknowledged,
}

/// The retransmission timer of a SYN or a FIN. Data have the sender's.
#[derive(Clone, Copy, Debug)]
struct Again {
    at: Instant,
    span: Duration,
    times: u32,
}

impl Again {
    const NEVER: Self = Self { at: Instant::NEVER, span: Duration::ZERO, times: 0 };

    fn after(span: Duration, now: Instant) -> Self {
        Self { at: now + span, span, times: 0 }
    }

    /// Sets the timer again, with twice the timeout; returns whether there is another retransmission.
    fn next(&mut self, now: Instant) -> bool {
        self.times += 1;
        self.span = self.span.saturating_mul(2);
        self.at = now + self.span;
        self.times <= MOST_AGAIN
    }
}

/// How often a SYN or a FIN is sent again.
const MOST_AGAIN: u32 = 8;
/// The retransmission timeout before a round-trip time is known (RFC 6298, section 2).
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// The shortest retransmission timeout of a FIN.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
/// Packets without timestamps have ACKs of less than this many bytes (IPv4).
const WITH_TIMES: u64 = 52;
/// The most challenge ACKs in a second (RFC 5961, section 7).
const CHALLENGES: u32 = 10;
/// The initial value of the ACE field's counter (RFC 9768, section 3.2.1).
const FIRST_ACE: u32 = 5;

/// A connection.
#[derive(Clone, Debug)]
pub struct Connection {
    setup: Setup,
    state: State,
    agreed: Agreed,
    outgoing: Outgoing,
    incoming: Incoming,
    is_active: bool,
    fin: Fin,
    again: Again,
    owes: Owed,
    /// The acknowledgement number that was sent last.
    last_acknowledged: u32,
    /// When the present second of challenge ACKs began, and how many it has had.
    challenges: (Instant, u32),
    /// The IPv4 identification of the packet that was written last.
    packets: u16,
}

/// Segments without data that are to be sent now.
#[expect(clippy::struct_excessive_bools, reason = "each is owed for itself")]
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    syn: bool,
    /// The ACK that ends the handshake, which precedes all data.
    first_ack: bool,
    ack: bool,
    probe: bool,
    fin: bool,
    /// A RST with this sequence number.
    reset: Option<u32>,
}

impl Setup {
    fn has_times(&self) -> bool {
        self.params.ack.get() >= WITH_TIMES
    }

    fn headers(&self) -> u16 {
        if self.local.is_ipv4() { 40 } else { 60 }
    }

    /// Returns the bytes of data in a full packet.
    pub fn segment(&self) -> u16 {
        let headers = self.headers() + if self.has_times() { 12 } else { 0 };
        (self.params.packet.get() as u16).saturating_sub(headers).max(1)
    }

    /// Returns the buffer of the receiver in bytes.
    fn buffer(&self) -> u64 {
        let bytes = u64::from(self.params.most_offered()) * u64::from(self.segment());
        bytes.clamp(1, u64::from(u16::MAX) << 14)
    }

    /// Returns by how many bits windows are to be shifted so that the buffer's size fits into the header.
    fn scale(&self) -> u8 {
        (0..14).find(|scale| u16::try_from(self.buffer() >> scale).is_ok()).unwrap_or(14)
    }
}

impl Connection {
    fn new(setup: Setup, has_own_syn: bool, is_active: bool) -> Self {
        let receiver = WireReceiver::new(&setup.params, setup.ecn);
        let outgoing = Outgoing::new(&setup, setup.segment(), has_own_syn);
        let (handshake, delay) = (setup.params.handshake, setup.params.delayed_ack);
        let incoming = Incoming::new(receiver, handshake, delay, setup.buffer());
        Self {
            state: State::SynSent,
            agreed: Agreed::NOTHING,
            outgoing,
            incoming,
            is_active,
            fin: Fin::None,
            again: Again::NEVER,
            owes: Owed::default(),
            last_acknowledged: 0,
            challenges: (Instant::ZERO, 0),
            packets: setup.first_number as u16,
            setup,
        }
    }

    /// Returns how it ended, if it has.
    pub fn ended(&self) -> Option<Ended> {
        if let State::Over(ended) = self.state { Some(ended) } else { None }
    }

    /// Returns whether data may be sent, or could until it ended.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Established | State::Over(Ended::Closed | Ended::Reset))
    }

    /// Returns whether all data, and the FIN if one is to be sent, are acknowledged.
    pub fn is_sent(&self) -> bool {
        self.outgoing.is_all().1 && matches!(self.fin, Fin::None | Fin::Acknowledged)
    }

    /// Returns how many bytes of data have been acknowledged, and how many have been received, each once.
    pub fn bytes(&self) -> (u64, u64) {
        (self.outgoing.acked, self.incoming.arrived())
    }

    /// Returns whether all data of the other end, up to its FIN, have been received.
    pub fn is_received(&self) -> bool {
        self.incoming.is_all()
    }

    /// Returns the congestion window in segments.
    pub fn window(&self) -> f64 {
        self.outgoing.sender.window()
    }

    /// Returns the receiver's window in bytes: that of the other end, unless the simulated one is smaller.
    pub fn receiver_window(&self) -> u64 {
        self.outgoing.window.min(self.setup.buffer())
    }

    /// Returns the smoothed round-trip time in seconds, if there is one yet.
    pub fn smoothed_rtt(&self) -> Option<f64> {
        self.outgoing.sender.smoothed_rtt()
    }

    /// Returns the sender's counters up to now.
    pub fn statistics(&self, now: Instant) -> SenderStatistics {
        self.outgoing.sender.statistics(now)
    }

    /// Tells the sender the color with which a marker marked the segment with this number.
    pub fn on_marked(&mut self, segment: u32, color: Color) {
        self.outgoing.sender.on_marked(segment, color);
    }

    /// Gives the sender a control message, such as a marker's report of an OUT packet.
    pub fn on_message(&mut self, message: &Message) {
        self.outgoing.sender.on_message(message);
    }

    /// Closes this side: a FIN follows its volume, or what was sent if it has none.
    pub fn close(&mut self) {
        if self.outgoing.volume.is_none() {
            self.outgoing.stop();
        }
        if self.fin == Fin::None {
            self.fin = Fin::Wanted;
        }
    }

    /// Closes this side after the data that were sent, whatever its volume.
    pub fn stop(&mut self) {
        self.outgoing.stop();
        self.close();
    }

    /// Returns when the next timer expires.
    pub fn wake(&self) -> Instant {
        if self.ended().is_some() {
            return Instant::NEVER;
        }
        let Self { outgoing, incoming, again, .. } = self;
        outgoing.sender.wake().min(incoming.wake()).min(again.at).min(outgoing.probe_at)
    }

    /// Processes timers that have expired by now.
    pub fn on_wake(&mut self, now: Instant) {
        if self.outgoing.sender.wake() <= now {
            self.outgoing.sender.on_wake(now);
        }
        if self.incoming.wake() <= now {
            self.owes.ack |= self.incoming.on_wake(now);
        }
        if self.outgoing.probe_at <= now {
            self.owes.probe |= self.outgoing.probe(now);
        }
        if self.again.at <= now {
            // The FIN is retransmitted after the data, which have the sender's timer.
            if self.state == State::Established && !self.outgoing.is_all().1 {
                self.again = Again::after(self.again.span, now);
                return;
            }
            let goes_on = self.again.next(now);
            match self.state {
                State::SynSent | State::SynReceived if goes_on => self.owes.syn = true,
                State::Established if goes_on => self.owes.fin = self.fin == Fin::Sent,
                _ => self.end(Ended::TimedOut),
            }
        }
    }

    fn end(&mut self, ended: Ended) {
        self.state = State::Over(ended);
        self.again = Again::NEVER;
        self.outgoing.probe_at = Instant::NEVER;
    }

    /// Processes an ICMP report that a packet was too large for its path. A report about data that are not
    /// outstanding is ignored (RFC 5927, section 5.1).
    pub fn on_too_big(&mut self, report: &TooBig) {
        let least = if self.setup.local.is_ipv4() { 576 } else { 1280 };
        let offset = self.offset_of(report.sequence);
        if self.state != State::Established || !(self.outgoing.acked..self.outgoing.sent).contains(&offset) {
            return;
        }
        let headers = self.setup.headers() + if self.agreed.time.is_some() { 12 } else { 0 };
        let most = u64::from(report.mtu.max(least) - headers);
        if most < self.outgoing.most {
            self.outgoing.shrink(most, offset);
        }
    }

    /// Returns the offset of our byte with a sequence number: of all such bytes, the one nearest to the first
    /// byte that is not acknowledged.
    fn offset_of(&self, number: u32) -> u64 {
        let acked = self.number_of(self.outgoing.acked);
        self.outgoing.acked.wrapping_add_signed(i64::from(number.wrapping_sub(acked).cast_signed()))
    }

    /// Returns the sequence number of our byte at an offset.
    fn number_of(&self, offset: u64) -> u32 {
        self.setup.first_number.wrapping_add(1).wrapping_add(offset as u32)
    }

    /// Returns the sequence number of the other end's byte at an offset.
    fn their_number_of(&self, offset: u64) -> u32 {
        self.agreed.first.wrapping_add(1).wrapping_add(offset as u32)
    }

    /// Returns the sequence number that is expected next: our acknowledgement number.
    fn expected(&self) -> u32 {
        let end = u32::from(self.incoming.is_all());
        self.their_number_of(self.incoming.expected).wrapping_add(end)
    }

    /// Processes a segment of this connection; passes data that is in order to `deliver`.
    pub fn on_segment(&mut self, segment: &Segment<'_>, now: Instant, deliver: &mut dyn FnMut(&[u8])) {
        match self.state {
            State::SynSent => self.on_answer(segment, now),
            State::SynReceived => {
                if segment.flags.has(Flags::SYN) && segment.sequence == self.agreed.first {
                    self.owes.syn = true; // The SYN-ACK was lost.
                    return;
                }
                self.take(segment, now, deliver);
            }
            State::Established | State::Over(Ended::Closed) => self.take(segment, now, deliver),
            State::Over(_) => {
                if !segment.flags.has(Flags::RST) {
                    self.owes.reset = Some(segment.acknowledged);
                }
            }
        }
    }

    /// Processes a segment after the SYN-ACK (RFC 9293, section 3.10.7.4; RFC 5961).
    fn take(&mut self, segment: &Segment<'_>, now: Instant, deliver: &mut dyn FnMut(&[u8])) {
        let Segment { flags, sequence, data, .. } = *segment;
        if !self.is_of_its_time(segment) {
            self.challenge(now);
            return;
        }
        let length = data.len() as u32 + u32::from(flags.has(Flags::FIN)) + u32::from(flags.has(Flags::SYN));
        let ahead = sequence.wrapping_sub(self.expected()).cast_signed();
        let window = self.incoming.window.cast_signed();
        let (from, end) = (i64::from(ahead), i64::from(ahead) + i64::from(length));
        let is_acceptable = if length == 0 { (0..=window).contains(&from) } else { from < window && end > 0 };
        if !is_acceptable {
            if flags.has(Flags::RST) {
                return;
            }
            // Old data, keep-alive probes and window probes are answered.
            if end <= 0 && from > -(window + (1 << 16)) {
                if !data.is_empty() && self.state != State::SynReceived {
                    self.take_data(segment, now, deliver);
                }
                self.owes.ack = true;
            } else {
                self.challenge(now);
            }
            return;
        }
        if flags.has(Flags::RST) {
            if self.ended().is_some() {
                return; // It is closed already.
            }
            if ahead == 0 {
                self.end(if self.state == State::SynReceived { Ended::Refused } else { Ended::Reset });
            } else {
                self.challenge(now);
            }
            return;
        }
        if flags.has(Flags::SYN) {
            self.challenge(now);
            return;
        }
        if !flags.has(Flags::ACK) || !self.take_acknowledgement(segment, now) {
            return;
        }
        self.note_time(segment);
        if self.state != State::Established {
            return;
        }
        if !data.is_empty() {
            self.owes.ack |= self.take_data(segment, now, deliver);
        }
        if flags.has(Flags::FIN) && self.incoming.end().is_none() {
            let end = self.place_of(sequence) + i64::from(data.len() as u32);
            self.incoming.on_end(end.unsigned_abs());
        }
        self.owes.ack |= self.incoming.end().is_some();
        self.note_end();
    }

    /// Returns the offset of the other end's byte with a sequence number: the one nearest to that expected.
    fn place_of(&self, sequence: u32) -> i64 {
        let ahead = sequence.wrapping_sub(self.their_number_of(self.incoming.expected)).cast_signed();
        self.incoming.expected.cast_signed() + i64::from(ahead)
    }

    /// Processes the data of a segment, up to the end of the window; returns whether to send an ACK at once.
    fn take_data(&mut self, segment: &Segment<'_>, now: Instant, deliver: &mut dyn FnMut(&[u8])) -> bool {
        let place = self.place_of(segment.sequence);
        let last = (self.incoming.expected + self.incoming.window).cast_signed();
        let last = self.incoming.end().map_or(last, |end| last.min(end.cast_signed()));
        let end = (place + i64::from(segment.data.len() as u32)).min(last);
        let from = place.max(0);
        if end <= from {
            return true;
        }
        let data = &segment.data[(from - place) as usize..(end - place) as usize];
        let signals = (segment.ecn, segment.flags.has(Flags::CWR));
        self.incoming.on_data(from as u64, data, signals, now, deliver)
    }

    /// Returns whether a segment passes the test of its timestamp (PAWS: RFC 7323, section 5).
    fn is_of_its_time(&self, segment: &Segment<'_>) -> bool {
        let Some(latest) = self.agreed.time else { return true };
        if segment.flags.has(Flags::RST) {
            return true;
        }
        segment.options.times.is_some_and(|(value, _)| value.wrapping_sub(latest).cast_signed() >= 0)
    }

    /// Notes the timestamp of a segment, if it is the one to echo (RFC 7323, section 4.3).
    fn note_time(&mut self, segment: &Segment<'_>) {
        let is_next = segment.sequence.wrapping_sub(self.last_acknowledged).cast_signed() <= 0;
        if let (Some(_), Some((value, _)), true) = (self.agreed.time, segment.options.times, is_next) {
            self.agreed.time = Some(value);
        }
    }

    /// Processes the acknowledgement of a segment; returns whether it is acceptable (RFC 5961, section 5.2).
    fn take_acknowledgement(&mut self, segment: &Segment<'_>, now: Instant) -> bool {
        if !segment.flags.has(Flags::ACK) {
            return false;
        }
        if self.state == State::SynReceived {
            return self.establish(segment, now);
        }
        let acked = self.outgoing.acked;
        let ahead = i64::from(segment.acknowledged.wrapping_sub(self.number_of(acked)).cast_signed());
        let fin_sent = matches!(self.fin, Fin::Sent | Fin::Acknowledged);
        let most = (self.outgoing.sent - acked).cast_signed() + i64::from(fin_sent);
        if ahead > most || ahead < -self.outgoing.largest_window.max(1 << 16).cast_signed() {
            self.challenge(now);
            return false;
        }
        if ahead < 0 {
            return true;
        }
        let offset = (acked + ahead as u64).min(self.outgoing.sent);
        let has_changed = self.outgoing.set_window(segment, self.window_of(segment));
        let is_outstanding = acked < self.outgoing.sent;
        let is_duplicate =
            ahead == 0 && segment.data.is_empty() && !segment.flags.has(Flags::FIN) && is_outstanding;
        let is_duplicate = is_duplicate && (!has_changed || self.agreed.selective);
        let (ranges, duplicate) = self.ranges_of(segment, offset);
        let ece = self.agreed.signalling == Signalling::Classic && segment.flags.has(Flags::ECE);
        let ace = (self.agreed.signalling == Signalling::Accurate).then(|| segment.flags.ace());
        self.outgoing.on_ack(offset, &ranges, duplicate, (ece, ace), is_duplicate, now);
        if fin_sent && ahead == most && self.fin == Fin::Sent {
            self.fin = Fin::Acknowledged;
            self.again = Again::NEVER;
            self.note_end();
        }
        true
    }

    /// Returns the SACK blocks of a segment beyond its acknowledgement, and the offset that its D-SACK block
    /// reports (RFC 2018; RFC 2883, section 4).
    fn ranges_of(&self, segment: &Segment<'_>, offset: u64) -> (Vec<(u64, u64)>, Option<u64>) {
        if !self.agreed.selective {
            return (Vec::new(), None);
        }
        let mut duplicate = None;
        let ranges: Vec<(u64, u64)> = segment
            .options
            .ranges
            .as_slice()
            .iter()
            .map(|&(from, end)| (self.offset_of(from), self.offset_of(end)))
            .filter(|&(from, end)| from < end && end <= self.outgoing.sent)
            .collect();
        let mut beyond = &ranges[..];
        if let [first, others @ ..] = beyond
            && (first.1 <= offset
                || others.first().is_some_and(|next| next.0 <= first.0 && first.1 <= next.1))
        {
            (duplicate, beyond) = (Some(first.0), others);
        }
        (beyond.iter().copied().filter(|&(from, _)| from > offset).collect(), duplicate)
    }

    /// Returns the window of a segment in bytes.
    fn window_of(&self, segment: &Segment<'_>) -> u64 {
        u64::from(segment.window) << self.agreed.scales.0
    }

    /// Sends a challenge ACK, within the limit of their rate (RFC 5961, sections 3 to 5 and 7).
    fn challenge(&mut self, now: Instant) {
        let (since, count) = self.challenges;
        if count == 0 || now.since(since) >= Duration::from_secs(1) {
            self.challenges = (now, 0);
        }
        self.challenges.1 += 1;
        self.owes.ack |= self.challenges.1 <= CHALLENGES;
    }

    /// Ends the connection if both sides have closed it.
    fn note_end(&mut self) {
        if self.fin == Fin::Acknowledged && self.incoming.is_all() && self.state == State::Established {
            self.end(Ended::Closed);
        }
    }

    /// Writes the next packet to send now into `room`, which has room for the largest packet; `None` if there
    /// is none. After each call that changes the connection, call it until it returns `None`.
    pub fn transmit(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Option<Packet> {
        if let Some(sequence) = self.owes.reset.take() {
            let bare = Segment { sequence, flags: Flags::RST, ..self.bare(cx.now) };
            return self.write(&Segment { options: Options::default(), acknowledged: 0, ..bare }, None, room);
        }
        if std::mem::take(&mut self.owes.syn) {
            return self.write_syn(cx.now, room);
        }
        match self.state {
            State::SynSent => {
                // The sender's own SYN.
                matches!(self.outgoing.next(cx)?, Next::Syn).then(|| self.write_syn(cx.now, room))?
            }
            State::Over(Ended::Closed) | State::Established => self.write_next(cx, room),
            State::SynReceived | State::Over(_) => None,
        }
    }

    fn write_next(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Option<Packet> {
        let now = cx.now;
        if std::mem::take(&mut self.owes.first_ack) {
            return self.write_ack(now, true, room);
        }
        if self.state == State::Established {
            if let Some(Next::Data(piece)) = self.outgoing.next(cx) {
                return self.write_data(piece, now, room);
            }
            if std::mem::take(&mut self.owes.probe) {
                let sequence = self.number_of(self.outgoing.acked).wrapping_sub(1);
                let probe = Segment { sequence, ..self.acknowledging(now) };
                return self.write(&probe, None, room);
            }
            self.outgoing.plan_probe(now);
            let (is_sent, is_acked) = self.outgoing.is_all();
            if is_sent && self.fin == Fin::Wanted || is_acked && std::mem::take(&mut self.owes.fin) {
                return self.write_fin(now, room);
            }
        }
        std::mem::take(&mut self.owes.ack).then(|| self.write_ack(now, false, room))?
    }

    /// Returns a segment without data and flags, with the timestamps option if agreed on.
    fn bare(&self, now: Instant) -> Segment<'static> {
        let Setup { local, remote, first_number, .. } = self.setup;
        let millis = (now.as_nanos() / 1_000_000) as u32;
        let times = self.agreed.time.map(|echo| (first_number.wrapping_add(millis), echo));
        let window = self.incoming.window >> self.agreed.scales.1;
        Segment {
            source: local,
            destination: remote,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotCapable,
            sequence: self
                .number_of(self.outgoing.sent)
                .wrapping_add(u32::from(matches!(self.fin, Fin::Sent | Fin::Acknowledged))),
            acknowledged: self.expected(),
            flags: Flags::NONE,
            window: window.min(u64::from(u16::MAX)) as u16,
            options: Options { times, ..Options::default() },
            data: &[],
        }
    }

    /// Returns a segment that acknowledges all data received so far; no delayed ACK is due any more.
    fn acknowledging(&mut self, now: Instant) -> Segment<'static> {
        self.owes.ack = false;
        let ece = self.incoming.acknowledge();
        let signals = match self.agreed.signalling {
            Signalling::None => Flags::NONE,
            Signalling::Classic => Flags::ECE.when(ece),
            Signalling::Accurate => Flags::of_ace(FIRST_ACE + self.incoming.marked),
        };
        self.last_acknowledged = self.expected();
        let bare = self.bare(now);
        Segment { flags: Flags::ACK | signals, ..bare }
    }

    fn write_data(&mut self, piece: Piece, now: Instant, room: &mut [u8]) -> Option<Packet> {
        let is_capable = self.agreed.signalling != Signalling::None;
        let ecn = if is_capable { piece.ecn } else { Ecn::NotCapable };
        let reduced = piece.reduced && self.agreed.signalling == Signalling::Classic;
        let is_last = self.outgoing.volume == Some(piece.end);
        let ack = self.acknowledging(now);
        let flags = ack.flags | Flags::CWR.when(reduced) | Flags::PSH.when(is_last);
        let segment = Segment { sequence: self.number_of(piece.from), flags, ecn, ..ack };
        self.write(&segment, Some(piece), room)
    }

    fn write_fin(&mut self, now: Instant, room: &mut [u8]) -> Option<Packet> {
        if self.fin == Fin::Wanted {
            self.fin = Fin::Sent;
            let trips = self.smoothed_rtt().map_or(0.0, |rtt| 2e9 * rtt);
            let span = Duration::from_nanos(trips as u64).max(LEAST_TIMEOUT);
            self.again = Again::after(span, now);
        }
        let ack = self.acknowledging(now);
        let sequence = self.number_of(self.outgoing.sent);
        self.write(&Segment { sequence, flags: ack.flags | Flags::FIN, ..ack }, None, room)
    }

    fn write_ack(&mut self, now: Instant, is_first: bool, room: &mut [u8]) -> Option<Packet> {
        let mut ack = self.acknowledging(now);
        if is_first && self.agreed.signalling == Signalling::Accurate {
            ack.flags = Flags::ACK | Flags::of_ace(handshake_ace(self.agreed.came));
        }
        if self.agreed.selective {
            for (from, end) in self.incoming.ranges() {
                ack.options.ranges.push((self.their_number_of(from), self.their_number_of(end)));
            }
        }
        self.write(&ack, None, room)
    }

    fn write(&mut self, segment: &Segment<'_>, piece: Option<Piece>, room: &mut [u8]) -> Option<Packet> {
        self.packets = self.packets.wrapping_add(1);
        let (from, length) = piece.map_or((0, 0), |piece| (piece.from, (piece.end - piece.from) as usize));
        let written = segment.write(self.packets, length, |data| pattern(from, data), room);
        written.map(|length| Packet { length, segment: piece.map(|piece| piece.segment) })
    }
}
