//! Which networks the batched engine accepts, and why it refuses others.

use perhop_core::{Bytes, Duration};

use crate::application::Carrier;
use crate::choice::Refusal;
use crate::engine::setup::{Routes, Setup};
use crate::engine::users::{ends, is_driven};
use crate::network::{ApplicationSpec, LinkSpec, Marking, Network};

/// A network that the batched engine accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    /// The look-ahead: a packet that comes to a link changes nothing elsewhere before this has passed.
    pub(super) lookahead: Duration,
}

impl Accepted {
    /// # Errors
    /// Why the network is refused.
    pub(crate) fn of(network: &Network, setup: &Setup) -> Result<Self, Refusal> {
        check_blocks(network)?;
        check_applications(network, &setup.routes)?;
        Ok(Self { lookahead: lookahead(network, setup)? })
    }
}

/// A block of a network.
#[derive(Debug, PartialEq, Eq)]
struct UsedBlock<'a> {
    role: &'static str,
    name: &'static str,
    batched: bool,
    /// The owner: a kind and a name.
    place: (&'static str, &'a str),
}

fn check_blocks(network: &Network) -> Result<(), Refusal> {
    queue_blocks(network).chain(meters(network)).chain(applications(network)).try_for_each(UsedBlock::check)
}

/// Returns the schedulers and AQMs of all links.
fn queue_blocks(network: &Network) -> impl Iterator<Item = UsedBlock<'_>> {
    network.links.iter().flat_map(|link| {
        let place = ("link", &*link.name);
        let schedulers = link.queue.iter().flat_map(|queue| queue.all_within(link.rate));
        let scheduler = schedulers.map(move |within| {
            let (name, batched) = (within.scheduler.name(), within.scheduler.batched());
            UsedBlock { role: "scheduler", name, batched, place }
        });
        let aqms = link.queue.iter().flat_map(|queue| queue.aqms(None)).map(move |(_, aqm)| {
            let (name, batched) = (aqm.name(), aqm.batched());
            UsedBlock { role: "AQM", name, batched, place }
        });
        scheduler.chain(aqms)
    })
}

/// Returns the meters of flows, of shared profiles and of links.
fn meters(network: &Network) -> impl Iterator<Item = UsedBlock<'_>> {
    let own = network.flows.iter().filter_map(|flow| match &flow.marking {
        Marking::Host(meter) | Marking::Ingress(meter) => Some((meter, ("flow", &*flow.name))),
        Marking::None | Marking::Edge(_) => None,
    });
    let shared = network.shared_meters.iter().map(|meter| (&meter.params, ("profile", &*meter.name)));
    let at_links = network
        .links
        .iter()
        .flat_map(|link| link.meters.iter().map(move |meter| (&meter.profile, ("link", &*link.name))));
    own.chain(shared).chain(at_links).map(|(meter, place)| {
        let (name, batched) = (meter.name(), meter.batched());
        UsedBlock { role: "meter", name, batched, place }
    })
}

fn applications(network: &Network) -> impl Iterator<Item = UsedBlock<'_>> {
    network.applications.iter().map(|ApplicationSpec { name, params, .. }| UsedBlock {
        role: "application",
        name: params.name(),
        batched: params.batched(),
        place: ("group", name),
    })
}

impl UsedBlock<'_> {
    fn check(self) -> Result<(), Refusal> {
        let Self { role, name, batched, place: (kind, owner) } = self;
        if batched { Ok(()) } else { Err(Refusal::Block { role, name, place: format!("{kind} `{owner}`") }) }
    }
}

/// Checks that a user's commands take effect at other hosts after the look-ahead at the earliest.
fn check_applications(network: &Network, routes: &[Routes]) -> Result<(), Refusal> {
    for spec in network.applications.iter().filter(|spec| is_driven(spec)) {
        let connections = spec.users.iter().flatten();
        let joins = |flow: usize| {
            [routes[flow].data, routes[flow].acks].iter().all(|route| route.first_link.is_some())
        };
        if !connections.flat_map(|&connection| ends(connection)).all(|(flow, _)| joins(flow)) {
            return Err(Refusal::Application { group: spec.name.clone() });
        }
    }
    Ok(())
}

/// Returns the least time in which a packet passes a link (transmission and propagation), or in which a
/// meter's feedback reaches its sender. Where flows that come over several links share a meter, links proceed
/// in lockstep.
fn lookahead(network: &Network, setup: &Setup) -> Result<Duration, Refusal> {
    let smallest = smallest(network, setup);
    let passage = |link: &LinkSpec| link.medium.least_passage((link.rate, link.delay), smallest);
    let passages = network.links.iter().map(|link| (passage(link), link));
    let pass = match passages.min_by_key(|&(pass, _)| pass) {
        None => LOCKSTEP,
        Some((pass, link)) if pass.is_zero() => return Err(Refusal::NoLookahead { link: link.name.clone() }),
        Some((pass, _)) => pass,
    };
    if shares_meter_across_links(network, &setup.routes) {
        return Ok(pass.min(LOCKSTEP));
    }
    let feedback = network.flows.iter().filter_map(|flow| flow.out_feedback).filter(|delay| !delay.is_zero());
    Ok(feedback.fold(pass, Duration::min))
}

/// Returns the size of the smallest packet.
fn smallest(network: &Network, setup: &Setup) -> Bytes {
    let smallest = setup.flows.iter().zip(&network.flows).map(|(flow, spec)| match &spec.population {
        None => flow.smallest_packet(),
        Some(workload) => flow.smallest_packet().min(workload.headers + 1), // The last packet of a flow.
    });
    let smallest = smallest.min().unwrap_or(0).min(if sends_datagrams(network) { 1 } else { u16::MAX });
    Bytes::new(u64::from(smallest))
}

/// Returns whether users send datagrams, of any size.
fn sends_datagrams(network: &Network) -> bool {
    network.applications.iter().any(|spec| matches!(spec.params.carrier(), Carrier::Datagrams { .. }))
}

/// Returns whether flows that come over different first links share a meter.
fn shares_meter_across_links(network: &Network, routes: &[Routes]) -> bool {
    let mut leads_to = vec![None; network.shared_meters.len()];
    network.flows.iter().zip(routes).any(|(spec, routes)| {
        let Marking::Edge(shared) = spec.marking else { return false };
        let before = leads_to[shared];
        leads_to[shared] = routes.data.first_link;
        before.is_some() && before != routes.data.first_link
    })
}

/// Where links must proceed in lockstep, they look ahead by no more than this.
const LOCKSTEP: Duration = Duration::from_nanos(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{FlowSpec, LinkSpec, NodeId, SharedMeter, TransportSpec};
    use crate::watch::Watch;
    use perhop_core::{Color, Dscp, Ecn, Instant};

    /// Two flows over a link each, of the rates and delays given.
    fn network(links: [(&str, &str); 2]) -> Network {
        let ends = [(0, 2), (1, 2)];
        let link = |((rate, delay), (from, to)): ((&str, &str), (u32, u32))| LinkSpec {
            name: format!("from {from}"),
            from: NodeId(from),
            to: NodeId(to),
            rate: rate.parse().unwrap(),
            delay: delay.parse().unwrap(),
            queue: None,
            meters: Vec::new(),
            medium: perhop_core::medium::Medium::default(),
        };
        let udp = r#"{"udp": "cbr", "rate": "1Mbps", "packet": "1000B"}"#;
        let flow = |(from, to): (u32, u32)| FlowSpec {
            name: format!("from {from}"),
            from: NodeId(from),
            to: NodeId(to),
            path: None,
            access: None,
            egress: None,
            dispatch_jitter: None,
            transport: TransportSpec::Udp(serde_json::from_str(udp).unwrap()),
            marking: Marking::None,
            color: Color::Yellow,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotCapable,
            service: None,
            reserved: None,
            tcp_ecn: crate::transport::tcp::TcpEcn::Off,
            play_out: None,
            out_feedback: None,
            start: (Instant::ZERO, Instant::ZERO),
            stop: None,
            volume: None,
            population: None,
        };
        Network {
            nodes: 3,
            links: links.into_iter().zip(ends).map(link).collect(),
            flows: ends.into_iter().map(flow).collect(),
            ..Network::new(Duration::from_secs(1))
        }
    }

    fn lookahead_of(network: &Network) -> Result<Duration, Refusal> {
        let setup = Setup::new(network, 1, &Watch::default()).unwrap();
        Accepted::of(network, &setup).map(|accepted| accepted.lookahead)
    }

    #[test]
    fn the_look_ahead_is_the_least_time_in_which_a_packet_passes_a_link() {
        // 1000 bytes at 8 Mbit/s take 1 ms.
        let mut network = network([("8Mbps", "3ms"), ("1Mbps", "1ms")]);
        assert_eq!(lookahead_of(&network), Ok(Duration::from_millis(4)));
        network.flows[0].out_feedback = Some(Duration::from_millis(2));
        assert_eq!(lookahead_of(&network), Ok(Duration::from_millis(2)));
        network.flows[0].out_feedback = Some(Duration::ZERO);
        assert_eq!(lookahead_of(&network), Ok(Duration::from_millis(4)), "it is part of the same event");
    }

    #[test]
    fn links_whose_flows_share_a_meter_proceed_in_lockstep() {
        let mut network = network([("8Mbps", "3ms"), ("1Mbps", "1ms")]);
        let params = r#"{"marker": "token-bucket", "rate": "1Mbps", "burst": "9kB"}"#;
        let params = serde_json::from_str(params).unwrap();
        network.shared_meters = vec![SharedMeter { name: "shared".into(), params }];
        network.flows[0].marking = Marking::Edge(0);
        assert_eq!(lookahead_of(&network), Ok(Duration::from_millis(4)));
        network.flows[1].marking = Marking::Edge(0);
        assert_eq!(lookahead_of(&network), Ok(LOCKSTEP));
    }

    #[test]
    fn a_link_that_takes_no_time_is_refused() {
        let refused = lookahead_of(&network([("8Mbps", "3ms"), ("9000Gbps", "0s")])).unwrap_err();
        assert_eq!(refused, Refusal::NoLookahead { link: "from 1".into() });
        assert!(refused.to_string().starts_with("link `from 1` leaves no look-ahead"));
        assert_eq!(
            lookahead_of(&network([("8Mbps", "3ms"), ("9000Gbps", "1ns")])),
            Ok(Duration::from_nanos(1))
        );
    }

    #[test]
    fn every_block_of_a_network_is_checked() {
        let mut network = network([("8Mbps", "3ms"), ("1Mbps", "1ms")]);
        let codel = r#"{"scheduler": "fifo", "rule": {"aqm": "codel", "limit": "9p"}}"#;
        network.links[1].queue = Some(serde_json::from_str(codel).unwrap());
        let bucket = r#"{"marker": "token-bucket", "rate": "1Mbps", "burst": "9kB"}"#;
        network.flows[0].marking = Marking::Host(serde_json::from_str(bucket).unwrap());
        network.flows[1].marking = Marking::Edge(0);
        let tsw = serde_json::from_str(r#"{"marker": "tsw", "rate": "1Mbps"}"#).unwrap();
        network.shared_meters = vec![SharedMeter { name: "shared".into(), params: tsw }];
        let found: Vec<_> = queue_blocks(&network)
            .chain(meters(&network))
            .map(|block| (block.role, block.name, block.place, block.batched))
            .collect();
        let expected = [
            ("scheduler", "fifo", ("link", "from 1"), true),
            ("AQM", "codel", ("link", "from 1"), true),
            ("meter", "token-bucket", ("flow", "from 0"), true),
            ("meter", "tsw", ("profile", "shared"), true),
        ];
        assert_eq!(found, expected);
        assert_eq!(check_blocks(&network), Ok(()));
    }

    #[test]
    fn users_are_accepted_but_for_those_in_python() {
        let mut network = network([("8Mbps", "3ms"), ("1Mbps", "1ms")]);
        let mut add = |name: &str, table: &str| {
            let params = serde_json::from_str(table).unwrap();
            let start = (Instant::ZERO, Instant::ZERO);
            network.applications.push(ApplicationSpec {
                name: name.into(),
                params,
                start,
                users: Vec::new(),
            });
            lookahead_of(&network)
        };
        assert_eq!(add("office", r#"{"model": "web"}"#), Ok(Duration::from_millis(4)));
        // Datagrams of any size: a byte takes 8 us over the second link.
        assert_eq!(add("players", r#"{"model": "game"}"#), Ok(Duration::from_nanos(1_008_000)));
        assert_eq!(
            add("mine", r#"{"model": "python", "class": "users:Mine"}"#).unwrap_err().to_string(),
            "application `python` of group `mine` does not declare that it can be batched"
        );
    }

    #[test]
    fn a_block_that_does_not_declare_it_is_refused_by_name_and_place() {
        let blue = UsedBlock { role: "AQM", name: "blue", batched: false, place: ("link", "uplink") };
        assert_eq!(
            blue.check().unwrap_err().to_string(),
            "AQM `blue` of link `uplink` does not declare that it can be batched"
        );
    }
}
