//! Capture files, read and written: [`read`] reads pcap and pcapng, [`frame`] finds the IP packet in what
//! they contain, and [`write`](mod@write) writes pcapng. [`packets`] and [`events`] observe a simulated run,
//! and write its packets as a capture or as records.
//!
//! Nothing here opens a file: bytes come from any [`std::io::Read`] and go to any [`std::io::Write`].
//!
//! ```
//! use perhop_pcap::read::Capture;
//! use perhop_pcap::write::{Blocks, Captured, PacketDirection};
//!
//! let mut blocks = Blocks::header("example", &["eth0".to_owned()], 1500);
//! let (packet, direction) = (&[0x45, 0, 0, 20][..], PacketDirection::Inbound);
//! let (interface, time, length, comment, missed) = (0, 5, 20, None, 0);
//! blocks.packet(&Captured { interface, time, direction, packet, length, comment, missed });
//! let mut capture = Capture::open(blocks.bytes()).unwrap();
//! let record = capture.read_next().unwrap().unwrap();
//! assert_eq!((record.time, record.bytes, record.length), (Some(5), packet, 20));
//! ```

pub mod events;
pub mod frame;
pub mod headers;
mod numbers;
pub mod packets;
pub mod read;
pub mod write;

pub use events::EventLog;
pub use packets::{PacketCapture, Setup};
