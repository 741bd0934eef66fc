//! Users of applications, each the simulator's state machine: the clients at the receiving host, the servers
//! at the sending one.
//!
//! Over the kernel's TCP both hosts tell a user what happens. The host at which an event was does what the
//! user then commands: a client asks when it has a response, a server answers when it has a request.
//! Datagrams of a user go both ways at times that neither end decides alone, so one thread has the sockets of
//! both hosts: see [`datagrams`].

mod datagrams;
mod shared;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::sys::epoll::EpollFlags;
use perhop_core::{Duration, Instant};
use perhop_live::Windows;
use perhop_sim::application::{Action, Direction, UserEvent};
use perhop_sim::transport::SenderStatistics;
use perhop_sim::transport::transit::TransitMeter;
use socket2::Socket;

use self::datagrams::DatagramEnds;
pub(crate) use self::shared::Users;
use self::shared::stream_of;
use super::counts::ConnectionCounts;
use super::receiving::WAKE_BYTES;
use super::role::{self, Common, Host, Role};
use crate::setting::Side;
use crate::setting::{HostFlow, Kind};
use crate::system::{set_low_water_mark, tcp_info};

/// The most bytes that are read or written at once.
const CHUNK: usize = 1 << 16;
/// How often a socket is read or written before others have their turn.
const TURNS: usize = 4;

/// The counts of a host's ends of users' connections since the warm-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserResults {
    /// For each connection, by its flow's number: what this host's TCP counted, and the bytes that were
    /// acknowledged.
    pub(crate) senders: BTreeMap<usize, (SenderStatistics, u64)>,
    /// For each flow of datagrams, how long its packets took.
    pub(crate) transits: BTreeMap<usize, TransitMeter>,
    /// Connections that broke, and why.
    pub(crate) failed: Vec<String>,
    /// The user to which a host attended latest, compared with when it should have.
    pub(crate) late: Option<(String, Duration)>,
}

/// A task of clients and servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Begin(usize),
    Wake(usize),
}

/// This host's end of a connection.
struct Endpoint {
    socket: Socket,
    is_open: bool,
    /// Bytes to be written.
    left: u64,
    /// The socket is waited for until it takes more.
    waits: bool,
}

/// The role of a host for the users: their clients, or their servers.
struct Attendants<'a> {
    users: &'a Users,
    /// Where servers publish their windows.
    windows: Option<Arc<Windows>>,
    /// By the number of the connection's flow.
    ends: BTreeMap<usize, Endpoint>,
    /// Both ends of each flow of datagrams, by its number; at the receiving host only.
    datagrams: BTreeMap<usize, DatagramEnds>,
    counts: BTreeMap<usize, ConnectionCounts>,
    /// For each connection's flow, its user and its number there.
    owners: BTreeMap<usize, (usize, u32)>,
    failed: Vec<String>,
    room: Box<[u8]>,
}

/// Runs the servers of all users, which publish their windows, or the clients, until the end of the run; the
/// calling thread is in the host's namespace.
pub(super) fn attend(
    common: Common<'_>,
    users: &Users,
    listener: Option<Socket>,
    windows: Option<Arc<Windows>>,
) -> io::Result<UserResults> {
    role::run(Attendants::new(common, users, windows), common, listener)
}

impl Role for Attendants<'_> {
    type Task = Task;
    type Results = UserResults;

    fn begin(&mut self, host: &mut Host<'_, Task>) -> io::Result<()> {
        if host.common.side == Side::Receiving {
            self.begin_datagrams(host)?;
            for (user, &begins) in self.users.begins.iter().enumerate() {
                host.at(begins, Task::Begin(user));
            }
        }
        Ok(())
    }

    fn on_task(&mut self, host: &mut Host<'_, Task>, task: Task, due: Instant) -> io::Result<()> {
        let (user, event) = match task {
            Task::Begin(user) => (user, UserEvent::Begins),
            // A later command may have taken the place of this one.
            Task::Wake(user) if !self.users.with(user, |user| user.is_woken(due)) => return Ok(()),
            Task::Wake(user) => (user, UserEvent::Wakes),
        };
        host.note_lateness(user, due);
        self.tell(host, user, event)
    }

    fn on_connection(&mut self, host: &mut Host<'_, Task>, number: usize, socket: Socket) -> io::Result<()> {
        if !self.owners.contains_key(&number) {
            return Ok(());
        }
        if let Kind::Tcp { kernel: Some(kernel), .. } = &host.common.setting.flows[number].kind {
            socket.set_tcp_congestion(kernel.congestion.as_bytes())?;
        }
        self.attach(host, number, socket, true)
    }

    fn on_socket(&mut self, host: &mut Host<'_, Task>, number: usize, flags: EpollFlags) -> io::Result<()> {
        if self.datagrams.contains_key(&number) {
            return self.receive_datagrams(host, number);
        }
        let Some(end) = self.ends.get_mut(&number) else { return Ok(()) };
        if let Ok(Some(error)) = end.socket.take_error() {
            self.fail(host, number, &error.to_string());
            return Ok(());
        }
        end.is_open |= flags.contains(EpollFlags::EPOLLOUT);
        if flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP) {
            self.read(host, number)?;
        }
        if flags.contains(EpollFlags::EPOLLOUT) {
            self.write(host, number)?;
        }
        Ok(())
    }

    fn ask(&mut self, host: &Host<'_, Task>) {
        for (number, end) in &self.ends {
            let (Ok(info), Some(counts)) = (tcp_info(&end.socket), self.counts.get_mut(number)) else {
                continue;
            };
            // A connection that sends nothing measures no round trips.
            let measures = info.sent > counts.latest.sent;
            counts.take(&info, end.left == 0, host.now(), measures);
            if let Some(windows) = &self.windows {
                host.common.shared.flows[*number].rtt_us.store(info.rtt_us, Ordering::Relaxed);
                windows.set(*number, (end.left > 0).then_some(info.window));
            }
        }
    }

    fn warmed_up(&mut self) {
        self.note_datagrams();
        self.counts.values_mut().for_each(ConnectionCounts::warmed_up);
    }

    fn results(mut self, host: &Host<'_, Task>) -> UserResults {
        self.note_datagrams();
        let setting = host.common.setting;
        let senders = self.counts.into_iter().map(|(number, counts)| (number, counts.since_warmup()));
        let name = |user: usize| setting.flows[setting.users[user].connections[0][0]].name.clone();
        let late = host.late.map(|(user, late)| (format!("the user of {}", name(user)), late));
        let transits = self.datagrams.into_iter().map(|(number, ends)| (number, ends.transit));
        UserResults { senders: senders.collect(), transits: transits.collect(), failed: self.failed, late }
    }
}

impl<'a> Attendants<'a> {
    fn new(common: Common<'_>, users: &'a Users, windows: Option<Arc<Windows>>) -> Self {
        let owners = common.setting.users.iter().enumerate().flat_map(|(user, spec)| {
            let connections = spec.connections.iter().enumerate();
            connections
                .flat_map(move |(connection, flows)| flows.map(|flow| (flow, (user, connection as u32))))
        });
        Self {
            users,
            windows,
            ends: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            counts: BTreeMap::new(),
            owners: owners.collect(),
            failed: Vec::new(),
            room: vec![0; CHUNK].into_boxed_slice(),
        }
    }

    /// Hands an event to a user, and does what it commands.
    fn tell(&mut self, host: &mut Host<'_, Task>, user: usize, event: UserEvent) -> io::Result<()> {
        let Common { side, setting, .. } = host.common;
        for action in self.users.tell(user, event, host.now()) {
            match action {
                Action::WakeAt(at) => host.at(at, Task::Wake(user)),
                Action::Grant { connection, direction, bytes } => {
                    debug_assert_eq!(direction == Direction::Response, side == Side::Sending);
                    let number = setting.users[user].connections[connection as usize][stream_of(direction)];
                    if side == Side::Receiving && !self.ends.contains_key(&number) {
                        let (socket, begun) = host.connect(&setting.flows[number])?;
                        begun?;
                        self.attach(host, number, socket, false)?;
                    }
                    if let Some(end) = self.ends.get_mut(&number) {
                        end.left += bytes;
                    }
                    self.write(host, number)?;
                }
                Action::Send { connection, direction, size } => {
                    let number = setting.users[user].connections[connection as usize][stream_of(direction)];
                    self.send_datagram(host, number, size);
                }
            }
        }
        Ok(())
    }

    /// Takes over the socket of a connection, which is open or being opened.
    fn attach(
        &mut self,
        host: &Host<'_, Task>,
        number: usize,
        socket: Socket,
        is_open: bool,
    ) -> io::Result<()> {
        socket.set_tcp_nodelay(true)?;
        let flags = if is_open { EpollFlags::EPOLLIN } else { EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT };
        host.waiter.add(&socket, flags, number as u64)?;
        self.ends.insert(number, Endpoint { socket, is_open, left: 0, waits: !is_open });
        self.counts.entry(number).or_insert_with(|| {
            let mut counts = ConnectionCounts::default();
            counts.begin(host.now(), false);
            counts
        });
        Ok(())
    }

    /// Closes a connection that broke. At the end of the run the other host may be the first to close it.
    fn fail(&mut self, host: &Host<'_, Task>, number: usize, why: &str) {
        let setting = host.common.setting;
        if self.ends.remove(&number).is_some() && host.now() < Instant::ZERO + setting.duration {
            self.failed.push(format!("{}: {why}", setting.flows[number].name));
        }
    }

    /// Gives TCP as much as it takes.
    fn write(&mut self, host: &Host<'_, Task>, number: usize) -> io::Result<()> {
        let Self { ends, room, .. } = self;
        let Some(end) = ends.get_mut(&number).filter(|end| end.is_open) else { return Ok(()) };
        let mut is_full = false;
        for _ in 0..TURNS {
            let chunk = end.left.min(CHUNK as u64) as usize;
            if chunk == 0 || is_full {
                break;
            }
            match end.socket.send(&room[..chunk]) {
                Ok(sent) => end.left -= sent as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => is_full = true,
                Err(error) => {
                    self.fail(host, number, &error.to_string());
                    return Ok(());
                }
            }
        }
        if end.waits != (end.left > 0) {
            end.waits = end.left > 0;
            let out = if end.waits { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
            host.waiter.change(&end.socket, EpollFlags::EPOLLIN | out, number as u64)?;
        }
        Ok(())
    }

    /// Reads what has arrived.
    fn read(&mut self, host: &mut Host<'_, Task>, number: usize) -> io::Result<()> {
        let mut arrived = 0;
        for _ in 0..TURNS {
            let Self { ends, room, .. } = self;
            let Some(end) = ends.get(&number) else { return Ok(()) };
            match io::Read::read(&mut &end.socket, room) {
                Ok(0) => {
                    self.fail(host, number, "the other host closed it");
                    break;
                }
                Ok(length) => arrived += length as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.fail(host, number, &error.to_string());
                    break;
                }
            }
        }
        self.count(host, number, arrived)
    }

    /// Counts what has arrived, and hands what is complete to the user.
    fn count(&mut self, host: &mut Host<'_, Task>, number: usize, arrived: u64) -> io::Result<()> {
        let Common { side, setting, shared, .. } = host.common;
        let (user, connection) = self.owners[&number];
        let direction = match side {
            Side::Receiving => Direction::Response,
            Side::Sending => Direction::Request,
        };
        let stream = stream_of(direction);
        let sizes = sizes(&setting.flows[number], direction);
        let (found, missing) = self.users.with(user, |user| {
            let stream = &mut user.streams[connection as usize][stream];
            (stream.arrive(arrived, sizes), stream.missing())
        });
        let gauge = &shared.flows[number].exchanged[stream];
        gauge.bytes.fetch_add(found.on_wire.0, Ordering::Relaxed);
        gauge.packets.fetch_add(found.on_wire.1, Ordering::Relaxed);
        if let Some(end) = self.ends.get(&number) {
            // With another mark, it is read at another time.
            let _ = set_low_water_mark(&end.socket, missing.clamp(1, WAKE_BYTES) as u32);
        }
        for _ in 0..found.complete {
            self.tell(host, user, UserEvent::Arrived { connection, direction })?;
        }
        Ok(())
    }
}

/// Returns the bytes of data in a full packet of a connection in this direction, and those of its headers.
fn sizes(flow: &HostFlow, direction: Direction) -> (u16, u16) {
    let payload = match (direction, flow.requests) {
        (Direction::Request, Some(requests)) => requests.payload,
        _ => flow.payload,
    };
    (payload, flow.headers())
}

#[cfg(test)]
mod tests {
    use perhop_core::Duration;
    use perhop_scenario::Scenario;
    use perhop_sim::application::{Commands, Recorded, User};

    use super::*;

    /// Runs one user of each model over TCP for a time, with a network that takes 10 ms each way.
    #[test]
    fn who_hears_of_an_event_sends_what_the_user_commands() {
        let models = ["web", "video", "request-response"];
        let more = ["reading = \"1s\"", "chunk = \"2s\"", "service = \"20ms\""];
        for (model, more) in models.into_iter().zip(more) {
            let text = format!(
                "duration = \"1s\"\nlinks.l = {{ from = \"a\", to = \"b\", rate = \"1Mbps\", delay = \"1ms\" }}\n\
                 flows = [{{ name = \"x\", from = \"a\", to = \"b\", transport = {{ tcp = \"linux\" }}, \
                 application = {{ model = \"{model}\", {more} }} }}]"
            );
            let network = Scenario::from_toml(&text, "test").unwrap().network();
            let (_, mut user) = network.applications[0].user(0, 1);
            let (mut recorded, mut events) = (Recorded::default(), BTreeMap::new());
            events.insert((Instant::ZERO, 0), (UserEvent::Begins, Side::Receiving));
            let (mut wake, mut serial, mut responses) = ((Instant::NEVER, Side::Receiving), 1, 0);
            while responses < 100 {
                let first = events.first_key_value().map(|(key, _)| *key);
                let (now, (event, here)) = match first {
                    Some(key) if key.0 <= wake.0 => (key.0, events.remove(&key).unwrap()),
                    _ => {
                        let (at, side) = std::mem::replace(&mut wake, (Instant::NEVER, Side::Receiving));
                        (at, (UserEvent::Wakes, side))
                    }
                };
                assert_ne!(now, Instant::NEVER, "{model} has nothing more to do");
                let mut actions = Vec::new();
                let warmup = Instant::ZERO;
                user.on_event(
                    event,
                    &mut Commands { now, warmup, actions: &mut actions, recorded: &mut recorded },
                );
                for action in actions {
                    match action {
                        Action::WakeAt(at) => wake = (at, here),
                        Action::Grant { connection, direction, .. } => {
                            let sender = match direction {
                                Direction::Request => Side::Receiving,
                                Direction::Response => Side::Sending,
                            };
                            assert_eq!(sender, here, "{model}: {event:?}");
                            responses += usize::from(direction == Direction::Response);
                            let arrived = UserEvent::Arrived { connection, direction };
                            events
                                .insert((now + Duration::from_millis(10), serial), (arrived, sender.other()));
                            serial += 1;
                        }
                        Action::Send { .. } => panic!("{model} is over TCP"),
                    }
                }
            }
        }
    }
}
