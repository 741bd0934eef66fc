//! What a run with splitting counts.

use perhop_core::measure::{delay_bin, lower_edge};
use perhop_core::{Duration, Instant};
use serde::Serialize;

use super::{Event, Importance};
use crate::engine::reference::{Fate, Passed};

/// What a run counted after its warm-up. A count is a sum of weights, whose expectation is the expected count
/// of a plain run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// For each class of the queue.
    pub classes: Vec<ClassCounts>,
    /// Waiting times of the packets that the event is about, which came after the warm-up and were sent.
    pub waits: Vec<WaitBin>,
    /// How often the event happened to them.
    pub rare: f64,
    /// The sum over the stays above the first level of the square of how often the event happened: the
    /// variance of what a plain run counts of an event that is so rare that its stays are independent.
    pub squares: f64,
    /// Events of all trials.
    pub events: u64,
    /// Events of the main trial, a plain run.
    pub main_events: u64,
    /// What happened at each level.
    pub levels: Vec<LevelCounts>,
    /// Stays of the main trial above the first level.
    pub stays: u64,
    /// Stays in which the event happened, in any trial.
    pub rare_stays: u64,
}

/// Packets of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClassCounts {
    /// The class's name.
    pub name: String,
    /// Packets that came to the queue, by color.
    pub arrived: [f64; 3],
    /// Packets that it dropped, by color.
    pub dropped: [f64; 3],
    /// Packets that the link sent, by color.
    pub sent: [f64; 3],
}

/// Waiting times of one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WaitBin {
    /// The shortest wait of the bin in seconds.
    pub from_s: f64,
    /// The longest wait that was seen in it, in seconds.
    pub longest_s: f64,
    /// Packets that waited so long.
    pub packets: f64,
}

/// What happened at a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LevelCounts {
    /// How often a trial rose to it.
    pub rises: u64,
    /// The trials that were copied there.
    pub copies: u64,
}

/// The packets that are counted, and when.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) importance: Importance,
    pub(super) event: Event,
    /// After the first time, and up to the second.
    pub(super) window: (Instant, Instant),
}

impl Rule {
    /// Returns the wait of a packet whose fate this is, if it counts: of the class that is watched, and come
    /// after the warm-up.
    fn wait(&self, Passed { class, fate, .. }: Passed, now: Instant) -> Option<Duration> {
        match fate {
            Fate::Sent(arrived) if self.importance.is_of(class) && arrived >= self.window.0 => {
                Some(now.since(arrived))
            }
            _ => None,
        }
    }

    /// Returns whether this is the event.
    pub(super) fn is_rare(&self, passed: Passed, now: Instant) -> bool {
        match self.event {
            Event::Loss => passed.fate == Fate::Dropped && self.importance.is_of(passed.class),
            Event::Wait(least) => self.wait(passed, now).is_some_and(|wait| wait > least),
        }
    }
}

/// Sums of weights by the number of the bin, and the longest wait of each.
pub(super) type Waits = Vec<(f64, Duration)>;

impl Counts {
    /// Counts a packet with this weight.
    pub(super) fn add(&mut self, passed: Passed, weight: f64, now: Instant, rule: &Rule, waits: &mut Waits) {
        let Passed { class, color, fate } = passed;
        let class = &mut self.classes[class];
        let counts = match fate {
            Fate::Arrived => &mut class.arrived,
            Fate::Dropped => &mut class.dropped,
            Fate::Sent(_) => &mut class.sent,
        };
        counts[color.index()] += weight;
        if let Some(wait) = rule.wait(passed, now) {
            let bin = delay_bin(wait);
            if bin >= waits.len() {
                waits.resize(bin + 1, (0.0, Duration::ZERO));
            }
            let (packets, longest) = &mut waits[bin];
            *packets += weight;
            *longest = wait.max(*longest);
        }
    }

    /// Makes rows of the waits that were counted.
    pub(super) fn note_waits(&mut self, waits: &Waits) {
        let seen = waits.iter().enumerate().filter(|(_, (packets, _))| *packets > 0.0);
        let row = |(bin, &(packets, longest)): (usize, &(f64, Duration))| WaitBin {
            from_s: lower_edge(bin).as_secs_f64(),
            longest_s: longest.as_secs_f64(),
            packets,
        };
        self.waits = seen.map(row).collect();
    }
}
