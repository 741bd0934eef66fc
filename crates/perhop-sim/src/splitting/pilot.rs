//! Finds levels and numbers of trials by runs of their own.
//!
//! Each level is found from the one below it, as in fixed-effort splitting (P. L'Ecuyer, V. Demers and
//! B. Tuffin, "Rare events, splitting, and quasi-Monte Carlo", ACM TOMACS 17(2), 2007): copies of states in
//! which a run has risen to the last level go on until they fall below it. The next level is the lowest to
//! which they rise at most [`SHARE`] times each on average, and as many trials start at the last one as make
//! both be reached equally often.

use std::collections::BTreeMap;

use perhop_core::{Instant, Rng};
use serde::Serialize;

use super::counts::Rule;
use super::{Event, Importance, Level, Unsplit, start};
use crate::engine::{Failure, Stepping};
use crate::network::Network;
use crate::watch::{WATCH_INTERVAL, Watch};

/// How often a trial rises to the next level at most, on average. Many levels with few trials each vary least
/// (Villén-Altamirano 2002), all the more where copies share what is drawn already.
const SHARE: f64 = 0.35;
/// Trials from each level.
const TRIALS: usize = 2048;
/// States at each level from which trials start, at most. They are many because what happens next is often
/// drawn already, and then the same in all trials from a state.
const STATES: usize = 512;
/// Trials from one level in the plan, at most: how rarely the next level is reached is not known better.
const MOST_TRIALS: f64 = 64.0;
/// A plain run rises to the last level at least so often for each rise to the first one: no event that is
/// rarer is sought.
const RAREST: f64 = 1e-15;
/// Events of the plain run by which the first level is found, at most.
const FIRST_EVENTS: usize = 500_000;

/// What levels are to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// An event.
    Event(Event),
    /// States of this probability, for a quantile.
    Share(f64),
}

/// Levels, and how they were found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pilot {
    /// Levels, in rising order.
    pub levels: Vec<Level>,
    /// Why there are no more.
    pub ending: Ending,
    /// Events of all runs for it.
    pub events: u64,
}

/// The reason why there are no more levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Trials from the last level meet the goal often.
    Reached,
    /// The queue is always empty after the warm-up.
    Empty,
    /// No trial rises beyond the last level.
    Stuck,
    /// Copies with other random numbers do what their originals do.
    Unvaried,
    /// The search for more levels takes too many events.
    GivenUp,
}

/// Finds levels for a goal, as far as it comes with so many events.
///
/// # Errors
/// See [`Unsplit`].
pub fn pilot(
    network: &Network,
    seed: u64,
    importance: Importance,
    goal: Goal,
    most_events: u64,
    watch: &Watch,
) -> Result<Pilot, Unsplit> {
    let mut seeds = Rng::stream(seed, "splitting/pilot");
    // Runs of the seeds that users name must not share its numbers.
    let mut begin = start(network, seeds.next_u64(), importance)?;
    let event = if let Goal::Event(event) = goal { event } else { Event::Loss };
    let rule = Rule { importance, event, window: (Instant::ZERO + network.warmup, begin.end()) };
    let mut search = Search { rule, goal, seeds, watch, most_events, events: 0, watch_at: 0 };
    let warmup = search.rule.window.0;
    search.follow(&mut begin, warmup, |_, _| true)?;
    let mut levels = Vec::new();
    let ending = match search.levels(&begin, &mut levels) {
        Err(Unsplit::TooMany { .. }) => Ending::GivenUp,
        found => found?,
    };
    levels.retain(|level| level.trials > 1);
    Ok(Pilot { levels, ending, events: search.events })
}

/// The search for levels.
struct Search<'a> {
    rule: Rule,
    goal: Goal,
    seeds: Rng,
    watch: &'a Watch,
    most_events: u64,
    events: u64,
    watch_at: u64,
}

/// What a trial has done.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trace {
    /// The importance at its start and after each event.
    importance: Vec<u64>,
    ended: Instant,
    /// The event has happened.
    is_rare: bool,
}

/// A trial that started at a level.
struct Trial<'a> {
    from: &'a Stepping,
    seed: u64,
    trace: Trace,
}

impl Trial<'_> {
    fn begin(&self) -> Stepping {
        self.from.reseeded(self.seed)
    }
}

/// States in which trials have risen to a level: some of them all, evenly. The first rise of each trial would
/// not do: it comes while less of the packet in service is left than at others.
struct States {
    chosen: Vec<Stepping>,
    every: usize,
    rises: usize,
}

impl States {
    /// Begins to choose from so many rises.
    fn of(rises: usize) -> Self {
        Self { chosen: Vec::new(), every: rises.div_ceil(STATES).max(1), rises: 0 }
    }

    fn add(&mut self, state: &Stepping) {
        if self.rises.is_multiple_of(self.every) {
            self.chosen.push(state.clone());
        }
        self.rises += 1;
    }
}

impl Search<'_> {
    /// Finds all levels.
    fn levels(&mut self, begin: &Stepping, levels: &mut Vec<Level>) -> Result<Ending, Unsplit> {
        let first = self.trace(begin.clone(), |events, _| events < FIRST_EVENTS)?;
        let Some((mut from, mut above)) = first_level(&first) else { return Ok(Ending::Empty) };
        let mut sample = States::of(rises_to(&first, from));
        self.states(begin.clone(), (from, &first), &mut sample)?;
        let mut states = sample.chosen;
        let mut risen_to = 1.0;
        while !states.is_empty() && risen_to >= RAREST {
            let trials = self.trials(&states, from)?;
            if levels.is_empty() && is_unvaried(&trials) {
                return Ok(Ending::Unvaried);
            }
            let rare = trials.iter().filter(|trial| trial.trace.is_rare).count() as f64 / TRIALS as f64;
            let reached = match self.goal {
                Goal::Event(_) => (rare >= SHARE).then_some(rare),
                Goal::Share(share) => (above <= share).then_some(SHARE),
            };
            let next = next_level(&trials, from);
            // At the highest level that there is, the event may be less likely than the next level elsewhere.
            let reached = reached.or((next.is_none() && rare > 0.0).then_some(rare));
            if let Some(share) = reached.or(next.map(|(_, share)| share)) {
                risen_to *= share;
                let trials = (1.0 / share).round().clamp(1.0, MOST_TRIALS) as u32;
                levels.push(Level { from, trials });
            }
            let Some((next, _)) = next else { return Ok(reached.map_or(Ending::Stuck, |_| Ending::Reached)) };
            if reached.is_some() {
                return Ok(Ending::Reached);
            }
            above *= share_above(&trials, next);
            let mut sample = States::of(trials.iter().map(|trial| rises_to(&trial.trace, next)).sum());
            for trial in &trials {
                self.states(trial.begin(), (next, &trial.trace), &mut sample)?;
            }
            (from, states) = (next, sample.chosen);
        }
        Ok(Ending::Stuck)
    }

    /// Starts trials at these states of a level, each as often as the others.
    fn trials<'a>(&mut self, states: &'a [Stepping], from: u64) -> Result<Vec<Trial<'a>>, Unsplit> {
        let one = |number: usize| {
            let (state, seed) = (&states[number % states.len()], self.seeds.next_u64());
            let trace = self.trace(state.reseeded(seed), |_, importance| importance >= from)?;
            Ok(Trial { from: state, seed, trace })
        };
        (0..TRIALS).map(one).collect()
    }

    /// Adds states in which a run, whose trace is known, has just risen to a level.
    fn states(
        &mut self,
        mut run: Stepping,
        (level, trace): (u64, &Trace),
        chosen: &mut States,
    ) -> Result<(), Unsplit> {
        let (mut left, mut before) = (rises_to(trace, level), 0);
        if left == 0 {
            return Ok(());
        }
        self.follow(&mut run, trace.ended, |run, importance| {
            if before < level && level <= importance {
                run.passed().for_each(drop);
                chosen.add(run);
                left -= 1;
            }
            before = importance;
            left > 0
        })
    }

    /// Runs a trial while `goes_on` with the number of its events and the importance after each.
    fn trace(&mut self, mut run: Stepping, goes_on: impl Fn(usize, u64) -> bool) -> Result<Trace, Unsplit> {
        let mut trace = Trace::default();
        let rule = self.rule.clone();
        let end = run.end();
        self.follow(&mut run, end, |run, importance| {
            trace.importance.push(importance);
            let now = run.now();
            trace.is_rare |= run.passed().fold(false, |rare, passed| rare | rule.is_rare(passed, now));
            goes_on(trace.importance.len(), importance)
        })?;
        trace.ended = run.now();
        Ok(trace)
    }

    /// Runs until this time or while `goes_on` with the importance at the start and after each event.
    fn follow(
        &mut self,
        run: &mut Stepping,
        until: Instant,
        mut goes_on: impl FnMut(&mut Stepping, u64) -> bool,
    ) -> Result<(), Unsplit> {
        loop {
            let importance = run.importance();
            let goes_on = goes_on(run, importance);
            run.passed().for_each(drop);
            let before = run.handled();
            if !goes_on || !run.step(until) {
                return Ok(());
            }
            self.events += run.handled() - before;
            if self.events > self.most_events {
                return Err(Unsplit::TooMany { most: self.most_events, is_split: false });
            }
            if self.events >= self.watch_at {
                self.watch_at = self.events + WATCH_INTERVAL;
                if self.watch.is_stopped() {
                    return Err(Failure::Stopped.into());
                }
            }
        }
    }
}

/// Returns the lowest importance above 0 that at most the [`SHARE`] of all events leave or, if even the
/// highest is more frequent, that; and its share. `None` if the queue is always empty.
fn first_level(trace: &Trace) -> Option<(u64, f64)> {
    let mut sorted = trace.importance.clone();
    sorted.sort_unstable();
    let share = |level: u64| {
        let below = sorted.partition_point(|&importance| importance < level);
        (sorted.len() - below) as f64 / sorted.len() as f64
    };
    let mut levels = sorted.clone();
    levels.dedup();
    let level = levels.iter().copied().find(|&level| level > 0 && share(level) <= SHARE);
    let level = level.or(levels.last().copied().filter(|&last| last > 0))?;
    Some((level, share(level)))
}

/// Returns how often a trace rises to a level, below which it came from.
fn rises_to(trace: &Trace, level: u64) -> usize {
    let before = std::iter::once(&0).chain(&trace.importance);
    before.zip(&trace.importance).filter(|&(&before, &now)| before < level && level <= now).count()
}

/// Returns the lowest level above `from` to which trials rise at most [`SHARE`] times each on average or, if
/// they do not rise so rarely, the highest one; and how often they rise to it. `None` if there is none above.
fn next_level(trials: &[Trial<'_>], from: u64) -> Option<(u64, f64)> {
    // A rise from a to b is one to each of the levels a + 1 to b: +1 at the first, −1 behind the last.
    let mut changes = BTreeMap::<u64, i64>::new();
    for Trial { trace, .. } in trials {
        let mut before = from;
        for &now in &trace.importance {
            if now > before.max(from) {
                *changes.entry(before.max(from) + 1).or_default() += 1;
                *changes.entry(now + 1).or_default() -= 1;
            }
            before = now;
        }
    }
    let (mut rises, mut highest) = (0, None);
    for (level, change) in changes {
        rises += change;
        if rises > 0 {
            let share = rises as f64 / trials.len() as f64;
            highest = Some((level, share));
            if share <= SHARE {
                break;
            }
        }
    }
    highest
}

/// Returns the share of events that leave a trial at a level or above.
fn share_above(trials: &[Trial<'_>], level: u64) -> f64 {
    let all = || trials.iter().flat_map(|trial| &trial.trace.importance);
    all().filter(|&&importance| importance >= level).count() as f64 / all().count() as f64
}

/// Returns whether trials do the same wherever they start at the same state.
fn is_unvaried(trials: &[Trial<'_>]) -> bool {
    let first = |one: &Trial<'_>| trials.iter().find(|other| std::ptr::eq(other.from, one.from));
    trials.iter().all(|trial| first(trial).is_none_or(|other| other.trace == trial.trace))
}
