//! An outcome as Python dictionaries of numpy arrays; their keys are the catalogue's names and those that
//! `python/perhop/runs/outcome.py` documents.

use perhop_core::measure::{DelayBins, DelayOutcome, LinkOutcome};
use perhop_core::meter::MeterCounts;
use perhop_core::{Counters, Duration, Instant, Reason};
use perhop_scenario::Scenario;
use perhop_scenario::format::Codec;
use perhop_sim::measures::{FLOW, LINK, Measure, Queue, QueueMeasures, Value};
use perhop_sim::{
    ApplicationOutcome, EngineUsed, FlowOutcome, FlowRecord, Outcome, PopulationOutcome, Series,
};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use crate::arrays::{array, table};

pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    outcome: Outcome,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("duration_s", scenario.duration.as_secs_f64())?;
    dict.set_item("warmup_s", scenario.warmup.or_none().as_secs_f64())?;
    dict.set_item("events", outcome.events)?;
    dict.set_item("packets", outcome.hops)?;
    dict.set_item("engine", outcome.engine.as_ref().map(|used| used.engine().name()))?;
    dict.set_item("engine_reason", outcome.engine.as_ref().and_then(EngineUsed::reason))?;
    dict.set_item("groups", groups(py, scenario, &outcome.flows)?)?;
    dict.set_item("flows", flows(py, scenario, &outcome.flows)?)?;
    dict.set_item("populations", populations(py, &outcome.populations, Instant::ZERO + scenario.duration)?)?;
    let links = outcome.links.iter().filter(|one| scenario.has_results(&one.name));
    dict.set_item("links", links.map(|one| link(py, one)).collect::<PyResult<Vec<_>>>()?)?;
    let applications = outcome.applications.into_iter().map(|one| application(py, one));
    dict.set_item("applications", applications.collect::<PyResult<Vec<_>>>()?)?;
    dict.set_item("series", series(py, scenario, outcome.series, outcome.flows.len())?)?;
    Ok(dict)
}

fn groups<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    mut flows: &[FlowOutcome],
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let groups = scenario.classes().into_iter().map(|class| {
        let dict = PyDict::new(py);
        dict.set_item("name", class.name)?;
        dict.set_item("count", class.flows)?;
        let rate = class.reserved.map_or(0, perhop_core::Bitrate::as_bps);
        dict.set_item("profile_bps", rate as f64)?;
        dict.set_item("is_population", class.is_population)?;
        dict.set_item("codec", class.codec.map(Codec::name))?;
        let (members, others) = flows.split_at(class.flows as usize);
        flows = others;
        let transits = FlowOutcome::transits(members).map(|bins| transits(py, bins)).transpose()?;
        dict.set_item("transit_s", transits)?;
        Ok(dict)
    });
    groups.collect()
}

fn flows<'py>(py: Python<'py>, scenario: &Scenario, flows: &[FlowOutcome]) -> PyResult<Bound<'py, PyDict>> {
    let members = || {
        let classes = scenario.classes().into_iter().enumerate();
        classes.flat_map(|(group, class)| (0..class.flows).map(move |n| (group, n)))
    };
    let dict = PyDict::new(py);
    dict.set_item("group", integers(py, members().map(|(group, _)| group as u64))?)?;
    dict.set_item("member", integers(py, members().map(|(_, member)| u64::from(member)))?)?;
    for measure in FLOW {
        match measure.value {
            Value::Count(of) => dict.set_item(measure.name, integers(py, flows.iter().map(of))?)?,
            Value::Number(of) => dict.set_item(measure.name, array(py, flows.iter().map(of).collect())?)?,
            Value::OptionalCount(_) | Value::Optional(_) => {
                let values = flows.iter().map(|flow| measure.value.of(flow).unwrap_or(f64::NAN));
                dict.set_item(measure.name, array(py, values.collect())?)?;
            }
            Value::ByColor(of) => dict.set_item(measure.name, by_color(py, flows.iter().map(of))?)?,
            Value::OptionalByColor(of) => {
                let values = flows.iter().flat_map(|flow| {
                    of(flow).map_or([f64::NAN; 3], |by_color| by_color.map(|count| count as f64))
                });
                dict.set_item(measure.name, table(py, values.collect(), flows.len(), 3)?)?;
            }
        }
    }
    Ok(dict)
}

fn populations<'py>(
    py: Python<'py>,
    populations: &[PopulationOutcome],
    end: Instant,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let populations = populations.iter().map(|population| {
        let records = &population.flows;
        let floats = |of: fn(&FlowRecord) -> f64| array(py, records.iter().map(of).collect());
        let dict = PyDict::new(py);
        dict.set_item("flow", population.flow)?;
        dict.set_item("mean_open", population.mean_open)?;
        dict.set_item("started_s", floats(|flow| flow.started.as_secs_f64())?)?;
        dict.set_item("size_bytes", integers(py, records.iter().map(|flow| flow.size.get()))?)?;
        dict.set_item("idle_s", floats(|flow| flow.idle.as_secs_f64())?)?;
        let time = |flow: &FlowRecord| flow.time().map_or(f64::NAN, Duration::as_secs_f64);
        dict.set_item("completion_s", floats(time)?)?;
        let open = records.iter().map(|flow| match flow.time() {
            Some(_) => f64::NAN,
            None => end.since(flow.started).as_secs_f64(),
        });
        dict.set_item("open_s", array(py, open.collect())?)?;
        Ok(dict)
    });
    populations.collect()
}

fn link<'py>(py: Python<'py>, link: &LinkOutcome) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &link.name)?;
    measured(&dict, LINK, link)?;
    queue(py, &dict, link)?;
    let rates: Vec<(f64, u64)> = link.rates.iter().map(|&(at, rate)| (at.as_secs_f64(), rate)).collect();
    dict.set_item("rates", rates)?;
    let classes = link.classes.iter().map(|class| {
        let dict = PyDict::new(py);
        dict.set_item("name", &class.name)?;
        queue(py, &dict, class)?;
        Ok(dict)
    });
    dict.set_item("classes", classes.collect::<PyResult<Vec<_>>>()?)?;
    let meters = link.meters.iter().map(|meter| {
        let MeterCounts { arrived, passed, policed } = meter.measured;
        let dict = PyDict::new(py);
        dict.set_item("name", &meter.name)?;
        for (key, packets) in [("arrived", arrived), ("passed", passed), ("policed", policed)] {
            dict.set_item(key, integers(py, packets.into_iter())?)?;
        }
        Ok(dict)
    });
    dict.set_item("meters", meters.collect::<PyResult<Vec<_>>>()?)?;
    Ok(dict)
}

/// Sets what the catalogue says is measured of one link or class.
fn measured<O>(dict: &Bound<'_, PyDict>, measures: &[Measure<O>], outcome: &O) -> PyResult<()> {
    for measure in measures {
        match measure.value {
            Value::Count(of) => dict.set_item(measure.name, of(outcome))?,
            Value::Number(of) => dict.set_item(measure.name, of(outcome))?,
            Value::OptionalCount(of) => dict.set_item(measure.name, of(outcome))?,
            Value::Optional(of) => dict.set_item(measure.name, of(outcome))?,
            Value::ByColor(of) => dict.set_item(measure.name, of(outcome))?,
            Value::OptionalByColor(of) => dict.set_item(measure.name, of(outcome))?,
        }
    }
    Ok(())
}

/// What a link and each of its classes have in common: measures, and what they come from.
fn queue<O: Queue>(py: Python<'_>, dict: &Bound<'_, PyDict>, queue: &O) -> PyResult<()> {
    measured(dict, QueueMeasures::ALL, queue)?;
    counts(py, dict, queue.counters())?;
    dict.set_item("waiting", integers(py, queue.waiting().into_iter())?)?;
    let after_warmup = PyDict::new(py);
    counts(py, &after_warmup, queue.measured())?;
    dict.set_item("measured", after_warmup)?;
    let DelayOutcome { edges, counts, longest, largest } = queue.delays();
    let delay = PyDict::new(py);
    delay.set_item("edges", array(py, edges.clone())?)?;
    delay.set_item("counts", by_color(py, counts.iter().copied())?)?;
    delay.set_item("longest", array(py, seconds(longest))?)?;
    delay.set_item("max", array(py, seconds(largest))?)?;
    dict.set_item("delay_s", delay)
}

/// The histogram of one-way delays.
fn transits(py: Python<'_>, bins: DelayBins) -> PyResult<Bound<'_, PyDict>> {
    let DelayBins { edges, counts, longest } = bins;
    let dict = PyDict::new(py);
    dict.set_item("edges", array(py, edges)?)?;
    dict.set_item("counts", integers(py, counts.into_iter())?)?;
    dict.set_item("longest", array(py, seconds(&longest))?)?;
    Ok(dict)
}

fn seconds(delays: &[Duration]) -> Vec<f64> {
    delays.iter().map(|delay| delay.as_secs_f64()).collect()
}

fn counts(py: Python<'_>, dict: &Bound<'_, PyDict>, counters: &Counters) -> PyResult<()> {
    let three = |counts: [u64; 3]| integers(py, counts.into_iter());
    dict.set_item("arrived", three(counters.arrived)?)?;
    dict.set_item("sent", three(counters.sent)?)?;
    let by_reason = |counts: &mut dyn Iterator<Item = (Reason, [u64; 3])>| {
        named(py, counts.map(|(reason, packets)| (reason.name(), three(packets))))
    };
    dict.set_item("dropped", by_reason(&mut counters.drops())?)?;
    dict.set_item("notified", by_reason(&mut counters.notifications())?)
}

/// What the users of a group measured, and the samples that it comes from.
fn application(py: Python<'_>, outcome: ApplicationOutcome) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", outcome.name)?;
    dict.set_item("model", outcome.model)?;
    dict.set_item("users", outcome.users)?;
    dict.set_item("measures", outcome.measures.into_py_dict(py)?)?;
    for (key, samples) in [("samples", outcome.recorded.samples), ("open", outcome.recorded.open)] {
        dict.set_item(key, named(py, samples.into_iter().map(|(name, values)| (name, array(py, values))))?)?;
    }
    Ok(dict)
}

/// Tables of samples become arrays as they are: they are most of a large run, and no copy is made of them.
fn series<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    series: Series,
    flows: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let looks = series.times.len();
    let table = |values: Vec<f64>| table(py, values, looks, flows);
    let dict = PyDict::new(py);
    let times: Vec<f64> = series.times.iter().copied().map(Instant::as_secs_f64).collect();
    dict.set_item("time_s", array(py, times)?)?;
    dict.set_item("throughput_bps", table(series.throughput_bps)?)?;
    dict.set_item("cwnd_packets", table(series.window_packets)?)?;
    dict.set_item("rtt_s", table(series.rtt_s)?)?;
    dict.set_item("seen_packets", table(series.seen_packets)?)?;
    let links = PyDict::new(py);
    for queue in series.queues.into_iter().filter(|queue| scenario.has_results(&queue.link)) {
        let samples = PyDict::new(py);
        samples.set_item("queue_packets", array(py, queue.packets)?)?;
        samples.set_item("arrived", array(py, queue.arrived)?)?;
        samples.set_item("dropped", array(py, queue.dropped)?)?;
        let gauges = queue.gauges.into_iter().map(|(name, values)| (name, array(py, values)));
        samples.set_item("gauges", named(py, gauges)?)?;
        let classes = queue.classes.into_iter().map(|class| {
            let columns =
                [("packets", class.packets), ("arrived", class.arrived), ("dropped", class.dropped)];
            (class.name, named(py, columns.into_iter().map(|(key, values)| (key, array(py, values)))))
        });
        samples.set_item("classes", named(py, classes)?)?;
        links.set_item(&queue.link, samples)?;
    }
    dict.set_item("links", links)?;
    Ok(dict)
}

/// A dictionary of values by name.
fn named<'py, V: IntoPyObject<'py>>(
    py: Python<'py>,
    values: impl IntoIterator<Item = (impl IntoPyObject<'py>, PyResult<V>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in values {
        dict.set_item(name, value?)?;
    }
    Ok(dict)
}

fn integers(py: Python<'_>, values: impl Iterator<Item = u64>) -> PyResult<Bound<'_, PyAny>> {
    array(py, values.map(u64::cast_signed).collect())
}

fn by_color(py: Python<'_>, rows: impl ExactSizeIterator<Item = [u64; 3]>) -> PyResult<Bound<'_, PyAny>> {
    let count = rows.len();
    table(py, rows.flatten().map(u64::cast_signed).collect(), count, 3)
}
