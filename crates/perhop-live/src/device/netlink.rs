//! Requests to the kernel's routing tables and interfaces (rtnetlink(7)), in the calling thread's network namespace.

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Asks for something, and waits until it is done.
pub(super) fn request(message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&bytes, 0)?;
    let (response, _) = socket.recv_from_full()?;
    let response = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&response).map_err(io::Error::other)?;
    match response.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        _ => Ok(()),
    }
}
