//! What a packet of a flow carries, for an observer of the run.

use super::Flow;
use crate::observer::{Acknowledgement, Contents, Origin};
use crate::packet::SimPacket;
use crate::transport::{CarryingSender, Sender};

impl Flow {
    /// What a packet of the flow that is in transit carries.
    pub(crate) fn contents(&self, packet: SimPacket) -> Contents {
        let number = packet.sequence();
        let is_tcp = match &self.sender {
            Sender::Tcp(_) => true,
            Sender::Carrying(carrying) => matches!(**carrying, CarryingSender::Sack(_)),
        };
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
        // An ACK that a later one has overtaken carries nothing any more: its sender would ignore it.
        let acknowledged = || Acknowledgement::of(self.sender.acknowledged() as u32);
        let found = match &self.sender {
            Sender::Tcp(_) => Acknowledgement::of(packet.sequence()),
            Sender::Carrying(_) => {
                self.rare.metadata.acknowledgement(packet.sequence()).unwrap_or_else(acknowledged)
            }
        };
        let is_first = found.expected == 1 && {
            let sent = self.sender.statistics();
            sent.sent - sent.retransmitted <= 1
        };
        let last = self.sender.last();
        Acknowledgement { echo: packet.content().flag(), is_first, last, ..found }
    }

    /// Which flow it is, for an observer of the run.
    pub(crate) fn origin(&self) -> Origin {
        self.rare.origin
    }
}

impl Acknowledgement {
    /// One that says nothing but which segment is expected.
    pub(crate) fn of(expected: u32) -> Self {
        Self {
            expected,
            echo: false,
            marked: 0,
            is_first: false,
            duplicate: None,
            last: (0, 0),
            ranges: [(0, 0); 3],
        }
    }
}
