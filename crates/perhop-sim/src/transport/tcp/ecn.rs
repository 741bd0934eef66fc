//! ECN at the receiver, and how a connection uses it (RFC 3168, section 6.1).

use perhop_core::Ecn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a TCP flow's data is ECN-capable, and how its receiver feeds marks back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TcpEcn {
    /// Not capable: queues drop its packets where they would mark others.
    #[default]
    Off,
    /// RFC 3168: after a marked packet every ACK carries ECN-Echo until the sender says that it has reduced
    /// its window (CWR). New data is ECT(0); retransmissions, SYNs and ACKs are not capable. With `congestion
    /// = "dctcp"` retransmissions are capable, as Linux's are, and each ACK instead says whether the packets
    /// that it acknowledges were marked (RFC 8257, section 3.2).
    Classic,
    /// Every ACK carries the exact number of marked packets so far, as if RFC 9768's counters never wrapped;
    /// needs `sack`. `"dctcp"` and `"prague"`, whose data is ECT(1) in place of ECT(0), use the number; the
    /// other congestion controls answer to it as they do to ECN-Echo: once in a round trip.
    Accurate,
    /// Accurate feedback for the low-latency queue of `dualpi2` (RFC 9331): new data is ECT(1), so the
    /// congestion control should be a scalable one. Datagrams may be ECT(1), too; their sender does not react
    /// to marks. In the simulator only.
    L4s,
}

impl TcpEcn {
    /// Returns whether the flow sends without ECN.
    pub const fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }

    /// Returns the ECN field of new data.
    pub const fn codepoint(self) -> Ecn {
        match self {
            Self::Off => Ecn::NotCapable,
            Self::Classic | Self::Accurate => Ecn::Capable0,
            Self::L4s => Ecn::Capable1,
        }
    }

    /// Returns whether ACKs carry the number of marked packets.
    pub const fn counts(self) -> bool {
        matches!(self, Self::Accurate | Self::L4s)
    }
}

/// The congestion signals of a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// A queue has marked the packet: Congestion Experienced.
    pub marked: bool,
    /// The packet's sender has reduced its window: CWR.
    pub reduced: bool,
}

/// What a receiver remembers of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Echo {
    ecn: TcpEcn,
    /// ECN-Echo says whether the last packet was marked (RFC 8257, section 3.2).
    each: bool,
    /// A mark was seen, and no CWR since; or the last packet was marked.
    echoes: bool,
}

impl Echo {
    /// Makes a connection's echo state. With `needs_marks` each mark is echoed, otherwise one until CWR.
    pub(super) fn new(ecn: TcpEcn, needs_marks: bool) -> Self {
        Self { ecn, each: needs_marks && ecn == TcpEcn::Classic, echoes: false }
    }

    pub(super) fn is_off(self) -> bool {
        self.ecn.is_off()
    }

    /// Notes a data packet. One that says that the window was reduced and is itself marked reports new
    /// congestion. Returns whether an ACK that waits has to leave before this packet is acknowledged: each
    /// mark is echoed, and the two differ.
    pub(super) fn on_data(&mut self, Signals { marked, reduced }: Signals) -> bool {
        let before = self.echoes;
        self.echoes = marked || (!self.each && before && !reduced);
        self.each && self.echoes != before
    }

    /// Returns whether an ACK carries ECN-Echo now.
    pub(super) fn ece(self) -> bool {
        self.echoes && self.ecn == TcpEcn::Classic
    }

    /// Returns whether ACKs carry the number of marked packets.
    pub(super) fn counts(self) -> bool {
        self.ecn.counts()
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
        // RFC 3168, section 6.1.3: "[the receiver] sets the ECN-Echo flag in all subsequent ACKs ... until it
        // receives a CWR packet"; a CWR packet that is marked is a new "instance of congestion".
        let both = Signals { marked: true, reduced: true };
        let mut echo = Echo::new(TcpEcn::Classic, false);
        let packets = [PLAIN, MARKED, PLAIN, PLAIN, REDUCED, PLAIN, MARKED, MARKED, both, PLAIN, REDUCED];
        let seen = packets.map(|packet| {
            echo.on_data(packet);
            echo.ece()
        });
        let expected = [false, true, true, true, false, false, true, true, true, true, false];
        assert_eq!((seen, echo.counts()), (expected, false));
    }

    #[test]
    fn a_control_that_needs_each_mark_hears_of_each_and_of_changes_at_once() {
        let mut echo = Echo::new(TcpEcn::Classic, true);
        let packets = [PLAIN, MARKED, MARKED, PLAIN, REDUCED, MARKED, PLAIN];
        let seen = packets.map(|packet| (echo.on_data(packet), echo.ece()));
        let (changes, echoes): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
        assert_eq!(changes, [false, true, false, true, false, true, true]);
        assert_eq!(echoes, packets.map(|packet| packet.marked));
        let mut counting = Echo::new(TcpEcn::Accurate, true);
        assert_eq!((counting.on_data(MARKED), counting.ece(), counting.counts()), (false, false, true));
    }
}
