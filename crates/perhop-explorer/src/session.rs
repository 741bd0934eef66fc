//! What a page holds: a run, or two on the same seed.

use perhop_core::Instant;
use perhop_scenario::Scenario;
use serde_json::{Value, json};

use crate::controls;
use crate::describe;
use crate::explain::{Explanation, explain};
use crate::frame::frame;
use crate::problem::Problem;
use crate::run::LiveRun;

/// One or two runs that go on together.
#[derive(Debug)]
pub struct Session {
    seed: u64,
    runs: Vec<LiveRun>,
    generation: u32,
    fresh: bool,
}

/// How a change of the text acted.
#[derive(Debug)]
pub struct Changed {
    /// The run went on; otherwise it began again and caught up.
    pub live: bool,
    /// Why it could not go on.
    pub why: String,
}

impl Session {
    /// The scenario at time zero.
    ///
    /// # Errors
    /// The problem of it.
    pub fn open(toml: &str, seed: u64) -> Result<Self, Problem> {
        Ok(Self { seed, runs: vec![LiveRun::new(toml, seed)?], generation: 1, fresh: true })
    }

    /// The run of this number.
    ///
    /// # Errors
    /// There is none.
    pub fn run(&mut self, which: usize) -> Result<&mut LiveRun, Problem> {
        self.runs.get_mut(which).ok_or_else(|| Problem::new("nothing is compared at the moment"))
    }

    /// How many runs there are: one or two.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Up to when everything has happened.
    pub fn now(&self) -> Instant {
        self.runs[0].now()
    }

    /// Whether all runs are at their ends.
    pub fn is_done(&self) -> bool {
        self.runs.iter().all(|run| run.now() >= run.end())
    }

    /// Goes on up to this time; for a time that has passed the runs begin again, and what was changed by then
    /// changes again. Returns how many later changes are undone by that.
    ///
    /// # Errors
    /// The problem of a scenario, which a run has refused so far.
    pub fn seek(&mut self, until: Instant) -> Result<usize, Problem> {
        if until >= self.now() {
            self.advance(until);
            return Ok(0);
        }
        let changes = |runs: &[LiveRun]| runs.iter().map(LiveRun::changes).sum::<usize>();
        let before = changes(&self.runs);
        self.runs = self.runs.iter().map(|run| run.replayed(until)).collect::<Result<_, _>>()?;
        self.begin_generation();
        Ok(before - changes(&self.runs))
    }

    /// Goes on up to this time.
    pub fn advance(&mut self, until: Instant) {
        self.runs.iter_mut().for_each(|run| run.run_until(until));
    }

    /// Goes on to the next packet that comes to this link, or to any.
    pub fn step(&mut self, link: Option<usize>) {
        self.runs[0].step(link);
        let now = self.now();
        self.advance(now);
    }

    /// A second run on the same seed, of this text, which catches up; or none.
    ///
    /// # Errors
    /// The problem of the text.
    pub fn compare(&mut self, toml: Option<&str>) -> Result<(), Problem> {
        let second = toml.map(|toml| LiveRun::new(toml, self.seed)).transpose()?;
        self.runs.truncate(1);
        if let Some(mut second) = second {
            second.run_until(self.now());
            self.runs.push(second);
        }
        self.begin_generation();
        Ok(())
    }

    /// A run has this text from now on. It goes on if the text differs in what can change during a run;
    /// otherwise it begins again, on the same seed, and catches up.
    ///
    /// # Errors
    /// The problem of the text; nothing has changed then.
    pub fn set_text(&mut self, which: usize, toml: &str) -> Result<Changed, Problem> {
        let scenario: Scenario = describe::read(toml)?;
        let (seed, now) = (self.seed, self.now());
        let run = self.run(which)?;
        let Err(refused) = run.become_scenario(toml, scenario) else {
            return Ok(Changed { live: true, why: String::new() });
        };
        let mut anew = LiveRun::new(toml, seed)?;
        anew.run_until(now);
        *run = anew;
        self.begin_generation();
        Ok(Changed { live: false, why: refused.to_string() })
    }

    /// The text of a run with another value at a path.
    ///
    /// # Errors
    /// There is no such place.
    pub fn edited(&mut self, which: usize, path: &str, value: &str) -> Result<String, Problem> {
        let run = self.run(which)?;
        let table = serde_json::to_value(run.scenario()).unwrap_or(Value::Null);
        controls::set(&table, run.toml(), path, value)
    }

    /// Why a packet was dropped or marked.
    ///
    /// # Errors
    /// It was too long ago.
    pub fn explain(&mut self, which: usize, event: usize) -> Result<Explanation, Problem> {
        let gone = "this packet was too long ago: the last 50000 drops and marks can be explained";
        explain(self.run(which)?, event).ok_or_else(|| Problem::new(gone))
    }

    /// The news for the page: a header, and numbers.
    pub fn frame(&mut self, numbers: &mut Vec<f64>) -> Value {
        let runs: Vec<Value> = self.runs.iter_mut().map(|run| frame(run, numbers)).collect();
        json!({
            "generation": self.generation,
            "timeS": self.now().as_secs_f64(),
            "ended": self.is_done(),
            "fresh": std::mem::take(&mut self.fresh),
            "runs": runs,
        })
    }

    /// The number of the present beginning: frames of earlier ones are of no use.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    fn begin_generation(&mut self) {
        self.generation += 1;
        self.fresh = true;
        self.runs.iter_mut().for_each(LiveRun::show_anew);
    }
}
