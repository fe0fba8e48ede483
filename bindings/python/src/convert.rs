//! Conversions between Python's values and the database's.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use wollemi::{Durability, Entry};

/// Bytes to be returned to Python.
pub struct Bytes(pub Vec<u8>);

impl<'py> IntoPyObject<'py> for Bytes {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;
    fn into_pyobject(self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Self::Error> {
        Ok(PyBytes::new(py, &self.0))
    }
}

/// An entry to be returned to Python.
pub struct Pair(pub Entry);

impl<'py> IntoPyObject<'py> for Pair {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (key, value) = self.0;
        PyTuple::new(py, [PyBytes::new(py, &key), PyBytes::new(py, &value)])
    }
}

pub fn durability(immediate: bool) -> Durability {
    match immediate {
        true => Durability::Immediate,
        false => Durability::Eventual,
    }
}
