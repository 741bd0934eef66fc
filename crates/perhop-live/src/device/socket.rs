//! Packet sockets (packet(7)): the calls that no crate offers without `unsafe`.

#![expect(unsafe_code, reason = "system calls that no crate wraps: packet sockets with ancillary data")]

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::{c_int, c_void, socklen_t};

/// A packet socket on one interface.
#[derive(Debug)]
pub(super) struct PacketSocket(OwnedFd);

/// The most frames that one system call receives or sends.
pub(super) const BATCH: usize = 64;

/// An entry of a scatter-gather array that has no buffer yet.
const NOWHERE: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };

/// The length and the ancillary data of a received frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    /// The length of the whole frame with its `virtio_net_hdr`, also if the frame was truncated.
    pub(super) length: usize,
    /// The VLAN tag that the kernel removed from the frame: tag protocol and tag.
    pub(super) tag: Option<(u16, u16)>,
}

/// Bytes of an interface's name in the kernel's requests, with the zero at its end.
const NAME: usize = libc::IFNAMSIZ;

impl PacketSocket {
    /// Opens a socket for all frames that the interface receives, for any address, and none that it sends. A
    /// `virtio_net_hdr` precedes each frame and says what offloads have left to be done.
    ///
    /// # Errors
    /// The kernel's; without the capability `CAP_NET_RAW` it is `EPERM`.
    pub(super) fn open(index: u32) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes no pointers; what it returns is a file descriptor that is nobody else's.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_PACKET, kind, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Self(OwnedFd::from_raw_fd(fd))
        };
        let on: c_int = 1;
        socket.set(libc::PACKET_VNET_HDR, &on)?;
        socket.set(libc::PACKET_AUXDATA, &on)?;
        socket.set(libc::PACKET_IGNORE_OUTGOING, &on)?;
        let index = c_int::try_from(index).map_err(io::Error::other)?;
        let all = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        socket.set(libc::PACKET_ADD_MEMBERSHIP, &all)?;
        // SAFETY: all zeros is a valid value of this plain C structure.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        // SAFETY: the pointer is to an address of the given length, which lives through the call.
        check(unsafe {
            libc::bind(socket.fd(), ptr::from_ref(&address).cast(), size_of_val(&address) as socklen_t)
        })?;
        Ok(socket)
    }

    fn fd(&self) -> c_int {
        self.0.as_raw_fd()
    }

    fn set<T: Copy>(&self, option: c_int, value: &T) -> io::Result<()> {
        // SAFETY: the pointer is to a value of the given length, which lives through the call.
        check(unsafe {
            let value = ptr::from_ref(value).cast::<c_void>();
            libc::setsockopt(self.fd(), libc::SOL_PACKET, option, value, size_of::<T>() as socklen_t)
        })
    }

    /// Returns the interface's longest packet.
    pub(super) fn mtu(&self, name: &str) -> io::Result<u16> {
        // SAFETY: all zeros is a valid value of this plain C structure.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        for (place, byte) in request.ifr_name[..NAME - 1].iter_mut().zip(name.bytes()) {
            *place = byte.cast_signed() as _;
        }
        // SAFETY: the request lives through the call, and its name ends with a zero. The kernel answers in
        // `ifru_mtu`.
        let mtu = unsafe {
            check(libc::ioctl(self.fd(), libc::SIOCGIFMTU as _, ptr::from_mut(&mut request)))?;
            request.ifr_ifru.ifru_mtu
        };
        Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
    }

    /// Reads waiting frames, at most as many as `received` has places, each into `size` bytes of the room.
    /// Describes them in `received` and returns their number.
    pub(super) fn receive(
        &self,
        room: &mut [u8],
        size: usize,
        received: &mut [Received],
    ) -> io::Result<usize> {
        let mut parts = [NOWHERE; BATCH];
        let mut controls = [const { Control { bytes: [0; 64] } }; BATCH];
        // SAFETY: all zeros is a valid value of these plain C structures.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let mut count = 0;
        let places = room.chunks_exact_mut(size).zip(&mut parts).zip(&mut controls);
        for (message, ((room, part), control)) in messages.iter_mut().take(received.len()).zip(places) {
            *part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            let header = &mut message.msg_hdr;
            (header.msg_iov, header.msg_iovlen) = (part, 1);
            header.msg_control = ptr::from_mut(control).cast();
            header.msg_controllen = size_of::<Control>() as _;
            count += 1;
        }
        // SAFETY: the parts are of an exclusive borrow that lives through the call, as does the room for
        // control messages; their lengths and their number are given, and no time to wait.
        let count = unsafe {
            let (messages, flags) = (messages.as_mut_ptr(), libc::MSG_TRUNC | libc::MSG_DONTWAIT);
            libc::recvmmsg(self.fd(), messages, count, flags as _, ptr::null_mut())
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (received, message) in received.iter_mut().zip(&messages[..count]) {
            *received = Received { length: message.msg_len as usize, tag: tag_of(&message.msg_hdr) };
        }
        Ok(count)
    }

    /// Sends at most [`BATCH`] frames, which follow one another in `frames`: each ends at one of `ends`.
    /// Returns how many the kernel did not accept.
    pub(super) fn send(&self, frames: &[u8], ends: &[usize]) -> u64 {
        let mut parts = [NOWHERE; BATCH];
        // SAFETY: all zeros is a valid value of these plain C structures.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let mut begin = 0;
        for ((message, part), &end) in messages.iter_mut().zip(&mut parts).zip(ends) {
            let frame = &frames[begin..end];
            *part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (part, 1);
            begin = end;
        }
        let (mut rest, mut unsent) = (&mut messages[..ends.len()], 0);
        while !rest.is_empty() {
            // SAFETY: the parts are of a borrow that lives through the call, which only reads them; their
            // lengths and their number are given.
            let sent = unsafe {
                let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
                libc::sendmmsg(self.fd(), rest.as_mut_ptr(), rest.len() as _, flags as _)
            };
            // An error is that of the first one.
            unsent += u64::from(sent < 0);
            rest = &mut rest[usize::try_from(sent).unwrap_or(1).max(1)..];
        }
        unsent
    }

    /// Returns how many frames the kernel dropped since the last call because the socket's buffer was full.
    pub(super) fn overrun(&self) -> u64 {
        let mut statistics = MaybeUninit::<libc::tpacket_stats>::zeroed();
        let mut length = size_of::<libc::tpacket_stats>() as socklen_t;
        // SAFETY: the pointers are to room of the given length, which lives through the call; all zeros is a
        // valid value.
        unsafe {
            let room = statistics.as_mut_ptr().cast::<c_void>();
            let asked =
                libc::getsockopt(self.fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, room, &raw mut length);
            if asked < 0 { 0 } else { u64::from(statistics.assume_init().tp_drops) }
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Room for control messages, aligned as they must be.
union Control {
    bytes: [u8; 64],
    _aligned: libc::cmsghdr,
}

/// Returns the VLAN tag that the kernel removed from a frame (`PACKET_AUXDATA`).
fn tag_of(message: &libc::msghdr) -> Option<(u16, u16)> {
    // SAFETY: the message is one that recvmsg filled in, and its room for control messages still lives: the
    // macros walk within it. The auxiliary data may lie unaligned, and are as long as the header says.
    let auxiliary = unsafe {
        let first = libc::CMSG_FIRSTHDR(message);
        let header = first.as_ref()?;
        let whole =
            header.cmsg_len as usize >= libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as u32) as usize;
        if (header.cmsg_level, header.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) || !whole {
            return None;
        }
        libc::CMSG_DATA(first).cast::<libc::tpacket_auxdata>().read_unaligned()
    };
    let protocol = match auxiliary.tp_status {
        status if status & libc::TP_STATUS_VLAN_VALID == 0 => return None,
        status if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 => libc::ETH_P_8021Q as u16,
        _ => auxiliary.tp_vlan_tpid,
    };
    Some((protocol, auxiliary.tp_vlan_tci))
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
