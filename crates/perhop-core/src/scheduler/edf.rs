//! Earliest deadline first over the two services of Asymmetric Best-Effort: Hurley & Le Boudec 1999, section 2.
//!
//! A packet's deadline is its arrival time plus its service's offset: none for green, D for blue. The earliest goes first,
//! and of equal ones the first to come; unlike strict priority this starves nobody: a blue packet that has waited for D
//! goes before every green packet that comes later. Deadlines rise within a service, so two FIFOs and a look at their
//! heads are enough, whatever the number of packets.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::services::{Books, books_of_services};
use super::{Dequeued, Discipline};
use crate::abe::Service;
use crate::aqm::{AnyAqm, Aqm, AqmParams, Reason};
use crate::control::Message;
use crate::units::UnitError;
use crate::{Block, Context, Duration, Environment, Header, Instant, Ledger, Occupancy, Packet};

/// Parameters of [`Edf`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EdfParams {
    /// How long after its arrival a blue packet is due (D).
    #[serde(default = "tenth")]
    pub blue: Duration,
    /// How long after its arrival a green packet is due.
    #[serde(default)]
    pub green: Duration,
    /// Who is dropped.
    pub rule: AqmParams,
}

const fn tenth() -> Duration {
    Duration::from_millis(100)
}

/// Two queues in order of arrival; the head with the earlier deadline is sent.
#[derive(Clone, Debug)]
pub struct Edf<P> {
    /// By service.
    queues: [Queue<P>; 2],
    books: Books,
    /// Packets let in so far.
    admitted: u64,
    rule: AnyAqm,
}

#[derive(Clone, Debug)]
struct Queue<P> {
    offset: Duration,
    packets: VecDeque<Held<P>>,
    /// Packets at its head that are due before one that was last asked for.
    due: usize,
}

#[derive(Clone, Debug)]
struct Held<P> {
    packet: P,
    deadline: Instant,
    /// How many were let in before it, in both queues.
    number: u64,
}

impl<P: Packet> Block for Edf<P> {
    type Params = EdfParams;
    const NAME: &'static str = "edf";
    const SUMMARY: &'static str =
        "earliest deadline first: green packets before blue ones, unless these are overdue";
    const SOURCE: &'static str = "Hurley & Le Boudec 1999, section 2";

    fn check(params: &EdfParams) -> Result<(), UnitError> {
        if params.green > params.blue {
            return Err(UnitError::new("the deadline `green` must not be later than `blue`"));
        }
        Ok(())
    }

    fn rules_for<'a>(params: &'a EdfParams, _path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
        vec![("rule".into(), &params.rule)]
    }

    fn new(params: EdfParams, environment: Environment) -> Self {
        Self {
            queues: [Queue::new(params.blue), Queue::new(params.green)],
            books: Books::new(),
            admitted: 0,
            rule: params.rule.build(environment),
        }
    }
}

impl<P> Queue<P> {
    fn new(offset: Duration) -> Self {
        Self { offset, packets: VecDeque::new(), due: 0 }
    }

    /// How many packets are due no later than this. Who asks does so for ever later times, so the count moves one step a packet.
    #[inline]
    fn due_by(&mut self, deadline: Instant) -> usize {
        while self.packets.get(self.due).is_some_and(|held| held.deadline <= deadline) {
            self.due += 1;
        }
        self.due
    }

    /// The head's place in the order of service.
    #[inline]
    fn head(&self) -> Option<(Instant, u64)> {
        self.packets.front().map(|held| (held.deadline, held.number))
    }

    #[inline]
    fn pop(&mut self) -> Option<P> {
        self.due = self.due.saturating_sub(1);
        self.packets.pop_front().map(|held| held.packet)
    }
}

impl<P: Packet> Discipline<P> for Edf<P> {
    #[inline]
    fn enqueue(&mut self, mut packet: P, cx: &mut Context<'_>) -> Result<(), (P, Reason)> {
        let header = packet.header_mut();
        header.arrived = cx.now;
        let service = Service::of(header.dscp).index();
        let deadline = cx.now + self.queues[service].offset;
        self.books.arrive(header);
        let other = &mut self.queues[1 - service];
        let overtaken = other.packets.len() - other.due_by(deadline);
        self.books.total.set_overtaken(overtaken as u32);
        match self.rule.on_arrival(header, &self.books.total, cx).apply(header) {
            Ok(notified) => self.books.admit(header, notified),
            Err(reason) => {
                self.books.refuse(header, reason);
                return Err((packet, reason));
            }
        }
        self.queues[service].packets.push_back(Held { packet, deadline, number: self.admitted });
        self.admitted += 1;
        Ok(())
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Dequeued<P> {
        let [blue, green] = &self.queues;
        let service = match (blue.head(), green.head()) {
            (None, None) => {
                self.rule.on_idle(cx.now);
                return Dequeued::Wait(None);
            }
            (Some(blue), green) if green.is_none_or(|green| blue < green) => Service::Blue,
            _ => Service::Green,
        };
        let packet = self.queues[service.index()].pop().expect("its head was looked at");
        self.books.send(packet.header());
        Dequeued::Sent(packet)
    }

    books_of_services!();

    fn gauges(&self) -> Vec<(String, f64)> {
        self.rule.gauges().map(|(name, value)| (name.into(), value)).collect()
    }

    fn on_message(&mut self, _label: u32, message: &Message) {
        self.rule.on_message(message);
    }

    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.queues.iter().flat_map(|queue| &queue.packets).for_each(|held| show(&held.packet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitrate, FlowId, Rng};

    fn edf(table: &str) -> Edf<Header> {
        let params: EdfParams = serde_json::from_str(table).unwrap();
        Edf::new(params, Environment { rate: Bitrate::from_bps(8_000_000).unwrap() })
    }

    const ROOMY: &str = r#"{"aqm": "drop-tail", "limit": "99p"}"#;

    fn put(edf: &mut Edf<Header>, millis: u64, service: Service, label: u32) -> Result<(), Reason> {
        let packet = Header { dscp: service.dscp(), label, ..Header::new(FlowId(0), 1000) };
        let cx =
            &mut Context { now: Instant::from_nanos(millis * 1_000_000), rng: &mut Rng::stream(1, "edf") };
        edf.enqueue(packet, cx).map_err(|(_, reason)| reason)
    }

    /// The labels of all that waits, in the order of service.
    fn drain(edf: &mut Edf<Header>) -> Vec<u32> {
        let cx = &mut Context { now: Instant::from_nanos(999_000_000), rng: &mut Rng::stream(1, "edf") };
        std::iter::from_fn(|| match edf.dequeue(cx) {
            Dequeued::Sent(packet) => Some(packet.label),
            Dequeued::Dropped(..) | Dequeued::Wait(_) => None,
        })
        .collect()
    }

    #[test]
    fn the_earliest_deadline_goes_first_and_of_equal_ones_the_first_to_come() {
        use Service::{Blue, Green};
        let mut edf = edf(&format!(r#"{{"blue": "10ms", "rule": {ROOMY}}}"#));
        // Deadlines: 10, 5, 15, 10, 15, 12.
        let arrivals = [(0, Blue), (5, Green), (5, Blue), (10, Green), (15, Green), (12, Green)];
        let mut order: Vec<usize> = (0..arrivals.len()).collect();
        order.sort_by_key(|&n| arrivals[n].0);
        for n in order {
            put(&mut edf, arrivals[n].0, arrivals[n].1, n as u32).unwrap();
        }
        assert_eq!(drain(&mut edf), [1, 0, 3, 5, 2, 4]);
    }

    #[test]
    fn an_overdue_blue_packet_goes_before_newer_greens() {
        let mut edf = edf(&format!(r#"{{"blue": "100ms", "rule": {ROOMY}}}"#));
        put(&mut edf, 0, Service::Blue, 0).unwrap();
        for (label, at) in [(1, 50), (2, 99), (3, 100), (4, 101)] {
            put(&mut edf, at, Service::Green, label).unwrap();
        }
        assert_eq!(drain(&mut edf), [1, 2, 0, 3, 4]);
    }

    #[test]
    fn the_rule_learns_how_many_packets_go_before_a_newcomer() {
        // Room for three before a green packet; blue packets that are not overdue do not count.
        let rule = r#"{"aqm": "abe", "thresholds": "60/60/0", "limit": "99p", "green-limit": "3p"}"#;
        let mut edf = edf(&format!(r#"{{"blue": "100ms", "rule": {rule}}}"#));
        (0..20).for_each(|label| put(&mut edf, 0, Service::Blue, label).unwrap());
        for label in 20..24 {
            put(&mut edf, 50, Service::Green, label).unwrap();
        }
        assert_eq!(put(&mut edf, 50, Service::Green, 24), Err(Reason::DelayControl));
        assert_eq!(put(&mut edf, 100, Service::Green, 25), Err(Reason::DelayControl));
        assert_eq!(drain(&mut edf)[..5], [20, 21, 22, 23, 0]);
    }

    #[test]
    fn a_blue_packet_that_is_due_at_the_same_time_goes_before_a_green_one() {
        let rule = r#"{"aqm": "abe", "thresholds": "60/60/0", "limit": "99p", "green-limit": "3p"}"#;
        let fresh = || {
            let mut edf = edf(&format!(r#"{{"blue": "10ms", "rule": {rule}}}"#));
            (0..4).for_each(|label| put(&mut edf, 0, Service::Blue, label).unwrap());
            edf
        };
        assert_eq!(put(&mut fresh(), 9, Service::Green, 4), Ok(()));
        let mut edf = fresh();
        assert_eq!(put(&mut edf, 10, Service::Green, 4), Err(Reason::DelayControl));
        // One blue packet has gone: three are due, as many as the limit. A green one is a fourth.
        let cx = &mut Context { now: Instant::from_nanos(10_000_000), rng: &mut Rng::stream(1, "edf") };
        assert!(matches!(edf.dequeue(cx), Dequeued::Sent(packet) if packet.label == 0));
        assert_eq!(put(&mut edf, 10, Service::Green, 5), Ok(()));
        assert_eq!(put(&mut edf, 10, Service::Green, 6), Err(Reason::DelayControl));
        assert_eq!(drain(&mut edf), [1, 2, 3, 5]);
    }

    #[test]
    fn a_burst_at_one_instant_is_limited() {
        let rule = r#"{"aqm": "abe", "thresholds": "60/60/0", "limit": "99p", "green-limit": "3p"}"#;
        let mut edf = edf(&format!(r#"{{"rule": {rule}}}"#));
        let taken = (0..20).filter(|&label| put(&mut edf, 7, Service::Green, label).is_ok());
        assert_eq!(taken.count(), 4, "as many as the limit find no more than it before them");
    }
}
