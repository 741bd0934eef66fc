//! Measures of a flow.

use perhop_core::{Duration, Instant};

use crate::FlowOutcome;
use crate::measure::Table::{All, Wide};
use crate::measure::Unit::{BitsPerSecond, Bytes, Fraction, None as NoUnit, Packets, Seconds};
use crate::measure::Value::{ByColor, Count, Optional, OptionalByColor, OptionalCount};
use crate::measure::{Measure, Statistic, Summary};
use crate::transport::limits::Limit;

type FlowMeasure = Measure<FlowOutcome>;

/// Every measure of a flow, in the order of the columns. All exclude the warm-up.
pub const FLOW: &[FlowMeasure] = &[
    FlowMeasure::new("started_s", Seconds, Optional(|flow| flow.started.map(Instant::as_secs_f64))).meaning(
        "When the flow began, from the start of the run; of a population, its first flow; none if none did.",
    ),
    FlowMeasure::new("active_s", Seconds, Optional(|flow| flow.active.map(Duration::as_secs_f64)))
        .meaning(
            "Active time within the measured interval: from the flow's start, or the end of the warm-up, \
                until the last byte of its `volume` arrived, until it stopped (`stop`, or the end of its \
                packet trace) and its last packet arrived, or until the end of the run; pauses of an on-off \
                source or an application count; 0 for a flow that never was active, none for a population.",
        )
        .shown(Summary::of("active").at(Wide { place: 1, above: f64::MAX }, 30)),
    FlowMeasure::new("throughput_bps", BitsPerSecond, Optional(FlowOutcome::throughput))
        .meaning(
            "Rate of first deliveries at the receiver over the active time (`active_s`), IP headers \
                included; of a population, of all its flows together over the measured interval; none for a \
                flow that never was active, or too briefly for data to arrive.",
        )
        .shown(Summary::of("throughput").at(All(0), u8::MAX).compared("throughput", "throughput")),
    FlowMeasure::new(
        "acked_bps",
        BitsPerSecond,
        Optional(|flow| flow.acked().filter(|_| flow.counted.repairs())),
    )
    .meaning(
        "Rate of segments acknowledged in order over the active time (`active_s`), IP headers included; none \
            but for TCP.",
    ),
    FlowMeasure::new("delivered_packets", Packets, Count(|flow| flow.delivered_packets))
        .meaning("Packets that reached the receiver for the first time."),
    FlowMeasure::new("delivered_bytes", Bytes, Count(|flow| flow.delivered_bytes))
        .meaning("Bytes that reached the receiver for the first time, IP headers included."),
    FlowMeasure::new("sent_packets", Packets, Count(|flow| flow.sender.sent))
        .meaning("Packets sent, retransmissions included."),
    FlowMeasure::new("retransmitted_packets", Packets, OptionalCount(retransmitted))
        .meaning("Packets sent again; none but for TCP."),
    FlowMeasure::new(
        "timeouts",
        NoUnit,
        OptionalCount(|flow| flow.counted.timeouts().then_some(flow.sender.timeouts)),
    )
    .meaning(
        "Retransmission timeouts; of RAP, loss events found by a timeout; of TFRC, expiries of the \
            nofeedback timer; none for UDP, and on a kernel that does not count them.",
    ),
    FlowMeasure::new(
        "fast_retransmits",
        NoUnit,
        OptionalCount(|flow| flow.counted.fast_retransmits().then_some(flow.sender.fast_retransmits)),
    )
    .meaning("Fast retransmits; none but for simulated TCP."),
    FlowMeasure::new(
        "loss_events",
        NoUnit,
        OptionalCount(|flow| flow.counted.loss_events().then_some(flow.sender.loss_events)),
    )
    .meaning("Loss events, each of which lowers the rate once; none but for RAP and TFRC."),
    FlowMeasure::new("one_way_delay_s", Seconds, Optional(|flow| flow.mean_transit_s))
        .meaning("Mean one-way delay from the sending host to the receiving one; none for TCP.")
        .shown(Summary::of("one-way delay").at(All(20), 130).compared("one-way", "one-way")),
    // Calls and voice are about this one.
    FlowMeasure::new("one_way_delay_p99_s", Seconds, Optional(|flow| flow.p99_transit_s))
        .meaning(
            "99th percentile of the one-way delay from the sending host to the receiving one, at most 3.1 % \
                or 1 µs above it; none for TCP.",
        )
        .shown(Summary::of("one-way delay p99").at(All(30), 200).compared("one-way-p99", "one-way")),
    FlowMeasure::new("jitter_s", Seconds, Optional(|flow| flow.jitter_s))
        .meaning("Mean interarrival jitter (RFC 3550, section 6.4.1); none for TCP.")
        .shown(Summary { long_label: Some("jitter (RFC 3550)"), ..Summary::of("jitter").at(All(40), 40) }),
    FlowMeasure::new("late_packets", Packets, OptionalCount(|flow| flow.play_out.map(|played| played.late)))
        .meaning(
            "Packets that came too late for the flow's play-out buffer, which are not among the lost ones: \
                beyond its length (key `play-out`), else beyond what 99 % of the packets need; none for TCP.",
        ),
    FlowMeasure::new(
        "late_ratio",
        Fraction,
        Optional(|flow| {
            let played = flow.play_out.filter(|played| played.is_fixed && flow.delivered_packets > 0)?;
            Some(played.late as f64 / flow.delivered_packets as f64)
        }),
    )
    .meaning(
        "Packets that came too late for the flow's play-out buffer (key `play-out`), over all that reached \
            the receiver; none for a flow without a play-out buffer and where nothing came.",
    )
    .shown(Summary {
        statistic: Statistic::Share(&["delivered_packets"]),
        ..Summary::of("late").at(All(45), 138)
    }),
    FlowMeasure::new(
        "play_out_delay_s",
        Seconds,
        Optional(|flow| flow.play_out.and_then(|played| played.delay_s)),
    )
    .meaning(
        "Time from the sending of a packet to its play-out: the one-way delay of the flow's first packet and \
            its `play-out`; without that key, the least delay that at least 99 % of the packets do not \
            exceed (at most 3.1 % more, and no more than the largest); none for TCP.",
    ),
    FlowMeasure::new(
        "loss_burst_packets",
        Packets,
        Optional(|flow| flow.play_out.and_then(|played| played.mean_burst(gone(flow)))),
    )
    .meaning(
        "Mean number of packets in a row that were lost or came too late for the play-out buffer, in the \
            order in which they were sent; none for TCP, where nothing came and where none was.",
    ),
    FlowMeasure::new("mean_rtt_s", Seconds, Optional(|flow| flow.mean_rtt().map(Duration::as_secs_f64)))
        .meaning(
            "Mean round trip of the data packets that were sent once, each from its sending to the ACK that \
                first covers it, a delay of that ACK included, but not of those whose ACK also covers one \
                that was sent again: they waited for the repair; of TFRC, of the packets that its feedback \
                answers; on real packets, of the kernel's smoothed round trip; none for UDP.",
        )
        .shown(Summary {
            metric: Some("rtt_s"),
            ..Summary::of("RTT").at(All(10), 120).compared("rtt", "rtt")
        }),
    FlowMeasure::new(
        "mean_timed_rtt_s",
        Seconds,
        Optional(|flow| flow.mean_timed_rtt().map(Duration::as_secs_f64)),
    )
    .meaning(
        "Mean of the round trips that the sender timed for its retransmission timer, one at a time, the \
            SYN's included; none but for simulated TCP.",
    ),
    FlowMeasure::new("marked", Packets, ByColor(|flow| flow.marked))
        .meaning("Data packets sent, by the color that they were given."),
    FlowMeasure::new("dropped", Packets, ByColor(|flow| flow.dropped))
        .meaning("Data packets that queues dropped, by color."),
    FlowMeasure::new("policed", Packets, OptionalByColor(|flow| flow.policed)).meaning(
        "Data packets that meters dropped because they were out of profile, the flow's own or those of \
            links, by the color that the meter gave; each is one of `marked`, none of `dropped`; none for a \
            flow that no meter polices.",
    ),
    FlowMeasure::new(
        "policing_ratio",
        Fraction,
        Optional(|flow| {
            let sum = |by_color: [u64; 3]| by_color.into_iter().sum::<u64>();
            let policed = flow.policed.filter(|_| flow.marked != [0; 3])?;
            Some(sum(policed) as f64 / sum(flow.marked) as f64)
        }),
    )
    .meaning(
        "Data packets that meters dropped, over all sent; none for a flow that no meter polices, or that \
            sent nothing.",
    )
    .shown(Summary {
        statistic: Statistic::Share(&["marked"]),
        ..Summary::of("policed").at(All(u8::MAX), 145)
    }),
    // Transfers are about this one.
    FlowMeasure::new(
        "completion_s",
        Seconds,
        Optional(|flow| flow.completion.time().map(Duration::as_secs_f64)),
    )
    .meaning(
        "Flow completion time of a flow with a `volume`: from its start to the arrival of the last missing \
            byte at the receiver; none for a flow that was unfinished at the end of the run, or began during \
            the warm-up.",
    )
    .shown(Summary::of("FCT").at(All(50), 199).compared("completion", "completion")),
    FlowMeasure::new("slowdown", NoUnit, Optional(|flow| flow.completion.slowdown()))
        .meaning(
            "Flow completion time over the least time that the flow's route allows: propagation, one \
                packet's transmission at each hop, and that of all others at the slowest hop; none for a \
                flow that was unfinished at the end of the run, or began during the warm-up.",
        )
        .shown(Summary::of("slowdown").at(All(60), 65)),
    FlowMeasure::new("unfinished", NoUnit, Optional(|flow| flow.completion.is_unfinished().map(f64::from)))
        .meaning(
            "1 for a flow with a `volume` that had not completed by the end of the run, stopped or not; else \
                0; none for a flow without a `volume`, or that began during the warm-up.",
        )
        .shown(Summary { statistic: Statistic::Sum, ..Summary::of("unfinished").at(All(70), 136) }),
    FlowMeasure::new(
        "retransmission_ratio",
        Fraction,
        Optional(|flow| {
            let again = retransmitted(flow).filter(|_| flow.sender.sent > 0)?;
            Some(again as f64 / flow.sender.sent as f64)
        }),
    )
    .meaning("Packets sent again over all packets sent; none but for TCP, and for a flow that sent nothing.")
    .shown(Summary { statistic: Statistic::Share(&["sent_packets"]), ..Summary::of("retransmitted") }),
    FlowMeasure::new("lost_packets", Packets, OptionalCount(|flow| flow.lost)).meaning(
        "Data packets that links lost after they had sent them (keys `loss` and `burst-loss` of a link), \
            which are no drops of a queue; none for a flow whose data pass no such link, and on real \
            packets.",
    ),
    FlowMeasure::new(
        "link_loss",
        Fraction,
        Optional(|flow| {
            let lost = flow.lost? as f64;
            let all = lost + arrived(flow) as f64;
            (all > 0.0).then(|| lost / all)
        }),
    )
    .meaning(
        "Data packets that links lost after they had sent them, over these and all that reached the \
            receiver, those sent again included; none for a flow whose data pass no link that loses packets, \
            on real packets and where nothing came.",
    )
    .shown(Summary {
        statistic: Statistic::Share(&["delivered_packets", "lost_packets"]),
        ..Summary::of("link loss").at(All(u8::MAX), 60)
    }),
    FlowMeasure::new("congestion_marked_packets", Packets, OptionalCount(|flow| flow.congested)).meaning(
        "Packets that reached the receiver marked as having met congestion (CE); none for a flow without \
            ECN, and on real packets.",
    ),
    FlowMeasure::new(
        "congestion_marking_ratio",
        Fraction,
        Optional(|flow| {
            let marked = flow.congested.filter(|_| arrived(flow) > 0)?;
            Some(marked as f64 / arrived(flow) as f64)
        }),
    )
    .meaning(
        "Packets that reached the receiver marked as having met congestion (CE), over all that reached it, \
            those sent again included; none for a flow without ECN, on real packets and where nothing came.",
    )
    .shown(Summary {
        statistic: Statistic::Share(&["delivered_packets"]),
        ..Summary::of("CE marks").at(All(u8::MAX), 50)
    }),
    FlowMeasure::new(
        "ecn_reductions",
        NoUnit,
        OptionalCount(|flow| flow.counted.ecn_reductions().then_some(flow.sender.ecn_reductions)),
    )
    .meaning("Reductions of the congestion window because of ECN; none but for simulated TCP with ECN."),
    FlowMeasure::new("receiver_limited", Fraction, Optional(|flow| share(flow, Limit::Receiver)))
        .meaning(
            "Share of the time in which the flow was active when the receiver's window was full, also while \
                losses were being repaired (`tcpi_rwnd_limited` of Linux); this share and those of \
                `sender_limited`, `congestion_limited`, `recovering` and `idle` sum to 1; none but for TCP.",
        )
        .shown(Summary::of("rwnd-limited").at(Wide { place: 80, above: 0.05 }, 137)),
    FlowMeasure::new(
        "sender_limited",
        Fraction,
        Optional(|flow| Some(share(flow, Limit::Application)? + share(flow, Limit::Buffer)?)),
    )
    .meaning(
        "Share of the time in which the flow was active when data was outstanding and no more waited: the \
            application had handed over all, or the sender's buffer took no more; none but for TCP.",
    )
    .shown(Summary::of("app-limited").at(Wide { place: 81, above: 1.0 }, 0)),
    FlowMeasure::new("buffer_limited", Fraction, Optional(|flow| share(flow, Limit::Buffer)))
        .meaning(
            "Share of the time in which the flow was active when the sender's buffer took no more \
                (`tcpi_sndbuf_limited`), which is part of `sender_limited`; none but for TCP.",
        )
        .shown(Summary::of("sndbuf-limited").at(Wide { place: 81, above: 0.05 }, 137)),
    FlowMeasure::new("congestion_limited", Fraction, Optional(|flow| share(flow, Limit::Congestion)))
        .meaning(
            "Share of the time in which the flow was active when the congestion control let out no more, by \
                its window or its pacing rate; none but for TCP.",
        )
        .shown(Summary::of("cwnd-limited").at(Wide { place: 82, above: 1.0 }, 0)),
    FlowMeasure::new("recovering", Fraction, Optional(|flow| share(flow, Limit::Recovery)))
        .meaning(
            "Share of the time in which the flow was active when losses were being repaired, waits for the \
                retransmission timer included, and neither the receiver's window nor the sender's buffer was \
                full; none but for TCP.",
        )
        .shown(Summary::of("recovering").at(Wide { place: 83, above: 1.0 }, 0)),
    FlowMeasure::new("idle", Fraction, Optional(|flow| share(flow, Limit::Idle)))
        .meaning(
            "Share of the time in which the flow was active when nothing was outstanding and nothing to be \
                sent: the application paused, or the connection was being opened; none but for TCP.",
        )
        .shown(Summary::of("idle").at(Wide { place: 84, above: 1.0 }, 0)),
    FlowMeasure::new(
        "busy_s",
        Seconds,
        Optional(|flow| {
            flow.sender.limits.share(Limit::Idle).map(|_| flow.sender.limits.busy().as_secs_f64())
        }),
    )
    .meaning(
        "Time in which data was outstanding or waited to be sent (`tcpi_busy_time`); of flows that come and \
            go, of all together; none but for TCP.",
    ),
    FlowMeasure::new("receiver_window_bytes", Bytes, OptionalCount(|flow| flow.receiver_window)).meaning(
        "The receiver's window at the end, headers included if it was given in packets; none but for TCP.",
    ),
    FlowMeasure::new("send_buffer_bytes", Bytes, OptionalCount(|flow| flow.buffer)).meaning(
        "The sender's buffer, headers included if it was given in packets; none without a limit, on real \
            packets, and but for TCP.",
    ),
];

/// Data packets that queues or meters dropped or links lost.
fn gone(flow: &FlowOutcome) -> u64 {
    let dropped: u64 = flow.dropped.into_iter().chain(flow.policed.unwrap_or_default()).sum();
    dropped + flow.lost.unwrap_or(0)
}

/// Packets sent again, of a sender that does that.
fn retransmitted(flow: &FlowOutcome) -> Option<u64> {
    flow.counted.repairs().then_some(flow.sender.retransmitted)
}

/// Data packets that reached the receiver, as often as they did.
fn arrived(flow: &FlowOutcome) -> u64 {
    flow.delivered_packets + flow.repeated_packets
}

fn share(flow: &FlowOutcome, limit: Limit) -> Option<f64> {
    flow.sender.limits.share(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::transit::Played;
    use crate::transport::{Counted, SenderStatistics};

    #[test]
    fn a_retransmission_ratio_by_hand() {
        let measure = FLOW.iter().find(|measure| measure.name == "retransmission_ratio").unwrap();
        let Optional(ratio) = measure.value else { panic!("some flows send nothing") };
        let flow = |sent, retransmitted| FlowOutcome {
            sender: SenderStatistics { sent, retransmitted, ..SenderStatistics::default() },
            counted: Counted::Segments { ecn: false },
            ..FlowOutcome::default()
        };
        assert_eq!(ratio(&flow(40, 5)), Some(0.125));
        assert_eq!(ratio(&flow(40, 0)), Some(0.0));
        assert_eq!(ratio(&flow(0, 0)), None);
        assert_eq!(ratio(&FlowOutcome { counted: Counted::Sent, ..flow(40, 0) }), None);
    }

    #[test]
    fn ratios_of_arrivals_by_hand() {
        // 10 packets arrived for the first time and 4 again, 12 of them marked; 6 were lost.
        let flow = FlowOutcome {
            delivered_packets: 10,
            repeated_packets: 4,
            congested: Some(12),
            lost: Some(6),
            ..FlowOutcome::default()
        };
        let ratio = |name: &str| {
            let Optional(of) = FLOW.iter().find(|measure| measure.name == name).unwrap().value else {
                panic!("{name}")
            };
            of(&flow)
        };
        assert_eq!(ratio("congestion_marking_ratio"), Some(12.0 / 14.0));
        assert_eq!(ratio("link_loss"), Some(0.3));
    }

    #[test]
    fn a_late_ratio_by_hand() {
        let measure = FLOW.iter().find(|measure| measure.name == "late_ratio").unwrap();
        let Optional(ratio) = measure.value else { panic!("some flows have no buffer") };
        let flow = |delivered_packets, late: Option<u64>| FlowOutcome {
            delivered_packets,
            play_out: late.map(|late| Played {
                is_fixed: true,
                delay_s: Some(0.08),
                late,
                lost: 0,
                bursts: 0,
                ends_late: false,
            }),
            ..FlowOutcome::default()
        };
        assert_eq!(ratio(&flow(12, Some(3))), Some(0.25));
        assert_eq!(ratio(&flow(0, Some(0))), None);
        assert_eq!(ratio(&flow(12, None)), None);
    }

    #[test]
    fn a_policing_ratio_by_hand() {
        let measure = FLOW.iter().find(|measure| measure.name == "policing_ratio").unwrap();
        let Optional(ratio) = measure.value else { panic!("some profiles drop nothing") };
        let flow = |marked, policed| FlowOutcome { marked, policed, ..FlowOutcome::default() };
        assert_eq!(ratio(&flow([30, 6, 4], Some([0, 6, 4]))), Some(0.25));
        assert_eq!(ratio(&flow([30, 6, 4], None)), None);
        assert_eq!(ratio(&flow([0; 3], Some([0; 3]))), None);
    }
}
