//! Which queue a flow has.

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rng::mixed;
use crate::scheduler::flow_of;
use crate::{Header, Rng};

/// How flows are assigned to queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowHash {
    /// By a salted hash: flows with the same hash share a queue (RFC 8290).
    #[default]
    Stochastic,
    /// By a salted hash that chooses a set of 8 queues: a flow takes one that is free, and shares one only if
    /// all are taken (CAKE, ns-3).
    SetAssociative,
    /// Each flow has a queue of its own. This favors fair queueing in comparisons: a router's flows do share
    /// queues.
    Exact,
}

/// Queues in a set.
pub(super) const WAYS: usize = 8;

/// The queues of flows, by their numbers, which are given in the order of first use.
#[derive(Clone, Debug)]
pub(super) struct FlowTable {
    /// The random part of the hash.
    salt: u64,
    buckets: Vec<Option<u32>>,
    /// How many queues have a number.
    queues: u32,
    kind: Kind,
}

/// What each way to assign queues keeps besides.
#[derive(Clone, Debug)]
enum Kind {
    Stochastic,
    /// The hash of the flow for which each bucket was last used.
    SetAssociative(Vec<u64>),
    Exact(Owners),
}

/// The flow of each queue.
#[derive(Clone, Debug, Default)]
struct Owners {
    owners: Vec<Owner>,
    /// Where the search for a queue that is not used goes on.
    hand: u32,
}

#[derive(Clone, Copy, Debug)]
struct Owner {
    flow: u64,
    bucket: usize,
    /// The next queue in the same bucket.
    next: Option<u32>,
}

/// The queue of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assigned {
    /// A queue that was used before.
    Known(u32),
    /// A queue that is new, or begins anew.
    Fresh(u32),
}

impl FlowTable {
    pub(super) fn new(hash: FlowHash, flows: u32, rng: &mut Rng) -> Self {
        let kind = match hash {
            FlowHash::Stochastic => Kind::Stochastic,
            FlowHash::SetAssociative => Kind::SetAssociative(vec![0; flows as usize]),
            FlowHash::Exact => Kind::Exact(Owners::default()),
        };
        Self { salt: rng.next_u64(), buckets: vec![None; flows as usize], queues: 0, kind }
    }

    /// Returns a number for a packet: packets with the same number have the same queue.
    pub(super) fn order_of(&self, packet: &Header) -> u64 {
        match self.kind {
            Kind::Stochastic => self.bucket(mixed(self.salt ^ flow_of(packet))) as u64,
            Kind::SetAssociative(_) | Kind::Exact(_) => flow_of(packet),
        }
    }

    /// Returns the queue of a packet; `active` says which queues have packets or a turn.
    #[inline(always)]
    pub(super) fn assign(&mut self, packet: &Header, active: impl Fn(u32) -> bool) -> Assigned {
        let flow = flow_of(packet);
        let hash = mixed(self.salt ^ flow);
        let bucket = self.bucket(hash);
        let Self { buckets, queues, kind, .. } = self;
        let bucket = match kind {
            Kind::Stochastic => bucket,
            Kind::SetAssociative(tags) => way(buckets, tags, bucket, hash, active),
            Kind::Exact(owners) => {
                return owners.assign(buckets, queues, Owner { flow, bucket, next: None }, active);
            }
        };
        match buckets[bucket] {
            Some(queue) => Assigned::Known(queue),
            None => Assigned::Fresh(*buckets[bucket].insert(next_number(queues))),
        }
    }

    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        let buckets = self.buckets.len() as u64;
        // The same, and a division takes far longer.
        let is_mask_enough = buckets.is_power_of_two();
        (if is_mask_enough { hash & (buckets - 1) } else { hash % buckets }) as usize
    }
}

fn next_number(queues: &mut u32) -> u32 {
    *queues += 1;
    *queues - 1
}

/// Returns the bucket of a flow in the set of this one: its own if it has one, else one that is free, else
/// this one.
#[inline(never)]
fn way(
    buckets: &[Option<u32>],
    tags: &mut [u64],
    bucket: usize,
    hash: u64,
    active: impl Fn(u32) -> bool,
) -> usize {
    let first = bucket - bucket % WAYS;
    let ways = || (0..WAYS).map(|way| first + (bucket + way) % WAYS);
    let own = ways().find(|&way| buckets[way].is_some() && tags[way] == hash);
    let free = || ways().find(|&way| buckets[way].is_none_or(|queue| !active(queue)));
    let found = own.or_else(free).unwrap_or(bucket);
    tags[found] = hash;
    found
}

impl Owners {
    /// Returns the queue of this flow alone. Once there are as many queues as buckets, one that is not active
    /// begins anew, if there is one.
    #[inline(never)]
    fn assign(
        &mut self,
        buckets: &mut [Option<u32>],
        queues: &mut u32,
        owner: Owner,
        active: impl Fn(u32) -> bool,
    ) -> Assigned {
        let mut next = buckets[owner.bucket];
        while let Some(queue) = next {
            let known = self.owners[queue as usize];
            if known.flow == owner.flow {
                return Assigned::Known(queue);
            }
            next = known.next;
        }
        let queue = if let Some(queue) = self.unused(buckets.len(), active) {
            self.release(buckets, queue);
            self.owners[queue as usize] = owner;
            self.hand = queue + 1;
            queue
        } else {
            self.owners.push(owner);
            next_number(queues)
        };
        self.owners[queue as usize].next = buckets[owner.bucket].replace(queue);
        Assigned::Fresh(queue)
    }

    fn unused(&self, enough: usize, active: impl Fn(u32) -> bool) -> Option<u32> {
        let queues = self.owners.len() as u32;
        let mut all = (0..queues).map(|n| (self.hand + n) % queues);
        if self.owners.len() < enough { None } else { all.find(|&queue| !active(queue)) }
    }

    fn release(&mut self, buckets: &mut [Option<u32>], queue: u32) {
        let Owner { bucket, next, .. } = self.owners[queue as usize];
        if buckets[bucket] == Some(queue) {
            buckets[bucket] = next;
            return;
        }
        let before = self.owners.iter_mut().find(|owner| owner.next == Some(queue));
        before.expect("it is in its bucket").next = next;
    }
}
