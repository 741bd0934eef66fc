//! The numbers of the capture formats: types of pcapng's blocks, their options, and link types.

/// The type of the block that begins a section, the same in either byte order.
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
/// The word from which a reader learns the byte order of a section.
pub(crate) const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// The type of the description of an interface.
pub(crate) const INTERFACE: u32 = 1;
/// The type of a packet's block, obsolete.
pub(crate) const PACKET: u32 = 2;
/// The type of a packet's block without a time.
pub(crate) const SIMPLE_PACKET: u32 = 3;
/// The type of a block of names.
pub(crate) const NAMES: u32 = 4;
/// The type of a block with counts of an interface.
pub(crate) const STATISTICS: u32 = 5;
/// The type of a packet's block.
pub(crate) const ENHANCED_PACKET: u32 = 6;

/// An option of any block: a comment.
pub(crate) const COMMENT: u16 = 1;
/// An option of a section: the program that wrote it.
pub(crate) const SHB_USERAPPL: u16 = 4;
/// An option of an interface: its name.
pub(crate) const IF_NAME: u16 = 2;
/// An option of an interface: its description.
pub(crate) const IF_DESCRIPTION: u16 = 3;
/// An option of an interface: the resolution of its times.
pub(crate) const IF_TSRESOL: u16 = 9;
/// An option of an interface: seconds that are added to its times.
pub(crate) const IF_TSOFFSET: u16 = 14;
/// An option of a packet: its direction, among others.
pub(crate) const EPB_FLAGS: u16 = 2;
/// An option of a packet: how many were missed before it.
pub(crate) const EPB_DROPCOUNT: u16 = 4;
/// An option of counts: packets that came.
pub(crate) const ISB_IFRECV: u16 = 4;
/// An option of counts: packets that were missed.
pub(crate) const ISB_IFDROP: u16 = 5;
/// A record of a name: an address of IPv4 and its name.
pub(crate) const NRB_IPV4: u16 = 1;

/// The link type of raw IP packets, of either version (`LINKTYPE_RAW`).
pub(crate) const RAW_IP: u16 = 101;
