use std::sync::atomic::{AtomicBool, Ordering};

use perhop_core::{Dscp, Duration, Ecn};
use perhop_lab::{Departure, Glimpse, Joint, LabError, LabReport, Offered, Options, Passed, Run};
use perhop_live::{Amount, Loss};
use perhop_scenario::{Driver, NoFiles, Scenario};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::{Cancelled, LiveUnavailable, ScenarioError, outcome, refused};

/// Tries everything that a run on real packets begins with; like a run, in a process that has one thread.
#[pyfunction]
pub(crate) fn live_probe() -> PyResult<()> {
    perhop_lab::probe().map_err(|error| raised(&error))
}

/// Checks that hosts can run a scenario, whatever this system has.
#[pyfunction]
pub(crate) fn live_check(scenario: &str) -> PyResult<()> {
    let scenario =
        Scenario::from_json_for(scenario, "scenario", Driver::RealPackets, &NoFiles).map_err(refused)?;
    perhop_lab::check(&scenario, 1).map_err(|error| raised(&error))
}

/// Runs a scenario once on real packets, in real time, in a process that has one thread. `watch` is called
/// with a line of JSON every `watch_s` seconds.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a function that Python calls owns what it is given")]
#[pyo3(signature = (scenario, seed, *, real_time = true, device = "auto", watch_s = None, watch = None))]
pub(crate) fn live<'py>(
    py: Python<'py>,
    scenario: &str,
    seed: u64,
    real_time: bool,
    device: &str,
    watch_s: Option<f64>,
    watch: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario =
        Scenario::from_json_for(scenario, "scenario", Driver::RealPackets, &NoFiles).map_err(refused)?;
    let interval = watch_s.map(|seconds| {
        if (0.001..=3600.0).contains(&seconds) {
            Ok(Duration::from_nanos((seconds * 1e9) as u64))
        } else {
            Err(PyValueError::new_err(format!("watch_s must lie between 0.001 and 3600, not {seconds}")))
        }
    });
    let options = Options {
        seed,
        real_time,
        watch: interval.transpose()?.filter(|_| watch.is_some()),
        die_with_parent: true,
        joint: match device {
            "auto" => None,
            "tun" => Some(Joint::Tun),
            "packet" => Some(Joint::Packet),
            other => {
                return Err(PyValueError::new_err(format!(
                    "device must be auto, tun or packet, not {other}"
                )));
            }
        },
    };
    let stop = AtomicBool::new(false);
    let mut failed = None;
    let run = py.detach(|| {
        perhop_lab::run(&scenario, options, &stop, &mut |glimpse| {
            let line = line(&scenario, glimpse);
            let called =
                Python::attach(|py| watch.as_ref().map(|watch| watch.call1(py, (line,))).transpose());
            if let Err(error) = called {
                stop.store(true, Ordering::Relaxed);
                failed = Some(error);
            }
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    to_dict(py, &scenario, run)
}

/// Runs a scenario once with perhop's own TCP and the data plane in virtual time, without the kernel.
#[pyfunction]
pub(crate) fn live_in_virtual_time<'py>(
    py: Python<'py>,
    scenario: &str,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario =
        Scenario::from_json_for(scenario, "scenario", Driver::RealPackets, &NoFiles).map_err(refused)?;
    let run = py.detach(|| perhop_lab::run_in_virtual_time(&scenario, seed, &AtomicBool::new(false)));
    to_dict(py, &scenario, run)
}

fn to_dict<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    run: Result<Run, LabError>,
) -> PyResult<Bound<'py, PyDict>> {
    let Run { outcome, report } = run.map_err(|error| raised(&error))?;
    let dict = outcome::to_dict(py, scenario, outcome)?;
    dict.set_item("live", in_json(&report).to_string())?;
    Ok(dict)
}

/// Sends packets through a queueing discipline of the kernel, in a process that has one thread. The columns
/// have a row for each packet, in the order of time.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
#[expect(clippy::needless_pass_by_value, reason = "a function that Python calls owns what it is given")]
#[pyo3(signature = (*, device, commands, at_ns, size, dscp, ecn, flow, real_time = true))]
pub(crate) fn kernel_queue<'py>(
    py: Python<'py>,
    device: &str,
    commands: Vec<String>,
    at_ns: Vec<u64>,
    size: Vec<u16>,
    dscp: Vec<u8>,
    ecn: Vec<u8>,
    flow: Vec<u32>,
    real_time: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let invalid = |text: &str| PyValueError::new_err(text.to_owned());
    if [size.len(), dscp.len(), ecn.len(), flow.len()].iter().any(|rows| *rows != at_ns.len()) {
        return Err(invalid("the columns must have as many rows as `at_ns`"));
    }
    let offered = |row: usize| {
        Ok(Offered {
            at: Duration::from_nanos(at_ns[row]),
            size: size[row],
            dscp: Dscp::new(dscp[row]).ok_or_else(|| invalid("dscp: a codepoint lies between 0 and 63"))?,
            ecn: *ECN.get(usize::from(ecn[row])).ok_or_else(|| invalid("ecn: must be from 0 to 3"))?,
            flow: flow[row],
        })
    };
    let packets = (0..at_ns.len()).map(offered).collect::<PyResult<Vec<_>>>()?;
    let passed = py.detach(|| perhop_lab::pass(&packets, device, &commands, real_time));
    let Passed { passages, counters, kernel, real_time, clock_step_ns } =
        passed.map_err(|error| raised(&error))?;
    let dict = PyDict::new(py);
    dict.set_item("began_ns", passages.iter().map(|one| one.began_ns).collect::<Vec<_>>())?;
    dict.set_item("ended_ns", passages.iter().map(|one| one.ended_ns).collect::<Vec<_>>())?;
    dict.set_item("accepted", passages.iter().map(|one| one.accepted).collect::<Vec<_>>())?;
    let left = |field: fn(&Departure) -> u64| -> Vec<_> {
        passages.iter().map(|one| one.left.as_ref().map(field)).collect()
    };
    dict.set_item("left_ns", left(|departure| departure.at_ns))?;
    dict.set_item("left_dscp", left(|departure| departure.dscp.get().into()))?;
    dict.set_item("left_ecn", left(|departure| departure.ecn as u64))?;
    dict.set_item("counters", counters)?;
    dict.set_item("kernel", kernel)?;
    dict.set_item("real_time", real_time)?;
    dict.set_item("clock_step_ns", clock_step_ns)?;
    Ok(dict)
}

/// The values of the ECN field by number.
const ECN: [Ecn; 4] = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congested];

fn raised(error: &LabError) -> PyErr {
    let text = error.to_string();
    match error {
        LabError::Unfit(_) => ScenarioError::new_err(text),
        LabError::Missing(_) => LiveUnavailable::new_err(text),
        LabError::Interrupted => Cancelled::new_err(text),
        LabError::System(..) | LabError::Unbalanced(_) => PyRuntimeError::new_err(text),
    }
}

/// A glimpse as one line of JSON.
fn line(scenario: &Scenario, glimpse: &Glimpse) -> String {
    let names = scenario.flows.iter().map(|group| &group.name);
    let received: serde_json::Map<_, _> =
        names.zip(&glimpse.received).map(|(name, bytes)| (name.clone(), json!(bytes))).collect();
    let links: serde_json::Map<_, _> = glimpse
        .links
        .iter()
        .map(|link| {
            let dropped: serde_json::Map<_, _> =
                link.dropped.iter().map(|(reason, packets)| ((*reason).to_owned(), json!(packets))).collect();
            (link.name.clone(), json!({"waiting": link.waiting, "sent": link.sent, "dropped": dropped}))
        })
        .collect();
    let (p50, p99, largest) = glimpse.late;
    json!({
        "time_s": glimpse.at.as_secs_f64(),
        "received_bytes": received,
        "links": links,
        "late_s": {"p50": p50.as_secs_f64(), "p99": p99.as_secs_f64(), "max": largest.as_secs_f64()},
        "inside": glimpse.inside,
    })
    .to_string()
}

/// A report as JSON.
fn in_json(report: &LabReport) -> serde_json::Value {
    let LabReport { late, drops, counters, .. } = report;
    let amount = |Amount { packets, bytes }: &Amount| json!({"packets": packets, "bytes": bytes});
    let devices =
        counters.devices().iter().map(|(came, left)| json!({"read": amount(came), "sent": amount(left)}));
    let lost: serde_json::Map<_, _> = Loss::all()
        .filter(|&why| counters.lost(why) > 0)
        .map(|why| (why.name().to_owned(), json!(counters.lost(why))))
        .collect();
    json!({
        "valid": report.is_valid(),
        "invalid": report.invalid,
        "notes": report.notes,
        "kernel": report.kernel,
        "senders": report.senders,
        "real_time": report.real_time,
        "cpu_s": report.cpu.as_secs_f64(),
        "wall_s": report.wall.as_secs_f64(),
        "late_s": {
            "p50": late.p50.as_secs_f64(),
            "p90": late.p90.as_secs_f64(),
            "p99": late.p99.as_secs_f64(),
            "p99.9": late.p999.as_secs_f64(),
            "max": late.largest.as_secs_f64(),
            "allowed": late.allowed.as_secs_f64(),
            "pause": late.pause.as_secs_f64(),
        },
        "devices": devices.collect::<Vec<_>>(),
        "lost": lost,
        "lost_outside": {
            "to_router": drops.to_router,
            "to_hosts": drops.to_hosts,
            "no_buffer": drops.no_buffer,
            "unsent": drops.unsent,
        },
    })
}
