//! Users of applications: whose flows are whose, and their events and commands.
//!
//! Both engines give users the same events, in each user's order of time, and carry out what they command.

use std::collections::VecDeque;

use perhop_core::Instant;

use crate::application::{Action, AnyUser, Carrier, Commands, Direction, Recorded, User, UserEvent};
use crate::flow::Flow;
use crate::network::{ApplicationSpec, Connection, Network};
use crate::outcome::ApplicationOutcome;

#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    members: Vec<Member>,
    pub(super) groups: Vec<Group>,
    /// The owner of each flow of the network, if it has one.
    owners: Vec<Option<Owner>>,
    warmup: Instant,
    /// Commands that are not carried out yet.
    actions: Vec<Action>,
}

#[derive(Clone, Debug)]
struct Member {
    user: AnyUser,
    group: usize,
    connections: Vec<Connection>,
    has_begun: bool,
}

/// The users of one application.
#[derive(Clone, Debug)]
pub(super) struct Group {
    spec: ApplicationSpec,
    /// The records of its users, in the order of time.
    pub(super) recorded: Recorded,
}

#[derive(Clone, Debug)]
struct Owner {
    user: usize,
    connection: u32,
    direction: Direction,
    /// TCP: the flow of the connection's other direction, on whose data ACKs of this one ride.
    other: Option<usize>,
    /// TCP: the ends of open grants, in packets from the beginning.
    open: VecDeque<u32>,
}

/// A user's event that a data packet causes, so many times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notification {
    pub(super) user: usize,
    pub(super) event: UserEvent,
    pub(super) times: usize,
}

impl Users {
    /// Users that have not begun, and when each begins. Their flows wait for what they grant.
    pub(super) fn new(network: &Network, seed: u64, flows: &mut [Flow]) -> (Self, Vec<Instant>) {
        let (mut members, mut groups, mut begins) = (Vec::new(), Vec::new(), Vec::new());
        let mut owners = Vec::new();
        for (group, spec) in network.applications.iter().enumerate() {
            owners.resize(flows.len(), None);
            let is_driven = is_driven(spec);
            for (member, connections) in spec.users.iter().enumerate() {
                let (begin, user) = spec.user(member, seed);
                begins.push(begin);
                for (number, connection) in connections.iter().enumerate().filter(|_| is_driven) {
                    let [request, response] = ends(*connection);
                    for ((flow, direction), (other, _)) in [(request, response), (response, request)] {
                        flows[flow].await_grants();
                        let (user, connection) = (members.len(), number as u32);
                        let other = Some(other).filter(|&other| may_carry(&flows[flow], &flows[other]));
                        let open = VecDeque::new();
                        owners[flow] = Some(Owner { user, connection, direction, other, open });
                    }
                }
                members.push(Member { user, group, connections: connections.clone(), has_begun: false });
            }
            groups.push(Group { spec: spec.clone(), recorded: Recorded::default() });
        }
        let warmup = Instant::ZERO + network.warmup;
        (Self { members, groups, owners, warmup, actions: Vec::new() }, begins)
    }

    pub(super) fn wake(&mut self, user: usize) -> UserEvent {
        let has_begun = std::mem::replace(&mut self.members[user].has_begun, true);
        if has_begun { UserEvent::Wakes } else { UserEvent::Begins }
    }

    /// Returns the flow of the other direction of a user's TCP connection, on whose data ACKs of this one
    /// ride.
    #[inline]
    pub(super) fn other_direction(&self, number: usize) -> Option<usize> {
        self.owners.get(number)?.as_ref()?.other
    }

    /// Returns the event that a data packet causes which has just reached the receiver of a flow, if the flow
    /// has an owner.
    pub(super) fn notification(&mut self, number: usize, flow: &Flow) -> Option<Notification> {
        let Owner { user, connection, direction, open, .. } = self.owners.get_mut(number)?.as_mut()?;
        let (user, connection, direction) = (*user, *connection, *direction);
        if flow.is_datagrams() {
            let event = UserEvent::Datagram { connection, direction, transit: flow.last_transit()? };
            return Some(Notification { user, event, times: 1 });
        }
        let (_, arrived) = flow.granted();
        let times = open.iter().take_while(|&&end| end <= arrived).count();
        open.drain(..times);
        let event = UserEvent::Arrived { connection, direction };
        (times > 0).then_some(Notification { user, event, times })
    }

    /// Hands an event to a user; returns its commands. [`Users::done`] takes back the memory.
    pub(super) fn tell(&mut self, user: usize, event: UserEvent, now: Instant) -> Vec<Action> {
        self.call(user, now, |user, commands| user.on_event(event, commands));
        std::mem::take(&mut self.actions)
    }

    /// Takes what the users of a user's group have recorded so far. Returns the group and the records; `None`
    /// if there are none.
    pub(super) fn take_recorded(&mut self, user: usize) -> Option<(usize, Recorded)> {
        let group = self.members[user].group;
        let recorded = &mut self.groups[group].recorded;
        let is_empty = recorded.samples.is_empty() && recorded.sums.is_empty();
        (!is_empty).then(|| (group, std::mem::take(recorded)))
    }

    /// Returns the flows of users, each with its user.
    pub(super) fn owned(&self) -> impl Iterator<Item = (usize, usize)> {
        let owners = self.owners.iter().enumerate();
        owners.filter_map(|(flow, owner)| Some((flow, owner.as_ref()?.user)))
    }

    /// Takes back the memory of commands that have been carried out.
    pub(super) fn done(&mut self, mut actions: Vec<Action>) {
        actions.clear();
        self.actions = actions;
    }

    /// Returns the flow that a command of a user concerns; as an error, the time at which the user wants to
    /// be woken.
    pub(super) fn flow_of(&self, user: usize, action: Action) -> Result<usize, Instant> {
        let (connection, direction) = match action {
            Action::WakeAt(at) => return Err(at),
            Action::Grant { connection, direction, .. } | Action::Send { connection, direction, .. } => {
                (connection, direction)
            }
        };
        let Connection { request, response } = self.members[user].connections[connection as usize];
        Ok(match direction {
            Direction::Request => request,
            Direction::Response => response,
        })
    }

    /// Carries out the command of a flow's user. [`Flow::transmit`] comes next.
    pub(super) fn carry_out(&mut self, number: usize, action: Action, flow: &mut Flow, now: Instant) {
        match action {
            Action::WakeAt(_) => {}
            Action::Send { size, .. } => flow.send_datagram(size, now),
            Action::Grant { bytes, .. } => {
                flow.grant(bytes, now);
                if let Some(owner) = &mut self.owners[number] {
                    owner.open.push_back(flow.granted().0);
                }
            }
        }
    }

    fn call(&mut self, user: usize, now: Instant, act: impl FnOnce(&mut AnyUser, &mut Commands<'_>)) {
        let Self { members, groups, warmup, actions, .. } = self;
        let member = &mut members[user];
        let recorded = &mut groups[member.group].recorded;
        act(&mut member.user, &mut Commands { now, warmup: *warmup, actions, recorded });
    }

    /// Ends the run. Returns what each group has measured.
    pub(super) fn finish(mut self, now: Instant) -> Vec<ApplicationOutcome> {
        for user in 0..self.members.len() {
            if self.members[user].has_begun {
                self.call(user, now, User::finish);
            }
        }
        self.groups.into_iter().map(|Group { spec, recorded }| spec.outcome(recorded)).collect()
    }
}

/// Returns whether users decide when the flows of an application send what.
pub(super) fn is_driven(spec: &ApplicationSpec) -> bool {
    !matches!(spec.params.carrier(), Carrier::Sources(_))
}

/// Returns whether data of one direction carries ACKs of the other. The control of a path counts ACKs as
/// packets of their own.
fn may_carry(flow: &Flow, other: &Flow) -> bool {
    !flow.is_datagrams() && flow.control().is_none() && other.control().is_none()
}

/// Returns the flows of a connection.
pub(super) fn ends(connection: Connection) -> [(usize, Direction); 2] {
    [(connection.request, Direction::Request), (connection.response, Direction::Response)]
}
