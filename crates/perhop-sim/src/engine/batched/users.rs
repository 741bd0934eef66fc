//! Users of applications, whose flows depend on one another: data that comes to the receiver of one lets the sender of another act.
//!
//! A receiver may be ahead of the clock, since nothing but its packets and its own timers reach it. What it has for its user waits
//! there for its time. Nothing that leaves a link in a window of the look-ahead comes to a host within it, so a user's
//! turn takes all of that up to the window's end, in the order of time. A command that concerns a flow finds its sender as it is then:
//! its sender first takes the ACKs and timers that come before. So senders of users' flows never act beyond the window: their ACKs are held.
//!
//! Data of one direction of a connection of TCP carries ACKs of the other one, which are those of the moment at which it is sent. So packets of
//! connections wait for their time before hosts, and these act event by event.

use std::collections::VecDeque;

use perhop_core::Instant;

use super::flow::Outlet;
use super::traffic::Traffic;
use crate::application::{self, Recorded};
use crate::engine::setup::Routes;
use crate::engine::users::{Notification, Users};
use crate::events::Event;
use crate::flow::Flow;
use crate::network::Network;
use crate::outcome::ApplicationOutcome;
use crate::packet::Content;
use crate::sampling::Recorder;
use crate::transport::Ack;

/// What users have recorded is put in the order of time when there is so much more of it.
const MUCH: usize = 1024;

/// All users of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchedUsers {
    users: Users,
    turns: Vec<Turn>,
    /// The user that has each flow of the network, if one does.
    owner: Vec<Option<u32>>,
    /// What the users of each group have recorded, in the order of time.
    totals: Vec<Recorded>,
    /// What users have recorded since, with the time at which each did and the group. Users have their turns one after another.
    recorded: Vec<(Moment, usize, Recorded)>,
    /// So much of it is put in order next.
    sort_at: usize,
}

/// What a user waits for.
#[derive(Clone, Debug)]
struct Turn {
    /// The time at which it wants to be woken.
    wake: Instant,
    /// What has come for it, in order: when, to which flow, and what it is.
    pending: VecDeque<(Instant, u32, application::Event)>,
    /// The event in the queue.
    scheduled: Instant,
    /// It may act up to the end of a window: nothing else happens to its flows within it.
    takes_turns: bool,
}

/// When something happens to a user, in the order of simultaneous events: packets reach hosts, in the order of flows; then users wake,
/// in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    at: Instant,
    /// `None` of a packet.
    wakes: Option<u32>,
    flow: u32,
}

impl BatchedUsers {
    /// Users that have not begun. Their flows wait for what they grant.
    pub(super) fn new(network: &Network, seed: u64, flows: &mut [Flow], routes: &[Routes]) -> Self {
        let (users, begins) = Users::new(network, seed, flows);
        let mut owner = vec![None; if begins.is_empty() { 0 } else { flows.len() }];
        let mut turns: Vec<Turn> = begins
            .into_iter()
            .map(|wake| Turn { wake, pending: VecDeque::new(), scheduled: Instant::NEVER, takes_turns: true })
            .collect();
        for (flow, user) in users.owned() {
            owner[flow] = Some(user as u32);
            let (of, Routes { data, acks }) = (&flows[flow], routes[flow]);
            turns[user].takes_turns &= of.sending.feedback().is_none()
                && of.control().is_none()
                && !data.is_reordered
                && !acks.is_reordered
                && users.other_direction(flow).is_none();
        }
        let totals = vec![Recorded::default(); users.groups()];
        Self { users, turns, owner, totals, recorded: Vec::new(), sort_at: MUCH }
    }

    /// There are none.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The user that has a flow, if one does.
    #[inline]
    pub(super) fn owner(&self, flow: usize) -> Option<usize> {
        self.owner.get(flow).copied().flatten().map(|user| user as usize)
    }

    /// TCP: the flow of the other direction of a user's connection, on whose data ACKs of this one ride.
    #[inline]
    pub(super) fn other_direction(&self, flow: usize) -> Option<usize> {
        self.users.other_direction(flow)
    }

    /// Whether a user is to be woken by the event at this time, which comes next.
    #[inline]
    pub(super) fn is_due(&self, user: usize, at: Instant) -> bool {
        self.turns[user].scheduled == at // Else an earlier one took its place.
    }

    /// The run ends; returns what each group has measured.
    pub(super) fn finish(mut self, now: Instant) -> Vec<ApplicationOutcome> {
        self.put_in_order(Instant::NEVER);
        for (group, recorded) in self.totals.into_iter().enumerate() {
            self.users.set_recorded(group, recorded);
        }
        self.users.finish(now)
    }

    /// What users have recorded before `now` is put in the order of time. Nothing will be added to it.
    fn put_in_order(&mut self, now: Instant) {
        self.recorded.sort_by_key(|&(moment, ..)| moment);
        let before = self.recorded.partition_point(|(moment, ..)| moment.at < now);
        for (_, group, recorded) in self.recorded.drain(..before) {
            self.totals[group].append(recorded);
        }
        self.sort_at = 2 * self.recorded.len() + MUCH;
    }
}

impl Turn {
    fn next(&self) -> Instant {
        self.pending.front().map_or(self.wake, |&(at, ..)| at.min(self.wake))
    }

    /// What happens next, if it comes before `limit`; else it stays.
    fn take(
        &mut self,
        user: usize,
        limit: Moment,
        users: &mut Users,
    ) -> Option<(Moment, application::Event)> {
        let wakes = Moment { at: self.wake, wakes: Some(user as u32), flow: u32::MAX };
        match self.pending.front() {
            Some(&(at, flow, event)) if at <= self.wake => {
                let hears = Moment { at, wakes: None, flow };
                (hears < limit).then(|| {
                    self.pending.pop_front();
                    (hears, event)
                })
            }
            _ => (wakes < limit).then(|| {
                self.wake = Instant::NEVER;
                (wakes, users.wake(user))
            }),
        }
    }
}

impl Moment {
    /// All that happens before that time comes before this.
    fn of(at: Instant) -> Self {
        Self { at, wakes: None, flow: 0 }
    }

    /// All packets that come by that time come before this, and no user that wakes then.
    fn behind_packets_at(at: Instant) -> Self {
        Self { at, wakes: Some(0), flow: 0 }
    }

    /// ACKs that reach the sender of this flow at that time come before, as all earlier ones do.
    fn is_after_acks_of(self, flow: usize) -> bool {
        self.flow as usize > flow
    }
}

impl Traffic {
    /// The first events of users.
    pub(super) fn schedule_users(&mut self) {
        (0..self.users.turns.len()).for_each(|user| self.schedule_user(user));
    }

    fn schedule_user(&mut self, user: usize) {
        let turn = &mut self.users.turns[user];
        let at = turn.next();
        if at < turn.scheduled {
            turn.scheduled = at;
            self.events.push(Event { at, source: self.sources.user(user) });
        }
    }

    /// A packet that belongs to a user's flow approaches its receiver: the wire is before it.
    pub(super) fn approach_owned_receiver(&mut self, number: usize, content: Content, at: Instant) {
        let at = self.flows[number].base.receiving.inward.pass(content.size(), at);
        self.reach_owned_receiver(number, content, at);
    }

    /// A packet of a user's flow reaches the receiver at `at`, now or later. Its user will know.
    pub(super) fn reach_owned_receiver(&mut self, number: usize, content: Content, at: Instant) {
        self.take_at_receiver(number, content, at);
        if at <= self.recorder.times.end() {
            self.expect_notification(number, at);
        }
    }

    /// What a packet that has reached a receiver at `at` has for its user waits there for its time.
    fn expect_notification(&mut self, number: usize, at: Instant) {
        let BatchedUsers { users, turns, .. } = &mut self.users;
        let Some(Notification { user, event, times }) = users.notification(number, &self.flows[number].base)
        else {
            return;
        };
        let (flow, pending) = (number as u32, &mut turns[user].pending);
        let place = pending.partition_point(|&(before, of, _)| (before, of) <= (at, flow));
        (0..times).for_each(|_| pending.insert(place, (at, flow, event)));
        self.schedule_user(user);
    }

    /// A packet of a user's flow that has waited for its time reaches the receiver now.
    pub(super) fn reach_users_receiver(
        &mut self,
        user: usize,
        number: usize,
        content: Content,
        now: Instant,
    ) {
        let Some(other) = self.users.other_direction(number) else {
            self.reach_owned_receiver(number, content, now);
            return self.notify_up_to(user, number, now);
        };
        self.unload_ack(number, other, content.sequence(), now);
        let Self { flows, recorder, events, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        let ack = flow.receive_otherwise(content, now, (times, series));
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

    /// A segment has come to the receiver of a connection: the sender of the other direction takes the ACK that it carried.
    fn unload_ack(&mut self, number: usize, other: usize, sequence: u32, now: Instant) {
        let Self { flows, links, waiting, channels, events, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let Some(carried) = flows[number].base.unload_ack(sequence) else { return };
        let flow = &mut flows[other];
        let Some(ack) = flow.base.take_off(carried) else { return };
        let first = links.first(waiting, flow.first_data_link());
        flow.acknowledge(ack, now, Outlet { first, channels, events }, (times, series));
        self.carry_ack(other);
    }

    fn send_ack(&mut self, number: usize, ack: Ack, now: Instant) {
        let Self { flows, links, waiting, .. } = self;
        let flow = &mut flows[number];
        let mut outward = links.first(waiting, flow.first_ack_link());
        outward.push(flow.base.receiving.acknowledge(ack, now));
    }

    /// A flow may have sent data, which carries an ACK of the other direction of its connection.
    pub(super) fn carry_ack(&mut self, number: usize) {
        let Some(other) = self.users.other_direction(number) else { return };
        let Ok([flow, of_other]) = self.flows.get_disjoint_mut([number, other]) else { return };
        flow.base.carry_ack_of(&mut of_other.base);
    }

    /// The event of a user at `now`: its turn, in a window that ends at `limit`. Returns how often something happened.
    pub(super) fn wake_user(&mut self, user: usize, now: Instant, limit: Instant) -> u64 {
        self.users.turns[user].scheduled = Instant::NEVER;
        if self.users.recorded.len() >= self.users.sort_at {
            self.users.put_in_order(now);
        }
        self.take_users_turn(user, now, limit)
    }

    /// The same, where nothing but what happens now is known.
    pub(super) fn wake_user_now(&mut self, user: usize, now: Instant) {
        self.wake_user(user, now, now.just_after());
    }

    /// All that happens to a user before `limit`, if nothing else can happen to its flows until then; else up to `now`.
    fn take_users_turn(&mut self, user: usize, now: Instant, limit: Instant) -> u64 {
        let limit = if self.users.turns[user].takes_turns { limit } else { now.just_after() };
        self.act_for(user, Moment::of(limit))
    }

    /// Where packets wait for their time: a user gets the events of its flows up to this one until now, before anything else comes to
    /// a host.
    pub(super) fn notify_up_to(&mut self, user: usize, flow: usize, now: Instant) {
        self.act_for(user, Moment { at: now, wakes: None, flow: flow as u32 + 1 });
    }

    /// All that happens to a user before `limit`.
    fn act_for(&mut self, user: usize, limit: Moment) -> u64 {
        let mut happened = 0;
        loop {
            let BatchedUsers { users, turns, recorded, .. } = &mut self.users;
            let Some((moment, event)) = turns[user].take(user, limit, users) else { break };
            let actions = users.tell(user, event, moment.at);
            if let Some((group, new)) = users.take_recorded(user) {
                recorded.push((moment, group, new));
            }
            for &action in &actions {
                match self.users.users.order(user, action) {
                    Err(at) => self.users.turns[user].wake = at,
                    Ok((number, order)) => {
                        self.advance_sender(number, moment);
                        let Self { flows, links, waiting, channels, events, users, .. } = self;
                        let flow = &mut flows[number];
                        users.users.carry_out(number, order, &mut flow.base, moment.at);
                        let first = links.first(waiting, flow.first_data_link());
                        flow.send_what_it_may(moment.at, Outlet { first, channels, events });
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

    /// The sender of a user's flow takes all that comes to it before this moment.
    fn advance_sender(&mut self, number: usize, moment: Moment) {
        let Self { flows, links, waiting, channels, events, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        let limit = if moment.wakes.is_some() { moment.at.just_after() } else { moment.at };
        let first = links.first(waiting, flow.first_data_link());
        flow.take_turn(limit, Outlet { first, channels, events: &mut *events }, (&*times, &mut *series));
        if moment.wakes.is_none() && moment.is_after_acks_of(number) {
            let first = links.first(waiting, flow.first_data_link());
            flow.take_held_at(moment.at, Outlet { first, channels, events }, (&*times, &mut *series));
        }
        flow.sample_sender_up_to(moment.at, times, series);
    }

    /// A flow of a user is woken at `now`, in a window that ends at `limit`. Returns how often something happened.
    pub(super) fn wake_owned(&mut self, user: usize, number: usize, now: Instant, limit: Instant) -> u64 {
        let (mut happened, limit) = if self.users.turns[user].takes_turns {
            (self.take_users_turn(user, now, limit), limit)
        } else {
            (self.act_for(user, Moment::behind_packets_at(now)), now.just_after())
        };
        let Self { flows, links, waiting, channels, events, recorder, .. } = self;
        let Recorder { times, series, .. } = recorder;
        let flow = &mut flows[number];
        flow.scheduled = Instant::NEVER;
        let mut outward = links.first(waiting, flow.first_ack_link());
        flow.send_late_acks(limit, times.end(), &mut outward);
        let first = links.first(waiting, flow.first_data_link());
        happened += flow.take_turn(limit, Outlet { first, channels, events }, (times, series));
        flow.schedule(events);
        self.carry_ack(number);
        happened
    }
}
