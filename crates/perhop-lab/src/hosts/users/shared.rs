//! The users of a run, which both hosts share: the simulator's state machines, and what has arrived over each
//! of their connections.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use perhop_core::Instant;
use perhop_sim::application::{Action, AnyUser, Commands, Direction, Recorded, User, UserEvent};
use perhop_sim::{ApplicationOutcome, Network};
use socket2::Socket;

use crate::setting::{HostUser, Setting, Side, on_wire};

/// All users of a run, which both hosts share.
#[derive(Debug)]
pub(crate) struct Users {
    all: Vec<Mutex<SharedUser>>,
    /// When each user begins.
    pub(super) begins: Vec<Instant>,
    /// The sockets that each host has opened for datagrams, by the flow's number, until they are taken over.
    sockets: [Mutex<BTreeMap<usize, Socket>>; 2],
    warmup: Instant,
}

/// A user, which both hosts tell what happens.
#[derive(Debug)]
pub(super) struct SharedUser {
    user: AnyUser,
    recorded: Recorded,
    has_begun: bool,
    /// When it is to be woken.
    wake: Instant,
    /// The directions of its connections: responses, then requests.
    pub(super) streams: Vec<[Stream; 2]>,
}

/// One direction of a connection, in bytes from its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stream {
    granted: u64,
    arrived: u64,
    /// Where the first open grant begins.
    began: u64,
    /// The ends of all open grants.
    ends: VecDeque<u64>,
}

/// The outcome of an arrival of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Grants that are complete.
    pub(super) complete: usize,
    /// Bytes on the wire, and packets.
    pub(super) on_wire: (u64, u64),
}

impl Stream {
    /// Lets the sender send more bytes.
    fn grant(&mut self, bytes: u64) {
        self.granted += bytes;
        self.ends.push_back(self.granted);
    }

    /// Counts bytes that arrive, in packets of this much payload and headers; the last packet of a grant may
    /// be smaller.
    pub(super) fn arrive(&mut self, mut bytes: u64, (payload, headers): (u16, u16)) -> Arrival {
        let mut found = Arrival::default();
        while let (Some(&end), true) = (self.ends.front(), bytes > 0) {
            let part = bytes.min(end - self.arrived);
            let counted = |stream: &Self| on_wire(stream.arrived - stream.began, payload, headers);
            let before = counted(self);
            self.arrived += part;
            bytes -= part;
            let after = counted(self);
            found.on_wire.0 += after.0 - before.0;
            found.on_wire.1 += after.1 - before.1;
            if self.arrived == end {
                self.ends.pop_front();
                self.began = end;
                found.complete += 1;
            }
        }
        found
    }

    /// Returns the bytes that are missing of the first open grant.
    pub(super) fn missing(&self) -> u64 {
        self.ends.front().map_or(0, |end| end - self.arrived)
    }
}

impl SharedUser {
    /// Returns whether it is to be woken then; it is woken once.
    pub(super) fn is_woken(&mut self, due: Instant) -> bool {
        let is_due = self.wake == due;
        if is_due {
            self.wake = Instant::NEVER;
        }
        is_due
    }
}

/// Returns the place of a direction among the streams of a connection.
pub(super) fn stream_of(direction: Direction) -> usize {
    match direction {
        Direction::Response => 0,
        Direction::Request => 1,
    }
}

impl Users {
    /// Makes the users of a run with this seed, who have not begun.
    pub(crate) fn new(network: &Network, setting: &Setting, seed: u64) -> Self {
        let of = |user: &HostUser| {
            let (begins, machine) = network.applications[user.application].user(user.member, seed);
            let streams = vec![<[Stream; 2]>::default(); user.connections.len()];
            let (recorded, has_begun, wake) = (Recorded::default(), false, Instant::NEVER);
            (begins, Mutex::new(SharedUser { user: machine, recorded, has_begun, wake, streams }))
        };
        let (begins, all) = setting.users.iter().map(of).unzip();
        Self { all, begins, sockets: Default::default(), warmup: Instant::ZERO + network.warmup }
    }

    /// Returns the measures of each group, at the end of the run.
    pub(crate) fn outcomes(self, network: &Network, setting: &Setting) -> Vec<ApplicationOutcome> {
        let now = Instant::ZERO + network.duration;
        let mut recorded = vec![Recorded::default(); network.applications.len()];
        for (spec, shared) in setting.users.iter().zip(self.all) {
            let SharedUser { mut user, recorded: mut of_user, has_begun, .. } =
                shared.into_inner().unwrap_or_else(PoisonError::into_inner);
            if has_begun {
                let (warmup, mut actions) = (self.warmup, Vec::new());
                user.finish(&mut Commands { now, warmup, actions: &mut actions, recorded: &mut of_user });
            }
            recorded[spec.application].append(of_user);
        }
        network.applications.iter().zip(recorded).map(|(spec, recorded)| spec.outcome(recorded)).collect()
    }

    /// Returns the sockets that a host has opened for datagrams.
    pub(super) fn sockets_of(&self, side: Side) -> MutexGuard<'_, BTreeMap<usize, Socket>> {
        self.sockets[side as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with a user, while the other host waits.
    pub(super) fn with<T>(&self, user: usize, act: impl FnOnce(&mut SharedUser) -> T) -> T {
        act(&mut self.all[user].lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Hands an event to a user, records its commands, and returns them.
    pub(super) fn tell(&self, user: usize, event: UserEvent, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        self.with(user, |shared| {
            shared.has_begun = true;
            let SharedUser { user, recorded, .. } = shared;
            user.on_event(event, &mut Commands { now, warmup: self.warmup, actions: &mut actions, recorded });
            for action in &actions {
                match *action {
                    Action::WakeAt(at) => shared.wake = at,
                    Action::Grant { connection, direction, bytes } => {
                        shared.streams[connection as usize][stream_of(direction)].grant(bytes);
                    }
                    Action::Send { .. } => {}
                }
            }
        });
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_complete_in_order_and_count_their_packets() {
        let mut stream = Stream::default();
        stream.grant(1000);
        stream.grant(300);
        assert_eq!(stream.missing(), 1000);
        // 900 bytes are two packets of at most 500, of which the second is not complete.
        let part = stream.arrive(900, (500, 52));
        assert_eq!(part, Arrival { complete: 0, on_wire: (1004, 2) });
        assert_eq!(stream.missing(), 100);
        let rest = stream.arrive(400, (500, 52));
        assert_eq!(rest, Arrival { complete: 2, on_wire: (452, 1) });
        assert_eq!((stream.missing(), stream.ends.len()), (0, 0));
        assert_eq!(stream.arrive(7, (500, 52)), Arrival::default(), "nobody granted that");
    }
}
