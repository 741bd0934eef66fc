//! Network devices that packets are read from and written to.

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

/// A device that receives and sends IP packets one by one, however many a system call transfers.
pub trait Device: AsFd {
    /// Copies the next packet into `room` and returns its length; `None` if none waits, neither in the kernel
    /// nor in a batch that was read before. A packet longer than the room is truncated. The device stores in
    /// `head` what it needs to send the packet on, such as its Ethernet header.
    ///
    /// # Errors
    /// The device is gone.
    fn receive(&mut self, head: &mut Head, room: &mut [u8]) -> io::Result<Option<usize>>;

    /// Sends a packet with the head that it was received with, at the latest when [`flush`](Self::flush) is
    /// called: until then the device may collect packets for one system call.
    fn send(&mut self, head: &Head, packet: &[u8]);

    /// Sends all collected packets. Returns how many packets were not sent since the last call because the
    /// device was full or down.
    fn flush(&mut self) -> u64;

    /// Returns the counters of what the device received and did not give to the data plane.
    fn aside(&mut self) -> Aside {
        Aside::default()
    }
}

/// Counters of frames and packets that a device received and did not give to the data plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// Frames without an IP packet, such as ARP, that were forwarded unchanged.
    pub passed: Amount,
    /// Forwarded frames with VLAN tags, MPLS labels or a PPPoE session behind which no IP packet was found.
    pub unread: u64,
    /// Frames without an IP packet that were lost because the device on the other side was full or down.
    pub unpassed: u64,
    /// Large packets of segmentation offload that were dropped because they could not be split.
    pub merged: u64,
    /// Packets that were dropped because they are longer than the data plane accepts.
    pub too_long: u64,
    /// Packets that the kernel dropped because its buffer was full before they were read.
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

/// Calls a method of whichever device it is.
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
