//! Packets between links: which step of its route each comes to next.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::prefetch;

use super::border::{Border, BorderPacket};
use super::hosts::{Hosts, PREFETCH_DISTANCE};
use crate::engine::setup::{Setup, Step};
use crate::network::Network;
use crate::packet::SimPacket;
use crate::watch::Watch;

/// So many packets go on before other links run: they should not leave the processor's first cache.
pub(super) const MANY: usize = 512;

/// Packets in transit, and the hosts that they come from and go to.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    /// Packets that have left links in this window, in the order in which links ran, and have not come to the
    /// next steps of their routes: those of links that lead to hosts only, and those of links that lead on.
    ///
    /// Whatever leaves a link in a window of the look-ahead comes nowhere within it. So all links may run
    /// before any of these packets goes on: then they go on one after another, and the processor can be asked
    /// early for what each will need.
    pub(super) departures: [Vec<SimPacket>; 2],
    pub(super) hosts: Hosts,
    /// All routes, end to end.
    steps: Vec<Step>,
    pub(super) watch: Watch,
    /// The way to other parts of the network, if the run is divided among threads.
    pub(super) border: Option<Box<Border>>,
}

impl Traffic {
    /// A network at time zero, in which no packet is in transit.
    pub(super) fn new(
        network: &Network,
        seed: u64,
        mut setup: Setup,
        watch: Watch,
        border: Option<Border>,
    ) -> Self {
        Self {
            departures: [Vec::new(), Vec::new()],
            steps: std::mem::take(&mut setup.steps),
            hosts: Hosts::new(network, seed, setup),
            watch,
            border: border.map(Box::new),
        }
    }

    /// Takes packets that have left a link. In a small network, whose state the processor has at hand, they
    /// go on at once; else they wait for the departures of other links.
    #[inline]
    pub(super) fn leave_link(
        &mut self,
        packets: &[SimPacket],
        leads_on: bool,
        departures: &mut Vec<SimPacket>,
    ) {
        if self.hosts.inputs.are_many() {
            departures.extend_from_slice(packets);
        } else {
            self.pass_on(packets, leads_on);
        }
    }

    /// Takes all packets that have left links in this window to the next steps of their routes.
    pub(super) fn pass_all_on(&mut self) {
        for leads_on in [true, false] {
            let mut packets = std::mem::take(&mut self.departures[usize::from(leads_on)]);
            self.pass_on(&packets, leads_on);
            packets.clear();
            self.departures[usize::from(leads_on)] = packets;
        }
    }

    /// Takes packets to the next steps of their routes that have left links which lead on, or links which
    /// lead to hosts only.
    #[inline]
    pub(super) fn pass_on(&mut self, packets: &[SimPacket], leads_on: bool) {
        if leads_on {
            self.forward_all(packets);
        } else {
            self.hosts.deliver_all(packets);
        }
    }

    #[inline(never)]
    fn forward_all(&mut self, packets: &[SimPacket]) {
        let are_many = self.hosts.inputs.are_many();
        for (place, packet) in packets.iter().enumerate() {
            if are_many {
                self.prefetch(&packets[place..]);
            }
            if packet.is_lost() {
                self.hosts.lose(*packet);
            } else {
                self.forward(packet.onward());
            }
        }
    }

    /// Asks the processor for what packets need that go on soon: each answer says what to ask for next.
    #[inline(always)]
    fn prefetch(&self, packets: &[SimPacket]) {
        let next = |distance: usize| packets.get(distance).map(|packet| packet.step() + 1);
        if let Some(step) = next(4 * PREFETCH_DISTANCE) {
            prefetch(self.steps.get(step..=step).unwrap_or_default());
        }
        if let Some(step) = next(2 * PREFETCH_DISTANCE) {
            match self.steps.get(step) {
                Some(&(Step::Link(link) | Step::Metered(link))) => {
                    prefetch(&self.hosts.inputs.queues[link as usize..=link as usize]);
                }
                _ => self.hosts.prefetch(packets[2 * PREFETCH_DISTANCE].flow()),
            }
        }
        if let Some(step) = next(PREFETCH_DISTANCE)
            && let Some(&(Step::Link(link) | Step::Metered(link))) = self.steps.get(step)
        {
            self.hosts.inputs.queues[link as usize].prefetch_last();
        }
    }

    /// Takes a packet to the step of its route that it has come to, behind a link.
    #[inline(always)]
    fn forward(&mut self, packet: SimPacket) {
        match self.steps[packet.step()] {
            Step::Link(link) | Step::Metered(link) => self.hosts.inputs.push(link as usize, packet),
            Step::Ingress => self.hosts.inputs.waiting.push(packet),
            Step::Away(part) => self.leave(part, packet),
            _ => self.hosts.deliver_all(&[packet]),
        }
    }

    /// Takes a packet that has waited for its time to the step of its route before which it waited.
    pub(super) fn advance(&mut self, packet: SimPacket) {
        match self.steps[packet.step()] {
            Step::Ingress => {
                self.hosts.pass_ingress(packet);
                self.forward(packet.onward());
            }
            step => self.hosts.arrive(packet, step),
        }
    }

    /// Passes packets through the meters and controls at their first routers. Returns the packets that the
    /// meters let pass, in the same order.
    pub(super) fn pass_first_routers<'a>(&mut self, packets: &'a mut [SimPacket]) -> &'a mut [SimPacket] {
        let Self { hosts, steps, .. } = self;
        keep(packets, |packet| match steps[packet.step()] {
            Step::Metered(_) => hosts.pass_first_router(packet),
            _ => Some(packet),
        })
    }

    /// Sends a packet, and what it carries, on in another part of the network.
    #[inline(never)]
    fn leave(&mut self, part: u32, packet: SimPacket) {
        let Some(border) = &mut self.border else { unreachable!("the network is whole") };
        border.leave(part, packet, self.hosts.flows[packet.flow()].base.unload(packet));
    }

    /// Takes in a packet from another part of the network.
    pub(super) fn enter(&mut self, BorderPacket { packet, metadata }: BorderPacket) {
        let Some(border) = &self.border else { unreachable!("the network is whole") };
        let packet = border.inward(packet);
        if let Some(metadata) = metadata {
            self.hosts.flows[packet.flow()].base.load(packet, metadata);
        }
        self.forward(packet);
    }

    /// Numbers packets as in the whole network, for the ports of links.
    #[inline(always)]
    pub(super) fn show(&self, packets: &mut [SimPacket]) {
        if let Some(border) = &self.border {
            border.show(packets);
        }
    }

    /// Numbers packets that ports have seen as in this part of the network.
    #[inline(always)]
    pub(super) fn take_back(&self, packets: &mut [SimPacket]) {
        if let Some(border) = &self.border {
            border.take_back(packets);
        }
    }
}

/// Replaces each packet by what `pass` makes of it, and leaves out those of which that is nothing.
pub(super) fn keep(
    packets: &mut [SimPacket],
    mut pass: impl FnMut(SimPacket) -> Option<SimPacket>,
) -> &mut [SimPacket] {
    let mut kept = 0;
    for place in 0..packets.len() {
        if let Some(packet) = pass(packets[place]) {
            packets[kept] = packet;
            kept += 1;
        }
    }
    &mut packets[..kept]
}
