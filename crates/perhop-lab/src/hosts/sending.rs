//! The senders of a host: bulk TCP of the kernel's, and the simulator's senders over UDP.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::sys::epoll::EpollFlags;
use perhop_core::{Context, Duration, Instant, Rng};
use perhop_live::Windows;
use perhop_sim::transport::metadata::Feedback;
use perhop_sim::transport::{Sender, SenderStatistics, Source, Transmit};
use socket2::Socket;

use super::counts::ConnectionCounts;
use super::role::{self, Common, Host, Role, datagram_socket, set_codepoints};
use crate::letter;
use crate::setting::{HostFlow, Kind};
use crate::system::tcp_info;

/// The most bytes that are written to a socket at once.
const CHUNK: usize = 1 << 16;
/// How often a socket is written before others have their turn.
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
    /// Packets by the color that the host's own meter gave them, and those that it dropped, for flows that it
    /// marks.
    pub(crate) marked: Vec<Option<([u64; 3], [u64; 3])>>,
    /// Flows that broke, and why.
    pub(crate) failed: Vec<String>,
    /// Flows that had not connected by the end.
    pub(crate) unconnected: Vec<String>,
    /// The flow that this host began latest, compared with when it should have, of those that come and go.
    pub(crate) late: Option<(String, Duration)>,
    /// Flows whose packets this host could not send in time, and how far it was behind in the end.
    pub(crate) behind: Vec<(String, Duration)>,
}

/// A task of the senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    Start(usize),
    /// A datagram sender's own timer.
    Wake(usize),
    Stop(usize),
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
    sender: Box<Sender>,
    rng: Rng,
    /// The wake-up that is among the tasks.
    scheduled: Instant,
}

struct Flow<'a> {
    spec: &'a HostFlow,
    state: State,
    counts: ConnectionCounts,
    failed: Option<String>,
}

/// The role of a host for the flows that begin there.
struct Senders<'a> {
    windows: Arc<Windows>,
    flows: Vec<Flow<'a>>,
    /// The flows that have begun and are not done.
    open: BTreeSet<usize>,
    room: Box<[u8]>,
}

/// Runs a host's senders until the end of the run; the calling thread is in the host's namespace.
pub(super) fn send(common: Common<'_>, windows: Arc<Windows>) -> io::Result<Sent> {
    let flow = |spec| Flow { spec, state: State::Waiting, counts: ConnectionCounts::default(), failed: None };
    let senders = Senders {
        windows,
        flows: common.setting.flows.iter().map(flow).collect(),
        open: BTreeSet::new(),
        room: vec![0; CHUNK.max(usize::from(u16::MAX))].into_boxed_slice(),
    };
    role::run(senders, common, None)
}

impl Role for Senders<'_> {
    type Task = Task;
    type Results = Sent;

    fn begin(&mut self, host: &mut Host<'_, Task>) -> io::Result<()> {
        for (number, Flow { spec, .. }) in self.flows.iter().enumerate() {
            let side = host.common.side;
            if spec.from == side && spec.begins() && spec.is_unattended() && spec.own_at(side).is_none() {
                host.at(spec.start, Task::Start(number));
                host.at(spec.stop.unwrap_or(Instant::NEVER), Task::Stop(number));
            }
        }
        if host.common.setting.congestions().next().is_some() {
            host.glance();
        }
        Ok(())
    }

    fn on_task(&mut self, host: &mut Host<'_, Task>, task: Task, due: Instant) -> io::Result<()> {
        match task {
            Task::Start(number) => {
                self.start(host, number)?;
                if self.flows[number].spec.is_passing {
                    host.note_lateness(number, due);
                }
            }
            Task::Wake(number) => self.wake(host, number, due),
            Task::Stop(number) => self.stop(host, number),
        }
        Ok(())
    }

    fn on_socket(&mut self, host: &mut Host<'_, Task>, number: usize, flags: EpollFlags) -> io::Result<()> {
        let flow = &mut self.flows[number];
        flow.state = match std::mem::replace(&mut flow.state, State::Done) {
            State::Connecting(socket) => match socket.take_error() {
                Ok(None) if !flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) => {
                    State::Sending { socket, left: flow.spec.volume }
                }
                refused => {
                    let why =
                        refused.ok().flatten().map_or_else(|| "refused".into(), |error| error.to_string());
                    flow.failed = Some(why);
                    host.waiter.forget_patient(&socket);
                    State::Done
                }
            },
            state => state,
        };
        match &mut flow.state {
            State::Sending { left: Some(0), .. } if flow.spec.is_passing => self.close(host, number),
            State::Sending { .. } => self.fill(host, number),
            State::Datagrams(_) => self.receive_feedback(host, number),
            State::Waiting | State::Connecting(_) | State::Done => {}
        }
        Ok(())
    }

    /// Asks the kernel, and the datagram senders, how they do.
    fn ask(&mut self, host: &Host<'_, Task>) {
        let open = std::mem::take(&mut self.open);
        for &number in &open {
            self.ask_about(host, number);
        }
        self.open = open;
    }

    fn warmed_up(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.counts.warmed_up());
    }

    fn results(self, host: &Host<'_, Task>) -> Sent {
        let mut results = Sent::default();
        let now = host.now();
        results.late =
            host.late.map(|(flow, late)| (format!("the start of {}", self.flows[flow].spec.name), late));
        for flow in self.flows {
            let (statistics, acked) = flow.counts.since_warmup();
            results.statistics.push(statistics);
            results.acked.push(acked);
            results.receiver_windows.push(flow.counts.receiver_window);
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

impl Senders<'_> {
    fn start(&mut self, host: &mut Host<'_, Task>, number: usize) -> io::Result<()> {
        self.open.insert(number);
        let flow = &mut self.flows[number];
        let now = host.now();
        flow.counts.begin(now, true);
        match &flow.spec.kind {
            Kind::Tcp { .. } => {
                let (socket, begun) = host.connect(flow.spec)?;
                flow.failed = begun.err().map(|error| error.to_string());
                if flow.spec.is_passing {
                    host.waiter.add(&socket, EpollFlags::EPOLLOUT, number as u64)?;
                } else {
                    host.waiter.add_patient(&socket, EpollFlags::EPOLLOUT, number as u64)?;
                }
                flow.state = State::Connecting(socket);
            }
            Kind::Datagrams { sender, rng, .. } => {
                let Common { setting, side, .. } = host.common;
                let socket = datagram_socket(setting, side, flow.spec)?;
                host.waiter.add(&socket, EpollFlags::EPOLLIN, number as u64)?;
                let mut sender = sender.clone();
                sender.start(now);
                let (rng, scheduled) = (rng.clone(), Instant::NEVER);
                flow.state = State::Datagrams(Datagrams { socket, sender, rng, scheduled });
                self.transmit(host, number, now);
            }
        }
        Ok(())
    }

    /// Gives TCP as much as it takes.
    fn fill(&mut self, host: &Host<'_, Task>, number: usize) {
        let Self { flows, room, windows, .. } = self;
        let flow = &mut flows[number];
        let State::Sending { socket, left } = &mut flow.state else { return };
        for _ in 0..TURNS {
            let chunk = left.map_or(CHUNK, |left| left.min(CHUNK as u64) as usize);
            if chunk == 0 {
                // All is sent; what is not acknowledged yet is the kernel's.
                let _ = socket.shutdown(std::net::Shutdown::Write);
                if flow.spec.is_passing {
                    // The receiving host closes, too, when it has all.
                    if let Err(error) = host.waiter.change(socket, EpollFlags::EPOLLRDHUP, number as u64) {
                        flow.failed = Some(error.to_string());
                    }
                    return;
                }
                host.waiter.forget_patient(socket);
                windows.set(number, None);
                return;
            }
            match socket.send(&room[..chunk]) {
                Ok(sent) => *left = left.map(|left| left - sent as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    flow.failed = Some(error.to_string());
                    host.waiter.forget_patient(socket);
                    flow.state = State::Done;
                    windows.set(number, None);
                    return;
                }
            }
        }
    }

    /// Closes a flow that comes and goes: it has been received, or its connection broke.
    fn close(&mut self, host: &Host<'_, Task>, number: usize) {
        self.ask_about(host, number);
        let flow = &mut self.flows[number];
        if let State::Sending { socket, .. } = &flow.state
            && let Ok(Some(error)) = socket.take_error()
        {
            flow.failed = Some(error.to_string());
        }
        flow.state = State::Done;
        self.open.remove(&number);
    }

    fn stop(&mut self, host: &Host<'_, Task>, number: usize) {
        let Self { flows, windows, .. } = self;
        match &mut flows[number].state {
            State::Sending { socket, left } => {
                *left = Some(0);
                host.waiter.forget_patient(socket);
                let _ = socket.shutdown(std::net::Shutdown::Write);
                windows.set(number, None);
            }
            State::Datagrams(datagrams) => datagrams.sender.stop(),
            state @ (State::Waiting | State::Connecting(_)) => *state = State::Done,
            State::Done => {}
        }
    }

    /// Wakes a datagram sender. It keeps its own time, so that a late wake-up does not make it slower.
    fn wake(&mut self, host: &mut Host<'_, Task>, number: usize, due: Instant) {
        let State::Datagrams(datagrams) = &mut self.flows[number].state else { return };
        if datagrams.scheduled != due {
            return; // An earlier wake-up took its place.
        }
        datagrams.scheduled = Instant::NEVER;
        if datagrams.sender.wake() <= due {
            datagrams.sender.on_wake(due);
            self.transmit(host, number, due);
        } else {
            self.schedule(host, number);
        }
    }

    /// Receives feedback that has arrived.
    fn receive_feedback(&mut self, host: &mut Host<'_, Task>, number: usize) {
        let Self { flows, room, .. } = self;
        let State::Datagrams(datagrams) = &mut flows[number].state else { return };
        while let Some(length) = receive(&datagrams.socket, room) {
            if let Some(feedback) = read_feedback(&datagrams.sender, &room[..length]) {
                datagrams.sender.on_feedback(feedback, host.now());
            }
        }
        let now = host.now();
        self.transmit(host, number, now);
    }

    /// Sends whatever a datagram sender wants on the wire.
    fn transmit(&mut self, host: &mut Host<'_, Task>, number: usize, now: Instant) {
        let Self { flows, room, .. } = self;
        let Flow { spec, state: State::Datagrams(datagrams), .. } = &mut flows[number] else { return };
        let Datagrams { socket, sender, rng, .. } = datagrams;
        send_datagrams(spec, host, socket, (sender, rng), room, now);
        let is_over = spec.is_passing && sender.finished().is_some();
        self.schedule(host, number);
        if is_over {
            self.ask_about(host, number);
            self.flows[number].state = State::Done;
            self.open.remove(&number);
        }
    }

    fn schedule(&mut self, host: &mut Host<'_, Task>, number: usize) {
        let State::Datagrams(datagrams) = &mut self.flows[number].state else { return };
        let at = datagrams.sender.wake();
        if at < datagrams.scheduled {
            datagrams.scheduled = at;
            host.at(at, Task::Wake(number));
        }
    }

    fn ask_about(&mut self, host: &Host<'_, Task>, number: usize) {
        let flow = &mut self.flows[number];
        let gauge = &host.common.shared.flows[number].rtt_us;
        match &flow.state {
            State::Sending { socket, left } => {
                let Ok(info) = tcp_info(socket) else { return };
                flow.counts.take(&info, *left == Some(0), host.now(), true);
                gauge.store(info.rtt_us, Ordering::Relaxed);
                self.windows.set(number, (*left != Some(0)).then_some(info.window));
            }
            State::Datagrams(datagrams) => {
                flow.counts.latest = datagrams.sender.statistics();
                let rtt_us = datagrams.sender.smoothed_rtt().unwrap_or(0.0) * 1e6;
                gauge.store(rtt_us as u32, Ordering::Relaxed);
            }
            State::Waiting | State::Connecting(_) | State::Done => {}
        }
    }
}

/// Sends whatever a datagram sender wants on the wire at `now`.
pub(super) fn send_datagrams<T: Ord + Copy>(
    flow: &HostFlow,
    host: &Host<'_, T>,
    socket: &Socket,
    (sender, rng): (&mut Sender, &mut Rng),
    room: &mut [u8],
    now: Instant,
) {
    let Kind::Datagrams { codepoints: (dscp, ecn), .. } = flow.kind else { return };
    while let Some(Transmit { sequence, size, .. }) = sender.transmit(&mut Context { now, rng }) {
        let Some(envelope) = sender.envelope(host.now()) else { return };
        letter::write_data(room, sequence, envelope);
        // Only the packets of a trace may have codepoints of their own.
        if sender.smallest().is_some() {
            let dscp = sender.codepoint().unwrap_or(dscp);
            let _ = set_codepoints(socket, host.common.setting.ip, dscp, ecn);
        }
        // What the kernel does not take is lost, as a packet on the wire may be.
        let _ = socket.send(&room[..usize::from(flow.data_of(size))]);
    }
}

fn read_feedback(sender: &Sender, bytes: &[u8]) -> Option<Feedback> {
    match sender {
        Sender::Tcp(_) | Sender::Udp(_) => None,
        Sender::Rap(_) => letter::read_echo(bytes),
        Sender::Tfrc(_) => letter::read_report(bytes),
    }
}

/// Returns the length of the next datagram, if one waits.
fn receive(mut socket: &Socket, room: &mut [u8]) -> Option<usize> {
    io::Read::read(&mut socket, room).ok()
}
