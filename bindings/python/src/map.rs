//! Maps, and maps in snapshots.

use crate::convert::{Bytes, Pair, durability};
use crate::cursor::{Cursor, Source, bounds};
use crate::slot::Slot;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::time::Duration;
use wollemi::Expiring;

/// Converts a life in seconds, if given: a negative one is over, and one too long to represent has no end.
fn life(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    match seconds {
        Some(seconds) if seconds.is_nan() => Err(PyValueError::new_err("seconds=nan is not a duration")),
        Some(seconds) if seconds < 0.0 => Ok(Some(Duration::ZERO)),
        Some(seconds) => Ok(Duration::try_from_secs_f64(seconds).ok()),
        None => Ok(None),
    }
}

/// A map from bytes to bytes.
#[pyclass(frozen, weakref, module = "wollemi._native")]
pub struct Map(pub Slot<wollemi::Map>);

#[pymethods]
impl Map {
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.0.with(py, |map| Ok(map.name().to_owned()))
    }

    fn index(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.0.with(py, |map| Ok(map.index_kind().name()))
    }

    fn get(&self, py: Python<'_>, key: PyBackedBytes) -> PyResult<Option<Bytes>> {
        self.0.with(py, |map| Ok(map.get(&*key)?.map(Bytes)))
    }

    fn contains(&self, py: Python<'_>, key: PyBackedBytes) -> PyResult<bool> {
        self.0.with(py, |map| map.contains(&*key))
    }

    fn multi_get(&self, py: Python<'_>, keys: Vec<PyBackedBytes>) -> PyResult<Vec<Option<Bytes>>> {
        self.0.with(py, |map| {
            let values = map.multi_get(&keys)?;
            Ok(values.into_iter().map(|value| value.map(Bytes)).collect())
        })
    }

    fn put(&self, py: Python<'_>, key: PyBackedBytes, value: PyBackedBytes) -> PyResult<()> {
        self.0.with(py, |map| map.upsert(&*key, &*value))
    }

    fn insert(&self, py: Python<'_>, key: PyBackedBytes, value: PyBackedBytes) -> PyResult<bool> {
        self.0.with(py, |map| map.insert(&*key, &*value))
    }

    fn remove(&self, py: Python<'_>, key: PyBackedBytes) -> PyResult<bool> {
        self.0.with(py, |map| map.remove(&*key))
    }

    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: PyBackedBytes,
        expected: Option<PyBackedBytes>,
        new: Option<PyBackedBytes>,
    ) -> PyResult<bool> {
        self.0.with(py, |map| map.compare_and_swap(&*key, expected, new))
    }

    /// Returns the first entry, or the last.
    fn end(&self, py: Python<'_>, last: bool) -> PyResult<Option<Pair>> {
        self.0.with(py, |map| {
            let end = if last { map.last() } else { map.first() };
            Ok(end?.map(Pair))
        })
    }

    fn pop_end(&self, py: Python<'_>, last: bool) -> PyResult<Option<Pair>> {
        self.0.with(py, |map| {
            let popped = if last { map.pop_last() } else { map.pop_first() };
            Ok(popped?.map(Pair))
        })
    }

    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.with(py, wollemi::Map::count)
    }

    #[pyo3(signature = (start=None, stop=None, prefix=None, reverse=false))]
    fn range(
        &self,
        py: Python<'_>,
        start: Option<PyBackedBytes>,
        stop: Option<PyBackedBytes>,
        prefix: Option<PyBackedBytes>,
        reverse: bool,
    ) -> PyResult<Cursor> {
        let bounds = bounds(start.as_deref(), stop.as_deref(), prefix.as_deref());
        let iter = self.0.with(py, |map| Ok(map.range(bounds)))?;
        Ok(Cursor::new(Source::Map(iter), reverse))
    }

    fn with_durability(&self, py: Python<'_>, immediate: bool) -> PyResult<Map> {
        let other = self
            .0
            .with(py, |map| Ok(map.with_durability(durability(immediate))))?;
        Ok(Map(Slot::new(other)))
    }

    fn put_expiring(
        &self,
        py: Python<'_>,
        key: PyBackedBytes,
        value: PyBackedBytes,
        seconds: Option<f64>,
    ) -> PyResult<()> {
        let life = life(seconds)?;
        self.0
            .with(py, |map| Expiring::new(map.clone()).upsert(&*key, &*value, life))
    }

    fn get_expiring(&self, py: Python<'_>, key: PyBackedBytes) -> PyResult<Option<(Bytes, Option<f64>)>> {
        self.0.with(py, |map| {
            let found = Expiring::new(map.clone()).get_with_life(&*key)?;
            Ok(found.map(|(value, left)| (Bytes(value), left.map(|left| left.as_secs_f64()))))
        })
    }

    fn touch_expiring(&self, py: Python<'_>, key: PyBackedBytes, seconds: Option<f64>) -> PyResult<bool> {
        let life = life(seconds)?;
        self.0
            .with(py, |map| Expiring::new(map.clone()).touch(&*key, life))
    }

    fn remove_expiring(&self, py: Python<'_>, key: PyBackedBytes) -> PyResult<bool> {
        self.0.with(py, |map| Expiring::new(map.clone()).remove(&*key))
    }

    /// Removes expired entries, in one round; returns their number.
    fn sweep_expiring(&self, py: Python<'_>) -> PyResult<u64> {
        const STEP: usize = 256;
        self.0.with(py, |map| {
            let (map, mut cursor, mut removed) = (Expiring::new(map.clone()), None, 0);
            loop {
                removed += map.sweep(&mut cursor, STEP)?.removed as u64;
                if cursor.is_none() {
                    return Ok(removed);
                }
            }
        })
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

/// All maps at one moment.
#[pyclass(frozen, weakref, module = "wollemi._native")]
pub struct Snapshot(pub Slot<wollemi::Snapshot>);

#[pymethods]
impl Snapshot {
    fn view(&self, py: Python<'_>, map: &Map) -> PyResult<View> {
        let view = self
            .0
            .with_other(py, &map.0, |snapshot, map| snapshot.view(map))?;
        Ok(View(Slot::new(view)))
    }

    fn memory(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.with(py, |snapshot| Ok(snapshot.memory()))
    }

    fn backup(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        self.0
            .with(py, |snapshot| snapshot.backup_to(path, |_| {}).map(drop))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

/// One map of a snapshot.
#[pyclass(frozen, weakref, module = "wollemi._native")]
pub struct View(Slot<wollemi::View>);

#[pymethods]
impl View {
    fn get(&self, py: Python<'_>, key: PyBackedBytes) -> PyResult<Option<Bytes>> {
        self.0.with(py, |view| Ok(view.get(&*key)?.map(Bytes)))
    }

    /// Returns the first entry, or the last.
    fn end(&self, py: Python<'_>, last: bool) -> PyResult<Option<Pair>> {
        self.0.with(py, |view| {
            let end = if last { view.last() } else { view.first() };
            Ok(end?.map(Pair))
        })
    }

    #[pyo3(signature = (start=None, stop=None, prefix=None, reverse=false))]
    fn range(
        &self,
        py: Python<'_>,
        start: Option<PyBackedBytes>,
        stop: Option<PyBackedBytes>,
        prefix: Option<PyBackedBytes>,
        reverse: bool,
    ) -> PyResult<Cursor> {
        let bounds = bounds(start.as_deref(), stop.as_deref(), prefix.as_deref());
        let iter = self.0.with(py, |view| Ok(view.range(bounds)))?;
        Ok(Cursor::new(Source::View(iter), reverse))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}
