//! Captures replayed, as Python sees them.

use std::io::{self, Read};

use perhop_core::Reason;
use perhop_replay::{By, ReplayError, Request, Verdicts};
use pyo3::exceptions::PyEOFError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::array;
use crate::{Cancel, Cancelled, CaptureError, ScenarioError, watch_of};

/// A file that Python has opened for reading bytes.
struct File(Py<PyAny>);

impl Read for File {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let problem = |py: Python<'_>, error: PyErr| {
            let kind = if error.is_instance_of::<PyEOFError>(py) {
                io::ErrorKind::UnexpectedEof // of a compressed file that is cut off
            } else {
                io::ErrorKind::Other
            };
            io::Error::new(kind, error.value(py).to_string())
        };
        Python::attach(|py| {
            let read = self.0.bind(py).call_method1("read", (room.len(),));
            let bytes = read.and_then(|bytes| Ok(bytes.cast_into::<PyBytes>()?));
            let bytes = bytes.map_err(|error| problem(py, error))?;
            let bytes = bytes.as_bytes();
            let count = bytes.len().min(room.len());
            room[..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        })
    }
}

/// Replays a capture: the report as JSON, and what became of each packet if that is asked for. Other Python
/// threads go on meanwhile.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a function that Python calls owns what it is given")]
#[pyo3(signature = (file, options, scenario = None, cancel = None, *, data_plane = false, packets = false))]
pub(crate) fn replay<'py>(
    py: Python<'py>,
    file: Py<PyAny>,
    options: &str,
    scenario: Option<(String, String)>,
    cancel: Option<&Cancel>,
    data_plane: bool,
    packets: bool,
) -> PyResult<(String, Option<Bound<'py, PyDict>>)> {
    let scenario = scenario.as_ref().map(|(text, origin)| (text.as_str(), origin.as_str()));
    let plan = Request::plan(options, scenario).map_err(raised)?;
    let watch = watch_of(cancel);
    let by = if data_plane { By::DataPlane } else { By::Simulator };
    let done = py.detach(|| perhop_replay::replay(File(file), &plan, by, packets, &watch));
    let (report, verdicts) = done.map_err(raised)?;
    let text = serde_json::to_string(&report).expect("rows have a form in JSON");
    Ok((text, verdicts.map(|verdicts| columns(py, verdicts)).transpose()?))
}

fn raised(error: ReplayError) -> PyErr {
    match error {
        ReplayError::Capture(text) => CaptureError::new_err(text),
        ReplayError::Target(text) => ScenarioError::new_err(text),
        ReplayError::Stopped => Cancelled::new_err("cancelled"),
    }
}

fn columns(py: Python<'_>, verdicts: Verdicts) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("number", array(py, verdicts.number)?)?;
    dict.set_item("arrived_ns", array(py, verdicts.arrived_ns)?)?;
    dict.set_item("size", array(py, verdicts.size)?)?;
    dict.set_item("flow", array(py, verdicts.flow)?)?;
    for (name, column) in [
        ("dscp_in", verdicts.dscp_in),
        ("ecn_in", verdicts.ecn_in),
        ("verdict", verdicts.verdict),
        ("dscp_out", verdicts.dscp_out),
        ("ecn_out", verdicts.ecn_out),
        ("color", verdicts.color),
    ] {
        dict.set_item(name, array(py, column)?)?;
    }
    dict.set_item("left_ns", array(py, verdicts.left_ns)?)?;
    dict.set_item("reasons", Reason::ALL.map(Reason::name))?;
    Ok(dict)
}
