//! TUN devices: the kernel's side is a network interface, ours is a file from which IP packets are read and
//! to which they are written.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use libc::IFLA_TXQLEN;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::Device;
use super::netlink::{number, set_link};
use crate::buffers::Head;

/// The settings of an interface that joins a host to a router: a TUN device, or one end of a veth pair.
#[derive(Clone, Debug)]
pub struct TunSpec {
    /// The interface's name.
    pub name: String,
    /// The longest packet.
    pub mtu: u16,
    /// The interface's address and the length of its network's prefix.
    pub ipv4: Option<(Ipv4Addr, u8)>,
    /// The interface's IPv6 address and the length of its network's prefix.
    pub ipv6: Option<(Ipv6Addr, u8)>,
    /// The length of the kernel's queue of packets to be read, in packets.
    pub queue: u32,
}

/// A TUN device in the network namespace of the thread that made it, read and written packet by packet. Any
/// thread may use it. The kernel removes it with the last process that has it open.
pub struct Tun {
    device: SyncDevice,
    unsent: u64,
}

impl Tun {
    /// Makes the interface and brings it up. Offloads are off: queues must see packets as they are on the
    /// wire.
    ///
    /// # Errors
    /// The kernel's, such as no access to `/dev/net/tun`.
    pub fn open(spec: &TunSpec) -> io::Result<Self> {
        Ok(Self { device: open(spec, false)?, unsent: 0 })
    }
}

/// Makes an interface and brings it up, with offloads or without.
pub(super) fn open(spec: &TunSpec, offload: bool) -> io::Result<SyncDevice> {
    let mut builder = DeviceBuilder::new().name(&spec.name).mtu(spec.mtu).offload(offload);
    if let Some((address, prefix)) = spec.ipv4 {
        builder = builder.ipv4(address, prefix, None);
    }
    if let Some((address, prefix)) = spec.ipv6 {
        builder = builder.ipv6(address, prefix);
    }
    let device = builder.build_sync()?;
    device.set_nonblocking(true)?;
    // The older way, an ioctl, is refused within user namespaces.
    set_link(device.if_index()?, 0, &[number(IFLA_TXQLEN, spec.queue)])?;
    Ok(device)
}

/// Reads the next packet; `None` if none waits.
#[inline]
pub(super) fn read(device: &SyncDevice, room: &mut [u8]) -> io::Result<Option<usize>> {
    match device.recv(room) {
        Ok(length) => Ok(Some(length)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl Device for Tun {
    #[inline]
    fn receive(&mut self, _: &mut Head, room: &mut [u8]) -> io::Result<Option<usize>> {
        read(&self.device, room)
    }

    #[inline]
    fn send(&mut self, _: &Head, packet: &[u8]) {
        self.unsent += u64::from(self.device.send(packet).is_err());
    }

    fn flush(&mut self) -> u64 {
        mem::take(&mut self.unsent)
    }
}
