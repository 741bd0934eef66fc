//! What a host sends: bulk TCP of the kernel's, and the simulator's senders over UDP.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::sys::epoll::EpollFlags;
use perhop_core::{Context, Duration, Instant, Rng};
use perhop_live::{Clock, Windows};
use perhop_sim::transport::datagram::{DatagramSender, Envelope, Feedback};
use perhop_sim::transport::{SenderStatistics, Transmit};
use socket2::{Domain, Protocol, Socket, Type};

use super::limits::LimitMeter;
use super::waiter::{GLANCE, Waiter};
use super::{Shared, Side, address, letter};
use crate::setting::{HostFlow, Kind, LISTENER, Setting};
use crate::system::{TcpInfo, tcp_info};

/// Written to a socket at once; and how often before others have their turn.
const CHUNK: usize = 1 << 16;
const TURNS: usize = 4;

/// A sender that is so far behind its own time could not keep its rate.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// The results of a host's senders, for each flow since the warm-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) statistics: Vec<SenderStatistics>,
    /// The receiver's window in bytes; 0 where the kernel does not say it.
    pub(crate) receiver_windows: Vec<u32>,
    /// Bytes that TCP has acknowledged.
    pub(crate) acked: Vec<u64>,
    /// Flows that broke, and why.
    pub(crate) failed: Vec<String>,
    /// Flows that had not connected by the end.
    pub(crate) unconnected: Vec<String>,
    /// The flow that this host began latest, compared with when it should have, of those that come and go.
    pub(crate) late: Option<(String, Duration)>,
    /// Flows whose packets this host could not send in time, and how far it was behind in the end.
    pub(crate) behind: Vec<(String, Duration)>,
}

/// What the sending host does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Start(usize),
    /// A datagram sender's own timer.
    Wake(usize),
    Stop(usize),
    /// See what TCP takes.
    Glance,
    /// Ask the kernel for windows and round trips.
    Ask,
    WarmedUp,
    End,
}

enum State {
    Waiting,
    Connecting(Socket),
    Sending { socket: Socket, left: Option<u64> },
    Datagrams(Datagrams),
    Done,
}

struct Datagrams {
    socket: Socket,
    sender: Box<DatagramSender>,
    rng: Rng,
    /// The wake-up that is among the tasks.
    scheduled: Instant,
}

struct Flow<'a> {
    spec: &'a HostFlow,
    state: State,
    latest: SenderStatistics,
    acked: u64,
    limits: LimitMeter,
    receiver_window: u32,
    at_warmup: (SenderStatistics, u64),
    failed: Option<String>,
}

struct Host<'a> {
    side: Side,
    setting: &'a Setting,
    shared: &'a Shared,
    windows: Arc<Windows>,
    clock: Clock,
    waiter: Waiter<Task>,
    flows: Vec<Flow<'a>>,
    /// Those that have begun and are not done.
    open: BTreeSet<usize>,
    /// How late a flow that comes and goes began at worst.
    late: Option<(usize, Duration)>,
    /// How often the kernel is asked.
    asks: Duration,
    room: Box<[u8]>,
}

/// Runs a host's senders until the end of the run; the calling thread is in the host's namespace.
pub(super) fn send(
    side: Side,
    (setting, shared): (&Setting, &Shared),
    windows: Arc<Windows>,
    (clock, asks): (Clock, Duration),
) -> io::Result<Sent> {
    let flow = |spec| Flow {
        spec,
        state: State::Waiting,
        latest: SenderStatistics::default(),
        acked: 0,
        limits: LimitMeter::default(),
        receiver_window: 0,
        at_warmup: (SenderStatistics::default(), 0),
        failed: None,
    };
    let host = Host {
        side,
        setting,
        shared,
        windows,
        clock,
        waiter: Waiter::new(clock)?,
        flows: setting.flows.iter().map(flow).collect(),
        open: BTreeSet::new(),
        late: None,
        asks,
        room: vec![0; CHUNK.max(usize::from(u16::MAX))].into_boxed_slice(),
    };
    host.run()
}

impl Host<'_> {
    fn run(mut self) -> io::Result<Sent> {
        for number in 0..self.flows.len() {
            let HostFlow { start, stop, from, .. } = *self.flows[number].spec;
            if from != self.side || !self.flows[number].spec.is_unattended() {
                continue;
            }
            self.waiter.at(start, Task::Start(number));
            self.waiter.at(stop.unwrap_or(Instant::NEVER), Task::Stop(number));
        }
        if self.setting.congestions().next().is_some() {
            self.waiter.at(Instant::ZERO + GLANCE, Task::Glance);
        }
        self.waiter.at(Instant::ZERO + self.asks, Task::Ask);
        self.waiter.at(Instant::ZERO + self.setting.warmup, Task::WarmedUp);
        self.waiter.at(Instant::ZERO + self.setting.duration, Task::End);
        'run: while !self.shared.is_stopped() {
            let now = self.clock.now();
            while let Some((due, task)) = self.waiter.due(now) {
                match task {
                    Task::Start(number) => {
                        self.start(number)?;
                        self.note_lateness(number, due);
                    }
                    Task::Wake(number) => self.wake(number, due),
                    Task::Stop(number) => self.stop(number),
                    Task::Glance => {
                        for (key, flags) in self.waiter.glance()? {
                            self.on_socket(key as usize, flags);
                        }
                        self.waiter.at(now + GLANCE, Task::Glance);
                    }
                    Task::Ask => {
                        self.ask();
                        self.waiter.at(due.max(now) + self.asks, Task::Ask);
                    }
                    Task::WarmedUp => {
                        self.ask();
                        for flow in &mut self.flows {
                            flow.at_warmup = (flow.latest.clone(), flow.acked);
                            // Round trips are sampled from here on.
                            flow.latest.rtt_samples = (0, 0);
                            flow.at_warmup.0.rtt_samples = (0, 0);
                        }
                    }
                    Task::End => break 'run,
                }
            }
            for (key, flags) in self.waiter.wait()? {
                self.on_socket(key as usize, flags);
            }
        }
        self.ask();
        Ok(self.results())
    }

    fn note_lateness(&mut self, number: usize, due: Instant) {
        let late = self.clock.now().since(due);
        if self.flows[number].spec.is_passing && self.late.is_none_or(|(_, before)| late > before) {
            self.late = Some((number, late));
        }
    }

    fn start(&mut self, number: usize) -> io::Result<()> {
        let Self { side, setting, waiter, flows, open, clock, .. } = self;
        open.insert(number);
        let flow = &mut flows[number];
        flow.limits = LimitMeter::begin(clock.now(), true);
        let (here, there) =
            (|port| address(*side, setting.ip, port), |port| address(side.other(), setting.ip, port));
        let domain = Domain::for_address(here(0));
        match &flow.spec.kind {
            Kind::Tcp { congestion, segment, .. } => {
                let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
                socket.set_reuse_address(true)?;
                socket.set_tcp_congestion(congestion.as_bytes())?;
                socket.set_tcp_mss(u32::from(*segment))?;
                socket.bind(&here(flow.spec.port).into())?;
                match socket.connect(&there(LISTENER).into()) {
                    Ok(()) => {}
                    Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
                    Err(error) => flow.failed = Some(error.to_string()),
                }
                if flow.spec.is_passing {
                    waiter.add(&socket, EpollFlags::EPOLLOUT, number as u64)?;
                } else {
                    waiter.add_patient(&socket, EpollFlags::EPOLLOUT, number as u64)?;
                }
                flow.state = State::Connecting(socket);
            }
            Kind::Datagrams { sender, rng, .. } => {
                let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
                socket.bind(&here(flow.spec.port).into())?;
                socket.connect(&there(flow.spec.port).into())?;
                waiter.add(&socket, EpollFlags::EPOLLIN, number as u64)?;
                let mut sender = sender.clone();
                let now = clock.now();
                sender.start(now);
                flow.state = State::Datagrams(Datagrams {
                    socket,
                    sender,
                    rng: rng.clone(),
                    scheduled: Instant::NEVER,
                });
                self.transmit(number, now);
            }
        }
        Ok(())
    }

    fn on_socket(&mut self, number: usize, flags: EpollFlags) {
        let Self { waiter, flows, .. } = self;
        let flow = &mut flows[number];
        flow.state = match std::mem::replace(&mut flow.state, State::Done) {
            State::Connecting(socket) => match socket.take_error() {
                Ok(None) if !flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) => {
                    State::Sending { socket, left: flow.spec.volume }
                }
                refused => {
                    let why =
                        refused.ok().flatten().map_or_else(|| "refused".into(), |error| error.to_string());
                    flow.failed = Some(why);
                    waiter.forget_patient(&socket);
                    State::Done
                }
            },
            state => state,
        };
        match &mut flow.state {
            State::Sending { left: Some(0), .. } if flow.spec.is_passing => self.close(number),
            State::Sending { .. } => self.fill(number),
            State::Datagrams(_) => self.receive_feedback(number),
            State::Waiting | State::Connecting(_) | State::Done => {}
        }
    }

    /// Gives TCP as much as it takes.
    fn fill(&mut self, number: usize) {
        let Self { waiter, flows, room, windows, .. } = self;
        let flow = &mut flows[number];
        let State::Sending { socket, left } = &mut flow.state else { return };
        for _ in 0..TURNS {
            let chunk = left.map_or(CHUNK, |left| left.min(CHUNK as u64) as usize);
            if chunk == 0 {
                // All is sent; what is not acknowledged yet is the kernel's.
                let _ = socket.shutdown(std::net::Shutdown::Write);
                if flow.spec.is_passing {
                    // The receiving host closes, too, when it has all.
                    if let Err(error) = waiter.change(socket, EpollFlags::EPOLLRDHUP, number as u64) {
                        flow.failed = Some(error.to_string());
                    }
                    return;
                }
                waiter.forget_patient(socket);
                windows.set(number, None);
                return;
            }
            match socket.send(&room[..chunk]) {
                Ok(sent) => *left = left.map(|left| left - sent as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    flow.failed = Some(error.to_string());
                    waiter.forget_patient(socket);
                    flow.state = State::Done;
                    windows.set(number, None);
                    return;
                }
            }
        }
    }

    /// A flow that comes and goes has been received, or its connection broke.
    fn close(&mut self, number: usize) {
        self.ask_about(number);
        let flow = &mut self.flows[number];
        if let State::Sending { socket, .. } = &flow.state
            && let Ok(Some(error)) = socket.take_error()
        {
            flow.failed = Some(error.to_string());
        }
        flow.state = State::Done;
        self.open.remove(&number);
    }

    fn stop(&mut self, number: usize) {
        let Self { waiter, flows, windows, .. } = self;
        match &mut flows[number].state {
            State::Sending { socket, left } => {
                *left = Some(0);
                waiter.forget_patient(socket);
                let _ = socket.shutdown(std::net::Shutdown::Write);
                windows.set(number, None);
            }
            State::Datagrams(datagrams) => datagrams.sender.stop(),
            state @ (State::Waiting | State::Connecting(_)) => *state = State::Done,
            State::Done => {}
        }
    }

    /// A datagram sender's time has come. It keeps its own time, so that a late wake-up does not make it slower.
    fn wake(&mut self, number: usize, due: Instant) {
        let State::Datagrams(datagrams) = &mut self.flows[number].state else { return };
        if datagrams.scheduled != due {
            return; // An earlier wake-up took its place.
        }
        datagrams.scheduled = Instant::NEVER;
        if datagrams.sender.wake() <= due {
            datagrams.sender.on_wake(due);
            self.transmit(number, due);
        } else {
            self.schedule(number);
        }
    }

    /// Receives feedback that has arrived.
    fn receive_feedback(&mut self, number: usize) {
        let Self { flows, clock, room, .. } = self;
        let State::Datagrams(datagrams) = &mut flows[number].state else { return };
        while let Some(length) = receive(&datagrams.socket, room) {
            if let Some(feedback) = read_feedback(&datagrams.sender, &room[..length]) {
                datagrams.sender.on_feedback(feedback, clock.now());
            }
        }
        let now = self.clock.now();
        self.transmit(number, now);
    }

    /// Sends whatever a datagram sender wants on the wire.
    fn transmit(&mut self, number: usize, now: Instant) {
        let Self { flows, clock, room, .. } = self;
        let Flow { spec, state: State::Datagrams(datagrams), .. } = &mut flows[number] else { return };
        let Datagrams { socket, sender, rng, .. } = datagrams;
        while let Some(Transmit { sequence, .. }) = sender.transmit(&mut Context { now, rng }) {
            letter::write_data(room, sequence, Envelope { sent: clock.now(), rtt: sender.rtt() });
            // What the kernel does not take is lost, as a packet on the wire may be.
            let _ = socket.send(&room[..usize::from(spec.payload)]);
        }
        self.schedule(number);
    }

    fn schedule(&mut self, number: usize) {
        let Self { flows, waiter, .. } = self;
        let State::Datagrams(datagrams) = &mut flows[number].state else { return };
        let at = datagrams.sender.wake();
        if at < datagrams.scheduled {
            datagrams.scheduled = at;
            waiter.at(at, Task::Wake(number));
        }
    }

    /// Asks the kernel, and the datagram senders, how they do.
    fn ask(&mut self) {
        let open = std::mem::take(&mut self.open);
        for &number in &open {
            self.ask_about(number);
        }
        self.open = open;
    }

    fn ask_about(&mut self, number: usize) {
        let Self { flows, windows, shared, clock, .. } = self;
        let flow = &mut flows[number];
        match &flow.state {
            State::Sending { socket, left } => {
                let Ok(info) = tcp_info(socket) else { return };
                let TcpInfo { window, rtt_us, sent, retransmitted, timeouts, acked, .. } = info;
                let (samples, sum) = flow.latest.rtt_samples;
                flow.latest = SenderStatistics {
                    sent,
                    retransmitted,
                    timeouts,
                    rtt_samples: match rtt_us {
                        0 => (samples, sum),
                        _ => (samples + 1, sum + u128::from(rtt_us) * 1000),
                    },
                    limits: flow.limits.take(&info, *left == Some(0), clock.now()),
                    ..SenderStatistics::default()
                };
                flow.acked = acked;
                flow.receiver_window = info.receiver_window;
                shared.flows[number].rtt_us.store(rtt_us, Ordering::Relaxed);
                windows.set(number, (*left != Some(0)).then_some(window));
            }
            State::Datagrams(datagrams) => {
                flow.latest = datagrams.sender.statistics().clone();
                let rtt = datagrams.sender.rtt().unwrap_or(Duration::ZERO).as_nanos() / 1000;
                shared.flows[number].rtt_us.store(u32::try_from(rtt).unwrap_or(u32::MAX), Ordering::Relaxed);
            }
            State::Waiting | State::Connecting(_) | State::Done => {}
        }
    }

    fn results(self) -> Sent {
        let mut results = Sent::default();
        let now = self.clock.now();
        results.late =
            self.late.map(|(flow, late)| (format!("the start of {}", self.flows[flow].spec.name), late));
        for flow in self.flows {
            let (before, acked_before) = &flow.at_warmup;
            results.statistics.push(flow.latest.since(before));
            results.acked.push(flow.acked - acked_before);
            results.receiver_windows.push(flow.receiver_window);
            if let Some(why) = flow.failed {
                results.failed.push(format!("{}: {why}", flow.spec.name));
            } else if let State::Datagrams(datagrams) = &flow.state {
                let behind = now.since(datagrams.scheduled);
                if behind > PATIENCE {
                    results.behind.push((flow.spec.name.clone(), behind));
                }
            } else if matches!(flow.state, State::Connecting(_)) {
                results.unconnected.push(flow.spec.name.clone());
            }
        }
        results
    }
}

fn read_feedback(sender: &DatagramSender, bytes: &[u8]) -> Option<Feedback> {
    match sender {
        DatagramSender::Udp(_) => None,
        DatagramSender::Rap(_) => letter::read_echo(bytes),
        DatagramSender::Tfrc(_) => letter::read_report(bytes),
    }
}

/// The length of the next datagram, if one waits.
fn receive(mut socket: &Socket, room: &mut [u8]) -> Option<usize> {
    io::Read::read(&mut socket, room).ok()
}
