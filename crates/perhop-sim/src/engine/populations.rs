//! Populations: finite flows that begin during the run, and leave when nothing of them is left.
//!
//! A flow of a population takes a number of its own beyond those of the network's flows. It is over when none
//! of its packets is in the network and none of its timers is set, since nothing can then happen to it any
//! more. Others take its number, so the memory of a run depends on how many flows are open at once.
//!
//! Both engines number flows alike. A flow takes the lowest of its population's free numbers. Where none is
//! free, the numbers of flows that were over before it begins become free; but only if they are at least an
//! eighth of all numbers that the population has taken, else the flow takes a new one. So an engine that is
//! ahead of the clock rarely needs to find out which flows are over at some time.

use std::sync::Arc;

use perhop_core::Instant;

use crate::engine::setup::PopulationPlace;
use crate::flow::{Counts, Flow, FlowPlace};
use crate::network::{FlowSpec, Network};
use crate::observer::Origin;
use crate::outcome::{FlowOutcome, FlowRecord, PopulationOutcome};
use crate::probe::Series;
use crate::sampling::{Recorder, SampleTimes};
use crate::transport::transit::TransitMeter;
use crate::workload::{Arrival, Draws, Packets};

/// Numbers become free again only if they are at least this share of all.
const SHARE: usize = 8;

/// All populations of a run, and the flows of theirs that are not over.
#[derive(Clone, Debug, Default)]
pub(super) struct Populations {
    seed: u64,
    /// The number of the first flow of a population; flows of the network have lower ones.
    first: usize,
    all: Vec<Population>,
    /// For each number from `first` on, the flow that has it, or had it last.
    members: Vec<Member>,
    /// Flows that have begun so far.
    begun: u32,
}

#[derive(Clone, Debug)]
struct Population {
    spec: FlowSpec,
    home: PopulationPlace,
    headers: u16,
    draws: Draws,
    next: Option<Arrival>,
    records: Records,
    /// The count of numbers that the population has taken.
    numbers: usize,
    /// The free ones among these numbers, the lowest last.
    free: Vec<usize>,
    /// Numbers of flows that are over but which are not free yet, with the time from which on nothing has
    /// happened to them.
    over: Vec<(Instant, usize)>,
    /// The counts after the warm-up of flows whose numbers have become free.
    counts: Counts,
    /// The transit times of these flows' packets, where they are measured.
    transit: TransitMeter,
}

/// So many records are together.
const TOGETHER: usize = 256;

/// The records of all flows that have begun. A copy of a run shares those that neither changes any more.
#[derive(Clone, Debug, Default)]
struct Records {
    /// Each but the last has [`TOGETHER`].
    parts: Vec<Arc<Vec<FlowRecord>>>,
    len: usize,
}

impl Records {
    fn push(&mut self, record: FlowRecord) {
        if self.len.is_multiple_of(TOGETHER) {
            self.parts.push(Arc::new(Vec::with_capacity(TOGETHER)));
        }
        self.parts.last_mut().into_iter().for_each(|last| Arc::make_mut(last).push(record));
        self.len += 1;
    }

    /// Notes when the flow of this record completed.
    fn complete(&mut self, record: usize, at: Instant) {
        Arc::make_mut(&mut self.parts[record / TOGETHER])[record % TOGETHER].completed = at;
    }

    fn all(&self) -> Vec<FlowRecord> {
        self.parts.iter().flat_map(|part| part.iter().copied()).collect()
    }
}

/// A flow of a population.
#[derive(Clone, Copy, Debug)]
struct Member {
    population: usize,
    record: usize,
    is_over: bool,
    /// The last time at which something happened at one of its hosts.
    last: Instant,
    /// Packets in the network. The batched engine does not count data packets when they are sent; there,
    /// subtract the sender's count.
    packets: i64,
}

/// The flows of an engine, by number.
pub(super) trait Table {
    fn flow(&mut self, number: usize) -> &mut Flow;
}

impl Table for Vec<Flow> {
    fn flow(&mut self, number: usize) -> &mut Flow {
        &mut self[number]
    }
}

/// A flow that begins.
pub(super) struct Beginning {
    /// The number of a flow that is over, or the next after all.
    pub(super) number: usize,
    pub(super) flow: Flow,
    /// When the next flow of its population begins.
    pub(super) next: Option<Instant>,
}

impl Populations {
    pub(super) fn new(network: &Network, homes: Vec<PopulationPlace>, seed: u64) -> Self {
        let specs = network.flows.iter().filter_map(|spec| Some((spec, spec.population.as_ref()?)));
        let window @ (_, end) = (Instant::ZERO + network.warmup, Instant::ZERO + network.duration);
        let all = specs.zip(homes).map(|((spec, workload), home)| {
            let mut draws = spec.draws(workload, seed, end);
            Population {
                spec: FlowSpec { population: None, stop: None, ..spec.clone() },
                home,
                headers: workload.headers,
                next: draws.next(),
                draws,
                records: Records::default(),
                numbers: 0,
                free: Vec::new(),
                over: Vec::new(),
                counts: Counts::default(),
                transit: TransitMeter::new(window),
            }
        });
        Self { seed, first: network.flows.len(), all: all.collect(), members: Vec::new(), begun: 0 }
    }

    /// Returns when each population's first flow begins.
    pub(super) fn first_arrivals(&self) -> impl Iterator<Item = (usize, Instant)> {
        self.all.iter().enumerate().filter_map(|(number, population)| Some((number, population.next?.at)))
    }

    /// Draws anew when the next flow of each population begins, given that it has not by now. Returns when
    /// the next flows begin.
    pub(super) fn redraw(&mut self, now: Instant) -> impl Iterator<Item = (usize, Instant)> {
        for population in &mut self.all {
            population.next = population.draws.redraw(population.next, now);
        }
        self.first_arrivals()
    }

    /// Returns the flow of the network that represents a population.
    pub(super) fn stands_for(&self, population: usize) -> usize {
        self.all[population].home.place.number
    }

    /// Returns the specification of a population's flows.
    pub(super) fn spec(&self, population: usize) -> &FlowSpec {
        &self.all[population].spec
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether the flow of this number belongs to a population.
    #[inline]
    pub(super) fn contains(&self, flow: usize) -> bool {
        flow >= self.first
    }

    /// Returns whether the next flow of a population has a number, whatever has become of others.
    #[inline]
    pub(super) fn has_number(&self, population: usize) -> bool {
        !self.all[population].free.is_empty()
    }

    /// Counts so many packets of a flow that enter the network; or that leave it, if the number is negative.
    #[inline]
    pub(super) fn enter(&mut self, flow: usize, packets: i64) {
        if self.contains(flow) {
            self.members[flow - self.first].packets += packets;
        }
    }

    /// Notes that something happened at a host of a flow at this time. `ends` says whether nothing can happen
    /// to it any more, by its packets in the network, as far as the engine counts them.
    #[inline]
    pub(super) fn happened(&mut self, flow: usize, at: Instant, ends: impl FnOnce(i64) -> bool) {
        let member = &mut self.members[flow - self.first];
        member.last = member.last.max(at);
        if ends(member.packets) && !std::mem::replace(&mut member.is_over, true) {
            self.all[member.population].over.push((member.last, flow));
        }
    }

    /// Begins the next flow of a population, and draws the one after it. The flows that were over before must
    /// be known, unless the population [has a number](Self::has_number) for it.
    pub(super) fn begin(
        &mut self,
        number: usize,
        now: Instant,
        flows: &mut impl Table,
        recorder: &mut Recorder,
    ) -> Option<Beginning> {
        if self.all[number].free.is_empty() {
            self.free_numbers(number, now, flows, recorder);
        }
        let Self { seed, first, all, members, begun } = self;
        let population = &mut all[number];
        let arrival = std::mem::replace(&mut population.next, population.draws.next())?;
        let place = population.free.pop().unwrap_or_else(|| {
            population.numbers += 1;
            *first + members.len()
        });
        let record = population.records.len;
        let origin = Origin {
            spec: population.home.place.number as u32,
            member: Some(record as u32),
            serial: (*first as u32).wrapping_add(*begun),
        };
        *begun = begun.wrapping_add(1);
        let flow = population.flow(place, arrival, origin, *seed, &recorder.times);
        let member = Member { population: number, record, is_over: false, last: now, packets: 0 };
        match members.get_mut(place - *first) {
            Some(before) => *before = member,
            None => members.push(member),
        }
        Some(Beginning { number: place, flow, next: population.next.map(|next| next.at) })
    }

    /// Makes numbers of flows free that were over before `now`, if they are enough.
    fn free_numbers(&mut self, number: usize, now: Instant, flows: &mut impl Table, recorder: &mut Recorder) {
        let Self { first, all, members, .. } = self;
        let Population { over, free, numbers, records, counts, transit, .. } = &mut all[number];
        let found = over.iter().filter(|&&(last, _)| last < now).count();
        if found * SHARE < *numbers {
            return;
        }
        let Recorder { times, series, .. } = recorder;
        over.retain(|&(last, flow)| {
            if last < now {
                free.push(flow);
            }
            last >= now
        });
        free.sort_unstable_by(|one, other| other.cmp(one));
        for &number in &*free {
            let flow = flows.flow(number);
            records.complete(members[number - *first].record, flow.completed().unwrap_or(Instant::NEVER));
            if let Some(meter) = flow.transit() {
                transit.add(meter);
            }
            if now > times.measured().0 {
                counts.add(&flow.counts_after_warmup(now));
            }
            flow.sample_last(now, times, series);
        }
    }

    /// Returns the outcomes of all flows at the end of the run; `flows` has the network's, then populations'.
    pub(super) fn finish(
        self,
        flows: impl IntoIterator<Item = Flow>,
        now: Instant,
        times: &SampleTimes,
        series: &mut Series,
    ) -> (Vec<FlowOutcome>, Vec<PopulationOutcome>) {
        let Self { first, mut all, members, .. } = self;
        let mut flows = flows.into_iter();
        // Flows that represent populations wait for theirs; what becomes of the others takes their place.
        let mut represent = all.iter().map(|population| population.home.place.number).peekable();
        let (mut outcomes, mut waiting) = (Vec::with_capacity(first), Vec::new());
        for (number, flow) in flows.by_ref().take(first).enumerate() {
            if represent.next_if_eq(&number).is_some() {
                outcomes.push(FlowOutcome::default());
                waiting.push(flow);
            } else {
                outcomes.push(flow.finish(times, now));
            }
        }
        let mut is_free = vec![false; members.len()];
        all.iter().flat_map(|population| &population.free).for_each(|&flow| is_free[flow - first] = true);
        for ((flow, member), is_free) in flows.zip(members).zip(is_free) {
            if !is_free {
                let population = &mut all[member.population];
                population.counts.add(&flow.counts_after_warmup(now));
                if let Some(meter) = flow.transit() {
                    population.transit.add(meter);
                }
                let completed = flow.completed().filter(|&at| at <= now);
                population.records.complete(member.record, completed.unwrap_or(Instant::NEVER));
            }
        }
        let ended = all.into_iter().zip(waiting).map(|(population, flow)| {
            let number = population.home.place.number;
            times.bytes_to_rates(&mut series.throughput_bps, number);
            let mut outcome = flow.finish_with(times, &population.counts, now);
            if outcome.transits.is_some() {
                outcome.transits = Some(population.transit.delays().clone());
                outcome.mean_transit_s = population.transit.mean();
                outcome.p99_transit_s = population.transit.p99();
            }
            let records = population.records.all();
            outcome.started = records.first().map(|first| first.started);
            outcomes[number] = outcome;
            PopulationOutcome { flow: number, mean_open: mean_open(&records, now, times), flows: records }
        });
        let ended = ended.collect();
        (outcomes, ended)
    }
}

/// Returns how many flows were open at once on average, from the end of the warm-up on.
fn mean_open(records: &[FlowRecord], now: Instant, times: &SampleTimes) -> f64 {
    let (begin, end) = times.measured();
    let open = records.iter().map(|record| {
        let (from, to) = (record.started.max(begin), record.completed.min(now));
        if to > from { u128::from(to.since(from).as_nanos()) } else { 0 }
    });
    open.sum::<u128>() as f64 / end.since(begin).as_nanos() as f64
}

impl Population {
    /// Returns a flow of this size, which begins now and has this number. Adds its record.
    fn flow(
        &mut self,
        number: usize,
        arrival: Arrival,
        origin: Origin,
        seed: u64,
        times: &SampleTimes,
    ) -> Flow {
        let Self { spec, home, headers, records, .. } = self;
        let Arrival { at, size } = arrival;
        let packets = Packets::of(size, spec.transport.packet_sizes().0, *headers);
        let spec = FlowSpec {
            name: format!("{}#{}", spec.name, records.len),
            start: (at, at),
            volume: Some(packets.all),
            ..spec.clone()
        };
        let idle = home.idle.time(packets);
        let place = FlowPlace { number, idle_time: Some(idle), ..home.place.clone() };
        let mut flow = Flow::new(&spec, &place, seed, times);
        flow.join_population(origin, packets.last.get() as u16);
        records.push(FlowRecord { started: at, size, idle, completed: Instant::NEVER });
        flow
    }
}
