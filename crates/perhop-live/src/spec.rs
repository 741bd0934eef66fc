//! The description of a data plane: links with queues, meters, and the routes of streams through them.

use std::net::SocketAddr;

use perhop_core::control::WindowControl;
use perhop_core::medium::Medium;
use perhop_core::meter::{AggregateMeter, MeterParams};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Color, Direction, Dscp, Duration, FlowId, Instant, ServiceLevel};

use crate::classifier::Selector;

/// A data plane.
#[derive(Clone, Debug, Default)]
pub struct PlaneSpec {
    /// How many devices packets come from and go to.
    pub devices: usize,
    /// The longest packet that it takes, in bytes.
    pub mtu: u16,
    /// How many packets it may hold.
    pub buffers: u32,
    /// Waiting times, utilization and mean queue lengths cover this time.
    pub window: (Instant, Instant),
    /// Links with a queue.
    pub links: Vec<LinkSpec>,
    /// Wires, which delay packets and drop none.
    pub wires: Vec<WireSpec>,
    /// Meters, each with the marker behind it.
    pub meters: Vec<MeterSpec>,
    /// Window controls of label-switched paths.
    pub controls: Vec<ControlSpec>,
    /// Streams of packets. The first whose selector matches a packet takes it.
    pub streams: Vec<StreamSpec>,
    /// Markers' reports to senders.
    pub reports: Vec<ReportSpec>,
}

/// A link with a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// The name of the link, which also names its random streams.
    pub name: String,
    /// The rate of the link.
    pub rate: Bitrate,
    /// The propagation delay of the link.
    pub delay: Duration,
    /// The queue of the link.
    pub queue: SchedulerParams,
    /// The meters that packets pass before the queue.
    pub meters: Vec<AggregateMeter>,
    /// How the link changes, and which packets it loses and delays.
    pub medium: Medium,
}

/// Serialization and propagation, without a limit on what waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireSpec {
    /// The rate of the wire; `None` if packets take no time to be sent.
    pub rate: Option<Bitrate>,
    /// The propagation delay of the wire.
    pub delay: Duration,
    /// The jitter of the host that sends over the wire; `None` for one that sends at once.
    pub dispatch: Option<DispatchSpec>,
}

/// The time that a host takes to hand a packet to its wire: random, uniform from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchSpec {
    /// Names its random stream.
    pub name: String,
    /// The longest time.
    pub most: Duration,
}

/// A meter.
#[derive(Clone, Debug, PartialEq)]
pub struct MeterSpec {
    /// Names its random stream.
    pub name: String,
    /// The traffic profile.
    pub params: MeterParams,
    /// The rate at which packets can come to it.
    pub rate: Bitrate,
}

/// A window control at the ingress of a label-switched path.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlSpec {
    /// Names its random stream.
    pub name: String,
    /// The label of the path.
    pub label: u32,
    /// The parameters of the control.
    pub control: WindowControl,
    /// The flows of the control, with the contracted rate and the bytes of data in a full segment of each.
    pub members: Vec<Member>,
    /// The links along the path, and the propagation delay from the ingress to each.
    pub links: Vec<(usize, Duration)>,
}

/// A flow under window control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// The flow.
    pub flow: FlowId,
    /// The contracted rate of the flow; `None` for best effort.
    pub rate: Option<Bitrate>,
    /// The meter that receives the flow's share, if it has one.
    pub meter: Option<usize>,
    /// Bytes of data in a full segment.
    pub segment: u32,
}

/// A stream: the packets that a selector matches, and their route.
#[derive(Clone, Debug)]
pub struct StreamSpec {
    /// The name of the stream in tables and metrics.
    pub name: String,
    /// The flow that blocks see the stream's packets as.
    pub flow: StreamFlow,
    /// The device that the stream's packets come from.
    pub device: usize,
    /// Which packets it takes, unless an earlier stream takes them.
    pub selector: Selector,
    /// Color and codepoint of its packets before they pass a meter.
    pub coloring: Coloring,
    /// Values to write into the headers before its packets.
    pub remark: Remark,
    /// The contracted rate of its flow.
    pub service: ServiceLevel,
    /// The label of its path; 0 is none.
    pub label: u32,
    /// The hops of its packets, in order.
    pub route: Vec<Hop>,
    /// The device that they leave by.
    pub leaves: usize,
}

/// A marker's reports to a sender: a datagram for each packet that it marks OUT (Yeom & Reddy 1999, section
/// 3.1), with the number of the report in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportSpec {
    /// The stream whose packets are reported.
    pub stream: usize,
    /// The device that leads to the sender.
    pub device: usize,
    /// How long a report takes to leave.
    pub delay: Duration,
    /// The marker's address and port.
    pub source: SocketAddr,
    /// The sender's address and port, of the same version.
    pub destination: SocketAddr,
}

/// The flow that blocks see the packets of a stream as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFlow {
    /// All are this flow's, in this direction.
    One(FlowId, Direction),
    /// Each five-tuple is a flow of its own, as at a router whose streams are classes of packets.
    FiveTuples,
}

impl From<FlowId> for StreamFlow {
    /// Returns the data of one flow.
    fn from(flow: FlowId) -> Self {
        Self::One(flow, Direction::Forward)
    }
}

/// Color and codepoint of packets before they pass a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coloring {
    /// The color of their codepoint: AFn1 green, AFn2 yellow, AFn3 red (RFC 2597); any other is yellow, which
    /// is OUT, as best effort is. The codepoint stays.
    Trust,
    /// As with `Trust`, but with this color where the codepoint has none.
    TrustOr(Color),
    /// This color, and this codepoint written into them.
    Fixed(Color, Dscp),
}

/// Values to write into the headers before a packet, where it has them; `None` leaves them as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remark {
    /// The priority code point of the outermost VLAN tag (IEEE 802.1Q), 0 to 7.
    pub priority: Option<u8>,
    /// The traffic class of the topmost MPLS label (RFC 5462), 0 to 7.
    pub traffic_class: Option<u8>,
}

/// One hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// A link with a queue.
    Link(usize),
    /// A wire.
    Wire(usize),
    /// A meter, which colors the packet, or drops it.
    Meter(usize),
    /// The ingress of a path, whose control sees this member's data.
    Data(usize, usize),
    /// As data, for the ACKs that come back.
    Ack(usize, usize),
}
