//! Packets that have left links and have not come to the next steps of their routes yet.
//!
//! Whatever leaves a link in a window of the look-ahead comes nowhere within it. So all links may run before
//! any of these packets goes on: then they go on one after another, and the processor can be asked early for
//! what each will need.

use crate::packet::SimPacket;

/// So many packets go on even if other links have still to run: they should not leave the processor's first
/// cache.
pub(super) const MANY: usize = 512;

/// The packets, in the order in which links ran.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures {
    /// From links that some packets leave for another link.
    onward: Vec<SimPacket>,
    /// From links that all packets leave for their hosts.
    to_hosts: Vec<SimPacket>,
}

impl Departures {
    /// Lends the packets of links that lead on, or of links that do not; packets may be added until they are
    /// [given back](Self::give_back).
    pub(super) fn lend(&mut self, leads_on: bool) -> Vec<SimPacket> {
        std::mem::take(self.of(leads_on))
    }

    /// Takes back what was lent.
    pub(super) fn give_back(&mut self, packets: Vec<SimPacket>, leads_on: bool) {
        *self.of(leads_on) = packets;
    }

    fn of(&mut self, leads_on: bool) -> &mut Vec<SimPacket> {
        if leads_on { &mut self.onward } else { &mut self.to_hosts }
    }
}
