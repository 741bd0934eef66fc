//! The system calls for which no safe wrapper exists.
#![expect(unsafe_code, reason = "system calls that read or fill plain values")]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

use nix::sys::socket::{LinkAddr, SockaddrLike};

#[cfg(target_env = "gnu")]
use socket2::{Domain, Socket, Type};

/// What the kernel says of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// Congestion window in segments.
    pub(crate) window: u32,
    /// Smoothed round-trip time in microseconds; 0 before the first.
    pub(crate) rtt_us: u32,
    /// Segments of data sent, retransmissions included.
    pub(crate) sent: u64,
    /// Segments sent again.
    pub(crate) retransmitted: u64,
    /// Retransmission timeouts; 0 where the kernel does not count them (before Linux 6.7).
    pub(crate) timeouts: u64,
    /// Bytes acknowledged.
    pub(crate) acked: u64,
    /// Bytes that wait to be sent.
    pub(crate) unsent: u32,
    /// Losses are being repaired.
    pub(crate) is_recovering: bool,
    /// The receiver's window in bytes; 0 where the kernel does not say it (before Linux 6.2).
    pub(crate) receiver_window: u32,
    /// How long data was outstanding, and of that, how long the receiver's window and the sender's buffer
    /// held it, in microseconds.
    pub(crate) busy_us: u64,
    /// See [`busy_us`](Self::busy_us).
    pub(crate) receiver_limited_us: u64,
    /// See [`busy_us`](Self::busy_us).
    pub(crate) buffer_limited_us: u64,
}

/// `TCP_CA_Recovery`, after which comes `TCP_CA_Loss`.
const RECOVERY: u8 = 3;

/// Asks the kernel for what it says of a connection (tcp(7), TCP_INFO). Returns how many bytes that is, too.
fn ask(socket: &impl AsFd) -> io::Result<(libc::tcp_info, usize)> {
    // SAFETY: `tcp_info` is plain numbers, for which zeros are values.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = mem::size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which is the structure's size; what an older kernel
    // leaves out stays zero.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if status == 0 { Ok((info, length as usize)) } else { Err(io::Error::last_os_error()) }
}

/// Returns what the kernel says of a connection.
pub(crate) fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let (info, _) = ask(socket)?;
    Ok(TcpInfo {
        window: info.tcpi_snd_cwnd,
        rtt_us: info.tcpi_rtt,
        sent: info.tcpi_data_segs_out.into(),
        retransmitted: info.tcpi_total_retrans.into(),
        #[cfg(target_env = "gnu")]
        timeouts: info.tcpi_total_rto.into(),
        #[cfg(not(target_env = "gnu"))]
        timeouts: 0,
        acked: info.tcpi_bytes_acked,
        unsent: info.tcpi_notsent_bytes,
        is_recovering: info.tcpi_ca_state >= RECOVERY,
        receiver_window: info.tcpi_snd_wnd,
        busy_us: info.tcpi_busy_time,
        receiver_limited_us: info.tcpi_rwnd_limited,
        buffer_limited_us: info.tcpi_sndbuf_limited,
    })
}

/// Returns whether this kernel says how often a connection's retransmission timer expired (Linux 6.7).
#[cfg(target_env = "gnu")]
pub(crate) fn counts_timeouts() -> bool {
    let asked = Socket::new(Domain::IPV4, Type::STREAM, None).and_then(|socket| ask(&socket));
    asked.is_ok_and(|(_, length)| length > mem::offset_of!(libc::tcp_info, tcpi_total_rto))
}

/// Returns false: the C library's structure has no such count.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn counts_timeouts() -> bool {
    false
}

/// Wakes whoever waits for a socket only when so many bytes can be read, or no more will come (socket(7),
/// SO_RCVLOWAT).
pub(crate) fn set_low_water_mark(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel reads an integer that lives through the call, with its size.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            mem::size_of_val(&bytes) as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the address that means the interface with this number, for packet sockets (packet(7)).
pub(crate) fn link_address(index: u32) -> LinkAddr {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: 0,
        sll_ifindex: index.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointer is to an address of the given length and of the family of packet sockets, which
    // lives through the call, and which the call copies.
    let made = unsafe { LinkAddr::from_raw((&raw const address).cast(), Some(length)) };
    made.expect("an address of packet sockets")
}
