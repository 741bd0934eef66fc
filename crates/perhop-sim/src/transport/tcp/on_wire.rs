//! The two ends of a TCP connection outside of a simulation: the same state machines, told of real segments.
//!
//! Both count whole segments, as the simulator does. Whoever owns the connection maps bytes to segments, and
//! carries out the handshake's options, checksums and the closing of the connection.

use perhop_core::control::Message;
use perhop_core::{Bitrate, Bytes, Color, Context, Instant};

use super::ace::AceReader;
use super::{Signals, TcpEcn, TcpParams, TcpReceiver, TcpSender};
use crate::transport::metadata::{AckRecord, MOST_BLOCKS, Metadata};
use crate::transport::{Ack, SenderStatistics, Source, Transmit};

/// An acknowledgement as it came from a wire, in segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireAck<'a> {
    /// Every segment below has arrived.
    pub expected: u32,
    /// Ranges that arrived beyond it (RFC 2018): the first segment, and one past the last.
    pub ranges: &'a [(u32, u32)],
    /// The segment that had this ACK sent, if it had arrived before (D-SACK, RFC 2883).
    pub duplicate: Option<u32>,
    /// ECN-Echo (RFC 3168).
    pub ece: bool,
    /// The ACE field, where the connection has Accurate ECN (RFC 9768).
    pub ace: Option<u32>,
}

/// The sending side of a connection.
#[derive(Clone, Debug)]
pub struct WireSender {
    tcp: TcpSender,
    metadata: Metadata,
    is_selective: bool,
    ace: AceReader,
    marked: u32,
    acked: u32,
}

impl WireSender {
    /// Makes the sender of a connection of these parameters, which ends after `volume` bytes on the wire if
    /// that is given, and has the contracted rate `reserved`. What its congestion control decides by chance
    /// begins with `seed`.
    pub fn new(
        params: &TcpParams,
        volume: Option<Bytes>,
        reserved: Option<Bitrate>,
        ecn: TcpEcn,
        seed: u64,
    ) -> Self {
        Self {
            is_selective: params.sack,
            metadata: if params.sack { Metadata::acks() } else { Metadata::none() },
            tcp: TcpSender::new(params.clone().into(), volume, reserved, ecn, seed),
            ace: AceReader::default(),
            marked: 0,
            acked: 0,
        }
    }

    /// Begins to send.
    pub fn start(&mut self, now: Instant) {
        self.tcp.start(now);
    }

    /// Ends the data with the last segment that was sent.
    pub fn stop(&mut self) {
        self.tcp.stop();
    }

    /// Takes an acknowledgement.
    pub fn on_ack(&mut self, ack: &WireAck<'_>, now: Instant) {
        let newly = ack.expected.saturating_sub(self.acked);
        self.acked = self.acked.max(ack.expected);
        if let Some(field) = ack.ace {
            let held = ack.ranges.iter().map(|(first, end)| end - first).sum::<u32>();
            self.marked += self.ace.read(field, newly.max(u32::from(held > 0)));
        }
        let number = if self.is_selective {
            let mut blocks = [(0, 0); MOST_BLOCKS];
            for (block, range) in blocks.iter_mut().zip(ack.ranges) {
                *block = *range;
            }
            let (expected, marked, duplicate) = (ack.expected, self.marked, ack.duplicate);
            self.metadata.of_acks().post(AckRecord { expected, blocks, marked, duplicate })
        } else {
            ack.expected
        };
        self.tcp.on_ack(Ack { number, ece: ack.ece }, &mut self.metadata, now);
    }

    /// Learns how many segments beyond the last acknowledged one the receiver's window has room for.
    pub fn offer(&mut self, segments: u32) {
        self.tcp.offer(segments);
    }

    /// Returns the next segment to put on the wire now, if there is one.
    pub fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        self.tcp.transmit(cx)
    }

    /// Returns when the sender next has something to do by itself.
    pub fn wake(&self) -> Instant {
        self.tcp.wake()
    }

    /// Does what is due by now.
    pub fn on_wake(&mut self, now: Instant) {
        self.tcp.on_wake(now);
    }

    /// Notes the color that a marker gave to a segment.
    pub fn on_marked(&mut self, sequence: u32, color: Color) {
        self.tcp.on_marked(sequence, color);
    }

    /// Takes a control message, such as a marker's report of an OUT packet.
    pub fn on_message(&mut self, message: &Message) {
        self.tcp.on_message(message);
    }

    /// Returns the congestion window in segments.
    pub fn window(&self) -> f64 {
        self.tcp.window().unwrap_or(0.0)
    }

    /// Returns the smoothed round-trip time in seconds, if there is one yet.
    pub fn smoothed_rtt(&self) -> Option<f64> {
        self.tcp.smoothed_rtt()
    }

    /// Returns one past the highest segment that was ever sent.
    pub fn sent_end(&self) -> u32 {
        self.tcp.sent_end()
    }

    /// Returns what was counted, and how long what kept the sender from sending more, by now.
    pub fn statistics(&self, now: Instant) -> SenderStatistics {
        SenderStatistics { limits: self.tcp.limits(now), ..self.tcp.statistics() }
    }
}

/// What the receiving side makes of a segment, or of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Acknowledge now.
    pub now: bool,
    /// With ECN-Echo.
    pub ece: bool,
}

/// The receiving side of a connection: it decides when ACKs leave, and what they echo.
#[derive(Clone, Debug)]
pub struct WireReceiver {
    tcp: TcpReceiver,
    metadata: Metadata,
}

impl WireReceiver {
    /// Makes the receiver of a connection of these parameters.
    pub fn new(params: &TcpParams, ecn: TcpEcn) -> Self {
        Self {
            tcp: TcpReceiver::new(params, ecn),
            metadata: if params.sack { Metadata::acks() } else { Metadata::none() },
        }
    }

    /// Takes the segment of this number.
    pub fn on_data(&mut self, sequence: u32, signals: Signals, now: Instant) -> Reply {
        let received = self.tcp.on_data(sequence, signals, now, &mut self.metadata);
        self.reply(received.ack)
    }

    /// Acknowledges what is due by now.
    pub fn on_wake(&mut self, now: Instant) -> Reply {
        let ack = self.tcp.on_wake(now, &mut self.metadata);
        self.reply(ack)
    }

    /// Returns when an ACK is due that waits.
    pub fn wake(&self) -> Instant {
        self.tcp.wake()
    }

    /// Returns whether an ACK carries ECN-Echo now; one that waits waits no more.
    pub fn ride(&mut self) -> bool {
        self.tcp.ride().ece
    }

    fn reply(&mut self, ack: Option<Ack>) -> Reply {
        let Some(ack) = ack else { return Reply::default() };
        // What it reports is read from the bytes that have come.
        self.metadata.lose(ack.number, false);
        Reply { now: true, ece: ack.ece }
    }
}
