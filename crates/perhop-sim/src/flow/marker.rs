//! Markers: a meter, and the codepoints that it writes (RFC 2475).

#![expect(clippy::inline_always, reason = "the packet's path is one function: a tenth of its time")]

use perhop_core::control::Message;
use perhop_core::meter::{Conditioner, MeterParams, Verdict};
use perhop_core::units::UnitError;
use perhop_core::{Bitrate, Header, Instant, Rng};

use crate::network::{FlowSpec, Marking, SharedMeter};
use crate::packet::Marks;

/// A meter, a flow's own or a shared one, what it does to packets of each color, and its codepoints.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    conditioner: Conditioner,
    marks: &'static Marks,
}

impl Marker {
    /// Makes the meter of a profile, to which packets can come at this rate.
    pub(super) fn new(params: &MeterParams, rate: Bitrate, rng: Rng) -> Self {
        Self { conditioner: Conditioner::new(params, rate, rng), marks: Marks::of(params.af()) }
    }

    /// Makes a meter that several flows share.
    pub(crate) fn shared(spec: &SharedMeter, seed: u64) -> Self {
        let rng = Rng::stream(seed, &format!("profiles/{}/marker", spec.name));
        Self::new(&spec.params, Bitrate::MAX, rng)
    }

    /// Returns the verdict on a packet, and the codepoints of colors.
    #[inline(always)]
    pub(super) fn judge(&mut self, header: Header, now: Instant) -> (Verdict, &'static Marks) {
        (self.conditioner.judge(&header, now), self.marks)
    }

    /// Gives the meter these parameters, and the rate at which packets can come to it; it keeps its tokens
    /// and what it has measured.
    ///
    /// # Errors
    /// The key that cannot change; nothing has changed then.
    pub(crate) fn retune(
        &mut self,
        params: &MeterParams,
        rate: Bitrate,
        now: Instant,
    ) -> Result<(), UnitError> {
        self.conditioner.retune(params, rate, now)?;
        self.marks = Marks::of(params.af());
        Ok(())
    }

    /// Gives a control message to the meter.
    pub(super) fn on_message(&mut self, message: &Message) {
        self.conditioner.on_message(message);
    }
}

/// Returns the rate at which packets can leave a flow's host.
fn host_rate(spec: &FlowSpec) -> Bitrate {
    spec.access.as_ref().map_or(Bitrate::MAX, |access| access.rate)
}

/// Where a flow's packets are marked, and by what.
#[derive(Clone, Debug)]
pub(crate) enum MarkingPoint {
    Nowhere,
    Host(Box<Marker>),
    FirstRouter(Box<Marker>),
    /// At the first router, by the meter of this number, which flows share.
    Edge(usize),
}

impl MarkingPoint {
    pub(super) fn new(spec: &FlowSpec, rng: impl FnOnce() -> Rng) -> Self {
        let host_rate = host_rate(spec);
        match &spec.marking {
            Marking::None => Self::Nowhere,
            Marking::Host(params) => Self::Host(Box::new(Marker::new(params, host_rate, rng()))),
            Marking::Ingress(params) => Self::FirstRouter(Box::new(Marker::new(params, Bitrate::MAX, rng()))),
            Marking::Edge(number) => Self::Edge(*number),
        }
    }

    /// Gives the flow's own meter the parameters of this specification; of a shared one nothing changes.
    ///
    /// # Errors
    /// The key that cannot change; nothing has changed then.
    pub(super) fn retune(&mut self, spec: &FlowSpec, now: Instant) -> Result<(), UnitError> {
        match (self, &spec.marking) {
            (Self::Host(marker), Marking::Host(params)) => marker.retune(params, host_rate(spec), now),
            (Self::FirstRouter(marker), Marking::Ingress(params)) => marker.retune(params, Bitrate::MAX, now),
            _ => Ok(()),
        }
    }
}
