//! Events besides the arrival of packets: timers of flows, control messages, samples of window controls and
//! of the probe.

use perhop_core::Instant;

use crate::timed::Timed;

/// The number of what causes an event. Simultaneous events happen in the order of these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(pub u32);

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

/// A priority queue of events: each engine has its own.
pub(crate) trait Schedule {
    fn add(&mut self, event: Event);
}

/// What causes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSource {
    /// A timer of the flow of this number.
    Timer(usize),
    /// A flow of the population of this number begins.
    Arrival(usize),
    /// The user of an application of this number wakes, or something has come for it.
    User(usize),
    /// A message on the channel of this number.
    Message(usize),
    /// The window control of this number.
    Control(usize),
    /// The probe, or the end of the warm-up.
    Probe,
}

/// The first number of a source that is no flow. Flows of populations take numbers beyond those of the
/// network's flows, as many as are open at once.
const BEYOND_FLOWS: usize = 1 << 31;

/// How the sources of a run are numbered: flows, then populations, then users of applications, then channels,
/// then window controls, then the probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    pub(crate) populations: usize,
    pub(crate) users: usize,
    pub(crate) channels: usize,
    pub(crate) controls: usize,
}

impl Sources {
    #[inline]
    pub(crate) fn source(self, SourceId(id): SourceId) -> EventSource {
        let number = id as usize;
        if number < BEYOND_FLOWS { EventSource::Timer(number) } else { self.other(number - BEYOND_FLOWS) }
    }

    fn other(self, number: usize) -> EventSource {
        let Self { populations, users, channels, controls } = self;
        let first_channel = populations + users;
        if number < populations {
            EventSource::Arrival(number)
        } else if number < first_channel {
            EventSource::User(number - populations)
        } else if number < first_channel + channels {
            EventSource::Message(number - first_channel)
        } else if number < first_channel + channels + controls {
            EventSource::Control(number - first_channel - channels)
        } else {
            EventSource::Probe
        }
    }

    pub(crate) fn population(population: usize) -> SourceId {
        SourceId((BEYOND_FLOWS + population) as u32)
    }

    pub(crate) fn user(self, user: usize) -> SourceId {
        SourceId((BEYOND_FLOWS + self.populations + user) as u32)
    }

    /// Returns the number of a channel, where there are so many populations and users.
    pub(crate) fn channel((populations, users): (usize, usize), channel: usize) -> SourceId {
        SourceId((BEYOND_FLOWS + populations + users + channel) as u32)
    }

    /// Returns the number of a window control.
    pub(crate) fn control(self, control: usize) -> SourceId {
        Self::channel((self.populations, self.users), self.channels + control)
    }

    pub(crate) fn probe(self) -> SourceId {
        self.control(self.controls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_numbered_in_the_order_of_simultaneous_events() {
        let sources = Sources { populations: 2, users: 2, channels: 1, controls: 1 };
        let ids = [
            (SourceId(0), EventSource::Timer(0)),
            (SourceId(0x7fff_ffff), EventSource::Timer(0x7fff_ffff)),
            (Sources::population(0), EventSource::Arrival(0)),
            (Sources::population(1), EventSource::Arrival(1)),
            (sources.user(0), EventSource::User(0)),
            (sources.user(1), EventSource::User(1)),
            (Sources::channel((2, 2), 0), EventSource::Message(0)),
            (sources.control(0), EventSource::Control(0)),
            (sources.probe(), EventSource::Probe),
        ];
        assert!(ids.iter().all(|&(id, source)| sources.source(id) == source));
        assert!(ids.is_sorted_by_key(|&(id, _)| id));
        assert_eq!(sources.probe(), SourceId((1 << 31) + 6));
    }
}
