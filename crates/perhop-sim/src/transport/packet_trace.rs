//! A measured sequence of packets, which a source sends again: open loop, whatever becomes of them.

use std::sync::Arc;

use perhop_core::curves::{Concave, Line, nanobits};
use perhop_core::{Bytes, Color, Dscp, Duration, Instant};

use crate::packet::color_of;

/// A packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedPacket {
    /// When the packet is sent, after the start of its flow.
    pub at: Duration,
    /// The size of the packet on the wire in bytes.
    pub size: u16,
    /// The codepoint of the packet; `None` for that of its flow.
    pub dscp: Option<Dscp>,
}

/// Packets in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketTrace {
    packets: Vec<TracedPacket>,
    smallest: u16,
    largest: u16,
    /// The codepoints that packets have, a bit for each.
    codepoints: u64,
}

impl PacketTrace {
    /// Makes a trace of these packets; `None` if there are none, one is empty, or times go back.
    pub fn new(packets: Vec<TracedPacket>) -> Option<Self> {
        let sizes = || packets.iter().map(|packet| packet.size);
        let (smallest, largest) = sizes().min().filter(|size| *size > 0).zip(sizes().max())?;
        let codepoints = packets.iter().filter_map(|packet| packet.dscp);
        let codepoints = codepoints.fold(0, |all, dscp| all | 1 << dscp.get());
        let in_order = packets.is_sorted_by_key(|packet| packet.at);
        in_order.then_some(Self { packets, smallest, largest, codepoints })
    }

    /// Returns the packets of the trace.
    pub fn packets(&self) -> &[TracedPacket] {
        &self.packets
    }

    /// Returns the token buckets to which the packets keep: for several rates the least depth.
    pub(crate) fn arrivals(&self) -> Concave {
        let all: i128 = self.packets.iter().map(|packet| nanobits(Bytes::new(packet.size.into()))).sum();
        let mean = all / i128::from(self.duration().as_nanos().max(1));
        let depth = |rate: i128| {
            let (mut level, mut least, mut most, mut before) = (0, 0, 0, 0);
            for packet in &self.packets {
                let at = i128::from(packet.at.as_nanos());
                level -= rate * (at - before);
                before = at;
                least = level.min(least);
                level += nanobits(Bytes::new(packet.size.into()));
                most = most.max(level - least);
            }
            most
        };
        let rates = [0, mean / 2, mean, mean * 5 / 4, mean * 3 / 2, mean * 2, mean * 4, mean * 16];
        Concave::of(rates.iter().map(|&rate| Line { rate, amount: depth(rate) }))
    }

    /// Returns when its last packet leaves, from its start.
    pub fn duration(&self) -> Duration {
        self.packets.last().map_or(Duration::ZERO, |packet| packet.at)
    }

    /// Returns the size of its smallest packet in bytes.
    pub fn smallest(&self) -> u16 {
        self.smallest
    }

    /// Returns the size of its largest packet.
    pub fn largest(&self) -> Bytes {
        Bytes::new(u64::from(self.largest))
    }

    /// Returns the codepoints that packets have of their own, each with its color in a flow of this one.
    pub fn codepoints(&self, color: Color) -> impl Iterator<Item = (Dscp, Color)> {
        let all = (0..64).filter(|dscp| self.codepoints >> dscp & 1 == 1).filter_map(Dscp::new);
        all.map(move |dscp| (dscp, color_of(dscp, color)))
    }

    /// Returns whether packets have codepoints of their own.
    pub fn has_codepoints(&self) -> bool {
        self.codepoints != 0
    }
}

/// How far a source is in its trace.
#[derive(Clone, Debug)]
pub(super) struct Replayed {
    pub(super) trace: Arc<PacketTrace>,
    begin: Instant,
    /// Packets sent so far.
    sent: usize,
}

impl Replayed {
    pub(super) fn new(trace: &Arc<PacketTrace>) -> Self {
        Self { trace: Arc::clone(trace), begin: Instant::ZERO, sent: 0 }
    }

    /// Begins the flow, and returns when the first packet is due.
    pub(super) fn start(&mut self, now: Instant) -> Instant {
        self.begin = now;
        self.due()
    }

    /// Returns when the next packet is due.
    pub(super) fn due(&self) -> Instant {
        self.trace.packets.get(self.sent).map_or(Instant::NEVER, |packet| self.begin + packet.at)
    }

    pub(super) fn take(&mut self) -> Option<TracedPacket> {
        let packet = *self.trace.packets.get(self.sent)?;
        self.sent += 1;
        Some(packet)
    }

    /// Returns the codepoint of the packet that was taken last.
    pub(super) fn dscp(&self) -> Option<Dscp> {
        self.trace.packets.get(self.sent.checked_sub(1)?)?.dscp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(millis: u64, size: u16) -> TracedPacket {
        TracedPacket { at: Duration::from_millis(millis), size, dscp: None }
    }

    #[test]
    fn a_trace_has_packets_in_order() {
        let trace = PacketTrace::new(vec![packet(0, 100), packet(0, 40), packet(2, 1500)]).unwrap();
        assert_eq!(
            (trace.smallest(), trace.largest(), trace.has_codepoints()),
            (40, Bytes::new(1500), false)
        );
        let with = |dscp| TracedPacket { dscp: Dscp::new(dscp), ..packet(3, 40) };
        let trace = PacketTrace::new(vec![packet(2, 40), with(46), with(10), with(46)]).unwrap();
        let codepoints: Vec<_> =
            trace.codepoints(Color::Red).map(|(dscp, color)| (dscp.get(), color)).collect();
        assert_eq!(codepoints, [(10, Color::Green), (46, Color::Red)]);
        for none in [vec![], vec![packet(0, 0)], vec![packet(2, 40), packet(1, 40)]] {
            assert_eq!(PacketTrace::new(none), None);
        }
    }
}
