//! The types of the scenario format. Field docs are the documentation that users read. It is one long file,
//! since docs/scenario.md follows its order.

mod between;
mod forms;
pub(crate) mod topology;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use perhop_core::abe::Service;
use perhop_core::control::WindowControl;
use perhop_core::medium::{Change, GilbertElliott, Jitter, Medium, Outage};
use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::units::{Load, UnitError};
use perhop_core::{Bitrate, Bytes, Color, Dscp, Duration, Frequency, Probability};
use perhop_sim::application::ApplicationParams;
use perhop_sim::transport::packet_trace::PacketTrace;
use perhop_sim::transport::rap::RapParams;
use perhop_sim::transport::tcp::{TcpEcn, TcpParams};
use perhop_sim::transport::tfrc::TfrcParams;
use perhop_sim::transport::udp::UdpParams;
use perhop_sim::workload::{ArrivalTrace, Listed, Sizes};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

pub(crate) use self::between::Lines;
pub use self::between::{Between, Demand, Weights};
use self::forms::is_default;
use self::topology::Plan;
pub use self::topology::{FatTree, Graph, GraphLink, Isp, Links, TierLink, Topology, TopologyLink};
use crate::error::Problem;

/// The most flows of a scenario: more are a typing error, or exceed the memory of a machine.
pub(crate) const MOST_FLOWS: u64 = 1_000_000;

/// The suffix of the name of a link's reverse direction.
pub(crate) const REVERSE: &str = " (reverse)";

/// A network, its traffic and what to measure.
///
/// Every flow, link, profile and path has its own random stream, derived from the seed and its name. Adding
/// one therefore does not change the random numbers of the others. Renaming one changes its random numbers:
/// with the same seed this gives a different run, as valid as one with another seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// What the scenario shows, in one line.
    #[serde(default)]
    pub title: String,
    /// Simulated time of one run.
    pub duration: Duration,
    /// All statistics of flows, classes and links exclude this initial period, counts of packets and drops
    /// included. `auto`: the time that runs take to settle, which `perhop run`, `perhop sweep` and others
    /// that report means over runs find (results.md); what measures no steady state counts from the
    /// beginning.
    #[serde(default)]
    pub warmup: Warmup,
    /// Routers and links by a rule: generated, or from a graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Links between routers, by name. Naming a router in a link creates it. Required without a `topology`.
    #[serde(default)]
    pub links: Links,
    /// Label-switched paths, by name: explicit routes that flows can use instead of the shortest one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, LabelSwitchedPath>,
    /// Traffic profiles that several flows share, by name: one meter for all of them, at their first common
    /// router.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, Profile>,
    /// Groups of flows.
    pub flows: Vec<Flow>,
    /// Samples that are taken at regular intervals.
    #[serde(default, skip_serializing_if = "is_default")]
    pub probes: Probes,
    /// Settings for real packets (`perhop live`); simulations ignore them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub live: Live,
    /// The routers and links of the topology.
    #[serde(skip)]
    pub(crate) plan: Option<Arc<Plan>>,
    /// Notices about former keys that the text has, which are others by now.
    #[serde(skip)]
    pub(crate) former_keys: Vec<Problem>,
}

/// Declares the settings of one direction of a link: its own keys, those of its medium, which both directions
/// have, and more own ones.
macro_rules! direction {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$first_meta:meta])* pub $first:ident: $first_type:ty,)*
        }
        medium of $direction:literal
        $({
            $($(#[$last_meta:meta])* pub $last:ident: $last_type:ty,)*
        })?
    ) => {
        #[serde_with::skip_serializing_none]
        $(#[$meta])*
        pub struct $name {
            $($(#[$first_meta])* pub $first: $first_type,)*
            #[doc = concat!(" The rate of the ", $direction, " direction over time, as a file or table says:")]
            /// Mahimahi's packet-delivery traces, or CSV. AQMs and schedulers know the `rate` of the link
            /// only; utilization refers to the mean rate of the trace. Default: the rate is constant.
            pub rate_trace: Option<RateTrace>,
            #[doc = concat!(" Changes of the rate and delay of the ", $direction, " direction, in the order of")]
            /// time. AQMs and schedulers know the `rate` of the link only; utilization refers to the mean
            /// rate.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub changes: Vec<Change>,
            #[doc = concat!(" Times during which the ", $direction, " direction begins to send no packet, in")]
            /// order.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub outages: Vec<Outage>,
            #[doc = concat!(" The probability that the ", $direction, " direction loses a packet after it has sent")]
            /// it, each packet independently. Flows count lost packets apart from the drops of queues.
            /// Default: none is lost.
            pub loss: Option<Probability>,
            #[doc = concat!(" Losses of the ", $direction, " direction in bursts, beside these of `loss`. Default:")]
            /// none.
            pub burst_loss: Option<GilbertElliott>,
            #[doc = concat!(" A random delay of each packet of the ", $direction, " direction beside the")]
            /// propagation delay. Default: none.
            pub jitter: Option<Jitter>,
            $($($(#[$last_meta])* pub $last: $last_type,)*)?
        }

        impl $name {
            #[doc = concat!("Returns how the ", $direction, " direction changes, and what it loses.")]
            pub(crate) fn medium(&self) -> Medium {
                let Self { rate_trace, changes, outages, loss, burst_loss, jitter, .. } = self;
                let (changes, outages) = (changes.clone(), outages.clone());
                let trace = rate_trace.as_ref().and_then(RateTrace::read);
                Medium { trace, changes, outages, loss: *loss, burst_loss: *burst_loss, jitter: *jitter }
            }
        }
    };
}

direction! {
    /// A link between two routers, in both directions.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Link {
        /// The router where the forward direction begins.
        pub from: String,
        /// The router where it ends.
        pub to: String,
        /// Rate of each direction.
        pub rate: Bitrate,
        /// Propagation delay of each direction.
        pub delay: Duration,
        /// The queue of the forward direction. Default: a queue without a limit.
        pub queue: Option<Queue>,
        /// Meters that packets pass on their way to the queue of the forward direction, whatever their hosts
        /// or other routers have marked: each packet that of the first meter that matches it. Default: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub meters: Vec<AggregateMeter>,
    }
    medium of "forward"
    {
        /// Settings of the reverse direction that differ.
        pub reverse: Option<Reverse>,
    }
}

direction! {
    /// Settings of a link's reverse direction that differ from those of its forward direction.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Reverse {
        /// Rate of the reverse direction. Default: that of the forward direction.
        pub rate: Option<Bitrate>,
        /// Propagation delay of the reverse direction. Default: that of the forward direction.
        pub delay: Option<Duration>,
        /// The queue of the reverse direction. Default: a queue without a limit.
        pub queue: Option<Queue>,
        /// Meters before the queue of the reverse direction. Default: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub meters: Vec<AggregateMeter>,
    }
    medium of "reverse"
}

/// A trace of a link's rate: the name of a file, relative to the scenario's folder, or a table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RateTrace {
    /// With its format, or as text.
    Table(TraceTable),
    /// A file by name: CSV if the name ends in `.csv`, else of Mahimahi's format.
    File(String),
}

/// A trace of a link's rate. Results keep the text of the trace, so a stored scenario needs no file.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TraceTable {
    /// The file's name, relative to the scenario's folder.
    pub file: Option<String>,
    /// What a trace that is given as `data` is called: that of the file it is from.
    pub name: Option<String>,
    /// The format of the trace. Default: `csv` for a file whose name ends so, else `mahimahi`.
    pub format: Option<TraceFormat>,
    /// Whether the trace begins again at its end. Default: `true` for `mahimahi`, `false` for `csv`.
    pub repeat: Option<bool>,
    /// The text of the trace, in place of a file.
    pub data: Option<String>,
    /// What has been read.
    #[serde(skip)]
    pub(crate) read: Option<Arc<perhop_core::medium::RateTrace>>,
}

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// Mahimahi's packet-delivery traces: each line is the time in milliseconds at which the link delivers
    /// 1500 bytes, of one packet or of several; what no waiting packet uses is lost. The trace ends at the
    /// last time; if it repeats, times count from there. Without repetition nothing is sent afterwards.
    Mahimahi,
    /// A header such as `time_s,rate_Mbps` (or `time_ms`; `rate_bps`, `rate_kbps`), then in each line a time,
    /// from 0 on, and the rate from then on. The last rate stays, or, if the trace repeats, lasts as long as
    /// the one before it. Lines that begin with `#` are comments.
    Csv,
}

impl RateTrace {
    /// Returns the text that has been read.
    pub(crate) fn read(&self) -> Option<Arc<perhop_core::medium::RateTrace>> {
        match self {
            Self::Table(table) => table.read.clone(),
            Self::File(_) => None,
        }
    }
}

/// An explicit route for flows. Their packets, including acknowledgements, carry its label.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LabelSwitchedPath {
    /// The routers of the path, from the ingress to the egress. If several links connect two of them, the
    /// path uses the first by name.
    pub via: Vec<String>,
    /// The routers of the return path, from the egress to the ingress. Default: the same routers in reverse
    /// order.
    pub back: Option<Vec<String>>,
    /// The congestion windows of the path's TCP flows control their markers (`marker = "twam"`) and the
    /// queues along the path (`aqm = "dwred"`). Flows without a profile affect the queues only. Default: no
    /// control.
    pub control: Option<WindowControl>,
}

/// A queue: an AQM by name, with its parameters, over packets in order of arrival; or a scheduler by name,
/// with its own, over one queue or several.
#[derive(Clone, Debug)]
pub struct Queue {
    /// What it is made of; a FIFO where only an AQM is named.
    pub scheduler: SchedulerParams,
    /// Whether the text names the scheduler, so that the AQM of a FIFO is in a table `rule` of its own.
    scheduler_named: bool,
}

impl Queue {
    /// Returns the path in the queue's table of what the scheduler calls `inner`, such as
    /// `queues[0].rule.limit`.
    pub fn key(&self, inner: &str) -> String {
        if self.scheduler.only_aqm().is_some() && self.scheduler_named {
            format!("rule.{inner}")
        } else {
            inner.into()
        }
    }
}

impl PartialEq for Queue {
    /// Compares schedulers: the two ways of writing a FIFO are one queue.
    fn eq(&self, other: &Self) -> bool {
        self.scheduler == other.scheduler
    }
}

/// A service profile: a meter by name, with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Profile(pub MeterParams);

/// The profile of a group of flows: its own, or a shared one by name.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FlowProfile {
    /// Each flow has this profile, and its own meter.
    Own(Profile),
    /// The flows share the profile of this name with all other flows that name it.
    Shared(String),
}

/// A group of identical flows, each between its own pair of hosts.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flow {
    /// The group's name in tables, and in the names of its flows' random streams: under another name the same
    /// seed gives a different run.
    pub name: String,
    /// How many flows it has; with an `application`, how many users.
    #[serde(default = "one", deserialize_with = "flows")]
    pub count: u32,
    /// The router of the sending hosts. Default: the ingress of `path`.
    pub from: Option<String>,
    /// The router of the receiving hosts. Default: the egress of `path`.
    pub to: Option<String>,
    /// The routers of the hosts of each flow, in place of `from` and `to`: a traffic matrix.
    pub between: Option<Between>,
    /// The label-switched path of the flows' packets and their acknowledgements. Default: a shortest route.
    pub path: Option<String>,
    /// The private access link of each host, at both ends. Default: none, hosts are at the routers.
    pub access: Option<Access>,
    /// The private access link of each receiving host, if it differs from `access`.
    pub egress: Option<Access>,
    /// Each host hands every packet of data and every acknowledgement to its link after a random time:
    /// uniform from 0 to this, but no packet overtakes another of its host. It models the operating system,
    /// against phase effects. Default: at once.
    pub dispatch_jitter: Option<Duration>,
    /// How the flows send. Required, but refused with `replay` or an `application` that sends datagrams of
    /// its own (`game`, `call`).
    #[serde(default, skip_serializing_if = "Transport::is_own")]
    pub transport: Transport,
    /// What each of `count` users does over connections of its own, in place of sending all the time.
    /// Responses go from `from` to `to`, as the data of other flows; requests go back, without a profile, in
    /// a class `NAME (reverse)`. Default: none.
    pub application: Option<ApplicationParams>,
    /// The traffic profile of each flow, metered at its host or, on a path, at the ingress; or the name of a
    /// shared profile. Default: none (best effort).
    pub profile: Option<FlowProfile>,
    /// The color of the flows' packets if they have no profile, and that with which they come to a
    /// color-aware meter. Default: the drop precedence of their codepoint of Assured Forwarding: green for
    /// `AF11`, `AF21`, `AF31` and `AF41`, yellow for `AF12` and so on, red for `AF13` and so on; without such
    /// a codepoint `yellow`.
    pub color: Option<Color>,
    /// The Asymmetric Best-Effort service of the flows' packets. Only best effort, without a profile, can be
    /// green.
    #[serde(default)]
    pub service: Service,
    /// The codepoint of the flows' data packets, such as 46 for Expedited Forwarding. A profile's marker
    /// writes its own codepoint, and `service` implies one.
    pub dscp: Option<Dscp>,
    /// Whether queues whose AQM has `ecn = true` may mark the flows' packets instead of dropping them, and
    /// how TCP's receivers feed marks back. Only for TCP, but `l4s` for UDP, too, whose sender does not react
    /// to marks.
    #[serde(default, skip_serializing_if = "TcpEcn::is_off")]
    pub ecn: TcpEcn,
    /// The length of the receivers' play-out buffer, such as `60ms`. It holds the first packet of a flow that
    /// arrives for this time, and plays every other as long after it was sent; a later packet is counted
    /// (`late_packets`) and not played. Only for datagrams. Default: none.
    pub play_out: Option<Duration>,
    /// The flows are calls with this codec: tables show their rating R and mean opinion score by the E-model
    /// (ITU-T G.107). It does not set what the flows send. Without `play-out`, the buffer is as long as 99 %
    /// of the packets need.
    pub codec: Option<Codec>,
    /// The marker reports each OUT packet to the sender after this delay, and the sender then reduces its
    /// window by one packet (No-OUT). Default: no feedback.
    pub out_feedback: Option<Duration>,
    /// Start time of each flow: a time (`2s`), or a range from which each flow draws a time at random
    /// (`0s..1s`). The arrivals of a population begin at a time, `0s` by default.
    #[serde(default)]
    pub start: Start,
    /// When the flows stop sending new data. Default: never.
    pub stop: Option<Duration>,
    /// How much data each flow sends: payload, without headers, as the sizes of a population, rounded up to
    /// whole packets. Default: unlimited.
    pub volume: Option<Bytes>,
    /// Finite flows begin again and again, from `start` until `stop`: the group is a population in place of
    /// `count` flows.
    pub arrivals: Option<Arrivals>,
    /// How much each flow of a population sends.
    pub sizes: Option<Sizes>,
    /// Each flow sends the packets of a capture again, at their times after its start, with their sizes and
    /// codepoints, whatever becomes of them: a file by name, such as `uplink.pcapng`, or a table. In place of
    /// `transport`. Default: none.
    pub replay: Option<ReplayedPackets>,
    /// Settings of the flows for real packets (`perhop live`); simulations ignore them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub live: FlowLive,
}

/// When the flows of a population begin. One of `load`, `rate`, `every`, `list` and `trace`.
///
/// Starts and sizes come from a random stream of the group's own, or from files: they are the same under
/// every mechanism.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Arrivals {
    /// As a Poisson process whose flows fill this share of a link with payload on average, such as `0.6` or
    /// `"60%"`: of its mean rate while flows begin, if that changes.
    pub load: Option<Load>,
    /// The link on the flows' route to which `load` refers. Default: the slowest one, the hosts' own links
    /// not counted.
    pub of: Option<String>,
    /// As a Poisson process of this frequency, such as `40/s`.
    pub rate: Option<Frequency>,
    /// At this interval, the first at once.
    pub every: Option<Duration>,
    /// As listed: when each begins, from the start of the run on, and what it sends, such as
    /// `[["1.5s", "30kB"]]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<Listed>,
    /// As measured: a file by name, such as `arrivals.csv`, or a table. Times count from `start`; flows after
    /// `stop` or the end of the run do not begin.
    pub trace: Option<MeasuredArrivals>,
}

/// Measured arrivals of flows: the name of a file, relative to the scenario's folder, or a table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum MeasuredArrivals {
    /// As text.
    Table(ArrivalTable),
    /// A file by name.
    File(String),
}

/// Measured arrivals of flows, as CSV: a line for each, after a header such as `time_s,size_B`.
///
/// The header names a time (`time_s` or `time_ms`), when flows begin, and may name a size (`size_B`,
/// `size_kB` or `size_MB`), their payload; without sizes the group needs `sizes`, from which they are drawn.
/// Times do not go back. Lines that begin with `#` are comments. Results keep the text, so a stored scenario
/// needs no file.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ArrivalTable {
    /// The file's name, relative to the scenario's folder.
    pub file: Option<String>,
    /// What a trace that is given as `data` is called: that of the file it is from.
    pub name: Option<String>,
    /// The text of the trace, in place of a file.
    pub data: Option<String>,
    /// What has been read.
    #[serde(skip)]
    pub(crate) read: Option<Arc<ArrivalTrace>>,
}

impl MeasuredArrivals {
    /// Returns the text that has been read.
    pub(crate) fn read(&self) -> Option<&Arc<ArrivalTrace>> {
        match self {
            Self::Table(table) => table.read.as_ref(),
            Self::File(_) => None,
        }
    }
}

/// Packets that flows send again: the name of a file, relative to the scenario's folder, or a table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ReplayedPackets {
    /// A part of a capture, or packets as text.
    Table(ReplayTable),
    /// A file by name: CSV if the name ends in `.csv`, else a capture (pcap or pcapng).
    File(String),
}

/// Packets that flows send again, from a capture or from CSV.
///
/// Of a capture all packets of IP are sent: where it has both directions, take one out
/// (`tcpdump -r IN -w OUT src net 10.0.0.0/8`). Time zero is its first packet. CSV has a header that names a
/// time (`time_s` or `time_ms`), the size of the IP packet (`size_B`, `size_kB` or `size_MB`) and, where
/// packets have codepoints of their own, `dscp`, a number; then these of each packet in a line. Codepoints of
/// Assured Forwarding give packets their color (RFC 2597). Results keep the packets as CSV, so a stored
/// scenario needs no file.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReplayTable {
    /// The file's name, relative to the scenario's folder: CSV if it ends in `.csv`, else a capture.
    pub file: Option<String>,
    /// What packets that are given as `data` are called: the name of the file they are from.
    pub name: Option<String>,
    /// Packets of a capture that came earlier than this after its first one are left out. This is then time
    /// zero. Default: `0s`.
    pub from: Option<Duration>,
    /// Packets that came at this time after the first one of the capture, or later, are left out. Default:
    /// none is.
    pub to: Option<Duration>,
    /// The packets as CSV, in place of a file.
    pub data: Option<String>,
    /// What has been read.
    #[serde(skip)]
    pub(crate) read: Option<Arc<PacketTrace>>,
}

impl ReplayedPackets {
    /// Returns the text that has been read.
    pub(crate) fn read(&self) -> Option<&Arc<PacketTrace>> {
        match self {
            Self::Table(table) => table.read.as_ref(),
            Self::File(_) => None,
        }
    }
}

/// A codec of calls, as the E-model knows it (ITU-T G.113, appendix I), in packets of 20 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// G.711 without packet-loss concealment: 160 bytes in each packet, 200 with headers.
    G711,
    /// G.711 with packet-loss concealment.
    G711Plc,
    /// G.729A with voice activity detection: 20 bytes in each packet, 60 with headers.
    G729aVad,
}

impl Codec {
    /// The time that the speech in a packet lasts.
    pub(crate) const PACKET: Duration = Duration::from_millis(20);

    /// Returns the name of the codec in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::G711 => "g711",
            Self::G711Plc => "g711-plc",
            Self::G729aVad => "g729a-vad",
        }
    }
}

/// Settings of a scenario for real packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Live {
    /// The version of the Internet Protocol.
    #[serde(default)]
    pub ip: IpVersion,
    /// Kernel settings of the hosts, such as `"net.ipv4.tcp_sack" = 0`: names below `net.` that each network
    /// namespace has separately.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, Setting>,
    /// A run is invalid if more than 1 % of its packets left the router later than this. Default: a tenth of
    /// the shortest round-trip time without queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lateness: Option<Duration>,
    /// The sender of the TCP of all groups that have none of their own and no `application`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<TcpEnd>,
    /// The receiver of the TCP of all groups that have none of their own and no `application`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<TcpEnd>,
}

/// An end of TCP connections on real packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TcpEnd {
    /// The kernel's TCP.
    Kernel,
    /// perhop's own, the simulated `transport` behind real segments.
    Perhop,
}

/// Settings of a group of flows for real packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowLive {
    /// The kernel's congestion control, such as `cubic` or `bbr`. Default: the one closest to `transport`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The sender of the flows' TCP. Default: the kernel, unless no kernel has the `transport`, as with
    /// two-windows TCP, `out-feedback` and `ecn = "l4s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<TcpEnd>,
    /// The receiver of the flows' TCP. Default: the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<TcpEnd>,
}

/// A version of the Internet Protocol: 4 or 6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl TryFrom<i64> for IpVersion {
    type Error = UnitError;
    fn try_from(version: i64) -> Result<Self, UnitError> {
        match version {
            4 => Ok(Self::V4),
            6 => Ok(Self::V6),
            _ => Err(UnitError::new(format!("the versions are 4 and 6, not {version}"))),
        }
    }
}

impl From<IpVersion> for i64 {
    fn from(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

impl JsonSchema for IpVersion {
    fn schema_name() -> Cow<'static, str> {
        "IpVersion".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "enum": [4, 6] })
    }
}

/// A kernel setting: a number, or text for settings with several numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Setting {
    /// One number.
    Number(i64),
    /// Any other value.
    Text(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// A private link between a host and its router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Access {
    /// The rate of the link.
    pub rate: Bitrate,
    /// The propagation delay of the link.
    pub delay: Duration,
}

/// How a flow sends. The first key names the protocol: `tcp = "newreno"`, `udp = "cbr"`, `rap = "aimd"` or
/// `tfrc = "rfc5348"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Transport {
    /// TCP.
    Tcp(TcpParams),
    /// UDP.
    Udp(UdpParams),
    /// RAP.
    Rap(RapParams),
    /// TFRC.
    Tfrc(TfrcParams),
    /// None is given: that of the application.
    #[default]
    #[serde(skip)]
    #[schemars(skip)]
    Own,
}

impl Transport {
    /// Returns whether none is given.
    pub fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// How long the initial period is that statistics exclude.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Warmup {
    /// As long as the network takes to settle, which nobody has looked for yet.
    #[default]
    Auto,
    /// So long.
    Lasts(Duration),
}

impl Warmup {
    /// Returns the period to exclude: none as long as it has not been found.
    pub fn or_none(self) -> Duration {
        match self {
            Self::Auto => Duration::ZERO,
            Self::Lasts(period) => period,
        }
    }
}

/// When a flow begins: at a time, or at one drawn uniformly from a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The earliest.
    pub first: Duration,
    /// The latest.
    pub last: Duration,
}

/// Samples that are taken at regular intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Probes {
    /// Sampling interval of throughput, windows, round-trip times, queue lengths and their averages. Default:
    /// no sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
}

const fn one() -> u32 {
    1
}

/// Reads a number of flows; one that is out of range has a message that says what is in range, be it negative
/// or too large.
fn flows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let count = i64::deserialize(deserializer)?;
    u32::try_from(count).map_err(|_| {
        let most = MOST_FLOWS;
        de::Error::custom(format!("a scenario has 1 to {most} flows, each group at least 1, not {count}"))
    })
}
