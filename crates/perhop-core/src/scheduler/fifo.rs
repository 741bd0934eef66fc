//! First in, first out, under an AQM that decides at the tail (RFC 7567, section 2).

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Dequeued, Discipline};
use crate::aqm::{AnyAqm, Aqm, AqmParams, Reason, Verdict};
use crate::{Block, Context, Counters, Environment, Occupancy, Packet};

/// Parameters of [`Fifo`]: none. Room and drops are the AQM's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FifoParams {}

/// One queue in order of arrival.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    packets: VecDeque<P>,
    occupancy: Occupancy,
    counters: Counters,
    aqm: Option<AnyAqm>,
}

impl<P: Packet> Fifo<P> {
    /// An empty queue ruled by the AQM of these parameters.
    pub fn with_aqm(aqm: AqmParams, environment: Environment) -> Self {
        Self { aqm: Some(aqm.build(environment)), ..Self::new(FifoParams {}, environment) }
    }

    /// The packets that wait, first to last.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.packets.iter()
    }

    /// The AQM that rules it, if any.
    pub fn aqm(&self) -> Option<&AnyAqm> {
        self.aqm.as_ref()
    }
}

impl<P: Packet> Block for Fifo<P> {
    type Params = FifoParams;
    const NAME: &'static str = "fifo";
    const SUMMARY: &'static str = "first in, first out, under an AQM at the tail";
    const SOURCE: &'static str = "RFC 7567, section 2";

    /// An endless queue without an AQM.
    fn new(_: FifoParams, _: Environment) -> Self {
        Self {
            packets: VecDeque::new(),
            occupancy: Occupancy::EMPTY,
            counters: Counters::default(),
            aqm: None,
        }
    }
}

impl<P: Packet> Discipline<P> for Fifo<P> {
    #[inline]
    fn enqueue(&mut self, mut packet: P, cx: &mut Context<'_>) -> Result<(), (P, Reason)> {
        let header = packet.header_mut();
        header.arrived = cx.now;
        let (color, size) = (header.color, header.size);
        self.counters.arrive(color);
        if let Some(aqm) = &mut self.aqm
            && let Verdict::Drop(reason) = aqm.on_arrival(header, &self.occupancy, cx)
        {
            self.counters.drop(color, reason);
            return Err((packet, reason));
        }
        self.occupancy.add(color, size);
        self.packets.push_back(packet);
        Ok(())
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Dequeued<P> {
        let Some(packet) = self.packets.pop_front() else {
            if let Some(aqm) = &mut self.aqm {
                aqm.on_idle(cx.now);
            }
            return Dequeued::Wait(None);
        };
        let header = packet.header();
        self.occupancy.remove(header.color, header.size);
        self.counters.send(header.color);
        Dequeued::Sent(packet)
    }

    fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
