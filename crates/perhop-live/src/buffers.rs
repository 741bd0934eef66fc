//! Room for the packets inside the data plane, all of it taken once.

/// What the device that a packet came from has kept with it until it leaves, such as its Ethernet header.
/// The classifier reads bytes 22 to 60 ([`encapsulation`](crate::encapsulation)), which are 0 for a device
/// without a link layer; the others are the device's own.
pub type Head = [u8; HEAD];

/// Bytes in a [`Head`].
pub const HEAD: usize = 64;

/// Room for a fixed number of packets, each of at most a fixed size.
#[derive(Debug)]
pub struct Buffers {
    memory: Box<[u8]>,
    heads: Box<[Head]>,
    size: usize,
    free: Vec<Slot>,
}

/// The place of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

impl Buffers {
    /// Makes room for `count` packets of at most `size` bytes.
    pub fn new(count: u32, size: usize) -> Self {
        let memory = vec![0; count as usize * size].into_boxed_slice();
        let heads = vec![[0; HEAD]; count as usize].into_boxed_slice();
        Self { memory, heads, size, free: (0..count).rev().map(Slot).collect() }
    }

    /// Takes an empty place, if there is one.
    #[inline]
    pub fn take(&mut self) -> Option<Slot> {
        self.free.pop()
    }

    /// Takes a place back, which is empty again.
    #[inline]
    pub fn give_back(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// Returns what is kept with the packet of a place, and all of the place.
    #[inline]
    pub fn packet_mut(&mut self, slot: Slot) -> (&mut Head, &mut [u8]) {
        let begin = slot.0 as usize * self.size;
        (&mut self.heads[slot.0 as usize], &mut self.memory[begin..begin + self.size])
    }

    /// Returns how many places are taken.
    pub fn taken(&self) -> u64 {
        (self.memory.len() / self.size.max(1) - self.free.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_apart_and_come_back() {
        let mut buffers = Buffers::new(2, 4);
        let (a, b) = (buffers.take().unwrap(), buffers.take().unwrap());
        assert_eq!((buffers.take(), buffers.taken()), (None, 2));
        buffers.packet_mut(a).1.fill(1);
        buffers.packet_mut(b).1.fill(2);
        assert_eq!(buffers.packet_mut(a).1, [1; 4]);
        assert_eq!(buffers.packet_mut(b).1, [2; 4]);
        buffers.give_back(a);
        assert_eq!((buffers.take(), buffers.taken()), (Some(a), 2));
    }
}
