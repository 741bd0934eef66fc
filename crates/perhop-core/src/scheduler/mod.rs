//! Schedulers decide which packet is sent next. A discipline owns its packets; a [`Port`](crate::Port) drives
//! it in every driver.

mod branches;
mod bucket;
mod drr;
mod dsd;
mod dualpi2;
mod edf;
mod fifo;
mod fq_codel;
mod guarantees;
mod htb;
mod llq;
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
pub use fq_codel::{Backlog, FairTurns, FlowHash, FqCodel, FqCodelParams, FqLaw};
pub use guarantees::{Arriving, Guarantee, Load, Room, Server, Serving, Step, Unbounded, bits, size, span};
pub use htb::{Htb, HtbClass, HtbParams};
pub use llq::{Llq, LlqParams, LlqQueue, Policing};
pub use precomputed::{Admitted, Departures, PrecomputedFifo};
pub use priority::{CapMeter, Excess, Priority, PriorityParams, PriorityQueue};
pub use protection::QueueProtectionParams;
pub use queues::{Match, PathName, SharingQueue};
pub use shaper::{ShapedQueue, Shaper, ShaperParams};
pub use wfq::{Wfq, WfqParams};

pub use crate::queue::Dequeued;

use ambassador::delegatable_trait;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::aqm::{AqmParams, ForeignParams};
use crate::control::Message;
use crate::table::nested;
use crate::units::{UnitError, keeps};
use crate::{
    Bitrate, Block, Bytes, ClassCounters, Counters, DelayTarget, Depth, Direction, Environment, Header,
    Instant, ManagedQueue, Occupancy, Packet, Reason, Streams,
};

/// A queueing discipline: owns packets between `enqueue` and `dequeue`. A [`Port`](crate::Port) drives it.
#[delegatable_trait]
pub trait Discipline<P> {
    /// Takes a packet, or returns it with the reason for its loss.
    ///
    /// # Errors
    /// The packet and why it was dropped.
    fn enqueue(&mut self, packet: P, now: Instant) -> Result<(), (P, Reason)>;

    /// Returns a packet that waited and that the last [`enqueue`](Self::enqueue) pushes out, with the reason;
    /// ask until there is none.
    #[inline]
    fn shed(&mut self, _now: Instant) -> Option<(P, Reason)> {
        None
    }

    /// Returns the next packet to send; called when the link is idle.
    fn dequeue(&mut self, now: Instant) -> Dequeued<P>;

    /// Notes that the packet sent last has been transmitted: an AQM whose queue is empty learns that it is
    /// idle. [`dequeue`](Self::dequeue) does so, too; for a discipline within another one, which may ask
    /// another one of its own next.
    fn settle(&mut self, _now: Instant) {}

    /// Counts a packet of this class as one that waits in its queue, or no longer. The packet was taken from
    /// there, and a discipline around this one holds it back; the two calls enclose
    /// [`enqueue`](Self::enqueue) and [`shed`](Self::shed).
    fn count_held(&mut self, class: usize, packet: &Header, waits: bool);

    /// Returns the packets and bytes that wait, over all classes.
    fn occupancy(&self) -> &Occupancy;

    /// Returns how many classes of packets the discipline distinguishes. A packet's class is fixed when it
    /// arrives.
    fn classes(&self) -> usize {
        1
    }

    /// Returns the counters of a class, from 0.
    fn class(&self, class: usize) -> &ClassCounters;

    /// Returns the name of a class, in tables and files.
    #[expect(clippy::unnecessary_literal_bound, reason = "others name classes as the user does")]
    fn class_name(&self, _class: usize) -> &str {
        "all"
    }

    /// Returns the class that a packet would join if it arrived now, unless queue protection redirects it.
    fn class_of(&self, _packet: &Header) -> usize {
        0
    }

    /// Returns which packets of a class keep their order: those for which this number is the same.
    fn order_of(&self, _packet: &Header) -> u64 {
        0
    }

    /// Returns the internal state of the discipline and its AQMs, by name, for probes.
    fn gauges(&self) -> Vec<(String, f64)>;

    /// Takes a control message for the AQM at which the packets of this label-switched path arrive.
    fn on_message(&mut self, _label: u32, _message: &Message) {}

    /// Calls a function with each queue under an AQM that holds packets of this type. A discipline that has
    /// none, or that holds packets elsewhere, implements [`inspect`](Self::inspect).
    fn queues(&self, _show: &mut dyn FnMut(&ManagedQueue<P>)) {}

    /// Calls a function with each packet that waits.
    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.queues(&mut |queue| queue.inspect(show));
    }

    /// Returns the packet counters, over all classes.
    fn counters(&self) -> Counters {
        let mut all = Counters::default();
        (0..self.classes()).for_each(|class| all.add(&self.class(class).through));
        all
    }
}

/// Work on many packets under one discipline. It is compiled for each scheduler, so that dispatch happens
/// once a batch and not once a packet.
pub trait DisciplineVisitor<P> {
    /// The result of the work.
    type Output;

    /// Does the work under this discipline.
    fn visit<D: Discipline<P>>(self, discipline: &mut D) -> Self::Output;
}

/// Other parameters for a scheduler at work.
#[derive(Debug)]
pub struct Retuning<'a, T> {
    /// The parameters so far.
    pub before: &'a T,
    /// The parameters from now on, which have passed [`check`](Block::check) and [`fits`](Scheduler::fits).
    pub after: &'a T,
    /// The rate at which it is served.
    pub rate: Bitrate,
    /// The present time.
    pub now: Instant,
}

impl<'a, T> Retuning<'a, T> {
    /// Returns the other parameters of a part of the scheduler, which is served at this rate.
    fn of<U>(&self, before: &'a U, after: &'a U, rate: Bitrate) -> Retuning<'a, U> {
        Retuning { before, after, rate, now: self.now }
    }

    /// Checks that a parameter that cannot change has not.
    fn keeps<U: PartialEq>(&self, key: &str, part: impl Fn(&'a T) -> U) -> Result<(), UnitError> {
        keeps(key, part(self.before) == part(self.after))
    }
}

/// Gives an AQM other parameters, or those that it has at another rate. One that is implemented outside keeps
/// what it has: the driver has given an implementation to the first table alone.
fn retune_aqm(
    before: &AqmParams,
    after: &AqmParams,
    retune: impl FnOnce(AqmParams) -> Result<(), UnitError>,
) -> Result<(), UnitError> {
    let stays = matches!(after, AqmParams::Foreign(_)) && before == after;
    if stays { Ok(()) } else { retune(after.clone()) }
}

/// Returns the place of a problem with the AQM of a scheduler's only queue.
fn in_rule(problem: UnitError) -> UnitError {
    problem.below("rule")
}

/// The declarations of a scheduler besides those of [`Block`]: its constructor, and what its parameters name.
pub trait Scheduler: Block {
    /// Returns the scheduler at the start of a run. Its only AQM draws from the stream `aqm`, one of several
    /// from `queues/NAME/aqm`, the scheduler itself from `scheduler`. `params` have passed
    /// [`check`](Block::check).
    fn new(params: Self::Params, environment: Environment, streams: Streams<'_>) -> Self;

    /// Gives the scheduler other parameters during a run. Packets that wait stay where they are; tokens,
    /// deficits and tags stay as they are. The new parameters apply to packets that arrive or depart from now
    /// on. AQMs keep what they have measured.
    ///
    /// # Errors
    /// The key that cannot change; the scheduler must not be used any more then.
    fn retune(&mut self, to: &Retuning<'_, Self::Params>) -> Result<(), UnitError>;

    /// Checks the parameters that depend on the rate of the link.
    ///
    /// # Errors
    /// Which parameters the link's rate contradicts, and which values are valid.
    fn fits(_params: &Self::Params, _rate: Bitrate) -> Result<(), UnitError> {
        Ok(())
    }

    /// Returns the label-switched paths that the parameters name, each with its key, for the driver to fill
    /// in their labels.
    fn paths(_params: &mut Self::Params) -> Vec<(String, &mut PathName)> {
        Vec::new()
    }

    /// Returns the AQMs among the parameters, each with its key (empty for that of a FIFO): those that
    /// receive the control messages of this path, or all.
    fn aqms<'a>(_params: &'a Self::Params, _path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
        Vec::new()
    }

    /// Returns the least rate at which the queue of each AQM is served while packets wait in it, in the order
    /// of [`aqms`](Self::aqms) and on a link of this rate; `None` if other packets can keep it waiting.
    fn least_rates(_params: &Self::Params, _rate: Bitrate) -> Vec<Option<Bitrate>> {
        Vec::new()
    }

    /// Returns all of the [`aqms`](Self::aqms), to be changed.
    fn aqms_mut(_params: &mut Self::Params) -> Vec<&mut AqmParams> {
        Vec::new()
    }

    /// Returns the classes of packets that the scheduler distinguishes, in order.
    fn class_keys(_params: &Self::Params) -> Vec<ClassKey> {
        vec![ClassKey { name: "all".into(), key: None }]
    }

    /// Returns the schedulers directly within the parameters, on a link of this rate.
    fn within(_params: &Self::Params, _rate: Bitrate) -> Vec<Within<'_>> {
        Vec::new()
    }

    /// Returns the most that waits in the scheduler's own queues where these are served at such a rate;
    /// `None` without a bound, or where only its AQMs have limits.
    fn limit(_params: &Self::Params, _rate: Bitrate) -> Option<Depth> {
        None
    }

    /// Returns what each class is guaranteed where this serves all of them together, and they have this load:
    /// in the order of [`class_keys`](Self::class_keys), each with a reason if nothing is.
    fn guarantees(
        params: &Self::Params,
        server: &Server,
        loads: &[Load],
    ) -> Vec<Result<Guarantee, Unbounded>>;

    /// Returns the queueing delays at which the scheduler itself aims.
    fn delay_targets(_params: &Self::Params) -> Vec<DelayTarget> {
        Vec::new()
    }

    /// Notices of the scheduler's own where it is served at rates from `least` to `most` and packets have at
    /// most this size: each with its key and the text.
    fn notices(_params: &Self::Params, _rates: (Bitrate, Bitrate), _largest: Bytes) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Returns a queue of the scheduler's own that has no [key of a `match`](ClassKey::key) and that none of
    /// these packets joins: the key that makes it, and the reason.
    fn unused_queue(_params: &Self::Params, _incoming: &Incoming<'_>) -> Option<(&'static str, String)> {
        None
    }
}

/// The packets that come to a scheduler, as far as a scenario says which these are.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The headers of the packets, as far as a `match` looks at them, each once; none if no packet comes.
    pub headers: &'a [Header],
    /// The codepoints, colors and paths of these headers, in words.
    pub described: &'a str,
    /// Whether data of a flow carries ECT(1).
    pub has_ect_1: bool,
}

/// A scheduler among the parameters of another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Within<'a> {
    /// The key of the scheduler's table.
    pub key: String,
    /// The parameters of the scheduler.
    pub scheduler: &'a SchedulerParams,
    /// The least rate at which it is served while packets wait in it; `None` if others can keep it waiting.
    pub rate: Option<Bitrate>,
    /// The rate that the scheduler never exceeds, if a scheduler around it limits it to less than the link's.
    pub cap: Option<Bitrate>,
}

/// A class of packets that a scheduler distinguishes, as its parameters have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassKey {
    /// The name of the class, as [`Discipline::class_name`].
    pub name: String,
    /// The key of the `match` that leads packets to the class, if it has one.
    pub key: Option<String>,
}

macro_rules! register_schedulers {
    ($($variant:ident($block:ident),)+) => {
        crate::registration::register_params!(
            crate::Role::Scheduler, "scheduler", SchedulerParams, $($variant($block<Header>),)+
        );

        /// Any registered scheduler, with its packets.
        #[derive(Clone, Debug, ambassador::Delegate)]
        #[delegate(Discipline<P>, where = "P: Packet")]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyScheduler<P> {
            $(#[doc = concat!("See [`", stringify!($block), "`].")] $variant($block<P>),)+
        }

        impl<P: Packet> AnyScheduler<P> {
            /// Does the work under the scheduler of this variant.
            pub fn accept<V: DisciplineVisitor<P>>(&mut self, visitor: V) -> V::Output {
                match self { $(Self::$variant(scheduler) => visitor.visit(scheduler),)+ }
            }

            /// See [`Scheduler::retune`].
            ///
            /// # Errors
            /// The key that cannot change, or the parameters are of another scheduler; this one must not be
            /// used any more then.
            pub fn retune(&mut self, to: &Retuning<'_, SchedulerParams>) -> Result<(), UnitError> {
                match (self, to.before, to.after) {
                    $((Self::$variant(scheduler), SchedulerParams::$variant(before), SchedulerParams::$variant(after)) => {
                        scheduler.retune(&to.of(before, after, to.rate))
                    })+
                    _ => {
                        let text = format!(
                            "`{}` cannot replace another scheduler during a run; start a run with it",
                            to.after.name()
                        );
                        Err(UnitError::at(SchedulerParams::TAG, text))
                    }
                }
            }
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

            /// See [`Scheduler::least_rates`].
            pub fn least_rates(&self, rate: Bitrate) -> Vec<Option<Bitrate>> {
                match self { $(Self::$variant(params) => $block::<Header>::least_rates(params, rate),)+ }
            }

            /// See [`Scheduler::class_keys`].
            pub fn class_keys(&self) -> Vec<ClassKey> {
                match self { $(Self::$variant(params) => $block::<Header>::class_keys(params),)+ }
            }

            /// See [`Scheduler::within`].
            pub fn within(&self, rate: Bitrate) -> Vec<Within<'_>> {
                match self { $(Self::$variant(params) => $block::<Header>::within(params, rate),)+ }
            }

            /// See [`Scheduler::limit`].
            pub fn limit(&self, rate: Bitrate) -> Option<Depth> {
                match self { $(Self::$variant(params) => $block::<Header>::limit(params, rate),)+ }
            }

            /// See [`Scheduler::guarantees`].
            pub fn guarantees(&self, server: &Server, loads: &[Load]) -> Vec<Result<Guarantee, Unbounded>> {
                match self { $(Self::$variant(params) => $block::<Header>::guarantees(params, server, loads),)+ }
            }

            /// See [`Scheduler::delay_targets`].
            pub fn delay_targets(&self) -> Vec<DelayTarget> {
                match self { $(Self::$variant(params) => $block::<Header>::delay_targets(params),)+ }
            }

            /// See [`Scheduler::notices`].
            pub fn notices(&self, rates: (Bitrate, Bitrate), largest: Bytes) -> Vec<(String, String)> {
                match self { $(Self::$variant(params) => $block::<Header>::notices(params, rates, largest),)+ }
            }

            /// See [`Scheduler::unused_queue`].
            pub fn unused_queue(&self, incoming: &Incoming<'_>) -> Option<(&'static str, String)> {
                match self { $(Self::$variant(params) => $block::<Header>::unused_queue(params, incoming),)+ }
            }

            /// See [`Scheduler::aqms_mut`].
            pub fn aqms_mut(&mut self) -> Vec<&mut AqmParams> {
                match self { $(Self::$variant(params) => $block::<Header>::aqms_mut(params),)+ }
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
    Htb(Htb),
    Llq(Llq),
}

impl SchedulerParams {
    /// Reads the table of a queue. Returns its parameters, and whether the table names a scheduler.
    ///
    /// # Errors
    /// The table names neither an AQM nor a scheduler, or a parameter is wrong.
    pub fn deserialize_queue<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(Self, bool), D::Error> {
        let table = Map::deserialize(deserializer)?;
        let scheduler_named = table.contains_key(Self::TAG);
        if !scheduler_named && !table.contains_key(AqmParams::TAG) {
            return Err(de::Error::custom(format!(
                "key `aqm` is missing; it names one of {} (or `scheduler`, one of {})",
                AqmParams::NAMES.join(", "),
                Self::NAMES.join(", ")
            )));
        }
        let read = nested(Value::Object(table), |table| {
            Some(if scheduler_named {
                Self::deserialize(table)
            } else {
                AqmParams::deserialize(table).map(Self::from)
            })
        });
        read.expect("always read").map(|params| (params, scheduler_named))
    }

    /// Returns whether these parameters differ from others in nothing but the parameters of AQMs.
    pub fn differs_only_in_aqms(&self, other: &Self) -> bool {
        let mut with_others = self.clone();
        let theirs = other.aqms(None);
        let ours = with_others.aqms_mut();
        ours.len() == theirs.len() && {
            ours.into_iter().zip(theirs).for_each(|(ours, (_, theirs))| ours.clone_from(theirs));
            with_others == *other
        }
    }

    /// Gives each AQM the `limit` that it has by default on a link of this rate.
    pub fn write_limits(&mut self, rate: Bitrate) {
        let rates = self.least_rates(rate);
        for (aqm, least) in self.aqms_mut().into_iter().zip(rates) {
            *aqm = aqm.with_limit(least.unwrap_or(rate));
        }
    }

    /// Returns the parameters of a FIFO's AQM, which a queue that names only an AQM is; else `None`.
    pub fn only_aqm(&self) -> Option<&AqmParams> {
        if let Self::Fifo(FifoParams { rule }) = self { Some(rule) } else { None }
    }

    /// Writes the table of a queue: a FIFO as its AQM, any other scheduler as it is.
    ///
    /// # Errors
    /// Returns the error of the serializer.
    pub fn serialize_as_queue<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.only_aqm() {
            Some(aqm) => aqm.serialize(serializer),
            None => self.serialize(serializer),
        }
    }

    /// Returns the schema of the table of a queue.
    pub fn queue_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut aqm = generator.subschema_for::<AqmParams>();
        aqm.insert("description".into(), "A FIFO queue under this AQM.".into());
        let mut scheduler = generator.subschema_for::<Self>();
        scheduler.insert("description".into(), "A scheduler with its queues, each under an AQM.".into());
        let alternatives = [aqm, scheduler];
        json_schema!({ "anyOf": alternatives })
    }

    /// Returns the AQMs that are implemented outside, each with its key.
    pub fn foreign(&self) -> Vec<(String, &ForeignParams)> {
        let aqms = self.aqms(None).into_iter();
        aqms.filter_map(
            |(key, aqm)| if let AqmParams::Foreign(params) = aqm { Some((key, params)) } else { None },
        )
        .collect()
    }

    /// Returns this scheduler and all schedulers within it, on a link of this rate; the key of this one is
    /// empty.
    pub fn all_within(&self, rate: Bitrate) -> Vec<Within<'_>> {
        let mut found = vec![Within { key: String::new(), scheduler: self, rate: Some(rate), cap: None }];
        for Within { key, scheduler, rate: least, cap } in self.within(rate) {
            let all = scheduler.all_within(least.unwrap_or(rate)).into_iter();
            found.extend(all.map(|inner| Within {
                key: below(&key, &inner.key),
                rate: least.and(inner.rate),
                cap: cap.into_iter().chain(inner.cap).min(),
                ..inner
            }));
        }
        found
    }
}

/// Returns the key that a table within that of `key` calls `inner`, which may be empty.
fn below(key: &str, inner: &str) -> String {
    if inner.is_empty() { key.into() } else { format!("{key}.{inner}") }
}

impl From<AqmParams> for SchedulerParams {
    /// Returns a FIFO queue under this AQM.
    fn from(rule: AqmParams) -> Self {
        Self::Fifo(FifoParams { rule })
    }
}

/// Returns a number for the flow of a packet in its direction.
#[inline]
fn flow_of(packet: &Header) -> u64 {
    u64::from(packet.flow.0) << 1 | u64::from(packet.direction == Direction::Backward)
}
