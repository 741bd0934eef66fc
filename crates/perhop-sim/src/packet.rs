//! A packet in the simulator: the time of its next step, its flow and step, number, label and service level.
//!
//! These are four words, which queues hold as they are; blocks see them as a `Header`. Whatever else a packet
//! carries (timestamps, reports, selective acknowledgements) is kept at its flow under its number until the
//! packet arrives or is dropped ([`metadata`](crate::transport::metadata)).

use perhop_core::marker::AfClass;
use perhop_core::{Color, Direction, Dscp, Ecn, FlowId, Header, Instant, Packet, ServiceLevel};

use crate::timed::Timed;

/// A packet in transit: when it comes to the next step of its route, which step that is, and what it carries.
///
/// Four words, so that the simulator's loop holds it in registers; blocks see its [`header`](Self::header).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimPacket {
    at: Instant,
    /// The flow's number, then the step's: steps follow the order of flows. Those of ACKs have [`ACK`] set.
    place: u64,
    /// Sequence number (32 bits), size (16), color (2), CWR or ECN-Echo (1), unused (5), codepoint (6), ECN
    /// (2).
    content: u64,
    /// Label (32 bits), service level (16): the contracted rate of its flow.
    contract: u64,
}

/// In place of the time of a packet that a link has lost: no run lasts so long.
const IN_TRANSIT: Instant = Instant::from_nanos(u64::MAX - 1);

/// The bit of a step that says that the packet goes back to the sender.
pub const ACK: u32 = 1 << 31;

const SIZE: u32 = 32;
const COLOR: u32 = 48;
/// In data: the sender has reduced its window (CWR). In an ACK: ECN-Echo.
const FLAG: u32 = 50;
const CODEPOINT: u32 = 56;
const ECN: u32 = 62;

impl SimPacket {
    /// Makes a packet with this header, which comes to the step at its `arrived`.
    pub fn new(header: &Header, step: u32, sequence: u32) -> Self {
        Self {
            at: header.arrived,
            place: u64::from(header.flow.0) << 32 | u64::from(step),
            content: u64::from(sequence)
                | u64::from(header.size) << SIZE
                | (header.color as u64) << COLOR
                | u64::from(header.dscp.get()) << CODEPOINT
                | (header.ecn as u64) << ECN,
            contract: u64::from(header.label) << 16 | u64::from(header.service.get()),
        }
    }

    /// Returns what blocks see.
    #[inline]
    pub fn header(self) -> Header {
        Header {
            arrived: self.at,
            flow: FlowId((self.place >> 32) as u32),
            direction: if self.is_ack() { Direction::Backward } else { Direction::Forward },
            size: self.size(),
            service: ServiceLevel::new(self.contract as u16),
            label: (self.contract >> 16) as u32,
            dscp: Dscp::new((self.content >> CODEPOINT) as u8 & 63).unwrap_or_default(),
            ecn: self.content().ecn(),
            color: self.color(),
        }
    }

    /// Returns the packet, of a flow with this contracted rate.
    pub(crate) fn contracted(self, service: ServiceLevel) -> Self {
        Self { contract: self.contract & !0xffff | u64::from(service.get()), ..self }
    }

    /// Returns when the packet comes to the next step of its route.
    #[inline]
    pub fn at(self) -> Instant {
        self.at
    }

    /// Returns the number of its flow.
    #[inline]
    pub fn flow(self) -> usize {
        (self.place >> 32) as usize
    }

    /// Returns the step of its route that the packet takes next.
    #[inline]
    pub fn step(self) -> usize {
        (self.place as u32 & !ACK) as usize
    }

    /// Returns whether the packet goes back to the sender.
    #[inline]
    pub fn is_ack(self) -> bool {
        self.place as u32 & ACK != 0
    }

    /// Returns all that the packet carries of its own: the rest is its flow's.
    #[inline]
    pub fn content(self) -> Content {
        Content(self.content)
    }

    /// Returns the packet, carrying this.
    #[inline]
    pub fn carrying(self, content: Content) -> Self {
        Self { content: content.0, ..self }
    }

    /// Returns the segment's number of data, the number of the segment expected next of an acknowledgement.
    #[inline]
    pub fn sequence(self) -> u32 {
        self.content().sequence()
    }

    /// Returns the size of the packet on the wire in bytes.
    #[inline]
    pub fn size(self) -> u16 {
        self.content().size()
    }

    /// Returns its drop precedence.
    #[inline]
    pub fn color(self) -> Color {
        const COLORS: [Color; 4] = [Color::Green, Color::Yellow, Color::Red, Color::Red];
        COLORS[(self.content >> COLOR) as usize & 3]
    }

    /// Returns the packet, as it comes to the next step of its route at `at`.
    #[inline]
    pub fn due(self, at: Instant) -> Self {
        Self { at, ..self }
    }

    /// Sets the time at which the packet comes to the next step of its route.
    #[inline]
    pub fn put_off(&mut self, at: Instant) {
        self.at = at;
    }

    /// Has a queue drop the packet: it comes nowhere.
    #[inline]
    pub fn lose(&mut self) {
        self.at = Instant::NEVER;
    }

    /// Has a link lose the packet that it has sent: it comes nowhere.
    #[inline]
    pub fn lose_in_transit(&mut self) {
        self.at = IN_TRANSIT;
    }

    /// Returns whether a queue dropped the packet, or a link lost it.
    #[inline]
    pub fn is_lost(self) -> bool {
        self.at >= IN_TRANSIT
    }

    /// Returns whether a link lost the packet that it had sent.
    #[inline]
    pub fn is_lost_in_transit(self) -> bool {
        self.at == IN_TRANSIT
    }

    /// Returns the packet before the step after this.
    #[inline]
    pub fn onward(self) -> Self {
        Self { place: self.place + 1, ..self }
    }

    /// Returns the packet before that step.
    #[inline]
    pub fn before(self, step: u32) -> Self {
        Self { place: self.place >> 32 << 32 | u64::from(step), ..self }
    }

    /// Returns the packet as one of the flow of this number, before that step; its direction stays.
    #[inline]
    pub(crate) fn renumbered(self, flow: u32, step: u32) -> Self {
        let direction = self.place & u64::from(ACK);
        Self { place: u64::from(flow) << 32 | direction | u64::from(step), ..self }
    }

    /// Returns the packet with this number.
    #[inline]
    pub fn numbered(self, sequence: u32) -> Self {
        Self { content: self.content >> 32 << 32 | u64::from(sequence), ..self }
    }

    /// Returns the packet with this size.
    #[inline]
    pub fn sized(self, size: u16) -> Self {
        Self { content: self.content & !(0xffff << SIZE) | u64::from(size) << SIZE, ..self }
    }

    /// Returns the packet marked as having met congestion (CE).
    #[inline]
    pub fn notified(self) -> Self {
        Self { content: self.content | (Ecn::Congested as u64) << ECN, ..self }
    }

    /// Returns the packet, which is not ECN-capable, with this ECN field if that is capable.
    #[inline]
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { content: self.content | (ecn as u64) << ECN, ..self }
    }

    /// Returns the packet with or without its flag: CWR of data, ECN-Echo of an ACK.
    #[inline]
    pub fn flagged(self, flag: bool) -> Self {
        Self { content: self.content & !(1 << FLAG) | u64::from(flag) << FLAG, ..self }
    }

    /// Returns the packet with this codepoint, and the color that it means in Assured Forwarding (RFC 2597);
    /// any other leaves the color.
    pub fn with_codepoint(self, dscp: Dscp) -> Self {
        self.with_marks((color_of(dscp, self.color()) as u64) << COLOR | u64::from(dscp.get()) << CODEPOINT)
    }

    /// Returns the packet with the color and the codepoint of this header.
    #[inline]
    pub fn remarked(self, header: &Header) -> Self {
        self.with_marks((header.color as u64) << COLOR | u64::from(header.dscp.get()) << CODEPOINT)
    }

    /// Returns the packet with this color, and the codepoint that goes with it.
    #[inline]
    pub fn marked(self, color: Color, marks: &Marks) -> Self {
        self.with_marks(marks.0[color.index()])
    }

    #[inline]
    fn with_marks(self, marks: u64) -> Self {
        Self { content: self.content & !(3 << COLOR | 63 << CODEPOINT) | marks, ..self }
    }
}

/// How packets of a class are marked: for each color, that and its codepoint, as packets carry them.
#[derive(Clone, Copy, Debug)]
pub struct Marks([u64; 3]);

/// The marks of the four classes of Assured Forwarding.
static ASSURED: [Marks; 4] = {
    let mut classes = [Marks([0; 3]); 4];
    let mut number = 0;
    while number < 4 {
        if let Some(class) = AfClass::new(number as u8 + 1) {
            classes[number] = Marks::with(class);
        }
        number += 1;
    }
    classes
};

impl Marks {
    /// Returns the marks of an Assured Forwarding class.
    pub fn of(class: AfClass) -> &'static Self {
        &ASSURED[class.index()]
    }

    const fn with(class: AfClass) -> Self {
        let mut marks = [0; 3];
        let mut color = 0;
        while color < 3 {
            let codepoint = class.codepoint(Color::ALL[color]).get() as u64;
            marks[color] = (color as u64) << COLOR | codepoint << CODEPOINT;
            color += 1;
        }
        Self(marks)
    }
}

/// What a packet carries besides what all of its flow do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content(u64);

impl Content {
    /// See [`SimPacket::sequence`].
    #[inline]
    pub fn sequence(self) -> u32 {
        self.0 as u32
    }

    /// See [`SimPacket::size`].
    #[inline]
    pub fn size(self) -> u16 {
        (self.0 >> SIZE) as u16
    }

    /// Returns its ECN field.
    #[inline]
    pub fn ecn(self) -> Ecn {
        match self.0 >> ECN {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Congested,
        }
    }

    /// See [`SimPacket::flagged`].
    #[inline]
    pub fn flag(self) -> bool {
        self.0 >> FLAG & 1 == 1
    }
}

/// Of packets that come at one time, the one whose flow, and then whose step, has the lower number is first.
impl Timed for SimPacket {
    #[inline]
    fn at(&self) -> Instant {
        self.at
    }
    #[inline]
    fn rank(&self) -> u64 {
        self.place
    }
}

const _: () = assert!(size_of::<SimPacket>() == 32);

/// A packet in a discipline that owns its packets: it has arrived when it came to the step.
impl Packet for SimPacket {
    #[inline]
    fn header(&self) -> Header {
        SimPacket::header(*self)
    }
    #[inline]
    fn arrive(&mut self, now: Instant) {
        self.at = now;
    }
    #[inline]
    fn notify(&mut self) {
        *self = self.notified();
    }
}

/// Returns the color of a codepoint of Assured Forwarding (RFC 2597); with any other, the color stays.
pub(crate) fn color_of(dscp: Dscp, color: Color) -> Color {
    AfClass::of(dscp).map_or(color, |(_, color)| color)
}

#[cfg(test)]
mod tests {
    use super::*;
    use perhop_core::Bitrate;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_packet_carries_its_header_whole(
            (nanos, flow, size, rate) in (any::<u64>(), any::<u32>(), any::<u16>(), 1_u64..700_000_000),
            (label, dscp, ecn, color) in (any::<u32>(), 0_u8..64, 0_usize..4, 0_usize..3),
            (step, sequence, other) in (any::<u32>(), any::<u32>(), any::<u32>()),
        ) {
            let header = Header {
                arrived: Instant::from_nanos(nanos),
                flow: FlowId(flow),
                direction: if step & ACK == 0 { Direction::Forward } else { Direction::Backward },
                size,
                service: ServiceLevel::of(Bitrate::from_bps(rate).unwrap()),
                label,
                dscp: Dscp::new(dscp).unwrap(),
                ecn: [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][ecn],
                color: Color::ALL[color],
            };
            let packet = SimPacket::new(&header, step, sequence);
            prop_assert_eq!(packet.header(), header);
            prop_assert_eq!((packet.step(), packet.is_ack()), ((step & !ACK) as usize, step >> 31 == 1));
            prop_assert_eq!((packet.sequence(), packet.flow()), (sequence, flow as usize));
            let flagged = packet.flagged(true);
            prop_assert!(flagged.content().flag() && !packet.content().flag());
            prop_assert_eq!((flagged.header(), flagged.flagged(false)), (header, packet));
            for packet in [packet, flagged] {
                let mut queued = packet;
                queued.arrive(Instant::from_nanos(7));
                queued.notify();
                prop_assert_eq!(queued, packet.due(Instant::from_nanos(7)).notified());
                prop_assert_eq!(Packet::header(&queued), queued.header());
                prop_assert_eq!(packet.marked(Color::Red, Marks::of(AfClass::new(3).unwrap())).content().flag(), packet == flagged);
            }
            let class = AfClass::new(3).unwrap();
            let changed = packet.numbered(other).before(sequence).sized(7).marked(Color::Red, Marks::of(class));
            let direction = if sequence & ACK == 0 { Direction::Forward } else { Direction::Backward };
            let expected = Header { direction, size: 7, color: Color::Red, dscp: class.codepoint(Color::Red), ..header };
            prop_assert_eq!(changed, SimPacket::new(&expected, sequence, other));
            let remarked = Header { color: Color::Red, dscp: class.codepoint(Color::Red), ..header };
            prop_assert_eq!(packet.remarked(&remarked), SimPacket::new(&remarked, step, sequence));
            let notified = Header { ecn: Ecn::Congested, ..header };
            let [plain, capable] = [Ecn::NotCapable, Ecn::Capable1].map(|ecn| Header { ecn, ..header });
            let plain = SimPacket::new(&plain, step, sequence);
            prop_assert_eq!(plain.with_ecn(Ecn::Capable1), SimPacket::new(&capable, step, sequence));
            prop_assert_eq!(packet.with_ecn(Ecn::NotCapable), packet);
            prop_assert_eq!(packet.notified(), SimPacket::new(&notified, step, sequence));
            prop_assert_eq!(changed.due(Instant::ZERO).header(), Header { arrived: Instant::ZERO, ..expected });
        }
    }
}
