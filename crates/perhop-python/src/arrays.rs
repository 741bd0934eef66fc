//! Arrays of numpy with values of Rust.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyDict, PyTuple};

/// A number that an array can hold.
pub(crate) trait Number: Copy + Send + Sync + 'static {
    /// The type of the number in the words of numpy.
    const TYPE: &'static str;

    /// Writes the bytes of the number, in the order of this machine.
    fn write(self, place: &mut [u8]);
}

macro_rules! numbers {
    ($($number:ty: $name:literal),+) => {
        $(impl Number for $number {
            const TYPE: &'static str = $name;

            fn write(self, place: &mut [u8]) {
                place.copy_from_slice(&self.to_ne_bytes());
            }
        })+
    };
}
numbers!(u8: "=u1", u16: "=u2", u32: "=u4", u64: "=u8", i64: "=i8", f64: "=f8");

/// The owner of an array's values. The array refers to it as long as anything refers to the values, and
/// nothing else uses them.
#[pyclass(frozen, module = "perhop._engine")]
struct Values {
    /// Where the values are, and what they are (numpy's array interface protocol).
    #[pyo3(get, name = "__array_interface__")]
    interface: Py<PyDict>,
    _vector: Box<dyn Send + Sync>,
}

/// An array of these values.
pub(crate) fn array<T: Number>(py: Python<'_>, values: Vec<T>) -> PyResult<Bound<'_, PyAny>> {
    let shape = [values.len()];
    shaped(py, values, &shape)
}

/// An array of these values, row after row.
pub(crate) fn table<T: Number>(
    py: Python<'_>,
    values: Vec<T>,
    rows: usize,
    columns: usize,
) -> PyResult<Bound<'_, PyAny>> {
    shaped(py, values, &[rows, columns])
}

/// So many values are copied in less time than numpy takes to ask for their place.
const FEW: usize = 64;

fn shaped<'py, T: Number>(py: Python<'py>, values: Vec<T>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    assert_eq!(shape.iter().product::<usize>(), values.len(), "the shape of an array is of its values");
    let shape = PyTuple::new(py, shape)?;
    if values.len() <= FEW { copied(&values, shape) } else { owned(values, shape) }
}

fn copied<'py, T: Number>(values: &[T], shape: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    static NDARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = shape.py();
    let bytes = PyByteArray::new_with(py, size_of_val(values), |room| {
        room.chunks_exact_mut(size_of::<T>()).zip(values).for_each(|(place, value)| value.write(place));
        Ok(())
    })?;
    NDARRAY.import(py, "numpy", "ndarray")?.call1((shape, T::TYPE, bytes))
}

fn owned<T: Number>(mut values: Vec<T>, shape: Bound<'_, PyTuple>) -> PyResult<Bound<'_, PyAny>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = shape.py();
    let interface = PyDict::new(py);
    interface.set_item(intern!(py, "version"), 3)?;
    interface.set_item(intern!(py, "typestr"), T::TYPE)?;
    interface.set_item(intern!(py, "shape"), shape)?;
    let writable = values.as_mut_ptr();
    interface.set_item(intern!(py, "data"), (writable.expose_provenance(), false))?;
    let values = Values { interface: interface.unbind(), _vector: Box::new(values) };
    ASARRAY.import(py, "numpy", "asarray")?.call1((values,))
}
