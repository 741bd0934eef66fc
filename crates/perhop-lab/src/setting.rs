//! A scenario as two hosts can run it: the kernel's settings for each flow, or why there are none.

use std::collections::BTreeMap;

use perhop_core::{Bitrate, Bytes, Dscp, Duration, Ecn, Instant, Rng};
use perhop_live::MeterSpec;
use perhop_scenario::Scenario;
use perhop_scenario::format::{IpVersion, TcpEnd};
use perhop_sim::application::Carrier;
use perhop_sim::transport::tcp::{NewRenoTimer, Pacing, PartialWindowDeflation, TcpEcn, TcpParams, Variant};
use perhop_sim::transport::{Receiver, Sender, Source};
use perhop_sim::workload::Packets;
use perhop_sim::{Connection, FlowRecord, FlowSpec, Marking, Network, TransportSpec};

use crate::error::LabError;
use crate::letter;

/// Which of the two hosts: that at which the data of flows begin, or the other one. Calls go both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Sending = 0,
    Receiving = 1,
}

impl Side {
    /// Returns the other host.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Sending => Self::Receiving,
            Self::Receiving => Self::Sending,
        }
    }
}

pub(crate) const PROTOCOL_TCP: u8 = 6;
pub(crate) const PROTOCOL_UDP: u8 = 17;

/// The port of the first flow's sender; the others follow.
pub(crate) const FIRST_PORT: u16 = 20_000;
/// Where TCP receivers listen.
pub(crate) const LISTENER: u16 = 5001;
/// The most flows that have a port.
const MOST_FLOWS: usize = (u16::MAX - FIRST_PORT) as usize;

/// The smallest segment that Linux can be configured to send (TCP_MIN_MSS), and the size of the timestamps
/// option in each segment (RFC 7323).
const SMALLEST_SEGMENT: u16 = 88;
pub(crate) const TIMESTAMPS: u16 = 12;
/// ACKs of so many bytes have timestamps (20 bytes of IPv4, 20 of TCP).
const WITH_TIMESTAMPS: u64 = 52;
/// The smallest MTU of an interface with IPv6 (RFC 8200, section 5), and of one with IPv4 (RFC 791).
const SMALLEST_MTU: [u16; 2] = [576, 1280];

/// One flow, as its hosts run it.
#[derive(Clone, Debug)]
pub(crate) struct HostFlow {
    pub(crate) number: usize,
    /// The number of the flow in the network; for a flow of a population, the flow that represents the
    /// population there.
    pub(crate) flow: usize,
    /// The host at which its data begin; connections of users begin at the servers.
    pub(crate) from: Side,
    /// The requests of a user whose connection this is: its data are responses.
    pub(crate) requests: Option<Requests>,
    /// Whether it has the datagrams of a user, one by one.
    pub(crate) is_users: bool,
    /// Whether the flow belongs to a population: it closes its connection when all is sent.
    pub(crate) is_passing: bool,
    pub(crate) name: String,
    /// The group that it belongs to.
    pub(crate) group: usize,
    /// Identifies its packets: the sender's port, and for datagrams the receiver's, too.
    pub(crate) port: u16,
    pub(crate) start: Instant,
    pub(crate) stop: Option<Instant>,
    /// A full packet of data on the wire, and the bytes of data in it.
    pub(crate) packet: u16,
    pub(crate) payload: u16,
    /// Bytes of data that it has to send; `None` for endless. Those of a flow of the network come in whole
    /// packets.
    pub(crate) volume: Option<u64>,
    pub(crate) kind: Kind,
}

/// The other direction of a user's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requests {
    /// The flow of the network that it is.
    pub(crate) flow: usize,
    /// Bytes of data in a full packet.
    pub(crate) payload: u16,
}

/// A user of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostUser {
    /// The number of the user's group among the network's groups.
    pub(crate) application: usize,
    /// The user's number in the group.
    pub(crate) member: usize,
    /// For each connection the number of the flow of its responses, and that of its requests; over TCP both
    /// are one.
    pub(crate) connections: Vec<[usize; 2]>,
}

/// Returns the bytes on the wire and the packets of so much data.
pub(crate) fn on_wire(data: u64, payload: u16, headers: u16) -> (u64, u64) {
    let packets = data.div_ceil(u64::from(payload));
    (data + packets * u64::from(headers), packets)
}

/// The sender of a flow.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// TCP.
    Tcp {
        /// The kernel's, if that sends.
        kernel: Option<KernelTcp>,
        /// perhop's own, if that sends or receives.
        own: Option<Box<OwnTcp>>,
    },
    /// The simulator's sender, over UDP.
    Datagrams {
        sender: Box<Sender>,
        receiver: Receiver,
        /// The codepoint of packets that have none of their own, and the ECN field of all.
        codepoints: (Dscp, Ecn),
        /// Bytes of data in a feedback packet.
        feedback: u16,
        /// The length of the receiver's play-out buffer.
        play_out: Option<Duration>,
        rng: Rng,
    },
}

/// The kernel's TCP as a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelTcp {
    /// The congestion control.
    pub(crate) congestion: String,
    /// The largest segment that it may send, options included.
    pub(crate) segment: u16,
}

/// perhop's own TCP: the simulated connection on a wire.
#[derive(Clone, Debug)]
pub(crate) struct OwnTcp {
    pub(crate) params: TcpParams,
    pub(crate) ecn: TcpEcn,
    pub(crate) reserved: Option<Bitrate>,
    /// The meter at its host, which tells it the color of each segment.
    pub(crate) marker: Option<MeterSpec>,
    /// What it draws by chance, and its meter.
    pub(crate) rngs: (Rng, Rng),
    pub(crate) seed: u64,
    pub(crate) receives: bool,
}

impl HostFlow {
    /// Returns perhop's own TCP at this host, if that is an end of the flow there.
    pub(crate) fn own_at(&self, side: Side) -> Option<&OwnTcp> {
        let Kind::Tcp { kernel, own: Some(own) } = &self.kind else { return None };
        let is_here = if side == self.from { kernel.is_none() } else { own.receives };
        is_here.then_some(own)
    }

    /// Returns whether perhop's own TCP is an end of the flow.
    pub(crate) fn has_own_tcp(&self) -> bool {
        matches!(self.kind, Kind::Tcp { own: Some(_), .. })
    }

    /// Returns the bytes on the wire of so much data from the flow's beginning on, and their packets.
    pub(crate) fn on_wire(&self, data: u64) -> (u64, u64) {
        on_wire(data, self.payload, self.headers())
    }

    /// Returns whether it starts before it stops.
    pub(crate) fn begins(&self) -> bool {
        self.stop.is_none_or(|stop| self.start < stop)
    }

    /// Returns how many bytes of headers a packet has.
    pub(crate) fn headers(&self) -> u16 {
        self.packet - self.payload
    }

    /// Returns whether the sending host sends it by itself, without a user.
    pub(crate) fn is_unattended(&self) -> bool {
        self.requests.is_none() && !self.is_users
    }

    /// Returns the bytes of data in a datagram of this size on the wire: it has room for what it carries.
    pub(crate) fn data_of(&self, size: u16) -> u16 {
        size.saturating_sub(self.headers()).max(letter::LEAST as u16)
    }

    /// Returns the flow with this number within the population that this flow represents.
    fn member(&self, member: usize, record: &FlowRecord, spec: &FlowSpec, seed: u64) -> Self {
        let number = self.number + member;
        let name = format!("{}#{member}", self.name);
        let (mut kind, mut volume) = (self.kind.clone(), record.size.get());
        if let Kind::Datagrams { sender, rng, .. } = &mut kind {
            let packets = Packets::of(record.size, self.packet, spec.transport.headers());
            let last = packets.last.get() as u16;
            let (own, _) = spec.transport.datagram_ends(Some(packets.all)).expect("it is not TCP");
            **sender = own;
            sender.set_last(last);
            *rng = Rng::stream(seed, &format!("flows/{name}/transport"));
            let full = spec.transport.packets_of(packets.all) - 1;
            volume = full * u64::from(self.payload) + u64::from(self.data_of(last));
        }
        Self {
            number,
            is_passing: true,
            name,
            port: FIRST_PORT + number as u16,
            start: record.started,
            stop: None,
            volume: Some(volume),
            kind,
            ..self.clone()
        }
    }

    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.kind, Kind::Tcp { .. })
    }
}

/// The flows of a population.
#[derive(Clone, Debug)]
pub(crate) struct Population {
    /// The flow of the network that represents them.
    pub(crate) flow: usize,
    /// The number of the first one.
    pub(crate) first: usize,
    /// The records of its flows as far as they are known before the run.
    pub(crate) records: Vec<FlowRecord>,
}

/// A scenario as two hosts run it.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// By number; those of a population one after another, as they begin.
    pub(crate) flows: Vec<HostFlow>,
    /// The populations, in the order of the flows that represent them.
    pub(crate) populations: Vec<Population>,
    /// The users of applications that say what is sent, in the order of their flows.
    pub(crate) users: Vec<HostUser>,
    /// How many groups of flows there are.
    pub(crate) groups: usize,
    pub(crate) ip: IpVersion,
    pub(crate) mtu: u16,
    pub(crate) sysctl: Vec<(String, String)>,
    /// The first group whose `ecn` the kernel has to do, and the kernel's setting for it.
    pub(crate) ecn: Option<(usize, &'static str, &'static str)>,
    pub(crate) duration: Duration,
    pub(crate) warmup: Duration,
    /// First sequence numbers follow from it.
    pub(crate) seed: u64,
    /// Notes for the reader of the results.
    pub(crate) notes: Vec<String>,
}

impl Setting {
    /// Returns how the hosts run the scenario. Start times are those that the simulator draws with this seed.
    pub(crate) fn new(scenario: &Scenario, network: &Network, seed: u64) -> Result<Self, LabError> {
        let (wanted, ip) = (network.flows.len(), scenario.live.ip);
        let given = scenario.live.sysctl.iter().map(|(name, value)| (name.clone(), value.to_string()));
        let sysctl: Vec<_> = given.collect();
        if wanted > MOST_FLOWS {
            return Err(LabError::Unfit(format!(
                "flows: {wanted} exceed the {MOST_FLOWS} that a host has ports for"
            )));
        }
        let has_timestamps =
            sysctl.iter().all(|(name, value)| name != "net.ipv4.tcp_timestamps" || value != "0");
        let network_header = if ip == IpVersion::V6 { 40 } else { 20 };
        let (mut flows, mut populations) = (Vec::<HostFlow>::new(), Vec::new());
        let connections = connections(network);
        for ((number, spec), group) in network.flows.iter().enumerate().zip(groups(scenario)) {
            let unfit = |key: &str, text: String| LabError::Unfit(format!("flows[{group}].{key}: {text}"));
            let group_of = &scenario.flows[group];
            let ends = scenario.tcp_ends(group_of).unwrap_or((TcpEnd::Kernel, TcpEnd::Kernel));
            if spec.out_feedback.is_some() && ends.0 == TcpEnd::Kernel {
                let text = "no kernel's TCP reacts to reports of OUT packets: take `live.sender = \"perhop\"`, or the simulator";
                return Err(unfit("out-feedback", text.into()));
            }
            let congestion = group_of.live.congestion.as_deref();
            let conversion =
                Conversion { spec, congestion, ends, network_header, has_timestamps, seed, unfit };
            let flow = match connections.get(&number) {
                None => conversion.host_flow(number, flows.len(), group)?,
                Some(Half::Requests) => continue,
                Some(Half::Reversed) => {
                    HostFlow { from: Side::Receiving, ..conversion.host_flow(number, flows.len(), group)? }
                }
                Some(Half::Datagrams(from)) => {
                    let host = conversion.host_flow(number, flows.len(), group)?;
                    HostFlow { from: *from, is_users: true, ..host }
                }
                Some(Half::Responses { flow, request }) => {
                    let host = conversion.host_flow(number, flows.len(), group)?;
                    let payload = u64::from(host.payload).min(request.get()) as u16;
                    HostFlow { requests: Some(Requests { flow: *flow, payload }), ..host }
                }
            };
            let Some(records) = network.flows_of(spec, seed) else {
                flows.push(flow);
                continue;
            };
            let others = wanted - 1 - number;
            let records = beginning(records, MOST_FLOWS - flows.len() - others, seed);
            let records = records.map_err(|text| unfit("arrivals", text))?;
            populations.push(Population { flow: number, first: flows.len(), records: records.clone() });
            let members = records.iter().enumerate();
            flows.extend(members.map(|(member, record)| flow.member(member, record, spec, seed)));
        }
        let smallest = SMALLEST_MTU[usize::from(ip == IpVersion::V6)];
        let mtu = flows.iter().map(|flow| flow.packet).fold(smallest, u16::max);
        Ok(Self {
            notes: notes(scenario, &flows),
            users: users(network, &flows),
            flows,
            populations,
            groups: scenario.flows.len(),
            ip,
            mtu,
            sysctl,
            ecn: scenario.kernels_ecn(),
            duration: scenario.duration,
            warmup: scenario.warmup.or_none(),
            seed,
        })
    }

    /// Returns whether data of a flow that needs no user begin at this host.
    pub(crate) fn has_flows_from(&self, side: Side) -> bool {
        self.flows.iter().any(|flow| flow.from == side && flow.is_unattended())
    }

    /// Returns whether perhop's own TCP is an end of a flow at this host.
    pub(crate) fn has_own_at(&self, side: Side) -> bool {
        self.flows.iter().any(|flow| flow.own_at(side).is_some())
    }

    /// Returns the kernel's congestion controls that flows use, each with the flow's group.
    pub(crate) fn congestions(&self) -> impl Iterator<Item = (usize, &str)> {
        self.flows.iter().filter_map(|flow| match &flow.kind {
            Kind::Tcp { kernel, .. } => Some((flow.group, kernel.as_ref()?.congestion.as_str())),
            Kind::Datagrams { .. } => None,
        })
    }
}

/// Returns the group of each flow of the network.
fn groups(scenario: &Scenario) -> impl Iterator<Item = usize> {
    scenario.flows.iter().enumerate().flat_map(|(group, flow)| {
        let directions = if flow.application.is_some() { 2 } else { 1 };
        (0..flow.flows() * directions).map(move |_| group)
    })
}

/// Returns the flows of a population that begin in a run; refuses more than there are `free` ports for.
fn beginning(
    records: impl Iterator<Item = FlowRecord>,
    free: usize,
    seed: u64,
) -> Result<Vec<FlowRecord>, String> {
    let records: Vec<FlowRecord> = records.take(free + 1).collect();
    if records.len() > free {
        return Err(format!(
            "more than {free} flows would begin with seed {seed}, and a host has ports for no more: lower the \
             arrivals, or shorten the run"
        ));
    }
    Ok(records)
}

/// A direction of a user's connection.
enum Half {
    /// Whose other direction is this flow, with requests of so many bytes.
    Responses {
        flow: usize,
        request: Bytes,
    },
    Requests,
    /// A source of its own at the receiving host.
    Reversed,
    /// Datagrams of the user, from this host.
    Datagrams(Side),
}

/// Returns the flows of users' connections, by their number in the network.
fn connections(network: &Network) -> BTreeMap<usize, Half> {
    let mut halves = BTreeMap::new();
    for spec in &network.applications {
        let carrier = spec.params.carrier();
        for &Connection { request: flow, response } in spec.users.iter().flatten() {
            match carrier {
                Carrier::Tcp { request } => {
                    halves.insert(response, Half::Responses { flow, request });
                    halves.insert(flow, Half::Requests);
                }
                Carrier::Datagrams { .. } => {
                    halves.insert(response, Half::Datagrams(Side::Sending));
                    halves.insert(flow, Half::Datagrams(Side::Receiving));
                }
                Carrier::Sources(_) => {
                    halves.insert(flow, Half::Reversed);
                }
            }
        }
    }
    halves
}

/// Returns the users that say what is sent over these flows.
fn users(network: &Network, flows: &[HostFlow]) -> Vec<HostUser> {
    let numbers: BTreeMap<usize, usize> = flows.iter().map(|flow| (flow.flow, flow.number)).collect();
    let mut users = Vec::new();
    for (application, spec) in network.applications.iter().enumerate() {
        let carrier = spec.params.carrier();
        if matches!(carrier, Carrier::Sources(_)) {
            continue;
        }
        let numbers = |connection: &Connection| {
            let response = numbers[&connection.response];
            [response, numbers.get(&connection.request).copied().unwrap_or(response)]
        };
        users.extend(spec.users.iter().enumerate().map(|(member, connections)| HostUser {
            application,
            member,
            connections: connections.iter().map(numbers).collect(),
        }));
    }
    users
}

/// Converts a flow of a scenario into a flow of two hosts.
struct Conversion<'a, F> {
    spec: &'a FlowSpec,
    /// The congestion control that the scenario names for the kernel.
    congestion: Option<&'a str>,
    ends: (TcpEnd, TcpEnd),
    network_header: u16,
    has_timestamps: bool,
    seed: u64,
    unfit: F,
}

impl<F: Fn(&str, String) -> LabError> Conversion<'_, F> {
    fn host_flow(&self, flow: usize, number: usize, group: usize) -> Result<HostFlow, LabError> {
        let spec = self.spec;
        let (first, last) = spec.start;
        let start = first + Duration::from_nanos(self.stream("start").up_to(last.since(first).as_nanos()));
        let (packet, _) = spec.transport.packet_sizes();
        let (payload, kind) = match &spec.transport {
            TransportSpec::Tcp(params) => self.tcp(params)?,
            datagrams => self.datagrams(datagrams)?,
        };
        Ok(HostFlow {
            number,
            flow,
            from: Side::Sending,
            requests: None,
            is_users: false,
            is_passing: false,
            name: spec.name.clone(),
            group,
            port: FIRST_PORT + number as u16,
            start,
            stop: spec.stop,
            packet,
            payload,
            volume: spec.volume.map(|volume| spec.transport.packets_of(volume) * u64::from(payload)),
            kind,
        })
    }

    fn stream(&self, part: &str) -> Rng {
        Rng::stream(self.seed, &format!("flows/{}/{part}", self.spec.name))
    }

    /// Returns the bytes of data in a packet, and the TCP that sends it.
    fn tcp(&self, params: &TcpParams) -> Result<(u16, Kind), LabError> {
        let [sends, receives] = [self.ends.0, self.ends.1].map(|end| end == TcpEnd::Perhop);
        let own = || self.own(params, sends, receives).map(Box::new);
        if sends {
            let own = own()?;
            let options = if params.ack.get() >= WITH_TIMESTAMPS { TIMESTAMPS } else { 0 };
            let headers = self.network_header + 20 + options;
            let (packet, _) = self.spec.transport.packet_sizes();
            if packet <= headers {
                let text = format!("a packet has {headers} bytes of headers; choose a larger size");
                return Err((self.unfit)("transport.packet", text));
            }
            return Ok((packet - headers, Kind::Tcp { kernel: None, own: Some(own) }));
        }
        let (payload, kernel) = self.kernels_tcp(params)?;
        let own = receives.then(own).transpose()?;
        Ok((payload, Kind::Tcp { kernel: Some(kernel), own }))
    }

    /// Returns perhop's own TCP.
    fn own(&self, params: &TcpParams, sends: bool, receives: bool) -> Result<OwnTcp, LabError> {
        let spec = self.spec;
        let needs_colors = sends && params.control().needs().colors;
        let marker = match &spec.marking {
            Marking::Host(meter) if needs_colors => {
                let rate = spec.access.as_ref().map_or(Bitrate::MAX, |access| access.rate);
                Some(MeterSpec { name: spec.name.clone(), params: meter.clone(), rate })
            }
            Marking::Ingress(_) | Marking::Edge(_) if needs_colors => {
                let text = "on real packets this sender knows the colors that its own host gives, and not those of a router: give \
                            the group a profile of its own and no path, or simulate the scenario";
                return Err((self.unfit)("profile", text.into()));
            }
            _ => None,
        };
        let seed = self.stream("congestion").next_u64();
        let rngs = (self.stream("transport"), self.stream("marker"));
        let (params, ecn, reserved) = (params.clone(), spec.tcp_ecn, spec.reserved);
        Ok(OwnTcp { params, ecn, reserved, marker, rngs, seed, receives })
    }

    /// Returns the bytes of data in a packet, and the kernel's TCP that sends it.
    fn kernels_tcp(&self, params: &TcpParams) -> Result<(u16, KernelTcp), LabError> {
        let headers = self.network_header + 20;
        let (packet, _) = self.spec.transport.packet_sizes();
        if packet < headers + SMALLEST_SEGMENT {
            let text = format!(
                "Linux sends no packets smaller than {}B; choose a larger size, or `live.sender = \"perhop\"`",
                headers + SMALLEST_SEGMENT
            );
            return Err((self.unfit)("transport.packet", text));
        }
        let congestion = self.congestion.map_or_else(|| kernels(params), |name| Ok(name.into()));
        let congestion = congestion.map_err(|(key, text)| (self.unfit)(key, text))?;
        let segment = packet - headers;
        let payload = segment - if self.has_timestamps { TIMESTAMPS } else { 0 };
        Ok((payload, KernelTcp { congestion, segment }))
    }

    /// Returns the bytes of data in a packet, and the simulator's sender that sends it over UDP.
    fn datagrams(&self, transport: &TransportSpec) -> Result<(u16, Kind), LabError> {
        if self.congestion.is_some() {
            let text = "only TCP flows use the kernel's congestion control; leave this key out";
            return Err((self.unfit)("live.congestion", text.into()));
        }
        let headers = self.network_header + 8;
        let inside = |size: u16| usize::from(size.saturating_sub(headers));
        let (packet, feedback) = transport.packet_sizes();
        let (key, smallest) =
            transport.trace().map_or(("transport.packet", packet), |trace| ("replay", trace.smallest()));
        let least = if matches!(transport, TransportSpec::Udp(_)) { letter::LEAST } else { letter::DATA };
        if inside(smallest) < least {
            let size = usize::from(headers) + least;
            let text = format!(
                "packets carry a sequence number and when they were sent, so they need at least {size}B, and there are such of \
                 {smallest}B"
            );
            return Err((self.unfit)(key, text));
        }
        let (sender, receiver) = transport.datagram_ends(self.spec.volume).expect("it is not TCP");
        let needed = match receiver {
            Receiver::Tcp(_) | Receiver::Sink => 0,
            Receiver::Echo => letter::ECHO,
            Receiver::Tfrc(_) => letter::REPORT,
        };
        let feedback = inside(feedback).max(needed) as u16;
        let (sender, rng) = (Box::new(sender), self.stream("transport"));
        let FlowSpec { play_out, dscp, ecn, .. } = *self.spec;
        let codepoints = (dscp, ecn);
        Ok((packet - headers, Kind::Datagrams { sender, receiver, codepoints, feedback, play_out, rng }))
    }
}

/// Returns the kernel's name of a simulated sender's congestion control; otherwise the key that names it, and
/// why there is none.
fn kernels(params: &TcpParams) -> Result<String, (&'static str, String)> {
    if params.tcp == Variant::Quic {
        let text = "no kernel has QUIC, which runs in the simulator only; name the kernel's congestion control in `live.congestion`, \
                    and the flow is TCP's";
        return Err(("transport.tcp", text.into()));
    }
    let control = params.control().info();
    let key = if params.tcp == Variant::TwoWindows { "transport.tcp" } else { "transport.congestion" };
    let missing = || {
        let text = format!(
            "no kernel has the congestion control `{}`: take `live.sender = \"perhop\"`, or name one that the kernel has in \
             `live.congestion`",
            control.name
        );
        (key, text)
    };
    control.origin.linux.map(|linux| linux.name.to_owned()).ok_or_else(missing)
}

/// Returns a note that windows and buffers act in the simulator only; `None` if the flow has its preset's.
fn note_of_buffers((params, receiver): (&TcpParams, TcpEnd)) -> Option<String> {
    let preset = TcpParams::new(params.tcp);
    if receiver == TcpEnd::Perhop {
        let text = "`send-buffer` acts in the simulator only: the kernel's buffer grows up to the maximum of tcp_wmem, which \
                    `live.sysctl` sets";
        return (params.send_buffer != preset.send_buffer).then(|| text.into());
    }
    let sizes = |params: &TcpParams| (params.window, params.send_buffer, params.window_tuning);
    let text = "`window`, `send-buffer` and `window-tuning` act in the simulator only: the kernel's buffers grow up to the maxima of \
                tcp_rmem and tcp_wmem, which `live.sysctl` sets, such as { \"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\" }";
    (sizes(params) != sizes(&preset)).then(|| text.into())
}

/// Returns where the kernel differs from the scenario.
fn notes(scenario: &Scenario, flows: &[HostFlow]) -> Vec<String> {
    use perhop_scenario::format::{Flow, Transport};
    let is_kernels =
        |flow: &&Flow| scenario.tcp_ends(flow).is_none_or(|(sender, _)| sender == TcpEnd::Kernel);
    let with_receiver = || {
        scenario.flows.iter().filter(is_kernels).filter_map(|flow| match &flow.transport {
            Transport::Tcp(params) => {
                Some((params, scenario.tcp_ends(flow).map_or(TcpEnd::Kernel, |(_, receiver)| receiver)))
            }
            _ => None,
        })
    };
    let tcp = || with_receiver().map(|(params, _)| params);
    let mut notes = Vec::new();
    if with_receiver().any(|(_, receiver)| receiver == TcpEnd::Kernel) {
        notes.push(
            "TCP is the kernel's: its initial window, timeouts, acknowledgements and receive window replace those of \
             the scenario"
                .into(),
        );
    } else if tcp().next().is_some() {
        notes.push(
            "TCP's sender is the kernel's: its initial window and timeouts replace those of the scenario"
                .into(),
        );
    }
    notes.extend(with_receiver().find_map(note_of_buffers));
    let is_unopened = |flow: &Flow| {
        flow.arrivals.is_some() && matches!(&flow.transport, Transport::Tcp(params) if !params.handshake)
    };
    if let Some(flow) = scenario.flows.iter().filter(is_kernels).find(|flow| is_unopened(flow)) {
        notes.push(format!(
            "the kernel opens each connection with a handshake, so flows of {} take a round trip longer than in a simulation \
             without `handshake = true`",
            flow.name
        ));
    }
    let of_ns = |params: &TcpParams| {
        (params.newreno_timer, params.partial_window_deflation)
            != (NewRenoTimer::default(), PartialWindowDeflation::default())
    };
    if tcp().any(of_ns) {
        notes.push(
            "the kernel has its own loss recovery (SACK, RACK): `newreno-timer` and `partial-window-deflation`, which \
             `tcp = \"ns-1998\"` sets, act in the simulator only"
                .into(),
        );
    }
    if tcp().any(|params| params.pacing == Some(Pacing::Window)) {
        notes.push(
            "`pacing = \"window\"` acts in the simulator only: the kernel's reno and cubic are paced by the queueing discipline fq, \
             which hosts here do not have"
                .into(),
        );
    }
    for (group, flow) in scenario.flows.iter().enumerate() {
        let Transport::Tfrc(params) = &flow.transport else { continue };
        let ours = flows.iter().find(|flow| flow.group == group);
        let Some(HostFlow { kind: Kind::Datagrams { feedback, .. }, packet, payload, .. }) = ours else {
            continue;
        };
        let on_wire = feedback + (packet - payload);
        if u64::from(on_wire) > params.ack.get() {
            let (name, ack) = (&flow.name, params.ack);
            notes.push(format!("feedback packets of {name} are {on_wire}B, not {ack}: the size of a report"));
        }
    }
    notes
}
