//! The host that receives.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::Instant;

use crate::packet::SimPacket;
use crate::transport::{Ack, Receiver};
use crate::wire::Wire;

/// The host that receives.
#[derive(Clone, Debug)]
pub(crate) struct ReceivingHost {
    pub(crate) receiver: Receiver,
    /// Packets of the flow's volume that have not arrived, [`QUIET`](super::QUIET) added unless the time of
    /// each arrival is noted.
    pub(super) missing: u64,
    /// What its ACKs have in common.
    pub(crate) template: SimPacket,
    /// The wires from it and to it.
    pub(crate) outward: Wire,
    pub(crate) inward: Wire,
}

impl ReceivingHost {
    /// Puts the ACK on the wire now; returns its packet, at the time when it leaves the wire.
    #[inline(always)]
    pub(crate) fn acknowledge(&mut self, ack: Ack, now: Instant) -> SimPacket {
        let at = self.outward.pass(self.template.size(), now);
        self.template.numbered(ack.number).flagged(ack.ece).due(at)
    }
}
