//! What a packet of a flow carries, for an observer of the run.

use super::Flow;
use crate::observer::{Acknowledgement, Contents, Origin};
use crate::packet::SimPacket;
use crate::transport::{Sender, Source};

impl Flow {
    /// Returns what a packet of the flow that is in transit carries.
    pub(crate) fn contents(&self, packet: SimPacket) -> Contents {
        let number = packet.sequence();
        let is_tcp = matches!(self.sender, Sender::Tcp(_));
        match (is_tcp, packet.is_ack()) {
            (true, false) => {
                let acknowledged = self.carried(number).map(|ack| Acknowledgement {
                    echo: ack.ece,
                    marked: ack.marked,
                    ..Acknowledgement::of(ack.expected)
                });
                Contents::Segment { number, reduced: packet.content().flag(), acknowledged }
            }
            (true, true) => Contents::Acknowledgement(self.acknowledgement(packet)),
            (false, false) => Contents::Datagram(number),
            (false, true) => Contents::Feedback(number),
        }
    }

    fn acknowledgement(&self, packet: SimPacket) -> Acknowledgement {
        let found = if self.rare.metadata.has_acks() {
            // An ACK that a later one has overtaken carries nothing any more: its sender would ignore it.
            let acknowledged = || Acknowledgement::of(self.sender.acknowledged() as u32);
            self.rare.metadata.acknowledgement(packet.sequence()).unwrap_or_else(acknowledged)
        } else {
            Acknowledgement::of(packet.sequence())
        };
        let is_first = found.expected == 1 && {
            let sent = self.sender.statistics();
            sent.sent - sent.retransmitted <= 1
        };
        let last = self.sender.last();
        Acknowledgement { echo: packet.content().flag(), is_first, last, ..found }
    }

    /// Returns which flow it is, for an observer of the run.
    pub(crate) fn origin(&self) -> Origin {
        self.rare.origin
    }
}

impl Acknowledgement {
    /// Makes an acknowledgement that says nothing but which segment is expected.
    pub(crate) fn of(expected: u32) -> Self {
        Self { expected, ..Self::default() }
    }
}
