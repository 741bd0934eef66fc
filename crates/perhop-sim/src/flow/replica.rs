//! A flow in a part of the network: when a run is divided among threads, each part that packets of a flow
//! pass has a replica of it, and its two hosts are active in one replica each.

use std::ops::Add;

use perhop_core::Instant;

use super::Flow;
use crate::packet::SimPacket;
use crate::transport::metadata::DetachedMetadata;

/// Which hosts of a flow are in a part of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) sends: bool,
    pub(crate) receives: bool,
}

impl Flow {
    /// Makes the flow as it is in a part of the network at time zero: with its number and its first steps of
    /// data and ACKs there. A host that is elsewhere never begins.
    pub(crate) fn replica(mut self, number: u32, first_steps: (u32, u32), ends: Ends) -> Self {
        self.sending.template = self.sending.template.renumbered(number, first_steps.0);
        self.receiving.template = self.receiving.template.renumbered(number, first_steps.1);
        if !ends.sends {
            (self.rare.start, self.rare.stop) = (Instant::NEVER, Instant::NEVER);
        }
        self
    }

    /// Adds what another replica of the flow has counted, and takes its hosts.
    pub(crate) fn join(&mut self, other: Self, ends: Ends) {
        let Self { sender, sending, receiving, mut rare } = other;
        let own = &mut self.rare;
        if let Some(counted) = &rare.at_warmup {
            own.at_warmup.get_or_insert_default().add(counted);
        }
        own.path = own.path.with(rare.path, u64::add);
        if ends.sends {
            (self.sender, self.sending) = (sender, sending);
            own.started = rare.started;
        }
        if ends.receives {
            self.receiving = receiving;
            own.completed = rare.completed;
            own.last_arrival = rare.last_arrival;
            std::mem::swap(&mut own.metadata, &mut rare.metadata);
        }
    }

    /// Takes out what a packet carries that goes on in another part of the network.
    pub(crate) fn unload(&mut self, packet: SimPacket) -> Option<DetachedMetadata> {
        self.rare.metadata.unload(packet.sequence(), !packet.is_ack())
    }

    /// Takes in what a packet carries that comes from there.
    pub(crate) fn load(&mut self, packet: SimPacket, cargo: DetachedMetadata) {
        self.rare.metadata.load(packet.sequence(), cargo);
    }
}
