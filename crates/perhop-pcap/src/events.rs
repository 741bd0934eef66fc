//! The events of a simulated run's packets as records of a fixed size, for tables.

use std::io::{self, Write};

use perhop_core::Reason;
use perhop_sim::Watch;
use perhop_sim::observer::{Contents, Decision, Observed, Observer, PacketEvent};

use crate::packets::{BATCH, Sink};

/// The names of events, by number. An arrival is `in`, and then perhaps `drop` or `mark`; a departure is
/// perhaps `mark`, then `out`, then perhaps `loss`.
pub const EVENTS: [&str; 6] = ["in", "out", "drop", "mark", "police", "loss"];
const IN: u8 = 0;
const OUT: u8 = 1;
const DROP: u8 = 2;
const MARK: u8 = 3;
const POLICE: u8 = 4;
const LOSS: u8 = 5;

/// In place of the number of a reason: there is none.
pub const NO_REASON: u8 = u8::MAX;

/// In place of the number of a flow in its population: it belongs to none.
pub const NO_MEMBER: u32 = u32::MAX;

/// The fields of a record, in order, each with its type in the words of numpy: little-endian, without gaps.
pub const FIELDS: [(&str, &str); 12] = [
    ("time_ns", "<u8"),
    ("flow", "<u4"),
    ("member", "<u4"),
    ("sequence", "<u4"),
    ("link", "<u4"),
    ("size", "<u2"),
    ("event", "u1"),
    ("color", "u1"),
    ("dscp", "u1"),
    ("ecn", "u1"),
    ("reason", "u1"),
    ("is_ack", "u1"),
];

/// Bytes of a record.
pub const RECORD: usize = 32;

/// Writes a record for each event as the run is observed. It keeps none.
pub struct EventLog<W> {
    sink: Sink<W>,
    bytes: Vec<u8>,
}

impl<W: Write + Send> EventLog<W> {
    /// Begins a log. Where `sink` cannot be written, `watch` ends the run.
    pub fn begin(sink: W, watch: Watch) -> Self {
        Self { sink: Sink::new(sink, watch), bytes: Vec::with_capacity(BATCH + 4 * RECORD) }
    }

    /// Writes what remains.
    ///
    /// # Errors
    /// The first error of the sink.
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.write(&self.bytes);
        self.sink.finish()
    }

    fn put(&mut self, observed: &Observed, event: u8, reason: Option<Reason>) {
        let header = &observed.header;
        let (number, is_ack) = match observed.contents {
            Contents::Segment { number, .. } | Contents::Datagram(number) => (number, false),
            Contents::Acknowledgement(ack) => (ack.expected, true),
            Contents::Feedback(number) => (number, true),
        };
        self.bytes.extend(observed.at.as_nanos().to_le_bytes());
        self.bytes.extend(observed.flow.spec.to_le_bytes());
        self.bytes.extend(observed.flow.member.unwrap_or(NO_MEMBER).to_le_bytes());
        self.bytes.extend(number.to_le_bytes());
        self.bytes.extend((observed.link as u32).to_le_bytes());
        self.bytes.extend(header.size.to_le_bytes());
        self.bytes.extend([event, header.color as u8, header.dscp.get(), header.ecn as u8]);
        self.bytes.extend([reason.map_or(NO_REASON, |reason| reason as u8), u8::from(is_ack)]);
    }
}

impl<W: Write + Send> Observer for EventLog<W> {
    fn observe(&mut self, observed: &Observed) {
        match observed.event {
            PacketEvent::Arrival(decision) => {
                self.put(observed, IN, None);
                match decision {
                    Decision::Admitted => {}
                    Decision::Notified(reason) => self.put(observed, MARK, Some(reason)),
                    Decision::Dropped(reason) => self.put(observed, DROP, Some(reason)),
                }
            }
            PacketEvent::Policed => self.put(observed, POLICE, Some(Reason::Policed)),
            PacketEvent::Departure { notified, is_lost } => {
                if let Some(reason) = notified {
                    self.put(observed, MARK, Some(reason));
                }
                self.put(observed, OUT, None);
                if is_lost {
                    self.put(observed, LOSS, None);
                }
            }
            PacketEvent::Dropped(reason) => self.put(observed, DROP, Some(reason)),
        }
        if self.bytes.len() >= BATCH {
            self.sink.write(&self.bytes);
            self.bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_as_long_as_its_fields() {
        let bytes = |kind: &str| -> usize { kind[kind.len() - 1..].parse().unwrap() };
        assert_eq!(FIELDS.iter().map(|(_, kind)| bytes(kind)).sum::<usize>(), RECORD);
    }
}
