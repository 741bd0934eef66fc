//! The tree of classes: who may send now, by its own rate or by a loan.

use super::bucket::Bucket;
use super::params::{Found, HtbClass, PRIOS};
use crate::{Header, Instant};

/// The place in a round behind all that take part in it.
const END: usize = usize::MAX;

/// The classes of a hierarchical token bucket.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// Each before those within it.
    nodes: Vec<Node>,
    /// The node of each queue.
    leaves: Vec<usize>,
    /// For each level and `prio`, the place in the round: the first node of that level from here on is next.
    rows: Vec<[usize; PRIOS as usize]>,
}

/// A class.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    children: Vec<usize>,
    /// 0 for a class with a queue; of the others, the deepest have the lowest.
    level: usize,
    queue: Option<Turns>,
    rate: Bucket,
    ceil: Bucket,
    mode: Mode,
    /// The priorities at which it, or a class that borrows from it, has packets: a bit for each.
    active: u8,
    /// For each `prio`, the place in the round of those that borrow from it. As in Linux it starts at the
    /// end, so that the first turn is that of another class, if one shares the row or the lender.
    cursors: [usize; PRIOS as usize],
}

/// What a class with a queue knows of its turns.
#[derive(Clone, Debug)]
struct Turns {
    number: usize,
    prio: u8,
    quantum: i64,
    /// For each level at which it sends, in bytes.
    deficits: Vec<i64>,
    /// Until when the queue has nothing that may go, whatever tokens there are.
    held: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The class is at its ceiling.
    CannotSend,
    /// The class has used up its rate.
    MayBorrow,
    CanSend,
}

/// A queue that may send, at whose cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) queue: usize,
    leaf: usize,
    level: usize,
    prio: usize,
}

fn quantum(class: &HtbClass, r2q: u32) -> i64 {
    i64::try_from(class.quantum(r2q)).unwrap_or(i64::MAX)
}

impl Tree {
    /// Returns all classes with full buckets.
    pub(super) fn new(found: &[Found<'_>], r2q: u32) -> Self {
        let deepest = found.iter().filter(|one| one.class.queue.is_none()).map(|one| one.depth + 1);
        let levels = deepest.max().unwrap_or(0) + 1;
        let mut leaves = Vec::new();
        let mut nodes: Vec<Node> = Vec::with_capacity(found.len());
        for (number, Found { class, parent, depth, .. }) in found.iter().enumerate() {
            let queue = class.queue.is_some().then(|| Turns {
                number: leaves.len(),
                prio: class.prio.unwrap_or(0),
                quantum: quantum(class, r2q),
                deficits: vec![0; levels],
                held: None,
            });
            if queue.is_some() {
                leaves.push(number);
            }
            if let Some(parent) = *parent {
                nodes[parent].children.push(number);
            }
            nodes.push(Node {
                parent: *parent,
                children: Vec::new(),
                level: if queue.is_some() { 0 } else { levels - 1 - depth },
                queue,
                rate: Bucket::new(class.rate, class.burst),
                ceil: Bucket::new(class.ceil(), class.cburst),
                mode: Mode::CanSend,
                active: 0,
                cursors: [END; PRIOS as usize],
            });
        }
        Self { nodes, leaves, rows: vec![[0; PRIOS as usize]; levels] }
    }

    /// Gives classes of the same places these parameters from now on; tokens and deficits stay.
    pub(super) fn retune(&mut self, found: &[Found<'_>], r2q: u32, now: Instant) {
        for (node, Found { class, .. }) in self.nodes.iter_mut().zip(found) {
            node.rate.retune(class.rate, class.burst, now);
            node.ceil.retune(class.ceil(), class.cburst, now);
            if let Some(turns) = &mut node.queue {
                turns.prio = class.prio.unwrap_or(0);
                turns.quantum = quantum(class, r2q);
            }
        }
    }

    pub(super) fn join(&mut self, queue: usize) {
        if let Some(turns) = &mut self.nodes[self.leaves[queue]].queue {
            turns.held = None;
        }
    }

    /// Adds the tokens that have arrived.
    pub(super) fn fill(&mut self, now: Instant) {
        for node in &mut self.nodes {
            node.rate.fill(now);
            node.ceil.fill(now);
            if let Some(turns) = &mut node.queue
                && turns.held.is_some_and(|until| until <= now)
            {
                turns.held = None;
            }
        }
    }

    /// Returns the queue whose turn it is, if one may send; `waits` says whether a queue has packets.
    pub(super) fn choose(&mut self, waits: impl Fn(usize) -> bool) -> Option<Choice> {
        self.refresh(waits);
        for level in 0..self.rows.len() {
            let here = self.nodes.iter().filter(|node| node.level == level && node.mode == Mode::CanSend);
            let active = here.fold(0, |active, node| active | node.active);
            if active != 0 {
                let prio = active.trailing_zeros() as usize;
                return Some(self.look_up(level, prio));
            }
        }
        None
    }

    /// Notes which classes may send or borrow, and which of them have packets.
    fn refresh(&mut self, waits: impl Fn(usize) -> bool) {
        for number in (0..self.nodes.len()).rev() {
            let borrowers = &self.nodes[number].children;
            let borrowed = borrowers.iter().map(|&child| &self.nodes[child]);
            let borrowed = borrowed.filter(|child| child.mode == Mode::MayBorrow);
            let active = borrowed.fold(0, |active, child| active | child.active);
            let node = &mut self.nodes[number];
            node.active = match &node.queue {
                Some(turns) if turns.held.is_none() && waits(turns.number) => 1 << turns.prio,
                Some(_) => 0,
                None => active,
            };
            node.mode = match (node.ceil.is_solvent(), node.rate.is_solvent()) {
                (false, _) => Mode::CannotSend,
                (true, false) => Mode::MayBorrow,
                (true, true) => Mode::CanSend,
            };
        }
        // A class that leaves its row passes its turn on.
        for level in 0..self.rows.len() {
            for prio in 0..usize::from(PRIOS) {
                let next = self.rows[level][prio];
                let stays = |node: &Node| node.level != level || node.is_in_row(prio);
                if !self.nodes.get(next).is_none_or(stays) {
                    self.rows[level][prio] = self.behind(next, None, level, prio);
                }
            }
        }
    }

    /// Returns the queue whose turn it is among those that send at the cost of this level.
    fn look_up(&mut self, level: usize, prio: usize) -> Choice {
        let mut lender: Option<usize> = None;
        loop {
            let next = match lender {
                None => {
                    let from = self.rows[level][prio];
                    let mut here =
                        (from..self.nodes.len()).filter(|&number| self.nodes[number].level == level);
                    here.find(|&number| self.nodes[number].is_in_row(prio))
                }
                Some(lender) => {
                    let Node { children, cursors, .. } = &self.nodes[lender];
                    let feeds = |&child: &usize| child >= cursors[prio] && self.nodes[child].borrows(prio);
                    children.iter().copied().find(feeds)
                }
            };
            match (next, lender) {
                (Some(next), _) => {
                    *self.cursor(lender, level, prio) = next;
                    if let Some(turns) = &self.nodes[next].queue {
                        return Choice { queue: turns.number, leaf: next, level, prio };
                    }
                    lender = Some(next);
                }
                // The round is over: a turn of the class around them. The next one begins with the class that
                // is the first now, whoever joins before it.
                (None, Some(done)) => {
                    let children = &self.nodes[done].children;
                    let first = children.iter().copied().find(|&child| self.nodes[child].borrows(prio));
                    self.nodes[done].cursors[prio] = first.unwrap_or(0);
                    let around = self.nodes[done].parent.filter(|&parent| self.nodes[parent].level <= level);
                    *self.cursor(around, level, prio) = done + 1;
                    lender = around;
                }
                (None, None) => self.rows[level][prio] = 0,
            }
        }
    }

    /// Returns the place in the round of those that borrow from a class, or in that of a level.
    fn cursor(&mut self, lender: Option<usize>, level: usize, prio: usize) -> &mut usize {
        match lender {
            Some(lender) => &mut self.nodes[lender].cursors[prio],
            None => &mut self.rows[level][prio],
        }
    }

    /// Returns the place in the round behind this class: that of the next one which takes part now. Where
    /// there is none the round is over, whoever joins before it goes on.
    fn behind(&self, number: usize, lender: Option<usize>, level: usize, prio: usize) -> usize {
        let next = match lender {
            None => (number + 1..self.nodes.len())
                .find(|&other| self.nodes[other].level == level && self.nodes[other].is_in_row(prio)),
            Some(lender) => {
                let mut others = self.nodes[lender].children.iter().copied();
                others.find(|&other| other > number && self.nodes[other].borrows(prio))
            }
        };
        next.unwrap_or(END)
    }

    /// Charges the classes for a packet of this queue, which is sent.
    pub(super) fn charge(&mut self, choice: &Choice, packet: &Header, waits: impl Fn(usize) -> bool) {
        let Choice { leaf, level, prio, .. } = *choice;
        if let Some(turns) = &mut self.nodes[leaf].queue {
            let deficit = &mut turns.deficits[level];
            *deficit = deficit.saturating_sub(i64::from(packet.size));
            if *deficit < 0 {
                *deficit = deficit.saturating_add(turns.quantum);
                let lender = self.nodes[leaf].parent.filter(|_| level > 0);
                *self.cursor(lender, level, prio) = self.behind(leaf, lender, level, prio);
            }
        }
        let mut payer = Some(leaf);
        while let Some(number) = payer {
            let node = &mut self.nodes[number];
            if node.level >= level {
                node.rate.charge(packet);
            }
            node.ceil.charge(packet);
            payer = node.parent;
        }
        self.refresh(waits);
    }

    /// Notes that the queue has nothing that may go before this time; `None` for the next packet that joins
    /// it.
    pub(super) fn hold(&mut self, choice: &Choice, until: Option<Instant>) {
        if let Some(turns) = &mut self.nodes[choice.leaf].queue {
            turns.held = Some(until.unwrap_or(Instant::NEVER));
        }
    }

    /// Returns when a queue with packets may send, if there is one and nothing is sent before.
    pub(super) fn next(&self, waits: impl Fn(usize) -> bool) -> Option<Instant> {
        let leaves = self.leaves.iter().filter_map(|&leaf| {
            let turns = self.nodes[leaf].queue.as_ref()?;
            waits(turns.number).then(|| self.may_send_at(leaf).max(turns.held.unwrap_or(Instant::ZERO)))
        });
        leaves.min()
    }

    /// Returns when a class can send at its own cost or at that of a class around it.
    fn may_send_at(&self, leaf: usize) -> Instant {
        let (mut soonest, mut below_ceilings) = (Instant::NEVER, Instant::ZERO);
        let mut lender = Some(leaf);
        while let Some(number) = lender {
            let Node { rate, ceil, parent, .. } = &self.nodes[number];
            below_ceilings = below_ceilings.max(ceil.solvent_at());
            soonest = soonest.min(below_ceilings.max(rate.solvent_at()));
            lender = *parent;
        }
        soonest
    }
}

impl Node {
    /// Returns whether the class pays for packets of this `prio`.
    fn is_in_row(&self, prio: usize) -> bool {
        self.mode == Mode::CanSend && self.active >> prio & 1 == 1
    }

    /// Returns whether the class around this one would pay for such packets.
    fn borrows(&self, prio: usize) -> bool {
        self.mode == Mode::MayBorrow && self.active >> prio & 1 == 1
    }
}
