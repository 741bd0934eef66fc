//! Transports that never send a packet twice: the sources, their receivers, and what their packets carry.
//!
//! A simulated packet carries one number. What else these transports write into a packet (timestamps, the sender's
//! round-trip time, a report) is stored here under that number while the packet is in transit.

#[cfg(test)]
mod tests;

use std::ops::Range;

use perhop_core::{Context, Dscp, Duration, Instant};

use super::in_flight::InFlight;
use super::metadata::Cargo;
use super::rap::RapSender;
use super::tfrc::{Report, TfrcReceiver, TfrcSender};
use super::transit::TransitMeter;
use super::udp::UdpSender;
use super::{Ack, SenderStatistics, Source, Transmit};

/// A sender that never sends a packet twice.
#[derive(Clone, Debug)]
pub enum DatagramSender {
    /// UDP, constant or on and off.
    Udp(UdpSender),
    /// RAP.
    Rap(RapSender),
    /// TFRC.
    Tfrc(TfrcSender),
}

/// Asks whichever source it is.
macro_rules! each {
    ($sender:expr, $source:ident => $call:expr) => {
        match $sender {
            DatagramSender::Udp($source) => $call,
            DatagramSender::Rap($source) => $call,
            DatagramSender::Tfrc($source) => $call,
        }
    };
}

impl DatagramSender {
    /// Begins to send.
    pub fn start(&mut self, now: Instant) {
        each!(self, source => source.start(now));
    }

    /// When it sent the last packet that it has; `None` before, and without an end.
    pub(crate) fn finished(&self) -> Option<Instant> {
        each!(self, source => source.finished())
    }

    /// The application has nothing more to send.
    pub fn stop(&mut self) {
        each!(self, source => source.stop());
    }

    /// UDP: from the start on, it has only the datagrams that its application [hands over](Self::send_datagram).
    pub(super) fn await_grants(&mut self) {
        if let Self::Udp(udp) = self {
            udp.await_datagrams();
        }
    }

    /// The smallest packet of its trace, in bytes, if it sends one.
    pub(super) fn smallest(&self) -> Option<u16> {
        match self {
            Self::Udp(udp) => udp.smallest(),
            Self::Rap(_) | Self::Tfrc(_) => None,
        }
    }

    /// UDP: the application hands over a datagram of this size on the wire.
    pub(super) fn send_datagram(&mut self, size: u16, now: Instant) {
        if let Self::Udp(udp) = self {
            udp.send_datagram(size, now);
        }
    }

    /// The time named by [`wake`](Self::wake) has come.
    pub fn on_wake(&mut self, now: Instant) {
        match self {
            Self::Udp(_) => {}
            Self::Rap(rap) => rap.on_wake(now),
            Self::Tfrc(tfrc) => tfrc.on_wake(now),
        }
    }

    /// When it next has something to do by itself.
    pub fn wake(&self) -> Instant {
        each!(self, source => source.wake())
    }

    /// The next packet to put on the wire now; ask until there is none, whenever anything happened.
    pub fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        each!(self, source => source.transmit(cx))
    }

    /// Feedback of its receiver came.
    pub fn on_feedback(&mut self, feedback: Feedback, now: Instant) {
        match (self, feedback) {
            (Self::Rap(rap), Feedback::Echo(number)) => rap.on_ack(number, now),
            (Self::Tfrc(tfrc), Feedback::Report(report)) => tfrc.on_report(&report, now),
            _ => {}
        }
    }

    /// The round-trip time that the source knows, which TFRC's packets carry.
    pub fn rtt(&self) -> Option<Duration> {
        match self {
            Self::Udp(_) => None,
            Self::Rap(rap) => rap.rtt(),
            Self::Tfrc(tfrc) => tfrc.rtt(),
        }
    }

    pub(super) fn smoothed_rtt(&self) -> Option<f64> {
        self.rtt().map(Duration::as_secs_f64)
    }

    /// What was counted.
    pub fn statistics(&self) -> &SenderStatistics {
        each!(self, source => source.statistics())
    }
}

/// The receiver of a sender that never sends a packet twice.
#[derive(Clone, Debug)]
pub enum DatagramReceiver {
    /// Counts and keeps silent.
    Sink,
    /// Acknowledges each packet with its own number.
    Echo,
    /// Reports what it received and lost (TFRC).
    Tfrc(Box<TfrcReceiver>),
}

impl DatagramReceiver {
    /// A data packet came; returns the feedback to send now.
    pub fn on_data(&mut self, sequence: u32, envelope: Envelope, arrival: Instant) -> Option<Feedback> {
        match self {
            Self::Sink => None,
            Self::Echo => Some(Feedback::Echo(sequence)),
            Self::Tfrc(tfrc) => tfrc.on_data(sequence, envelope, arrival).map(Feedback::Report),
        }
    }

    /// The feedback that is due by now without a packet having come.
    pub fn on_wake(&mut self, now: Instant) -> Option<Feedback> {
        match self {
            Self::Sink | Self::Echo => None,
            Self::Tfrc(tfrc) => tfrc.on_wake(now).map(Feedback::Report),
        }
    }

    /// When feedback is due that does not follow a packet at once.
    pub fn wake(&self) -> Instant {
        match self {
            Self::Sink | Self::Echo => Instant::NEVER,
            Self::Tfrc(tfrc) => tfrc.wake(),
        }
    }
}

/// What a receiver reports to its sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feedback {
    /// The packet of this number has come.
    Echo(u32),
    /// What was received and lost.
    Report(Report),
}

/// What a data packet carries besides its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// When its host sent it.
    pub sent: Instant,
    /// The sender's round-trip time by then.
    pub rtt: Option<Duration>,
}

/// The calls to one kind of these senders in the path of packets: code over them is compiled for each.
pub(crate) trait DatagramSource {
    /// See [`DatagramSender::wake`].
    fn wake(&self) -> Instant;
    /// See [`DatagramSender::on_wake`].
    fn on_wake(&mut self, now: Instant);
    /// See [`DatagramSender::transmit`].
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit>;
    /// What `on_wake` does now, and the first packet that `transmit` then hands over, if that is full and like the others: its number.
    /// `None`, and nothing is done, otherwise.
    fn send_fast(&mut self, cx: &mut Context<'_>) -> Option<u32>;
    /// The feedback of this number came; reports are in transit under theirs.
    fn on_feedback(&mut self, number: u32, reports: &mut InFlight<Report>, now: Instant);
    /// The same, and the source then sends nothing. Returns false, having done nothing, if that cannot be said beforehand.
    #[inline]
    fn on_feedback_fast(&mut self, _number: u32, _now: Instant) -> bool {
        false
    }
    /// The round-trip time that its packets carry.
    #[inline]
    fn carried_rtt(&self) -> Option<Duration> {
        None
    }
    /// The codepoint of the packet that it has just handed over, if that is not its flow's.
    #[inline]
    fn codepoint(&self) -> Option<Dscp> {
        None
    }
}

impl DatagramSource for UdpSender {
    #[inline]
    fn wake(&self) -> Instant {
        self.wake()
    }
    #[inline]
    fn on_wake(&mut self, _now: Instant) {}
    #[inline]
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        self.transmit(cx)
    }
    #[inline]
    fn send_fast(&mut self, cx: &mut Context<'_>) -> Option<u32> {
        self.send_fast(cx)
    }
    #[inline]
    fn on_feedback(&mut self, _number: u32, _reports: &mut InFlight<Report>, _now: Instant) {}
    #[inline]
    fn codepoint(&self) -> Option<Dscp> {
        self.codepoint()
    }
}

impl DatagramSource for RapSender {
    #[inline]
    fn wake(&self) -> Instant {
        self.wake()
    }
    #[inline]
    fn on_wake(&mut self, now: Instant) {
        self.on_wake(now);
    }
    #[inline]
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        self.transmit(cx)
    }
    #[inline]
    fn send_fast(&mut self, cx: &mut Context<'_>) -> Option<u32> {
        self.send_fast(cx)
    }
    #[inline]
    fn on_feedback(&mut self, number: u32, _reports: &mut InFlight<Report>, now: Instant) {
        self.on_ack(number, now);
    }
    #[inline]
    fn on_feedback_fast(&mut self, number: u32, now: Instant) -> bool {
        self.on_ack_fast(number, now)
    }
}

impl DatagramSource for TfrcSender {
    #[inline]
    fn wake(&self) -> Instant {
        self.wake()
    }
    #[inline]
    fn on_wake(&mut self, now: Instant) {
        self.on_wake(now);
    }
    #[inline]
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        self.transmit(cx)
    }
    #[inline]
    fn send_fast(&mut self, cx: &mut Context<'_>) -> Option<u32> {
        self.send_fast(cx)
    }
    #[inline]
    fn on_feedback(&mut self, number: u32, reports: &mut InFlight<Report>, now: Instant) {
        if let Some(report) = reports.take_newest(number) {
            self.on_report(&report, now);
        }
    }
    #[inline]
    fn carried_rtt(&self) -> Option<Duration> {
        self.rtt()
    }
}

/// A sender with what its packets carry.
pub(crate) struct Carrying<'a, S> {
    pub(crate) sender: &'a mut S,
    pub(crate) datagrams: &'a mut Datagrams,
}

impl<S: DatagramSource> Source for Carrying<'_, S> {
    #[inline]
    fn on_ack(&mut self, ack: Ack, now: Instant) {
        self.sender.on_feedback(ack.number, &mut self.datagrams.reports, now);
    }
    #[inline]
    fn ack_fast(&mut self, ack: Ack, now: Instant) -> Option<Range<u32>> {
        self.sender.on_feedback_fast(ack.number, now).then_some(0..0)
    }
    #[inline]
    fn wake_fast(&mut self, cx: &mut Context<'_>) -> Option<Range<u32>> {
        let number = self.sender.send_fast(cx)?;
        let envelope = Envelope { sent: cx.now, rtt: self.sender.carried_rtt() };
        self.datagrams.data.put(number, envelope);
        Some(number..number + 1)
    }
    #[inline]
    fn on_wake(&mut self, now: Instant) {
        self.sender.on_wake(now);
    }
    #[inline]
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        let transmit = self.sender.transmit(cx)?;
        let envelope = Envelope { sent: cx.now, rtt: self.sender.carried_rtt() };
        self.datagrams.data.put(transmit.sequence, envelope);
        Some(transmit)
    }
    #[inline]
    fn codepoint(&self) -> Option<Dscp> {
        self.sender.codepoint()
    }
    fn lose(&mut self, sequence: u32) {
        self.datagrams.lose(sequence, true);
    }
    #[inline]
    fn wake(&self) -> Instant {
        self.sender.wake()
    }
}

/// What the packets of one flow carry while they are in transit, and how long they took.
#[derive(Clone, Debug)]
pub struct Datagrams {
    data: InFlight<Envelope>,
    reports: InFlight<Report>,
    reported: u32,
    /// How long packets took.
    transit: TransitMeter,
}

impl Datagrams {
    /// Nothing in transit. Transit times are measured by this meter.
    pub fn new(transit: TransitMeter) -> Self {
        Self { data: InFlight::default(), reports: InFlight::default(), reported: 0, transit }
    }

    /// How long packets took.
    pub fn transit(&self) -> &TransitMeter {
        &self.transit
    }

    /// A data packet reaches this receiver at `arrival`; returns the number of its feedback.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        receiver: &mut DatagramReceiver,
        sequence: u32,
        arrival: Instant,
    ) -> Option<u32> {
        let envelope = self.data.take(sequence)?;
        self.transit.record(sequence, envelope.sent, arrival);
        match receiver {
            DatagramReceiver::Sink => None,
            DatagramReceiver::Echo => Some(sequence),
            DatagramReceiver::Tfrc(tfrc) => {
                let report = tfrc.on_data(sequence, envelope, arrival)?;
                Some(self.post(Feedback::Report(report)))
            }
        }
    }

    /// The number of the feedback that is due by now, if any is.
    pub(super) fn wake(&mut self, receiver: &mut DatagramReceiver, now: Instant) -> Option<u32> {
        receiver.on_wake(now).map(|feedback| self.post(feedback))
    }

    /// A packet was dropped in transit.
    pub fn lose(&mut self, sequence: u32, is_data: bool) {
        if is_data {
            self.data.lose(sequence);
        } else {
            self.reports.lose(sequence);
        }
    }

    /// Takes out what a packet carries that goes on in another part of the network.
    pub(super) fn unload(&mut self, number: u32, is_data: bool) -> Option<Cargo> {
        if is_data {
            self.data.take(number).map(Cargo::Envelope)
        } else {
            self.reports.take(number).map(|report| Cargo::Report(Box::new(report)))
        }
    }

    /// Takes in what a packet carries that comes from there.
    pub(super) fn load(&mut self, number: u32, cargo: Cargo) {
        match cargo {
            Cargo::Envelope(envelope) => self.data.insert(number, envelope),
            Cargo::Report(report) => self.reports.insert(number, *report),
            Cargo::Ack(_) => unreachable!("datagrams carry none"),
        }
    }

    /// The number under which feedback is in transit.
    fn post(&mut self, feedback: Feedback) -> u32 {
        let report = match feedback {
            Feedback::Echo(number) => return number,
            Feedback::Report(report) => report,
        };
        let number = self.reported;
        self.reported = number.wrapping_add(1);
        self.reports.put(number, report);
        number
    }
}
