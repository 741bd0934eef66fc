//! The statistics of a port, and a read-only view of it.

#![expect(clippy::inline_always, reason = "they are part of the simulator's event loop")]

use super::{DelayHistogram, RateHistory, Usage};
use crate::meter::MeterCounts;
use crate::{Bitrate, ClassCounters, Color, Counters, Duration, Instant};

/// The statistics of a port besides counts of packets.
#[derive(Clone, Debug)]
pub struct PortStatistics {
    window: (Instant, Instant),
    /// Sum of the times that packets waited within the window, in nanoseconds.
    waited: u128,
    /// Bytes whose transmission began within the window, and the last of these transmissions: its start and
    /// size.
    bytes: u64,
    last: (Instant, u16),
    /// The rates of the link.
    pub rates: Box<RateHistory>,
    /// Waiting times of packets that arrived after the warm-up, by class.
    pub delays: Vec<DelayHistogram>,
}

impl PortStatistics {
    /// Nothing counted yet of a link of this rate. Waiting times, utilization and mean length cover `window`.
    pub fn new(rate: Bitrate, window: (Instant, Instant), classes: usize) -> Self {
        let delays = vec![DelayHistogram::default(); classes];
        let rates = Box::new(RateHistory::new(rate));
        Self { window, waited: 0, bytes: 0, last: (window.0, 0), rates, delays }
    }

    /// Waiting times are [noted](DelayHistogram::note) before they are counted.
    pub fn note_delays(&mut self) {
        self.delays.iter_mut().for_each(DelayHistogram::note);
    }

    /// A packet that came at `arrived` begins its transmission, now or later.
    #[inline(always)]
    pub fn serve(&mut self, class: usize, arrived: Instant, service: Instant, size: u16, color: Color) {
        let (begin, end) = self.window;
        if arrived < begin || service >= end {
            return self.serve_outside(class, arrived, service, size, color);
        }
        let waited = service.after(arrived);
        self.waited += u128::from(waited.as_nanos());
        self.bytes += u64::from(size);
        self.last = (service, size);
        self.delays[class].record(color, waited);
    }

    /// As [`serve`](Self::serve), not quite within the window.
    #[cold]
    fn serve_outside(&mut self, class: usize, arrived: Instant, service: Instant, size: u16, color: Color) {
        let (begin, end) = self.window;
        self.wait(arrived, service);
        if service >= begin && service < end {
            self.bytes += u64::from(size);
            self.last = (service, size);
        }
        if arrived >= begin && service <= end {
            self.delays[class].record(color, service.since(arrived));
        }
    }

    /// A packet waited from `arrived` until then.
    #[inline]
    pub fn wait(&mut self, arrived: Instant, until: Instant) {
        let (begin, end) = self.window;
        self.waited += u128::from(until.min(end).since(arrived.max(begin)).as_nanos());
    }

    /// Mean number of packets waiting over the measured time, by Little's law: the sum of their waits over
    /// the time.
    pub fn mean_packets(&self) -> f64 {
        self.waited as f64 / self.window.1.since(self.window.0).as_nanos() as f64
    }

    /// The rates of the link over the measured time and before; empty if it is always the same.
    pub(super) fn rate_changes(&self) -> Vec<(Instant, u64)> {
        self.rates.changes_before(self.window.1)
    }

    /// What the link could send and did, the packet at the end counted as far as it got.
    pub fn usage(&self) -> Usage {
        self.usage_of(Duration::ZERO, |from, to| self.rates.capacity(from, to))
    }

    /// What a link could send and did that follows a trace. `of_trace` returns the trace's capacity after one
    /// time and up to another. `at_once`: the transmission of a packet takes no time, as with delivery
    /// opportunities.
    pub fn usage_by(&self, at_once: bool, of_trace: impl Fn(Instant, Instant) -> u128) -> Usage {
        let earlier = Duration::from_nanos(u64::from(at_once));
        self.usage_of(earlier, |from, to| self.rates.capacity_by(from, to, &of_trace))
    }

    /// The usage by this capacity. The transmission of the last packet uses capacity from `earlier` before
    /// its start on.
    fn usage_of(&self, earlier: Duration, capacity: impl Fn(Instant, Instant) -> u128) -> Usage {
        let ((begin, end), (service, size)) = (self.window, self.last);
        let from = Instant::ZERO + service.since(Instant::ZERO + earlier);
        Usage::of(end.since(begin), capacity(begin, end), self.bytes, (size, capacity(from, end)))
    }
}

/// What became of packets after a link had sent them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransitCounts {
    /// Packets that were lost; `None` for a link that loses none.
    pub lost: Option<u64>,
    /// Packets that arrived after one that was sent later: reordered, as RFC 4737 counts. `None` for a link
    /// that keeps their order.
    pub reordered: Option<u64>,
}

impl TransitCounts {
    /// What was counted after `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let new = |now: Option<u64>, then: Option<u64>| Some(now? - then.unwrap_or(0));
        Self { lost: new(self.lost, earlier.lost), reordered: new(self.reordered, earlier.reordered) }
    }
}

/// What a port has counted by some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Of each class.
    pub classes: Vec<Counters>,
    /// Of each meter before the queue.
    pub meters: Vec<MeterCounts>,
    /// Of packets that were sent.
    pub transit: TransitCounts,
}

/// A read-only view of a port.
#[derive(Clone, Debug)]
pub struct PortView<'a> {
    /// The name and the counters of each class of packets that the queue distinguishes; at least one.
    pub classes: Vec<(&'a str, &'a ClassCounters)>,
    /// The name and the counts of each meter before the queue.
    pub meters: Vec<(&'a str, &'a MeterCounts)>,
    /// Waiting times and bytes.
    pub statistics: &'a PortStatistics,
    /// What the queue and its rules keep track of.
    pub gauges: Vec<(String, f64)>,
    /// What became of packets that were sent.
    pub transit: TransitCounts,
}

impl PortView<'_> {
    /// Packets of each color that wait.
    pub fn waiting(&self) -> [u64; 3] {
        Color::ALL.map(|color| self.classes.iter().map(|(_, class)| class.occupancy.packets_of(color)).sum())
    }

    /// What went through each class and each meter so far.
    pub fn counted(&self) -> Counted {
        Counted {
            classes: self.classes.iter().map(|(_, class)| class.through.clone()).collect(),
            meters: self.meters.iter().map(|&(_, counts)| counts.clone()).collect(),
            transit: self.transit,
        }
    }

    /// Everything that went through.
    pub fn counters(&self) -> Counters {
        let mut all = Counters::default();
        self.classes.iter().for_each(|(_, class)| all.add(&class.through));
        all
    }
}
