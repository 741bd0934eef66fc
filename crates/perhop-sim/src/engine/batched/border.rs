//! The border of a part of a network: packets that leave for another part, and packets that come from there.
//!
//! Flows and steps of routes are numbered anew in each part, in the same order. On the border packets have
//! their numbers in the whole network, and carry their metadata with them.

use crate::packet::SimPacket;
use crate::transport::metadata::DetachedMetadata;

/// A packet between two parts of the network, due at the next step of its route.
#[derive(Clone, Debug)]
pub(in crate::engine) struct BorderPacket {
    pub(super) packet: SimPacket,
    /// What the packet carries besides its header.
    pub(super) metadata: Option<DetachedMetadata>,
}

/// The numbers of a flow in the whole network and in a part.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Renumbering {
    /// The flow's number in the whole network.
    pub(in crate::engine) number: u32,
    /// The first step of its routes in the whole network.
    pub(in crate::engine) first_step: u32,
    /// The first step of its routes in this part.
    pub(in crate::engine) first_step_here: u32,
}

#[derive(Clone, Debug)]
pub(in crate::engine) struct Border {
    /// The numbers of each flow of the part.
    flows: Vec<Renumbering>,
    /// The number here of each flow of the whole network; of no meaning for flows that do not come here.
    here: Vec<u32>,
    /// Packets that have left for each part since the last exchange.
    pub(super) outboxes: Vec<Vec<BorderPacket>>,
}

impl Border {
    /// A border of these flows that no packet has passed. The whole network has `all` flows.
    pub(in crate::engine) fn new(flows: Vec<Renumbering>, all: usize, parts: usize) -> Self {
        let mut here = vec![u32::MAX; all];
        for (number, flow) in flows.iter().enumerate() {
            here[flow.number as usize] = number as u32;
        }
        Self { flows, here, outboxes: vec![Vec::new(); parts] }
    }

    /// Sends a packet to a part, with its numbers in the whole network.
    pub(super) fn leave(&mut self, part: u32, packet: SimPacket, metadata: Option<DetachedMetadata>) {
        let Renumbering { number, first_step, first_step_here } = self.flows[packet.flow()];
        let packet = packet.renumbered(number, packet.step() as u32 - first_step_here + first_step);
        self.outboxes[part as usize].push(BorderPacket { packet, metadata });
    }

    /// Gives packets the numbers of their flows in the whole network; their steps stay.
    #[inline(never)]
    pub(super) fn show(&self, packets: &mut [SimPacket]) {
        for packet in packets {
            *packet = packet.renumbered(self.flows[packet.flow()].number, packet.step() as u32);
        }
    }

    /// Gives packets the numbers of their flows here.
    #[inline(never)]
    pub(super) fn take_back(&self, packets: &mut [SimPacket]) {
        for packet in packets {
            *packet = packet.renumbered(self.here[packet.flow()], packet.step() as u32);
        }
    }

    /// Returns a packet that comes in from another part, with its numbers in this part.
    pub(super) fn inward(&self, packet: SimPacket) -> SimPacket {
        let here = self.here[packet.flow()];
        let Renumbering { first_step, first_step_here, .. } = self.flows[here as usize];
        packet.renumbered(here, packet.step() as u32 - first_step + first_step_here)
    }
}
