//! The replay through the data plane, which forwards the packets' bytes.

use perhop_core::marker::AfClass;
use perhop_core::measure::PortView;
use perhop_core::medium::Medium;
use perhop_core::{Bitrate, Dscp, Duration, Ecn, FlowId, Instant, ServiceLevel};
use perhop_live::wire;
use perhop_live::{
    Coloring, HEAD, Head, Hop, LinkSpec, Loss, Lost, MeterSpec, Plane, PlaneSpec, Remark, Selector, Sink,
    StreamFlow, StreamSpec,
};

use crate::arrivals::Arrival;
use crate::driver::{Driver, METER};
use crate::error::ReplayError;
use crate::ledger::{Forwarded, Ledger, Tag};
use crate::request::{Target, TargetLink};

/// Packets that may wait, each with room for the longest IP packet. Memory is used only as packets need it.
const BUFFERS: u32 = 1 << 14;

/// A data plane between two devices: packets come from the first and leave by the second.
#[derive(Debug)]
pub(crate) struct Through {
    plane: Plane,
    metered: bool,
}

impl Through {
    pub(crate) fn new(target: &Target, seed: u64) -> Self {
        let meters = target.meter.iter().map(|params| MeterSpec {
            name: METER.into(),
            params: params.clone(),
            rate: Bitrate::MAX,
        });
        let links = target.link.iter().map(|link| {
            let TargetLink { name, rate, queue, meters } = link.clone();
            LinkSpec { name, rate, delay: Duration::ZERO, queue, meters, medium: Medium::default() }
        });
        let hops = [target.meter.as_ref().map(|_| Hop::Meter(0)), target.link.as_ref().map(|_| Hop::Link(0))];
        let spec = PlaneSpec {
            devices: 2,
            mtu: u16::MAX,
            buffers: BUFFERS,
            window: (Instant::ZERO, Instant::NEVER),
            links: links.collect(),
            meters: meters.collect(),
            streams: vec![StreamSpec {
                name: "replay".into(),
                flow: StreamFlow::FiveTuples,
                device: 0,
                selector: Selector::default(),
                coloring: Coloring::Trust,
                remark: Remark::default(),
                service: ServiceLevel::NONE,
                label: 0,
                route: hops.into_iter().flatten().collect(),
                leaves: 1,
            }],
            ..PlaneSpec::default()
        };
        Self { plane: Plane::new(spec, seed), metered: target.meter.is_some() }
    }
}

impl Driver for Through {
    fn arrive(&mut self, arrival: &Arrival<'_>, tag: Tag, ledger: &mut Ledger) -> Result<(), ReplayError> {
        let mut sink = Counting { ledger, metered: self.metered };
        // What is due gives buffers back.
        self.plane.advance(arrival.at, &mut sink);
        let Some((slot, head, room)) = self.plane.room() else {
            let text = format!(
                "more than {BUFFERS} packets wait, and the data plane has room for so many; shorten the queue"
            );
            return Err(ReplayError::Target(text));
        };
        *head = head_of(&tag);
        room[..arrival.bytes.len()].copy_from_slice(arrival.bytes);
        self.plane.arrive(0, slot, arrival.bytes.len(), arrival.at, &mut sink);
        Ok(())
    }

    fn finish(&mut self, ledger: &mut Ledger) -> Result<(), ReplayError> {
        let mut sink = Counting { ledger, metered: self.metered };
        while self.plane.next() != Instant::NEVER {
            self.plane.advance(self.plane.next(), &mut sink);
        }
        self.plane.balance().map_err(|problem| ReplayError::Target(format!("perhop is at fault: {problem}")))
    }

    fn view(&self) -> Option<PortView<'_>> {
        self.plane.ports().next().map(|(_, _, view)| view)
    }
}

/// Returns a tag as what a device keeps with a packet.
fn head_of(tag: &Tag) -> Head {
    let mut head: Head = [0; HEAD];
    head[..8].copy_from_slice(&tag.row.to_le_bytes());
    head[8..16].copy_from_slice(&tag.arrived.as_nanos().to_le_bytes());
    head[16..20].copy_from_slice(&tag.flow.0.to_le_bytes());
    head[20..22].copy_from_slice(&tag.size.to_le_bytes());
    // Behind what the classifier reads.
    head[HEAD - 2..].copy_from_slice(&[tag.dscp.get(), tag.ecn as u8]);
    head
}

fn tag_of(head: &Head) -> Tag {
    let long = |from: usize| u64::from_le_bytes(std::array::from_fn(|place| head[from + place]));
    Tag {
        row: long(0),
        arrived: Instant::from_nanos(long(8)),
        flow: FlowId(u32::from_le_bytes([head[16], head[17], head[18], head[19]])),
        size: u16::from_le_bytes([head[20], head[21]]),
        dscp: Dscp::new(head[HEAD - 2]).unwrap_or_default(),
        ecn: [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested][usize::from(head[HEAD - 1] & 3)],
    }
}

/// Counts what leaves the data plane and what it loses.
struct Counting<'a> {
    ledger: &'a mut Ledger,
    metered: bool,
}

impl Sink for Counting<'_> {
    fn deliver(&mut self, _device: usize, head: &Head, packet: &[u8], due: Instant) {
        let Ok(fields) = wire::parse(packet) else { return };
        // The meter's marker has written the color.
        let color = AfClass::of(fields.dscp).map(|(_, color)| color).filter(|_| self.metered);
        self.ledger.forward(&tag_of(head), &Forwarded { at: due, dscp: fields.dscp, ecn: fields.ecn, color });
    }

    fn lose(&mut self, lost: &Lost<'_>, now: Instant) {
        if let Loss::Dropped(reason) = lost.why {
            self.ledger.lose(&tag_of(lost.head), now, reason, lost.color.filter(|_| self.metered));
        }
    }
}
