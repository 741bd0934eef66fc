//! `DualPI2`: RFC 9332, appendix A.
//!
//! Packets of scalable congestion controls, which say so by ECT(1), wait in a short queue of their own (L4S, RFC 9331), all others in the
//! classic queue. Both share the link: one controller of the queueing delay gives a base probability p', by which L4S packets are
//! marked with the probability k p' and classic ones dropped or marked with p'^2, so that flows of both kinds have about the same
//! window. L4S packets are also marked where they have waited longer than about a millisecond.
//!
//! ## Deviations
//! - Where k p' is above 1, it counts as 1 in L4S marking: in the RFC's pseudocode the counter of marks would grow without bound, and
//!   marks would go on long after (`an_overload_leaves_no_debt_of_marks`). Drops and marks of L4S packets in overload have a counter each.
//! - The RFC leaves the scheduler open, but for bounds. Weighted round robin is Linux's, with one credit: `a_classic_packet_goes_after_nine`.
//! - The RFC recommends queue protection (section 4.1.2) and leaves it open; `queue-protection` is that of RFC 9957. Packets that it redirects
//!   keep their ECN field, and the classic queue marks those that are ECN-capable (`protected_flows_do_not_suffer_from_others`).
//! - `law = "linux"`: gains are rounded, each decision is a random draw, one threshold takes the place of the ramp, and the controller
//!   decides on nothing while less than two packets of `mtu` wait. Linux's limit of memory is left out. A `step-length` is judged as a
//!   packet leaves, by those behind it; in Linux as it arrives, by those before it, which is the same for its default of 0.

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

mod marking;
mod pseudo_code;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::marking::{Marking, State};
use super::protection::QueueProtection;
use super::{
    ClassKey, Dequeued, Discipline, Incoming, QueueProtectionParams, Retuning, Scheduler, SchedulerParams,
    fixed,
};
use crate::aqm::{AqmParams, PiController, Verdict, check_gains, check_target};
use crate::control::Message;
use crate::units::{AboveZero, UnitError};
use crate::{
    Bitrate, Block, Bytes, ClassCounters, Codepoints, DelayTarget, Depth, Duration, Ecn, Environment, Header,
    Instant, Noted, Occupancy, Origin, Packet, Probability, PseudoCode, Reason, Rng, Streams,
};

/// Whose details `DualPI2` follows where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DualPi2Law {
    /// RFC 9332, appendix A.
    #[default]
    Rfc,
    /// Linux's `dualpi2`.
    Linux,
}

/// Which of the two queues sends next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DualPi2Order {
    /// Weighted round robin: the classic queue gets at least `classic-share` of the link.
    #[default]
    WeightedRoundRobin,
    /// The packet that has waited longer, where an L4S packet's time counts `shift` more.
    TimeShiftedFifo,
}

/// What happens when marking each L4S packet is not enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overload {
    /// Packets are dropped, with p'^2 in both queues, whether they are ECN-capable or not.
    #[default]
    Drop,
    /// The base probability stays at 1/k, and the queues grow up to `limit`.
    Overflow,
}

/// Parameters of [`DualPi2`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DualPi2Params {
    /// The queueing delay that the controller aims at.
    #[serde(default = "fifteen_ms")]
    pub target: Duration,
    /// The largest round-trip time of the traffic, from which `interval`, `alpha` and `beta` follow (`RTT_max`). With `law = "linux"`
    /// they are constants, and this has no effect.
    #[serde(default = "hundred_ms")]
    pub rtt_max: Duration,
    /// How often the base probability is updated (Tupdate), at least 1 ms. Default: the target, or a third of `rtt-max` if that is
    /// less; 16 ms with `law = "linux"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// The integral gain in Hz. Default: 0.1 interval / rtt-max^2; 41/256 with `law = "linux"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<AboveZero>,
    /// The proportional gain in Hz. Default: 0.3 / rtt-max; 819/256 with `law = "linux"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<AboveZero>,
    /// The coupling factor: L4S packets are marked with k times the base probability (k).
    #[serde(default = "two")]
    pub k: AboveZero,
    /// The sojourn time from which L4S packets are marked (minTh). Default: 800us; 1ms with `law = "linux"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Duration>,
    /// Over how much more sojourn time the share of marked L4S packets rises to all (range). Default: 400us; with `law = "linux"` all
    /// are marked above `step`, and this has no effect.
    #[serde(default = "four_hundred_us")]
    pub range: Duration,
    /// L4S packets are not marked for their sojourn time while no more packets wait, they included (`Th_len`); with 0, those that wait
    /// alone are marked, too. Default: 1; 0 with `law = "linux"` (`min_qlen_step`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_length: Option<u32>,
    /// Which of the two queues sends next.
    #[serde(default)]
    pub order: DualPi2Order,
    /// The share of the link that the classic queue gets at least. Default: 0.0625; 0.1 with `law = "linux"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classic_share: Option<Probability>,
    /// By how much L4S packets go before classic ones, with `order = "time-shifted-fifo"`.
    #[serde(default = "fifty_ms")]
    pub shift: Duration,
    /// The room in both queues together, in packets, in bytes, or as a time (`50ms`) at the rate of the link. Default: what the link sends in 250 ms, and at
    /// least 30 kB; `10000p` with `law = "linux"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::units::Limit>")]
    pub limit: Option<Depth>,
    /// What happens when marking each L4S packet is not enough.
    #[serde(default)]
    pub overload: Overload,
    /// The largest packet: from it follows where round robin begins, and with `law = "linux"` how much must wait for the controller to
    /// decide. With `order = "time-shifted-fifo"` and the RFC's law it has no effect.
    #[serde(default = "one_packet")]
    pub mtu: Bytes,
    /// Codepoints whose packets join the L4S queue, too, whatever their ECN field, such as 45, Non-Queue-Building (RFC 9956). Those
    /// that are not ECN-capable are dropped where others are marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l4s_dscp: Option<Codepoints>,
    /// Redirects packets of flows that build a queue in the L4S queue to the classic one (RFC 9957): `{}` for its defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_protection: Option<QueueProtectionParams>,
    /// Whose details to follow where RFC 9332 and Linux differ.
    #[serde(default)]
    pub law: DualPi2Law,
}

const fn fifteen_ms() -> Duration {
    Duration::from_millis(15)
}

const fn hundred_ms() -> Duration {
    Duration::from_millis(100)
}

const fn two() -> AboveZero {
    AboveZero::literal(2.0)
}

const fn four_hundred_us() -> Duration {
    Duration::from_nanos(400_000)
}

const fn fifty_ms() -> Duration {
    Duration::from_millis(50)
}

const fn one_packet() -> Bytes {
    Bytes::new(1500)
}

/// Two queues under one controller.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    l4s: Queue<P>,
    classic: Queue<P>,
    total: Occupancy,
    limit: Depth,
    l4s_dscp: Option<Codepoints>,
    protection: Option<QueueProtection>,
    controller: PiController,
    marking: Marking,
    turns: Turns,
    rng: Rng,
}

#[derive(Clone, Debug)]
struct Queue<P> {
    packets: VecDeque<P>,
    counters: ClassCounters,
}

/// Which queue sends next.
#[derive(Clone, Debug)]
enum Turns {
    /// Parts of the link, and what the classic queue may send: it sends while that is above zero.
    WeightedRoundRobin {
        classic: i64,
        l4s: i64,
        credit: i64,
        first: i64,
    },
    TimeShiftedFifo(Duration),
}

/// The classes.
const L4S: usize = 0;
const CLASSIC: usize = 1;

/// The name of a class.
fn name(class: usize) -> &'static str {
    if class == L4S { "l4s" } else { "classic" }
}

/// The parts of which `classic-share` is a whole number.
const PARTS: f64 = 10_000.0;

impl<P: Packet> Block for DualPi2<P> {
    type Params = DualPi2Params;
    const NAME: &'static str = "dualpi2";
    const SUMMARY: &'static str =
        "L4S and classic packets in a queue each, marked and dropped by one controller of the delay";
    const ORIGIN: Origin = Origin::published(2015, "RFC 9332, appendix A").in_linux("dualpi2", "6.17");
    const BATCHED: bool = true;

    fn check(params: &DualPi2Params) -> Result<(), UnitError> {
        let refuse = |key: &str, text: &str| Err(UnitError::at(key, text));
        let parts = params.parts();
        if params.rtt_max < Duration::from_millis(3) {
            return refuse("rtt-max", "a round-trip time is at least 3ms, such as 100ms");
        }
        if params.interval() < Duration::from_millis(1) {
            let key = if params.interval.is_some() { "interval" } else { "target" };
            return refuse(
                key,
                "the base probability is updated once in 1ms at most: write a longer time, such as 15ms",
            );
        }
        if !(1..PARTS as i64).contains(&parts) {
            return refuse(
                "classic-share",
                "a share lies between 0.0001 and 0.9999, such as 0.0625: neither queue may starve",
            );
        }
        if params.k.get() > 100.0 {
            return refuse("k", "the coupling factor is at most 100, such as 2");
        }
        check_target(params.target, "15ms")?;
        check_gains(params.alpha, params.beta)?;
        params.queue_protection.as_ref().map_or(Ok(()), QueueProtectionParams::check)
    }

    fn keys_without_effect(params: &DualPi2Params, _: &RangeInclusive<u64>) -> Vec<(&'static str, String)> {
        let mut idle = Vec::new();
        if params.order == DualPi2Order::WeightedRoundRobin && params.shift != fifty_ms() {
            idle.push(("shift", "it acts with `order = \"time-shifted-fifo\"` only; leave it out".into()));
        }
        if params.order == DualPi2Order::TimeShiftedFifo && params.classic_share.is_some() {
            idle.push((
                "classic-share",
                "it acts with `order = \"weighted-round-robin\"` only; leave it out".into(),
            ));
        }
        if params.order == DualPi2Order::TimeShiftedFifo && !params.is_linux() && params.mtu != one_packet() {
            idle.push((
                "mtu",
                "it acts with `order = \"weighted-round-robin\"` or `law = \"linux\"` only; leave it out"
                    .into(),
            ));
        }
        if params.rtt_max != hundred_ms() {
            let given = params.interval.is_some() && params.alpha.is_some() && params.beta.is_some();
            if params.is_linux() {
                let text = "with `law = \"linux\"` the defaults of `interval`, `alpha` and `beta` are constants; leave it out";
                idle.push(("rtt-max", text.into()));
            } else if given {
                let text = "only defaults follow from it, and `interval`, `alpha` and `beta` are all given";
                idle.push(("rtt-max", text.into()));
            }
        }
        if params.is_linux() && params.range != four_hundred_us() {
            idle.push((
                "range",
                "with `law = \"linux\"` all packets above `step` are marked; leave it out".into(),
            ));
        }
        idle
    }

    fn pseudo_code(reason: Reason, noted: Noted<'_>) -> Option<PseudoCode> {
        Some(pseudo_code::of(reason, noted))
    }
}

impl DualPi2Params {
    const fn is_linux(&self) -> bool {
        matches!(self.law, DualPi2Law::Linux)
    }

    /// Tupdate.
    fn interval(&self) -> Duration {
        let third = Duration::from_nanos(self.rtt_max.as_nanos() / 3);
        let derived = if self.is_linux() { Duration::from_millis(16) } else { self.target.min(third) };
        self.interval.unwrap_or(derived)
    }

    /// alpha and beta.
    fn gains(&self) -> (f64, f64) {
        let rtt = self.rtt_max.as_secs_f64();
        let (alpha, beta) = if self.is_linux() {
            (41.0 / 256.0, 819.0 / 256.0)
        } else {
            (0.1 * self.interval().as_secs_f64() / (rtt * rtt), 0.3 / rtt)
        };
        (self.alpha.map_or(alpha, AboveZero::get), self.beta.map_or(beta, AboveZero::get))
    }

    /// The sojourn time above which packets of the L4S queue are marked.
    fn step(&self) -> Duration {
        self.step.unwrap_or(if self.is_linux() {
            Duration::from_millis(1)
        } else {
            Duration::from_nanos(800_000)
        })
    }

    /// `Th_len`
    fn step_length(&self) -> usize {
        self.step_length.unwrap_or_else(|| u32::from(!self.is_linux())) as usize
    }

    /// The classic queue's parts of the link.
    fn parts(&self) -> i64 {
        let share = self.classic_share.map_or(if self.is_linux() { 0.1 } else { 0.062_5 }, Probability::get);
        (share * PARTS).round() as i64
    }

    fn turns(&self) -> Turns {
        match self.order {
            DualPi2Order::TimeShiftedFifo => Turns::TimeShiftedFifo(self.shift),
            DualPi2Order::WeightedRoundRobin => {
                let classic = self.parts();
                let l4s = PARTS as i64 - classic;
                let mtu = i64::try_from(self.mtu.get().min(MOST_MTU)).unwrap_or(0);
                let first = mtu * (classic - l4s);
                Turns::WeightedRoundRobin { classic, l4s, credit: first, first }
            }
        }
    }

    fn room(&self, rate: Bitrate) -> Depth {
        let of_link = (u128::from(rate.as_bps()) / 8 / 4).max(LEAST_ROOM);
        let derived = if self.is_linux() {
            Depth::Packets(10_000)
        } else {
            Depth::Bytes(u64::try_from(of_link).unwrap_or(u64::MAX))
        };
        self.limit.unwrap_or(derived)
    }
}

/// The least derived limit, in bytes: twice the first window of today's TCP (RFC 6928), in packets of 1500 bytes. What a slow link
/// sends in 250 ms (RFC 9332, appendix A.1) holds less than one packet.
const LEAST_ROOM: u128 = 2 * 10 * 1500;

/// Credits stay far from the end of their range.
const MOST_MTU: u64 = 1 << 32;

impl<P: Packet> Scheduler for DualPi2<P> {
    fn new(params: DualPi2Params, environment: Environment, streams: Streams<'_>) -> Self {
        let (law, marking) = marking::new(&params);
        let protect =
            |params| QueueProtection::new(params, environment.rate, &mut streams.of("queue-protection"));
        Self {
            protection: params.queue_protection.as_ref().map(protect),
            l4s: Queue::new(),
            classic: Queue::new(),
            total: Occupancy::EMPTY,
            limit: params.room(environment.rate),
            l4s_dscp: params.l4s_dscp,
            controller: PiController::new(law, params.target, params.interval()),
            marking,
            turns: params.turns(),
            rng: streams.of("scheduler"),
        }
    }

    fn retune(&mut self, to: &Retuning<'_, DualPi2Params>) -> Result<(), UnitError> {
        to.keeps("law", |params| params.law)?;
        to.keeps("order", |params| params.order)?;
        to.keeps("l4s-dscp", |params| &params.l4s_dscp)?;
        match (&mut self.protection, &to.after.queue_protection) {
            (None, None) => {}
            (Some(held), Some(params)) => held.retune(params, to.rate)?,
            _ => return Err(fixed("queue-protection")),
        }
        let (law, mut marking) = marking::new(to.after);
        marking.take_over(&self.marking);
        let mut controller = PiController::new(law, to.after.target, to.after.interval());
        controller.take_over(&self.controller);
        let mut turns = to.after.turns();
        turns.take_over(&self.turns);
        (self.controller, self.marking, self.turns) = (controller, marking, turns);
        self.limit = to.after.room(to.rate);
        Ok(())
    }

    fn aqms<'a>(_: &'a DualPi2Params, _path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
        Vec::new()
    }

    fn class_keys(_: &DualPi2Params) -> Vec<ClassKey> {
        [L4S, CLASSIC].map(|class| ClassKey { name: name(class).into(), key: None }).into()
    }

    fn least_rates(_: &DualPi2Params, _: Bitrate) -> Vec<Option<Bitrate>> {
        Vec::new()
    }

    fn aqms_mut(_: &mut DualPi2Params) -> Vec<&mut AqmParams> {
        Vec::new()
    }

    fn unused_queue(params: &DualPi2Params, incoming: &Incoming<'_>) -> Option<(&'static str, String)> {
        let Incoming { headers, described, has_ect_1 } = *incoming;
        let Some(codepoints) = params.l4s_dscp else {
            let text = "no flow that passes this link sends ECT(1), so the L4S queue stays empty: give TCP flows \
                        `congestion = \"prague\"`, or TCP or UDP flows `ecn = \"l4s\"`, or take a FIFO with another AQM";
            return (!has_ect_1).then(|| (SchedulerParams::TAG, text.into()));
        };
        if headers.is_empty() || headers.iter().any(|packet| codepoints.contains(packet.dscp)) {
            return None;
        }
        let text = format!(
            "no packet that comes to this link has one of these codepoints; packets here carry {described}: name some of theirs, \
             or leave the key out"
        );
        Some(("l4s-dscp", text))
    }

    fn limit(params: &DualPi2Params, rate: Bitrate) -> Option<Depth> {
        Some(params.room(rate))
    }

    fn delay_targets(params: &DualPi2Params) -> Vec<DelayTarget> {
        // The controller and the step act each for itself.
        [("target", params.target, false), ("step", params.step(), params.step_length() > 0)]
            .map(|(key, target, spares_short)| DelayTarget {
                key,
                target,
                least_acting_delay: Duration::ZERO,
                spares_short,
            })
            .into()
    }
}

impl<P: Packet> Queue<P> {
    fn new() -> Self {
        Self { packets: VecDeque::new(), counters: ClassCounters::default() }
    }

    /// When its head came.
    #[inline]
    fn oldest(&self) -> Option<Instant> {
        self.packets.front().map(|head| head.header().arrived)
    }
}

impl Turns {
    /// Goes on with the credit of earlier turns of the same kind.
    fn take_over(&mut self, before: &Self) {
        if let (Self::WeightedRoundRobin { credit, .. }, Self::WeightedRoundRobin { credit: reached, .. }) =
            (self, before)
        {
            *credit = *reached;
        }
    }

    /// Whether the L4S queue sends next, where both have packets with heads that came at these times.
    #[inline]
    fn choose_l4s(&self, l4s: Instant, classic: Instant) -> bool {
        match self {
            Self::WeightedRoundRobin { credit, .. } => *credit <= 0,
            Self::TimeShiftedFifo(shift) => l4s <= classic + *shift,
        }
    }

    /// A packet of this class is sent, while packets of the other waited, too.
    #[inline]
    fn charge(&mut self, class: usize, size: u16) {
        if let Self::WeightedRoundRobin { classic, l4s, credit, .. } = self {
            *credit += i64::from(size) * if class == L4S { *classic } else { -*l4s };
        }
    }

    /// Nothing waits.
    fn begin_anew(&mut self) {
        if let Self::WeightedRoundRobin { credit, first, .. } = self {
            *credit = *first;
        }
    }
}

impl<P: Packet> DualPi2<P> {
    /// Makes up for the updates of the base probability that are due, as the queues were.
    #[inline]
    fn settle(&mut self, now: Instant) {
        let Self { controller, l4s, classic, .. } = self;
        controller.settle(|| l4s.oldest().into_iter().chain(classic.oldest()).min(), now);
    }

    /// The class whose head goes next, and whether both have one.
    #[inline]
    fn choose(&self) -> Option<(usize, bool)> {
        match (self.l4s.oldest(), self.classic.oldest()) {
            (None, None) => None,
            (Some(_), None) => Some((L4S, false)),
            (None, Some(_)) => Some((CLASSIC, false)),
            (Some(l4s), Some(classic)) => {
                Some((if self.turns.choose_l4s(l4s, classic) { L4S } else { CLASSIC }, true))
            }
        }
    }

    /// The class that a packet joins.
    #[inline]
    fn admitted_to(&mut self, packet: &Header, now: Instant) -> usize {
        let class = self.class_of(packet);
        let waiting = self.l4s.counters.occupancy.bytes();
        let redirected =
            class == L4S && self.protection.as_mut().is_some_and(|held| held.redirects(packet, waiting, now));
        if redirected { CLASSIC } else { class }
    }

    #[inline]
    fn queue_mut(&mut self, class: usize) -> &mut Queue<P> {
        if class == L4S { &mut self.l4s } else { &mut self.classic }
    }

    #[inline]
    fn judge(&mut self, class: usize, packet: &Header, now: Instant) -> Verdict {
        let state = State {
            law: self.controller.law(),
            waiting: self.total.bytes(),
            behind: self.l4s.packets.len(),
            sojourn: now.since(packet.arrived),
        };
        if class == L4S {
            self.marking.of_l4s(&state, &mut self.rng)
        } else {
            self.marking.of_classic(&state, &mut self.rng)
        }
    }
}

#[cfg(feature = "trace")]
impl<P: Packet> DualPi2<P> {
    /// What a packet of this class met that is dropped or marked.
    fn note(&self, class: usize) {
        if !crate::trace::is_recording() {
            return;
        }
        let p = self.controller.p();
        let gauges = vec![
            (name(class), 1.0),
            ("p'", p),
            ("p_CL", self.marking.coupled(p)),
            ("p_C", p * p),
            ("delay at the last update_s", self.controller.delay().as_secs_f64()),
            ("packets left in the L4S queue", self.l4s.packets.len() as f64),
            ("packets left in the classic queue", self.classic.packets.len() as f64),
        ];
        crate::trace::end(Self::NAME, gauges, self.total.packets(), self.total.bytes());
    }
}

impl<P: Packet> Discipline<P> for DualPi2<P> {
    #[inline(always)]
    fn enqueue(&mut self, mut packet: P, now: Instant) -> Result<(), (P, Reason)> {
        self.settle(now);
        packet.arrive(now);
        let mut header = packet.header();
        let class = self.admitted_to(&header, now);
        let room = !self.total.is_full_for(&header, self.limit);
        #[cfg(feature = "trace")]
        crate::trace::begin();
        let queue = if class == L4S { &mut self.l4s } else { &mut self.classic };
        let decide = |_: &mut Header| if room { Ok(None) } else { Err(Reason::Overflow) };
        if let Err(reason) = queue.counters.through.arrival(&mut header, now, decide) {
            #[cfg(feature = "trace")]
            self.note(class);
            return Err((packet, reason));
        }
        let Header { color, size, .. } = header;
        self.total.add(color, size);
        queue.counters.occupancy.add(color, size);
        queue.packets.push_back(packet);
        Ok(())
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        self.settle(now);
        let Some((class, both)) = self.choose() else {
            self.turns.begin_anew();
            return Dequeued::Wait(None);
        };
        let queue = self.queue_mut(class);
        let mut packet = queue.packets.pop_front().expect("its head was seen");
        let mut header = packet.header();
        let Header { color, size, .. } = header;
        queue.counters.occupancy.remove(color, size);
        self.total.remove(color, size);
        #[cfg(feature = "trace")]
        crate::trace::begin();
        let judged = self.judge(class, &header, now).apply(&mut header);
        #[cfg(feature = "trace")]
        if judged != Ok(None) {
            self.note(class);
        }
        let through = &mut self.queue_mut(class).counters.through;
        match judged {
            Ok(notified) => {
                if let Some(reason) = notified {
                    packet.notify();
                    through.notify(color, reason);
                }
                through.send(color);
                if both {
                    self.turns.charge(class, size);
                }
                Dequeued::Sent(packet, class)
            }
            Err(reason) => {
                through.drop(color, reason);
                Dequeued::Dropped(packet, reason)
            }
        }
    }

    fn occupancy(&self) -> &Occupancy {
        &self.total
    }

    fn classes(&self) -> usize {
        2
    }

    fn class(&self, class: usize) -> &ClassCounters {
        if class == L4S { &self.l4s.counters } else { &self.classic.counters }
    }

    fn class_name(&self, class: usize) -> &str {
        name(class)
    }

    #[inline]
    fn class_of(&self, packet: &Header) -> usize {
        let scalable = matches!(packet.ecn, Ecn::Capable1 | Ecn::Congested);
        if scalable || self.l4s_dscp.is_some_and(|dscps| dscps.contains(packet.dscp)) { L4S } else { CLASSIC }
    }

    fn gauges(&self) -> Vec<(String, f64)> {
        let protection = self.protection.iter().map(|held| ("redirected".into(), held.redirected()));
        std::iter::once(("base probability".into(), self.controller.p())).chain(protection).collect()
    }

    fn on_message(&mut self, _label: u32, _message: &Message) {}

    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.l4s.packets.iter().chain(&self.classic.packets).for_each(show);
    }
}
