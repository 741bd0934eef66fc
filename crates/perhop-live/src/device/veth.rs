//! Pairs of Ethernet interfaces between network namespaces (veth(4)), which join a host to a router where no
//! TUN device can be opened.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{
    IFF_NOARP, IFF_UP, IFLA_ADDRESS, IFLA_GSO_MAX_SEGS, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND,
    IFLA_LINKINFO, IFLA_MTU, IFLA_NET_NS_FD, IFLA_TXQLEN,
};
use nix::net::if_::if_nametoindex;

use super::netlink::{Attribute, link, new_address, new_link, number, set_link, text, with};
use super::tun::TunSpec;

/// The attribute of a pair that holds its far end (the kernel's `linux/veth.h`).
const VETH_INFO_PEER: u16 = 1;

/// The locally administered address of both hosts' interfaces. With one address for both ends no host needs
/// ARP or neighbor discovery.
const MAC: [u8; 6] = [0x02, 0x70, 0x65, 0x72, 0x68, 0x70];

/// Makes a pair: the near end `near` in the calling thread's namespace, and the far end in another, as `far`
/// says, but for its addresses. The near end is up.
///
/// # Errors
/// The kernel's.
pub fn join(near: &str, far: &TunSpec, namespace: BorrowedFd<'_>) -> io::Result<()> {
    let mtu = u32::from(far.mtu);
    let peer = [
        text(IFLA_IFNAME, &far.name),
        number(IFLA_MTU, mtu),
        Attribute::new(IFLA_ADDRESS, MAC.to_vec()),
        number(IFLA_TXQLEN, far.queue),
        // Queues must see packets as they are on the wire: no segmentation offload.
        number(IFLA_GSO_MAX_SEGS, 1),
        Attribute::new(IFLA_NET_NS_FD, namespace.as_raw_fd().to_ne_bytes().to_vec()),
    ];
    let data = [Attribute::new(VETH_INFO_PEER, link(0, IFF_NOARP, &peer))];
    let pair = [text(IFLA_INFO_KIND, "veth"), Attribute::new(IFLA_INFO_DATA, with(&[], &data))];
    let near = [
        text(IFLA_IFNAME, near),
        number(IFLA_MTU, mtu),
        number(IFLA_TXQLEN, far.queue),
        Attribute::new(IFLA_LINKINFO, with(&[], &pair)),
    ];
    new_link(IFF_UP, &near)
}

/// Brings up the far end of a pair, in whose namespace the calling thread is, with the addresses that it is
/// to have.
///
/// # Errors
/// The kernel's.
pub fn bring_up(far: &TunSpec) -> io::Result<()> {
    let index = if_nametoindex(far.name.as_str())?;
    let four = far.ipv4.map(|(address, prefix): (Ipv4Addr, u8)| (IpAddr::from(address), prefix));
    let six = far.ipv6.map(|(address, prefix): (Ipv6Addr, u8)| (IpAddr::from(address), prefix));
    for (address, prefix) in four.into_iter().chain(six) {
        new_address(index, address, prefix)?;
    }
    set_link(index, IFF_UP, &[])
}
