//! Probes: what is looked at in regular intervals. They read and never change.

use perhop_core::measure::PortView;
use perhop_core::{ClassCounters, Color, Duration, Instant};

use crate::network::Network;

/// Samples of every flow and every ruled queue. Row k of a flow table is the state at `times[k]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// When the probes looked.
    pub times: Vec<Instant>,
    /// First deliveries since the last look, in bit/s; one row a look, one column a flow.
    pub throughput_bps: Vec<f64>,
    /// Congestion windows in packets; NaN for a flow that has none.
    pub window_packets: Vec<f64>,
    /// Smoothed round-trip times in seconds; NaN before the first.
    pub rtt_s: Vec<f64>,
    /// Windows in packets as the control of the flow's path last saw them; NaN for a flow without one.
    pub seen_packets: Vec<f64>,
    /// One for each link with a ruled queue, in order.
    pub queues: Vec<QueueSeries>,
}

/// Samples of one queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSeries {
    /// The link's name.
    pub link: String,
    /// Packets waiting.
    pub packets: Vec<f64>,
    /// What the queue and its rules keep track of, by name: averages, and whatever they steer by. With several queues, a
    /// queue's name stands before.
    pub gauges: Vec<(String, Vec<f64>)>,
    /// For a queue that tells classes of packets apart, one for each, in order; else empty.
    pub classes: Vec<ClassSeries>,
}

/// Samples of one class of packets in a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassSeries {
    /// The class's name.
    pub name: String,
    /// Packets waiting.
    pub packets: Vec<f64>,
    /// Packets that came since the run began.
    pub arrived: Vec<f64>,
    /// Packets that were dropped since the run began.
    pub dropped: Vec<f64>,
}

impl Series {
    /// Makes room for all looks, so that no table is ever copied to make room for more.
    pub(crate) fn reserve(&mut self, looks: &Looks) {
        for table in
            [&mut self.throughput_bps, &mut self.window_packets, &mut self.rtt_s, &mut self.seen_packets]
        {
            table.reserve_exact(looks.rows * looks.flows);
        }
    }

    /// Forgets what was left for looks that never came.
    pub(crate) fn end(&mut self, flows: usize) {
        let values = self.times.len() * flows;
        for table in
            [&mut self.throughput_bps, &mut self.window_packets, &mut self.rtt_s, &mut self.seen_packets]
        {
            table.truncate(values);
        }
    }
}

impl QueueSeries {
    /// No samples yet of this link's queue.
    pub fn of(link: &str) -> Self {
        Self { link: link.into(), ..Self::default() }
    }

    /// Adds a look at its port.
    pub fn record(&mut self, port: &PortView<'_>) {
        self.packets.push(port.waiting().iter().sum::<u64>() as f64);
        for (name, value) in &port.gauges {
            match self.gauges.iter_mut().find(|(known, _)| known == name) {
                Some((_, samples)) => samples.push(*value),
                None => self.gauges.push((name.clone(), vec![*value])),
            }
        }
        if port.classes.len() > 1 {
            let empty =
                |(name, _): &(&str, _)| ClassSeries { name: (*name).into(), ..ClassSeries::default() };
            if self.classes.is_empty() {
                self.classes = port.classes.iter().map(empty).collect();
            }
            self.classes.iter_mut().zip(&port.classes).for_each(|(series, (_, class))| series.record(class));
        }
    }
}

impl ClassSeries {
    fn record(&mut self, class: &ClassCounters) {
        let dropped: u64 = Color::ALL.into_iter().map(|color| class.through.dropped_of(color)).sum();
        self.packets.push(class.occupancy.packets() as f64);
        self.arrived.push(class.through.arrived.iter().sum::<u64>() as f64);
        self.dropped.push(dropped as f64);
    }
}

/// When somebody looks at flows: the probes, in regular intervals, and once the end of the warm-up.
#[derive(Clone, Debug)]
pub(crate) struct Looks {
    interval: Option<Duration>,
    warmup: Instant,
    end: Instant,
    flows: usize,
    /// How often the probes look within the run.
    rows: usize,
    /// The clock's last look.
    now: Instant,
}

impl Looks {
    pub(crate) fn new(network: &Network) -> Self {
        Self {
            interval: network.probe_interval,
            warmup: Instant::ZERO + network.warmup,
            end: Instant::ZERO + network.duration,
            flows: network.flows.len(),
            rows: network
                .probe_interval
                .map_or(0, |interval| (network.duration.as_nanos() / interval.as_nanos()) as usize),
            now: Instant::ZERO,
        }
    }

    /// The end of the run.
    pub(crate) fn end(&self) -> Instant {
        self.end
    }

    /// What is measured lies between these times.
    pub(crate) fn measured(&self) -> (Instant, Instant) {
        (self.warmup, self.end)
    }

    /// The first look. Nothing has happened by time zero, so nobody looks then.
    pub(crate) fn first(&self) -> Instant {
        self.after(Instant::ZERO)
    }

    /// The first look after that time.
    pub(crate) fn after(&self, last: Instant) -> Instant {
        let probe = self.interval.map_or(Instant::NEVER, |interval| {
            let looks = last.as_nanos() / interval.as_nanos();
            Instant::ZERO + interval.saturating_mul(looks + 1)
        });
        if self.warmup > last { probe.min(self.warmup) } else { probe }
    }

    /// The clock has come to a look.
    pub(crate) fn come_to(&mut self, now: Instant) {
        self.now = now;
    }

    /// Whether a look lies before that time; with `None`, whether the clock has come to it.
    pub(crate) fn is_passed(&self, look: Instant, before: Option<Instant>) -> bool {
        before.map_or(look <= self.now, |before| look < before)
    }

    /// Whether the clock's look ends the warm-up.
    pub(crate) fn warmup_is_over(&self) -> bool {
        self.ends_warmup(self.now)
    }

    /// Whether this look ends the warm-up.
    pub(crate) fn ends_warmup(&self, look: Instant) -> bool {
        look == self.warmup
    }

    /// If this look is the probes', its row in the series, and their interval.
    pub(crate) fn row(&self, look: Instant) -> Option<(usize, Duration)> {
        let interval = self.interval?;
        let (looks, rest) = (look.as_nanos() / interval.as_nanos(), look.as_nanos() % interval.as_nanos());
        (rest == 0).then(|| (looks as usize - 1, interval))
    }

    /// Writes a flow's value of a row, which may be one that the clock has not come to, or never does.
    pub(crate) fn write(&self, table: &mut Vec<f64>, row: usize, flow: u32, value: f64) {
        if row >= self.rows {
            return;
        }
        let rows = (row + 1) * self.flows;
        if table.len() < rows {
            table.resize(rows, f64::NAN);
        }
        table[row * self.flows + flow as usize] = value;
    }
}
