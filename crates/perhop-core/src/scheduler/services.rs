//! The books of the two services of Asymmetric Best-Effort, which its schedulers keep alike.

use crate::abe::Service;
use crate::aqm::Reason;
use crate::{Header, Ledger, Occupancy};

/// What waits and what went through, by service and in all.
#[derive(Clone, Debug)]
pub(super) struct Books {
    ledgers: [Ledger; 2],
    /// Everything that waits.
    pub(super) total: Occupancy,
}

impl Books {
    pub(super) fn new() -> Self {
        Self { ledgers: [Ledger::default(), Ledger::default()], total: Occupancy::EMPTY }
    }

    /// The class that a packet belongs to.
    #[inline]
    pub(super) fn class_of(packet: &Header) -> usize {
        Service::of(packet.dscp).index()
    }

    #[inline]
    fn of(&mut self, packet: &Header) -> &mut Ledger {
        &mut self.ledgers[Self::class_of(packet)]
    }

    /// A packet came.
    #[inline]
    pub(super) fn arrive(&mut self, packet: &Header) {
        self.of(packet).counters.arrive(packet.color);
    }

    /// It was not let in.
    #[inline]
    pub(super) fn refuse(&mut self, packet: &Header, reason: Reason) {
        self.of(packet).counters.drop(packet.color, reason);
    }

    /// It was let in, with word of congestion if there was a reason.
    #[inline]
    pub(super) fn admit(&mut self, packet: &Header, notified: Option<Reason>) {
        self.total.add(packet.color, packet.size);
        self.of(packet).admit(packet, notified);
    }

    /// One that waited goes on for transmission.
    #[inline]
    pub(super) fn send(&mut self, packet: &Header) {
        self.total.remove(packet.color, packet.size);
        self.of(packet).send(packet);
    }

    /// One that waited is dropped after all.
    pub(super) fn expel(&mut self, packet: &Header, reason: Reason) {
        self.total.remove(packet.color, packet.size);
        self.of(packet).expel(packet, reason);
    }

    /// Those of each service.
    pub(super) fn ledgers(&self) -> &[Ledger; 2] {
        &self.ledgers
    }
}

/// The part of a discipline with [`Books`] that does not depend on its order.
macro_rules! books_of_services {
    () => {
        fn occupancy(&self) -> &Occupancy {
            &self.books.total
        }
        fn ledgers(&self) -> &[Ledger] {
            self.books.ledgers()
        }
        fn class_name(&self, class: usize) -> &str {
            Service::ALL[class].name()
        }
        #[inline]
        fn class_of(&self, packet: &Header) -> usize {
            Books::class_of(packet)
        }
    };
}
pub(super) use books_of_services;
