//! A FIFO worked out ahead of time: when a packet is let in, the start of its service is already known.
//!
//! It holds no packets, only what tells when each leaves. The simulator's fast path is made of it, and so is the virtual
//! queue of [`Dsd`](super::Dsd).

#![expect(clippy::inline_always, reason = "a simulator's loop over packets is made of these calls")]

use crate::aqm::{AnyAqm, Aqm, AqmParams, Reason};
use crate::control::Message;
use crate::{Color, Context, Environment, Header, Instant, Ledger};

/// A FIFO whose departures follow from its arrivals: its rule, and its books.
#[derive(Clone, Debug)]
pub struct ForeseenFifo {
    rule: AnyAqm,
    books: ForeseenBooks,
}

/// What a [`ForeseenFifo`] knows of its packets.
#[derive(Clone, Debug)]
pub struct ForeseenBooks {
    waiting: Waiting,
    ledger: Ledger,
    /// The rule knows that the server is idle.
    idle: bool,
}

/// What is known of a packet that is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// When its service starts.
    pub service: Instant,
    /// Why it has word of congestion, if it does: its header says so.
    pub notified: Option<Reason>,
}

/// A packet that waits, and when it will not.
#[derive(Clone, Copy, Debug)]
struct Foreseen {
    service: Instant,
    size: u16,
    color: Color,
}

/// Packets that wait, in order: a ring.
#[derive(Clone, Debug)]
struct Waiting {
    /// As many as a power of two, of which those numbered `first..end`, modulo that, are in use. The one at `end` never is, and
    /// says that its service never starts.
    slots: Vec<Foreseen>,
    first: usize,
    end: usize,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { slots: vec![Self::EMPTY; 2], first: 0, end: 0 }
    }
}

impl Waiting {
    const EMPTY: Foreseen = Foreseen { service: Instant::NEVER, size: 0, color: Color::Green };

    #[inline(always)]
    fn slot(&self, number: usize) -> usize {
        number & (self.slots.len() - 1)
    }

    #[inline(always)]
    fn push(&mut self, packet: Foreseen) {
        let (slot, next) = (self.slot(self.end), self.slot(self.end + 1));
        self.slots[slot] = packet;
        self.slots[next].service = Instant::NEVER;
        self.end += 1;
        if self.end - self.first == self.slots.len() - 1 {
            self.grow();
        }
    }

    /// Takes out those whose service starts by now, which is not the end of time. The first is shown in any case, and `each`
    /// is told whether it goes: between two arrivals mostly one does or none, at random, which is cheaper to do either way
    /// than to guess.
    #[inline(always)]
    fn leave(&mut self, now: Instant, mut each: impl FnMut(Foreseen, bool)) {
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

impl ForeseenFifo {
    /// An empty queue under this rule.
    pub fn new(rule: AqmParams, environment: Environment) -> Self {
        let books = ForeseenBooks { waiting: Waiting::default(), ledger: Ledger::default(), idle: true };
        Self { rule: rule.build(environment), books }
    }

    /// The rule and the books, for work on many packets.
    pub fn parts(&mut self) -> (&mut AnyAqm, &mut ForeseenBooks) {
        (&mut self.rule, &mut self.books)
    }

    /// See [`ForeseenBooks::settle`].
    #[inline]
    pub fn settle(&mut self, now: Instant) {
        // What never starts does not start at the end of time either.
        self.books.settle(now.min(Instant::from_nanos(u64::MAX - 1)));
    }

    /// See [`ForeseenBooks::admit`].
    ///
    /// # Errors
    /// Why the packet is dropped.
    #[inline]
    pub fn admit(
        &mut self,
        header: &mut Header,
        busy_until: Instant,
        cx: &mut Context<'_>,
    ) -> Result<Admitted, Reason> {
        let mut notified = None;
        let service =
            self.books.admit(&mut self.rule, header, busy_until, cx, |reason| notified = Some(reason))?;
        Ok(Admitted { service, notified })
    }

    /// What waits and what went through.
    pub fn ledger(&self) -> &Ledger {
        &self.books.ledger
    }

    /// Another block tells the rule something.
    pub fn on_message(&mut self, message: &Message) {
        self.rule.on_message(message);
    }

    /// What the rule keeps track of.
    pub fn gauges(&self) -> Vec<(String, f64)> {
        self.rule.gauges().map(|(name, value)| (name.into(), value)).collect()
    }
}

impl ForeseenBooks {
    /// Lets go of every packet whose service began by now, which is not the end of time.
    #[inline(always)]
    pub fn settle(&mut self, now: Instant) {
        self.waiting.leave(now, |Foreseen { size, color, .. }, goes| {
            self.ledger.occupancy.remove_if(goes, color, size);
            self.ledger.counters.send_if(goes, color);
        });
    }

    /// Takes a packet if the rule lets it in, and says when its service starts. [`settle`](Self::settle) first;
    /// `busy_until` is when the server has sent all that came before. If the packet has word of congestion, its header says
    /// so, and `notified` is told why.
    ///
    /// # Errors
    /// Why the packet is dropped.
    #[inline(always)]
    pub fn admit<R: Aqm>(
        &mut self,
        rule: &mut R,
        header: &mut Header,
        busy_until: Instant,
        cx: &mut Context<'_>,
        notified: impl FnOnce(Reason),
    ) -> Result<Instant, Reason> {
        header.arrived = cx.now;
        let Header { size, color, .. } = *header;
        if !self.idle && busy_until <= cx.now {
            rule.on_idle(busy_until);
            self.idle = true;
        }
        self.ledger.counters.arrive(color);
        match rule.on_arrival(header, &self.ledger.occupancy, cx).apply(header) {
            Ok(None) => {}
            Ok(Some(reason)) => {
                self.ledger.counters.notify(color, reason);
                notified(reason);
            }
            Err(reason) => {
                self.ledger.counters.drop(color, reason);
                return Err(reason);
            }
        }
        self.idle = false;
        let service = busy_until.max(cx.now);
        if service > cx.now {
            self.ledger.occupancy.add(color, size);
            self.waiting.push(Foreseen { service, size, color });
        } else {
            self.ledger.counters.send(color);
        }
        Ok(service)
    }
}
