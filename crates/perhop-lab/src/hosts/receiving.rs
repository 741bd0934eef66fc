//! The receiving host: counts arrivals, and sends feedback where the kernel does not.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use nix::sys::epoll::EpollFlags;
use perhop_core::Instant;
use perhop_live::Clock;
use perhop_sim::transport::datagram::{DatagramReceiver, Feedback};
use perhop_sim::transport::transit::TransitMeter;
use socket2::{Domain, Protocol, Socket, Type};

use super::waiter::{GLANCE, Waiter};
use super::{Shared, Side, address, letter, listen};
use crate::setting::{FIRST_PORT, HostFlow, Kind, LISTENER, Setting};
use crate::system::set_low_water_mark;

/// Read from a socket at once; and how often before others have their turn.
const CHUNK: usize = 1 << 18;
const TURNS: usize = 4;
/// A receiver of finite data wakes up once this many bytes are there, or all that are missing: to wake up for each packet would take
/// time from the router. It is small beside the kernel's first receive window.
pub(super) const WAKE_BYTES: u64 = 1 << 15;
/// The key of the listener.
pub(super) const LISTENING: u64 = u64::MAX - 1;

/// The results of a host's receivers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// For each flow of datagrams, how long its packets took.
    pub(crate) transits: Vec<Option<TransitMeter>>,
    /// For each flow, when all of its volume had arrived, if it has one and that was.
    pub(crate) completed: Vec<Option<Instant>>,
    /// For each flow, when data last arrived.
    pub(crate) last: Vec<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// A receiver's own timer.
    Wake(usize),
    /// See what TCP has.
    Glance,
    End,
}

enum End {
    None,
    Tcp(Socket),
    Datagrams {
        socket: Socket,
        receiver: DatagramReceiver,
        feedback: u16,
        transit: Box<TransitMeter>,
        scheduled: Instant,
    },
}

struct Host<'a> {
    setting: &'a Setting,
    shared: &'a Shared,
    clock: Clock,
    waiter: Waiter<Task>,
    listener: Option<Socket>,
    ends: Vec<End>,
    completed: Vec<Option<Instant>>,
    last: Vec<Instant>,
    room: Box<[u8]>,
}

/// The sockets of a host's receivers.
pub(super) struct Open {
    listener: Option<Socket>,
    ends: Vec<End>,
}

/// Runs a host's receivers until the end of the run; the calling thread is in the host's namespace.
pub(super) fn receive(setting: &Setting, shared: &Shared, open: Open, clock: Clock) -> io::Result<Received> {
    let Open { listener, ends } = open;
    let room = vec![0; CHUNK].into_boxed_slice();
    let completed = vec![None; setting.flows.len()];
    let last = vec![Instant::ZERO; setting.flows.len()];
    Host { setting, shared, clock, waiter: Waiter::new(clock)?, listener, ends, completed, last, room }.run()
}

/// A listener for all TCP, where it comes to, and a socket for each flow of datagrams that comes to this host.
pub(super) fn open(setting: &Setting, side: Side) -> io::Result<Open> {
    let (here, there) =
        (|port| address(side, setting.ip, port), |port| address(side.other(), setting.ip, port));
    let domain = Domain::for_address(here(0));
    let listener = (side == Side::Receiving).then(|| listen(here(LISTENER))).transpose()?;
    let window = (Instant::ZERO + setting.warmup, Instant::ZERO + setting.duration);
    let end = |flow: &HostFlow| match &flow.kind {
        Kind::Tcp { .. } => Ok(End::None),
        Kind::Datagrams { .. } if flow.from == side => Ok(End::None),
        Kind::Datagrams { receiver, feedback, play_out, .. } => {
            let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
            socket.bind(&here(flow.port).into())?;
            socket.connect(&there(flow.port).into())?;
            Ok(End::Datagrams {
                socket,
                receiver: receiver.clone(),
                feedback: *feedback,
                transit: Box::new(TransitMeter::new(window).with_play_out(*play_out)),
                scheduled: Instant::NEVER,
            })
        }
    };
    let ends = setting.flows.iter().map(end).collect::<io::Result<_>>()?;
    Ok(Open { listener, ends })
}

impl Host<'_> {
    fn run(mut self) -> io::Result<Received> {
        if let Some(listener) = &self.listener {
            self.waiter.add(listener, EpollFlags::EPOLLIN, LISTENING)?;
        }
        for (number, end) in self.ends.iter().enumerate() {
            if let End::Datagrams { socket, .. } = end {
                self.waiter.add(&socket.as_fd(), EpollFlags::EPOLLIN, number as u64)?;
            }
        }
        if self.listener.is_some() && self.setting.congestions().next().is_some() {
            self.waiter.at(Instant::ZERO + GLANCE, Task::Glance);
        }
        self.waiter.at(Instant::ZERO + self.setting.duration, Task::End);
        'run: while !self.shared.is_stopped() {
            let now = self.clock.now();
            while let Some((due, task)) = self.waiter.due(now) {
                match task {
                    Task::Wake(number) => self.wake(number, due),
                    Task::Glance => {
                        for (key, _) in self.waiter.glance()? {
                            self.read(key as usize);
                        }
                        self.waiter.at(now + GLANCE, Task::Glance);
                    }
                    Task::End => break 'run,
                }
            }
            for (key, _) in self.waiter.wait()? {
                match key {
                    LISTENING => self.accept()?,
                    number => self.read(number as usize),
                }
            }
        }
        let transits = self.ends.iter().map(|end| match end {
            End::Datagrams { transit, .. } => Some((**transit).clone()),
            End::None | End::Tcp(_) => None,
        });
        Ok(Received { transits: transits.collect(), completed: self.completed, last: self.last })
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let Some(listener) = &self.listener else { return Ok(()) };
            let (socket, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // It is closed again; the sending host reports it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let port = peer.as_socket().map_or(0, |peer| peer.port());
            let number = usize::from(port.wrapping_sub(FIRST_PORT));
            let Some(flow) = self.setting.flows.get(number).filter(|flow| flow.is_tcp()) else { continue };
            socket.set_nonblocking(true)?;
            if flow.is_passing {
                self.set_mark(number, &socket)?;
                self.waiter.add(&socket, EpollFlags::EPOLLIN, number as u64)?;
            } else {
                self.waiter.add_patient(&socket, EpollFlags::EPOLLIN, number as u64)?;
            }
            self.ends[number] = End::Tcp(socket);
        }
    }

    /// Waits for the rest of a flow that comes and goes, or for much of it.
    fn set_mark(&self, number: usize, socket: &Socket) -> io::Result<()> {
        let received = self.shared.flows[number].received.load(Ordering::Relaxed);
        let missing = self.setting.flows[number].volume.unwrap_or(u64::MAX).saturating_sub(received);
        set_low_water_mark(socket, missing.clamp(1, WAKE_BYTES) as u32)
    }

    fn read(&mut self, number: usize) {
        match &self.ends[number] {
            End::None => {}
            End::Tcp(_) if self.setting.flows[number].is_passing => self.read_passing(number),
            End::Tcp(_) => self.read_tcp(number),
            End::Datagrams { .. } => self.take(number),
        }
    }

    fn read_tcp(&mut self, number: usize) {
        for _ in 0..TURNS {
            let Self { ends, room, waiter, .. } = self;
            let End::Tcp(socket) = &ends[number] else { return };
            match io::Read::read(&mut &*socket, room) {
                Ok(0) => return waiter.forget_patient(socket),
                Ok(length) => self.count(number, length, self.clock.now()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return waiter.forget_patient(socket),
            }
        }
    }

    /// Reads what a flow that comes and goes has, and closes its connection at the end.
    fn read_passing(&mut self, number: usize) {
        for _ in 0..TURNS {
            let Self { ends, room, .. } = self;
            let End::Tcp(socket) = &ends[number] else { return };
            match io::Read::read(&mut &*socket, room) {
                Ok(length) if length > 0 => self.count(number, length, self.clock.now()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The end, or the sending host reports what broke.
                Ok(_) | Err(_) => {
                    ends[number] = End::None;
                    return;
                }
            }
        }
        if let End::Tcp(socket) = &self.ends[number] {
            // With the old mark, it is read later.
            let _ = self.set_mark(number, socket);
        }
    }

    /// Data has arrived: updates the gauges, and records when a volume is complete.
    fn count(&mut self, number: usize, length: usize, now: Instant) {
        let length = length as u64;
        self.last[number] = now;
        let received = self.shared.flows[number].received.fetch_add(length, Ordering::Relaxed) + length;
        if self.setting.flows[number].volume.is_some_and(|volume| received >= volume) {
            self.completed[number].get_or_insert(now);
        }
    }

    /// Receives the datagrams that have arrived and sends feedback on them.
    fn take(&mut self, number: usize) {
        loop {
            let Self { ends, room, clock, .. } = self;
            let End::Datagrams { socket, receiver, feedback: size, transit, .. } = &mut ends[number] else {
                return;
            };
            let Ok(length) = io::Read::read(&mut &*socket, room) else { break };
            let now = clock.now();
            let Some((sequence, envelope)) = letter::read_data(&room[..length]) else { continue };
            transit.record(sequence, envelope.sent, now);
            if let Some(feedback) = receiver.on_data(sequence, envelope, now) {
                reply(socket, room, &feedback, *size);
            }
            self.count(number, length, now);
        }
        self.schedule(number);
    }

    fn wake(&mut self, number: usize, due: Instant) {
        let Self { ends, room, clock, .. } = self;
        let End::Datagrams { socket, receiver, feedback: size, scheduled, .. } = &mut ends[number] else {
            return;
        };
        if *scheduled != due {
            return; // An earlier wake-up took its place.
        }
        *scheduled = Instant::NEVER;
        if receiver.wake() <= due
            && let Some(feedback) = receiver.on_wake(clock.now())
        {
            reply(socket, room, &feedback, *size);
        }
        self.schedule(number);
    }

    fn schedule(&mut self, number: usize) {
        let Self { ends, waiter, .. } = self;
        let End::Datagrams { receiver, scheduled, .. } = &mut ends[number] else { return };
        let at = receiver.wake();
        if at < *scheduled {
            *scheduled = at;
            waiter.at(at, Task::Wake(number));
        }
    }
}

/// Sends feedback. A packet that the kernel does not accept is lost, as on a link.
fn reply(socket: &Socket, room: &mut [u8], feedback: &Feedback, size: u16) {
    letter::write_feedback(room, feedback);
    let _ = socket.send(&room[..usize::from(size)]);
}
