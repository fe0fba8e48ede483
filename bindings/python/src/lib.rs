//! The native half of the package `wollemi`, with minimal classes. Python programs use the other half,
//! `python/wollemi`, which builds mappings, codecs and context managers from them.
//!
//! I1 No code takes a lock or waits while it holds the GIL: `Slot` and `Turns` release it first. The only exception:
//! an object that is garbage-collected unclosed is dropped under the GIL.
//! I2 A closed object holds nothing of the database, so a database whose objects are all closed is closed itself.

mod convert;
mod cursor;
mod database;
mod errors;
mod map;
mod running;
mod slot;
mod writes;

use pyo3::prelude::*;

/// The native half of the package `wollemi`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_KEY", wollemi::MAX_KEY)?;
    module.add("MAX_VALUE", wollemi::MAX_VALUE)?;
    module.add_class::<database::Database>()?;
    module.add_class::<map::Map>()?;
    module.add_class::<map::Snapshot>()?;
    module.add_class::<map::View>()?;
    module.add_class::<cursor::Cursor>()?;
    module.add_class::<writes::Batch>()?;
    module.add_class::<running::Transaction>()?;
    errors::add(module)
}
