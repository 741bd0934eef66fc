//! Clear ways: what leaves a bottleneck passes all that lies between it and its sender without ever waiting.
//!
//! Packets leave a link at least as far apart as the later one takes to send. Where no wire and no link behind it takes longer for
//! a packet or for its answer, and nobody else uses them, none finds another before it: so each reaches its receiver, and its
//! answer the sender, a fixed time after it left. The simulator's fast path then needs neither queues nor order there.

use std::num::NonZeroU32;

use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Bytes, Duration, Instant};

use crate::network::{AccessSpec, FlowSpec, Network};

/// From the end of the last link of a flow's data to its receiver, and with the answer back to the sender, in nanoseconds: a way
/// of more than four seconds is not held to be clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClearWay {
    to_receiver: u32,
    to_sender: NonZeroU32,
}

impl ClearWay {
    /// When a packet that left the link at `at` reaches its receiver.
    #[inline]
    pub(crate) fn at_receiver(self, at: Instant) -> Instant {
        at.later(Duration::from_nanos(u64::from(self.to_receiver)))
    }

    /// When its answer reaches the sender.
    #[inline]
    pub(crate) fn at_sender(self, at: Instant) -> Instant {
        at.later(Duration::from_nanos(u64::from(self.to_sender.get())))
    }
}

/// How long a packet takes over a wire, and how long until the next one can be sent.
#[derive(Clone, Copy, Debug)]
struct Passage {
    whole: Duration,
    busy: Duration,
}

impl Passage {
    /// `None`, if that is no whole number of nanoseconds and so not always the same.
    fn over(rate: Bitrate, delay: Duration, size: u16) -> Option<Self> {
        let bits = u128::from(size) * 8_000_000_000;
        let rate = u128::from(rate.as_bps());
        let busy = Duration::from_nanos((bits / rate).try_into().ok()?);
        bits.is_multiple_of(rate).then_some(Self { whole: busy + delay, busy })
    }

    fn over_access(access: Option<&AccessSpec>, size: u16) -> Option<Self> {
        let none = Self { whole: Duration::ZERO, busy: Duration::ZERO };
        access.map_or(Some(none), |access| Self::over(access.rate, access.delay, size))
    }
}

/// A link back, and those whose ways over it are clear, each flow with its way: as soon as those that open a connection have
/// [opened](crate::flow::Flow::is_open) it, since a packet that does is smaller than data and so comes sooner, and as soon as
/// nobody waits behind such a packet.
#[derive(Clone, Debug)]
pub(crate) struct Clear {
    pub(crate) link: usize,
    pub(crate) ways: Vec<(usize, ClearWay)>,
    pub(crate) opening: Vec<usize>,
    /// The link that all their data leaves last, and how far apart.
    pub(crate) bottleneck: usize,
    pub(crate) apart: Duration,
    /// From there to where they come to the wire to the receiver, the wire from it, the link back, and the wire to the sender.
    pub(crate) before: [Duration; 4],
}

/// Where ways are clear.
pub(crate) fn clear_ways(network: &Network) -> Vec<Clear> {
    let route = |flow, answers| network.route_of(flow, answers).unwrap_or_default();
    let routes: Vec<_> = network.flows.iter().map(|flow| (route(flow, false), route(flow, true))).collect();
    (0..network.links.len()).filter_map(|link| clear_ways_over(network, &routes, link)).collect()
}

fn clear_ways_over(network: &Network, routes: &[(Vec<usize>, Vec<usize>)], link: usize) -> Option<Clear> {
    let users = network.flows.iter().zip(routes).enumerate().filter(|(_, (flow, (data, answers)))| {
        data.contains(&link) || (flow.transport.is_answered() && answers.contains(&link))
    });
    let users: Vec<_> = users.collect();
    let (one, (data, _)) = users.first()?.1;
    let bottleneck = *data.last()?;
    let (size, answer_size) = one.transport.packet_sizes();
    let apart = network.links[bottleneck].rate.time_of(Bytes::new(u64::from(size)));
    let back = &network.links[link];
    let passages = [
        Passage::over_access(one.egress.as_ref(), size)?,
        Passage::over_access(one.egress.as_ref(), answer_size)?,
        Passage::over(back.rate, back.delay, answer_size)?,
    ];
    let [to_receiver, from_receiver, over_link] = passages.map(|passage| passage.whole);
    let to_link = to_receiver + from_receiver;
    let before = [Duration::ZERO, to_receiver, to_link, to_link + over_link];
    if back.queue.is_some() || passages.iter().any(|passage| passage.busy > apart) {
        return None;
    }
    let ways = users.iter().map(|&(number, (flow, (data, answers)))| {
        let alike = flow.egress == one.egress && flow.transport.packet_sizes() == (size, answer_size);
        let only_back = *answers == [link] && !data.contains(&link) && data.last() == Some(&bottleneck);
        let to_sender = Passage::over_access(flow.access.as_ref(), answer_size)?;
        let is_clear = alike && only_back && to_sender.busy <= apart && may_be_clear(network, flow, data);
        let fits = |span: Duration| u32::try_from(span.as_nanos()).ok();
        let way = ClearWay {
            to_receiver: fits(to_receiver)?,
            to_sender: NonZeroU32::new(fits(before[3] + to_sender.whole)?)?,
        };
        is_clear.then_some((number, way))
    });
    let ways: Vec<_> = ways.collect::<Option<_>>()?;
    let numbers = ways.iter().map(|&(flow, _)| flow);
    // Who begins after the end opens nothing.
    let end = Instant::ZERO + network.duration;
    let opens = |flow: &FlowSpec| flow.transport.opens() && flow.start.0 <= end;
    let opening = numbers.filter(|&flow| opens(&network.flows[flow])).collect();
    Some(Clear { link, ways, opening, bottleneck, apart, before })
}

/// Nothing in the flow's nature keeps its way from being clear; `route` is that of its data.
fn may_be_clear(network: &Network, flow: &FlowSpec, route: &[usize]) -> bool {
    let controlled = flow.path.is_some_and(|path| network.paths[path].control.is_some());
    // What a connection opens with must have passed before its data.
    let keeps_order =
        |&link: &usize| matches!(network.links[link].queue, None | Some(SchedulerParams::Fifo(_)));
    let in_order = !flow.transport.opens() || route.iter().all(keeps_order);
    !controlled && flow.transport.answers_at_once() && in_order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{LinkSpec, Marking, NodeId, TransportSpec};
    use perhop_core::{Color, Dscp, Ecn};

    /// Flows of these transports over 8 Mbit/s and back, between hosts at 80 Mbit/s; a packet of 1000 bytes takes 1 ms and 100 us.
    fn network(transports: &[&str]) -> Network {
        let link = |from: u32, queue: Option<&str>| LinkSpec {
            name: from.to_string(),
            from: NodeId(from),
            to: NodeId(1 - from),
            rate: "8Mbps".parse().unwrap(),
            delay: "20ms".parse().unwrap(),
            queue: queue.map(|queue| serde_json::from_str(queue).unwrap()),
        };
        let access = AccessSpec { rate: "80Mbps".parse().unwrap(), delay: "2ms".parse().unwrap() };
        let flow = |transport: &&str| FlowSpec {
            name: "flow".into(),
            from: NodeId(0),
            to: NodeId(1),
            path: None,
            access: Some(access.clone()),
            egress: Some(access.clone()),
            transport: TransportSpec::Tcp(serde_json::from_str(transport).unwrap()),
            marking: Marking::None,
            color: Color::Yellow,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotCapable,
            service: None,
            reserved: None,
            tcp_ecn: crate::transport::tcp::TcpEcn::Off,
            out_feedback: None,
            start: (Instant::ZERO, Instant::ZERO),
            stop: None,
            volume: None,
        };
        let queue = r#"{"scheduler": "fifo", "rule": {"aqm": "drop-tail", "limit": "9p"}}"#;
        Network {
            nodes: 2,
            links: vec![link(0, Some(queue)), link(1, None)],
            flows: transports.iter().map(flow).collect(),
            ..Network::new(Duration::from_secs(1))
        }
    }

    const RENO: &str = r#"{"tcp": "reno", "packet": "1000B", "ack": "40B"}"#;

    #[test]
    fn a_way_takes_all_wires_and_the_link_back() {
        let [clear] = &clear_ways(&network(&[RENO, RENO]))[..] else { panic!("one link back") };
        assert_eq!((clear.link, clear.opening.len(), clear.ways.len()), (1, 0, 2));
        let (flow, way) = clear.ways[1];
        let at = Instant::from_nanos(7);
        // 100 us and 2 ms to the receiver; then three wires of 4, 40 and 4 us and delays of 2, 20 and 2 ms.
        assert_eq!((flow, way.at_receiver(at).as_nanos()), (1, 7 + 2_100_000));
        assert_eq!(way.at_sender(at).as_nanos(), 7 + 2_100_000 + 24_048_000);
    }

    #[test]
    fn connections_that_open_must_have_opened() {
        let opens = RENO.replace("\"ack\"", "\"handshake\": true, \"ack\"");
        let clear = clear_ways(&network(&[RENO, &opens]));
        assert_eq!(clear[0].opening, [1]);
        let mut network = network(&[RENO, &opens]);
        let priority = r#"{"scheduler": "edf", "rule": {"aqm": "drop-tail", "limit": "9p"}}"#;
        network.links[0].queue = Some(serde_json::from_str(priority).unwrap());
        assert!(clear_ways(&network).is_empty(), "the opening may be overtaken");
        // So it may on its way to the bottleneck.
        network.nodes = 3;
        network
            .links
            .insert(1, LinkSpec { from: NodeId(1), to: NodeId(2), queue: None, ..network.links[0].clone() });
        network.links[2].from = NodeId(2);
        network.links[2].to = NodeId(0);
        network.flows.iter_mut().for_each(|flow| flow.to = NodeId(2));
        assert!(clear_ways(&network).is_empty());
        network.links[0].queue = None;
        assert_eq!(clear_ways(&network)[0].bottleneck, 1);
    }

    #[test]
    fn what_may_have_to_wait_is_not_clear() {
        let none = |change: &dyn Fn(&mut Network)| {
            let mut network = network(&[RENO, RENO]);
            change(&mut network);
            assert!(clear_ways(&network).is_empty());
        };
        let rate = |text: &str| text.parse().unwrap();
        let rate_of =
            |access: &mut Option<AccessSpec>, text: &str| access.as_mut().unwrap().rate = rate(text);
        none(&|network| network.flows.iter_mut().for_each(|flow| rate_of(&mut flow.egress, "7Mbps")));
        none(&|network| rate_of(&mut network.flows[1].egress, "81Mbps"));
        none(&|network| rate_of(&mut network.flows[1].access, "300kbps"));
        none(&|network| rate_of(&mut network.flows[1].access, "7Gbps")); // no whole number of nanoseconds
        none(&|network| network.links[1].rate = rate("310kbps"));
        none(&|network| network.links[1].queue = network.links[0].queue.clone());
        none(&|network| {
            let slow = RENO.replace("\"ack\"", "\"delayed-ack\": \"40ms\", \"ack\"");
            network.flows[0].transport = TransportSpec::Tcp(serde_json::from_str(&slow).unwrap());
        });
        none(&|network| {
            let small = RENO.replace("1000B", "999B");
            network.flows[0].transport = TransportSpec::Tcp(serde_json::from_str(&small).unwrap());
        });
        // Data of another flow on the link back.
        none(&|network| (network.flows[1].from, network.flows[1].to) = (NodeId(1), NodeId(0)));
    }
}
