//! What the packets of transports carry that never send one twice.
//!
//! A simulated packet carries one number. What else these transports write into a packet (timestamps, the
//! sender's round-trip time, a report) is stored here under that number while the packet is in transit.

#[cfg(test)]
mod tests;

use perhop_core::{Duration, Instant};

use super::Receiver;
use super::in_flight::InFlight;
use super::metadata::Cargo;
use super::tfrc::Report;
use super::transit::TransitMeter;

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
    /// Makes a store with nothing in transit. Transit times are measured by this meter.
    pub fn new(transit: TransitMeter) -> Self {
        Self { data: InFlight::default(), reports: InFlight::default(), reported: 0, transit }
    }

    /// Returns how long packets took.
    pub fn transit(&self) -> &TransitMeter {
        &self.transit
    }

    /// Notes what a data packet carries that is sent now.
    #[inline]
    pub(crate) fn send(&mut self, number: u32, envelope: Envelope) {
        self.data.put(number, envelope);
    }

    /// Returns the report under this number that reaches its sender, unless a later one has come.
    #[inline]
    pub(super) fn take_report(&mut self, number: u32) -> Option<Report> {
        self.reports.take_newest(number)
    }

    /// Gives a data packet to its receiver at `arrival`; returns the number of the feedback.
    #[inline]
    pub(super) fn receive(
        &mut self,
        receiver: &mut Receiver,
        sequence: u32,
        arrival: Instant,
    ) -> Option<u32> {
        let envelope = self.data.take(sequence)?;
        self.transit.record(sequence, envelope.sent, arrival);
        receiver.on_datagram(sequence, envelope, arrival).map(|feedback| self.post(feedback))
    }

    /// Returns the number of the feedback that is due by now, if any is.
    pub(super) fn wake(&mut self, receiver: &mut Receiver, now: Instant) -> Option<u32> {
        receiver.late_feedback(now).map(|feedback| self.post(feedback))
    }

    /// Forgets what a packet carries that was dropped in transit.
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

    /// Returns the number under which feedback is in transit.
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
