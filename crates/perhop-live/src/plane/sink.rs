//! What a data plane calls with packets that leave it or are lost.

use perhop_core::{Color, Instant};

use crate::buffers::Head;
use crate::counts::Loss;

/// Receives the packets that leave a data plane, and those that it loses.
pub trait Sink {
    /// Takes a packet that leaves by this device; its departure was scheduled at `due`.
    fn deliver(&mut self, device: usize, packet: &[u8], due: Instant);
    /// Takes a packet as [`deliver`](Self::deliver), with the link-layer data that the device it came from
    /// has stored with it.
    #[inline]
    fn deliver_framed(&mut self, device: usize, _head: &Head, packet: &[u8], due: Instant) {
        self.deliver(device, packet, due);
    }
    /// Learns that a packet is lost.
    fn lose(&mut self, _packet: &[u8], _why: Loss, _now: Instant) {}
    /// Learns that a packet is lost that came from this device.
    #[inline]
    fn lose_from(&mut self, _device: usize, packet: &[u8], why: Loss, now: Instant) {
        self.lose(packet, why, now);
    }
    /// Learns of a loss as [`lose_from`](Self::lose_from), with the link-layer data that the device it came
    /// from has stored with it, and the packet's color at its loss, if a stream had taken it.
    #[inline]
    fn lose_framed(
        &mut self,
        device: usize,
        _head: &Head,
        (packet, _color): (&[u8], Option<Color>),
        why: Loss,
        now: Instant,
    ) {
        self.lose_from(device, packet, why, now);
    }
}
