//! Student's t distribution, for intervals over runs.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use statrs::distribution::{ContinuousCDF, StudentsT};

fn student(freedom: f64) -> PyResult<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom)
        .map_err(|_| PyValueError::new_err("Student's t needs degrees of freedom above 0"))
}

/// The probability of at most `t`.
#[pyfunction]
pub(crate) fn student_t_cdf(freedom: f64, t: f64) -> PyResult<f64> {
    Ok(student(freedom)?.cdf(t))
}

/// The value that is exceeded with probability `1 - probability`.
#[pyfunction]
pub(crate) fn student_t_quantile(freedom: f64, probability: f64) -> PyResult<f64> {
    if !(0.0..=1.0).contains(&probability) {
        return Err(PyValueError::new_err("a probability lies from 0 to 1"));
    }
    Ok(student(freedom)?.inverse_cdf(probability))
}
