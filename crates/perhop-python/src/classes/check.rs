//! The conformance harness over a class in Python.

use std::sync::Arc;

use perhop_core::aqm::AqmParams;
use perhop_core::meter::{Conditioner, MeterParams, Verdict};
use perhop_core::scheduler::{Discipline, SchedulerParams};
use perhop_core::testing::{Bench, Effect, Operation, environment, scheduler};
use perhop_core::{Color, Dscp, Duration, FlowId, Header, Instant, Rng};
use perhop_sim::Watch;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use serde_json::json;

use super::aqm::PythonAqms;
use super::{ClassPlace, Fault, implement_meter, parameters};
use crate::Cancelled;

/// Drives a class through so many random sequences of arrivals, departures and pauses, under each scheduler
/// that can have its queue. Returns lines: what is checked, and what is wrong, if anything is.
#[pyfunction]
pub(crate) fn check_aqm(
    py: Python<'_>,
    table: &str,
    sequences: u64,
) -> PyResult<Vec<(&'static str, Option<String>)>> {
    let rule: AqmParams =
        serde_json::from_str(table).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let mut found = Findings::default();
    for seed in 0..sequences {
        py.check_signals()?;
        let operations = operations(seed);
        let fifo = trial(py, SchedulerParams::from(rule.clone()), seed, &operations);
        found.runs(py, &fifo)?;
        found.in_order(&fifo);
        let again = trial(py, SchedulerParams::from(rule.clone()), seed, &operations);
        found.runs(py, &again)?;
        found.alike(seed, &fifo, &again);
        for under in schedulers(&rule) {
            found.runs(py, &trial(py, under, seed, &operations))?;
        }
        found.numeric(&fifo);
        if found.failure.is_some() {
            break;
        }
    }
    Ok(found.lines())
}

/// What a class has raised, as text. Ctrl-C while it runs ends the harness.
pub(super) fn said(py: Python<'_>, error: &PyErr) -> PyResult<String> {
    let is_interrupt =
        error.is_instance_of::<PyKeyboardInterrupt>(py) || error.is_instance_of::<Cancelled>(py);
    if is_interrupt { Err(PyKeyboardInterrupt::new_err(())) } else { Ok(error.value(py).to_string()) }
}

/// Where the harness drives a class, for messages.
const HARNESS: &str = "link `harness`";

/// Drives a meter through so many random sequences of packets and pauses. Returns lines as [`check_aqm`]
/// does.
#[pyfunction]
pub(crate) fn check_meter(
    py: Python<'_>,
    table: &str,
    sequences: u64,
) -> PyResult<Vec<(&'static str, Option<String>)>> {
    let params: MeterParams =
        serde_json::from_str(table).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let (mut failure, mut alike, mut copy) = (None, None, None);
    for seed in 0..sequences {
        py.check_signals()?;
        let packets = packets(seed);
        let (first, of_copy, error) = colors(py, &params, seed, &packets);
        if let Some(error) = error {
            failure = Some(said(py, &error)?);
            break;
        }
        let (again, _, _) = colors(py, &params, seed, &packets);
        if let Some(place) = first.iter().zip(&again).position(|(one, other)| one != other) {
            alike.get_or_insert_with(|| {
                let [one, other] = [&first, &again].map(|seen| seen[place].color.name());
                format!(
                    "with seed {seed}, packet {}: first {one}, then {other}; draw from `random`, and keep state in the object only",
                    place + 1
                )
            });
        }
        if first != of_copy {
            let text = "it keeps something outside the object, or in what deepcopy does not copy";
            copy.get_or_insert_with(|| text.to_owned());
        }
    }
    Ok(vec![
        ("no sequence of calls raises an error, and each returns a color", failure),
        ("two runs with one seed decide alike", alike),
        ("a copy decides as its original", copy),
    ])
}

/// What becomes of packets at a meter, and the same where a copy takes the second half; and what the class
/// raised.
fn colors(
    py: Python<'_>,
    params: &MeterParams,
    seed: u64,
    packets: &[(Instant, Header)],
) -> (Vec<Verdict>, Vec<Verdict>, Option<PyErr>) {
    let fault = Arc::new(Fault::of(Watch::default().of_one_run()));
    // Another table, so that each trial has its own fault.
    let table = serde_json::to_string(params).expect("a table has a form in JSON");
    let params: MeterParams = serde_json::from_str(&table).expect("it has been read before");
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
    (whole, of_copy, fault.take(py))
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
    let fault = Arc::new(Fault::of(Watch::default().of_one_run()));
    for (_, table) in params.foreign() {
        let place = ClassPlace { class: table.class.clone(), at: HARNESS.into(), flows: Arc::new([]) };
        table.implement(Arc::new(PythonAqms::new(parameters(table), place, fault.clone())));
    }
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
    let rule = serde_json::to_value(rule).expect("a table has a form in JSON");
    let one = |extra: serde_json::Value| {
        let mut queue = json!({"name": "all", "rule": rule});
        queue.as_object_mut().expect("a table").extend(extra.as_object().cloned().unwrap_or_default());
        json!([queue])
    };
    let tables = [
        json!({"scheduler": "priority", "queues": one(json!({}))}),
        json!({"scheduler": "drr", "queues": one(json!({}))}),
        json!({"scheduler": "wfq", "queues": one(json!({}))}),
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

/// The checks, with the first thing that is wrong.
#[derive(Default)]
struct Findings {
    failure: Option<String>,
    imbalance: Option<String>,
    order: Option<String>,
    alike: Option<String>,
    copy: Option<String>,
    gauges: Option<String>,
}

impl Findings {
    fn lines(&self) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("no sequence of calls raises an error", self.failure.clone()),
            ("arrived = sent + dropped + waiting, for each color", self.imbalance.clone()),
            ("packets keep their order", self.order.clone()),
            ("two runs with one seed decide alike", self.alike.clone()),
            ("a copy decides as its original", self.copy.clone()),
            ("gauges are numbers, with the same names throughout", self.gauges.clone()),
        ]
    }

    fn runs(&mut self, py: Python<'_>, trial: &Trial) -> PyResult<()> {
        if let Some(error) = &trial.error {
            let text = said(py, error)?;
            self.failure.get_or_insert(text);
        }
        if let Err(imbalance) = &trial.effects {
            self.imbalance.get_or_insert_with(|| imbalance.clone());
        }
        if trial.error.is_none()
            && let (Ok(effects), Some(of_copy)) = (&trial.effects, &trial.of_copy)
            && effects != of_copy
        {
            let text = "it keeps something outside the object, or in what deepcopy does not copy";
            self.copy.get_or_insert_with(|| text.into());
        }
        Ok(())
    }

    fn in_order(&mut self, trial: &Trial) {
        let sent = trial.effects.iter().flatten().filter_map(|effect| match effect {
            Effect::Sent { packet, .. } => Some(*packet),
            _ => None,
        });
        if !sent.is_sorted() {
            self.order.get_or_insert_with(|| "a packet overtook another".into());
        }
    }

    fn alike(&mut self, seed: u64, first: &Trial, second: &Trial) {
        if first.error.is_some() || second.error.is_some() || first.effects == second.effects {
            return;
        }
        let effects = |trial: &Trial| trial.effects.clone().unwrap_or_default();
        let (first, second) = (effects(first), effects(second));
        let place = first.iter().zip(&second).position(|(one, other)| one != other);
        let text = match place {
            Some(place) => format!(
                "with seed {seed}, call {}: first {:?}, then {:?}; draw from `random`, and keep state in the object only",
                place + 1,
                first[place],
                second[place]
            ),
            None => "one of the runs was shorter".into(),
        };
        self.alike.get_or_insert(text);
    }

    fn numeric(&mut self, trial: &Trial) {
        let names = |gauges: &Vec<(String, f64)>| -> Vec<String> {
            gauges.iter().map(|(name, _)| name.clone()).collect()
        };
        let names: Vec<_> = trial.gauges.iter().map(names).collect();
        if trial.error.is_none() && names.windows(2).any(|pair| pair[0] != pair[1]) {
            self.gauges.get_or_insert_with(|| format!("first {:?}, later {:?}", names[0], names[1]));
        }
    }
}
