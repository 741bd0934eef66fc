//! A packet in the simulator.

use perhop_core::{Header, Instant, Packet};

use crate::calendar::Timed;

/// A header, where the packet is on its route, and the one number its transport needs. Small and `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimPacket {
    /// What blocks see.
    pub header: Header,
    /// The step of its route that it takes next.
    pub step: u32,
    /// Data: the segment's number. Acknowledgement: the number of the segment expected next.
    pub sequence: u32,
}

impl SimPacket {
    /// The packet, as it comes to the next step of its route at `at`.
    #[inline]
    pub fn due(self, at: Instant) -> Self {
        Self { header: Header { arrived: at, ..self.header }, ..self }
    }
}

impl Packet for SimPacket {
    fn header(&self) -> &Header {
        &self.header
    }
    fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }
}

/// A packet on its way comes to the next step of its route at its header's `arrived`; of packets that come at one time, the
/// one whose step has the lower number is first.
impl Timed for SimPacket {
    #[inline]
    fn at(&self) -> Instant {
        self.header.arrived
    }
    #[inline]
    fn rank(&self) -> u32 {
        self.step
    }
}

const _: () = assert!(size_of::<SimPacket>() == 32);
