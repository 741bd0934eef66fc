//! Earliest deadline first (EDF) over the two services of Asymmetric Best-Effort: Hurley & Le Boudec 1999,
//! section 2.
//!
//! A packet's deadline is its arrival time plus its service's offset: none for green, D for blue. The
//! earliest goes first, and of equal ones the first to come; unlike strict priority this starves nobody: a
//! blue packet that has waited for D goes before every green packet that comes later. Deadlines rise within a
//! service, so two FIFOs are enough, and the scheduler compares only their heads, whatever the number of
//! packets.

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::guarantees::by_deadlines;
use super::queues::all_wait_in_one_queue;
use super::services::{classes_are_services, services_share_a_rule};
use super::{
    ClassKey, Dequeued, Discipline, Guarantee, Load, Retuning, Room, Scheduler, Server, Unbounded, in_rule,
    retune_aqm,
};
use crate::abe::Service;
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::units::defaults::millis;
use crate::units::{UnitError, require};
use crate::{
    Bitrate, Block, ClassCounters, Duration, Environment, Header, Instant, ManagedQueue, Occupancy, Origin,
    Packet, Reason, Streams, Taken,
};

/// Parameters of [`Edf`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EdfParams {
    /// The deadline of a blue packet after its arrival (D).
    #[serde(default = "millis::<100>")]
    pub blue: Duration,
    /// The deadline of a green packet after its arrival.
    #[serde(default)]
    pub green: Duration,
    /// The AQM, which decides which packets are dropped.
    pub rule: AqmParams,
}

/// Packets of two services in order of arrival; the head with the earlier deadline is sent.
#[derive(Clone, Debug)]
pub struct Edf<P> {
    /// The packets; each service is a class.
    queue: ManagedQueue<Held<P>>,
    services: [Deadlines; 2],
    /// Packets admitted so far.
    admitted: u64,
}

/// How a service's deadlines follow from arrivals.
#[derive(Clone, Debug)]
struct Deadlines {
    offset: Duration,
    /// Packets at the head of the service that are due by the last deadline asked for.
    due: usize,
}

#[derive(Clone, Debug)]
struct Held<P> {
    packet: P,
    deadline: Instant,
    /// How many were admitted before it, of both services.
    number: u64,
}

impl<P: Packet> Packet for Held<P> {
    #[inline]
    fn header(&self) -> Header {
        self.packet.header()
    }
    #[inline]
    fn arrive(&mut self, now: Instant) {
        self.packet.arrive(now);
    }
    #[inline]
    fn notify(&mut self) {
        self.packet.notify();
    }
}

impl<P: Packet> Block for Edf<P> {
    type Params = EdfParams;
    const NAME: &'static str = "edf";
    const SUMMARY: &'static str =
        "earliest deadline first: green packets before blue ones, unless these are overdue";
    const ORIGIN: Origin = Origin::paper(1999, "Hurley & Le Boudec 1999, section 2");
    const BATCHED: bool = true;

    fn check(params: &EdfParams) -> Result<(), UnitError> {
        require(params.green <= params.blue, "", "the deadline `green` must not be later than `blue`")
    }
}

impl<P: Packet> Scheduler for Edf<P> {
    fn new(params: EdfParams, environment: Environment, streams: Streams<'_>) -> Self {
        let mut queue = ManagedQueue::new(Service::ALL.len(), params.rule, environment, streams.of("aqm"));
        if !queue.needs_ahead() {
            queue.leave_order_out();
        }
        Self {
            queue,
            services: [params.blue, params.green].map(|offset| Deadlines { offset, due: 0 }),
            admitted: 0,
        }
    }

    fn retune(&mut self, to: &Retuning<'_, EdfParams>) -> Result<(), UnitError> {
        for (service, offset) in self.services.iter_mut().zip([to.after.blue, to.after.green]) {
            if service.offset != offset {
                // Deadlines asked for may go back once; packets that wait keep theirs.
                *service = Deadlines { offset, due: 0 };
            }
        }
        let queue = &mut self.queue;
        let environment = Environment { rate: to.rate };
        retune_aqm(&to.before.rule, &to.after.rule, |rule| queue.retune(rule, environment)).map_err(in_rule)
    }

    services_share_a_rule!(EdfParams);

    /// A packet of a class with deadline d that comes at a begins to be sent by a + d + Λ. Λ is how late any
    /// packet can be: all that is due with it or before, and one packet that is due later, need so much more
    /// time than there is (Liebeherr, Wrege & Ferrari 1996, theorem 1, with Λ in place of a test).
    fn guarantees(params: &EdfParams, server: &Server, loads: &[Load]) -> Vec<Result<Guarantee, Unbounded>> {
        let room = Room::of(&params.rule, server.rate);
        by_deadlines(&[params.blue, params.green], server, loads, &room)
    }

    fn least_rates(_: &EdfParams, _: Bitrate) -> Vec<Option<Bitrate>> {
        vec![None]
    }
}

impl<P: Packet> Edf<P> {
    /// Returns how many packets of a service are due by this deadline. Later calls ask for later deadlines,
    /// so the count moves by one step a packet.
    #[inline]
    fn due_by(&mut self, service: usize, deadline: Instant) -> usize {
        let due = &mut self.services[service].due;
        while self.queue.get(service, *due).is_some_and(|held| held.deadline <= deadline) {
            *due += 1;
        }
        *due
    }

    /// Returns the place of a service's head in the order of transmission.
    #[inline]
    fn head(&self, service: Service) -> Option<(Instant, u64)> {
        self.queue.head(service.index()).map(|held| (held.deadline, held.number))
    }
}

impl<P: Packet> Discipline<P> for Edf<P> {
    #[inline(always)]
    fn enqueue(&mut self, packet: P, now: Instant) -> Result<(), (P, Reason)> {
        let service = Service::of(packet.header().dscp).index();
        let deadline = now + self.services[service].offset;
        if self.queue.needs_ahead() {
            let other = 1 - service;
            let overtaken = self.queue.len(other) - self.due_by(other, deadline);
            self.queue.set_overtaken(overtaken as u32);
        }
        let held = Held { packet, deadline, number: self.admitted };
        self.queue.offer(service, held, now).map_err(|(held, reason)| (held.packet, reason))?;
        self.admitted += 1;
        Ok(())
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        let service = match (self.head(Service::Blue), self.head(Service::Green)) {
            (None, None) => {
                self.queue.settle_idle(now);
                return Dequeued::Wait(None);
            }
            (Some(blue), green) if green.is_none_or(|green| blue < green) => Service::Blue,
            _ => Service::Green,
        };
        let class = service.index();
        self.services[class].due = self.services[class].due.saturating_sub(1);
        let Taken { packet: held, judged } = self.queue.take(class, now).expect("its head was seen");
        Taken { packet: held.packet, judged }.dequeued(class)
    }

    classes_are_services!();

    all_wait_in_one_queue!();

    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.queue.inspect(&mut |held| show(&held.packet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowId;
    use crate::testing::{environment, streams};

    fn edf(table: &str) -> Edf<Header> {
        let params: EdfParams = serde_json::from_str(table).unwrap();
        Edf::new(params, environment(), streams(1))
    }

    const ROOMY: &str = r#"{"aqm": "drop-tail", "limit": "99p"}"#;

    fn put(edf: &mut Edf<Header>, millis: u64, service: Service, label: u32) -> Result<(), Reason> {
        let packet = Header { dscp: service.dscp(), label, ..Header::new(FlowId(0), 1000) };
        edf.enqueue(packet, Instant::from_nanos(millis * 1_000_000)).map_err(|(_, reason)| reason)
    }

    /// The labels of all that waits, in the order of service.
    fn drain(edf: &mut Edf<Header>) -> Vec<u32> {
        std::iter::from_fn(|| match edf.dequeue(Instant::from_nanos(999_000_000)) {
            Dequeued::Sent(packet, _) => Some(packet.label),
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
        let sent = edf.dequeue(Instant::from_nanos(10_000_000));
        assert!(matches!(sent, Dequeued::Sent(packet, _) if packet.label == 0));
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
