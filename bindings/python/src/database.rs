//! Databases.

use crate::convert::durability;
use crate::errors;
use crate::map::{Map, Snapshot};
use crate::running::Transaction;
use crate::slot::{Slot, Turns};
use crate::writes::Batch;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Duration;
use wollemi::{AfterPowerLoss, Db, IndexKind, Level, Options};

/// A database: a pool of named maps.
#[pyclass(frozen, module = "wollemi._native")]
pub struct Database(Slot<Db>);

fn index(name: &str) -> PyResult<IndexKind> {
    name.parse()
        .map_err(|unknown: wollemi::UnknownIndex| PyValueError::new_err(unknown.to_string()))
}

fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The options for opening a database, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wanted {
    level: String,
    index: String,
    max_size: Option<u64>,
    page_size: Option<u64>,
    recovery_threads: usize,
    create: bool,
    read_only: bool,
    lock_wait: f64,
    immediate: bool,
    sync_within: f64,
    after_power_loss: String,
}

impl Wanted {
    fn options(&self) -> PyResult<Options> {
        let level: Level = self
            .level
            .parse()
            .map_err(|unknown: wollemi::UnknownLevel| PyValueError::new_err(unknown.to_string()))?;
        let after = match self.after_power_loss.as_str() {
            "refuse" => AfterPowerLoss::Refuse,
            "look" => AfterPowerLoss::Look,
            "accept" => AfterPowerLoss::Accept,
            other => {
                let message = format!("after_power_loss='{other}': expected 'refuse', 'look' or 'accept'");
                return Err(PyValueError::new_err(message));
            }
        };
        let mut options = Options::new()
            .level(level)
            .index(index(&self.index)?)
            .recovery_threads(self.recovery_threads)
            .create(self.create)
            .read_only(self.read_only)
            .lock_wait(seconds(self.lock_wait)?)
            .durability(durability(self.immediate))
            .sync_within(seconds(self.sync_within)?)
            .after_power_loss(after);
        if let Some(bytes) = self.max_size {
            options = options.max_size(bytes);
        }
        if let Some(bytes) = self.page_size {
            options = options.page_size(bytes);
        }
        Ok(options)
    }
}

#[pymethods]
impl Database {
    /// Opens the database at a path, or one in memory.
    #[staticmethod]
    fn open(py: Python<'_>, path: Option<PathBuf>, wanted: Wanted) -> PyResult<Database> {
        let options = wanted.options()?;
        let db = py.detach(|| match path {
            Some(path) => options.open(path),
            None => options.anonymous(),
        });
        Ok(Database(Slot::new(db.map_err(|error| errors::of(py, error))?)))
    }

    #[pyo3(signature = (name, index=None))]
    fn map(&self, py: Python<'_>, name: &str, index: Option<&str>) -> PyResult<Map> {
        let index = index.map(self::index).transpose()?;
        let map = self.0.with(py, |db| match index {
            Some(index) => db.map_with(name, index),
            None => db.map(name),
        })?;
        Ok(Map(Slot::new(map)))
    }

    fn has_map(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.0.with(py, |db| Ok(db.find_map(name)?.is_some()))
    }

    fn drop_map(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.0.with(py, |db| db.drop_map(name))
    }

    fn maps(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.0.with(py, |db| {
            Ok(db.maps()?.into_iter().map(|map| (map.name, map.index)).collect())
        })
    }

    fn batch(&self, py: Python<'_>) -> PyResult<Batch> {
        Ok(Batch(Turns::new(self.0.with(py, |db| Ok(db.batch()))?)))
    }

    fn begin(&self, py: Python<'_>, again: bool) -> PyResult<Transaction> {
        let mut transaction = self.0.with(py, |db| Ok(db.begin_owned()))?;
        transaction.set_again(again);
        Ok(Transaction(Turns::new(transaction)))
    }

    #[pyo3(signature = (max_memory=None))]
    fn snapshot(&self, py: Python<'_>, max_memory: Option<u64>) -> PyResult<Snapshot> {
        let max = max_memory.unwrap_or(u64::MAX);
        Ok(Snapshot(Slot::new(
            self.0.with(py, |db| db.snapshot_within(max))?,
        )))
    }

    fn level(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.0.with(py, |db| Ok(db.level().name()))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, Db::sync)
    }

    fn checkpoint(&self, py: Python<'_>, full: bool) -> PyResult<()> {
        self.0.with(py, |db| db.checkpoint(full).map(drop))
    }

    fn wait_recovered(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, |db| {
            db.wait_recovered();
            Ok(())
        })
    }

    fn give_back(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.with(py, Db::give_back)
    }

    /// Returns the statistics as JSON.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let stats = self.0.with(py, Db::stats)?;
        serde_json::to_string(&stats).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Returns whether the pool is sound, and the report as JSON.
    fn check(&self, py: Python<'_>) -> PyResult<(bool, String)> {
        let check = self.0.with(py, Db::check)?;
        let report =
            serde_json::to_string(&check).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((check.is_clean(), report))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.0.take(py, Db::close) {
            // An object that is still in use keeps the pool open.
            None | Some(Ok(()) | Err(wollemi::Error::InUse)) => Ok(()),
            Some(Err(failed)) => Err(errors::of(py, failed)),
        }
    }
}
