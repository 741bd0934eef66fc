use std::sync::atomic::{AtomicBool, Ordering};

use perhop_core::Duration;
use perhop_lab::{Glimpse, Joint, LabError, LabReport, Options, Run};
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
    let Run { outcome, report } = run.map_err(|error| raised(&error))?;
    let dict = outcome::to_dict(py, &scenario, outcome)?;
    dict.set_item("live", in_json(&report).to_string())?;
    Ok(dict)
}

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
