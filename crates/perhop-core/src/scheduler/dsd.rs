//! Duplicate scheduling with deadlines: draft-hurley-alternative-best-effort-01, section 5 and appendices A and B.
//!
//! A duplicate of every packet goes through a virtual FIFO, as it would through flat best effort. A blue packet must leave
//! no later than its duplicate, and is dropped only where its duplicate is. A green packet must leave within `bound` of its
//! arrival, or is dropped. Whenever the blue head can wait for the green one, the green one may go first: so green waits
//! little, and blue is never worse off than without green.
//!
//! ## Deviations
//! - In the draft a green packet is let in although its duplicate is refused. Blue can then find the link busy with a packet
//!   that flat best effort would have dropped, and leave later than its duplicate; so the default drops such a packet, and
//!   `refused-green = "admit"` is the draft's rule. `a_refused_green_packet_can_delay_blue` shows the difference.
//! - The draft's early test does not count what is left of the packet in transmission; here it does, as otherwise a green
//!   packet that passes could still be late. `early_drop_lets_in_only_what_leaves_in_time` shows that none is. Blue packets due
//!   at the end of its transmission do not count, as in appendix B (the draft's text says "shorter or equal").
//! - Time is in whole nanoseconds. On a link where packets do not take a whole number of them, a blue packet can leave one
//!   later than its duplicate, and a green one that the early test lets in to the last of them can come out late and be
//!   dropped then. `parts_of_a_nanosecond` shows that it is no more.
//! - The draft moves the bias g by a control loop whose details are in a report that cannot be had (EPFL DSC/2000/034). The
//!   loop here, off unless asked for, compares the rates that the loss-throughput formula of TCP predicts.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::services::{Books, books_of_services};
use super::{Admitted, Dequeued, Discipline, ForeseenFifo};
use crate::abe::Service;
use crate::aqm::{AqmParams, Reason};
use crate::control::Message;
use crate::units::UnitError;
use crate::{
    Bitrate, Block, Bytes, Context, Duration, Environment, Header, Instant, Ledger, Occupancy, Packet,
    Probability, Serializer,
};

/// When a green packet that cannot leave in time is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GreenDrop {
    /// As it comes (the draft's appendix B): what is let in, leaves in time while the bias is 1.
    #[default]
    Early,
    /// When its time is over (appendix A).
    Late,
}

/// What becomes of a green packet whose duplicate is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedGreen {
    /// It is dropped, as flat best effort would.
    #[default]
    Drop,
    /// It is let in all the same (the draft).
    Admit,
}

/// Parameters of [`Dsd`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DsdParams {
    /// The longest that a green packet may wait (d).
    pub bound: Duration,
    /// The probability that green goes first when both heads can wait (g). With the control loop, where it begins.
    #[serde(default = "one")]
    pub bias: Probability,
    /// When a green packet that cannot leave in time is dropped.
    #[serde(default)]
    pub green_drop: GreenDrop,
    /// What becomes of a green packet whose duplicate is refused.
    #[serde(default)]
    pub refused_green: RefusedGreen,
    /// How often the control loop moves the bias, so that green's predicted rate is not above blue's; never unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Duration>,
    /// By how much the control loop moves the bias.
    #[serde(default = "twentieth")]
    pub step: Probability,
    /// The round-trip time without the wait at this queue, from which the control loop predicts rates.
    #[serde(default = "fifty_ms")]
    pub base_rtt: Duration,
    /// The rule of the virtual queue: the flat best effort that blue is held to.
    pub rule: AqmParams,
}

fn one() -> Probability {
    Probability::new(1.0).expect("a probability")
}

fn twentieth() -> Probability {
    Probability::new(0.05).expect("a probability")
}

const fn fifty_ms() -> Duration {
    Duration::from_millis(50)
}

/// Two queues in order of arrival, and the virtual one that says when blue is due.
#[derive(Clone, Debug)]
pub struct Dsd<P> {
    rate: Bitrate,
    bound: Duration,
    green_drop: GreenDrop,
    refused_green: RefusedGreen,
    flat: ForeseenFifo,
    flat_link: Serializer,
    blue: Blue<P>,
    green: VecDeque<Held<P>>,
    books: Books,
    /// When the packet in transmission is sent.
    busy_until: Instant,
    bias: f64,
    control: Option<Control>,
}

#[derive(Clone, Debug)]
struct Held<P> {
    packet: P,
    deadline: Instant,
}

/// Blue packets, and how many bytes of them are due by a time that is asked for again and again.
#[derive(Clone, Debug)]
struct Blue<P> {
    packets: VecDeque<Held<P>>,
    due: usize,
    due_bytes: u64,
}

/// Moves the bias so that a TCP-friendly green source gets no more than a blue one.
#[derive(Clone, Debug)]
struct Control {
    interval: Duration,
    step: f64,
    base_rtt: f64,
    ends: Instant,
    /// In the present interval, by service.
    arrived: [u64; 2],
    lost: [u64; 2],
    sent: [u64; 2],
    waited: [Duration; 2],
}

impl<P: Packet> Block for Dsd<P> {
    type Params = DsdParams;
    const NAME: &'static str = "dsd";
    const SUMMARY: &'static str =
        "green packets leave soon or are dropped, blue ones leave no later than without green";
    const SOURCE: &'static str =
        "duplicate scheduling with deadlines, draft-hurley-alternative-best-effort-01, section 5";

    fn check(params: &DsdParams) -> Result<(), UnitError> {
        if params.control.is_some_and(Duration::is_zero) {
            return Err(UnitError::new(
                "control must be above 0s, such as 1s; leave it out for a fixed bias",
            ));
        }
        Ok(())
    }

    fn rules_for<'a>(params: &'a DsdParams, _path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
        vec![("rule".into(), &params.rule)]
    }

    fn new(params: DsdParams, environment: Environment) -> Self {
        let Environment { rate } = environment;
        Self {
            rate,
            bound: params.bound,
            green_drop: params.green_drop,
            refused_green: params.refused_green,
            flat: ForeseenFifo::new(params.rule.clone(), environment),
            flat_link: Serializer::new(rate),
            blue: Blue { packets: VecDeque::new(), due: 0, due_bytes: 0 },
            green: VecDeque::new(),
            books: Books::new(),
            busy_until: Instant::ZERO,
            bias: params.bias.get(),
            control: params.control.map(|interval| Control::new(interval, &params)),
        }
    }
}

impl<P: Packet> Dsd<P> {
    /// How long these bytes take, rounded down: a packet that may wait to the nanosecond may.
    #[inline]
    fn time_of(&self, bytes: u64) -> Duration {
        self.rate.time_of(Bytes::new(bytes))
    }

    /// Sends a duplicate through the virtual queue: when its service starts there and whether it has word of congestion, or why
    /// it is dropped.
    #[inline]
    fn duplicate(&mut self, header: &mut Header, cx: &mut Context<'_>) -> Result<Admitted, Reason> {
        self.flat.settle(cx.now);
        let admitted = self.flat.admit(header, self.flat_link.busy_until(), cx)?;
        self.flat_link.transmit(header.size, cx.now);
        Ok(admitted)
    }

    /// By when a packet must leave, and whether it has word of congestion, as its duplicate does; or why it is dropped.
    #[inline]
    fn admit(&mut self, header: &mut Header, cx: &mut Context<'_>) -> Result<Admitted, Reason> {
        let duplicate = self.duplicate(header, cx);
        match (Service::of(header.dscp), duplicate) {
            (Service::Blue, judged) => judged,
            (Service::Green, Err(reason)) if self.refused_green == RefusedGreen::Drop => Err(reason),
            (Service::Green, _)
                if self.green_drop == GreenDrop::Early && !self.leaves_in_time(header, cx.now) =>
            {
                Err(Reason::DelayControl)
            }
            (Service::Green, duplicate) => {
                let notified = duplicate.ok().and_then(|duplicate| duplicate.notified);
                Ok(Admitted { service: cx.now + self.bound, notified })
            }
        }
    }

    /// The draft's admission test: what goes before a green packet, and the packet itself, take no longer than its bound and
    /// its own transmission.
    #[inline]
    fn leaves_in_time(&mut self, header: &Header, now: Instant) -> bool {
        let size = u64::from(header.size);
        let own = self.time_of(size);
        let due = self.blue.due_bytes_before(now + self.bound + own);
        let green = self.books.ledgers()[Service::Green.index()].occupancy.bytes();
        self.busy_until.since(now) + self.time_of(green + due + size) <= self.bound + own
    }

    /// Who goes next, of two heads.
    #[inline]
    fn choose(&self, blue: &Held<P>, green: &Held<P>, cx: &mut Context<'_>) -> Service {
        let after = |held: &Held<P>| cx.now + self.time_of(u64::from(held.packet.header().size));
        if after(green) > blue.deadline {
            Service::Blue
        } else if after(blue) > green.deadline || cx.rng.chance(self.bias) {
            Service::Green
        } else {
            Service::Blue
        }
    }
}

impl<P: Packet> Discipline<P> for Dsd<P> {
    #[inline]
    fn enqueue(&mut self, mut packet: P, cx: &mut Context<'_>) -> Result<(), (P, Reason)> {
        let header = packet.header_mut();
        header.arrived = cx.now;
        let service = Service::of(header.dscp);
        let ledger = service.index();
        self.books.arrive(header);
        if let Some(control) = &mut self.control {
            control.settle(cx.now, &mut self.bias);
            control.arrived[ledger] += 1;
        }
        let mut header = *header;
        let Admitted { service: deadline, notified } = match self.admit(&mut header, cx) {
            Ok(admitted) => admitted,
            Err(reason) => {
                self.books.refuse(&header, reason);
                if let Some(control) = &mut self.control {
                    control.lost[ledger] += 1;
                }
                return Err((packet, reason));
            }
        };
        packet.header_mut().ecn = header.ecn;
        self.books.admit(&header, notified);
        match service {
            Service::Blue => self.blue.packets.push_back(Held { packet, deadline }),
            Service::Green => self.green.push_back(Held { packet, deadline }),
        }
        Ok(())
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Dequeued<P> {
        let service = match (self.blue.packets.front(), self.green.front()) {
            (None, None) => return Dequeued::Wait(None),
            (_, Some(green)) if cx.now > green.deadline => {
                let late = self.green.pop_front().expect("its head was looked at").packet;
                self.books.expel(late.header(), Reason::Late);
                if let Some(control) = &mut self.control {
                    control.lost[Service::Green.index()] += 1;
                }
                return Dequeued::Dropped(late, Reason::Late);
            }
            (Some(_), None) => Service::Blue,
            (None, Some(_)) => Service::Green,
            (Some(blue), Some(green)) => self.choose(blue, green, cx),
        };
        let packet = match service {
            Service::Blue => self.blue.pop(),
            Service::Green => self.green.pop_front().map(|held| held.packet),
        };
        let packet = packet.expect("its head was looked at");
        let header = packet.header();
        self.busy_until = cx.now + self.time_of(u64::from(header.size));
        self.books.send(header);
        if let Some(control) = &mut self.control {
            control.sent[service.index()] += 1;
            let waited = &mut control.waited[service.index()];
            *waited = *waited + cx.now.since(header.arrived);
        }
        Dequeued::Sent(packet)
    }

    books_of_services!();

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
    /// Bytes of the packets due before then. The count moves with time, one step a packet; where green packets of several
    /// sizes ask, also back and forth by the packets that are sent in the difference of their times.
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
    fn pop(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?.packet;
        if self.due > 0 {
            self.due -= 1;
            self.due_bytes -= u64::from(packet.header().size);
        }
        Some(packet)
    }
}

impl Control {
    fn new(interval: Duration, params: &DsdParams) -> Self {
        Self {
            interval,
            step: params.step.get(),
            base_rtt: params.base_rtt.as_secs_f64(),
            ends: Instant::ZERO + interval,
            arrived: [0; 2],
            lost: [0; 2],
            sent: [0; 2],
            waited: [Duration::ZERO; 2],
        }
    }

    /// Ends the interval if its time has passed, and moves the bias.
    #[inline]
    fn settle(&mut self, now: Instant, bias: &mut f64) {
        if now >= self.ends {
            if let Some([blue, green]) = self.inverse_squared_rates() {
                // The rate goes as 1/(RTT sqrt(p)): green's is the higher where its RTT^2 p is the lower.
                let step = if green < blue { -self.step } else { self.step };
                *bias = (*bias + step).clamp(0.0, 1.0);
            }
            *self = Self { ends: now + self.interval, ..self.emptied() };
        }
    }

    fn emptied(&self) -> Self {
        Self { arrived: [0; 2], lost: [0; 2], sent: [0; 2], waited: [Duration::ZERO; 2], ..self.clone() }
    }

    /// RTT^2 p of each service; none where a service sent nothing, or nothing was lost at all.
    fn inverse_squared_rates(&self) -> Option<[f64; 2]> {
        if self.sent.contains(&0) || self.arrived.contains(&0) || self.lost == [0; 2] {
            return None;
        }
        Some(std::array::from_fn(|service| {
            let rtt = self.base_rtt + self.waited[service].as_secs_f64() / self.sent[service] as f64;
            rtt * rtt * self.lost[service] as f64 / self.arrived[service] as f64
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowId, Rng};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const UNIT: u64 = 1_000_000;
    const SIZE: u16 = 1000;

    /// A queue on a link of 8 Mbit/s: 1000 bytes take a millisecond, the unit.
    fn dsd(table: &str) -> Dsd<Header> {
        let params: DsdParams = serde_json::from_str(table).unwrap();
        Dsd::new(params, Environment { rate: Bitrate::from_bps(8_000_000).unwrap() })
    }

    fn packet(service: Service, label: u32, size: u16) -> Header {
        Header { dscp: service.dscp(), label, ..Header::new(FlowId(0), size) }
    }

    /// Serves arrivals (time in ns, packet) until nothing waits: when each packet's transmission began, and what was dropped.
    struct Served {
        began: BTreeMap<u32, Instant>,
        order: Vec<u32>,
        dropped: BTreeMap<u32, Reason>,
    }

    fn serve(queue: impl Discipline<Header>, arrivals: &[(u64, Header)]) -> Served {
        serve_at(8_000_000, queue, arrivals)
    }

    /// As [`serve`], on a link of this rate.
    fn serve_at(bps: u64, mut queue: impl Discipline<Header>, arrivals: &[(u64, Header)]) -> Served {
        let (mut rule_rng, mut rng) = (Rng::stream(1, "aqm"), Rng::stream(1, "scheduler"));
        let mut link = Serializer::new(Bitrate::from_bps(bps).unwrap());
        let mut served = Served { began: BTreeMap::new(), order: Vec::new(), dropped: BTreeMap::new() };
        let mut coming = arrivals.iter().map(|&(at, packet)| (Instant::from_nanos(at), packet)).peekable();
        let (mut now, mut idle) = (Instant::ZERO, true);
        loop {
            // At one time, a transmission ends before a packet comes.
            let ready = link.busy_until().max(now);
            if idle || coming.peek().is_some_and(|&(at, _)| at < ready) {
                let Some((at, packet)) = coming.next() else { return served };
                now = at;
                match queue.enqueue(packet, &mut Context { now, rng: &mut rule_rng }) {
                    Ok(()) => idle = false,
                    Err((packet, reason)) => drop(served.dropped.insert(packet.label, reason)),
                }
                continue;
            }
            now = ready;
            match queue.dequeue(&mut Context { now, rng: &mut rng }) {
                Dequeued::Sent(packet) => {
                    served.began.insert(packet.label, now);
                    served.order.push(packet.label);
                    link.transmit(packet.size, now);
                }
                Dequeued::Dropped(packet, reason) => {
                    served.dropped.insert(packet.label, reason);
                }
                Dequeued::Wait(_) => idle = true,
            }
        }
    }

    /// The arrivals of the draft's appendix A, one unit later. Those of its time 0 come a nanosecond early: the draft still
    /// counts the packet whose service begins then. Labels: blue 1 to 9, green 11 to 14; 0 is in transmission before.
    fn appendix() -> Vec<(u64, Header)> {
        let blue = |label| packet(Service::Blue, label, SIZE);
        let green = |label: u32| packet(Service::Green, 10 + label, SIZE);
        let at = |nanos: u64, packets: &[Header]| {
            packets.iter().map(move |&packet| (nanos, packet)).collect::<Vec<_>>()
        };
        [
            at(0, &[blue(0), blue(1), green(1)]),
            at(UNIT - 1, &[blue(2), blue(3), blue(4), green(2), blue(5), blue(6)]),
            at(5 * UNIT, &[blue(7), green(3)]),
            at(6 * UNIT, &[blue(8), blue(9), green(4)]),
        ]
        .concat()
    }

    #[test]
    fn the_drafts_appendix_a() {
        let run = |bias: u8| {
            let table = format!(
                r#"{{"bound": "3ms", "bias": {bias}, "green-drop": "late", "rule": {{"aqm": "drop-tail", "limit": "7p"}}}}"#
            );
            serve(dsd(&table), &appendix())
        };
        let served = run(1);
        assert_eq!(served.order, [0, 1, 11, 2, 3, 4, 13, 5, 7, 14, 8, 9]);
        assert_eq!(served.dropped, BTreeMap::from([(6, Reason::Overflow), (12, Reason::Late)]));
        assert_eq!(run(0).order, [0, 1, 2, 11, 3, 4, 5, 7, 13, 14, 8, 9]);
    }

    #[test]
    fn the_drafts_appendix_b() {
        let table = r#"{"bound": "3ms", "rule": {"aqm": "drop-tail", "limit": "7p"}}"#;
        let served = serve(dsd(table), &appendix());
        assert_eq!(served.order, [0, 1, 11, 2, 3, 4, 13, 5, 7, 14, 8, 9]);
        assert_eq!(served.dropped, BTreeMap::from([(6, Reason::Overflow), (12, Reason::DelayControl)]));
    }

    #[test]
    fn a_refused_green_packet_can_delay_blue() {
        // Room for one: greens 11 and 12 find it taken by blue 1. Let in, green 12 is on the link when blue 2 comes to a
        // virtual queue that is long empty.
        let arrivals = [
            (0, packet(Service::Blue, 0, SIZE)),
            (0, packet(Service::Blue, 1, SIZE)),
            (0, packet(Service::Green, 11, SIZE)),
            (0, packet(Service::Green, 12, SIZE)),
            (2 * UNIT + UNIT / 2, packet(Service::Blue, 2, SIZE)),
        ];
        let began = |refused: &str| {
            let table = format!(
                r#"{{"bound": "9ms", "refused-green": "{refused}", "rule": {{"aqm": "drop-tail", "limit": "1p"}}}}"#
            );
            serve(dsd(&table), &arrivals).began[&2].as_nanos()
        };
        assert_eq!(began("drop"), 2 * UNIT + UNIT / 2);
        assert_eq!(began("admit"), 3 * UNIT);
    }

    #[test]
    fn the_control_loop_by_hand() {
        let table = r#"{"bound": "9ms", "bias": 0.5, "control": "1s", "base-rtt": "30ms",
                        "rule": {"aqm": "drop-tail", "limit": "7p"}}"#;
        let mut control = dsd(table).control.unwrap();
        let mut bias = 0.5;
        let mut move_bias = |lost: [u64; 2], second: u64| {
            // Blue waited 30 ms, green 0: RTT^2 is four to one.
            (control.arrived, control.lost, control.sent) = ([100; 2], lost, [100; 2]);
            control.waited = [Duration::from_millis(3000), Duration::ZERO];
            control.settle(Instant::from_nanos(second * 1_000_000_000), &mut bias);
            (bias * 100.0).round()
        };
        assert_eq!(move_bias([1, 3], 1), 45.0, "green would get more: 9 * 3 < 36 * 1");
        assert_eq!(move_bias([1, 5], 2), 50.0, "green would get less: 9 * 5 > 36 * 1");
        assert_eq!(move_bias([0, 0], 3), 50.0, "nothing to go by");
    }

    fn put(queue: &mut Dsd<Header>, nanos: u64, service: Service) -> Result<(), Reason> {
        let (now, rng) = (Instant::from_nanos(nanos), &mut Rng::stream(1, "aqm"));
        queue.enqueue(packet(service, 0, SIZE), &mut Context { now, rng }).map_err(|(_, reason)| reason)
    }

    fn take(queue: &mut Dsd<Header>, nanos: u64) -> Dequeued<Header> {
        let (now, rng) = (Instant::from_nanos(nanos), &mut Rng::stream(1, "scheduler"));
        queue.dequeue(&mut Context { now, rng })
    }

    #[test]
    fn the_rates_that_the_control_loop_predicts_by_hand() {
        let table = r#"{"bound": "9ms", "control": "1s", "base-rtt": "30ms", "rule": {"aqm": "drop-tail", "limit": "7p"}}"#;
        let mut control = dsd(table).control.unwrap();
        (control.arrived, control.lost, control.sent) = ([200, 50], [1, 3], [100, 40]);
        control.waited = [Duration::from_secs(3), Duration::from_millis(400)];
        // RTT^2 p: (30 + 30 ms)^2 / 200, and (30 + 10 ms)^2 3 / 50.
        let [blue, green] = control.inverse_squared_rates().unwrap();
        assert!((blue - 1.8e-5).abs() < 1e-15 && (green - 9.6e-5).abs() < 1e-15, "{blue} {green}");
    }

    #[test]
    fn the_bytes_that_are_due_are_counted_back_and_forth() {
        let held = |(millis, size)| Held {
            packet: packet(Service::Blue, 0, size),
            deadline: Instant::from_nanos(millis * UNIT),
        };
        let packets = [(1, 100), (2, 200), (3, 400)].map(held).into();
        let mut blue: Blue<Header> = Blue { packets, due: 0, due_bytes: 0 };
        let before = |blue: &mut Blue<Header>, nanos| blue.due_bytes_before(Instant::from_nanos(nanos));
        for (nanos, bytes) in [
            (UNIT, 0),
            (2 * UNIT, 100),
            (9 * UNIT, 700),
            (2 * UNIT + 1, 300),
            (2 * UNIT, 100),
            (0, 0),
            (3 * UNIT, 300),
        ] {
            assert_eq!(before(&mut blue, nanos), bytes, "{nanos}");
        }
        assert_eq!(blue.pop().unwrap().size, 100);
        assert_eq!(before(&mut blue, 3 * UNIT), 200);
        assert_eq!(before(&mut blue, UNIT), 0);
        assert_eq!(blue.pop().unwrap().size, 200);
        assert_eq!(before(&mut blue, 9 * UNIT), 400);
    }

    #[test]
    fn the_control_loop_counts_what_comes_and_what_becomes_of_it() {
        use Service::{Blue, Green};
        let table =
            r#"{"bound": "9ms", "bias": 0.5, "control": "1s", "rule": {"aqm": "drop-tail", "limit": "2p"}}"#;
        let mut queue = dsd(table);
        // One blue packet is in transmission, two wait; neither another blue one nor a green one has room.
        (0..3).for_each(|_| put(&mut queue, 0, Blue).unwrap());
        assert_eq!([put(&mut queue, 0, Blue), put(&mut queue, 0, Green)], [Err(Reason::Overflow); 2]);
        for n in 0..3 {
            assert!(matches!(take(&mut queue, n * UNIT), Dequeued::Sent(_)));
        }
        put(&mut queue, 10 * UNIT, Green).unwrap();
        assert!(matches!(take(&mut queue, 11 * UNIT), Dequeued::Sent(_)));
        let counts = |queue: &Dsd<Header>| {
            let control = queue.control.as_ref().unwrap();
            (
                control.arrived,
                control.lost,
                control.sent,
                control.waited.map(Duration::as_nanos),
                control.ends.as_nanos(),
            )
        };
        let second = 1_000 * UNIT;
        assert_eq!(counts(&queue), ([4, 2], [1, 1], [3, 1], [3 * UNIT, UNIT], second));
        // Green lost half of its packets, blue a quarter: green would get less. Each interval begins with nothing.
        put(&mut queue, second, Blue).unwrap();
        assert_eq!(counts(&queue), ([1, 0], [0; 2], [0; 2], [0; 2], 2 * second));
        assert!((queue.bias - 0.55).abs() < 1e-12, "{}", queue.bias);
        assert_eq!(queue.gauges().last().unwrap(), &("bias".to_owned(), queue.bias));
    }

    #[test]
    fn a_green_packet_may_wait_for_its_bound_and_no_nanosecond_longer() {
        let table = r#"{"bound": "1ms", "control": "1s", "green-drop": "late", "rule": {"aqm": "drop-tail", "limit": "9p"}}"#;
        for (at, late) in [(UNIT, false), (UNIT + 1, true)] {
            let mut queue = dsd(table);
            put(&mut queue, 0, Service::Green).unwrap();
            let taken = take(&mut queue, at);
            assert_eq!(matches!(taken, Dequeued::Dropped(_, Reason::Late)), late, "{taken:?}");
            assert_eq!(queue.control.as_ref().unwrap().lost, [0, u64::from(late)]);
            assert_eq!(take(&mut queue, at), Dequeued::Wait(None));
        }
    }

    #[test]
    fn the_early_test_is_exact_to_the_nanosecond() {
        // A blue packet of a millisecond is on the link; a green one behind it may wait for just what is left of it.
        let table = |bound: u64| {
            format!(r#"{{"bound": "{bound}ns", "rule": {{"aqm": "drop-tail", "limit": "9p"}}}}"#)
        };
        for (bound, judged) in [(700_000, Ok(())), (699_999, Err(Reason::DelayControl))] {
            let mut queue = dsd(&table(bound));
            put(&mut queue, 0, Service::Blue).unwrap();
            assert!(matches!(take(&mut queue, 0), Dequeued::Sent(_)));
            assert_eq!(put(&mut queue, 300_000, Service::Green), judged, "{bound}");
        }
        // Two green packets: the second waits for the first, too.
        for (bound, judged) in [(1_700_000, Ok(())), (1_699_999, Err(Reason::DelayControl))] {
            let mut queue = dsd(&table(bound));
            put(&mut queue, 0, Service::Blue).unwrap();
            assert!(matches!(take(&mut queue, 0), Dequeued::Sent(_)));
            put(&mut queue, 300_000, Service::Green).unwrap();
            assert_eq!(put(&mut queue, 300_000, Service::Green), judged, "{bound}");
        }
    }

    #[test]
    fn the_bias_stays_within_0_and_1_and_where_nothing_tells() {
        let table = r#"{"bound": "9ms", "bias": 0.5, "control": "1s", "step": 0.4, "base-rtt": "30ms",
                        "rule": {"aqm": "drop-tail", "limit": "7p"}}"#;
        let moved = |arrived, lost, sent, from: f64, times: u64| {
            let mut control = dsd(table).control.unwrap();
            let mut bias = from;
            for second in 1..=times {
                (control.arrived, control.lost, control.sent) = (arrived, lost, sent);
                control.settle(Instant::from_nanos(second * 1_000 * UNIT), &mut bias);
            }
            bias
        };
        assert_eq!(moved([9; 2], [1, 2], [9; 2], 0.5, 3), 1.0);
        assert_eq!(moved([9; 2], [2, 1], [9; 2], 0.5, 3), 0.0);
        // As often for both: green is given more.
        assert_eq!(moved([9; 2], [1, 1], [9; 2], 0.5, 1), 0.9);
        // A single loss, of either, tells; nothing sent, or nothing come, does not.
        assert_eq!(moved([9; 2], [0, 1], [9; 2], 0.5, 1), 0.9);
        assert_eq!(moved([9; 2], [1, 0], [9; 2], 0.5, 2), 0.0);
        assert_eq!(moved([9; 2], [1, 2], [9, 0], 0.5, 1), 0.5);
        assert_eq!(moved([0, 9], [1, 2], [9; 2], 0.5, 1), 0.5);
    }

    fn arrivals() -> impl Strategy<Value = Vec<(u64, Header)>> {
        let one = (0_u64..3 * UNIT, any::<bool>(), prop_oneof![Just(SIZE), Just(500_u16), Just(125_u16)]);
        prop::collection::vec(one, 0..200).prop_map(|list| {
            let mut now = 0;
            let mut out = Vec::new();
            for (label, (gap, is_green, size)) in list.into_iter().enumerate() {
                // Bursts: most packets come with the one before.
                now += if gap < 2 * UNIT { 0 } else { (gap - 2 * UNIT) * 4 };
                let service = if is_green { Service::Green } else { Service::Blue };
                out.push((now, packet(service, label as u32, size)));
            }
            out
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Local transparency (the draft's section 2): blue leaves no later than from a flat FIFO of the same packets, and is
        /// dropped only if it is dropped there.
        #[test]
        fn green_does_not_hurt_blue(
            arrivals in arrivals(),
            bound_ms in 0_u64..20,
            bias in 0_u8..=2,
            late: bool,
            room in 1_u64..30,
        ) {
            let rule = format!(r#"{{"aqm": "drop-tail", "limit": "{room}p"}}"#);
            let table = format!(
                r#"{{"bound": "{bound_ms}ms", "bias": {}, "green-drop": "{}", "rule": {rule}}}"#,
                f64::from(bias) / 2.0,
                if late { "late" } else { "early" },
            );
            let ours = serve(dsd(&table), &arrivals);
            let environment = Environment { rate: Bitrate::from_bps(8_000_000).unwrap() };
            let rule: AqmParams = serde_json::from_str(&rule).unwrap();
            let flat = serve(super::super::Fifo::new(super::super::FifoParams { rule }, environment), &arrivals);
            for (_, packet) in &arrivals {
                if Service::of(packet.dscp) == Service::Blue {
                    prop_assert_eq!(ours.dropped.get(&packet.label), flat.dropped.get(&packet.label));
                    prop_assert!(ours.began.get(&packet.label) <= flat.began.get(&packet.label));
                }
            }
        }

        /// The early test is sufficient: with a bias of 1 what it lets in is never late.
        #[test]
        fn early_drop_lets_in_only_what_leaves_in_time(arrivals in arrivals(), bound_ms in 0_u64..20, room in 1_u64..30) {
            let table =
                format!(r#"{{"bound": "{bound_ms}ms", "rule": {{"aqm": "drop-tail", "limit": "{room}p"}}}}"#);
            let served = serve(dsd(&table), &arrivals);
            prop_assert!(served.dropped.values().all(|&reason| reason != Reason::Late), "{:?}", served.dropped);
            for (at, packet) in &arrivals {
                if let (Service::Green, Some(began)) = (Service::of(packet.dscp), served.began.get(&packet.label)) {
                    prop_assert!(began.since(Instant::from_nanos(*at)) <= Duration::from_millis(bound_ms));
                }
            }
        }

        /// Under RED, which must draw alike for both, and where packets take parts of a nanosecond: blue is dropped where a
        /// flat FIFO drops it, and waits no longer than there but for one.
        #[test]
        fn parts_of_a_nanosecond(
            arrivals in arrivals(),
            bound_ms in 0_u64..20,
            late: bool,
            bytes: bool,
            bps in prop_oneof![Just(7_123_457_u64), Just(3_333_333), Just(9_999_991)],
        ) {
            let unit = if bytes { "kB" } else { "p" };
            let rule = format!(
                r#"{{"aqm": "red", "thresholds": "0{unit}/20{unit}/0.2", "limit": "30{unit}", "weight": 0.2}}"#
            );
            let environment = || Environment { rate: Bitrate::from_bps(bps).unwrap() };
            let drop = if late { "late" } else { "early" };
            let table = format!(r#"{{"bound": "{bound_ms}ms", "green-drop": "{drop}", "rule": {rule}}}"#);
            let ours = serve_at(bps, Dsd::new(serde_json::from_str(&table).unwrap(), environment()), &arrivals);
            let rule = serde_json::from_str(&rule).unwrap();
            let flat = super::super::Fifo::new(super::super::FifoParams { rule }, environment());
            let flat = serve_at(bps, flat, &arrivals);
            for (at, packet) in &arrivals {
                let began = ours.began.get(&packet.label).copied();
                if Service::of(packet.dscp) == Service::Blue {
                    prop_assert_eq!(ours.dropped.get(&packet.label), flat.dropped.get(&packet.label));
                    let latest = flat.began.get(&packet.label).map(|&at| at + Duration::from_nanos(1));
                    prop_assert!(began <= latest, "{began:?} {latest:?}");
                } else if let Some(began) = began {
                    prop_assert!(began.since(Instant::from_nanos(*at)) <= Duration::from_millis(bound_ms));
                }
            }
        }
    }
}
