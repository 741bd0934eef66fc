//! A link: its queue, the queues of earlier configurations that still hold packets, its medium and its
//! propagation delay.

use std::collections::VecDeque;
use std::sync::Arc;

use perhop_core::measure::{LinkOutcome, PortView, TransitCounts};
use perhop_core::medium::{MediumState, RateTrace};
use perhop_core::meter::{AggregateMeter, AggregateMeters, MeterCounts};
use perhop_core::scheduler::SchedulerParams;
use perhop_core::{Bitrate, Color, Counters, Instant, Port, Served, Streams};

use super::Frame;
use super::line::Line;
use crate::spec::LinkSpec;

#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) rate: Bitrate,
    pub(super) queue: SchedulerParams,
    meter_specs: Vec<AggregateMeter>,
    pub(super) meters: AggregateMeters,
    /// The counts of meters of earlier configurations, by name.
    retired_meters: Vec<(String, MeterCounts)>,
    pub(super) port: Port<Frame>,
    /// Ports of earlier configurations, which are served first.
    earlier: VecDeque<Port<Frame>>,
    /// The counters of earlier ports that are gone, by class.
    retired: Vec<(String, Counters)>,
    pub(super) line: Line,
    /// How the link changes, and which packets it loses and delays; `None` if it does none of these. Such a
    /// link has no earlier ports.
    pub(super) medium: Option<Box<MediumState>>,
    trace: Option<Arc<RateTrace>>,
}

/// The traffic of a link, over all its configurations.
#[derive(Clone, Debug)]
pub struct LinkTotals<'a> {
    /// The name of the link.
    pub name: &'a str,
    /// The rate of the link.
    pub rate: Bitrate,
    /// The counters of each class of packets that the link's queues distinguish.
    pub classes: Vec<ClassTotals<'a>>,
    /// The counts of the link's meters, by name.
    pub meters: Vec<(&'a str, MeterCounts)>,
    /// The queue of the link as it is now.
    pub view: PortView<'a>,
    /// Packets that wait in queues of earlier configurations.
    pub left_over: u64,
}

/// The counters of a class of packets at a link.
#[derive(Clone, Debug)]
pub struct ClassTotals<'a> {
    /// The name of the class.
    pub name: &'a str,
    /// Packets that wait, by color.
    pub waiting: [u64; 3],
    /// The bytes of the packets that wait.
    pub waiting_bytes: u64,
    /// Arrivals, departures and drops.
    pub counters: Counters,
}

impl Link {
    pub(super) fn new(spec: LinkSpec, seed: u64, window: (Instant, Instant)) -> Self {
        let LinkSpec { name, rate, delay, queue, meters, medium } = spec;
        let path = format!("links/{name}");
        let streams = Streams { seed, path: &path };
        let mut port = Port::new(queue.clone(), rate, streams, window);
        medium.note_rates(port.rates());
        Self {
            port,
            meters: AggregateMeters::new(&meters, streams),
            meter_specs: meters,
            retired_meters: Vec::new(),
            earlier: VecDeque::new(),
            retired: Vec::new(),
            line: Line::new(delay),
            medium: MediumState::new(&medium, streams),
            trace: medium.trace,
            name,
            rate,
            queue,
        }
    }

    /// Takes over the meters of another configuration. Returns whether they are new.
    pub(super) fn reconfigure_meters(&mut self, meters: &[AggregateMeter], seed: u64) -> bool {
        let are_new = self.meter_specs != meters;
        if are_new {
            let totals = self.meter_totals().into_iter();
            self.retired_meters = totals.map(|(name, counts)| (name.to_owned(), counts)).collect();
            self.meter_specs = meters.to_vec();
            self.meters =
                AggregateMeters::new(meters, Streams { seed, path: &format!("links/{}", self.name) });
        }
        are_new
    }

    /// Takes over another configuration of queue, rate and delay. Returns whether the queue or the rate is
    /// new: then the present queue is drained before its successor is served.
    pub(super) fn reconfigure(&mut self, spec: LinkSpec, seed: u64, window: (Instant, Instant)) -> bool {
        self.line.set_delay(spec.delay);
        if (self.rate, &self.queue) == (spec.rate, &spec.queue) {
            return false;
        }
        let Self { rate, queue, port, .. } = Self::new(spec, seed, window);
        self.earlier.push_back(std::mem::replace(&mut self.port, port));
        self.earlier.iter_mut().for_each(|port| port.set_rate(rate));
        (self.rate, self.queue) = (rate, queue);
        true
    }

    /// Returns the counts of its meters over all configurations.
    fn meter_totals(&self) -> Vec<(&str, MeterCounts)> {
        let present = self.meters.counts().into_iter();
        let mut totals: Vec<(&str, MeterCounts)> =
            present.map(|(name, counts)| (name, counts.clone())).collect();
        for (name, earlier) in &self.retired_meters {
            match totals.iter_mut().find(|(known, _)| known == name) {
                Some((_, counts)) => *counts = counts.and(earlier),
                None => totals.push((name, earlier.clone())),
            }
        }
        totals
    }

    /// Returns a sample of its present port and its meters.
    pub(super) fn view(&self) -> PortView<'_> {
        let transit = self.medium.as_ref().map_or_else(TransitCounts::default, |medium| medium.counts());
        PortView { meters: self.meters.counts(), transit, ..self.port.view() }
    }

    /// Returns the counters and statistics of its present port and its meters over the whole run.
    pub(super) fn outcome(&self) -> LinkOutcome {
        let view = self.view();
        let outcome = LinkOutcome::of(&self.name, self.rate, &view);
        match &self.trace {
            Some(trace) => outcome.used(trace.usage(view.statistics)),
            None => outcome,
        }
    }

    /// Makes the change of its medium that is due. Returns whether an outage has ended: then the link is to
    /// be served.
    pub(super) fn change(&mut self, now: Instant) -> bool {
        let Self { medium: Some(medium), port, line, .. } = self else { return false };
        let Some(event) = medium.pop_due(now) else { return false };
        let mut delay = line.delay();
        let is_up_again = medium.apply(event, &mut port.typed(), &mut delay);
        line.set_delay(delay);
        is_up_again
    }

    /// Serves the port that comes next, if the medium lets it send.
    #[inline]
    pub(super) fn serve(&mut self, now: Instant) -> Served<Frame> {
        match &mut self.medium {
            None => self.active_port(now).serve(now),
            Some(medium) => medium.serve(&mut self.port.typed(), now),
        }
    }

    /// Returns the port that is to be served. A port of an earlier configuration goes before later ones, and
    /// is removed when it is empty and the link is free.
    #[inline]
    fn active_port(&mut self, now: Instant) -> &mut Port<Frame> {
        if self.earlier.is_empty() { &mut self.port } else { self.earliest_port(now) }
    }

    #[cold]
    fn earliest_port(&mut self, now: Instant) -> &mut Port<Frame> {
        while self.earlier.front().is_some_and(|port| port.is_done(now)) {
            let Some(port) = self.earlier.pop_front() else { break };
            for (name, class) in port.view().classes {
                match self.retired.iter_mut().find(|(retired, _)| retired == name) {
                    Some((_, counters)) => counters.add(&class.through),
                    None => self.retired.push((name.into(), class.through.clone())),
                }
            }
        }
        self.earlier.front_mut().unwrap_or(&mut self.port)
    }

    /// Returns the ports of the link, those of earlier configurations first.
    pub(super) fn ports(&self) -> impl Iterator<Item = &Port<Frame>> {
        self.earlier.iter().chain([&self.port])
    }

    /// Returns the counters of the link over all configurations.
    pub(super) fn totals(&self) -> LinkTotals<'_> {
        let gone = self.retired.iter().map(|(name, counters)| (name.as_str(), None, counters));
        let mut classes: Vec<ClassTotals<'_>> = Vec::new();
        let here = self.ports().flat_map(|port| port.view().classes);
        let here = here.map(|(name, class)| (name, Some(&class.occupancy), &class.through));
        for (name, waits, counters) in gone.chain(here) {
            let number = classes.iter().position(|class| class.name == name).unwrap_or(classes.len());
            if number == classes.len() {
                let counters = Counters::default();
                classes.push(ClassTotals { name, waiting: [0; 3], waiting_bytes: 0, counters });
            }
            let class = &mut classes[number];
            class.counters.add(counters);
            if let Some(waits) = waits {
                for color in Color::ALL {
                    class.waiting[color.index()] += waits.packets_of(color);
                }
                class.waiting_bytes += waits.bytes();
            }
        }
        let left_over = self.earlier.iter().map(|port| port.view().waiting().iter().sum::<u64>()).sum();
        let meters = self.meter_totals();
        LinkTotals { name: &self.name, rate: self.rate, classes, meters, view: self.view(), left_over }
    }
}
