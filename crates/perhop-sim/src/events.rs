//! What happens besides the arrival of packets: timers of flows, control messages, window controls, the probe.

use perhop_core::Instant;

use crate::calendar::{Calendar, Timed};

/// A source of events. At one time, events happen in the order of their sources' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(pub u32);

/// Something that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at: Instant,
    pub(crate) source: SourceId,
}

impl Timed for Event {
    #[inline]
    fn at(&self) -> Instant {
        self.at
    }
    #[inline]
    fn rank(&self) -> u64 {
        self.source.0.into()
    }
}

/// Pending events.
pub(crate) type EventQueue = Calendar<Event>;
