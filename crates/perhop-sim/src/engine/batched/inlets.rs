//! The arrival queues of all links, and when each link has something to do next.
//!
//! Those times stand next to one another: all of them are read once in each window of the look-ahead, and in a large network most
//! links have nothing to do in a window. The state of a link, which is far from that of others, is read only if it has.

#![expect(clippy::inline_always, reason = "each packet comes through here twice")]

use perhop_core::{Duration, Instant, prefetch};

use super::arrivals::ArrivalQueue;
use crate::flow::PacketSink;
use crate::packet::SimPacket;

/// The state of more links than this is prefetched.
const FEW: usize = 128;

/// The arrival queues of all links.
#[derive(Clone, Debug)]
pub(super) struct Inlets {
    queues: Vec<ArrivalQueue<SimPacket>>,
    /// For each link: no packet comes to it, and it is not to be served, before this.
    due: Vec<Instant>,
    /// The same of what is no link; it is never read.
    elsewhere: Instant,
}

/// Where packets go first: a queue, and when what is behind it has something to do.
pub(super) struct Inlet<'a> {
    queue: &'a mut ArrivalQueue<SimPacket>,
    due: &'a mut Instant,
}

impl Inlets {
    /// Empty ones, of links that expect two packets to come at least about so far apart, after a delay of at most `reach`.
    pub(super) fn expecting(gaps: impl Iterator<Item = Duration>, reach: Duration) -> Self {
        let queues: Vec<_> = gaps.map(|gap| ArrivalQueue::expecting(gap, reach)).collect();
        Self { due: vec![Instant::NEVER; queues.len()], queues, elsewhere: Instant::NEVER }
    }

    /// There are so many links that their state is not all in the processor's second-level cache.
    #[inline(always)]
    pub(super) fn are_many(&self) -> bool {
        self.due.len() > FEW
    }

    /// Nothing happens at any link before this.
    pub(super) fn next(&self) -> Instant {
        self.due.iter().fold(Instant::NEVER, |first, &due| first.min(due))
    }

    /// Finds the links that have something to do before `bound`, in order.
    pub(super) fn find_due(&self, bound: Instant, links: &mut Vec<u32>) {
        links.clear();
        links.extend((0..).zip(&self.due).filter(|&(_, &due)| due < bound).map(|(link, _): (u32, _)| link));
    }

    /// A link has handled what came to it, and is to be served at `service`.
    #[inline(always)]
    pub(super) fn settle(&mut self, link: usize, service: Instant) {
        self.due[link] = self.queues[link].next().min(service);
    }

    /// A packet comes to a link, at its time.
    #[inline(always)]
    pub(super) fn push(&mut self, link: usize, packet: SimPacket) {
        self.queues[link].push(packet);
        self.due[link] = self.due[link].min(packet.at());
    }

    /// All packets on their way to a link, in no order.
    pub(super) fn packets(&self) -> impl Iterator<Item = &SimPacket> {
        self.queues.iter().flat_map(ArrivalQueue::iter)
    }

    /// Asks the processor for the state of a link's arrival queue.
    #[inline]
    pub(super) fn prefetch(&self, link: usize) {
        prefetch(&self.queues[link..=link]);
    }

    /// The same for the packets that come to it next, some time later.
    #[inline]
    pub(super) fn prefetch_first(&self, link: usize) {
        self.queues[link].prefetch_first();
    }

    /// The same for the packets that come to it last.
    #[inline]
    pub(super) fn prefetch_last(&self, link: usize) {
        self.queues[link].prefetch_last();
    }

    /// The arrival queue of a link, to take packets from.
    #[inline(always)]
    pub(super) fn queue(&mut self, link: usize) -> &mut ArrivalQueue<SimPacket> {
        &mut self.queues[link]
    }

    /// Where a host's packets go first: to a link, or, if the hosts share no link, to the queue of waiting packets.
    #[inline(always)]
    pub(super) fn first<'a>(&'a mut self, waiting: &'a mut ArrivalQueue<SimPacket>, link: u32) -> Inlet<'a> {
        match (self.queues.get_mut(link as usize), self.due.get_mut(link as usize)) {
            (Some(queue), Some(due)) => Inlet { queue, due },
            _ => Inlet { queue: waiting, due: &mut self.elsewhere },
        }
    }
}

impl Inlet<'_> {
    /// A packet goes there, at its time.
    #[inline(always)]
    pub(super) fn push(&mut self, packet: SimPacket) {
        self.queue.push(packet);
        *self.due = (*self.due).min(packet.at());
    }
}

impl PacketSink for Inlet<'_> {
    #[inline(always)]
    fn put(&mut self, packet: SimPacket) {
        self.push(packet);
    }
}
