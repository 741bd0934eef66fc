//! Waiting for sockets and for times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use perhop_core::{Duration, Instant};
use perhop_live::Clock;

/// The key of the timer.
const TIMER: u64 = u64::MAX;
/// The longest sleep, so that a host notices that it is to stop.
const LONGEST: Duration = Duration::from_millis(50);
const EVENTS: usize = 512;

/// How often sockets are polled that nothing waits for.
pub(super) const GLANCE: Duration = Duration::from_millis(1);

/// Waits for sockets, each with a key, and for tasks that are due.
///
/// Being woken for each packet would cost the kernel, and with it the router, more than the packet itself. So
/// bulk transfers, which have no need of haste, are not waited for but polled at intervals
/// ([`glance`](Self::glance)).
pub(super) struct Waiter<T> {
    epoll: Epoll,
    patient: Epoll,
    timer: TimerFd,
    clock: Clock,
    tasks: BinaryHeap<Reverse<(Instant, T)>>,
    events: [EpollEvent; EVENTS],
}

impl<T: Ord + Copy> Waiter<T> {
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        let patient = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self {
            epoll,
            patient,
            timer,
            clock,
            tasks: BinaryHeap::new(),
            events: [EpollEvent::empty(); EVENTS],
        })
    }

    /// Waits for a socket, too.
    pub(super) fn add(&self, socket: &impl AsFd, flags: EpollFlags, key: u64) -> io::Result<()> {
        Ok(self.epoll.add(socket, EpollEvent::new(flags, key))?)
    }

    /// Waits for other events of a socket that is waited for.
    pub(super) fn change(&self, socket: &impl AsFd, flags: EpollFlags, key: u64) -> io::Result<()> {
        Ok(self.epoll.modify(socket, &mut EpollEvent::new(flags, key))?)
    }

    /// Polls a socket at intervals.
    pub(super) fn add_patient(&self, socket: &impl AsFd, flags: EpollFlags, key: u64) -> io::Result<()> {
        Ok(self.patient.add(socket, EpollEvent::new(flags, key))?)
    }

    /// Stops polling it.
    pub(super) fn forget_patient(&self, socket: &impl AsFd) {
        // A socket that is not there need not be forgotten.
        let _ = self.patient.delete(socket);
    }

    /// Events of the sockets that nothing waits for.
    pub(super) fn glance(&mut self) -> io::Result<impl Iterator<Item = (u64, EpollFlags)> + use<T>> {
        let came = self.patient.wait(&mut self.events, EpollTimeout::ZERO)?;
        let events = self.events;
        Ok((0..came).map(move |n| (events[n].data(), events[n].events())))
    }

    /// Plans a task for a time.
    pub(super) fn at(&mut self, at: Instant, task: T) {
        if at != Instant::NEVER {
            self.tasks.push(Reverse((at, task)));
        }
    }

    /// Returns the next task that is due by now, and when it was.
    pub(super) fn due(&mut self, now: Instant) -> Option<(Instant, T)> {
        let &Reverse((at, task)) = self.tasks.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.tasks.pop();
        Some((at, task))
    }

    /// Waits for a socket or a task, and returns what became of the sockets: their words and flags.
    pub(super) fn wait(&mut self) -> io::Result<impl Iterator<Item = (u64, EpollFlags)> + use<T>> {
        let next = self.tasks.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at);
        let span = next.since(self.clock.now()).min(LONGEST).max(Duration::from_nanos(1));
        let span = TimeSpec::from(std::time::Duration::from_nanos(span.as_nanos()));
        self.timer.set(Expiration::OneShot(span), TimerSetTimeFlags::empty())?;
        let came = match self.epoll.wait(&mut self.events, EpollTimeout::NONE) {
            Ok(came) => came,
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(errno.into()),
        };
        let events = self.events;
        Ok((0..came).map(move |n| (events[n].data(), events[n].events())).filter(|&(key, _)| key != TIMER))
    }
}
