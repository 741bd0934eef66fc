//! Users of applications over the kernel's TCP: the clients at the receiving host, the servers at the sending one.
//!
//! A user is the simulator's state machine, which both hosts tell what happens. Whatever it commands is done by the host at which the
//! event was: a client asks when it has a response, a server answers when it has a request.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::epoll::EpollFlags;
use perhop_core::{Duration, Instant};
use perhop_live::{Clock, Windows};
use perhop_sim::application::{Action, AnyUser, Commands, Direction, Event, Recorded, User};
use perhop_sim::transport::SenderStatistics;
use perhop_sim::{ApplicationOutcome, Network};
use socket2::{Domain, Protocol, Socket, Type};

use super::limits::LimitMeter;
use super::receiving::{LISTENING, WAKE_BYTES};
use super::waiter::Waiter;
use super::{Shared, Side, address};
use crate::setting::{FIRST_PORT, HostFlow, HostUser, Kind, LISTENER, Setting, on_wire};
use crate::system::{TcpInfo, set_low_water_mark, tcp_info};

/// Read or written at once; and how often before others have their turn.
const CHUNK: usize = 1 << 16;
const TURNS: usize = 4;

/// All users of a run, which both hosts share.
#[derive(Debug)]
pub(crate) struct Users {
    all: Vec<Mutex<One>>,
    begins: Vec<Instant>,
    warmup: Instant,
}

#[derive(Debug)]
struct One {
    user: AnyUser,
    recorded: Recorded,
    has_begun: bool,
    /// When it is to be woken.
    wake: Instant,
    /// The directions of its connections: responses, then requests.
    lanes: Vec<[Lane; 2]>,
}

/// One direction of a connection, in bytes from its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lane {
    granted: u64,
    arrived: u64,
    /// Where the first open grant begins, and the ends of all open ones.
    began: u64,
    ends: VecDeque<u64>,
}

/// What bytes that arrive amount to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Arrival {
    /// Grants that are complete.
    complete: usize,
    /// Bytes on the wire, and packets.
    on_wire: (u64, u64),
}

impl Lane {
    fn grant(&mut self, bytes: u64) {
        self.granted += bytes;
        self.ends.push_back(self.granted);
    }

    /// Bytes arrive, in packets with so much payload and headers; the last packet of a grant may be smaller.
    fn arrive(&mut self, mut bytes: u64, (payload, headers): (u16, u16)) -> Arrival {
        let mut found = Arrival::default();
        while let (Some(&end), true) = (self.ends.front(), bytes > 0) {
            let part = bytes.min(end - self.arrived);
            let counted = |lane: &Self| on_wire(lane.arrived - lane.began, payload, headers);
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

    /// What is missing of the first open grant.
    fn missing(&self) -> u64 {
        self.ends.front().map_or(0, |end| end - self.arrived)
    }
}

impl One {
    /// Whether it is to be woken then; it is woken once.
    fn is_woken(&mut self, due: Instant) -> bool {
        let is_due = self.wake == due;
        if is_due {
            self.wake = Instant::NEVER;
        }
        is_due
    }
}

/// Where a direction is among those of a connection.
fn lane_of(direction: Direction) -> usize {
    match direction {
        Direction::Response => 0,
        Direction::Request => 1,
    }
}

impl Users {
    /// The users of a run with this seed, who have not begun.
    pub(crate) fn new(network: &Network, setting: &Setting, seed: u64) -> Self {
        let of = |user: &HostUser| {
            let (begins, machine) = network.applications[user.application].user(user.member, seed);
            let lanes = vec![<[Lane; 2]>::default(); user.connections];
            let (recorded, has_begun, wake) = (Recorded::default(), false, Instant::NEVER);
            (begins, Mutex::new(One { user: machine, recorded, has_begun, wake, lanes }))
        };
        let (begins, all) = setting.users.iter().map(of).unzip();
        Self { all, begins, warmup: Instant::ZERO + network.warmup }
    }

    /// What each group measured, at the end of the run.
    pub(crate) fn outcomes(self, network: &Network, setting: &Setting) -> Vec<ApplicationOutcome> {
        let now = Instant::ZERO + network.duration;
        let mut recorded = vec![Recorded::default(); network.applications.len()];
        for (spec, one) in setting.users.iter().zip(self.all) {
            let One { mut user, recorded: mut of_user, has_begun, .. } =
                one.into_inner().unwrap_or_else(PoisonError::into_inner);
            if has_begun {
                let (warmup, mut actions) = (self.warmup, Vec::new());
                user.finish(&mut Commands { now, warmup, actions: &mut actions, recorded: &mut of_user });
            }
            recorded[spec.application].append(of_user);
        }
        network.applications.iter().zip(recorded).map(|(spec, recorded)| spec.outcome(recorded)).collect()
    }

    fn with<T>(&self, user: usize, act: impl FnOnce(&mut One) -> T) -> T {
        act(&mut self.all[user].lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells a user what happens, notes what it commands, and returns that.
    fn tell(&self, user: usize, event: Event, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        self.with(user, |one| {
            one.has_begun = true;
            let One { user, recorded, .. } = one;
            user.on_event(event, &mut Commands { now, warmup: self.warmup, actions: &mut actions, recorded });
            for action in &actions {
                match *action {
                    Action::WakeAt(at) => one.wake = at,
                    Action::Grant { connection, direction, bytes } => {
                        one.lanes[connection as usize][lane_of(direction)].grant(bytes);
                    }
                    Action::Send { .. } => unreachable!("users of datagrams are refused"),
                }
            }
        });
        actions
    }
}

/// What the hosts' ends of users' connections counted since the warm-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attended {
    /// For each connection, by its flow's number: what this host's TCP counted, and the bytes that were acknowledged.
    pub(crate) senders: BTreeMap<usize, (SenderStatistics, u64)>,
    /// Connections that broke, and why.
    pub(crate) failed: Vec<String>,
    /// The user to which a host attended latest, compared with when it should have.
    pub(crate) late: Option<(String, Duration)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Begin(usize),
    Wake(usize),
    /// Ask the kernel for windows and round trips.
    Ask,
    WarmedUp,
    End,
}

/// This host's end of a connection.
struct End {
    socket: Socket,
    is_open: bool,
    /// Bytes to be written.
    left: u64,
    /// The socket is waited for until it takes more.
    waits: bool,
}

#[derive(Clone, Debug, Default)]
struct Counted {
    latest: SenderStatistics,
    acked: u64,
    limits: LimitMeter,
    at_warmup: (SenderStatistics, u64),
}

/// One of the two hosts, as far as users are concerned.
struct Host<'a> {
    side: Side,
    setting: &'a Setting,
    shared: &'a Shared,
    users: &'a Users,
    windows: Option<Arc<Windows>>,
    clock: Clock,
    waiter: Waiter<Task>,
    listener: Option<Socket>,
    /// By the number of the connection's flow.
    ends: BTreeMap<usize, End>,
    counted: BTreeMap<usize, Counted>,
    /// For each connection's flow, its user and its number there.
    owners: BTreeMap<usize, (usize, u32)>,
    asks: Duration,
    failed: Vec<String>,
    late: Option<(usize, Duration)>,
    room: Box<[u8]>,
}

/// Where the servers listen, if there are users.
pub(super) fn listen(setting: &Setting) -> io::Result<Option<Socket>> {
    if setting.users.is_empty() {
        return Ok(None);
    }
    super::listen(address(Side::Sending, setting.ip, LISTENER)).map(Some)
}

/// Runs the servers of all users until the end of the run; the calling thread is in the sending host's namespace.
pub(super) fn serve(
    (setting, shared, users): (&Setting, &Shared, &Users),
    listener: Option<Socket>,
    (clock, asks): (Clock, Duration),
    windows: Arc<Windows>,
) -> io::Result<Attended> {
    let Some(listener) = listener else { return Ok(Attended::default()) };
    let mut host = Host::new(Side::Sending, (setting, shared, users), (clock, asks))?;
    host.waiter.add(&listener, EpollFlags::EPOLLIN, LISTENING)?;
    host.listener = Some(listener);
    host.windows = Some(windows);
    host.run()
}

/// Runs the clients of all users until the end of the run; the calling thread is in the receiving host's namespace.
pub(super) fn ask(
    (setting, shared, users): (&Setting, &Shared, &Users),
    (clock, asks): (Clock, Duration),
) -> io::Result<Attended> {
    if setting.users.is_empty() {
        return Ok(Attended::default());
    }
    let mut host = Host::new(Side::Receiving, (setting, shared, users), (clock, asks))?;
    for (user, &begins) in users.begins.iter().enumerate() {
        host.waiter.at(begins, Task::Begin(user));
    }
    host.run()
}

impl<'a> Host<'a> {
    fn new(
        side: Side,
        (setting, shared, users): (&'a Setting, &'a Shared, &'a Users),
        (clock, asks): (Clock, Duration),
    ) -> io::Result<Self> {
        let owners = setting.users.iter().enumerate().flat_map(|(user, spec)| {
            (0..spec.connections).map(move |connection| (spec.first + connection, (user, connection as u32)))
        });
        Ok(Self {
            side,
            setting,
            shared,
            users,
            windows: None,
            clock,
            waiter: Waiter::new(clock)?,
            listener: None,
            ends: BTreeMap::new(),
            counted: BTreeMap::new(),
            owners: owners.collect(),
            asks,
            failed: Vec::new(),
            late: None,
            room: vec![0; CHUNK].into_boxed_slice(),
        })
    }

    fn run(mut self) -> io::Result<Attended> {
        self.waiter.at(Instant::ZERO + self.asks, Task::Ask);
        self.waiter.at(Instant::ZERO + self.setting.warmup, Task::WarmedUp);
        self.waiter.at(Instant::ZERO + self.setting.duration, Task::End);
        'run: while !self.shared.is_stopped() {
            let now = self.clock.now();
            while let Some((due, task)) = self.waiter.due(now) {
                match task {
                    Task::Begin(user) => self.attend(user, Event::Begins, due)?,
                    Task::Wake(user) => {
                        // A later command may have taken the place of this one.
                        if self.users.with(user, |one| one.is_woken(due)) {
                            self.attend(user, Event::Wakes, due)?;
                        }
                    }
                    Task::Ask => {
                        self.ask();
                        self.waiter.at(due.max(now) + self.asks, Task::Ask);
                    }
                    Task::WarmedUp => {
                        self.ask();
                        for counted in self.counted.values_mut() {
                            counted.latest.rtt_samples = (0, 0);
                            counted.at_warmup = (counted.latest.clone(), counted.acked);
                        }
                    }
                    Task::End => break 'run,
                }
            }
            for (key, flags) in self.waiter.wait()? {
                match key {
                    LISTENING => self.accept()?,
                    number => self.on_socket(number as usize, flags)?,
                }
            }
        }
        self.ask();
        let senders = self.counted.into_iter().map(|(number, counted)| {
            let Counted { latest, acked, at_warmup, .. } = counted;
            (number, (latest.since(&at_warmup.0), acked - at_warmup.1))
        });
        let name = |user: usize| self.setting.flows[self.setting.users[user].first].name.clone();
        let late = self.late.map(|(user, late)| (format!("the user of {}", name(user)), late));
        Ok(Attended { senders: senders.collect(), failed: self.failed, late })
    }

    /// The time of a user has come.
    fn attend(&mut self, user: usize, event: Event, due: Instant) -> io::Result<()> {
        let late = self.clock.now().since(due);
        if self.late.is_none_or(|(_, before)| late > before) {
            self.late = Some((user, late));
        }
        self.tell(user, event)
    }

    /// Tells a user what happens, and does what it commands.
    fn tell(&mut self, user: usize, event: Event) -> io::Result<()> {
        for action in self.users.tell(user, event, self.clock.now()) {
            match action {
                Action::WakeAt(at) => self.waiter.at(at, Task::Wake(user)),
                Action::Grant { connection, direction, bytes } => {
                    debug_assert_eq!(direction == Direction::Response, self.side == Side::Sending);
                    let number = self.setting.users[user].first + connection as usize;
                    if self.side == Side::Receiving && !self.ends.contains_key(&number) {
                        self.connect(number)?;
                    }
                    if let Some(end) = self.ends.get_mut(&number) {
                        end.left += bytes;
                    }
                    self.write(number)?;
                }
                Action::Send { .. } => {}
            }
        }
        Ok(())
    }

    /// A user's client opens a connection.
    fn connect(&mut self, number: usize) -> io::Result<()> {
        let flow = &self.setting.flows[number];
        let there = address(Side::Sending, self.setting.ip, LISTENER);
        let socket =
            Socket::new(Domain::for_address(there), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if let Kind::Tcp { segment, .. } = &flow.kind {
            socket.set_tcp_mss(u32::from(*segment))?;
        }
        socket.bind(&address(Side::Receiving, self.setting.ip, flow.port).into())?;
        match socket.connect(&there.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        self.attach(number, socket, false)
    }

    /// Clients have opened connections.
    fn accept(&mut self) -> io::Result<()> {
        loop {
            let accepted = match &self.listener {
                Some(listener) => listener.accept(),
                None => return Ok(()),
            };
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let port = peer.as_socket().map_or(0, |peer| peer.port());
            let number = usize::from(port.wrapping_sub(FIRST_PORT));
            if self.owners.contains_key(&number) {
                socket.set_nonblocking(true)?;
                self.attach(number, socket, true)?;
            }
        }
    }

    fn attach(&mut self, number: usize, socket: Socket, is_open: bool) -> io::Result<()> {
        let flow = &self.setting.flows[number];
        if let Kind::Tcp { congestion, .. } = &flow.kind {
            socket.set_tcp_congestion(congestion.as_bytes())?;
        }
        socket.set_tcp_nodelay(true)?;
        let flags = if is_open { EpollFlags::EPOLLIN } else { EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT };
        self.waiter.add(&socket, flags, number as u64)?;
        self.ends.insert(number, End { socket, is_open, left: 0, waits: !is_open });
        let limits = LimitMeter::begin(self.clock.now(), false);
        self.counted.entry(number).or_insert_with(|| Counted { limits, ..Counted::default() });
        Ok(())
    }

    fn on_socket(&mut self, number: usize, flags: EpollFlags) -> io::Result<()> {
        let Some(end) = self.ends.get_mut(&number) else { return Ok(()) };
        if let Ok(Some(error)) = end.socket.take_error() {
            self.fail(number, &error.to_string());
            return Ok(());
        }
        end.is_open |= flags.contains(EpollFlags::EPOLLOUT);
        if flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP) {
            self.read(number)?;
        }
        if flags.contains(EpollFlags::EPOLLOUT) {
            self.write(number)?;
        }
        Ok(())
    }

    /// A connection broke. At the end of the run the other host may be the first to close it.
    fn fail(&mut self, number: usize, why: &str) {
        if self.ends.remove(&number).is_some() && self.clock.now() < Instant::ZERO + self.setting.duration {
            self.failed.push(format!("{}: {why}", self.setting.flows[number].name));
        }
    }

    /// Gives TCP as much as it takes.
    fn write(&mut self, number: usize) -> io::Result<()> {
        let Self { ends, waiter, room, .. } = self;
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
                    self.fail(number, &error.to_string());
                    return Ok(());
                }
            }
        }
        if end.waits != (end.left > 0) {
            end.waits = end.left > 0;
            let out = if end.waits { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
            waiter.change(&end.socket, EpollFlags::EPOLLIN | out, number as u64)?;
        }
        Ok(())
    }

    /// Reads what has arrived, and tells the user what is complete.
    fn read(&mut self, number: usize) -> io::Result<()> {
        let mut arrived = 0;
        for _ in 0..TURNS {
            let Self { ends, room, .. } = self;
            let Some(end) = ends.get(&number) else { return Ok(()) };
            match io::Read::read(&mut &end.socket, room) {
                Ok(0) => {
                    self.fail(number, "the other host closed it");
                    break;
                }
                Ok(length) => arrived += length as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.fail(number, &error.to_string());
                    break;
                }
            }
        }
        self.count(number, arrived)
    }

    fn count(&mut self, number: usize, arrived: u64) -> io::Result<()> {
        let (user, connection) = self.owners[&number];
        let direction = match self.side {
            Side::Receiving => Direction::Response,
            Side::Sending => Direction::Request,
        };
        let lane = lane_of(direction);
        let sizes = sizes(&self.setting.flows[number], direction);
        let (found, missing) = self.users.with(user, |one| {
            let lane = &mut one.lanes[connection as usize][lane];
            (lane.arrive(arrived, sizes), lane.missing())
        });
        let gauge = &self.shared.flows[number].exchanged[lane];
        gauge.bytes.fetch_add(found.on_wire.0, Ordering::Relaxed);
        gauge.packets.fetch_add(found.on_wire.1, Ordering::Relaxed);
        if let Some(end) = self.ends.get(&number) {
            // With another mark, it is read at another time.
            let _ = set_low_water_mark(&end.socket, missing.clamp(1, WAKE_BYTES) as u32);
        }
        for _ in 0..found.complete {
            self.tell(user, Event::Arrived { connection, direction })?;
        }
        Ok(())
    }

    /// Asks the kernel how the connections do.
    fn ask(&mut self) {
        for (number, end) in &self.ends {
            let (Ok(info), Some(counted)) = (tcp_info(&end.socket), self.counted.get_mut(number)) else {
                continue;
            };
            let TcpInfo { window, rtt_us, sent, retransmitted, timeouts, acked, .. } = info;
            let (samples, sum) = counted.latest.rtt_samples;
            // A connection that sends nothing measures no round trips.
            let is_new = rtt_us > 0 && sent > counted.latest.sent;
            let rtt_samples =
                if is_new { (samples + 1, sum + u128::from(rtt_us) * 1000) } else { (samples, sum) };
            counted.latest = SenderStatistics {
                sent,
                retransmitted,
                timeouts,
                rtt_samples,
                limits: counted.limits.take(&info, end.left == 0, self.clock.now()),
                ..SenderStatistics::default()
            };
            counted.acked = acked;
            if let Some(windows) = &self.windows {
                self.shared.flows[*number].rtt_us.store(rtt_us, Ordering::Relaxed);
                windows.set(*number, (end.left > 0).then_some(window));
            }
        }
    }
}

/// Bytes of data in a full packet of a connection in this direction, and those of its headers.
fn sizes(flow: &HostFlow, direction: Direction) -> (u16, u16) {
    let payload = match (direction, flow.requests) {
        (Direction::Request, Some(requests)) => requests.payload,
        _ => flow.payload,
    };
    (payload, flow.headers())
}

#[cfg(test)]
mod tests {
    use perhop_scenario::Scenario;

    use super::*;

    /// Of each model over TCP, one user for a time, with a network that takes 10 ms each way.
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
            events.insert((Instant::ZERO, 0), (Event::Begins, Side::Receiving));
            let (mut wake, mut serial, mut responses) = ((Instant::NEVER, Side::Receiving), 1, 0);
            while responses < 100 {
                let first = events.first_key_value().map(|(key, _)| *key);
                let (now, (event, here)) = match first {
                    Some(key) if key.0 <= wake.0 => (key.0, events.remove(&key).unwrap()),
                    _ => {
                        let (at, side) = std::mem::replace(&mut wake, (Instant::NEVER, Side::Receiving));
                        (at, (Event::Wakes, side))
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
                            let arrived = Event::Arrived { connection, direction };
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

    #[test]
    fn grants_complete_in_order_and_count_their_packets() {
        let mut lane = Lane::default();
        lane.grant(1000);
        lane.grant(300);
        assert_eq!(lane.missing(), 1000);
        // 900 bytes are two packets of at most 500, of which the second is not complete.
        let part = lane.arrive(900, (500, 52));
        assert_eq!(part, Arrival { complete: 0, on_wire: (1004, 2) });
        assert_eq!(lane.missing(), 100);
        let rest = lane.arrive(400, (500, 52));
        assert_eq!(rest, Arrival { complete: 2, on_wire: (452, 1) });
        assert_eq!((lane.missing(), lane.ends.len()), (0, 0));
        assert_eq!(lane.arrive(7, (500, 52)), Arrival::default(), "nobody granted that");
    }
}
