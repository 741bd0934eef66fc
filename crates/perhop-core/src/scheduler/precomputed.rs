//! A FIFO whose departures are precomputed: when a packet is admitted, the start of its service is already
//! known.
//!
//! It holds no packets, only their departure times. The batched engine of the simulator is built on it, and
//! so is the virtual queue of [`Dsd`](super::Dsd). Its AQM must be
//! [`PRECOMPUTABLE`](crate::aqm::AqmBlock::PRECOMPUTABLE).

#![expect(clippy::inline_always, reason = "a simulator's loop over packets is made of these calls")]

use crate::aqm::{AnyAqm, Aqm, AqmParams};
use crate::control::Message;
use crate::queue::owned;
use crate::units::UnitError;
use crate::{ClassCounters, Color, Context, Environment, Header, Instant, Reason, Rng};

/// A FIFO whose departures follow from its arrivals: its AQM with its random stream, and the departures.
#[derive(Clone, Debug)]
pub struct PrecomputedFifo {
    aqm: AnyAqm,
    rng: Rng,
    departures: Departures,
}

/// The departures of the packets in a [`PrecomputedFifo`], and its counters.
#[derive(Clone, Debug)]
pub struct Departures {
    waiting: Waiting,
    counters: ClassCounters,
    /// The AQM knows that the server is idle.
    idle: bool,
}

/// An admitted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// When its service starts.
    pub service: Instant,
    /// Why it was marked as having met congestion, if it was; its header carries the mark.
    pub notified: Option<Reason>,
}

/// A packet that waits until its service starts.
#[derive(Clone, Copy, Debug)]
struct Departure {
    service: Instant,
    size: u16,
    color: Color,
}

/// Packets that wait, in order: a ring.
#[derive(Clone, Debug)]
struct Waiting {
    /// As many as a power of two, of which those numbered `first..end`, modulo that, are in use. The one at
    /// `end` never is, and says that its service never starts.
    slots: Vec<Departure>,
    first: usize,
    end: usize,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { slots: vec![Self::EMPTY; 2], first: 0, end: 0 }
    }
}

impl Waiting {
    const EMPTY: Departure = Departure { service: Instant::NEVER, size: 0, color: Color::Green };

    #[inline]
    fn slot(&self, number: usize) -> usize {
        number & (self.slots.len() - 1)
    }

    #[inline(always)]
    fn push(&mut self, packet: Departure) {
        let (slot, next) = (self.slot(self.end), self.slot(self.end + 1));
        self.slots[slot] = packet;
        self.slots[next].service = Instant::NEVER;
        self.end += 1;
        if self.end - self.first == self.slots.len() - 1 {
            self.grow();
        }
    }

    /// Removes the packets whose service starts by `now`, which must be before the end of time. `each` gets
    /// the first packet in any case, with whether it leaves: between two arrivals mostly one packet leaves or
    /// none, at random, and handling both without a branch is cheaper than a wrong guess.
    #[inline(always)]
    fn leave(&mut self, now: Instant, mut each: impl FnMut(Departure, bool)) {
        debug_assert!(now < Instant::NEVER);
        let first = self.slots[self.slot(self.first)];
        let goes = first.service <= now;
        each(first, goes);
        self.first += usize::from(goes);
        loop {
            let packet = self.slots[self.slot(self.first)];
            if packet.service > now {
                return;
            }
            each(packet, true);
            self.first += 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let first = self.slot(self.first);
        self.slots.rotate_left(first);
        (self.first, self.end) = (0, self.end - self.first);
        self.slots.resize(2 * self.slots.len(), Self::EMPTY);
    }
}

impl PrecomputedFifo {
    /// An empty queue under the AQM of these parameters, which draws from `rng`.
    pub fn new(aqm: AqmParams, environment: Environment, rng: Rng) -> Self {
        debug_assert!(aqm.precomputable(), "{} decides at departure", aqm.name());
        let departures =
            Departures { waiting: Waiting::default(), counters: ClassCounters::default(), idle: true };
        Self { aqm: aqm.build(environment), rng, departures }
    }

    /// The AQM, its random stream and the departures, for work on many packets.
    pub fn parts(&mut self) -> (&mut AnyAqm, &mut Rng, &mut Departures) {
        (&mut self.aqm, &mut self.rng, &mut self.departures)
    }

    /// See [`Departures::settle`].
    #[inline]
    pub fn settle(&mut self, now: Instant) {
        // A service that never starts does not start at the end of time either.
        self.departures.settle(now.min(Instant::from_nanos(u64::MAX - 1)));
    }

    /// See [`Departures::admit`].
    ///
    /// # Errors
    /// Why the packet is dropped.
    #[inline]
    pub fn admit(
        &mut self,
        header: &mut Header,
        busy_until: Instant,
        now: Instant,
    ) -> Result<Admitted, Reason> {
        let Self { aqm, rng, departures } = self;
        departures.admit(aqm, header, busy_until, &mut Context { now, rng })
    }

    /// What waits and what went through.
    pub fn counters(&self) -> &ClassCounters {
        &self.departures.counters
    }

    /// The AQM has these parameters from now on: see [`ManagedQueue::retune`](crate::ManagedQueue::retune).
    ///
    /// # Errors
    /// The parameters are of another AQM, or the key that cannot change; nothing has changed then.
    pub fn retune(&mut self, aqm: AqmParams, environment: Environment) -> Result<(), UnitError> {
        self.aqm.retune(aqm, environment)
    }

    /// A control message for the AQM.
    pub fn on_message(&mut self, message: &Message) {
        self.aqm.on_message(message);
    }

    /// Internal state of the AQM, for probes.
    pub fn gauges(&self) -> Vec<(String, f64)> {
        owned(self.aqm.gauges())
    }
}

impl Departures {
    /// Removes every packet whose service began by now, which is not the end of time.
    #[inline(always)]
    pub fn settle(&mut self, now: Instant) {
        self.waiting.leave(now, |Departure { size, color, .. }, goes| {
            self.counters.occupancy.remove_if(goes, color, size);
            self.counters.through.send_if(goes, color);
        });
    }

    /// Takes a packet if the AQM admits it, and computes when its service starts. [`settle`](Self::settle)
    /// first; `busy_until` is when the server has sent all earlier packets.
    ///
    /// # Errors
    /// Why the packet is dropped.
    #[inline(always)]
    pub fn admit<A: Aqm>(
        &mut self,
        aqm: &mut A,
        header: &mut Header,
        busy_until: Instant,
        cx: &mut Context<'_>,
    ) -> Result<Admitted, Reason> {
        let now = cx.now;
        if !self.idle && busy_until <= now {
            aqm.on_idle(busy_until);
            self.idle = true;
        }
        let Self { waiting, counters, idle } = self;
        let ClassCounters { occupancy, through } = counters;
        let notified =
            through.arrival(header, now, |header| aqm.on_arrival(header, occupancy, cx).apply(header))?;
        *idle = false;
        let Header { size, color, .. } = *header;
        let service = busy_until.max(now);
        if service > now {
            occupancy.add(color, size);
            waiting.push(Departure { service, size, color });
        } else {
            through.send(color);
        }
        Ok(Admitted { service, notified })
    }
}
