//! The numbers of the capture formats (draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcaplinktype).

/// The type of the block that begins a section, the same in either byte order.
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
/// The word from which a reader learns the byte order of a section.
pub(crate) const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Types of the other blocks; `PACKET` is obsolete, and a simple packet has no time.
pub(crate) const INTERFACE: u32 = 1;
pub(crate) const PACKET: u32 = 2;
pub(crate) const SIMPLE_PACKET: u32 = 3;
pub(crate) const NAMES: u32 = 4;
pub(crate) const STATISTICS: u32 = 5;
pub(crate) const ENHANCED_PACKET: u32 = 6;

/// Options, by the names of the draft: of any block, of sections, interfaces, packets and counts; and the
/// record of a name for an address of IPv4.
pub(crate) const COMMENT: u16 = 1;
pub(crate) const SHB_USERAPPL: u16 = 4;
pub(crate) const IF_NAME: u16 = 2;
pub(crate) const IF_DESCRIPTION: u16 = 3;
pub(crate) const IF_TSRESOL: u16 = 9;
pub(crate) const IF_TSOFFSET: u16 = 14;
pub(crate) const EPB_FLAGS: u16 = 2;
pub(crate) const EPB_DROPCOUNT: u16 = 4;
pub(crate) const ISB_IFRECV: u16 = 4;
pub(crate) const ISB_IFDROP: u16 = 5;
pub(crate) const NRB_IPV4: u16 = 1;

/// The link type of raw IP packets, of either version (`LINKTYPE_RAW`).
pub(crate) const RAW_IP: u16 = 101;
