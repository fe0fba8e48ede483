//! Wollemi for C: a shared and a static library behind `include/wollemi.h`, which cbindgen generates from this crate.
//!
//! | module        | what it holds                                                        |
//! |---------------|----------------------------------------------------------------------|
//! | `types`       | the types in C                                                       |
//! | `status`      | the status codes, and the message of the last failure                |
//! | `call`        | entry: stops panics, and turns pointers into references              |
//! | `handle`      | handles, checked at each use                                         |
//! | `memory`      | memory that the library returns, and the function that frees it      |
//! | `running`     | a transaction that its handle and its cursors share                  |
//! | `conflict`, `options`, `db`, `map`, `key`, `cursor`, `batch`, `transaction`, `snapshot`, `expiring` | the functions |
//!
//! Each function is a few lines over the crate `wollemi`: it reads its arguments through `call::FromC` and returns a
//! status. The header states the promises to and of C programs; its text consists of these modules' comments and
//! `cbindgen.toml`.

// The names are C's, and the header states what callers promise.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

mod batch;
mod call;
mod conflict;
mod cursor;
mod db;
mod expiring;
mod handle;
mod key;
mod map;
mod memory;
mod options;
mod running;
mod snapshot;
mod status;
mod transaction;
pub mod types;
