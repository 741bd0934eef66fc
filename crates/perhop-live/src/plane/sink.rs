//! What a data plane calls with packets that leave it or are lost.

use perhop_core::{Color, Instant};

use crate::buffers::Head;
use crate::counts::Loss;

/// Receives the packets that leave a data plane, and those that it loses.
pub trait Sink {
    /// Takes a packet that leaves by this device, with what the device that it came from has kept with it;
    /// its departure was scheduled at `due`.
    fn deliver(&mut self, device: usize, head: &Head, packet: &[u8], due: Instant);
    /// Learns that a packet is lost.
    fn lose(&mut self, _lost: &Lost<'_>, _now: Instant) {}
}

/// A packet that is lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost<'a> {
    /// The device that it came from, and what that has kept with it.
    pub device: usize,
    /// See `device`.
    pub head: &'a Head,
    /// The bytes of the packet.
    pub packet: &'a [u8],
    /// The color of the packet at its loss, if a stream had taken it.
    pub color: Option<Color>,
    /// Why the packet is lost.
    pub why: Loss,
}
