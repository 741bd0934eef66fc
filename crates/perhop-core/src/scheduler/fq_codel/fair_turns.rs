//! What one flow is guaranteed beside others, whatever these send: from the turns of RFC 8290, section 4.2.

use crate::Bytes;
use crate::curves::{Concave, Convex, bytes, delay_behind, nanobits};
use crate::scheduler::guarantees::{Guarantee, Load, Room, Server, Serving, Step, rest_of};

/// The turns of flows that have a queue each.
///
/// A queue sends in a turn no more than a quantum and one packet. From when a queue has had a turn until its
/// next one, each other queue has at most two: one as an old queue, and, if it empties by that and gets
/// packets again, one as a new queue, after which it stands behind.
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

const SOURCE: &str = "from the turns of RFC 8290, section 4.2";

impl FairTurns {
    /// Returns what a flow with this load is guaranteed.
    pub fn of_flow(&self, flow: &Load) -> Guarantee {
        let turn = i128::from(self.flows - 1).saturating_mul(nanobits(self.quantum) + nanobits(self.largest));
        // One packet is in transmission, and one may be held by what is around the scheduler.
        let under_way = nanobits(self.largest) * if self.server.is_link { 1 } else { 2 };
        let rounds = flow.arrivals.as_ref().and_then(|sent| self.while_sparse(sent, flow, turn));
        let (left, text, formula) = if let Some(rounds) = rounds {
            let before = rounds * turn + under_way;
            let turns = if rounds == 1 { "one turn" } else { "two turns" };
            let text = format!(
                "no more than a quantum of the flow comes while its queue is active, so it never lacks credit: the {} \
                 others have {turns} each before it",
                self.flows - 1
            );
            let formula = rest_of(&self.server.strict, &Concave::zero(), bytes(before));
            (self.left(|service| service.less(before)), text, formula)
        } else {
            let left = self.left(|service| self.share(service, flow.largest, turn, under_way));
            let text = format!("one turn of the flow for two of each of the {} others", self.flows - 1);
            let formula = Serving(&left.strict).to_string();
            (left, text, formula)
        };
        let step = Step::new(text, format!("β(t) = {formula}"), SOURCE);
        Guarantee { room: self.room.clone(), steps: vec![step], ..left.guarantee(flow) }
    }

    fn left(&self, rest: impl Fn(&Convex) -> Convex) -> Server {
        let Server { strict, waits, .. } = &self.server;
        Server { strict: rest(strict), waits: rest(waits), is_link: false, ..self.server.clone() }
    }

    /// Returns how many turns each other queue may have before a packet of the flow, if the flow always has
    /// credit: if from when its queue becomes active until this has had its turns, as a new one and as an old
    /// one, no more than a quantum comes. Others have three turns in this time, and two packets may be under
    /// way. If a single packet comes, the queue is new for each packet.
    fn while_sparse(&self, sent: &Concave, flow: &Load, turn: i128) -> Option<i128> {
        let active = self.server.strict.less(3 * turn + 2 * nanobits(self.largest));
        let comes = sent.at(delay_behind(0, sent, &active)?);
        let is_single = comes < 2 * nanobits(flow.smallest);
        (comes <= nanobits(self.quantum)).then_some(if is_single { 1 } else { 2 })
    }

    /// Returns the share of a service in which each turn of the flow stands against two of each other one.
    /// A queue that sends s has had no more than (s + its largest packet) / quantum + 1 turns, and others two
    /// more.
    fn share(&self, service: &Convex, largest: Bytes, turn: i128, under_way: i128) -> Convex {
        let quantum = nanobits(self.quantum);
        let owed = 2 * turn + (2 * turn).saturating_mul(nanobits(largest) + quantum) / quantum + 1;
        service.less(owed.saturating_add(under_way)).part(quantum, quantum + 2 * turn)
    }
}
