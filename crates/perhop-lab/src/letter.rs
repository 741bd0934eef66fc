//! The payload of UDP, RAP and TFRC datagrams: the metadata that the simulator's senders and receivers
//! exchange in a simulation. All numbers are in network byte order.

use perhop_core::{Duration, Instant};
use perhop_sim::transport::metadata::{Envelope, Feedback, Report};

/// Bytes that a data packet has at least: its number, and when it was sent.
pub(crate) const LEAST: usize = 4 + 8;
/// Bytes of a data packet that also carries the sender's round-trip time.
pub(crate) const DATA: usize = LEAST + 8;
/// Bytes of an acknowledgement of a packet.
pub(crate) const ECHO: usize = 4;
/// Bytes of a report: echo, held, received, loss, events.
pub(crate) const REPORT: usize = 5 * 8;

const NO_RTT: u64 = u64::MAX;

/// Takes numbers from the front of bytes.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*head))
    }
    fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*head))
    }
}

fn write(room: &mut [u8], parts: &[&[u8]]) {
    let mut rest = room;
    for part in parts {
        let (head, tail) = rest.split_at_mut(part.len());
        head.copy_from_slice(part);
        rest = tail;
    }
}

/// Writes the head of a data packet. Of UDP, which has no round-trip time, the first [`LEAST`] bytes suffice.
pub(crate) fn write_data(room: &mut [u8], number: u32, envelope: Envelope) {
    let rtt = envelope.rtt.map_or(NO_RTT, Duration::as_nanos);
    let parts = [&number.to_be_bytes()[..], &envelope.sent.as_nanos().to_be_bytes(), &rtt.to_be_bytes()];
    write(room, &parts);
}

/// Reads it; `None` if the packet is too short.
pub(crate) fn read_data(bytes: &[u8]) -> Option<(u32, Envelope)> {
    let mut reader = Reader(bytes);
    let (number, sent) = (reader.u32()?, reader.u64()?);
    let rtt = reader.u64().unwrap_or(NO_RTT);
    let rtt = (rtt != NO_RTT).then(|| Duration::from_nanos(rtt));
    Some((number, Envelope { sent: Instant::from_nanos(sent), rtt }))
}

/// Writes a feedback packet.
pub(crate) fn write_feedback(room: &mut [u8], feedback: &Feedback) {
    match feedback {
        Feedback::Echo(number) => write(room, &[&number.to_be_bytes()]),
        Feedback::Report(report) => {
            let words = [
                report.echo.as_nanos(),
                report.held.as_nanos(),
                report.received.to_bits(),
                report.loss.to_bits(),
                report.events,
            ];
            let words = words.map(u64::to_be_bytes);
            write(room, &words.each_ref().map(|word| &word[..]));
        }
    }
}

/// Reads what acknowledges a packet; `None` if it is too short.
pub(crate) fn read_echo(bytes: &[u8]) -> Option<Feedback> {
    Reader(bytes).u32().map(Feedback::Echo)
}

/// Reads a report; `None` if it is too short, or says what no receiver says.
pub(crate) fn read_report(bytes: &[u8]) -> Option<Feedback> {
    let mut reader = Reader(bytes);
    let report = Report {
        echo: Instant::from_nanos(reader.u64()?),
        held: Duration::from_nanos(reader.u64()?),
        received: f64::from_bits(reader.u64()?),
        loss: f64::from_bits(reader.u64()?),
        events: reader.u64()?,
    };
    let makes_sense =
        report.received >= 0.0 && report.received.is_finite() && (0.0..=1.0).contains(&report.loss);
    makes_sense.then_some(Feedback::Report(report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (number, sent, rtt) in (any::<u32>(), any::<u64>(), proptest::option::of(0..u64::MAX)),
            (echo, held, received, loss, events) in (any::<u64>(), any::<u64>(), 0.0..1e12_f64, 0.0..=1.0_f64, any::<u64>()),
        ) {
            let mut room = [0; 64];
            let envelope = Envelope { sent: Instant::from_nanos(sent), rtt: rtt.map(Duration::from_nanos) };
            write_data(&mut room, number, envelope);
            prop_assert_eq!(read_data(&room[..DATA]), Some((number, envelope)));
            let without = Some((number, Envelope { rtt: None, ..envelope }));
            prop_assert_eq!(read_data(&room[..LEAST]), without);
            prop_assert_eq!(read_data(&room[..LEAST - 1]), None);
            write_feedback(&mut room, &Feedback::Echo(number));
            prop_assert_eq!(read_echo(&room[..ECHO]), Some(Feedback::Echo(number)));
            let report = Report {
                echo: Instant::from_nanos(echo), held: Duration::from_nanos(held), received, loss, events,
            };
            write_feedback(&mut room, &Feedback::Report(report));
            prop_assert_eq!(read_report(&room[..REPORT]), Some(Feedback::Report(report)));
            prop_assert_eq!(read_report(&room[..REPORT - 1]), None);
        }
    }

    #[test]
    fn a_report_that_makes_no_sense_is_no_report() {
        let mut room = [0; REPORT];
        for (received, loss) in [(f64::NAN, 0.0), (-1.0, 0.0), (1.0, 1.5)] {
            let report = Report { echo: Instant::ZERO, held: Duration::ZERO, received, loss, events: 0 };
            write_feedback(&mut room, &Feedback::Report(report));
            assert_eq!(read_report(&room), None);
        }
    }
}
