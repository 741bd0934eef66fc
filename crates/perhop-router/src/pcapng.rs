//! Capture files in the format pcapng (draft-ietf-opsawg-pcapng): the blocks that a router writes.

use std::io::{self, Write};

/// Raw IP packets, of either version (`LINKTYPE_RAW`).
const RAW_IP: u16 = 101;

/// Numbers of options.
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const SHB_USERAPPL: u16 = 4;
const EPB_FLAGS: u16 = 2;
const EPB_DROPCOUNT: u16 = 4;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It came from the interface.
    Inbound = 1,
    /// It left by the interface.
    Outbound = 2,
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The number of its interface.
    pub interface: u32,
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// Which way.
    pub way: Way,
    /// The packet.
    pub packet: &'a [u8],
    /// What is to be said of it.
    pub comment: Option<&'a str>,
    /// Packets of this interface that were missed since the last one.
    pub missed: u64,
}

/// Writes a capture file, block by block.
#[derive(Debug)]
pub struct Writer<W> {
    file: W,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file of packets of these interfaces.
    ///
    /// # Errors
    /// The file's.
    pub fn new(file: W, interfaces: &[String], longest: u32) -> io::Result<Self> {
        let mut writer = Self { file, block: Vec::new() };
        writer.begin(0x0a0d_0d0a);
        writer.word(0x1a2b_3c4d);
        writer.block.extend(1_u16.to_ne_bytes());
        writer.block.extend(0_u16.to_ne_bytes());
        writer.block.extend((-1_i64).to_ne_bytes());
        writer.option(SHB_USERAPPL, concat!("perhop-router ", env!("CARGO_PKG_VERSION")).as_bytes());
        writer.end()?;
        for name in interfaces {
            writer.begin(1);
            writer.block.extend(RAW_IP.to_ne_bytes());
            writer.block.extend(0_u16.to_ne_bytes());
            writer.word(longest);
            writer.option(IF_NAME, name.as_bytes());
            writer.option(IF_TSRESOL, &[9]); // nanoseconds
            writer.end()?;
        }
        Ok(writer)
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// The file's.
    pub fn packet(&mut self, captured: &Captured<'_>) -> io::Result<()> {
        let Captured { interface, time, way, packet, comment, missed } = *captured;
        self.begin(6);
        self.word(interface);
        self.time(time);
        self.word(packet.len() as u32);
        self.word(packet.len() as u32);
        self.padded(packet);
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes());
        }
        self.option(EPB_FLAGS, &(way as u32).to_ne_bytes());
        if missed > 0 {
            self.option(EPB_DROPCOUNT, &missed.to_ne_bytes());
        }
        self.end()
    }

    /// Writes at the end how many packets of an interface were to be captured, and how many of them were missed.
    ///
    /// # Errors
    /// The file's.
    pub fn statistics(&mut self, interface: u32, time: u64, seen: u64, missed: u64) -> io::Result<()> {
        self.begin(5);
        self.word(interface);
        self.time(time);
        self.option(ISB_IFRECV, &seen.to_ne_bytes());
        self.option(ISB_IFDROP, &missed.to_ne_bytes());
        self.end()
    }

    /// Hands on what was written so far.
    ///
    /// # Errors
    /// The file's.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.word(kind);
        self.word(0); // the length, known at the end
    }

    fn end(&mut self) -> io::Result<()> {
        self.word(0); // the end of options
        let length = (self.block.len() + 4) as u32;
        self.block[4..8].copy_from_slice(&length.to_ne_bytes());
        self.word(length);
        self.file.write_all(&self.block)
    }

    fn option(&mut self, number: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend(number.to_ne_bytes());
        self.block.extend((value.len() as u16).to_ne_bytes());
        self.padded(value);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn time(&mut self, time: u64) {
        self.word((time >> 32) as u32);
        self.word(time as u32);
    }

    fn word(&mut self, word: u32) {
        self.block.extend(word.to_ne_bytes());
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
        let mut writer = Writer::new(Vec::new(), &names, 1500).unwrap();
        let packet = Captured {
            interface: 1,
            time: 1_700_000_000_123_456_789,
            way: Way::Inbound,
            packet: &[0x45, 1, 2, 3, 4],
            comment: Some("dropped: early"),
            missed: 3,
        };
        writer.packet(&packet).unwrap();
        writer
            .packet(&Captured { interface: 0, comment: None, missed: 0, way: Way::Outbound, ..packet })
            .unwrap();
        writer.statistics(1, packet.time, 9, 3).unwrap();
        let mut reader = PcapNgReader::new(&writer.file[..]).unwrap();
        let mut seen = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(interface) => {
                    assert_eq!((interface.linktype, interface.snaplen), (DataLink::RAW, 1500));
                    seen.push(format!("{:?}", interface.options[0]));
                }
                Block::EnhancedPacket(packet) => {
                    assert_eq!(packet.data[..], [0x45, 1, 2, 3, 4]);
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
