//! Users of applications: what arrives for them, and what they command.

use std::collections::VecDeque;

use perhop_core::Instant;

use super::Reference;
use super::timers::Timers;
use crate::application::{Action, AnyUser, Carrier, Commands, Direction, Event, Recorded, User};
use crate::control::Post;
use crate::flow::Flow;
use crate::network::{ApplicationSpec, Connection, Network};
use crate::outcome::ApplicationOutcome;

/// All users of a run.
#[derive(Clone, Debug)]
pub(super) struct Users {
    members: Vec<One>,
    groups: Vec<Group>,
    /// Of each flow: the user whose connection it is part of, if there is one.
    owners: Vec<Option<Owner>>,
    timers: Timers,
    warmup: Instant,
    /// Commands that are not carried out yet.
    actions: Vec<Action>,
}

#[derive(Clone, Debug)]
struct One {
    user: AnyUser,
    group: usize,
    connections: Vec<Connection>,
    has_begun: bool,
}

#[derive(Clone, Debug)]
struct Group {
    spec: ApplicationSpec,
    recorded: Recorded,
}

/// Whose a flow is.
#[derive(Clone, Debug)]
struct Owner {
    user: usize,
    connection: u32,
    direction: Direction,
    /// TCP: the ends of open grants, in packets from the beginning.
    open: VecDeque<u32>,
}

impl Users {
    /// Users that have not begun. Their flows wait for what they grant.
    pub(super) fn new(network: &Network, seed: u64, flows: &mut [Flow]) -> Self {
        let mut users = Vec::new();
        let mut owners = Vec::new();
        let (mut groups, mut begins) = (Vec::new(), Vec::new());
        for (group, spec) in network.applications.iter().enumerate() {
            owners.resize(flows.len(), None);
            let is_driven = !matches!(spec.params.carrier(), Carrier::Sources(_));
            for (member, connections) in spec.users.iter().enumerate() {
                let (begin, user) = spec.user(member, seed);
                begins.push(begin);
                for (number, connection) in connections.iter().enumerate().filter(|_| is_driven) {
                    let ends = [
                        (connection.request, Direction::Request),
                        (connection.response, Direction::Response),
                    ];
                    for (flow, direction) in ends {
                        flows[flow].await_grants();
                        let (user, connection) = (users.len(), number as u32);
                        owners[flow] = Some(Owner { user, connection, direction, open: VecDeque::new() });
                    }
                }
                users.push(One { user, group, connections: connections.clone(), has_begun: false });
            }
            groups.push(Group { spec: spec.clone(), recorded: Recorded::default() });
        }
        let mut timers = Timers::for_flows(users.len());
        begins.into_iter().enumerate().for_each(|(user, at)| timers.set(user, at));
        let warmup = Instant::ZERO + network.warmup;
        Self { members: users, groups, owners, timers, warmup, actions: Vec::new() }
    }

    /// When the next user wakes.
    pub(super) fn next(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The next user that wakes by now.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        self.timers.pop_due(now)
    }

    fn call(&mut self, user: usize, now: Instant, act: impl FnOnce(&mut AnyUser, &mut Commands<'_>)) {
        let Self { members, groups, warmup, actions, .. } = self;
        let one = &mut members[user];
        let recorded = &mut groups[one.group].recorded;
        act(&mut one.user, &mut Commands { now, warmup: *warmup, actions, recorded });
    }

    /// The run ends; returns what each group has measured.
    pub(super) fn finish(mut self, now: Instant) -> Vec<ApplicationOutcome> {
        for user in (0..self.members.len()).filter(|&user| self.members[user].has_begun).collect::<Vec<_>>() {
            self.call(user, now, User::finish);
        }
        self.groups.into_iter().map(|Group { spec, recorded }| spec.outcome(recorded)).collect()
    }
}

impl Reference {
    /// The time of a user has come.
    pub(super) fn wake_user(&mut self, user: usize) {
        let one = &mut self.users.members[user];
        let event = if one.has_begun { Event::Wakes } else { Event::Begins };
        one.has_begun = true;
        self.tell_user(user, event);
    }

    /// A data packet has reached the receiver of a flow: tells its user, if it has one, what is complete by now.
    pub(super) fn tell_owner(&mut self, flow: usize) {
        let Some(Some(owner)) = self.users.owners.get_mut(flow) else { return };
        let (user, connection, direction) = (owner.user, owner.connection, owner.direction);
        if self.flows[flow].is_datagrams() {
            if let Some(transit) = self.flows[flow].last_transit() {
                self.tell_user(user, Event::Datagram { connection, direction, transit });
            }
            return;
        }
        let (_, arrived) = self.flows[flow].granted();
        let mut complete = 0;
        while owner.open.front().is_some_and(|end| *end <= arrived) {
            owner.open.pop_front();
            complete += 1;
        }
        for _ in 0..complete {
            self.tell_user(user, Event::Arrived { connection, direction });
        }
    }

    fn tell_user(&mut self, user: usize, event: Event) {
        self.users.call(user, self.now, |user, commands| user.on_event(event, commands));
        let mut actions = std::mem::take(&mut self.users.actions);
        for action in actions.drain(..) {
            match action {
                Action::Grant { connection, direction, bytes } => {
                    let flow = self.flow_of(user, connection, direction);
                    self.flows[flow].grant(bytes, self.now);
                    let (granted, _) = self.flows[flow].granted();
                    if let Some(owner) = &mut self.users.owners[flow] {
                        owner.open.push_back(granted);
                    }
                    self.send_what_it_may(flow);
                }
                Action::Send { connection, direction, size } => {
                    let flow = self.flow_of(user, connection, direction);
                    self.flows[flow].send_datagram(size, self.now);
                    self.send_what_it_may(flow);
                }
                Action::WakeAt(at) => self.users.timers.set(user, at),
            }
        }
        self.users.actions = actions;
    }

    fn flow_of(&self, user: usize, connection: u32, direction: Direction) -> usize {
        let Connection { request, response } = self.users.members[user].connections[connection as usize];
        match direction {
            Direction::Request => request,
            Direction::Response => response,
        }
    }

    fn send_what_it_may(&mut self, flow: usize) {
        let Self { flows, channels, events, sent, now, .. } = self;
        flows[flow].transmit(*now, Post { channels, events }, sent);
        self.forward_sent();
        self.set_timer(flow);
    }
}
