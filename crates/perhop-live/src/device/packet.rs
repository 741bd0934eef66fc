//! Ethernet interfaces joined as a transparent bridge (packet(7)): whole frames in and out.
//!
//! Blocks see the IP packet; its Ethernet header is kept beside it. Other frames, such as ARP, bypass the
//! blocks. The kernel reports for each frame which checksum its sender left to the hardware. The bridge
//! passes this on when the frame leaves, and the kernel or the next interface completes the checksum. A large
//! frame, made by the sender's segmentation offload or by GRO on this host, is split before blocks see it.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::net::if_::if_nametoindex;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, SndBuf, SndBufForce};

use super::offload::header::{self, Merged, Offloads};
use super::offload::split::Split;
use super::socket::{BATCH, PacketSocket, Received};
use super::{Aside, Device};
use crate::buffers::{HEAD, Head};
use crate::encapsulation::{self, NoPacket, TAG, TYPE};

/// One side of a bridge.
pub struct Ethernet {
    socket: Arc<PacketSocket>,
    other: Arc<PacketSocket>,
    name: String,
    index: u32,
    mtu: u16,
    inbox: Inbox,
    outbox: Outbox,
    aside: Aside,
    /// Whether the interface went down and has received nothing since: it may be about to be removed, which
    /// the kernel does not report.
    went_down: bool,
}

/// Frames that were read in one call.
struct Inbox {
    /// Each has [`LONGEST`] bytes.
    bytes: Box<[u8]>,
    received: Box<[Received]>,
    count: usize,
    /// The frame to read next.
    next: usize,
    /// The segments of the frame before it, if that is a large one; the head of each, and the place of the
    /// large packet in `bytes`.
    split: Split,
    head: Head,
    packet: usize,
}

/// Frames that leave in one call.
#[derive(Default)]
struct Outbox {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    unsent: u64,
}

/// The layout of a [`Head`]: the `virtio_net_hdr`, the addresses, then the headers before the packet.
const PREAMBLE: usize = header::LENGTH;
const ADDRESSES: usize = TAG.start;

/// The bytes before the packet in what is read, without a VLAN tag, which the kernel removes.
const BEFORE: usize = PREAMBLE + ETHERNET as usize;
const ETHERNET: u16 = 14;

/// The longest frame: a large one, of segmentation offload.
const LONGEST: usize = BEFORE + u16::MAX as usize;

/// The size of the kernel's receive buffer and of its send buffer, in bytes.
const SOCKET_BUFFER: usize = 4 << 20;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is left to whoever sends the frame on.
const NEEDS_CHECKSUM: u8 = 1;

impl Ethernet {
    /// Joins two interfaces, which forward frames while they are up. If the kernel has addresses on them, it
    /// still answers for these.
    ///
    /// # Errors
    /// The interface and the kernel's error; without the capability `CAP_NET_RAW` it is `PermissionDenied`.
    pub fn bridge(names: [&str; 2]) -> Result<[Self; 2], (usize, io::Error)> {
        Self::bridge_by(names, BATCH)
    }

    /// Joins two interfaces, of which each is read by at most so many frames in a system call, 1 to 64.
    ///
    /// # Errors
    /// See [`bridge`](Self::bridge).
    pub fn bridge_by(names: [&str; 2], frames: usize) -> Result<[Self; 2], (usize, io::Error)> {
        let open = |side: usize| open(names[side]).map_err(|error| (side, error));
        let (left, right) = (open(0)?, open(1)?);
        let side = |name: &str, (socket, index, mtu): &Opened, other: &Opened| Self {
            socket: Arc::clone(socket),
            other: Arc::clone(&other.0),
            name: name.into(),
            index: *index,
            mtu: *mtu,
            inbox: Inbox::new(frames.clamp(1, BATCH)),
            outbox: Outbox::default(),
            aside: Aside::default(),
            went_down: false,
        };
        Ok([side(names[0], &left, &right), side(names[1], &right, &left)])
    }

    /// Returns the interface's longest packet.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Returns whether the interface was removed, which is a reason to stop. To be down is none.
    fn is_gone(&self) -> bool {
        if_nametoindex(self.name.as_str()) != Ok(self.index)
    }

    /// Reads the next frames; says whether there are any.
    fn refill(&mut self) -> io::Result<bool> {
        let Inbox { bytes, received, count, next, .. } = &mut self.inbox;
        loop {
            match self.socket.receive(bytes, LONGEST, received) {
                Ok(some) => {
                    (*count, *next, self.went_down) = (some, 0, false);
                    return Ok(some > 0);
                }
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => self.went_down = true,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    let is_gone = self.went_down && self.is_gone();
                    return if is_gone { Err(io::Error::from_raw_os_error(libc::ENODEV)) } else { Ok(false) };
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the next frame of the batch; returns the packet's length if it has one for the data plane.
    fn take(&mut self, head: &mut Head, room: &mut [u8]) -> Option<usize> {
        let Inbox { bytes, received, next, split, head: kept, packet: place, .. } = &mut self.inbox;
        let Received { length, tag } = received[*next];
        let begin = *next * LONGEST;
        *next += 1;
        let frame = &mut bytes[begin..][..length.min(LONGEST)];
        let (before, payload) = frame.split_first_chunk_mut::<BEFORE>()?;
        let (protocol, tag) = tag.unwrap_or_default();
        head[..ADDRESSES].copy_from_slice(&before[..ADDRESSES]);
        head[TAG.start..TAG.start + 2].copy_from_slice(&protocol.to_be_bytes());
        head[TAG.start + 2..TAG.end].copy_from_slice(&tag.to_be_bytes());
        head[TYPE].copy_from_slice(&before[ADDRESSES..]);
        let mut offloads = before.first_chunk().map(Offloads::read)?;
        let is_merged = offloads.merged != Merged::No;
        if !is_merged && payload.len() > room.len() {
            self.aside.too_long += 1;
            return None;
        }
        let headers = match encapsulation::detach(head, payload) {
            Ok(headers) => headers,
            Err(_) if is_merged => {
                self.aside.merged += 1;
                return None;
            }
            Err(why) => {
                self.aside.unread += u64::from(why == NoPacket::Unread);
                self.aside.pass(&self.other, head, payload);
                return None;
            }
        };
        let packet = &payload[..payload.len() - headers];
        if is_merged {
            // These offsets count from the beginning of the frame.
            let before = ETHERNET + headers as u16;
            offloads.checksum =
                offloads.checksum.and_then(|(from, at)| Some((from.checked_sub(before)?, at)));
            let Some(packets) = Split::begin(packet, &offloads) else {
                self.aside.merged += 1;
                return None;
            };
            head[..PREAMBLE].fill(0);
            (*split, *kept, *place) = (packets, *head, begin + BEFORE);
            return None;
        }
        room[..packet.len()].copy_from_slice(packet);
        Some(packet.len())
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

impl Inbox {
    fn new(frames: usize) -> Self {
        Self {
            bytes: vec![0; frames * LONGEST].into_boxed_slice(),
            received: vec![Received::default(); frames].into_boxed_slice(),
            count: 0,
            next: 0,
            split: Split::default(),
            head: [0; HEAD],
            packet: 0,
        }
    }

    /// Returns the length of the next segment of a large frame.
    #[inline]
    fn next_segment(&mut self, head: &mut Head, room: &mut [u8]) -> Option<usize> {
        let length = self.split.next(&self.bytes[self.packet..], room)?;
        *head = self.head;
        Some(length)
    }
}

impl Aside {
    /// Forwards a frame without an IP packet to the other side, unchanged.
    fn pass(&mut self, other: &PacketSocket, head: &Head, payload: &[u8]) {
        let mut frame = Vec::new();
        append(&mut frame, head, payload);
        if other.send(&frame, &[frame.len()]) > 0 {
            self.unpassed += 1;
        } else {
            self.passed.packets += 1;
            self.passed.bytes += payload.len() as u64;
        }
    }
}

impl AsFd for Ethernet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Device for Ethernet {
    fn receive(&mut self, head: &mut Head, room: &mut [u8]) -> io::Result<Option<usize>> {
        let mut is_refilled = false;
        loop {
            if let Some(length) = self.inbox.next_segment(head, room) {
                return Ok(Some(length));
            }
            if self.inbox.next == self.inbox.count {
                // Many frames that are not for the data plane must not keep it waiting.
                if is_refilled || !self.refill()? {
                    return Ok(None);
                }
                is_refilled = true;
            }
            if let Some(length) = self.take(head, room) {
                return Ok(Some(length));
            }
        }
    }

    #[inline]
    fn send(&mut self, head: &Head, packet: &[u8]) {
        let Outbox { bytes, ends, .. } = &mut self.outbox;
        append(bytes, head, packet);
        ends.push(bytes.len());
        if ends.len() == BATCH {
            self.outbox.send(&self.socket);
        }
    }

    fn flush(&mut self) -> u64 {
        self.outbox.send(&self.socket);
        mem::take(&mut self.outbox.unsent)
    }

    fn aside(&mut self) -> Aside {
        self.aside.overrun += self.socket.overrun();
        self.aside
    }
}

impl Outbox {
    /// Sends all frames, and counts those that the kernel did not accept.
    fn send(&mut self, socket: &PacketSocket) {
        if !self.ends.is_empty() {
            self.unsent += socket.send(&self.bytes, &self.ends);
            self.bytes.clear();
            self.ends.clear();
        }
    }
}

/// Appends a frame: the headers that it was received with, and the packet.
#[inline]
fn append(bytes: &mut Vec<u8>, head: &Head, packet: &[u8]) {
    let mut preamble = [0; PREAMBLE];
    let is_tagged = head[TAG][..2] != [0; 2];
    if head[0] & NEEDS_CHECKSUM != 0 {
        // The start of the checksum counts from the beginning of the frame, which a tag makes longer. The
        // number is in the machine's byte order.
        let begin = u16::from_ne_bytes([head[6], head[7]]).saturating_add(if is_tagged { 4 } else { 0 });
        preamble[0] = NEEDS_CHECKSUM;
        preamble[6..8].copy_from_slice(&begin.to_ne_bytes());
        preamble[8..10].copy_from_slice(&head[8..10]);
    }
    bytes.extend_from_slice(&preamble);
    bytes.extend_from_slice(&head[PREAMBLE..if is_tagged { TAG.end } else { ADDRESSES }]);
    bytes.extend_from_slice(encapsulation::attached(head));
    bytes.extend_from_slice(packet);
}
