//! How much waits in a queue, by color.

use crate::{Color, Depth, Header, Instant, Unit};

/// Packets and bytes waiting in a queue; the packet in transmission is no longer counted (as in ns-2 and
/// Linux).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    packets: [u32; 3],
    bytes: [u64; 3],
    /// Packets of all colors: every arrival asks for them.
    all_packets: u32,
    overtaken: u32,
    /// The discipline does not find what is overtaken.
    lacks_order: bool,
    head: Option<Instant>,
}

impl Occupancy {
    /// An empty queue.
    pub const EMPTY: Self =
        Self { packets: [0; 3], bytes: [0; 3], all_packets: 0, overtaken: 0, lacks_order: false, head: None };

    /// Counts a packet in.
    #[inline]
    pub fn add(&mut self, color: Color, size: u16) {
        self.packets[color.index()] += 1;
        self.all_packets += 1;
        self.bytes[color.index()] += u64::from(size);
    }

    /// Counts a packet out.
    #[inline]
    pub fn remove(&mut self, color: Color, size: u16) {
        self.packets[color.index()] -= 1;
        self.all_packets -= 1;
        self.bytes[color.index()] -= u64::from(size);
    }

    /// Counts a packet in or out.
    pub fn count(&mut self, waits: bool, Header { color, size, .. }: &Header) {
        if waits { self.add(*color, *size) } else { self.remove(*color, *size) }
    }

    /// Counts a packet out, if it goes, without a branch.
    #[inline]
    pub fn remove_if(&mut self, goes: bool, color: Color, size: u16) {
        self.packets[color.index()] -= u32::from(goes);
        self.all_packets -= u32::from(goes);
        self.bytes[color.index()] -= u64::from(goes) * u64::from(size);
    }

    /// Packets waiting.
    #[inline]
    pub fn packets(&self) -> u64 {
        u64::from(self.all_packets)
    }

    /// Bytes waiting.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Packets of one color waiting.
    #[inline]
    pub fn packets_of(&self, color: Color) -> u64 {
        u64::from(self.packets[color.index()])
    }

    /// Packets waiting that will be sent before one that comes now: all of them, unless the discipline lets
    /// it overtake. For an AQM that [needs](crate::aqm::AqmBlock::NEEDS_AHEAD) to know.
    #[inline]
    pub fn ahead(&self) -> u64 {
        debug_assert!(!self.lacks_order, "an AQM that asks for this has NEEDS_AHEAD");
        self.packets() - u64::from(self.overtaken)
    }

    /// Set by the discipline for the arriving packet: how many of the waiting packets it will overtake.
    pub fn set_overtaken(&mut self, packets: u32) {
        self.overtaken = packets;
    }

    /// No AQM will ask what is [`ahead`](Self::ahead), and the discipline does not find it.
    pub fn leave_order_out(&mut self) {
        self.lacks_order = true;
    }

    /// When the packet that has waited longest arrived, for an AQM that
    /// [needs](crate::aqm::AqmBlock::NEEDS_HEAD) to know.
    pub fn head(&self) -> Option<Instant> {
        self.head
    }

    /// Set by the queue as packets come and go, for an AQM that needs it.
    pub fn set_head(&mut self, arrived: Option<Instant>) {
        self.head = arrived;
    }

    /// Everything waiting, measured in `unit`.
    #[inline]
    pub fn total(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Packets => f64::from(self.all_packets),
            Unit::Bytes => self.bytes().cast_signed() as f64, // one instruction: for u64 it is four
        }
    }

    /// What waits of one color, measured in `unit`.
    #[inline]
    pub fn of(&self, color: Color, unit: Unit) -> f64 {
        match unit {
            Unit::Packets => f64::from(self.packets[color.index()]),
            Unit::Bytes => self.bytes[color.index()].cast_signed() as f64,
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.all_packets == 0
    }

    /// Whether `packet` would exceed the queue's `limit`.
    #[inline]
    pub fn is_full_for(&self, packet: &Header, limit: Depth) -> bool {
        match limit {
            Depth::Packets(most) => self.packets() >= most,
            Depth::Bytes(most) => self.bytes() + u64::from(packet.size) > most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowId;

    /// 2 green packets of 100 bytes, 1 yellow of 40, 1 red of 1500.
    fn queue() -> Occupancy {
        let mut queue = Occupancy::EMPTY;
        for (color, size) in
            [(Color::Green, 100), (Color::Yellow, 40), (Color::Red, 1500), (Color::Green, 100)]
        {
            queue.add(color, size);
        }
        queue
    }

    fn counts(queue: &Occupancy) -> ([u64; 3], u64, [f64; 3], u64) {
        let bytes = Color::ALL.map(|color| queue.of(color, Unit::Bytes));
        (Color::ALL.map(|color| queue.packets_of(color)), queue.packets(), bytes, queue.bytes())
    }

    #[test]
    fn packets_and_bytes_are_counted_by_color() {
        let mut queue = queue();
        assert_eq!(counts(&queue), ([2, 1, 1], 4, [200.0, 40.0, 1500.0], 1740));
        assert_eq!((queue.total(Unit::Packets), queue.total(Unit::Bytes)), (4.0, 1740.0));
        assert_eq!(queue.of(Color::Green, Unit::Packets), 2.0);
        queue.remove_if(false, Color::Green, 100);
        assert_eq!(counts(&queue).1, 4);
        queue.remove_if(true, Color::Green, 100);
        queue.remove(Color::Red, 1500);
        assert_eq!(counts(&queue), ([1, 1, 0], 2, [100.0, 40.0, 0.0], 140));
        assert!(!queue.is_empty());
        queue.remove(Color::Green, 100);
        queue.remove(Color::Yellow, 40);
        assert!(queue.is_empty() && queue == Occupancy::EMPTY);
    }

    #[test]
    fn what_is_overtaken_does_not_go_ahead() {
        let mut queue = queue();
        assert_eq!(queue.ahead(), 4);
        queue.set_overtaken(3);
        assert_eq!(queue.ahead(), 1);
    }

    #[test]
    fn a_packet_that_just_fits_is_not_too_many() {
        let queue = queue();
        let full = |size, limit| queue.is_full_for(&Header::new(FlowId(0), size), limit);
        assert!(!full(1, Depth::Packets(5)) && full(1, Depth::Packets(4)) && full(1, Depth::Packets(3)));
        assert!(!full(60, Depth::Bytes(1800)) && full(61, Depth::Bytes(1800)));
    }
}
