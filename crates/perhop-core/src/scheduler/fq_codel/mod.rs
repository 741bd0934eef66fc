//! `FQ-CoDel`: RFC 8290, sections 4.1 and 4.2.
//!
//! Each flow has a queue, by a hash. Queues with packets take turns by deficit round robin, and one that had
//! none goes before those that have been active, for its first quantum: so flows that send little wait
//! little. Each queue is controlled by a [`Codel`] of its own. When the port is full, the queue with the most
//! bytes loses packets from its head.
//!
//! ## Deviations
//! - A flow is identified by its number and direction, on a router by its five-tuple. The salt of the hash is
//!   drawn from the scheduler's random stream.
//! - `law = "linux"` follows Linux in the credit test (at most 0, where the RFC has below 0), in when an
//!   empty new queue leaves the turns at once, in how much a full port drops (half of the bytes, where the
//!   RFC has half of the packets), in counting these drops for the control law, and in the arithmetic of
//!   [`Codel`], which is `law = "linux"`, too: `the_credit_test_decides_on_a_credit_of_zero`,
//!   `a_full_port_drops_half_of_the_longest_queue`, `queues_are_controlled_one_by_one`.
//! - `memory-limit` counts the bytes of packets; Linux counts its buffers, which are larger.
//! - Where dropping a batch leaves too many bytes, more is dropped; Linux lets them wait.
//! - Linux takes no quantum below 256 bytes and skips nothing; here, rounds in which nobody could send are
//!   skipped at once (`rounds_without_a_packet_are_skipped`).

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

mod fair_turns;
mod packets;
mod params;
mod table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use self::packets::{Chain, Packets};
use self::table::{Assigned, FlowTable, WAYS};
use super::guarantees::{in_any_order, largest, together};
use super::{Dequeued, Discipline, Guarantee, Load, Retuning, Room, Scheduler, Server, Unbounded};
use crate::aqm::{Aqm, AqmBlock, Codel, CodelLaw};
use crate::units::{UnitError, require};
use crate::{
    Bitrate, Block, Bytes, ClassCounters, DelayTarget, Depth, Environment, Header, Instant,
    KeysWithoutEffect, Noted, Occupancy, Origin, Packet, PseudoCode, Reason, Streams,
};

pub use self::fair_turns::FairTurns;
pub use self::params::{Backlog, FqCodelParams, FqLaw};
pub use self::table::FlowHash;

/// Queues of flows that take turns.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    params: FqCodelParams,
    packets: Packets<P>,
    table: FlowTable,
    queues: Vec<Queue>,
    turns: Turns,
    /// All that waits and went through.
    class: ClassCounters,
    excess: Option<Excess>,
}

/// The queue of a flow.
#[derive(Clone, Debug)]
struct Queue {
    chain: Chain,
    codel: Codel,
    /// Bytes that the queue may send before its turn ends.
    credit: i64,
    /// Whether the queue has a turn.
    active: bool,
}

/// The queues that have a turn. A queue whose packets are all sent leaves when it is its turn.
#[derive(Clone, Debug, Default)]
struct Turns {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Old queues that were passed over, one after the other, for want of credit.
    passed: usize,
}

/// What a full port still drops from the head of a queue.
#[derive(Clone, Copy, Debug)]
struct Excess {
    queue: u32,
    packets: u32,
    bytes: u64,
}

const LINES: &[&str] = &[
    "for each packet that arrives: it joins the queue of its flow",
    "    while all queues together hold too much: drop at the head of the one with the most bytes (overflow)",
    "for each packet that leaves, from the queue whose turn it is, new ones first:",
    "    if sojourn time < target, or no more than mtu stays behind: stop dropping, pass",
    "    if the sojourn time has not stayed above target for an interval: pass",
    "    if not dropping: begin; drop this packet (or mark it), count ← 1, or near where it was",
    "    while dropping and this queue's next drop is due: drop (or mark), count ← count + 1",
    "    the next drop of this queue is due after interval / √count",
];
const CODE: PseudoCode =
    PseudoCode { lines: LINES, acts: &[(Reason::Target, &[6, 7]), (Reason::Overflow, &[1])] };

const CODE_BEGINS: PseudoCode = PseudoCode { lines: LINES, acts: &[(Reason::Target, &[4, 5, 7])] };

impl<P: Packet> Block for FqCodel<P> {
    type Params = FqCodelParams;
    const NAME: &'static str = "fq-codel";
    const SUMMARY: &'static str = "a queue for each flow, which take turns, new ones first, each under CoDel";
    const ORIGIN: Origin = Origin::published(2012, "RFC 8290").in_linux("fq_codel", "3.5");
    const LIMIT_COUNTS_PACKETS: bool = true;
    const BATCHED: bool = true;

    fn check(params: &FqCodelParams) -> Result<(), UnitError> {
        let FqCodelParams { flows, hash, quantum, batch, interval, .. } = params;
        require((1..=65_536).contains(flows), "flows", "there are 1 to 65536 queues, such as 1024")?;
        let fills_sets = *hash != FlowHash::SetAssociative || (*flows as usize).is_multiple_of(WAYS);
        require(fills_sets, "flows", "sets have 8 queues: write a multiple of 8, such as 1024")?;
        require(quantum.get() > 0, "quantum", "a quantum must be above 0B, such as 1514B")?;
        require(quantum.get() <= MOST_QUANTUM, "quantum", "a quantum is at most 1GB, such as 1514B")?;
        require(*batch > 0, "batch", "at least 1 packet is dropped when the port is full, such as 64")?;
        require(!interval.is_zero(), "interval", "an interval is longer than 0s, such as 100ms")
    }

    fn keys_without_effect(params: &FqCodelParams, sizes: &RangeInclusive<u64>) -> KeysWithoutEffect {
        let limit = params.memory_limit;
        if limit.get() < *sizes.start() {
            let text = format!("`{limit}`: no packet fits in, so all are dropped; raise it, such as to 32MB");
            return vec![("memory-limit", text)];
        }
        let most = params.limit.get().saturating_mul(*sizes.end()).min(limit.get());
        if most > params.mtu.get() {
            return Vec::new();
        }
        let text = format!(
            "`{}`: the queues hold at most {}, so never more than `mtu` stays behind a packet, and none is dropped for its \
             sojourn time; lower `mtu`, or raise `limit`",
            params.mtu,
            Bytes::new(most)
        );
        vec![("mtu", text)]
    }

    fn pseudo_code(_: Reason, noted: Noted<'_>) -> Option<PseudoCode> {
        let begins = noted("dropping already") == Some(0.0);
        Some(if begins { CODE_BEGINS } else { CODE })
    }
}

/// Credits of many rounds stay far from the end of their range.
const MOST_QUANTUM: u64 = 1_000_000_000;

impl<P: Packet> Scheduler for FqCodel<P> {
    fn new(params: FqCodelParams, _: Environment, streams: Streams<'_>) -> Self {
        let mut rng = streams.of("scheduler");
        Self {
            packets: Packets::new(),
            table: FlowTable::new(params.hash, params.flows, &mut rng),
            queues: Vec::new(),
            turns: Turns::default(),
            class: ClassCounters::default(),
            excess: None,
            params,
        }
    }

    fn retune(&mut self, to: &Retuning<'_, FqCodelParams>) -> Result<(), UnitError> {
        to.keeps("flows", |params| params.flows)?;
        to.keeps("hash", |params| params.hash)?;
        to.keeps("law", |params| params.law)?;
        self.params = to.after.clone();
        let fresh = Queue::new(&self.params).codel;
        self.queues.iter_mut().try_for_each(|queue| {
            let mut codel = fresh.clone();
            codel.take_over(&queue.codel)?;
            queue.codel = codel;
            Ok(())
        })
    }

    fn limit(params: &FqCodelParams, _: Bitrate) -> Option<Depth> {
        Some(Depth::Packets(params.limit.get()))
    }

    fn guarantees(
        params: &FqCodelParams,
        server: &Server,
        loads: &[Load],
    ) -> Vec<Result<Guarantee, Unbounded>> {
        let memory = Room { spared: Some(Depth::Bytes(params.memory_limit.get())), ..Room::default() };
        let holds_limit = params.memory_limit.get() / largest(loads).get().max(1) > params.limit.get();
        let fits = holds_limit
            || together(loads).is_some_and(|all| memory.holds(&all, &server.strict, Bytes::new(1)));
        let because = (!fits).then(|| "more may wait than `memory-limit`".to_owned());
        let room = Room {
            // A packet is in before another one makes room for it.
            limit: Some(Depth::Packets(params.limit.get().saturating_add(1))),
            spared: Some(Depth::Packets(params.limit.get())),
            patience: Some(params.target),
            because,
        };
        let turns = params.turns(server, &loads[0]);
        let guarantee = match (in_any_order(server, loads), &turns) {
            (Ok(guarantee), _) => guarantee,
            (Err(_), Some(_)) => Guarantee::default(),
            (Err(reason), None) => {
                return vec![Err(format!(
                    "{reason}, and flows may share a queue; with `hash = \"exact\"` each flow has a bound of its own that \
                     sends little or has a window"
                ))];
            }
        };
        vec![Ok(Guarantee { room, turns, ..guarantee })]
    }

    fn delay_targets(params: &FqCodelParams) -> Vec<DelayTarget> {
        vec![DelayTarget::at("target", params.target, params.target)]
    }
}

impl FqCodelParams {
    /// Returns what single flows are guaranteed by their turns, if each has a queue of its own for sure.
    fn turns(&self, server: &Server, load: &Load) -> Option<FairTurns> {
        let most = match self.hash {
            FlowHash::Stochastic => 1,
            FlowHash::SetAssociative => WAYS as u64,
            FlowHash::Exact => u64::MAX - 1,
        };
        // A full port drops from the queue with the most bytes, which has no less than its part of all. A
        // packet that is held around the scheduler is in no queue, but counts.
        let held = if server.is_link { 0 } else { load.largest.get() };
        let full = self.limit.get().saturating_mul(load.smallest.get()).min(self.memory_limit.get());
        let full = full.saturating_sub(held);
        let spared = Some(Depth::Bytes((full / load.flows.max(1)).saturating_sub(1)));
        (1..=most).contains(&load.flows).then(|| FairTurns {
            server: server.clone(),
            quantum: self.quantum,
            flows: load.flows,
            largest: load.largest,
            room: Room { spared, patience: Some(self.target), ..Room::default() },
        })
    }
}

impl Queue {
    fn new(params: &FqCodelParams) -> Self {
        let FqCodelParams { target, interval, mtu, ecn, law, .. } = *params;
        let law = match law {
            FqLaw::Rfc => CodelLaw::Rfc,
            FqLaw::Linux => CodelLaw::Linux,
        };
        Self {
            chain: Chain::EMPTY,
            codel: Codel::of_flow(target, interval, mtu, ecn, law),
            credit: 0,
            active: false,
        }
    }
}

impl Turns {
    /// The queue whose turn it is, and whether it is new.
    #[inline]
    fn first(&self) -> Option<(u32, bool)> {
        let new = self.new.front().map(|&queue| (queue, true));
        new.or_else(|| self.old.front().map(|&queue| (queue, false)))
    }

    /// Ends its turn.
    #[inline]
    fn take_first(&mut self) -> Option<u32> {
        self.new.pop_front().or_else(|| self.old.pop_front())
    }
}

impl FqLaw {
    /// Whether a queue with this credit has to wait for its next turn.
    #[inline]
    const fn lacks(self, credit: i64) -> bool {
        match self {
            Self::Rfc => credit < 0,
            Self::Linux => credit <= 0,
        }
    }

    /// How many quanta a queue needs before it may send; none while it may.
    #[inline]
    const fn missing(self, credit: i64, quantum: i64) -> i64 {
        let lacking = match self {
            Self::Rfc => -credit,
            Self::Linux => 1 - credit,
        };
        if lacking <= 0 { 0 } else { (lacking + quantum - 1) / quantum }
    }
}

impl<P: Packet> FqCodel<P> {
    /// The number of a packet's queue.
    #[inline(always)]
    fn queue_of(&mut self, packet: &Header) -> u32 {
        let Self { table, queues, params, .. } = self;
        match table.assign(packet, |queue| queues[queue as usize].active) {
            Assigned::Known(queue) => queue,
            Assigned::Fresh(queue) => {
                let fresh = Queue::new(params);
                match queues.get_mut(queue as usize) {
                    Some(used) => *used = fresh,
                    None => queues.push(fresh),
                }
                queue
            }
        }
    }

    #[inline]
    const fn quantum(&self) -> i64 {
        self.params.quantum.get().cast_signed()
    }

    #[inline]
    fn is_full(&self) -> bool {
        let waiting = &self.class.occupancy;
        waiting.packets() > self.params.limit.get() || waiting.bytes() > self.params.memory_limit.get()
    }

    /// What a full port drops.
    #[inline]
    fn excess(&self) -> Option<Excess> {
        if self.is_full() { self.batch() } else { None }
    }

    /// A batch of the queue with the most bytes, the first of equals.
    #[cold]
    fn batch(&self) -> Option<Excess> {
        let bytes = |(number, queue): (u32, &Queue)| (queue.chain.bytes(), std::cmp::Reverse(number));
        let (longest, std::cmp::Reverse(number)) = (0..).zip(&self.queues).map(bytes).max()?;
        let batch = self.params.batch;
        Some(match self.params.law {
            FqLaw::Rfc => {
                let half = self.queues[number as usize].chain.packets() / 2;
                let packets = u32::try_from(half).map_or(batch, |half| half.clamp(1, batch));
                Excess { queue: number, packets, bytes: u64::MAX }
            }
            FqLaw::Linux => Excess { queue: number, packets: batch, bytes: (longest / 2).max(1) },
        })
    }

    /// Takes the head of a queue.
    #[inline(always)]
    fn pop(&mut self, number: u32) -> Option<P> {
        let packet = self.packets.pop(&mut self.queues[number as usize].chain)?;
        let header = packet.header();
        self.class.occupancy.remove(header.color, header.size);
        Some(packet)
    }

    /// Takes the head of a queue, if it has one: sent, or dropped by the queue's `CoDel`.
    #[inline(always)]
    fn take(&mut self, number: u32, now: Instant) -> Option<Dequeued<P>> {
        let mut packet = self.pop(number)?;
        let Self { queues, class: ClassCounters { occupancy, through }, params, .. } = self;
        let Queue { chain, codel, credit, .. } = &mut queues[number as usize];
        let left = match params.backlog {
            Backlog::Port => occupancy.bytes(),
            Backlog::Queue => chain.bytes(),
        };
        let mut header = packet.header();
        crate::trace::begin();
        let judged = codel.judge(&header, left, now).apply(&mut header);
        if crate::trace::is_recording() && judged != Ok(None) {
            note(number, chain, occupancy);
            crate::trace::end(Self::NAME, codel.gauges(), chain.packets(), chain.bytes());
        }
        match judged {
            Ok(notified) => {
                if let Some(reason) = notified {
                    packet.notify();
                    through.notify(header.color, reason);
                }
                through.send(header.color);
                *credit -= i64::from(header.size);
                Some(Dequeued::Sent(packet, 0))
            }
            Err(reason) => {
                through.drop(header.color, reason);
                Some(Dequeued::Dropped(packet, reason))
            }
        }
    }

    /// Gives a quantum to the queue whose turn it is, which lacks credit, and puts it behind all others.
    #[inline]
    fn pass_over(&mut self, number: u32, is_new: bool) {
        self.queues[number as usize].credit += self.quantum();
        self.turns.take_first();
        self.turns.old.push_back(number);
        self.turns.passed = if is_new { 0 } else { self.turns.passed + 1 };
        if self.turns.passed >= self.turns.old.len() {
            self.skip_rounds();
        }
    }

    /// Gives every queue at once the quanta of the rounds in which nobody can send.
    #[cold]
    fn skip_rounds(&mut self) {
        let (law, quantum) = (self.params.law, self.quantum());
        self.turns.passed = 0;
        if !self.turns.new.is_empty() {
            return;
        }
        let missing = |&queue: &u32| law.missing(self.queues[queue as usize].credit, quantum);
        let rounds = self.turns.old.iter().map(missing).min().unwrap_or(0);
        for &queue in &self.turns.old {
            self.queues[queue as usize].credit += rounds * quantum;
        }
    }

    /// Ends the turn of the queue whose turn it is, which has no packets. A new one stays until the old ones
    /// had their turns, so that it cannot be new again before (RFC 8290, section 4.2).
    #[inline]
    fn retire(&mut self, number: u32, is_new: bool, now: Instant) {
        let queue = &mut self.queues[number as usize];
        queue.codel.on_idle(now);
        self.turns.take_first();
        self.turns.passed = 0;
        let stays = match self.params.law {
            FqLaw::Rfc => is_new,
            FqLaw::Linux => is_new && !self.turns.old.is_empty(),
        };
        if stays {
            self.turns.old.push_back(number);
        } else {
            queue.active = false;
        }
    }
}

/// Notes which queue a packet was in, and how much it and all hold without it.
fn note(number: u32, chain: &Chain, all: &Occupancy) {
    crate::trace::note("queue of the flow", f64::from(number));
    crate::trace::note("bytes left in that queue", chain.bytes() as f64);
    crate::trace::note("packets left in all queues", all.packets() as f64);
}

impl<P: Packet> Discipline<P> for FqCodel<P> {
    #[inline(always)]
    fn enqueue(&mut self, mut packet: P, now: Instant) -> Result<(), (P, Reason)> {
        packet.arrive(now);
        let header = packet.header();
        let number = self.queue_of(&header);
        self.class.through.arrive(header.color);
        self.class.occupancy.add(header.color, header.size);
        let quantum = self.quantum();
        let queue = &mut self.queues[number as usize];
        self.packets.push(&mut queue.chain, packet);
        if !queue.active {
            queue.active = true;
            queue.credit = quantum;
            self.turns.new.push_back(number);
        }
        Ok(())
    }

    #[inline(always)]
    fn shed(&mut self, _now: Instant) -> Option<(P, Reason)> {
        let mut excess = self.excess.take().or_else(|| self.excess())?;
        let packet = self.pop(excess.queue)?;
        if crate::trace::is_recording() {
            let chain = &self.queues[excess.queue as usize].chain;
            crate::trace::begin();
            note(excess.queue, chain, &self.class.occupancy);
            crate::trace::end(Self::NAME, Vec::new(), chain.packets(), chain.bytes());
        }
        let Header { color, size, .. } = packet.header();
        self.class.through.drop(color, Reason::Overflow);
        if self.params.law == FqLaw::Linux {
            self.queues[excess.queue as usize].codel.count_drop();
        }
        excess.packets -= 1;
        excess.bytes = excess.bytes.saturating_sub(u64::from(size));
        self.excess = Some(excess).filter(|excess| excess.packets > 0 && excess.bytes > 0);
        Some((packet, Reason::Overflow))
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        while let Some((number, is_new)) = self.turns.first() {
            if self.params.law.lacks(self.queues[number as usize].credit) {
                self.pass_over(number, is_new);
                continue;
            }
            if let Some(taken) = self.take(number, now) {
                self.turns.passed = 0;
                return taken;
            }
            self.retire(number, is_new, now);
        }
        Dequeued::Wait(None)
    }

    fn count_held(&mut self, _class: usize, packet: &Header, waits: bool) {
        self.class.occupancy.count(waits, packet);
    }

    fn occupancy(&self) -> &Occupancy {
        &self.class.occupancy
    }

    fn class(&self, _class: usize) -> &ClassCounters {
        &self.class
    }

    fn order_of(&self, packet: &Header) -> u64 {
        self.table.order_of(packet)
    }

    fn gauges(&self) -> Vec<(String, f64)> {
        let queues = |turns: &VecDeque<u32>| turns.len() as f64;
        vec![("new flows".into(), queues(&self.turns.new)), ("old flows".into(), queues(&self.turns.old))]
    }

    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.packets.inspect(show);
    }
}
