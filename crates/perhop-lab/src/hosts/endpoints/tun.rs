//! perhop's own TCP on real packets.
//!
//! It has an address of its own behind a second interface of the host, whose kernel forwards its packets as
//! it would those of another machine. So the packets pass the kernel's IP, and no TCP of it.

use std::io;
use std::sync::Arc;

use nix::sys::epoll::EpollFlags;
use perhop_core::Instant;
use perhop_live::device::{Device, Tun, TunSpec};
use perhop_live::{HEAD, Lateness, Windows};
use perhop_scenario::format::IpVersion;

use super::{Driver, Endpoints, Own, Task};
use crate::error::LabError;
use crate::hosts::role::{self, Common, Host, Role};
use crate::hosts::{KERNEL_QUEUE, OWN_INTERFACE, OWN_IPV4, OWN_IPV6};
use crate::sandbox;
use crate::setting::{Setting, Side};

/// The key of the device.
const DEVICE: u64 = u64::MAX - 2;
/// How many packets are read before the timers have their turn.
const BURST: usize = 64;

/// The role of a host for its ends of perhop's own TCP.
struct OnTun<'a> {
    endpoints: Endpoints<'a>,
    device: Tun,
    inbox: Box<[u8]>,
    /// How late tasks are done, and for how long the device had packets without a break when one is read.
    lateness: Lateness,
    busy_since: Option<Instant>,
}

/// The host and the interface, while the endpoints act.
struct Acting<'a, 'b> {
    host: &'a mut Host<'b, Task>,
    device: &'a mut Tun,
}

/// Makes the interface of perhop's own TCP in the calling thread's namespace, and lets its kernel forward.
pub(in crate::hosts) fn open(setting: &Setting, side: Side) -> Result<Tun, LabError> {
    let six = setting.ip == IpVersion::V6;
    sandbox::set(if six { "net.ipv6.conf.all.forwarding" } else { "net.ipv4.ip_forward" }, "1")?;
    let side = side as usize;
    let spec = TunSpec {
        name: OWN_INTERFACE.into(),
        mtu: setting.mtu,
        ipv4: (!six).then_some((OWN_IPV4[side][0], 24)),
        ipv6: six.then_some((OWN_IPV6[side][0], 64)),
        queue: KERNEL_QUEUE,
    };
    Tun::open(&spec).map_err(LabError::doing("making the interface of perhop's own TCP"))
}

/// Runs a host's own TCP until the end of the run; the calling thread is in the host's namespace.
pub(in crate::hosts) fn run(common: Common<'_>, device: Tun, windows: Arc<Windows>) -> io::Result<Own> {
    let Common { side, setting, shared, .. } = common;
    let endpoints = Endpoints::new(side, setting, shared, windows);
    let inbox = vec![0; usize::from(u16::MAX)].into_boxed_slice();
    role::run(
        OnTun { endpoints, device, inbox, lateness: Lateness::default(), busy_since: None },
        common,
        None,
    )
}

impl Driver for Acting<'_, '_> {
    fn now(&self) -> Instant {
        self.host.now()
    }
    fn at(&mut self, at: Instant, task: Task) {
        self.host.at(at, task);
    }
    fn send(&mut self, packet: &[u8]) {
        self.device.send(&[0; HEAD], packet);
    }
    fn flush(&mut self) {
        // What the kernel does not take is lost, as a packet on the wire may be.
        self.device.flush();
    }
    fn note_lateness(&mut self, number: usize, due: Instant) {
        self.host.note_lateness(number, due);
    }
}

impl Role for OnTun<'_> {
    type Task = Task;
    type Results = Own;

    fn begin(&mut self, host: &mut Host<'_, Task>) -> io::Result<()> {
        host.waiter.add(&self.device, EpollFlags::EPOLLIN, DEVICE)?;
        self.endpoints.begin(&mut Acting { host, device: &mut self.device });
        Ok(())
    }

    fn on_task(&mut self, host: &mut Host<'_, Task>, task: Task, due: Instant) -> io::Result<()> {
        self.lateness.record(host.now().since(due));
        self.endpoints.on_task(&mut Acting { host, device: &mut self.device }, task, due);
        Ok(())
    }

    fn on_socket(&mut self, host: &mut Host<'_, Task>, _: usize, _: EpollFlags) -> io::Result<()> {
        for _ in 0..BURST {
            let Some(length) = self.device.receive(&mut [0; HEAD], &mut self.inbox)? else {
                self.busy_since = None;
                break;
            };
            let now = host.now();
            self.lateness.record(now.since(*self.busy_since.get_or_insert(now)));
            let mut acting = Acting { host, device: &mut self.device };
            self.endpoints.on_packet(&mut acting, &self.inbox[..length]);
        }
        Ok(())
    }

    fn ask(&mut self, host: &Host<'_, Task>) {
        self.endpoints.ask(host.now());
    }

    fn warmed_up(&mut self) {
        self.endpoints.warmed_up();
        self.lateness.reset();
    }

    fn results(self, host: &Host<'_, Task>) -> Own {
        Own { lateness: self.lateness.quantile(0.99), ..self.endpoints.results(host.late) }
    }
}
