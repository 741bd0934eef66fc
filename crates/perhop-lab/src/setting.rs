//! A scenario as two hosts can run it: what each flow is to the kernel, or why it cannot be.

use perhop_core::{Duration, Instant, Rng};
use perhop_scenario::Scenario;
use perhop_scenario::format::IpVersion;
use perhop_sim::transport::datagram::{DatagramReceiver, DatagramSender};
use perhop_sim::transport::tcp::{NewRenoTimer, PartialWindowDeflation, TcpParams, Variant};
use perhop_sim::{FlowSpec, Network, TransportSpec};

use crate::error::LabError;
use crate::hosts::letter;

pub(crate) const PROTOCOL_TCP: u8 = 6;
pub(crate) const PROTOCOL_UDP: u8 = 17;

/// The port of the first flow's sender; the others follow.
const FIRST_PORT: u16 = 20_000;
/// Where TCP receivers listen.
pub(crate) const LISTENER: u16 = 5001;
/// As many flows have a port.
const MOST_FLOWS: usize = (u16::MAX - FIRST_PORT) as usize;

/// The smallest segment that Linux can be told to send (TCP_MIN_MSS), and what options take of a segment (RFC 7323).
const SMALLEST_SEGMENT: u16 = 88;
pub(crate) const TIMESTAMPS: u16 = 12;
/// The smallest MTU of an interface with IPv6 (RFC 8200, section 5), and of one with IPv4 (RFC 791).
const SMALLEST_MTU: [u16; 2] = [576, 1280];

/// One flow, as its hosts run it.
#[derive(Clone, Debug)]
pub(crate) struct HostFlow {
    pub(crate) number: usize,
    pub(crate) name: String,
    /// The group that it belongs to.
    pub(crate) group: usize,
    /// Tells its packets from all others: the sender's port, and of datagrams the receiver's, too.
    pub(crate) port: u16,
    pub(crate) start: Instant,
    pub(crate) stop: Option<Instant>,
    /// A full packet of data on the wire, and the bytes of data in it.
    pub(crate) packet: u16,
    pub(crate) payload: u16,
    /// Bytes of data that it has to send, in whole packets; `None` for endless.
    pub(crate) volume: Option<u64>,
    pub(crate) kind: Kind,
}

/// What sends.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// The kernel's TCP.
    Tcp {
        congestion: String,
        /// The largest segment that it may send, options included.
        segment: u16,
    },
    /// The simulator's sender, over UDP.
    Datagrams {
        sender: Box<DatagramSender>,
        receiver: DatagramReceiver,
        /// Bytes of data in an answer.
        answer: u16,
        rng: Rng,
    },
}

impl HostFlow {
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.kind, Kind::Tcp { .. })
    }
}

/// A scenario as two hosts run it.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) flows: Vec<HostFlow>,
    pub(crate) ip: IpVersion,
    pub(crate) mtu: u16,
    pub(crate) sysctl: Vec<(String, String)>,
    pub(crate) duration: Duration,
    pub(crate) warmup: Duration,
    /// What a reader should know of it.
    pub(crate) notes: Vec<String>,
}

impl Setting {
    /// How the hosts run the scenario; starts are those that the simulator draws with this seed.
    pub(crate) fn new(scenario: &Scenario, network: &Network, seed: u64) -> Result<Self, LabError> {
        if network.flows.len() > MOST_FLOWS {
            let text =
                format!("flows: {} exceed the {MOST_FLOWS} that a host has ports for", network.flows.len());
            return Err(LabError::Unfit(text));
        }
        let ip = scenario.live.ip;
        let given = scenario.live.sysctl.iter().map(|(name, value)| (name.clone(), value.to_string()));
        let ecn = scenario.kernels_ecn().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let sysctl: Vec<(String, String)> = given.chain(ecn).collect();
        let has_timestamps =
            sysctl.iter().all(|(name, value)| name != "net.ipv4.tcp_timestamps" || value != "0");
        let groups = scenario.flows.iter().enumerate();
        let groups = groups.flat_map(|(group, flow)| (0..flow.count).map(move |_| group));
        let mut flows = Vec::new();
        for ((number, spec), group) in network.flows.iter().enumerate().zip(groups) {
            let congestion = scenario.flows[group].live.congestion.as_deref();
            let unfit = |key: &str, text: String| LabError::Unfit(format!("flows[{group}].{key}: {text}"));
            if spec.out_feedback.is_some() {
                let text = "no kernel's TCP reacts to reports of OUT packets: No-OUT needs a modified sender and runs in the simulator only";
                return Err(unfit("out-feedback", text.into()));
            }
            flows.push(host_flow(spec, number, group, seed, (ip, has_timestamps, congestion), unfit)?);
        }
        let smallest = SMALLEST_MTU[usize::from(ip == IpVersion::V6)];
        let mtu = flows.iter().map(|flow| flow.packet).max().unwrap_or(0).max(smallest);
        Ok(Self {
            notes: notes(scenario, &flows),
            flows,
            ip,
            mtu,
            sysctl,
            duration: scenario.duration,
            warmup: scenario.warmup,
        })
    }

    /// Whether any flow is the kernel's TCP.
    pub(crate) fn congestions(&self) -> impl Iterator<Item = &str> {
        self.flows.iter().filter_map(|flow| match &flow.kind {
            Kind::Tcp { congestion, .. } => Some(congestion.as_str()),
            Kind::Datagrams { .. } => None,
        })
    }
}

fn host_flow(
    spec: &FlowSpec,
    number: usize,
    group: usize,
    seed: u64,
    (ip, has_timestamps, congestion): (IpVersion, bool, Option<&str>),
    unfit: impl Fn(&str, String) -> LabError,
) -> Result<HostFlow, LabError> {
    let stream = |part| Rng::stream(seed, &format!("flows/{}/{part}", spec.name));
    let (first, last) = spec.start;
    let start = first + Duration::from_nanos(stream("start").up_to(last.since(first).as_nanos()));
    let network_header = match ip {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    let (packet, answer) = spec.transport.packet_sizes();
    let (payload, kind) = match &spec.transport {
        TransportSpec::Tcp(params) => {
            let headers = network_header + 20;
            if packet < headers + SMALLEST_SEGMENT {
                let text = format!(
                    "Linux sends no packets smaller than {}B; choose a larger size",
                    headers + SMALLEST_SEGMENT
                );
                return Err(unfit("transport.packet", text));
            }
            let congestion = congestion.map_or_else(|| kernels(params), |name| Ok(name.into()));
            let congestion = congestion.map_err(|(key, text)| unfit(key, text))?;
            let segment = packet - headers;
            let payload = segment - if has_timestamps { TIMESTAMPS } else { 0 };
            (payload, Kind::Tcp { congestion, segment })
        }
        datagrams => {
            if congestion.is_some() {
                return Err(unfit(
                    "live.congestion",
                    "only TCP flows use the kernel's congestion control; leave this key out".into(),
                ));
            }
            let headers = network_header + 8;
            let inside = |size: u16| usize::from(size.saturating_sub(headers));
            let (sender, receiver) = datagrams.datagram_ends(spec.volume).expect("it is not TCP");
            if inside(packet) < letter::DATA {
                let size = usize::from(headers) + letter::DATA;
                let text =
                    format!("packets carry a sequence number and timestamps, so they need at least {size}B");
                return Err(unfit("transport.packet", text));
            }
            let needed = match receiver {
                DatagramReceiver::Sink => 0,
                DatagramReceiver::Echo => letter::ECHO,
                DatagramReceiver::Tfrc(_) => letter::REPORT,
            };
            let payload = packet - headers;
            let answer = inside(answer).max(needed) as u16;
            (
                payload,
                Kind::Datagrams { sender: Box::new(sender), receiver, answer, rng: stream("transport") },
            )
        }
    };
    Ok(HostFlow {
        number,
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

/// The kernel's congestion control that is that of a simulated sender; else the key that names it, and why there is none.
fn kernels(params: &TcpParams) -> Result<String, (&'static str, String)> {
    let control = params.control().info();
    let key = if params.tcp == Variant::TwoWindows { "transport.tcp" } else { "transport.congestion" };
    let missing = || {
        let text = format!(
            "no kernel has the congestion control `{}`, which runs in the simulator only; name one that the kernel has in \
             `live.congestion`",
            control.name
        );
        (key, text)
    };
    control.kernel.map(str::to_owned).ok_or_else(missing)
}

/// What the kernel does otherwise than the scenario says.
fn notes(scenario: &Scenario, flows: &[HostFlow]) -> Vec<String> {
    use perhop_scenario::format::Transport;
    let tcp = || {
        scenario.flows.iter().filter_map(|flow| match &flow.transport {
            Transport::Tcp(params) => Some(params),
            _ => None,
        })
    };
    let mut notes = Vec::new();
    if tcp().next().is_some() {
        notes.push(
            "TCP is the kernel's: its initial window, timeouts, acknowledgements and receive window replace those of \
             the scenario"
                .into(),
        );
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
    for (group, flow) in scenario.flows.iter().enumerate() {
        let Transport::Tfrc(params) = &flow.transport else { continue };
        let ours = flows.iter().find(|flow| flow.group == group);
        let Some(HostFlow { kind: Kind::Datagrams { answer, .. }, packet, payload, .. }) = ours else {
            continue;
        };
        let on_wire = answer + (packet - payload);
        if u64::from(on_wire) > params.ack.get() {
            let (name, ack) = (&flow.name, params.ack);
            notes.push(format!("feedback packets of {name} are {on_wire}B, not {ack}: the size of a report"));
        }
    }
    notes
}
