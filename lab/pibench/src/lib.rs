//! The shared library that PiBench loads (`tree_api.hpp` of <https://github.com/sfu-dis/pibench>). It puts any of our
//! indexes behind the field's common benchmark interface.
//!
//! PiBench gets an object of a C++ class from `create_tree` and calls its virtual functions. This library lays out that
//! object by hand, as the Itanium C++ ABI prescribes (Linux on x86-64 and aarch64): a pointer to a table of functions
//! in the order of their declaration, with the complete and the deleting destructor first.
//!
//! Environment: `WOLLEMI_INDEX` names the index (default `roart`). PiBench's newer header declares `bulk_load` ahead of
//! the other functions, which shifts them by one: set `WOLLEMI_PIBENCH_BULK_LOAD=1` for it. `bulk_load` itself reports
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
