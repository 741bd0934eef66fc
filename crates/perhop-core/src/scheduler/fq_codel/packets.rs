//! The packets of all queues of a port, in one block of memory: no queue has memory of its own.

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

use crate::Packet;

/// The packets that wait, whatever their queue.
#[derive(Clone, Debug)]
pub(super) struct Packets<P> {
    /// The first is [`NOWHERE`] and never holds one: what follows the end of an empty queue is written there,
    /// without a branch.
    places: Vec<Slot<P>>,
    /// The first free place.
    free: u32,
}

/// No place.
const NOWHERE: u32 = 0;

/// A packet, if there is one, and the place of the next in its queue, or of the next free one.
#[derive(Clone, Debug)]
struct Slot<P> {
    packet: Option<P>,
    next: u32,
}

/// One queue, in order of arrival: the places of its first and last packet; the last means nothing while the
/// first is [`NOWHERE`].
#[derive(Clone, Debug)]
pub(super) struct Chain {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
}

impl Chain {
    pub(super) const EMPTY: Self = Self { head: NOWHERE, tail: NOWHERE, packets: 0, bytes: 0 };

    #[inline]
    pub(super) fn packets(&self) -> u64 {
        u64::from(self.packets)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<P: Packet> Packets<P> {
    pub(super) fn new() -> Self {
        Self { places: vec![Slot { packet: None, next: NOWHERE }], free: NOWHERE }
    }

    /// Adds a packet at the end of a queue.
    #[inline(always)]
    pub(super) fn push(&mut self, chain: &mut Chain, packet: P) {
        chain.packets += 1;
        chain.bytes += u64::from(packet.header().size);
        let place = self.put(packet);
        let is_empty = chain.head == NOWHERE;
        let last = if is_empty { NOWHERE } else { chain.tail };
        self.places[last as usize].next = place;
        chain.head = if is_empty { place } else { chain.head };
        chain.tail = place;
    }

    #[inline(always)]
    fn put(&mut self, packet: P) -> u32 {
        let filled = Slot { packet: Some(packet), next: NOWHERE };
        let place = self.free;
        if place == NOWHERE {
            self.places.push(filled);
            return u32::try_from(self.places.len() - 1).expect("fewer packets than 2^32");
        }
        let vacant = &mut self.places[place as usize];
        self.free = vacant.next;
        *vacant = filled;
        place
    }

    /// Takes the head of a queue, if it has one.
    #[inline(always)]
    pub(super) fn pop(&mut self, chain: &mut Chain) -> Option<P> {
        let place = &mut self.places[chain.head as usize];
        let packet = place.packet.take()?;
        let next = std::mem::replace(&mut place.next, self.free);
        self.free = std::mem::replace(&mut chain.head, next);
        chain.packets -= 1;
        chain.bytes -= u64::from(packet.header().size);
        Some(packet)
    }

    pub(super) fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.places.iter().filter_map(|place| place.packet.as_ref()).for_each(show);
    }
}
