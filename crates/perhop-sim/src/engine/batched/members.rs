//! Flows of populations, which begin during the run and end before it does.
//!
//! A flow is over when none of its packets is in the network and none of its timers is set. Its hosts may have come to that ahead of
//! the clock, so the time is noted at which something last happened to them. Packets of data are not counted one by one when they are
//! sent: the sender has done so.

use perhop_core::{Instant, prefetch};

use super::flow::BatchedFlow;
use super::traffic::{CROWD, PREFETCH_DISTANCE, Traffic};
use crate::engine::populations::{Beginning, Table};
use crate::events::{Event, EventSource, Sources};
use crate::flow::Flow;
use crate::packet::{Content, SimPacket};
use crate::transport::Ack;

impl Table for Vec<BatchedFlow> {
    fn flow(&mut self, number: usize) -> &mut Flow {
        &mut self[number].base
    }
}

impl Traffic {
    /// A flow of a population begins at this event.
    pub(super) fn is_arrival(&self, event: &Event) -> bool {
        matches!(self.sources.source(event.source), EventSource::Arrival(_))
    }

    /// The next flow of a population begins.
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

    /// Packets approach hosts, where some belong to flows of populations or of users, or may overtake one another.
    #[inline(never)]
    pub(super) fn approach_mixed(&mut self, packets: &[SimPacket]) {
        let are_many = size_of_val(&self.flows[..]) > CROWD;
        for (place, packet) in packets.iter().enumerate() {
            if are_many && let Some(later) = packets.get(place + PREFETCH_DISTANCE) {
                prefetch(std::slice::from_ref(&self.flows[later.flow()]));
            }
            let (number, content, at) = (packet.flow(), packet.content(), packet.at());
            if packet.is_lost() {
                self.lose(*packet);
            } else if self.flows[number].packets_wait {
                self.wait(self.flows[number].waiting_before_wire(*packet), at);
            } else if self.populations.contains(number) {
                if packet.is_ack() {
                    self.approach_members_sender(number, content, at);
                } else {
                    let at = self.flows[number].base.receiving.inward.pass(content.size(), at);
                    self.reach_members_receiver(number, content, at);
                }
            } else if packet.is_ack() {
                self.approach_sender(number, content, at);
            } else if self.users.owner(number).is_some() {
                self.approach_owned_receiver(number, content, at);
            } else {
                self.approach_receiver(number, content, at);
            }
        }
    }

    /// A data packet reaches the receiver at `at`, now or later. The last of a flow is shorter than others.
    pub(super) fn reach_members_receiver(&mut self, number: usize, content: Content, at: Instant) {
        let acks = self.take_at_receiver(number, content, at);
        self.note_member(number, at, acks - 1);
    }

    /// The receiver takes a data packet, which may be shorter than those for which there are fast paths. Returns how many ACKs are sent.
    pub(super) fn take_at_receiver(&mut self, number: usize, content: Content, at: Instant) -> i64 {
        let Self { flows, links, waiting, .. } = self;
        let flow = &mut flows[number];
        if content.size() != flow.base.data_size() {
            self.reach_receiver_otherwise(number, content, at)
        } else if let Some(ack) = flow.receive_fast(content, at) {
            let packet = flow.base.receiving.acknowledge(Ack::plain(ack), at);
            links.first(waiting, flow.first_ack_link()).push(packet);
            1
        } else {
            self.reach_receiver(number, content, at)
        }
    }

    fn approach_members_sender(&mut self, number: usize, content: Content, at: Instant) {
        let Self { flows, links, waiting, .. } = self;
        let flow = &mut flows[number];
        let at = flow.base.sending.inward.pass(content.size(), at);
        let first = links.first(waiting, flow.first_data_link());
        if flow.acknowledge_fast(content.sequence(), at, first) || self.reach_sender(number, content, at) {
            self.note_member(number, at, -1);
        }
    }

    /// If a flow belongs to a population: something happened at one of its hosts at `at`, and so many more packets of it are in the
    /// network, those of data left out that it sent. [`Instant::ZERO`] stands for what has happened by the time of any later event.
    #[inline]
    pub(super) fn note_member(&mut self, number: usize, at: Instant, packets: i64) {
        let Self { flows, populations, .. } = self;
        if !populations.contains(number) {
            return;
        }
        populations.enter(number, packets);
        populations.happened(number, at);
        let flow = &flows[number];
        let in_network = populations.packets(number) + flow.base.put_on_wire().cast_signed();
        if flow.wake() == Instant::NEVER && in_network == 0 {
            populations.end(number);
        }
    }
}
