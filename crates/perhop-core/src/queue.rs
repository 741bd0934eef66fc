//! A queue under active queue management: the packets, their counters, the AQM and the AQM's random stream.
//!
//! Every scheduler is composed of these. A [`ManagedQueue`] applies the AQM's verdicts, so a scheduler only
//! decides which queue, or which class within a queue, sends next.

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

use std::collections::VecDeque;
use std::slice;

use crate::aqm::{AnyAqm, Aqm, AqmParams};
use crate::control::Message;
use crate::units::UnitError;
use crate::{
    ClassCounters, Context, Environment, Header, Instant, Occupancy, Packet, PrefetchStage, Reason, Rng,
    prefetch, prefetch_start,
};

/// The result of asking a discipline for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeued<P> {
    /// Send this packet of this class now.
    Sent(P, usize),
    /// This packet was dropped from the queue; ask again.
    Dropped(P, Reason),
    /// Nothing to send before the given time, or, if none, before the next arrival.
    Wait(Option<Instant>),
}

/// Packets at the head of a class that may be served in one visit, and are prefetched.
const SERVED: usize = 3;

/// Packets under one AQM, in order of arrival within each class. Most queues have one class; where a
/// scheduler serves several classes under a common AQM, the AQM sees them as one queue.
///
/// The fields are in this order so that what most packets need is at the [start](PrefetchStage::Queues).
#[derive(Clone, Debug)]
#[repr(C)]
pub struct ManagedQueue<P> {
    classes: Vec<Class<P>>,
    needs_head: bool,
    needs_ahead: bool,
    /// The AQM also decides at departure.
    judges_departures: bool,
    /// The AQM knows that the queue is idle.
    idle: bool,
    rng: Rng,
    /// What waits in all classes: what the AQM sees.
    occupancy: Occupancy,
    aqm: AnyAqm,
    /// The place of the queue, for an AQM whose parameters change.
    environment: Environment,
}

#[derive(Clone, Debug)]
struct Class<P> {
    packets: VecDeque<P>,
    counters: ClassCounters,
}

/// A packet that was taken from the head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<P> {
    /// The packet.
    pub packet: P,
    /// `Ok` if it is to be sent, with the reason if it was marked just now; `Err` with the reason if the AQM
    /// drops it.
    pub judged: Result<Option<Reason>, Reason>,
}

impl<P> Taken<P> {
    /// Returns this as a discipline's answer, for a packet of this class.
    #[inline]
    pub fn dequeued(self, class: usize) -> Dequeued<P> {
        match self.judged {
            Ok(_) => Dequeued::Sent(self.packet, class),
            Err(reason) => Dequeued::Dropped(self.packet, reason),
        }
    }
}

impl<P: Packet> ManagedQueue<P> {
    /// Returns an empty queue of so many classes under the AQM of these parameters, which draws from `rng`.
    pub fn new(classes: usize, aqm: AqmParams, environment: Environment, rng: Rng) -> Self {
        let class = || Class { packets: VecDeque::new(), counters: ClassCounters::default() };
        Self {
            classes: std::iter::repeat_with(class).take(classes).collect(),
            occupancy: Occupancy::EMPTY,
            needs_head: aqm.needs_head(),
            needs_ahead: aqm.needs_ahead(),
            judges_departures: !aqm.precomputable(),
            aqm: aqm.build(environment),
            rng,
            idle: true,
            environment,
        }
    }

    /// Adds a packet at the end of its class if the AQM admits it. Returns the reason if the packet is
    /// marked.
    ///
    /// # Errors
    /// The packet and why it is dropped.
    #[inline(always)]
    pub fn offer(
        &mut self,
        class: usize,
        mut packet: P,
        now: Instant,
    ) -> Result<Option<Reason>, (P, Reason)> {
        let Self { classes, occupancy, aqm, needs_head, rng, idle, .. } = self;
        let Class { packets, counters } = &mut classes[class];
        packet.arrive(now);
        let mut header = packet.header();
        crate::trace::begin();
        let judged = counters.through.arrival(&mut header, now, |header| {
            aqm.on_arrival(header, occupancy, &mut Context { now, rng }).apply(header)
        });
        if crate::trace::is_recording() && judged != Ok(None) {
            crate::trace::end(aqm.name(), aqm.gauges(), occupancy.packets(), occupancy.bytes());
        }
        let notified = match judged {
            Ok(notified) => notified,
            Err(reason) => return Err((packet, reason)),
        };
        if notified.is_some() {
            packet.notify();
        }
        occupancy.add(header.color, header.size);
        counters.occupancy.add(header.color, header.size);
        packets.push_back(packet);
        *idle = false;
        if *needs_head {
            occupancy.set_head(oldest(classes));
        }
        Ok(notified)
    }

    /// See [`Discipline::count_held`](crate::scheduler::Discipline::count_held).
    pub fn count_held(&mut self, packet: &Header, waits: bool) {
        self.occupancy.count(waits, packet);
    }

    /// Counts a packet that comes to a class and that something before the AQM, which does not see it, drops.
    /// Returns the packet.
    pub fn refuse(&mut self, class: usize, mut packet: P, now: Instant, reason: Reason) -> P {
        let counters = &mut self.classes[class].counters;
        packet.arrive(now);
        let _ = counters.through.arrival(&mut packet.header(), now, |_| Err(reason));
        packet
    }

    /// Returns whether the AQM asks how much is served before a packet that arrives.
    pub fn needs_ahead(&self) -> bool {
        self.needs_ahead
    }

    /// Leaves the order of service out: the discipline does not [say](Self::set_overtaken), and the AQM [does
    /// not ask](Self::needs_ahead), what packets overtake.
    pub fn leave_order_out(&mut self) {
        self.occupancy.leave_order_out();
    }

    /// Says to the AQM, for the next [`offer`](Self::offer), how many of the packets that wait the new one
    /// overtakes.
    #[inline]
    pub fn set_overtaken(&mut self, packets: u32) {
        self.occupancy.set_overtaken(packets);
    }

    /// Takes the head of a class, if it has one, after the AQM's verdict on its departure.
    #[inline(always)]
    pub fn take(&mut self, class: usize, now: Instant) -> Option<Taken<P>> {
        let Self { classes, occupancy, aqm, needs_head, judges_departures, rng, .. } = self;
        let mut packet = classes[class].packets.pop_front()?;
        if *needs_head {
            occupancy.set_head(oldest(classes));
        }
        let counters = &mut classes[class].counters;
        let mut header = packet.header();
        occupancy.remove(header.color, header.size);
        counters.occupancy.remove(header.color, header.size);
        crate::trace::begin();
        let judged = if *judges_departures {
            aqm.on_departure(&header, occupancy, &mut Context { now, rng }).apply(&mut header)
        } else {
            Ok(None)
        };
        if crate::trace::is_recording() && judged != Ok(None) {
            crate::trace::end(aqm.name(), aqm.gauges(), occupancy.packets(), occupancy.bytes());
        }
        match judged {
            Ok(notified) => {
                if let Some(reason) = notified {
                    packet.notify();
                    counters.through.notify(header.color, reason);
                }
                counters.through.send(header.color);
            }
            Err(reason) => counters.through.drop(header.color, reason),
        }
        Some(Taken { packet, judged })
    }

    /// Notes that the link asks for a packet at `now`, so the last one taken has been transmitted or dropped:
    /// if nothing waits, the AQM learns that the queue is idle.
    #[inline]
    pub fn settle_idle(&mut self, now: Instant) {
        if !self.idle && self.occupancy.is_empty() {
            self.idle = true;
            self.aqm.on_idle(now);
        }
    }

    /// Returns the head of a class.
    #[inline]
    pub fn head(&self, class: usize) -> Option<&P> {
        self.classes[class].packets.front()
    }

    /// Returns the packet at this place of a class, from 0 for the head.
    #[inline]
    pub fn get(&self, class: usize, place: usize) -> Option<&P> {
        self.classes[class].packets.get(place)
    }

    /// Returns how many packets wait in a class.
    #[inline]
    pub fn len(&self, class: usize) -> usize {
        self.classes[class].packets.len()
    }

    /// Returns whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.occupancy.is_empty()
    }

    /// Returns the packets and bytes that wait.
    pub fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    /// Returns the counters of a class.
    pub fn class(&self, class: usize) -> &ClassCounters {
        &self.classes[class].counters
    }

    /// Returns the internal state of the AQM, for probes.
    pub fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.aqm.gauges()
    }

    /// Gives the AQM these parameters from now on; it keeps what it has measured.
    ///
    /// # Errors
    /// The parameters are of another AQM, or the key that cannot change; nothing has changed then.
    pub fn retune(&mut self, aqm: AqmParams, environment: Environment) -> Result<(), UnitError> {
        self.aqm.retune(aqm, environment)?;
        self.environment = environment;
        Ok(())
    }

    /// Passes a control message to the AQM.
    pub fn on_message(&mut self, message: &Message) {
        self.aqm.on_message(message);
    }
}

impl<P> ManagedQueue<P> {
    /// Asks the processor for this part of the queue, to which packets come soon. Changes nothing.
    #[inline]
    pub fn prefetch(&self, stage: PrefetchStage) {
        if stage == PrefetchStage::Queues {
            return prefetch_start(self); // Not yet for what it says where its classes are.
        }
        for Class { packets, counters } in &self.classes {
            if stage == PrefetchStage::Counters {
                prefetch(slice::from_ref(packets));
                prefetch(slice::from_ref(&counters.occupancy));
                prefetch(&counters.through.arrived);
                prefetch(&counters.through.sent);
            } else {
                let (first, _) = packets.as_slices();
                prefetch(&first[..first.len().min(SERVED)]);
            }
        }
    }

    /// Shows every packet that waits.
    pub fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.classes.iter().flat_map(|class| &class.packets).for_each(show);
    }
}

/// Returns when the packet that has waited longest arrived.
fn oldest<P: Packet>(classes: &[Class<P>]) -> Option<Instant> {
    classes.iter().filter_map(|class| class.packets.front()).map(|packet| packet.header().arrived).min()
}

/// Gauges of a port's only AQM, as a discipline shows them.
pub(crate) fn owned(gauges: Vec<(&'static str, f64)>) -> Vec<(String, f64)> {
    gauges.into_iter().map(|(name, value)| (name.into(), value)).collect()
}
