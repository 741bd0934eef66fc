//! The virtual FIFO of duplicates: what flat best effort would do with the same packets on the same link.

use super::super::{Admitted, PrecomputedFifo};
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::queue::owned;
use crate::units::UnitError;
use crate::{
    Bitrate, Bytes, Duration, Ecn, Environment, Header, Instant, ManagedQueue, Packet, Reason, Rng,
    Serializer, Taken,
};

/// The virtual queue.
#[derive(Clone, Debug)]
pub(super) enum Flat {
    /// The queue's AQM decides on arrival alone, so a duplicate's departure is known at once.
    Precomputed(Box<Duplicates>),
    /// The queue's AQM decides at departure, too, so duplicates are held and served in virtual time.
    Served(Box<Served>),
}

/// Duplicates whose departures are known on arrival, and the link that they share.
#[derive(Clone, Debug)]
pub(super) struct Duplicates {
    fifo: PrecomputedFifo,
    link: Serializer,
}

/// A virtual queue that holds its duplicates.
#[derive(Clone, Debug)]
pub(super) struct Served {
    queue: ManagedQueue<Duplicate>,
    link: Serializer,
    rate: Bitrate,
    /// When the link can take the next duplicate.
    free_at: Instant,
    /// By how much drops at departure have advanced all later departures since the run began.
    advanced: Duration,
}

#[derive(Clone, Debug)]
struct Duplicate {
    header: Header,
    ticket: u64,
}

impl Packet for Duplicate {
    fn header(&self) -> Header {
        self.header
    }
    fn arrive(&mut self, now: Instant) {
        self.header.arrive(now);
    }
    fn notify(&mut self) {
        self.header.notify();
    }
}

/// The AQM's decision on a duplicate as it left: `Ok` if marked, `Err` if dropped, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The number of the packet.
    pub ticket: u64,
    pub judged: Result<Reason, Reason>,
}

impl Flat {
    pub(super) fn new(aqm: AqmParams, environment: Environment, rng: Rng) -> Self {
        let Environment { rate } = environment;
        let link = Serializer::new(rate);
        if aqm.precomputable() {
            let fifo = PrecomputedFifo::new(aqm, environment, rng);
            return Self::Precomputed(Box::new(Duplicates { fifo, link }));
        }
        let queue = ManagedQueue::new(1, aqm, environment, rng);
        Self::Served(Box::new(Served { queue, link, rate, free_at: Instant::ZERO, advanced: Duration::ZERO }))
    }

    /// Gives the AQM these parameters from now on: see [`ManagedQueue::retune`].
    pub(super) fn retune(&mut self, aqm: AqmParams, environment: Environment) -> Result<(), UnitError> {
        match self {
            Self::Precomputed(duplicates) => duplicates.fifo.retune(aqm, environment),
            Self::Served(served) => served.queue.retune(aqm, environment),
        }
    }

    /// Sends a duplicate through the queue: when its service starts there, if no more drops at departure come
    /// before it, and whether it was marked on arrival.
    ///
    /// # Errors
    /// Why it is dropped.
    #[inline]
    pub(super) fn admit(
        &mut self,
        header: &mut Header,
        ticket: u64,
        now: Instant,
    ) -> Result<Admitted, Reason> {
        match self {
            Self::Precomputed(duplicates) => {
                let Duplicates { fifo, link } = &mut **duplicates;
                fifo.settle(now);
                let admitted = fifo.admit(header, link.busy_until(), now)?;
                link.transmit(header.size, now);
                Ok(admitted)
            }
            Self::Served(served) => served.admit(header, ticket, now),
        }
    }

    /// Serves what departs by now; calls `decided` for each duplicate that the AQM drops or marks then.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant, decided: impl FnMut(Decision)) {
        if let Self::Served(served) = self {
            served.settle(now, decided);
        }
    }

    /// Returns what to subtract from the times that [`admit`](Self::admit) has returned: it counts what drops
    /// at departure have saved.
    #[inline]
    pub(super) fn advanced(&self) -> Duration {
        match self {
            Self::Precomputed(_) => Duration::ZERO,
            Self::Served(served) => served.advanced,
        }
    }

    pub(super) fn gauges(&self) -> Vec<(String, f64)> {
        match self {
            Self::Precomputed(duplicates) => duplicates.fifo.gauges(),
            Self::Served(served) => owned(served.queue.gauges()),
        }
    }

    pub(super) fn on_message(&mut self, message: &Message) {
        match self {
            Self::Precomputed(duplicates) => duplicates.fifo.on_message(message),
            Self::Served(served) => served.queue.on_message(message),
        }
    }
}

impl Served {
    fn admit(&mut self, header: &mut Header, ticket: u64, now: Instant) -> Result<Admitted, Reason> {
        let ahead = self.rate.time_of(Bytes::new(self.queue.occupancy().bytes()));
        let service = self.free_at.max(now) + ahead + self.advanced;
        let duplicate = Duplicate { header: *header, ticket };
        let notified = self.queue.offer(0, duplicate, now).map_err(|(_, reason)| reason)?;
        if notified.is_some() {
            header.ecn = Ecn::Congested;
        }
        Ok(Admitted { service, notified })
    }

    fn settle(&mut self, now: Instant, mut decided: impl FnMut(Decision)) {
        while self.free_at <= now {
            let Some(head) = self.queue.head(0) else { return self.queue.settle_idle(self.free_at) };
            let at = self.free_at.max(head.header.arrived);
            let taken = self.queue.take(0, at).expect("its head was seen");
            let Taken { packet: Duplicate { header, ticket }, judged } = taken;
            match judged {
                Ok(notified) => {
                    self.free_at = self.link.transmit(header.size, at);
                    if let Some(reason) = notified {
                        decided(Decision { ticket, judged: Ok(reason) });
                    }
                }
                Err(reason) => {
                    self.free_at = at;
                    self.advanced = self.advanced + self.rate.time_of(Bytes::new(header.size.into()));
                    decided(Decision { ticket, judged: Err(reason) });
                }
            }
        }
    }
}
