//! A run that a page shows: it goes on as far as asked, and is sampled at regular times, which do not depend
//! on how it is looked at.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perhop_core::{Color, Duration, Instant, Reason};
use perhop_scenario::Scenario;
use perhop_sim::observer::Observation;
use perhop_sim::transport::limits::Limit;
use perhop_sim::{Outcome, Refused, Stepping};

use crate::describe::{self, ClassInfo, Column, Opened, classes, sample_interval, sampled_flows};
use crate::problem::Problem;
use crate::witness::Witness;

/// Links whose queues are sampled.
const MOST_SAMPLED: usize = 16;

/// A run in progress, and what has been sampled of it.
#[derive(Debug)]
pub struct LiveRun {
    toml: String,
    /// The text at time zero, and the texts that took its place while the run went on.
    start: String,
    changes: Vec<(Instant, String)>,
    scenario: Scenario,
    seed: u64,
    stepping: Stepping,
    witness: Arc<Mutex<Witness>>,
    columns: Vec<Column>,
    gauges: Vec<Vec<String>>,
    classes: Vec<ClassInfo>,
    /// The flows that are sampled, by number.
    flows: Vec<usize>,
    interval: Duration,
    next_sample: Instant,
    times: Vec<f64>,
    values: Vec<f64>,
    /// Rows and events that the page has.
    shown_rows: usize,
    shown_events: usize,
    pub(crate) shown_histograms: Option<Instant>,
}

impl LiveRun {
    /// Begins a scenario, at time zero.
    pub fn new(toml: &str, seed: u64) -> Result<Self, Problem> {
        let scenario = describe::read(toml)?;
        let network = scenario.network();
        let witness = Arc::new(Mutex::new(Witness::new(&network.links)));
        let links = (0..network.links.len()).collect();
        let observation = Observation::new(witness.clone(), links);
        let mut stepping = Stepping::observed(&network, seed, observation)
            .map_err(|failure| Problem::new(failure.to_string()))?;
        let gauges = (0..network.links.len()).map(|link| gauges(&mut stepping, link)).collect::<Vec<_>>();
        let classes = classes(&network.flows);
        let flows = sampled_flows(&classes);
        let columns = columns(&stepping, &gauges, &classes, &flows);
        let mut run = Self {
            toml: toml.into(),
            start: toml.into(),
            changes: Vec::new(),
            interval: sample_interval(scenario.duration),
            scenario,
            seed,
            stepping,
            witness,
            columns,
            gauges,
            classes,
            flows,
            next_sample: Instant::ZERO,
            times: Vec::new(),
            values: Vec::new(),
            shown_rows: 0,
            shown_events: 0,
            shown_histograms: None,
        };
        run.sample();
        Ok(run)
    }

    /// What the page needs to know.
    pub fn opened(&self) -> Opened {
        let Self { scenario, toml, seed, columns, gauges, .. } = self;
        describe::opened(scenario, self.stepping.network(), toml, *seed, columns, gauges)
    }

    /// The text of the scenario by now.
    pub fn toml(&self) -> &str {
        &self.toml
    }

    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub fn stepping(&mut self) -> &mut Stepping {
        &mut self.stepping
    }

    /// Returns the time up to which the run has been simulated.
    pub fn now(&self) -> Instant {
        self.stepping.now()
    }

    /// When the run ends.
    pub fn end(&self) -> Instant {
        self.stepping.end()
    }

    /// What was seen of single packets.
    pub fn witness(&self) -> MutexGuard<'_, Witness> {
        self.witness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on up to and including `until`, and samples on the way.
    pub fn run_until(&mut self, until: Instant) {
        let until = until.min(self.end());
        while self.next_sample <= until {
            self.stepping.run_until(self.next_sample);
            self.sample();
        }
        self.stepping.run_until(until);
    }

    /// Goes on until a packet has come to this link, or to any, or the run ends.
    pub fn step(&mut self, link: Option<usize>) {
        let before = self.witness().seen(link);
        // A link to which nothing comes is no reason to run to the end: a second is long enough for a step.
        let latest = (self.now() + Duration::from_secs(1)).min(self.end());
        while self.witness().seen(link) == before {
            let until = latest.min(self.next_sample);
            if self.stepping.step(until) {
                continue;
            }
            if until == self.next_sample {
                self.sample();
            }
            if until == latest {
                return;
            }
        }
    }

    /// Goes on with this text if it differs in what can change during a run only, else as before.
    pub fn become_scenario(&mut self, toml: &str, scenario: Scenario) -> Result<(), Refused> {
        let network = scenario.network();
        self.stepping.become_network(&network)?;
        self.witness().set_links(&network.links);
        self.toml = toml.into();
        self.scenario = scenario;
        self.changes.push((self.now(), toml.into()));
        Ok(())
    }

    /// Begins the run again, up to `until`: what was changed by then changes again at its time, and what was
    /// changed later is undone.
    pub fn replayed(&self, until: Instant) -> Result<Self, Problem> {
        let mut anew = Self::new(&self.start, self.seed)?;
        for (at, toml) in self.changes.iter().take_while(|(at, _)| *at <= until) {
            anew.run_until(*at);
            let scenario = describe::read(toml)?;
            anew.become_scenario(toml, scenario).map_err(|refused| Problem::new(refused.to_string()))?;
        }
        anew.run_until(until);
        Ok(anew)
    }

    /// Returns the scenario that a packet met at this time: a change acts on what happens after its time.
    pub fn scenario_at(&self, at: Instant) -> Result<Scenario, Problem> {
        let met = self.changes.iter().rev().find(|(changed, _)| *changed < at);
        if met.or(self.changes.first()).is_none() {
            return Ok(self.scenario.clone());
        }
        describe::read(met.map_or(&self.start, |(_, toml)| toml))
    }

    /// How many times the text was changed while the run went on.
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Returns what will have been measured at the end of the run, unless perhop is at fault.
    pub fn outcome(&self) -> Result<Outcome, Problem> {
        let copy = self.stepping.clone();
        copy.finish().map_err(|imbalance| Problem::new(format!("perhop is at fault: {imbalance}")))
    }

    /// The rows that the page does not have yet: times, and values row by row.
    pub fn new_samples(&mut self) -> (&[f64], &[f64]) {
        let first = std::mem::replace(&mut self.shown_rows, self.times.len());
        (&self.times[first..], &self.values[first * self.columns.len()..])
    }

    /// All samples: columns, times, and values row by row.
    pub fn samples(&self) -> (&[Column], &[f64], &[f64]) {
        (&self.columns, &self.times, &self.values)
    }

    /// The first event that the page does not have yet; it has all from then on.
    pub fn new_events(&mut self) -> usize {
        let next = self.witness().next_event();
        std::mem::replace(&mut self.shown_events, next)
    }

    /// The page has nothing of this run.
    pub fn show_anew(&mut self) {
        (self.shown_rows, self.shown_events, self.shown_histograms) = (0, 0, None);
    }

    fn sample(&mut self) {
        self.times.push(self.next_sample.as_secs_f64());
        self.next_sample += self.interval;
        let before = self.values.len();
        let links = sampled(&self.stepping);
        for link in links {
            let sent_bytes = self.witness().sent_bytes(link);
            sample_link(&mut self.stepping, link, &self.gauges[link], sent_bytes, &mut self.values);
        }
        for class in self.classes.iter().filter(|class| class.flows > 1) {
            let delivered = |flow| Some(self.stepping.flow(flow).ok()?.delivered_bytes as f64);
            let all: Option<f64> = (class.first..class.first + class.flows).map(delivered).sum();
            self.values.push(all.unwrap_or(f64::NAN));
        }
        for &flow in &self.flows {
            let row = match self.stepping.flow(flow) {
                Ok(state) => [
                    state.delivered_bytes as f64,
                    state.window.unwrap_or(f64::NAN),
                    state.smoothed_rtt_s.unwrap_or(f64::NAN),
                    state.dropped.iter().sum::<u64>() as f64,
                    state.limits.active().as_secs_f64(),
                    state.limits.of(Limit::Receiver).as_secs_f64(),
                ],
                Err(_) => [f64::NAN; 6],
            };
            self.values.extend(row);
        }
        debug_assert_eq!(self.values.len() - before, self.columns.len());
    }
}

/// The links whose queues are sampled.
pub fn sampled(stepping: &Stepping) -> Vec<usize> {
    let links = stepping.network().links.iter().enumerate();
    links.filter(|(_, link)| link.queue.is_some()).map(|(link, _)| link).take(MOST_SAMPLED).collect()
}

fn gauges(stepping: &mut Stepping, link: usize) -> Vec<String> {
    let view = stepping.link(link);
    view.map_or_else(Vec::new, |view| view.gauges.into_iter().map(|(name, _)| name).collect())
}

/// The columns of a sample, in the order in which `sample_link` and `LiveRun::sample` fill them.
fn columns(
    stepping: &Stepping,
    gauges: &[Vec<String>],
    classes: &[ClassInfo],
    flows: &[usize],
) -> Vec<Column> {
    let mut columns = Vec::new();
    for link in sampled(stepping) {
        let mut add = |kind: &'static str, name: &str, unit, color| {
            let of_link = Column { link: Some(link), ..Column::of(kind, unit) };
            columns.push(Column { name: name.into(), color, ..of_link });
        };
        add("queue", "queue", "packets", None);
        add("bytes", "bytes", "bytes", None);
        add("delay", "delay", "s", None);
        add("sentBytes", "sentBytes", "bytes", None);
        add("capacity", "capacity", "bytes", None);
        for gauge in &gauges[link] {
            let unit = if gauge.ends_with("_s") { "s" } else { "" };
            add("gauge", gauge, unit, None);
        }
        for kind in ["arrived", "sent", "dropped", "marked"] {
            for color in Color::ALL {
                add(kind, "all", "packets", Some(color.index() as u8));
            }
        }
        for kind in ["dropped", "marked"] {
            for reason in Reason::ALL {
                add(kind, reason.name(), "packets", None);
            }
        }
    }
    for (class, _) in classes.iter().enumerate().filter(|(_, class)| class.flows > 1) {
        columns.push(Column { class: Some(class), ..Column::of("delivered", "bytes") });
    }
    for (place, &flow) in flows.iter().enumerate() {
        let class = classes.iter().position(|class| class.first == flow && class.flows == 1);
        for (kind, unit) in [
            ("delivered", "bytes"),
            ("window", "packets"),
            ("rtt", "s"),
            ("flowDropped", "packets"),
            ("active", "s"),
            ("receiverLimited", "s"),
        ] {
            columns.push(Column { flow: Some(place), class, ..Column::of(kind, unit) });
        }
    }
    columns
}

fn sample_link(stepping: &mut Stepping, link: usize, gauges: &[String], sent_bytes: u64, out: &mut Vec<f64>) {
    let now = stepping.now();
    let capacity = stepping.capacity(link).unwrap_or(f64::NAN) / 8.0;
    let Some(view) = stepping.link(link) else { return };
    let (mut packets, mut bytes) = (0, 0);
    for (_, class) in &view.classes {
        packets += class.occupancy.packets();
        bytes += class.occupancy.bytes();
    }
    let rate = view.statistics.rates.rate_at(now).as_bps() as f64;
    out.extend([packets as f64, bytes as f64, bytes as f64 * 8.0 / rate, sent_bytes as f64, capacity]);
    let gauge =
        |name: &String| view.gauges.iter().find(|(known, _)| known == name).map_or(f64::NAN, |(_, v)| *v);
    out.extend(gauges.iter().map(gauge));
    let counters = view.counters();
    let policed = |color: usize| view.meters.iter().map(|(_, counts)| counts.policed[color]).sum::<u64>();
    let mut dropped = [0; Reason::ALL.len()];
    let mut marked = dropped;
    let (mut dropped_of, mut marked_of) = ([0, 1, 2].map(policed), [0; 3]);
    dropped[Reason::Policed as usize] = dropped_of.iter().sum();
    for (reason, packets) in counters.drops() {
        dropped[reason as usize] += packets.iter().sum::<u64>();
        (0..3).for_each(|color| dropped_of[color] += packets[color]);
    }
    for (reason, packets) in counters.notifications() {
        marked[reason as usize] += packets.iter().sum::<u64>();
        (0..3).for_each(|color| marked_of[color] += packets[color]);
    }
    for counts in [counters.arrived, counters.sent, dropped_of, marked_of] {
        out.extend(counts.map(|count| count as f64));
    }
    out.extend(dropped.iter().chain(&marked).map(|&count| count as f64));
}
