//! Duplicate scheduling with deadlines: draft-hurley-alternative-best-effort-01, section 5 and appendices A
//! and B.
//!
//! A duplicate of every packet goes through a virtual FIFO, as it would through flat best effort. A blue
//! packet must leave no later than its duplicate, and is dropped only where its duplicate is. A green packet
//! must leave within `bound` of its arrival, or is dropped. Whenever the blue head can wait for the green
//! one, the green one may go first: so green waits little, and blue is never worse off than without green.
//!
//! ## Deviations
//! - In the draft a green packet is let in although its duplicate is refused. Blue can then find the link
//!   busy with a packet that flat best effort would have dropped, and leave later than its duplicate; so the
//!   default drops such a packet, and `refused-green = "admit"` is the draft's rule.
//!   `a_refused_green_packet_can_delay_blue` shows the difference.
//! - The draft's early test does not count what is left of the packet in transmission; here it does, as
//!   otherwise a green packet that passes could still be late. `early_drop_lets_in_only_what_leaves_in_time`
//!   shows that none is. Blue packets due at the end of its transmission do not count, as in appendix B (the
//!   draft's text says "shorter or equal").
//! - Time is in whole nanoseconds. On a link where packets do not take a whole number of them, a blue packet
//!   can leave one later than its duplicate, and a green one that the early test lets in to the last of them
//!   can come out late and be dropped then. `parts_of_a_nanosecond` shows that it is no more.
//! - The draft moves the bias g by a control loop whose details are in a report that cannot be had (EPFL
//!   DSC/2000/034). The loop here, off by default, compares the rates that the loss-throughput formula of TCP
//!   predicts.
//! - The draft's flat best effort drops on arrival. Under an AQM that decides at departure, such as `CoDel`,
//!   duplicates are served in virtual time, and a packet that still waits when its duplicate is dropped or
//!   marked is dropped or marked as well; a deadline then is that of the duplicate if no more drops come
//!   before it. With blue packets alone this is a FIFO under the AQM
//!   (`an_overloaded_queue_drops_the_same_packets_under_every_scheduler`).

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

mod control;
mod flat;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::control::Control;
use self::flat::{Decision, Flat};
use super::guarantees::{largest, together};
use super::services::{classes_are_services, services_share_a_rule};
use super::{
    Admitted, ClassKey, Dequeued, Discipline, Guarantee, Load, Retuning, Room, Scheduler, Server, Step,
    Unbounded, in_rule, retune_aqm,
};
use crate::abe::Service;
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::curves::backlog;
use crate::units::defaults::{millis, probability};
use crate::units::{UnitError, fixed, require};
use crate::{
    Bitrate, Block, Bytes, ClassCounters, Duration, Environment, Header, Instant, Occupancy, Origin, Packet,
    Probability, PseudoCode, Reason, Rng, Streams,
};

/// When a green packet that cannot leave in time is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GreenDrop {
    /// On arrival (the draft's appendix B): admitted packets leave in time while the bias is 1.
    #[default]
    Early,
    /// When its deadline has passed (appendix A).
    Late,
}

/// What happens to a green packet whose duplicate is dropped on arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedGreen {
    /// The packet is dropped, as flat best effort would drop it.
    #[default]
    Drop,
    /// The packet is admitted nevertheless (the draft).
    Admit,
}

/// Parameters of [`Dsd`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DsdParams {
    /// The maximum waiting time of a green packet (d).
    pub bound: Duration,
    /// The probability that green is served first when both head packets can wait (g). With the control loop,
    /// its initial value.
    #[serde(default = "probability::<1, 1>")]
    pub bias: Probability,
    /// When a green packet that cannot leave in time is dropped.
    #[serde(default)]
    pub green_drop: GreenDrop,
    /// What happens to a green packet whose duplicate is dropped on arrival.
    #[serde(default)]
    pub refused_green: RefusedGreen,
    /// How often the control loop adjusts the bias, so that green's predicted rate does not exceed blue's.
    /// Default: no control loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Duration>,
    /// The step by which the control loop adjusts the bias.
    #[serde(default = "probability::<5, 100>")]
    pub step: Probability,
    /// The round-trip time without the queueing delay here, from which the control loop predicts rates.
    #[serde(default = "millis::<50>")]
    pub base_rtt: Duration,
    /// The AQM of the virtual queue: the flat best effort that is the reference for blue.
    pub rule: AqmParams,
}

/// Two queues in order of arrival, and the virtual one that says when blue is due.
#[derive(Clone, Debug)]
pub struct Dsd<P> {
    rate: Bitrate,
    bound: Duration,
    green_drop: GreenDrop,
    refused_green: RefusedGreen,
    flat: Flat,
    /// The number of the next packet that arrives.
    ticket: u64,
    blue: Blue<P>,
    green: VecDeque<Held<P>>,
    classes: [ClassCounters; 2],
    total: Occupancy,
    /// When the packet in transmission is sent.
    busy_until: Instant,
    bias: f64,
    control: Option<Control>,
    rng: Rng,
}

#[derive(Clone, Debug)]
struct Held<P> {
    packet: P,
    ticket: u64,
    deadline: Instant,
    /// What became of its duplicate as that left the virtual queue.
    decided: Option<Result<Reason, Reason>>,
}

/// Blue packets, and how many bytes of them are due by a deadline. Deadlines are as the virtual queue
/// computed them on arrival.
#[derive(Clone, Debug)]
struct Blue<P> {
    packets: VecDeque<Held<P>>,
    due: usize,
    due_bytes: u64,
}

const CODE: PseudoCode = PseudoCode {
    lines: &[
        "for each packet that arrives: the AQM of the virtual queue of duplicates judges its duplicate",
        "    if it drops the duplicate: drop the packet, too",
        "a green packet goes before blue ones while these can still be sent by the deadlines of their duplicates",
        "a packet that can no longer be sent by its deadline: drop (late)",
    ],
    acts: &[(Reason::Late, &[3])],
};

impl<P: Packet> Block for Dsd<P> {
    type Params = DsdParams;
    const NAME: &'static str = "dsd";
    const SUMMARY: &'static str =
        "green packets leave soon or are dropped, blue ones leave no later than without green";
    const ORIGIN: Origin = Origin::paper(
        2000,
        "duplicate scheduling with deadlines, draft-hurley-alternative-best-effort-01, section 5",
    );
    const BATCHED: bool = true;
    const PSEUDO_CODE: Option<PseudoCode> = Some(CODE);

    fn check(params: &DsdParams) -> Result<(), UnitError> {
        let text = "control must be above 0s, such as 1s; leave it out for a fixed bias";
        require(!params.control.is_some_and(Duration::is_zero), "", text)
    }
}

impl<P: Packet> Scheduler for Dsd<P> {
    fn new(params: DsdParams, environment: Environment, streams: Streams<'_>) -> Self {
        Self {
            rate: environment.rate,
            bound: params.bound,
            green_drop: params.green_drop,
            refused_green: params.refused_green,
            flat: Flat::new(params.rule.clone(), environment, streams.of("aqm")),
            ticket: 0,
            blue: Blue { packets: VecDeque::new(), due: 0, due_bytes: 0 },
            green: VecDeque::new(),
            classes: Default::default(),
            total: Occupancy::EMPTY,
            busy_until: Instant::ZERO,
            bias: params.bias.get(),
            control: params.control.map(|interval| Control::new(interval, &params)),
            rng: streams.of("scheduler"),
        }
    }

    fn retune(&mut self, to: &Retuning<'_, DsdParams>) -> Result<(), UnitError> {
        let DsdParams { bound, bias, green_drop, refused_green, .. } = *to.after;
        match (&mut self.control, to.after.control) {
            (None, None) => self.bias = bias.get(),
            (Some(control), Some(interval)) => {
                to.keeps("bias", |params| params.bias)?;
                control.retune(interval, to.after);
            }
            _ => return Err(fixed("control")),
        }
        (self.bound, self.green_drop, self.refused_green) = (bound, green_drop, refused_green);
        let environment = Environment { rate: self.rate };
        let flat = &mut self.flat;
        retune_aqm(&to.before.rule, &to.after.rule, |rule| flat.retune(rule, environment)).map_err(in_rule)
    }

    services_share_a_rule!(DsdParams);

    /// A green packet that has waited for `bound` is dropped. A blue one leaves no later than its duplicate
    /// leaves the virtual FIFO, to a nanosecond for each packet that is rounded; where green packets are
    /// admitted without a duplicate, blue ones may be later.
    fn guarantees(params: &DsdParams, server: &Server, loads: &[Load]) -> Vec<Result<Guarantee, Unbounded>> {
        let room = Room::of(&params.rule, server.rate);
        let source = "draft-hurley-alternative-best-effort-01, section 5";
        let flat = Load {
            arrivals: together(loads),
            largest: largest(loads),
            smallest: loads
                .iter()
                .filter(|load| load.flows > 0)
                .map(|load| load.smallest)
                .min()
                .unwrap_or_default(),
            flows: loads.iter().map(|load| load.flows).fold(0, u64::saturating_add),
        };
        let blue = (server.is_link && params.refused_green == RefusedGreen::Drop).then(|| {
            let alone = server.guarantee(&flat);
            let rounded = Duration::from_nanos(2);
            let longest = alone.wait(&flat).map(|wait| wait + rounded);
            let step = Step::new("a blue packet leaves no later than in a FIFO of all packets", "", source);
            // The virtual queue holds duplicates of both services.
            let fits = flat
                .arrivals
                .as_ref()
                .is_some_and(|arrivals| room.holds(arrivals, &server.strict, flat.smallest));
            let because = (!fits)
                .then(|| "more duplicates may wait in the virtual queue than it has room for".to_owned());
            Guarantee {
                longest,
                by_limit: room.longest(&server.strict.later(rounded), flat.largest),
                room: Room { because, ..room.clone() },
                steps: vec![step],
                ..Guarantee::default()
            }
        });
        let reason = || "green packets that are admitted without a duplicate can delay blue ones".to_owned();
        // A green packet may wait for longer than its duplicate, so the limit of these says nothing of it.
        let green = Guarantee {
            longest: Some(params.bound),
            outstays: true,
            most: flat.arrivals.as_ref().and_then(|arrivals| backlog(arrivals, &server.strict)),
            room: Room { because: Some("a green packet that is late is dropped".into()), ..Room::default() },
            steps: vec![Step::new("a green packet leaves in time or is dropped", "bound", source)],
            ..Guarantee::default()
        };
        vec![blue.ok_or_else(reason), Ok(green)]
    }

    fn least_rates(_: &DsdParams, rate: Bitrate) -> Vec<Option<Bitrate>> {
        vec![Some(rate)]
    }
}

impl<P: Packet> Dsd<P> {
    /// Returns how long these bytes take, rounded down: a packet that may wait to the nanosecond may.
    #[inline]
    fn time_of(&self, bytes: u64) -> Duration {
        self.rate.time_of(Bytes::new(bytes))
    }

    /// Admits a packet: returns its deadline and whether it is marked, as its duplicate is; or why it is
    /// dropped.
    #[inline]
    fn admit(&mut self, header: &mut Header, now: Instant) -> Result<Admitted, Reason> {
        let duplicate = self.flat.admit(header, self.ticket, now);
        match (Service::of(header.dscp), duplicate) {
            (Service::Blue, judged) => judged,
            (Service::Green, Err(reason)) if self.refused_green == RefusedGreen::Drop => Err(reason),
            (Service::Green, _)
                if self.green_drop == GreenDrop::Early && !self.leaves_in_time(header, now) =>
            {
                Err(Reason::DelayControl)
            }
            (Service::Green, duplicate) => {
                let notified = duplicate.ok().and_then(|duplicate| duplicate.notified);
                Ok(Admitted { service: now + self.bound, notified })
            }
        }
    }

    /// Applies the draft's admission test: what goes before a green packet, and the packet itself, take no
    /// longer than its bound and its own transmission.
    #[inline]
    fn leaves_in_time(&mut self, header: &Header, now: Instant) -> bool {
        let size = u64::from(header.size);
        let own = self.time_of(size);
        let due = self.blue.due_bytes_before(now + self.bound + own + self.flat.advanced());
        let green = self.classes[Service::Green.index()].occupancy.bytes();
        self.busy_until.since(now) + self.time_of(green + due + size) <= self.bound + own
    }

    /// Serves the virtual queue up to now. What it decides of a duplicate as that leaves applies to the
    /// packet, if it still waits.
    #[inline]
    fn settle(&mut self, now: Instant) {
        let Self { flat, blue, green, refused_green, .. } = self;
        flat.settle(now, |Decision { ticket, judged }| {
            if let Ok(place) = blue.packets.binary_search_by_key(&ticket, |held| held.ticket) {
                blue.packets[place].decided = Some(judged);
            } else if let Ok(place) = green.binary_search_by_key(&ticket, |held| held.ticket)
                && (judged.is_ok() || *refused_green == RefusedGreen::Drop)
            {
                green[place].decided = Some(judged);
            }
        });
    }

    /// Returns which of two heads goes next.
    #[inline]
    fn choose(&mut self, now: Instant) -> Option<Service> {
        let (blue, green) = match (self.blue.packets.front(), self.green.front()) {
            (None, None) => return None,
            (Some(_), None) => return Some(Service::Blue),
            (None, Some(_)) => return Some(Service::Green),
            (Some(blue), Some(green)) => (blue, green),
        };
        let after = |held: &Held<P>| now + self.time_of(u64::from(held.packet.header().size));
        Some(if after(green) + self.flat.advanced() > blue.deadline {
            Service::Blue
        } else if after(blue) > green.deadline || self.rng.chance(self.bias) {
            Service::Green
        } else {
            Service::Blue
        })
    }

    /// Returns why a head must go: its time is over, or its duplicate was dropped.
    #[inline]
    fn condemned(&self, now: Instant) -> Option<(Service, Reason)> {
        let dropped = |held: &Held<P>| held.decided.and_then(Result::err);
        let late = |held: &Held<P>| (now > held.deadline).then_some(Reason::Late);
        if let Some(reason) = self.green.front().and_then(|green| late(green).or_else(|| dropped(green))) {
            return Some((Service::Green, reason));
        }
        Some((Service::Blue, dropped(self.blue.packets.front()?)?))
    }

    #[inline]
    fn pop(&mut self, service: Service) -> Held<P> {
        let held = match service {
            Service::Blue => self.blue.pop(),
            Service::Green => self.green.pop_front(),
        };
        let held = held.expect("its head was seen");
        let header = held.packet.header();
        self.total.remove(header.color, header.size);
        self.classes[service.index()].occupancy.remove(header.color, header.size);
        held
    }
}

impl<P: Packet> Discipline<P> for Dsd<P> {
    #[inline(always)]
    fn enqueue(&mut self, mut packet: P, now: Instant) -> Result<(), (P, Reason)> {
        self.settle(now);
        let mut header = Header { arrived: now, ..packet.header() };
        let service = Service::of(header.dscp);
        let class = service.index();
        if let Some(control) = &mut self.control {
            control.settle(now, &mut self.bias);
            control.arrived[class] += 1;
        }
        let admitted = self.admit(&mut header, now);
        let ticket = self.ticket;
        self.ticket += 1;
        let decided = admitted.map(|admitted| admitted.notified);
        packet.arrive(now);
        let _ = self.classes[class].through.arrival(&mut header, now, |_| decided);
        let deadline = match admitted {
            Ok(admitted) => admitted.service,
            Err(reason) => {
                if let Some(control) = &mut self.control {
                    control.lost[class] += 1;
                }
                return Err((packet, reason));
            }
        };
        if admitted.is_ok_and(|admitted| admitted.notified.is_some()) {
            packet.notify();
        }
        self.total.add(header.color, header.size);
        self.classes[class].occupancy.add(header.color, header.size);
        let held = Held { packet, ticket, deadline, decided: None };
        match service {
            Service::Blue => self.blue.packets.push_back(held),
            Service::Green => self.green.push_back(held),
        }
        Ok(())
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        self.settle(now);
        if let Some((service, reason)) = self.condemned(now) {
            let Held { packet, .. } = self.pop(service);
            self.classes[service.index()].through.drop(packet.header().color, reason);
            if let Some(control) = &mut self.control {
                control.lost[service.index()] += 1;
            }
            return Dequeued::Dropped(packet, reason);
        }
        let Some(service) = self.choose(now) else { return Dequeued::Wait(None) };
        let Held { mut packet, decided, .. } = self.pop(service);
        let header = packet.header();
        let through = &mut self.classes[service.index()].through;
        if let Some(Ok(reason)) = decided {
            packet.notify();
            through.notify(header.color, reason);
        }
        through.send(header.color);
        self.busy_until = now + self.rate.time_of(Bytes::new(header.size.into()));
        if let Some(control) = &mut self.control {
            control.send(service, &header, now);
        }
        Dequeued::Sent(packet, service.index())
    }

    classes_are_services!();

    fn count_held(&mut self, _class: usize, packet: &Header, waits: bool) {
        self.total.count(waits, packet);
    }

    fn occupancy(&self) -> &Occupancy {
        &self.total
    }

    fn class(&self, class: usize) -> &ClassCounters {
        &self.classes[class]
    }

    fn gauges(&self) -> Vec<(String, f64)> {
        let mut gauges = self.flat.gauges();
        gauges.push(("bias".into(), self.bias));
        gauges
    }

    fn on_message(&mut self, _label: u32, message: &Message) {
        self.flat.on_message(message);
    }

    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.blue.packets.iter().chain(&self.green).for_each(|held| show(&held.packet));
    }
}

impl<P: Packet> Blue<P> {
    /// Returns the bytes of the packets due before then. The count moves with time, one step a packet; where
    /// green packets of several sizes ask, also back and forth by the packets that are sent in the difference
    /// of their times.
    #[inline]
    fn due_bytes_before(&mut self, deadline: Instant) -> u64 {
        let size = |held: &Held<P>| u64::from(held.packet.header().size);
        while let Some(held) = self.packets.get(self.due).filter(|held| held.deadline < deadline) {
            self.due += 1;
            self.due_bytes += size(held);
        }
        while self.due > 0 && self.packets[self.due - 1].deadline >= deadline {
            self.due -= 1;
            self.due_bytes -= size(&self.packets[self.due]);
        }
        self.due_bytes
    }

    #[inline]
    fn pop(&mut self) -> Option<Held<P>> {
        let held = self.packets.pop_front()?;
        if self.due > 0 {
            self.due -= 1;
            self.due_bytes -= u64::from(held.packet.header().size);
        }
        Some(held)
    }
}

#[cfg(test)]
mod tests;
