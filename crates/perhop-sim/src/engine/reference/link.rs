//! Links that flows share: a port with a queue, or a wire that queues without a limit.

use perhop_core::control::Message;
use perhop_core::measure::{PortView, RateChange};
use perhop_core::meter::AggregateMeters;
use perhop_core::units::UnitError;
use perhop_core::{Bitrate, Duration, Instant, Port, Streams};

use super::pending::Pending;
use crate::engine::retuning::retuning;
use crate::network::LinkSpec;
use crate::packet::SimPacket;
use crate::timed::Timed;
use crate::wire::Wire;
use perhop_core::medium::MediumState;

/// One direction of a link that flows share.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Packets on their way to the queue.
    pub(super) arrivals: Pending<SimPacket>,
    pub(super) queue: Queue,
    /// How the link changes, and which packets it loses and delays; `None` if it does none of these.
    pub(super) medium: Option<Box<MediumState>>,
}

#[derive(Clone, Debug)]
pub(super) enum Queue {
    /// A queue without a limit that is not measured; the link never changes.
    Unlimited(Wire),
    Managed(Box<Managed>),
}

#[derive(Clone, Debug)]
pub(super) struct Managed {
    pub(super) port: Port<SimPacket>,
    /// The rate that its scheduler shares among its queues.
    shared: Bitrate,
    pub(super) meters: AggregateMeters,
    /// The times at which the port is to be served.
    pub(super) services: Pending<Instant>,
    pub(super) delay: Duration,
}

/// A time at which a port is to be served.
impl Timed for Instant {
    fn at(&self) -> Instant {
        *self
    }
    fn rank(&self) -> u64 {
        0
    }
}

impl Link {
    /// An idle link; statistics cover the given window.
    pub(super) fn new(spec: &LinkSpec, seed: u64, window: (Instant, Instant)) -> Self {
        let path = format!("links/{}", spec.name);
        let streams = Streams { seed, path: &path };
        let medium = MediumState::new(&spec.medium, streams);
        let queue = match &spec.queue {
            None if spec.medium.is_steady() => Queue::Unlimited(Wire::new(spec.rate, spec.delay)),
            queue => {
                let mut port =
                    Port::new(queue.clone().unwrap_or_else(LinkSpec::unlimited), spec.rate, streams, window);
                spec.medium.note_rates(port.rates());
                let meters = AggregateMeters::new(&spec.meters, streams);
                let services = Pending::default();
                let (shared, delay) = (spec.rate, spec.delay);
                Queue::Managed(Box::new(Managed { port, shared, meters, services, delay }))
            }
        };
        Self { arrivals: Pending::default(), queue, medium }
    }

    /// Returns the next time at which a packet comes, the port is to be served, or the link changes.
    pub(super) fn next(&self) -> Option<Instant> {
        let service = match &self.queue {
            Queue::Unlimited(_) => None,
            Queue::Managed(managed) => managed.services.next(),
        };
        let change = self.medium.as_ref().and_then(|medium| medium.next());
        self.arrivals.next().into_iter().chain(service).chain(change).min()
    }

    /// Hands a control message to the AQM at which the packets of this path arrive.
    pub(super) fn on_message(&mut self, label: u32, message: &Message) {
        if let Queue::Managed(managed) = &mut self.queue {
            managed.port.on_message(label, message);
        }
    }

    /// Gives the queue and the meters the parameters of `after`, in place of those of `before`.
    ///
    /// # Errors
    /// The key that cannot change; the link must not be used any more then.
    pub(super) fn retune(
        &mut self,
        before: &LinkSpec,
        after: &LinkSpec,
        now: Instant,
    ) -> Result<(), UnitError> {
        let Queue::Managed(managed) = &mut self.queue else { return Ok(()) };
        if let Some(to) = retuning(before, after, &mut managed.shared, now) {
            managed.port.retune(&to).map_err(|problem| problem.below("queue"))?;
        }
        let meters = managed.meters.retune((&before.meters, &after.meters), now);
        meters.map_err(|problem| problem.below("meters"))
    }

    /// Sets the rate and the delay, for the packets that the link begins to send from now on.
    pub(super) fn change(&mut self, rate: Bitrate, delay: Duration, now: Instant) {
        match &mut self.queue {
            Queue::Unlimited(wire) => *wire = wire.changed(rate, delay),
            Queue::Managed(managed) => {
                managed.port.set_rate(rate);
                managed.port.rates().add(now, RateChange::Rate(rate));
                managed.delay = delay;
            }
        }
    }

    /// Returns a sample of a measured link.
    pub(super) fn view(&self) -> PortView<'_> {
        match &self.queue {
            Queue::Managed(managed) => PortView {
                meters: managed.meters.counts(),
                transit: self.medium.as_ref().map(|medium| medium.counts()).unwrap_or_default(),
                ..managed.port.view()
            },
            Queue::Unlimited(_) => unreachable!("measured links have a queue under an AQM"),
        }
    }

    /// Ends the run: what still waits has waited until now.
    pub(super) fn finish(&mut self, now: Instant) {
        if let Queue::Managed(managed) = &mut self.queue {
            managed.port.finish(now);
        }
    }
}
