//! Schedulers: who is sent next. A discipline owns its packets; both drivers drive it by the same three calls.

mod drr;
mod dsd;
mod edf;
mod fifo;
mod foreseen;
mod priority;
mod queues;
mod services;
mod wfq;

pub use drr::{Drr, DrrParams};
pub use dsd::{Dsd, DsdParams, GreenDrop, RefusedGreen};
pub use edf::{Edf, EdfParams};
pub use fifo::{Fifo, FifoParams};
pub use foreseen::{Admitted, ForeseenBooks, ForeseenFifo};
pub use priority::{CapMeter, Excess, Priority, PriorityParams, PriorityQueue};
pub use queues::{Match, PathName, SharingQueue};
pub use wfq::{Wfq, WfqParams};

use crate::aqm::{AqmParams, Reason};
use crate::control::Message;
use crate::units::UnitError;
use crate::{Block, Context, Counters, Environment, Header, Instant, Ledger, Occupancy, Packet};

/// What a discipline did when asked for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeued<P> {
    /// Send this packet now.
    Sent(P),
    /// This packet was dropped from the queue; ask again.
    Dropped(P, Reason),
    /// Nothing to send before the given time, or, if none, before the next arrival.
    Wait(Option<Instant>),
}

/// A queue with its rules: owns packets between `enqueue` and `dequeue`.
pub trait Discipline<P> {
    /// Takes a packet, or gives it back with the reason for its loss. The random stream is that of the rule that judges it.
    ///
    /// # Errors
    /// The packet and why it was dropped.
    fn enqueue(&mut self, packet: P, cx: &mut Context<'_>) -> Result<(), (P, Reason)>;

    /// Hands over the next packet; called when the link is free. The random stream is the scheduler's own, so that its
    /// draws change none of the rule's.
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Dequeued<P>;

    /// Everything that waits.
    fn occupancy(&self) -> &Occupancy;

    /// The books of each class of packets that it tells apart, in order; one for a discipline that tells none apart.
    fn ledgers(&self) -> &[Ledger];

    /// The name of a class, in tables and files.
    #[expect(clippy::unnecessary_literal_bound, reason = "others name classes as the user does")]
    fn class_name(&self, _class: usize) -> &str {
        "all"
    }

    /// The class that a packet belongs to: an index into [`ledgers`](Self::ledgers).
    fn class_of(&self, _packet: &Header) -> usize {
        0
    }

    /// How many rules it has: one for all, or one for each class, which then draws from a random stream of its own.
    fn rules(&self) -> usize {
        1
    }

    /// What it and its rules keep track of, by name, for probes: averages, and whatever they steer by.
    fn gauges(&self) -> Vec<(String, f64)>;

    /// Another block tells something to the rule that the packets of this label-switched path meet.
    fn on_message(&mut self, label: u32, message: &Message);

    /// Shows every packet that waits.
    fn inspect(&self, show: &mut dyn FnMut(&P));

    /// Everything that went through.
    fn counters(&self) -> Counters {
        let mut all = Counters::default();
        self.ledgers().iter().for_each(|ledger| all.add(&ledger.counters));
        all
    }
}

macro_rules! register_schedulers {
    ($($variant:ident($block:ident),)+) => {
        crate::block::register_params!(
            crate::Role::Scheduler, "scheduler", SchedulerParams, $($variant($block<Header>),)+
        );

        /// Any registered scheduler, with its packets.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyScheduler<P> {
            $(#[doc = concat!("See [`", stringify!($block), "`].")] $variant($block<P>),)+
        }

        impl SchedulerParams {
            /// The discipline at the start of a run.
            pub fn build<P: Packet>(self, environment: Environment) -> AnyScheduler<P> {
                match self { $(Self::$variant(params) => AnyScheduler::$variant($block::new(params, environment)),)+ }
            }

            /// Checks what depends on the link that it serves.
            ///
            /// # Errors
            /// What does not fit, and what would.
            pub fn fits(&self, environment: Environment) -> Result<(), UnitError> {
                match self { $(Self::$variant(params) => $block::<Header>::fits(params, environment),)+ }
            }

            /// The label-switched paths that it names, for the driver to fill in their labels; each with its key.
            pub fn paths(&mut self) -> Vec<(String, &mut PathName)> {
                match self { $(Self::$variant(params) => $block::<Header>::paths(params),)+ }
            }

            /// Its rules, each with its key (empty for that of a FIFO): those that hear of this path, by name, or all.
            pub fn rules_for(&self, path: Option<&str>) -> Vec<(String, &AqmParams)> {
                match self { $(Self::$variant(params) => $block::<Header>::rules_for(params, path),)+ }
            }
        }

        impl<P: Packet> Discipline<P> for AnyScheduler<P> {
            #[inline]
            fn enqueue(&mut self, packet: P, cx: &mut Context<'_>) -> Result<(), (P, Reason)> {
                match self { $(Self::$variant(queue) => queue.enqueue(packet, cx),)+ }
            }
            #[inline]
            fn dequeue(&mut self, cx: &mut Context<'_>) -> Dequeued<P> {
                match self { $(Self::$variant(queue) => queue.dequeue(cx),)+ }
            }
            fn occupancy(&self) -> &Occupancy {
                match self { $(Self::$variant(queue) => queue.occupancy(),)+ }
            }
            fn ledgers(&self) -> &[Ledger] {
                match self { $(Self::$variant(queue) => queue.ledgers(),)+ }
            }
            fn class_name(&self, class: usize) -> &str {
                match self { $(Self::$variant(queue) => queue.class_name(class),)+ }
            }
            #[inline]
            fn class_of(&self, packet: &Header) -> usize {
                match self { $(Self::$variant(queue) => queue.class_of(packet),)+ }
            }
            fn rules(&self) -> usize {
                match self { $(Self::$variant(queue) => queue.rules(),)+ }
            }
            fn gauges(&self) -> Vec<(String, f64)> {
                match self { $(Self::$variant(queue) => queue.gauges(),)+ }
            }
            fn on_message(&mut self, label: u32, message: &Message) {
                match self { $(Self::$variant(queue) => queue.on_message(label, message),)+ }
            }
            fn inspect(&self, show: &mut dyn FnMut(&P)) {
                match self { $(Self::$variant(queue) => queue.inspect(show),)+ }
            }
        }
    };
}

register_schedulers! {
    Fifo(Fifo),
    Edf(Edf),
    Dsd(Dsd),
    Priority(Priority),
    Drr(Drr),
    Wfq(Wfq),
}

impl From<AqmParams> for SchedulerParams {
    /// First in, first out under this rule.
    fn from(rule: AqmParams) -> Self {
        Self::Fifo(FifoParams { rule })
    }
}
