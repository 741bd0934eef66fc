//! Events besides the arrival of packets: timers of flows, control messages, samples of window controls and of the probe.

use perhop_core::Instant;

use crate::timed::Timed;

/// The number of what causes an event. Simultaneous events happen in the order of these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(pub u32);

/// An event at its time.
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
    /// Adds an event.
    fn add(&mut self, event: Event);
}

/// What causes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSource {
    /// A timer of the flow of this number.
    Timer(usize),
    /// A message on the channel of this number.
    Message(usize),
    /// The window control of this number.
    Control(usize),
    /// The probe, or the end of the warm-up.
    Probe,
    /// A flow of the population of this number begins.
    Arrival(usize),
}

/// How the sources of a run are numbered: flows, then channels, then window controls, then the probe, then populations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    pub(crate) flows: usize,
    pub(crate) channels: usize,
    pub(crate) controls: usize,
    pub(crate) populations: usize,
}

impl Sources {
    /// What has this number.
    #[inline]
    pub(crate) fn source(self, SourceId(id): SourceId) -> EventSource {
        let number = id as usize;
        let (channels, controls) = (self.flows, self.flows + self.channels);
        if number < channels {
            EventSource::Timer(number)
        } else if number < controls {
            EventSource::Message(number - channels)
        } else if number < controls + self.controls {
            EventSource::Control(number - controls)
        } else if number == controls + self.controls {
            EventSource::Probe
        } else {
            EventSource::Arrival(number - controls - self.controls - 1)
        }
    }

    /// The number of a window control.
    pub(crate) fn control(self, control: usize) -> SourceId {
        SourceId((self.flows + self.channels + control) as u32)
    }

    /// The number of a population.
    pub(crate) fn population(self, population: usize) -> SourceId {
        debug_assert!(population < self.populations);
        self.control(self.controls + 1 + population)
    }

    /// The number of the probe.
    pub(crate) fn probe(self) -> SourceId {
        self.control(self.controls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_numbered_in_the_order_of_simultaneous_events() {
        let sources = Sources { flows: 2, channels: 1, controls: 1, populations: 1 };
        let all: Vec<EventSource> = (0..6).map(|number| sources.source(SourceId(number))).collect();
        let expected = [
            EventSource::Timer(0),
            EventSource::Timer(1),
            EventSource::Message(0),
            EventSource::Control(0),
            EventSource::Probe,
            EventSource::Arrival(0),
        ];
        assert_eq!(all, expected);
        assert_eq!(
            (sources.control(0), sources.probe(), sources.population(0)),
            (SourceId(3), SourceId(4), SourceId(5))
        );
    }
}
