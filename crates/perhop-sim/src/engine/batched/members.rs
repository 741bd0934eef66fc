//! Flows of populations, which begin during the run and end before it does.
//!
//! A flow is over when none of its packets is in the network and none of its timers is set. Its hosts may
//! have come to that ahead of the clock, so the time is noted at which something last happened to them.
//! Packets of data are not counted one by one when they are sent: the sender has done so.

use perhop_core::Instant;

use super::flow::{BatchedFlow, Keeper};
use super::hosts::Hosts;
use crate::engine::populations::{Beginning, Table};
use crate::events::{Event, EventSource, Sources};
use crate::flow::Flow;

impl Table for Vec<BatchedFlow> {
    fn flow(&mut self, number: usize) -> &mut Flow {
        &mut self[number].base
    }
}

impl Hosts {
    /// Returns whether a flow of a population begins at this event.
    pub(super) fn is_arrival(&self, event: &Event) -> bool {
        matches!(self.sources.source(event.source), EventSource::Arrival(_))
    }

    pub(super) fn begin_flow(&mut self, population: usize, now: Instant) {
        let Self { flows, populations, recorder, events, routes, controls, .. } = self;
        let Some(Beginning { number, flow, next }) = populations.begin(population, now, flows, recorder)
        else {
            return;
        };
        if let Some(at) = next {
            events.push(Event { at, source: Sources::population(population) });
        }
        let (spec, routes) = (populations.spec(population), &routes[populations.stands_for(population)]);
        let mut flow = BatchedFlow::new(flow, spec, routes, controls, &recorder.times);
        flow.begin(now, &recorder.times);
        flow.schedule(events);
        match flows.get_mut(number) {
            Some(before) => *before = flow,
            None => flows.push(flow),
        }
    }

    /// Notes, if a flow belongs to a population, that something happened at one of its hosts at `at`, and
    /// that so many more packets of it are in the network, without those of data that it sent.
    /// [`Instant::ZERO`] means what has happened by the time of any later event.
    #[inline]
    pub(super) fn note_member(&mut self, number: usize, at: Instant, packets: i64) {
        let Self { flows, populations, .. } = self;
        let flow = &flows[number];
        if flow.keeper != Keeper::Population {
            return;
        }
        populations.enter(number, packets);
        populations.happened(number, at, |packets| {
            flow.wake() == Instant::NEVER && packets + flow.base.put_on_wire().cast_signed() == 0
        });
    }
}
