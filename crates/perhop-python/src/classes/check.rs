//! The conformance harness over a class in Python.

use std::sync::Arc;

use perhop_core::aqm::AqmParams;
use perhop_core::meter::{Conditioner, MeterParams, Verdict};
use perhop_core::scheduler::{Discipline, SchedulerParams};
use perhop_core::testing::{Bench, Effect, Operation, environment, scheduler};
use perhop_core::{Color, Dscp, Duration, FlowId, Header, Instant, Rng};
use perhop_sim::Watch;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde_json::json;

use super::{Fault, implement_meter, implement_queue};
use crate::{Cancelled, invalid};

/// The checks by name, each with the first thing that is wrong, if anything is.
pub(super) type Lines = Vec<(&'static str, Option<String>)>;

/// Drives a class through so many random sequences of arrivals, departures and pauses, under each scheduler
/// that can have its queue.
#[pyfunction]
pub(crate) fn check_aqm(py: Python<'_>, table: &str, sequences: u64) -> PyResult<Lines> {
    // A table for each trial, so that each has its own fault.
    let rule = || serde_json::from_str::<AqmParams>(table).map_err(invalid);
    let mut found = Findings(AQM_CHECKS.map(|check| (check, None)).into());
    for seed in 0..sequences {
        py.check_signals()?;
        let operations = operations(seed);
        let fifo = trial(py, rule()?.into(), seed, &operations);
        found.runs(py, &fifo)?;
        found.in_order(&fifo);
        let again = trial(py, rule()?.into(), seed, &operations);
        found.runs(py, &again)?;
        found.alike_trials(seed, &fifo, &again);
        for under in schedulers(&rule()?) {
            found.runs(py, &trial(py, under, seed, &operations))?;
        }
        found.numeric(&fifo);
        if found.has(FAILURE) {
            break;
        }
    }
    Ok(found.0)
}

/// Where the harness drives a class, for messages.
const HARNESS: &str = "link `harness`";

/// Drives a meter through so many random sequences of packets and pauses.
#[pyfunction]
pub(crate) fn check_meter(py: Python<'_>, table: &str, sequences: u64) -> PyResult<Lines> {
    let raises = "no sequence of calls raises an error, and each returns a color";
    let mut found = Findings::new(raises);
    for seed in 0..sequences {
        py.check_signals()?;
        let packets = packets(seed);
        let (first, of_copy, error) = colors(py, table, seed, &packets)?;
        if let Some(error) = error {
            found.raised(py, raises, &error)?;
            break;
        }
        let (again, _, _) = colors(py, table, seed, &packets)?;
        found.alike(seed, "packet", &first, &again, |verdict| verdict.color.name().to_owned());
        found.copied(first == of_copy);
    }
    Ok(found.0)
}

/// What becomes of packets at a meter, and the same where a copy takes the second half; and what the class
/// raised.
fn colors(
    py: Python<'_>,
    table: &str,
    seed: u64,
    packets: &[(Instant, Header)],
) -> PyResult<(Vec<Verdict>, Vec<Verdict>, Option<PyErr>)> {
    let fault = Fault::of(Watch::default().of_one_run());
    // Another table, so that each trial has its own fault.
    let params: MeterParams = serde_json::from_str(table).map_err(invalid)?;
    if let Some(foreign) = params.foreign() {
        implement_meter(foreign, HARNESS.into(), &Arc::default(), &fault);
    }
    let mut meter = Conditioner::new(&params, environment().rate, Rng::stream(seed, "meter"));
    let judged = |meter: &mut Conditioner, packets: &[(Instant, Header)]| {
        packets.iter().map(|(now, packet)| meter.judge(packet, *now)).collect::<Vec<_>>()
    };
    let (first, second) = packets.split_at(packets.len() / 2);
    let before = judged(&mut meter, first);
    let mut copy = meter.clone();
    let whole = [before.clone(), judged(&mut meter, second)].concat();
    let of_copy = [before, judged(&mut copy, second)].concat();
    Ok((whole, of_copy, fault.take(py)))
}

/// Random packets of two flows, with bursts and pauses of any length, of every color and any size.
fn packets(seed: u64) -> Vec<(Instant, Header)> {
    let mut rng = Rng::stream(seed, "packets");
    let mut now = Instant::ZERO;
    let mut one = || {
        let pause = match rng.up_to(9) {
            0..=3 => 0,
            9 if rng.chance(0.05) => 3_600_000_000_000,
            _ => rng.up_to(5_000_000),
        };
        now += Duration::from_nanos(pause);
        let size = [40, 1000, 1500, u16::MAX][rng.up_to(3) as usize];
        let color = Color::ALL[rng.up_to(2) as usize];
        let dscp = Dscp::new(rng.up_to(63) as u8).expect("six bits");
        let flow = FlowId(rng.up_to(1) as u32);
        (now, Header { color, dscp, arrived: now, ..Header::new(flow, size) })
    };
    let length = length(seed, &mut Rng::stream(seed, "length"));
    (0..length).map(|_| one()).collect()
}

/// What became of a sequence.
struct Trial {
    effects: Result<Vec<Effect>, String>,
    /// Of the whole sequence, driven half by an object and half by its copy.
    of_copy: Option<Vec<Effect>>,
    gauges: Vec<Vec<(String, f64)>>,
    error: Option<PyErr>,
}

fn trial(py: Python<'_>, params: SchedulerParams, seed: u64, operations: &[Operation]) -> Trial {
    let fault = Fault::of(Watch::default().of_one_run());
    implement_queue(&params, HARNESS, &Arc::default(), &fault);
    let mut bench = Bench::new(scheduler(params, seed));
    let (mut gauges, mut effects) = (Vec::new(), Ok(Vec::new()));
    let (first, second) = operations.split_at(operations.len() / 2);
    for &operation in first {
        step(&mut bench, operation, &mut effects);
    }
    gauges.push(bench.discipline().gauges());
    let mut copy = bench.clone();
    for &operation in second {
        step(&mut bench, operation, &mut effects);
    }
    gauges.push(bench.discipline().gauges());
    let of_copy = copy.run(second).ok();
    let whole = effects.as_ref().ok().map(|effects: &Vec<Effect>| effects[..first.len()].to_vec());
    let of_copy = whole.zip(of_copy).map(|(whole, rest)| [whole, rest].concat());
    Trial { effects, of_copy, gauges, error: fault.take(py) }
}

fn step(
    bench: &mut Bench<impl Discipline<Header>>,
    operation: Operation,
    seen: &mut Result<Vec<Effect>, String>,
) {
    if let Ok(effects) = seen {
        match bench.step(operation) {
            Ok(effect) => effects.push(effect),
            Err(imbalance) => *seen = Err(imbalance.to_string()),
        }
    }
}

/// The schedulers that can have the rule's queue, with one queue each.
fn schedulers(rule: &AqmParams) -> Vec<SchedulerParams> {
    let queues = json!([{"name": "all", "rule": rule}]);
    let tables = [
        json!({"scheduler": "priority", "queues": queues}),
        json!({"scheduler": "drr", "queues": queues}),
        json!({"scheduler": "wfq", "queues": queues}),
        json!({"scheduler": "edf", "rule": rule}),
        json!({"scheduler": "shaper", "rate": "7Mbps", "burst": "70kB", "queue": rule}),
    ];
    tables.into_iter().filter_map(|table| serde_json::from_value(table).ok()).collect()
}

/// A random sequence: bursts, pauses of any length, every color, packets of any size.
fn operations(seed: u64) -> Vec<Operation> {
    let mut rng = Rng::stream(seed, "operations");
    let one = |rng: &mut Rng| match rng.up_to(8) {
        0..=3 => Operation::Enqueue {
            size: [40, 1000, 1500, u16::MAX][rng.up_to(3) as usize],
            color: Color::ALL[rng.up_to(2) as usize],
            dscp: Dscp::new(rng.up_to(63) as u8).expect("six bits"),
            label: 0,
        },
        4..=6 => Operation::Dequeue,
        _ if rng.chance(0.01) => Operation::Advance(u64::MAX),
        _ => Operation::Advance(rng.up_to(5_000_000)),
    };
    (0..length(seed, &mut rng)).map(|_| one(&mut rng)).collect()
}

/// How many calls a sequence has: the first one many, so that what goes wrong late is found.
pub(super) fn length(seed: u64, rng: &mut Rng) -> u64 {
    if seed == 0 { LONG } else { 50 + rng.up_to(350) }
}

/// Calls of the longest sequence.
const LONG: u64 = 10_000;

const FAILURE: &str = "no sequence of calls raises an error";
const BALANCE: &str = "arrived = sent + dropped + waiting, for each color";
const ORDER: &str = "packets keep their order";
const ALIKE: &str = "two runs with one seed decide alike";
const COPY: &str = "a copy decides as its original";
const GAUGES: &str = "gauges are numbers, with the same names throughout";
const AQM_CHECKS: [&str; 6] = [FAILURE, BALANCE, ORDER, ALIKE, COPY, GAUGES];

/// The checks of a class.
pub(super) struct Findings(pub(super) Lines);

impl Findings {
    /// The checks of any class: `raises`, and the two of its repeatability.
    pub(super) fn new(raises: &'static str) -> Self {
        Self(vec![(raises, None), (ALIKE, None), (COPY, None)])
    }

    /// Notes what is wrong, if nothing was before.
    pub(super) fn wrong(&mut self, check: &str, text: impl FnOnce() -> String) {
        let line = self.0.iter_mut().find(|(name, _)| *name == check);
        line.expect("a check has its line").1.get_or_insert_with(text);
    }

    fn has(&self, check: &str) -> bool {
        self.0.iter().any(|(name, wrong)| *name == check && wrong.is_some())
    }

    /// Notes what a class has raised. Ctrl-C while it runs ends the harness.
    pub(super) fn raised(&mut self, py: Python<'_>, check: &str, error: &PyErr) -> PyResult<()> {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) || error.is_instance_of::<Cancelled>(py) {
            return Err(PyKeyboardInterrupt::new_err(()));
        }
        self.wrong(check, || error.value(py).to_string());
        Ok(())
    }

    /// Compares two runs of one sequence of calls or packets.
    pub(super) fn alike<T: PartialEq>(
        &mut self,
        seed: u64,
        what: &str,
        first: &[T],
        again: &[T],
        shown: impl Fn(&T) -> String,
    ) {
        if let Some(place) = first.iter().zip(again).position(|(one, other)| one != other) {
            self.wrong(ALIKE, || {
                let (number, first, then) = (place + 1, shown(&first[place]), shown(&again[place]));
                format!(
                    "with seed {seed}, {what} {number}: first {first}, then {then}; draw from `random`, and keep state in the object only"
                )
            });
        }
    }

    /// Notes whether a copy has decided as its original.
    pub(super) fn copied(&mut self, is_same: bool) {
        if !is_same {
            self.wrong(COPY, || {
                "it keeps something outside the object, or in what deepcopy does not copy".into()
            });
        }
    }

    fn runs(&mut self, py: Python<'_>, trial: &Trial) -> PyResult<()> {
        if let Some(error) = &trial.error {
            self.raised(py, FAILURE, error)?;
        }
        match (&trial.effects, &trial.of_copy) {
            (Err(imbalance), _) => self.wrong(BALANCE, || imbalance.clone()),
            (Ok(effects), Some(of_copy)) if trial.error.is_none() => self.copied(effects == of_copy),
            _ => {}
        }
        Ok(())
    }

    fn in_order(&mut self, trial: &Trial) {
        let sent = trial.effects.iter().flatten().filter_map(|effect| match effect {
            Effect::Sent { packet, .. } => Some(*packet),
            _ => None,
        });
        if !sent.is_sorted() {
            self.wrong(ORDER, || "a packet overtook another".into());
        }
    }

    fn alike_trials(&mut self, seed: u64, first: &Trial, again: &Trial) {
        if first.error.is_some() || again.error.is_some() || first.effects == again.effects {
            return;
        }
        let effects = |trial: &Trial| trial.effects.clone().unwrap_or_default();
        self.alike(seed, "call", &effects(first), &effects(again), |effect| format!("{effect:?}"));
        self.wrong(ALIKE, || "one of the runs was shorter".into());
    }

    fn numeric(&mut self, trial: &Trial) {
        let names = |gauges: &Vec<(String, f64)>| -> Vec<String> {
            gauges.iter().map(|(name, _)| name.clone()).collect()
        };
        let names: Vec<_> = trial.gauges.iter().map(names).collect();
        if trial.error.is_none() && names.windows(2).any(|pair| pair[0] != pair[1]) {
            self.wrong(GAUGES, || format!("first {:?}, later {:?}", names[0], names[1]));
        }
    }
}
