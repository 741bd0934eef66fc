//! TUN devices with segmentation offload: one read or write transfers a large packet of up to 64 kB, which
//! holds many segments or datagrams of one flow.
//!
//! The data plane sees packets as they are on the wire. A large packet is split when it is read, and each
//! packet gets its own headers and checksums. Consecutive packets of a flow that leave in one batch are
//! coalesced into a large packet again, as the kernel's GRO does.

pub(super) mod header;
mod merge;
pub(super) mod split;
#[cfg(test)]
mod tests;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::SyncDevice;

use self::header::{LENGTH, Offloads};
use self::merge::Merge;
use self::split::Split;
use super::tun::{TunSpec, open, read};
use super::{Aside, Device};
use crate::buffers::Head;

/// The longest packet, with its `virtio_net_hdr`.
const LONGEST: usize = LENGTH + u16::MAX as usize;

/// A TUN device whose host has segmentation and checksum offload, for TCP and, from Linux 6.2, UDP.
pub struct OffloadTun {
    device: SyncDevice,
    /// The packet that was read last, with its `virtio_net_hdr`; `split` knows which of its segments is next.
    bytes: Box<[u8]>,
    split: Split,
    /// Whether a receiver need not verify the transport checksums of these segments.
    is_valid: bool,
    /// Coalesces packets that leave; `None` if each is written by itself.
    merge: Option<Merge>,
    unsent: u64,
    aside: Aside,
}

impl OffloadTun {
    /// Makes the interface and brings it up. With `merges`, packets that leave in one batch are coalesced.
    ///
    /// # Errors
    /// The kernel's, such as no access to `/dev/net/tun`.
    pub fn open(spec: &TunSpec, merges: bool) -> io::Result<Self> {
        let device = open(spec, true)?;
        let merge = merges.then(|| Merge::new(device.udp_gso()));
        Ok(Self {
            device,
            bytes: vec![0; LONGEST].into_boxed_slice(),
            split: Split::default(),
            is_valid: false,
            merge,
            unsent: 0,
            aside: Aside::default(),
        })
    }
}

impl AsFd for OffloadTun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl Device for OffloadTun {
    #[inline]
    fn receive(&mut self, head: &mut Head, room: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            if let Some(length) = self.split.next(&self.bytes[LENGTH..], room) {
                head[0] = u8::from(self.is_valid);
                return Ok(Some(length));
            }
            let Some(length) = read(&self.device, &mut self.bytes)? else { return Ok(None) };
            let Some((header, packet)) = self.bytes[..length].split_first_chunk() else { continue };
            let offloads = Offloads::read(header);
            self.is_valid = offloads.is_valid;
            self.split = Split::begin(packet, &offloads).unwrap_or_else(|| {
                self.aside.merged += 1;
                Split::default()
            });
        }
    }

    #[inline]
    fn send(&mut self, head: &Head, packet: &[u8]) {
        let Self { device, merge, unsent, .. } = self;
        let mut write = writer(device, unsent);
        match merge {
            Some(merge) => merge.take(packet, head[0] != 0, &mut write),
            None => write(&[0; LENGTH], packet, 1),
        }
    }

    fn flush(&mut self) -> u64 {
        if let Some(merge) = &mut self.merge {
            merge.finish(&mut writer(&self.device, &mut self.unsent));
        }
        std::mem::take(&mut self.unsent)
    }

    fn aside(&mut self) -> Aside {
        self.aside
    }
}

/// Returns a function that writes a packet with its header, and counts packets that the device refuses.
fn writer<'a>(device: &'a SyncDevice, unsent: &'a mut u64) -> impl FnMut(&[u8; LENGTH], &[u8], u64) + 'a {
    |header, packet, packets| {
        let written = device.send_vectored(&[IoSlice::new(header), IoSlice::new(packet)]);
        *unsent += if written.is_ok() { 0 } else { packets };
    }
}
