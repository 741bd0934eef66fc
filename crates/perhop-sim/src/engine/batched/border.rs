//! The border of a part of a network: packets that leave it for another part, and those that come from there.
//!
//! Flows and steps of routes are numbered anew in each part, in the same order. On the border packets have their numbers in the
//! whole network, and carry their metadata with them.

use crate::packet::SimPacket;
use crate::transport::metadata::Cargo;

/// A packet between two parts: when it comes to the next step of its route, and what it carries.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Crossing {
    pub(super) packet: SimPacket,
    pub(super) cargo: Option<Cargo>,
}

/// How a flow of a part is numbered in the whole network.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Passport {
    /// The flow's number in the whole network.
    pub(in crate::engine) number: u32,
    /// The first step of its routes in the whole network, and in this part.
    pub(in crate::engine) first_step: u32,
    pub(in crate::engine) first_step_here: u32,
}

/// What leads to other parts.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Border {
    /// Of each flow of the part.
    passports: Vec<Passport>,
    /// The number here of each flow of the whole network; of no meaning for flows that do not come here.
    here: Vec<u32>,
    /// Packets that have left for each part since the last exchange.
    pub(in crate::engine) outboxes: Vec<Vec<Crossing>>,
}

impl Passport {
    /// The packet with its numbers in the whole network.
    pub(super) fn outward(self, packet: SimPacket) -> SimPacket {
        let offset = packet.step() as u32 - self.first_step_here;
        packet.renumbered(self.number, self.first_step + offset)
    }
}

impl Border {
    /// Nothing has left yet. The whole network has so many flows.
    pub(in crate::engine) fn new(passports: Vec<Passport>, flows: usize, parts: usize) -> Self {
        let mut here = vec![u32::MAX; flows];
        for (number, passport) in passports.iter().enumerate() {
            here[passport.number as usize] = number as u32;
        }
        Self { passports, here, outboxes: vec![Vec::new(); parts] }
    }

    /// How the packet's flow is numbered.
    #[inline]
    pub(super) fn passport(&self, packet: SimPacket) -> Passport {
        self.passports[packet.flow()]
    }

    /// Gives packets the numbers of their flows in the whole network; their steps stay.
    #[inline(never)]
    pub(super) fn show(&self, packets: &mut [SimPacket]) {
        for packet in packets {
            *packet = packet.renumbered(self.passport(*packet).number, packet.step() as u32);
        }
    }

    /// Gives packets the numbers of their flows here.
    #[inline(never)]
    pub(super) fn take_back(&self, packets: &mut [SimPacket]) {
        for packet in packets {
            *packet = packet.renumbered(self.here[packet.flow()], packet.step() as u32);
        }
    }

    /// A packet with its numbers in the whole network, with those of this part.
    pub(super) fn inward(&self, packet: SimPacket) -> SimPacket {
        let here = self.here[packet.flow()];
        let Passport { first_step, first_step_here, .. } = self.passports[here as usize];
        packet.renumbered(here, packet.step() as u32 - first_step + first_step_here)
    }
}
