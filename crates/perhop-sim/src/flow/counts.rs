//! Counts of a flow.

use crate::transport::SenderStatistics;

/// What a flow has counted since the run began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(super) delivered: u64,
    pub(super) short: u64,
    /// Packets of data that reached the receiver again.
    pub(super) repeated: u64,
    pub(super) congested: u64,
    pub(super) acknowledged: u64,
    pub(super) marked: [u64; 3],
    pub(super) policed: [u64; 3],
    pub(super) policed_at_links: [u64; 3],
    pub(super) lost: u64,
    pub(super) dropped: [u64; 3],
    pub(super) sender: SenderStatistics,
}

impl Counts {
    /// Adds what was counted in another part of the network.
    pub(crate) fn add(&mut self, other: &Self) {
        let by_color = |one: &mut [u64; 3], other: [u64; 3]| {
            one.iter_mut().zip(other).for_each(|(one, other)| *one += other);
        };
        self.delivered += other.delivered;
        self.short += other.short;
        self.repeated += other.repeated;
        self.congested += other.congested;
        self.acknowledged += other.acknowledged;
        by_color(&mut self.marked, other.marked);
        by_color(&mut self.policed, other.policed);
        by_color(&mut self.policed_at_links, other.policed_at_links);
        self.lost += other.lost;
        by_color(&mut self.dropped, other.dropped);
        self.sender.add(&other.sender);
    }

    /// Returns the difference from an earlier count.
    pub(super) fn since(&self, before: &Self) -> Self {
        let by_color = |now: [u64; 3], then: [u64; 3]| std::array::from_fn(|color| now[color] - then[color]);
        Self {
            delivered: self.delivered - before.delivered,
            short: self.short - before.short,
            repeated: self.repeated - before.repeated,
            congested: self.congested - before.congested,
            acknowledged: self.acknowledged - before.acknowledged,
            marked: by_color(self.marked, before.marked),
            policed: by_color(self.policed, before.policed),
            policed_at_links: by_color(self.policed_at_links, before.policed_at_links),
            lost: self.lost - before.lost,
            dropped: by_color(self.dropped, before.dropped),
            sender: self.sender.since(&before.sender),
        }
    }

    /// Packets that meters dropped, by color.
    pub(super) fn all_policed(&self) -> [u64; 3] {
        std::array::from_fn(|color| self.policed[color] + self.policed_at_links[color])
    }
}
