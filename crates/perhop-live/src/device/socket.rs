//! Packet sockets (packet(7)): the calls that no crate offers without `unsafe`.

#![expect(
    unsafe_code,
    reason = "system calls that no crate wraps: packet sockets with what the kernel says beside a frame"
)]

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::{c_int, c_void, socklen_t};

/// A packet socket on one interface.
#[derive(Debug)]
pub(super) struct PacketSocket(OwnedFd);

/// What the kernel said beside a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// The length of the whole frame and its preamble, also where it was cut.
    pub(super) length: usize,
    /// The VLAN tag that the kernel took out of it: protocol and tag.
    pub(super) tag: Option<(u16, u16)>,
}

/// The kernel's room for an answer to a question about an interface.
const NAME: usize = libc::IFNAMSIZ;

impl PacketSocket {
    /// Opens a socket for all frames that come to the interface, for any address, but not those that leave by
    /// it. Each is preceded by a `virtio_net_hdr` that says what offloads left to be done.
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

    /// Reads a frame into these parts, one after the other.
    #[inline]
    pub(super) fn receive(&self, parts: [&mut [u8]; 4]) -> io::Result<Received> {
        let mut parts =
            parts.map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
        let mut control = Control { bytes: [0; 64] };
        // SAFETY: all zeros is a valid value of this plain C structure.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len() as _;
        // SAFETY: to take the address of the array in the union reads nothing.
        message.msg_control = unsafe { control.bytes.as_mut_ptr().cast() };
        message.msg_controllen = size_of::<Control>() as _;
        // SAFETY: the parts are exclusive borrows that live through the call, as does the room for control
        // messages, and their lengths are given.
        let length = unsafe { libc::recvmsg(self.fd(), &raw mut message, libc::MSG_TRUNC) };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        Ok(Received { length, tag: tag_of(&message) })
    }

    /// Sends these parts, one after the other, as one frame.
    #[inline]
    pub(super) fn send<const N: usize>(&self, parts: [&[u8]; N]) -> io::Result<()> {
        let mut parts =
            parts.map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
        // SAFETY: all zeros is a valid value of this plain C structure.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len() as _;
        // SAFETY: the parts are borrows that live through the call, which only reads them, and their lengths
        // are given.
        let sent = unsafe { libc::sendmsg(self.fd(), &raw const message, libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Frames that the kernel dropped since this was asked last, there being no room in the socket's buffer.
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

/// Returns the VLAN tag that the kernel took out of a frame (`PACKET_AUXDATA`).
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
