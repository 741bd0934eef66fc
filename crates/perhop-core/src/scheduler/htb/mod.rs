//! Hierarchical token bucket: Martin Devera's HTB as in Linux's `net/sched/sch_htb.c` (6.18); "Hierarchical
//! Token Bucket Theory", Devera 2002.
//!
//! A tree of classes. Each has two token buckets: one for its guaranteed rate, one for its ceiling. A class
//! with tokens of both kinds sends; one that has used up its rate but not its ceiling borrows from the class
//! around it, if that one can lend or borrow; one at its ceiling waits.
//!
//! What may be sent now is chosen as in Linux: first what needs no loan, then loans of the deepest classes,
//! those of the root last (levels); within a level by `prio`; within a `prio` by deficit round robin, in
//! which a round over the classes within one class counts as one turn of that class. A packet is charged to
//! the rate of the class that lends it and of those around this one, and to the ceiling of all on its way. A
//! class sends while its buckets are not below zero, so it exceeds a bucket by up to a packet. Tokens are
//! counted as in Linux: in nanoseconds, of which a packet takes its size at the rate, rounded down.
//!
//! ## Deviations
//! - Packets have the size of the IP packet; Linux adds the frame's header, and `overhead`, `mpu` and
//!   `linklayer`.
//! - A packet that no `match` takes goes to the last class; Linux sends it before all others, at no rate,
//!   unless `default` is set.
//! - Hysteresis (the module's parameter `htb_hysteresis`, off by default) and offloading are not built.
//! - A queue that holds packets back itself, such as a shaper, is passed over until its packet is due
//!   (`a_class_whose_queue_waits_is_passed_over`); Linux warns of it.
//! - The depth is not limited to eight classes.
//! - A burst is rounded down to a nanosecond, at a rate in bit/s; tc rounds it further, to 64 ns or, up to
//!   some release, to a microsecond, and a rate to bytes a second.

mod bucket;
mod params;
#[cfg(test)]
mod tests;
mod tree;

pub use params::{HtbClass, HtbParams};

use super::branches::{self, Branches};
use super::guarantees::{largest, together};
use super::queues::classes_are_queues;
use super::{
    ClassKey, Dequeued, Discipline, Guarantee, Load, PathName, Retuning, Scheduler, Server, Serving, Step,
    Unbounded, Within,
};
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::curves::{Concave, nanobits};
use crate::units::{UnitError, fixed};
use crate::{
    Bitrate, Block, Bytes, ClassCounters, Environment, Header, Instant, Occupancy, Origin, Packet, Reason,
    Streams,
};
use params::Found;
use tree::Tree;

/// A tree of classes that borrow from each other.
#[derive(Clone, Debug)]
pub struct Htb<P> {
    queues: Branches<P>,
    tree: Tree,
}

impl<P: Packet> Block for Htb<P> {
    type Params = HtbParams;
    const NAME: &'static str = "htb";
    const SUMMARY: &'static str =
        "a tree of classes with guaranteed rates and ceilings, which borrow from each other";
    const ORIGIN: Origin =
        Origin::published(2002, "Hierarchical Token Bucket Theory, Devera 2002; Linux, sch_htb")
            .in_linux("htb", "2.4.20");
    const BATCHED: bool = true;

    fn check(params: &HtbParams) -> Result<(), UnitError> {
        params.check()
    }
}

impl<P: Packet> Scheduler for Htb<P> {
    fn new(params: HtbParams, environment: Environment, streams: Streams<'_>) -> Self {
        let found = params.found();
        let leaves = found.iter().filter(|one| one.class.queue.is_some());
        let rates = leaves.map(|one| one.class.served_at().min(environment.rate));
        Self { queues: Branches::new(&params.leaves(), rates, streams), tree: Tree::new(&found, params.r2q) }
    }

    fn retune(&mut self, to: &Retuning<'_, HtbParams>) -> Result<(), UnitError> {
        let (before, after) = (to.before.found(), to.after.found());
        if before.len() != after.len() {
            return Err(fixed("classes"));
        }
        for (was, is) in before.iter().zip(&after) {
            let place =
                |one: &Found<'_>| (one.key.clone(), one.class.name.clone(), one.class.queue.is_some());
            if place(was) != place(is) {
                return Err(fixed(&is.key));
            }
        }
        self.tree.retune(&after, to.after.r2q, to.now);
        let leaves = after.iter().filter(|one| one.class.queue.is_some());
        let rates: Vec<Bitrate> = leaves.map(|one| one.class.served_at().min(to.rate)).collect();
        self.queues.retune((&to.before.leaves(), &to.after.leaves()), &rates, to.now)
    }

    fn fits(params: &HtbParams, _: Bitrate) -> Result<(), UnitError> {
        params.fits()
    }

    fn paths(params: &mut HtbParams) -> Vec<(String, &mut PathName)> {
        params.paths()
    }

    fn aqms<'a>(params: &'a HtbParams, path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
        branches::aqms_of(&params.leaves(), path)
    }

    /// A class that keeps to its rate and its ceiling never borrows, and goes before all loans. Others send
    /// no more before it than their own buckets let through, but for one packet that is under way.
    fn guarantees(params: &HtbParams, server: &Server, loads: &[Load]) -> Vec<Result<Guarantee, Unbounded>> {
        let found = params.found();
        let leaves: Vec<&HtbClass> =
            found.iter().map(|one| one.class).filter(|class| class.queue.is_some()).collect();
        let under_way = nanobits(largest(loads));
        let mut from = 0;
        let mut guarantees = Vec::with_capacity(loads.len());
        // The classes of each leaf are those of the scheduler in its queue.
        let spans: Vec<std::ops::Range<usize>> = params
            .leaves()
            .iter()
            .map(|leaf| {
                let end = from + leaf.queue.class_keys().len();
                std::mem::replace(&mut from, end)..end
            })
            .collect();
        for (leaf, (class, span)) in leaves.iter().zip(&spans).enumerate() {
            let others = leaves.iter().zip(&spans).enumerate().filter(|&(other, _)| other != leaf);
            let first = others.fold(Concave::zero(), |sum, (_, (other, span))| {
                sum.plus(&other.sends_at_most(&loads[span.clone()]))
            });
            let left = server.beside(&first);
            let left =
                Server { strict: left.strict.less(under_way), waits: left.waits.less(under_way), ..left };
            let own = &loads[span.clone()];
            let holds =
                together(own).and_then(|all| Some(class.keeps_to_rate(&all.through(&left.strict)?, own)));
            if holds != Some(true) {
                let reason = format!(
                    "`{}` may send more than its rate, {}, and then depends on loans",
                    class.name, class.rate
                );
                guarantees.extend(vec![Err(reason); own.len()]);
                continue;
            }
            let step = Step::new(
                format!("`{}` keeps to its rate, so it goes before all loans", class.name),
                format!("β(t) = {}", Serving(&left.waits)),
                "Devera 2002, Hierarchical Token Bucket Theory",
            );
            let behind = |guarantee: Guarantee| Guarantee {
                queue: span.start + guarantee.queue,
                steps: std::iter::once(step.clone()).chain(guarantee.steps).collect(),
                ..guarantee
            };
            let queue = class.queue.as_ref().expect("a leaf has a queue");
            let inner = queue.0.guarantees(&left, own).into_iter();
            guarantees.extend(inner.map(|guarantee| guarantee.map(behind)));
        }
        guarantees
    }

    fn least_rates(params: &HtbParams, rate: Bitrate) -> Vec<Option<Bitrate>> {
        Self::within(params, rate)
            .into_iter()
            .flat_map(|leaf| leaf.scheduler.least_rates(leaf.rate.unwrap_or(rate)))
            .collect()
    }

    fn aqms_mut(params: &mut HtbParams) -> Vec<&mut AqmParams> {
        params.aqms_mut()
    }

    fn class_keys(params: &HtbParams) -> Vec<ClassKey> {
        branches::classes_of(&params.leaves())
    }

    fn within(params: &HtbParams, rate: Bitrate) -> Vec<Within<'_>> {
        let rates = params
            .found()
            .into_iter()
            .filter(|one| one.class.queue.is_some())
            .map(|one| (Some(one.class.rate.min(rate)), Some(one.class.ceil())));
        let leaves = params.leaves().into_iter().zip(rates);
        leaves
            .map(|(leaf, (rate, cap))| Within { key: leaf.queue_key(), scheduler: leaf.queue, rate, cap })
            .collect()
    }

    fn notices(
        params: &HtbParams,
        (least, most): (Bitrate, Bitrate),
        largest: Bytes,
    ) -> Vec<(String, String)> {
        params.contradictions(least, most).into_iter().chain(params.small_quanta(largest)).collect()
    }
}

impl<P: Packet> Discipline<P> for Htb<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Instant) -> Result<(), (P, Reason)> {
        let queue = self.queues.enqueue(packet, now)?;
        self.tree.join(queue);
        Ok(())
    }

    fn shed(&mut self, now: Instant) -> Option<(P, Reason)> {
        self.queues.shed(now)
    }

    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        self.queues.settle(now);
        let Self { queues, tree } = self;
        tree.fill(now);
        loop {
            let Some(choice) = tree.choose(|queue| queues.waits(queue)) else {
                return Dequeued::Wait(tree.next(|queue| queues.waits(queue)));
            };
            match queues.dequeue(choice.queue, now) {
                Dequeued::Sent(packet, class) => {
                    tree.charge(&choice, &packet.header(), |queue| queues.waits(queue));
                    return Dequeued::Sent(packet, class);
                }
                Dequeued::Wait(until) => tree.hold(&choice, until),
                dropped @ Dequeued::Dropped(..) => return dropped,
            }
        }
    }

    fn order_of(&self, packet: &Header) -> u64 {
        self.queues.order_of(packet)
    }

    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.queues.inspect(show);
    }

    classes_are_queues!();
}
