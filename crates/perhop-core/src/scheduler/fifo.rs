//! First in, first out, under an AQM that decides at the tail (RFC 7567, section 2).

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Dequeued, Discipline};
use crate::aqm::{AnyAqm, Aqm, AqmParams, Reason};
use crate::control::Message;
use crate::{Block, Context, Environment, Ledger, Occupancy, Packet};

/// Parameters of [`Fifo`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FifoParams {
    /// Who is dropped.
    pub rule: AqmParams,
}

/// One queue in order of arrival.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    packets: VecDeque<P>,
    ledger: Ledger,
    rule: AnyAqm,
}

impl<P: Packet> Block for Fifo<P> {
    type Params = FifoParams;
    const NAME: &'static str = "fifo";
    const SUMMARY: &'static str = "first in, first out; the default where a queue names no scheduler";
    const SOURCE: &'static str = "RFC 7567, section 2";

    fn rules_for<'a>(params: &'a FifoParams, _path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
        vec![(String::new(), &params.rule)]
    }

    fn new(params: FifoParams, environment: Environment) -> Self {
        Self { packets: VecDeque::new(), ledger: Ledger::default(), rule: params.rule.build(environment) }
    }
}

impl<P: Packet> Discipline<P> for Fifo<P> {
    #[inline]
    fn enqueue(&mut self, mut packet: P, cx: &mut Context<'_>) -> Result<(), (P, Reason)> {
        let header = packet.header_mut();
        header.arrived = cx.now;
        self.ledger.counters.arrive(header.color);
        match self.rule.on_arrival(header, &self.ledger.occupancy, cx).apply(header) {
            Ok(notified) => self.ledger.admit(header, notified),
            Err(reason) => {
                self.ledger.counters.drop(header.color, reason);
                return Err((packet, reason));
            }
        }
        self.packets.push_back(packet);
        Ok(())
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Dequeued<P> {
        let Some(packet) = self.packets.pop_front() else {
            self.rule.on_idle(cx.now);
            return Dequeued::Wait(None);
        };
        self.ledger.send(packet.header());
        Dequeued::Sent(packet)
    }

    fn occupancy(&self) -> &Occupancy {
        &self.ledger.occupancy
    }

    fn ledgers(&self) -> &[Ledger] {
        std::slice::from_ref(&self.ledger)
    }

    fn gauges(&self) -> Vec<(String, f64)> {
        self.rule.gauges().map(|(name, value)| (name.into(), value)).collect()
    }

    fn on_message(&mut self, _label: u32, message: &Message) {
        self.rule.on_message(message);
    }

    fn inspect(&self, show: &mut dyn FnMut(&P)) {
        self.packets.iter().for_each(show);
    }
}
