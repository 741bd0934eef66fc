//! The delays of a [return path](crate::engine::batched::fixed_delay) on which no packet waits.

use std::num::NonZeroU32;

use perhop_core::{Duration, Instant};

/// The delays from the end of the last link of a flow's data to its receiver, and with the ACK back to the
/// sender, in nanoseconds: less than four seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct FixedDelay {
    to_receiver: u32,
    to_sender: NonZeroU32,
}

impl FixedDelay {
    /// The delays to the receiver and with the ACK back to the sender; `None` if one of them is too long, or
    /// if the latter is zero.
    pub(in super::super) fn new(to_receiver: Duration, to_sender: Duration) -> Option<Self> {
        let fits = |span: Duration| u32::try_from(span.as_nanos()).ok();
        Some(Self { to_receiver: fits(to_receiver)?, to_sender: NonZeroU32::new(fits(to_sender)?)? })
    }

    /// Returns when a packet that left the link at `at` reaches its receiver.
    #[inline]
    pub(in super::super) fn at_receiver(self, at: Instant) -> Instant {
        at.later(Duration::from_nanos(u64::from(self.to_receiver)))
    }

    /// Returns when the ACK of a packet that left the link at `at` reaches the sender.
    #[inline]
    pub(in super::super) fn at_sender(self, at: Instant) -> Instant {
        at.later(Duration::from_nanos(u64::from(self.to_sender.get())))
    }
}
