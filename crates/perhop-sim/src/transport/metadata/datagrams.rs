//! What the packets of transports carry that never send one twice.
//!
//! A simulated packet carries one number. What else these transports write into a packet (timestamps, the
//! sender's round-trip time, a report) is stored here under that number while the packet is in transit.

use perhop_core::{Duration, Instant};

use super::in_flight::InFlight;
use crate::transport::transit::TransitMeter;

/// What a receiver reports to its sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feedback {
    /// The packet of this number has come.
    Echo(u32),
    /// What was received and lost.
    Report(Report),
}

/// A feedback packet of TFRC (RFC 5348, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// When the last packet that the receiver has was sent: `t_recvdata`.
    pub echo: Instant,
    /// How long the receiver has had it: `t_delay`.
    pub held: Duration,
    /// The rate at which packets came in the last round-trip time, in bytes per second: `X_recv`.
    pub received: f64,
    /// The loss event rate p.
    pub loss: f64,
    /// Loss events so far, for statistics.
    pub events: u64,
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
    pub(super) data: InFlight<Envelope>,
    pub(in crate::transport) reports: InFlight<Report>,
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
    pub(in crate::transport) fn take_report(&mut self, number: u32) -> Option<Report> {
        self.reports.take_newest(number)
    }

    /// Takes out what a data packet carries that reaches its receiver at `arrival`.
    #[inline]
    pub(in crate::transport) fn take(&mut self, number: u32, arrival: Instant) -> Option<Envelope> {
        let envelope = self.data.take(number)?;
        self.transit.record(number, envelope.sent, arrival);
        Some(envelope)
    }

    /// Returns the number under which feedback is in transit.
    pub(in crate::transport) fn post(&mut self, feedback: Feedback) -> u32 {
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
