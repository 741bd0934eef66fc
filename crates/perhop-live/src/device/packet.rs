//! Ethernet interfaces joined as a transparent bridge (packet(7)): whole frames in and out.
//!
//! Blocks see the IP packet; its Ethernet header waits beside it. Other frames, such as ARP, bypass the
//! blocks. The kernel reports for each frame which checksum its sender left to the hardware. The bridge
//! passes this on when the frame leaves, and the kernel or the next interface completes the checksum.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::net::if_::if_nametoindex;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, SndBuf, SndBufForce};

use super::socket::{PacketSocket, Received};
use super::{Aside, Device};
use crate::buffers::Head;
use crate::counts::Amount;
use crate::encapsulation::{self, NoPacket, TAG, TYPE};

/// One side of a bridge.
pub struct Ethernet {
    socket: Arc<PacketSocket>,
    other: Arc<PacketSocket>,
    name: String,
    index: u32,
    mtu: u16,
    aside: Cell<Aside>,
    /// Whether the interface went down, and nothing has come since: it may be on its way out, of which the
    /// kernel says no more.
    went_down: Cell<bool>,
}

/// Where things stand in a [`Head`]: what offloads left to be done, the addresses, then the headers before
/// the packet.
const PREAMBLE: usize = 10;
const ADDRESSES: usize = TAG.start;

/// The bytes before the packet in what is read, without a tag, which the kernel takes out.
const BEFORE: usize = PREAMBLE + 14;

/// The most frames that are read in a row when none is for the data plane.
const IN_A_ROW: usize = 64;

/// Bytes that may wait in the kernel before they are read, and before they leave.
const SOCKET_BUFFER: usize = 4 << 20;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is left to whoever sends the frame on.
const NEEDS_CHECKSUM: u8 = 1;

impl Ethernet {
    /// Joins two interfaces, which must be up to pass anything. The kernel's own addresses on them are not in
    /// the way, but it answers for them as ever.
    ///
    /// # Errors
    /// An interface and what the kernel has against it; without the capability `CAP_NET_RAW` it is
    /// `PermissionDenied`.
    pub fn bridge(names: [&str; 2]) -> Result<[Self; 2], (usize, io::Error)> {
        let open = |side: usize| open(names[side]).map_err(|error| (side, error));
        let (left, right) = (open(0)?, open(1)?);
        let side = |name: &str, (socket, index, mtu): &Opened, other: &Opened| Self {
            socket: Arc::clone(socket),
            other: Arc::clone(&other.0),
            name: name.into(),
            index: *index,
            mtu: *mtu,
            aside: Cell::default(),
            went_down: Cell::default(),
        };
        Ok([side(names[0], &left, &right), side(names[1], &right, &left)])
    }

    /// Returns the interface's longest packet.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    fn count(&self, change: impl FnOnce(&mut Aside)) {
        let mut aside = self.aside.get();
        change(&mut aside);
        self.aside.set(aside);
    }

    /// Passes a frame that is no IP packet to the other side as it is.
    fn pass(&self, head: &Head, payload: &[u8]) {
        let passed = send(&self.other, head, payload).is_ok();
        self.count(|aside| {
            if passed {
                aside.passed = Amount {
                    packets: aside.passed.packets + 1,
                    bytes: aside.passed.bytes + payload.len() as u64,
                };
            } else {
                aside.unpassed += 1;
            }
        });
    }

    /// Returns whether the interface is gone, which is a reason to stop; to be down is none.
    fn is_gone(&self) -> bool {
        if_nametoindex(self.name.as_str()) != Ok(self.index)
    }
}

type Opened = (Arc<PacketSocket>, u32, u16);

fn open(name: &str) -> io::Result<Opened> {
    let index = if_nametoindex(name)?;
    let socket = PacketSocket::open(index)?;
    let mtu = socket.mtu(name)?;
    // More than the system's limit needs a capability; less is no reason to stop.
    if setsockopt(&socket, RcvBufForce, &SOCKET_BUFFER).is_err() {
        let _ = setsockopt(&socket, RcvBuf, &SOCKET_BUFFER);
    }
    if setsockopt(&socket, SndBufForce, &SOCKET_BUFFER).is_err() {
        let _ = setsockopt(&socket, SndBuf, &SOCKET_BUFFER);
    }
    Ok((Arc::new(socket), index, mtu))
}

impl AsFd for Ethernet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Device for Ethernet {
    fn receive(&self, head: &mut Head, room: &mut [u8]) -> io::Result<Option<usize>> {
        for _ in 0..IN_A_ROW {
            let (preamble, rest) = head.split_at_mut(PREAMBLE);
            let (addresses, rest) = rest.split_at_mut(ADDRESSES - PREAMBLE);
            let (tag, rest) = rest.split_at_mut(TAG.len());
            let received = match self.socket.receive([preamble, addresses, &mut rest[..TYPE.len()], room]) {
                Ok(received) => received,
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) && !self.is_gone() => {
                    self.went_down.set(true);
                    continue;
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    if self.went_down.get() && self.is_gone() {
                        return Err(io::Error::from_raw_os_error(libc::ENODEV));
                    }
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            let Received { length, tag: taken } = received;
            self.went_down.set(false);
            let Some(length) = length.checked_sub(BEFORE) else { continue };
            tag.fill(0);
            if let Some((protocol, taken)) = taken {
                tag[..2].copy_from_slice(&protocol.to_be_bytes());
                tag[2..].copy_from_slice(&taken.to_be_bytes());
            }
            if preamble[1] != 0 {
                self.count(|aside| aside.merged += 1);
            } else if length > room.len() {
                self.count(|aside| aside.too_long += 1);
            } else {
                match encapsulation::detach(head, &mut room[..length]) {
                    Ok(headers) => return Ok(Some(length - headers)),
                    Err(why) => {
                        self.count(|aside| aside.unread += u64::from(why == NoPacket::Unread));
                        self.pass(head, &room[..length]);
                    }
                }
            }
        }
        Ok(None)
    }

    #[inline]
    fn send(&self, head: &Head, packet: &[u8]) -> io::Result<()> {
        send(&self.socket, head, packet)
    }

    fn aside(&self) -> Aside {
        let overrun = self.socket.overrun();
        self.count(|aside| aside.overrun += overrun);
        self.aside.get()
    }
}

/// Sends a frame: the header that it came with, and the packet.
#[inline]
fn send(socket: &PacketSocket, head: &Head, packet: &[u8]) -> io::Result<()> {
    let mut preamble = [0; PREAMBLE];
    let tagged = head[ADDRESSES..ADDRESSES + 2] != [0; 2];
    if head[0] & NEEDS_CHECKSUM != 0 {
        // Where the checksum begins counts from the begin of the frame, which a tag makes longer. In the
        // machine's order.
        let begin = u16::from_ne_bytes([head[6], head[7]]).saturating_add(if tagged { 4 } else { 0 });
        preamble[0] = NEEDS_CHECKSUM;
        preamble[6..8].copy_from_slice(&begin.to_ne_bytes());
        preamble[8..10].copy_from_slice(&head[8..10]);
    }
    if tagged {
        socket.send([&preamble[..], &head[PREAMBLE..TAG.end], encapsulation::attached(head), packet])
    } else {
        socket.send([&preamble[..], &head[PREAMBLE..ADDRESSES], encapsulation::attached(head), packet])
    }
}
