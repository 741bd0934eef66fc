//! What one flow is guaranteed beside others, whatever these send: from the turns of RFC 8290, section 4.2.

use crate::curves::{Concave, Convex, Nanobits, delay_behind, nanobits};
use crate::scheduler::guarantees::{Arriving, Guarantee, Load, Room, Server, Serving, Step, size, span};
use crate::{Bytes, Duration};

/// The turns of flows that have a queue each.
///
/// A queue sends in a turn no more than a quantum and one packet. From when a queue has had a turn until its
/// next one, each other queue has at most two: one as an old queue, and, if it empties by that and gets
/// packets again, one as a new queue. After that it is served later than this queue.
#[derive(Clone, Debug, PartialEq)]
pub struct FairTurns {
    /// What serves the flows together.
    pub(super) server: Server,
    /// Bytes of a turn.
    pub(super) quantum: Bytes,
    /// How many flows have packets at most.
    pub(super) flows: u64,
    /// The largest packet of any flow.
    pub(super) largest: Bytes,
    /// When packets are dropped from the longest queue.
    pub(super) room: Room,
}

/// A flow that sends little.
struct Sparse {
    /// The longest time for which its queue stays active.
    active: Duration,
    /// The most that comes in this time.
    comes: Nanobits,
    /// How many turns each other queue may have before a packet.
    rounds: i128,
}

const SOURCE: &str = "from the turns of RFC 8290, section 4.2";

impl FairTurns {
    /// Returns what a flow with this load is guaranteed.
    pub fn of_flow(&self, flow: &Load) -> Guarantee {
        let others = self.flows - 1;
        let turn = i128::from(others).saturating_mul(nanobits(self.quantum) + nanobits(self.largest));
        // One packet is in transmission, and one may be held by what is around the scheduler.
        let packets = if self.server.is_link { 1 } else { 2 };
        let under_way = packets * nanobits(self.largest);
        let of_others =
            if others == 1 { "the other flow".to_owned() } else { format!("the {others} others") };
        let mut steps = Vec::new();
        if let Some(sent) = &flow.arrivals {
            steps.push(Step::new("arrivals of one flow", format!("α(t) = {}", Arriving(sent)), ""));
        }
        let sparse = flow.arrivals.as_ref().and_then(|sent| self.while_sparse(sent, flow, turn));
        let left = if let Some(Sparse { active, comes, rounds }) = sparse {
            steps.push(Step::new(
                "it never lacks credit: while its queue is active, no more than a quantum comes",
                format!("α({}) = {} ≤ {}", span(active.as_nanos().into()), size(comes), self.quantum),
                SOURCE,
            ));
            let turns = if rounds == 1 { "one turn" } else { "two turns" };
            steps.push(Step::new(
                format!("before each packet {of_others} may have {turns}"),
                format!(
                    "β(t) = {} − {rounds} · {others} · ({} + {}) − {packets} · {}",
                    Serving(&self.server.strict),
                    self.quantum,
                    self.largest,
                    self.largest
                ),
                SOURCE,
            ));
            self.left(|service| service.less(rounds * turn + under_way))
        } else {
            let left = self.left(|service| self.share(service, flow.largest, turn, under_way));
            let text = format!("one turn of the flow for two of {of_others}");
            steps.push(Step::new(text, format!("β(t) = {}", Serving(&left.strict)), SOURCE));
            left
        };
        Guarantee { room: self.room.clone(), steps, ..left.guarantee(flow) }
    }

    fn left(&self, rest: impl Fn(&Convex) -> Convex) -> Server {
        let Server { strict, waits, .. } = &self.server;
        Server { strict: rest(strict), waits: rest(waits), is_link: false, ..self.server.clone() }
    }

    /// Returns in which way a flow is sparse, if it always has credit: if from when its queue becomes active
    /// until this has had its turns, as a new one and as an old one, no more than a quantum comes. Others
    /// have three turns in this time, and two packets may be under way. If a single packet comes, the queue
    /// is new for each packet.
    fn while_sparse(&self, sent: &Concave, flow: &Load, turn: i128) -> Option<Sparse> {
        let service = self.server.strict.less(3 * turn + 2 * nanobits(self.largest));
        let active = delay_behind(0, sent, &service)?;
        let comes = sent.at(active);
        let rounds = if comes < 2 * nanobits(flow.smallest) { 1 } else { 2 };
        (comes <= nanobits(self.quantum)).then_some(Sparse { active, comes, rounds })
    }

    /// Returns the share of a service that the flow has if each other flow has two turns for each of its own.
    /// A queue that sends s has had no more than (s + its largest packet) / quantum + 1 turns, and others two
    /// more.
    fn share(&self, service: &Convex, largest: Bytes, turn: i128, under_way: i128) -> Convex {
        let quantum = nanobits(self.quantum);
        let owed = 2 * turn + (2 * turn).saturating_mul(nanobits(largest) + quantum) / quantum + 1;
        service.less(owed.saturating_add(under_way)).part(quantum, quantum + 2 * turn)
    }
}
