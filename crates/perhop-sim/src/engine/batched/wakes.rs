//! Events at hosts: the flows and users that are due, and what they do then.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::Instant;

use super::flow::Keeper;
use super::hosts::{Hosts, ReceiverSide, SenderSide};
use crate::events::{Event, EventSource};

impl Hosts {
    /// Returns the next event before `limit`. Puts off a wake-up here whose flow has since put it off, so
    /// that nothing waits for it.
    pub(super) fn next_event(&mut self, limit: Instant) -> Option<Event> {
        loop {
            let event = *self.events.peek(limit)?;
            match self.sources.source(event.source) {
                EventSource::Timer(flow) if !self.is_due(flow, event.at) => {
                    self.events.pop(limit);
                }
                EventSource::User(user) if self.users.queues[user].scheduled != event.at => {
                    self.events.pop(limit);
                }
                _ => return Some(event),
            }
        }
    }

    /// Returns whether a flow is to be woken by the event at this time, which comes next. If it has put it
    /// off, it puts in another.
    #[inline(always)]
    fn is_due(&mut self, number: usize, at: Instant) -> bool {
        let flow = &mut self.flows[number];
        let is_event = flow.scheduled == at; // Else an earlier wake-up took its place.
        let is_due = is_event && at >= flow.wake();
        if is_event && !is_due {
            flow.scheduled = Instant::NEVER;
            flow.schedule(&mut self.events);
        }
        is_due
    }

    /// Wakes the flows and users that are due before `bound`, in a window up to `limit`, in order, up to the
    /// first other event. Returns this event, and how often something happened.
    pub(super) fn wake_before(&mut self, bound: Instant, limit: Instant) -> (Option<Event>, u64) {
        let mut happened = 0;
        while let Some(&event) = self.events.peek(bound) {
            match self.sources.source(event.source) {
                EventSource::Timer(flow) => {
                    self.events.pop(bound);
                    if self.is_due(flow, event.at) {
                        happened += self.wake_flow(flow, event.at, limit);
                    }
                }
                EventSource::User(user) => {
                    self.events.pop(bound);
                    if self.users.queues[user].scheduled == event.at {
                        happened += self.wake_user(user, event.at, limit);
                    }
                }
                _ => return (Some(event), happened),
            }
        }
        (None, happened)
    }

    /// Wakes a flow in a window that ends at `limit`. Returns how often something happened.
    #[inline(always)]
    fn wake_flow(&mut self, number: usize, now: Instant, limit: Instant) -> u64 {
        let flow = &mut self.flows[number];
        flow.scheduled = Instant::NEVER;
        if flow.takes_turns() {
            return self.take_turn(number, limit);
        }
        match flow.keeper {
            Keeper::User(user) => self.wake_users_flow(user.get(), number, now, limit),
            Keeper::Nobody | Keeper::Population => {
                self.wake_flow_now(number, now);
                1
            }
        }
    }

    /// Lets a flow have its turn in a window that ends at `limit`. Returns how often something happened.
    #[inline(always)]
    pub(super) fn take_turn(&mut self, number: usize, limit: Instant) -> u64 {
        let ReceiverSide { flow, mut first, samples, .. } = self.receiver(number);
        flow.scheduled = Instant::NEVER;
        flow.send_late_acks(limit, samples.0.end, &mut first);
        let SenderSide { flow, out, samples } = self.sender(number);
        let happened = flow.take_turn(limit, out, samples);
        self.flows[number].schedule(&mut self.events);
        happened
    }

    /// Wakes a flow at a time of which nothing is known but what happens then.
    #[inline(never)]
    pub(super) fn wake_flow_now(&mut self, number: usize, now: Instant) {
        if let Keeper::User(user) = self.flows[number].keeper {
            self.wake_users_flow(user.get(), number, now, now.just_after());
            return;
        }
        self.flows[number].scheduled = Instant::NEVER;
        self.take_held(number, now);
        let ReceiverSide { flow, mut first, .. } = self.receiver(number);
        let acks = flow.send_late_acks(now.just_after(), now, &mut first);
        flow.find_due();
        let SenderSide { flow, out, .. } = self.sender(number);
        let sent = flow.wake_sender(now, out);
        if sent {
            flow.find_due();
            self.take_held(number, now);
        }
        self.flows[number].schedule(&mut self.events);
        // An ACK that was held has been noted with its time.
        let at = if sent || acks > 0 { now } else { Instant::ZERO };
        self.note_member(number, at, acks);
    }

    /// Lets a sender take the ACKs that were held and have come by now, or need not be held any longer.
    fn take_held(&mut self, number: usize, now: Instant) {
        loop {
            let SenderSide { flow, out, samples } = self.sender(number);
            let Some((at, ack)) = flow.take_held(now, out.channels) else { return };
            flow.acknowledge(ack, at, out, samples);
        }
    }
}
