//! A transaction, which its cursors share. Its methods are in `writes`.

use crate::slot::Turns;
use pyo3::prelude::*;

/// Reads and changes that happen together.
#[pyclass(frozen, weakref, module = "wollemi._native")]
pub struct Transaction(pub Turns<wollemi::Transaction<'static>>);
