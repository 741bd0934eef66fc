//! Schedulers decide which packet is sent next. A discipline owns its packets; a [`Port`](crate::Port) drives it in every driver.

mod drr;
mod dsd;
mod dualpi2;
mod edf;
mod fifo;
mod fq_codel;
mod precomputed;
mod priority;
mod protection;
mod queues;
mod services;
mod shaper;
mod wfq;

pub use drr::{Drr, DrrParams};
pub use dsd::{Dsd, DsdParams, GreenDrop, RefusedGreen};
pub use dualpi2::{DualPi2, DualPi2Law, DualPi2Order, DualPi2Params, Overload};
pub use edf::{Edf, EdfParams};
pub use fifo::{Fifo, FifoParams};
pub use fq_codel::{Backlog, FlowHash, FqCodel, FqCodelParams, FqLaw};
pub use precomputed::{Admitted, Departures, PrecomputedFifo};
pub use priority::{CapMeter, Excess, Priority, PriorityParams, PriorityQueue};
pub use protection::QueueProtectionParams;
pub use queues::{Match, PathName, SharingQueue};
pub use shaper::{ShapedQueue, Shaper, ShaperParams};
pub use wfq::{Wfq, WfqParams};

use ambassador::delegatable_trait;

use crate::aqm::AqmParams;
use crate::control::Message;
use crate::units::UnitError;
use crate::{
    Bitrate, Block, ClassCounters, Counters, Direction, Environment, Header, Instant, Occupancy, Packet,
    Reason, Streams,
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

/// A queueing discipline: owns packets between `enqueue` and `dequeue`. A [`Port`](crate::Port) drives it.
#[delegatable_trait]
pub trait Discipline<P> {
    /// Takes a packet, or returns it with the reason for its loss.
    ///
    /// # Errors
    /// The packet and why it was dropped.
    fn enqueue(&mut self, packet: P, now: Instant) -> Result<(), (P, Reason)>;

    /// A packet that waited and that the last [`enqueue`](Self::enqueue) pushes out, with the reason; ask until there is none.
    #[inline]
    fn shed(&mut self, _now: Instant) -> Option<(P, Reason)> {
        None
    }

    /// The next packet to send; called when the link is idle.
    fn dequeue(&mut self, now: Instant) -> Dequeued<P>;

    /// The packets and bytes that wait, over all classes.
    fn occupancy(&self) -> &Occupancy;

    /// How many classes of packets it distinguishes. A packet's class is fixed when it arrives.
    fn classes(&self) -> usize {
        1
    }

    /// The counters of a class, from 0.
    fn class(&self, class: usize) -> &ClassCounters;

    /// The name of a class, in tables and files.
    #[expect(clippy::unnecessary_literal_bound, reason = "others name classes as the user does")]
    fn class_name(&self, _class: usize) -> &str {
        "all"
    }

    /// The class that a packet would join if it arrived now, unless queue protection redirects it.
    fn class_of(&self, _packet: &Header) -> usize {
        0
    }

    /// Which packets of a class keep their order: those for which this number is the same.
    fn order_of(&self, _packet: &Header) -> u64 {
        0
    }

    /// Internal state of the discipline and its AQMs, by name, for probes.
    fn gauges(&self) -> Vec<(String, f64)>;

    /// A control message for the AQM at which the packets of this label-switched path arrive.
    fn on_message(&mut self, label: u32, message: &Message);

    /// Calls a function with each packet that waits.
    fn inspect(&self, show: &mut dyn FnMut(&P));

    /// The packet counters, over all classes.
    fn counters(&self) -> Counters {
        let mut all = Counters::default();
        (0..self.classes()).for_each(|class| all.add(&self.class(class).through));
        all
    }
}

/// The declarations of a scheduler besides those of [`Block`]: its constructor, and the paths and AQMs in its parameters.
pub trait Scheduler: Block {
    /// The scheduler at the start of a run. Its only AQM draws from the stream `aqm`, one of several from
    /// `queues/NAME/aqm`, the scheduler itself from `scheduler`. `params` have passed [`check`](Block::check).
    fn new(params: Self::Params, environment: Environment, streams: Streams<'_>) -> Self;

    /// Checks the parameters that depend on the rate of the link.
    ///
    /// # Errors
    /// Which parameters the link's rate contradicts, and which values are valid.
    fn fits(_params: &Self::Params, _rate: Bitrate) -> Result<(), UnitError> {
        Ok(())
    }

    /// The label-switched paths that the parameters name, each with its key, for the driver to fill in their labels.
    fn paths(_params: &mut Self::Params) -> Vec<(String, &mut PathName)> {
        Vec::new()
    }

    /// The AQMs among the parameters, each with its key (empty for that of a FIFO): those that receive the control messages of
    /// this path, or all.
    fn aqms<'a>(params: &'a Self::Params, path: Option<&str>) -> Vec<(String, &'a AqmParams)>;
}

macro_rules! register_schedulers {
    ($($variant:ident($block:ident),)+) => {
        crate::block::register_params!(
            crate::Role::Scheduler, "scheduler", SchedulerParams, $($variant($block<Header>),)+
        );

        /// Any registered scheduler, with its packets.
        #[derive(Clone, Debug, ambassador::Delegate)]
        #[delegate(Discipline<P>, where = "P: Packet")]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyScheduler<P> {
            $(#[doc = concat!("See [`", stringify!($block), "`].")] $variant($block<P>),)+
        }

        impl SchedulerParams {
            /// See [`Scheduler::new`].
            pub fn build<P: Packet>(self, environment: Environment, streams: Streams<'_>) -> AnyScheduler<P> {
                match self {
                    $(Self::$variant(params) => AnyScheduler::$variant(Scheduler::new(params, environment, streams)),)+
                }
            }

            /// See [`Scheduler::fits`].
            ///
            /// # Errors
            /// Which parameters the link's rate contradicts, and which values are valid.
            pub fn fits(&self, rate: Bitrate) -> Result<(), UnitError> {
                match self { $(Self::$variant(params) => $block::<Header>::fits(params, rate),)+ }
            }

            /// See [`Scheduler::paths`].
            pub fn paths(&mut self) -> Vec<(String, &mut PathName)> {
                match self { $(Self::$variant(params) => $block::<Header>::paths(params),)+ }
            }

            /// See [`Scheduler::aqms`].
            pub fn aqms(&self, path: Option<&str>) -> Vec<(String, &AqmParams)> {
                match self { $(Self::$variant(params) => $block::<Header>::aqms(params, path),)+ }
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
    FqCodel(FqCodel),
    Shaper(Shaper),
    DualPi2(DualPi2),
}

impl SchedulerParams {
    /// What is wrong with the table of a queue that names neither an AQM nor a scheduler.
    pub fn missing() -> String {
        format!(
            "key `aqm` is missing; it names one of {} (or `scheduler`, one of {})",
            AqmParams::NAMES.join(", "),
            Self::NAMES.join(", ")
        )
    }

    /// The path of the key `queues` of the scheduler that has several.
    pub fn queues_key(&self) -> &'static str {
        if let Self::Shaper(_) = self { "queue.queues" } else { "queues" }
    }

    /// The scheduler within a shaper.
    pub fn shaped(&self) -> Option<&Self> {
        if let Self::Shaper(params) = self { Some(&params.queue.0) } else { None }
    }
}

impl From<AqmParams> for SchedulerParams {
    /// A FIFO queue under this AQM.
    fn from(rule: AqmParams) -> Self {
        Self::Fifo(FifoParams { rule })
    }
}

/// A number for the flow of a packet in its direction.
#[inline]
fn flow_of(packet: &Header) -> u64 {
    u64::from(packet.flow.0) << 1 | u64::from(packet.direction == Direction::Backward)
}
