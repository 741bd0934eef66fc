//! Distributions of statistics, for intervals over runs.

use perhop_core::measure::ProductLimit;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::beta_reg;

use crate::arrays::array;

fn student(freedom: f64) -> PyResult<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom)
        .map_err(|_| PyValueError::new_err("Student's t needs degrees of freedom above 0"))
}

/// The probability that Student's t is at most `t`.
#[pyfunction]
pub(crate) fn student_t_cdf(freedom: f64, t: f64) -> PyResult<f64> {
    Ok(student(freedom)?.cdf(t))
}

/// The value that Student's t exceeds with probability `1 - probability`.
#[pyfunction]
pub(crate) fn student_t_quantile(freedom: f64, probability: f64) -> PyResult<f64> {
    check(probability)?;
    Ok(student(freedom)?.inverse_cdf(probability))
}

/// The value that a beta variable exceeds with probability `1 - probability`, to the last digits however
/// small it is.
#[pyfunction]
pub(crate) fn beta_quantile(a: f64, b: f64, probability: f64) -> PyResult<f64> {
    check(probability)?;
    if !(a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite()) {
        return Err(PyValueError::new_err("a beta distribution needs two finite parameters above 0"));
    }
    if probability == 0.0 || probability == 1.0 {
        return Ok(probability);
    }
    // Halves until the value lies between `low` and its double, and then bisects.
    let mut high = 1.0_f64;
    while high > f64::MIN_POSITIVE && beta_reg(a, b, high / 2.0) >= probability {
        high /= 2.0;
    }
    let mut low = high / 2.0;
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if beta_reg(a, b, middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(f64::midpoint(low, high))
}

/// The times that ended, each once, and the share of all, with those that are open, that is at most as long;
/// the mean of all.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a function that Python calls owns what it is given")]
pub(crate) fn product_limit(
    py: Python<'_>,
    ended: PyBuffer<f64>,
    open: PyBuffer<f64>,
) -> PyResult<(Bound<'_, PyAny>, Bound<'_, PyAny>, Option<f64>)> {
    let found = ProductLimit::of(&ended.to_vec(py)?, &open.to_vec(py)?);
    Ok((array(py, found.times)?, array(py, found.shares)?, found.mean))
}

fn check(probability: f64) -> PyResult<()> {
    let is_one = (0.0..=1.0).contains(&probability);
    is_one.then_some(()).ok_or_else(|| PyValueError::new_err("a probability lies from 0 to 1"))
}
