//! Where packets come from and go to.

mod tun;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

pub use tun::{Tun, TunSpec};

/// A device that gives and takes whole IP packets.
pub trait Device: AsFd {
    /// Reads the next packet into `room` and returns its length; `None` if none waits. One that is longer than the room is
    /// cut.
    ///
    /// # Errors
    /// The device is gone.
    fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>>;

    /// Sends a packet.
    ///
    /// # Errors
    /// It was not sent, the device having no room for it or no use.
    fn send(&self, packet: &[u8]) -> io::Result<()>;
}

/// Any device.
pub enum AnyDevice {
    /// A TUN device.
    Tun(Tun),
}

impl AsFd for AnyDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(tun) => tun.as_fd(),
        }
    }
}

impl Device for AnyDevice {
    #[inline]
    fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Tun(tun) => tun.receive(room),
        }
    }
    #[inline]
    fn send(&self, packet: &[u8]) -> io::Result<()> {
        match self {
            Self::Tun(tun) => tun.send(packet),
        }
    }
}
