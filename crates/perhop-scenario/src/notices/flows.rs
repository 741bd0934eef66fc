//! Notices of groups of flows: what they send, and between which routers.

use std::collections::{BTreeMap, BTreeSet};

use perhop_sim::TransportSpec;
use perhop_sim::transport::tcp::{TcpParams, Variant};

use crate::check::shares;
use crate::error::{Problem, at_flow};
use crate::files::LEFT_OUT;
use crate::format::Demand;
use crate::format::{Codec, ReplayedPackets, Scenario, Transport};
use crate::one_flow_per_group::{LinkSelection, OneFlowPerGroup};

/// The year of CUBIC, the oldest of the congestion controls of hosts of today.
const CUBIC: u16 = 2005;

/// Returns a notice for each congestion control of today whose window is the default of the papers' presets,
/// which holds them below their share of a link.
pub(super) fn papers_windows(scenario: &Scenario, reduced: &OneFlowPerGroup) -> Vec<Problem> {
    let mut notices = Vec::new();
    let mut seen = BTreeSet::new();
    let numbers: BTreeMap<&str, usize> = scenario.flows.iter().map(|group| &*group.name).zip(0..).collect();
    let mut sharing = BTreeMap::new();
    for (flow, spec) in reduced.network.flows.iter().enumerate() {
        let name = reduced.group(flow);
        let TransportSpec::Tcp(params) = &spec.transport else { continue };
        let Some(&group) = numbers.get(name) else { continue };
        let is_papers = matches!(params.tcp, Variant::Reno | Variant::NewReno);
        let is_modern = params.control().info().origin.year >= CUBIC;
        let papers = TcpParams::new(params.tcp);
        if !is_papers || !is_modern || params.window != papers.window || spec.volume.is_some() {
            continue;
        }
        let Some((link, round_trip)) = reduced.narrowest(flow) else { continue };
        let window = params.packet.bits() * u64::from(params.most_offered());
        let most = window as f64 / round_trip.as_secs_f64();
        let sharing =
            *sharing.entry(&link.name).or_insert_with(|| flows_through(scenario, reduced, &link.name));
        let rate = link.rate.as_bps() as f64 / f64::from(sharing);
        if most < rate && seen.insert(group) {
            let text = format!(
                "`{}` beside `tcp = \"{}\"`, which has the papers' packets of {} and window of {}: at most {:.3} Mbit/s in a round \
                 trip of {round_trip}, less than its share of link {}; `tcp = \"linux\"` has those of hosts of today, or give `window`",
                params.control().label(),
                if params.tcp == Variant::Reno { "reno" } else { "newreno" },
                params.packet,
                params.window,
                most / 1e6,
                link.name,
            );
            notices.push(Problem::at(at_flow(group, "transport.congestion"), text));
        }
    }
    notices
}

/// Returns how many flows have data that pass a link of this name.
fn flows_through(scenario: &Scenario, reduced: &OneFlowPerGroup, link: &str) -> u32 {
    let groups: BTreeSet<&str> = reduced.passing(LinkSelection::link(link)).map(|(group, _)| group).collect();
    let counts = scenario.flows.iter().filter(|group| groups.contains(&*group.name)).map(|group| group.count);
    counts.sum::<u32>().max(1)
}

/// Returns a notice for each capture of which not all packets are replayed.
pub(super) fn incomplete_replays(scenario: &Scenario) -> impl Iterator<Item = Problem> {
    scenario.flows.iter().enumerate().filter_map(|(number, group)| {
        let Some(ReplayedPackets::Table(table)) = &group.replay else { return None };
        let first = table.data.as_ref()?.lines().next()?.strip_prefix(LEFT_OUT)?;
        let name = table.name.as_deref().unwrap_or("the capture");
        Some(Problem::at(at_flow(number, "replay"), format!("{name}: left out: {first}")))
    })
}

/// Returns a notice for each codec of flows that do not send what the E-model's parameters hold for.
pub(super) fn other_codecs(scenario: &Scenario) -> impl Iterator<Item = Problem> {
    scenario.flows.iter().enumerate().filter_map(|(number, flow)| {
        let (Some(codec), Transport::Udp(params)) = (flow.codec, &flow.transport) else { return None };
        let gap = params.rate.time_of(params.packet);
        (gap != Codec::PACKET).then(|| {
            let text = format!(
                "`{}`: the E-model's parameters are for packets of {}, and these flows send one every {gap}; choose `rate` and \
                 `packet` of the transport, such as 80kbps and 200B for G.711, 24kbps and 60B for G.729",
                codec.name(),
                Codec::PACKET,
            );
            Problem::at(at_flow(number, "codec"), text)
        })
    })
}

/// Returns a notice for each group with so few flows that pairs of their measured matrix have none.
pub(super) fn idle_demands(scenario: &Scenario) -> impl Iterator<Item = Problem> {
    scenario.flows.iter().enumerate().filter_map(|(number, group)| {
        let between = group.between.as_ref().filter(|between| !between.demands.is_empty())?;
        let shares = shares(&between.demands, group.count);
        let mut idle = between.demands.iter().zip(&shares).filter(|(_, flows)| **flows == 0);
        let (Demand { from, to, .. }, _) = idle.next()?;
        let (without, all) = (1 + idle.count(), shares.len());
        let text = format!(
            "{without} of {all} pairs get no flow, such as `{from}` to `{to}`: the group has {}, in proportion to the rates; \
             raise `count`, or leave these pairs out",
            if group.count == 1 { "1 flow".into() } else { format!("{} flows", group.count) }
        );
        Some(Problem::at(at_flow(number, "between"), text))
    })
}
