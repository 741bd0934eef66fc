//! Pairs of Ethernet interfaces between network namespaces (veth(4)): what a host is joined to a router by where it cannot
//! be by a TUN device.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::net::if_::if_nametoindex;

use super::netlink::request;
use super::tun::TunSpec;

/// Both hosts' interfaces have this locally administered address: a frame is for the other end of the pair, and nobody needs
/// to ask who that is.
const MAC: [u8; 6] = [0x02, 0x70, 0x65, 0x72, 0x68, 0x70];

/// Makes a pair: the near end `near` in the calling thread's namespace, and the far end in another, as `far` says, but for
/// its addresses. The near end is up.
///
/// # Errors
/// The kernel's.
pub fn join(near: &str, far: &TunSpec, namespace: BorrowedFd<'_>) -> io::Result<()> {
    let mut peer = LinkMessage::default();
    peer.header.flags = LinkFlags::Noarp;
    peer.header.change_mask = LinkFlags::Noarp;
    peer.attributes = vec![
        LinkAttribute::IfName(far.name.clone()),
        LinkAttribute::Mtu(far.mtu.into()),
        LinkAttribute::Address(MAC.to_vec()),
        LinkAttribute::TxQueueLen(far.queue),
        // Queues must see packets as they are on the wire: the kernel is to make no large ones of many.
        LinkAttribute::GsoMaxSegs(1),
        LinkAttribute::NetNsFd(namespace.as_raw_fd()),
    ];
    let mut link = LinkMessage::default();
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    link.attributes = vec![
        LinkAttribute::IfName(near.into()),
        LinkAttribute::Mtu(far.mtu.into()),
        LinkAttribute::TxQueueLen(far.queue),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]),
    ];
    request(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
}

/// Brings up the far end of a pair, in whose namespace the calling thread is, with the addresses that it is to have.
///
/// # Errors
/// The kernel's.
pub fn bring_up(far: &TunSpec) -> io::Result<()> {
    let index = if_nametoindex(far.name.as_str())?;
    let four = far.ipv4.map(|(address, prefix): (Ipv4Addr, u8)| (IpAddr::from(address), prefix));
    let six = far.ipv6.map(|(address, prefix): (Ipv6Addr, u8)| (IpAddr::from(address), prefix));
    for (address, prefix) in four.into_iter().chain(six) {
        let mut message = AddressMessage::default();
        message.header.family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        message.header.prefix_len = prefix;
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)?;
    }
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    request(RouteNetlinkMessage::SetLink(link), 0)
}
