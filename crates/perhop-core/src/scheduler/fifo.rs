//! First in, first out, under an AQM (RFC 7567, section 2).

#![expect(clippy::inline_always, reason = "the loop over packets of a port is compiled for each scheduler")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::queues::all_wait_in_one_queue;
use super::{
    Dequeued, Discipline, Guarantee, Load, Retuning, Room, Scheduler, Server, Unbounded, retune_aqm,
};
use crate::aqm::AqmParams;
use crate::control::Message;
use crate::units::UnitError;
use crate::{
    Bitrate, Block, ClassCounters, Environment, Instant, ManagedQueue, Occupancy, Origin, Packet, Reason,
    Streams,
};

/// Parameters of [`Fifo`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FifoParams {
    /// The AQM, which decides which packets are dropped.
    pub rule: AqmParams,
}

/// One queue in order of arrival.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    queue: ManagedQueue<P>,
}

impl<P: Packet> Block for Fifo<P> {
    type Params = FifoParams;
    const NAME: &'static str = "fifo";
    const SUMMARY: &'static str = "first in, first out; the default where a queue names no scheduler";
    const ORIGIN: Origin = Origin::published(1985, "RFC 970; RFC 7567, section 2").in_linux("pfifo", "2.2");
    const BATCHED: bool = true;
}

impl<P: Packet> Scheduler for Fifo<P> {
    fn new(params: FifoParams, environment: Environment, streams: Streams<'_>) -> Self {
        Self { queue: ManagedQueue::new(1, params.rule, environment, streams.of("aqm")) }
    }

    fn retune(&mut self, to: &Retuning<'_, FifoParams>) -> Result<(), UnitError> {
        let queue = &mut self.queue;
        let environment = Environment { rate: to.rate };
        retune_aqm(&to.before.rule, &to.after.rule, |rule| queue.retune(rule, environment))
    }

    fn aqms<'a>(params: &'a FifoParams, _path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
        vec![(String::new(), &params.rule)]
    }

    fn least_rates(_: &FifoParams, rate: Bitrate) -> Vec<Option<Bitrate>> {
        vec![Some(rate)]
    }

    fn guarantees(params: &FifoParams, server: &Server, loads: &[Load]) -> Vec<Result<Guarantee, Unbounded>> {
        let room = Room::of(&params.rule, server.rate);
        vec![Ok(Guarantee { room, ..server.guarantee(&loads[0]) })]
    }

    fn aqms_mut(params: &mut FifoParams) -> Vec<&mut AqmParams> {
        vec![&mut params.rule]
    }
}

impl<P: Packet> Discipline<P> for Fifo<P> {
    #[inline(always)]
    fn enqueue(&mut self, packet: P, now: Instant) -> Result<(), (P, Reason)> {
        self.queue.offer(0, packet, now).map(drop)
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant) -> Dequeued<P> {
        let Some(taken) = self.queue.take(0, now) else {
            self.queue.settle_idle(now);
            return Dequeued::Wait(None);
        };
        taken.dequeued(0)
    }

    all_wait_in_one_queue!();

    fn queues(&self, show: &mut dyn FnMut(&ManagedQueue<P>)) {
        show(&self.queue);
    }
}
