//! Blocks that Python drives by hand, packet by packet.

use std::sync::Arc;

use perhop_core::aqm::AqmParams;
use perhop_core::meter::{Conditioner, MeterParams};
use perhop_core::scheduler::{AnyScheduler, Dequeued, Discipline, SchedulerParams};
use perhop_core::units::split_key;
use perhop_core::{
    Bitrate, ClassCounters, Dscp, Ecn, Environment, FlowId, Header, Instant, Packet, Reason, Rng,
    ServiceLevel, Streams,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::classes::{self, Fault, color_of};
use crate::invalid;
use crate::stepping::class;

/// A packet with the number by which Python knows it.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    header: Header,
    number: u64,
}

impl Packet for Numbered {
    fn header(&self) -> Header {
        self.header
    }
    fn arrive(&mut self, now: Instant) {
        self.header.arrive(now);
    }
    fn notify(&mut self) {
        self.header.notify();
    }
}

/// What becomes of a packet: its number, `pass`, `mark` or `drop`, the reason, its color and its ECN field.
type Fate = (u64, &'static str, Option<&'static str>, &'static str, u8);

/// The packets that were dropped at their departure, the one that is sent if any is, and when to ask again.
type Departure = (Vec<Fate>, Option<Fate>, Option<u64>);

fn fate(packet: &Numbered, decision: &'static str, reason: Option<Reason>) -> Fate {
    let Header { color, ecn, .. } = packet.header;
    (packet.number, decision, reason.map(Reason::name), color.name(), ecn as u8)
}

/// A queue: an AQM over packets in order of arrival, or a scheduler. Its caller is the clock and the link.
#[pyclass(module = "perhop._engine")]
pub(crate) struct QueueByHand {
    queue: AnyScheduler<Numbered>,
    /// What classes in Python raise, where there are any.
    fault: Arc<Fault>,
}

#[pymethods]
impl QueueByHand {
    #[new]
    fn new(table: &str, rate: &str, seed: u64) -> PyResult<Self> {
        let rate = rate_of(rate)?;
        let table: Value = serde_json::from_str(table).map_err(invalid)?;
        let mut params = if table.get(SchedulerParams::TAG).is_some() {
            parameters::<SchedulerParams>(table)?
        } else {
            parameters::<AqmParams>(table)?.into()
        };
        params.fits(rate).map_err(|problem| refused(&problem.to_string()))?;
        (1..).zip(params.paths()).for_each(|(label, (_, path))| path.set_label(label));
        let fault = classes::implement_by_hand(&params);
        let queue = params.build(Environment { rate }, Streams { seed, path: "by hand" });
        let built = Self { queue, fault };
        built.fault.check()?;
        Ok(built)
    }

    /// A copy that goes on by itself.
    fn copy(&self) -> Self {
        Self { queue: self.queue.clone(), fault: self.fault.clone() }
    }

    /// A packet arrives: what becomes of it, and of packets that it pushes out.
    fn offer(&mut self, ns: u64, number: u64, fields: Fields) -> PyResult<Vec<Fate>> {
        let now = Instant::from_nanos(ns);
        let header = header(fields)?;
        let before = self.notified();
        let arrived = Numbered { header: Header { arrived: now, ..header }, number };
        let refused = self.queue.enqueue(arrived, now).err();
        let mut fates = vec![refused.map_or_else(
            || {
                let mut after = self.notified().into_iter().zip(before);
                let more = after.find(|((_, after), (_, before))| after > before);
                let reason = more.map(|((reason, _), _)| reason);
                let ecn = if reason.is_some() { Ecn::Congested } else { header.ecn };
                let packet = Numbered { header: Header { ecn, ..header }, number };
                fate(&packet, if reason.is_some() { "mark" } else { "pass" }, reason)
            },
            |(packet, reason)| fate(&packet, "drop", Some(reason)),
        )];
        while let Some((packet, reason)) = self.queue.shed(now) {
            fates.push(fate(&packet, "drop", Some(reason)));
        }
        self.fault.check()?;
        Ok(fates)
    }

    /// The link asks for a packet: the packets that are dropped at their departure, the one that is sent if
    /// any is, and when to ask again if the scheduler says so.
    fn departure(&mut self, ns: u64) -> PyResult<Departure> {
        let now = Instant::from_nanos(ns);
        let mut dropped = Vec::new();
        let departure = loop {
            let before: u64 = self.notified().iter().map(|(_, packets)| packets).sum();
            match self.queue.dequeue(now) {
                Dequeued::Dropped(packet, reason) => dropped.push(fate(&packet, "drop", Some(reason))),
                Dequeued::Sent(packet, _) => {
                    let after: u64 = self.notified().iter().map(|(_, packets)| packets).sum();
                    let decision = if after > before { "mark" } else { "pass" };
                    break (dropped, Some(fate(&packet, decision, None)), None);
                }
                Dequeued::Wait(until) => break (dropped, None, until.map(Instant::as_nanos)),
            }
        };
        self.fault.check()?;
        Ok(departure)
    }

    /// What the block keeps track of, by name.
    fn gauges(&self) -> PyResult<Vec<(String, f64)>> {
        let gauges = self.queue.gauges();
        self.fault.check()?;
        Ok(gauges)
    }

    /// Packets and bytes that wait.
    fn waiting(&self) -> (u64, u64) {
        (self.queue.occupancy().packets(), self.queue.occupancy().bytes())
    }

    /// The classes of packets, in order: names and counters.
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let queue = &self.queue;
        (0..queue.classes()).map(|n| class(py, queue.class_name(n), queue.class(n))).collect()
    }

    /// All of its state as text, for reading only: no format is promised.
    fn state(&self) -> String {
        format!("{:#?}", self.queue)
    }
}

impl QueueByHand {
    /// Packets marked so far, by reason.
    fn notified(&self) -> Vec<(Reason, u64)> {
        let of = |class: &ClassCounters, reason| class.through.notified(reason).iter().sum::<u64>();
        let sum = |reason| (0..self.queue.classes()).map(|n| of(self.queue.class(n), reason)).sum();
        Reason::ALL.into_iter().map(|reason| (reason, sum(reason))).collect()
    }
}

/// The meter of a traffic profile, with the marker or policer behind it.
#[pyclass(module = "perhop._engine")]
pub(crate) struct MeterByHand {
    conditioner: Conditioner,
    /// What a class in Python raises, if it is one.
    fault: Arc<Fault>,
}

#[pymethods]
impl MeterByHand {
    #[new]
    fn new(table: &str, rate: &str, seed: u64) -> PyResult<Self> {
        let rate = rate_of(rate)?;
        let params: MeterParams = parameters(serde_json::from_str(table).map_err(invalid)?)?;
        let rng = Rng::stream(seed, "by hand");
        let fault = classes::implement_meter_by_hand(&params);
        let built = Self { conditioner: Conditioner::new(&params, rate, rng), fault };
        built.fault.check()?;
        Ok(built)
    }

    /// A packet passes the meter: the color that it gets, and why it is dropped if it is.
    fn offer(&mut self, ns: u64, fields: Fields) -> PyResult<(&'static str, Option<&'static str>)> {
        let verdict = self.conditioner.judge(&header(fields)?, Instant::from_nanos(ns));
        self.fault.check()?;
        Ok((verdict.color.name(), verdict.dropped.map(Reason::name)))
    }

    /// All of its state as text, for reading only: no format is promised.
    fn state(&self) -> String {
        format!("{:#?}", self.conditioner)
    }
}

/// The fields of a packet: its size, color, codepoint, ECN field, flow, path, and contracted rate in bit/s.
type Fields = (u16, String, u8, u8, u32, u32, u64);

fn header((size, color, dscp, ecn, flow, label, service_bps): Fields) -> PyResult<Header> {
    let color = color_of(&color)?;
    let dscp = Dscp::new(dscp).ok_or_else(|| invalid("dscp: a codepoint lies between 0 and 63"))?;
    let ecn = match ecn {
        0 => Ecn::NotCapable,
        1 => Ecn::Capable1,
        2 => Ecn::Capable0,
        _ => Ecn::Congested,
    };
    let service = Bitrate::from_bps(service_bps).map_or(ServiceLevel::NONE, ServiceLevel::of);
    Ok(Header { color, dscp, ecn, label, service, ..Header::new(FlowId(flow), size) })
}

fn rate_of(text: &str) -> PyResult<Bitrate> {
    text.parse().map_err(|problem| invalid(format!("rate: {problem}")))
}

/// The parameters of a block from its table.
fn parameters<P: serde::de::DeserializeOwned>(table: Value) -> PyResult<P> {
    serde_json::from_value(table).map_err(|problem| refused(&problem.to_string()))
}

fn refused(problem: &str) -> PyErr {
    match split_key(problem) {
        ("", problem) => invalid(problem),
        (key, problem) => invalid(format!("{key}: {problem}")),
    }
}
