//! Runs on real packets, as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyDict;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
#[cfg(target_os = "linux")]
use linux as system;

/// Tries everything that a run on real packets begins with; like a run, in a process that has one thread.
#[pyfunction]
pub(crate) fn live_probe() -> PyResult<()> {
    system::probe()
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
    system::live(py, scenario, seed, real_time, device, watch_s, watch.as_ref())
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    use crate::LiveUnavailable;

    pub(super) fn probe() -> PyResult<()> {
        Err(LiveUnavailable::new_err("real packets need Linux; run it there"))
    }

    pub(super) fn live<'py>(
        _: Python<'py>,
        _: &str,
        _: u64,
        _: bool,
        _: &str,
        _: Option<f64>,
        _: Option<&Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        probe()?;
        unreachable!("there is no such system")
    }
}
