//! The native half of the package `wollemi`: its classes as thin as they can be. What Python programs use is the other
//! half, `python/wollemi`, which makes mappings, codecs and context managers of them.
//!
//! I1 No lock is taken, and nothing waited for, while the interpreter's lock is held: `Slot::with` gives that up first.
//!    What is forgotten without having been closed is dropped under it.
//! I2 An object that was closed holds nothing of the database any more, so a database whose objects are all closed is
//!    closed itself.

mod cursor;
mod database;
mod errors;
mod map;
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
    module.add_class::<writes::Transaction>()?;
    errors::add(module)
}
