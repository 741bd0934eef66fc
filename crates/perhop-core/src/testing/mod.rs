//! The conformance harness: what every block must keep, whatever it is given.
//!
//! A block's author calls nothing: the harness in `tests/conformance.rs` runs these checks over every
//! registered block.

use crate::aqm::{AqmParams, Verdict};
use crate::meter::{self, AnyMeter, Conditioner, Meter, MeterParams};
use crate::scheduler::{AnyScheduler, Dequeued, Discipline, SchedulerParams};
use crate::{Bitrate, Color, Context, Dscp, Environment, FlowId, Header, Imbalance, Instant, Rng, Streams};

/// One step of an arbitrary driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// A packet comes.
    Enqueue {
        /// The size of the packet in bytes.
        size: u16,
        /// The color of the packet.
        color: Color,
        /// The codepoint of the packet.
        dscp: Dscp,
        /// The label-switched path that the packet follows.
        label: u32,
    },
    /// The link asks for a packet.
    Dequeue,
    /// Time passes, in nanoseconds.
    Advance(u64),
}

/// What a driver sees of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The packet was taken, or dropped for this verdict's reason.
    Judged(Verdict),
    /// A packet was sent.
    Sent {
        /// The sequence number of the packet.
        packet: u64,
        /// The class that the packet was sent as.
        class: usize,
    },
    /// A packet that waited was dropped.
    Dropped,
    /// Nothing was sent; until when the discipline waits, and for how many packets.
    Waits {
        /// When to ask again; `None` for the next arrival.
        until: Option<Instant>,
        /// Packets that it holds.
        packets: u64,
    },
    /// Time passed.
    Advanced,
}

/// Returns the environment that the harness gives to blocks: 8 Mbit/s, so that 1000 bytes take one
/// millisecond.
pub fn environment() -> Environment {
    Environment { rate: Bitrate::from_bps(8_000_000).expect("not zero") }
}

/// Returns the random streams that the harness gives to schedulers.
pub fn streams(seed: u64) -> Streams<'static> {
    Streams { seed, path: "harness" }
}

/// A driver of one discipline, on a virtual clock.
#[derive(Clone, Debug)]
pub struct Bench<D> {
    discipline: D,
    now: Instant,
    sequence: u32,
}

impl<D: Discipline<Header>> Bench<D> {
    /// Returns a driver at time zero.
    pub fn new(discipline: D) -> Self {
        Self { discipline, now: Instant::ZERO, sequence: 0 }
    }

    /// Returns the driver's time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the discipline that is driven.
    pub fn discipline(&self) -> &D {
        &self.discipline
    }

    /// Performs one step and checks conservation after it.
    ///
    /// # Errors
    /// The identity arrived = sent + dropped + waiting does not hold for a color.
    pub fn step(&mut self, operation: Operation) -> Result<Effect, Imbalance> {
        let observed = self.perform(operation);
        for class in 0..self.discipline.classes() {
            self.discipline.class(class).balance()?;
        }
        self.discipline.counters().balance(self.discipline.occupancy())?;
        Ok(observed)
    }

    /// Performs one step as [`step`](Self::step) does, and checks nothing.
    pub fn perform(&mut self, operation: Operation) -> Effect {
        match operation {
            Operation::Enqueue { size, color, dscp, label } => {
                let packet = Header { label, dscp, color, ..Header::new(FlowId(self.sequence), size) };
                self.sequence += 1;
                let judged = match self.discipline.enqueue(packet, self.now) {
                    Ok(()) => Verdict::Pass,
                    Err((_, reason)) => Verdict::Drop(reason),
                };
                while self.discipline.shed(self.now).is_some() {}
                Effect::Judged(judged)
            }
            Operation::Dequeue => match self.discipline.dequeue(self.now) {
                Dequeued::Sent(packet, class) => Effect::Sent { packet: u64::from(packet.flow.0), class },
                Dequeued::Dropped(..) => Effect::Dropped,
                Dequeued::Wait(until) => {
                    Effect::Waits { until, packets: self.discipline.occupancy().packets() }
                }
            },
            Operation::Advance(nanos) => {
                self.now += crate::Duration::from_nanos(nanos);
                Effect::Advanced
            }
        }
    }

    /// Performs all steps and returns what was seen.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run(&mut self, operations: &[Operation]) -> Result<Vec<Effect>, Imbalance> {
        operations.iter().map(|&operation| self.step(operation)).collect()
    }
}

/// Returns a FIFO under the AQM of these parameters, in the harness's environment.
pub fn fifo(aqm: AqmParams, seed: u64) -> AnyScheduler<Header> {
    scheduler(aqm.into(), seed)
}

/// Returns the scheduler of these parameters, in the harness's environment; the paths that it names have the
/// labels 1, 2, ….
pub fn scheduler(mut params: SchedulerParams, seed: u64) -> AnyScheduler<Header> {
    (1..).zip(params.paths()).for_each(|(label, (_, path))| path.set_label(label));
    params.build(environment(), streams(seed))
}

/// Returns what becomes of packets of these (gap in ns, size) pairs at a profile's meter.
pub fn verdicts(params: &MeterParams, seed: u64, arrivals: &[(u64, u16)]) -> Vec<meter::Verdict> {
    let mut conditioner = Conditioner::new(params, environment().rate, Rng::stream(seed, "harness"));
    let mut now = Instant::ZERO;
    let judge = |&(gap, size): &(u64, u16)| {
        now += crate::Duration::from_nanos(gap);
        conditioner.judge(&Header::new(FlowId(0), size), now)
    };
    arrivals.iter().map(judge).collect()
}

/// Returns the colors a meter gives to packets of these (gap in ns, size) pairs.
pub fn meter_colors(mut meter: AnyMeter, seed: u64, arrivals: &[(u64, u16)]) -> Vec<Color> {
    let mut rng = Rng::stream(seed, "harness");
    let mut now = Instant::ZERO;
    arrivals
        .iter()
        .map(|&(gap, size)| {
            now += crate::Duration::from_nanos(gap);
            meter.color(&Header::new(FlowId(0), size), &mut Context { now, rng: &mut rng })
        })
        .collect()
}
