//! Measures of a link, of its queue, and of each class of packets that the queue distinguishes.

use std::marker::PhantomData;

use perhop_core::measure::{ClassOutcome, DelayOutcome, LinkOutcome};
use perhop_core::{Color, Counters};

use crate::measure::Table::{self, All, Classes};
use crate::measure::Unit::{BitsPerSecond, Fraction, Packets, Seconds};
use crate::measure::Value::{Count, Number, Optional, OptionalCount};
use crate::measure::{Measure, Summary};

type LinkMeasure = Measure<LinkOutcome>;

/// Every measure of a link besides those of its queue, in the order of the columns. All exclude the warm-up.
pub const LINK: &[LinkMeasure] = &[
    LinkMeasure::new("rate_bps", BitsPerSecond, Number(|link| link.rate.as_bps() as f64))
        .meaning("The link's rate, at the start of the run if that changes."),
    LinkMeasure::new("mean_rate_bps", BitsPerSecond, Number(|link| link.mean_rate_bps)).meaning(
        "Mean of the link's rate over the measured interval, of a trace by its opportunities or rates; 0 \
            during an outage.",
    ),
    LinkMeasure::new(
        "utilization",
        Fraction,
        Optional(|link| (link.mean_rate_bps > 0.0).then_some(link.utilization)),
    )
    .meaning(
        "Bits that the link transmitted over the integral of its rate (`mean_rate_bps` times the measured \
            interval); none for a link that could send nothing.",
    )
    .shown(Summary::of("used").at(All(0), u8::MAX).compared("utilization", "utilization")),
    LinkMeasure::new("policed_packets", Packets, OptionalCount(policed)).meaning(
        "Packets that the link's own meters dropped before the queue; none for a link without meters.",
    ),
    LinkMeasure::new(
        "policing_ratio",
        Fraction,
        Optional(|link| {
            let policed = policed(link)?;
            ratio(policed, policed + all(link.measured.arrived))
        }),
    )
    .meaning(
        "Packets that the link's own meters dropped before the queue, over all packets that came to the \
            link, data and ACKs; none for a link without meters, and where nothing came.",
    )
    .shown(Summary::of("policed").at(All(15), 145)),
    LinkMeasure::new("lost_packets", Packets, OptionalCount(|link| link.transit.lost)).meaning(
        "Packets, data and ACKs, that the link lost after it had sent them (keys `loss` and `burst-loss`), \
            which are no drops of its queue; none for a link that loses no packets, and on real packets.",
    ),
    LinkMeasure::new(
        "link_loss",
        Fraction,
        Optional(|link| ratio(link.transit.lost?, all(link.measured.sent))),
    )
    .meaning(
        "Packets, data and ACKs, that the link lost after it had sent them (keys `loss` and `burst-loss`), \
            over all that it sent; none for a link that loses no packets, on real packets, and for a link \
            that sent nothing.",
    )
    .shown(Summary::of("link loss").at(All(12), 60)),
    LinkMeasure::new("reordered_packets", Packets, OptionalCount(|link| link.transit.reordered)).meaning(
        "Packets, data and ACKs, that reached the far end of the link after one that was sent later (RFC \
            4737); none for a link that keeps their order, and on real packets.",
    ),
    LinkMeasure::new(
        "reordering_ratio",
        Fraction,
        Optional(|link| ratio(link.transit.reordered?, all(link.measured.sent))),
    )
    .meaning(
        "Packets, data and ACKs, that reached the far end of the link after one that was sent later (RFC \
            4737), over all that the link sent; none for a link that keeps their order, on real packets, and \
            for a link that sent nothing.",
    )
    .shown(Summary::of("reordered").at(All(14), 55)),
    LinkMeasure::new("mean_queue_packets", Packets, Number(|link| link.mean_queue_packets))
        .meaning("Mean number of packets that wait.")
        .shown(Summary {
            long_label: Some("mean queue"),
            ..Summary::of("queue").at(All(20), 80).compared("queue", "queue")
        }),
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
        Measure::<O>::new("arrived_packets", Packets, Count(|queue| all(queue.measured().arrived)))
            .meaning("Packets that came to the queue."),
        Measure::<O>::new("sent_packets", Packets, Count(|queue| all(queue.measured().sent)))
            .meaning("Packets whose transmission began."),
        Measure::<O>::new("dropped_packets", Packets, Count(|queue| all(dropped(queue.measured()))))
            .meaning("Packets that the queue dropped.")
            .shown(Summary::of("dropped").at(Table::None, 0)),
        Measure::<O>::new(
            "loss",
            Fraction,
            Optional(|queue| ratio(all(dropped(queue.measured())), all(queue.measured().arrived))),
        )
        .meaning(
            "Packets that the queue dropped over those that arrived, both after the warm-up: above 1 where \
                packets that waited when it ended are dropped and few arrive.",
        )
        .shown(Summary::of("lost").at(All(10), u8::MAX)),
        Measure::<O>::new("loss_green", Fraction, Optional(|queue| loss_of(queue, Color::Green)))
            .meaning("Green packets that the queue dropped over those that arrived, both after the warm-up.")
            .shown(Summary::of("green lost").at(Table::None, 0)),
        Measure::<O>::new("loss_yellow", Fraction, Optional(|queue| loss_of(queue, Color::Yellow)))
            .meaning("Yellow packets that the queue dropped over those that arrived, both after the warm-up.")
            .shown(Summary::of("yellow lost").at(Table::None, 0)),
        Measure::<O>::new("loss_red", Fraction, Optional(|queue| loss_of(queue, Color::Red)))
            .meaning("Red packets that the queue dropped over those that arrived, both after the warm-up.")
            .shown(Summary::of("red lost").at(Table::None, 0)),
        Measure::<O>::new("delay_p50_s", Seconds, Optional(|queue| queue.delays().quantile(0.5)))
            .meaning(
                "Waiting time in the queue: median, as the longest in its bin of the histogram: at most 3.1 \
                    % or 1 µs above it, and a constant exactly.",
            )
            .shown(Summary::of("delay p50").at(All(30), 90).compared("delay-p50", "delay")),
        Measure::<O>::new("delay_p95_s", Seconds, Optional(|queue| queue.delays().quantile(0.95)))
            .meaning("Waiting time in the queue: 95th percentile.")
            .shown(Summary::of("delay p95").at(All(40), 70).compared("delay-p95", "delay")),
        Measure::<O>::new("delay_p99_s", Seconds, Optional(|queue| queue.delays().quantile(0.99)))
            .meaning("Waiting time in the queue: 99th percentile.")
            .shown(Summary::of("delay p99").at(All(50), u8::MAX).compared("delay-p99", "delay")),
        Measure::<O>::new(
            "delay_variation_s",
            Seconds,
            Optional(|queue| {
                let [p50, p99] = [0.5, 0.99].map(|q| queue.delays().quantile(q));
                Some(p99? - p50?)
            }),
        )
        .meaning("Delay variation: p99 − p50 of the waiting time.")
        .shown(Summary {
            long_label: Some("delay variation (p99 − p50)"),
            ..Summary::of("delay variation").at(Classes(70), 20)
        }),
        Measure::<O>::new(
            "delay_max_s",
            Seconds,
            Optional(|queue| {
                let DelayOutcome { counts, largest, .. } = queue.delays();
                (!counts.is_empty())
                    .then(|| largest.iter().max().map_or(0.0, |longest| longest.as_secs_f64()))
            }),
        )
        .meaning("Waiting time in the queue: the longest, exactly.")
        .shown(Summary::of("delay max").at(Classes(60), 30)),
        Measure::<O>::new("arrived_whole_run", Packets, Count(|queue| all(queue.counters().arrived)))
            .meaning("Packets that came to the queue, warm-up included: those sent, dropped and waiting."),
        Measure::<O>::new("sent_whole_run", Packets, Count(|queue| all(queue.counters().sent)))
            .meaning("Packets whose transmission began, warm-up included."),
        Measure::<O>::new("dropped_whole_run", Packets, Count(|queue| all(dropped(queue.counters()))))
            .meaning("Packets that the queue dropped, warm-up included."),
        Measure::<O>::new("waiting_packets", Packets, Count(|queue| all(queue.waiting())))
            .meaning("Packets that waited at the end of the run."),
    ];
}

macro_rules! is_queue {
    ($outcome:ty) => {
        impl Queue for $outcome {
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
    };
}
is_queue!(LinkOutcome);
is_queue!(ClassOutcome);

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
