//! The receivers of a host: they count arrivals, and send feedback where the kernel does not.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use nix::sys::epoll::EpollFlags;
use perhop_core::Instant;
use perhop_sim::transport::Receiver;
use perhop_sim::transport::metadata::Feedback;
use perhop_sim::transport::transit::TransitMeter;
use socket2::Socket;

use super::listen;
use super::role::{self, Common, Host, Role, datagram_socket};
use crate::letter;
use crate::setting::Side;
use crate::setting::{HostFlow, Kind, Setting};
use crate::system::set_low_water_mark;

/// The most bytes that are read from a socket at once.
const CHUNK: usize = 1 << 18;
/// How often a socket is read before others have their turn.
const TURNS: usize = 4;
/// A receiver of finite data wakes up once this many bytes are there, or all that are missing: to wake up for
/// each packet would take time from the router. It is small beside the kernel's first receive window.
pub(super) const WAKE_BYTES: u64 = 1 << 15;

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

enum Endpoint {
    None,
    Tcp(Socket),
    Datagrams {
        socket: Socket,
        receiver: Receiver,
        /// The size of feedback.
        feedback: u16,
        transit: Box<TransitMeter>,
        /// The wake-up that is among the tasks.
        scheduled: Instant,
    },
}

/// The role of a host for the flows that end there. Its tasks are the timers of receivers.
struct Receivers {
    ends: Vec<Endpoint>,
    completed: Vec<Option<Instant>>,
    last: Vec<Instant>,
    room: Box<[u8]>,
}

/// The sockets of a host's receivers.
pub(super) struct Open {
    listener: Option<Socket>,
    ends: Vec<Endpoint>,
}

/// Runs a host's receivers until the end of the run; the calling thread is in the host's namespace.
pub(super) fn receive(common: Common<'_>, open: Open) -> io::Result<Received> {
    let Open { listener, ends } = open;
    let flows = ends.len();
    let (completed, last) = (vec![None; flows], vec![Instant::ZERO; flows]);
    let receivers = Receivers { ends, completed, last, room: vec![0; CHUNK].into_boxed_slice() };
    role::run(receivers, common, listener)
}

/// Opens a listener for all TCP, where it comes to, and a socket for each flow of datagrams that comes to
/// this host.
pub(super) fn open(setting: &Setting, side: Side) -> io::Result<Open> {
    let listener = (side == Side::Receiving).then(|| listen(setting, side)).transpose()?;
    let window = (Instant::ZERO + setting.warmup, Instant::ZERO + setting.duration);
    let end = |flow: &HostFlow| match &flow.kind {
        Kind::Datagrams { receiver, feedback, play_out, .. } if flow.from != side && flow.is_unattended() => {
            Ok(Endpoint::Datagrams {
                socket: datagram_socket(setting, side, flow)?,
                receiver: receiver.clone(),
                feedback: *feedback,
                transit: Box::new(TransitMeter::new(window).with_play_out(*play_out)),
                scheduled: Instant::NEVER,
            })
        }
        Kind::Datagrams { .. } | Kind::Tcp { .. } => Ok(Endpoint::None),
    };
    let ends = setting.flows.iter().map(end).collect::<io::Result<_>>()?;
    Ok(Open { listener, ends })
}

impl Role for Receivers {
    type Task = usize;
    type Results = Received;
    const ASKS: bool = false;

    fn begin(&mut self, host: &mut Host<'_, usize>) -> io::Result<()> {
        for (number, end) in self.ends.iter().enumerate() {
            if let Endpoint::Datagrams { socket, .. } = end {
                host.waiter.add(&socket.as_fd(), EpollFlags::EPOLLIN, number as u64)?;
            }
        }
        if host.common.side == Side::Receiving && host.common.setting.flows.iter().any(HostFlow::is_tcp) {
            host.glance();
        }
        Ok(())
    }

    fn on_task(&mut self, host: &mut Host<'_, usize>, number: usize, due: Instant) -> io::Result<()> {
        let Self { ends, room, .. } = self;
        let Endpoint::Datagrams { socket, receiver, feedback: size, scheduled, .. } = &mut ends[number]
        else {
            return Ok(());
        };
        if *scheduled != due {
            return Ok(()); // An earlier wake-up took its place.
        }
        *scheduled = Instant::NEVER;
        if receiver.wake() <= due
            && let Some(feedback) = receiver.late_feedback(host.now())
        {
            reply(socket, room, &feedback, *size);
        }
        self.schedule(host, number);
        Ok(())
    }

    fn on_socket(&mut self, host: &mut Host<'_, usize>, number: usize, _: EpollFlags) -> io::Result<()> {
        match &self.ends[number] {
            Endpoint::None => {}
            Endpoint::Tcp(_) => self.read_tcp(host, number),
            Endpoint::Datagrams { .. } => self.take(host, number),
        }
        Ok(())
    }

    fn on_connection(&mut self, host: &mut Host<'_, usize>, number: usize, socket: Socket) -> io::Result<()> {
        if host.common.setting.flows[number].is_passing {
            set_mark(host, number, &socket)?;
            host.waiter.add(&socket, EpollFlags::EPOLLIN, number as u64)?;
        } else {
            host.waiter.add_patient(&socket, EpollFlags::EPOLLIN, number as u64)?;
        }
        self.ends[number] = Endpoint::Tcp(socket);
        Ok(())
    }

    fn results(self, _: &Host<'_, usize>) -> Received {
        let transits = self.ends.into_iter().map(|end| match end {
            Endpoint::Datagrams { transit, .. } => Some(*transit),
            Endpoint::None | Endpoint::Tcp(_) => None,
        });
        Received { transits: transits.collect(), completed: self.completed, last: self.last }
    }
}

impl Receivers {
    /// Reads what has come over a connection; closes that of a flow that comes and goes at its end.
    fn read_tcp(&mut self, host: &Host<'_, usize>, number: usize) {
        let is_passing = host.common.setting.flows[number].is_passing;
        for _ in 0..TURNS {
            let Self { ends, room, .. } = self;
            let Endpoint::Tcp(socket) = &ends[number] else { return };
            match io::Read::read(&mut &*socket, room) {
                Ok(length) if length > 0 => self.count(host, number, length, host.now()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The end, or the sending host reports what broke.
                Ok(_) | Err(_) if is_passing => {
                    ends[number] = Endpoint::None;
                    return;
                }
                Ok(_) | Err(_) => return host.waiter.forget_patient(socket),
            }
        }
        if let (true, Endpoint::Tcp(socket)) = (is_passing, &self.ends[number]) {
            // With the old mark, it is read later.
            let _ = set_mark(host, number, socket);
        }
    }

    /// Counts data that has arrived: updates the gauges, and records when a volume is complete.
    fn count(&mut self, host: &Host<'_, usize>, number: usize, length: usize, now: Instant) {
        let Common { setting, shared, .. } = host.common;
        let length = length as u64;
        self.last[number] = now;
        let received = shared.flows[number].received.fetch_add(length, Ordering::Relaxed) + length;
        if setting.flows[number].volume.is_some_and(|volume| received >= volume) {
            self.completed[number].get_or_insert(now);
        }
    }

    /// Receives the datagrams that have arrived and sends feedback on them.
    fn take(&mut self, host: &mut Host<'_, usize>, number: usize) {
        loop {
            let Self { ends, room, .. } = self;
            let Endpoint::Datagrams { socket, receiver, feedback: size, transit, .. } = &mut ends[number]
            else {
                return;
            };
            let Ok(length) = io::Read::read(&mut &*socket, room) else { break };
            let now = host.now();
            let Some((sequence, envelope)) = letter::read_data(&room[..length]) else { continue };
            transit.record(sequence, envelope.sent, now);
            if let Some(feedback) = receiver.on_datagram(sequence, envelope, now) {
                reply(socket, room, &feedback, *size);
            }
            let flow = &host.common.setting.flows[number];
            host.common.shared.flows[number].count_datagram(length as u64 + u64::from(flow.headers()));
            self.count(host, number, length, now);
        }
        self.schedule(host, number);
    }

    fn schedule(&mut self, host: &mut Host<'_, usize>, number: usize) {
        let Endpoint::Datagrams { receiver, scheduled, .. } = &mut self.ends[number] else { return };
        let at = receiver.wake();
        if at < *scheduled {
            *scheduled = at;
            host.at(at, number);
        }
    }
}

/// Waits for the rest of a flow that comes and goes, or for much of it.
fn set_mark(host: &Host<'_, usize>, number: usize, socket: &Socket) -> io::Result<()> {
    let Common { setting, shared, .. } = host.common;
    let received = shared.flows[number].received.load(Ordering::Relaxed);
    let missing = setting.flows[number].volume.unwrap_or(u64::MAX).saturating_sub(received);
    set_low_water_mark(socket, missing.clamp(1, WAKE_BYTES) as u32)
}

/// Sends feedback. A packet that the kernel does not accept is lost, as on a link.
fn reply(socket: &Socket, room: &mut [u8], feedback: &Feedback, size: u16) {
    letter::write_feedback(room, feedback);
    let _ = socket.send(&room[..usize::from(size)]);
}
