//! Counts what passes the queue of one link, for runs that are [split](crate::splitting).

use std::collections::VecDeque;

use perhop_core::{Color, Imbalance, Instant, Port, Unit};

use crate::packet::SimPacket;
use crate::splitting::Importance;

/// What has become of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The packet has come to the queue; it may be dropped there at once.
    Arrived,
    /// The queue drops it.
    Dropped,
    /// The link begins to send it; it came to the queue then.
    Sent(Instant),
}

/// A packet of a class and a color, and what has become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) class: usize,
    pub(crate) color: Color,
    pub(crate) fate: Fate,
}

/// What a port has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// The port took a packet, which waits.
    Admitted,
    /// The port dropped a packet that came.
    Refused,
    /// The port sent or dropped a packet that came then.
    Left(Instant),
}

/// Packets of a class and a color that have arrived, were sent and were dropped.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    arrived: u64,
    sent: u64,
    dropped: u64,
}

/// The packets that passed one link since it was last read, and the [importance](Importance) of its queue.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    importance: Importance,
    /// What each class has counted of each color by now.
    counted: Vec<[Counted; 3]>,
    passed: Vec<Passed>,
    backlog: u64,
    /// Where importance [lingers](Importance::lingers): when each packet that waits came, and the backlog
    /// then, its own part included.
    found: VecDeque<(Instant, u64)>,
    /// The largest of these backlogs.
    largest: u64,
}

impl Tally {
    /// Begins to count at a port.
    pub(super) fn new(importance: Importance, port: &Port<SimPacket>) -> Self {
        let counted = vec![<[Counted; 3]>::default(); port.classes().count()];
        let (passed, found) = (Vec::new(), VecDeque::new());
        let mut tally = Self { importance, counted, passed, backlog: 0, found, largest: 0 };
        tally.count(port, Instant::ZERO);
        tally.passed.clear();
        tally
    }

    /// Returns the number of the link.
    pub(super) fn link(&self) -> usize {
        self.importance.link
    }

    /// Returns how important the state of the queue is.
    pub(super) fn importance(&self) -> u64 {
        self.backlog.max(self.largest)
    }

    /// Returns what has passed since this was last asked for.
    pub(super) fn passed(&mut self) -> impl Iterator<Item = Passed> {
        self.passed.drain(..)
    }

    /// Notes what the port has done just now.
    pub(super) fn look(&mut self, port: &Port<SimPacket>, now: Instant, act: Act) {
        let first = self.passed.len();
        let arrived = if let Act::Left(arrived) = act { arrived } else { now };
        self.count(port, arrived);
        if !self.importance.lingers {
            return;
        }
        let Self { importance, passed, backlog, found, largest, .. } = self;
        let comes = |one: &Passed| one.fate == Fate::Arrived && importance.is_of(one.class);
        match act {
            Act::Admitted if passed[first..].iter().any(comes) => {
                found.push_back((now, *backlog));
                *largest = (*largest).max(*backlog);
            }
            Act::Left(arrived) => {
                let place = found.partition_point(|&(came, _)| came < arrived);
                if found.get(place).is_some_and(|&(came, _)| came == arrived)
                    && let Some((_, backlog)) = found.remove(place)
                    && backlog == *largest
                {
                    *largest = found.iter().map(|&(_, backlog)| backlog).max().unwrap_or(0);
                }
            }
            Act::Admitted | Act::Refused => {}
        }
    }

    /// Notes what the port has counted since the last time; what it sent came `arrived`.
    fn count(&mut self, port: &Port<SimPacket>, arrived: Instant) {
        let Self { importance, counted, passed, backlog, .. } = self;
        *backlog = 0;
        for (class, (now, before)) in port.classes().zip(counted).enumerate() {
            if importance.is_of(class) {
                *backlog += match importance.unit {
                    Unit::Packets => now.occupancy.packets(),
                    Unit::Bytes => now.occupancy.bytes(),
                };
            }
            for color in Color::ALL {
                let (through, of) = (&now.through, color.index());
                let now = Counted {
                    arrived: through.arrived[of],
                    sent: through.sent[of],
                    dropped: through.dropped_of(color),
                };
                let fates = [
                    (now.arrived - before[of].arrived, Fate::Arrived),
                    (now.sent - before[of].sent, Fate::Sent(arrived)),
                    (now.dropped - before[of].dropped, Fate::Dropped),
                ];
                for (packets, fate) in fates {
                    passed.extend((0..packets).map(|_| Passed { class, color, fate }));
                }
                before[of] = now;
            }
        }
    }
}

/// Checks that a port has conserved its packets.
pub(super) fn balance(port: &Port<SimPacket>) -> Result<(), Imbalance> {
    port.classes().try_for_each(perhop_core::ClassCounters::balance)
}
