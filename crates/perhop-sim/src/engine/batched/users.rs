//! Users of applications, ahead of the clock: what has come for each, and when each is woken.

use std::collections::VecDeque;

use perhop_core::Instant;

use crate::application::{self, Recorded};
use crate::engine::setup::Routes;
use crate::engine::users::Users;
use crate::flow::Flow;
use crate::network::Network;
use crate::outcome::ApplicationOutcome;

/// Records are put in the order of time when there are so many more of them.
const MUCH: usize = 1024;

/// All users of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchedUsers {
    pub(super) users: Users,
    pub(super) queues: Vec<UserQueue>,
    /// The records of each group's users, in the order of time.
    totals: Vec<Recorded>,
    /// The records made since, each with its moment and the group. Users act one after another.
    recorded: Vec<(Moment, usize, Recorded)>,
    /// The length at which `recorded` is put in order next.
    sort_at: usize,
}

/// The events that a user waits for.
#[derive(Clone, Debug)]
pub(super) struct UserQueue {
    /// The time at which the user wants to be woken.
    pub(super) wake: Instant,
    /// The events that have come for the user, in order, each with its time and the flow.
    pending: VecDeque<(Instant, u32, application::UserEvent)>,
    /// The time of the user's event in the queue of events; one of another time there has lost its place.
    pub(super) scheduled: Instant,
    /// The user may act up to the end of a window: nothing else happens to its flows within it.
    pub(super) takes_turns: bool,
}

/// The place of something that happens to a user in the order of simultaneous events: packets reach hosts, in
/// the order of flows; then users wake, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) at: Instant,
    /// The user that wakes; `None` if a packet reaches a host.
    pub(super) wakes: Option<u32>,
    flow: u32,
}

impl BatchedUsers {
    /// Users that have not begun. Their flows wait for what they grant.
    pub(super) fn new(network: &Network, seed: u64, flows: &mut [Flow], routes: &[Routes]) -> Self {
        let (users, begins) = Users::new(network, seed, flows);
        let queue =
            |wake| UserQueue { wake, pending: VecDeque::new(), scheduled: Instant::NEVER, takes_turns: true };
        let mut queues: Vec<UserQueue> = begins.into_iter().map(queue).collect();
        for (flow, user) in users.owned() {
            let (of, Routes { data, acks }) = (&flows[flow], routes[flow]);
            queues[user].takes_turns &= of.sending.feedback.is_none()
                && of.control().is_none()
                && !data.is_reordered
                && !acks.is_reordered
                && users.other_direction(flow).is_none();
        }
        let totals = vec![Recorded::default(); users.groups.len()];
        Self { users, queues, totals, recorded: Vec::new(), sort_at: MUCH }
    }

    /// Ends the run. Returns what each group has measured.
    pub(super) fn finish(mut self, now: Instant) -> Vec<ApplicationOutcome> {
        self.put_in_order(Instant::NEVER);
        for (group, recorded) in self.users.groups.iter_mut().zip(self.totals) {
            group.recorded = recorded;
        }
        self.users.finish(now)
    }

    pub(super) fn keep_recorded(&mut self, user: usize, moment: Moment) {
        if let Some((group, new)) = self.users.take_recorded(user) {
            self.recorded.push((moment, group, new));
        }
    }

    /// Puts what users have recorded in the order of time, if that is much. Nothing will be recorded before
    /// `now`.
    pub(super) fn put_much_in_order(&mut self, now: Instant) {
        if self.recorded.len() >= self.sort_at {
            self.put_in_order(now);
        }
    }

    /// Puts what users have recorded before `now` in the order of time. Nothing will be added to it.
    fn put_in_order(&mut self, now: Instant) {
        self.recorded.sort_by_key(|&(moment, ..)| moment);
        let before = self.recorded.partition_point(|(moment, ..)| moment.at < now);
        for (_, group, recorded) in self.recorded.drain(..before) {
            self.totals[group].append(recorded);
        }
        self.sort_at = 2 * self.recorded.len() + MUCH;
    }
}

impl UserQueue {
    /// Returns the time at which the user next does something.
    pub(super) fn next(&self) -> Instant {
        self.pending.front().map_or(self.wake, |&(at, ..)| at.min(self.wake))
    }

    /// Adds an event, which has come for the user at `at` to this flow, so many times.
    pub(super) fn add(&mut self, at: Instant, flow: u32, event: application::UserEvent, times: usize) {
        let place = self.pending.partition_point(|&(before, of, _)| (before, of) <= (at, flow));
        (0..times).for_each(|_| self.pending.insert(place, (at, flow, event)));
    }

    /// Removes and returns what happens to the user next, if it comes before `limit`.
    pub(super) fn take(
        &mut self,
        user: usize,
        limit: Moment,
        users: &mut Users,
    ) -> Option<(Moment, application::UserEvent)> {
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
    /// The moment before which all comes that happens before that time.
    pub(super) fn of(at: Instant) -> Self {
        Self { at, wakes: None, flow: 0 }
    }

    /// The moment behind all packets that come by that time, and before every user that wakes then.
    pub(super) fn behind_packets_at(at: Instant) -> Self {
        Self { at, wakes: Some(0), flow: 0 }
    }

    /// The moment behind the packets that come to this flow at that time.
    pub(super) fn behind_packets_of(flow: usize, at: Instant) -> Self {
        Self { at, wakes: None, flow: flow as u32 + 1 }
    }

    /// Returns whether ACKs that reach this flow's sender at that time come before, as all earlier ones do.
    pub(super) fn is_after_acks_of(self, flow: usize) -> bool {
        self.flow as usize > flow
    }
}
