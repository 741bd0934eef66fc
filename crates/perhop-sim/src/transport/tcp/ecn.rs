//! ECN at the receiver, and how a connection uses it (RFC 3168, section 6.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a TCP flow's data is ECN-capable, and how its receiver feeds marks back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TcpEcn {
    /// Not capable: queues drop its packets where they would mark others.
    #[default]
    Off,
    /// RFC 3168: after a marked packet every ACK carries ECN-Echo until the sender says that it has reduced its window (CWR).
    /// New data is ECT(0); retransmissions, SYNs and ACKs are not capable.
    Classic,
    /// Every ACK carries the exact number of marked packets so far, as if RFC 9768's counters never wrapped; needs `sack`. The
    /// congestion controls of today answer to the count as they do to ECN-Echo: once in a round trip.
    Accurate,
}

impl TcpEcn {
    /// Its packets are not capable.
    pub const fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }
}

/// The congestion signals of a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// A queue has marked it: Congestion Experienced.
    pub marked: bool,
    /// Its sender has reduced its window: CWR.
    pub reduced: bool,
}

/// What a receiver remembers of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Echo {
    ecn: TcpEcn,
    /// A mark was seen, and no CWR since.
    echoes: bool,
}

impl Echo {
    pub(super) fn new(ecn: TcpEcn) -> Self {
        Self { ecn, echoes: false }
    }

    pub(super) fn is_off(self) -> bool {
        self.ecn.is_off()
    }

    /// A data packet came. One that says that the window was reduced and is itself marked reports new congestion.
    pub(super) fn on_data(&mut self, Signals { marked, reduced }: Signals) {
        self.echoes = marked || (self.echoes && !reduced);
    }

    /// Whether an ACK carries ECN-Echo now.
    pub(super) fn ece(self) -> bool {
        self.echoes && self.ecn == TcpEcn::Classic
    }

    /// Whether ACKs carry the number of marked packets.
    pub(super) fn counts(self) -> bool {
        self.ecn == TcpEcn::Accurate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Signals = Signals { marked: false, reduced: false };
    const MARKED: Signals = Signals { marked: true, reduced: false };
    const REDUCED: Signals = Signals { marked: false, reduced: true };

    #[test]
    fn every_ack_echoes_a_mark_until_the_sender_says_that_it_has_reduced() {
        // RFC 3168, section 6.1.3: "[the receiver] sets the ECN-Echo flag in all subsequent ACKs ... until it receives a CWR
        // packet"; a CWR packet that is marked is a new "instance of congestion".
        let both = Signals { marked: true, reduced: true };
        let mut echo = Echo::new(TcpEcn::Classic);
        let packets = [PLAIN, MARKED, PLAIN, PLAIN, REDUCED, PLAIN, MARKED, MARKED, both, PLAIN, REDUCED];
        let seen = packets.map(|packet| {
            echo.on_data(packet);
            echo.ece()
        });
        let expected = [false, true, true, true, false, false, true, true, true, true, false];
        assert_eq!((seen, echo.counts()), (expected, false));
    }
}
