//! `DualPI2`: RFC 9332, appendix A.
//!
//! Packets of scalable congestion controls, which say so by ECT(1), wait in a short queue of their own (L4S,
//! RFC 9331), all others in the classic queue. Both share the link: one controller of the queueing delay
//! gives a base probability p', by which L4S packets are marked with the probability k p' and classic ones
//! dropped or marked with p'^2, so that flows of both kinds have about the same window. L4S packets are also
//! marked where they have waited longer than about a millisecond.
//!
//! ## Deviations
//! - Where k p' is above 1, it counts as 1 in L4S marking: in the RFC's pseudocode the counter of marks would
//!   grow without bound, and marks would go on long after (`an_overload_leaves_no_debt_of_marks`). Drops and
//!   marks of L4S packets in overload have a counter each.
//! - The RFC leaves the scheduler open, but for bounds. Weighted round robin is Linux's, with one credit:
//!   `a_classic_packet_goes_after_nine`.
//! - The RFC recommends queue protection (section 4.1.2) and leaves it open; `queue-protection` is that of
//!   RFC 9957. Packets that it redirects keep their ECN field, and the classic queue marks those that are
//!   ECN-capable (`protected_flows_do_not_suffer_from_others`).
//! - `law = "linux"`: gains are rounded, each decision is a random draw, one threshold takes the place of the
//!   ramp, and the controller decides on nothing while less than two packets of `mtu` wait. Linux's limit of
//!   memory is left out. A `step-length` is judged as a packet leaves, by those behind it; in Linux as it
//!   arrives, by those before it, which is the same for its default of 0.

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

mod marking;
mod params;
mod pseudo_code;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use self::marking::{Marking, State};
use self::params::PARTS;
use super::guarantees::{by_deadlines, largest, shared};
use super::protection::QueueProtection;
use super::queues::REDIRECTED;
use super::{
    ClassKey, Dequeued, Discipline, Guarantee, Incoming, Load, Retuning, Room, Scheduler, SchedulerParams,
    Server, Serving, Step, Unbounded,
};
use crate::aqm::{PiController, Verdict};
use crate::curves::{nanobits, scaled_up};
use crate::units::{UnitError, fixed};
use crate::{
    Bitrate, Block, Bytes, ClassCounters, Codepoints, DelayTarget, Depth, Duration, Ecn, Environment, Header,
    Instant, KeysWithoutEffect, Noted, Occupancy, Origin, Packet, PseudoCode, Reason, Rng, Streams,
};

pub use self::params::{DualPi2Law, DualPi2Order, DualPi2Params, Overload};

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

const L4S: usize = 0;
const CLASSIC: usize = 1;

fn name(class: usize) -> &'static str {
    if class == L4S { "l4s" } else { "classic" }
}

impl<P: Packet> Block for DualPi2<P> {
    type Params = DualPi2Params;
    const NAME: &'static str = "dualpi2";
    const SUMMARY: &'static str =
        "L4S and classic packets in a queue each, marked and dropped by one controller of the delay";
    const ORIGIN: Origin = Origin::published(2015, "RFC 9332, appendix A").in_linux("dualpi2", "6.17");
    const BATCHED: bool = true;

    fn check(params: &DualPi2Params) -> Result<(), UnitError> {
        params.check()
    }

    fn keys_without_effect(params: &DualPi2Params, _: &RangeInclusive<u64>) -> KeysWithoutEffect {
        params.without_effect()
    }

    fn pseudo_code(reason: Reason, noted: Noted<'_>) -> Option<PseudoCode> {
        Some(pseudo_code::of(reason, noted))
    }
}

impl DualPi2Params {
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
}

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

    fn class_keys(_: &DualPi2Params) -> Vec<ClassKey> {
        [L4S, CLASSIC].map(|class| ClassKey { name: name(class).into(), key: None }).into()
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

    /// With a time shift, L4S packets have the deadline zero and classic ones the shift. In weighted round
    /// robin each queue gets its share while both have packets: the credit stays within a packet at either
    /// share, whatever it begins with (RFC 9332, section 4.2.2).
    fn guarantees(
        params: &DualPi2Params,
        server: &Server,
        loads: &[Load],
    ) -> Vec<Result<Guarantee, Unbounded>> {
        let because =
            Some("classic packets are dropped or marked by chance, and both in overload".to_owned());
        let room = Room { limit: Some(params.room(server.rate)), because, ..Room::default() };
        if params.queue_protection.is_some() {
            return vec![Err(REDIRECTED.into()); 2];
        }
        if params.order == DualPi2Order::TimeShiftedFifo {
            let deadlines =
                [L4S, CLASSIC].map(|class| if class == L4S { Duration::ZERO } else { params.shift });
            return by_deadlines(&deadlines, server, loads, &room);
        }
        let largest = i128::from(largest(loads).get().max(params.mtu.get()));
        let largest = nanobits(Bytes::new(u64::try_from(largest).unwrap_or(u64::MAX)));
        let parts = [L4S, CLASSIC].map(|class| {
            let classic = i128::from(params.parts());
            if class == L4S { i128::from(PARTS as i64) - classic } else { classic }
        });
        let guarantee = |class: usize| {
            let (own, all) = (parts[class], parts[L4S] + parts[CLASSIC]);
            // What the other queue may send before the shares hold: the credit's range, and a packet under
            // way.
            let ahead = scaled_up(largest, 2 * all, own).saturating_add(largest);
            let [strict, waits] =
                [&server.strict, &server.waits].map(|curve| curve.less(ahead).part(own, all));
            let step = Step::new(
                "weighted round robin: its share of the link, behind what the credit lets the other queue send first",
                format!("β(t) = {}", Serving(&waits)),
                "RFC 9332, section 4.2.2",
            );
            Ok(shared(server, loads, class, (strict, waits), room.clone(), step))
        };
        vec![guarantee(L4S), guarantee(CLASSIC)]
    }

    fn delay_targets(params: &DualPi2Params) -> Vec<DelayTarget> {
        // The controller and the step act each for itself.
        let step = DelayTarget::at("step", params.step(), Duration::ZERO);
        vec![
            DelayTarget::at("target", params.target, Duration::ZERO),
            DelayTarget { spares_short: params.step_length() > 0, ..step },
        ]
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
        crate::trace::begin();
        let queue = if class == L4S { &mut self.l4s } else { &mut self.classic };
        let decide = |_: &mut Header| if room { Ok(None) } else { Err(Reason::Overflow) };
        if let Err(reason) = queue.counters.through.arrival(&mut header, now, decide) {
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
        crate::trace::begin();
        let judged = self.judge(class, &header, now).apply(&mut header);
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

    fn count_held(&mut self, _class: usize, packet: &Header, waits: bool) {
        self.total.count(waits, packet);
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

    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.l4s.packets.iter().chain(&self.classic.packets).for_each(show);
    }
}
