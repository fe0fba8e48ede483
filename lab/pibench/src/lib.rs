//! The shared library that PiBench loads (`tree_api.hpp` of <https://github.com/sfu-dis/pibench>): any index of the
//! list behind the field's common benchmark interface.
//!
//! PiBench asks `create_tree` for an object of a C++ class and calls its virtual functions. This library makes that
//! object by hand, as the Itanium C++ ABI has it (Linux on x86-64 and aarch64): a pointer to a table of functions,
//! in the order of their declaration, the complete and the deleting destructor first.
//!
//! Environment: `WOLLEMI_INDEX` names the index (default `roart`). PiBench's newer header declares `bulk_load` ahead
//! of the others, which moves them by one place: set `WOLLEMI_PIBENCH_BULK_LOAD=1` for it; the function then reports
//! failure. The pool is a new file at PiBench's `--pool_path`, or memory if that is empty.
//!
//! ```sh
//! cargo build --release -p wollemi-pibench
//! WOLLEMI_INDEX=roart PiBench target/release/libwollemi_pibench.so -n 1000000 -p 1000000
//! ```

mod abi;
mod tree;

pub use abi::{Object, Options, create_tree};
pub use tree::Tree;
