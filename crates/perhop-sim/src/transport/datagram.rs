//! Transports that never send a packet twice: the sources, their receivers, and what their packets carry.
//!
//! A simulated packet carries one number. What else these transports write into a packet (timestamps, the sender's
//! round-trip time, a report) stands here under that number while the packet is on its way.

use std::collections::VecDeque;

use perhop_core::{Context, Duration, Instant};

use super::rap::RapSender;
use super::tfrc::{Report, TfrcReceiver, TfrcSender};
use super::transit::TransitMeter;
use super::udp::UdpSender;
use super::{SenderStatistics, Source, Transmit};

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
    ($sender:expr, $source:ident => $answer:expr) => {
        match $sender {
            DatagramSender::Udp($source) => $answer,
            DatagramSender::Rap($source) => $answer,
            DatagramSender::Tfrc($source) => $answer,
        }
    };
}

impl DatagramSender {
    /// Begins to send.
    pub fn start(&mut self, now: Instant) {
        each!(self, source => source.start(now));
    }

    /// The application has nothing more to send.
    pub fn stop(&mut self) {
        each!(self, source => source.stop());
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

    /// An answer of its receiver came.
    pub fn on_answer(&mut self, answer: Answer, now: Instant) {
        match (self, answer) {
            (Self::Rap(rap), Answer::Echo(number)) => rap.on_ack(number, now),
            (Self::Tfrc(tfrc), Answer::Report(report)) => tfrc.on_report(&report, now),
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
    /// A data packet came; returns what to answer now.
    pub fn on_data(&mut self, sequence: u32, envelope: Envelope, arrival: Instant) -> Option<Answer> {
        match self {
            Self::Sink => None,
            Self::Echo => Some(Answer::Echo(sequence)),
            Self::Tfrc(tfrc) => tfrc.on_data(sequence, envelope, arrival).map(Answer::Report),
        }
    }

    /// What to answer by now without a packet having come.
    pub fn on_wake(&mut self, now: Instant) -> Option<Answer> {
        match self {
            Self::Sink | Self::Echo => None,
            Self::Tfrc(tfrc) => tfrc.on_wake(now).map(Answer::Report),
        }
    }

    /// When an answer is due that does not follow a packet at once.
    pub fn wake(&self) -> Instant {
        match self {
            Self::Sink | Self::Echo => Instant::NEVER,
            Self::Tfrc(tfrc) => tfrc.wake(),
        }
    }
}

/// What a receiver tells its sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
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

/// A sender with what its packets carry.
pub(crate) struct Carrying<'a> {
    pub(crate) sender: &'a mut DatagramSender,
    pub(crate) datagrams: &'a mut Datagrams,
}

impl Source for Carrying<'_> {
    fn on_ack(&mut self, number: u32, now: Instant) {
        self.datagrams.answer(self.sender, number, now);
    }
    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Transmit> {
        self.datagrams.transmit(self.sender, cx)
    }
    fn wake(&self) -> Instant {
        self.sender.wake()
    }
}

/// What the packets of one flow carry while they are on their way, and how long they took. Nothing, if it is TCP.
#[derive(Clone, Debug)]
pub struct Datagrams(Option<Box<Carried>>);

#[derive(Clone, Debug)]
struct Carried {
    data: InFlight<Envelope>,
    reports: InFlight<Report>,
    reported: u32,
    /// How long packets took.
    transit: TransitMeter,
}

impl Datagrams {
    /// For TCP, whose packets carry nothing besides their number.
    pub const NONE: Self = Self(None);

    /// Nothing on its way. Transit times are measured over the packets that arrive within `window`.
    pub fn new(window: (Instant, Instant)) -> Self {
        Self(Some(Box::new(Carried {
            data: InFlight::default(),
            reports: InFlight::default(),
            reported: 0,
            transit: TransitMeter::new(window),
        })))
    }

    fn carried(&mut self) -> &mut Carried {
        self.0.as_mut().expect("flows of datagrams have it")
    }

    /// How long packets took, unless the flow is TCP.
    pub fn transit(&self) -> Option<&TransitMeter> {
        self.0.as_ref().map(|carried| &carried.transit)
    }

    /// The next packet of this sender, if it wants one on the wire now.
    fn transmit(&mut self, sender: &mut DatagramSender, cx: &mut Context<'_>) -> Option<Transmit> {
        let transmit = sender.transmit(cx)?;
        self.carried().data.put(transmit.sequence, Envelope { sent: cx.now, rtt: sender.rtt() });
        Some(transmit)
    }

    /// A data packet reaches this receiver at `arrival`; returns the number of the answer.
    #[inline(never)]
    pub(super) fn receive(
        &mut self,
        receiver: &mut DatagramReceiver,
        sequence: u32,
        arrival: Instant,
    ) -> Option<u32> {
        let carried = self.carried();
        let envelope = carried.data.take(sequence)?;
        carried.transit.record(envelope.sent, arrival);
        let answer = receiver.on_data(sequence, envelope, arrival)?;
        Some(carried.post(answer))
    }

    /// The number of the answer that is due by now, if one is.
    pub(super) fn wake(&mut self, receiver: &mut DatagramReceiver, now: Instant) -> Option<u32> {
        receiver.on_wake(now).map(|answer| self.carried().post(answer))
    }

    /// The answer of this number reaches the sender.
    fn answer(&mut self, sender: &mut DatagramSender, number: u32, now: Instant) {
        let answer = match sender {
            DatagramSender::Tfrc(_) => self.carried().reports.take(number).map(Answer::Report),
            DatagramSender::Udp(_) | DatagramSender::Rap(_) => Some(Answer::Echo(number)),
        };
        if let Some(answer) = answer {
            sender.on_answer(answer, now);
        }
    }

    /// A packet was dropped on its way.
    pub fn lose(&mut self, sequence: u32, is_data: bool) {
        match &mut self.0 {
            Some(carried) if is_data => carried.data.lose(sequence),
            Some(carried) => carried.reports.lose(sequence),
            None => {}
        }
    }
}

impl Carried {
    /// The number under which an answer travels.
    fn post(&mut self, answer: Answer) -> u32 {
        let report = match answer {
            Answer::Echo(number) => return number,
            Answer::Report(report) => report,
        };
        let number = self.reported;
        self.reported = number.wrapping_add(1);
        self.reports.put(number, report);
        number
    }
}

/// What is on its way, by the number of its packet. The packets of a flow keep their order.
#[derive(Clone, Debug)]
struct InFlight<T>(VecDeque<(u32, T)>);

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> InFlight<T> {
    /// Sends `content` under the next number.
    fn put(&mut self, number: u32, content: T) {
        self.0.push_back((number, content));
    }

    /// The packet of this number arrives. Those before it never will.
    fn take(&mut self, number: u32) -> Option<T> {
        let place = self.place(number)?;
        self.0.drain(..place);
        self.0.pop_front().map(|(_, content)| content)
    }

    /// The packet of this number was dropped.
    fn lose(&mut self, number: u32) {
        if let Some(place) = self.place(number) {
            self.0.remove(place);
        }
    }

    fn place(&self, number: u32) -> Option<usize> {
        let first = self.0.front()?.0;
        // Numbers start again at zero after the highest, so they are compared by their distance from the first.
        self.0.binary_search_by_key(&number.wrapping_sub(first), |(n, _)| n.wrapping_sub(first)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_is_found_by_number_and_forgotten_when_lost() {
        let mut flight = InFlight::default();
        let numbers = [u32::MAX - 1, u32::MAX, 0, 1, 2];
        for number in numbers {
            flight.put(number, number);
        }
        flight.lose(0);
        flight.lose(7);
        assert_eq!(flight.take(u32::MAX - 1), Some(u32::MAX - 1));
        assert_eq!(flight.take(0), None, "it was dropped");
        assert_eq!(flight.take(1), Some(1));
        assert_eq!(flight.take(u32::MAX), None, "a later one has overtaken it");
        assert_eq!((flight.take(2), flight.take(2)), (Some(2), None));
    }
}
