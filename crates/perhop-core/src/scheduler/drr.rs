//! Deficit round robin: Shreedhar & Varghese, "Efficient Fair Queuing Using Deficit Round-Robin", SIGCOMM
//! 1995, figures 2 and 3.
//!
//! Queues with packets take turns. A turn adds the queue's quantum to its deficit counter, which pays for the
//! packets that it sends; what is left is kept for the next turn, unless the queue empties.
//!
//! ## Deviations
//! The paper asks for a quantum of at least the largest packet, so that each turn sends something. Smaller
//! ones are allowed: rounds in which nobody could send are skipped at once
//! (`rounds_without_a_packet_are_skipped`).

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::guarantees::shared;
use super::queues::{
    Queues, SharingQueue, check_claims, check_guarantees, check_protection, check_queues, classes_are_queues,
    keeps_its_packets, protected_loads, queues_are_listed, shares,
};
use super::{
    ClassKey, Dequeued, Discipline, Guarantee, Load, PathName, Retuning, Room, Scheduler, Server, Serving,
    Step, Unbounded, size,
};
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::curves::{Concave, Convex, nanobits, scaled_up};
use crate::units::defaults::bytes;
use crate::units::{UnitError, require};
use crate::{
    Bitrate, Block, Bytes, ClassCounters, Duration, Environment, Header, Instant, Occupancy, Origin, Packet,
    Reason, Streams,
};

/// Parameters of [`Drr`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DrrParams {
    /// The queues, in the order of their first turns.
    pub queues: Vec<SharingQueue>,
    /// The quantum of the queue with the smallest share; the other queues' quanta are in proportion.
    #[serde(default = "bytes::<1500>")]
    pub quantum: Bytes,
}

/// What queues that take turns guarantee each other.
struct Turns<'a> {
    quanta: Vec<i128>,
    loads: &'a [Load],
}

impl Turns<'_> {
    /// Returns what a queue gets of a server with this curve, where the others send no more than this in any
    /// time, if that is known.
    fn curve(&self, class: usize, server: &Convex, sent: &[Option<Concave>]) -> Convex {
        let loaded = |&other: &usize| other != class && self.loads[other].flows > 0;
        let mut others: Vec<usize> = (0..self.loads.len()).filter(loaded).collect();
        // Those that use the least part of their turns are the first to count by what they send.
        others.sort_by_key(|&other| {
            sent[other].as_ref().map_or(i128::MAX, |curve| curve.rate() * SCALE / self.quanta[other].max(1))
        });
        let mut best = self.by_turns(class, server, &others);
        let mut counted = Concave::zero();
        for (place, &other) in others.iter().enumerate() {
            let Some(curve) = &sent[other] else { break };
            counted = counted.plus(curve);
            best = best.max(&self.by_turns(class, &server.beside(&counted), &others[place + 1..]));
        }
        best
    }

    /// Returns what a queue gets beside these, each with its turns.
    fn by_turns(&self, class: usize, server: &Convex, others: &[usize]) -> Convex {
        // A deficit is less than the packet that it does not suffice for, by a byte at least.
        let deficit = |class: usize| nanobits(Bytes::new(self.loads[class].largest.get().saturating_sub(1)));
        let own = self.quanta[class];
        let all = own + others.iter().map(|&other| self.quanta[other]).sum::<i128>();
        // A queue that empties as its last packet begins to be sent ends its turn: this one goes before the
        // others.
        let under_way = nanobits(self.loads[class].largest);
        let first = under_way + others.iter().map(|&other| self.quanta[other] + deficit(other)).sum::<i128>();
        let turns = server.less(first).part(own, all).less(scaled_up(deficit(class), all - own, all));
        // Its first turn sends all that its quantum surely pays for, before others have a second one.
        let (surely, until) = (own - deficit(class), all - deficit(class));
        if surely > 0 { turns.max(&server.less(first).part(surely, until)) } else { turns }
    }
}

/// Rates over quanta are compared as whole numbers.
const SCALE: i128 = 1_000_000_000;

/// Queues that take turns.
#[derive(Clone, Debug)]
pub struct Drr<P> {
    queues: Queues<P>,
    accounts: Vec<Account>,
    /// Queues with packets; the first has its turn.
    active: VecDeque<usize>,
    /// The first of them has been given its quantum.
    granted: bool,
}

/// In bytes.
#[derive(Clone, Debug)]
struct Account {
    quantum: u64,
    deficit: u64,
}

impl<P: Packet> Block for Drr<P> {
    type Params = DrrParams;
    const NAME: &'static str = "drr";
    const SUMMARY: &'static str =
        "queues take turns; the unused part of a quantum carries over to the next turn";
    const ORIGIN: Origin =
        Origin::published(1995, "deficit round robin, Shreedhar & Varghese 1995").in_linux("drr", "2.6.29");
    const BATCHED: bool = true;

    fn check(params: &DrrParams) -> Result<(), UnitError> {
        require(params.quantum.get() > 0, "quantum", "a quantum must be above 0B, such as 1500B")?;
        check_claims(&params.queues)?;
        check_protection(&params.queues)?;
        check_queues(&params.queues)
    }
}

impl<P: Packet> Scheduler for Drr<P> {
    fn fits(params: &DrrParams, rate: Bitrate) -> Result<(), UnitError> {
        check_guarantees(&params.queues, rate)
    }

    queues_are_listed!(DrrParams);

    fn retune(&mut self, to: &Retuning<'_, DrrParams>) -> Result<(), UnitError> {
        let shares = shares(&to.after.queues, to.rate);
        let quanta = to.after.quanta(&shares);
        self.accounts.iter_mut().zip(quanta).for_each(|(account, quantum)| account.quantum = quantum);
        self.queues.retune_protected((&to.before.queues, &to.after.queues), &shares)
    }

    fn least_rates(params: &DrrParams, rate: Bitrate) -> Vec<Option<Bitrate>> {
        shares(&params.queues, rate).into_iter().map(Some).collect()
    }

    /// Deficit round robin: with p turns, a queue sends at least p quanta less its deficit, and each other
    /// queue at most p + 1 quanta and its deficit (Boyer, Stea & Sofack 2012; the lines under the curve of
    /// Tabatabaee & Le Boudec 2021, theorem 1). There a queue keeps its turn while its last packet is sent;
    /// here it has none from when this begins, so a packet that comes then waits for one more. Where that
    /// bounds the wait of other queues, what they send in any time is bounded by their arrivals, too, and
    /// those that do not use their turns count by these.
    fn guarantees(params: &DrrParams, server: &Server, loads: &[Load]) -> Vec<Result<Guarantee, Unbounded>> {
        let loads = &protected_loads(&params.queues, loads);
        let quanta = params.quanta(&shares(&params.queues, server.rate));
        let turns = Turns {
            quanta: quanta.into_iter().map(|quantum| nanobits(Bytes::new(quantum))).collect(),
            loads,
        };
        let alone = |class: usize, sent: &[Option<Concave>]| {
            let curves = [&server.strict, &server.waits].map(|curve| turns.curve(class, curve, sent));
            let [strict, waits] = curves;
            let step = Step::new(
                format!(
                    "deficit round robin: a quantum of {} in each turn, others have theirs",
                    size(turns.quanta[class])
                ),
                format!("β(t) = {}", Serving(&waits)),
                "Tabatabaee & Le Boudec 2021, theorem 1; Boyer, Stea & Sofack 2012",
            );
            shared(
                server,
                loads,
                class,
                (strict, waits),
                Room::of(&params.queues[class].rule, server.rate),
                step,
            )
        };
        let classes = 0..loads.len();
        let nothing = vec![None; loads.len()];
        let sent = classes.clone().map(|class| {
            let longest = alone(class, &nothing).wait(&loads[class])?;
            let on_wire = server.rate.time_of(loads[class].largest) + Duration::from_nanos(1);
            Some(loads[class].arrivals.as_ref()?.delayed(longest + on_wire))
        });
        let sent: Vec<Option<Concave>> = sent.collect();
        classes.map(|class| keeps_its_packets(&params.queues, class).map(|()| alone(class, &sent))).collect()
    }

    fn new(params: DrrParams, environment: Environment, streams: Streams<'_>) -> Self {
        let shares = shares(&params.queues, environment.rate);
        let quanta = params.quanta(&shares).into_iter();
        Self {
            accounts: quanta.map(|quantum| Account { quantum, deficit: 0 }).collect(),
            active: VecDeque::with_capacity(shares.len()),
            queues: Queues::protected(&params.queues, &shares, streams),
            granted: false,
        }
    }
}

impl DrrParams {
    /// The quanta of queues with these shares.
    fn quanta(&self, shares: &[Bitrate]) -> Vec<u64> {
        let smallest = shares.iter().min().map_or(1, |share| share.as_bps());
        let quantum = |share: &Bitrate| {
            let bytes = u128::from(self.quantum.get()) * u128::from(share.as_bps()) / u128::from(smallest);
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        shares.iter().map(quantum).collect()
    }
}

impl<P: Packet> Drr<P> {
    #[inline]
    fn head_size(&self, queue: usize) -> u64 {
        self.queues.head(queue).map_or(0, |head| u64::from(head.size))
    }

    /// Gives every queue at once the quanta of the rounds in which nobody can send.
    #[cold]
    fn skip_rounds(&mut self) {
        let missing = |&queue: &usize| {
            let Account { quantum, deficit } = self.accounts[queue];
            (self.head_size(queue).saturating_sub(deficit)).div_ceil(quantum)
        };
        let rounds = self.active.iter().map(missing).min().unwrap_or(0).saturating_sub(1);
        for &queue in &self.active {
            let account = &mut self.accounts[queue];
            account.deficit = account.deficit.saturating_add(account.quantum.saturating_mul(rounds));
        }
    }
}

impl<P: Packet> Discipline<P> for Drr<P> {
    #[inline(always)]
    fn enqueue(&mut self, packet: P, now: Instant) -> Result<(), (P, Reason)> {
        let queue = self.queues.enqueue(packet, now)?;
        if self.queues.len(queue) == 1 {
            self.active.push_back(queue);
        }
        Ok(())
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        self.queues.settle(now);
        let mut passed = 0;
        while let Some(&queue) = self.active.front() {
            let size = self.head_size(queue);
            let account = &mut self.accounts[queue];
            if !self.granted {
                account.deficit = account.deficit.saturating_add(account.quantum);
                self.granted = true;
            }
            if size <= account.deficit {
                let taken = self.queues.take(queue, now);
                if taken.judged.is_ok() {
                    account.deficit -= size; // A packet that the AQM drops costs its queue nothing.
                }
                if self.queues.len(queue) == 0 {
                    account.deficit = 0;
                    self.active.pop_front();
                    self.granted = false;
                }
                return taken.dequeued(queue);
            }
            self.active.rotate_left(1);
            self.granted = false;
            passed += 1;
            if passed == self.active.len() {
                self.skip_rounds();
            }
        }
        Dequeued::Wait(None)
    }

    classes_are_queues!();
}

#[cfg(test)]
mod tests {
    use super::super::queues::tests::{drain, packet, put};
    use super::*;
    use crate::testing::{environment, streams};

    /// Queues for codepoints 1, 2 and all others.
    fn drr(weights: [u32; 3], quantum: u64) -> Drr<Header> {
        let rule = r#""rule": {"aqm": "drop-tail", "limit": "999p"}"#;
        let [a, b, c] = weights;
        let table = format!(
            r#"{{"quantum": "{quantum}B", "queues": [
                {{"name": "a", "match": {{"dscp": 1}}, "weight": {a}, {rule}}},
                {{"name": "b", "match": {{"dscp": 2}}, "weight": {b}, {rule}}},
                {{"name": "c", "weight": {c}, {rule}}}]}}"#
        );
        let params: DrrParams = serde_json::from_str(&table).unwrap();
        Drr::<Header>::check(&params).unwrap();
        Drr::new(params, environment(), streams(1))
    }

    /// Packets of this size: numbers 0.. in the first queue, 100.. in the second, 200.. in the third.
    fn fill(drr: &mut Drr<Header>, packets: u32, sizes: [u16; 3]) {
        for n in 0..packets {
            for (queue, size) in (0_u8..).zip(sizes) {
                put(drr, 0, packet(queue + 1, u32::from(queue) * 100 + n, size));
            }
        }
    }

    #[test]
    fn what_a_turn_leaves_counts_in_the_next() {
        // As in the paper's figures 2 and 3, the quantum is 500, and the first queue holds 200, 750 and 20
        // bytes: it sends 200 in its first turn, and 300 are left for the second. The others hold 500 and
        // 500, and 600 and 300.
        let mut drr = drr([1, 1, 1], 500);
        for (number, dscp, size) in
            [(0, 1, 200), (1, 1, 750), (2, 1, 20), (100, 2, 500), (101, 2, 500), (200, 3, 600), (201, 3, 300)]
        {
            put(&mut drr, 0, packet(dscp, number, size));
        }
        // Round 1: a sends 200 (300 left), b 500 (0), c nothing (500). Round 2: a has 800 and sends 750 and
        // 20 and empties; b 500 and empties; c has 1000 and sends 600 and 300.
        assert_eq!(drain(&mut drr, 0, 9), [0, 100, 1, 2, 101, 200, 201]);
    }

    #[test]
    fn weights_by_hand() {
        // Quanta of 1000, 2000 and 3000 bytes.
        let mut drr = drr([1, 2, 3], 1000);
        fill(&mut drr, 6, [1000; 3]);
        assert_eq!(drain(&mut drr, 0, 12), [0, 100, 101, 200, 201, 202, 1, 102, 103, 203, 204, 205]);
    }

    #[test]
    fn a_queue_that_empties_loses_its_deficit() {
        let mut drr = drr([1, 1, 1], 1500);
        put(&mut drr, 0, packet(1, 0, 100));
        assert_eq!(drain(&mut drr, 0, 1), [0]);
        // Had it kept 1400 bytes, it could send two packets of 1400 in its next turn.
        (1..3).for_each(|n| put(&mut drr, 1, packet(1, n, 1400)));
        (100..102).for_each(|n| put(&mut drr, 1, packet(2, n, 1400)));
        assert_eq!(drain(&mut drr, 1, 9), [1, 100, 2, 101]);
    }

    #[test]
    fn rounds_without_a_packet_are_skipped() {
        // Quanta of 1, 2 and 3 bytes: a packet of 1000 goes in round 1000, 500 and 334 (with 2 bytes left,
        // then every 333 or 334 rounds): c at 334, b at 500, c at 667, then at 1000 a, b and c by turns.
        let mut drr = drr([1, 2, 3], 1);
        fill(&mut drr, 6, [1000; 3]);
        assert_eq!(drain(&mut drr, 0, 8), [200, 100, 201, 0, 101, 202, 203, 102]);
    }

    #[test]
    fn guaranteed_rates_become_quanta() {
        let rule = r#""rule": {"aqm": "drop-tail", "limit": "9p"}"#;
        let table = format!(
            r#"{{"queues": [{{"name": "gold", "match": {{"dscp": 1}}, "rate": "5Mbps", {rule}}}, {{"name": "rest", {rule}}}]}}"#
        );
        let params: DrrParams = serde_json::from_str(&table).unwrap();
        let drr = Drr::<Header>::new(params, environment(), streams(1));
        // 5 of 8 Mbit/s leave 3, which earn 1500 bytes a turn.
        assert_eq!(drr.accounts.iter().map(|account| account.quantum).collect::<Vec<_>>(), [2500, 1500]);
    }
}
