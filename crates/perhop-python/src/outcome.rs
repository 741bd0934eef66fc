//! An outcome as Python dictionaries of numpy arrays; `_engine.pyi` documents the keys.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use perhop_core::measure::{DelayOutcome, LinkOutcome};
use perhop_core::{Counters, Instant};
use perhop_scenario::Scenario;
use perhop_sim::{FlowOutcome, Outcome, Series};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    outcome: Outcome,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("duration_s", scenario.duration.as_secs_f64())?;
    dict.set_item("warmup_s", scenario.warmup.as_secs_f64())?;
    dict.set_item("events", outcome.events)?;
    dict.set_item("packets", outcome.hops)?;
    dict.set_item("groups", groups(py, scenario)?)?;
    dict.set_item("flows", flows(py, scenario, &outcome.flows)?)?;
    let links = outcome.links.iter().map(|one| link(py, one)).collect::<PyResult<Vec<_>>>()?;
    dict.set_item("links", PyList::new(py, links)?)?;
    dict.set_item("series", series(py, outcome.series, outcome.flows.len())?)?;
    Ok(dict)
}

fn groups<'py>(py: Python<'py>, scenario: &Scenario) -> PyResult<Bound<'py, PyList>> {
    let groups = scenario.flows.iter().map(|group| {
        let dict = PyDict::new(py);
        dict.set_item("name", &group.name)?;
        dict.set_item("count", group.count)?;
        let rate = scenario.reserved(group).map_or(0, perhop_core::Bitrate::as_bps);
        dict.set_item("profile_bps", rate as f64)?;
        Ok(dict)
    });
    PyList::new(py, groups.collect::<PyResult<Vec<_>>>()?)
}

fn flows<'py>(py: Python<'py>, scenario: &Scenario, flows: &[FlowOutcome]) -> PyResult<Bound<'py, PyDict>> {
    let members = || {
        scenario.flows.iter().enumerate().flat_map(|(group, flow)| (0..flow.count).map(move |n| (group, n)))
    };
    let ints = |of: &dyn Fn(&FlowOutcome) -> u64| integers(py, flows.iter().map(of));
    let floats = |of: &dyn Fn(&FlowOutcome) -> f64| flows.iter().map(of).collect::<Vec<_>>().into_pyarray(py);
    let colors = |of: &dyn Fn(&FlowOutcome) -> [u64; 3]| by_color(py, flows.iter().map(of));
    let dict = PyDict::new(py);
    dict.set_item("group", integers(py, members().map(|(group, _)| group as u64)))?;
    dict.set_item("member", integers(py, members().map(|(_, member)| u64::from(member))))?;
    dict.set_item("started_s", floats(&|flow| flow.started.as_secs_f64()))?;
    dict.set_item("throughput_bps", floats(&|flow| flow.throughput_bps))?;
    dict.set_item("acked_bps", floats(&|flow| flow.acked_bps))?;
    dict.set_item("delivered_packets", ints(&|flow| flow.delivered_packets))?;
    dict.set_item("delivered_bytes", ints(&|flow| flow.delivered_bytes))?;
    dict.set_item("sent_packets", ints(&|flow| flow.sender.sent))?;
    dict.set_item("retransmitted_packets", ints(&|flow| flow.sender.retransmitted))?;
    dict.set_item("timeouts", ints(&|flow| flow.sender.timeouts))?;
    dict.set_item("fast_retransmits", ints(&|flow| flow.sender.fast_retransmits))?;
    dict.set_item("loss_events", ints(&|flow| flow.sender.loss_events))?;
    dict.set_item("mean_transit_s", floats(&|flow| flow.mean_transit_s.unwrap_or(f64::NAN)))?;
    dict.set_item("p99_transit_s", floats(&|flow| flow.p99_transit_s.unwrap_or(f64::NAN)))?;
    dict.set_item("jitter_s", floats(&|flow| flow.jitter_s.unwrap_or(f64::NAN)))?;
    dict.set_item(
        "mean_rtt_s",
        floats(&|flow| flow.mean_rtt().map_or(f64::NAN, perhop_core::Duration::as_secs_f64)),
    )?;
    dict.set_item("marked", colors(&|flow| flow.marked)?)?;
    dict.set_item("dropped", colors(&|flow| flow.dropped)?)?;
    Ok(dict)
}

fn link<'py>(py: Python<'py>, link: &LinkOutcome) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &link.name)?;
    dict.set_item("rate_bps", link.rate.as_bps() as f64)?;
    dict.set_item("utilization", link.utilization)?;
    dict.set_item("mean_queue_packets", link.mean_queue_packets)?;
    books(py, &dict, (&link.counters, &link.measured), link.waiting, &link.delays)?;
    let classes = link.classes.iter().map(|class| {
        let dict = PyDict::new(py);
        dict.set_item("name", &class.name)?;
        books(py, &dict, (&class.counters, &class.measured), class.waiting, &class.delays)?;
        Ok(dict)
    });
    dict.set_item("classes", PyList::new(py, classes.collect::<PyResult<Vec<_>>>()?)?)?;
    Ok(dict)
}

/// What a link and each of its classes have in common.
fn books(
    py: Python<'_>,
    dict: &Bound<'_, PyDict>,
    (whole_run, measured): (&Counters, &Counters),
    waiting: [u64; 3],
    delays: &DelayOutcome,
) -> PyResult<()> {
    counts(py, dict, whole_run)?;
    dict.set_item("waiting", integers(py, waiting.into_iter()))?;
    let after_warmup = PyDict::new(py);
    counts(py, &after_warmup, measured)?;
    dict.set_item("measured", after_warmup)?;
    let delay = PyDict::new(py);
    delay.set_item("edges", delays.edges.clone().into_pyarray(py))?;
    delay.set_item("counts", by_color(py, delays.counts.iter().copied())?)?;
    let largest: Vec<f64> = delays.largest.iter().map(|delay| delay.as_secs_f64()).collect();
    delay.set_item("max", largest.into_pyarray(py))?;
    dict.set_item("delay_s", delay)
}

fn counts(py: Python<'_>, dict: &Bound<'_, PyDict>, counters: &Counters) -> PyResult<()> {
    let three = |counts: [u64; 3]| integers(py, counts.into_iter());
    dict.set_item("arrived", three(counters.arrived))?;
    dict.set_item("sent", three(counters.sent))?;
    let drops = PyDict::new(py);
    for (reason, packets) in counters.drops() {
        drops.set_item(reason.name(), three(packets))?;
    }
    dict.set_item("dropped", drops)?;
    let notifications = PyDict::new(py);
    for (reason, packets) in counters.notifications() {
        notifications.set_item(reason.name(), three(packets))?;
    }
    dict.set_item("notified", notifications)
}

/// Tables of samples become arrays as they are: they are most of a large run, and no copy is made of them.
fn series(py: Python<'_>, series: Series, flows: usize) -> PyResult<Bound<'_, PyDict>> {
    let looks = series.times.len();
    let table = |values: Vec<f64>| values.into_pyarray(py).reshape([looks, flows]);
    let dict = PyDict::new(py);
    let times: Vec<f64> = series.times.iter().copied().map(Instant::as_secs_f64).collect();
    dict.set_item("time_s", times.into_pyarray(py))?;
    dict.set_item("throughput_bps", table(series.throughput_bps)?)?;
    dict.set_item("cwnd_packets", table(series.window_packets)?)?;
    dict.set_item("rtt_s", table(series.rtt_s)?)?;
    dict.set_item("seen_packets", table(series.seen_packets)?)?;
    let links = PyDict::new(py);
    for queue in series.queues {
        let samples = PyDict::new(py);
        samples.set_item("queue_packets", queue.packets.into_pyarray(py))?;
        let gauges = PyDict::new(py);
        for (name, values) in queue.gauges {
            gauges.set_item(name, values.into_pyarray(py))?;
        }
        samples.set_item("gauges", gauges)?;
        let classes = PyDict::new(py);
        for class in queue.classes {
            let dict = PyDict::new(py);
            for (key, values) in
                [("packets", class.packets), ("arrived", class.arrived), ("dropped", class.dropped)]
            {
                dict.set_item(key, values.into_pyarray(py))?;
            }
            classes.set_item(&class.name, dict)?;
        }
        samples.set_item("classes", classes)?;
        links.set_item(&queue.link, samples)?;
    }
    dict.set_item("links", links)?;
    Ok(dict)
}

fn integers(py: Python<'_>, values: impl Iterator<Item = u64>) -> Bound<'_, PyArray1<i64>> {
    values.map(u64::cast_signed).collect::<Vec<_>>().into_pyarray(py)
}

fn by_color(
    py: Python<'_>,
    rows: impl ExactSizeIterator<Item = [u64; 3]>,
) -> PyResult<Bound<'_, PyArray2<i64>>> {
    let count = rows.len();
    integers(py, rows.flatten()).reshape([count, 3])
}
