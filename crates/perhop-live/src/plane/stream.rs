//! Streams and meters: what packets are to the blocks when they come in, and what colors them.

use perhop_core::marker::AfClass;
use perhop_core::meter::{Conditioner, Verdict};
use perhop_core::{Color, Direction, Dscp, FlowId, Header, Instant, Rng};

use super::Frame;
use super::report::Reports;
use crate::buffers::Slot;
use crate::counts::StreamCounts;
use crate::spec::{Coloring, MeterSpec, Remark, StreamFlow, StreamSpec};
use crate::wire::Fields;

/// The packets that take the same route from one device to another.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) name: String,
    pub(super) device: usize,
    flow: StreamFlow,
    template: Header,
    coloring: Coloring,
    pub(super) remark: Remark,
    first_step: u32,
    /// The reports about its packets that are marked OUT.
    pub(super) reports: Option<Reports>,
    pub(super) counts: StreamCounts,
}

impl Stream {
    pub(super) fn new(spec: StreamSpec, first_step: u32, counts: StreamCounts) -> Self {
        let StreamSpec { name, flow, device, coloring, remark, service, label, .. } = spec;
        let template = Header { service, label, ..Header::new(FlowId(0), 0) };
        Self { name, device, flow, template, coloring, remark, first_step, reports: None, counts }
    }

    /// Returns how many flows there are if its packets belong to the last of them.
    pub(super) fn flows(&self) -> usize {
        match self.flow {
            StreamFlow::One(flow, _) => flow.0 as usize + 1,
            StreamFlow::FiveTuples => 0,
        }
    }

    /// Returns the packet as blocks see it, at the start of its route.
    pub(super) fn admit(&mut self, fields: &Fields, slot: Slot, number: u32, now: Instant) -> Frame {
        let (color, dscp) = match self.coloring {
            Coloring::Fixed(color, dscp) => (color, dscp),
            Coloring::Trust => (color_of(fields.dscp), fields.dscp),
            Coloring::TrustOr(color) => {
                (AfClass::of(fields.dscp).map_or(color, |(_, color)| color), fields.dscp)
            }
        };
        self.counts.arrive(fields.length);
        let (flow, direction) = match self.flow {
            StreamFlow::One(flow, direction) => (flow, direction),
            StreamFlow::FiveTuples => (fields.flow(), Direction::Forward),
        };
        let (size, ecn) = (fields.length, fields.ecn);
        let header = Header { arrived: now, flow, direction, size, color, dscp, ecn, ..self.template };
        Frame { header, slot, stream: number, step: self.first_step, segment: None }
    }
}

/// Returns the drop precedence of an Assured Forwarding codepoint (RFC 2597, section 6); any other codepoint
/// is out of profile.
pub fn color_of(dscp: Dscp) -> Color {
    AfClass::of(dscp).map_or(Color::Yellow, |(_, color)| color)
}

/// A meter with its marker, its policer and its random stream.
#[derive(Clone, Debug)]
pub(super) struct Metering {
    pub(super) spec: MeterSpec,
    pub(super) conditioner: Conditioner,
}

impl Metering {
    pub(super) fn new(spec: MeterSpec, seed: u64) -> Self {
        let conditioner = Conditioner::new(&spec.params, spec.rate, Rng::stream(seed, &spec.name));
        Self { spec, conditioner }
    }

    /// Measures a packet and writes its color and codepoint. Says whether it goes on.
    #[inline]
    pub(super) fn judge(&mut self, header: &mut Header, now: Instant) -> Verdict {
        let verdict = self.conditioner.judge(header, now);
        self.spec.params.af().mark(header, verdict.color);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assured_forwarding_codepoints_tell_the_drop_precedence() {
        let color = |codepoint| color_of(Dscp::new(codepoint).unwrap());
        for class in 1..=4u8 {
            let precedences = [1, 2, 3].map(|precedence| color(class << 3 | precedence << 1));
            assert_eq!(precedences, [Color::Green, Color::Yellow, Color::Red]);
        }
        for other in [0, 46, 0b10_1010, 0b00_1011] {
            assert_eq!(color(other), Color::Yellow, "codepoint {other}");
        }
    }
}
