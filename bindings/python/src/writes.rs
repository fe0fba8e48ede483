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
        let map = map.handle(py)?;
        self.0.with(py, |batch| {
            batch.upsert(&map, &*key, &*value);
            Ok(())
        })
    }

    fn remove(&self, py: Python<'_>, map: &Map, key: PyBackedBytes) -> PyResult<()> {
        let map = map.handle(py)?;
        self.0.with(py, |batch| {
            batch.remove(&map, &*key);
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
        let map = map.handle(py)?;
        self.0.with(py, |batch| {
            batch.expect(&map, &*key, value);
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
        let map = map.handle(py)?;
        self.0
            .with(py, |running| Ok(running.get(&map, &*key)?.map(Bytes)))
    }

    fn put(&self, py: Python<'_>, map: &Map, key: PyBackedBytes, value: PyBackedBytes) -> PyResult<()> {
        let map = map.handle(py)?;
        self.0.with(py, |running| running.upsert(&map, &*key, &*value))
    }

    fn remove(&self, py: Python<'_>, map: &Map, key: PyBackedBytes) -> PyResult<bool> {
        let map = map.handle(py)?;
        self.0.with(py, |running| running.remove(&map, &*key))
    }

    /// Returns the first entry, or the last.
    fn end(&self, py: Python<'_>, map: &Map, last: bool) -> PyResult<Option<Pair>> {
        let map = map.handle(py)?;
        self.0.with(py, |running| {
            let end = if last {
                running.last(&map)
            } else {
                running.first(&map)
            };
            Ok(end?.map(Pair))
        })
    }

    fn pop_end(&self, py: Python<'_>, map: &Map, last: bool) -> PyResult<Option<Pair>> {
        let map = map.handle(py)?;
        self.0.with(py, |running| {
            let popped = if last {
                running.pop_last(&map)
            } else {
                running.pop_first(&map)
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
        let map = map.handle(py)?;
        let bounds = bounds(start.as_deref(), stop.as_deref(), prefix.as_deref());
        // A map of another database, or without order, is an error at once.
        this.get()
            .0
            .with(py, |running| running.range(&map, bounds.clone()).map(drop))?;
        let place = TransactionCursor::new(&map, bounds);
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
