//! Runs on real packets, as Python sees them.

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{kernel_queue, live, live_check, live_in_virtual_time, live_probe};
#[cfg(target_os = "linux")]
pub(crate) use linux::{kernel_queue, live, live_check, live_in_virtual_time, live_probe};

#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use pyo3::prelude::*;
    use pyo3::types::{PyDict, PyTuple};

    use crate::LiveUnavailable;

    #[pyfunction]
    pub(crate) fn live_check(_scenario: &str) -> PyResult<()> {
        live_probe()
    }

    #[pyfunction]
    pub(crate) fn live_probe() -> PyResult<()> {
        Err(LiveUnavailable::new_err("real packets need Linux; run it there"))
    }

    #[pyfunction]
    #[pyo3(signature = (*_arguments, **_keywords))]
    pub(crate) fn live(
        _arguments: &Bound<'_, PyTuple>,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        live_probe()
    }

    #[pyfunction]
    pub(crate) fn live_in_virtual_time(_scenario: &str, _seed: u64) -> PyResult<()> {
        live_probe()
    }

    #[pyfunction]
    #[pyo3(signature = (*_arguments, **_keywords))]
    pub(crate) fn kernel_queue(
        _arguments: &Bound<'_, PyTuple>,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        live_probe()
    }
}
