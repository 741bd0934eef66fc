//! What users of applications do. Their flows depend on one another: data that comes to the receiver of one
//! lets the sender of another act.
//!
//! A receiver may be ahead of the clock, since nothing but its packets and its own timers reach it. What it
//! has for its user waits there for its time. Nothing that leaves a link in a window of the look-ahead comes
//! to a host within it, so a user acts on all of that up to the window's end, in the order of time. A command
//! that concerns a flow finds its sender as it is then: its sender first takes the ACKs and timers that come
//! before. So senders of users' flows never act beyond the window: their ACKs are held.
//!
//! Data of one direction of a connection of TCP carries ACKs of the other one, which are those of the moment
//! at which it is sent. So packets of connections wait for their time before hosts, and these act event by
//! event.

use perhop_core::Instant;

use super::hosts::{Hosts, ReceiverSide, SenderSide};
use super::users::{BatchedUsers, Moment};
use crate::engine::users::Notification;
use crate::events::Event;
use crate::flow::PacketSink;
use crate::packet::Content;
use crate::transport::Ack;

impl Hosts {
    /// Makes sure that a user is woken in time.
    pub(super) fn schedule_user(&mut self, user: usize) {
        let queue = &mut self.users.queues[user];
        let at = queue.next();
        if at < queue.scheduled {
            queue.scheduled = at;
            self.events.push(Event { at, source: self.sources.user(user) });
        }
    }

    /// Adds what a packet that has reached the receiver of a flow at `at` has for its user, where it waits
    /// for its time.
    pub(super) fn expect_notification(&mut self, number: usize, at: Instant) {
        if at > self.recorder.times.end {
            return;
        }
        let BatchedUsers { users, queues, .. } = &mut self.users;
        let Some(Notification { user, event, times }) = users.notification(number, &self.flows[number].base)
        else {
            return;
        };
        queues[user].add(at, number as u32, event, times);
        self.schedule_user(user);
    }

    /// Delivers a packet of a user's flow that has waited for its time to the receiver, which it reaches now.
    pub(super) fn deliver_data_to_user(
        &mut self,
        (user, number): (usize, usize),
        content: Content,
        now: Instant,
    ) {
        let Some(other) = self.users.users.other_direction(number) else {
            self.deliver_data(number, content, now);
            return self.notify_up_to(user, number, now);
        };
        self.unload_ack(number, other, content.sequence(), now);
        let ReceiverSide { flow, samples, events, .. } = self.receiver(number);
        let ack = flow.receive(content, now, samples);
        flow.schedule(events);
        let may_ride = flow.base.receiving.receiver.is_in_order();
        if let Some(ack) = ack.filter(|_| !may_ride) {
            self.send_ack(number, ack, now);
        }
        // The ACK waits for what the user says now: data that is then sent carries it.
        let before = self.flows[other].base.carries_up_to();
        self.expect_notification(number, now);
        self.notify_up_to(user, number, now);
        if let Some(ack) = ack.filter(|_| may_ride) {
            if self.flows[other].base.carries_up_to() == before {
                self.send_ack(number, ack, now);
            } else {
                self.flows[number].base.spare_ack(ack);
            }
        }
    }

    /// Delivers the ACK that a segment of a connection carries to the sender of the other direction.
    fn unload_ack(&mut self, number: usize, other: usize, sequence: u32, now: Instant) {
        let Some(carried) = self.flows[number].base.unload_ack(sequence) else { return };
        let SenderSide { flow, out, samples } = self.sender(other);
        let Some(ack) = flow.base.take_off(carried) else { return };
        flow.acknowledge(ack, now, out, samples);
        self.carry_ack(other);
    }

    fn send_ack(&mut self, number: usize, ack: Ack, now: Instant) {
        let ReceiverSide { flow, mut first, .. } = self.receiver(number);
        first.put(flow.base.receiving.acknowledge(ack, now));
    }

    /// Lets the data that a flow may have sent carry an ACK of the other direction of its connection.
    pub(super) fn carry_ack(&mut self, number: usize) {
        let Some(other) = self.users.users.other_direction(number) else { return };
        let Ok([flow, of_other]) = self.flows.get_disjoint_mut([number, other]) else { return };
        flow.base.carry_ack_of(&mut of_other.base);
    }

    /// Lets a user act at its event at `now`, in a window that ends at `limit`. Returns how often something
    /// happened.
    pub(super) fn wake_user(&mut self, user: usize, now: Instant, limit: Instant) -> u64 {
        self.users.queues[user].scheduled = Instant::NEVER;
        self.users.put_much_in_order(now);
        let limit = if self.users.queues[user].takes_turns { limit } else { now.just_after() };
        self.act_for(user, Moment::of(limit))
    }

    /// Gives a user the events of its flows up to this one until now, before anything else comes to a host,
    /// where packets wait for their time.
    pub(super) fn notify_up_to(&mut self, user: usize, flow: usize, now: Instant) {
        self.act_for(user, Moment::behind_packets_of(flow, now));
    }

    /// Handles all that happens to a user before `limit`. Returns how often something happened.
    fn act_for(&mut self, user: usize, limit: Moment) -> u64 {
        let mut happened = 0;
        loop {
            let BatchedUsers { users, queues, .. } = &mut self.users;
            let Some((moment, event)) = queues[user].take(user, limit, users) else { break };
            let actions = users.tell(user, event, moment.at);
            self.users.keep_recorded(user, moment);
            for &action in &actions {
                match self.users.users.flow_of(user, action) {
                    Err(at) => self.users.queues[user].wake = at,
                    Ok(number) => {
                        self.advance_sender(number, moment);
                        let flow = &mut self.flows[number].base;
                        self.users.users.carry_out(number, action, flow, moment.at);
                        let SenderSide { flow, out, .. } = self.sender(number);
                        flow.send_what_it_may(moment.at, out);
                        self.carry_ack(number);
                    }
                }
            }
            self.users.users.done(actions);
            happened += 1;
        }
        self.schedule_user(user);
        happened
    }

    /// Lets the sender of a user's flow take all that comes to it before this moment.
    fn advance_sender(&mut self, number: usize, moment: Moment) {
        let limit = if moment.wakes.is_some() { moment.at.just_after() } else { moment.at };
        let SenderSide { flow, out, samples } = self.sender(number);
        flow.take_turn(limit, out, samples);
        let SenderSide { flow, out, samples: (times, series) } = self.sender(number);
        if moment.wakes.is_none() && moment.is_after_acks_of(number) {
            flow.take_held_at(moment.at, out, (times, &mut *series));
        }
        flow.sample_sender_up_to(moment.at, times, series);
    }

    /// Wakes a user's flow at `now`, in a window up to `limit`; returns how often something happened.
    pub(super) fn wake_users_flow(
        &mut self,
        user: usize,
        number: usize,
        now: Instant,
        limit: Instant,
    ) -> u64 {
        let takes_turns = self.users.queues[user].takes_turns;
        let (moment, limit) = if takes_turns {
            (Moment::of(limit), limit)
        } else {
            (Moment::behind_packets_at(now), now.just_after())
        };
        let happened = self.act_for(user, moment) + self.take_turn(number, limit);
        self.carry_ack(number);
        happened
    }
}
