//! What a run gives.

use perhop_core::measure::{DelayBins, FlowDelays, LinkOutcome};
use perhop_core::{Bytes, Duration, Instant};

use crate::application::Recorded;
use crate::choice::EngineUsed;
use crate::probe::Series;
use crate::transport::transit::Played;
use crate::transport::{Counted, SenderStatistics};

/// Everything measured in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The engine that computed it; `None` on real packets.
    pub engine: Option<EngineUsed>,
    /// Events handled.
    pub events: u64,
    /// Packets that came to links between routers, once for each link.
    pub hops: u64,
    /// For each flow, in order.
    pub flows: Vec<FlowOutcome>,
    /// For each population, in the order of the flows that stand for them.
    pub populations: Vec<PopulationOutcome>,
    /// For each link with a queue under an AQM, in order.
    pub links: Vec<LinkOutcome>,
    /// For each group of users of an application, in order.
    pub applications: Vec<ApplicationOutcome>,
    /// Samples of the probes.
    pub series: Series,
}

/// What became of the flows of a population.
#[derive(Clone, Debug, PartialEq)]
pub struct PopulationOutcome {
    /// The number of the flow that represents it. What is counted there is the sum over its flows.
    pub flow: usize,
    /// Each flow that began, in this order.
    pub flows: Vec<FlowRecord>,
    /// How many were open at once, on average over the time after the warm-up. A flow is open from its start
    /// until it completes.
    pub mean_open: f64,
}

/// What became of a flow of a population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// When the flow began.
    pub started: Instant,
    /// The bytes of payload that the flow has to send.
    pub size: Bytes,
    /// The least time that the flow's bytes take on its path, those of headers included.
    pub idle: Duration,
    /// When the last of these bytes had arrived; [`Instant::NEVER`] if the flow was unfinished at the end of
    /// the run.
    pub completed: Instant,
}

impl FlowRecord {
    /// Returns the time from the flow's start to the arrival of its last byte, if it completed.
    pub fn time(&self) -> Option<Duration> {
        (self.completed != Instant::NEVER).then(|| self.completed.since(self.started))
    }
}

/// What the users of one group measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationOutcome {
    /// The group's name.
    pub name: String,
    /// The application's name in scenarios.
    pub model: &'static str,
    /// How many users there are.
    pub users: u32,
    /// The application's measures, by name; `None` where there is no value.
    pub measures: Vec<(&'static str, Option<f64>)>,
    /// What they come from.
    pub recorded: Recorded,
}

/// What became of one flow. All counts are of what happened after the warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowOutcome {
    /// When it began; `None` if it had not by the end of the run.
    pub started: Option<Instant>,
    /// How long it was active in the measured time: from its start until all of its volume had arrived, or
    /// until it was stopped or its source ended, and the last of its packets had arrived. `None` for the sum
    /// of a population's flows.
    pub active: Option<Duration>,
    /// None of its data arrived in that time, and none could have: it began too late, or was stopped too
    /// early. It has no rate.
    pub is_too_brief: bool,
    /// Packets that reached the receiver for the first time.
    pub delivered_packets: u64,
    /// The bytes of these packets on the wire.
    pub delivered_bytes: u64,
    /// Packets that reached the receiver again; not counted on real packets.
    pub repeated_packets: u64,
    /// First deliveries, in bit/s over the time in which it was active, zero if it never was; of a
    /// population, over the measured time.
    pub throughput_bps: f64,
    /// Segments acknowledged in order, in bit/s on the wire over the same time (TCP; else 0).
    pub acked_bps: f64,
    /// The mean one-way transit time in seconds, from the sending host to the receiving one, of the packets
    /// that arrived after the warm-up; `None` for TCP and where none did.
    pub mean_transit_s: Option<f64>,
    /// The 99th percentile of these transit times, at most 3.1 % or 1 µs above it; `None` likewise.
    pub p99_transit_s: Option<f64>,
    /// The distribution of these transit times; `None` for TCP.
    pub transits: Option<FlowDelays>,
    /// The mean of RFC 3550's interarrival jitter J in seconds over these packets; `None` for TCP and where
    /// fewer than two came.
    pub jitter_s: Option<f64>,
    /// What became of these packets at the receiver's play-out buffer; `None` for TCP and, without a fixed
    /// length, where none came.
    pub play_out: Option<Played>,
    /// Packets sent, by the color that they were given.
    pub marked: [u64; 3],
    /// Of these, packets that meters dropped, the flow's own or those of links, by the color that they gave
    /// them; `None` for a flow that no meter polices.
    pub policed: Option<[u64; 3]>,
    /// Packets that reached the receiver with a mark of congestion (ECN); `None` where nobody counted them:
    /// on real packets.
    pub congested: Option<u64>,
    /// Data packets that queues dropped, by color.
    pub dropped: [u64; 3],
    /// Data packets that links lost after they had sent them; `None` for a flow whose data pass no link that
    /// loses packets.
    pub lost: Option<u64>,
    /// What became of its volume.
    pub completion: Completion,
    /// What the sender counted.
    pub sender: SenderStatistics,
    /// Which of that it does count.
    pub counted: Counted,
    /// The receiver's window of TCP in bytes, at the end; `None` for other transports.
    pub receiver_window: Option<u64>,
    /// The sender's buffer of TCP in bytes; `None` if it has no limit, and for other transports.
    pub buffer: Option<u64>,
}

/// What became of a flow's volume. A flow completes when the last byte of its volume that was still missing
/// reaches the receiver; one whose transport does not send lost packets again never does after a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completion {
    /// The flow has no volume: it sends as long as it may.
    #[default]
    Endless,
    /// The flow began during the warm-up, which no measure includes.
    InWarmup,
    /// The flow had not completed by the end of the run: it was still sending, was stopped, had lost data for
    /// good, or had not begun.
    Unfinished,
    /// The flow completed this long after its start. On an [idle path](crate::Network::idle_time) it takes
    /// `idle`.
    After {
        /// From the flow's start to the arrival.
        time: Duration,
        /// The least time that its route allows.
        idle: Duration,
    },
}

impl Completion {
    /// Returns the completion of a flow whose volume takes `idle` on an idle path; `started` is when it began
    /// and `completed` when all of its volume had arrived, if that was. It counts if it began after the
    /// warm-up, or at its end.
    pub fn of(
        idle: Duration,
        started: Option<Instant>,
        completed: Option<Instant>,
        (warmup, end): (Instant, Instant),
    ) -> Self {
        match (started, completed.filter(|&at| at <= end)) {
            (Some(started), _) if started < warmup => Self::InWarmup,
            (Some(started), Some(at)) => Self::After { time: at.since(started), idle },
            _ => Self::Unfinished,
        }
    }

    /// Returns the flow completion time, if it began after the warm-up and completed.
    pub fn time(self) -> Option<Duration> {
        match self {
            Self::After { time, .. } => Some(time),
            Self::Endless | Self::InWarmup | Self::Unfinished => None,
        }
    }

    /// Returns the completion time over the least that its route allows.
    pub fn slowdown(self) -> Option<f64> {
        match self {
            Self::After { time, idle } if !idle.is_zero() => {
                Some(time.as_nanos() as f64 / idle.as_nanos() as f64)
            }
            _ => None,
        }
    }

    /// Returns whether the flow was unfinished at the end; `None` for a flow without a volume, and for one
    /// that began during the warm-up.
    pub fn is_unfinished(self) -> Option<bool> {
        (!matches!(self, Self::Endless | Self::InWarmup)).then_some(self == Self::Unfinished)
    }
}

/// Returns the rate in bit/s of so many bytes over a time; zero over no time.
pub fn rate(bytes: u64, over: Duration) -> f64 {
    if over.is_zero() { 0.0 } else { bytes as f64 * 8.0 / over.as_secs_f64() }
}

impl FlowOutcome {
    /// Returns the rate of first deliveries in bit/s; `None` for a flow that was never active in the measured
    /// time, or too briefly for data to arrive.
    pub fn throughput(&self) -> Option<f64> {
        self.has_rate().then_some(self.throughput_bps)
    }

    /// Returns the rate of segments acknowledged in order in bit/s; `None` likewise.
    pub fn acked(&self) -> Option<f64> {
        self.has_rate().then_some(self.acked_bps)
    }

    fn has_rate(&self) -> bool {
        !self.is_too_brief && self.active.is_none_or(|active| !active.is_zero())
    }

    /// Adds what was counted of another flow. Times and completions are left as they are.
    pub fn add(&mut self, other: &Self) {
        let by_color = |sum: &mut [u64; 3], new: [u64; 3]| {
            sum.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
        };
        self.delivered_packets += other.delivered_packets;
        self.delivered_bytes += other.delivered_bytes;
        self.repeated_packets += other.repeated_packets;
        self.throughput_bps += other.throughput_bps;
        self.acked_bps += other.acked_bps;
        by_color(&mut self.marked, other.marked);
        by_color(&mut self.dropped, other.dropped);
        if let (Some(sum), Some(new)) = (&mut self.policed, other.policed) {
            by_color(sum, new);
        }
        if let (Some(sum), Some(new)) = (&mut self.congested, other.congested) {
            *sum += new;
        }
        if let (Some(sum), Some(new)) = (&mut self.lost, other.lost) {
            *sum += new;
        }
        self.receiver_window = self.receiver_window.max(other.receiver_window);
        self.sender.add(&other.sender);
    }

    /// Returns the one-way transit times of all packets of several flows; `None` if those of no flow are
    /// measured.
    pub fn transits(flows: &[Self]) -> Option<DelayBins> {
        let known = || flows.iter().filter_map(|flow| flow.transits.as_ref());
        known().next().is_some().then(|| FlowDelays::sum(known()))
    }

    /// Returns the mean round trip of the data packets that were sent once and acknowledged, if any was.
    pub fn mean_rtt(&self) -> Option<Duration> {
        mean(self.sender.rtt_samples)
    }

    /// Returns the mean of the round trips that a TCP sender timed for its retransmission timer, if it timed
    /// any.
    pub fn mean_timed_rtt(&self) -> Option<Duration> {
        mean(self.sender.timed_rtt_samples)
    }
}

fn mean((samples, sum): (u64, u128)) -> Option<Duration> {
    (samples > 0).then(|| Duration::from_nanos((sum / u128::from(samples)) as u64))
}
