//! Writes capture files in the format pcapng (draft-ietf-opsawg-pcapng): the blocks that a router and a
//! simulated run write.

use std::net::Ipv4Addr;

use crate::numbers::{
    BYTE_ORDER, COMMENT, ENHANCED_PACKET, EPB_DROPCOUNT, EPB_FLAGS, IF_DESCRIPTION, IF_NAME, IF_TSRESOL,
    INTERFACE, ISB_IFDROP, ISB_IFRECV, NAMES, NRB_IPV4, RAW_IP, SECTION, SHB_USERAPPL, STATISTICS,
};

/// The direction of a packet at its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// The packet came from the interface.
    Inbound = 1,
    /// The packet left by the interface.
    Outbound = 2,
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The number of its interface.
    pub interface: u32,
    /// When the packet passed, in nanoseconds since 1970.
    pub time: u64,
    /// The direction of the packet.
    pub direction: PacketDirection,
    /// The packet, as far as it is captured.
    pub packet: &'a [u8],
    /// The length of the packet in bytes.
    pub length: u32,
    /// A comment on the packet.
    pub comment: Option<&'a str>,
    /// Packets of this interface that were missed since the last one.
    pub missed: u64,
}

/// Whole blocks of a file, one after the other.
#[derive(Debug, Default)]
pub struct Blocks {
    bytes: Vec<u8>,
    /// Where the block begins that is being made.
    begin: usize,
}

impl Blocks {
    /// Returns the beginning of a file: its kind, the program that writes it, and the interfaces.
    pub fn header(application: &str, interfaces: &[String], longest: u32) -> Self {
        let mut blocks = Self::default();
        blocks.section(application, None);
        for name in interfaces {
            blocks.interface(name, None, longest);
        }
        blocks
    }

    /// Begins a file that this program writes.
    pub fn section(&mut self, application: &str, comment: Option<&str>) {
        self.begin(SECTION);
        self.word(BYTE_ORDER);
        self.bytes.extend(1_u16.to_ne_bytes());
        self.bytes.extend(0_u16.to_ne_bytes());
        self.bytes.extend((-1_i64).to_ne_bytes());
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes());
        }
        self.option(SHB_USERAPPL, application.as_bytes());
        self.end();
    }

    /// Adds an interface, of which packets are captured up to this many bytes.
    pub fn interface(&mut self, name: &str, description: Option<&str>, longest: u32) {
        self.begin(INTERFACE);
        self.bytes.extend(RAW_IP.to_ne_bytes());
        self.bytes.extend(0_u16.to_ne_bytes());
        self.word(longest);
        self.option(IF_NAME, name.as_bytes());
        if let Some(description) = description {
            self.option(IF_DESCRIPTION, description.as_bytes());
        }
        self.option(IF_TSRESOL, &[9]); // nanoseconds
        self.end();
    }

    /// Adds the names of hosts.
    pub fn names<'a>(&mut self, hosts: impl IntoIterator<Item = (Ipv4Addr, &'a str)>) {
        self.begin(NAMES);
        for (address, name) in hosts {
            self.option(NRB_IPV4, &[&address.octets(), name.as_bytes(), &[0]].concat());
        }
        self.word(0); // the end of names
        self.end();
    }

    /// Returns the bytes of all blocks.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all blocks.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Adds a packet.
    pub fn packet(&mut self, captured: &Captured<'_>) {
        let Captured { interface, time, direction, packet, length, comment, missed } = *captured;
        self.begin(ENHANCED_PACKET);
        self.word(interface);
        self.time(time);
        self.word(packet.len() as u32);
        self.word(length);
        self.padded(packet);
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes());
        }
        self.option(EPB_FLAGS, &(direction as u32).to_ne_bytes());
        if missed > 0 {
            self.option(EPB_DROPCOUNT, &missed.to_ne_bytes());
        }
        self.end();
    }

    /// Adds how many packets of an interface were to be captured, and how many of them were missed.
    pub fn statistics(&mut self, interface: u32, time: u64, seen: u64, missed: u64) {
        self.begin(STATISTICS);
        self.word(interface);
        self.time(time);
        self.option(ISB_IFRECV, &seen.to_ne_bytes());
        self.option(ISB_IFDROP, &missed.to_ne_bytes());
        self.end();
    }

    fn begin(&mut self, kind: u32) {
        self.begin = self.bytes.len();
        self.word(kind);
        self.word(0); // the length, known at the end
    }

    fn end(&mut self) {
        self.word(0); // the end of options
        let length = (self.bytes.len() - self.begin + 4) as u32;
        self.bytes[self.begin + 4..self.begin + 8].copy_from_slice(&length.to_ne_bytes());
        self.word(length);
    }

    fn option(&mut self, number: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.bytes.extend(number.to_ne_bytes());
        self.bytes.extend((value.len() as u16).to_ne_bytes());
        self.padded(value);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn time(&mut self, time: u64) {
        self.word((time >> 32) as u32);
        self.word(time as u32);
    }

    fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::DataLink;
    use pcap_file::pcapng::{Block, PcapNgReader};

    #[test]
    fn another_reader_reads_what_was_written() {
        let names = ["eth0".to_owned(), "eth1".to_owned()];
        let mut blocks = Blocks::header("perhop-router", &names, 1500);
        let packet = Captured {
            interface: 1,
            time: 1_700_000_000_123_456_789,
            direction: PacketDirection::Inbound,
            packet: &[0x45, 1, 2, 3, 4],
            length: 1500,
            comment: Some("dropped: early"),
            missed: 3,
        };
        blocks.packet(&packet);
        blocks.packet(&Captured {
            interface: 0,
            comment: None,
            missed: 0,
            direction: PacketDirection::Outbound,
            ..packet
        });
        blocks.statistics(1, packet.time, 9, 3);
        let mut reader = PcapNgReader::new(blocks.bytes()).unwrap();
        let mut seen = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(interface) => {
                    assert_eq!((interface.linktype, interface.snaplen), (DataLink::RAW, 1500));
                    seen.push(format!("{:?}", interface.options[0]));
                }
                Block::EnhancedPacket(packet) => {
                    assert_eq!((&packet.data[..], packet.original_len), (&[0x45, 1, 2, 3, 4][..], 1500));
                    seen.push(format!("{} {:?}", packet.interface_id, packet.options));
                }
                Block::InterfaceStatistics(statistics) => {
                    seen.push(format!("{} {:?}", statistics.interface_id, statistics.options));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(
            seen,
            [
                "IfName(\"eth0\")",
                "IfName(\"eth1\")",
                "1 [Comment(\"dropped: early\"), Flags(1), DropCount(3)]",
                "0 [Flags(2)]",
                "1 [IsbIfRecv(9), IsbIfDrop(3)]",
            ]
        );
    }
}
