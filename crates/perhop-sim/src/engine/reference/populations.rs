//! Populations: finite flows that begin during the run, and leave when nothing of them is left.
//!
//! A flow of a population takes a number of its own beyond those of the network's flows. It is over when none of its packets is in
//! the network and none of its timers is set, since nothing can then happen to it any more. Its number is free again, so the memory
//! of a run depends on how many flows are open at once.

use perhop_core::Instant;

use super::Reference;
use crate::engine::setup::Home;
use crate::events::Event;
use crate::flow::{Flow, Place};
use crate::network::{FlowSpec, Network};
use crate::outcome::{FlowOutcome, FlowRecord, PopulationOutcome};
use crate::packet::SimPacket;
use crate::sampling::SampleTimes;
use crate::workload::{Arrival, Draws, Packets};

/// All populations of a run, and the flows of theirs that are not over.
#[derive(Clone, Debug)]
pub(super) struct Populations {
    seed: u64,
    /// The number of the first flow of a population; flows of the network have lower ones.
    first: usize,
    all: Vec<Population>,
    /// For each number from `first` on, the flow that has it.
    members: Vec<Member>,
    /// Flows that have begun so far.
    begun: u32,
}

#[derive(Clone, Debug)]
struct Population {
    /// What its flows are made from.
    spec: FlowSpec,
    home: Home,
    headers: u16,
    draws: Draws,
    next: Option<Arrival>,
    records: Vec<FlowRecord>,
    open: OpenFlows,
    /// Numbers that are free.
    free: Vec<usize>,
    /// What its flows that are over had counted after the warm-up.
    over: Option<FlowOutcome>,
    /// The bytes that they had delivered, and those of all flows by the last sample of the probe.
    over_bytes: u64,
    last_bytes: u64,
}

/// A flow of a population.
#[derive(Clone, Copy, Debug)]
struct Member {
    population: usize,
    /// Where its record is; `None` while the number is free.
    record: Option<usize>,
    /// Its packets in the network.
    packets: u64,
}

/// How many flows are open, and the integral of that over the time after the warm-up.
#[derive(Clone, Copy, Debug)]
struct OpenFlows {
    count: u64,
    since: Instant,
    area: u128,
}

impl OpenFlows {
    fn advance(&mut self, now: Instant) {
        if now > self.since {
            self.area += u128::from(self.count) * u128::from(now.since(self.since).as_nanos());
            self.since = now;
        }
    }
}

impl Populations {
    pub(super) fn new(network: &Network, homes: Vec<Home>, seed: u64) -> Self {
        let specs = network.flows.iter().filter_map(|spec| Some((spec, spec.population.as_ref()?)));
        let end = Instant::ZERO + network.duration;
        let all = specs.zip(homes).map(|((spec, workload), home)| {
            let mut draws = Draws::of(spec, workload, seed, end);
            Population {
                spec: FlowSpec { population: None, stop: None, ..spec.clone() },
                home,
                headers: workload.headers,
                next: draws.next(),
                draws,
                records: Vec::new(),
                open: OpenFlows { count: 0, since: Instant::ZERO + network.warmup, area: 0 },
                free: Vec::new(),
                over: None,
                over_bytes: 0,
                last_bytes: 0,
            }
        });
        Self { seed, first: network.flows.len(), all: all.collect(), members: Vec::new(), begun: 0 }
    }

    /// When each population's first flow begins.
    pub(super) fn first_arrivals(&self) -> impl Iterator<Item = (usize, Instant)> {
        self.all.iter().enumerate().filter_map(|(number, population)| Some((number, population.next?.at)))
    }

    /// The flow of this number belongs to a population.
    #[inline]
    pub(super) fn contains(&self, flow: usize) -> bool {
        flow >= self.first
    }

    /// A packet of a flow enters the network.
    #[inline]
    pub(super) fn enter(&mut self, flow: usize) {
        if self.contains(flow) {
            self.members[flow - self.first].packets += 1;
        }
    }

    fn complete(&mut self, flow: usize, now: Instant) {
        let Member { population, record, .. } = self.members[flow - self.first];
        let population = &mut self.all[population];
        population.records[record.expect("it is not over")].completed = now;
        population.open.advance(now);
        population.open.count -= 1;
    }

    /// What became of all flows at the end of the run; `flows` are those of the network, then those of populations.
    pub(super) fn finish(
        mut self,
        flows: Vec<Flow>,
        now: Instant,
        times: &SampleTimes,
    ) -> (Vec<FlowOutcome>, Vec<PopulationOutcome>) {
        let mut outcomes = Vec::with_capacity(self.first);
        for (number, flow) in flows.into_iter().enumerate() {
            if !self.contains(number) {
                outcomes.push(flow.finish(times));
            } else if let Member { population, record: Some(_), .. } = self.members[number - self.first] {
                self.all[population].count(&flow.finish(times));
            }
        }
        let (begin, end) = times.measured();
        let measured = end.since(begin).as_nanos() as f64;
        let populations = self.all.into_iter().map(|mut population| {
            population.open.advance(now);
            let flow = population.home.place.number;
            if let Some(over) = population.over {
                outcomes[flow].add(&over);
            }
            let mean_open = population.open.area as f64 / measured;
            PopulationOutcome { flow, flows: population.records, mean_open }
        });
        let populations = populations.collect();
        (outcomes, populations)
    }
}

impl Population {
    /// Adds what a flow has counted after the warm-up.
    fn count(&mut self, outcome: &FlowOutcome) {
        match &mut self.over {
            Some(over) => over.add(outcome),
            None => self.over = Some(outcome.clone()),
        }
    }

    /// A flow of this size, which begins now and has this number.
    fn flow(&self, number: usize, arrival: Arrival, seed: u64, times: &SampleTimes) -> (Flow, FlowRecord) {
        let Self { spec, home, headers, records, .. } = self;
        let Arrival { at, size } = arrival;
        let packets = Packets::of(size, spec.transport.packet_sizes().0, *headers);
        let spec = FlowSpec {
            name: format!("{}#{}", spec.name, records.len()),
            start: (at, at),
            volume: Some(packets.all),
            ..spec.clone()
        };
        let idle = home.idle.time(packets);
        let place = Place { number, idle_time: Some(idle), ..home.place.clone() };
        let mut flow = Flow::new(&spec, &place, seed, times);
        flow.set_last(packets.last.get() as u16);
        (flow, FlowRecord { started: at, size, idle, completed: Instant::NEVER })
    }
}

impl Reference {
    /// The next flow of a population begins; draws the one after it.
    pub(super) fn begin_flow(&mut self, number: usize) {
        let Self { flows, timers, events, sources, populations, recorder, now, .. } = self;
        let Populations { seed, first, all, members, begun } = populations;
        let population = &mut all[number];
        let Some(arrival) = std::mem::replace(&mut population.next, population.draws.next()) else { return };
        if let Some(next) = population.next {
            events.push(Event { at: next.at, source: sources.population(number) });
        }
        let place = population.free.pop().unwrap_or(flows.len());
        let (mut flow, record) = population.flow(place, arrival, *seed, &recorder.times);
        let serial = (*first as u32).wrapping_add(*begun);
        *begun = begun.wrapping_add(1);
        flow.set_member(population.home.place.number as u32, population.records.len() as u32, serial);
        let member = Member { population: number, record: Some(population.records.len()), packets: 0 };
        population.records.push(record);
        population.open.advance(*now);
        population.open.count += 1;
        if place == flows.len() {
            flows.push(flow);
            timers.add();
            members.push(member);
        } else {
            flows[place] = flow;
            members[place - *first] = member;
        }
        self.set_timer(place);
    }

    /// A packet of a flow leaves the network: it has reached its host, or was dropped.
    #[inline]
    pub(super) fn leave(&mut self, packet: SimPacket) {
        let flow = packet.flow();
        if self.populations.contains(flow) {
            self.populations.members[flow - self.populations.first].packets -= 1;
            self.end_flow_if_over(flow);
        }
    }

    /// A packet of data has reached its receiver.
    pub(super) fn note_completion(&mut self, flow: usize) {
        if self.populations.contains(flow) && self.flows[flow].completed() == Some(self.now) {
            let Member { population, record, .. } = self.populations.members[flow - self.populations.first];
            let record = record.expect("it is not over");
            if self.populations.all[population].records[record].completed == Instant::NEVER {
                self.populations.complete(flow, self.now);
            }
        }
    }

    /// Frees the number of a flow of a population to which nothing can happen any more.
    pub(super) fn end_flow_if_over(&mut self, flow: usize) {
        let Self { flows, populations, recorder, now, .. } = self;
        let Populations { first, all, members, .. } = populations;
        let Member { population, record, packets } = &mut members[flow - *first];
        if *packets > 0 || record.is_none() || flows[flow].wake() != Instant::NEVER {
            return;
        }
        *record = None;
        let population = &mut all[*population];
        population.free.push(flow);
        population.over_bytes += flows[flow].delivered_bytes();
        if *now > recorder.times.measured().0 {
            population.count(&flows[flow].clone().finish(&recorder.times));
        }
    }

    /// Samples populations for the probe, or because the warm-up ends.
    pub(super) fn sample_populations(&mut self) {
        let Self { now, flows, populations, recorder, .. } = self;
        let Populations { first, all, members, .. } = populations;
        let mut bytes: Vec<u64> = all.iter().map(|population| population.over_bytes).collect();
        let ends_warmup = recorder.times.ends_warmup(*now);
        for (flow, member) in flows[*first..].iter_mut().zip(members) {
            if member.record.is_some() {
                bytes[member.population] += flow.delivered_bytes();
                if ends_warmup {
                    flow.end_warmup();
                }
            }
        }
        let Some((row, interval)) = recorder.times.row(*now) else { return };
        for (population, bytes) in all.iter_mut().zip(bytes) {
            let bps = (bytes - population.last_bytes) as f64 * 8.0 / interval.as_secs_f64();
            population.last_bytes = bytes;
            let flow = population.home.place.number as u32;
            recorder.times.write(&mut recorder.series.throughput_bps, row, flow, bps);
            recorder.times.write(&mut recorder.series.window_packets, row, flow, f64::NAN);
        }
    }
}
