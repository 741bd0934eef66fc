//! Events at hosts: whose turn it is, and what happens then.

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::Instant;

use super::flow::Outlet;
use super::traffic::Traffic;
use crate::events::{Event, EventSource};
use crate::sampling::Recorder;

impl Traffic {
    /// The next event before `limit`. A wake-up whose flow has since put it off is put off here, so that nothing waits for it.
    pub(super) fn next_event(&mut self, limit: Instant) -> Option<Event> {
        loop {
            let event = *self.events.peek(limit)?;
            match self.sources.source(event.source) {
                EventSource::Timer(flow) if !self.is_due(flow, event.at) => {
                    self.events.pop(limit);
                }
                EventSource::User(user) if !self.users.is_due(user, event.at) => {
                    self.events.pop(limit);
                }
                _ => return Some(event),
            }
        }
    }

    /// Whether a flow is to be woken by the event at this time, which comes next. If it has put it off, it puts in another.
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

    /// Flows that are due before `bound` have their turns in a window that ends at `limit`, in the order of time, up to the
    /// first event that is something else. Returns that, and how often something happened.
    pub(super) fn take_turns(&mut self, bound: Instant, limit: Instant) -> (Option<Event>, u64) {
        let mut happened = 0;
        while let Some(&event) = self.events.peek(bound) {
            match self.sources.source(event.source) {
                EventSource::Timer(flow) => {
                    self.events.pop(bound);
                    if self.is_due(flow, event.at) {
                        happened += self.wake(flow, event.at, limit);
                    }
                }
                EventSource::User(user) => {
                    self.events.pop(bound);
                    if self.users.is_due(user, event.at) {
                        happened += self.wake_user(user, event.at, limit);
                    }
                }
                _ => return (Some(event), happened),
            }
        }
        (None, happened)
    }

    /// A flow is woken, in a window that ends at `limit`. Returns how often something happened.
    #[inline(always)]
    fn wake(&mut self, number: usize, now: Instant, limit: Instant) -> u64 {
        let Self { flows, links, waiting, channels, events, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        flow.scheduled = Instant::NEVER;
        if !flow.takes_turns {
            return self.wake_alone(number, now, limit);
        }
        let mut outward = links.first(waiting, flow.first_ack_link());
        flow.send_late_acks(limit, times.end(), &mut outward);
        let first = links.first(waiting, flow.first_data_link());
        let happened = flow.take_turn(limit, Outlet { first, channels, events }, (times, series));
        flow.schedule(events);
        happened
    }

    /// The same of a flow that takes no turn of its own.
    #[inline(never)]
    fn wake_alone(&mut self, number: usize, now: Instant, limit: Instant) -> u64 {
        if let Some(user) = self.users.owner(number) {
            return self.wake_owned(user, number, now, limit);
        }
        self.wake_now(number, now);
        1
    }

    /// A flow is woken.
    #[inline(never)]
    pub(super) fn wake_now(&mut self, number: usize, now: Instant) {
        if let Some(user) = self.users.owner(number) {
            self.wake_owned(user, number, now, now.just_after());
            return;
        }
        self.flows[number].scheduled = Instant::NEVER;
        self.take_held(number, now);
        let Self { flows, links, waiting, channels, events, .. } = self;
        let flow = &mut flows[number];
        let mut outward = links.first(waiting, flow.first_ack_link());
        let acks = flow.send_late_acks(now.just_after(), now, &mut outward);
        flow.find_due();
        let first = links.first(waiting, flow.first_data_link());
        let sent = flow.wake_sender(now, Outlet { first, channels, events });
        if sent {
            flow.find_due();
            self.take_held(number, now);
        }
        let flow = &mut self.flows[number];
        flow.schedule(&mut self.events);
        if self.populations.contains(number) {
            // An ACK that was held has been noted with its time.
            let at = if sent || acks > 0 { now } else { Instant::ZERO };
            self.note_member(number, at, acks);
        }
    }

    /// A sender takes the ACKs that were held and have come by now, or need not be held any longer.
    fn take_held(&mut self, number: usize, now: Instant) {
        let Self { flows, links, waiting, channels, events, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        while let Some((at, ack)) = flow.take_held(now, channels) {
            let first = links.first(waiting, flow.first_data_link());
            flow.acknowledge(ack, at, Outlet { first, channels, events }, (times, series));
        }
    }
}
