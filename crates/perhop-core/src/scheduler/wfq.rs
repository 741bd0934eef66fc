//! Start-time fair queueing (SFQ): Goyal, Vin & Cheng, "Start-Time Fair Queueing: A Scheduling Algorithm for
//! Integrated Services Packet Switching Networks", IEEE/ACM Transactions on Networking 5(5), 1997, section 2.
//!
//! A packet that comes to queue f has the start tag S = max(v, F), where F is the finish tag of the one
//! before it, and the finish tag S + l / r_f; the smallest start tag goes first, and v is that of the packet
//! in transmission. Among the fair queues that need no fluid model this one is as fair as self-clocked fair
//! queueing (Golestani 1994), for a smaller delay of queues with a small share, and it stays fair where the
//! rate of the link varies. Every queue with packets gets at least its rate, up to one packet of each queue.
//!
//! Tags are whole nanoseconds of virtual time; each queue carries the remainder of its divisions, so that no
//! rounding accumulates, and virtual time begins anew whenever nothing waits.

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

use std::hint::select_unpredictable;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::guarantees::shared;
use super::queues::{
    Queues, SharingQueue, check_claims, check_guarantees, check_protection, check_queues, classes_are_queues,
    keeps_its_packets, protected_loads, queues_are_listed, shares,
};
use super::{
    ClassKey, Dequeued, Discipline, Guarantee, Load, PathName, Retuning, Room, Scheduler, Server, Serving,
    Step, Unbounded,
};
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::curves::{Convex, Line, divided_up, nanobits, scaled_up};
use crate::units::UnitError;
use crate::{
    Bitrate, Block, ClassCounters, Duration, Environment, Header, Instant, Occupancy, Origin, Packet, Reason,
    Streams,
};

/// Parameters of [`Wfq`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WfqParams {
    /// The queues. If start tags are equal, the first queue is served first.
    pub queues: Vec<SharingQueue>,
}

/// Queues with their places in virtual time.
#[derive(Clone, Debug)]
pub struct Wfq<P> {
    queues: Queues<P>,
    clocks: Vec<Clock>,
    /// The start tag of the packet in transmission (v).
    virtual_time: u128,
}

#[derive(Clone, Debug)]
struct Clock {
    /// The queue's share of the link in bit/s (r_f).
    share: u64,
    /// The start tag of its head; where it has none, the finish tag of the last packet that it sent.
    tag: u128,
    /// What the divisions so far have left, in bit × 10⁹ below one share.
    remainder: u64,
    /// The quotient of the last division: mostly this one's, since packets of one size follow each other.
    last: u64,
}

impl<P: Packet> Block for Wfq<P> {
    type Params = WfqParams;
    const NAME: &'static str = "wfq";
    const SUMMARY: &'static str =
        "every queue gets at least its guaranteed rate, and a share of the remaining capacity";
    const ORIGIN: Origin = Origin::published(1997, "start-time fair queueing, Goyal, Vin & Cheng 1997");
    const BATCHED: bool = true;

    fn check(params: &WfqParams) -> Result<(), UnitError> {
        check_claims(&params.queues)?;
        check_protection(&params.queues)?;
        check_queues(&params.queues)
    }
}

impl<P: Packet> Scheduler for Wfq<P> {
    fn fits(params: &WfqParams, rate: Bitrate) -> Result<(), UnitError> {
        check_guarantees(&params.queues, rate)
    }

    queues_are_listed!(WfqParams);

    fn retune(&mut self, to: &Retuning<'_, WfqParams>) -> Result<(), UnitError> {
        let shares = shares(&to.after.queues, to.rate);
        for (clock, share) in self.clocks.iter_mut().zip(&shares) {
            if clock.share != share.as_bps() {
                *clock = Clock { share: share.as_bps(), tag: clock.tag, remainder: 0, last: 0 };
            }
        }
        self.queues.retune_protected((&to.before.queues, &to.after.queues), &shares)
    }

    fn least_rates(params: &WfqParams, rate: Bitrate) -> Vec<Option<Bitrate>> {
        shares(&params.queues, rate).into_iter().map(Some).collect()
    }

    /// Start-time fair queueing on a server that lags behind its rate by a constant (Goyal, Vin & Cheng 1997,
    /// theorems 2 and 4): a queue gets its share, later by one packet of each queue. The shares are taken in
    /// proportion, since tags order packets in the same way when all shares are scaled.
    fn guarantees(params: &WfqParams, server: &Server, loads: &[Load]) -> Vec<Result<Guarantee, Unbounded>> {
        let shares: Vec<i128> =
            shares(&params.queues, server.rate).iter().map(|share| share.as_bps().into()).collect();
        let loads = &protected_loads(&params.queues, loads);
        let loaded = |class: &usize| loads[*class].flows > 0;
        let sum: i128 = (0..loads.len()).filter(loaded).map(|class| shares[class]).sum();
        let guarantee = |class: usize| {
            let (queue, load) = (&params.queues[class], &loads[class]);
            let of_all: i128 = loads.iter().map(|load| nanobits(load.largest)).sum();
            let (own, wire) = (nanobits(load.largest), i128::from(server.rate.as_bps()));
            // What a packet of its own costs at less than the rate of the link, at which it is sent.
            let slower = |line: &Line| {
                if server.prepaid == 0 {
                    divided_up(own * (wire - line.rate).max(0), wire)
                } else {
                    server.before_start(load.largest)
                }
            };
            let share = |server: &Convex, extra: &dyn Fn(&Line) -> i128| {
                let lines = server.slopes().iter().map(|line| Line {
                    rate: line.rate * shares[class] / sum.max(1),
                    amount: scaled_up(
                        line.amount.saturating_add(of_all - own + extra(line)),
                        shares[class],
                        sum.max(1),
                    ),
                });
                Convex::of(lines)
            };
            let strict = share(&server.strict, &|_| own).less(own);
            let waits = share(&server.waits, &slower);
            let rounding = Duration::from_nanos(2 * loads.len() as u64);
            let step = Step::new(
                "start-time fair queueing: its share of the link, later by one packet of each other queue",
                format!("β(t) = {}", Serving(&waits)),
                "Goyal, Vin & Cheng 1997, theorems 2 and 4",
            );
            shared(
                server,
                loads,
                class,
                (strict.later(rounding), waits.later(rounding)),
                Room::of(&queue.rule, server.rate),
                step,
            )
        };
        let classes = 0..loads.len();
        classes.map(|class| keeps_its_packets(&params.queues, class).map(|()| guarantee(class))).collect()
    }

    fn new(params: WfqParams, environment: Environment, streams: Streams<'_>) -> Self {
        let shares = shares(&params.queues, environment.rate);
        Self {
            clocks: shares
                .iter()
                .map(|share| Clock { share: share.as_bps(), tag: 0, remainder: 0, last: 0 })
                .collect(),
            queues: Queues::protected(&params.queues, &shares, streams),
            virtual_time: 0,
        }
    }
}

impl Clock {
    /// Begins a backlog: the queue, which was empty, has a head.
    #[inline]
    fn join(&mut self, virtual_time: u128) {
        if self.tag < virtual_time {
            (self.tag, self.remainder) = (virtual_time, 0);
        }
    }

    /// Advances the finish time by l / r_f, since the head is sent.
    #[inline]
    fn advance(&mut self, size: u16) {
        let price = u64::from(size) * 8_000_000_000 + self.remainder;
        // The remainder if the quotient is the last one; else it is no remainder.
        let mut left = price.wrapping_sub(self.last.wrapping_mul(self.share));
        if left >= self.share {
            (self.last, left) = (price / self.share, price % self.share);
        }
        self.tag += u128::from(self.last);
        self.remainder = left;
    }
}

impl<P: Packet> Discipline<P> for Wfq<P> {
    #[inline(always)]
    fn enqueue(&mut self, packet: P, now: Instant) -> Result<(), (P, Reason)> {
        let queue = self.queues.enqueue(packet, now)?;
        if self.queues.len(queue) == 1 {
            self.clocks[queue].join(self.virtual_time);
        }
        Ok(())
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        self.queues.settle(now);
        // Which queue is first cannot be guessed.
        let (mut queue, mut tag) = (0, u128::MAX);
        for (other, clock) in self.clocks.iter().enumerate() {
            #[expect(clippy::needless_bitwise_bool, reason = "the lazy operator is a branch")]
            let is_before = self.queues.waits(other) & (clock.tag < tag);
            queue = select_unpredictable(is_before, other, queue);
            tag = select_unpredictable(is_before, clock.tag, tag);
        }
        if tag == u128::MAX {
            self.virtual_time = 0;
            self.clocks.iter_mut().for_each(|clock| (clock.tag, clock.remainder) = (0, 0));
            return Dequeued::Wait(None);
        }
        let taken = self.queues.take(queue, now);
        if taken.judged.is_ok() {
            // A packet that the AQM drops leaves its tags to the next one.
            self.virtual_time = self.clocks[queue].tag;
            self.clocks[queue].advance(taken.packet.header().size);
        }
        taken.dequeued(queue)
    }

    classes_are_queues!();
}

#[cfg(test)]
mod tests {
    use super::super::queues::tests::{drain, packet, put, take};
    use super::*;
    use crate::testing::streams;

    /// Queues for codepoints 1, 2 and all others.
    fn wfq(weights: [u32; 3]) -> Wfq<Header> {
        let rule = r#""rule": {"aqm": "drop-tail", "limit": "9999p"}"#;
        let [a, b, c] = weights;
        let table = format!(
            r#"{{"queues": [
                {{"name": "a", "match": {{"dscp": 1}}, "weight": {a}, {rule}}},
                {{"name": "b", "match": {{"dscp": 2}}, "weight": {b}, {rule}}},
                {{"name": "c", "weight": {c}, {rule}}}]}}"#
        );
        let params: WfqParams = serde_json::from_str(&table).unwrap();
        Wfq::<Header>::check(&params).unwrap();
        // 6 Mbit/s, so that weights of 1, 2 and 3 are 1, 2 and 3 Mbit/s: 1000 bytes take 8, 4 and 8/3 ms of
        // virtual time.
        Wfq::new(params, Environment { rate: "6Mbps".parse().unwrap() }, streams(1))
    }

    fn fill(wfq: &mut Wfq<Header>, packets: u32, sizes: [u16; 3]) {
        for n in 0..packets {
            for (queue, size) in (0_u8..).zip(sizes) {
                put(wfq, 0, packet(queue + 1, u32::from(queue) * 1000 + n, size));
            }
        }
    }

    #[test]
    fn weights_by_hand() {
        // Start tags in units of 8/6 ms: a 0 6 12, b 0 3 6 9, c 0 2 4 6 8 10; equal ones in the order of the
        // queues. That nothing is lost to rounding shows at 6, where three thirds of a packet meet.
        let mut wfq = wfq([1, 2, 3]);
        fill(&mut wfq, 9, [1000; 3]);
        let order = drain(&mut wfq, 0, 12);
        assert_eq!(order, [0, 1000, 2000, 2001, 1001, 2002, 1, 1002, 2003, 2004, 1003, 2005]);
    }

    #[test]
    fn unequal_sizes_by_hand() {
        // Equal weights, sizes 1500, 500 and 1000: start tags a 0 3 6, b 0 1 2 3 4 5 6, c 0 2 4 6 (in 500
        // bytes).
        let mut wfq = wfq([1, 1, 1]);
        fill(&mut wfq, 9, [1500, 500, 1000]);
        let order = drain(&mut wfq, 0, 11);
        assert_eq!(order, [0, 1000, 2000, 1001, 1002, 2001, 1, 1003, 1004, 2002, 1005]);
    }

    #[test]
    fn a_queue_that_was_idle_gets_no_credit() {
        let mut wfq = wfq([1, 1, 1]);
        (0..6).for_each(|n| put(&mut wfq, 0, packet(1, n, 1000)));
        assert_eq!(drain(&mut wfq, 0, 3), [0, 1, 2]);
        // The third packet is in transmission: v is its start tag, 2. b joins at 2, and a goes on at 3.
        (0..3).for_each(|n| put(&mut wfq, 1, packet(2, 1000 + n, 1000)));
        assert_eq!(drain(&mut wfq, 3, 6), [1000, 3, 1001, 4, 1002, 5]);
    }

    #[test]
    fn a_queue_of_one_packet_joins_at_the_present_virtual_time() {
        let mut wfq = wfq([1, 1, 1]);
        (0..6).for_each(|n| put(&mut wfq, 0, packet(1, n, 1000)));
        assert_eq!(drain(&mut wfq, 0, 3), [0, 1, 2]);
        // v is 2: b's only packet goes from 2 to 3, so its next one has a's start tag, 3, and comes after a.
        put(&mut wfq, 1, packet(2, 1000, 1000));
        assert_eq!(drain(&mut wfq, 3, 1), [1000]);
        put(&mut wfq, 4, packet(2, 1001, 1000));
        assert_eq!(drain(&mut wfq, 4, 3), [3, 1001, 4]);
    }

    #[test]
    fn virtual_time_begins_anew_when_nothing_waits() {
        let mut wfq = wfq([1, 2, 3]);
        fill(&mut wfq, 2, [40, 1000, 1500]);
        drain(&mut wfq, 0, 6);
        assert!(wfq.virtual_time > 0);
        assert_eq!(take(&mut wfq, 9_000_000), Dequeued::Wait(None));
        assert!(
            wfq.virtual_time == 0 && wfq.clocks.iter().all(|clock| (clock.tag, clock.remainder) == (0, 0))
        );
    }

    #[test]
    fn shares_do_not_drift() {
        // A third of the link each way: 8000 bit / 7 share have no whole number of nanoseconds.
        let mut wfq = wfq([1, 3, 3]);
        let mut sent = [0_u64; 3];
        fill(&mut wfq, 9, [1000; 3]);
        for n in 0..700_000_u32 {
            let Dequeued::Sent(header, _) = take(&mut wfq, 0) else { panic!("it is never empty") };
            let queue = usize::from(header.dscp.get() - 1);
            sent[queue] += 1;
            put(&mut wfq, 0, packet(header.dscp.get(), n, 1000));
        }
        assert_eq!(sent, [100_000, 300_000, 300_000]);
    }
}
