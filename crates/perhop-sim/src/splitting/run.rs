//! A run with splitting: depth first, so that at any time one state for each level is kept.

use perhop_core::{Instant, Rng};

use super::counts::{Counts, LevelCounts, Rule, Waits};
use super::{Plan, Unsplit, start};
use crate::engine::{Failure, Stepping};
use crate::network::Network;
use crate::watch::{Progress, WATCH_INTERVAL, Watch};

/// Runs a network with splitting, or until the watch stops it.
///
/// # Errors
/// See [`Unsplit`].
pub fn run(network: &Network, seed: u64, plan: &Plan, watch: &Watch) -> Result<Counts, Unsplit> {
    let is_rising = plan.levels.windows(2).all(|pair| pair[0].from < pair[1].from);
    if !is_rising || plan.levels.iter().any(|level| level.from == 0 || level.trials == 0) {
        return Err(Unsplit::NotRising);
    }
    let mut main = start(network, seed, plan.importance)?;
    let window = (Instant::ZERO + network.warmup, main.end());
    let mut splitting = Splitting::new(plan, seed, window, watch, &mut main);
    let done = splitting.warm_up(&mut main).and_then(|()| splitting.complete(main));
    splitting.progress.end(watch);
    done?;
    let Splitting { mut counts, waits, .. } = splitting;
    counts.note_waits(&waits);
    Ok(counts)
}

/// A run with all its trials.
struct Splitting<'a> {
    plan: &'a Plan,
    rule: Rule,
    /// The weight of what happens above so many levels.
    weights: Vec<f64>,
    /// The seeds of copies.
    seeds: Rng,
    counts: Counts,
    waits: Waits,
    /// The event has happened in the present stay of the main trial above the first level.
    is_rare_stay: bool,
    watch: &'a Watch,
    progress: Progress,
    watch_at: u64,
}

/// One of the trials.
struct Trial {
    run: Stepping,
    /// Levels that it has risen to.
    level: usize,
    /// The trial ends where it falls below this level; 0 for the main trial.
    floor: usize,
    /// How often the event has happened on its way, and on that of its originals, in the present stay above
    /// the first level.
    rare: u64,
}

impl<'a> Splitting<'a> {
    fn new(
        plan: &'a Plan,
        seed: u64,
        window: (Instant, Instant),
        watch: &'a Watch,
        main: &mut Stepping,
    ) -> Self {
        let mut weights = vec![1.0];
        for level in &plan.levels {
            weights.push(weights[weights.len() - 1] / f64::from(level.trials));
        }
        let mut counts =
            Counts { levels: vec![LevelCounts::default(); plan.levels.len()], ..Counts::default() };
        let names = main.link(plan.importance.link).into_iter().flat_map(|view| view.classes);
        counts.classes =
            names.map(|(name, _)| super::ClassCounts { name: name.into(), ..Default::default() }).collect();
        Self {
            plan,
            rule: Rule { importance: plan.importance, event: plan.event, window },
            weights,
            seeds: Rng::stream(seed, "splitting/trials"),
            counts,
            waits: Waits::new(),
            is_rare_stay: false,
            watch,
            progress: Progress::default(),
            watch_at: 0,
        }
    }

    /// Runs through the warm-up, which is not counted and not split.
    fn warm_up(&mut self, main: &mut Stepping) -> Result<(), Unsplit> {
        let mut handled = 0;
        while main.step(self.rule.window.0) {
            self.count_events(main.handled() - handled, true)?;
            handled = main.handled();
            self.report(main)?;
            main.passed().for_each(drop);
        }
        Ok(())
    }

    /// Runs the main trial to its end, with all that are copied of it.
    fn complete(&mut self, main: Stepping) -> Result<(), Unsplit> {
        let mut main = Trial { run: main, level: 0, floor: 0, rare: 0 };
        self.follow(&mut main)?;
        if main.level > 0 {
            self.end_stay();
        }
        main.run.finish().map_err(Failure::Imbalance)?;
        Ok(())
    }

    /// Runs a trial until it falls below its floor or the run ends.
    fn follow(&mut self, trial: &mut Trial) -> Result<(), Unsplit> {
        let (is_main, end) = (trial.floor == 0, trial.run.end());
        loop {
            self.cross(trial)?;
            if trial.level < trial.floor {
                break;
            }
            let before = trial.run.handled();
            if !trial.run.step(end) {
                break;
            }
            self.count_events(trial.run.handled() - before, is_main)?;
            self.count(trial);
            if is_main {
                self.report(&trial.run)?;
            } else {
                self.check()?;
            }
        }
        if !is_main {
            trial.run.balance().map_err(Failure::Imbalance)?;
        }
        Ok(())
    }

    /// Notes the levels that a trial has risen to or fallen below by its last event, and follows its copies.
    fn cross(&mut self, trial: &mut Trial) -> Result<(), Unsplit> {
        let importance = trial.run.importance();
        while trial.level > 0 && importance < self.plan.levels[trial.level - 1].from {
            trial.level -= 1;
            if trial.level == 0 && trial.floor == 0 {
                trial.rare = 0;
                self.end_stay();
            }
        }
        while let Some(level) = self.plan.levels.get(trial.level).filter(|level| importance >= level.from) {
            let crossed = trial.level;
            trial.level += 1;
            self.counts.levels[crossed].rises += 1;
            for _ in 1..level.trials {
                self.counts.levels[crossed].copies += 1;
                let run = trial.run.reseeded(self.seeds.next_u64());
                let mut copy = Trial { run, level: trial.level, floor: trial.level, rare: trial.rare };
                self.follow(&mut copy)?;
            }
        }
        Ok(())
    }

    /// Counts what the last event of a trial did, with the weight of the levels before it.
    fn count(&mut self, trial: &mut Trial) {
        let (now, weight) = (trial.run.now(), self.weights[trial.level]);
        for passed in trial.run.passed() {
            if now <= self.rule.window.0 {
                continue;
            }
            self.counts.add(passed, weight, now, &self.rule, &mut self.waits);
            if self.rule.is_rare(passed, now) {
                self.counts.rare += weight;
                // The square of n is the sum of the first n odd numbers.
                self.counts.squares += weight * (2 * trial.rare + 1) as f64;
                if trial.level > 0 {
                    trial.rare += 1;
                    self.is_rare_stay = true;
                }
            }
        }
    }

    /// The main trial has fallen below the first level.
    fn end_stay(&mut self) {
        self.counts.stays += 1;
        self.counts.rare_stays += u64::from(std::mem::take(&mut self.is_rare_stay));
    }

    fn count_events(&mut self, events: u64, is_main: bool) -> Result<(), Unsplit> {
        self.counts.events += events;
        if is_main {
            self.counts.main_events += events;
        }
        let most = self.plan.most_events;
        if self.counts.events <= most {
            return Ok(());
        }
        Err(Unsplit::TooMany { most, is_split: self.counts.main_events < self.counts.events / 2 })
    }

    /// Reports how far the main trial is, now and then, and ends the run if it is to end.
    fn report(&mut self, main: &Stepping) -> Result<(), Unsplit> {
        if self.counts.events >= self.watch_at {
            self.progress.report(self.watch, main.now(), main.end());
        }
        self.check()
    }

    fn check(&mut self) -> Result<(), Unsplit> {
        if self.counts.events < self.watch_at {
            return Ok(());
        }
        self.watch_at = self.counts.events + WATCH_INTERVAL;
        if self.watch.is_stopped() { Err(Failure::Stopped.into()) } else { Ok(()) }
    }
}
