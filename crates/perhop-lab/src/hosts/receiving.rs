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
use super::{Begin, Joint, KernelDrops, Progress, Shared, Side, address, kernel_drops, letter, move_in};
use crate::error::LabError;
use crate::setting::{HostFlow, Kind, LISTENER, Setting};

/// Read from a socket at once; and how often before others have their turn.
const CHUNK: usize = 1 << 18;
const TURNS: usize = 4;
/// The key of the listener.
const LISTENING: u64 = u64::MAX - 1;

/// The results of the receiving host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// For each flow of datagrams, how long its packets took.
    pub(crate) transits: Vec<Option<TransitMeter>>,
    /// For each flow, when all of its volume had arrived, if it has one and that was.
    pub(crate) completed: Vec<Option<Instant>>,
    pub(crate) drops: KernelDrops,
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
        transit: TransitMeter,
        scheduled: Instant,
    },
}

struct Host<'a> {
    setting: &'a Setting,
    shared: &'a Shared,
    clock: Clock,
    waiter: Waiter<Task>,
    listener: Socket,
    ends: Vec<End>,
    completed: Vec<Option<Instant>>,
    room: Box<[u8]>,
}

/// Runs the receiving host until the end of the run.
pub(crate) fn receive(
    setting: &Setting,
    shared: &Shared,
    (joint, begin): (Joint, Begin),
) -> Result<Received, LabError> {
    if !move_in(setting, Side::Receiving, joint, &begin)? {
        return Ok(Received::default());
    }
    let Begin { progress, go, .. } = begin;
    let (listener, ends) = open(setting).map_err(LabError::doing("opening the receivers' sockets"))?;
    let _ = progress.send(Progress::Ready);
    let Ok(clock) = go.recv() else { return Ok(Received::default()) };
    let waiter = Waiter::new(clock).map_err(LabError::doing("waiting for sockets"))?;
    let room = vec![0; CHUNK].into_boxed_slice();
    let completed = vec![None; setting.flows.len()];
    let host = Host { setting, shared, clock, waiter, listener, ends, completed, room };
    host.run().map_err(LabError::doing("receiving"))
}

/// A listener for all TCP, and a socket for each flow of datagrams.
fn open(setting: &Setting) -> io::Result<(Socket, Vec<End>)> {
    let (here, there) =
        (|port| address(Side::Receiving, setting.ip, port), |port| address(Side::Sending, setting.ip, port));
    let domain = Domain::for_address(here(0));
    let listener = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    listener.set_reuse_address(true)?;
    listener.bind(&here(LISTENER).into())?;
    listener.listen(4096)?;
    let window = (Instant::ZERO + setting.warmup, Instant::ZERO + setting.duration);
    let end = |flow: &HostFlow| match &flow.kind {
        Kind::Tcp { .. } => Ok(End::None),
        Kind::Datagrams { receiver, feedback, play_out, .. } => {
            let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
            socket.bind(&here(flow.port).into())?;
            socket.connect(&there(flow.port).into())?;
            Ok(End::Datagrams {
                socket,
                receiver: receiver.clone(),
                feedback: *feedback,
                transit: TransitMeter::new(window).with_play_out(*play_out),
                scheduled: Instant::NEVER,
            })
        }
    };
    let ends = setting.flows.iter().map(end).collect::<io::Result<_>>()?;
    Ok((listener, ends))
}

impl Host<'_> {
    fn run(mut self) -> io::Result<Received> {
        self.waiter.add(&self.listener, EpollFlags::EPOLLIN, LISTENING)?;
        for (number, end) in self.ends.iter().enumerate() {
            if let End::Datagrams { socket, .. } = end {
                self.waiter.add(&socket.as_fd(), EpollFlags::EPOLLIN, number as u64)?;
            }
        }
        if self.setting.congestions().next().is_some() {
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
            End::Datagrams { transit, .. } => Some(transit.clone()),
            End::None | End::Tcp(_) => None,
        });
        Ok(Received { transits: transits.collect(), completed: self.completed, drops: kernel_drops() })
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let (socket, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // It is closed again; the sending host reports it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let port = peer.as_socket().map_or(0, |peer| peer.port());
            let Some(flow) = self.setting.flows.iter().position(|flow| flow.port == port) else { continue };
            socket.set_nonblocking(true)?;
            self.waiter.add_patient(&socket, EpollFlags::EPOLLIN, flow as u64)?;
            self.ends[flow] = End::Tcp(socket);
        }
    }

    fn read(&mut self, number: usize) {
        match &self.ends[number] {
            End::None => {}
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

    /// Data has arrived: updates the gauges, and records when a volume is complete.
    fn count(&mut self, number: usize, length: usize, now: Instant) {
        let length = length as u64;
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
            transit.record(envelope.sent, now);
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
