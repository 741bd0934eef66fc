//! Return paths of fixed delay: behind a bottleneck, neither packets nor their ACKs queue any more.
//!
//! Where all flows over a link back acknowledge at once and have equal hosts, a packet goes from the
//! bottleneck to its ACK's arrival in one step, without a queue: so do the packets of the first rows of
//! docs/project/benchmarks.md (25.6 ns each at 40 flows).
//!
//! Packets leave a link at intervals of at least the later one's transmission time. If no wire and no link
//! behind it takes longer for a packet or for its ACK, and no other packets use them, no packet finds another
//! before it. So each reaches its receiver, and its ACK the sender, a fixed time after it left the
//! bottleneck. The engine then needs neither queues nor order there.

use perhop_core::{Bitrate, Bytes, Duration, Instant};

use super::flow::FixedDelay;
use super::link::Link;
use super::traffic::Traffic;
use crate::flow::Flow;
use crate::network::{AccessSpec, FlowSpec, Network};
use crate::packet::SimPacket;
use crate::routing::Routes;
use crate::transport::Source;

/// The time that a packet takes over a wire, and the time for which it occupies the wire.
#[derive(Clone, Copy, Debug)]
struct Passage {
    whole: Duration,
    busy: Duration,
}

impl Passage {
    /// The passage over a wire; `None` if it takes no whole number of nanoseconds, and so varies.
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

/// A link back that fixed delays may replace, and the delays of the flows over it. They hold as soon as the
/// flows that open a connection have opened it, since the packets that do are smaller than data and so come
/// sooner, and as soon as no packet waits behind such a packet.
#[derive(Clone, Debug)]
pub(super) struct ReturnPath {
    link: usize,
    delays: Vec<(usize, FixedDelay)>,
    opening: Vec<Opening>,
    /// The link that all their data leaves last, and the least interval between two packets.
    bottleneck: usize,
    interval: Duration,
    /// The delays from there to the wire to the receiver, the wire from it, the link back, and the wire to
    /// the sender.
    before: [Duration; 4],
}

/// A flow that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Opening {
    flow: usize,
    /// Data may overtake the packet that opens it, if that is sent again: it may be in transit while the
    /// connection is open.
    may_be_overtaken: bool,
}

/// The return paths of a run whose delays may still become fixed.
#[derive(Clone, Debug)]
pub(super) struct ReturnPaths {
    pub(super) paths: Vec<ReturnPath>,
    /// The number of handled events at which they are checked next.
    pub(super) check_at: u64,
}

impl ReturnPaths {
    /// The return paths of a whole network; a part has none, since packets may come from anywhere.
    pub(super) fn of(network: &Network, is_whole: bool) -> Self {
        Self { paths: if is_whole { return_paths(network) } else { Vec::new() }, check_at: 0 }
    }

    /// Starts to use the return paths whose delays are fixed by now, when so many events have been handled.
    /// Returns how often links had to do something for it, and how many packets came to them.
    #[cold]
    pub(super) fn fix(&mut self, links: &mut [Link], traffic: &mut Traffic, handled: u64) -> (u64, u64) {
        let beyond = traffic.hosts.recorder.times.end.just_after();
        let (mut small, mut counts) = (None, (0, 0));
        for place in (0..self.paths.len()).rev() {
            let ReturnPath { link, opening, .. } = &mut self.paths[place];
            // A connection is open as soon as data has come to its receiver: its sender opens it no more.
            let is_open = |of: &Opening| traffic.hosts.flows[of.flow].base.sender.acknowledged() > 0;
            if !opening.iter().all(is_open) {
                continue;
            }
            opening.retain(|opening| opening.may_be_overtaken);
            if !opening.is_empty() {
                let small = small.get_or_insert_with(|| flows_with_small_packets(traffic, links));
                opening.retain(|opening| small[opening.flow]);
            }
            if !opening.is_empty() {
                continue;
            }
            // The packets on their way to the link come before all later ones.
            let link = *link;
            let (happened, came) = links[link].run(link, beyond, traffic);
            counts = (counts.0 + happened, counts.1 + came);
            traffic.pass_all_on();
            if self.paths[place].is_fixed(links, traffic) {
                for (flow, delay) in self.paths.swap_remove(place).delays {
                    traffic.hosts.flows[flow].fixed_delay = Some(delay);
                }
            }
        }
        let handled = handled + counts.0;
        self.check_at = if self.paths.is_empty() { u64::MAX } else { handled + CHECK_INTERVAL };
        counts
    }
}

impl ReturnPath {
    /// Returns whether all packets that leave the bottleneck from now on find every wire free.
    fn is_fixed(&self, links: &[Link], traffic: &Traffic) -> bool {
        let Link { delay, .. } = links[self.bottleneck];
        let last = links[self.bottleneck].busy_until() + delay;
        let [to_receiver, from_receiver, back, to_sender] =
            self.before.map(|before| last + self.interval + before);
        links[self.link].busy_until() <= back
            && self.delays.iter().all(|&(flow, _)| {
                let Flow { sending, receiving, .. } = &traffic.hosts.flows[flow].base;
                receiving.inward.busy_until() <= to_receiver
                    && receiving.outward.busy_until() <= from_receiver
                    && sending.inward.busy_until() <= to_sender
            })
    }
}

/// Returns for each flow whether packets in transit to the receiver are smaller than its full ones.
#[cold]
fn flows_with_small_packets(traffic: &Traffic, links: &[Link]) -> Vec<bool> {
    let flows = &traffic.hosts.flows;
    let mut found = vec![false; flows.len()];
    let mut note = |packet: &SimPacket| {
        let flow = packet.flow();
        found[flow] |= !packet.is_ack() && packet.size() < flows[flow].base.data_size();
    };
    traffic.hosts.inputs.packets().for_each(&mut note);
    for link in links {
        link.inspect(&mut note);
    }
    found
}

/// Handled events between two checks whether the delays of return paths are fixed.
const CHECK_INTERVAL: u64 = 4096;

/// Returns the return paths of a network whose delays may become fixed.
fn return_paths(network: &Network) -> Vec<ReturnPath> {
    // The senders of users' flows keep to the clock.
    if network.links.iter().all(|link| link.queue.is_some()) || !network.applications.is_empty() {
        return Vec::new();
    }
    let routes = network.routes();
    let users = users(network, &routes);
    let of_links = users.iter().enumerate();
    of_links.filter_map(|(link, users)| return_path_over(network, &routes, link, users)).collect()
}

/// Returns the flows whose packets pass each link that has no queue; those with one are no return paths.
fn users(network: &Network, routes: &Routes) -> Vec<Vec<usize>> {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); network.links.len()];
    for (number, flow) in network.flows.iter().enumerate() {
        let acks = if flow.transport.is_acknowledged() { routes.links(number, true) } else { &[] };
        for &link in routes.links(number, false).iter().chain(acks) {
            let link = link as usize;
            if network.links[link].queue.is_none() && users[link].last() != Some(&number) {
                users[link].push(number);
            }
        }
    }
    users
}

fn return_path_over(network: &Network, routes: &Routes, link: usize, users: &[usize]) -> Option<ReturnPath> {
    let one = &network.flows[*users.first()?];
    let bottleneck = *routes.links(users[0], false).last()? as usize;
    let (size, ack_size) = one.transport.packet_sizes();
    let interval = network.links[bottleneck].rate.time_of(Bytes::new(u64::from(size)));
    let back = &network.links[link];
    let passages = [
        Passage::over_access(one.egress.as_ref(), size)?,
        Passage::over_access(one.egress.as_ref(), ack_size)?,
        Passage::over(back.rate, back.delay, ack_size)?,
    ];
    let [to_receiver, from_receiver, over_link] = passages.map(|passage| passage.whole);
    let to_link = to_receiver + from_receiver;
    let before = [Duration::ZERO, to_receiver, to_link, to_link + over_link];
    let is_steady = back.medium.is_constant() && network.links[bottleneck].medium.keeps_intervals();
    if back.queue.is_some() || !is_steady || passages.iter().any(|passage| passage.busy > interval) {
        return None;
    }
    let delays = users.iter().map(|&number| {
        let (flow, data, acks) =
            (&network.flows[number], routes.links(number, false), routes.links(number, true));
        let back = link as u32;
        let alike = flow.egress == one.egress && flow.transport.packet_sizes() == (size, ack_size);
        let only_back = *acks == [back] && !data.contains(&back) && data.last() == Some(&(bottleneck as u32));
        let to_sender = Passage::over_access(flow.access.as_ref(), ack_size)?;
        let is_fixed = alike && only_back && to_sender.busy <= interval && may_be_fixed(network, flow);
        let delay = FixedDelay::new(to_receiver, before[3] + to_sender.whole)?;
        is_fixed.then_some((number, delay))
    });
    let delays: Vec<_> = delays.collect::<Option<_>>()?;
    let numbers = delays.iter().map(|&(flow, _)| flow);
    // A flow that begins after the end of the run opens nothing.
    let end = Instant::ZERO + network.duration;
    let opens = |flow: &FlowSpec| flow.transport.opens() && flow.start.0 <= end;
    // Behind a queue that reorders packets, an opening that was sent twice may come after data.
    let keeps_order = |&link: &u32| {
        let link = &network.links[link as usize];
        link.queue.as_ref().is_none_or(|queue| queue.only_aqm().is_some()) && !link.medium.reorders()
    };
    let opening = numbers
        .filter(|&flow| opens(&network.flows[flow]))
        .map(|flow| Opening { flow, may_be_overtaken: !routes.links(flow, false).iter().all(keeps_order) });
    let opening = opening.collect();
    Some(ReturnPath { link, delays, opening, bottleneck, interval, before })
}

/// Returns whether the flow's transport and path allow a fixed delay. Flows that come and go have last
/// packets of any size.
fn may_be_fixed(network: &Network, flow: &FlowSpec) -> bool {
    let controlled = flow.path.is_some_and(|path| network.paths[path].control.is_some());
    !controlled
        && flow.population.is_none()
        && flow.dispatch_jitter.is_none()
        && flow.transport.acknowledges_at_once()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{LinkSpec, Marking, NodeId};
    use crate::transport::tcp::TcpParams;
    use perhop_core::{Color, Dscp, Ecn};

    /// Flows of these transports over 8 Mbit/s and back, between hosts at 80 Mbit/s; a packet of 1000 bytes
    /// takes 1 ms and 100 us.
    fn network(transports: &[&str]) -> Network {
        let link = |from: u32, queue: Option<&str>| LinkSpec {
            name: from.to_string(),
            from: NodeId(from),
            to: NodeId(1 - from),
            rate: "8Mbps".parse().unwrap(),
            delay: "20ms".parse().unwrap(),
            queue: queue.map(|queue| serde_json::from_str(queue).unwrap()),
            meters: Vec::new(),
            medium: perhop_core::medium::Medium::default(),
        };
        let access = AccessSpec { rate: "80Mbps".parse().unwrap(), delay: "2ms".parse().unwrap() };
        let flow = |transport: &&str| FlowSpec {
            name: "flow".into(),
            from: NodeId(0),
            to: NodeId(1),
            path: None,
            access: Some(access.clone()),
            egress: Some(access.clone()),
            dispatch_jitter: None,
            transport: serde_json::from_str::<TcpParams>(transport).unwrap().into(),
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
    fn a_fixed_delay_has_all_wires_and_the_link_back() {
        let [path] = &return_paths(&network(&[RENO, RENO]))[..] else { panic!("one link back") };
        assert_eq!((path.link, path.opening.len(), path.delays.len()), (1, 0, 2));
        let (flow, delay) = path.delays[1];
        let at = Instant::from_nanos(7);
        // 100 us and 2 ms to the receiver; then three wires of 4, 40 and 4 us and delays of 2, 20 and 2 ms.
        assert_eq!((flow, delay.at_receiver(at).as_nanos()), (1, 7 + 2_100_000));
        assert_eq!(delay.at_sender(at).as_nanos(), 7 + 2_100_000 + 24_048_000);
    }

    #[test]
    fn connections_that_open_must_have_opened() {
        let opens = RENO.replace("\"ack\"", "\"handshake\": true, \"ack\"");
        let paths = return_paths(&network(&[RENO, &opens]));
        assert_eq!(paths[0].opening, [Opening { flow: 1, may_be_overtaken: false }]);
        let mut network = network(&[RENO, &opens]);
        let priority = r#"{"scheduler": "edf", "rule": {"aqm": "drop-tail", "limit": "9p"}}"#;
        network.links[0].queue = Some(serde_json::from_str(priority).unwrap());
        assert_eq!(return_paths(&network)[0].opening, [Opening { flow: 1, may_be_overtaken: true }]);
        // So it may before the bottleneck.
        network.nodes = 3;
        network
            .links
            .insert(1, LinkSpec { from: NodeId(1), to: NodeId(2), queue: None, ..network.links[0].clone() });
        network.links[2].from = NodeId(2);
        network.links[2].to = NodeId(0);
        network.flows.iter_mut().for_each(|flow| flow.to = NodeId(2));
        assert!(return_paths(&network)[0].opening[0].may_be_overtaken);
        network.links[0].queue = None;
        assert_eq!(return_paths(&network)[0].bottleneck, 1);
        assert!(!return_paths(&network)[0].opening[0].may_be_overtaken);
    }

    #[test]
    fn where_packets_may_queue_the_delay_is_not_fixed() {
        let none = |change: &dyn Fn(&mut Network)| {
            let mut network = network(&[RENO, RENO]);
            change(&mut network);
            assert!(return_paths(&network).is_empty());
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
            network.flows[0].transport = serde_json::from_str::<TcpParams>(&slow).unwrap().into();
        });
        none(&|network| {
            let small = RENO.replace("1000B", "999B");
            network.flows[0].transport = serde_json::from_str::<TcpParams>(&small).unwrap().into();
        });
        // Data of another flow on the link back.
        none(&|network| (network.flows[1].from, network.flows[1].to) = (NodeId(1), NodeId(0)));
    }
}
