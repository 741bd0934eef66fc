//! Flows of populations, which begin during the run and end before it does.

use perhop_core::Instant;

use super::engine::Reference;
use crate::engine::populations::Beginning;
use crate::events::{Event, Sources};
use crate::packet::SimPacket;

impl Reference {
    pub(super) fn begin_flow(&mut self, population: usize) {
        let Self { flows, timers, arrivals, populations, recorder, now, .. } = self;
        let Some(Beginning { number, flow, next }) = populations.begin(population, *now, flows, recorder)
        else {
            return;
        };
        if let Some(at) = next {
            arrivals.push(Event { at, source: Sources::population(population) });
        }
        if number == flows.len() {
            flows.push(flow);
            timers.add();
        } else {
            flows[number] = flow;
        }
        self.set_timer(number);
    }

    /// Counts a packet that leaves the network: it has reached its host, or was dropped.
    #[inline]
    pub(super) fn leave(&mut self, packet: SimPacket) {
        self.populations.enter(packet.flow(), -1);
        self.end_flow_if_over(packet.flow());
    }

    /// Notes that nothing can happen any more to a flow of a population, if that is so.
    #[inline]
    pub(super) fn end_flow_if_over(&mut self, flow: usize) {
        let Self { flows, populations, now, .. } = self;
        if populations.contains(flow) {
            let is_idle = || flows[flow].wake() == Instant::NEVER;
            populations.happened(flow, *now, |packets| packets == 0 && is_idle());
        }
    }
}
