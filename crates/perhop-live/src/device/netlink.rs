//! Requests to the kernel's routing tables and interfaces (rtnetlink(7)), in the calling thread's network
//! namespace.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;

use libc::{AF_INET, AF_INET6, IFA_ADDRESS, IFA_LOCAL, RTM_NEWADDR, RTM_NEWLINK, RTM_SETLINK, c_int};
use netlink_packet_core::{
    DefaultNla, Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkDeserializable,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// An attribute of an interface, an address or another attribute: its number and its value.
pub(super) type Attribute = DefaultNla;

/// Returns an attribute whose value is a number.
pub(super) fn number(kind: u16, value: u32) -> Attribute {
    Attribute::new(kind, value.to_ne_bytes().to_vec())
}

/// Returns an attribute whose value is text, with a zero at its end.
pub(super) fn text(kind: u16, value: &str) -> Attribute {
    Attribute::new(kind, [value.as_bytes(), &[0]].concat())
}

/// A message: its type and what is behind its header, a structure with attributes.
struct Message {
    kind: u16,
    body: Vec<u8>,
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.kind
    }
    fn buffer_len(&self) -> usize {
        self.body.len()
    }
    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.body);
    }
}

impl NetlinkDeserializable for Message {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, body: &[u8]) -> Result<Self, Infallible> {
        Ok(Self { kind: header.message_type, body: body.to_vec() })
    }
}

impl From<Message> for NetlinkPayload<Message> {
    fn from(message: Message) -> Self {
        Self::InnerMessage(message)
    }
}

/// Makes an interface.
pub(super) fn new_link(flags: c_int, attributes: &[Attribute]) -> io::Result<()> {
    request(Message { kind: RTM_NEWLINK, body: link(0, flags, attributes) }, NLM_F_CREATE | NLM_F_EXCL)
}

/// Changes an interface.
pub(super) fn set_link(index: u32, flags: c_int, attributes: &[Attribute]) -> io::Result<()> {
    request(Message { kind: RTM_SETLINK, body: link(index, flags, attributes) }, 0)
}

/// Gives an interface an address in a network whose prefix has this length.
pub(super) fn new_address(index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
    let (family, octets) = match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    };
    // The kernel's `ifaddrmsg`: neither flags nor a scope but the universe.
    let header = [[family as u8, prefix, 0, 0], index.to_ne_bytes()];
    let attributes = [Attribute::new(IFA_LOCAL, octets.clone()), Attribute::new(IFA_ADDRESS, octets)];
    request(Message { kind: RTM_NEWADDR, body: with(&header, &attributes) }, NLM_F_CREATE | NLM_F_EXCL)
}

/// Returns an interface on which these flags are set, as the kernel's `ifinfomsg`, with its attributes
/// behind.
pub(super) fn link(index: u32, flags: c_int, attributes: &[Attribute]) -> Vec<u8> {
    with(&[[0; 4], index.to_ne_bytes(), flags.to_ne_bytes(), flags.to_ne_bytes()], attributes)
}

/// Returns a structure with attributes behind it.
pub(super) fn with(structure: &[[u8; 4]], attributes: &[Attribute]) -> Vec<u8> {
    let mut bytes = structure.concat();
    let length = bytes.len();
    bytes.resize(length + attributes.buffer_len(), 0);
    attributes.emit(&mut bytes[length..]);
    bytes
}

/// Asks for something, and waits until it is done.
fn request(message: Message, flags: u16) -> io::Result<()> {
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&bytes, 0)?;
    let (response, _) = socket.recv_from_full()?;
    let response = NetlinkMessage::<Message>::deserialize(&response).map_err(io::Error::other)?;
    match response.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        _ => Ok(()),
    }
}
