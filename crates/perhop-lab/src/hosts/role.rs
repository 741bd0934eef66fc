//! The loop of each of a host's threads: it waits for times and for sockets, and has a role act on them.

use std::io;

use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{setsockopt, sockopt};
use perhop_core::{Dscp, Duration, Ecn, Instant};
use perhop_live::Clock;
use perhop_scenario::format::IpVersion;
use socket2::{Domain, Protocol, Socket, Type};

use super::waiter::{GLANCE, Waiter};
use super::{Shared, address, end_of};
use crate::setting::Side;
use crate::setting::{FIRST_PORT, HostFlow, KernelTcp, Kind, LISTENER, Setting};

/// The key of the listener.
const LISTENING: u64 = u64::MAX - 1;

/// What a host's thread does: the part of a run that it plays for its flows, each of which it knows by its
/// number.
pub(super) trait Role: Sized {
    /// A task of its own that is due at a time.
    type Task: Ord + Copy;
    /// What it has counted in the end.
    type Results;
    /// Whether it asks the kernel about its connections.
    const ASKS: bool = true;

    /// Plans its first tasks, and waits for the sockets that are open already.
    fn begin(&mut self, host: &mut Host<'_, Self::Task>) -> io::Result<()>;
    /// Does a task that was due at a time.
    fn on_task(&mut self, host: &mut Host<'_, Self::Task>, task: Self::Task, due: Instant) -> io::Result<()>;
    /// Reads or writes a flow's socket.
    fn on_socket(
        &mut self,
        host: &mut Host<'_, Self::Task>,
        number: usize,
        flags: EpollFlags,
    ) -> io::Result<()>;
    /// Takes over a connection that has come for a flow.
    fn on_connection(
        &mut self,
        _host: &mut Host<'_, Self::Task>,
        _number: usize,
        _socket: Socket,
    ) -> io::Result<()> {
        Ok(())
    }
    /// Asks the kernel how the connections do.
    fn ask(&mut self, _host: &Host<'_, Self::Task>) {}
    /// Begins to count: the warm-up is over.
    fn warmed_up(&mut self) {}
    /// Returns what it has counted.
    fn results(self, host: &Host<'_, Self::Task>) -> Self::Results;
}

/// What all threads of a host have in common.
#[derive(Clone, Copy)]
pub(super) struct Common<'a> {
    pub(super) side: Side,
    pub(super) setting: &'a Setting,
    pub(super) shared: &'a Shared,
    pub(super) clock: Clock,
    /// How often the kernel is asked about connections.
    pub(super) asks: Duration,
}

/// A host's thread, as far as it does not depend on its role.
pub(super) struct Host<'a, T> {
    pub(super) common: Common<'a>,
    pub(super) waiter: Waiter<Task<T>>,
    /// Where connections come to.
    listener: Option<Socket>,
    /// The number of the flow or user that the host came to latest, compared with when it should have.
    pub(super) late: Option<(usize, Duration)>,
}

/// A task of a host's thread. Of those that are due at the same time, the first comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task<T> {
    /// A task of its role.
    Role(T),
    /// Look at the sockets that nothing waits for.
    Glance,
    /// Ask the kernel about connections.
    Ask,
    /// The warm-up is over.
    WarmedUp,
    /// The run is over.
    End,
}

/// Runs a role until the end of the run; the calling thread is in the host's namespace.
pub(super) fn run<R: Role>(
    mut role: R,
    common: Common<'_>,
    listener: Option<Socket>,
) -> io::Result<R::Results> {
    let mut host = Host { common, waiter: Waiter::new(common.clock)?, listener, late: None };
    let host = &mut host;
    if let Some(listener) = &host.listener {
        host.waiter.add(listener, EpollFlags::EPOLLIN, LISTENING)?;
    }
    role.begin(host)?;
    let Common { setting, shared, clock, asks, .. } = common;
    if R::ASKS {
        host.waiter.at(Instant::ZERO + asks, Task::Ask);
        host.waiter.at(Instant::ZERO + setting.warmup, Task::WarmedUp);
    }
    host.waiter.at(Instant::ZERO + setting.duration, Task::End);
    'run: while !shared.is_stopped() {
        let now = clock.now();
        while let Some((due, task)) = host.waiter.due(now) {
            match task {
                Task::Role(task) => role.on_task(host, task, due)?,
                Task::Glance => {
                    for (key, flags) in host.waiter.glance()? {
                        role.on_socket(host, key as usize, flags)?;
                    }
                    host.waiter.at(now + GLANCE, Task::Glance);
                }
                Task::Ask => {
                    role.ask(host);
                    host.waiter.at(due.max(now) + asks, Task::Ask);
                }
                Task::WarmedUp => {
                    role.ask(host);
                    role.warmed_up();
                }
                Task::End => break 'run,
            }
        }
        for (key, flags) in host.waiter.wait()? {
            if key == LISTENING {
                while let Some((number, socket)) = host.accept()? {
                    role.on_connection(host, number, socket)?;
                }
            } else {
                role.on_socket(host, key as usize, flags)?;
            }
        }
    }
    role.ask(host);
    Ok(role.results(host))
}

impl<T: Ord + Copy> Host<'_, T> {
    /// Plans a task of the role.
    pub(super) fn at(&mut self, at: Instant, task: T) {
        self.waiter.at(at, Task::Role(task));
    }

    /// Looks at intervals at the sockets that nothing waits for.
    pub(super) fn glance(&mut self) {
        self.waiter.at(Instant::ZERO + GLANCE, Task::Glance);
    }

    /// Returns the time of the run.
    pub(super) fn now(&self) -> Instant {
        self.common.clock.now()
    }

    /// Records how late the host comes to a flow or a user.
    pub(super) fn note_lateness(&mut self, number: usize, due: Instant) {
        let late = self.now().since(due);
        if self.late.is_none_or(|(_, before)| late > before) {
            self.late = Some((number, late));
        }
    }

    /// Returns the next connection that waits at the listener, and the flow to which it belongs.
    fn accept(&self) -> io::Result<Option<(usize, Socket)>> {
        loop {
            let Some(listener) = &self.listener else { return Ok(None) };
            let (socket, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // It is closed again; the other host reports it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let port = peer.as_socket().map_or(0, |peer| peer.port());
            let number = usize::from(port.wrapping_sub(FIRST_PORT));
            if self.common.setting.flows.get(number).is_some_and(HostFlow::is_tcp) {
                socket.set_nonblocking(true)?;
                return Ok(Some((number, socket)));
            }
        }
    }

    /// Begins to open a flow's connection to the other host. Returns its socket, and how it began.
    pub(super) fn connect(&self, flow: &HostFlow) -> io::Result<(Socket, io::Result<()>)> {
        let Common { side, setting, .. } = self.common;
        let there = end_of(setting, flow, side.other(), LISTENER);
        let socket =
            Socket::new(Domain::for_address(there), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if let Kind::Tcp { kernel: Some(KernelTcp { congestion, segment }), .. } = &flow.kind {
            socket.set_tcp_congestion(congestion.as_bytes())?;
            socket.set_tcp_mss(u32::from(*segment))?;
        }
        socket.bind(&address(side, setting.ip, flow.port).into())?;
        let begun = match socket.connect(&there.into()) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            begun => begun,
        };
        Ok((socket, begun))
    }
}

/// Opens the socket of a flow of datagrams at a host, connected to that of the other host.
pub(super) fn datagram_socket(setting: &Setting, side: Side, flow: &HostFlow) -> io::Result<Socket> {
    let [here, there] = [side, side.other()].map(|side| address(side, setting.ip, flow.port));
    let socket = Socket::new(Domain::for_address(here), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    socket.bind(&here.into())?;
    socket.connect(&there.into())?;
    if let Kind::Datagrams { codepoints: (dscp, ecn), .. } = flow.kind {
        set_codepoints(&socket, setting.ip, dscp, ecn)?;
    }
    Ok(socket)
}

/// Sets the codepoint and the ECN field of the datagrams that a socket sends from now on.
pub(super) fn set_codepoints(socket: &Socket, ip: IpVersion, dscp: Dscp, ecn: Ecn) -> io::Result<()> {
    let octet = i32::from(dscp.get() << 2 | ecn as u8);
    Ok(match ip {
        IpVersion::V4 => setsockopt(socket, sockopt::Ipv4Tos, &octet),
        IpVersion::V6 => setsockopt(socket, sockopt::Ipv6TClass, &octet),
    }?)
}
