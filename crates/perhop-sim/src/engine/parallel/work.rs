//! How much work a run is at each router, so that the parts of a network get equal shares.
//!
//! Work is how many packets come to a router's links and hosts in a second. How many a flow sends is
//! estimated: over TCP a window in each round trip without queues, over UDP the mean rate of the source, and
//! neither more than an equal share of the slowest link on the way. Only the time of a run depends on it.

use crate::engine::setup::{Route, Setup, Step};
use crate::network::{FlowSpec, Network, TransportSpec};

/// Units of work of a packet each second.
const PER_PACKET: f64 = 16.0;

/// Returns the work at each router, at least 1.
pub(super) fn work(network: &Network, setup: &Setup) -> Vec<u64> {
    let mut flows_of = vec![0_u32; network.links.len()];
    for link in setup.routes.iter().flat_map(|routes| links(setup, routes.data)) {
        flows_of[link] += 1;
    }
    let mut packets = vec![0.0; network.nodes as usize];
    for (flow, routes) in network.flows.iter().zip(&setup.routes) {
        let there: Vec<usize> = links(setup, routes.data).collect();
        let back: Vec<usize> = links(setup, routes.acks).collect();
        let share = |&link: &usize| network.links[link].rate.as_bps() as f64 / f64::from(flows_of[link]);
        let most = there.iter().map(share).fold(f64::INFINITY, f64::min);
        let ways = there.iter().chain(&back);
        let delay = ways.clone().map(|&link| network.links[link].delay.as_secs_f64()).sum();
        let rate = packet_rate(flow, most, delay, network.duration.as_secs_f64());
        let routers = ways.map(|&link| network.links[link].from).chain([flow.from, flow.to]);
        routers.for_each(|router| packets[router.0 as usize] += rate);
    }
    packets.into_iter().map(|packets| 1 + (PER_PACKET * packets) as u64).collect()
}

/// Returns the links of a route.
fn links(setup: &Setup, route: Route) -> impl Iterator<Item = usize> {
    let steps = setup.steps.get(route.first_step as usize..=route.last_step as usize).unwrap_or_default();
    steps.iter().filter_map(|step| match step {
        Step::Link(link) | Step::Metered(link) => Some(*link as usize),
        _ => None,
    })
}

/// Returns about how many packets a flow sends in a second of a run of this length, if it has `most` bit/s on
/// the links that it shares, which take `delay` there and back.
fn packet_rate(flow: &FlowSpec, most: f64, delay: f64, length: f64) -> f64 {
    let (size, _) = flow.transport.packet_sizes();
    let bits = 8.0 * f64::from(size.max(1));
    let access = [&flow.access, &flow.egress].into_iter().flatten();
    let round_trip = delay + access.clone().map(|link| 2.0 * link.delay.as_secs_f64()).sum::<f64>();
    let asked = match &flow.transport {
        TransportSpec::Tcp(params) => f64::from(params.most_outstanding()) * bits / round_trip,
        TransportSpec::Udp(params) => params.mean_rate(),
        TransportSpec::Rap(_) | TransportSpec::Tfrc(_) => f64::INFINITY,
    };
    let whole = flow.volume.map_or(f64::INFINITY, |volume| 8.0 * volume.get() as f64 / length);
    let rate = access.map(|link| link.rate.as_bps() as f64).fold(asked.min(whole).min(most), f64::min);
    // Nothing is known of what hosts at one router send each other.
    if rate.is_finite() { rate / bits } else { 1.0 }
}
