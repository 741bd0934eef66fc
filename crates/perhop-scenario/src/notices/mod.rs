//! Notices of a scenario that can be run: keys without effect, queues that no packet joins, marks of which no
//! flow is capable, streams that a queue divides.

mod division;
mod flows;
mod links;
mod meters;
mod populations;
mod queues;

use std::ops::RangeInclusive;

use perhop_sim::Network;
use perhop_sim::transport::packet_trace::PacketTrace;

use crate::error::Problem;
use crate::format::Scenario;
use crate::one_flow_per_group::OneFlowPerGroup;

pub use self::division::{Division, division, divisions};
pub use self::queues::{Rates, keys_without_effect};

impl Scenario {
    /// Returns what cannot act, or acts otherwise than it seems; each notice at its key.
    pub fn notices(&self) -> Vec<Problem> {
        let reduced = OneFlowPerGroup::of(self);
        let sizes = sizes(&reduced.network);
        let mut notices = self.former_keys.clone();
        notices.extend(queues::of_queues(self, &reduced, &sizes));
        notices.extend(links::ended_traces(self));
        notices.extend(flows::idle_demands(self));
        notices.extend(links::named_backwards(self));
        notices.extend(links::merged_edges(self));
        notices.extend(flows::incomplete_replays(self));
        notices.extend(links::total_losses(self));
        notices.extend(meters::idle_profiles(self));
        notices.extend(meters::idle_colors(self));
        notices.extend(flows::other_codecs(self));
        notices.extend(meters::idle_meters(self, &reduced, &sizes));
        notices.extend(populations::of_populations(self, &reduced.network));
        notices.extend(flows::papers_windows(self, &reduced));
        notices
    }
}

/// Returns the sizes of packets on the wire, in bytes.
fn sizes(network: &Network) -> RangeInclusive<u64> {
    let sizes = network.flows.iter().flat_map(|flow| {
        let (data, feedback) = flow.transport.packet_sizes();
        let smallest = flow.transport.trace().map_or(data, PacketTrace::smallest);
        [data, smallest, feedback].into_iter().filter(|size| *size > 0).map(u64::from)
    });
    let (smallest, largest) = sizes.fold((u64::MAX, 1), |(min, max), size| (size.min(min), size.max(max)));
    smallest.min(largest)..=largest
}
