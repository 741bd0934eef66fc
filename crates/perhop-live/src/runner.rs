//! The run loop: reads packets from devices as they come, has the plane handle them, sends what is due, and
//! sleeps until there is something to do.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use perhop_core::{Duration, Instant};

use crate::buffers::{HEAD, Head};
use crate::clock::Clock;
use crate::counts::Loss;
use crate::device::{Aside, Device};
use crate::lateness::Lateness;
use crate::plane::{Lost, Plane, Sink};

/// Packets read from one device before the others have their turn, and the most that leave together.
const BURST: usize = 64;

/// Under load the loop wakes no more often than this and handles all packets and events since then together,
/// because a wake-up costs more than a packet. It delays a packet by no more than this.
const GRAIN: Duration = Duration::from_nanos(50_000);
/// The loop is under load after this many wake-ups in a row with less than twice that time between them.
const HASTE: u32 = 8;

/// Monitors a running plane at times of its choice: for probe samples, statistics or a new configuration.
pub trait Watcher {
    /// Returns when it is to be called next; [`Instant::NEVER`] if not at all.
    fn next(&self) -> Instant;
    /// Acts at the time of [`next`](Self::next).
    fn watch(&mut self, plane: &mut Plane, report: &mut Report, now: Instant);
    /// Learns that a packet leaves, in the batch of this time.
    #[inline]
    fn sent(&mut self, _device: usize, _packet: &[u8], _now: Instant) {}
    /// Learns that a packet is lost that came from this device.
    #[inline]
    fn lost(&mut self, _device: usize, _packet: &[u8], _why: Loss, _now: Instant) {}
}

/// No monitoring.
impl Watcher for () {
    fn next(&self) -> Instant {
        Instant::NEVER
    }
    fn watch(&mut self, _: &mut Plane, _: &mut Report, _: Instant) {}
}

/// Statistics of the loop itself.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How late packets left.
    pub lateness: Lateness,
    /// Packets that a device did not accept.
    pub unsent: u64,
    /// Times that it slept.
    pub slept: u64,
    /// For each device, packets that arrived there and did not reach the plane.
    pub aside: Vec<Aside>,
}

/// A plane between devices.
pub struct Runner<D, const N: usize> {
    plane: Plane,
    devices: [D; N],
    clock: Clock,
    report: Report,
    /// A packet that arrives while no buffer is free is read into this and lost.
    spare: Box<[u8]>,
    /// When the packets should have left that devices were given and have not sent yet.
    due: Vec<Instant>,
}

struct Output<'a, D, W> {
    devices: &'a mut [D],
    due: &'a mut Vec<Instant>,
    clock: Clock,
    now: Instant,
    report: &'a mut Report,
    watcher: &'a mut W,
}

impl<D: Device, W> Output<'_, D, W> {
    /// Has the devices send what they were given.
    fn flush(&mut self) {
        if self.due.is_empty() {
            return;
        }
        // A device that is not up takes nothing; that is the network's matter, and no reason to stop.
        self.report.unsent += self.devices.iter_mut().map(Device::flush).sum::<u64>();
        let now = self.clock.now();
        self.due.drain(..).for_each(|due| self.report.lateness.record(now.since(due)));
    }
}

impl<D: Device, W: Watcher> Sink for Output<'_, D, W> {
    #[inline]
    fn deliver(&mut self, device: usize, head: &Head, packet: &[u8], due: Instant) {
        self.devices[device].send(head, packet);
        self.watcher.sent(device, packet, self.now);
        self.due.push(due);
        if self.due.len() == BURST {
            self.flush();
        }
    }

    #[inline]
    fn lose(&mut self, lost: &Lost<'_>, now: Instant) {
        self.watcher.lost(lost.device, lost.packet, lost.why, now);
    }
}

impl<D: Device, const N: usize> Runner<D, N> {
    /// Makes a plane between these devices, as many as it has. Its time zero is that of the clock.
    pub fn new(plane: Plane, devices: [D; N], clock: Clock) -> Self {
        let spare = vec![0; plane.mtu()].into_boxed_slice();
        let report = Report { aside: vec![Aside::default(); N], ..Report::default() };
        Self { plane, devices, clock, report, spare, due: Vec::with_capacity(BURST) }
    }

    /// Forwards packets until that time, or until `stop` is set.
    ///
    /// # Errors
    /// A device has disappeared.
    pub fn run(&mut self, until: Instant, stop: &AtomicBool, watcher: &mut impl Watcher) -> io::Result<()> {
        let mut woken = self.clock.now();
        let mut last = woken;
        let mut in_haste = 0_u32;
        let mut ready = [true; N];
        loop {
            let mut more = false;
            for (device, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
                more |= self.read(device, watcher)?;
            }
            let now = self.clock.now();
            self.report.lateness.pause(now.since(last));
            last = now;
            self.advance(now, watcher);
            let is_due = now >= watcher.next();
            if is_due {
                self.look_aside();
                watcher.watch(&mut self.plane, &mut self.report, now);
            }
            if now >= until || stop.load(Ordering::Relaxed) {
                self.look_aside();
                return Ok(());
            }
            ready = [true; N];
            if !more {
                let next = self.plane.next().min(watcher.next()).min(until);
                in_haste = if now.since(woken) < GRAIN + GRAIN { in_haste.saturating_add(1) } else { 0 };
                let rested = woken + GRAIN;
                woken = now;
                if in_haste > HASTE && now < rested {
                    self.report.slept += 1;
                    wait(&mut [], self.clock, rested)?;
                } else {
                    let some = self.sleep(next)?;
                    // A device that is gone may only say so when it is read.
                    ready = if is_due { [true; N] } else { some };
                }
                last = self.clock.now();
            }
        }
    }

    /// Reads a burst of packets from a device; says whether there may be more.
    fn read(&mut self, device: usize, watcher: &mut impl Watcher) -> io::Result<bool> {
        let Self { plane, devices, clock, report, spare, due } = self;
        let mut output = Output { devices, due, clock: *clock, now: Instant::ZERO, report, watcher };
        let mut read = || {
            let Some((slot, head, room)) = plane.room() else {
                let length = output.devices[device].receive(&mut [0; HEAD], spare)?;
                let Some(length) = length else { return Ok(false) };
                plane.overrun(device, &spare[..length], &mut output);
                return Ok(true);
            };
            match output.devices[device].receive(head, room) {
                Ok(Some(length)) => {
                    output.now = output.clock.now();
                    plane.arrive(device, slot, length, output.now, &mut output);
                    Ok(true)
                }
                nothing => {
                    plane.release(slot);
                    nothing.map(|_| false)
                }
            }
        };
        let mut left = BURST;
        let more = loop {
            match read() {
                Ok(true) if left > 1 => left -= 1,
                result => break result,
            }
        };
        output.flush();
        more
    }

    fn advance(&mut self, now: Instant, watcher: &mut impl Watcher) {
        let Self { plane, devices, clock, report, due, .. } = self;
        let mut output = Output { devices, due, clock: *clock, now, report, watcher };
        plane.advance(now, &mut output);
        output.flush();
    }

    fn look_aside(&mut self) {
        for (aside, device) in self.report.aside.iter_mut().zip(&mut self.devices) {
            *aside = device.aside();
        }
    }

    /// Sleeps until that time, or until a packet comes; says which devices have some.
    fn sleep(&mut self, until: Instant) -> io::Result<[bool; N]> {
        let devices = self.devices.each_ref();
        let mut fds = devices.map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN));
        self.report.slept += 1;
        wait(&mut fds, self.clock, until)?;
        Ok(fds.map(|fd| fd.any().unwrap_or(true)))
    }

    /// Returns the plane.
    pub fn plane(&self) -> &Plane {
        &self.plane
    }

    /// Returns the plane, to be changed while the loop does not run.
    pub fn plane_mut(&mut self) -> &mut Plane {
        &mut self.plane
    }

    /// Returns the loop's report.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Ends it.
    pub fn into_parts(self) -> (Plane, Report, [D; N]) {
        (self.plane, self.report, self.devices)
    }
}

/// Waits until that time, or until one of these is ready; not at all if the time has come.
fn wait(fds: &mut [PollFd<'_>], clock: Clock, until: Instant) -> io::Result<()> {
    let span = until.since(clock.now());
    let timeout =
        (until != Instant::NEVER).then(|| TimeSpec::from(std::time::Duration::from_nanos(span.as_nanos())));
    match ppoll(fds, timeout, None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
