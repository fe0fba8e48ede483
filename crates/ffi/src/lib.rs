//! Wollemi for C: a shared and a static library behind `include/wollemi.h`, which cbindgen makes of this crate.
//!
//! | module        | what it holds                                                        |
//! |---------------|----------------------------------------------------------------------|
//! | `types`       | the types that C knows                                               |
//! | `status`      | the codes of answers, and the message of the last failure            |
//! | `call`        | the way in: no panic gets out, and pointers become references there  |
//! | `handle`      | handles, checked at each use                                         |
//! | `options`, `db`, `map`, `key`, `cursor`, `batch`, `transaction`, `snapshot`, `expiring` | the functions |
//!
//! Each function is a few lines over the crate `wollemi`: what it takes is read through `call::FromC`, what it answers
//! is a status. What C programs are promised, and promise, is in the header; its text is these functions' comments and
//! `cbindgen.toml`.

// The names are C's, and the header says what callers promise.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

mod batch;
mod call;
mod cursor;
mod db;
mod expiring;
mod handle;
mod key;
mod map;
mod memory;
mod options;
mod snapshot;
mod status;
mod transaction;
pub mod types;
