//! Reports of a marker to a sender, which the plane itself sends: real datagrams about packets marked OUT.

use std::net::{IpAddr, SocketAddr};

use etherparse::PacketBuilder;
use perhop_core::{Color, Direction, Dscp, Duration, Instant};

use super::{Plane, Sink};
use crate::spec::{Coloring, Hop, ReportSpec, StreamFlow, StreamSpec, WireSpec};
use crate::wire;

/// The bytes of a report's data: its number.
const DATA: usize = 4;
/// The time to live of a report.
const HOPS: u8 = 64;

/// The reports about one stream.
#[derive(Clone, Debug)]
pub(super) struct Reports {
    source: SocketAddr,
    destination: SocketAddr,
    /// The stream to which they belong.
    pub(super) stream: u32,
    /// How many have been sent.
    sent: u32,
}

impl Reports {
    /// Makes reports that belong to the stream of this number.
    pub(super) fn new(spec: &ReportSpec, stream: u32) -> Self {
        Self { source: spec.source, destination: spec.destination, stream, sent: 0 }
    }

    /// Writes the next report into a packet; returns its length. `None` if it does not fit.
    fn write(&mut self, room: &mut [u8]) -> Option<usize> {
        self.sent = self.sent.wrapping_add(1);
        let builder = match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), HOPS),
            (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), HOPS),
            _ => return None,
        };
        let builder = builder.udp(self.source.port(), self.destination.port());
        let length = builder.size(DATA);
        let mut rest = room.get_mut(..length)?;
        builder.write(&mut rest, &self.sent.to_be_bytes()).ok()?;
        Some(length)
    }
}

/// Returns the stream of the reports about a stream, which pass the wire of this number; no packet that comes
/// belongs to it.
pub(super) fn stream_of(about: &StreamSpec, reports: &ReportSpec, wire: usize) -> StreamSpec {
    StreamSpec {
        name: format!("{} (reports)", about.name),
        flow: match about.flow {
            StreamFlow::One(flow, _) => StreamFlow::One(flow, Direction::Backward),
            flow @ StreamFlow::FiveTuples => flow,
        },
        coloring: Coloring::Fixed(Color::default(), Dscp::DEFAULT),
        route: vec![Hop::Wire(wire)],
        leaves: reports.device,
        ..about.clone()
    }
}

/// Returns the wire of reports: it only delays them.
pub(super) fn wire_of(delay: Duration) -> WireSpec {
    WireSpec { rate: None, delay, dispatch: None }
}

impl Plane {
    /// Reports to the sender of a stream that one of its packets is marked OUT. Where every buffer is taken,
    /// there is no report.
    #[cold]
    pub(super) fn report_out(&mut self, stream: u32, now: Instant, sink: &mut impl Sink) {
        let Self { streams, buffers, counters, .. } = self;
        let Some(reports) = &mut streams[stream as usize].reports else { return };
        let Some(slot) = buffers.take() else { return };
        let (head, room) = buffers.packet_mut(slot);
        head.fill(0);
        let Some(length) = reports.write(room) else { return buffers.give_back(slot) };
        let Ok(fields) = wire::parse(&room[..length]) else { return buffers.give_back(slot) };
        counters.originate();
        let number = reports.stream;
        let frame = streams[number as usize].admit(&fields, slot, number, now);
        self.forward(frame, now, sink);
    }
}
