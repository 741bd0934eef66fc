//! Counts of a flow.

use std::ops::{Add, Sub};

use crate::transport::SenderStatistics;

/// What a flow has counted since the run began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(super) delivered: u64,
    pub(super) acknowledged: u64,
    pub(super) marked: [u64; 3],
    pub(super) policed: [u64; 3],
    pub(super) path: PathCounts,
    pub(super) sender: SenderStatistics,
}

/// What routers and the receiver of a flow have counted of its data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathCounts {
    /// Packets dropped, by color.
    pub(super) dropped: [u64; 3],
    /// Packets that the meters of links dropped, by color.
    pub(super) policed_at_links: [u64; 3],
    /// Packets that links lost after they had sent them.
    pub(super) lost: u64,
    /// Packets that came to the receiver marked (Congestion Experienced).
    pub(super) congested: u64,
    /// Packets that reached the receiver again.
    pub(super) repeated: u64,
    /// Bytes by which packets that arrived were shorter than the flow's full packets.
    pub(super) short: u64,
}

impl Counts {
    /// Adds what was counted in another part of the network.
    pub(crate) fn add(&mut self, other: &Self) {
        self.delivered += other.delivered;
        self.acknowledged += other.acknowledged;
        self.marked = by_color(self.marked, other.marked, u64::add);
        self.policed = by_color(self.policed, other.policed, u64::add);
        self.path = self.path.with(other.path, u64::add);
        self.sender.add(&other.sender);
    }

    /// Returns the difference from an earlier count.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            delivered: self.delivered - before.delivered,
            acknowledged: self.acknowledged - before.acknowledged,
            marked: by_color(self.marked, before.marked, u64::sub),
            policed: by_color(self.policed, before.policed, u64::sub),
            path: self.path.with(before.path, u64::sub),
            sender: self.sender.since(&before.sender),
        }
    }
}

impl PathCounts {
    /// Returns what this operation makes of each pair of counts.
    pub(super) fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            dropped: by_color(self.dropped, other.dropped, of),
            policed_at_links: by_color(self.policed_at_links, other.policed_at_links, of),
            lost: of(self.lost, other.lost),
            congested: of(self.congested, other.congested),
            repeated: of(self.repeated, other.repeated),
            short: of(self.short, other.short),
        }
    }
}

/// Returns what this operation makes of the counts of each color.
pub(super) fn by_color(one: [u64; 3], other: [u64; 3], of: fn(u64, u64) -> u64) -> [u64; 3] {
    std::array::from_fn(|color| of(one[color], other[color]))
}
