//! Measures of a link, of its queue, and of each class of packets that the queue distinguishes.

use std::marker::PhantomData;

use perhop_core::measure::{ClassOutcome, DelayOutcome, LinkOutcome};
use perhop_core::{Color, Counters};

use super::Unit::{BitsPerSecond, Fraction, Packets, Seconds};
use super::Value::{Count, Number, Optional, OptionalCount};
use super::{Compared, Measure, Summary, Table};

/// Every measure of a link besides those of its queue, in the order of the columns. All exclude the warm-up.
pub const LINK: &[Measure<LinkOutcome>] = &[
    Measure {
        name: "rate_bps",
        unit: BitsPerSecond,
        description: "The link's rate, at the start of the run if that changes.",
        value: Number(|link| link.rate.as_bps() as f64),
        summary: None,
    },
    Measure {
        name: "mean_rate_bps",
        unit: BitsPerSecond,
        description: "Mean of the link's rate over the measured interval, of a trace by its opportunities or rates; 0 during an outage.",
        value: Number(|link| link.mean_rate_bps),
        summary: None,
    },
    Measure {
        name: "utilization",
        unit: Fraction,
        description: "Bits that the link transmitted over the integral of its rate (`mean_rate_bps` times the measured interval); none for a \
            link that could send nothing.",
        value: Optional(|link| (link.mean_rate_bps > 0.0).then_some(link.utilization)),
        summary: Some(Summary {
            table: Table::All(0),
            importance: u8::MAX,
            compared: Some(Compared { id: "utilization", margin: "utilization" }),
            ..Summary::of("used")
        }),
    },
    Measure {
        name: "policed_packets",
        unit: Packets,
        description: "Packets that the link's own meters dropped before the queue; none for a link without meters.",
        value: OptionalCount(policed),
        summary: None,
    },
    Measure {
        name: "policing_ratio",
        unit: Fraction,
        description: "Packets that the link's own meters dropped before the queue, over all packets that came to the link, data and ACKs; \
            none for a link without meters, and where nothing came.",
        value: Optional(|link| {
            let policed = policed(link)?;
            ratio(policed, policed + all(link.measured.arrived))
        }),
        summary: Some(Summary { table: Table::All(15), importance: 145, ..Summary::of("policed") }),
    },
    Measure {
        name: "lost_packets",
        unit: Packets,
        description: "Packets, data and ACKs, that the link lost after it had sent them (keys `loss` and `burst-loss`), which are no drops of \
            its queue; none for a link that loses no packets, and on real packets.",
        value: OptionalCount(|link| link.transit.lost),
        summary: None,
    },
    Measure {
        name: "link_loss",
        unit: Fraction,
        description: "Packets, data and ACKs, that the link lost after it had sent them (keys `loss` and `burst-loss`), over all that it sent; \
            none for a link that loses no packets, on real packets, and for a link that sent nothing.",
        value: Optional(|link| ratio(link.transit.lost?, all(link.measured.sent))),
        summary: Some(Summary { table: Table::All(12), importance: 60, ..Summary::of("link loss") }),
    },
    Measure {
        name: "reordered_packets",
        unit: Packets,
        description: "Packets, data and ACKs, that reached the far end of the link after one that was sent later (RFC 4737); none for a link that \
            keeps their order, and on real packets.",
        value: OptionalCount(|link| link.transit.reordered),
        summary: None,
    },
    Measure {
        name: "reordering_ratio",
        unit: Fraction,
        description: "Packets, data and ACKs, that reached the far end of the link after one that was sent later (RFC 4737), over all that the \
            link sent; none for a link that keeps their order, on real packets, and for a link that sent nothing.",
        value: Optional(|link| ratio(link.transit.reordered?, all(link.measured.sent))),
        summary: Some(Summary { table: Table::All(14), importance: 55, ..Summary::of("reordered") }),
    },
    Measure {
        name: "mean_queue_packets",
        unit: Packets,
        description: "Mean number of packets that wait.",
        value: Number(|link| link.mean_queue_packets),
        summary: Some(Summary {
            long_label: Some("mean queue"),
            table: Table::All(20),
            importance: 80,
            compared: Some(Compared { id: "queue", margin: "queue" }),
            ..Summary::of("queue")
        }),
    },
];

/// What the outcomes of a link's queue as a whole and of one of its classes have in common.
pub trait Queue: 'static {
    /// Packets over the whole run.
    fn counters(&self) -> &Counters;
    /// Packets after the warm-up.
    fn measured(&self) -> &Counters;
    /// Packets that waited at the end, by color.
    fn waiting(&self) -> [u64; 3];
    /// Waiting times after the warm-up.
    fn delays(&self) -> &DelayOutcome;
}

/// The measures of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueMeasures<O>(PhantomData<O>);

impl<O: Queue> QueueMeasures<O> {
    /// Every measure of a queue, in the order of the columns. They exclude the warm-up unless they say
    /// otherwise.
    pub const ALL: &'static [Measure<O>] = &[
        Measure {
            name: "arrived_packets",
            unit: Packets,
            description: "Packets that came to the queue.",
            value: Count(|queue| all(queue.measured().arrived)),
            summary: None,
        },
        Measure {
            name: "sent_packets",
            unit: Packets,
            description: "Packets whose transmission began.",
            value: Count(|queue| all(queue.measured().sent)),
            summary: None,
        },
        Measure {
            name: "dropped_packets",
            unit: Packets,
            description: "Packets that the queue dropped.",
            value: Count(|queue| all(dropped(queue.measured()))),
            summary: Some(Summary { table: Table::None, ..Summary::of("dropped") }),
        },
        Measure {
            name: "loss",
            unit: Fraction,
            description: "Packets that the queue dropped over those that arrived, both after the warm-up: above 1 where packets that waited when it ended are dropped and few arrive.",
            value: Optional(|queue| ratio(all(dropped(queue.measured())), all(queue.measured().arrived))),
            summary: Some(Summary { table: Table::All(10), importance: u8::MAX, ..Summary::of("lost") }),
        },
        Measure {
            name: "loss_green",
            unit: Fraction,
            description: "Green packets that the queue dropped over those that arrived, both after the warm-up.",
            value: Optional(|queue| loss_of(queue, Color::Green)),
            summary: Some(Summary { table: Table::None, ..Summary::of("green lost") }),
        },
        Measure {
            name: "loss_yellow",
            unit: Fraction,
            description: "Yellow packets that the queue dropped over those that arrived, both after the warm-up.",
            value: Optional(|queue| loss_of(queue, Color::Yellow)),
            summary: Some(Summary { table: Table::None, ..Summary::of("yellow lost") }),
        },
        Measure {
            name: "loss_red",
            unit: Fraction,
            description: "Red packets that the queue dropped over those that arrived, both after the warm-up.",
            value: Optional(|queue| loss_of(queue, Color::Red)),
            summary: Some(Summary { table: Table::None, ..Summary::of("red lost") }),
        },
        Measure {
            name: "delay_p50_s",
            unit: Seconds,
            description: "Waiting time in the queue: median, as the longest in its bin of the histogram: at most 3.1 % or 1 µs above it, and a constant exactly.",
            value: Optional(|queue| queue.delays().quantile(0.5)),
            summary: Some(Summary {
                table: Table::All(30),
                importance: 90,
                compared: Some(Compared { id: "delay-p50", margin: "delay" }),
                ..Summary::of("delay p50")
            }),
        },
        Measure {
            name: "delay_p95_s",
            unit: Seconds,
            description: "Waiting time in the queue: 95th percentile.",
            value: Optional(|queue| queue.delays().quantile(0.95)),
            summary: Some(Summary {
                table: Table::All(40),
                importance: 70,
                compared: Some(Compared { id: "delay-p95", margin: "delay" }),
                ..Summary::of("delay p95")
            }),
        },
        Measure {
            name: "delay_p99_s",
            unit: Seconds,
            description: "Waiting time in the queue: 99th percentile.",
            value: Optional(|queue| queue.delays().quantile(0.99)),
            summary: Some(Summary {
                table: Table::All(50),
                importance: u8::MAX,
                compared: Some(Compared { id: "delay-p99", margin: "delay" }),
                ..Summary::of("delay p99")
            }),
        },
        Measure {
            name: "delay_variation_s",
            unit: Seconds,
            description: "Delay variation: p99 − p50 of the waiting time.",
            value: Optional(|queue| {
                let [p50, p99] = [0.5, 0.99].map(|q| queue.delays().quantile(q));
                Some(p99? - p50?)
            }),
            summary: Some(Summary {
                long_label: Some("delay variation (p99 − p50)"),
                table: Table::Classes(70),
                importance: 20,
                ..Summary::of("delay variation")
            }),
        },
        Measure {
            name: "delay_max_s",
            unit: Seconds,
            description: "Waiting time in the queue: the longest, exactly.",
            value: Optional(|queue| {
                let DelayOutcome { counts, largest, .. } = queue.delays();
                (!counts.is_empty())
                    .then(|| largest.iter().max().map_or(0.0, |longest| longest.as_secs_f64()))
            }),
            summary: Some(Summary { table: Table::Classes(60), importance: 30, ..Summary::of("delay max") }),
        },
        Measure {
            name: "arrived_whole_run",
            unit: Packets,
            description: "Packets that came to the queue, warm-up included: those sent, dropped and waiting.",
            value: Count(|queue| all(queue.counters().arrived)),
            summary: None,
        },
        Measure {
            name: "sent_whole_run",
            unit: Packets,
            description: "Packets whose transmission began, warm-up included.",
            value: Count(|queue| all(queue.counters().sent)),
            summary: None,
        },
        Measure {
            name: "dropped_whole_run",
            unit: Packets,
            description: "Packets that the queue dropped, warm-up included.",
            value: Count(|queue| all(dropped(queue.counters()))),
            summary: None,
        },
        Measure {
            name: "waiting_packets",
            unit: Packets,
            description: "Packets that waited at the end of the run.",
            value: Count(|queue| all(queue.waiting())),
            summary: None,
        },
    ];
}

impl Queue for LinkOutcome {
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn measured(&self) -> &Counters {
        &self.measured
    }
    fn waiting(&self) -> [u64; 3] {
        self.waiting
    }
    fn delays(&self) -> &DelayOutcome {
        &self.delays
    }
}

impl Queue for ClassOutcome {
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn measured(&self) -> &Counters {
        &self.measured
    }
    fn waiting(&self) -> [u64; 3] {
        self.waiting
    }
    fn delays(&self) -> &DelayOutcome {
        &self.delays
    }
}

/// Packets that the meters of a link dropped; `None` without meters.
fn policed(link: &LinkOutcome) -> Option<u64> {
    (!link.meters.is_empty()).then(|| link.meters.iter().map(|meter| all(meter.measured.policed)).sum())
}

fn all(by_color: [u64; 3]) -> u64 {
    by_color.into_iter().sum()
}

fn dropped(counters: &Counters) -> [u64; 3] {
    Color::ALL.map(|color| counters.dropped_of(color))
}

fn loss_of(queue: &impl Queue, color: Color) -> Option<f64> {
    let counters = queue.measured();
    ratio(counters.dropped_of(color), counters.arrived[color.index()])
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_without_arrivals_has_no_value() {
        assert_eq!((ratio(0, 0), ratio(1, 4)), (None, Some(0.25)));
    }
}
