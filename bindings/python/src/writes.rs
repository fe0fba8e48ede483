//! Several changes at once: batches and transactions.

use crate::convert::{Bytes, Pair, durability};
use crate::cursor::{Cursor, Source, bounds};
use crate::map::Map;
use crate::running::Transaction;
use crate::slot::Turns;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use wollemi::TransactionCursor;

/// Changes that are committed together.
#[pyclass(frozen, weakref, module = "wollemi._native")]
pub struct Batch(pub Turns<wollemi::Batch>);

#[pymethods]
impl Batch {
    fn put(&self, py: Python<'_>, map: &Map, key: PyBackedBytes, value: PyBackedBytes) -> PyResult<()> {
        self.0.with_other(py, &map.0, |batch, map| {
            batch.upsert(map, &*key, &*value);
            Ok(())
        })
    }

    fn remove(&self, py: Python<'_>, map: &Map, key: PyBackedBytes) -> PyResult<()> {
        self.0.with_other(py, &map.0, |batch, map| {
            batch.remove(map, &*key);
            Ok(())
        })
    }

    fn expect(
        &self,
        py: Python<'_>,
        map: &Map,
        key: PyBackedBytes,
        value: Option<PyBackedBytes>,
    ) -> PyResult<()> {
        self.0.with_other(py, &map.0, |batch, map| {
            batch.expect(map, &*key, value);
            Ok(())
        })
    }

    fn set_durability(&self, py: Python<'_>, immediate: bool) -> PyResult<()> {
        self.0.with(py, |batch| {
            batch.durability(durability(immediate));
            Ok(())
        })
    }

    fn commit(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.take(py, wollemi::Batch::commit)
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

#[pymethods]
impl Transaction {
    fn get(&self, py: Python<'_>, map: &Map, key: PyBackedBytes) -> PyResult<Option<Bytes>> {
        self.0
            .with_other(py, &map.0, |running, map| Ok(running.get(map, &*key)?.map(Bytes)))
    }

    fn put(&self, py: Python<'_>, map: &Map, key: PyBackedBytes, value: PyBackedBytes) -> PyResult<()> {
        self.0
            .with_other(py, &map.0, |running, map| running.upsert(map, &*key, &*value))
    }

    fn remove(&self, py: Python<'_>, map: &Map, key: PyBackedBytes) -> PyResult<bool> {
        self.0
            .with_other(py, &map.0, |running, map| running.remove(map, &*key))
    }

    /// Returns the first entry, or the last.
    fn end(&self, py: Python<'_>, map: &Map, last: bool) -> PyResult<Option<Pair>> {
        self.0.with_other(py, &map.0, |running, map| {
            let end = if last {
                running.last(map)
            } else {
                running.first(map)
            };
            Ok(end?.map(Pair))
        })
    }

    fn pop_end(&self, py: Python<'_>, map: &Map, last: bool) -> PyResult<Option<Pair>> {
        self.0.with_other(py, &map.0, |running, map| {
            let popped = if last {
                running.pop_last(map)
            } else {
                running.pop_first(map)
            };
            Ok(popped?.map(Pair))
        })
    }

    #[pyo3(signature = (map, start=None, stop=None, prefix=None, reverse=false))]
    fn range(
        this: &Bound<'_, Self>,
        map: &Map,
        start: Option<PyBackedBytes>,
        stop: Option<PyBackedBytes>,
        prefix: Option<PyBackedBytes>,
        reverse: bool,
    ) -> PyResult<Cursor> {
        let py = this.py();
        let bounds = bounds(start.as_deref(), stop.as_deref(), prefix.as_deref());
        let place = this.get().0.with_other(py, &map.0, |running, map| {
            // A map of another database, or without order, is an error at once.
            running.range(map, bounds.clone()).map(drop)?;
            Ok(TransactionCursor::new(map, bounds))
        })?;
        Ok(Cursor::new(
            Source::Transaction(place, this.clone().unbind()),
            reverse,
        ))
    }

    fn set_durability(&self, py: Python<'_>, immediate: bool) -> PyResult<()> {
        self.0.with(py, |running| {
            running.set_durability(durability(immediate));
            Ok(())
        })
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.0.take(py, wollemi::Transaction::commit)
    }

    /// Ends it without changes; returns a conflict if something it has read was changed.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.0.take(py, wollemi::Transaction::check)
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}
