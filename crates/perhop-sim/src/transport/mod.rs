//! Transports: senders and receivers as pure state machines. They take events and return what to transmit; the
//! engine owns time, packets and routes.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

pub mod datagram;
mod in_flight;
pub mod limits;
pub mod metadata;
mod pacing;
pub mod packet_trace;
mod play_out;
pub mod rap;
pub mod tcp;
pub mod tfrc;
pub mod transit;
pub mod udp;

use std::ops::Range;

use datagram::{DatagramReceiver, DatagramSender};
use limits::LimitTimes;
use metadata::Metadata;
use perhop_core::control::Message;
use perhop_core::{Color, Context, Dscp, Ecn, Instant};
use tcp::Signals;

use crate::packet::Content;

/// What a sender wants on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The segment's number.
    pub sequence: u32,
    /// Size on the wire in bytes.
    pub size: u16,
    /// Its ECN field: whether queues may mark it in place of dropping it.
    pub ecn: Ecn,
    /// It says that the window was reduced (CWR).
    pub reduced: bool,
}

impl Transmit {
    /// A packet that says nothing of congestion.
    pub const fn plain(sequence: u32, size: u16) -> Self {
        Self { sequence, size, ecn: Ecn::NotCapable, reduced: false }
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// TCP without selective acknowledgements: the segment expected next; else the number under which its content travels.
    pub number: u32,
    /// ECN-Echo: a marked packet has come (RFC 3168, section 6.1.3).
    pub ece: bool,
}

impl Ack {
    /// One that says nothing of congestion.
    pub const fn plain(number: u32) -> Self {
        Self { number, ece: false }
    }

    /// The one that a packet carries.
    pub(crate) fn of(content: Content) -> Self {
        Self { number: content.sequence(), ece: content.flag() }
    }
}

/// The ACK that a segment carries of the data of its connection's other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RidingAck {
    /// Every segment below has arrived.
    pub(crate) expected: u32,
    /// ECN-Echo.
    pub(crate) ece: bool,
    /// Marked packets that had come by then, if the receiver counts them.
    pub(crate) marked: u32,
}

/// Which of its [statistics](SenderStatistics) a sender counts. The others do not apply to its flow, and have no value there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// UDP counts the packets that it sends, and nothing else.
    #[default]
    Sent,
    /// RAP and TFRC also count loss events and timeouts. They send no packet again.
    LossEvents,
    /// TCP also counts acknowledged segments, those that it sends again, and timeouts.
    Segments {
        /// With ECN it counts the reductions of its window because of marks.
        ecn: bool,
    },
    /// TCP of a kernel counts neither fast retransmits nor reductions because of marks.
    Kernel {
        /// Linux counts timeouts since 6.7.
        timeouts: bool,
    },
}

impl Counted {
    /// The sender retransmits lost packets, and ACKs tell it what arrived in order.
    pub fn repairs(self) -> bool {
        matches!(self, Self::Segments { .. } | Self::Kernel { .. })
    }

    /// It has a timer for missing ACKs or reports, and counts how often that expires.
    pub fn timeouts(self) -> bool {
        match self {
            Self::Sent => false,
            Self::LossEvents | Self::Segments { .. } => true,
            Self::Kernel { timeouts } => timeouts,
        }
    }

    /// It counts fast retransmits.
    pub fn fast_retransmits(self) -> bool {
        matches!(self, Self::Segments { .. })
    }

    /// It counts loss events, each of which lowers its rate once.
    pub fn loss_events(self) -> bool {
        self == Self::LossEvents
    }

    /// It counts reductions of its window because of marks.
    pub fn ecn_reductions(self) -> bool {
        self == Self::Segments { ecn: true }
    }
}

/// What a sender counts, as far as its transport has it (see [`Counted`]); the rest is 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SenderStatistics {
    /// Packets sent, retransmissions included.
    pub sent: u64,
    /// Packets sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts; of RAP, loss events found by a timeout; of TFRC, expiries of the nofeedback timer.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Reductions of the window because packets were marked.
    pub ecn_reductions: u64,
    /// Loss events, each of which lowers the rate once.
    pub loss_events: u64,
    /// Data packets sent once that were acknowledged (TFRC: that feedback answered), and the exact sum of their round trips in nanoseconds, each
    /// from its sending to the ACK that first covers it.
    pub rtt_samples: (u64, u128),
    /// Round trips that the sender timed for its retransmission timer, the SYN's included, and their exact sum in nanoseconds (TCP).
    pub timed_rtt_samples: (u64, u128),
    /// What kept it from sending more, and for how long (TCP).
    pub limits: LimitTimes,
}

impl SenderStatistics {
    /// Adds what another sender has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.fast_retransmits += other.fast_retransmits;
        self.ecn_reductions += other.ecn_reductions;
        self.loss_events += other.loss_events;
        self.rtt_samples.0 += other.rtt_samples.0;
        self.rtt_samples.1 += other.rtt_samples.1;
        self.timed_rtt_samples.0 += other.timed_rtt_samples.0;
        self.timed_rtt_samples.1 += other.timed_rtt_samples.1;
        self.limits.join(&other.limits);
    }

    /// What has come since an earlier count.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let new = |now: (u64, u128), then: (u64, u128)| (now.0 - then.0, now.1 - then.1);
        Self {
            sent: self.sent - before.sent,
            retransmitted: self.retransmitted - before.retransmitted,
            timeouts: self.timeouts - before.timeouts,
            fast_retransmits: self.fast_retransmits - before.fast_retransmits,
            ecn_reductions: self.ecn_reductions - before.ecn_reductions,
            loss_events: self.loss_events - before.loss_events,
            rtt_samples: new(self.rtt_samples, before.rtt_samples),
            timed_rtt_samples: new(self.timed_rtt_samples, before.timed_rtt_samples),
            limits: self.limits.since(&before.limits),
        }
    }
}

/// The calls to a sender in the path of packets and ACKs. Generic code over them is compiled for each kind of sender, so that the
/// kind is checked once.
pub(crate) trait Source {
    /// An acknowledgement came.
    fn on_ack(&mut self, ack: Ack, now: Instant);
    /// The same, and what the sender then sends, if all of that is new data in full packets: a short cut for most ACKs, which a
    /// sender need not have. `None`, and nothing is done, for any other.
    #[inline(always)]
    fn ack_fast(&mut self, _ack: Ack, _now: Instant) -> Option<Range<u32>> {
        None
    }
    /// What [`on_wake`](Self::on_wake) does now, and what the sender then sends, if all of that is new data in full packets: a short cut
    /// which a sender need not have. `None`, and nothing is done, otherwise.
    #[inline(always)]
    fn wake_fast(&mut self, _cx: &mut Context<'_>) -> Option<Range<u32>> {
        None
    }
    /// The ECN field of that data.
    #[inline(always)]
    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }
    /// The time named by [`wake`](Self::wake) has come.
    fn on_wake(&mut self, now: Instant);
    /// The next packet to put on the wire now; ask until there is none, whenever anything happened.
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit>;
    /// The codepoint of the packet that it has just handed over, if that is not its flow's.
    fn codepoint(&self) -> Option<Dscp> {
        None
    }
    /// The marker gave the packet of this number a color.
    fn on_marked(&mut self, _sequence: u32, _color: Color) {}
    /// The marker dropped the packet of this number, which the sender does not learn: what it carried is forgotten.
    fn lose(&mut self, _sequence: u32) {}
    /// A control message came; one that it has no use for changes nothing.
    fn on_message(&mut self, _message: &Message) {}
    /// When it next has something to do by itself.
    fn wake(&self) -> Instant;
}

impl Source for tcp::TcpSender {
    #[inline(always)]
    fn on_ack(&mut self, ack: Ack, now: Instant) {
        self.on_ack(ack, now);
    }
    #[inline(always)]
    fn ack_fast(&mut self, ack: Ack, now: Instant) -> Option<Range<u32>> {
        self.ack_fast_of(ack.number, 0, ack.ece, now)
    }
    #[inline(always)]
    fn ecn(&self) -> Ecn {
        self.ecn_of_data()
    }
    fn on_wake(&mut self, now: Instant) {
        self.on_wake(now);
    }
    #[inline(always)]
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        self.transmit(cx)
    }
    #[inline(always)]
    fn on_marked(&mut self, sequence: u32, color: Color) {
        self.on_marked(sequence, color);
    }
    fn on_message(&mut self, message: &Message) {
        self.on_message(message);
    }
    #[inline(always)]
    fn wake(&self) -> Instant {
        self.wake()
    }
}

/// Any sender.
#[derive(Clone, Debug)]
pub enum Sender {
    /// TCP without selective acknowledgements.
    Tcp(tcp::TcpSender),
    /// Any whose packets carry more than their number.
    Carrying(Box<CarryingSender>),
}

/// A sender whose packets or ACKs carry more than their number. It is behind a pointer, so that telling them apart costs other
/// senders nothing.
#[derive(Clone, Debug)]
pub enum CarryingSender {
    /// TCP with selective acknowledgements.
    Sack(tcp::SackSender),
    /// Any that never sends a packet twice.
    Datagram(DatagramSender),
}

/// Asks whichever sender it is.
macro_rules! each {
    ($sender:expr, $tcp:ident => $of_tcp:expr, $source:ident => $of_datagrams:expr) => {
        match $sender {
            Sender::Tcp($tcp) => $of_tcp,
            Sender::Carrying(carrying) => match &mut **carrying {
                CarryingSender::Sack($tcp) => $of_tcp,
                CarryingSender::Datagram($source) => $of_datagrams,
            },
        }
    };
    (ref $sender:expr, $tcp:ident => $of_tcp:expr, $source:ident => $of_datagrams:expr) => {
        match $sender {
            Sender::Tcp($tcp) => $of_tcp,
            Sender::Carrying(carrying) => match &**carrying {
                CarryingSender::Sack($tcp) => $of_tcp,
                CarryingSender::Datagram($source) => $of_datagrams,
            },
        }
    };
}

impl Sender {
    /// The last packet of its volume has this size in place of a full one; RAP and TFRC keep full ones.
    pub(crate) fn set_last(&mut self, size: u16) {
        each!(self, tcp => tcp.set_last(size), source => match source {
            DatagramSender::Udp(udp) => udp.set_last(size),
            DatagramSender::Rap(_) | DatagramSender::Tfrc(_) => {}
        });
    }

    /// TCP: one past the last segment of its volume, and by how many bytes that is shorter than a full one.
    pub(crate) fn last(&self) -> (u32, u16) {
        each!(ref self, tcp => tcp.last(), _source => (0, 0))
    }

    /// UDP: it sends at the rate of these parameters from now on.
    pub(crate) fn set_rate(&mut self, params: &udp::UdpParams, now: Instant) {
        each!(self, _tcp => (), source => if let DatagramSender::Udp(udp) = source {
            udp.set_rate(params, now);
        });
    }

    /// TCP: its congestion control, which is implemented outside, has these parameters from now on.
    pub(crate) fn set_control(&mut self, params: &tcp::congestion::ForeignCongestionParams) {
        each!(self, tcp => tcp.set_control(params), _source => ());
    }

    /// Begins to send.
    pub fn start(&mut self, now: Instant) {
        each!(self, tcp => tcp.start(now), source => source.start(now));
    }

    /// The time named by [`wake`](Self::wake) has come.
    pub fn on_wake(&mut self, now: Instant) {
        each!(self, tcp => tcp.on_wake(now), source => source.on_wake(now));
    }

    /// A control message came; one that it has no use for changes nothing.
    pub(crate) fn on_message(&mut self, message: &Message) {
        each!(self, tcp => tcp.on_message(message), _source => ());
    }

    /// When the sender next has something to do by itself.
    #[inline(always)]
    pub fn wake(&self) -> Instant {
        each!(ref self, tcp => tcp.wake(), source => source.wake())
    }

    /// When a source of datagrams sent the last packet that it has; `None` before, and for one without an end.
    pub(crate) fn finished(&self) -> Option<Instant> {
        each!(ref self, _tcp => None, source => source.finished())
    }

    /// The application has nothing more to send.
    pub fn stop(&mut self) {
        each!(self, tcp => tcp.stop(), source => source.stop());
    }

    /// From the start on, it has only what its application [grants](Self::grant).
    pub(crate) fn await_grants(&mut self) {
        each!(self, tcp => tcp.await_grants(), source => source.await_grants());
    }

    /// The application hands over a datagram of this size on the wire, to be sent now.
    pub(crate) fn send_datagram(&mut self, size: u16, now: Instant) {
        each!(self, _tcp => unreachable!("TCP is granted data"), source => source.send_datagram(size, now));
    }

    /// The application has so many full packets more to send.
    pub(crate) fn grant(&mut self, packets: u32, now: Instant) {
        each!(self, tcp => tcp.grant(packets, now), _source => unreachable!("datagrams are sent one by one"));
    }

    /// Congestion window in packets, if the sender has one.
    pub fn window(&self) -> Option<f64> {
        each!(ref self, tcp => Some(tcp.window()), _source => None)
    }

    /// Congestion window in packets, if the sender has one and something to send.
    pub fn sending_window(&self) -> Option<f64> {
        each!(ref self, tcp => tcp.is_sending().then(|| tcp.window()), _source => None)
    }

    /// The smoothed round-trip time in seconds, if the sender has one yet.
    pub fn smoothed_rtt(&self) -> Option<f64> {
        each!(ref self, tcp => tcp.smoothed_rtt(), source => source.smoothed_rtt())
    }

    /// Segments acknowledged in order.
    pub fn acknowledged(&self) -> u64 {
        each!(ref self, tcp => tcp.acknowledged(), _source => 0)
    }

    /// TCP: one past the highest segment ever sent.
    pub(crate) fn highest(&self) -> u32 {
        each!(ref self, tcp => tcp.highest(), _source => 0)
    }

    /// The smallest packet of its trace, in bytes, if it sends one.
    pub(crate) fn smallest(&self) -> Option<u16> {
        each!(ref self, _tcp => None, source => source.smallest())
    }

    /// TCP: the sender's buffer in bytes, if it is limited.
    pub fn buffer(&self) -> Option<u64> {
        each!(ref self, tcp => tcp.buffer(), _source => None)
    }

    /// TCP: the receiver's window in bytes.
    pub fn receiver_window(&self) -> Option<u64> {
        each!(ref self, tcp => Some(tcp.receiver_window()), _source => None)
    }

    /// What was counted, and how long what kept it from sending more, by now.
    pub(crate) fn statistics_at(&self, now: Instant) -> SenderStatistics {
        let limits = each!(ref self, tcp => tcp.limits(now), _source => LimitTimes::default());
        SenderStatistics { limits, ..self.statistics() }
    }

    /// What was counted.
    pub fn statistics(&self) -> SenderStatistics {
        each!(ref self, tcp => tcp.statistics(), source => source.statistics().clone())
    }
}

impl CarryingSender {
    /// Whether [`ack_fast`](Self::ack_fast) may be called.
    pub(crate) fn is_on_fast_path(&self) -> bool {
        match self {
            Self::Sack(tcp) => tcp.is_on_fast_path(),
            Self::Datagram(_) => false,
        }
    }

    /// Whether ACKs may take the fast path: see [`SackSender::take_fast_in_recovery`](tcp::SackSender::take_fast_in_recovery).
    pub(crate) fn has_recovery_fast_path(&self) -> bool {
        match self {
            Self::Sack(tcp) => tcp.has_recovery_fast_path(),
            Self::Datagram(_) => false,
        }
    }

    /// Takes the ACK of this number as [`TcpSender::ack_fast`](tcp::TcpSender::ack_fast) does. Returns the segments to put on the
    /// wire; `None`, and does nothing, for any other ACK.
    pub(crate) fn ack_fast(&mut self, number: u32, now: Instant) -> Option<Range<u32>> {
        match self {
            Self::Sack(tcp) => tcp.ack_plain_fast(number, now),
            Self::Datagram(_) => None,
        }
    }
}

/// What a receiver makes of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Not seen before.
    pub first: bool,
    /// Acknowledge it now.
    pub ack: Option<Ack>,
}

/// What becomes of the ACK of a packet where ACKs wait, or where not every packet has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DelayedAck {
    /// It waits for the next packet, or until it is due, or there is none.
    Waits,
    /// The one of this number is sent, and none waits.
    Sent(u32),
    /// The feedback of this number is sent, and other feedback may be due later.
    Reported(u32),
}

/// Any receiver.
#[derive(Clone, Debug)]
pub enum Receiver {
    /// TCP: cumulative acknowledgements.
    Tcp(tcp::TcpReceiver),
    /// Any whose ACKs carry more than their number, or that sends none.
    Carrying(CarryingReceiver),
}

/// A receiver whose ACKs carry more than their number, or that sends none.
#[derive(Clone, Debug)]
pub enum CarryingReceiver {
    /// TCP: selective acknowledgements.
    Sack(Box<tcp::SackReceiver>),
    /// Any of a sender that never sends a packet twice.
    Datagram(DatagramReceiver),
}

impl Receiver {
    /// A data packet came.
    #[inline(always)]
    pub fn on_data(&mut self, content: Content, now: Instant, metadata: &mut Metadata) -> Received {
        let signals = Signals { marked: content.ecn() == Ecn::Congested, reduced: content.flag() };
        match self {
            Self::Tcp(tcp) => tcp.on_data(content.sequence(), signals, now),
            Self::Carrying(receiver) => receiver.on_data(content.sequence(), signals, now, metadata),
        }
    }

    /// The acknowledgement that is due by `now`, if one is.
    pub fn on_wake(&mut self, now: Instant, metadata: &mut Metadata) -> Option<Ack> {
        match self {
            Self::Tcp(tcp) => tcp.on_wake(now),
            Self::Carrying(receiver) => receiver.on_wake(now, metadata),
        }
    }

    /// When an acknowledgement is due that did not follow a packet at once.
    #[inline(always)]
    pub fn wake(&self) -> Instant {
        match self {
            Self::Tcp(tcp) => tcp.wake(),
            Self::Carrying(receiver) => receiver.wake(),
        }
    }

    /// TCP: data of the other direction is sent and carries this ACK; one that waits waits no more.
    pub(crate) fn ride(&mut self) -> Option<RidingAck> {
        match self {
            Self::Tcp(tcp) => Some(tcp.ride()),
            Self::Carrying(CarryingReceiver::Sack(tcp)) => Some(tcp.ride()),
            Self::Carrying(CarryingReceiver::Datagram(_)) => None,
        }
    }

    /// TCP: nothing has come beyond a gap.
    pub(crate) fn is_in_order(&self) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.is_in_order(),
            Self::Carrying(CarryingReceiver::Sack(tcp)) => tcp.is_in_order(),
            Self::Carrying(CarryingReceiver::Datagram(_)) => true,
        }
    }

    /// TCP: the first segment that has not arrived.
    pub(crate) fn expected(&self) -> u32 {
        match self {
            Self::Tcp(tcp) => tcp.expected(),
            Self::Carrying(CarryingReceiver::Sack(tcp)) => tcp.expected(),
            Self::Carrying(CarryingReceiver::Datagram(_)) => 0,
        }
    }
}

impl Receiver {
    /// Whether [`receive_delayed_fast`](Self::receive_delayed_fast) may be called.
    pub(crate) fn is_on_delayed_fast_path(&self) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.is_on_delayed_fast_path(),
            Self::Carrying(CarryingReceiver::Sack(tcp)) => tcp.is_on_delayed_fast_path(),
            Self::Carrying(CarryingReceiver::Datagram(_)) => true,
        }
    }

    /// Takes a segment as [`TcpReceiver::receive_delayed_fast`](tcp::TcpReceiver::receive_delayed_fast) does, and a datagram of this size
    /// without a mark, before its receiver has something to do by itself.
    #[inline(always)]
    pub(crate) fn receive_delayed_fast(
        &mut self,
        content: Content,
        size: u16,
        now: Instant,
        metadata: &mut Metadata,
    ) -> Option<DelayedAck> {
        match self {
            Self::Tcp(tcp) => tcp.receive_delayed_fast(content.sequence(), now),
            Self::Carrying(CarryingReceiver::Sack(tcp)) => tcp.receive_delayed_fast(content, now, metadata),
            Self::Carrying(CarryingReceiver::Datagram(receiver)) => {
                let is_plain = content.size() == size && content.ecn() != Ecn::Congested;
                if !is_plain || now >= receiver.wake() {
                    return None;
                }
                let feedback = metadata.of_datagrams().receive(receiver, content.sequence(), now);
                Some(feedback.map_or(DelayedAck::Waits, DelayedAck::Reported))
            }
        }
    }
}

impl CarryingReceiver {
    /// See [`SackReceiver::receive_ahead`](tcp::SackReceiver::receive_ahead).
    #[inline(always)]
    pub(crate) fn receive_ahead(&mut self, sequence: u32, metadata: &mut Metadata) -> Option<u32> {
        match self {
            Self::Sack(tcp) => tcp.receive_ahead(sequence, metadata.of_acks()),
            Self::Datagram(_) => None,
        }
    }

    /// Whether [`receive_fast`](Self::receive_fast) may be called.
    pub(crate) fn is_on_fast_path(&self) -> bool {
        match self {
            Self::Sack(tcp) => tcp.is_on_fast_path(),
            Self::Datagram(receiver) => matches!(receiver, DatagramReceiver::Echo),
        }
    }

    /// Takes a segment as [`TcpReceiver::receive_fast`](tcp::TcpReceiver::receive_fast) does, and a datagram of this size without a mark
    /// whose number its receiver sends back.
    #[inline(always)]
    pub(crate) fn receive_fast(
        &mut self,
        content: Content,
        size: u16,
        now: Instant,
        metadata: &mut Metadata,
    ) -> Option<u32> {
        match self {
            Self::Sack(tcp) => tcp.receive_fast(content.sequence()),
            Self::Datagram(receiver) => {
                let is_plain = content.size() == size && content.ecn() != Ecn::Congested;
                if !is_plain {
                    return None;
                }
                metadata.of_datagrams().receive(receiver, content.sequence(), now)
            }
        }
    }

    #[inline(never)]
    fn on_data(
        &mut self,
        sequence: u32,
        signals: Signals,
        now: Instant,
        metadata: &mut Metadata,
    ) -> Received {
        match self {
            Self::Sack(tcp) => tcp.on_data(sequence, signals, now, metadata.of_acks()),
            Self::Datagram(receiver) => {
                let feedback = metadata.of_datagrams().receive(receiver, sequence, now);
                Received { first: true, ack: feedback.map(Ack::plain) }
            }
        }
    }

    fn on_wake(&mut self, now: Instant, metadata: &mut Metadata) -> Option<Ack> {
        match self {
            Self::Sack(tcp) => tcp.on_wake(now, metadata.of_acks()),
            Self::Datagram(receiver) => metadata.of_datagrams().wake(receiver, now).map(Ack::plain),
        }
    }

    fn wake(&self) -> Instant {
        match self {
            Self::Sack(tcp) => tcp.wake(),
            Self::Datagram(receiver) => receiver.wake(),
        }
    }
}
