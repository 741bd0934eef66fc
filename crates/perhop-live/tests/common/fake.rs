//! Devices in memory, and the run loop between them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;

use perhop_core::{Duration, Instant};
use perhop_live::device::Device;
use perhop_live::{Clock, Head, Loss, Plane, Report, Runner, Watcher};

use super::script::{Checked, Choices, DEVICES, drain, packet, spec};

/// The run loop between two devices that give it whatever these bytes say, refuse packets, and vanish.
pub fn run(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let plane = Plane::new(spec(&mut choices), 1);
    let devices: [Fake; DEVICES] = std::array::from_fn(|_| Fake::new());
    let clock = Clock::start();
    let mut runner = Runner::new(plane, devices.each_ref(), clock);
    let (stop, mut watcher) = (AtomicBool::new(false), Counting::default());
    while !choices.is_over() {
        let device = &devices[choices.below(DEVICES)];
        match choices.below(16) {
            0..=10 => {
                let mut bytes = Vec::new();
                packet(&mut choices, &mut bytes);
                device.incoming.borrow_mut().push_back(bytes);
                continue;
            }
            11 => device.is_down.set(choices.one_in(2)),
            12 => device.is_gone.set(choices.one_in(4)),
            13 => watcher.due = clock.now(),
            // Beyond now it sleeps, or so it would if its devices did not wake it.
            14 => watcher.until = clock.now() + Duration::from_nanos(u64::from(choices.byte()) << 7),
            _ => {}
        }
        let ran = runner.run(watcher.until, &stop, &mut watcher);
        assert_eq!(ran.is_err(), devices.iter().any(|device| device.is_gone.get()));
        assert!(devices.iter().all(|device| device.waiting.get() == 0), "no packet waits while nobody runs");
        runner.plane().balance().expect("balanced");
    }
    let waiting = |device: &Fake| device.incoming.borrow().len();
    while devices.iter().any(|device| waiting(device) > 0) {
        for device in &devices {
            device.is_gone.set(false);
        }
        runner.run(Instant::ZERO, &stop, &mut watcher).expect("both devices are there");
        runner.plane().balance().expect("balanced");
    }
    let (sent, refused) = devices
        .iter()
        .fold((0, 0), |(sent, refused), device| (sent + device.sent.get(), refused + device.refused.get()));
    assert_eq!(runner.report().unsent, refused);
    assert_eq!((runner.report().lateness.packets(), watcher.sent), (sent + refused, sent + refused));
    let now = clock.now();
    let mut rest = Checked { delivered: watcher.sent, lost: watcher.lost, ..Checked::default() };
    drain(runner.plane_mut(), now, &mut rest);
}

/// Counts, and looks at the times that it is given.
#[derive(Default)]
struct Counting {
    due: Instant,
    until: Instant,
    sent: u64,
    lost: u64,
}

impl Watcher for Counting {
    fn next(&self) -> Instant {
        self.due
    }
    fn watch(&mut self, plane: &mut Plane, report: &mut Report, _now: Instant) {
        plane.balance().expect("balanced");
        assert_eq!(report.lateness.packets(), self.sent);
        self.due = Instant::NEVER;
    }
    fn sent(&mut self, _device: usize, _packet: &[u8], _now: Instant) {
        self.sent += 1;
    }
    fn lost(&mut self, _device: usize, _packet: &[u8], _why: Loss, _now: Instant) {
        self.lost += 1;
    }
}

/// A device in memory: gives what was put into it and counts what it is to send. Whoever waits for it is
/// woken at once.
struct Fake {
    ready: io::PipeReader,
    _held_open: io::PipeWriter,
    incoming: RefCell<VecDeque<Vec<u8>>>,
    /// Whether the device takes no packets.
    is_down: Cell<bool>,
    /// Whether the device gives no packets, and says so.
    is_gone: Cell<bool>,
    /// Packets that it was given to send, and has not sent yet.
    waiting: Cell<u64>,
    sent: Cell<u64>,
    refused: Cell<u64>,
}

impl Fake {
    fn new() -> Self {
        let (ready, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(&[0]).expect("room for a byte");
        Self {
            ready,
            _held_open: writer,
            incoming: RefCell::default(),
            is_down: Cell::new(false),
            is_gone: Cell::new(false),
            waiting: Cell::new(0),
            sent: Cell::new(0),
            refused: Cell::new(0),
        }
    }
}

impl AsFd for Fake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

impl Device for &Fake {
    fn receive(&mut self, _head: &mut Head, room: &mut [u8]) -> io::Result<Option<usize>> {
        if self.is_gone.get() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let packet = self.incoming.borrow_mut().pop_front();
        Ok(packet.map(|packet| {
            let length = packet.len().min(room.len());
            room[..length].copy_from_slice(&packet[..length]);
            length
        }))
    }

    fn send(&mut self, _head: &Head, _packet: &[u8]) {
        self.waiting.set(self.waiting.get() + 1);
    }

    fn flush(&mut self) -> u64 {
        let waiting = self.waiting.take();
        let (sent, refused) = if self.is_down.get() { (0, waiting) } else { (waiting, 0) };
        self.sent.set(self.sent.get() + sent);
        self.refused.set(self.refused.get() + refused);
        refused
    }
}
