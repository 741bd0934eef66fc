//! Schedulers: who is sent next. A discipline owns its packets; both drivers drive it by the same three calls.

mod fifo;

pub use fifo::{Fifo, FifoParams};

use crate::aqm::Reason;
use crate::{BlockInfo, Context, Counters, Instant, Occupancy, Role};

/// What a discipline did when asked for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeued<P> {
    /// Send this packet now.
    Sent(P),
    /// This packet was dropped from the queue; ask again.
    Dropped(P, Reason),
    /// Nothing to send before the given time, or, if none, before the next arrival.
    Wait(Option<Instant>),
}

/// A queue with its rules: owns packets between `enqueue` and `dequeue`.
pub trait Discipline<P> {
    /// Takes a packet, or gives it back with the reason for its loss.
    ///
    /// # Errors
    /// The packet and why it was dropped.
    fn enqueue(&mut self, packet: P, cx: &mut Context<'_>) -> Result<(), (P, Reason)>;

    /// Hands over the next packet; called when the link is free.
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Dequeued<P>;

    /// What waits.
    fn occupancy(&self) -> &Occupancy;

    /// What went through.
    fn counters(&self) -> &Counters;
}

/// The schedulers that a scenario can name.
pub fn registered() -> Vec<BlockInfo> {
    vec![BlockInfo::of::<Fifo<crate::Header>>(Role::Discipline)]
}
