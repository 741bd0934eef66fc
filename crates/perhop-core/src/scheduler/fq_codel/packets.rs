//! The packets of all queues of a port, in one block of memory: no queue has memory of its own.

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

use crate::{Occupancy, Packet};

/// The packets that wait, whatever their queue.
#[derive(Clone, Debug)]
pub(super) struct Packets<P> {
    places: Vec<Place<P>>,
    free: Option<u32>,
}

/// A packet, if there is one, and the place of the next in its queue, or of the next free one.
#[derive(Clone, Debug)]
struct Place<P> {
    packet: Option<P>,
    next: Option<u32>,
}

/// One queue, in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    ends: Option<(u32, u32)>,
    occupancy: Occupancy,
}

impl Chain {
    pub(super) const EMPTY: Self = Self { ends: None, occupancy: Occupancy::EMPTY };

    #[inline]
    pub(super) fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }
}

impl<P: Packet> Packets<P> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: None }
    }

    /// Adds a packet at the end of a queue.
    #[inline(always)]
    pub(super) fn push(&mut self, chain: &mut Chain, packet: P) {
        let header = packet.header();
        chain.occupancy.add(header.color, header.size);
        let place = self.put(packet);
        chain.ends = Some(match chain.ends {
            None => (place, place),
            Some((head, tail)) => {
                self.places[tail as usize].next = Some(place);
                (head, place)
            }
        });
    }

    #[inline(always)]
    fn put(&mut self, packet: P) -> u32 {
        let filled = Place { packet: Some(packet), next: None };
        let Some(place) = self.free else {
            self.places.push(filled);
            return u32::try_from(self.places.len() - 1).expect("fewer packets than 2^32");
        };
        let vacant = std::mem::replace(&mut self.places[place as usize], filled);
        self.free = vacant.next;
        place
    }

    /// Takes the head of a queue, if it has one.
    #[inline(always)]
    pub(super) fn pop(&mut self, chain: &mut Chain) -> Option<P> {
        let (head, tail) = chain.ends?;
        let place = &mut self.places[head as usize];
        let packet = place.packet.take()?;
        chain.ends = place.next.map(|next| (next, tail));
        place.next = self.free.replace(head);
        let header = packet.header();
        chain.occupancy.remove(header.color, header.size);
        Some(packet)
    }

    pub(super) fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.places.iter().filter_map(|place| place.packet.as_ref()).for_each(show);
    }
}
