//! Where packets come from and go to.

mod netlink;
mod packet;
mod socket;
mod tun;
pub mod veth;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

pub use packet::Ethernet;
pub use tun::{Tun, TunSpec};

use crate::buffers::Head;
use crate::counts::Amount;

/// A device that gives and takes whole IP packets.
pub trait Device: AsFd {
    /// Reads the next packet into `room` and returns its length; `None` if none waits. One that is longer
    /// than the room is cut. `head` keeps what the device wants to have back with the packet.
    ///
    /// # Errors
    /// The device is gone.
    fn receive(&self, head: &mut Head, room: &mut [u8]) -> io::Result<Option<usize>>;

    /// Sends a packet, with what was kept with it.
    ///
    /// # Errors
    /// It was not sent, the device having no room for it or no use.
    fn send(&self, head: &Head, packet: &[u8]) -> io::Result<()>;

    /// Returns what came to it and never to the data plane.
    fn aside(&self) -> Aside {
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
    /// Packets that the sender's, or this host's, segmentation offload made of many: no queue can judge them.
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
    /// One side of an Ethernet bridge.
    Ethernet(Ethernet),
}

impl AsFd for AnyDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(tun) => tun.as_fd(),
            Self::Ethernet(ethernet) => ethernet.as_fd(),
        }
    }
}

impl Device for AnyDevice {
    #[inline]
    fn receive(&self, head: &mut Head, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Tun(tun) => tun.receive(head, room),
            Self::Ethernet(ethernet) => ethernet.receive(head, room),
        }
    }
    #[inline]
    fn send(&self, head: &Head, packet: &[u8]) -> io::Result<()> {
        match self {
            Self::Tun(tun) => tun.send(head, packet),
            Self::Ethernet(ethernet) => ethernet.send(head, packet),
        }
    }
    fn aside(&self) -> Aside {
        match self {
            Self::Tun(tun) => tun.aside(),
            Self::Ethernet(ethernet) => ethernet.aside(),
        }
    }
}
