//! Where packets come from and go to.

mod netlink;
mod offload;
mod packet;
mod socket;
mod tun;
pub mod veth;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

pub use offload::OffloadTun;
pub use packet::Ethernet;
pub use tun::{Tun, TunSpec};

use crate::buffers::Head;
use crate::counts::Amount;

/// A device that gives and takes whole IP packets, one after the other, whatever a system call stands for.
pub trait Device: AsFd {
    /// Returns the length of the next packet, which it copies into `room`; `None` if none waits, neither in
    /// the kernel nor in a batch that was read before. One that is longer than the room is cut. `head` keeps
    /// what the device wants to have back with the packet.
    ///
    /// # Errors
    /// The device is gone.
    fn receive(&mut self, head: &mut Head, room: &mut [u8]) -> io::Result<Option<usize>>;

    /// Takes a packet to send, with what was kept with it. It may wait for others until
    /// [`flush`](Self::flush).
    fn send(&mut self, head: &Head, packet: &[u8]);

    /// Sends all that waits. Returns how many packets were not sent since the last call, the device having no
    /// room for them or no use.
    fn flush(&mut self) -> u64;

    /// Returns what came to it and never to the data plane.
    fn aside(&mut self) -> Aside {
        Aside::default()
    }
}

/// What came to a device and never to the data plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// Frames that are no IP packets, such as ARP's, passed on as they are.
    pub passed: Amount,
    /// Frames passed on that have labels, a session or several tags, behind which no IP packet is found.
    pub unread: u64,
    /// Frames that could not be passed on, the device on the other side having no room for them or no use.
    pub unpassed: u64,
    /// Packets made of many by segmentation offload that could not be split: no queue can judge them.
    pub merged: u64,
    /// Packets longer than the data plane takes.
    pub too_long: u64,
    /// Packets that the kernel dropped, there being no room for them before they were read.
    pub overrun: u64,
}

/// Any device.
pub enum AnyDevice {
    /// A TUN device.
    Tun(Tun),
    /// A TUN device with segmentation offload.
    OffloadTun(OffloadTun),
    /// One side of an Ethernet bridge.
    Ethernet(Ethernet),
}

/// Calls what the device of that kind has.
macro_rules! each {
    ($device:expr, $one:ident => $call:expr) => {
        match $device {
            Self::Tun($one) => $call,
            Self::OffloadTun($one) => $call,
            Self::Ethernet($one) => $call,
        }
    };
}

impl AsFd for AnyDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, device => device.as_fd())
    }
}

impl Device for AnyDevice {
    #[inline]
    fn receive(&mut self, head: &mut Head, room: &mut [u8]) -> io::Result<Option<usize>> {
        each!(self, device => device.receive(head, room))
    }
    #[inline]
    fn send(&mut self, head: &Head, packet: &[u8]) {
        each!(self, device => device.send(head, packet));
    }
    fn flush(&mut self) -> u64 {
        each!(self, device => device.flush())
    }
    fn aside(&mut self) -> Aside {
        each!(self, device => device.aside())
    }
}
