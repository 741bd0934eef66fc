//! The network of a run: nodes, links, flows and their routes.

mod transport_spec;

use std::cmp::Ordering;
use std::sync::Arc;

use perhop_core::aqm::AqmParams;
use perhop_core::control::WindowControl;
use perhop_core::measure::RateHistory;
use perhop_core::meter::{AggregateMeter, ForeignMeterParams, MeterParams};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Bytes, Color, Dscp, Duration, Ecn, Instant, Rng};

use crate::application::{AnyUser, ApplicationParams, ForeignApplicationParams, Recorded};
use crate::outcome::{ApplicationOutcome, FlowRecord};
use crate::transport::tcp::TcpEcn;
use crate::transport::tcp::congestion::ForeignCongestionParams;
pub use crate::wire::AccessSpec;
use crate::workload::{Draws, Packets, Workload};
use perhop_core::medium::Medium;
pub use transport_spec::{InFlight, TransportSpec};

/// A router's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Everything that a run depends on, besides its seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// How long it runs: less than [`Duration::AGES`].
    pub duration: Duration,
    /// All statistics exclude this initial period; counters of the whole run are kept for conservation.
    pub warmup: Duration,
    /// The interval of the probes; `None` for never.
    pub probe_interval: Option<Duration>,
    /// Number of routers.
    pub nodes: u32,
    /// Directed links between routers.
    pub links: Vec<LinkSpec>,
    /// The numbers of the links whose results nobody asks for, in order: what waits there and what they drop
    /// counts for conservation alone. None by default.
    pub unreported: Vec<usize>,
    /// Meters that several flows share, each at the first router of its flows.
    pub shared_meters: Vec<SharedMeter>,
    /// Label-switched paths.
    pub paths: Vec<PathSpec>,
    /// Flows, in the order of their numbers.
    pub flows: Vec<FlowSpec>,
    /// Users of applications, in groups. Their connections are flows that send what the users grant.
    pub applications: Vec<ApplicationSpec>,
}

/// A group of users of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationSpec {
    /// The name of the group, which also names the random streams of its users.
    pub name: String,
    /// What each user does.
    pub params: ApplicationParams,
    /// Each user begins at a time drawn uniformly from this range.
    pub start: (Instant, Instant),
    /// The connections of each user.
    pub users: Vec<Vec<Connection>>,
}

impl ApplicationSpec {
    /// Returns the user of this number in a run with this seed, who has not begun, and when the user begins.
    pub fn user(&self, member: usize, seed: u64) -> (Instant, AnyUser) {
        let mut rng = Rng::stream(seed, &format!("applications/{}/{member}", self.name));
        let (first, last) = self.start;
        let begins = first + Duration::from_nanos(rng.up_to(last.since(first).as_nanos()));
        match &self.params {
            ApplicationParams::Foreign(params) => (begins, AnyUser::Foreign(params.user(member, rng))),
            params => (begins, params.user(rng)),
        }
    }

    /// Returns what the group measured.
    pub fn outcome(&self, recorded: Recorded) -> ApplicationOutcome {
        let Self { name, params, users, .. } = self;
        let measures = params.measures().iter().map(|measure| (measure.name, measure.value.of(&recorded)));
        ApplicationOutcome {
            name: name.clone(),
            model: params.name(),
            users: users.len() as u32,
            measures: measures.collect(),
            recorded,
        }
    }
}

/// A connection of a user: the numbers of its two flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// From the client to the server.
    pub request: usize,
    /// From the server to the client.
    pub response: usize,
}

/// A label-switched path: a route through certain routers, whatever the shortest one is. It leads from its
/// ingress to its egress; acknowledgements have their own route back.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSpec {
    /// The name of the path.
    pub name: String,
    /// The label that packets of the path carry, data and acknowledgements alike; 0 is no label.
    pub label: u32,
    /// The numbers of the path's links, in order.
    pub forward: Vec<usize>,
    /// The links of the route back.
    pub backward: Vec<usize>,
    /// How the windows of its flows steer markers and queues; they do not unless given.
    pub control: Option<WindowControl>,
}

/// A meter that several flows share.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedMeter {
    /// The name of the meter, which also names its random stream.
    pub name: String,
    /// The profile of all its flows together.
    pub params: MeterParams,
}

/// Who colors a flow's packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Marking {
    /// Nobody: they keep the flow's own color.
    #[default]
    None,
    /// A meter of its own, at the sending host.
    Host(MeterParams),
    /// A meter of its own, at the first router: the ingress of a path.
    Ingress(MeterParams),
    /// The shared meter of this number, at the first router.
    Edge(usize),
}

/// One direction of a link between routers.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// The name of the link, which also names its random stream.
    pub name: String,
    /// The router where the link begins.
    pub from: NodeId,
    /// The router where the link ends.
    pub to: NodeId,
    /// The rate of the link.
    pub rate: Bitrate,
    /// The propagation delay of the link.
    pub delay: Duration,
    /// The queue of the link; `None` for one without a limit that is not measured.
    pub queue: Option<SchedulerParams>,
    /// The meters that packets pass before the queue; none without a queue.
    pub meters: Vec<AggregateMeter>,
    /// How the link changes, and what it loses.
    pub medium: Medium,
}

impl LinkSpec {
    /// Returns the link's mean rate between two times, in bit/s: by its trace or its changes, zero in
    /// outages; its own rate where nothing is between them.
    pub fn mean_rate(&self, from: Instant, to: Instant) -> f64 {
        let mut rates = RateHistory::new(self.rate);
        self.medium.note_rates(&mut rates);
        let parts = match &self.medium.trace {
            None => rates.capacity(from, to),
            Some(trace) => rates.capacity_by(from, to, |from, to| trace.capacity(from, to)),
        };
        let nanos = u128::from(to.since(from).as_nanos());
        if nanos == 0 {
            return self.rate.as_bps() as f64;
        }
        (parts / nanos) as f64 + (parts % nanos) as f64 / nanos as f64
    }

    /// Returns a FIFO queue without a limit: the queue of a link without a `queue`, where it is measured or
    /// changes.
    pub fn unlimited() -> SchedulerParams {
        AqmParams::unlimited().into()
    }

    /// Returns the queue, if it has a limit or a rule: what a user gave the link.
    pub fn limited(&self) -> Option<&SchedulerParams> {
        self.queue.as_ref().filter(|queue| **queue != Self::unlimited())
    }
}

/// One flow: a host that sends, a host that receives.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// The name of the flow, which also names its random streams.
    pub name: String,
    /// The router of the sending host.
    pub from: NodeId,
    /// The router of the receiving host.
    pub to: NodeId,
    /// The number of the path that its packets follow, which leads from the one router to the other; `None`
    /// for a shortest one.
    pub path: Option<usize>,
    /// The private link of the sending host; `None` if it sits at the router.
    pub access: Option<AccessSpec>,
    /// The private link of the receiving host.
    pub egress: Option<AccessSpec>,
    /// Both hosts hand each packet to their link after a random time of at most this.
    pub dispatch_jitter: Option<Duration>,
    /// How it sends.
    pub transport: TransportSpec,
    /// The length of its receiver's play-out buffer (datagrams); `None` for none.
    pub play_out: Option<Duration>,
    /// Where its packets are metered and marked.
    pub marking: Marking,
    /// The color of its packets if no meter colors them.
    pub color: Color,
    /// The codepoint of its data packets if no meter colors them.
    pub dscp: Dscp,
    /// The ECN field with which datagrams are sent.
    pub ecn: Ecn,
    /// How TCP uses ECN: the ECN field of its packets follows from that.
    pub tcp_ecn: TcpEcn,
    /// The rate of its profile, which its packets carry; `None` for best effort.
    pub service: Option<Bitrate>,
    /// The flow's own part of that rate, which its sender may know: less, where flows share a profile.
    pub reserved: Option<Bitrate>,
    /// The delay of the marker's feedback to the sender about each OUT packet; `None` without feedback.
    pub out_feedback: Option<Duration>,
    /// The range of time from which the start of the flow is drawn uniformly.
    pub start: (Instant, Instant),
    /// The time from which on the flow has nothing more to send; `None` for the end of the run.
    pub stop: Option<Instant>,
    /// How much the flow has to send, in bytes on the wire with the headers of each packet
    /// ([`TransportSpec::on_wire`]); `None` for endless.
    pub volume: Option<Bytes>,
    /// The population that the flow represents: finite flows that are otherwise like it, and begin from its
    /// earliest start on until it stops. The flow's own volume is not used.
    pub population: Option<Box<Workload>>,
}

impl FlowSpec {
    /// Returns the flows of the population that the flow represents, in a run that ends then.
    pub(crate) fn draws(&self, workload: &Workload, seed: u64, end: Instant) -> Draws {
        let until = self.stop.map_or(end, |stop| stop.min(end));
        Draws::new(workload, &self.name, seed, self.start.0, until)
    }
}

/// A flow's endpoints are not connected, or not by its path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("flow {flow}: no path leads from node {} to node {}", .from.0, .to.0)]
pub struct NoRoute {
    /// The flow's number.
    pub flow: usize,
    /// Where it begins.
    pub from: NodeId,
    /// Where it should end.
    pub to: NodeId,
}

impl Network {
    /// Makes an empty network that runs for `duration`.
    pub fn new(duration: Duration) -> Self {
        Self { duration, ..Self::default() }
    }

    /// Returns the longest time from when a packet leaves a link, or its host, to when it or its
    /// acknowledgement comes to another link, without the times that it takes to be sent.
    pub(crate) fn longest_delay(&self) -> Duration {
        let hosts = self.flows.iter().flat_map(|flow| [&flow.access, &flow.egress]).flatten();
        let there_and_back = hosts.map(|host| host.delay.saturating_mul(2));
        self.links.iter().map(|link| link.delay).chain(there_and_back).max().unwrap_or(Duration::ZERO)
    }

    /// Returns the profile by which a flow's packets are metered.
    pub fn meter_of<'a>(&'a self, flow: &'a FlowSpec) -> Option<&'a MeterParams> {
        match &flow.marking {
            Marking::None => None,
            Marking::Host(params) | Marking::Ingress(params) => Some(params),
            Marking::Edge(number) => Some(&self.shared_meters[*number].params),
        }
    }

    /// Returns the meters implemented outside, each with its place in words. Flows of a group share a table.
    pub fn foreign_meters(&self) -> Vec<(String, &ForeignMeterParams)> {
        let of_flow = |flow: &FlowSpec| match &flow.marking {
            Marking::Host(_) => "its host".to_owned(),
            _ => "its first router".to_owned(),
        };
        let own = self.flows.iter().filter(|flow| !matches!(flow.marking, Marking::Edge(_)));
        let own = own.filter_map(|flow| Some((of_flow(flow), self.meter_of(flow)?)));
        let shared =
            self.shared_meters.iter().map(|meter| (format!("profile `{}`", meter.name), &meter.params));
        let at_links = self.links.iter().flat_map(|link| {
            let place = |meter: &AggregateMeter| format!("meter `{}` of link `{}`", meter.name, link.name);
            link.meters.iter().map(move |meter| (place(meter), &meter.profile))
        });
        let meters = own.chain(shared).chain(at_links);
        meters.filter_map(|(place, params)| Some((place, params.foreign()?))).collect()
    }

    /// Returns the congestion controls that are implemented outside, each with the name of its flow, to give
    /// each flow an implementation of its own.
    pub fn foreign_controls_mut(&mut self) -> impl Iterator<Item = (&str, &mut ForeignCongestionParams)> {
        self.flows.iter_mut().filter_map(|flow| match &mut flow.transport {
            TransportSpec::Tcp(params) if params.congestion.0.foreign().is_some() => {
                Some((&*flow.name, Arc::make_mut(params).congestion.0.foreign_mut()?))
            }
            _ => None,
        })
    }

    /// Returns the applications that are implemented outside, each with the name of its group.
    pub fn foreign_users(&self) -> impl Iterator<Item = (&str, &ForeignApplicationParams)> {
        self.applications.iter().filter_map(|spec| match &spec.params {
            ApplicationParams::Foreign(params) => Some((&*spec.name, params)),
            _ => None,
        })
    }

    /// Returns the classes of blocks that are implemented outside, each with its place in words, and whether
    /// it has its implementation.
    pub fn classes(&self) -> impl Iterator<Item = (String, &str, bool)> {
        let queues = self.links.iter().flat_map(|link| {
            let foreign = link.queue.iter().flat_map(SchedulerParams::foreign);
            foreign
                .map(|(_, aqm)| (format!("link `{}`", link.name), &*aqm.class, aqm.implementation.is_set()))
        });
        let meters = self.foreign_meters().into_iter();
        let meters = meters.map(|(place, meter)| (place, &*meter.class, meter.implementation.is_set()));
        let controls = self.flows.iter().filter_map(|flow| {
            let TransportSpec::Tcp(params) = &flow.transport else { return None };
            let control = params.congestion.0.foreign()?;
            Some((format!("flow `{}`", flow.name), &*control.class, control.implementation.is_set()))
        });
        let users = self.foreign_users().map(|(group, users)| {
            (format!("users of `{group}`"), &*users.class, users.implementation.is_set())
        });
        queues.chain(meters).chain(controls).chain(users)
    }

    /// Returns whether packets of a flow that passes these links may be policed.
    pub fn polices(&self, flow: &FlowSpec, links: &[usize]) -> bool {
        let at_links = links.iter().flat_map(|&link| &self.links[link].meters).map(|meter| &meter.profile);
        self.meter_of(flow).into_iter().chain(at_links).any(|profile| profile.actions().drop_any())
    }

    /// Returns the route of a flow's data or acknowledgements: its path, if any, else one of the fewest hops.
    pub fn route_of(&self, flow: &FlowSpec, acknowledges: bool) -> Option<Vec<usize>> {
        let (from, to) = if acknowledges { (flow.to, flow.from) } else { (flow.from, flow.to) };
        let Some(path) = flow.path else { return self.route(from, to) };
        let PathSpec { forward, backward, .. } = self.paths.get(path)?;
        let links = if acknowledges { backward } else { forward };
        let end = links.iter().try_fold(from, |at, &link| {
            let link = self.links.get(link)?;
            (link.from == at).then_some(link.to)
        });
        (end? == to).then(|| links.clone())
    }

    /// Returns whether a link has a queue that is measured, and results that are asked for.
    pub fn reports(&self, link: usize) -> bool {
        self.links[link].queue.is_some() && self.unreported.binary_search(&link).is_err()
    }

    /// Returns whether one of these links loses packets.
    pub fn loses(&self, links: &[usize]) -> bool {
        links.iter().any(|&link| self.links[link].medium.is_lossy())
    }

    /// Returns the least time that a flow's volume takes over these links, with all of its packets ready at
    /// its start and no other traffic: the propagation delay, the transmission of one packet at each hop, and
    /// the transmission of all others at the slowest hop. The private links of the hosts are hops. Links have
    /// the rates and delays with which they begin. `None` for a flow without a volume.
    pub fn idle_time(&self, flow: &FlowSpec, route: &[usize]) -> Option<Duration> {
        let packets = flow.transport.packets_of(flow.volume?);
        let size = Bytes::new(u64::from(flow.transport.packet_sizes().0));
        let hops = self.hops(flow, route);
        let first = hops.iter().fold(Duration::ZERO, |sum, &(rate, delay)| sum + delay + rate.time_of(size));
        let others = Bytes::new(packets.saturating_sub(1).saturating_mul(size.get()));
        let slowest = hops.iter().map(|&(rate, _)| rate).min();
        Some(slowest.map_or(first, |rate| first + rate.time_of(others)))
    }

    /// Returns when the first data of a flow can leave and arrive on these links at the earliest, `back`
    /// being those of its acknowledgements: behind the exchange that opens its connection, if there is one.
    /// Links have the rates and delays with which they begin.
    pub fn first_data(&self, flow: &FlowSpec, route: &[usize], back: &[usize]) -> FirstData {
        let (data, feedback) = flow.transport.packet_sizes();
        let time = |links: &[usize], size: u16| {
            let size = Bytes::new(size.into());
            let hops = self.hops(flow, links).into_iter();
            hops.fold(Duration::ZERO, |sum, (rate, delay)| sum + delay + rate.time_of(size))
        };
        let opens = flow.transport.opens();
        let leaves = if opens { time(route, feedback) + time(back, feedback) } else { Duration::ZERO };
        FirstData { leaves, arrives: leaves + time(route, data) }
    }

    /// Returns the flows that begin in a run with this seed of the population that a flow represents, in
    /// order, none completed: what a run records, before it knows how long they take. `None` for a flow that
    /// represents no population.
    pub fn flows_of(&self, spec: &FlowSpec, seed: u64) -> Option<impl Iterator<Item = FlowRecord> + use<>> {
        let workload = spec.population.as_ref()?;
        let (full, headers) = (spec.transport.packet_sizes().0, workload.headers);
        let path = self.idle_path(spec, &self.route_of(spec, false)?);
        let draws = spec.draws(workload, seed, Instant::ZERO + self.duration);
        Some(draws.map(move |arrival| FlowRecord {
            started: arrival.at,
            size: arrival.size,
            idle: path.time(Packets::of(arrival.size, full, headers)),
            completed: Instant::NEVER,
        }))
    }

    /// Returns the rates and delays of the links that a flow's data pass, in order, the hosts' included.
    fn hops(&self, flow: &FlowSpec, route: &[usize]) -> Vec<(Bitrate, Duration)> {
        let private = |access: &Option<AccessSpec>| access.as_ref().map(|access| (access.rate, access.delay));
        let shared = route.iter().map(|&link| (self.links[link].rate, self.links[link].delay));
        private(&flow.access).into_iter().chain(shared).chain(private(&flow.egress)).collect()
    }

    /// Returns the path of a flow over these links without other traffic.
    pub(crate) fn idle_path(&self, flow: &FlowSpec, route: &[usize]) -> IdlePath {
        let hops = self.hops(flow, route);
        let delay = hops.iter().fold(Duration::ZERO, |sum, &(_, delay)| sum + delay);
        IdlePath { delay, rates: hops.into_iter().map(|(rate, _)| rate).collect() }
    }

    /// Returns the link from one router straight to another, the first named where there are several.
    pub fn link_between(&self, from: NodeId, to: NodeId) -> Option<usize> {
        self.links.iter().position(|link| (link.from, link.to) == (from, to))
    }
}

/// The least times from a flow's start until its first data leave the sender and reach the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstData {
    leaves: Duration,
    arrives: Duration,
}

impl FirstData {
    /// Returns whether data of a flow that began then and sends until `stops` can arrive by `end`.
    pub fn can_arrive(self, started: Instant, stops: Instant, end: Instant) -> bool {
        stops.since(started) >= self.leaves && end.since(started) >= self.arrives
    }
}

/// A path without other traffic.
#[derive(Clone, Debug)]
pub(crate) struct IdlePath {
    delay: Duration,
    /// In the order in which data pass.
    rates: Vec<Bitrate>,
}

impl IdlePath {
    /// Returns the least time that packets take: the propagation delay, the transmission of all at the
    /// slowest hop, of the first packet at the hops before it, and of the last at those behind it.
    pub(crate) fn time(&self, packets: Packets) -> Duration {
        let Packets { all, first, last } = packets;
        let slowest = self.rates.iter().enumerate().min_by_key(|&(_, rate)| rate).map_or(0, |(hop, _)| hop);
        let times = self.rates.iter().enumerate().map(|(hop, rate)| match hop.cmp(&slowest) {
            Ordering::Less => rate.time_of(first),
            Ordering::Equal => rate.time_of(all),
            Ordering::Greater => rate.time_of(last),
        });
        times.fold(self.delay, |sum, time| sum + time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(nodes: u32, links: &[(u32, u32)]) -> Network {
        let link = |&(from, to): &(u32, u32)| LinkSpec {
            name: format!("{from}-{to}"),
            from: NodeId(from),
            to: NodeId(to),
            rate: "1Mbps".parse().unwrap(),
            delay: Duration::ZERO,
            queue: None,
            meters: Vec::new(),
            medium: perhop_core::medium::Medium::default(),
        };
        Network { nodes, links: links.iter().map(link).collect(), ..Network::new(Duration::from_secs(1)) }
    }

    #[test]
    fn idle_times_of_the_catalogue() {
        // 100 Mbit/s and a round trip of 20 ms; the last adds 40 bytes of headers to each of 69 packets of at
        // most 1500 bytes.
        let path = IdlePath { delay: "10ms".parse().unwrap(), rates: vec!["100Mbps".parse().unwrap()] };
        let time = |all, first, last| {
            let [all, first, last] = [all, first, last].map(Bytes::new);
            path.time(Packets { all, first, last })
        };
        let micros = [
            time(1000, 1000, 1000),
            time(100_000, 1500, 1000),
            time(10_000_000, 1500, 1000),
            time(102_760, 1500, 760),
        ];
        assert_eq!(micros.map(|time| time.as_nanos() / 100), [100_800, 180_000, 8_100_000, 182_208]);
    }

    #[test]
    fn idle_times_by_hand_over_three_hops() {
        // 2500 bytes as 1000, 1000 and 500: 1 ms and 0.1 ms before the slowest hop, 25 ms there, 2.5 ms
        // behind it.
        let rates = ["80Mbps", "8Mbps", "0.8Mbps", "1.6Mbps"].map(|rate| rate.parse().unwrap());
        let path = IdlePath { delay: "7ms".parse().unwrap(), rates: rates.to_vec() };
        let time = path.time(Packets::of(Bytes::new(2500), 1000, 0));
        assert_eq!(time, "35.6ms".parse().unwrap());
    }

    #[test]
    fn routes_are_shortest_and_ties_go_to_the_first_named() {
        let diamond = network(5, &[(0, 2), (0, 1), (1, 3), (2, 3), (3, 4), (0, 3)]);
        assert_eq!(diamond.route(NodeId(0), NodeId(4)), Some(vec![5, 4]));
        let tie = network(4, &[(0, 2), (0, 1), (1, 3), (2, 3)]);
        assert_eq!(tie.route(NodeId(0), NodeId(3)), Some(vec![0, 3]));
        assert_eq!(tie.route(NodeId(3), NodeId(0)), None);
        assert_eq!(tie.route(NodeId(1), NodeId(1)), Some(vec![]));
    }
}
