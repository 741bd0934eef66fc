//! The arrival queues of all links, and the time at which each link has something to do next.
//!
//! The times lie next to one another in memory: all of them are read once in each window of the
//! look-ahead, and in a large network most links have nothing to do in a window. The state of a link,
//! which is far from that of others, is read only if it has.

#![expect(clippy::inline_always, reason = "each packet comes through here twice")]

use perhop_core::{Bytes, Instant};

use super::arrivals::ArrivalQueue;
use crate::flow::PacketSink;
use crate::network::Network;
use crate::packet::SimPacket;

/// The state of more links than this is prefetched.
const FEW: usize = 128;

/// The arrival queues of all links, and that of packets which wait before hosts.
#[derive(Clone, Debug)]
pub(super) struct LinkInputs {
    /// Packets on their way to each link: [`push`](Self::push) adds one.
    pub(super) queues: Vec<ArrivalQueue<SimPacket>>,
    /// The time, for each link, before which no packet comes to it, and it is not to be served.
    due: Vec<Instant>,
    /// Packets on their way to a step before which they wait for their time: at hosts and ingresses.
    pub(super) waiting: ArrivalQueue<SimPacket>,
    /// The place of a time for the queue that belongs to no link; nobody reads it.
    elsewhere: Instant,
}

/// The arrival queue to which a host's packets go first, and when the link behind it has something to do.
pub(super) struct LinkInput<'a> {
    queue: &'a mut ArrivalQueue<SimPacket>,
    due: &'a mut Instant,
}

impl LinkInputs {
    /// Empty arrival queues for the links of a network whose largest packet has this size.
    pub(super) fn of(network: &Network, largest: Bytes) -> Self {
        // A packet is on its way for its delay, after a window that may be as long.
        let reach = network.longest_delay().saturating_mul(2);
        // The interval at which packets leave a link that is full of the largest ones.
        let gaps = network.links.iter().map(|link| link.rate.time_of(largest));
        let queues: Vec<_> = gaps.map(|gap| ArrivalQueue::expecting(gap, reach)).collect();
        Self {
            due: vec![Instant::NEVER; queues.len()],
            queues,
            waiting: ArrivalQueue::default(),
            elsewhere: Instant::NEVER,
        }
    }

    /// Whether there are so many links that their state is not all in the processor's second-level cache.
    #[inline(always)]
    pub(super) fn are_many(&self) -> bool {
        self.due.len() > FEW
    }

    /// Returns the time before which nothing happens at any link.
    pub(super) fn next(&self) -> Instant {
        self.due.iter().fold(Instant::NEVER, |first, &due| first.min(due))
    }

    /// Finds the links that have something to do before `bound`, in order.
    pub(super) fn find_due(&self, bound: Instant, links: &mut Vec<u32>) {
        links.clear();
        links.extend((0..).zip(&self.due).filter(|&(_, &due)| due < bound).map(|(link, _): (u32, _)| link));
    }

    /// Notes that a link has handled what came to it, and is to be served at `service`.
    #[inline(always)]
    pub(super) fn settle(&mut self, link: usize, service: Instant) {
        self.due[link] = self.queues[link].next().min(service);
    }

    /// Adds a packet on its way to a link.
    #[inline(always)]
    pub(super) fn push(&mut self, link: usize, packet: SimPacket) {
        self.queues[link].push(packet);
        self.due[link] = self.due[link].min(packet.at());
    }

    /// Returns all packets on their way to links, hosts and ingresses, in no order.
    pub(super) fn packets(&self) -> impl Iterator<Item = &SimPacket> {
        self.queues.iter().chain([&self.waiting]).flat_map(ArrivalQueue::iter)
    }

    /// Returns the input to which a host's packets go first: that of a link, or, if the hosts share no link,
    /// the packets that wait.
    #[inline(always)]
    pub(super) fn first(&mut self, link: u32) -> LinkInput<'_> {
        match (self.queues.get_mut(link as usize), self.due.get_mut(link as usize)) {
            (Some(queue), Some(due)) => LinkInput { queue, due },
            _ => LinkInput { queue: &mut self.waiting, due: &mut self.elsewhere },
        }
    }
}

impl PacketSink for LinkInput<'_> {
    #[inline(always)]
    fn put(&mut self, packet: SimPacket) {
        self.queue.push(packet);
        *self.due = (*self.due).min(packet.at());
    }
}
