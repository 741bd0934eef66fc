//! What a data plane is made of: links with queues, meters, and the ways that streams take through them.

use perhop_core::control::WindowControl;
use perhop_core::meter::MeterParams;
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Color, Dscp, Duration, FlowId, Instant, ServiceLevel};

use crate::classifier::Selector;

/// A data plane.
#[derive(Clone, Debug)]
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
    /// What takes packets from one place to another without dropping any.
    pub wires: Vec<WireSpec>,
    /// Meters, each with the marker behind it.
    pub meters: Vec<MeterSpec>,
    /// Window controls of label-switched paths.
    pub controls: Vec<ControlSpec>,
    /// Streams of packets, in the order in which they are asked whether a packet is theirs.
    pub streams: Vec<StreamSpec>,
}

/// A link with a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Its name, which also names its random streams.
    pub name: String,
    /// Its rate.
    pub rate: Bitrate,
    /// Its propagation delay.
    pub delay: Duration,
    /// Its queue.
    pub queue: SchedulerParams,
}

/// Takes packets one after the other to its far end; holds as many as come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireSpec {
    /// Its rate.
    pub rate: Bitrate,
    /// Its propagation delay.
    pub delay: Duration,
}

/// A meter.
#[derive(Clone, Debug, PartialEq)]
pub struct MeterSpec {
    /// Names its random stream.
    pub name: String,
    /// What was sold.
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
    /// How it steers.
    pub control: WindowControl,
    /// Its flows, with what each was sold and the bytes of data in a full segment of each.
    pub members: Vec<Member>,
    /// The links along the path, and the propagation delay from the ingress to each.
    pub links: Vec<(usize, Duration)>,
}

/// A flow under window control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// The flow.
    pub flow: FlowId,
    /// What it was sold; best effort has nothing.
    pub rate: Option<Bitrate>,
    /// The meter that is told of its share, if it has one.
    pub meter: Option<usize>,
    /// Bytes of data in a full segment.
    pub segment: u32,
}

/// A stream: packets that are told apart by their fields, and the way they take.
#[derive(Clone, Debug)]
pub struct StreamSpec {
    /// Its name in tables and metrics.
    pub name: String,
    /// The flow that blocks see it as.
    pub flow: FlowId,
    /// The device that its packets come from.
    pub device: usize,
    /// Which packets it takes; those of an earlier stream it does not see.
    pub selector: Selector,
    /// What its packets are before a meter has seen them.
    pub coloring: Coloring,
    /// The service that its flow was sold.
    pub service: ServiceLevel,
    /// The label of its path; 0 is none.
    pub label: u32,
    /// Where its packets go, one place after the other, and out of which device in the end.
    pub route: Vec<Hop>,
    /// The device that they leave by.
    pub leaves: usize,
}

/// What color and codepoint packets have before a meter has seen them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coloring {
    /// The color that their codepoint stands for: AFn1 green, AFn2 yellow, AFn3 red (RFC 2597); any other is yellow, which
    /// is OUT, as best effort is. The codepoint stays.
    Trust,
    /// This color, and this codepoint written into them.
    Fixed(Color, Dscp),
}

/// A place on a way.
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
    /// The same, for acknowledgements on their way back.
    Ack(usize, usize),
}
