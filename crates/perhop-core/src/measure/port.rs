//! The statistics of a port, and a read-only view of it.

#![expect(clippy::inline_always, reason = "they are part of the simulator's event loop")]

use super::{DelayHistogram, RateHistory, Usage};
use crate::meter::MeterCounts;
use crate::{Bitrate, ClassCounters, Color, Counters, Duration, Imbalance, Instant};

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

    /// Checks that each class conserved its packets.
    ///
    /// # Errors
    /// The first class and color for which that does not hold.
    pub fn balance(&self) -> Result<(), Imbalance> {
        self.classes.iter().try_for_each(|(_, class)| class.balance())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// Statistics of a link of 8 Gbit/s, a byte a nanosecond, measured from 100 ns to 200 ns.
    fn statistics() -> PortStatistics {
        PortStatistics::new(Bitrate::from_bps(8_000_000_000).unwrap(), (at(100), at(200)), 1)
    }

    #[test]
    fn what_is_partly_outside_the_window_is_measured_within_it() {
        // Arrival and service; the nanoseconds that are waited in the window, whether the packet is sent in
        // it, and whether its delay counts.
        for (arrived, service, waited, sent, counts) in [
            (110, 140, 30, true, true),
            (100, 199, 99, true, true),
            (99, 100, 0, true, false),
            (50, 140, 40, true, false),
            (50, 60, 0, false, false),
            (99, 99, 0, false, false),
            (150, 200, 50, false, true),
            (100, 200, 100, false, true),
            (150, 260, 50, false, false),
            (50, 260, 100, false, false),
            (210, 260, 0, false, false),
        ] {
            let mut all = statistics();
            all.serve(0, at(arrived), at(service), 10, Color::Green);
            let case = (arrived, service);
            assert_eq!(all.mean_packets(), f64::from(waited) / 100.0, "{case:?}");
            let (bytes, last) = if sent { (10, (at(service), 10)) } else { (0, (at(100), 0)) };
            assert_eq!((all.bytes, all.last), (bytes, last), "{case:?}");
            let delays = super::super::DelayOutcome::of(&DelayHistogram::sum(&all.delays));
            let mut expected = DelayHistogram::default();
            if counts {
                expected.record(Color::Green, Duration::from_nanos(service - arrived));
            }
            let expected = super::super::DelayOutcome::of(&expected);
            assert_eq!(format!("{delays:?}"), format!("{expected:?}"), "{case:?}");
        }
    }

    #[test]
    fn a_transmission_at_the_end_counts_as_far_as_it_got() {
        let mut all = statistics();
        all.serve(0, at(110), at(120), 20, Color::Green);
        assert_eq!(all.usage().utilization, 0.2);
        // 10 of its 30 bytes are sent within the window.
        all.serve(0, at(130), at(190), 30, Color::Green);
        assert_eq!(all.usage().utilization, 0.3);
        assert_eq!(all.usage().mean_rate_bps, 8e9);
        assert_eq!(all.rate_changes(), []);
    }

    #[test]
    fn what_became_of_packets_since_a_time() {
        let counts = |lost, reordered| TransitCounts { lost, reordered };
        assert_eq!(counts(Some(9), Some(7)).since(counts(Some(4), Some(1))), counts(Some(5), Some(6)));
        assert_eq!(counts(Some(9), None).since(TransitCounts::default()), counts(Some(9), None));
    }

    #[test]
    fn a_view_adds_up_the_classes() {
        let class = |color, packets| {
            let mut class = ClassCounters::default();
            for _ in 0..packets {
                class.through.arrive(color);
                class.occupancy.add(color, 100);
            }
            class.through.send(color);
            class
        };
        let (first, second) = (class(Color::Green, 3), class(Color::Red, 5));
        let (statistics, meter) = (statistics(), MeterCounts::default());
        let view = PortView {
            classes: vec![("first", &first), ("second", &second)],
            meters: vec![("meter", &meter)],
            statistics: &statistics,
            gauges: Vec::new(),
            transit: TransitCounts { lost: Some(1), reordered: None },
        };
        assert_eq!(view.waiting(), [3, 0, 5]);
        let (arrived, sent) = (view.counters().arrived, view.counters().sent);
        assert_eq!((arrived, sent), ([3, 0, 5], [1, 0, 1]));
        let classes = vec![first.through.clone(), second.through.clone()];
        let counted = Counted { classes, meters: vec![meter.clone()], transit: view.transit };
        assert_eq!(view.counted(), counted);
        assert_eq!(view.counters().since(&first.through), second.through);
    }
}
